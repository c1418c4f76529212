"""The command `wsc reproduce`."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, folder, guard
from scenarios.commands.options import Json, Workers, written
from scenarios.files import options

_MOST_WORLDS = 10


@guard
def reproduce(
    what: Annotated[str, typer.Argument(metavar="[ID|PAPER|all]", help="Figure, table or paper to redraw.")] = "all",
    *,
    worlds: Annotated[
        int | None,
        written(
            partial(options.whole, most=_MOST_WORLDS),
            "N",
            help="Judge rows on so many simulated worlds, of ten; if not said, on those that were measured before.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Try the causes of what does not hold, and the other population.")
    ] = False,
    executor: Annotated[
        str, typer.Option(metavar="WHERE", help="processes, or dask:ADDRESS of a Dask scheduler.")
    ] = "processes",
    workers: Workers = None,
    out: Annotated[Path, typer.Option(help="Folder for figures and tables.")] = Path("figures"),
    runs: Annotated[Path, typer.Option(help="Folder of the runs that they are made from.")] = Path("runs"),
    list_: Annotated[bool, typer.Option("--list", help="List the figures and tables.")] = False,
    json: Json = False,
) -> None:
    """Redraw published figures and tables from simulated fleets, and say which findings hold."""
    from scenarios.papers import catalogue
    from scenarios.papers import reproduce as papers
    from scenarios.runs import execution
    from scenarios.runs.executors import checked
    from scenarios.runs.rundir import make_folder
    from scenarios.views.terminal import progress

    if list_:
        answer(papers.listing(), json)
        return
    catalogue.chosen(what)
    asked = papers.Asked(runs, worlds, execution.Workers(checked(executor), workers), explain)
    with folder("--out"):
        make_folder(out)
    with progress(quiet=json) as tell, folder("--runs"):
        rows = papers.reproduce(what, out, catalogue.library(runs, tell), asked)
    answer(rows, json)
