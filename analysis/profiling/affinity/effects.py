"""Effects of job and platform on log CPI: weighted least squares, their errors, and predictions of cells left out."""

from collections.abc import Callable

import numpy as np

from analysis.profiling.affinity.terms import Terms
from models.arrays import Floats, Ints

LEAST_SE = 1e-9
"""Standard error of log CPI below which it counts as known exactly."""
_STEPS, _SPREADS = 60, 4.0
_UNKNOWN_SD = 0.5
_SINGULAR = 1e-9


def fit(terms: Terms) -> tuple[float, Floats, Floats]:
    """Return the variance of interactions, (J, I) effects of job and platform, and their squared errors.

    The variance is that at which the weighted squares of the residuals are as many as the degrees of freedom (Paule
    and Mandel 1982); it is sought between 0 and a spread that no interaction has.

    Parameters
    ----------
    terms : observations and features
    """
    log_cpi, features = terms.log_cpi, terms.features

    def weights(spread: float) -> Floats:
        return _weights(terms.square, spread)

    def excess(spread: float) -> bool:
        weight = weights(spread)
        effects, normal, _ = _solved(log_cpi, weight, features)
        return float((weight * (log_cpi - effects) ** 2).sum()) > _degrees(weight, normal)

    spread = variance_until(excess)
    weight = weights(spread)
    effects, normal, _ = _solved(log_cpi, weight, features)
    if _degrees(weight, normal) <= 0:
        spread = _UNKNOWN_SD**2
    return spread, effects, _errors(weights(spread), normal, features)


def variance_until(excess: Callable[[float], bool]) -> float:
    """Return the variance at which residuals are no longer greater than expected, 0 if they never are (bisection).

    Parameters
    ----------
    excess : whether residuals are too great at a variance; from some variance on they are not

    Examples
    --------
    >>> round(variance_until(lambda variance: variance < 0.25), 12), variance_until(lambda variance: False)
    (0.25, 0.0)
    """
    low, high = 0.0, _SPREADS
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) else (low, middle)
    return 0.5 * (low + high) if low > 0 else 0.0


def left_out(terms: Terms, without: Terms, platform: int, jobs: Ints, spread: float) -> tuple[Floats, Floats]:
    """Return effects of jobs on a platform, fitted without the cell that is predicted, and their squared errors.

    Each job's row is taken out of the normal equations and put back without its cell on that platform.

    Parameters
    ----------
    terms : of the whole table
    without : of the table in which nothing was sampled on the platform
    platform : whose cells are left out, one at a time
    jobs : (n,) of which cells are left out; each was seen on another platform too
    spread : variance of interactions, held
    """
    weight = _weights(terms.square, spread)
    _, whole, aim = _solved(terms.log_cpi, weight, terms.features)
    own = _rows(terms.log_cpi[jobs], weight[jobs], terms.features[jobs])
    lighter, features, log_cpi = _weights(without.square, spread)[jobs], without.features[jobs], without.log_cpi[jobs]
    rest = _rows(log_cpi, lighter, features)
    inverse = np.linalg.pinv(whole - own[0] + rest[0], rcond=_SINGULAR, hermitian=True)
    slopes = np.einsum("nab,nb->na", inverse, aim - own[1] + rest[1])
    total = lighter.sum(axis=1)
    contrast = -(lighter[:, :, None] * features[:, None, :]).reshape(len(jobs), -1) / total[:, None]
    width = features.shape[1]
    contrast[:, platform * width : (platform + 1) * width] += features
    effect = (lighter * log_cpi).sum(axis=1) / total + (contrast * slopes).sum(axis=1)
    square = np.einsum("na,nab,nb->n", contrast, inverse, contrast)
    return effect, np.maximum(square, 0.0) + 1.0 / total


def _weights(square: Floats, spread: float) -> Floats:
    """Return (J, I) weights of observations; 0 where there is none."""
    observed = np.isfinite(square)
    return np.where(observed, 1.0 / (np.where(observed, square, 1.0) + LEAST_SE**2 + spread), 0.0)


def _rows(log_cpi: Floats, weight: Floats, features: Floats) -> tuple[Floats, Floats]:
    """Return what each of n jobs adds to the normal equations of platforms: (n, IK, IK) and (n, IK)."""
    total = weight.sum(axis=1)
    known = np.where(total > 0, total, 1.0)
    mean = (weight * log_cpi).sum(axis=1) / known
    carried = (weight[:, :, None] * features[:, None, :]).reshape(len(weight), -1)
    normal = -np.einsum("na,nb->nab", carried, carried / known[:, None])
    width = features.shape[1]
    for i in range(weight.shape[1]):
        block = slice(i * width, (i + 1) * width)
        normal[:, block, block] += np.einsum("n,na,nb->nab", weight[:, i], features, features)
    return normal, carried * (np.repeat(log_cpi, width, axis=1) - mean[:, None])


def _solved(log_cpi: Floats, weight: Floats, features: Floats) -> tuple[Floats, Floats, Floats]:
    """Return (J, I) weighted least-squares effects of job and platform, and the normal equations of platforms.

    Every platform has a coefficient for each of the K features; the jobs' own effects are eliminated, so that only a
    system of I × K equations is solved. Platforms that no job links to the others are drawn to the mean.
    """
    platforms, width = weight.shape[1], features.shape[1]
    total = weight.sum(axis=1)
    known = np.where(total > 0, total, 1.0)
    mean = (weight * log_cpi).sum(axis=1) / known
    carried = (weight[:, :, None] * features[:, None, :]).reshape(len(weight), -1)
    normal = -(carried.T @ (carried / known[:, None]))
    for i in range(platforms):
        block = slice(i * width, (i + 1) * width)
        normal[block, block] += (weight[:, i, None] * features).T @ features
    aim = carried.T @ (-mean) + (carried * np.repeat(log_cpi, width, axis=1)).sum(axis=0)
    platform = np.linalg.pinv(normal, rcond=_SINGULAR, hermitian=True) @ aim
    job = mean - (carried @ platform) / known
    return job[:, None] + features @ platform.reshape(platforms, width).T, normal, aim


def _degrees(weight: Floats, normal: Floats) -> int:
    """Return observations less what was estimated from them."""
    rank = np.linalg.matrix_rank(normal, tol=_SINGULAR * max(1e-300, float(np.abs(normal).max())), hermitian=True)
    return int((weight > 0).sum()) - int((weight.sum(axis=1) > 0).sum()) - int(rank)


def _errors(weight: Floats, normal: Floats, features: Floats) -> Floats:
    """Return (J, I) squared errors of the effects."""
    platforms, width = weight.shape[1], features.shape[1]
    total = weight.sum(axis=1)
    known = np.where(total > 0, total, 1.0)
    inverse = np.linalg.pinv(normal, rcond=_SINGULAR, hermitian=True)
    mean = (weight[:, :, None] * features[:, None, :]).reshape(len(weight), -1) / known[:, None]
    square = np.empty(weight.shape)
    for i in range(platforms):
        contrast = -mean
        contrast[:, i * width : (i + 1) * width] += features
        square[:, i] = ((contrast @ inverse) * contrast).sum(axis=1)
    return np.maximum(square, 0.0) + np.where(total > 0, 1.0 / known, 0.0)[:, None]
