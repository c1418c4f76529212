"""A run directory is complete and undamaged, or it is not there."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import pytest

from scenarios.kinds import KINDS
from scenarios.runs import disk, rundir
from scenarios.runs.rundir import FolderError, RunError, creating, intact, open_run, reusable, run_directory
from sim.recorder import TableWriter, write_table

DIGEST = "14166dc299f94f01"
EVENTS = {"time_s": [1.0, 2.0], "kind": ["drain", "repair"], "machine": [3, 4], "instance": [-1, 7]}
ROUNDS = {
    "round": [1],
    "machines": [25],
    "jobs": [40],
    "target_margin": [0.01],
    "planned_margin": [0.01],
    "margin": [0.02],
    "change": [0.07],
    "quota_coverage": [0.8],
    "accepted": [False],
}
TRUTH = {"job": [0], "core_cpi": [1.0], "memory_accesses_per_instruction": [0.0], "overlap": [1.0]} | {
    "input_log_sd": [0.0],
    "stall_share": [0.0],
}


def make(out, name="small", seed=1, mark=0.0):
    with creating(out, name, DIGEST) as draft:
        draft.add(write_table(draft.path, "events", EVENTS | {"time_s": [mark, 2.0]}))
        draft.add(write_table(draft.path, "rounds", ROUNDS), write_table(draft.path, "truth_jobs", TRUTH))
        draft.describe("fleet", seed, {"seed": seed, "fleet": {"machines": 300}}, {"machines": 300, "jobs": 1})
    return draft.destination


def hidden(out):
    return [entry.name for entry in out.iterdir() if entry.name.startswith(".")]


def opens(path):
    try:
        open_run(path)
    except RunError:
        return False
    return True


def test_a_run_says_what_was_asked_and_what_made_it(tmp_path):
    run = open_run(make(tmp_path, seed=0))
    assert run.path == tmp_path / "small-14166dc299f9"
    manifest = dict(run.manifest)
    assert manifest.pop("started").endswith("+00:00")
    assert manifest.pop("duration_s") >= 0
    assert manifest.pop("tables").keys() == {"events", "rounds", "truth_jobs"}
    assert manifest == {
        "kind": "fleet",
        "scenario": "small",
        "digest": DIGEST,
        "seed": 0,
        "resolved": {"seed": 0, "fleet": {"machines": 300}},
        "counts": {"machines": 300, "jobs": 1},
        "versions": rundir.versions(),
        "source": rundir.source_digest(),
    }
    assert hidden(tmp_path) == []


def test_the_manifest_knows_every_table(tmp_path):
    run = open_run(make(tmp_path))
    assert run.tables == tuple(run.listed)
    for name, said in run.listed.items():
        assert said["rows"] == len(run.table(name))
        assert said["file_bytes"] == run.file(name).stat().st_size
        assert said["file_digest"] == disk.file_digest(run.file(name))
    assert run.listed["rounds"]["digest"] == write_table(tmp_path, "rounds", ROUNDS).digest


def test_tables_come_back_as_they_were_written(tmp_path):
    run = open_run(make(tmp_path, mark=1.0))
    pd.testing.assert_frame_equal(run.table("events"), pd.DataFrame(EVENTS), check_dtype=False)
    assert run.table("events", ["machine", "time_s"]).columns.tolist() == ["machine", "time_s"]
    assert isinstance(run.table("events").index, pd.RangeIndex)
    assert run.table("rounds")["accepted"].dtype == bool


def test_a_missing_table_or_column_is_named_with_those_there(tmp_path):
    run = open_run(make(tmp_path))
    with pytest.raises(RunError, match="no table epochs; there are events, rounds, truth_jobs"):
        run.table("epochs")
    with pytest.raises(RunError, match="events has no column colour; it has time_s, kind, machine, instance"):
        run.table("events", ["time_s", "colour"])


def test_a_table_that_the_system_does_not_give_is_not_said_to_be_cut_off(tmp_path, monkeypatch):
    run = open_run(make(tmp_path))

    def refused(_):
        raise PermissionError(13, "Failed to open local file. Detail: [errno 13] Permission denied")

    monkeypatch.setattr(rundir.pq, "ParquetFile", refused)
    with pytest.raises(RunError, match=r"table events cannot be read: Permission denied$"):
        run.table("events")


def test_a_copy_without_the_truth_still_opens(tmp_path):
    copy = Path(shutil.copytree(make(tmp_path), tmp_path / "copy", ignore=shutil.ignore_patterns("truth_*")))
    run = open_run(copy)
    assert (run.has("events"), run.has("truth_jobs")) == (True, False)
    assert len(run.table("events")) == 2
    assert not intact(copy)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"tables": []}', "\udc80"], ids=repr)
def test_a_broken_manifest_is_no_run(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(RunError, match=r"manifest\.json"):
        open_run(tmp_path)
    assert not intact(tmp_path)


def test_a_directory_without_manifest_is_no_run(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(RunError, match=r"not a finished run, there is no manifest\.json"):
            open_run(path)


@pytest.mark.parametrize("table", ["events", "rounds", "truth_jobs"])
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_one_flipped_bit_is_noticed(tmp_path, table, place):
    run = open_run(make(tmp_path))
    assert intact(run.path)
    content = bytearray(run.file(table).read_bytes())
    content[round(place * (len(content) - 1))] ^= 1
    run.file(table).write_bytes(content)
    assert not intact(run.path)


def test_a_cut_or_missing_table_and_a_cut_manifest_are_noticed(tmp_path):
    for harm in (
        lambda path: os.truncate(path / "events.parquet", 100),
        lambda path: os.truncate(path / "events.parquet", 0),
        lambda path: (path / "events.parquet").unlink(),
        lambda path: os.truncate(path / "manifest.json", 200),
        lambda path: (path / "manifest.json").unlink(),
        lambda path: (path / "manifest.json").write_text('{"tables": {"events": {"rows": 2}}}'),
    ):
        path = make(tmp_path)
        assert intact(path)
        harm(path)
        assert not intact(path)


def test_a_run_of_other_code_or_versions_is_not_reused(tmp_path, monkeypatch):
    path = make(tmp_path)
    assert reusable(path)
    for name in ("source_of_run", "versions"):
        with monkeypatch.context() as other:
            other.setattr(f"scenarios.runs.rundir.{name}", lambda *_: "other")
            assert intact(path)
            assert not reusable(path)
    (path / "rounds.parquet").unlink()
    assert not reusable(path)


def test_a_new_run_takes_the_place_of_the_old(tmp_path):
    make(tmp_path, mark=1.0)
    path = make(tmp_path, mark=5.0)
    assert open_run(path).table("events")["time_s"].tolist() == [5.0, 2.0]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("fault", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_fault_leaves_nothing_and_the_old_run_stays(tmp_path, fault):
    path = make(tmp_path, mark=1.0)
    with pytest.raises(fault), creating(tmp_path, "small", DIGEST) as draft:
        fail(draft, fault)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert open_run(path).table("events")["time_s"].tolist() == [1.0, 2.0]


def fail(draft, fault):
    TableWriter(draft.path, "events").append(EVENTS)
    raise fault


def test_what_the_manifest_cannot_say_is_refused(tmp_path):
    def undescribed(draft):
        draft.add(write_table(draft.path, "events", EVENTS))

    def unlisted(draft):
        write_table(draft.path, "events", EVENTS)
        draft.describe("fleet", 1, {}, {})

    def unclosed(draft):
        TableWriter(draft.path, "events")
        draft.describe("fleet", 1, {}, {})

    def unwritten(draft):
        undescribed(draft)
        draft.describe("fleet", 1, {}, {})
        (draft.path / "events.parquet").unlink()

    for use, message in (
        (undescribed, "was not described"),
        (unlisted, r"written \(events\) are not the tables added \(\)"),
        (unclosed, r"written \(events\) are not the tables added \(\)"),
        (unwritten, r"written \(\) are not the tables added \(events\)"),
    ):
        with pytest.raises(RunError, match=message), creating(tmp_path, "small", DIGEST) as draft:
            use(draft)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "/a"])
def test_a_name_that_is_no_folder_is_refused(name):
    with pytest.raises(ValueError, match="scenario name"):
        run_directory(Path("runs"), name, DIGEST)


def test_a_tilde_is_the_home_of_the_user(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert run_directory(Path("~/runs"), "small", DIGEST).parent == Path("/home/me/runs")
    assert run_directory(Path("~nobody-of-that-name/x"), "small", DIGEST).parent == Path("~nobody-of-that-name/x")


WRITING = """
import sys
from pathlib import Path
from scenarios.runs.rundir import creating
from sim.recorder import TableWriter, write_table
events = {"time_s": [0.0] * 70000, "kind": ["drain"] * 70000, "machine": [1] * 70000, "instance": [1] * 70000}
with creating(Path(sys.argv[1]), "small", "14166dc299f9") as draft:
    draft.describe("fleet", 1, {}, {})
    with TableWriter(draft.path, "events") as writer:
        writer.append(events)
        print("writing", flush=True)
        sys.stdin.read()
