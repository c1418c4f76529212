"""Logs of services that a fleet's run served: which stay is taken, as what, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from models.platforms import PLATFORMS
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.runs import stays
from scenarios.runs.stays import log_on, stay_of

OLD = "haswell_2698v3"


@pytest.fixture
def run(tmp_path):
    """Two services: shop on two stays of two servers and one of another platform, mail on a stay of four."""
    rng, folder = np.random.default_rng(1), tmp_path / "day-1"
    folder.mkdir()
    platform, quota, job = [OLD, OLD, "rome_7742", OLD], [2.0, 2.0, 2.0, 4.0], [0, 0, 0, 1]
    instances = pd.DataFrame({"residence": range(4), "job": job, "machine": range(4), "platform": platform})
    requests = []
    for residence, count in enumerate((300, 500, 400, 200)):
        arrival_s = np.sort(rng.uniform(0, 86400, count))
        departure_s = arrival_s + rng.exponential(20.0, count)
        rows = {"residence": residence, "request": range(count), "type": rng.choice(["page", "query"], count)}
        requests.append(pd.DataFrame(rows | {"arrival_s": arrival_s, "departure_s": departure_s}))
    epochs = pd.DataFrame([(r, e, 60.0, 6e10) for r in range(4) for e in range(288)])
    tables = {
        "jobs": pd.DataFrame({"job": [0, 1], "name": ["shop", "mail"]}),
        "instances": instances.assign(quota_vcpu=quota),
        "stay_requests": pd.concat(requests, ignore_index=True),
        "instance_epochs": epochs.set_axis(["residence", "epoch", "cpu_s", "instructions"], axis=1),
        "epochs": pd.DataFrame({"epoch": range(288), "start_s": 300.0 * np.arange(288)}),
    }
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet")
    (folder / "manifest.json").write_text(json.dumps({"kind": "profile", "tables": {}, "resolved": {}}))
    return folder


def invoke(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def test_the_stay_with_most_requests_is_taken_unless_another_is_named(run):
    busiest, named, other = stay_of(run), stay_of(run, residence=0), stay_of(run, "mail")
    assert [(stay.residence, stay.servers, len(stay.log.table)) for stay in (busiest, named, other)] == [
        (1, 2, 500),
        (0, 2, 300),
        (3, 4, 200),
    ]
    assert busiest.log.notes == (f"stay 1 of shop on machine 1, {OLD}: the one with the most requests of 4",)


def test_a_stay_that_turned_requests_away_tells_nothing_of_other_servers(run):
    away = pd.DataFrame({"residence": [1, 1, 0], "type": "page", "arrival_s": [5.0, 6.0, 7.0]})
    away.to_parquet(run / "stay_unserved.parquet")
    result = invoke("occupancy", run)
    assert "2 more requests found it full: figures are of those that were served" in " ".join(result.output.split())
    for option in (("--to", "3"), ("--slo", "p99=60s"), ("--speed", "2")):
        result = invoke("occupancy", run, *option)
        assert result.exit_code == 2
        assert result.output.startswith(f"{option[0]}: cannot be answered where requests were refused (2 here)")
    assert invoke("occupancy", run, "--service", "mail", "--to", "3").exit_code == 0


def test_the_command_says_of_a_stay_what_it_says_of_the_same_log_in_a_file(run, tmp_path):
    made = json.loads(invoke("occupancy", run, "--stay", 0, "--json").stdout)
    requests = pd.read_parquet(run / "stay_requests.parquet")
    file = tmp_path / "log.csv"
    requests.loc[requests["residence"] == 0, ["request", "type", "arrival_s", "departure_s"]].to_csv(file, index=False)
    alike = json.loads(invoke("occupancy", file, "--servers", 2, "--json").stdout)
    same = ("requests", "servers", "service_time_s", "queueing_time_s", "utilisation", "peak")
    assert [made[name] for name in same] == pytest.approx([alike[name] for name in same], rel=1e-9)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--service", "web"], '--service: should be one of mail, shop, got "web"'),
        (["--service", "mail", "--stay", "0"], '--stay: should be a stay with requests, such as 3, got "0"'),
        (["--servers", "3"], '--servers: should be 2, the vCPUs of stay 1, got "3"'),
    ],
)
def test_what_the_run_does_not_have_is_refused(run, options, said):
    ended = invoke("occupancy", run, *options)
    assert (ended.exit_code, ended.stderr) == (2, f"{said}\n")


def test_a_run_without_requests_and_a_file_without_servers_are_told(run, tmp_path):
    (run / "stay_requests.parquet").unlink()
    ended = invoke("occupancy", run, "--servers", 2)
    assert ended.exit_code == 2
    assert "is no run with requests: neither requests.parquet of a queue's run nor stay_requests" in ended.stderr
    assert (
        "is a run of kind profile, which has no table service_counts"
        in invoke("predict", run, "--from", OLD, "--to", OLD).stderr
    )
    (tmp_path / "log.csv").write_text("arrival_s,departure_s\n0,2\n")
    ended = invoke("occupancy", tmp_path / "log.csv")
    assert ended.stderr == "--servers: is needed: how many servers the log was made with\n"
    ended = invoke("occupancy", tmp_path / "log.csv", "--servers", 1, "--stay", 0)
    assert ended.stderr == '--stay: is about the folder of a fleet\'s run that served requests, got "0"\n'


def test_a_platforms_log_is_of_as_many_stays_as_one_machine_holds(run, monkeypatch):
    taken = []
    monkeypatch.setattr(stays, "logged", lambda _run, residences, *_: taken.append(list(residences)) or "log")
    assert log_on(run, "shop", PLATFORMS[OLD])[0] == "log"
    instances = pd.read_parquet(run / "instances.parquet")
    instances.assign(quota_vcpu=PLATFORMS[OLD].vcpus * 0.6).to_parquet(run / "instances.parquet")
    _, note = log_on(run, "shop", PLATFORMS[OLD])
    assert taken == [[0, 1], [0]]
    assert note.startswith("log of 1 of 2 stays of shop there")


def test_a_log_is_of_one_service_where_it_ran_and_was_profiled(run):
    with pytest.raises(FaultsError, match=r"^--service: is needed, since the run served mail, shop$"):
        log_on(run, None, PLATFORMS[OLD])
    with pytest.raises(FaultsError, match=f"--from: should be a platform that the service had a stay on: {OLD}"):
        log_on(run, "mail", PLATFORMS["rome_7742"])
    with pytest.raises(FaultsError, match=r"samples: no profile says how often shop missed its caches on rome_7742"):
        log_on(run, "shop", PLATFORMS["rome_7742"])
    ended = invoke("select", run, "--from", OLD, "--bound", "2s")
    assert (ended.exit_code, "stays in a fleet have servers of their own" in ended.stderr) == (2, True)
