"""The JSON Schema of scenario files: by kind, as editors understand it."""

from functools import cache

import pytest

from scenarios.files.json_schema import field_meanings, json_schema
from scenarios.files.loader import library, read
from scenarios.files.schema import QueueScenario


@cache
def made():
    return json_schema()


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
        ({"kind": "cross_platform"}, ["ServiceScenario"]),
        ({"kind": "profile"}, ["ProfileScenario"]),
        ({"extends": "small"}, ["Scenario", "QueueScenario", "ServiceScenario", "ProfileScenario"]),
    ],
)
def test_a_file_is_held_against_the_part_of_its_kind(file, parts):
    assert chosen(made(), file) == parts


@pytest.mark.parametrize("name", library())
def test_every_key_of_a_shipped_file_is_in_the_part_of_its_kind(name):
    schema = made()
    file = read(name)[0].plain()
    assert any(file.keys() <= schema["$defs"][part]["properties"].keys() for part in chosen(schema, file))


def test_every_kind_forbids_the_keys_of_the_others():
    parts = made()["$defs"]
    kinds = [parts[name] for name in ("Scenario", "QueueScenario", "ServiceScenario")]
    assert all(kind["additionalProperties"] is False for kind in kinds)
    fleet, queue, service = (kind["properties"].keys() for kind in kinds)
    assert {"fleet", "population"} <= fleet - queue - service
    assert {"station", "replays"} <= queue - fleet - service
    assert {"application", "measured"} <= service - fleet - queue


def test_a_key_that_is_a_word_of_python_is_described_by_its_own_name():
    keys = made()["$defs"]["CrossPlatform"]["properties"]
    assert "calibration" not in keys
    assert keys["from"]["description"].startswith("Platform whose log predictions start from")


def test_defaults_that_are_parts_are_said_as_a_file_would_say_them():
    think = made()["$defs"]["Sessions"]["properties"]["think_s"]
    assert think["default"] == {"kind": "uniform", "low": 3.0, "high": 6.0}
    benchmark = made()["$defs"]["ServiceScenario"]["properties"]["benchmark"]
    assert benchmark["default"] == {"types": 13, "miss_exponent": -0.89}


def test_a_rate_is_not_a_time():
    keys = made()["$defs"]["ServiceLoad"]["properties"]
    assert keys["requests_per_s"]["description"].endswith("Unit: per second.")
    assert keys["period_s"]["description"].endswith("Unit: seconds.")


def test_inherited_fields_have_their_meanings():
    assert field_meanings(QueueScenario)["replays"].startswith("Other numbers of servers")
