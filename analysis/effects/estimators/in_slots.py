"""The error of an estimate from slots, which have as many machines of each platform in each cluster."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from analysis.effects.cells import JobMachineSums
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.estimators.balanced import influence
from analysis.effects.observations import Design
from analysis.effects.study import Answers, Effect, Need, Study, concluded
from models.arrays import Bools, Floats, Ints

_FEWEST = 5
"""Machines for each stratum from which an error is that within strata."""


@dataclass(frozen=True, slots=True, eq=False)
class InSlots:
    """An estimator whose error is that within strata, since its arms are slots, which are even in each stratum.

    What machines of one stratum have in common cancels in a comparison of slots, however much strata differ.
    """

    base: Adjusted
    """Whose change is taken."""
    strata: "pd.Series[int]"
    """By machine, its platform in its cluster."""
    designs: ClassVar[frozenset[Design]] = frozenset({"concurrent"})
    needs: ClassVar[tuple[Need, ...]] = ()

    @property
    def name(self) -> str:
        """That of the estimator."""
        return self.base.name

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws.

        Parameters
        ----------
        cells : of M machines
        treated : (R, M) slots
        """
        answers = self.base.many(cells, treated)
        known = self.strata.reindex(cells.machines).fillna(-1).to_numpy()
        strata, stratum = np.unique(known, return_inverse=True)
        machines = len(stratum)
        if cells.known or len(strata) < 2 or _FEWEST * len(strata) > machines:
            return answers
        spared = np.zeros(len(treated))
        for draw, (having, change) in enumerate(zip(treated, np.nan_to_num(answers.change), strict=True)):
            u = influence(cells, having, self.base.covariates, float(change))
            spared[draw] = float(u @ u) - within_strata(u, having, stratum)
        left = (machines - 2 * len(strata)) / (machines - 2)
        error = np.sqrt(np.maximum(answers.error**2 - spared, 0.0))
        return answers._replace(error=error, freedom=answers.freedom * left)

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""
        return concluded(self, study, confidence)


def within_strata(influence_of: Floats, treated: Bools, stratum: Ints) -> float:
    """Return the variance of a difference between arms that were drawn within strata.

    That of a stratified sample (Cochran 1977, section 5.3) in each arm: with uₘ what a machine adds to the estimate,
    Σ n / (n - 1) Σ (u - ū)² over strata with n machines in the arm; a machine alone in its stratum counts by u². Where
    the arms' shares of strata differ, the square of what that alone sets them apart is added, (Σ (p₁ - p₀) c̄)²: c is u
    times the machines of its arm, c̄ its mean over both arms of a stratum.

    Parameters
    ----------
    influence_of : (M,) what each machine adds to its arm's estimate about that arm's mean
    treated : (M,)
    stratum : (M,) 0 to S - 1

    Examples
    --------
    >>> arms, strata = np.arange(8) < 4, np.array([0, 0, 1, 1, 0, 0, 1, 1])
    >>> within_strata(np.array([2.0, 2, -2, -2, 1, 3, -1, -3]), arms, strata)
    8.0
    """
    strata = int(stratum.max()) + 1
    variance, shares, sums = 0.0, list[Floats](), np.zeros(strata)
    for arm in (treated, ~treated):
        of, u = stratum[arm], influence_of[arm]
        count, total = np.bincount(of, minlength=strata), np.bincount(of, u, strata)
        rest = u - np.where(count > 1, total / np.maximum(count, 1), 0.0)[of]
        times = np.where(count > 1, count / np.maximum(count - 1, 1), 1.0)
        variance += float(times[of] @ rest**2)
        shares.append(count / max(len(u), 1))
        sums += total * len(u)
    common = sums / np.maximum(np.bincount(stratum, minlength=strata), 1)
    return variance + float((shares[0] - shares[1]) @ common) ** 2
