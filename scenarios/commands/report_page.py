"""What `wsc report` makes: the page of a run or of a folder of results, inside it unless told otherwise."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.report import folder
from scenarios.report.page import refuse, write
from scenarios.views.output import Progress

if TYPE_CHECKING:
    from rich.console import Console


def report(path: Path, out: Path | None, progress: Progress) -> dict[str, Any]:
    """Write the report of a run, or of a folder of results, and return what it says.

    Parameters
    ----------
    path : folder of a finished run; or of a sweep's runs, of a scorecard's, worlds' or collectors' pieces, or of what
        `wsc reproduce` wrote
    out : the page; ``report.html`` in the folder if not said
    progress : told what is being done

    Returns
    -------
    dict
        kind, of, title, file, verdicts (lens, says, holds), sections (title, says, payload).

    Raises
    ------
    FaultsError
        If the folder holds nothing to report on, its tables cannot be read, or something else is where the page goes.
    RunError
        If the folder is no finished run.

    Examples
    --------
    >>> report(Path("nowhere"), None, lambda what, share: None)
    Traceback (most recent call last):
    scenarios.runs.rundir.RunError: nowhere: not a finished run, there is no manifest.json
    """
    file = out if out is not None else place(path)
    refuse(file)
    page = folder.report(path, progress)
    write(page, file)
    return page.payload(file)


def place(path: Path) -> Path:
    """Return where the report of a folder goes: into it, as its pictures do; that of a file goes beside it.

    A page beside the folders of runs would be taken for one of them by patterns such as ``runs/small-*``.

    Examples
    --------
    >>> place(Path("runs/small-2003a57f950e")).as_posix()
    'runs/small-2003a57f950e/report.html'
    """
    return path.with_suffix(".html") if path.is_file() else path / "report.html"


def show(payload: Mapping[str, Any], console: "Console") -> None:
    """Print the verdicts, and where the page is."""
    from rich.markup import escape

    for one in payload["verdicts"]:
        held = f"holds {escape(one['undecided'])}".rstrip()
        word = {True: held, False: "[red]does not hold[/red]", None: ""}[one["holds"]]
        console.print(f"[bold]{escape(one['lens'])}[/bold]: {escape(one['says'])}  {word}".rstrip(), soft_wrap=True)
    console.print(f"report: {payload['file']}", markup=False, soft_wrap=True)
