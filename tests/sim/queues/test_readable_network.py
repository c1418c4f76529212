"""Networks of stations: the compiled queues, station by station, and their twin, event by event, agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queues.network import NetworkQueue, serve_network
from models.queues.policies import POLICIES
from sim.queues import readable_network

UNCLASSED = tuple(name for name in POLICIES if name != "priority")


def drawn(seed, n, unit, policies):
    """Up to five stations, each after some of those before it, and requests at a load of up to 1.3."""
    rng = np.random.default_rng(seed)
    stations = []
    for place in range(rng.integers(1, 6)):
        before = [int(at) for at in np.flatnonzero(rng.random(place) < 0.6)]
        needs = int(rng.integers(0, len(before) + 1))
        servers, policy = int(rng.integers(1, 4)), str(rng.choice(policies))
        threads = servers + int(rng.integers(0, 4)) if policy == "ps" and rng.random() < 0.7 else 0
        stations.append(NetworkQueue(policy, servers, tuple(before), needs, unit or 0.3, threads))

    def times(mean_s, shape):
        drawn_s = rng.exponential(mean_s, shape)
        return np.ceil(drawn_s / unit) * unit if unit else drawn_s

    demand_s = np.array([times(station.servers, n) for station in stations])
    return stations, np.cumsum(times(rng.uniform(0.7, 1.5), n)), demand_s, rng.random(demand_s.shape)


def clients(seed, world, unit=0.0):
    """The same requests, sent by a few clients that wait for the answers and think."""
    stations, arrival_s, demand_s, choice = world
    rng, n = np.random.default_rng(seed), len(arrival_s)
    count = int(rng.integers(1, 9))
    think_s = rng.exponential(rng.choice([0.1, 1.0, 3.0]), n)
    after = np.where(np.arange(n) < count, -1, np.arange(n) - count)
    came_s = np.where(after < 0, arrival_s, np.nan)
    chained = {"after": after, "think_s": np.floor(think_s / unit) * unit if unit else think_s}
    return (stations, came_s, demand_s, choice), chained


def agree(world, chained=None):
    chained = chained or {}
    fast, slow = serve_network(*world, **chained), readable_network.serve_network(*world, **chained)
    clock_s = max(1.0, slow.end_s.max(initial=0.0))
    for name in ("arrival_s", "start_s", "departure_s", "end_s"):
        np.testing.assert_allclose(getattr(fast, name), getattr(slow, name), rtol=0, atol=1e-9 * clock_s, err_msg=name)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_station_by_station_is_event_by_event(seed):
    agree(drawn(seed, 30, 0.0, UNCLASSED))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_a_pool_of_threads_is_event_by_event(seed):
    agree(drawn(seed, 40, 0.0, ["ps"]))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_station_by_station_is_event_by_event_where_everything_ties(seed):
    """Sharing splits time in thirds, so a float grid has no exact ties under it."""
    agree(drawn(seed, 20, 0.25, [name for name in UNCLASSED if POLICIES[name].sharing == "cores"]))


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), policies=st.sampled_from([UNCLASSED, ("ps",)]))
def test_clients_that_wait_for_answers_are_served_event_by_event(seed, policies):
    agree(*clients(seed, drawn(seed, 30, 0.0, policies)))


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_clients_are_served_event_by_event_where_everything_ties(seed):
    policies = [name for name in UNCLASSED if POLICIES[name].sharing == "cores"]
    agree(*clients(seed, drawn(seed, 20, 0.25, policies), 0.25))


@pytest.mark.parametrize("needs", [1, 2, 3])
def test_a_join_waits_for_so_many_branches_and_no_longer(needs):
    stations = [*(NetworkQueue("fcfs", 1) for _ in range(3)), NetworkQueue("ps", 1, (0, 1, 2), needs)]
    demand_s = np.array([[5.0], [1.0], [3.0], [0.0]])
    agree((stations, [2.0], demand_s))
    assert serve_network(stations, [2.0], demand_s).end_s == [2.0 + (1.0, 3.0, 5.0)[needs - 1]]
