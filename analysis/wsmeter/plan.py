"""The sample-size plan: how many instances of each job to observe for a margin of error, at the least cost."""

import math
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np
import pandas as pd

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.optimum import Problem, Solution, least_cost, total_variance
from analysis.wsmeter.summaries import Current, Table
from models.arrays import Floats, Ints
from models.errors import InputError, WscError

COLUMNS = ("job", "weight", "mean", "std", "instances", "cost")


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """How many instances of each job to observe, what that costs and what it promises."""

    allocation: pd.DataFrame
    """Columns job, instances and continuous, the real-valued optimum."""
    cost: float
    margin: float
    """Achieved margin of error, relative to the current metric."""
    optimal: bool
    """Whether it is proven that no whole numbers of instances are cheaper."""
    continuous_cost: float
    """Cost of the real-valued optimum, below which no plan can be."""
    jobs_below_minimum: int
    """Jobs that have fewer instances than the minimum; all of theirs are observed."""


class MarginOutOfReachError(WscError):
    """Not even all instances reach the margin; `best` is the margin that they reach, `margin` the one asked for."""

    def __init__(self, margin: float, best: float) -> None:
        wanted, least = (f"{100.0 * share:.4g}%" for share in (margin, best))
        super().__init__(f"margin {wanted} is out of reach: observing all instances gives {least}")
        self.margin, self.best = margin, best


def plan(table: pd.DataFrame, margin: float, t: float = 2.0, min_instances: int = 4) -> Plan:
    """Return the cheapest numbers of instances for a margin of error (Lee et al. 2018, WSMeter, section 4.3).

    Minimises ``Σ N cost`` with ``min <= N <= max`` and ``Σ w² σ² / N <= (margin · μ / t)²``, where ``μ = Σ w μ`` is the
    current metric and the weights sum to 1. Bounds are inclusive, and the maximum is the job's number of instances; a
    job with fewer than `min_instances` is observed whole. Covariance between jobs is left out, as in the paper.

    Numbers count as the decimals they print as (0.3 is three tenths), so that a margin that is met exactly is met.

    Parameters
    ----------
    table : columns job, weight (0 or more; normalised here), mean and std (units of the metric; std over the whole
        population), instances (1 or more), cost (of observing one instance, 0 or more)
    margin : relative to μ, above 0
    t : half-width of the interval in standard errors
    min_instances : fewest instances of a job, 1 or more

    Returns
    -------
    Plan
        In the order of `table`. `optimal` is exact for whole costs with a total below 1e9, otherwise up to 1e-9 of the
        cost (see `analysis.wsmeter.optimum.least_cost`).

    Raises
    ------
    MarginOutOfReachError
        If all instances give a larger margin; it carries the best one.
    ValueError
        If the table lacks a column, has no job, a job twice or an impossible value, or if a parameter or the weighted
        mean is not above 0.

    Examples
    --------
    >>> services = pd.DataFrame({"job": ["compute", "network"], "weight": 0.5, "mean": 100.0, "std": [7.4, 17.5]})
    >>> cheapest = plan(services.assign(instances=1500, cost=1.0), margin=0.03)
    >>> cheapest.cost, round(cheapest.continuous_cost, 2), cheapest.optimal
    (69.0, 68.89, True)
    """
    _check(table, margin, t, min_instances)
    problem = _problem(table, margin, t, min_instances)
    solution = least_cost(problem)
    return _plan(table, problem, margin, min_instances, solution)


def plannable(current: Table, jobs: pd.DataFrame | None = None, min_instances: int = 4) -> pd.DataFrame:
    """Return the table that a plan is made from: the jobs with enough instances in the whole fleet (section 5.1).

    Parameters
    ----------
    current : measurement table of the current fleet, or its summary
    jobs : columns job, quota, instances; without it the current table's own sums and counts
    min_instances : least instances of a job

    Returns
    -------
    DataFrame
        job, weight (sums to 1), mean, std (the population's), instances (the most that can be observed), cost (CPU
        quota of one instance).

    Raises
    ------
    NotEnoughDataError
        If no job has enough instances.

    Examples
    --------
    >>> table = pd.DataFrame({"job": list("aaaab"), "machine": range(5), "weight": 2.0, "value": 1.0})
    >>> plannable(table)
      job  weight  mean  std  instances  cost
    0   a     1.0   1.0  0.0          4   2.0
    """
    known = Current.of(current)
    instances = known.instances
    table = pd.DataFrame(
        {
            "job": known.job,
            "weight": known.weight,
            "mean": known.mean,
            "std": np.where(instances > 1, known.std * np.sqrt((instances - 1) / instances), 0.0),
            "instances": instances,
            "cost": known.weight / instances,
        }
    )
    if jobs is not None:
        whole = jobs[["job", "quota", "instances"]].rename(columns={"quota": "weight"})
        table = table.drop(columns=["weight", "instances"]).merge(whole, on="job")
    enough = table[table["instances"] >= min_instances].reset_index(drop=True)
    if enough.empty:
        have = int(table["instances"].max()) if len(table) else 0
        raise NotEnoughDataError(min_instances, have, "instances of one job in the fleet")
    return enough.assign(weight=enough["weight"] / enough["weight"].sum())


