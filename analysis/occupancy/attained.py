"""Service that each request has attained when it leaves, under each policy: logs followed event by event, compiled.

A scheduler whose choices depend on arrivals, labels, past departures and attained service alone is followed forwards,
with the departures read instead of predicted. Shortest-remaining-time is followed backwards from the departures, where
nothing remains.

Requests that have attained the same form a group. Groups stand on a stack, the least attained on top; the topmost are
served, and merge with the one below them when they catch up.
"""

from typing import NamedTuple

import numpy as np

from analysis.occupancy.curve import EventLog
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit

WAITING, SERVING, GONE = 1, 2, 3
HEAD, TAIL, COUNT = range(3)


class Attained(NamedTuple):
    """What requests had attained when they left: (n,) arrays in order of arrival."""

    service_s: Floats
    """Until the last event if it never leaves."""
    fits: Bools
    """Whether the policy was serving the request when it left."""
    rate: Floats
    """At which it then did, up to 1."""


class RequestHeap(NamedTuple):
    """Requests by key, the least first; of equal keys the least number. One may stand in it more than once."""

    key: Floats
    request: Ints
    size: Ints
    """(1,) how many stand in it."""


class Groups(NamedTuple):
    """Groups are named by their first member."""

    parent: Ints
    """(n,) towards the group's name."""
    size: Ints
    """(n,) members present."""
    level_s: Floats
    """(n,) service attained by each member."""
    stack: Ints
    """(n + 1,) names; the least attained is the last of those in use."""


class RingQueue(NamedTuple):
    """A queue of requests in a ring. Each request stands in it at most once."""

    request: Ints
    """(n + 1,)"""
    mark: Ints
    """(3,) place of the first, place behind the last, and how many requests in it wait."""


class Turns(NamedTuple):
    """Who is being served, who waits, and until when."""

    state: Ints
    attained: Floats
    since: Floats
    """(n,) the server's clock when the present slice began."""
    ends_s: Floats
    """(n,) when the present slice ends."""
    leaves_s: Floats
    """(n,) when the request leaves."""
    queue: RingQueue
    slices: RingQueue
    """Requests in service: slices are equally long, so they end in the order in which they began."""


class RankedState(NamedTuple):
    """Who is served, who waits and who is gone, and what becomes of them: (n,) arrays."""

    state: Ints
    attained: Floats
    since: Floats
    """The server's clock when the request took its present place."""
    fits: Bools
    rate: Floats
    leaves: Ints
    """The event with which the request leaves."""
    busy: Ints
    """(1,) how many are served."""


class Instant(NamedTuple):
    """What happens at one time."""

    now: float
    """The server's clock."""
    last: int
    """The last of its events."""
    newest: int
    """The first of the requests that come and may come before a place becomes free; n without any."""
    servers: int
    ranks: Ints
    """(n,) of all requests."""


class Gap(NamedTuple):
    """Time from one event to the next, and the service of a busy server at both."""

    from_s: float
    to_s: float
    given: float
    pace: float


@njit(cache=True)
def ranked(log: EventLog, rank: Ints, servers: int, preemptive: bool, rounded: bool) -> Attained:
    """Follow a policy that serves the lowest ranks first: of those that wait, or with preemption of those present.

    Of what happens at one time the policy gets the order that suits it best: whoever is in service leaves first, and
    whoever takes a place leaves at once if it is to leave. If stamps are rounded, a place that becomes free when others
    come goes, of the next one and those that come and would be before it, to whom leaves first. As another order may
    be the true one, the rates of these requests are less.
    """
    n = log.requests
    places = RankedState(*_zeros(n), np.ones(n, dtype=np.bool_), np.ones(n), _leaving(log), np.zeros(1, dtype=np.int64))
    # By rank, first to be served, and by its negative, first to be preempted; who comes preempts one at most.
    waiting, serving, others = _empty(2 * n), _empty(2 * n), np.empty(2 * n, dtype=np.int64)
    first = 0
    while first < len(log.job):
        now, last = log.clock_s[first], _last_at_once(log, first)
        departures = _vacate(places, log, first, last)
        newest = n  # the first of those that come when a place becomes free, if the order may be another
        if rounded and not preemptive and departures > 0 and first + departures <= last:
            newest = log.job[first + departures]
        for e in range(first + max(departures - 1, 0), last + 1):
            i = log.job[e]
            if i >= 0:
                places.state[i] = WAITING
                _push(waiting, rank[i], i)
                _drop(serving, places.state, SERVING)
                if preemptive and places.busy[0] == servers and -serving.key[0] > rank[i]:
                    victim = _pop(serving)
                    places.attained[victim] += now - places.since[victim]
                    places.state[victim] = WAITING
                    places.busy[0] -= 1
                    _push(waiting, rank[victim], victim)
            if newest == n or e == last:
                _occupy(places, waiting, serving, Instant(now, last, newest, servers, rank), others)
        for e in range(first, first + departures):
            places.fits[-1 - log.job[e]] = places.state[-1 - log.job[e]] == GONE
            places.state[-1 - log.job[e]] = GONE
        first = last + 1
    for i in range(n):
        if places.state[i] == SERVING:
            places.attained[i] += log.clock_s[-1] - places.since[i]
    return Attained(places.attained, places.fits, places.rate)


