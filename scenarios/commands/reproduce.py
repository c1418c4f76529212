"""The command `wsc reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, folder, guard
from scenarios.commands.options import Json


@guard
def reproduce(
    what: Annotated[str, typer.Argument(metavar="[ID|PAPER|all]", help="Figure, table or paper to redraw.")] = "all",
    *,
    out: Annotated[Path, typer.Option(help="Folder for figures and tables.")] = Path("figures"),
    runs: Annotated[Path, typer.Option(help="Folder of the runs that they are made from.")] = Path("runs"),
    list_: Annotated[bool, typer.Option("--list", help="List the figures and tables.")] = False,
    json: Json = False,
) -> None:
    """Redraw published figures and tables from simulated fleets, and say which findings hold."""
    from scenarios.papers import reproduce as papers
    from scenarios.runs.rundir import make_folder
    from scenarios.views.terminal import progress

    if list_:
        answer(papers.listing(), json)
        return
    papers.chosen(what)
    with folder("--out"):
        make_folder(out)
    with progress(quiet=json) as tell, folder("--runs"):
        rows = papers.reproduce(what, out, papers.library(runs, tell))
    answer(rows, json)
