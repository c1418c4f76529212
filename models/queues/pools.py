"""A pool of threads in front of cores, compiled: who holds a thread shares the cores evenly, the others wait in line.

All present under processor sharing hold a thread; here at most so many do (limited processor sharing: Avi-Itzhak and
Halfin 1988, Proc. ITC 12). With as many threads as cores it is first come first served.

At equal times departures come before arrivals, and simultaneous arrivals in order of index; the thread of a request
that leaves goes to the first in line. Nothing is checked here: see `models.queues.network`. All compiled helpers live
in this file because numba's cache does not look into others.
"""

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit


@njit(cache=False, error_model="numpy", borrows=True)
def _before(key: Floats, a: int, b: int) -> bool:
    """Tell whether job a is done before job b."""
    return bool(key[a] < key[b] or (key[a] == key[b] and a < b))


@njit(cache=False, error_model="numpy", borrows=True)
def _push(heap: Ints, size: int, key: Floats, job: int) -> None:
    """Put a job into a heap of so many."""
    at = size
    while at > 0 and _before(key, job, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = job


@njit(cache=False, error_model="numpy", borrows=True)
def _pop(heap: Ints, size: int, key: Floats) -> int:
    """Take the first job out of a heap of so many."""
    top, last, at, n = heap[0], heap[size - 1], 0, size - 1
    while 2 * at + 1 < n:
        child = 2 * at + 1
        if child + 1 < n and _before(key, heap[child + 1], heap[child]):
            child += 1
        if not _before(key, heap[child], last):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return int(top)


@njit(error_model="numpy")
def pooled(  # noqa: PLR0917  # compiled code takes arguments by position
    arrival_s: Floats, demand_s: Floats, servers: int, threads: int, start_s: Floats, departure_s: Floats
) -> None:
    """Fill when each of n requests got a thread and when it left.

    Virtual time is the service that each holder of a thread has had since all threads were free (Parekh and Gallager
    1993): a job is done when that reaches what it was when the job began, plus its demand.

    Parameters
    ----------
    arrival_s, demand_s : (n,) arrays, seconds; arrivals do not decrease
    servers, threads : at least 1
    start_s, departure_s : (n,) arrays, filled
    """
    n, holders, coming, waiting = arrival_s.size, 0, 0, 0  # requests from `waiting` up to `coming` are in line
    heap, done_at = np.empty(min(threads, n) + 1, np.int64), np.empty(n)
    now_s, attained, rate = 0.0, 0.0, 1.0
    while coming < n or holders > 0:
        finish_s = np.inf
        if holders > 0:
            finish_s = now_s + max(0.0, done_at[heap[0]] - attained) / rate
        if coming < n and arrival_s[coming] < finish_s:
            attained += rate * (arrival_s[coming] - now_s) if holders > 0 else 0.0
            now_s = arrival_s[coming]
            coming += 1
        else:
            job = _pop(heap, holders, done_at)
            holders -= 1
            now_s, departure_s[job] = finish_s, finish_s
            attained = done_at[job] if holders > 0 else 0.0
        while waiting < coming and holders < threads:
            start_s[waiting], done_at[waiting] = now_s, attained + demand_s[waiting]
            _push(heap, holders, done_at, waiting)
            holders += 1
            waiting += 1
        rate = min(holders, servers) / max(holders, 1)
