"""A staged roll-out: instances compared, by stage, with their jobs' on machines that have not got the feature yet.

Callaway and Sant'Anna (2021, section 2, with not-yet-treated controls), after adjustment for what was known before the
first stage. So a job's course over time drops out, whatever it is. A job's stages count by how well both arms are seen
in them, which is efficient if its relative effect is the same in all. Jobs weigh by their full quota; those seen too
little, or never, are shrunk towards the others. The variance is clustered by machine over all stages, so a machine is
one cluster, before its wave and after.

All compiled helpers live in this file because numba's cache does not look into others.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from analysis.effects.cells import NEVER, JobMachineSums, StageSums
from analysis.effects.linear_systems import TINY, slopes
from analysis.effects.observations import Design
from analysis.effects.per_job import between
from analysis.effects.study import Answers, Effect, Need, Study, concluded
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import InputError

_PRIOR = 10.0
"""Degrees of freedom that the variance over all jobs counts for in the variance of one."""


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """The change of the fleet from machines that get the feature one wave after another; compiled."""

    since: Ints | None = None
    """(R, M) the stage from which each machine has the feature in each draw, or `NEVER`; else the cells say it."""
    name: str = "staged"
    """Its name in tables and on the command line."""
    designs: ClassVar[frozenset[Design]] = frozenset({"staged"})
    needs: ClassVar[tuple[Need, ...]] = ("stages",)

    def many(self, cells: JobMachineSums, treated: Bools) -> Answers:
        """Return what it says of R draws.

        Parameters
        ----------
        cells : of M machines, with their sums by stage
        treated : (R, M) machines that get the feature

        Returns
        -------
        Answers
            NaN where no job is seen in both states in one stage.
        """
        stages = cells.stages
        if stages is None:
            raise InputError(f"the estimator {self.name} needs the stages of a roll-out")
        known = stages.since[None, :] if self.since is None and stages.since is not None else self.since
        if known is None or treated.shape != known.shape or ((known < NEVER) != treated).any():
            raise InputError(f"stages are known of other machines than the {int(treated.sum())} with the feature")
        if len(cells.machines) != treated.shape[1]:
            raise InputError(f"stages are known of {treated.shape[1]} machines, not of {len(cells.machines)}")
        answers = np.array([_answer(stages.sums, draw) for draw in known]).reshape(-1, 3)
        return Answers(answers[:, 0], answers[:, 1], answers[:, 2])

    def estimate(self, study: Study, confidence: float = 0.95) -> Effect:
        """Return what it says of one experiment."""
        answers = self.many(study.cells, study.treated[None, :])
        if not np.isfinite(answers.change[0]):
            raise NotEnoughDataError(1, 0, "jobs seen with and without the feature in one period")
        effect, stages = concluded(self, study, confidence), study.cells.stages
        if stages is None or stages.jobs is None:
            return effect
        covered = float(study.cells.share[stages.jobs].sum())
        return replace(effect, controls=stages.controls, jobs=len(stages.jobs), quota_coverage=covered)


class _JobFit(NamedTuple):
    """What a draw shows: by job, and by job, stage and arm."""

    effect: Floats
    """(J,) relative effects, 0 of jobs not seen in both states."""
    variance: Floats
    """(J,)"""
    estimable: Bools
    """(J,) jobs seen in both states in one stage."""
    level: Floats
    """(J,) means without the feature."""
    below: Floats
    """(J,) what effects are relative to."""
    adjusted: Floats
    """(C,) values less what covariates explain."""
    presence: Floats
    """(J, T, 2)"""
    mean: Floats
    """(J, T, 2) of adjusted values."""
    by: Floats
    """(C,) how much each row of a cell moves its job's effect, by its presence."""
    overlap: Floats
    """(J, T) what a stage counts for in its job's effect: N₁ N₀ / (N₁ + N₀)."""


