"""Stamps that a log without pairs has lost: none of a whole log, and near where they were."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.occupancy.curve import curve
from analysis.occupancy.logs.lost import lost_arrivals, lost_departures
from models.queues.serve import serve

TIMES = st.lists(st.integers(0, 40), min_size=1, max_size=30)


def served_under(policy, servers, load, n=4_000, seed=0):
    rng = np.random.default_rng(seed)
    arrival = rng.exponential(1.0 / (load * servers), n).cumsum()
    return arrival, np.sort(serve(policy, arrival, rng.exponential(1.0, n), servers).departure_s)


@pytest.mark.parametrize("policy", ["fcfs", "ps", "lcfs"])
@pytest.mark.parametrize("servers", [1, 4])
@pytest.mark.parametrize("load", [0.5, 0.95, 1.1])
def test_nothing_is_lost_from_a_whole_log(policy, servers, load):
    arrival, departure = served_under(policy, servers, load)
    assert len(lost_departures(arrival, departure, servers)) == 0
    assert len(lost_arrivals(arrival, departure, servers)) == 0


def test_an_overload_at_the_end_is_not_a_loss():
    arrival, departure = served_under("fcfs", 1, 0.5)
    rush = arrival[-1] + np.arange(1, 301) * 0.2
    made = lost_departures(np.r_[arrival, rush], departure[departure < rush[-1]], 1)
    assert len(made) <= 3


def test_one_lost_departure_is_found_near_where_it_was():
    arrival, departure = served_under("fcfs", 1, 0.5)
    (found,) = lost_departures(arrival, np.delete(departure, 2_000), 1)
    assert found == pytest.approx(departure[2_000], abs=20.0)


@given(TIMES, TIMES, st.integers(1, 3))
def test_after_repair_no_more_have_left_than_had_come(arrivals, departures, servers):
    came, left = np.array(arrivals, dtype=float), np.array(departures, dtype=float)
    came = np.r_[came, lost_arrivals(came, left, servers)]
    assert curve(came, left).jobs.min(initial=0) >= 0
    left = np.r_[left, lost_departures(came, left, servers)]
    assert curve(came, left).jobs.min(initial=0) >= 0


def test_departures_alone_are_of_requests_that_were_there_from_the_start():
    assert lost_arrivals(np.empty(0), np.array([1.0, 2.0]), 1).tolist() == [1.0, 1.0]


def test_more_departures_than_arrivals_are_refused():
    with pytest.raises(ValueError, match="more jobs have left than had arrived"):
        lost_departures(np.array([1.0]), np.array([2.0, 3.0]), 1)
