"""The course of a series over time beside what was expected had nothing changed, with what chance makes of it."""

import numpy as np
import pandas as pd

from analysis.profiling.changes.detection import SeriesChange
from analysis.profiling.changes.segments import Segments, by_hour
from analysis.profiling.changes.series import Clock, CountSeries

_MOST_STEPS = 48
_QUANTILE = 1.96
MOST_LOG = 690.0
"""Logarithm of the largest factor that is told; decimal numbers end a little later."""


def course(series: CountSeries, change: SeriesChange) -> pd.DataFrame:
    """Return what was sampled of a series over what each stratum's share before a change makes one expect.

    Strata without samples before the change are left out: nothing is known of their share. Hours of the day have the
    season that is learnt outside the change.

    Parameters
    ----------
    series : the counts in which the change was found
    change : of one of them

    Returns
    -------
    table of at most some 50 rows
        start_s, ratio, low, high: equal steps of time; ends of 95% intervals without regard to the days' drift. NaN
        where nothing was sampled of anything.
    """
    cells, exposure, clock = series.of(change.series), series.exposure, series.clock
    bins = np.arange(clock.bins)
    before = bins < change.start
    outside = before | (bins >= (clock.bins if change.end is None else change.end))
    total = exposure.sum(axis=0)
    usual = by_hour(cells.sum(axis=0), total, clock.period, outside.astype(np.float64))
    seasonal = exposure * (usual / np.maximum(total, 1e-300))
    known = seasonal[:, before].sum(axis=1) > 0
    share = cells[known][:, before].sum(axis=1) / seasonal[known][:, before].sum(axis=1)
    edges = np.arange(0, clock.bins, _step(clock))
    observed, expected = (
        np.add.reduceat(values, edges) for values in (cells[known].sum(axis=0), share @ seasonal[known])
    )
    levels = Segments(edges.astype(np.int64), observed, expected)
    dispersion = series.noise.over_days(change.series)
    middle, half = levels.log_level, _QUANTILE * levels.error(dispersion)
    sampled = np.where(expected > 0, 1.0, np.nan)
    return pd.DataFrame(
        {
            "start_s": [clock.start_s(int(at)) for at in edges],
            "ratio": np.exp(np.minimum(middle, MOST_LOG)) * sampled,
            "low": np.exp(np.minimum(middle - half, MOST_LOG)) * sampled,
            "high": np.exp(np.minimum(middle + half, MOST_LOG)) * sampled,
        }
    )


def _step(clock: Clock) -> int:
    """Return how many bins a step has: a part of a day, or a number of days."""
    least = -(-clock.bins // _MOST_STEPS)
    if least > clock.day:
        return -(-least // clock.day) * clock.day
    return next(step for step in range(least, clock.day + 1) if clock.day % step == 0)
