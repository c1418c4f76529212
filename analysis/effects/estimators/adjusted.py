"""Job-level differences against concurrent control machines, adjusted by what was known before, pooled over jobs.

Each job's effect is the difference of its covariate-adjusted means (analysis of covariance; Deng et al. 2013 call the
case of one covariate CUPED). Jobs weigh by their full quota; those that no treated machine shows are taken for like the
others, or each is shrunk towards them (empirical Bayes; Efron and Morris 1975). Machines, or racks, are the clusters.
Machines that are their own control, as in a crossover, are taken by `crossover` if jobs are not shrunk.

The compiled part takes many draws of treated machines, and several ways to adjust and pool, at once. Treated machines
are few: their sums are made draw by draw. All others are gone through once for a block of draws, which lie side by side
in memory, so that a processor works on several of them with one instruction. No sum runs over draws, so an answer does
not depend on what else is in its block. All compiled helpers live in this file because numba's cache does not look into
others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from analysis.effects.cells import JobMachineSums
from analysis.effects.estimators import crossover
from analysis.effects.linear_systems import TINY, slopes, solved
from analysis.effects.observations import Design
from analysis.effects.study import Answers, Effect, Need, Study, concluded
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit

Pooling = Literal["none", "shrunken", "random"]
Cluster = Literal["machine", "rack"]
Correction = Literal["cr0", "cr1", "cr2", "jackknife"]

NONE, SHRUNKEN, RANDOM = range(3)
BLOCK = 16
"""Draws that the machines without the feature are gone through for at once."""
LEAST = 0.1
"""What is left of a cluster's residual at least: one machine that holds nearly all of a job must not decide all."""
_FEWEST = 1.2
"""Effective clusters of an arm below which nothing can be said."""
_COUNT, _VALUE, _SQUARE, _FIRST = range(4)
"""Columns of rows: instances, values and their squares; then covariates, their products with values, and `pulls`."""
_PRIOR = 10.0
"""Degrees of freedom that the variance over all jobs counts for in the variance of one."""
SLOPE_PRIOR = 10.0
"""Clusters that slopes between instances count for in slopes between clusters."""
_CLUSTERS_A_SLOPE = 5
_LEVERAGE = {"cr0": 0.0, "cr1": 0.0, "cr2": 0.5, "jackknife": 1.0}
_POOLING = {"none": NONE, "shrunken": SHRUNKEN, "random": RANDOM}


@dataclass(frozen=True, slots=True)
class Adjusted:
    """Adjusted differences of jobs; which way they are pooled, and how the variance is taken, are parameters."""

    name: str = "adjusted"
    """Its name in tables and on the command line."""
    pooling: Pooling = "none"
    """none: jobs not seen are taken for like the mean of those seen (post-stratification). shrunken: each job is
    shrunk towards that mean by how well it is known, which errs where effects depend on quota and machines are few.
    random: the mean of random effects, which errs so however many there are. The spread of effects between jobs
    counts for what each leaves out."""
    covariates: int = 99
    """How many of the study's covariates are used at most, in their order."""
    cluster: Cluster = "machine"
    """What was drawn at random; instances of one are not independent."""
    correction: Correction = "jackknife"
    """Of the clustered variance for the leverage of clusters (Bell and McCaffrey 2002; Cameron and Miller 2015)."""
    designs: ClassVar[frozenset[Design]] = frozenset({"concurrent", "crossover"})
    needs: ClassVar[tuple[Need, ...]] = ()

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws.

        Parameters
        ----------
        cells : with both arms where a draw needs them
        treated : (R, M)

        Returns
        -------
        Answers
            NaN where fewer than two clusters are treated, or none is not (unless the level is known).
        """
        return together([self], cells, treated)[0]

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""
        return concluded(self, study, confidence)


def together(estimators: Sequence[Adjusted], cells: JobMachineSums, treated: Bools) -> list[Answers]:
    """Return what each of several says of R draws; what they share is done once.

    Parameters
    ----------
    estimators : all of the same clusters and correction
    cells : as for `Adjusted.many`
    treated : (R, M)
    """
    if not cells.known:
        return _by_differences(estimators, cells, treated)
    clusters = np.arange(len(cells.machines), dtype=np.int64) if cells.switched is None else cells.switched.unit
    clusters = cells.rack if estimators[0].cluster == "rack" else clusters
    own_control = crossover.many(cells, treated, clusters)
    pooled = [estimator for estimator in estimators if estimator.pooling != "none"]
    rest = iter(_by_differences(pooled, cells, treated) if pooled else ())
    return [own_control if estimator.pooling == "none" else next(rest) for estimator in estimators]


def _by_differences(estimators: Sequence[Adjusted], cells: JobMachineSums, treated: Bools) -> list[Answers]:
    """Return what each says by job-level differences."""
    first, split = estimators[0], estimators[0].cluster == "rack"
    clusters = cells.rack if split else np.arange(len(cells.machines), dtype=np.int64)
    most = 0 if cells.known else min(cells.x.shape[1], slopes_of(len(np.unique(clusters))))
    wanted = [(min(estimator.covariates, most), _POOLING[estimator.pooling]) for estimator in estimators]
    variants = sorted(set(wanted))
    covariates, begin = np.unique([used for used, _ in variants], return_index=True)
    out = np.empty((len(variants), len(treated), 3))
    draws(
        _sums(cells, max(covariates), clusters),
        np.array(treated, dtype=np.bool_, order="C"),
        Errors(leverage=_LEVERAGE[first.correction], few=first.correction == "cr1", known=cells.known, split=split),
        Variants(covariates, np.append(begin, len(variants)), np.array([pooling for _, pooling in variants])),
        out,
    )
    return [Answers(*out[variants.index(variant)].T.copy()) for variant in wanted]


def slopes_of(clusters: int) -> int:
    """Return how many slopes so many clusters can bear: one for each five, beside the means of both arms.

    Examples
    --------
    >>> [slopes_of(clusters) for clusters in (6, 12, 17, 32)]
    [0, 2, 3, 6]
    """
    return max(clusters - 2, 0) // _CLUSTERS_A_SLOPE


class Errors(NamedTuple):
    """How standard errors are taken."""

    leverage: float
    """The power of leverage that residuals grow by: 0, 0.5 or 1."""
    few: bool
    """Whether to correct for few clusters."""
    known: bool
    """Whether the level without the feature is known."""
    split: bool
    """Whether a cluster may have machines of both arms."""


class CellSums(NamedTuple):
    """Cells of M machines and J jobs with K covariates in G pairs of cluster and job, and sums over all machines."""

    start: Ints
    cluster: Ints
    """(M,) of each machine."""
    job: Ints
    group: Ints
    """Number of the cell's pair of cluster and job."""
    rows: Floats
    """(2, C, 3 + 4 K): without the feature, and with it."""
    weight: Floats
    job_rows: Floats
    """(J, 3 + 4 K) without the feature."""
    job_xx: Floats
    """(J, K (K + 1) / 2) of each pair of covariates: the second one up to the first."""
    xx: Floats
    """(K, K) of all jobs."""
    cluster_xx: Floats
    """(K, K) of the clusters' covariates, as the target weighs them."""
    group_cells: Ints
    group_count: Floats
    """(G,) instances."""
    job_clusters: Floats
    """(J,) clusters that each job is on."""


