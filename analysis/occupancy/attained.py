"""Service that each request has attained when it leaves, under policies that rank or share: compiled.

A scheduler whose choices depend on arrivals, labels, past departures and attained service alone is followed forwards,
with the departures read instead of predicted. Shortest-remaining-time is followed backwards from the departures, where
nothing remains. All functions return, per request in order of arrival: the service attained (until the last event if it
never leaves), whether the policy was serving the request when it left, and the rate at which it then did (up to 1).
"""

from heapq import heappop, heappush

import numpy as np
from numba import njit

from analysis.occupancy.pairs import Log
from models.arrays import Bools, Floats, Ints

Attained = tuple[Floats, Bools, Floats]
Heap = list[tuple[float, int]]
Ranks = list[tuple[int, int]]
WAITING, SERVING, GONE = 1, 2, 3


@njit(cache=True)
def ranked(log: Log, rank: Ints, servers: int, preemptive: bool) -> Attained:
    """Follow a policy that serves the lowest ranks first: of those that wait, or with preemption of those present.

    Examples
    --------
    >>> times = np.array([0.0, 1.0, 2.0, 5.0])
    >>> ranked(Log(times, times, np.array([0, 1, -1, -2]), 2), np.array([0, 1]), 1, False)[0]
    array([2., 3.])
    """
    n = log.requests
    attained, since, state = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64)
    fits, busy = np.ones(n, dtype=np.bool_), 0
    waiting, serving = [(0, 0)], [(0, 0)]  # heaps of (± rank, request): first to be served, first to be preempted
    waiting.pop()
    serving.pop()
    for e in range(len(log.job)):
        now, i = log.clock_s[e], log.job[e]
        if i >= 0:
            state[i] = WAITING
            heappush(waiting, (rank[i], i))
            _drop(serving, state, SERVING)
            if preemptive and busy == servers and -serving[0][0] > rank[i]:
                victim = heappop(serving)[1]
                attained[victim] += now - since[victim]
                state[victim], busy = WAITING, busy - 1
                heappush(waiting, (rank[victim], victim))
        else:
            i = -1 - i
            fits[i] = state[i] == SERVING
            attained[i] += now - since[i] if fits[i] else 0.0
            busy -= 1 if fits[i] else 0
            state[i] = GONE
        _drop(waiting, state, WAITING)
        if busy < servers and len(waiting) > 0:
            chosen = heappop(waiting)[1]
            state[chosen], since[chosen], busy = SERVING, now, busy + 1
            if preemptive:
                heappush(serving, (-rank[chosen], chosen))
    for i in np.flatnonzero(state == SERVING):
        attained[i] += log.clock_s[-1] - since[i]
    return attained, fits, np.ones(n)


@njit(cache=True)
def _drop(heap: Ranks, state: Ints, wanted: int) -> None:
    """Take requests from the top of a heap that are no longer what stands in it."""
    while len(heap) > 0 and state[heap[0][1]] != wanted:
        heappop(heap)


@njit(cache=True)
def shared(log: Log, servers: int) -> Attained:
    """Follow processor sharing: everybody present gets the same, at most one server's worth.

    Examples
    --------
    >>> times = np.array([0.0, 1.0, 3.0, 5.0])
    >>> shared(Log(times, times, np.array([0, 1, -1, -2]), 2), 1)[0]
    array([2., 3.])
    """
    n = log.requests
    attained, joined, rate = np.zeros(n), np.full(n, -1.0), np.ones(n)
    each, last, present = 0.0, 0.0, 0
    for e in range(len(log.job)):
        if present > 0:
            each += (log.clock_s[e] - last) * min(1.0, servers / present)
        else:
            each = 0.0  # starts afresh with every busy period, lest rounding adds up over days
        i, last = log.job[e], log.clock_s[e]
        if i >= 0:
            joined[i] = each
            present += 1
        else:
            i = -1 - i
            attained[i], rate[i], joined[i] = each - joined[i], min(1.0, servers / present), -1.0
            present -= 1
    for i in np.flatnonzero(joined >= 0.0):
        attained[i] = each - joined[i]
    return attained, np.ones(n, dtype=np.bool_), rate


@njit(cache=True)
def shortest(log: Log, servers: int, tolerance_s: float) -> Attained:
    """Follow shortest-remaining-time backwards: the least remaining grow; one that outgrows a waiting one is unfit.

    Nothing is known of what a request that never leaves still needs: it counts as the longest.

    Examples
    --------
    >>> times = np.array([0.0, 1.0, 2.0, 5.0])
    >>> shortest(Log(times, times, np.array([0, 1, -2, -1]), 2), 1, 0.0)[0]
    array([4., 1.])
    """
    n, m = log.requests, len(log.job)
    attained, fits, state = np.zeros(n), np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.int64)
    base = np.zeros(n)  # of a waiting request what remains; of one in service that less the time from then to the end
    waiting, serving = [(0.0, 0)], [(0.0, 0)]  # heaps: least remaining first; (−base, −request), most remaining first
    waiting.pop()
    serving.pop()
    final_s = log.clock_s[m - 1] if m > 0 else 0.0
    span_s, busy = final_s - (log.clock_s[0] if m > 0 else 0.0), 0
    stays = _stay(log)
    for i in np.flatnonzero(stays)[::-1]:
        busy = _displace(waiting, serving, base, state, (busy == servers, 0.0, busy))
        base[i], state[i], busy = span_s, SERVING, busy + 1
        heappush(serving, (-span_s, -i))
    for e in range(m - 1, -1, -1):
        ago, i = final_s - log.clock_s[e], log.job[e]
        _outdate(waiting, 1, base, state, WAITING)
        _outdate(serving, -1, base, state, SERVING)
        if len(waiting) > 0 and len(serving) > 0 and ago - serving[0][0] > waiting[0][0] + tolerance_s:
            fits[-serving[0][1]] = False
        starts = -1
        if i < 0:
            starts = -1 - i
            busy = _displace(waiting, serving, base, state, (busy == servers, ago, busy))
        else:
            was_served = state[i] == SERVING
            attained[i] = base[i] + (ago if was_served else 0.0) - (span_s if stays[i] else 0.0)
            state[i] = GONE
            busy -= 1 if was_served else 0
            if was_served and len(waiting) > 0:
                starts = heappop(waiting)[1]
        if starts >= 0:
            state[starts], base[starts], busy = SERVING, base[starts] - ago, busy + 1
            heappush(serving, (-base[starts], -starts))
    return attained, fits, np.ones(n)


@njit(cache=True)
def _stay(log: Log) -> Bools:
    """Return which requests arrive and never leave."""
    stays = np.zeros(log.requests, dtype=np.bool_)
    for i in log.job:
        stays[i if i >= 0 else -1 - i] = i >= 0
    return stays


@njit(cache=True)
def _outdate(heap: Heap, sign: int, base: Floats, state: Ints, wanted: int) -> None:
    """Take entries from the top of a heap whose request is elsewhere or has another value by now."""
    while len(heap) > 0 and (state[sign * heap[0][1]] != wanted or base[sign * heap[0][1]] != sign * heap[0][0]):
        heappop(heap)


@njit(cache=True)
def _displace(waiting: Heap, serving: Heap, base: Floats, state: Ints, when: tuple[bool, float, int]) -> int:
    """If all servers are busy, let the request wait that has most remaining; return how many are busy."""
    full, ago, busy = when
    if not full:
        return busy
    _outdate(serving, -1, base, state, SERVING)
    most = -heappop(serving)[1]
    state[most] = WAITING
    base[most] += ago
    heappush(waiting, (base[most], most))
    return busy - 1
