"""Cycles per instruction of pairs that were sampled little or not at all.

The best of many noisy numbers is too good to be true: an optimum over sampled CPI chooses pairs whose CPI was
underestimated (Smith and Winkler 2006, the optimiser's curse). So every log CPI is taken as the sum of an effect of
the job, one of the platform and an interaction, and the interaction is drawn towards 0 by as much as its own sampling
error makes advisable (empirical Bayes; Efron and Morris 1975): by τ² / (τ² + σ²), where τ² is the variance of
interactions between pairs. It is estimated from what residuals exceed their sampling errors (Paule and Mandel 1982).
Where a pair was not sampled, the effects alone predict it, with the interactions' spread as their error.
"""

from dataclasses import dataclass

import numpy as np

from analysis.profiling.affinity.table import Table
from analysis.statistics import Floats

_LEAST_SE, _MOST_SE = 1e-9, 2.0
_STEPS, _SPREADS = 60, 4.0
_UNKNOWN_SD = 0.5
_SINGULAR = 1e-9
_JOBS_PER_FEATURE, _LEAST_MISSES, _TYPICAL, _FARTHEST = 5, 0.1, 0.1, 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """What is believed of every pair's CPI."""

    cpi: Floats
    """(J, I) cycles per instruction: the median of what is believed; NaN where a job may not run."""
    log_se: Floats
    """(J, I) standard deviation of its logarithm; 0: known exactly."""
    interaction_sd: float
    """Spread of the interactions of job and platform, in logarithms."""
    shrunk: int
    """Pairs that were drawn towards the effects of job and platform."""
    filled: int
    """Pairs that were not sampled."""


def estimate(table: Table) -> Estimate:
    """Return the CPI of every pair: as it is where known exactly, shrunk where sampled, predicted where not.

    Parameters
    ----------
    table : CPI with standard errors, 0 where known exactly

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("a", "p", 1, 1.0, 9), ("a", "q", 1, 2.0, 9), ("b", "p", 1, 3.0, 9), ("b", "q", 1, 6.0, 9)]
    >>> frame = pd.DataFrame([*rows, ("c", "p", 1, 5.0, 9), ("c", "q", 0, np.nan, 9)])
    >>> found = estimate(Table.of(frame.set_axis(["job", "platform", "load", "cpi", "capacity"], axis=1)))
    >>> found.cpi.round(6).tolist(), found.filled
    ([[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]], 1)
    """
    seen = table.allowed & np.isfinite(table.cpi)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_cpi = np.where(seen, np.log(table.cpi), 0.0)
        error = np.where(seen, table.cpi_se / table.cpi, np.inf)
    exact = seen & (error <= _LEAST_SE)
    if (exact == table.allowed).all():
        return Estimate(np.where(seen, table.cpi, np.nan), np.zeros_like(log_cpi), 0.0, 0, 0)
    square = np.where(seen, np.minimum(error, _MOST_SE) ** 2, np.inf)
    spread, effects, effect_square = _fit(log_cpi, square, _features(table, log_cpi, square))
    kept = np.where(exact, 1.0, spread / (spread + square)) if spread > 0 else exact.astype(np.float64)
    middle = np.where(kept > 0, effects + kept * (log_cpi - effects), effects)
    variance = kept * np.where(exact, 0.0, np.where(seen, square, 0.0)) + (1.0 - kept) ** 2 * effect_square
    variance = np.where(seen, variance, spread + effect_square)
    return Estimate(
        np.where(exact, table.cpi, np.where(table.allowed, np.exp(middle), np.nan)),
        np.sqrt(np.where(table.allowed, variance, 0.0)),
        float(np.sqrt(spread)),
        int((seen & ~exact).sum()),
        int(table.unobserved.sum()),
    )


def _features(table: Table, log_cpi: Floats, square: Floats) -> Floats:
    """Return (J, K) what platforms weigh in each job: 1, and where misses are known, how much it waits for memory.

    That is the logarithm of its misses per instruction and of its CPI, both standardised by load. They are used only
    where there are enough jobs for it.
    """
    jobs = len(table.jobs)
    several = (np.isfinite(square).sum(axis=1) > 1).sum()
    if table.misses is None or several < _JOBS_PER_FEATURE * len(table.platforms) * 3:
        return np.ones((jobs, 1))
    total = np.where(table.total > 0, table.total, 0.0)
    missed = (table.misses * table.load).sum(axis=1) / np.where(total > 0, total, 1.0)
    least = float(np.median(missed[missed > 0])) * _LEAST_MISSES if (missed > 0).any() else 1.0
    weight = np.where(np.isfinite(square), 1.0 / (np.where(np.isfinite(square), square, 1.0) + _TYPICAL**2), 0.0)
    mean_cpi = (weight * log_cpi).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-300)
    columns = [np.ones(jobs)]
    for trait in (np.log(np.maximum(missed, least)), mean_cpi):
        centre = np.average(trait, weights=total)
        columns.append((trait - centre) / (float(np.sqrt(np.average((trait - centre) ** 2, weights=total))) or 1.0))
    return np.clip(np.column_stack(columns), -_FARTHEST, _FARTHEST)


def _fit(log_cpi: Floats, square: Floats, features: Floats) -> tuple[float, Floats, Floats]:
    """Return the variance of interactions, (J, I) effects of job and platform, and their squared errors.

    The variance is that at which the weighted squares of the residuals are as many as the degrees of freedom; it is
    sought between 0 and a spread that no interaction has.
    """
    seen = np.isfinite(square)
    known = np.where(seen, square, 1.0) + _LEAST_SE**2

    def weights(spread: float) -> Floats:
        return np.where(seen, 1.0 / (known + spread), 0.0)

    low, high = 0.0, _SPREADS
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        weight = weights(middle)
        effects, normal = _effects(log_cpi, weight, features)
        squares = float((weight * (log_cpi - effects) ** 2).sum())
        low, high = (middle, high) if squares > _degrees(weight, normal) else (low, middle)
    spread = 0.5 * (low + high) if low > 0 else 0.0
    weight = weights(spread)
    effects, normal = _effects(log_cpi, weight, features)
    if _degrees(weight, normal) <= 0:
        spread = _UNKNOWN_SD**2
    return spread, effects, _errors(weights(spread), normal, features)


def _effects(log_cpi: Floats, weight: Floats, features: Floats) -> tuple[Floats, Floats]:
    """Return (J, I) weighted least-squares effects of job and platform, and the normal matrix of platforms.

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
    return job[:, None] + features @ platform.reshape(platforms, width).T, normal


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
