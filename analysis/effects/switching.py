"""Machines that switch a feature on and off while most others never have it: levels, courses and their error; compiled.

What the instances of a job, and those of a rack, do together in a period is learnt from the machines that never switch.
Each stay of a machine that does is then its own control.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.effects.observations import numbered
from analysis.effects.stays import ObservedRows, places
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import InputError

FEW = 10.0
"""Instances of which what they do together is known half."""


class SwitchableRows(NamedTuple):
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
    presence: Floats
    """(N,) share of the longest time present, of rows whose value as one that never switches is known; else 0."""
    apart: Floats
    """(N, 2) that value's deviation from its stay's mean, relative; and what it is less its job's course."""


class PlannedRows(NamedTuple):
    """What rows are in the state that a plan gives them."""

    state: NDArray[np.int8]
    """1 with the feature, 0 without."""
    by: Floats
    """Exposure."""
    above: Floats
    """Exposure times value."""


class Common(NamedTuple):
    """Instances that never switch, (jobs or racks, P), and sums of their deviations: by job, and by rack less that."""

    job_held: Floats
    job_sum: Floats
    rack_held: Floats
    rack_sum: Floats


@njit(cache=True)
def shared(instances: Floats, total: Floats) -> Floats:
    """Return what instances of each group do together: their mean deviation, drawn to that of all groups.

    Parameters
    ----------
    instances, total : (groups, P) number of instances, and sum of their deviations
    """
    groups, periods = total.shape
    common = np.empty((groups, periods))
    for p in range(periods):
        sums, count = 0.0, 0.0
        for g in range(groups):
            sums += total[g, p]
            count += instances[g, p]
        whole = sums / max(count, 1e-9)
        for g in range(groups):
            common[g, p] = (total[g, p] + FEW * whole) / (instances[g, p] + FEW)
    return common


@njit(cache=True)
def courses(rows: SwitchableRows, common: Common, which: Ints) -> tuple[Floats, Floats]:
    """Return the courses of jobs and of racks, as all machines that never switch but these tell them.

    Parameters
    ----------
    rows, common : of a crossover
    which : (n,) machines that have left those that never switch
    """
    job_count, total, racked, rest = (
        common.job_held.copy(),
        common.job_sum.copy(),
        common.rack_held.copy(),
        common.rack_sum.copy(),
    )
    for machine in which:
        rack = rows.rack[machine]
        for r in range(rows.start[machine], rows.end[machine]):
            weight, j, p = rows.presence[r], rows.job[r], rows.period[r]
            job_count[j, p] -= weight
            total[j, p] -= weight * rows.apart[r, 0]
            if racked[rack, p] > 0.0:
                racked[rack, p] -= weight
                rest[rack, p] -= weight * rows.apart[r, 1]
    for held in (job_count, racked):
        for g in range(held.shape[0]):
            for p in range(held.shape[1]):
                held[g, p] = max(held[g, p], 0.0)
    return shared(job_count, total), shared(racked, rest)


@njit(cache=True)
def levels(rows: SwitchableRows, course: tuple[Floats, Floats], own: PlannedRows, which: Ints, out: Floats) -> None:
    """Write each stay's levels without and with the feature, relative to what its job and rack did, into `out`, (S, 2).

    A level is a ratio of sums over a stay's periods in a state. Both are NaN of a stay that was not seen in both.

    Parameters
    ----------
    rows, own : of a crossover
    course : of jobs and of racks
    which : (n,) machines whose stays are wanted; others are left as they are
    """
    of_job, of_rack = course
    above, below = np.zeros(2), np.zeros(2)
    for machine in which:
        r, end, rack = rows.start[machine], rows.end[machine], rows.rack[machine]
        while r < end:
            stay, job = rows.stay[r], rows.job[r]
            for state in range(2):
                above[state], below[state] = 0.0, 0.0
            while r < end and rows.stay[r] == stay:
                p = rows.period[r]
                above[own.state[r]] += own.above[r]
                below[own.state[r]] += own.by[r] * (1.0 + of_job[job, p]) * (1.0 + of_rack[rack, p])
                r += 1
            both = below[0] > 0.0 and below[1] > 0.0
            for state in range(2):
                out[stay, state] = above[state] / below[state] if both else np.nan


