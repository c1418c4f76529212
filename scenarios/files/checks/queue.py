"""What fields of a queue scenario must satisfy together."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from analysis.tables.faults import FileError
from models.code.parts import PartError
from models.fleet.world import Interference, Power, Steps, World
from models.queues.machine import ServingMachine
from models.queues.own_policies import OwnPolicy, rules_of
from models.queues.policies import LIMITED, MOST_SLICES, PATIENT, POLICIES
from models.queues.world import Contention
from scenarios.files.checks import stations as several
from scenarios.files.checks.fleet import EVERY_SHEET, switched_off
from scenarios.files.checks.load import (
    closed_cycle,
    demands,
    distributions,
    job,
    load_points,
    rate,
    sound,
    sources,
    trace,
    type_names,
)
from scenarios.files.faults import shown
from scenarios.files.findings import Check, FieldFault, repeated
from scenarios.files.schema import QueueScenario
from scenarios.files.traces import read_trace
from scenarios.files.tree import Keys
from sim.fleet.own_physics import WAYS, own_function
from sim.queues.distributions import mean
from sim.queues.limited import attempts, is_limited, most_servers
from sim.queues.offered import capacity, of_servers

_DRAWN_AHEAD = 10
"""Requests that are drawn at least for each client, at a station."""
MOST_REQUESTS = 20_000_000
"""Requests that one run may ask for; memory is proportional to them."""
MOST_LOOKS = 100_000_000
"""Times that the counter may look which servers are busy."""
MOST_STEPS = 10_000_000
"""Times that a machine's governor may look."""
MOST_STATES = 5_000_000
"""States of a machine that may be solved: some ten minutes."""
MOST_INTERVALS = 100_000
"""Intervals that an answer may list."""
_PER_INSTRUCTION_S = 5e-10
"""Time of an instruction on machines of which nothing else is known here."""


