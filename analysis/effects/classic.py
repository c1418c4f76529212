"""What one would use otherwise: the published estimator on the same cells, and ratios of machines, also with CUPED."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd

from analysis.effects.cells import JobMachineSums
from analysis.effects.observations import Design
from analysis.effects.study import Answers, Effect, Need, Study, concluded, half_width
from analysis.wsmeter.estimators import WSMeter
from analysis.wsmeter.summaries import Covered, Current
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import InputError

_ON, _ON2, _OFF = range(3)
"""Columns of the values of cells."""
MACHINES, RATIO, PAST, NOW, BEFORE, BOTH = range(6)
"""Columns of the moments of an arm: its machines, ratio and ratio before; variances and covariance of the two."""
_NORMAL = 1e15
"""Degrees of freedom of those who take the normal distribution."""


@dataclass(frozen=True, slots=True)
class Published:
    """WSMeter in an experiment: `analysis.wsmeter.estimators.WSMeter` on stays as measured (Lee et al. 2018, 4.3).

    Covered jobs, renormalised weights, independent instances; the current fleet counts as known exactly. What a job's
    instances do in common from day to day is left in, and short stays count like long ones, as in
    `wsc wsmeter estimate`. Its half-width is not fixed at two standard errors: it is that of the confidence asked for,
    like every estimator's.
    """

    name: str = "published"
    """Its name in tables and on the command line."""
    baseline: Literal["before", "concurrent"] = "before"
    """before: the whole fleet as it was before, taken for exact. concurrent: the machines without the feature."""
    min_instances: int = 4
    """A job is covered from this many treated instances on."""
    widening: float = 1.0
    """Factor on the margin; the paper's remedy for what it leaves out is 1.2."""
    designs: ClassVar[frozenset[Design]] = frozenset({"concurrent"})
    needs: ClassVar[tuple[Need, ...]] = ()

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws; NaN where no job is covered, and of stays that are their own control.

        Parameters
        ----------
        cells : any
        treated : (R, M)
        """
        return covered([self], cells, treated)[0]

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what `WSMeter` says of one experiment; of the quota it speaks for the covered jobs' alone.

        Raises
        ------
        InputError
            If another mean than that over instances is meant.
        """
        if study.cells.target != "instances":
            raise InputError(f"{self.name} estimates the mean over instances, not target {study.cells.target}")
        effect = concluded(self, study, confidence)
        half_width_se = float(half_width(np.ones(()), np.array(_NORMAL), confidence))
        estimate = WSMeter(half_width_se, self.min_instances, self.widening).over(self.covers(study))
        return replace(
            effect,
            change=estimate.change,
            low=estimate.low,
            high=estimate.high,
            margin=estimate.margin,
            error=estimate.margin / half_width_se,
            jobs=estimate.jobs,
            quota_coverage=estimate.quota_coverage,
        )

    def covers(self, study: Study) -> Covered:
        """Return the covered jobs of an experiment, and what was measured of them."""
        cells = study.cells
        if self.baseline == "concurrent":
            current = _measured(cells, ~study.treated, arm=0)
        else:
            known = np.flatnonzero(np.isfinite(cells.level))
            unknown = np.full(len(known), np.nan)
            level = (cells.level * cells.scale)[known]
            current = Current(
                cells.jobs[known], cells.share[known], level, unknown, np.ones(len(known), np.int64), unknown
            )
        jobs = pd.DataFrame({"job": cells.jobs, "quota": cells.share})
        return Covered.of(current, _measured(cells, study.treated, arm=1), self.min_instances, 1, jobs)


