"""A profiled fleet before anybody looks at it: its horizon, its programs and builds, and who runs which when."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from models.arrays import DAY_S, Floats
from models.errors import InputError
from models.fleet.world import Window
from models.profiling.world import ProfileWorld
from sim.fleet.arms import Arm, Block, recorded
from sim.fleet.day import Day
from sim.profiling.builds import residence_release, software_factors
from sim.profiling.functions import ROW_SUMS
from sim.profiling.hardware_trial import prepare_trial
from sim.profiling.images import Layout, lay_out
from sim.profiling.rates import rate_table
from sim.profiling.requests import followed
from sim.profiling.rows import CounterRows, RunningSoftware, rows_of, software_of


@dataclass(frozen=True, slots=True)
class ProfileSetting:
    """Everything of a profiled fleet that does not depend on who looks at it."""

    world: ProfileWorld
    day: Day
    """The horizon, of which each day is a counting window."""
    software: RunningSoftware
    """Programs, builds and places."""
    arm: Arm
    """Who has the new hardware, and who the new build, from when on."""
    rows: CounterRows
    """What each counter row is: program, state, build, kernel, platform, data centre."""
    factors: Floats
    """(J, traits) factors of new builds on the traits of jobs."""
    layout: Layout
    """Where code is in each build."""
    rates: pd.DataFrame
    """Periods of the events, the columns of table `rates`."""

    @classmethod
    def of(cls, world: ProfileWorld) -> "ProfileSetting":
        """Return the setting of a world.

        Raises
        ------
        ValueError
            If the jobs do not fit the machines, or an incident is about a function or revision that there is not.
        """
        world = with_days(world)
        day = followed(world, prepare_trial(world))
        software = software_of(world, day)
        _refuse_unknown(world, software)
        arm = Arm(recorded(day).machine_from, residence_release(world, day, software.builds))
        factors = software_factors(software.programs, software.builds, day.jobs)
        return cls(
            world=world,
            day=day,
            software=software,
            arm=arm,
            rows=rows_of(day, arm, software),
            factors=factors,
            layout=lay_out(world, software.programs, software.builds),
            rates=rate_table(world, software.places.platforms),
        )

    def with_collector(self, seed: int) -> "ProfileSetting":
        """Return the same fleet with another draw of the collector."""
        profiling = self.world.profiling
        other = replace(profiling, collector=replace(profiling.collector, seed=seed))
        return replace(self, world=replace(self.world, profiling=other))


def with_days(world: ProfileWorld) -> ProfileWorld:
    """Return a world of which each day is a counting window."""
    days = tuple(Window(f"day-{i:03d}", i * DAY_S, (i + 1) * DAY_S) for i in range(world.days))
    return replace(world, recording=replace(world.recording, windows=days))


def of_block(setting: ProfileSetting, block: Block) -> tuple[CounterRows, Floats]:
    """Return what counter rows of a block are, and totals (cycles, instructions, misses, CPU s, core cycles)."""
    first = int(setting.day.row_start[block.stays.start])
    return setting.rows.take(first + np.arange(len(block.rows))), block.rows[:, ROW_SUMS]


def _refuse_unknown(world: ProfileWorld, software: RunningSoftware) -> None:
    """Refuse incidents about functions or revisions that there are not, all at once."""
    functions, revisions = set(software.programs.code.name), {"", *software.builds.revision}
    wrong = []
    for i, incident in enumerate(world.profiling.incidents):
        if incident.function not in functions:
            wrong.append(f"profiling.incidents.{i}.function: no program has {incident.function}")
        if incident.revision not in revisions:
            wrong.append(f"profiling.incidents.{i}.revision: no build is of {incident.revision}")
    if wrong:
        raise InputError("\n".join(wrong))
