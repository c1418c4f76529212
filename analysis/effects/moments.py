"""Compiled sums over cells and machines: of jobs, as `classic` needs them, and the moments of machines of an arm."""

from typing import NamedTuple

import numpy as np
from numba import njit

from models.arrays import Bools, Floats, Ints

_ON, _ON2, _OFF = range(3)
"""Columns of the values of cells."""
MACHINES, RATIO, PAST, NOW, BEFORE, BOTH = range(6)
"""Columns of the moments of an arm: its machines, ratio and ratio before; variances and covariance of the two."""


class JobCells(NamedTuple):
    """Cells of M machines and J jobs."""

    start: Ints
    """(M + 1,)"""
    job: Ints
    instances: Ints
    values: Floats
    """(C, 3): sums of values with the feature and of their squares, and of values without it."""
    weight: Floats
    """(J,)"""
    level: Floats
    """(J,) mean before; NaN where a job was not measured before."""


@njit(cache=True, error_model="numpy")
def covered(cells: JobCells, treated: Bools, least: int, concurrent: bool, out: Floats) -> None:
    """Write change and standard error of the covered jobs in each draw into `out`, (R, 2).

    Parameters
    ----------
    cells : in units of each job's scale, which are in its weight
    treated : (R, M)
    least : instances from which on a job is covered
    concurrent : whether to compare with the machines without the feature
    """
    jobs = cells.weight.size
    whole, there = _sums(cells, np.arange(cells.start.size - 1), jobs)
    for r in range(len(treated)):
        sums, instances = _sums(cells, np.flatnonzero(treated[r]), jobs)
        metric, value, square = 0.0, 0.0, 0.0
        for j in range(jobs):
            n, rest = instances[j], there[j] - instances[j]
            if n < least or (rest == 0 if concurrent else np.isnan(cells.level[j])):
                continue
            weight, mean = cells.weight[j], sums[j, _ON] / n
            variance = max(sums[j, _ON2] / n - mean**2, 0.0) * n / (n - 1.0)
            metric += weight * ((whole[j, _OFF] - sums[j, _OFF]) / rest if concurrent else cells.level[j])
            value += weight * mean
            square += weight**2 * variance / n
        out[r, 0] = value / metric - 1.0
        out[r, 1] = np.sqrt(square) / metric


@njit(cache=True)
def _sums(cells: JobCells, machines: Ints, jobs: int) -> tuple[Floats, Ints]:
    """Return sums of values and of instances over machines, by job."""
    sums, instances = np.zeros((jobs, cells.values.shape[1])), np.zeros(jobs, np.int64)
    for machine in machines:
        for c in range(cells.start[machine], cells.start[machine + 1]):
            instances[cells.job[c]] += cells.instances[c]
            for p in range(cells.values.shape[1]):
                sums[cells.job[c], p] += cells.values[c, p]
    return sums, instances


@njit(cache=True)
def by_job(job: Ints, value: Floats, jobs: int) -> Floats:
    """Return the sums of (C, P) values of cells by job, (J, P)."""
    made = np.zeros((jobs, value.shape[1]))
    for c in range(job.size):
        for p in range(value.shape[1]):
            made[job[c], p] += value[c, p]
    return made


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, error_model="numpy")
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
            one = (values[m, arm] - ratio * values[m, 2]) / below
            other = (values[m, 3] - past * values[m, 4]) / below_before if known else 0.0
            now += one * one
            before += other * other
            both += one * other
    scale = machines * (machines / (machines - 1.0))
    out[MACHINES], out[RATIO], out[PAST] = machines, ratio, past
    out[NOW], out[BEFORE], out[BOTH] = now * scale, before * scale, both * scale
