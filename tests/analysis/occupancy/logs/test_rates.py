"""Completion rates by requests present, and the number of servers in them; true servers are rarely blamed."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.log import Cleaned, LogFinding
from analysis.occupancy.logs.rates import (
    Saturation,
    ServersTest,
    completion_rates,
    conserves_work,
    contradiction,
    lone_demand,
    rates,
    servers_of,
    servers_shown,
    servers_test,
)
from models.queues.serve import serve
from tests.helpers.server_findings import day


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


def shown(paired=True):
    rng = np.random.default_rng(4)
    arrival, demand = rng.exponential(0.75, 6_000).cumsum(), rng.uniform(0.5, 1.5, 6_000)
    departure = serve("ps", arrival, demand, 2).departure_s
    return completion_rates(Cleaned(arrival, departure if paired else np.sort(departure), (), 0, paired))


@pytest.mark.statistical
def test_both_ways_show_the_servers():
    """One fixed log, in which the next number of servers is a hundred times less likely."""
    both = shown()
    assert (both.by_work.servers, both.by_rates.servers) == (2, 2)
    assert servers_shown(both.by_work, both.by_rates, 2) is None
    assert servers_shown(both.by_work, both.by_rates, 3) == 2


def test_rates_have_intervals_and_enough_completions():
    rows = shown().rates.to_dict("records")
    assert [row["jobs"] for row in rows][:8] == list(range(1, 9))
    assert all(row["low"] < row["rate_per_s"] < row["high"] for row in rows)
    assert all(row["completions"] >= 10 for row in rows)
    assert rows[0]["rate_per_s"] == pytest.approx(1.0, rel=0.1)


def test_without_pairs_rates_are_the_same_and_work_says_why_not():
    paired, lists = shown(), shown(paired=False)
    pd.testing.assert_frame_equal(lists.rates, paired.rates)
    assert lists.by_rates == paired.by_rates
    assert lists.by_work.servers is None
    assert "belong to no arrivals" in lists.by_work.reason


def test_one_request_shows_nothing():
    one = completion_rates(Cleaned(np.array([0.0]), np.array([1.0]), (), 0, True))
    assert one.rates.empty
    assert "served alone" in one.by_work.reason
    assert math.isnan(one.by_work.rate_per_s)
    assert servers_shown(one.by_work, one.by_rates, 1) is None


def test_ways_that_differ_show_nothing():
    two, three, unknown = (Saturation(servers, math.nan, math.nan, "") for servers in (2, 3, None))
    assert servers_shown(two, three, 4) is None
    assert servers_shown(two, unknown, 4) is None


def test_a_long_queue_takes_no_more_memory_than_its_length():
    arrival = np.zeros(20_000)
    assert completion_rates(Cleaned(arrival, np.arange(1.0, 20_001.0), (), 0, True)).rates.empty


def log_of(policy, servers, *, n=6_000, utilisation=0.7, seed=1, law=np.ones_like, least_s=0.5, findings=()):
    rng = np.random.default_rng(seed)
    arrival = rng.exponential(1 / (utilisation * servers), n).cumsum()
    demand = rng.uniform(least_s, 2.0 - least_s, n) if least_s else rng.exponential(1.0, n)
    demand *= law(arrival)
    return Cleaned(arrival, serve(policy, arrival, demand, servers).departure_s, findings, 0, paired=True)


def contradicted(log, servers):
    counts = completion_rates(log)
    return contradiction(counts.by_work, counts.by_rates, servers)


def verdict(log, servers):
    peak = int(max(((log.arrival_s <= t) & (log.departure_s > t)).sum() for t in log.arrival_s))
    return servers_test(log, completion_rates(log), servers, peak)


@pytest.mark.statistical
@pytest.mark.parametrize("servers", [1, 2])
def test_far_too_few_servers_are_contradicted_by_completions_that_still_grow(servers):
    """One fixed log of four servers."""
    test = verdict(log_of("ps", 4, utilisation=0.6), servers)
    assert test.verdict == "contradicted"
    assert test.reason.startswith(f"completions per second still grow with more than {servers} request")
    assert test.reason.endswith("present, as those of 4 or more servers do")


@pytest.mark.parametrize("said", [16, 21])
def test_a_number_that_the_log_would_not_tell_from_others_is_not_called_right(said):
    """At 70% load sixteen servers work nearly as much as 21 would, and demands are not known so well."""
    arrival, demand = day(np.random.default_rng(3), 16, 0.7, 1.0, 0)
    departure = serve("ps", arrival, demand, 16).departure_s
    test = verdict(clean(pd.DataFrame({"arrival_s": arrival, "departure_s": departure}), said), said)
    assert test.verdict == "cannot tell"
    assert f"to tell {said} servers from" in test.reason


def test_work_and_rates_that_show_different_numbers_confirm_neither():
    made = log_of("ps", 4, n=300)
    shown = completion_rates(made)
    apart = replace(shown, by_work=replace(shown.by_work, servers=3), by_rates=replace(shown.by_rates, servers=4))
    unpaired = Cleaned(made.arrival_s, made.departure_s, (), 0, paired=False)
    assert servers_test(unpaired, apart, 3, 10).verdict == "cannot tell"


def test_requests_that_never_queue_contradict_a_few_servers():
    """They wait for something else than a core, each for a time of its own."""
    rng = np.random.default_rng(0)
    arrival = rng.exponential(1 / 60, 20_000).cumsum()
    log = Cleaned(arrival, arrival + rng.lognormal(np.log(0.04), 0.6, 20_000), (), 0, paired=True)
    assert verdict(log, 2).verdict == "contradicted"
    assert "still grow with more than 2 requests present" in verdict(log, 2).reason


@pytest.mark.statistical
def test_the_right_number_of_servers_is_seldom_contradicted_even_if_demands_follow_the_load():
    """Of 5,040 logs 23 were contradicted, all of srpt; of 48 of other policies more than one is once in 50,000."""

    def heavier(arrival):
        return np.where((arrival // 200).astype(int) % 4 == 3, 1.5, 1.0)

    reasons = [
        contradicted(log_of(policy, servers, n=3_000, seed=seed, law=law, least_s=0.0), servers)
        for policy in ("fcfs", "ps", "lcfs")
        for servers in (1, 2, 4, 8)
        for law in (np.ones_like, heavier)
        for seed in (1, 2)
    ]
    assert sum(reason != "" for reason in reasons) <= 1


def test_demands_that_were_seen_do_not_contradict_the_right_number():
    assert verdict(log_of("fcfs", 2), 2).verdict == "not contradicted"


COARSE = LogFinding("coarse stamps", 1, "", "")


@pytest.mark.parametrize(
    ("log", "servers", "reason"),
    [
        (log_of("ps", 2, n=300, utilisation=0.1), 9, "requests were present, and every number from"),
        (log_of("ps", 2, n=300, findings=(COARSE,)), 2, "stamps are too coarse"),
        (
            log_of("ps", 8, n=2_000, utilisation=0.97),
            8,
            "ended while at most 8 requests were present: demands are not known without a policy",
        ),
    ],
)
def test_a_number_of_servers_that_nothing_tests_is_said_to_be_untested_and_why(log, servers, reason):
    test = verdict(log, servers)
    assert test.verdict == "not tested"
    assert reason in test.reason


@pytest.mark.statistical
def test_rates_alone_are_no_proof_and_are_told_as_such():
    """One fixed log of four servers whose demands nobody saw, said to be two's."""
    test = verdict(log_of("ps", 4, least_s=0.0, seed=2), 2)
    assert test.verdict == "cannot tell"
    assert test.reason.startswith("completions per second still grow with more than 2 requests present, as those of 4")
    assert test.reason.endswith("demands are not known without a policy")


