"""By what factor a cause makes a function cost more, with its error: a quasi-likelihood fit to the function's cells."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    within: Ints
    """(N,) block of each row."""
    later: Floats
    count: Floats
    share: Floats
    """(N,) share of the function."""
    expected: Floats
    """(B,) its share of each block, both periods."""
    lasting: Floats
    """(B,) variance of log odds between units."""
    passing: Floats
    """(B,) variance of log odds within units."""


def rows_of(
    all_cells: Sequence[CostCells], function: int, *, observed: bool = True, like: FunctionRows | None = None
) -> FunctionRows:
    """Return a function's cells in all applications that have it.

    Parameters
    ----------
    all_cells : those applications' cells
    function : place of the function
    observed : whether the shares are those sampled; else those expected
    like : rows of another function in the same applications, if there are any at hand
    """
    rows = like or _joined(all_cells)
    pairs = [(cells, int(np.searchsorted(cells.functions, function))) for cells in all_cells]
    expected = np.concatenate([cells.pooled[:, at] for cells, at in pairs])
    share = expected[rows.within]
    if observed:
        samples = [cells.sampled.dense(slice(at, at + 1), len(cells.count))[:, 0] for cells, at in pairs]
        share = np.concatenate(samples) / rows.count
    lasting, passing = np.array([(cells.lasting[at], cells.passing[at]) for cells, at in pairs]).T
    own = rows.application
    return replace(rows, share=share, expected=expected, lasting=lasting[own], passing=passing[own])


def _joined(all_cells: Sequence[CostCells]) -> FunctionRows:
    """Return the cells of some applications, what is a function's own left out."""
    blocks = [int(cells.block.max()) + 1 for cells in all_cells]
    units, rows = [len(cells.block) for cells in all_cells], [len(cells.count) for cells in all_cells]
    first_block, first_unit = (np.cumsum([0, *sizes])[:-1] for sizes in (blocks, units))
    block = np.concatenate([cells.block for cells in all_cells]) + np.repeat(first_block, units)
    unit = np.concatenate([cells.unit for cells in all_cells]) + np.repeat(first_unit, rows)
    later, count = (np.concatenate([getattr(cells, name) for cells in all_cells]) for name in ("later", "count"))
    nothing, application = np.zeros(0), np.repeat(np.arange(len(all_cells)), blocks)
    return FunctionRows(application, block, unit, block[unit], later, count, nothing, nothing, nothing, nothing)


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
    places = rows.application, rows.block, rows.unit, rows.within
    observed = rows.count, rows.share, rows.expected
    acting = np.ascontiguousarray(acts, dtype=np.float64)
    log, information, freedom = _fitted(places, observed, (rows.later, acting), (rows.lasting, rows.passing), drift)
    if information <= 0 or not np.isfinite(log):
        return Factor(0.0, np.inf, 1.0)
    return Factor(log, float(1.0 / np.sqrt(information)), freedom)


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
    information, freedom = _of_period((rows.application, rows.block), loads, rows.lasting, drift)
    if information <= 1e-12:
        return Factor(0.0, np.inf, 1.0)
    return Factor(log, float(1.0 / np.sqrt(information)), freedom)


_PRECISION, _PERIOD, _ACTING, _LEVEL, _OWN, _COMMON, _ALONE, _PULL, _SCORE = range(9)
"""Sums over a block's units: shrunk, of weights, of those of the later period, of those where the cause acts and of
weighted values; products of the later period with itself, with the cause, of the cause; of both with values."""
_FACTORS_OF = (
    (_OWN, _PERIOD, _PERIOD),
    (_COMMON, _PERIOD, _ACTING),
    (_ALONE, _ACTING, _ACTING),
    (_PULL, _PERIOD, _LEVEL),
    (_SCORE, _ACTING, _LEVEL),
)
"""Products, and the sums whose levels are projected out of them."""


