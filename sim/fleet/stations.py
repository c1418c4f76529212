"""Instances whose requests are served one by one on the event-driven machine: their stations, compiled.

A station is an instance with so many servers, each a hardware thread, under one of `models.queues.policies`. It is the
queue of `models.queues.station`, taken one event at a time: the machine says how much work a server does a second, and
says it anew whenever it is solved. Work is counted in mean requests.

Stations of a block lie one after the other in the arrays of `sim.fleet.layout.StationsAtWork`; what the kernels of the
queue work on are slices of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
    soonest,
)
from sim.fleet.layout import REFUSED_S, REQUEST, STATION, Records, StationsAtWork

_SHARINGS = ("cores", "evenly", "least attained")
_EVENLY, _LEAST_ATTAINED = 1, 2
_PENDING, _WAITING, _GROUPS, _TALLY, _NEXT, _COUNTS = 0, 1, 2, 4, 7, 8
"""Places in a station's counts: sizes of its heaps, of `AttainedLine` (2), `Shop.tally` (3), and who arrives next."""


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
    capacity: int = 0
    """Most requests present, waiting or in service; one that comes then is turned away; 0: no limit."""


def stations_of(stays: Sequence[StationLoad]) -> tuple[StationsAtWork, Records]:
    """Return the stations of stays, in this order, before they are at work, and their requests.

    Returns
    -------
    (S,) stations, (n,) array of `sim.fleet.layout.REQUEST`
    """
    count = np.array([stay.arrival_s.size for stay in stays], np.int64)
    servers = np.array([stay.servers for stay in stays], np.int64)
    station, requests = np.zeros(len(stays), STATION), np.zeros(int(count.sum()), REQUEST)
    station["servers"], station["last"], station["core"] = servers, np.cumsum(count), np.cumsum(servers) - servers
    station["first"] = station["last"] - count
    for row, stay in zip(station, stays, strict=True):
        rules, own = POLICIES[stay.policy], requests[row["first"] : row["last"]]
        row["policy"], row["sharing"], row["preemptive"] = rules.code, _SHARINGS.index(rules.sharing), rules.preemptive
        row["quantum_s"], row["capacity"] = stay.quantum_s if rules.sliced else np.inf, stay.capacity
        own["arrival_s"], own["work"], own["departure_s"] = stay.arrival_s, stay.work, np.nan
        own["priority"] = 0 if stay.priority is None else stay.priority
        own["choice"] = 0.0 if stay.choice is None else stay.choice
    return _at_work(station, requests.size, int(servers.sum()), int(servers.max(initial=1))), requests


def _at_work(station: Records, requests: int, servers: int, most: int) -> StationsAtWork:
    """Return arrays for so many requests and servers; one station has at most so many."""
    nobody, never, none = np.full(servers, -1), np.full(servers, np.inf), np.zeros(servers)
    waiting = Heap(
        np.zeros(requests), np.zeros(requests, np.int64), np.zeros(requests, np.int64), np.zeros(0, np.int64)
    )
    return StationsAtWork(
        station=station,
        waiting=waiting,
        left=np.zeros(requests),
        start_s=np.zeros(requests),
        groups=np.zeros(requests + station.size, np.int64),
        cores=Cores(
            job=nobody,
            serial=nobody.copy(),
            rate=none,
            since_s=none.copy(),
            left=none.copy(),
            slice_s=none.copy(),
            finish_s=never,
            end_s=never.copy(),
            expiry_s=never.copy(),
        ),
        speed=np.zeros(servers),
        total=np.zeros(servers + station.size),
        counts=np.zeros((station.size, _COUNTS), np.int64),
        clock=np.zeros((station.size, 2)),
        pace=Pace(np.ones((1, 1, most)), np.zeros(1), np.inf, np.zeros(2, np.int64), np.full(1, np.inf)),
        nobody=np.zeros(0, np.int64),
        never=np.zeros(0),
    )


@njit(cache=False, borrows=True)
def _servers(at_work: StationsAtWork, s: int) -> Servers:
    station = at_work.station[s]
    first, last = station.core, station.core + station.servers
    return Servers(station.policy, station.quantum_s, at_work.speed[first:last], at_work.pace)


@njit(cache=False, inline="always", borrows=True)
def _total(at_work: StationsAtWork, s: int) -> Floats:
    """Return the summed speed of 0, 1, .., k servers."""
    first = at_work.station[s].core + s
    return at_work.total[first : first + at_work.station[s].servers + 1]


