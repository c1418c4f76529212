"""Whole numbers of instances to observe per job: the least cost within a bound on the variance, with a proof.

The problem is ``minimise Σ cost n  subject to  Σ variance / n <= bound  and  low <= n <= high``. Every further
instance of a job costs the same and removes less variance than the one before. So it is a min-knapsack whose items
are the steps from n to n + 1, and a price of variance (the Lagrange multiplier) solves it but for a few steps.
"""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np
from ortools.sat.python import cp_model

from analysis.statistics import Floats, Ints

TOLERANCE = 1e-9
"""Share of the cost up to which a cost counts as the least where the costs have no common unit above it."""
EFFORT_S = 30.0
"""Deterministic time (about seconds, the same on every machine) after which the search for a proof is given up."""
FIRST_CORE = 32
"""Steps in the first core."""
GROWTH = 4
"""How many times as many steps the next core may hold."""
RESOLUTION = 1 << 50
"""Coefficients of a core add up to this much, so that sums stay far below 64 bits."""


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

    @property
    def price_benefit(self) -> Floats:
        """Variance per cost of one instance; the price turns it into the square of the best number of instances."""
        return self.share / np.array([max(value, 1) for value in self.cost], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Instances of each job, and whether no cheaper allocation exists."""

    instances: Ints
    optimal: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Core:
    """Steps that are still open: entry and the number of instances that the step starts from."""

    entry: Ints
    level: Ints
    whole: bool
    """Whether every step that a better allocation could take or leave is among them."""


def least_cost(problem: Problem) -> Solution:
    """Return the cheapest whole numbers of instances within the bound on the variance, with a proof.

    A price of variance gives a lower bound on the cost and a first allocation. A better one differs from the price's
    answer only in steps whose reduced cost is below the gap between the two. CP-SAT solves a core of the most
    promising steps, which narrows the gap, until the gap closes or the core holds every such step (Pisinger 1995,
    "An expanding-core algorithm for the exact 0-1 knapsack problem"). Whether an allocation meets the bound is decided
    in exact arithmetic. A job that costs nothing gets `high`, one without variance `low`.

    Parameters
    ----------
    problem : all jobs at `high` must meet the bound

    Returns
    -------
    Solution
        If `optimal`, no allocation is cheaper: exactly so where the greatest common divisor of the costs exceeds 1e-9
        of the total (as with whole costs and a total below 1e9), elsewhere by more than 1e-9 of the total.

    Raises
    ------
    ValueError
        If the bound is exceeded even with `high`.

    Examples
    --------
    >>> jobs = np.ones(2, dtype=np.int64)
    >>> least_cost(Problem((4, 16), 1, (1, 1), low=jobs, high=1000 * jobs, count=jobs)).instances
    array([12, 24])
    """
    grouped, member = _group(problem)
    if not _fits(grouped, grouped.count * (grouped.high - grouped.low)):
        raise ValueError("the bound on the variance is exceeded even with all instances")
    nothing = np.zeros(len(grouped.cost), dtype=np.int64)
    steps, optimal = (nothing, True) if _fits(grouped, nothing) else _expand_core(grouped)
    return Solution(_spread(grouped, steps, member), optimal)


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

    Examples
    --------
    >>> continuous(np.array([4.0, 16.0]), np.ones(2), np.ones(2), np.full(2, 1e3))
    array([12., 24.])
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


def total_variance(problem: Problem, steps: Ints) -> Fraction:
    """Return ``Σ variance / n`` as a share of the bound, exactly.

    Parameters
    ----------
    problem : k entries
    steps : (k,) array, instances above `low`, spread evenly over the jobs of the entry

    Examples
    --------
    >>> one = np.ones(1, dtype=np.int64)
    >>> total_variance(Problem((1,), 1, (1,), low=one, high=9 * one, count=2 * one), 3 * one)
    Fraction(5, 6)
    """
    level, more = _levels(problem, steps)
    totals: Counter[int] = Counter()
    for value, n, jobs, further in zip(problem.variance, level, problem.count.tolist(), more, strict=True):
        totals[n] += value * (jobs - further)
        totals[n + 1] += value * further
    common = math.lcm(*(n for n, value in totals.items() if value))
    return Fraction(sum(value * (common // n) for n, value in totals.items() if value), common * problem.bound)


def _expand_core(problem: Problem) -> tuple[Ints, bool]:
    """Return the best steps found and whether they are proven best."""
    price = _price(problem)
    answer = _answer(problem, price)
    shortfall = total_variance(problem, answer) - 1
    lower = _cost(problem, answer) + Fraction(price) * shortfall
    base = best = _greedy(problem, price)
    effort_s, size = EFFORT_S, FIRST_CORE
    while not _closed(problem, best, lower):
        gap = float(_cost(problem, best) - lower)
        core = _core(problem, base, price, gap, size)
        better, proven, used_s = _solve(problem, core, base, lower, effort_s)
        best = min(best, better, key=lambda steps: _cost(problem, steps))
        effort_s, size = effort_s - used_s, GROWTH * size
        if core.whole and proven:
            break
        if (core.whole and not proven) or effort_s <= 0:
            return best, False
    return best, True


def _closed(problem: Problem, best: Ints, lower: Fraction) -> bool:
    """Say whether no allocation can be cheaper by a whole unit of cost (or by the tolerance)."""
    cost = _cost(problem, best)
    unit = math.gcd(*problem.cost)
    return cost - lower < max(0.99 * unit, TOLERANCE * cost)


def _group(problem: Problem) -> tuple[Problem, Ints]:
    """Return the problem with identical jobs joined and settled ones fixed, and each job's entry."""
    settled = [v == 0 for v in problem.variance]
    free = [c == 0 and v > 0 for v, c in zip(problem.variance, problem.cost, strict=True)]
    low, high = np.where(free, problem.high, problem.low), np.where(settled, problem.low, problem.high)
    keys = list(zip(problem.variance, problem.cost, low.tolist(), high.tolist(), strict=True))
    first = {key: entry for entry, key in enumerate(dict.fromkeys(keys))}
    member = np.array([first[key] for key in keys], dtype=np.int64)
    variance, cost, lows, highs = zip(*first, strict=True)
    count = np.bincount(member, problem.count).astype(np.int64)
    return Problem(variance, problem.bound, cost, np.array(lows), np.array(highs), count), member


def _spread(problem: Problem, steps: Ints, member: Ints) -> Ints:
    """Return the instances of each job: the first jobs of an entry take the steps that do not divide evenly."""
    level, more = (np.array(part)[member] for part in _levels(problem, steps))
    order = np.argsort(member, kind="stable")
    rank = np.empty_like(member)
    rank[order] = np.arange(len(member)) - np.searchsorted(member[order], member[order])
    return level + (rank < more)


def _levels(problem: Problem, steps: Ints) -> tuple[list[int], list[int]]:
    """Return the instances that every job of an entry has, and how many of its jobs have one more."""
    return (problem.low + steps // problem.count).tolist(), (steps % problem.count).tolist()


def _cost(problem: Problem, steps: Ints) -> int:
    return sum(map(mul, problem.cost, (problem.count * problem.low + steps).tolist()))


def _fits(problem: Problem, steps: Ints) -> bool:
    """Say whether the bound is met: in floating point where that is clear, else exactly."""
    level, more = (np.array(part) for part in _levels(problem, steps))
    total = np.sum(problem.share * ((problem.count - more) / level + more / (level + 1)))
    return bool(total < 1) if abs(total - 1) > 1e-9 else total_variance(problem, steps) <= 1


def _price(problem: Problem) -> float:
    """Return the lowest price of variance at which the answer meets the bound, in floating point."""
    share, below, above = problem.share, 0.0, 1.0
    while np.sum(share * problem.count / _best_level(problem, above)) > 1:
        below, above = above, 2 * above
    while below < (middle := (below + above) / 2) < above:
        exceeds = np.sum(share * problem.count / _best_level(problem, middle)) > 1
        below, above = (middle, above) if exceeds else (below, middle)
    return above


def _best_level(problem: Problem, price: float) -> Ints:
    """Return the n within bounds with the least ``cost n + price variance / n``: the least n(n + 1) >= price · benefit."""
    return np.clip(np.ceil(_root(price * problem.price_benefit)), problem.low, problem.high).astype(np.int64)


def _answer(problem: Problem, price: float) -> Ints:
    return (_best_level(problem, price) - problem.low) * problem.count


def _root(product: Floats) -> Floats:
    """Return x >= 0 with x (x + 1) = product."""
    return 2 * product / (np.sqrt(1 + 4 * product) + 1)


def _greedy(problem: Problem, price: float) -> Ints:
    """Return a cheap allocation: of the steps that are worth just the price as many as needed, dearest first."""
    spread = 1e-12
    while not _fits(problem, above := _answer(problem, price * (1 + spread))):
        spread *= 10
    below = _answer(problem, price / (1 + spread))
    dearest = np.argsort([-value for value in problem.cost], kind="stable")
    entry = np.repeat(dearest, (above - below)[dearest])
    few, many = -1, len(entry)
    while many - few > 1:
        middle = (few + many) // 2
        enough = _fits(problem, below + np.bincount(entry[:middle], minlength=len(below)))
        few, many = (few, middle) if enough else (middle, many)
    return below + np.bincount(entry[:many], minlength=len(below))


def _core(problem: Problem, base: Ints, price: float, gap: float, size: int) -> _Core:
    """Return up to `size` steps of least reduced cost, at most `size` / 16 of any entry to either side."""
    cost, benefit = np.array(problem.cost, dtype=np.float64), price * problem.share
    centre, reach = problem.low + base // problem.count, size // 16
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.ceil(_root(benefit / (cost + gap))) - 1
        last = np.where(cost > gap, np.floor(_root(benefit / (cost - gap))) + 2, problem.high)
    first, last = np.maximum(first, problem.low), np.minimum(last, problem.high)
    from_, to = np.maximum(first, centre - reach).astype(np.int64), np.minimum(last, centre + reach).astype(np.int64)
    steps = np.maximum(to - from_, 0)
    entry = np.repeat(np.arange(len(cost)), steps)
    level = from_[entry] + np.arange(len(entry)) - (np.cumsum(steps) - steps)[entry]
    reduced = np.abs(cost[entry] - benefit[entry] / (level * (level + 1.0)))
    chosen = np.argsort(reduced, kind="stable")[:size]
    whole = bool((steps >= last - first).all()) and len(entry) <= size
    return _Core(entry[chosen], level[chosen], whole)


def _solve(problem: Problem, core: _Core, base: Ints, lower: Fraction, effort_s: float) -> tuple[Ints, bool, float]:
    """Return the best steps with all but the core as in `base`, whether proven, and the effort.

    Coefficients are rounded so that no allocation within the bound is lost. If the one found is not within it after
    all, they are rounded the safe way, and what is then found is not proven.
    """
    jobs = problem.count[core.entry]
    taken = np.clip(base[core.entry] - (core.level - problem.low[core.entry]) * jobs, 0, jobs)
    fixed = base - _counted(core, taken, len(base))
    steps, used_s = problem.count * (problem.high - problem.low), 0.0
    for safe in (False, True):
        status, chosen, more_s = _cp_sat(problem, core, fixed, lower, effort_s, safe)
        used_s += more_s
        if status == cp_model.INFEASIBLE:
            return steps, not safe, used_s
        if chosen is not None and _fits(problem, found := fixed + _counted(core, chosen, len(fixed))):
            return found, status == cp_model.OPTIMAL and not safe, used_s
    return steps, False, used_s


def _counted(core: _Core, chosen: Ints, entries: int) -> Ints:
    return np.bincount(core.entry, chosen, entries).astype(np.int64)


def _cp_sat(
    problem: Problem, core: _Core, fixed: Ints, lower: Fraction, effort_s: float, safe: bool
) -> tuple[int, Ints | None, float]:
    """Return CP-SAT's status, how often it takes each step of the core, and the deterministic time spent."""
    need, gain = _scaled_gains(problem, core, total_variance(problem, fixed) - 1, safe)
    floor, cost = _scaled_costs(problem, core, lower - _cost(problem, fixed))
    model = cp_model.CpModel()
    times = [model.new_int_var(0, jobs, "") for jobs in problem.count[core.entry].tolist()]
    model.add(cp_model.LinearExpr.weighted_sum(times, gain) >= need)
    model.add(cp_model.LinearExpr.weighted_sum(times, cost) >= floor)
    model.minimize(cp_model.LinearExpr.weighted_sum(times, cost))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    solver.parameters.max_deterministic_time = effort_s
    solver.parameters.absolute_gap_limit = TOLERANCE * _cost(problem, fixed) * sum(cost) / _core_cost(problem, core)
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    chosen = np.array([solver.value(each) for each in times], dtype=np.int64) if found else None
    return status, chosen, solver.response_proto.deterministic_time


def _scaled_gains(problem: Problem, core: _Core, need: Fraction, safe: bool) -> tuple[int, list[int]]:
    """Return the variance to remove and what each step removes, rounded against (`safe`) or for feasibility."""
    gains = [
        Fraction(problem.variance[entry], problem.bound * level * (level + 1))
        for entry, level in zip(core.entry.tolist(), core.level.tolist(), strict=True)
    ]
    scale = RESOLUTION / sum(map(mul, gains, problem.count[core.entry].tolist()))
    down, up = math.floor, math.ceil
    need_rounded, gain_rounded = (up, down) if safe else (down, up)
    return max(0, need_rounded(need * scale)), [gain_rounded(gain * scale) for gain in gains]


def _scaled_costs(problem: Problem, core: _Core, lower: Fraction) -> tuple[int, list[int]]:
    """Return a lower bound on the core's cost and the cost of each step: exact if they are small enough."""
    unit = math.gcd(*problem.cost)
    divisor = max(unit, -(-_core_cost(problem, core) // RESOLUTION))
    rounding = 0 if divisor == unit else int(problem.count[core.entry].sum())
    cost = [problem.cost[entry] // divisor for entry in core.entry.tolist()]
    return math.ceil((lower - Fraction(unit, 100)) / divisor) - rounding, cost


def _core_cost(problem: Problem, core: _Core) -> int:
    return sum(map(mul, (problem.cost[entry] for entry in core.entry.tolist()), problem.count[core.entry].tolist()))