@njit(cache=False)
def _empty(most: int) -> RequestHeap:
    return RequestHeap(np.empty(most + 1), np.empty(most + 1, dtype=np.int64), np.zeros(1, dtype=np.int64))


@njit(cache=False, borrows=True)
def _before(heap: RequestHeap, a: int, key: float, request: int) -> bool:
    """Tell whether what stands at a place comes before a request with that key."""
    return bool(heap.key[a] < key or (heap.key[a] == key and heap.request[a] < request))


@njit(cache=False, borrows=True)
def _push(heap: RequestHeap, key: float, request: int) -> None:
    """Put a request into a heap."""
    at = heap.size[0]
    heap.size[0] += 1
    while at > 0 and not _before(heap, (at - 1) // 2, key, request):
        heap.key[at], heap.request[at] = heap.key[(at - 1) // 2], heap.request[(at - 1) // 2]
        at = (at - 1) // 2
    heap.key[at], heap.request[at] = key, request


@njit(cache=False, borrows=True)
def _pop(heap: RequestHeap) -> int:
    """Take the first request out of a heap."""
    heap.size[0] -= 1
    first, n, at, below = heap.request[0], heap.size[0], 0, 1
    key, request = heap.key[n], heap.request[n]
    while below < n:
        if below + 1 < n and _before(heap, below + 1, heap.key[below], heap.request[below]):
            below += 1
        if not _before(heap, below, key, request):
            break
        heap.key[at], heap.request[at] = heap.key[below], heap.request[below]
        at, below = below, 2 * below + 1
    heap.key[at], heap.request[at] = key, request
    return int(first)


@njit(cache=False)
def _zeros(n: int) -> tuple[Ints, Floats, Floats]:
    return np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n)


@njit(cache=False, borrows=True)
def _vacate(places: RankedState, log: EventLog, first: int, last: int) -> int:
    """Let those leave that are in service when they are to; return how many are to leave."""
    departures = 0
    for e in range(first, last + 1):
        i = -1 - log.job[e]
        if i >= 0:
            departures += 1
            if places.state[i] == SERVING:
                places.attained[i] += log.clock_s[first] - places.since[i]
                places.state[i] = GONE
                places.busy[0] -= 1
    return departures


@njit(cache=False, borrows=True)
def _occupy(places: RankedState, waiting: RequestHeap, serving: RequestHeap, batch: Instant, others: Ints) -> None:
    """Give free places to those that wait; who is to leave does at once."""
    state, busy = places.state, places.busy
    _drop(waiting, state, WAITING)
    while busy[0] < batch.servers and waiting.size[0] > 0:
        chosen, more = _next(waiting, places.leaves, batch, state, others)
        places.rate[chosen] = 1.0 / (1 + max(more + 1 - (batch.servers - busy[0]), 0))
        if places.leaves[chosen] <= batch.last:
            state[chosen] = GONE
            places.rate[chosen] *= 0.5
        else:
            state[chosen], places.since[chosen] = SERVING, batch.now
            busy[0] += 1
            _push(serving, -batch.ranks[chosen], chosen)
        _drop(waiting, state, WAITING)


@njit(cache=False)
def _leaving(log: EventLog) -> Ints:
    """Return the event with which each request leaves; as many as there are if it never does."""
    leaves = np.full(log.requests, len(log.job))
    for e in range(len(log.job)):
        if log.job[e] < 0:
            leaves[-1 - log.job[e]] = e
    return leaves


@njit(cache=False, borrows=True)
def _last_at_once(log: EventLog, first: int) -> int:
    """Return the last event at the time of the first."""
    last = first
    while last + 1 < len(log.job) and log.time_s[last + 1] == log.time_s[first]:
        last += 1
    return last


@njit(cache=False, borrows=True)
def _next(waiting: RequestHeap, leaves: Ints, batch: Instant, state: Ints, others: Ints) -> tuple[int, int]:
    """Take the first that waits, or whoever leaves first of it and the newest before it; return how many others.

    These are put down in `others` before they are put back.
    """
    best = last = _pop(waiting)
    count = 0
    while last >= batch.newest:
        _drop(waiting, state, WAITING)
        if waiting.size[0] == 0:
            break
        last = _pop(waiting)
        others[count] = last
        if leaves[last] < leaves[best]:
            others[count], best = best, last
        count += 1
    for other in others[:count]:
        _push(waiting, batch.ranks[other], other)
    return best, count


def shortest_first(log: EventLog, demand_s: Floats, tolerance_s: float) -> Bools:
    """Return whether each request was the shortest that waited when a server took it; it leaves its demand later.

    Who needs more by no more than the tolerance may have been the shortest. Nothing is known of what one that never
    leaves needs.
    """
    came, taken, arrives = np.zeros(log.requests), np.full(log.requests, np.inf), log.job >= 0
    came[log.job[arrives]] = log.clock_s[arrives]
    leaving = -1 - log.job[~arrives]
    taken[leaving] = log.clock_s[~arrives] - demand_s[leaving]
    fits: Bools = _shortest_of_those_there(came, taken, np.argsort(taken), demand_s, tolerance_s)
    return fits


@njit(cache=True)
def _shortest_of_those_there(came: Floats, taken: Floats, order: Ints, demand_s: Floats, tolerance_s: float) -> Bools:
    """Return whether each request was, on the server's clock, the shortest of those that had come when it was taken."""
    n, following = len(came), 0
    fits, waiting = np.ones(n, dtype=np.bool_), _empty(n)
    for i in order:
        if taken[i] == np.inf:
            break
        while following < n and came[following] < taken[i] - tolerance_s:
            if taken[following] < np.inf:
                _push(waiting, demand_s[following], following)
            following += 1
        while waiting.size[0] > 0 and taken[waiting.request[0]] <= taken[i] + tolerance_s:
            _pop(waiting)
        if taken[i] > came[i] + tolerance_s and waiting.size[0] > 0:
            fits[i] = demand_s[i] <= waiting.key[0] + tolerance_s
    return fits


@njit(cache=True)
def shared(log: EventLog, servers: int) -> Attained:
    """Follow processor sharing: everybody present gets the same, at most one server's worth."""
    n = log.requests
    attained, joined, rate = np.zeros(n), np.full(n, -1.0), np.ones(n)
    received, last, present = 0.0, 0.0, 0
    for e in range(len(log.job)):
        if present > 0:
            received += (log.clock_s[e] - last) * min(1.0, servers / present)
        else:
            received = 0.0  # starts afresh with every busy period, lest rounding adds up over days
        i, last = log.job[e], log.clock_s[e]
        if i >= 0:
            joined[i] = received
            present += 1
        else:
            i = -1 - i
            attained[i], rate[i], joined[i] = received - joined[i], min(1.0, servers / present), -1.0
            present -= 1
    for i in range(n):
        if joined[i] >= 0.0:
            attained[i] = received - joined[i]
    return Attained(attained, np.ones(n, dtype=np.bool_), rate)


@njit(cache=True)
def shortest(log: EventLog, servers: int, tolerance_s: float) -> Attained:
    """Follow shortest-remaining-time backwards: the least remaining grow; one that outgrows a waiting one is unfit.

    Nothing is known of what a request that never leaves still needs: it counts as the longest.
    """
    n, m, rate = log.requests, len(log.job), np.ones(log.requests)
    attained, fits, state = np.zeros(n), np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.int64)
    base = np.zeros(n)  # of a waiting request what remains; of one in service that less the time from then to the end
    # Least remaining first; by −base and −request, most remaining first. An event puts three in at most.
    waiting, serving = _empty(n + 3 * m), _empty(n + 3 * m)
    final_s = log.clock_s[m - 1] if m > 0 else 0.0
    span_s, busy = final_s - (log.clock_s[0] if m > 0 else 0.0), 0
    stays = _stay(log)
    for i in range(n - 1, -1, -1):
        if not stays[i]:
            continue
        if busy == servers:
            _displace(waiting, serving, base, state, 0.0)
            busy -= 1
        base[i], state[i], busy = span_s, SERVING, busy + 1
        _push(serving, -span_s, -i)
    for e in range(m - 1, -1, -1):
        ago, i = final_s - log.clock_s[e], log.job[e]
        _outdate(waiting, 1, base, state, WAITING)
        _outdate(serving, -1, base, state, SERVING)
        both = waiting.size[0] > 0 and serving.size[0] > 0
        beyond = ago - serving.key[0] - waiting.key[0] if both else 0.0
        if beyond > 0.01 * tolerance_s:
            rate[-serving.request[0]] = 0.5
            fits[-serving.request[0]] &= beyond <= tolerance_s
        starts = -1
        if i < 0:
            starts = -1 - i
            if busy == servers:
                _displace(waiting, serving, base, state, ago)
                busy -= 1
        else:
            was_served = state[i] == SERVING
            attained[i] = base[i] + (ago if was_served else 0.0) - (span_s if stays[i] else 0.0)
            state[i] = GONE
            busy -= 1 if was_served else 0
            if was_served and waiting.size[0] > 0:
                starts = _pop(waiting)
        if starts >= 0:
            state[starts], base[starts], busy = SERVING, base[starts] - ago, busy + 1
            _push(serving, -base[starts], -starts)
    return Attained(attained, fits, rate)


