"""What a machine of one platform is worth in machines of another, from jobs that run on both.

Schedulers put jobs on platforms for reasons, so means over platforms compare different jobs. Here each job is compared
with itself. The mean of job j on platform p, at conditions x of a machine, is exp(a_jp + s_jt + x'b_p): a level of the
job on the platform, what all of its instances did in common in period t, and slopes of conditions. Levels are fitted as
a Poisson regression fits them (Santos Silva and Tenreyro 2006), so that they are logarithms of arithmetic means
whatever the distribution; clusters are machines, with leverage corrected (Bell and McCaffrey 2002).

A job's rate is exp(a_jX − a_jY) at the job's own mean conditions. Jobs of which little was measured are drawn towards
what is expected of them, and jobs that never ran on both platforms are filled in by it (Fay and Herriot 1979): log
rates are x'g + u, where x holds 1 and perhaps what a model predicts, and u has variance τ² (Paule and Mandel 1982).
The rate of the fleet is Σ q_j r_j / Σ q_j with q_j the job's CPU quota: a ratio of sums of work, in units of Y's work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import digamma, polygamma, stdtr

from analysis.statistics import (
    NotEnoughDataError,
    chi2_quantile,
    normal_cdf,
    normal_density,
    normal_quantile,
    student_quantile,
)
from models.arrays import Bools, Floats, Ints

MEASURED, POOLED, FILLED = "measured", "pooled", "not seen"
"""Where a job's rate is from: mostly its own machines, mostly what is expected of it, or that alone."""
_SWEEPS, _CLOSE, _TURNS = 200, 1e-9, 5
_LEAST_SLOPED: Final = 30
"""Machines of a job from which on its own slopes are estimated."""
_OWN_SLOPES: Final = 50
"""Machines of every platform from which on each platform has slopes of its own."""
_MOST_PRIOR: Final = 100.0
"""Degrees of freedom that the spread of all jobs counts for, at most."""
_LEAST_JOBS: Final = 12
"""Jobs seen on both platforms from which on the slope of what a model predicts is fitted; with fewer it is 1."""
_LEAST_LEFT: Final = 0.5
"""Of the squared error that products over clusters give, what is left at least when cells' own are steadied."""
_LONE: Final = 1e-6
"""Share of a cell that others than one cluster have, below which it is the only one."""
_SMALLEST: Final = 1e-18
"""Squared error of a log rate, at least: rounding leaves no less, where all values are alike."""
_WIDEST: Final = 4.0
"""Variance of log rates between jobs, at most."""
_VARIANCES: Final = 64
"""Variances between jobs that stand for a confidence distribution of it."""
_HALVINGS: Final = 20
_STEPS: Final = 100
"""Of Newton's method, at most."""
_LEAST_SHARE: Final = 1e-3
"""Of a squared error, what is measured at least where degrees of freedom are counted."""


