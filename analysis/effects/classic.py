"""What one would use otherwise: the published estimator on the same cells, and ratios of machines, also with CUPED."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from analysis.effects.cells import Cells
from analysis.effects.effect import Answers, Effect
from analysis.effects.study import Study, concluded
from analysis.statistics import Bools, Floats

_NORMAL = 1e15
"""Degrees of freedom of those who take the normal distribution, or a fixed multiple of the standard error."""

Pair = tuple[Floats, Floats, Floats]
"""Two sums by machine, and their ratio in each draw."""


@dataclass(frozen=True, slots=True)
class Published:
    """WSMeter as printed (Lee et al. 2018, section 4.3): covered jobs, renormalised weights, independent instances."""

    name: str = "published"
    """Its name in tables and on the command line."""
    baseline: Literal["before", "concurrent"] = "before"
    """before: the whole fleet as it was before, taken for exact. concurrent: the machines without the feature."""
    min_instances: int = 4
    """A job is covered from this many treated instances on."""
    widening: float = 1.0
    """Factor on the margin; the paper's remedy for what it leaves out is 1.2."""

    def many(self, cells: Cells, treated: Bools) -> Answers:
        """Return what it says of R draws; the margin is twice the standard error, whatever the confidence.

        Parameters
        ----------
        cells : relative to each job's mean before, where `baseline` is that
        treated : (R, M)

        Returns
        -------
        Answers
            NaN where no job is covered.

        Examples
        --------
        >>> from analysis.effects.study import example
        >>> study = example()
        >>> Published().many(study.cells, study.treated[None, :]).change.round(1)
        array([0.1])
        """
        sums = (cells.count, cells.y[:, 1], cells.yy[:, 1], cells.instances.astype(np.float64))
        count, value, squares, instances = (_by_job(cells, treated, each) for each in sums)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = value / count
            variance = np.maximum(squares / count - mean**2, 0.0) * instances / (instances - 1.0)
            current = np.ones_like(mean)
            if self.baseline == "concurrent":
                others = ~np.asarray(treated, dtype=np.bool_)
                current = _by_job(cells, others, cells.y[:, 0]) / _by_job(cells, others, cells.count)
            covered = (instances >= self.min_instances) & np.isfinite(current)
            weight = np.where(covered, cells.weight, 0.0)
            metric = (weight * np.where(covered, current, 0.0)).sum(axis=1)
            change = (weight * np.where(covered, mean, 0.0)).sum(axis=1) / metric - 1.0
            error = np.sqrt((np.where(covered, weight**2 * variance / instances, 0.0)).sum(axis=1)) / metric
        # The paper's margin is 2 standard errors; the interval of 95% is 1.96 of what is returned.
        return Answers(change, error * self.widening * 2.0 / 1.959963984540054, np.full(len(change), _NORMAL))

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment.

        Examples
        --------
        >>> from analysis.effects.study import example
        >>> round(Published().estimate(example()).change, 1)
        0.1
        """
        return concluded(self, study, confidence)


@dataclass(frozen=True, slots=True)
class Ratio:
    """The fleet's quota-weighted mean as a ratio of sums over machines, as libraries for online experiments do it.

    With `cuped`, less what the same ratio before predicts (Deng et al. 2013), with the delta method for both (Deng
    et al. 2018); equal to the relative change of gbstats' RegressionAdjustedRatioStatistic: one slope, to which both
    arms count alike however large they are, and Welch's degrees of freedom of the difference.
    """

    name: str = "cuped"
    """Its name in tables and on the command line."""
    cuped: bool = True
    """Whether to use the machine's performance before."""

    def many(self, cells: Cells, treated: Bools) -> Answers:
        """Return what it says of R draws.

        Parameters
        ----------
        cells : with `before`, if it is to be used; of known levels it is not, each machine being its own past
        treated : (R, M)

        Examples
        --------
        >>> from analysis.effects.study import example
        >>> study = example()
        >>> Ratio(cuped=False).many(study.cells, study.treated[None, :]).change.round(1)
        array([0.1])
        """
        chosen = np.asarray(treated, dtype=np.bool_)
        if cells.known:
            own = _arm(cells, chosen, 1)
            none = np.zeros(len(chosen))
            return Answers(own["ratio"] - 1.0, np.sqrt(_variance(own, none, none + 1.0)), own["machines"] - 1.0)
        arms = [_arm(cells, chosen if on else ~chosen, on) for on in (1, 0)]
        slope = np.zeros(len(chosen))
        if self.cuped:
            known = (arms[0]["ratio_before"] > 0) & (arms[1]["ratio_before"] > 0)
            shared, spread = (arms[0][name] + arms[1][name] for name in ("with_past", "past"))
            slope = np.divide(shared, spread, out=np.zeros(len(chosen)), where=(spread > 0) & known)
        with np.errstate(invalid="ignore", divide="ignore"):
            growth = (arms[0]["ratio"] - slope * (arms[0]["ratio_before"] - arms[1]["ratio_before"])) / arms[1]["ratio"]
            on, off = (_variance(arm, slope, np.ones_like(slope)) for arm in arms)
            error = np.sqrt(on + _variance(arms[1], slope, growth)) / arms[1]["ratio"]
            few = on**2 / (arms[0]["machines"] - 1.0) + off**2 / (arms[1]["machines"] - 1.0)
            freedom = np.where(few > 0, (on + off) ** 2 / few, arms[0]["machines"] - 1.0)
            return Answers(growth - 1.0, error, freedom)

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment.

        Examples
        --------
        >>> from analysis.effects.study import example
        >>> round(Ratio(cuped=False).estimate(example()).change, 1)
        0.1
        """
        return concluded(self, study, confidence)


def _by_job(cells: Cells, treated: Bools, value: Floats) -> Floats:
    """Return the sums over the machines of each draw by job, (R, J)."""
    machines = len(cells.machines)
    table = sparse.csr_matrix((value, cells.job, cells.start), shape=(machines, len(cells.jobs)))
    return np.asarray((sparse.csr_matrix(np.asarray(treated, dtype=np.float64)) @ table).toarray())


def _arm(cells: Cells, chosen: Bools, on: int) -> dict[str, Floats]:
    """Return ratios, and variances and covariance of their linearised machines, for each draw."""
    machine = np.repeat(np.arange(len(cells.machines)), np.diff(cells.start))
    value = cells.quota * cells.scale[cells.job] * cells.y[:, on] / cells.count
    above = np.bincount(machine, value, len(cells.machines)).astype(np.float64)
    held = cells.quota * (cells.scale[cells.job] if cells.known else 1.0)
    below = np.bincount(machine, held, len(cells.machines)).astype(np.float64)
    pick = np.asarray(chosen, dtype=np.float64)
    machines = pick.sum(axis=1)

    def mean(each: Floats) -> Floats:
        return np.asarray(pick @ each / machines)

    with np.errstate(invalid="ignore", divide="ignore"):
        ratio, past = mean(above) / mean(below), mean(cells.before[:, 0]) / mean(cells.before[:, 1])
        now = _covariance(mean, (above, below, ratio), (above, below, ratio)) / mean(below) ** 2
        before = (cells.before[:, 0], cells.before[:, 1], past)
        few = machines / (machines - 1.0)
        known = mean(cells.before[:, 1]) > 0
        return {
            "machines": machines,
            "ratio": ratio,
            "ratio_before": np.where(known, past, 0.0),
            "now": now * few,
            "past": np.where(known, _covariance(mean, before, before) / mean(cells.before[:, 1]) ** 2 * few, 0.0),
            "with_past": np.where(
                known,
                _covariance(mean, (above, below, ratio), before) / mean(below) / mean(cells.before[:, 1]) * few,
                0.0,
            ),
        }


def _variance(arm: dict[str, Floats], slope: Floats, growth: Floats) -> Floats:
    """Return the variance of growth times an arm's ratio less slope times its ratio before."""
    squares = growth**2 * arm["now"] - 2 * slope * growth * arm["with_past"] + slope**2 * arm["past"]
    return np.asarray(np.maximum(squares, 0.0) / arm["machines"])


def _covariance(mean: Callable[[Floats], Floats], one: Pair, other: Pair) -> Floats:
    """Return the covariance of two linearised ratios, (a - r b) and (c - q d), each of mean 0."""
    a, b, r = one
    c, d, q = other
    return mean(a * c) - q * mean(a * d) - r * mean(b * c) + r * q * mean(b * d)
