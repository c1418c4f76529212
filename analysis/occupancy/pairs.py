"""Matched pairs of arrivals and departures as one list of events, in the order in which a server meets them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
    order = np.argsort(arrival_s, kind="stable")
    first = arrival_s[order[0]] if len(order) else 0.0
    arrived, left = arrival_s[order] - first, departure_s[order] - first
    stays = np.flatnonzero(left != arrived)
    leaves = stays[np.isfinite(left[stays])]
    leaves = leaves[np.argsort(left[leaves], kind="stable")]
    # A departure goes before the first arrival that is not earlier, and after the departures before it.
    at = np.searchsorted(arrived[stays], left[leaves], side="left") + np.arange(len(leaves))
    job = np.empty(len(stays) + len(leaves), dtype=np.int64)
    leaving = np.zeros(len(job), dtype=np.bool_)
    leaving[at] = True
    job[at], job[~leaving] = -1 - leaves, stays
    time_s = np.where(leaving, left[-1 - job], arrived[job]) if len(job) else np.empty(0)
    return Pairs(time_s, job, order, np.cumsum(np.where(leaving, -1, 1)))


def _check(arrival_s: Floats, departure_s: Floats) -> None:
    """Refuse arrays that are no pairs."""
    if arrival_s.ndim != 1 or arrival_s.shape != departure_s.shape:
        raise ValueError(f"{arrival_s.shape} arrivals and {departure_s.shape} departures: both must be (n,)")
    if not np.isfinite(arrival_s).all():
        row = int(np.flatnonzero(~np.isfinite(arrival_s))[0])
        raise ValueError(f"arrival {row} is {arrival_s[row]}: it must be a number")
    wrong = np.isinf(departure_s) | (departure_s < arrival_s)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"departure {row} is {departure_s[row]}: it must be a number from {arrival_s[row]} on, or NaN")
