"""The guard about tails: few machines with the feature, of a fleet in which a few machines make the mean."""

import math

import numpy as np
from scipy.stats import norm, t

from analysis.audit.findings import Finding, Severity
from analysis.audit.table import Case, Contrast
from analysis.statistics import ROUNDING
from models.arrays import Floats

_MOST = 0.2
"""Skewness of an estimate from which its interval errs (Cochran 1977, section 2.15: more than 25 G² are needed)."""
_FALSE = 0.9
"""Predicted coverage below which the interval is taken for false."""
_FEWEST = 8
_ARMS = ("with the feature", "without it")


def heavy_tails(case: Case) -> list[Finding] | None:
    """Find intervals that tails make false: rare machines, far from all others, of which one arm has too few.

    An arm that happens to hold none of them has a mean that is off and an error that is too small, both at once. How
    skewed the estimate is follows from the skewness of what machines add to it, taken over both arms; arms of one size
    cancel each other's. It warns from a skewness of 0.2, which takes one point of coverage.

    Examples
    --------
    >>> import pandas as pd
    >>> slow = [0.5 if machine % 41 == 7 else 1.0 + machine % 3 / 100 for machine in range(400)]
    >>> rows = {"period": 1, "job": "a", "machine": range(400), "weight": 1.0, "value": slow}
    >>> few, half = (Case.of(pd.DataFrame(rows | {"treated": [m % n == 1 for m in range(400)]})) for n in (10, 2))
    >>> round(heavy_tails(few)[0].evidence["coverage"], 2), heavy_tails(half)
    (0.79, [])
    """
    plain = case.plain
    if plain is None:
        return None
    return _found(*_parts(plain))


def heavy_tails_of_samples(current: Floats, new: Floats, *, whole: bool = False) -> list[Finding]:
    """Find the same of two samples with one value per machine, compared by their means.

    Parameters
    ----------
    current : (M,) of the machines without the feature
    new : (N,) of those with it
    whole : whether the machines without it are all that there are, so that their mean is exact

    Examples
    --------
    >>> fleet = np.where(np.arange(1000) % 40 == 7, 0.5, 1.0) + np.arange(1000) % 3 / 100
    >>> heavy_tails_of_samples(fleet, fleet[:50])[0].severity, heavy_tails_of_samples(fleet[:50], fleet[50:100])
    ('error', [])
    """
    arms = [np.asarray(arm / arm.mean() - 1.0, dtype=np.float64) for arm in (current, new)]
    return _found(np.concatenate(arms), np.array([np.inf if whole else len(current), len(new)], dtype=np.float64)) or []


def _found(parts: Floats, counts: Floats) -> list[Finding] | None:
    """Return the finding of what machines would add to the mean, and how many there are in each arm."""
    if len(parts) < _FEWEST or min(counts) < 2:
        return None
    skewness = _skewness(parts)
    of_estimate = abs(skewness) * _passed_on(counts)
    if of_estimate <= _MOST:
        return []
    covers = skewed_coverage(of_estimate)
    needed = round((skewness / _MOST) ** 2)
    evidence = {
        "machines": int(counts[-1]),
        "skewness": skewness,
        "skewness_of_estimate": of_estimate,
        "largest_share": float((parts**2).max() / (parts**2).sum()),
        "coverage": covers,
        "machines_needed": needed,
    } | ({"equal_arms_wider": equal_arms_wider(counts)} if len(counts) > 1 else {})
    what = f"too few machines for such tails (skewness {skewness:+.1f}): an interval of 95% covers about {covers:.0%}"
    severity: Severity = "error" if covers < _FALSE else "warning"
    return [Finding("heavy_tails", severity, what, evidence, _remedy(needed, counts))]


def _remedy(needed: int, counts: Floats) -> str:
    """Return what to do and what it costs: machines, or an interval's width."""
    if len(counts) == 1:
        return f"{needed:,} machines, {needed - counts[0]:,.0f} more"
    short = {
        arm: needed - count for arm, count in zip(_ARMS, counts[::-1].tolist(), strict=True) if math.isfinite(count)
    }
    more = " and ".join(f"{count:,.0f} more {arm}" for arm, count in short.items() if count > 0)
    return (
        f"{needed:,} machines in each arm{f', {more}' if more else ''}; or {counts.min():,.0f} in each, drawn at "
        f"random from those that there are, with an interval {equal_arms_wider(counts):.2f} times as wide"
    )


def equal_arms_wider(counts: Floats) -> float:
    """Return how many times as wide Welch's interval is if the larger arm is cut down to the smaller one's size.

    Machines of both arms vary alike, as they do where the feature is given at random.

    Parameters
    ----------
    counts : (2,) machines of each arm, two at least; infinite of an arm whose mean is exact

    Examples
    --------
    >>> round(equal_arms_wider(np.array([900.0, 100.0])), 3), equal_arms_wider(np.array([50.0, 50.0]))
    (1.337, 1.0)
    """
    return _half_width(np.full(2, counts.min())) / _half_width(counts)


def _half_width(counts: Floats) -> float:
    """Return half of the 95% interval of a difference of two means of machines whose variance is 1 (Welch 1947)."""
    part = 1 / counts
    freedom = float(part.sum() ** 2 / (part**2 / (counts - 1)).sum())
    return float(t.ppf(0.975, freedom) * np.sqrt(part.sum()))


def skewed_coverage(skewness: float, confidence: float = 0.95) -> float:
    """Return how often Student's interval covers where the estimate has so much skewness.

    The term of skewness in the Edgeworth expansion of the studentised mean (Hall 1992, The Bootstrap and Edgeworth
    Expansion, section 2.6).

    Parameters
    ----------
    skewness : of the estimate; that of a mean of n is that of one, divided by the root of n
    confidence : that the interval claims, 0..1

    Examples
    --------
    >>> round(skewed_coverage(0.0), 3), round(skewed_coverage(0.2), 3), round(skewed_coverage(1.0), 3)
    (0.95, 0.94, 0.703)
    """
    z = float(norm.ppf(0.5 + confidence / 2))
    lost = 2 * float(norm.pdf(z)) * z * (z**4 + 2 * z**2 - 3) / 18 * skewness**2
    return max(confidence - lost, 0.0)


def _parts(plain: Contrast) -> tuple[Floats, Floats]:
    """Return what each cluster would add to the mean if it were alone, and how many clusters each arm has.

    In a crossover a cluster is its own control: there is but one arm, of differences.
    """
    holding = plain.hold > 0
    if holding.all(axis=1).sum() > 0.5 * holding[:, 1].sum():
        any_arm = holding.any(axis=1)
        return (plain.influence[:, 1] - plain.influence[:, 0])[any_arm], np.array([any_arm.sum()], dtype=np.float64)
    counts = holding.sum(axis=0).astype(np.float64)
    return np.concatenate([counts[arm] * plain.influence[holding[:, arm], arm] for arm in (0, 1)]), counts


def _skewness(parts: Floats) -> float:
    away = parts - parts.mean()
    spread = math.sqrt(float((away**2).mean()))
    return float((away**3).mean()) / spread**3 if spread > ROUNDING else 0.0


def _passed_on(counts: Floats) -> float:
    """Return how much of one cluster's skewness the difference of two means keeps, or one mean of differences."""
    third = counts[-1] ** -2 - (counts[0] ** -2 if len(counts) > 1 else 0.0)
    return float(abs(third) / (1 / counts).sum() ** 1.5)
