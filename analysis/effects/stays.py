"""Observations as numbers, by stay: identifiers are coded once, and everything after that is sums over arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.effects.estimand import Target
from analysis.effects.observations import Observations, exposure, numbered, quotas_of
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

_COLUMNS = ("period", "job", "machine", "stay", "shard", "weight", "value", "treated", "present", "by", "cpu_s")
"""What `ObservedRows` hold of each row by itself."""


@dataclass(frozen=True, eq=False)
class ObservedRows:
    """N observations of S stays as numbers; rows of one stay agree in job, machine, instance and shard."""

    jobs: pd.Index
    """Names of jobs by number."""
    machines: pd.Index
    """Names of machines by number."""
    period: Ints
    """(N,) in order of time."""
    job: Ints
    """(N,)"""
    machine: Ints
    """(N,)"""
    stay: Ints
    """(N,) number of the stay among all rows that were coded together."""
    shard: Ints | None
    """(N,) number of the job's shard; None without shards."""
    weight: Floats
    """(N,)"""
    value: Floats
    """(N,)"""
    treated: Bools
    """(N,)"""
    present: Floats
    """(N,) seconds; 1 where they are not known."""
    by: Floats
    """(N,) exposure, above 0: what values count by."""
    cpu_s: Floats | None
    """(N,) None where this or the time present is not known."""
    amounts: bool
    """Whether exposure is an amount that values are per."""
    place: Ints
    """(N,) number of the row's stay among these rows, in order of appearance."""
    first: Ints
    """(S,) the first row of each stay."""

    @classmethod
    def of(cls, *tables: Observations) -> tuple[Self, ...]:
        """Return the rows of each table; numbers mean the same in all of them.

        Examples
        --------
        >>> row = {"period": 0, "job": "a", "machine": [1, 1, 2], "weight": 1.0, "value": 1.0, "treated": 0}
        >>> tables = [Observations.of(pd.DataFrame(row | {"machine": names})) for names in ([1, 1, 2], [3, 2, 1])]
        >>> [rows.stay.tolist() for rows in ObservedRows.of(*tables)]
        [[0, 0, 1], [2, 1, 0]]
        """
        _, period = _coded_together([table.periods for table in tables], [table.period for table in tables])
        jobs, job = _coded_together([table.jobs for table in tables], [table.job for table in tables])
        machines, machine = _coded_together([table.machines for table in tables], [table.machine for table in tables])
        identity = [name for name in ("instance", "shard") if all(name in table.rows for table in tables)]
        codes = {name: pd.factorize(pd.concat([table.rows[name] for table in tables]))[0] for name in identity}
        stay, _ = numbered([job, machine, *codes.values()])
        shard = numbered([job, codes["shard"]])[0] if "shard" in codes else None
        ends = np.cumsum([len(table.rows) for table in tables]).tolist()
        parts = list[Self]()
        for table, end in zip(tables, ends, strict=True):
            own, rows = slice(end - len(table.rows), end), table.rows
            place, first = numbered([stay[own]])
            present = _column(rows, "present_s")
            part = cls(
                jobs=jobs,
                machines=machines,
                period=period[own],
                job=job[own],
                machine=machine[own],
                stay=stay[own],
                shard=None if shard is None else shard[own],
                weight=rows["weight"].to_numpy(dtype=np.float64),
                value=rows["value"].to_numpy(dtype=np.float64),
                treated=table.treated,
                present=np.ones(len(rows)) if present is None else present,
                by=exposure(rows),
                cpu_s=None if present is None else _column(rows, "cpu_s"),
                amounts=not {"exposure", "cpu_s"}.isdisjoint(rows.columns),
                place=place,
                first=first,
            )
            parts.append(part)
        return tuple(parts)

    def __getitem__(self, which: Bools | slice) -> Self:
        """Return some of the rows."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        place, first = numbered([self.stay[which]])
        taken = {name: column[which] for name, column in columns.items() if column is not None}
        return replace(self, **taken, place=place, first=first)

    def split(self, study: Bools) -> tuple[Self, Self]:
        """Return the rows of the past, and those of the study."""
        return self[~study], self[study]

    def __len__(self) -> int:
        return len(self.job)

    @cached_property
    def controls(self) -> Self:
        """The rows without the feature."""
        return self[~self.treated]

    @cached_property
    def presence(self) -> Floats:
        """(S,) the time present, or the number of periods, relative to the longest stay's."""
        return self.share_of_most(self.present)

    @cached_property
    def level(self) -> Floats:
        """(S,) each stay's value: its periods' taken together, each by its exposure."""
        return np.asarray(np.bincount(self.place, self.by * self.value) / np.bincount(self.place, self.by))

    def share_of_most(self, amount: Floats) -> Floats:
        """Return (S,) the sum of rows' amounts by stay, relative to the largest."""
        total = np.bincount(self.place, amount)
        return np.asarray(total / max(float(total.max(initial=0.0)), 1e-300), dtype=np.float64)

    def counting(self, target: Target) -> Floats:
        """Return (S,) what each stay counts for in its job's mean, the most 1.

        Parameters
        ----------
        target : which mean is meant

        Raises
        ------
        InputError
            If a ratio of sums is asked for without the amounts that are its denominator.

        Examples
        --------
        >>> row = {"period": 0, "job": "a", "machine": [1, 1, 2], "weight": [2.0, 2.0, 1.0], "value": 1.0, "treated": 0}
        >>> (rows,) = ObservedRows.of(Observations.of(pd.DataFrame(row)))
        >>> rows.counting("instances"), rows.counting("quota")
        (array([1. , 0.5]), array([1.  , 0.25]))
        """
        if target == "sums" and not self.amounts:
            raise InputError("a ratio of sums needs the column exposure (or cpu_s), which is what values are per")
        if target == "sums":
            return self.share_of_most(self.by)
        return self.share_of_most(self.present * self.weight) if target == "quota" else self.presence


