"""Contention and coherence are found where they were planted, and a queue is not taken for them."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.occupancy.logs.log import COARSE_STAMPS, Cleaned, LogFinding
from analysis.occupancy.scalability import (
    StateCounts,
    accounts,
    evidence,
    relative,
    scalability_law,
    state_counts,
)
from models.queues.serve import serve
from scenarios.occupancy.scalability import scalability
from tests.helpers.scalability_logs import log_in_the_open, log_of_users
from tests.helpers.server_findings import day


def planted_log(make, contention, coherence, seed=0):
    capacity = np.concatenate(([0.0], relative(np.arange(1.0, 201.0), contention, coherence)))
    return make(np.random.default_rng(seed), capacity, "exponential")


def cleaned(arrival, departure):
    return Cleaned(arrival, departure, (), 0, paired=True)


def words(answer):
    return " ".join(getattr(block, "text", "") for block in answer.blocks())


def test_counts_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    arrival = np.sort(rng.random(60))
    departure = arrival + rng.exponential(0.1, 60)
    counts = state_counts(arrival, departure, blocks=7)
    times = np.sort(np.concatenate((arrival, departure)))
    for n, time_s, left in zip(counts.present, counts.time_s.sum(axis=0), counts.completions.sum(axis=0), strict=True):
        middle = (times[1:] + times[:-1]) / 2
        present = np.array([np.count_nonzero((arrival <= at) & (departure > at)) for at in middle])
        assert time_s == pytest.approx(np.diff(times)[present == n].sum())
        before = [np.count_nonzero((arrival < at) & (departure >= at)) for at in departure]
        assert left == before.count(int(n))


def test_exact_rates_give_the_law_back_and_its_peak():
    present = np.arange(1.0, 31.0)
    time_s = np.full((40, 30), 20.0)
    law, _ = scalability_law(StateCounts(present, time_s, time_s * 3.0 * relative(present, 0.05, 0.004)))
    assert law.rate_per_s == pytest.approx(3.0, rel=1e-4)
    assert (law.contention.value, law.coherence.value) == pytest.approx((0.05, 0.004), rel=1e-3)
    assert law.peak == pytest.approx(np.sqrt(0.95 / 0.004), rel=1e-3)
    grid = law.rate(np.arange(1.0, 60.0))
    assert law.peak_rate_per_s >= grid.max()


@pytest.mark.statistical
@pytest.mark.parametrize("make", [log_of_users, log_in_the_open])
def test_intervals_hold_planted_values(make):
    """Fixed logs; `tests.helpers.scalability_logs` counts how often."""
    law, _ = scalability_law(state_counts(*planted_log(make, 0.08, 0.002)))
    assert law.contention.low <= 0.08 <= law.contention.high
    assert law.coherence.low <= 0.002 <= law.coherence.high


def test_requests_that_slow_each_other_down_are_told_from_a_queue():
    log = cleaned(*planted_log(log_of_users, 0.08, 0.004))
    assert "requests slow each other down, within stretches of time, too" in words(scalability(log, 16))
    assert "admit about so many at a time" in words(scalability(log, 16))


def test_a_law_of_departures_that_were_put_between_stamps_is_not_to_be_relied_on():
    log = cleaned(*planted_log(log_of_users, 0.08, 0.004))
    assert "stamps are coarse" not in words(scalability(log, 16))
    coarse = replace(log, findings=(LogFinding(COARSE_STAMPS, 1, "", ""),))
    assert "stamps are coarse" in words(scalability(coarse, 16))


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["fcfs", "ps"])
@pytest.mark.parametrize("follow", [1.0, 2.0])
def test_a_queue_is_not_said_to_slow_down(policy, follow):
    """Fixed logs; of 144 none is with any demands."""
    for servers in (1, 4):
        arrival, demand = day(np.random.default_rng(1), servers, 0.7, follow, 0)
        log = cleaned(arrival, serve(policy, arrival, demand, servers).departure_s)
        said = words(scalability(log, servers))
        assert "admit" not in said
        assert "servers are the limit" in said or "both explain" in said


def test_a_queue_of_the_right_number_is_the_better_account_of_itself():
    arrival, demand = day(np.random.default_rng(0), 4, 0.85, 1.0, 0)
    counts = state_counts(arrival, serve("ps", arrival, demand, 4).departure_s)
    assert evidence(counts, 4).whole < 0 < evidence(counts, 8).whole
    law, _ = scalability_law(counts)
    table = accounts(counts, law, 4)
    assert (table["queue_per_s"] * table["time_s"]).sum() == pytest.approx(table["completions"].sum())
    assert ((table["low"] <= table["rate_per_s"]) & (table["rate_per_s"] <= table["high"])).all()


def test_too_little_is_said_and_not_fitted():
    answer = scalability(cleaned(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 6.0])), 1)
    assert answer.law is None
    assert "states of so many present, 4 such states are needed" in words(answer)
    assert answer.payload()["law"] is None
