"""Runs of several stations: their tables, what is concluded of each, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from models.errors import InputError
from models.queues.world import Arrivals, Contention, Distribution, Load, NetworkStation, QueueWorld, Station
from scenarios.files.faults import FaultsError
from scenarios.files.loader import load, overrides
from scenarios.files.schema import QueueScenario
from scenarios.occupancy.measure import measure, numbers
from scenarios.occupancy.network import measure_network
from scenarios.occupancy.occupancy import occupancy
from scenarios.occupancy.question import OccupancyQuery
from scenarios.occupancy.slices import LogSlice
from scenarios.occupancy.steady import unsteady
from scenarios.runs.execution import obtain
from scenarios.views.section import Says
from sim.queues.network import check_network

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
    assert "of response: no request took any time" in lines[2]
    assert answer.payload()["bottleneck"] is None


def test_the_law_asks_of_one_station_at_a_time(measured):
    run, scenario, answer = measured
    query = OccupancyQuery(2, to=(3,), rows=LogSlice(where="station = 'page'"))
    page = occupancy(run.path / "station_requests.parquet", query)
    assert page.queueing_time_s == pytest.approx(answer.stations[-1].queueing_time_s)
    assert "they are all of station page, whose servers are taken to serve no others" in page.notes[0]
    with pytest.raises(FaultsError, match="requests passed several stations"):
        occupancy(run.path, OccupancyQuery(11, to=(12,)))
    assert "several stations" in unsteady(scenario)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"station": Station(servers=2), "contention": Contention(lock_share=0.1)}, "with station, contention"),
        ({"load": Load()}, "needs arrivals"),
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
