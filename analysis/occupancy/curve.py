"""The occupancy curve: how many requests are present at each moment, from arrivals and departures without pairs."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from analysis.occupancy.order import in_order
from models.arrays import Floats, Ints
from models.errors import InputError


@dataclass(frozen=True, slots=True)
class Curve:
    """How many jobs are present: `jobs[i]` on [time_s[i], time_s[i + 1]).

    Times at which as many jobs come as go are kept: bounds on another number of servers need them.
    """

    time_s: Floats
    """(m + 1,) increasing: start, every moment at which a job comes or goes, end."""
    jobs: Ints
    """(m,) jobs present between them, at least 0."""
    arrivals: Ints
    """(m + 1,) jobs that come at each time."""
    initial: int
    """Jobs present just before the start."""
    final: int
    """Jobs present at the end, after what comes and goes then."""

    @property
    def start_s(self) -> float:
        """When it starts."""
        return float(self.time_s[0])

    @property
    def end_s(self) -> float:
        """When it ends."""
        return float(self.time_s[-1])

    @property
    def departures(self) -> Ints:
        """(m + 1,) jobs that go at each time."""
        present = np.concatenate(([self.initial], self.jobs, [self.final]))
        return present[:-1] + self.arrivals - present[1:]


def curve(
    arrival_s: ArrayLike,
    departure_s: ArrayLike,
    start_s: float | None = None,
    end_s: float | None = None,
    initial: int = 0,
) -> Curve:
    """Return the occupancy curve N(t) = A(t) - D(t) (Kelly et al. 2008, section 3).

    At equal times departures come before arrivals; a job that leaves the moment it comes occupies no time.

    Parameters
    ----------
    arrival_s : (n,) array, seconds, in any order
    departure_s : (d,) array, seconds, in any order and of any jobs; NaN: not finished (or present for ever)
    start_s, end_s : seconds; by default the first and the last event. Events before the start decide who is present
        then; events after the end are left out
    initial : jobs present before the first event

    Raises
    ------
    ValueError
        If a time is infinite, an arrival is NaN, `end_s` is before `start_s`, there is neither an event nor both ends,
        or at some time more jobs have left than were there.

    Examples
    --------
    >>> seen = curve([1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0])
    >>> seen.time_s, seen.jobs
    (array([1., 2., 3.]), array([4, 2]))
    """
    arrival, departure = _in_order(arrival_s, "arrival"), _in_order(_finished(departure_s), "departure")
    ends = [float(x) for x in (start_s, end_s) if x is not None]
    if not np.all(np.isfinite(ends)):
        raise InputError(f"start_s and end_s must be finite, got {start_s} and {end_s}")
    if len(ends) < 2 and not len(arrival) + len(departure):
        raise InputError("without arrivals and departures both start_s and end_s are needed")
    if initial < 0:
        raise InputError(f"initial must be at least 0, got {initial}")
    first = min([*ends, *arrival[:1], *departure[:1]])
    last = max([*ends, *arrival[-1:], *departure[-1:]])
    time, present, came = _merge(arrival, departure, first, last, initial)
    if present[-1] < 0:
        raise InputError(f"at {time[-1]:g} s more jobs have left than had arrived: {-present[-1]} too many")
    whole = Curve(time, present[:-1], came, initial, int(present[-1]))
    return whole if start_s is None and end_s is None else window(whole, start_s, end_s)


def window(curve: Curve, start_s: float | None = None, end_s: float | None = None) -> Curve:
    """Return the part of a curve between two times.

    Only the part is copied, and finding it takes logarithmic time: many windows cost what they hold.

    Parameters
    ----------
    curve : the whole
    start_s, end_s : seconds, within the curve; None: its start, its end

    Raises
    ------
    ValueError
        If they are not in order or not within the curve.

    Examples
    --------
    >>> part = window(curve([0.0, 1.0], [4.0, 9.0]), 2.0, 6.0)
    >>> part.time_s, part.jobs, part.initial
    (array([2., 4., 6.]), array([2, 1]), 2)
    """
    start = curve.start_s if start_s is None else float(start_s)
    end = curve.end_s if end_s is None else float(end_s)
    if not curve.start_s <= start <= end <= curve.end_s:
        raise InputError(f"{start:g} s to {end:g} s is not within the curve, {curve.start_s:g} s to {curve.end_s:g} s")
    if (start, end) == (curve.start_s, curve.end_s):
        return curve
    time = curve.time_s
    i, j = int(np.searchsorted(time, start, "left")), int(np.searchsorted(time, end, "right"))
    inner, came = time[i:j], curve.arrivals[i:j]
    opens = int(i == j or inner[0] > start)
    closes = int(end > start and (i == j or inner[-1] < end))
    jobs = curve.jobs[i - opens : j + closes - 1]
    initial = curve.initial if i == 0 else curve.jobs[i - 1]
    final = curve.final if j > len(curve.jobs) else curve.jobs[j - 1]
    inner = np.concatenate((np.full(opens, start), inner, np.full(closes, end)))
    came = np.concatenate((np.zeros(opens, np.int64), came, np.zeros(closes, np.int64)))
    return Curve(inner, jobs, came, int(initial), int(final))


def _finished(departure_s: ArrayLike) -> Floats:
    departure = np.asarray(departure_s, dtype=np.float64)
    unseen = np.isnan(departure)
    return departure[~unseen] if unseen.any() else departure


def _in_order(time_s: ArrayLike, name: str) -> Floats:
    if np.ndim(time_s) != 1:
        raise InputError(f"{name}_s must have one dimension, got {np.ndim(time_s)}")
    time = in_order(time_s)
    if len(time) and not np.isfinite(time[[0, -1]]).all():
        raise InputError(f"every {name} must be a finite time, got {time[-1] if np.isfinite(time[0]) else time[0]}")
    return time


@njit(cache=True)
def _merge(arrival: Floats, departure: Floats, first: float, last: float, jobs: int) -> tuple[Floats, Ints, Ints]:
    """Return the distinct times, the jobs present after each and the arrivals at each, up to the first that are < 0."""
    most = len(arrival) + len(departure) + 2
    time, present, came = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    i, j, m, now = 0, 0, 0, first
    while True:
        before = i
        while i < len(arrival) and arrival[i] == now:
            i += 1
        jobs += i - before
        came[m] = i - before
        while j < len(departure) and departure[j] == now:
            j += 1
            jobs -= 1
        time[m], present[m] = now, jobs
        m += 1
        if jobs < 0 or now == last:
            return time[:m], present[:m], came[:m]
        now = last
        if i < len(arrival):
            now = min(now, arrival[i])
        if j < len(departure):
            now = min(now, departure[j])
