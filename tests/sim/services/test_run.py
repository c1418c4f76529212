"""A world of services as tables: their columns, their sums, and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from models.services.world import Mechanisms, ServiceLoad, ServiceWorld
from models.tables import TABLES
from sim.services.run import check, record, services

WORLD = ServiceWorld(seed=2, horizon_s=1800.0, platforms=("piii", "xeon_2h_1c_2p"), bounds_s=(0.15, 0.3))


@pytest.fixture(scope="module")
def tables():
    return services(WORLD)


def test_every_table_has_the_columns_that_are_promised(tables):
    assert set(tables) == {name for name in TABLES if name.startswith(("service_", "truth_service"))} | {
        "benchmarks",
        "truth_miss_curve",
        "truth_throughput",
    }
    for name, frame in tables.items():
        assert frame.columns.tolist() == [column.name for column in TABLES[name]], name


def test_counts_by_type_add_up_to_the_requests_of_every_platform(tables):
    counts = tables["service_counts"].groupby("start_s")["requests"].sum().to_numpy()
    for name in WORLD.platforms:
        truth = tables["truth_service"]
        np.testing.assert_array_equal(truth.loc[truth["platform"] == name, "requests"], counts)
    assert len(tables["service_counts"]) == 60 * 22


def test_service_time_is_utilisation_over_arrivals(tables):
    truth = tables["truth_service"]
    np.testing.assert_allclose(truth["service_time_s"] * truth["requests"], truth["utilisation"] * 30.0, rtol=1e-12)


def test_only_measured_platforms_have_a_log_and_published_counters(tables):
    assert set(tables["service_log"]["platform"]) == set(tables["service_cpu"]["platform"]) == {"piii"}
    known = tables["benchmarks"].set_index("platform")["instructions"].notna()
    assert known.to_dict() == {"piii": True, "xeon_2h_1c_2p": False}
    assert (tables["benchmarks"]["score_per_s"] > 0).all()


def test_the_log_is_the_truth_but_for_sampling(tables):
    log, truth = tables["service_log"], tables["truth_service"].query("platform == 'piii'").reset_index(drop=True)
    np.testing.assert_array_equal(log["response_time_s"], truth["response_time_s"])
    np.testing.assert_array_equal(tables["service_cpu"]["utilisation"], truth["utilisation"])
    for name in ("instructions", "l1_misses", "l2_misses"):
        error = (log[name] - truth[name]) / np.sqrt(WORLD.sampling_events * truth[name])
        assert 0.5 < error.std() < 1.6
    exact = services(replace(WORLD, mechanisms=Mechanisms(sampling=False)))
    np.testing.assert_array_equal(exact["service_log"]["l2_misses"], truth["l2_misses"])


def test_the_miss_curve_falls_from_16_kib_to_16_mib(tables):
    curve = tables["truth_miss_curve"]
    assert curve["size_bytes"].iloc[[0, -1]].tolist() == [2.0**14, 2.0**24]
    assert (np.diff(curve["misses_per_instruction"]) < 0).all()


def test_same_world_same_tables_and_another_seed_other_ones(tables):
    for name, frame in services(WORLD).items():
        pd.testing.assert_frame_equal(frame, tables[name])
    assert not services(replace(WORLD, seed=3))["service_counts"].equals(tables["service_counts"])


def test_a_platform_serves_the_same_whoever_else_does(tables):
    alone = services(replace(WORLD, platforms=("piii",)))["truth_service"]
    pd.testing.assert_frame_equal(alone, tables["truth_service"].query("platform == 'piii'"))


def test_what_is_not_asked_for_is_left_out():
    few = services(WORLD, throughput=False, types=False)
    assert "truth_throughput" not in few
    assert "truth_service_types" not in few


def test_an_interval_without_requests_has_no_times():
    quiet = services(replace(WORLD, load=ServiceLoad(requests_per_s=0.02)))
    truth = quiet["truth_service"]
    none = truth["requests"] == 0
    assert none.any()
    assert truth.loc[none, ["service_time_s", "response_time_s"]].isna().all(axis=None)
    assert (truth.loc[none, "utilisation"] > 0).all()  # ticks go on


def test_three_times_the_volume_saturates_intervals():
    piii = replace(WORLD, horizon_s=9000.0, platforms=("piii",))
    busy = services(replace(piii, load=ServiceLoad(volume=3.0)))["truth_service"]["utilisation"]
    assert busy.max() <= 1 + 1e-9
    assert (busy > 0.999).mean() > 0.1


def test_platforms_that_are_twice_there_or_do_not_serve_are_refused_at_once():
    world = ServiceWorld(platforms=("pres", "pres"), measured=("piii", "pd4"))
    with pytest.raises(ValueError, match=r"platforms: pres is named twice; measured: piii is not .*; measured: pd4"):
        services(world)


def test_a_trace_without_a_request_is_refused():
    with pytest.raises(ValueError, match="no request comes within horizon_s = 1800"):
        services(replace(WORLD, load=ServiceLoad(requests_per_s=1e-9)))


def test_a_recorded_world_is_its_tables_and_progress_is_told(tmp_path, tables):
    told = []
    outcome = record(WORLD, tmp_path, lambda what, share: told.append((what, share)))
    assert {table.table for table in outcome.tables} == set(tables)
    assert [share for _, share in told] == sorted(share for _, share in told)
    assert outcome.counts["requests"] == tables["service_counts"]["requests"].sum()
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "benchmarks.parquet"), tables["benchmarks"])


def test_public_scores_are_of_machines_at_their_base_clocks():
    world = ServiceWorld(horizon_s=600.0, platforms=("piii", "pres"))
    slow = replace(world, clocks={"pres": 1.1e9})
    plain, throttled = (services(each, throughput=False, types=False) for each in (world, slow))
    pd.testing.assert_frame_equal(plain["benchmarks"], throttled["benchmarks"])
    used, more = (
        each["truth_service"].query("platform == 'pres'")["utilisation"].mean() for each in (plain, throttled)
    )
    assert 1.3 * used < more < 2.0 * used


def test_a_clock_of_a_platform_that_does_not_serve_is_refused():
    with pytest.raises(ValueError, match="clocks: pd4 is not among the platforms, piii"):
        check(ServiceWorld(platforms=("piii",), clocks={"pd4": 1e9}))
