import numpy as np
import pytest

from analysis.crossplatform.least_squares import DecomposedDesign, nearest, posterior


def test_what_the_rows_tell_is_solved_and_the_rest_is_projected_on():
    rng = np.random.default_rng(1)
    first, second = rng.uniform(1, 9, 30), rng.uniform(1, 9, 30)
    rows = np.column_stack([first, second, first, np.zeros(30)])
    design = DecomposedDesign.of(rows)
    coefficients, error = design.solve(3 * first + 5 * second)
    assert design.rank == 2
    assert design.condition_number(3) == np.inf
    np.testing.assert_allclose(coefficients, [1.5, 5.0, 1.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(error, 0.0, atol=1e-9)
    half = np.array([1.0, 0.0, -1.0, 0.0]) / np.sqrt(2)
    np.testing.assert_allclose(design.untold(), np.outer(half, half) + np.diag([0.0, 0.0, 0.0, 1.0]), atol=1e-9)


def test_the_condition_number_is_that_of_columns_of_length_one_whatever_their_units():
    rows = np.random.default_rng(2).uniform(0, 1, (50, 3))
    expected = np.linalg.cond(rows / np.linalg.norm(rows, axis=0))
    assert DecomposedDesign.of(rows * [1.0, 1e6, 1e-6]).condition_number(3) == pytest.approx(expected)


def test_fewer_rows_than_columns_leave_the_others_untold():
    design = DecomposedDesign.of(np.array([[1.0, 0.0, 0.0]]))
    np.testing.assert_allclose(design.untold(), np.diag([0.0, 1.0, 1.0]), atol=1e-12)


def test_the_posterior_is_that_of_the_spread_whose_evidence_written_out_is_greatest():
    rng = np.random.default_rng(3)
    rows = rng.uniform(0, 1, (25, 4))
    beyond = rng.normal(rows @ np.array([1.0, -2.0, 0.5, 0.0]), 0.7)

    def evidence(spread):
        covariance = 0.49 * np.eye(25) + spread**2 * rows @ rows.T
        return -np.linalg.slogdet(covariance)[1] - beyond @ np.linalg.solve(covariance, beyond)

    spread = max(np.geomspace(0.05, 5.0, 21), key=evidence)
    covariance = np.linalg.inv(rows.T @ rows / 0.49 + np.eye(4) / spread**2)
    mean, found = posterior(rows, beyond, 1.0, 0.7)
    np.testing.assert_allclose(found, covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mean, covariance @ rows.T @ beyond / 0.49, rtol=1e-9)


def test_the_nearest_is_no_farther_than_any_of_a_grid():
    gram = np.array([[2.0, 1.5], [1.5, 3.0]])
    wanted = np.array([-1.0, 2.0])
    found = nearest(gram, wanted)

    def distance(point):
        return (point - wanted) @ gram @ (point - wanted)

    grid = np.stack(np.meshgrid(np.linspace(0, 3, 61), np.linspace(0, 3, 61)), axis=-1).reshape(-1, 2)
    assert (found >= 0).all()
    assert distance(found) <= min(map(distance, grid)) + 1e-12


def test_what_is_not_negative_stays_as_it_is():
    wanted = np.array([0.0, 2.0])
    np.testing.assert_array_equal(nearest(np.eye(2), wanted), wanted)
