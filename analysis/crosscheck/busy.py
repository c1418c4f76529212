"""How busy the servers of services were: what their requests say by the Occupancy Law, and what counters say."""

import numpy as np
import pandas as pd

from analysis.crosscheck.check import Check
from analysis.occupancy.curve import curve
from analysis.occupancy.law import intervals
from models.arrays import Floats
from models.errors import InputError

EXACT = 1e-9
"""Difference of two utilisations that rounding may make."""


def busy(requests: pd.DataFrame, epochs: pd.DataFrame, instances: pd.DataFrame, epoch_s: float) -> pd.DataFrame:
    """Return how busy the servers of each stay were in each epoch, by the Occupancy Law and by the counters.

    A stay has as many servers as its quota has hardware threads (Kelly et al. 2008, result 1: ∫ min(N, k) dt).

    Parameters
    ----------
    requests : residence, arrival_s, departure_s (NaN: not before the stay ended)
    epochs : residence, epoch, cpu_s, instructions; without gaps within a stay
    instances : residence, quota_vcpu
    epoch_s : length of an epoch

    Returns
    -------
    DataFrame
        residence, epoch, servers, law_s and counter_s (server-seconds; NaN where the stamps are impossible),
        instructions; by residence and epoch.

    Examples
    --------
    >>> one = pd.DataFrame({"residence": [4], "arrival_s": [10.0], "departure_s": [30.0]})
    >>> counted = pd.DataFrame({"residence": 4, "epoch": [0, 1], "cpu_s": [10.0, 10.0], "instructions": 1e9})
    >>> made = busy(one, counted, pd.DataFrame({"residence": [4], "quota_vcpu": [2.0]}), 20.0)
    >>> made[["law_s", "counter_s"]].values.tolist()
    [[10.0, 10.0], [10.0, 10.0]]
    """
    servers = instances.set_index("residence")["quota_vcpu"].round().astype(np.int64)
    stamps = dict(iter(requests.groupby("residence")[["arrival_s", "departure_s"]]))
    made = epochs[epochs["residence"].isin(list(stamps))].sort_values(["residence", "epoch"], ignore_index=True)
    made = made.assign(servers=made["residence"].map(servers)).rename(columns={"cpu_s": "counter_s"})
    law_s = [_law_s(stamps[residence], rows, epoch_s) for residence, rows in made.groupby("residence")]
    made["law_s"] = np.concatenate([*law_s, np.empty(0)])
    return made[["residence", "epoch", "servers", "law_s", "counter_s", "instructions"]]


def _law_s(stamps: pd.DataFrame, rows: pd.DataFrame, epoch_s: float) -> Floats:
    """Return (E,) server-seconds of each epoch of a stay."""
    first, last = int(rows["epoch"].iloc[0]), int(rows["epoch"].iloc[-1]) + 1
    arrival, departure = (stamps[name].to_numpy(np.float64) for name in ("arrival_s", "departure_s"))
    try:
        seen = curve(arrival, departure, first * epoch_s, last * epoch_s)
    except InputError:
        return np.full(len(rows), np.nan)
    found = intervals(seen, int(rows["servers"].iloc[0]), epoch_s)["service_time_s"].to_numpy(np.float64)
    return found if len(found) == len(rows) else np.full(len(rows), np.nan)


def by_stay(found: pd.DataFrame, counters: pd.DataFrame) -> Check:
    """Return whether each service's utilisation by the Occupancy Law is that of its cores' counters, over each stay.

    Parameters
    ----------
    found : as `busy` returns it
    counters : residence, cpu_s, wall_s; a row a stay and window

    Examples
    --------
    >>> made = pd.DataFrame({"residence": [4], "servers": [2], "law_s": [10.0]})
    >>> by_stay(made, pd.DataFrame({"residence": [4], "cpu_s": [10.0], "wall_s": [20.0]})).payload()["left"]
    0.25
    """
    law_s = found.groupby("residence")["law_s"].sum(min_count=1)
    servers = found.groupby("residence")["servers"].first()
    said = counters.groupby("residence")[["cpu_s", "wall_s"]].sum().reindex(law_s.index)
    room_s = (servers * said["wall_s"]).to_numpy(np.float64)
    return _farthest(
        "occupancy_stays", law_s.to_numpy(np.float64) / room_s, said["cpu_s"].to_numpy(np.float64) / room_s
    )


def by_epoch(found: pd.DataFrame, epoch_s: float) -> Check:
    """Return whether the Occupancy Law and the counters agree on every epoch, so that their clocks do.

    Parameters
    ----------
    found : as `busy` returns it
    epoch_s : length of an epoch

    Examples
    --------
    >>> made = pd.DataFrame({"servers": [2, 2], "law_s": [10.0, 4.0], "counter_s": [10.0, 6.0]})
    >>> by_epoch(made, 20.0)
    Check(check='occupancy_epochs', left=0.1, right=0.15, tolerance=1e-09, nothing=0.0)
    """
    room_s = found["servers"].to_numpy(np.float64) * epoch_s
    left, right = (found[name].to_numpy(np.float64) / room_s for name in ("law_s", "counter_s"))
    return _farthest("occupancy_epochs", left, right)


def _farthest(check: str, left: Floats, right: Floats) -> Check:
    """Return the check of the pair that is farthest apart."""
    off = np.nan_to_num(np.abs(left - right), nan=np.inf)
    at = int(off.argmax()) if off.size else -1
    return Check(check, *((float(left[at]), float(right[at])) if off.size else (0.0, 0.0)), EXACT)
