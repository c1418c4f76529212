"""Completion rates by requests present, and the number of servers in them."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from analysis.occupancy.rates import lone_demand, rates, servers_of
from models.queues.serve import serve


def log(policy, servers, seed=0, *, n=3000, utilisation=0.75, demand=None, **more):
    rng = np.random.default_rng(seed)
    demand = rng.exponential(1.0, n) if demand is None else demand
    arrival = np.cumsum(rng.exponential(demand.mean() / (utilisation * servers), n))
    return arrival, serve(policy, arrival, demand, servers, **more).departure_s


def test_time_and_completions_are_those_that_a_slow_count_finds():
    arrival, departure = log("ps", 2, n=200)
    table = rates(arrival, departure)
    times = np.sort(np.concatenate([arrival, departure]))
    for row in table.itertuples():
        spans = [(u, v) for u, v in pairwise(times)
                 if ((arrival <= u) & (departure > u)).sum() == row.jobs]  # fmt: skip
        assert row.time_s == pytest.approx(sum(v - u for u, v in spans))
        assert row.completions == sum(((arrival < d) & (departure >= d)).sum() == row.jobs for d in departure)


def test_every_completion_and_every_busy_second_is_counted_once():
    arrival, departure = log("srpt", 3)
    table = rates(arrival, departure)
    assert table["completions"].sum() == len(arrival)
    assert (table["jobs"] * table["time_s"]).sum() == pytest.approx((departure - arrival).sum())


def test_pairs_do_not_matter():
    arrival, departure = log("ps", 2)
    pd.testing.assert_frame_equal(rates(arrival, np.sort(departure)), rates(arrival, departure))


@pytest.mark.statistical
def test_intervals_hold_the_rate_of_the_servers_as_often_as_they_say():
    """M/M/2: 20 seeds, each n in 1..4 with 95% intervals; 80 in all, fewer than 69 hits happen once in 1000 times."""
    hits = 0
    for seed in range(20):
        table = rates(*log("fcfs", 2, seed)).head(4)
        truth = np.minimum(table["jobs"], 2)
        hits += int(((table["low"] <= truth) & (truth <= table["high"])).sum())
    assert hits >= 69


def test_work_is_completions_times_the_mean_demand():
    table = rates(*log("ps", 2), mean_demand_s=2.0)
    np.testing.assert_allclose(table["work_rate"], 2 * table["rate_per_s"])


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["ps", "fcfs", "lcfs_pr"])
@pytest.mark.parametrize("servers", [1, 2, 4])
def test_exponential_demands_show_the_servers(policy, servers):
    """A wrong number is a hundred times less likely; of 600 logs with other seeds 597 were right and none was wrong."""
    assert servers_of(rates(*log(policy, servers, seed=1))).servers == servers


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["ps", "fcfs", "srpt", "lcfs"])
@pytest.mark.parametrize("servers", [1, 2])
def test_the_work_done_shows_the_servers_under_any_policy(policy, servers):
    """The work of another number of servers is tens of standard errors of the mean demand off."""
    demand = np.random.default_rng(9).uniform(1, 2, 3000)
    arrival, departure = log(policy, servers, seed=2, demand=demand)
    mean_s, error_s = lone_demand(arrival, departure)
    assert abs(mean_s - demand.mean()) < 4 * error_s
    assert servers_of(rates(arrival, departure), mean_demand_s=mean_s, error_s=error_s).servers == servers


@pytest.mark.statistical
def test_the_error_of_the_lone_demand_is_its_spread_between_logs():
    """40 seeds; a standard deviation from 40 draws is off by more than 45% once in 10 000 times."""
    draw = np.random.default_rng(1)
    found = np.array([lone_demand(*log("ps", 1, seed, demand=draw.uniform(0.5, 1.5, 3000))) for seed in range(40)])
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=0.45)
    assert abs(found[:, 0].mean() - 1.0) < 0.03


def test_hyper_threads_are_seen_in_the_rates():
    arrival, departure = log("ps", 2, n=20_000, utilisation=0.5, rates=[1.0, 1.3])
    one, two = rates(arrival, departure)["rate_per_s"][:2]
    assert two / one == pytest.approx(1.3, abs=0.06)


def test_rates_that_no_number_of_servers_has_are_refused():
    fallen = pd.DataFrame({"jobs": [1, 2, 3], "time_s": [100.0] * 3, "completions": [300, 100, 50]})
    found = servers_of(fallen)
    assert found.servers is None
    assert "off those of 1 servers" in found.reason


def test_too_little_congestion_is_refused():
    alike = pd.DataFrame({"jobs": [1, 2, 3], "time_s": [100.0, 100.0, 1.0], "completions": [100, 200, 3]})
    assert "explain the rates about equally" in servers_of(alike).reason
    assert "worked about as much" in servers_of(alike, mean_demand_s=1.0, error_s=0.2).reason


def test_work_that_fits_no_number_of_servers_is_refused():
    table = rates(*log("ps", 2))
    assert "which needs 9 s" in servers_of(table, mean_demand_s=9.0, error_s=0.01).reason
    assert servers_of(table, mean_demand_s=np.nan).servers is None


def test_longest_demands_that_nobody_saw_make_the_mean_unknown():
    arrival = np.arange(50.0)
    stay = np.tile([0.5, 1.2], 25)
    assert np.isnan(lone_demand(arrival[:-1], (arrival + stay)[:-1])).all()


@pytest.mark.parametrize("n", [0, 1])
def test_a_log_without_company_tells_nothing(n):
    table = rates(np.zeros(n), np.ones(n))
    assert len(table) == n
    assert servers_of(table).reason == "no two requests were present together"
