"""Small systems are solved as LAPACK solves them."""

import numpy as np
import pytest

from analysis.effects.linear_systems import solved


@pytest.mark.parametrize("size", range(1, 8))
def test_solutions_are_those_of_lapack(size):
    """Matrices neither symmetric nor with large diagonals, some with a zero where the first pivot would be."""
    rng = np.random.default_rng(size)
    for number in range(50):
        square, right = rng.standard_normal((size, size)), rng.standard_normal(size)
        if size > 1 and number % 2:
            square[0, 0] = 0.0
        expected = np.linalg.solve(square, right)
        np.testing.assert_allclose(solved(square, right), expected, rtol=1e-8, atol=1e-10 * np.linalg.cond(square))


def test_an_unknown_that_no_equation_holds_is_zero():
    square = np.array([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [2.0, 0.0, 3.0]])
    np.testing.assert_allclose(solved(square, np.array([8.0, 0.0, 8.0])), [1.0, 0.0, 2.0])
