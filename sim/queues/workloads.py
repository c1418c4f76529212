"""Workloads: the requests of a queue world as arrays, before any of them is served.

A request is either sent at a time of its own or follows another one: it is sent when the answer to that one has come
and a think time has passed. Every draw belongs to a named stream, so a longer horizon or another demand changes no
arrival, and another server changes nothing at all.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.queues.world import Arrivals, Clients, Load, QueueWorld
from models.randomness import stream
from sim.queues import distributions
from sim.queues.arrivals import arrival_times
from sim.queues.demands import RequestDemands, Steps, ask, blocking, joined, mean_demand, pace_at, type_names
from sim.queues.loads import check_load

NOBODY = -1
FIRST_BLOCK = 64
"""Requests that are drawn first for each client; every further block has twice as many."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests by the clients' clock, none before the one that it follows; (n,) arrays.

    Requests that follow no other need not be in order of time.
    """

    arrival_s: Floats
    """When it is sent; NaN if it follows another request."""
    demand_s: Floats
    """Service demand on a server of speed 1."""
    kind: Ints
    """Its type, an index into `names`."""
    session: Ints
    """Session or client that asks; −1: none."""
    after: Ints
    """The request that it follows; −1: none."""
    think_s: Floats
    """Time between the answer to that one and this request; 0 if it follows none."""
    priority: Ints
    """Class of static priority; 0 is served first."""
    blocking_s: Floats
    """How long it waits off the servers, halfway through."""
    names: tuple[str, ...]
    """Names of the types."""


def draw(
    world: QueueWorld,
    *,
    trace: pd.DataFrame | None = None,
    seconds_per_instruction: Steps | None = None,
    client_requests: int = FIRST_BLOCK,
) -> Workload:
    """Return the requests that a world asks for.

    Parameters
    ----------
    world : what is asked
    trace : columns arrival_s, demand_s (seconds) and perhaps type; where the load is a trace, and only there. Rows from
        the horizon on are left out.
    seconds_per_instruction : where demands come from a fleet's job, and only there. A request that follows another
        keeps the pace of its session's start, because its own time is known only when it is served.
    client_requests : requests of every client, at least so many; the first of them do not depend on it
    """
    check_load(world, trace, seconds_per_instruction)
    if trace is not None:
        return _traced(world, trace)
    if world.load.clients is not None:
        return _closed(world, world.load.clients, client_requests)
    return _from_outside(world, world.load.arrivals or Arrivals(), seconds_per_instruction)


def kept(workload: Workload, keep: Bools) -> Workload:
    """Return a workload without some of its requests.

    Parameters
    ----------
    workload : n requests
    keep : (n,) array; a request that is kept follows one that is kept, or none
    """
    after = workload.after[keep]
    if not keep[after[after != NOBODY]].all():
        raise InputError("a request is kept, but the one that it follows is not")
    place = np.cumsum(keep) - 1
    return Workload(
        workload.arrival_s[keep],
        workload.demand_s[keep],
        workload.kind[keep],
        workload.session[keep],
        after=np.where(after == NOBODY, NOBODY, place[after]),
        think_s=workload.think_s[keep],
        priority=workload.priority[keep],
        blocking_s=workload.blocking_s[keep],
        names=workload.names,
    )


def expected_client_requests(world: QueueWorld) -> int:
    """Return about how many requests each client of a closed load sends: a first guess, at most generous.

    The bounds are those of asymptotic analysis: a client's cycle is no shorter than thinking and being served without
    waiting, and all servers together do no more than they can (Denning and Buzen 1978, Computing Surveys 10).
    """
    clients = world.load.clients
    if clients is None:
        raise InputError("load: has no clients")
    demand_s = mean_demand(world.load)
    cycle_s = distributions.mean(clients.think_s) + demand_s + world.observation.rtt_s + world.observation.overhead_s
    if cycle_s == 0:
        raise InputError("clients: neither thinking nor service takes any time, so requests are without number")
    busy_s = demand_s * clients.count / world.station.servers
    return int(1.1 * world.horizon_s / max(cycle_s, busy_s)) + 10


def _from_outside(world: QueueWorld, arrivals: Arrivals, pace: Steps | None) -> Workload:
    """Return requests that arrive from outside, alone or as the first of a session."""
    start_s, asks = arrival_times(arrivals, world.horizon_s, world.seed), world.load.sessions
    sessions, length = len(start_s), 1 if asks is None else asks.requests
    think_s = np.zeros((length, sessions))
    if asks is not None:
        think_s[1:] = distributions.draw(asks.think_s, stream(world.seed, "think"), (sessions, length - 1)).T
    by_session = np.arange(sessions * length).reshape(sessions, length).T.ravel()
    demands = ask(world, sessions * length).taken(by_session)
    if pace is not None:
        demands = demands.paced(np.tile(pace_at(pace, start_s), length))
    who = np.full(sessions, NOBODY) if asks is None else np.arange(sessions)
    return _chained(world.load, start_s, think_s, who, demands)


def _closed(world: QueueWorld, clients: Clients, requests: int) -> Workload:
    """Return the requests of clients: blocks of requests of every client, each from streams of its own."""
    sizes = client_blocks(requests)
    demands = joined([ask(world, size * clients.count, prefix) for prefix, size in sizes])
    think_s = client_thinks(clients, world.seed, requests)
    start_s = think_s[0].copy()
    think_s[0] = 0.0
    return _chained(world.load, start_s, think_s, np.arange(clients.count), demands)


def client_blocks(requests: int) -> list[tuple[str, int]]:
    """Return the blocks in which so many requests of every client are drawn: prefixes of streams, and requests in each.

    Examples
    --------
    >>> client_blocks(100)
    [('clients 0 ', 64), ('clients 1 ', 128)]
    """
    blocks = int(np.ceil(np.log2(max(requests, FIRST_BLOCK) / FIRST_BLOCK + 1)))
    return [(f"clients {i} ", FIRST_BLOCK * 2**i) for i in range(blocks)]


def client_thinks(clients: Clients, seed: int, requests: int) -> Floats:
    """Return the time that each of the clients thinks before each of at least so many requests: a row for a request."""
    return np.concatenate([
        distributions.draw(clients.think_s, stream(seed, f"{prefix}think"), (size, clients.count))
        for prefix, size in client_blocks(requests)
    ])  # fmt: skip


def _chained(load: Load, start_s: Floats, think_s: Floats, who: Ints, demands: RequestDemands) -> Workload:
    """Return chains of equal length: request j of chain i is number j·chains + i; `think_s` has a row per j."""
    length, chains = think_s.shape
    place = np.arange(length * chains)
    priority = np.array([kind.priority for kind in load.types] or [0])
    return Workload(
        np.concatenate((start_s, np.full((length - 1) * chains, np.nan))),
        demands.amount,
        demands.kind,
        session=np.tile(who, length),
        after=np.where(place < chains, NOBODY, place - chains),
        think_s=think_s.ravel(),
        priority=priority[demands.kind],
        blocking_s=demands.blocking_s,
        names=type_names(load),
    )


def _traced(world: QueueWorld, trace: pd.DataFrame) -> Workload:
    arrival_s, demand_s = (_column(trace, name) for name in ("arrival_s", "demand_s"))
    codes, names = pd.factorize(trace["type"], sort=True) if "type" in trace else (np.zeros(len(trace), int), ["trace"])
    if (missing := np.flatnonzero(codes < 0)).size:
        raise InputError(f"trace: type of row {missing[0]} is missing")
    order = np.argsort(arrival_s, kind="stable")
    order = order[arrival_s[order] < world.horizon_s]
    nothing = np.zeros(len(order), np.int64)
    return Workload(
        arrival_s[order],
        demand_s[order],
        codes[order].astype(np.int64),
        session=nothing + NOBODY,
        after=nothing + NOBODY,
        think_s=np.zeros(len(order)),
        priority=nothing,
        blocking_s=blocking(world.contention, world.seed, len(order)),
        names=tuple(str(name) for name in names),
    )


def _column(trace: pd.DataFrame, name: str) -> Floats:
    if name not in trace:
        raise InputError(f"trace: column {name} is missing")
    values: Floats = trace[name].to_numpy(np.float64)
    if (wrong := np.flatnonzero(~(np.isfinite(values) & (values >= 0)))).size:
        raise InputError(f"trace: {name} of row {wrong[0]} is {values[wrong[0]]}; it must be finite and at least 0")
    return values
