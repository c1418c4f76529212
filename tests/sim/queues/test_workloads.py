"""Workloads hold what was asked: chains in order, draws that belong to names, demands at the pace of their time."""

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from models.queues.world import (
    Arrivals,
    Clients,
    Contention,
    Distribution,
    JobDemand,
    Load,
    Observation,
    QueueWorld,
    RequestType,
    Sessions,
    Station,
    Trace,
)
from sim.queues.arrivals import arrival_times
from sim.queues.workloads import NOBODY, draw, expected_client_requests, kept

PAGE = RequestType("page", Distribution("uniform", low=1.0, high=2.0), weight=3.0, priority=1)
IMAGE = RequestType("image", Distribution("exponential", mean=0.1))
OPEN = Load(Arrivals(0.5), types=(PAGE, IMAGE))
SEMI_OPEN = replace(OPEN, sessions=Sessions(4))
CLOSED = Load(clients=Clients(5, Distribution("exponential", mean=2.0)), types=(PAGE, IMAGE))
JOB = Load(Arrivals(0.5), job=JobDemand("small", "ads", Distribution("constant", mean=1e9)))
TRACE = Load(trace=Trace("log.csv"))
ROWS = pd.DataFrame({"arrival_s": [5.0, 1.0, 1.0, 99.0], "demand_s": [0.5, 0.0, 2.0, 1.0], "type": list("baba")})
PACE = (np.array([0.0, 100.0]), np.array([1e-9, 3e-9]))


def world(load, **settings):
    return QueueWorld(**{"horizon_s": 300.0, "load": load, **settings})


def same(one, two):
    return all(np.array_equal(getattr(one, each.name), getattr(two, each.name), equal_nan=True) for each in ARRAYS)


ARRAYS = [each for each in fields(draw(world(OPEN))) if each.name != "names"]


def test_open_requests_arrive_as_the_arrivals_say_and_follow_nobody():
    asked = draw(world(OPEN, seed=4))
    np.testing.assert_array_equal(asked.arrival_s, arrival_times(Arrivals(0.5), 300.0, 4))
    assert {*asked.after, *asked.session} == {NOBODY}
    assert not asked.think_s.any()


def test_a_session_asks_as_often_as_said_and_thinks_in_between():
    asked = draw(world(SEMI_OPEN))
    sessions = int(asked.session.max()) + 1
    assert len(asked.arrival_s) == 4 * sessions
    for session in range(sessions):
        mine = np.flatnonzero(asked.session == session)
        assert asked.after[mine].tolist() == [NOBODY, *mine[:-1].tolist()]
        assert np.isnan(asked.arrival_s[mine]).tolist() == [False, True, True, True]
        assert asked.think_s[mine[0]] == 0
        assert ((asked.think_s[mine[1:]] >= 3) & (asked.think_s[mine[1:]] <= 6)).all()


def test_a_client_thinks_before_its_first_request_too():
    asked = draw(world(CLOSED), client_requests=10)
    assert asked.session[:5].tolist() == [0, 1, 2, 3, 4]
    assert (asked.arrival_s[:5] > 0).all()
    assert asked.after[5:].tolist() == list(range(len(asked.after) - 5))


def test_longer_chains_of_clients_begin_with_the_same_requests():
    short, long = (draw(world(CLOSED), client_requests=number) for number in (64, 1000))
    assert len(short.arrival_s) == 5 * 64
    assert len(long.arrival_s) == 5 * 64 * 31
    first = np.arange(len(long.arrival_s)) < len(short.arrival_s)
    assert same(kept(long, first), short)


def test_the_same_world_asks_the_same():
    for load in (OPEN, SEMI_OPEN, CLOSED):
        assert same(draw(world(load)), draw(world(load)))
        assert not same(draw(world(load)), draw(world(load, seed=2)))


def test_a_longer_horizon_only_adds_requests():
    short, long = draw(world(OPEN, horizon_s=200.0)), draw(world(OPEN))
    assert same(kept(long, long.arrival_s < 200.0), short)


