"""The corpus that guards are judged on, on a small fleet."""

import json

import numpy as np
import pandas as pd
import pytest

from scenarios.effects.scorecard import guard_corpus
from scenarios.effects.scorecard.guard_corpus import corpus, summary
from scenarios.effects.scorecard.planted_faults import FAULTS
from scenarios.effects.scorecard.planted_fleets import (
    Careless,
    PlantedExperiment,
    Potential,
    holds,
    plain,
    record,
    simulated,
)


@pytest.fixture
def small(monkeypatch):
    few = {name: FAULTS[name] for name in ("looks", "doubled rows")}
    monkeypatch.setattr(guard_corpus, "FAULTS", few)
    monkeypatch.setattr(guard_corpus, "HEALTHY", {"half": guard_corpus.HEALTHY["half"]})
    monkeypatch.setattr(guard_corpus, "MACHINES", 60)
    monkeypatch.setattr(guard_corpus, "ANSWERS", 2)
    monkeypatch.setattr(guard_corpus, "AUDITS", 1)


@pytest.mark.usefixtures("small")
def test_what_was_judged_is_kept_and_read_again(tmp_path, monkeypatch):
    made = corpus(tmp_path, lambda _what, _share: None, fleets=1)
    assert (made["faults"], made["healthy_cases"], made["missed"]) == (2, 1, 0)
    assert json.loads(json.dumps(made)) == made
    monkeypatch.setattr(guard_corpus, "simulated", None)
    assert corpus(tmp_path, lambda _what, _share: None, fleets=1) == made


def part(strength, covered, alarms, error=0.0):
    made = {"covered": covered, "answers": 10, "errors": [error], "half_widths": [1.0], "alarms": alarms}
    return {"fault": "looks", "strength": strength} | made


def test_missed_and_harmless_are_about_strong_faults_and_alarms_about_weak_ones_without_harm():
    fleet = {"planted": [part("strong", 9, [["peeking"], []]), part("weak", 10, [["churn"], []])], "healthy": []}
    told = summary([fleet])
    assert (told["missed"], told["harmless"], told["weak_alarms"]) == (1, 1, 0.5)
    harmful = {"planted": [part("strong", 10, [["peeking"]], error=1.5), part("weak", 5, [["churn"]])], "healthy": []}
    told = summary([harmful])
    assert (told["missed"], told["harmless"], told["weak_alarms"]) == (0, 0, 0.0)


def test_a_fleet_with_known_courses_tells_its_truth_and_experiments_take_from_both():
    fleet = simulated(3, machines=40)
    rows = fleet.rows[fleet.study]
    weight = fleet.jobs.set_index("job")["quota"]
    total = {name: (rows.groupby("job")[name].mean() * weight).sum() for name in ("off", "on")}
    assert fleet.truth() == pytest.approx(total["on"] / total["off"] - 1)
    seen = record(fleet, fleet.machines[:5])
    treated = (seen["treated"] == 1).to_numpy()
    assert set(seen.loc[treated, "machine"]) == {*fleet.machines[:5].tolist()}
    assert (seen["value"][treated] == fleet.rows["on"][treated]).all()
    assert (seen["value"][~treated] == fleet.rows["off"][~treated]).all()
    assert isinstance(fleet.scaled(np.full(len(fleet.rows), 2.0)), Potential)


def test_careless_estimates_differ_in_what_they_take_for_granted():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"machine": np.repeat(np.arange(40), 10), "period": 1, "job": "a", "weight": 1.0})
    frame["value"] = 1 + rng.normal(0, 0.1, 40)[frame["machine"]] + rng.normal(0, 0.01, 400)
    frame["treated"] = frame["machine"] % 2
    honest = plain(frame, None, Careless())
    assert plain(frame, None, Careless(clusters="instance"))[1] < 0.5 * honest[1]
    corrected = plain(frame, None, Careless(corrected=True))[1]
    assert corrected == pytest.approx(honest[1] * np.sqrt(0.5))
    assert plain(frame, None, Careless(normal=True))[1] < honest[1]
    many = list(PlantedExperiment(frame, careless=Careless(looks=5)).answers())
    assert len(many) == 5
    assert many[-1] == pytest.approx(honest)
    assert many[0][1] > 1.5 * many[-1][1]


@pytest.mark.statistical
def test_looks_are_false_if_any_of_their_intervals_excludes_the_truth():
    """50 tests without an effect under a fixed seed; the last look excludes it in 5%: 8 or more with chance 0.3%.

    Some of ten looks exclude it in 19%: beyond 3 to 17 with chance 0.4%.
    """
    rng = np.random.default_rng(2)
    rows = {"machine": range(200), "period": 1, "job": "a", "weight": 1.0, "treated": [0, 1] * 100}
    made = [pd.DataFrame(rows | {"value": 1 + 0.1 * rng.standard_normal(200)}) for _ in range(50)]
    looked = [list(PlantedExperiment(frame, careless=Careless(looks=10)).answers()) for frame in made]
    once, ever = (sum(holds(answers[part], 0.0) for answers in looked) for part in (slice(-1, None), slice(None)))
    assert once >= 43
    assert 33 <= ever <= 47
    assert ever < once
