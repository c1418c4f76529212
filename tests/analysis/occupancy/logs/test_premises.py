"""What speaks against one pool of servers is reported where it was planted, and not elsewhere."""

import numpy as np
import pandas as pd
import pytest

from analysis.occupancy.curve import pairs
from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.premises import departure_order, premises
from models.queues.serve import serve
from tests.helpers.server_findings import day, judged, on_two_hosts, unusable


def log_of(servers, load=0.7, follow=1.0, seed=0):
    return day(np.random.default_rng([seed, servers]), servers, load, follow, 0)


def names(arrival, departure, servers, tick_s=0.0):
    order = np.argsort(arrival, kind="stable")
    return [each.name for each in premises(arrival[order], departure[order], servers, tick_s)]


def brute_force(arrival, departure):
    """The requests present that came before each one that leaves, and the longest chain of overtakings that it ends."""
    older, chain = np.zeros(len(arrival), dtype=int), np.ones(len(arrival), dtype=int)
    for i in range(len(arrival)):
        for j in range(i):
            if departure[j] > departure[i]:
                older[i] += 1
                chain[i] = max(chain[i], chain[j] + 1)
    order = np.argsort(departure)
    return older[order], chain[order]


def test_older_requests_and_chains_are_those_of_brute_force():
    rng = np.random.default_rng(5)
    arrival = np.sort(rng.random(200))
    departure = arrival + rng.exponential(0.3, 200)
    made = departure_order(pairs(arrival, departure))
    older, chain = brute_force(arrival, departure)
    assert made.older.tolist() == older.tolist()
    assert made.chain.tolist() == chain.tolist()


def test_requests_that_never_leave_count_as_overtaken():
    made = departure_order(pairs(np.array([0.0, 1.0]), np.array([np.nan, 2.0])))
    assert (made.older.tolist(), made.chain.tolist()) == ([1], [2])


@pytest.mark.parametrize("servers", [4, 16])
def test_machines_in_order_of_arrival_have_no_chain_longer_than_their_servers(servers):
    """A theorem: no false alarm."""
    arrival, demand = log_of(servers, 0.85)
    left = on_two_hosts(np.random.default_rng(1), "fcfs", arrival, demand, servers)
    assert departure_order(pairs(arrival, left)).chain.max() <= servers


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
@pytest.mark.parametrize("servers", [4, 16])
def test_half_of_the_servers_that_take_nothing_for_a_third_of_the_log_are_reported(policy, servers):
    """Fixed logs; `tests.helpers.server_findings` counts how often."""
    arrival, demand = log_of(servers, 0.85, seed=1)
    dirty = pd.DataFrame({"arrival_s": arrival, "departure_s": unusable(policy, arrival, demand, servers)})
    (found,) = (each for each in clean(dirty, servers).findings if each.name == "servers came or went")
    if policy == "fcfs":
        assert f"only the {servers // 2} oldest of those present left, of {servers} servers" in found.evidence
    assert "--from" in found.done
    assert judged(arrival, dirty["departure_s"].to_numpy(), servers)[1] == "contradicted"


@pytest.mark.parametrize(("policy", "name"), [("fcfs", "more than one queue"), ("ps", "completions grow beyond")])
def test_two_machines_in_one_log_are_reported(policy, name):
    arrival, demand = log_of(4)
    left = on_two_hosts(np.random.default_rng(1), policy, arrival, demand, 4)
    assert [each.startswith(name) for each in names(arrival, left, 4)] == [True]


@pytest.mark.parametrize("servers", [1, 4])
def test_requests_cut_off_by_a_time_out_are_reported(servers):
    arrival, demand = log_of(servers)
    left = np.minimum(serve("fcfs", arrival, demand, servers).departure_s, arrival + 5.0)
    assert "responses end at one value" in names(arrival, left, servers)


def test_clients_that_give_up_are_not_servers_that_went():
    """In a rush only those leave that have waited longest; servers that went are found beside such clients, too."""
    rng = np.random.default_rng(31)
    arrival, demand = np.cumsum(rng.exponential(1.0 / 3.8, 8_000)), rng.exponential(1.0, 8_000)
    left = np.minimum(serve("fcfs", arrival, demand, 4).departure_s, arrival + 5.0)
    assert names(arrival, left, 4) == ["responses end at one value"]
    arrival, demand = log_of(4, 0.85, seed=1)
    left = np.minimum(unusable("fcfs", arrival, demand, 4), arrival + 60.0)
    assert names(arrival, left, 4) == ["responses end at one value", "servers came or went"]


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
def test_long_polls_are_reported_whether_they_end_at_a_time_out_or_at_an_event(policy):
    arrival, demand = log_of(4, 0.5)
    rng = np.random.default_rng(2)
    served, polls = serve(policy, arrival, demand, 4).departure_s, rng.random(len(arrival)) < 0.01
    at_a_time_out = np.where(polls, arrival + 60.0, served)
    at_an_event = np.where(polls, arrival + rng.exponential(60.0, len(arrival)), served)
    assert "responses end at one value" in names(arrival, at_a_time_out, 4)
    assert "requests that hold no server" in names(arrival, at_an_event, 4)


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["fcfs", "ps", "rr", "random", "lcfs", "fb"])
@pytest.mark.parametrize("servers", [1, 4])
def test_healthy_logs_whose_demands_double_in_busy_hours_blame_nobody(policy, servers):
    """Fixed logs; with other seeds about one in 200 is blamed (`tests.helpers.server_findings`)."""
    rng = np.random.default_rng(3)
    arrival, demand = log_of(servers, 0.85, 2.0)
    more = {"choice": rng.random(len(arrival))} if policy == "random" else {}
    assert names(arrival, serve(policy, arrival, demand, servers, **more).departure_s, servers) == []


def test_demands_that_are_all_alike_end_at_no_value_worth_a_finding():
    arrival = log_of(4)[0]
    assert names(arrival, serve("fcfs", arrival, np.full(len(arrival), 0.4), 4).departure_s, 4) == []


def test_stamps_of_milliseconds_make_no_pile():
    arrival, demand = log_of(4)
    stamped = np.floor(serve("ps", arrival, demand, 4).departure_s * 1e3) / 1e3
    assert names(np.floor(arrival * 1e3) / 1e3, stamped, 4, tick_s=1e-3) == []


def test_urgent_requests_that_are_short_do_not_look_like_more_servers():
    """In a crowd under priorities the short ones leave first, so more complete per second on the same server."""
    rng = np.random.default_rng(1)
    arrival = np.cumsum(rng.exponential(1 / 1.2, 6000))
    kind = rng.choice(3, 6000, p=[2 / 6, 3 / 6, 1 / 6])
    demand = np.select([kind == 0, kind == 1], [rng.gamma(0.25, 0.8, 6000), rng.exponential(0.5, 6000)], 0.9)
    departure = serve("priority", arrival, demand, 1, priority=kind).departure_s
    log = pd.DataFrame({"arrival_s": arrival, "departure_s": departure})
    growing = "completions grow beyond the servers"
    assert growing in [each.name for each in clean(log, 1).findings]
    assert growing in [each.name for each in clean(log.assign(priority=0), 1).findings]
    assert growing not in [each.name for each in clean(log.assign(priority=kind), 1).findings]