class Variants(NamedTuple):
    """H ways to adjust and pool, those with as many covariates next to each other."""

    covariates: Ints
    """(V,) how many are used."""
    first: Ints
    """(V + 1,) variants with ``covariates[v]`` are ``first[v]`` to ``first[v + 1]``."""
    pooling: Ints
    """(H,)"""


class Draw(NamedTuple):
    """What a draw shows of each job, arm by arm."""

    treated: Bools
    """(M,)"""
    sums: Floats
    """(2, J, 3 + 4 K)"""
    clusters: Floats
    """(2, J)"""
    treated_count: Floats
    """(G,) instances on treated machines of each pair of cluster and job."""


class JobEffects(NamedTuple):
    """Each job's relative effect and its variance (0: not seen in both arms), with its level; all (J,)."""

    effect: Floats
    variance: Floats
    level: Floats
    """Mean without the feature, not adjusted: what effects are relative to."""
    control_mean: Floats
    """Adjusted."""


class Fit(NamedTuple):
    """How each variant adjusts and pools one draw."""

    slopes: Floats
    """(V, K)"""
    control_mean: Floats
    """(J, V) adjusted means without the feature."""
    treated_mean: Floats
    """(J, H) means with it, that residuals are taken from."""
    weights: Floats
    """(J, H) what each job counts for, relative to its level."""
    level: Floats
    """(J,)"""
    hidden: Floats
    """(H,) variance that residuals do not show."""


class DrawBlock(NamedTuple):
    """What the pass over machines without the feature needs to know of B draws.

    The draws are the last axis, so that those of a block lie side by side.
    """

    control: Floats
    """(M, B) 1 where the machine is without the feature."""
    per_instance: Floats
    """(J, B) 1 over the job's instances."""
    several: Floats
    """(J, B) 1 where the job is on several clusters."""
    treated_count: Floats
    """(G, B) as in `Draw`; (0, B) where clusters are not split."""
    slopes: Floats
    """(V, K, B)"""
    mean: Floats
    """(J, V, B)"""
    level: Floats
    """(J, B)"""
    change: Floats
    """(H, B) the estimate: what an error of the level, which it is divided by, counts for."""
    weights: Floats
    """(J, H, B)"""


class MachineSums(NamedTuple):
    """What one machine's cells leave unexplained, and what they count for; (H, B)."""

    residual: Floats
    weight: Floats


