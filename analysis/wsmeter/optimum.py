"""Whole numbers of instances at the least cost, with a proof.

Every further instance of a job costs the same and removes less variance than the one before. So the problem is a
min-knapsack whose items are the steps from n to n + 1, and a price of variance (the Lagrange multiplier) settles all
but a few of them: the core, which is solved by a sweep, fast where costs and gains agree on which steps are good, and
by OR-tools' CP-SAT.
"""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np
from ortools.sat.python import cp_model

from models.arrays import Floats, Ints
from models.errors import InputError

TOLERANCE = 1e-9
"""Share of the cost up to which a cost counts as the least where the costs have no common unit above it."""
CORES = (1 << 10, 1 << 17)
"""Most steps in the first core and in the second."""
SMALL = 64
"""Up to this many open steps CP-SAT is asked first for a proof, beyond only where the sweep gives none."""
EFFORT_S = 0.5
"""Deterministic time (about seconds, the same on every machine) that CP-SAT may spend on a core."""
RESOLUTION = 1 << 50
"""Coefficients of a core add up to this much, so that sums stay far below 64 bits."""
STATES = 1 << 16
"""Combinations of items that the sweep keeps."""
WORK = 1 << 23
"""Combinations that the sweep looks at before it gives up."""

States = tuple[Ints, Ints, Floats, Ints]
"""Combinations of moves by growing cost: cost, gain, loss, and number of the combination."""


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


def levels(problem: Problem, steps: Ints) -> tuple[Ints, Ints]:
    """Return the instances that every job of an entry has, and how many of its jobs have one more.

    `steps`, a (k,) array over entries, are instances above `low`, spread evenly over the jobs of the entry.
    """
    return problem.low + steps // problem.count, steps % problem.count


def total_cost(problem: Problem, steps: Ints) -> int:
    """Return ``Σ cost n`` exactly."""
    return sum(map(mul, problem.cost, (problem.count * problem.low + steps).tolist()))


