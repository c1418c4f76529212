"""What holds for every policy of the station: work is conserved, Little's law, and Ciw's departures are ours."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queues.policies import POLICIES
from models.queues.serve import serve

CIW = pd.read_csv(Path(__file__).parents[2] / "helpers" / "ciw_departures.csv")
each = pytest.mark.parametrize("policy", POLICIES)
OPEN = ("fcfs", "ps", "priority", "srpt", "rr")


def drawn(seed, n, servers):
    """Sessions with thinking between requests, at a utilisation of about 0.8."""
    rng = np.random.default_rng(seed)
    after = np.where(rng.random(n) < 0.5, np.arange(n) - 1, -1)
    after[0] = -1
    arrival_s = np.where(after < 0, np.cumsum(rng.exponential(1.25 / servers, n)), np.nan)
    extra = {"after": after, "think_s": rng.exponential(2, n), "priority": rng.integers(0, 3, n)}
    return arrival_s, rng.exponential(1, n), extra | {"choice": rng.random(n)}


def occupancy(service):
    """Lengths of the intervals between events and the jobs present in each."""
    time_s = np.concatenate([service.arrival_s, service.departure_s])
    order = np.argsort(time_s, kind="stable")
    change = np.repeat([1, -1], service.arrival_s.size)
    return np.diff(time_s[order]), np.cumsum(change[order])[:-1]


@each
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32), servers=st.integers(1, 5))
def test_busy_servers_do_all_the_work_and_nothing_else(policy, seed, servers):
    arrival_s, demand_s, extra = drawn(seed, 200, servers)
    length_s, jobs = occupancy(serve(policy, arrival_s, demand_s, servers, **extra))
    assert (length_s * np.minimum(jobs, servers)).sum() == pytest.approx(demand_s.sum(), rel=1e-9)


@each
def test_no_server_idles_while_somebody_waits_whatever_the_cores(policy):
    arrival_s, demand_s, extra = drawn(3, 300, 3)
    for total, given_too in (
        (np.array([2.0, 2.7, 3.0]), {"speeds": [0.7, 2.0, 0.3]}),
        (np.array([1.0, 1.5, 1.2]), {"rates": [1.0, 1.5, 1.2]}),
    ):
        if policy in ("ps", "fb", "lcfs_pr", "srpt", "priority") or "rates" in given_too:
            length_s, jobs = occupancy(serve(policy, arrival_s, demand_s, 3, **extra, **given_too))
            done = (length_s * np.append(0.0, total)[np.minimum(jobs, 3)]).sum()
            assert done == pytest.approx(demand_s.sum(), rel=1e-9)


@each
def test_jobs_present_on_average_are_throughput_times_response_time(policy):
    arrival_s, demand_s, extra = drawn(4, 2000, 4)
    service = serve(policy, arrival_s, demand_s, 4, **extra)
    length_s, jobs = occupancy(service)
    assert (service.departure_s - service.arrival_s).sum() == pytest.approx((length_s * jobs).sum(), rel=1e-9)


@each
def test_nobody_starts_before_arriving_or_leaves_before_the_work_is_done(policy):
    arrival_s, demand_s, extra = drawn(5, 1000, 2)
    service = serve(policy, arrival_s, demand_s, 2, **extra)
    assert (service.start_s >= service.arrival_s).all()
    assert (service.departure_s - service.start_s >= demand_s * (1 - 1e-9)).all()


@each
def test_a_follower_arrives_when_its_user_has_thought(policy):
    arrival_s, demand_s, extra = drawn(6, 500, 2)
    service, follows = serve(policy, arrival_s, demand_s, 2, **extra), extra["after"] >= 0
    left_s = service.departure_s[extra["after"][follows]]
    np.testing.assert_array_equal(service.arrival_s[follows], left_s + extra["think_s"][follows])


@each
def test_the_last_of_a_busy_period_leaves_at_one_moment_under_every_policy(policy):
    rng = np.random.default_rng(7)
    arrival_s, demand_s = np.cumsum(rng.exponential(1.2, 500)), rng.exponential(1, 500)
    end_s = serve("fcfs", arrival_s, demand_s, 1).departure_s
    empty = np.flatnonzero(arrival_s[1:] > end_s[:-1])
    given_too = {"priority": rng.integers(0, 3, 500), "choice": rng.random(500)}
    service = serve(policy, arrival_s, demand_s, 1, **given_too)
    np.testing.assert_allclose(np.maximum.accumulate(service.departure_s)[empty], end_s[empty], rtol=1e-12)


@pytest.mark.parametrize("policy", OPEN)
@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), servers=st.integers(1, 6))
def test_the_station_and_the_plain_kernels_agree_on_open_arrivals(policy, seed, servers):
    rng, n = np.random.default_rng(seed), 100
    arrival_s, demand_s = np.sort(rng.uniform(0, 90 / servers, n)), rng.exponential(1, n)
    given_too = {"priority": rng.integers(0, 3, n), "quantum_s": rng.uniform(0.01, 1)}
    plain = serve(policy, arrival_s, demand_s, servers, **given_too)
    general = serve(policy, arrival_s, demand_s, servers, **given_too, speeds=np.ones(servers))
    np.testing.assert_allclose(plain.start_s, general.start_s, rtol=1e-9)
    np.testing.assert_allclose(plain.departure_s, general.departure_s, rtol=1e-9)


@pytest.mark.parametrize("setting", sorted(CIW["setting"].unique()))
@pytest.mark.parametrize("kernel", ["station", "plain"])
def test_every_request_leaves_when_ciw_says(setting, kernel):
    policy, servers = setting.split("_")
    told = CIW[CIW["setting"] == setting]
    columns = (told[name].to_numpy() for name in ("arrival_s", "demand_s"))
    speeds = np.ones(int(servers)) if kernel == "station" else None
    service = serve(policy, *columns, int(servers), priority=told["priority"].to_numpy(), speeds=speeds)
    np.testing.assert_allclose(service.departure_s, told["departure_s"], rtol=1e-12)


@each
def test_the_order_of_the_cores_does_not_matter(policy):
    arrival_s, demand_s, extra = drawn(8, 300, 3)
    one = serve(policy, arrival_s, demand_s, 3, **extra, speeds=[0.5, 1.0, 2.0])
    other = serve(policy, arrival_s, demand_s, 3, **extra, speeds=[2.0, 0.5, 1.0])
    np.testing.assert_array_equal(one.departure_s, other.departure_s)


@each
def test_a_clock_in_another_unit_shows_the_same_times(policy):
    arrival_s, demand_s, extra = drawn(9, 300, 3)
    one = serve(policy, arrival_s, demand_s, 3, **extra, quantum_s=0.25)
    extra |= {"think_s": 1024 * extra["think_s"], "quantum_s": 256.0}
    other = serve(policy, 1024 * arrival_s, 1024 * demand_s, 3, **extra)
    np.testing.assert_allclose(other.departure_s, 1024 * one.departure_s, rtol=1e-12)


@pytest.mark.parametrize("speeds", [None, [1.0]])
def test_demands_of_whole_quanta_need_no_slice_for_what_rounding_leaves(speeds):
    service = serve("rr", [0.0, 0.0], [2.0, 2.0], 1, quantum_s=0.001, speeds=speeds)
    np.testing.assert_allclose(service.departure_s, [3.999, 4.0])
