"""What fewer servers do to many small workloads, against both sides of the bound."""

import numpy as np
import pytest

from analysis.occupancy.backlog import least_queueing, most_backlog
from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from tests.helpers.capacity_worlds import APART_S, MONOTONIC, served, workloads

POLICIES = (*MONOTONIC, "sjf", "lcfs")


def each_alone(policy, servers, to, count, seed):
    """Yield arrivals and departures with k servers, and queueing time with k', of one workload after another."""
    load = workloads(count, seed)
    before, after = served(policy, load, servers), served(policy, load, to)
    which = (load[0] // APART_S).astype(int)
    waiting = np.bincount(which, after - load[0] - load[1])
    for i in range(count):
        mine = which == i
        yield load[0][mine], before[mine], waiting[i]


@pytest.mark.parametrize(("servers", "to"), [(2, 1), (4, 1), (3, 2)])
@pytest.mark.parametrize("policy", POLICIES)
def test_queueing_with_fewer_servers_lies_between_both_sides(policy, servers, to):
    for arrival, departure, queueing in each_alone(policy, servers, to, count=60, seed=11):
        assert least_queueing(arrival, departure, servers, to) <= queueing + 1e-9
        assert most_backlog(curve(arrival, departure), servers, to) >= queueing - 1e-9


@pytest.mark.parametrize(("servers", "to"), [(2, 1), (4, 2)])
def test_the_upper_side_holds_for_a_policy_that_finishes_nothing_early(servers, to):
    """Longest remaining time first, in steps of an eighth: the policy that keeps the most jobs for the longest."""
    for arrival, departure, _ in each_alone("ps", servers, to, count=25, seed=12):
        load = workloads(25, 12)
        demand = load[1][np.isin(load[0], arrival)] * 8
        left, start, queueing, step = np.zeros(len(arrival)), arrival[0], 0.0, 0
        while step <= (arrival[-1] - start) * 8 or left.any():
            left = np.where((arrival - start) * 8 == step, demand, left)
            queueing += max(np.count_nonzero(left) - to, 0) / 8
            served_now = np.argsort(-left, kind="stable")[:to]
            left[served_now] = np.maximum(left[served_now] - 1, 0)
            step += 1
        assert queueing <= most_backlog(curve(arrival, departure), servers, to) + 1e-9


def test_the_upper_side_is_met_when_all_jobs_can_stay_to_the_end():
    """Two jobs on two servers; one server that shares itself evenly keeps both to the end."""
    assert most_backlog(curve([0.0, 0.0], [3.0, 3.0]), 2, 1) == 6.0


def test_a_backlog_reaches_into_the_next_busy_period():
    """Two jobs on two servers until 3: one server needs until 6, and from 4 to 7 with the next: N is at most 3."""
    assert most_backlog(curve([0.0, 0.0, 4.0], [3.0, 3.0, 5.0]), 2, 1) == pytest.approx(4.0 + 2 * 3.0)


def test_jobs_left_at_the_end_count_up_to_the_end():
    open_end = curve([0.0, 0.0, 0.0], [1.0, np.nan, np.nan], end_s=5.0)
    assert most_backlog(open_end, 2, 1) == 2 * 5.0


def test_a_curve_without_jobs_has_no_backlog():
    assert most_backlog(curve([], [], 0.0, 5.0), 2, 1) == 0.0


@pytest.mark.parametrize(("servers", "to"), [(4, 1), (4, 2)])
def test_jobs_never_in_company_of_more_than_k_give_the_queueing_of_srpt(servers, to):
    """Their demands are known exactly then, so shortest remaining time first on one fast server is what is returned."""
    rng = np.random.default_rng(1)
    arrival, demand = np.sort(rng.uniform(0.0, 300.0, 40)), rng.uniform(0.5, 1.5, 40)
    departure = served("fcfs", (arrival, demand, None), servers)
    assert law(curve(arrival, departure), servers).queueing_time_s == 0.0
    flow = np.sum(served("srpt", (arrival, demand, None), 1, speed=to) - arrival)
    assert least_queueing(arrival, departure, servers, to) == pytest.approx(flow - demand.sum())


def test_backlogs_far_apart_add_up():
    arrival, departure = np.array([0.0, 0.0, 0.0]), np.array([1.0, 3.0, 4.0])
    once = most_backlog(curve(arrival, departure), 2, 1)
    apart = (np.concatenate((arrival, arrival + 50)), np.concatenate((departure, departure + 50)))
    assert most_backlog(curve(*apart), 2, 1) == pytest.approx(2 * once)


def shortest_first(arrival, demand, speed):
    """Aggregate response time of whole-numbered jobs on one server, shortest remaining first, in steps of one unit."""
    left, flow, step = np.zeros(len(arrival), int), 0.0, 0
    while step <= max(arrival) * speed or left.any():
        left[arrival * speed == step] = demand[arrival * speed == step]
        flow += np.count_nonzero(left) / speed
        if left.any():
            left[np.argmin(np.where(left > 0, left, 99))] -= 1
        step += 1
    return flow


@pytest.mark.parametrize(("servers", "to"), [(2, 1), (3, 2), (4, 2)])
def test_pairs_give_shortest_remaining_first_of_what_each_did_alone_and_the_rest_by_its_length(servers, to):
    rng = np.random.default_rng(servers)
    for _ in range(20):
        arrival = np.sort(rng.integers(0, 5, 7)).astype(float)
        departure = served("fcfs", (arrival, rng.integers(1, 5, 7).astype(float), None), servers)
        there = [(arrival <= t) & (t < departure) for t in range(60)]
        alone = np.sum([each for each in there if each.sum() <= servers], axis=0)
        work = sum(min(each.sum(), servers) for each in there)
        expected = shortest_first(arrival, alone, to) + (work - alone.sum()) / to - work
        assert least_queueing(arrival, departure, servers, to) == pytest.approx(expected)


@pytest.mark.parametrize("departure", [[np.nan, 2.0], [-1.0, 2.0]])
def test_every_job_needs_its_departure(departure):
    with pytest.raises(ValueError, match="every job needs a departure"):
        least_queueing(np.array([0.0, 1.0]), np.array(departure), 2, 1)


@pytest.mark.parametrize(("arrival", "departure"), [([0.0, 2.0], [3.0, 4.0]), ([0.0, 1.0], [3.0, 5.0])])
def test_the_curve_of_other_pairs_is_refused(arrival, departure):
    pairs = np.array([0.0, 1.0]), np.array([3.0, 4.0])
    assert least_queueing(*pairs, 2, 1, seen=curve(*pairs)) == least_queueing(*pairs, 2, 1)
    with pytest.raises(ValueError, match="the curve is not that of the pairs"):
        least_queueing(*pairs, 2, 1, seen=curve(arrival, departure))


def test_the_order_of_the_log_does_not_matter():
    arrival, departure = np.array([0.0, 0.0, 1.0, 5.0, 5.5]), np.array([4.0, 2.0, 9.0, 6.0, 7.0])
    turned = [least_queueing(arrival[order], departure[order], 2, 1) for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1])]
    assert turned[0] == pytest.approx(turned[1])


def test_jobs_there_from_the_start_wait_from_the_start():
    """Four jobs, of which two are done at 2 on two servers: the other two wait for one server until 8 at most."""
    once = curve([0.0] * 4, [2.0, 2.0, 4.0, 4.0])
    there = curve([], [2.0, 2.0, 4.0, 4.0], start_s=0.0, initial=4)
    assert most_backlog(there, 2, 1) == most_backlog(once, 2, 1) == 3 * 8.0
