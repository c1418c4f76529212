"""An experiment's observations as codes and flags, and the plain estimate that harm is measured against."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t

from analysis.audit.about import About
from analysis.audit.findings import Finding
from analysis.statistics import ROUNDING
from models.arrays import Bools, Floats, Ints
from models.errors import WscError

NEEDED = ("period", "job", "machine", "weight", "value", "treated")
"""Columns that every table of observations has."""

_AMOUNTS = ("present_s", "cpu_s", "exposure", "mean_frequency_hz", "clock_hz", "cycles")
"""Columns beside value and weight whose numbers must be above 0; CPU time may be 0."""
_COARSE = 0.05
"""Share of rows whose value another machine has, too, from which equal values say nothing."""


class ObservationsError(WscError):
    """A table of observations cannot be audited."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """N usable observations, of J jobs on M machines in P periods."""

    rows: pd.DataFrame
    """The observations; index from 0."""
    period: Ints
    """(N,)"""
    job: Ints
    """(N,)"""
    machine: Ints
    """(N,)"""
    treated: Bools
    """(N,)"""
    study: Bools
    """(N,) whether anything had the feature by then; the others are the pre-period."""
    relative: Floats
    """(N,) value divided by its job's mean without the feature."""
    quota: Floats
    """(J,) the jobs' weights: of the whole fleet if there is a table of jobs."""
    scale: Floats
    """(J,) the jobs' means without the feature."""
    unseen: float
    """Share of the fleet's quota held by jobs that have no row at all."""
    ever: Bools
    """(M,) whether the machine had the feature in any period."""
    never: Bools
    """(M,) whether it had no feature in a period of the study."""
    rack: Ints | None
    """(M,) rack of each machine, if known."""
    periods: pd.Index
    jobs: pd.Index
    machines: pd.Index
    by_rack: bool = False
    """Whether errors are to count racks, whatever got the feature together."""

    @classmethod
    def of(cls, observations: pd.DataFrame, jobs: pd.DataFrame | None = None, *, by_rack: bool = False) -> "Table":
        """Leave out rows that cannot be used and identical ones, and columns of unusable amounts; code the others.

        Parameters
        ----------
        observations : period, job, machine, weight, value, treated and perhaps rack
        jobs : job, quota of the whole fleet
        by_rack : as in `Table`

        Raises
        ------
        ObservationsError
            If a column is missing, nothing can be used, or nothing has the feature.
        """
        rows = usable(observations)
        rows = rows.drop(columns=list(unusable_amounts(rows)))
        period, periods = pd.factorize(rows["period"], sort=True)
        job, names = pd.factorize(rows["job"], sort=True)
        machine, machines = pd.factorize(rows["machine"], sort=True)
        treated = rows["treated"].to_numpy() == 1
        if not treated.any() and (observations["treated"] == 1).any():
            raise ObservationsError("no row with the feature has a value and a weight above 0")
        if not treated.any():
            raise ObservationsError("nothing has the feature: no row has treated 1, or there is no such column")
        study = period >= period[treated].min()
        value = rows["value"].to_numpy(dtype=np.float64)
        scale = _scale(job, value, treated, study, len(names))
        quota, unseen = _quota(rows, job, pd.Index(names), jobs)
        return cls(
            rows=rows,
            period=period.astype(np.int64),
            job=job.astype(np.int64),
            machine=machine.astype(np.int64),
            treated=treated,
            study=study,
            relative=value / scale[job],
            quota=quota,
            scale=scale,
            unseen=unseen,
            ever=np.bincount(machine, treated, len(machines)) > 0,
            never=np.bincount(machine, study & ~treated, len(machines)) > 0,
            rack=_first(rows["rack"], machine, len(machines)) if "rack" in rows else None,
            periods=pd.Index(periods),
            jobs=pd.Index(names),
            machines=pd.Index(machines),
            by_rack=by_rack,
        )

    @property
    def crossover(self) -> bool:
        """Whether most machines with the feature were in the study without it, too."""
        return bool((self.ever & self.never).sum() > 0.5 * self.ever.sum())

    @property
    def weight(self) -> Floats:
        """(N,) the rows' own weights."""
        return self.rows["weight"].to_numpy(dtype=np.float64)

    def windows_apart(self) -> float:
        """Return the share of the treated quota of the study that is in other periods than the untreated quota."""
        shares = []
        for arm in (self.treated, self.study & ~self.treated):
            quota = np.bincount(self.period, self.weight * arm, len(self.periods))
            shares.append(quota / max(float(quota.sum()), 1e-300))
        return float(np.abs(shares[1] - shares[0]).sum() / 2)

    def platforms(self) -> tuple[Ints, pd.Index]:
        """Return (M,) each machine's platform and the platforms' names; one for all if there is no such column."""
        if "platform" not in self.rows:
            return np.zeros(len(self.machines), dtype=np.int64), pd.Index([""])
        code, names = pd.factorize(self.rows["platform"], sort=True)
        return _first(pd.Series(code), self.machine, len(self.machines)), pd.Index(names)

    def whole_racks(self) -> bool:
        """Return whether each of several racks has the feature on all of its machines or on none."""
        if self.rack is None or self.crossover:
            return False
        size = np.bincount(self.rack)
        having = np.bincount(self.rack, self.ever)
        several = size > 1
        mixed = several & (having > 0) & (having < size)
        return bool((several & (having > 0)).any() and mixed.sum() <= 0.1 * (several & (having > 0)).sum())

    def units(self) -> Ints:
        """Return (M,) what counts as independent: racks if they got the feature whole or it is asked, else machines."""
        if self.rack is not None and (self.by_rack or self.whole_racks()):
            return self.rack
        return np.arange(len(self.machines))


