"""The command `wsc select`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard
from scenarios.commands.options import Benchmarks, Clocks, From, Json, Platforms, Prices, Ratio, written
from scenarios.commands.tables import NamedTables, reads_log
from scenarios.files import options


def _time(option: str, text: str) -> float:
    """Return seconds that are written with their unit."""
    if text.strip()[-1:].isdigit():
        options.refuse(option, "needs a unit, such as 150ms or 2s", text)
    return options.duration(option, text)


@guard
@reads_log
def select(
    read: NamedTables,
    *,
    origin: From,
    bound: Annotated[float, written(_time, "TIME", help="Bound on mean response time, such as 150ms.")],
    to: Annotated[
        Sequence[str],
        written(
            options.names_of,
            "PLATFORM,…",
            help="Platforms to choose from; by default all shipped ones of the log's instruction set.",
        ),
    ] = (),
    platforms: Platforms = None,
    benchmarks: Benchmarks = None,
    method: Annotated[str | None, typer.Option(help="Method of prediction, as in wsc predict.")] = None,
    instruction_ratio: Ratio = None,
    clock: Clocks = None,
    prices: Prices = None,
    json: Json = False,
) -> None:
    """Rank platforms by requests a second per watt within a bound on response time; status 1 if none meets it."""
    from scenarios.crossplatform import select as choices
    from scenarios.crossplatform.calibration import ServiceQuestion
    from scenarios.views.terminal import working

    ratio = (instruction_ratio[0], instruction_ratio[1]) if instruction_ratio is not None else None
    log, recipe = read.sources[0], read.recipe
    question = ServiceQuestion(log, origin, tuple(to), platforms, benchmarks, method, None, ratio, clock or {}, recipe)
    with working("predicting", quiet=json):
        selection = choices.select(question, bound, prices)
    answer(selection, json)
    if not selection.feasible:
        raise typer.Exit(1)
