"""Stations with limits: the compiled kernel and its readable twin agree event by event."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.queues.limited import RULES, Autoscaling, serve_limited
from models.queues.policies import LIMITED, PATIENT
from models.queues.serve import ChangingRates
from sim.queues import readable_limited

SCALING = ("schedule", *RULES)


def agree(policy, arrival_s, demand_s, servers, **given):
    """What both say of every attempt, and of the servers; until the last request has left."""
    fast = serve_limited(policy, arrival_s, demand_s, servers, **given)
    slow = readable_limited.serve_limited(policy, arrival_s, demand_s, servers, **given)
    np.testing.assert_array_equal(fast.outcome, slow.outcome)
    for name in ("arrival_s", "start_s", "departure_s", "work_s"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=0, atol=1e-9, err_msg=name)
    end_s = np.nanmax(fast.departure_s, initial=0.0)
    rows = [
        np.column_stack([course.time_s, course.on, course.starting])[course.time_s < end_s - 1e-6]
        for course in (fast.servers, slow.servers)
    ]
    np.testing.assert_allclose(*rows, rtol=0, atol=1e-9)
    return fast


def drawn(policy, seed, n, unit, servers, *, pooled=False):
    """Requests at 1.2 times what the servers can do, some in sessions, in multiples of a unit if there is one.

    Under processor sharing time is split in thirds, so that a float grid has no exact ties.
    """
    unit = 0.0 if policy == "ps" else unit
    rng = np.random.default_rng(seed)
    after = np.where(rng.random(n) < 0.3, np.arange(n) - 1, -1)
    after[:1] = -1

    def times(mean_s, shape=(n,)):
        drawn_s = rng.exponential(mean_s, shape)
        return np.round(drawn_s / unit) * unit if unit else drawn_s

    arrival_s = np.where(after < 0, np.cumsum(times(1 / (1.2 * servers))), np.nan)
    extra = {"after": after, "think_s": times(1.0), "priority": rng.integers(0, 3, n), "return_s": times(2.0, (2, n))}
    extra |= {"choice": rng.random(3 * n), "capacity": int(rng.integers(servers, 3 * servers + 2))}
    if policy == "ps" and pooled:
        extra["threads"] = 2 * servers + int(rng.integers(0, 3))  # as many as there may be servers, or a few more
    if policy in PATIENT or "threads" in extra:
        extra["patience_s"] = times(1.0, (3, n))
    if rng.random() < 0.7:
        extra["timeout_s"] = times(2.0, (3, n))
    return arrival_s, times(1.0), extra


def changing(way, seed, servers, unit):
    """Servers by a schedule or by a rule, some of which takes time to start."""
    rng = np.random.default_rng([seed, 1])
    start_up_s = float(rng.integers(0, 3)) * (unit or 0.7)
    if way == "schedule":
        steps = [(2.0 * (i + 1), int(rng.integers(1, 2 * servers + 1))) for i in range(8)]
        return {"schedule": steps, "start_up_s": start_up_s}
    target = {"utilisation": 0.7, "present": 1.5, "queueing": 0.3, "law": 0.3}[way]
    rule = Autoscaling(way, target, look_s=1.0, least=1, most=2 * servers, hold=int(rng.integers(1, 4)))
    return {"autoscaling": rule, "start_up_s": start_up_s}


@pytest.mark.parametrize("policy", LIMITED)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), servers=st.integers(1, 4), unit=st.sampled_from([0.0, 0.25]))
def test_the_kernel_and_its_twin_agree_on_refusals_and_on_who_gives_up(policy, seed, servers, unit):
    arrival_s, demand_s, extra = drawn(policy, seed, 30, unit, servers)
    agree(policy, arrival_s, demand_s, servers, **extra)


@pytest.mark.parametrize("way", SCALING)
@example(policy="fcfs", seed=3, servers=1, unit=0.25)  # nothing but demands of 0 is served until the first look
@settings(max_examples=12)
@given(
    policy=st.sampled_from(LIMITED),
    seed=st.integers(0, 2**32),
    servers=st.integers(1, 4),
    unit=st.sampled_from([0.0, 0.25]),
)
def test_the_kernel_and_its_twin_agree_while_servers_come_and_go(policy, way, seed, servers, unit):
    arrival_s, demand_s, extra = drawn(policy, seed, 30, unit, servers)
    agree(policy, arrival_s, demand_s, servers, **extra, **changing(way, seed, servers, unit))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), servers=st.integers(1, 4), way=st.sampled_from(["", *SCALING]))
def test_the_kernel_and_its_twin_agree_on_pools_of_threads_with_limits(seed, servers, way):
    arrival_s, demand_s, extra = drawn("ps", seed, 40, 0.0, servers, pooled=True)
    extra["capacity"] += 3 * servers
    agree("ps", arrival_s, demand_s, servers, **extra, **(changing(way, seed, servers, 0.0) if way else {}))


def speeds(seed, most):
    """Rates that change with time, with how many work and, if there are looks, with how many were seen at work."""
    rng = np.random.default_rng([seed, 2])
    steps, rows = int(rng.integers(1, 5)), int(rng.integers(1, most + 3))
    factor = rng.uniform(0.4, 1.3, (steps, rows, most))
    start_s = np.sort(rng.uniform(0.0, 12.0, steps))
    return ChangingRates(factor * np.arange(1, most + 1), start_s, 0.7 if rows > 1 else np.inf)


@pytest.mark.parametrize("policy", LIMITED)
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32), servers=st.integers(1, 4), way=st.sampled_from(["", *SCALING]), pooled=st.booleans())
def test_the_kernel_and_its_twin_agree_on_servers_whose_speed_changes(policy, seed, servers, way, pooled):
    arrival_s, demand_s, extra = drawn(policy, seed, 30, 0.0, servers, pooled=pooled)
    extra["capacity"] += 2 * servers
    scaling = changing(way, seed, servers, 0.0) if way else {}
    most = 2 * servers if "autoscaling" in scaling else max([servers, *(k for _, k in scaling.get("schedule", ()))])
    agree(policy, arrival_s, demand_s, servers, **extra, **scaling, rates=speeds(seed, most))
