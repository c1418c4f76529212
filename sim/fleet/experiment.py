"""An experiment: one world, simulated under its arms and written as tables.

The recorded arm is what a real fleet would show: the feature where the scenario's roll-out put it. The counterfactual
pair, the feature nowhere and everywhere, goes into tables whose names begin with ``truth_``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from models.arrays import Floats, Ints
from models.errors import InputError
from models.fleet.world import World
from models.tables import ARMS
from sim.fleet import slots
from sim.fleet.arms import Arm, Block, everywhere, nowhere, recorded, run_arm
from sim.fleet.control import plan_crossover
from sim.fleet.day import Day, prepare
from sim.fleet.layout import RESOURCES
from sim.fleet.placement import ENDINGS
from sim.fleet.timeline import KINDS
from sim.recorder import TableSummary, TableWriter, Values, write_table

Columns = Mapping[str, Values]
Progress = Callable[[str, float], None]
"""Called with what is being done and the share done."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment wrote, how much there was of what, and the day that it was."""

    day: Day
    tables: tuple[TableSummary, ...]
    counts: Mapping[str, int]


def experiment(
    world: World, directory: Path, threads: int | None = None, progress: Progress = lambda _what, _share: None
) -> Outcome:
    """Simulate a world and write its tables into a directory.

    Parameters
    ----------
    world : what is asked
    directory : an existing directory
    threads : at most this many; results do not depend on it
    progress : called with what is being done and the share of the whole that is done

    Raises
    ------
    ValueError
        If the jobs do not fit the machines.
    """
    progress("placing instances", 0.0)
    day = prepare(world)
    written = describe(day, directory)
    arms = _arms(day)
    for i, (prefix, arm) in enumerate(arms.items()):
        what = f"simulating {prefix.removeprefix('truth_').rstrip('_') or 'the recorded fleet'}"
        written += record(
            day,
            run_arm(day, arm, threads),
            directory,
            prefix,
            progress=_part(progress, what, i, len(arms)),
        )
    return Outcome(day, tuple(written), counts(day))


def counts(day: Day) -> dict[str, int]:
    """Return how much there is of what in a day: machines, jobs, instances, epochs, residences."""
    return {
        "machines": day.machines.count,
        "jobs": day.jobs.count,
        "instances": int(day.jobs.instances.sum()),
        "epochs": day.world.epochs,
        "residences": int(day.timeline.job.size),
    }


def describe(day: Day, directory: Path) -> list[TableSummary]:
    """Write the tables that are known before anything is simulated: `machines`, `jobs`, `instances`, `events`, truth.

    In a crossover also `switches`; with incidents or regime shifts also `truth_incidents` or `truth_shifts`.

    Parameters
    ----------
    day : what happens
    directory : an existing directory
    """
    return [write_table(directory, name, columns) for name, columns in _descriptions(day).items()]


def _part(progress: Progress, what: str, done: int, parts: int) -> Callable[[float], None]:
    return lambda share: progress(what, (done + share) / parts)


def _arms(day: Day) -> dict[str, Arm]:
    """Return each arm by the prefix of its tables."""
    arms = {"": recorded(day)}
    if day.world.feature is not None and day.world.recording.truth:
        arms |= {f"truth_{name}_": arm(day) for name, arm in zip(ARMS, (nowhere, everywhere), strict=True)}
    return arms


def _descriptions(day: Day) -> dict[str, Columns]:
    known: dict[str, Columns] = {
        "machines": machine_columns(day),
        "jobs": job_columns(day),
        "instances": instance_columns(day),
        "events": _event_columns(day),
        "truth_jobs": _truth_columns(day),
    }
    if day.world.periods:
        known["switches"] = switch_columns(day)
    given = day.world.incidents
    if given.memory_per_machine_day or given.clock_per_machine_day:
        known["truth_incidents"] = _incident_columns(day)
    if given.shifts_per_job_day:
        known["truth_shifts"] = _shift_columns(day)
    return known


def record(
    day: Day,
    blocks: Iterable[Block],
    directory: Path,
    prefix: str = "",
    *,
    progress: Callable[[float], None] = lambda _share: None,
) -> Iterator[TableSummary]:
    """Write the tables of one arm as its blocks come; yield what each holds when all have come.

    Parameters
    ----------
    day : what happens
    blocks : of `sim.fleet.arms.run_arm`, all of them
    directory : an existing directory
    prefix : of the tables' names; empty: the recorded fleet
    progress : called with the share of the machines that is done
    """
    names = ["counters", "machine_windows"]
    if not prefix:
        names += ["instance_epochs"] if day.world.recording.instance_epoch_share or day.followed is not None else []
        names += ["machine_epochs"] if day.world.recording.machine_epochs else []
    sums = []
    with ExitStack() as opened:
        writers = {name: opened.enter_context(TableWriter(directory, prefix + name)) for name in names}
        for block in blocks:
            for name, writer in writers.items():
                writer.append(_BLOCK_COLUMNS[name](day, block))
            sums.append(block.epoch_sums)
            progress(block.machines.stop / day.machines.count)
    for writer in writers.values():
        yield writer.close()
    yield write_table(directory, f"{prefix}epochs", _epoch_columns(day, np.concatenate(sums)))


