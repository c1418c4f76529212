"""By what factor a cause makes a function dearer, with its error: a quasi-likelihood fit to the function's cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

from analysis.profiling.cells import PRIOR_CLUSTERS, Cells
from analysis.statistics import Floats, Ints

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
        """Return the p-value of the hypothesis that the factor is at most so large.

        Examples
        --------
        >>> round(Factor(np.log(2.0), 0.1, 30.0).exceeds(2.0), 3)
        0.5
        """
        return float(t.sf((self.log - np.log(factor)) / self.error, self.freedom))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return bounds of the factor.

        Examples
        --------
        >>> low, high = Factor(0.0, 0.1, 1e9).interval()
        >>> round(low, 3), round(high, 3)
        (0.822, 1.217)
        """
        width = float(t.ppf(0.5 + confidence / 2, self.freedom)) * self.error
        return float(np.exp(self.log - width)), float(np.exp(self.log + width))


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """One function's cells in A applications: N rows in B blocks of them all."""

    application: Ints
    block: Ints
    later: Floats
    count: Floats
    share: Floats
    """(N,) share of the function."""
    expected: Floats
    between: Floats
    """(N,) variance of log odds between clusters, for one cluster."""
    concentration: Floats


def rows_of(all_cells: Sequence[Cells], function: int) -> Rows:
    """Return a function's cells in all applications that have it.

    Parameters
    ----------
    all_cells : those applications' cells
    function : place of the function

    Examples
    --------
    >>> import pandas as pd
    >>> from analysis.profiling.cells import cells
    >>> row = {"application": "a", "function": [0, 1] * 2, "machine": 1, "samples": 30, "value": 3.0}
    >>> found = list(cells(pd.DataFrame(row).assign(later=[False, False, True, True]), "machine"))
    >>> rows_of(found, 1).share
    array([0.5, 0.5])
    """
    column = [int(np.searchsorted(one.functions, function)) for one in all_cells]
    blocks = np.concatenate([[0], np.cumsum([one.block.max() + 1 for one in all_cells])])
    pairs = list(zip(all_cells, column, strict=True))
    sizes = [len(one.count) for one in all_cells]
    return Rows(
        application=np.repeat(np.arange(len(all_cells)), sizes),
        block=np.concatenate([one.block + first for one, first in zip(all_cells, blocks, strict=False)]),
        later=np.concatenate([one.later for one in all_cells]),
        count=np.concatenate([one.count for one in all_cells]),
        share=np.concatenate([one.seen[:, at] / one.count for one, at in pairs]),
        expected=np.concatenate([one.expected[:, at] for one, at in pairs]),
        between=np.repeat([one.between[at] for one, at in pairs], sizes),
        concentration=np.concatenate([one.concentration for one in all_cells]),
    )


def factor_of(rows: Rows, acts: Floats, drift: float) -> Factor:
    """Return the factor of a cause by penalised quasi-likelihood (Breslow and Clayton 1993).

    The mean is binomial with a level for each block, a random deviation of each application's later period, and the
    cause; the variance is that of independent samples and between clusters. Degrees of freedom are Welch's (1947) from
    the effective clusters with and without the cause, more by those that the variance between clusters was smoothed
    with.

    Parameters
    ----------
    rows : N cells of one function
    acts : (N,) 1 where the cause acts
    drift : variance of the deviation of an application's log odds in a period

    Examples
    --------
    >>> two = np.array([0.0, 1.0])
    >>> zero, many = np.zeros(2, np.int64), np.full(2, 1e4)
    >>> rows = Rows(zero, zero, two, many, np.array([0.1, 0.2]), np.full(2, 0.15), two * 0, two * 0 + 0.1)
    >>> round(float(np.exp(factor_of(rows, two, 0.0).log)), 3)
    2.25
    """
    start = np.log(rows.expected / (1.0 - rows.expected))
    level, effect, log, before = start, np.zeros(len(start)), 0.0, np.inf
    information, weight = 0.0, start
    for _ in range(_STEPS):
        line = np.clip(level + effect, start - _FAR, start + _FAR) + log * acts
        mean = 1.0 / (1.0 + np.exp(-line))
        both = mean * (1.0 - mean)
        weight = 1.0 / (1.0 / (rows.count * both) + rows.between * rows.concentration)
        wanted = line + (rows.share - mean) / both
        log, information, level, effect = _solved(rows, weight, (acts, wanted), drift)
        log = float(np.clip(log, -_FAR, _FAR))
        if abs(log - before) < 1e-6:
            break
        before = log
    if information <= 0 or not np.isfinite(log):
        return Factor(0.0, np.inf, 1.0)
    return Factor(log, float(1.0 / np.sqrt(information)), _freedom(rows, acts, weight))


def _solved(
    rows: Rows, weight: Floats, pair: tuple[Floats, Floats], drift: float
) -> tuple[float, float, Floats, Floats]:
    """Return the factor's logarithm, its information, and (N,) levels and deviations, by weighted least squares."""
    acts, wanted = pair
    blocks, applications = int(rows.block.max()) + 1, int(rows.application.max()) + 1
    load = np.bincount(rows.block, weight, blocks)

    def centred(values: Floats) -> Floats:
        return np.asarray(values - (np.bincount(rows.block, weight * values, blocks) / load)[rows.block])

    def within(one: Floats, other: Floats) -> Floats:
        return np.asarray(np.bincount(rows.application, weight * one * other, applications))

    x, z, period = centred(acts), centred(wanted), centred(rows.later)
    own = within(period, period)
    tied = np.zeros(applications) if drift <= 0 else 1.0 / (own + 0.5 / drift)
    common = within(x, period)
    information = float((within(x, x) - tied * common**2).sum())
    if information <= 1e-12:
        return 0.0, 0.0, wanted, wanted * 0.0
    log = float((within(x, z) - tied * common * within(z, period)).sum()) / information
    effect = (tied * within(period, z - log * x))[rows.application] * rows.later
    rest = wanted - log * acts - effect
    return log, information, (np.bincount(rows.block, weight * rest, blocks) / load)[rows.block], effect


def _freedom(rows: Rows, acts: Floats, weight: Floats) -> float:
    """Return degrees of freedom of the comparison of cells with and without the cause, in blocks that have both."""
    blocks = int(rows.block.max()) + 1
    load, inside = np.bincount(rows.block, weight, blocks), np.bincount(rows.block, weight * acts, blocks)
    mixed = ((inside > 0) & (inside < load))[rows.block]
    sides = []
    for here in (mixed & (acts > 0), mixed & (acts <= 0)):
        squares = float((weight[here] ** 2 * rows.concentration[here]).sum())
        sides.append(float(weight[here].sum()) ** 2 / squares if squares > 0 else 0.0)
    if min(sides) <= 1.0:
        return PRIOR_CLUSTERS
    return (
        sum(1.0 / side for side in sides) ** 2 / sum(1.0 / (side**2 * (side - 1.0)) for side in sides) + PRIOR_CLUSTERS
    )
