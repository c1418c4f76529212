"""The laws that every run obeys: they hold under all scheduling, and no broken run gets past them."""

from dataclasses import replace

import numpy as np
import pytest

from models.queues.policies import POLICIES
from models.queues.world import Arrivals, Contention, Distribution, Load, Observation, QueueWorld, RequestType, Station
from scenarios.files.loader import load
from scenarios.runs.execution import obtain
from sim.queues import service
from sim.queues.laws import BrokenLawError, obey
from sim.queues.observe import Busy, delays, present
from sim.queues.workloads import draw

PAGE = RequestType("page", Distribution("exponential", mean=1.0))
SEEN = Observation(background_share=0.05, background_s=0.1)
URGENT = replace(PAGE, name="urgent", priority=1, weight=0.3)
WORLD = QueueWorld(horizon_s=1000.0, load=Load(Arrivals(1.5), types=(PAGE, URGENT)), station=Station(2, "fcfs"))
STATIONS = {
    "alike": {"servers": 2},
    "of three speeds": {"servers": 3, "speeds": (2.0, 1.0, 0.25)},
    "sharing": {"servers": 3, "rates": (1.0, 1.7, 2.0)},
    "helping": {"servers": 2, "rates": (0.5, 2.0)},
}
FOUR = {name: np.array(values) for name, values in {
    "arrival_s": [0.0, 1.0, 1.0, 6.0],
    "start_s": [0.0, 2.0, 5.0, 6.0],
    "departure_s": [2.0, 5.0, 5.5, 6.0],
    "demand_s": [2.0, 3.0, 0.5, 0.0],
}.items()}  # fmt: skip
"""One server, first come first served; the last needs nothing."""


def serve(world):
    asked = draw(world)
    service.serve_world(world, asked, delays(world.observation, world.seed, len(asked.arrival_s)))


def served(**other):
    given = FOUR | {name: np.array(values) for name, values in other.items()}
    return given | {"busy": present(given["arrival_s"], given["departure_s"], 1)}


@pytest.mark.parametrize("station", STATIONS.values(), ids=STATIONS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_obeys_on_all_kinds_of_servers_busy_and_idle(policy, station):
    world = replace(WORLD, station=Station(policy=policy, **station), observation=SEEN)
    serve(world)
    serve(replace(world, load=Load(Arrivals(3.0), types=world.load.types), horizon_s=300.0))


@pytest.mark.parametrize(
    "contention",
    [
        Contention(lock_share=0.4),
        Contention(concurrency_limit=1),
        Contention(parallelism=3),
        Contention(blocking_s=Distribution("exponential", mean=1.0)),
    ],
)
def test_servers_that_idle_while_requests_are_there_obey_too(contention):
    serve(replace(WORLD, contention=contention))


@pytest.mark.parametrize("policy", POLICIES)
def test_short_demands_late_on_the_clock_are_not_taken_for_a_bug(policy):
    short = RequestType("page", Distribution("exponential", mean=1e-3))
    load = Load(Arrivals(2e-4), types=(short,))
    seen = Observation(counter_interval_s=86400.0)
    serve(replace(WORLD, horizon_s=3e7, load=load, station=Station(2, policy, quantum_s=1e-5), observation=seen))


def test_no_requests_obey():
    nothing = np.empty(0)
    obey(Station(), nothing, nothing, nothing, demand_s=nothing, busy=present(nothing, nothing, 4))


@pytest.mark.parametrize(
    ("other", "broken"),
    [
        ({"start_s": [0.0, 0.5, 5.0, 6.0]}, "request 1 started at 0.5 s and arrived at 1 s"),
        ({"start_s": [0.0, 2.0, np.nan, 6.0]}, "request 2 started at nan s and arrived at 1 s"),
        ({"departure_s": [2.0, np.nan, 5.5, 6.0]}, "request 1 was served for nan s where it needs at least 3 s"),
        ({"departure_s": [1.5, 5.0, 5.5, 6.0]}, "request 0 was served for 1.5 s where it needs at least 2 s"),
        ({"demand_s": [2.0, 3.0, 0.5, 0.5]}, "request 3 was served for 0 s where it needs at least 0.5 s"),
        (
            {"demand_s": [2.0, 2.9, 0.5, 0.0]},
            "conservation of work: the integral of work done is 5.5 s, the sum of demands 5.4 s",
        ),
        (
            {"departure_s": [2.0, 5.0, 5.5, 6.001]},
            "conservation of work: the integral of work done is 5.501 s, the sum of demands 5.5 s",
        ),
    ],
)
def test_what_breaks_a_law_is_told_with_its_numbers_and_called_a_bug(other, broken):
    with pytest.raises(BrokenLawError) as caught:
        obey(Station(1, "fcfs"), **served(**other))
    assert str(caught.value) == f"{broken}; this is a bug of the simulation, not of the scenario, and no run was kept"


def test_what_is_counted_must_be_the_work_of_the_requests():
    given = served()
    idle = Busy(given["busy"].time_s, np.maximum(given["busy"].servers - 1, 0))
    with pytest.raises(BrokenLawError, match=r"^conservation of work: the integral of work done is 0 s"):
        obey(Station(1, "fcfs"), **given | {"busy": idle})


def test_faster_servers_may_serve_sooner_but_no_sooner_than_the_fastest():
    half = served(demand_s=[4.0, 6.0, 1.0, 0.0])
    obey(Station(1, "fcfs", speeds=(2.0,)), **half)
    obey(Station(1, "fcfs", rates=(2.0,)), **half)
    with pytest.raises(BrokenLawError, match="request 0 was served for 2 s where it needs at least 4 s"):
        obey(Station(1, "fcfs"), **half)


@pytest.mark.parametrize("replayed", [False, True])
def test_a_server_that_loses_work_leaves_no_run(tmp_path, monkeypatch, replayed):
    def lazy(policy, arrival_s, demand_s, servers, **others):
        cut = demand_s.copy()
        cut[7] *= 0.999 if servers == 1 or not replayed else 1.0
        return real(policy, arrival_s, cut, servers, **others)

    real = service.serve
    monkeypatch.setattr(service, "serve", lazy)
    with pytest.raises(BrokenLawError, match="this is a bug of the simulation"):
        obtain(load("queue_small"), tmp_path, False, lambda _what, _share: None)
    assert not any(tmp_path.iterdir())
