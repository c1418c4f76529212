"""Runs of queues with limits, and with servers that come and go: tables, conclusions, and what goes without limits."""

import json

import numpy as np
import pandas as pd
import pytest

from analysis.occupancy.objective import Objective
from scenarios.files.faults import FaultsError
from scenarios.files.loader import load, overrides
from scenarios.occupancy.measure import measure, numbers
from scenarios.occupancy.occupancy import occupancy
from scenarios.occupancy.question import OccupancyQuery
from scenarios.occupancy.steady import unsteady
from scenarios.occupancy.unserved import unserved
from scenarios.runs.execution import obtain


def silent(*_):
    """Say nothing of the progress."""


def ran(tmp_path, name, **values):
    """The run of a scenario with other values, `a__b` for `a.b`, and that scenario."""
    scenario = load(name, overrides([f"{way.replace('__', '.')}={json.dumps(to)}" for way, to in values.items()]))
    run = obtain(scenario, tmp_path, False, silent)
    return run, scenario


def test_a_run_says_who_was_not_served_and_the_laws_hold_for_those_who_were(tmp_path):
    run, scenario = ran(tmp_path, "queue_impatient", horizon_s=900.0, analyses__occupancy__to=[3])
    answer = measure(scenario, run, tmp_path, silent)
    log, failed = run.table("requests"), run.table("unserved")
    counts = run.manifest["counts"]
    assert counts["requests"] == len(log)
    assert counts["gave_up"] == counts["unanswered"] == len(failed) > 300
    assert set(failed["outcome"]) == {"gave up"}
    assert (failed["departure_s"] > failed["arrival_s"]).all()
    assert abs(answer.errors.service) < 1e-9
    assert abs(answer.errors.queueing) < 1e-9
    late = (log["departure_s"] - log["arrival_s"] > 2.0).sum() + len(failed)
    assert answer.unserved.in_time == pytest.approx(1 - late / (len(log) + len(failed)))
    assert any("who is refused or gives up" in note for note in answer.occupancy.notes)
    assert dict(numbers(answer))["never served"] == answer.unserved.unanswered / answer.unserved.requests
    assert not answer.occupancy.percentiles.waiting
    assert answer.occupancy.capacity == ()


def test_a_rush_of_time_outs_and_retries_goes_on_and_without_retries_it_ends(tmp_path):
    run, scenario = ran(tmp_path, "queue_timeouts", horizon_s=900.0)
    answer = measure(scenario, run, tmp_path, silent)
    log, failed, work = (run.table(name) for name in ("requests", "unserved", "truth_requests"))
    assert set(failed["outcome"]) == {"timed out"}
    assert len(failed) == answer.unserved.timed_out == run.manifest["counts"]["timed_out"]
    assert np.allclose(failed["departure_s"] - failed["arrival_s"], 2.0)
    assert (log["departure_s"] - log["arrival_s"]).max() <= 2.0 + 1e-9
    vain = work["request"] < 0
    assert answer.unserved.in_vain == pytest.approx(work["demand_s"][vain].sum() / work["demand_s"].sum())
    assert answer.unserved.in_vain > 0.2
    assert answer.truth.service_time_s == pytest.approx(work["demand_s"][~vain].sum())
    assert any("servers also worked for those that timed out" in note.text for note in answer.notes())
    assert "requests that timed out" in answer.occupancy.servers_test.reason
    with pytest.raises(FaultsError, match="refused, gave up or timed out"):
        occupancy(run.path, OccupancyQuery(4, to=(3,)))
    calm, _ = ran(tmp_path, "queue_timeouts", horizon_s=900.0, station__retries=None)
    late = [(run.table("unserved")["arrival_s"] > 800.0).sum() for run in (run, calm)]
    assert late[0] > 1_000
    assert late[1] == 0


