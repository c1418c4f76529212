"""Serving a queue world whose station has limits or whose servers come and go: who was answered, who was not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.elastic import GAVE_UP, NOT_TRIED, REFUSED, SERVED, TIMED_OUT
from models.queues.limited import Autoscaling, LimitedStamps, ServerCourse, serve_limited
from models.queues.machine import ServingMachine
from models.queues.policies import LIMITED, PATIENT, PolicyName
from models.queues.serve import ChangingRates, RequestStamps
from models.queues.world import Contention, QueueWorld, Station
from models.randomness import stream
from sim.queues import distributions
from sim.queues.laws import obey
from sim.queues.observe import Busy, Delays, utilisation
from sim.queues.offered import Background, offered
from sim.queues.workloads import NOBODY, Workload
from sim.recorder import Values

if TYPE_CHECKING:
    from sim.queues.machine import OnMachine

OUTCOMES = {REFUSED: "refused", GAVE_UP: "gave up", TIMED_OUT: "timed out"}
"""What became of attempts that were not served, in words."""


@dataclass(frozen=True, slots=True)
class LimitedLoad:
    """What became of the attempts of n requests, and those of them that were served at last."""

    stamps: LimitedStamps
    """By the server's clock, in the order of the workload."""
    sent_s: Floats
    """(m, n) when each attempt was sent, by its client's clock; NaN: it was not needed."""
    served: tuple[Ints, Ints]
    """(a,) arrays: attempts that were served, and their requests in order."""
    worked: tuple[Ints, Ints]
    """(b,) arrays: the same, and after them those that timed out in service or after some."""
    busy: Busy
    """How many servers worked."""
    end_s: float
    """End of the last counting interval."""
    machine: "LimitedMachine | None" = None
    """What the machine did that the servers are threads of; None: there is none."""


@dataclass(frozen=True, slots=True)
class LimitedMachine:
    """What became of requests on a machine, both ways and one way."""

    both: "OnMachine"
    stamps: LimitedStamps
    one_way: Callable[[], LimitedStamps]
    """Serves the same requests, in the order of the workload, at speeds averaged over five minutes."""


def is_limited(world: QueueWorld) -> bool:
    """Return whether requests of a world may leave unserved, or its servers come and go."""
    return world.station.limited or world.station.retries is not None or world.scaling is not None


def check_limited(world: QueueWorld) -> None:
    """Raise ValueError if a world with limits has what they are not modelled with."""
    station, scaling = world.station, world.scaling
    if not is_limited(world):
        if station.threads is not None:
            raise InputError("threads: need a limit or scaling; a pool alone is a station of stations")
        return
    if station.policy not in LIMITED:
        raise InputError(f"limits and scaling need one of the policies {', '.join(LIMITED)}, got {station.policy}")
    if station.threads is not None and (station.policy != "ps" or station.threads < most_servers(world)):
        raise InputError(f"threads: {station.threads}, need policy ps and at least {most_servers(world)}, the servers")
    if station.patience_s is not None and station.policy not in PATIENT and station.threads is None:
        raise InputError(f"patience_s: under policy {station.policy} no request waits")
    if station.retries is not None and not station.limited:
        raise InputError("retries: no request fails without capacity, patience_s or timeout_s")
    if station.capacity is not None and station.capacity < most_servers(world):
        raise InputError(f"capacity: {station.capacity} leaves some of {most_servers(world)} servers idle for ever")
    others = {
        "speeds": bool(station.speeds), "rates": bool(station.rates),
        "contention": world.contention != Contention(), "workers": world.observation.workers > 0,
        "background_share": world.observation.background_share > 0, "replays": bool(world.replays),
        "clients": world.load.clients is not None,
    }  # fmt: skip
    if given := [name for name, used in others.items() if used]:
        raise InputError(f"limits and scaling are not modelled with {', '.join(given)}")
    if scaling is not None and (scaling.autoscaler is None) == (not scaling.schedule):
        raise InputError("scaling: needs one of schedule and autoscaler")


