"""Cycles that each visit counts, without the functions that they fell on: as `Sampler` counts them, and cheaper."""

import numpy as np
import pandas as pd

from models.errors import InputError
from sim.fleet.fleet import Block
from sim.profiling.collection import Collection
from sim.profiling.noise import uniforms
from sim.profiling.overhead import sample_cost_cycles
from sim.profiling.own import APPLICATIONS, DAEMONS, SHARES
from sim.profiling.rates import asked_events
from sim.profiling.sampling import sample_keys, stands_for
from sim.profiling.setting import Setting
from sim.profiling.visited import visited

_CYCLES = 0


def cycles_of_visits(setting: Setting, collection: Collection, block: Block) -> pd.DataFrame:
    """Return what a collector that counts cycles alone counts in each visit to a block's machines.

    Parameters
    ----------
    setting : of the collector's world
    collection : the collector; the first event that it asks for is cycles, and it asks for no other
    block : of the arm that was run with its answered visits

    Returns
    -------
    DataFrame
        visit, value (estimated cycles of the fleet), frequency_hz (mean of busy threads); one row for each answer.

    Raises
    ------
    ValueError
        If the collector counts other events too, whose samples would take time that is not known here.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from sim.fleet.fleet import run_arm
    >>> from sim.profiling.setting import example
    >>> asked = example().profiling
    >>> alone = replace(asked, collector=replace(asked.collector, events=("cycles",), stacks_per_s=0.0))
    >>> made = Collection.of(setting := Setting.of(replace(example(), profiling=alone)))
    >>> block = next(run_arm(setting.day, setting.arm, visits=made.visits))
    >>> len(cycles_of_visits(setting, made, block)) == made.visits.machine.size
    True
    """
    world, register, plan = setting.world, collection.register, collection.plan
    events = asked_events(world)
    if events != ("cycles",):
        raise InputError(f"cycles must be the only event, got {', '.join(events)}")
    seen = visited(setting.day, register, plan, block, setting.rows)
    each = stands_for(setting.rates, plan.names, register.platform_names, events)[seen.collection, seen.platform, 0]
    drawn = uniforms(sample_keys(world, seen.stay, seen.epoch[seen.of], events)[:, 0])
    residents = np.floor(seen.totals[:, _CYCLES] / each[seen.of] + drawn)
    count = np.bincount(seen.of, residents, seen.count)
    cost = np.array([sample_cost_cycles(name, "cycles") for name in register.platform_names])[seen.platform]
    for kind, share in enumerate(SHARES):
        own = share * seen.vcpus * seen.frequency_hz * world.epoch_s + (count * cost if kind == DAEMONS else 0.0)
        who = setting.day.timeline.job.size + len(APPLICATIONS) * seen.machine + kind
        count += np.floor(own / each + uniforms(sample_keys(world, who, seen.epoch, events)[:, 0]))
    value = count * each * plan.weight[seen.visit]
    return pd.DataFrame({"visit": seen.visit, "value": value, "frequency_hz": seen.frequency_hz})
