"""The command `wsc reproduce`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenarios.commands.guard import answer, folder, guard
from scenarios.commands.options import Json, Workers, written
from scenarios.files import options
from scenarios.files.faults import Fault, FaultsError

if TYPE_CHECKING:
    from scenarios.papers.judged import JudgedRow

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
    show: Annotated[bool, typer.Option("--show", help="Open the picture of the figure, if one is redrawn.")] = False,
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
    ids = catalogue.chosen(what)
    if show and len(ids) > 1:
        raise FaultsError([Fault("--show", 1, 1, "", "opens the picture of one row", f"{what}, which are {len(ids)}")])
    asked = papers.Asked(runs, worlds, execution.Workers(checked(executor), workers), explain)
    with folder("--out"):
        make_folder(out)
    with progress(quiet=json) as tell, folder("--runs"):
        rows = papers.reproduce(what, out, catalogue.library(runs, tell), asked)
    answer(rows, json)
    if show:
        _open(rows.rows[0])


def _open(row: "JudgedRow") -> None:
    """Open the picture of a row; say so where it has none, or where there is no display."""
    from scenarios.views.opening import opened

    pictures = [Path(file) for file in row.files if file.endswith(".png")]
    text = opened(pictures[0]) if pictures else f"{row.id} is a table, there is no picture to show"
    if text:
        typer.echo(f"note: {text}", err=True)
