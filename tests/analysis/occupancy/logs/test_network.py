"""Logs of clients: without the network they are those of the servers, and a log says itself what the network takes."""

import re

import numpy as np
import pandas as pd
import pytest

from analysis.occupancy.identification import DemandTest, identify
from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.log import Log
from analysis.occupancy.logs.network import at_the_servers, network_option
from models.errors import ArgumentError
from models.queues.serve import serve

DELAY_S = 0.0005


def served(seed, servers=1, requests=6_000, load=0.6):
    rng = np.random.default_rng(seed)
    arrival_s = rng.exponential(0.004 / (load * servers), requests).cumsum()
    return arrival_s, serve("fcfs", arrival_s, rng.uniform(0.0013, 0.0067, requests), servers).departure_s


def log(arrival_s, departure_s, **more):
    return Log(pd.DataFrame({"arrival_s": arrival_s, "departure_s": departure_s}), **more)


def test_without_the_network_times_are_those_at_the_servers():
    arrival_s, departure_s = served(1)
    there = at_the_servers(log(arrival_s - 0.0002, departure_s + 0.0003), DELAY_S).table - 0.0003
    assert there["arrival_s"].to_numpy() == pytest.approx(arrival_s, abs=1e-9)
    assert there["departure_s"].to_numpy() == pytest.approx(departure_s, abs=1e-9)


def test_requests_that_have_not_left_or_came_unseen_stay():
    there = at_the_servers(log([0.0, np.nan, 2.0], [np.nan, 1.0, 3.0]), 0.5).table
    assert there["arrival_s"].to_list() == pytest.approx([0.5, np.nan, 2.5], nan_ok=True)
    assert there["departure_s"].to_list() == pytest.approx([np.nan, 1.0, 3.0], nan_ok=True)


def test_stamps_stay_multiples_of_what_they_were_rounded_to():
    arrival_s, departure_s = (np.round(times_s, 3) for times_s in served(2))
    there = at_the_servers(log(arrival_s, departure_s), 0.0013, tick_s=1e-3).table
    assert there["arrival_s"].to_numpy() - arrival_s == pytest.approx(0.001, abs=1e-9)
    assert clean(there, 1).tick_s == pytest.approx(1e-3)
    there = at_the_servers(log(arrival_s, departure_s), 0.0005, tick_s=1e-3).table
    assert there["arrival_s"].to_numpy() - arrival_s == pytest.approx(0.001, abs=1e-9)


def test_a_few_requests_that_took_less_arrive_when_they_leave_and_are_told():
    arrival_s, departure_s = served(3)
    departure_s[5], departure_s[9] = arrival_s[5], arrival_s[9] + 0.0002
    departure_s[7] = arrival_s[7] - 0.1  # by a clock that is off: moved as all others
    there = at_the_servers(log(arrival_s, departure_s, notes=("seen before",)), 0.001)
    moved_s = there.table["arrival_s"].to_numpy() - arrival_s
    assert moved_s[[5, 7, 9]] == pytest.approx([0.0, 0.001, 0.0002], abs=1e-9)
    assert np.delete(moved_s, [5, 9]) == pytest.approx(0.001, abs=1e-9)
    assert there.notes[0] == "seen before"
    assert there.notes[1].endswith("0.001 s longer; requests that took less, and arrive here when they leave: 2")


@pytest.mark.parametrize(
    ("delay_s", "tick_s", "problem"),
    [
        (0.9, 0.0, r"should be at most 0.7123 s: 99% of the requests took as long, got '0.9 s'"),
        (0.7124, 0.0, r"should be at most 0.7123 s: 99% of the requests took as long, got '0.7124 s'"),
        (0.04, 0.1, r"should be at least 0.05 s: stamps are multiples of 0.1 s, got '0.04 s'"),
    ],
)
def test_a_delay_that_the_log_excludes_is_refused(delay_s, tick_s, problem):
    came = np.arange(0.0, 40.0, 0.5)
    took = np.where(np.arange(80) < 3, 0.71234, 1.0)
    with pytest.raises(ArgumentError, match=f"network_delay: {problem}"):
        at_the_servers(log(came, came + took), delay_s, tick_s)


def test_without_departures_of_arrivals_there_is_no_telling():
    with pytest.raises(ArgumentError, match="network_delay: needs the departure of each request"):
        at_the_servers(log([0.0, np.nan], [np.nan, 1.0]), 0.5)


def hints(arrival_s, departure_s, servers):
    """What refusal and findings say, those that speak of a network, and the options in them."""
    refused = identify(arrival_s, departure_s, expected_servers=servers).reason
    found = [str(flaw) for flaw in clean(log(arrival_s, departure_s).table, servers).findings]
    texts = [text for text in (refused, *found) if "--network-delay" in text]
    return texts, [float(option) for text in texts for option in re.findall(r"--network-delay ([0-9.e-]+)", text)]


@pytest.mark.parametrize(("servers", "delay_s"), [(1, 0.0005), (1, 0.001), (2, 0.001)])
def test_a_log_of_first_come_first_served_says_what_the_network_takes(servers, delay_s):
    """Four logs of 6,000 requests of 4 ms, uniform: each hint is right to a third, and their mean to a fifth.

    A hint is the difference of two means, of those that find a free server and of all, which chance moves by a tenth.
    """
    every = list[float]()
    for seed in range(4):
        arrival_s, departure_s = served(seed, servers, load=0.6 if servers == 1 else 0.75)
        texts, options = hints(arrival_s, departure_s + delay_s, servers)
        assert len(texts) == len(options)
        every += options
    assert len(every) >= 4
    assert every == pytest.approx([delay_s] * len(every), rel=0.34)
    assert np.mean(every) == pytest.approx(delay_s, rel=0.2)


def test_where_requests_share_a_server_the_refusal_names_no_delay():
    """There the difference of demands is half of it; the finding, which knows no policy, is right."""
    every = list[float]()
    for seed in range(4, 6):
        rng = np.random.default_rng(seed)
        arrival_s = rng.exponential(0.004 / 0.7, 6_000).cumsum()
        departure_s = serve("ps", arrival_s, rng.uniform(0.0013, 0.0067, 6_000), 1).departure_s + 0.001
        texts, options = hints(arrival_s, departure_s, 1)
        assert "a client wrote the log and the network is in it (--network-delay)" in texts[0]
        every += options
    assert every
    assert every == pytest.approx([0.001] * len(every), rel=0.34)


def test_a_hint_is_never_more_than_nearly_all_requests_took():
    rng = np.random.default_rng(5)
    arrival_s = rng.exponential(0.004 / 0.7, 6_000).cumsum()
    for delay_s in (0.001, 0.002):
        departure_s = serve("fcfs", arrival_s, rng.exponential(0.004, 6_000), 1).departure_s + delay_s
        for option in hints(arrival_s, departure_s, 1)[1]:
            at_the_servers(log(arrival_s, departure_s), option)


def test_demands_that_are_longer_in_company_say_nothing_of_a_network():
    alone = DemandTest("alone", 0.2, 0.0, longer_s=-0.001)
    assert network_option(alone.longer_s, np.ones(9)) == network_option(np.nan, np.ones(9)) == ""


@pytest.mark.parametrize("servers", [1, 2, 4])
def test_without_a_network_nothing_is_told_of_one(servers):
    for seed in range(2):
        arrival_s, departure_s = served(seed, servers)
        assert identify(arrival_s, departure_s, expected_servers=servers).policy == "fcfs"
        assert hints(arrival_s, departure_s, servers) == ([], [])
