"""An advised assignment of jobs to platforms tried out: instances are moved, and the fleet is simulated again.

Two fleets differ only in where instances run. Both hold what runs on a typical day at noon, on the machines as they are
then, for a whole day. Neighbours, caches and frequencies change with the moves, so what is saved is not what a
table of cycles per instruction promises. Or instances of one job are taken away from another
job's machines, or put there in place of others, to see what it does to them.
"""

import heapq
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import DAY_S, Bools, Floats, Ints
from models.fleet.world import Window, World
from models.profiling.world import ProfileWorld
from sim.fleet.arms import NEVER, Arm, recorded, run_arm
from sim.fleet.day import Day, day_of
from sim.fleet.timeline import Timeline, from_placement
from sim.profiling.hardware_trial import prepare_trial
from sim.profiling.register import Places, place

CYCLES, INSTRUCTIONS, CPU_S = 0, 1, 3
_BALANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """What runs where at a time: N instances, M machines, P platforms, J jobs."""

    day: Day
    jobs: tuple[str, ...]
    platforms: tuple[str, ...]
    job: Ints
    shard: Ints
    machine: Ints
    machine_platform: Ints
    """(M,) platform of each machine at that time."""
    vcpus: Floats
    """(M,) hardware threads that quotas may fill on each machine at that time."""
    machine_from: Ints
    """(M,) 0 for machines that have the new hardware, `NEVER` for others."""

    @classmethod
    def of(cls, world: ProfileWorld) -> "Snapshot":
        """Return what runs at the noon of the day whose platforms are nearest to those of the horizon in the mean.

        Raises
        ------
        ValueError
            If the jobs do not fit the machines.
        """
        day = prepare_trial(world)
        timeline, places = day.timeline, place(world, day.machines)
        threads = np.array([float(world.sheets[name].vcpus) for name in places.platforms])
        machine_from = recorded(day).machine_from
        noon = _typical_noon(world, machine_from, places, threads)
        here = np.flatnonzero((timeline.start_epoch <= noon) & (timeline.end_epoch > noon))
        upgraded = machine_from <= noon
        platform = np.where(upgraded, places.platform[:, 1], places.platform[:, 0])
        return cls(
            day=day,
            jobs=day.jobs.names,
            platforms=places.platforms,
            job=timeline.job[here],
            shard=timeline.shard[here],
            machine=timeline.machine[here],
            machine_platform=platform,
            vcpus=np.where(upgraded, threads[platform], day.machines.vcpus),
            machine_from=np.where(upgraded, 0, NEVER),
        )

    @property
    def quota_vcpu(self) -> Floats:
        """(N,) hardware threads that each instance asks for."""
        return self.day.jobs.instance_quota_vcpu[self.job]

    def instances(self, machine: Ints) -> Ints:
        """Return (J, P) instances by job and platform.

        Parameters
        ----------
        machine : (N,) where each instance runs
        """
        count = np.zeros((len(self.jobs), len(self.platforms)), np.int64)
        np.add.at(count, (self.job, self.machine_platform[machine]), 1)
        return count


def wanted_instances(now: Ints, before: Floats, after: Floats) -> Ints:
    """Return how many instances of each job should run on each platform.

    An instance executes as much after as the job's instances on that platform do before; shares of instructions that
    change by nothing leave instances where they are. Numbers are rounded so that each job keeps its instances (largest
    remainders; ties to the earlier platform).

    Parameters
    ----------
    now : (J, P) instances
    before, after : (J, P) shares of each job's instructions

    Examples
    --------
    >>> wanted_instances(np.array([[2, 6]]), np.array([[0.25, 0.75]]), np.array([[0.5, 0.5]]))
    array([[4, 4]])
    """
    count = now.sum(axis=1, keepdims=True)
    goal = np.maximum(now + (after - before) * count, 0.0)
    goal *= count / np.where(goal.sum(axis=1, keepdims=True) > 0, goal.sum(axis=1, keepdims=True), 1.0)
    whole = np.floor(goal + _BALANCE).astype(np.int64)
    left = (count - whole.sum(axis=1, keepdims=True)).astype(np.int64)
    rank = np.argsort(np.argsort(-(goal - whole), axis=1, kind="stable"), axis=1)
    return np.asarray(whole + (rank < left))