def usable(observations: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that can be counted: finite and above 0, and of identical ones the first."""
    missing = [name for name in NEEDED if name not in observations]
    if missing:
        raise ObservationsError(f"columns are missing: {', '.join(missing)}")
    rows = observations[~unusable(observations)]
    rows = rows[~repeated(rows)].reset_index(drop=True)
    if not len(rows):
        raise ObservationsError("no row has a value and a weight above 0")
    return rows


def unusable(observations: pd.DataFrame) -> Bools:
    """Return (N,) which rows have a value or weight that is not finite and above 0."""
    numbers = observations[["value", "weight"]].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    return np.asarray(~(np.isfinite(numbers) & (numbers > 0)).all(axis=1), dtype=np.bool_)


def unusable_amounts(observations: pd.DataFrame) -> dict[str, Bools]:
    """Return the columns of presence, CPU time, exposure or frequency that have unusable rows; (N,) which those are."""
    unusable_ = dict[str, Bools]()
    for name in (column for column in _AMOUNTS if column in observations):
        number = pd.to_numeric(observations[name], errors="coerce").to_numpy(dtype=np.float64)
        enough = number >= 0 if name == "cpu_s" else number > 0
        wrong = np.asarray(~(np.isfinite(number) & enough), dtype=np.bool_)
        if wrong.any():
            unusable_[name] = wrong
    return unusable_


def repeated(observations: pd.DataFrame) -> Bools:
    """Return (N,) which rows say what an earlier row said: same period, job, machine, instance and value.

    An instance that comes back to its machine has two rows in one period, with values of their own. Without column
    `instance` equal values may belong to two instances: rows count as repeated only where values are so fine that
    hardly two machines ever agree.
    """
    names = ["period", "job", "machine", "instance", "residence", "weight", "value"]
    known = [name for name in names if name in observations]
    if "instance" in known and observations["instance"].is_unique:
        return np.zeros(len(observations), dtype=np.bool_)
    again = observations.duplicated(known).to_numpy()
    if again.any() and not {"instance", "residence"} & {*known}:
        single = observations.loc[~again, ["period", "job", "value"]]
        if single.duplicated(keep=False).mean() > _COARSE:
            return np.zeros(len(again), dtype=np.bool_)
    return again


def _scale(job: Ints, value: Floats, treated: Bools, study: Bools, jobs: int) -> Floats:
    """Return (J,) mean values: of the concurrent untreated rows, or else of the untreated, or else of all."""
    scale = np.full(jobs, np.nan)
    for chosen in (study & ~treated, ~treated, np.ones(len(job), dtype=np.bool_)):
        count = np.bincount(job[chosen], minlength=jobs)
        mean = np.bincount(job[chosen], value[chosen], jobs) / np.maximum(count, 1)
        scale = np.where(np.isnan(scale) & (count > 0), mean, scale)
    return scale


def _quota(rows: pd.DataFrame, job: Ints, names: pd.Index, jobs: pd.DataFrame | None) -> tuple[Floats, float]:
    """Return (J,) the weights of the jobs that have rows, and the share of the fleet's quota that others hold."""
    if jobs is None:
        own = np.bincount(job, rows["weight"].to_numpy(dtype=np.float64), len(names))
        return np.asarray(own, dtype=np.float64), 0.0
    missing = [name for name in ("job", "quota") if name not in jobs]
    if missing:
        raise ObservationsError(f"the table of jobs lacks columns: {', '.join(missing)}")
    given = jobs.drop_duplicates("job").set_index("job")["quota"].astype(np.float64)
    quota: Floats = np.asarray(given.reindex(names).fillna(0.0), dtype=np.float64)
    if not quota.sum() > 0:
        raise ObservationsError("no job of the observations has a quota in the table of jobs")
    return quota, float(1 - quota.sum() / given.sum())


def _first(values: "pd.Series", machine: Ints, machines: int) -> Ints:
    """Return (M,) each machine's first value, as a code."""
    code = pd.factorize(values, sort=True)[0]
    codes = np.zeros(machines, dtype=np.int64)
    codes[machine[::-1]] = code[::-1]
    return codes


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """A relative change of the fleet over the jobs that both arms have, and what it rests on.

    Its variance is that of linearised sums over clusters (Särndal, Swensson and Wretman 1992, section 5.5).
    """

    change: float
    error: float
    freedom: float
    influence: Floats
    """(G, 2) what each cluster adds to the estimate's error, by arm."""
    hold: Floats
    """(G, 2) share of each arm's mean that a cluster carries."""
    by_job: Floats
    """(J,) each job's own change; NaN where it was not seen."""
    comparable: Bools
    """(J,) whether at least two clusters of each arm hold the job."""
    covered: float
    """Share of the quota of all jobs that they hold."""
    alone_error: float
    """The standard error if every row were independent."""

    @property
    def half_width(self) -> float:
        """Half of the 95% interval."""
        return float(t.ppf(0.975, self.freedom)) * self.error

    def half_widths(self, shift: float) -> float:
        """Return how many half-widths of the 95% interval a shift is, in size; 0 of an interval without width."""
        return abs(shift) / self.half_width if self.half_width > 0 else 0.0

    @property
    def clusters(self) -> Floats:
        """(2,) effective number of clusters without and with the feature (Kish 1965)."""
        return np.asarray(1 / np.maximum((self.hold**2).sum(axis=0), 1e-300), dtype=np.float64)

    @property
    def design_effect(self) -> float:
        """Variance relative to that of independent rows."""
        return (self.error / self.alone_error) ** 2 if self.alone_error > 0 else 1.0


def contrast(
    table: Table,
    among: Bools,
    treated: Bools,
    cluster: Ints,
    value: Floats | None = None,
) -> Contrast | None:
    """Return the change between two sets of rows, or None if they share no job on two clusters each.

    Parameters
    ----------
    table : the experiment
    among : (N,) rows that are compared
    treated : (N,) which of them have the feature
    cluster : (M,) what each machine belongs to
    value : (N,) relative values; those of the table if not given
    """
    jobs, groups = len(table.jobs), int(cluster.max()) + 1
    y = (table.relative if value is None else value)[among]
    job, arm, group = table.job[among], treated[among].astype(np.int64), cluster[table.machine[among]].astype(np.int64)
    cell, of = np.unique((group * 2 + arm) * jobs + job, return_inverse=True)
    n, s = np.bincount(of).astype(np.float64), np.bincount(of, y, len(cell))
    cell_job, cell_arm, cell_group = cell % jobs, cell // jobs % 2, cell // jobs // 2
    key = cell_arm * jobs + cell_job
    clusters_of, rows, sums = (
        np.bincount(key, numbers, 2 * jobs).reshape(2, jobs) for numbers in (np.ones(len(cell)), n, s)
    )
    comparable: Bools = np.asarray((clusters_of >= 2).all(axis=0), dtype=np.bool_)
    weight = np.where(comparable, table.quota * table.scale, 0.0)
    if not weight.sum() > 0:
        return None
    mean = sums / np.maximum(rows, 1)
    level = float((weight * mean[0]).sum())
    part = np.where(comparable, weight / level, 0.0) / np.maximum(rows, 1)
    spread = np.sqrt(clusters_of / np.maximum(clusters_of - 1, 1))
    out = (part * spread).ravel()[key] * (s - n * mean.ravel()[key])
    of_group = cell_group * 2 + cell_arm
    influence: Floats = np.bincount(of_group, out, 2 * groups).astype(np.float64).reshape(groups, 2)
    hold: Floats = np.bincount(of_group, part.ravel()[key] * n, 2 * groups).astype(np.float64).reshape(groups, 2)
    squares = np.bincount(arm * jobs + job, (y - mean.ravel()[arm * jobs + job]) ** 2, 2 * jobs).reshape(2, jobs)
    alone = part**2 * rows * squares / np.maximum(rows - 1, 1)
    change = float((weight * (mean[1] - mean[0])).sum()) / level
    error = float(np.sqrt(((influence[:, 1] - influence[:, 0]) ** 2).sum()))
    return Contrast(
        change=change if abs(change) > ROUNDING else 0.0,
        error=error if error > ROUNDING else 0.0,
        freedom=_freedom(influence, hold),
        influence=influence,
        hold=hold / hold.sum(axis=0),
        by_job=np.where(comparable, mean[1] / np.where(mean[0] > 0, mean[0], 1.0) - 1, np.nan),
        comparable=comparable,
        covered=float(table.quota[comparable].sum() / table.quota.sum()) * (1 - table.unseen),
        alone_error=float(np.sqrt(alone.sum())),
    )


def study_contrast(table: Table, value: Floats | None = None) -> Contrast | None:
    """Return the change between treated and concurrent untreated rows, clustered by what got the feature together."""
    return contrast(table, table.study, table.treated, table.units(), value)


def contrast_before(table: Table) -> Contrast | None:
    """Return the difference, before the study, of machines that later got the feature from those that did not."""
    return contrast(table, ~table.study, table.ever[table.machine], table.units())


def _freedom(influence: Floats, hold: Floats) -> float:
    """Return Welch's degrees of freedom; clusters that are in both arms count once."""
    count = (hold > 0).sum(axis=0)
    if ((hold > 0).all(axis=1)).sum() > 0.5 * count[1]:
        return float(max((hold > 0).any(axis=1).sum() - 1, 1))
    variance = (influence**2).sum(axis=0)
    if not variance.sum() > 0:
        return float(max(count.min() - 1, 1))
    return float(max(variance.sum() ** 2 / (variance**2 / np.maximum(count - 1, 1)).sum(), 1))


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One experiment under audit."""

    given: pd.DataFrame
    table: Table
    about: About
    plain: Contrast | None
    """Of the study: treated rows against concurrent untreated rows."""
    prior: Contrast | None
    """Of the pre-period: the same machines."""

    @classmethod
    def of(cls, given: pd.DataFrame, jobs: pd.DataFrame | None = None, about: About | None = None) -> "Case":
        """Prepare what guards look at."""
        about = about or About()
        table = Table.of(given, jobs, by_rack=about.clusters == "rack")
        return cls(given, table, about, study_contrast(table), contrast_before(table))


Guard = Callable[[Case], list[Finding] | None]
"""A guard's findings; None if the case lacks what it looks at."""
