"""The Universal Scalability Law: contention and coherence, from how fast a log's requests completed with n present."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize_scalar

from analysis.occupancy.curve import pairs
from analysis.statistics import chi2_quantile, student_quantile
from models.arrays import Floats

BLOCKS = 40
"""Stretches of time whose scores tell how much completions vary beyond Poisson counts."""
LEAST_STATES, LEAST_COMPLETIONS = 4, 200
"""Numbers of requests present, and completions, without which nothing is fitted."""
MOST = 10.0
"""Largest contention and coherence that are looked for."""
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Coefficient:
    """An estimate with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ScalabilityLaw:
    """The rate with n present: rate n / (1 + contention (n - 1) + coherence n (n - 1)) (Gunther 2007)."""

    rate_per_s: float
    """Completions per second with one request present."""
    contention: Coefficient
    """Sigma: share of the work that only one request at a time can do."""
    coherence: Coefficient
    """Kappa: what each pair of requests costs the others, as when caches and locks are kept in agreement."""

    @property
    def peak(self) -> float:
        """Requests present with which most complete; infinite without coherence."""
        kappa, sigma = self.coherence.value, self.contention.value
        return math.sqrt(max(1.0 - sigma, 0.0) / kappa) if kappa > 0 else math.inf

    @property
    def peak_rate_per_s(self) -> float:
        """Completions per second at the peak; without coherence the limit, infinite without contention."""
        if math.isfinite(self.peak):
            return float(self.rate(np.array([max(self.peak, 1.0)]))[0])
        return self.rate_per_s / self.contention.value if self.contention.value > 0 else math.inf

    def rate(self, present: Floats) -> Floats:
        """Return completions per second with so many present."""
        return self.rate_per_s * relative(present, self.contention.value, self.coherence.value)


@dataclass(frozen=True, slots=True, eq=False)
class StateCounts:
    """Time and completions with so many requests present, in stretches of time."""

    present: Floats
    """(m,) requests present, 1 and more."""
    time_s: Floats
    """(blocks, m) seconds."""
    completions: Floats
    """(blocks, m)."""


@dataclass(frozen=True, slots=True)
class LogLikelihoodGain:
    """By how much the law is likelier than a queue, as a natural logarithm; below 0: less likely."""

    whole: float
    """With one rate of a single request for the whole log."""
    within: float
    """With another such rate in each stretch of time."""


def relative(present: Floats, contention: float, coherence: float) -> Floats:
    """Return the capacity with so many present, in that with one.

    Examples
    --------
    >>> relative(np.array([1.0, 2.0, 4.0]), 0.5, 0.0).round(3).tolist()
    [1.0, 1.333, 1.6]
    """
    return present / (1.0 + contention * (present - 1.0) + coherence * present * (present - 1.0))


def state_counts(arrival_s: Floats, departure_s: Floats, blocks: int = BLOCKS) -> StateCounts:
    """Return time and completions by requests present, in stretches with about as many events.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds; NaN departures have not left. Departures need not belong to the
        arrivals beside them
    """
    events = pairs(arrival_s, departure_s)
    before, leaves = events.present[:-1], events.job[1:] < 0
    most = int(events.present.max(initial=0))
    block = np.arange(len(before)) * blocks // max(len(before), 1)
    cell = block * (most + 1) + before
    size = blocks * (most + 1)
    time_s = np.bincount(cell, np.diff(events.time_s), size).astype(np.float64).reshape(blocks, most + 1)[:, 1:]
    completions = np.bincount(cell[leaves], minlength=size).astype(np.float64).reshape(blocks, most + 1)[:, 1:]
    visited = time_s.sum(axis=0) > 0
    return StateCounts(np.arange(1.0, most + 1)[visited], time_s[:, visited], completions[:, visited])


