"""A profiled fleet's horizon: simulated once, visited by the collector, and written as tables.

The fleet's own tables come first, as of any fleet; then what the profiler leaves behind, raw: addresses, build
identifiers and symbols, which a separate step puts together. Tables that begin with ``truth_`` say which functions the
fleet's cycles were really spent in, visited or not. Where services are served, their requests are written too, and
everything else follows from them; where hardware is under trial, so are the fleets that the choice is between.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from models.arrays import DAY_S, Floats
from models.profiling.world import ProfileWorld
from models.tables import ARMS
from sim.fleet.arms import NEVER, Arm, Block, Visits, run_arm
from sim.fleet.day import Day
from sim.fleet.experiment import Columns, Outcome, Progress, counts, describe, record
from sim.profiling.collection import Collection
from sim.profiling.hardware_trial import prepare_trial
from sim.profiling.register import Places
from sim.profiling.requests import ServicesAtWork, followed
from sim.profiling.sampling import OWN_SHARE
from sim.profiling.setting import ProfileSetting, of_block
from sim.profiling.truth import ProfileTruth
from sim.recorder import TableSummary, TableWriter, write_table

CPU_S = 3
"""Column of a block's rows with CPU time."""
_STREAMED = ("processes", "raw_samples", "raw_stacks", "monitor")


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
    """
    progress("placing instances", 0.0)
    setting = ProfileSetting.of(world)
    day = setting.day
    written = describe(day, directory)
    progress("building programs", 0.0)
    collection = Collection.of(setting)
    written += [write_table(directory, name, columns) for name, columns in _known(setting).items()]
    truth = ProfileTruth(setting.software)
    with ExitStack() as opened:
        writers = {name: opened.enter_context(TableWriter(directory, name)) for name in _STREAMED}

        def look(block: Block) -> None:
            taken = collection.sampler.take(block, setting.rows)
            writers["processes"].append(taken.processes)
            writers["raw_samples"].append(taken.raw_samples)
            writers["raw_stacks"].append(taken.raw_stacks)
            writers["monitor"].append(monitor_columns(setting, collection, block))
            if world.recording.truth:
                truth.add(*of_block(setting, block))

        simulated = run_arm(day, setting.arm, threads, visits=collection.visits)
        if world.served:
            limited = any(service.capacity is not None for service in world.served)
            names = ("stay_requests", "stay_unserved") if limited else ("stay_requests",)
            of_requests = {name: opened.enter_context(TableWriter(directory, name)) for name in names}
            simulated = served(setting, simulated, collection.visits, of_requests)
            writers |= of_requests
        what = "simulating and profiling"
        written += record(day, _watched(simulated, look), directory, progress=lambda share: progress(what, share))
    written += [writer.close() for writer in writers.values()]
    if world.recording.truth:
        written += write_twins(setting, directory, threads, progress)
    written.append(write_table(directory, "visits", collection.sampler.visit_columns()))
    if world.recording.truth:
        written.append(write_table(directory, "truth_functions", truth.functions()))
        written.append(write_table(directory, "truth_cpi", truth.cpi()))
    return Outcome(day, tuple(written), counts(day) | _profiled(setting, collection, written))


def machine_columns(places: Places) -> Columns:
    """Return the columns of table `profile_machines`."""
    names = pa.array(list(places.datacentres), pa.string())
    return {
        "machine": np.arange(places.datacentre.size),
        "datacentre": pa.DictionaryArray.from_arrays(pa.array(places.datacentre.astype(np.int32)), names),
        "kernel_from_s": places.kernel_from_s,
    }


def monitor_columns(setting: ProfileSetting, collection: Collection, block: Block) -> Columns:
    """Return the columns of table `monitor` for a block of machines: busy time of each machine on each day.

    Busy are its instances; what the machine does of its own, in the kernel and in daemons, as long as it is in service;
    and the daemon that profiles it. A block's visits must have been taken.
    """
    day, days = setting.day, len(setting.day.world.windows)
    first, count = block.machines.start, block.machines.stop - block.machines.start
    stays, starts = day.order[block.stays], day.row_start[block.stays.start : block.stays.stop + 1]
    machine = np.repeat(day.timeline.machine[stays], np.diff(starts))
    cell = (machine - first) * days + day.row_window[int(starts[0]) : int(starts[-1])]
    busy_s: Floats = np.bincount(cell, block.rows[:, CPU_S], count * days).astype(np.float64)
    machines, when = np.repeat(np.arange(first, block.machines.stop), days), np.tile(np.arange(days), count)
    register, epochs = collection.register, round(DAY_S / day.world.epoch_s)
    platform = register.platform_at(machines, when * epochs)
    threads = np.array([day.world.sheets[name].vcpus for name in register.platform_names], np.float64)[platform]
    busy_s += OWN_SHARE * threads * register.up_s(block.machines, epochs, days).reshape(-1)
    busy_s += _profiling_s(collection, block.machines, epochs, days)
    return {"machine": machines, "start_s": when * DAY_S, "busy_s": busy_s}


def _profiling_s(collection: Collection, machines: slice, epochs: int, days: int) -> Floats:
    """Return (machines × days,) CPU time that samples took."""
    plan, count = collection.plan, machines.stop - machines.start
    here = np.flatnonzero((plan.machine >= machines.start) & (plan.machine < machines.stop))
    cell = (plan.machine[here] - machines.start) * days + plan.epoch[here] // epochs
    return np.bincount(cell, collection.sampler.spent_s[here], count * days).astype(np.float64)


def _known(setting: ProfileSetting) -> dict[str, Columns]:
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


def _profiled(setting: ProfileSetting, collection: Collection, written: Iterable[TableSummary]) -> dict[str, int]:
    """Return how much there is of what a profiler sees."""
    rows = {summary.table: summary.rows for summary in written}
    return {
        "days": len(setting.day.world.windows),
        "programs": setting.software.programs.count,
        "functions": len(setting.software.programs.code.name),
        "builds": rows["builds"],
        "visits": int(collection.plan.machine.size),
        "processes": rows["processes"],
        "sample_rows": rows["raw_samples"],
        **({"refused": rows["stay_unserved"]} if "stay_unserved" in rows else {}),
    }


_NOBODY = np.empty(0, np.int64)


def served(
    setting: ProfileSetting, blocks: Iterable[Block], visits: Visits, writers: Mapping[str, TableWriter]
) -> Iterator[Block]:
    """Yield blocks in which services did what their requests took, and write these requests.

    Parameters
    ----------
    setting : the fleet
    blocks : of one arm of its day
    visits : with which they were simulated
    writers : of tables `stay_requests` and `stay_unserved`, those that are wanted
    """
    service = ServicesAtWork(setting.world, setting.day)
    for block in blocks:
        changed, tables = service.serve(block, visits)
        for name, writer in writers.items():
            writer.append(tables[name])
        yield changed


def write_twins(
    setting: ProfileSetting,
    directory: Path,
    threads: int | None = None,
    progress: Progress = lambda _what, _share: None,
) -> list[TableSummary]:
    """Simulate a profiled fleet's twins and write their tables; none of a fleet without feature and trial.

    Parameters
    ----------
    setting : the recorded fleet
    directory : an existing directory
    threads : at most this many; results do not depend on it
    progress : called with what is being done and the share of it that is done
    """
    written = list[TableSummary]()
    for prefix, twin in _twins(setting).items():
        fleet, visits = twin(), Visits(_NOBODY, _NOBODY, setting.factors)
        blocks: Iterable[Block] = run_arm(fleet.day, fleet.arm, threads, visits=visits)
        if setting.world.served:
            blocks = served(fleet, blocks, visits, {})
        what = f"simulating {prefix.removeprefix('truth_').rstrip('_')}"
        written += record(fleet.day, blocks, directory, prefix, progress=_told(progress, what))
    return written


def _told(progress: Progress, what: str) -> Callable[[float], None]:
    return lambda share: progress(what, share)


def _twins(setting: ProfileSetting) -> dict[str, Callable[[], ProfileSetting]]:
    """Return how each twin is made, by the prefix of its tables."""
    twins = dict[str, Callable[[], ProfileSetting]]()
    if setting.world.feature is not None:
        for name, epoch in zip(ARMS, (NEVER, 0), strict=True):
            twins[f"truth_{name}_"] = _of_feature(setting, epoch)
    if setting.world.trial is not None:
        nowhere, everywhere = ARMS
        twins[f"truth_trial_{nowhere}_"] = lambda: _of_day(setting, prepare_trial(setting.world, "nowhere"))
        twins[f"truth_trial_{everywhere}_"] = lambda: _of_day(setting, prepare_trial(setting.world, "everywhere"))
    return twins


def _of_feature(setting: ProfileSetting, epoch: int) -> Callable[[], ProfileSetting]:
    arm = Arm(np.full(setting.day.machines.count, epoch), setting.arm.stay_from)
    return lambda: replace(setting, arm=arm)


def _of_day(setting: ProfileSetting, day: Day) -> ProfileSetting:
    return replace(setting, day=followed(setting.world, day))
