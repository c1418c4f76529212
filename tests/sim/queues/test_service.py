"""Serving cuts nothing off: clients ask until the horizon and no longer, background work goes on to the end."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from models.queues.policies import POLICIES
from models.queues.world import (
    Arrivals,
    Clients,
    Contention,
    Distribution,
    Load,
    Observation,
    QueueWorld,
    RequestType,
    Sessions,
    Station,
)
from sim.queues import service
from sim.queues.observe import Delays, delays
from sim.queues.offered import Background, background, capacity, of_servers, offered
from sim.queues.service import check, client_load, is_contended, sent_times, serve_world
from sim.queues.workloads import FIRST_BLOCK, NOBODY, draw

EXPONENTIAL = (RequestType("page", Distribution("exponential", mean=1.0)),)
OPEN = Load(Arrivals(2.0), types=EXPONENTIAL)
NETWORK = Observation(rtt_s=0.02, overhead_s=0.1)


def closed(clients=6, policy="fcfs", horizon_s=200.0, **settings):
    load = Load(clients=Clients(clients, Distribution("exponential", mean=3.0)), types=EXPONENTIAL)
    return QueueWorld(horizon_s=horizon_s, load=load, station=Station(2, policy), **settings)


def loaded(world):
    if world.load.clients is not None:
        return client_load(world, world.load.clients)
    asked = draw(world)
    return asked, delays(world.observation, world.seed, len(asked.arrival_s))


def by_hand(world, asked, way):
    """A closed load at two first-come-first-served servers, one client after the other in order of its next arrival."""
    chains = world.load.clients.count
    queue = [(asked.arrival_s[i] + way.before_s[i], i) for i in range(chains)]
    place = {int(parent): child for child, parent in enumerate(asked.after) if parent != NOBODY}
    free, arrival_s, departure_s = [0.0, 0.0], {}, {}
    while queue:
        queue.sort()
        arrived, i = queue.pop(0)
        free.sort()
        arrival_s[i], departure_s[i] = arrived, max(arrived, free[0]) + asked.demand_s[i]
        free[0] = departure_s[i]
        if i in place:
            j = place[i]
            queue.append((departure_s[i] + way.after_s[i] + asked.think_s[j] + way.before_s[j], j))
    return (np.array([times[i] for i in range(len(times))]) for times in (arrival_s, departure_s))


def test_clients_are_served_as_a_loop_by_hand_serves_them():
    world = closed(observation=NETWORK)
    asked, way = loaded(world)
    done = serve_world(world, asked, way)
    arrival_s, departure_s = by_hand(world, asked, way)
    np.testing.assert_allclose(done.arrival_s, arrival_s, rtol=1e-12)
    np.testing.assert_allclose(done.departure_s, departure_s, rtol=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
def test_all_that_clients_send_before_the_horizon_is_there_and_nothing_else(policy):
    """The last request of each client is sent before the horizon, and the next would have been sent after it."""
    world = closed(policy=policy, observation=replace(NETWORK, background_share=0.05, background_s=0.1))
    asked, way = loaded(world)
    done = serve_world(world, asked, way)
    sent_s = sent_times(asked, way, done)
    assert sent_s.max() < 200.0
    last = np.setdiff1d(np.arange(len(asked.after)), asked.after)
    assert len(last) == 6
    longer = draw(world, client_requests=500)
    for i in last:
        client, number = asked.session[i], int((asked.session == asked.session[i]).sum())
        think_s = longer.think_s[longer.session == client][number]
        assert done.departure_s[i] + way.after_s[i] + think_s >= 200.0


def test_the_first_guess_of_how_much_clients_ask_changes_nothing(monkeypatch):
    blocking = Contention(blocking_s=Distribution("exponential", mean=0.2))
    world = closed(clients=2, horizon_s=700.0, observation=NETWORK, contention=blocking)
    kept, way = loaded(world)
    assert np.bincount(kept.session).min() > 2 * FIRST_BLOCK
    for guess in (1, 1000):
        monkeypatch.setattr(service, "expected_client_requests", lambda _, guess=guess: guess)
        other, other_way = loaded(world)
        np.testing.assert_array_equal(other.think_s, kept.think_s)
        np.testing.assert_array_equal(other.blocking_s, kept.blocking_s)
        np.testing.assert_array_equal(other_way.after_s, way.after_s)


def test_a_longer_horizon_of_clients_begins_with_the_same_requests():
    short, long = (closed(policy="ps", horizon_s=horizon_s) for horizon_s in (200.0, 400.0))
    (few, few_way), (many, many_way) = loaded(short), loaded(long)
    few_s, many_s = (
        sent_times(asked, way, serve_world(world, asked, way))
        for world, asked, way in ((short, few, few_way), (long, many, many_way))
    )
    np.testing.assert_allclose(np.sort(many_s)[: len(few_s)], np.sort(few_s), rtol=1e-9)
    assert np.sort(many_s)[len(few_s)] >= 200.0


@pytest.mark.statistical
def test_a_closed_load_has_the_throughput_of_its_birth_and_death_chain():
    """False-alarm rate below 0.1%: 20 runs from start to 5,000 s, the mean within 4.5 standard errors.

    Six clients think 3 s on average, two servers take 1 s: state n changes at (6 − n) / 3 and min(n, 2) per second.
    From all thinking, the first seconds are slow: at most 3 requests in some 7,300, well below one standard error.
    """
    up, down = [(6 - n) / 3 for n in range(6)], [min(n, 2) for n in range(1, 7)]
    weight = np.cumprod([1.0, *(a / b for a, b in zip(up, down, strict=True))])
    expected = (weight * np.minimum(np.arange(7), 2)).sum() / weight.sum()
    counts = np.array([len(loaded(closed(policy="ps", horizon_s=5000.0, seed=s))[0].arrival_s) for s in range(20)])
    assert abs(counts.mean() / 5000 - expected) <= 4.5 * counts.std(ddof=1) / np.sqrt(20) / 5000


def test_sessions_think_from_when_the_client_has_the_answer():
    world = QueueWorld(horizon_s=100.0, load=replace(OPEN, sessions=Sessions(3)), observation=NETWORK)
    asked, way = loaded(world)
    done = serve_world(world, asked, way)
    sent_s, answered_s = sent_times(asked, way, done), done.departure_s + way.after_s
    follows = asked.after != NOBODY
    np.testing.assert_allclose(sent_s[follows], (answered_s[asked.after] + asked.think_s)[follows], rtol=1e-12)
    np.testing.assert_allclose(done.arrival_s, sent_s + way.before_s, rtol=1e-12)


def test_the_server_is_offered_arrivals_in_order_and_each_after_what_it_follows():
    world = QueueWorld(horizon_s=50.0, load=replace(OPEN, sessions=Sessions(3)), observation=NETWORK)
    asked, way = loaded(world)
    given = offered(asked, way, Background(np.array([0.0, 25.0, 49.0]), np.full(3, 0.1)))
    first = given.after == NOBODY
    assert not np.isnan(given.arrival_s[first]).any()
    assert (np.diff(given.arrival_s[first]) >= 0).all()
    assert sorted(given.number) == list(range(len(asked.arrival_s) + 3))
    for i in np.flatnonzero(~first):
        assert given.after[i] < i
        assert given.number[given.after[i]] == asked.after[given.number[i]]


@pytest.mark.statistical
def test_background_work_has_its_share_in_small_exponential_pieces():
    """False-alarm rate below 0.1%: Kolmogorov and Smirnov's tests at 0.02% and a Poisson test at 0.02%."""
    own = background(Observation(background_share=0.1, background_s=0.01), 4.0, 3, 500.0)
    assert stats.kstest(own.demand_s, stats.expon(scale=0.01).cdf).pvalue > 2e-4
    assert stats.kstest(own.arrival_s, stats.uniform(0, 500).cdf).pvalue > 2e-4
    assert stats.poisson.ppf(1e-4, 20_000) <= len(own.arrival_s) <= stats.poisson.ppf(1 - 1e-4, 20_000)


