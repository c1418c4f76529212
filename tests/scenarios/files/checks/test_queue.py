"""What a queue scenario's fields must satisfy together: where the bounds lie, and that every kind is checked alike."""

import functools
import typing
from dataclasses import replace

import numpy as np
import pytest

from models.fleet.world import Governor, Interference, Steps
from models.queues.machine import ServingMachine
from models.queues.policies import MOST_SLICES
from models.queues.world import (
    Arrivals,
    Autoscaler,
    Clients,
    Contention,
    Distribution,
    JobDemand,
    Load,
    LoadPoint,
    NetworkStation,
    Observation,
    RequestType,
    ServerScaling,
    ServerStep,
    Sessions,
    Station,
    Trace,
)
from scenarios.files.catalogue import shipped
from scenarios.files.checks.queue import MOST_LOOKS, MOST_REQUESTS
from scenarios.files.distributions import faults_of
from scenarios.files.faults import FaultsError
from scenarios.files.findings import findings
from scenarios.files.loader import load, load_each, settings
from scenarios.files.schema import Occupancy, QueueAnalyses, QueueScenario, Scenario
from scenarios.kinds import KINDS
from sim.queues.distributions import FIELDS, draw

ONE = Distribution("constant", mean=1.0)
TYPES = (RequestType("page", ONE),)
OPEN = Load(Arrivals(), types=TYPES)
WITHOUT_DEFAULT = {"load.arrivals", "load.job", "load.trace"}


def told(**fields):
    made = findings(QueueScenario(**{"name": "rush", "load": OPEN} | fields))
    return [".".join(map(str, finding.keys)) for finding in made]


def test_a_plain_queue_has_no_faults():
    assert told() == []
    assert told(load=Load(clients=Clients(), types=TYPES)) == []


RULE = Autoscaler("utilisation", 0.7, look_s=15.0)


@pytest.mark.parametrize(
    ("scaling", "ways"),
    [
        (ServerScaling(autoscaler=RULE), []),
        (ServerScaling(autoscaler=replace(RULE, least=5, most=3, target=1.5)), ["target", "most"]),
        (ServerScaling(autoscaler=replace(RULE, look_s=400.0)), ["look_s"]),
    ],
    ids=["sound", "every fault at once", "looks after the end"],
)
def test_autoscalers_that_cannot_be_followed_are_faults_where_they_are_wrong(scaling, ways):
    assert sorted(told(scaling=scaling, horizon_s=400.0)) == sorted(f"scaling.autoscaler.{name}" for name in ways)


def test_more_clients_than_can_be_drawn_for_are_a_fault():
    stations = (NetworkStation("slow", Distribution("constant", mean=1.0)),)
    assert told(load=Load(clients=Clients(count=2_000_000)), stations=stations) == []
    assert told(load=Load(clients=Clients(count=2_000_001)), stations=stations) == ["load.clients.count"]


def test_steps_after_the_end_are_faults():
    late = ServerScaling(schedule=(ServerStep(0.0, 3), ServerStep(400.0, 4)))
    assert told(scaling=late, horizon_s=400.0) == ["scaling.schedule.1.time_s"]


def test_a_value_that_is_wrong_by_itself_is_not_missed_as_well(tmp_path):
    file = tmp_path / "rush.yaml"
    file.write_text(
        "kind: queue\nload: {arrivals: {rate_per_s: 1}, types: [{name: a, demand_s: {kind: exponential, mean: -1}}]}\n"
    )
    with pytest.raises(FaultsError) as error:
        load(str(file))
    assert [(fault.field, fault.problem) for fault in error.value.faults] == [
        ("load.types.0.demand_s.mean", "should be at least 0")
    ]


def test_a_policy_of_ones_own_that_cannot_be_compiled_is_a_fault(tmp_path):
    (tmp_path / "mine.py").write_text(
        "\ndef mine(arrival_s, demand_s, remaining_s, priority):\n    raise ValueError(3)\n"
    )
    [fault] = findings(QueueScenario(name="rush", load=OPEN, station=Station(policy=f"{tmp_path}/mine.py:mine")))
    assert fault.keys == ("station", "policy")
    assert "mine.py:3: mine: should return a number, but does nothing else than raise an error" in fault.problem


@pytest.mark.parametrize(
    ("kind", "scenario"),
    [("fleet", Scenario(name="a")), ("queue", QueueScenario(name="a", scaling=ServerScaling(autoscaler=RULE)))],
)
def test_every_need_of_a_check_is_a_field(kind, scenario):
    needs = {need for needs in KINDS[kind].checks.values() for need in needs}
    for need in needs - {"feature.platforms", "feature.software"}:
        functools.reduce(getattr, need.removesuffix(".*").split("."), scenario)


