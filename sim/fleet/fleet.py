"""A fleet's day: the world's arrays prepared once, then simulated under each arm of an experiment.

All arms share machines, jobs, placement, churn and every random draw; they differ only in which machines (or stays)
have the feature and from when. That is sound because placement looks at requests only.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numba
import numpy as np

from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.fleet.jobs import Jobs, build_jobs
from models.fleet.machines import Machines, build_machines
from models.fleet.world import World
from models.randomness import stream
from sim.fleet import kernel, parameters, slots
from sim.fleet.control import Timeline, plan_day
from sim.fleet.layout import STAY, Inputs, Outputs, Records
from sim.fleet.rollout import acting, plan_crossover

_MOST_THREADS = int(vars(numba.config)["NUMBA_NUM_THREADS"])
NEVER = 2**40
"""Epoch from which a machine or stay that does not get the feature has it."""
MACHINES_IN_FLIGHT = 2560
"""Machines simulated at a time, in whole power domains: what memory is proportional to."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Who has the feature: the epoch from which each machine has it, and each stay (for new code).

    New code follows its machine, unless the roll-out is by instance. One entry per machine and one per residence, in
    the order of the day's timeline; `NEVER` for those without.

    Examples
    --------
    >>> Arm(np.array([0, NEVER]), np.array([0, 0, NEVER])).machine_from < NEVER
    array([ True, False])
    """

    machine_from: Ints
    stay_from: Ints
    switched: Bools | None = None
    """(machines, epochs) array, whether the feature acts, where machines switch on and off: then it alone counts."""


@dataclass(frozen=True, slots=True)
class Day:
    """Everything about a fleet's horizon that no arm changes.

    `load`, `phase` are (epochs, jobs) factors, `rack_access`, `rack_network` (epochs, racks), `followed` (jobs,) masks.

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)))
    >>> day.machines.count, day.jobs.count, day.order.size, day.load.shape
    (20, 60, 438, (3, 60))
    """

    world: World
    machines: Machines
    jobs: Jobs
    timeline: Timeline
    order: Ints
    """Stays that run at least one epoch, by machine and start."""
    machine_start: Ints
    row_start: Ints
    """First counter row of each stay in `order`, and the number of rows."""
    row_window: Ints
    """Window of each counter row."""
    slots: int
    load: Floats
    phase: Floats
    rack_access: Floats
    rack_network: Floats
    followed: Bools | None = None

    @property
    def traced(self) -> Bools:
        """Which stays in `order` have every epoch recorded: a fixed random set of instances, and all `followed` jobs.

        Examples
        --------
        >>> from models.fleet.world import Fleet, Population, Recording
        >>> all_of_them = Recording(instance_epoch_share=1.0)
        >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50), recording=all_of_them))
        >>> int(day.traced.sum())
        438
        """
        chosen = stream(self.world.seed, "traced instances").random(int(self.timeline.instance.max(initial=0)) + 1)
        drawn = chosen[self.timeline.instance[self.order]] < self.world.recording.instance_epoch_share
        asked = False if self.followed is None else self.followed[self.timeline.job[self.order]]
        return np.asarray(drawn | asked)


@dataclass(frozen=True, slots=True)
class Block:
    """What happened on consecutive machines: counter rows, machine windows, epoch sums of their domains, traces.

    Arrays are those of `sim.fleet.layout.Outputs`: `rows` (rows, sums), `machine_rows` (machines, windows, 2),
    `epoch_sums` (domains, epochs, sums), `trace` (traced epochs of stays, 5), `machine_trace` (traced machines, epochs,
    4).

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)))
    >>> block = next(run_arm(day, nowhere(day)))
    >>> block.machines, block.rows.shape, block.machine_rows.shape
    (slice(0, 20, None), (438, 6), (20, 1, 2))
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


@dataclass(frozen=True, slots=True)
class Visits:
    """When a profiler looks at which machine for one epoch, in the order of machines, and what programs cost.

    `software` holds, like `sim.fleet.parameters.software_table`, the factors of new code on the traits of jobs.

    Examples
    --------
    >>> Visits(np.array([3, 5]), np.array([0, 2]), np.ones((1, slots.TRAITS))).machine.size
    2
    """

    machine: Ints
    epoch: Ints
    software: Floats


def prepare(world: World) -> Day:
    """Return the day of a world: its machines, jobs, timeline and shared conditions.

    Raises
    ------
    ValueError
        If the jobs do not fit the machines, or two counting windows overlap.

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50))).timeline.job.size
    438
    """
    machines = build_machines(world)
    jobs = build_jobs(world, machines)
    return day_of(world, machines, jobs, plan_day(world, machines, jobs))