def most_servers(world: QueueWorld) -> int:
    """Return the most servers that a world may have."""
    scaling = world.scaling
    steps = [step.servers for step in scaling.schedule] if scaling is not None else []
    rule = scaling.autoscaler if scaling is not None else None
    return max(world.station.servers, *steps, 0 if rule is None else rule.most)


def attempts(station: Station) -> int:
    """Return the most attempts of a request."""
    return 1 if station.retries is None else 1 + station.retries.most


def serve_limits(world: QueueWorld, workload: Workload, way: Delays) -> LimitedLoad:
    """Return what becomes of requests on a station with limits, or on servers that come and go.

    Parameters
    ----------
    world : what is asked
    workload : n requests by the clients' clock
    way : (n,) arrays, how long requests and answers are on the way
    """
    check_limited(world)
    given = offered(workload, way, Background(np.empty(0), np.empty(0)))
    n, station, scaling = len(workload.arrival_s), world.station, world.scaling
    m, back = attempts(station), np.empty(n, np.int64)
    back[given.number] = np.arange(n)
    patience_s = timeout_s = return_s = None
    if station.patience_s is not None:
        patience_s = distributions.draw(station.patience_s, stream(world.seed, "patience"), (m, n))[:, given.number]
    if station.timeout_s is not None:
        timeout_s = distributions.draw(station.timeout_s, stream(world.seed, "timeouts"), (m, n))[:, given.number]
    if station.retries is not None:
        pause_s = distributions.draw(station.retries.delay_s, stream(world.seed, "retries"), (m - 1, n))
        return_s = (way.after_s + pause_s + way.before_s)[:, given.number]

    def at(rates: ChangingRates | None) -> LimitedStamps:
        stamps = serve_limited(
            _policy(station),
            given.arrival_s,
            given.demand_s,
            station.servers,
            after=given.after if (given.after != NOBODY).any() else None,
            think_s=given.think_s,
            priority=given.priority,
            choice=stream(world.seed, "choices").random(m * n) if station.policy == "random" else None,
            capacity=station.capacity or 0,
            threads=station.threads or 0,
            patience_s=patience_s,
            timeout_s=timeout_s,
            return_s=return_s,
            schedule=[(step.time_s, step.servers) for step in scaling.schedule] if scaling is not None else (),
            autoscaling=_rule(world),
            start_up_s=scaling.start_up_s if scaling is not None else 0.0,
            rates=rates,
        )
        columns = (column[:, back] for column in (*columns_of(stamps), stamps.work_s))
        arrival_s, start_s, departure_s, work_s = columns
        return LimitedStamps(arrival_s, start_s, departure_s, work_s, stamps.outcome[:, back], stamps.servers)

    machine = None if world.machine is None else _on_machine(world, world.machine, at)
    stamps = at(None) if machine is None else machine.stamps
    served, worked = stamps.served(), stamps.worked()
    if not len(served[1]):
        raise InputError("no request is served: all are refused, give up or time out")
    arrival_s, start_s, departure_s = (column[worked] for column in columns_of(stamps))
    busy = busy_servers(arrival_s, departure_s, stamps.servers)
    at_most, work_s = replace(station, servers=int(max(stamps.servers.on))), stamps.work_s[worked]
    rates, on = (None, None) if machine is None else (machine.both.states.rates, stamps.servers)
    obey(at_most, arrival_s, start_s, departure_s, demand_s=work_s, busy=busy, rates=rates, on=on)
    last_s = max(world.horizon_s, float(np.nanmax(stamps.departure_s)))
    interval_s = world.observation.counter_interval_s
    sent_s = stamps.arrival_s - way.before_s
    sent_s[0] = np.where(workload.after == NOBODY, workload.arrival_s, sent_s[0])
    end_s = interval_s * float(np.ceil(last_s / interval_s))
    return LimitedLoad(stamps, sent_s, served, worked, busy, end_s, machine)