def measure(day: Day, arm: Arm, around: Ints | None = None, threads: int | None = None) -> pd.DataFrame:
    """Return the counters of an arm, joined with where and when.

    Parameters
    ----------
    day, arm : what happens, and who has the feature
    around : machines; only their power domains are simulated
    threads : at most this many

    Returns
    -------
    DataFrame
        Columns of tables `counters` and `instances`, one row per stay and window.

    Raises
    ------
    ValueError
        If `around` holds no machine.
    """
    if around is not None and not around.size:
        raise InputError("a measurement needs at least one machine, got none")
    blocks = [_frame(counter_columns(day, block)) for block in run_arm(day, arm, threads, around)]
    return pd.concat(blocks, ignore_index=True).merge(stays(day), on="residence")


def stays(day: Day) -> pd.DataFrame:
    """Return table `instances` of a day, one row per stay."""
    return _frame(instance_columns(day))


def _frame(columns: Columns) -> pd.DataFrame:
    frame: pd.DataFrame = pa.table(dict(columns)).to_pandas()
    return frame


def machine_columns(day: Day) -> Columns:
    """Return the columns of table `machines`, one row per machine."""
    machines, timeline = day.machines, day.timeline
    return {
        "machine": np.arange(machines.count),
        "rack": machines.rack,
        "power_domain": machines.power_domain,
        "platform": _texts(machines.platform_names, machines.platform),
        "vcpus": machines.vcpus.astype(np.int64),
        "memory_bytes": machines.memory_bytes,
        "feature": timeline.feature_from_s < day.world.horizon_s,
        "feature_from_s": timeline.feature_from_s,
    }


def job_columns(day: Day) -> Columns:
    """Return the columns of table `jobs`, one row per job."""
    jobs = day.jobs
    return {
        "job": np.arange(jobs.count),
        "name": list(jobs.names),
        "latency_critical": jobs.latency_critical,
        "instances": jobs.instances,
        "quota_vcpu": jobs.quota_vcpu,
    }


def instance_columns(day: Day) -> Columns:
    """Return the columns of table `instances`, one row per stay."""
    machines, timeline = day.machines, day.timeline
    where = timeline.machine
    with_machine = timeline.feature_from_s[where] < timeline.end_s
    of_its_own = timeline.instance_feature_from_s[timeline.instance] < timeline.end_s
    return {
        "residence": np.arange(where.size),
        "instance": timeline.instance,
        "job": timeline.job,
        "shard": timeline.shard,
        "machine": where,
        "rack": machines.rack[where],
        "power_domain": machines.power_domain[where],
        "platform": _texts(machines.platform_names, machines.platform[where]),
        "quota_vcpu": day.jobs.instance_quota_vcpu[timeline.job],
        "start_s": timeline.start_s,
        "end_s": timeline.end_s,
        "ended_by": _texts(ENDINGS, timeline.ended_by),
        "feature": with_machine | of_its_own,
    }


def switch_columns(day: Day) -> Columns:
    """Return the columns of table `switches`, one row per machine and period of the recorded crossover."""
    scheduled, periods = plan_crossover(day.world, day.machines), np.array(day.world.periods).reshape(-1, 2)
    machines, count = scheduled.shape
    return {
        "machine": np.repeat(np.arange(machines), count),
        "period": np.tile(np.arange(count), machines),
        "start_s": np.tile(periods[:, 0], machines),
        "end_s": np.tile(periods[:, 1], machines),
        "feature": scheduled.ravel(),
    }


def counter_columns(day: Day, block: Block) -> Columns:
    """Return the columns of table `counters` for a block of machines, one row per stay and window.

    Parameters
    ----------
    day : what happens
    block : one of those that `sim.fleet.arms.run_arm` yields for this day
    """
    epoch_s, windows = day.world.epoch_s, day.world.windows
    rows = slice(int(day.row_start[block.stays.start]), int(day.row_start[block.stays.stop]))
    counts = np.diff(day.row_start[block.stays.start : block.stays.stop + 1])
    stay = np.repeat(day.order[block.stays], counts)
    window = day.row_window[rows]
    opens = np.array([round(w.start_s / epoch_s) for w in windows])[window]
    closes = np.array([round(w.end_s / epoch_s) for w in windows])[window]
    cycles, instructions, misses, cpu_s, requests, _, wait_s, throttled_s = block.rows.T
    with np.errstate(invalid="ignore"):
        frequency = cycles / cpu_s
    return {
        "residence": stay,
        "window": _texts([w.name for w in windows], window),
        "cycles": cycles,
        "instructions": instructions,
        "llc_misses": misses,
        "cpu_s": cpu_s,
        "wall_s": day.present_s(stay, opens, closes),
        "mean_frequency_hz": frequency,
        "requests": requests,
        "cpu_wait_s": wait_s,
        "cpu_throttled_s": throttled_s,
    }


