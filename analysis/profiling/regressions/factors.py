"""By what factor a cause makes a function cost more, with its error: a quasi-likelihood fit to the function's cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from analysis.profiling.regressions.cells import PRIOR_CLUSTERS, CostCells
from models.arrays import Floats, Ints


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


_NEWTON_STEPS = 25
_LARGEST_SHIFT = 5.0
"""How far a block's log odds may go from where they start, and the factor's logarithm from 0."""


@dataclass(frozen=True, slots=True)
class Factor:
    """The logarithm of a factor, its standard error and degrees of freedom."""

    log: float
    error: float
    freedom: float

    def exceeds(self, factor: float) -> float:
        """Return the p-value of the hypothesis that the factor is at most so large."""
        return float(stdtr(self.freedom, (np.log(factor) - self.log) / self.error))

    def falls_short(self, factor: float) -> float:
        """Return the p-value of the hypothesis that the factor is at least so large."""
        return float(stdtr(self.freedom, (self.log - np.log(factor)) / self.error))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return bounds of the factor."""
        width = float(stdtrit(self.freedom, 0.5 + confidence / 2)) * self.error
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
    within: Ints
    """(N,) block of each row."""
    owner: Ints
    """(N,) application of each row."""


def rows_of(all_cells: Sequence[CostCells], function: int, *, observed: bool = True) -> FunctionRows:
    """Return a function's cells in all applications that have it.

    Parameters
    ----------
    all_cells : those applications' cells
    function : place of the function
    observed : whether the shares are those sampled; else those expected
    """
    pairs = [(cells, int(np.searchsorted(cells.functions, function))) for cells in all_cells]
    blocks = [int(cells.block.max()) + 1 for cells in all_cells]
    units, rows = [len(cells.block) for cells in all_cells], [len(cells.count) for cells in all_cells]
    first_block, first_unit = (np.cumsum([0, *sizes])[:-1] for sizes in (blocks, units))
    expected = [cells.pooled[:, at][cells.place] for cells, at in pairs]
    shares = expected
    if observed:
        shares = [cells.sampled.dense(slice(at, at + 1), len(cells.count))[:, 0] / cells.count for cells, at in pairs]
    block = np.concatenate([cells.block for cells in all_cells]) + np.repeat(first_block, units)
    unit = np.concatenate([cells.unit for cells in all_cells]) + np.repeat(first_unit, rows)
    return FunctionRows(
        application=np.repeat(np.arange(len(all_cells)), blocks),
        block=block,
        unit=unit,
        later=np.concatenate([cells.later for cells in all_cells]),
        count=np.concatenate([cells.count for cells in all_cells]),
        share=np.concatenate(shares),
        expected=np.concatenate(expected),
        lasting=np.repeat([cells.lasting[at] for cells, at in pairs], units),
        passing=np.repeat([cells.passing[at] for cells, at in pairs], rows),
        within=block[unit],
        owner=np.repeat(np.arange(len(all_cells)), rows),
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
    low, high = start - _LARGEST_SHIFT, start + _LARGEST_SHIFT
    level, log, before = start, 0.0, np.inf
    information = 0.0
    solver = Solver(rows, acts, drift)
    for _ in range(_NEWTON_STEPS):
        line = np.minimum(np.maximum(level, low), high)
        line += log * acts
        mean = 1.0 / (1.0 + np.exp(-line))
        both = mean * (1.0 - mean)
        weight = 1.0 / (1.0 / (rows.count * both) + rows.passing)
        line += (rows.share - mean) / both
        log, information, level = solver.solved(weight, line)
        log = float(np.clip(log, -_LARGEST_SHIFT, _LARGEST_SHIFT))
        if abs(log - before) < 1e-6:
            break
        before = log
    if information <= 0 or not np.isfinite(log):
        return Factor(0.0, np.inf, 1.0)
    return Factor(log, float(1.0 / np.sqrt(information)), solver.freedom())


def exact_factor(rows: FunctionRows, loads: Floats, log: float, drift: float) -> Factor:
    """Return what `factor_of` converges to if shares are just what a factor in the later period leads to.

    The weights follow from these shares, so nothing has to be tried.

    Parameters
    ----------
    rows : N rows of one function
    loads : (2, U) precision of the rows of units, and of those of the later period
    log : logarithm of the factor
    drift : variance of the deviation of an application's log odds in a period
    """
    solver = Solver(rows, rows.later, drift)
    information = solver.of_period(loads[0], loads[1])
    if information <= 1e-12:
        return Factor(0.0, np.inf, 1.0)
    return Factor(log, float(1.0 / np.sqrt(information)), solver.freedom())


class Solver:
    """Weighted least squares for the rows of one function, with a level for each block and a drift.

    Products of rows in the metric of the inverse covariance are sums over units, so rows are added up by unit first.

    Parameters
    ----------
    rows : N rows
    acts : (N,) 1 where the cause acts
    drift : variance of the deviation of an application's log odds in a period
    """

    def __init__(self, rows: FunctionRows, acts: Floats, drift: float) -> None:
        self.rows, self.acts, self.drift = rows, acts, drift
        self.everywhere = acts is rows.later or bool((acts == rows.later).all())
        """Whether the cause is the later period itself."""
        self.of_unit = rows.application[rows.block]
        """(U,) application of each unit."""
        self.load = self.shrinkage = self.precision = np.zeros(0)
        self.later = self.cause = self.period = self.acting = self.common = self.shift = np.zeros(0)

    def information(self, weight: Floats) -> float:
        """Return the information about the factor, and remember what follows from weights.

        Parameters
        ----------
        weight : (N,) precision within units
        """
        rows = self.rows
        information = self.of_period(self._by_unit(weight), self._by_unit(weight * rows.later))
        if self.everywhere:
            return information
        acting = weight * self.acts
        self.cause = self._by_unit(acting)
        pulled = self._projected(self.later)[0]
        self.common = self._product(self._by_unit(acting * rows.later), self.cause, pulled)
        pulled, self.acting = self._projected(self.cause)
        alone = self._product(self.cause, self.cause, pulled)
        return float((alone - self.shift * self.common**2).sum())

    def of_period(self, load: Floats, later: Floats) -> float:
        """Return the information about a factor of the later period, and remember what follows from it.

        Parameters
        ----------
        load, later : (U,) precision of the rows of units, and of those of the later period
        """
        self.load, self.later, self.cause = load, later, later
        self.shrinkage = 1.0 / (1.0 + load * self.rows.lasting)
        self.precision = self._by_block(load)
        pulled, self.period = self._projected(later)
        own = self._product(later, later, pulled)
        self.acting, self.common = self.period, own
        self.shift = tied(own, self.drift)
        return float((own - self.shift * own**2).sum())

    def solved(self, weight: Floats, wanted: Floats) -> tuple[float, float, Floats]:
        """Return the factor's logarithm, its information, and (N,) levels with deviations.

        Parameters
        ----------
        weight : (N,) precision within units
        wanted : (N,) values that are fitted
        """
        rows, information = self.rows, self.information(weight)
        if information <= 1e-12:
            return 0.0, 0.0, wanted
        values = weight * wanted
        pulled, levels = self._projected(self._by_unit(values))
        pull = self._product(self._by_unit(values * rows.later), self.later, pulled)
        score = pull if self.everywhere else self._product(self._by_unit(values * self.acts), self.cause, pulled)
        log = float((score - self.shift * self.common * pull).sum()) / information
        moved = self.shift * (pull - log * self.common)
        level = levels - log * self.acting - moved[rows.application] * self.period
        return log, information, level[rows.within] + moved[rows.owner] * rows.later

    def freedom(self) -> float:
        """Return degrees of freedom of the comparison of rows with and without the cause, in blocks that have both."""
        rows, by_unit = self.rows, (self.cause, self.load - self.cause)
        within, without = (np.bincount(rows.block, units, len(rows.application)) for units in by_unit)
        mixed = ((within > 0) & (without > 0))[rows.block]
        sides = []
        for units in (part * mixed for part in by_unit):
            sides.append(float(units.sum() ** 2 / (units**2).sum()) if units.any() else 0.0)
        if min(sides) <= 1.0:
            return PRIOR_CLUSTERS
        spread = sum(1.0 / (side**2 * (side - 1.0)) for side in sides)
        return PRIOR_CLUSTERS + sum(1.0 / side for side in sides) ** 2 / spread

    def _projected(self, inside: Floats) -> tuple[Floats, Floats]:
        """Return (U,) what is taken from values by unit to project out levels, and (B,) these levels.

        Parameters
        ----------
        inside : (U,) weighted sums of the values
        """
        levels = self._by_block(inside) / self.precision
        own = (1.0 - self.shrinkage) * inside / self.load + self.shrinkage * levels[self.rows.block]
        return own, levels

    def _product(self, both: Floats, left: Floats, pulled: Floats) -> Floats:
        """Return (A,) products of values in the metric of the inverse covariance, levels projected out.

        Parameters
        ----------
        both, left : (U,) weighted sums of both values' products, and of the one's
        pulled : (U,) of the other, as from `_projected`
        """
        return np.bincount(self.of_unit, both - left * pulled).astype(np.float64)

    def _by_unit(self, values: Floats) -> Floats:
        return np.bincount(self.rows.unit, values, len(self.rows.block)).astype(np.float64)

    def _by_block(self, inside: Floats) -> Floats:
        return np.bincount(self.rows.block, inside * self.shrinkage, len(self.rows.application)).astype(np.float64)