@several.of_one
def priorities(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Priorities stand with the types of requests."""
    if scenario.station.policy == "priority" and not scenario.load.types:
        yield FieldFault(("station", "policy"), "needs load.types, which say each type's priority", '"priority"')


def scheduling(scenario: QueueScenario) -> Iterator[FieldFault]:
    """A policy of somebody's own is there, takes what policies are given, and compiles."""
    try:
        rules = rules_of(scenario.station.policy)
        if isinstance(rules, OwnPolicy):
            rules.key.compiled()
    except PartError as error:
        yield FieldFault(("station", "policy"), str(error))


@several.of_one
def server_speeds(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Every server has its speed, or every number of busy servers its rate, and not both."""
    station = scenario.station
    for name, given in (("speeds", station.speeds), ("rates", station.rates)):
        if given and len(given) != station.servers:
            problem = f"should have {station.servers} items, one for each of station.servers"
            yield FieldFault(("station", name), problem, str(len(given)))
    if station.speeds and station.rates:
        yield FieldFault(("station", "rates"), "cannot be given beside speeds: a server's speed would be given twice")


@several.of_one
def replays(scenario: QueueScenario) -> Iterator[FieldFault]:
    """A load is replayed on other numbers of servers only if it does not depend on the answers."""
    load, station = scenario.load, scenario.station
    if not scenario.replays:
        return
    if load.sessions is not None or load.clients is not None:
        closed = "sessions" if load.sessions is not None else "clients"
        yield FieldFault(("replays",), f"needs an open load, but load.{closed} wait for their answers")
    for i, _ in repeated(scenario.replays):
        yield FieldFault(("replays", i), "is there twice", str(scenario.replays[i]))
    for i, servers in enumerate(scenario.replays):
        if servers == station.servers:
            yield FieldFault(("replays", i), "is station.servers itself, which table requests holds", str(servers))
        if servers > station.servers and (station.speeds or station.rates):
            problem = f"should be at most station.servers = {station.servers}, whose speeds or rates are given"
            yield FieldFault(("replays", i), problem, str(servers))


@several.of_one
def background(scenario: QueueScenario) -> Iterator[FieldFault]:
    """The work that is in no log leaves something of the fewest servers."""
    station, share = scenario.station, scenario.observation.background_share
    for i, servers in enumerate(scenario.replays):
        if share * capacity(station) >= capacity(of_servers(station, servers)):
            problem = f"should be more, or the background work of {share * capacity(station):g} servers leaves nothing"
            yield FieldFault(("replays", i), problem, str(servers))


@several.of_one
def contention(scenario: QueueScenario) -> Iterator[FieldFault]:
    """What breaks the laws is modelled for alike servers that serve in order of arrival."""
    if not _contended(scenario):
        return
    station = scenario.station
    if station.policy != "fcfs":
        yield FieldFault(("station", "policy"), f"should be fcfs with {_contended(scenario)}", shown(station.policy))
    for name in ("speeds", "rates"):
        if getattr(station, name):
            yield FieldFault(("station", name), f"should be empty with {_contended(scenario)}")


@several.of_one
def limits(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Refusals, patience and changing servers are modelled for alike servers under policies that know no slices."""
    station, cause = scenario.station, _limits(scenario)
    yield from _threads(scenario)
    if not cause:
        return
    if station.policy not in LIMITED:
        yield FieldFault(
            ("station", "policy"), f"should be one of {', '.join(LIMITED)} with {cause}", shown(station.policy)
        )
    elif station.patience_s is not None and station.policy not in PATIENT and station.threads is None:
        problem = f"has no effect under {station.policy}: every request is served from its arrival on"
        yield FieldFault(("station", "patience_s"), problem)
    if station.retries is not None and not station.limited:
        yield FieldFault(("station", "retries"), "has no effect without capacity, patience_s or timeout_s: none fails")
    if station.capacity is not None and station.capacity < most_servers(scenario):
        problem = f"should be null or at least {most_servers(scenario)}, or some servers could never work"
        yield FieldFault(("station", "capacity"), problem, str(station.capacity))
    given = {
        ("station", "speeds"): bool(station.speeds), ("station", "rates"): bool(station.rates),
        ("replays",): bool(scenario.replays),
        ("load", "clients"): scenario.load.clients is not None,
        ("observation", "background_share"): scenario.observation.background_share > 0,
    }  # fmt: skip
    for keys, used in given.items():
        if used:
            yield FieldFault(keys, f"cannot be given beside {cause}")
    if _contended(scenario):
        yield FieldFault(tuple(cause.split(".")), f"cannot be given beside {_contended(scenario)}")


def _threads(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Yield what a pool of threads lacks: servers that are shared, enough threads for them, and a limit."""
    station, way, most = scenario.station, ("station", "threads"), most_servers(scenario)
    if station.threads is None:
        return
    if station.policy != "ps":
        yield FieldFault(way, f"needs policy ps, here it is {station.policy}", str(station.threads))
    elif station.threads < most:
        yield FieldFault(way, f"should be at least {most}, or some servers could never work", str(station.threads))
    elif not is_limited(scenario):
        problem = "needs capacity, patience_s, timeout_s or scaling; a pool alone is an item of stations"
        yield FieldFault(way, problem, str(station.threads))
    if station.capacity is not None and station.threads >= station.capacity:
        problem = f"should be less than station.capacity = {station.capacity}, or nobody ever waits for a thread"
        yield FieldFault(way, problem, str(station.threads))


@several.of_one
def scaling(scenario: QueueScenario) -> Iterator[FieldFault]:
    """The number of servers follows one schedule or one rule, which can be followed."""
    given, servers = scenario.scaling, scenario.station.servers
    if given is None:
        return
    rule = given.autoscaler
    if (rule is None) == (not given.schedule):
        yield FieldFault(("scaling",), "should have either a schedule or an autoscaler")
    for i, (before, step) in enumerate(pairwise(given.schedule), 1):
        if step.time_s <= before.time_s:
            problem = f"should be greater than {before.time_s:g}, the time of the step before"
            yield FieldFault(("scaling", "schedule", i, "time_s"), problem, f"{step.time_s:g}")
    for i, step in enumerate(given.schedule):
        if step.time_s >= scenario.horizon_s:
            problem = f"should be less than horizon_s = {scenario.horizon_s:g}"
            yield FieldFault(("scaling", "schedule", i, "time_s"), problem, f"{step.time_s:g}")
    if scenario.analyses.occupancy.to:
        problem = "cannot be given beside scaling: the laws are about servers whose number stays"
        yield FieldFault(("analyses", "occupancy", "to"), problem)
    if rule is None:
        return
    way = ("scaling", "autoscaler")
    if rule.least > rule.most:
        yield FieldFault((*way, "most"), f"should be at least {rule.least}, the least", str(rule.most))
    elif not rule.least <= servers <= rule.most:
        problem = f"should be from {rule.least} to {rule.most}, the least and the most of scaling.autoscaler"
        yield FieldFault(("station", "servers"), problem, str(servers))
    if rule.rule == "utilisation" and rule.target > 1.0:
        yield FieldFault((*way, "target"), "should be at most 1, a utilisation", f"{rule.target:g}")


def looks(scenario: QueueScenario) -> Iterator[FieldFault]:
    """An autoscaler looks within the horizon, and not more often than can be counted or remembered."""
    rule = None if scenario.scaling is None else scenario.scaling.autoscaler
    if rule is None:
        return
    way = ("scaling", "autoscaler")
    if rule.look_s >= scenario.horizon_s:
        problem = f"should be less than horizon_s = {scenario.horizon_s:g}, or nothing is ever changed"
        yield FieldFault((*way, "look_s"), problem, f"{rule.look_s:g}")
    elif scenario.horizon_s / rule.look_s > MOST_STEPS:
        problem = f"should be at least {scenario.horizon_s / MOST_STEPS:.6g}, {MOST_STEPS} looks in horizon_s"
        yield FieldFault((*way, "look_s"), problem, f"{rule.look_s:g}")
    elif rule.hold_s / rule.look_s * rule.most > MOST_LOOKS:
        problem = f"should be at most {MOST_LOOKS / rule.most * rule.look_s:.6g}, or too much would be remembered"
        yield FieldFault((*way, "hold_s"), problem, f"{rule.hold_s:g}")


def _limits(scenario: QueueScenario) -> str:
    """Return what limits a station or changes its servers, the first of it; empty if nothing does."""
    if not is_limited(scenario):
        return ""
    station = scenario.station
    ways = {
        "capacity": station.capacity,
        "patience_s": station.patience_s,
        "timeout_s": station.timeout_s,
        "retries": station.retries,
    }
    return next((f"station.{name}" for name, used in ways.items() if used), "scaling")


def size(scenario: QueueScenario) -> Iterator[FieldFault]:
    """No more requests are asked for than can be kept in memory."""
    observation = scenario.observation
    if not sound(scenario):
        return
    background = observation.background_share * scenario.station.servers / observation.background_s
    (key, first_tries), tries = rate(scenario), attempts(scenario.station)
    first_tries *= max(len(scenario.stations), 1)
    for way, per_s in ((key, tries * first_tries), (("observation", "background_s"), background)):
        if per_s * scenario.horizon_s > MOST_REQUESTS:
            problem = f"should make at most {MOST_REQUESTS} requests in horizon_s = {scenario.horizon_s:g}"
            problem += f", of {tries} attempts each" if tries > 1 else ""
            yield FieldFault(way, problem, f"up to {per_s * scenario.horizon_s:.3g}")
            return
    drawn = _DRAWN_AHEAD * max(len(scenario.stations), 1)
    if scenario.load.clients is not None and scenario.load.clients.count * drawn > MOST_REQUESTS:
        problem = f"should be at most {MOST_REQUESTS // drawn}, as {drawn} demands are drawn ahead for each client"
        yield FieldFault(("load", "clients", "count"), problem, str(scenario.load.clients.count))


@several.of_one
def slices(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Round robin, as it happens or is replayed, takes no more time slices than can be waited for."""
    station, analysed = scenario.station, scenario.analyses.occupancy.policy
    sliced = {name for name, policy in POLICIES.items() if policy.sliced}
    if sliced.isdisjoint((station.policy, analysed)) or not sound(scenario) or any(size(scenario)):
        return
    slowest = min((1.0, *station.speeds, *(rate / busy for busy, rate in enumerate(station.rates, 1))))
    work_s = _work_s(scenario) / slowest
    if work_s / station.quantum_s > MOST_SLICES:
        problem = (
            f"should be at least {1.001 * work_s / MOST_SLICES:.4g}, or {work_s:.3g} s of service are too many slices"
        )
        yield FieldFault(("station", "quantum_s"), problem, f"{station.quantum_s:g}")


def listener(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Arrivals can be stamped late only where somebody takes them late."""
    if scenario.observation.accept_at_application and not scenario.observation.workers:
        problem = "needs workers, at least 1: without them every request is taken as it comes"
        yield FieldFault(("observation", "accept_at_application"), problem, "true")


def counter(scenario: QueueScenario) -> Iterator[FieldFault]:
    """The counter looks at least once an interval, and not more often than can be counted."""
    observation = scenario.observation
    if observation.counter_tick_s > observation.counter_interval_s:
        problem = f"should be at most counter_interval_s = {observation.counter_interval_s:g}"
        yield FieldFault(("observation", "counter_tick_s"), problem, f"{observation.counter_tick_s:g}")
    elif scenario.horizon_s / observation.counter_tick_s > MOST_LOOKS:
        problem = f"should be at least {scenario.horizon_s / MOST_LOOKS:.6g}, {MOST_LOOKS} looks in horizon_s"
        yield FieldFault(("observation", "counter_tick_s"), problem, f"{observation.counter_tick_s:g}")


def intervals(scenario: QueueScenario) -> Iterator[FieldFault]:
    """There are not more intervals than anybody can look at."""
    interval_s = scenario.analyses.occupancy.interval_s
    if scenario.horizon_s / interval_s > MOST_INTERVALS:
        problem = f"should be at least {scenario.horizon_s / MOST_INTERVALS:.6g}, {MOST_INTERVALS} intervals"
        yield FieldFault(("analyses", "occupancy", "interval_s"), problem, f"{interval_s:g}")


def capacities(scenario: QueueScenario) -> Iterator[FieldFault]:
    """Other numbers of servers are asked for once each."""
    for i, servers in repeated(scenario.analyses.occupancy.to):
        yield FieldFault(("analyses", "occupancy", "to", i), "is there twice", str(servers))


@several.of_one
def machine(scenario: QueueScenario) -> Iterator[FieldFault]:
    """A machine alone decides how fast servers are; they and their neighbours fit into it, and it can be simulated."""
    given, station = scenario.machine, scenario.station
    if given is None:
        if scenario.platforms:
            yield FieldFault(("platforms",), "has no effect without machine, whose platform may be one of them")
        return
    if _contended(scenario):
        yield FieldFault(("machine",), f"cannot be given beside {_contended(scenario)}")
    for name in ("speeds", "rates"):
        if getattr(station, name):
            yield FieldFault(("station", name), "cannot be given beside machine, which decides how fast servers are")
    if scenario.load.job is not None:
        yield FieldFault(("load", "job"), "cannot be given beside machine: both decide how long requests take")
    yield from _sharing(given)
    if given.platform in scenario.sheets:
        yield from _room(scenario, scenario.sheets[given.platform].vcpus)
    yield from _looks(scenario, given)
    yield from _states(scenario, given)


def platform(scenario: QueueScenario) -> Iterator[FieldFault]:
    """The machine's platform is a shipped one or one of the scenario's own."""
    if scenario.machine is not None and scenario.machine.platform not in scenario.sheets:
        known = f"unknown platform; known: {', '.join(sorted(scenario.sheets))}"
        yield FieldFault(("machine", "platform"), known, shown(scenario.machine.platform))


def _sharing(given: ServingMachine) -> Iterator[FieldFault]:
    """Yield what is said of the sharing of caches and memory and would do nothing."""
    way, interference = ("machine", "interference"), given.interference
    for key in ("tolerance", "max_iterations"):
        if getattr(interference, key) != getattr(Interference(), key):
            problem = "is for fleets; every state of this machine is solved closely: leave it out"
            yield FieldFault((*way, key), problem, f"{getattr(interference, key):g}")
    for key in ("best_effort_ways", "best_effort_delay"):
        if given.neighbours is None and getattr(interference, key) != 1.0:
            problem = "is about best-effort neighbours, and machine.neighbours is null"
            yield FieldFault((*way, key), problem, f"{getattr(interference, key):g}")
    yield from switched_off(interference, way)


def _room(scenario: QueueScenario, threads: int) -> Iterator[FieldFault]:
    """Yield what does not fit the machine's hardware threads."""
    given, on = scenario.machine, shown(scenario.machine.platform if scenario.machine else "")
    counts: dict[Keys, int] = {("station", "servers"): scenario.station.servers}
    counts |= {("replays", i): servers for i, servers in enumerate(scenario.replays)}
    if scenario.scaling is not None:
        counts |= {
            ("scaling", "schedule", i, "servers"): step.servers for i, step in enumerate(scenario.scaling.schedule)
        }
        if scenario.scaling.autoscaler is not None:
            counts["scaling", "autoscaler", "most"] = scenario.scaling.autoscaler.most
    for keys, servers in counts.items():
        if servers > threads:
            yield FieldFault(keys, f"should be at most the {threads} hardware threads of {on}", str(servers))
    most = max(counts.values())
    if given is None or given.neighbours is None or most > threads:
        return
    if given.neighbours.allocated_share * threads < most:
        problem = f"should be at least {most / threads:.4g}, or {most} of {threads} hardware threads leave no room"
        yield FieldFault(("machine", "neighbours", "allocated_share"), problem, f"{given.neighbours.allocated_share:g}")


def _looks(scenario: QueueScenario, given: ServingMachine) -> Iterator[FieldFault]:
    """Yield what is said of a governor's looks that nobody takes, or that are too many."""
    way, governor_s = ("machine", "steps", "governor_s"), given.steps.governor_s
    if given.governor.policy == "performance":
        if governor_s != Steps().governor_s:
            problem = "has no effect with machine.governor.policy: performance, which wishes the same at every look"
            yield FieldFault(way, problem, f"{governor_s:g}")
    elif scenario.horizon_s / governor_s > MOST_STEPS:
        problem = f"should be at least {scenario.horizon_s / MOST_STEPS:.6g}, {MOST_STEPS} looks in horizon_s"
        yield FieldFault(way, problem, f"{governor_s:g}")


def _states(scenario: QueueScenario, given: ServingMachine) -> Iterator[FieldFault]:
    """Yield what would take more states of the machine than can be solved."""
    steps, most = given.steps, max((most_servers(scenario), *scenario.replays)) + 1
    if given.neighbours is None and steps != Steps(governor_s=steps.governor_s):
        yield FieldFault(("machine", "steps"), "moves the load of neighbours, and machine.neighbours is null")
    states = most if given.governor.policy == "performance" else most**2
    moving = given.neighbours is not None and steps.load_log_sd > 0
    if moving and scenario.horizon_s / steps.load_s * states > MOST_STATES:
        least = f"{scenario.horizon_s * states / MOST_STATES:.6g}"
        problem = f"should be at least {least}, {MOST_STATES} states of the machine in horizon_s"
        yield FieldFault(("machine", "steps", "load_s"), problem, f"{steps.load_s:g}")


def own_physics(scenario: QueueScenario) -> Iterator[FieldFault]:
    """A governor or mechanism of somebody's own is there, takes what it is given, and compiles."""
    given = scenario.machine
    if given is None:
        return
    world = World(power=Power(given.governor), interference=given.interference)
    for way in WAYS:
        try:
            if function := own_function(world, way):
                function.compiled()
        except PartError as error:
            yield FieldFault(("machine", *way[way.index("governor") if "governor" in way else 0 :]), str(error))


CHECKS: Mapping[Check[QueueScenario], tuple[str, ...]] = {
    distributions: (),
    sources: ("load",),
    demands: ("load", "stations"),
    load_points: ("load.arrivals",),
    type_names: ("load.types",),
    priorities: ("load.types", "station.policy"),
    scheduling: ("station.policy",),
    server_speeds: ("station",),
    replays: ("load", "station", "replays"),
    background: ("station", "replays", "observation.background_share"),
    listener: ("observation",),
    contention: ("station", "contention", "observation"),
    limits: ("load", "station", "scaling", "replays", "machine", "contention", "observation"),
    scaling: (
        "station.servers",
        "scaling.schedule",
        *(f"scaling.autoscaler.{name}" for name in ("rule", "least", "most")),
        "scaling.autoscaler.target",
        "horizon_s",
        "analyses.occupancy.to",
    ),
    looks: ("scaling.autoscaler", "horizon_s"),
    closed_cycle: ("load", "stations", "observation"),
    several.beside: (
        "load",
        "station",
        "stations",
        "scaling",
        "contention",
        "observation",
        "replays",
        "machine",
        "analyses.occupancy",
    ),
    several.order: ("stations",),
    several.slices: ("load", "stations", "horizon_s"),
    size: ("load", "stations", "horizon_s", "station.servers", "observation"),
    counter: ("observation", "horizon_s"),
    intervals: ("analyses.occupancy.interval_s", "horizon_s"),
    capacities: ("analyses.occupancy.to",),
    slices: ("load", "horizon_s", "station", "analyses.occupancy.policy"),
    trace: ("load.trace", "horizon_s"),
    job: ("load.job", "horizon_s"),
    platform: ("machine", EVERY_SHEET),
    machine: (
        *("load.job", "station", "scaling", "replays", "contention", "observation", "horizon_s", "machine"),
        EVERY_SHEET,
    ),
    own_physics: ("machine",),
}
"""Every check with the fields that it needs."""


def _work_s(scenario: QueueScenario) -> float:
    """Return the service that may be demanded on servers of speed 1, seconds: to within the machine's pace of a job."""
    load = scenario.load
    if load.trace is not None:
        try:
            table = read_trace(Path(load.trace.file))
        except (FileError, OSError):  # `trace` tells
            return 0.0
        return float(table.loc[table["arrival_s"] < scenario.horizon_s, "demand_s"].sum())
    mean_s = sum(kind.weight * mean(kind.demand_s) for kind in load.types) / (
        sum(kind.weight for kind in load.types) or 1
    )
    if load.job is not None:
        mean_s = mean(load.job.instructions) * _PER_INSTRUCTION_S
    return rate(scenario)[1] * scenario.horizon_s * mean_s


def _contended(scenario: QueueScenario) -> str:
    """Return the dotted path of the first thing that breaks the laws; empty if nothing does."""
    contention, observation, nothing = scenario.contention, scenario.observation, Contention()
    for name in ("blocking_s", "lock_share", "concurrency_limit", "parallelism"):
        if getattr(contention, name) != getattr(nothing, name):
            return f"contention.{name}"
    return "observation.workers" if observation.workers else ""