@njit(cache=False, borrows=True)
def _load(at_work: StationsAtWork, requests: Records, s: int) -> RequestArrays:
    own = requests[at_work.station[s].first : at_work.station[s].last]
    nobody, never = at_work.nobody, at_work.never
    return RequestArrays(own["arrival_s"], own["work"], never, nobody, nobody, own["priority"], own["choice"])


@njit(cache=False, borrows=True)
def _times(at_work: StationsAtWork, requests: Records, s: int) -> ServiceTimes:
    first, last = at_work.station[s].first, at_work.station[s].last
    own = requests[first:last]
    return ServiceTimes(own["arrival_s"], at_work.start_s[first:last], own["departure_s"])


@njit(cache=False, borrows=True)
def _pending(at_work: StationsAtWork, requests: Records, s: int) -> Heap:
    """Return who arrives next, alone."""
    counts, own = at_work.counts[s], requests[at_work.station[s].first : at_work.station[s].last]
    return Heap(own["arrival_s"], at_work.nobody, counts[_NEXT : _NEXT + 1], counts[_PENDING : _PENDING + 1])


@njit(cache=False, borrows=True)
def _heap(at_work: StationsAtWork, s: int) -> Heap:
    """Return those who wait; where all share the servers, those present."""
    first, last = at_work.station[s].first, at_work.station[s].last
    key, turn, member, _ = at_work.waiting
    return Heap(key[first:last], turn[first:last], member[first:last], at_work.counts[s][_WAITING : _WAITING + 1])


@njit(cache=False, borrows=True)
def _on_cores(at_work: StationsAtWork, requests: Records, s: int) -> Shop:
    station, cores = at_work.station[s], at_work.cores
    first, last = station.core, station.core + station.servers
    return Shop(
        _load(at_work, requests, s),
        _servers(at_work, s),
        _times(at_work, requests, s),
        _pending(at_work, requests, s),
        _heap(at_work, s),
        Cores(
            cores.job[first:last],
            cores.serial[first:last],
            cores.rate[first:last],
            cores.since_s[first:last],
            cores.left[first:last],
            cores.slice_s[first:last],
            cores.finish_s[first:last],
            cores.end_s[first:last],
            cores.expiry_s[first:last],
        ),
        at_work.left[station.first : station.last],
        at_work.counts[s][_TALLY:_NEXT],
        at_work.never,
    )


@njit(cache=False, borrows=True)
def _sharing(at_work: StationsAtWork, requests: Records, s: int) -> Shared:
    return Shared(
        _load(at_work, requests, s),
        _servers(at_work, s),
        _times(at_work, requests, s),
        _pending(at_work, requests, s),
        _heap(at_work, s),
        _total(at_work, s),
        at_work.clock[s],
    )


@njit(cache=False, borrows=True)
def _foreground(at_work: StationsAtWork, requests: Records, s: int) -> Foreground:
    station, line = at_work.station[s], _heap(at_work, s)
    groups = AttainedLine(
        line.member,
        at_work.groups[station.first + s : station.last + s + 1],
        line.key,
        at_work.left[station.first : station.last],
        at_work.counts[s][_GROUPS:_TALLY],
    )
    return Foreground(
        _load(at_work, requests, s),
        _servers(at_work, s),
        _times(at_work, requests, s),
        _pending(at_work, requests, s),
        groups,
        _total(at_work, s),
        at_work.clock[s],
    )


@njit(cache=False, borrows=True)
def open_station(at_work: StationsAtWork, requests: Records, s: int, at_s: float) -> None:
    """Begin a station that is empty."""
    station, key, turn = at_work.station[s], at_work.left, at_work.waiting.turn
    station.speed, station.busy = 0.0, 0
    at_work.clock[s, NOW] = at_s
    for i in range(station.first, station.last):
        key[i], turn[i], at_work.start_s[i] = requests[i].work, i - station.first, np.nan
    station.next_s = np.inf
    if station.last > station.first:
        at_work.counts[s, _PENDING], station.next_s = 1, requests[station.first].arrival_s


@njit(cache=False, borrows=True)
def _await(at_work: StationsAtWork, s: int) -> None:
    """Let the next request be on its way if one has come."""
    station, counts = at_work.station[s], at_work.counts[s]
    if counts[_PENDING] == 0 and counts[_NEXT] + 1 < station.last - station.first:
        counts[_NEXT] += 1
        counts[_PENDING] = 1


