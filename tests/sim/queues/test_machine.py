"""Requests on a machine, both ways: today's queue where nothing couples, the SimPy twin, and the laws."""

from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest

from models.fleet.world import Governor, Interference, Steps
from models.queues.machine import ServingMachine
from models.queues.policies import POLICIES
from models.queues.serve import ChangingRates, RequestStamps, serve
from models.queues.world import (
    Arrivals,
    Autoscaler,
    Contention,
    Distribution,
    Load,
    Observation,
    QueueWorld,
    RequestType,
    ServerScaling,
    Station,
)
from sim.queues import readable
from sim.queues.course import course
from sim.queues.laws import BrokenLawError, obey
from sim.queues.machine import on_machine
from sim.queues.observe import present
from sim.queues.requests import requests

TYPES = (
    RequestType("page", Distribution("exponential", mean=0.4), weight=3.0),
    RequestType("report", Distribution("constant", mean=1.0), priority=1),
)
LOAD = Load(Arrivals(6.0), types=TYPES)
UNCOUPLED = ServingMachine(
    "graviton_4", cap_share=10.0, interference=Interference(llc=False, bandwidth=False, smt=False)
)
COUPLED = ServingMachine(governor=Governor("ondemand"), steps=Steps(load_s=7.0))
WORLD = QueueWorld(1, 60.0, LOAD, Station(4))


def tables(world, directory):
    requests(world, directory)
    return {file.stem: pd.read_parquet(file) for file in directory.iterdir()}


@pytest.fixture
def folder(tmp_path):
    def make(name):
        (tmp_path / name).mkdir()
        return tmp_path / name

    return make


@pytest.mark.parametrize("policy", POLICIES)
def test_a_machine_that_couples_nothing_serves_as_todays_queue(folder, policy):
    world = replace(WORLD, station=Station(4, policy))
    plain, on = (tables(each, folder(name)) for name, each in (("a", world), ("b", replace(world, machine=UNCOUPLED))))
    assert plain["requests"]["request"].equals(on["requests"]["request"])
    for name in ("start_s", "departure_s"):
        one, other = plain["truth_requests"][name], on["truth_requests"][name]
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
        assert np.argsort(one).equals(np.argsort(other))
    one_way = on["truth_one_way"]
    np.testing.assert_allclose(one_way["departure_s"], plain["truth_requests"]["departure_s"], rtol=0, atol=1e-9)
    assert on["truth_machine"]["slowdown"].dropna().eq(1.0).all()


LIMITS = Station(4, "fcfs", capacity=12, timeout_s=Distribution("constant", mean=1.5))
SCALING = ServerScaling(autoscaler=Autoscaler("queueing", 0.05, look_s=2.0, least=2, most=8), start_up_s=1.0)


@pytest.mark.parametrize("other", [{}, {"scaling": SCALING}, {"station": replace(LIMITS, policy="ps")}])
def test_a_machine_that_couples_nothing_refuses_and_scales_as_servers_of_speed_1(folder, other):
    world = replace(WORLD, **{"station": LIMITS, "load": Load(Arrivals(9.0), types=TYPES), **other})
    plain, on = (tables(each, folder(name)) for name, each in (("a", world), ("b", replace(world, machine=UNCOUPLED))))
    assert len(plain["unserved"]) > 0
    for name, table in plain.items():
        pd.testing.assert_frame_equal(table, on[name], rtol=0, atol=1e-9)
    assert on["truth_one_way"]["request"].tolist() == plain["requests"]["request"].tolist()
    assert on["truth_machine"]["slowdown"].dropna().eq(1.0).all()


def test_on_a_machine_servers_come_and_go_and_their_work_is_speed_times_busy_time(folder):
    observation = Observation(counter_interval_s=5.0)
    world = replace(WORLD, station=LIMITS, scaling=SCALING, machine=COUPLED, observation=observation)
    on = tables(replace(world, load=Load(Arrivals(9.0), types=TYPES)), folder("on"))
    machine, cpu, servers = on["truth_machine"], on["truth_cpu"], on["servers"]
    assert len(servers) > 2
    inside = np.append(servers["time_s"], np.inf)
    on_s = [
        sum(
            n * max(0.0, min(end, right) - max(start, left))
            for n, left, right in zip(servers["servers"], inside, inside[1:], strict=False)
        )
        for start, end in zip(cpu["start_s"], cpu["end_s"], strict=True)
    ]
    done = (machine["speed"].fillna(0.0) * cpu["utilisation"] * on_s).sum()
    assert done == pytest.approx(on["truth_requests"]["demand_s"].sum())


def arrivals(seed, n, servers):
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.exponential(0.7 / servers, n)), rng.exponential(0.5, n)


