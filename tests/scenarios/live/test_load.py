"""The load is the paper's kind: bursty sessions under a sawtooth, and one open trace."""

import numpy as np
import pytest

from scenarios.live.load import arrivals, sessions, trace


def offered(load, length_s):
    return sum(sum(session.demand_s) for session in load) / length_s


def test_the_same_seed_gives_the_same_load_and_another_another():
    assert sessions(5, 300.0, 1) == sessions(5, 300.0, 1) != sessions(6, 300.0, 1)
    assert trace(0, 300.0) == trace(0, 300.0) != trace(1, 300.0)


@pytest.mark.parametrize("servers", [1, 2])
def test_sessions_bring_about_half_the_capacity_in_the_mean(servers):
    assert offered(sessions(1, 40_000.0, servers), 40_000.0) == pytest.approx(servers * 0.535, rel=0.1)


def test_demands_and_thinking_are_within_their_bounds():
    load = sessions(1, 2_000.0, 1)
    demand_s = np.concatenate([session.demand_s for session in load])
    think_s = np.concatenate([session.think_s for session in load])
    assert (demand_s.min() >= 0.1, demand_s.max() <= 0.5) == (True, True)
    assert (think_s.min() >= 0.6, think_s.max() <= 1.2) == (True, True)
    assert {(len(session.demand_s), len(session.think_s)) for session in load} == {(8, 7)}


def test_some_sessions_come_together():
    starts = [session.start_s for session in sessions(1, 2_000.0, 1)]
    assert starts == sorted(starts)
    assert len(set(starts)) < 0.8 * len(starts)


def test_the_load_climbs_in_every_tooth_and_falls_back():
    time_s = np.array([session.start_s for session in sessions(3, 48_000.0, 1)]) % 480.0
    thirds = np.histogram(time_s, bins=3, range=(0, 480))[0]
    assert thirds[0] < thirds[1] < thirds[2]


def test_sessions_of_short_requests_are_as_many_times_more():
    load = sessions(1, 400.0, 1, mean_demand_s=0.003)
    demand_s = np.concatenate([session.demand_s for session in load])
    think_s = np.concatenate([session.think_s for session in load])
    assert offered(load, 400.0) == pytest.approx(0.535, rel=0.1)
    assert (demand_s.min(), demand_s.max()) == pytest.approx((0.001, 0.005), rel=0.01)
    assert (think_s.min(), think_s.max()) == pytest.approx((0.006, 0.012), rel=0.01)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (2, 0.3)])
def test_open_arrivals_come_at_one_rate_one_by_one(servers, load):
    """Poisson: gaps have a coefficient of variation of 1, and no hundredth of the time has more than chance gives."""
    requests = arrivals(1, 400.0, servers, load, mean_demand_s=0.003)
    start_s = np.array([session.start_s for session in requests])
    assert offered(requests, 400.0) == pytest.approx(0.6, rel=0.02)
    assert all(len(session.demand_s) == 1 and not session.think_s for session in requests)
    assert np.diff(start_s).std() / np.diff(start_s).mean() == pytest.approx(1.0, abs=0.03)
    counts = np.histogram(start_s, bins=100, range=(0, 400))[0]
    assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.5)
    assert arrivals(1, 400.0, servers, load, 0.003) == requests != arrivals(2, 400.0, servers, load, 0.003)


def test_the_trace_is_open_and_overloads_one_server_at_times():
    load = trace(2, 12_000.0)
    assert all(len(session.demand_s) == 1 and not session.think_s for session in load)
    start_s = np.array([session.start_s for session in load])
    demand_s = np.array([session.demand_s[0] for session in load])
    rate = np.histogram(start_s % 40.0, bins=20, range=(0, 40), weights=demand_s)[0] / (300 * 2.0)
    assert rate[0] < 0.3
    assert rate[-1] > 1.0


@pytest.mark.parametrize("length_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_length_that_is_none_is_refused(length_s):
    with pytest.raises(ValueError, match="length_s must be above 0 and finite"):
        trace(1, length_s)


def test_a_server_is_needed():
    with pytest.raises(ValueError, match="servers must be at least 1, got 0"):
        sessions(1, 10.0, 0)
