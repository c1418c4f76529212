"""The effect of a feature on each job: who gained, who lost, and about whom nothing can be said."""

from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd
from scipy.special import digamma, polygamma

from analysis.effects.cells import JobMachineSums
from analysis.effects.linear_systems import RIDGE, TINY
from analysis.effects.score_intervals import ProportionArms, Proportions
from analysis.effects.study import Study
from analysis.statistics import ROUNDING, FalseDiscoveryControl, adjusted_p_values, student_quantile, student_tail
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

GAINED, LOST, UNDECIDED, UNDECIDABLE = "gained", "lost", "undecided", "undecidable"
_CONTROLS = get_args(FalseDiscoveryControl)
FEW = 12
"""Machines in the smaller arm up to which p-values are checked by randomisation."""
_CLOSER = 0.1
"""Larger p-values are not looked at closely."""


@dataclass(frozen=True, slots=True)
class PerJobCriteria:
    """When a job is said to have gained or lost."""

    false_discoveries: float = 0.05
    """Expected share of wrong verdicts among those given, a wrong sign being one."""
    control: FalseDiscoveryControl = "benjamini-hochberg"
    """Benjamini-Hochberg holds for tests that are independent or positively dependent, Benjamini-Yekutieli for any."""
    min_machines: int = 3
    """Machines with the feature, and without, that a job must be on to be decidable."""
    confidence: float = 0.95
    """Of each job's own interval, which is not adjusted for the number of jobs."""

    def __post_init__(self) -> None:
        faults = [
            f"{name} must be between 0 and 1, got {value:g}"
            for name, value in (("false_discoveries", self.false_discoveries), ("confidence", self.confidence))
            if not 0 < value < 1
        ]
        if self.control not in _CONTROLS:
            faults.append(f"control must be one of {', '.join(_CONTROLS)}, got {self.control}")
        if self.min_machines < 2:
            faults.append(f"min_machines must be at least 2, got {self.min_machines}")
        if faults:
            raise InputError("\n".join(faults))


def per_job(
    study: Study, criteria: PerJobCriteria | None = None, proportions: Proportions | None = None
) -> pd.DataFrame:
    """Return the effect on every job of the fleet, with verdicts under false-discovery control.

    A job's raw effect is the difference of its covariate-adjusted means, relative to the level without the feature. Its
    standard error is clustered by machine, corrected for leverage, with the degrees of freedom of Bell and McCaffrey
    (2002) in either arm, joined as by Welch and Satterthwaite. The variance of the treated machines leans on that of
    the controls; of proportions both follow from the shares (`score_intervals`). Where an arm has 12 machines or
    fewer, a p-value is at least that of an exact randomisation test
    (see `few_machines`; neither in a crossover). Shrunken effects are posterior means under normal true effects (Efron
    and Morris 1975) whose mean and spread come from the jobs themselves (Paule and Mandel 1982).
    Verdicts rest on the raw effects: p-values against no change are adjusted over the decidable jobs (Benjamini and
    Hochberg 1995; Benjamini and Yekutieli 2001), and the sign of a rejected one is given away with it (Benjamini and
    Yekutieli 2005, section 6). Which jobs are decidable depends on machines alone, never on what was measured.

    Parameters
    ----------
    study : an experiment
    criteria : when a job is said to have gained or lost
    proportions : how to read values as shares of yes; then intervals are of `score_intervals`

    Returns
    -------
    DataFrame
        job, quota_share (of the fleet), machines, controls (that it was measured on; in a crossover the same), change,
        error, freedom, low, high (raw, relative), shrunken, shrunken_error, p_value, adjusted, verdict (gained, lost,
        undecided, undecidable); NaN where a job was not seen in both arms or an error needs more machines; in the order
        of the fleet's jobs.
    """
    wanted = criteria or PerJobCriteria()
    cells = study.cells
    raw = _raw(cells, study.treated, proportions)
    change, error, freedom, machines = raw.change, raw.error, raw.freedom, raw.machines
    enough = machines.min(axis=1) >= wanted.min_machines
    decidable = enough & np.isfinite(error) & (error > ROUNDING) & (freedom >= 1) & (change > -1)
    p_value, adjusted = _p_values(raw, cells, decidable), np.full(len(change), np.nan)
    if decidable.any():
        adjusted[decidable] = adjusted_p_values(p_value[decidable], wanted.control)
    low, high = raw.ends(wanted.confidence)
    shrunken, left = shrink(np.where(enough, change, np.nan), error)
    verdict = np.where(change > 0, GAINED, LOST)
    verdict = np.where(decidable & (adjusted <= wanted.false_discoveries), verdict, UNDECIDED)
    return pd.DataFrame(
        {
            "job": cells.jobs,
            "quota_share": cells.share,
            "machines": machines[:, 1],
            "controls": machines[:, 0],
            "change": change,
            "error": error,
            "freedom": freedom,
            "low": low,
            "high": high,
            "shrunken": shrunken,
            "shrunken_error": left,
            "p_value": p_value,
            "adjusted": adjusted,
            "verdict": np.where(decidable, verdict, UNDECIDABLE),
        }
    )


