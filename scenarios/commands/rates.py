"""The command `wsc rates`."""

from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Confidence, Jobs, Json, Metric, Platforms, Prices
from scenarios.commands.tables import NamedTables, reads_tables


@guard
@reads_tables(
    "Observations of a fleet of several platforms: period, job, machine, weight, value, platform. CSV or Parquet; a "
    "SELECT; or a run's folder."
)
def rates(
    tables: NamedTables,
    *,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="PLATFORM", help="Platform in whose machines others are told.", show_default="that of most machines"
        ),
    ] = None,
    jobs: Jobs = None,
    metric: Metric = None,
    confidence: Confidence = 0.95,
    cluster: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of what counts as independent, such as rack.")
    ] = "machine",
    platforms: Platforms = None,
    prices: Prices = None,
    json: Json = False,
) -> None:
    """Say what one machine of a platform is worth in machines of another, for each job and for the fleet's mix."""
    from scenarios.effects.rates import RatesQuestion
    from scenarios.effects.rates import rates as compared
    from scenarios.views.terminal import progress

    question = RatesQuestion(against, metric, confidence, cluster, platforms, prices)
    with progress(quiet=json) as tell:
        tell("reading and comparing", 0.0)
        conclusion = compared(tables.sources, question, jobs, tables.recipe)
        tell("reading and comparing", 1.0)
    answer(conclusion, json)
