"""Runs of several stations: their tables, what is concluded of each, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from models.errors import InputError
from models.queues.world import (
    Arrivals,
    Clients,
    Contention,
    Distribution,
    Load,
    NetworkStation,
    QueueWorld,
    Sessions,
    Station,
)
from scenarios.files.faults import FaultsError
from scenarios.files.loader import load, overrides
from scenarios.files.schema import QueueScenario
from scenarios.occupancy.clients import without_product_form
from scenarios.occupancy.measure import measure, numbers, precise
from scenarios.occupancy.network import carried_s, measure_network
from scenarios.occupancy.occupancy import occupancy
from scenarios.occupancy.question import OccupancyQuery
from scenarios.occupancy.slices import LogSlice
from scenarios.occupancy.steady import unsteady
from scenarios.runs.execution import obtain
from scenarios.views.section import Says, Table
from sim.queues.network import check_network, queues_of, serve_stations

SECOND = Distribution("constant", mean=1.0)
OPEN = Load(Arrivals())


def silent(*_):
    """Say nothing of the progress."""


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The run of five minutes of the shipped scenario, the scenario, and what is concluded."""
    out = tmp_path_factory.mktemp("runs")
    changed = ["horizon_s=300", "observation.rtt_s=0.5", "observation.overhead_s=0.1"]
    scenario = load("queue_stations", overrides(changed))
    run = obtain(scenario, out, False, silent)
    return run, scenario, measure(scenario, run, out, silent)


def test_tables_follow_each_request_through_its_stations(measured):
    run, _, _ = measured
    whole, logs = run.table("requests"), run.table("station_requests")
    came, left = (logs.pivot(index="request", columns="station", values=name) for name in ("arrival_s", "departure_s"))
    shards = [f"shard {i}" for i in (1, 2, 3)]
    assert (whole["arrival_s"].to_numpy() < came["web"]).all()
    assert (came[shards].to_numpy() == left["web"].to_numpy()[:, None]).all()
    np.testing.assert_array_equal(came["page"], np.sort(left[shards], axis=1)[:, 1])
    assert (whole["departure_s"].to_numpy() - left["page"] > 0.25).all()
    truth = run.table("truth_station_requests")
    assert (truth["request"] == logs["request"]).all()
    np.testing.assert_allclose(truth["waiting_s"] + truth["demand_s"], logs["departure_s"] - logs["arrival_s"])
    assert logs.groupby("station", observed=True)["arrival_s"].is_monotonic_increasing.all()
    counted = run.table("station_cpu").groupby("station", observed=True)["utilisation"].mean()
    assert counted.between(0.4, 0.8).all()


def test_a_shard_whose_answer_nobody_needs_limits_nothing(tmp_path):
    slow = ["horizon_s=300", "stations.2.demand_s={kind: exponential, mean: 0.5}"]
    scenario = load("queue_stations", overrides(slow))
    answer = measure(scenario, obtain(scenario, tmp_path, False, silent), tmp_path, silent)
    assert answer.bottleneck.station == "shard 2"
    assert answer.most_per_s == pytest.approx(16.0, rel=0.1)
    assert answer.whole.truth.utilisation < 1.0
    queues = queues_of(scenario.stations)
    assert carried_s(queues, [0.1, 0.2, 0.9, 0.3, 0.1]) == 0.3
    assert carried_s([replace(queue, needs=0) for queue in queues], [0.1, 0.2, 0.9, 0.3, 0.1]) == 0.9


