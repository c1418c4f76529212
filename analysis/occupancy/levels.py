"""Feedback (least attained service first) followed forwards, with the departures read: compiled.

Requests that have attained the same form a group. Groups stand on a stack, the least attained on top; the topmost are
served, and merge with the one below them when they catch up.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from analysis.occupancy.pairs import Log
from models.arrays import Bools, Floats, Ints


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


@njit(cache=True)
def levelled(log: Log, servers: int) -> tuple[Floats, Bools, Floats]:
    """Return attained service, whether it was being served when it left, and at what rate, of each request.

    Examples
    --------
    >>> times = np.array([0.0, 1.0, 3.0, 5.0])
    >>> levelled(Log(times, times, np.array([0, 1, -1, -2]), 2), 1)[0]
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
            group, free, at = _find(groups.parent, int(i)), servers, depth - 1
            while stack[at] != group and free > 0:
                free, at = free - min(free, size[stack[at]]), at - 1
            attained[i], fits[i], present[i] = level_s[group], free > 0, False
            rate[i] = min(1.0, free / size[group])
            size[group] -= 1
    for i in np.flatnonzero(present):
        attained[i] = level_s[_find(groups.parent, int(i))]
    return attained, fits, rate


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def _close(stack: Ints, depth: int, at: int) -> int:
    """Take the group at a place out of the stack; return the new depth."""
    for place in range(at, depth - 1):
        stack[place] = stack[place + 1]
    return depth - 1


@njit(cache=True)
def _find(parent: Ints, i: int) -> int:
    """Return the name of the group of request i, with path halving (Tarjan and van Leeuwen 1984)."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
