"""The command `wsc monitor`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Estimator, Jobs, Json, Metric, check_estimator
from scenarios.files.options import number, share, whole

_MOST_LOOKS = 100_000


@guard
def monitor(
    tables: Annotated[
        list[Path], typer.Argument(metavar="TABLE…", help="Observations so far, CSV or Parquet; or a run's folder.")
    ],
    *,
    jobs: Jobs = None,
    every: Annotated[
        str, typer.Option(metavar="WHEN", help="A look after each period, each day, or each so many units of periods.")
    ] = "period",
    planned: Annotated[str | None, typer.Option(metavar="N", help="Looks until the planned end.")] = None,
    estimator: Estimator = "adjusted",
    confidence: Annotated[str, typer.Option(metavar="SHARE", help="Of all looks together.")] = "95%",
    metric: Metric = None,
    json: Json = False,
) -> None:
    """Say what an experiment shows so far, with intervals that hold however often one looks."""
    sure = share("--confidence", confidence)
    looks = whole("--planned", planned, _MOST_LOOKS) if planned is not None else None
    check_estimator(estimator)
    from scenarios.effects.monitor import Every
    from scenarios.effects.monitor import monitor as monitored

    step: Every = "period" if every == "period" else "day" if every == "day" else number("--every", every)

    answer(
        monitored(tables, jobs, every=step, planned=looks, estimator=estimator, confidence=sure, metric=metric),
        json,
    )
