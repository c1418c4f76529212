"""The tables of a queue world: what is observed, what is true, and how one follows from the other."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from models.queues.world import (
    Arrivals,
    Bursts,
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
from sim.queues.requests import requests

PAGE = RequestType("page", Distribution("uniform", low=1.0, high=2.0), weight=3.0)
IMAGE = RequestType("image", Distribution("exponential", mean=0.1), priority=1)
SEEN = Observation(rtt_s=0.01, overhead_s=0.05, background_share=0.03, background_s=0.05)
OPEN = QueueWorld(
    horizon_s=600.0,
    load=Load(Arrivals(1.5, bursts=Bursts()), types=(PAGE, IMAGE)),
    station=Station(4, "ps"),
    observation=SEEN,
)
SEMI_OPEN = replace(OPEN, load=Load(Arrivals(0.25), Sessions(5), types=(PAGE, IMAGE)))
CLOSED = replace(OPEN, load=Load(clients=Clients(10), types=(PAGE, IMAGE)))
LISTENER = replace(OPEN, station=Station(2, "fcfs"), observation=replace(SEEN, accept_at_application=True, workers=4))
STAMPS = ("request", "arrival_s", "departure_s")
WORLDS = {"open": OPEN, "sessions": SEMI_OPEN, "clients": CLOSED, "listener": LISTENER}


def made(world, folder, **given):
    outcome = requests(world, folder, **given)
    return outcome, {table.table: pd.read_parquet(folder / f"{table.table}.parquet") for table in outcome.tables}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_requests_are_numbered_as_observed_and_each_has_its_truth(tmp_path, world):
    outcome, tables = made(world, tmp_path)
    seen, truth = tables["requests"], tables["truth_requests"]
    own = truth["request"] == -1
    assert outcome.counts["requests"] == len(seen) == (~own).sum()
    assert outcome.counts["background"] == own.sum() > 0
    assert seen["request"].tolist() == list(range(len(seen)))
    assert seen["arrival_s"].is_monotonic_increasing
    assert truth["arrival_s"].is_monotonic_increasing
    assert not seen.isna().any(axis=None)
    real = truth[~own].sort_values("request")
    assert real["request"].tolist() == seen["request"].tolist()
    assert (truth["arrival_s"] <= truth["start_s"]).all()
    assert (truth["start_s"] + truth["demand_s"] <= truth["departure_s"] + 1e-9).all()
    assert {*seen["type"]} == {"page", "image"}
    page = real.loc[(seen["type"] == "page").to_numpy(), "demand_s"]
    assert page.between(1.0, 2.0).all()


@pytest.mark.parametrize("world", [OPEN, SEMI_OPEN, CLOSED])
def test_a_client_sees_a_request_longer_than_the_server_does(tmp_path, world):
    _, tables = made(world, tmp_path)
    seen = tables["requests"]
    real = tables["truth_requests"].query("request >= 0").sort_values("request")
    before_s = real["arrival_s"].to_numpy() - seen["arrival_s"].to_numpy()
    after_s = seen["departure_s"].to_numpy() - real["departure_s"].to_numpy()
    for way_s in (before_s, after_s):
        assert way_s.min() > 0.005
        assert way_s.mean() == pytest.approx(0.03, rel=0.1)
    first = seen if world is not SEMI_OPEN else seen.drop_duplicates("session")
    assert first["arrival_s"].max() < world.horizon_s


def test_an_application_stamps_requests_when_a_worker_takes_them(tmp_path):
    _, tables = made(LISTENER, tmp_path)
    seen = tables["requests"]
    real = tables["truth_requests"].query("request >= 0").sort_values("request")
    waited_s = seen["arrival_s"].to_numpy() - real["arrival_s"].to_numpy()
    assert (waited_s >= 0).all()
    assert waited_s.max() > 5.0
    np.testing.assert_array_equal(seen["departure_s"], real["departure_s"])
    present = (seen["arrival_s"].to_numpy()[:, None] >= seen["arrival_s"].to_numpy()) & (
        seen["arrival_s"].to_numpy()[:, None] < seen["departure_s"].to_numpy()
    )
    assert present.sum(axis=1).max() == 4


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_exact_counter_accounts_for_all_work_and_the_sampled_one_is_near_it(tmp_path, world):
    _, tables = made(world, tmp_path)
    exact, seen, truth = tables["truth_cpu"], tables["cpu"], tables["truth_requests"]
    np.testing.assert_array_equal(exact[["start_s", "end_s"]], seen[["start_s", "end_s"]])
    inside = truth["departure_s"] <= exact["end_s"].iloc[-1]
    counted_s = exact["utilisation"].sum() * 60.0 * world.station.servers
    assert truth.loc[inside, "demand_s"].sum() <= counted_s + 1e-6
    assert counted_s <= truth["demand_s"].sum() + 1e-6
    assert (exact["utilisation"] - seen["utilisation"]).abs().max() < 0.01
    assert exact["utilisation"].between(0.0, 1.0).all()


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_the_same_world_makes_the_same_tables(tmp_path, world):
    first, second, other = (tmp_path / name for name in "abc")
    for folder in (first, second, other):
        folder.mkdir()
    one, two = requests(world, first), requests(world, second)
    assert one == two
    assert {t.digest for t in one.tables}.isdisjoint(t.digest for t in requests(replace(world, seed=2), other).tables)


def test_replays_are_the_same_requests_with_other_servers(tmp_path):
    world = replace(OPEN, replays=(2, 4))
    outcome, tables = made(world, tmp_path)
    seen, again = tables["requests"], tables["replays"]
    assert outcome.tables[-1].table == "replays"
    assert again["servers"].unique().tolist() == [2, 4]
    for servers, rows in again.groupby("servers"):
        assert rows["request"].tolist() == seen["request"].tolist()
        np.testing.assert_array_equal(rows["arrival_s"], seen["arrival_s"])
        same = np.array_equal(rows["departure_s"], seen["departure_s"])
        assert same == (servers == 4)
    fewer = again[again["servers"] == 2]
    assert fewer["departure_s"].mean() > seen["departure_s"].mean() + 1.0


def test_a_replay_with_as_many_servers_says_the_same_of_every_request(tmp_path):
    _, tables = made(replace(LISTENER, horizon_s=300.0, replays=(2,)), tmp_path)
    pd.testing.assert_frame_equal(tables["replays"][[*STAMPS]], tables["requests"][[*STAMPS]])


def test_without_replays_there_is_no_such_table(tmp_path):
    _, tables = made(OPEN, tmp_path)
    assert [*tables] == ["requests", "cpu", "truth_requests", "truth_cpu"]
    assert not (tmp_path / "replays.parquet").exists()


def test_counts_say_how_many_asked(tmp_path):
    outcome, tables = made(SEMI_OPEN, tmp_path)
    assert outcome.counts["sessions"] == tables["requests"]["session"].nunique() == len(tables["requests"]) / 5
    assert tables["requests"]["session"].min() == 0
    outcome, tables = made(CLOSED, tmp_path)
    assert (outcome.counts["clients"], outcome.counts["sessions"]) == (10, 0)
    assert sorted(tables["requests"]["session"].unique()) == list(range(10))
    assert made(OPEN, tmp_path)[1]["requests"]["session"].unique().tolist() == [-1]


def test_a_trace_and_a_job_bring_their_own_demands(tmp_path):
    rows = pd.DataFrame({"arrival_s": [2.0, 1.0], "demand_s": [0.5, 0.25], "type": ["b", "a"]})
    world = QueueWorld(horizon_s=60.0, load=Load(trace=Trace("log.csv")), replays=(1,))
    _, tables = made(world, tmp_path, trace=rows)
    assert tables["requests"][["type", "arrival_s", "departure_s"]].to_numpy().tolist() == [
        ["a", 1.0, 1.25],
        ["b", 2.0, 2.5],
    ]
    job = JobDemand("small", "ads", Distribution("constant", mean=1e9))
    world = QueueWorld(horizon_s=60.0, load=Load(Arrivals(1.0), job=job))
    _, tables = made(world, tmp_path, seconds_per_instruction=(np.array([0.0]), np.array([0.5e-9])))
    assert {*tables["requests"]["type"]} == {"ads"}
    assert {*tables["truth_requests"]["demand_s"]} == {0.5}


@pytest.mark.parametrize("station", [Station(2, speeds=(2.0, 0.5)), Station(2, "rr", rates=(1.0, 1.3))])
def test_servers_that_differ_are_served_and_counted(tmp_path, station):
    _, tables = made(replace(OPEN, load=Load(Arrivals(0.5), types=(PAGE,)), station=station), tmp_path)
    assert tables["truth_cpu"]["utilisation"].max() > 0.1


def test_progress_goes_on_to_the_end(tmp_path):
    told = []
    requests(replace(OPEN, replays=(2, 3)), tmp_path, progress=lambda what, share: told.append((what, share)))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] <= 1.0
    assert any("3 servers" in what for what, _ in told)


def test_a_world_without_requests_is_refused_and_writes_nothing(tmp_path):
    world = QueueWorld(horizon_s=1e-9, load=Load(Arrivals(1.0), types=(PAGE,)), replays=(1,))
    with pytest.raises(ValueError, match="no request comes within horizon_s = 1e-09"):
        requests(world, tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_world_that_does_not_fit_together_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="need policy fcfs"):
        requests(replace(OPEN, contention=Contention(lock_share=0.5)), tmp_path)
    assert not any(tmp_path.iterdir())
