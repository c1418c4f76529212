"""Requests on the event-driven machine: its readable twin, the queue of today at constant speed, and the laws."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from models.fleet.inventory import build_jobs
from models.fleet.world import Recording, Window
from models.queues.elastic import REFUSED
from models.queues.limited import serve_limited
from models.queues.policies import LIMITED, POLICIES
from models.queues.serve import ChangingRates, serve
from sim.fleet import slots
from sim.fleet.arms import run_arm
from sim.fleet.day import day_of, load_steps
from sim.fleet.events import LOAD, REQUESTS, RESIDENTS
from sim.fleet.layout import REFUSED_S
from sim.fleet.stations import StationLoad, open_station, requests_happen, run_at, stations_of
from tests.helpers.request_day import RequestDay
from tests.helpers.small_days import arrays, small_and_busy


@cache
def serving(how):
    """Two epochs of a minute on four machines; stays of every second job serve requests, of about a second each."""
    day, arm = small_and_busy(how)
    windows = Recording((Window("a", 0.0, 60.0), Window("b", 60.0, 120.0)), True, 1.0, True)
    world = replace(day.world, simulation="events", horizon_s=120.0, epoch_s=60.0, recording=windows)
    world = replace(world, steps=replace(world.steps, load_s=25.0))
    rng = np.random.default_rng(5)
    start_s = np.where(rng.random(36) < 0.6, 0.0, rng.uniform(0.0, 120.0, 36))
    end_s = np.minimum(120.0, start_s + rng.exponential(90.0, 36))
    start_s[16:] = end_s[16:]
    jobs = build_jobs(world, day.machines)
    day = day_of(world, day.machines, jobs, replace(day.timeline, start_s=start_s, end_s=end_s))
    arm = replace(arm, machine_from=np.array([1, 0, 2, 1]), stay_from=arm.stay_from % 3)

    def requests(stay):
        draws = np.random.default_rng(stay)
        arrival_s = np.sort(draws.uniform(start_s[stay], end_s[stay], draws.poisson(0.8 * (end_s - start_s)[stay])))
        pace_s = jobs.reference_cpi / 2.8e9 * jobs.instructions_per_request
        work = draws.exponential(1.0, arrival_s.size) / pace_s[day.timeline.job[stay]]
        return StationLoad(
            servers=1 + stay % 2,
            policy=list(POLICIES)[stay % len(POLICIES)],
            arrival_s=arrival_s,
            work=work,
            quantum_s=0.4,
            priority=draws.integers(0, 3, work.size),
            choice=draws.random(work.size),
        )

    return replace(day, followed=np.arange(jobs.count) % 2 == 0, requests=requests), arm


@pytest.mark.parametrize("how", ["stall_aware"])
def test_requests_and_machines_are_those_of_the_readable_twin_event_by_event(how):
    day, arm = serving(how)
    blocks, twin = list(run_arm(day, arm, logged=5000)), RequestDay(day, arm)
    rows = np.concatenate([block.events.reshape(-1, 3) for block in blocks])
    rows = rows[~np.isnan(rows[:, 0])]
    log, other = (
        rows[np.lexsort((rows[:, 0], rows[:, 1]))],
        np.array(sorted(twin.log, key=lambda row: (row[1], row[0]))),
    )
    np.testing.assert_array_equal(log[:, 1:], other[:, 1:])
    np.testing.assert_allclose(log[:, 0], other[:, 0], rtol=0, atol=1e-9)
    kinds = log[:, 2].astype(int)
    assert (kinds & REQUESTS > 0).sum() > 300
    assert np.bitwise_or.reduce(kinds) & (RESIDENTS | LOAD) == RESIDENTS | LOAD
    departures = np.concatenate([block.requests["departure_s"] for block in blocks])
    expected = np.concatenate([twin.departure_s(stay) for stay in day.order[day.serving(slice(0, day.order.size))]])
    np.testing.assert_allclose(departures, expected, rtol=0, atol=1e-7)
    assert np.isnan(departures).any()
    assert np.isfinite(departures).sum() > 200
    found = arrays(blocks)
    keys = [*zip(np.repeat(day.order, np.diff(day.row_start)), day.row_window, strict=True)]
    np.testing.assert_allclose(found["rows"], [twin.counters[key] for key in keys], rtol=1e-7)
    machines = [[twin.machine_epochs[machine, epoch] for epoch in range(2)] for machine in range(4)]
    np.testing.assert_allclose(found["machine_trace"], machines, rtol=1e-7)


def test_busy_threads_of_an_instance_are_its_servers_at_work():
    """CPU seconds follow from the stamps alone."""
    day, arm = serving("stall_aware")
    blocks = list(run_arm(day, arm))
    cpu_s = arrays(blocks)["rows"][:, slots.CPU_S - slots.CYCLES]
    departures, at = np.concatenate([block.requests["departure_s"] for block in blocks]), 0
    for place in day.serving(slice(0, day.order.size)):
        stay = int(day.order[place])
        drawn, end_s = day.requests(stay), day.timeline.end_s[stay]
        left = np.where(np.isnan(departures[at : at + drawn.work.size]), end_s, departures[at : at + drawn.work.size])
        at += drawn.work.size
        time_s = np.unique(np.concatenate([drawn.arrival_s, left]))
        here = (drawn.arrival_s <= time_s[:-1, None]).sum(axis=1) - (left <= time_s[:-1, None]).sum(axis=1)
        busy_s = (np.minimum(here, drawn.servers) * np.diff(time_s)).sum()
        assert cpu_s[day.row_start[place] : day.row_start[place + 1]].sum() == pytest.approx(busy_s, abs=1e-6)


def test_where_quotas_are_overcommitted_requests_are_served_as_far_as_threads_are_there():
    """Nine instances of 14 servers on 64 threads: what left was worked at by threads that ran, and the rest waited."""
    day, arm = small_and_busy("overcommitted")
    world = replace(
        day.world, simulation="events", horizon_s=60.0, epoch_s=30.0, recording=Recording((), True, 1.0, True)
    )
    stays = np.arange(36)
    jobs = build_jobs(world, day.machines)
    times = {"machine": stays % 4, "start_s": np.zeros(36), "end_s": np.full(36, 60.0)}
    day = day_of(world, day.machines, jobs, replace(day.timeline, **times))

    def requests(stay):
        draws = np.random.default_rng(stay)
        arrival_s = np.sort(draws.uniform(0.0, 35.0, 300))
        pace_s = jobs.reference_cpi / 2.8e9 * jobs.instructions_per_request
        return StationLoad(
            14, ("fcfs", "ps")[stay % 2], arrival_s, draws.exponential(1.0, 300) / pace_s[day.timeline.job[stay]]
        )

    day = replace(day, followed=np.ones(jobs.count, bool), requests=requests)
    blocks = list(run_arm(day, replace(arm, machine_from=np.full(4, 99), stay_from=np.full(36, 99))))
    rows = arrays(blocks)["rows"]
    left = np.isfinite(np.concatenate([block.requests["departure_s"] for block in blocks])).reshape(36, 300)
    work = np.array([requests(int(stay)).work for stay in day.order])
    instructions = rows[:, slots.INSTRUCTIONS - slots.CYCLES]
    done = instructions / jobs.instructions_per_request[day.timeline.job[day.order]]
    whole = left.all(axis=1)
    assert 0 < whole.sum() < 36
    np.testing.assert_allclose(done[whole], work[whole].sum(axis=1), rtol=1e-9)
    assert (done[~whole] > (work * left)[~whole].sum(axis=1)).all()
    assert (done[~whole] < work[~whole].sum(axis=1)).all()
    cpu_s, wait_s = (rows[:, column - slots.CYCLES] for column in (slots.CPU_S, slots.WAIT_S))
    assert 0.99 < arrays(blocks)["machine_trace"][:, :, 2].max() <= 1.0 + 1e-12
    assert (wait_s[~whole] > 0.0).all()
    assert (cpu_s + wait_s > 14.0 * 30.0)[~whole].all()  # all servers work from early on to the end
    assert not rows[:, slots.THROTTLED_S - slots.CYCLES].any()  # servers are no more than the quota


@pytest.mark.parametrize("policy", POLICIES)
def test_beside_frozen_neighbours_a_station_is_the_queue_of_today(policy):
    """At speeds that change at given times the stamps are those of `serve`; so is the order."""
    rng = np.random.default_rng(7)
    n, start_s, speed = 2000, np.arange(30) * 20.5, rng.uniform(1.0, 3.0, 30)
    given = {"arrival_s": np.cumsum(rng.exponential(0.3, n)), "priority": rng.integers(0, 3, n)}
    given |= {"choice": rng.random(n), "quantum_s": 0.25}
    work = rng.exponential(1.0, n)
    stations, requests = stations_of([StationLoad(servers=2, policy=policy, work=work, **given)])
    changes, moments = 0, 0
    open_station(stations, requests, 0, 0.0)
    for at, until_s in enumerate([*start_s[1:], np.inf]):
        run_at(stations, requests, 0, start_s[at], speed[at])
        while (now_s := stations.station["next_s"][0]) < until_s:
            changes, moments = changes + requests_happen(stations, requests, 0, now_s), moments + 1
    rates = ChangingRates(speed[:, None, None] * [1.0, 2.0], start_s)
    expected = serve(policy, demand_s=work, servers=2, rates=rates, **given).departure_s
    np.testing.assert_allclose(requests["departure_s"], expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(np.argsort(requests["departure_s"]), np.argsort(expected))
    assert changes < 2 * n <= moments


@pytest.mark.parametrize("policy", POLICIES)
def test_a_full_station_turns_requests_away_and_serves_the_others_as_if_these_had_not_come(policy):
    rng, n, capacity, start_s = np.random.default_rng(8), 1500, 5, np.arange(30) * 15.5
    speed = rng.uniform(0.8, 1.6, 30)
    arrival_s, work = np.cumsum(rng.exponential(0.3, n)), rng.exponential(1.0, n)
    arrival_s[700:720] = arrival_s[700]  # at one moment
    given = {"priority": rng.integers(0, 3, n), "choice": rng.random(n)}
    stay = StationLoad(2, policy, arrival_s, work, 0.25, capacity=capacity, **given)
    stations, requests = stations_of([stay])
    open_station(stations, requests, 0, 0.0)
    for at, until_s in enumerate([*start_s[1:], np.inf]):
        run_at(stations, requests, 0, start_s[at], speed[at])
        while (now_s := stations.station["next_s"][0]) < until_s:
            requests_happen(stations, requests, 0, now_s)
    refused = requests["departure_s"] == REFUSED_S
    rates, of = ChangingRates(speed[:, None, None] * [1.0, 2.0], start_s), ~refused
    expected = serve(
        policy,
        arrival_s[of],
        work[of],
        2,
        rates=rates,
        quantum_s=0.25,
        priority=given["priority"][of],
        choice=given["choice"][: of.sum()],
    ).departure_s
    np.testing.assert_allclose(requests["departure_s"][of], expected, rtol=0, atol=1e-9)
    order = np.arange(n)
    for i in range(n):  # who is there when it comes, those before it at the same moment among them
        present = (of & (order < i)).sum() - (expected <= arrival_s[i]).sum()
        assert present == capacity if refused[i] else present < capacity
    assert 100 < refused.sum() < n - 100
    if policy in LIMITED:
        same = serve_limited(policy, arrival_s, work, 2, capacity=capacity, rates=rates, **given)
        np.testing.assert_array_equal(same.outcome[0] == REFUSED, refused)


@pytest.mark.parametrize("policy", POLICIES)
def test_who_comes_at_the_moment_at_which_another_leaves_finds_its_room(policy):
    arrival_s = np.array([0.0, 1.0, 1.5, 2.0, 3.0])  # only the third finds somebody there
    stay = StationLoad(1, policy, arrival_s, np.ones(5), 2.0, np.arange(5), np.zeros(5), capacity=1)
    stations, requests = stations_of([stay])
    open_station(stations, requests, 0, 0.0)
    run_at(stations, requests, 0, 0.0, 1.0)
    while (now_s := stations.station["next_s"][0]) < np.inf:
        requests_happen(stations, requests, 0, now_s)
    assert requests["departure_s"].tolist() == [1.0, 2.0, REFUSED_S, 3.0, 4.0]


def test_steps_of_load_have_mean_one_and_belong_to_the_instance():
    world = serving("stall_aware")[0].world
    one, other = (load_steps(world, instance, np.arange(20_000)) for instance in (1, 2))
    assert one.mean() == pytest.approx(1.0, abs=0.01)
    assert np.corrcoef(one, other)[0, 1] == pytest.approx(0.0, abs=0.03)
    np.testing.assert_array_equal(load_steps(world, 1, np.arange(5, 9)), one[5:9])
    calm = replace(world, steps=replace(world.steps, load_log_sd=0.0))
    assert load_steps(calm, 1, np.arange(3)).tolist() == [1.0, 1.0, 1.0]
