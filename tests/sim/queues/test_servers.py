"""What blocks, locks, limits or splits requests does so by hand calculation, and errs the Occupancy Law as it must.

The law counts min(N, k) servers as working and N - min(N, k) jobs as waiting; its service time is `occupied` here.
"""

from heapq import heapreplace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.queues.servers import contend


def occupied(arrival_s, departure_s, servers):
    """The law's service time, ∫ min(N, k), by counting the jobs present between any two events."""
    events = np.unique(np.concatenate((arrival_s, departure_s)))
    middle = (events[:-1] + events[1:]) / 2
    present = ((arrival_s <= middle[:, None]) & (departure_s > middle[:, None])).sum(axis=1)
    return float((np.minimum(present, servers) * np.diff(events)).sum())


def first_come_first_served(arrival_s, demand_s, servers):
    """Departures by the times at which servers come free (Kiefer and Wolfowitz 1955)."""
    free, departure_s = [-np.inf] * servers, []
    for arrived, demand in zip(arrival_s, demand_s, strict=True):
        departure_s.append(max(arrived, free[0]) + demand)
        heapreplace(free, departure_s[-1])
    return np.array(departure_s)


def traffic(n=300, gap_s=0.5, seed=1):
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.exponential(gap_s, n)), rng.uniform(0.5, 1.5, n)


@pytest.mark.parametrize("servers", [1, 3])
def test_without_contention_the_first_come_is_the_first_served(servers):
    arrival_s, demand_s = traffic()
    done = contend(arrival_s, demand_s, servers)
    expected = first_come_first_served(arrival_s, demand_s, servers)
    np.testing.assert_allclose(done.departure_s, expected, rtol=1e-12)
    np.testing.assert_allclose(done.start_s, expected - demand_s, rtol=1e-12)
    assert occupied(arrival_s, done.departure_s, servers) == pytest.approx(demand_s.sum())


def test_a_request_that_blocks_frees_its_server_and_queues_again():
    done = contend(np.zeros(2), np.array([2.0, 2.0]), 1, blocking_s=np.array([3.0, 3.0]))
    # Work 0-1 and 1-2, both wait until 4 and 5, work 4-5 and 5-6.
    assert done.departure_s.tolist() == [5.0, 6.0]
    assert done.start_s.tolist() == [0.0, 1.0]
    assert done.work_from_s.tolist() == [0.0, 1.0, 4.0, 5.0]


def test_blocking_is_taken_for_service_exactly_while_no_more_jobs_than_servers_are_present():
    arrival_s, demand_s = traffic()
    blocking_s = np.random.default_rng(2).exponential(0.4, len(arrival_s))
    done = contend(arrival_s, demand_s, 50, blocking_s=blocking_s)
    error_s = occupied(arrival_s, done.departure_s, 50) - demand_s.sum()
    assert error_s == pytest.approx(blocking_s.sum())


def test_a_server_whose_request_waits_for_the_lock_idles():
    done = contend(np.zeros(2), np.array([4.0, 4.0]), 2, lock_share=0.5)
    # The first holds the lock 1-3; the second waits for it from 1 to 3 on its server, and holds it 3-5.
    assert done.departure_s.tolist() == [4.0, 6.0]
    assert occupied(done.arrival_s, done.departure_s, 2) - 8.0 == 2.0
    assert (done.work_to_s - done.work_from_s).sum() == 8.0


def test_work_that_is_all_under_the_lock_has_one_server_however_many_there_are():
    arrival_s, demand_s = traffic(gap_s=1.5)
    done = contend(arrival_s, demand_s, 4, lock_share=1.0)
    np.testing.assert_allclose(done.departure_s, first_come_first_served(arrival_s, demand_s, 1))


def test_a_limit_below_the_servers_is_their_number_and_the_law_does_not_know_it():
    arrival_s, demand_s = traffic()
    done = contend(arrival_s, demand_s, 4, limit=2)
    np.testing.assert_allclose(done.departure_s, first_come_first_served(arrival_s, demand_s, 2))
    assert occupied(arrival_s, done.departure_s, 2) == pytest.approx(demand_s.sum())
    assert occupied(arrival_s, done.departure_s, 4) > 1.2 * demand_s.sum()


def test_a_limit_above_the_servers_changes_nothing():
    arrival_s, demand_s = traffic()
    np.testing.assert_array_equal(
        contend(arrival_s, demand_s, 3, limit=7).departure_s, contend(arrival_s, demand_s, 3).departure_s
    )


def test_a_request_in_parts_leaves_with_the_last_and_the_law_sees_one_server_busy_where_several_are():
    done = contend(np.array([0.0, 10.0]), np.array([4.0, 8.0]), 4, parts=4)
    assert done.departure_s.tolist() == [1.0, 12.0]
    assert occupied(done.arrival_s, done.departure_s, 4) == 3.0
    assert (done.work_to_s - done.work_from_s).sum() == 12.0


def test_more_parts_than_servers_take_turns():
    done = contend(np.zeros(1), np.array([6.0]), 2, parts=3)
    assert done.departure_s.tolist() == [4.0]


def test_parts_on_one_server_change_no_departure():
    arrival_s, demand_s = traffic(gap_s=1.2)
    done = contend(arrival_s, demand_s, 1, parts=3)
    np.testing.assert_allclose(done.departure_s, first_come_first_served(arrival_s, demand_s, 1))