def test_background_work_goes_on_until_the_last_interval_ends_and_is_the_same_for_every_server():
    seen = Observation(background_share=0.2, background_s=0.05, counter_interval_s=10.0)
    world = QueueWorld(horizon_s=100.0, load=OPEN, station=Station(4, "fcfs"), observation=seen)
    asked, way = loaded(world)
    n = len(asked.arrival_s)
    many, few = serve_world(world, asked, way), serve_world(world, asked, way, 1)
    assert few.end_s > 200.0
    for done in (many, few):
        own_s = done.arrival_s[n:]
        assert done.end_s % 10.0 == 0.0
        assert done.end_s - 10.0 <= max(100.0, done.departure_s[:n].max()) <= done.end_s
        assert done.end_s - 1.0 < own_s[-1] < done.end_s
    shared = min(len(many.arrival_s), len(few.arrival_s))
    np.testing.assert_array_equal(many.arrival_s[n:shared], few.arrival_s[n:shared])
    np.testing.assert_array_equal(many.demand_s[:shared], few.demand_s[:shared])


def test_urgent_background_work_delays_requests_and_is_not_delayed_by_them():
    seen = Observation(background_share=0.2, background_s=0.05)
    types = (replace(EXPONENTIAL[0], priority=1),)
    world = QueueWorld(
        horizon_s=100.0, load=replace(OPEN, types=types), station=Station(1, "priority"), observation=seen
    )
    asked, way = loaded(world)
    done, n = serve_world(world, asked, way), len(asked.arrival_s)
    alone = serve_world(replace(world, observation=Observation()), asked, way)
    free_s = np.maximum.accumulate(done.arrival_s[n:] - np.cumsum(done.demand_s[n:]) + done.demand_s[n:])
    np.testing.assert_allclose(done.departure_s[n:], free_s + np.cumsum(done.demand_s[n:]), rtol=1e-9)
    assert (done.departure_s[:n] >= alone.departure_s - 1e-9).all()
    assert (done.departure_s[:n].sum() - alone.departure_s.sum()) / n > 1.0


