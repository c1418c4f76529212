"""Logs of clients: without the network they are those of the servers, and a log says itself what the network takes."""

import re

import numpy as np
import pandas as pd
import pytest

from analysis.occupancy.identification import identify
from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.log import Log
from analysis.occupancy.logs.network import at_the_servers
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
    there = at_the_servers(log(arrival_s, departure_s), 0.0013).table
    assert there["arrival_s"].to_numpy() - arrival_s == pytest.approx(0.001, abs=1e-9)
    assert clean(there, 1).tick_s == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("delay_s", "problem"),
    [
        (0.9, r"should be at most 0.5 s, the shortest response time; 2 are shorter, got '0.9 s'"),
        (0.04, r"should be at least 0.05 s: stamps are multiples of 0.1 s, got '0.04 s'"),
    ],
)
def test_a_delay_that_the_log_excludes_is_refused(delay_s, problem):
    came = np.arange(0.0, 40.0, 0.5)
    took = np.where(came == 3.5, 0.5, 1.0)
    took[5] = 0.7
    with pytest.raises(ArgumentError, match=f"network_delay: {problem}"):
        at_the_servers(log(came, came + took, resolution_s=0.1), delay_s)


def told_s(text):
    return float(re.search(r"network (?:may take|takes) some (\S+) s", text)[1])


@pytest.mark.parametrize("delay_s", [DELAY_S, 2 * DELAY_S])
def test_a_log_says_what_the_network_takes(delay_s):
    """Ten logs of 6,000 requests of 4 ms: each tells the delay to a third, and all together to a tenth.

    Demands are uniform, so 3,600 of them that wait and 2,400 that do not tell the difference of their means to a tenth.
    """
    every = list[float]()
    for seed in range(10):
        arrival_s, departure_s = served(seed)
        departure_s = departure_s + delay_s
        refused = identify(arrival_s, departure_s, expected_servers=1).reason
        found = [str(flaw) for flaw in clean(log(arrival_s, departure_s).table, 1).findings]
        texts = [text for text in (refused, *found) if "--network-delay" in text]
        assert texts
        assert [told_s(text) for text in texts] == pytest.approx([delay_s] * len(texts), rel=0.33)
        every.append(told_s(texts[0]))
    assert np.mean(every) == pytest.approx(delay_s, rel=0.1)


def test_without_a_network_nothing_is_told_of_one():
    for seed in range(10):
        arrival_s, departure_s = served(seed)
        assert identify(arrival_s, departure_s, expected_servers=1).policy == "fcfs"
        assert not any("network" in str(flaw) for flaw in clean(log(arrival_s, departure_s).table, 1).findings)
