"""Group-sequential boundaries: standard errors that each look needs if an error is spent over looks as they come."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from analysis.statistics import normal_quantile, normal_tail
from models.arrays import Floats
from models.errors import InputError

Shape: TypeAlias = Literal["obrien-fleming", "pocock"]

_PATHS = 8192
_DIMENSIONS = 64
_FARTHEST = 40.0
_LEAST_SPREAD = 1e-4
"""Least conditional standard deviation of a look: looks that add nothing are taken to add so little."""
_MOST = 2_000
"""Looks; the work grows with their square."""


def obrien_fleming(share: npt.ArrayLike, error: float) -> Floats:
    """Return the two-sided error spent up to each share of the information, each side as Lan and DeMets (1983).

    Examples
    --------
    >>> obrien_fleming([0.3, 0.6, 1.0], 0.05).round(4).tolist()
    [0.0001, 0.0076, 0.05]
    """
    part = np.minimum(np.asarray(share, dtype=np.float64), 1.0)
    return np.asarray(4.0 * normal_tail(-normal_quantile(error / 4.0) / np.sqrt(part)), dtype=np.float64)


def pocock(share: npt.ArrayLike, error: float) -> Floats:
    """Return the error spent up to each share of the information (Lan and DeMets 1983).

    Examples
    --------
    >>> pocock([0.5, 1.0], 0.05).round(4).tolist()
    [0.031, 0.05]
    """
    part = np.minimum(np.asarray(share, dtype=np.float64), 1.0)
    return np.asarray(error * np.log1p((np.e - 1.0) * part), dtype=np.float64)


SHAPES: Mapping[Shape, Callable[[npt.ArrayLike, float], Floats]] = {
    "obrien-fleming": obrien_fleming,
    "pocock": pocock,
}
"""Error spent by share of information; a share above 1 spends no more."""


def canonical(information: npt.ArrayLike) -> Floats:
    """Return the correlations of looks whose estimates have independent increments, (K, K).

    Parameters
    ----------
    information : (K,) above 0, not falling, in any unit (Jennison and Turnbull 2000, equation 11.1)

    Examples
    --------
    >>> canonical([1.0, 4.0]).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    root = np.sqrt(np.asarray(information, dtype=np.float64))
    return np.asarray(np.minimum(root[:, None] / root, root / root[:, None]), dtype=np.float64)


def boundaries(spent: npt.ArrayLike, correlation: Floats) -> Floats:
    """Return the distance from the null, in standard errors, at which each look rules it out; both sides alike.

    Look k rules the null out, where no earlier one did, with probability spent[k] - spent[k - 1]. The recursion of
    Armitage, McPherson and Rowe (1969) needs independent increments, which cumulative means of autocorrelated values
    do not have. So each look is conditioned on all before it: paths that crossed no boundary are carried along, each
    with its weight, and what crosses next is integrated exactly given the path (Geweke, Hajivassiliou and Keane; Genz
    1992). Paths are scrambled Sobol points: of an error of 5% the looks spend what they should to some 2% of itself, of
    1% and 0.1% to some 12%; smaller ones, and looks that spend less than 1e-4, have boundaries that hardly a path comes
    near: they are not known. A look that spends nothing has no boundary (infinite). Up to 64 looks, later ones do not
    move the boundary of an earlier.

    Parameters
    ----------
    spent : (K,) two-sided error spent up to each look, not falling, below 1
    correlation : (K, K) of the estimates at the looks

    Raises
    ------
    InputError
        If there are more than 2,000 looks.

    Examples
    --------
    >>> boundaries(obrien_fleming(np.arange(1, 4) / 3, 0.05), canonical([1.0, 2.0, 3.0])).round(2).tolist()
    [3.71, 2.51, 1.99]
    """
    steps = np.diff(np.asarray(spent, dtype=np.float64), prepend=0.0)
    looks = len(steps)
    if looks > _MOST:
        raise InputError(f"error is spent over {_MOST:,} looks at most, got {looks:,}; look less often")
    dimensions = max(_DIMENSIONS, 1 << (looks - 1).bit_length())
    from scipy.stats.qmc import Sobol

    points = Sobol(dimensions, rng=np.random.default_rng(0)).random(_PATHS)
    factor = _factor(correlation)
    scores, weight = np.zeros((_PATHS, looks)), np.full(_PATHS, 1.0 / _PATHS)
    critical = np.full(looks, np.inf)
    for k in range(looks):
        mean, spread = scores[:, :k] @ factor[k, :k], max(factor[k, k], _LEAST_SPREAD)
        if steps[k] > 0.0:
            critical[k] = _critical(float(steps[k]), weight, mean, spread)
        low, high = ndtr((-critical[k] - mean) / spread), ndtr((critical[k] - mean) / spread)
        inside = high - low
        weight = weight * inside
        scores[:, k] = ndtri(np.clip(low + points[:, k] * inside, 1e-300, 1.0 - 1e-16))
    return critical


def _critical(step: float, weight: Floats, mean: Floats, spread: float) -> float:
    """Return the boundary that so much of the paths' weight crosses."""

    def too_much(critical: float) -> float:
        beyond = np.exp(np.logaddexp(log_ndtr((mean - critical) / spread), log_ndtr((-mean - critical) / spread)))
        return float(np.log(max(float(weight @ beyond), 1e-300)) - np.log(step))

    if too_much(0.0) <= 0.0:
        return 0.0
    return float(brentq(too_much, 0.0, _FARTHEST, xtol=1e-8))


def _factor(correlation: Floats) -> Floats:
    """Return the lower triangle whose square are the correlations, or what is nearest to them and has one."""
    values, vectors = np.linalg.eigh((correlation + correlation.T) / 2.0)
    half = vectors * np.sqrt(np.maximum(values, 0.0))
    _, upper = np.linalg.qr(half.T)
    lower = upper.T * np.where(np.diag(upper) < 0.0, -1.0, 1.0)
    return np.asarray(lower / np.linalg.norm(lower, axis=1, keepdims=True), dtype=np.float64)
