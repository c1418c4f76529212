"""Instances of one job taken away from another job's machines, to see in simulation what it did to them."""

import numpy as np

from models.arrays import Ints
from sim.profiling.moving import Snapshot


def neighbours(snapshot: Snapshot, job: int, beside: int) -> Ints:
    """Return the instances of a job that share a machine with another job, in order.

    Parameters
    ----------
    snapshot : what runs where
    job, beside : numbers of the jobs

    Examples
    --------
    >>> from sim.profiling.setting import example
    >>> made = Snapshot.of(example())
    >>> found = neighbours(made, 0, 1)
    >>> bool(np.isin(made.machine[found], made.machine[made.job == 1]).all())
    True
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

    Examples
    --------
    >>> from sim.profiling.setting import example
    >>> made = Snapshot.of(example())
    >>> machine = moved_apart(made, 0, 1)
    >>> bool((machine[made.job != 0] == made.machine[made.job != 0]).all())
    True
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
