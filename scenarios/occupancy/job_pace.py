"""A queue whose demands follow a fleet's job: its fleet, and seconds per instruction of one instance over the day."""

from dataclasses import replace
from pathlib import Path

import pandas as pd

from models.queues.world import JobDemand
from scenarios.files.loader import load
from scenarios.files.schema import Scenario
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import Run, RunError
from scenarios.views.terminal import Progress
from sim.queues.demands import Steps


def fleet_of(job: JobDemand) -> Scenario:
    """Return the fleet of a job, recorded finely enough to follow one instance, and no more than that."""
    fleet = load(job.scenario)
    if not isinstance(fleet, Scenario):
        raise RunError(f"{job.scenario}: is a {fleet.kind}, where a fleet is needed")
    if fleet.cells > 1:
        raise RunError(f"{job.scenario}: has {fleet.cells} cells, where one is needed")
    return replace(fleet, recording=replace(fleet.recording, instance_epoch_share=1.0, truth=False, loop=None))


def pace_of(job: JobDemand, out: Path, progress: Progress) -> Steps:
    """Return the pace of a job's instance, from the run of its fleet, which is made unless it is there."""
    return pace(obtain(fleet_of(job), out, False, progress), job.job, job.instance)


def pace(run: Run, job: str, instance: int) -> Steps:
    """Return seconds per instruction of one instance of a job, epoch by epoch, on the machines that it ran on.

    An epoch in which the instance did not run keeps the pace before it.

    Parameters
    ----------
    run : of a fleet, with every instance's every epoch recorded
    job : its name
    instance : which of the job's instances, counted from 0 in order of their first start

    Returns
    -------
    ((m,) array, (m,) array)
        Start of each epoch in which it ran, seconds, increasing; CPU seconds per instruction in it.
    """
    stays = _stays(run, job, instance)
    counted = run.table("instance_epochs", ["residence", "epoch", "instructions", "cpu_s"])
    counted = counted[counted["residence"].isin(stays) & (counted["instructions"] > 0)]
    if counted.empty:
        raise RunError(f"{run.path}: instance {instance} of job {job} executed no instruction")
    both = counted.groupby("epoch", as_index=False)[["instructions", "cpu_s"]].sum()
    start_s = run.table("epochs", ["epoch", "start_s"]).set_index("epoch")["start_s"]
    return start_s[both["epoch"]].to_numpy(), (both["cpu_s"] / both["instructions"]).to_numpy()


def _stays(run: Run, job: str, instance: int) -> pd.Series:
    """Return the residences of one instance."""
    jobs = run.table("jobs", ["job", "name"])
    number = jobs[jobs["name"] == job]["job"]
    if number.empty:
        raise RunError(f"{run.path}: no job is named {job}")
    stays = run.table("instances", ["residence", "instance", "job", "start_s"])
    stays = stays[stays["job"] == number.iloc[0]].sort_values(["start_s", "instance"], kind="stable")
    instances = stays["instance"].unique()
    if instance >= len(instances):
        count = len(instances)
        raise RunError(f"{run.path}: job {job} has {count} instances, counted from 0, so there is no {instance}")
    chosen: pd.Series = stays[stays["instance"] == instances[instance]]["residence"]
    return chosen
