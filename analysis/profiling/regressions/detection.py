"""How much more expensive a function must become for the alarm to report it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import ndtr, stdtrit

from analysis.profiling.regressions.causes import DriftBeside
from analysis.profiling.regressions.cells import PRIOR_CLUSTERS, CostCells
from analysis.profiling.regressions.factors import Factor, FunctionRows, exact_factor, rows_of
from models.arrays import Floats, Ints
from models.code.compiled import njit

FACTORS = np.geomspace(1.01, 64.0, 200)
"""Factors that are tried; a function that would have to grow by more than the last cannot be reported."""
_INTERPOLATED_AT = [0, 25, 50, 80, 120, len(FACTORS) - 1]
"""Those at which errors are worked out; between them they are interpolated."""


def expected_factor(all_cells: Sequence[CostCells], function: int, factor: float, drift: float) -> Factor:
    """Return the factor, with the error that its estimate would have, of a function that grew wherever it runs.

    The fit of `factor_of` to exemplary data (O'Brien 1986): counts as they are, each row's share what its block leads
    to expect, the odds of the later period's multiplied by the factor. Growth also moves the block's pooled share,
    about which the variance between clusters is measured; that variance is what the moments of such rows would give.

    Parameters
    ----------
    all_cells : of the applications that have the function
    function : place of the function
    factor : of the odds of its share, in all its applications from the later period on
    drift : variance of the deviation of an application's log odds in a period

    Examples
    --------
    >>> import pandas as pd
    >>> from analysis.profiling.regressions.cells import cells
    >>> rows = pd.DataFrame({"machine": range(80), "samples": 100.0, "value": 1.0}).assign(application="a")
    >>> rows = pd.concat([rows.assign(function=0), rows.assign(function=1, samples=900.0, value=9.0)])
    >>> tables = list(cells(rows.assign(later=rows["machine"] >= 40), "machine"))
    >>> expected = expected_factor(tables, 0, 1.5, 0.0)
    >>> round(float(np.exp(expected.log)), 3), expected.error < 0.1
    (1.5, True)
    """
    return _Exemplary.of(all_cells, function).factor(factor, drift)


@dataclass(frozen=True, slots=True, eq=False)
class _Exemplary:
    """A function's cells in A applications, B blocks of them all, and what of them does not depend on its growth."""

    rows: FunctionRows
    """Shares are those expected, before it grew."""
    side: Ints
    """(N,) twice the number of each row's block, one more in the later period."""
    load: Floats
    """(B, 2) samples before and after."""
    apart: Floats
    """(2, B, 2) sums of n and n², each times 1 − n / the cell's samples."""
    between: Floats
    """(A,) variance of log odds between clusters."""
    lasting: Floats
    """(A,) its part that is of units."""
    usual: Floats
    """(A,) usual variance."""
    pairs: Floats
    """(A,)"""

    @classmethod
    def of(cls, all_cells: Sequence[CostCells], function: int) -> Self:
        """Return that of a function; parameters as of `expected_factor`."""
        rows = rows_of(all_cells, function, observed=False)
        blocks = len(rows.application)
        side = 2 * rows.within + (rows.later > 0)
        own = np.concatenate([cells.count / cells.size[cells.cell] for cells in all_cells])
        load, *apart = (
            np.bincount(side, numbers, 2 * blocks).reshape(blocks, 2).astype(np.float64)
            for numbers in (rows.count, rows.count * (1.0 - own), rows.count**2 * (1.0 - own))
        )
        places = [int(np.searchsorted(cells.functions, function)) for cells in all_cells]
        lasting, passing = (
            np.array([float(values[at]) for values, at in zip(of_all, places, strict=True)])
            for of_all in ([cells.lasting for cells in all_cells], [cells.passing for cells in all_cells])
        )
        part = np.divide(lasting, lasting + passing, out=np.zeros(len(places)), where=lasting + passing > 0)
        usual, pairs = np.array([[cells.usual, cells.pairs] for cells in all_cells]).T
        return cls(rows, side, load, np.array(apart), lasting + passing, part, usual, pairs)

    def factor(self, factor: float, drift: float) -> Factor:
        """Return the factor with the error of its estimate; parameters as of `expected_factor`."""
        rows, base = self.rows, self.rows.expected
        shares = np.stack([base, factor * base / (1.0 - base + factor * base)], axis=1)
        pooled = (self.load * shares).sum(axis=1) / np.maximum(self.load.sum(axis=1), 1e-300)
        owner = rows.application
        several = self.pairs > 1e-9
        both, alone = (pooled * (1.0 - pooled))[:, None], shares * (1.0 - shares)
        square = self.apart[0] * alone + self.apart[1] * self.between[owner, None] * alone**2
        apart = np.bincount(owner, (square / both**2 - self.apart[0] / both).sum(axis=1))
        own = np.where(several, apart / np.where(several, self.pairs, 1.0), self.between)
        support = np.zeros(len(several))
        inside = (self.usual * several)[owner] * both[:, 0]
        _add_support((rows.count, rows.within), inside, owner, support)
        grown = (own * support + self.usual * PRIOR_CLUSTERS) / (support + PRIOR_CLUSTERS)
        # What of the variance was the function's own beforehand stays so.
        grown = np.maximum(grown, self.between)
        loads, passing = np.zeros((2, len(rows.block))), ((1.0 - self.lasting) * grown)[owner]
        _add_precision((rows.count, self.side, rows.unit), shares.ravel(), passing, loads)
        lasting = (self.lasting * grown)[owner]
        return exact_factor(replace(rows, lasting=lasting), loads, float(np.log(factor)), drift)


@njit(nogil=True, borrows=True)
def _add_support(rows: tuple[Floats, Ints], inside: Floats, owner: Ints, into: Floats) -> None:
    """Add up what rows tell of the variance between clusters, by application.

    Parameters
    ----------
    rows : (N,) counts and blocks
    inside : (B,) usual dispersion beyond independent samples, for each sample of a row
    owner : (B,) application of each block
    into : (A,)
    """
    count, within = rows
    for row in range(len(count)):
        beyond = count[row] * inside[within[row]]
        into[owner[within[row]]] += (beyond / (1.0 + beyond)) ** 2


@njit(nogil=True, borrows=True)
def _add_precision(rows: tuple[Floats, Ints, Ints], share: Floats, passing: Floats, into: Floats) -> None:
    """Add up the precision of rows within units, by unit.

    Parameters
    ----------
    rows : (N,) counts, twice the number of each row's block and one more in the later period, units
    share : (2 B,) share of the function before and after
    passing : (B,) variance of log odds within units
    into : (2, U) of all rows, and of those of the later period
    """
    count, side, unit = rows
    for row in range(len(count)):
        own = share[side[row]]
        weight = 1.0 / (1.0 / (count[row] * own * (1.0 - own)) + passing[side[row] // 2])
        into[0, unit[row]] += weight
        if side[row] % 2:
            into[1, unit[row]] += weight


def chances(
    all_cells: Sequence[CostCells],
    drifts: DriftBeside,
    function: int,
    *,
    p_value: float,
    least: float,
    evidence: float = 0.0,
) -> Floats:
    """Return the probabilities that a function is reported when it grew by each of `FACTORS`.

    It is reported if δ̂ = (θ̂ − ln `least`) / s exceeds Student's quantile q of `p_value` with ν degrees of freedom. θ̂
    is normal about θ = ln factor with the error s, which itself is known to ν degrees of freedom only, so the
    probability is Φ((δ − q) / √(1 + q² / 2ν)) with δ = (θ − ln `least`) / s (Johnson and Welch 1940).

    Parameters
    ----------
    all_cells : of all applications
    drifts : of them
    function : place of the function
    p_value : above which it is not reported, 0..1
    least : factor that must significantly be exceeded
    evidence : what the square of θ̂ / s must reach in any case
    """
    here = [cells for cells in all_cells if function in cells.functions]
    if not here:
        return np.zeros(len(FACTORS))
    exemplary = _Exemplary.of(here, function)
    fits = [exemplary.factor(factor, drifts.grown(function, factor)) for factor in FACTORS[_INTERPOLATED_AT].tolist()]
    if not all(np.isfinite(factor_error.error) for factor_error in fits):
        return np.zeros(len(FACTORS))
    theta, places = np.log(FACTORS), np.log(FACTORS[_INTERPOLATED_AT])
    error = np.interp(theta, places, [factor_error.error for factor_error in fits])
    freedom = np.interp(theta, places, [factor_error.freedom for factor_error in fits])
    q = np.maximum(-stdtrit(freedom, p_value), np.sqrt(evidence) - np.log(least) / error)
    delta = (theta - np.log(least)) / error
    return np.asarray(ndtr((delta - q) / np.sqrt(1.0 + q**2 / (2.0 * freedom))), dtype=np.float64)


def least_factor(chance: Floats, probability: float) -> float:
    """Return the least of `FACTORS` at which the mean chance over functions reaches a probability; infinite: none.

    Parameters
    ----------
    chance : (n, k) of n functions at k factors
    probability : wanted, 0..1

    Examples
    --------
    >>> round(least_factor(np.array([np.linspace(0, 1, len(FACTORS))]), 0.5), 1), least_factor(np.zeros((1, 200)), 0.5)
    (8.1, inf)
    """
    enough = np.flatnonzero(chance.mean(axis=0) >= probability)
    return float(FACTORS[enough[0]]) if len(enough) else float("inf")
