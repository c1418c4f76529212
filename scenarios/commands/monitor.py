"""The command `wsc monitor`."""

from functools import partial
from typing import Annotated, Literal

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import (
    ChangeOption,
    Estimator,
    Guards,
    Jobs,
    Json,
    KindOfMean,
    Metric,
    TargetOption,
    share,
    written,
)
from scenarios.commands.tables import NamedTables, reads_tables
from scenarios.files import options
from scenarios.files.faults import FaultsError

_MOST_LOOKS = 100_000


def _every(option: str, text: str) -> str:
    if text in {"period", "day"}:
        return text
    try:
        return str(options.number(option, text))
    except FaultsError:
        options.refuse(option, "should be period, day, or a number above 0 in the unit of the periods", text)


@guard
@reads_tables("Observations so far, as wsc effect takes them.")
def monitor(
    tables: NamedTables,
    *,
    jobs: Jobs = None,
    every: Annotated[
        str,
        written(_every, "WHEN", help="How often the team looks: period, day, or a number in the unit of the periods."),
    ] = "period",
    planned: Annotated[
        int | None,
        written(partial(options.whole, most=_MOST_LOOKS), "N", help="Number of looks until the planned end."),
    ] = None,
    estimator: Estimator = "adjusted",
    confidence: Annotated[float, share(help="Confidence that the intervals of all looks contain the truth.")] = 0.95,
    spending: Annotated[
        Literal["any-time", "obrien-fleming", "pocock"],
        typer.Option(help="How the error is spent: for ever, or up to the planned end (late, or evenly)."),
    ] = "any-time",
    metric: Metric = None,
    target: TargetOption = None,
    metric_kind: KindOfMean = "rate",
    change: ChangeOption = None,
    guards: Guards = None,
    json: Json = False,
) -> None:
    """Show an experiment's estimate so far, with intervals that stay valid however often you look."""
    from scenarios.effects.monitor import Every
    from scenarios.effects.monitor import monitor as monitored
    from scenarios.views.terminal import working

    step: Every = "period" if every == "period" else "day" if every == "day" else float(every)
    with working("reading and estimating", quiet=json):
        conclusion = monitored(
            tables.sources,
            jobs,
            every=step,
            planned=planned,
            estimator=estimator,
            confidence=confidence,
            metric=metric,
            spending=spending,
            recipe=tables.recipe,
            guards=guards or (),
            metric_kind=metric_kind,
            change=change,
            target=target,
        )
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.trusted else 1)
