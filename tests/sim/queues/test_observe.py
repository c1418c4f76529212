"""Counters see what a loop over every look sees, and clients see requests longer by what the network takes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from models.queues.world import Observation
from sim.queues.observe import Busy, delays, present, utilisation

moments = st.integers(0, 9 * 64).map(lambda parts: parts / 64)  # halves of halves, which no sum rounds
stays = st.lists(st.tuples(moments, moments).map(sorted), max_size=15)


def working(jobs, servers, at_s):
    """Servers that work at an instant: jobs that have come and not gone, at most so many."""
    return min(servers, sum(arrival <= at_s < departure for arrival, departure in jobs))


def arrays(jobs):
    return np.array(jobs, np.float64).reshape(-1, 2).T


@given(stays, st.integers(1, 3))
def test_as_many_servers_work_as_there_are_jobs_but_no_more_than_there_are(jobs, servers):
    busy = present(*arrays(jobs), servers)
    for at_s in np.linspace(0.0, 9.0, 31):
        last = np.searchsorted(busy.time_s, at_s, "right") - 1
        assert (busy.servers[last] if last >= 0 else 0) == working(jobs, servers, at_s)


@given(stays, st.integers(1, 3), st.sampled_from([0.25, 0.5, 0.75, 4.0]), st.sampled_from([2.0, 3.0, 4.5]))
def test_a_counter_sees_the_mean_of_its_looks(jobs, servers, tick_s, interval_s):
    seen = utilisation(present(*arrays(jobs), servers), servers, interval_s, 9.0, tick_s)
    looks = tick_s * np.arange(np.ceil(14.0 / tick_s))
    for start_s, end_s, share in zip(*seen.values(), strict=True):
        shares = [working(jobs, servers, at_s) / servers for at_s in looks[(looks >= start_s) & (looks < end_s)]]
        assert share == pytest.approx(np.mean(shares)) if shares else np.isnan(share)


@given(stays, st.integers(1, 3))
def test_the_exact_share_is_the_working_time_of_all_intervals(jobs, servers):
    exact = utilisation(present(*arrays(jobs), servers), servers, 1.5, 9.0)
    edges = sorted({0.0, 9.0, *(each for pair in jobs for each in pair)})
    worked = sum(working(jobs, servers, (left + right) / 2) * (right - left) for left, right in pairwise(edges))
    assert exact["utilisation"].sum() * 1.5 * servers == pytest.approx(worked, abs=1e-9)


def test_intervals_are_whole_and_the_last_one_reaches_the_end():
    nobody = Busy(np.empty(0), np.empty(0, np.int64))
    seen = utilisation(nobody, 2, 60.0, 150.0, 0.01)
    np.testing.assert_array_equal(seen["start_s"], [0.0, 60.0, 120.0])
    np.testing.assert_array_equal(seen["end_s"], [60.0, 120.0, 180.0])
    np.testing.assert_array_equal(seen["utilisation"], 0.0)


def test_a_counter_misses_what_runs_between_its_looks():
    busy = present(np.arange(10) + 0.25, np.arange(10) + 0.75, 1)
    assert utilisation(busy, 1, 10.0, 10.0)["utilisation"][0] == 0.5
    assert utilisation(busy, 1, 10.0, 10.0, tick_s=1.0)["utilisation"][0] == 0.0


@pytest.mark.statistical
def test_a_fine_counter_is_near_the_truth_in_every_interval():
    """False-alarm rate below 0.1%: 60 intervals of 6,000 looks, each within 6 standard errors of edges' rounding.

    Some 240 edges of jobs fall into an interval, each misplaced by less than a tick.
    """
    rng = np.random.default_rng(1)
    arrival_s = np.cumsum(rng.exponential(0.5, 8000))
    busy = present(arrival_s, arrival_s + rng.uniform(1, 2, 8000), 4)
    exact, seen = (utilisation(busy, 4, 60.0, 3600.0, tick_s)["utilisation"] for tick_s in (None, 0.01))
    assert np.abs(seen - exact).max() <= 6 * 0.01 * np.sqrt(240 / 12) / 240


@pytest.mark.parametrize("change", [{"servers": 0}, {"interval_s": 0.0}, {"end_s": float("nan")}, {"tick_s": -1.0}])
def test_lengths_must_be_above_zero(change):
    given_ = {"servers": 1, "interval_s": 1.0, "end_s": 1.0, "tick_s": 0.1, **change}
    ((name, value),) = change.items()
    with pytest.raises(ValueError, match=f"^{name}: {value} is not above 0$"):
        utilisation(Busy(np.empty(0), np.empty(0, np.int64)), **given_)


@pytest.mark.statistical
def test_each_way_takes_half_the_round_trip_and_about_half_the_overhead():
    """False-alarm rate below 0.1%: two means within 4 standard errors, two ways uncorrelated at 0.01%."""
    way = delays(Observation(rtt_s=0.2, overhead_s=2.0), 5, 10_000)
    for each_s in (way.before_s, way.after_s):
        assert each_s.min() > 0.1
        assert abs(each_s.mean() - 1.1) <= 4 * each_s.std() / 100
        assert each_s.std() == pytest.approx(0.2, rel=0.05)
    assert stats.pearsonr(way.before_s, way.after_s).pvalue > 1e-4


def test_more_requests_meet_the_same_network_first():
    few, many = (delays(Observation(rtt_s=0.2, overhead_s=2.0), 5, number) for number in (10, 1000))
    np.testing.assert_array_equal(many.before_s[:10], few.before_s)
    np.testing.assert_array_equal(many.after_s[:10], few.after_s)


def test_without_a_network_nothing_is_added():
    assert not delays(Observation(), 1, 5).before_s.any()
