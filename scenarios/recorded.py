"""A run's tables as measurements: what the settings of an analysis say is measured, of which jobs."""

import pandas as pd

from analysis.measurements import performance
from scenarios.rundir import Run
from scenarios.schema import WSMeter


def measured(run: Run, settings: WSMeter, table: str = "counters") -> pd.DataFrame:
    """Return the measurement table of a fleet: the recorded one, or a twin's by the name of its counters.

    Parameters
    ----------
    run : a run
    settings : metric, window and jobs
    table : a table with the columns of `counters`

    Raises
    ------
    RunError
        If the run lacks the table.
    ValueError
        If the counting window or a job is not there.
    """
    made = performance(run.table(table), run.table("instances"), settings.metric, settings.window)
    if settings.jobs is None:
        return made
    return made[made["job"].isin(job_quotas(run, settings)["job"])].reset_index(drop=True)


def job_quotas(run: Run, settings: WSMeter) -> pd.DataFrame:
    """Return job, quota and instances of every job that matters to the analysis.

    Raises
    ------
    ValueError
        If a job that the settings name is not there.
    """
    jobs = run.table("jobs", ["job", "quota_vcpu", "instances"]).rename(columns={"quota_vcpu": "quota"})
    if settings.jobs is None:
        return jobs
    names = run.table("jobs", ["name"])["name"]
    missing = sorted(set(settings.jobs) - set(names))
    if missing:
        raise ValueError(f"{run.path}: no job is named {', '.join(missing)}")
    return jobs[names.isin(settings.jobs)].reset_index(drop=True)
