"""Sums of a fleet's counters, its profile's completeness, and promises kept."""

import numpy as np
import pandas as pd
import pytest

from analysis.crosscheck import counters as counted
from analysis.crosscheck import profile
from analysis.crosscheck.upgrade import advice_pays

NAMES = list(counted.COUNTED)


@pytest.fixture
def stays():
    draws = np.random.default_rng(1).uniform(1.0, 9.0, (40, 4)).round(3)
    return pd.DataFrame(draws, columns=NAMES).assign(residence=np.arange(40) // 2)


@pytest.fixture
def where():
    return pd.DataFrame({"residence": np.arange(20), "machine": np.arange(20) % 5})


def by_hand(stays, where):
    rows = [stays.loc[stays["residence"].isin(where.loc[where["machine"] == m, "residence"]), NAMES].sum()
            for m in range(5)]  # fmt: skip
    return pd.DataFrame(rows).assign(machine=range(5))


def test_sums_in_any_order_agree(stays, where):
    windows = by_hand(stays, where)
    assert counted.by_machine(stays, where, windows[::-1]).holds
    assert counted.by_epoch(stays, windows.sample(frac=1, random_state=3)).holds


@pytest.mark.parametrize("name", NAMES)
def test_any_counter_of_one_machine_that_differs_is_seen(stays, where, name):
    windows = by_hand(stays, where)
    windows.loc[3, name] *= 1 + 1e-7
    check = counted.by_machine(stays, where, windows)
    assert not check.holds
    assert check.left == pytest.approx(1 / (1 + 1e-7), abs=1e-12)
    assert not counted.by_epoch(stays, windows).holds


def test_a_machine_without_counters_differs_and_an_idle_one_does_not(stays, where):
    windows = by_hand(stays, where)
    idle = pd.DataFrame({"machine": [7], **{name: [0.0] for name in NAMES}})
    assert counted.by_machine(stays, where, pd.concat([windows, idle])).holds
    assert not counted.by_machine(stays, where[where["machine"] > 0], windows).holds


def test_energy_of_machines_is_that_of_epochs_but_for_rounding():
    parts = np.random.default_rng(2).uniform(1e5, 1e6, (30, 24))
    machines, epochs = (pd.DataFrame({"energy_j": parts.sum(axis=axis)}) for axis in (1, 0))
    assert counted.energy(machines, epochs).holds
    machines.loc[7, "energy_j"] *= 1.00001
    assert not counted.energy(machines, epochs).holds


@pytest.mark.parametrize(("realised", "holds"), [(0.04, True), (0.001, True), (-0.001, False), (0.09, True)])
def test_any_saving_of_moved_jobs_passes_and_no_loss(realised, holds):
    assert advice_pays(realised, 0.04).holds == holds


def visited(count=60, per_visit=200.0):
    """Return visits, processes and rates in which each visit should bring `per_visit` samples."""
    visits = pd.DataFrame({"visit": np.arange(count), "collection": "fleet", "platform": "p", "status": "ok"})
    visits = visits.assign(frequency_hz=2e9, start_s=60.0 * np.arange(count), machine=np.arange(count) % 7)
    processes = pd.DataFrame({"process": np.arange(count), "visit": np.arange(count), "cpu_s": 10.0})
    period = int(2e10 / per_visit)
    rates = pd.DataFrame(
        {"collection": "fleet", "platform": ["p"], "event": ["cycles"], "period": [period], "duty": [1]}
    )
    return visits, processes, rates


def test_every_busy_visit_that_answered_must_have_samples():
    visits, processes, rates = visited()
    seen = pd.DataFrame({"process": np.arange(60), "event": "cycles"})
    assert profile.visits_with_samples(visits, processes, seen, rates).holds
    lost = profile.visits_with_samples(visits, processes, seen[1:], rates)
    assert (lost.left, lost.right, lost.holds) == (59.0, 60.0, False)
    failed = visits.assign(status=["failed"] + 59 * ["ok"])
    assert profile.visits_with_samples(failed, processes, seen[1:], rates).holds
    other = seen.assign(event=["instructions"] + 59 * ["cycles"])
    assert not profile.visits_with_samples(visits, processes, other, rates).holds


def test_where_few_samples_are_expected_some_visits_may_be_without():
    visits, processes, rates = visited(per_visit=1.0)
    seen = pd.DataFrame({"process": np.arange(38), "event": "cycles"})
    check = profile.visits_with_samples(visits, processes, seen, rates)
    assert check.holds
    assert check.tolerance < 60 - 20


@pytest.mark.statistical
def test_core_seconds_agree_with_the_monitor_but_not_with_another_fleet_s():
    """An interval that misses 1 in 1,000; the seed is fixed."""
    rng = np.random.default_rng(4)
    visits, _, _ = visited(400)
    true = rng.uniform(100.0, 300.0, 400)
    visits = visits.assign(weight=50, length_s=300.0, machine=np.arange(400))
    cycles = pd.DataFrame({"visit": np.arange(400), "value": true * 2e9 * 50})
    monitor = pd.DataFrame({"busy_s": [400 * 200.0 * 50]})
    assert profile.seconds(visits, cycles, monitor).holds
    assert not profile.seconds(visits, cycles, monitor * 1.1).holds
    assert not profile.seconds(visits, cycles[cycles["visit"] % 4 > 0], monitor).holds


def test_a_machine_whose_windows_are_lost_differs(stays, where):
    windows = by_hand(stays, where)
    check = counted.by_machine(stays, where, windows[windows["machine"] > 0])
    assert not check.holds
    assert np.isinf(check.left)
