"""What counters say of stays beside what machines, epochs, traces, clocks and requests of the same run say."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.crosscheck import counters as counted
from analysis.crosscheck import profile
from analysis.crosscheck.check import Check
from models.fleet.world import World
from models.profiling.world import ProfileWorld
from models.randomness import stream
from scenarios.runs.execution import reopen
from scenarios.runs.rundir import Run, RunError

_SAMPLED_SHARE = 0.5
"""Share of each job's stays that WSMeter's sample has."""


def checks(run: Run) -> Iterator[Check]:
    """Yield what counters say of themselves, and WSMeter of them.

    Parameters
    ----------
    run : a finished run
    """
    if not (run.has("counters") and run.has("instances")):
        return
    counters, instances, (world, windows) = run.table("counters"), run.table("instances"), _world(run)
    epoch_s = world.epoch_s if world.simulation == "epochs" else None
    results = [counted.presence(counters, instances, windows, epoch_s), counted.clock(counters)]
    covered = ((windows["end_s"] - windows["start_s"]) / world.epoch_s).round().sum() == world.epochs
    if len(counters) and covered:
        results += _whole(run, counters)
    if run.has("machine_windows"):
        results.append(counted.by_machine(counters, instances, run.table("machine_windows")))
    if run.has("machines") and not (world.feature is not None and world.feature.rollout.unit == "instance"):
        results.append(counted.featured(instances, run.table("machines")))
    results.append(
        profile.within("wsmeter_counters", sampled(run, counters, instances), profile.counted(counters, instances))
    )
    yield from (check for check in results if check is not None)


def completed(run: Run) -> Check | None:
    """Return whether stays of services counted as many requests as departed from them; None without any.

    Parameters
    ----------
    run : with the tables `counters`, `stay_requests` and `instances`
    """
    counters, requests = run.table("counters"), run.table("stay_requests", ["residence", "departure_s"])
    return counted.completed(counters, requests, run.table("instances", ["residence", "job"]), _world(run)[1])


def by_events(run: Run) -> bool:
    """Return whether the machines of a run were simulated from event to event, so that stays keep their own times.

    Parameters
    ----------
    run : of a fleet's or a profiled fleet's scenario
    """
    return _world(run)[0].simulation == "events"


def sampled(run: Run, counters: pd.DataFrame, instances: pd.DataFrame) -> pd.DataFrame:
    """Return what WSMeter says of the CPI of jobs from half of the stays of each, each job's drawn for itself.

    Parameters
    ----------
    run : of which the seed is
    counters : residence, cycles, instructions; a row a stay and window
    instances : residence, job

    Returns
    -------
    DataFrame
        As `analysis.crosscheck.profile.sampled` returns it.
    """
    seed, drawn = int(run.manifest["seed"]), list[np.ndarray[tuple[int], np.dtype[np.int64]]]()
    for job, residences in instances.groupby("job")["residence"]:
        rng = stream(seed, f"stays of job {job} to be compared")
        drawn.append(rng.choice(residences.to_numpy(np.int64), round(_SAMPLED_SHARE * len(residences)), replace=False))
    return profile.sampled(counters, instances, np.concatenate(drawn))


def _whole(run: Run, counters: pd.DataFrame) -> Iterator[Check | None]:
    """Yield what counters must sum to, and machines' energy, if the counting windows cover the horizon."""
    if run.has("epochs"):
        yield counted.by_epoch(counters, run.table("epochs"))
    if run.has("epochs") and run.has("machine_windows"):
        yield counted.energy(run.table("machine_windows"), run.table("epochs"))
    if run.has("instance_epochs"):
        yield counted.traced(counters, run.table("instance_epochs"))


def _world(run: Run) -> tuple[World, pd.DataFrame]:
    """Return the world of a run, and window, start_s and end_s of its counting windows: a profiled fleet's are days."""
    world: object = reopen(run.path)[0]
    if isinstance(world, ProfileWorld):
        from sim.profiling.setting import with_days  # alone here, so that a fleet's run needs no profiler

        world = with_days(world)
    if not isinstance(world, World):
        raise RunError(f"{run.path}: counters of stays, but the manifest holds no scenario of a fleet")
    rows = [{"window": window.name, "start_s": window.start_s, "end_s": window.end_s} for window in world.windows]
    return world, pd.DataFrame(rows)
