"""A queue world becomes tables: its requests are drawn, served, observed and written."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.limited import LimitedStamps
from models.queues.serve import RequestStamps
from models.queues.world import QueueWorld
from sim.queues.demands import Steps
from sim.queues.limited import OUTCOMES, columns_of, counted, is_limited, serve_limits, server_columns, unserved_columns
from sim.queues.network import write_network
from sim.queues.observe import Delays, delays, utilisation
from sim.queues.service import ServedLoad, check, client_load, sent_times, serve_world
from sim.queues.workloads import NOBODY, Workload, draw
from sim.recorder import Progress, Recorded, TableWriter, Values, write_table

Columns = Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class Stamps:
    """When each of n requests arrived and departed, as its observer saw it; (n,) arrays, seconds."""

    arrival_s: Floats
    departure_s: Floats


def requests(
    world: QueueWorld,
    directory: Path,
    *,
    trace: pd.DataFrame | None = None,
    seconds_per_instruction: Steps | None = None,
    progress: Progress = lambda _what, _share: None,
) -> Recorded:
    """Serve the requests of a queue world and write its tables into a directory.

    Tables `requests`, `cpu`, `truth_requests` and `truth_cpu`; `replays` too if other numbers of servers are asked for;
    on a machine `truth_machine` and `truth_one_way`. Where requests may leave unserved, or servers come and go,
    `requests` holds those that were served, `unserved` the attempts that were not, and `servers` how many were on.
    Of several stations the tables are those of `sim.queues.network.write_network`.
    Requests are numbered in order of arrival as observed.

    Parameters
    ----------
    world : what is asked
    directory : an existing directory
    trace : columns arrival_s, demand_s (seconds) and perhaps type; where the load is a trace, and only there
    seconds_per_instruction : step function of time; where demands come from a fleet's job, and only there
    progress : called with what is being done and the share of the whole that is done

    Raises
    ------
    ValueError
        If the parts of the world do not go together, what its load needs is missing or not as it must be, or no request
        comes within the horizon.
    """
    if world.stations:
        return write_network(world, directory, progress)
    check(world)
    progress("drawing requests", 0.0)
    workload, way = _asked(world, trace, seconds_per_instruction)
    if not len(workload.arrival_s):
        raise InputError(f"no request comes within horizon_s = {world.horizon_s:g}")
    parts = 1 + len(world.replays)
    progress(f"serving {len(workload.arrival_s)} requests", 0.1)
    if is_limited(world):
        return _write_limited(world, directory, workload, way, progress)
    served = serve_world(world, workload, way)
    stamps = observe(world, workload, way, served)
    order = np.argsort(stamps.arrival_s, kind="stable")
    progress("writing tables", 0.1 + 0.9 / parts)
    tables = {
        "requests": _request_columns(workload, stamps, order),
        "cpu": _counted(world, served, world.observation.counter_tick_s),
        "truth_requests": _truth_columns(served, order),
        "truth_cpu": _counted(world, served, None),
    }
    if served.machine is not None:
        tables["truth_machine"] = served.machine.both.means(world.observation.counter_interval_s, served.end_s)
        tables["truth_one_way"] = _one_way_columns(served.machine.one_way(), order)
    written = [write_table(directory, name, columns) for name, columns in tables.items()]
    if world.replays:
        with TableWriter(directory, "replays") as writer:
            for i, servers in enumerate(world.replays):
                progress(f"serving with {servers} servers", 0.1 + 0.9 * (i + 1) / parts)
                again = observe(world, workload, way, serve_world(world, workload, way, servers))
                writer.append(_replay_columns(servers, again, order))
            written.append(writer.close())
    return Recorded(tuple(written), _counts(world, workload, served, len(served.arrival_s) - len(workload.arrival_s)))


def _write_limited(world: QueueWorld, directory: Path, workload: Workload, way: Delays, progress: Progress) -> Recorded:
    """Serve requests of which some may leave unserved, on servers that may come and go, and write the tables."""
    load = serve_limits(world, workload, way)
    _, request = load.served
    arrival_s, start_s, departure_s = (column[load.worked] for column in columns_of(load.stamps))
    work_s = load.stamps.work_s[load.worked]
    served = ServedLoad(arrival_s, arrival_s, start_s, departure_s, work_s, load.busy, load.end_s)
    stamps = Stamps(load.sent_s[load.served], departure_s[: len(request)] + way.after_s[request])
    order = np.argsort(stamps.arrival_s, kind="stable")
    number = np.full(len(workload.arrival_s), NOBODY)
    number[request[order]] = np.arange(len(order))
    progress("writing tables", 0.6)
    tables = {
        "requests": _request_columns(workload, stamps, order, request),
        "cpu": counted(world, load, world.observation.counter_tick_s),
        "truth_requests": _truth_columns(served, order),
        "truth_cpu": counted(world, load, None),
        "unserved": unserved_columns(workload, way, load, number),
        **({} if world.scaling is None else {"servers": server_columns(load)}),
    }
    neighbours = {}
    if load.machine is not None:
        neighbours["neighbours"] = load.machine.both.states.neighbours
        interval_s, on = world.observation.counter_interval_s, load.stamps.servers
        tables["truth_machine"] = load.machine.both.means(interval_s, load.end_s, on)
        tables["truth_one_way"] = _one_way_served(load.machine.one_way(), number)
    failed = {word.replace(" ", "_"): int((load.stamps.outcome == code).sum()) for code, word in OUTCOMES.items()}
    counts = {**_counts(world, workload, served, 0), "requests": len(request), **failed, **neighbours}
    counts["unanswered"] = len(workload.arrival_s) - len(request)
    return Recorded(tuple(write_table(directory, name, columns) for name, columns in tables.items()), counts)


def _asked(world: QueueWorld, trace: pd.DataFrame | None, pace: Steps | None) -> tuple[Workload, Delays]:
    if world.load.clients is not None and trace is None and pace is None:
        return client_load(world, world.load.clients)
    workload = draw(world, trace=trace, seconds_per_instruction=pace)
    return workload, delays(world.observation, world.seed, len(workload.arrival_s))


def observe(world: QueueWorld, workload: Workload, way: Delays, served: ServedLoad) -> Stamps:
    """Return the stamps of an observer: the clients, or the application where it is that which stamps arrivals.

    A client counts from sending a request to having the answer, network included. An application's log counts from
    when a worker takes the request until its service is complete.
    """
    n = len(workload.arrival_s)
    if world.observation.accept_at_application:
        return Stamps(served.accepted_s[:n], served.departure_s[:n])
    return Stamps(sent_times(workload, way, served), served.departure_s[:n] + way.after_s)


def _request_columns(workload: Workload, stamps: Stamps, order: Ints, request: Ints | None = None) -> Columns:
    """Return stamps of the requests named, or of all, in this order."""
    number = order if request is None else request[order]
    kind = pa.array(workload.kind[number].astype(np.int32))
    return {
        "request": np.arange(len(order)),
        "type": pa.DictionaryArray.from_arrays(kind, pa.array(list(workload.names), pa.string())),
        "session": workload.session[number],
        "arrival_s": stamps.arrival_s[order],
        "departure_s": stamps.departure_s[order],
    }


def _replay_columns(servers: int, stamps: Stamps, order: Ints) -> Columns:
    return {
        "servers": np.full(len(order), servers),
        "request": np.arange(len(order)),
        "arrival_s": stamps.arrival_s[order],
        "departure_s": stamps.departure_s[order],
    }


def _truth_columns(served: ServedLoad, order: Ints) -> Columns:
    """Return requests and background work by the server's clock, in order of its arrivals."""
    number = np.full(len(served.arrival_s), NOBODY)
    number[order] = np.arange(len(order))
    by_arrival = np.argsort(served.arrival_s, kind="stable")
    return {
        "request": number[by_arrival],
        "arrival_s": served.arrival_s[by_arrival],
        "start_s": served.start_s[by_arrival],
        "departure_s": served.departure_s[by_arrival],
        "demand_s": served.demand_s[by_arrival],
    }


