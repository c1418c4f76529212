"""How many machines of each stratum each slot gets, so that every margin is even: a controlled rounding (Cox 1987)."""

import math

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from analysis.effects.strata import StratifiedFleet
from models.arrays import Bools, Ints

_LONGEST_S = 30.0
"""Time that the search for the fewest moves may take."""


def even(machines: StratifiedFleet, slots: int, rng: np.random.Generator, wanting: Bools | None = None) -> Ints:
    """Return how many machines of each stratum each slot is to have, (N, S), drawn at random.

    Every count, by stratum, platform, cluster and in all, is the fleet's share rounded down or up.

    Parameters
    ----------
    machines : the fleet
    slots : N
    rng : where the draws come from
    wanting : (N, S) which slots are first to have one beyond the share of a stratum, as far as possible in turn
    """
    left = np.bincount(machines.stratum, minlength=len(machines.strata)).astype(np.int64)
    counts = np.zeros((slots, len(left)), dtype=np.int64)
    for place, slot in enumerate(rng.permutation(slots)):
        price = rng.integers(1000, size=len(left))
        if wanting is not None:
            price -= 1000 * wanting[slot]
        counts[slot] = _share(machines, left, slots - place, price)
        left = left - counts[slot]
    return counts


def least_moved(machines: StratifiedFleet, holds: Ints, rng: np.random.Generator) -> tuple[Ints, int]:
    """Return counts as even as those of `even` with the fewest moves from a former cut, and a bound on moves.

    One whole-number programme over all slots: which slots have one machine of a stratum beyond its share.

    Parameters
    ----------
    machines : the fleet
    holds : (N, S) machines of each stratum that each slot has
    rng : of the draw that stands where the programme takes longer than `_LONGEST_S`

    Returns
    -------
    (N, S) array, and how many machines any cut as even moves at least: as many as this one if that was proven.
    """
    slots, strata = holds.shape
    share, beyond = np.divmod(np.bincount(machines.stratum, minlength=strata).astype(np.int64), slots)
    wanting = holds > share
    limits = [LinearConstraint(sparse.kron(np.ones((1, slots)), sparse.identity(strata)), beyond, beyond)]
    for of in (machines.platform, machines.cluster, np.zeros(strata, dtype=np.int64)):
        groups = sparse.csr_array((np.ones(strata), (of, np.arange(strata))))
        total, low = groups @ (slots * share + beyond), groups @ share
        ends = np.tile(total // slots - low, slots), np.tile(-(-total // slots) - low, slots)
        limits.append(LinearConstraint(sparse.kron(sparse.identity(slots), groups), *ends))
    solved = milp(
        -wanting.ravel().astype(np.float64),
        constraints=limits,
        bounds=Bounds(0, np.tile((beyond > 0).astype(np.float64), slots)),
        integrality=np.ones(slots * strata),
        options={"time_limit": _LONGEST_S},
    )
    surplus = int(np.maximum(holds - share, 0).sum())
    alone = surplus - int(np.minimum(beyond, wanting.sum(axis=0)).sum())
    bound = solved.mip_dual_bound
    fewest = alone if bound is None or not np.isfinite(bound) else max(alone, math.ceil(surplus + bound - 1e-6))
    if solved.x is None:
        return even(machines, slots, rng, wanting), fewest
    return share + np.round(solved.x).astype(np.int64).reshape(slots, strata), fewest


def _share(machines: StratifiedFleet, left: Ints, slots: int, price: Ints) -> Ints:
    """Return how many machines of each stratum one slot gets, at least cost; (S,).

    Parameters
    ----------
    machines : the fleet
    left : (S,) machines for this slot and those after it
    slots : this one and those after it
    price : (S,) of a machine beyond the share of a stratum
    """
    share, beyond = np.divmod(left, slots)
    clusters, platforms = int(machines.cluster.max()) + 1, int(machines.platform.max()) + 1
    source, sink = clusters + platforms, clusters + platforms + 1
    supply = np.zeros(sink + 1, dtype=np.int64)
    supply[source] = -(-int(left.sum()) // slots) - int(share.sum())
    supply[sink] = -supply[source]
    network = SimpleMinCostFlow()
    arcs = network.add_arcs_with_capacity_and_unit_cost(
        machines.cluster, clusters + machines.platform, (beyond > 0).astype(np.int64), price
    )
    for of, first, count, sign in ((machines.cluster, 0, clusters, 1), (machines.platform, clusters, platforms, -1)):
        total, low = (np.bincount(of, numbers, count).astype(np.int64) for numbers in (left, share))
        least, most = total // slots - low, -(-total // slots) - low
        nodes, end = first + np.arange(count), np.full(count, source if sign > 0 else sink)
        supply[nodes] += sign * least
        supply[end[0]] -= sign * least.sum()
        network.add_arcs_with_capacity_and_unit_cost(
            *((end, nodes) if sign > 0 else (nodes, end)), most - least, np.zeros(count, dtype=np.int64)
        )
    network.set_nodes_supplies(np.arange(sink + 1), supply)
    if network.solve() != network.OPTIMAL:
        raise AssertionError("a two-way table has a controlled rounding")
    return np.asarray(share + network.flows(arcs), dtype=np.int64)