@njit(cache=True)
def alone(rows: SwitchableRows, common: Common, own: PlannedRows, out: Floats) -> None:
    """Write each stay's levels beside all other machines into `out`, (S, 2)."""
    for machine in range(rows.start.size):
        which = np.array([machine])
        levels(rows, courses(rows, common, which), own, which, out)


_MIXED = 0.05
"""Share of domains and periods in which a domain's machines may differ and still be said to switch together."""


class UnswitchedRows(NamedTuple):
    """Rows of machines that never switch, with their deviations as of `SwitchableRows`, (C, 2)."""

    machine: Ints
    job: Ints
    period: Ints
    rack: Ints
    presence: Floats
    apart: Floats


class SwitchingValues(NamedTuple):
    """What N rows of a crossover did in the states that they can be in."""

    never: Floats
    """(N,) performance of what never switches, NaN where that was not observed."""
    states: Floats
    """(N, 2) performance switched off, and on, of machines that can switch; NaN where that was not observed."""
    by: Floats
    """(N, 2) exposure switched off (and never switched), and on."""


class SwitchedStays(NamedTuple):
    """S stays of machines that can switch."""

    job: Ints
    """(S,) place among the fleet's jobs."""
    machine: Ints
    """(S,) place among all machines' names."""
    quota: Floats
    """(S,)"""
    presence: Floats
    """(S,) relative to the longest."""


@dataclass(frozen=True, slots=True, eq=False)
class Switched:
    """A crossover of some machines: what they do switched off and on, and what all that never switch have in common."""

    rows: SwitchableRows
    common: Common
    stays: SwitchedStays
    names: pd.Index
    """Of all machines."""
    plan: Bools
    """(M, P) who has the feature when."""
    unit: Ints
    """(M,) machines of one unit switch together."""
    own: PlannedRows
    scale: Floats
    """(S,) performance that a stay's values are relative to."""
    beside: UnswitchedRows
    """Empty if every machine can switch."""

    @property
    def machines(self) -> pd.Index:
        """(M,) their names."""
        return self.names[self.stays.machine[self.rows.stay[self.rows.start]]]

    def of(self, machines: pd.Index) -> Self:
        """Return the crossover of some of its machines; the others, though they switch, tell nothing any more."""
        at = self.machines.get_indexer(machines)
        rows = self.rows._replace(start=self.rows.start[at], end=self.rows.end[at], rack=self.rows.rack[at])
        return replace(self, rows=rows, plan=self.plan[at], unit=self.unit[at])

    def planned(self, plan: Bools) -> Self:
        """Return the same machines, each a unit of its own, switching by another plan, (M, P)."""
        return replace(self, plan=plan, unit=np.arange(len(plan)), own=_own(self.rows, plan))

    def gains(self) -> Floats:
        """Return the stays' gains by the feature, each machine beside all others that never switch.

        Returns
        -------
        (S,) array
            Relative to the job's mean without the feature; NaN of a stay that was not seen in both states.
        """
        stays = len(self.stays.job)
        level = np.full((stays, 2), np.nan)
        alone(self.rows, self.common, self.own, level)
        known = np.flatnonzero(np.isfinite(level).all(axis=1))
        presence = self.stays.presence[known]
        group, _ = numbered([self.stays.job[known]])
        total = np.bincount(group, presence)
        mean = np.bincount(group, presence * level[known, 0]) / total
        share = level[known, 0] / mean[group]
        gain = level[known, 1] / mean[group] - share
        typical = (np.bincount(group, presence * gain) / total)[group]
        gained = np.full(stays, np.nan)
        # The mean gain is a ratio, so what varies is a stay's gain less what its level lets expect.
        gained[known] = typical + gain - typical * share
        return gained

    def totals(self) -> Floats:
        """Return each machine's performance without and with the feature, (M, 2), as it was seen: sums over its stays.

        Stays weigh by quota and presence, and count if they were seen in both states.
        """
        sums = [
            np.bincount(self.rows.stay, np.where(self.own.state == state, part, 0.0), len(self.stays.job))
            for part in (self.own.above, self.own.by)
            for state in (0, 1)
        ]
        known = (sums[2] > 0) & (sums[3] > 0)
        weight = np.where(known, self.stays.quota * self.stays.presence, 0.0) * self.scale
        machine = self.machines.get_indexer(self.names[self.stays.machine])
        mean = [np.divide(sums[at], sums[at + 2], out=np.zeros(len(known)), where=known) for at in (0, 1)]
        sums = [np.bincount(machine[known], (weight * level)[known], len(self.plan)) for level in mean]
        return np.stack(sums, axis=1, dtype=np.float64)


