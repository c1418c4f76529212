"""The command `wsc plan`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, MinInstances, T, share


@guard
def plan(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet: job, weight, mean, std, instances, cost.")],
    *,
    margin: Annotated[float, share(help="Relative margin to plan for, such as 3% or 0.03.")],
    t: T = 2,
    min_instances: MinInstances = 4,
    json: Json = False,
) -> None:
    """Say how many instances of each job to measure for a margin, at least cost."""
    from scenarios.wsmeter import own_tables

    answer(own_tables.plan(table, margin, t, min_instances), json)
