"""Do the service times of requests follow what neighbours do to the machines that serve them?"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import t

from analysis.crosscheck.check import FALSE_ALARM, Check
from models.arrays import HOUR_S, Floats

LEAST = 100
"""Requests that an hour of a stay must have finished."""
_LEAST_HOURS, _LEAST_STAYS = 12, 3


def follows(requests: pd.DataFrame, found: pd.DataFrame, instances: pd.DataFrame, epoch_s: float) -> Iterator[Check]:
    """Yield for each job whether its requests' service times follow what its machines do to it, hour by hour.

    The mean service time of a stay's hour, by the Occupancy Law, is put in relation to the instructions that its mix of
    requests has in the mean (least squares over all hours); the slope of its logarithm over that of the seconds that
    an instruction took by the counters, within stays, is 1 if one follows the other. Errors are those between stays.

    Parameters
    ----------
    requests : residence, type, departure_s
    found : as `analysis.crosscheck.busy.busy` returns it
    instances : residence, job, and name of the job
    epoch_s : length of an epoch

    Examples
    --------
    >>> spent = pd.DataFrame({"residence": 4, "epoch": [0, 1], "servers": 2, "law_s": 9.0, "counter_s": 9.0})
    >>> one = pd.DataFrame({"residence": [4], "type": "page", "departure_s": [30.0]})
    >>> where = pd.DataFrame({"residence": [4], "job": [0], "name": ["shop"]})
    >>> list(follows(one, spent.assign(instructions=1e9), where, 20.0))
    []
    """
    finished = requests[requests["departure_s"].notna()]
    hour = (finished["departure_s"] // HOUR_S).astype(np.int64).rename("hour")
    counts = pd.crosstab([finished["residence"], hour], finished["type"].astype(str))
    hours = found.assign(hour=(found["epoch"] * epoch_s // HOUR_S).astype(np.int64))
    sums = hours.groupby(["residence", "hour"])[["law_s", "counter_s", "instructions"]].sum()
    both = sums.join(counts, how="inner").reset_index().merge(instances[["residence", "job", "name"]], on="residence")
    for _, rows in both.groupby("job", sort=True):
        made = _slope(rows, [kind for kind in counts.columns if rows[kind].any()])
        if made is not None:
            yield made


def _slope(rows: pd.DataFrame, kinds: list[str]) -> Check | None:
    """Return the check of one job; None if too few hours are there."""
    counts = rows[kinds].to_numpy(np.float64)
    each = np.linalg.lstsq(counts, rows["instructions"].to_numpy(np.float64), rcond=None)[0]
    asked = counts @ each
    enough = (counts.sum(axis=1) >= LEAST) & (asked > 0) & (rows["law_s"] > 0).to_numpy()
    if enough.sum() < _LEAST_HOURS or rows.loc[enough, "residence"].nunique() < _LEAST_STAYS:
        return None
    kept = rows[enough]
    above = np.log(kept["law_s"].to_numpy(np.float64) / asked[enough])
    below = np.log((kept["counter_s"] / kept["instructions"]).to_numpy(np.float64))
    y, x = (_within(value, kept["residence"]) for value in (above, below))
    slope = float(x @ y / (x @ x))
    stays = pd.Series(x * (y - slope * x)).groupby(kept["residence"].to_numpy()).sum()
    error = float(np.sqrt((stays**2).sum() * len(stays) / (len(stays) - 1)) / (x @ x))
    half = float(t.isf(FALSE_ALARM / 2, len(stays) - 1)) * error
    return Check(f"service_times:{kept['name'].iloc[0]}", slope, 1.0, half)


def _within(value: Floats, group: "pd.Series[int]") -> Floats:
    column = pd.Series(value, index=group.index)
    return np.asarray(column - column.groupby(group).transform("mean"), np.float64)
