"""Crossovers: what each stay gains by the feature, being its own control, and what machines that switch together share.

A stay's level, its job's course from period to period and its job's effect are factors of what it does. They are fitted
together, so that it does not matter which instances, faster or slower ones, are without the feature in a period.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from analysis.effects.cells import JobMachineSums, StudyStays, numbered_stays, summed
from analysis.effects.observations import Observations, checked, exposure, numbered
from analysis.effects.stays import ObservedRows, fleet_of, scale_of
from analysis.effects.switching import Switched, SwitchedStays, SwitchingValues, course_variance, switched
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit
from models.errors import InputError

_NOTHING = "jobs seen both with and without the feature in one period of a crossover"
_TURNS = 500
_SETTLED = 1e-11
"""Factors that change by less are final."""


class Gains(NamedTuple):
    """What a crossover shows."""

    stays: StudyStays
    """Stays seen with and without the feature; their arm with it is 1 plus their relative gain, times the job's scale.
    """
    shared: float
    """Variance of the fleet's relative gain by what machines that switch together have in common."""


class _Rows(NamedTuple):
    """Rows of a crossover as numbers: of the row, stay, job, machine and period; exposure, value, who is on."""

    row: Ints
    stay: Ints
    job: Ints
    machine: Ints
    period: Ints
    by: Floats
    value: Floats
    """Relative to the job's scale."""
    on: Bools

    def taken(self, which: Ints) -> "_Rows":
        """Return the rows at these places."""
        return _Rows(
            self.row[which],
            self.stay[which],
            self.job[which],
            self.machine[which],
            self.period[which],
            self.by[which],
            self.value[which],
            self.on[which],
        )


def gains(observed: ObservedRows, fleet: pd.DataFrame) -> Gains:
    """Return what each stay gains by the feature, relative to its job's level, without what its job does in common.

    A job's course takes a share of 1 / (n - 1) of the squares of differences between its n stays; that is given back,
    so jobs of fewer than three stays say nothing.

    Parameters
    ----------
    observed : rows of the study
    fleet : job, quota, scale
    """
    rows = _rows(observed, scale_of(fleet, observed.jobs))
    units = _units(rows)
    rows = _comparable(rows)
    if not len(rows.row):
        raise NotEnoughDataError(1, 0, _NOTHING)
    stay, first = numbered([rows.stay])
    rows = rows._replace(stay=stay)
    presence = np.bincount(stay, observed.present[rows.row])
    presence = presence / presence.max()
    job = numbered([rows.job[first]])[0]
    scales = scale_of(fleet, observed.jobs)[rows.job[first]]
    common, effect = _fitted(rows)
    levels = [_sums(rows, arm, rows.by * rows.value) / _sums(rows, arm, rows.by * common) for arm in (False, True)]

    def mean(value: Floats) -> Floats:
        return np.asarray((np.bincount(job, presence * value) / np.bincount(job, presence))[job])

    share = levels[0] / mean(levels[0])
    gain = levels[1] / mean(levels[0]) - share
    number = np.bincount(job)[job]
    # The mean gain is a ratio, so what varies is a stay's gain less what its level lets expect.
    gain = mean(gain) + (gain - mean(gain) * share) * np.sqrt((number - 1.0) / np.maximum(number - 2.0, 1.0))
    weight = np.where(number > 2, observed.weight[rows.row[first]] * presence * scales, 0.0)
    shared = _shared(rows, common * effect, share * weight / max(float(weight.sum()), 1e-300), units)
    told = number > 2
    arms = _with_feature((1.0 + gain) * scales)[told]
    return Gains(numbered_stays(observed, rows.row[first[told]], fleet, presence[told], arms), shared)


def _with_feature(level: Floats) -> Floats:
    """Return both arms of stays whose difference is their own: (S, 2), NaN without the feature."""
    return np.stack([np.full(len(level), np.nan), level], axis=1)


def _rows(observed: ObservedRows, scale: Floats) -> _Rows:
    unknown = np.isnan(scale[observed.job])
    if unknown.any():
        raise InputError(f"job {observed.jobs[observed.job[unknown.argmax()]]} is not among the fleet's jobs")
    return _Rows(
        np.arange(len(observed)),
        observed.place,
        observed.job,
        numbered([observed.machine])[0],
        np.unique(observed.period, return_inverse=True)[1],
        observed.by,
        observed.value / scale[observed.job],
        observed.treated,
    )


def _sums(rows: _Rows, arm: bool, value: Floats) -> Floats:
    """Return sums over each stay's rows of an arm."""
    return np.bincount(rows.stay, np.where(rows.on == arm, value, 0.0)).astype(np.float64)


