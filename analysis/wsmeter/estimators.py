"""Estimators of a fleet-wide performance change from a small sample: the machine baseline and WSMeter.

All are frozen dataclasses of parameters with the same two methods: `plan` says how much to observe, `estimate` what
the observations say.
"""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import pandas as pd

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.plan import plan as allocate
from analysis.wsmeter.plan import plannable
from analysis.wsmeter.summaries import Covered, Current, Table, quota_shares
from models.arrays import Floats
from models.errors import ArgumentError, InputError

CurrentIs = Literal["population", "sample"]
WIDENING = 1.2
"""Factor on the margin of the widened estimator, the paper's remedy for what the margin leaves out (section 6.3)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A relative change of the fleet's performance, with its interval; shares of the current metric."""

    estimator: str
    machines: int
    """Machines in the new table."""
    change: float
    low: float
    high: float
    margin: float
    """Half-width of the interval."""
    quota_coverage: float
    """Share of the fleet's CPU quota that the covered jobs hold; NaN without a jobs table."""
    current: float
    """Metric of the current fleet over the covered jobs, in units of value."""
    new: float
    """The same of the new sample."""
    jobs: int
    """Jobs covered."""


class ClusterEstimator(Protocol):
    """What every estimator offers."""

    @property
    def name(self) -> str:
        """Its name in tables and on the command line."""

    def plan(self, current: Table, jobs: pd.DataFrame | None, margin: float) -> pd.DataFrame:
        """Return how much to observe for a relative margin."""

    def estimate(self, current: Table, new: Table, jobs: pd.DataFrame | None = None) -> Estimate:
        """Return the change that the new sample shows."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The mean over machines, each machine one observation (Lee et al. 2018, WSMeter, section 4.2).

    No `analysis.effects.classic.Ratio`: that one divides sums over machines, so that a machine counts by what it holds.
    """

    t: float = 2.0
    """Half-width in standard errors."""
    current_is: CurrentIs = "population"
    """Whether the current table is the whole fleet, known exactly, or a sample, whose variance is added."""

    def __post_init__(self) -> None:
        _check_positive("t", self.t)

    @property
    def name(self) -> str:
        """Its name in tables and on the command line."""
        return "baseline"

    def plan(self, current: Table, jobs: pd.DataFrame | None, margin: float) -> pd.DataFrame:
        """Return how many machines make ``t σ / √n`` the relative margin asked for.

        Parameters
        ----------
        current : measurement table of the current fleet, or its summary
        jobs : not used
        margin : relative to the mean, above 0

        Returns
        -------
        DataFrame
            One row: machines (2 at least), continuous.

        Examples
        --------
        >>> table = pd.DataFrame({"job": "a", "machine": [1, 2], "weight": 1.0, "value": [0.85, 1.15]})
        >>> Baseline().plan(table, None, margin=0.03)
           machines  continuous
        0       100       100.0
        """
        _check_positive("margin", margin)
        value = Current.of(current).machine_value
        continuous = (self.t * float(value.std()) / (margin * _positive(float(value.mean())))) ** 2
        machines = max(2, math.ceil(round(continuous, 9)))
        return pd.DataFrame({"machines": [machines], "continuous": [continuous]})

    def estimate(self, current: Table, new: Table, jobs: pd.DataFrame | None = None) -> Estimate:
        """Return the change of the mean machine.

        Parameters
        ----------
        current : measurement table of the current fleet, or its summary
        new : measurement table of the test cluster, or its summary
        jobs : columns job, quota; only for the quota that the jobs seen in `new` hold

        Raises
        ------
        NotEnoughDataError
            If `new` (or a sampled `current`) has fewer than 2 machines, or `current` none.
        ValueError
            If the current metric is 0, or the change or its margin is no finite number.

        Examples
        --------
        >>> new = pd.DataFrame({"job": "a", "machine": [1, 2], "weight": 1.0, "value": [1.0, 1.2]})
        >>> round(Baseline().estimate(new.assign(value=1.0), new).change, 3)
        0.1
        """
        current, new = Current.of(current), Current.of(new)
        sampled = self.current_is == "sample"
        for summary, needed in ((new, 2), (current, 2 if sampled else 1)):
            if len(summary.machine_value) < needed:
                raise NotEnoughDataError(needed, len(summary.machine_value), "machines")
        before, after = _mean_of(current.machine_value), _mean_of(new.machine_value)
        coverage = math.nan if jobs is None else float(np.nansum(quota_shares(jobs, new.job)))
        return _relative(
            before,
            after,
            estimator=self.name,
            half_width_se=self.t,
            sampled=sampled,
            machines=len(new.machine_value),
            quota_coverage=coverage,
            jobs=len(new.job),
        )