class Scratch(NamedTuple):
    """Places for numbers of one cell, by draw; (B,)."""

    growth: Floats
    residual: Floats
    unadjusted: Floats


def _sums(cells: JobMachineSums, used: int, clusters: Ints) -> CellSums:
    """Return the cells with the first so many covariates, and their sums by job."""
    jobs, count = len(cells.jobs), len(cells.job)
    cell_cluster = np.repeat(clusters, np.diff(cells.start))
    pair = cell_cluster * jobs + cells.job
    pairs, group, in_group = np.unique(pair, return_inverse=True, return_counts=True)
    x = cells.x[:, :used]
    arms = (
        [cells.count[:, None], cells.y[:, on, None], cells.yy[:, on, None], x, cells.xy[:, on, :used]] for on in (0, 1)
    )
    rows = np.stack([np.hstack(columns) for columns in arms])
    per_instance = cells.weight / np.maximum(np.bincount(cells.job, cells.count, jobs), 1e-300)
    pull, cluster_xx = pulls(cell_cluster, per_instance[cells.job], rows, used)
    rows = np.concatenate([rows, pull], axis=2)
    job_xx = by_job(cells.job, np.ascontiguousarray(cells.xx[:, :used, :used].reshape(count, -1)), jobs)
    return CellSums(
        start=cells.start,
        cluster=clusters,
        job=cells.job,
        group=group,
        rows=rows,
        weight=cells.weight,
        job_rows=by_job(cells.job, rows[0], jobs),
        job_xx=np.ascontiguousarray(job_xx[:, np.flatnonzero(np.tri(used))]),
        xx=job_xx.sum(axis=0).reshape(used, used),
        cluster_xx=cluster_xx,
        group_cells=in_group,
        group_count=np.bincount(group, cells.count).astype(np.float64),
        job_clusters=np.bincount(pairs % jobs, minlength=jobs).astype(np.float64),
    )


@njit(cache=False, borrows=True)
def _count(cluster: Ints) -> int:
    """Return how many clusters there are, numbered from 0; `max` of an array compiles for seconds."""
    count = 0
    for number in cluster:
        count = max(count, number + 1)
    return count


@njit(cache=True)
def draws(sums: CellSums, treated: Bools, errors: Errors, variants: Variants, out: Floats) -> None:
    """Write change, standard error and degrees of freedom of each variant and draw into `out`, (H, R, 3)."""
    total, size = treated.shape[0], variants.pooling.size
    treated_count = np.zeros(sums.group_cells.size)
    wider, left = np.ones(size), np.ones(size)
    for v in range(variants.covariates.size):
        for h in range(variants.first[v], variants.first[v + 1]):
            wider[h], left[h] = cost_of_slopes(variants.covariates[v], _count(sums.cluster))
    for begin in range(0, total, BLOCK):
        many = min(BLOCK, total - begin)
        block = _block(sums, errors, variants, many)
        with_it, hidden = np.zeros((2, size, many)), np.zeros((size, many))
        for b in range(many):
            draw = _draw(sums, treated[begin + b], errors, treated_count)
            fit = _fit(sums, draw, variants, errors.known, out[:, begin + b, 0])
            spread = _treated(sums, draw, fit, variants, errors.leverage)
            for h in range(size):
                with_it[0, h, b], with_it[1, h, b], hidden[h, b] = spread[0, h, 0], spread[1, h, 0], fit.hidden[h]
            if not errors.known:
                _remember(block, b, draw, fit, variants)
                for h in range(size):
                    block.change[h, b] = out[h, begin + b, 0]
        without = np.zeros((2, size, many)) if errors.known else _controls(sums, block, errors, variants)
        for h in range(size):
            for b in range(many):
                squares = np.array([without[0, h, b], with_it[0, h, b]])
                clusters = np.array([without[1, h, b], with_it[1, h, b]])
                error, freedom = standard_error(squares, clusters, hidden[h, b], errors)
                out[h, begin + b, 1], out[h, begin + b, 2] = error * wider[h], freedom * left[h]


@njit(cache=False)
def _block(sums: CellSums, errors: Errors, variants: Variants, many: int) -> DrawBlock:
    jobs, size, covariates = sums.weight.size, variants.pooling.size, sums.xx.shape[0]
    return DrawBlock(
        control=np.zeros((sums.start.size - 1, many)),
        per_instance=np.zeros((jobs, many)),
        several=np.zeros((jobs, many)),
        treated_count=np.zeros((sums.group_cells.size if errors.split else 0, many)),
        slopes=np.zeros((variants.covariates.size, covariates, many)),
        mean=np.zeros((jobs, variants.covariates.size, many)),
        level=np.zeros((jobs, many)),
        change=np.zeros((size, many)),
        weights=np.zeros((jobs, size, many)),
    )


