"""The command `wsc estimate`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, MinInstances, T


@guard
def estimate(
    *,
    current: Annotated[Path, typer.Option(metavar="FILE", help="Instances without the feature: CSV or Parquet.")],
    new: Annotated[Path, typer.Option(metavar="FILE", help="Instances with the feature.")],
    jobs: Annotated[Path | None, typer.Option(metavar="FILE", help="Jobs of the fleet: job, quota, instances.")] = None,
    current_is: Annotated[
        Literal["population", "sample"], typer.Option(help="Whether `current` is the whole fleet or a sample of it.")
    ] = "population",
    t: T = 2,
    min_instances: MinInstances = 4,
    json: Json = False,
) -> None:
    """Estimate a change from measurements of a real fleet: job, machine, weight, value."""
    from scenarios.wsmeter import own_tables

    conclusion = own_tables.estimate(current, new, jobs, current_is=current_is, t=t, min_instances=min_instances)
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.trusted else 1)
