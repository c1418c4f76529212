"""Job-level differences against concurrent control machines, adjusted by what was known before, pooled over jobs.

Each job's effect is the difference of its covariate-adjusted means (analysis of covariance; Deng et al. 2013 call the
case of one covariate CUPED). Jobs weigh by their full quota; those that no treated machine shows are taken for like the
others, or each is shrunk towards them (empirical Bayes; Efron and Morris 1975). Machines, or racks, are the clusters.
Machines that are their own control, as in a crossover, are taken by `crossover` if jobs are not shrunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from analysis.effects.cells import JobMachineSums
from analysis.effects.estimators import crossover, kernel
from analysis.effects.observations import Design
from analysis.effects.study import Answers, Effect, Need, Study, concluded
from models.arrays import Bools, Ints

Pooling = Literal["none", "shrunken", "random"]
Cluster = Literal["machine", "rack"]
Correction = Literal["cr0", "cr1", "cr2", "jackknife"]

_CLUSTERS_A_SLOPE = 5
_LEVERAGE = {"cr0": 0.0, "cr1": 0.0, "cr2": 0.5, "jackknife": 1.0}
_POOLING = {"none": kernel.NONE, "shrunken": kernel.SHRUNKEN, "random": kernel.RANDOM}


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
        return _pooled(estimators, cells, treated)
    clusters = np.arange(len(cells.machines), dtype=np.int64) if cells.switched is None else cells.switched.unit
    clusters = cells.rack if estimators[0].cluster == "rack" else clusters
    own_control = crossover.many(cells, treated, clusters)
    pooled = [estimator for estimator in estimators if estimator.pooling != "none"]
    rest = iter(_pooled(pooled, cells, treated) if pooled else ())
    return [own_control if estimator.pooling == "none" else next(rest) for estimator in estimators]


def _pooled(estimators: Sequence[Adjusted], cells: JobMachineSums, treated: Bools) -> list[Answers]:
    """Return what each says by job-level differences."""
    first, split = estimators[0], estimators[0].cluster == "rack"
    clusters = cells.rack if split else np.arange(len(cells.machines), dtype=np.int64)
    most = 0 if cells.known else min(cells.x.shape[1], slopes_of(len(np.unique(clusters))))
    wanted = [(min(estimator.covariates, most), _POOLING[estimator.pooling]) for estimator in estimators]
    variants = sorted(set(wanted))
    covariates, begin = np.unique([used for used, _ in variants], return_index=True)
    out = np.empty((len(variants), len(treated), 3))
    kernel.draws(
        _sums(cells, max(covariates), clusters),
        np.array(treated, dtype=np.bool_, order="C"),
        kernel.Errors(
            leverage=_LEVERAGE[first.correction], few=first.correction == "cr1", known=cells.known, split=split
        ),
        kernel.Variants(covariates, np.append(begin, len(variants)), np.array([pooling for _, pooling in variants])),
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


def _sums(cells: JobMachineSums, used: int, clusters: Ints) -> kernel.CellSums:
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
    pulls, cluster_xx = kernel.pulls(cell_cluster, per_instance[cells.job], rows, used)
    rows = np.concatenate([rows, pulls], axis=2)
    job_xx = kernel.by_job(cells.job, np.ascontiguousarray(cells.xx[:, :used, :used].reshape(count, -1)), jobs)
    return kernel.CellSums(
        start=cells.start,
        cluster=clusters,
        job=cells.job,
        group=group,
        rows=rows,
        weight=cells.weight,
        job_rows=kernel.by_job(cells.job, rows[0], jobs),
        job_xx=np.ascontiguousarray(job_xx[:, np.flatnonzero(np.tri(used))]),
        xx=job_xx.sum(axis=0).reshape(used, used),
        cluster_xx=cluster_xx,
        group_cells=in_group,
        group_count=np.bincount(group, cells.count).astype(np.float64),
        job_clusters=np.bincount(pairs % jobs, minlength=jobs).astype(np.float64),
    )
