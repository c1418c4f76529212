"""Machines that share their processors among those present, and the routers before them, compiled.

A machine is served in the arithmetic of `models.queues.station.sharing`, so that a fixed choice gives the same to the
last bit. At equal times departures come before arrivals, and simultaneous arrivals in order of index. All compiled
helpers live in this file because numba's cache does not look into others. Nothing is checked here: see
`models.queues.dispatch`.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit

FIXED, ROUND_ROBIN, LEAST_LOADED, LEAST_EXPECTED, LEAST_ADDED = range(5)
OPEN = -1
"""The machine of a request for which the router has to find one; nobody whom a request goes with."""


class Requests(NamedTuple):
    """Arrays of n: arrivals, demands on each of m machines, types, and what comes out.

    `machine` is `OPEN` where the router decides; `beside` is an earlier request whose machine is taken, or `OPEN`.
    """

    arrival_s: Floats
    demand_s: Floats
    kind: Ints
    beside: Ints
    machine: Ints
    departure_s: Floats


class Routing(NamedTuple):
    """How a machine is chosen: `value` holds weights or predicted times, `credit` what round robin owes: (J, m) each.

    `believed` is the work per second that the router takes machine i to do while 1, 2, .. processors are busy.
    """

    code: int
    value: Floats
    credit: Floats
    believed: Floats


class SharedMachines(NamedTuple):
    """Per machine: processors, work per second while 1, 2, .. are busy, and who is present.

    `member` is a heap of the requests present by `key`, the service that everybody present has received when a request
    leaves, and index.
    """

    cores: Ints
    total: Floats
    member: Ints
    key: Floats
    present: Ints
    now_s: Floats
    """Last event."""
    received: Floats
    """Service that everybody present had received by then."""
    finish_s: Floats
    """When the next one leaves."""


@njit(cache=False, borrows=True)
def _push(member: Ints, key: Floats, n: int, job: int) -> None:
    """Add a job to a heap of n that is ordered by (key, index)."""
    at = n
    while at > 0:
        above = (at - 1) // 2
        if key[member[above]] < key[job] or (key[member[above]] == key[job] and member[above] < job):
            break
        member[at] = member[above]
        at = above
    member[at] = job


@njit(cache=False, borrows=True)
def _pop(member: Ints, key: Floats, n: int) -> None:
    """Remove the first of a heap of n that is ordered by (key, index)."""
    last, at, below = member[n - 1], 0, 1
    while below < n - 1:
        child, other = member[below], member[min(below + 1, n - 2)]
        if key[other] < key[child] or (key[other] == key[child] and other < child):
            below, child = below + 1, other
        if key[last] < key[child] or (key[last] == key[child] and last < child):
            break
        member[at] = child
        at, below = below, 2 * below + 1
    member[at] = last


@njit(cache=False, borrows=True)
def _rate(machines: SharedMachines, i: int) -> float:
    """Return the work per second that each request present on a machine gets."""
    jobs = machines.present[i]
    return float(machines.total[i, min(jobs, machines.cores[i]) - 1] / jobs)


@njit(cache=False, borrows=True)
def _plan(machines: SharedMachines, i: int) -> None:
    """Set when the next request leaves a machine if nobody comes."""
    machines.finish_s[i] = np.inf
    if machines.present[i] > 0:
        rest = max(0.0, machines.key[machines.member[i, 0]] - machines.received[i])
        machines.finish_s[i] = machines.now_s[i] + rest / _rate(machines, i)


@njit(cache=False, borrows=True)
def _clear(machines: SharedMachines, departure_s: Floats, i: int, until_s: float) -> None:
    """Let those leave a machine who are done by then."""
    while machines.finish_s[i] <= until_s and machines.present[i] > 0:
        job = machines.member[i, 0]
        departure_s[job] = machines.now_s[i] = machines.finish_s[i]
        machines.received[i] = machines.key[job] if machines.present[i] > 1 else 0.0
        _pop(machines.member[i], machines.key, machines.present[i])
        machines.present[i] -= 1
        _plan(machines, i)


@njit(cache=False, borrows=True)
def _admit(machines: SharedMachines, i: int, job: int, demand_s: float, now_s: float) -> None:
    """Let a request join a machine."""
    if machines.present[i] > 0:
        machines.received[i] += _rate(machines, i) * (now_s - machines.now_s[i])
    machines.now_s[i] = now_s
    machines.key[job] = machines.received[i] + demand_s
    _push(machines.member[i], machines.key, machines.present[i], job)
    machines.present[i] += 1
    _plan(machines, i)


@njit(cache=False, borrows=True)
def _in_turn(weight: Floats, credit: Floats) -> int:
    """Return the machine whose turn it is: each is owed its weight a turn, and who is owed most pays the sum."""
    best = 0
    for i in range(weight.size):
        credit[i] += weight[i]
        if credit[i] > credit[best]:
            best = i
    credit[best] -= weight.sum()
    return best


@njit(cache=False, borrows=True)
def _least_loaded(weight: Floats, present: Ints) -> int:
    """Return the machine with the fewest present for its weight; of equal ones the weightiest, then the first."""
    best = 0
    for i in range(1, weight.size):
        ours, theirs = present[i] * weight[best], present[best] * weight[i]
        if ours < theirs or (ours == theirs and weight[i] > weight[best]):
            best = i
    return best


@njit(cache=False, borrows=True)
def _pace(believed: Floats, cores: int, jobs: int) -> float:
    """Return the work per second that each of some jobs on a machine is believed to get."""
    return float(believed[min(jobs, cores) - 1] / jobs)


@njit(cache=False, borrows=True)
def _least_time(routing: Routing, machines: SharedMachines, predicted_s: Floats) -> int:
    """Return the machine where a request takes least if those present stay and nobody else comes.

    With `LEAST_ADDED`, what all present are held up meanwhile is counted too.
    """
    best, least = -1, np.inf
    for i in range(predicted_s.size):
        others, cores = machines.present[i], machines.cores[i]
        pace = _pace(routing.believed[i], cores, others + 1)
        time_s = predicted_s[i] / pace
        if routing.code == LEAST_ADDED and others > 0:
            time_s *= 1.0 + others * (1.0 - pace / _pace(routing.believed[i], cores, others))
        if time_s < least:
            best, least = i, time_s
    return best


@njit(cache=False, borrows=True)
def _choose(routing: Routing, machines: SharedMachines, kind: int) -> int:
    """Return the machine for a request of that type."""
    if routing.code == ROUND_ROBIN:
        return int(_in_turn(routing.value[kind], routing.credit[kind]))
    if routing.code == LEAST_LOADED:
        return int(_least_loaded(routing.value[kind], machines.present))
    return int(_least_time(routing, machines, routing.value[kind]))


@njit(borrows=True)
def run(requests: Requests, routing: Routing, machines: SharedMachines) -> None:
    """Serve all requests, filling in machines and departures: O(n (m + log N)) time with N present."""
    for job in range(requests.arrival_s.size):
        now_s, i = requests.arrival_s[job], requests.machine[job]
        for machine in range(machines.cores.size):
            _clear(machines, requests.departure_s, machine, now_s)
        if requests.beside[job] != OPEN:
            i = requests.machine[requests.beside[job]]
        elif i == OPEN:
            i = _choose(routing, machines, requests.kind[job])
        requests.machine[job] = i
        _admit(machines, i, job, requests.demand_s[job, i], now_s)
    for machine in range(machines.cores.size):
        _clear(machines, requests.departure_s, machine, np.inf)
