"""Which machines or instances get the feature, and when; shares no random draw with placement."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import simpy

from models.machines import Floats, Ints, Machines
from models.randomness import stream
from models.scenario import World


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

    Examples
    --------
    >>> from models.machines import build_machines
    >>> from models.scenario import Feature, Fleet, Rollout
    >>> half = Feature("new", rollout=Rollout(share=0.5, waves=2, interval_s=60.0))
    >>> world = World(fleet=Fleet(machines=8), feature=half)
    >>> [(time_s, len(chosen)) for time_s, chosen in plan_roll_out(world, build_machines(world), 9).waves]
    [(0.0, 2), (60.0, 2)]
    """
    machine_from_s, instance_from_s = np.full(machines.count, np.nan), np.full(instances, np.nan)
    if world.feature is None:
        return RollOut((), False, machine_from_s, instance_from_s)
    rollout = world.feature.rollout
    unit = {"machine": np.arange(machines.count), "rack": machines.rack, "instance": np.arange(instances)}[rollout.unit]
    units = np.unique(unit)
    chosen = stream(world.seed, "roll-out").permutation(units)[: round(rollout.share * len(units))]
    waves = tuple(
        (rollout.start_s + number * rollout.interval_s, np.flatnonzero(np.isin(unit, part)))
        for number, part in enumerate(np.array_split(chosen, rollout.waves))
    )
    return RollOut(waves, rollout.unit == "instance", machine_from_s, instance_from_s)


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
