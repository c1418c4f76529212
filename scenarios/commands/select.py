"""The command `wsc select`."""

from typing import Annotated

import typer

from scenarios.commands.guard import answer, guard, named_options
from scenarios.commands.options import Benchmarks, From, Json, Platforms, Ratio, ServiceLog, ratio_of
from scenarios.files.options import refuse


@guard
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
    from scenarios.crossplatform import select as choices
    from scenarios.crossplatform.predict import ServiceQuestion
    from scenarios.files import options

    if bound.strip()[-1:].isdigit():
        refuse("--bound", "needs a unit, such as 150ms or 2s", bound)
    bound_s = options.duration("--bound", bound)
    names = tuple(to.split(",")) if to is not None else ()
    ratio = ratio_of(instruction_ratio)
    question = ServiceQuestion(log, origin, names, platforms, benchmarks, method, instruction_ratio=ratio)
    with named_options():
        selection = choices.select(question, bound_s)
    answer(selection, json)
