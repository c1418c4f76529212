"""The JSON Schema of scenario files: by kind, as editors understand it."""

import pytest

from scenarios.json_schema import field_meanings, json_schema
from scenarios.schema import QueueScenario
from scenarios.source import library, read


def chosen(schema, file):
    """Return the parts that the schema holds a file against, following its if, then and else."""
    if "if" in schema:
        return chosen(schema["then"] if holds(schema["if"], file) else schema["else"], file)
    return [one["$ref"].rpartition("/")[2] for one in schema.get("anyOf", [schema])]


def holds(condition, file):
    there = all(key in file for key in condition.get("required", ()))
    as_said = all(file.get(key, one["const"]) == one["const"] for key, one in condition.get("properties", {}).items())
    return there and as_said and not ("not" in condition and holds(condition["not"], file))


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        ({}, ["Scenario"]),
        ({"kind": "fleet"}, ["Scenario"]),
        ({"kind": "queue"}, ["QueueScenario"]),
        ({"kind": "queue", "extends": "queue_small"}, ["QueueScenario"]),
        ({"extends": "small"}, ["Scenario", "QueueScenario"]),
    ],
)
def test_a_file_is_held_against_the_part_of_its_kind(file, parts):
    assert chosen(json_schema(), file) == parts


@pytest.mark.parametrize("name", library())
def test_every_key_of_a_shipped_file_is_in_the_part_of_its_kind(name):
    schema = json_schema()
    file = read(name)[0].plain()
    assert any(file.keys() <= schema["$defs"][part]["properties"].keys() for part in chosen(schema, file))


def test_both_kinds_forbid_the_keys_of_the_other():
    parts = json_schema()["$defs"]
    fleet, queue = (parts[name] for name in ("Scenario", "QueueScenario"))
    assert fleet["additionalProperties"] is queue["additionalProperties"] is False
    assert {"fleet", "population"} <= fleet["properties"].keys() - queue["properties"].keys()
    assert {"load", "station"} <= queue["properties"].keys() - fleet["properties"].keys()


def test_defaults_that_are_parts_are_said_as_a_file_would_say_them():
    think = json_schema()["$defs"]["Sessions"]["properties"]["think_s"]
    assert think["default"] == {"kind": "uniform", "low": 3.0, "high": 6.0}


def test_inherited_fields_have_their_meanings():
    assert field_meanings(QueueScenario)["replays"].startswith("Other numbers of servers")