@njit(cache=True)
def levelled(log: EventLog, servers: int, tolerance_s: float) -> Attained:
    """Return attained service, whether it was being served when it left, and at what rate, of each request.

    Who has attained more by no more than the tolerance may have attained the same.

    Examples
    --------
    >>> times = np.array([0.0, 1.0, 3.0, 5.0])
    >>> levelled(EventLog(times, times, np.array([0, 1, -1, -2]), 2), 1, 0.0)[0]
    array([1.5, 3.5])
    """
    n = log.requests
    attained, fits, rate, present = np.zeros(n), np.ones(n, dtype=np.bool_), np.ones(n), np.zeros(n, dtype=np.bool_)
    groups = Groups(np.arange(n), np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n + 1, dtype=np.int64))
    size, level_s, stack, depth, last = groups.size, groups.level_s, groups.stack, 0, 0.0
    for e in range(len(log.job)):
        depth = _serve(groups, depth, servers, log.clock_s[e] - last)
        i, last = log.job[e], log.clock_s[e]
        if i >= 0:
            present[i] = True
            if depth == 0 or level_s[stack[depth - 1]] > 0.0:
                stack[depth], depth = i, depth + 1
            groups.parent[i] = stack[depth - 1]
            size[stack[depth - 1]] += 1
        else:
            i = -1 - i
            group, free, at, alike = _find(groups.parent, int(i)), servers, depth - 1, 0
            while stack[at] != group and free > 0:
                if level_s[stack[at]] < level_s[group] - tolerance_s:
                    free -= min(free, size[stack[at]])
                else:
                    alike += size[stack[at]]
                at -= 1
            attained[i], fits[i], present[i] = level_s[group], free > 0, False
            rate[i] = min(1.0, free / (size[group] + alike)) if free > 0 else 1.0
            size[group] -= 1
    for i in range(n):
        if present[i]:
            attained[i] = level_s[_find(groups.parent, i)]
    return Attained(attained, fits, rate)


