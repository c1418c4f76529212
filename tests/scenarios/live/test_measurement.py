"""A real server measured: tables and errors of what was recorded, the shipped run, and the command from end to end."""

import gzip
import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from models.queues.serve import serve
from scenarios.commands.app import app
from scenarios.live import measurement as live
from scenarios.live import processes as live_run
from scenarios.live import replay as live_replay
from scenarios.live.gate import Before
from scenarios.live.measurement import FOLDER, errors, stored, summary, tables
from scenarios.live.processes import Observed
from scenarios.views.terminal import dumps

REQUESTS = pd.DataFrame(
    {"session": [0, 1, 0], "arrival_s": [0.0, 1.0, 6.0], "departure_s": [3.0, 4.0, 8.0], "demand_s": [2.0, 2.0, 2.0]}
)
CPU = pd.DataFrame(
    {
        "start_s": [0.0, 5.0],
        "end_s": [5.0, 10.0],
        "utilisation": [0.7, 0.4],
        "cpu_s": [3.5, 2.0],
        "run_queue_wait_s": [2.5, 0.0],
        "others_s": [0.0, 0.0],
        "stolen_s": [0.0, 0.0],
    }
)
FILES = {"cpu.csv", "requests.csv.gz", "summary.json"}


def test_the_law_and_the_kernel_stand_side_by_side():
    answer = summary(REQUESTS, CPU, servers=1).payload()
    assert (answer["requests"], answer["failed"], answer["sessions"], answer["peak"]) == (3, 0, 2, 2)
    assert (answer["service_time_s"], answer["queueing_time_s"], answer["response_time_s"]) == (6.0, 2.0, 8.0)
    assert answer["utilisation"] == 0.6
    assert answer["kernel"] == {"cpu_s": 5.5, "run_queue_wait_s": 2.5, "utilisation": 0.55}
    assert [row["utilisation"] for row in answer["intervals"]] == [0.8, 0.4]
    assert [row["error"] for row in answer["intervals"]] == pytest.approx([0.1, 0.0])
    assert [row["queueing_time_s"] for row in answer["intervals"]] == [2.0, 0.0]
    assert answer["errors"]["queueing"] == pytest.approx(-0.2)
    assert answer["errors"]["raw"]["max"] == pytest.approx(0.1)
    assert answer["errors"]["normalised"]["max"] == pytest.approx(0.1 / 0.7)


def test_with_two_servers_utilisation_is_of_both():
    assert summary(REQUESTS, CPU, servers=2).law.utilisation == 0.4


def test_requests_without_an_answer_are_counted_and_left_out():
    lost = pd.concat([REQUESTS, pd.DataFrame({"session": [2], "arrival_s": [2.0], "departure_s": [np.nan]})])
    answer = summary(lost, CPU, servers=1).payload()
    assert (answer["requests"], answer["failed"], answer["service_time_s"]) == (4, 1, 6.0)


def test_where_nobody_waited_the_error_of_queueing_is_not_a_number():
    assert np.isnan(summary(REQUESTS, CPU.assign(run_queue_wait_s=0.0), servers=1).queueing_error)


@pytest.mark.parametrize("empty", ["requests", "answers", "intervals"])
def test_nothing_to_compare_is_refused(empty):
    requests = {"requests": REQUESTS[:0], "answers": REQUESTS.assign(departure_s=np.nan)}.get(empty, REQUESTS)
    with pytest.raises(ValueError, match=r"of \d requests \d were answered in \d intervals; none will do"):
        summary(requests, CPU[:0] if empty == "intervals" else CPU, servers=1)


def spread(error, kernel, length_s=1.0):
    rows = pd.DataFrame({"error": error, "kernel_utilisation": kernel, "start_s": 0.0})
    return errors(rows.assign(end_s=length_s))


def test_errors_are_without_sign_and_their_quantiles_as_everywhere():
    shares = spread(np.linspace(-0.1, 0.0, 101), 0.5)
    assert shares["raw"] == pytest.approx({"median": 0.05, "p97": 0.097, "max": 0.1})
    assert shares["normalised"] == pytest.approx({"median": 0.1, "p97": 0.194, "max": 0.2})


def test_an_idle_interval_has_no_normalised_error():
    assert spread([0.0002, 0.05], [0.0002, 0.5])["normalised"]["max"] == pytest.approx(0.1)


def test_a_short_last_interval_is_left_out_of_the_errors():
    assert spread([0.01, 0.9], [0.5, 0.05], [1.0, 0.4])["raw"]["max"] == 0.01


