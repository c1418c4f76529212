"""How much each job, and the mean machine, changed from one measurement table to another, with standard errors."""

import numpy as np
import pandas as pd

from analysis.statistics import UNKNOWN, Statistic, student_quantile
from analysis.wsmeter.summaries import job_statistics, machine_values
from models.arrays import Floats

NORMAL_95 = 1.959963984540054
"""Half-width of a 95% interval in standard errors."""


def share_interval(successes: float, of: float) -> Statistic:
    """Return a share and its 95% interval (Wilson 1927, score interval); NaN of nothing.

    Examples
    --------
    >>> tuple(round(end, 3) for end in share_interval(90, 100))
    (0.9, 0.826, 0.945)
    """
    if of == 0:
        return UNKNOWN
    from scipy.stats import binomtest

    ends = binomtest(round(successes), round(of)).proportion_ci(0.95, method="wilson")
    return Statistic(successes / of, float(ends.low), float(ends.high))


def mean_interval(values: Floats) -> Statistic:
    """Return a mean and its 95% interval from independent repetitions.

    Examples
    --------
    >>> tuple(round(end, 2) for end in mean_interval(np.array([1.0, 2.0, 3.0])))
    (2.0, 0.87, 3.13)
    """
    mean = float(np.mean(values))
    error = NORMAL_95 * float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
    return Statistic.around(mean, error)


def student_interval(values: "pd.Series[float]") -> Statistic:
    """Return a mean over repetitions and its 95% interval (Student 1908)."""
    mean, count = float(values.mean()), len(values)
    error = float(student_quantile(0.975, count - 1) * values.std() / np.sqrt(count)) if count > 1 else np.nan
    return Statistic.around(mean, error)


def ratio_error(before: Floats, before_error: Floats, after: Floats, after_error: Floats) -> Floats:
    """Return the standard error of after / before, both estimated (delta method).

    Examples
    --------
    >>> ratio_error(np.array([2.0]), np.array([0.0]), np.array([4.0]), np.array([0.2]))
    array([0.1])
    """
    return np.hypot(after_error, after / before * before_error) / before


def job_changes(current: pd.DataFrame, new: pd.DataFrame, min_instances: int = 1) -> pd.DataFrame:
    """Return every job's relative change of mean performance between two halves of a fleet.

    Parameters
    ----------
    current, new : measurement tables with columns job, weight, value
    min_instances : instances that a job must have in either table

    Returns
    -------
    DataFrame
        job, weight (in both tables), change, error (its standard error, NaN below two instances), shift (of the mean,
        in standard deviations of the instances), and mean, std and instances of either table; ordered by job.

    Examples
    --------
    >>> old = pd.DataFrame({"job": "a", "weight": 1.0, "value": [1.0, 3.0]})
    >>> round(float(job_changes(old, old.assign(value=[2.0, 4.0]))["change"][0]), 3)
    0.5
    """
    sides = [job_statistics(table, ddof=1) for table in (current, new)]
    both = sides[0].merge(sides[1], on="job", suffixes=("_current", "_new"))
    both = both[(both["instances_current"] >= min_instances) & (both["instances_new"] >= min_instances)]
    before, after = both["mean_current"].to_numpy(), both["mean_new"].to_numpy()
    errors = [(both[f"std_{side}"] / np.sqrt(both[f"instances_{side}"])).to_numpy() for side in ("current", "new")]
    spread = np.sqrt((both["std_current"] ** 2 + both["std_new"] ** 2) / 2)
    return both.assign(
        weight=both["weight_current"] + both["weight_new"],
        change=after / before - 1,
        error=ratio_error(before, errors[0], after, errors[1]),
        shift=(after - before) / spread,
    ).reset_index(drop=True)


def machine_change(current: pd.DataFrame, new: pd.DataFrame) -> tuple[float, float]:
    """Return the relative change of the mean machine and its standard error.

    Parameters
    ----------
    current, new : measurement tables with columns machine, weight, value
    """
    before, after = (machine_values(table)["value"].to_numpy() for table in (current, new))
    errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in (before, after)]
    means = [np.atleast_1d(values.mean()) for values in (before, after)]
    error = ratio_error(means[0], np.atleast_1d(errors[0]), means[1], np.atleast_1d(errors[1]))
    return (float(after.mean() / before.mean() - 1), float(error[0]))


def machine_cv(measurements: pd.DataFrame) -> Statistic:
    """Return the spread of the machines over their mean, with its 95% interval (normal machines).

    Examples
    --------
    >>> table = pd.DataFrame({"machine": [1, 2], "weight": 1.0, "value": [0.85, 1.15]})
    >>> round(machine_cv(table).value, 3)
    0.15
    """
    values = machine_values(measurements)["value"].to_numpy()
    cv = float(values.std() / values.mean())
    error = NORMAL_95 * cv / np.sqrt(2 * len(values))
    return Statistic.around(cv, error)
