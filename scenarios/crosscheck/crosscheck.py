"""Whether what several lenses say of one run agrees, by `wsc crosscheck`: every check that the run has tables for."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow import ArrowException

from analysis.crosscheck.check import Check
from scenarios.files.faults import Fault, FaultsError
from scenarios.runs.rundir import Run, open_run
from scenarios.runs.verify import faults
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Block, Cell, Says, Section, says, table
from scenarios.views.terminal import Progress

if TYPE_CHECKING:
    import pandas as pd

_SERVED = ("stay_requests", "instance_epochs", "instances", "epochs", "counters", "jobs")
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
    "upgrade_wsmeter": "change by new processors of the jobs with enough stays on trial, from it and true",
    "upgrade_predicted": "change by new processors, predicted and true",
    "upgrade_tried": "change by new processors, predicted and from the trial",
    "affinity_moved": "saving when the jobs are moved in simulation, and predicted saving",
}


@dataclass(frozen=True, slots=True, repr=False)
class Agreement(Conclusion):
    """Whether the lenses agree on a run: ``wsc crosscheck``."""

    checks: tuple[Check, ...]

    @property
    def agree(self) -> bool:
        """Whether every check holds."""
        return all(check.holds for check in self.checks)

    def section(self) -> Section:
        """Return the checks as a table, how many failed, and which decide nothing."""
        failed = sum(not check.holds for check in self.checks)
        idle = [check.check for check in self.checks if not check.decisive]
        undecided = f"not decisive, since no change, or nothing at all, would have passed: {', '.join(idle)}"
        blocks: tuple[Block, ...] = (
            table(
                ("check", "left", "right", "tolerance", "share", "holds", "decisive", "what"),
                [_row(check) for check in self.checks],
                numbers=(False, True, True, True, True, False, False, False),
                spare=("share",),
            ),
            Says(f"{len(self.checks)} checks, {failed or 'none'} failed"),
            *says(undecided if idle else ""),
        )
        return Section("", blocks)

    def payload(self) -> list[Payload]:
        """Return a list of checks."""
        return [{"kind": "crosscheck", **check.payload()} for check in self.checks]

    def frame(self) -> "pd.DataFrame":
        """Return a row a check."""
        import pandas as pd

        return pd.DataFrame([check.payload() for check in self.checks])


def _row(check: Check) -> tuple[str | Cell, ...]:
    return (
        check.check,
        *(f"{number:.6g}" for number in (check.left, check.right, check.tolerance)),
        f"{check.tolerance_share:.3g}" if math.isfinite(check.tolerance_share) else "–",
        Cell("yes") if check.holds else Cell("no", "bad"),
        "yes" if check.decisive else "no",
        _MEANINGS[check.check.partition(":")[0]],
    )


def crosscheck(path: Path, progress: Progress = lambda _what, _share: None) -> Agreement:
    """Return whether the lenses agree on a run: each check that it has the tables for.

    Parameters
    ----------
    path : folder of a finished run; a copy without its ``truth_`` tables will do
    progress : told what is being done

    Raises
    ------
    RunError
        If the folder is no finished run, or not of a scenario of this version.
    FaultsError
        If it has no tables that could be compared, one that it lists is not there, or some are damaged: all of them.
    """
    run = open_run(path)
    lost = [name for name in run.listed if not name.startswith("truth_") and not run.has(name)]
    damaged = [Fault(str(run.file(name)), 0, 0, "", "is not there, though the run lists it") for name in lost]
    damaged += faults(run)
    if damaged:
        raise FaultsError(damaged)
    checks = list[Check]()
    for i, (what, part) in enumerate(PARTS.items()):
        progress(f"comparing {what}", i / len(PARTS))
        try:
            checks += part(run)
        except (KeyError, OSError, ArrowException) as error:
            raise FaultsError([Fault(str(path), 0, 0, "", f"tables of {what} cannot be read", str(error))]) from error
    if not checks:
        tables = ", ".join(run.tables) or "none"
        raise FaultsError([Fault(str(path), 0, 0, "", "has no tables that could be compared", tables)])
    return Agreement(tuple(checks))


def _counters(run: Run) -> Iterator[Check]:
    from scenarios.crosscheck.counters import checks

    yield from checks(run)


def _profile(run: Run) -> Iterator[Check]:
    from scenarios.crosscheck.profile import checks

    yield from checks(run)


def _requests(run: Run) -> Iterator[Check]:
    """Yield whether servers were as busy as their requests say, and requests as slow as their machines make them.

    Nothing is said of a run without served services, or of a single epoch whose length no manifest says.
    """
    if not all(run.has(name) for name in _SERVED):
        return
    from analysis.crosscheck import requests as served
    from scenarios.crosscheck.counters import by_events, completed
    from scenarios.runs.rundir import epoch_length_s

    epoch_s = epoch_length_s(run)
    if math.isnan(epoch_s):
        return
    requests, epochs = run.table("stay_requests"), run.table("instance_epochs")
    instances = run.table("instances").merge(run.table("jobs")[["job", "name"]], on="job")
    spent = served.busy(requests, epochs, instances, epoch_s, until_end=by_events(run))
    yield served.by_stay(spent, run.table("counters"))
    yield served.by_epoch(spent, epoch_s)
    if (counted := completed(run)) is not None:
        yield counted
    yield from served.follows(requests, spent, instances, epoch_s)


def _upgrade(run: Run) -> Iterator[Check]:
    from scenarios.crosscheck.upgrade import checks

    yield from checks(run)


def _moves(run: Run) -> Iterator[Check]:
    """Yield whether jobs that are moved as the profile advises save what is promised; the fleet is simulated again.

    Nothing is said but of a profiled fleet on several platforms.
    """
    if run.manifest.get("kind") != "profile" or not run.has("samples"):
        return
    from analysis.crosscheck.upgrade import advice_pays
    from analysis.profiling.affinity.advice import Settings, advise
    from analysis.profiling.affinity.sampled import table_of
    from analysis.profiling.affinity.table import AffinityTable
    from analysis.profiling.database import Database
    from scenarios.profiling.affinity_trial import moved

    with Database([run.path]) as database:
        frame = table_of(database)
    if frame["platform"].nunique() < 2 or "misses" not in frame:
        return
    realised = moved(run.path, advise(AffinityTable.of(frame, run.sheets), settings=Settings(keep_traffic=True)))[0]
    yield advice_pays(realised.realised, realised.promised)


PARTS: Mapping[str, Callable[[Run], Iterator[Check]]] = {
    "counters": _counters,
    "profile": _profile,
    "requests": _requests,
    "upgrade": _upgrade,
    "moves": _moves,
}
"""What is compared, each part yielding no check of a run that lacks its tables."""