def moved(snapshot: Snapshot, wanted: Ints) -> Ints:
    """Return (N,) machines after instances were moved towards the wanted numbers, as far as there is room.

    The last shards of a job leave a platform first. Those that move are taken off, then go one after another, the
    largest first, to the machine of their new platform with the smallest allocated share of its threads; one that would
    raise that above the largest share before stays where it was, and so that its room is still there, everything is
    placed anew without it among those that move.

    Parameters
    ----------
    snapshot : what runs where
    wanted : (J, P) instances by job and platform
    """
    leaving, goals = _leaving(snapshot, wanted)
    order = np.lexsort((leaving, -snapshot.quota_vcpu[leaving]))
    leaving, goals = leaving[order], goals[order]
    while True:
        machine, has_room = _placed(snapshot, leaving, goals)
        if has_room.all():
            return machine
        leaving, goals = leaving[has_room], goals[has_room]


def simulate(snapshot: Snapshot, machine: Ints) -> tuple[Floats, Floats]:
    """Return (J, P) cycles and instructions of a day in which the instances run on these machines.

    Parameters
    ----------
    snapshot, machine : as in `instance_sums`
    """
    sums = instance_sums(snapshot, machine)
    where = snapshot.job, snapshot.machine_platform[machine]
    totals = np.zeros((2, len(snapshot.jobs), len(snapshot.platforms)))
    for total, values in zip(totals, sums, strict=True):
        np.add.at(total, where, values)
    return totals[0], totals[1]


def instance_sums(snapshot: Snapshot, machine: Ints) -> tuple[Floats, Floats]:
    """Return (N,) cycles and instructions of each instance in a day in which the instances run on these machines.

    Parameters
    ----------
    snapshot : what runs
    machine : (N,) where
    """
    world = _single_day(snapshot.day.world)
    timeline = from_placement(world, snapshot.day.machines.count, snapshot.job, machine, snapshot.shard)
    cycles, instructions = _day_sums(snapshot, world, timeline, (CYCLES, INSTRUCTIONS))
    return cycles, instructions


def _day_sums(
    snapshot: Snapshot, world: World, timeline: Timeline, columns: tuple[int, ...], around: Ints | None = None
) -> Floats:
    """Return (columns, stays) sums of a day; 0 where only the power domains of the machines `around` are simulated."""
    day = day_of(world, snapshot.day.machines, snapshot.day.jobs, timeline)
    arm = Arm(snapshot.machine_from, np.full(timeline.job.size, NEVER))
    sums = np.zeros((len(columns), timeline.job.size))
    for block in run_arm(day, arm, around=around):
        stays = day.order[block.stays]
        for i, column in enumerate(columns):
            np.add.at(sums[i], stays, block.rows[:, column])
    return sums


def spent_for(instructions: Floats, cycles: Floats, executed: Floats, clock_hz: Floats) -> float:
    """Return the time, in seconds of the clocks, that fixed instructions of each job take at what was measured.

    Parameters
    ----------
    instructions : (J,) of each job, to be executed
    cycles, executed : (J, P) measured cycles and instructions
    clock_hz : (P,) of each platform; ones for cycles in place of time

    Examples
    --------
    >>> spent_for(np.array([8.0]), np.array([[2.0, 6.0]]), np.array([[2.0, 2.0]]), np.ones(2))
    16.0
    """
    done = executed.sum(axis=1)
    per_instruction = (cycles / clock_hz).sum(axis=1) / np.where(done > 0, done, 1.0)
    return float((instructions * per_instruction)[done > 0].sum())


