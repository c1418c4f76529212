"""Compiled kernels of an open queue, first part: first come first served, processor sharing, SRPT and static priority.

A kernel serves a batch of jobs and stops at the last arrival, or runs on until everybody has left; a next batch carries
on where it stopped. So one kernel serves arrays of any length and an endless stream in bounded memory. All compiled
helpers live in this file because numba's cache does not look into others.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.code.compiled import njit

_Kind = TypeVar("_Kind", bound=np.generic)

QUEUED, BUSY = range(2)
"""Of `QueueState.number`: how many jobs wait in the heap, and how many are served."""
NOW, ATTAINED = range(2)
"""Of `QueueState.clock`: the time and, for processor sharing, the service that each job present has got."""


class JobBatch(NamedTuple):
    """Arrays of a batch, one row a job, in order of arrival; those left over from the batch before come first."""

    arrival_s: Floats
    demand_s: Floats
    priority: Ints
    start_s: Floats
    departure_s: Floats


class QueueState(NamedTuple):
    """Who is present between two batches.

    `key` and `waiting` are a heap ordered by (key, row), `end_s` and `serving` the servers in falling order of (end,
    row); `left_s` is the work left of a job that waits.
    """

    key: Floats
    waiting: Ints
    end_s: Floats
    serving: Ints
    left_s: Floats
    number: Ints
    clock: Floats


def line(capacity: int, servers: int) -> QueueState:
    """Return an empty line for batches of up to `capacity` rows."""
    return QueueState(
        np.empty(capacity), np.empty(capacity, np.int64), np.full(servers, -np.inf), np.empty(servers, np.int64),
        np.empty(capacity), np.zeros(2, np.int64), np.zeros(2),
    )  # fmt: skip


@njit(cache=False, borrows=True)
def _push(key: Floats, row: Ints, n: int, new_key: float, new_row: int) -> None:
    """Add to a heap of `n` that is ordered by (key, row)."""
    hole = n
    while hole > 0:
        above = (hole - 1) >> 1
        if key[above] < new_key or (key[above] == new_key and row[above] < new_row):
            break
        key[hole], row[hole] = key[above], row[above]
        hole = above
    key[hole], row[hole] = new_key, new_row


@njit(cache=False, borrows=True)
def _pop(key: Floats, row: Ints, n: int) -> None:
    """Remove the least of a heap of `n` that is ordered by (key, row)."""
    last, last_row, hole, below, end = key[n - 1], row[n - 1], 0, 1, n - 1
    while below < end:
        right = below + 1
        if right < end and (key[right] < key[below] or (key[right] == key[below] and row[right] < row[below])):
            below = right
        if last < key[below] or (last == key[below] and last_row < row[below]):
            break
        key[hole], row[hole] = key[below], row[below]
        hole, below = below, 2 * below + 1
    key[hole], row[hole] = last, last_row


@njit(cache=False, borrows=True)
def _occupy(end_s: Floats, serving: Ints, busy: int, end: float, row: int) -> None:
    """Put a job on a free server; `busy` others are sorted so that the next to leave is last."""
    hole = busy
    while hole > 0 and (end_s[hole - 1] < end or (end_s[hole - 1] == end and serving[hole - 1] < row)):
        end_s[hole], serving[hole] = end_s[hole - 1], serving[hole - 1]
        hole -= 1
    end_s[hole], serving[hole] = end, row


@njit(cache=False, borrows=True)
def _release(end_s: Floats, serving: Ints, busy: int, place: int) -> None:
    """Take the job at that place off its server."""
    for i in range(place, busy - 1):
        end_s[i], serving[i] = end_s[i + 1], serving[i + 1]


@njit(borrows=True)
def fcfs(jobs: JobBatch, state: QueueState, first: int, n: int, drain: bool) -> None:
    """Serve rows `first` to `n` in order of arrival, each when it is there and the server that frees first is free.

    A heap of the times at which the k servers come free (Kiefer and Wolfowitz 1955): O(n log k) time. The departure is
    start + demand to the last bit.
    """
    arrival_s, demand_s, start_s, departure_s = jobs.arrival_s, jobs.demand_s, jobs.start_s, jobs.departure_s
    free_s, servers = state.end_s, state.end_s.size
    for i in range(first, n):
        start = max(arrival_s[i], free_s[0])
        end = start + demand_s[i]
        start_s[i], departure_s[i] = start, end
        hole, below = 0, 1
        while below < servers:
            if below + 1 < servers and free_s[below + 1] < free_s[below]:
                below += 1
            if end <= free_s[below]:
                break
            free_s[hole] = free_s[below]
            hole, below = below, 2 * below + 1
        free_s[hole] = end


@njit(borrows=True)
def ps(jobs: JobBatch, state: QueueState, first: int, n: int, drain: bool) -> None:
    """Serve rows `first` to `n` by processor sharing, N present each at rate min(1, k / N) (Kleinrock 1967).

    A job leaves when what anybody present has got since it arrived makes up its demand: a heap of those levels, and
    O(n log N) time.
    """
    arrival_s, demand_s, start_s, departure_s = jobs.arrival_s, jobs.demand_s, jobs.start_s, jobs.departure_s
    key, row, servers = state.key, state.waiting, state.end_s.size
    present, now, attained = state.number[QUEUED], state.clock[NOW], state.clock[ATTAINED]
    for i in range(first, n + 1 if drain else n):
        until = arrival_s[i] if i < n else np.inf
        stretch = 1.0
        while present > 0:
            stretch = max(1.0, present / servers)
            end = now + max(key[0] - attained, 0.0) * stretch
            if end > until:
                break
            now, attained = end, key[0]
            departure_s[row[0]] = now
            _pop(key, row, present)
            present -= 1
        if i == n:
            break
        attained = attained + (until - now) / stretch if present > 0 else 0.0
        now = until
        start_s[i], departure_s[i] = now, np.nan
        _push(key, row, present, attained + demand_s[i], i)
        present += 1
    state.number[QUEUED], state.clock[NOW], state.clock[ATTAINED] = present, now, attained


@njit(borrows=True)
def srpt(jobs: JobBatch, state: QueueState, first: int, n: int, drain: bool) -> None:
    """Serve rows `first` to `n` by shortest remaining processing time (Schrage 1968), of equals the earlier row.

    O(n (k + log N)) time.
    """
    arrival_s, demand_s, start_s, departure_s = jobs.arrival_s, jobs.demand_s, jobs.start_s, jobs.departure_s
    key, waiting, end_s, serving, servers = state.key, state.waiting, state.end_s, state.serving, state.end_s.size
    queued, busy = state.number[QUEUED], state.number[BUSY]
    for i in range(first, n + 1 if drain else n):
        until = arrival_s[i] if i < n else np.inf
        while busy > 0 and end_s[busy - 1] <= until:
            busy -= 1
            now = end_s[busy]
            departure_s[serving[busy]] = now
            if queued > 0:
                left, row = key[0], waiting[0]
                _pop(key, waiting, queued)
                queued -= 1
                if np.isnan(start_s[row]):
                    start_s[row] = now
                _occupy(end_s, serving, busy, now + left, row)
                busy += 1
        if i == n:
            break
        start_s[i], departure_s[i] = np.nan, np.nan
        end = until + demand_s[i]
        if busy == servers and end >= end_s[0]:
            _push(key, waiting, queued, demand_s[i], i)
            queued += 1
            continue
        if busy == servers:
            _push(key, waiting, queued, end_s[0] - until, serving[0])
            queued += 1
            _release(end_s, serving, busy, 0)
            busy -= 1
        start_s[i] = until
        _occupy(end_s, serving, busy, end, i)
        busy += 1
    state.number[QUEUED], state.number[BUSY] = queued, busy


@njit(cache=False, borrows=True)
def _least_urgent(priority: Ints, serving: Ints, busy: int) -> int:
    """Return the place of the job in service with the largest (class, row)."""
    worst = 0
    for i in range(1, busy):
        here, least = serving[i], serving[worst]
        if priority[here] > priority[least] or (priority[here] == priority[least] and here > least):
            worst = i
    return worst


@njit(borrows=True)
def priority(jobs: JobBatch, state: QueueState, first: int, n: int, drain: bool) -> None:
    """Serve rows `first` to `n` by class, the lowest first, in order of arrival inside a class; preemptive resume.

    An urgent arrival takes the server of the last in the order of (class, row), who goes back to the front of its class
    by arrival (Cobham 1954; White and Christie 1958). O(n (k + log N)) time.
    """
    arrival_s, demand_s, start_s, departure_s = jobs.arrival_s, jobs.demand_s, jobs.start_s, jobs.departure_s
    key, waiting, end_s, serving, servers = state.key, state.waiting, state.end_s, state.serving, state.end_s.size
    queued, busy = state.number[QUEUED], state.number[BUSY]
    for i in range(first, n + 1 if drain else n):
        until = arrival_s[i] if i < n else np.inf
        while busy > 0 and end_s[busy - 1] <= until:
            busy -= 1
            now = end_s[busy]
            departure_s[serving[busy]] = now
            if queued > 0:
                row = waiting[0]
                _pop(key, waiting, queued)
                queued -= 1
                if np.isnan(start_s[row]):
                    start_s[row] = now
                _occupy(end_s, serving, busy, now + state.left_s[row], row)
                busy += 1
        if i == n:
            break
        start_s[i], departure_s[i], state.left_s[i] = np.nan, np.nan, demand_s[i]
        worst = _least_urgent(jobs.priority, serving, busy) if busy == servers else -1
        if worst >= 0 and jobs.priority[serving[worst]] <= jobs.priority[i]:
            _push(key, waiting, queued, float(jobs.priority[i]), i)
            queued += 1
            continue
        if worst >= 0:
            row = serving[worst]
            state.left_s[row] = end_s[worst] - until
            _push(key, waiting, queued, float(jobs.priority[row]), row)
            queued += 1
            _release(end_s, serving, busy, worst)
            busy -= 1
        start_s[i] = until
        _occupy(end_s, serving, busy, until + demand_s[i], i)
        busy += 1
    state.number[QUEUED], state.number[BUSY] = queued, busy


@njit(borrows=True)
def renumber(state: QueueState, row: Ints) -> None:
    """Let rows that remain after a batch be called by their new numbers: `row[old]`, −1 for who has left."""
    for i in range(state.number[QUEUED]):
        state.waiting[i] = row[state.waiting[i]]
    for i in range(state.number[BUSY]):
        state.serving[i] = row[state.serving[i]]
    for old in range(row.size):
        if row[old] >= 0:
            state.left_s[row[old]] = state.left_s[old]


def doubled(column: NDArray[_Kind]) -> NDArray[_Kind]:
    """Return a column with as many zeros behind it.

    Examples
    --------
    >>> doubled(np.array([1, 2]))
    array([1, 2, 0, 0])
    """
    return np.concatenate([column, np.zeros_like(column)])


def grown(state: QueueState) -> QueueState:
    """Return the line with room for as many rows again."""
    return state._replace(key=doubled(state.key), waiting=doubled(state.waiting), left_s=doubled(state.left_s))
