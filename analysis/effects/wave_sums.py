"""The compiled part of `waves`: means of jobs by stage and arm, and what each machine adds to their differences.

All compiled helpers live in this file because numba's cache does not look into others.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from models.arrays import Bools, Floats, Ints

_PRIOR = 10.0
"""Degrees of freedom that the variance over all jobs counts for in the variance of one."""
_RIDGE = 1e-9
_TINY = 1e-12


class Sums(NamedTuple):
    """C triples of machine, job and stage, in this order; rows count by their presence, values are relative."""

    machine: Ints
    job: Ints
    stage: Ints
    held: Floats
    """(C,) presence."""
    squares: Floats
    """(C,) sums of squared presences."""
    x: Floats
    """(C, K) covariates, centred within jobs."""
    y: Floats
    """(C, 2) values without and with the feature."""
    xy: Floats
    """(C, 2, K)"""
    xx: Floats
    """(K, K) over all rows."""
    weight: Floats
    """(J,) what a relative change of each job changes the fleet's metric by."""


class Seen(NamedTuple):
    """What a draw shows: by job, and by job, stage and arm."""

    effect: Floats
    """(J,) relative effects, 0 of jobs not seen in both states."""
    variance: Floats
    """(J,)"""
    there: Bools
    """(J,) jobs seen in both states in one stage."""
    level: Floats
    """(J,) means without the feature."""
    below: Floats
    """(J,) what effects are relative to."""
    adjusted: Floats
    """(C,) values less what covariates explain."""
    held: Floats
    """(J, T, 2)"""
    mean: Floats
    """(J, T, 2) of adjusted values."""
    by: Floats
    """(C,) how much each row of a cell moves its job's effect, by its presence."""
    overlap: Floats
    """(J, T) what a stage counts for in its job's effect: N₁ N₀ / (N₁ + N₀)."""


@njit(cache=True)
def seen(sums: Sums, since: Ints) -> Seen:
    """Return what a draw shows of each job.

    Parameters
    ----------
    sums : of all machines
    since : (M,) the stage from which each has the feature
    """
    held, mean, adjusted = _means(sums, since)
    jobs, stages = held.shape[0], held.shape[1]
    overlap, below, above = np.zeros((jobs, stages)), np.zeros(jobs), np.zeros(jobs)
    level, effect, there = np.ones(jobs), np.zeros(jobs), np.zeros(jobs, dtype=np.bool_)
    for j in range(jobs):
        total, count, both = 0.0, 0, 0.0
        for t in range(stages):
            if held[j, t, 0] > 0.0:
                total += mean[j, t, 0]
                count += 1
            if held[j, t, 0] > 0.0 and held[j, t, 1] > 0.0:
                overlap[j, t] = held[j, t, 0] * held[j, t, 1] / (held[j, t, 0] + held[j, t, 1])
                below[j] += overlap[j, t] * mean[j, t, 0]
                above[j] += overlap[j, t] * (mean[j, t, 1] - mean[j, t, 0])
                both += overlap[j, t]
        level[j] = total / count if count > 0 else 1.0
        there[j] = both > 0.0
        effect[j] = above[j] / below[j] if there[j] else 0.0
    made = Seen(effect, np.zeros(jobs), there, level, below, adjusted, held, mean, np.empty(len(adjusted)), overlap)
    _pulls(sums, since, made)
    _variances(sums, since, made)
    return made


@njit(cache=True)
def _means(sums: Sums, since: Ints) -> tuple[Floats, Floats, Floats]:
    """Return presence and adjusted mean by job, stage and arm, (J, T, 2), and adjusted values, (C,)."""
    cells, covariates = sums.x.shape
    jobs, stages = len(sums.weight), sums.stage.max() + 1
    held, y = np.zeros((jobs, stages, 2)), np.zeros((jobs, stages, 2))
    x, xx, xy = np.zeros((jobs, stages, 2, covariates)), sums.xx.copy(), np.zeros(covariates)
    for c in range(cells):
        j, t = sums.job[c], sums.stage[c]
        arm = 1 if t >= since[sums.machine[c]] else 0
        held[j, t, arm] += sums.held[c]
        y[j, t, arm] += sums.y[c, arm]
        for k in range(covariates):
            x[j, t, arm, k] += sums.x[c, k]
            xy[k] += sums.xy[c, arm, k]
    for j in range(jobs):
        for t in range(stages):
            for arm in range(2):
                if held[j, t, arm] > 0.0:
                    _less(xx, xy, x[j, t, arm], y[j, t, arm], held[j, t, arm])
    slope: Floats = np.zeros(covariates)
    if covariates > 0:
        for k in range(covariates):
            xx[k, k] += _RIDGE * xx[k, k] + _TINY
        slope = np.linalg.solve(xx, xy).astype(np.float64)
    adjusted, mean = np.zeros(cells), np.zeros((jobs, stages, 2))
    for c in range(cells):
        j, t = sums.job[c], sums.stage[c]
        arm = 1 if t >= since[sums.machine[c]] else 0
        adjusted[c] = sums.y[c, arm]
        for k in range(covariates):
            adjusted[c] -= slope[k] * sums.x[c, k]
        mean[j, t, arm] += adjusted[c] / held[j, t, arm]
    return held, mean, adjusted


