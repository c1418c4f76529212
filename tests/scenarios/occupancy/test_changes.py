"""What other servers would change: rows of bounds and replays beside what such servers really do."""

import math

import numpy as np
import pytest

from analysis.occupancy.curve import curve
from analysis.occupancy.logs.hygiene import Cleaned
from models.queues.serve import serve
from scenarios.occupancy.changes import capacity, speeds
from scenarios.occupancy.policy import Served


@pytest.fixture(scope="module")
def load():
    rng = np.random.default_rng(12)
    return rng.exponential(0.9, 800).cumsum(), rng.exponential(1.5, 800), rng.integers(0, 3, 800)


def logged(load, policy):
    arrival, demand, priority = load
    return Cleaned(arrival, serve(policy, arrival, demand, 2, priority=priority).departure_s, (), 0, True, priority)


def queueing(load, policy, servers, speed=1.0):
    arrival, demand, priority = load
    served = serve(policy, arrival, demand / speed, servers, priority=priority)
    return float((served.departure_s - arrival - demand / speed).sum())


@pytest.mark.parametrize("policy", ["fcfs", "ps", "priority"])
def test_faster_servers_do_what_the_replay_says_within_the_bounds(load, policy):
    log = logged(load, policy)
    for row in speeds(log, curve(log.arrival_s, log.departure_s), Served(2, policy), [1.0, 1.5, 2.0]):
        true_s = queueing(load, policy, 2, row["speed"])
        assert row["replay_s"] == pytest.approx(true_s, rel=1e-6)
        assert row["replay_low"] <= row["replay_s"] <= row["replay_high"]
        assert row["queueing_s_low"] - 1e-6 <= true_s <= row["queueing_s_high"] + 1e-6


def test_slower_servers_have_a_replay_and_no_bounds(load):
    log = logged(load, "fcfs")
    row = speeds(log, curve(log.arrival_s, log.departure_s), Served(2, "fcfs"), [0.9])[0]
    assert math.isnan(row["queueing_s_low"])
    assert "not slower" in row["note"]
    assert row["replay_s"] == pytest.approx(queueing(load, "fcfs", 2, 0.9), rel=1e-6)


def test_first_come_first_served_is_known_to_divide_queueing_by_the_speed(load):
    log = logged(load, "fcfs")
    seen = curve(log.arrival_s, log.departure_s)
    known, unknown = (speeds(log, seen, Served(2, policy), [1.5])[0] for policy in ("fcfs", None))
    assert known["queueing_s_high"] <= queueing(load, "fcfs", 2) / 1.5 + 1e-6 < unknown["queueing_s_high"]
    assert math.isnan(unknown["replay_s"])


def test_other_numbers_of_servers_do_what_the_replay_says_under_priorities(load):
    log = logged(load, "priority")
    rows = capacity(log, curve(log.arrival_s, log.departure_s), Served(2, "priority"), [1, 3])
    for row in rows:
        true_s = queueing(load, "priority", row["servers"])
        assert row["replay_s"] == pytest.approx(true_s, rel=1e-6)
        assert row["queueing_s_low"] <= true_s <= row["queueing_s_high"]


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf])
def test_a_speed_that_is_none_is_refused(load, factor):
    log = logged(load, "ps")
    with pytest.raises(ValueError, match="speed"):
        speeds(log, curve(log.arrival_s, log.departure_s), Served(2), [factor])


def test_never_more_work_makes_the_interval_sharper_under_srpt(load):
    log = logged(load, "srpt")
    seen = curve(log.arrival_s, log.departure_s)
    known, unknown = (capacity(log, seen, Served(2, policy), [3])[0] for policy in ("srpt", None))
    assert queueing(load, "srpt", 3) <= known["queueing_s_high"] < unknown["queueing_s_high"]
    assert math.isnan(unknown["b3"])


def test_a_policy_that_is_not_replayed_still_says_what_is_proved(load):
    log = logged(load, "fcfs")
    seen = curve(log.arrival_s, log.departure_s)
    row = capacity(log, seen, Served(2, "fcfs", replayed=False), [3])[0]
    assert math.isnan(row["replay_s"])
    assert math.isfinite(row["b3"])


def test_bounds_that_exclude_nothing_say_so():
    """Six at once on two servers: a third might have helped, but nobody knows whom; two of two never had a queue."""
    arrival, departure = np.zeros(6), np.array([1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    crowd = Cleaned(arrival, departure, (), 0, paired=True)
    more, same, plenty = capacity(crowd, curve(arrival, departure), Served(2), [3, 2, 6])
    assert (more["bounds_say_nothing"], more["change_says_nothing"]) == (False, False)
    assert (same["bounds_say_nothing"], same["change_says_nothing"]) == (False, False)
    assert (plenty["bounds_say_nothing"], plenty["change_says_nothing"]) == (False, False)
    alone = Cleaned(10 * np.arange(99.0), 10 * np.arange(99.0) + 1, (), 0, paired=True)
    fewer, more = capacity(alone, curve(alone.arrival_s, alone.departure_s), Served(2), [1, 3])
    assert fewer["change_says_nothing"]
    assert (more["bounds_say_nothing"], more["change_says_nothing"]) == (False, False)


def test_an_interval_up_to_a_hundred_response_times_says_nothing_of_fewer_servers():
    rng = np.random.default_rng(3)
    arrival = rng.exponential(0.25, 4_000).cumsum()
    departure = arrival + rng.uniform(0.5, 1.0, 4_000)
    log = Cleaned(arrival, departure, (), 0, paired=True)
    seen = curve(arrival, departure)
    row = capacity(log, seen, Served(40), [int(seen.jobs.max())])[0]
    assert row["queueing_s_low"] == 0.0
    assert row["queueing_s_high"] > 100 * (departure - arrival).sum()
    assert (row["bounds_say_nothing"], row["change_says_nothing"]) == (True, True)
