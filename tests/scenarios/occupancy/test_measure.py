"""`wsc run` of a queue: what the laws say of its log, beside what its servers did."""

import json
import math
import shutil
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from models.errors import InputError
from scenarios.files.faults import FaultsError
from scenarios.files.loader import load, load_each, settings
from scenarios.occupancy import measure as run_queue
from scenarios.runs import execution as runs
from scenarios.runs.execution import obtain, reopen
from scenarios.runs.rundir import open_run
from scenarios.views.terminal import dumps, show

SHORT = "horizon_s=200"


def quiet(_what, _share):
    pass


def scenario(*sets, name="queue_small"):
    return load(name, settings([SHORT, *sets]))


def run(*asked):
    return runs.run(*asked).payload()


def text_of(answer):
    console = Console(width=100, file=StringIO())
    show(answer.section(), console)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(autouse=True)
def draw_no_more(monkeypatch):
    """Let only `answer`, which is made before this, draw figures."""
    monkeypatch.setattr(run_queue, "save", lambda _figure, _stem: [])


@pytest.fixture(scope="module")
def answer(out):
    return runs.run(scenario(), out, False, quiet)


@pytest.fixture(scope="module")
def payload(answer):
    return answer.payload()


def test_the_payload_has_every_key_of_the_contract(payload):
    assert {"kind", "run", "scenario", "seed", "counts", "truth", "occupancy"} <= payload.keys()
    assert payload["kind"] == "queue"
    assert {"requests", "sessions"} <= payload["counts"].keys()
    assert payload["truth"].keys() == {"utilisation", "service_time_s", "queueing_time_s"}
    law = payload["occupancy"]
    totals = {"service_time_s", "queueing_time_s", "response_time_s", "utilisation", "peak"}
    assert {"kind", "requests", "unfinished", "servers", "identified", "intervals", "capacity", *totals} <= law.keys()
    columns = {"servers", "queueing_s_low", "queueing_s_high", "change_s_paper_bound"}
    assert {*columns, "replay_s", "replay_low", "replay_high"} <= law["capacity"][0].keys()
    assert json.loads(dumps(payload))["occupancy"]["identified"] is None


def test_the_law_tells_service_and_queueing_time_to_the_last_digits_when_its_assumptions_hold(payload):
    law, true = payload["occupancy"], payload["truth"]
    for name in ("service_time_s", "queueing_time_s", "utilisation"):
        assert law[name] == pytest.approx(true[name], rel=1e-9)
    assert payload["counter"]["raw_error_p97"] < 0.005


def test_what_other_numbers_of_servers_really_did_lies_within_the_bounds_and_is_what_the_replay_says(payload):
    said = {row["servers"]: row for row in payload["occupancy"]["capacity"]}
    assert [row["servers"] for row in payload["replays"]] == [1, 4]
    for row in payload["replays"]:
        bounds = said[row["servers"]]
        assert bounds["queueing_s_low"] <= row["queueing_time_s"] <= bounds["queueing_s_high"]
        assert bounds["replay_s"] == pytest.approx(row["queueing_time_s"], rel=1e-6)
        assert row["change_s"] == row["queueing_time_s"] - payload["occupancy"]["queueing_time_s"]


def test_the_laws_say_what_a_plain_count_of_the_log_says(payload):
    log = open_run(payload["run"]).table("requests")
    times = np.unique(np.concatenate([log["arrival_s"], log["departure_s"]]))
    present = np.array([((log["arrival_s"] <= t) & (log["departure_s"] > t)).sum() for t in times[:-1]])
    assert payload["occupancy"]["service_time_s"] == pytest.approx(np.minimum(present, 2) @ np.diff(times))
    assert payload["occupancy"]["peak"] == present.max()


def test_a_copy_without_the_truth_gives_the_same_estimates_byte_for_byte(payload, tmp_path):
    copy = shutil.copytree(payload["run"], tmp_path / "copy", ignore=shutil.ignore_patterns("truth_*"))
    measured = runs.measure(*reopen(copy), tmp_path, quiet)
    again = measured.payload()
    for part in ("occupancy", "counter", "replays"):
        assert dumps(again[part]) == dumps(payload[part])
    assert math.isfinite(payload["truth"]["service_time_s"])
    assert all(math.isnan(value) for value in (*again["truth"].values(), *again["errors"].values()))
    assert "the Occupancy Law" in text_of(measured)


def test_the_same_scenario_and_seed_give_the_same_tables(payload, out, tmp_path):
    again = obtain(scenario(), tmp_path, False, quiet)
    digests = {name: said["digest"] for name, said in open_run(payload["run"]).listed.items()}
    assert {name: said["digest"] for name, said in again.listed.items()} == digests
    assert again.path.name == open_run(payload["run"]).path.name
    assert set(digests) == {"requests", "replays", "cpu", "truth_requests", "truth_cpu"}
    other = obtain(scenario("seed=5"), out, False, quiet)
    assert other.listed["requests"]["digest"] != digests["requests"]


