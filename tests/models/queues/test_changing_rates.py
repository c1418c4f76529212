"""A station whose speed depends on time and on how many are busy: its SimPy twin, theory, and today's queue."""

import math

import numpy as np
import pytest

from models.queues.policies import POLICIES
from models.queues.serve import ChangingRates, serve
from sim.queues import readable

each = pytest.mark.parametrize("policy", POLICIES)
BUSY = np.arange(1, 4)


def drawn(seed, n, servers):
    """Sessions with thinking between requests, at a utilisation of about 0.8, some at whole seconds."""
    rng = np.random.default_rng(seed)
    after = np.where(rng.random(n) < 0.3, np.arange(n) - 1, -1)
    after[0] = -1
    at_s = np.cumsum(rng.exponential(1.25 / servers, n))
    at_s[::7] = np.floor(at_s[::7])
    arrival_s = np.where(after < 0, np.maximum.accumulate(at_s), np.nan)
    extra = {"after": after, "think_s": rng.exponential(2, n), "priority": rng.integers(0, 3, n)}
    return arrival_s, rng.exponential(1, n), extra | {"choice": rng.random(n)}


def changing(seed, steps, servers, look_s):
    """Rates that sag with the number busy, more or less from step to step and by who was seen busy."""
    rng = np.random.default_rng(seed)
    busy = np.arange(1, servers + 1)
    sag = rng.uniform(0.0, 0.15, (steps, servers + 1, 1))
    return ChangingRates(busy * (1.2 - sag * busy), np.arange(steps) * 7.5, look_s)


@each
@pytest.mark.parametrize("look_s", [1.0, math.inf])
def test_compiled_and_readable_queue_serve_alike_while_the_pace_changes(policy, look_s):
    for seed in range(3):
        arrival_s, demand_s, extra = drawn(seed, 120, 3)
        rates = changing(seed, 5, 3, look_s)
        done = serve(policy, arrival_s, demand_s, 3, **extra, quantum_s=0.3, rates=rates)
        twin = readable.serve(policy, arrival_s, demand_s, 3, **extra, quantum_s=0.3, rates=rates)
        for name in ("arrival_s", "start_s", "departure_s"):
            np.testing.assert_allclose(getattr(done, name), getattr(twin, name), rtol=0, atol=1e-9)
        np.testing.assert_array_equal(np.argsort(done.departure_s), np.argsort(twin.departure_s))


@each
def test_a_pace_that_never_changes_is_no_pace(policy):
    arrival_s, demand_s, extra = drawn(3, 300, 3)
    plain = serve(policy, arrival_s, demand_s, 3, **extra, rates=BUSY)
    still = serve(policy, arrival_s, demand_s, 3, **extra, rates=ChangingRates(BUSY[None, None], np.zeros(1)))
    looked = ChangingRates(np.tile(BUSY, (9, 4, 1)), np.arange(9) * 5.0, 1.0)
    frozen = serve(policy, arrival_s, demand_s, 3, **extra, rates=looked)
    np.testing.assert_array_equal(still.departure_s, plain.departure_s)
    np.testing.assert_allclose(frozen.departure_s, plain.departure_s, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(np.argsort(frozen.departure_s), np.argsort(plain.departure_s))


def test_a_step_slows_whoever_is_in_service():
    rates = ChangingRates(np.array([[[1.0]], [[0.5]]]), np.array([0.0, 2.0]))
    for policy in POLICIES:
        done = serve(policy, [0.0], [3.0], 1, rates=rates, priority=[0], choice=[0.0], quantum_s=10.0)
        assert done.departure_s == pytest.approx([4.0])


def test_a_look_counts_who_is_busy_after_departures_and_before_arrivals():
    """Requests come at 0, 1 and 2; at 1 the first has just left, so that nobody is seen, and at 2 one is."""
    rates = ChangingRates(np.array([[[1.0, 2.0], [0.5, 1.0]]]), np.zeros(1), 1.0)
    done = serve("fcfs", [0.0, 1.0, 2.0], [1.0, 2.0, 1.0], 2, rates=rates)
    assert done.departure_s == pytest.approx([1.0, 4.0, 4.0])


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("policy", "shape"), [("fcfs", 1.0), ("ps", 1.0), ("lcfs_pr", 1.0), ("ps", 0.25), ("ps", 4.0), ("ps", math.inf)]
)
def test_rates_by_number_busy_give_the_birth_and_death_chain(policy, shape):
    """With n present the chain leaves n at λ and at μ(n): solved here by its balance equations, 20 seeds each.

    Of shared servers it holds for demands of any distribution (M/G/k, Cohen 1979): gamma of a shape, ∞: all of 1.
    """
    rates, arrivals, states = np.array([1.0, 1.7, 2.1, 2.2]), 1.6, 400
    leave = rates[np.minimum(np.arange(1, states), 4) - 1]
    weight = np.concatenate([[1.0], np.cumprod(arrivals / leave)])
    present = (np.arange(states) * weight).sum() / weight.sum()
    means = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        arrival_s = np.cumsum(rng.exponential(1 / arrivals, 20_000))
        demand_s = np.ones(20_000) if shape == math.inf else rng.gamma(shape, 1 / shape, 20_000)
        choice = rng.random(20_000)
        table = ChangingRates(np.tile(rates, (1, 5, 1)), np.zeros(1), 5.0)
        done = serve(policy, arrival_s, demand_s, 4, rates=table, choice=choice)
        means.append((done.departure_s - arrival_s)[2_000:].mean() * arrivals)
    error = np.std(means, ddof=1) / math.sqrt(20)
    assert np.mean(means) == pytest.approx(present, abs=4 * error)
    assert error < 0.03 * present


@each
def test_work_done_is_the_integral_of_the_rate(policy):
    arrival_s, demand_s, extra = drawn(5, 200, 3)
    rates = changing(5, 6, 3, math.inf)
    done = serve(policy, arrival_s, demand_s, 3, **extra, rates=rates)
    time_s = np.unique(np.concatenate([done.arrival_s, done.departure_s, rates.start_s]))
    here = (done.arrival_s <= time_s[:-1, None]).sum(axis=1) - (done.departure_s <= time_s[:-1, None]).sum(axis=1)
    step = np.searchsorted(rates.start_s, time_s[:-1], side="right") - 1
    rate = np.where(here > 0, rates.rates[step, 0, np.minimum(here, 3) - 1], 0.0)
    assert (rate * np.diff(time_s)).sum() == pytest.approx(demand_s.sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((np.ones((2, 1, 3)), np.zeros(1)), "must be \\(s, m, k\\) and \\(s,\\)"),
        ((np.zeros((1, 1, 3)), np.zeros(1)), "positive and finite, the least is 0.0"),
        ((np.ones((2, 1, 3)), np.zeros(2)), "start_s must increase"),
        ((np.ones((1, 1, 3)), np.zeros(1), 0.0), "look_s be positive"),
    ],
)
def test_rates_that_cannot_be_are_refused(arguments, problem):
    with pytest.raises(ValueError, match=problem):
        ChangingRates(*arguments)


def test_rates_are_for_all_servers():
    with pytest.raises(ValueError, match="rates are for up to 3 servers, must be for 2"):
        serve("ps", [0.0], [1.0], 2, rates=ChangingRates(BUSY[None, None], np.zeros(1)))
