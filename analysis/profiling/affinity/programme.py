"""The cheapest assignment of load to platforms with capacities: an exact linear programme with its proof, or annealing.

Minimise Σ_ij c_ij x_ij where each job's load is placed, Σ_i x_ij = L_j, and no platform is asked for more than it has,
Σ_j c_ij x_ij ≤ C_i (Ren et al. 2010, "Optimizing for application affinities", where the first sum is misprinted as one
over j). It is a generalised transportation problem. With prices λ_i ≥ 0 of the capacities, every job goes where
c_ij (1 + λ_i) is least, and Σ_j L_j min_i c_ij (1 + λ_i) − Σ_i C_i λ_i bounds the cost from below. So only pairs near
their job's minimum matter: the programme is solved on those, all others are priced, and those that would pay are added
until there is none.

A platform may have a second resource, such as memory traffic: Σ_j m_ij x_ij ≤ M_i, with prices of its own. Everything
below takes uses as (R, J, I) and capacities as (R, I); the first resource is the cost itself.

The paper annealed: from the present assignment, a move takes a random amount of a job from one platform to another.
Where that one is full, a random job there makes room in exchange. More expensive assignments are accepted with
probability exp(−Δ/T); T falls geometrically (Kirkpatrick et al. 1983). Nothing is ever accepted that exceeds a
capacity, so the search may be stopped at any time.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from models.arrays import Bools, Floats
from models.code.compiled import njit
from models.errors import InputError, WscError

CERTIFIED = 1e-9
"""Relative gap between cost and bound, and relative excess of a capacity, up to which an optimum is certified."""
ROUNDING = 1e-6
"""Share by which what the present assignment takes may exceed a capacity that was measured by itself."""
_STEPS, _LARGEST_STEP = 300, 0.3
_MARGIN, _WIDER, _ALL = 0.03, 4.0, 1e6
_PAYS = 1e-10


class AffinityError(WscError):
    """There is no assignment; `str()` says why."""


@dataclass(frozen=True, slots=True, eq=False)
class JobAssignment:
    """An assignment with the proof that none is cheaper."""

    load: Floats
    """(J, I) instructions of each job on each platform."""
    cost: float
    """Cycles, or seconds, that they take."""
    bound: float
    """What every assignment takes at least, by duality."""
    prices: Floats
    """(R, I) cost saved by one more unit of each platform's capacity."""
    excess: float
    """Largest relative excess over a capacity, by rounding."""

    @property
    def gap(self) -> float:
        """Relative gap between cost and bound."""
        return max(0.0, (self.cost - self.bound) / self.cost) if self.cost > 0 else 0.0

    @property
    def optimal(self) -> bool:
        """Whether the optimum is certified: feasible, and no assignment can be cheaper."""
        return self.gap <= CERTIFIED and self.excess <= CERTIFIED


def assign(uses: Floats, total: Floats, capacity: Floats) -> JobAssignment:
    """Return the cheapest assignment.

    Parameters
    ----------
    uses : (R, J, I) of each resource per instruction; the first is the cost, infinite where a job may not run
    total : (J,) instructions of each job
    capacity : (R, I)

    Raises
    ------
    AffinityError
        If the capacities are too small; the message says by how much.

    Examples
    --------
    >>> cost = np.array([[[1.0, 1.0], [1.0, 2.0]]])
    >>> plan = assign(cost, np.array([200.0, 200.0]), np.array([[200.0, 300.0]]))
    >>> plan.cost, plan.load.tolist(), plan.optimal
    (400.0, [[0.0, 200.0], [200.0, 0.0]], True)
    """
    busy = total > 0
    load = np.zeros(uses.shape[1:])
    if not busy.any():
        return JobAssignment(load, 0.0, 0.0, np.zeros(capacity.shape), 0.0)
    scaled, units = _scaled(uses[:, busy], total[busy], capacity)
    placed, prices = _sift(*scaled, near_prices(*scaled))
    if placed is None:
        used = (_finite(uses) * any_assignment(uses, total, capacity)).sum(axis=1)
        missing = np.maximum(used - capacity, 0.0).sum(axis=1)
        worst = int((missing / units).argmax())
        available = float(capacity[worst].sum())
        share = f", {missing[worst] / available:.2%} of them all" if available > 0 else ", all that is needed"
        raise AffinityError(
            f"the capacities are too small by {missing[worst]:.6g}{share}{' (memory traffic)' if worst else ''}"
        )
    load[busy] = placed * total[busy][:, None]
    return checked(uses, load, capacity, prices * units[0] / units[:, None])


