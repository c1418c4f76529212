"""All that an estimator of a fleet-wide effect needs: covariates of stays, and sums over each machine's and job's.

None of what is known before the study can be an effect: performance in the past is taken apart into what belongs to
the shard (its input), what belongs to the machine (its silicon, its rack), and what its residents did to each other
(power caps, shared caches), which follows how much they are used to compute. So an instance that has moved is expected
to do as its shard does on its new machine, filled as that one is now. Placement must not depend on the feature.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.effects.estimand import Target
from analysis.effects.observations import identity, numbered, stays
from analysis.effects.switching import Switched
from analysis.statistics import NotEnoughDataError
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

COVARIATE = "x"
"""Columns of covariates are named x0, x1, …"""
SHARD, MACHINE, LOAD, LOAD_SQUARE, LOAD_BEFORE, LOAD_BEFORE_SQUARE = (f"{COVARIATE}{number}" for number in range(6))
_SWEEPS = 30
_SHARD_PRIOR, _MACHINE_PRIOR = 0.05, 1.0
"""Stays of the whole past by which a shard's, and a machine's, effect is half known."""
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
    job = pd.Index(jobs["job"]).get_indexer(pd.Index(rows["job"]))
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
    return sums.reindex(machines).fillna(0.0).to_numpy(dtype=np.float64)


@dataclass(frozen=True, slots=True)
class PastParts:
    """Additive parts of relative performance in the past."""

    unit: Floats
    """(U,) of each shard, or instance."""
    machine: Floats
    """(M,)"""
    load: Floats
    """(2,) slopes on the load and its square."""


def covariates(
    rows: pd.DataFrame,
    before: pd.DataFrame,
    study: pd.DataFrame,
    past: pd.DataFrame,
    fleet: pd.DataFrame,
    *,
    link: str = "shard",
    load: bool = True,
) -> pd.DataFrame:
    """Return the covariates of each stay of the study; 0 where nothing is known.

    x0: what its shard did in the past, other things equal; x1: what its machine did. x2 and x3: how busy the machine is
    expected to be while it is there, relative to the fleet's mean, and its square; x4 and x5: the same of the
    past, since a past of few periods cannot tell a slow machine from a full one.

    Parameters
    ----------
    rows, before : stays of the study and of the past, as `study.stays` makes them
    study, past : their observations by period
    fleet : job, scale
    link : shard: by job and shard, wherever that was served; own: by instance and machine; none: nothing is linked
    load : whether to tell x2 to x5

    Returns
    -------
    DataFrame
        In the order of `rows`; no column without a past.
    """
    scale = fleet.set_index("job")["scale"]
    known = before[before["job"].isin(scale.index)].reset_index(drop=True)
    if known.empty or link == "none":
        return pd.DataFrame(index=rows.index)
    keys = unit_of(rows, link)
    unit, units = pd.MultiIndex.from_frame(known[keys]).factorize()
    machine, machines = pd.factorize(known["machine"])
    loads = _loads(known, rows, past, study, has_shard=link == "shard" and "shard" in rows) if load else None
    deviation = (known["value"] / known["job"].map(scale) - 1.0).to_numpy(dtype=np.float64)
    presence = known["presence"].to_numpy(dtype=np.float64)
    parts = taken_apart(deviation, presence, unit, machine, None if loads is None else loads[0])
    of_unit = pd.Series(parts.unit, index=units).reindex(pd.MultiIndex.from_frame(rows[keys]))
    of_machine = pd.Series(parts.machine, index=machines).reindex(rows["machine"])
    columns = {SHARD: of_unit.fillna(0.0).to_numpy(), MACHINE: of_machine.fillna(0.0).to_numpy()}
    if loads is not None:
        past_load = np.bincount(machine, presence * loads[0]) / np.bincount(machine, presence)
        was = pd.Series(past_load, index=machines).reindex(rows["machine"]).fillna(0.0).to_numpy()
        columns |= {LOAD: loads[1], LOAD_SQUARE: loads[1] ** 2, LOAD_BEFORE: was, LOAD_BEFORE_SQUARE: was**2}
    return pd.DataFrame(columns, index=rows.index)


def unit_of(table: pd.DataFrame, link: str) -> list[str]:
    """Return the columns by which an instance is known again."""
    if link == "shard" and "shard" in table:
        return ["job", "shard"]
    return identity(table)


def taken_apart(deviation: Floats, presence: Floats, unit: Ints, machine: Ints, load: Floats | None) -> PastParts:
    """Return the parts of stays' relative performance, each shrunk by how little of it was seen.

    Fitted by backfitting (Breiman and Friedman 1985); the parts of units and machines are random effects.

    Parameters
    ----------
    deviation : (N,) relative to the job's mean
    presence : (N,) 0..1
    unit, machine : (N,) numbers from 0
    load : (N,) of the machine while it was there, relative to the mean; None: not looked at
    """
    of_unit: Floats = np.zeros(unit.max() + 1)
    of_machine: Floats = np.zeros(machine.max() + 1)
    slope: Floats = np.zeros(2)
    columns = np.zeros((len(deviation), 2)) if load is None else np.stack([load, load**2], axis=1)
    root = np.sqrt(presence)
    totals = np.bincount(unit, presence) + _SHARD_PRIOR, np.bincount(machine, presence) + _MACHINE_PRIOR
    for _ in range(_SWEEPS):
        rest = deviation - columns @ slope
        of_machine = np.bincount(machine, presence * (rest - of_unit[unit])) / totals[1]
        of_unit = np.bincount(unit, presence * (rest - of_machine[machine])) / totals[0]
        if load is not None:
            left = deviation - of_unit[unit] - of_machine[machine]
            slope = np.linalg.lstsq(columns * root[:, None], left * root, rcond=None)[0].astype(np.float64)
    return PastParts(of_unit, of_machine, slope)


def _loads(
    known: pd.DataFrame, rows: pd.DataFrame, past: pd.DataFrame, study: pd.DataFrame, *, has_shard: bool
) -> tuple[Floats, Floats]:
    """Return how busy each stay's machine is expected to be while it is there, relative to the fleet's mean."""
    then, now = _expected_rates(past, study, has_shard=has_shard)
    return _of_stays(known, past, then), _of_stays(rows, study, now)


def _expected_rates(past: pd.DataFrame, study: pd.DataFrame, *, has_shard: bool) -> tuple[Floats, Floats]:
    """Return how many CPU seconds a second each row's job or shard used in the past, or may use; (N,) of each table.

    Of a shard without a past it is the mean of its job's shards, and of a job without one that of all rows.
    """
    job, jobs = pd.factorize(pd.concat([past["job"], study["job"]], ignore_index=True))
    shard = pd.concat([past["shard"], study["shard"]], ignore_index=True) if has_shard else job
    unit, first = numbered([job, shard])
    before, units = unit[: len(past)], len(first)
    if "cpu_s" in past and "present_s" in past:
        used, time = (past[name].fillna(0.0).to_numpy(dtype=np.float64) for name in ("cpu_s", "present_s"))
    else:
        used, time = past["weight"].to_numpy(dtype=np.float64), np.ones(len(past))
    rate = _ratio(np.bincount(before, used, units), np.bincount(before, time, units))
    rated = np.isfinite(rate)
    of_job = job[first][rated]
    whole = _ratio(np.bincount(of_job, rate[rated], len(jobs)), np.bincount(of_job, minlength=len(jobs)))
    of_row = np.where(rated[unit], rate[unit], whole[job])
    tables = []
    for table in (of_row[: len(past)], of_row[len(past) :]):
        usable = np.isfinite(table)
        tables.append(np.where(usable, table, table[usable].mean() if usable.any() else 1.0))
    return tables[0], tables[1]


def _of_stays(stays: pd.DataFrame, table: pd.DataFrame, rate: Floats) -> Floats:
    """Return the mean load of each stay's machine over its periods; 0 if it has none.

    Parameters
    ----------
    table : observations of the same time, by period
    rate : (N,) CPU seconds a second that are expected of them
    """
    present = table["present_s"].to_numpy(dtype=np.float64) if "present_s" in table else np.ones(len(table))
    place, _ = numbered([table["machine"], table["period"]])
    busy = np.bincount(place, rate * present)[place]
    load = busy / np.average(busy, weights=present) - 1.0
    stay, first = numbered([pd.concat([table[name], stays[name]], ignore_index=True) for name in identity(stays)])
    own = stay[: len(table)]
    mean = _ratio(np.bincount(own, present * load, len(first)), np.bincount(own, present, len(first)))
    return np.nan_to_num(mean[stay[len(table) :]])


def _ratio(sums: ArrayLike, counts: ArrayLike) -> Floats:
    """Return sums over counts, NaN where nothing is counted."""
    number = np.asarray(counts, dtype=np.float64)
    return np.where(number > 0, np.asarray(sums, dtype=np.float64) / np.where(number > 0, number, 1.0), np.nan)
