"""Serve requests that pass several stations: one after another, or several at a time that are then joined.

Where nothing flows back, all arrivals at a station are known once the stations before it are done. Each is served by
the compiled kernels of `models.queues.serve`, whole, in the order of the list: the same as event by event, which
`sim.queues.readable_network` does. Where requests follow the answers to others, all stations are served at once
(`models.queues.closed`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues import closed
from models.queues.policies import POLICIES, PolicyName
from models.queues.pools import pooled
from models.queues.serve import RequestStamps, choices, finite, followers, order_of, parents, serve, set_out, thinks


@dataclass(frozen=True, slots=True)
class NetworkQueue:
    """A station of a network: alike servers, and whence requests come."""

    policy: PolicyName
    servers: int
    after: tuple[int, ...] = ()
    """Places of stations before it in the list; none: requests come here as they arrive."""
    needs: int = 0
    """How many of these a request must have left; 0: all."""
    quantum_s: float = 0.1
    threads: int = 0
    """Under processor sharing as many requests share the servers, the first to come; 0: all."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkStamps:
    """When each of n requests came to each of s stations, was begun and left: (s, n) arrays, seconds."""

    arrival_s: Floats
    start_s: Floats
    departure_s: Floats
    end_s: Floats
    """(n,) when it had left every station that no other comes after."""


def last_places(stations: Sequence[NetworkQueue]) -> list[int]:
    """Return the places of the stations that no other comes after.

    Examples
    --------
    >>> last_places([NetworkQueue("ps", 1), NetworkQueue("ps", 1, (0,)), NetworkQueue("ps", 1, (0,))])
    [1, 2]
    """
    before = {place for station in stations for place in station.after}
    return [place for place in range(len(stations)) if place not in before]


def serve_network(
    stations: Sequence[NetworkQueue],
    arrival_s: ArrayLike,
    demand_s: ArrayLike,
    choice: ArrayLike | None = None,
    *,
    after: ArrayLike | None = None,
    think_s: ArrayLike | None = None,
) -> NetworkStamps:
    """Serve requests on every station until all have left.

    Parameters
    ----------
    stations : in an order in which each comes after those before it
    arrival_s : (n,) array, non-decreasing, seconds; not looked at where a request follows another
    demand_s : (s, n) array, non-negative, seconds: what each request needs of each station
    choice : (s, n) array in [0, 1), for policy random
    after : (n,) integers, optional
        The earlier request that each follows, -1 for none: it arrives `think_s` seconds after that one's end.
    think_s : (n,) array, non-negative, seconds, optional
        Zero unless given; looked at only where `after` is not -1.

    Raises
    ------
    ValueError
        As `models.queues.serve.serve` does, and if there is no station, one comes after another that is not before it
        or needs more than it comes after, threads are fewer than servers or not under ps, or demands are
        of another shape.

    Examples
    --------
    >>> split = [NetworkQueue("fcfs", 1), NetworkQueue("fcfs", 1, (0,)), NetworkQueue("fcfs", 1, (0,))]
    >>> stamps = serve_network(split, [0.0, 0.0], [[1.0, 1.0], [3.0, 1.0], [1.0, 4.0]])
    >>> stamps.departure_s.tolist(), stamps.end_s.tolist()
    ([[1.0, 2.0], [4.0, 5.0], [2.0, 6.0]], [4.0, 6.0])
    >>> serve_network(split[:1], [0.0, np.nan], [[1.0, 1.0]], after=[-1, 0], think_s=[0.0, 5.0]).end_s
    array([1., 7.])
    """
    _check(stations)
    if after is not None:
        return _closed(stations, arrival_s, demand_s, choice, after=after, think_s=think_s)
    first_s = finite("arrival_s", arrival_s, None, -np.inf)
    shape = (len(stations), first_s.size)
    demands = _demands(demand_s, shape)
    draws = None if choice is None else np.array(choice, dtype=np.float64).reshape(shape)
    arrivals, starts, departures = np.empty(shape), np.empty(shape), np.empty(shape)
    for place, station in enumerate(stations):
        arrivals[place] = joined(departures[list(station.after)], station.needs) if station.after else first_s
        order = np.argsort(arrivals[place], kind="stable")
        came_s, needed_s = arrivals[place][order], demands[place][order]
        stamps = (
            _pooled(station, came_s, needed_s)
            if station.threads
            else serve(
                station.policy,
                came_s,
                needed_s,
                station.servers,
                quantum_s=station.quantum_s,
                choice=None if draws is None else draws[place],
            )
        )
        starts[place, order], departures[place, order] = stamps.start_s, stamps.departure_s
    return NetworkStamps(arrivals, starts, departures, departures[last_places(stations)].max(axis=0))


def _demands(demand_s: ArrayLike, shape: tuple[int, int]) -> Floats:
    """Return what requests need, as an array of its own, in the one order that the kernel is compiled for."""
    demands = np.array(demand_s, dtype=np.float64, order="C")
    if demands.shape != shape:
        raise InputError(f"demand_s has shape {demands.shape}, must be {shape}")
    return demands


