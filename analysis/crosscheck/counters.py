"""Counters of a fleet added up in two ways: by stay, by machine and by epoch, clock and presence they say the same."""

import numpy as np
import pandas as pd

from analysis.crosscheck.check import Check
from models.arrays import Floats

COUNTED = ("cycles", "instructions", "llc_misses", "cpu_s")
"""Counters that all of the tables have."""
ROUNDING = 1e-9
"""Relative difference of two sums of the same numbers in another order."""
_CELL = ["residence", "window"]


def by_epoch(counters: pd.DataFrame, epochs: pd.DataFrame) -> Check:
    """Return whether stays and epochs have the same events, as the ratio of the sums that is farthest from 1.

    Parameters
    ----------
    counters : those of `COUNTED`, a row a stay and window; windows cover the horizon
    epochs : the same, a row an epoch

    Examples
    --------
    >>> stays = pd.DataFrame({name: [1.0, 2.0] for name in COUNTED})
    >>> by_epoch(stays, stays[::-1]).holds, by_epoch(stays, stays.assign(cycles=2.0)).left
    (True, 0.75)
    """
    left = counters[list(COUNTED)].sum().to_numpy(np.float64)
    return ratio("counters_epochs", left, epochs[list(COUNTED)].sum().to_numpy(np.float64))


def by_machine(counters: pd.DataFrame, instances: pd.DataFrame, windows: pd.DataFrame) -> Check:
    """Return whether stays and machines have the same events, as the ratio of two sums that is farthest from 1.

    Parameters
    ----------
    counters : residence and those of `COUNTED`
    instances : residence, machine
    windows : machine and those of `COUNTED`, the table `machine_windows`; a machine that either side lacks has none

    Examples
    --------
    >>> stays = pd.DataFrame({"residence": [0, 1], **{name: [1.0, 2.0] for name in COUNTED}})
    >>> where = pd.DataFrame({"residence": [0, 1], "machine": [5, 5]})
    >>> by_machine(stays, where, pd.DataFrame({"machine": [5], **{name: [3.0] for name in COUNTED}})).holds
    True
    """
    machine = instances.set_index("residence")["machine"]
    left = counters[list(COUNTED)].groupby(counters["residence"].map(machine)).sum()
    right = windows.groupby("machine")[list(COUNTED)].sum()
    every = left.index.union(right.index)
    both = (side.reindex(every, fill_value=0.0).to_numpy(np.float64).ravel() for side in (left, right))
    return ratio("counters_machines", *both)


def energy(windows: pd.DataFrame, epochs: pd.DataFrame) -> Check:
    """Return whether machines and epochs have the same energy, as the ratio of the sums.

    Parameters
    ----------
    windows : energy_j, the table `machine_windows`; windows cover the horizon
    epochs : energy_j, a row an epoch

    Examples
    --------
    >>> machines = pd.DataFrame({"energy_j": [1.0, 2.0]})
    >>> energy(machines, machines[::-1]).holds, energy(machines * 2.0, machines).left
    (True, 2.0)
    """
    left, right = (np.array([table["energy_j"].sum()], np.float64) for table in (windows, epochs))
    return ratio("energy_machines", left, right)


