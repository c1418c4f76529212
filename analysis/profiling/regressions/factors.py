"""By what factor a cause makes a function cost more, with its error: a quasi-likelihood fit to the function's cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from analysis.profiling.regressions.cells import PRIOR_CLUSTERS, CostCells, summed
from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """The inverse covariance of R rows in U units in B blocks, for F functions; levels of blocks are projected out."""

    weight: Floats
    """(R, F) precision within units."""
    unit: Ints
    """(R,) each row's unit."""
    block: Ints
    """(U,) each unit's block."""
    shrinkage: Floats
    """(U, F) share of a unit's mean that is its block's and not its own."""
    load: Floats
    """(U, F) sums of the weights."""
    level: Floats
    """(B, F) precision of a block's level."""

    @classmethod
    def of(cls, weight: Floats, lasting: Floats, unit: Ints, block: Ints) -> "Nested":
        """Return that of rows.

        Parameters
        ----------
        weight : (R, F) precision within units
        lasting : variance between units, that goes with (U, F)
        unit : (R,) each row's
        block : (U,) each unit's
        """
        load = summed(weight, unit, len(block))
        shrinkage = 1.0 / (1.0 + load * lasting)
        return cls(weight, unit, block, shrinkage, load, summed(load * shrinkage, block, int(block.max()) + 1))

    def weighted(self, values: Floats) -> Floats:
        """Return the inverse covariance times (R, F) values, levels projected out."""
        return self.projected(values)[0]

    def projected(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the same, and the (B, F) levels of blocks by generalised least squares."""
        inside = summed(self.weight * values, self.unit, len(self.block))
        levels = summed(inside * self.shrinkage, self.block, len(self.level)) / self.level
        own = (1.0 - self.shrinkage) * inside / self.load + self.shrinkage * levels[self.block]
        return self.weight * (values - own[self.unit]), levels

    def square(self, acts: Floats) -> Floats:
        """Return (F,) the product of (R,) values, 0 or 1, with themselves in that metric."""
        acting = np.flatnonzero(acts)
        weight = self.weight[acting]
        inside = summed(weight, self.unit[acting], len(self.block))
        level = summed(inside * self.shrinkage, self.block, len(self.level))
        units = ((1.0 - self.shrinkage) * inside**2 / self.load).sum(axis=0)
        return np.asarray(weight.sum(axis=0) - units - (level**2 / self.level).sum(axis=0), dtype=np.float64)


def tied(own: Floats, drift: float) -> Floats:
    """Return by what a product is lessened when two periods' deviations, of variance `drift` each, are free to move.

    Of the deviations their difference is left, of variance 2 `drift`: one further term in the inverse (Woodbury 1950).

    Parameters
    ----------
    own : product of the later period's indicator with itself
    drift : variance

    Examples
    --------
    >>> tied(np.array([1.0]), 0.5), tied(np.array([1.0]), 0.0)
    (array([0.5]), array([0.]))
    """
    return own * 0.0 if drift <= 0 else 1.0 / (own + 0.5 / drift)


_STEPS = 25
_FAR = 5.0
"""How far a block's log odds may go from where they start, and the factor's logarithm from 0."""


@dataclass(frozen=True, slots=True)
class Factor:
    """The logarithm of a factor, its standard error and degrees of freedom."""

    log: float
    error: float
    freedom: float

    def exceeds(self, factor: float) -> float:
        """Return the p-value of the hypothesis that the factor is at most so large."""
        return float(t.sf((self.log - np.log(factor)) / self.error, self.freedom))

    def falls_short(self, factor: float) -> float:
        """Return the p-value of the hypothesis that the factor is at least so large."""
        return float(t.sf((np.log(factor) - self.log) / self.error, self.freedom))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return bounds of the factor."""
        width = float(t.ppf(0.5 + confidence / 2, self.freedom)) * self.error
        return float(np.exp(self.log - width)), float(np.exp(self.log + width))


@dataclass(frozen=True, slots=True, eq=False)
class FunctionRows:
    """One function's cells in A applications, cluster by cluster: N rows in U units in B blocks of them all."""

    application: Ints
    """(B,) of each block."""
    block: Ints
    """(U,) of each unit."""
    unit: Ints
    """(N,) of each row."""
    later: Floats
    count: Floats
    share: Floats
    """(N,) share of the function."""
    expected: Floats
    lasting: Floats
    """(U,) variance of log odds between units."""
    passing: Floats
    """(N,) variance of log odds within units."""


def rows_of(all_cells: Sequence[CostCells], function: int) -> FunctionRows:
    """Return a function's cells in all applications that have it.

    Parameters
    ----------
    all_cells : those applications' cells
    function : place of the function
    """
    pairs = [(cells, int(np.searchsorted(cells.functions, function))) for cells in all_cells]
    blocks = [int(cells.block.max()) + 1 for cells in all_cells]
    units, rows = [len(cells.block) for cells in all_cells], [len(cells.count) for cells in all_cells]
    first_block, first_unit = (np.cumsum([0, *sizes])[:-1] for sizes in (blocks, units))
    return FunctionRows(
        application=np.repeat(np.arange(len(all_cells)), blocks),
        block=np.concatenate([cells.block for cells in all_cells]) + np.repeat(first_block, units),
        unit=np.concatenate([cells.unit for cells in all_cells]) + np.repeat(first_unit, rows),
        later=np.concatenate([cells.later for cells in all_cells]),
        count=np.concatenate([cells.count for cells in all_cells]),
        share=np.concatenate([cells.by_function[:, at] / cells.count for cells, at in pairs]),
        expected=np.concatenate([cells.expected[:, at] for cells, at in pairs]),
        lasting=np.repeat([cells.lasting[at] for cells, at in pairs], units),
        passing=np.repeat([cells.passing[at] for cells, at in pairs], rows),
    )


def factor_of(rows: FunctionRows, acts: Floats, drift: float) -> Factor:
    """Return the factor of a cause by generalised estimating equations (Liang and Zeger 1986).

    The mean is binomial with a level for each block, a random deviation of each application's later period, and the
    cause; the variance is that of independent samples, within units and between them. Degrees of freedom are Welch's
    (1947) from the effective units with and without the cause, more by those that the variance between clusters was
    smoothed with. Where samples vary more than clusters that is too few; to count them for the guessed part of the
    variance alone (Satterthwaite 1946) would be too many, up to five times as many p-values of 0.00001.

    Parameters
    ----------
    rows : N rows of one function
    acts : (N,) 1 where the cause acts
    drift : variance of the deviation of an application's log odds in a period
    """
    start = np.log(rows.expected / (1.0 - rows.expected))
    level, log, before = start, 0.0, np.inf
    information, weight = 0.0, start
    for _ in range(_STEPS):
        line = np.clip(level, start - _FAR, start + _FAR) + log * acts
        mean = 1.0 / (1.0 + np.exp(-line))
        both = mean * (1.0 - mean)
        weight = 1.0 / (1.0 / (rows.count * both) + rows.passing)
        wanted = line + (rows.share - mean) / both
        log, information, level = _solved(rows, weight, acts, wanted, drift)
        log = float(np.clip(log, -_FAR, _FAR))
        if abs(log - before) < 1e-6:
            break
        before = log
    if information <= 0 or not np.isfinite(log):
        return Factor(0.0, np.inf, 1.0)
    return Factor(log, float(1.0 / np.sqrt(information)), _freedom(rows, acts, weight))


def _solved(
    rows: FunctionRows, weight: Floats, acts: Floats, wanted: Floats, drift: float
) -> tuple[float, float, Floats]:
    """Return the factor's logarithm, its information, and (N,) levels with deviations, by weighted least squares."""
    nested = Nested.of(weight[:, None], rows.lasting[:, None], rows.unit, rows.block)
    values = np.column_stack([acts, rows.later, wanted])
    pulled, levels = nested.projected(values)
    owner = rows.application[rows.block][rows.unit]

    def product(left: int, right: int) -> Floats:
        return np.bincount(owner, values[:, left] * pulled[:, right]).astype(np.float64)

    common, shift = product(1, 0), tied(product(1, 1), drift)
    information = float((product(0, 0) - shift * common**2).sum())
    if information <= 1e-12:
        return 0.0, 0.0, wanted
    log = float((product(0, 2) - shift * common * product(1, 2)).sum()) / information
    moved = shift * (product(1, 2) - log * common)
    level = levels[:, 2] - log * levels[:, 0] - moved[rows.application] * levels[:, 1]
    return log, information, level[rows.block][rows.unit] + moved[owner] * rows.later


def _freedom(rows: FunctionRows, acts: Floats, weight: Floats) -> float:
    """Return degrees of freedom of the comparison of rows with and without the cause, in blocks that have both."""
    blocks, block = len(rows.application), rows.block[rows.unit]
    load, inside = np.bincount(block, weight, blocks), np.bincount(block, weight * acts, blocks)
    mixed = ((inside > 0) & (inside < load))[block]
    sides = []
    for here in (mixed & (acts > 0), mixed & (acts <= 0)):
        units = np.bincount(rows.unit[here], weight[here])
        sides.append(float(units.sum() ** 2 / (units**2).sum()) if here.any() else 0.0)
    if min(sides) <= 1.0:
        return PRIOR_CLUSTERS
    spread = sum(1.0 / (side**2 * (side - 1.0)) for side in sides)
    return PRIOR_CLUSTERS + sum(1.0 / side for side in sides) ** 2 / spread
