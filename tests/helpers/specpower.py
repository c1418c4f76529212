"""Power over load as SPECpower_ssj2008 measures it, of a machine that has some spec sheet."""

import numpy as np
from scipy.optimize import brentq

from models.fleet.inventory import build_machines
from models.fleet.world import Fleet, World
from sim.fleet import power, slots
from sim.fleet.day import platform_table
from sim.fleet.layout import Residents


def row_of(sheet):
    """What the kernel knows of a machine."""
    world = World(fleet=Fleet(1, {"mine": 1.0}), platforms={"mine": sheet})
    return platform_table(world, build_machines(world))[0]


def running(row, busy_share, clock_hz, stalled=0.0):
    """Package and wall watts of a machine whose threads are so busy at that clock."""
    hot = np.zeros((slots.FIELDS, 1))
    hot[slots.USE], hot[slots.FREQUENCY] = busy_share * row["threads"], clock_hz
    hot[slots.CORE_NOW], hot[slots.CPI] = 1.0 - stalled, 1.0
    here = Residents(hot, np.zeros((slots.MARKS, 1), np.int64), 1)
    return power.draw(here, row, 1.0, max(busy_share**2, 2.0 - 1.0 / max(busy_share, 0.5)), 0.0)


def busy_for(load):
    """Share of busy threads that does a load's share of the work of all: two threads of a core do 1.3 times one's."""

    def done(busy):
        paired = max(busy**2, 2.0 - 1.0 / busy) if busy > 0.5 else busy**2
        return busy * (2 / 1.3 * (1.0 - paired) + paired)

    return brentq(lambda busy: done(busy) - load, 0.0, 1.0)


def sustained_hz(row):
    """The highest clock with all threads computing: the all-core turbo, or less where processors keep their TDP."""
    most_hz = float(row["max_hz"])
    if running(row, 1.0, most_hz)[0] <= row["tdp_w"]:
        return most_hz
    return brentq(lambda clock_hz: running(row, 1.0, clock_hz)[0] - row["tdp_w"], float(row["min_hz"]), most_hz)


def curve_w(sheet, top_hz=None):
    """Watts at each load from idle to full in steps of a tenth, the clock as low as serves it.

    Parameters
    ----------
    top_hz : highest clock, by which the load is counted; None: the base clock, as turbo is off
    """
    row, top_hz = row_of(sheet), top_hz or sheet.base_frequency_hz
    loads = np.arange(11) / 10
    clocks = np.maximum(row["min_hz"], top_hz * np.sqrt(loads))
    return [running(row, busy_for(load * top_hz / clock), clock)[1] for load, clock in zip(loads, clocks, strict=True)]
