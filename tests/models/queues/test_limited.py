"""Stations with limits, and servers that come and go: against theory, by hand, and what is refused.

Comparisons with theory are two-sided normal tests of the mean of 12 seeds at level 1e-4 each: one set of seeds in
10,000 would call a formula that holds false.
"""

import math

import numpy as np
import pytest

from models.queues import elastic
from models.queues.elastic import GAVE_UP, REFUSED, SERVED, TIMED_OUT
from models.queues.limited import Autoscaling, ServerCourse, serve_limited
from models.queues.serve import serve

DEMANDS = {
    "exponential": lambda rng, n: rng.exponential(1.0, n),
    "constant": lambda _, n: np.ones(n),
    "bimodal": lambda rng, n: np.where(rng.random(n) < 0.9, 0.5, 5.5),
}


def shares(outcome, policy, per_s, servers, *, demand="exponential", patience_per_s=0.0, timeout_per_s=0.0, **limits):
    """The share of requests with an outcome, seed by seed; the first and the last tenth are left out."""
    found = []
    for seed in range(12):
        rng, n = np.random.default_rng(seed), 20_000
        arrival_s, demand_s = np.cumsum(rng.exponential(1.0 / per_s, n)), DEMANDS[demand](rng, n)
        patience_s = rng.exponential(1.0 / patience_per_s, (1, n)) if patience_per_s else None
        timeout_s = rng.exponential(1.0 / timeout_per_s, (1, n)) if timeout_per_s else None
        given = {
            "timeout_s": timeout_s,
            "choice": rng.random(n),
            "priority": rng.integers(0, 3, n),
            "patience_s": patience_s,
            **limits,
        }
        became = serve_limited(policy, arrival_s, demand_s, servers, **given).outcome[0]
        found.append((became[n // 10 : -n // 10] == outcome).mean())
    return np.array(found)


def agrees(found, expected):
    error = found.std(ddof=1) / math.sqrt(found.size)
    assert error < 0.03 * expected, "the test would see little"
    assert abs(found.mean() - expected) < 5.7 * error, f"{found.mean()} ± {error}, expected {expected}"  # t, 11 df


def birth_and_death(arrival_per_s, death_per_s, most):
    """The chances of 0, 1, …, `most` present; with n of them one leaves at death_per_s(n) (Kleinrock 1975, 3.1)."""
    weight = np.cumprod([1.0] + [arrival_per_s / death_per_s(n) for n in range(1, most + 1)])
    return weight / weight.sum()


@pytest.mark.statistical
def test_who_gives_up_waiting_for_a_thread_is_as_in_birth_and_death():
    """Two servers, four threads, Poisson arrivals: one of n leaves at min(n, 2), and gives up at (n - 4) / 2."""
    chances = birth_and_death(2.4, lambda n: min(n, 2) + 0.5 * max(n - 4, 0), 80)
    expected = sum(0.5 * max(n - 4, 0) * chance for n, chance in enumerate(chances)) / 2.4
    agrees(shares(GAVE_UP, "ps", 2.4, 2, patience_per_s=0.5, threads=4), expected)


@pytest.mark.parametrize(("threads", "policy"), [(3, "fcfs"), (5_000, "ps")])
def test_as_many_threads_as_servers_are_in_order_of_arrival_and_many_are_none(threads, policy):
    rng = np.random.default_rng(7)
    arrival_s, demand_s = np.cumsum(rng.exponential(0.3, 2_000)), rng.pareto(1.5, 2_000)
    limits = {"capacity": 40, "timeout_s": rng.exponential(6.0, (1, 2_000))}
    if policy == "fcfs":
        limits["patience_s"] = rng.exponential(3.0, (1, 2_000))
    pool = serve_limited("ps", arrival_s, demand_s, 3, threads=threads, **limits)
    plain = serve_limited(policy, arrival_s, demand_s, 3, **limits)
    np.testing.assert_array_equal(pool.outcome, plain.outcome)
    for name in ("start_s", "departure_s", "work_s"):
        np.testing.assert_allclose(getattr(pool, name), getattr(plain, name), rtol=0, atol=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("policy", "demand"), [("fcfs", "exponential"), ("fcfs", "bimodal"), ("ps", "constant"), ("lcfs_pr", "bimodal")]
)
def test_who_finds_all_servers_busy_is_erlangs_whatever_the_demands(policy, demand):
    """M/G/5/5 at a load of 4: Erlang's B, insensitive to the law of demands (Sevast'yanov 1957)."""
    blocked = birth_and_death(4.0, lambda n: n, 5)[-1]
    agrees(shares(REFUSED, policy, 4.0, 5, demand=demand, capacity=5), blocked)


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["fcfs", "lcfs", "random", "priority", "ps"])
def test_who_finds_the_buffer_full_is_as_in_birth_and_death(policy):
    """M/M/2/6 at a load of 2.2: whoever is next, if the order ignores demands."""
    full = birth_and_death(2.2, lambda n: min(n, 2), 6)[-1]
    agrees(shares(REFUSED, policy, 2.2, 2, capacity=6), full)


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["fcfs", "lcfs"])
def test_who_gives_up_is_as_in_erlang_a(policy):
    """M/M/3+M at a load of 3.3 and a mean patience of 2: the rate of giving up over that of arrivals (Palm 1957)."""
    chance = birth_and_death(3.3, lambda n: min(n, 3) + 0.5 * max(n - 3, 0), 200)
    expected = 0.5 * (chance * np.maximum(np.arange(201) - 3, 0)).sum() / 3.3
    agrees(shares(GAVE_UP, policy, 3.3, 3, patience_per_s=0.5), expected)


@pytest.mark.statistical
@pytest.mark.parametrize("policy", ["fcfs", "random", "lcfs_pr", "ps"])
def test_who_times_out_in_line_or_in_service_is_as_in_birth_and_death(policy):
    """M/M/3 at a load of 3.3 where everybody present leaves at 0.25 a second: that rate over the rate of arrivals."""
    chance = birth_and_death(3.3, lambda n: min(n, 3) + 0.25 * n, 200)
    expected = 0.25 * (chance * np.arange(201)).sum() / 3.3
    agrees(shares(TIMED_OUT, policy, 3.3, 3, timeout_per_s=0.25), expected)


def test_a_request_that_times_out_in_service_leaves_its_server_to_the_next_and_its_work_was_in_vain():
    stamps = serve_limited("fcfs", [0.0, 1.0, 1.5], [3.0, 1.0, 9.0], 1, timeout_s=[[2.0, 5.0, 1.0]])
    assert stamps.outcome.tolist() == [[TIMED_OUT, SERVED, TIMED_OUT]]
    assert stamps.departure_s.tolist() == [[2.0, 3.0, 2.5]]
    assert stamps.work_s.tolist() == [[2.0, 1.0, 0.0]]
    assert [part.tolist() for part in stamps.worked()] == [[0, 0], [1, 0]]
    shared = serve_limited("ps", [0.0, 0.0], [2.0, 2.0], 1, timeout_s=[[3.0, np.inf]])
    assert (shared.work_s.tolist(), shared.departure_s.tolist()) == ([[1.5, 2.0]], [[3.0, 3.5]])


@pytest.mark.parametrize("policy", ["fcfs", "srpt", "ps"])
def test_limits_that_nobody_meets_are_none(policy):
    rng, n = np.random.default_rng(1), 500
    arrival_s, demand_s = np.cumsum(rng.exponential(0.4, n)), rng.exponential(1.0, n)
    plain = serve(policy, arrival_s, demand_s, 3)
    given = {"patience_s": np.full((1, n), 1e6)} if policy != "ps" else {}
    limited = serve_limited(policy, arrival_s, demand_s, 3, capacity=n, **given)
    assert (limited.outcome == SERVED).all()
    np.testing.assert_allclose(limited.departure_s[0], plain.departure_s, rtol=0, atol=1e-9)
    np.testing.assert_allclose(limited.start_s[0], plain.start_s, rtol=0, atol=1e-9)


def test_a_refused_request_comes_again_and_its_follower_waits_for_the_last_attempt():
    stamps = serve_limited(
        "fcfs", [0.0, 1.0, np.nan], [4.0, 1.0, 1.0], 1, capacity=1, after=[-1, -1, 1], think_s=[0.0, 0.0, 2.0],
        return_s=[[9.0, 1.0, 1.0], [9.0, 2.5, 1.0]],
    )  # fmt: skip
    assert stamps.outcome.tolist() == [[SERVED, REFUSED, SERVED], [-1, REFUSED, -1], [-1, SERVED, -1]]
    assert stamps.arrival_s[:, 1].tolist() == [1.0, 2.0, 4.5]
    assert stamps.arrival_s[0, 2] == 5.5 + 2.0


def test_a_server_that_is_taken_away_finishes_first_and_costs_until_then():
    stamps = serve_limited("fcfs", [0.0, 0.0, 1.0], [5.0, 3.0, 1.0], 2, schedule=[(2.0, 1)])
    assert stamps.start_s[0].tolist() == [0.0, 0.0, 5.0]
    assert stamps.servers.time_s.tolist() == [0.0, 3.0]
    assert stamps.servers.cost_s(6.0) == 2 * 3.0 + 3.0


def test_a_preempted_request_makes_room_at_once():
    stamps = serve_limited("lcfs_pr", [0.0, 1.0], [5.0, 3.0], 2, schedule=[(2.0, 1)])
    assert stamps.departure_s[0].tolist() == [7.0, 4.0]


def test_a_server_takes_its_time_to_start_and_may_be_cancelled():
    stamps = serve_limited("fcfs", [0.0, 0.0], [3.0, 3.0], 1, schedule=[(1.0, 2)], start_up_s=1.5)
    assert stamps.start_s[0].tolist() == [0.0, 2.5]
    assert stamps.servers.starting.tolist() == [0, 1, 0]
    cancelled = serve_limited("fcfs", [0.0, 0.0], [3.0, 3.0], 1, schedule=[(1.0, 2), (2.0, 1)], start_up_s=1.5)
    assert cancelled.start_s[0].tolist() == [0.0, 3.0]


def test_the_rule_of_the_law_orders_what_would_have_kept_waiting_short():
    """Four are present for 2 s, in a look of 8 s: with three servers one would have waited all the time, 0.5 s each."""
    rule = Autoscaling("law", 0.5, look_s=8.0, least=1, most=6)
    stamps = serve_limited("ps", [0.0, 0.0, 0.0, 0.0, 20.0], [2.0] * 5, 6, autoscaling=rule)
    assert stamps.servers.on[:2].tolist() == [6, 3]


def test_the_rule_of_the_law_orders_no_more_than_the_load_and_those_that_wait_need():
    """Six are present for a look of 8 s, so that the law asks for five; for a load of 1 two do by Erlang's C."""
    rule = Autoscaling("law", 1.0, look_s=8.0, least=1, most=9)
    stamps = serve_limited("ps", [0.0] * 6 + [20.0], [8.0 / 6.0] * 7, 1, autoscaling=rule)
    assert stamps.servers.on[:2].tolist() == [1, 2]


@pytest.mark.parametrize("load", [0.3, 4.0, 30.5])
@pytest.mark.parametrize("wait", [1e-5, 0.02, 1.0])
def test_the_servers_for_a_load_are_those_of_erlangs_c(load, wait):
    """The mean wait of M/M/k over the mean demand, from the chances of 0, 1, 2, … present."""

    def mean_wait(servers):
        chance = birth_and_death(load, lambda n: min(n, servers), 5000)
        return (chance * np.maximum(np.arange(5001) - servers, 0)).sum() / load

    fewest = elastic._by_load(load, wait, 100)
    assert fewest > load
    assert mean_wait(fewest) <= wait
    assert fewest - 1 <= load or mean_wait(fewest - 1) > wait


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"policy": "rr"}, "policy is 'rr', must be one of fcfs"),
        ({"capacity": -1}, "capacity is -1"),
        ({"policy": "ps", "patience_s": [[1.0, 1.0]]}, "under policy ps no request waits"),
        ({"patience_s": [1.0, 1.0]}, r"patience_s has shape \(2,\)"),
        ({"return_s": [[-1.0, 1.0]]}, "return_s has -1.0"),
        ({"arrival_s": [-1.0, 0.0]}, r"arrival_s\[0\] is -1.0"),
        ({"schedule": [(1.0, 2), (1.0, 3)]}, "its times must increase"),
        ({"schedule": [(1.0, 0)]}, "schedule: 0 servers"),
        ({"autoscaling": Autoscaling("law", 1.0, 1.0, 2, 4)}, "servers is 1, must be from least, 2"),
        ({"autoscaling": Autoscaling("law", 0.0, 1.0, 1, 4)}, "target is 0.0"),
        ({"schedule": [(1.0, 2)], "autoscaling": Autoscaling("law", 1.0, 1.0, 1, 4)}, "only one may be"),
        ({"start_up_s": math.inf}, "start_up_s is inf"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        serve_limited(**{"policy": "fcfs", "arrival_s": [0.0, 0.0], "demand_s": [1.0, 1.0], "servers": 1, **given})


def test_the_log_of_servers_grows_as_needed():
    times = [(float(i), 1 + i % 2) for i in range(1, 3000)]
    course = serve_limited("fcfs", [0.0], [3000.0], 1, schedule=times).servers
    assert isinstance(course, ServerCourse)
    assert course.on[:4].tolist() == [1, 2, 1, 2]
    assert len(course.time_s) == 3000