def checked(uses: Floats, load: Floats, capacity: Floats, prices: Floats) -> JobAssignment:
    """Return an assignment with what prices prove of it, computed anew from the data alone.

    Parameters
    ----------
    uses, capacity : as in `assign`
    load : (J, I) an assignment
    prices : (R, I) prices of the capacities, any that are not negative
    """
    used = np.asarray((_finite(uses) * load).sum(axis=1))
    bound = float((load.sum(axis=1) * _priced(uses, prices).min(axis=1)).sum() - (capacity * prices).sum())
    whole = np.maximum(used.sum(axis=1, keepdims=True), 1e-300)
    excess = float(np.max((used - capacity) / np.where(capacity > 0, capacity, whole), initial=0.0))
    return JobAssignment(load, float(used[0].sum()), bound, prices, max(0.0, excess))


def near_prices(uses: Floats, total: Floats, capacity: Floats) -> Floats:
    """Return (R, I) prices that are near the best ones: raised where more is asked for than there is, else lowered.

    A multiplicative supergradient ascent of the bound with steps as 1/k; the best prices met are returned.

    Parameters
    ----------
    uses, total, capacity : as in `assign`

    Examples
    --------
    >>> prices = near_prices(np.array([[[1.0, 1.5]]]), np.array([1.0]), np.array([[0.5, 9.0]]))
    >>> bool(abs(prices[0, 0] - 0.5) < 0.01), float(prices[0, 1])
    (True, 0.0)
    """
    jobs, prices = np.arange(total.size), np.zeros(capacity.shape)
    best, highest = prices, -np.inf
    for k in range(_STEPS):
        priced = _priced(uses, prices)
        chosen = priced.argmin(axis=1)
        taken = uses[:, jobs, chosen] * total
        demand = np.array([np.bincount(chosen, use, capacity.shape[1]) for use in taken])
        bound = float((total * priced[jobs, chosen]).sum() - (capacity * prices).sum())
        if bound > highest:
            best, highest = prices, bound
        lack = np.clip((demand - capacity) / np.maximum(capacity, 1e-12), -1.0, 1.0)
        prices = np.maximum((1.0 + prices) * np.exp(lack * _LARGEST_STEP / (1.0 + k / 10.0)) - 1.0, 0.0)
    return best


def any_assignment(uses: Floats, total: Floats, capacity: Floats) -> Floats:
    """Return (J, I) an assignment that exceeds the capacities by as little as possible, not at all if there is one.

    Parameters
    ----------
    uses, total, capacity : as in `assign`
    """
    busy = total > 0
    load = np.zeros(uses.shape[1:])
    if busy.any():
        scaled, _ = _scaled(uses[:, busy], total[busy], capacity)
        placed, _ = _solve(*scaled, np.isfinite(scaled[0][0]), overflow=True)
        assert placed is not None
        load[busy] = placed * total[busy][:, None]
    return load


def _finite(uses: Floats) -> Floats:
    return np.where(np.isfinite(uses), uses, 0.0)


def _priced(uses: Floats, prices: Floats) -> Floats:
    """Return (J, I) cost per instruction with the prices of what it uses."""
    priced = uses[0] * (1.0 + prices[0])
    for use, price in zip(uses[1:], prices[1:], strict=True):
        priced = priced + use * price
    return np.asarray(priced)


def _scaled(uses: Floats, total: Floats, capacity: Floats) -> tuple[tuple[Floats, Floats, Floats], Floats]:
    """Return the same programme in units in which numbers are near 1, and the (R,) units of the resources.

    Jobs are measured in what they cost at the dearest, so that a job's uses are per such unit.
    """
    dearest = _finite(uses[0]).max(axis=1)
    work = total * dearest
    units = np.array([float((_finite(use).max(axis=1) * total).mean()) or 1.0 for use in uses])
    costs = uses / dearest[:, None] * (units[0] / units)[:, None, None]
    return (costs, work / units[0], capacity / units[:, None]), units


def _sift(uses: Floats, total: Floats, capacity: Floats, prices: Floats) -> tuple[Floats | None, Floats]:
    """Return (J, I) shares and prices of the whole programme, from restricted ones; no shares if there are none."""
    priced = _priced(uses, prices)
    least, margin, every = priced.min(axis=1, keepdims=True), _MARGIN, np.isfinite(priced)
    pairs = priced <= least * (1.0 + margin)
    while True:
        shares, duals = _solve(uses, total, capacity, pairs)
        if shares is None:
            if (pairs == every).all():
                return None, prices
            margin *= _WIDER
            pairs = every if margin > _ALL else pairs | (every & (priced <= least * (1.0 + margin)))
            continue
        now = _priced(uses, duals)
        cheapest = np.where(pairs, now, np.inf).min(axis=1, keepdims=True)
        pays = every & ~pairs & (now < cheapest * (1.0 - _PAYS))
        if not pays.any():
            return shares, duals
        pairs = pairs | pays


