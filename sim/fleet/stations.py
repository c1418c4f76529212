"""Instances whose requests are served one by one on the event-driven machine: their stations, compiled.

A station is an instance with so many servers, each a hardware thread, under one of `models.queues.policies`. It is the
queue of `models.queues.station`, taken one event at a time: the machine says how much work a server does a second, and
says it anew whenever it is solved. Work is counted in mean requests.

Stations of a block lie one after the other in two arrays (`sim.fleet.layout.StationsAtWork`); what the kernels of the
queue work on are slices of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit
from models.queues.layout import (
    AttainedLine,
    Cores,
    Foreground,
    Heap,
    Pace,
    RequestArrays,
    Servers,
    ServiceTimes,
    Shared,
    Shop,
)
from models.queues.policies import POLICIES, PolicyName
from models.queues.station import (
    JOBS,
    NOBODY,
    NOW,
    happen_foreground,
    happen_on_cores,
    happen_sharing,
    next_foreground,
    next_on_cores,
    next_sharing,
    pace_on_cores,
    pass_foreground,
    pass_sharing,
)
from sim.fleet.layout import REQUEST, STATION, Records, StationsAtWork

_SHARINGS = ("cores", "evenly", "least attained")
_EVENLY, _LEAST_ATTAINED = 1, 2
# A station of n requests and k servers has so many numbers, and so many counts, one after the other:
_OF_REQUEST, _OF_SERVER, _OF_STATION = 3, 10, 4  # key, left, start; `Cores` (7), speed, pace, total; total, clock, pace
_PER_REQUEST, _PER_SERVER, _PER_STATION = 3, 2, 11  # turn, member, group; job, serial; group, and the places below
_PENDING, _WAITING, _GROUPS, _TALLY, _NEXT, _ROW = 0, 1, 2, 4, 7, 8
"""Places in the last of a station's counts: sizes of its heaps, of `AttainedLine` (2), `Shop.tally` (3), who arrives
next, and `Pace.row` (2)."""


_Rows = TypeVar("_Rows", Floats, Ints)


class Parts(NamedTuple):
    """What the queues of all policies are made of: see `models.queues.layout`."""

    load: RequestArrays
    servers: Servers
    times: ServiceTimes
    pending: Heap
    waiting: Heap
    left: Floats
    total: Floats
    clock: Floats


@dataclass(frozen=True, slots=True, eq=False)
class StationLoad:
    """Requests of one stay that are served one by one: (n,) arrays."""

    servers: int
    """Hardware threads."""
    policy: PolicyName
    arrival_s: Floats
    """Increasing, within the stay."""
    work: Floats
    """Instructions relative to the job's mean request."""
    quantum_s: float = 0.1
    """Time slice of round robin."""
    priority: Ints | None = None
    """Class of each request, 0 first, for policy priority."""
    choice: Floats | None = None
    """Draws in [0, 1) for policy random, as for `models.queues.serve.serve`."""


def stations_of(stays: Sequence[StationLoad]) -> tuple[StationsAtWork, Records]:
    """Return the stations of stays, in this order, before they are at work, and their requests.

    Returns
    -------
    (S,) stations, (n,) array of `sim.fleet.layout.REQUEST`
    """
    n = np.array([stay.arrival_s.size for stay in stays], np.int64)
    k = np.array([stay.servers for stay in stays], np.int64)
    station, requests = np.zeros(len(stays), STATION), np.zeros(int(n.sum()), REQUEST)
    numbers = np.cumsum(_OF_REQUEST * n + _OF_SERVER * k + _OF_STATION)
    counts = np.cumsum(_PER_REQUEST * n + _PER_SERVER * k + _PER_STATION)
    station["servers"], station["last"] = k, np.cumsum(n)
    station["first"] = station["last"] - n
    station["number"][1:], station["count"][1:] = numbers[:-1], counts[:-1]
    for row, stay in zip(station, stays, strict=True):
        rules, own = POLICIES[stay.policy], requests[row["first"] : row["last"]]
        row["policy"], row["sharing"], row["preemptive"] = rules.code, _SHARINGS.index(rules.sharing), rules.preemptive
        row["quantum_s"] = stay.quantum_s if rules.sliced else np.inf
        own["arrival_s"], own["work"], own["departure_s"] = stay.arrival_s, stay.work, np.nan
        own["priority"] = 0 if stay.priority is None else stay.priority
        own["choice"] = 0.0 if stay.choice is None else stay.choice
    at_work = StationsAtWork(
        station, np.zeros(int(numbers.max(initial=0))), np.zeros(int(counts.max(initial=0)), np.int64)
    )
    return at_work, requests


