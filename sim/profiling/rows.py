"""What each counter row of a fleet is to the programs: which of them, in which state and build, where and when.

A counter row is a residence's day. Within it all is constant: what is rolled out changes at midnight.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from models.arrays import DAY_S, Bools, Ints
from models.profiling.programs import ProgramArrays, build_programs
from models.profiling.world import ProfileWorld
from sim.fleet.arms import Arm
from sim.fleet.day import Day
from sim.profiling.builds import Builds, build_builds
from sim.profiling.draws import keys_of, mixed, uniforms
from sim.profiling.register import Places, place, platform_names


@dataclass(frozen=True, slots=True, eq=False)
class CounterRows:
    """Arrays over N counter rows: all that decides where instructions go.

    `build` and `kernel` are 0 for the old and 1 for the new one; `platform` and `datacentre` are numbers in
    `sim.profiling.register.Places`.
    """

    program: Ints
    shard: Ints
    state: Ints
    day: Ints
    build: Ints
    kernel: Ints
    platform: Ints
    datacentre: Ints

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.program.size)

    def take(self, which: Ints | Bools | slice) -> Self:
        """Return some of the rows.

        Parameters
        ----------
        which : their numbers, in any order, or a slice
        """
        return type(self)(*(getattr(self, field.name)[which] for field in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class RunningSoftware:
    """Programs, their builds, and where they run: what weights of functions follow from."""

    world: ProfileWorld
    programs: ProgramArrays
    builds: Builds
    places: Places


def software_of(world: ProfileWorld, day: Day) -> RunningSoftware:
    """Return the programs of a fleet, their builds and where they run."""
    programs = build_programs(world, day.jobs, platform_names(world))
    return RunningSoftware(world, programs, build_builds(world, programs), place(world, day.machines))


def rows_of(day: Day, arm: Arm, software: RunningSoftware) -> CounterRows:
    """Return what every counter row of a fleet is, in the order of `day.row_window`.

    Parameters
    ----------
    day : whose counting windows are days
    arm : who has the hardware feature and the new builds from when on
    software : programs of the same fleet
    """
    world, timeline, where = software.world, day.timeline, software.places
    stay = np.repeat(day.order, np.diff(day.row_start))
    job, shard, machine, date = timeline.job[stay], timeline.shard[stay], timeline.machine[stay], day.row_window
    epoch = date * round(DAY_S / world.epoch_s)
    upgraded = (arm.machine_from[machine] <= epoch).astype(np.int64)
    new_kernel = where.kernel_from_s[machine] <= date * DAY_S
    return CounterRows(
        program=job,
        shard=shard,
        state=state_of(software.programs, job, shard, date),
        day=date,
        build=(arm.stay_from[stay] <= epoch).astype(np.int64),
        kernel=new_kernel.astype(np.int64),
        platform=where.platform[machine, upgraded],
        datacentre=where.datacentre[machine],
    )


def state_of(programs: ProgramArrays, program: Ints, shard: Ints, day: Ints) -> Ints:
    """Return the state of each shard's instance on a day: a Markov chain, uniform at first.

    Parameters
    ----------
    programs : how many states each has
    program, shard, day : (N,) arrays

    Returns
    -------
    (N,) array, 0 for programs with one state
    """
    who = keys_of(programs.seed, "states of shards", program, shard)
    states = programs.states[program]
    state = np.floor(uniforms(who) * states).astype(np.int64)
    for date in range(1, int(day.max(initial=0)) + 1):
        today = mixed(who, np.array(date, np.uint64))
        changes = (day >= date) & (uniforms(today) < programs.how.state_change_per_day) & (states > 1)
        step = 1 + np.floor(uniforms(~today) * (states - 1)).astype(np.int64)
        state = np.where(changes, (state + step) % states, state)
    return state


def by_program(rows: CounterRows) -> Iterator[tuple[int, Ints]]:
    """Yield each program that has rows, and the numbers of its rows in their order."""
    order = np.argsort(rows.program, kind="stable")
    programs, first = np.unique(rows.program[order], return_index=True)
    bounds = [*first.tolist(), len(order)]
    for at, program in enumerate(programs.tolist()):
        yield program, order[bounds[at] : bounds[at + 1]]
