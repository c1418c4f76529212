"""Summaries of measurement tables, by job and by machine, and the jobs that two of them cover."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.statistics import NotEnoughDataError
from models.arrays import Floats, Ints
from models.errors import InputError


def job_statistics(measurements: pd.DataFrame, ddof: int = 0) -> pd.DataFrame:
    """Return mean and spread of every job's instances (Lee et al. 2018, WSMeter, section 5.1, step 1).

    Parameters
    ----------
    measurements : columns job, weight, value; one row per measured instance
    ddof : 0 for the whole population's standard deviation, 1 for a sample's

    Returns
    -------
    DataFrame
        job, weight (sum over its instances), mean and std (units of value; std is NaN where instances <= ddof),
        instances; ordered by job.

    Raises
    ------
    ValueError
        If a value is not finite, a weight not above 0, or an identifier missing; rows count from 0.

    Examples
    --------
    >>> job_statistics(pd.DataFrame({"job": ["b", "a", "b"], "weight": 1.0, "value": [1.0, 5.0, 3.0]}))
      job  weight  mean  std  instances
    0   a     1.0   5.0  0.0          1
    1   b     2.0   2.0  1.0          2
    """
    code, jobs = _coded(measurements, "job")
    value = _finite(measurements, "value", -np.inf)
    weight, mean, std, instances = _by_job(code, len(jobs), _finite(measurements, "weight"), value, ddof)
    return pd.DataFrame({"job": jobs, "weight": weight, "mean": mean, "std": std, "instances": instances})


def machine_values(measurements: pd.DataFrame) -> pd.DataFrame:
    """Return the performance of every machine: the weighted mean of its instances.

    Instances weigh by `exposure` where the table has it (cycles make a machine's IPC its instructions over its
    cycles), otherwise by `weight`.

    Parameters
    ----------
    measurements : columns machine, weight, value and perhaps exposure; one row per measured instance

    Returns
    -------
    DataFrame
        machine, value, instances; ordered by machine.

    Raises
    ------
    ValueError
        If a value is not finite, a weight not above 0, or an identifier missing; rows count from 0.

    Examples
    --------
    >>> machine_values(pd.DataFrame({"machine": [7, 7], "weight": [1.0, 3.0], "value": [1.0, 2.0]}))
       machine  value  instances
    0        7   1.75          2
    """
    code, machines = _coded(measurements, "machine")
    weight = _finite(measurements, _exposure(measurements))
    value = _finite(measurements, "value", -np.inf)
    return pd.DataFrame(
        {
            "machine": machines,
            "value": _weighted_mean(code, len(machines), weight, value),
            "instances": np.bincount(code, minlength=len(machines)),
        }
    )


@dataclass(frozen=True, slots=True, eq=False)
class Current:
    """All that an estimate needs of a measurement table, computed once; usually of the current fleet."""

    job: pd.Index
    """Jobs, in order; the arrays up to `instances` have one entry each."""
    weight: Floats
    mean: Floats
    std: Floats
    """The sample's standard deviation; NaN for a job with one instance."""
    instances: Ints
    machine_value: Floats
    """Performance of each machine."""

    @classmethod
    def of(cls, table: "pd.DataFrame | Current") -> "Current":
        """Summarise a measurement table; a summary is returned as it is.

        Examples
        --------
        >>> table = pd.DataFrame({"job": "a", "machine": [1, 2], "weight": 1.0, "value": [1.0, 3.0]})
        >>> Current.of(table).mean, Current.of(table).machine_value
        (array([2.]), array([1., 3.]))
        """
        if isinstance(table, Current):
            return table
        return CodedMeasurements.of(table).summary()

    @classmethod
    def joined(cls, parts: Sequence["Current"]) -> "Current":
        """Return the summary of several tables together, which share no machine (Chan, Golub, LeVeque 1983, eq. 2.1).

        Parameters
        ----------
        parts : summary of each table; one at least

        Examples
        --------
        >>> table = pd.DataFrame({"job": "a", "machine": [1, 2, 3], "weight": 1.0, "value": [1.0, 3.0, 8.0]})
        >>> whole = Current.joined([Current.of(table[:2]), Current.of(table[2:])])
        >>> whole.mean, whole.std.round(3), Current.of(table).std.round(3)
        (array([4.]), array([3.606]), array([3.606]))
        """
        if len(parts) == 1:
            return parts[0]
        code, jobs = pd.factorize(np.concatenate([part.job.to_numpy() for part in parts]), sort=True)
        weight, mean, std = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("weight", "mean", "std")
        )
        sizes = np.concatenate([part.instances for part in parts])
        instances = np.bincount(code, sizes, len(jobs)).astype(np.int64)
        middle = np.bincount(code, sizes * mean, len(jobs)) / instances
        within = np.nan_to_num(std) ** 2 * (sizes - 1)
        squares: Floats = np.bincount(code, within + sizes * (mean - middle[code]) ** 2, len(jobs)).astype(np.float64)
        return cls(
            job=pd.Index(jobs),
            weight=np.bincount(code, weight, len(jobs)).astype(np.float64),
            mean=middle,
            std=_std(squares, instances, 1),
            instances=instances,
            machine_value=np.concatenate([part.machine_value for part in parts]),
        )

    def take(self, at: Ints) -> "Current":
        """Return the summary with only the jobs at these places; machines keep all they host."""
        return replace(
            self,
            job=self.job[at],
            weight=self.weight[at],
            mean=self.mean[at],
            std=self.std[at],
            instances=self.instances[at],
        )

    def only(self, jobs: pd.Index) -> "Current":
        """Return the summary with only these jobs, as far as it has them; machines keep all they host."""
        return self.take(np.flatnonzero(jobs.get_indexer(self.job) >= 0))


