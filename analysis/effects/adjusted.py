"""Job-level differences against concurrent control machines, adjusted by what was known before, pooled over jobs.

Each job's effect is the difference of its covariate-adjusted means (analysis of covariance; Deng et al. 2013 call the
case of one covariate CUPED). Jobs weigh by their full quota; those that no treated machine shows are taken for like the
others, or each is shrunk towards them (empirical Bayes; Efron and Morris 1975). Machines, or racks, are the clusters.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from analysis.effects import kernel
from analysis.effects.cells import Cells
from analysis.effects.effect import Answers, Effect
from analysis.effects.study import Study, concluded
from analysis.statistics import Bools, Floats, Ints

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

        Examples
        --------
        >>> from analysis.effects.study import example
        >>> study = example()
        >>> Adjusted().many(study.cells, study.treated[None, :]).change.round(2)
        array([0.1])
        """
        chosen = np.ascontiguousarray(treated, dtype=np.bool_)
        clusters: Ints = np.arange(len(cells.machines), dtype=np.int64) if self.cluster == "machine" else cells.rack
        how = kernel.How(_POOLING[self.pooling], _LEVERAGE[self.correction], self.correction != "cr0", cells.known)
        out = np.empty((len(chosen), 3))
        sums = _sums(cells, 0 if cells.known else min(self.covariates, cells.x.shape[1]), clusters)
        kernel.draws(sums, chosen, how, out)
        return Answers(out[:, 0], out[:, 1], out[:, 2])

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment.

        Raises
        ------
        NotEnoughDataError
            If fewer than two machines are treated, or untreated.

        Examples
        --------
        >>> from analysis.effects.study import example
        >>> round(Adjusted().estimate(example()).change, 2)
        0.1
        """
        return concluded(self, study, confidence)


def _sums(cells: Cells, used: int, clusters: Ints) -> kernel.Sums:
    """Return the cells with the first so many covariates, and their sums by job."""
    jobs = len(cells.jobs)
    pair = np.repeat(clusters, np.diff(cells.start)) * jobs + cells.job

    def by_job(value: Floats) -> Floats:
        flat, made = value.reshape(len(value), -1), np.zeros((jobs, int(np.prod(value.shape[1:]))))
        for k in range(flat.shape[1]):
            made[:, k] = np.bincount(cells.job, flat[:, k], jobs)
        return made.reshape(jobs, *value.shape[1:])

    x, xy = (np.ascontiguousarray(each) for each in (cells.x[:, :used], cells.xy[:, :, :used]))
    return kernel.Sums(
        cells.start,
        clusters,
        cells.job,
        np.unique(pair, return_inverse=True)[1],
        cells.count,
        x,
        cells.y,
        cells.yy,
        xy,
        cells.weight,
        all_held=by_job(cells.count),
        all_x=by_job(x),
        all_xx=np.ascontiguousarray(by_job(cells.xx[:, :used, :used])),
        all_y=by_job(cells.y[:, 0]),
        all_yy=by_job(cells.yy[:, 0]),
        all_xy=by_job(xy[:, 0]),
    )
