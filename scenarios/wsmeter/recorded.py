"""A run's tables as measurements: what the settings of an analysis say is measured, of which jobs; cell by cell."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from analysis.wsmeter.measurements import Metric, performance
from models.errors import InputError
from scenarios.files.schema import WSMeter
from scenarios.runs.rundir import Run

METRICS: Mapping[Metric, str] = {
    "ipc": "instructions per cycle",
    "ips": "instructions per CPU second",
    "requests_per_cpu_s": "requests per CPU second",
    "requests_per_s": "requests per second",
}
"""What the metrics of a run are called."""


def measured(run: Run, settings: WSMeter, table: str = "counters") -> pd.DataFrame:
    """Return the measurement table of a fleet: the recorded one, or a twin's by the name of its counters.

    Parameters
    ----------
    run : a run
    settings : metric, window and jobs
    table : a table with the columns of `counters`

    Returns
    -------
    DataFrame
        What `analysis.wsmeter.measurements.performance` says of the jobs that matter, one row per measured stay.

    Raises
    ------
    RunError
        If the run lacks the table.
    ValueError
        If the counting window or a job is not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     len(measured(example(Path(directory)), WSMeter()))
    438
    """
    cells = list(measured_by_cell(run, settings, table))
    return cells[0] if len(cells) == 1 else pd.concat(cells, ignore_index=True)


def measured_by_cell(run: Run, settings: WSMeter, table: str = "counters") -> Iterator[pd.DataFrame]:
    """Yield the measurement table of a fleet, as `measured`, cell by cell; of a run that is whole at once.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     [len(made) for made in measured_by_cell(example(Path(directory)), WSMeter())]
    [438]
    """
    jobs = None if settings.jobs is None else job_quotas(run, settings)["job"]
    for part in run.split():
        counters = part.table(table)
        if settings.window.endswith("*"):
            counters = _together(counters, settings.window)
        made = performance(counters, part.table("instances"), settings.metric, settings.window)
        yield made if jobs is None else made[made["job"].isin(jobs)].reset_index(drop=True)


def _together(counters: pd.DataFrame, window: str) -> pd.DataFrame:
    """Return the counters of all windows whose names begin like `window`, up to its asterisk, summed per stay."""
    chosen = counters[counters["window"].str.startswith(window[:-1])]
    return chosen.drop(columns="window").groupby("residence", as_index=False).sum().assign(window=window)


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
    ValueError
        If a job that the settings name is not there.

    Examples
    --------
    >>> import tempfile
    >>> jobs = pd.DataFrame({"job": [0, 1], "name": ["shop", "mail"], "quota_vcpu": [8.0, 2.0], "instances": [4, 2]})
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     jobs.to_parquet(Path(directory, "jobs.parquet"))
    ...     job_quotas(Run(Path(directory), {}), WSMeter(jobs=("mail",))).to_dict("records")
    [{'job': 1, 'quota': 2.0, 'instances': 2}]
    """
    jobs = run.table("jobs", ["job", "quota_vcpu", "instances"]).rename(columns={"quota_vcpu": "quota"})
    if settings.jobs is None:
        return jobs
    names = run.table("jobs", ["name"])["name"]
    missing = sorted(set(settings.jobs) - set(names))
    if missing:
        raise InputError(f"{run.path}: no job is named {', '.join(missing)}")
    return jobs[names.isin(settings.jobs)].reset_index(drop=True)


def example(folder: Path) -> Run:
    """Return the run of a tiny fleet into a folder: 20 machines for a quarter of an hour, half of them upgraded.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     len(example(Path(directory)).table("machines"))
    20
    """
    from models.fleet.world import Feature, Fleet, Population, World
    from sim.fleet.experiment import experiment

    feature = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
    experiment(World(3, 900.0, 300.0, Fleet(20), Population(60, 50), feature=feature), folder)
    return Run(folder, {"scenario": "tiny"})
