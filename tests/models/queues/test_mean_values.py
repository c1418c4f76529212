"""Exact means of closed networks against global balance, the machine repairman, and what is refused."""

import math
from itertools import product

import numpy as np
import pytest

from models.queues.mean_values import MOST_CLIENTS, asymptotes, mean_values


def balance(demand_s, servers, clients, think_s):
    """Throughput and numbers present by global balance: every state of the Markov chain, and one equation for each."""
    stations = range(len(demand_s))
    states = [state for state in product(range(clients + 1), repeat=len(demand_s)) if sum(state) <= clients]
    place = {state: i for i, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for state in states:
        moves = [(None, 0, (clients - sum(state)) / think_s)]
        moves += [(i, i + 1, min(state[i], servers[i]) / demand_s[i]) for i in stations]
        for source, target, per_s in moves:
            if per_s > 0:
                after = [state[i] - (i == source) + (i == target) for i in stations]
                rates[place[state], place[tuple(after)]] += per_s
    rates -= np.diag(rates.sum(axis=1))
    equations = np.vstack([rates.T, np.ones(len(states))])
    chance = np.linalg.lstsq(equations, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    present = chance @ np.array(states)
    return (clients - present.sum()) / think_s, present


@pytest.mark.parametrize(
    ("demand_s", "servers", "clients", "think_s"),
    [
        ((0.1, 0.2), (1, 1), 6, 0.7),
        ((0.1, 0.2), (1, 7), 6, 0.7),
        ((0.1, 0.9, 0.4), (1, 3, 2), 5, 0.7),
        ((2.0, 0.2), (2, 4), 5, 0.1),
    ],
)
def test_means_are_those_of_global_balance(demand_s, servers, clients, think_s):
    means = mean_values(demand_s, servers, clients, think_s)
    per_s, present = balance(demand_s, servers, clients, think_s)
    assert means.per_s == pytest.approx(per_s, rel=1e-12)
    np.testing.assert_allclose(means.present, present, rtol=1e-11)
    np.testing.assert_allclose(means.utilisation, per_s * np.array(demand_s) / servers, rtol=1e-12)
    assert means.whole_s == pytest.approx(clients / per_s - think_s, rel=1e-11)


@pytest.mark.parametrize("servers", [1, 3, 40, 200])
def test_one_station_is_the_machine_repairman(servers):
    """With n machines broken r are repaired at a time: a birth-and-death process (Palm 1947), summed in logarithms."""
    clients, need_s, think_s = 200, 0.7, 2.0
    logs = [0.0]
    for n in range(1, clients + 1):
        logs.append(logs[-1] + math.log((clients - n + 1) / think_s * need_s / min(n, servers)))
    weights = np.exp(np.array(logs) - max(logs))
    present = np.arange(clients + 1) @ weights / weights.sum()
    means = mean_values([need_s], [servers], clients, think_s)
    assert means.present[0] == pytest.approx(present, rel=1e-11)
    assert means.per_s == pytest.approx((clients - present) / think_s, rel=1e-11)


def test_recursion_and_convolution_agree_where_a_number_could_not_hold_the_weights():
    """A station without demand has several servers, so the second network takes the other way."""
    recursion = mean_values([0.1, 0.2, 0.05], [1, 1, 1], 3_000, 900.0)
    convolution = mean_values([0.1, 0.2, 0.05, 0.0], [1, 1, 1, 2], 3_000, 900.0)
    assert convolution.per_s == pytest.approx(recursion.per_s, rel=1e-12)
    np.testing.assert_allclose(convolution.present, [*recursion.present, 0.0], rtol=1e-10)


@pytest.mark.parametrize("clients", [1, 7, 20, 21, 500])
def test_bounds_hold_and_are_met_far_from_the_knee(clients):
    demand_s, servers, think_s = np.array([0.1, 0.6]), np.array([1, 2]), 5.6
    means, bounds = mean_values(demand_s, servers, clients, think_s), asymptotes([0.1, 0.3], 0.7, clients, think_s)
    assert means.per_s <= bounds.most_per_s * (1 + 1e-12)
    assert means.whole_s >= bounds.least_response_s * (1 - 1e-12)
    assert bounds.knee == pytest.approx(21.0)
    if clients in {1, 500}:
        assert means.per_s == pytest.approx(bounds.most_per_s, rel=1e-6)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"demand_s": [0.1, -1.0]}, "demand_s is .*not negative"),
        ({"demand_s": [0.1]}, "must be .s,."),
        ({"servers": [1, 0]}, "servers are"),
        ({"clients": 0}, "clients 0"),
        ({"clients": MOST_CLIENTS + 1}, "from 1 to"),
        ({"think_s": math.nan}, "think_s"),
        ({"demand_s": [0.0, 0.0]}, "without number"),
    ],
)
def test_a_network_that_has_no_means_is_refused(changes, problem):
    with pytest.raises(ValueError, match=problem):
        mean_values(**{"demand_s": [0.1, 0.2], "servers": [1, 1], "clients": 3, "think_s": 0.0, **changes})
