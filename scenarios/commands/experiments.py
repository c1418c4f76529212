"""The commands about experiments while they run and after: `wsc audit`, `wsc monitor`, `wsc scorecard`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.effects import Estimator, Jobs, check_estimator
from scenarios.commands.guard import Json, command, say
from scenarios.commands.scorecard import scorecard
from scenarios.files.options import share, whole

__all__ = ("audit", "monitor", "scorecard")

_MOST_LOOKS = 100_000

command(scorecard)


@command
def audit(
    tables: Annotated[
        list[Path],
        typer.Argument(
            metavar="TABLES…",
            help="Observations, CSV or Parquet; perhaps jobs, and what is said of the experiment as YAML or JSON.",
        ),
    ],
    *,
    json: Json = False,
) -> None:
    """Name what would make an experiment's answer false; status 1 if anything is worse than a note."""
    from scenarios.effects import audit as guards

    payload = guards.audit(tables)
    say(payload, guards.show, json)
    raise typer.Exit(guards.status(payload))


@command
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
    json: Json = False,
) -> None:
    """Say what an experiment shows so far, with intervals that hold however often one looks."""
    sure = share("--confidence", confidence)
    looks = whole("--planned", planned, _MOST_LOOKS) if planned is not None else None
    check_estimator(estimator)
    from scenarios.effects import monitor as looked

    say(
        looked.monitor(tables, jobs, every=every, planned=looks, estimator=estimator, confidence=sure),
        looked.show,
        json,
    )
