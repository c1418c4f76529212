"""A run's tables as measurements: what the settings of an analysis say is measured, of which jobs; cell by cell."""

from collections.abc import Iterator

import pandas as pd

from analysis.wsmeter.measurements import measurements
from models.errors import InputError
from scenarios.files.schema import WSMeter
from scenarios.runs.rundir import Run


def run_measurements(run: Run, settings: WSMeter, table: str = "counters") -> pd.DataFrame:
    """Return the measurement table of a run, as `analysis.wsmeter.measurements.measurements` makes it.

    Parameters
    ----------
    run : of a fleet
    settings : metric, window and jobs; shorter stays than a tenth of the window are left out
    table : counters of the recorded fleet, or of a twin

    Raises
    ------
    RunError
        If the run lacks the table.
    InputError
        If the counting window or a job is not there.
    """
    cells = list(measurements_by_cell(run, settings, table))
    return cells[0] if len(cells) == 1 else pd.concat(cells, ignore_index=True)


def measurements_by_cell(run: Run, settings: WSMeter, table: str = "counters") -> Iterator[pd.DataFrame]:
    """Yield what `run_measurements` returns cell by cell; of a run that is whole, at once."""
    jobs = None if settings.jobs is None else job_quotas(run, settings)["job"]
    for part in run.split():
        rows = measurements(part.table(table), part.table("instances"), settings.metric, settings.window)
        yield rows if jobs is None else rows[rows["job"].isin(jobs)].reset_index(drop=True)


def job_quotas(run: Run, settings: WSMeter) -> pd.DataFrame:
    """Return job, quota (hardware threads, of the whole job) and instances of every job that matters to the analysis.

    Parameters
    ----------
    run : a run
    settings : jobs, by name

    Raises
    ------
    RunError
        If the run has no table `jobs`.
    InputError
        If a job that the settings name is not there.

    """
    jobs = run.table("jobs", ["job", "quota_vcpu", "instances"]).rename(columns={"quota_vcpu": "quota"})
    if settings.jobs is None:
        return jobs
    names = run.table("jobs", ["name"])["name"]
    missing = sorted(set(settings.jobs) - set(names))
    if missing:
        raise InputError(f"{run.path}: no job is named {', '.join(missing)}")
    return jobs[names.isin(settings.jobs)].reset_index(drop=True)
