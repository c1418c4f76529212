"""The command `wsc effect`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import (
    AnyEstimator,
    ChangeOption,
    Confidence,
    Guards,
    Jobs,
    Json,
    Metric,
    MetricKind,
    TargetOption,
)
from scenarios.commands.tables import NamedTables, reads_tables
from scenarios.files import options


@guard
@reads_tables(
    "Observations: period, job, machine, weight, value, treated. CSV or Parquet; a SELECT; or a run's folder."
)
def effect(
    tables: NamedTables,
    *,
    jobs: Jobs = None,
    estimator: AnyEstimator = "adjusted",
    confidence: Confidence = 0.95,
    per_job: Annotated[bool, typer.Option("--per-job", help="Name the jobs that changed.")] = False,
    metric: Metric = None,
    about: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Facts about the experiment for the guards; YAML or JSON.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of what was drawn at random, such as rack: its values are the clusters."
        ),
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of machines that disturb each other: the answer is everybody on against nobody on.",
        ),
    ] = None,
    target: TargetOption = None,
    metric_kind: MetricKind = "rate",
    change: ChangeOption = None,
    guards: Guards = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Prices of machines: rows `without` and `with` in place of platforms, as of wsc rates."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Estimate by how much a feature changed a fleet's performance, and warn of what would make the answer false."""
    from analysis.effects.estimand import Estimand
    from scenarios.effects.effect import effect as estimated
    from scenarios.effects.effect import of_no_job
    from scenarios.views.terminal import progress

    if per_job and (why := of_no_job(Estimand.of(metric_kind, change, target))):
        options.refuse("--per-job", f"effects on single jobs are not estimated {why}", "--per-job")
    with progress(quiet=json) as tell:
        tell("reading and estimating", 0.0)
        conclusion = estimated(
            tables.sources,
            jobs,
            estimator=estimator,
            confidence=confidence,
            by_job=per_job,
            metric=metric,
            about=about,
            recipe=tables.recipe,
            guards=guards or (),
            cluster=cluster,
            domain=domain,
            target=target,
            metric_kind=metric_kind,
            change=change,
            prices=prices,
        )
        tell("reading and estimating", 1.0)
    answer(conclusion, json)
    raise typer.Exit(0 if conclusion.trusted else 1)
