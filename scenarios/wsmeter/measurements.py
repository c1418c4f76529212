"""A run's tables as measurements: what the settings of an analysis say is measured, of which jobs; cell by cell."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from analysis.wsmeter.measurements import measurements
from models.errors import InputError
from models.fleet.metrics import MetricName
from scenarios.files.schema import AnyScenario, Scenario, WSMeter
from scenarios.runs.rundir import Run, RunError

_SETTINGS = TypeAdapter(WSMeter)
_PROFILED = WSMeter(metric="ips", window="day-*")
"""A profiled fleet's scenario has no such settings: all its days are measured together."""


def settings_of(run: Run) -> WSMeter:
    """Return how a run is measured if nothing else is asked: as its scenario says."""
    if run.manifest.get("kind") == "profile":
        return _PROFILED
    analyses = run.manifest.get("resolved", {}).get("analyses", {})
    settings = analyses.get("wsmeter", {}) if isinstance(analyses, dict) else analyses
    try:
        return _SETTINGS.validate_python(settings)
    except ValidationError as fault:
        raise RunError(f"{run.path}: the manifest holds no settings of WSMeter: {fault.error_count()} faults") from None


def in_metric(scenario: AnyScenario, metric: MetricName | None) -> AnyScenario:
    """Return a scenario measured by another metric; as it is if none is said.

    Raises
    ------
    RunError
        If it is no fleet, of which nothing else is measured.
    """
    if metric is None:
        return scenario
    if not isinstance(scenario, Scenario):
        raise RunError(f"{scenario.name}: is a {scenario.kind}; --metric is of fleets")
    settings = replace(scenario.analyses.wsmeter, metric=metric)
    return replace(scenario, analyses=replace(scenario.analyses, wsmeter=settings))


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
