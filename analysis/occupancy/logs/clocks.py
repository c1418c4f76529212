"""What stamps tell of the clocks behind them: resolution, departures before arrivals, drift."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau, theilslopes

from models.arrays import Floats, Ints

WINDOWS = 40
"""Stretches of the log whose least response times are compared."""
LEVEL = 1e-4
"""Level of the test for a trend."""
MATERIAL = 0.05
"""A drift over the whole log is worth a finding from this part of the median response time on."""
_SAMPLE = 100_000
_ROUNDING_S = 5e-7
"""Seconds since 1970 are floats with a last digit of a quarter of a microsecond."""
_UNITS_S = (60.0, 1.0, 0.1, 0.01, 1e-3)


@dataclass(frozen=True, slots=True)
class Drift:
    """How the least response times change over a log: by so much per second, and how rare that is by chance."""

    per_second: float
    whole_s: float
    p_value: float


def resolution_s(stamp_s: Floats) -> float:
    """Return the coarsest of a minute, a second, and tenths to thousandths of it, that all stamps are multiples of.

    Parameters
    ----------
    stamp_s : (n,) array, seconds; NaN are left out

    Returns
    -------
    seconds; 0 if they are finer

    Examples
    --------
    >>> resolution_s(np.array([0.25, 1.5])), resolution_s(np.array([3.0, np.nan, 4.0]))
    (0.01, 1.0)
    """
    seen = stamp_s[~np.isnan(stamp_s)][:_SAMPLE]
    for unit in _UNITS_S:
        if len(seen) and np.all(np.abs(seen - unit * np.round(seen / unit)) < _ROUNDING_S):
            return unit
    return 0.0


def drift(arrival_s: Floats, took_s: Floats, met: Ints, servers: int) -> Drift | None:
    """Return how the least response times move over the log, by the slope through their medians (Theil 1950, Sen 1968).

    Requests that meet a free server show what is least, so load does not matter; the trend is tested by Kendall's tau
    (1938). A clock that runs fast against another makes it, but so does a service that gets slower.

    Parameters
    ----------
    arrival_s, took_s : (n,) arrays, seconds, in order of arrival; NaN: unknown
    met : (n,) requests that each one met
    servers : k >= 1

    Returns
    -------
    None if there is too little to tell: fewer than ten requests in a stretch.

    Examples
    --------
    >>> arrival = np.arange(4000.0)
    >>> found = drift(arrival, 0.1 + 1e-5 * arrival, np.zeros(4000, dtype=np.int64), servers=1)
    >>> round(found.per_second, 9), round(found.whole_s, 4)
    (1e-05, 0.04)
    """
    free = (met < servers) & ~np.isnan(took_s)
    came, took = arrival_s[free], took_s[free]
    if len(came) < 10 * WINDOWS:
        return None
    parts = np.array_split(np.arange(len(came)), WINDOWS)
    least = np.array([took[part].min() for part in parts])
    middle = np.array([came[part].mean() for part in parts])
    if np.ptp(least) == 0 or np.ptp(middle) == 0:
        return Drift(0.0, 0.0, 1.0)
    slope = float(theilslopes(least, middle).slope)
    return Drift(slope, slope * float(np.ptp(arrival_s)), float(kendalltau(middle, least).pvalue))
