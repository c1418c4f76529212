"""Counters by interval: nothing is lost, what is late is counted late, and samples are Poisson."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queues.serve import serve
from sim.services.counters import count, sample
from sim.services.sharing import share

EDGES = np.array([0.0, 10.0, 20.0, 1e4])
JOBS = st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(0.01, 20.0)), min_size=1, max_size=20)


def _counted(arrival_s, demand_s, rates, amounts):
    shared = share(arrival_s, demand_s, rates, EDGES)
    interval = np.searchsorted(EDGES, arrival_s, "right") - 1
    return count(shared, demand_s, interval, amounts)


@settings(max_examples=60, deadline=None)
@given(JOBS)
def test_counts_over_all_intervals_are_those_of_all_jobs(jobs):
    arrival_s, demand_s = np.array(sorted(jobs)).T.copy()
    amounts = np.column_stack((np.arange(len(jobs)) + 1.0, 1e9 * demand_s))
    counted = _counted(arrival_s, demand_s, np.array([1.0, 1.7]), amounts)
    np.testing.assert_allclose(counted.sum(axis=0), amounts.sum(axis=0), rtol=1e-9)


def test_a_job_is_counted_by_what_it_attained_as_a_slow_twin_finds_by_cutting_it_up():
    """The twin serves the same load cut off at each edge: what is left undone then was not counted before."""
    rng = np.random.default_rng(3)
    arrival_s, demand_s = np.sort(rng.random(40) * 25), rng.exponential(0.9, 40)
    counted = _counted(arrival_s, demand_s, np.array([1.0, 1.7]), np.column_stack((demand_s,)))
    for edge_s, done_s in zip(EDGES[1:3], np.cumsum(counted[:2]), strict=True):
        early = arrival_s < edge_s
        # A flood at the edge brings everybody else's progress to a halt.
        flood = 20_000
        arrivals = np.concatenate((arrival_s[early], np.full(flood, edge_s)))
        demands = np.concatenate((demand_s[early], np.full(flood, 1e3)))
        departure_s = serve("ps", arrivals, demands, 2, rates=[1.0, 1.7]).departure_s[: early.sum()]
        left_s = np.maximum(departure_s - edge_s, 0.0) * 1.7 / flood
        assert demand_s[early].sum() - left_s.sum() == pytest.approx(done_s, rel=3e-3)


def test_a_saturated_machine_counts_later_than_requests_come():
    arrival_s, demand_s = np.linspace(0, 9.9, 20), np.full(20, 1.0)
    counted = _counted(arrival_s, demand_s, np.array([1.0]), np.full((20, 1), 100.0))
    np.testing.assert_allclose(counted.ravel(), [1000.0, 1000.0, 0.0], atol=1e-6)


def test_a_job_without_demand_is_counted_where_it_arrives():
    counted = _counted(np.array([12.0]), np.zeros(1), np.array([1.0]), np.array([[7.0]]))
    np.testing.assert_array_equal(counted.ravel(), [0.0, 7.0, 0.0])


def test_what_is_done_after_the_last_interval_is_not_counted():
    demand_s, edges = np.array([4.0]), np.array([0.0, 1.0, 2.0])
    shared = share(np.array([0.0]), demand_s, np.array([1.0]), edges)
    np.testing.assert_allclose(count(shared, demand_s, np.array([0]), np.array([[8.0]])).ravel(), [2.0, 2.0])


@pytest.mark.statistical
def test_samples_are_unbiased_with_the_variance_of_so_few():
    """False alarms below 1e-3: 20,000 draws leave 0.7% of the standard deviation and 1% of the variance."""
    events, truth = 24_000, 2.4e6
    drawn = sample(np.full(20_000, truth), events, np.random.default_rng(2))
    assert drawn.mean() == pytest.approx(truth, rel=3.3 * 0.1 / np.sqrt(20_000))
    assert drawn.var() == pytest.approx(events * truth, rel=0.04)
    assert (drawn % events == 0).all()
