"""Processor sharing at load-dependent rates, compiled, with what the processors do in each interval told on the way.

All present share what the busy processors do together. So all present attain service equally fast, and one curve, the
service that somebody there since time 0 would have attained, says when each departs and how much of its work falls
into any interval: `models.queues.serve` has the times alone. All compiled helpers live in this file because numba's
cache does not look into others.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit


class SharedJobs(NamedTuple):
    """What became of N jobs on k processors in n intervals."""

    departure_s: Floats
    """(N,) when each left."""
    arrival_level_s: Floats
    """(N,) service attained by the curve when each arrived."""
    edge_level_s: Floats
    """(n + 1,) the same at the edges of the intervals."""
    busy_s: Floats
    """(n,) time of all busy processors together in each interval."""
    work_s: Floats
    """(n,) work that they did, which is the same where rates are 1, 2, …, k."""


@njit(cache=False, inline="always")
def _push(key: Floats, row: Ints, n: int, new_key: float, new_row: int) -> None:
    """Add to a heap of `n`."""
    hole = n
    while hole > 0:
        above = (hole - 1) >> 1
        if key[above] <= new_key:
            break
        key[hole], row[hole] = key[above], row[above]
        hole = above
    key[hole], row[hole] = new_key, new_row


@njit(cache=False, inline="always")
def _pop(key: Floats, row: Ints, n: int) -> None:
    """Remove the least of a heap of `n`."""
    last, last_row, hole, below = key[n - 1], row[n - 1], 0, 1
    while below < n - 1:
        if below + 1 < n - 1 and key[below + 1] < key[below]:
            below += 1
        if last <= key[below]:
            break
        key[hole], row[hole] = key[below], row[below]
        hole, below = below, 2 * below + 1
    key[hole], row[hole] = last, last_row


@njit(cache=True)
def share(arrival_s: Floats, demand_s: Floats, rates: Floats, edge_s: Floats) -> SharedJobs:
    """Serve jobs by processor sharing until all have left, in one pass over arrivals, departures and edges.

    Parameters
    ----------
    arrival_s : (N,) array, non-decreasing, not before the first edge, seconds
    demand_s : (N,) array, non-negative, seconds on a processor alone
    rates : (k,) array, positive
        Work per second of all busy processors together while 1, 2, …, k are busy.
    edge_s : (n + 1,) array, increasing, seconds
    """
    jobs, k, edges = arrival_s.size, rates.size, edge_s.size
    departure_s, arrival_level_s = np.empty(jobs), np.empty(jobs)
    edge_level_s, busy_s, work_s = np.zeros(edges), np.zeros(edges - 1), np.zeros(edges - 1)
    key, row = np.empty(jobs), np.empty(jobs, np.int64)
    present, arrived, edge, now, level = 0, 0, 1, edge_s[0], 0.0
    while arrived < jobs or present > 0 or edge < edges:
        busy = min(present, k)
        rate = rates[busy - 1] / present if present > 0 else 0.0
        leaves_s = now + max(key[0] - level, 0.0) / rate if present > 0 else np.inf
        next_s = min(leaves_s, arrival_s[arrived] if arrived < jobs else np.inf)
        if edge < edges and edge_s[edge] <= next_s:
            busy_s[edge - 1] += busy * (edge_s[edge] - now)
            work_s[edge - 1] += present * rate * (edge_s[edge] - now)
            level += rate * (edge_s[edge] - now)
            now = edge_s[edge]
            edge_level_s[edge] = level
            edge += 1
            continue
        if edge < edges:
            busy_s[edge - 1] += busy * (next_s - now)
            work_s[edge - 1] += present * rate * (next_s - now)
        if leaves_s <= next_s:
            now, level = leaves_s, max(key[0], level)
            departure_s[row[0]] = now
            _pop(key, row, present)
            present -= 1
            continue
        level += rate * (next_s - now)
        now = next_s
        arrival_level_s[arrived] = level
        _push(key, row, present, level + demand_s[arrived], arrived)
        present += 1
        arrived += 1
    return SharedJobs(departure_s, arrival_level_s, edge_level_s, busy_s, work_s)
