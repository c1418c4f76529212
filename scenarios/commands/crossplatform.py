"""The commands about services on other platforms: `wsc predict`, `wsc select`, `wsc platforms`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import Json, command, say
from scenarios.files.options import interval, refuse

__all__ = ("platforms", "predict", "select")

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


def _ratio(text: str | None) -> tuple[float, float] | None:
    return None if text is None else interval("--instruction-ratio", text, 0.1, 10.0)


@command
def predict(
    log: ServiceLog,
    *,
    origin: From,
    to: Annotated[str, typer.Option(metavar="PLATFORM,…", help="Platforms to predict for.")],
    platforms: Platforms = None,
    benchmarks: Benchmarks = None,
    method: Annotated[
        str | None, typer.Option(help="Way to predict; by itself testbed, or published where nobody counted CPU time.")
    ] = None,
    service: Service = None,
    instruction_ratio: Ratio = None,
    json: Json = False,
) -> None:
    """Predict service and response time on platforms where a service never ran, from its log where it did."""
    from scenarios.crossplatform import calibrated
    from scenarios.crossplatform import predict as predictions

    ratio = _ratio(instruction_ratio)
    asked = calibrated.Asked(log, origin, tuple(to.split(",")), platforms, benchmarks, method, service, ratio)
    say(predictions.predict(asked), predictions.show_predict, json)


@command
def select(
    log: ServiceLog,
    *,
    origin: From,
    bound: Annotated[str, typer.Option(metavar="TIME", help="Bound on mean response time, such as 150ms.")],
    to: Annotated[str | None, typer.Option(metavar="PLATFORM,…", help="Platforms to choose from.")] = None,
    platforms: Platforms = None,
    benchmarks: Benchmarks = None,
    method: Annotated[str | None, typer.Option(help="Way to predict, as of wsc predict.")] = None,
    instruction_ratio: Ratio = None,
    json: Json = False,
) -> None:
    """Rank platforms by how many requests a second they would serve per watt within a bound on response time."""
    from scenarios.crossplatform import calibrated
    from scenarios.crossplatform import select as choices
    from scenarios.files import options

    if bound.strip()[-1:].isdigit():
        refuse("--bound", "needs a unit, such as 150ms or 2s", bound)
    bound_s = options.duration("--bound", bound)
    names = tuple(to.split(",")) if to is not None else ()
    ratio = _ratio(instruction_ratio)
    asked = calibrated.Asked(log, origin, names, platforms, benchmarks, method, instruction_ratio=ratio)
    say(choices.select(asked, bound_s), choices.show_select, json)


@command
def platforms(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME…]", help="Which to show in full.")] = None,
    *,
    file: Platforms = None,
    json: Json = False,
) -> None:
    """List the platforms that are known, or show one's spec sheet."""
    from scenarios.crossplatform import platforms as sheets

    say(sheets.platforms(tuple(names or ()), file), sheets.show_platforms, json)
