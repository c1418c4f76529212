"""All that an estimator of a fleet-wide effect needs: sums over the stays of each machine and job."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.effects.estimand import Target
from analysis.effects.stays import ObservedRows, places, stays
from analysis.effects.switching import Switched
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

COVARIATE = "x"
"""Columns of covariates are named x0, x1, …"""
NEVER = 2**30
"""Stage from which a machine has the feature that does not get it."""


class StageSums(NamedTuple):
    """C triples of machine, job and stage, in this order; rows count by their presence, values are relative."""

    machine: Ints
    job: Ints
    stage: Ints
    presence: Floats
    """(C,)"""
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


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """A fleet by stage, and, of one experiment, who got the feature when."""

    sums: StageSums
    since: Ints | None = None
    """(M,) the stage from which each machine has the feature, or `NEVER`; of draws the estimator knows."""
    controls: int = 0
    """Machines that were seen without the feature while others had it."""
    jobs: Ints | None = None
    """Places of the jobs that were seen with it."""


@dataclass(frozen=True, slots=True, eq=False)
class JobMachineSums:
    """C pairs of machine and job, of M machines and J jobs, with K covariates.

    Values are relative to the job's `scale`. Where only one arm was observed, the other's sums are 0.
    """

    start: Ints
    """(M + 1,) cells of machine m are ``start[m]`` to ``start[m + 1]``."""
    job: Ints
    """(C,)"""
    count: Floats
    """(C,) instances, each by what it counts for in its job's mean: the share of the study that it was present, where
    `target` is the mean over instances; what all sums count them by."""
    instances: Ints
    """(C,)"""
    quota: Floats
    """(C,) their CPU quota."""
    x: Floats
    """(C, K) sums of covariates, centred within jobs over the whole fleet."""
    xx: Floats
    """(C, K, K)"""
    y: Floats
    """(C, 2) sums of values without and with the feature."""
    yy: Floats
    """(C, 2)"""
    xy: Floats
    """(C, 2, K)"""
    share: Floats
    """(J,) each job's share of the fleet's CPU quota, whether or not it is seen."""
    scale: Floats
    """(J,) performance that the job's values are relative to."""
    before: Floats
    """(M, 2) sums over the machine's instances before the study: quota times performance, and quota; 0 if unknown."""
    measured: Floats
    """(C, 2) sums of values as they were measured, without and with the feature: each stay counts alike, and what its
    job's instances did in common stays in."""
    measured_squares: Floats
    """(C, 2)"""
    level: Floats
    """(J,) mean of the job's values as measured before, or of the machines without the feature; NaN where none was."""
    machines: pd.Index
    jobs: pd.Index
    rack: Ints
    """(M,)"""
    known: bool = False
    """Whether each value is an instance's own difference, plus 1: the level without the feature is exactly 1."""
    shared: float = 0.0
    """Variance of the fleet's relative change by what machines that switch together have in common."""
    switched: Switched | None = None
    """How the machines switch, of a crossover in which most others never do."""
    stages: Stages | None = None
    """Sums by stage, of a staged roll-out."""
    platform: Ints | None = None
    """(M,) number of each machine's platform, if that is known."""
    target: Target = "instances"

    @property
    def weight(self) -> Floats:
        """(J,) what a relative change of each job changes the fleet's metric by, in units of performance."""
        return self.share * self.scale


class StudyStays(NamedTuple):
    """S stays of a study with K covariates, on M machines, and what is known of the fleet's J jobs."""

    machine: Ints
    """(S,) from 0; each has a stay."""
    job: Ints
    """(S,) place among the fleet's jobs."""
    quota: Floats
    """(S,)"""
    presence: Floats
    """(S,) what each counts for."""
    arms: Floats
    """(S, 2) performance without and with the feature; NaN where that was not observed."""
    measured: Floats
    """(S, 2) the same as measured."""
    x: Floats
    """(S, K) covariates."""
    fleet: pd.DataFrame
    """J jobs: job, quota, scale."""
    machines: pd.Index
    """(M,) names."""
    before: Floats | None = None
    """(M, 2) as in `JobMachineSums`."""
    racks: pd.Series | None = None
    """(M,); without it every machine is one."""
    level: Floats | None = None
    """(J,) mean of each job as it was measured before; its `scale` without it."""