def _measured(cells: JobMachineSums, machines: Bools, arm: int) -> Current:
    """Return what was measured on some machines without (0) or with the feature (1), job by job."""
    chosen, count = np.repeat(machines, np.diff(cells.start)), len(cells.jobs)
    instances, value, square = (
        np.bincount(cells.job, np.where(chosen, sums, 0.0), count)
        for sums in (cells.instances, cells.measured[:, arm], cells.measured_squares[:, arm])
    )
    at = np.flatnonzero(instances > 0)
    n = instances[at]
    mean = value[at] / n
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(square[at] / n - mean**2, 0.0) * n / (n - 1.0)
    scale = cells.scale[at]
    unknown = np.full(int(machines.sum()), np.nan)
    return Current(
        cells.jobs[at], cells.share[at], mean * scale, np.sqrt(variance) * scale, n.astype(np.int64), unknown
    )


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
    designs: ClassVar[frozenset[Design]] = frozenset({"concurrent", "crossover"})
    needs: ClassVar[tuple[Need, ...]] = ()

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws.

        Parameters
        ----------
        cells : with `before`, if it is to be used; of known levels it is not, each machine being its own past: where
            machines switch, the ratio is that of what they do with the feature to what they do without
        treated : (R, M)
        """
        return ratios([self], cells, treated)[0]

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""
        return concluded(self, study, confidence)


def covered(ones: Sequence[Published], cells: JobMachineSums, treated: Bools) -> list[Answers]:
    """Return what each of several says of R draws; what they share is done once.

    Parameters
    ----------
    ones : all with the same baseline and least number of instances
    cells, treated : as for `Published.many`
    """
    chosen = np.array(treated, dtype=np.bool_, order="C")
    values = np.stack([cells.measured[:, 1], cells.measured_squares[:, 1], cells.measured[:, 0]], axis=1)
    sums = JobCells(cells.start, cells.job, cells.instances, values, cells.weight, cells.level)
    out = np.full((len(chosen), 2), np.nan)
    if not cells.known:
        covered_jobs(sums, chosen, ones[0].min_instances, ones[0].baseline == "concurrent", out)
    change, error = out.T.copy()
    freedom = np.full(len(chosen), _NORMAL)
    return [Answers(change, error * estimator.widening, freedom) for estimator in ones]


def ratios(ones: Sequence[Ratio], cells: JobMachineSums, treated: Bools) -> list[Answers]:
    """Return what each of several says of R draws; what they share is done once.

    Parameters
    ----------
    ones : with and without `cuped`
    cells, treated : as for `Ratio.many`
    """
    chosen = np.array(treated, dtype=np.bool_, order="C")
    out = np.empty((len(chosen), 2, 6))
    moments(_machines(cells), chosen, out)
    off, on = out[:, 0].T, out[:, 1].T
    if cells.known:
        machines = on[MACHINES]
        return [Answers(on[RATIO] - 1.0, np.sqrt(on[NOW] / machines), machines - 1.0)] * len(ones)
    return [_difference(off, on, estimator.cuped) for estimator in ones]


def _machines(cells: JobMachineSums) -> Floats:
    """Return each machine's numerators without and with the feature, its denominator, and both before; (M, 5)."""
    if cells.switched is not None:
        totals = cells.switched.totals()
        return np.concatenate([totals, totals[:, :1], cells.before], axis=1)
    machine, count = np.repeat(np.arange(len(cells.machines)), np.diff(cells.start)), len(cells.machines)
    counts = np.bincount(cells.job, cells.count, len(cells.jobs))
    per_count = (cells.share / np.where(counts > 0.0, counts, 1.0))[cells.job]
    scale = cells.scale[cells.job]
    above = [np.bincount(machine, per_count * scale * cells.y[:, arm], count) for arm in range(2)]
    below = np.bincount(machine, per_count * (scale if cells.known else 1.0) * cells.count, count)
    return np.stack([*above, below, *cells.before.T], axis=1)