def _comparable(rows: _Rows) -> _Rows:
    """Return the rows of stays seen with and without the feature, in periods in which their job was seen with both.

    They are sorted by job.
    """
    comparable, left = np.ones(len(rows.row), dtype=np.bool_), -1
    groups = (rows.stay, _together(rows))
    while left != (left := int(comparable.sum())):
        for group in groups:
            having, total = np.bincount(group, comparable & rows.on), np.bincount(group, comparable)
            comparable &= ((having > 0) & (having < total))[group]
    places = np.flatnonzero(comparable)
    return rows.taken(places[np.argsort(rows.job[places], kind="stable")])


def _together(rows: _Rows) -> Ints:
    """Return the number of each row's job and period."""
    return rows.job * (int(rows.period.max(initial=0)) + 1) + rows.period


def _fitted(rows: _Rows) -> tuple[Floats, Floats]:
    """Return each row's factors for its job's course, and for its stay's level and its job's effect together.

    Values are products of stay, job's course and job's effect. Sums by stay, by job and period and by job and arm are
    met by turns (iterative proportional fitting; Deming and Stephan 1940). Rows are sorted by job.
    """
    bounds = np.append(np.flatnonzero(np.diff(rows.job, prepend=-1)), len(rows.job))
    groups = (rows.stay, numbered([_together(rows)])[0], 2 * numbered([rows.job])[0] + rows.on)
    level, course, effect = (np.ones(int(group.max()) + 1) for group in groups)
    _fit(bounds, groups, (level, course, effect), rows.by, rows.value)
    return course[groups[1]], level[groups[0]] * effect[groups[2]]


@njit(cache=True)
def _fit(
    bounds: Ints, groups: tuple[Ints, Ints, Ints], factors: tuple[Floats, Floats, Floats], by: Floats, value: Floats
) -> None:
    """Fit factors in place, one job after another."""
    above = (np.zeros(factors[0].size), np.zeros(factors[1].size), np.zeros(factors[2].size))
    for at in range(3):
        for r in range(by.size):
            above[at][groups[at][r]] += by[r] * value[r]
    below = np.zeros(max(factors[0].size, factors[1].size, factors[2].size))
    for job in range(bounds.size - 1):
        first, end = bounds[job], bounds[job + 1]
        for _ in range(_TURNS):
            change = 0.0
            for at in range(3):
                group, factor = groups[at], factors[at]
                second, third = (at + 1) % 3, (at + 2) % 3
                for r in range(first, end):
                    below[group[r]] += by[r] * factors[second][groups[second][r]] * factors[third][groups[third][r]]
                for r in range(first, end):
                    g = group[r]
                    if below[g] > 0.0:
                        fitted = above[at][g] / below[g]
                        change = max(change, abs(fitted / factor[g] - 1.0))
                        factor[g] = fitted
                        below[g] = 0.0
            if change < _SETTLED:
                break


def _units(rows: _Rows) -> Ints:
    """Return the number of each machine's unit: machines whose schedules are the same as far as they were seen."""
    machines, periods = int(rows.machine.max()) + 1, int(rows.period.max()) + 1
    having = np.zeros((machines, periods, 2))
    having[rows.machine, rows.period, rows.on.astype(np.int64)] = 1.0
    observed_periods = having.sum(axis=(1, 2))
    patterns = np.unique(having[observed_periods == periods], axis=0)
    if not len(patterns):
        return np.arange(machines)
    alike = having.reshape(machines, -1) @ patterns.reshape(len(patterns), -1).T == observed_periods[:, None]
    own = len(patterns) + np.arange(machines)
    return np.where(alike.any(axis=1), alike.argmax(axis=1), own)


