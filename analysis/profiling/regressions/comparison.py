"""An alarm for functions that became more expensive between two profiles, and the tag that is at fault."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from analysis.profiling.regressions.causes import (
    ENOUGH,
    Cause,
    CauseSums,
    DriftBeside,
    Fits,
    common_changes,
    fitted,
    rolled_out,
    sums_of,
)
from analysis.profiling.regressions.cells import CostCells, cost_cells
from analysis.profiling.regressions.coded import TAGS, CodedTable, coded, comparable
from analysis.profiling.regressions.criteria import check_criteria
from analysis.profiling.regressions.detection import FACTORS, chances, least_factor
from analysis.profiling.regressions.factors import factor_of, rows_of
from analysis.statistics import NotEnoughDataError, adjusted_p_values
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

Adjustment = Literal["holm", "benjamini-hochberg", "benjamini-yekutieli"]
MIN_CLUSTERS = 2
"""Machines on each side from which there is anything to tell a change from."""
PROBABILITY = 0.8
"""With which growth by the factor that is called detectable is reported."""
_FACTOR_EXPONENT = 1.05
"""Power of the factor that is told: by the factor itself, growth was named in 76 ± 3% (`benchmarks/detectable.py`)."""
SIZES = (0.001, 0.01, 0.1)
"""Shares of all events of the functions of which it is said by how much they must grow to be reported."""
MOST_FUNCTIONS = 10
"""Functions of about a size by which that is judged."""


@dataclass(frozen=True, slots=True)
class AlarmCriteria:
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
        check_criteria(self.false_alarms, self.min_factor, self.min_cost)


def adjusted(p_values: Floats, adjustment: Adjustment = "holm") -> Floats:
    """Return p-values adjusted for their number.

    Parameters
    ----------
    p_values : (n,) 0..1
    adjustment : how
    """
    if adjustment != "holm":
        return adjusted_p_values(p_values, adjustment)
    order = np.argsort(p_values, kind="stable")
    steps = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    values = np.empty(len(p_values))
    values[order] = np.minimum(steps, 1.0)
    return values


def alarms(
    before: pd.DataFrame, after: pd.DataFrame, criteria: AlarmCriteria | None = None, *, cluster: str = "machine"
) -> pd.DataFrame:
    """Return the functions that became more expensive, each with the tag that explains it best.

    Shares are compared within an application's cells (see `cells`), so a change of mix is no change. For each function
    every cause is fitted alone; the best explains most of the odds' change. Its p-value, of the hypothesis that the
    factor is at most `AlarmCriteria.min_factor`, is multiplied by the dimensions tried and the
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
    >>> regressions = alarms(before, after)
    >>> regressions[["function", "dimension", "value"]].values.tolist(), regressions["factor"].round(2).tolist()
    ([['f', 'revision', 'new']], [4.0])
    """
    return CostComparison.of(before, after, cluster=cluster).alarms(criteria)


@dataclass(frozen=True, slots=True, eq=False)
class CostComparison:
    """Two profiles whose cells were compared: what became more expensive, and what could have been found."""

    functions: pd.Index
    """(F,) names."""
    value: Floats
    """(2, F) events of each before and after."""
    fitted: "_Fitted"

    @classmethod
    def of(cls, before: pd.DataFrame, after: pd.DataFrame, *, cluster: str = "machine") -> "CostComparison":
        """Compare two profiles; parameters and errors as of `alarms`.

        Examples
        --------
        >>> rows = {"function": list("fg") * 2, "application": "a", "machine": [0, 0, 1, 1], "samples": 50, "value": 9}
        >>> CostComparison.of(pd.DataFrame(rows), pd.DataFrame(rows)).functions.tolist()
        ['f', 'g']
        """
        table, functions = _joined(before, after, cluster)
        return cls.of_coded(coded(table, cluster), functions, cluster=cluster)

    @classmethod
    def of_coded(cls, table: CodedTable, functions: pd.Index, *, cluster: str = "machine") -> "CostComparison":
        """Compare two profiles in numbers.

        Parameters
        ----------
        table : both
        functions : (F,) their functions' names
        cluster : what was drawn
        """
        _refuse_few(table.keys, cluster)
        rolled, (all_cells, value) = rolled_out(table.keys), cost_cells(table, len(functions))
        all_sums = sums_of(all_cells, rolled)
        drifts = DriftBeside.of(all_cells, all_sums)
        fits = fitted(all_sums, len(functions), drifts.usual)
        return cls(functions, value, _Fitted(all_cells, all_sums, drifts, fits))

    def alarms(self, criteria: AlarmCriteria | None = None) -> pd.DataFrame:
        """Return the functions that became more expensive; parameter and columns as of `alarms`."""
        return self._beyond(criteria, cheaper=False)

    def improvements(self, criteria: AlarmCriteria | None = None) -> pd.DataFrame:
        """Return the functions that became cheaper, by the same criteria the other way round.

        A factor must significantly fall short of 1 / `min_factor`. The cost is negative: what is saved, as a share of
        all events after. The chance of any false one is that of the alarms once more.

        Parameters
        ----------
        criteria : when a change is told

        Returns
        -------
        DataFrame
            The columns of `alarms`.

        Examples
        --------
        >>> rows = pd.DataFrame({"function": list("fghijk") * 30, "application": "a"})
        >>> rows = rows.assign(machine=np.repeat(range(30), 6), samples=100)
        >>> before = rows.assign(value=[80, 200, 200, 200, 200, 200] * 30)
        >>> after = rows.assign(value=[20, 200, 200, 200, 200, 200] * 30)
        >>> CostComparison.of(before, after).improvements()[["function", "factor"]].round(2).values.tolist()
        [['f', 0.25]]
        """
        return self._beyond(criteria, cheaper=True)

    def _beyond(self, criteria: AlarmCriteria | None, *, cheaper: bool) -> pd.DataFrame:
        wanted = criteria or AlarmCriteria()
        # Functions too small to matter are no tests; those not looked at closely are, with the largest p-values.
        large = np.asarray(self.shares >= wanted.min_cost, dtype=np.bool_)
        total = float(self.value[1].sum())
        changed = _rows(self.fitted, self.functions, large, total, wanted, cheaper=cheaper)
        rows = pd.DataFrame(changed, columns=[*_COLUMNS])
        if not len(rows):
            return rows
        p_value = np.ones(max(int(large.sum()), len(rows)))
        p_value[: len(rows)] = rows["p_value"]
        rows = rows.assign(p_value=adjusted(p_value, wanted.adjustment)[: len(rows)])
        alarming = (rows["p_value"] <= wanted.false_alarms) & (rows["cost"].abs() >= wanted.min_cost)
        return rows[alarming].sort_values("statistic", ascending=False, kind="stable").reset_index(drop=True)

    def detectable(self, criteria: AlarmCriteria | None = None, shares: Sequence[float] = SIZES) -> pd.DataFrame:
        """Return by how much functions of some sizes must grow for the alarm to report them.

        Of each size those functions are taken whose share of all events, the mean of both profiles, is within a factor
        of two of it, or `MOST_FUNCTIONS` of these, evenly spread. If the odds of such a function's share are multiplied
        by a factor wherever it runs, from the later period on, it is reported with the probability of
        `detection.chances`, at a p-value of false_alarms / (functions tested × causes tried): as the only alarm, for
        Holm's correction and the others (for Benjamini and Yekutieli's, also divided by Σ 1/i). The factor is the least
        at which the mean probability over these functions is `PROBABILITY`, with a margin. Growth on some platforms or
        in some builds alone must be larger. `benchmarks/detectable.py` counts how often growth by the factor, and by
        half of it (1 + (factor − 1) / 2), is named.

        Parameters
        ----------
        criteria : when a change is worth an alarm
        shares : sizes of functions, as shares of all events; where no function has such a size there is no row, and
            where none has any of them, one of the size of the function nearest to 1%

        Returns
        -------
        DataFrame
            share, functions (that were taken), factor (infinite: no growth by less than 64 times would be reported).

        Examples
        --------
        >>> rows = pd.DataFrame({"function": list("fghijk") * 30, "application": "a"})
        >>> rows = rows.assign(machine=np.repeat(range(30), 6), samples=100, value=[20, 200, 200, 200, 200, 200] * 30)
        >>> factors = CostComparison.of(rows, rows).detectable(shares=(0.02, 0.9))
        >>> factors["share"].tolist(), factors["functions"].tolist(), bool(1.25 < factors["factor"][0] < 2.0)
        ([0.02], [1], True)
        """
        wanted = criteria or AlarmCriteria()
        size = self.shares
        tested = np.flatnonzero((size >= wanted.min_cost) & (size > 0))
        family = _alone(len(tested), wanted.adjustment)
        rows = []
        near_some = (((size[tested] >= share / 2.0) & (size[tested] <= share * 2.0)).any() for share in shares)
        if len(tested) and not any(near_some):
            closest: float = min(size[tested].tolist(), key=lambda known: abs(np.log(known / _USUAL_SIZE)))
            shares = [closest]
        for share in shares:
            near = tested[(size[tested] >= share / 2.0) & (size[tested] <= share * 2.0)]
            if len(near):
                near = near[np.argsort(size[near], kind="stable")]
                near = near[np.unique(np.linspace(0, len(near) - 1, MOST_FUNCTIONS).round().astype(np.int64))]
                chance = np.array([self._chances(int(place), wanted, family) for place in near])
                grown = size[near, None] * FACTORS / (1.0 - size[near, None] * (1.0 - FACTORS))
                chance[grown * (1.0 - 1.0 / FACTORS) < wanted.min_cost] = 0.0
                rows.append((float(share), len(near), _with_margin(least_factor(chance, PROBABILITY))))
        return pd.DataFrame(rows, columns=["share", "functions", "factor"])

    @property
    def few(self) -> bool:
        """Whether all applications have too few functions to tell growth of one from drift of all."""
        return all(len(cells.functions) < ENOUGH for cells in self.fitted.cells)

    @property
    def shares(self) -> Floats:
        """(F,) each function's share of the events, the mean of both periods."""
        earlier, later = self.value / np.maximum(self.value.sum(axis=1, keepdims=True), 1.0)
        return np.asarray((earlier + later) / 2.0, dtype=np.float64)

    def _chances(self, function: int, criteria: AlarmCriteria, family: float) -> Floats:
        """Return the probabilities that a function is reported when it grew by each of `FACTORS`."""
        known = self.fitted
        tried = max(_tried(known.fits.eligible(function), "everywhere"), 1)
        p_value = criteria.false_alarms / (family * tried)
        least = criteria.min_factor
        return chances(known.cells, known.drifts, function, p_value=p_value, least=least, evidence=_LEAST_CHI2)