@njit(cache=False, inline="always", borrows=True)
def _row(values: _Rows, first: int, size: int, at: int) -> _Rows:
    """Return one of several rows of so many values."""
    return values[first + at * size : first + (at + 1) * size]


@njit(cache=False, inline="always", borrows=True)
def _places(station: np.record) -> int:
    """Return where the last of a station's counts begin."""
    n = station.last - station.first
    return int(station.count + _PER_REQUEST * n + 1 + _PER_SERVER * station.servers)


@njit(cache=False, borrows=True)
def _parts(at_work: StationsAtWork, requests: Records, s: int) -> Parts:
    """Return what all queues are made of."""
    station, numbers, counts = at_work.station[s], at_work.numbers, at_work.counts
    n, k = station.last - station.first, station.servers
    of_server = station.number + _OF_REQUEST * n
    last, places = of_server + _OF_SERVER * k, _places(station)
    own, key = requests[station.first : station.last], _row(numbers, station.number, n, 0)
    nobody, never = counts[:0], numbers[:0]
    turn, member = _row(counts, station.count, n, 0), _row(counts, station.count, n, 1)
    pace = Pace(
        _row(numbers, of_server, k, 8).reshape((1, 1, k)),
        never,
        np.inf,
        counts[places + _ROW : places + _ROW + 2],
        numbers[last + 3 : last + 4],
    )
    return Parts(
        load=RequestArrays(own["arrival_s"], own["work"], never, nobody, nobody, own["priority"], own["choice"]),
        servers=Servers(station.policy, station.quantum_s, _row(numbers, of_server, k, 7), pace),
        times=ServiceTimes(own["arrival_s"], _row(numbers, station.number, n, 2), own["departure_s"]),
        pending=Heap(own["arrival_s"], nobody, counts[places + _NEXT :], counts[places + _PENDING :]),
        waiting=Heap(key, turn, member, counts[places + _WAITING :]),
        left=_row(numbers, station.number, n, 1),
        total=numbers[of_server + 9 * k : last + 1],
        clock=numbers[last + 1 : last + 3],
    )


@njit(cache=False, borrows=True)
def _on_cores(at_work: StationsAtWork, requests: Records, s: int) -> Shop:
    station, numbers, counts = at_work.station[s], at_work.numbers, at_work.counts
    n, k, parts = station.last - station.first, station.servers, _parts(at_work, requests, s)
    of_server, jobs = station.number + _OF_REQUEST * n, station.count + _PER_REQUEST * n + 1
    tally = _places(station) + _TALLY
    cores = Cores(
        _row(counts, jobs, k, 0),
        _row(counts, jobs, k, 1),
        _row(numbers, of_server, k, 0),
        _row(numbers, of_server, k, 1),
        _row(numbers, of_server, k, 2),
        _row(numbers, of_server, k, 3),
        _row(numbers, of_server, k, 4),
        _row(numbers, of_server, k, 5),
        _row(numbers, of_server, k, 6),
    )
    call = numbers[:0]
    return Shop(
        parts.load, parts.servers, parts.times, parts.pending, parts.waiting, cores, parts.left, counts[tally:], call
    )


@njit(cache=False, borrows=True)
def _sharing(at_work: StationsAtWork, requests: Records, s: int) -> Shared:
    parts = _parts(at_work, requests, s)
    return Shared(parts.load, parts.servers, parts.times, parts.pending, parts.waiting, parts.total, parts.clock)


@njit(cache=False, borrows=True)
def _foreground(at_work: StationsAtWork, requests: Records, s: int) -> Foreground:
    station, parts, counts = at_work.station[s], _parts(at_work, requests, s), at_work.counts
    n, places = station.last - station.first, _places(station)
    groups = AttainedLine(
        parts.waiting.member,
        counts[station.count + 2 * n : station.count + 3 * n + 1],
        parts.waiting.key,
        parts.left,
        counts[places + _GROUPS : places + _TALLY],
    )
    return Foreground(parts.load, parts.servers, parts.times, parts.pending, groups, parts.total, parts.clock)


