"""Options that several commands share, alike in all of them, and what becomes of them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from models.metrics import MetricName
from scenarios.files.options import interval, refuse

if TYPE_CHECKING:
    from scenarios.files.schema import AnyScenario
    from scenarios.files.source import Override

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
"""The option that every command with a result has."""
Out = Annotated[Path, typer.Option(help="Folder that the runs' folders go into.")]
Force = Annotated[bool, typer.Option("--force", help="Simulate again even if an intact run is there.")]
Seed = Annotated[str | None, typer.Option(metavar="N", help="Another seed.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Another value, such as fleet.machines=500; may be repeated."),
]
T = Annotated[str, typer.Option("--t", metavar="X", help="Half-width of intervals in standard errors.")]
MinInstances = Annotated[str, typer.Option(metavar="N", help="Least measured instances of a job.")]
Jobs = Annotated[Path | None, typer.Option(metavar="FILE", help="The whole fleet's jobs: job, quota, instances.")]
Confidence = Annotated[str, typer.Option(metavar="SHARE", help="Of intervals.")]
Metric = Annotated[
    MetricName | None, typer.Option(help="What is measured of a run; what its scenario says, if left out.")
]
Estimator = Annotated[str, typer.Option(metavar="NAME", help="Estimator; a wrong name lists them.")]
ServiceLog = Annotated[
    Path,
    typer.Argument(help="Log of a service, a row an interval: CSV or Parquet; or the folder of a run."),
]
Service = Annotated[
    str | None, typer.Option(metavar="NAME", help="Service of a fleet's run that served the requests of several.")
]
From = Annotated[str, typer.Option("--from", metavar="PLATFORM", help="Platform that the log was made on.")]
Platforms = Annotated[
    Path | None, typer.Option("--platforms", metavar="FILE", help="Your own platforms, YAML, beside the shipped ones.")
]
Ratio = Annotated[
    str | None,
    typer.Option(
        metavar="LOW,HIGH",
        help="Instructions of a request on platforms of another instruction set over those of the log (90% interval).",
    ),
]
Benchmarks = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Public scores: CSV or Parquet with platform and score_per_s.")
]


def check_estimator(name: str) -> None:
    """Refuse what is no estimator of a fleet-wide effect for which tables of observations are enough.

    Raises
    ------
    FaultsError
        With the names that there are.

    Examples
    --------
    >>> check_estimator("adjusted")
    """
    from analysis.effects.methods import of_tables

    if name not in of_tables():
        refuse("--estimator", f"should be one of {', '.join(of_tables())}", name)


def overrides(
    sets: Iterable[str] | None, seed: str | None = None, machines: str | None = None, metric: str | None = None
) -> list["Override"]:
    """Return the values that options give in place of those of a scenario file."""
    from scenarios.files.source import Override, settings

    sizes = f"[{machines}]" if machines is not None else None
    options = [
        Override("seed", seed, "--seed"),
        Override("analyses.wsmeter.machines", sizes, "--machines", column=0),
        Override("analyses.wsmeter.metric", metric, "--metric"),
    ]
    return [*settings(sets or ()), *(option for option in options if option.value is not None)]


def load_scenarios(reference: str, overrides: list["Override"]) -> list["AnyScenario"]:
    """Return the scenarios of a file, with values in place of the file's."""
    from scenarios.files.loader import load_each

    return load_each(reference, overrides)


def ratio_of(text: str | None) -> tuple[float, float] | None:
    """Return the interval that `--instruction-ratio` says."""
    return None if text is None else interval("--instruction-ratio", text, 0.1, 10.0)
