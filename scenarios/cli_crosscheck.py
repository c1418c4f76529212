"""The command that compares lenses: `wsc crosscheck`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.command import Json, command, say

__all__ = ("crosscheck",)


@command
def crosscheck(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    *,
    json: Json = False,
) -> None:
    """Say whether counters, profile, requests and predictions agree on a run; status 1 if they do not."""
    from scenarios import crosscheck as compared
    from scenarios.output import progress
    from scenarios.run_tables import changed
    from scenarios.rundir import open_run

    with progress(quiet=json) as tell:
        payload = compared.crosscheck(run, tell)
    say(payload, compared.show, json)
    if files := changed(open_run(run)):
        typer.echo(f"changed since the run was made: {', '.join(files)}", err=True)
    raise typer.Exit(compared.status(payload))
