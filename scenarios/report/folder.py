"""What a folder holds, and the report of that: a run, runs, a scorecard's or worlds' pieces, or reproduced rows."""

from pathlib import Path
from typing import cast

from models.fleet.metrics import MetricName
from scenarios.crossplatform.worlds import PARTS as OF_WORLDS
from scenarios.effects.scorecard.pieces import PARTS, JudgedFleet
from scenarios.files.faults import Fault, FaultsError
from scenarios.report import reproduced, run, scorecard, sweep, worlds
from scenarios.report.page import Page, refuse, write
from scenarios.runs.disk import JsonError, json_of
from scenarios.runs.rundir import MANIFEST
from scenarios.views.conclusion import Payload
from scenarios.views.terminal import Progress

_NOTHING = "holds no run, no runs, no pieces of a scorecard or of worlds, and nothing that wsc reproduce wrote"


def report(
    path: Path, out: Path | None, progress: Progress, metric: MetricName | None = None, runs: Path | None = None
) -> Page:
    """Write the report of what is at a path, and return it.

    Parameters
    ----------
    path : folder of a finished run, of runs, of kept pieces, or of what `wsc reproduce` wrote; or a file with what
        `wsc scorecard --json` printed
    out : the page; ``report.html`` in the folder if not said
    progress : told what is being done
    metric : what is measured of a fleet's run, if not what its scenario says
    runs : folder of all runs, whose worlds reproduced rows are judged on, too

    Raises
    ------
    FaultsError
        If nothing of this is there or can be read, a metric is said of anything but a run, or something else is where
        the page goes.
    RunError
        If the run is not finished, or of another version.

    Examples
    --------
    >>> report(Path("nowhere"), None, lambda what, share: None)
    Traceback (most recent call last):
    scenarios.runs.rundir.RunError: nowhere: not a finished run, there is no manifest.json
    """
    file = out if out is not None else place(path)
    refuse(file)
    return write(read(path, progress, metric, runs), file)


def place(path: Path) -> Path:
    """Return where the report of a folder goes: into it, as its pictures do; that of a file goes beside it.

    A page beside the folders of runs would be taken for one of them by patterns such as ``runs/small-*``.
    """
    return path.with_suffix(".html") if path.is_file() else path / "report.html"


def read(path: Path, progress: Progress, metric: MetricName | None = None, runs: Path | None = None) -> Page:
    """Return the report of what is at a path.

    Parameters
    ----------
    path : folder of a finished run, of runs, of kept pieces, or of what `wsc reproduce` wrote; or a file with what
        `wsc scorecard --json` printed
    progress : told what is being done
    metric, runs : as of `report`
    """
    if runs is not None and not (path.is_dir() and reproduced.rows_of(path)):
        raise FaultsError([Fault("--runs", 1, 1, "", "is only for what wsc reproduce wrote", str(path))])
    if (path / MANIFEST).is_file() or not path.exists():
        return run.report(path, progress, metric)
    if metric is not None:
        raise FaultsError([Fault("--metric", 1, 1, "", "is only for the folder of a run", str(path))])
    if not path.is_dir():
        return scorecard.saved(path)
    pieces = _pieces(path)
    if pieces and all(piece.keys() >= PARTS for piece in pieces):
        return scorecard.of_pieces(cast("list[JudgedFleet]", pieces), path)
    if pieces and all(piece.keys() >= OF_WORLDS for piece in pieces):
        return worlds.of_pieces(pieces, path)
    if reproduced.rows_of(path):
        return reproduced.report(path, progress, runs)
    if sweep.runs_of(path):
        return sweep.report(path, progress)
    raise FaultsError([Fault(str(path), 0, 0, "", f"not a finished run, there is no {MANIFEST}; it {_NOTHING}")])


def _pieces(folder: Path) -> list[Payload]:
    """Return what is kept in a folder, a piece a file."""
    pieces, faults = list[Payload](), list[Fault]()
    for file in sorted(folder.glob("*.json")):
        try:
            piece = json_of(file)
        except (OSError, JsonError) as error:
            faults.append(Fault(str(file), 0, 0, "", f"cannot be read: {error}"))
            continue
        pieces.append(piece if isinstance(piece, dict) else {})
    if faults:
        raise FaultsError(faults)
    return pieces
