"""The compiled kernels against event loops in exact fractions that share no code with them."""

from collections import deque
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queues import open as queues

POLICIES = ("fcfs", "ps", "priority", "srpt", "rr")
FINE = 2.0**-20
"""Times in whole multiples of this are added and subtracted by floats without rounding."""
each = pytest.mark.parametrize("policy", POLICIES)


def served(policy, left, classes, servers):
    """The rates of the jobs present: {index: rate}."""
    if policy == "ps":
        return dict.fromkeys(left, min(Fraction(1), Fraction(servers, max(len(left), 1))))
    rank = {"fcfs": lambda i: i, "srpt": lambda i: (left[i], i), "priority": lambda i: (classes[i], i)}[policy]
    return dict.fromkeys(sorted(left, key=rank)[:servers], Fraction(1))


def slowly(policy, arrival_s, demand_s, classes, servers):
    """Start and departure, by following everybody's work from event to event."""
    arrival, left, now = [Fraction(a) for a in arrival_s], {}, Fraction(0)
    start, departure, coming = {}, {}, deque(range(len(arrival_s)))
    while coming or left:
        rates = served(policy, left, classes, servers)
        for i in rates:
            start.setdefault(i, now)
        first = min((now + left[i] / rates[i] for i in rates), default=None)
        until = first if not coming or (first is not None and first <= arrival[coming[0]]) else arrival[coming[0]]
        for i in rates:
            left[i] -= rates[i] * (until - now)
        now, gone = until, [i for i in rates if left[i] == 0]
        for i in gone:
            departure[i] = now
            del left[i]
        if not gone:
            i = coming.popleft()
            left[i] = Fraction(demand_s[i])
    return [[float(times[i]) for i in range(len(arrival))] for times in (start, departure)]


def slow_round_robin(arrival_s, demand_s, servers, quantum_s):
    """Start and departure, slice by slice: at equal times departures, arrivals, expiries in the order of beginning."""
    quantum, coming, queue, running = Fraction(quantum_s), deque(range(len(arrival_s))), deque(), []
    left, start, departure, begun = [Fraction(d) for d in demand_s], {}, {}, 0
    while coming or running:
        events = [(Fraction(arrival_s[coming[0]]), 1, 0, None)] if coming else []
        events += [(b + min(left[i], quantum), 0 if left[i] <= quantum else 2, n, i) for i, b, n in running]
        now, kind, _, who = min(events, key=lambda event: event[:3])
        if kind == 1:
            queue.append(coming.popleft())
        else:
            running = [slot for slot in running if slot[0] != who]
        if kind == 0:
            departure[who] = now
        if kind == 2:
            left[who] -= quantum
            queue.append(who)
        if queue and len(running) < servers:
            i = queue.popleft()
            start.setdefault(i, now)
            begun += 1
            running.append((i, now, begun))
    return [[float(times[i]) for i in range(len(arrival_s))] for times in (start, departure)]


def exactly(policy, instance):
    arrival_s, demand_s, classes, servers, quantum_s = instance
    if policy == "rr":
        return slow_round_robin(arrival_s, demand_s, servers, quantum_s)
    return slowly(policy, arrival_s, demand_s, classes, servers)


