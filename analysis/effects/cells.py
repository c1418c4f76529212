"""Sums over the instances of each machine and job: all that an estimator of a fleet-wide effect needs."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.effects.covariates import COVARIATE
from analysis.effects.observations import stays
from analysis.effects.stages import Stages
from analysis.effects.switching import Switched
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats, Ints
from models.errors import InputError


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
    """(C,) instances, each by the share of the study that it was present: what all sums count them by."""
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

    @property
    def weight(self) -> Floats:
        """(J,) what a relative change of each job changes the fleet's metric by, in units of performance."""
        return self.share * self.scale


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
    job = pd.Index(jobs["job"]).get_indexer(rows["job"])
    if (job < 0).any():
        raise InputError(f"job {rows['job'].to_numpy()[job < 0][0]} is not among the fleet's jobs")
    machine, machines = pd.factorize(rows["machine"], sort=True)
    pair, inverse = np.unique(machine.astype(np.int64) * len(jobs) + job, return_inverse=True)
    total = len(pair)

    presence = rows["presence"].to_numpy(dtype=np.float64) if "presence" in rows else np.ones(len(rows))

    def summed(value: Floats) -> Floats:
        return np.bincount(inverse, presence * value, total).astype(np.float64)

    scale = jobs["scale"].to_numpy(dtype=np.float64)
    arms = [np.nan_to_num(rows[name].to_numpy(dtype=np.float64)) / scale[job] for name in ("off", "on")]
    names = [f"measured_{name}" if f"measured_{name}" in rows else name for name in ("off", "on")]
    measured = [np.nan_to_num(rows[name].to_numpy(dtype=np.float64)) / scale[job] for name in names]
    covariates = _centred(rows, job, len(jobs), presence)
    count = covariates.shape[1]
    quota = jobs["quota"].to_numpy(dtype=np.float64)
    index = pd.Index(machines)
    rack = np.arange(len(machines)) if racks is None else pd.factorize(racks.reindex(index))[0].astype(np.int64)
    if (rack < 0).any():
        raise InputError(f"machine {machines[rack < 0][0]} is in no rack")
    return JobMachineSums(
        start=np.searchsorted(pair // len(jobs), np.arange(len(machines) + 1)),
        job=(pair % len(jobs)).astype(np.int64),
        count=summed(np.ones(len(rows))),
        instances=np.bincount(inverse, minlength=total).astype(np.int64),
        quota=summed(rows["quota"].to_numpy(dtype=np.float64)),
        x=_stacked([summed(covariates[:, k]) for k in range(count)], total),
        xx=_stacked(
            [summed(covariates[:, k] * covariates[:, m]) for k in range(count) for m in range(count)], total
        ).reshape(total, count, count),
        y=_stacked([summed(arm) for arm in arms], total),
        yy=_stacked([summed(arm**2) for arm in arms], total),
        xy=_stacked([summed(covariates[:, k] * arm) for arm in arms for k in range(count)], total).reshape(
            total, 2, count
        ),
        share=quota / quota.sum(),
        scale=scale,
        before=np.zeros((len(machines), 2))
        if before is None
        else before.reindex(index)[["value", "quota"]].fillna(0.0).to_numpy(dtype=np.float64),
        measured=_stacked([_plain(inverse, arm, total) for arm in measured], total),
        measured_squares=_stacked([_plain(inverse, arm**2, total) for arm in measured], total),
        level=np.ones(len(jobs)) if level is None else level.reindex(jobs["job"]).to_numpy(dtype=np.float64) / scale,
        machines=index,
        jobs=pd.Index(jobs["job"]),
        rack=rack,
        known=known,
        shared=shared,
    )


def _plain(cell: Ints, value: Floats, cells: int) -> Floats:
    """Return the sums of values by cell, each row alike."""
    return np.bincount(cell, value, cells).astype(np.float64)


def _centred(rows: pd.DataFrame, job: Ints, jobs: int, presence: Floats) -> Floats:
    """Return the covariates as deviations from their job's mean; (rows, K)."""
    names = [name for name in rows.columns if name.startswith(COVARIATE) and name[len(COVARIATE) :].isdigit()]
    values = rows[names].to_numpy(dtype=np.float64, copy=True)
    total = np.bincount(job, presence, jobs)[job]
    for k in range(values.shape[1]):
        values[:, k] -= np.bincount(job, presence * values[:, k], jobs)[job] / total
    return values


def _stacked(columns: list[Floats], rows: int) -> Floats:
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))


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
        return np.stack(sums, axis=1) if sums else np.zeros((len(cells.machines), 0))

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


def _past(own_stays: pd.DataFrame, machines: pd.Index) -> Floats:
    """Return quota times performance, and quota, of the job's stays on each machine before the study; (M, 2)."""
    if own_stays.empty:
        return np.zeros((len(machines), 2))
    quota = own_stays["weight"] * own_stays["presence"]
    sums = own_stays.assign(value=quota * own_stays["value"], quota=quota).groupby("machine")[["value", "quota"]].sum()
    return sums.reindex(machines).fillna(0.0).to_numpy(dtype=np.float64)