def shrink(change: Floats, error: Floats) -> tuple[Floats, Floats]:
    """Return posterior means and standard deviations of effects under a normal prior fitted to them.

    The prior's variance is `between`'s. That it is estimated, and its mean, shrinks less and widens (Morris 1983).

    Parameters
    ----------
    change, error : (J,) estimates and standard errors; a job without either gets the prior's mean and spread

    Returns
    -------
    tuple of Floats
        Means and standard deviations, (J,); NaN if fewer than two jobs are known, as they were if fewer than four are.
    """
    known = np.isfinite(change) & np.isfinite(error) & (error > ROUNDING)
    jobs = int(known.sum())
    if jobs < 2:
        return np.full(len(change), np.nan), np.full(len(change), np.nan)
    effects, square = change[known], error[known] ** 2
    prior = between(effects, square)
    trust = 1 / (square + prior)
    total = float(trust.sum())
    middle = float((trust * effects).sum()) / total
    mean, left = np.full(len(change), middle), np.full(len(change), np.sqrt(prior + 1 / total))
    # The factor (k − 3) / (k − 1) makes the share unbiased; the last term is what the prior's estimated variance adds.
    pull = square * trust * max(jobs - 3, 0) / (jobs - 1)
    typical = float((trust * square).sum()) / total + prior
    unsure = 2 / max(jobs - 3, 1) * pull**2 * (effects - middle) ** 2 * typical * trust
    mean[known] = effects - pull * (effects - middle)
    left[known] = np.sqrt(square * (1 - pull) + pull**2 / total + unsure)
    return mean, left


def between(change: Floats, square: Floats) -> float:
    """Return the variance of true effects between jobs (Paule and Mandel 1982), 0 or more.

    Parameters
    ----------
    change, square : (J,) estimates and their squared standard errors, above 0; two jobs at least
    """

    def excess(prior: float) -> float:
        trust = 1 / (square + prior)
        middle = (trust * change).sum() / trust.sum()
        return float((trust * (change - middle) ** 2).sum()) - (len(change) - 1)

    # Bisection, because the sum falls as the variance grows.
    low, high = 0.0, float(np.var(change)) * len(change) + float(square.max())
    if excess(low) <= 0:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


@dataclass(frozen=True, slots=True, eq=False)
class _Raw:
    """What machines say of each job: estimates, (J,), and how they came about."""

    change: Floats
    error: Floats
    freedom: Floats
    machines: Ints
    """(J, 2) machines without and with the feature that host the job."""
    score: Floats
    """(C,) how far each machine's instances of a job lie, together, from the mean of all."""
    on: Bools
    """(C,) whether the machine has the feature."""
    arms: ProportionArms | None = None
    """Of proportions."""
    unit: float = 1.0
    """What 1 of a change is of them."""

    @property
    def distance(self) -> Floats:
        """(J,) standard errors between the arms, were there no change; NaN if it is unknown."""
        if self.arms is not None:
            return np.abs(self.arms.distance(np.zeros(len(self.change))))
        return np.abs(self.change / np.where(self.error > 0, self.error, np.nan))

    def ends(self, confidence: float) -> tuple[Floats, Floats]:
        """Return the ends of intervals, NaN where no error is known."""
        if self.arms is not None:
            low, high = self.arms.ends(confidence)
            return low / self.unit, high / self.unit
        margin, known = np.full(len(self.change), np.nan), np.isfinite(self.error) & (self.freedom > 0)
        margin[known] = student_quantile(0.5 + confidence / 2, self.freedom[known]) * self.error[known]
        return self.change - margin, self.change + margin