def _with_margin(factor: float) -> float:
    """Return a factor with its margin; infinite beyond the largest that is tried."""
    wide = factor**_FACTOR_EXPONENT
    return wide if wide <= FACTORS[-1] else float("inf")


def _alone(tests: int, adjustment: Adjustment) -> float:
    """Return by what the p-value of a single alarm among so many tests is multiplied."""
    steps = float((1.0 / np.arange(1, tests + 1)).sum()) if adjustment == "benjamini-yekutieli" else 1.0
    return max(tests, 1) * max(steps, 1.0)


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
_USUAL_SIZE = 0.01
_LEAST_CHI2 = 6.0
"""χ² from which a function is looked at closely: below it no hypothesis of many is rejected."""


def _joined(before: pd.DataFrame, after: pd.DataFrame, cluster: str) -> tuple[pd.DataFrame, pd.Index]:
    """Return both profiles in one table with `later`, tags as text, functions as places; and their names."""
    needed = ("function", "application", cluster, "samples", "value")
    sides = {"before": before, "after": after}
    missing = [f"{side}: {name}" for side, table in sides.items() for name in needed if name not in table.columns]
    if missing:
        raise InputError(f"columns are missing: {', '.join(missing)}")
    table = pd.concat([before.assign(later=False), after.assign(later=True)], ignore_index=True)
    table = comparable(table) if "image" in table.columns else table
    tags = [name for name in TAGS if name in table.columns]
    table = table.assign(**{name: table[name].fillna("").astype(str) for name in ("application", *tags)})
    code, functions = pd.factorize(table["function"], sort=True)
    numbers = {name: table[name].astype(np.float64) for name in ("samples", "value")}
    return table.assign(function=code, **numbers), pd.Index(functions)


