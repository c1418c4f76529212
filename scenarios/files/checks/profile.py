"""What fields of a profile scenario must satisfy together, beyond what every fleet must."""

import bisect
import difflib
import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from models.arrays import DAY_S
from models.fleet.inventory import drawn_names
from models.profiling.world import Compiler, Incident, Kernel, Watch
from scenarios.files.checks import served as served_checks
from scenarios.files.checks.fleet import WORLD_CHECKS, multiple
from scenarios.files.faults import shown
from scenarios.files.findings import Check, FieldFault, repeated
from scenarios.files.own_platforms import shallow
from scenarios.files.schema import ProfileScenario
from scenarios.files.tree import Keys

MOST_VISITS = 2_000_000
"""Visits that all collections together may make."""
LEAST_RATE, MOST_RATE = 1e-3, 1e5
"""Samples a second of an event that may be asked of a busy machine."""
FLEET = "fleet"
"""Name of the collection that looks at all machines."""
MOST_SHARED = 0.95
"""Share of a program's instructions that libraries and the kernel may take in the mean; the rest is its own."""
_ROUNDING = 1e-9
_MOST_NAMES = 3
_COLLECTOR = ("profiling", "collector")


def days(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """The horizon is whole days, and an epoch divides a day."""
    if not multiple(scenario.horizon_s, DAY_S) or scenario.horizon_s < DAY_S:
        yield FieldFault(("horizon_s",), f"should be a multiple of a day, {DAY_S:.12g}", f"{scenario.horizon_s:.12g}")
    elif multiple(scenario.horizon_s, scenario.epoch_s) and not multiple(DAY_S, scenario.epoch_s):
        yield FieldFault(("epoch_s",), f"should divide a day, {DAY_S:.12g}", f"{scenario.epoch_s:.12g}")


def recording(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """The days are the counting windows, and there is no loop that rolls a feature out."""
    windows = scenario.recording.windows
    if windows:
        names = ", ".join(shown(window.name) for window in windows)
        problem = "should be left out: the days of the horizon are the counting windows of a profiled fleet"
        yield FieldFault(("recording", "windows"), problem, names)
    if scenario.recording.loop is not None:
        yield FieldFault(("recording", "loop"), "should be null: a profiled fleet has no loop that rolls a feature out")


def software(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """New code comes as releases of programs, not as a feature, and a feature stays."""
    if scenario.feature is not None and scenario.feature.software:
        problem = "should be left out: new code of a profiled fleet comes with profiling.releases"
        yield FieldFault(("feature", "software"), problem, f"{len(scenario.feature.software)} entries")
    if scenario.feature is not None and scenario.feature.rollout.crossover is not None:
        problem = "should be null: the machines of a profiled fleet keep their feature"
        yield FieldFault(("feature", "rollout", "crossover"), problem)


def cache_levels(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Own platforms that are profiled have two levels of caches at least."""
    yield from shallow(scenario.platforms, "platforms", _platforms(scenario))


def datacentres(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Shares of data centres sum to 1, and each has a power domain."""
    keys, shares = ("profiling", "datacentres"), scenario.profiling.datacentres
    total = sum(shares.values())
    if abs(total - 1) > _ROUNDING:
        yield FieldFault(keys, "the shares should sum to 1", f"{total:.6g}")
    racks = math.ceil(scenario.fleet.machines / scenario.fleet.machines_per_rack)
    domains = math.ceil(racks / scenario.fleet.racks_per_power_domain)
    upper = list(itertools.accumulate(shares.values()))
    filled = {bisect.bisect_right(upper, (domain + 0.5) / domains * upper[-1]) for domain in range(domains)}
    without = [name for i, name in enumerate(shares) if i not in filled]
    if without:
        problem = f"should leave no data centre without a power domain; the fleet has {domains}"
        yield FieldFault(keys, problem, ", ".join(map(shown, without)))


def programs(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Libraries have names of their own and leave something to the programs."""
    programs, keys = scenario.profiling.programs, ("profiling", "programs")
    for i, name in repeated([library.name for library in programs.libraries]):
        yield FieldFault((*keys, "libraries", i, "name"), "another library has this name", shown(name))
    linked = sum(library.instruction_share * library.linked_share for library in programs.libraries)
    taken = linked + programs.kernel_share
    if taken > MOST_SHARED:
        problem = f"should leave programs {1 - MOST_SHARED:.0%} of their instructions, beside kernel_share"
        yield FieldFault((*keys, "libraries"), problem, f"{1 - taken:.1%} left")


def compiler(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """A compiler's roll-out begins inside the horizon, ends after that and is of another compiler."""
    rollout, keys = scenario.profiling.compiler, ("profiling", "compiler")
    if rollout is None:
        return
    if rollout.new == rollout.old:
        yield FieldFault((*keys, "new"), "should differ from old", shown(rollout.new))
    if rollout.start_s >= scenario.horizon_s:
        yield _too_late((*keys, "start_s"), rollout.start_s, scenario)
    if rollout.until_s <= rollout.start_s:
        yield FieldFault(
            (*keys, "until_s"), f"should be after start_s = {rollout.start_s:.12g}", f"{rollout.until_s:.12g}"
        )


def kernel(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """A kernel's roll-out has its last wave inside the horizon and is of another kernel."""
    rollout, keys = scenario.profiling.kernel, ("profiling", "kernel")
    if rollout is None:
        return
    if rollout.new == rollout.old:
        yield FieldFault((*keys, "new"), "should differ from old", shown(rollout.new))
    last_s = rollout.start_s + (rollout.waves - 1) * rollout.interval_s
    if last_s >= scenario.horizon_s:
        problem = f"the last wave should begin before horizon_s = {scenario.horizon_s:.12g}"
        yield FieldFault((*keys, "start_s"), problem, f"{last_s:.12g}")


def midnights(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Waves of hardware and of the kernel come at midnight: what is counted in a day is of one kind."""
    plans: list[tuple[Keys, float, float, int]] = []
    if scenario.feature is not None:
        of = scenario.feature.rollout
        plans.append((("feature", "rollout"), of.start_s, of.interval_s, of.waves))
    if scenario.profiling.kernel is not None:
        kernel = scenario.profiling.kernel
        plans.append((("profiling", "kernel"), kernel.start_s, kernel.interval_s, kernel.waves))
    for keys, start_s, interval_s, waves in plans:
        times = {"start_s": start_s} | ({"interval_s": interval_s} if waves > 1 else {})
        for key, time_s in times.items():
            if not multiple(time_s, DAY_S):
                yield FieldFault((*keys, key), f"should be a multiple of a day, {DAY_S:.12g}", f"{time_s:.12g}")


def rounds(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """A round is whole epochs, and whole rounds make a day."""
    round_s = scenario.profiling.collector.round_s
    if not multiple(round_s, scenario.epoch_s) or not multiple(DAY_S, round_s):
        problem = f"should be a multiple of epoch_s = {scenario.epoch_s:.12g} that divides a day, {DAY_S:.12g}"
        yield FieldFault((*_COLLECTOR, "round_s"), problem, f"{round_s:.12g}")


def events(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Every event is counted once, cycles are among them, and a visit has time for all."""
    collector = scenario.profiling.collector
    for i, name in repeated(collector.events):
        yield FieldFault((*_COLLECTOR, "events", i), "is there twice", shown(name))
    if "cycles" not in collector.events:
        yield FieldFault((*_COLLECTOR, "events"), "should hold cycles", ", ".join(collector.events))
    needed_s = len(collector.events) * collector.seconds_per_event
    if needed_s > scenario.epoch_s * (1 + _ROUNDING):
        problem = f"should be at most {scenario.epoch_s / len(collector.events):g}: a visit is an epoch long, "
        problem += f"and {len(collector.events)} events follow one another"
        yield FieldFault((*_COLLECTOR, "seconds_per_event"), problem, f"{collector.seconds_per_event:.12g}")


def outages(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """An outage begins inside the horizon."""
    for i, time_s in enumerate(scenario.profiling.collector.outage_s):
        if not 0 <= time_s < scenario.horizon_s:
            problem = f"should be from 0 up to horizon_s = {scenario.horizon_s:.12g}"
            yield FieldFault((*_COLLECTOR, "outage_s", i), problem, f"{time_s:.12g}")


def visits(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """No more visits are asked for than can be kept."""
    collector = scenario.profiling.collector
    count = scenario.horizon_s / collector.round_s * scenario.fleet.machines / collector.one_in
    if count > MOST_VISITS:
        least = math.ceil(count * collector.one_in / MOST_VISITS)
        problem = f"should be at least {least}, {MOST_VISITS} visits within horizon_s"
        yield FieldFault((*_COLLECTOR, "one_in"), problem, str(collector.one_in))


def rates(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Rates are such that a period is a number of events, and a visit's samples can be kept."""
    collector = scenario.profiling.collector
    wanted: list[tuple[Keys, float | None]] = [
        ((*_COLLECTOR, "samples_per_s"), collector.samples_per_s),
        ((*_COLLECTOR, "stacks_per_s"), collector.stacks_per_s or None),
        *(
            ((*_COLLECTOR, "watches", i, "samples_per_s"), watch.samples_per_s)
            for i, watch in enumerate(collector.watches)
        ),
    ]
    for keys, rate in wanted:
        if rate is not None and not LEAST_RATE <= rate <= MOST_RATE:
            zero = "0, or " if keys[-1] == "stacks_per_s" else ""
            problem = f"should be {zero}from {LEAST_RATE:g} to {MOST_RATE:,.0f} samples a second of a machine"
            yield FieldFault(keys, problem, f"{rate:.12g}")


def watches(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Application-specific profiles have names of their own and machines that there are, at a time that there is."""
    watched = scenario.profiling.collector.watches
    for i, name in repeated([FLEET, *(watch.name for watch in watched)]):
        problem = "is the name of the whole fleet's profile" if name == FLEET else "another watch has this name"
        yield FieldFault((*_COLLECTOR, "watches", i - 1, "name"), problem, shown(name))
    known = _known(scenario)
    for i, watch in enumerate(watched):
        keys = (*_COLLECTOR, "watches", i)
        yield from _tags(watch, ("job", "platform", "kernel"), known, keys)
        if watch.start_s >= scenario.horizon_s:
            yield _too_late((*keys, "start_s"), watch.start_s, scenario)
        if watch.end_s <= watch.start_s:
            yield FieldFault((*keys, "end_s"), f"should be after start_s = {watch.start_s:.12g}", f"{watch.end_s:.12g}")


def incidents(scenario: ProfileScenario) -> Iterator[FieldFault]:
    """Planted regressions have tags that there are and begin at a midnight of the horizon."""
    known = _known(scenario)
    for i, incident in enumerate(scenario.profiling.incidents):
        keys = ("profiling", "incidents", i)
        yield from _tags(incident, ("application", "compiler", "platform", "datacentre"), known, keys)
        if not multiple(incident.from_s, DAY_S):
            yield FieldFault(
                (*keys, "from_s"), f"should be a multiple of a day, {DAY_S:.12g}", f"{incident.from_s:.12g}"
            )
        if incident.from_s >= scenario.horizon_s:
            yield _too_late((*keys, "from_s"), incident.from_s, scenario)


CHECKS: Mapping[Check[Any], tuple[str, ...]] = {
    **WORLD_CHECKS,
    **served_checks.CHECKS,
    days: ("horizon_s", "epoch_s"),
    recording: ("recording.windows", "recording.loop"),
    software: ("feature",),
    cache_levels: ("platforms", "fleet.platforms", "feature.platforms", "trial"),
    datacentres: ("profiling.datacentres", "fleet"),
    programs: ("profiling.programs",),
    compiler: ("profiling.compiler", "horizon_s"),
    kernel: ("profiling.kernel", "horizon_s"),
    midnights: ("feature.rollout", "profiling.kernel"),
    rounds: ("profiling.collector.round_s", "epoch_s"),
    events: ("profiling.collector.events", "profiling.collector.seconds_per_event", "epoch_s"),
    outages: ("profiling.collector.outage_s", "horizon_s"),
    visits: ("profiling.collector.one_in", "profiling.collector.round_s", "fleet.machines", "horizon_s"),
    rates: (
        "profiling.collector.samples_per_s",
        "profiling.collector.stacks_per_s",
        "profiling.collector.watches",
    ),
    watches: ("profiling", "population", "fleet.platforms", "feature.platforms", "horizon_s"),
    incidents: ("profiling", "population", "fleet.platforms", "feature.platforms", "horizon_s"),
}
"""Every check with the fields that it needs."""


def _known(scenario: ProfileScenario) -> Mapping[str, Sequence[str]]:
    """Return the values that there are of each tag."""
    jobs = [
        *(service.name for service in scenario.population.services),
        *drawn_names(scenario.population, scenario.seed),
    ]
    compiler, kernel = scenario.profiling.compiler, scenario.profiling.kernel
    return {
        "job": jobs,
        "application": jobs,
        "platform": sorted(_platforms(scenario)),
        "compiler": [Compiler().old] if compiler is None else [compiler.old, compiler.new],
        "kernel": [Kernel().old] if kernel is None else [kernel.old, kernel.new],
        "datacentre": list(scenario.profiling.datacentres),
    }


def _platforms(scenario: ProfileScenario) -> set[str]:
    """Return the platforms of the fleet, those that replace them and those on trial."""
    replacing = scenario.feature.platforms.values() if scenario.feature is not None else ()
    tried = scenario.trial.platforms.values() if scenario.trial is not None else ()
    return {*scenario.fleet.platforms, *replacing, *tried}


def _tags(
    owner: Watch | Incident, fields: Collection[str], known: Mapping[str, Sequence[str]], keys: Keys
) -> Iterator[FieldFault]:
    """Yield a finding for every tag that is said and that nothing in the fleet has."""
    for name in fields:
        value = getattr(owner, name)
        if value and value not in known[name]:
            what = "data centre" if name == "datacentre" else name
            yield FieldFault((*keys, name), f"there is no such {what} ({_hint(value, known[name])})", shown(value))


def _hint(text: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(text, known, 3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there are {', '.join(known[:_MOST_NAMES]) or 'none'}{', …' * (len(known) > _MOST_NAMES)}"


def _too_late(keys: Keys, time_s: float, scenario: ProfileScenario) -> FieldFault:
    return FieldFault(keys, f"should be before horizon_s = {scenario.horizon_s:.12g}", f"{time_s:.12g}")
