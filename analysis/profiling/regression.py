"""An alarm for functions that became dearer between two profiles, and the tag that is at fault."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from analysis.profiling.causes import Cause, Fits, candidates, drift_of, fit, rolled_out
from analysis.profiling.cells import TAGS, Cells, cells, comparable
from analysis.profiling.factors import factor_of, rows_of
from analysis.statistics import Bools, Floats, NotEnoughDataError

Adjustment = Literal["holm", "benjamini-hochberg", "benjamini-yekutieli"]
MIN_CLUSTERS = 2
"""Machines on each side from which there is anything to tell a change from."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """When a change is worth an alarm.

    Raises
    ------
    ValueError
        If a number is out of its range; the message lists every fault.
    """

    false_alarms: float = 0.01
    """Chance of any false alarm over all functions (Holm), or share of false ones among the alarms (the others)."""
    min_factor: float = 1.25
    """What the factor on the function's cost where the cause acts must significantly exceed; builds and kernels differ
    by some per cent in good health."""
    min_cost: float = 0.0001
    """Least cost as a share of all events of the later profile."""
    adjustment: Adjustment = "holm"
    """Holm (1979), Benjamini and Hochberg (1995), Benjamini and Yekutieli (2001)."""

    def __post_init__(self) -> None:
        faults = []
        if not 0 < self.false_alarms < 1:
            faults.append(f"false_alarms must be between 0 and 1, got {self.false_alarms:g}")
        if not self.min_factor >= 1:
            faults.append(f"min_factor must be at least 1, got {self.min_factor:g}")
        if not 0 <= self.min_cost <= 1:
            faults.append(f"min_cost must be a share, 0 to 1, got {self.min_cost:g}")
        if faults:
            raise ValueError("\n".join(faults))


def adjusted(p_values: Floats, adjustment: Adjustment = "holm") -> Floats:
    """Return p-values adjusted for their number.

    Parameters
    ----------
    p_values : (n,) 0..1
    adjustment : how

    Examples
    --------
    >>> adjusted(np.array([0.01, 0.04, 0.03])).round(3)
    array([0.03, 0.06, 0.06])
    """
    if adjustment != "holm":
        method: Literal["bh", "by"] = "bh" if adjustment == "benjamini-hochberg" else "by"
        return np.asarray(false_discovery_control(p_values, method=method), dtype=np.float64)
    order = np.argsort(p_values, kind="stable")
    steps = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    found = np.empty(len(p_values))
    found[order] = np.minimum(steps, 1.0)
    return found


def alarms(
    before: pd.DataFrame, after: pd.DataFrame, criteria: Criteria | None = None, *, cluster: str = "machine"
) -> pd.DataFrame:
    """Return the functions that became dearer, each with the tag that explains it best.

    Shares are compared within an application's cells (see `cells`), so a change of mix is no change. For each function
    every cause is fitted alone; the best explains most of the odds' change. Its p-value, of the hypothesis that the
    factor is at most `Criteria.min_factor`, is multiplied by the dimensions tried and the
    causes tried of the best one's (Bonferroni), then adjusted over functions that are large enough to matter.

    Parameters
    ----------
    before, after : columns function, application, the cluster, samples, value, and as many as there are of image,
        revision, compiler, kernel, platform, datacentre
    criteria : when a change is worth an alarm
    cluster : what was drawn

    Returns
    -------
    DataFrame
        function, dimension (revision, compiler, kernel, platform, datacentre, application or everywhere), value,
        application (of a revision), factor, low, high (95%), cost (share of all events after), p_value (adjusted),
        explained (share of the odds' change), statistic (χ² with one degree of freedom), rival (the next best cause),
        rival_statistic; the clearest first.

    Raises
    ------
    ValueError
        If a column is missing.
    NotEnoughDataError
        If a side has samples of fewer than two clusters: what they differ by in good health is then not known.

    Examples
    --------
    >>> rows = pd.DataFrame({"function": list("fghijk") * 30, "application": "a", "machine": np.repeat(range(30), 6)})
    >>> before = rows.assign(samples=100, value=[20, 200, 200, 200, 200, 200] * 30)
    >>> after = rows.assign(revision="new", samples=100, value=[80, 200, 200, 200, 200, 200] * 30)
    >>> found = alarms(before, after)
    >>> found[["function", "dimension", "value"]].values.tolist(), found["factor"].round(2).tolist()
    ([['f', 'revision', 'new']], [4.0])
    """
    wanted = criteria or Criteria()
    table, functions = _joined(before, after, cluster)
    _refuse_few({"before": before, "after": after}, cluster)
    rolled, all_cells = rolled_out(table), list(cells(table, cluster))
    drift = drift_of(all_cells)
    seen = _Seen(all_cells, rolled, drift, fit(all_cells, rolled, len(functions), drift))
    found = pd.DataFrame(_rows(seen, functions, float(after["value"].sum()), wanted), columns=[*_COLUMNS])
    if not len(found):
        return found
    # Functions too small to matter are no tests; those not looked at closely are, with the largest p-values.
    large = _large(table, len(functions), wanted.min_cost)
    found = found[large[functions.get_indexer(pd.Index(found["function"]))]].reset_index(drop=True)
    p_value = np.ones(max(int(large.sum()), len(found)))
    p_value[: len(found)] = found["p_value"]
    found = found.assign(p_value=adjusted(p_value, wanted.adjustment)[: len(found)])
    alarming = (found["p_value"] <= wanted.false_alarms) & (found["cost"] >= wanted.min_cost)
    return found[alarming].sort_values("statistic", ascending=False, kind="stable").reset_index(drop=True)


_COLUMNS = (
    "function",
    "dimension",
    "value",
    "application",
    "factor",
    "low",
    "high",
    "cost",
    "p_value",
    "explained",
    "statistic",
    "rival",
    "rival_statistic",
)
_CLOSER = 6.0
"""χ² from which a function is looked at closely: below it no hypothesis of many is rejected."""


def _joined(before: pd.DataFrame, after: pd.DataFrame, cluster: str) -> tuple[pd.DataFrame, pd.Index]:
    """Return both profiles in one table with `later`, tags as text, functions as places; and their names."""
    needed = ("function", "application", cluster, "samples", "value")
    sides = {"before": before, "after": after}
    missing = [f"{side}: {name}" for side, table in sides.items() for name in needed if name not in table.columns]
    if missing:
        raise ValueError(f"columns are missing: {', '.join(missing)}")
    table = pd.concat([before.assign(later=False), after.assign(later=True)], ignore_index=True)
    table = comparable(table) if "image" in table.columns else table
    tags = [name for name in TAGS if name in table.columns]
    table = table.assign(**{name: table[name].fillna("").astype(str) for name in ("application", *tags)})
    code, functions = pd.factorize(table["function"], sort=True)
    numbers = {name: table[name].astype(np.float64) for name in ("samples", "value")}
    return table.assign(function=code, **numbers), pd.Index(functions)


def _refuse_few(sides: Mapping[str, pd.DataFrame], cluster: str) -> None:
    for side, table in sides.items():
        found = table.loc[table["value"].to_numpy(np.float64) > 0, cluster].nunique()
        if found < MIN_CLUSTERS:
            raise NotEnoughDataError(MIN_CLUSTERS, found, f"{cluster}s with samples {side}")


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """The cells of both profiles and every cause fitted to them."""

    cells: list[Cells]
    rolled: pd.DataFrame
    drift: float
    fits: Fits


def _rows(seen: _Seen, functions: pd.Index, total: float, criteria: Criteria) -> Iterator[tuple[object, ...]]:
    """Yield one row in the order of `_COLUMNS` for each function that seems dearer."""
    fits = seen.fits
    if not fits.causes:
        return
    statistic = fits.statistic
    designs = [dict(candidates(found, seen.rolled)) for found in seen.cells]
    for function in np.flatnonzero(statistic.max(axis=0) >= _CLOSER).tolist():
        at, other = _first_two(fits, statistic[:, function])
        cause, here = fits.causes[at], [i for i, one in enumerate(seen.cells) if function in one.functions]
        acts = [designs[i].get(cause, np.zeros(len(seen.cells[i].tags)))[seen.cells[i].cell] for i in here]
        factor = factor_of(rows_of([seen.cells[i] for i in here], function), np.concatenate(acts), seen.drift)
        rival = fits.causes[other] if other >= 0 else None
        yield (
            functions[function],
            cause.dimension,
            cause.value,
            cause.application,
            float(np.exp(factor.log)),
            *factor.interval(),
            float(fits.exposure[at, function] * -np.expm1(-factor.log) / total),
            min(factor.exceeds(criteria.min_factor) * _tried(fits, function, cause.dimension), 1.0),
            float(statistic[at, function] / max(fits.change[function], statistic[at, function])),
            float(statistic[at, function]),
            "" if rival is None else f"{rival.dimension} {rival.value}".strip(),
            float(statistic[other, function]) if rival is not None else 0.0,
        )


def _tried(fits: Fits, function: int, dimension: str) -> int:
    """Return by what a p-value is multiplied: the error is shared evenly by dimensions, and within them by causes.

    A weighted Bonferroni correction (Holm 1979, section 4): many revisions do not take from a compiler.
    """
    kinds = [fits.causes[place].dimension for place in np.flatnonzero(fits.eligible[:, function])]
    return len(set(kinds)) * kinds.count(dimension)


def _large(table: pd.DataFrame, functions: int, share: float) -> Bools:
    """Return which functions have so large a share of the events of both periods, whether they changed or not."""
    function, later = table["function"].to_numpy(np.int64), table["later"].to_numpy(np.bool_)
    sides = []
    for side in (later, ~later):
        value = np.bincount(function[side], table["value"].to_numpy(np.float64)[side], functions)
        sides.append(value / max(float(value.sum()), 1.0))
    return np.asarray((sides[0] + sides[1]) / 2.0 >= share, dtype=np.bool_)


def _first_two(fits: Fits, statistic: Floats) -> tuple[int, int]:
    """Return the best cause of a function, and the best of those of another name, −1 if there is none."""
    order = np.argsort(-(statistic - fits.rank * (statistic > 0)), kind="stable").tolist()
    first = _named(fits.causes[order[0]])
    others = (place for place in order[1:] if statistic[place] > 0 and _named(fits.causes[place]) != first)
    return order[0], next(others, -1)


def _named(cause: Cause) -> tuple[str, str, str]:
    return cause.dimension, cause.value, cause.application