def switched(
    observed: ObservedRows, values: SwitchingValues, fleet: pd.DataFrame, racks: Ints | None, domains: Ints | None
) -> Switched:
    """Return a crossover as arrays.

    Machines with a value in a state can switch; all rows with a value as one that never switches tell what never does.

    Parameters
    ----------
    observed : N rows, of which `treated` is the plan
    values : of the rows
    fleet : job, quota, scale
    racks, domains : (N,) numbers, −1 of a row that is in none; or None
    """
    job = places(fleet, observed.jobs)[observed.job]
    if (job < 0).any():
        raise InputError(f"job {observed.jobs[observed.job[job < 0][0]]} is not among the fleet's jobs")
    if racks is not None and (racks < 0).any():
        raise InputError(f"machine {observed.machines[observed.machine[racks < 0][0]]} is in no rack")
    periods, period = np.unique(observed.period, return_inverse=True)
    host, _ = numbered([observed.machine])
    rack = host if racks is None else numbered([racks])[0]
    scale = fleet["scale"].to_numpy(dtype=np.float64)
    present, by, stay = observed.present / observed.present.max(), values.by, observed.place
    known, can = np.isfinite(values.never), np.isfinite(values.states).any(axis=1)
    told = present * known
    apart = _apart(np.where(known, values.never, 0.0), known * by[:, 0], stay)
    # A rack of its own tells nothing of a machine but itself.
    racked = told * float(racks is not None)
    common, rest = _common((job, rack, period), (len(scale), len(periods)), told, racked, apart)
    beside = UnswitchedRows(host, job, period, rack, told, np.stack([apart, rest], axis=1))
    machines, machine = np.unique(observed.machine[can], return_inverse=True)
    taken = np.flatnonzero(can)[np.lexsort((stay[can], machine))]
    machine = np.sort(machine)
    number, first = numbered([stay[taken]])
    start, end = (np.searchsorted(machine, np.arange(len(machines)), side) for side in ("left", "right"))
    level = scale[job[taken]]
    rows = SwitchableRows(
        start=start,
        end=end,
        rack=rack[taken[start]].astype(np.int64),
        stay=number.astype(np.int32),
        job=job[taken].astype(np.int32),
        period=period[taken].astype(np.int32),
        by=by[taken],
        value=values.states[taken] / level[:, None],
        presence=told[taken],
        apart=beside.apart[taken],
    )
    plan = np.zeros((len(machines), len(periods)), dtype=np.bool_)
    plan[machine, rows.period] = observed.treated[taken]
    time, whole = np.bincount(number, present[taken]), taken[first]
    presence = time / max(float(time.max(initial=0.0)), 1e-300)
    return Switched(
        rows=rows,
        common=common,
        stays=SwitchedStays(job[whole], observed.machine[whole], observed.weight[whole], presence),
        names=observed.machines,
        plan=plan,
        unit=_units(None if domains is None else domains[taken[start]], plan),
        own=_own(rows, plan),
        scale=level[first],
        beside=UnswitchedRows._make(column[known & ~can] for column in beside),
    )