@pytest.mark.parametrize("kind", typing.get_args(typing.get_type_hints(Distribution)["kind"]))
def test_a_distribution_without_faults_can_be_drawn_from_and_each_field_is_needed(kind):
    values = {"mean": 2.0, "cv": 1.5, "low": 1.0, "high": 3.0, "shape": 1.2}
    needed = {name: values[name] for name in FIELDS[kind]}
    assert list(faults_of(Distribution(kind, **needed))) == []
    assert draw(Distribution(kind, **needed), np.random.default_rng(1), 3).shape == (3,)
    for name, value in values.items():
        other = {**needed, name: None if name in needed else value}
        assert [found.keys for found in faults_of(Distribution(kind, **other))] == [(name,)]
        with pytest.raises(ValueError, match=name):
            draw(Distribution(kind, **other), np.random.default_rng(1), 3)


def test_a_load_may_jump_but_not_go_back():
    points = [LoadPoint(0, 1), LoadPoint(10, 2), LoadPoint(10, 0)]
    assert told(load=Load(Arrivals(load=tuple(points)), types=TYPES)) == []
    points.append(LoadPoint(9, 1))
    assert told(load=Load(Arrivals(load=tuple(points)), types=TYPES)) == ["load.arrivals.load.3.time_s"]


def test_overload_is_no_fault():
    assert told(load=Load(Arrivals(rate_per_s=100.0), types=TYPES), station=Station(servers=1)) == []


@pytest.mark.parametrize(("requests", "faults"), [(MOST_REQUESTS, 0), (MOST_REQUESTS + 1, 1)])
def test_so_many_requests_may_be_asked_for(requests, faults):
    assert len(told(load=Load(Arrivals(rate_per_s=requests / 3600), types=TYPES))) == faults
    sessions = Load(Arrivals(rate_per_s=requests / 7200), Sessions(requests=2), types=TYPES)
    assert len(told(load=sessions)) == faults
    point = (LoadPoint(0, 4.0), LoadPoint(9, 1.0))
    assert len(told(load=Load(Arrivals(rate_per_s=requests / 14400, load=point), types=TYPES))) == faults


@pytest.mark.parametrize(("looks", "faults"), [(MOST_LOOKS, 0), (MOST_LOOKS * 1.01, 1)])
def test_the_counter_may_look_so_often(looks, faults):
    assert len(told(observation=Observation(counter_tick_s=3600 / looks))) == faults


@pytest.mark.parametrize(("slices", "faults"), [(0.99 * MOST_SLICES, []), (1.01 * MOST_SLICES, ["station.quantum_s"])])
def test_round_robin_may_take_so_many_slices(slices, faults, tmp_path):
    """3,600 requests of 1 s are expected, and the clients ask every other second."""
    fine = {"station": Station(policy="rr", quantum_s=3600 / slices)}
    clients = Load(clients=Clients(count=2), types=TYPES)
    analysed = {"analyses": QueueAnalyses(Occupancy(policy="rr"))}
    assert told(**fine) == told(**fine, load=clients) == faults
    assert told(station=Station(quantum_s=3600 / slices)) == []
    assert told(station=Station(quantum_s=3600 / slices), **analysed) == faults
    assert told(station=Station(servers=1, policy="rr", quantum_s=7200 / slices, speeds=(0.5,))) == faults
    (tmp_path / "log.csv").write_text("arrival_s,demand_s\n1,3600\n3601,1e9\n")
    assert told(**fine, load=Load(trace=Trace(str(tmp_path / "log.csv")))) == faults


def test_slices_of_a_job_are_reckoned_from_its_instructions():
    of_job = Load(Arrivals(), job=JobDemand("small", "search", Distribution("constant", mean=1e9)))
    assert "station.quantum_s" in told(load=of_job, station=Station(policy="rr", quantum_s=1e-9))
    assert "station.quantum_s" not in told(load=of_job, station=Station(policy="rr"))


@pytest.mark.parametrize(
    "broken",
    [{"contention": Contention(parallelism=2)}, {"observation": Observation(workers=3)}],
    ids=["contention", "workers"],
)
def test_what_breaks_the_laws_needs_alike_servers_in_order_of_arrival(broken):
    assert told(station=Station(policy="fcfs"), **broken) == []
    assert told(station=Station(policy="ps"), **broken) == ["station.policy"]
    assert told(station=Station(servers=1, policy="fcfs", speeds=(2.0,)), **broken) == ["station.speeds"]


def test_fewer_servers_of_several_speeds_may_be_replayed_and_more_may_not():
    station = Station(servers=2, speeds=(1.0, 0.5))
    assert told(station=station, replays=(1,)) == []
    assert told(station=station, replays=(3,)) == ["replays.0"]


def test_background_work_leaves_something_of_the_fewest_servers():
    for share, faults in ((0.24, []), (0.25, ["replays.0"])):
        assert told(observation=Observation(background_share=share), replays=(1,)) == faults


def test_a_faulty_part_of_the_load_hides_no_fault_elsewhere(tmp_path):
    file = tmp_path / "rush.yaml"
    file.write_text(
        "kind: queue\nload: {arrivals: {cv: -1}, types: [{name: a, demand_s: {kind: gamma, mean: 1}}]}\n"
        "station: {servers: 2, speeds: [1]}\nobservation: {counter_tick_s: 100}\n"
    )
    with pytest.raises(FaultsError) as caught:
        load(str(file))
    fields = [fault.field for fault in caught.value.faults]
    assert fields[:1] + fields[-2:] == ["load.arrivals.cv", "station.speeds", "observation.counter_tick_s"]


