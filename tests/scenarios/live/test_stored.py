"""The run of a real server that is shipped says what its own tables say."""

import json

import pytest

from scenarios.live.stored import FOLDER, stored, stored_summary
from scenarios.live.summary import summary
from scenarios.views.output import dumps


def leaves(value, path=""):
    """Every number, text and truth value of a nested value, by its path."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return {place: leaf for key, each in pairs for place, leaf in leaves(each, f"{path}/{key}").items()}
    return {path: value}


def test_its_summary_follows_from_its_tables():
    kept = stored_summary()
    made = json.loads(dumps(summary(*stored(), kept["servers"])))
    assert leaves(made) == pytest.approx(leaves({key: kept[key] for key in made}), rel=1e-9, abs=1e-9)


def test_it_is_half_an_hour_of_every_utilisation_and_every_request_was_answered():
    kept = stored_summary()
    utilisation = [row["kernel_utilisation"] for row in kept["intervals"]]
    assert kept["length_s"] >= 1800
    assert (min(utilisation) < 0.05, max(utilisation) > 0.97) == (True, True)
    assert kept["failed"] == 0


def test_it_says_what_it_was_measured_on_and_names_no_machine():
    kept = stored_summary()
    assert kept["machine"]["cpus"] >= 2
    assert kept["machine"]["scheduler"] in {"rr", "nice"}
    assert {"kernel", "architecture", "python"} <= set(kept["machine"])
    assert "/" not in (FOLDER / "summary.json").read_text()
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 300_000
