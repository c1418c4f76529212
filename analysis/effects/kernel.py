"""The compiled part of `adjusted`: one draw of treated machines after another.

All compiled helpers live in this file because numba's cache does not look into others.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from analysis.statistics import Bools, Floats, Ints

NONE, SHRUNKEN, RANDOM = range(3)
_PRIOR = 10.0
"""Degrees of freedom that the variance over all jobs counts for in the variance of one."""
_RIDGE = 1e-9
_TINY = 1e-12
_LEAST = 0.1
"""What is left of a cluster's residual at least: one machine that holds nearly all of a job must not decide all."""
_FEWEST = 1.2
"""Effective clusters of an arm below which nothing can be said."""


class Sums(NamedTuple):
    """Cells of M machines and J jobs with K covariates, and their sums over all machines by job."""

    start: Ints
    cluster: Ints
    """(M,) of each machine."""
    job: Ints
    group: Ints
    """Number of the cell's pair of cluster and job."""
    held: Floats
    x: Floats
    y: Floats
    yy: Floats
    xy: Floats
    weight: Floats
    all_held: Floats
    all_x: Floats
    all_xx: Floats
    all_y: Floats
    all_yy: Floats
    all_xy: Floats


class How(NamedTuple):
    """How to pool, the power of leverage, whether to correct for few clusters, whether the level is known."""

    pooling: int
    leverage: float
    few: bool
    known: bool


class Seen(NamedTuple):
    """What a draw shows of each job, arm by arm: (J, 2) or (J, 2, K)."""

    total: Floats
    clusters: Floats
    held: Floats
    """(G, 2) what each pair of cluster and job holds of its job's total."""
    x: Floats
    y: Floats
    yy: Floats
    xy: Floats


class Fit(NamedTuple):
    """Slopes of covariates, what each job's effect counts for, and the (J, 2) means that residuals are taken from."""

    slope: Floats
    gain: Floats
    mean: Floats


@njit(cache=True)
def draws(sums: Sums, treated: Bools, how: How, out: Floats) -> None:
    """Write change, standard error and degrees of freedom of each draw into `out`, (R, 3)."""
    for r in range(treated.shape[0]):
        seen = _seen(sums, treated[r], how.known)
        slope = _slopes(sums, seen)
        effect, variance, level, mean = _effects(sums, seen, slope, how.known)
        within = _between(effect, variance, level, sums.weight)
        gain, shrink, middle = _gains(effect, variance, level * sums.weight, within, how.pooling)
        fitted = middle + shrink * (effect - middle)
        mean[:, 1] = mean[:, 0] + level * np.where(variance > 0.0, fitted, 0.0)
        change = (gain * np.where(variance > 0.0, effect, 0.0)).sum()
        squares, clusters = _spread(sums, seen, Fit(slope, gain / level, mean), treated[r], how)
        left = within * ((gain - _share(level * sums.weight)) ** 2).sum()
        left += (gain**2 * variance * _alone(seen, how.known)).sum()
        out[r, 0] = change
        out[r, 1], out[r, 2] = _error(squares, clusters, left, how)


@njit(cache=True)
def _share(weight: Floats) -> Floats:
    share: Floats = weight / weight.sum()
    return share


@njit(cache=True)
def _seen(sums: Sums, treated: Bools, known: bool) -> Seen:
    jobs, covariates = sums.all_x.shape
    total, y, yy = np.zeros((jobs, 2)), np.zeros((jobs, 2)), np.zeros((jobs, 2))
    x, xy = np.zeros((jobs, 2, covariates)), np.zeros((jobs, 2, covariates))
    if not known:
        total[:, 0], x[:, 0] = sums.all_held, sums.all_x
        y[:, 0], yy[:, 0], xy[:, 0] = sums.all_y, sums.all_yy, sums.all_xy
    for machine in range(treated.size):
        if not treated[machine]:
            continue
        for c in range(sums.start[machine], sums.start[machine + 1]):
            j = sums.job[c]
            total[j, 1] += sums.held[c]
            y[j, 1] += sums.y[c, 1]
            yy[j, 1] += sums.yy[c, 1]
            x[j, 1] += sums.x[c]
            xy[j, 1] += sums.xy[c, 1]
            if not known:
                total[j, 0] -= sums.held[c]
                y[j, 0] -= sums.y[c, 0]
                yy[j, 0] -= sums.yy[c, 0]
                x[j, 0] -= sums.x[c]
                xy[j, 0] -= sums.xy[c, 0]
    clusters, held = _held(sums, treated, known)
    return Seen(total, clusters, held, x, y, yy, xy)