@dataclass(frozen=True, slots=True)
class WSMeter:
    """The quota-weighted mean of the jobs that the sample covers (Lee et al. 2018, WSMeter, section 4.3).

    Covariance between jobs is left out, as in the paper; `WIDENING` is its remedy. Experiments have it as `published`
    and `concurrent` (`analysis.effects.classic.Published`).
    """

    t: float = 2.0
    """Half-width in standard errors."""
    min_instances: int = 4
    """A job is covered from this many instances in the sample on (section 5.2.1)."""
    widening: float = 1.0
    """Factor on the margin."""
    current_is: CurrentIs = "population"
    """Whether the current table is the whole fleet, known exactly, or a sample, whose variance is added."""

    def __post_init__(self) -> None:
        _check_positive("t", self.t)
        _check_positive("widening", self.widening)
        if self.min_instances < 2:
            problem = "should be at least 2: a spread needs two instances"
            raise ArgumentError("min_instances", problem, str(self.min_instances))

    @property
    def name(self) -> str:
        """Its name in tables and on the command line."""
        return "wsmeter" if self.widening == 1 else "wsmeter-widened"

    def plan(self, current: Table, jobs: pd.DataFrame | None, margin: float) -> pd.DataFrame:
        """Return how many instances of each job to observe, at the least cost (section 4.3).

        Observing an instance costs its CPU quota. Jobs with fewer than `min_instances` instances are left out, and
        the weights of the others sum to 1.

        Parameters
        ----------
        current : measurement table of the current fleet, or its summary
        jobs : columns job, quota, instances; without it the current table's own sums and counts
        margin : relative to the metric over those jobs, above 0

        Returns
        -------
        DataFrame
            job, instances, continuous.

        Raises
        ------
        NotEnoughDataError
            If no job has `min_instances` instances.
        """
        table = plannable(current, jobs, self.min_instances)
        allocation: pd.DataFrame = allocate(table, margin / self.widening, self.t, self.min_instances).allocation
        return allocation

    def estimate(self, current: Table, new: Table, jobs: pd.DataFrame | None = None) -> Estimate:
        """Return the change of the weighted mean over the covered jobs.

        Parameters
        ----------
        current : measurement table of the current fleet, or its summary
        new : measurement table of the test cluster, or its summary
        jobs : columns job, quota; without it a job weighs as the sum of its weights in `current`

        Raises
        ------
        NotEnoughDataError
            If no job is covered.
        ValueError
            If the current metric is 0, or the change or its margin is no finite number.

        Examples
        --------
        >>> new = pd.DataFrame({"job": "a", "machine": [1, 2, 3, 4], "weight": 1.0, "value": [1.0, 1.2, 1.0, 1.2]})
        >>> round(WSMeter().estimate(new.assign(value=1.0), new).change, 3)
        0.1
        """
        current, new = Current.of(current), Current.of(new)
        sampled = self.current_is == "sample"
        common = Covered.of(current, new, self.min_instances, self.min_instances if sampled else 1, jobs)
        return self.over(common)

    def over(self, common: Covered) -> Estimate:
        """Return the change of the weighted mean over jobs that were found to be covered; errors as in `estimate`."""
        return _relative(
            _weighted(common.weight, common.current),
            _weighted(common.weight, common.new),
            estimator=self.name,
            half_width_se=self.t,
            widening=self.widening,
            sampled=self.current_is == "sample",
            machines=len(common.new.machine_value),
            quota_coverage=float(common.quota_share.sum()),
            jobs=len(common.job),
        )


Moments = tuple[float, float]
"""A mean and the variance of that mean."""


def _relative(
    before: Moments,
    after: Moments,
    *,
    estimator: str,
    half_width_se: float,
    widening: float = 1.0,
    sampled: bool,
    machines: int,
    quota_coverage: float,
    jobs: int,
) -> Estimate:
    """Return the change after / before - 1 with its interval; a sampled `before` adds its variance (delta method)."""
    current, new = _positive(before[0]), after[0]
    ratio = new / current
    variance = after[1] + (ratio * ratio * before[1] if sampled else 0.0)
    change, margin = ratio - 1, widening * (half_width_se * math.sqrt(variance) / current)
    if not (math.isfinite(change) and math.isfinite(margin)):
        raise InputError(f"the change from {current:g} to {new:g} is too large to compute")
    return Estimate(
        estimator=estimator,
        machines=machines,
        change=change,
        low=change - margin,
        high=change + margin,
        margin=margin,
        quota_coverage=quota_coverage,
        current=current,
        new=new,
        jobs=jobs,
    )


def _mean_of(value: Floats) -> Moments:
    variance = value.var(ddof=1) / len(value) if len(value) > 1 else math.nan
    return float(value.mean()), float(variance)


def _weighted(weight: Floats, jobs: Current) -> Moments:
    """Return Σ w m and Σ (w s)² / N over the jobs (section 4.3)."""
    return float(weight @ jobs.mean), float(np.sum((weight * jobs.std) ** 2 / jobs.instances))


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} must be a finite number above 0, got {value}")


def _positive(metric: float) -> float:
    """Return the current metric if a change relative to it means anything."""
    if not (math.isfinite(metric) and metric > 0):
        raise InputError(f"the current metric must be above 0 for a relative change, got {metric}")
    return metric


def paper_estimators(
    t: float = 2.0, min_instances: int = 4, widening: float = WIDENING
) -> tuple[Baseline, WSMeter, WSMeter]:
    """Return the paper's estimators: the baseline, WSMeter, and WSMeter with its margin widened."""
    return Baseline(t), WSMeter(t, min_instances), WSMeter(t, min_instances, widening)


PAPER_ESTIMATORS = tuple(estimator.name for estimator in paper_estimators())
"""Their names."""
