"""Job logs in the Standard Workload Format of the Parallel Workloads Archive."""

from pathlib import Path

import numpy as np
import pandas as pd

from analysis.occupancy.logs.log import FARTHEST_S, Log, LogFinding, content_of, counted, in_seconds
from analysis.tables.faults import FileError, FileFault
from models.arrays import Bools, Ints

_FIELDS = ("request", "submit_s", "wait_s", "run_s", "processors")
_STATUS, _CANCELLED, _FAILED = 10, 5, (0, 2, 3, 4)
"""The column of a job's status, that of a cancelled one, and those of jobs that did not complete."""


def read_swf(path: Path) -> Log:
    """Read a log in the Standard Workload Format (Chapin et al. 1999): departure = submit + wait + run.

    A job of status 5 that did not run was cancelled while it waited: it left at submit + wait and was never served.
    Jobs that failed and did not run are kept, with a finding.

    Parameters
    ----------
    path : the file, plain or gzipped; −1 means unknown, so a job without wait or run time has no departure

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("; made up\\n1 0 5 10 1" + " -1" * 13 + "\\n2 3 -1 -1 1" + " -1" * 13)
    ...     read_swf(Path(file.name)).table[["arrival_s", "departure_s"]].to_numpy().tolist()
    [[0.0, 15.0], [3.0, nan]]
    """
    lines = content_of(path).decode(errors="replace").splitlines()
    rows = [
        (at, line.split()) for at, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith(";")
    ]
    if not rows:
        raise FileError([FileFault(len(lines) or 1, 1, "jobs", "should be at least one", "none")])
    text = pd.DataFrame([(words + [""] * 5)[:5] for _, words in rows], columns=list(_FIELDS))
    status = pd.Series([words[_STATUS] if len(words) > _STATUS else "" for _, words in rows])
    jobs = text[["submit_s", "wait_s", "run_s", "processors"]].apply(pd.to_numeric, errors="coerce")
    _refuse(jobs, text, np.array([at for at, _ in rows]))
    known = jobs.where(jobs >= 0)
    table = pd.DataFrame({"arrival_s": known["submit_s"], "request": text["request"]}).astype({"arrival_s": float})
    table.insert(1, "departure_s", known["submit_s"] + known["wait_s"] + known["run_s"])
    cancelled = (pd.to_numeric(status, errors="coerce") == _CANCELLED) & ~(known["run_s"] > 0)
    if cancelled.any():
        table["departure_s"] = table["departure_s"].mask(cancelled, known["submit_s"] + known["wait_s"])
        table["cancelled"] = cancelled
    parallel = int((known["processors"] > 1).sum())
    note = f"{counted(parallel, 'job')} ran on several processors at once: the law is about jobs that use one at a time"
    never = (pd.to_numeric(status, errors="coerce").isin(_FAILED) & ~(known["run_s"] > 0)).to_numpy()
    return Log(table, (note,) if parallel else (), findings=_never_ran(never, known))


def _never_ran(never: Bools, jobs: pd.DataFrame) -> tuple[LogFinding, ...]:
    """Return the finding of jobs that failed without running, which count as requests all the same."""
    if not never.any():
        return ()
    waited_s = jobs["wait_s"][never].sum()
    evidence = f"they failed (status 0, 2, 3 or 4) without a run time, after waiting {in_seconds(waited_s)} in all"
    done = "kept: they count as served, or as unfinished if the run time is unknown; their waiting is in all figures"
    return (LogFinding("jobs that never ran", int(never.sum()), evidence, done),)


def _refuse(jobs: pd.DataFrame, text: pd.DataFrame, lines: Ints) -> None:
    """Raise the faults of cells that are no numbers, and of jobs that were never submitted."""
    wrong = ~np.isfinite(jobs.to_numpy(dtype=np.float64, na_value=np.nan))
    wrong[:, 0] |= (jobs["submit_s"] < 0).to_numpy()
    far = ~wrong & (jobs > FARTHEST_S).to_numpy()
    far[:, -1] = False
    faults = [
        FileFault(
            int(lines[row]), column + 2, jobs.columns[column], what, f'"{text[jobs.columns[column]].iloc[row]!s}"'
        )
        for what, cells in (("should be a number", wrong), (f"should be at most {FARTHEST_S:g}", far))
        for row, column in np.argwhere(cells).tolist()
    ]
    if faults:
        raise FileError(faults)
