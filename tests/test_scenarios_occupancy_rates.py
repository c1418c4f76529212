"""Completion rates in the payload, and the servers that they show."""

import math

import numpy as np
import pytest

from analysis.logs.hygiene import Cleaned
from models.queues.serve import serve
from scenarios.occupancy_rates import service_rates, shown_instead


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