@njit(nogil=True, error_model="numpy")
def _fitted(
    places: tuple[Ints, Ints, Ints, Ints],
    observed: tuple[Floats, Floats, Floats],
    acting: tuple[Floats, Floats],
    spread: tuple[Floats, Floats],
    drift: float,
) -> tuple[float, float, float]:
    """Return a factor's logarithm, its information, and degrees of freedom; by Newton's steps.

    Products of rows in the metric of the inverse covariance are sums over units, so rows are added up by unit first.
    What is expected of the rows of a block differs by period and by whether the cause acts.

    Parameters
    ----------
    places : `application`, `block`, `unit` and `within` of `FunctionRows`
    observed : its `count`, `share` and `expected`
    acting : (N,) 1 in the later period, and where the cause acts
    spread : its `lasting` and `passing`
    drift : variance of the deviation of an application's log odds in a period
    """
    (application, block, unit, within), (count, share, expected), (later, acts) = places, observed, acting
    start = np.log(expected / (1.0 - expected))
    side = 4 * within + (2.0 * later + acts).astype(np.int64)
    level, line, mean = np.repeat(start, 4), np.empty(4 * len(start)), np.empty(4 * len(start))
    loads, blocks = np.zeros((2, len(block))), np.zeros((9, len(application)))
    products = np.zeros((9, application.max() + 1))
    log, before, information = 0.0, np.inf, 0.0
    for _ in range(_NEWTON_STEPS):
        for at in range(len(line)):
            usual = start[at // 4]
            line[at] = min(max(level[at], usual - _LARGEST_SHIFT), usual + _LARGEST_SHIFT) + log * (at % 2)
            mean[at] = 1.0 / (1.0 + np.exp(-line[at]))
        _add_up((unit, side), (count, share), (line, mean), spread, (loads, blocks))
        _project(application, blocks, products)
        information = score = 0.0
        for own, common, alone, pull, towards in products[_OWN:].T:
            shift = _shift(own, drift)
            information += alone - shift * common**2
            score += towards - shift * common * pull
        if information <= 1e-12:
            return 0.0, 0.0, 0.0
        log = score / information
        for at in range(len(level)):
            own_block = at // 4
            by = application[own_block]
            moved = _shift(products[_OWN, by], drift) * (products[_PULL, by] - log * products[_COMMON, by])
            pulled = blocks[_LEVEL, own_block] - log * blocks[_ACTING, own_block] - moved * blocks[_PERIOD, own_block]
            level[at] = pulled / blocks[_PRECISION, own_block] + moved * (at // 2 % 2)
        log = min(max(log, -_LARGEST_SHIFT), _LARGEST_SHIFT)
        if abs(log - before) < 1e-6:
            break
        before = log
    return log, information, _freedom(block, loads, blocks)


@njit(nogil=True, error_model="numpy")
def _of_period(places: tuple[Ints, Ints], loads: Floats, lasting: Floats, drift: float) -> tuple[float, float]:
    """Return the information about a factor of the later period, and degrees of freedom.

    Parameters
    ----------
    places : `application` and `block` of `FunctionRows`
    loads : (2, U) precision of the rows of units, and of those of the later period
    lasting : (B,) variance between units
    drift : as of `_fitted`
    """
    application, block = places
    blocks, products = np.zeros((9, len(application))), np.zeros((9, application.max() + 1))
    for unit in range(len(block)):
        load, later = loads[0, unit], loads[1, unit]
        _add_unit((load, later, 0.0, 0.0, 0.0, 0.0, 0.0), block[unit], lasting, blocks)
    _project(application, blocks, products)
    information = 0.0
    for own in products[_OWN]:
        information += own - _shift(own, drift) * own**2
    return information, _freedom(block, loads, blocks)


@njit(cache=False, borrows=True, error_model="numpy")
def _add_up(
    places: tuple[Ints, Ints],
    observed: tuple[Floats, Floats],
    expected: tuple[Floats, Floats],
    spread: tuple[Floats, Floats],
    into: tuple[Floats, Floats],
) -> None:
    """Fill in sums over units and blocks.

    Parameters
    ----------
    places : (N,) unit of each row, not decreasing, and what is expected of it
    observed : (N,) counts and shares
    expected : (4 B,) log odds and shares: of each block before, there where the cause acts, after, there where it acts
    spread : (B,) variances between units and within them
    into : (2, U) precision, and that of rows where the cause acts; (9, B) sums
    """
    (unit, side), (count, share), (line, mean) = places, observed, expected
    (lasting, passing), (loads, blocks) = spread, into
    blocks[:] = 0.0
    load = later = cause = common = value = value_later = value_cause = 0.0
    for row in range(len(unit)):
        at = side[row]
        both = mean[at] * (1.0 - mean[at])
        weight = 1.0 / (1.0 / (count[row] * both) + passing[at // 4])
        weighted = weight * (line[at] + (share[row] - mean[at]) / both)
        load, value = load + weight, value + weighted
        if at // 2 % 2:
            later, value_later = later + weight, value_later + weighted
        if at % 2:
            cause, value_cause = cause + weight, value_cause + weighted
        if at % 4 == 3:
            common += weight
        if row + 1 == len(unit) or unit[row + 1] != unit[row]:
            loads[0, unit[row]], loads[1, unit[row]] = load, cause
            _add_unit((load, later, cause, common, value, value_later, value_cause), at // 4, lasting, blocks)
            load = later = cause = common = value = value_later = value_cause = 0.0


@njit(cache=False, borrows=True, error_model="numpy")
def _add_unit(
    sums: tuple[float, float, float, float, float, float, float], block: int, lasting: Floats, blocks: Floats
) -> None:
    """Add a unit to the sums of its block.

    Parameters
    ----------
    sums : over its rows, of weights, of those of the later period, where the cause acts, in both; of weighted values,
        of those of the later period, and where the cause acts
    block : that it is in
    lasting : (B,) variance between units
    blocks : (9, B)
    """
    load, later, cause, common, value, value_later, value_cause = sums
    shrunk = 1.0 / (1.0 + load * lasting[block])
    taken = lasting[block] * shrunk
    blocks[_PRECISION, block] += load * shrunk
    blocks[_PERIOD, block] += later * shrunk
    blocks[_ACTING, block] += cause * shrunk
    blocks[_LEVEL, block] += value * shrunk
    blocks[_OWN, block] += later - later * taken * later
    blocks[_COMMON, block] += common - later * taken * cause
    blocks[_ALONE, block] += cause - cause * taken * cause
    blocks[_PULL, block] += value_later - later * taken * value
    blocks[_SCORE, block] += value_cause - cause * taken * value


@njit(cache=False, borrows=True, error_model="numpy")
def _project(application: Ints, blocks: Floats, products: Floats) -> None:
    """Fill in applications' products, the levels of blocks projected out."""
    products[:] = 0.0
    for block in range(len(application)):
        at, precision = application[block], blocks[_PRECISION, block]
        for product, first, second in _FACTORS_OF:
            level = blocks[first, block] * blocks[second, block] / precision
            products[product, at] += blocks[product, block] - level


@njit(cache=False, borrows=True, error_model="numpy")
def _freedom(block: Ints, loads: Floats, blocks: Floats) -> float:
    """Return degrees of freedom of the comparison of rows with and without the cause, in blocks that have both.

    Parameters
    ----------
    block : (U,) of each unit
    loads : (2, U) precision of the rows of units, and of those where the cause acts
    blocks : (9, B) that is written over
    """
    blocks[:2] = 0.0
    for unit in range(len(block)):
        blocks[0, block[unit]] += loads[1, unit]
        blocks[1, block[unit]] += loads[0, unit] - loads[1, unit]
    within = without = within_squares = without_squares = 0.0
    for unit in range(len(block)):
        if blocks[0, block[unit]] > 0.0 and blocks[1, block[unit]] > 0.0:
            cause, rest = loads[1, unit], loads[0, unit] - loads[1, unit]
            within, within_squares = within + cause, within_squares + cause**2
            without, without_squares = without + rest, without_squares + rest**2
    if within_squares == 0.0:  # no block has both
        return PRIOR_CLUSTERS
    first, second = within**2 / within_squares, without**2 / without_squares
    if min(first, second) <= 1.0:
        return PRIOR_CLUSTERS
    spread = 1.0 / (first**2 * (first - 1.0)) + 1.0 / (second**2 * (second - 1.0))
    return PRIOR_CLUSTERS + (1.0 / first + 1.0 / second) ** 2 / spread


@njit(cache=False, borrows=True)
def _shift(own: float, drift: float) -> float:
    """Return `tied` of a product."""
    return 1.0 / (own + 0.5 / drift) if drift > 0.0 else 0.0
