"""What the requests of served services say beside the counters of their instances."""

import math
from collections.abc import Iterator

from analysis.crosscheck import busy, pace
from analysis.crosscheck.check import Check
from scenarios.crosscheck.counters import completed
from scenarios.runs.epochs import epoch_length_s
from scenarios.runs.rundir import Run

_NEEDED = ("stay_requests", "instance_epochs", "instances", "epochs", "counters", "jobs")


def checks(run: Run) -> Iterator[Check]:
    """Yield whether servers were as busy as their requests say, and requests as slow as their machines make them.

    Parameters
    ----------
    run : a finished run; nothing is said of one without served services, or of a single epoch

    Raises
    ------
    RunError
        If the manifest does not hold a scenario of this version.

    Examples
    --------
    >>> from pathlib import Path
    >>> list(checks(Run(Path("nowhere"), {})))
    []
    """
    if not all(run.has(name) for name in _NEEDED):
        return
    epoch_s = epoch_length_s(run.table("epochs", ["start_s"]))
    if math.isnan(epoch_s):
        return
    requests, epochs = run.table("stay_requests"), run.table("instance_epochs")
    instances = run.table("instances").merge(run.table("jobs")[["job", "name"]], on="job")
    found = busy.busy(requests, epochs, instances, epoch_s)
    yield busy.by_stay(found, run.table("counters"))
    yield busy.by_epoch(found, epoch_s)
    if (counted := completed(run)) is not None:
        yield counted
    yield from pace.follows(requests, found, instances, epoch_s)