def _coded_together(names: Sequence[pd.Index], codes: Sequence[Ints]) -> tuple[pd.Index, Ints]:
    """Return the names of several tables as one sorted list, and the rows' codes in it."""
    if len(names) == 1:
        return names[0], codes[0]
    place, together = pd.factorize(names[0].append(list(names[1:])), sort=True)
    parts = np.split(place.astype(np.int64), np.cumsum([len(own) for own in names])[:-1])
    return pd.Index(together), np.concatenate([part[code] for part, code in zip(parts, codes, strict=True)])


def _column(rows: pd.DataFrame, name: str) -> Floats | None:
    return rows[name].to_numpy(dtype=np.float64) if name in rows else None


def stays(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per stay: its periods taken together, each by its exposure, and its presence.

    Exposure is what the value is per: cpu_s for a rate per CPU second; else the time present; else every period alike.
    Presence is the time present relative to the longest stay's, or the number of periods.

    Examples
    --------
    >>> row = {"job": "a", "machine": 1, "instance": 7, "weight": 1.0, "treated": False}
    >>> stays(pd.DataFrame([row | {"period": 0, "value": 1.0}, row | {"period": 1, "value": 3.0}]))["value"].tolist()
    [2.0]
    """
    (rows,) = ObservedRows.of(Observations.of(table))
    columns = [name for name in ("job", "machine", "instance", "shard", "rack", "weight", "treated") if name in table]
    return table.iloc[rows.first][columns].reset_index(drop=True).assign(value=rows.level, presence=rows.presence)


def fleet_of(
    past: ObservedRows, study: ObservedRows, jobs: pd.DataFrame | None, target: Target = "instances"
) -> pd.DataFrame:
    """Return the fleet's jobs: job, quota and scale, which is the job's mean before, or without the feature, or at all.

    Parameters
    ----------
    past, study : numbered together; one may be empty
    jobs : job, quota of the whole fleet; without it a job weighs as its rows in the study do
    target : of a ratio of sums a job's `quota` is its exposure in the study, whatever `jobs` says
    """
    if target == "sums":
        quotas = quotas_seen(study, study.job, study.by)
    elif jobs is None:
        quotas = quotas_seen(study, study.job[study.first], study.weight[study.first] * study.presence)
    else:
        quotas = quotas_of(jobs)
    means = [job_means(rows, rows.job[rows.first], rows.level, rows.presence) for rows in (past, study.controls, study)]
    return with_scales(quotas, study.jobs, means)


def quotas_seen(rows: ObservedRows, job: Ints, quota: Floats) -> pd.DataFrame:
    """Return the sums of quotas by job, of the jobs of these rows: job, quota."""
    present = np.flatnonzero(np.bincount(rows.job, minlength=len(rows.jobs)))
    return pd.DataFrame({"job": rows.jobs[present], "quota": np.bincount(job, quota, len(rows.jobs))[present]})


def job_means(rows: ObservedRows, job: Ints, value: Floats, weight: Floats) -> Floats:
    """Return the weighted means of values by job, NaN of jobs without any; (J,)."""
    return ratio(*(np.bincount(job, amount, len(rows.jobs)) for amount in (weight * value, weight)))


def with_scales(quotas: pd.DataFrame, jobs: pd.Index, means: Sequence[Floats]) -> pd.DataFrame:
    """Return a table of jobs with the scale of each: the first of its means that is known, else 1.

    Parameters
    ----------
    quotas : job, quota
    jobs : by number
    means : each (J,) by number, NaN where not known
    """
    scale = np.full(len(jobs), np.nan)
    for mean in means:
        scale = np.where(np.isnan(scale), mean, scale)
    of_fleet = np.append(scale, np.nan)[jobs.get_indexer(pd.Index(quotas["job"]))]
    return quotas.assign(scale=np.nan_to_num(of_fleet, nan=1.0))


def places(fleet: pd.DataFrame, jobs: pd.Index) -> Ints:
    """Return the place of each job in the table of the fleet, −1 if it is not there."""
    return pd.Index(fleet["job"]).get_indexer(jobs).astype(np.int64)


def scale_of(fleet: pd.DataFrame, jobs: pd.Index) -> Floats:
    """Return the scale of each job, NaN of those that are not in the fleet.

    Examples
    --------
    >>> scale_of(pd.DataFrame({"job": ["a"], "quota": [1.0], "scale": [2.0]}), pd.Index(["b", "a"]))
    array([nan,  2.])
    """
    return np.append(fleet["scale"].to_numpy(dtype=np.float64), np.nan)[places(fleet, jobs)]


def ratio(sums: ArrayLike, counts: ArrayLike) -> Floats:
    """Return sums over counts, NaN where nothing is counted."""
    number = np.asarray(counts, dtype=np.float64)
    return np.where(number > 0, np.asarray(sums, dtype=np.float64) / np.where(number > 0, number, 1.0), np.nan)