@njit(cache=True)
def _less(xx: Floats, xy: Floats, x: Floats, y: float, held: float) -> None:
    """Take the products of a group's means from products over all rows."""
    for k in range(len(x)):
        xy[k] -= x[k] * y / held
        for m in range(len(x)):
            xx[k, m] -= x[k] * x[m] / held


@njit(cache=True)
def _pulls(sums: Sums, since: Ints, found: Seen) -> None:
    """Write how much each row of a cell moves its job's effect, by its presence."""
    effect, below, overlap, held, by = found.effect, found.below, found.overlap, found.held, found.by
    for c in range(len(by)):
        j, t = sums.job[c], sums.stage[c]
        arm = 1 if t >= since[sums.machine[c]] else 0
        sign = 1.0 if arm else -(1.0 + effect[j])
        by[c] = overlap[j, t] * sign / held[j, t, arm] / below[j] if below[j] > 0.0 else 0.0


@njit(cache=True)
def _moves(sums: Sums, since: Ints, found: Seen, effect: Floats) -> Floats:
    """Return what is left of each cell without its job's course, times the effect where it has the feature, (C,).

    Times how much that moves the effect of its job.
    """
    adjusted, mean, by = found.adjusted, found.mean, found.by
    out = np.empty(len(by))
    for c in range(len(by)):
        j, t = sums.job[c], sums.stage[c]
        factor = 1.0 + effect[j] if t >= since[sums.machine[c]] else 1.0
        out[c] = by[c] * (adjusted[c] - sums.held[c] * mean[j, t, 0] * factor)
    return out


@njit(cache=True)
def _variances(sums: Sums, since: Ints, found: Seen) -> None:
    """Write each job's variance, clustered by machine, drawn towards what all jobs show."""
    jobs, cells = len(found.effect), len(sums.job)
    moves, by, variance = _moves(sums, since, found, found.effect), found.by, found.variance
    own, unit, pairs, pair = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs), 0.0
    for c in range(cells):
        j = sums.job[c]
        pair += moves[c]
        unit[j] += by[c] ** 2 * sums.squares[c]
        if c + 1 == cells or sums.job[c + 1] != j or sums.machine[c + 1] != sums.machine[c]:
            own[j] += pair**2
            pairs[j] += 1.0
            pair = 0.0
    whole = unit[found.there].sum()
    typical = own[found.there].sum() / whole if whole > 0.0 else 0.0
    for j in range(jobs):
        freedom = max(pairs[j] - 2.0, 0.0)
        ratio = own[j] / unit[j] if unit[j] > 0.0 else 0.0
        variance[j] = max((freedom * ratio + _PRIOR * typical) / (freedom + _PRIOR) * unit[j], _TINY)


@njit(cache=True)
def influences(sums: Sums, since: Ints, found: Seen, gain: Floats, fitted: Floats) -> Floats:
    """Return what each machine adds to the change of the fleet, corrected for its own pull on the fit; (M,).

    Parameters
    ----------
    sums : of all machines
    since : (M,) the stage from which each has the feature
    found : what the draw shows
    gain : (J,) what each job's effect counts for
    fitted : (J,) effects that residuals are taken from
    """
    out, cells = np.zeros(len(since)), len(sums.job)
    moves, overlap, held = _moves(sums, since, found, fitted), found.overlap, found.held
    whole = np.array([max(overlap[j].sum(), _TINY) for j in range(len(gain))])
    first, pull = 0, 0.0
    for c in range(cells):
        j, machine, t = sums.job[c], sums.machine[c], sums.stage[c]
        if t >= since[machine]:
            pull += sums.held[c] * overlap[j, t] / held[j, t, 1]
        if c + 1 < cells and sums.job[c + 1] == j and sums.machine[c + 1] == machine:
            continue
        for at in range(first, c + 1):
            arm = 1 if sums.stage[at] >= since[machine] else 0
            count = held[j, sums.stage[at], arm]
            share = pull / whole[j] if arm else sums.held[at] / count
            out[machine] += gain[j] * moves[at] / max(1.0 - share, 1.0 / (1.0 + max(count, 1.0)))
        first, pull = c + 1, 0.0
    return out
