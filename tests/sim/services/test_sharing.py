"""Processor sharing with its record by interval, against the general queue and the observer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queues.serve import serve
from sim.queues.observe import present, utilisation
from sim.services.sharing import share

TIMES = st.floats(0.0, 20.0, allow_nan=False).map(lambda x: round(x, 3))
JOBS = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=30)
RATES = st.sampled_from([[1.0], [1.0, 2.0], [1.0, 1.5, 1.9], [1.0, 2.0, 2.5, 2.9, 3.2, 3.4]])
EDGES = np.array([0.0, 3.0, 5.5, 20.0])


def _sorted(jobs):
    arrival_s, demand_s = np.array(sorted(jobs)).T
    return np.ascontiguousarray(arrival_s), np.ascontiguousarray(demand_s)


@settings(max_examples=60, deadline=None)
@given(JOBS, RATES)
def test_departures_are_those_of_the_general_queue(jobs, rates):
    arrival_s, demand_s = _sorted(jobs)
    shared = share(arrival_s, demand_s, np.array(rates), EDGES)
    expected = serve("ps", arrival_s, demand_s, len(rates), rates=rates).departure_s
    # Jobs of equal attained demand may leave in either order at the same moment, so rows agree too.
    np.testing.assert_allclose(shared.departure_s, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(JOBS, RATES)
def test_busy_time_is_what_an_observer_counts(jobs, rates):
    arrival_s, demand_s = _sorted(jobs)
    shared = share(arrival_s, demand_s, np.array(rates), np.arange(0.0, 31.0, 5.0))
    seen = utilisation(present(arrival_s, shared.departure_s, len(rates)), len(rates), 5.0, 30.0)["utilisation"]
    np.testing.assert_allclose(shared.busy_s / 5.0 / len(rates), seen, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(JOBS, RATES)
def test_work_by_interval_adds_up_to_the_demands(jobs, rates):
    arrival_s, demand_s = _sorted(jobs)
    shared = share(arrival_s, demand_s, np.array(rates), np.array([0.0, 7.0, 1e4]))
    assert shared.work_s.sum() == pytest.approx(demand_s.sum(), rel=1e-9, abs=1e-9)
    assert shared.busy_s.sum() >= shared.work_s.sum() - 1e-9


def test_everybody_leaves_even_after_the_last_edge():
    shared = share(np.array([0.0, 19.0]), np.array([1.0, 50.0]), np.array([1.0]), EDGES)
    np.testing.assert_allclose(shared.departure_s, [1.0, 69.0])
    np.testing.assert_allclose(shared.busy_s, [1.0, 0.0, 1.0])


def test_no_jobs_and_jobs_of_no_demand_take_no_time():
    none = share(np.empty(0), np.empty(0), np.array([1.0]), EDGES)
    assert none.busy_s.sum() == 0
    shared = share(np.array([1.0, 1.0, 3.0]), np.zeros(3), np.array([1.0]), EDGES)
    np.testing.assert_array_equal(shared.departure_s, [1.0, 1.0, 3.0])
    assert shared.busy_s.sum() == 0
