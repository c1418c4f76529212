"""Observations from files and from the folders of runs, as one table."""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.audit.table import repeated, unusable, unusable_amounts
from analysis.effects.observations import joined, of_run, read_observations
from analysis.tables.columns import Field, read_table
from analysis.tables.faults import PRINTED
from models.errors import InputError
from models.fleet.metrics import MetricName
from models.fleet.world import Window
from models.table_keys import KEYS
from scenarios.files.faults import Fault, FaultsError, faults_in, shown
from scenarios.files.schema import PROFILE, SCENARIO
from scenarios.runs.rundir import Run, RunError, open_run
from scenarios.wsmeter.measurements import job_quotas, settings_of

_JOBS = (Field("job", "text"), Field("quota", "real"), Field("instances", "count", required=False))
_FARTHEST = 1e15
"""Values of one job that are farther apart are no measurements of one thing: a sum of both is that of the larger."""


def experiment(
    sources: Sequence[Path], jobs: Path | None = None, metric: MetricName | None = None
) -> tuple[pd.DataFrame, pd.DataFrame | None, list[str]]:
    """Return an experiment's observations with the column `file`, the whole fleet's jobs if they are known, and notes.

    Amounts that cannot be used, and rows that are there twice, are left in for guards to judge; `estimable` leaves them
    out. So whatever can be audited can be estimated.

    Parameters
    ----------
    sources : files of observations, or the folders of runs
    jobs : CSV or Parquet; job, quota, instances; if left out, one run has its own
    metric : of runs; that of their scenario if not said
    """
    faults = [
        Fault(str(path), 0, 0, "", "should be given once", f"{sources.count(path)} times")
        for path in dict.fromkeys(sources)
        if sources.count(path) > 1
    ]
    if faults:
        raise FaultsError(faults)
    readings = list[Any]()
    for read in (lambda: observed(sources, metric, strict=False), lambda: _jobs(jobs)):
        try:
            readings.append(read())
        except FaultsError as error:
            faults += error.faults
    if faults:
        raise FaultsError(faults)
    (table, notes), whole = readings
    if jobs is None and len(sources) == 1 and sources[0].is_dir():
        whole = jobs_of_run(sources[0])
    faults = list(_apart(table, sources))
    if faults:
        raise FaultsError(faults)
    if whole is not None and not table["job"].isin(whole["job"]).any():
        raise FaultsError([Fault(str(jobs or sources[0]), 0, 0, "job", "should name the jobs of the observations")])
    return table, whole, notes


def _apart(table: pd.DataFrame, sources: Sequence[Path]) -> Iterator[Fault]:
    """Yield the jobs whose values are so far apart that no sum holds the smaller ones."""
    ends = table[~unusable(table)].groupby("job", sort=False)["value"].agg(["min", "max"])
    for job, low, high in ends[ends["max"] / ends["min"] > _FARTHEST].head(PRINTED).itertuples():
        problem = (
            f"should be within {_FARTHEST:g} times of each other in a job, are {low:g} and {high:g} in {shown(job)}"
        )
        yield Fault(str(together(sources)), 0, 0, "value", problem)