def test_tables_are_differences_of_the_samples_to_the_microsecond():
    samples = {
        "time_s": [0.0, 2.0, 4.00000049],
        "run_s": [1.0, 2.5, 3.5],
        "wait_s": [0.0, 0.25, 0.25],
        "busy_s": [10.0, 12.0, 12.9],
        "stolen_s": [0.0, 0.0, 0.1],
    }
    seen = {"session": [0], "arrival_s": [0.12345678], "departure_s": [1.0], "demand_s": [0.5]}
    requests, cpu = tables(Observed(pd.DataFrame(seen), pd.DataFrame(samples), pd.DataFrame(), 1.0), servers=1)
    assert requests["arrival_s"].tolist() == [0.123457]
    assert cpu["end_s"].tolist() == [2.0, 4.0]
    assert cpu["utilisation"].tolist() == [0.75, 0.5]
    assert cpu["run_queue_wait_s"].tolist() == [0.25, 0.0]
    assert cpu["others_s"].tolist() == [0.5, 0.0]
    assert cpu["stolen_s"].tolist() == [0.0, 0.1]


def leaves(value, path=""):
    """Every number, text and truth value of a nested value, by its path."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return {place: leaf for key, entry in pairs for place, leaf in leaves(entry, f"{path}/{key}").items()}
    return {path: value}


def test_its_summary_follows_from_its_tables():
    shipped = json.loads((FOLDER / "summary.json").read_text())
    again = json.loads(dumps(summary(*stored(), shipped["servers"]).payload()))
    ours, theirs = leaves(again), leaves({key: shipped[key] for key in again})
    numbers = [path for path, value in theirs.items() if isinstance(value, float)]
    assert [ours.pop(path) for path in numbers] == pytest.approx(
        [theirs.pop(path) for path in numbers], rel=1e-9, abs=1e-9
    )
    assert ours == theirs


def test_it_is_half_an_hour_of_every_utilisation_and_every_request_was_answered():
    shipped = json.loads((FOLDER / "summary.json").read_text())
    utilisation = [row["kernel_utilisation"] for row in shipped["intervals"]]
    assert shipped["length_s"] >= 1800
    assert (min(utilisation) < 0.05, max(utilisation) > 0.97) == (True, True)
    assert shipped["failed"] == 0


def test_it_says_what_it_was_measured_on_and_names_no_machine():
    shipped = json.loads((FOLDER / "summary.json").read_text())
    assert shipped["machine"]["cpus"] >= 2
    assert shipped["machine"]["scheduler"] in {"rr", "nice"}
    assert {"kernel", "architecture", "python"} <= set(shipped["machine"])
    assert "/" not in (FOLDER / "summary.json").read_text()
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 300_000


def simulated(load, _length_s, where, interval_s, _tell):
    """What would be recorded of open arrivals at the sessions' starts on servers that share themselves evenly."""
    start_s = np.sort([session.start_s for session in load])
    demand_s = np.array([session.demand_s[0] for session in load])
    cpus = len(where.server_cpus)
    left_s = serve("ps", start_s, demand_s, cpus).departure_s
    seen = curve(start_s, left_s, 0.0, float(np.max(left_s)))
    time_s = np.append(np.arange(0.0, seen.end_s, interval_s), seen.end_s)
    totals = [law(seen, cpus, 0.0, end) for end in time_s]
    samples = pd.DataFrame({"time_s": time_s, "run_s": [each.service_time_s for each in totals], "stolen_s": 0.0})
    samples = samples.assign(wait_s=[each.queueing_time_s for each in totals], busy_s=samples["run_s"] + 0.01 * time_s)
    requests = pd.DataFrame({"session": range(len(load)), "arrival_s": start_s, "departure_s": left_s})
    wait_s = left_s - start_s - demand_s
    workers = pd.DataFrame({"taken_s": start_s, "ended_s": left_s, "run_s": demand_s, "wait_s": wait_s})
    return Observed(requests.assign(demand_s=demand_s), samples, workers, 0.999)


