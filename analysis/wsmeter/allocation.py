"""Who is observed how often: the least cost within a bound on the variance, in real and in whole numbers.

The problem is ``minimise Σ cost n  subject to  Σ variance / n <= bound  and  low <= n <= high``. Here are its data,
exact arithmetic on them and the real-valued optimum; `analysis.wsmeter.optimum` finds whole numbers.
"""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np

from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What every job contributes and costs, in whole numbers so that nothing is rounded.

    Each entry stands for `count` identical jobs.
    """

    variance: tuple[int, ...]
    """Variance of the weighted mean if one instance of the job is observed."""
    bound: int
    """Largest variance allowed, above 0, in the same units."""
    cost: tuple[int, ...]
    """Cost of one instance, 0 or more."""
    low: Ints
    """Fewest instances, 1 or more."""
    high: Ints
    """Most instances, `low` or more."""
    count: Ints
    """Identical jobs."""

    @property
    def share(self) -> Floats:
        """Variance as a share of the bound."""
        return np.array([value / self.bound for value in self.variance])


def continuous(variance: Floats, cost: Floats, low: Floats, high: Floats) -> Floats:
    """Return the cheapest real-valued numbers of instances with ``Σ variance / n <= 1`` (Neyman 1934, with bounds).

    The optimality conditions give ``n = √(price · variance / cost)``, cut off at the bounds. The price lies between
    two neighbours among the prices at which a job meets a bound, and there it has a closed form.

    Parameters
    ----------
    variance : (k,) array, that one instance would leave, as a share of the largest allowed
    cost : (k,) array, of one instance, 0 or more; a job that costs nothing gets `high`, one without variance `low`
    low, high : (k,) arrays, 0 < low <= high; all at `high` must meet the bound

    Returns
    -------
    (k,) array
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        benefit = np.where(variance > 0, variance / cost, 0.0)
        floor = np.where(np.isinf(benefit), high, low)
        at_low, at_high = floor**2 / benefit, high**2 / benefit
    if np.sum(variance / floor) <= 1:
        return floor
    if np.sum(variance / high) >= 1:
        return np.where(variance > 0, high, low)
    prices = np.unique(np.concatenate([at_low, at_high]))
    below, above = _bracket(prices[np.isfinite(prices)], variance, benefit, floor, high)
    inside = (at_low <= below) & (at_high >= above)
    settled = np.where(at_high <= below, high, floor)
    left = 1 - np.sum(np.where(inside, 0.0, variance / settled))
    root = np.sum(np.sqrt(variance[inside] * cost[inside])) / left
    return np.where(inside, np.clip(root * np.sqrt(np.where(inside, benefit, 0.0)), floor, high), settled)


def _bracket(prices: Floats, variance: Floats, benefit: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """Return the neighbouring prices between which ``Σ variance / n`` falls to 1 and below."""
    below, above = 0, len(prices) - 1
    while above - below > 1:
        middle = (below + above) // 2
        exceeds = np.sum(variance / np.clip(np.sqrt(prices[middle] * benefit), low, high)) > 1
        below, above = (middle, above) if exceeds else (below, middle)
    return float(prices[below]), float(prices[above])


def levels(problem: Problem, steps: Ints) -> tuple[Ints, Ints]:
    """Return the instances that every job of an entry has, and how many of its jobs have one more.

    Parameters
    ----------
    problem : k entries
    steps : (k,) array, instances above `low`, spread evenly over the jobs of the entry
    """
    return problem.low + steps // problem.count, steps % problem.count


def total_cost(problem: Problem, steps: Ints) -> int:
    """Return ``Σ cost n`` exactly.

    Parameters
    ----------
    problem, steps : as for `levels`
    """
    return sum(map(mul, problem.cost, (problem.count * problem.low + steps).tolist()))


def total_variance(problem: Problem, steps: Ints) -> Fraction:
    """Return ``Σ variance / n`` as a share of the bound, exactly.

    Parameters
    ----------
    problem, steps : as for `levels`
    """
    level, more = (part.tolist() for part in levels(problem, steps))
    totals: Counter[int] = Counter()
    for variance, n, jobs, further in zip(problem.variance, level, problem.count.tolist(), more, strict=True):
        totals[n] += variance * (jobs - further)
        totals[n + 1] += variance * further
    common = math.lcm(*(n for n, variance in totals.items() if variance))
    return Fraction(sum(variance * (common // n) for n, variance in totals.items() if variance), common * problem.bound)


def fits(problem: Problem, steps: Ints) -> bool:
    """Say whether the bound on the variance is met: in floating point where that is clear, else exactly.

    Parameters
    ----------
    problem, steps : as for `levels`
    """
    level, more = levels(problem, steps)
    total = np.sum(problem.share * ((problem.count - more) / level + more / (level + 1)))
    return bool(total < 1) if abs(total - 1) > 1e-9 else total_variance(problem, steps) <= 1
