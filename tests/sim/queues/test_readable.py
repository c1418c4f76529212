"""The compiled queues serve every request when their readable twin does, and the twin does what its conventions say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queues.policies import POLICIES
from models.queues.serve import serve
from sim.queues import readable

TIES = tuple(policy for policy in POLICIES if policy != "fb")
"""Groups of three split time in thirds, so under fb a float grid has no exact ties beyond simultaneous arrivals."""


def agree(policy, arrival_s, demand_s, servers, **given):
    """The times of both, equal within 1e-9 of the clock."""
    fast = serve(policy, arrival_s, demand_s, servers, **given)
    slow = readable.serve(policy, arrival_s, demand_s, servers, **given)
    clock_s = max(1.0, slow.departure_s.max(initial=0.0))
    for name in ("arrival_s", "start_s", "departure_s"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=0, atol=1e-9 * clock_s, err_msg=name)
    return fast, slow


def chained(draw, n):
    """Whom each request follows: somebody before it, or nobody."""
    if draw(st.booleans()):
        return np.full(n, -1)
    return np.array([draw(st.integers(-1, i - 1)) for i in range(n)], dtype=int)


@st.composite
def worlds(draw, unit, top):
    """Up to 16 requests in multiples of a unit, perhaps with followers, unequal cores or load-dependent rates."""
    n, servers = draw(st.integers(0, 16)), draw(st.integers(1, 4))

    def times(low, high):
        return unit * np.array(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)), dtype=float)

    after = chained(draw, n)
    speeds = [draw(st.sampled_from([0.25, 0.5, 1.0, 2.0])) for _ in range(servers)]
    station = draw(st.sampled_from([{}, {"speeds": speeds}, {"rates": np.arange(1, servers + 1) * speeds}]))
    arrival_s = np.where(after < 0, np.sort(times(0, 3 * top)), np.nan)
    extra = {
        "after": after,
        "think_s": times(0, top),
        "priority": np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=int),
        "choice": np.array(draw(st.lists(st.integers(0, 15), min_size=n, max_size=n)), dtype=float) / 16,
        "quantum_s": unit * draw(st.integers(1, top)),
    }
    return arrival_s, times(0, top), servers, extra | station


@pytest.mark.parametrize("policy", TIES)
@settings(max_examples=30)
@given(world=worlds(unit=0.25, top=8))
def test_the_kernel_and_its_twin_agree_where_everything_ties(policy, world):
    arrival_s, demand_s, servers, extra = world
    agree(policy, arrival_s, demand_s, servers, **extra)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), servers=st.integers(1, 4), what=st.sampled_from(["", "after", "speeds", "rates"]))
def test_the_kernel_and_its_twin_agree_where_nothing_ties_but_batches(policy, seed, servers, what):
    rng, n = np.random.default_rng(seed), 30
    arrival_s = np.repeat(np.sort(rng.uniform(0, 15, n // 2)), 2)
    extra = {"priority": rng.integers(0, 3, n), "choice": rng.random(n), "quantum_s": rng.uniform(0.05, 1)}
    if what == "after":
        extra |= {"after": np.array([rng.integers(-1, i) if i else -1 for i in range(n)]), "think_s": rng.random(n)}
    elif what:
        extra[what] = rng.uniform(0.3, 2, servers)
    agree(policy, arrival_s, rng.exponential(1, n), servers, **extra)


@pytest.mark.parametrize("policy", POLICIES)
def test_two_thousand_requests_of_sessions_agree(policy):
    rng, n, servers = np.random.default_rng(5), 2000, 4
    after = np.where(rng.random(n) < 0.6, np.arange(n) - rng.integers(1, 20, n), -1)
    after[:20] = -1
    arrival_s = np.where(after < 0, np.cumsum(rng.exponential(0.5, n)), np.nan)
    extra = {"after": after, "think_s": rng.exponential(3, n), "priority": rng.integers(0, 3, n)}
    fast, _ = agree(policy, arrival_s, rng.uniform(1, 2, n), servers, choice=rng.random(n), **extra)
    assert (fast.departure_s - fast.arrival_s).mean() > 1.7


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), servers=st.integers(1, 5))
def test_fcfs_agrees_to_the_last_bit(seed, servers):
    rng = np.random.default_rng(seed)
    arrival_s, demand_s = np.sort(rng.uniform(0, 20, 40)), rng.exponential(1, 40)
    fast, slow = agree("fcfs", arrival_s, demand_s, servers)
    np.testing.assert_array_equal(fast.departure_s, slow.departure_s)
    plain = serve("fcfs", arrival_s, demand_s, servers, speeds=np.ones(servers))
    np.testing.assert_array_equal(plain.departure_s, slow.departure_s)


def twin(policy, arrival_s, demand_s, servers, **extra):
    return readable.serve(policy, arrival_s, demand_s, servers, **extra).departure_s.tolist()


def test_departures_come_before_arrivals():
    assert twin("lcfs", [0, 0, 2], [2, 1, 1], 1) == [2, 3, 4]


def test_arrivals_come_before_the_end_of_a_slice():
    assert twin("rr", [0, 1], [2, 1], 1, quantum_s=1.0) == [3, 2]


def test_a_job_whose_slice_ends_stands_behind_who_arrived_at_that_moment():
    assert twin("rr", [0, 0, 1], [2, 1, 1], 1, quantum_s=1.0) == [4, 2, 3]


def test_a_job_alone_goes_on_with_a_fresh_quantum():
    assert twin("rr", [0, 1.5], [4, 1], 1, quantum_s=1.0) == [5, 3]


def test_a_slice_does_not_leave_what_is_rounding():
    assert twin("rr", [0, 0], [0.3, 0.3], 1, quantum_s=0.1) == pytest.approx([0.5, 0.6])


def test_simultaneous_arrivals_are_served_by_index():
    assert twin("fcfs", [0, 0, 0], [3, 1, 1], 1) == [3, 4, 5]
    assert twin("srpt", [0, 0, 0], [1, 1, 1], 1) == [1, 2, 3]
    assert twin("lcfs_pr", [0, 0, 0], [1, 1, 1], 1) == [3, 2, 1]


def test_a_follower_counts_by_index_among_those_who_arrive_with_it():
    after = [-1, 0, -1]
    assert twin("fcfs", [0, np.nan, 2], [1, 1, 1], 1, after=after, think_s=[0, 1, 0]) == [1, 3, 4]


def test_a_preempted_job_comes_before_later_ones_of_its_class():
    assert twin("priority", [0, 1, 2], [3, 3, 1], 1, priority=[1, 1, 0]) == [4, 7, 3]


def test_the_victim_is_the_latest_of_the_lowest_class():
    assert twin("priority", [0, 0, 1], [3, 3, 1], 2, priority=[1, 1, 0]) == [3, 4, 2]


def test_the_shortest_waiting_job_is_next_but_interrupts_nobody():
    assert twin("sjf", [0, 1, 1], [3, 2, 1], 1) == [3, 6, 4]


def test_draws_choose_among_several_in_order_of_arrival():
    assert twin("random", [0, 0, 0, 0], [1, 1, 1, 1], 1, choice=[0.4, 0.5, 0.9, 0.9]) == [1, 4, 2, 3]


def test_those_with_least_service_share_the_servers():
    assert twin("fb", [0, 1], [3, 2], 1) == [5, 4]
    assert twin("fb", [0, 0, 0], [1, 1, 2], 2) == pytest.approx([1.5, 1.5, 2.5])


def test_the_fastest_free_core_is_taken_and_kept():
    assert twin("fcfs", [0, 0, 1], [2, 2, 2], 2, speeds=[1, 2]) == [1, 2, 2]


def test_the_first_ranked_job_moves_to_the_fastest_core():
    assert twin("srpt", [0, 0], [4, 3], 2, speeds=[1, 2]) == [pytest.approx(2.75), 1.5]


def test_busy_servers_split_the_rate_of_their_number():
    assert twin("fcfs", [0, 0], [1, 2], 2, rates=[1.0, 1.5]) == pytest.approx([4 / 3, 7 / 3])
    assert twin("ps", [0, 0], [1, 2], 2, rates=[1.0, 1.5]) == pytest.approx([4 / 3, 7 / 3])
