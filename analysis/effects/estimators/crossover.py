"""Estimates from machines that are their own control, as in a crossover: one draw of machines after another.

Two means of the stays' gains have the fleet's as their target. One weighs stays by their own quota (a ratio of sums
over machines): what residents of a machine take from each other cancels. The other weighs jobs by their full quota
(post-stratification): it does not matter which jobs the drawn machines hold. The answer is the mixture of both that
varies least over machines: the regression of the one on its difference from the other.
"""

from typing import NamedTuple

import numpy as np

from analysis.effects.cells import JobMachineSums
from analysis.effects.study import Answers
from analysis.effects.switching import Common, PlannedRows, SwitchableRows, Switched, courses, levels
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit

_LEAST = 0.1
"""What is left of a cluster's residual at least: one machine that holds nearly all of a job must not decide all."""
_FEWEST = 1.2
"""Effective clusters below which nothing can be said."""
_TINY = 1e-300


class _SwitchingSums(NamedTuple):
    """Cells of M machines and J jobs whose stays are their own control."""

    start: Ints
    """(M + 1,) where each machine's cells begin."""
    job: Ints
    value: Floats
    """(C, 3) their stays' gain, number and quota times scale."""
    weight: Floats
    """(J,) full weights."""
    cluster: Ints
    """(M,)"""


class _Stays(NamedTuple):
    """Stays, sorted by machine: where each machine's begin and end, their cell and job, presence, quota times scale."""

    start: Ints
    end: Ints
    cell: Ints
    job: Ints
    presence: Floats
    quota: Floats


class _Crossover(NamedTuple):
    """A crossover as compiled code takes it."""

    rows: SwitchableRows
    common: Common
    own: PlannedRows
    stays: _Stays
    shared: float


class _Seen(NamedTuple):
    """What a draw shows of each job: what it counts for by own and by full quota, its stays, their mean gain."""

    own: Floats
    full: Floats
    presence: Floats
    gain: Floats


def many(cells: JobMachineSums, treated: Bools, clusters: Ints) -> Answers:
    """Return change, standard error and degrees of freedom of R draws.

    The variance is that over clusters, and what machines that switch together share (`shared` of the cells), which more
    of them do not average out. Where cells tell how machines switch (`switched`), each draw learns what its jobs and
    racks have in common from the machines that it leaves out (racks, from what their rows leave of all machines' jobs).

    Parameters
    ----------
    cells : of known levels
    treated : (R, M)
    clusters : (M,) of each machine, from 0

    Returns
    -------
    Answers
        NaN where there are fewer than two clusters.
    """
    value = np.stack([cells.y[:, 1] - cells.count, cells.count, cells.quota * cells.scale[cells.job]], axis=1)
    sums = _SwitchingSums(cells.start, cells.job, value, cells.weight, clusters)
    out = np.full((len(treated), 3), np.nan)
    chosen = np.ascontiguousarray(treated, dtype=np.bool_)
    if cells.switched is None:
        _draws(sums, chosen, cells.shared, out)
    else:
        switched = cells.switched
        _switched_draws(
            _Crossover(switched.rows, switched.common, switched.own, _stays(switched, cells), cells.shared),
            sums,
            chosen,
            out,
        )
    return Answers(out[:, 0], out[:, 1], out[:, 2])


def _stays(switched: Switched, cells: JobMachineSums) -> _Stays:
    """Return the stays of a crossover as what cells are sums of."""
    job, machine, quota, presence = switched.stays
    machine = cells.machines.get_indexer(switched.names[machine])
    pairs = np.repeat(np.arange(len(cells.machines)), np.diff(cells.start)) * len(cells.jobs) + cells.job
    return _Stays(
        switched.rows.stay[switched.rows.start].astype(np.int64),
        switched.rows.stay[switched.rows.end - 1].astype(np.int64) + 1,
        np.searchsorted(pairs, machine * len(cells.jobs) + job),
        job,
        presence,
        quota * presence * cells.scale[job],
    )


@njit(cache=True)
def _draws(sums: _SwitchingSums, treated: Bools, shared: float, out: Floats) -> None:
    """Write the answers into `out`, (R, 3)."""
    for r in range(len(treated)):
        _answer(sums, np.flatnonzero(treated[r]), shared, out[r])


@njit(cache=True)
def _switched_draws(crossover: _Crossover, sums: _SwitchingSums, treated: Bools, out: Floats) -> None:
    """Write the answers into `out`, (R, 3), each from the gains of the machines that it draws."""
    level = np.empty((crossover.stays.cell.size, 2))
    for r in range(len(treated)):
        which = np.flatnonzero(treated[r])
        levels(crossover.rows, courses(crossover.rows, crossover.common, which), crossover.own, which, level)
        _gather(crossover.stays, sums, which, level)
        _answer(sums, which, crossover.shared, out[r])