def ratio(check: str, left: Floats, right: Floats) -> Check:
    """Return the check of the ratio that is farthest from 1; a pair of zeros agrees.

    Parameters
    ----------
    check : its name
    left, right : (n,) values that should be equal but for rounding
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(left == right, 1.0, left / right)
    off = np.nan_to_num(np.abs(ratio - 1.0), nan=np.inf)
    return Check(check, float(ratio[off.argmax()]) if ratio.size else 1.0, 1.0, ROUNDING)


def presence(
    counters: pd.DataFrame, instances: pd.DataFrame, windows: pd.DataFrame, epoch_s: float | None = None
) -> Check:
    """Return whether each stay's time in a window is what its start and end say.

    A row that is missing has no time, and one that should not be there has too much.

    Parameters
    ----------
    counters : residence, window, wall_s
    instances : residence, start_s, end_s
    windows : window, start_s, end_s
    epoch_s : length of the epochs that count for a stay if they begin during it, windows being multiples of it; None:
        stays count from their start to their end

    Returns
    -------
    Check
        ``counters_presence``: the ratio that is farthest from 1.

    Examples
    --------
    >>> stays = pd.DataFrame({"residence": [4], "start_s": [10.0], "end_s": [130.0]})
    >>> whole = pd.DataFrame({"window": ["all"], "start_s": [0.0], "end_s": [120.0]})
    >>> counted = pd.DataFrame({"residence": [4], "window": ["all"], "wall_s": [100.0]})
    >>> presence(counted, stays, whole, 20.0).holds, presence(counted.assign(wall_s=120.0), stays, whole, 20.0).left
    (True, 1.2)
    >>> presence(counted.assign(wall_s=110.0), stays, whole).holds
    True
    """
    start_s, end_s = (instances[name].to_numpy(np.float64) for name in ("start_s", "end_s"))
    if epoch_s is not None:
        epochs = int(np.ceil(windows["end_s"].max() / epoch_s))
        begin_s = np.append(np.arange(epochs + 1) * epoch_s, np.inf)
        start_s, end_s = (begin_s[np.searchsorted(begin_s, at_s)] for at_s in (start_s, end_s))
    parts = [
        pd.DataFrame({"residence": instances["residence"].to_numpy(), "window": name, "expected_s": here_s})[here_s > 0]
        for name, opens_s, closes_s in windows[["window", "start_s", "end_s"]].itertuples(index=False)
        for here_s in [np.minimum(end_s, closes_s) - np.maximum(start_s, opens_s)]
    ]
    return ratio("counters_presence", *_both(counters, "wall_s", pd.concat(parts), "expected_s"))


def clock(counters: pd.DataFrame) -> Check | None:
    """Return whether each stay's mean frequency is its cycles over its CPU time; None if no stay computed.

    Parameters
    ----------
    counters : cycles, cpu_s, mean_frequency_hz

    Returns
    -------
    Check
        ``counters_frequency``: the ratio that is farthest from 1.

    Examples
    --------
    >>> counted = pd.DataFrame({"cycles": [4e9, 6e9], "cpu_s": [2.0, 2.0], "mean_frequency_hz": [2e9, 3e9]})
    >>> clock(counted).holds, clock(counted.assign(mean_frequency_hz=[2e9, 6e9])).left
    (True, 2.0)
    """
    busy = counters[(counters["cpu_s"] != 0) | (counters["cycles"] != 0)]
    if busy.empty:
        return None
    counted = (busy["mean_frequency_hz"] * busy["cpu_s"]).to_numpy(np.float64)
    return ratio("counters_frequency", counted, busy["cycles"].to_numpy(np.float64))


def traced(counters: pd.DataFrame, traces: pd.DataFrame) -> Check | None:
    """Return whether stays that were counted epoch by epoch have the same events altogether; None without such stays.

    Parameters
    ----------
    counters : residence and those of `COUNTED`, a row a stay and window; windows cover the horizon
    traces : residence and those of `COUNTED`, the table `instance_epochs`

    Returns
    -------
    Check
        ``counters_traces``: the ratio that is farthest from 1.

    Examples
    --------
    >>> stays = pd.DataFrame({"residence": [0, 1], **{name: [3.0, 2.0] for name in COUNTED}})
    >>> some = pd.DataFrame({"residence": [0, 0], **{name: [1.0, 2.0] for name in COUNTED}})
    >>> traced(stays, some).holds, traced(stays, some.assign(cycles=3.0)).left
    (True, 0.5)
    """
    right = traces.groupby("residence")[list(COUNTED)].sum()
    if right.empty:
        return None
    left = counters.groupby("residence")[list(COUNTED)].sum().reindex(right.index).fillna(0.0)
    return ratio("counters_traces", *(side.to_numpy(np.float64).ravel() for side in (left, right)))


def completed(
    counters: pd.DataFrame, requests: pd.DataFrame, instances: pd.DataFrame, windows: pd.DataFrame
) -> Check | None:
    """Return whether stays of served jobs counted as many requests in each window as departed; None without any.

    Parameters
    ----------
    counters : residence, window, requests
    requests : residence, departure_s (NaN: not before the stay ended)
    instances : residence, job; every stay of a job of which one has requests should have counted its own
    windows : window, start_s, end_s; a departure at its very end is the next one's

    Returns
    -------
    Check
        ``requests_counted``: the ratio that is farthest from 1.

    Examples
    --------
    >>> left = pd.DataFrame({"residence": 4, "departure_s": [10.0, 30.0, float("nan")]})
    >>> whole = pd.DataFrame({"window": ["all"], "start_s": [0.0], "end_s": [120.0]})
    >>> counted = pd.DataFrame({"residence": [4], "window": ["all"], "requests": [2.0]})
    >>> who = pd.DataFrame({"residence": [4], "job": [0]})
    >>> completed(counted, left, who, whole).holds, completed(counted.assign(requests=3.0), left, who, whole).left
    (True, 1.5)
    """
    jobs = instances.loc[instances["residence"].isin(requests["residence"]), "job"]
    served = instances.loc[instances["job"].isin(jobs), "residence"]
    parts = [
        pd.DataFrame({"residence": requests.loc[inside, "residence"], "window": name, "departed": 1.0})
        for name, start_s, end_s in windows[["window", "start_s", "end_s"]].itertuples(index=False)
        for inside in [(requests["departure_s"] >= start_s) & (requests["departure_s"] < end_s)]
    ]
    counted = counters[counters["residence"].isin(served)]
    if counted.empty and not any(len(part) for part in parts):
        return None
    departed = pd.concat(parts).groupby(_CELL)["departed"].sum().reset_index()
    return ratio("requests_counted", *_both(counted, "requests", departed, "departed"))


def featured(instances: pd.DataFrame, machines: pd.DataFrame) -> Check:
    """Return whether stays have the feature just where their machine has it, and had it before they ended.

    Parameters
    ----------
    instances : machine, end_s, feature; of a roll-out by machine, rack or power domain
    machines : machine, feature, feature_from_s (NaN: never)

    Returns
    -------
    Check
        ``feature_stays``: stays for which that is so, and all.

    Examples
    --------
    >>> stays = pd.DataFrame({"machine": [5, 5, 6], "end_s": [50.0, 150.0, 150.0], "feature": [False, True, False]})
    >>> where = pd.DataFrame({"machine": [5, 6], "feature": [True, False], "feature_from_s": [100.0, float("nan")]})
    >>> featured(stays, where).holds, featured(stays, where.assign(feature=[False, True])).left
    (True, 2.0)
    """
    hosted = instances.merge(machines[["machine", "feature", "feature_from_s"]], on="machine", suffixes=("", "_there"))
    expected = hosted["feature_there"] & (hosted["feature_from_s"] < hosted["end_s"])
    return Check("feature_stays", float((expected == hosted["feature"]).sum()), float(len(instances)), 0.0)


def _both(counters: pd.DataFrame, counted: str, other: pd.DataFrame, expected: str) -> tuple[Floats, Floats]:
    """Return (n,) values of each stay and window as counted and as expected; 0 of a row that one of them lacks.

    A value that is counted but no number stays none, and so agrees with nothing.
    """
    left = counters[[*_CELL, counted]].astype({"window": str})
    joined = left.merge(other.astype({"window": str}), on=_CELL, how="outer", indicator="side")
    value = joined[counted].mask(joined["side"] == "right_only", 0.0)
    return value.to_numpy(np.float64), joined[expected].fillna(0.0).to_numpy(np.float64)
