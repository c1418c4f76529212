"""Which jobs to measure: those that two fleets share, and the heavyweights that hold most of the quota."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.summaries import job_statistics
from models.arrays import Floats
from models.errors import InputError


def common_jobs(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return the jobs that run on both fleets, with their quota in both (Lee et al. 2018, WSMeter, section 3.2).

    Jobs are the same if their names are, or their ids where a table has no names.

    Parameters
    ----------
    a, b : columns job, quota (any unit) and perhaps name; every job of a fleet once

    Returns
    -------
    DataFrame
        job (or name), quota_a, quota_b; in the order of falling quota in `a`.

    Examples
    --------
    >>> jobs = pd.DataFrame({"job": ["db", "cache", "x"], "quota": [5.0, 4.0, 1.0]})
    >>> common_jobs(jobs, pd.DataFrame({"job": ["cache", "db"], "quota": [3.0, 7.0]}))
         job  quota_a  quota_b
    0     db      5.0      7.0
    1  cache      4.0      3.0
    """
    by = _identity(a, b)
    both = top_jobs(a, len(a))[[by, "quota"]].merge(b[[by, "quota"]], on=by, suffixes=("_a", "_b"))
    return both.reset_index(drop=True)


def top_jobs(jobs: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the n jobs with the largest quota (section 3.3); equal quotas keep the order of the table.

    Parameters
    ----------
    jobs : columns job, quota
    n : 0 or more; all jobs if there are fewer

    Examples
    --------
    >>> top_jobs(pd.DataFrame({"job": ["a", "b", "c"], "quota": [1.0, 3.0, 2.0]}), 2)["job"].tolist()
    ['b', 'c']
    """
    if n < 0:
        raise InputError(f"n must be 0 or more jobs, got {n}")
    order = np.argsort(-jobs["quota"].to_numpy(dtype=np.float64), kind="stable")
    return jobs.take(order[:n]).reset_index(drop=True)


def selection_curve(measurements: pd.DataFrame, jobs: pd.DataFrame, sizes: Sequence[int]) -> pd.DataFrame:
    """Return what measuring only the top jobs leaves out (Lee et al. 2018, WSMeter, Fig. 6).

    The metric of a selection is ``Σ w m`` over its jobs, the weights being quota shares that sum to 1 in the selection.
    Jobs without a measurement count for the coverage only.

    Parameters
    ----------
    measurements : columns job, weight, value; the whole fleet
    jobs : columns job, quota; every job of the fleet once
    sizes : numbers of top jobs, 1 or more

    Returns
    -------
    DataFrame
        One row per size: jobs, quota_coverage (share of the fleet's quota, 0..1), value (units of the measurements)
        and deviation (from the metric of all jobs, relative to it). Value and deviation are NaN where no job of the
        selection was measured.

    Raises
    ------
    NotEnoughDataError
        If none of the jobs was measured.
    ValueError
        If a size is below 1.

    Examples
    --------
    >>> sampled = pd.DataFrame({"job": ["a", "b"], "weight": 1.0, "value": [2.0, 1.0]})
    >>> selection_curve(sampled, pd.DataFrame({"job": ["b", "a"], "quota": [1.0, 3.0]}), [1, 2])
       jobs  quota_coverage  value  deviation
    0     1            0.75   2.00   0.142857
    1     2            1.00   1.75   0.000000
    """
    if min(sizes, default=1) < 1:
        raise InputError(f"a selection needs at least 1 job, got {min(sizes)}")
    ranked = top_jobs(jobs, len(jobs))
    mean = job_statistics(measurements).set_index("job")["mean"].reindex(ranked["job"]).to_numpy()
    if np.isnan(mean).all():
        raise NotEnoughDataError(1, 0, "measured jobs of the jobs table")
    quota, upto = ranked["quota"].to_numpy(dtype=np.float64), np.minimum(sizes, len(ranked)) - 1
    value = _cumulative_mean(mean, quota)
    return pd.DataFrame(
        {
            "jobs": upto + 1,
            "quota_coverage": (np.cumsum(quota) / quota.sum())[upto],
            "value": value[upto],
            "deviation": value[upto] / value[-1] - 1,
        }
    )


def job_overlap(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return how much two fleets have in common, by number of jobs and by quota (WSMeter, Figs. 4 and 5a).

    Parameters
    ----------
    a, b : columns job, quota and perhaps name; every job of a fleet once

    Returns
    -------
    DataFrame
        Rows both, only_a, only_b (`where`): jobs, job_share (of all jobs that run on either), quota_share_a and
        quota_share_b (of either fleet's quota).

    Examples
    --------
    >>> first, second = (pd.DataFrame({"job": ["db", name], "quota": [3.0, 1.0]}) for name in "xy")
    >>> job_overlap(first, second)[["where", "jobs", "quota_share_a", "quota_share_b"]]
        where  jobs  quota_share_a  quota_share_b
    0    both     1           0.75           0.75
    1  only_a     1           0.25           0.00
    2  only_b     1           0.00           0.25
    """
    by = _identity(a, b)
    in_b, in_a = a[by].isin(b[by]), b[by].isin(a[by])
    jobs = np.array([in_b.sum(), (~in_b).sum(), (~in_a).sum()])
    share_a = a["quota"][in_b].sum() / a["quota"].sum()
    share_b = b["quota"][in_a].sum() / b["quota"].sum()
    return pd.DataFrame(
        {
            "where": ["both", "only_a", "only_b"],
            "jobs": jobs,
            "job_share": jobs / jobs.sum(),
            "quota_share_a": [share_a, 1 - share_a, 0.0],
            "quota_share_b": [share_b, 0.0, 1 - share_b],
        }
    )


def quota_cdf(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the share of the quota that the heaviest jobs hold together (WSMeter, Fig. 5b).

    Parameters
    ----------
    jobs : columns job, quota

    Returns
    -------
    DataFrame
        In the order of falling quota: job, jobs (1, 2, …), job_share and quota_share (both cumulative, 0..1).

    Examples
    --------
    >>> quota_cdf(pd.DataFrame({"job": ["a", "b"], "quota": [1.0, 3.0]}))
      job  jobs  job_share  quota_share
    0   b     1        0.5         0.75
    1   a     2        1.0         1.00
    """
    ranked = top_jobs(jobs, len(jobs))
    count = np.arange(1, len(ranked) + 1)
    quota = ranked["quota"].to_numpy(dtype=np.float64)
    shares = {"job_share": count / len(ranked), "quota_share": np.cumsum(quota) / quota.sum()}
    return pd.DataFrame({"job": ranked["job"], "jobs": count} | shares)


def _identity(a: pd.DataFrame, b: pd.DataFrame) -> str:
    """Return the column that tells whether jobs of two fleets are the same."""
    return "name" if "name" in a.columns and "name" in b.columns else "job"


def _cumulative_mean(mean: Floats, quota: Floats) -> Floats:
    """Return the quota-weighted mean over the first 1, 2, … jobs, those without a mean left out."""
    measured = np.where(np.isnan(mean), 0.0, quota)
    with np.errstate(invalid="ignore"):
        means: Floats = np.cumsum(measured * np.nan_to_num(mean)) / np.cumsum(measured)
    return means
