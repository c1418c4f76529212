"""The Occupancy Law while events come in: bounded memory, a finished interval at a time, and alerts on queueing."""

import heapq
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.occupancy.law import Slices, table
from models.arrays import Floats, Ints
from models.code.compiled import njit
from models.errors import InputError


@dataclass(slots=True)
class Stream:
    """Queueing and service time per interval of a log that is still being written.

    Fed with events in any portions it gives, to the last bit, what `law.intervals` says of the same curve from
    `start_s` on. The last `reorder` events wait for earlier ones; one that comes later still counts from then on, and
    in `late`. A departure while nobody is there is left out and counted in `surplus`.
    """

    servers: int
    interval_s: float
    start_s: float = 0.0
    initial: int = 0
    """Jobs present at the start."""
    reorder: int = 0
    """Events held back to be put in order: the most that memory has to hold."""
    late: int = field(default=0, init=False)
    surplus: int = field(default=0, init=False)
    jobs: int = field(init=False)
    """Present at `now_s`."""
    now_s: float = field(init=False)
    """Time of the last event counted."""
    _slices: Slices = field(init=False, repr=False)
    _held_s: Floats = field(default_factory=lambda: np.empty(0), init=False, repr=False)
    _held: Ints = field(default_factory=lambda: np.empty(0, np.int64), init=False, repr=False)

    def __post_init__(self) -> None:
        for name, value in (("initial", self.initial), ("reorder", self.reorder)):
            if value < 0:
                raise InputError(f"{name} must be at least 0, got {value}")
        self._slices = Slices(self.servers, self.start_s, self.interval_s)
        self.jobs, self.now_s = self.initial, self.start_s

    def feed(self, time_s: ArrayLike, change: ArrayLike) -> pd.DataFrame:
        """Take events and return the intervals that they complete, as `law.intervals` does.

        Parameters
        ----------
        time_s : number or (n,) array, seconds
        change : number or (n,) array; +1: arrival, -1: departure, 0: none, the clock went on

        Raises
        ------
        ValueError
            If the lengths differ, a time is not finite or a change is none of the three; nothing is counted then.

        Examples
        --------
        >>> stream = Stream(servers=1, interval_s=2.0)
        >>> len(stream.feed([0.0, 0.5], [1, 1]))
        0
        >>> stream.feed([5.0, 6.0], [-1, -1])[["start_s", "end_s", "service_time_s", "queueing_time_s"]]
           start_s  end_s  service_time_s  queueing_time_s
        0      0.0    2.0             2.0              1.5
        1      2.0    4.0             2.0              2.0
        2      4.0    6.0             2.0              1.0
        """
        time, step = _events(time_s, change)
        time, step = np.concatenate((self._held_s, time)), np.concatenate((self._held, step))
        if (np.diff(time, prepend=self.now_s) < 0).any():
            time, step, late = _ordered(time, step, self.now_s, self.reorder)
            self.late += late
        ready = max(len(time) - self.reorder, 0)
        self._held_s, self._held = time[ready:], step[ready:]
        return table(self._count(time[:ready], step[:ready]), self.servers)

    def close(self, end_s: float | None = None) -> pd.DataFrame:
        """Count the events still held and return the remaining intervals, the last one cut off at `end_s`.

        Parameters
        ----------
        end_s : seconds; None: the last event

        Raises
        ------
        ValueError
            If an event came after `end_s`.

        Examples
        --------
        >>> stream = Stream(servers=1, interval_s=60.0, reorder=10)
        >>> len(stream.feed([2.0, 1.0], [-1, 1]))
        0
        >>> stream.close(4.0)[["end_s", "service_time_s", "utilisation"]]
           end_s  service_time_s  utilisation
        0    4.0             1.0         0.25
        """
        last_s = max([self.now_s, *self._held_s[-1:].tolist()])
        end = last_s if end_s is None else float(end_s)
        if not last_s <= end < np.inf:
            raise InputError(f"end_s must be finite and not before the last event at {last_s:g} s, got {end}")
        time, step = np.append(self._held_s, end), np.append(self._held, 0)
        self._held_s, self._held = time[:0], step[:0]
        done = self._count(time, step)
        self.surplus, self.jobs = self.surplus - min(self.jobs, 0), max(self.jobs, 0)
        return table(np.concatenate((done, self._slices.rest(end))), self.servers)

    def _count(self, time: Floats, step: Ints) -> Floats:
        """Take events in order of time, none before `now_s`."""
        distinct, present, surplus = _walk(time, step, self.now_s, self.jobs)
        rows = self._slices.advance(distinct, present[:-1])
        self.surplus += surplus
        self.now_s, self.jobs = float(distinct[-1]), int(present[-1])
        return rows