def cells(
    rows: pd.DataFrame,
    jobs: pd.DataFrame,
    before: pd.DataFrame | None = None,
    racks: pd.Series | None = None,
    level: "pd.Series[float] | None" = None,
    *,
    known: bool = False,
    shared: float = 0.0,
) -> JobMachineSums:
    """Return the cells of a study.

    Parameters
    ----------
    rows : one per instance: job, machine, quota, off and on (performance without and with the feature; NaN where that
        was not observed), and perhaps presence (0..1), measured_off and measured_on (the same as measured, if that is
        something else) and covariates x0, x1, …, relative
    jobs : job, quota (the whole fleet's), scale (performance, above 0); in this order they are numbered
    before : per machine: value (Σ quota × performance), quota, indexed by machine
    racks : rack of each machine, indexed by machine; without it every machine is one
    level : mean of each job as it was measured before, indexed by job; its `scale` without it
    known, shared : as in `JobMachineSums`

    Raises
    ------
    ValueError
        If a row's job is not in `jobs`, or a machine is in no rack though others are.

    Examples
    --------
    >>> rows = pd.DataFrame({"job": "a", "machine": [2, 1, 1], "quota": 1.0, "off": [2.0, 4.0, 6.0], "on": np.nan})
    >>> table = cells(rows, pd.DataFrame({"job": ["a"], "quota": [3.0], "scale": [2.0]}))
    >>> table.y[:, 0], table.start, table.machines.tolist()
    (array([5., 1.]), array([0, 1, 2]), [1, 2])
    """
    stays = study_stays(rows, jobs)
    whole = summed(
        stays._replace(
            before=None if before is None else _of_machines(before, stays.machines),
            racks=None if racks is None else racks.reindex(stays.machines),
            level=None if level is None else np.asarray(level.reindex(jobs["job"]), dtype=np.float64),
        )
    )
    return replace(whole, known=known, shared=shared)


def study_stays(rows: pd.DataFrame, jobs: pd.DataFrame) -> StudyStays:
    """Return the stays of a table, as `cells` takes it.

    Raises
    ------
    InputError
        If a row's job is not in `jobs`.
    """
    job = places(jobs, pd.Index(rows["job"]))
    if (job < 0).any():
        raise InputError(f"job {rows['job'].to_numpy()[job < 0][0]} is not among the fleet's jobs")
    machine, machines = pd.factorize(rows["machine"], sort=True)
    measured = [f"measured_{name}" if f"measured_{name}" in rows else name for name in ("off", "on")]
    covariates = [name for name in rows.columns if name.startswith(COVARIATE) and name[len(COVARIATE) :].isdigit()]
    return StudyStays(
        machine=machine.astype(np.int64),
        job=job,
        quota=rows["quota"].to_numpy(dtype=np.float64),
        presence=rows["presence"].to_numpy(dtype=np.float64) if "presence" in rows else np.ones(len(rows)),
        arms=rows[["off", "on"]].to_numpy(dtype=np.float64),
        measured=rows[measured].to_numpy(dtype=np.float64),
        x=rows[covariates].to_numpy(dtype=np.float64),
        fleet=jobs,
        machines=pd.Index(machines),
    )


def numbered_stays(
    rows: ObservedRows,
    which: Ints | slice,
    fleet: pd.DataFrame,
    presence: Floats,
    arms: Floats,
    *,
    measured: Floats | None = None,
    x: Floats | None = None,
) -> StudyStays:
    """Return stays, each of which is told by one row.

    Parameters
    ----------
    rows : of the study
    which : the row of each stay
    fleet : job, quota, scale
    presence, arms, measured, x : as in `StudyStays`, by stay; measured as the arms, and no covariates, without them

    Raises
    ------
    InputError
        If a row's job is not in the fleet.
    """
    number = rows.job[which]
    job = places(fleet, rows.jobs)[number]
    if (job < 0).any():
        raise InputError(f"job {rows.jobs[number[job < 0][0]]} is not among the fleet's jobs")
    machines, machine = np.unique(rows.machine[which], return_inverse=True)
    return StudyStays(
        machine=machine,
        job=job,
        quota=rows.weight[which],
        presence=presence,
        arms=arms,
        measured=arms if measured is None else measured,
        x=np.zeros((len(job), 0)) if x is None else x,
        fleet=fleet,
        machines=rows.machines[machines],
    )


