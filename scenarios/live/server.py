"""A CPU-bound HTTP server whose own CPU time and run-queue waits the kernel accounts for, process by process.

    python -m scenarios.live.server --cpus 1 --scheduler rr --interval-s 10 --parent PID

`GET /?cpu_s=0.25` burns a quarter of a second of CPU. Every request has a process of its own (or one of a pool), so no
lock is shared and the kernel's scheduler decides who runs. The first line printed says where it listens; when its
standard input ends it stops, waits for its workers and prints its accounts. Standard library only.
"""

import argparse
import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from scenarios.live.kernel import (
    SCHEDULERS,
    SERVER,
    WORKER,
    Account,
    Scheduler,
    account,
    die_with,
    machine_ticks,
    schedule,
)
from scenarios.live.worker import answer, spin

_BACKLOG = 1024


@dataclass(slots=True)
class Server:
    """A listening server: its workers, its accounts, its samples."""

    listener: socket.socket
    cpus: tuple[int, ...]
    scheduler: Scheduler
    interval_s: float
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    taken_s: dict[int, float] = field(default_factory=dict)
    """Living workers, and when each was made."""
    ended: Account = field(default_factory=lambda: Account(0.0, 0.0))
    """Accounts of the workers that have ended, summed."""
    samples: list[tuple[float, ...]] = field(default_factory=list)
    """time_s, run_s, wait_s, busy_s, stolen_s since the server began; times of the monotonic clock."""
    workers: list[tuple[float, ...]] = field(default_factory=list)
    """taken_s, ended_s, run_s, wait_s of each worker that has ended."""


def listen() -> socket.socket:
    """Return a socket that listens on a free port of the loopback interface."""
    return socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)


def serve(server: Server, pool: int) -> None:
    """Serve until standard input ends, then wait for the workers that are left.

    Parameters
    ----------
    server : with its listening socket
    pool : workers made beforehand, each for one request at a time; 0: a worker for each request
    """
    for _ in range(pool):
        _fork(server, None)
    server.selector.register(sys.stdin, selectors.EVENT_READ)
    if not pool:
        server.listener.setblocking(False)
        server.selector.register(server.listener, selectors.EVENT_READ)
    _sample(server)
    due_s, accepting = server.samples[0][0] + server.interval_s, True
    while accepting or server.taken_s:
        for key, _ in server.selector.select(max(0.0, due_s - time.monotonic())):
            if key.fileobj is sys.stdin:
                accepting = False
                _close(server)
            elif key.fileobj is server.listener:
                _accept(server)
            else:
                _reap(server, key.fd, int(key.data))
        if time.monotonic() >= due_s:
            _sample(server)
            due_s += server.interval_s
    _sample(server)


def accounts(server: Server) -> dict[str, dict[str, list[float]]]:
    """Return the samples and the workers' accounts, by column."""
    return {
        "samples": _columns(("time_s", "run_s", "wait_s", "busy_s", "stolen_s"), server.samples),
        "workers": _columns(("taken_s", "ended_s", "run_s", "wait_s"), server.workers),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a server as its arguments say; see the module's text."""
    parser = argparse.ArgumentParser(description="A CPU-bound HTTP server that accounts for itself.")
    parser.add_argument("--cpus", required=True, help="CPUs that it may run on, such as 0,1")
    parser.add_argument("--scheduler", choices=SCHEDULERS, default="other")
    parser.add_argument("--pool", type=int, default=0, help="workers made beforehand; 0: one for each request")
    parser.add_argument("--interval-s", type=float, default=10.0)
    parser.add_argument("--parent", type=int, required=True, help="process that it must not outlive")
    options = parser.parse_args(arguments)
    die_with(options.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cpus = tuple(int(cpu) for cpu in options.cpus.split(","))
    schedule(options.scheduler, WORKER)
    spin_share = min(spin(cpu) for cpu in cpus)
    os.sched_setaffinity(0, cpus)
    schedule(options.scheduler, SERVER)
    gc.freeze()
    with listen() as listener:
        server = Server(listener, cpus, options.scheduler, options.interval_s)
        print(json.dumps({"port": listener.getsockname()[1], "spin_share": spin_share}), flush=True)
        serve(server, options.pool)
    print(json.dumps(accounts(server)), flush=True)


def _accept(server: Server) -> None:
    with suppress(BlockingIOError):
        while True:
            connection, _ = server.listener.accept()
            with connection:
                _fork(server, connection)


def _fork(server: Server, connection: socket.socket | None) -> None:
    """Make a worker: for one connection, or for all that it can get."""
    parent, taken_s = os.getpid(), time.monotonic()
    process = os.fork()
    if not process:
        try:
            _work(server, connection, parent)
        finally:
            os._exit(0)
    server.taken_s[process] = taken_s
    server.selector.register(os.pidfd_open(process), selectors.EVENT_READ, process)


def _work(server: Server, connection: socket.socket | None, parent: int) -> None:
    die_with(parent)
    schedule(server.scheduler, WORKER)
    if connection is not None:
        answer(connection, 0.0)
        return
    while True:
        accepted, _ = server.listener.accept()
        answer(accepted, time.thread_time())


def _reap(server: Server, descriptor: int, process: int) -> None:
    """Take a worker's accounts, which the kernel keeps until it is waited for."""
    last, ended_s = account(process), time.monotonic()
    os.waitpid(process, 0)
    server.selector.unregister(descriptor)
    os.close(descriptor)
    server.ended += last
    server.workers.append((server.taken_s.pop(process), ended_s, last.run_s, last.wait_s))


def _sample(server: Server) -> None:
    total = server.ended + account(os.getpid())
    for process in server.taken_s:
        total += account(process)
    machine = machine_ticks(server.cpus)
    server.samples.append((time.monotonic(), total.run_s, total.wait_s, machine.busy_s, machine.stolen_s))


def _close(server: Server) -> None:
    """Take no more requests; workers of a pool, which wait for ever, are told to end."""
    server.selector.unregister(sys.stdin)
    with suppress(KeyError):
        server.selector.unregister(server.listener)
        return
    for process in server.taken_s:
        os.kill(process, signal.SIGTERM)


def _columns(names: Sequence[str], rows: Sequence[Sequence[float]]) -> dict[str, list[float]]:
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


if __name__ == "__main__":
    main()