@njit(cache=True)
def _held(sums: Sums, treated: Bools, known: bool) -> tuple[Floats, Floats]:
    """Return the clusters of each job, (J, 2), and what each pair of cluster and job holds, (G, 2)."""
    clusters, held = np.zeros((sums.all_held.size, 2)), np.zeros((sums.group.max() + 1, 2))
    for machine in range(treated.size):
        arm = 1 if treated[machine] else 0
        if known and arm == 0:
            continue
        for c in range(sums.start[machine], sums.start[machine + 1]):
            if held[sums.group[c], arm] == 0.0:
                clusters[sums.job[c], arm] += 1.0
            held[sums.group[c], arm] += sums.held[c]
    return clusters, held


@njit(cache=True)
def _alone(seen: Seen, known: bool) -> Floats:
    """Return which share of each job's variance comes from an arm of one cluster, which has no spread to show."""
    jobs = seen.total.shape[0]
    share = np.zeros(jobs)
    for j in range(jobs):
        if seen.clusters[j, 1] < 0.5 or (seen.clusters[j, 0] < 0.5 and not known):
            continue
        one, other = 1.0 / seen.total[j, 1], 0.0 if known else 1.0 / seen.total[j, 0]
        alone = one if seen.clusters[j, 1] < 1.5 else 0.0
        alone += other if seen.clusters[j, 0] < 1.5 else 0.0
        share[j] = alone / (one + other)
    return share


@njit(cache=True)
def _slopes(sums: Sums, seen: Seen) -> Floats:
    """Return the slopes of the analysis of covariance, within jobs and arms."""
    jobs, covariates = sums.all_x.shape
    if covariates == 0:
        return np.zeros(0)
    xx, xy = np.zeros((covariates, covariates)), np.zeros(covariates)
    for j in range(jobs):
        if seen.clusters[j].sum() < 0.5:
            continue
        xx += sums.all_xx[j]
        for arm in range(2):
            n = seen.total[j, arm]
            if seen.clusters[j, arm] < 0.5:
                continue
            for k in range(covariates):
                xy[k] += seen.xy[j, arm, k] - seen.x[j, arm, k] * seen.y[j, arm] / n
                for m in range(covariates):
                    xx[k, m] -= seen.x[j, arm, k] * seen.x[j, arm, m] / n
    for k in range(covariates):
        xx[k, k] += _RIDGE * max(xx[k, k], 0.0) + _TINY
    return np.linalg.solve(xx, xy).astype(np.float64)


@njit(cache=True)
def _effects(sums: Sums, seen: Seen, slope: Floats, known: bool) -> tuple[Floats, Floats, Floats, Floats]:
    """Return each job's relative effect, its variance (0: not seen in both arms), its level and its adjusted means."""
    jobs = sums.all_x.shape[0]
    effect, variance, level, mean = np.zeros(jobs), np.zeros(jobs), np.ones(jobs), np.zeros((jobs, 2))
    squares, freedom = np.zeros(jobs), np.zeros(jobs)
    for j in range(jobs):
        for arm in range(2):
            n = seen.total[j, arm]
            if seen.clusters[j, arm] < 0.5:
                continue
            adjusted, square = seen.y[j, arm], seen.yy[j, arm]
            for k in range(slope.size):
                adjusted -= slope[k] * seen.x[j, arm, k]
                square -= 2.0 * slope[k] * seen.xy[j, arm, k]
            mean[j, arm] = adjusted / n
            squares[j] += square - adjusted * adjusted / n
            freedom[j] += n - 1.0
            if arm == 0 and seen.y[j, 0] > 0.0:
                level[j] = seen.y[j, 0] / n
        if not known or seen.clusters[j, 1] > 0.5:
            for k in range(slope.size):
                for m in range(slope.size):
                    squares[j] += slope[k] * slope[m] * sums.all_xx[j, k, m]
    pooled = max(squares.sum(), 0.0) / max(freedom.sum(), 1.0)
    for j in range(jobs):
        one, other = seen.total[j, 1], seen.total[j, 0]
        if seen.clusters[j, 1] < 0.5 or (seen.clusters[j, 0] < 0.5 and not known):
            continue
        if known:
            mean[j, 0] = 1.0
        effect[j] = (mean[j, 1] - mean[j, 0]) / level[j]
        spread = (max(squares[j], 0.0) + _PRIOR * pooled) / (freedom[j] + _PRIOR)
        variance[j] = max(spread * (1.0 / one + (0.0 if known else 1.0 / other)) / level[j] ** 2, _TINY)
    return effect, variance, level, mean


