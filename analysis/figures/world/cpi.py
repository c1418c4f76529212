"""What a fleet's counters say about cycles per instruction: over records, within and between jobs, and over time.

Functions whose names end in facts return measured rows (series, x, value), one single number a fact.
"""

import numpy as np
import pandas as pd

from analysis.figures.criteria import numbers
from analysis.figures.world.calibration import quantiles
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.measurements import measurements
from analysis.wsmeter.summaries import job_statistics
from models.arrays import Floats

LAGS_S = {"5min": 300, "10min": 600, "30min": 1800, "1h": 3600, "3h": 10800, "6h": 21600, "24h": 86400}
MIN_STAYS = 5
"""Stays of a job from which its spread is taken."""
MIN_TRACED = 20
"""Traced instances whose mean makes a job's series."""


def stays(counters: pd.DataFrame, instances: pd.DataFrame) -> pd.DataFrame:
    """Return the measured stays with their cycles and memory accesses per instruction.

    Parameters
    ----------
    counters, instances : a run's tables of those names, one counting window named ``all``

    Returns
    -------
    DataFrame
        job, cpi (cycles per instruction), mai (memory accesses per instruction), busy (mean busy hardware threads).
    """
    columns = ["residence", "instructions", "cycles", "llc_misses", "cpu_s", "wall_s"]
    long_enough = measurements(counters, instances, "ipc")[["residence", "job"]]
    both = long_enough.merge(counters.loc[counters["window"] == "all", columns], on="residence", validate="one_to_one")
    return pd.DataFrame(
        {
            "job": both["job"],
            "cpi": both["cycles"] / both["instructions"],
            "mai": both["llc_misses"] / both["instructions"],
            "busy": both["cpu_s"] / both["wall_s"],
        }
    )


def cpi_facts(records: pd.DataFrame) -> pd.DataFrame:
    """Return quantiles of CPI and memory accesses over records, and how CPI follows from accesses and CPU use.

    Parameters
    ----------
    records : of `stays`: cpi, mai, busy

    Raises
    ------
    NotEnoughDataError
        If there are fewer than three records.
    """
    from scipy.stats import linregress, spearmanr

    if len(records) < 3:
        raise NotEnoughDataError(3, len(records), "records")
    cpi, mai, busy = (records[name].to_numpy(dtype=np.float64) for name in ("cpi", "mai", "busy"))
    line = linregress(mai, cpi)
    return numbers(
        **quantiles("cpi", records["cpi"], (5, 25, 50, 75, 95)),
        cpi_mean=cpi.mean(),
        cpi_log_sd=np.log(cpi).std(),
        cpi_cpu_weighted=np.average(cpi, weights=busy),
        cpi_log_cpu_correlation=np.corrcoef(np.log(busy), cpi)[0, 1],
        cpi_over_mai_slope=line.slope,
        cpi_over_mai_intercept=line.intercept,
        cpi_over_mai_r2=line.rvalue**2,
        cpi_over_mai_spearman=spearmanr(mai, cpi).statistic,
        **quantiles("mai", records["mai"], (5, 50, 95)),
    )


def spread_facts(measured: pd.DataFrame) -> pd.DataFrame:
    """Return how much CPI varies between jobs and within them.

    The intraclass correlation is that of a one-way analysis of variance with unequal groups (Donner 1986); spreads are
    standard deviations over means, within jobs of five stays at least.

    Parameters
    ----------
    measured : of `stays`: job, cpi

    Raises
    ------
    NotEnoughDataError
        If no two jobs have enough stays.
    """
    jobs = job_statistics(measured.assign(weight=1.0, value=measured["cpi"]), ddof=1)
    many = jobs[jobs["instances"] >= MIN_STAYS]
    if len(many) < 2:
        raise NotEnoughDataError(2, len(many), f"jobs with {MIN_STAYS} stays")
    return numbers(
        cpi_cv_between_jobs=jobs["mean"].std() / jobs["mean"].mean(),
        cpi_intraclass_correlation=_intraclass(jobs),
        **quantiles("cpi_cv_within_job", many["std"] / many["mean"], (25, 50, 75)),
    )


def _intraclass(jobs: pd.DataFrame) -> float:
    """Return (B − W) / (B + (n₀ − 1) W) of the mean squares between and within jobs."""
    count, mean = jobs["instances"].to_numpy(dtype=np.float64), jobs["mean"].to_numpy(dtype=np.float64)
    stays_all, groups = count.sum(), len(count)
    between = float(count @ (mean - np.average(mean, weights=count)) ** 2) / (groups - 1)
    within = float((count - 1) @ np.nan_to_num(jobs["std"].to_numpy()) ** 2) / (stays_all - groups)
    usual = (stays_all - float(count @ count) / stays_all) / (groups - 1)
    return float((between - within) / (between + (usual - 1) * within))


def series_facts(traced: pd.DataFrame, instances: pd.DataFrame, epoch_s: float, jobs: int = 5) -> pd.DataFrame:
    """Return spread and autocorrelation of the mean CPI of the largest traced jobs, averaged over these jobs.

    Parameters
    ----------
    traced : columns residence, epoch, cycles, instructions; every epoch of some instances
    instances : columns residence, job, instance
    epoch_s : length of an epoch, seconds
    jobs : at most so many, those with the most traced instances

    Raises
    ------
    NotEnoughDataError
        If no job has 20 traced instances, or the longest lag does not fit twice.
    """
    series = _job_series(traced, instances, jobs)
    needed = 2 * LAGS_S["24h"] / epoch_s
    if len(series) < needed:
        raise NotEnoughDataError(round(needed), len(series), "epochs")
    correlations = {
        name: float(np.mean([_autocorrelation(column, round(lag_s / epoch_s)) for column in series.T]))
        for name, lag_s in LAGS_S.items()
    }
    return numbers(
        job_series_cv=float((series.std(axis=0) / series.mean(axis=0)).mean()),
        **{f"job_series_autocorrelation_{name}": value for name, value in correlations.items()},
    )


def _job_series(traced: pd.DataFrame, instances: pd.DataFrame, jobs: int) -> Floats:
    """Return (epochs, jobs) mean CPI over the traced instances of the jobs that have the most."""
    whose = instances.set_index("residence").loc[traced["residence"], ["job", "instance"]].reset_index(drop=True)
    count = whose.drop_duplicates().groupby("job").size().sort_values(ascending=False, kind="stable")
    largest = count[count >= MIN_TRACED].index[:jobs]
    if not len(largest):
        raise NotEnoughDataError(MIN_TRACED, int(count.max()) if len(count) else 0, "traced instances of one job")
    cpi = pd.DataFrame(
        {
            "job": whose["job"].to_numpy(),
            "epoch": traced["epoch"].to_numpy(),
            "cpi": traced["cycles"].to_numpy() / traced["instructions"].to_numpy(),
        }
    )
    of_largest = cpi[cpi["job"].isin(largest)]
    return of_largest.pivot_table("cpi", "epoch", "job").dropna().to_numpy()


def _autocorrelation(series: Floats, lag: int) -> float:
    """Return the sample autocorrelation at a lag in steps (Box and Jenkins 1970, eq. 2.1.8)."""
    centred = series - series.mean()
    return float(centred[lag:] @ centred[: len(centred) - lag] / (centred @ centred))
