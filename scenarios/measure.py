"""A scenario is run and measured as its kind is: what `wsc run` and `wsc validate` print."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from scenarios.crossplatform import measure as run_service
from scenarios.files.schema import AnyScenario, QueueScenario
from scenarios.occupancy import measure as run_queue
from scenarios.occupancy.steady import lengthen
from scenarios.profiling import measure as run_profile
from scenarios.profiling import validate as validate_profile
from scenarios.runs.cells import HERE, Workers
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import Run, RunError
from scenarios.views.output import Progress
from scenarios.wsmeter import measure as run_fleet
from scenarios.wsmeter.validate import show_validate as show_clusters


@dataclass(frozen=True, slots=True)
class Measuring:
    """How runs of one kind are measured, and how what was measured is printed."""

    measure: Callable[[Any, Run, Path, Progress], dict[str, Any]]
    render: Callable[[Mapping[str, Any], Console], None]


@dataclass(frozen=True, slots=True)
class Validating:
    """How methods are judged many times on one kind of scenario, and how that is printed."""

    validate: Callable[[Any, Path, bool, Progress], dict[str, Any]]
    show: Callable[[Mapping[str, Any], Console], None]


KINDS: Mapping[str, Measuring] = {
    "fleet": Measuring(run_fleet.measure, run_fleet.render),
    "queue": Measuring(run_queue.measure, run_queue.render),
    "cross_platform": Measuring(run_service.measure, run_service.render),
    "profile": Measuring(run_profile.measure, run_profile.render),
}
VALIDATED: Mapping[str, Validating] = {
    "fleet": Validating(run_fleet.validate, show_clusters),
    "cross_platform": Validating(run_service.validate, run_service.show_validate),
    "profile": Validating(validate_profile.validate, validate_profile.show),
}


def run(
    scenario: AnyScenario,
    out: Path,
    force: bool,
    progress: Progress,
    precision: float | None = None,
    *,
    workers: Workers = HERE,
) -> dict[str, Any]:
    """Return what `wsc run` says of a scenario; figures go into the run's directory.

    Parameters
    ----------
    scenario : what is asked
    out : folder of all runs
    force : simulate even if an intact run is there
    progress : told what is being done
    precision : the horizon of a queue is lengthened until its mean response time is known to so small a share of it
    workers : of the cells, if a fleet has several

    Raises
    ------
    RunError
        If a precision is asked of a fleet, or cannot be had.
    """
    if precision is not None:
        return _precise(scenario, out, force, progress, precision)
    return measure(scenario, obtain(scenario, out, force, progress, workers=workers), out, progress)


def measure(scenario: AnyScenario, found: Run, out: Path, progress: Progress) -> dict[str, Any]:
    """Return what `wsc run` says of a run that is there; without its ``truth_`` tables the truth is NaN.

    Parameters
    ----------
    scenario : whose analyses are made
    found : its run
    out : folder of the runs that stand beside it
    progress : told what is being done
    """
    return KINDS[scenario.kind].measure(scenario, found, out, progress)


def _precise(scenario: AnyScenario, out: Path, force: bool, progress: Progress, share: float) -> dict[str, Any]:
    if not isinstance(scenario, QueueScenario):
        raise RunError(f"{scenario.name}: is a {scenario.kind}; --precision is of a queue's mean response time")
    made = lengthen(scenario, share, out, force, progress)
    told = {"asked": share, "horizon_s": made.scenario.horizon_s, "runs": made.runs}
    return measure(made.scenario, made.run, out, progress) | {"precision": told}


def validate(scenario: AnyScenario, out: Path, force: bool, progress: Progress) -> dict[str, Any]:
    """Return what `wsc validate` says: how often intervals were right, of many test clusters or in many worlds.

    Raises
    ------
    RunError
        If the scenario is a queue, a fleet without a feature, or records no truth: nothing is there to be right about.
    """
    if scenario.kind not in VALIDATED:
        said = "the laws stand beside the truth in what wsc run says"
        raise RunError(f"{scenario.name}: is a {scenario.kind}, of which no test clusters can be drawn; {said}")
    return VALIDATED[scenario.kind].validate(scenario, out, force, progress)


def show_validate(payload: Mapping[str, Any], console: Console) -> None:
    """Print how often intervals were right."""
    VALIDATED[payload["kind"]].show(payload, console)


def render(payload: Mapping[str, Any], console: Console) -> None:
    """Print what a run was and what was measured of it."""
    KINDS[payload["kind"]].render(payload, console)
