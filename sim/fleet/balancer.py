"""Balancers that send a job's load to its instances by the speed of their platforms.

Speeds are known beforehand, as weights that an operator sets; what neighbours, clocks and conditions make of them is
not. So a job's load may be shared out over all machines of an arm before it is simulated, and power domains stay
independent.
"""

import numpy as np

from models.arrays import Floats
from models.fleet.inventory import REFERENCE_FREQUENCY_HZ, REFERENCE_LATENCY_S
from sim.fleet.day import Day
from sim.fleet.layout import Records


def balanced(day: Day, machines: Records, platforms: Records, core_cpi: Floats) -> tuple[Floats, Floats]:
    """Return the load of an instance of weight 1, and the weight of an instance on each platform.

    An instance's weight is its job's speed on the platform relative to that on the first, alone and with the reference
    share of cache; 1 for jobs that are always saturated, which have no load to be shared out. All instances of a job
    have its whole load together.

    Parameters
    ----------
    day : jobs, load and timeline
    machines : (M,) of `sim.fleet.layout.MACHINE`: their platforms, and the epoch from which they have the second
    platforms : (P,) of `sim.fleet.layout.PLATFORM`
    core_cpi : (P, J) array, from `sim.fleet.day.core_table`

    Returns
    -------
    (epochs, J) array, relative to the job's mean load of an instance; (P, J) array, dimensionless
    """
    jobs = day.jobs
    core_s = np.maximum(jobs.core_cpi * core_cpi, platforms["least_cpi"][:, None]) / platforms["max_hz"][:, None]
    latency_s: Floats = platforms["latency_s"]
    overlap: Floats = platforms["overlap"]
    farther = latency_s / REFERENCE_LATENCY_S / overlap
    memory_s = (jobs.reference_cpi - jobs.core_cpi) / REFERENCE_FREQUENCY_HZ * farther[:, None]
    speed = 1.0 / (core_s + memory_s)
    weight = np.where(jobs.open_load, speed / speed[0], 1.0)
    return _shared_out(day, machines, weight), weight


def _shared_out(day: Day, machines: Records, weight: Floats) -> Floats:
    """Return the load of an instance of weight 1, (epochs, J)."""
    timeline, epoch_s = day.timeline, day.world.epoch_s
    job, start, end = (column[day.order] for column in (timeline.job, timeline.start_epoch, timeline.end_epoch))
    its = machines[timeline.machine[day.order]]
    change = np.clip(its["feature_from"], start, end)
    before, after = (weight[its["platform"][:, k], job] for k in (0, 1))
    present, weighed = (np.zeros((day.world.epochs + 1, day.jobs.count)) for _ in range(2))
    ones = np.ones(job.size)
    for table, old, new in ((present, ones, ones), (weighed, before, after)):
        for epoch, step in ((start, old), (change, new - old), (end, -new)):
            np.add.at(table, (epoch, job), step)
        np.cumsum(table, axis=0, out=table)
    for epoch, first in ((start, True), (end - 1, False)):  # on the event-driven machine stays have parts of these
        absent = 1.0 - day.present_s(day.order, epoch, epoch + 1) / epoch_s
        absent = np.where((epoch > start) | first, absent, 0.0)
        np.add.at(present, (epoch, job), -absent)
        np.add.at(weighed, (epoch, job), -absent * np.where(epoch < change, before, after))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present > 0.0, weighed / present, 1.0)
    return np.asarray(day.load / mean[:-1])