def _shared(rows: _Rows, fitted: Floats, weight: Floats, units: Ints) -> float:
    """Return the variance of the weighted mean gain by what machines of a unit have in common.

    Noise that machines of one schedule share does not average out over them. Pairs of consecutive periods have their
    order at random, so the variance is the sum of the squares of what each unit and pair adds to the mean (Bojinov,
    Simchi-Levi and Zhao 2023, section 3); what it would be if machines were independent is taken off. Jobs' courses
    leave a unit's noise less the mean over the U units, which is given back by U / (U - 1).

    Parameters
    ----------
    rows : comparable rows
    fitted : (N,) value that the model expects
    weight : of each stay in the mean
    units : of each machine
    """
    several = len(np.unique(units[rows.machine]))
    if several < 2:
        return 0.0
    exposure = np.where(rows.on, _sums(rows, True, rows.by)[rows.stay], -_sums(rows, False, rows.by)[rows.stay])
    part = weight[rows.stay] * rows.by / exposure * (rows.value / fitted - 1.0)
    pairs = int(rows.period.max()) // 2 + 1
    of_unit, of_machine = (
        float((np.bincount(group * pairs + rows.period // 2, part) ** 2).sum())
        for group in (units[rows.machine], rows.machine)
    )
    return max(of_unit - of_machine, 0.0) * several / (several - 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Switchable:
    """A fleet whose every machine can switch the feature on and off, to draw crossovers from."""

    switched: Switched
    fleet: pd.DataFrame
    """job, quota, scale."""
    racks: pd.Series | None = None

    @classmethod
    def of(cls, never: pd.DataFrame, arms: tuple[pd.DataFrame, pd.DataFrame], jobs: pd.DataFrame | None = None) -> Self:
        """Return the fleet that these observations tell of.

        Parameters
        ----------
        never : observations in which nothing ever has the feature
        arms : of the same stays and periods, row by row: switched off, and on, at that time
        jobs : as in `study.Study.of`

        Raises
        ------
        ValueError
            As in `study.Study.of`.

        Examples
        --------
        >>> row = {"period": [0, 1, 0, 1], "job": "a", "machine": [1, 1, 2, 2], "weight": 1.0, "treated": 0}
        >>> off = pd.DataFrame(row | {"value": 2.0})
        >>> switchable = Switchable.of(off, (off, off.assign(value=2.2)))
        >>> switchable.cells(np.array([[True, False], [False, True]])).y[:, 1].round(9)
        array([1.1, 1.1])
        """
        known, *both = (checked(table) for table in (never, *arms))
        (rows,) = ObservedRows.of(known)
        fleet = fleet_of(rows[:0], rows, jobs)
        states = np.stack([table.rows["value"].to_numpy(dtype=np.float64) for table in both], axis=1)
        values = SwitchingValues(rows.value, states, np.stack([exposure(table.rows) for table in both], axis=1))
        crossover = switched(rows, values, fleet, known.codes("rack"), known.codes("domain"))
        return cls(crossover, fleet, known.of_machines("rack"))

    def cells(self, plan: Bools) -> JobMachineSums:
        """Return the cells of a plan, (M, P): who has the feature when."""
        return _crossed(self.switched.planned(plan), self.fleet, self.racks)


def _crossed(crossover: Switched, fleet: pd.DataFrame, racks: pd.Series | None) -> JobMachineSums:
    """Return the cells of a crossover: of all machines that have a stay seen in both states."""
    gain = crossover.gains()
    known = np.flatnonzero(np.isfinite(gain))
    if not len(known):
        raise NotEnoughDataError(1, 0, _NOTHING)
    stays = SwitchedStays._make(column[known] for column in crossover.stays)
    arms = _with_feature((1.0 + gain[known]) * fleet["scale"].to_numpy(dtype=np.float64)[stays.job])
    machines, machine = np.unique(stays.machine, return_inverse=True)
    own = StudyStays(
        machine=machine,
        job=stays.job,
        quota=stays.quota,
        presence=stays.presence,
        arms=arms,
        measured=arms,
        x=np.zeros((len(known), 0)),
        fleet=fleet,
        machines=crossover.names[machines],
    )
    whole = _own_differences(own, racks, course_variance(crossover))
    return replace(whole, switched=crossover.of(whole.machines))


def _own_differences(stays: StudyStays, racks: pd.Series | None, shared: float) -> JobMachineSums:
    """Return the cells of stays that are their own controls."""
    of_machines = None if racks is None else racks.reindex(stays.machines)
    return replace(summed(stays._replace(racks=of_machines)), known=True, shared=shared)


def observed(observations: Observations, jobs: pd.DataFrame | None = None) -> JobMachineSums:
    """Return the cells of a crossover that was observed.

    What jobs do in common is learnt from machines that never switched, if there are as many as of those that did.

    Parameters
    ----------
    observations : checked
    jobs : job, quota of the whole fleet; without it a job weighs as its rows in the study do
    """
    before, rows = ObservedRows.of(observations)[0].split(observations.study)
    fleet, racks = fleet_of(before, rows, jobs), observations.of_machines("rack")
    del before
    if (observations.never & ~observations.ever).sum() < observations.switching.sum():
        own = gains(rows, fleet)
        return _own_differences(own.stays, racks, own.shared)
    switching, never = observations.switching[rows.machine], ~observations.ever[rows.machine]
    # A period in which nothing is without the feature all along cannot be told from the feature.
    told = (switching | never) & (np.bincount(rows.period, never) > 0)[rows.period]
    if not (told & switching).any():
        raise NotEnoughDataError(1, 0, _NOTHING)
    rows, switching = rows[told], switching[told]
    on = rows.treated
    states = np.stack([switching & ~on, switching & on], axis=1)
    values = SwitchingValues(
        np.where(switching, np.nan, rows.value),
        np.where(states, rows.value[:, None], np.nan),
        np.stack([rows.by, rows.by], axis=1),
    )
    rack, domain = (
        None if codes is None else codes[observations.study][told]
        for codes in (observations.codes("rack"), observations.codes("domain"))
    )
    return _crossed(switched(rows, values, fleet, rack, domain), fleet, racks)
