"""Matched pairs of arrivals and departures as one list of events, in the order in which a server meets them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from analysis.occupancy.order import order_of
from models.arrays import Floats, Ints
from models.errors import InputError


class Log(NamedTuple):
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


def pairs(arrival_s: Floats, departure_s: Floats) -> Pairs:
    """Return the events of a log of matched pairs.

    Parameters
    ----------
    arrival_s : (n,) array, seconds, in any order
    departure_s : (n,) array, seconds; NaN while the request has not left

    Raises
    ------
    ValueError
        If the lengths differ, an arrival is not a number, a departure is infinite or precedes its arrival.

    Examples
    --------
    >>> both = pairs(np.array([10.0, 11.0]), np.array([11.0, np.nan]))
    >>> both.time_s, both.job, both.present
    (array([0., 1., 1.]), array([ 0, -1,  1]), array([1, 0, 1]))
    """
    arrival_s, departure_s = np.asarray(arrival_s, dtype=np.float64), np.asarray(departure_s, dtype=np.float64)
    _check(arrival_s, departure_s)
    order = order_of(arrival_s)
    first = arrival_s[order[0]] if len(order) else 0.0
    arrived, left = arrival_s[order], departure_s[order]
    arrived -= first
    left -= first
    stays = np.flatnonzero(left != arrived)
    leaves = stays[np.isfinite(left[stays])]
    leaves = leaves[order_of(left[leaves])]
    time_s, job, present = _merge(arrived, left, stays, leaves)
    return Pairs(time_s, job, order, present)


@njit(cache=True)
def _merge(arrived: Floats, left: Floats, stays: Ints, leaves: Ints) -> tuple[Floats, Ints, Ints]:
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


def _check(arrival_s: Floats, departure_s: Floats) -> None:
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