@njit(cache=False)
def _gather(stays: _Stays, sums: _SwitchingSums, which: Ints, level: Floats) -> None:
    """Put into the sums of the drawn machines' cells what their stays gain, relative to their jobs' mean levels."""
    jobs = sums.weight.size
    total, below, above = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
    for machine in which:
        for s in range(stays.start[machine], stays.end[machine]):
            if not np.isnan(level[s, 0]):
                j = stays.job[s]
                total[j] += stays.presence[s]
                below[j] += stays.presence[s] * level[s, 0]
                above[j] += stays.presence[s] * level[s, 1]
    for machine in which:
        for c in range(sums.start[machine], sums.start[machine + 1]):
            sums.value[c, 0], sums.value[c, 1], sums.value[c, 2] = 0.0, 0.0, 0.0
        for s in range(stays.start[machine], stays.end[machine]):
            if not np.isnan(level[s, 0]):
                c, j = stays.cell[s], stays.job[s]
                mean, typical = below[j] / total[j], above[j] / below[j]
                # The mean gain is a ratio, so what varies is a stay's level with it less what its level lets expect.
                sums.value[c, 0] += stays.presence[s] * (typical - 1.0 + (level[s, 1] - typical * level[s, 0]) / mean)
                sums.value[c, 1] += stays.presence[s]
                sums.value[c, 2] += stays.quota[s]


@njit(cache=False)
def _answer(sums: _SwitchingSums, which: Ints, shared: float, out: Floats) -> None:
    """Write change, standard error and degrees of freedom of one draw into `out`, unless its clusters are too few."""
    shown = _seen(sums, which)
    change = np.zeros(2)
    for j in range(shown.gain.size):
        change[0] += shown.own[j] * shown.gain[j]
        change[1] += shown.full[j] * shown.gain[j]
    scores, counts = _scores(sums, which, shown, change)
    square, fourth, spread, both = 0.0, 0.0, 0.0, 0.0
    for g in range(counts.size):
        apart = scores[g, 1] - scores[g, 0]
        square += counts[g] ** 2
        fourth += counts[g] ** 4
        spread += apart**2
        both += scores[g, 0] * apart
    clusters = square**2 / fourth if fourth > 0.0 else 0.0
    if clusters < _FEWEST:
        return
    share = min(max(-both / spread, 0.0), 1.0) if spread > 0.0 else 0.0
    variance = 0.0
    for g in range(counts.size):
        variance += (scores[g, 0] + share * (scores[g, 1] - scores[g, 0])) ** 2
    variance = variance * clusters / (clusters - 1.0)
    total = variance + shared
    out[0] = change[0] + share * (change[1] - change[0])
    out[1] = np.sqrt(total)
    out[2] = (clusters - 1.0) * (total / variance) ** 2 if variance > 0.0 else clusters - 1.0


@njit(cache=False)
def _seen(sums: _SwitchingSums, which: Ints) -> _Seen:
    """Return what the drawn machines show of each job."""
    jobs = sums.weight.size
    own, full, total, gain = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
    for machine in which:
        for c in range(sums.start[machine], sums.start[machine + 1]):
            j = sums.job[c]
            gain[j] += sums.value[c, 0]
            total[j] += sums.value[c, 1]
            own[j] += sums.value[c, 2]
    owned, whole = 0.0, 0.0
    for j in range(jobs):
        owned += own[j]
        if total[j] > 0.0:
            gain[j] /= total[j]
            full[j] = sums.weight[j]
            whole += full[j]
    for j in range(jobs):
        own[j] /= max(owned, _TINY)
        full[j] /= max(whole, _TINY)
    return _Seen(own, full, total, gain)


@njit(cache=False)
def _scores(sums: _SwitchingSums, which: Ints, shown: _Seen, change: Floats) -> tuple[Floats, Floats]:
    """Return what each cluster adds to the error of either mean, (G, 2), and what it counts for, (G,).

    By full quota, a stay is compared with its job's others (jackknife); one that is alone, with all.
    """
    last = -1
    for machine in range(sums.cluster.size):
        last = max(last, sums.cluster[machine])
    scores, counts = np.zeros((last + 1, 2)), np.zeros(last + 1)
    for machine in which:
        at = sums.cluster[machine]
        for c in range(sums.start[machine], sums.start[machine + 1]):
            j = sums.job[c]
            gain, share = sums.value[c, 0] / shown.presence[j], sums.value[c, 1] / shown.presence[j]
            scores[at, 0] += shown.own[j] * (gain - share * change[0])
            left = 1.0 - share
            if left > _LEAST:
                scores[at, 1] += shown.full[j] * (gain - share * shown.gain[j]) / left
            else:
                scores[at, 1] += shown.full[j] * (gain - share * change[1])
            counts[at] += shown.own[j] * share
    return scores, counts
