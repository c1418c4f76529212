"""The commands `wsc wsmeter …`: WSMeter as it was published."""

from typing import Annotated, Literal

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Json, MinInstances, T, share
from scenarios.commands.tables import Named, NamedTables, OneNamed, reads_options, reads_table

wsmeter = typer.Typer(
    name="wsmeter",
    add_completion=False,
    help="Plan and evaluate a study by the published method, WSMeter. "
    "`wsc design` and `wsc effect` do the same with intervals that hold more often.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@wsmeter.command()
@guard
@reads_table("The fleet's jobs: job, weight, mean, std, instances, cost. CSV or Parquet; or a SELECT.")
def plan(
    tables: NamedTables,
    *,
    margin: Annotated[float, share(help="Relative margin of error that is wanted: 3% or 0.03.")],
    t: T = 2,
    min_instances: MinInstances = 4,
    json: Json = False,
) -> None:
    """Find how many instances of each job to measure for a margin of error, at the least cost."""
    from scenarios.views.terminal import working
    from scenarios.wsmeter import own_tables

    with working("planning", quiet=json):
        conclusion = own_tables.plan(tables.sources[0], margin, t, min_instances, tables.recipe)
    answer(conclusion, json)


@wsmeter.command()
@guard
@reads_options("current", "new")
def estimate(
    tables: NamedTables,
    *,
    current: Annotated[Named, typer.Option(metavar="TABLE", parser=str, help="Instances without the feature.")],
    new: Annotated[Named, typer.Option(metavar="TABLE", parser=str, help="Instances with the feature.")],
    jobs: Annotated[
        OneNamed, typer.Option(metavar="TABLE", parser=str, help="The whole fleet's jobs: job, quota, instances.")
    ] = None,
    current_is: Annotated[
        Literal["population", "sample"],
        typer.Option(help="Whether --current holds the whole fleet without the feature, or a sample of it."),
    ] = "population",
    t: T = 2,
    min_instances: MinInstances = 4,
    json: Json = False,
) -> None:
    """Estimate a change from two tables of measured instances: job, machine, weight, value.

    A table is CSV or Parquet, or a SELECT. The status is 1 if something makes the answer false.
    """
    from scenarios.views.terminal import working
    from scenarios.wsmeter import own_tables

    with working("reading and estimating", quiet=json):
        conclusion = own_tables.estimate(
            current, new, jobs, current_is=current_is, t=t, min_instances=min_instances, recipe=tables.recipe
        )
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.trusted else 1)
