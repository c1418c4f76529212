"""Whole numbers of instances: cores, proofs and what happens when they fail."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.wsmeter import optimum
from analysis.wsmeter.optimum import Problem, fits, least_cost, total_cost

problems = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 40), st.integers(1, 4), st.integers(0, 6)), min_size=1, max_size=4
)


def make(drawn, tightness):
    """Return a problem whose bound lies between what most and fewest instances leave."""
    variance, cost, low, width = zip(*drawn, strict=True)
    low, high = np.array(low), np.array(low) + np.array(width)
    most = sum(v / n for v, n in zip(variance, low.tolist(), strict=True))
    least = sum(v / n for v, n in zip(variance, high.tolist(), strict=True))
    bound = 1000 * (least + tightness * (most - least)) + 1
    return Problem(tuple(1000 * v for v in variance), int(bound) + 1, cost, low, high, np.ones(len(low), int))


def by_brute_force(problem):
    choices = product(*(range(low, high + 1) for low, high in zip(problem.low, problem.high, strict=True)))
    within = (n for n in choices if sum(v / k for v, k in zip(problem.variance, n, strict=True)) <= problem.bound)
    return min(sum(c * k for c, k in zip(problem.cost, n, strict=True)) for n in within)


def check(problem):
    found = least_cost(problem)
    steps = found.instances - problem.low
    assert np.all((steps >= 0) & (found.instances <= problem.high))
    assert fits(problem, steps)
    assert found.optimal
    assert total_cost(problem, steps) == by_brute_force(problem)


@settings(deadline=None, max_examples=200)
@given(problems, st.floats(0, 1))
def test_the_cheapest_allocation_is_found(drawn, tightness):
    check(make(drawn, tightness))


@settings(deadline=None, max_examples=100)
@given(problems, st.floats(0, 1))
def test_the_sweep_alone_proves_it_too(drawn, tightness):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "SMALL", 0)
        check(make(drawn, tightness))


@settings(deadline=None, max_examples=100)
@given(problems, st.floats(0, 1))
def test_cp_sat_alone_proves_it_too(drawn, tightness):
    def nothing(knapsack, taken, loss, spare):
        return None, False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "sweep", nothing)
        check(make(drawn, tightness))


def lumpy():
    """Return a problem whose price leaves a gap: one job's steps are much coarser than the others'."""
    rng = np.random.default_rng(4)
    variance = tuple(int(v) for v in [10**9, *rng.integers(10**3, 10**5, 30)])
    cost = tuple(int(c) for c in [10**6, *rng.integers(100, 1000, 30)])
    low, high = np.full(31, 4), np.full(31, 40)
    return Problem(variance, 101 * 10**6, cost, low, high, np.ones(31, int))


def test_without_a_proof_the_allocation_is_feasible_and_not_called_optimal(monkeypatch):
    monkeypatch.setattr(optimum, "sweep", lambda *_: (None, False))
    monkeypatch.setattr(optimum, "prove", lambda *_: (None, False))
    found = least_cost(lumpy())
    assert fits(lumpy(), found.instances - 4)
    assert not found.optimal


@settings(deadline=None, max_examples=200)
@given(problems, st.floats(0, 1))
def test_a_core_that_is_not_whole_proves_nothing(drawn, tightness):
    problem = make(drawn, tightness)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "CORES", (1,))
        found = least_cost(problem)
    cost = total_cost(problem, found.instances - problem.low)
    assert fits(problem, found.instances - problem.low)
    assert cost == by_brute_force(problem) if found.optimal else cost >= by_brute_force(problem)


def test_cp_sat_is_not_believed_about_steps_outside_its_core(monkeypatch):
    best = total_cost(lumpy(), least_cost(lumpy()).instances - 4)
    monkeypatch.setattr(optimum, "CORES", (16,))
    monkeypatch.setattr(optimum, "sweep", lambda *_: (None, False))
    found = least_cost(lumpy())
    assert total_cost(lumpy(), found.instances - 4) > best
    assert not found.optimal


def test_what_only_rounding_lets_in_is_not_accepted(monkeypatch):
    answers = iter([0, 1])

    def too_little_then_everything(knapsack, effort_s):
        return next(answers) * knapsack.count, True

    monkeypatch.setattr(optimum, "sweep", lambda knapsack, *_: (0 * knapsack.count, True))
    monkeypatch.setattr(optimum, "prove", too_little_then_everything)
    found = least_cost(lumpy())
    assert next(answers, None) is None
    assert fits(lumpy(), found.instances - 4)
    assert not found.optimal


def test_a_bound_out_of_reach_is_refused():
    with pytest.raises(ValueError, match="exceeded even with all instances"):
        least_cost(Problem((10,), 1, (1,), low=np.array([4]), high=np.array([9]), count=np.array([1])))


def test_costs_far_beyond_64_bits_are_solved():
    rng = np.random.default_rng(5)
    cost = tuple(int(c) * 10**30 + int(c) for c in rng.integers(1, 10**6, 50))
    variance = tuple(int(v) * 10**40 for v in rng.integers(1, 10**6, 50))
    problem = Problem(variance, 10**46, cost, np.full(50, 1), np.full(50, 60), np.ones(50, int))
    found = least_cost(problem)
    assert found.optimal
    assert fits(problem, found.instances - 1)
