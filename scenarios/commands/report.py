"""The command `wsc report`."""

from pathlib import Path
from typing import Annotated

import typer

from scenarios.commands.guard import answer, folder, guard
from scenarios.commands.options import Json, Metric


@guard
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN|DIR", help="Folder of a run, or of results.")],
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File of the page; by default report.html in the folder.")
    ] = None,
    metric: Metric = None,
    runs: Annotated[Path | None, typer.Option(help="Runs whose worlds reproduced figures are judged on, too.")] = None,
    json: Json = False,
) -> None:
    """Write one page with a run's settings, its course, and the results of every analysis.

    A folder of results has a page, too: a sweep's runs, a scorecard, judged worlds or collectors, reproduced figures.
    """
    from scenarios.report.folder import report as write_report
    from scenarios.views.terminal import progress

    with progress(quiet=json) as tell, folder("--out"):
        page = write_report(run, out, tell, metric, runs)
    answer(page, json)
