"""Counters of a fleet added up in two ways: by stay, by machine and by epoch they are the same events."""

import numpy as np
import pandas as pd

from analysis.crosscheck.check import Check
from models.arrays import Floats

COUNTED = ("cycles", "instructions", "llc_misses", "cpu_s")
"""Counters that all of the tables have."""
ROUNDING = 1e-9
"""Relative difference of two sums of the same numbers in another order."""


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

    Examples
    --------
    >>> ratio("cycles", np.array([2.0, 0.0, 3.0]), np.array([2.0, 0.0, 4.0])).left
    0.75
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(left == right, 1.0, left / right)
    off = np.nan_to_num(np.abs(ratio - 1.0), nan=np.inf)
    return Check(check, float(ratio[off.argmax()]) if ratio.size else 1.0, 1.0, ROUNDING)