Table = pd.DataFrame | Current


@dataclass(frozen=True, slots=True, eq=False)
class CodedMeasurements:
    """A measurement table checked and coded once, so that the summary of some of its rows is a few sums.

    Of every row: the places of its job in `jobs` and of its machine among the machines, in order, and its numbers.
    """

    jobs: pd.Index
    job: Ints
    machine: Ints
    machines: int
    weight: Floats
    exposure: Floats
    value: Floats

    @classmethod
    def of(cls, table: pd.DataFrame) -> "CodedMeasurements":
        """Check and code a table; errors as in `job_statistics`."""
        job, jobs = _coded(table, "job")
        value, weight = _finite(table, "value", -np.inf), _finite(table, "weight")
        machine, machines = _coded(table, "machine")
        by = _exposure(table)
        exposure = weight if by == "weight" else _finite(table, by)
        return cls(jobs.rename("job"), job, machine, len(machines), weight, exposure, value)

    def summary(self, rows: Ints | None = None) -> Current:
        """Return the summary of some rows, each named once, or of all.

        Examples
        --------
        >>> table = pd.DataFrame({"job": list("bab"), "machine": [1, 2, 3], "weight": 1.0, "value": [1.0, 5.0, 3.0]})
        >>> some = CodedMeasurements.of(table).summary(np.array([0, 2]))
        >>> some.job.tolist(), some.mean, some.machine_value
        (['b'], array([2.]), array([1., 3.]))
        """
        job, machine, weight, exposure, value = self.job, self.machine, self.weight, self.exposure, self.value
        jobs, machines = self.jobs, self.machines
        if rows is not None:
            job, instances = _among(job[rows], len(jobs))
            machine, seen_machines = _among(machine[rows], machines)
            weight, exposure, value = weight[rows], exposure[rows], value[rows]
            jobs, machines = jobs[instances], len(seen_machines)
        statistics = _by_job(job, len(jobs), weight, value, 1)
        return Current(jobs, *statistics, _weighted_mean(machine, machines, exposure, value))


def quota_shares(jobs: pd.DataFrame, among: pd.Index) -> Floats:
    """Return the share of the whole fleet's CPU quota that each of some jobs holds.

    Parameters
    ----------
    jobs : columns job, quota; every job of the fleet once
    among : the jobs asked about; one that `jobs` lacks has the share NaN

    Examples
    --------
    >>> quota_shares(pd.DataFrame({"job": ["a", "b"], "quota": [1.0, 3.0]}), pd.Index(["b", "x"]))
    array([0.75,  nan])
    """
    quota = jobs["quota"].to_numpy(dtype=np.float64)
    at = pd.Index(jobs["job"]).get_indexer(among)
    shares = np.full(len(at), np.nan)
    shares[at >= 0] = quota[at[at >= 0]] / quota.sum()
    return shares


@dataclass(frozen=True, slots=True, eq=False)
class Covered:
    """The jobs that two tables cover: weights that sum to 1, and the statistics of just these jobs, in this order."""

    weight: Floats
    quota_share: Floats
    """Share of the whole fleet's CPU quota; NaN without a jobs table."""
    current: Current
    new: Current

    @property
    def job(self) -> pd.Index:
        """The jobs."""
        return self.new.job

    @classmethod
    def of(
        cls, current: Current, new: Current, min_instances: int, min_current: int, jobs: pd.DataFrame | None
    ) -> "Covered":
        """Find the covered jobs; parameters and errors as in `covered`."""
        at = current.job.get_indexer(new.job)
        share = np.full(len(at), np.nan) if jobs is None else quota_shares(jobs, new.job)
        known = np.flatnonzero((at >= 0) & (True if jobs is None else share > 0))
        have_new, have_current = new.instances[known], current.instances[at[known]]
        enough = known[(have_new >= min_instances) & (have_current >= min_current)]
        if not len(enough):
            sampled = min_current > 1
            raise _too_few(min_instances, sampled, np.minimum(have_new, have_current) if sampled else have_new)
        left, right = current.take(at[enough]), new.take(enough)
        weight = left.weight if jobs is None else share[enough]
        return cls(weight / weight.sum(), share[enough], left, right)