@njit(cache=False, borrows=True)
def _remember(block: DrawBlock, b: int, draw: Draw, fit: Fit, variants: Variants) -> None:
    """Write a draw into its place in the block."""
    for machine in range(draw.treated.size):
        block.control[machine, b] = 0.0 if draw.treated[machine] else 1.0
    for g in range(block.treated_count.shape[0]):
        block.treated_count[g, b] = draw.treated_count[g]
    for v in range(variants.covariates.size):
        for k in range(variants.covariates[v]):
            block.slopes[v, k, b] = fit.slopes[v, k]
    for j in range(draw.clusters.shape[1]):
        per_instance = _over(draw.sums[0, j, _COUNT])
        block.per_instance[j, b] = per_instance
        block.several[j, b] = 1.0 if draw.clusters[0, j] > 1.5 else 0.0
        block.level[j, b] = fit.level[j]
        for v in range(variants.covariates.size):
            block.mean[j, v, b] = fit.control_mean[j, v]
        for h in range(variants.pooling.size):
            block.weights[j, h, b] = fit.weights[j, h] * per_instance


@njit(cache=False, borrows=True)
def _over(total: float) -> float:
    return 1.0 / total if total > TINY else 0.0


@njit(cache=False)
def _draw(sums: CellSums, treated: Bools, errors: Errors, treated_count: Floats) -> Draw:
    """Return what a draw shows; what treated machines hold is written into `treated_count`, (G,), which it keeps."""
    (jobs, columns), first = sums.job_rows.shape, 1 if errors.known else 0
    draw = Draw(treated, np.zeros((2, jobs, columns)), np.zeros((2, jobs)), treated_count)
    cells = np.zeros(treated_count.size, np.int64)
    for g in range(treated_count.size):
        treated_count[g] = 0.0
    for j in range(0 if errors.known else jobs):
        draw.clusters[0, j] = sums.job_clusters[j]
    for machine in range(treated.size):
        if not treated[machine]:
            continue
        for c in range(sums.start[machine], sums.start[machine + 1]):
            j, g = sums.job[c], sums.group[c]
            for arm in range(first, 2):
                for p in range(columns):
                    draw.sums[arm, j, p] += sums.rows[arm, c, p]
            treated_count[g] += sums.rows[1, c, _COUNT]
            cells[g] += 1
            if cells[g] == 1:
                draw.clusters[1, j] += 1.0
            if cells[g] == sums.group_cells[g] and not errors.known:
                draw.clusters[0, j] -= 1.0
    for j in range(0 if errors.known else jobs):
        for p in range(columns):
            draw.sums[0, j, p] = sums.job_rows[j, p] - draw.sums[0, j, p]
    return draw


@njit(cache=False)
def _fit(sums: CellSums, draw: Draw, variants: Variants, known: bool, change: Floats) -> Fit:
    """Return how each variant adjusts and pools a draw, and write the change that it estimates."""
    jobs, size, covariates = sums.weight.size, variants.pooling.size, sums.xx.shape[0]
    fit = Fit(
        slopes=np.zeros((variants.covariates.size, covariates)),
        control_mean=np.zeros((jobs, variants.covariates.size)),
        treated_mean=np.zeros((jobs, size)),
        weights=np.zeros((jobs, size)),
        level=np.ones(jobs),
        hidden=np.zeros(size),
    )
    alone, (xx, xy), (cluster_xx, cluster_xy) = (
        _alone(draw, known),
        _products(sums, draw),
        _cluster_products(sums, draw),
    )
    for v in range(variants.covariates.size):
        used = variants.covariates[v]
        if used > 0:
            _solve(xx, xy, fit.slopes[v, :used])
            _move(sums, cluster_xx, cluster_xy, fit.slopes[v, :used])
        by_job = _effects(sums, draw, fit.slopes[v, :used], known)
        effect, variance, level = by_job.effect, by_job.variance, by_job.level
        between = _between(effect, variance, level, sums.weight)
        share, whole = np.zeros(jobs), 0.0
        for j in range(jobs):
            fit.control_mean[j, v], fit.level[j] = by_job.control_mean[j], level[j]
            share[j] = level[j] * sums.weight[j]
            whole += share[j]
        for j in range(jobs):
            share[j] /= whole
        for h in range(variants.first[v], variants.first[v + 1]):
            weights, trust, mean = _pooled(effect, variance, share, between, variants.pooling[h])
            estimate, moved, unseen = 0.0, 0.0, np.zeros(2)
            for j in range(jobs):
                fit.treated_mean[j, h] = by_job.control_mean[j] + level[j] * (mean + trust[j] * (effect[j] - mean))
                fit.weights[j, h] = weights[j] / level[j]
                estimate += weights[j] * effect[j]
                moved += (weights[j] - share[j]) ** 2
                for arm in range(2):
                    unseen[arm] += weights[j] ** 2 * variance[j] * alone[j, arm]
            change[h] = estimate
            fit.hidden[h] = between * moved + (1.0 + estimate) ** 2 * unseen[0] + unseen[1]
    return fit


