"""A fleet's day: the arrays of its world, prepared once for all arms of an experiment."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.fleet.jobs import Jobs, build_jobs
from models.fleet.machines import Machines, build_machines
from models.fleet.world import World
from models.randomness import stream
from sim.fleet import parameters
from sim.fleet.control import Timeline, plan_day


@dataclass(frozen=True, slots=True)
class Day:
    """Everything about a fleet's horizon that no arm changes.

    `load`, `phase` are (epochs, jobs) factors, `rack_access`, `rack_network` (epochs, racks), `followed` (jobs,) masks.
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
        """Which stays in `order` have every epoch recorded: a fixed random set of instances, all `followed` jobs."""
        chosen = stream(self.world.seed, "traced instances").random(int(self.timeline.instance.max(initial=0)) + 1)
        drawn = chosen[self.timeline.instance[self.order]] < self.world.recording.instance_epoch_share
        followed = False if self.followed is None else self.followed[self.timeline.job[self.order]]
        return np.asarray(drawn | followed)


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
    """
    _refuse_overlap(world)
    runs = np.flatnonzero(timeline.end_epoch > timeline.start_epoch)
    order = runs[np.lexsort((runs, timeline.start_epoch[runs], timeline.machine[runs]))]
    machine_start = np.searchsorted(timeline.machine[order], np.arange(machines.count + 1))
    first, last = windows_touched(world, timeline.start_epoch[order], timeline.end_epoch[order])
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


def window_of_epoch(world: World) -> Ints:
    """Return the window in which each epoch counts, −1 for none."""
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


def windows_touched(world: World, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return the first window that stays reach into, by their epochs, and the first after them that they do not."""
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