def scalability_law(counts: StateCounts) -> tuple[ScalabilityLaw | None, str]:
    """Return the law that makes the completions likeliest, or why there is none.

    Completions with n present are Poisson counts under processor sharing with exponential demands; the likelihood is
    exact then. Otherwise, and where the load moves, they vary more or less: each interval holds the values of which
    twice the log-likelihood falls short of the best by less than a Student quantile squared, times the ratio of the
    variance that stretches of time show to that of Poisson counts (Chandler and Bate 2007). No coefficient is negative.

    Examples
    --------
    >>> present = np.arange(1.0, 21.0)
    >>> time_s = np.full((40, 20), 50.0)
    >>> law, _ = scalability_law(StateCounts(present, time_s, time_s * 2.0 * relative(present, 0.1, 0.01)))
    >>> round(law.contention.value, 4), round(law.coherence.value, 5), round(law.peak, 1)
    (0.1, 0.01, 9.5)
    """
    why = _too_little(counts)
    if why:
        return None, why
    likelihood = _Likelihood(_whole(counts))
    contention, coherence = likelihood.best()
    inflation = _inflation(counts, likelihood, contention, coherence)
    quantile = float(student_quantile((1.0 + _LEVEL) / 2.0, len(counts.time_s) - 1)) ** 2 / 2.0
    best = likelihood(contention, coherence)
    coefficients = [
        Coefficient(value, *_interval(profile, value, best - quantile * factor))
        for value, profile, factor in (
            (contention, likelihood.over_coherence, inflation[0]),
            (coherence, likelihood.over_contention, inflation[1]),
        )
    ]
    return ScalabilityLaw(likelihood.rate_per_s(contention, coherence), *coefficients), ""


def accounts(counts: StateCounts, law: ScalabilityLaw, servers: int) -> pd.DataFrame:
    """Return what the law and a queue of k servers make of the completions.

    The queue's rate is in proportion to min(n, k), with the mean demand that k servers have worked for.

    Returns
    -------
    DataFrame
        present, time_s, completions, rate_per_s, low, high (95%, Poisson counts; Garwood 1936), law_per_s, queue_per_s
    """
    time_s, completions = counts.time_s.sum(axis=0), counts.completions.sum(axis=0)
    busy = np.minimum(counts.present, servers)
    return pd.DataFrame(
        {
            "present": counts.present.astype(np.int64),
            "time_s": time_s,
            "completions": completions.astype(np.int64),
            "rate_per_s": completions / time_s,
            "low": chi2_quantile(0.025, 2 * np.maximum(completions, 0.5)) / 2 / time_s * (completions > 0),
            "high": chi2_quantile(0.975, 2 * completions + 2) / 2 / time_s,
            "law_per_s": law.rate(counts.present),
            "queue_per_s": busy * completions.sum() / float(busy @ time_s),
        }
    )


def deviation(table: pd.DataFrame, account: str) -> float:
    """Return how far the completions are from an account of them, as a share of all.

    Parameters
    ----------
    table : as from `accounts`
    account : law_per_s or queue_per_s
    """
    expected = table[account] * table["time_s"]
    return float((table["completions"] - expected).abs().sum() / table["completions"].sum())


def evidence(counts: StateCounts, servers: int) -> LogLikelihoodGain:
    """Return by how much the law explains the completions better than a queue of so many servers.

    Demands that follow the load look like coherence in the whole log, but hardly within a stretch of time.

    Parameters
    ----------
    counts : as from `state_counts`, with a law
    servers : k >= 1
    """
    busy = np.minimum(counts.present, servers)
    gains = [
        likelihood(*likelihood.best()) - likelihood.of(busy)
        for likelihood in (_Likelihood(_whole(counts)), _Likelihood(counts))
    ]
    return LogLikelihoodGain(*gains)


def _whole(counts: StateCounts) -> StateCounts:
    return StateCounts(
        counts.present, counts.time_s.sum(axis=0)[np.newaxis], counts.completions.sum(axis=0)[np.newaxis]
    )


