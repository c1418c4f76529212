"""A collector at work on a fleet: where it goes and what it takes, or only the cycles that each visit counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from models.errors import InputError
from sim.fleet.arms import Block, Visits
from sim.profiling.collector import VisitPlan, plan_visits
from sim.profiling.draws import uniforms
from sim.profiling.rates import sample_cost_cycles, sampled_events, samples_per_s
from sim.profiling.register import Register, machine_register
from sim.profiling.sampling import Sampler, sample_keys, stands_for
from sim.profiling.setting import ProfileSetting
from sim.profiling.visits import APPLICATIONS, DAEMONS, SHARES, visited


@dataclass(frozen=True, slots=True)
class Collection:
    """A collector at work on a fleet: where it goes, at which rates, and what it takes."""

    register: Register
    plan: VisitPlan
    sampler: Sampler
    visits: Visits

    @classmethod
    def of(cls, setting: ProfileSetting) -> "Collection":
        """Return the collector of a setting's world at work on it."""
        world, day, software = setting.world, setting.day, setting.software
        register = machine_register(world, day, setting.arm, software.places)
        plan = plan_visits(world, day, register, samples_per_s(world, software.places.platforms))
        sampler = Sampler(
            world=world,
            day=day,
            register=register,
            plan=plan,
            programs=software.programs,
            builds=software.builds,
            places=software.places,
            layout=setting.layout,
            rates=setting.rates,
        )
        answered = plan.answered
        return cls(register, plan, sampler, Visits(plan.machine[answered], plan.epoch[answered], setting.factors))

    def view(self, block: Block, visits: Visits) -> Block:
        """Return a block as this collector sees it, of a fleet that was simulated for several.

        Parameters
        ----------
        block : simulated with `visits`
        visits : those of all collectors
        """
        bounds = [block.machines.start, block.machines.stop]
        epochs = block.epoch_sums.shape[1]
        every = (visits.machine * epochs + visits.epoch)[slice(*np.searchsorted(visits.machine, bounds))]
        mine = slice(*np.searchsorted(self.visits.machine, bounds))
        at = np.searchsorted(every, (self.visits.machine * epochs + self.visits.epoch)[mine])
        return replace(
            block,
            visit_sums=block.visit_sums[at],
            visit_rows=block.visit_rows[at],
            visit_power_w=block.visit_power_w[at],
        )


def visits_of(collections: Sequence[Collection]) -> Visits:
    """Return the visits of several collectors to the same fleet, each machine and epoch once."""
    pairs = [np.column_stack([collection.visits.machine, collection.visits.epoch]) for collection in collections]
    machine, epoch = np.unique(np.concatenate(pairs), axis=0).T
    return Visits(machine, epoch, collections[0].visits.software)


_CYCLES = 0


def cycles_of_visits(setting: ProfileSetting, collection: Collection, block: Block) -> pd.DataFrame:
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
    """
    world, register, plan = setting.world, collection.register, collection.plan
    events = sampled_events(world)
    if events != ("cycles",):
        raise InputError(f"cycles must be the only event, got {', '.join(events)}")
    visits = visited(setting.day, register, plan, block, setting.rows)
    per_sample = stands_for(setting.rates, plan.names, register.platform_names, events)[
        visits.collection, visits.platform, 0
    ]
    drawn = uniforms(sample_keys(world, visits.stay, visits.epoch[visits.of], events)[:, 0])
    residents = np.floor(visits.totals[:, _CYCLES] / per_sample[visits.of] + drawn)
    count = np.bincount(visits.of, residents, visits.count)
    cost = np.array([sample_cost_cycles(world.sheets[name], "cycles") for name in register.platform_names])[
        visits.platform
    ]
    for kind, share in enumerate(SHARES):
        own = share * visits.vcpus * visits.frequency_hz * world.epoch_s + (count * cost if kind == DAEMONS else 0.0)
        who = setting.day.timeline.job.size + len(APPLICATIONS) * visits.machine + kind
        count += np.floor(own / per_sample + uniforms(sample_keys(world, who, visits.epoch, events)[:, 0]))
    value = count * per_sample * plan.weight[visits.visit]
    return pd.DataFrame({"visit": visits.visit, "value": value, "frequency_hz": visits.frequency_hz})
