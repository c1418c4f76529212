"""Counters that stand some rows off their requests are told; those that stand right never are."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.crossplatform.alignment import shifted_columns
from analysis.crossplatform.evidence import ServiceLog


def log(rng, n=120, noise=0.05, smooth=True):
    """A log of three types whose rates wander, or are steady, and noisy counters."""
    wander = np.cumsum(rng.normal(0, 0.1, (n, 3)), axis=0) if smooth else np.zeros((n, 3))
    counts = rng.poisson(np.exp(np.log([800.0, 300.0, 100.0]) + wander)).astype(float)
    columns = [
        counts @ costs * rng.lognormal(0, noise, n) for costs in ([1.0, 4.0, 9.0], [2.0, 1.0, 5.0], [3.0, 2.0, 8.0])
    ]
    starts = 30.0 * np.arange(n)
    return ServiceLog(
        ("a", "b", "c"),
        30.0,
        starts,
        counts,
        1e6 * columns[0],
        1e3 * np.column_stack(columns[1:2]),
        np.full(n, np.nan),
        columns[2] / 2e4,
    )


@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
def test_what_stands_some_rows_off_is_told(shift):
    told = 0
    for seed in range(20):
        right = log(np.random.default_rng(seed))
        columns = shifted_columns(replace(right, utilisation=np.roll(right.utilisation, shift)))
        assert all(column.column == "utilisation" and column.intervals == shift for column in columns)
        told += len(columns)
    assert told >= 18


@pytest.mark.parametrize("smooth", [True, False], ids=["wandering", "steady"])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.5])
def test_nothing_is_told_of_rows_that_are_right(smooth, noise):
    """Never in 3,600 columns each of 30, 60 and 120 rows: a false alarm is rarer than one column in 1,200 (95%)."""
    for seed in range(10):
        assert shifted_columns(log(np.random.default_rng([seed, 1]), smooth=smooth, noise=noise)) == ()
        assert shifted_columns(log(np.random.default_rng([seed, 2]), n=30, smooth=smooth, noise=noise)) == ()


def test_rows_that_are_missing_are_not_neighbours():
    right = log(np.random.default_rng(3))
    late = replace(right, instructions=np.roll(right.instructions, 1))
    rows = np.sort(np.random.default_rng(4).permutation(120)[:90])
    assert [(column.column, column.intervals) for column in shifted_columns(late.taken(rows))] == [("instructions", 1)]
    assert shifted_columns(late.taken(slice(0, 20))) == ()
    assert shifted_columns(replace(right, utilisation=np.full(120, np.nan))) == ()