def total_variance(problem: Problem, steps: Ints) -> Fraction:
    """Return ``Σ variance / n`` as a share of the bound, exactly."""
    level, more = (part.tolist() for part in levels(problem, steps))
    totals: Counter[int] = Counter()
    for variance, n, jobs, further in zip(problem.variance, level, problem.count.tolist(), more, strict=True):
        totals[n] += variance * (jobs - further)
        totals[n + 1] += variance * further
    common = math.lcm(*(n for n, variance in totals.items() if variance))
    return Fraction(sum(variance * (common // n) for n, variance in totals.items() if variance), common * problem.bound)


def fits(problem: Problem, steps: Ints) -> bool:
    """Return whether the bound on the variance is met: in floating point where that is clear, else exactly."""
    level, more = levels(problem, steps)
    total = np.sum(problem.share * ((problem.count - more) / level + more / (level + 1)))
    return bool(total < 1) if abs(total - 1) > 1e-9 else total_variance(problem, steps) <= 1


@dataclass(frozen=True, slots=True, eq=False)
class Knapsack:
    """Minimise ``cost · x`` with ``gain · x >= need``, ``0 <= x <= count`` and ``floor <= cost · x <= ceiling``."""

    cost: Ints
    gain: Ints
    count: Ints
    need: int
    floor: int
    """A known lower bound."""
    ceiling: int
    """What is more expensive is of no interest."""
    tolerance: float
    """A difference in cost that does not matter."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Instances of each job, and whether it is proven that no allocation is cheaper."""

    instances: Ints
    optimal: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Priced:
    """What a price of variance says: a lower bound on the cost, and the steps that it leaves open."""

    price: float
    """Cost per variance, with the bound as the unit of variance."""
    lower: Fraction
    """No allocation within the bound costs less."""
    base: Ints
    """Steps of an allocation within the bound; it differs from the price's answer only in steps worth the price."""


@dataclass(frozen=True, slots=True, eq=False)
class _Core:
    """Steps that are still open, in order of reduced cost."""

    entry: Ints
    level: Ints
    """Instances that the step starts from."""
    reduced: Floats
    """Cost above the price if it is taken or left against `base`."""
    whole: bool
    """Whether every step that a better allocation could take or leave is among them."""


def least_cost(problem: Problem) -> Solution:
    """Return the cheapest whole numbers of instances within the bound on the variance, with a proof.

    A price of variance gives a lower bound on the cost and a first allocation. A cheaper one differs from the price's
    answer only in steps whose reduced cost is below the gap between the two (reduced-cost fixing). A sweep over
    undominated combinations of such steps (Nemhauser and Ullmann 1969) narrows the gap and so the core of open steps
    (Pisinger 1995, "An expanding-core algorithm for the exact 0-1 knapsack problem"). That nothing cheaper is left is
    proven by CP-SAT, or by the sweep if it was complete. Whether an allocation meets the bound is decided in exact
    arithmetic. A job that costs nothing gets `high`, one without variance `low`.

    Parameters
    ----------
    problem : all jobs at `high` must meet the bound

    Returns
    -------
    Solution
        If `optimal`, no allocation is cheaper: exactly so where the greatest common divisor of the costs exceeds 1e-9
        of the total (as with whole costs and a total below 1e9), elsewhere by more than 1e-9 of the total.
    """
    grouped, member = _group(problem)
    if not fits(grouped, grouped.count * (grouped.high - grouped.low)):
        raise InputError("the bound on the variance is exceeded even with all instances")
    nothing = np.zeros(len(grouped.cost), dtype=np.int64)
    steps, optimal = (nothing, True) if fits(grouped, nothing) else _search(grouped)
    return Solution(_spread(grouped, steps, member), optimal)


def _group(problem: Problem) -> tuple[Problem, Ints]:
    """Return the problem with identical jobs joined and settled ones fixed, and each job's entry."""
    settled = [variance == 0 for variance in problem.variance]
    free = [cost == 0 and not done for cost, done in zip(problem.cost, settled, strict=True)]
    low, high = np.where(free, problem.high, problem.low), np.where(settled, problem.low, problem.high)
    keys = list(zip(problem.variance, problem.cost, low.tolist(), high.tolist(), strict=True))
    entries = {key: entry for entry, key in enumerate(dict.fromkeys(keys))}
    member = np.array([entries[key] for key in keys], dtype=np.int64)
    variance, cost, lows, highs = zip(*entries, strict=True)
    count = np.bincount(member, problem.count).astype(np.int64)
    return Problem(variance, problem.bound, cost, np.array(lows), np.array(highs), count), member


def _spread(problem: Problem, steps: Ints, member: Ints) -> Ints:
    """Return the instances of each job: the first jobs of an entry take the steps that do not divide evenly."""
    level, more = (part[member] for part in levels(problem, steps))
    order = np.argsort(member, kind="stable")
    rank = np.empty_like(member)
    rank[order] = np.arange(len(member)) - np.searchsorted(member[order], member[order])
    return level + (rank < more)


def _search(problem: Problem) -> tuple[Ints, bool]:
    """Return the best steps found and whether they are proven best."""
    priced = _priced(problem)
    best = priced.base
    for size in CORES:
        if _closed(problem, best, priced):
            return best, True
        core = _core(problem, priced, best, size)
        best, complete = _swept(problem, priced, core, best)
        best, proven = _proven(problem, priced, best, size, SMALL)
        if proven or (core.whole and complete):
            return best, True
    return _proven(problem, priced, best, CORES[-1], CORES[-1])


def _unit(problem: Problem, steps: Ints) -> float:
    """Return how much cheaper another allocation must be to count as cheaper."""
    return max(float(math.gcd(*problem.cost)), TOLERANCE * total_cost(problem, steps))


def _gap(problem: Problem, best: Ints, priced: _Priced) -> float:
    """Return how much a cheaper allocation may cost above the lower bound; below 0 there is none."""
    return float(total_cost(problem, best) - priced.lower) - 0.99 * _unit(problem, best)


def _closed(problem: Problem, best: Ints, priced: _Priced) -> bool:
    return _gap(problem, best, priced) < 0


def _priced(problem: Problem) -> _Priced:
    """Return what the lowest price at which the answer meets the bound (in floating point) says."""
    share, below, above = problem.share * problem.count, 0.0, 1.0
    while np.sum(share / _best_level(problem, above)) > 1:
        below, above = above, 2 * above
    while below < (middle := (below + above) / 2) < above:
        exceeds = np.sum(share / _best_level(problem, middle)) > 1
        below, above = (middle, above) if exceeds else (below, middle)
    answer = _answer(problem, above)
    lower = total_cost(problem, answer) + Fraction(above) * (total_variance(problem, answer) - 1)
    return _Priced(above, lower, _greedy(problem, above))


def _best_level(problem: Problem, price: float) -> Ints:
    """Return the n within bounds with the least ``cost n + price variance / n``."""
    cost = np.array([max(cost, 1) for cost in problem.cost], dtype=np.float64)
    level = np.ceil(_root(price * problem.share / cost))
    return np.clip(level, problem.low, problem.high).astype(np.int64)


def _answer(problem: Problem, price: float) -> Ints:
    return (_best_level(problem, price) - problem.low) * problem.count


def _root(product: Floats) -> Floats:
    """Return n >= 0 with n (n + 1) = product, where a step from n is worth just the price."""
    root: Floats = 2 * product / (np.sqrt(1 + 4 * product) + 1)
    return root


def _greedy(problem: Problem, price: float) -> Ints:
    """Return a cheap allocation: of the steps that are worth just the price all but those to spare, dearest first."""
    spread = 1e-12
    while not fits(problem, above := _answer(problem, price * (1 + spread))):
        spread *= 10
    optional = np.minimum(above - _answer(problem, price / (1 + spread)), problem.count)
    steps, slack = above.copy(), float(1 - total_variance(problem, above)) * (1 - 1e-9)
    level = problem.low + (above - 1) // problem.count
    gain = problem.share / np.maximum(level * (level + 1.0), 1.0)
    for entry in sorted(np.flatnonzero(optional).tolist(), key=lambda entry: -problem.cost[entry]):
        dropped = min(int(optional[entry]), int(slack / gain[entry]))
        steps[entry] -= dropped
        slack -= dropped * float(gain[entry])
    return steps if fits(problem, steps) else above


def _core(problem: Problem, priced: _Priced, best: Ints, size: int) -> _Core:
    """Return up to `size` open steps of least reduced cost, at most `size` / 8 of any entry to either side."""
    cost, worth = np.array(problem.cost, dtype=np.float64), priced.price * problem.share
    gap = _gap(problem, best, priced) * (1 + 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.ceil(_root(worth / (cost + gap))) - 1
        last = np.where(cost > gap, np.floor(_root(worth / (cost - gap))) + 2, problem.high)
    first, last = (np.clip(end, problem.low, problem.high).astype(np.int64) for end in (first, last))
    centre, reach = problem.low + priced.base // problem.count, size // 8
    while (steps := np.minimum(last, centre + reach) - np.maximum(first, centre - reach)).clip(
        0
    ).sum() > 4 * size and reach > 1:
        reach //= 2
    begin, steps = np.maximum(first, centre - reach), steps.clip(0)
    entry = np.repeat(np.arange(len(cost)), steps)
    level = begin[entry] + np.arange(len(entry)) - (np.cumsum(steps) - steps)[entry]
    reduced = np.abs(cost[entry] - worth[entry] / (level * (level + 1.0)))
    open_steps = np.flatnonzero(reduced <= gap)
    chosen = open_steps[np.argsort(reduced[open_steps], kind="stable")][:size]
    whole = bool((steps >= last - first).all()) and len(chosen) == len(open_steps)
    return _Core(entry[chosen], level[chosen], reduced[chosen], whole)


def _taken(problem: Problem, core: _Core, steps: Ints) -> Ints:
    """Return by how many jobs of the entry each step of the core is taken."""
    jobs = problem.count[core.entry]
    return np.clip(steps[core.entry] - (core.level - problem.low[core.entry]) * jobs, 0, jobs)


def _knapsack(problem: Problem, priced: _Priced, core: _Core, best: Ints, safe: bool = False) -> tuple[Knapsack, int]:
    """Return the core as a knapsack that asks for something cheaper than `best`, and the cost of its unit.

    Costs are exact if they are small enough, else rounded down. Gains are rounded so that no allocation within the
    bound is lost, or so that none beyond it is let in (`safe`).
    """
    fixed = priced.base - _counted(core, _taken(problem, core, priced.base), len(best))
    entries, jobs = core.entry.tolist(), problem.count[core.entry].tolist()
    gains = [
        Fraction(problem.variance[entry], problem.bound * level * (level + 1))
        for entry, level in zip(entries, core.level.tolist(), strict=True)
    ]
    scale = RESOLUTION / sum(map(mul, gains, jobs))
    round_need, round_gain = (math.ceil, math.floor) if safe else (math.floor, math.ceil)
    costs = [problem.cost[entry] for entry in entries]
    divisor = max(math.gcd(*problem.cost), -(-sum(map(mul, costs, jobs)) // RESOLUTION))
    spent, unit = total_cost(problem, fixed), Fraction(_unit(problem, best))
    lost = 0 if divisor == math.gcd(*problem.cost) else sum(jobs)
    knapsack = Knapsack(
        cost=np.array([cost // divisor for cost in costs], dtype=np.int64),
        gain=np.array([round_gain(gain * scale) for gain in gains], dtype=np.int64),
        count=problem.count[core.entry],
        need=max(0, round_need((total_variance(problem, fixed) - 1) * scale)),
        floor=math.ceil((priced.lower - spent - unit / 100) / divisor) - lost,
        ceiling=math.floor((total_cost(problem, best) - spent - unit * 99 / 100) / divisor),
        tolerance=TOLERANCE * spent / divisor,
    )
    return knapsack, divisor


def _swept(problem: Problem, priced: _Priced, core: _Core, best: Ints) -> tuple[Ints, bool]:
    """Return the best allocation that the sweep meets, and whether the core holds no better one."""
    if not len(core.entry):
        return best, True
    knapsack, divisor = _knapsack(problem, priced, core, best)
    taken, gap = _taken(problem, core, priced.base), _gap(problem, best, priced)
    chosen, complete = sweep(knapsack, taken, core.reduced / divisor, gap / divisor)
    steps = best if chosen is None else priced.base + _counted(core, chosen - taken, len(best))
    return (steps, complete) if fits(problem, steps) else (best, False)


def _proven(problem: Problem, priced: _Priced, best: Ints, size: int, most: int) -> tuple[Ints, bool]:
    """Return the best allocation by CP-SAT, and whether it is proven to be; only if `most` steps at most are open.

    If what it finds is not within the bound after all, gains are rounded the safe way, and nothing is proven.
    """
    if _closed(problem, best, priced):
        return best, True
    core = _core(problem, priced, best, size)
    if not core.whole or not 0 < len(core.entry) <= most:
        return best, core.whole and not len(core.entry)
    fixed = priced.base - _counted(core, _taken(problem, core, priced.base), len(best))
    for safe in (False, True):
        chosen, proven = prove(_knapsack(problem, priced, core, best, safe)[0], EFFORT_S)
        if chosen is None:
            return best, proven and not safe
        if fits(problem, steps := fixed + _counted(core, chosen, len(best))):
            return steps, proven and not safe
    return best, False


def _counted(core: _Core, chosen: Ints, entries: int) -> Ints:
    return np.bincount(core.entry, chosen, entries).astype(np.int64)


def sweep(knapsack: Knapsack, taken: Ints, loss: Floats, spare: float) -> tuple[Ints | None, bool]:
    """Return the cheapest items met by trying moves one by one, keeping undominated combinations.

    A combination dominates another if it costs no more and gains no less (Nemhauser and Ullmann 1969).

    It starts from `taken`, an (n,) array of items that may gain too little. `loss`, (n,), is the least rise of a lower
    bound on the cost by each unit that x differs from it, and `spare` how far that bound lies below the ceiling. The
    items are None if none within the ceiling were met; the flag says that the search was complete: none are cheaper.
    """
    item, times, rise = _moves(knapsack, taken, loss)
    states = (np.array([knapsack.cost @ taken]), np.array([knapsack.gain @ taken]), np.zeros(1), np.zeros(1, np.int64))
    parents, numbered, number = [states[3]], 1, 0
    spare, ceiling, complete = spare * (1 + 1e-9), knapsack.ceiling, True
    for cost, gain, lost in zip(times * knapsack.cost[item], times * knapsack.gain[item], rise, strict=True):
        states = _select(states, states[2] + lost <= spare)
        if not len(states[0]) or numbered > WORK:
            break
        parents.append(states[3])
        moved = (states[0] + cost, states[1] + gain, states[2] + lost, numbered + np.arange(len(states[0])))
        numbered += len(states[0])
        states, thinned = _undominated(states, moved)
        complete = complete and not thinned
        enough = np.flatnonzero((states[1] >= knapsack.need) & (states[0] <= ceiling))[:1]
        if len(enough):
            cheapest, number = int(states[0][enough[0]]), int(states[3][enough[0]])
            spare, ceiling = spare - (ceiling + 1 - cheapest), cheapest - 1
    path = _path(parents, number)
    chosen = taken + np.bincount(item[path], times[path], len(taken)).astype(np.int64)
    return (chosen if number else None), complete and numbered <= WORK


def prove(knapsack: Knapsack, effort_s: float) -> tuple[Ints | None, bool]:
    """Return the cheapest items by CP-SAT, None if there are none within the ceiling, and whether that is proven.

    It gives up after the deterministic time `effort_s`; sums of cost and of gain stay below 2**62.
    """
    model = cp_model.CpModel()
    times = [model.new_int_var(0, count, "") for count in knapsack.count.tolist()]
    cost = cp_model.LinearExpr.weighted_sum(times, knapsack.cost.tolist())
    model.add(cp_model.LinearExpr.weighted_sum(times, knapsack.gain.tolist()) >= knapsack.need)
    model.add_linear_constraint(cost, knapsack.floor, knapsack.ceiling)
    model.minimize(cost)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.cp_model_presolve = False  # on knapsacks of a few hundred items it takes longer than it saves
    solver.parameters.max_deterministic_time = effort_s
    solver.parameters.absolute_gap_limit = knapsack.tolerance
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, status == cp_model.INFEASIBLE
    return np.array([solver.value(count) for count in times], dtype=np.int64), status == cp_model.OPTIMAL


def _moves(knapsack: Knapsack, taken: Ints, loss: Floats) -> tuple[Ints, Ints, Floats]:
    """Return item, signed number of units and loss of moves that reach every x from `taken`, by growing loss."""
    moves = [
        (item, sign * units)
        for item, (up, down) in enumerate(zip((knapsack.count - taken).tolist(), taken.tolist(), strict=True))
        for sign, most in ((1, up), (-1, down))
        for units in _powers(most)
    ]
    item, times = np.array(moves, dtype=np.int64).T
    rise = np.abs(times) * loss[item]
    order = np.argsort(rise, kind="stable")
    return item[order], times[order], rise[order]


def _powers(most: int) -> list[int]:
    """Return numbers of which some add up to each of 0..most: powers of two and what is left, for 9: 1, 2, 4, 2."""
    powers: list[int] = []
    while most:
        powers.append(min(1 << len(powers), most))
        most -= powers[-1]
    return powers


def _select(states: States, which: Ints) -> States:
    cost, gain, loss, number = states
    return cost[which], gain[which], loss[which], number[which]


def _undominated(old: States, new: States) -> tuple[States, bool]:
    """Return the combinations that no cheaper one matches in gain, and whether some were dropped beyond `STATES`."""
    cost, gain = np.concatenate([old[0], new[0]]), np.concatenate([old[1], new[1]])
    loss, number = np.concatenate([old[2], new[2]]), np.concatenate([old[3], new[3]])
    states = _select((cost, gain, loss, number), np.argsort(cost, kind="stable"))
    most = np.maximum.accumulate(states[1])
    states = _select(states, np.flatnonzero(np.concatenate([[True], states[1][1:] > most[:-1]])))
    if len(states[0]) <= STATES:
        return states, False
    return _select(states, np.linspace(0, len(states[0]) - 1, STATES).astype(np.int64)), True


def _path(parents: list[Ints], number: int) -> list[int]:
    """Return the moves that made a combination; the combinations of each move are numbered after those before."""
    starts = np.cumsum([0, *map(len, parents)])
    moves: list[int] = []
    while number:
        move = int(np.searchsorted(starts, number, "right")) - 1
        moves.append(move - 1)
        number = int(parents[move][number - starts[move]])
    return moves
