"""Levels of stays in a crossover with the feature and without, relative to what their jobs and racks did: compiled."""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from models.arrays import Floats, Ints

FEW = 10.0
"""Instances of which what they do together is known half."""


class Rows(NamedTuple):
    """N rows of M machines that can switch, sorted by machine and stay; H racks, P periods."""

    start: Ints
    """(M,) rows of machine m are ``start[m]`` to ``end[m]``."""
    end: Ints
    rack: Ints
    """(M,)"""
    stay: NDArray[np.int32]
    job: NDArray[np.int32]
    period: NDArray[np.int32]
    by: Floats
    """(N, 2) exposure when switched off, and on."""
    value: Floats
    """(N, 2) performance when switched off, and on, relative to the job's scale; NaN where that was not observed."""
    there: Floats
    """(N,) share of the longest time present, of rows whose value as one that never switches is known; else 0."""
    apart: Floats
    """(N, 2) that value's deviation from its stay's mean, relative; and what it is less its job's course."""


class Own(NamedTuple):
    """What rows are in the state that a plan gives them: 1 with the feature, 0 without; exposure; that times value."""

    state: NDArray[np.int8]
    by: Floats
    above: Floats


class Common(NamedTuple):
    """Instances that never switch, (jobs or racks, P), and sums of their deviations: by job, and by rack less that."""

    job_held: Floats
    job_sum: Floats
    rack_held: Floats
    rack_sum: Floats


@njit(cache=True)
def shared(held: Floats, total: Floats) -> Floats:
    """Return what instances of each group do together: their mean deviation, drawn to that of all groups.

    Parameters
    ----------
    held, total : (groups, P) number of instances, and sum of their deviations

    Examples
    --------
    >>> shared(np.array([[0.0, 10.0], [20.0, 10.0]]), np.array([[0.0, 2.0], [2.0, 0.0]]))
    array([[0.1 , 0.15],
           [0.1 , 0.05]])
    """
    whole = total.sum(axis=0) / np.maximum(held.sum(axis=0), 1e-9)
    made: Floats = (total + FEW * whole) / (held + FEW)
    return made


@njit(cache=True)
def courses(rows: Rows, common: Common, which: Ints) -> tuple[Floats, Floats]:
    """Return the courses of jobs and of racks, as all machines that never switch but these tell them.

    Parameters
    ----------
    rows, common : of a crossover
    which : (n,) machines that have left those that never switch

    Examples
    --------
    >>> from analysis.effects.switching import example
    >>> made = example()
    >>> [course.shape for course in courses(made.rows, made.common, np.array([0]))]
    [(1, 4), (6, 4)]
    """
    held, total, racked, rest = (
        common.job_held.copy(),
        common.job_sum.copy(),
        common.rack_held.copy(),
        common.rack_sum.copy(),
    )
    for machine in which:
        rack = rows.rack[machine]
        for r in range(rows.start[machine], rows.end[machine]):
            there, j, p = rows.there[r], rows.job[r], rows.period[r]
            held[j, p] -= there
            total[j, p] -= there * rows.apart[r, 0]
            if racked[rack, p] > 0.0:
                racked[rack, p] -= there
                rest[rack, p] -= there * rows.apart[r, 1]
    return shared(np.maximum(held, 0.0), total), shared(np.maximum(racked, 0.0), rest)


@njit(cache=True)
def levels(rows: Rows, course: tuple[Floats, Floats], own: Own, which: Ints, out: Floats) -> None:
    """Write each stay's levels without and with the feature, relative to what its job and rack did, into `out`, (S, 2).

    A level is a ratio of sums over a stay's periods in a state. Both are NaN of a stay that was not seen in both.

    Parameters
    ----------
    rows, own : of a crossover
    course : of jobs and of racks
    which : (n,) machines whose stays are wanted; others are left as they are

    Examples
    --------
    >>> from analysis.effects.switching import example
    >>> made, out = example(), np.zeros((6, 2))
    >>> levels(made.rows, courses(made.rows, made.common, np.array([0])), made.own, np.array([0]), out)
    >>> out.round(2)[:2]
    array([[1. , 1.1],
           [0. , 0. ]])
    """
    of_job, of_rack = 1.0 + course[0], 1.0 + course[1]
    above, below = np.zeros(2), np.zeros(2)
    for machine in which:
        r, end, rack = rows.start[machine], rows.end[machine], of_rack[rows.rack[machine]]
        while r < end:
            stay, job = rows.stay[r], of_job[rows.job[r]]
            above[:], below[:] = 0.0, 0.0
            while r < end and rows.stay[r] == stay:
                p = rows.period[r]
                above[own.state[r]] += own.above[r]
                below[own.state[r]] += own.by[r] * job[p] * rack[p]
                r += 1
            both = below[0] > 0.0 and below[1] > 0.0
            for state in range(2):
                out[stay, state] = above[state] / below[state] if both else np.nan


@njit(cache=True)
def alone(rows: Rows, common: Common, own: Own, out: Floats) -> None:
    """Write each stay's levels beside all other machines into `out`, (S, 2).

    Examples
    --------
    >>> from analysis.effects.switching import example
    >>> made, out = example(), np.zeros((6, 2))
    >>> alone(made.rows, made.common, made.own, out)
    >>> out[5].round(2)
    array([1. , 1.1])
    """
    for machine in range(rows.start.size):
        which = np.array([machine])
        levels(rows, courses(rows, common, which), own, which, out)
