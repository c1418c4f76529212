"""A profiled fleet's horizon: simulated once, visited by the collector, and written as tables.

The fleet's own tables come first, as of any fleet; then what the profiler leaves behind, raw: addresses, build
identifiers and symbols, which a separate step puts together. Tables that begin with ``truth_`` say which functions the
fleet's cycles were really spent in, visited or not.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from models.platforms import PLATFORMS
from models.profiles import ProfileWorld
from models.scenario import Window
from sim.experiment import Columns, Outcome, counts, describe, record
from sim.fleet import Arm, Block, Day, Visits, prepare, recorded, run_arm
from sim.profiling.builds import residence_release, software_factors
from sim.profiling.collector import Plan, plan_visits
from sim.profiling.functions import ROW_SUMS
from sim.profiling.images import Layout, lay_out
from sim.profiling.places import Places
from sim.profiling.rates import rate_table, samples_per_s
from sim.profiling.register import Register, machine_register
from sim.profiling.rows import Rows, Software, rows_of, software_of
from sim.profiling.sampling import OWN_SHARE, Sampler
from sim.profiling.truth import Truth
from sim.recorder import TableSummary, TableWriter, write_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Progress = Callable[[str, float], None]
"""Called with what is being done and the share done."""

DAY_S = 86400.0
CPU_S = 3
"""Column of a block's rows with CPU time."""
_STREAMED = ("processes", "raw_samples", "raw_stacks", "monitor")


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything of a profiled fleet that does not depend on who looks at it.

    Examples
    --------
    >>> made = Setting.of(example())
    >>> made.software.programs.names == made.day.jobs.names, len(made.day.world.windows)
    (True, 2)
    """

    world: ProfileWorld
    day: Day
    """The horizon, of which each day is a counting window."""
    software: Software
    """Programs, builds and places."""
    arm: Arm
    """Who has the new hardware, and who the new build, from when on."""
    rows: Rows
    """What each counter row is: program, state, build, kernel, platform, data centre."""
    factors: Floats
    """(J, traits) factors of new builds on the traits of jobs."""
    layout: Layout
    """Where code is in each build."""
    rates: pd.DataFrame
    """Periods of the events, the columns of table `rates`."""

    @classmethod
    def of(cls, world: ProfileWorld) -> "Setting":
        """Return the setting of a world.

        Raises
        ------
        ValueError
            If the jobs do not fit the machines, or an incident is about a function or revision that there is not.
        """
        world = with_days(world)
        day = prepare(world)
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

    def seen_by(self, seed: int) -> "Setting":
        """Return the same fleet with another draw of the collector.

        Examples
        --------
        >>> Setting.of(example()).seen_by(7).world.profiling.collector.seed
        7
        """
        profiling = self.world.profiling
        other = replace(profiling, collector=replace(profiling.collector, seed=seed))
        return replace(self, world=replace(self.world, profiling=other))


@dataclass(frozen=True, slots=True)
class Collection:
    """A collector at work on a fleet: where it goes, at which rates, and what it takes.

    Examples
    --------
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
    >>> one = Collection.of(setting := Setting.of(example()))
    >>> both = visits_of([one, Collection.of(setting.seen_by(9))])
    >>> both.machine.size > one.visits.machine.size
    True
    """
    pairs = [np.column_stack([one.visits.machine, one.visits.epoch]) for one in collections]
    machine, epoch = np.unique(np.concatenate(pairs), axis=0).T
    return Visits(machine, epoch, collections[0].visits.software)


def profile(
    world: ProfileWorld,
    directory: Path,
    threads: int | None = None,
    progress: Progress = lambda _what, _share: None,
) -> Outcome:
    """Simulate and profile a world and write its tables into a directory.

    Samples are written as they were taken, addresses in images; the tables `samples`, `locations` and `stacks` are left
    to who symbolises them.

    Parameters
    ----------
    world : what is asked
    directory : an existing directory
    threads : at most this many; results do not depend on it
    progress : called with what is being done and the share of it that is done

    Raises
    ------
    ValueError
        If the jobs do not fit the machines, or an incident is about a function or revision that there is not.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     outcome = profile(example(), Path(directory))
    >>> outcome.counts["machines"], "raw_samples" in {made.table for made in outcome.tables}
    (16, True)
    """
    progress("placing instances", 0.0)
    setting = Setting.of(world)
    day = setting.day
    written = describe(day, directory)
    progress("building programs", 0.0)
    collection = Collection.of(setting)
    written += [write_table(directory, name, columns) for name, columns in _known(setting).items()]
    truth = Truth(setting.software)
    with ExitStack() as opened:
        writers = {name: opened.enter_context(TableWriter(directory, name)) for name in _STREAMED}

        def look(block: Block) -> None:
            taken = collection.sampler.take(block, setting.rows)
            writers["processes"].append(taken.processes)
            writers["raw_samples"].append(taken.raw_samples)
            writers["raw_stacks"].append(taken.raw_stacks)
            writers["monitor"].append(monitor_columns(setting, collection.register, block))
            if world.recording.truth:
                truth.add(*of_block(setting, block))

        blocks = _watched(run_arm(day, setting.arm, threads, visits=collection.visits), look)
        what = "simulating and profiling"
        written += record(day, blocks, directory, progress=lambda share: progress(what, share))
    written += [writer.close() for writer in writers.values()]
    written.append(write_table(directory, "visits", collection.sampler.visit_columns()))
    if world.recording.truth:
        written.append(write_table(directory, "truth_functions", truth.functions()))
        written.append(write_table(directory, "truth_cpi", truth.cpi()))
    return Outcome(day, tuple(written), counts(day) | _profiled(setting, collection, written))


def with_days(world: ProfileWorld) -> ProfileWorld:
    """Return a world of which each day is a counting window.

    Examples
    --------
    >>> [window.name for window in with_days(example()).windows]
    ['day-000', 'day-001']
    """
    days = tuple(Window(f"day-{i:03d}", i * DAY_S, (i + 1) * DAY_S) for i in range(world.days))
    return replace(world, recording=replace(world.recording, windows=days))


def of_block(setting: Setting, block: Block) -> tuple[Rows, Floats]:
    """Return what the counter rows of a block are, and their totals (cycles, instructions, misses, CPU s, core cycles).

    Examples
    --------
    >>> made = Setting.of(example())
    >>> rows, totals = of_block(made, next(run_arm(made.day, made.arm)))
    >>> totals.shape == (rows.program.size, 5)
    True
    """
    first = int(setting.day.row_start[block.stays.start])
    return setting.rows.take(first + np.arange(len(block.rows))), block.rows[:, ROW_SUMS]


def machine_columns(places: Places) -> Columns:
    """Return the columns of table `profile_machines`.

    Examples
    --------
    >>> sorted(machine_columns(Setting.of(example()).software.places))
    ['datacentre', 'kernel_from_s', 'machine']
    """
    names = pa.array(list(places.datacentres), pa.string())
    return {
        "machine": np.arange(places.datacentre.size),
        "datacentre": pa.DictionaryArray.from_arrays(pa.array(places.datacentre.astype(np.int32)), names),
        "kernel_from_s": places.kernel_from_s,
    }


def monitor_columns(setting: Setting, register: Register, block: Block) -> Columns:
    """Return the columns of table `monitor` for a block of machines: busy time of each machine on each day.

    Busy are its instances and what the machine does of its own, in the kernel and in daemons.

    Examples
    --------
    >>> made = Setting.of(example())
    >>> block = next(run_arm(made.day, made.arm))
    >>> len(monitor_columns(made, Collection.of(made).register, block)["busy_s"])
    32
    """
    day, days = setting.day, len(setting.day.world.windows)
    first, count = block.machines.start, block.machines.stop - block.machines.start
    stays, starts = day.order[block.stays], day.row_start[block.stays.start : block.stays.stop + 1]
    machine = np.repeat(day.timeline.machine[stays], np.diff(starts))
    cell = (machine - first) * days + day.row_window[int(starts[0]) : int(starts[-1])]
    busy_s = np.bincount(cell, block.rows[:, CPU_S], count * days)
    machines, when = np.repeat(np.arange(first, block.machines.stop), days), np.tile(np.arange(days), count)
    platform = register.platform_at(machines, when * round(DAY_S / day.world.epoch_s))
    threads = np.array([PLATFORMS[name].vcpus for name in register.platform_names], np.float64)[platform]
    return {"machine": machines, "start_s": when * DAY_S, "busy_s": busy_s + OWN_SHARE * threads * DAY_S}


def example() -> ProfileWorld:
    """Return a profiled fleet of two days that is simulated at once, for examples.

    Examples
    --------
    >>> example().days
    2
    """
    from models.profiles import Collector, Kernel, Profiling  # the only use
    from models.scenario import Fleet, Population

    asked = Profiling(kernel=Kernel(start_s=DAY_S, waves=1), collector=Collector(one_in=8, round_s=7200.0))
    fleet = Fleet(16, machines_per_rack=4, racks_per_power_domain=2)
    return ProfileWorld(3, 2 * DAY_S, 300.0, fleet, Population(20, 12, heavyweights=4), profiling=asked)


def _known(setting: Setting) -> dict[str, Columns]:
    """Return the tables of a profiler that are known before anything is simulated."""
    layout, rates = setting.layout, setting.rates
    return {
        "profile_machines": machine_columns(setting.software.places),
        "builds": layout.build_columns(),
        "rates": {str(name): rates[name] for name in rates.columns},
        "symbols": layout.symbol_columns(),
        "sources": layout.source_columns(),
        "function_traits": layout.trait_columns(),
    }


def _watched(blocks: Iterable[Block], look: Callable[[Block], None]) -> Iterator[Block]:
    for block in blocks:
        look(block)
        yield block


def _refuse_unknown(world: ProfileWorld, software: Software) -> None:
    """Refuse incidents about functions or revisions that there are not, all at once."""
    functions, revisions = set(software.programs.code.name), {"", *software.builds.revision}
    wrong = []
    for i, incident in enumerate(world.profiling.incidents):
        if incident.function not in functions:
            wrong.append(f"profiling.incidents.{i}.function: no program has {incident.function}")
        if incident.revision not in revisions:
            wrong.append(f"profiling.incidents.{i}.revision: no build is of {incident.revision}")
    if wrong:
        raise ValueError("\n".join(wrong))


def _profiled(setting: Setting, collection: Collection, written: Iterable[TableSummary]) -> dict[str, int]:
    """Return how much there is of what a profiler sees."""
    rows = {made.table: made.rows for made in written}
    return {
        "days": len(setting.day.world.windows),
        "programs": setting.software.programs.count,
        "functions": len(setting.software.programs.code.name),
        "builds": rows["builds"],
        "visits": int(collection.plan.machine.size),
        "processes": rows["processes"],
        "sample_rows": rows["raw_samples"],
    }
