"""Fewer servers: the least queueing that matched pairs leave possible, and the most that any policy could cause."""

import numpy as np
from numba import njit

from analysis.occupancy.budget import busy_periods
from analysis.occupancy.curve import Curve, curve
from analysis.occupancy.law import area
from analysis.occupancy.order import order_of
from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.queues.open import srpt


def least_queueing(
    arrival_s: Floats, departure_s: Floats, servers: int, to: int, *, seen: Curve | None = None
) -> float:
    """Return queueing time that no policy avoids on k' servers, from matched pairs (docs/laws.md, reduction by pairs).

    A job is in service whenever no more than k jobs are present, so its demand is at least that time. No policy on k'
    servers beats shortest remaining time first on one server as fast as all of them (Schrage 1968), and whatever work
    is left over makes some job later by its length.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds; pairs served by `servers` of one speed
    servers : k >= 1 that served them
    to : k' >= 1
    seen : the curve of these pairs, if there is one already

    Returns
    -------
    float
        Seconds; may be below 0, and says nothing then.

    Raises
    ------
    ValueError
        If a departure is missing or before its arrival, or the curve is that of other pairs.

    Examples
    --------
    >>> least_queueing(np.array([0.0, 0.0]), np.array([1.0, 3.0]), servers=2, to=1)
    1.0
    """
    if not np.all(departure_s >= arrival_s):
        raise InputError("every job needs a departure, not before its arrival")
    seen = curve(arrival_s, departure_s) if seen is None else seen
    order = order_of(arrival_s)
    demand_s = _alone(seen.time_s, seen.jobs <= servers, arrival_s, departure_s, order)
    if np.isnan(demand_s).any():
        raise InputError("the curve is not that of the pairs: some come or go when it shows neither")
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
    piece = np.diff(curve.time_s)
    piece *= np.minimum(curve.jobs, servers)
    work_s = periods.sums(piece)
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
    waiting_s: Floats = _each(curve.time_s, curve.arrivals, curve.initial, to, (start_s, end_s, full_s))
    return float(np.sum(waiting_s))


@njit(cache=True)
def _each(time_s: Floats, arrivals: Ints, initial: int, to: int, backlogs: tuple[Floats, Floats, Floats]) -> Floats:
    """Return seconds waited by those who come at each time, whoever comes first being served the longest."""
    start_s, end_s, full_s = backlogs
    waiting_s, backlog, present = np.zeros(len(time_s)), -1, 0
    for i in range(len(time_s)):
        came = arrivals[i] + (initial if i == 0 else 0)
        while backlog + 1 < len(start_s) and start_s[backlog + 1] <= time_s[i]:
            backlog += 1
            present = 0
        present += came
        if backlog >= 0:
            left_s = end_s[backlog] - max(time_s[i], full_s[backlog])
            waiting_s[i] = min(max(present - to, 0), came) * max(left_s, 0.0)
    return waiting_s


@njit(cache=True)
def _alone(time_s: Floats, free: Bools, arrival_s: Floats, departure_s: Floats, order: Ints) -> Floats:
    """Return for how long a server was free for each job of the log while it stayed; NaN if it did not come or go."""
    alone_s, demand_s, at = np.zeros(len(time_s)), np.full(len(order), np.nan), 0
    for i in range(len(free)):
        alone_s[i + 1] = alone_s[i] + (time_s[i + 1] - time_s[i]) * free[i]
    for job in order:
        while at < len(time_s) - 1 and time_s[at] < arrival_s[job]:
            at += 1
        # It left soon: look twice as far each time.
        near, reach = at, 1
        while near + reach < len(time_s) and time_s[near + reach] < departure_s[job]:
            near, reach = near + reach, 2 * reach
        left = near + np.searchsorted(time_s[near : near + reach + 1], departure_s[job])
        if left < len(time_s) and time_s[at] == arrival_s[job] and time_s[left] == departure_s[job]:
            demand_s[job] = alone_s[left] - alone_s[at]
    return demand_s
