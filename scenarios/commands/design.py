"""The command `wsc design`."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import (
    ChangeOption,
    Confidence,
    Jobs,
    Json,
    KindOfMean,
    Metric,
    Seed,
    share,
    written,
)
from scenarios.commands.tables import NamedTables, reads_tables
from scenarios.files import options

_MOST_DRAWS = 100_000


_amount = partial(written, options.amount, "CHANGE")
"""A change: a share of the level, or of a proportion; or a number in the unit of a mean."""
_spread = partial(written, partial(options.amount, zero=True), "CHANGE")
"""A standard deviation of changes, which may be 0."""


@guard
@reads_tables(
    "Observations of your fleet without the feature, of two periods or more, as wsc effect takes them; or a scenario.",
    "TABLE…|SCENARIO",
)
def design(
    tables: NamedTables,
    *,
    detect: Annotated[
        float,
        _amount(
            help="Smallest change of the fleet that the experiment should detect, such as 1%, or in a mean's unit."
        ),
    ],
    power: Annotated[float, share(help="Share of experiments that should detect it.")] = 0.95,
    confidence: Confidence = 0.95,
    days: Annotated[
        float,
        written(
            partial(options.number, most=366.0),
            "X",
            help="Days of the longer experiment, and days that are observed before it.",
        ),
    ] = 7,
    crossover: Annotated[
        bool, typer.Option("--crossover", help="The feature can be switched on and off from period to period.")
    ] = False,
    spread: Annotated[
        float | None, _spread(help="Standard deviation of the change between jobs; by default twice --detect.")
    ] = None,
    apart: Annotated[
        float | None,
        _spread(help="Standard deviation of the change between machines; by default a quarter of --spread."),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of machines that disturb each other: domains are drawn, not machines."
        ),
    ] = None,
    saturations: Annotated[
        Sequence[float] | None,
        written(
            options.shares,
            "SHARES",
            help="Shares of a domain's machines that get the feature, such as 0,50%,100%; by default 0,100%.",
        ),
    ] = None,
    jobs: Jobs = None,
    draws: Annotated[
        int,
        written(partial(options.whole, least=100, most=_MOST_DRAWS), "N", help="Experiments rehearsed for each size."),
    ] = 500,
    seed: Seed = 1,
    assign: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the machines for the first design and write them: machine, start_s, end_s, treated; .csv "
            "or .parquet.",
        ),
    ] = None,
    metric: Metric = None,
    metric_kind: KindOfMean = "rate",
    change: ChangeOption = None,
    json: Json = False,
) -> None:
    """Plan the experiment that finds a change of a given size: the design, how many machines, how long, and why.

    The status is 1 if no design finds it.
    """
    from scenarios.effects.design import DesignQuestion
    from scenarios.effects.design import design as designed
    from scenarios.views.terminal import progress

    question = DesignQuestion(
        detect,
        power,
        confidence,
        days,
        crossover,
        spread,
        apart,
        draws,
        seed,
        assign,
        metric,
        metric_kind=metric_kind,
        change=change,
        domain=domain,
        saturations=(0.0, 1.0) if saturations is None else tuple(saturations),
    )
    with progress(quiet=json) as tell:
        conclusion = designed(tables.sources, question, jobs, tell, tables.recipe)
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.sufficient else 1)
