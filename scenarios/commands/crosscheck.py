"""The command `wsc crosscheck`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json


@guard
def crosscheck(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    *,
    json: Json = False,
) -> None:
    """Check whether counters, profile, requests and predictions of a run agree; status 1 if they do not."""
    from scenarios.crosscheck import crosscheck as compared
    from scenarios.runs.rundir import open_run
    from scenarios.runs.verify import changed
    from scenarios.views.terminal import progress

    with progress(quiet=json) as tell:
        agreement = compared.crosscheck(run, tell)
    answer(agreement, json)
    if files := changed(open_run(run)):
        typer.echo(f"changed since the run was made: {', '.join(files)}", err=True)
    raise typer.Exit(0 if agreement.agree else 1)
