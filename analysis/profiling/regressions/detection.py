"""How much more expensive a function must become for the alarm to report it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr
from scipy.stats import t

from analysis.profiling.regressions.causes import drift_behind
from analysis.profiling.regressions.cells import CostCells, smoothed
from analysis.profiling.regressions.factors import Factor, factor_of, rows_of
from models.arrays import Floats

FACTORS = np.geomspace(1.01, 64.0, 200)
"""Factors that are tried; a function that would have to grow by more than the last cannot be reported."""
_FITTED = [0, 25, 50, 80, 120, len(FACTORS) - 1]
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
    rows, shares, expected, variances = rows_of(all_cells, function), [], [], []
    for cells in all_cells:
        share, block, variance = _grown(cells, int(np.searchsorted(cells.functions, function)), factor)
        shares.append(share)
        expected.append(block)
        variances.append(variance)
    lasting = np.repeat([pair[0] for pair in variances], [len(cells.block) for cells in all_cells])
    passing = np.repeat([pair[1] for pair in variances], [len(cells.count) for cells in all_cells])
    exemplary = replace(
        rows, share=np.concatenate(shares), expected=np.concatenate(expected), lasting=lasting, passing=passing
    )
    return factor_of(exemplary, rows.later, drift)


def _grown(cells: CostCells, at: int, factor: float) -> tuple[Floats, Floats, tuple[float, float]]:
    """Return (R,) shares of a grown function, (R,) pooled ones, and its variances between units and within."""
    count, base = cells.count, cells.expected[:, at]
    share = np.where(cells.later > 0, factor * base / (1.0 - base + factor * base), base)
    block = cells.block[cells.unit]
    pooled = (np.bincount(block, count * share) / np.maximum(np.bincount(block, count), 1e-300))[block]
    between = float(cells.lasting[at] + cells.passing[at])
    both, alone = pooled * (1.0 - pooled), share * (1.0 - share)
    own = between
    if cells.pairs > 1e-9:
        square = count * alone + count**2 * between * alone**2
        apart = (square / both**2 - count / both) * (1.0 - count / cells.size[cells.cell])
        own = float(apart.sum()) / cells.pairs
    several = cells.pairs > 1e-9
    grown = float(smoothed(np.array([own]), cells.usual, (count * both * several)[:, None])[0])
    lasting = float(cells.lasting[at]) / between if between > 0 else 0.0
    # What of the variance was the function's own beforehand stays so.
    grown = max(grown, between)
    return share, pooled, (lasting * grown, (1.0 - lasting) * grown)


def drift_beside(
    all_cells: Sequence[CostCells], moved: Sequence[tuple[Floats, Floats]], function: int, factor: float
) -> float:
    """Return the drift that would be estimated beside a function that grew.

    Shares add up to 1: if a function's odds grow by φ from a share p, those of all others of its application fall by
    ln(1 − p + φ p), which counts as a deviation of the period.

    Parameters
    ----------
    all_cells : of all applications
    moved : `causes.changes` of them
    function : place of the function
    factor : of the odds of its share

    Examples
    --------
    >>> drift_beside([], [], 0, 2.0)
    0.0
    """
    beside = []
    for cells, (change, variance) in zip(all_cells, moved, strict=True):
        share = float(cells.by_function[:, cells.functions == function].sum() / cells.count.sum())
        beside.append((change - np.log(1.0 - share + factor * share), variance))
    return drift_behind(beside)


def chances(
    all_cells: Sequence[CostCells],
    moved: Sequence[tuple[Floats, Floats]],
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
    all_cells, moved, function : as in `drift_beside`
    p_value : above which it is not reported, 0..1
    least : factor that must significantly be exceeded
    evidence : what the square of θ̂ / s must reach in any case
    """
    here = [cells for cells in all_cells if function in cells.functions]
    if not here:
        return np.zeros(len(FACTORS))
    tried = FACTORS[_FITTED].tolist()
    fits = [
        expected_factor(here, function, factor, drift_beside(all_cells, moved, function, factor)) for factor in tried
    ]
    if not all(np.isfinite(factor_error.error) for factor_error in fits):
        return np.zeros(len(FACTORS))
    theta, places = np.log(FACTORS), np.log(FACTORS[_FITTED])
    error = np.interp(theta, places, [factor_error.error for factor_error in fits])
    freedom = np.interp(theta, places, [factor_error.freedom for factor_error in fits])
    q = np.maximum(t.isf(p_value, freedom), np.sqrt(evidence) - np.log(least) / error)
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