def _too_little(counts: StateCounts) -> str:
    states = int(np.count_nonzero(counts.completions.sum(axis=0) >= 10))
    completions = int(counts.completions.sum())
    if states < LEAST_STATES:
        return f"ten requests or more left in {states} states of so many present, {LEAST_STATES} such states are needed"
    if completions < LEAST_COMPLETIONS:
        return f"{completions} completions, {LEAST_COMPLETIONS} are needed"
    return ""


class _Likelihood:
    """Poisson log-likelihood of completions, with the rate of one request at its best in each stretch of time."""

    def __init__(self, counts: StateCounts) -> None:
        self.counts = counts
        self.completions = counts.completions.sum(axis=0)
        self.count = counts.completions.sum(axis=1)
        self.pairwise = 1.0 / float(counts.present.max())

    def __call__(self, contention: float, coherence: float) -> float:
        return self.of(relative(self.counts.present, contention, coherence))

    def of(self, capacity: Floats) -> float:
        """Return the log-likelihood of rates in proportion to a capacity, by requests present."""
        work = np.where(self.count > 0, self.counts.time_s @ capacity, 1.0)
        return float(self.completions @ np.log(capacity) - self.count @ np.log(work))

    def rate_per_s(self, contention: float, coherence: float) -> float:
        """Return the likeliest rate of one request."""
        capacity = relative(self.counts.present, contention, coherence)
        return float(self.count.sum() / (self.counts.time_s @ capacity).sum())

    def best(self) -> tuple[float, float]:
        """Return the likeliest contention and coherence."""
        contention = self._best(self.over_coherence, 1.0)
        return contention, self._best(lambda x: self(contention, x), self.pairwise)

    def over_coherence(self, contention: float) -> float:
        """Return the best log-likelihood with this contention."""
        return self(contention, self._best(lambda x: self(contention, x), self.pairwise))

    def over_contention(self, coherence: float) -> float:
        """Return the best log-likelihood with this coherence."""
        return self(self._best(lambda x: self(x, coherence), 1.0), coherence)

    @staticmethod
    def _best(value: Callable[[float], float], scale: float) -> float:
        """Return where a function is largest, at 0 or above: the square root is searched, as most are near 0."""
        optimum = minimize_scalar(
            lambda root: -value(root * root * scale),
            bounds=(0.0, math.sqrt(MOST)),
            method="bounded",
            options={"xatol": 1e-8},
        )
        x = float(optimum.x) ** 2 * scale
        return x if value(x) > value(0.0) else 0.0


def _inflation(
    counts: StateCounts, likelihood: _Likelihood, contention: float, coherence: float
) -> tuple[float, float]:
    """Return the variances of contention and coherence from the scores of stretches, in those of Poisson counts."""
    n = counts.present
    capacity = relative(n, contention, coherence)
    rate = likelihood.rate_per_s(contention, coherence) * capacity
    slopes = np.stack([np.ones(len(n)), -capacity * (n - 1.0) / n, -capacity * (n - 1.0)])
    scores = (counts.completions - rate * counts.time_s) @ slopes.T
    information = (slopes * (rate * counts.time_s.sum(axis=0))) @ slopes.T
    inverse = np.linalg.pinv(information, hermitian=True)
    blocks = len(scores)
    robust = inverse @ (scores.T @ scores * blocks / (blocks - 1)) @ inverse
    ratio = np.diag(robust)[1:] / np.maximum(np.diag(inverse)[1:], 1e-300)
    return float(ratio[0]), float(ratio[1])


def _interval(profile: Callable[[float], float], value: float, least: float) -> tuple[float, float]:
    """Return where a profile of log-likelihood crosses a level, below and above its best value."""

    def above(x: float) -> float:
        return profile(x) - least

    if above(value) <= 0.0:
        return value, value
    low = 0.0 if value <= 0.0 or above(0.0) >= 0.0 else float(brentq(above, 0.0, value, xtol=1e-10))
    high = max(2.0 * value, 1e-6)
    while high < MOST and above(high) > 0.0:
        high *= 2.0
    return low, float(brentq(above, value, high, xtol=1e-10)) if above(high) < 0.0 else math.inf