def test_contention_serves_the_same_load_and_the_work_of_its_servers_is_what_is_counted():
    world = QueueWorld(horizon_s=100.0, load=OPEN, station=Station(4, "fcfs"), observation=NETWORK)
    asked, way = loaded(world)
    plain = serve_world(world, asked, way)
    limited = serve_world(replace(world, contention=Contention(concurrency_limit=1000)), asked, way)
    np.testing.assert_allclose(limited.departure_s, plain.departure_s, rtol=1e-12)
    split = serve_world(replace(world, contention=Contention(parallelism=4)), asked, way)
    for done in (plain, limited, split):
        worked_s = (done.busy.servers[:-1] * np.diff(done.busy.time_s)).sum()
        assert worked_s == pytest.approx(asked.demand_s.sum())


def test_a_station_is_worth_what_its_servers_do_together():
    assert capacity(Station(3)) == 3.0
    assert capacity(Station(2, rates=(1.0, 1.3))) == 1.3
    assert capacity(of_servers(Station(3, speeds=(1.0, 0.5, 0.25)), 2)) == 1.5


def test_only_contention_and_workers_are_contention():
    assert not is_contended(QueueWorld(observation=Observation(accept_at_application=True)))
    assert is_contended(QueueWorld(observation=Observation(workers=2)))
    assert is_contended(QueueWorld(contention=Contention(lock_share=0.1)))


def test_nobody_is_served_where_nobody_comes():
    world = QueueWorld(horizon_s=1e-9, load=OPEN)
    done = serve_world(world, *loaded(world))
    assert (len(done.arrival_s), done.end_s) == (0, 60.0)
    assert len(loaded(replace(closed(), horizon_s=1e-9))[0].arrival_s) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replays": (1,), "load": replace(OPEN, sessions=Sessions())}, "replays: need an open load, .*"),
        ({"replays": (1,), "load": closed().load}, "replays: need an open load, .*"),
        ({"contention": Contention(parallelism=2)}, "contention and workers need policy fcfs, got ps"),
        ({"observation": Observation(workers=2)}, "contention and workers need policy fcfs, got ps"),
        (
            {"contention": Contention(parallelism=2), "station": Station(1, "fcfs", speeds=(2.0,))},
            "contention and workers need servers of speed 1, without speeds and rates",
        ),
        ({"station": Station(2, speeds=(1.0,))}, "speeds: 1 for 2 servers"),
        ({"station": Station(2, rates=(1.0,))}, "rates: 1 for 2 servers"),
        ({"station": Station(1, rates=(1.0,)), "replays": (2,)}, "replays: 2 servers, but rates are given for 1"),
        (
            {"observation": Observation(background_share=0.25), "replays": (1,)},
            "replays: background work of 1 servers leaves nothing of 1",
        ),
        (
            {"observation": Observation(counter_interval_s=1.0, counter_tick_s=2.0)},
            "counter_interval_s 1.0 is below counter_tick_s 2.0",
        ),
    ],
)
def test_what_does_not_go_together_is_said(change, message):
    world = QueueWorld(load=OPEN, horizon_s=10.0)
    with pytest.raises(ValueError, match=f"^{message}$"):
        check(replace(world, **change))
    with pytest.raises(ValueError, match=f"^{message}$"):
        serve_world(replace(world, **change), draw(world), Delays(np.empty(0), np.empty(0)))
