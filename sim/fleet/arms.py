"""The arms of an experiment on one day: who has the feature and from when, and the day simulated so, block by block.

All arms share machines, jobs, placement, churn and every random draw; they differ only in which machines (or stays)
have the feature and from when. That is sound because placement looks at requests only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numba
import numpy as np

from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.fleet.world import World
from sim.fleet import events, kernel, slots
from sim.fleet.balancer import balanced
from sim.fleet.control import acting, plan_crossover
from sim.fleet.day import (
    Day,
    core_table,
    governor_table,
    job_table,
    machine_table,
    platform_table,
    settings_table,
    software_table,
    window_of_epoch,
    windows_touched,
)
from sim.fleet.layout import REQUEST, STAY, Inputs, Outputs, Records
from sim.fleet.own_physics import OwnFunctions, own_functions
from sim.fleet.stations import stations_of

NEVER = 2**40
"""Epoch from which a machine or stay that does not get the feature has it."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Who has the feature: the epoch from which each machine has it, and each stay (for new code).

    New code follows its machine, unless the roll-out is by instance. One entry per machine and one per residence, in
    the order of the day's timeline; `NEVER` for those without.
    """

    machine_from: Ints
    stay_from: Ints
    switched: Bools | None = None
    """(machines, epochs) array, whether the feature acts, where machines switch on and off: then it alone counts."""


def nowhere(day: Day) -> Arm:
    """Return the arm in which nothing has the feature."""
    return Arm(np.full(day.machines.count, NEVER), np.full(day.timeline.job.size, NEVER))


def everywhere(day: Day) -> Arm:
    """Return the arm in which everything has the feature from the first epoch on."""
    return Arm(np.zeros(day.machines.count, np.int64), np.zeros(day.timeline.job.size, np.int64))


def recorded(day: Day) -> Arm:
    """Return the arm of the scenario's own roll-out."""
    if day.world.periods:
        return crossover(day)
    timeline = day.timeline
    machine_from = _from_epoch(timeline.feature_from_s, day.world)
    own = _from_epoch(timeline.instance_feature_from_s, day.world)[timeline.instance]
    return Arm(machine_from, np.minimum(own, machine_from[timeline.machine]))


def crossover(day: Day, number: int = 0) -> Arm:
    """Return the arm in which machines switch the feature on and off, as the scenario's roll-out says.

    Parameters
    ----------
    day : of a world with a feature
    number : of the schedule, as in `plan_crossover`

    Raises
    ------
    ValueError
        If the feature's roll-out has no crossover.
    """
    if not day.world.periods:
        raise InputError("the feature's roll-out has no crossover")
    return replace(nowhere(day), switched=acting(day.world, plan_crossover(day.world, day.machines, number)))


def on_machines(day: Day, which: Ints, from_epoch: int = 0) -> Arm:
    """Return the arm in which exactly these machines, and whatever runs there, have the feature, all day.

    Parameters
    ----------
    day : whose machines
    which : their numbers
    from_epoch : or only from this epoch on

    Raises
    ------
    IndexError
        If there is no such machine.
    """
    arm = nowhere(day)
    arm.machine_from[which] = from_epoch
    arm.stay_from[np.isin(day.timeline.machine, which)] = from_epoch
    return arm


def on_instances(day: Day, which: Ints) -> Arm:
    """Return the arm in which exactly these instances run the new code, all day.

    Parameters
    ----------
    day : whose instances
    which : their numbers; none has the feature that never runs
    """
    arm = nowhere(day)
    arm.stay_from[np.isin(day.timeline.instance, which)] = 0
    return arm


def _from_epoch(time_s: Floats, world: World) -> Ints:
    settle_s = world.feature.settle_s if world.feature is not None else 0.0
    acts_s = np.where(time_s > 0, time_s + settle_s, time_s)
    return np.where(np.isnan(time_s), NEVER, np.ceil(np.nan_to_num(acts_s) / world.epoch_s)).astype(np.int64)


_MOST_THREADS = int(vars(numba.config)["NUMBA_NUM_THREADS"])
MACHINES_IN_FLIGHT = 2560
"""Machines simulated at a time, in whole power domains: what memory is proportional to."""


