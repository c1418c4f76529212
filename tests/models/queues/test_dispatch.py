"""Requests routed over machines that differ: against single stations, a SimPy twin and what symmetry asks."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queues.dispatch import PREDICTING, ROUTERS, dispatch
from models.queues.serve import serve
from sim.queues import readable

SEEDS = st.integers(0, 2**32)


def traffic(seed, n=60, kinds=3):
    """Machines of one to four processors with rates of their own, and requests that keep them about 70% busy."""
    rng = np.random.default_rng(seed)
    cores = rng.integers(1, 5, rng.integers(1, 5))
    rates = [np.cumsum(rng.uniform(0.4, 1.0, k)) for k in cores]
    capacity = sum(row[-1] for row in rates)
    arrival_s = np.repeat(np.cumsum(rng.exponential(2.0 / (0.7 * capacity), n // 2)), 2)
    kind, predicted_s = rng.integers(0, kinds, n), rng.uniform(0.5, 1.5, (kinds, cores.size))
    demand_s = predicted_s[kind] * rng.exponential(1.0, (n, 1))
    return rng, arrival_s, demand_s, cores, rates, kind, predicted_s


@settings(max_examples=25)
@given(seed=SEEDS)
def test_a_fixed_choice_is_a_station_for_each_machine_to_the_last_bit(seed):
    rng, arrival_s, demand_s, cores, rates, _, _ = traffic(seed)
    choice = rng.integers(0, cores.size, arrival_s.size)
    done = dispatch("fixed", arrival_s, demand_s, cores, choice=choice, rates=rates)
    np.testing.assert_array_equal(done.machine, choice)
    for i, k in enumerate(cores):
        mine = choice == i
        alone = serve("ps", arrival_s[mine], demand_s[mine, i], int(k), rates=rates[i])
        np.testing.assert_array_equal(done.departure_s[mine], alone.departure_s)


def test_without_rates_a_machine_is_a_plain_station():
    rng, arrival_s, demand_s, cores, _, _, _ = traffic(3, n=2000)
    choice = rng.integers(0, cores.size, arrival_s.size)
    done = dispatch("fixed", arrival_s, demand_s, cores, choice=choice)
    for i, k in enumerate(cores):
        mine = choice == i
        alone = serve("ps", arrival_s[mine], demand_s[mine, i], int(k))
        np.testing.assert_allclose(done.departure_s[mine], alone.departure_s, rtol=1e-12)


@pytest.mark.parametrize("router", ROUTERS)
@settings(max_examples=25)
@given(seed=SEEDS)
def test_the_kernel_and_its_twin_route_every_request_alike(router, seed):
    rng, arrival_s, demand_s, cores, rates, kind, predicted_s = traffic(seed)
    weights = rng.integers(0, 4, predicted_s.shape) + np.eye(len(predicted_s), cores.size) + (cores.size == 1)
    weights[:, 0] += weights.sum(axis=1) == 0
    table = predicted_s if router in PREDICTING else weights
    rows = rng.integers(0, cores.size, arrival_s.size) if router == "fixed" else kind
    how = {"choice": rows} if router == "fixed" else {"kind": kind}
    how |= {"predicted_s" if router in PREDICTING else "weights": table}
    fast = dispatch(router, arrival_s, demand_s, cores, rates=rates, **how)
    slow = readable.dispatch(router, arrival_s, demand_s, rates, rows=rows, table=table)
    np.testing.assert_array_equal(fast.machine, slow.machine)
    np.testing.assert_allclose(fast.departure_s, slow.departure_s, rtol=1e-9)


@pytest.mark.parametrize("router", ROUTERS[1:])
def test_machines_that_are_alike_are_taken_alike(router):
    rng, n, m = np.random.default_rng(2), 40_000, 4
    arrival_s = np.cumsum(rng.exponential(1.0 / (0.7 * m), n))
    demand_s = np.repeat(rng.exponential(1.0, (n, 1)), m, axis=1)
    how = {"predicted_s": np.ones((1, m))} if router in PREDICTING else {}
    done = dispatch(router, arrival_s, demand_s, [1] * m, **how)
    share = np.bincount(done.machine, minlength=m) / n
    assert share.sum() == pytest.approx(1.0)
    if router == "round_robin":
        np.testing.assert_array_equal(done.machine, np.arange(n) % m)
    else:
        assert (np.diff(share) < 0.0).all(), "ties go to the first"
        assert share[0] < 0.35


def test_the_shorter_of_two_lines_beats_taking_turns_beats_a_coin():
    """A margin of a tenth: joining the shorter of two queues at 80% load saves over a third against a coin."""
    rng, n = np.random.default_rng(7), 60_000
    arrival_s, demand_s = np.cumsum(rng.exponential(1.0 / 1.6, n)), np.repeat(rng.exponential(1.0, (n, 1)), 2, axis=1)
    coin = dispatch("fixed", arrival_s, demand_s, [1, 1], choice=rng.integers(0, 2, n))
    turns, shorter = (dispatch(router, arrival_s, demand_s, [1, 1]) for router in ("round_robin", "least_loaded"))
    mean = [(done.departure_s - done.arrival_s).mean() for done in (shorter, turns, coin)]
    assert mean[0] < 0.9 * mean[1] < 0.81 * mean[2]


def test_turns_come_in_proportion_to_weights_and_evenly_spread_for_every_type():
    kind = np.arange(16) % 2
    weights = [[5, 1, 1, 0], [1, 0, 0, 1]]
    done = dispatch("round_robin", np.arange(16.0), np.ones((16, 4)), [1] * 4, kind=kind, weights=weights)
    assert done.machine[kind == 0].tolist() == [0, 0, 1, 0, 2, 0, 0, 0]
    assert done.machine[kind == 1].tolist() == [0, 3] * 4


def test_fewest_present_is_counted_for_the_weight_and_ties_go_to_the_weightiest():
    done = dispatch("least_loaded", np.zeros(6), np.ones((6, 3)), [1, 2, 1])
    assert done.machine.tolist() == [1, 0, 2, 1, 1, 0]


def test_a_machine_of_no_weight_is_never_taken():
    for router in ("round_robin", "least_loaded"):
        done = dispatch(router, np.zeros(9), np.ones((9, 3)), [1, 9, 1], weights=[1, 0, 1])
        assert 1 not in done.machine


def test_a_type_goes_where_it_is_predicted_to_be_quick_until_others_wait_there():
    predicted_s = [[1.0, 1.6], [3.0, 1.0]]
    done = dispatch(
        "least_expected", np.zeros(5), np.ones((5, 2)), [1, 1], kind=[0, 1, 0, 0, 0], predicted_s=predicted_s
    )
    assert done.machine.tolist() == [0, 1, 0, 0, 1]


def test_what_others_lose_may_be_counted():
    """The first takes 2 s beside another, who loses 1 s by that; the second takes 2.5 s alone."""
    twice = {"predicted_s": [[1.0, 2.5]]}
    own, all_of_them = (
        dispatch(router, np.zeros(2), np.ones((2, 2)), [1, 1], **twice) for router in ("least_expected", "least_added")
    )
    assert (own.machine.tolist(), all_of_them.machine.tolist()) == ([0, 0], [0, 1])


def test_the_router_may_believe_in_rates_that_are_not_so():
    alone = {"predicted_s": [[1.0, 1.2]], "rates": [[1.0, 2.0], [1.0]]}
    believing = dispatch("least_expected", np.zeros(2), np.ones((2, 2)), [2, 1], **alone)
    doubting = dispatch(
        "least_expected", np.zeros(2), np.ones((2, 2)), [2, 1], believed_rates=[[1.0, 1.1], [1.0]], **alone
    )
    assert (believing.machine.tolist(), doubting.machine.tolist()) == ([0, 0], [0, 1])


def test_who_leaves_at_the_moment_of_an_arrival_is_no_longer_counted():
    done = dispatch("least_loaded", [0.0, 1.0], np.ones((2, 2)), [1, 1])
    assert done.machine.tolist() == [0, 0]
    assert done.departure_s.tolist() == [1.0, 2.0]


def test_work_that_a_request_brings_about_stays_with_it_and_pinned_work_where_it_is():
    done = dispatch(
        "round_robin", np.zeros(5), np.ones((5, 2)), [1, 1], choice=[-1, 0, -1, 1, -1], beside=[-1] * 4 + [2]
    )
    assert done.machine.tolist() == [0, 0, 1, 1, 1]
    assert done.departure_s.tolist() == [2.0, 2.0, 3.0, 3.0, 3.0]


def test_no_request_is_no_departure():
    assert dispatch("round_robin", [], np.empty((0, 2)), [1, 1]).departure_s.size == 0


FAULTS = {
    "router is 'fastest', must be one of fixed, round_robin, least_loaded, least_expected, least_added": {
        "router": "fastest"
    },
    "router fixed needs choice, the machine of each request": {"router": "fixed"},
    "choice[1] is 2, must be from -1 to 1": {"router": "fixed", "choice": [0, 2]},
    "beside[1] is 1, must be an earlier request or -1": {"beside": [-1, 1]},
    "beside[0] is -2, must be from -1 to inf": {"beside": [-2, 0]},
    "router least_expected needs predicted_s, the time of each type on each machine": {"router": "least_expected"},
    "predicted_s[0, 1] is 0.0, must be positive": {"router": "least_expected", "predicted_s": [[1, 0]]},
    "predicted_s has shape (2,), must be (any, 2)": {"router": "least_expected", "predicted_s": [1, 1]},
    "weights[1] are all 0, one must be positive": {"weights": [[1, 1], [0, 0]]},
    "weights has shape (1, 3), must be (any, 2)": {"weights": [1, 1, 1]},
    "weights[0, 0] is nan, must be finite and at least 0": {"weights": [np.nan, 1]},
    "kind[0] is 1, must be from 0 to 0": {"kind": [1, 0]},
    "kind holds float64, must be integers": {"kind": [0.0, 0.0]},
    "kind has shape (1,), must be (2,)": {"kind": [0]},
    "cores[1] is 0, must be from 1 to inf": {"cores": [1, 0]},
    "cores has shape (0,), must be (m,), m >= 1": {"cores": []},
    "demand_s has shape (2, 3), must be (any, 2)": {"demand_s": np.ones((2, 3))},
    "demand_s has shape (), must be (any, 2)": {"demand_s": 1.0},
    "demand_s[1, 0] is -1.0, must be finite and at least 0": {"demand_s": [[1, 1], [-1, 1]]},
    "arrival_s has shape (3,), must be (2,)": {"arrival_s": [0, 1, 2]},
    "arrival_s[1] is inf, must be finite": {"arrival_s": [0, np.inf]},
    "arrival_s[1] is 0.0, earlier than 1.0 before it": {"arrival_s": [1, 0]},
    "rates has 1 rows, must have 2, one for each machine": {"rates": [[1]]},
    "rates[1] has shape (2,), must be (1,)": {"rates": [[1], [1, 2]]},
    "rates[0][0] is 0.0, must be positive": {"rates": [[0], [1]]},
    "believed_rates[0][0] is 0.0, must be positive": {"believed_rates": [[0], [1]]},
}


@pytest.mark.parametrize(("message", "fault"), list(FAULTS.items()), ids=FAULTS)
def test_what_is_wrong_is_said_with_its_place_and_bound(message, fault):
    asked = {"router": "round_robin", "arrival_s": [0, 1], "demand_s": np.ones((2, 2)), "cores": [1, 1]} | fault
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        dispatch(**asked)
