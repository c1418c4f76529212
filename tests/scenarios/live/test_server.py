"""The server burns what it is asked for, and the kernel's accounts of its workers say so."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

CPU = str(min(os.sched_getaffinity(0)))
PATIENCE_S = 60
OVERHEAD_S = 0.25
"""CPU time of a fork, of a request's text and of an exit: a few milliseconds, and many times that does no harm."""


@contextmanager
def serving(*more):
    command = (sys.executable, "-P", "-m", "scenarios.live.server", "--cpus", CPU, "--parent", str(os.getpid()), *more)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def ask(port, text):
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        connection.sendall(text.encode())
        pieces = []
        while piece := connection.recv(4096):
            pieces.append(piece)
    return b"".join(pieces).decode()


def asking(demand_s, version="1.1"):
    return f"GET /?cpu_s={demand_s} HTTP/{version}\r\nHost: here\r\n\r\n"


def accounts(process):
    out, error = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, error) == (0, "")
    return json.loads(out)


def alive(process):
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def gone(processes):
    """Wait until no process of these lives, or patience ends."""
    end_s = time.monotonic() + PATIENCE_S
    while any(map(alive, processes)) and time.monotonic() < end_s:
        time.sleep(0.01)
    return not any(map(alive, processes))


def children(process):
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


@pytest.mark.parametrize("more", [(), ("--pool", "2")], ids=["fork", "pool"])
def test_cpu_asked_is_cpu_got_by_the_kernels_own_accounts(more):
    asked = [0.03, 0.0, 0.02]
    with serving(*more) as (process, begun):
        answers = [ask(begun["port"], asking(each)) for each in asked]
        said = accounts(process)
    heads, burnt = zip(*(answer.split("\r\n\r\n") for answer in answers), strict=True)
    assert all(head.startswith("HTTP/1.1 200 OK\r\n") for head in heads)
    assert all(float(each) >= wanted for each, wanted in zip(burnt, asked, strict=True))
    got = sum(said["workers"]["run_s"])
    assert sum(asked) <= got <= sum(asked) + OVERHEAD_S * len(asked)


def test_every_request_has_a_worker_with_accounts_of_its_own():
    asked = [0.05, 0.01, 0.03]
    with serving() as (process, begun):
        for each in asked:
            ask(begun["port"], asking(each))
        workers = accounts(process)["workers"]
    assert all(run_s >= each for run_s, each in zip(workers["run_s"], asked, strict=True))
    assert all(taken < ended for taken, ended in zip(workers["taken_s"], workers["ended_s"], strict=True))


def test_the_samples_contain_what_the_workers_were_accounted_for_and_never_fall():
    with serving("--interval-s", "0.05") as (process, begun):
        for _ in range(3):
            ask(begun["port"], asking(0.05))
        said = accounts(process)
    samples, workers = said["samples"], said["workers"]
    assert len(samples["time_s"]) >= 3
    assert samples["time_s"][-1] - samples["time_s"][0] >= 0.15
    assert all(sorted(column) == column for column in samples.values())
    assert samples["run_s"][-1] - samples["run_s"][0] >= sum(workers["run_s"])


def test_a_free_cpu_is_found_out_before_the_load():
    with serving() as (_, begun):
        assert 0 < begun["spin_share"] <= 1.01


def test_a_bad_request_burns_nothing_and_does_not_stop_the_server():
    with serving() as (process, begun):
        assert ask(begun["port"], "nonsense\r\n\r\n").startswith("HTTP/1.1 400 Bad Request\r\n")
        with socket.create_connection(("127.0.0.1", begun["port"])):
            pass
        assert ask(begun["port"], asking(0.0, "1.0")).startswith("HTTP/1.1 200 OK\r\n")
        assert sum(accounts(process)["workers"]["run_s"]) < 3 * OVERHEAD_S


def test_when_its_input_ends_the_server_still_answers_what_it_has_taken():
    with serving() as (process, begun):
        with socket.create_connection(("127.0.0.1", begun["port"]), timeout=PATIENCE_S) as connection:
            connection.sendall(asking(0.2).encode())
            while not children(process.pid):
                time.sleep(0.001)
            process.stdin.close()
            assert connection.recv(4096).startswith(b"HTTP/1.1 200 OK")
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("more", [(), ("--pool", "2")], ids=["fork", "pool"])
def test_no_worker_outlives_a_server_that_is_killed(more):
    with serving(*more) as (process, begun), socket.create_connection(("127.0.0.1", begun["port"])) as connection:
        connection.sendall(asking(50).encode())
        while not children(process.pid):
            time.sleep(0.001)
        workers = children(process.pid)
        process.send_signal(signal.SIGKILL)
        assert gone(workers)
