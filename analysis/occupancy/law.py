"""The Occupancy Law: service and queueing time of a whole log, of an interval, and of every interval of one length."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from analysis.occupancy.curve import Curve, window
from models.arrays import Floats, Ints
from models.code.compiled import njit
from models.errors import InputError

MOST_SLICES = 2_000_000
"""So many intervals are gigabytes as JSON; more is a wrong unit."""
COLUMNS = ("start_s", "end_s", "service_time_s", "queueing_time_s", "peak")


@dataclass(frozen=True, slots=True)
class OccupancyTotals:
    """What the Occupancy Law says of an interval, summed over all requests present in it."""

    servers: int
    start_s: float
    end_s: float
    service_time_s: float
    """∫ min(N, k) dt."""
    queueing_time_s: float
    """∫ max(N − k, 0) dt."""
    peak: int
    """Most jobs present."""

    @property
    def response_time_s(self) -> float:
        """∫ N dt, the two together."""
        return self.service_time_s + self.queueing_time_s

    @property
    def utilisation(self) -> float:
        """Busy servers over all servers, 0..1; NaN for an interval without length."""
        available_s = self.servers * (self.end_s - self.start_s)
        return self.service_time_s / available_s if available_s > 0 else float("nan")

    @property
    def ratio(self) -> float:
        """Queueing over service time; NaN where nobody was there."""
        return self.queueing_time_s / self.service_time_s if self.service_time_s > 0 else float("nan")


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
        """
        most = max((time_s[-1] - self.origin_s) / self.interval_s - self.index, 0.0) + 2
        if most > MOST_SLICES:
            raise InputError(f"intervals of {self.interval_s:g} s: {most:.3g} of them, {MOST_SLICES:.0e} is the most")
        number = np.arange(self.index, self.index + int(most) + 1, dtype=np.float64)
        edges_s = self.origin_s + number * self.interval_s
        rows: Floats = _cut(time_s, jobs, self.servers, edges_s, self.sums)
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
        """
        start_s = self.origin_s + self.index * self.interval_s
        return np.array([[start_s, end_s, *self.sums]] if end_s > start_s else np.empty((0, len(COLUMNS))))


def law(curve: Curve, servers: int, start_s: float | None = None, end_s: float | None = None) -> OccupancyTotals:
    """Return service and queueing time of an interval by the Occupancy Law (Kelly et al. 2008, result 1).

    It needs work conservation and serial jobs, nothing else: servers may differ in speed, demands may depend on
    anything, jobs may be unfinished. Service time is time on a server; how much work that was, `work` says.

    Parameters
    ----------
    curve : occupancy
    servers : k >= 1
    start_s, end_s : seconds, within the curve; None: its ends

    Raises
    ------
    ValueError
        If there is no server, or the interval is not within the curve.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> means = law(curve([1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0]), servers=2)
    >>> means.service_time_s, means.queueing_time_s, means.utilisation
    (4.0, 2.0, 1.0)
    """
    part = window(curve, start_s, end_s)
    service_s = area(part, _checked(servers))
    queueing_s = _integral(part, np.maximum(part.jobs - servers, 0))
    return OccupancyTotals(servers, part.start_s, part.end_s, service_s, queueing_s, int(part.jobs.max(initial=0)))


def area(curve: Curve, level: float) -> float:
    """Return ∫ min(N, level) dt, the area under both the curve and a horizontal line (Kelly et al. 2008, table 1).

    Parameters
    ----------
    curve : occupancy
    level : height of the line, at least 0; infinity gives aggregate response time

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    ValueError
        If the level is negative or NaN.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> [area(curve([1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0]), level) for level in (1, 2, 3, np.inf)]
    [2.0, 4.0, 5.0, 6.0]
    """
    if not level >= 0:
        raise InputError(f"level must be at least 0, got {level}")
    return _integral(curve, np.minimum(curve.jobs, level))


def work(curve: Curve, rates: ArrayLike) -> float:
    """Return ∫ μ(min(N, k)) dt, the work done by servers whose common rate depends on how many are busy.

    Unequal servers: with their speeds added up from the fastest it is the most work that they can have done, from the
    slowest the least; the Occupancy Law does not tell which of them were busy.

    Parameters
    ----------
    curve : occupancy
    rates : (k,) array, work per second with 1, ..., k busy servers

    Returns
    -------
    float
        Work; seconds on a server of rate 1.
    """
    rate = np.asarray(rates, dtype=np.float64)
    if rate.ndim != 1 or not len(rate) or not (np.isfinite(rate) & (rate >= 0)).all():
        raise InputError(f"rates must be one finite rate >= 0 for each number of busy servers, got {rate.tolist()}")
    return _integral(curve, np.concatenate(([0.0], rate))[np.minimum(curve.jobs, len(rate))])


def busy_distribution(curve: Curve, servers: int) -> pd.DataFrame:
    """Return the share of time with 0, 1, ..., k busy servers (Kelly et al. 2008, section 3).

    Parameters
    ----------
    curve : occupancy
    servers : k >= 1

    Returns
    -------
    DataFrame
        busy, time_s, share (0..1; NaN for a curve without length).

    Raises
    ------
    ValueError
        If there is no server.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> busy_distribution(curve([0.0, 0.0], [1.0, 4.0]), servers=2)
       busy  time_s  share
    0     0     0.0   0.00
    1     1     3.0   0.75
    2     2     1.0   0.25
    """
    return _distribution(curve, "busy", np.minimum(curve.jobs, _checked(servers)), servers + 1)


def queue_distribution(curve: Curve, servers: int) -> pd.DataFrame:
    """Return the share of time with 0, 1, 2, ... jobs waiting (Kelly et al. 2008, section 3).

    Parameters
    ----------
    curve : occupancy
    servers : k >= 1

    Returns
    -------
    DataFrame
        waiting, time_s, share (0..1; NaN for a curve without length), up to the longest queue.

    Raises
    ------
    ValueError
        If there is no server.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> queue_distribution(curve([0.0, 0.0], [1.0, 4.0]), servers=1)
       waiting  time_s  share
    0        0     3.0   0.75
    1        1     1.0   0.25
    """
    return _distribution(curve, "waiting", np.maximum(curve.jobs - _checked(servers), 0), 1)


def intervals(
    curve: Curve, servers: int, interval_s: float, start_s: float | None = None, end_s: float | None = None
) -> pd.DataFrame:
    """Return what the Occupancy Law says of each interval of a fixed length.

    Parameters
    ----------
    curve : occupancy
    servers : k >= 1
    interval_s : length in seconds; the last interval ends with the curve and may be shorter
    start_s, end_s : seconds, within the curve; None: its ends. Interval i starts at start_s + i · interval_s

    Returns
    -------
    DataFrame
        start_s, end_s, service_time_s, queueing_time_s, response_time_s, utilisation (0..1), peak (most jobs present),
        ratio (queueing over service time; NaN where nobody was there).

    Raises
    ------
    ValueError
        If there is no server, the length is not above 0, or there would be more than `slices.MOST_SLICES`.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> table = intervals(curve([0.0, 0.0], [4.0, 6.0]), servers=1, interval_s=4.0)
    >>> table[["start_s", "end_s", "service_time_s", "queueing_time_s", "utilisation", "peak"]]
       start_s  end_s  service_time_s  queueing_time_s  utilisation  peak
    0      0.0    4.0             4.0              4.0          1.0     2
    1      4.0    6.0             2.0              0.0          1.0     1
    """
    part = window(curve, start_s, end_s)
    slices = Slices(servers, part.start_s, interval_s)
    done = slices.advance(part.time_s, part.jobs)
    return table(np.concatenate((done, slices.rest(part.end_s))), servers)


def table(rows: Floats, servers: int) -> pd.DataFrame:
    """Return rows of `COLUMNS` as the table of intervals that `law.intervals` describes.

    Parameters
    ----------
    rows : (n, 5) array
    servers : k >= 1
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


