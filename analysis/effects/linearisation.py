"""Metrics that are no positive means, as means near 1, of which every estimator of a relative change says something.

As δ goes to 0, the relative change of 1 + δ (v − a) goes to δ times the absolute change of v, and its error with it:
so an estimator of the one estimates the other, with all that it adjusts for, its clusters and degrees of freedom.

- A **relative** change of numbers that need not be positive is the θ at which the arms no longer differ once what is
  without the feature is taken 1 + θ times. Its interval holds all θ that a test does not refute (Fieller 1954).
- A **ratio** of sums is the mean of ratios by their denominators; its residuals are those of the delta method (Deng,
  Knoblich and Lu 2018, section 2).
- A **quantile** q with F(q) = p is the mean of q + (F(q) − [v ≤ q]) / f(q), its recentred influence (Firpo, Fortin and
  Lemieux 2009). No density is estimated: 1 / f is the distance of the quantiles at the ends of an interval of p whose
  error counts machines (Woodruff 1952; Deng, Knoblich and Lu 2018, section 4).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import pandas as pd

from analysis.effects.estimand import Estimand
from analysis.effects.observations import Observations, exposure
from analysis.effects.score_intervals import Proportions
from analysis.effects.stays import ObservedRows, fleet_of
from analysis.effects.study import Effect, EffectMethod, Study
from analysis.statistics import ROUNDING, NotEnoughDataError, student_quantile
from models.arrays import Bools, Floats, Ints
from models.errors import ArgumentError

_DELTA = 1e-4
"""What a standard deviation of the values becomes: small, so that terms of its square do not count."""
_STEP = 0.1
"""Of 1 + θ, between the changes that are tried."""
_LEAST_SHOWN = 0.4
"""Of the error that a quantile's share of values must have, its jobs have to show so much; where they showed less, 95%
intervals were right in half of 181 simulated experiments, and in 98% of 1,257 where they showed more."""
_LEAST_MACHINES = 2


@dataclass(frozen=True, eq=False)
class Linearised:
    """N rows of an experiment, of which the mean of `value` is the metric, in either arm and before."""

    rows: pd.DataFrame
    jobs: pd.DataFrame | None
    estimand: Estimand
    value: Floats
    """(N,)"""
    weights: Floats
    """(N,) what each row counts for in its arm's mean, or that of the past, over the jobs that both arms have."""
    study: Bools
    treated: Bools
    """(N,)"""

    @classmethod
    def of(cls, rows: pd.DataFrame, jobs: pd.DataFrame | None, estimand: Estimand) -> Self:
        """Return the rows of an experiment as their metric needs them.

        Parameters
        ----------
        rows : usable observations
        jobs : job, quota of the whole fleet; without it a job weighs as its rows do
        estimand : what is estimated

        Raises
        ------
        NotEnoughDataError
            If an arm has no row, no job is in both, or a quantile lies too near the end of an arm's values or between
            the levels of its jobs.
        """
        value, treated = rows["value"].to_numpy(dtype=np.float64), rows["treated"].to_numpy() == 1
        if estimand.metric_kind == "ratio":
            below = rows["exposure"].to_numpy(dtype=np.float64)
            value = np.divide(value, below, out=np.zeros(len(rows)), where=below > 0)
        for arm, what in ((treated, "with the feature"), (~treated, "without the feature")):
            if not arm.any():
                raise NotEnoughDataError(1, 0, f"observations {what}")
        study = (rows["period"] >= rows.loc[treated, "period"].min()).to_numpy()
        typed = rows.assign(value=value, treated=treated)
        weights = _weights(typed, study, jobs, estimand)
        whole = cls(typed, jobs, estimand, value, weights, study, treated)
        return replace(whole, value=whole.influences()) if estimand.metric_kind == "quantile" else whole

    @cached_property
    def arms(self) -> tuple[Bools, Bools, Bools]:
        """(N,) each: which rows are of the study without the feature, of that with it, and of the past."""
        return self.study & ~self.treated, self.study & self.treated, ~self.study

    def mean(self, among: Bools) -> float:
        """Return the weighted mean over some rows; 0 if there are none."""
        return float((self.weights[among] * self.value[among]).sum() / max(float(self.weights[among].sum()), 1e-300))

    def influences(self) -> Floats:
        """Return (N,) the recentred influence of each row's value on the quantile of its arm, or of the past."""
        out: Floats = np.zeros(len(self.value))
        machine, job = (pd.factorize(self.rows[column])[0] for column in ("machine", "job"))
        off, on, past = self.arms
        distances = dict[int, float]()
        for number, among in enumerate((off, on, past)):
            if not among.any():
                continue
            ranks = Ranks.of(self.value[among], self.weights[among], machine[among])
            distances[number] = distances[0] if among is past else ranks.over_density(self.estimand.quantile)
            if among is not past:
                ranks.check_jobs(self.estimand.quantile, job[among])
            out[among] = ranks.influences(self.estimand.quantile, distances[number])
        return out

    def estimate(self, method: EffectMethod, confidence: float = 0.95) -> Effect:
        """Return what a method says of the metric.

        Raises
        ------
        ArgumentError
            If the change is relative to a level that may be 0.
        """
        if self.estimand.change == "absolute":
            return self._difference(method, confidence, 0.0)
        effect = self.relative(method).effect(confidence)
        if not np.isfinite([effect.low, effect.high]).all():
            raise self._not_told()
        return effect

    def relative(self, method: EffectMethod) -> "RelativeChange":
        """Return what a method says of relative changes: how far from each the arms are.

        Raises
        ------
        ArgumentError
            If the level that they are relative to is not above 0.
        """
        off, on, _ = self.arms
        level = self.mean(off)
        if not level > 0:
            raise self._no_level(f"above 0 without the feature, got {level:.4g}")
        near = self.mean(on) / level - 1.0
        step = _STEP * max(abs(1.0 + near), _STEP)
        below, at, above = (self._difference(method, 0.95, near + move) for move in (-step, 0.0, step))
        slope = (below.change - above.change) / (2.0 * step)
        squares = [effect.error**2 for effect in (below, at, above)]
        curve = (squares[0] + squares[2] - 2.0 * squares[1]) / (2.0 * step**2)
        if not slope > 0:
            raise self._not_told()
        return RelativeChange(at, near, slope, Quadratic(curve, (squares[2] - squares[0]) / (2.0 * step), squares[1]))

    def _not_told(self) -> ArgumentError:
        level = self.mean(self.arms[0])
        return self._no_level(f"surely above 0 without the feature, got {level:.4g}, which is not told from 0")

    def _no_level(self, problem: str) -> ArgumentError:
        return ArgumentError("change", f"relative needs a {self.estimand.name} {problem}; give change absolute")

    def _difference(self, method: EffectMethod, confidence: float, change: float) -> Effect:
        """Return by how much the arms differ once what is without the feature is taken 1 + `change` times."""
        study, unit = self._near_one(change, staged="staged" in method.designs)
        effect = method.estimate(study, confidence)
        if effect.error <= ROUNDING:
            zero = effect.change * unit if abs(effect.change) > ROUNDING else 0.0
            return replace(effect, change=zero, low=zero, high=zero, margin=0.0, error=0.0)
        numbers = {name: getattr(effect, name) * unit for name in ("change", "low", "high", "margin", "error")}
        return replace(effect, **numbers)

    def near_one(self, change: float = 0.0) -> tuple[pd.DataFrame, float]:
        """Return rows with values near 1, once those without the feature are taken 1 + `change` times, and a unit.

        Returns
        -------
        tuple of DataFrame and float
            The relative changes of the rows, times the unit, are the metric's absolute ones.
        """
        off, _, past = self.arms
        value = np.where(off, 1.0 + change, 1.0) * self.value
        value = value - np.where(past, self.mean(past), (1.0 + change) * self.mean(off))
        spread = float(np.sqrt((value**2).mean()))
        unit = (spread if spread > 0 else 1.0) / _DELTA
        return self.rows.assign(value=1.0 + value / unit), unit

    def study_near_one(self) -> tuple[Study, float]:
        """Return the study whose relative changes, times the number, are the metric's absolute ones."""
        return self._near_one(0.0, staged=False)

    @property
    def proportions(self) -> Proportions | None:
        """How values of `study_near_one` are proportions; None if they are none."""
        if self.estimand.metric_kind != "proportion":
            return None
        return Proportions(self.mean(self.arms[0]), self.study_near_one()[1])

    def _near_one(self, change: float, *, staged: bool) -> tuple[Study, float]:
        """Return the study of values near 1, and what 1 is of the metric; the same for all estimators."""
        key = change, staged
        if key not in self._studies:
            rows, unit = self.near_one(change)
            study = Study.of(rows, self.jobs, staged=staged, target=self.estimand.target)
            self._studies[key] = study, unit
        return self._studies[key]

    @cached_property
    def _studies(self) -> dict[tuple[float, bool], tuple[Study, float]]:
        return {}


