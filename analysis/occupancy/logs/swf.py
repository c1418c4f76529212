"""Job logs in the Standard Workload Format of the Parallel Workloads Archive."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.occupancy.logs.log import FARTHEST_S, Log, LogFinding, content_of, counted, in_seconds
from analysis.tables.faults import FileError, FileFault
from models.arrays import Ints

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
    lines = lines_of(content_of(path))
    rows = job_lines(lines, 1)
    if not rows:
        raise no_jobs(len(lines))
    jobs = jobs_of(rows)
    if jobs.wrong or jobs.far:
        raise FileError([*jobs.wrong, *jobs.far])
    table = jobs.table if jobs.table["cancelled"].any() else jobs.table.drop(columns="cancelled")
    return Log(table, parallel_notes(jobs.parallel), findings=never_ran(jobs.never, jobs.never_waited_s))


class SwfJobs(NamedTuple):
    """Some jobs of a log, and what is counted of them."""

    table: pd.DataFrame
    """arrival_s, departure_s, request, cancelled."""
    parallel: int
    """Jobs that ran on several processors."""
    never: int
    """Jobs that failed and did not run."""
    never_waited_s: float
    wrong: list[FileFault]
    """Cells that are no numbers, and jobs that were never submitted."""
    far: list[FileFault]
    """Times that are too far away."""


def lines_of(text: bytes) -> list[str]:
    """Return the lines of a text: line feeds and carriage returns end one, form feeds are as blanks.

    Examples
    --------
    >>> lines_of(b"1 0\\r\\n2\\f 7\\r3 8\\n\\n")
    ['1 0', '2\\x0c 7', '3 8', '']
    """
    return [line.decode(errors="replace") for line in text.splitlines()]


def job_lines(lines: Sequence[str], first: int) -> list[tuple[int, list[str]]]:
    """Return the words of the lines that have jobs, with their numbers.

    Parameters
    ----------
    lines : some of a log's
    first : number of the first, from 1
    """
    jobs = ((at, line) for at, line in enumerate(lines, first) if line.strip() and not line.lstrip().startswith(";"))
    return [(at, line.split(None, _STATUS + 1)) for at, line in jobs]


def no_jobs(lines: int) -> FileError:
    """Return the error of a log of so many lines without a job."""
    return FileError([FileFault(lines or 1, 1, "jobs", "should be at least one", "none")])


def jobs_of(rows: Sequence[tuple[int, Sequence[str]]]) -> SwfJobs:
    """Return jobs as requests.

    Parameters
    ----------
    rows : as of `job_lines`
    """
    text = pd.DataFrame([(*words, "", "", "", "", "")[:5] for _, words in rows], columns=list(_FIELDS))
    status = pd.to_numeric(
        pd.Series([words[_STATUS] if len(words) > _STATUS else "" for _, words in rows]), errors="coerce"
    )
    jobs = text[["submit_s", "wait_s", "run_s", "processors"]].apply(pd.to_numeric, errors="coerce").astype(float)
    wrong, far = _faults(jobs, text, np.array([at for at, _ in rows]))
    known = jobs.where(jobs >= 0)
    ran = known["run_s"] > 0
    left_s = known["submit_s"] + known["wait_s"] + known["run_s"]
    cancelled = (status == _CANCELLED) & ~ran
    table = pd.DataFrame({
        "arrival_s": known["submit_s"],
        "departure_s": left_s.mask(cancelled, known["submit_s"] + known["wait_s"]),
        "request": text["request"],
        "cancelled": cancelled,
    })  # fmt: skip
    never = status.isin(_FAILED) & ~ran
    parallel = int((known["processors"] > 1).sum())
    return SwfJobs(table, parallel, int(never.sum()), float(known["wait_s"][never].sum()), wrong, far)


def parallel_notes(parallel: int) -> tuple[str, ...]:
    """Return the note on so many jobs that ran on several processors."""
    note = f"{counted(parallel, 'job')} ran on several processors at once: the law is about jobs that use one at a time"
    return (note,) if parallel else ()


def never_ran(jobs: int, waited_s: float) -> tuple[LogFinding, ...]:
    """Return the finding of jobs that failed without running, which count as requests all the same."""
    if not jobs:
        return ()
    evidence = f"they failed (status 0, 2, 3 or 4) without a run time, after waiting {in_seconds(waited_s)} in all"
    done = "kept: they count as served, or as unfinished if the run time is unknown; their waiting is in all figures"
    return (LogFinding("jobs that never ran", jobs, evidence, done),)


def _faults(jobs: pd.DataFrame, text: pd.DataFrame, lines: Ints) -> tuple[list[FileFault], list[FileFault]]:
    """Return the faults of cells that are no numbers and of jobs that were never submitted, and of those far away."""
    wrong = ~np.isfinite(jobs.to_numpy(dtype=np.float64, na_value=np.nan))
    wrong[:, 0] |= (jobs["submit_s"] < 0).to_numpy()
    far = ~wrong & (jobs > FARTHEST_S).to_numpy()
    far[:, -1] = False

    def faults(cells: NDArray[np.bool_], problem: str) -> list[FileFault]:
        return [
            FileFault(int(lines[row]), at + 2, jobs.columns[at], problem, f'"{text[jobs.columns[at]].iloc[row]!s}"')
            for row, at in np.argwhere(cells).tolist()
        ]

    return faults(wrong, "should be a number"), faults(far, f"should be at most {FARTHEST_S:g}")