def covered(
    current: Table,
    new: Table,
    min_instances: int = 4,
    min_current: int = 1,
    jobs: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the jobs that both tables cover, with their weights renormalised to sum to 1 (section 5.2.2).

    Parameters
    ----------
    current, new : measurement tables, or their summaries
    min_instances : instances of a job that `new` must hold
    min_current : instances of a job that `current` must hold
    jobs : columns job, quota; without it a job weighs as the sum of its weights in `current`

    Returns
    -------
    DataFrame
        job, weight (sums to 1), quota_share (of the whole fleet; NaN without `jobs`), and mean, std and instances
        of either table, such as mean_current and std_new; ordered by job. Standard deviations are the samples'.

    Raises
    ------
    NotEnoughDataError
        If no job is covered.

    Examples
    --------
    >>> new = pd.DataFrame({"job": list("aaaab"), "machine": range(5), "weight": 1.0, "value": 1.0})
    >>> covered(new, new)["job"].tolist()
    ['a']
    """
    common = Covered.of(Current.of(current), Current.of(new), min_instances, min_current, jobs)
    statistics = {
        f"{name}_{side}": getattr(summary, name)
        for side, summary in (("current", common.current), ("new", common.new))
        for name in ("mean", "std", "instances")
    }
    return pd.DataFrame({"job": common.job, "weight": common.weight, "quota_share": common.quota_share} | statistics)


def _too_few(min_instances: int, sampled: bool, instances: Ints) -> NotEnoughDataError:
    where = "in both tables" if sampled else "of the current table in the new one"
    return NotEnoughDataError(min_instances, int(instances.max(initial=0)), f"instances of one job {where}")


def _coded(measurements: pd.DataFrame, column: str) -> tuple[Ints, pd.Index]:
    """Return each row's place among the sorted distinct values of a column."""
    code, values = pd.factorize(measurements[column], sort=True)
    if len(code) and code.min() < 0:
        raise InputError(f"{column} must not be missing, it is in row {int(code.argmin())}")
    return code.astype(np.int64, copy=False), pd.Index(values)


def _finite(measurements: pd.DataFrame, column: str, above: float = 0.0) -> Floats:
    """Return a column of finite numbers above a bound."""
    values: Floats = measurements[column].to_numpy(dtype=np.float64)
    wrong = ~(np.isfinite(values) & (values > above))
    if wrong.any():
        row = int(wrong.argmax())
        bound = "" if above == -np.inf else f" above {above:g}"
        raise InputError(f"{column} must be a finite number{bound}, got {values[row]} in row {row}")
    return values


def _exposure(measurements: pd.DataFrame) -> str:
    """Return the column by which instances weigh in the performance of their machine."""
    return "exposure" if "exposure" in measurements.columns else "weight"


def _among(code: Ints, kinds: int) -> tuple[Ints, Ints]:
    """Return each row's place among the codes that occur, and these codes in order."""
    occurs = np.bincount(code, minlength=kinds) > 0
    return (np.cumsum(occurs) - 1)[code], np.flatnonzero(occurs)


def _by_job(code: Ints, jobs: int, weight: Floats, value: Floats, ddof: int) -> tuple[Floats, Floats, Floats, Ints]:
    """Return weight, mean, spread and number of every job's instances."""
    instances = np.bincount(code, minlength=jobs).astype(np.int64)
    mean = np.bincount(code, value, jobs) / instances
    squares: Floats = np.bincount(code, (value - mean[code]) ** 2, jobs).astype(np.float64)
    return np.bincount(code, weight, jobs).astype(np.float64), mean, _std(squares, instances, ddof), instances


def _weighted_mean(code: Ints, kinds: int, weight: Floats, value: Floats) -> Floats:
    mean: Floats = np.bincount(code, weight * value, kinds) / np.bincount(code, weight, kinds)
    return mean


def _std(squares: Floats, instances: Ints, ddof: int) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(instances > ddof, np.sqrt(squares / (instances - ddof)), np.nan)