def test_the_log_of_a_run_with_limits_says_nothing_of_other_servers(tmp_path):
    run, _ = ran(tmp_path, "queue_impatient", horizon_s=300.0)
    lost = run.manifest["counts"]["gave_up"]
    asked = OccupancyQuery(4, to=(3,), speed=(2.0,), policy="fcfs", objective=Objective(0.9, 3.0))
    with pytest.raises(FaultsError) as error:
        occupancy(run.path, asked)
    assert [fault.file for fault in error.value.faults] == ["--policy", "--slo", "--speed", "--to"]
    assert {fault.problem for fault in error.value.faults} == {
        f"cannot be answered where requests were refused or gave up ({lost} attempts here): who would be, on other "
        "servers, does not follow from those that were served"
    }
    [note] = [note for note in occupancy(run.path, OccupancyQuery(4)).notes if "gave up" in note]
    assert note.startswith("what other servers or another load would change cannot be answered")


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("queue_impatient", {}, "cannot be answered where requests were refused or gave up"),
        (
            "queue_autoscaled",
            {"load__arrivals__load": [], "station__servers": 4},
            "cannot be answered where the number",
        ),
    ],
)
def test_the_file_of_a_run_is_refused_as_its_folder_is(tmp_path, name, values, why):
    run, _ = ran(tmp_path, name, horizon_s=300.0, **values)
    file = run.path / "requests.parquet"
    with pytest.raises(FaultsError) as of_folder:
        occupancy(run.path, OccupancyQuery(4, to=(3,)))
    with pytest.raises(FaultsError, match=why) as of_file:
        occupancy(file, OccupancyQuery(4, to=(3,)))
    assert str(of_file.value) == str(of_folder.value)
    (tmp_path / "link.parquet").symlink_to(file)
    with pytest.raises(FaultsError, match=why):
        occupancy([tmp_path / "link.parquet"], OccupancyQuery(4, to=(3,)))
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "log.parquet").write_bytes(file.read_bytes())
    for manifest in ("", "{}", json.dumps({"tables": {}, "counts": {"refused": 5}})):  # of another program
        (copy / "manifest.json").write_text(manifest)
        assert len(occupancy(copy / "log.parquet", OccupancyQuery(4, to=(3,))).capacity) == 1


def test_requests_that_come_again_are_timed_from_when_they_were_first_sent(tmp_path):
    run, _ = ran(tmp_path, "queue_impatient", horizon_s=900.0, station__retries={"most": 2})
    log, failed = run.table("requests"), run.table("unserved")
    assert set(failed["attempt"]) == {0, 1, 2}
    again = failed[(failed["request"] >= 0) & (failed["attempt"] == 0)]
    assert (again["arrival_s"].to_numpy() < log["arrival_s"].iloc[again["request"]].to_numpy()).all()
    first = log["arrival_s"].copy()
    first.iloc[again["request"]] = again["arrival_s"].to_numpy()
    answer = unserved(run, log, 2.0)
    assert answer.in_time == pytest.approx((log["departure_s"] - first <= 2.0).sum() / answer.requests)
    assert answer.unanswered == (failed["request"] == -1).sum() / 3


def test_servers_that_come_and_go_are_in_the_tables_and_the_law_knows_them(tmp_path):
    few = {"horizon_s": 600.0, "load__arrivals__load": [], "station__servers": 4}
    run, scenario = ran(tmp_path, "queue_autoscaled", **few)
    answer = measure(scenario, run, tmp_path, silent)
    servers, cpu = run.table("servers"), run.table("cpu")
    assert servers["time_s"].iloc[0] == 0.0
    assert (servers["servers"] > 4).any()
    assert abs(answer.errors.service) < 1e-9
    assert abs(answer.errors.queueing) < 1e-9
    assert answer.queueing_time_s > 0.1 * answer.service_time_s
    assert cpu["utilisation"].between(0.0, 1.0).all()
    end_s = run.table("truth_requests")["departure_s"].max()
    edges = np.minimum(np.append(servers["time_s"], end_s), end_s)
    ordered = servers["servers"] + servers["starting"]
    assert answer.cost.server_hours == pytest.approx((ordered * np.diff(edges)).sum() / 3600.0)
    assert json.loads(json.dumps(dict(answer.payload()), default=str))["cost"]["most"] == ordered.max()
    assert "server hours" in dict(numbers(answer))
    assert isinstance(answer.frame(), pd.DataFrame)
    assert "changes" in unsteady(scenario)


def test_limits_that_nobody_meets_change_no_table(tmp_path):
    plain, _ = ran(tmp_path, "queue_mmk", horizon_s=300.0)
    wide, _ = ran(tmp_path, "queue_mmk", horizon_s=300.0, station__capacity=10_000)
    for name in ("requests", "truth_requests", "cpu", "truth_cpu"):
        pd.testing.assert_frame_equal(plain.table(name), wide.table(name), check_exact=False, rtol=1e-12)