def day_of(world: World, machines: Machines, jobs: Jobs, timeline: Timeline) -> Day:
    """Return the day in which `timeline` happens on `machines`.

    Parameters
    ----------
    world : seed, horizon, epoch, windows and conditions
    machines, jobs : numbered as in the timeline
    timeline : who runs where and when

    Raises
    ------
    ValueError
        If two counting windows overlap.

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> from sim.fleet.timeline import from_placement
    >>> world = World(3, 900.0, 300.0, Fleet(20), Population(60, 50))
    >>> machines = build_machines(world)
    >>> placed = from_placement(world, 20, job=np.array([5, 5, 3]), machine=np.array([7, 0, 7]))
    >>> day_of(world, machines, build_jobs(world, machines), placed).order
    array([1, 0, 2])
    """
    _refuse_overlap(world)
    runs = np.flatnonzero(timeline.end_epoch > timeline.start_epoch)
    order = runs[np.lexsort((runs, timeline.start_epoch[runs], timeline.machine[runs]))]
    machine_start = np.searchsorted(timeline.machine[order], np.arange(machines.count + 1))
    first, last = _windows_touched(world, timeline.start_epoch[order], timeline.end_epoch[order])
    row_start = np.concatenate([[0], np.cumsum(last - first)])
    row_window = np.arange(row_start[-1]) - np.repeat(row_start[:-1] - first, last - first)
    racks = int(machines.rack.max()) + 1
    access, network = world.conditions.rack_access_log_sd, world.conditions.network_log_sd
    return Day(
        world=world,
        machines=machines,
        jobs=jobs,
        timeline=timeline,
        order=order,
        machine_start=machine_start,
        row_start=row_start,
        row_window=row_window,
        slots=_most_residents(timeline, order),
        load=parameters.load(world, jobs),
        phase=parameters.wander(world, "phases of jobs", jobs.job_log_sd),
        rack_access=parameters.wander(world, "accesses of racks", np.full(racks, access)),
        rack_network=parameters.wander(world, "network of racks", np.full(racks, network)),
    )


def nowhere(day: Day) -> Arm:
    """Return the arm in which nothing has the feature.

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)))
    >>> bool((nowhere(day).machine_from == NEVER).all())
    True
    """
    return Arm(np.full(day.machines.count, NEVER), np.full(day.timeline.job.size, NEVER))


def everywhere(day: Day) -> Arm:
    """Return the arm in which everything has the feature from the first epoch on.

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)))
    >>> bool((everywhere(day).stay_from == 0).all())
    True
    """
    return Arm(np.zeros(day.machines.count, np.int64), np.zeros(day.timeline.job.size, np.int64))