def test_a_longer_horizon_only_adds_sessions():
    short, long = draw(world(SEMI_OPEN, horizon_s=200.0)), draw(world(SEMI_OPEN))
    both = kept(long, long.session <= short.session.max())
    for name in ("session", "kind", "demand_s", "think_s", "blocking_s"):
        np.testing.assert_array_equal(getattr(both, name), getattr(short, name))


def test_types_of_equal_demand_do_not_share_draws():
    other = replace(PAGE, name="other")
    asked = draw(world(replace(OPEN, types=(PAGE, other))))
    assert np.intersect1d(asked.demand_s[asked.kind == 0], asked.demand_s[asked.kind == 1]).size == 0


def test_another_server_or_observer_changes_no_request():
    other = world(
        OPEN,
        station=Station(1, "fcfs"),
        observation=Observation(rtt_s=1.0, background_share=0.3),
        contention=Contention(lock_share=0.5),
    )
    assert same(draw(other), draw(world(OPEN)))


def test_another_demand_of_one_type_changes_neither_arrivals_nor_the_other_type():
    other = replace(PAGE, demand_s=Distribution("pareto", low=0.1, high=9.0, shape=1.5))
    one, two = draw(world(OPEN)), draw(world(replace(OPEN, types=(other, IMAGE))))
    image = one.kind == 1
    np.testing.assert_array_equal(one.arrival_s, two.arrival_s)
    np.testing.assert_array_equal(one.kind, two.kind)
    np.testing.assert_array_equal(one.demand_s[image], two.demand_s[image])
    assert not (one.demand_s[~image] == two.demand_s[~image]).any()


@pytest.mark.statistical
def test_types_come_by_weight_with_their_demands_and_classes():
    """False-alarm rate below 0.1%: a binomial test, and Kolmogorov and Smirnov's, each at 0.04%."""
    asked = draw(world(OPEN, horizon_s=20_000.0))
    assert asked.names == ("page", "image")
    page = asked.kind == 0
    assert stats.binomtest(int(page.sum()), len(page), 0.75).pvalue > 4e-4
    assert stats.kstest(asked.demand_s[page], stats.uniform(1, 1).cdf).pvalue > 4e-4
    assert (asked.priority == page).all()


def test_a_demand_from_a_job_is_instructions_at_the_pace_of_that_time():
    asked = draw(world(JOB), seconds_per_instruction=PACE)
    np.testing.assert_allclose(asked.demand_s, np.where(asked.arrival_s < 100, 1.0, 3.0))
    assert asked.names == ("ads",)