_IMPORT_TOGETHER = (
    "import the profiles of several machines together (wsc profile import FILE FILE… --out FOLDER), so that their "
    "differences are known; wsc profile diff compares without them"
)


def _refuse_few(keys: pd.DataFrame, cluster: str) -> None:
    for side, later in (("before", False), ("after", True)):
        clusters = int(keys.loc[keys["later"].to_numpy(np.bool_) == later, "group"].nunique())
        if clusters < MIN_CLUSTERS:
            raise NotEnoughDataError(MIN_CLUSTERS, clusters, f"{cluster}s with samples {side}", _IMPORT_TOGETHER)


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """The cells of both profiles and every cause fitted to them."""

    cells: list[CostCells]
    sums: list[CauseSums]
    drifts: DriftBeside
    fits: Fits


def _rows(
    known: _Fitted, functions: pd.Index, large: Bools, total: float, criteria: AlarmCriteria, *, cheaper: bool
) -> Iterator[tuple[object, ...]]:
    """Yield one row in the order of `_COLUMNS` for each large function that seems more expensive, or cheaper."""
    fits = known.fits
    statistic = fits.statistic(cheaper=cheaper)
    near = statistic.data >= _LEAST_CHI2
    close = np.unique(np.repeat(np.arange(len(functions)), np.diff(statistic.indptr))[near])
    common = common_changes(known.sums, len(functions))
    designs, names = dict[int, dict[Cause, Floats]](), functions.to_numpy(object)
    having = _having(known.cells, close[large[close]])
    rows, joined = None, list[int]()
    for function, here in having.items():
        column = slice(*statistic.indptr[function : function + 2])
        places, values, exposure = statistic.indices[column], statistic.data[column], fits.exposure.data[column]
        at, other = _first_two(fits, places.astype(np.int64), values)
        cause, first = fits.causes[places[at]], float(values[at])
        for i in here:
            if i not in designs:
                designs[i] = dict(zip(known.sums[i].causes, known.sums[i].design, strict=True))
        # Applications have levels of their own, so those where the cause does not act say nothing of it.
        acting = [i for i in here if cause in designs[i] and designs[i][cause].any()]
        parts = [known.cells[i] for i in acting]
        acts = np.concatenate([designs[i][cause][known.cells[i].cell] for i in acting])
        rows, joined = rows_of(parts, function, like=rows if acting == joined else None), acting
        factor = factor_of(rows, acts, known.drifts.usual)
        shift = min(common[function], 0.0) if cheaper else max(common[function], 0.0)
        factor = replace(factor, log=factor.log - float(shift))
        least = criteria.min_factor
        p_value = factor.falls_short(1.0 / least) if cheaper else factor.exceeds(least)
        rival = fits.causes[places[other]] if other >= 0 else None
        yield (
            names[function],
            cause.dimension,
            cause.value,
            cause.application,
            float(np.exp(factor.log)),
            *factor.interval(),
            _cost(float(exposure[at]), float(fits.earlier[function]), factor.log) / total,
            min(p_value * _tried(fits.eligible(function, cheaper=cheaper), cause.dimension), 1.0),
            first / max(float(fits.change[function]), first),
            first,
            "" if rival is None else f"{rival.dimension} {rival.value}".strip(),
            float(values[other]) if rival is not None else 0.0,
        )