def _checked(servers: int) -> int:
    if servers < 1:
        raise InputError(f"servers must be at least 1, got {servers}")
    return servers


def _integral(curve: Curve, height: NDArray[np.float64 | np.int64]) -> float:
    piece = np.diff(curve.time_s)
    piece *= height
    return float(np.sum(piece))


def _distribution(curve: Curve, name: str, value: Ints, least: int) -> pd.DataFrame:
    time_s = np.bincount(value, np.diff(curve.time_s), least)
    length_s = curve.end_s - curve.start_s
    share = time_s / length_s if length_s > 0 else np.full(len(time_s), np.nan)
    return pd.DataFrame({name: np.arange(len(time_s)), "time_s": time_s, "share": share})


@njit(cache=True)
def _cut(time: Floats, jobs: Ints, servers: int, edges: Floats, sums: Floats) -> Floats:
    """Add the pieces to `sums` and return a row for each interval that ends at one of the edges but the first."""
    rows, done = np.empty((len(edges) - 1, 5)), 0
    edge = edges[1]
    for i in range(len(jobs)):
        left, right, busy = time[i], time[i + 1], min(jobs[i], servers)
        while left < right:
            until = min(edge, right)
            sums[0] += (until - left) * busy
            sums[1] += (until - left) * (jobs[i] - busy)
            sums[2] = max(sums[2], float(jobs[i]))
            left = until
            if until == edge:
                rows[done, 0], rows[done, 1] = edges[done], edge
                for column in range(3):
                    rows[done, 2 + column], sums[column] = sums[column], 0.0
                done += 1
                edge = edges[done + 1]
    return rows[:done]
