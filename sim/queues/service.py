"""Serving a queue world: its requests on so many servers, none cut off, with background work to the end."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.own_policies import scheduling
from models.queues.serve import ChangingRates, RequestStamps, serve
from models.queues.world import Clients, Contention, QueueWorld
from models.randomness import stream
from sim.queues.laws import obey
from sim.queues.limited import check_limited
from sim.queues.observe import Busy, Delays, delays, present
from sim.queues.offered import Background, Offered, background, capacity, of_servers, offered
from sim.queues.servers import contend
from sim.queues.workloads import NOBODY, Workload, draw, expected_client_requests, kept

if TYPE_CHECKING:
    from sim.queues.machine import OnMachine


class QueueStamps(NamedTuple):
    """(n,) arrays, seconds, as in `ServedLoad`."""

    arrival_s: Floats
    accepted_s: Floats
    start_s: Floats
    departure_s: Floats


@dataclass(frozen=True, slots=True)
class ServedLoad:
    """What became of n requests, and after them of m pieces of background work: (n + m,) arrays, seconds."""

    arrival_s: Floats
    """When it entered the queue."""
    accepted_s: Floats
    """When a worker took it from the listener; without workers: when it entered."""
    start_s: Floats
    """When a server first took it."""
    departure_s: Floats
    """When its service was complete."""
    demand_s: Floats
    """Service demand on a server of speed 1."""
    busy: Busy
    """How many servers worked."""
    end_s: float
    """End of the last counting interval; background work that came later is left out."""
    machine: "MachineCourse | None" = None
    """What the machine did that they are threads of; None: there is none."""


@dataclass(frozen=True, slots=True)
class MachineCourse:
    """What became of requests on a machine, both ways and one way."""

    both: "OnMachine"
    one_way: Callable[[], RequestStamps]
    """Serves the same requests, in the order of `ServedLoad`, at speeds averaged over five minutes."""


def check(world: QueueWorld) -> None:
    """Raise ValueError if the parts of a world do not go together."""
    station, observation = world.station, world.observation
    if world.replays and (world.load.clients is not None or world.load.sessions is not None):
        raise InputError("replays: need an open load, because sessions and clients react to the server")
    if is_contended(world):
        if station.policy != "fcfs":
            raise InputError(f"contention and workers need policy fcfs, got {station.policy}")
        if station.speeds or station.rates:
            raise InputError("contention and workers need servers of speed 1, without speeds and rates")
    for name, given in (("speeds", station.speeds), ("rates", station.rates)):
        if given and len(given) != station.servers:
            raise InputError(f"{name}: {len(given)} for {station.servers} servers")
        if given and max(world.replays, default=0) > len(given):
            raise InputError(f"replays: {max(world.replays)} servers, but {name} are given for {len(given)}")
    _check_machine(world)
    check_limited(world)
    least = min((station.servers, *world.replays))
    if (own := observation.background_share * capacity(station)) >= capacity(of_servers(station, least)):
        raise InputError(f"replays: background work of {own:g} servers leaves nothing of {least}")
    if observation.counter_interval_s < observation.counter_tick_s:
        raise InputError(
            f"counter_interval_s {observation.counter_interval_s} is below counter_tick_s {observation.counter_tick_s}"
        )


def _check_machine(world: QueueWorld) -> None:
    """Raise ValueError if what a world says of its servers does not go with a machine, which decides it."""
    if world.machine is None:
        return
    if is_contended(world):
        raise InputError("machine: requests are served on one without contention and workers")
    if world.station.speeds or world.station.rates:
        raise InputError("machine: decides how fast servers are, so speeds and rates cannot be given")
    if world.load.job is not None:
        raise InputError("machine: decides what demands take, so they cannot come from a fleet's job")


def is_contended(world: QueueWorld) -> bool:
    """Return whether the servers of a world break the assumptions of the operational laws."""
    return world.contention != Contention() or world.observation.workers > 0


def client_load(world: QueueWorld, clients: Clients) -> tuple[Workload, Delays]:
    """Return the requests that the clients of a closed load send before the horizon.

    How many these are is known only when they are served, so chains are drawn, served, and drawn longer until each
    passes the horizon. What is sent before it depends on nothing that is sent after it; so the rest may be dropped, and
    served again without it, the same requests are sent at the same times. The first guess of the length changes
    nothing.
    """
    length, servers = expected_client_requests(world), world.station.servers
    own = background(world.observation, capacity(world.station), world.seed, world.horizon_s)
    while True:
        workload = draw(world, client_requests=length)
        way = delays(world.observation, world.seed, len(workload.arrival_s))
        early = sent_times(workload, way, _once(world, servers, workload, way, own)) < world.horizon_s
        if not early[-clients.count :].any():
            return kept(workload, early), Delays(way.before_s[early], way.after_s[early])
        length = 2 * len(early) // clients.count


def sent_times(workload: Workload, way: Delays, served: ServedLoad) -> Floats:
    """Return when each request was sent, by its client's clock."""
    n = len(workload.arrival_s)
    return np.where(workload.after == NOBODY, workload.arrival_s, served.arrival_s[:n] - way.before_s)