def _difference(off: Floats, on: Floats, cuped: bool) -> Answers:
    """Return the relative difference of the arms' ratios, given their moments, (6, R)."""
    arms, slope = (on, off), np.zeros(on.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        if cuped:
            known = (on[PAST] > 0) & (off[PAST] > 0)
            shared, spread = (on[row] + off[row] for row in (BOTH, BEFORE))
            slope = np.divide(shared, spread, out=slope, where=(spread > 0) & known)
        level = off[RATIO]
        growth = (on[RATIO] - slope * (on[PAST] - off[PAST])) / level
        with_it, without = (_variance(arm, slope, np.ones_like(slope)) for arm in arms)
        error = np.sqrt(with_it + _variance(off, slope, growth)) / level
        few = with_it**2 / (on[MACHINES] - 1.0) + without**2 / (off[MACHINES] - 1.0)
        freedom = np.where(few > 0, (with_it + without) ** 2 / few, on[MACHINES] - 1.0)
        return Answers(growth - 1.0, error, freedom)


def _variance(arm: Floats, slope: Floats, growth: Floats) -> Floats:
    """Return the variance of growth times an arm's ratio less slope times its ratio before."""
    now, before, both = (arm[row] for row in (NOW, BEFORE, BOTH))
    return np.asarray(np.maximum(growth**2 * now - 2 * slope * growth * both + slope**2 * before, 0.0) / arm[MACHINES])


class JobCells(NamedTuple):
    """Cells of M machines and J jobs."""

    start: Ints
    """(M + 1,)"""
    job: Ints
    instances: Ints
    sums: Floats
    """(C, 3): sums of values with the feature and of their squares, and of values without it."""
    weight: Floats
    """(J,)"""
    level: Floats
    """(J,) mean before; NaN where a job was not measured before."""


@njit(cache=True, error_model="numpy")
def covered_jobs(cells: JobCells, treated: Bools, least: int, concurrent: bool, out: Floats) -> None:
    """Write change and standard error of the covered jobs in each draw into `out`, (R, 2).

    Parameters
    ----------
    cells : in units of each job's scale, which are in its weight
    treated : (R, M)
    least : instances from which on a job is covered
    concurrent : whether to compare with the machines without the feature
    """
    jobs = cells.weight.size
    whole, present = _sums(cells, np.arange(cells.start.size - 1), jobs)
    for r in range(len(treated)):
        sums, instances = _sums(cells, np.flatnonzero(treated[r]), jobs)
        metric, value, square = 0.0, 0.0, 0.0
        for j in range(jobs):
            n, rest = instances[j], present[j] - instances[j]
            if n < least or (rest == 0 if concurrent else np.isnan(cells.level[j])):
                continue
            weight, mean = cells.weight[j], sums[j, _ON] / n
            variance = max(sums[j, _ON2] / n - mean**2, 0.0) * n / (n - 1.0)
            metric += weight * ((whole[j, _OFF] - sums[j, _OFF]) / rest if concurrent else cells.level[j])
            value += weight * mean
            square += weight**2 * variance / n
        out[r, 0] = value / metric - 1.0
        out[r, 1] = np.sqrt(square) / metric


@njit(cache=False)
def _sums(cells: JobCells, machines: Ints, jobs: int) -> tuple[Floats, Ints]:
    """Return sums of values and of instances over machines, by job."""
    sums, instances = np.zeros((jobs, cells.sums.shape[1])), np.zeros(jobs, np.int64)
    for machine in machines:
        for c in range(cells.start[machine], cells.start[machine + 1]):
            instances[cells.job[c]] += cells.instances[c]
            for p in range(cells.sums.shape[1]):
                sums[cells.job[c], p] += cells.sums[c, p]
    return sums, instances


@njit(error_model="numpy", borrows=True)
def moments(values: Floats, treated: Bools, out: Floats) -> None:
    """Write the moments of both arms' machines in each draw into `out`, (R, 2, 6), without the feature first.

    Parameters
    ----------
    values : (M, 5): numerators without and with the feature, denominator; numerator and denominator before
    treated : (R, M)
    """
    for r in range(len(treated)):
        for arm in range(2):
            _arm(values, treated[r], arm, out[r, arm])


@njit(cache=False, error_model="numpy", borrows=True)
def _arm(values: Floats, treated: Bools, arm: int, out: Floats) -> None:
    """Write the moments of one arm; each machine is linearised about the arm's ratio (delta method)."""
    machines, above, below, above_before, below_before = 0, 0.0, 0.0, 0.0, 0.0
    for m in range(treated.size):
        if treated[m] == (arm == 1):
            machines += 1
            above += values[m, arm]
            below += values[m, 2]
            above_before += values[m, 3]
            below_before += values[m, 4]
    known = below_before > 0.0
    ratio, past = above / below, above_before / below_before if known else 0.0
    now = before = both = 0.0
    for m in range(treated.size):
        if treated[m] == (arm == 1):
            residual = (values[m, arm] - ratio * values[m, 2]) / below
            residual_before = (values[m, 3] - past * values[m, 4]) / below_before if known else 0.0
            now += residual * residual
            before += residual_before * residual_before
            both += residual * residual_before
    scale = machines * (machines / (machines - 1.0))
    out[MACHINES], out[RATIO], out[PAST] = machines, ratio, past
    out[NOW], out[BEFORE], out[BOTH] = now * scale, before * scale, both * scale
