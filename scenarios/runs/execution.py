"""A scenario becomes a run directory, the intact one that is there or a new one; and what is measured of it.

A large fleet is simulated in cells: data centres that can be worked on anywhere and are kept as they are done. A cell
is a fleet of its own with a seed that belongs to its name, so it depends on no other cell, nor on how many there are.
Cells run the same common jobs, since these belong to the universe, and have local jobs of their own.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from models.randomness import stream
from scenarios.files.findings import findings
from scenarios.files.loader import digest
from scenarios.files.schema import AnyScenario, Scenario
from scenarios.kinds import KINDS
from scenarios.runs.executors import PROCESSES, executor
from scenarios.runs.parallel import through
from scenarios.runs.rundir import Draft, Run, RunError, creating, open_run, reusable, run_directory
from scenarios.views.terminal import Progress

if TYPE_CHECKING:
    from scenarios.views.conclusion import Conclusion


_SEEDS = 2**48


class DataCentre(NamedTuple):
    """A cell of a fleet."""

    name: str
    seed: int


class Workers(NamedTuple):
    """Where cells are worked on, as `executors.executor` takes it."""

    where: str = PROCESSES
    processes: int | None = None


HERE = Workers()
"""Processes of this machine, one for each processor."""


def cells(seed: int, count: int) -> list[DataCentre]:
    """Return the cells of a fleet; a further one changes none of the others.

    Parameters
    ----------
    seed : the fleet's
    count : of cells
    """
    names = [f"c{number:04d}" for number in range(1, count + 1)]
    return [DataCentre(name, int(stream(seed, f"cell {name}").integers(_SEEDS))) for name in names]


def obtain(scenario: AnyScenario, out: Path, force: bool, progress: Progress, *, workers: Workers = HERE) -> Run:
    """Return the run of a scenario: the intact one that is there, or a new one.

    Parameters
    ----------
    scenario : what is asked
    out : parent folder of all runs
    force : simulate even if an intact run is there
    progress : told what is being done and the share done
    workers : of the cells, if a fleet has several: cells that are done are kept until all are, so what was interrupted
        goes on where it stopped

    Raises
    ------
    ValueError
        If the jobs of a fleet do not fit its machines.
    ExecutorError
        If there is nothing to work with where workers should be.
    RunError
        If a queue's demands come from an instance that never ran, or a worker ends without an answer.
    """
    kind = KINDS[scenario.kind]
    cell_count = scenario.cells if isinstance(scenario, Scenario) else 1
    cells_apart = {"cells": str(cell_count)} if cell_count > 1 else {}
    named = digest(scenario, {**kind.outside(scenario), **cells_apart})
    place = run_directory(out, scenario.name, named)
    if not force and reusable(place):
        return open_run(place)
    pieces = place.with_name(f".{place.name}.cells")
    if force:
        shutil.rmtree(pieces, ignore_errors=True)
    with creating(out, scenario.name, named) as draft:
        if isinstance(scenario, Scenario) and cell_count > 1:
            make = partial(_simulate_cell, pieces.absolute(), scenario)
            with executor(*workers) as pool:
                counts: Mapping[str, int] = gathered(scenario, draft, make, pool, progress)
        else:
            counts = kind.lens.simulate(scenario, draft, out, progress)
        resolved = kind.adapter.dump_python(scenario, mode="json", by_alias=True)
        draft.describe(scenario.kind, scenario.seed, resolved, counts)
    shutil.rmtree(pieces, ignore_errors=True)
    return open_run(place)


def reopen(path: Path) -> tuple[AnyScenario, Run]:
    """Return the scenario of a run that is there, and the run; a copy without its ``truth_`` tables will do.

    Raises
    ------
    RunError
        If the directory is no finished run, or its manifest does not hold a scenario of this version.
    """
    run = open_run(path)
    kind = KINDS.get(str(run.manifest.get("kind")))
    if kind is None:
        raise RunError(f"{path}: the manifest holds no scenario: unknown kind {run.manifest.get('kind')}")
    scenario: AnyScenario = run.world(kind.adapter)
    # A trace that it replayed, or a part of somebody's own, may be gone: what came of it is in the run.
    if wrong := findings(scenario, {"load.trace", *kind.parts(scenario)}):
        raise RunError(f"{path}: the manifest holds no scenario: {len(wrong)} faults")
    return scenario, run


def run(
    scenario: AnyScenario,
    out: Path,
    force: bool,
    progress: Progress,
    precision: float | None = None,
    *,
    workers: Workers = HERE,
) -> "Conclusion":
    """Return what `wsc run` says of a scenario, which is simulated unless it was; figures go into the run's directory.

    Parameters
    ----------
    scenario, out, force, progress, workers : as of `obtain`
    precision : the horizon of a queue is lengthened until its mean response time is known to so small a share of it
    """
    if precision is not None:
        return KINDS[scenario.kind].precise(scenario, precision, out, force, progress)
    return measure(scenario, obtain(scenario, out, force, progress, workers=workers), out, progress)


def measure(scenario: AnyScenario, run: Run, out: Path, progress: Progress) -> "Conclusion":
    """Return what `wsc run` says of a run that is there; without its ``truth_`` tables the truth is NaN.

    Parameters
    ----------
    scenario : whose analyses are made
    run : its run
    out : folder of the runs that stand beside it
    progress : told what is being done
    """
    return KINDS[scenario.kind].lens.measure(scenario, run, out, progress)


def validate(scenario: AnyScenario, out: Path, force: bool, progress: Progress) -> "Conclusion":
    """Return what `wsc validate` says: how often intervals were right, of many test clusters or in many worlds."""
    return KINDS[scenario.kind].validate(scenario, out, force, progress)


def _simulate_cell(pieces: Path, scenario: Scenario, cell: DataCentre) -> Path:
    """Return the folder of a cell's run, which is made unless it is there.

    Each cell has a folder to itself: what other machines of a cluster have not finished is not taken for left behind.
    """
    return obtain(alone(scenario, cell), pieces / cell.name, False, lambda _what, _share: None).path


def alone(scenario: Scenario, cell: DataCentre) -> Scenario:
    """Return a cell as a fleet of its own."""
    return replace(scenario, name=cell.name, seed=cell.seed, cells=1)


def gathered(
    scenario: Scenario,
    draft: Draft,
    make: Callable[[DataCentre], Path],
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
            problem = "what a worker wrote there is not visible here; --out should be a folder that all workers share"
            raise RunError(f"{folder}: {problem}")
        run = open_run(folder)
        draft.take(str(run.manifest["scenario"]), run)
    return _counts(scenario, [cell["counts"] for cell in draft.cells.values()])


def _counts(scenario: Scenario, counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return how much there is of what in all cells; a job that all of them run counts once."""
    summed = {name: sum(cell[name] for cell in counts) for name in counts[0]}
    shared = scenario.population.common_jobs + len(scenario.population.services)
    jobs = summed["jobs"] - shared * (len(counts) - 1)
    return {"cells": len(counts), **summed, "jobs": jobs, "epochs": counts[0]["epochs"]}
