"""From a scenario to its run: which outside things decide the tables, and where files are looked for."""

import json

import numpy as np
import pytest

from scenarios.files.loader import load, settings
from scenarios.occupancy.job_pace import pace
from scenarios.runs.execution import obtain, reopen
from scenarios.runs.rundir import RunError

TINY = "{machines: 20, machines_per_rack: 10}"
FLEET = f"""
name: tiny
horizon_s: 3600
fleet: {TINY}
population: {{jobs: 60, common_jobs: 50, heavyweights: 5, services: [{{name: shop, instances: 3, quota_vcpu: 4,
  core_cpi: 1.0, memory_accesses_per_instruction: 0.01}}]}}
recording: {{truth: false}}
churn: {{restarts_per_instance_day: 20}}
"""
QUEUE = """
kind: queue
horizon_s: 3600
load:
  arrivals: {rate_per_s: 0.5}
  job: {scenario: ../fleets/tiny.yaml, job: shop, instance: 1, instructions: {kind: constant, mean: 1.0e+9}}
"""


def quiet(_what, _share):
    pass


def traced(folder, text="arrival_s,demand_s,type\n2,1.5,page\n1,0.5,mail\n100,1,page\n"):
    (folder / "queues").mkdir(exist_ok=True)
    (folder / "queues" / "log.csv").write_text(text)
    (folder / "queues" / "day.yaml").write_text("{kind: queue, horizon_s: 50, load: {trace: {file: log.csv}}}")
    return obtain(load(str(folder / "queues" / "day.yaml")), folder / "runs", False, quiet)


def test_a_trace_is_found_beside_its_scenario_and_served_in_order_up_to_the_horizon(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    requests = traced(tmp_path).table("requests")
    assert requests["type"].tolist() == ["mail", "page"]
    assert requests["arrival_s"].tolist() == [1.0, 2.0]
    assert requests["departure_s"].tolist() == [1.5, 3.5]


def test_what_a_trace_holds_decides_the_run_and_its_name_does_not(tmp_path):
    first = traced(tmp_path)
    assert traced(tmp_path).path == first.path
    assert traced(tmp_path, "arrival_s,demand_s\n1,0.75\n").path != first.path
    (tmp_path / "queues" / "log.csv").rename(tmp_path / "other.csv")
    elsewhere = traced(tmp_path, "arrival_s,demand_s\n7,7\n")
    moved = load(str(tmp_path / "queues" / "day.yaml"), settings([f"load.trace.file={tmp_path}/other.csv"]))
    assert obtain(moved, tmp_path / "runs", False, quiet).path != elsewhere.path


def test_a_trace_that_a_base_names_is_found_beside_the_base(tmp_path):
    traced(tmp_path)
    (tmp_path / "late.yaml").write_text("{extends: queues/day.yaml, horizon_s: 200}")
    assert (
        obtain(load(str(tmp_path / "late.yaml")), tmp_path / "runs", False, quiet).manifest["counts"]["requests"] == 3
    )


@pytest.fixture(scope="module")
def with_job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("with_job")
    for name, text in (("fleets/tiny", FLEET), ("queues/day", QUEUE)):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / f"{name}.yaml").write_text(text)
    return folder


def test_demands_from_a_job_are_its_instructions_at_the_pace_of_one_instance_then(with_job):
    found = obtain(load(str(with_job / "queues" / "day.yaml")), with_job / "runs", False, quiet)
    (fleet,) = (path for path in (with_job / "runs").iterdir() if path.name.startswith("tiny-"))
    _, recorded = reopen(fleet)
    start_s, seconds = pace(recorded, "shop", 1)
    requests = found.table("truth_requests")
    epoch = np.maximum(np.searchsorted(start_s, requests["arrival_s"], "right") - 1, 0)
    np.testing.assert_allclose(requests["demand_s"], 1e9 * seconds[epoch])
    assert requests["demand_s"].nunique() > 5


def test_the_pace_follows_an_instance_from_machine_to_machine(with_job):
    obtain(load(str(with_job / "queues" / "day.yaml")), with_job / "runs", False, quiet)
    (fleet,) = (path for path in (with_job / "runs").iterdir() if path.name.startswith("tiny-"))
    _, recorded = reopen(fleet)
    counted, stays = recorded.table("instance_epochs"), recorded.table("instances")
    shop = recorded.table("jobs").set_index("name")["job"]["shop"]
    mine = stays[stays["job"] == shop].sort_values(["start_s", "instance"])
    assert (mine.groupby("instance")["machine"].nunique() > 1).any()
    for number, instance in enumerate(mine["instance"].unique()):
        start_s, seconds = pace(recorded, "shop", number)
        own = mine[mine["instance"] == instance]["residence"]
        rows = counted[counted["residence"].isin(own)]
        whole = rows["cpu_s"].sum() / rows["instructions"].sum()
        assert seconds.min() <= whole <= seconds.max()
        assert (np.diff(start_s) > 0).all()
        assert len(start_s) == rows["epoch"].nunique()


def test_another_fleet_is_another_run_and_another_note_in_it_is_not(with_job):
    first = obtain(load(str(with_job / "queues" / "day.yaml")), with_job / "runs", False, quiet).path
    fleet = with_job / "fleets" / "tiny.yaml"
    fleet.write_text(FLEET + "description: the same fleet\n")
    assert obtain(load(str(with_job / "queues" / "day.yaml")), with_job / "runs", False, quiet).path == first
    fleet.write_text(FLEET + "seed: 8\n")
    assert obtain(load(str(with_job / "queues" / "day.yaml")), with_job / "runs", False, quiet).path != first
    fleet.write_text(FLEET)


def test_an_instance_that_the_job_does_not_have_is_told(with_job):
    asked = load(
        str(with_job / "queues" / "day.yaml"), settings(["load.job.job=heavyweight-01", "load.job.instance=999"])
    )
    with pytest.raises(RunError, match=r"job heavyweight-01 has \d+ instances, counted from 0, so there is no 999"):
        obtain(asked, with_job / "runs", False, quiet)


def test_a_manifest_of_an_unknown_kind_is_told(tmp_path):
    found = traced(tmp_path)
    manifest = json.loads((found.path / "manifest.json").read_text())
    (found.path / "manifest.json").write_text(json.dumps(manifest | {"kind": "weather"}))
    with pytest.raises(RunError, match="the manifest holds no scenario: unknown kind weather"):
        reopen(found.path)
