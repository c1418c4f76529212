"""The command `wsc affinity`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, Platforms


@guard
def affinity(
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE.csv|RUN",
            help="Table of job, platform, load, cpi, capacity, optionally clock_hz and cpi_se; or a profiled "
            "run's folder.",
        ),
    ],
    *,
    method: Annotated[Literal["lp", "anneal"], typer.Option(help="The exact optimum, or simulated annealing.")] = "lp",
    keep_traffic: Annotated[
        bool, typer.Option("--keep-traffic", help="Give no platform more cache misses (column misses) than it has now.")
    ] = False,
    platforms: Platforms = None,
    judge: Annotated[
        bool, typer.Option("--judge", help="For a run: move the jobs in simulation, and compare the saving.")
    ] = False,
    json: Json = False,
) -> None:
    """Assign jobs to the platforms where they take the fewest cycles, within the platforms' capacities."""
    from scenarios.profiling import affinity as advised

    payload = advised.affinity(table, method, keep_traffic=keep_traffic, judged=judge, platforms=platforms)
    answer(payload, json)
