"""What fields of a fleet scenario must satisfy together."""

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from models.arrays import DAY_S
from models.code.parts import PartError, called, check_method, check_parameters, is_part, name_problems, part
from models.fleet.inventory import drawn_names, places
from models.fleet.world import Feature, Interference, Population, Steps, World
from models.platforms import Platform
from scenarios.files.faults import shown
from scenarios.files.findings import Check, FieldFault, repeated
from scenarios.files.loader import absent, locate
from scenarios.files.schema import Scenario, WSMeter
from scenarios.files.tree import Keys
from sim.fleet.own_physics import WAYS, own_function

_ROUNDING = 1e-9
_MOST_NAMES = 20
_MOST_EPOCHS = 100_000
_MOST_STEPS, _MOST_LOOKS = 1_000_000, 100_000_000
_MOST_MACHINE_EPOCHS = 2_000_000_000
_MOST_INCIDENTS = 20_000_000
_SERVICE_MEMORY_BYTES_PER_VCPU = 2.5e9
_OF_SWITCHES = (
    ("best_effort_ways", "llc", "every instance has the part of its quota"),
    ("sibling_relief", "smt", "every thread has a core of its own"),
    ("remote_share", "sockets", "all memory of a machine is pooled"),
)
"""Settings of a mechanism, its switch, and what is true without it."""
EVERY_SHEET = "platforms.*"
"""Faulty if nobody knows which platforms of their own there are; a fault within a sheet is none of it."""


def platform_shares(scenario: World) -> Iterator[FieldFault]:
    """Shares of platforms sum to 1."""
    total = sum(scenario.fleet.platforms.values())
    if abs(total - 1) > _ROUNDING:
        yield FieldFault(("fleet", "platforms"), "the shares should sum to 1", f"{total:.6g}")


def platform_names(scenario: World) -> Iterator[FieldFault]:
    """Every platform is known, the replacing ones too."""
    sheets = scenario.sheets
    known = f"unknown platform; known: {', '.join(sorted(sheets))}"
    for name in scenario.fleet.platforms:
        if name not in sheets:
            yield FieldFault(("fleet", "platforms", name), known, shown(name))
    for old, new in _replacements(scenario.feature):
        if new not in sheets:
            yield FieldFault(("feature", "platforms", old), known, shown(new))


def replaced_platforms(scenario: World) -> Iterator[FieldFault]:
    """A feature replaces platforms of the fleet, with at least as many hardware threads: placement does not change."""
    sheets = scenario.sheets
    for old, new in _replacements(scenario.feature):
        keys = ("feature", "platforms", old)
        if old not in scenario.fleet.platforms:
            yield FieldFault(keys, f"the fleet has no such platform; it has {', '.join(scenario.fleet.platforms)}")
        elif old in sheets and new in sheets and sheets[old].vcpus > sheets[new].vcpus:
            needed, has = sheets[old].vcpus, sheets[new].vcpus
            yield FieldFault(
                keys, f"should have at least the {needed} hardware threads of {old}", f"{shown(new)} with {has}"
            )


def epochs(scenario: World) -> Iterator[FieldFault]:
    """The epoch divides the horizon, into no more epochs than can be simulated and recorded."""
    count = scenario.horizon_s / scenario.epoch_s
    if count > _MOST_EPOCHS:
        least = f"{scenario.horizon_s / _MOST_EPOCHS:.6g}"
        problem = f"should be at least {least}, {_MOST_EPOCHS} epochs in horizon_s = {scenario.horizon_s:g}"
        yield FieldFault(("epoch_s",), problem, f"{scenario.epoch_s:g}")
    elif not multiple(scenario.horizon_s, scenario.epoch_s):
        yield FieldFault(("epoch_s",), f"should divide horizon_s = {scenario.horizon_s:g}", f"{scenario.epoch_s:g}")


def steps(scenario: World) -> Iterator[FieldFault]:
    """Steps within epochs are for the event-driven machine, and not more than can be simulated."""
    if scenario.simulation == "epochs" and scenario.steps != Steps():
        yield FieldFault(("steps",), "has no effect with simulation: epochs; give simulation: events")
    for key, most, time_s in (
        ("load_s", _MOST_STEPS, scenario.steps.load_s),
        ("governor_s", _MOST_LOOKS, scenario.steps.governor_s),
    ):
        if scenario.horizon_s / time_s > most:
            problem = (
                f"should be at least {scenario.horizon_s / most:.6g}, {most} in horizon_s = {scenario.horizon_s:g}"
            )
            yield FieldFault(("steps", key), problem, f"{time_s:g}")