@njit(cache=True)
def rotated(log: EventLog, servers: int, quantum_s: float, tolerance_s: float) -> Attained:
    """Return attained service, whether it was being served when it left, and at what rate (1), of each request.

    A slice that ends less than the tolerance before its request leaves is its last: which of the two comes first is
    decided by rounding. Time grows with the number of slices.

    Examples
    --------
    >>> times = np.array([0.0, 0.0, 3.0, 5.0])
    >>> rotated(EventLog(times, times, np.array([0, 1, -1, -2]), 2), 1, 1.0, 0.0)[0]
    array([2., 3.])
    """
    n, busy, now_s, given = log.requests, 0, 0.0, 0.0
    fits, turns = np.ones(n, dtype=np.bool_), _turns(log)
    for e in range(len(log.job)):
        pace = (log.clock_s[e] - given) / (log.time_s[e] - now_s) if log.time_s[e] > now_s else 0.0
        _end_slices(turns, Gap(now_s, log.time_s[e], given, pace), quantum_s, tolerance_s)
        now_s, given, i = log.time_s[e], log.clock_s[e], log.job[e]
        if i >= 0:
            _wait(turns, i)
        else:
            i = -1 - i
            fits[i] = turns.state[i] == SERVING
            turns.attained[i] += given - turns.since[i] if fits[i] else 0.0
            turns.queue.mark[COUNT] -= 0 if fits[i] else 1
            busy -= 1 if fits[i] else 0
            turns.state[i] = GONE
        if busy < servers and turns.queue.mark[COUNT] > 0:
            _begin(turns, now_s + quantum_s, given)
            busy += 1
    for i in range(n):
        if turns.state[i] == SERVING:
            turns.attained[i] += given - turns.since[i]
    return Attained(turns.attained, fits, np.ones(n))