def test_every_station_is_by_the_law_and_the_whole_is_not(measured):
    _, _, answer = measured
    for row in answer.stations:
        assert abs(row.errors.service) < 1e-9
        assert abs(row.errors.queueing) < 1e-9
    assert answer.whole.errors.queueing < -0.1
    assert answer.bottleneck.station == "page"
    assert answer.most_per_s == pytest.approx(16.0, rel=0.1)
    # What is no station's share was on the way: at least half a second of each response.
    response_s = answer.percentiles.response[0].value_s
    assert 0.5 < (1 - sum(row.of_response for row in answer.stations)) * response_s * 1.2 < 0.8
    assert dict(numbers(answer))["in time"] == answer.unserved.in_time
    assert "bottleneck: page" in answer.section().blocks[2].text
    web, page = answer.stations[0], answer.stations[-1]
    assert 0.0 < web.mean_thread_wait_s < web.mean_waiting_s
    assert np.isnan([page.mean_thread_wait_s, page.p99_thread_wait_s]).all()
    assert "web has 8; " in answer.section().blocks[3].text
    drawn, means = answer.figure().axes[0].patches, [row.mean_response_s for row in answer.stations]
    widths = np.reshape([bar.get_width() for bar in drawn], (2, -1)).sum(axis=0)
    np.testing.assert_allclose(widths, means)
    assert answer.payload()["bottleneck"] == "page"
    assert list(answer.frame()["station"]) == [row.station for row in answer.stations]


def of_logs(logs, scenario, out):
    """Return what is concluded of the logs of stations, `(arrival_s, departure_s, demand_s)` of each."""
    came, left, need_s = (np.array(column, dtype=float) for column in zip(*logs, strict=True))
    request = np.tile(np.arange(came.shape[1]), len(logs))
    columns = {"request": request, "arrival_s": came.ravel(), "departure_s": left.ravel(), "start_s": came.ravel()}
    columns |= {"demand_s": need_s.ravel(), "waiting_s": (left - came - need_s).ravel()}
    whole = pa.table({"arrival_s": came[0], "departure_s": left[-1]})
    run = StoredRun(out, {"requests": whole.to_pandas(), "station_requests": pa.table(columns).to_pandas()})
    return measure_network(scenario, run)


class StoredRun:
    """A run whose tables are in memory, that of the truth the same as that of the stations."""

    def __init__(self, path, tables):
        self.path, self.tables = path, {**tables, "truth_station_requests": tables["station_requests"]}
        self.manifest = {"counts": {"requests": len(tables["requests"])}}

    def has(self, name):
        return name in self.tables

    def table(self, name, columns):
        return self.tables[name][columns]


def of_demands(*mean_s):
    stations = tuple(NetworkStation(f"station {s}", Distribution("constant", mean=s)) for s in mean_s)
    return QueueScenario(name="tandem", load=OPEN, stations=stations, horizon_s=3.0)


def test_of_stations_that_are_all_full_the_one_that_needs_most_is_the_bottleneck(tmp_path):
    first, second = ([0, 0, 0], [1, 2, 3], [1, 1, 1]), ([1, 2, 3], [3, 5, 7], [2, 2, 2])
    answer = of_logs([first, second], of_demands(1.0, 2.0), tmp_path)
    assert [row.utilisation for row in answer.stations] == [1.0, 1.0]
    assert answer.payload()["bottleneck"] == "station 2.0"
    assert answer.brief().startswith("bottleneck station 2.0, 100.0% busy")
    unknown = replace(answer, stations=tuple(replace(row, demand_per_server_s=math.nan) for row in answer.stations))
    assert unknown.bottleneck.station == "station 2.0"


@pytest.mark.filterwarnings("error")
def test_where_nothing_is_needed_nothing_is_the_bottleneck(tmp_path):
    answer = of_logs([([0, 1, 2], [0, 1, 2], [0, 0, 0])], of_demands(0.0), tmp_path)
    lines = [line.text for line in answer.section().of(Says)]
    assert lines[0].endswith(": 3 requests, 1 station")
    assert lines[1] == "bottleneck: none, requests need no service"
    assert lines[2] == "no bracket for p50 to p99.9: 3 requests are too few; 80 to 10,000 would give one"
    assert "of response: no request took any time" in lines[3]
    assert answer.payload()["bottleneck"] is None


def test_the_law_asks_of_one_station_at_a_time(measured):
    run, scenario, answer = measured
    query = OccupancyQuery(2, to=(3,), rows=LogSlice(where="station = 'page'"))
    page = occupancy(run.path / "station_requests.parquet", query)
    assert page.queueing_time_s == pytest.approx(answer.stations[-1].queueing_time_s)
    assert "they are all of station page, whose servers are taken to serve no others" in page.notes[0]
    with pytest.raises(FaultsError, match="requests passed several stations"):
        occupancy(run.path, OccupancyQuery(11, to=(12,)))
    assert unsteady(scenario) == ""
    faster = replace(scenario.load.arrivals, rate_per_s=18.0)
    overloaded = replace(scenario, load=replace(scenario.load, arrivals=faster))
    assert unsteady(overloaded) == "overloaded: 112% of the capacity of station page is demanded"


