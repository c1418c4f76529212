"""The arms of an experiment on one day: who has the feature, and from when.

All arms share machines, jobs, placement, churn and every random draw; they differ only in which machines (or stays)
have the feature and from when. That is sound because placement looks at requests only.
"""

from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from models.fleet.world import World
from sim.fleet.day import Day
from sim.fleet.rollout import acting, plan_crossover

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
