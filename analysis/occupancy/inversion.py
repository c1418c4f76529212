"""Service demands reconstructed from matched pairs of arrivals and departures, exactly, where the policy allows it."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis.occupancy.attained import Attained, levelled, ranked, rotated, shared, shortest, shortest_first
from analysis.occupancy.curve import EventLog, Pairs, pairs
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import InputError
from models.queues.policies import POLICIES, Policy, PolicyName

AnyPolicy: TypeAlias = Literal[PolicyName, "unknown"]
"""A policy, or `unknown`: one that never reorders whom it has, of which nothing else is known."""
ROUNDING = 64 * np.finfo(np.float64).eps
"""Relative to the clock: what sums of times may differ by for no other reason than rounding."""


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """What a policy makes of a log; rows as in the log. Where the policy is the right one, every request fits."""

    demand_s: Floats
    """(n,) service attained by departure: the demand. Of a request that has not left, by the end of the log."""
    fits: Bools
    """(n,) False where a request left while the policy was not serving it, or, under srpt and sjf, was served although
    one that waited needed less. The demand then is what the policy had given it, and no demand of the request's."""
    rate: Floats
    """(n,) work per second of busy server that the request was getting when it left: 1, or a share of it. Under random
    it is the probability with which the request was chosen."""
    finished: Bools
    """(n,) False for a request that has not left; its demand is larger (under srpt only likely so)."""


def demands(
    policy: AnyPolicy,
    arrival_s: Floats,
    departure_s: Floats,
    servers: int,
    *,
    priority: Ints | None = None,
    quantum_s: float = 0.1,
    rates: Floats | None = None,
) -> Floats:
    """Return every request's service demand, reconstructed under the policy that served it.

    Exact on any number of servers but for random, which is on one, and for `unknown`, which is on one if requests that
    are present together are never reordered: then the one in service is the one that leaves first. Under sjf the
    shortest of those that wait is taken first, so it leaves before each of the others. Whoever meets at most `servers`
    requests has its whole stay for a demand, under any policy. What becomes of requests that do not fit the policy or
    have not left says `Reconstruction`, which `reconstruct` returns. Simultaneous events are in the order departures,
    arrivals (as in the log), ends of slices; a tie that rounding has broken in the log, such as of an arrival with the
    end of a slice, may be decided wrongly.

    Parameters
    ----------
    policy : how the servers chose
    arrival_s, departure_s : (n,) arrays, seconds; NaN departures have not left
    servers : k >= 1
    priority : (n,) classes of policy priority, 0 first
    quantum_s : time slice of rr
    rates : (k,) work per second done by 1 to k busy servers together; None: as many as are busy

    Returns
    -------
    (n,) array, seconds on a server of speed 1
    """
    return reconstruct(
        policy, arrival_s, departure_s, servers, priority=priority, quantum_s=quantum_s, rates=rates
    ).demand_s


def reconstruct(
    policy: AnyPolicy,
    arrival_s: Floats,
    departure_s: Floats,
    servers: int,
    *,
    priority: Ints | None = None,
    quantum_s: float = 0.1,
    rates: Floats | None = None,
    tolerance_s: float = 0.0,
    tick_s: float = 0.0,
) -> Reconstruction:
    """Return what the policy makes of a log: demands, and whether every request fits.

    Parameters
    ----------
    policy, arrival_s, departure_s, servers, priority, quantum_s, rates : as for `demands`
    tolerance_s : by so much a served request may need more than a waiting one under srpt, and a slice of rr end before
        the departure of its request, beyond what rounding explains
    tick_s : what stamps were rounded to; 0: nothing. Then demands under srpt, sjf and fb that differ by less than two
        ticks may be equal, and so may the end of a slice and a departure
    """
    _check(policy, servers, quantum_s, rates)
    events = pairs(arrival_s, departure_s)
    log = EventLog(events.time_s, _clock(events, servers, rates), events.job, len(events.order))
    tolerance_s = max(tolerance_s, 2.0 * tick_s) + ROUNDING * (log.clock_s[-1] if len(log.clock_s) else 0.0)
    rules = None if policy == "unknown" else POLICIES[policy]
    if rules is None:
        answer = ranked(log, _departures_first(events), servers, preemptive=True, rounded=False)
    elif rules.sharing == "evenly":
        answer = shared(log, servers)
    elif rules.sharing == "least attained":
        answer = levelled(log, servers, 2.0 * tick_s)
    elif rules.order == "remaining":
        answer = shortest(log, servers, tolerance_s)
    elif rules.sliced:
        answer = rotated(log, servers, quantum_s, tolerance_s)
    else:
        answer = _ranked(rules, log, events, servers, priority, tick_s=tick_s)
    attained, fits, rate = (_logged(values, events) for values in answer)
    return Reconstruction(attained, fits, rate, np.isfinite(np.asarray(departure_s, dtype=np.float64)))


def drawn_demands(arrival_s: Floats, departure_s: Floats, servers: int, seed: int = 0) -> Floats:
    """Return demands under one of the courses that random order may have taken: who is taken is drawn once more.

    Of those that wait when a server is free anyone may be taken, but for one that leaves next: it must be in service.
    Requests that find a free server have their own demands, the others demands that they may have had, and all together
    the work that was done.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds; NaN departures have not left
    servers : k >= 1
    seed : of the draws

    Examples
    --------
    >>> came, left = np.array([9.0, 9.0, 10.0, 10.0]), np.array([13.0, 12.0, 14.0, 16.0])
    >>> drawn_demands(came, left, 2).tolist()
    [4.0, 3.0, 2.0, 3.0]
    """
    events = pairs(arrival_s, departure_s)
    n = len(events.order)
    draws = np.random.default_rng(seed).random(n)
    taken_s = _logged(_taken(events.time_s, events.job, draws, servers), events)
    came_s = np.asarray(arrival_s, dtype=np.float64)
    first_s = float(came_s.min(initial=np.inf))
    left_s = np.where(np.isfinite(departure_s), departure_s, first_s + events.time_s.max(initial=0.0))
    demand_s: Floats = np.maximum(left_s - np.maximum(first_s + taken_s, came_s), 0.0)
    return demand_s