def _placed(snapshot: Snapshot, leaving: Ints, goals: Ints) -> tuple[Ints, Bools]:
    """Return (N,) machines after these instances went, in this order, and which of them found room."""
    machine, quota = snapshot.machine.copy(), snapshot.quota_vcpu
    allocated = np.bincount(machine, quota, snapshot.vcpus.size)
    most = float((allocated / snapshot.vcpus).max(initial=1.0))
    allocated -= np.bincount(machine[leaving], quota[leaving], snapshot.vcpus.size)
    heaps = [
        [(float(allocated[m] / snapshot.vcpus[m]), int(m)) for m in np.flatnonzero(snapshot.machine_platform == p)]
        for p in range(len(snapshot.platforms))
    ]
    for heap in heaps:
        heapq.heapify(heap)
    has_room = np.zeros(leaving.size, np.bool_)
    for k, (instance, goal) in enumerate(zip(leaving.tolist(), goals.tolist(), strict=True)):
        share, target = heaps[goal][0] if heaps[goal] else (np.inf, -1)
        after = share + quota[instance] / snapshot.vcpus[target]
        if after <= most:
            heapq.heapreplace(heaps[goal], (after, target))
            machine[instance], has_room[k] = target, True
    return machine, has_room


def _typical_noon(world: World, machine_from: Ints, places: Places, threads: Floats) -> int:
    """Return the epoch of the noon at which platforms have the threads that they have in the mean of all noons."""
    noons = ((np.arange(max(1, round(world.horizon_s / DAY_S))) + 0.5) * DAY_S / world.epoch_s).astype(np.int64)
    noons = np.minimum(noons, world.epochs - 1)
    platform = np.where(machine_from <= noons[:, None], places.platform[:, 1], places.platform[:, 0])
    has = np.array([np.bincount(at_noon, threads[at_noon], threads.size) for at_noon in platform])
    return int(noons[np.abs(has - has.mean(axis=0)).sum(axis=1).argmin()])


def _single_day(world: World) -> World:
    """Return a world of a day, which is its only counting window."""
    window = Window("day", 0.0, DAY_S)
    return replace(world, horizon_s=DAY_S, recording=replace(world.recording, windows=(window,)))


def _leaving(snapshot: Snapshot, wanted: Ints) -> tuple[Ints, Ints]:
    """Return instances that leave their platform, and the platforms that they go to."""
    surplus = snapshot.instances(snapshot.machine) - wanted
    platform = snapshot.machine_platform[snapshot.machine]
    order = np.lexsort((-snapshot.shard, platform, snapshot.job))
    cell = snapshot.job[order] * len(snapshot.platforms) + platform[order]
    place_in_cell = np.arange(order.size) - np.searchsorted(cell, cell)
    leaving = order[place_in_cell < np.maximum(surplus, 0).ravel()[cell]]
    lacking = np.maximum(-surplus, 0)
    goals = np.repeat(np.tile(np.arange(len(snapshot.platforms)), len(snapshot.jobs)), lacking.ravel())
    return leaving, goals


def neighbours(snapshot: Snapshot, job: int, beside: int) -> Ints:
    """Return the instances of a job that share a machine with another job, in order.

    Parameters
    ----------
    snapshot : what runs where
    job, beside : numbers of the jobs
    """
    return np.flatnonzero((snapshot.job == job) & np.isin(snapshot.machine, snapshot.machine[snapshot.job == beside]))