def test_a_session_keeps_the_pace_of_its_start():
    asked = draw(world(replace(JOB, sessions=Sessions(3))), seconds_per_instruction=PACE)
    start_s = asked.arrival_s[: len(asked.arrival_s) // 3]
    np.testing.assert_allclose(asked.demand_s, np.tile(np.where(start_s < 100, 1.0, 3.0), 3))


def test_the_first_pace_holds_before_its_time_too():
    late = (np.array([150.0]), np.array([2e-9]))
    assert (draw(world(JOB), seconds_per_instruction=late).demand_s == 2.0).all()


def test_a_trace_is_replayed_in_order_up_to_the_horizon():
    asked = draw(world(TRACE, horizon_s=60.0), trace=ROWS)
    assert asked.arrival_s.tolist() == [1.0, 1.0, 5.0]
    assert asked.demand_s.tolist() == [0.0, 2.0, 0.5]
    assert [asked.names[kind] for kind in asked.kind] == ["a", "b", "b"]
    assert draw(world(TRACE), trace=ROWS[["arrival_s", "demand_s"]]).names == ("trace",)


def test_blocking_belongs_to_the_request():
    blocking = Contention(blocking_s=Distribution("exponential", mean=0.3))
    short, long = (draw(world(CLOSED, contention=blocking), client_requests=number) for number in (64, 500))
    np.testing.assert_array_equal(long.blocking_s[: len(short.blocking_s)], short.blocking_s)
    assert len(np.unique(long.blocking_s)) == len(long.blocking_s)
    assert stats.kstest(long.blocking_s, stats.expon(scale=0.3).cdf).pvalue > 1e-4


def test_what_is_left_out_may_not_be_followed():
    asked = draw(world(SEMI_OPEN))
    with pytest.raises(ValueError, match="the one that it follows is not"):
        kept(asked, np.arange(len(asked.arrival_s)) > 0)


def test_a_load_of_nobody_is_empty():
    assert len(draw(world(OPEN, horizon_s=1e-9)).arrival_s) == 0
    assert len(draw(world(SEMI_OPEN, horizon_s=1e-9)).arrival_s) == 0
    assert len(draw(world(TRACE), trace=ROWS[:0]).arrival_s) == 0


def test_the_guess_of_the_length_follows_the_tighter_of_two_bounds():
    demand_s = 0.75 * 1.5 + 0.25 * 0.1
    waiting_for_nothing = int(1.1 * 300.0 / (2.0 + demand_s + 0.5)) + 10
    assert expected_client_requests(world(CLOSED, observation=Observation(0.3, 0.2))) == waiting_for_nothing
    crowd = replace(CLOSED, clients=replace(CLOSED.clients, count=1000))
    assert expected_client_requests(world(crowd)) == int(1.1 * 300.0 * 4 / (1000 * demand_s)) + 10


def test_clients_that_take_no_time_ask_without_end():
    nothing = Distribution("constant", mean=0.0)
    load = Load(clients=Clients(1, nothing), types=(RequestType("null", nothing),))
    with pytest.raises(ValueError, match="requests are without number"):
        expected_client_requests(world(load))


@pytest.mark.parametrize(
    ("load", "given", "message"),
    [
        (Load(), {}, "load: needs one of arrivals, clients and trace, got none"),
        (replace(OPEN, clients=Clients()), {}, ".* got arrivals and clients"),
        (Load(Arrivals()), {}, "load: needs demands from one of types, job and trace, got none"),
        (replace(JOB, types=(PAGE,)), {"seconds_per_instruction": PACE}, ".* got types and job"),
        (replace(CLOSED, sessions=Sessions()), {}, "load: sessions need arrivals"),
        (replace(JOB, arrivals=None, clients=Clients()), {"seconds_per_instruction": PACE}, ".* would never change"),
        (replace(OPEN, types=(PAGE, PAGE)), {}, "types: two have the same name"),
        (replace(OPEN, types=(replace(PAGE, demand_s=Distribution("gamma", mean=1.0)),)), {}, ".*: gamma needs cv"),
        (replace(OPEN, sessions=Sessions(2, Distribution("gamma"))), {}, "sessions: think_s: gamma needs mean"),
        (TRACE, {}, "trace: is missing"),
        (OPEN, {"trace": ROWS}, "trace: is given, but the load does not ask for it"),
        (JOB, {}, "seconds_per_instruction: is missing"),
        (JOB, {"seconds_per_instruction": (PACE[0], PACE[1][:1])}, ".*: 2 times, but 1 values; one at least"),
        (JOB, {"seconds_per_instruction": (PACE[0][::-1], PACE[1])}, ".* times must increase, .*"),
        (JOB, {"seconds_per_instruction": (PACE[0], PACE[1] * np.nan)}, ".* finite and at least 0"),
        (TRACE, {"trace": ROWS[["arrival_s"]]}, "trace: column demand_s is missing"),
        (TRACE, {"trace": ROWS.assign(demand_s=[1.0, -1.0, 1.0, 1.0])}, "trace: demand_s of row 1 is -1.0; .*"),
        (TRACE, {"trace": ROWS.assign(arrival_s=np.nan)}, "trace: arrival_s of row 0 is nan; .*"),
        (TRACE, {"trace": ROWS.assign(type=["a", None, "b", "b"])}, "trace: type of row 1 is missing"),
    ],
)
def test_what_does_not_go_together_is_said(load, given, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        draw(world(load), **given)
