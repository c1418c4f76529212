"""By what factor a cause makes a function cost more, with its error: a quasi-likelihood fit to the function's cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from analysis.profiling.regressions.cells import PRIOR_CLUSTERS, CostCells
from models.arrays import Floats, Ints
from models.code.compiled import njit


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
    places = rows.application, rows.block, rows.unit
    observed = rows.count, rows.share, rows.expected
    acting = np.ascontiguousarray(acts, dtype=np.float64)
    log, information, precision = _fitted(places, observed, (rows.later, acting), (rows.lasting, rows.passing), drift)
    if information <= 0 or not np.isfinite(log):
        return Factor(0.0, np.inf, 1.0)
    return Factor(log, float(1.0 / np.sqrt(information)), _freedom(rows, precision[0], precision[2]))


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
    load, later = loads
    information = _of_period((rows.application, rows.block), load, later, rows.lasting, drift)
    if information <= 1e-12:
        return Factor(0.0, np.inf, 1.0)
    return Factor(log, float(1.0 / np.sqrt(information)), _freedom(rows, load, later))


def _freedom(rows: FunctionRows, load: Floats, cause: Floats) -> float:
    """Return degrees of freedom of the comparison of rows with and without the cause, in blocks that have both.

    Parameters
    ----------
    rows : N rows of one function
    load, cause : (U,) precision of the rows of units, and of those where the cause acts
    """
    by_unit = cause, load - cause
    within, without = (np.bincount(rows.block, units, len(rows.application)) for units in by_unit)
    mixed = ((within > 0) & (without > 0))[rows.block]
    sides = []
    for units in (part * mixed for part in by_unit):
        sides.append(float(units.sum() ** 2 / (units**2).sum()) if units.any() else 0.0)
    if min(sides) <= 1.0:
        return PRIOR_CLUSTERS
    spread = sum(1.0 / (side**2 * (side - 1.0)) for side in sides)
    return PRIOR_CLUSTERS + sum(1.0 / side for side in sides) ** 2 / spread


_LOAD, _LATER, _CAUSE, _BOTH, _VALUE, _VALUE_LATER, _VALUE_CAUSE, _SHRUNK, _PULLED = range(9)
"""Sums over a unit's rows: of weights, of those of the later period, where the cause acts, in both, the same of
weighted values; and what follows from them: what is left of a unit's own deviation, and what is taken from values."""
_PRECISION, _PERIOD, _ACTING, _LEVELS = range(4)
"""Of blocks: precision, and what is projected out of the later period, of the cause and of values."""
_OWN, _COMMON, _ALONE, _PULL, _SCORE = range(5)
"""Of applications: products of the later period, of it with the cause, of the cause; of both with values."""


@njit(nogil=True, error_model="numpy")
def _fitted(
    places: tuple[Ints, Ints, Ints],
    observed: tuple[Floats, Floats, Floats],
    acting: tuple[Floats, Floats],
    spread: tuple[Floats, Floats],
    drift: float,
) -> tuple[float, float, Floats]:
    """Return a factor's logarithm, its information, and sums of weights over units; by Newton's steps.

    Products of rows in the metric of the inverse covariance are sums over units, so rows are added up by unit first.

    Parameters
    ----------
    places : `application`, `block` and `unit` of `FunctionRows`
    observed : its `count`, `share` and `expected`
    acting : (N,) 1 in the later period, and where the cause acts
    spread : its `lasting` and `passing`
    drift : variance of the deviation of an application's log odds in a period
    """
    (application, block, unit), (count, share, expected), (later, acts) = places, observed, acting
    start = np.log(expected / (1.0 - expected))
    level, values, weight = start.copy(), np.empty(len(count)), np.empty(len(count))
    units, blocks = np.zeros((9, len(block))), np.zeros((4, len(application)))
    products = np.zeros((5, application.max() + 1))
    log, before, information = 0.0, np.inf, 0.0
    for _ in range(_NEWTON_STEPS):
        for row in range(len(count)):
            line = min(max(level[row], start[row] - _LARGEST_SHIFT), start[row] + _LARGEST_SHIFT) + log * acts[row]
            mean = 1.0 / (1.0 + np.exp(-line))
            both = mean * (1.0 - mean)
            weight[row] = 1.0 / (1.0 / (count[row] * both) + spread[1][row])
            values[row] = line + (share[row] - mean) / both
        _add_up(unit, (weight, values), acting, units)
        information = _informed((application, block), units, spread[0], drift, (blocks, products))
        if information > 1e-12:
            log = _solved((application, block), units, (blocks, products), drift, information)
            for row in range(len(count)):
                own = block[unit[row]]
                moved = _moved(products, application[own], drift, log)
                level[row] = blocks[_LEVELS, own] - log * blocks[_ACTING, own]
                level[row] += moved * (later[row] - blocks[_PERIOD, own])
        else:
            log, information, level[:] = 0.0, 0.0, values
        log = min(max(log, -_LARGEST_SHIFT), _LARGEST_SHIFT)
        if abs(log - before) < 1e-6:
            break
        before = log
    return log, information, units[:3].copy()