def summed(stays: StudyStays) -> JobMachineSums:
    """Return the sums of a study's stays by machine and job.

    Raises
    ------
    InputError
        If a machine is in no rack though others are.
    """
    fleet, machines = stays.fleet, stays.machines
    jobs = len(fleet)
    pair, inverse = np.unique(stays.machine * jobs + stays.job, return_inverse=True)
    total, presence = len(pair), stays.presence
    scale, quota = (fleet[name].to_numpy(dtype=np.float64) for name in ("scale", "quota"))
    rack = np.arange(len(machines)) if stays.racks is None else pd.factorize(stays.racks)[0].astype(np.int64)
    if (rack < 0).any():
        raise InputError(f"machine {machines[rack < 0][0]} is in no rack")

    def sums(columns: Iterable[Floats], count: int) -> Floats:
        return sums_of_columns(inverse, total, (presence * column for column in columns), count)

    arms, measured = (
        [np.nan_to_num(arm) / scale[stays.job] for arm in both.T] for both in (stays.arms, stays.measured)
    )
    x = centred(stays.x, stays.job, presence).T
    known = len(x)
    return JobMachineSums(
        start=np.searchsorted(pair // jobs, np.arange(len(machines) + 1)),
        job=pair % jobs,
        count=sums([np.ones(len(presence))], 1)[:, 0],
        instances=np.bincount(inverse, minlength=total).astype(np.int64),
        quota=sums([stays.quota], 1)[:, 0],
        x=sums(x, known),
        xx=sums((left * right for left in x for right in x), known**2).reshape(total, known, known),
        y=sums(arms, 2),
        yy=sums((arm**2 for arm in arms), 2),
        xy=sums((column * arm for arm in arms for column in x), 2 * known).reshape(total, 2, known),
        share=quota / quota.sum(),
        scale=scale,
        before=np.zeros((len(machines), 2)) if stays.before is None else stays.before,
        measured=sums_of_columns(inverse, total, measured, 2),
        measured_squares=sums_of_columns(inverse, total, (arm**2 for arm in measured), 2),
        level=np.ones(jobs) if stays.level is None else stays.level / scale,
        machines=machines,
        jobs=pd.Index(fleet["job"]),
        rack=rack,
    )


def sums_of_columns(cell: Ints, cells: int, columns: Iterable[Floats], count: int) -> Floats:
    """Return the sums of so many columns by cell, (C, count); one after another, so that products take no room.

    Examples
    --------
    >>> sums_of_columns(np.array([1, 1, 0]), 2, [np.array([1.0, 2.0, 4.0])], 1).tolist()
    [[4.0], [3.0]]
    """
    sums = np.empty((cells, count))
    for place, column in enumerate(columns):
        sums[:, place] = np.bincount(cell, column, cells)
    return sums


def centred(x: Floats, job: Ints, presence: Floats) -> Floats:
    """Return covariates as deviations from their job's mean; (S, K), column after column."""
    total = np.bincount(job, presence)[job]
    columns = [column - np.bincount(job, presence * column)[job] / total for column in x.T]
    return np.array(columns, dtype=np.float64).reshape(x.shape[::-1]).T


class MachineTotals(NamedTuple):
    """Sums by machine, in units of the fleet's performance; each job weighs by its full quota."""

    quota: Floats
    """(M,) without the feature, were all instances like their job's `scale`."""
    value: Floats
    """(M, 2) without and with the feature."""
    x: Floats
    """(M, K) covariates, as the quota times a relative deviation."""


def totals(cells: JobMachineSums) -> MachineTotals:
    """Return the cells' sums by machine, each job's full quota spread evenly over its instances."""
    instances = np.bincount(cells.job, cells.count, len(cells.jobs))
    per_instance = (cells.weight / np.where(instances > 0, instances, 1.0))[cells.job]
    machine = np.repeat(np.arange(len(cells.machines)), np.diff(cells.start))

    def summed(values: Floats) -> Floats:
        sums = [np.bincount(machine, per_instance * column, len(cells.machines)) for column in values.T]
        return np.stack(sums, axis=1, dtype=np.float64) if sums else np.zeros((len(cells.machines), 0))

    return MachineTotals(summed(cells.count[:, None])[:, 0], summed(cells.y), summed(cells.x))


def only(cells: JobMachineSums, job: object, before: pd.DataFrame | None = None) -> JobMachineSums:
    """Return the cells of one job, whose change is then what estimators estimate.

    Covariates stay what they were, so what the machine's other residents tell of it is not lost.

    Parameters
    ----------
    cells : of a fleet
    job : one of its jobs
    before : observations before the study, for `JobMachineSums.before`; without it that is unknown

    Raises
    ------
    NotEnoughDataError
        If no machine holds the job.
    """
    place = int(cells.jobs.get_indexer(pd.Index([job]))[0])
    chosen = np.flatnonzero(cells.job == place)
    if place < 0 or not len(chosen):
        raise NotEnoughDataError(1, 0, f"machines with job {job}")
    machine = np.repeat(np.arange(len(cells.machines)), np.diff(cells.start))[chosen]
    per_cell = ("count", "instances", "quota", "x", "xx", "y", "yy", "xy", "measured", "measured_squares")
    machines = cells.machines[machine]
    past = np.zeros((len(chosen), 2))
    if before is not None:
        own_stays = stays(before[before["job"] == job]) if (before["job"] == job).any() else before.iloc[:0]
        past = _past(own_stays, machines)
    return replace(
        cells,
        start=np.arange(len(chosen) + 1),
        job=np.zeros(len(chosen), dtype=np.int64),
        **{name: getattr(cells, name)[chosen] for name in per_cell},
        share=np.ones(1),
        scale=cells.scale[[place]],
        level=cells.level[[place]],
        before=past,
        machines=machines,
        jobs=cells.jobs[[place]],
        rack=cells.rack[machine],
    )


def of_machines(cells: JobMachineSums, chosen: Bools) -> JobMachineSums:
    """Return the cells of some machines, as if the others were not in the fleet.

    That is the study of those machines alone only without covariates, which are centred over all machines.

    Parameters
    ----------
    cells : of M machines, each of which has one arm
    chosen : (M,)
    """
    cells_of = np.diff(cells.start)
    kept_cells = np.repeat(chosen, cells_of)
    per_cell = ("job", "count", "instances", "quota", "x", "xx", "y", "yy", "xy", "measured", "measured_squares")
    return replace(
        cells,
        start=np.append(0, np.cumsum(cells_of[chosen])),
        **{name: getattr(cells, name)[kept_cells] for name in per_cell},
        before=cells.before[chosen],
        machines=cells.machines[chosen],
        rack=cells.rack[chosen],
        platform=None if cells.platform is None else cells.platform[chosen],
    )


def _past(own_stays: pd.DataFrame, machines: pd.Index) -> Floats:
    """Return quota times performance, and quota, of the job's stays on each machine before the study; (M, 2)."""
    if own_stays.empty:
        return np.zeros((len(machines), 2))
    quota = own_stays["weight"] * own_stays["presence"]
    sums = own_stays.assign(value=quota * own_stays["value"], quota=quota).groupby("machine")[["value", "quota"]].sum()
    return _of_machines(sums, machines)


def _of_machines(before: pd.DataFrame, machines: pd.Index) -> Floats:
    """Return value and quota of machines, 0 where nothing is known; (M, 2)."""
    return before.reindex(machines)[["value", "quota"]].fillna(0.0).to_numpy(dtype=np.float64)
