"""Round robin followed forwards, with the departures read instead of predicted: compiled."""

from typing import NamedTuple

import numpy as np
from numba import njit

from analysis.occupancy.pairs import Log
from models.arrays import Bools, Floats, Ints

WAITING, SERVING, GONE = 1, 2, 3
HEAD, TAIL, COUNT = range(3)


class Ring(NamedTuple):
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
    queue: Ring
    slices: Ring
    """Requests in service: slices are equally long, so they end in the order in which they began."""


class Gap(NamedTuple):
    """Time from one event to the next, and the service of a busy server at both."""

    from_s: float
    to_s: float
    given: float
    pace: float


@njit(cache=True)
def rotated(log: Log, servers: int, quantum_s: float, tolerance_s: float) -> tuple[Floats, Bools, Floats]:
    """Return attained service, whether it was being served when it left, and at what rate (1), of each request.

    A slice that ends less than the tolerance before its request leaves is its last: which of the two comes first is
    decided by rounding. Time grows with the number of slices.

    Examples
    --------
    >>> times = np.array([0.0, 0.0, 3.0, 5.0])
    >>> rotated(Log(times, times, np.array([0, 1, -1, -2]), 2), 1, 1.0, 0.0)[0]
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
    for i in np.flatnonzero(turns.state == SERVING):
        turns.attained[i] += given - turns.since[i]
    return turns.attained, fits, np.ones(n)


@njit(cache=True)
def _turns(log: Log) -> Turns:
    """Return the state before the first event."""
    n, leaves_s = log.requests, np.full(log.requests, np.inf)
    for e in np.flatnonzero(log.job < 0):
        leaves_s[-1 - log.job[e]] = log.time_s[e]
    queue = Ring(np.empty(n + 1, dtype=np.int64), np.zeros(3, dtype=np.int64))
    slices = Ring(np.empty(n + 1, dtype=np.int64), np.zeros(3, dtype=np.int64))
    return Turns(np.zeros(n, dtype=np.int64), np.zeros(n), np.zeros(n), np.zeros(n), leaves_s, queue, slices)


@njit(cache=True)
def _end_slices(turns: Turns, gap: Gap, quantum_s: float, tolerance_s: float) -> None:
    """End the slices that end before the next event: their requests go to the end of the queue, if anyone waits."""
    slices, state, ends_s = turns.slices, turns.state, turns.ends_s
    while slices.mark[HEAD] != slices.mark[TAIL]:
        i = slices.request[slices.mark[HEAD]]
        if state[i] == SERVING and ends_s[i] >= gap.to_s:
            return
        _pop(slices)
        if state[i] != SERVING:
            continue
        if turns.queue.mark[COUNT] == 0:
            ends_s[i] += quantum_s
            _push(slices, i)
        elif turns.leaves_s[i] - ends_s[i] > tolerance_s:
            given = gap.given + gap.pace * (ends_s[i] - gap.from_s)
            turns.attained[i] += given - turns.since[i]
            _wait(turns, i)
            _begin(turns, ends_s[i] + quantum_s, given)


@njit(cache=True)
def _wait(turns: Turns, i: int) -> None:
    """Let a request wait at the end of the queue."""
    turns.state[i] = WAITING
    turns.queue.mark[COUNT] += 1
    _push(turns.queue, i)


@njit(cache=True)
def _begin(turns: Turns, ends_s: float, given: float) -> None:
    """Give a slice to the first one that waits; someone does."""
    i = _pop(turns.queue)
    while turns.state[i] != WAITING:
        i = _pop(turns.queue)
    turns.queue.mark[COUNT] -= 1
    turns.state[i], turns.ends_s[i], turns.since[i] = SERVING, ends_s, given
    _push(turns.slices, i)


@njit(cache=True)
def _push(ring: Ring, i: int) -> None:
    """Put a request behind the last."""
    ring.request[ring.mark[TAIL]] = i
    ring.mark[TAIL] = (ring.mark[TAIL] + 1) % len(ring.request)


@njit(cache=True)
def _pop(ring: Ring) -> int:
    """Take the first request."""
    i = ring.request[ring.mark[HEAD]]
    ring.mark[HEAD] = (ring.mark[HEAD] + 1) % len(ring.request)
    return int(i)
