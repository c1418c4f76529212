"""A scenario becomes a run directory: the intact one that is there, or a new one."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from models.fleet.world import World
from models.profiling.world import ProfileWorld
from models.queues.world import JobDemand, QueueWorld
from models.services.world import ServiceWorld
from scenarios.files.loader import load
from scenarios.files.schema import AnyScenario, ProfileScenario, QueueScenario, Scenario, ServiceScenario
from scenarios.files.source import digest
from scenarios.files.traces import read_trace
from scenarios.kinds import KINDS
from scenarios.runs.cells import HERE, Cell, Workers, alone, cleared, gathered
from scenarios.runs.executors import executor
from scenarios.runs.paces import Steps, pace
from scenarios.runs.provenance import file_digest
from scenarios.runs.rundir import Draft, Run, RunError, creating, open_run, reusable, run_directory
from scenarios.views.output import Progress
from sim.fleet.experiment import experiment
from sim.queues.requests import requests

Simulate = Callable[[Any, Draft, Path, Progress], Mapping[str, int]]
"""Writes the tables of a scenario into a draft, and returns how much there was of what."""


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
    named = digest(scenario, _inputs(scenario))
    place = run_directory(out, scenario.name, named)
    if not force and reusable(place):
        return open_run(place)
    pieces = place.with_name(f".{place.name}.cells")
    if force:
        cleared(pieces)
    several = isinstance(scenario, Scenario) and scenario.cells > 1
    simulate: Simulate = partial(_simulate_cells, pieces, workers) if several else _SIMULATE[scenario.kind]
    with creating(out, scenario.name, named) as draft:
        counts = simulate(scenario, draft, out, progress)
        resolved = KINDS[scenario.kind].adapter.dump_python(scenario, mode="json", by_alias=True)
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
    try:
        scenario: AnyScenario = kind.adapter.validate_json(json.dumps(run.manifest.get("resolved")))
    except ValidationError as fault:
        raise RunError(f"{path}: the manifest holds no scenario: {fault.error_count()} faults") from None
    return scenario, run


def _simulate_fleet(scenario: Scenario, draft: Draft, _out: Path, progress: Progress) -> Mapping[str, int]:
    outcome = experiment(fleet_world(scenario), draft.path, progress=progress)
    draft.add(*outcome.tables)
    return outcome.counts


def _simulate_cells(
    pieces: Path, workers: Workers, scenario: Scenario, draft: Draft, _out: Path, progress: Progress
) -> Mapping[str, int]:
    with executor(*workers) as pool:
        return gathered(scenario, draft, partial(_simulate_cell, pieces.absolute(), scenario), pool, progress)


def _simulate_cell(pieces: Path, scenario: Scenario, cell: Cell) -> Path:
    """Return the folder of a cell's run, which is made unless it is there.

    Each cell has a folder to itself: what other machines of a cluster have not finished is not taken for left behind.
    """
    return obtain(alone(scenario, cell), pieces / cell.name, False, lambda _what, _share: None).path


def _simulate_queue(scenario: QueueScenario, draft: Draft, out: Path, progress: Progress) -> Mapping[str, int]:
    world = QueueWorld(**{field.name: getattr(scenario, field.name) for field in fields(QueueWorld)})
    load = scenario.load
    trace = None if load.trace is None else read_trace(Path(load.trace.file))
    steps = None if load.job is None else _pace(load.job, out, progress)
    outcome = requests(world, draft.path, trace=trace, seconds_per_instruction=steps, progress=progress)
    draft.add(*outcome.tables)
    return outcome.counts


def _simulate_service(scenario: ServiceScenario, draft: Draft, _out: Path, progress: Progress) -> Mapping[str, int]:
    from sim.services.run import record

    outcome = record(world_of(scenario), draft.path, progress)
    draft.add(*outcome.tables)
    return outcome.counts


def _simulate_profile(scenario: ProfileScenario, draft: Draft, _out: Path, progress: Progress) -> Mapping[str, int]:
    from scenarios.runs.symbols import write_symbolised
    from sim.profiling.run import profile

    outcome = profile(profile_world(scenario), draft.path, progress=progress)
    draft.add(*outcome.tables)
    progress("symbolising", 0.0)
    made = write_symbolised(draft.path)
    draft.add(*made)
    return {**outcome.counts, "locations": next(each.rows for each in made if each.table == "locations")}


def fleet_world(scenario: Scenario) -> World:
    """Return what a scenario says of the world, without its name and its analyses.

    Examples
    --------
    >>> fleet_world(Scenario(name="day", seed=3)).seed
    3
    """
    return World(**{field.name: getattr(scenario, field.name) for field in fields(World)})


def profile_world(scenario: ProfileScenario) -> ProfileWorld:
    """Return what a scenario says of the world, without its name and its analyses.

    Examples
    --------
    >>> profile_world(ProfileScenario(name="fortnight", seed=3)) == ProfileWorld(seed=3)
    True
    """
    return ProfileWorld(**{field.name: getattr(scenario, field.name) for field in fields(ProfileWorld)})


def world_of(scenario: ServiceScenario) -> ServiceWorld:
    """Return what a scenario says of the world, without its name and its analyses.

    Examples
    --------
    >>> world_of(ServiceScenario(name="auction", seed=3)) == ServiceWorld(seed=3)
    True
    """
    return ServiceWorld(**{field.name: getattr(scenario, field.name) for field in fields(ServiceWorld)})


_SIMULATE: Mapping[str, Simulate] = {
    "fleet": _simulate_fleet,
    "queue": _simulate_queue,
    "cross_platform": _simulate_service,
    "profile": _simulate_profile,
}


def _inputs(scenario: AnyScenario) -> dict[str, str]:
    """Return what decides the tables beside the world: how many cells there are, and what is taken from outside.

    The latter is the value that names it, and a digest of what it holds.
    """
    found = dict[str, str]()
    if isinstance(scenario, Scenario) and scenario.cells > 1:
        found["cells"] = str(scenario.cells)
    if isinstance(scenario, QueueScenario) and scenario.load.trace is not None:
        found["load.trace.file"] = file_digest(Path(scenario.load.trace.file))
    if isinstance(scenario, QueueScenario) and scenario.load.job is not None:
        found["load.job.scenario"] = digest(_fleet(scenario.load.job))
    return found


def _fleet(job: JobDemand) -> Scenario:
    """Return the fleet of a job, recorded finely enough to follow one instance, and no more than that."""
    fleet = load(job.scenario)
    if not isinstance(fleet, Scenario):
        raise RunError(f"{job.scenario}: is a {fleet.kind}, where a fleet is needed")
    if fleet.cells > 1:
        raise RunError(f"{job.scenario}: has {fleet.cells} cells, where one is needed")
    return replace(fleet, recording=replace(fleet.recording, instance_epoch_share=1.0, truth=False, loop=None))


def _pace(job: JobDemand, out: Path, progress: Progress) -> Steps:
    return pace(obtain(_fleet(job), out, False, progress), job.job, job.instance)
