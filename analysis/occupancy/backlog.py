"""Fewer servers: the least queueing that matched pairs leave possible, and the most that any policy could cause."""

import numpy as np

from analysis.occupancy.budget import busy_periods
from analysis.occupancy.curve import Curve, Floats, curve
from analysis.occupancy.law import area
from models.queues.open import srpt


def least_queueing(arrival_s: Floats, departure_s: Floats, servers: int, to: int) -> float:
    """Return queueing time that no policy avoids on k' servers, from matched pairs (docs/laws.md, reduction by pairs).

    A job is in service whenever no more than k jobs are present, so its demand is at least that time. No policy on k'
    servers beats shortest remaining time first on one server as fast as all of them (Schrage 1968), and whatever work
    is left over makes some job later by its length.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds; pairs served by `servers` of one speed
    servers : k >= 1 that served them
    to : k' >= 1

    Returns
    -------
    float
        Seconds; may be below 0, and says nothing then.

    Raises
    ------
    ValueError
        If a departure is missing or before its arrival.

    Examples
    --------
    >>> least_queueing(np.array([0.0, 0.0]), np.array([1.0, 3.0]), servers=2, to=1)
    1.0
    """
    if not np.all(departure_s >= arrival_s):
        raise ValueError("every job needs a departure, not before its arrival")
    seen = curve(arrival_s, departure_s)
    alone_s = np.concatenate(([0.0], np.cumsum(np.diff(seen.time_s) * (seen.jobs <= servers))))
    demand_s = np.interp(departure_s, seen.time_s, alone_s) - np.interp(arrival_s, seen.time_s, alone_s)
    order = np.argsort(arrival_s, kind="stable")
    done_s = srpt(arrival_s[order], demand_s[order] / to, 1)
    work_s = area(seen, servers)
    return float(np.sum(done_s - arrival_s[order]) + (work_s - np.sum(demand_s)) / to) - work_s


def most_backlog(curve: Curve, servers: int, to: int) -> float:
    """Return queueing time that no work-conserving policy exceeds on k' servers (docs/laws.md, reduction, upper side).

    Work is done at least at the speed of one server while any is present, so the backlogs end no later than if each
    busy period's work came at its start to one server (Lindley 1952). Within a backlog at most all arrivals so far are
    present, and more than k' of them only while all k' servers are busy.

    Parameters
    ----------
    curve : occupancy with k servers of one speed
    servers : k >= 1
    to : k' >= 1

    Returns
    -------
    float
        Seconds, within the curve if jobs are still present at its end, otherwise until all have left.

    Examples
    --------
    >>> from analysis.occupancy.curve import curve
    >>> most_backlog(curve([0.0, 0.0], [1.0, 3.0]), servers=2, to=1)
    4.0
    """
    periods = busy_periods(curve)
    if not len(periods.first):
        return 0.0
    work_s = periods.sums(np.diff(curve.time_s) * np.minimum(curve.jobs, servers))
    start_s, done_s = curve.time_s[periods.first], np.cumsum(work_s)
    end_s = done_s + np.maximum.accumulate(start_s - done_s + work_s)
    opens = np.flatnonzero(np.concatenate(([True], start_s[1:] > end_s[:-1])))
    start_s, end_s = start_s[opens], end_s[np.append(opens[1:], len(end_s)) - 1]
    full_s = end_s - np.add.reduceat(work_s, opens) / to
    if not periods.closed:
        end_s[-1], full_s[-1] = curve.end_s, start_s[-1]
    return _waiting(curve, to, start_s, end_s, full_s)


def _waiting(curve: Curve, to: int, start_s: Floats, end_s: Floats, full_s: Floats) -> float:
    """Return ∫ (arrivals since the backlog's start − k')⁺ from `full_s` to `end_s` of each backlog."""
    came = curve.arrivals.copy()
    came[0] += curve.initial
    total = np.concatenate(([0], np.cumsum(came)))
    backlog = np.searchsorted(start_s, curve.time_s, "right") - 1
    before = total[np.searchsorted(curve.time_s, start_s)]
    rank = total[1:] - before[backlog]
    waiting = np.minimum(np.maximum(rank - to, 0), came)
    left_s = end_s[backlog] - np.maximum(curve.time_s, full_s[backlog])
    return float(np.sum(waiting * np.maximum(left_s, 0.0) * (backlog >= 0)))
