"""How often planted regressions are named."""

import json

import pandas as pd
import pytest

from models.profiles import Incident
from scenarios import regressions as experiment
from scenarios.regressions import judged, regressions, summary
from sim.profiling.setting import example


def quietly(_what, _share):
    pass


def never(_seed, **_asked):
    raise AssertionError("it is kept")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(experiment, "world_of", lambda _seed: example())


@pytest.mark.usefixtures("small")
def test_what_was_judged_is_kept_and_read_again(tmp_path, monkeypatch):
    made = regressions(1, 2, tmp_path, quietly)
    assert [one["cause"] for one in made["trials"]] == ["revision"]
    assert made["causes"][0]["pairs"] == 1
    assert json.loads(json.dumps(made)) == made
    monkeypatch.setattr(experiment, "judged", never)
    assert regressions(1, 2, tmp_path, quietly) == made


@pytest.mark.usefixtures("small")
def test_a_pair_tells_what_was_planted_and_what_was_said():
    made = judged(0, {0: (1, 1)})
    one = made["planted"][0]
    assert 1.6 <= one["factor"] <= 3.0
    assert one["share"] >= 0.001
    assert one["outcome"] in {"right", "otherwise", "silent"}
    assert made["healthy"][0]["collector"] == 2
    assert judged(0, {0: (1, 1)}) == made


@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        (("f", "revision", "r2", "a"), "right"),
        (("g", "revision", "r2", "a"), "otherwise"),
        (("f", "compiler", "c2", ""), "otherwise"),
        (("f", "revision", "r2", "b"), "otherwise"),
        (None, "silent"),
    ],
)
def test_right_is_the_function_and_the_cause_of_the_clearest_alarm(monkeypatch, first, outcome):
    names = ["function", "dimension", "value", "application"]
    rows = [] if first is None else [first, ("h", "platform", "p", "")]
    found = pd.DataFrame(rows, columns=names)
    incident = Incident("f", 2.0, application="a", revision="r2")

    class Seen:
        setting, half_s = None, 0.0

        @classmethod
        def of(cls, *_asked):
            return cls()

        def seen(self, _seed):
            return None

        def pair(self, _seed, _incidents=()):
            return None, None

    monkeypatch.setattr(experiment, "Fleet", Seen)
    monkeypatch.setattr(experiment, "world_of", lambda _seed: None)
    monkeypatch.setattr(experiment, "worth_finding", lambda *_asked: pd.DataFrame({"cause": ["revision"]}))
    monkeypatch.setattr(experiment, "chosen", lambda *_asked: (incident, 0.01))
    monkeypatch.setattr(experiment, "alarms", lambda *_asked, **_how: found)
    made = judged(0, {0: (1, 1)})
    assert made["planted"][0]["outcome"] == outcome
    others = {"g", "h"} & set(found["function"])
    assert made["planted"][0]["beside"] == len(others)
    assert len(made["healthy"][0]["alarms"]) == len(rows)


def test_shares_errors_and_causes_add_up():
    outcomes = [("revision", "right"), ("compiler", "right"), ("platform", "silent"), ("datacentre", "otherwise")]
    planted = [{"cause": cause, "outcome": outcome, "beside": 1} for cause, outcome in outcomes]
    made = summary(planted, [{"alarms": []}, {"alarms": [{"function": "f"}]}])
    assert made["named"] == 0.5
    assert made["named_error"] == pytest.approx(0.25)
    assert made["quiet"] == 0.5
    assert made["alarms"] == [{"function": "f"}]
    for one, (cause, outcome) in zip(made["causes"], outcomes, strict=True):
        assert (one["cause"], one["pairs"], one[outcome], one["beside"]) == (cause, 1, 1, 1)
        assert one["right"] + one["otherwise"] + one["silent"] == 1


def test_there_must_be_something_to_judge(tmp_path):
    with pytest.raises(ValueError, match="at least one planted and one healthy"):
        regressions(0, 1, tmp_path, quietly)