def test_a_run_of_several_stations_is_lengthened_to_a_precision(tmp_path):
    answer = precise(load("queue_stations", overrides(["horizon_s=60"])), 0.1, tmp_path, False, silent)
    assert answer.precision.runs > 1
    assert answer.precision.horizon_s == 60.0 * 2 ** (answer.precision.runs - 1)
    assert answer.steady.high - answer.steady.low <= 2 * 0.1 * answer.steady.mean_response_s
    assert any("of the mean needed a horizon of" in line.text for line in answer.section().of(Says))
    assert answer.payload()["precision"]["asked"] == 0.1


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """The tables of twenty minutes of the shipped clients, the scenario, and what is concluded."""
    out = tmp_path_factory.mktemp("runs")
    scenario = load("queue_clients", overrides(["horizon_s=1200", "observation.rtt_s=0.5", "observation.overhead_s=1"]))
    run = obtain(scenario, out, False, silent)
    return run, scenario, measure(scenario, run, out, silent)


def test_clients_wait_for_their_answers_and_think(closed):
    run, scenario, _ = closed
    log, logs = run.table("requests"), run.table("station_requests")
    assert log["arrival_s"].is_monotonic_increasing
    assert log["arrival_s"].iloc[-1] < scenario.horizon_s < log["departure_s"].max()
    assert sorted(set(log["session"])) == list(range(50)), "every client asks"
    log = log.sort_values(["session", "arrival_s"])
    before = log.groupby("session")["departure_s"].shift(fill_value=0.0)
    thought_s = log["arrival_s"] - before
    assert (thought_s >= 0).all()
    assert thought_s.mean() == pytest.approx(15.0, rel=4 / math.sqrt(len(log)))
    web = logs[logs["station"] == "web"].set_index("request")["arrival_s"].sort_index()
    assert (web - run.table("requests")["arrival_s"]).mean() == pytest.approx(0.75, rel=0.01)
    assert run.manifest["counts"]["clients"] == 50


def test_a_longer_horizon_changes_no_request_before(closed):
    run, scenario, _ = closed
    shorter = serve_stations(replace(scenario, horizon_s=600.0))
    n = len(shorter.sent_s)
    np.testing.assert_array_equal(shorter.sent_s, run.table("requests")["arrival_s"][:n])


def test_clients_are_shown_beside_mean_value_analysis_and_bounds(closed):
    _, _, answer = closed
    clients = answer.clients
    assert clients.without_theory == ""
    assert clients.bounds.knee == pytest.approx((15 + 0.35 + 1.5) / 0.25)
    whole = clients.whole
    assert abs(whole.per_s - whole.theory_per_s) < 2 * clients.per_s_error < 0.3 * whole.per_s
    assert abs(whole.response_s - whole.theory_response_s) < 2 * clients.response_error_s < whole.response_s
    assert whole.theory_response_s == pytest.approx(1.5 + sum(row.theory_response_s for row in clients.stations))
    for row in clients.stations:
        assert row.utilisation == pytest.approx(row.theory_utilisation, rel=0.2)
    text = "\n".join(line.text for line in answer.section().of(Says))
    assert "with more than N* = 67.4 clients some must wait, first at database" in text
    assert "by MVA: exact means" in text
    assert "as many as came" not in text
    assert answer.payload()["clients"]["whole"]["theory_per_s"] == whole.theory_per_s
    assert dict(numbers(answer))["answers a second"] == whole.per_s