@njit(cache=False, borrows=True)
def open_station(at_work: StationsAtWork, requests: Records, s: int, at_s: float) -> None:
    """Begin a station that is empty."""
    station, parts = at_work.station[s], _parts(at_work, requests, s)
    n, k = station.last - station.first, station.servers
    station.speed, station.busy, station.next_s = 0.0, 0, np.inf
    parts.clock[NOW], parts.servers.pace.next_s[0] = at_s, np.inf
    for i in range(n):
        parts.left[i], parts.waiting.turn[i], parts.times.start_s[i] = requests[station.first + i].work, i, np.nan
    cores = _on_cores(at_work, requests, s).cores
    for c in range(k):
        cores.job[c], parts.servers.pace.factor[0, 0, c] = NOBODY, 1.0
        cores.finish_s[c] = cores.end_s[c] = cores.expiry_s[c] = np.inf
    if n > 0:
        parts.pending.size[0], station.next_s = 1, requests[station.first].arrival_s


@njit(cache=False, borrows=True)
def _await(at_work: StationsAtWork, s: int) -> None:
    """Let the next request be on its way if one has come."""
    station = at_work.station[s]
    counts = at_work.counts[_places(station) :]
    if counts[_PENDING] == 0 and counts[_NEXT] + 1 < station.last - station.first:
        counts[_NEXT] += 1
        counts[_PENDING] = 1


@njit(cache=False, borrows=True)
def _busy_cores(shop: Shop) -> int:
    busy = 0
    for c in range(shop.cores.job.size):
        busy += shop.cores.job[c] != NOBODY
    return busy


@njit(cache=False, error_model="numpy", borrows=True)
def requests_happen(at_work: StationsAtWork, requests: Records, s: int, now_s: float) -> bool:
    """Let requests leave and come that are due; return whether another number of servers works than before."""
    station = at_work.station[s]
    if station.next_s > now_s:
        return False
    busy, present = station.busy, 0
    if station.sharing == _EVENLY:
        shared = _sharing(at_work, requests, s)
        next_s = next_sharing(shared)
        while next_s <= now_s:
            happen_sharing(shared)
            _await(at_work, s)
            next_s = next_sharing(shared)
        present = shared.present.size[0]
    elif station.sharing == _LEAST_ATTAINED:
        foreground = _foreground(at_work, requests, s)
        next_s = next_foreground(foreground)
        while next_s <= now_s:
            happen_foreground(foreground)
            _await(at_work, s)
            next_s = next_foreground(foreground)
        present = foreground.groups.size[JOBS]
    else:
        shop = _on_cores(at_work, requests, s)
        next_s = next_on_cores(shop)
        while next_s <= now_s:
            happen_on_cores(shop, next_s, station.preemptive, None)
            _await(at_work, s)
            next_s = next_on_cores(shop)
        present = _busy_cores(shop)
    station.next_s, station.busy = next_s, min(present, station.servers)
    return bool(station.busy != busy)


@njit(cache=False, error_model="numpy", borrows=True)
def run_at(at_work: StationsAtWork, requests: Records, s: int, now_s: float, speed: float) -> None:
    """Let every server of a station do so much work a second from now on."""
    station = at_work.station[s]
    if station.speed == speed:
        return
    station.speed = speed
    if station.sharing == _EVENLY:
        shared = _sharing(at_work, requests, s)
        pass_sharing(shared, now_s)
        _set_total(shared.total, speed)
        station.next_s = next_sharing(shared)
    elif station.sharing == _LEAST_ATTAINED:
        foreground = _foreground(at_work, requests, s)
        pass_foreground(foreground, now_s)
        _set_total(foreground.total, speed)
        station.next_s = next_foreground(foreground)
    else:
        shop = _on_cores(at_work, requests, s)
        shop.station.speed[:] = speed
        pace_on_cores(shop, now_s)
        station.next_s = next_on_cores(shop)
    station.next_s = max(station.next_s, now_s)


@njit(cache=False, borrows=True)
def _set_total(total: Floats, speed: float) -> None:
    for servers in range(total.size):
        total[servers] = servers * speed
