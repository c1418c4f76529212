"""Requests of one stay, served at the pace of its machine."""

import heapq
from dataclasses import replace

import numpy as np
import pytest

from models.fleet.served import Served, ServedType
from sim.profiling.stay_requests import Stay, serve_stay

EDGES_S = 600.0 + 300.0 * np.arange(9)
PACE_S = np.array([4.0, 7.0, 3.0, 5.0, 9.0, 2.0, 6.0, 4.0]) * 1e-10
MIXED = Served(
    "shop",
    types=(
        ServedType("view", weight=3.0, size=0.5, swing=0.9, peak_hour=0.0),
        ServedType("buy", weight=1.0, size=2.0, swing=0.9, peak_hour=12.0),
    ),
)


def stay(servers=2, instructions=6e11, each=2e10, pace_s=PACE_S):
    return Stay(EDGES_S, np.full(8, instructions), pace_s, each, servers)


def worked(log, of):
    """Return the instructions that the servers executed in each epoch, from the busy times."""
    return log.busy_s / of.pace_s


def first_come(arrival_s, work, of):
    """Serve requests in order of arrival, each step of a server followed through the epochs: slow, to be read."""
    free = [float(EDGES_S[0])] * of.servers
    left = []
    for start_s, instructions in zip(arrival_s, work, strict=True):
        todo = instructions
        now = max(heapq.heappop(free), start_s)
        while todo > 0 and now < EDGES_S[-1]:
            epoch = int(np.searchsorted(EDGES_S, now, side="right")) - 1
            room = (EDGES_S[epoch + 1] - now) / of.pace_s[epoch]
            done = min(todo, room)
            now = EDGES_S[epoch + 1] if done == room else now + done * of.pace_s[epoch]
            todo -= done
        left.append(np.nan if todo > 0 else now)
        heapq.heappush(free, np.inf if todo > 0 else now)
    return np.array(left)


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_first_come_first_served_is_what_following_each_server_through_the_epochs_says(servers):
    """Requests are all alike, so that their lengths are known without looking at how they were drawn."""
    one, of = Served("shop", "fcfs", request_cv=0.0), stay(servers)
    log = serve_stay(of, one, 5, 3)
    assert log.arrival_s.size > 150
    expected = first_come(log.arrival_s, np.full(log.arrival_s.size, 2e10), of)
    np.testing.assert_allclose(log.departure_s, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("policy", ["ps", "fcfs"])
def test_a_lone_request_takes_its_instructions_times_the_pace_of_the_epochs_that_it_meets(policy):
    asked = Served("shop", policy, request_cv=0.0)
    log = serve_stay(stay(servers=8, instructions=4e9, each=5e11), asked, 12, 2)
    assert log.arrival_s.size == 0 or np.isfinite(log.arrival_s).all()
    found = [serve_stay(stay(8, 4e9, 5e11), asked, 12, number) for number in range(300)]
    alone = [each for each in found if each.arrival_s.size == 1 and np.isfinite(each.departure_s[0])]
    assert len(alone) > 5
    for each in alone:
        expected = first_come(each.arrival_s, [5e11], stay(8, 4e9, 5e11))
        np.testing.assert_allclose(each.departure_s, expected, atol=1e-6)


@pytest.mark.parametrize("policy", ["ps", "fcfs"])
def test_busy_time_is_that_of_the_servers_that_the_requests_present_keep_busy(policy):
    of = stay()
    log = serve_stay(of, replace(MIXED, policy=policy), 5, 3)
    left = np.where(np.isnan(log.departure_s), EDGES_S[-1], log.departure_s)
    looks = EDGES_S[0] + (np.arange(80_000) + 0.5) * (2400.0 / 80_000)
    present = np.searchsorted(np.sort(log.arrival_s), looks) - np.searchsorted(np.sort(left), looks)
    sampled = np.minimum(present, 2).reshape(8, -1).mean(axis=1) * 300.0
    np.testing.assert_allclose(log.busy_s, sampled, atol=0.3)


def test_what_is_executed_is_what_finished_requests_asked_and_a_part_of_those_that_did_not():
    of = stay()
    log = serve_stay(of, Served("shop", "ps", request_cv=0.0), 5, 3)
    finished = np.isfinite(log.departure_s)
    executed = worked(log, of).sum()
    assert finished.sum() * 2e10 - 1 <= executed <= finished.size * 2e10 + 1


def test_requests_that_the_stay_outlives_not_have_no_departure_and_others_leave_within_it():
    log = serve_stay(stay(1, 9e12), MIXED, 5, 3)
    assert np.isnan(log.departure_s).any()
    left = log.departure_s[np.isfinite(log.departure_s)]
    assert left.max() <= EDGES_S[-1]
    assert (np.diff(log.arrival_s) >= 0).all()
    assert log.busy_s[1:] == pytest.approx(300.0)


def test_numbers_follow_from_seed_and_stay_alone():
    one, again, other = (serve_stay(stay(), MIXED, 5, number) for number in (3, 3, 4))
    np.testing.assert_array_equal(one.departure_s, again.departure_s)
    assert one.arrival_s.size != other.arrival_s.size or (one.arrival_s != other.arrival_s).any()


@pytest.mark.statistical
def test_as_many_requests_come_as_the_load_has_instructions_for():
    """A Poisson number of mean 24,000 within 4.5 standard errors: 1 in 150,000 runs."""
    log = serve_stay(stay(8, 6e13, 2e10), MIXED, 8, 1)
    assert abs(log.arrival_s.size - 24_000) < 4.5 * np.sqrt(24_000)


@pytest.mark.statistical
def test_types_come_by_their_weights_at_the_hour_and_sizes_have_the_mean_asked_for():
    """A binomial share of 24,000 within 4.5 standard errors, and instructions within 4.5 of theirs: 1 in 70,000.

    At half past midnight view weighs 3 × 1.9 and buy 0.1, by the cosine of a quarter of an hour to within 0.02.
    """
    log = serve_stay(stay(64, 6e13, 2e10), replace(MIXED, request_cv=0.0), 8, 1)
    share = 0.1 / (3 * 1.9 + 0.1)
    assert abs((log.kind == 1).mean() - share) < 4.5 * np.sqrt(share / 24_000) + 0.002
    size = np.where(log.kind == 1, 2.0, 0.5) / ((3 * 0.5 + 2.0) / 4)
    total = np.where(np.isfinite(log.departure_s), size, 0.0).sum() * 2e10
    assert worked(log, stay(64)).sum() == pytest.approx(total, rel=0.01)
