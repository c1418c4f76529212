"""A run's tables as measurements, cell by cell, and the truth: a recorded fleet beside its counterfactual twins."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.measurements import PLACES, measurements
from analysis.wsmeter.summaries import job_statistics, machine_values
from models.errors import InputError
from models.fleet.metrics import METRICS, MetricName
from models.fleet.world import World
from models.tables import ARMS
from scenarios.files.schema import AnyScenario, Scenario, WSMeter
from scenarios.runs.rundir import Run, RunError
from scenarios.views.numbers import duration

Unit: TypeAlias = Literal["machine", "instance"]
"""What a test cluster is made of."""
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


def unit_of(scenario: World) -> Unit:
    """Return what a test cluster of the scenario is made of: machines, or instances for new code."""
    by_instance = scenario.feature is not None and scenario.feature.rollout.unit == "instance"
    return "instance" if by_instance else "machine"


def partly_on(scenario: Scenario) -> str:
    """Return what to say where the feature is not on, or has not settled, in all of the time that is measured.

    The true change is of fleets with and without it for the whole time; estimates are smaller by the time without it.

    Examples
    --------
    >>> from models.fleet.world import Feature, Rollout
    >>> late = Scenario(name="late", feature=Feature("new", rollout=Rollout(start_s=43200.0)))
    >>> partly_on(late)  # doctest: +ELLIPSIS
    'the feature is on where it goes from 12 h on, in 50.0% of what is measured (window all): estimates miss ...'
    """
    feature, measured = scenario.feature, scenario.analyses.wsmeter.window
    if feature is None or scenario.periods:
        return ""
    rollout = feature.rollout
    from_s = rollout.start_s + (rollout.waves - 1) * rollout.interval_s
    from_s += feature.settle_s if from_s > 0 else 0.0
    together = measured.endswith("*")
    windows = [
        window
        for window in scenario.windows
        if (window.name.startswith(measured[:-1]) if together else window.name == measured)
    ]
    whole_s = sum(window.end_s - window.start_s for window in windows)
    on_s = sum(max(0.0, window.end_s - max(window.start_s, from_s)) for window in windows)
    if on_s >= whole_s:
        return ""
    return (
        f"the feature is on where it goes from {duration(from_s)} on, in {on_s / whole_s:.1%} of what is measured "
        f"(window {measured}): estimates miss what it changes in the rest; count in a window that begins then "
        "(recording.windows) and measure that (analyses.wsmeter.window)"
    )


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
        raise RunError(f"{scenario.name}: is a {scenario.kind}; --metric is only for fleets")
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
    ratio = METRICS[settings.metric]
    counted = list(dict.fromkeys(("residence", "window", "wall_s", ratio.counted, ratio.per)))
    for part in run.split():
        counters, stays = part.table(table, counted), part.table("instances", ["job", "machine", "quota_vcpu", *PLACES])
        rows = measurements(counters, stays, settings.metric, settings.window)
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


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What a validation looks at: the recorded fleet, its jobs, and the two counterfactual fleets.

    `observed`, `nowhere` and `everywhere` are measurement tables, `observed` with the column feature; `jobs` has the
    columns job, quota, instances of all jobs that matter.
    """

    observed: pd.DataFrame
    jobs: pd.DataFrame
    nowhere: pd.DataFrame
    everywhere: pd.DataFrame

    @classmethod
    def of(cls, run: Run, settings: WSMeter) -> "Tables":
        """Read a run's tables and measure what the settings say.

        Raises
        ------
        RunError
            If the run has no truth tables.
        ValueError
            If the counting window is not there.
        """
        names = ("counters", "truth_nowhere_counters", "truth_everywhere_counters")
        observed, nowhere, everywhere = (run_measurements(run, settings, name) for name in names)
        return cls(observed, job_quotas(run, settings), nowhere, everywhere)

    def by_instance(self) -> "Tables":
        """Return the same tables with every instance as a machine of its own, for features of single instances."""
        observed, nowhere, everywhere = map(by_own_machine, (self.observed, *self.arms))
        return Tables(observed, self.jobs, nowhere, everywhere)

    @property
    def arms(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The counterfactual fleets: the feature nowhere, and everywhere."""
        return self.nowhere, self.everywhere


def change(tables: Tables) -> float:
    """Return the true relative change over all jobs of the fleet; the recorded fleet is not looked at.

    Examples
    --------
    >>> off = pd.DataFrame({"job": list("aabb"), "machine": [1, 2, 1, 2], "weight": 1.0, "value": [1.0, 1, 2, 2]})
    >>> jobs = pd.DataFrame({"job": ["a", "b"], "quota": [1.0, 1.0], "instances": 2})
    >>> change(Tables(off, jobs, off, off.assign(value=off["value"] * 1.5)))
    0.5
    """
    return _job_change(*tables.arms, tables.jobs)


def change_of(run: Run, settings: WSMeter) -> float:
    """Return the true relative change over all jobs of a run, as `change` does, with one cell in memory at a time."""
    old, new = (_means(run, settings, f"truth_{arm}_counters") for arm in ARMS)
    return _change_of_means(old, new, job_quotas(run, settings))


def recorded_change(run: Run, metric: MetricName) -> float:
    """Return the true relative change of a run by a metric, in the window and over the jobs that its scenario measures.

    NaN of a run that records no truth.

    Raises
    ------
    RunError
        If the tables of the truth cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> recorded_change(Run(Path("nowhere"), {}), "ips")
    nan
    """
    if not all(run.has(f"truth_{arm}_counters") for arm in ARMS):
        return math.nan
    return change_of(run, replace(settings_of(run), metric=metric))


def in_words(metric: MetricName, true: float) -> str:
    """Return in words what is measured of a run, and the true change of it.

    Examples
    --------
    >>> in_words("ips", 0.0905)
    'measured: instructions per CPU second (ips); the true change of the whole fleet is +9.05%'
    """
    known = f"the true change of the whole fleet is {true:+.2%}" if math.isfinite(true) else "the truth is not known"
    return f"measured: {METRICS[metric].words} ({metric}); {known}"


def truth(tables: Tables) -> dict[str, float]:
    """Return the true relative changes, and the two halves' references.

    `change` weighs every job of the fleet by its quota share, whether or not an estimator would cover it; a job of
    which no stay was long enough to measure is left out.
    """
    halves = halves_of(tables.observed)
    return {
        "change": change(tables),
        "machine_change": _machine_change(*tables.arms),
        "reference": _job_change(*halves, tables.jobs),
        "machine_reference": _machine_change(*halves),
    }


def halves_of(observed: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the recorded fleet without the feature and with it.

    Raises
    ------
    NotEnoughDataError
        If either half is empty.
    """
    feature = observed["feature"].to_numpy(dtype=np.bool_)
    halves = tuple(observed[half].reset_index(drop=True) for half in (~feature, feature))
    for half, what in zip(halves, ("without", "with"), strict=True):
        if half.empty:
            raise NotEnoughDataError(1, 0, f"measured instances {what} the feature")
    return halves[0], halves[1]


def by_own_machine(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with every row as a machine of its own."""
    return table.assign(machine=np.arange(len(table)))


def _job_change(before: pd.DataFrame, after: pd.DataFrame, jobs: pd.DataFrame) -> float:
    """Return the change of the quota-weighted mean over all jobs that both tables measure (section 3.1)."""
    old, new = (job_statistics(table)[["job", "mean"]] for table in (before, after))
    return _change_of_means(old, new, jobs)


def _means(run: Run, settings: WSMeter, table: str) -> pd.DataFrame:
    """Return job and mean over its instances in all cells; means of cells count by their instances."""
    cells = [job_statistics(rows) for rows in measurements_by_cell(run, settings, table)]
    if len(cells) == 1:
        return cells[0][["job", "mean"]]
    means = pd.concat(cells, ignore_index=True)
    code, jobs = pd.factorize(means["job"], sort=True)
    count = means["instances"].to_numpy(dtype=np.float64)
    total = np.bincount(code, count * means["mean"].to_numpy(), len(jobs))
    return pd.DataFrame({"job": jobs, "mean": total / np.bincount(code, count, len(jobs))})


def _change_of_means(old: pd.DataFrame, new: pd.DataFrame, jobs: pd.DataFrame) -> float:
    both = jobs.merge(old, on="job").merge(new, on="job", suffixes=("_old", "_new"))
    weight = both["quota"]
    return float((weight * both["mean_new"]).sum() / (weight * both["mean_old"]).sum() - 1)


def _machine_change(before: pd.DataFrame, after: pd.DataFrame) -> float:
    old, new = (float(machine_values(table)["value"].mean()) for table in (before, after))
    return new / old - 1