def recorded(day: Day) -> Arm:
    """Return the arm of the scenario's own roll-out.

    Examples
    --------
    >>> from models.fleet.world import Feature, Fleet, Population
    >>> feature = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50), feature=feature))
    >>> int((recorded(day).machine_from == 0).sum())
    10
    """
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

    Examples
    --------
    >>> from models.fleet.world import Crossover, Feature, Fleet, Population, Rollout
    >>> feature = Feature("calm", rollout=Rollout(1.0, crossover=Crossover(period_s=300.0)))
    >>> day = prepare(World(3, 1200.0, 300.0, Fleet(20), Population(60, 50), feature=feature))
    >>> np.unique(crossover(day).switched.sum(axis=1))
    array([2])
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

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)))
    >>> np.flatnonzero(on_machines(day, np.array([4, 7])).machine_from == 0)
    array([4, 7])
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

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> day = prepare(World(3, 900.0, 300.0, Fleet(20), Population(60, 50)))
    >>> np.sort(day.timeline.instance[on_instances(day, np.array([4, 7])).stay_from == 0])
    array([4, 7])
    """
    arm = nowhere(day)
    arm.stay_from[np.isin(day.timeline.instance, which)] = 0
    return arm


def run_arm(
    day: Day, arm: Arm, threads: int | None = None, around: Ints | None = None, visits: Visits | None = None
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

    Yields
    ------
    Block
        Consecutive machines; together the whole fleet, unless `around` is given.

    Raises
    ------
    ValueError
        If `threads` is less than 1.

    Examples
    --------
    >>> from models.fleet.world import Fleet, Population
    >>> fives = Fleet(20, machines_per_rack=5, racks_per_power_domain=1)
    >>> day = prepare(World(3, 900.0, 300.0, fives, Population(60, 50)))
    >>> [block.machines for block in run_arm(day, nowhere(day), around=np.array([6, 8, 19]))]
    [slice(5, 10, None), slice(15, 20, None)]
    """
    if threads is not None and threads < 1:
        raise InputError(f"threads should be at least 1, is {threads}")
    inputs, count = _inputs(day, arm, visits), min(threads or _MOST_THREADS, _MOST_THREADS)
    bounds = inputs.domain_start
    if around is not None:
        for at in np.unique(np.searchsorted(bounds, around, side="right") - 1):
            yield _run_block(day, inputs, arm.stay_from, bounds[at : at + 2], visits, threads=count)
        return
    per_block = max(1, MACHINES_IN_FLIGHT // max(1, int(np.diff(bounds).max())))
    for at in range(0, bounds.size - 1, per_block):
        yield _run_block(day, inputs, arm.stay_from, bounds[at : at + per_block + 1], visits, threads=count)


def _inputs(day: Day, arm: Arm, visits: Visits | None) -> Inputs:
    """Return the kernel's inputs for the whole fleet under an arm, but for its stays."""
    world, machines = day.world, day.machines
    return Inputs(
        domain_start=np.append(np.flatnonzero(np.diff(machines.power_domain, prepend=-1)), machines.count),
        stay_start=day.machine_start,
        machines=parameters.machine_table(world, machines, arm.machine_from),
        stays=np.empty(0, STAY),
        slots=day.slots,
        jobs=parameters.job_table(day.jobs),
        software=parameters.software_table(world, day.jobs) if visits is None else visits.software,
        platforms=parameters.platform_table(world, machines),
        governors=parameters.governor_table(world),
        window_of_epoch=window_of_epoch(world),
        load=day.load,
        phase=day.phase,
        rack_access=day.rack_access,
        rack_network=day.rack_network,
        settings=parameters.settings_table(world),
        visit=np.empty((0, 0), np.int64),
        switched=np.empty((0, 0), np.bool_) if arm.switched is None else arm.switched,
    )


def _run_block(day: Day, fleet: Inputs, stay_from: Ints, bounds: Ints, visits: Visits | None, *, threads: int) -> Block:
    first, last = int(bounds[0]), int(bounds[-1])
    visit = _visit_table(day.world, visits, first, last)
    stays = slice(int(day.machine_start[first]), int(day.machine_start[last]))
    table, traced_epochs = _stay_table(day, stay_from, stays)
    inputs = fleet._replace(
        domain_start=bounds - first,
        stay_start=fleet.stay_start[first : last + 1] - stays.start,
        machines=fleet.machines[first:last],
        stays=table,
        visit=visit,
        switched=fleet.switched[first:last],
    )
    seen = int(visit.max(initial=-1)) + 1
    world, traced_machines = day.world, last - first if day.world.recording.machine_epochs else 0
    outputs = Outputs(
        rows=np.zeros((int(day.row_start[stays.stop] - day.row_start[stays.start]), slots.SUMS)),
        machine_rows=np.zeros((last - first, len(world.windows), 2)),
        epoch_sums=np.zeros((bounds.size - 1, world.epochs, slots.EPOCH_COLUMNS)),
        trace=np.zeros((traced_epochs, 5)),
        machine_trace=np.zeros((traced_machines, world.epochs, 4)),
        visit_sums=np.zeros((seen, day.slots, 5)),
        visit_rows=np.full((seen, day.slots), -1),
        visit_power_w=np.zeros(seen),
    )
    kernel.simulate(inputs, outputs, threads)
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
    first_window, _ = _windows_touched(day.world, start, end)
    table["row"] = day.row_start[:-1][stays] - day.row_start[stays.start] - first_window
    length = np.where(day.traced[stays], end - start, 0)
    offset = np.cumsum(length) - length
    table["traced"] = np.where(length > 0, offset - start, slots.NO_TRACE)
    return table, int(length.sum())


def window_of_epoch(world: World) -> Ints:
    """Return the window in which each epoch counts, −1 for none.

    Examples
    --------
    >>> window_of_epoch(World(horizon_s=900.0, epoch_s=300.0))
    array([0, 0, 0])
    """
    windows = np.full(world.epochs, -1)
    for i, window in enumerate(world.windows):
        windows[round(window.start_s / world.epoch_s) : round(window.end_s / world.epoch_s)] = i
    return windows


def _refuse_overlap(world: World) -> None:
    for before, after in pairwise(world.windows):
        if after.start_s < before.end_s:
            raise InputError(
                f"window {after.name} starts at {after.start_s:g} s, before {before.name} ends at {before.end_s:g} s"
            )


def _windows_touched(world: World, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    opens = np.array([round(window.start_s / world.epoch_s) for window in world.windows])
    closes = np.array([round(window.end_s / world.epoch_s) for window in world.windows])
    first = np.searchsorted(closes, start, side="right")
    return first, np.maximum(first, np.searchsorted(opens, end, side="left"))


def _most_residents(timeline: Timeline, order: Ints) -> int:
    machine = np.concatenate([timeline.machine[order]] * 2)
    epoch = np.concatenate([timeline.end_epoch[order], timeline.start_epoch[order]])
    change = np.repeat([-1, 1], order.size)
    sort = np.lexsort((change, epoch, machine))
    return int(np.cumsum(change[sort]).max(initial=1))


def _from_epoch(time_s: Floats, world: World) -> Ints:
    settle_s = world.feature.settle_s if world.feature is not None else 0.0
    acts_s = np.where(time_s > 0, time_s + settle_s, time_s)
    return np.where(np.isnan(time_s), NEVER, np.ceil(np.nan_to_num(acts_s) / world.epoch_s)).astype(np.int64)