def test_separate_lists_of_arrivals_and_departures_test_no_servers():
    log = log_of("ps", 2, n=300)
    lists = Cleaned(log.arrival_s, np.sort(log.departure_s), (), 0, paired=False)
    test = servers_test(lists, completion_rates(lists), 2, 10)
    assert test == ServersTest("not tested", "departures belong to no arrivals")


def excluded(least, most):
    return Saturation(None, math.nan, math.nan, "", least, most)


def test_work_that_fits_the_number_outweighs_the_rates():
    rates_say = excluded(6, 9)
    assert contradiction(excluded(2, None), rates_say, 2) == ""
    assert contradiction(excluded(4, None), rates_say, 2)
    assert contradiction(excluded(None, None), rates_say, 2)
    assert contradiction(excluded(None, None), rates_say, 3) == ""
    stop = "completions per second stop growing long before 20 requests are present, as those of 9 servers or fewer do"
    assert contradiction(excluded(5, 7), rates_say, 20) == stop


def test_rates_contradict_half_as_many_servers_and_not_more():
    both = excluded(4, 5), excluded(4, 4)
    grow = "completions per second still grow with more than 2 requests present, as those of 4 or more servers do"
    assert (contradiction(*both, 2), contradiction(*both, 3)) == (grow, "")


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


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
@pytest.mark.parametrize("servers", [1, 4])
def test_demands_that_double_in_busy_hours_blame_nobody(policy, servers):
    """Fixed logs; with other seeds `tests.helpers.server_findings` counts how often somebody is blamed."""
    for seed in range(2):
        arrival, demand = day(np.random.default_rng(seed), servers, 0.7, 2.0, law=True)
        assert blamed(arrival, serve(policy, arrival, demand, servers).departure_s, servers) == []


def test_demands_of_a_crowd_are_not_compared_with_those_of_a_calmer_time():
    """Fixed log, blamed before: the longest demands of busy hours leave in crowds, where nobody's demand is known."""
    arrival, demand = day(np.random.default_rng([0, 16, 70, True]), 16, 0.7, 2.0, law=False)
    assert blamed(arrival, serve("ps", arrival, demand, 16).departure_s, 16) == []


def test_departures_after_a_crowd_were_not_served_in_the_calm_stretch_that_sees_them():
    """Fixed log of constant demands: a crowd that leaves at once looked like more servers."""
    for load in (0.7, 0.9):
        arrival, demand = day(np.random.default_rng([4, 16, int(100 * load), 2]), 16, load, 1.0, law=False)
        alike = np.full(len(arrival), demand.mean())
        assert blamed(arrival, serve("ps", arrival, alike, 16).departure_s, 16) == []
