"""Requests of served stays beside counters: were servers as busy, and requests as slow, as they should be?"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.crosscheck.check import FALSE_ALARM, Check
from analysis.occupancy.curve import curve
from analysis.occupancy.law import intervals
from analysis.statistics import student_quantile
from models.arrays import HOUR_S, Floats
from models.errors import InputError

EXACT = 1e-9
"""Difference of two utilisations that rounding may make."""
LEAST = 100
"""Requests that an hour of a stay must have finished."""
_LEAST_HOURS, _LEAST_STAYS = 12, 3


def busy(
    requests: pd.DataFrame, epochs: pd.DataFrame, instances: pd.DataFrame, epoch_s: float, *, until_end: bool = False
) -> pd.DataFrame:
    """Return how busy the servers of each stay were in each epoch, by the Occupancy Law and by the counters.

    A stay has as many servers as its quota has hardware threads (Kelly et al. 2008, result 1: ∫ min(N, k) dt).

    Parameters
    ----------
    requests : residence, arrival_s, departure_s (NaN: not before the stay ended)
    epochs : residence, epoch, cpu_s, instructions; without gaps within a stay
    instances : residence, quota_vcpu; with `until_end` also end_s
    epoch_s : length of an epoch
    until_end : whether what has not departed is served until the stay ends; else until its last epoch does

    Returns
    -------
    DataFrame
        residence, epoch, servers, law_s and counter_s (server-seconds; NaN where the stamps are impossible),
        instructions; by residence and epoch.

    Examples
    --------
    >>> request = pd.DataFrame({"residence": [4], "arrival_s": [10.0], "departure_s": [30.0]})
    >>> counted = pd.DataFrame({"residence": 4, "epoch": [0, 1], "cpu_s": [10.0, 10.0], "instructions": 1e9})
    >>> cores = busy(request, counted, pd.DataFrame({"residence": [4], "quota_vcpu": [2.0]}), 20.0)
    >>> cores[["law_s", "counter_s"]].values.tolist()
    [[10.0, 10.0], [10.0, 10.0]]
    """
    servers = instances.set_index("residence")["quota_vcpu"].round().astype(np.int64)
    if until_end:
        end_s = requests["residence"].map(instances.set_index("residence")["end_s"])
        requests = requests.assign(departure_s=requests["departure_s"].fillna(end_s))
    stamps = dict(iter(requests.groupby("residence")[["arrival_s", "departure_s"]]))
    spent = epochs[epochs["residence"].isin(list(stamps))].sort_values(["residence", "epoch"], ignore_index=True)
    spent = spent.assign(servers=spent["residence"].map(servers)).rename(columns={"cpu_s": "counter_s"})
    law_s = [_law_s(stamps[residence], rows, epoch_s) for residence, rows in spent.groupby("residence")]
    spent["law_s"] = np.concatenate([*law_s, np.empty(0)])
    return spent[["residence", "epoch", "servers", "law_s", "counter_s", "instructions"]]


def _law_s(stamps: pd.DataFrame, rows: pd.DataFrame, epoch_s: float) -> Floats:
    """Return (E,) server-seconds of each epoch of a stay."""
    first, last = int(rows["epoch"].iloc[0]), int(rows["epoch"].iloc[-1]) + 1
    arrival, departure = (stamps[name].to_numpy(np.float64) for name in ("arrival_s", "departure_s"))
    try:
        occupancy = curve(arrival, departure, first * epoch_s, last * epoch_s)
    except InputError:
        return np.full(len(rows), np.nan)
    service_s = intervals(occupancy, int(rows["servers"].iloc[0]), epoch_s)["service_time_s"].to_numpy(np.float64)
    return service_s if len(service_s) == len(rows) else np.full(len(rows), np.nan)


def by_stay(spent: pd.DataFrame, counters: pd.DataFrame) -> Check:
    """Return whether each service's utilisation by the Occupancy Law is that of its cores' counters, over each stay.

    Parameters
    ----------
    spent : as `busy` returns it
    counters : residence, cpu_s, wall_s; a row a stay and window

    Examples
    --------
    >>> cores = pd.DataFrame({"residence": [4], "servers": [2], "law_s": [10.0]})
    >>> by_stay(cores, pd.DataFrame({"residence": [4], "cpu_s": [10.0], "wall_s": [20.0]})).payload()["left"]
    0.25
    """
    law_s = spent.groupby("residence")["law_s"].sum(min_count=1)
    servers = spent.groupby("residence")["servers"].first()
    counted = counters.groupby("residence")[["cpu_s", "wall_s"]].sum().reindex(law_s.index)
    room_s = (servers * counted["wall_s"]).to_numpy(np.float64)
    return _farthest(
        "occupancy_stays", law_s.to_numpy(np.float64) / room_s, counted["cpu_s"].to_numpy(np.float64) / room_s
    )


def by_epoch(spent: pd.DataFrame, epoch_s: float) -> Check:
    """Return whether the Occupancy Law and the counters agree on every epoch, so that their clocks do.

    Parameters
    ----------
    spent : as `busy` returns it
    epoch_s : length of an epoch

    Examples
    --------
    >>> cores = pd.DataFrame({"servers": [2, 2], "law_s": [10.0, 4.0], "counter_s": [10.0, 6.0]})
    >>> by_epoch(cores, 20.0)
    Check(check='occupancy_epochs', left=0.1, right=0.15, tolerance=1e-09, nothing=0.0)
    """
    room_s = spent["servers"].to_numpy(np.float64) * epoch_s
    left, right = (spent[name].to_numpy(np.float64) / room_s for name in ("law_s", "counter_s"))
    return _farthest("occupancy_epochs", left, right)


def _farthest(check: str, left: Floats, right: Floats) -> Check:
    """Return the check of the pair that is farthest apart."""
    off = np.nan_to_num(np.abs(left - right), nan=np.inf)
    at = int(off.argmax()) if off.size else -1
    return Check(check, *((float(left[at]), float(right[at])) if off.size else (0.0, 0.0)), EXACT)


def follows(requests: pd.DataFrame, spent: pd.DataFrame, instances: pd.DataFrame, epoch_s: float) -> Iterator[Check]:
    """Yield for each job whether its requests' service times follow what its machines do to it, hour by hour.

    The mean service time of a stay's hour, by the Occupancy Law, is put in relation to the instructions that its mix of
    requests has in the mean (least squares over all hours); the slope of its logarithm over that of the seconds that
    an instruction took by the counters, within stays, is 1 if one follows the other. Large requests make an hour's
    service long and change what an instruction takes, too, where requests push back; so the slope comes from what is
    known of an hour by the hours beside it (an instrumental variable, Wright 1928). Errors are those between stays.

    Parameters
    ----------
    requests : residence, type, departure_s
    spent : as `busy` returns it
    instances : residence, job, and name of the job
    epoch_s : length of an epoch

    Examples
    --------
    >>> spent = pd.DataFrame({"residence": 4, "epoch": [0, 1], "servers": 2, "law_s": 9.0, "counter_s": 9.0})
    >>> request = pd.DataFrame({"residence": [4], "type": "page", "departure_s": [30.0]})
    >>> where = pd.DataFrame({"residence": [4], "job": [0], "name": ["shop"]})
    >>> list(follows(request, spent.assign(instructions=1e9), where, 20.0))
    []
    """
    finished = requests[requests["departure_s"].notna()]
    hour = (finished["departure_s"] // HOUR_S).astype(np.int64).rename("hour")
    counts = pd.crosstab([finished["residence"], hour], finished["type"].astype(str))
    hours = spent.assign(hour=(spent["epoch"] * epoch_s // HOUR_S).astype(np.int64))
    sums = hours.groupby(["residence", "hour"])[["law_s", "counter_s", "instructions"]].sum()
    both = sums.join(counts, how="inner").reset_index().merge(instances[["residence", "job", "name"]], on="residence")
    for _, rows in both.groupby("job", sort=True):
        check = _slope(rows, [kind for kind in counts.columns if rows[kind].any()])
        if check is not None:
            yield check


def _slope(rows: pd.DataFrame, kinds: list[str]) -> Check | None:
    """Return the check of one job; None if too few hours are there."""
    counts = rows[kinds].to_numpy(np.float64)
    per_request = np.linalg.lstsq(counts, rows["instructions"].to_numpy(np.float64), rcond=None)[0]
    expected = counts @ per_request
    enough = (counts.sum(axis=1) >= LEAST) & (expected > 0) & (rows["law_s"] > 0).to_numpy()
    hours = rows[enough]
    above: Floats = np.log(hours["law_s"].to_numpy(np.float64) / expected[enough])
    below: Floats = np.log((hours["counter_s"] / hours["instructions"]).to_numpy(np.float64))
    beside = _beside(below, hours)
    known = ~np.isnan(beside)
    stay = hours.loc[known, "residence"]
    if known.sum() < _LEAST_HOURS or stay.nunique() < _LEAST_STAYS:
        return None
    y, x, z = _within(above[known], stay), _within(below[known], stay), _within(beside[known], stay)
    slope = float(z @ y / (z @ x))
    stays = pd.Series(z * (y - slope * x)).groupby(stay.to_numpy()).sum()
    error = float(np.sqrt((stays**2).sum() * len(stays) / (len(stays) - 1)) / abs(z @ x))
    half = float(-student_quantile(FALSE_ALARM / 2, len(stays) - 1)) * error
    return Check(f"service_times:{hours['name'].iloc[0]}", slope, 1.0, half)


def _beside(value: Floats, hours: pd.DataFrame) -> Floats:
    """Return the mean of a value in the hours before and after, of the same stay; NaN where neither is there."""
    by_hour = pd.Series(value, index=pd.MultiIndex.from_frame(hours[["residence", "hour"]]))
    shifted = [
        by_hour.reindex(pd.MultiIndex.from_arrays([hours["residence"], hours["hour"] + by])).to_numpy()
        for by in (-1, 1)
    ]
    return pd.DataFrame(shifted).mean().to_numpy(np.float64)


def _within(value: Floats, group: "pd.Series[int]") -> Floats:
    column = pd.Series(value, index=group.index)
    return np.asarray(column - column.groupby(group).transform("mean"), np.float64)