@njit(cache=True)
def _taken(time_s: Floats, job: Ints, draws: Floats, servers: int) -> Floats:
    """Return when each request is taken by a server, in order of arrival; infinity: never."""
    n, busy, waiting = len(draws), 0, 0
    taken_s, place, line = np.full(n, np.inf), np.full(n, -1), np.zeros(n, dtype=np.int64)
    following = np.full(len(job) + 1, -1)  # who leaves next, after each event
    for e in range(len(job) - 1, -1, -1):
        following[e] = -1 - job[e] if job[e] < 0 else following[e + 1]
    used = 0
    for e in range(len(job)):
        if job[e] >= 0:
            place[job[e]], line[waiting] = waiting, job[e]
            waiting += 1
        elif taken_s[-1 - job[e]] < np.inf:
            busy -= 1
        elif place[-1 - job[e]] >= 0:  # one in service left before it, in the same tick
            at, waiting = place[-1 - job[e]], waiting - 1
            line[at] = line[waiting]
            place[line[at]] = at
            place[-1 - job[e]], taken_s[-1 - job[e]] = -1, time_s[e]
        while busy < servers and waiting > 0:
            chosen = following[e + 1]
            if chosen < 0 or place[chosen] < 0:
                chosen = line[int(draws[used] * waiting)]
            used += 1
            at, waiting, busy = place[chosen], waiting - 1, busy + 1
            line[at] = line[waiting]
            place[line[at]] = at
            place[chosen], taken_s[chosen] = -1, time_s[e]
    return taken_s


def _ranked(
    policy: Policy, log: EventLog, events: Pairs, servers: int, priority: Ints | None, *, tick_s: float
) -> Attained:
    """Return what a policy makes of a log that serves in a fixed order of requests."""
    rank = _rank(policy, events, priority)
    attained, fits, rate = ranked(log, rank, servers, policy.preemptive, tick_s > 0)
    if policy.order == "size":
        fits &= shortest_first(
            log, attained, max(2.0 * tick_s, ROUNDING * (log.clock_s[-1] if len(log.clock_s) else 0.0))
        )
    elif policy.order == "drawn":
        leaving = np.flatnonzero(log.job < 0)
        rate[-1 - log.job[leaving[1:]]] = 1.0 / np.maximum(events.present[leaving[:-1]], 1)
    return Attained(attained, fits, rate)


def _logged(values: NDArray[Any], events: Pairs) -> NDArray[Any]:
    """Return values given in order of arrival in the order of the log."""
    result = np.empty_like(values)
    result[events.order] = values
    return result


def _rank(policy: Policy, events: Pairs, priority: Ints | None) -> Ints:
    """Return the order in which a policy of fixed ranks serves: the least first."""
    n = len(events.order)
    arrived = np.arange(n)
    if policy.order == "arrival":
        return arrived
    if policy.order == "latest":
        return -arrived
    if policy.order == "class":
        given = 0 if priority is None else len(priority)
        if priority is None or given != n:
            raise InputError(f"policy priority needs {n} classes, got {given}")
        by_class = np.lexsort((arrived, np.asarray(priority)[events.order]))
        rank = np.empty(n, dtype=np.int64)
        rank[by_class] = arrived
        return rank
    return _departures_first(events)


def _departures_first(events: Pairs) -> Ints:
    """Return the order of departure: of those waiting a server takes whoever leaves first."""
    n = len(events.order)
    leaving = -1 - events.job[events.job < 0]
    rank = np.arange(n) + n
    rank[leaving] = np.arange(len(leaving))
    return rank


def _clock(events: Pairs, servers: int, rates: Floats | None) -> Floats:
    """Return how much service one busy server has given by each event."""
    if rates is None:
        return events.time_s
    busy = np.clip(events.present[:-1], 1, servers)
    gained = np.diff(events.time_s) * (np.asarray(rates, dtype=np.float64) / np.arange(1, servers + 1))[busy - 1]
    return np.concatenate([np.zeros(min(1, len(events.time_s))), np.cumsum(gained)])


def _check(policy: AnyPolicy, servers: int, quantum_s: float, rates: Floats | None) -> None:
    """Refuse what cannot be reconstructed, and arguments out of bounds."""
    if policy not in (*POLICIES, "unknown"):
        raise InputError(f"policy {policy!r}: it must be one of {', '.join((*POLICIES, 'unknown'))}")
    if servers < 1:
        raise InputError(f"{servers} servers: there must be at least 1")
    if policy == "unknown":
        if servers > 1:
            raise InputError(f"an unknown policy on {servers} servers does not say who is served; on 1 server it does")
    elif servers > 1 and POLICIES[policy].hidden:
        raise InputError(
            f"demands under {policy} on {servers} servers cannot be known: {POLICIES[policy].hidden}; "
            "it does on 1 server"
        )
    if not quantum_s > 0:
        raise InputError(f"a quantum of {quantum_s} s: it must be above 0")
    if rates is not None and (np.shape(rates) != (servers,) or not (np.asarray(rates) > 0).all()):
        raise InputError(f"rates {rates}: there must be {servers}, each above 0")
