"""Networks whose requests wait for answers to others, compiled: all stations at once, event by event.

Stations are those of `models.queues.station`, each with a calendar of its own that holds whoever arrives at this
moment, and afterwards whoever left: a job is its own follower there, and the network sends it on. Pools of threads let
as many in as they have, and keep the others in a line before the station.

At equal times departures come before arrivals, those at one station before those at the next in the list, simultaneous
arrivals at a station in order of index, and ends of slices last. Nothing is checked here: see `models.queues.network`.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit
from models.queues.layout import (
    AttainedLine,
    Foreground,
    Heap,
    Pace,
    RequestArrays,
    Servers,
    ServiceTimes,
    Shared,
    Shop,
)
from models.queues.station import (
    NOBODY,
    PREEMPTIVE,
    empty_heap,
    first_key,
    happen_foreground,
    happen_on_cores,
    happen_sharing,
    next_foreground,
    next_sharing,
    open_shop,
    pop,
    push,
    soonest,
    total_speed,
)

ON_CORES, EVENLY, LEAST_ATTAINED = range(3)
"""How servers are shared, in the order of `SHARINGS`."""
SHARINGS = ("cores", "evenly", "least attained")


class Routes(NamedTuple):
    """How n requests go through s stations: the task of request r at station p is number p n + r.

    `onward` lists the stations after station p from `first_onward[p]` to `first_onward[p + 1]`. `first` and `following`
    list who follows whom among requests, as in `models.queues.layout.RequestArrays`.
    """

    onward: Ints
    first_onward: Ints
    needs: Ints  # (s,) stations that a request must have left; 0: it comes as it arrives
    last: Ints  # (s,) 1 where no station comes after, else 0
    first: Ints
    following: Ints
    think_s: Floats


class QueueArrays(NamedTuple):
    """Stations: arrays of s; `threads` 0 is one for everybody."""

    policy: Ints
    sharing: Ints
    servers: Ints
    quantum_s: Floats
    threads: Ints


class TaskTimes(NamedTuple):
    """What comes out: (s, n) arrays and, of whole requests, (n,); arrivals at first stations are NaN or known."""

    arrival_s: Floats
    start_s: Floats
    departure_s: Floats
    end_s: Floats


class Pools(NamedTuple):
    """Lines before pools of threads: `line` (s, n), of which those from `head` to `tail` wait, and who holds a thread.

    Without pools `line` is empty.
    """

    line: Ints
    head: Ints
    tail: Ints
    holders: Ints


class Progress(NamedTuple):
    """Arrivals to come; how many stations each task, and each request, must still have left."""

    calendar: Heap
    missing: Ints
    unfinished: Ints


@njit(cache=False, error_model="numpy", borrows=True)
def _send_on(  # noqa: PLR0917  # compiled code takes arguments by position
    routes: Routes, times: TaskTimes, progress: Progress, gone: Heap, place: int, now_s: float
) -> None:
    """Let the requests that have left a station go on, and those who follow them set out if that was the last."""
    n = times.end_s.size
    while gone.size[0] > 0:
        job = pop(gone)
        for i in range(routes.first_onward[place], routes.first_onward[place + 1]):
            onward = routes.onward[i]
            progress.missing[onward, job] -= 1
            if progress.missing[onward, job] == 0:
                _come(progress.calendar, onward * n + job, now_s)
        progress.unfinished[job] -= routes.last[place]
        if routes.last[place] == 1 and progress.unfinished[job] == 0:
            times.end_s[job] = now_s
            _answer(routes, progress.calendar, job, now_s, n)


@njit(cache=False, error_model="numpy", borrows=True)
def _answer(routes: Routes, calendar: Heap, job: int, now_s: float, n: int) -> None:
    """Let those who waited for the answer to a request think, and come to every station that needs no other."""
    follower = routes.first[job]
    while follower != NOBODY:
        for place in range(routes.needs.size):
            if routes.needs[place] == 0:
                _come(calendar, place * n + follower, now_s + routes.think_s[follower])
        follower = routes.following[follower]


@njit(cache=False, error_model="numpy", borrows=True)
def _come(pending: Heap, job: int, time_s: float) -> None:
    """Let a job, if any, be on its way."""
    if job != NOBODY:
        pending.key[job] = time_s
        push(pending, job)


@njit(cache=False, error_model="numpy", borrows=True)
def _line_up(pools: Pools, place: int, job: int) -> None:
    """Let a job wait for a thread; if there is none, one has left and given its thread back."""
    if job == NOBODY:
        pools.holders[place] -= 1
    else:
        pools.line[place, pools.tail[place]] = job
        pools.tail[place] += 1


@njit(cache=False, error_model="numpy", borrows=True)
def _let_in(shop: Shared, pools: Pools, place: int, threads: int, now_s: float) -> None:
    """Give free threads to the first in line, once all who leave now have left."""
    while pools.head[place] < pools.tail[place] and pools.holders[place] < threads and next_sharing(shop) > now_s:
        _come(shop.pending, pools.line[place, pools.head[place]], now_s)
        pools.head[place] += 1
        pools.holders[place] += 1
        happen_sharing(shop)


@njit(cache=False, error_model="numpy")
def _load(demand_s: Floats, choice: Floats) -> RequestArrays:
    """Return the requests of a station: none is known to arrive, and each follows itself without thinking."""
    n = demand_s.size
    nobody = np.full(n, NOBODY)
    return RequestArrays(np.full(n, np.nan), demand_s, np.zeros(n), np.arange(n), nobody, np.zeros(n, np.int64), choice)


@njit(cache=False, error_model="numpy")
def _empty_calendar(times: ServiceTimes) -> Heap:
    """Return a calendar of nobody; nobody has started."""
    times.start_s[:] = np.nan
    return empty_heap(times.arrival_s, np.arange(times.arrival_s.size))


@njit(cache=False, error_model="numpy")
def _shared(load: RequestArrays, station: Servers, times: ServiceTimes) -> Shared:
    """Return a station under processor sharing before the first request."""
    present = empty_heap(np.zeros(load.demand_s.size), np.arange(load.demand_s.size))
    return Shared(load, station, times, _empty_calendar(times), present, total_speed(station), np.zeros(2))


@njit(cache=False, error_model="numpy")
def _foreground(load: RequestArrays, station: Servers, times: ServiceTimes) -> Foreground:
    """Return a station under feedback before the first request."""
    n = load.demand_s.size
    groups = AttainedLine(
        np.empty(n, np.int64), np.zeros(n + 1, np.int64), np.zeros(n), np.zeros(n), np.zeros(2, np.int64)
    )
    return Foreground(load, station, times, _empty_calendar(times), groups, total_speed(station), np.zeros(2))


@njit(cache=False, error_model="numpy")
def _begun(routes: Routes, times: TaskTimes) -> Progress:
    """Return what is to come before anybody has arrived: whoever is known to come as it arrives."""
    s, n = times.arrival_s.shape
    calendar = empty_heap(times.arrival_s.reshape(-1), np.arange(s * n))
    missing = np.empty((s, n), np.int64)
    for place in range(s):
        missing[place] = routes.needs[place]
        for job in range(n):
            if routes.needs[place] == 0 and not np.isnan(times.arrival_s[place, job]):
                push(calendar, place * n + job)
    return Progress(calendar, missing, np.full(n, routes.last.sum()))


@njit(cache=False, error_model="numpy")
def _pools(queues: QueueArrays, n: int) -> Pools:
    """Return pools whose threads are all free."""
    s = queues.threads.size
    line = np.empty((s if queues.threads.any() else 0, n), np.int64)
    return Pools(line, np.zeros(s, np.int64), np.zeros(s, np.int64), np.zeros(s, np.int64))


@njit(cache=False, error_model="numpy")
def _opened(
    queues: QueueArrays, demand_s: Floats, choice: Floats, times: TaskTimes
) -> tuple[list[Shop], list[Shared], list[Foreground]]:
    """Return the stations; each is in all three lists, and empty in those of another kind."""
    s, n = demand_s.shape
    pace = Pace(np.ones((1, 1, queues.servers.max())), np.zeros(1), np.inf, np.zeros(2, np.int64), np.full(1, np.inf))
    on_cores, evenly, attained = [], [], []
    for place in range(s):
        station = Servers(queues.policy[place], queues.quantum_s[place], np.ones(queues.servers[place]), pace)
        for sharing in range(len(SHARINGS)):
            m = n if queues.sharing[place] == sharing else 0
            load = _load(demand_s[place][:m], choice[place][:m])
            stamps = ServiceTimes(np.empty(m), times.start_s[place][:m], times.departure_s[place][:m])
            if sharing == ON_CORES:
                on_cores.append(open_shop(load, station, stamps, np.empty(0)))
            elif sharing == EVENLY:
                evenly.append(_shared(load, station, stamps))
            else:
                attained.append(_foreground(load, station, stamps))
    return on_cores, evenly, attained


@njit(cache=False, error_model="numpy", borrows=True)
def _due(calendar: Heap, done_s: Floats, expiry_s: Floats, n: int) -> tuple[float, int, int]:
    """Return when something happens next, at which station, and who arrives there; nobody if it is no arrival."""
    place, ended, arrival_s = int(np.argmin(done_s)), int(np.argmin(expiry_s)), first_key(calendar)
    if done_s[place] <= arrival_s and done_s[place] <= expiry_s[ended]:
        return float(done_s[place]), place, NOBODY
    if arrival_s <= expiry_s[ended]:
        task = pop(calendar)
        return arrival_s, task // n, task % n
    return float(expiry_s[ended]), ended, NOBODY


@njit(error_model="numpy")
def run(routes: Routes, queues: QueueArrays, demand_s: Floats, choice: Floats, times: TaskTimes) -> None:
    """Serve all requests: fill when each came to each station, was begun and left, and when it had left the last.

    Parameters
    ----------
    demand_s, choice : (s, n) arrays
    times : filled, of which arrivals at stations that need no other hold those that are known
    """
    s, n = demand_s.shape
    progress, pools = _begun(routes, times), _pools(queues, n)
    on_cores, evenly, attained = _opened(queues, demand_s, choice, times)
    done_s, expiry_s = np.full(s, np.inf), np.full(s, np.inf)
    while True:
        now_s, place, job = _due(progress.calendar, done_s, expiry_s, n)
        if now_s == np.inf:
            return
        threads = queues.threads[place]
        if queues.sharing[place] == ON_CORES:
            shop = on_cores[place]
            _come(shop.pending, job, now_s)
            happen_on_cores(shop, now_s, queues.policy[place] in PREEMPTIVE, None)
            _send_on(routes, times, progress, shop.pending, place, now_s)
            done, ended = soonest(shop.cores)
            done_s[place], expiry_s[place] = shop.cores.finish_s[done], shop.cores.expiry_s[ended]
        elif queues.sharing[place] == EVENLY:
            sharers = evenly[place]
            if threads == 0 or job == NOBODY:
                _come(sharers.pending, job, now_s)
                happen_sharing(sharers)
                _send_on(routes, times, progress, sharers.pending, place, now_s)
            if threads > 0:
                _line_up(pools, place, job)
                _let_in(sharers, pools, place, threads, now_s)
            done_s[place] = next_sharing(sharers)
        else:
            groups = attained[place]
            _come(groups.pending, job, now_s)
            happen_foreground(groups)
            _send_on(routes, times, progress, groups.pending, place, now_s)
            done_s[place] = next_foreground(groups)