def moved_apart(snapshot: Snapshot, job: int, beside: int) -> Ints:
    """Return (N,) machines after a job's instances went where the other job is not, as far as there is room.

    An instance goes to a machine of the same platform, and of these to the one whose allocated share of its threads
    will be nearest to that of the machine that it leaves: the load beside which it runs is to stay what it was. None is
    filled beyond the largest share before. One that finds no room stays, and only what one has left is free for the
    next.

    Parameters
    ----------
    snapshot, job, beside : as in `neighbours`
    """
    machine, quota = snapshot.machine.copy(), snapshot.quota_vcpu
    allocated = np.bincount(machine, quota, snapshot.vcpus.size)
    most = float((allocated / snapshot.vcpus).max(initial=1.0))
    without = ~np.isin(np.arange(snapshot.vcpus.size), snapshot.machine[snapshot.job == beside])
    for instance in neighbours(snapshot, job, beside).tolist():
        here = int(machine[instance])
        after = (allocated + quota[instance]) / snapshot.vcpus
        alike = snapshot.machine_platform == snapshot.machine_platform[here]
        targets = np.flatnonzero(without & alike & (after <= most))
        if not targets.size:
            continue
        target = int(targets[np.abs(after[targets] - allocated[here] / snapshot.vcpus[here]).argmin()])
        allocated[here] -= quota[instance]
        allocated[target] += quota[instance]
        machine[instance] = target
    return machine


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Instances of one job put on machines in place of others, drawn with equal chance."""

    job: int
    """Of the newcomers."""
    left: Bools
    """(N,) instances that left."""
    threads: Floats
    """(M,) hardware threads that these kept busy; the newcomers keep as many busy in the mean."""
    machine: Ints
    """Where each newcomer went."""
    shard: Ints


def busy_threads(snapshot: Snapshot) -> Floats:
    """Return (N,) hardware threads that each instance keeps busy in the mean of the day.

    Parameters
    ----------
    snapshot : what runs where
    """
    world = _single_day(snapshot.day.world)
    timeline = from_placement(world, snapshot.day.machines.count, snapshot.job, snapshot.machine, snapshot.shard)
    return np.asarray(_day_sums(snapshot, world, timeline, (CPU_S,))[0] / DAY_S)


def exchange(
    snapshot: Snapshot, job: int, busy: Floats, threads: float, *, machines: Ints, rng: np.random.Generator
) -> Exchange:
    """Return instances of a job in place of others on some machines.

    On each machine as many residents leave as keep `threads` busy in the mean; all have the same chance. Their number
    is fixed for each machine, so the threads that leave are those of the machine's mean resident. Newcomers are whole
    instances, whose number is rounded at random so that they keep as many threads busy in the mean; data are those of
    the job's instances, drawn again.

    Parameters
    ----------
    snapshot : what runs where
    job : of the newcomers
    busy : (N,) as `busy_threads` returns it
    threads : kept busy by those that leave a machine, in the mean
    machines : where; those with one resident are left as they are
    rng : random draws
    """
    own = np.flatnonzero(snapshot.job == job)
    mean_busy = float(busy[own].mean())
    left, changed = np.zeros(snapshot.job.size, np.bool_), np.zeros(snapshot.vcpus.size)
    where: list[int] = []
    order = np.argsort(snapshot.machine, kind="stable")
    bounds = np.searchsorted(snapshot.machine[order], np.arange(snapshot.vcpus.size + 1))
    for machine in machines.tolist():
        residents = order[bounds[machine] : bounds[machine + 1]]
        if residents.size < 2:
            continue
        number = round(threads * residents.size / max(float(busy[residents].sum()), 1e-300))
        going = rng.permutation(residents)[: min(max(number, 1), residents.size - 1)]
        left[going], changed[machine] = True, busy[going].sum()
        where += [machine] * int(changed[machine] / mean_busy + rng.random())
    return Exchange(job, left, changed, np.array(where, np.int64), rng.choice(snapshot.shard[own], len(where)))


def exchanged_sums(snapshot: Snapshot, change: Exchange, around: Ints | None = None) -> tuple[Floats, Floats]:
    """Return (N,) cycles and instructions of each instance in a day on which others took some instances' places.

    They come after the first epoch, so that all who stay keep their caches and memory as on the day without them, and
    every random number of theirs is the same.

    Parameters
    ----------
    snapshot, change : what runs where, and who goes and comes
    around : only the power domains of these machines; all others' sums are 0
    """
    world, stays = _single_day(snapshot.day.world), snapshot.job.size
    placed = from_placement(
        world,
        snapshot.day.machines.count,
        np.concatenate([snapshot.job, np.full(change.machine.size, change.job)]),
        np.concatenate([snapshot.machine, change.machine]),
        np.concatenate([snapshot.shard, change.shard]),
    )
    comes = np.arange(placed.job.size) >= stays
    goes = np.concatenate([change.left, np.zeros(change.machine.size, np.bool_)])
    timeline = replace(
        placed,
        start_epoch=np.where(comes, 1, placed.start_epoch),
        start_s=np.where(comes, world.epoch_s, placed.start_s),
        end_epoch=np.where(goes, 1, placed.end_epoch),
        end_s=np.where(goes, world.epoch_s, placed.end_s),
    )
    cycles, instructions = _day_sums(snapshot, world, timeline, (CYCLES, INSTRUCTIONS), around)[:, :stays]
    return cycles, instructions