@njit(cache=False)
def _alone(draw: Draw, known: bool) -> Floats:
    """Return which share of each job's variance comes from an arm of one cluster, with no spread to show; (J, 2)."""
    jobs = draw.clusters.shape[1]
    share = np.zeros((jobs, 2))
    for j in range(jobs):
        if draw.clusters[1, j] < 0.5 or (draw.clusters[0, j] < 0.5 and not known):
            continue
        control, treated = 0.0 if known else 1.0 / draw.sums[0, j, _COUNT], 1.0 / draw.sums[1, j, _COUNT]
        share[j, 0] = control / (treated + control) if draw.clusters[0, j] < 1.5 else 0.0
        share[j, 1] = treated / (treated + control) if draw.clusters[1, j] < 1.5 else 0.0
    return share


@njit(cache=False)
def _products(sums: CellSums, draw: Draw) -> tuple[Floats, Floats]:
    """Return the sums of squares and products within jobs and arms: of covariates, and of them with values."""
    jobs, covariates = draw.clusters.shape[1], sums.xx.shape[0]
    xx, xy = sums.xx.copy(), np.zeros(covariates)
    for j in range(jobs):
        for arm in range(2):
            if draw.clusters[arm, j] < 0.5:
                continue
            per_instance, y = 1.0 / draw.sums[arm, j, _COUNT], draw.sums[arm, j, _VALUE]
            for k in range(covariates):
                mean = per_instance * draw.sums[arm, j, _FIRST + k]
                xy[k] += draw.sums[arm, j, _FIRST + covariates + k] - mean * y
                for m in range(k + 1):
                    xx[k, m] -= mean * draw.sums[arm, j, _FIRST + m]
    for k in range(covariates):
        for m in range(k):
            xx[m, k] = xx[k, m]
    return xx, xy


@njit(cache=False)
def _solve(xx: Floats, xy: Floats, slope: Floats) -> None:
    """Write the slopes of the analysis of covariance, within jobs and arms, on the first covariates."""
    solution = slopes(xx[: slope.size, : slope.size].copy(), xy[: slope.size])
    for k in range(slope.size):
        slope[k] = solution[k]


@njit(cache=True)
def pulls(cell_cluster: Ints, per_instance: Floats, rows: Floats, covariates: int) -> tuple[Floats, Floats]:
    """Return what cells do to slopes between clusters, (2, C, 2 K), and products of the clusters' covariates, (K, K).

    A cluster's covariates are sums over its instances, each by what it counts for in the estimate. Of each cell these
    times what it counts for come first, then these times its values.

    Parameters
    ----------
    cell_cluster : (C,)
    per_instance : (C,) what an instance counts for
    rows : (2, C, 3 + 2 K)
    covariates : K
    """
    clusters, cells = _count(cell_cluster), cell_cluster.size
    x, out = np.zeros((clusters, covariates)), np.zeros((2, cells, 2 * covariates))
    for c in range(cells):
        for k in range(covariates):
            x[cell_cluster[c], k] += per_instance[c] * rows[0, c, _FIRST + k]
    for arm in range(2):
        for c in range(cells):
            for k in range(covariates):
                pull = per_instance[c] * x[cell_cluster[c], k]
                out[arm, c, k] = pull * rows[arm, c, _COUNT]
                out[arm, c, covariates + k] = pull * rows[arm, c, _VALUE]
    products = np.zeros((covariates, covariates))
    for cluster in range(clusters):
        for k in range(covariates):
            for m in range(covariates):
                products[k, m] += x[cluster, k] * x[cluster, m]
    return out, products


@njit(cache=False)
def _cluster_products(sums: CellSums, draw: Draw) -> tuple[Floats, Floats]:
    """Return products between clusters, of their covariates with what is left of covariates, and of values."""
    jobs, covariates = draw.clusters.shape[1], sums.xx.shape[0]
    xx, xy, first = sums.cluster_xx.copy(), np.zeros(covariates), _FIRST + 2 * covariates
    for j in range(jobs):
        for arm in range(2):
            if draw.clusters[arm, j] < 0.5:
                continue
            per_instance = 1.0 / draw.sums[arm, j, _COUNT]
            y = per_instance * draw.sums[arm, j, _VALUE]
            for k in range(covariates):
                pull = draw.sums[arm, j, first + k]
                xy[k] += draw.sums[arm, j, first + covariates + k] - y * pull
                for m in range(covariates):
                    xx[k, m] -= pull * per_instance * draw.sums[arm, j, _FIRST + m]
    return xx, xy


@njit(cache=False)
def _move(sums: CellSums, xx: Floats, xy: Floats, slopes: Floats) -> None:
    """Move slopes between instances towards those between clusters, which are what the estimate's error rests on."""
    used, clusters = slopes.size, _count(sums.cluster)
    ridged, rest = xx[:used, :used].copy(), xy[:used].copy()
    for k in range(used):
        for m in range(used):
            rest[k] -= xx[k, m] * slopes[m]
        ridged[k, k] += SLOPE_PRIOR / clusters * sums.cluster_xx[k, k] + TINY * max(sums.cluster_xx[k, k], 1e-200)
    solution = solved(ridged, rest)
    for k in range(used):
        slopes[k] += solution[k]