def incidents(scenario: World) -> Iterator[FieldFault]:
    """Incidents last an epoch at least, and there are not more than can be kept."""
    given, days = scenario.incidents, scenario.horizon_s / DAY_S
    rates = {
        "memory_per_machine_day": given.memory_per_machine_day,
        "clock_per_machine_day": given.clock_per_machine_day,
    }
    if any(rates.values()) and given.duration_s < scenario.epoch_s:
        problem = f"should be at least epoch_s = {scenario.epoch_s:g}"
        yield FieldFault(("incidents", "duration_s"), problem, f"{given.duration_s:g}")
    per_machine = days + given.duration_s / DAY_S
    limits = [(key, rate, per_machine * scenario.fleet.machines, "machines") for key, rate in rates.items()]
    limits.append(("shifts_per_job_day", given.shifts_per_job_day, days * scenario.population.jobs, "jobs"))
    for key, rate, unit_days, units in limits:
        if rate * unit_days > _MOST_INCIDENTS:
            problem = f"should be at most {_MOST_INCIDENTS / unit_days:.3g}, {_MOST_INCIDENTS} on all {units}"
            yield FieldFault(("incidents", key), problem, f"{rate:g}")


def machine_epochs(scenario: World) -> Iterator[FieldFault]:
    """Every machine's every epoch is recorded only if the table can be kept."""
    rows = scenario.fleet.machines * scenario.horizon_s / scenario.epoch_s
    if scenario.recording.machine_epochs and rows > _MOST_MACHINE_EPOCHS:
        problem = f"should be false beyond {_MOST_MACHINE_EPOCHS} rows (machines times epochs)"
        yield FieldFault(("recording", "machine_epochs"), problem, f"true with {rows:.6g} rows")


def window_names(scenario: World) -> Iterator[FieldFault]:
    """Windows have different names."""
    names = [window.name for window in scenario.recording.windows]
    for i, name in repeated(names):
        yield FieldFault(("recording", "windows", i, "name"), "another window has this name", shown(name))


def window_bounds(scenario: World) -> Iterator[FieldFault]:
    """Windows lie inside the horizon, are not empty and begin and end with an epoch."""
    for i, window in enumerate(scenario.recording.windows):
        for key, value in (("start_s", window.start_s), ("end_s", window.end_s)):
            if not multiple(value, scenario.epoch_s):
                problem = f"should be a multiple of epoch_s = {scenario.epoch_s:g}"
                yield FieldFault(("recording", "windows", i, key), problem, f"{value:g}")
        if window.end_s > scenario.horizon_s:
            problem = f"should be at most horizon_s = {scenario.horizon_s:g}"
            yield FieldFault(("recording", "windows", i, "end_s"), problem, f"{window.end_s:g}")
        if window.end_s <= window.start_s:
            problem = f"should be after start_s = {window.start_s:g}"
            yield FieldFault(("recording", "windows", i, "end_s"), problem, f"{window.end_s:g}")
        for other in scenario.recording.windows[:i]:
            if other.start_s < window.end_s and window.start_s < other.end_s:
                problem = f"overlaps window {other.name}, {other.start_s:g} to {other.end_s:g}; a count has one window"
                yield FieldFault(("recording", "windows", i, "start_s"), problem, f"{window.start_s:g}")


def job_counts(scenario: World) -> Iterator[FieldFault]:
    """There is a job, heavyweights are common jobs, and common jobs are jobs."""
    population = scenario.population
    if population.jobs == 0 and not population.services:
        yield FieldFault(("population", "jobs"), "should be at least 1 unless there are services", "0")
    if population.common_jobs > population.jobs:
        problem = f"should be at most jobs = {population.jobs}"
        yield FieldFault(("population", "common_jobs"), problem, str(population.common_jobs))
    if population.heavyweights > population.common_jobs:
        problem = f"should be at most common_jobs = {population.common_jobs}"
        yield FieldFault(("population", "heavyweights"), problem, str(population.heavyweights))


def preset_decides(scenario: World) -> Iterator[FieldFault]:
    """A preset spreads the quota: the keys that would spread it otherwise are at their defaults."""
    preset, stated = scenario.population.preset, scenario.population.stated_classes
    for name, value, default in zip(stated._fields, stated, Population().stated_classes, strict=True):
        if preset and value != default:
            yield FieldFault(
                ("population", name), f"is decided by population.preset = {preset}: leave it out", f"{value:g}"
            )


