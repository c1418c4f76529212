"""Cycles per instruction of every job, said three times: by the counters, by the profile, by WSMeter's sample."""

import numpy as np
import pandas as pd
from scipy.stats import t

from analysis.crosscheck.check import CONFIDENCE, Check, misses
from analysis.profiling.metrics import cpi
from models.arrays import Ints

LEAST = 10
"""Visits of a job, and stays in WSMeter's sample, that an interval needs to be one."""


def counted(counters: pd.DataFrame, instances: pd.DataFrame) -> "pd.Series[float]":
    """Return the cycles per instruction of every job over all of its stays, by job.

    Parameters
    ----------
    counters : residence, cycles, instructions; a row a stay and window
    instances : residence, job

    Examples
    --------
    >>> stays = pd.DataFrame({"residence": [0, 1], "cycles": [4.0, 2.0], "instructions": [2.0, 1.0]})
    >>> counted(stays, pd.DataFrame({"residence": [0, 1], "job": [7, 7]})).to_dict()
    {7: 2.0}
    """
    job = counters["residence"].map(instances.set_index("residence")["job"])
    sums = counters.groupby(job)[["cycles", "instructions"]].sum()
    return sums["cycles"] / sums["instructions"].where(sums["instructions"] > 0)


def profiled(cycles: pd.DataFrame, instructions: pd.DataFrame, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the cycles per instruction of every job as sampled in at least `LEAST` visits, with its interval.

    Parameters
    ----------
    cycles, instructions : application, visit, samples, value
    jobs : job, name

    Returns
    -------
    DataFrame
        job, cpi, low, high, standard_error, degrees (of freedom); by job.

    Examples
    --------
    >>> seen = pd.DataFrame({"application": "shop", "visit": range(12), "samples": 9, "value": [8, 9, 10, 11] * 3})
    >>> made = profiled(seen, seen.assign(value=5), pd.DataFrame({"job": [3], "name": ["shop"]}))
    >>> made[["job", "cpi"]].values.tolist()
    [[3.0, 1.9]]
    """
    made = cpi(cycles, instructions, cluster="visit", confidence=CONFIDENCE)
    made = made[(made["clusters"] >= LEAST) & np.isfinite(made["standard_error"])]
    made = made.assign(name=made["application"].astype(str), degrees=made["clusters"] - 1)
    found = made.merge(jobs[["job", "name"]], on="name").sort_values("job", ignore_index=True)
    kept: pd.DataFrame = found[["job", "cpi", "low", "high", "standard_error", "degrees"]]
    return kept


def sampled(counters: pd.DataFrame, instances: pd.DataFrame, drawn: Ints) -> pd.DataFrame:
    """Return WSMeter's 1 / IPC of every job with at least `LEAST` stays in a sample, with its interval.

    A job's performance is the mean of its stays', each weighing by its cycles, so that it is that of all its cycles.
    The interval is that of a mean of as many stays, drawn from the fleet's without replacement (Lee et al. 2018,
    WSMeter, section 4.3).

    Parameters
    ----------
    counters : residence, cycles, instructions; a row a stay and window
    instances : residence, job
    drawn : residences, drawn at random from each job's

    Returns
    -------
    DataFrame
        job, cpi, low, high, standard_error, degrees (of freedom); by job.

    Examples
    --------
    >>> stays = pd.DataFrame({"residence": range(20), "cycles": 4.0, "instructions": [1.0, 2.0] * 10})
    >>> where = pd.DataFrame({"residence": range(20), "job": 0})
    >>> sampled(stays, where, np.arange(10))["cpi"].round(6).tolist()
    [2.666667]
    """
    sums = counters.groupby("residence", as_index=False)[["cycles", "instructions"]].sum()
    stays = sums[sums["cycles"] > 0].merge(instances[["residence", "job"]], on="residence")
    fleet = stays.groupby("job").size()
    here = stays[stays["residence"].isin(drawn)]
    each = here.groupby("job")
    there = each.size()
    ipc = each["instructions"].sum() / each["cycles"].sum()
    residual = (here["instructions"] - here["job"].map(ipc) * here["cycles"]) / here["job"].map(each["cycles"].sum())
    squares = (residual**2).groupby(here["job"]).sum()
    enough = there.index[there >= LEAST]
    count, ipc = there[enough], ipc[enough]
    error = np.sqrt(squares[enough] * count / (count - 1) * (1 - count / fleet[enough]))
    half = t.ppf(0.5 + CONFIDENCE / 2, count - 1) * error
    made = {"job": enough, "cpi": 1 / ipc, "low": 1 / (ipc + half), "high": 1 / np.maximum(ipc - half, 1e-300)}
    return pd.DataFrame(made | {"standard_error": error / ipc**2, "degrees": count - 1}).reset_index(drop=True)


def within(check: str, found: pd.DataFrame, said: "pd.Series[float]") -> Check | None:
    """Return whether intervals hold what the counters say, but for as many as chance explains; None without jobs.

    Parameters
    ----------
    check : its name
    found : job, low, high
    said : cycles per instruction by job

    Examples
    --------
    >>> made = pd.DataFrame({"job": [0, 1], "low": 1.0, "high": 2.0})
    >>> within("cpi", made, pd.Series({0: 1.5, 1: 2.5})).left
    1.0
    """
    value = found["job"].map(said)
    wrong = int((~value.between(found["low"], found["high"])).sum())
    return misses(check, wrong, len(found)) if len(found) else None


def alike(check: str, left: pd.DataFrame, right: pd.DataFrame) -> Check | None:
    """Return whether two estimates of each job are no farther apart than both errors explain; None without jobs.

    Parameters
    ----------
    check : its name
    left, right : job, cpi, standard_error, degrees; of independent samples

    Examples
    --------
    >>> one = pd.DataFrame({"job": [0, 1], "cpi": [1.0, 2.0], "standard_error": 0.1, "degrees": 30})
    >>> alike("cpi", one, one.assign(cpi=[1.1, 3.0])).left
    1.0
    """
    both = left.merge(right, on="job", suffixes=("", "_right"))
    error = np.hypot(both["standard_error"], both["standard_error_right"])
    limit = t.ppf(0.5 + CONFIDENCE / 2, np.minimum(both["degrees"], both["degrees_right"]))
    wrong = int((~((both["cpi"] - both["cpi_right"]).abs() <= limit * error)).sum())
    return misses(check, wrong, len(both)) if len(both) else None
