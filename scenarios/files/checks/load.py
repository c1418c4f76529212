"""What the load of a queue scenario must satisfy: where requests come from, and what they need."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

from analysis.tables.faults import FileError
from models.errors import InputError
from models.fleet.inventory import drawn_names
from models.queues.mean_values import asymptotes
from models.queues.network import alone_s
from models.queues.world import JobDemand
from scenarios.files.checks import fleet as checks
from scenarios.files.distributions import faults_of, within
from scenarios.files.faults import FaultsError, and_more, shown
from scenarios.files.findings import FieldFault, build, checked, repeated
from scenarios.files.loader import absent, kind_of, locate, named, read
from scenarios.files.schema import SCENARIO, QueueScenario, Scenario
from scenarios.files.traces import read_trace
from scenarios.files.tree import Keys, Position
from sim.queues.distributions import mean
from sim.queues.network import queues_of

_SOURCES = ("arrivals", "clients", "trace")


def distributions(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Every distribution has the fields of its kind and no other."""
    for part in ("load", "station", "stations", "contention"):
        for keys, distribution in within(getattr(scenario, part), (part,)):
            yield from faults_of(distribution, keys)


def sources(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Requests come from one source."""
    load = scenario.load
    given = [name for name in _SOURCES if getattr(load, name) is not None]
    if not given:
        yield FieldFault(
            ("load",), f"should say where requests come from: {', '.join(_SOURCES[:-1])} or {_SOURCES[-1]}"
        )
    for name in given[1:]:
        yield FieldFault(("load", name), f"is a second source of requests beside {given[0]}; set one of them to null")
    if load.sessions is not None and load.arrivals is None:
        yield FieldFault(("load", "sessions"), "needs arrivals, each of which begins a session")


def demands(scenario: QueueScenario) -> Iterator[FieldFault]:
    """What requests need is said once: by types, a fleet's job or the trace; several stations say it themselves."""
    load = scenario.load
    if scenario.stations:
        return
    ways = {"types": bool(load.types), "job": load.job is not None, "trace": load.trace is not None}
    given = [name for name, used in ways.items() if used]
    if not given and any(getattr(load, name) is not None for name in _SOURCES):
        yield FieldFault(("load",), "should say what requests need: types or job")
    for name in given[1:]:
        yield FieldFault(("load", name), f"says again what requests need, beside {given[0]}; one of them is too many")
    if load.job is not None and load.clients is not None:
        yield FieldFault(("load", "job"), "needs arrivals: a client's requests have no pace that changes over the day")


def load_points(scenario: QueueScenario) -> Iterator[FieldFault]:
    """The load curve goes forward in time and is somewhere above 0."""
    points = scenario.load.arrivals.load if scenario.load.arrivals is not None else ()
    keys = ("load", "arrivals", "load")
    for i, (before, point) in enumerate(itertools.pairwise(points), 1):
        if point.time_s < before.time_s:
            problem = f"should be at least {before.time_s:g}, the time of the point before"
            yield FieldFault((*keys, i, "time_s"), problem, f"{point.time_s:g}")
    if points and not any(point.factor for point in points):
        yield FieldFault(keys, "should be above 0 somewhere, or nothing arrives")


def type_names(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Types of requests have different names."""
    for i, name in repeated([kind.name for kind in scenario.load.types]):
        yield FieldFault(("load", "types", i, "name"), "another type has this name", shown(name))


def closed_cycle(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Clients do not ask without end in no time."""
    if scenario.load.clients is not None and cycle_s(scenario) == 0 and sound(scenario):
        yield FieldFault(("load", "clients", "think_s"), "should take some time, because nothing else does")


def trace(scenario: QueueScenario) -> Iterator[FieldFault]:
    """A trace can be read, and some of it lies inside the horizon."""
    source, keys = scenario.load.trace, ("load", "trace", "file")
    if source is None:
        return
    try:
        arrival_s = read_trace(Path(source.file))["arrival_s"]
    except FileError as error:
        for fault in error.printed:
            yield FieldFault((fault.field,), fault.problem, fault.got, Position(source.file, fault.line, fault.column))
        if error.unprinted:
            line, column = error.faults[len(error.printed)][:2]
            yield FieldFault((), and_more(error.unprinted), "", Position(source.file, line, column))
    except OSError as error:
        yield FieldFault(keys, f"cannot be read: {error.strerror}", shown(source.file))
    else:
        if arrival_s.min() >= scenario.horizon_s:
            problem = f"should hold a request before horizon_s = {scenario.horizon_s:g}"
            yield FieldFault(keys, problem, f"none before {arrival_s.min():g}")


def job(scenario: QueueScenario) -> Iterator[FieldFault]:
    """The fleet's job is there, and its day is no shorter than the queue's."""
    demand, keys = scenario.load.job, ("load", "job")
    if demand is None:
        return
    fleet, problem = _fleet(demand)
    if fleet is None:
        yield FieldFault((*keys, "scenario"), problem, shown(demand.scenario))
        return
    services = {service.name: service.instances for service in fleet.population.services}
    if demand.job not in {*services, *drawn_names(fleet.population, fleet.seed)}:
        problem = f"there is no such job; there are {', '.join([*services, 'heavyweight-01'])}, …"
        yield FieldFault((*keys, "job"), problem, shown(demand.job))
    elif demand.instance >= services.get(demand.job, demand.instance + 1):
        problem = f"should be less than {services[demand.job]}, the job's instances counted from 0"
        yield FieldFault((*keys, "instance"), problem, str(demand.instance))
    if scenario.horizon_s > fleet.horizon_s:
        problem = f"should be at most {fleet.horizon_s:g}, the horizon of {fleet.name}"
        yield FieldFault(("horizon_s",), problem, f"{scenario.horizon_s:g}")


def cycle_s(scenario: QueueScenario) -> float:
    """Return the least mean time between two requests of one client, seconds; 0 or NaN if that cannot be told.

    Examples
    --------
    >>> from models.queues.world import Clients, Distribution, Load, RequestType
    >>> types = (RequestType("page", Distribution("constant", mean=0.5)),)
    >>> cycle_s(QueueScenario(name="rush", load=Load(clients=Clients(), types=types)))
    1.5
    """
    load, observation = scenario.load, scenario.observation
    if load.clients is None or not sound(scenario):
        return 0.0
    weights = sum(kind.weight for kind in load.types) or 1.0
    demand_s = sum(kind.weight * mean(kind.demand_s) for kind in load.types) / weights
    if scenario.stations:
        demand_s = passing_s(scenario)
    return mean(load.clients.think_s) + demand_s + observation.rtt_s + observation.overhead_s


def rate(scenario: QueueScenario) -> tuple[Keys, float]:
    """Return how many requests may come per second, and the field that says so; 0 of a trace, or if it is unknown."""
    load = scenario.load
    if load.arrivals is not None:
        highest = max((point.factor for point in load.arrivals.load), default=1.0)
        length = load.sessions.requests if load.sessions is not None else 1
        return ("load", "arrivals", "rate_per_s"), load.arrivals.rate_per_s * highest * length
    if load.clients is not None and cycle_s(scenario) > 0:
        needs_s = [mean(station.demand_s) / station.servers for station in scenario.stations] or [0.0]
        bounds = asymptotes(needs_s, cycle_s(scenario), load.clients.count, 0.0)
        return ("load", "clients", "count"), bounds.most_per_s
    return ("load",), 0.0


def passing_s(scenario: QueueScenario) -> float:
    """Return how long a request takes that needs the mean of several stations and never waits; NaN if that is unknown.

    Examples
    --------
    >>> from models.queues.world import Distribution, NetworkStation
    >>> second = Distribution("constant", mean=1.0)
    >>> passing_s(QueueScenario(name="two", stations=(NetworkStation("a", second), NetworkStation("b", second))))
    2.0
    """
    if any(any(faults_of(station.demand_s)) for station in scenario.stations):
        return math.nan
    try:
        queues = queues_of(scenario.stations)
    except InputError:  # `checks.stations.order` tells
        return math.nan
    if any(queue.needs > len(queue.after) for queue in queues):
        return math.nan
    return float(alone_s(queues, [[mean(station.demand_s)] for station in scenario.stations])[0])


def sound(scenario: QueueScenario) -> bool:
    """Return whether every distribution of the load has its fields, so that it has a mean."""
    return not any(any(faults_of(distribution)) for _, distribution in within(scenario.load))


def _fleet(demand: JobDemand) -> tuple[Scenario | None, str]:
    """Return the fleet whose job is asked for, or why there is none."""
    if not locate(demand.scenario).is_file():
        return None, absent(demand.scenario, locate(demand.scenario))
    try:
        root, faults = read(demand.scenario)
    except FaultsError as error:
        return None, f"has faults: {error.faults[0]}"
    if root.child("sweep") is not None or kind_of(root) != "fleet":
        return None, f"should be a fleet, not a {'sweep' if root.child('sweep') is not None else kind_of(root)}"
    built = build(SCENARIO, named(root, demand.scenario))
    fleet, wrong = built
    if fleet is None or faults or wrong or checked(checks.CHECKS, fleet):
        return None, "has faults; wsc check lists them"
    return fleet, ""