def mechanisms(scenario: World) -> Iterator[FieldFault]:
    """What is said of a shared resource counts only where it is shared."""
    yield from switched_off(scenario.interference, ("interference",))


def switched_off(interference: Interference, keys: Keys) -> Iterator[FieldFault]:
    """Yield the settings of mechanisms that are switched off."""
    for key, switch, why in _OF_SWITCHES:
        value = getattr(interference, key)
        if value != getattr(Interference(), key) and not getattr(interference, switch):
            yield FieldFault((*keys, key), f"has no effect with {switch}: false, where {why}", f"{value:g}")


def service_names(scenario: World) -> Iterator[FieldFault]:
    """Services have names of their own, which no drawn job has."""
    names = [service.name for service in scenario.population.services]
    drawn = set(drawn_names(scenario.population, scenario.seed))
    for i, name in repeated(names):
        yield FieldFault(("population", "services", i, "name"), "another service has this name", shown(name))
    for i, name in enumerate(names):
        if name in drawn:
            yield FieldFault(("population", "services", i, "name"), "a drawn job has this name", shown(name))


def service_sizes(scenario: World) -> Iterator[FieldFault]:
    """An instance of a service fits on a machine, and all its instances on all machines."""
    sheets = [sheet for _, sheet in _sheets(scenario)]
    most, quotas = (
        min((_service_vcpus(sheet, overcommit) for sheet in sheets), default=math.inf)
        for overcommit in (1.0, scenario.fleet.overcommit)
    )
    for i, service in enumerate(scenario.population.services):
        keys = ("population", "services", i)
        room = scenario.fleet.machines * math.floor(quotas / service.quota_vcpu) if sheets else math.inf
        if service.quota_vcpu > most:
            problem = f"should be at most {most:g}, what fits on a machine"
            yield FieldFault((*keys, "quota_vcpu"), problem, f"{service.quota_vcpu:g}")
        elif service.instances > room:
            yield FieldFault(
                (*keys, "instances"), f"should be at most {room}, what fits on the fleet", str(service.instances)
            )


def service_room(scenario: World) -> Iterator[FieldFault]:
    """The services leave room for the drawn jobs."""
    room = _allocated_vcpus(scenario) * scenario.fleet.machines
    taken = sum(service.instances * service.quota_vcpu for service in scenario.population.services)
    if _sheets(scenario) and taken >= room:
        problem = f"should ask for less than {room:.0f} hardware threads, the allocated share of the fleet"
        yield FieldFault(("population", "services"), problem, f"{taken:.0f}")


def memory(scenario: World) -> Iterator[FieldFault]:
    """The memory that the quotas ask for is there."""
    sheets = _sheets(scenario)
    threads = _allocated_vcpus(scenario)
    installed_bytes = sum(share * sheet.memory_bytes for share, sheet in sheets)
    if threads * scenario.population.memory_bytes_per_vcpu > installed_bytes:
        problem = (
            f"should be at most {installed_bytes / threads:.4g}, the fleet's memory over its allocated hardware threads"
        )
        yield FieldFault(
            ("population", "memory_bytes_per_vcpu"), problem, f"{scenario.population.memory_bytes_per_vcpu:g}"
        )


def software_jobs(scenario: World) -> Iterator[FieldFault]:
    """New software names jobs that run."""
    services = [service.name for service in scenario.population.services]
    known = {*services, *drawn_names(scenario.population, scenario.seed)}
    for i, software in enumerate(scenario.feature.software if scenario.feature else ()):
        for k, job in enumerate(software.jobs):
            if job not in known:
                problem = f"there is no such job; there are {', '.join([*services, 'heavyweight-01'])}, …"
                yield FieldFault(("feature", "software", i, "jobs", k), problem, shown(job))


def feature_changes(scenario: World) -> Iterator[FieldFault]:
    """A feature changes something."""
    feature = scenario.feature
    if feature is not None and not feature.platforms and feature.governor is None and not feature.software:
        yield FieldFault(("feature",), "changes nothing: say platforms, governor or software")


def own_physics(scenario: World) -> Iterator[FieldFault]:
    """Governors and mechanisms of somebody's own are there, take what they are given, and compile."""
    for keys in WAYS:
        try:
            if function := own_function(scenario, keys):
                function.compiled()
        except PartError as error:
            yield FieldFault(keys, str(error))


