"""Work conservation: true servers are rarely blamed, servers of another kind or number are."""

import numpy as np
import pytest

from analysis.occupancy.logs.consistency import conserves_work
from models.queues.serve import serve


def load(servers, n=6_000, seed=0, busy=0.7):
    rng = np.random.default_rng(seed)
    return rng.exponential(1.5 / (busy * servers), n).cumsum(), rng.uniform(1.0, 2.0, n)


def blamed(arrival, departure, servers):
    return [
        (each.name, each.left_s > each.right_s) for each in conserves_work(arrival, departure, servers) if each.against
    ]


@pytest.mark.statistical
@pytest.mark.parametrize("servers", [1, 2, 4])
def test_servers_of_the_model_are_rarely_blamed(servers):
    """Two tests at level 0.001 on 30 logs: one false alarm in about 17 runs, two in fewer than 600."""
    alarms = 0
    for seed in range(30):
        arrival, demand = load(servers, 2_000, seed, busy=(0.5, 0.8, 0.9)[seed % 3])
        policy = ("fcfs", "ps", "srpt")[seed // 3 % 3]
        alarms += bool(blamed(arrival, serve(policy, arrival, demand, servers).departure_s, servers))
    assert alarms <= 1


def test_servers_that_slow_each_other_down_are_found():
    arrival, demand = load(2, busy=0.3)
    departure = serve("ps", arrival, demand, 2, rates=np.array([1.0, 1.4])).departure_s
    assert ("company", True) in blamed(arrival, departure, 2)


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
def test_one_server_too_many_is_found(policy):
    arrival, demand = load(2)
    departure = serve(policy, arrival, demand, 2).departure_s
    assert ("load", True) in blamed(arrival, departure, 3)


def test_one_server_too_few_is_found():
    arrival, demand = load(2, busy=0.5)
    departure = serve("fcfs", arrival, demand, 2).departure_s
    assert blamed(arrival, departure, 1) == [("load", False)]


def test_a_pause_halfway_through_requests_makes_servers_idle():
    arrival, demand = load(1, busy=0.5)
    free, departure = 0.0, []
    for came, needs in zip(arrival, demand, strict=True):
        waits = 1.0 if came < free else 0.0
        free = max(came, free) + needs + waits
        departure.append(free)
    assert ("load", True) in blamed(arrival, np.array(departure), 1)


def test_too_little_is_not_judged():
    assert conserves_work(np.array([0.0, 1.0]), np.array([3.0, np.nan]), 2) == ()


def test_demands_that_are_all_alike_blame_nobody():
    arrival = load(2)[0]
    assert blamed(arrival, serve("fcfs", arrival, np.full(len(arrival), 1.5), 2).departure_s, 2) == []