"""


def interrupted(out, number):
    """Start a process that writes a run, send it the signal in the middle, and return its exit code."""
    command = [sys.executable, "-c", WRITING, str(out)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=Path(__file__).parents[3], **pipes) as writer:
        assert writer.stdout.readline() == b"writing\n"
        assert len(hidden(out)) == 1
        writer.send_signal(number)
        return writer.wait(timeout=60)


def test_after_ctrl_c_nothing_is_left(tmp_path):
    assert interrupted(tmp_path, signal.SIGINT) != 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_a_killed_process_leaves_is_no_run_and_goes_at_the_next_start(tmp_path, number):
    assert interrupted(tmp_path, number) == -number
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".small-14166dc299f9.")
    assert not opens(left)
    assert not opens(tmp_path / "small-14166dc299f9")
    path = make(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_even_a_complete_hidden_directory_is_no_run(tmp_path):
    path = make(tmp_path)
    left = path.rename(tmp_path / f".{path.name}.{os.getpid()}.0a1b2c3d.partial")
    with pytest.raises(RunError, match="unfinished"):
        open_run(left)
    assert not intact(left)


def test_only_directories_of_dead_processes_are_removed(tmp_path):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    living, dead = (f".big-0123456789ab.{process}.0a1b2c3d.partial" for process in (os.getpid(), ended.pid))
    others = [living, f".big-0123456789ab.{1}.0a1b2c3d.partial", ".partial", ".notes.partial", "x.1.0a1b2c3d.partial"]
    for name in (dead, *others):
        (tmp_path / name).mkdir()
    path = make(tmp_path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*others, path.name])


def make_again(out):
    return [str(make(Path(out), mark=float(i))) for i in range(15)]


@pytest.mark.parametrize(
    "pool",
    [lambda: ProcessPoolExecutor(3, get_context("spawn")), lambda: ThreadPoolExecutor(3)],
    ids=["processes", "threads"],
)
def test_makers_of_the_same_run_do_not_break_each_other(tmp_path, pool):
    with pool() as makers:
        made = [makers.submit(make_again, str(tmp_path)) for _ in range(3)]
        (path,) = {Path(path) for each in made for path in each.result()}
    assert intact(path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_run_that_another_maker_takes_away_in_the_meantime_is_no_fault(tmp_path, monkeypatch):
    moved, attempts = rundir._moved, []

    def too_late_at_first(finished, destination):
        attempts.append(destination)
        if len(attempts) > 1:
            return moved(finished, destination)
        shutil.rmtree(destination)
        return False

    make(tmp_path)
    monkeypatch.setattr(rundir, "_moved", too_late_at_first)
    assert intact(make(tmp_path))
    assert len(attempts) == 2
    assert hidden(tmp_path) == []


def test_a_folder_of_runs_that_cannot_be_made_is_told_with_the_reason(tmp_path):
    (tmp_path / "file").write_text("")
    said = f"^cannot make a folder at {re.escape(str(tmp_path / 'file'))}: File exists$"
    with pytest.raises(FolderError, match=said), creating(tmp_path / "file", "small", "0" * 12):
        pass


def test_the_manifest_is_plain_json(tmp_path):
    def refuse(constant):
        raise AssertionError(constant)

    json.loads((make(tmp_path) / "manifest.json").read_text(), parse_constant=refuse)
    with pytest.raises(ValueError, match="JSON"), creating(tmp_path, "odd", DIGEST) as draft:
        draft.describe("fleet", 1, {"share": float("nan")}, {})
    assert not opens(tmp_path / "odd-14166dc299f9")


def test_what_symbolises_is_part_of_a_profiled_runs_digest():
    """Whatever of `analysis` is loaded to symbolise counts; `models` does anyway."""
    code = "import sys, analysis.profiling.symbolise; print(*(m for m in sys.modules if m.startswith('analysis.')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) - {"analysis.profiling"} == {name for name in KINDS["profile"].makers if "analysis" in name}
    assert rundir.source_of_run("profile") != rundir.source_of_run("fleet")