def test_other_analyses_use_the_same_run(payload, out):
    asked = scenario("analyses.occupancy={interval_s: 20, to: [8], policy: null}")
    manifest = open_run(payload["run"]).path / "manifest.json"
    first = manifest.stat().st_mtime_ns
    made = run(asked, out, False, quiet)
    assert made["run"] == payload["run"]
    assert manifest.stat().st_mtime_ns == first
    assert len(made["occupancy"]["intervals"]) > len(payload["occupancy"]["intervals"])
    assert [row["servers"] for row in made["occupancy"]["capacity"]] == [8]
    assert math.isnan(made["occupancy"]["capacity"][0]["replay_s"])


def test_blocking_counts_as_service_while_servers_are_free(out):
    made = run(
        scenario(
            "station={servers: 64, policy: fcfs}",
            "replays=[]",
            "contention.blocking_s={kind: constant, mean: 0.5}",
        ),
        out,
        False,
        quiet,
    )
    blocked_s = 0.5 * made["counts"]["requests"]
    law, true = made["occupancy"], made["truth"]
    assert law["service_time_s"] - true["service_time_s"] == pytest.approx(blocked_s)
    assert made["errors"]["service"] == pytest.approx(blocked_s / true["service_time_s"])
    assert any("the laws do not hold here" in note for note in law["notes"])