@njit(cache=False, borrows=True)
def _busy_cores(shop: Shop) -> int:
    busy = 0
    for c in range(shop.cores.job.size):
        busy += shop.cores.job[c] >= 0
    return busy


@njit(cache=False, borrows=True)
def _comes_to_full(at_work: StationsAtWork, requests: Records, s: int, present: int, next_s: float) -> bool:
    """Tell whether what happens next is, if nobody leaves at that very moment, that a request finds no room."""
    station, counts = at_work.station[s], at_work.counts[s]
    if station.capacity == 0 or present < station.capacity or counts[_PENDING] == 0:
        return False
    return bool(requests[station.first + counts[_NEXT]].arrival_s == next_s)


@njit(cache=False, borrows=True)
def _turn_away(at_work: StationsAtWork, requests: Records, s: int) -> None:
    """Let the request that comes next leave at once."""
    counts = at_work.counts[s]
    requests[at_work.station[s].first + counts[_NEXT]].departure_s = REFUSED_S
    counts[_PENDING] = 0


@njit(cache=False, error_model="numpy", borrows=True)
def _share_evenly(at_work: StationsAtWork, requests: Records, s: int, now_s: float) -> tuple[float, int]:
    """Let happen what is due under processor sharing; return when something happens next, and who is there then."""
    shared, counts = _sharing(at_work, requests, s), at_work.counts[s]
    next_s = next_sharing(shared)
    while next_s <= now_s:
        full = _comes_to_full(at_work, requests, s, shared.present.size[0], next_s)
        if full:
            counts[_PENDING] = 0
            full = next_sharing(shared) > next_s
            counts[_PENDING] = 1
        if full:
            _turn_away(at_work, requests, s)
        else:
            happen_sharing(shared)
        _await(at_work, s)
        next_s = next_sharing(shared)
    return next_s, int(shared.present.size[0])


@njit(cache=False, error_model="numpy", borrows=True)
def _least_first(at_work: StationsAtWork, requests: Records, s: int, now_s: float) -> tuple[float, int]:
    """The same where those with the least attained service are served."""
    foreground, counts = _foreground(at_work, requests, s), at_work.counts[s]
    next_s = next_foreground(foreground)
    while next_s <= now_s:
        full = _comes_to_full(at_work, requests, s, foreground.groups.size[JOBS], next_s)
        if full:
            counts[_PENDING] = 0
            full = next_foreground(foreground) > next_s
            counts[_PENDING] = 1
        if full:
            _turn_away(at_work, requests, s)
        else:
            happen_foreground(foreground)
        _await(at_work, s)
        next_s = next_foreground(foreground)
    return next_s, int(foreground.groups.size[JOBS])


@njit(cache=False, error_model="numpy", borrows=True)
def _each_on_a_core(at_work: StationsAtWork, requests: Records, s: int, now_s: float) -> tuple[float, int]:
    """The same where each request that is served holds a server."""
    shop, preemptive = _on_cores(at_work, requests, s), at_work.station[s].preemptive
    next_s = next_on_cores(shop)
    while next_s <= now_s:
        present = _busy_cores(shop) + shop.waiting.size[0] if at_work.station[s].capacity > 0 else 0
        full = _comes_to_full(at_work, requests, s, present, next_s)
        if full and shop.cores.finish_s[soonest(shop.cores)[0]] > next_s:
            _turn_away(at_work, requests, s)
        else:
            happen_on_cores(shop, next_s, preemptive, None)
        _await(at_work, s)
        next_s = next_on_cores(shop)
    return next_s, _busy_cores(shop)


@njit(cache=False, error_model="numpy", borrows=True)
def requests_happen(at_work: StationsAtWork, requests: Records, s: int, now_s: float) -> bool:
    """Let requests leave and come that are due; return whether another number of servers works than before."""
    station = at_work.station[s]
    if station.next_s > now_s:
        return False
    busy = station.busy
    if station.sharing == _EVENLY:
        next_s, present = _share_evenly(at_work, requests, s, now_s)
    elif station.sharing == _LEAST_ATTAINED:
        next_s, present = _least_first(at_work, requests, s, now_s)
    else:
        next_s, present = _each_on_a_core(at_work, requests, s, now_s)
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