@njit(cache=False)
def _pairs(slopes: Floats) -> Floats:
    """Return the products of all pairs of slopes, as the columns of `job_xx` are ordered."""
    products, i = np.zeros(slopes.size * (slopes.size + 1) // 2), 0
    for k in range(slopes.size):
        for m in range(k + 1):
            products[i] = slopes[k] * slopes[m] * (1.0 if m == k else 2.0)
            i += 1
    return products


@njit(cache=False)
def _effects(sums: CellSums, draw: Draw, slopes: Floats, known: bool) -> JobEffects:
    """Return each job's relative effect."""
    jobs = draw.clusters.shape[1]
    effect, variance, level, mean = np.zeros(jobs), np.zeros(jobs), np.ones(jobs), np.zeros((jobs, 2))
    squares, freedom, products, covariates = np.zeros(jobs), np.zeros(jobs), _pairs(slopes), sums.xx.shape[0]
    for j in range(jobs):
        for arm in range(2):
            n = draw.sums[arm, j, _COUNT]
            if draw.clusters[arm, j] < 0.5:
                continue
            adjusted, square = draw.sums[arm, j, _VALUE], draw.sums[arm, j, _SQUARE]
            for k in range(slopes.size):
                adjusted -= slopes[k] * draw.sums[arm, j, _FIRST + k]
                square -= 2.0 * slopes[k] * draw.sums[arm, j, _FIRST + covariates + k]
            mean[j, arm] = adjusted / n
            squares[j] += square - adjusted * adjusted / n
            freedom[j] += n - 1.0
            if arm == 0 and draw.sums[0, j, _VALUE] > 0.0:
                level[j] = draw.sums[0, j, _VALUE] / n
        for i in range(products.size):
            squares[j] += products[i] * sums.job_xx[j, i]
    common = max(squares.sum(), 0.0) / max(freedom.sum(), 1.0)
    for j in range(jobs):
        treated, control = draw.sums[1, j, _COUNT], draw.sums[0, j, _COUNT]
        if draw.clusters[1, j] < 0.5 or (draw.clusters[0, j] < 0.5 and not known):
            continue
        if known:
            mean[j, 0] = 1.0
        effect[j] = (mean[j, 1] - mean[j, 0]) / level[j]
        spread = (max(squares[j], 0.0) + _PRIOR * common) / (freedom[j] + _PRIOR)
        variance[j] = max(spread * (1.0 / treated + (0.0 if known else 1.0 / control)) / level[j] ** 2, TINY)
    return JobEffects(effect, variance, level, mean[:, 0])


@njit(cache=False, error_model="numpy")
def _between(effect: Floats, variance: Floats, level: Floats, weight: Floats) -> float:
    """Return the variance of true effects between jobs, by moments (DerSimonian and Laird 1986)."""
    jobs, whole, typical = 0, 0.0, 0.0
    for j in range(variance.size):
        if variance[j] > 0.0:
            jobs += 1
            whole += weight[j] * level[j]
            typical += weight[j] * level[j] / variance[j]
    if jobs < 2:
        return TINY
    typical = whole / typical
    trust, total, mean, excess, squares = np.zeros(variance.size), 0.0, 0.0, 0.0, 0.0
    for j in range(variance.size):
        if variance[j] > 0.0:
            trust[j] = 1.0 / (variance[j] + typical)
            total += trust[j]
    for j in range(variance.size):
        trust[j] /= total
        mean += trust[j] * effect[j]
        squares += trust[j] ** 2
    for j in range(variance.size):
        if variance[j] > 0.0:
            excess += trust[j] * (effect[j] - mean) ** 2 - trust[j] * (1.0 - trust[j]) * variance[j]
    between: float = max(excess / (1.0 - squares), TINY)
    return between


@njit(cache=False, error_model="numpy")
def _pooled(
    effect: Floats, variance: Floats, weight: Floats, between: float, pooling: int
) -> tuple[Floats, Floats, float]:
    """Return what each job's effect counts for in the fleet's, how far it is trusted, and the mean it shrinks to."""
    share, trust, centre = weight / weight.sum(), np.zeros(weight.size), np.zeros(weight.size)
    for j in range(weight.size):
        if variance[j] > 0.0:
            trust[j] = 1.0 if pooling == NONE else between / (between + variance[j])
            centre[j] = trust[j] / between if pooling == RANDOM else share[j] * trust[j]
    whole, left, mean = centre.sum(), 0.0, 0.0
    for j in range(weight.size):
        centre[j] /= whole
        mean += centre[j] * effect[j]
        left += share[j] * (1.0 - trust[j])
    if pooling == RANDOM:
        return centre, trust, mean
    return share * trust + left * centre, trust, mean


@njit(cache=False)
def _numbered(cluster: Ints) -> tuple[Ints, int]:
    """Return the clusters of a draw numbered in the order in which they first come, (n,), and how many there are."""
    number, places, total = np.full(_count(cluster), -1), np.empty(cluster.size, np.int64), 0
    for i in range(cluster.size):
        if number[cluster[i]] < 0:
            number[cluster[i]] = total
            total += 1
        places[i] = number[cluster[i]]
    return places, total


@njit(cache=False, error_model="numpy")
def _treated(sums: CellSums, draw: Draw, fit: Fit, variants: Variants, leverage: float) -> Floats:
    """Return the sums of squares and numbers of clusters of the machines with the feature, (2, H, 1), of one draw."""
    machines = np.flatnonzero(draw.treated)
    places, clusters = _numbered(sums.cluster[machines])
    residuals = np.zeros((clusters, variants.pooling.size, 1))
    cluster_weights, weights, rows = np.zeros(residuals.shape), np.zeros(fit.treated_mean.shape), sums.rows
    per_instance = np.array([_over(count) for count in draw.sums[1, :, _COUNT]])
    for j in range(per_instance.size):
        for h in range(variants.pooling.size):
            weights[j, h] = fit.weights[j, h] * per_instance[j]
    for i in range(machines.size):
        cluster = places[i]
        for c in range(sums.start[machines[i]], sums.start[machines[i] + 1]):
            j, count = sums.job[c], rows[1, c, _COUNT]
            share = draw.treated_count[sums.group[c]] * per_instance[j]
            growth = grown_by(share, leverage) if draw.clusters[1, j] > 1.5 else 0.0
            for v in range(variants.covariates.size):
                adjusted = rows[1, c, _VALUE]
                for k in range(variants.covariates[v]):
                    adjusted -= fit.slopes[v, k] * rows[1, c, _FIRST + k]
                for h in range(variants.first[v], variants.first[v + 1]):
                    cluster_weights[cluster, h, 0] += weights[j, h] * count
                    residuals[cluster, h, 0] += weights[j, h] * growth * (adjusted - count * fit.treated_mean[j, h])
    return by_draw(residuals, cluster_weights)


@njit(cache=False, error_model="numpy")
def _controls(sums: CellSums, block: DrawBlock, errors: Errors, variants: Variants) -> Floats:
    """Return the sums of squares and numbers of clusters of the machines without the feature, (2, H, B)."""
    machines, many = block.control.shape
    residuals = np.zeros((_count(sums.cluster), variants.pooling.size, many))
    weights = np.zeros(residuals.shape)
    own = MachineSums(np.zeros(residuals.shape[1:]), np.zeros(residuals.shape[1:]))
    scratch = Scratch(np.zeros(many), np.zeros(many), np.zeros(many))
    for machine in range(machines):
        own.residual[:], own.weight[:] = 0.0, 0.0
        _machine(sums, block, errors, variants, machine, own, scratch)
        cluster = sums.cluster[machine]
        for h in range(variants.pooling.size):
            for b in range(many):
                residuals[cluster, h, b] += block.control[machine, b] * own.residual[h, b]
                weights[cluster, h, b] += block.control[machine, b] * own.weight[h, b]
    return by_draw(residuals, weights)


@njit(cache=False, error_model="numpy", borrows=True)
def _machine(  # noqa: PLR0917 - compiled functions call each other by position
    sums: CellSums,
    block: DrawBlock,
    errors: Errors,
    variants: Variants,
    machine: int,
    own: MachineSums,
    scratch: Scratch,
) -> None:
    """Add to `own` what a machine's cells leave unexplained, and what they count for, as if it were in no draw.

    A change is (treated mean - control mean) / level, so the controls err twice: in the mean that is subtracted, which
    is adjusted, and, by `change` times as much, in the level that is divided by, which is not (delta method).
    """
    growth, residual, unadjusted = scratch.growth, scratch.residual, scratch.unadjusted
    mean, slopes, weights, change = block.mean, block.slopes, block.weights, block.change
    rows, own_residual, own_weight, many = sums.rows, own.residual, own.weight, growth.size
    for c in range(sums.start[machine], sums.start[machine + 1]):
        j, count, value = sums.job[c], rows[0, c, _COUNT], rows[0, c, _VALUE]
        _grow(sums, block, errors, c, growth)
        for b in range(many):
            unadjusted[b] = growth[b] * (value - count * block.level[j, b])
        for v in range(variants.covariates.size):
            for b in range(many):
                residual[b] = value - count * mean[j, v, b]
            for k in range(variants.covariates[v]):
                x = rows[0, c, _FIRST + k]
                for b in range(many):
                    residual[b] -= x * slopes[v, k, b]
            for b in range(many):
                residual[b] *= growth[b]
            for h in range(variants.first[v], variants.first[v + 1]):
                for b in range(many):
                    own_residual[h, b] += weights[j, h, b] * (residual[b] + change[h, b] * unadjusted[b])
                    own_weight[h, b] += weights[j, h, b] * count


@njit(cache=False, error_model="numpy", borrows=True)
def _grow(sums: CellSums, block: DrawBlock, errors: Errors, cell: int, growth: Floats) -> None:
    """Write by how much the residuals of a cell grow for the leverage of its cluster, 0 where they say nothing."""
    j, group = sums.job[cell], sums.group[cell]
    count = sums.group_count[group]
    several, per_instance = block.several, block.per_instance
    if errors.split or errors.leverage < 1.0:
        for b in range(growth.size):
            rest = count - block.treated_count[group, b] if errors.split else count
            growth[b] = several[j, b] * grown_by(rest * per_instance[j, b], errors.leverage)
    else:
        for b in range(growth.size):
            growth[b] = several[j, b] / max(1.0 - count * per_instance[j, b], LEAST)


@njit(cache=False)
def by_draw(residuals: Floats, weights: Floats) -> Floats:
    """Return of each variant and draw the clustered sum of squares, and the effective number of clusters; (2, H, B).

    Both come from each cluster's residual and weight in the estimate, (clusters, H, B). The number is that of equal
    weights with the same Σ w² and Σ w⁴, from which degrees of freedom follow (Satterthwaite 1946) if what the instances
    of a cluster share is most of the error. A job on one cluster of an arm leaves no residual there.
    """
    clusters, variants, many = residuals.shape
    out, fourth = np.zeros((2, variants, many)), np.zeros((variants, many))
    for cluster in range(clusters):
        for h in range(variants):
            for b in range(many):
                square = weights[cluster, h, b] ** 2
                out[0, h, b] += residuals[cluster, h, b] ** 2
                out[1, h, b] += square
                fourth[h, b] += square * square
    for h in range(variants):
        for b in range(many):
            out[1, h, b] = out[1, h, b] ** 2 / fourth[h, b] if fourth[h, b] > 0.0 else 0.0
    return out


@njit(error_model="numpy", borrows=True)
def grown_by(share: float, leverage: float) -> float:
    """Return (1 - share) to the power of minus the leverage: 0, 0.5 or 1.

    Examples
    --------
    >>> grown_by(0.75, 1.0), grown_by(0.75, 0.5), grown_by(0.75, 0.0)
    (4.0, 2.0, 1.0)
    """
    left = max(1.0 - share, LEAST)
    if leverage < 1.0:
        return 1.0 / np.sqrt(left) if leverage > 0.0 else 1.0
    return 1.0 / left


@njit(borrows=True)
def standard_error(squares: Floats, clusters: Floats, hidden: float, errors: Errors) -> tuple[float, float]:
    """Return the standard error, and its degrees of freedom by Welch and Satterthwaite; NaN of too few clusters.

    Parameters
    ----------
    squares, clusters : (2,) clustered sum of squares and effective number of clusters, without and with the feature
    hidden : variance besides
    errors : whether to correct for few clusters, and whether there is an arm without the feature
    """
    total, guessed = hidden, 0.0
    for arm in range(2):
        if arm == 0 and errors.known:
            continue
        if clusters[arm] < _FEWEST:
            return np.nan, np.nan
        part = squares[arm] * (clusters[arm] / (clusters[arm] - 1.0) if errors.few else 1.0)
        total += part
        guessed += (part + (hidden if arm == 1 else 0.0)) ** 2 / (clusters[arm] - 1.0)
    return np.sqrt(total), total**2 / max(guessed, 1e-300) if guessed > 0.0 else clusters[1] - 1.0


@njit(borrows=True)
def cost_of_slopes(slopes: int, clusters: int) -> tuple[float, float]:
    """Return how many times as wide fitted slopes make an error, and the share of its degrees of freedom that is left.

    Residuals of an analysis of covariance of so many clusters are too small by the degrees of freedom that slopes take
    (Cochran 1957). What the slopes' own errors add to the difference of adjusted means is left to the jackknife, which
    takes the means' residuals for larger than they are by about as much.

    Examples
    --------
    >>> cost_of_slopes(0, 12), cost_of_slopes(2, 12)
    ((1.0, 1.0), (1.118033988749895, 0.8))
    """
    if slopes == 0:
        return 1.0, 1.0
    left = (clusters - 2.0 - slopes) / (clusters - 2.0)
    return np.sqrt(1.0 / left), left


@njit(cache=True)
def by_job(job: Ints, value: Floats, jobs: int) -> Floats:
    """Return the sums of (C, P) values of cells by job, (J, P)."""
    sums = np.zeros((jobs, value.shape[1]))
    for c in range(job.size):
        for p in range(value.shape[1]):
            sums[job[c], p] += value[c, p]
    return sums
