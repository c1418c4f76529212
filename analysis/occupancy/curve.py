"""How many requests were present when: arrivals and departures in order of time, one by one or in pairs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import InputError

MOST_MOVES = 8
"""Moves per time on average after which a log counts as not nearly in order, and is sorted as any array."""


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


class EventLog(NamedTuple):
    """Events as compiled code takes them."""

    time_s: Floats
    """(m,) non-decreasing, wall clock."""
    clock_s: Floats
    """(m,) service that one busy server has given by then."""
    job: Ints
    """(m,) i for the arrival of request i, −1 − i for its departure."""
    requests: int
    """n; they count in order of arrival."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """The arrivals and departures of a log's requests as events.

    Departures come before arrivals at equal times, and simultaneous arrivals in the order of the log. A request that
    leaves the moment it comes has no events: it meets nobody.
    """

    time_s: Floats
    """(m,) non-decreasing, since the first arrival."""
    job: Ints
    """(m,) i for the arrival of request i, −1 − i for its departure; i counts in order of arrival."""
    order: Ints
    """(n,) row of the log that is request i."""
    present: Ints
    """(m,) requests in the system after the event."""


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
    >>> occupancy = curve([1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 3.0, 3.0])
    >>> occupancy.time_s, occupancy.jobs
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
    time, present, came = merge(arrival, departure, first, last, initial)
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


def in_order(time_s: ArrayLike) -> Floats:
    """Return a sorted copy, NaN last, as `np.sort` does.

    Parameters
    ----------
    time_s : (n,) array, seconds
    """
    time = np.array(time_s, dtype=np.float64)
    _check_dimensions(time)
    return time if _settled(time, np.empty(0, np.int64)) else np.sort(time, kind="stable")


def order_of(time_s: ArrayLike) -> Ints:
    """Return the places of the times in order, those of equal ones as they are, as a stable `np.argsort` does.

    Parameters
    ----------
    time_s : (n,) array, seconds
    """
    time = np.array(time_s, dtype=np.float64)
    _check_dimensions(time)
    order = np.arange(len(time))
    return order if _settled(time, order) else order[np.argsort(time, kind="stable")]


def pairs(arrival_s: Floats, departure_s: Floats) -> Pairs:
    """Return the events of a log of matched pairs.

    Parameters
    ----------
    arrival_s : (n,) array, seconds, in any order
    departure_s : (n,) array, seconds; NaN while the request has not left
    """
    arrival_s, departure_s = np.asarray(arrival_s, dtype=np.float64), np.asarray(departure_s, dtype=np.float64)
    _check_pairs(arrival_s, departure_s)
    order = order_of(arrival_s)
    first = arrival_s[order[0]] if len(order) else 0.0
    arrived, left = arrival_s[order], departure_s[order]
    arrived -= first
    left -= first
    stays = np.flatnonzero(left != arrived)
    leaves = stays[np.isfinite(left[stays])]
    leaves = leaves[order_of(left[leaves])]
    time_s, job, present = _merge_pairs(arrived, left, stays, leaves)
    return Pairs(time_s, job, order, present)


def met_on_arrival(events: Pairs) -> Ints:
    """Return how many requests each one met when it arrived, in order of arrival.

    Examples
    --------
    >>> from analysis.occupancy.curve import pairs
    >>> met_on_arrival(pairs(np.array([0.0, 1.0, 4.0]), np.array([3.0, 4.0, 5.0])))
    array([0, 1, 0])
    """
    met = np.zeros(len(events.order), dtype=np.int64)
    arrivals = events.job >= 0
    met[events.job[arrivals]] = events.present[arrivals] - 1
    return met


def undisturbed(events: Pairs) -> tuple[Floats, Bools]:
    """Return for each request, in order of arrival, how long nothing happens after it arrives, and if it then leaves.

    Examples
    --------
    >>> from analysis.occupancy.curve import pairs
    >>> undisturbed(pairs(np.array([0.0, 1.0, 4.0]), np.array([3.0, 4.0, 5.0])))
    (array([1., 2., 1.]), array([False, False,  True]))
    """
    length_s, leaves = np.zeros(len(events.order)), np.zeros(len(events.order), dtype=np.bool_)
    _undisturbed(events.time_s, events.job, length_s, leaves)
    return length_s, leaves


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
def merge(arrival: Floats, departure: Floats, first: float, last: float, jobs: int) -> tuple[Floats, Ints, Ints]:
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


def _check_dimensions(time: Floats) -> None:
    if time.ndim != 1:
        raise InputError(f"times must have one dimension, got {time.ndim}")


@njit(borrows=True)
def _settled(time: Floats, order: Ints) -> bool:
    """Sort by insertion, in place, and the order alongside unless it is empty; False if that was given up.

    No equal times change places, so whatever sorts the rest stably gives what it would have given without this.
    """
    left = MOST_MOVES * len(time)
    for i in range(len(time)):
        moved, place, j = time[i], order[i] if len(order) else 0, i
        if np.isnan(moved):
            return False
        while j > 0 and time[j - 1] > moved:
            time[j] = time[j - 1]
            if len(order):
                order[j] = order[j - 1]
            j -= 1
        time[j] = moved
        if len(order):
            order[j] = place
        left -= i - j
        if left < 0:
            return False
    return True


@njit(cache=True)
def _merge_pairs(arrived: Floats, left: Floats, stays: Ints, leaves: Ints) -> tuple[Floats, Ints, Ints]:
    """Return times, jobs and those then present, of the arrivals and departures of the jobs named in order of each."""
    count = len(stays) + len(leaves)
    time_s, job, present = np.empty(count), np.empty(count, np.int64), np.empty(count, np.int64)
    came, went = 0, 0
    for event in range(count):
        goes = went < len(leaves) and (came == len(stays) or left[leaves[went]] <= arrived[stays[came]])
        if goes:
            time_s[event], job[event] = left[leaves[went]], -1 - leaves[went]
            went += 1
        else:
            time_s[event], job[event] = arrived[stays[came]], stays[came]
            came += 1
        present[event] = came - went
    return time_s, job, present


def _check_pairs(arrival_s: Floats, departure_s: Floats) -> None:
    """Refuse arrays that are no pairs."""
    if arrival_s.ndim != 1 or arrival_s.shape != departure_s.shape:
        raise InputError(f"{arrival_s.shape} arrivals and {departure_s.shape} departures: both must be (n,)")
    if not np.isfinite(arrival_s).all():
        row = int(np.flatnonzero(~np.isfinite(arrival_s))[0])
        raise InputError(f"arrival {row} is {arrival_s[row]}: it must be a number")
    wrong = np.isinf(departure_s) | (departure_s < arrival_s)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(f"departure {row} is {departure_s[row]}: it must be a number from {arrival_s[row]} on, or NaN")


@njit(borrows=True)
def _undisturbed(time_s: Floats, job: Ints, length_s: Floats, leaves: Bools) -> None:
    for event in range(len(job) - 1):
        i = job[event]
        if i >= 0:
            length_s[i], leaves[i] = time_s[event + 1] - time_s[event], job[event + 1] == -1 - i