@njit(cache=True)
def _between(effect: Floats, variance: Floats, level: Floats, weight: Floats) -> float:
    """Return the variance of true effects between jobs, by moments (DerSimonian and Laird 1986)."""
    there = variance > 0.0
    if there.sum() < 2:
        return _TINY
    share = np.where(there, weight * level, 0.0)
    typical = share.sum() / (share / np.where(there, variance, 1.0)).sum()
    trust = np.where(there, 1.0 / (variance + typical), 0.0)
    trust /= trust.sum()
    middle = (trust * effect).sum()
    found = (trust * (effect - middle) ** 2).sum() - (trust * (1.0 - trust) * variance).sum()
    between: float = max(found / (1.0 - (trust**2).sum()), _TINY)
    return between


@njit(cache=True)
def _gains(
    effect: Floats, variance: Floats, weight: Floats, within: float, pooling: int
) -> tuple[Floats, Floats, float]:
    """Return what each job's effect counts for in the fleet's, how far it is trusted, and the mean it shrinks to."""
    there = variance > 0.0
    share = weight / weight.sum()
    trust = np.where(there, within / (within + variance), 0.0)
    if pooling == NONE:
        trust = np.where(there, 1.0, 0.0)
    centre = np.where(there, trust / within if pooling == RANDOM else share * trust, 0.0)
    centre /= centre.sum()
    if pooling == RANDOM:
        return centre, trust, (centre * effect).sum()
    return share * trust + (share * (1.0 - trust)).sum() * centre, trust, (centre * effect).sum()


@njit(cache=True)
def _spread(sums: Sums, seen: Seen, fit: Fit, treated: Bools, how: How) -> tuple[Floats, Floats]:
    """Return of either arm the clustered sum of squares and, for its number of clusters, what each counts for.

    A job on one cluster of an arm leaves no residual there. The clusters' counts are Σ w² and Σ w⁴ of their weights in
    the estimate, from which degrees of freedom follow (Satterthwaite 1946) if what the instances of a cluster share
    is most of the error.
    """
    slope, gain, mean, cluster = fit.slope, fit.gain, fit.mean, sums.cluster
    size = cluster.max() + 1
    total, weight = np.zeros((size, 2)), np.zeros((size, 2))
    each = np.where(seen.total > _TINY, 1.0 / np.maximum(seen.total, _TINY), 0.0)
    for machine in range(treated.size):
        arm = 1 if treated[machine] else 0
        if how.known and arm == 0:
            continue
        for c in range(sums.start[machine], sums.start[machine + 1]):
            j = sums.job[c]
            counts = gain[j] * each[j, arm]
            if counts == 0.0:
                continue
            weight[cluster[machine], arm] += counts * sums.held[c]
            if seen.clusters[j, arm] < 1.5:
                continue
            residual = sums.y[c, arm] - sums.held[c] * mean[j, arm]
            for k in range(slope.size):
                residual -= slope[k] * sums.x[c, k]
            if how.leverage > 0.0:
                residual *= _grown(seen.held[sums.group[c], arm] * each[j, arm], how.leverage)
            total[cluster[machine], arm] += counts * residual
    clusters = np.zeros(2)
    for arm in range(2):
        fourth = (weight[:, arm] ** 4).sum()
        clusters[arm] = (weight[:, arm] ** 2).sum() ** 2 / fourth if fourth > 0.0 else 0.0
    return np.array([(total[:, 0] ** 2).sum(), (total[:, 1] ** 2).sum()]), clusters


@njit(cache=True)
def _grown(own: float, leverage: float) -> float:
    """Return (1 - own) to the power of minus the leverage, 0.5 or 1; a series where that is as exact and faster."""
    if leverage < 1.0 and own < 0.01:
        return 1.0 + own * (1 / 2 + own * (3 / 8 + own * (5 / 16 + own * (35 / 128 + own * (63 / 256)))))
    left = max(1.0 - own, _LEAST)
    return 1.0 / np.sqrt(left) if leverage < 1.0 else 1.0 / left


@njit(cache=True)
def _error(squares: Floats, clusters: Floats, left: float, how: How) -> tuple[float, float]:
    """Return the standard error, and its degrees of freedom by Welch and Satterthwaite."""
    total, guessed = left, 0.0
    for arm in range(2):
        if arm == 0 and how.known:
            continue
        if clusters[arm] < _FEWEST:
            return np.nan, np.nan
        part = squares[arm] * (clusters[arm] / (clusters[arm] - 1.0) if how.few else 1.0)
        total += part
        guessed += (part + (left if arm == 1 else 0.0)) ** 2 / (clusters[arm] - 1.0)
    return np.sqrt(total), total**2 / max(guessed, 1e-300) if guessed > 0.0 else clusters[1] - 1.0