def test_a_log_written_behind_the_accept_queue_hides_queueing(out):
    sets = ("station.policy=fcfs", "replays=[]", "observation={accept_at_application: true, workers: 2}")
    made = run(scenario(*sets, "load.arrivals.rate_per_s=3"), out, False, quiet)
    assert made["occupancy"]["queueing_time_s"] == pytest.approx(0, abs=1e-6)
    assert made["truth"]["queueing_time_s"] > 10
    assert made["errors"]["service"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("policy", ["random", "priority", "sjf"])
def test_where_a_policy_cannot_be_replayed_the_bounds_stand_alone(out, policy):
    made = run(scenario(f"station.policy={policy}"), out, False, quiet)["occupancy"]
    assert all(math.isfinite(row["queueing_s_low"]) for row in made["capacity"])
    replayed = [math.isfinite(row["replay_s"]) for row in made["capacity"]]
    assert any(f"no replay under {policy}" in note for note in made["notes"]) != any(replayed)


@pytest.mark.parametrize("policy", ["rr", "sjf"])
def test_bounds_that_are_no_theorem_have_a_note_whether_the_policy_is_replayed_or_not(out, policy):
    notes = run(scenario(f"station.policy={policy}"), out, False, quiet)["occupancy"]["notes"]
    assert sum(note.startswith(f"under {policy} the bounds") for note in notes) == 1
    assert not any(note.startswith("no policy known") for note in notes)


def test_priorities_of_the_types_are_replayed(out):
    types = (
        "[{name: a, priority: 1, demand_s: {kind: constant, mean: 1.0}},"
        " {name: b, priority: 0, demand_s: {kind: constant, mean: 0.7}}]"
    )
    made = run(scenario("station.policy=priority", f"load.types={types}"), out, False, quiet)
    assert not any("no replay" in note for note in made["occupancy"]["notes"])
    said = {row["servers"]: row["replay_s"] for row in made["occupancy"]["capacity"]}
    for row in made["replays"]:
        assert said[row["servers"]] == pytest.approx(row["queueing_time_s"], rel=1e-6)


def test_servers_of_several_speeds_are_not_replayed(out):
    made = run(scenario("station.speeds=[1, 0.5]", "replays=[]"), out, False, quiet)
    assert made["occupancy"]["service_time_s"] == pytest.approx(made["truth"]["service_time_s"], rel=1e-9)
    assert "no replay: the servers differ in speed" in made["occupancy"]["notes"]


def test_sessions_and_clients_are_told_not_to_come_at_other_times(out):
    clients = "load={clients: {count: 3}, types: [{name: page, demand_s: {kind: constant, mean: 0.5}}]}"
    made = run(scenario(clients, "replays=[]"), out, False, quiet)
    assert made["counts"]["clients"] == 3
    assert any(note.startswith("clients wait for answers") for note in made["occupancy"]["notes"])


def test_what_is_printed_fits_a_terminal_and_says_law_truth_and_bounds(answer):
    text = text_of(answer)
    assert "the Occupancy Law" in text
    assert "happened" in text
    assert "…" not in text
    assert all(len(line) <= 100 for line in text.splitlines() if "figures:" not in line)


def test_figures_go_into_the_folder_of_the_run(payload):
    names = {file.rpartition("/")[2] for file in payload["figures"]}
    assert names == {f"{name}.{kind}" for name in ("occupancy", "utilisation") for kind in ("png", "pdf", "svg")}
    assert names <= {file.name for file in open_run(payload["run"]).path.iterdir()}


@pytest.mark.filterwarnings("ignore:All-NaN slice")
def test_a_run_of_one_instant_has_no_picture_of_its_occupancy(tmp_path):
    (tmp_path / "log.csv").write_text("arrival_s,demand_s\n1,0\n")
    (tmp_path / "instant.yaml").write_text("{kind: queue, horizon_s: 10, load: {trace: {file: log.csv}}}")
    instant = runs.run(load(str(tmp_path / "instant.yaml")), tmp_path, False, quiet)
    assert instant.occupancy.intervals.empty
    assert "unknown" in text_of(instant)


def test_the_table_sets_the_law_beside_the_truth(answer):
    table = answer.frame().set_index("quantity")
    assert table.loc["service_time_s", "law"] == pytest.approx(table.loc["service_time_s", "truth"], rel=1e-9)


def test_a_queue_cannot_be_validated(out):
    with pytest.raises(InputError, match=r"^queue_small: is a queue, of which no test clusters can be drawn"):
        runs.validate(scenario(), out, False, quiet)


def test_the_sweep_of_contention_breaks_one_thing_at_a_time():
    made = load_each("queue_contention")
    changed = [
        [one.blocking_s is not None, one.lock_share > 0, one.concurrency_limit > 0, one.parallelism > 1]
        for one in (scenario.contention for scenario in made)
    ]
    assert list(map(sum, changed)) == [0, 1, 1, 1, 1]
    assert sum(map(np.array, changed)).tolist() == [1, 1, 1, 1]


def test_what_happened_where_the_laws_do_not_hold_is_response_time_alone(out):
    """With a limit on admitted requests, three cores may serve as two do: the law cannot tell what queued."""
    first, *_ = run(scenario("contention.concurrency_limit=2", "station.policy=fcfs"), out, False, quiet)["replays"]
    assert math.isnan(first["queueing_time_s"])
    assert first["response_time_s"] > 0


OWN = "def mine(arrival_s, demand_s, remaining_s, priority):\n    return {key}\n"


def own_queue(folder, key):
    (folder / "mine.py").write_text(OWN.format(key=key))
    file = folder / "mine.yaml"
    file.write_text("extends: queue_small\nhorizon_s: 60\nreplays: []\nstation: {policy: mine.py:mine}\n")
    return load(str(file))


def test_a_policy_from_outside_makes_the_run_that_ours_makes_and_is_part_of_its_digest(tmp_path):
    ours = load("queue_small", settings(["horizon_s=60", "replays=[]", "station.policy=sjf"]))
    runs = [obtain(scenario, tmp_path, False, quiet) for scenario in (own_queue(tmp_path, "demand_s"), ours)]
    pd.testing.assert_frame_equal(*(run.table("truth_requests") for run in runs))
    again = obtain(own_queue(tmp_path, "-demand_s"), tmp_path, False, quiet)
    assert again.path != runs[0].path


def test_a_run_is_measured_without_the_file_of_its_policy(tmp_path):
    run = obtain(own_queue(tmp_path, "demand_s"), tmp_path, False, quiet)
    (tmp_path / "mine.py").unlink()
    scenario, opened = reopen(run.path)
    answer = run_queue.measure(scenario, opened, tmp_path, quiet)
    assert any("a policy of your own (mine.py:mine)" in note for note in answer.occupancy.notes)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("OTHER = 1\n", "holds no mine, but OTHER"), ("def mine(a):\n    return a\n", r"mine\.py:1: mine: .* got \(a\)")],
)
def test_what_is_no_policy_is_a_fault_of_the_scenario(tmp_path, text, problem):
    own_queue(tmp_path, "demand_s")
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(FaultsError, match=rf"mine\.yaml:4:19: station\.policy: .*{problem}"):
        load(str(tmp_path / "mine.yaml"))


def test_an_interval_that_ends_after_the_horizon_is_not_the_least_busy(answer, out):
    """Counting intervals last a minute: the fourth has 20 s of the horizon, and then hardly anything to do."""
    least = answer.counter["low"]
    cpu = obtain(scenario(), out, False, quiet).table("cpu")
    assert least == cpu["utilisation"][:3].min() > cpu["utilisation"][3]


def test_a_horizon_shorter_than_a_counting_interval_has_one(out):
    short = runs.run(scenario("horizon_s=50"), out, False, quiet)
    assert short.counter["low"] == short.counter["high"] > 0