@dataclass(frozen=True, slots=True)
class Block:
    """What happened on consecutive machines: counter rows, machine windows, epoch sums of their domains, traces.

    Arrays are those of `sim.fleet.layout.Outputs`: `rows` (rows, sums), `machine_rows` (machines, windows, 2),
    `epoch_sums` (domains, epochs, sums), `trace` (traced epochs of stays, 5), `machine_trace` (traced machines, epochs,
    4), `events` (domains, events, 3), `requests` (of `Day.serving` stays, stay by stay).
    """

    machines: slice
    stays: slice
    rows: Floats
    machine_rows: Floats
    epoch_sums: Floats
    trace: Floats
    machine_trace: Floats
    visit_sums: Floats
    visit_rows: Ints
    visit_power_w: Floats
    events: Floats
    requests: Records


@dataclass(frozen=True, slots=True)
class Visits:
    """When a profiler looks at which machine for one epoch, in the order of machines, and what programs cost.

    `software` holds, like `sim.fleet.software_table`, the factors of new code on the traits of jobs.
    """

    machine: Ints
    epoch: Ints
    software: Floats


def run_arm(
    day: Day,
    arm: Arm,
    threads: int | None = None,
    around: Ints | None = None,
    visits: Visits | None = None,
    *,
    logged: int = 0,
) -> Iterator[Block]:
    """Simulate one arm and yield its blocks in the order of machines.

    The numbers are the same for any number of threads and any cut into blocks.

    Parameters
    ----------
    day : from `prepare` or `day_of`
    arm : who has the feature
    threads : at most this many, at least 1; the default is all
    around : machines; only the power domains that hold one of them are simulated, and each of those is a block
    visits : when a profiler looks where; its view of residents goes into the blocks, in the order of `visits`
    logged : so many events of each power domain are logged at most, with `simulation: events`

    Yields
    ------
    Block
        Consecutive machines; together the whole fleet, unless `around` is given.

    Raises
    ------
    ValueError
        If `threads` is less than 1.
    PartError
        If a governor or a mechanism of somebody's own does something wrong.
    """
    if threads is not None and threads < 1:
        raise InputError(f"threads should be at least 1, is {threads}")
    inputs, count = _inputs(day, arm, visits), min(threads or _MOST_THREADS, _MOST_THREADS)
    bounds, run = (
        inputs.domain_start,
        partial(_run_block, day, threads=count, own=own_functions(day.world), logged=logged),
    )
    if around is not None:
        for at in np.unique(np.searchsorted(bounds, around, side="right") - 1):
            yield run(inputs, arm.stay_from, bounds[at : at + 2], visits)
        return
    per_block = max(1, MACHINES_IN_FLIGHT // max(1, int(np.diff(bounds).max())))
    for at in range(0, bounds.size - 1, per_block):
        yield run(inputs, arm.stay_from, bounds[at : at + per_block + 1], visits)


def _inputs(day: Day, arm: Arm, visits: Visits | None) -> Inputs:
    """Return the kernel's inputs for the whole fleet under an arm, but for its stays."""
    world, machines = day.world, day.machines
    table, platforms = machine_table(world, machines, arm.machine_from), platform_table(world, machines)
    core_cpi = core_table(world, machines, day.jobs)
    load, weight = day.load, np.ones(core_cpi.shape)
    if world.population.balancer == "speed":
        load, weight = balanced(day, table, platforms, core_cpi)
    return Inputs(
        domain_start=np.append(np.flatnonzero(np.diff(machines.power_domain, prepend=-1)), machines.count),
        stay_start=day.machine_start,
        machines=table,
        stays=np.empty(0, STAY),
        slots=day.slots,
        jobs=job_table(day.jobs),
        software=software_table(world, day.jobs) if visits is None else visits.software,
        platforms=platforms,
        core_cpi=core_cpi,
        governors=governor_table(world),
        window_of_epoch=window_of_epoch(world),
        load=load,
        phase=day.phase,
        rack_access=day.rack_access,
        rack_network=day.rack_network,
        settings=settings_table(world),
        visit=np.empty((0, 0), np.int64),
        switched=np.empty((0, 0), np.bool_) if arm.switched is None else arm.switched,
        stations=None,
        spell_start=np.searchsorted(day.spells["machine"], np.arange(machines.count + 1)),
        spells=day.spells,
        weight=weight,
    )


def _run_block(
    day: Day,
    fleet: Inputs,
    stay_from: Ints,
    bounds: Ints,
    visits: Visits | None,
    *,
    threads: int,
    own: OwnFunctions,
    logged: int,
) -> Block:
    first, last = int(bounds[0]), int(bounds[-1])
    visit = _visit_table(day.world, visits, first, last)
    stays = slice(int(day.machine_start[first]), int(day.machine_start[last]))
    table, traced_epochs = _stay_table(day, stay_from, stays)
    stations, requests = None, np.zeros(0, REQUEST)
    if day.requests:
        served = day.serving(stays)
        stations, requests = stations_of([day.requests(int(day.order[place])) for place in served])
        table["station"][served - stays.start] = np.arange(served.size)
    inputs = fleet._replace(
        domain_start=bounds - first,
        stay_start=fleet.stay_start[first : last + 1] - stays.start,
        machines=fleet.machines[first:last],
        stays=table,
        visit=visit,
        switched=fleet.switched[first:last],
        stations=stations,
        spell_start=fleet.spell_start[first : last + 1] - fleet.spell_start[first],
        spells=fleet.spells[fleet.spell_start[first] : fleet.spell_start[last]],
    )
    visited = int(visit.max(initial=-1)) + 1
    world, traced_machines = day.world, last - first if day.world.recording.machine_epochs else 0
    outputs = Outputs(
        rows=np.zeros((int(day.row_start[stays.stop] - day.row_start[stays.start]), slots.SUMS)),
        machine_rows=np.zeros((last - first, len(world.windows), 2)),
        epoch_sums=np.zeros((bounds.size - 1, world.epochs, slots.EPOCH_COLUMNS)),
        trace=np.zeros((traced_epochs, 5)),
        machine_trace=np.zeros((traced_machines, world.epochs, 4)),
        visit_sums=np.zeros((visited, day.slots, 5)),
        visit_rows=np.full((visited, day.slots), -1),
        visit_power_w=np.zeros(visited),
        events=np.full((bounds.size - 1, logged, 3), np.nan),
        requests=requests,
    )
    simulate = events.simulate if world.simulation == "events" else kernel.simulate
    simulate(inputs, outputs, threads, own)
    return Block(slice(first, last), stays, *outputs)


def _visit_table(world: World, visits: Visits | None, first: int, last: int) -> Ints:
    """Return which visit each epoch of each machine of a block is, numbered from 0 in the block."""
    if visits is None:
        return np.empty((0, 0), np.int64)
    table = np.full((last - first, world.epochs), -1)
    here = slice(*np.searchsorted(visits.machine, [first, last]))
    table[visits.machine[here] - first, visits.epoch[here]] = np.arange(here.stop - here.start)
    return table


def _stay_table(day: Day, stay_from: Ints, stays: slice) -> tuple[Records, int]:
    which, timeline = day.order[stays], day.timeline
    start, end = timeline.start_epoch[which], timeline.end_epoch[which]
    table = np.empty(which.size, STAY)
    table["job"], table["shard"], table["instance"] = (
        column[which] for column in (timeline.job, timeline.shard, timeline.instance)
    )
    table["start"], table["end"], table["soft_from"] = start, end, stay_from[which]
    table["station"] = slots.NOWHERE
    table["start_s"], table["end_s"] = timeline.start_s[which], timeline.end_s[which]
    first_window, _ = windows_touched(day.world, start, end)
    table["row"] = day.row_start[:-1][stays] - day.row_start[stays.start] - first_window
    length = np.where(day.traced[stays], end - start, 0)
    offset = np.cumsum(length) - length
    table["traced"] = np.where(length > 0, offset - start, slots.NO_TRACE)
    return table, int(length.sum())