def rounded(table: pd.DataFrame, margin: float, t: float = 2.0, min_instances: int = 4) -> Plan:
    """Return the real-valued optimum rounded up, as in Table 2 of the paper (Lee et al. 2018, WSMeter, section 6.5).

    It meets the margin and costs less than one instance of every job more than the optimum.

    Parameters
    ----------
    table, margin, t, min_instances : as for `plan`

    Returns
    -------
    Plan
        `optimal` is false: nothing is proven.

    Raises
    ------
    MarginOutOfReachError, ValueError
        As for `plan`.

    Examples
    --------
    >>> services = pd.DataFrame({"job": ["compute", "network"], "weight": 0.5, "mean": 100.0, "std": [7.4, 17.5]})
    >>> rounded(services.assign(instances=1500, cost=1.0), margin=0.03).allocation["instances"].tolist()
    [21, 49]
    """
    _check(table, margin, t, min_instances)
    problem = _problem(table, margin, t, min_instances)
    whole = np.ceil(np.round(_continuous(problem), 9)).astype(np.int64)
    return _plan(table, problem, margin, min_instances, Solution(whole, optimal=False))


def _plan(table: pd.DataFrame, problem: Problem, margin: float, min_instances: int, solution: Solution) -> Plan:
    real, instances = _continuous(problem), solution.instances
    cost = table["cost"].to_numpy(dtype=np.float64)
    allocation = pd.DataFrame({"job": table["job"].to_numpy(), "instances": instances, "continuous": real})
    return Plan(
        allocation=allocation,
        cost=float(sum(map(mul, _decimals(table["cost"]), instances.tolist()))),
        margin=_margin(problem, margin, instances),
        optimal=solution.optimal,
        continuous_cost=float(cost @ real),
        jobs_below_minimum=int((table["instances"].to_numpy() < min_instances).sum()),
    )


def _problem(table: pd.DataFrame, margin: float, t: float, min_instances: int) -> Problem:
    """Return the problem in whole numbers.

    The weights are left as they are: their sum cancels between the variance and the square of the mean.
    """
    weight, mean, std, cost = (_decimals(table[name]) for name in ("weight", "mean", "std", "cost"))
    metric = sum(map(mul, weight, mean), Fraction(0))
    if metric <= 0:
        raise InputError(f"the weighted mean must be above 0, got {float(metric / sum(weight)):g}")
    bound = (_decimal(margin) * metric / _decimal(t)) ** 2
    *variance, bound_units = _in_units([*((w * s) ** 2 for w, s in zip(weight, std, strict=True)), bound])
    cost_units = _in_units(cost)
    high = table["instances"].to_numpy(dtype=np.int64)
    low = np.minimum(high, min_instances)
    problem = Problem(tuple(variance), bound_units, tuple(cost_units), low, high, np.ones_like(high))
    if total_variance(problem, high - low) > 1:
        raise MarginOutOfReachError(margin, _margin(problem, margin, high))
    return problem


def _margin(problem: Problem, margin: float, instances: Ints) -> float:
    """Return the margin of error: it goes as the root of the variance, which is 1 at the margin asked for."""
    return margin * math.sqrt(total_variance(problem, instances - problem.low))


def _continuous(problem: Problem) -> Floats:
    cost = np.array(problem.cost, dtype=np.float64)
    return continuous(problem.share, cost, problem.low.astype(np.float64), problem.high.astype(np.float64))


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


def _decimal(value: float) -> Fraction:
    return Fraction(repr(float(value)))


def _decimals(column: pd.Series) -> list[Fraction]:
    return [_decimal(value) for value in column.tolist()]


def _in_units(values: list[Fraction]) -> list[int]:
    """Return values as whole multiples of the largest unit that 1 and all of them are multiples of."""
    units = math.lcm(*(value.denominator for value in values))
    return [int(value * units) for value in values]


def _check(table: pd.DataFrame, margin: float, t: float, min_instances: int) -> None:
    """Raise ValueError for a parameter or a table that makes no sense."""
    for name, value in (("margin", margin), ("t", t)):
        if not (math.isfinite(value) and value > 0):
            raise InputError(f"{name} must be a finite number above 0, got {value}")
    if min_instances < 1:
        raise InputError(f"min_instances must be at least 1, got {min_instances}")
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise InputError(f"the table lacks {', '.join(missing)}")
    if table.empty:
        raise InputError("the table has no job")
    if table["job"].duplicated().any():
        raise InputError(f"job {table['job'][table['job'].duplicated()].iloc[0]} is there twice")
    _check_values(table)


def _check_values(table: pd.DataFrame) -> None:
    least = {"weight": 0.0, "mean": -math.inf, "std": 0.0, "instances": 1.0, "cost": 0.0}
    for name, bound in least.items():
        value = table[name].to_numpy(dtype=np.float64)
        wrong = ~np.isfinite(value) | (value < bound) | ((name == "instances") & (value % 1 != 0))
        if wrong.any():
            kind = "a whole number" if name == "instances" else "a number"
            at_least = f" of at least {bound:g}" if math.isfinite(bound) else ""
            got = f"got {value[wrong][0]} for job {table['job'].to_numpy()[wrong][0]}"
            raise InputError(f"{name} must be {kind}{at_least}, {got}")
    if not table["weight"].sum() > 0:
        raise InputError(f"the weights must add up to more than 0, got {table['weight'].sum()}")
