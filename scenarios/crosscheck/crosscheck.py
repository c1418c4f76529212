"""Whether what several lenses say of one run agrees, by `wsc crosscheck`: every check that the run has tables for."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import ArrowException

from analysis.crosscheck.check import Check
from scenarios.files.faults import Fault, FaultsError
from scenarios.runs.rundir import Run, open_run
from scenarios.runs.verify import faults
from scenarios.views.output import Progress

if TYPE_CHECKING:
    from rich.console import Console

_MEANINGS: Mapping[str, str] = {
    "counters_epochs": "events of all stays and of all epochs, the ratio farthest from 1",
    "counters_machines": "events of stays and of their machines, the ratio farthest from 1",
    "counters_presence": "time of each stay in a window, counted and by start and end, the ratio farthest from 1",
    "counters_frequency": "mean frequency × CPU time and cycles of each stay, the ratio farthest from 1",
    "counters_traces": "events of stays and of their epochs, the ratio farthest from 1",
    "feature_stays": "stays with the feature as their machine's, and all",
    "energy_machines": "energy of machines and of epochs, the ratio",
    "wsmeter_counters": "jobs whose CPI the interval of WSMeter's 1/IPC does not hold",
    "profile_counters": "jobs whose CPI the interval of the profile does not hold",
    "profile_wsmeter": "jobs of which profile and WSMeter differ by more than their errors",
    "profile_misses": "jobs whose last-level-cache misses per instruction the interval of the profile does not hold",
    "profile_core_seconds": "core-seconds by profile and by monitor",
    "profile_rounds": "rounds with their visits, each machine at most once, and all",
    "profile_residents": "stays found on a visited machine and there by start and end, and those of either",
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
        If it has no tables that could be compared, one that it lists is not there, or some are damaged: all of them.

    Examples
    --------
    >>> crosscheck(Path("nowhere"))
    Traceback (most recent call last):
    scenarios.runs.rundir.RunError: nowhere: not a finished run, there is no manifest.json
    """
    run = open_run(path)
    lost = [name for name in run.listed if not name.startswith("truth_") and not run.has(name)]
    damaged = [Fault(str(run.file(name)), 0, 0, "", "is not there, though the run lists it") for name in lost]
    damaged += faults(run)
    if damaged:
        raise FaultsError(damaged)
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


def _counters(run: Run) -> Iterator[Check]:
    from scenarios.crosscheck.counters import checks

    yield from checks(run)


def _profile(run: Run) -> Iterator[Check]:
    from scenarios.crosscheck.profile import checks

    yield from checks(run)


def _requests(run: Run) -> Iterator[Check]:
    from scenarios.crosscheck.requests import checks

    yield from checks(run)


def _upgrade(run: Run) -> Iterator[Check]:
    from scenarios.crosscheck.upgrade import checks

    yield from checks(run)


def _moves(run: Run) -> Iterator[Check]:
    """Yield whether jobs that are moved as the profile advises save what is promised; the fleet is simulated again."""
    from scenarios.crosscheck.moves import checks

    yield from checks(run)


PARTS: Mapping[str, Callable[[Run], Iterator[Check]]] = {
    "counters": _counters,
    "profile": _profile,
    "requests": _requests,
    "upgrade": _upgrade,
    "moves": _moves,
}
"""What is compared, each part yielding no check of a run that lacks its tables."""