def test_where_there_is_no_product_form_bounds_are_shown_and_the_reason(tmp_path):
    """Requests of clients at a fork: what nobody waits for is the longer of two branches, from what was needed."""
    fork = tuple(NetworkStation(name, Distribution("exponential", mean=1.0), after=()) for name in ("left", "right"))
    scenario = QueueScenario(name="fork", load=Load(clients=Clients(2)), stations=fork, horizon_s=40.0)
    came, left = [[0, 10], [0, 10]], [[1, 14], [3, 11]]
    answer = of_logs([(came[i], left[i], np.subtract(left[i], came[i])) for i in (0, 1)], scenario, tmp_path)
    clients = answer.clients
    assert clients.bounds.least_response_s == pytest.approx((3 + 4) / 2)
    assert math.isnan(clients.whole.theory_per_s)
    assert math.isnan(clients.per_s_error), "two answers are too few for an interval"
    lines = [line.text for line in answer.section().of(Says)]
    assert "note: no exact means by MVA beside these: requests are at several stations at a time" in "\n".join(lines)
    table = next(block for block in answer.section().of(Table) if "2 clients" in block.title)
    assert [head.text for head in table.headings] == ["station", "a second", "busy", "response"]


@pytest.mark.parametrize(
    ("station", "why"),
    [
        ({}, "a is fcfs with demands that are gamma of cv 2 and not exponential"),
        ({"policy": "ps"}, ""),
        ({"policy": "ps", "threads": 4}, "a is ps with fewer threads than clients"),
        ({"policy": "ps", "threads": 5}, ""),
        ({"policy": "lcfs_pr"}, ""),
        ({"policy": "lcfs_pr", "servers": 2}, "a is lcfs_pr"),
        ({"servers": 5}, ""),
        ({"policy": "srpt", "demand_s": Distribution("exponential", mean=1.0)}, "a is srpt, which looks at demands"),
        ({"policy": "fb", "demand_s": Distribution("exponential", mean=1.0)}, ""),
        ({"demand_s": Distribution("gamma", mean=1.0, cv=1.0)}, ""),
        ({"demand_s": Distribution("constant", mean=0.0)}, ""),
    ],
)
def test_what_has_a_product_form_is_known(station, why):
    row = replace(NetworkStation("a", Distribution("gamma", mean=1.0, cv=2.0)), **station)
    reason = without_product_form(QueueWorld(stations=(row,)), Clients(5))
    assert reason.startswith(why) if why else not reason


def test_sessions_pass_stations(closed):
    _, scenario, _ = closed
    think_s = Distribution("constant", mean=3.0)
    of_sessions = Load(Arrivals(0.1), sessions=Sessions(4, think_s))
    served = serve_stations(replace(scenario, load=of_sessions))
    order = np.lexsort((served.sent_s, served.session))
    sent_s, answered_s = served.sent_s[order].reshape(-1, 4), served.answered_s[order].reshape(-1, 4)
    np.testing.assert_allclose(sent_s[:, 1:] - answered_s[:, :-1], 3.0)
    assert (sent_s[:, 0] < scenario.horizon_s).all()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"load": Load(Arrivals(), clients=Clients())}, "needs one of arrivals and clients"),
        ({"load": Load(clients=Clients(), sessions=Sessions())}, "sessions need arrivals"),
        ({"load": Load(clients=Clients(think_s=Distribution("gamma", mean=1.0)))}, "clients: think_s: gamma needs cv"),
        ({"station": Station(servers=2), "contention": Contention(lock_share=0.1)}, "with station, contention"),
        ({"load": Load()}, "needs one of arrivals and clients"),
        ({"stations": (NetworkStation("a", SECOND, policy="priority"),)}, "no classes"),
        ({"stations": (NetworkStation("a", SECOND), NetworkStation("a", SECOND, after=()))}, "the same name"),
        ({"stations": (NetworkStation("a", SECOND, after=("b",)),)}, "comes after b, which is not above it"),
        ({"stations": (NetworkStation("a", Distribution("gamma", mean=1.0)),)}, "a: demand_s: gamma needs cv"),
    ],
)
def test_a_world_whose_stations_do_not_fit_is_refused(fields, problem):
    world = QueueWorld(**{"load": OPEN, "stations": (NetworkStation("a", SECOND),), **fields})
    with pytest.raises(InputError, match=problem):
        check_network(world)
