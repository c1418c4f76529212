"""A collector at work on a fleet: where it goes and what it takes; several may share one simulation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sim.fleet.fleet import Block, Visits
from sim.profiling.collector import Plan, plan_visits
from sim.profiling.rates import samples_per_s
from sim.profiling.register import Register, machine_register
from sim.profiling.sampling import Sampler
from sim.profiling.setting import Setting


@dataclass(frozen=True, slots=True)
class Collection:
    """A collector at work on a fleet: where it goes, at which rates, and what it takes.

    Examples
    --------
    >>> from sim.profiling.setting import example
    >>> made = Collection.of(Setting.of(example()))
    >>> bool((np.diff(made.visits.machine) >= 0).all()), made.plan.machine.size >= made.visits.machine.size
    (True, True)
    """

    register: Register
    plan: Plan
    sampler: Sampler
    visits: Visits

    @classmethod
    def of(cls, setting: Setting) -> "Collection":
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

        Examples
        --------
        >>> from sim.fleet.fleet import run_arm
        >>> from sim.profiling.setting import example
        >>> made = Collection.of(setting := Setting.of(example()))
        >>> block = next(run_arm(setting.day, setting.arm, visits=made.visits))
        >>> bool(np.array_equal(made.view(block, made.visits).visit_sums, block.visit_sums))
        True
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
    """Return the visits of several collectors to the same fleet, each machine and epoch once.

    Examples
    --------
    >>> from sim.profiling.setting import example
    >>> one = Collection.of(setting := Setting.of(example()))
    >>> both = visits_of([one, Collection.of(setting.seen_by(9))])
    >>> both.machine.size > one.visits.machine.size
    True
    """
    pairs = [np.column_stack([one.visits.machine, one.visits.epoch]) for one in collections]
    machine, epoch = np.unique(np.concatenate(pairs), axis=0).T
    return Visits(machine, epoch, collections[0].visits.software)
