"""The command `wsc affinity`."""

from typing import Annotated, Literal

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, Platforms
from scenarios.commands.tables import NamedTables, reads_pairs


@guard
@reads_pairs
def affinity(
    read: NamedTables,
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
    from scenarios.views.terminal import working

    (source,) = read.sources
    settings = {"keep_traffic": keep_traffic, "judged": judge}
    with working("assigning jobs", quiet=json):
        conclusion = advised.affinity(source, method, platforms=platforms, recipe=read.recipe, **settings)
    answer(conclusion, json)