@st.composite
def instances(draw):
    """Up to 14 jobs on a coarse grid full of ties, or on a fine one; no job needs more than 50 quanta."""
    unit, top = draw(st.sampled_from([(0.25, 12), (1.0, 6), (FINE, 2**22)]))
    jobs = draw(st.lists(st.tuples(st.integers(0, 3 * top), st.integers(0, top), st.integers(0, 2)), max_size=14))
    arrival, demand, classes = (np.array([job[column] for job in sorted(jobs)], float) for column in range(3))
    servers, quantum = draw(st.integers(1, 4)), draw(st.integers(1 + top // 50, top))
    return arrival * unit, demand * unit, classes.astype(np.int64), servers, quantum * unit


def both(policy, instance):
    """The compiled start and departure beside the slow ones."""
    arrival_s, demand_s, classes, servers, quantum_s = instance
    fast = queues.times(policy, arrival_s, demand_s, servers, classes, quantum_s=quantum_s)
    return list(zip(fast, exactly(policy, instance), strict=True))


@each
@settings(max_examples=40, deadline=None)
@given(instance=instances())
def test_every_job_starts_and_leaves_when_the_slow_loop_says(policy, instance):
    for fast, slow in both(policy, instance):
        np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(instance=instances())
def test_first_come_first_served_is_right_to_the_last_bit(instance):
    for fast, slow in both("fcfs", instance):
        np.testing.assert_array_equal(fast, slow)


@pytest.mark.parametrize("servers", [1, 2, 3, 4])
def test_ties_of_quanta_are_decided_as_in_the_slow_loop(servers):
    """Everything in whole quanta: at nearly every event a departure, an arrival and several expiries coincide."""
    rng = np.random.default_rng(servers)
    for _ in range(60):
        arrival_s, demand_s = np.sort(rng.integers(0, 16, 12)) / 4, rng.integers(0, 9, 12) / 4
        for fast, slow in both("rr", (arrival_s, demand_s, None, servers, 0.25)):
            np.testing.assert_array_equal(fast, slow)


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("quantum_s", [0.01, 0.05])
def test_many_turns_at_once_are_what_single_turns_come_to(servers, quantum_s):
    """Up to 150 slices a job, hardly any of them beside an event, and a queue nearly all the time."""
    rng = np.random.default_rng(servers)
    arrival_s, demand_s = np.cumsum(rng.exponential(1.2 / servers, 25)), rng.uniform(1.0, 2.0, 25)
    for fast, slow in both("rr", (arrival_s, demand_s, None, servers, quantum_s)):
        np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-9)


def test_a_demand_of_two_quanta_but_for_rounding_needs_two_slices():
    """No slice of 2e-16 s follows that would wait for a turn."""
    departure_s = queues.times("rr", np.zeros(2), np.array([np.nextafter(1.0, 2.0), 1.0]), 1, quantum_s=0.5)[1]
    np.testing.assert_allclose(departure_s, [1.5, 2.0])
    np.testing.assert_allclose(queues.times("rr", np.zeros(2), np.array([0.3, 0.7]), 1, quantum_s=0.1)[1], [0.5, 1.0])


@pytest.mark.parametrize("servers", [1, 3])
def test_a_short_quantum_comes_close_to_processor_sharing(servers):
    rng = np.random.default_rng(0)
    arrival_s, demand_s = np.cumsum(rng.exponential(1.9 / servers, 500)), rng.uniform(1.0, 2.0, 500)
    shared = queues.times("ps", arrival_s, demand_s, servers)[1]
    fine, coarse = (queues.times("rr", arrival_s, demand_s, servers, quantum_s=q)[1] for q in (1e-6, 0.5))
    assert np.abs(fine - shared).max() < 1e-3
    assert np.abs(coarse - shared).max() > 0.1


@each
def test_with_a_server_for_everybody_nobody_waits(policy):
    rng = np.random.default_rng(0)
    arrival_s, demand_s = np.sort(rng.uniform(0, 3, 50)), rng.exponential(size=50)
    start, departure = queues.times(policy, arrival_s, demand_s, 50, np.zeros(50, np.int64))
    np.testing.assert_array_equal(start, arrival_s)
    np.testing.assert_allclose(departure, arrival_s + demand_s, rtol=1e-14)


@each
def test_one_server_is_busy_as_long_as_somebody_is_there(policy):
    """Work conservation: with one server the ends of busy periods do not depend on the policy."""
    rng = np.random.default_rng(1)
    arrival_s, demand_s = np.cumsum(rng.exponential(1.2, 3000)), rng.exponential(size=3000)
    left, idle = 0.0, []
    for gap, demand in zip(np.diff(arrival_s, append=np.inf), demand_s, strict=True):
        left = max(left + demand - gap, 0.0)
        idle.append(left == 0.0)
    departure = queues.times(policy, arrival_s, demand_s, 1, rng.integers(0, 3, 3000))[1]
    latest = np.maximum.accumulate(departure)
    np.testing.assert_array_equal(np.append(latest[:-1] <= arrival_s[1:], True), idle)


@each
def test_no_requests_are_served_in_no_time(policy):
    start, departure = queues.times(policy, np.empty(0), np.empty(0), 2, np.empty(0, np.int64))
    assert (start.size, departure.size) == (0, 0)


@each
def test_arguments_are_left_as_they_were(policy):
    arrival_s, demand_s, classes = np.array([0.0, 0.5, 0.5]), np.array([2.0, 1.0, 0.0]), np.array([2, 1, 0])
    queues.times(policy, arrival_s, demand_s, 1, classes)
    assert (arrival_s.tolist(), demand_s.tolist(), classes.tolist()) == ([0.0, 0.5, 0.5], [2.0, 1.0, 0.0], [2, 1, 0])


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"servers": 0}, "servers is 0, at least 1 is needed"),
        ({"arrival_s": [0.0, np.nan]}, "arrival_s 1 is nan, it must be finite"),
        ({"arrival_s": [1.0, 0.5]}, "arrival 1 is earlier than the one before it"),
        ({"demand_s": [1.0, -2.0]}, "demand_s 1 is -2.0, at least 0 is needed"),
        ({"demand_s": [1.0, np.inf]}, "demand_s 1 is inf, it must be finite"),
        ({"demand_s": [1.0]}, r"demand_s has shape \(1,\), arrival_s has \(2,\)"),
        ({"demand_s": [[1.0, 1.0]]}, "demand_s has 2 dimensions, 1 is needed"),
        ({"policy": "priority"}, "priority needs the class of each request"),
        ({"policy": "priority", "priority": [1]}, r"priority has shape \(1,\), arrival_s has \(2,\)"),
        ({"policy": "rr", "quantum_s": 0.0}, "quantum_s is 0.0, it must be above 0 and finite"),
        ({"policy": "lcfs"}, "policy is one of fcfs, ps, rr, srpt, priority, got lcfs"),
    ],
)
def test_a_fault_is_named_with_its_place_and_value(arguments, fault):
    with pytest.raises(ValueError, match=f"^{fault}$"):
        queues.times(**{"policy": "fcfs", "arrival_s": [0.0, 1.0], "demand_s": [1.0, 1.0], "servers": 1} | arguments)
