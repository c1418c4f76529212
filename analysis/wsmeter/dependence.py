"""Whether jobs' performances depend on each other: distance correlation, pairing by rack, the covariance term."""

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd

from analysis.distance import distance_correlations, pearson_correlation
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.summaries import machine_values, quota_shares
from models.arrays import Floats, Ints
from models.errors import InputError

COEFFICIENTS = ("distance_correlation", "bias_corrected", "pearson")


@dataclass(frozen=True, slots=True)
class CovarianceTerm:
    """What the covariance between jobs adds to the variance of their weighted mean.

    With s_i the weighted standard error of job i, ``ratio = (effective_jobs - 1) · mean_correlation``.
    """

    ratio: float
    """``2 Σ_{i<j} w_i w_j Cov(m_i, m_j)`` over ``Σ w_i² Var(m_i)``; the paper takes it for 0."""
    standard_error: float
    """Of the ratio, from the spread between machines (or racks)."""
    mean_correlation: float
    """Correlation of the m_i, averaged with the weights s_i s_j; NaN for one job."""
    effective_jobs: float
    """``(Σ s)² / Σ s²``: jobs of equal weight that would be as many terms."""
    clustering: float
    """``Σ w_i² Var(m_i)`` over ``Σ w_i² σ_i² / N_i``: above 1 if instances of one job on a machine are alike."""
    jobs: int
    units: int
    """Machines (or racks)."""


def colocated_values(measurements: pd.DataFrame, job: object) -> pd.DataFrame:
    """Return each instance of a job beside what else runs on its machine (Lee et al. 2018, WSMeter, Fig. 8).

    The machine's value leaves out all instances of the job; the others weigh by `exposure` where the table has it
    (cycles for IPC), otherwise by `weight`. Instances without other jobs beside them are left out.

    Parameters
    ----------
    measurements : columns job, machine, weight, value and perhaps exposure; one row per measured instance
    job : the job looked at

    Returns
    -------
    DataFrame
        machine, value (of the instance), others (of the machine without the job); both in units of value.

    Examples
    --------
    >>> rows = {"job": ["a", "b", "c"], "machine": 7, "weight": [9.0, 1.0, 3.0], "value": [5.0, 1.0, 2.0]}
    >>> colocated_values(pd.DataFrame(rows), "a")
       machine  value  others
    0        7    5.0    1.75
    """
    own = (measurements["job"] == job).to_numpy()
    others = machine_values(measurements[~own])[["machine", "value"]].rename(columns={"value": "others"})
    return measurements.loc[own, ["machine", "value"]].merge(others, on="machine").reset_index(drop=True)


