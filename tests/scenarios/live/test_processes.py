"""A load is served by processes of their own, and none of them is left, however it ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scenarios.live import processes as live_run
from scenarios.live.client import Session
from scenarios.live.processes import LiveError, ServingPlace, observe, place

PATIENCE_S = 60
CPU = min(os.sched_getaffinity(0))
HERE = ServingPlace((CPU,), (CPU,), "other")


@pytest.fixture
def machine(monkeypatch):
    """A machine with four CPUs on which everything is allowed."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 1, 0, 2})
    monkeypatch.setattr(live_run, "_privileged", lambda: True)
    monkeypatch.setattr(live_run, "supported", lambda: True)
    return monkeypatch


@pytest.mark.usefixtures("machine")
def test_the_client_is_on_other_cpus_where_any_is_left():
    assert place(1) == ServingPlace((3,), (0, 1, 2), "nice")
    assert place(3, "rr", 2) == ServingPlace((1, 2, 3), (0,), "rr", 2)
    assert place(4, "other").client_cpus == (0, 1, 2, 3)
    assert (place(3).shared, place(4).shared) == (False, True)


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("servers", [0, 5])
def test_more_cpus_than_there_are_are_refused(servers):
    with pytest.raises(LiveError, match=f"--servers must be 1 to 4, .* got {servers}"):
        place(servers)


def test_without_privileges_the_scheduler_stays_as_it_is(machine):
    machine.setattr(live_run, "_privileged", lambda: False)
    assert place(1).scheduler == place(1, "other").scheduler == "other"
    with pytest.raises(LiveError, match="may not use --scheduler rr: it needs CAP_SYS_NICE"):
        place(1, "rr")


def test_another_system_is_refused_clearly(machine):
    machine.setattr(live_run, "supported", lambda: False)
    with pytest.raises(LiveError, match="needs Linux with /proc/PID/schedstat"):
        place(1)


def test_both_sides_of_a_load_are_recorded_by_one_clock():
    shares = list[float]()
    load = [Session(0.0, (0.02, 0.03), (0.0,)), Session(0.1, (0.04,), ())]
    seen = observe(load, 5.0, HERE, 0.5, shares.append)
    assert sorted(seen.requests["demand_s"]) == [0.02, 0.03, 0.04]
    assert seen.requests["arrival_s"].is_monotonic_increasing
    assert (seen.requests["departure_s"] - seen.requests["arrival_s"] >= seen.requests["demand_s"]).all()
    assert len(seen.workers) == 3
    assert (seen.workers["taken_s"] >= seen.requests["arrival_s"].min()).all()
    assert seen.samples["time_s"].iloc[0] == 0.0
    assert seen.samples["time_s"].iloc[-1] >= seen.requests["departure_s"].max()
    assert all(0 <= share <= 1 for share in shares)


def test_a_server_that_fails_is_told_with_its_last_words():
    nowhere = ServingPlace((10_000,), (CPU,), "other")
    with pytest.raises(LiveError, match=r"scenarios\.live\.server failed: OSError: .*Invalid argument"):
        observe([Session(0.0, (0.01,), ())], 1.0, nowhere, 0.5)


def test_a_client_that_fails_is_told_and_the_server_ends():
    with pytest.raises(LiveError, match=r"scenarios\.live\.client failed: OSError"):
        observe([Session(0.0, (0.01,), ())], 1.0, ServingPlace((CPU,), (10_000,), "other"), 0.5)
    assert not related(os.getpid())


def related(parent):
    """Process ids of servers and clients whose arguments name this parent."""
    found = []
    for process in (int(each.name) for each in Path("/proc").iterdir() if each.name.isdecimal()):
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--parent" in words and words[words.index(b"--parent") + 1] == str(parent).encode():
            found.append(process)
    return found


def until(holds):
    end_s = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < end_s:
        time.sleep(0.02)
    return holds()


@pytest.mark.parametrize(("end", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_whoever_interrupts_or_kills_the_command_leaves_no_process_and_no_file(tmp_path, end, status):
    words = ("live", "--minutes", "5", "--seed", "2", "--scheduler", "other", "--out", str(tmp_path / "out"))
    command = (sys.executable, "-c", "from scenarios.commands.app import app; app()", *words)
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert until(lambda: len(related(process.pid)) >= 2)
        process.send_signal(end)
        _, said = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, said) == (status, "interrupted\n" if end == signal.SIGINT else "")
        assert until(lambda: not related(process.pid))
    assert list((tmp_path / "out").iterdir()) == []