def _raw(cells: JobMachineSums, treated: Bools, proportions: Proportions | None) -> _Raw:
    jobs = len(cells.jobs)
    on = np.repeat(treated, np.diff(cells.start))
    arm = on.astype(np.int64)
    group = cells.job * 2 + arm
    value = cells.y[np.arange(len(arm)), arm]
    value = value - cells.x @ _slope(cells, arm, value)

    def summed(what: Floats) -> Floats:
        return np.bincount(group, what, 2 * jobs).astype(np.float64, copy=False).reshape(jobs, 2)

    with np.errstate(divide="ignore", invalid="ignore"):
        count = summed(cells.count)
        mean = summed(value) / count
        share = cells.count / count.ravel()[group]
        residual = value / cells.count - mean.ravel()[group]
        variance, freedom, unit = clustered(share, 1.0 / cells.instances, residual, group, jobs)
        whole = np.bincount(cells.job, value, jobs) / np.bincount(cells.job, cells.count, jobs)
        if not cells.known and proportions is None:
            variance[:, 1], freedom[:, 1] = moderated(variance / unit, freedom)
            variance[:, 1] *= unit[:, 1]
    machines = np.bincount(group, minlength=2 * jobs).reshape(jobs, 2)
    score = value - cells.count * whole[cells.job]
    if cells.known:
        error = np.sqrt(variance[:, 1])
        return _Raw(mean[:, 1] - 1, error, freedom[:, 1], machines[:, [1, 1]], score, on)
    if proportions is None:
        return _Raw(*_difference(mean, variance, freedom), machines, score, on)
    shares = proportions.origin + proportions.unit * (cells.scale[:, None] * mean - 1.0)
    arms = ProportionArms(np.clip(shares, 0.0, 1.0), unit, variance * proportions.unit**2, freedom)
    error = arms.error / proportions.unit
    return _Raw(arms.change / proportions.unit, error, arms.joined, machines, score, on, arms, proportions.unit)


def _p_values(raw: _Raw, cells: JobMachineSums, decidable: Bools) -> Floats:
    """Return p-values against no change; of jobs on few machines the larger of Student's and the exact one."""
    p_value = np.full(len(decidable), np.nan)
    p_value[decidable] = 2 * student_tail(raw.distance[decidable], raw.freedom[decidable])
    if cells.known:
        return p_value
    few = decidable & (raw.machines.min(axis=1) <= FEW) & (p_value < _CLOSER)
    order = np.argsort(cells.job, kind="stable")
    start = np.searchsorted(cells.job[order], np.arange(len(decidable) + 1))
    for job in np.flatnonzero(few).tolist():
        at = order[start[job] : start[job + 1]]
        p_value[job] = max(p_value[job], randomisation_p(raw.score[at], np.flatnonzero(raw.on[at])))
    return p_value


def _slope(cells: JobMachineSums, arm: Ints, value: Floats) -> Floats:
    """Return the slopes of the analysis of covariance within jobs and arms; (K,)."""
    covariates = cells.x.shape[1]
    group = cells.job * 2 + arm
    groups = 2 * len(cells.jobs)
    instances = np.bincount(group, cells.count, groups)
    count = np.where(instances > 0, instances, 1.0)
    x = np.zeros((groups, covariates))
    for k in range(covariates):
        x[:, k] = np.bincount(group, cells.x[:, k], groups)
    y = np.bincount(group, value, groups)
    xx = cells.xx.sum(axis=0) - (x / count[:, None]).T @ x
    xy = cells.xy[np.arange(len(arm)), arm].sum(axis=0) - (x / count[:, None]).T @ y
    xx[np.diag_indices(covariates)] += RIDGE * np.diag(xx) + TINY
    return np.asarray(np.linalg.solve(xx, xy), dtype=np.float64)


