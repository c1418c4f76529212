"""Jobs that were cancelled before any service: they are counted and left out of all else."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from analysis.occupancy.logs.log import LogFinding, in_seconds
from models.arrays import Floats, UInts
from models.errors import InputError

_LINE = ["request", "arrival_s", "departure_s"]


@dataclass(slots=True)
class CancelledJobs:
    """Jobs that were cancelled before any service, which are not among the requests."""

    lines: list[UInts] = field(default_factory=list)
    """Digests of their names and times, some jobs after the others."""
    waited_s: list[Floats] = field(default_factory=list)
    """How long they waited, NaN where that is unknown."""

    def add(self, jobs: pd.DataFrame) -> None:
        """Note jobs with columns arrival_s and departure_s, and request if they have names."""
        line = jobs[[name for name in _LINE if name in jobs]]
        self.lines.append(pd.util.hash_pandas_object(line, index=False, categorize=False).to_numpy().astype(np.uint64))
        self.waited_s.append((jobs["departure_s"] - jobs["arrival_s"]).to_numpy(dtype=np.float64))

    def findings(self) -> list[LogFinding]:
        """Return the finding of the jobs, if there are any; those that are written twice, name and times, count once.

        Examples
        --------
        >>> jobs = pd.DataFrame({"request": ["7", "8", "7"], "arrival_s": [0.0, 0.0, 0.0], "departure_s": [5.0] * 3})
        >>> gone = CancelledJobs()
        >>> gone.add(jobs)
        >>> print(gone.findings()[0].count, gone.findings()[0].evidence)
        2 they waited 10 s in all; 1 written again, not counted
        """
        if not self.lines:
            return []
        _, first = np.unique(np.concatenate(self.lines), return_index=True)
        every = np.concatenate(self.waited_s)
        waited_s, again = every[np.sort(first)], len(every) - len(first)
        unknown = int(np.count_nonzero(np.isnan(waited_s)))
        evidence = "how long they waited is unknown"
        if unknown < len(waited_s):
            evidence = f"they waited {in_seconds(float(np.nansum(waited_s)))} in all" + (
                f", without {unknown:,} whose waiting is unknown" if unknown else ""
            )
        if again:
            evidence += f"; {again:,} written again, not counted"
        done = "left out, and their waiting is in no figure: they were never served"
        return [LogFinding("cancelled before service", len(waited_s), evidence, done)]


def served(log: pd.DataFrame) -> tuple[pd.DataFrame, list[LogFinding]]:
    """Return a log without requests that left before any service, and how long they had waited.

    On servers that work whenever somebody waits, such requests wait only while all servers serve others: without them
    the service time is the same, and queueing that of the others. Were they kept, the law would take their waiting for
    service wherever a server idled meanwhile.

    Parameters
    ----------
    log : columns arrival_s, departure_s and `cancelled`, and perhaps request
    """
    cancelled = log["cancelled"].to_numpy(dtype=np.bool_)
    if not cancelled.any():
        return log, []
    if cancelled.all():
        raise none_served(len(log))
    gone = CancelledJobs()
    gone.add(log[cancelled])
    return log[~cancelled], gone.findings()


def none_served(jobs: int) -> InputError:
    """Return the error of a log all of whose jobs were cancelled."""
    return InputError(f"all {jobs:,} jobs were cancelled before they ran: none was served")