@njit(nogil=True, error_model="numpy")
def _of_period(places: tuple[Ints, Ints], load: Floats, later: Floats, lasting: Floats, drift: float) -> float:
    """Return the information about a factor of the later period.

    Parameters
    ----------
    places : `application` and `block` of `FunctionRows`
    load, later : (U,) precision of the rows of units, and of those of the later period
    lasting : (U,) variance between units
    drift : as of `_fitted`
    """
    units, blocks = np.zeros((9, len(load))), np.zeros((4, len(places[0])))
    units[_LOAD] = load
    units[_LATER] = units[_CAUSE] = units[_BOTH] = later
    return _informed(places, units, lasting, drift, (blocks, np.zeros((5, places[0].max() + 1))))


@njit(cache=False, borrows=True, error_model="numpy")
def _add_up(unit: Ints, rows: tuple[Floats, Floats], acting: tuple[Floats, Floats], units: Floats) -> None:
    """Fill in sums over units; `rows` are weights and values, `acting` as of `_fitted`."""
    (weight, values), (later, acts) = rows, acting
    units[:] = 0.0
    for row in range(len(unit)):
        own, value = unit[row], weight[row] * values[row]
        units[_LOAD, own] += weight[row]
        units[_LATER, own] += weight[row] * later[row]
        units[_CAUSE, own] += weight[row] * acts[row]
        units[_BOTH, own] += weight[row] * acts[row] * later[row]
        units[_VALUE, own] += value
        units[_VALUE_LATER, own] += value * later[row]
        units[_VALUE_CAUSE, own] += value * acts[row]


@njit(cache=False, borrows=True, error_model="numpy")
def _informed(
    places: tuple[Ints, Ints], units: Floats, lasting: Floats, drift: float, sums: tuple[Floats, Floats]
) -> float:
    """Return the information about the factor, and fill in the sums of blocks and applications that it follows from."""
    (_, block), (blocks, products) = places, sums
    blocks[_PRECISION] = 0.0
    for own in range(len(block)):
        units[_SHRUNK, own] = 1.0 / (1.0 + units[_LOAD, own] * lasting[own])
        blocks[_PRECISION, block[own]] += units[_LOAD, own] * units[_SHRUNK, own]
    _project(block, units, _LATER, blocks, _PERIOD)
    _multiply(places, units, (_LATER, _LATER), products, _OWN)
    _multiply(places, units, (_BOTH, _CAUSE), products, _COMMON)
    _project(block, units, _CAUSE, blocks, _ACTING)
    _multiply(places, units, (_CAUSE, _CAUSE), products, _ALONE)
    information = 0.0
    for at in range(products.shape[1]):
        shift = _shift(products[_OWN, at], drift)
        information += products[_ALONE, at] - shift * products[_COMMON, at] ** 2
    return information


@njit(cache=False, borrows=True, error_model="numpy")
def _solved(
    places: tuple[Ints, Ints], units: Floats, sums: tuple[Floats, Floats], drift: float, information: float
) -> float:
    """Return the factor's logarithm, and fill in blocks' levels and applications' products with values."""
    blocks, products = sums
    _project(places[1], units, _VALUE, blocks, _LEVELS)
    _multiply(places, units, (_VALUE_LATER, _LATER), products, _PULL)
    _multiply(places, units, (_VALUE_CAUSE, _CAUSE), products, _SCORE)
    score = 0.0
    for at in range(products.shape[1]):
        shift = _shift(products[_OWN, at], drift)
        score += products[_SCORE, at] - shift * products[_COMMON, at] * products[_PULL, at]
    return score / information


@njit(cache=False, borrows=True, error_model="numpy")
def _moved(products: Floats, at: int, drift: float, log: float) -> float:
    """Return the deviation of an application's later period."""
    moved: float = products[_PULL, at] - log * products[_COMMON, at]
    return _shift(products[_OWN, at], drift) * moved


@njit(cache=False, borrows=True, error_model="numpy")
def _project(block: Ints, units: Floats, values: int, blocks: Floats, levels: int) -> None:
    """Fill in the levels that values have in blocks, and what is taken from the values by unit to project them out."""
    blocks[levels] = 0.0
    for own in range(len(block)):
        blocks[levels, block[own]] += units[values, own] * units[_SHRUNK, own]
    for own in range(blocks.shape[1]):
        blocks[levels, own] /= blocks[_PRECISION, own]
    for own in range(len(block)):
        shrunk = units[_SHRUNK, own]
        alone = (1.0 - shrunk) * units[values, own] / units[_LOAD, own]
        units[_PULLED, own] = alone + shrunk * blocks[levels, block[own]]


@njit(cache=False, borrows=True, error_model="numpy")
def _multiply(places: tuple[Ints, Ints], units: Floats, which: tuple[int, int], products: Floats, into: int) -> None:
    """Fill in products of values in the metric of the inverse covariance, levels projected out.

    Parameters
    ----------
    places : application of each block, block of each unit
    units : sums over units, with what is taken from the one value by `_project`
    which : sums of both values' products, and of the other's
    products : of applications
    into : which of them
    """
    application, block = places
    products[into] = 0.0
    for own in range(len(block)):
        product = units[which[0], own] - units[which[1], own] * units[_PULLED, own]
        products[into, application[block[own]]] += product


@njit(cache=False, borrows=True)
def _shift(own: float, drift: float) -> float:
    """Return `tied` of a product."""
    return 1.0 / (own + 0.5 / drift) if drift > 0.0 else 0.0
