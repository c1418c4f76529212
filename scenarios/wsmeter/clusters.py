"""Test clusters of a run: machines drawn from those with the feature, beside the half without it, cell by cell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.statistics import Current
from analysis.wsmeter.clusters import MachineRows, random_machines
from models.arrays import Ints
from models.randomness import stream
from scenarios.files.schema import WSMeter
from scenarios.runs.rundir import Run
from scenarios.wsmeter.measurements import measurements_by_cell


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The fleet without the feature, and a test cluster of each size that was asked for."""

    current: Current
    new: Mapping[int, Current]


def clusters(run: Run, settings: WSMeter, seed: int, *, by_instance: bool = False) -> Clusters | None:
    """Draw a test cluster of each size, None if all or nothing has the feature; one cell is in memory at a time.

    Parameters
    ----------
    run : a run, with or without its ``truth_`` tables
    settings : metric, window, jobs and sizes
    seed : of the draws; each size has a stream of its own
    by_instance : whether every instance counts as a machine of its own, for features of single instances

    Raises
    ------
    NotEnoughDataError
        If fewer machines were measured with the feature than a size asks for.
    ValueError
        If the counting window or a job is not there.

    """
    cells = _Cells(run, settings, by_instance)
    summed, counts = list[Current](), list[pd.Series]()
    for without, having in cells:
        counts.append(having["machine"].value_counts(sort=False).sort_index())
        summed += [Current.of(without)] if len(without) else []
    rows = _machine_rows(counts)
    if not summed or not len(rows.machines):
        return None
    chosen = {size: random_machines(stream(seed, f"test cluster/{size}"), rows, size) for size in settings.machines}
    ends = np.cumsum([int(count.sum()) for count in counts])
    taken = {size: list[pd.DataFrame]() for size in chosen}
    for (_, having), end in zip(cells, ends, strict=True):
        for size, at in chosen.items():
            inside = at[(at >= end - len(having)) & (at < end)] - (end - len(having))
            taken[size].append(having.take(inside))
    return Clusters(Current.joined(summed), {size: Current.of(_one(tables)) for size, tables in taken.items()})


class _Cells:
    """The halves of each cell without and with the feature, the latter in order of machines; read anew each time."""

    def __init__(self, run: Run, settings: WSMeter, by_instance: bool) -> None:
        self.run, self.settings, self.by_instance = run, settings, by_instance
        self.only = None if run.cells else list(measurements_by_cell(run, settings))

    def __iter__(self) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
        before = 0
        for table in self.only or measurements_by_cell(self.run, self.settings):
            own = table.assign(machine=before + np.arange(len(table))) if self.by_instance else table
            before += len(table)
            feature = own["feature"].to_numpy(dtype=np.bool_)
            yield own[~feature], own[feature].sort_values("machine", kind="stable", ignore_index=True)


def _machine_rows(counts: Sequence[pd.Series]) -> MachineRows:
    """Return where each machine's rows stand in the cells' tables, one after the other."""
    count: Ints = np.concatenate([each.to_numpy(dtype=np.int64) for each in counts])
    machines = pd.Index(np.concatenate([each.index.to_numpy() for each in counts]))
    return MachineRows(machines, np.arange(count.sum()), np.concatenate([[0], np.cumsum(count)]))


def _one(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)
