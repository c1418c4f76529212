"""An advised assignment judged: at the true CPI of a simulated fleet, and by moving its jobs."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.affinity.advice import Advice, Judgement, Settings, advise, judge, shares
from analysis.profiling.affinity.sampled import aligned, true_table
from analysis.profiling.affinity.table import AffinityTable
from models.arrays import Floats
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.schema import PROFILE, ProfileScenario
from scenarios.runs.rundir import RunError, open_run

if TYPE_CHECKING:
    from sim.profiling.moving import Snapshot


@dataclass(frozen=True, slots=True)
class Moved:
    """What is saved when the jobs of a run's scenario are really moved in simulation."""

    keeps_traffic: bool
    """Whether the assignment gives no platform more cache misses than it has."""
    promised: float
    """Share of the time, or of the cycles without clocks, for the same instructions."""
    realised: float
    realised_over_promised: float
    """NaN if nothing was promised."""
    placed_share: float
    """Of the moves that found room."""
    moved_instances: int


def judgement(judged: Judgement) -> dict[str, float]:
    """Return what is told of a judgement."""
    return {
        "saving": judged.saving,
        "possible": judged.possible,
        "sampled_over_possible": judged.sampled_over_possible,
        "capacity_excess": judged.capacity_excess,
        "unseen": judged.unseen,
    }


def truth(run: Path, frame: pd.DataFrame, advice: Advice) -> Judgement | None:
    """Return what an assignment is worth at a run's true CPI; none without the truth.

    Parameters
    ----------
    run : folder of a profile
    frame : the sampled table
    advice : the assignment
    """
    file = run / "truth_cpi.parquet"
    if not file.is_file():
        return None
    table = true_table(pd.read_parquet(file), frame)
    return judge(aligned(advice.shares, advice.table, table), table)


def moved(run: Path, advice: Advice) -> list[Moved]:
    """Return what is saved when the jobs of a run's scenario are really moved in simulation.

    Parameters
    ----------
    run : folder of a finished run of kind profile
    advice : the assignment

    Returns
    -------
    list of Moved
        Of the assignment, and of the best one that keeps each platform's traffic.

    Raises
    ------
    FaultsError
        If the folder is no finished run of kind profile.
    """
    from sim.profiling.moving import Snapshot, simulate

    world, assignments = world_of(run), [advice]
    if advice.table.misses is not None and not advice.keeps_traffic:
        assignments.append(advise(advice.table, settings=Settings(keep_traffic=True)))
    snapshot = Snapshot.of(world)
    measured = simulate(snapshot, snapshot.machine)
    return [_moved(snapshot, measured, assignment) for assignment in assignments]


def _moved(snapshot: "Snapshot", measured: tuple[Floats, Floats], advice: Advice) -> Moved:
    """Move instances as advised, simulate, and compare with what was measured before."""
    from sim.profiling.moving import moved as move
    from sim.profiling.moving import simulate, spent_for, wanted_instances

    order = _rows(snapshot.jobs, snapshot.platforms)
    now = snapshot.instances(snapshot.machine)
    before, after = (aligned(part, advice.table, order) for part in (shares(advice.table.load), advice.shares))
    wanted = wanted_instances(now, before, np.where(after.sum(axis=1, keepdims=True) > 0, after, before))
    machine = move(snapshot, wanted)
    clock, load = _clocks(advice.table, snapshot.platforms), measured[1].sum(axis=1)
    realised = 1.0 - spent_for(load, *simulate(snapshot, machine), clock) / spent_for(load, *measured, clock)
    wanted_moves = int(np.maximum(wanted - now, 0).sum())
    went = int(np.maximum(snapshot.instances(machine) - now, 0).sum())
    return Moved(
        advice.keeps_traffic,
        promised=advice.saving,
        realised=realised,
        realised_over_promised=realised / advice.saving if advice.saving > 0 else float("nan"),
        placed_share=went / wanted_moves if wanted_moves else 1.0,
        moved_instances=went,
    )


def world_of(run: Path) -> ProfileScenario:
    """Return the profiled fleet that a run simulated.

    Parameters
    ----------
    run : folder of a finished run of kind profile
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


def _rows(jobs: tuple[str, ...], platforms: tuple[str, ...]) -> AffinityTable:
    """Return an empty table with these jobs and platforms in this order."""
    shape = len(jobs), len(platforms)
    nothing, capacity = np.zeros(shape), np.zeros(shape[1])
    return AffinityTable(jobs, platforms, nothing, nothing, nothing, np.ones(shape, np.bool_), capacity)


def _clocks(table: AffinityTable, platforms: tuple[str, ...]) -> Floats:
    """Return (P,) clocks of platforms; the mean for one that the table does not have, ones if it has none."""
    if table.clock_hz is None:
        return np.ones(len(platforms))
    known = dict(zip(table.platforms, table.clock_hz.tolist(), strict=True))
    return np.array([known.get(name, float(table.clock_hz.mean())) for name in platforms])
