"""A small min-knapsack in whole numbers: the cheapest items that together gain enough.

Two solvers: a sweep that is fast where costs and gains agree on which items are good, and OR-tools' CP-SAT.
"""

from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from models.arrays import Floats, Ints

STATES = 1 << 16
"""Combinations of items that the sweep keeps."""
WORK = 1 << 23
"""Combinations that the sweep looks at before it gives up."""

States = tuple[Ints, Ints, Floats, Ints]
"""Combinations of moves by growing cost: cost, gain, loss, and number of the combination."""


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


def sweep(knapsack: Knapsack, taken: Ints, loss: Floats, spare: float) -> tuple[Ints | None, bool]:
    """Return the cheapest items met by trying moves one by one, keeping undominated combinations.

    A combination dominates another if it costs no more and gains no less (Nemhauser and Ullmann 1969).

    Parameters
    ----------
    knapsack : n items
    taken : (n,) array, where to start, whether it gains enough or not
    loss : (n,) array, least rise of a lower bound on the cost by each unit that x differs from `taken`
    spare : how far that lower bound lies below the ceiling with `taken`

    Returns
    -------
    (n,) array or None, bool
        Items, None if none within the ceiling were met; and whether the search was complete, so that there are no
        cheaper ones.
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

    Parameters
    ----------
    knapsack : sums of cost and of gain stay below 2**62
    effort_s : deterministic time after which it gives up
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
    """Return numbers of which some add up to each of 0..most: powers of two and what is left.

    >>> _powers(9)
    [1, 2, 4, 2]
    """
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
    cost, gain, loss, number = (np.concatenate(pair) for pair in zip(old, new, strict=True))
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