def _on_machine(
    world: QueueWorld, machine: ServingMachine, at: Callable[[ChangingRates], LimitedStamps]
) -> LimitedMachine:
    """Serve requests on a machine both ways, and one way once somebody asks."""
    from sim.queues.machine import on_machine  # the fleet's physics takes a second to load

    last: list[LimitedStamps] = []

    def worked(rates: ChangingRates) -> RequestStamps:
        last[:] = [at(rates)]
        return RequestStamps(*(column[last[0].worked()] for column in columns_of(last[0])))

    most, until_s = most_servers(world), 1.05 * world.horizon_s
    both = on_machine(machine, most, world.seed, until_s, worked, platforms=world.platforms)
    [stamps] = last
    work_s = stamps.work_s[stamps.worked()]
    return LimitedMachine(both, stamps, lambda: at(both.one_way_rates(work_s, world.horizon_s)))


def columns_of(stamps: LimitedStamps) -> tuple[Floats, Floats, Floats]:
    """Return when attempts arrived, were begun and left."""
    return stamps.arrival_s, stamps.start_s, stamps.departure_s


def _policy(station: Station) -> PolicyName:
    return next(name for name in LIMITED if name == station.policy)


def _rule(world: QueueWorld) -> Autoscaling | None:
    """Return the rule that orders servers."""
    rule = world.scaling.autoscaler if world.scaling is not None else None
    if rule is None:
        return None
    hold = 1 + int(rule.hold_s / rule.look_s)
    return Autoscaling(rule.rule, rule.target, rule.look_s, rule.least, rule.most, hold)


def busy_servers(arrival_s: Floats, departure_s: Floats, course: ServerCourse) -> Busy:
    """Return how many servers work: the lesser of those that are on and of the requests present.

    Examples
    --------
    >>> course = ServerCourse(np.array([0.0, 2.0]), np.array([1, 2]), np.array([0, 0]))
    >>> busy_servers(np.array([0.0, 1.0]), np.array([3.0, 4.0]), course).servers
    array([1, 1, 2, 1, 0])
    """
    time_s = np.unique(np.concatenate((arrival_s, departure_s, course.time_s)))
    came = np.searchsorted(np.sort(arrival_s), time_s, "right")
    present = came - np.searchsorted(np.sort(departure_s), time_s, "right")
    return Busy(time_s, np.minimum(present, course.at(time_s)))


def counted(world: QueueWorld, load: LimitedLoad, tick_s: float | None) -> dict[str, Floats]:
    """Return the share of the servers that are on which work, interval by interval (table `cpu`)."""
    interval_s, course = world.observation.counter_interval_s, load.stamps.servers
    working = utilisation(load.busy, 1, interval_s, load.end_s, tick_s)
    on = utilisation(Busy(course.time_s, course.on), 1, interval_s, load.end_s, tick_s)
    return {**working, "utilisation": working["utilisation"] / on["utilisation"]}


def unserved_columns(workload: Workload, way: Delays, load: LimitedLoad, number: Ints) -> dict[str, Values]:
    """Return the attempts that were refused or given up, in order of time (table `unserved`).

    Parameters
    ----------
    workload, way, load : n requests
    number : (n,) array, the row of each request in table `requests`; −1: it was never served
    """
    attempt, request = np.nonzero((load.stamps.outcome != SERVED) & (load.stamps.outcome != NOT_TRIED))
    order = np.argsort(load.sent_s[attempt, request], kind="stable")
    attempt, request = attempt[order], request[order]
    kinds = pa.array(workload.kind[request].astype(np.int32))
    failures = pa.array((load.stamps.outcome[attempt, request] - REFUSED).astype(np.int32))
    return {
        "request": number[request],
        "attempt": attempt,
        "type": pa.DictionaryArray.from_arrays(kinds, pa.array(list(workload.names), pa.string())),
        "session": workload.session[request],
        "arrival_s": load.sent_s[attempt, request],
        "departure_s": load.stamps.departure_s[attempt, request] + way.after_s[request],
        "outcome": pa.DictionaryArray.from_arrays(failures, pa.array(list(OUTCOMES.values()), pa.string())),
    }


def server_columns(load: LimitedLoad) -> dict[str, Values]:
    """Return how many servers were on and starting, from each time to the next (table `servers`)."""
    course = load.stamps.servers
    keep = course.time_s < load.end_s
    return {"time_s": course.time_s[keep], "servers": course.on[keep], "starting": course.starting[keep]}
