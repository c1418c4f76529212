"""Service and queueing time per interval of fixed length, added up one piece of the occupancy curve after another."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numba import njit

from models.arrays import Floats, Ints
from models.errors import InputError

MOST_SLICES = 20_000_000
"""So many intervals are gigabytes; more is a wrong unit."""
COLUMNS = ("start_s", "end_s", "service_time_s", "queueing_time_s", "peak")


@dataclass(slots=True)
class Slices:
    """Intervals in the making: fed the curve in order, it gives back each interval that is complete.

    Interval i runs from ``origin_s + i · interval_s`` to ``origin_s + (i + 1) · interval_s``. However the curve is
    portioned between its moments of change, the sums are the same to the last bit.
    """

    servers: int
    origin_s: float
    interval_s: float
    index: int = 0
    """Intervals given back so far."""
    sums: Floats = field(default_factory=lambda: np.zeros(3))
    """Of the interval in the making: service time, queueing time, peak."""

    def __post_init__(self) -> None:
        if self.servers < 1:
            raise InputError(f"servers must be at least 1, got {self.servers}")
        if not (self.interval_s > 0 and np.isfinite(self.interval_s)):
            raise InputError(f"interval_s must be above 0 and finite, got {self.interval_s}")
        if not np.isfinite(self.origin_s):
            raise InputError(f"the first interval must start at a finite time, got {self.origin_s}")

    def advance(self, time_s: Floats, jobs: Ints) -> Floats:
        """Return the intervals completed by pieces [time_s[i], time_s[i + 1]) with `jobs[i]` present.

        Parameters
        ----------
        time_s : (m + 1,) array, seconds, non-decreasing, from where the last call ended
        jobs : (m,) array

        Returns
        -------
        (rows, 5) array
            `COLUMNS` of every interval completed.

        Raises
        ------
        ValueError
            If there would be more than `MOST_SLICES`.

        Examples
        --------
        >>> Slices(1, 0.0, 2.0).advance(np.array([0.0, 1.0, 5.0]), np.array([3, 1]))
        array([[0., 2., 2., 2., 3.],
               [2., 4., 2., 0., 1.]])
        """
        most = max((time_s[-1] - self.origin_s) / self.interval_s - self.index, 0.0) + 2
        if most > MOST_SLICES:
            raise InputError(f"intervals of {self.interval_s:g} s: {most:.3g} of them, {MOST_SLICES:.0e} is the most")
        clock = (float(self.origin_s), float(self.interval_s), self.index, int(most))
        rows: Floats = _cut(time_s, jobs, self.servers, clock, self.sums)
        self.index += len(rows)
        return rows

    def rest(self, end_s: float) -> Floats:
        """Return the interval in the making, cut off at `end_s`; no row if it has no length.

        Parameters
        ----------
        end_s : seconds, where the last call of `advance` ended

        Returns
        -------
        (0 or 1, 5) array

        Examples
        --------
        >>> slices = Slices(1, 0.0, 2.0)
        >>> done = slices.advance(np.array([0.0, 1.0, 5.0]), np.array([3, 1]))
        >>> slices.rest(5.0)
        array([[4., 5., 1., 0., 1.]])
        """
        start_s = self.origin_s + self.index * self.interval_s
        return np.array([[start_s, end_s, *self.sums]] if end_s > start_s else np.empty((0, len(COLUMNS))))


def table(rows: Floats, servers: int) -> pd.DataFrame:
    """Return rows of `COLUMNS` as the table of intervals that `law.intervals` describes.

    Parameters
    ----------
    rows : (n, 5) array
    servers : k >= 1

    Examples
    --------
    >>> table(np.array([[0.0, 2.0, 2.0, 1.0, 3.0]]), servers=1)[["utilisation", "ratio"]]
       utilisation  ratio
    0          1.0    0.5
    """
    start_s, end_s, service_s, queueing_s, peak = rows.T
    ratio = np.full(len(rows), np.nan)
    np.divide(queueing_s, service_s, out=ratio, where=service_s > 0)
    return pd.DataFrame(
        {
            "start_s": start_s,
            "end_s": end_s,
            "service_time_s": service_s,
            "queueing_time_s": queueing_s,
            "response_time_s": service_s + queueing_s,
            "utilisation": service_s / (servers * (end_s - start_s)),
            "peak": peak.astype(np.int64),
            "ratio": ratio,
        }
    )


@njit(cache=True)
def _cut(time: Floats, jobs: Ints, servers: int, clock: tuple[float, float, int, int], sums: Floats) -> Floats:
    """Add the pieces to `sums` and return a row for each interval that ends."""
    origin, interval, index, most = clock
    rows, done = np.empty((most, 5)), 0
    start, edge = origin + index * interval, origin + (index + 1) * interval
    for i in range(len(jobs)):
        left, right, busy = time[i], time[i + 1], min(jobs[i], servers)
        while left < right:
            until = min(edge, right)
            sums[0] += (until - left) * busy
            sums[1] += (until - left) * (jobs[i] - busy)
            sums[2] = max(sums[2], float(jobs[i]))
            left = until
            if until == edge:
                rows[done, 0], rows[done, 1], rows[done, 2:] = start, edge, sums
                sums[:] = 0.0
                done += 1
                start, edge = edge, origin + (index + done + 1) * interval
    return rows[:done]
