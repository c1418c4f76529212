"""Predicted neighbours, tried: figures are those of the pairs, and pairs are put together in simulation."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import binomtest

from analysis.profiling.questions.corunners import CoRunnerSettings, JobVisits
from scenarios.files.faults import FaultsError
from scenarios.profiling import affinity_trial, beside_trial
from scenarios.profiling.beside_trial import TriedPair, TriedPairs, blocks, tried_together
from scenarios.views.section import Section
from scenarios.views.terminal import show
from sim.profiling.moving import Snapshot
from tests.helpers.profiled_fleets import small_fleet

PAIR = TriedPair("a", "b", 0, 0.02, 0.01, 0.03, 0.01, 0.024, 0.001, 9)
TRIAL = TriedPairs(
    4.0,
    (
        PAIR,
        replace(PAIR, beside="c", predicted=0.01, low=-0.01, high=0.03, realised=0.012),
        replace(PAIR, beside="c", predicted=-0.01, low=-0.03, high=-0.005, realised=0.0005, visits_dropped=3),
        replace(PAIR, beside="d", predicted=-0.02, low=-0.03, high=-0.01, realised=0.006),
    ),
)


def test_only_effects_that_simulation_tells_from_zero_are_judged_by_their_sign():
    assert [pair.clear for pair in TRIAL.pairs] == [True, True, False, True]
    assert [pair.right for pair in TRIAL.clear] == [True, True, False]
    assert TRIAL.right_share == pytest.approx(2 / 3)
    assert TRIAL.right_share_interval == pytest.approx(tuple(binomtest(2, 3).proportion_ci(method="wilson")), abs=1e-4)


def test_the_line_is_that_of_least_squares():
    x, y = (np.array([getattr(pair, name) for pair in TRIAL.pairs]) for name in ("predicted", "realised"))
    slope, r_squared = TRIAL.line()
    assert slope == pytest.approx(np.polyfit(x, y, 1)[0])
    assert r_squared == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)
    assert TRIAL.covered_share == 0.5
    assert np.isnan(TRIAL.line(pressure_alone=True)).all()


def test_people_and_programs_are_shown_how_many_pairs_count():
    text = io.StringIO()
    show(Section("", blocks(TRIAL)), Console(file=text, width=200))
    assert "4 pairs that the prediction had not seen together (3 that never were, 1 whose" in text.getvalue()
    assert "right sign: 66.7% (20.8% to 93.9%) of 3 pairs" in text.getvalue()
    payload = json.loads(json.dumps(TRIAL.payload()))
    assert (payload["clear"], payload["pairs"][3]["right"]) == (3, False)
    (nothing,) = blocks(TriedPairs(4.0, ()))
    assert "nothing to put together" in nothing.text


def test_a_folder_that_was_not_simulated_cannot_be_judged(tmp_path):
    with pytest.raises(FaultsError, match="cannot be simulated"):
        tried_together(tmp_path, None, CoRunnerSettings(), 2)


@pytest.fixture(scope="module")
def visits():
    """Visits to the machines of a small fleet: who runs there, with made-up counters."""
    snapshot = Snapshot.of(small_fleet())
    visit = np.tile(snapshot.machine, 3) + 16 * np.repeat(np.arange(3), snapshot.machine.size)
    job = np.tile(snapshot.job, 3)
    of, row = np.unique(visit * 100 + job, return_inverse=True)
    rng = np.random.default_rng(1)
    misses = rng.lognormal(0, 0.5, len(snapshot.jobs))[of % 100]
    return JobVisits(
        names=snapshot.jobs,
        platforms=("p",),
        application=of % 100,
        visit=of // 100,
        machine=of // 100 % 16,
        platform=np.zeros(of.size, np.int64),
        instances=np.bincount(row).astype(np.float64),
        busy_threads=np.bincount(row).astype(np.float64),
        events=np.array([rng.lognormal(0, 0.1, of.size), np.ones(of.size), misses * np.bincount(row)]),
        samples=np.full((3, of.size), 400.0),
    )


def test_pairs_are_put_together_that_the_prediction_had_not_seen(monkeypatch, tmp_path, visits):
    monkeypatch.setattr(affinity_trial, "world_of", lambda _run: small_fleet())
    monkeypatch.setattr(beside_trial, "_MOST_DRAWS", 1)
    said = []
    settings = CoRunnerSettings(4.0, 3, 3)
    trial = tried_together(tmp_path, visits, settings, 2, lambda *told: said.append(told))
    assert 1 <= len(trial.pairs) <= 2
    assert said[-1] == ("simulating", 1.0)
    index = {name: i for i, name in enumerate(visits.names)}
    for pair in trial.pairs:
        assert pair.visits_dropped == visits.shared(index[pair.application], index[pair.beside]).size
        assert np.isfinite([pair.realised, pair.realised_se]).all()
        assert pair.low <= pair.predicted <= pair.high
