"""`wsc profile stability`: what is said of each day's profile."""

import io
import json
import math

import pytest
from rich.console import Console

from analysis.profiling.database import Database
from analysis.profiling.query import Query, QueryError
from analysis.profiling.stability import entropy
from scenarios.profiling.stability import stability
from scenarios.views.terminal import dumps, show
from tests.helpers.small_profile import DAYS, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("stability"))


def test_every_day_has_entropy_distances_and_design_effect(folder):
    payload = stability([folder], by=("function",), k=None).payload()
    assert [row["day"] for row in payload["days"]] == list(range(DAYS))
    assert math.isnan(payload["days"][0]["previous"])
    assert all(row["previous"] > 0 for row in payload["days"][1:])
    assert all(row["effective_samples"] < row["samples"] for row in payload["days"])
    with Database([folder]) as database:
        asked = database.query(Query(by=("function",)))
    assert payload["whole"]["samples"] == asked["samples"].sum()
    plain = entropy(asked["value"].to_numpy(float), correction="none")
    assert payload["whole"]["entropy"] == pytest.approx(plain, abs=0.02)


def test_bits_are_said_and_larger(folder):
    nats, bits = stability([folder]), stability([folder], bits=True)
    assert (nats.unit, bits.unit) == ("nats", "bits")
    assert bits.whole.entropy == pytest.approx(nats.whole.entropy / math.log(2))


@pytest.mark.parametrize("by", ["application", "function", "machine"])
def test_text_and_json_say_the_same(folder, by):
    concluded = stability([folder], by=(by,))
    payload = concluded.payload()
    written = io.StringIO()
    show(concluded.section(), Console(width=140, file=written))
    text = written.getvalue()
    assert f"cycles by {by}" in text
    assert f"{payload['days'][2]['entropy']:.3f}" in text
    assert json.loads(dumps(payload))["days"][0]["previous"] is None
    assert "nan" not in text


def test_what_cannot_be_asked_is_said(folder):
    with pytest.raises(QueryError, match="by: days are compared, so day cannot be an entry"):
        stability([folder], by=("day",))
    with pytest.raises(QueryError, match="k: should be at least 1, got 0"):
        stability([folder], k=0)
    with pytest.raises(QueryError, match="unknown dimension"):
        stability([folder], by=("functoin",))
    with pytest.raises(QueryError, match="unknown event"):
        stability([folder], event="cycels")


def test_too_many_rows_are_refused_with_what_to_ask_for(folder, monkeypatch):
    monkeypatch.setattr("analysis.profiling.database.MOST_ROWS", 9)
    refused = (
        r"^by: function, visit by visit, takes [\d,]+ rows, more than 9; group by fewer values, such as application"
    )
    with pytest.raises(QueryError, match=refused):
        stability([folder], by=("function",))