def past_near_one(rows: pd.DataFrame, jobs: pd.DataFrame | None, estimand: Estimand) -> tuple[pd.DataFrame, float]:
    """Return rows without any feature with values near 1, and a unit: relative changes times the unit are the metric's.

    A change relative to a level is in parts of that of the rows.

    Parameters
    ----------
    rows : usable observations
    jobs : job, quota of the whole fleet; or none
    estimand : what is estimated

    Raises
    ------
    ArgumentError
        If a change is to be relative to a level that is not above 0.
    NotEnoughDataError
        If a quantile lies too near the end of the values.

    Examples
    --------
    >>> row = {"period": 0, "job": "a", "machine": [1, 2], "weight": 1.0, "value": [-1.0, 3.0], "treated": False}
    >>> near, unit = past_near_one(pd.DataFrame(row), None, Estimand.of("mean"))
    >>> near["value"].round(4).tolist(), round(unit)
    ([0.9999, 1.0001], 20000)
    """
    rows = rows.assign(treated=False)
    if estimand.metric_kind == "ratio":
        below = rows["exposure"].to_numpy(dtype=np.float64)
        above = rows["value"].to_numpy(dtype=np.float64)
        rows = rows.assign(value=np.divide(above, below, out=np.zeros(len(rows)), where=below > 0))
    if estimand.metric_kind == "quantile":
        rows = rows.assign(value=_influences_of_a_past(rows, jobs, estimand))
    value = rows["value"].to_numpy(dtype=np.float64)
    fleet = _fleet(rows, np.ones(len(rows), dtype=np.bool_), jobs, estimand)
    by = exposure(rows)
    level = float((fleet["quota"] * fleet["scale"]).sum() / fleet["quota"].sum())
    level = float((by * value).sum() / by.sum()) if estimand.target == "sums" else level
    spread = float(np.sqrt(((value - level) ** 2).mean()))
    unit = (spread if spread > 0 else 1.0) / _DELTA
    near = rows.assign(value=1.0 + (value - level) / unit)
    if estimand.change == "absolute":
        return near, unit
    if not level > 0:
        problem = f"relative needs a {estimand.name} above 0, got {level:.4g}; give change absolute"
        raise ArgumentError("change", problem)
    return near, unit / level