def clustered(share: Floats, spread: Floats, residual: Floats, group: Ints, jobs: int) -> tuple[Floats, Floats, Floats]:
    """Return the variance of each group's weighted mean, its degrees of freedom, and what it is of one instance's.

    A cluster's residual grows for its leverage (Bell and McCaffrey 2002), were instances alike in variance, whatever
    they count for: one with three times the denominator of another pulls three times as much, and varies as much.

    Parameters
    ----------
    share : (C,) of each cluster in its group's mean
    spread : (C,) variance of a cluster's mean relative to an instance's
    residual : (C,) of each cluster's mean
    group : (C,) 2 × job + arm
    jobs : J

    Returns
    -------
    tuple of Floats
        (J, 2) each; NaN where a cluster is all of its group.
    """

    def summed(what: Floats) -> Floats:
        return np.bincount(group, what, 2 * jobs).astype(np.float64, copy=False).reshape(jobs, 2)

    pull = share * spread
    whole = summed(share * pull)
    own = spread - 2.0 * pull + whole.ravel()[group]
    part = np.where(share < 1.0 - TINY, share * pull / own, np.nan)
    # The covariance of residuals c and d is whole − pull c − pull d; tr((A Ω)²) sums its squares, each by both parts.
    once, first, second = summed(part), summed(part * pull), summed(part * pull**2)
    pairs = whole**2 * once**2 - 4.0 * whole * once * first + 2.0 * once * second + 2.0 * first**2
    pairs += summed(part**2 * (own**2 - (own - spread) ** 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return summed(part * residual**2), np.asarray(whole**2 / pairs), whole


def _difference(mean: Floats, variance: Floats, freedom: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the relative change from both arms' means, with its error by the delta method."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = mean[:, 1] / mean[:, 0] - 1
        parts = variance * np.stack([(1 + change) ** 2, np.ones(len(change))], axis=1) / mean[:, :1] ** 2
        total = parts.sum(axis=1)
        joined = total**2 / (parts**2 / freedom).sum(axis=1)
    return change, np.sqrt(total), joined


_GRID = 16.0
"""Scores are rounded to this part of their standard deviation."""
_LEAST_JOBS = 10
"""Jobs from which it is learnt how far variances of both arms agree."""
_MOST = 200.0
"""Degrees of freedom that the controls' variance counts for at most."""


def moderated(variance: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    """Return treated machines' variances drawn towards those of the same job's controls, with their freedom.

    Empirical Bayes as Smyth (2004, section 3) does for genes: the logarithms of the ratios tell by what factor the
    feature changes variances, and how far jobs differ in that. A job's controls then count for so many degrees
    of freedom.

    Parameters
    ----------
    variance : (J, 2) of one machine of each job, without and with the feature; NaN or 0 where unknown
    freedom : (J, 2) their degrees of freedom

    Returns
    -------
    tuple of Floats
        Variances with the feature and their freedom, (J,); as they are where fewer than ten jobs can tell.
    """
    known = np.isfinite(variance).all(axis=1) & (variance > 0).all(axis=1) & (freedom > 0.5).all(axis=1)
    shrunk, grown = variance[:, 1].copy(), freedom[:, 1].copy()
    if known.sum() < _LEAST_JOBS:
        return shrunk, grown
    own, free = variance[known], freedom[known]
    shift = digamma(free / 2) - np.log(free / 2)
    logs = np.log(own[:, 1] / own[:, 0]) - shift[:, 1] + shift[:, 0]
    factor, agreement = _agreement(logs, polygamma(1, free / 2).sum(axis=1))
    prior = 1 / (1 / agreement + 1 / free[:, 0])
    grown[known] = prior + free[:, 1]
    shrunk[known] = (prior * factor * own[:, 0] + free[:, 1] * own[:, 1]) / grown[known]
    return shrunk, grown


def _agreement(logs: Floats, noise: Floats) -> tuple[float, float]:
    """Return the typical ratio, and the degrees of freedom of a chi-square of as much spread as ratios have."""
    excess = 0.0
    for _ in range(30):
        trust = 1 / (noise + excess)
        middle = float((trust * logs).sum() / trust.sum())
        beyond = float((trust * (logs - middle) ** 2).sum()) - (len(logs) - 1)
        excess = max(excess + beyond / float(trust.sum()), 0.0)
    # The trigamma function at half of the freedom is about 2 / freedom + 2 / freedom².
    wide = (1 + np.sqrt(1 + 2 * excess)) / excess if excess > 2 / _MOST else _MOST
    return float(np.exp(middle)), float(min(wide, _MOST))


def randomisation_p(score: Floats, chosen: Ints) -> float:
    """Return how often a random choice of as many machines has a sum of scores at least as far from the middle.

    All choices are counted, none is drawn: machine by machine the number of choices with each sum is kept (Pagano
    and Tritchler 1983). So the p-value is exact if the feature does nothing to the job and the machines were chosen at
    random, whatever the scores' distribution. Scores are rounded to a sixteenth of their standard deviation, which
    makes other scores of them and leaves the test exact.

    Parameters
    ----------
    score : (n,) one number a machine
    chosen : places of the machines with the feature
    """
    spread = float(np.std(score))
    if spread <= 0 or not 0 < len(chosen) < len(score):
        return 1.0
    centred = np.rint((score - score.mean()) * (_GRID / spread)).astype(np.int64)
    few = np.arange(len(score))[~np.isin(np.arange(len(score)), chosen)] if 2 * len(chosen) > len(score) else chosen
    size = len(few)
    reach = int(np.sort(np.abs(centred))[-size:].sum())
    ways = np.zeros((size + 1, 2 * reach + 1))
    ways[0, reach] = 1.0
    for shift in centred.tolist():
        moved = np.zeros((size, 2 * reach + 1))
        if shift >= 0:
            moved[:, shift:] = ways[:-1, : 2 * reach + 1 - shift]
        else:
            moved[:, :shift] = ways[:-1, -shift:]
        ways[1:] += moved
    expected = size * float(centred.mean())
    sums = np.abs(np.arange(-reach, reach + 1) - expected)
    distance = abs(float(centred[few].sum()) - expected)
    return float(ways[size][sums >= distance - 1e-9].sum() / ways[size].sum())
