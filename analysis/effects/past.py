"""A fleet's past without a feature, in periods of equal length, and what longer studies would gain beyond it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.effects.estimand import Target
from analysis.effects.information import Autocovariance
from models.arrays import Floats

_COURSE = 6.0
"""Of `Autocovariance.of`: a course that noise shows in a twentieth of all cases is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """A fleet's observations without the feature, in periods of equal length."""

    table: pd.DataFrame
    period_s: float
    jobs: pd.DataFrame | None = None
    target: Target = "instances"
    """What is to be estimated."""

    @property
    def periods(self) -> Floats:
        """Its periods in their order."""
        return np.unique(self.table["period"].to_numpy(dtype=np.float64))

    def between(self, first: int, last: int) -> pd.DataFrame:
        """Return the observations of periods by their place, the last one not among them."""
        at = self.periods[first:last]
        return self.table[self.table["period"].between(at[0], at[-1])].reset_index(drop=True)

    def of_days(self, days: float) -> int:
        """Return how many periods are so many days, at least one."""
        return max(round(days * 86400.0 / self.period_s), 1)


def period_length(table: pd.DataFrame) -> float:
    """Return how long a period is, in seconds.

    Periods that lie a minute apart or more are seconds. Otherwise they are numbers: of quarters of an hour, hours or
    days, whichever of these the longest stay needs; of days if there is no present_s.

    Examples
    --------
    >>> period_length(pd.DataFrame({"period": [3, 4]})), period_length(pd.DataFrame({"period": [0, 3600.0]}))
    (86400.0, 3600.0)
    """
    periods = np.unique(table["period"].to_numpy(dtype=np.float64))
    gap = float(np.diff(periods).min()) if len(periods) > 1 else 1.0
    if gap >= 60.0:
        return gap
    longest = float(table["present_s"].max()) if "present_s" in table else 86400.0
    return next((length for length in (900.0, 3600.0) if longest <= length), 86400.0)


def drift(past: Past, wanted: int, length: int) -> float:
    """Return by what factor the error of a study of `wanted` periods after as many differs from that of `length`.

    What a study's mean has left that the mean before does not predict follows from the autocovariance between periods
    of what is compared: deviations from the job, by their weight in the metric. Beyond the past's reach it is that of a
    part that lasts, of a first-order autoregressive course and of noise, which fit the past best. Machines hold many
    instances and shards move between machines, so there are two autocovariances: of machines, and of shards (or,
    without these, of instances). The greater factor is returned.

    Parameters
    ----------
    past : at least two periods
    wanted, length : periods
    """
    deviations = _deviations(past)
    finest = ["job", "shard"] if "shard" in past.table else ["job", "machine", "instance"]
    return max(_factor(past, deviations, keys, wanted, length) for keys in (["machine"], finest))


def _factor(past: Past, deviations: Floats, keys: Sequence[str], wanted: int, length: int) -> float:
    """Return by what factor errors differ, if what the keys name has a course of its own."""
    known = [key for key in keys if key in past.table]
    unit = past.table.groupby(known, observed=True, sort=False).ngroup().to_numpy()
    period, size = np.searchsorted(past.periods, past.table["period"].to_numpy(dtype=np.float64)), len(past.periods)
    sums = np.bincount(unit * size + period, deviations, (int(unit.max()) + 1) * size)
    course: Floats = np.asarray(sums, dtype=np.float64).reshape(-1, size)
    left = [_left(Autocovariance.of(course, _COURSE), periods) for periods in (wanted, length)]
    return math.sqrt(left[0] / left[1]) if min(left) > 0 else 1.0


def _left(covariance: Autocovariance, length: int) -> float:
    """Return the variance of a mean over periods that the mean over as many before leaves."""
    both = covariance(np.subtract.outer(np.arange(2 * length), np.arange(2 * length)))
    before, across, now = both[:length, :length].mean(), both[:length, length:].mean(), both[length:, length:].mean()
    return float(now - across**2 / before) if before > 0 else 0.0


def _deviations(past: Past) -> Floats:
    """Return by how much each row is above or below its job in its period, by its weight in the metric; (N,)."""
    table = past.table
    present = table["present_s"].to_numpy(dtype=np.float64) if "present_s" in table else np.ones(len(table))
    row = table.assign(there=present / present.max(), part=present / present.max() * table["value"])
    of = row.groupby(["job", "period"], observed=True)
    presence = of["there"].transform("sum").to_numpy()
    if past.jobs is None:
        quota = row.groupby("job", observed=True)["weight"].transform("sum").to_numpy()
    else:
        quota = row["job"].map(past.jobs.set_index("job")["quota"]).fillna(0.0).to_numpy(dtype=np.float64)
    off = row["part"].to_numpy() - row["there"].to_numpy() * of["part"].transform("sum").to_numpy() / presence
    return np.asarray(quota * off / presence, dtype=np.float64)