def test_a_trace_is_told_where_it_is_faulty_with_its_own_lines(tmp_path):
    (tmp_path / "log.csv").write_text("arrival_s\n1\n")
    (tmp_path / "rush.yaml").write_text("{kind: queue, load: {trace: {file: log.csv}}}")
    with pytest.raises(FaultsError, match=r"log.csv:1:1: demand_s: column is missing, got columns arrival_s"):
        load(str(tmp_path / "rush.yaml"))
    (tmp_path / "log.csv").write_text("arrival_s,demand_s\n4000,1\n")
    with pytest.raises(FaultsError, match=r"rush.yaml:1:36: load.trace.file: should hold a request before horizon_s"):
        load(str(tmp_path / "rush.yaml"))


def test_a_queue_is_overridden_and_swept_as_a_fleet_is(tmp_path):
    assert load("queue_small", settings(["station.servers=8"])).station.servers == 8
    (tmp_path / "many.yaml").write_text(
        "sweep: {scenario: queue_small, axes: {station.policy: [ps, srpt]}, seeds: [3, 4]}"
    )
    made = load_each(str(tmp_path / "many.yaml"))
    assert [(one.station.policy, one.seed) for one in made] == [("ps", 3), ("ps", 4), ("srpt", 3), ("srpt", 4)]
    with pytest.raises(FaultsError, match=r"^--set: station.policy: should be 'fcfs', .*, got .fifo.$"):
        load("queue_small", settings(["station.policy=fifo"]))


def test_the_library_has_queues_and_says_so():
    kinds = {one["name"]: one["kind"] for one in shipped().entries}
    assert [name for name in kinds if kinds[name] == "queue"] == [
        f"queue_{name}"
        for name in (
            "autoscaled",
            "clients",
            "impatient",
            "job",
            "listener",
            "machine_scaled",
            "mmk",
            "on_machine",
            "replay",
            "sessions",
            "short",
            "small",
            "srpt",
            "stations",
            "timeouts",
        )
    ]
    assert (kinds["small"], kinds["two_wscs"], kinds["queue_contention"]) == ("fleet", "sweep", "sweep")


MACHINE = ServingMachine()
ONDEMAND = replace(MACHINE, governor=Governor("ondemand"))


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"machine": replace(MACHINE, platform="abacus")}, ["machine.platform"]),
        ({"station": Station(65)}, ["station.servers"]),
        ({"station": Station(56)}, ["machine.neighbours.allocated_share"]),
        ({"station": Station(56), "machine": replace(MACHINE, neighbours=None)}, []),
        ({"replays": (60,)}, ["machine.neighbours.allocated_share"]),
        ({"station": Station(4, capacity=90)}, []),
        (
            {"scaling": ServerScaling(autoscaler=Autoscaler("law", 0.1, most=56))},
            ["machine.neighbours.allocated_share"],
        ),
        ({"scaling": ServerScaling(autoscaler=Autoscaler("law", 0.1, most=80))}, ["scaling.autoscaler.most"]),
        ({"scaling": ServerScaling((ServerStep(9.0, 5), ServerStep(19.0, 65)))}, ["scaling.schedule.1.servers"]),
        ({"station": Station(4, speeds=(1.0,) * 4)}, ["station.speeds"]),
        ({"station": Station(4, "fcfs"), "contention": Contention(lock_share=0.5)}, ["machine"]),
        ({"machine": replace(MACHINE, neighbours=None, steps=Steps(load_s=9.0))}, ["machine.steps"]),
        ({"machine": replace(MACHINE, steps=Steps(governor_s=2.0))}, ["machine.steps.governor_s"]),
        ({"machine": replace(ONDEMAND, steps=Steps(governor_s=2.0))}, []),
        ({"machine": replace(ONDEMAND, steps=Steps(governor_s=1e-9))}, ["machine.steps.governor_s"]),
        ({"machine": replace(MACHINE, steps=Steps(load_s=1e-4))}, ["machine.steps.load_s"]),
        ({"machine": replace(MACHINE, steps=Steps(load_s=1e-4, load_log_sd=0.0))}, []),
        (
            {"machine": replace(MACHINE, platform="abacus", steps=Steps(load_s=1e-4))},
            ["machine.platform", "machine.steps.load_s"],
        ),
        ({"machine": replace(MACHINE, governor=Governor("nowhere.py:mine"))}, ["machine.governor.policy"]),
        (
            {"machine": replace(MACHINE, interference=Interference(mechanism="no.py:m"))},
            ["machine.interference.mechanism"],
        ),
    ],
)
def test_servers_neighbours_and_governor_must_fit_the_machine(fields, where):
    assert told(**{"machine": MACHINE} | fields) == where
