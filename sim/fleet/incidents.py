"""Incidents of machines and regime shifts of jobs: drawn for the whole horizon before anything is simulated."""

import numpy as np

from models.arrays import DAY_S, Floats
from models.fleet.world import World
from models.randomness import stream
from sim.fleet.layout import RESOURCES, SHIFT, SPELL, Records


def machine_spells(world: World, machines: int) -> Records:
    """Return the incidents of machines: they begin with an epoch, at a constant rate, and last whole epochs.

    Incidents under way at time 0 are among them, so the first epoch is like any other. More machines change none of
    those before.

    Parameters
    ----------
    world : rates, sizes and mean length
    machines : how many

    Returns
    -------
    array of `sim.fleet.layout.SPELL`, by machine, then start
    """
    given = world.incidents
    sizes = (given.memory_per_machine_day, given.memory_log_sd), (given.clock_per_machine_day, given.clock_log_sd)
    spells = np.concatenate(
        [_spells(world, machines, resource, rate, log_sd) for resource, (rate, log_sd) in enumerate(sizes)]
    )
    order = np.lexsort((spells["resource"], spells["start"], spells["machine"]))
    return np.asarray(spells[order])


def _spells(world: World, machines: int, resource: int, rate: float, log_sd: float) -> Records:
    """Return the incidents of one resource, by machine."""
    name = RESOURCES[resource]
    mean = world.incidents.duration_s / world.epoch_s  # epochs
    span = world.epochs + mean - 1.0  # starts in the horizon, and those before it whose incident reaches into it
    number = stream(world.seed, f"number of {name} incidents").poisson(rate * span * world.epoch_s / DAY_S, machines)
    spells = np.zeros(int(number.sum()), SPELL)
    at = span * stream(world.seed, f"starts of {name} incidents").random(spells.size) - (mean - 1.0)
    length = stream(world.seed, f"lengths of {name} incidents").geometric(min(1.0, 1.0 / mean), spells.size)
    size = stream(world.seed, f"sizes of {name} incidents").standard_normal(spells.size)
    spells["machine"], spells["resource"] = np.repeat(np.arange(machines), number), resource
    spells["start"] = np.maximum(0.0, np.floor(at))
    spells["end"] = np.minimum(world.epochs, spells["start"] + length)
    spells["factor"] = np.exp(log_sd * np.abs(size))
    return spells


def job_shifts(world: World, jobs: int) -> Records:
    """Return the regime shifts of jobs: at a constant rate, each from its epoch to the end.

    Parameters
    ----------
    world : rate and size
    jobs : how many

    Returns
    -------
    array of `sim.fleet.layout.SHIFT`, by job, then epoch
    """
    given, days = world.incidents, world.horizon_s / DAY_S
    number = stream(world.seed, "number of regime shifts").poisson(given.shifts_per_job_day * days, jobs)
    shifts = np.zeros(int(number.sum()), SHIFT)
    shifts["job"] = np.repeat(np.arange(jobs), number)
    shifts["epoch"] = np.floor(world.epochs * stream(world.seed, "times of regime shifts").random(shifts.size))
    size = stream(world.seed, "sizes of regime shifts").standard_normal(shifts.size)
    shifts["factor"] = np.exp(given.shift_log_sd * size)
    return np.asarray(shifts[np.lexsort((shifts["epoch"], shifts["job"]))])


def levels(shifts: Records, epochs: int, jobs: int) -> Floats:
    """Return each job's level relative to the first, before any shift: 1 until its first shift.

    Parameters
    ----------
    shifts : of `sim.fleet.layout.SHIFT`
    epochs, jobs : how many

    Returns
    -------
    (epochs, jobs) array, dimensionless
    """
    factor = np.ones((epochs, jobs))
    np.multiply.at(factor, (shifts["epoch"], shifts["job"]), shifts["factor"])
    return np.cumprod(factor, axis=0, dtype=np.float64)