def rollout(scenario: World) -> Iterator[FieldFault]:
    """A roll-out by instance is of software alone, and its last wave begins inside the horizon."""
    if scenario.feature is None:
        return
    plan, keys = scenario.feature.rollout, ("feature", "rollout")
    alone = scenario.feature.software and not scenario.feature.platforms and scenario.feature.governor is None
    if plan.unit == "instance" and not alone:
        yield FieldFault(
            (*keys, "unit"), "should be machine, rack or domain unless the feature is software alone", shown(plan.unit)
        )
    last_s = plan.start_s + (plan.waves - 1) * plan.interval_s
    if last_s >= scenario.horizon_s:
        problem = f"the last wave should begin before horizon_s = {scenario.horizon_s:g}"
        yield FieldFault((*keys, "start_s"), problem, f"{last_s:g}")


def crossover(scenario: World) -> Iterator[FieldFault]:
    """What is switched on and off can be, by machine or rack, in whole epochs, and settles within a period.

    Hardware stays where it is. Each machine is in one wave: it begins with the first pair of periods.
    """
    feature = scenario.feature
    if feature is None:
        return
    keys, plan = ("feature", "rollout", "crossover"), feature.rollout.crossover
    if not multiple(feature.settle_s, scenario.epoch_s):
        problem = f"should be a multiple of epoch_s = {scenario.epoch_s:g}"
        yield FieldFault(("feature", "settle_s"), problem, f"{feature.settle_s:g}")
    if plan is None:
        return
    if feature.platforms:
        yield FieldFault(keys, "should be null: platforms are not switched on and off")
    if feature.rollout.unit == "instance" or feature.rollout.waves > 1:
        yield FieldFault(keys, "should be null where the roll-out is by instance or in waves")
    if not multiple(plan.period_s, scenario.epoch_s) or not multiple(feature.rollout.start_s, scenario.epoch_s):
        problem = f"period and start of the roll-out should be multiples of epoch_s = {scenario.epoch_s:g}"
        yield FieldFault((*keys, "period_s"), problem, f"{plan.period_s:g} and {feature.rollout.start_s:g}")
    if plan.wash_s is not None and (plan.wash_s >= plan.period_s or not multiple(plan.wash_s, scenario.epoch_s)):
        problem = f"should be a multiple of epoch_s = {scenario.epoch_s:g} below period_s = {plan.period_s:g}"
        yield FieldFault((*keys, "wash_s"), problem, f"{plan.wash_s:g}")
    if feature.settle_s >= plan.period_s:
        problem = f"should be less than the crossover's period_s = {plan.period_s:g}"
        yield FieldFault(("feature", "settle_s"), problem, f"{feature.settle_s:g}")
    if 2 * plan.period_s * (plan.pairs or 1) > (scenario.horizon_s - feature.rollout.start_s) * (1 + _ROUNDING):
        problem = f"there should be room for {plan.pairs or 1} pairs of periods in horizon_s = {scenario.horizon_s:g}"
        yield FieldFault((*keys, "period_s"), problem, f"{plan.period_s:g}")


def measured_windows(scenario: Scenario) -> Iterator[FieldFault]:
    """The windows that are measured are recorded."""
    names = [window.name for window in scenario.windows]
    wanted: list[tuple[Keys, str]] = [(("analyses", "wsmeter", "window"), scenario.analyses.wsmeter.window)]
    if scenario.recording.loop is not None:
        wanted.append((("recording", "loop", "window"), scenario.recording.loop.window))
    for keys, window in wanted:
        together = window.endswith("*") and keys[0] == "analyses"
        if not (any(name.startswith(window[:-1]) for name in names) if together else window in names):
            known = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
            yield FieldFault(keys, f"there is no such window; there are {known}", shown(window))


def cluster_sizes(scenario: Scenario) -> Iterator[FieldFault]:
    """Test clusters are drawn without replacement from what has the feature, so they are no larger than that.

    Where racks or power domains are too few for any to have it nothing is drawn, which runs say.
    """
    if scenario.feature is None:
        return
    share, unit = scenario.feature.rollout.share, scenario.feature.rollout.unit
    of = "instances" if unit == "instance" else "machines"
    if unit in ("rack", "domain"):
        most = scenario.cells * _rolled_out(scenario)
        if most == 0:
            return
    else:
        units = _rebuilt_instances(scenario) if unit == "instance" else scenario.fleet.machines
        most = scenario.cells * math.floor(min(share * units + _ROUNDING, sys.maxsize))
    for i, size in enumerate(scenario.analyses.wsmeter.machines):
        if size > most:
            problem = f"should be at most the {most} {of} with the feature"
            yield FieldFault(("analyses", "wsmeter", "machines", i), problem, str(size))