def _common(
    keys: tuple[Ints, Ints, Ints], size: tuple[int, int], told: Floats, racked: Floats, apart: Floats
) -> tuple[Common, Floats]:
    """Return what jobs, and racks, do in common by period, and what the course of its job leaves of each row, (N,).

    Keys are the rows' job, rack and period, and size how many jobs and periods there are; rows tell by `told` of their
    job, by `racked` of their rack.
    """
    job, rack, period = keys
    racks = int(rack.max(initial=-1)) + 1
    count, total = (_summed(job, period, told * part, size) for part in (1.0, apart))
    rest = apart - shared(count, total)[job, period]
    of_rack = (_summed(rack, period, racked * part, (racks, size[1])) for part in (1.0, rest))
    return Common(count, total, *of_rack), rest


def _own(rows: SwitchableRows, plan: Bools) -> PlannedRows:
    state = plan[np.repeat(np.arange(len(plan)), rows.end - rows.start), rows.period].astype(np.int8)
    by, value = (np.where(state == 1, pair[:, 1], pair[:, 0]) for pair in (rows.by, rows.value))
    return PlannedRows(state, by, by * value)


def _units(domain: Ints | None, plan: Bools) -> Ints:
    """Return the number of each machine's domain if those of a domain switch together, else its own."""
    if domain is None:
        return np.arange(len(plan))
    unit, _ = numbered([domain])
    having = np.stack([np.bincount(unit, period_plan, unit.max() + 1) for period_plan in plan.T], axis=1)
    mixed = (having > 0) & (having < np.bincount(unit)[:, None])
    return unit if mixed.mean() < _MIXED else np.arange(len(plan))


