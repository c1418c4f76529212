import numpy as np
import pytest
from scipy.optimize import linprog

from analysis.profiling.affinity.programme import AffinityError, anneal, any_assignment, assign, checked
from tests.helpers.affinities import random_table


def solved(uses, total, capacity):
    """Return the optimum by HiGHS, all variables and rows written out densely."""
    resources, jobs, platforms = uses.shape
    pairs = jobs * platforms
    placed = np.kron(np.eye(jobs), np.ones(platforms))
    limits = np.zeros((resources * platforms, pairs))
    for r in range(resources):
        for i in range(platforms):
            limits[r * platforms + i, i::platforms] = np.where(np.isfinite(uses[0, :, i]), uses[r, :, i], 0.0)
    bounds = [(0, None if np.isfinite(cost) else 0) for cost in uses[0].ravel()]
    cost = np.where(np.isfinite(uses[0]), uses[0], 0.0).ravel()
    return linprog(cost, limits, capacity.ravel(), placed, total, bounds)


def problem(seed, jobs, platforms, allowed=1.0):
    table = random_table(seed, jobs, platforms, allowed=allowed)
    return table.cost(table.cpi)[None], table.total / 1e12, table.capacity[None] / 1e12, table


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("jobs", "platforms", "allowed"), [(1, 2, 1.0), (12, 3, 1.0), (60, 5, 0.6), (150, 8, 0.9)])
def test_the_optimum_is_that_of_another_solver(seed, jobs, platforms, allowed):
    uses, total, capacity, _ = problem(seed, jobs, platforms, allowed)
    plan, expected = assign(uses, total, capacity), solved(uses, total, capacity)
    assert plan.cost == pytest.approx(expected.fun, rel=1e-9)
    assert plan.optimal
    np.testing.assert_allclose(plan.load.sum(axis=1), total, rtol=1e-12)
    assert (plan.load[~np.isfinite(uses[0])] == 0).all()
    used = (np.where(plan.load > 0, uses[0], 0.0) * plan.load).sum(axis=0)
    assert (used <= capacity[0] * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_second_resource_is_kept_at_the_cost_that_another_solver_finds(seed):
    uses, total, capacity, table = problem(seed, 40, 4)
    misses = np.random.default_rng(seed).lognormal(-5.0, 1.5, (40, 1)) * np.array([1.0, 0.8, 1.3, 1.1])
    traffic = (misses * table.load / 1e12).sum(axis=0)
    both, rooms = np.stack([uses[0], misses]), np.stack([capacity[0], traffic])
    plan = assign(both, total, rooms)
    scaled = np.array([1.0, 200.0])
    expected = solved(both * scaled[:, None, None], total, rooms * scaled[:, None])
    assert plan.cost == pytest.approx(expected.fun, rel=1e-8)
    assert plan.optimal
    assert plan.cost > assign(uses, total, capacity).cost * (1 + 1e-6)
    assert ((misses * plan.load).sum(axis=0) <= traffic * (1 + 1e-9)).all()


def test_prices_are_what_one_more_unit_of_capacity_saves():
    uses, total, capacity, _ = problem(3, 30, 3)
    plan = assign(uses, total, capacity)
    tight = int(plan.prices[0].argmax())
    more = capacity.copy()
    more[0, tight] += 1e-6
    assert (plan.cost - assign(uses, total, more).cost) / 1e-6 == pytest.approx(plan.prices[0, tight], rel=1e-4)


def test_a_bound_that_is_not_met_is_no_proof():
    uses, total, capacity, table = problem(5, 30, 3)
    worse = checked(uses, table.load / 1e12, capacity, assign(uses, total, capacity).prices)
    assert not worse.optimal
    assert worse.bound == pytest.approx(assign(uses, total, capacity).cost, rel=1e-9)


def test_numbers_of_any_size_do():
    uses, total, capacity, _ = problem(6, 30, 3)
    plan, large = assign(uses, total, capacity), assign(uses, total * 1e20, capacity * 1e20)
    assert large.cost == pytest.approx(plan.cost * 1e20, rel=1e-12)
    assert large.optimal


def test_jobs_too_small_for_the_solver_have_a_place_and_the_proof_holds():
    rng = np.random.default_rng(1)
    uses, total = rng.uniform(0.5, 2.0, (1, 60, 3)), rng.lognormal(0.0, 2.0, 60) * 1e15
    total[:6] = 7e3, 1.0, 1e-3, 1e2, 5e3, 9e4
    now = rng.dirichlet(np.ones(3), 60) * total[:, None]
    plan = assign(uses, total, 1.001 * (uses[0] * now).sum(axis=0)[None])
    np.testing.assert_allclose(plan.load.sum(axis=1), total, rtol=1e-12)
    assert plan.optimal


def test_missing_capacity_is_said_exactly():
    uses, total = np.array([[[1.0, 2.0]]]), np.array([4.0])
    with pytest.raises(AffinityError, match=r"too small by 1\.5, 50\.00% of them all"):
        assign(uses, total, np.array([[2.0, 1.0]]))
    with pytest.raises(AffinityError, match=r"too small by 4, all that is needed$"):
        assign(uses, total, np.array([[0.0, 0.0]]))


def test_any_assignment_exceeds_capacities_by_the_least():
    uses, total, capacity, _ = problem(7, 30, 3)
    load = any_assignment(uses, total, capacity * 0.7)
    used = (uses[0] * load).sum(axis=0)
    over = np.maximum(used - 0.7 * capacity[0], 0.0).sum()
    pairs = uses[0].size
    rows = np.hstack([np.vstack([np.kron(np.ones(30), np.eye(3)[i]) * uses[0].ravel() for i in range(3)]), -np.eye(3)])
    placed = np.hstack([np.kron(np.eye(30), np.ones(3)), np.zeros((30, 3))])
    expected = linprog(np.r_[np.zeros(pairs), np.ones(3)], rows, 0.7 * capacity[0], placed, total)
    assert over == pytest.approx(expected.fun, rel=1e-7)


def test_jobs_without_load_get_none():
    plan = assign(np.array([[[1.0, 2.0], [3.0, 1.0]]]), np.array([0.0, 2.0]), np.array([[1.0, 2.0]]))
    assert plan.load.tolist() == [[0.0, 0.0], [0.0, 2.0]]
    assert assign(np.ones((1, 2, 2)), np.zeros(2), np.ones((1, 2))).cost == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_annealing_comes_within_a_thousandth_of_the_optimum(seed):
    table = random_table(seed, interaction=0.2, allowed=1.0 if seed % 2 else 0.8)
    cost = table.cost(table.cpi)
    best = assign(cost[None], table.total, table.capacity[None])
    load = anneal(cost, table.load, table.capacity, seed)
    known = np.where(table.allowed, cost, 0.0)
    assert (known * load).sum() <= best.cost * 1.001
    assert (known * load).sum() >= best.cost * (1 - 1e-9)
    np.testing.assert_allclose(load.sum(axis=1), table.total, rtol=1e-12)
    assert ((known * load).sum(axis=0) <= table.capacity * (1 + 1e-9)).all()
    assert (load >= 0).all()
    assert (load[~table.allowed] == 0).all()


@pytest.mark.parametrize("moves", [0, 1, 100, 5000])
def test_it_may_be_stopped_at_any_time(moves):
    table = random_table(9, jobs=20)
    load = anneal(table.cpi, table.load, table.capacity, 1, moves)
    assert ((table.cpi * load).sum(axis=0) <= table.capacity * (1 + 1e-9)).all()
    np.testing.assert_allclose(load.sum(axis=1), table.total, rtol=1e-12)


def test_the_seed_decides_and_the_input_is_left_alone():
    table = random_table(2, jobs=20)
    before = table.load.copy()
    one, again, other = (anneal(table.cpi, table.load, table.capacity, seed, 3000) for seed in (5, 5, 6))
    assert (one == again).all()
    assert (one != other).any()
    assert (table.load == before).all()


def test_a_start_that_is_not_allowed_is_refused():
    cost, load = np.array([[1.0, np.inf]]), np.array([[1.0, 1.0]])
    with pytest.raises(ValueError, match="may not run"):
        anneal(cost, load, np.array([9.0, 9.0]), 1)
    with pytest.raises(ValueError, match="exceeds a capacity"):
        anneal(np.ones((1, 2)), load, np.array([0.5, 9.0]), 1)
