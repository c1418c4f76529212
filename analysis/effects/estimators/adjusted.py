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

from analysis.effects import moments
from analysis.effects.cells import Cells
from analysis.effects.estimators import crossover, kernel
from analysis.effects.estimators.kernel import How
from analysis.effects.method import Answers, Design, Effect, Need, concluded
from analysis.effects.study import Study
from models.arrays import Bools, Ints

Pooling = Literal["none", "shrunken", "random"]
Cluster = Literal["machine", "rack"]
Correction = Literal["cr0", "cr1", "cr2", "jackknife"]

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

    def many(self, cells: Cells, treated: Bools) -> Answers:
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
        """Return what it says of one experiment.

        Raises
        ------
        NotEnoughDataError
            If fewer than two machines are treated, or untreated.
        """
        return concluded(self, study, confidence)


def together(ones: Sequence[Adjusted], cells: Cells, treated: Bools) -> list[Answers]:
    """Return what each of several says of R draws; what they share is done once.

    Parameters
    ----------
    ones : all of the same clusters and correction
    cells : as for `Adjusted.many`
    treated : (R, M)
    """
    if not cells.known:
        return _pooled(ones, cells, treated)
    clusters = np.arange(len(cells.machines), dtype=np.int64) if cells.switched is None else cells.switched.unit
    clusters = cells.rack if ones[0].cluster == "rack" else clusters
    own = crossover.many(cells, treated, clusters)
    pooled = [one for one in ones if one.pooling != "none"]
    rest = iter(_pooled(pooled, cells, treated) if pooled else ())
    return [own if one.pooling == "none" else next(rest) for one in ones]


def _pooled(ones: Sequence[Adjusted], cells: Cells, treated: Bools) -> list[Answers]:
    """Return what each says by job-level differences."""
    first, there = ones[0], 0 if cells.known else cells.x.shape[1]
    split = first.cluster == "rack"
    asked = [(min(one.covariates, there), _POOLING[one.pooling]) for one in ones]
    ways = sorted(set(asked))
    used, begin = np.unique([way[0] for way in ways], return_index=True)
    chosen, out = np.array(treated, dtype=np.bool_, order="C"), np.empty((len(ways), len(treated), 3))
    kernel.draws(
        _sums(cells, max(used), cells.rack if split else np.arange(len(cells.machines), dtype=np.int64)),
        chosen,
        How(_LEVERAGE[first.correction], first.correction != "cr0", cells.known, split),
        kernel.Ways(used, np.append(begin, len(ways)), np.array([way[1] for way in ways])),
        out,
    )
    return [Answers(*out[ways.index(way)].T.copy()) for way in asked]


def _sums(cells: Cells, used: int, clusters: Ints) -> kernel.Sums:
    """Return the cells with the first so many covariates, and their sums by job."""
    jobs, count = len(cells.jobs), len(cells.job)
    pair = np.repeat(clusters, np.diff(cells.start)) * jobs + cells.job
    pairs, group, in_group = np.unique(pair, return_inverse=True, return_counts=True)
    x = cells.x[:, :used]
    arms = (
        [cells.count[:, None], cells.y[:, on, None], cells.yy[:, on, None], x, cells.xy[:, on, :used]] for on in (0, 1)
    )
    rows = np.stack([np.hstack(columns) for columns in arms])
    all_xx = moments.by_job(cells.job, np.ascontiguousarray(cells.xx[:, :used, :used].reshape(count, -1)), jobs)
    below = np.flatnonzero(np.tri(used))
    return kernel.Sums(
        cells.start,
        clusters,
        cells.job,
        group,
        rows,
        cells.weight,
        all_rows=moments.by_job(cells.job, rows[0], jobs),
        all_xx=np.ascontiguousarray(all_xx[:, below]),
        xx=all_xx.sum(axis=0).reshape(used, used),
        group_cells=in_group,
        group_held=np.bincount(group, cells.count).astype(np.float64),
        groups=np.bincount(pairs % jobs, minlength=jobs).astype(np.float64),
    )