@pytest.mark.parametrize("policy", ["fcfs", "ps", "rr", "srpt"])
def test_on_a_machine_the_readable_queue_agrees_event_by_event(policy):
    arrival_s, demand_s = arrivals(4, 150, 4)

    def served(rates):
        return serve(policy, arrival_s, demand_s, 4, rates=rates)

    done = on_machine(COUPLED, 4, 1, 10.0, served)
    twin = readable.serve(policy, arrival_s, demand_s, 4, rates=done.states.rates)
    np.testing.assert_allclose(done.stamps.start_s, twin.start_s, rtol=0, atol=1e-9)
    np.testing.assert_allclose(done.stamps.departure_s, twin.departure_s, rtol=0, atol=1e-9)
    assert (done.stamps.departure_s - arrival_s > 0.0).all()


def test_the_first_guess_of_the_end_decides_nothing():
    arrival_s, demand_s = arrivals(5, 400, 4)

    def served(rates):
        return serve("ps", arrival_s, demand_s, 4, rates=rates)

    short, long = (on_machine(COUPLED, 4, 1, until_s, served) for until_s in (10.0, 5000.0))
    np.testing.assert_array_equal(short.stamps.departure_s, long.stamps.departure_s)


def test_work_is_speed_times_busy_time_in_every_table(folder):
    world = replace(WORLD, machine=COUPLED, observation=Observation(counter_interval_s=10.0))
    on = tables(world, folder("on"))
    machine, cpu = on["truth_machine"], on["truth_cpu"]
    busy_s = 4 * cpu["utilisation"] * (cpu["end_s"] - cpu["start_s"])
    assert (machine["speed"].fillna(0.0) * busy_s).sum() == pytest.approx(on["truth_requests"]["demand_s"].sum())
    assert machine["slowdown"].dropna().gt(1.0).all()
    assert machine["power_w"].dropna().between(90.0, 400.0).all()


def test_one_way_a_part_of_five_minutes_has_the_speed_of_whole_ones_with_as_many_requests_a_second(folder):
    load, least_s = Load(Arrivals(2.0), types=(RequestType("page", Distribution("constant", mean=0.5)),)), []
    for horizon_s in (60.0, 300.0):
        world = QueueWorld(1, horizon_s, load, Station(4), machine=ServingMachine(steps=Steps(load_log_sd=0.0)))
        one_way = tables(world, folder(str(horizon_s)))["truth_one_way"]
        least_s.append((one_way["departure_s"] - one_way["arrival_s"]).min())
    assert least_s[0] == pytest.approx(least_s[1], rel=0.05)


def test_replays_have_a_machine_each(folder):
    on = tables(replace(WORLD, machine=COUPLED, replays=(2, 8)), folder("on"))
    at = on["replays"].groupby("servers").apply(lambda rows: (rows.departure_s - rows.arrival_s).mean())
    assert at[2] > at[8]


def test_a_course_looks_after_departures_and_before_arrivals():
    rates = ChangingRates(np.array([[[1.0, 2.0], [0.5, 1.0]]]), np.zeros(1), 1.0)
    arrival_s = np.array([0.0, 1.0, 2.0])
    done = serve("fcfs", arrival_s, [1.0, 2.0, 1.0], 2, rates=rates)
    way = course(rates, done, np.empty(0))
    assert way.seen.tolist() == [0, 0, 1, 1]
    assert way.busy.tolist() == [1, 1, 2, 2]
    assert way.done(rates) == pytest.approx(4.0)


def test_work_that_is_not_done_breaks_a_law():
    rates = ChangingRates(np.array([[[1.0]], [[0.5]]]), np.array([0.0, 2.0]))
    stamps = RequestStamps(np.array([0.0]), np.array([0.0]), np.array([5.0]))
    busy = present(stamps.arrival_s, stamps.departure_s, 1)
    with pytest.raises(BrokenLawError, match=r"the integral of work done is 3\.5 s, the sum of demands 3 s"):
        obey(Station(1), *astuple(stamps), demand_s=np.array([3.0]), busy=busy, rates=rates)


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ({"contention": Contention(lock_share=0.5), "station": Station(4, "fcfs")}, "without contention and workers"),
        ({"station": Station(2, speeds=(1.0, 0.5))}, "speeds and rates cannot be given"),
    ],
)
def test_a_machine_alone_decides_how_fast_servers_are(folder, other, problem):
    with pytest.raises(ValueError, match=problem):
        requests(replace(WORLD, machine=COUPLED, **other), folder("on"))


def test_a_queue_that_never_ends_is_refused():
    def late(rates):
        return RequestStamps(np.zeros(1), np.zeros(1), np.array([1e6]))

    with pytest.raises(ValueError, match="the last request leaves after 1e\\+06 s: the machine is too slow"):
        on_machine(COUPLED, 4, 1, 10.0, late)
