"""An advised assignment judged: at the true CPI of a simulated fleet, and by moving its jobs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analysis.profiling.affinity.advice import Advice, Settings, advise, judge, shares
from analysis.profiling.affinity.sampled import aligned, true_table
from analysis.profiling.affinity.table import Table
from models.arrays import Floats
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.schema import PROFILE, ProfileScenario
from scenarios.profiling.affinity import judgement
from scenarios.runs.rundir import RunError, open_run

if TYPE_CHECKING:
    from sim.profiling.moving import Snapshot


def truth(run: Path, frame: pd.DataFrame, found: Advice) -> dict[str, Any]:
    """Return what an assignment is worth at a run's true CPI, under `truth`; nothing without the truth.

    Parameters
    ----------
    run : folder of a profile
    frame : the sampled table
    found : the assignment
    """
    file = run / "truth_cpi.parquet"
    if not file.is_file():
        return {}
    table = true_table(pd.read_parquet(file), frame)
    return {"truth": judgement(judge(aligned(found.shares, found.table, table), table))}


def moved(run: Path, found: Advice) -> list[dict[str, float | bool]]:
    """Return what is saved when the jobs of a run's scenario are really moved in simulation.

    Parameters
    ----------
    run : folder of a finished run of kind profile
    found : the assignment

    Returns
    -------
    list of dict
        promised and realised (shares of the time, or of the cycles without clocks, for the same instructions),
        realised_over_promised (NaN if nothing was promised), placed_share (of the moves that found room),
        moved_instances, keeps_traffic: of the assignment, and of the best one that keeps each platform's traffic.

    Raises
    ------
    FaultsError
        If the folder is no finished run of kind profile.
    """
    from sim.profiling.moving import Snapshot, simulate

    world, tried = world_of(run), [found]
    if found.table.misses is not None and not found.keeps_traffic:
        tried.append(advise(found.table, settings=Settings(keep_traffic=True)))
    snapshot = Snapshot.of(world)
    measured = simulate(snapshot, snapshot.machine)
    return [_moved(snapshot, measured, each) for each in tried]


def _moved(snapshot: "Snapshot", measured: tuple[Floats, Floats], found: Advice) -> dict[str, float | bool]:
    """Move instances as advised, simulate, and compare with what was measured before."""
    from sim.profiling.moving import moved as move
    from sim.profiling.moving import simulate, spent_for, wanted_instances

    order = _rows(snapshot.jobs, snapshot.platforms)
    now = snapshot.instances(snapshot.machine)
    before, after = (aligned(each, found.table, order) for each in (shares(found.table.load), found.shares))
    wanted = wanted_instances(now, before, np.where(after.sum(axis=1, keepdims=True) > 0, after, before))
    machine = move(snapshot, wanted)
    clock, load = _clocks(found.table, snapshot.platforms), measured[1].sum(axis=1)
    realised = 1.0 - spent_for(load, *simulate(snapshot, machine), clock) / spent_for(load, *measured, clock)
    asked = int(np.maximum(wanted - now, 0).sum())
    went = int(np.maximum(snapshot.instances(machine) - now, 0).sum())
    return {
        "keeps_traffic": found.keeps_traffic,
        "promised": found.saving,
        "realised": realised,
        "realised_over_promised": realised / found.saving if found.saving > 0 else float("nan"),
        "placed_share": went / asked if asked else 1.0,
        "moved_instances": went,
    }


def world_of(run: Path) -> ProfileScenario:
    """Return the profiled fleet that a run simulated.

    Parameters
    ----------
    run : folder of a finished run of kind profile

    Raises
    ------
    FaultsError
        If it is none.

    Examples
    --------
    >>> world_of(Path("nowhere"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    scenarios.files.faults.FaultsError: nowhere: cannot be simulated: nowhere: not a finished run, ...
    """
    try:
        profiled = open_run(run)
    except RunError as error:
        raise FaultsError([Fault(str(run), 0, 0, "", f"cannot be simulated: {error}")]) from None
    kind = profiled.manifest.get("kind")
    if kind != "profile":
        raise FaultsError([Fault(str(run), 0, 0, "", "should be a run of kind profile", str(kind))])
    try:
        return profiled.world(PROFILE)
    except RunError as error:
        raise FaultsError([Fault(str(run), 0, 0, "", f"cannot be simulated: {error}")]) from None


def _rows(jobs: tuple[str, ...], platforms: tuple[str, ...]) -> Table:
    """Return an empty table with these jobs and platforms in this order."""
    shape = len(jobs), len(platforms)
    nothing, capacity = np.zeros(shape), np.zeros(shape[1])
    return Table(jobs, platforms, nothing, nothing, nothing, np.ones(shape, np.bool_), capacity)


def _clocks(table: Table, platforms: tuple[str, ...]) -> Floats:
    """Return (P,) clocks of platforms; the mean for one that the table does not have, ones if it has none."""
    if table.clock_hz is None:
        return np.ones(len(platforms))
    known = dict(zip(table.platforms, table.clock_hz.tolist(), strict=True))
    return np.array([known.get(name, float(table.clock_hz.mean())) for name in platforms])