def _machine_window_columns(day: Day, block: Block) -> Columns:
    windows = day.world.windows
    first, count = block.machines.start, block.machines.stop - block.machines.start
    rows = slice(int(day.row_start[block.stays.start]), int(day.row_start[block.stays.stop]))
    machine = np.repeat(
        day.timeline.machine[day.order[block.stays]], np.diff(day.row_start[block.stays.start : block.stays.stop + 1])
    )
    cell = (machine - first) * len(windows) + day.row_window[rows]
    summed = [np.bincount(cell, column, count * len(windows)) for column in block.rows.T[:4]]
    lengths = np.array([(w.end_s - w.start_s) / day.world.epoch_s for w in windows])
    return {
        "machine": np.repeat(np.arange(first, block.machines.stop), len(windows)),
        "window": _texts([w.name for w in windows], np.tile(np.arange(len(windows)), count)),
        "cycles": summed[0],
        "instructions": summed[1],
        "llc_misses": summed[2],
        "cpu_s": summed[3],
        "energy_j": block.machine_rows[:, :, slots.M_ENERGY_J].ravel(),
        "capped_share": (block.machine_rows[:, :, slots.M_CAPPED] / lengths).ravel(),
    }


def _instance_epoch_columns(day: Day, block: Block) -> Columns:
    stays = day.order[block.stays][day.traced[block.stays]]
    start, end = day.timeline.start_epoch[stays], day.timeline.end_epoch[stays]
    ends = np.cumsum(end - start)
    return {
        "residence": np.repeat(stays, end - start),
        "epoch": np.arange(int(ends[-1]) if ends.size else 0) - np.repeat(ends - end, end - start),
        "cycles": block.trace[:, 0],
        "instructions": block.trace[:, 1],
        "llc_misses": block.trace[:, 2],
        "cpu_s": block.trace[:, 3],
    }


def _machine_epoch_columns(day: Day, block: Block) -> Columns:
    numbers, epochs = np.arange(block.machines.start, block.machines.stop), day.world.epochs
    names = ("frequency_hz", "power_w", "utilisation", "bandwidth_utilisation")
    return {
        "machine": np.repeat(numbers, epochs),
        "epoch": np.tile(np.arange(epochs), numbers.size),
        **{name: block.machine_trace[:, :, i].ravel() for i, name in enumerate(names)},
    }


_BLOCK_COLUMNS: Mapping[str, Callable[[Day, Block], Columns]] = {
    "counters": counter_columns,
    "machine_windows": _machine_window_columns,
    "instance_epochs": _instance_epoch_columns,
    "machine_epochs": _machine_epoch_columns,
}


def _epoch_columns(day: Day, sums: Floats) -> Columns:
    """Return the fleet's epochs from those of its power domains, summed in a fixed order."""
    total = np.zeros(sums.shape[1:])
    for domain in sums:
        total += domain
    return {
        "epoch": np.arange(day.world.epochs),
        "start_s": np.arange(day.world.epochs) * day.world.epoch_s,
        "instances": np.rint(total[:, slots.E_INSTANCES]).astype(np.int64),
        "quota_vcpu": total[:, slots.E_QUOTA],
        "cycles": total[:, slots.E_CYCLES],
        "instructions": total[:, slots.E_INSTRUCTIONS],
        "llc_misses": total[:, slots.E_MISSES],
        "cpu_s": total[:, slots.E_CPU_S],
        "energy_j": total[:, slots.E_ENERGY_J],
        "capped_share": total[:, slots.E_CAPPED] / day.machines.count,
        "residual_max": sums[:, :, slots.E_RESIDUAL].max(axis=0),
    }


def _event_columns(day: Day) -> Columns:
    timeline = day.timeline
    return {
        "time_s": timeline.event_time_s,
        "kind": _texts(KINDS, timeline.event_kind),
        "machine": timeline.event_machine,
        "instance": timeline.event_instance,
    }


def _truth_columns(day: Day) -> Columns:
    jobs = day.jobs
    return {
        "job": np.arange(jobs.count),
        "core_cpi": jobs.core_cpi,
        "memory_accesses_per_instruction": jobs.memory_accesses_per_instruction,
        "overlap": jobs.overlap,
        "input_log_sd": jobs.input_log_sd,
        "stall_share": jobs.stall_share,
    }


def _incident_columns(day: Day) -> Columns:
    spells, epoch_s = day.spells, day.world.epoch_s
    return {
        "machine": spells["machine"],
        "resource": _texts(RESOURCES, spells["resource"]),
        "start_s": spells["start"] * epoch_s,
        "end_s": spells["end"] * epoch_s,
        "factor": spells["factor"],
    }


def _shift_columns(day: Day) -> Columns:
    shifts = day.shifts
    return {"job": shifts["job"], "start_s": shifts["epoch"] * day.world.epoch_s, "factor": shifts["factor"]}


def _texts(words: tuple[str, ...] | list[str], index: Ints) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.asarray(index, np.int32)), pa.array(list(words), pa.string()))
