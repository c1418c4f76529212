"""Completion rates in the payload, and the servers that they show."""

import math

import numpy as np
import pytest

from analysis.occupancy.logs.hygiene import Cleaned, Finding
from models.queues.serve import serve
from scenarios.occupancy.rates import contradiction, servers_test, service_rates, shown_instead


def made(paired=True):
    rng = np.random.default_rng(4)
    arrival, demand = rng.exponential(0.75, 6_000).cumsum(), rng.uniform(0.5, 1.5, 6_000)
    departure = serve("ps", arrival, demand, 2).departure_s
    return service_rates(Cleaned(arrival, departure if paired else np.sort(departure), (), 0, paired))


@pytest.mark.statistical
def test_both_ways_show_the_servers():
    """One fixed log, in which the next number of servers is a hundred times less likely."""
    said = made()
    assert (said["servers_by_work"]["servers"], said["servers_by_rates"]["servers"]) == (2, 2)
    assert shown_instead(said, 2) is None
    assert shown_instead(said, 3) == 2


def test_rates_have_intervals_and_enough_completions():
    rows = made()["rates"]
    assert [row["jobs"] for row in rows][:8] == list(range(1, 9))
    assert all(row["low"] < row["rate_per_s"] < row["high"] for row in rows)
    assert all(row["completions"] >= 10 for row in rows)
    assert rows[0]["rate_per_s"] == pytest.approx(1.0, rel=0.1)


def test_without_pairs_rates_are_the_same_and_work_says_why_not():
    paired, lists = made(), made(paired=False)
    assert lists["rates"] == paired["rates"]
    assert lists["servers_by_rates"] == paired["servers_by_rates"]
    assert lists["servers_by_work"]["servers"] is None
    assert "belong to no arrivals" in lists["servers_by_work"]["reason"]


def test_one_request_shows_nothing():
    said = service_rates(Cleaned(np.array([0.0]), np.array([1.0]), (), 0, True))
    assert said["rates"] == []
    assert "served alone" in said["servers_by_work"]["reason"]
    assert math.isnan(said["servers_by_work"]["rate_per_s"])
    assert shown_instead(said, 1) is None


def test_ways_that_differ_show_nothing():
    assert shown_instead({"servers_by_work": {"servers": 2}, "servers_by_rates": {"servers": 3}}, 4) is None
    assert shown_instead({"servers_by_work": {"servers": 2}, "servers_by_rates": {"servers": None}}, 4) is None


def test_a_long_queue_takes_no_more_memory_than_its_length():
    arrival = np.zeros(20_000)
    said = service_rates(Cleaned(arrival, np.arange(1.0, 20_001.0), (), 0, True))
    assert said["rates"] == []


def log_of(policy, servers, *, n=6_000, utilisation=0.7, seed=1, law=np.ones_like, least_s=0.5, findings=()):
    rng = np.random.default_rng(seed)
    arrival = rng.exponential(1 / (utilisation * servers), n).cumsum()
    demand = rng.uniform(least_s, 2.0 - least_s, n) if least_s else rng.exponential(1.0, n)
    demand *= law(arrival)
    return Cleaned(arrival, serve(policy, arrival, demand, servers).departure_s, findings, 0, paired=True)


def verdict(log, servers):
    peak = int(max(((log.arrival_s <= t) & (log.departure_s > t)).sum() for t in log.arrival_s))
    return servers_test(log, service_rates(log), servers, peak)


@pytest.mark.statistical
@pytest.mark.parametrize("servers", [1, 2])
def test_far_too_few_servers_are_contradicted_by_completions_that_still_grow(servers):
    """One fixed log of four servers."""
    found = verdict(log_of("ps", 4, utilisation=0.6), servers)
    assert found["verdict"] == "contradicted"
    assert found["reason"].startswith(f"completions per second still grow with more than {servers} request")
    assert found["reason"].endswith("present, as those of 4 or more servers do")


def test_requests_that_never_queue_contradict_a_few_servers():
    """They wait for something else than a core, each for a time of its own."""
    rng = np.random.default_rng(0)
    arrival = rng.exponential(1 / 60, 20_000).cumsum()
    log = Cleaned(arrival, arrival + rng.lognormal(np.log(0.04), 0.6, 20_000), (), 0, paired=True)
    assert verdict(log, 2)["verdict"] == "contradicted"
    assert "still grow with more than 2 requests present" in verdict(log, 2)["reason"]


@pytest.mark.statistical
def test_the_right_number_of_servers_is_seldom_contradicted_even_if_demands_follow_the_load():
    """Of 5,040 logs 23 were contradicted, all of srpt; of 48 of other policies more than one is once in 50,000."""

    def heavier(arrival):
        return np.where((arrival // 200).astype(int) % 4 == 3, 1.5, 1.0)

    found = [
        contradiction(service_rates(log_of(policy, servers, n=3_000, seed=seed, law=law, least_s=0.0)), servers)
        for policy in ("fcfs", "ps", "lcfs")
        for servers in (1, 2, 4, 8)
        for law in (np.ones_like, heavier)
        for seed in (1, 2)
    ]
    assert sum(reason != "" for reason in found) <= 1


def test_demands_that_were_seen_do_not_contradict_the_right_number():
    assert verdict(log_of("fcfs", 2), 2)["verdict"] == "not contradicted"


COARSE = Finding("coarse stamps", 1, "", "")


@pytest.mark.parametrize(
    ("log", "servers", "reason"),
    [
        (log_of("ps", 2, n=300, utilisation=0.1), 9, "requests were present, and every number from"),
        (log_of("ps", 2, n=300, findings=(COARSE,)), 2, "stamps are too coarse"),
        (log_of("ps", 8, n=2_000, utilisation=0.97), 8, "left before more than 8 were present: demands are not known"),
    ],
)
def test_a_number_of_servers_that_nothing_tests_is_said_to_be_untested_and_why(log, servers, reason):
    found = verdict(log, servers)
    assert found["verdict"] == "not tested"
    assert reason in found["reason"]


@pytest.mark.statistical
def test_rates_alone_are_no_proof_and_are_told_as_such():
    """One fixed log of four servers whose demands nobody saw, said to be two's."""
    found = verdict(log_of("ps", 4, least_s=0.0, seed=2), 2)
    assert found["verdict"] == "cannot tell"
    assert found["reason"].startswith(
        "completions per second still grow with more than 2 requests present, as those of 4"
    )
    assert found["reason"].endswith("demands are not known")


def test_separate_lists_of_arrivals_and_departures_test_no_servers():
    log = log_of("ps", 2, n=300)
    lists = Cleaned(log.arrival_s, np.sort(log.departure_s), (), 0, paired=False)
    found = servers_test(lists, service_rates(lists), 2, 10)
    assert found == {"verdict": "not tested", "reason": "departures belong to no arrivals"}


def test_work_that_fits_the_number_outweighs_the_rates():
    rates = {"least": 6, "most": 9}
    assert contradiction({"servers_by_rates": rates, "servers_by_work": {"least": 2, "most": None}}, 2) == ""
    assert contradiction({"servers_by_rates": rates, "servers_by_work": {"least": 4, "most": None}}, 2)
    assert contradiction({"servers_by_rates": rates, "servers_by_work": {"least": None, "most": None}}, 2)
    assert contradiction({"servers_by_rates": rates, "servers_by_work": {"least": None, "most": None}}, 3) == ""
    stop = "completions per second stop growing long before 20 requests are present, as those of 9 servers or fewer do"
    assert contradiction({"servers_by_rates": rates, "servers_by_work": {"least": 5, "most": 7}}, 20) == stop