def estimable(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the observations that can be counted, and a note on how many are left out, if any are.

    Examples
    --------
    >>> rows = {"period": 1, "job": "a", "machine": [1, 1, 2], "weight": 1.0, "value": [2.0, 2.0, 0.0], "treated": 0}
    >>> observations, notes = estimable(pd.DataFrame(rows | {"file": "a.csv"}))
    >>> len(observations), notes
    (1, ['2 of 3 rows are left out: 1 without a usable value or weight, 1 there twice'])
    """
    bad, amounts = unusable(table), unusable_amounts(table)
    lacking = {"value or weight": bad, **{name: wrong & ~bad for name, wrong in amounts.items()}}
    out = np.logical_or.reduce([bad, *amounts.values()])
    again = np.zeros(len(table), dtype=np.bool_)
    again[~out] = repeated(table[~out])
    counts = [f"{int(wrong.sum()):,} without a usable {name}" for name, wrong in lacking.items() if wrong.any()]
    counts += [f"{int(again.sum()):,} there twice"] if again.any() else []
    usable = table[~(out | again)].drop(columns="file").reset_index(drop=True)
    if not counts:
        return usable, []
    return usable, [f"{len(table) - len(usable):,} of {len(table):,} rows are left out: {', '.join(counts)}"]


def together(sources: Sequence[Path]) -> Path:
    """Return the name under which what is wrong with all sources together is told."""
    return Path(", ".join(map(str, sources)))


def run_metric(sources: Sequence[Path], metric: MetricName | None = None) -> MetricName | None:
    """Return what is measured of the runs among some sources: the metric asked for, else that of their scenarios.

    None if there is no run, or none that can be opened.
    """
    metrics = dict[MetricName, Path]()
    for path in sources:
        if path.is_dir():
            with suppress(RunError):
                metrics.setdefault(metric or settings_of(open_run(path)).metric, path)
    if len(metrics) > 1:
        differ = ", ".join(f"{path} in {name}" for name, path in metrics.items())
        raise FaultsError(
            [Fault("--metric", 0, 0, "", f"should say one metric for runs measured in several: {differ}")]
        )
    return next(iter(metrics), None)


def observed(
    sources: Sequence[Path], metric: MetricName | None = None, *, strict: bool = True
) -> tuple[pd.DataFrame, list[str]]:
    """Return the observations of files or of runs as one table with the column `file`, and notes.

    Parameters
    ----------
    sources : files of observations, or the folders of runs
    metric : of runs; that of their scenario if not said
    strict : as in `read_observations` and `joined`
    """
    faults, notes, tables = list[Fault](), list[str](), dict[str, pd.DataFrame]()
    metric = run_metric(sources, metric)
    for path in sources:
        try:
            with faults_in(path):
                table, table_notes = _read(path, metric, strict=strict)
            tables[str(path)] = table
            notes += [f"{path}: {note}" for note in table_notes]
        except FaultsError as error:
            faults += error.faults
    if faults:
        raise FaultsError(faults)
    with faults_in(sources[-1]):
        return joined(tables, strict=strict), notes


def recorded(run: Run, metric: MetricName | None = None) -> tuple[pd.DataFrame, list[str]]:
    """Return the observations of a run of a fleet, of the jobs that its scenario measures, and notes.

    Of a crossover the first part of each period, in which the state before may still act, is left out. A machine had
    the feature from its roll-out on; periods of which it had it for a part are left out.
    """
    settings = settings_of(run)
    cells = [_recorded(part, metric or settings.metric) for part in run.split()]
    whole = cells[0][0] if len(cells) == 1 else pd.concat([table for table, _ in cells], ignore_index=True)
    if settings.jobs is not None:
        whole = whole[whole["job"].isin(job_quotas(run, settings)["job"])].reset_index(drop=True)
    return whole, cells[0][1]


def _recorded(run: Run, metric: MetricName) -> tuple[pd.DataFrame, list[str]]:
    """Return the observations of one cell, and notes."""
    counters, instances = run.table("counters"), run.table("instances")
    windows = _windows(run, counters)
    faults = [*_repeated(run, "counters", counters), *_repeated(run, "instances", instances)]
    if faults:
        raise FaultsError(faults)
    notes = []
    if windows["window"].str.startswith("wash.").any():
        windows = windows[~windows["window"].str.startswith("wash.")]
        notes.append("of each period of the crossover, the time to settle is left out")
    observations = of_run(counters, instances, windows, _treated(run, instances), metric)
    return observations, notes


def _repeated(run: Run, name: str, table: pd.DataFrame) -> Iterator[Fault]:
    """Yield the rows of a run's table, the first of them by its line, whose key an earlier row has."""
    keys = list(KEYS[name])
    again = table.duplicated(keys).to_numpy().nonzero()[0]
    if len(again):
        first = ", ".join(str(table[key].iloc[again[0]]) for key in keys)
        more = f" and {len(again) - 1:,} more" if len(again) > 1 else ""
        yield Fault(
            str(run.file(name)), int(again[0]) + 2, 1, ", ".join(keys), "should be there once", f"{first} again{more}"
        )


def _jobs(path: Path | None) -> pd.DataFrame | None:
    if path is None:
        return None
    with faults_in(path):
        return read_table(path, _JOBS, lambda _: ("job",))


def jobs_of_run(path: Path) -> pd.DataFrame | None:
    """Return job, quota and instances of all jobs that a run's scenario measures; None of a run without them.

    Examples
    --------
    >>> jobs_of_run(Path("nowhere"))
    Traceback (most recent call last):
    scenarios.runs.rundir.RunError: nowhere: not a finished run, there is no manifest.json
    """
    run = open_run(path)
    if not run.has("jobs"):
        return None
    jobs = run.table("jobs", ["job", "quota_vcpu", "instances"])
    if faults := list(_repeated(run, "jobs", jobs)):
        raise FaultsError(faults)
    return job_quotas(run, settings_of(run))


def _read(path: Path, metric: MetricName | None, *, strict: bool) -> tuple[pd.DataFrame, list[str]]:
    if not path.is_dir():
        reading = read_observations(path, strict=strict)
        return reading.table, list(reading.notes)
    try:
        return recorded(open_run(path), metric)
    except RunError as error:
        raise InputError(str(error).removeprefix(f"{path}: ")) from None


def _windows(run: Run, counters: pd.DataFrame) -> pd.DataFrame:
    """Return window, start_s and end_s of the counting windows, as the scenario has them."""
    counted = set(counters["window"].unique())
    rows = [{"window": window.name, "start_s": window.start_s, "end_s": window.end_s} for window in _asked_windows(run)]
    return pd.DataFrame([row for row in rows if row["window"] in counted])


def _asked_windows(run: Run) -> tuple[Window, ...]:
    """Return the counting windows of a run; those of a profiled fleet are its days."""
    if run.manifest.get("kind") != "profile":
        return run.world(SCENARIO).windows
    from sim.profiling.setting import with_days  # alone here, so that a fleet's run needs no profiler

    return with_days(run.world(PROFILE)).windows


def _treated(run: Run, instances: pd.DataFrame) -> pd.DataFrame:
    """Return machine, start_s and end_s of when machines had the feature."""
    if run.has("switches"):
        switches = run.table("switches")
        if len(switches):
            return switches.loc[switches["feature"], ["machine", "start_s", "end_s"]]
    events = run.table("events", ["time_s", "kind", "machine"]) if run.has("events") else pd.DataFrame()
    having = instances.loc[instances["feature"], "machine"].unique()
    since = pd.Series(0.0, index=having)
    if len(events):
        rolled = events[events["kind"] == "rollout"].groupby("machine")["time_s"].min()
        since = rolled.reindex(having).fillna(0.0)
    return pd.DataFrame({"machine": having, "start_s": since.to_numpy(), "end_s": math.inf})