def _fleet(rows: pd.DataFrame, study: Bools, jobs: pd.DataFrame | None, estimand: Estimand) -> pd.DataFrame:
    """Return job, quota and scale of the fleet, of rows of the study and of the past."""
    (coded,) = ObservedRows.of(Observations.of(rows))
    return fleet_of(coded[~study], coded[study], jobs, estimand.target)


def _influences_of_a_past(rows: pd.DataFrame, jobs: pd.DataFrame | None, estimand: Estimand) -> Floats:
    """Return (N,) the recentred influence of each row's value on the quantile of all."""
    quota = _fleet(rows, np.ones(len(rows), dtype=np.bool_), jobs, estimand).set_index("job")["quota"]
    job, jobs_seen = pd.factorize(rows["job"])
    counts, share = _counts(rows, estimand), quota.reindex(jobs_seen).fillna(0.0).to_numpy()
    weights = share[job] * counts / np.maximum(np.bincount(job, counts), 1e-300)[job]
    ranks = Ranks.of(rows["value"].to_numpy(dtype=np.float64), weights, pd.factorize(rows["machine"])[0])
    distance = ranks.over_density(estimand.quantile)
    ranks.check_jobs(estimand.quantile, job)
    return ranks.influences(estimand.quantile, distance)


class Quadratic(NamedTuple):
    """square x² + slope x + constant."""

    square: float
    slope: float
    constant: float

    def at(self, x: float) -> float:
        """Return its value, 0 at least."""
        return max(self.square * x**2 + self.slope * x + self.constant, 0.0)


