"""Test clusters that a real team could build, other than by switching the feature on where instances already run.

Each is a day of its own: the same jobs and shards, on machines that were added, packed full, or left otherwise empty.
"""

from dataclasses import replace

import numpy as np

from models.arrays import Floats, Ints
from models.errors import InputError
from models.fleet.inventory import Jobs, Machines, build_machines, replaced
from models.fleet.world import World
from sim.fleet.day import Day, day_of
from sim.fleet.timeline import from_placement


def added(day: Day, which: Ints) -> Day:
    """Return the day in which all that runs on `which` has migrated to new machines (section 5.2.2).

    The new machines stand in racks of their own and have conditions of their own; co-runners stay together.

    Parameters
    ----------
    day : before the migration
    which : numbers of machines; the new ones have the same
    """
    return day_of(day.world, replaced(day.machines, day.world, which), day.jobs, day.timeline)


def packed(day: Day, instances: Ints) -> Day:
    """Return the day in which these instances alone run, packed by falling quota onto as few new machines as will do.

    This is the compact test cluster that Lee et al. (2018, section 5.2.2) warn of: nothing is left free, and no other
    job is there. Instances are numbered anew, in their old order.

    Parameters
    ----------
    day : where they ran
    instances : their numbers; those that never ran are passed over

    Raises
    ------
    ValueError
        If no such instance ran.
    """
    stay = np.unique(day.timeline.instance, return_index=True)[1]
    stay = stay[np.isin(day.timeline.instance[stay], instances)]
    job, shard = day.timeline.job[stay], day.timeline.shard[stay]
    size = np.column_stack([day.jobs.instance_quota_vcpu[job], day.jobs.instance_memory_bytes[job]])
    quotas_vcpu = day.machines.vcpus.min() * day.world.fleet.overcommit
    capacity = np.array([quotas_vcpu, day.machines.memory_bytes.min()])
    return _static(day.world, day.jobs, job, first_fit(size, capacity), shard)


def alone(day: Day, jobs: Ints, copies: int) -> Day:
    """Return the day in which `copies` instances of each job run, each on a machine that is otherwise empty.

    Parameters
    ----------
    day : whose world and jobs
    jobs : numbers of jobs
    copies : instances of each
    """
    job = np.repeat(jobs, copies)
    return _static(day.world, day.jobs, job, np.arange(job.size), None)


def first_fit(size: Floats, capacity: Floats) -> Ints:
    """Return the bin of each item, filling bins in order of falling size.

    Parameters
    ----------
    size : (n, r) array, what each item needs of r resources; the first decides the order
    capacity : (r,) array, what a bin has; an item that is larger gets a bin of its own
    """
    room = np.empty((len(size), len(capacity)))
    where, bins = np.empty(len(size), np.int64), 0
    for item in np.argsort(-size[:, 0], kind="stable"):
        fits = np.flatnonzero((room[:bins] >= size[item]).all(axis=1))
        if fits.size == 0:
            room[bins] = capacity
            bins += 1
        where[item] = fits[0] if fits.size else bins - 1
        room[where[item]] -= size[item]
    return where


def _static(world: World, jobs: Jobs, job: Ints, machine: Ints, shard: Ints | None) -> Day:
    if not job.size:
        raise InputError("a test cluster needs at least one instance, got none")
    count = int(machine.max()) + 1
    machines = _fresh(world, count)
    return day_of(world, machines, jobs, from_placement(world, count, job, machine, shard))


def _fresh(world: World, count: int) -> Machines:
    return build_machines(replace(world, fleet=replace(world.fleet, machines=count)))