@njit(cache=False, borrows=True)
def _drop(heap: RequestHeap, state: Ints, wanted: int) -> None:
    """Take requests from the top of a heap that are no longer what stands in it."""
    while heap.size[0] > 0 and state[heap.request[0]] != wanted:
        _pop(heap)


@njit(cache=False)
def _stay(log: EventLog) -> Bools:
    """Return which requests arrive and never leave."""
    stays = np.zeros(log.requests, dtype=np.bool_)
    for i in log.job:
        stays[i if i >= 0 else -1 - i] = i >= 0
    return stays


@njit(cache=False, borrows=True)
def _outdate(heap: RequestHeap, sign: int, base: Floats, state: Ints, wanted: int) -> None:
    """Take entries from the top of a heap whose request is elsewhere or has another value by now."""
    key, request = heap.key, heap.request
    while heap.size[0] > 0 and (state[sign * request[0]] != wanted or base[sign * request[0]] != sign * key[0]):
        _pop(heap)


@njit(cache=False, borrows=True)
def _displace(waiting: RequestHeap, serving: RequestHeap, base: Floats, state: Ints, ago: float) -> None:
    """Let the request in service wait that has most remaining so long before the end."""
    _outdate(serving, -1, base, state, SERVING)
    most = -_pop(serving)
    state[most] = WAITING
    base[most] += ago
    _push(waiting, base[most], most)


@njit(cache=False, borrows=True)
def _serve(groups: Groups, depth: int, servers: int, left_s: float) -> int:
    """Let the topmost groups be served for a time; return the stack's depth."""
    level_s, stack = groups.level_s, groups.stack
    while left_s > 0.0:
        depth, below, part, share = _share_out(groups, depth, servers)
        if depth == 0:
            return 0
        # A group catches up with the next one only where the rate falls: from whole servers to a part, and to none.
        step, meets = left_s, -1
        whole = (part if part >= 0 else below) + 1
        if part >= 0 and whole < depth:
            gap = (level_s[stack[part]] - level_s[stack[whole]]) / (1.0 - share)
            step, meets = (gap, whole) if gap <= step else (step, meets)
        lowest = part if part >= 0 else whole
        if below >= 0:
            gap = (level_s[stack[below]] - level_s[stack[lowest]]) / (share if part >= 0 else 1.0)
            step, meets = (gap, lowest) if gap <= step else (step, meets)
        for place in range(below + 1, depth):
            level_s[stack[place]] += step * (share if place == part else 1.0)
        if meets >= 0:
            groups.parent[stack[meets]] = stack[meets - 1]
            groups.size[stack[meets - 1]] += groups.size[stack[meets]]
            depth = _close(stack, depth, meets)
        left_s -= step
    return depth


