"""Which tag of the samples explains that a function costs more: every possible cause fitted to the same cells."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
from scipy.sparse import csc_array, csr_array
from scipy.special import chdtri

from analysis.profiling.regressions.cells import CostCells, members, summed
from analysis.profiling.regressions.coded import TAGS
from analysis.profiling.regressions.factors import tied
from models.arrays import Bools, Floats, Ints

RANKS = (*TAGS, "application", "everywhere")
ENOUGH = 6
"""Functions of an application from which their median change is a level that all of them share."""
_MEDIAN_FUNCTIONS = 10
"""Functions from which the median one is as good as any other."""
_ROLLED_OUT = ("revision", "compiler", "kernel")
"""Tags whose values replace each other, so that old and new stand side by side within a period."""
_BLOCK_TAGS = ("platform", "datacentre")
"""Tags that are the same in all of a block."""
Growing = Collection[tuple[str, str, str]]
"""Dimension, application ("" for all) and value of the tags whose share of their application grows."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A possible cause: a tag's value, in one application (a revision's own) or in all."""

    dimension: str
    value: str
    application: str = ""
    since: bool = True
    """Only in the later period; otherwise wherever the tag is, in both."""


def candidates(cells: CostCells, rolled: Growing) -> list[tuple[Cause, Floats]]:
    """Return the causes that could act in an application's cells, and in which (C,) cells each would act.

    A revision, compiler or kernel that is being replaced is none: what comes while it goes did not come with it, and
    what changes where it still is changes in the application, or in the place.

    Parameters
    ----------
    cells : of one application
    rolled : as `rolled_out` returns it
    """
    later = cells.tags["later"].to_numpy(np.float64)
    causes = [
        (Cause("application", cells.application, cells.application), later),
        (Cause("everywhere", ""), later),
    ]
    for name in (name for name in TAGS if name in cells.tags.columns):
        own = cells.application if name == "revision" else ""
        tags = cells.tags[name].to_numpy(object)
        for value in sorted(set(tags)):
            has = np.asarray(tags == value, dtype=np.float64)
            if name not in _ROLLED_OUT:
                causes.append((Cause(name, str(value), own), has * later))
            elif (name, own, str(value)) in rolled:
                causes.append((Cause(name, str(value), own), has * later))
                causes.append((Cause(name, str(value), own, since=False), has))
    return sorted(causes, key=lambda pair: RANKS.index(pair[0].dimension))