def _having(all_cells: Sequence[CostCells], functions: Ints) -> dict[int, list[int]]:
    """Return of each function the numbers of the applications that have it."""
    having: dict[int, list[int]] = {function: [] for function in functions.tolist()}
    for number, cells in enumerate(all_cells):
        for function in np.intersect1d(cells.functions, functions, assume_unique=True).tolist():
            having[function].append(number)
    return having


def _cost(later: float, earlier: float, log: float) -> float:
    """Return the events that a change added to a function in the later period; of a function that is gone, all."""
    return later * float(-np.expm1(-log)) if later > 0 else -earlier


def _tried(eligible: Sequence[Cause], dimension: str) -> int:
    """Return by what a p-value is multiplied: the error is shared evenly by dimensions, and within them by causes.

    A weighted Bonferroni correction (Holm 1979, section 4): many revisions do not take from a compiler.
    """
    kinds = [cause.dimension for cause in eligible]
    return len(set(kinds)) * kinds.count(dimension)


def _first_two(fits: Fits, places: Ints, statistic: Floats) -> tuple[int, int]:
    """Return which is the best cause of a function, and which the best of those of another name, −1: none.

    `places` are those of the causes that its applications have.
    """
    order = np.argsort(-(statistic - fits.rank[places] * (statistic > 0)), kind="stable").tolist()
    first = _named(fits.causes[places[order[0]]])
    others = (at for at in order[1:] if statistic[at] > 0 and _named(fits.causes[places[at]]) != first)
    return order[0], next(others, -1)


def _named(cause: Cause) -> tuple[str, str, str]:
    return cause.dimension, cause.value, cause.application
