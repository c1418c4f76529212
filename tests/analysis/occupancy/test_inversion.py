"""Demands reconstructed from arrivals and departures are those that the departures came from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.occupancy.curve import pairs
from analysis.occupancy.inversion import demands, reconstruct
from models.queues.serve import serve

PREEMPTIVE = ["ps", "rr", "fb", "lcfs_pr", "srpt", "priority"]
VARIANTS = [(policy, servers) for policy in ("fcfs", "lcfs", "sjf", *PREEMPTIVE) for servers in (1, 2, 4)]
VARIANTS += [("random", 1)]
each_variant = pytest.mark.parametrize(("policy", "servers"), VARIANTS)
FASTER = np.array([1.0, 1.3, 1.8, 2.0])


def load(seed, n, servers, *, utilisation=0.85, capacity=None):
    """Arrivals, demands, classes and choices; the law of demand differs between seeds."""
    rng = np.random.default_rng(seed)
    demand = [rng.uniform(1, 2, n), rng.exponential(1.5, n), 0.75 * (1 - rng.random(n)) ** -0.5][seed % 3]
    gap = demand.mean() / (utilisation * (servers if capacity is None else capacity))
    return np.cumsum(rng.exponential(gap, n)), demand, rng.integers(0, 3, n), rng.random(n)


def served(policy, arrival, demand, servers, classes=None, **more):
    return serve(policy, arrival, demand, servers, priority=classes, **more).departure_s


@each_variant
@pytest.mark.parametrize("seed", range(3))
def test_the_demands_behind_2000_departures_come_back_to_a_nanosecond(policy, servers, seed):
    arrival, demand, classes, choice = load(seed, 2000, servers)
    departure = served(policy, arrival, demand, servers, classes, choice=choice)
    made = reconstruct(policy, arrival, departure, servers, priority=classes)
    np.testing.assert_allclose(made.demand_s, demand, rtol=0, atol=1e-9)
    assert made.fits.all()
    assert made.finished.all()


@each_variant
def test_servers_that_slow_each_other_down_are_reckoned_with(policy, servers):
    rates = FASTER[:servers]
    arrival, demand, classes, choice = load(7, 1000, servers, capacity=rates[-1])
    departure = served(policy, arrival, demand, servers, classes, choice=choice, rates=rates)
    made = demands(policy, arrival, departure, servers, priority=classes, rates=rates)
    np.testing.assert_allclose(made, demand, rtol=0, atol=1e-9)


@pytest.mark.parametrize("policy", ["fcfs", "lcfs", "lcfs_pr", "srpt", "priority"])
def test_one_server_that_never_reorders_needs_no_name(policy):
    arrival, demand, classes, choice = load(3, 1000, 1)
    departure = served(policy, arrival, demand, 1, classes, choice=choice)
    np.testing.assert_allclose(demands("unknown", arrival, departure, 1), demand, rtol=0, atol=1e-9)


small = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(0, 2)), min_size=1, max_size=12)


@pytest.mark.parametrize("policy", ["fcfs", "lcfs", "lcfs_pr", "ps", "fb", "srpt", "priority"])
@given(jobs=small, servers=st.integers(1, 3))
def test_ties_of_whole_seconds_do_no_harm(policy, jobs, servers):
    arrival, demand, classes = np.array(sorted(jobs), dtype=np.float64).T
    departure = served(policy, arrival, demand, servers, classes.astype(np.int64))
    made = demands(policy, arrival, departure, servers, priority=classes.astype(np.int64))
    np.testing.assert_allclose(made, demand, rtol=0, atol=1e-9)


@given(jobs=small, servers=st.integers(1, 3), quantum_s=st.sampled_from([1.0, 2.0]))
def test_slices_that_end_with_requests_and_arrivals_do_no_harm(jobs, servers, quantum_s):
    arrival, demand, _ = np.array(sorted(jobs), dtype=np.float64).T
    departure = serve("rr", arrival, demand, servers, quantum_s=quantum_s).departure_s
    made = demands("rr", arrival, departure, servers, quantum_s=quantum_s)
    np.testing.assert_allclose(made, demand, rtol=0, atol=1e-9)


@each_variant
def test_who_meets_no_more_than_the_servers_has_the_whole_stay_for_a_demand(policy, servers):
    arrival, demand, classes, _ = load(5, 300, servers, utilisation=0.5)
    stay = served("sjf", arrival, demand, servers) - arrival  # a log of another policy
    events = pairs(arrival, arrival + stay)
    calm = np.array([
        events.present[(events.time_s >= a - arrival[0]) & (events.time_s < a - arrival[0] + s)].max() <= servers
        for a, s in zip(arrival, stay, strict=True)
    ])  # fmt: skip
    assert calm.sum() > 50
    made = demands(policy, arrival, arrival + stay, servers, priority=classes)
    np.testing.assert_allclose(made[calm], stay[calm], rtol=0, atol=1e-9)


def test_rows_may_stand_in_any_order():
    arrival, demand, _, _ = load(1, 200, 2)
    departure = serve("ps", arrival, demand, 2).departure_s
    rows = np.random.default_rng(0).permutation(200)
    np.testing.assert_allclose(demands("ps", arrival[rows], departure[rows], 2), demand[rows], rtol=0, atol=1e-9)


def test_a_clock_that_counts_from_1970_costs_no_more_than_its_last_digit():
    arrival, demand, _, _ = load(1, 500, 2)
    departure = serve("ps", arrival, demand, 2).departure_s
    made = demands("ps", arrival + 1.7e9, departure + 1.7e9, 2)
    np.testing.assert_allclose(made, demand, rtol=0, atol=1e-4)


@pytest.mark.parametrize("policy", ["fcfs", "lcfs", "lcfs_pr", "ps", "rr", "fb", "priority"])
def test_a_request_that_has_not_left_has_attained_less_than_it_needs(policy):
    arrival, demand, classes, choice = load(4, 300, 2)
    departure = served(policy, arrival, demand, 2, classes, choice=choice)
    end = arrival[-1]
    departure[departure > end] = np.nan
    made = reconstruct(policy, arrival, departure, 2, priority=classes)
    assert not made.finished.all()
    np.testing.assert_array_equal(made.finished, np.isfinite(departure))
    np.testing.assert_allclose(made.demand_s[made.finished], demand[made.finished], rtol=0, atol=1e-9)
    assert (made.demand_s[~made.finished] <= demand[~made.finished] + 1e-9).all()


def test_the_wrong_policy_is_seen_where_it_was_not_serving_who_left():
    arrival, demand, _, _ = load(0, 500, 1)
    last_first = serve("lcfs_pr", arrival, demand, 1).departure_s
    assert not reconstruct("fcfs", arrival, last_first, 1).fits.all()
    assert not reconstruct("srpt", arrival, last_first, 1).fits.all()
    assert not reconstruct("sjf", arrival, last_first, 1).fits.all()
    arrival, demand, _, _ = load(0, 500, 3)
    assert not reconstruct("sjf", arrival, serve("fcfs", arrival, demand, 3).departure_s, 3).fits.all()
    assert reconstruct("ps", arrival, last_first, 1).fits.all()


def test_a_request_out_of_turn_harms_no_request_after_it():
    made = reconstruct("fcfs", np.array([0.0, 1.0, 5.0]), np.array([3.0, 2.0, 6.0]), 1)
    np.testing.assert_array_equal(made.fits, [True, False, True])
    np.testing.assert_array_equal(made.demand_s, [3.0, 0.0, 1.0])


def test_the_rate_at_departure_is_the_share_of_a_server():
    made = reconstruct("ps", np.array([0.0, 0.0, 0.0]), np.array([3.0, 5.0, 6.0]), 2)
    np.testing.assert_allclose(made.rate, [2 / 3, 1.0, 1.0])


@pytest.mark.parametrize("policy", ["ps", "fb", "rr", "srpt", "fcfs", "sjf"])
def test_no_request_has_no_demand(policy):
    assert demands(policy, np.empty(0), np.empty(0), 1).shape == (0,)


def test_a_request_that_leaves_at_once_needs_nothing():
    np.testing.assert_array_equal(demands("fcfs", np.array([0.0, 1.0]), np.array([2.0, 1.0]), 1), [2.0, 0.0])


@pytest.mark.parametrize(
    ("policy", "servers", "more", "said"),
    [
        ("random", 3, {}, "random on 3 servers cannot be known"),
        ("unknown", 2, {}, "does not say who is served"),
        ("fair", 1, {}, "policy 'fair': it must be one of fcfs"),
        ("ps", 0, {}, "0 servers"),
        ("rr", 1, {"quantum_s": 0.0}, "quantum of 0.0 s"),
        ("ps", 2, {"rates": np.array([1.0])}, "there must be 2"),
        ("ps", 1, {"rates": np.array([np.nan])}, "above 0"),
        ("priority", 1, {}, "priority needs 2 classes"),
    ],
)
def test_what_cannot_be_done_is_said(policy, servers, more, said):
    with pytest.raises(ValueError, match=said):
        demands(policy, np.array([0.0, 1.0]), np.array([2.0, 3.0]), servers, **more)


@pytest.mark.parametrize(
    ("arrival", "departure", "said"),
    [
        ([0.0, np.nan], [1.0, 2.0], "arrival 1 is nan"),
        ([0.0, 5.0], [1.0, 4.0], "departure 1 is 4.0: it must be a number from 5.0 on"),
        ([0.0], [np.inf], "departure 0 is inf"),
        ([0.0], [1.0, 2.0], "1,.*arrivals and .2,"),
    ],
)
def test_what_is_no_log_is_refused(arrival, departure, said):
    with pytest.raises(ValueError, match=said):
        demands("ps", np.array(arrival), np.array(departure), 1)
