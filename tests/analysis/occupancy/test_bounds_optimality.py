"""The most and the least queueing that a log leaves possible, beside searches that try everything."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array

from analysis.occupancy import bounds as bounds_module
from analysis.occupancy.bounds import busiest, busy_periods, least_queueing, most_backlog, most_queueing, sums
from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from tests.helpers.capacity_worlds import APART_S, MONOTONIC, PER_JOB, excesses, served, workloads

POLICIES = (*MONOTONIC, "sjf", "lcfs")


def programme(pieces, to, suffixes):
    """Most queueing over mixtures of courses with enough work allowed: one unit flows from job count to job count."""
    width, jobs, came, allowed = pieces
    start = np.concatenate(([0], np.cumsum(jobs + 1)))
    edges = []
    for i, n in [(piece, count) for piece in range(len(jobs)) for count in range(jobs[piece] + 1)]:
        if n > 0:
            edges.append((start[i] + n, start[i] + n - 1, -1, 0.0, 0.0))
        after = start[i + 1] + min(n + came[i + 1], jobs[i + 1]) if i + 1 < len(jobs) else start[-1]
        edges.append((start[i] + n, after, i, width[i] * max(n - to, 0), width[i] * min(n, to)))
    tail, head, piece, queueing, busy = (np.array(column) for column in zip(*edges, strict=True))
    each = np.arange(len(edges))
    signs = np.repeat([-1.0, 1.0], len(edges))
    flow = coo_array((signs, (np.concatenate((tail, head)), np.tile(each, 2))), shape=(start[-1] + 1, len(edges)))
    net = np.zeros(start[-1] + 1)
    net[start[0] + jobs[0]], net[-1] = -1.0, 1.0
    since = range(len(jobs)) if suffixes else (0,)
    least = np.array([np.where(piece >= i, busy, 0.0) for i in since])
    most = [np.sum(width[i:] * allowed[i:]) for i in since]
    answer = linprog(-queueing, A_ub=least, b_ub=most, A_eq=flow.tocsr(), b_eq=net, method="highs")
    assert answer.status == 0
    return -answer.fun


def problems(policy, servers, to, count=12, seed=3):
    """Curves of workloads served under the policy, and per busy period what the programme needs."""
    load = workloads(count, seed)
    seen = curve(load[0], served(policy, load, servers))
    allowed = np.minimum(seen.jobs, servers) * 1.0
    periods = busy_periods(seen)
    spans = [slice(*ends) for ends in zip(periods.first, periods.last, strict=True)]
    pieces = (np.diff(seen.time_s), seen.jobs, seen.arrivals, allowed)
    return seen, periods, allowed, [tuple(each[span] for each in pieces) for span in spans]


@pytest.mark.parametrize(("servers", "to"), [(1, 2), (1, 3), (2, 3)])
@pytest.mark.parametrize("policy", ["ps", "fcfs", "srpt"])
def test_b2_is_the_optimum_of_the_linear_programme(policy, servers, to):
    seen, periods, allowed, parts = problems(policy, servers, to)
    expected = [programme(part, to, suffixes=False) for part in parts]
    np.testing.assert_allclose(most_queueing(seen, periods, to, allowed), expected, rtol=2e-6, atol=1e-9)


@pytest.mark.parametrize(("servers", "to"), [(1, 2), (1, 3), (2, 3)])
@pytest.mark.parametrize("policy", ["ps", "fb", "lcfs_pr"])
def test_b3_is_never_below_the_optimum_of_the_linear_programme_and_within_two_per_cent_in_all(policy, servers, to):
    seen, periods, allowed, parts = problems(policy, servers, to)
    expected = np.array([programme(part, to, suffixes=True) for part in parts])
    found = most_queueing(seen, periods, to, allowed, suffixes=True)
    assert np.all(found >= expected - 1e-9)
    assert found.sum() <= 1.02 * expected.sum() + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_no_course_that_keeps_the_rules_exceeds_b2(seed):
    rng = np.random.default_rng(seed)
    arrival = np.sort(rng.integers(0, 4, 5)).astype(float)
    seen = curve(arrival, served("fcfs", (arrival, rng.integers(1, 3, 5).astype(float), None), 1))
    periods, allowed, width = busy_periods(seen), np.minimum(seen.jobs, 1.0), np.diff(seen.time_s)
    most = np.sum(most_queueing(seen, periods, 2, allowed))
    best = 0.0
    for course in product(*(range(n + 1) for n in seen.jobs)):
        rises = np.diff(course) <= seen.arrivals[1:-1]
        busy = sums(periods, width * np.minimum(course, 2))
        if rises.all() and np.all(busy <= sums(periods, width * allowed)):
            best = max(best, np.sum(width * np.maximum(np.array(course) - 2, 0)))
    assert 0.0 < best <= most + 1e-9


@pytest.mark.parametrize(("servers", "to"), [(1, 3), (2, 3)])
@pytest.mark.parametrize("policy", MONOTONIC)
def test_no_workload_breaks_a_bound(policy, servers, to):
    """2,000 workloads each; `python -m tests.helpers.capacity_worlds 100000` looks at more."""
    assert excesses(policy, workloads(2_000, seed=7), servers, to).max() < 1e-8


@pytest.mark.parametrize("policy", PER_JOB)
def test_faster_servers_break_no_bound(policy):
    assert excesses(policy, workloads(2_000, seed=8), 2, 2, speed=1.25).max() < 1e-8
    assert excesses(policy, workloads(2_000, seed=9), 1, 2, speed=2.0).max() < 1e-8


@pytest.mark.parametrize("policy", PER_JOB)
def test_each_bound_is_at_least_as_sharp_as_the_one_before(policy):
    excess = excesses(policy, workloads(2_000, seed=10), 1, 2)
    assert np.all(np.diff(excess, axis=0) >= -1e-6 * (1 - excess[:-1]))
    assert np.all(np.diff(excess.sum(axis=1)) > 0)


def test_a_departure_and_an_arrival_at_one_moment_are_no_standstill():
    """The job that goes may be a waiting one, so with more servers the count may rise where it did not before."""
    seen = curve([0.0, 0.0, 0.0, 2.0], [1.0, 2.0, 3.0, 4.0])
    assert seen.jobs.tolist() == [3, 2, 2, 1]
    apart = curve([0.0, 0.0, 0.0, 2.1], [1.0, 2.0, 3.0, 4.0])
    most = [most_queueing(each, busy_periods(each), 1, np.minimum(each.jobs, 1.0))[0] for each in (seen, apart)]
    assert most == pytest.approx([4.0, 3.9])


@pytest.mark.parametrize("suffixes", [False, True])
@pytest.mark.parametrize("initial", [2, 4])
def test_a_course_starts_with_the_jobs_that_are_there(initial, suffixes):
    seen = curve([1.0, 1.5], np.arange(1.0, initial + 3.0), start_s=0.0, initial=initial)
    assert seen.jobs[0] == initial
    assert seen.arrivals[0] == 0
    allowed = np.minimum(seen.jobs, 1.0)
    expected = programme((np.diff(seen.time_s), seen.jobs, seen.arrivals, allowed), 2, suffixes)
    most = most_queueing(seen, busy_periods(seen), 2, allowed, suffixes)[0]
    assert expected * (1 - 1e-9) <= most <= expected * (1.02 if suffixes else 1 + 2e-6)


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_a_search_that_is_cut_short_still_gives_a_bound(monkeypatch, rounds):
    seen, periods, allowed, _ = problems("ps", 1, 2)
    best = most_queueing(seen, periods, 2, allowed)
    monkeypatch.setattr(bounds_module, "ROUNDS", rounds)
    found = most_queueing(seen, periods, 2, allowed)
    assert np.all(found >= best * (1 - 1e-6))
    assert np.any(found > 1.001 * best) == (rounds < 5)


def test_a_busy_period_that_is_too_large_or_open_gets_no_bound(monkeypatch):
    seen = curve([0.0, 0.0, 9.0], [1.0, 2.0, np.nan], end_s=10.0)
    assert np.isinf(most_queueing(seen, busy_periods(seen), 2, np.minimum(seen.jobs, 1.0))).tolist() == [False, True]
    monkeypatch.setattr(bounds_module, "MOST_STATES", 3)
    assert np.isinf(most_queueing(seen, busy_periods(seen), 2, np.minimum(seen.jobs, 1.0))).all()


def test_b2_of_a_long_busy_period_is_below_b1():
    rng = np.random.default_rng(4)
    arrival, demand = np.cumsum(rng.exponential(1.8, 3000)), rng.uniform(1.0, 2.0, 3000)
    seen = curve(arrival, served("ps", (arrival, demand, None), 1))
    periods, allowed = busy_periods(seen), np.minimum(seen.jobs, 1.0)
    b1 = busiest(seen, periods, 2, sums(periods, np.diff(seen.time_s) * allowed) / 2)
    assert most_queueing(seen, periods, 2, allowed).sum() < 0.95 * b1.sum()


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
    assert least_queueing(*pairs, 2, 1, present=curve(*pairs)) == least_queueing(*pairs, 2, 1)
    with pytest.raises(ValueError, match="the curve is not that of the pairs"):
        least_queueing(*pairs, 2, 1, present=curve(arrival, departure))


def test_the_order_of_the_log_does_not_matter():
    arrival, departure = np.array([0.0, 0.0, 1.0, 5.0, 5.5]), np.array([4.0, 2.0, 9.0, 6.0, 7.0])
    turned = [least_queueing(arrival[order], departure[order], 2, 1) for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1])]
    assert turned[0] == pytest.approx(turned[1])


def test_jobs_there_from_the_start_wait_from_the_start():
    """Four jobs, of which two are done at 2 on two servers: the other two wait for one server until 8 at most."""
    once = curve([0.0] * 4, [2.0, 2.0, 4.0, 4.0])
    there = curve([], [2.0, 2.0, 4.0, 4.0], start_s=0.0, initial=4)
    assert most_backlog(there, 2, 1) == most_backlog(once, 2, 1) == 3 * 8.0


def test_for_stamps_that_cannot_be_written_to_nothing_is_compiled_once_more():
    stamps = np.array([0.0, 1.0]), np.array([2.0, 3.0])
    least = least_queueing(*stamps, 2, 1)
    known = len(bounds_module._alone.overloads)
    for array in stamps:
        array.flags.writeable = False
        assert least_queueing(*stamps, 2, 1) == least
    assert len(bounds_module._alone.overloads) == known