@pytest.fixture
def quiet(monkeypatch):
    """A quiet machine with two CPUs, of which both server and load are simulated."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(live_run, "_privileged", lambda: True)
    monkeypatch.setattr(live_run, "supported", lambda: True)
    for module in (live, live_replay):
        monkeypatch.setattr(module, "before", lambda _: Before(0.1, 0.0, 0.0, 0.95))
        monkeypatch.setattr(module, "observe", simulated)
    return monkeypatch


def wsc(*words):
    return CliRunner().invoke(app, ["live", *words], env={"COLUMNS": "120"})


def said(*words):
    result = wsc("--json", *words)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.usefixtures("quiet")
def test_on_a_perfect_server_the_law_is_exact_and_the_machine_quiet(tmp_path):
    payload = said("--minutes", "20", "--out", str(tmp_path))
    assert (payload["kind"], payload["quiet"], payload["reasons"]) == ("live", True, [])
    assert payload["errors"]["raw"]["max"] < 1e-5
    assert abs(payload["errors"]["queueing"]) < 1e-5
    assert payload["machine"]["scheduler"] == "nice"
    assert payload["machine"]["server_cpus"] == [1]
    assert payload["settings"]["interval_s"] == 20.0


@pytest.mark.usefixtures("quiet")
def test_a_load_of_one_rate_is_served_and_its_settings_are_said(tmp_path):
    payload = said("--minutes", "1", "--utilisation", "60%", "--demand", "4ms", "--pool", "1", "--out", str(tmp_path))
    assert payload["utilisation"] == pytest.approx(0.6, rel=0.05)
    settings = {key: payload["settings"][key] for key in ("utilisation", "think_s", "requests_per_session")}
    assert settings == {"utilisation": 0.6, "think_s": None, "requests_per_session": 1}
    assert payload["settings"]["demand_s"] == pytest.approx([0.004 / 3, 0.02 / 3])
    usual = said("--minutes", "10", "--out", str(tmp_path))["settings"]
    assert (usual["utilisation"], usual["demand_s"], usual["think_s"]) == (None, [0.1, 0.5], [0.6, 1.2])


def test_requests_that_the_client_had_no_time_to_send_are_told(quiet, tmp_path):
    quiet.setattr(live, "observe", lambda load, *asked: simulated(load[: len(load) // 2], *asked))
    reasons = said("--minutes", "1", "--utilisation", "60%", "--out", str(tmp_path))["reasons"]
    (sent, wanted), *_ = re.findall(r"the client sent (\d+) of (\d+) requests: it cannot", " ".join(reasons))
    assert int(sent) == int(wanted) // 2 > 0


@pytest.mark.usefixtures("quiet")
def test_the_files_hold_what_is_said_and_nothing_is_half_written(tmp_path):
    (tmp_path / "other.txt").write_text("kept")
    payload = said("--minutes", "10", "--out", str(tmp_path))
    assert {file.name for file in tmp_path.iterdir()} == FILES | {"other.txt"}
    assert json.loads((tmp_path / "summary.json").read_text()) == payload
    log = pd.read_csv(tmp_path / "requests.csv.gz")
    assert list(log) == ["session", "arrival_s", "departure_s", "demand_s"]
    assert len(log) == payload["requests"]
    assert len(pd.read_csv(tmp_path / "cpu.csv")) == len(payload["intervals"])


@pytest.mark.usefixtures("quiet")
def test_the_same_observations_make_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        said("--minutes", "10", "--out", str(tmp_path / name))
    made = [{file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert made[0] == made[1]


@pytest.mark.usefixtures("quiet")
def test_text_for_people_says_scheduler_law_kernel_and_errors(tmp_path):
    shown = wsc("--minutes", "10", "--out", str(tmp_path)).stdout
    assert "server on CPU 1, client on CPU 0 of" in shown
    assert "under nice" in shown
    assert "utilisation by the law" in shown
    assert "97th percentile" in shown
    assert "not quiet" not in shown


def test_a_busy_machine_is_said_with_its_evidence_and_the_exit_is_still_0(quiet, tmp_path):
    quiet.setattr(live, "observe", lambda *asked: simulated(*asked).__class__(**spoilt(simulated(*asked))))
    result = wsc("--minutes", "10", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert "not quiet" in result.stdout
    assert "a spinning process got 50.0% of a CPU" in result.stdout
    assert said("--minutes", "10", "--out", str(tmp_path))["quiet"] is False


def spoilt(seen):
    return {"requests": seen.requests, "samples": seen.samples, "workers": seen.workers, "spin_share": 0.5}


def test_an_interrupted_run_leaves_the_files_of_the_one_before(quiet, tmp_path):
    before = said("--minutes", "10", "--out", str(tmp_path))

    def interrupted(*_):
        raise KeyboardInterrupt

    quiet.setattr(live, "observe", interrupted)
    assert wsc("--minutes", "10", "--seed", "2", "--out", str(tmp_path)).exit_code == 130
    assert json.loads((tmp_path / "summary.json").read_text()) == before


def test_a_log_is_gzipped_without_a_date(tmp_path):
    live.write_log(tmp_path / "log.csv.gz", pd.DataFrame({"arrival_s": [0.5], "departure_s": [float("nan")]}))
    content = (tmp_path / "log.csv.gz").read_bytes()
    assert content[4:8] == bytes(4)
    assert gzip.decompress(content) == b"arrival_s,departure_s\n0.5,\n"


def test_a_system_without_the_kernels_accounts_is_refused_before_anything_is_made(quiet, tmp_path):
    quiet.setattr(live_run, "supported", lambda: False)
    for more in ((), ("--replay",)):
        result = wsc("--out", str(tmp_path / "out"), *more)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("wsc live needs Linux with /proc/PID/schedstat")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--servers", "3"), "--servers must be 1 to 2, the CPUs that this process may use, got 3"),
        (("--servers", "0"), '--servers: should be a whole number of at least 1, got "0"'),
        (("--minutes", "nan"), '--minutes: should be a number greater than 0, got "nan"'),
        (("--pool", "-1"), '--pool: should be a whole number of at least 1, got "-1"'),
        (("--minutes", "0.001"), "with seed 1 nothing is sent in 0.06 s; more --minutes will do"),
        (("--demand", "1h"), '--demand: should be at most 36 s, got "3600 s"'),
        (("--utilisation", "3"), '--utilisation: should be a share between 0 and 1, such as 3% or 0.03, got "3"'),
        (("--replay", "--utilisation", "60%"), '--utilisation: cannot be chosen with --replay, got "0.6"'),
        (("--replay", "--demand", "4ms"), '--demand: cannot be chosen with --replay, got "0.004"'),
        (("--replay", "--pool", "2"), '--pool: cannot be chosen with --replay, got "2"'),
        (("--replay", "--minutes", "0.0001"), "with seed 1 nothing arrives in 0.006 s; more --minutes will do"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(tmp_path, words, fault):
    result = wsc(*words, "--out", str(tmp_path))
    assert (result.exit_code, result.stderr) == (2, f"{fault}\n")


@pytest.mark.usefixtures("quiet")
def test_a_pool_is_told_to_lack_the_wait_to_be_accepted(tmp_path):
    shown = wsc("--minutes", "10", "--pool", "4", "--out", str(tmp_path)).stdout
    assert "the kernel's figure of queueing lacks that" in shown


@pytest.mark.usefixtures("quiet")
def test_a_replay_sets_bounds_and_replays_beside_what_changed(tmp_path):
    payload = said("--replay", "--minutes", "2", "--out", str(tmp_path))
    assert {file.name for file in tmp_path.iterdir()} == {"requests_1.csv.gz", "requests_2.csv.gz", "summary.json"}
    assert (payload["kind"], payload["quiet"]) == ("live_replay", True)
    more, fewer = payload["changes"]
    assert (more["servers"], more["to"], fewer["servers"], fewer["to"]) == (1, 2, 2, 1)
    assert more["change_s"] == pytest.approx(-fewer["change_s"])
    assert more["change_s"] == pytest.approx(more["kernel_change_s"], abs=1e-3)
    bounds = [more["bounds"][name] for name in ("b0", "b1", "b2", "b3")]
    assert 0 > bounds[0] >= bounds[1] >= bounds[2] >= bounds[3] >= more["change_s"] - 1e-3
    assert 0 < fewer["bounds"]["b0"] <= fewer["change_s"]
    assert fewer["bounds"]["b1"] is None


@pytest.mark.usefixtures("quiet")
def test_under_the_policy_that_served_the_replay_is_what_happened(tmp_path):
    for change in said("--replay", "--minutes", "2", "--out", str(tmp_path))["changes"]:
        replayed = change["replays"]["ps"]
        assert replayed["change_s"] == pytest.approx(change["change_s"], abs=0.05)
        assert replayed["low_s"] <= replayed["change_s"] <= replayed["high_s"]


@pytest.mark.usefixtures("quiet")
def test_the_table_of_a_replay_has_a_row_for_every_bound(tmp_path):
    shown = wsc("--replay", "--minutes", "2", "--out", str(tmp_path)).stdout
    names = (
        "by the law",
        "by the kernel",
        "at least, by the paper",
        "B1",
        "B2",
        "B3",
        "replayed as ps",
        "replayed as rr",
    )
    assert [name for name in names if f"\n{name} " in shown] == list(names)
    assert "1 → 2" in shown


def test_a_replay_with_lost_requests_is_refused():
    log = pd.DataFrame({"arrival_s": [0.0, 1.0], "departure_s": [1.0, np.nan]})
    with pytest.raises(ValueError, match="with 2 servers 1 of 2 requests were not answered"):
        live_replay.served_traces({1: log[:1], 2: log}, {1: 0.0, 2: 0.0})
