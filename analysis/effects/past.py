"""A fleet's past without a feature, in periods of equal length, and what longer studies would gain beyond it."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.effects.estimand import Target
from models.arrays import Floats


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
    of what is compared: the shards' (or, without shards, the instances') deviations from their job, by their weight in
    the metric. Beyond the past's reach the autocovariance is taken to stay as it is at its end.

    Parameters
    ----------
    past : at least two periods
    wanted, length : periods
    """
    covariance = _autocovariance(past)
    reach = len(covariance)
    tail = float(covariance[1 + (reach - 1) // 2 :].mean()) if reach > 2 else float(covariance[-1])
    whole = np.full(max(2 * wanted, reach), tail)
    whole[:reach] = covariance
    left = [_left(whole, size) for size in (wanted, length)]
    return math.sqrt(left[0] / left[1]) if min(left) > 0 else 1.0


def _left(covariance: Floats, length: int) -> float:
    """Return the variance of a mean over periods that the mean over as many before leaves."""
    lag = np.abs(np.subtract.outer(np.arange(2 * length), np.arange(2 * length)))
    both = covariance[lag]
    before, across, now = both[:length, :length].mean(), both[:length, length:].mean(), both[length:, length:].mean()
    return float(now - across**2 / before) if before > 0 else 0.0


def _autocovariance(past: Past) -> Floats:
    """Return the covariance of deviations by the periods between them; (P,)."""
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
    keys = ["job", "shard"] if "shard" in row else [key for key in ("job", "machine", "instance") if key in row]
    unit = row.groupby(keys, observed=True, sort=False).ngroup().to_numpy()
    period = np.searchsorted(past.periods, row["period"].to_numpy(dtype=np.float64))
    size = len(past.periods)
    deviation = np.bincount(unit * size + period, quota * off / presence, (int(unit.max()) + 1) * size).reshape(
        -1, size
    )
    return np.array([(deviation[:, : size - k] * deviation[:, k:]).sum() / (size - k) for k in range(size)])