def _rolled_out(scenario: Scenario) -> int:
    """Return how many machines are in the racks or power domains that get the feature; of several cells, the most."""
    from sim.fleet.control import chosen_units  # alone here: few roll-outs are by rack or power domain

    rack, domain = places(scenario.fleet)
    unit = domain if scenario.feature is not None and scenario.feature.rollout.unit == "domain" else rack
    chosen, sizes = chosen_units(scenario, unit), np.bincount(unit)
    # Each cell draws units of its own, and the last unit alone may be smaller than the others.
    return int(sizes[chosen].sum() if scenario.cells == 1 else np.sort(sizes)[::-1][: chosen.size].sum())


def cell_local_jobs(scenario: Scenario) -> Iterator[FieldFault]:
    """New software of several cells is of jobs that all of them run."""
    if scenario.cells == 1:
        return
    services = {service.name for service in scenario.population.services}
    common = {*services, *drawn_names(scenario.population, scenario.seed)[: scenario.population.common_jobs]}
    local = {*drawn_names(scenario.population, scenario.seed)} - common
    for i, software in enumerate(scenario.feature.software if scenario.feature else ()):
        for k, job in enumerate(software.jobs):
            if job in local:
                problem = f"should be a service or a common job, which all {scenario.cells} cells run"
                yield FieldFault(("feature", "software", i, "jobs", k), problem, shown(job))


def cell_loop(scenario: Scenario) -> Iterator[FieldFault]:
    """The loop of plan and roll-out is of one cell."""
    if scenario.cells > 1 and scenario.recording.loop is not None:
        yield FieldFault(("recording", "loop"), f"should be null where there are {scenario.cells} cells")


def repeated_sizes(scenario: Scenario) -> Iterator[FieldFault]:
    """Test clusters have different sizes."""
    for i, size in repeated(scenario.analyses.wsmeter.machines):
        yield FieldFault(("analyses", "wsmeter", "machines", i), "another test cluster has this size", str(size))


def judged_estimators(scenario: Scenario) -> Iterator[FieldFault]:
    """The estimators that are validated are there, each under a name of its own."""
    names, of_paper = scenario.analyses.wsmeter.estimators, WSMeter().estimators
    for i, name in repeated(names):
        yield FieldFault(("analyses", "wsmeter", "estimators", i), "is there twice", shown(name))
    for i, name in enumerate(names):
        if name not in of_paper and (problem := _no_estimator(name)):
            yield FieldFault(("analyses", "wsmeter", "estimators", i), problem, shown(name))
    for i, problem in _alike_named(names):
        yield FieldFault(("analyses", "wsmeter", "estimators", i), problem, shown(names[i]))


