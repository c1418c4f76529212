"""The data of the plan and its real-valued optimum."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.wsmeter.optimum import Problem, fits, total_cost, total_variance
from analysis.wsmeter.plan import continuous

jobs = st.lists(
    st.tuples(st.floats(0.01, 100), st.floats(0.01, 100), st.floats(1, 20), st.floats(0.1, 100)), min_size=1, max_size=8
)


@settings(deadline=None)
@given(jobs, st.floats(0.01, 0.99))
def test_the_continuous_optimum_is_in_bounds_and_equalises_the_marginal_worth(drawn, tightness):
    variance, cost, low, width = (np.array(column) for column in zip(*drawn, strict=True))
    high = low + width
    bound = np.sum(variance / high) * (1 - tightness) + np.sum(variance / low) * tightness
    share = variance / (bound * (1 + 1e-9))
    found = continuous(share, cost, low, high)
    assert np.all((found >= low) & (found <= high))
    assert np.sum(share / found) <= 1 + 1e-9
    worth = share / found**2 / cost  # variance removed per cost
    inside = (found > low * (1 + 1e-9)) & (found < high * (1 - 1e-9))
    if inside.any():
        price = worth[inside].mean()
        assert worth[inside] == pytest.approx(price, rel=1e-6)
        assert np.all(worth[found <= low] <= price * (1 + 1e-6))
        assert np.all(worth[found >= high] >= price * (1 - 1e-6))
        assert np.sum(share / found) == pytest.approx(1, rel=1e-6)


def test_a_bound_that_the_minimum_meets_costs_the_minimum():
    found = continuous(np.array([1.0, 2.0]), np.ones(2), np.array([4.0, 4.0]), np.array([9.0, 9.0]))
    assert found.tolist() == [4.0, 4.0]


@given(st.lists(st.integers(0, 10**30), min_size=1, max_size=6), st.integers(0, 60))
def test_totals_are_exact_and_spread_steps_evenly(variances, further):
    k = len(variances)
    low, count, steps = np.arange(1, k + 1), np.full(k, 3), np.full(k, further)
    problem = Problem(tuple(variances), 7, tuple(range(k)), low, low + 20, count)
    each = [[low[i] + (further + job) // 3 for job in range(3)] for i in range(k)]
    expected = sum(Fraction(v, 7 * int(n)) for v, row in zip(variances, each, strict=True) for n in row)
    assert total_variance(problem, steps) == expected
    assert total_cost(problem, steps) == sum(i * sum(row) for i, row in enumerate(each))
    assert fits(problem, steps) == (expected <= 1)


def test_the_bound_is_inclusive_to_the_last_digit():
    def one_job(bound):
        return Problem((10**40,), bound, (1,), low=np.array([4]), high=np.array([9]), count=np.array([1]))

    assert fits(one_job(10**40 // 4), np.array([0]))
    assert not fits(one_job(10**40 // 4 - 1), np.array([0]))