def serve_world(world: QueueWorld, workload: Workload, way: Delays, servers: int | None = None) -> ServedLoad:
    """Return what becomes of requests on the servers of a world, beside the background work until all is counted."""
    check(world)
    n, interval_s = len(workload.arrival_s), world.observation.counter_interval_s
    until_s = 1.02 * world.horizon_s + 2 * interval_s
    while True:
        own = background(world.observation, capacity(world.station), world.seed, until_s)
        served = _once(world, servers or world.station.servers, workload, way, own)
        last_s = max(world.horizon_s, float(served.departure_s[:n].max(initial=0.0)))
        end_s = interval_s * float(np.ceil(last_s / interval_s))
        if not len(own.arrival_s) or until_s >= end_s:
            return _until(served, n, end_s)
        # More background work may delay the end again; it takes at most half of the capacity.
        until_s = max(end_s, world.horizon_s + 2 * (end_s - world.horizon_s)) + interval_s


def _until(served: ServedLoad, n: int, end_s: float) -> ServedLoad:
    """Leave out background work that came after the end."""
    keep = np.arange(len(served.arrival_s)) < n
    keep |= served.arrival_s < end_s
    return ServedLoad(
        served.arrival_s[keep],
        served.accepted_s[keep],
        served.start_s[keep],
        served.departure_s[keep],
        served.demand_s[keep],
        served.busy,
        end_s,
        served.machine,
    )


def _once(world: QueueWorld, servers: int, workload: Workload, way: Delays, own: Background) -> ServedLoad:
    """Serve requests and background work once, and see that it was done by the laws."""
    given, machine = offered(workload, way, own), None
    back = np.empty(len(given.number), np.int64)
    back[given.number] = np.arange(len(given.number))
    if is_contended(world):
        stamps, busy = _contended(world, servers, workload.blocking_s, given)
    elif world.machine is not None and len(given.number):
        machine = _on_machine(world, servers, given, back)
        stamps, busy = _stamps(machine.both.stamps, servers)
    else:
        stamps, busy = _stamps(_served(world, servers, given), servers)
    stamps = QueueStamps(*(stamp[back] for stamp in stamps))
    station = of_servers(world.station, servers)
    demand_s, parts = given.demand_s[back], world.contention.parallelism
    rates = None if machine is None else machine.both.states.rates
    obey(
        station,
        stamps.arrival_s,
        stamps.start_s,
        stamps.departure_s,
        demand_s=demand_s,
        busy=busy,
        parts=parts,
        rates=rates,
    )
    return ServedLoad(*stamps, demand_s, busy, np.inf, machine)


def _on_machine(world: QueueWorld, servers: int, given: Offered, back: Ints) -> MachineCourse:
    """Serve requests on a machine both ways, and one way once somebody asks."""
    from sim.queues.machine import on_machine  # the fleet's physics takes a second to load

    assert world.machine is not None

    def at(rates: ChangingRates) -> RequestStamps:
        return _served(world, servers, given, rates)

    until_s = 1.05 * world.horizon_s
    both = on_machine(world.machine, servers, world.seed, until_s, at, platforms=world.platforms)

    def one_way() -> RequestStamps:
        alone = at(both.one_way_rates(given.demand_s, world.horizon_s))
        return RequestStamps(*(stamp[back] for stamp in astuple(alone)))

    return MachineCourse(both, one_way)


def _served(world: QueueWorld, servers: int, given: Offered, rates: ChangingRates | None = None) -> RequestStamps:
    station = of_servers(world.station, servers)
    return serve(
        scheduling(station.policy),
        given.arrival_s,
        given.demand_s,
        station.servers,
        after=given.after if (given.after != NOBODY).any() else None,
        think_s=given.think_s,
        priority=given.priority,
        quantum_s=station.quantum_s,
        choice=stream(world.seed, "choices").random(len(given.number)) if station.policy == "random" else None,
        speeds=station.speeds or None,
        rates=rates or station.rates or None,
    )


def _stamps(done: RequestStamps, servers: int) -> tuple[QueueStamps, Busy]:
    busy = present(done.arrival_s, done.departure_s, servers)
    return QueueStamps(done.arrival_s, done.arrival_s, done.start_s, done.departure_s), busy


def _contended(world: QueueWorld, servers: int, blocking_s: Floats, given: Offered) -> tuple[QueueStamps, Busy]:
    own = given.number >= len(blocking_s)
    done = contend(
        given.arrival_s,
        given.demand_s,
        servers,
        after=given.after,
        think_s=given.think_s,
        blocking_s=np.where(own, 0.0, np.append(blocking_s, 0.0)[np.where(own, -1, given.number)]),
        lock_share=world.contention.lock_share,
        limit=world.contention.concurrency_limit,
        workers=world.observation.workers,
        parts=world.contention.parallelism,
        plain=own,
    )
    busy = present(done.work_from_s, done.work_to_s, servers)
    return QueueStamps(done.arrival_s, done.accepted_s, done.start_s, done.departure_s), busy
