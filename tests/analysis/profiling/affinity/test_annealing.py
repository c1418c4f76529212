import numpy as np
import pytest

from analysis.profiling.affinity.annealing import anneal
from analysis.profiling.affinity.programme import assign
from tests.helpers.affinities import random_table


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