def test_stamps_taken_by_the_workers_show_no_queue_where_there_is_one():
    arrival_s, demand_s = traffic()
    done = contend(arrival_s, demand_s, 2, workers=2)
    np.testing.assert_allclose(done.departure_s, first_come_first_served(arrival_s, demand_s, 2))
    np.testing.assert_allclose(done.accepted_s, done.departure_s - demand_s)
    np.testing.assert_array_equal(done.arrival_s, arrival_s)
    seen = (done.departure_s - done.accepted_s).sum() - occupied(done.accepted_s, done.departure_s, 2)
    real = (done.departure_s - arrival_s).sum() - occupied(arrival_s, done.departure_s, 2)
    assert seen == pytest.approx(0.0, abs=1e-6)
    assert real > 100.0


def test_a_worker_waits_with_its_request_for_admission():
    done = contend(np.zeros(3), np.full(3, 1.0), 3, workers=2, limit=1)
    assert done.accepted_s.tolist() == [0.0, 0.0, 1.0]
    assert done.start_s.tolist() == [0.0, 1.0, 2.0]


def test_a_request_comes_when_the_answer_that_it_follows_was_thought_over():
    done = contend(
        np.array([0.0, np.nan, 1.0, np.nan]),
        np.array([2.0, 1.0, 2.0, 1.0]),
        1,
        after=np.array([-1, 0, -1, 2]),
        think_s=np.array([0.0, 0.5, 0.0, 3.0]),
    )
    assert done.arrival_s.tolist() == [0.0, 2.5, 1.0, 7.0]
    assert done.departure_s.tolist() == [2.0, 5.0, 4.0, 8.0]


def test_the_systems_own_work_takes_a_server_and_nothing_else():
    arrival_s, demand_s = np.array([0.0, 0.0, 0.5]), np.array([4.0, 4.0, 1.0])
    plain = np.array([False, False, True])
    done = contend(
        arrival_s, demand_s, 2, blocking_s=np.full(3, 9.0), lock_share=0.5, limit=1, workers=1, parts=2, plain=plain
    )
    # The two parts of one request hold both servers until 0.5 and then block; the other request is not admitted.
    assert done.accepted_s[2] == 0.5
    assert done.departure_s[2] - done.start_s[2] == 1.0
    assert done.start_s[2] == 0.5


def test_requests_need_not_be_in_order_of_arrival():
    arrival_s, demand_s = traffic()
    order = np.random.default_rng(3).permutation(len(arrival_s))
    shuffled = contend(arrival_s[order], demand_s[order], 2)
    np.testing.assert_array_equal(shuffled.departure_s, contend(arrival_s, demand_s, 2).departure_s[order])


moments = st.integers(0, 12).map(float)
cases = st.lists(st.tuples(moments, moments, moments), min_size=1, max_size=12)
settings = st.fixed_dictionaries(
    {
        "lock_share": st.sampled_from([0.0, 0.3, 1.0]),
        "limit": st.integers(0, 3),
        "workers": st.integers(0, 3),
        "parts": st.integers(1, 3),
    }
)


@given(cases, st.integers(1, 4), settings)
def test_all_work_is_done_once_on_no_more_servers_than_there_are(jobs, servers, given):
    arrival_s, demand_s, blocking_s = np.array(sorted(jobs)).T
    done = contend(arrival_s, demand_s, servers, blocking_s=blocking_s, **given)
    assert (done.work_to_s - done.work_from_s).sum() == pytest.approx(demand_s.sum())
    middle = (done.work_from_s + done.work_to_s)[:, None] / 2
    assert ((done.work_from_s <= middle) & (middle < done.work_to_s)).sum(axis=1).max(initial=0) <= servers
    assert (done.arrival_s <= done.accepted_s).all()
    assert (done.accepted_s <= done.start_s).all()
    least_s = demand_s * max(1.0 / given["parts"], given["lock_share"]) + blocking_s
    assert (done.departure_s - done.start_s >= least_s - 1e-9).all()


def test_nobody_comes_to_an_empty_shop():
    done = contend(np.empty(0), np.empty(0), 2, parts=2)
    assert done.departure_s.size == done.work_from_s.size == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"servers": 0}, "servers: 0 is below 1"),
        ({"parts": 0}, "parts: 0 is below 1"),
        ({"limit": -1}, "limit: -1 is below 0"),
        ({"workers": -1}, "workers: -1 is below 0"),
        ({"lock_share": 1.5}, "lock_share: 1.5 is not a share"),
        ({"arrival_s": np.array([0.0, np.nan])}, "arrival_s: value 1 is nan; it must be finite and at least 0"),
        ({"demand_s": np.array([1.0, -1.0])}, "demand_s: value 1 is -1.0; it must be finite and at least 0"),
        ({"demand_s": np.ones(3)}, "demand_s: 3 values for 2 requests"),
        ({"blocking_s": np.ones(1)}, "blocking_s: 1 values for 2 requests"),
        ({"after": np.array([1, -1])}, "after: request 0 follows 1, which does not come before it"),
        ({"plain": np.ones(1, np.bool_)}, "plain: 1 values for 2 requests"),
    ],
)
def test_what_cannot_be_is_said(change, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        contend(**{"arrival_s": np.zeros(2), "demand_s": np.ones(2), "servers": 1, **change})
