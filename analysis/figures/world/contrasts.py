"""What one switch of the world moves: the same stays measured twice, with everything and without one thing."""

import numpy as np
import pandas as pd

from analysis.statistics import NotEnoughDataError, job_statistics
from models.arrays import Floats

MIN_STAYS = 20
"""Stays of a job from which its spread is taken."""


def moved(base: pd.DataFrame, other: pd.DataFrame) -> float:
    """Return the median stay's absolute relative change of performance.

    Parameters
    ----------
    base, other : columns residence, value; stays that only one of them has are left out

    Examples
    --------
    >>> base = pd.DataFrame({"residence": [1, 2, 3], "value": 1.0})
    >>> round(moved(base, base.assign(value=[1.0, 0.9, 1.2])), 3)
    0.1
    """
    both = _paired(base, other)
    return float((both["value_other"] / both["value_base"] - 1).abs().median())


def rack_variance_ratio(base: pd.DataFrame, other: pd.DataFrame) -> float:
    """Return how much more a machine's change varies between racks than machines of one rack would make it.

    The ratio of mean squares of a one-way analysis of variance (Fisher 1925) of each machine's mean logarithm of the
    change, by rack; about 1 where racks share nothing.

    Parameters
    ----------
    base, other : columns residence, machine, rack, value

    Returns
    -------
    float
        NaN if nothing changed.

    Raises
    ------
    NotEnoughDataError
        If there are fewer than two racks, or no rack has two machines.

    Examples
    --------
    >>> table = pd.DataFrame({"residence": range(4), "machine": range(4), "rack": [0, 0, 1, 1], "value": 1.0})
    >>> round(rack_variance_ratio(table, table.assign(value=np.exp([0.01, 0.02, 0.03, 0.04]))), 3)
    8.0
    """
    both = _paired(base, other)
    change = np.log(both["value_other"] / both["value_base"])
    machines = both.assign(change=change).groupby(["rack", "machine"], as_index=False)["change"].mean()
    racks = machines.groupby("rack")["change"].agg(["mean", "size"])
    spare = len(machines) - len(racks)
    if len(racks) < 2 or spare < 1:
        raise NotEnoughDataError(2, min(len(racks), 1 + spare), "racks of two machines")
    within = machines["change"] - machines["rack"].map(racks["mean"])
    between = float((racks["size"] * (racks["mean"] - machines["change"].mean()) ** 2).sum()) / (len(racks) - 1)
    left = float((within**2).sum()) / spare
    return between / left if left > 0 else float("nan")


def job_cv(measurements: pd.DataFrame) -> float:
    """Return the median over jobs of the spread between their stays over their mean; jobs of 20 stays at least.

    Parameters
    ----------
    measurements : columns job, weight, value

    Raises
    ------
    NotEnoughDataError
        If no job has so many.

    Examples
    --------
    >>> round(job_cv(pd.DataFrame({"job": 1, "weight": 1.0, "value": [0.9, 1.1] * 10})), 3)
    0.1
    """
    jobs = job_statistics(measurements)
    many = jobs[jobs["instances"] >= MIN_STAYS]
    if many.empty:
        raise NotEnoughDataError(MIN_STAYS, int(jobs["instances"].max()) if len(jobs) else 0, "stays of one job")
    return float((many["std"] / many["mean"]).median())


def slowdown(measurements: pd.DataFrame, alone: pd.DataFrame) -> float:
    """Return the median stay's cycles per instruction over those of its job alone.

    Parameters
    ----------
    measurements : columns job, value (instructions per cycle)
    alone : columns job, cpi

    Examples
    --------
    >>> slowdown(pd.DataFrame({"job": [1], "value": [0.5]}), pd.DataFrame({"job": [1], "cpi": [1.6]}))
    1.25
    """
    reference = measurements["job"].map(alone.set_index("job")["cpi"]).to_numpy(dtype=np.float64)
    ratios: Floats = 1.0 / (measurements["value"].to_numpy(dtype=np.float64) * reference)
    return float(np.median(ratios))


def _paired(base: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    return base.merge(
        other[["residence", "value"]], on="residence", suffixes=("_base", "_other"), validate="one_to_one"
    )
