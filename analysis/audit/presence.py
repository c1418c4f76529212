"""The guard about churn: arms whose instances came, left or stayed differently."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import t

from analysis.audit.case import Case
from analysis.audit.findings import ALPHA, Finding
from analysis.audit.table import Table
from models.arrays import Bools, Floats

_ALIKE, _OVER_TIME = 0.05, ("rows", "stayed")
"""How far apart the arms' windows may be where what adds up over periods is compared."""
_LEAST = 0.02
"""Difference of shares, or relative difference of rows, from which churn is told."""


def churn(case: Case) -> list[Finding] | None:
    """Find that instances of one arm arrived, left or were there for less of the time more often than the other's.

    Compared are, for each machine, the share of its rows in the study whose instance it did not hold before, the share
    of its instances before that it still holds, its rows relative to before, and the mean time present (`present_s`);
    Welch's tests over machines, which together alarm at a chance of `ALPHA`, from differences of 2%.
    Arrivals are less their period's mean; where the arms were observed at different times, what adds up over periods
    is not compared.

    Examples
    --------
    >>> rows = {"period": 1, "job": "a", "machine": range(4), "weight": 1.0, "treated": [0, 0, 1, 1]}
    >>> churn(Case.of(pd.DataFrame(rows | {"value": [1.0, 3.0, 2.0, 3.0]}))) is None
    True
    """
    table = case.table
    if table.crossover:
        return None
    tests = dict(_compared(table))
    if table.windows_apart() > _ALIKE:
        tests = {name: test for name, test in tests.items() if name not in _OVER_TIME}
    if not tests:
        return None
    level = ALPHA / len(tests)
    far = {name: test for name, test in tests.items() if test[1] <= level and abs(test[0]) > _LEAST}
    if not far:
        return []
    name = min(far, key=lambda each: far[each][1])
    apart, chance = far[name]
    evidence = {f"{each}_difference": test[0] for each, test in tests.items()} | {"chance": chance * len(tests)}
    what = f"the arms' instances {_WHAT[name]} differently: {apart:+.1%} with the feature"
    remedy = "compare instances as they were before the feature, wherever they went, or redraw what is restarted"
    return [Finding("churn", "error", what, evidence, remedy)]


_WHAT = {"arrived": "arrived", "stayed": "stayed", "rows": "are counted", "present": "were present"}


def _compared(table: Table) -> Iterator[tuple[str, tuple[float, float]]]:
    """Yield by what arms are compared: difference (with less without the feature) and its chance."""
    both = np.bincount(table.machine, table.study, len(table.machines)) > 0
    before = ~table.study
    if before.any():
        both &= np.bincount(table.machine, before, len(table.machines)) > 0
    for name, value in _shares(table):
        known = both & np.isfinite(value)
        arms = value[known & table.ever], value[known & ~table.ever]
        if min(map(len, arms)) >= 3:
            yield name, _welch(*arms)


def _shares(table: Table) -> Iterator[tuple[str, Floats]]:
    """Yield (M,) what churn makes of each machine, NaN where it is not known."""
    machines, before = len(table.machines), ~table.study
    held = np.bincount(table.machine[before], minlength=machines).astype(np.float64)
    has = np.bincount(table.machine[table.study], minlength=machines).astype(np.float64)
    if before.any():
        spans = len(np.unique(table.period[table.study])) / len(np.unique(table.period[before]))
        yield "rows", has / np.where(held > 0, held, np.nan) / spans
    if before.any() and "instance" in table.rows:
        instance = pd.factorize(table.rows["instance"])[0]
        key = table.machine * (int(instance.max()) + 1) + instance
        old, new = np.unique(key[before]), np.unique(key[table.study])
        known = np.isin(key[table.study], old)
        rows, period = table.study, table.period[table.study]
        usual = np.bincount(period, ~known) / np.maximum(np.bincount(period), 1)
        arrived = np.bincount(table.machine[rows], ~known - usual[period], machines)
        yield "arrived", arrived / np.where(has > 0, has, np.nan)
        owner = old // (int(instance.max()) + 1)
        kept = np.bincount(owner, np.isin(old, new), machines)
        yield (
            "stayed",
            kept / np.where(np.bincount(owner, minlength=machines) > 0, np.bincount(owner, minlength=machines), np.nan),
        )
    if "present_s" in table.rows:
        present = table.rows["present_s"].to_numpy(dtype=np.float64)
        yield "present", _mean(table, table.study, present / present.max())


def _mean(table: Table, rows: Bools, value: Floats) -> Floats:
    count = np.bincount(table.machine[rows], minlength=len(table.machines))
    return np.asarray(
        np.bincount(table.machine[rows], value[rows], len(table.machines)) / np.where(count > 0, count, np.nan)
    )


def _welch(one: Floats, other: Floats) -> tuple[float, float]:
    """Return the difference of two means and its two-sided chance (Welch 1947)."""
    parts = [float(each.var(ddof=1)) / len(each) for each in (one, other)]
    apart, variance = float(one.mean() - other.mean()), sum(parts)
    if not variance > 0:
        return apart, 0.0 if apart else 1.0
    freedom = variance**2 / sum(part**2 / (len(each) - 1) for part, each in zip(parts, (one, other), strict=True))
    return apart, float(2 * t.sf(abs(apart) / np.sqrt(variance), freedom))
