"""A scenario becomes a run directory: the intact one that is there, or a new one."""

import json
from dataclasses import fields
from pathlib import Path

from pydantic import ValidationError

from models.scenario import World
from scenarios.loop import rounds
from scenarios.output import Progress
from scenarios.rundir import Run, RunError, creating, open_run, reusable, run_directory
from scenarios.schema import SCENARIO, Scenario
from scenarios.source import digest
from sim.experiment import experiment
from sim.recorder import write_table


def obtain(scenario: Scenario, out: Path, force: bool, progress: Progress) -> Run:
    """Return the run of a scenario: the intact one that is there, or a new one.

    Parameters
    ----------
    scenario : what is asked
    out : parent folder of all runs
    force : simulate even if an intact run is there
    progress : told what is being done and the share done

    Raises
    ------
    ValueError
        If the jobs do not fit the machines.
    """
    named = digest(scenario)
    place = run_directory(out, scenario.name, named)
    if not force and reusable(place):
        return open_run(place)
    with creating(out, scenario.name, named) as draft:
        outcome = experiment(_world(scenario), draft.path, progress=progress)
        draft.add(*outcome.tables)
        if scenario.feature is not None and scenario.recording.loop is not None:
            made = rounds(outcome.day, scenario.recording.loop, progress)
            draft.add(write_table(draft.path, "rounds", {str(name): made[name] for name in made.columns}))
        draft.describe(scenario.kind, scenario.seed, SCENARIO.dump_python(scenario, mode="json"), outcome.counts)
    return open_run(place)


def reopen(path: Path) -> tuple[Scenario, Run]:
    """Return the scenario of a run that is there, and the run; a copy without its ``truth_`` tables will do.

    Raises
    ------
    RunError
        If the directory is no finished run, or its manifest does not hold a scenario of this version.
    """
    run = open_run(path)
    try:
        return SCENARIO.validate_json(json.dumps(run.manifest.get("resolved"))), run
    except ValidationError as fault:
        raise RunError(f"{path}: the manifest holds no scenario: {fault.error_count()} faults") from None


def _world(scenario: Scenario) -> World:
    """Return the part of a scenario that decides the tables."""
    return World(**{field.name: getattr(scenario, field.name) for field in fields(World)})
