"""The command `wsc run`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import folder, guard, say_each
from scenarios.commands.options import Force, Json, Metric, Out, Seed, Sets, load_scenarios, overrides
from scenarios.files.options import refuse, share

NamedOrRun = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="Name of a library scenario, path of a file, or folder of a run.")
]


@guard
def run(
    scenario: NamedOrRun,
    *,
    out: Out = Path("runs"),
    seed: Seed = None,
    sets: Sets = None,
    precision: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Lengthen a queue's run until its mean response is known to, say, 2%."),
    ] = None,
    executor: Annotated[
        str | None, typer.Option(metavar="WHERE", help="Of several cells: processes, or dask:ADDRESS of a scheduler.")
    ] = None,
    workers: Annotated[str | None, typer.Option(metavar="N", help="Processes; one for each processor.")] = None,
    metric: Metric = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Simulate a scenario and say what changed; an intact run of the same scenario is used again.

    The folder of a run in place of a scenario is measured as it is.
    """
    there = _is_run(scenario)
    values = overrides(sets, seed=seed, metric=None if there else metric)
    if there and (values or force):
        refuse("--set", "cannot change a run that is there", scenario)
    wanted = share("--precision", precision) if precision is not None else None
    if there and wanted is not None:
        refuse("--precision", "cannot lengthen a run that is there", scenario)
    scenarios = [] if there else load_scenarios(scenario, values)
    from scenarios.kinds import render
    from scenarios.runs import execution
    from scenarios.runs.cells import workers_of
    from scenarios.views.output import progress
    from scenarios.wsmeter.measurements import in_metric

    cells_on = workers_of(scenarios, executor, workers)
    with progress(quiet=json) as tell, folder("--out"):
        payloads = [execution.run(one, out, force, tell, wanted, workers=cells_on) for one in scenarios]
        if there:
            recorded, found = execution.reopen(Path(scenario))
            payloads = [execution.measure(in_metric(recorded, metric), found, out, tell)]
    say_each(payloads, render, json)


def _is_run(text: str) -> bool:
    """Return whether a text is the folder of a run; a plain name is a scenario unless a manifest is there."""
    return Path(text).is_dir() and ("/" in text or (Path(text) / "manifest.json").is_file())
