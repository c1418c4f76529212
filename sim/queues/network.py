"""A queue world of several stations becomes tables: the stamps of every request at every station, and the whole."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.queues.network import NetworkQueue, NetworkStamps, alone_s, serve_network
from models.queues.world import Arrivals, Clients, Contention, NetworkStation, Observation, QueueWorld, Station
from models.randomness import stream
from sim.queues import distributions
from sim.queues.arrivals import arrival_times
from sim.queues.laws import obey
from sim.queues.observe import Delays, delays, present, utilisation
from sim.queues.workloads import NOBODY, client_blocks, client_thinks
from sim.recorder import Progress, Recorded, TableWriter, Values, write_table

TYPE = "request"
"""Type of every request."""


@dataclass(frozen=True, slots=True)
class NetworkLoad:
    """Requests and what became of them: (n,) arrays by the clients' clock, and stamps by the servers'."""

    sent_s: Floats
    answered_s: Floats
    session: Ints
    """Session or client that asked; −1: none."""
    demand_s: Floats
    """(s, n) what each needed of each station."""
    stamps: NetworkStamps


@dataclass(frozen=True, slots=True)
class NetworkRequests:
    """Requests by the clients' clock before any is served: (n,) arrays, none before the one that it follows."""

    sent_s: Floats
    """NaN where it follows another."""
    session: Ints
    after: Ints
    """The request whose answer it waits for; −1: none."""
    think_s: Floats
    """From that answer on."""
    demand_s: Floats
    """(s, n)."""
    way: Delays

    def kept(self, keep: Bools) -> "NetworkRequests":
        """Return those kept; one that is kept follows one that is kept, or none."""
        place, after = np.cumsum(keep) - 1, self.after[keep]
        return NetworkRequests(
            self.sent_s[keep],
            self.session[keep],
            np.where(after == NOBODY, NOBODY, place[after]),
            self.think_s[keep],
            self.demand_s[:, keep],
            Delays(self.way.before_s[keep], self.way.after_s[keep]),
        )


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
    of_load = [("load", name) for name in ("trace", "types", "job") if getattr(load, name)]
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
    if (world.load.arrivals is None) == (world.load.clients is None):
        raise InputError("load: needs one of arrivals and clients")
    if world.load.sessions is not None and world.load.arrivals is None:
        raise InputError("load: sessions need arrivals")
    for name, who in (("sessions", world.load.sessions), ("clients", world.load.clients)):
        if who is not None:
            distributions.check(who.think_s, f"{name}: think_s")
    for station in world.stations:
        distributions.check(station.demand_s, f"stations: {station.name}: demand_s")
        if station.policy == "priority":
            raise InputError(f"stations: {station.name}: requests have no classes for policy priority")
    queues_of(world.stations)


def serve_stations(world: QueueWorld) -> NetworkLoad:
    """Return the requests of a world, in the order in which they are sent, and what became of them at its stations.

    Demands at a station are streams of its name, so another station, or its place in the list, changes none of them.

    Raises
    ------
    ValueError
        If the parts of the world do not go together, or no request comes within the horizon.
    """
    check_network(world)
    clients = world.load.clients
    requests = _of_clients(world, clients) if clients is not None else _from_outside(world)
    if not requests.sent_s.size:
        raise InputError(f"no request comes within horizon_s = {world.horizon_s:g}")
    load = _serve(world, requests)
    for place, station in enumerate(world.stations):
        _obey(station, load.stamps, place, load.demand_s[place])
    order = np.argsort(load.sent_s, kind="stable")
    stamps = load.stamps
    ordered = NetworkStamps(
        stamps.arrival_s[:, order], stamps.start_s[:, order], stamps.departure_s[:, order], stamps.end_s[order]
    )
    return NetworkLoad(
        load.sent_s[order], load.answered_s[order], load.session[order], load.demand_s[:, order], ordered
    )


def _from_outside(world: QueueWorld) -> NetworkRequests:
    """Return requests that arrive from outside, alone or as the first of a session."""
    start_s, asks = arrival_times(world.load.arrivals or Arrivals(), world.horizon_s, world.seed), world.load.sessions
    sessions, length = len(start_s), 1 if asks is None else asks.requests
    n = sessions * length
    streams = [(station, stream(world.seed, f"demands at {station.name}")) for station in world.stations]
    by_session = np.arange(n).reshape(sessions, length).T.ravel()
    demand_s = np.array([distributions.draw(station.demand_s, rng, n) for station, rng in streams])[:, by_session]
    think_s = np.zeros((length, sessions))
    if asks is not None:
        think_s[1:] = distributions.draw(asks.think_s, stream(world.seed, "think"), (sessions, length - 1)).T
    who = np.full(sessions, NOBODY) if asks is None else np.arange(sessions)
    return _chained(world, start_s, think_s, who, demand_s)


