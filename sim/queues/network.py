"""A queue world of several stations becomes tables: the stamps of every request at every station, and the whole."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.network import NetworkQueue, NetworkStamps, serve_network
from models.queues.world import Arrivals, Contention, Load, NetworkStation, Observation, QueueWorld, Station
from models.randomness import stream
from sim.queues import distributions
from sim.queues.arrivals import arrival_times
from sim.queues.laws import obey
from sim.queues.observe import delays, present, utilisation
from sim.queues.workloads import NOBODY
from sim.recorder import Progress, Recorded, TableWriter, Values, write_table

TYPE = "request"
"""Type of every request."""


@dataclass(frozen=True, slots=True)
class NetworkLoad:
    """Requests and what became of them: (n,) arrays by the clients' clock, and stamps by the servers'."""

    sent_s: Floats
    answered_s: Floats
    demand_s: Floats
    """(s, n) what each needed of each station."""
    stamps: NetworkStamps


def queues_of(stations: tuple[NetworkStation, ...]) -> tuple[NetworkQueue, ...]:
    """Return the stations with the places of those that each comes after.

    Raises
    ------
    ValueError
        If two have one name, or one comes after a station that is not above it.

    Examples
    --------
    >>> second = distributions.Distribution("constant", mean=1.0)
    >>> [queue.after for queue in queues_of((NetworkStation("web", second), NetworkStation("db", second)))]
    [(), (0,)]
    """
    place: dict[str, int] = {}
    queues = []
    for i, station in enumerate(stations):
        after = station.after if station.after is not None else tuple(list(place)[-1:])
        if unknown := [name for name in after if name not in place]:
            raise InputError(f"stations: {station.name} comes after {unknown[0]}, which is not above it")
        places = tuple(place[name] for name in after)
        queues.append(
            NetworkQueue(
                station.policy, station.servers, places, station.needs or 0, station.quantum_s, station.threads or 0
            )
        )
        place[station.name] = i
    if len(place) < len(stations):
        raise InputError("stations: two have the same name")
    return tuple(queues)


def beside_stations(world: QueueWorld) -> list[tuple[str, ...]]:
    """Return the ways to what a world has that is not modelled with several stations; empty if it has none."""
    load, observation, nothing = world.load, world.observation, Observation()
    of_load = [("load", name) for name in ("sessions", "clients", "trace", "types", "job") if getattr(load, name)]
    names = ("accept_at_application", "workers", "background_share", "background_s")
    of_observer = [("observation", name) for name in names if getattr(observation, name) != getattr(nothing, name)]
    others = {
        "station": world.station != Station(), "scaling": world.scaling is not None,
        "contention": world.contention != Contention(), "replays": bool(world.replays),
        "machine": world.machine is not None, "platforms": bool(world.platforms),
    }  # fmt: skip
    return [*of_load, *((name,) for name, used in others.items() if used), *of_observer]


def check_network(world: QueueWorld) -> None:
    """Raise ValueError if a world of several stations has what they are not modelled with, or they do not fit."""
    if ways := beside_stations(world):
        raise InputError(f"stations are not modelled with {', '.join('.'.join(way) for way in ways)}")
    if world.load == Load():
        raise InputError("load: needs arrivals")
    for station in world.stations:
        distributions.check(station.demand_s, f"stations: {station.name}: demand_s")
        if station.policy == "priority":
            raise InputError(f"stations: {station.name}: requests have no classes for policy priority")
    queues_of(world.stations)


def serve_stations(world: QueueWorld) -> NetworkLoad:
    """Return the requests of a world and what became of them at its stations.

    Demands at a station are streams of its name, so another station, or its place in the list, changes none of them.

    Raises
    ------
    ValueError
        If the parts of the world do not go together, or no request comes within the horizon.
    """
    check_network(world)
    sent_s = arrival_times(world.load.arrivals or Arrivals(), world.horizon_s, world.seed)
    n = len(sent_s)
    if not n:
        raise InputError(f"no request comes within horizon_s = {world.horizon_s:g}")
    way = delays(world.observation, world.seed, n)
    streams = [(station, stream(world.seed, f"demands at {station.name}")) for station in world.stations]
    demand_s = np.array([distributions.draw(station.demand_s, rng, n) for station, rng in streams])
    choice = None
    if any(station.policy == "random" for station in world.stations):
        choice = np.array([stream(world.seed, f"choices at {station.name}").random(n) for station in world.stations])
    came_s = sent_s + way.before_s
    order = np.argsort(came_s, kind="stable")
    served = serve_network(queues_of(world.stations), came_s[order], demand_s[:, order], choice)
    back = np.empty(n, np.int64)
    back[order] = np.arange(n)
    stamps = NetworkStamps(
        served.arrival_s[:, back], served.start_s[:, back], served.departure_s[:, back], served.end_s[back]
    )
    for place, station in enumerate(world.stations):
        _obey(station, stamps, place, demand_s[place])
    return NetworkLoad(sent_s, stamps.end_s + way.after_s, demand_s, stamps)


def _obey(station: NetworkStation, stamps: NetworkStamps, place: int, demand_s: Floats) -> None:
    """See that a station served by the laws."""
    arrival_s, departure_s = stamps.arrival_s[place], stamps.departure_s[place]
    busy = present(arrival_s, departure_s, station.servers)
    alone = Station(station.servers, station.policy, station.quantum_s)
    obey(alone, arrival_s, stamps.start_s[place], departure_s, demand_s=demand_s, busy=busy)


def write_network(world: QueueWorld, directory: Path, progress: Progress) -> Recorded:
    """Serve the requests of a world of several stations and write its tables into a directory.

    Tables `requests` (each request as a whole), `station_requests` and `station_cpu` (each station's own log and
    counter), and `truth_station_requests`.
    """
    progress("serving requests", 0.0)
    load = serve_stations(world)
    n = len(load.sent_s)
    progress("writing tables", 0.4)
    requests = {
        "request": np.arange(n),
        "type": pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array([TYPE], pa.string())),
        "session": np.full(n, NOBODY),
        "arrival_s": load.sent_s,
        "departure_s": load.answered_s,
    }
    written = [write_table(directory, "requests", requests)]
    interval_s = world.observation.counter_interval_s
    last_s = max(world.horizon_s, float(load.stamps.departure_s.max()))
    end_s = interval_s * float(np.ceil(last_s / interval_s))
    with (
        TableWriter(directory, "station_requests") as logs,
        TableWriter(directory, "station_cpu") as counters,
        TableWriter(directory, "truth_station_requests") as truths,
    ):
        for place, station in enumerate(world.stations):
            order = np.argsort(load.stamps.arrival_s[place], kind="stable")
            logs.append(_log_columns(world, load, place, order))
            truths.append(_truth_columns(world, load, place, order))
            arrival_s, departure_s = load.stamps.arrival_s[place], load.stamps.departure_s[place]
            busy = present(arrival_s, departure_s, station.servers)
            counted = utilisation(busy, station.servers, interval_s, end_s, world.observation.counter_tick_s)
            counters.append({"station": _names(world, place, len(counted["start_s"])), **counted})
        written += [writer.close() for writer in (logs, counters, truths)]
    return Recorded(tuple(written), {"requests": n, "sessions": 0, "clients": 0, "background": 0})


def _names(world: QueueWorld, place: int, rows: int) -> pa.DictionaryArray:
    """Return a column that names one station."""
    names = pa.array([station.name for station in world.stations], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(np.full(rows, place, np.int32)), names)


def _log_columns(world: QueueWorld, load: NetworkLoad, place: int, order: Ints) -> dict[str, Values]:
    return {
        "station": _names(world, place, len(order)),
        "request": order,
        "arrival_s": load.stamps.arrival_s[place, order],
        "departure_s": load.stamps.departure_s[place, order],
    }


def _truth_columns(world: QueueWorld, load: NetworkLoad, place: int, order: Ints) -> dict[str, Values]:
    response_s = load.stamps.departure_s[place, order] - load.stamps.arrival_s[place, order]
    demand_s = load.demand_s[place, order]
    return {
        "station": _names(world, place, len(order)),
        "request": order,
        "start_s": load.stamps.start_s[place, order],
        "waiting_s": np.maximum(response_s - demand_s, 0.0),
        "demand_s": demand_s,
    }