def _solve(
    uses: Floats, total: Floats, capacity: Floats, pairs: Bools, overflow: bool = False
) -> tuple[Floats | None, Floats]:
    """Solve the programme on some of the pairs: (J, I) shares of each job, none if infeasible, and (R, I) prices.

    With `overflow`, capacities may be exceeded, and the cost is the sum of what exceeds them.
    """
    from ortools.linear_solver.python import model_builder_helper as glop

    (resources, jobs, platforms), (job, platform) = uses.shape, np.nonzero(pairs)
    columns, limits = np.arange(job.size), resources * platforms
    spare = limits if overflow else 0
    entries = [np.ones(job.size), *(use[job, platform] for use in uses), np.full(spare, -1.0)]
    rows = [job, *(jobs + r * platforms + platform for r in range(resources)), jobs + np.arange(spare)]
    at = [columns] * (1 + resources) + [job.size + np.arange(spare)]
    shape = jobs + limits, job.size + spare
    matrix = sp.csr_matrix((np.concatenate(entries), (np.concatenate(rows), np.concatenate(at))), shape=shape)
    objective = np.concatenate([np.zeros(job.size), np.ones(spare)]) if overflow else uses[0, job, platform]
    model: Any = glop.ModelBuilderHelper()
    model.fill_model_from_sparse_data(
        np.zeros(shape[1]),
        np.full(shape[1], np.inf),
        objective,
        np.concatenate([total, np.full(limits, -np.inf)]),
        np.concatenate([total, capacity.ravel()]),
        matrix,
    )
    solver: Any = glop.ModelSolverHelper("GLOP")
    solver.solve(model)
    if not solver.has_solution():
        return None, np.zeros(capacity.shape)
    load = np.zeros((jobs, platforms))
    load[job, platform] = np.maximum(np.asarray(solver.variable_values())[: job.size], 0.0)
    prices = np.maximum(-np.asarray(solver.dual_values())[jobs:], 0.0).reshape(capacity.shape)
    lost = load.sum(axis=1) <= 0.0  # jobs so small that the solver rounds them to nothing: where they cost least
    load[lost, np.where(pairs, _priced(uses, prices), np.inf).argmin(axis=1)[lost]] = 1.0
    return load / load.sum(axis=1, keepdims=True), prices


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
    >>> loads = anneal(table_1, np.full((2, 2), 100.0), np.array([200.0, 300.0]), seed=1, moves=20_000)
    >>> round(float((table_1 * loads).sum()), 2)
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
    annealed = _anneal(np.random.default_rng(seed), (cost, np.maximum(capacity, used)), np.array(load), heat, tries)
    annealed[annealed < _DUST * load.sum(axis=1, keepdims=True)] = 0.0
    total = load.sum(axis=1, keepdims=True)
    return np.asarray(annealed * (total / np.where(total > 0, annealed.sum(axis=1, keepdims=True), 1.0)))


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


@njit(cache=False, borrows=True)
def _try(draws: np.random.Generator, cost: Floats, load: Floats, room: Floats, temperature: float) -> None:
    """Draw a move; make it if it keeps the capacities and is accepted."""
    jobs, platforms = load.shape
    job = int(draws.random() * jobs)
    origin, target = int(draws.random() * platforms), int(draws.random() * (platforms - 1))
    target += target >= origin
    if load[job, origin] <= 0 or not math.isfinite(cost[job, target]):
        return
    amount = load[job, origin]
    if draws.random() > _WHOLE:
        amount *= draws.random()
    back, other = 0.0, int(draws.random() * jobs)
    lack = amount * cost[job, target] - room[target]
    if lack > 0:
        if other == job or load[other, target] <= 0 or not math.isfinite(cost[other, origin]):
            amount = max(0.0, room[target]) / cost[job, target]
        else:
            back = min(load[other, target], lack / cost[other, target])
            amount = min(amount, (max(0.0, room[target]) + back * cost[other, target]) / cost[job, target])
            spare = room[origin] + amount * cost[job, origin]
            if back * cost[other, origin] > spare:
                return
    taken = amount * cost[job, target] - (back * cost[other, target] if back > 0 else 0.0)
    given = amount * cost[job, origin] - (back * cost[other, origin] if back > 0 else 0.0)
    change = taken - given
    if amount <= 0 or (change > 0 and draws.random() >= math.exp(-change / temperature)):
        return
    load[job, origin] -= amount
    load[job, target] += amount
    if back > 0:
        load[other, target] -= back
        load[other, origin] += back
    room[target] -= taken
    room[origin] += given