def colocation_dependence(measurements: pd.DataFrame, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return how each job's instances depend on their neighbours (Lee et al. 2018, WSMeter, Fig. 8).

    Parameters
    ----------
    measurements : columns job, machine, weight, value and perhaps exposure
    jobs : column job; the jobs to look at, such as the top three

    Returns
    -------
    DataFrame
        job, instances, distance_correlation (0..1), bias_corrected (of its square, may be below 0), pearson;
        correlations are NaN for fewer than 4 instances or where one side does not vary.
    """
    rows = []
    for job in jobs["job"].tolist():
        pairs = colocated_values(measurements, job)
        sides = (pairs[side].to_numpy(dtype=np.float64) for side in ("value", "others"))
        rows.append({"job": job, "instances": len(pairs)} | _coefficients(*sides))
    return pd.DataFrame(rows, columns=["job", "instances", *COEFFICIENTS])


def rack_dependence(measurements: pd.DataFrame, jobs: pd.DataFrame) -> pd.DataFrame:
    """Return how pairs of jobs depend on each other, by their mean value in each rack (WSMeter, Fig. 9).

    Parameters
    ----------
    measurements : columns job, rack, value
    jobs : column job; all pairs of them are formed, such as of the top hundred

    Returns
    -------
    DataFrame
        job_a, job_b, racks (that hold both), distance_correlation (0..1), bias_corrected (of its square, may be below
        0), pearson; correlations are NaN for fewer than 4 racks or where one side does not vary.

    Examples
    --------
    >>> rows = {"job": list("aaaabbbb"), "rack": [1, 2, 3, 4] * 2, "value": [1.0, 2.0, 3.0, 4.0, 8.0, 6.0, 4.0, 2.0]}
    >>> rack_dependence(pd.DataFrame(rows), pd.DataFrame({"job": ["a", "b"]})).round(3)
      job_a job_b  racks  distance_correlation  bias_corrected  pearson
    0     a     b      4                   1.0             1.0     -1.0
    """
    chosen = measurements[measurements["job"].isin(jobs["job"])]
    means = chosen.pivot_table(index="rack", columns="job", values="value", aggfunc="mean")
    by_job = {job: means[job].to_numpy(dtype=np.float64) for job in jobs["job"].tolist() if job in means.columns}
    rows = []
    for (job_a, a), (job_b, b) in combinations(by_job.items(), 2):
        both = ~(np.isnan(a) | np.isnan(b))
        pair = {"job_a": job_a, "job_b": job_b, "racks": int(both.sum())}
        rows.append(pair | _coefficients(a[both], b[both]))
    return pd.DataFrame(rows, columns=["job_a", "job_b", "racks", *COEFFICIENTS])


def effective_correlation(
    measurements: pd.DataFrame, jobs: pd.DataFrame, unit: Literal["machine", "rack"] = "machine"
) -> CovarianceTerm:
    """Return the weighted covariance term that WSMeter leaves out, relative to the sum of variances (section 4.3).

    For a random sample of machines, ``m_i - μ_i`` is nearly the sum over the machines of ``(v - μ_i) / n_i``, n_i being
    the job's mean number of instances per machine (ratio estimator; Cochran 1977, section 6.3). So the variances and
    covariances of the m_i are those of these sums between machines, over the size of the sample, which cancels.

    Parameters
    ----------
    measurements : columns job, machine (or rack), value; the whole fleet
    jobs : columns job, quota; the jobs in the weighted mean, weighing by quota
    unit : what is drawn at random, and may carry covariance

    Raises
    ------
    NotEnoughDataError
        If no job was measured, or fewer than 2 machines (or racks).
    ValueError
        If no job's value varies.

    Examples
    --------
    >>> rows = {"job": list("aaaabbbb"), "machine": [1, 2, 3, 4] * 2, "value": [1.0, 2.0, 3.0, 4.0] * 2}
    >>> term = effective_correlation(pd.DataFrame(rows), pd.DataFrame({"job": ["a", "b"], "quota": 1.0}))
    >>> round(term.ratio, 3), round(term.mean_correlation, 3), round(term.effective_jobs, 3)
    (1.0, 1.0, 2.0)
    """
    unit_code, units = pd.factorize(measurements[unit])
    chosen = measurements["job"].isin(jobs["job"]).to_numpy()
    if len(units) < 2 or not chosen.any():
        raise NotEnoughDataError(2, len(units) if chosen.any() else 0, f"{unit}s with a measured job")
    unit_code, rows = unit_code[chosen], measurements[chosen]
    job_code, names = pd.factorize(rows["job"])
    cell, which = np.unique(unit_code * len(names) + job_code, return_inverse=True)
    share = _shares_of_error(rows, jobs, job_code, names)
    if not share.any():
        raise InputError("the values of no job vary")
    squares = _sums(which, share, len(cell)) ** 2
    own = _sums(cell // len(names), squares, len(units))
    together = _sums(unit_code, share, len(units)) ** 2 - own
    return _term(own, together, _sums(cell % len(names), squares, len(names)), float(np.sum(share**2)))


def _sums(code: Ints, values: Floats, size: int) -> Floats:
    return np.bincount(code, values, size).astype(np.float64)


def _shares_of_error(rows: pd.DataFrame, jobs: pd.DataFrame, job_code: Ints, names: pd.Index) -> Floats:
    """Return w (v - μ) / n for every row: what it adds to the error of the weighted mean, times the sample's size."""
    value, instances = rows["value"].to_numpy(dtype=np.float64), np.bincount(job_code)
    residual = value - (np.bincount(job_code, value) / instances)[job_code]
    shares: Floats = residual * (quota_shares(jobs, names) / instances)[job_code]
    return shares


def _term(own: Floats, together: Floats, variances: Floats, independent: float) -> CovarianceTerm:
    """Return the term from every unit's squares and cross products, every job's squares, and those of single rows."""
    units, jobs = len(own), len(variances)
    ratio = together.sum() / own.sum()
    error = np.std(together - ratio * own, ddof=1) * np.sqrt(units) / own.sum()
    clustering = own.sum() / independent
    effective = np.sqrt(variances).sum() ** 2 / variances.sum()
    mean = ratio / (effective - 1) if jobs > 1 and effective > 1 else np.nan
    return CovarianceTerm(float(ratio), float(error), float(mean), float(effective), float(clustering), jobs, units)


def _coefficients(x: Floats, y: Floats) -> dict[str, float]:
    if len(x) < 4:
        return dict.fromkeys(COEFFICIENTS, np.nan)
    values = (*distance_correlations(x, y), pearson_correlation(x, y))
    return dict(zip(COEFFICIENTS, values, strict=True))
