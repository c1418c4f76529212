"""How often planted regressions are named."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from models.profiling.world import Incident
from models.randomness import stream
from scenarios.papers.catalogue import ROWS
from scenarios.papers.sources import Sources
from scenarios.profiling import regressions as experiment
from scenarios.profiling.regressions import HealthyPair, PlantedPair, judged, regressions, summary
from tests.helpers.profiled_fleets import small_fleet
from tests.helpers.reproduce_worlds import failing


def quietly(_what, _share):
    pass


def never(_seed, **_asked):
    raise AssertionError("it is kept")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(experiment, "world_of", lambda _seed: small_fleet())


def row_of(made):
    """Return what the row about regressions measures if they came out so."""
    sources = Sources(None, quietly, trials={"regressions": lambda **_: asdict(made)})
    return ROWS["world/regressions"].outcome(sources).measured


@pytest.mark.usefixtures("small")
def test_what_was_judged_is_kept_and_read_again(tmp_path, monkeypatch):
    made = regressions(1, 2, tmp_path, quietly)
    assert [pair.cause for pair in made.trials] == ["revision"]
    assert made.causes[0].pairs == 1
    assert json.loads(json.dumps(asdict(made))) == asdict(made)
    monkeypatch.setattr(experiment, "judged", never)
    assert regressions(1, 2, tmp_path, quietly) == made
    assert failing("world/regressions", row_of(made)) == ["named"], "a fleet of 16 machines has too few samples"


@pytest.mark.usefixtures("small")
def test_a_pair_tells_what_was_planted_and_what_was_said():
    made = judged(0, {0: (1, 1)})
    one = made["planted"][0]
    assert 1.6 <= one["factor"] <= 3.0
    assert one["share"] >= 0.001
    assert one["outcome"] in {"right", "otherwise", "silent"}
    assert made["healthy"][0]["collector"] == 1
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

        def spent(self):
            return None

        def pair(self, _seed, _incidents=()):
            return None, None

    monkeypatch.setattr(experiment, "PlantedFleet", Seen)
    monkeypatch.setattr(experiment, "world_of", lambda _seed: None)
    monkeypatch.setattr(experiment, "worth_finding", lambda *_asked: pd.DataFrame({"cause": ["revision"]}))
    monkeypatch.setattr(experiment, "chosen", lambda *_asked: (incident, 0.01))
    monkeypatch.setattr(experiment, "alarms", lambda *_asked, **_how: found)
    made = judged(0, {0: (1, 1)})
    assert made["planted"][0]["outcome"] == outcome
    others = {"g", "h"} & set(found["function"])
    assert made["planted"][0]["beside"] == len(others)
    assert len(made["healthy"][0]["alarms"]) == len(rows)


def pairs_of(outcomes, fleets):
    """Pairs of each cause in turn, fleet by fleet."""
    causes = ("revision", "compiler", "platform", "datacentre")
    return [
        PlantedPair(fleet, i, causes[i % 4], "v", "a", "f", 2.0, 0.01, str(outcome), "", beside=1)
        for i, (outcome, fleet) in enumerate(zip(outcomes, fleets, strict=True))
    ]


def test_shares_and_causes_add_up():
    planted = pairs_of(["right", "right", "silent", "otherwise"], [0, 0, 1, 1])
    made = summary(planted, [HealthyPair(0, 0, []), HealthyPair(0, 1, [{"function": "f"}])])
    assert (made.named, made.named_error) == (0.5, 0.5)
    assert made.quiet == 0.5
    assert made.quiet_error is None
    assert failing("world/regressions", row_of(made)) == ["named", "quiet"]
    assert made.alarms == [{"function": "f"}]
    assert [part.cause for part in made.causes] == [pair.cause for pair in planted]
    for part, pair in zip(made.causes, planted, strict=True):
        assert (part.pairs, part.beside) == (1, 1)
        assert getattr(part, pair.outcome) == 1
        assert part.right + part.otherwise + part.silent == 1


@pytest.mark.statistical
def test_the_standard_error_is_that_of_fleets():
    """Fleets of 10 with chances of their own: over 800 sets of 10 fleets, errors' root mean square is the spread of the
    share within 10% (3 standard errors); the binomial one would be 40% too small."""
    rng = stream(1, "fleets")
    shares, errors = [], []
    for _ in range(800):
        right = rng.random(100) < np.repeat(rng.beta(2.0, 1.0, 10), 10)
        made = summary(pairs_of(np.where(right, "right", "silent"), np.repeat(range(10), 10)), [HealthyPair(0, 0, [])])
        shares.append(made.named)
        errors.append(made.named_error)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(shares), rel=0.1)


def test_there_must_be_something_to_judge(tmp_path):
    with pytest.raises(ValueError, match="at least one planted and one healthy"):
        regressions(0, 1, tmp_path, quietly)
