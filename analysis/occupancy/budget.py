"""Busy periods and their budget of work: B1, queueing with more servers when the work of a busy period is the same."""

from typing import NamedTuple

import numpy as np
from numba import njit

from analysis.occupancy.curve import Curve
from models.arrays import Floats, Ints


class Periods(NamedTuple):
    """The busy periods of a curve: pieces first[i], ..., last[i] − 1 of it have jobs present."""

    first: Ints
    last: Ints
    closed: bool
    """Whether the last one ends within the curve; all others do."""

    def sums(self, piece: Floats | Ints) -> Floats:
        """Return the sum over each busy period of what belongs to the pieces and is 0 on idle ones."""
        return np.add.reduceat(piece, self.first) if len(self.first) else np.empty(0)


def busy_periods(curve: Curve) -> Periods:
    """Return the busy periods of a curve: the longest stretches without an idle moment.

    Parameters
    ----------
    curve : occupancy

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> busy_periods(curve([0.0, 1.0, 5.0], [2.0, 3.0, 6.0]))
    Periods(first=array([0, 4]), last=array([3, 5]), closed=True)
    """
    change = np.diff(np.concatenate(([False], curve.jobs > 0, [False])).astype(np.int8))
    return Periods(np.flatnonzero(change == 1), np.flatnonzero(change == -1), curve.final == 0)


def busiest(curve: Curve, periods: Periods, to: int, seconds: Floats) -> Floats:
    """Return ∫ (N − k')⁺ over the seconds of each busy period with the highest N: B1 (docs/laws.md, bound B1).

    Parameters
    ----------
    curve : occupancy
    periods : its busy periods
    to : k' >= 1, the other number of servers
    seconds : (n,) array, how long all k' servers can have been busy in each period

    Returns
    -------
    (n,) array, seconds

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> seen = curve([0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0])
    >>> busiest(seen, busy_periods(seen), 2, np.array([1.5]))
    array([2.5])
    """
    return _busiest(curve.time_s, curve.jobs, to, periods, seconds)


@njit(cache=True)
def _busiest(time_s: Floats, jobs: Ints, to: int, periods: Periods, seconds: Floats) -> Floats:
    integral = np.zeros(len(periods.first))
    for b in range(len(periods.first)):
        first, last = periods.first[b], periods.last[b]
        peak = 0
        for i in range(first, last):
            peak = max(peak, jobs[i] - to)
        time = np.zeros(peak + 1)
        for i in range(first, last):
            time[max(jobs[i] - to, 0)] += time_s[i + 1] - time_s[i]
        left = seconds[b]
        for n in range(peak, 0, -1):
            used = min(time[n], left)
            integral[b] += used * n
            left -= used
    return integral
