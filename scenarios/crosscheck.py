"""Whether what several lenses say of one run agrees, by `wsc crosscheck`: every check that the run has tables for."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pyarrow import ArrowException

from analysis.crosscheck import busy, cpi, pace, samples
from analysis.crosscheck.check import Check
from scenarios import crosscheck_counters
from scenarios.crosscheck_counters import completed, sampled
from scenarios.faults import Fault, FaultsError
from scenarios.output import Progress
from scenarios.rundir import Run, open_run

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.profiling.database import Database
    from analysis.profiling.query import Where

_FLEET: "Where" = (("collection", ("fleet",)),)
_MEANINGS: Mapping[str, str] = {
    "counters_epochs": "events of all stays and of all epochs, the ratio farthest from 1",
    "counters_machines": "events of stays and of their machines, the ratio farthest from 1",
    "counters_presence": "time of each stay in a window, counted and by start and end, the ratio farthest from 1",
    "counters_frequency": "mean frequency × CPU time and cycles of each stay, the ratio farthest from 1",
    "counters_traces": "events of stays and of their epochs, the ratio farthest from 1",
    "energy_machines": "energy of machines and of epochs, the ratio",
    "wsmeter_counters": "jobs whose CPI the interval of WSMeter's 1/IPC does not hold",
    "profile_counters": "jobs whose CPI the interval of the profile does not hold",
    "profile_wsmeter": "jobs of which profile and WSMeter differ by more than their errors",
    "profile_core_seconds": "core-seconds by profile and by monitor",
    "profile_visits": "answered visits of busy machines, and those with samples",
    "profile_symbols": "samples as collected and with symbols: those alike, and all",
    "occupancy_stays": "utilisation by the Occupancy Law and by counters, the stay farthest off",
    "occupancy_epochs": "the same, epoch by epoch",
    "requests_counted": "requests counted and departed of each stay in a window, the ratio farthest from 1",
    "service_times": "slope of log service time over log seconds per instruction, hour by hour",
    "upgrade_wsmeter": "change by new processors, from the trial and true",
    "upgrade_predicted": "change by new processors, predicted and true",
    "upgrade_tried": "change by new processors, predicted and from the trial",
    "affinity_moved": "saving by really moving the jobs, and promised",
}


def crosscheck(path: Path, progress: Progress = lambda _what, _share: None) -> list[dict[str, Any]]:
    """Return whether the lenses agree on a run: each check that it has the tables for.

    Parameters
    ----------
    path : folder of a finished run; a copy without its ``truth_`` tables will do
    progress : told what is being done

    Returns
    -------
    list of dict
        check, left, right, tolerance, tolerance_share (of what is looked for: the distance from no change, or nothing,
        to the right number), holds, decisive (whether no change, or nothing, would have failed).

    Raises
    ------
    RunError
        If the folder is no finished run, or not of a scenario of this version.
    FaultsError
        If it has no tables that could be compared, one that it lists is not there, or one cannot be read.

    Examples
    --------
    >>> crosscheck(Path("nowhere"))
    Traceback (most recent call last):
    scenarios.rundir.RunError: nowhere: not a finished run, there is no manifest.json
    """
    run = open_run(path)
    lost = [name for name in run.listed if not name.startswith("truth_") and not run.has(name)]
    if lost:
        raise FaultsError(
            [Fault(str(run.file(name)), 0, 0, "", "is not there, though the run lists it") for name in lost]
        )
    found = list[Check]()
    for i, (what, part) in enumerate(PARTS.items()):
        progress(f"comparing {what}", i / len(PARTS))
        try:
            found += part(run)
        except (KeyError, OSError, ArrowException) as error:
            raise FaultsError([Fault(str(path), 0, 0, "", f"tables of {what} cannot be read", str(error))]) from error
    if not found:
        there = ", ".join(run.tables) or "none"
        raise FaultsError([Fault(str(path), 0, 0, "", "has no tables that could be compared", there)])
    return [check.payload() for check in found]


def status(payload: Sequence[Mapping[str, Any]]) -> int:
    """Return the command's exit status: 0 if all agree, 1 otherwise.

    Examples
    --------
    >>> status([{"holds": True}]), status([{"holds": True}, {"holds": False}])
    (0, 1)
    """
    return int(not all(one["holds"] for one in payload))


def show(payload: Sequence[Mapping[str, Any]], console: "Console") -> None:
    """Print the checks as a table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=0)
    table.add_column("check", no_wrap=True)
    for heading in ("left", "right", "tolerance", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("holds", "decisive"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what", overflow="fold")
    for one in payload:
        numbers = (f"{one[name]:.6g}" for name in ("left", "right", "tolerance"))
        table.add_row(
            one["check"],
            *numbers,
            f"{one['tolerance_share']:.3g}" if math.isfinite(one["tolerance_share"]) else "–",
            "yes" if one["holds"] else "[red]no[/red]",
            "yes" if one["decisive"] else "no",
            _MEANINGS[one["check"].partition(":")[0]],
        )
    console.print(table)
    failed = sum(not one["holds"] for one in payload)
    console.print(f"{len(payload)} checks, {failed or 'none'} failed")
    if idle := [one["check"] for one in payload if not one["decisive"]]:
        console.print(
            f"not decisive, since no change, or nothing at all, would have passed: {', '.join(idle)}",
            soft_wrap=True,
            markup=False,
        )


def _has(run: Run, *names: str) -> bool:
    return all(run.has(name) for name in names)


def _profile(run: Run) -> Iterator[Check]:
    """Yield what the profile says beside counters, WSMeter and the monitor."""
    if not _has(run, "samples", "visits", "processes", "locations", "rates"):
        return
    from analysis.profiling.database import Database

    with Database([run.path]) as database:
        if _has(run, "counters", "instances", "jobs"):
            yield from _cpi(run, database)
        if run.has("monitor"):
            yield _core_seconds(run, database)
    visits = run.table("visits")
    fleet = visits[visits["collection"] == "fleet"]
    found = run.table("samples", ["process", "event", "count"])
    yield samples.visits_with_samples(fleet, run.table("processes"), found, run.table("rates"))
    if run.has("raw_samples"):
        yield samples.symbolised(run.table("raw_samples", ["process", "event", "count"]), found)


def _cpi(run: Run, database: "Database") -> Iterator[Check]:
    from analysis.profiling.query import Query

    counters, instances, jobs = (run.table(name) for name in ("counters", "instances", "jobs"))
    cycles, instructions = (
        database.clustered(Query(event, ("application",), _FLEET), "visit") for event in ("cycles", "instructions")
    )
    found = cpi.profiled(cycles, instructions, jobs)
    checks = (
        cpi.within("profile_counters", found, cpi.counted(counters, instances)),
        cpi.alike("profile_wsmeter", found, sampled(run, counters, instances)),
    )
    yield from (check for check in checks if check is not None)


def _core_seconds(run: Run, database: "Database") -> Check:
    from analysis.profiling.query import Query

    visits = database.table("visits")
    cycles = database.query(Query(by=("visit",), where=_FLEET))
    by_visit = cycles.assign(visit=cycles["visit"].astype(np.int64))
    return samples.seconds(visits[visits["collection"] == "fleet"], by_visit, run.table("monitor"))


def _requests(run: Run) -> Iterator[Check]:
    """Yield what the requests of served services say beside the counters of their instances."""
    if not _has(run, "stay_requests", "instance_epochs", "instances", "epochs", "counters", "jobs"):
        return
    requests, epochs = run.table("stay_requests"), run.table("instance_epochs")
    instances = run.table("instances").merge(run.table("jobs")[["job", "name"]], on="job")
    epoch_s = epoch_length_s(run)
    found = busy.busy(requests, epochs, instances, epoch_s)
    yield busy.by_stay(found, run.table("counters"))
    yield busy.by_epoch(found, epoch_s)
    if (counted := completed(run)) is not None:
        yield counted
    yield from pace.follows(requests, found, instances, epoch_s)


def _upgrade(run: Run) -> Iterator[Check]:
    from scenarios.crosscheck_upgrade import checks

    yield from checks(run)


def _moves(run: Run) -> Iterator[Check]:
    """Yield whether jobs that are moved as the profile advises save what is promised; the fleet is simulated again."""
    from scenarios.crosscheck_moves import checks

    yield from checks(run)


PARTS: Mapping[str, Callable[[Run], Iterator[Check]]] = {
    "counters": crosscheck_counters.checks,
    "profile": _profile,
    "requests": _requests,
    "upgrade": _upgrade,
    "moves": _moves,
}
"""What is compared, each part yielding no check of a run that lacks its tables."""


def epoch_length_s(run: Run) -> float:
    """Return the length of a run's epochs in seconds; NaN of a single one.

    Raises
    ------
    RunError
        If the run has no table `epochs`.

    Examples
    --------
    >>> import tempfile
    >>> from pandas import DataFrame
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     DataFrame({"start_s": [0.0, 300.0]}).to_parquet(Path(folder, "epochs.parquet"))
    ...     epoch_length_s(Run(Path(folder), {}))
    300.0
    """
    start_s = run.table("epochs", ["start_s"])["start_s"].to_numpy(np.float64)
    return float(start_s[1] - start_s[0]) if start_s.size > 1 else float("nan")
