"""Runs of several stations: their tables, what is concluded of each, and what is refused."""

import numpy as np
import pytest

from models.errors import InputError
from models.queues.world import Arrivals, Contention, Distribution, Load, NetworkStation, QueueWorld, Station
from scenarios.files.faults import FaultsError
from scenarios.files.loader import load, overrides
from scenarios.occupancy.measure import measure, numbers
from scenarios.occupancy.occupancy import occupancy
from scenarios.occupancy.question import OccupancyQuery
from scenarios.occupancy.slices import LogSlice
from scenarios.occupancy.steady import unsteady
from scenarios.runs.execution import obtain
from sim.queues.network import check_network

SECOND = Distribution("constant", mean=1.0)


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
    assert page.mean_thread_wait_s == pytest.approx(page.mean_waiting_s)
    assert "web has 8; " in answer.section().blocks[3].text
    drawn, means = answer.figure().axes[0].patches, [row.mean_response_s for row in answer.stations]
    widths = np.reshape([bar.get_width() for bar in drawn], (2, -1)).sum(axis=0)
    np.testing.assert_allclose(widths, means)
    assert answer.payload()["bottleneck"] == "page"
    assert list(answer.frame()["station"]) == [row.station for row in answer.stations]


def test_the_law_asks_of_one_station_at_a_time(measured):
    run, scenario, answer = measured
    query = OccupancyQuery(2, to=(3,), rows=LogSlice(where="station = 'page'"))
    page = occupancy(run.path / "station_requests.parquet", query)
    assert page.queueing_time_s == pytest.approx(answer.stations[-1].queueing_time_s)
    with pytest.raises(FaultsError, match="requests passed several stations"):
        occupancy(run.path, OccupancyQuery(11, to=(12,)))
    assert "several stations" in unsteady(scenario)


OPEN = Load(Arrivals())


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