@njit(cache=False, borrows=True)
def _share_out(groups: Groups, depth: int, servers: int) -> tuple[int, int, int, float]:
    """Give servers to groups from the top, dropping empty ones.

    Return the stack's depth, the place of the first group that gets nothing (−1: none), that of the group whose members
    get less than a server (−1: none), and how much each of these gets.
    """
    free, at, part, share = servers, depth - 1, -1, 1.0
    while at >= 0 and (free > 0 or groups.size[groups.stack[at]] == 0):
        size = groups.size[groups.stack[at]]
        if size == 0:
            depth = _close(groups.stack, depth, at)
            part -= 1 if part >= 0 else 0
        elif size > free:
            part, share = at, free / size
        free -= min(free, size)
        at -= 1
    return depth, at, part, share


@njit(cache=False, borrows=True)
def _close(stack: Ints, depth: int, at: int) -> int:
    """Take the group at a place out of the stack; return the new depth."""
    for place in range(at, depth - 1):
        stack[place] = stack[place + 1]
    return depth - 1


@njit(cache=False, borrows=True)
def _find(parent: Ints, i: int) -> int:
    """Return the name of the group of request i, with path halving (Tarjan and van Leeuwen 1984)."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=False)
def _turns(log: EventLog) -> Turns:
    """Return the state before the first event."""
    n, leaves_s = log.requests, np.full(log.requests, np.inf)
    for e in range(len(log.job)):
        if log.job[e] < 0:
            leaves_s[-1 - log.job[e]] = log.time_s[e]
    queue = RingQueue(np.empty(n + 1, dtype=np.int64), np.zeros(3, dtype=np.int64))
    slices = RingQueue(np.empty(n + 1, dtype=np.int64), np.zeros(3, dtype=np.int64))
    return Turns(np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n), np.zeros(n), leaves_s, queue, slices)


@njit(cache=False, borrows=True)
def _end_slices(turns: Turns, gap: Gap, quantum_s: float, tolerance_s: float) -> None:
    """End the slices that end before the next event: their requests go to the end of the queue, if anyone waits."""
    slices, state, ends_s = turns.slices, turns.state, turns.ends_s
    while slices.mark[HEAD] != slices.mark[TAIL]:
        i = slices.request[slices.mark[HEAD]]
        if state[i] == SERVING and ends_s[i] >= gap.to_s:
            return
        _take_first(slices)
        if state[i] != SERVING:
            continue
        if turns.queue.mark[COUNT] == 0:
            ends_s[i] += quantum_s
            _queue_up(slices, i)
        elif turns.leaves_s[i] - ends_s[i] > tolerance_s:
            given = gap.given + gap.pace * (ends_s[i] - gap.from_s)
            turns.attained[i] += given - turns.since[i]
            _wait(turns, i)
            _begin(turns, ends_s[i] + quantum_s, given)


@njit(cache=False, borrows=True)
def _wait(turns: Turns, i: int) -> None:
    """Let a request wait at the end of the queue."""
    turns.state[i] = WAITING
    turns.queue.mark[COUNT] += 1
    _queue_up(turns.queue, i)


@njit(cache=False, borrows=True)
def _begin(turns: Turns, ends_s: float, given: float) -> None:
    """Give a slice to the first one that waits; someone does."""
    i = _take_first(turns.queue)
    while turns.state[i] != WAITING:
        i = _take_first(turns.queue)
    turns.queue.mark[COUNT] -= 1
    turns.state[i], turns.ends_s[i], turns.since[i] = SERVING, ends_s, given
    _queue_up(turns.slices, i)


@njit(cache=False, borrows=True)
def _queue_up(ring: RingQueue, i: int) -> None:
    """Put a request behind the last."""
    ring.request[ring.mark[TAIL]] = i
    ring.mark[TAIL] = (ring.mark[TAIL] + 1) % len(ring.request)


@njit(cache=False, borrows=True)
def _take_first(ring: RingQueue) -> int:
    """Take the first request."""
    i = ring.request[ring.mark[HEAD]]
    ring.mark[HEAD] = (ring.mark[HEAD] + 1) % len(ring.request)
    return int(i)
