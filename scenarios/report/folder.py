"""What a folder holds, and the report of that: a run, runs, a scorecard's or worlds' pieces, or reproduced rows."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios.crossplatform.worlds import PARTS as OF_WORLDS
from scenarios.effects.scorecard.pieces import PARTS
from scenarios.files.faults import Fault, FaultsError
from scenarios.report import reproduced, run, scorecard, sweep, worlds
from scenarios.report.page import Page
from scenarios.runs.rundir import MANIFEST
from scenarios.views.output import Progress

_HELD = "holds no run, no runs, no pieces of a scorecard or of worlds, and nothing that wsc reproduce wrote"


def report(path: Path, progress: Progress) -> Page:
    """Return the report of what is at a path.

    Parameters
    ----------
    path : folder of a finished run, of runs, of kept pieces, or of what `wsc reproduce` wrote; or a file with what
        `wsc scorecard --json` printed
    progress : told what is being done

    Raises
    ------
    FaultsError
        If nothing of this is there, or cannot be read.
    RunError
        If the run is not finished, or of another version.

    Examples
    --------
    >>> report(Path("/dev/null"), lambda what, share: None)
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: /dev/null: is neither a folder nor what wsc scorecard --json printed
    """
    if path.exists() and not path.is_dir():
        return scorecard.saved(path)
    if (path / MANIFEST).is_file() or not path.is_dir():
        return run.report(path, progress)
    pieces = _pieces(path)
    if pieces and all(one.keys() >= PARTS for one in pieces):
        return scorecard.of_pieces(pieces, path)
    if pieces and all(one.keys() >= OF_WORLDS for one in pieces):
        return worlds.of_pieces(pieces, path)
    if reproduced.rows_of(path):
        return reproduced.report(path)
    if sweep.runs_of(path):
        return sweep.report(path, progress)
    raise FaultsError([Fault(str(path), 0, 0, "", f"not a finished run, there is no {MANIFEST}; it {_HELD}")])


def _pieces(folder: Path) -> list[Mapping[str, Any]]:
    """Return what is kept in a folder, a piece a file.

    Raises
    ------
    FaultsError
        If files cannot be read: all of them.
    """
    found, faults = list[Mapping[str, Any]](), list[Fault]()
    for file in sorted(folder.glob("*.json")):
        try:
            piece = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            faults.append(Fault(str(file), 0, 0, "", f"cannot be read: {error}"))
            continue
        found.append(piece if isinstance(piece, dict) else {})
    if faults:
        raise FaultsError(faults)
    return found
