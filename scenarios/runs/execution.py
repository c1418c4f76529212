"""A scenario becomes a run directory, the intact one that is there or a new one; and what is measured of it."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.files.findings import findings
from scenarios.files.schema import AnyScenario, Scenario
from scenarios.files.source import digest
from scenarios.kinds import KINDS
from scenarios.runs.cells import HERE, Cell, Workers, alone, cleared, gathered
from scenarios.runs.executors import executor
from scenarios.runs.rundir import Draft, Run, RunError, creating, open_run, reusable, run_directory
from scenarios.views.output import Progress

if TYPE_CHECKING:
    from scenarios.views.conclusion import Conclusion


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
    cells = scenario.cells if isinstance(scenario, Scenario) else 1
    named = digest(scenario, {"cells": str(cells)} if cells > 1 else kind.outside(scenario))
    place = run_directory(out, scenario.name, named)
    if not force and reusable(place):
        return open_run(place)
    pieces = place.with_name(f".{place.name}.cells")
    if force:
        cleared(pieces)
    with creating(out, scenario.name, named) as draft:
        if isinstance(scenario, Scenario) and cells > 1:
            counts = _simulate_cells(scenario, draft, pieces, workers, progress)
        else:
            counts = kind.lens.simulate(scenario, draft, out, progress)
        resolved = kind.adapter.dump_python(scenario, mode="json", by_alias=True)
        draft.describe(scenario.kind, scenario.seed, resolved, counts)
    cleared(pieces)
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
    # A trace that it replayed may be gone: its requests are in the run.
    if wrong := findings(scenario, {"load.trace"}):
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


def _simulate_cells(
    scenario: Scenario, draft: Draft, pieces: Path, workers: Workers, progress: Progress
) -> Mapping[str, int]:
    with executor(*workers) as pool:
        return gathered(scenario, draft, partial(_simulate_cell, pieces.absolute(), scenario), pool, progress)


def _simulate_cell(pieces: Path, scenario: Scenario, cell: Cell) -> Path:
    """Return the folder of a cell's run, which is made unless it is there.

    Each cell has a folder to itself: what other machines of a cluster have not finished is not taken for left behind.
    """
    return obtain(alone(scenario, cell), pieces / cell.name, False, lambda _what, _share: None).path