@njit(cache=True)
def _jobs_of(sums: StageSums, since: Ints) -> _JobFit:
    """Return what a draw shows of each job; `since` is the stage from which each machine has the feature, (M,)."""
    presence, mean, adjusted = _means(sums, since)
    jobs, stages = presence.shape[0], presence.shape[1]
    overlap, below, above = np.zeros((jobs, stages)), np.zeros(jobs), np.zeros(jobs)
    level, effect, estimable = np.ones(jobs), np.zeros(jobs), np.zeros(jobs, dtype=np.bool_)
    for j in range(jobs):
        total, count, both = 0.0, 0, 0.0
        for t in range(stages):
            if presence[j, t, 0] > 0.0:
                total += mean[j, t, 0]
                count += 1
            if presence[j, t, 0] > 0.0 and presence[j, t, 1] > 0.0:
                overlap[j, t] = presence[j, t, 0] * presence[j, t, 1] / (presence[j, t, 0] + presence[j, t, 1])
                below[j] += overlap[j, t] * mean[j, t, 0]
                above[j] += overlap[j, t] * (mean[j, t, 1] - mean[j, t, 0])
                both += overlap[j, t]
        level[j] = total / count if count > 0 else 1.0
        estimable[j] = both > 0.0
        effect[j] = above[j] / below[j] if estimable[j] else 0.0
    fit = _JobFit(
        effect, np.zeros(jobs), estimable, level, below, adjusted, presence, mean, np.empty(len(adjusted)), overlap
    )
    _pulls(sums, since, fit)
    _variances(sums, since, fit)
    return fit


@njit(cache=False)
def _means(sums: StageSums, since: Ints) -> tuple[Floats, Floats, Floats]:
    """Return presence and adjusted mean by job, stage and arm, (J, T, 2), and adjusted values, (C,)."""
    cells, covariates = sums.x.shape
    jobs, last = len(sums.weight), 0
    for c in range(cells):
        last = max(last, sums.stage[c])
    stages = last + 1
    presence, y = np.zeros((jobs, stages, 2)), np.zeros((jobs, stages, 2))
    x, xx, xy = np.zeros((jobs, stages, 2, covariates)), sums.xx.copy(), np.zeros(covariates)
    for c in range(cells):
        j, t = sums.job[c], sums.stage[c]
        arm = 1 if t >= since[sums.machine[c]] else 0
        presence[j, t, arm] += sums.presence[c]
        y[j, t, arm] += sums.y[c, arm]
        for k in range(covariates):
            x[j, t, arm, k] += sums.x[c, k]
            xy[k] += sums.xy[c, arm, k]
    for j in range(jobs):
        for t in range(stages):
            for arm in range(2):
                if presence[j, t, arm] > 0.0:
                    _less_means(xx, xy, x[j, t, arm], y[j, t, arm], presence[j, t, arm])
    slope = slopes(xx, xy)
    adjusted, mean = np.zeros(cells), np.zeros((jobs, stages, 2))
    for c in range(cells):
        j, t = sums.job[c], sums.stage[c]
        arm = 1 if t >= since[sums.machine[c]] else 0
        adjusted[c] = sums.y[c, arm]
        for k in range(covariates):
            adjusted[c] -= slope[k] * sums.x[c, k]
        mean[j, t, arm] += adjusted[c] / presence[j, t, arm]
    return presence, mean, adjusted


@njit(cache=False, borrows=True)
def _less_means(xx: Floats, xy: Floats, x: Floats, y: float, presence: float) -> None:
    """Take the products of a group's means from products over all rows."""
    for k in range(len(x)):
        xy[k] -= x[k] * y / presence
        for m in range(len(x)):
            xx[k, m] -= x[k] * x[m] / presence


@njit(cache=False, borrows=True)
def _pulls(sums: StageSums, since: Ints, fit: _JobFit) -> None:
    """Write how much each row of a cell moves its job's effect, by its presence."""
    effect, below, overlap, presence, by = fit.effect, fit.below, fit.overlap, fit.presence, fit.by
    for c in range(len(by)):
        j, t = sums.job[c], sums.stage[c]
        arm = 1 if t >= since[sums.machine[c]] else 0
        sign = 1.0 if arm else -(1.0 + effect[j])
        by[c] = overlap[j, t] * sign / presence[j, t, arm] / below[j] if below[j] > 0.0 else 0.0


@njit(cache=False)
def _moves(sums: StageSums, since: Ints, fit: _JobFit, effect: Floats) -> Floats:
    """Return what is left of each cell without its job's course, times the effect where it has the feature, (C,).

    Times how much that moves the effect of its job.
    """
    adjusted, mean, by = fit.adjusted, fit.mean, fit.by
    out = np.empty(len(by))
    for c in range(len(by)):
        j, t = sums.job[c], sums.stage[c]
        factor = 1.0 + effect[j] if t >= since[sums.machine[c]] else 1.0
        out[c] = by[c] * (adjusted[c] - sums.presence[c] * mean[j, t, 0] * factor)
    return out


