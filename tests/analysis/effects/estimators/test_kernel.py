"""The compiled parts of `adjusted`: variance between jobs, what jobs count for, clustered errors."""

import numpy as np
import pytest

from analysis.effects.estimators import kernel
from analysis.effects.estimators.kernel import Errors, standard_error


@pytest.mark.statistical
def test_the_variance_between_jobs_is_found():
    """Mean over 400 sets of 40 jobs: off by a tenth in fewer than 1 of 10,000 seeds."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(400):
        variance = rng.uniform(0.2, 2.0, 40)
        effect = 1.0 + rng.standard_normal(40) * np.sqrt(0.5 + variance)
        found.append(kernel._between(effect, variance, np.ones(40), rng.uniform(0.1, 5.0, 40)))
    assert np.mean(found) == pytest.approx(0.5, rel=0.1)


def test_one_job_shows_no_variance_between_jobs():
    assert kernel._between(np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.ones(2), np.ones(2)) < 1e-9


@pytest.mark.parametrize("pooling", [kernel.NONE, kernel.SHRUNKEN, kernel.RANDOM])
def test_gains_sum_to_one_whatever_is_seen(pooling):
    weight, variance = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.1, 0.0, 3.0, 0.5])
    effect = np.array([0.3, 0.0, 0.2, 0.1])
    gain, trust, middle = kernel._pooled(effect, variance, weight, 0.2, pooling)
    assert gain.sum() == pytest.approx(1.0)
    assert gain[1] == trust[1] == 0.0
    assert 0.1 <= middle <= 0.3
    if pooling == kernel.SHRUNKEN:
        fitted = middle + trust * (effect - middle)
        assert (gain * effect).sum() == pytest.approx((weight / 10 * fitted).sum())


def error(squares, clusters, left=0.0, few=False, known=False):
    return standard_error(np.array(squares), np.array(clusters), left, Errors(0.5, few, known, split=False))


def test_degrees_of_freedom_are_never_fewer_than_those_of_the_smaller_arm_nor_more_than_of_both():
    for other in (1e-9, 1.0, 1e9):
        _, freedom = error([other, 1.0], [3.0, 50.0])
        assert 2.0 - 1e-9 <= freedom <= 51.0 + 1e-9
    assert error([1e9, 1.0], [3.0, 50.0])[1] == pytest.approx(2.0)
    assert error([1e-9, 1.0], [3.0, 50.0])[1] == pytest.approx(49.0)
    assert error([4.0, 4.0], [11.0, 11.0])[1] == pytest.approx(20.0)


def test_errors_add_up_over_arms_and_what_is_left():
    assert error([1.0, 2.0], [5.0, 9.0], left=6.0)[0] == pytest.approx(3.0)
    assert error([1.0, 2.0], [5.0, 9.0], few=True)[0] ** 2 == pytest.approx(1.25 + 2.25)
    assert error([1.0, 4.0], [5.0, 9.0], known=True) == pytest.approx((2.0, 8.0))


def test_one_cluster_is_no_answer_unless_its_arm_is_not_needed():
    assert np.isnan(error([1.0, 1.0], [1.0, 9.0])).all()
    assert np.isnan(error([1.0, 1.0], [9.0, 1.0])).all()
    assert np.isfinite(error([0.0, 1.0], [0.0, 9.0], known=True)).all()
    assert error([0.0, 0.0], [9.0, 9.0])[0] == 0.0


def test_sums_by_job_are_those_of_bincount():
    rng = np.random.default_rng(1)
    job, value = rng.integers(0, 5, 40), rng.standard_normal((40, 3))
    sums = kernel.by_job(job, value, 7)
    assert sums.shape == (7, 3)
    for k in range(3):
        assert sums[:, k] == pytest.approx(np.bincount(job, value[:, k], 7))