def _one_way_columns(stamps: RequestStamps, order: Ints) -> Columns:
    """Return requests served at averaged speeds, by the server's clock."""
    return {
        "request": np.arange(len(order)),
        "arrival_s": stamps.arrival_s[order],
        "departure_s": stamps.departure_s[order],
    }


def _one_way_served(stamps: LimitedStamps, number: Ints) -> Columns:
    """Return requests that are served at averaged speeds, of which some may not be in table `requests`."""
    served = stamps.served()
    return {
        "request": number[served[1]],
        "arrival_s": stamps.arrival_s[served],
        "departure_s": stamps.departure_s[served],
    }


def _counted(world: QueueWorld, served: ServedLoad, tick_s: float | None) -> Columns:
    interval_s = world.observation.counter_interval_s
    return utilisation(served.busy, world.station.servers, interval_s, served.end_s, tick_s)


def _counts(world: QueueWorld, workload: Workload, served: ServedLoad, own: int) -> Mapping[str, int]:
    chains = int((workload.after == NOBODY).sum())
    return {
        "requests": len(workload.arrival_s),
        "sessions": chains if world.load.sessions is not None else 0,
        "clients": world.load.clients.count if world.load.clients is not None else 0,
        "background": own,
        **({} if served.machine is None else {"neighbours": served.machine.both.states.neighbours}),
    }