@dataclass(frozen=True, slots=True)
class RelativeChange:
    """A relative change, by how far the arms are apart for every θ that it might be (Fieller 1954)."""

    at: Effect
    """The difference of the arms, and its error, at the θ that it is near."""
    near: float
    slope: float
    """By how much the difference falls with θ."""
    error: Quadratic
    """The square of the difference's error, by θ less what it is near."""

    @property
    def distance(self) -> float:
        """Standard errors between the arms if the feature did nothing."""
        error = self.error.at(-self.near) ** 0.5
        return abs(self.at.change + self.slope * self.near) / error if error > 0 else 0.0

    def ends(self, width: float) -> tuple[float, float]:
        """Return the ends of all θ that so many standard errors do not refute; infinite if they have no end."""
        low, high = _fieller(self.at.change, self.slope, self.error, width)
        return (self.near + low, self.near + high) if np.isfinite([low, high]).all() else (-np.inf, np.inf)

    def effect(self, confidence: float) -> Effect:
        """Return it with Student's interval."""
        low, high = self.ends(float(student_quantile(0.5 + confidence / 2, self.at.freedom)))
        moved = self.at.change / self.slope
        error = self.error.at(moved) ** 0.5 / self.slope
        return replace(self.at, change=self.near + moved, low=low, high=high, margin=(high - low) / 2, error=error)


def _fieller(difference: float, slope: float, error: Quadratic, width: float) -> tuple[float, float]:
    """Return the ends of all x with (difference − slope x)² ≤ width² error(x); NaN if they have no end."""
    square = slope**2 - width**2 * error.square
    half = difference * slope + width**2 * error.slope / 2.0
    root = half**2 - square * (difference**2 - width**2 * error.constant)
    if not (square > 0 and root >= 0):
        return np.nan, np.nan
    return (half - root**0.5) / square, (half + root**0.5) / square


def _weights(rows: pd.DataFrame, study: Bools, jobs: pd.DataFrame | None, estimand: Estimand) -> Floats:
    """Return (N,) what rows count for: their job's share of the quota, split by what the target counts within jobs."""
    fleet = _fleet(rows, study, jobs, estimand).set_index("job")["quota"]
    era = np.where(study, rows["treated"].to_numpy().astype(np.int64), 2)
    job, jobs_seen = pd.factorize(rows["job"])
    counts = _counts(rows, estimand)
    cell = era * len(jobs_seen) + job
    totals = np.bincount(cell, counts, 3 * len(jobs_seen))
    both = (totals.reshape(3, -1)[:2] > 0).all(axis=0)
    if not both.any():
        raise NotEnoughDataError(1, 0, "jobs that have rows with and without the feature")
    share = fleet.reindex(jobs_seen).fillna(0.0).to_numpy() * both
    return np.asarray(share[job] * counts / np.maximum(totals[cell], 1e-300), dtype=np.float64)


def _counts(rows: pd.DataFrame, estimand: Estimand) -> Floats:
    """Return (N,) what each row counts for in its job."""
    if estimand.target == "sums":
        return exposure(rows)
    counts = rows["present_s"].to_numpy(dtype=np.float64) if "present_s" in rows else np.ones(len(rows))
    return counts * rows["weight"].to_numpy(dtype=np.float64) if estimand.target == "quota" else counts


