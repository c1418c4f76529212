"""Which machines or instances get the feature, and when; shares no random draw with placement."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import simpy

from models.arrays import Bools, Floats, Ints
from models.fleet.machines import Machines
from models.fleet.world import World
from models.randomness import stream


@dataclass(frozen=True, slots=True)
class RollOut:
    """The waves, each a time and who gets the feature then, and since when each has it (NaN: not yet).

    `machine_from_s` has one entry per machine and `instance_from_s` one per instance; the waves name instances if
    `by_instance`, else machines.
    """

    waves: tuple[tuple[float, Ints], ...]
    by_instance: bool
    machine_from_s: Floats
    instance_from_s: Floats


def plan_roll_out(world: World, machines: Machines, instances: int) -> RollOut:
    """Return who is to get the feature when: equal waves of machines, racks or instances drawn at random.

    Parameters
    ----------
    world : seed and feature; without a feature there are no waves
    machines : M machines and their racks
    instances : how many instances there are, those that arrive later included
    """
    machine_from_s, instance_from_s = np.full(machines.count, np.nan), np.full(instances, np.nan)
    if world.feature is None:
        return RollOut((), False, machine_from_s, instance_from_s)
    rollout = world.feature.rollout
    unit = np.arange(instances) if rollout.unit == "instance" else _unit(world, machines)
    chosen = _chosen(world, unit)
    if world.periods:
        first = np.argmax(plan_crossover(world, machines), axis=1)
        part = np.isin(unit, chosen)
        waves = tuple((world.periods[k][0], np.flatnonzero(part & (first == k))) for k in (0, 1))
        return RollOut(waves, False, machine_from_s, instance_from_s)
    waves = tuple(
        (rollout.start_s + number * rollout.interval_s, np.flatnonzero(np.isin(unit, part)))
        for number, part in enumerate(np.array_split(chosen, rollout.waves))
    )
    return RollOut(waves, rollout.unit == "instance", machine_from_s, instance_from_s)


def plan_crossover(world: World, machines: Machines, number: int = 0) -> Bools:
    """Return who is scheduled to have the feature in which period of the world's crossover.

    Of two periods after each other exactly one is with the feature, and a fair coin of the machine's (or rack's) own
    for each such pair says which. Power domains are few, so of those a random half begins with it. Machines that take
    no part never have it.

    Parameters
    ----------
    world : seed, and a feature whose roll-out says periods and share
    machines : M machines, their racks and power domains
    number : of the schedule, 0 is the recorded one; odd ones mirror the one before, others are another draw

    Returns
    -------
    (M, P) array, P the length of `world.periods`
    """
    unit, pairs, drawn = _unit(world, machines), len(world.periods) // 2, 2 * (number // 2)
    first = stream(world.seed, f"crossover {drawn}").random((int(unit.max()) + 1, pairs))[unit] < 0.5
    if world.feature is not None and world.feature.rollout.unit == "domain":
        first = _halves(world, drawn, int(unit.max()) + 1, pairs)[unit]
    first = ~first if number % 2 else first
    on = np.stack([first, ~first], axis=2).reshape(unit.size, 2 * pairs)
    return np.asarray(on & np.isin(unit, _chosen(world, unit))[:, None])


def acting(world: World, scheduled: Bools) -> Bools:
    """Return in which epochs the feature acts on whom: `settle_s` after each switch the state before it still does.

    Parameters
    ----------
    world : epochs, periods and the feature's `settle_s`
    scheduled : (M, P) array, who is to have it in which period; outside of periods nobody is

    Returns
    -------
    (M, epochs) array; what is on at time 0 acts from then on
    """
    of_epoch, settle_s = np.full(world.epochs, -1), world.feature.settle_s if world.feature else 0.0
    for k, (start_s, end_s) in enumerate(world.periods):
        of_epoch[round(start_s / world.epoch_s) : round(end_s / world.epoch_s)] = k
    before = np.maximum(np.arange(world.epochs) - round(settle_s / world.epoch_s), 0)
    none = np.zeros((len(scheduled), 1), np.bool_)
    return np.ascontiguousarray(np.hstack([scheduled, none])[:, of_epoch[before]])


def _halves(world: World, number: int, units: int, pairs: int) -> Bools:
    """Return which units are on first in each pair, (units, pairs): a random half, of an odd number either half."""
    rng = stream(world.seed, f"crossover {number}")
    order = np.argsort(rng.random((units, pairs)), axis=0, kind="stable")
    half: Bools = np.argsort(order, axis=0, kind="stable") < (units + rng.integers(0, 2, pairs)) // 2
    return half


def _unit(world: World, machines: Machines) -> Ints:
    """Return to which unit of the roll-out each machine belongs: itself, its rack or its power domain."""
    unit = "machine" if world.feature is None else world.feature.rollout.unit
    return {"rack": machines.rack, "domain": machines.power_domain}.get(unit, np.arange(machines.count))


def _chosen(world: World, unit: Ints) -> Ints:
    """Return the units that get the feature, in random order."""
    units, share = np.unique(unit), world.feature.rollout.share if world.feature is not None else 0.0
    return stream(world.seed, "roll-out").permutation(units)[: round(share * len(units))]


def roll_out(clock: simpy.Environment, rollout: RollOut) -> Generator[simpy.Event, None, None]:
    """Switch the feature on, wave by wave (a SimPy process).

    Examples
    --------
    >>> clock = simpy.Environment()
    >>> plan = RollOut(((5.0, np.array([1])),), False, np.full(2, np.nan), np.full(0, np.nan))
    >>> _ = clock.process(roll_out(clock, plan))
    >>> clock.run(until=9.0)
    >>> plan.machine_from_s
    array([nan,  5.])
    """
    from_s = rollout.instance_from_s if rollout.by_instance else rollout.machine_from_s
    for time_s, chosen in rollout.waves:
        yield clock.timeout(max(time_s - clock.now, 0.0))
        from_s[chosen] = time_s
