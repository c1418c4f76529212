"""Compiled sums against NumPy's own: of cells by job, and the moments of each arm's machines."""

import numpy as np
import pytest

from analysis.effects import moments


def test_sums_by_job_are_those_of_bincount():
    rng = np.random.default_rng(1)
    job, value = rng.integers(0, 5, 40), rng.standard_normal((40, 3))
    made = moments.by_job(job, value, 7)
    assert made.shape == (7, 3)
    for k in range(3):
        assert made[:, k] == pytest.approx(np.bincount(job, value[:, k], 7))


def test_moments_are_numpys_covariances_of_linearised_machines():
    rng = np.random.default_rng(2)
    values, treated = rng.uniform(1.0, 2.0, (30, 5)), rng.random((4, 30)) < 0.4
    out = np.empty((4, 2, 6))
    moments.moments(values, treated, out)
    for draw, made in zip(treated, out, strict=True):
        for arm, chosen in enumerate((~draw, draw)):
            above, below = values[chosen, arm], values[chosen, 2]
            before, below_before = values[chosen, 3], values[chosen, 4]
            now = (above - above.sum() / below.sum() * below) / below.mean()
            past = (before - before.sum() / below_before.sum() * below_before) / below_before.mean()
            spread = np.cov(now, past)
            expected = [chosen.sum(), above.sum() / below.sum(), before.sum() / below_before.sum()]
            assert made[arm] == pytest.approx([*expected, spread[0, 0], spread[1, 1], spread[0, 1]], rel=1e-12)


def test_machines_without_a_past_have_none():
    values = np.array([[1.0, 1.0, 1.0, 0.0, 0.0], [2.0, 2.0, 1.0, 0.0, 0.0], [3.0, 3.0, 1.0, 5.0, 5.0]])
    out = np.empty((1, 2, 6))
    moments.moments(values, np.array([[True, True, False]]), out)
    assert out[0, 1, [moments.PAST, moments.BEFORE, moments.BOTH]].tolist() == [0.0, 0.0, 0.0]
    assert out[0, 1, moments.RATIO] == pytest.approx(1.5)


def test_a_job_without_a_control_instance_is_not_covered():
    """Job 1 is on treated machines only: its values decide nothing, however odd."""
    cells = moments.JobCells(
        start=np.array([0, 2, 4, 5, 6]),
        job=np.array([0, 1, 0, 1, 0, 0]),
        instances=np.array([2, 2, 2, 2, 2, 2]),
        values=np.array([[2.2, 2.5, 2.0]] * 6) * np.array([[1.0], [9.0], [1.0], [9.0], [1.0], [1.0]]),
        weight=np.array([1.0, 5.0]),
        level=np.ones(2),
    )
    out = np.empty((2, 2))
    moments.covered(cells, np.array([[True, True, False, False], [False, False, False, False]]), 4, True, out)
    assert out[0, 0] == pytest.approx(0.1)
    assert np.isnan(out[1]).all()