def _alike_named(names: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Yield which of somebody's own estimators has the name of another, and of which; those that are there once."""
    own = list[tuple[int, str]]()
    for i, name in enumerate(names):
        if is_part(name) and name not in names[:i]:
            with suppress(PartError):
                own.append((i, called(part(name).load())))
    if own:
        from analysis.effects.methods import SHIPPED  # alone here: few scenarios name own estimators

        for number, problem in name_problems([(names[i], name) for i, name in own], SHIPPED):
            yield own[number][0], problem


def _no_estimator(name: str) -> str:
    """Return why a name is that of no estimator; nothing if it is."""
    if is_part(name):
        try:
            _check_call(part(name).load())
        except PartError as error:
            return str(error).removeprefix(f"{name}: ")
        return ""
    from analysis.effects.methods import judged_on_tables, refusal  # alone here: few name others than the paper's

    return refusal(name, judged_on_tables(), own=True)


def _check_call(estimator: object) -> None:
    """Refuse somebody's estimator that cannot be made without arguments and called with an experiment."""
    if isinstance(estimator, type):
        check_parameters(estimator)
    if callable(getattr(estimator, "estimate", None)):
        check_method(estimator, "estimate", "experiment")
    elif callable(estimator) and not isinstance(estimator, type):
        check_parameters(estimator, "experiment")


def companions(scenario: Scenario) -> Iterator[FieldFault]:
    """The scenarios that are run beside this one are there."""
    for i, name in enumerate(scenario.analyses.beside):
        if not locate(name).is_file():
            yield FieldFault(("analyses", "beside", i), absent(name, locate(name)), shown(name))


WORLD_CHECKS: Mapping[Check[Any], tuple[str, ...]] = {
    platform_shares: ("fleet.platforms",),
    platform_names: (EVERY_SHEET,),
    replaced_platforms: ("fleet.platforms", "feature.platforms", "platforms"),
    epochs: ("horizon_s", "epoch_s"),
    steps: ("simulation", "steps", "horizon_s"),
    incidents: ("incidents", "horizon_s", "epoch_s", "fleet.machines", "population.jobs"),
    machine_epochs: ("horizon_s", "epoch_s", "fleet.machines", "recording.machine_epochs"),
    window_names: ("recording.windows",),
    window_bounds: ("recording.windows", "horizon_s", "epoch_s"),
    job_counts: ("population.jobs", "population.common_jobs", "population.heavyweights", "population.services"),
    preset_decides: ("population",),
    mechanisms: ("interference",),
    service_names: ("population.services", "population.jobs", "population.common_jobs", "population.heavyweights"),
    service_sizes: ("population.services", "fleet", "platforms"),
    service_room: ("population.services", "population.allocated_share", "fleet", "platforms"),
    memory: ("population.memory_bytes_per_vcpu", "population.allocated_share", "fleet", "platforms"),
    software_jobs: ("feature.software", "population.services", "population.heavyweights"),
    feature_changes: ("feature",),
    own_physics: ("power.governor.policy", "feature", "interference.mechanism"),
    rollout: ("feature", "horizon_s"),
    crossover: ("feature", "horizon_s", "epoch_s"),
}
"""What every fleet must satisfy, whatever is looked at in it, with the fields that each check needs."""
CHECKS: Mapping[Check[Any], tuple[str, ...]] = {
    **WORLD_CHECKS,
    measured_windows: ("analyses.wsmeter.window", "recording.loop", "recording.windows"),
    companions: ("analyses.beside",),
    repeated_sizes: ("analyses.wsmeter.machines",),
    judged_estimators: ("analyses.wsmeter.estimators",),
    cluster_sizes: ("analyses.wsmeter.machines", "cells", "seed", "fleet", "feature", "population.services"),
    cell_local_jobs: ("cells", "feature.software", "population.services", "population.heavyweights"),
    cell_loop: ("cells", "recording.loop"),
}
"""Every check with the fields that it needs."""


def _replacements(feature: Feature | None) -> list[tuple[str, str]]:
    return list(feature.platforms.items()) if feature else []


def multiple(value: float, unit: float) -> bool:
    """Return whether `value` is a whole number of `unit`, up to rounding."""
    units = value / unit
    return math.isfinite(units) and abs(units - round(units)) < _ROUNDING * max(1.0, units)


def _rebuilt_instances(scenario: Scenario) -> float:
    """Return how many instances new software reaches; unbounded when it names none or drawn jobs."""
    jobs = {job for software in scenario.feature.software for job in software.jobs} if scenario.feature else set()
    instances = {service.name: service.instances for service in scenario.population.services}
    return sum(instances[job] for job in jobs) if jobs and jobs <= instances.keys() else math.inf


def _sheets(scenario: World) -> list[tuple[float, Platform]]:
    """Return share and spec sheet of the fleet's platforms; nothing when one of them is unknown."""
    platforms = scenario.fleet.platforms
    sheets = scenario.sheets
    if not platforms.keys() <= sheets.keys():
        return []
    total = sum(platforms.values())
    return [(share / total, sheets[name]) for name, share in platforms.items()]


def _allocated_vcpus(scenario: World) -> float:
    """Return the quotas placed on a machine of the fleet in the mean; 0 when one of its platforms is unknown."""
    threads = sum(share * sheet.vcpus for share, sheet in _sheets(scenario))
    return threads * scenario.population.allocated_share * scenario.fleet.overcommit


def _service_vcpus(sheet: Platform, overcommit: float) -> float:
    """Return the largest quota for which one machine has hardware threads, overcommitted so far, and memory."""
    return min(sheet.vcpus * overcommit, sheet.memory_bytes / _SERVICE_MEMORY_BYTES_PER_VCPU)