@njit(cache=False)
def _variances(sums: StageSums, since: Ints, fit: _JobFit) -> None:
    """Write each job's variance, clustered by machine, drawn towards what all jobs show."""
    jobs, cells = len(fit.effect), len(sums.job)
    moves, by, variance = _moves(sums, since, fit, fit.effect), fit.by, fit.variance
    own, unit, pairs, pair = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs), 0.0
    for c in range(cells):
        j = sums.job[c]
        pair += moves[c]
        unit[j] += by[c] ** 2 * sums.squares[c]
        if c + 1 == cells or sums.job[c + 1] != j or sums.machine[c + 1] != sums.machine[c]:
            own[j] += pair**2
            pairs[j] += 1.0
            pair = 0.0
    whole, owned = 0.0, 0.0
    for j in range(jobs):
        if fit.estimable[j]:
            whole += unit[j]
            owned += own[j]
    typical = owned / whole if whole > 0.0 else 0.0
    for j in range(jobs):
        freedom = max(pairs[j] - 2.0, 0.0)
        ratio = own[j] / unit[j] if unit[j] > 0.0 else 0.0
        variance[j] = max((freedom * ratio + _PRIOR * typical) / (freedom + _PRIOR) * unit[j], TINY)


@njit(cache=True)
def _influences(sums: StageSums, since: Ints, fit: _JobFit, gain: Floats, fitted: Floats) -> Floats:
    """Return what each machine adds to the change of the fleet, corrected for its own pull on the fit; (M,).

    A job's effect counts by `gain`, (J,); residuals are taken from the effects `fitted`, (J,).
    """
    out, cells = np.zeros(len(since)), len(sums.job)
    moves, overlap, presence = _moves(sums, since, fit, fitted), fit.overlap, fit.presence
    whole = np.zeros(len(gain))
    for j in range(len(gain)):
        for t in range(overlap.shape[1]):
            whole[j] += overlap[j, t]
        whole[j] = max(whole[j], TINY)
    first, pull = 0, 0.0
    for c in range(cells):
        j, machine, t = sums.job[c], sums.machine[c], sums.stage[c]
        if t >= since[machine]:
            pull += sums.presence[c] * overlap[j, t] / presence[j, t, 1]
        if c + 1 < cells and sums.job[c + 1] == j and sums.machine[c + 1] == machine:
            continue
        for at in range(first, c + 1):
            arm = 1 if sums.stage[at] >= since[machine] else 0
            count = presence[j, sums.stage[at], arm]
            share = pull / whole[j] if arm else sums.presence[at] / count
            out[machine] += gain[j] * moves[at] / max(1.0 - share, 1.0 / (1.0 + max(count, 1.0)))
        first, pull = c + 1, 0.0
    return out


class _Pooled(NamedTuple):
    """How jobs are pooled: what each effect counts for, and the effects that residuals are taken from."""

    gain: Floats
    fitted: Floats
    left: float
    change: float


def _answer(sums: StageSums, since: Ints) -> tuple[float, float, float]:
    """Return change, standard error and degrees of freedom of one draw."""
    fit = _jobs_of(sums, since)
    if not fit.estimable.any():
        return np.nan, np.nan, np.nan
    pooled = _pooled(sums, fit)
    influence = _influences(sums, since, fit, pooled.gain, pooled.fitted)
    ever = since < NEVER
    parts, freedoms = [], []
    for arm in (ever, ~ever):
        machines = int(arm.sum())
        few = machines / (machines - 1) if machines > 1 else 1.0
        parts.append(float((influence[arm] ** 2).sum()) * few)
        freedoms.append(max(machines - 1.0, 1.0))
    total = sum(parts) + pooled.left
    guessed = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True))
    freedom = max(total**2 / guessed, freedoms[0]) if guessed > 0 else freedoms[0]
    return pooled.change, float(np.sqrt(total)), freedom


def _pooled(sums: StageSums, fit: _JobFit) -> _Pooled:
    """Return jobs' effects pooled: each shrunk towards the others by how little is known of it."""
    estimable, variance = fit.estimable, fit.variance
    weight = sums.weight * fit.level
    share = weight / weight.sum()
    within = max(between(fit.effect[estimable], variance[estimable]), TINY) if estimable.sum() > 1 else TINY
    trust = np.where(estimable, within / (within + np.where(estimable, variance, 1.0)), 0.0)
    centre = share * trust / (share * trust).sum()
    gain: Floats = share * trust + (share * (1 - trust)).sum() * centre
    middle = float((centre * fit.effect).sum())
    fitted: Floats = np.where(estimable, middle + trust * (fit.effect - middle), 0.0)
    left = within * float(((gain - share) ** 2).sum())
    return _Pooled(gain, fitted, left, float((gain * fit.effect).sum()))