@dataclass(frozen=True, slots=True, eq=False)
class Fits:
    """Every cause fitted alone to every function: H causes, F functions; only what a function's applications have."""

    causes: list[Cause]
    information: csc_array
    """(H, F) inverse variance of the estimated log factor, were there none."""
    score: csc_array
    """(H, F) how much more was seen where the cause acts than expected, in units of the log factor's estimate times
    information: the score of Rao (1948)."""
    exposure: csc_array
    """(H, F) events of the function in the later period where the cause acts."""
    change: Floats
    """(F,) weighted sum of squares of all strays about their blocks' levels, before any cause, less chance's part."""
    earlier: Floats
    """(F,) events of the function in the earlier period."""
    rank: Floats
    """(H,) the lower, the likelier beforehand: in the order of `RANKS`."""

    def _within(self, cheaper: bool) -> Bools:
        """Return (n,) whether a cause says anything of a function, for each entry of the matrices."""
        earlier = np.repeat(self.earlier, np.diff(self.score.indptr))
        known = (self.exposure.data > 0) | ((earlier > 0) & cheaper)
        return np.asarray((self.information.data > 1e-9) & known, dtype=np.bool_)

    def statistic(self, *, cheaper: bool = False) -> csc_array:
        """Return (H, F) χ² with one degree of freedom of the causes that make a function more expensive; 0 for others.

        Parameters
        ----------
        cheaper : of those that make it cheaper instead
        """
        score, information = self.score.data, self.information.data
        here = self._within(cheaper) & (score < 0 if cheaper else score > 0)
        values = np.divide(score**2, information, out=np.zeros_like(score), where=here)
        return csc_array((values, self.score.indices, self.score.indptr), shape=self.score.shape)

    def eligible(self, function: int, *, cheaper: bool = False) -> list[Cause]:
        """Return the causes that say anything of a function; a function that is gone can only be cheaper."""
        here = slice(*self.score.indptr[function : function + 2])
        known = (self.exposure.data[here] > 0) | (self.earlier[function] > 0 and cheaper)
        places = self.score.indices[here][(self.information.data[here] > 1e-9) & known]
        return [self.causes[place] for place in places.tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class CauseSums:
    """What one application's cells say of its h causes and f functions, before a drift between periods is known."""

    causes: list[Cause]
    design: Floats
    """(h, C) in which cells each acts."""
    functions: Ints
    alone: Floats
    """(h, f) product of a cause with itself, in the metric of the inverse covariance with levels projected out."""
    common: Floats
    """(h, f) its product with the later period."""
    period: Floats
    """(f,) product of the later period with itself."""
    score: Floats
    """(h, f) its product with the strays."""
    pull: Floats
    """(f,) product of the later period with the strays."""
    squares: Floats
    """(f,) product of the strays with themselves, less the degrees of freedom."""
    exposure: Floats
    """(h, f) events in the later period where the cause acts."""
    events: Floats
    """(2, f) events in the earlier period and in the later one."""

    def moved(self) -> tuple[Floats, Floats]:
        """Return the changes of functions' log odds between the periods, and their variances."""
        known = self.period > 1e-9
        return self.pull[known] / self.period[known], 1.0 / self.period[known]


def sums_of(all_cells: Sequence[CostCells], rolled: Growing) -> list[CauseSums]:
    """Return what the cells of every application say of every cause.

    Parameters
    ----------
    all_cells : of `analysis.profiling.regressions.cells.cells`
    rolled : as in `candidates`
    """
    return [_sums(cells, candidates(cells, rolled)) for cells in all_cells]


def _sums(cells: CostCells, causes: Sequence[tuple[Cause, Floats]]) -> CauseSums:
    design = np.array([where for _, where in causes])
    later = cells.tags["later"].to_numpy(np.float64)
    width = len(cells.functions)
    alone, common, score, exposure = np.zeros((4, len(causes), width))
    period, pull, squares = np.zeros((3, width))
    events = np.zeros((2, width))
    metric = _Metric(cells)
    places = _acting(cells, causes)
    for part in cells.parts():
        stray = cells.stray(part)
        weight = metric.weigh(part)
        pulled = metric.pulled(weight, stray)
        squares[part] = np.einsum("rf,rf->f", stray, pulled)
        by_cell = summed(metric.by_cell, pulled)
        score[:, part], pull[part] = design @ by_cell, later @ by_cell
        by_cell = summed(metric.by_cell, metric.pulled(weight, cells.later[:, None]))
        common[:, part], period[part] = design @ by_cell, later @ by_cell
        products = [metric.square(weight, acts) for acts in places.patterns]
        for at, (pattern, blocks) in enumerate(places.of):
            alone[at, part] = blocks @ products[pattern]
        value = cells.sampled.summed(part, cells.cell, cells.scale)
        exposure[:, part] = (design * later) @ value
        events[:, part] = (1.0 - later) @ value, later @ value
    squares -= len(cells.count) - cells.block.max() - 1
    names = [cause for cause, _ in causes]
    return CauseSums(names, design, cells.functions, alone, common, period, score, pull, squares, exposure, events)


@dataclass(frozen=True, slots=True, eq=False)
class _Acting:
    """In which rows causes act: in those of a pattern, in some blocks."""

    patterns: list[Floats]
    """(R,) 0 or 1, each different."""
    of: list[tuple[int, Floats]]
    """Of each cause the number of its pattern, and in which (B,) blocks it acts."""


def _acting(cells: CostCells, causes: Sequence[tuple[Cause, Floats]]) -> _Acting:
    """Return where causes act; those of a place act in the later period of its blocks, which is worked out once."""
    place = cells.place
    blocks = int(cells.block.max()) + 1
    patterns: dict[bytes, int] = {}
    rows: list[Floats] = []
    acting = []
    for cause, where in causes:
        acts, here = where[cells.cell], np.ones(blocks)
        if cause.dimension in _BLOCK_TAGS:
            here = (np.bincount(place, acts, blocks) > 0).astype(np.float64)
            acts = cells.later
        key = acts.tobytes()
        if key not in patterns:
            patterns[key] = len(rows)
            rows.append(acts)
        acting.append((patterns[key], here))
    return _Acting(rows, acting)


class _Metric:
    """The inverse covariance of an application's rows, for some functions at a time, levels of blocks projected out."""

    def __init__(self, cells: CostCells) -> None:
        self.cells = cells
        self.by_cell = members(cells.cell, len(cells.tags))
        self.by_unit = members(cells.unit, len(cells.block))
        self.by_block = members(cells.block, int(cells.block.max()) + 1)
        self.sizes = cells.sizes()
        self.load = self.shrinkage = self.level = np.zeros((0, 0))

    def weigh(self, part: slice) -> Floats:
        """Return (R, f) precision within units, and remember what follows from it."""
        cells = self.cells
        pair, at, count = self.sizes
        both = (cells.pooled[:, part] * (1.0 - cells.pooled[:, part]))[at]
        weight = np.asarray((1.0 / (1.0 / (count[:, None] * both) + cells.passing[part]))[pair], dtype=np.float64)
        self.load = summed(self.by_unit, weight)
        self.shrinkage = 1.0 / (1.0 + self.load * cells.lasting[part])
        self.level = summed(self.by_block, self.load * self.shrinkage)
        return weight

    def pulled(self, weight: Floats, values: Floats) -> Floats:
        """Return the inverse covariance times (R, f) values."""
        inside = summed(self.by_unit, weight * values)
        levels = summed(self.by_block, inside * self.shrinkage) / self.level
        own = (1.0 - self.shrinkage) * inside / self.load + self.shrinkage * levels[self.cells.block]
        away = values - own[self.cells.unit]
        away *= weight
        return np.asarray(away, dtype=np.float64)

    def square(self, weight: Floats, acts: Floats) -> Floats:
        """Return (B, f) the product of (R,) values, 0 or 1, with themselves in that metric, block by block."""
        member = csr_array((acts, self.by_unit.indices, self.by_unit.indptr), shape=self.by_unit.shape)
        inside = summed(member, weight)
        level = summed(self.by_block, inside * self.shrinkage)
        own = inside - (1.0 - self.shrinkage) * inside**2 / self.load
        return np.asarray(summed(self.by_block, own) - level**2 / self.level, dtype=np.float64)


def fit(all_cells: Sequence[CostCells], rolled: Growing, functions: int, drift: float) -> Fits:
    """Fit every cause to every function; parameters as of `sums_of` and `fitted`."""
    return fitted(sums_of(all_cells, rolled), functions, drift)


def fitted(all_sums: Sequence[CauseSums], functions: int, drift: float) -> Fits:
    """Return every cause fitted to every function by generalised least squares (Aitken 1936).

    Each application has a level of its own on each platform in each data centre, and in each period a deviation of
    variance `drift` common to all its cells (requests differ from day to day).

    Parameters
    ----------
    all_sums : of `sums_of`
    functions : F
    drift : variance of the deviation of an application's log odds in a period
    """
    place: dict[Cause, int] = {}
    change, earlier = np.zeros((2, functions))
    at, values = [np.zeros(0, dtype=np.int64)], [np.zeros((3, 0))]
    rows = [[place.setdefault(cause, len(place)) for cause in sums.causes] for sums in all_sums]
    for row, sums in zip(rows, all_sums, strict=True):
        shift = tied(sums.period, drift)
        change[sums.functions] += sums.squares - shift * sums.pull**2
        earlier[sums.functions] += sums.events[0]
        information, score = sums.alone - shift * sums.common**2, sums.score - shift * sums.common * sums.pull
        at.append((sums.functions * len(place) + np.array(row)[:, None]).ravel())
        values.append(np.array([information.ravel(), score.ravel(), sums.exposure.ravel()]))
    entry, number = np.unique(np.concatenate(at), return_inverse=True)
    start = np.searchsorted(entry, np.arange(functions + 1) * max(len(place), 1))
    matrices = [
        csc_array(
            (np.bincount(number, numbers, len(entry)).astype(np.float64), entry % max(len(place), 1), start),
            shape=(len(place), functions),
        )
        for numbers in np.concatenate(values, axis=1)
    ]
    ranks = [RANKS.index(cause.dimension) + 0.5 * (not cause.since) for cause in place]
    information_of, score_of, exposure_of = matrices
    rank = np.array(ranks, dtype=np.float64)
    return Fits(list(place), information_of, score_of, exposure_of, change, earlier, rank)


def common_changes(all_sums: Sequence[CauseSums], functions: int) -> Floats:
    """Return (F,) by how much functions' log odds changed because all of their applications' did.

    Shares add up to 1: where a large function becomes cheaper, all others of its application have more. What the median
    function did (of at least six, weighted by precision) is no change of any of them. A function of several
    applications has the mean of theirs, weighted by its events.

    Parameters
    ----------
    all_sums : of all applications
    functions : F
    """
    shift, weight = np.zeros((2, functions))
    for sums in all_sums:
        events, (change, variance) = sums.events.sum(axis=0), sums.moved()
        weight[sums.functions] += events
        if len(change) >= ENOUGH:
            shift[sums.functions] += events * _middle(change, variance)
    return np.divide(shift, weight, out=np.zeros(functions), where=weight > 0)


def drift_of(all_cells: Sequence[CostCells]) -> float:
    """Return the variance of healthy deviations of an application's log odds in a period.

    The median of the squared changes over all functions of all applications, each about the median change of its
    application, is what it should be under a normal law (an empirical null, Efron 2004): a few functions that did
    become more expensive do not matter, nor that all others then have less.

    Parameters
    ----------
    all_cells : of `analysis.profiling.regressions.cells.cells`
    """
    return drift_behind([sums.moved() for sums in sums_of(all_cells, ())])


@dataclass(frozen=True, slots=True, eq=False)
class DriftBeside:
    """The drift that would be estimated beside a function that grew.

    Shares add up to 1: if a function's odds grow by φ from a share p, those of all others of its application fall by
    ln(1 − p + φ p). In an application of few functions that counts as a deviation of the period; in others it is the
    median change, which is taken out.
    """

    moved: list[tuple[Floats, Floats]]
    shares: list[tuple[Ints, Floats]]
    """Of applications of few functions these and their shares; of others none."""
    usual: float
    """Beside nothing."""

    @classmethod
    def of(cls, all_cells: Sequence[CostCells], all_sums: Sequence[CauseSums]) -> Self:
        """Return it for two profiles."""
        moved = [sums.moved() for sums in all_sums]
        shares = []
        for cells, (change, _) in zip(all_cells, moved, strict=True):
            functions = slice(0, len(cells.functions) * (len(change) < ENOUGH))
            once = np.ones(len(cells.count))
            sums = cells.sampled.summed(functions, np.zeros(len(once), dtype=np.int64), once)[0]
            shares.append((cells.functions[functions], sums / cells.count.sum()))
        return cls(moved, shares, drift_behind(moved))

    def grown(self, function: int, factor: float) -> float:
        """Return the drift if a function's odds grow by a factor in all of its applications.

        Parameters
        ----------
        function : place of the function
        factor : of the odds of its share
        """
        shifts = [float(np.log1p((factor - 1.0) * share[own == function].sum())) for own, share in self.shares]
        if not any(shifts):
            return self.usual
        return drift_behind(
            [(change - shift, variance) for (change, variance), shift in zip(self.moved, shifts, strict=True)]
        )


def drift_behind(changes: Sequence[tuple[Floats, Floats]]) -> float:
    """Return the variance of deviations that makes changes of log odds as large as they are, in the median.

    Parameters
    ----------
    changes : of each application those of its functions' log odds, and their variances

    Examples
    --------
    >>> drift_behind([(np.array([0.1, -0.2, 0.3]), np.array([1e-9, 1e-9, 1e-9]))]) > 0.04
    True
    """
    if not sum(len(change) for change, _ in changes):
        return 0.0
    squares, variances = zip(*(_apart(change, variance) for change, variance in changes), strict=True)
    return _root(np.concatenate(squares), np.concatenate(variances))


def _apart(change: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return squares of an application's changes about their median, and their variances; of few, as they are.

    Shares add up to 1: where one large function grows, all others of its application fall by the same amount, which is
    no drift. Taken for one, it would hide the growth, and the more so the larger that is. Of fewer than ten functions
    the median one, which is 0 from itself, is left out: the drift of 6 to 9 is then told no smaller than that of more.
    """
    if len(change) < ENOUGH:
        return change**2, variance
    square = (change - _middle(change, variance)) ** 2
    others = (
        np.arange(len(square)) != np.argmin(square)
        if len(square) < _MEDIAN_FUNCTIONS
        else np.ones(len(square), dtype=bool)
    )
    return square[others], variance[others]


def _middle(change: Floats, variance: Floats) -> float:
    """Return the median of changes, weighted by precision."""
    order = np.argsort(change, kind="stable")
    weight = np.cumsum(1.0 / variance[order])
    return float(change[order[int(np.searchsorted(weight, weight[-1] / 2.0))]])


_CHI2_MEDIAN = float(chdtri(1, 0.5))


def _root(square: Floats, variance: Floats) -> float:
    """Return d so that the median of square / (variance + 2 d) is that of χ² with one degree of freedom; at least 0."""
    low, high = 0.0, _median(square) / _CHI2_MEDIAN + 1e-12
    if _median(square / variance) <= _CHI2_MEDIAN:
        return 0.0
    for _ in range(60):
        between = (low + high) / 2
        above = _median(square / (variance + 2 * between)) > _CHI2_MEDIAN
        low, high = (between, high) if above else (low, between)
    return high


def _median(values: Floats) -> float:
    """Return the median; of a hundred numbers in a tenth of the time of NumPy's, which looks for what is no number."""
    middle = [(len(values) - 1) // 2, len(values) // 2]
    return float(np.partition(values, middle)[middle].sum() / 2)


def rolled_out(table: pd.DataFrame) -> Growing:
    """Return which tags' values gain in share within applications from the earlier period to the later.

    Parameters
    ----------
    table : columns application, later, tags, value

    Returns
    -------
    set
        Dimension, application ("" where the tag is not an application's own) and value of each.
    """
    names = [name for name in _ROLLED_OUT if name in table.columns]
    used = table.groupby(["application", "later", *names], observed=True, as_index=False)["value"].sum()
    totals = used.groupby(["application", "later"], observed=True)["value"].transform("sum")
    both = used.groupby("application", observed=True)["later"].transform("nunique") == 2
    share = (used["value"] / totals).astype(np.float64)
    change = used.assign(gain=share.where(used["later"].astype(bool), -share))[both]
    gains: list[tuple[str, str, str]] = []
    for name in names:
        owner = change["application"] if name == "revision" else pd.Series("", change.index)
        gain = change.assign(owner=owner).groupby(["owner", name], observed=True, as_index=False)["gain"].sum()
        gaining = gain[gain["gain"] > 1e-9]
        gains += [(name, str(own), str(tag)) for own, tag in zip(gaining["owner"], gaining[name], strict=True)]
    return frozenset(gains)