@dataclass(frozen=True, eq=False)
class PlatformRows:
    """N observations of J jobs on P platforms in T periods, as codes."""

    value: Floats
    """(N,) performance as it was measured."""
    weight: Floats
    """(N,) CPU quota by presence."""
    job: Ints
    platform: Ints
    period: Ints
    cluster: Ints
    """(N,) each: numbers of the row's job, platform, period, and of what counts as independent."""
    conditions: Floats
    """(N, K) conditions of the machine, less the fleet's mean."""
    jobs: pd.Index
    platforms: pd.Index
    quota: Floats
    """(J,) of the whole fleet."""

    @classmethod
    def of(
        cls, rows: pd.DataFrame, jobs: pd.DataFrame | None = None, conditions: pd.DataFrame | None = None,
        cluster: str = "machine",
    ) -> "PlatformRows":  # fmt: skip
        """Code the rows of a fleet.

        Parameters
        ----------
        rows : period, job, machine, platform, weight, value, and perhaps present_s
        jobs : job, quota of the whole fleet; without it a job weighs as its rows do
        conditions : of the machine of each row, any number of columns
        cluster : column of what counts as independent
        """
        (job, names), (platform, platforms), (period, periods), (number, _) = (
            pd.factorize(rows[name], sort=True) for name in ("job", "platform", "period", cluster)
        )
        present = rows["present_s"].to_numpy(np.float64) if "present_s" in rows else np.ones(len(rows))
        weight = rows["weight"].to_numpy(np.float64) * present / present.mean()
        quota = np.bincount(job, weight) / len(periods)
        if jobs is not None:
            quota = jobs.set_index("job")["quota"].reindex(names).fillna(0.0).to_numpy(np.float64)
        x = np.zeros((len(rows), 0)) if conditions is None else conditions.to_numpy(np.float64)
        if x.size:
            x = x - np.average(x, axis=0, weights=weight)
        value = rows["value"].to_numpy(np.float64)
        codes = (job.astype(np.int64), platform.astype(np.int64), period.astype(np.int64), number.astype(np.int64))
        return cls(value, weight, *codes, x, pd.Index(names), pd.Index(platforms), quota)

    @property
    def cell(self) -> Ints:
        """(N,) number of the row's job and platform."""
        return self.job * len(self.platforms) + self.platform

    @property
    def stratum(self) -> Ints:
        """(N,) number of the row's job and period."""
        return self.job * self.periods + self.period

    @property
    def periods(self) -> int:
        """T."""
        return int(self.period.max()) + 1

    @property
    def clusters(self) -> int:
        """How many there are."""
        return int(self.cluster.max()) + 1

    @cached_property
    def machines(self) -> Ints:
        """(P,) clusters of each platform."""
        pairs = np.unique(self.platform * self.clusters + self.cluster)
        return np.bincount(pairs // self.clusters, minlength=len(self.platforms))

    def relative(self) -> Floats:
        """Return (N,) performance relative to the mean of the job."""
        return np.asarray(self.value / _sums(self.job, self.weight, self.value, len(self.jobs))[self.job])

    def plain_mean(self) -> Floats:
        """Return (P,) means over the rows of each platform, whatever their job."""
        return _sums(self.platform, self.weight, self.value, len(self.platforms))


def _sums(of: Ints, weight: Floats, value: Floats, count: int) -> Floats:
    """Return weighted means by group; 0 where there is no weight."""
    total = np.bincount(of, weight, count)
    return np.asarray(np.bincount(of, weight * value, count) / np.where(total > 0, total, 1.0))


def _total(of: Ints, value: Floats, count: int) -> Floats:
    """Return sums by group, numbers even where there is no row."""
    return np.asarray(np.bincount(of, value, count), dtype=np.float64)


def _columns(of: Ints, by: Floats, columns: Floats, count: int) -> Floats:
    """Return (count, K) sums of columns (N, K) times `by` (N,) by group."""
    sums = [np.bincount(of, by * column, count) for column in columns.T]
    return np.stack(sums, axis=-1, dtype=np.float64) if sums else np.zeros((count, 0))


@dataclass(frozen=True, slots=True, eq=False)
class ClusterErrors:
    """A pairs of a cell (job on a platform) and a cluster that has rows of it: what it adds to the level's error."""

    cell: Ints
    cluster: Ints
    error: Floats
    """(A,) by the jackknife, so that products of a cluster's errors in two cells are right whatever they share."""
    variance: Floats
    """(cells,) squared errors of levels, but for those of slopes."""
    freedom: Floats
    """(cells,) degrees of freedom of these."""
    beyond: Floats
    """(cells,) `variance` less the squares of its errors."""
    clusters: Ints
    """(cells,)"""
    share: Floats
    """(A,) of the cell's weight that the cluster holds."""
    common: float
    """Variance that cells of one cluster share, from cells of several clusters."""

    @classmethod
    def of(cls, rows: PlatformRows, fitted: Floats, residual: Floats) -> "ClusterErrors":
        """Return them, given fitted and residual sums of rows.

        The variance of a level is s² / n, with n the effective number of clusters (Kish 1965) and s² their spread; s²
        is drawn towards that of all cells by as many degrees of freedom as their spread of s² allows (Smyth 2004).
        """
        count = len(rows.jobs) * len(rows.platforms)
        meeting, place = np.unique(rows.cell * rows.clusters + rows.cluster, return_inverse=True)
        cell, cluster = meeting // rows.clusters, meeting % rows.clusters
        fitted, residual = _beside_periods(rows, fitted, residual)
        total = np.bincount(rows.cell, fitted, count)[cell]
        share = np.divide(np.bincount(place, fitted), total, out=np.zeros(len(cell)), where=total > 0)
        error = np.divide(np.bincount(place, residual), total, out=np.zeros(len(cell)), where=total > 0)
        left = np.maximum(1.0 - share, _LONE)
        squares = np.bincount(cell, share**2, count)
        effective = np.where(squares > 0, 1.0 / np.where(squares > 0, squares, 1.0), 0.0)
        own_freedom = np.maximum(effective - 1.0, 0.0)
        own_freedom[own_freedom < 1e-6] = 0.0
        own = np.where(own_freedom > 0, np.bincount(cell, error**2 / left, count) * effective, 0.0)
        pooled, prior = _spread(own[own_freedom > 0], own_freedom[own_freedom > 0])
        freedom = own_freedom + prior
        spread = (own_freedom * own + prior * pooled) / freedom
        variance = np.where(effective > 0, spread / np.where(effective > 0, effective, 1.0), np.inf)
        error = np.where(share < 1.0 - _LONE, error / left, 0.0)
        beyond = np.where(effective > 0, variance - np.bincount(cell, error**2, count), 0.0)
        relative = np.divide(error, share, out=np.zeros(len(cell)), where=share > 0)
        several = (share > 0) & (share < 1.0 - _LONE)
        sums, own_squares, numbers = (
            _total(cluster, part * several, rows.clusters) for part in (relative, relative**2, np.ones(len(cell)))
        )
        pairs = float((numbers * (numbers - 1.0)).sum())
        common = max(float((sums**2 - own_squares).sum()) / pairs, 0.0) if pairs > 0 else 0.0
        return cls(cell, cluster, error, variance, freedom, beyond, np.bincount(cell, minlength=count), share, common)

    def left(self, rows: PlatformRows) -> Floats:
        """Return (N,) what is left of a row's residual, as its cluster moves the level that it is measured from.

        The square root of 1 less the cluster's share of the cell (Bell and McCaffrey 2002); 1 where it is the only one.
        """
        place = np.searchsorted(self.cell * rows.clusters + self.cluster, rows.cell * rows.clusters + rows.cluster)
        left = 1.0 - self.share[place]
        return np.asarray(np.sqrt(np.where(left > _LONE, left, 1.0)))


def _beside_periods(rows: PlatformRows, fitted: Floats, residual: Floats) -> tuple[Floats, Floats]:
    """Return (N,) fitted and residual sums of rows as far as they tell platforms apart.

    What a job's instances do in common in a period is fitted, too: a platform's rows there tell of it what the other
    platforms have beside them, nothing where these have none (Frisch, Waugh and Lovell); and a row is near to what its
    own cluster moves, so its residual is as much larger as that leverage says (Bell and McCaffrey 2002).
    """
    if rows.periods == 1:
        return fitted, residual
    stratum, strata = rows.stratum, len(rows.jobs) * rows.periods
    total = np.bincount(stratum, fitted, strata)[stratum]
    shares = []
    for number, count in ((rows.platform, len(rows.platforms)), (rows.cluster, rows.clusters)):
        pairs, place = np.unique(stratum * count + number, return_inverse=True)
        shares.append(np.bincount(place, fitted, len(pairs))[place] / total)
    beside, left = 1.0 - shares[0], 1.0 - shares[1]
    beside[beside < _LONE] = 0.0
    return fitted * beside, np.where(left > _LONE, residual * beside / np.sqrt(np.maximum(left, _LONE)), 0.0)


def _spread(own: Floats, freedom: Floats) -> tuple[float, float]:
    """Return the pooled variance of cells, and the degrees of freedom that it counts for (Smyth 2004, section 6.2)."""
    positive = own > 0
    if not positive.any():
        return 0.0, 1.0
    pooled = float(np.average(own[positive], weights=freedom[positive]))
    half = freedom[positive] / 2
    log, noise = np.log(own[positive]) - digamma(half) + np.log(half), polygamma(1, half)
    excess, weight = 0.0, 1.0 / noise
    for _ in range(_TURNS):
        apart = (log - np.average(log, weights=weight)) ** 2 - noise
        excess = max(float(np.average(apart, weights=weight)), 0.0)
        weight = 1.0 / (noise + excess)
    if excess <= float(polygamma(1, _MOST_PRIOR / 2)):
        return pooled, _MOST_PRIOR
    if excess >= float(polygamma(1, 0.5)):
        return pooled, 1.0
    prior = 2 * brentq(lambda value: float(polygamma(1, value)) - excess, 0.5, _MOST_PRIOR / 2)
    centre = float(np.exp(np.average(log, weights=weight) + digamma(prior / 2) - np.log(prior / 2)))
    return centre, float(prior)


@dataclass(frozen=True, eq=False)
class JobSlopes:
    """By how much conditions change each of J jobs more than all together: random slopes with known prior variance."""

    mean: Floats
    """(J, K)"""
    covariance: Floats
    """(J, K, K)"""
    conditions: Floats
    """(J, P, K) mean conditions of a job on a platform."""

    @classmethod
    def of(cls, rows: PlatformRows, fitted: Floats, residual: Floats) -> "JobSlopes":
        """Return what is believed of slopes, given fitted and residual sums of rows.

        A job with enough machines has slopes of its own, whose sandwich says how well they are known; variances
        between jobs are those at which these are as unlike as they are (Paule and Mandel 1982).
        """
        jobs, platforms, count = len(rows.jobs), len(rows.platforms), rows.conditions.shape[1]
        total = _total(rows.cell, fitted, jobs * platforms)
        mean_z = _columns(rows.cell, fitted, rows.conditions, len(total)) / np.where(total > 0, total, 1.0)[:, None]
        apart = rows.conditions - mean_z[rows.cell]
        meeting, place = np.unique(rows.job * rows.clusters + rows.cluster, return_inverse=True)
        job = meeting // rows.clusters
        parts = _columns(place, residual, apart, len(meeting))
        information, outer = (
            _columns(of, by, (x[:, :, None] * x[:, None, :]).reshape(len(x), -1), jobs).reshape(jobs, count, count)
            for of, by, x in ((rows.job, fitted, apart), (job, np.ones(len(job)), parts))
        )
        scores = _columns(rows.job, residual, apart, jobs)
        inverse = np.linalg.pinv(information, hermitian=True)
        own, square = np.einsum("jkl,jl->jk", inverse, scores), inverse @ outer @ inverse
        enough = np.bincount(job, minlength=jobs) >= _LEAST_SLOPED
        enough &= (np.diagonal(square, axis1=1, axis2=2) > 0).all(axis=1)
        between = np.zeros(count)
        if enough.sum() > 1:
            none, degrees = np.zeros((int(enough.sum()), 0)), np.full(1, float(enough.sum()))
            for k in range(count):
                between[k] = _between(own[enough, k], square[enough, k, k], none, degrees)[0]
        mean, covariance = np.zeros((jobs, count)), np.tile(np.diag(between), (jobs, 1, 1))
        gain = covariance[enough] @ np.linalg.pinv(square[enough] + covariance[enough], hermitian=True)
        mean[enough] = np.einsum("jkl,jl->jk", gain, own[enough])
        covariance[enough] -= gain @ covariance[enough]
        return cls(mean, covariance, mean_z.reshape(jobs, platforms, count))


@dataclass(frozen=True, eq=False)
class PlatformLevels:
    """The fitted levels of J jobs on P platforms, and what each cluster adds to their errors."""

    rows: PlatformRows
    level: Floats
    """(J, P) logarithms of relative means at the fleet's mean conditions; NaN where the job was not seen."""
    slopes: Floats
    """(S, K) of conditions: of each platform, or of all together."""
    inverse: Floats
    """(S K, S K) inverse information of the slopes."""
    scores: Floats
    """(C, S K) what each cluster adds to the scores of the slopes."""
    mean_x: Floats
    """(J, P, S K) mean of the slopes' columns of a job on a platform."""
    meetings: ClusterErrors
    job_slopes: JobSlopes

    @classmethod
    def fit(cls, rows: PlatformRows) -> "PlatformLevels":
        """Fit levels of jobs on platforms, what a job's instances did in common in each period, and slopes."""
        shape, cell = (len(rows.jobs), len(rows.platforms)), rows.cell
        cells, count = shape[0] * shape[1], rows.conditions.shape[1]
        slopes = shape[1] if rows.machines.min() >= _OWN_SLOPES else 1
        columns = np.zeros((len(cell), slopes, count))
        columns[np.arange(len(cell)), rows.platform if slopes > 1 else 0] = rows.conditions
        x = columns.reshape(len(cell), slopes * count)
        level, common, slope = _fitted(rows, x)
        fitted = rows.weight * np.exp(level[cell] + common[rows.stratum] + x @ slope)
        residual = rows.weight * rows.relative() - fitted
        total = np.bincount(cell, fitted, cells)
        mean_x = _columns(cell, fitted, x, cells) / np.where(total > 0, total, 1.0)[:, None]
        apart = x - mean_x[cell]
        errors = ClusterErrors.of(rows, fitted, residual)
        return cls(
            rows,
            np.where(total > 0, level, np.nan).reshape(shape),
            slope.reshape(slopes, count),
            np.asarray(np.linalg.pinv((fitted[:, None] * apart).T @ apart, hermitian=True), dtype=np.float64),
            _columns(rows.cluster, residual / errors.left(rows), apart, rows.clusters),
            mean_x.reshape(*shape, slopes * count),
            errors,
            JobSlopes.of(rows, fitted, residual),
        )

    @cached_property
    def job_x(self) -> Floats:
        """(J, K) mean conditions of each job, on all platforms together."""
        rows, jobs = self.rows, len(self.rows.jobs)
        return _columns(rows.job, rows.weight, rows.conditions, jobs) / np.bincount(rows.job, rows.weight)[:, None]

    def at_own_conditions(self, platform: int) -> Floats:
        """Return (J, S K) the columns of the slopes at each job's mean conditions on a platform."""
        columns = np.zeros((len(self.job_x), *self.slopes.shape))
        columns[:, platform if len(self.slopes) > 1 else 0] = self.job_x
        return columns.reshape(len(self.job_x), -1)

    def contrast(self, platform: int, reference: int) -> "PlatformContrast":
        """Return how jobs do on a platform against another, each at its own mean conditions."""
        jobs, count = self.level.shape
        paired = np.isfinite(self.level[:, platform] + self.level[:, reference]) & self._together(platform, reference)
        log, through = np.zeros(jobs), np.zeros((jobs, self.slopes.size))
        for number, sign in ((platform, 1.0), (reference, -1.0)):
            here = self.at_own_conditions(number)
            log += sign * (self.level[:, number] + here @ self.slopes.ravel())
            through += sign * (here - self.mean_x[:, number])
        through = np.where(paired[:, None], through, 0.0) @ self.inverse
        gap = self.job_slopes.conditions[:, reference] - self.job_slopes.conditions[:, platform]
        log += (self.job_slopes.mean * gap).sum(axis=1)
        of_job = np.einsum("jk,jkl,jl->j", gap, self.job_slopes.covariance, gap)
        meetings = self.meetings
        job, on = np.divmod(meetings.cell, count)
        sign = (on == platform) * 1.0 - (on == reference)
        cells = np.arange(jobs) * count
        both = [(meetings.variance[cells + p], meetings.freedom[cells + p]) for p in (platform, reference)]
        own = sum(variance for variance, _ in both)
        curved = np.subtract(both[0][0], both[1][0], where=paired, out=np.zeros(jobs))
        log += curved / 2  # the logarithm of a mean is too low by half of its variance
        crossed = _columns(job, sign * meetings.error, self.scores[meetings.cluster], jobs)
        outer = self.scores.T @ self.scores
        of_slopes = 2.0 * (through * crossed).sum(axis=1) + np.einsum("jk,kl,jl->j", through, outer, through)
        square = np.where(paired, np.maximum(own + of_slopes, 0.5 * own) + of_job, np.inf)
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = own**2 / sum(variance**2 / freedom for variance, freedom in both)
        beyond = np.stack([meetings.beyond[cells + platform] + of_job, meetings.beyond[cells + reference]])
        return PlatformContrast(
            self, np.where(paired, log, 0.0), square, np.where(paired & np.isfinite(freedom), freedom, 1.0), paired,
            paired[job] * sign, through, np.where(paired, beyond, 0.0),
        )  # fmt: skip

    def _together(self, platform: int, reference: int) -> Bools:
        """Return (J,) which jobs ran on both platforms in one period."""
        rows, count = self.rows, len(self.rows.jobs) * self.rows.periods
        on = [np.bincount(rows.stratum, rows.platform == number, count) > 0 for number in (platform, reference)]
        return np.asarray((on[0] & on[1]).reshape(-1, rows.periods).any(axis=1))


def _fitted(rows: PlatformRows, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Return levels of cells, of strata, and slopes, by Newton steps of the slopes between sweeps over the levels."""
    cell, stratum, weight, value = rows.cell, rows.stratum, rows.weight, rows.relative()
    cells, strata = len(rows.jobs) * len(rows.platforms), len(rows.jobs) * rows.periods
    level, common, slope = np.zeros(cells), np.zeros(strata), np.zeros(x.shape[1])
    of_cell, of_stratum = _total(cell, weight * value, cells), _total(stratum, weight * value, strata)
    for _ in range(_SWEEPS):
        before = np.concatenate([level, common, slope])
        along = np.exp(x @ slope)
        level = _log_ratio(of_cell, _total(cell, weight * np.exp(common)[stratum] * along, cells))
        if rows.periods > 1:
            common = _log_ratio(of_stratum, _total(stratum, weight * np.exp(level)[cell] * along, strata))
        fitted = weight * np.exp(level[cell] + common[stratum]) * along
        if x.shape[1]:
            total = np.bincount(cell, fitted, cells)
            apart = x - (_columns(cell, fitted, x, cells) / np.where(total > 0, total, 1.0)[:, None])[cell]
            information = (fitted[:, None] * apart).T @ apart
            slope = slope + np.linalg.pinv(information, hermitian=True) @ (apart.T @ (weight * value - fitted))
        if np.abs(np.concatenate([level, common, slope]) - before).max() < _CLOSE:
            break
    level = _log_ratio(of_cell, _total(cell, weight * np.exp(common[stratum] + x @ slope), cells))
    return level, common, slope


def _log_ratio(above: Floats, below: Floats) -> Floats:
    """Return log(above / below), 0 where nothing is below."""
    return np.asarray(np.log(np.where(below > 0, above, 1.0) / np.where(below > 0, below, 1.0)))


@dataclass(frozen=True, eq=False)
class PlatformContrast:
    """Log rates of J jobs on a platform against a reference, as far as they were measured."""

    levels: PlatformLevels
    log: Floats
    """(J,) 0 where the job was not seen on both."""
    square: Floats
    """(J,) squared error; infinite where not seen."""
    freedom: Floats
    """(J,) degrees of freedom of it."""
    paired: Bools
    """(J,) whether the job ran on both platforms in a period."""
    sign: Floats
    """(A,) of the levels' meetings: 1 on the platform, −1 on the reference, 0 elsewhere."""
    through: Floats
    """(J, S K) what the slopes' scores add to the log rate."""
    beyond: Floats
    """(2, J) what each side's level adds to the squared error that products over clusters do not."""

    def by_cluster(self, weight: Floats) -> Floats:
        """Return (C,) what each cluster adds to the error of Σ weight × log rate."""
        meetings, levels = self.levels.meetings, self.levels
        job = meetings.cell // len(levels.rows.platforms)
        of_levels = np.bincount(meetings.cluster, weight[job] * self.sign * meetings.error, levels.rows.clusters)
        return np.asarray(of_levels + levels.scores @ (weight @ self.through))

    def shared_with(self, by_cluster: Floats) -> Floats:
        """Return (J,) products of each log rate's error with one of which each cluster adds so much (C,)."""
        meetings, levels = self.levels.meetings, self.levels
        of_meetings = self.sign * meetings.error * by_cluster[meetings.cluster]
        of_job = _total(meetings.cell // len(levels.rows.platforms), of_meetings, len(self.paired))
        return np.asarray(of_job + self.through @ (by_cluster @ levels.scores))

    def products(self, weights: Floats) -> Floats:
        """Return (K, K) the covariance of K sums of log rates by weights (K, J), whatever jobs share of it."""
        by_cluster = np.array([self.by_cluster(weight) for weight in weights])
        apart = (weights * self.beyond.sum(axis=0)) @ weights.T
        alone = np.array([[self.of_lone(a + b) - self.of_lone(a - b) for b in weights] for a in weights]) / 4
        of_clusters = by_cluster @ by_cluster.T
        least = (weights * np.where(self.paired, self.square, 0.0)) @ weights.T * _LEAST_LEFT
        beyond, axes = np.linalg.eigh(of_clusters + apart + alone - least)
        return np.asarray(least + (axes * np.maximum(beyond, 0.0)) @ axes.T)

    def of_lone(self, weight: Floats) -> float:
        """Return what products over clusters miss of cells with one cluster, whose residuals are 0: what these share.

        Parameters
        ----------
        weight : (J,) of the log rates in a sum
        """
        meetings, levels = self.levels.meetings, self.levels
        part = weight[meetings.cell // len(levels.rows.platforms)] * self.sign * meetings.share
        lone = meetings.clusters[meetings.cell] == 1
        alone, squares, others = (
            _total(meetings.cluster, np.where(rows, amount, 0.0), levels.rows.clusters)
            for rows, amount in ((lone, part), (lone, part**2), (~lone, part))
        )
        return float(meetings.common * (alone**2 - squares + 2.0 * alone * others).sum())


@dataclass(frozen=True, eq=False)
class PooledRates:
    """Log rates of J jobs after those of which little was measured were drawn towards what is expected of them."""

    log: Floats
    """(J,)"""
    square: Floats
    """(J,) mean squared error of it; of jobs that were not seen, of what is expected of them."""
    freedom: Floats
    beside: Floats
    """(J,) times the variance between jobs that is to be added: 0 of jobs that were seen."""
    trust: Floats
    """(J,) how much of it is the job's own measurement."""
    rate: Floats
    """(J,) mean of the rate itself, given what is known; of jobs not seen the median if a single job was seen."""
    by_measured: Floats
    """(J, J) what each measured log rate moves each log rate by; columns of jobs that were not seen are 0."""
    between: "JobSpread"
    """Of log rates about what is expected."""

    @property
    def spread(self) -> float:
        """τ, standard deviation of log rates about what is expected, as it is estimated."""
        return float(np.sqrt(self.between.square))

    @classmethod
    def of(
        cls, contrast: PlatformContrast, predicted: Floats | None = None, share: Floats | None = None
    ) -> "PooledRates":
        """Pool measured log rates.

        Parameters
        ----------
        contrast : as measured
        predicted : (J,) log rates that a model says
        share : (J,) of quota, by which predictions are centred

        Raises
        ------
        NotEnoughDataError
            If no job was seen on both platforms.
        """
        paired = contrast.paired
        if not paired.any():
            raise NotEnoughDataError(1, 0, "jobs that ran on both platforms")
        y, v = contrast.log[paired], np.maximum(contrast.square[paired], _SMALLEST)
        design, offset = np.ones((len(paired), 1)), np.zeros(len(paired))
        if predicted is not None:
            if paired.sum() >= _LEAST_JOBS:
                design = np.column_stack([design, predicted - np.average(predicted, weights=share)])
            else:
                offset = predicted
        x = design[paired]
        between = JobSpread.of(y - offset[paired], v, x)
        tau2 = between.square
        weight = 1.0 / (tau2 + v)
        inverse = np.linalg.pinv((weight[:, None] * x).T @ x, hermitian=True)
        to_slopes = inverse @ (weight[:, None] * x).T
        trust = np.zeros(len(paired))
        trust[paired] = tau2 / (tau2 + v)
        moved = np.zeros((len(paired), len(paired)))
        moved[:, paired] = (1.0 - trust)[:, None] * (design @ to_slopes)
        beside = np.where(paired, 0.0, 1.0 + (moved**2).sum(axis=1))
        moved[paired, paired] += trust[paired]
        expected = offset + design @ (to_slopes @ (y - offset[paired]))
        log = expected + trust * np.where(paired, contrast.log - expected, 0.0)
        posterior = np.where(paired, trust * np.where(paired, contrast.square, 0.0), between.mean)
        weights = np.zeros((design.shape[1], len(paired)))
        weights[:, paired] = to_slopes
        # Jobs share machines and slopes: what is expected of them is less certain than of independent ones.
        shared = contrast.products(weights)
        known = inverse - (to_slopes * v) @ to_slopes.T + shared
        of_slopes = (1.0 - trust) ** 2 * np.einsum("jk,kl,jl->j", design, known, design)
        by_clusters = [contrast.by_cluster(weight) for weight in weights]
        products = np.stack([contrast.shared_with(by_cluster) for by_cluster in by_clusters], axis=1)
        covariance = (design * (products - weights.T * np.where(paired, contrast.square, 0.0)[:, None])).sum(axis=1)
        of_slopes = np.maximum(of_slopes + 2.0 * trust * (1.0 - trust) * np.where(paired, covariance, 0.0), 0.0)
        of_spread = np.zeros(len(paired))
        of_spread[paired] = 2.0 * v**2 / (tau2 + v) ** 3 * between.error**2
        degrees = max(int(paired.sum()) - design.shape[1], 1)
        freedom = 1.0 / (trust / contrast.freedom + (1.0 - trust) / degrees)
        square = np.where(paired, posterior + of_slopes + of_spread, np.einsum("jk,kl,jl->j", design, shared, design))
        freedom = np.where(paired, freedom, _freedom(by_clusters[0], float(shared[0, 0])))
        of_mean = posterior if len(between.variances) > 1 else np.where(paired, posterior, 0.0)
        return cls(log, square, freedom, beside, trust, np.exp(log + of_mean / 2), moved, between)


@dataclass(frozen=True, eq=False)
class JobSpread:
    """What is known of the variance τ² of log rates between jobs: an estimate, and a confidence distribution.

    Squares of n log rates about K slopes, weighed by 1 / (τ² + v), are a χ² of n − K degrees of freedom. So the τ² at
    which they are its quantiles are a confidence distribution of τ² (Viechtbauer 2007), 0 where they are fewer at any.
    An error with variance v + c τ² has the distribution of errors at these, mixed (Nagashima, Noma and Furukawa 2019):
    where v is 0 that is Student's t with n − K degrees of freedom, and with many jobs τ² is known.
    """

    square: float
    """τ² at which weighted squares are as many as degrees of freedom (Paule and Mandel 1982); 0 if never."""
    error: float
    """Standard error of it."""
    variances: Floats
    """(V,) of the confidence distribution."""
    chance: Floats
    """(V,) of each; more of large ones, which decide of intervals."""

    @classmethod
    def of(cls, y: Floats, square: Floats, x: Floats) -> Self:
        """Judge the spread of log rates y (n,) with squared errors (n,) about slopes on x (n, K)."""
        degrees = len(y) - x.shape[1]
        if degrees < 1:
            return cls(_WIDEST, _error(_WIDEST, square), np.full(1, _WIDEST), np.ones(1))
        steps = (np.arange(_VARIANCES) + 0.5) / _VARIANCES
        tau2 = float(_between(y, square, x, np.full(1, float(degrees)))[0])
        variances = _between(y, square, x, chi2_quantile(steps**2, degrees))
        return cls(tau2, _error(tau2, square), variances, 2.0 * steps / _VARIANCES)

    @property
    def mean(self) -> float:
        """Mean of what is believed of τ², which is 0 or more (Morris 1983): an estimate of 0 is none of no spread."""
        at = self.square / self.error
        return self.square + self.error * float(normal_density(at) / normal_cdf(at))

    def half_width(self, square: Floats, freedom: Floats, times: Floats, confidence: float) -> Floats:
        """Return (n,) half-widths of intervals of errors with variance `square`, and so many times τ² beside.

        Parameters
        ----------
        square, freedom, times : (n,)
        confidence : of intervals
        """
        level = 0.5 + confidence / 2
        half: Floats = student_quantile(level, np.maximum(freedom, 1.0)) * np.sqrt(square)
        rows = np.flatnonzero(times > 0)
        if not rows.size:
            return half
        total = np.maximum(square[rows, None] + times[rows, None] * self.variances, 1e-300)
        measured = np.maximum(square[rows, None] / total, _LEAST_SHARE)
        degrees = np.maximum(freedom[rows, None], 1.0) / measured**2  # Satterthwaite (1946)
        root = np.sqrt(total)
        ends = student_quantile(level, degrees) * root
        low, high = ends.min(axis=1), ends.max(axis=1)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            enough = stdtr(degrees, middle[:, None] / root) @ self.chance >= level
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        half[rows] = high
        return half


def _between(y: Floats, square: Floats, x: Floats, wanted: Floats) -> Floats:
    """Return the variances between jobs at which weighted squares are so many; 0 where fewer at any.

    By Newton's method on one over the squares, which is a line where all errors are alike, within brackets.
    """
    left, size, _ = np.linalg.svd(x, full_matrices=False)
    basis: Floats = left[:, size > size.max(initial=0.0) * len(y) * np.finfo(np.float64).eps]

    def squares(tau2: Floats) -> tuple[Floats, Floats]:
        """Return the weighted squares about the slopes at variances (V,), and by how much they fall with these."""
        weight: Floats = 1.0 / np.maximum(tau2[:, None] + square, _SMALLEST)
        root = np.sqrt(weight)
        columns, _ = np.linalg.qr(root[:, :, None] * basis)
        residual = root * y
        residual = residual - (columns @ (columns.transpose(0, 2, 1) @ residual[:, :, None]))[:, :, 0]
        return (residual**2).sum(axis=1), (weight * residual**2).sum(axis=1)

    variances = np.zeros(len(wanted))
    (most, least), _ = squares(np.array([0.0, _WIDEST]))
    variances[wanted <= least] = _WIDEST
    between = np.flatnonzero((wanted < most) & (wanted > least))
    low, high, count = np.zeros(len(between)), np.full(len(between), _WIDEST), wanted[between]
    tau2 = low
    for _ in range(_STEPS):
        total, slope = squares(tau2)
        low, high = np.where(total > count, tau2, low), np.where(total > count, high, tau2)
        step = tau2 + total * (total / count - 1.0) / slope
        former, tau2 = tau2, np.where((step >= low) & (step <= high), step, (low + high) / 2)
        if (np.abs(tau2 - former) <= 1e-10 * tau2).all():
            break
    variances[between] = tau2
    return variances


def _error(tau2: float, square: Floats) -> float:
    """Return the standard error of an estimated variance between jobs."""
    return float(np.sqrt(2.0 / ((1.0 / (tau2 + square)) ** 2).sum()))


@dataclass(frozen=True, eq=False)
class PlatformRates:
    """What machines of P − 1 platforms are worth in machines of a reference, per unit of CPU time."""

    reference: str
    confidence: float
    fleet: pd.DataFrame
    """A row a platform: platform, rate (over the fleet's mix), low, high, log_error, freedom (of what machines add to
    it), jobs (seen on both), seen (share of the quota that these hold), naive (ratio of means over all rows), spread,
    machines."""
    jobs: pd.DataFrame
    """A row a job and platform: job, quota_share, platform, rate, low, high, log_error, source, trust, machines,
    reference_machines."""
    covariance: Floats
    """(P − 1, P − 1) of the logarithms of the fleet's rates, of normal errors with intervals as wide."""
    slopes: Floats
    """(S, K) of conditions."""

    @classmethod
    def of(
        cls,
        rows: PlatformRows,
        reference: str,
        predicted: Mapping[str, Floats] | None = None,
        confidence: float = 0.95,
    ) -> "PlatformRates":
        """Compare platforms.

        Parameters
        ----------
        rows : observations
        reference : a platform among them
        predicted : (J,) log rates against the reference that a model says, by platform, where there is one
        confidence : of intervals

        Raises
        ------
        NotEnoughDataError
            If no job ran on both platforms in a period.
        """
        levels, at = PlatformLevels.fit(rows), [*rows.platforms].index(reference)
        share, plain = rows.quota / rows.quota.sum(), rows.plain_mean()
        others = [number for number in range(len(rows.platforms)) if number != at]
        fleet, jobs, clusters, moved = list[dict[str, object]](), list[pd.DataFrame](), list[Floats](), list[Floats]()
        squares, of_reference = list[float](), list[Floats]()
        for number in others:
            name = str(rows.platforms[number])
            contrast = levels.contrast(number, at)
            pooled = PooledRates.of(contrast, (predicted or {}).get(name), share)
            weight = share * pooled.rate
            rate = float(weight.sum())
            effective = weight @ pooled.by_measured / rate
            by_cluster = contrast.by_cluster(effective)
            apart = float((contrast.beyond @ effective**2).sum()) + contrast.of_lone(effective)
            times = float(((effective - weight / rate) ** 2).sum())
            products = float(by_cluster @ by_cluster)
            square = max(products + apart, _LEAST_LEFT * products)
            degrees = _freedom(by_cluster, square)
            one = np.array([[square], [degrees], [times]])
            half = float(pooled.between.half_width(one[0], one[1], one[2], confidence)[0])
            clusters.append(by_cluster)
            moved.append(effective)
            squares.append((half / normal_quantile(0.5 + confidence / 2)) ** 2)
            of_reference.append(contrast.beyond[1])
            fleet.append(
                {
                    "platform": name,
                    "rate": rate,
                    "low": rate * np.exp(-half),
                    "high": rate * np.exp(half),
                    "log_error": np.sqrt(square + times * pooled.between.mean),
                    "freedom": degrees,
                    "jobs": int(contrast.paired.sum()),
                    "seen": float(share[contrast.paired].sum()),
                    "naive": float(plain[number] / plain[at]),
                    "spread": pooled.spread,
                    "machines": int(rows.machines[number]),
                }
            )
            jobs.append(_jobs(contrast, pooled, (number, at), share, confidence))
        sums, jobs_moved = np.array(clusters), np.array(moved)
        covariance = sums @ sums.T + (jobs_moved * np.array(of_reference)) @ jobs_moved.T
        np.fill_diagonal(covariance, squares)
        return cls(
            reference, confidence, pd.DataFrame(fleet), pd.concat(jobs, ignore_index=True), covariance, levels.slopes
        )


def _freedom(by_cluster: Floats, square: float) -> float:
    """Return the degrees of freedom of a sum over clusters (Satterthwaite 1946)."""
    parts = float((by_cluster**4).sum())
    return max(square**2 / parts, 1.0) if square > 0 and parts > 0 else 1.0


def _jobs(
    contrast: PlatformContrast, pooled: PooledRates, pair: Sequence[int], share: Floats, confidence: float
) -> pd.DataFrame:
    """Return the rates of single jobs on the first platform of a pair against the second."""
    levels = contrast.levels
    rows, clusters = levels.rows, levels.meetings.clusters.reshape(levels.level.shape)
    half = pooled.between.half_width(pooled.square, pooled.freedom, pooled.beside, confidence)
    source = np.where(~contrast.paired, FILLED, np.where(pooled.trust >= 0.5, MEASURED, POOLED))
    return pd.DataFrame(
        {
            "job": rows.jobs,
            "quota_share": share,
            "platform": str(rows.platforms[pair[0]]),
            "rate": np.exp(pooled.log),
            "low": np.exp(pooled.log - half),
            "high": np.exp(pooled.log + half),
            "log_error": np.sqrt(pooled.square + pooled.beside * pooled.between.mean),
            "source": source,
            "trust": pooled.trust,
            "machines": clusters[:, pair[0]],
            "reference_machines": clusters[:, pair[1]],
        }
    )
