"""The command `wsc audit`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import guard, say
from scenarios.commands.options import Json, Metric


@guard
def audit(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLES…",
            help="Observations, CSV or Parquet; perhaps jobs, and what is said of the experiment as YAML or JSON.",
        ),
    ],
    *,
    metric: Metric = None,
    json: Json = False,
) -> None:
    """Name what would make an experiment's answer false; status 1 if anything is worse than a note."""
    from scenarios.effects import audit as guards

    payload = guards.audit(tables, metric)
    say(payload, guards.show, json)
    raise typer.Exit(guards.status(payload))