def _closed(
    stations: Sequence[NetworkQueue],
    arrival_s: ArrayLike,
    demand_s: ArrayLike,
    choice: ArrayLike | None,
    *,
    after: ArrayLike,
    think_s: ArrayLike | None,
) -> NetworkStamps:
    """Serve requests of which some follow the answers to others."""
    n = np.size(after)
    parent, shape = parents(after, n), (len(stations), n)
    first_s, demands = set_out(arrival_s, parent), _demands(demand_s, shape)
    rows = [None] * len(stations) if choice is None else list(np.reshape(np.asarray(choice, np.float64), shape))
    for row in demands:
        finite("demand_s", row, n, 0.0)
    for place, station in enumerate(stations):
        if station.policy not in POLICIES or station.policy == "priority":
            raise InputError(f"stations[{place}]: policy is {station.policy!r}, must be one that needs no classes")
        if station.servers < 1 or not 0.0 < station.quantum_s < np.inf:
            raise InputError(f"stations[{place}]: servers and quantum_s must be positive and finite")
    draws = np.array([
        choices(order_of(station.policy), row, n) for station, row in zip(stations, rows, strict=True)
    ])  # fmt: skip
    arrivals = np.full(shape, np.nan)
    arrivals[[not station.after for station in stations]] = first_s
    times = closed.TaskTimes(arrivals, np.full(shape, np.nan), np.full(shape, np.nan), np.full(n, np.nan))
    thought_s = np.zeros(n) if think_s is None else thinks(think_s, parent)
    closed.run(_routes(stations, parent, thought_s), _queues(stations), demands, draws, times)
    return NetworkStamps(*times)


def _routes(stations: Sequence[NetworkQueue], parent: Ints, think_s: Floats) -> closed.Routes:
    """Return how requests go through the stations, in the arrays of the kernel."""
    onward = [[i for i, station in enumerate(stations) if place in station.after] for place in range(len(stations))]
    needs = [station.needs or len(station.after) for station in stations]
    return closed.Routes(
        np.array([place for places in onward for place in places], np.int64),
        np.cumsum([0, *map(len, onward)]),
        np.array(needs, np.int64),
        np.array([not places for places in onward], np.int64),
        *followers(parent),
        think_s,
    )


def _queues(stations: Sequence[NetworkQueue]) -> closed.QueueArrays:
    """Return the stations in the arrays of the kernel."""
    rules = [POLICIES[station.policy] for station in stations]
    quanta = [
        station.quantum_s if rule.sliced else np.inf for station, rule in zip(stations, rules, strict=True)
    ]  # fmt: skip
    return closed.QueueArrays(
        np.array([rule.code for rule in rules]),
        np.array([closed.SHARINGS.index(rule.sharing) for rule in rules]),
        np.array([station.servers for station in stations]),
        np.array(quanta),
        np.array([station.threads for station in stations]),
    )


def _pooled(station: NetworkQueue, arrival_s: Floats, demand_s: Floats) -> RequestStamps:
    """Serve requests that need a thread each."""
    demand = finite("demand_s", demand_s, None, 0.0)
    start_s, departure_s = np.empty(demand.size), np.empty(demand.size)
    pooled(arrival_s, demand, station.servers, station.threads, start_s, departure_s)
    return RequestStamps(arrival_s, start_s, departure_s)


def joined(departure_s: Floats, needs: int) -> Floats:
    """Return when requests have left so many of the stations, whichever are first.

    Parameters
    ----------
    departure_s : (s, n) array
    needs : 1 .. s; 0: all

    Examples
    --------
    >>> joined(np.array([[3.0], [1.0], [2.0]]), 2)
    array([2.])
    """
    if needs in {0, len(departure_s)}:
        latest: Floats = departure_s.max(axis=0)
        return latest
    enough: Floats = np.sort(departure_s, axis=0)[needs - 1]
    return enough


def alone_s(stations: Sequence[NetworkQueue], demand_s: ArrayLike) -> Floats:
    """Return how long each request would take if none ever waited.

    Parameters
    ----------
    demand_s : (s, n) array

    Examples
    --------
    >>> alone_s([NetworkQueue("fcfs", 1), NetworkQueue("fcfs", 1, (0,))], [[1.0, 2.0], [3.0, 1.0]])
    array([4., 3.])
    """
    left_s = np.array(demand_s, dtype=np.float64)
    for place, station in enumerate(stations):
        if station.after:
            left_s[place] += joined(left_s[list(station.after)], station.needs)
    whole_s: Floats = left_s[last_places(stations)].max(axis=0)
    return whole_s


def _check(stations: Sequence[NetworkQueue]) -> None:
    if not stations:
        raise InputError("stations: at least one is needed")
    for place, station in enumerate(stations):
        if wrong := [before for before in station.after if not 0 <= before < place]:
            raise InputError(f"stations[{place}] comes after {wrong[0]}, which is not before it")
        if len(set(station.after)) < len(station.after):
            raise InputError(f"stations[{place}] comes after the same station twice")
        if station.threads and not (station.policy == "ps" and station.threads >= station.servers >= 1):
            raise InputError(
                f"stations[{place}]: {station.threads} threads need policy ps, and no more servers than that"
            )
        if not 0 <= station.needs <= len(station.after):
            raise InputError(f"stations[{place}] needs {station.needs} of the {len(station.after)} it comes after")
