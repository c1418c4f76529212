"""The assignment by simulated annealing, which the paper used: from the present one, by moves that keep capacities.

A move takes a random amount of a job from one platform to another. Where that one is full, a random job there makes
room in exchange. More expensive assignments are accepted with probability exp(−Δ/T); T falls geometrically (Kirkpatrick
et al. 1983). Nothing is ever accepted that exceeds a capacity, so the search may be stopped at any time.
"""

import math

import numpy as np
from numba import njit

from models.arrays import Floats
from models.errors import InputError

MOVES = 8_000_000
"""Moves, for 100 jobs on 4 platforms; more pairs take more in proportion."""
_PAIRS = 400
_MOST_MOVES = 40_000_000
_HOT, _COLD = 3e-1, 1e-5
"""Temperatures at the start and at the end, in mean cycles of a job."""
_WHOLE = 0.5
_DUST = 1e-11


def anneal(cost: Floats, load: Floats, capacity: Floats, seed: int, moves: int | None = None) -> Floats:
    """Return a cheap assignment that keeps the capacities.

    Parameters
    ----------
    cost : (J, I) cycles per instruction, infinite where a job may not run
    load : (J, I) instructions; the assignment to begin with, within the capacities
    capacity : (I,) cycles
    seed : of the moves
    moves : how many are tried; in proportion to J × I without it

    Returns
    -------
    (J, I) instructions.

    Raises
    ------
    ValueError
        If the assignment to begin with exceeds a capacity by more than rounding, or is not allowed.

    Examples
    --------
    >>> table_1 = np.array([[1.0, 1.0], [1.0, 2.0]])
    >>> found = anneal(table_1, np.full((2, 2), 100.0), np.array([200.0, 300.0]), seed=1, moves=20_000)
    >>> round(float((table_1 * found).sum()), 2)
    400.0
    """
    known = np.where(np.isfinite(cost), cost, 0.0)
    if (load[~np.isfinite(cost)] > 0).any():
        raise InputError("the assignment to begin with has jobs where they may not run")
    used = np.asarray((known * load).sum(axis=0))
    if (used > capacity * (1.0 + 1e-6)).any():
        raise InputError("the assignment to begin with exceeds a capacity")
    scale = float(used.sum()) / max(1, len(cost))
    if scale <= 0 or cost.shape[1] < 2:
        return np.array(load)
    tries = min(_MOST_MOVES, math.ceil(MOVES * max(1.0, cost.size / _PAIRS))) if moves is None else moves
    heat = scale * _HOT, scale * _COLD
    made = _anneal(np.random.default_rng(seed), (cost, np.maximum(capacity, used)), np.array(load), heat, tries)
    made[made < _DUST * load.sum(axis=1, keepdims=True)] = 0.0
    total = load.sum(axis=1, keepdims=True)
    return np.asarray(made * (total / np.where(total > 0, made.sum(axis=1, keepdims=True), 1.0)))


@njit(cache=True)
def _anneal(
    draws: np.random.Generator, limits: tuple[Floats, Floats], load: Floats, heat: tuple[float, float], moves: int
) -> Floats:
    """Try moves at falling temperature and return the assignment at the end; `load` is overwritten."""
    cost, capacity = limits
    jobs, platforms = load.shape
    room = capacity.copy()
    for i in range(platforms):
        for j in range(jobs):
            if load[j, i] > 0:
                room[i] -= cost[j, i] * load[j, i]
    cooling = (heat[1] / heat[0]) ** (1.0 / max(1, moves))
    temperature = heat[0]
    for _ in range(moves):
        temperature *= cooling
        _try(draws, cost, load, room, temperature)
    return load


@njit(cache=True)
def _try(draws: np.random.Generator, cost: Floats, load: Floats, room: Floats, temperature: float) -> None:
    """Draw a move; make it if it keeps the capacities and is accepted."""
    jobs, platforms = load.shape
    job = int(draws.random() * jobs)
    here, there = int(draws.random() * platforms), int(draws.random() * (platforms - 1))
    there += there >= here
    if load[job, here] <= 0 or not math.isfinite(cost[job, there]):
        return
    amount = load[job, here]
    if draws.random() > _WHOLE:
        amount *= draws.random()
    back, other = 0.0, int(draws.random() * jobs)
    lack = amount * cost[job, there] - room[there]
    if lack > 0:
        if other == job or load[other, there] <= 0 or not math.isfinite(cost[other, here]):
            amount = max(0.0, room[there]) / cost[job, there]
        else:
            back = min(load[other, there], lack / cost[other, there])
            amount = min(amount, (max(0.0, room[there]) + back * cost[other, there]) / cost[job, there])
            spare = room[here] + amount * cost[job, here]
            if back * cost[other, here] > spare:
                return
    taken = amount * cost[job, there] - (back * cost[other, there] if back > 0 else 0.0)
    given = amount * cost[job, here] - (back * cost[other, here] if back > 0 else 0.0)
    change = taken - given
    if amount <= 0 or (change > 0 and draws.random() >= math.exp(-change / temperature)):
        return
    load[job, here] -= amount
    load[job, there] += amount
    if back > 0:
        load[other, there] -= back
        load[other, here] += back
    room[there] -= taken
    room[here] += given
