"""The command `wsc design`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Confidence, Jobs, Json, Metric
from scenarios.files.options import number, refuse, share, whole

_MOST_DAYS = 366
_MOST_DRAWS = 100_000


@guard
def design(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE…|SCENARIO",
            help="Observations of your fleet without the feature, of two periods or more; or a scenario to simulate.",
        ),
    ],
    *,
    detect: Annotated[str, typer.Option(metavar="SHARE", help="Change of the fleet that is to be seen.")],
    power: Annotated[str, typer.Option(metavar="SHARE", help="Share of experiments that are to see it.")] = "95%",
    confidence: Confidence = "95%",
    days: Annotated[str, typer.Option(metavar="N", help="Days of the longer study, and of the time before.")] = "7",
    crossover: Annotated[
        bool, typer.Option("--crossover", help="The feature can be switched on and off from period to period.")
    ] = False,
    spread: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Standard deviation of the jobs' effects; twice the change if not said."),
    ] = None,
    apart: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Of what machines add to effects; a quarter of --spread."),
    ] = None,
    jobs: Jobs = None,
    draws: Annotated[str, typer.Option(metavar="N", help="Experiments rehearsed for each size.")] = "500",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of all random draws.")] = 1,
    assign: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the machines of the first design: machine, start_s, end_s, treated; .csv or .parquet.",
        ),
    ] = None,
    metric: Metric = None,
    json: Json = False,
) -> None:
    """Say which experiment finds a change of a given size, on how many machines, for how long, and why."""
    length = number("--days", days)
    if length > _MOST_DAYS:
        refuse("--days", f"should be at most {_MOST_DAYS}", days)
    rehearsed = whole("--draws", draws, _MOST_DRAWS)
    if rehearsed < 100:
        refuse("--draws", "should be at least 100", draws)
    sizes = share("--detect", detect), share("--power", power), share("--confidence", confidence)
    effects = _spread("--spread", spread), _spread("--apart", apart)
    from scenarios.effects.design import DesignQuestion
    from scenarios.effects.design import design as designed
    from scenarios.views.output import progress

    question = DesignQuestion(*sizes, length, crossover, *effects, rehearsed, seed, assign, metric)
    with progress(quiet=json) as tell:
        conclusion = designed(sources, question, jobs, tell)
    answer(conclusion, json)


def _spread(option: str, text: str | None) -> float | None:
    """Return a standard deviation, which may be 0."""
    if text is None:
        return None
    return 0.0 if text.strip() in {"0", "0%"} else share(option, text)
