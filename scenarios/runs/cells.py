"""The cells of a large fleet: data centres that are simulated as pieces, anywhere, and kept as they are done.

A cell is a fleet of its own, as its scenario says, with a seed that belongs to its name. So it depends on no other
cell, nor on how many there are. Cells run the same common jobs, since these belong to the universe, and have local jobs
of their own.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from models.randomness import stream
from scenarios.files.schema import Scenario
from scenarios.runs.executors import PROCESSES
from scenarios.runs.parallel import through
from scenarios.runs.rundir import Draft, RunError, open_run
from scenarios.views.output import Progress

_SEEDS = 2**48


class Cell(NamedTuple):
    """A cell of a fleet."""

    name: str
    seed: int


class Workers(NamedTuple):
    """Where cells are worked on, as `executors.executor` takes it."""

    where: str = PROCESSES
    processes: int | None = None


HERE = Workers()
"""Processes of this machine, one for each processor."""


def cells(seed: int, count: int) -> list[Cell]:
    """Return the cells of a fleet; a further one changes none of the others.

    Parameters
    ----------
    seed : the fleet's
    count : of cells
    """
    names = [f"c{number:04d}" for number in range(1, count + 1)]
    return [Cell(name, int(stream(seed, f"cell {name}").integers(_SEEDS))) for name in names]


def alone(scenario: Scenario, cell: Cell) -> Scenario:
    """Return a cell as a fleet of its own."""
    return replace(scenario, name=cell.name, seed=cell.seed, cells=1)


def gathered(
    scenario: Scenario,
    draft: Draft,
    make: Callable[[Cell], Path],
    pool: Executor,
    progress: Progress,
) -> dict[str, int]:
    """Make the runs of all cells, take their tables into a draft and return how much there is of what.

    Parameters
    ----------
    scenario : of the whole fleet
    draft : of its run
    make : returns the folder of a cell's finished run; of a module, since other processes import it
    pool : what the work runs through
    progress : told the share of the cells that is done
    """
    wanted = cells(scenario.seed, scenario.cells)
    folders = list[Path]()
    progress("simulating cells", 0.0)
    for folder in through(pool, make, wanted):
        folders.append(folder)
        progress("simulating cells", len(folders) / len(wanted))
    for folder in sorted(folders):
        if not folder.is_dir():
            told = (
                f"{folder}: a worker wrote there what is not seen here; --out should be a folder that all workers share"
            )
            raise RunError(told)
        run = open_run(folder)
        draft.take(str(run.manifest["scenario"]), run)
    return _counts(scenario, [cell["counts"] for cell in draft.cells.values()])


def _counts(scenario: Scenario, counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return how much there is of what in all cells; a job that all of them run counts once."""
    summed = {name: sum(cell[name] for cell in counts) for name in counts[0]}
    shared = scenario.population.common_jobs + len(scenario.population.services)
    jobs = summed["jobs"] - shared * (len(counts) - 1)
    return {"cells": len(counts), **summed, "jobs": jobs, "epochs": counts[0]["epochs"]}


def cleared(folder: Path) -> Path:
    """Return a folder after whatever was in it has been removed.

    Examples
    --------
    >>> cleared(Path("nowhere")).exists()
    False
    """
    shutil.rmtree(folder, ignore_errors=True)
    return folder
