"""Options that several commands have, alike in all of them; `scenarios.files.options` reads their texts."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.models import OptionInfo

from models.fleet.metrics import MetricName
from scenarios.files import options


def written(
    read: Callable[[str, str], object], metavar: str, *names: str, help: str, panel: str | None = None
) -> OptionInfo:
    """Return an option of which a text is read; `panel` is the part of help that it stands in."""
    parser = options.reading(read)
    option: OptionInfo = typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, parser=parser)
    return option


def with_typed_defaults(function: Callable[..., None]) -> inspect.Signature:
    """Return a command's signature in which a default is the text that one would type, so that help shows that."""
    signature = inspect.signature(function)
    return signature.replace(parameters=[_with_typed_default(entry) for entry in signature.parameters.values()])


def _with_typed_default(parameter: inspect.Parameter) -> inspect.Parameter:
    marks = getattr(parameter.annotation, "__metadata__", ())
    option = next((mark for mark in marks if isinstance(mark, OptionInfo) and mark.parser is not None), None)
    if option is None or parameter.default in {None, parameter.empty, ()}:
        return parameter
    return parameter.replace(default=options.typed(option.metavar or "", parameter.default))


share = partial(written, options.share, "SHARE")
number = partial(written, options.number, "X")
duration = partial(written, options.duration, "TIME")
count = partial(written, options.whole, "N")
counts = partial(written, options.numbers_of, "N,N,…")
factors = partial(written, options.factors, "X,X,…")

JSON = "Print one JSON value and nothing else."
Json = Annotated[bool, typer.Option("--json", help=JSON)]
"""The option that every command with a result has."""
Out = Annotated[Path, typer.Option(help="Folder that the runs' folders go into.")]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Simulate again even if an intact run is there; needed if what a file of yours imports has changed.",
    ),
]
SeedOfScenario = Annotated[str | None, typer.Option("--seed", metavar="N", help="Another seed.")]
"""A value of a scenario file like those of `--set`, so that its faults are told together with theirs."""
Seed = Annotated[int, written(partial(options.whole, least=0, most=2**63 - 1), "N", help="Seed of all random draws.")]
Workers = Annotated[int | None, count(help="Processes; by default one for each processor.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Another value, such as fleet.machines=500; may be repeated."),
]
T = Annotated[float, number("--t", help="Half-width of intervals in standard errors.")]
MinInstances = Annotated[int, count(help="Fewest measured instances of a job that counts.")]
Jobs = Annotated[
    Path | None, typer.Option(metavar="TABLE", parser=str, help="The whole fleet's jobs: job, quota, instances.")
]
Confidence = Annotated[float, share(help="Confidence of the intervals.")]
Metric = Annotated[MetricName | None, typer.Option(help="Metric that is measured in a run; by default the scenario's.")]
MetricKind = Annotated[
    str,
    typer.Option(
        metavar="KIND",
        help="rate (above 0), mean (any numbers), proportion (0 to 1), ratio (value / exposure), or such as p99.",
    ),
]
KindOfMean = Annotated[
    str,
    typer.Option(
        "--metric-kind",
        metavar="KIND",
        help="rate (above 0), mean (any numbers), proportion (0 to 1) or ratio (value / exposure).",
    ),
]
Target = Literal["instances", "quota", "sums"]
Change = Literal["relative", "absolute"]
TargetOption = Annotated[
    Target | None,
    typer.Option(
        "--target",
        help="Weights within a job: each instance alike, or by quota; or a ratio of sums.",
        show_default="instances; sums of a ratio",
    ),
]
ChangeOption = Annotated[
    Change | None,
    typer.Option(
        "--change",
        help="In parts of the level without the feature, or in its unit.",
        show_default="absolute of a mean or a proportion, else relative",
    ),
]
Guards = Annotated[
    list[str] | None,
    typer.Option(
        "--guard", metavar="FILE.py:NAME", help="A guard of your own, beside ours (see docs/extend.md); repeatable."
    ),
]
_ESTIMATORS = (
    "Estimator: published, published-widened, concurrent, ratio, cuped, unadjusted, own-past, adjusted, shrunken, "
    "random-effects, stratified or staged (see docs/estimators.md)"
)
Estimator = Annotated[str, written(options.estimator_of, "NAME", help=f"{_ESTIMATORS}.")]
AnyEstimator = Annotated[
    str,
    written(partial(options.estimator_of, own=True), "NAME", help=f"{_ESTIMATORS}, or your own as mine.py:Mine."),
]
Service = Annotated[
    str | None, typer.Option(metavar="NAME", help="Service to read, where a fleet's run served several.")
]
From = Annotated[str, typer.Option("--from", metavar="PLATFORM", help="Platform that the log was made on.")]
Platforms = Annotated[
    Path | None,
    typer.Option("--platforms", metavar="FILE", help="YAML file of your own platforms, beside the shipped ones."),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=str,
        help="Table, or a SELECT, of platform, price, years, power_w, power_price, and perhaps carbon_kg and "
        "carbon_kg_per_kwh.",
    ),
]
Ratio = Annotated[
    Sequence[float] | None,
    written(
        options.instruction_ratio,
        "LOW,HIGH",
        help="Instructions of a request on another instruction set, divided by those in the log (90% interval).",
    ),
]
Clocks = Annotated[
    Mapping[str, float] | None,
    written(
        options.clocks,
        "PLATFORM=CLOCK,…",
        help="Clocks of platforms that do not run at the base clock of their sheets, such as pres=1.6GHz.",
    ),
]
Benchmarks = Annotated[
    Path | None,
    typer.Option(metavar="FILE", parser=str, help="Table, or a SELECT, of public scores: platform, score_per_s."),
]
