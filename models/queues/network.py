"""Serve requests that pass several stations: one after another, or several at a time that are then joined.

Nothing flows back, so all arrivals at a station are known once the stations before it are done. Each is served by the
compiled kernels of `models.queues.serve`, whole, in the order of the list: the same as event by event, which
`sim.queues.readable_network` does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats
from models.errors import InputError
from models.queues.policies import PolicyName
from models.queues.pools import pooled
from models.queues.serve import RequestStamps, finite, serve


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
    stations: Sequence[NetworkQueue], arrival_s: ArrayLike, demand_s: ArrayLike, choice: ArrayLike | None = None
) -> NetworkStamps:
    """Serve requests on every station until all have left.

    Parameters
    ----------
    stations : in an order in which each comes after those before it
    arrival_s : (n,) array, non-decreasing, seconds
    demand_s : (s, n) array, non-negative, seconds: what each request needs of each station
    choice : (s, n) array in [0, 1), for policy random

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
    """
    _check(stations)
    first_s = finite("arrival_s", arrival_s, None, -np.inf)
    shape = (len(stations), first_s.size)
    demands = np.array(demand_s, dtype=np.float64)
    if demands.shape != shape:
        raise InputError(f"demand_s has shape {demands.shape}, must be {shape}")
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