def alerts(intervals: pd.DataFrame, ratio: float, consecutive: int = 1) -> pd.DataFrame:
    """Return when jobs waited long relative to being served (Kelly et al. 2008, section 3, on alerts).

    High utilisation alone does not say that users wait, and a long response time may be long service; this does and
    asks for action.

    Parameters
    ----------
    intervals : columns start_s, end_s, service_time_s, queueing_time_s, in order of time, as from `law.intervals`
    ratio : queueing over service time that an interval must exceed
    consecutive : intervals in a row that must exceed it

    Returns
    -------
    DataFrame
        start_s, end_s, intervals (how many in a row), ratio (of the sums over them).

    Raises
    ------
    ValueError
        If the ratio is negative or NaN, or `consecutive` below 1.

    Examples
    --------
    >>> rows = {"start_s": [0, 1, 2, 3], "end_s": [1, 2, 3, 4], "service_time_s": 1.0, "queueing_time_s": [0, 3, 5, 0]}
    >>> alerts(pd.DataFrame(rows), ratio=2.0, consecutive=2)
       start_s  end_s  intervals  ratio
    0        1      3          2    4.0
    """
    if not ratio >= 0:
        raise InputError(f"ratio must be at least 0, got {ratio}")
    if consecutive < 1:
        raise InputError(f"consecutive must be at least 1, got {consecutive}")
    service_s, queueing_s = (intervals[name].to_numpy(np.float64) for name in ("service_time_s", "queueing_time_s"))
    start, end = intervals["start_s"].to_numpy(), intervals["end_s"].to_numpy()
    high = queueing_s > ratio * service_s
    joined = high[1:] & high[:-1] & (start[1:] == end[:-1])
    first = np.flatnonzero(high & ~np.concatenate(([False], joined))[: len(high)])
    last = np.flatnonzero(high & ~np.concatenate((joined, [False]))[: len(high)])
    long = last - first + 1 >= consecutive
    first, last = first[long], last[long]
    waited, served = (np.concatenate(([0.0], np.cumsum(sums_s))) for sums_s in (queueing_s, service_s))
    sums = ((sums_s[last + 1] - sums_s[first]) for sums_s in (waited, served))
    return pd.DataFrame(
        {"start_s": start[first], "end_s": end[last], "intervals": last - first + 1, "ratio": next(sums) / next(sums)}
    )


def _events(time_s: ArrayLike, change: ArrayLike) -> tuple[Floats, Ints]:
    time, step = np.atleast_1d(np.asarray(time_s, dtype=np.float64)), np.atleast_1d(np.asarray(change))
    if time.shape != step.shape or time.ndim != 1:
        raise InputError(f"as many times as changes are needed, got shapes {time.shape} and {step.shape}")
    if not np.isfinite(time).all():
        raise InputError(f"every time must be finite, got {time[~np.isfinite(time)][0]}")
    if not np.isin(step, (-1, 0, 1)).all():
        raise InputError(f"every change must be -1, 0 or 1, got {step[~np.isin(step, (-1, 0, 1))][0]}")
    return time, step.astype(np.int64)


def _ordered(time: Floats, step: Ints, now: float, kept_back: int) -> tuple[Floats, Ints, int]:
    """Return events in the order in which they count if they come one by one, `held` waiting; and how many are late."""
    waiting, counted, late = list[tuple[float, int, int]](), list[tuple[float, int, int]](), 0
    for at, (moment, change) in enumerate(zip(time.tolist(), step.tolist(), strict=True)):
        late += moment < now
        event = (max(moment, now), at, change)
        if len(waiting) < kept_back:
            heapq.heappush(waiting, event)
            continue
        counted.append(heapq.heappushpop(waiting, event))
        now = counted[-1][0]
    times, _, changes = zip(*counted, *sorted(waiting), strict=True)
    return np.array(times), np.array(changes, dtype=np.int64), late


@njit(cache=True)
def _walk(time: Floats, step: Ints, now: float, jobs: int) -> tuple[Floats, Ints, int]:
    """Return `now` and the distinct later times, the jobs present after each, and departures of nobody."""
    distinct, present = np.empty(len(time) + 1), np.empty(len(time) + 1, np.int64)
    distinct[0], m, surplus = now, 0, 0
    for i in range(len(time)):
        if time[i] > distinct[m]:
            if jobs < 0:
                surplus -= jobs
                jobs = 0
            present[m] = jobs
            m += 1
            distinct[m] = time[i]
        jobs += step[i]
    present[m] = jobs
    return distinct[: m + 1], present[: m + 1], surplus