class Below(NamedTuple):
    """Which values are at most a quantile, and the weighted share of them."""

    flags: Bools
    mean: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Values of one arm in their order, with the weights' running sum."""

    value: Floats
    weights: Floats
    """(n,) with sum 1."""
    machine: Ints
    order: Ints
    running: Floats
    """(n,) weighted share of the values up to each, in their order."""

    @classmethod
    def of(cls, value: Floats, weights: Floats, machine: Ints) -> Self:
        """Rank the values of an arm."""
        shares = weights / weights.sum()
        order = np.argsort(value, kind="stable")
        return cls(value, shares, machine, order, np.cumsum(shares[order]))

    def quantile(self, p: float) -> float:
        """Return the least value with at least p of the weight up to it."""
        at = min(int(np.searchsorted(self.running, p - 1e-12)), len(self.value) - 1)
        return float(self.value[self.order[at]])

    def at(self, p: float) -> tuple[float, Below]:
        """Return the quantile, and which values are at most it."""
        quantile = self.quantile(p)
        flags = self.value <= quantile
        return quantile, Below(flags, float(self.weights[flags].sum()))

    def influences(self, p: float, over_density: float) -> Floats:
        """Return (n,) the recentred influence of each value on the quantile."""
        quantile, below = self.at(p)
        return np.asarray(quantile + (below.mean - below.flags) * over_density, dtype=np.float64)

    def error(self, p: float) -> float:
        """Return the standard error of the share of values up to the quantile; machines are the clusters."""
        below = self.at(p)[1]
        machines = len(np.unique(self.machine))
        totals = np.bincount(self.machine, self.weights * (below.flags - below.mean))
        return float(np.sqrt((totals**2).sum() * machines / max(machines - 1, 1)))

    def check_jobs(self, p: float, job: Ints) -> None:
        """Refuse a quantile that lies between the levels of jobs, or of the instances that every machine has.

        There no machine is seen with another share of values up to it than others have: nothing varies, although the
        quantile lies anywhere between the levels.

        Parameters
        ----------
        p : of the quantile
        job : (n,) of each value

        Raises
        ------
        NotEnoughDataError
            If jobs show hardly anything of the variance that is to be expected, or machines nothing, and values within
            an interval of p with this variance differ.
        """
        below, machines = self.at(p)[1], len(np.unique(self.machine))
        pairs = np.unique(np.stack([job, self.machine]), axis=1)[0]
        holding, weight = np.bincount(pairs), np.bincount(job, self.weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.bincount(job, self.weights * below.flags) / weight
            expected = (holding * share + p) / (holding + 1)  # as if one more machine was seen, like all together
            shown = np.nansum(weight**2 * share * (1.0 - share) / np.maximum(holding - 1, 1))
            likely = np.nansum(weight**2 * expected * (1.0 - expected) / (holding + 1))
        half = float(student_quantile(0.975, max(machines - 1, 1))) * likely**0.5
        if machines < _LEAST_MACHINES or self.quantile(p - half) == self.quantile(p + half):
            return
        name = f"p{100 * p:g}"
        if shown < _LEAST_SHOWN**2 * likely:
            remedy = f"{name} lies between the jobs' levels: take another quantile, or fewer jobs"
            raise NotEnoughDataError(1, 0, f"job whose machines lie on both sides of {name}", remedy)
        if self.error(p) <= ROUNDING:
            remedy = f"all have one share of values up to it, as {name} lies between two levels: take another quantile"
            raise NotEnoughDataError(2, 1, f"shares of values up to {name} on machines", remedy)

    def over_density(self, p: float) -> float:
        """Return 1 / f at the quantile: the distance of the quantiles at the ends of an interval of p, over its width.

        Raises
        ------
        NotEnoughDataError
            If the interval of p reaches beyond the values.
        """
        machines = len(np.unique(self.machine))
        width = float(student_quantile(0.975, max(machines - 1, 1)))
        half = width * self.error(p)
        if half >= min(p - self.running[0], 1.0 - self.weights[self.order[-1]] - p):
            least = max(half, width * (p * (1.0 - p) / len(self.value)) ** 0.5)
            needed = max(int(np.ceil(machines * (least / min(p, 1.0 - p)) ** 2)), machines + 1)
            raise NotEnoughDataError(needed, machines, "machines in each arm", purpose=f"p{100 * p:g}")
        if not half > 0:
            return 0.0
        return (self.quantile(p + half) - self.quantile(p - half)) / (2.0 * half)
