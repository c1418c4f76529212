"""The command `wsc run`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenarios.commands.guard import answer_each, folder, guard
from scenarios.commands.options import (
    Force,
    Json,
    Metric,
    Out,
    SeedOfScenario,
    Sets,
    Workers,
    share,
)
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.options import refuse

if TYPE_CHECKING:
    from scenarios.files.schema import AnyScenario
    from scenarios.runs.execution import Workers as CellWorkers

NamedOrRun = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="Name of a library scenario, path of a file, or folder of a run.")
]


@guard
def run(
    scenario: NamedOrRun,
    *,
    out: Out = Path("runs"),
    seed: SeedOfScenario = None,
    sets: Sets = None,
    precision: Annotated[
        float | None, share(help="Lengthen a queue's run until its mean response is known to, say, 2%.")
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(metavar="WHERE", help="Where several cells run: processes, or dask:ADDRESS."),
    ] = None,
    workers: Workers = None,
    metric: Metric = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Simulate a scenario and report what changed; an intact run of the same scenario is used again.

    A run's folder in place of a scenario is only measured again.
    """
    from scenarios.files.loader import load_each, overrides

    is_run = _is_run(scenario)
    values = overrides(sets, seed=seed, metric=None if is_run else metric)
    if is_run and (values or force):
        refuse("--set", "cannot change a run that is there", scenario)
    if is_run and precision is not None:
        refuse("--precision", "cannot lengthen a run that is there", scenario)
    scenarios = [] if is_run else load_each(scenario, values)
    from scenarios.runs import execution
    from scenarios.views.terminal import progress

    cells_on = workers_of(scenarios, executor, workers)
    with progress(quiet=json) as tell, folder("--out"):
        conclusions = [execution.run(loaded, out, force, tell, precision, workers=cells_on) for loaded in scenarios]
        if is_run:
            from scenarios.wsmeter.measurements import in_metric

            recorded, recorded_run = execution.reopen(Path(scenario))
            conclusions = [execution.measure(in_metric(recorded, metric), recorded_run, out, tell)]
    answer_each(conclusions, json)


def _is_run(text: str) -> bool:
    """Return whether a text is the folder of a run; a plain name is a scenario unless a manifest is there."""
    return Path(text).is_dir() and ("/" in text or (Path(text) / "manifest.json").is_file())


def workers_of(scenarios: "Sequence[AnyScenario]", where: str | None, count: int | None) -> "CellWorkers":
    """Return where the cells of scenarios are worked on; no scenario is there if a run is."""
    from scenarios.runs.execution import HERE, Workers
    from scenarios.runs.executors import PROCESSES, checked

    if where is None and count is None:
        return HERE
    if not any(getattr(scenario, "cells", 1) > 1 for scenario in scenarios):
        given = {"--executor": where, "--workers": count}
        problem = "is only for fleets of several cells that are to be simulated"
        raise FaultsError(Fault(name, 1, 1, "", problem, str(value)) for name, value in given.items() if value)
    place = checked(where or PROCESSES)
    if count is not None and place != PROCESSES:
        refuse("--workers", "is only for processes; a Dask cluster has its own number of workers", str(count))
    return Workers(place, count)