def _of_clients(world: QueueWorld, clients: Clients) -> NetworkRequests:
    """Return the requests that clients send before the horizon.

    Chains are drawn, served and drawn longer until each passes the horizon, as in `sim.queues.service.client_load`.
    """
    length = _expected_client_requests(world, clients)
    while True:
        think_s = client_thinks(clients, world.seed, length)
        streams = [
            [(stream(world.seed, f"{prefix}demands at {station.name}"), size) for prefix, size in client_blocks(length)]
            for station in world.stations
        ]
        demand_s = np.array([
            np.concatenate([distributions.draw(station.demand_s, rng, size * clients.count) for rng, size in blocks])
            for station, blocks in zip(world.stations, streams, strict=True)
        ])  # fmt: skip
        start_s = think_s[0].copy()
        think_s[0] = 0.0
        requests = _chained(world, start_s, think_s, np.arange(clients.count), demand_s)
        early = _serve(world, requests).sent_s < world.horizon_s
        if not early[-clients.count :].any():
            return requests.kept(early)
        length = 2 * len(think_s)


def _expected_client_requests(world: QueueWorld, clients: Clients) -> int:
    """Return about how many requests each client sends: a first guess, by the bounds of asymptotic analysis."""
    observation, need_s = world.observation, [distributions.mean(station.demand_s) for station in world.stations]
    busy_s = max(need / station.servers for need, station in zip(need_s, world.stations, strict=True)) * clients.count
    alone = float(alone_s(queues_of(world.stations), np.array(need_s)[:, None])[0])
    cycle_s = distributions.mean(clients.think_s) + alone + observation.rtt_s + observation.overhead_s
    if cycle_s == 0:
        raise InputError("clients: neither thinking nor service takes any time, so requests are without number")
    return int(1.1 * world.horizon_s / max(cycle_s, busy_s)) + 10


def _chained(world: QueueWorld, start_s: Floats, think_s: Floats, who: Ints, demand_s: Floats) -> NetworkRequests:
    """Return chains of equal length: request j of chain i is number j·chains + i; `think_s` has a row per j."""
    length, chains = think_s.shape
    place = np.arange(length * chains)
    return NetworkRequests(
        np.concatenate((start_s, np.full((length - 1) * chains, np.nan))),
        np.tile(who, length),
        np.where(place < chains, NOBODY, place - chains),
        think_s.ravel(),
        demand_s,
        delays(world.observation, world.seed, length * chains),
    )


def _serve(world: QueueWorld, requests: NetworkRequests) -> NetworkLoad:
    """Return what becomes of requests at the stations, in their own order."""
    n, way, follows = len(requests.sent_s), requests.way, requests.after != NOBODY
    came_s = requests.sent_s + way.before_s
    order = np.argsort(came_s, kind="stable")  # NaN last, in the order that it had
    back = np.empty(n, np.int64)
    back[order] = np.arange(n)
    choice = None
    if any(station.policy == "random" for station in world.stations):
        choice = np.array([stream(world.seed, f"choices at {station.name}").random(n) for station in world.stations])
    after = think_s = None
    if follows.any():
        # A client thinks from the answer until it sends the next request, so both ways lie between.
        gap_s = np.where(follows, way.after_s[requests.after] + requests.think_s + way.before_s, 0.0)
        after, think_s = np.where(follows, back[requests.after], NOBODY)[order], gap_s[order]
    queues = queues_of(world.stations)
    served = serve_network(queues, came_s[order], requests.demand_s[:, order], choice, after=after, think_s=think_s)
    stamps = NetworkStamps(
        served.arrival_s[:, back], served.start_s[:, back], served.departure_s[:, back], served.end_s[back]
    )
    first = next(place for place, queue in enumerate(queues) if not queue.after)
    sent_s = np.where(follows, stamps.arrival_s[first] - way.before_s, requests.sent_s)
    return NetworkLoad(sent_s, stamps.end_s + way.after_s, requests.session, requests.demand_s, stamps)


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
        "session": load.session,
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
    sessions = len(np.unique(load.session)) if world.load.sessions is not None else 0
    clients = world.load.clients.count if world.load.clients is not None else 0
    return Recorded(tuple(written), {"requests": n, "sessions": sessions, "clients": clients, "background": 0})


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
