"""The command `wsc audit`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
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
    from scenarios.effects.audit import audit as audited

    conclusion = audited(tables, metric)
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.clean else 1)
