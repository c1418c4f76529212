"""Hardware under trial: the same day with new processors on a few machines, on none, and on all that may get them.

Machines are exchanged under what was placed on them, so that the three days have the same stays, churn and noise.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from models.arrays import Ints
from models.errors import InputError
from models.fleet.inventory import Machines
from models.profiling.served import HardwareTrial
from models.profiling.world import ProfileWorld
from models.randomness import stream
from sim.fleet.day import Day, prepare

Who = Literal["drawn", "nowhere", "everywhere"]
"""Which machines have the new processors: those drawn for the trial, none, or all that may get them."""


def prepare_trial(world: ProfileWorld, who: Who = "drawn") -> Day:
    """Return the day of a profiled fleet, with the hardware that is under trial; as it is in a world without a trial.

    Parameters
    ----------
    world : what is asked
    who : which machines have the new processors
    """
    day = prepare(world)
    if world.trial is None:
        return day
    return replace(day, machines=exchanged(day.machines, world.trial, chosen(world, day.machines, who)))


def chosen(world: ProfileWorld, machines: Machines, who: Who) -> Ints:
    """Return which machines have the new processors, in ascending order.

    Parameters
    ----------
    world : with a trial
    machines : as they are without it
    who : which of those on a platform that may be replaced
    """
    if world.trial is None:
        raise InputError("trial: the world has none")
    old = [i for i, name in enumerate(machines.platform_names) if name in world.trial.platforms]
    may = np.flatnonzero(np.isin(machines.platform, old))
    if who == "everywhere":
        return may
    if who == "nowhere":
        return may[:0]
    wanted = world.trial.machines
    if wanted > may.size:
        raise InputError(f"trial.machines: should be at most {may.size}, the machines of those platforms, got {wanted}")
    return np.sort(stream(world.seed, "machines under trial").choice(may, wanted, replace=False))


def exchanged(machines: Machines, trial: HardwareTrial, which: Ints) -> Machines:
    """Return the fleet in which `which` have the trial's processors; room for quotas stays what it was.

    Parameters
    ----------
    machines : on old platforms
    trial : what replaces them
    which : numbers of machines whose platforms the trial replaces

    Examples
    --------
    >>> from models.fleet.inventory import build_machines
    >>> from models.fleet.world import Fleet, World
    >>> machines = build_machines(World(fleet=Fleet(3)))
    >>> new = exchanged(machines, HardwareTrial({"haswell_2698v3": "skylake_6148"}), np.array([1]))
    >>> new.platform, new.vcpus
    (array([0, 1, 0]), array([64., 64., 64.]))
    """
    names = tuple(dict.fromkeys([*machines.platform_names, *trial.platforms.values()]))
    becomes = np.array([names.index(trial.platforms.get(name, name)) for name in machines.platform_names])
    platform = machines.platform.copy()
    platform[which] = becomes[platform[which]]
    return replace(machines, platform_names=names, platform=platform)
