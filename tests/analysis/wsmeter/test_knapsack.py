"""Both knapsack solvers against each other and against all combinations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.wsmeter import optimum
from analysis.wsmeter.optimum import Knapsack, prove, sweep

items = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 3)), min_size=1, max_size=6)


def make(drawn, share, ceiling=10**6):
    cost, gain, count = (np.array(column) for column in zip(*drawn, strict=True))
    return Knapsack(cost, gain, count, int(share * (gain @ count)), 0, ceiling, 0.0)


def by_all_combinations(problem):
    ranges = [range(count + 1) for count in problem.count]
    costs = [problem.cost @ x for x in product(*ranges) if problem.gain @ x >= problem.need]
    return min((cost for cost in costs if cost <= problem.ceiling), default=None)


@settings(deadline=None)
@given(items, st.floats(0.05, 1))
def test_the_sweep_with_reduced_costs_is_exact(drawn, share):
    problem = make(drawn, share)
    price = np.median(problem.cost / problem.gain)
    reduced = problem.cost - price * problem.gain
    taken = np.where(reduced < 0, problem.count, 0)
    lower = problem.cost @ taken + price * (problem.need - problem.gain @ taken)
    chosen, complete = sweep(problem, taken, np.abs(reduced), problem.ceiling - lower)
    least = by_all_combinations(problem)
    assert complete
    if problem.gain @ taken < problem.need:
        assert problem.cost @ chosen == least
    else:
        assert min(problem.cost @ taken, np.inf if chosen is None else problem.cost @ chosen) == least


@settings(deadline=None, max_examples=50)
@given(items, st.floats(0, 1), st.integers(0, 300))
def test_cp_sat_finds_the_cheapest_or_proves_that_there_is_none(drawn, share, ceiling):
    problem = make(drawn, share, ceiling)
    chosen, proven = prove(problem, 10.0)
    least = by_all_combinations(problem)
    assert proven
    assert (None if chosen is None else problem.cost @ chosen) == least
    assert chosen is None or problem.gain @ chosen >= problem.need


def test_a_sweep_that_drops_combinations_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    weight = rng.integers(10**6, 10**7, 30)
    problem = Knapsack(weight, weight, np.ones(30, int), int(weight.sum() // 2), 0, 10**9, 0.0)
    start, loss = np.zeros(30, int), np.zeros(30)
    monkeypatch.setattr(optimum, "STATES", 64)
    chosen, complete = sweep(problem, start, loss, 1e9)
    assert not complete
    assert weight @ chosen == pytest.approx(problem.need, rel=1e-3)