def coins(shape: tuple[int, ...], rng: np.random.Generator) -> Bools:
    """Return a plan, (machines, periods): of two periods after each other one is with the feature, by a fair coin.

    Of an odd number of periods the last has none with it.

    Examples
    --------
    >>> coins((100, 4), np.random.default_rng(1)).reshape(100, 2, 2).sum(axis=2).tolist()[:2]
    [[1, 1], [1, 1]]
    """
    first = rng.random((shape[0], shape[1] // 2)) < 0.5
    plan = np.zeros(shape, dtype=np.bool_)
    plan[:, 0 : shape[1] // 2 * 2 : 2], plan[:, 1::2] = first, ~first
    return plan


def _apart(value: Floats, by: Floats, stay: Ints) -> Floats:
    """Return by how much each value is above its stay's mean, relative to that; 0 where nothing is known."""
    total = np.bincount(stay, by)
    mean = np.divide(np.bincount(stay, by * value), total, out=np.ones(len(total)), where=total > 0)
    return np.where(by > 0, value / np.where(mean > 0, mean, 1.0)[stay] - 1.0, 0.0)


def _summed(group: Ints, period: Ints, value: Floats, shape: tuple[int, int]) -> Floats:
    return np.bincount(group * shape[1] + period, value, shape[0] * shape[1]).reshape(shape).astype(np.float64)


def course_variance(crossover: Switched) -> float:
    """Return the variance that courses add to the relative change that all machines of a crossover show together.

    Two parts: that of a mean over machines that never switch, by each machine's influence (the infinitesimal jackknife;
    Efron 1982, chapter 6), and the square of what is left of a course that few instances tell, as far as they show it.
    Of both, the share is taken off that units of machines would have if their plans were independent: how the units
    differ tells that already.

    Parameters
    ----------
    crossover : all its machines, with the plan that was followed
    """
    beside, common = crossover.beside, crossover.common
    if not len(beside.machine):
        return 0.0
    by_job, by_rack, together = _slopes(crossover)
    influence, left = _part(by_job, common.job_held, common.job_sum, (beside.job, beside.period, beside.apart[:, 0]))
    if common.rack_held.any():
        rows = (beside.rack, beside.period, beside.apart[:, 1])
        more, rest = _part(by_rack, common.rack_held, common.rack_sum, rows)
        influence, left = influence + more, left + rest
    _, machine = np.unique(beside.machine, return_inverse=True)
    by_machine = np.bincount(machine, beside.presence * influence)
    return together * float((by_machine**2).sum() * len(by_machine) / max(len(by_machine) - 1, 1) + left**2)


def _slopes(crossover: Switched) -> tuple[Floats, Floats, float]:
    """Return by how much the change moves with the course of each job, and of each rack, (jobs or racks, P).

    The third is the share of the slopes' squares, each by what it is known from, that units do not have on their own.
    """
    rows, own, stays = crossover.rows, crossover.own, crossover.stays
    machine = np.repeat(np.arange(len(crossover.plan)), rows.end - rows.start)
    rack = rows.rack[machine]
    of_job, of_rack = courses(rows, crossover.common, np.zeros(0, dtype=np.int64))
    level = np.full((len(stays.job), 2), np.nan)
    levels(rows, (of_job, of_rack), own, np.arange(len(crossover.plan)), level)
    both_known = np.isfinite(level[:, 0]) & np.isfinite(level[:, 1])
    level = np.where(both_known[:, None], level, 0.0)
    job, presence = stays.job, np.where(both_known, stays.presence, 0.0)
    counted = presence * stays.quota * crossover.scale
    below, above = (np.bincount(job, presence * level[:, state]) for state in (0, 1))
    # A job counts by the quota of its stays; of its mean level without the feature, a stay has its share of presence.
    per = np.bincount(job, counted) / max(counted.sum(), 1e-300) / np.maximum(below, 1e-300)
    typical = above / np.maximum(below, 1e-300)
    part = own.by * (1.0 + of_job[rows.job, rows.period]) * (1.0 + of_rack[rack, rows.period])
    whole = np.stack(
        [np.bincount(rows.stay, np.where(own.state == state, part, 0.0), len(stays.job)) for state in (0, 1)]
    )
    share = part / np.maximum(whole[own.state, rows.stay], 1e-300)
    sign = np.where(own.state == 1, -1.0, typical[rows.job])
    moved = (per[job] * presence)[rows.stay] * sign * level[rows.stay, own.state] * share
    alone, whole_square, slopes = 0.0, 0.0, []
    for group, course, count in (
        (rows.job, of_job, crossover.common.job_held),
        (rack, of_rack, crossover.common.rack_held),
    ):
        change = moved / (1.0 + course[group, rows.period])
        place = group.astype(np.int64) * course.shape[1] + rows.period
        slope = np.bincount(place, change, course.size).astype(np.float64)
        known = 1.0 / (count.ravel() + FEW) if count.any() else np.zeros(course.size)
        _, first, unit = np.unique(
            crossover.unit[machine].astype(np.int64) * course.size + place, return_index=True, return_inverse=True
        )
        alone += float((np.bincount(unit, change) ** 2 * known[place[first]]).sum())
        whole_square += float((slope**2 * known).sum())
        slopes.append(slope.reshape(course.shape))
    return slopes[0], slopes[1], max(1.0 - alone / whole_square, 0.0) if whole_square > 0 else 0.0


def _part(slope: Floats, count: Floats, total: Floats, rows: tuple[Ints, Ints, Floats]) -> tuple[Floats, float]:
    """Return each row's influence by way of these courses, per presence, and what is left of them in the change."""
    group, period, apart = rows
    number = np.maximum(count.sum(axis=0), 1e-300)
    whole = total.sum(axis=0) / number
    mean = np.where(count > 0, total / np.maximum(count, 1e-300), whole)
    drawn = (slope * FEW / (count + FEW)).sum(axis=0)
    own = slope[group, period] * (apart - mean[group, period]) / (count[group, period] + FEW)
    influence = own + drawn[period] * (apart - whole[period]) / number[period]
    return influence, float((slope * (mean - whole) * FEW / (count + FEW)).sum())
