"""Test clusters that a real team could build, other than by switching the feature on where instances already run.

Each is a day of its own: the same jobs and shards, on machines that were added, packed full, or left otherwise empty.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from models.jobs import Jobs
from models.machines import Machines, build_machines, replaced
from models.scenario import World
from sim.experiment import counter_columns, instance_columns
from sim.fleet import Arm, Day, day_of, run_arm
from sim.timeline import from_placement

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def measure(day: Day, arm: Arm, around: Ints | None = None, threads: int | None = None) -> pd.DataFrame:
    """Return the counters of an arm, joined with where and when: columns of tables `counters` and `instances`.

    Parameters
    ----------
    day, arm : what happens, and who has the feature
    around : machines; only their power domains are simulated
    threads : at most this many
    """
    blocks = [_frame(counter_columns(day, block)) for block in run_arm(day, arm, threads, around)]
    return pd.concat(blocks, ignore_index=True).merge(stays(day), on="residence")


def stays(day: Day) -> pd.DataFrame:
    """Return table `instances` of a day."""
    return _frame(instance_columns(day))


def added(day: Day, which: Ints) -> Day:
    """Return the day in which all that runs on `which` has migrated to new machines (section 5.2.2).

    The new machines stand in racks of their own and have conditions of their own; co-runners stay together.
    """
    return day_of(day.world, replaced(day.machines, day.world, which), day.jobs, day.timeline)


def packed(day: Day, instances: Ints) -> Day:
    """Return the day in which these instances alone run, packed by falling quota onto as few new machines as will do.

    This is the compact test cluster that Lee et al. (2018, section 5.2.2) warn of: nothing is left free, and no other
    job is there.
    """
    stay = np.unique(day.timeline.instance, return_index=True)[1]
    stay = stay[np.isin(day.timeline.instance[stay], instances)]
    job, shard = day.timeline.job[stay], day.timeline.shard[stay]
    machine = first_fit(day.jobs.instance_quota_vcpu[job], float(day.machines.vcpus.min()))
    return _static(day.world, day.jobs, job, machine, shard)


def alone(day: Day, jobs: Ints, copies: int) -> Day:
    """Return the day in which `copies` instances of each job run, each on a machine that is otherwise empty."""
    job = np.repeat(jobs, copies)
    return _static(day.world, day.jobs, job, np.arange(job.size), None)


def first_fit(size: Floats, capacity: float) -> Ints:
    """Return the bin of each item, filling bins in order of falling size.

    Examples
    --------
    >>> first_fit(np.array([4.0, 8.0, 6.0, 2.0]), 10.0)
    array([1, 0, 1, 0])
    """
    room: list[float] = []
    where = np.empty(size.size, np.int64)
    for item in np.argsort(-size, kind="stable"):
        fits = [bin_ for bin_, free in enumerate(room) if free >= size[item]]
        if not fits:
            fits = [len(room)]
            room.append(capacity)
        where[item] = fits[0]
        room[fits[0]] -= size[item]
    return where


def _static(world: World, jobs: Jobs, job: Ints, machine: Ints, shard: Ints | None) -> Day:
    count = int(machine.max()) + 1
    machines = _fresh(world, count)
    return day_of(world, machines, jobs, from_placement(world, count, job, machine, shard))


def _fresh(world: World, count: int) -> Machines:
    return build_machines(replace(world, fleet=replace(world.fleet, machines=count)))


def _frame(columns: object) -> pd.DataFrame:
    import pyarrow as pa

    return pa.table(columns).to_pandas(strings_to_categorical=False)
