"""One load served on this machine: a server and a client in processes of their own, and what each of them recorded."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Literal, NoReturn

import pandas as pd

from models.errors import WscError
from scenarios.live.client import Session
from scenarios.live.kernel import Scheduler, supported

Wish = Literal["auto", "rr", "fifo", "nice", "other"]
_POLL_S = 0.5
_MAY = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)); os.setpriority(os.PRIO_PROCESS, 0, -1)"


class LiveError(WscError):
    """This machine cannot run the server or the client, or one of them failed."""


@dataclass(frozen=True, slots=True)
class ServingPlace:
    """Where a load is served: CPUs of the server and of the client, the scheduler, and whether they share a CPU."""

    server_cpus: tuple[int, ...]
    client_cpus: tuple[int, ...]
    scheduler: Scheduler
    pool: int = 0

    @property
    def shared(self) -> bool:
        """Whether the client runs on CPUs of the server."""
        return bool({*self.server_cpus} & {*self.client_cpus})


@dataclass(frozen=True, slots=True)
class Observed:
    """What was recorded, all times in seconds since the server began to account."""

    requests: pd.DataFrame
    """session, arrival_s, departure_s, demand_s by the client, in order of arrival; departure NaN: no good answer."""
    samples: pd.DataFrame
    """time_s and, up to then, run_s and wait_s of the server's processes, busy_s and stolen_s of its CPUs."""
    workers: pd.DataFrame
    """taken_s, ended_s, run_s, wait_s of each of the server's workers."""
    spin_share: float
    """CPU time over wall-clock time of a process that tried to have a CPU before the load began."""


def place(servers: int, wish: Wish = "auto", pool: int = 0) -> ServingPlace:
    """Return where to serve: the server on the last CPUs, the client on the others or, if none is left, on the same.

    Parameters
    ----------
    servers : CPUs of the server
    asked : scheduler; auto is `nice` where this user may, else `other`
    pool : workers made beforehand; 0: one for each request
    """
    if not supported():
        raise LiveError(
            "wsc live needs Linux with /proc/PID/schedstat, sched_setaffinity and pidfd_open (5.3 or newer)"
        )
    cpus = sorted(os.sched_getaffinity(0))
    if not 1 <= servers <= len(cpus):
        raise LiveError(f"--servers must be 1 to {len(cpus)}, the CPUs that this process may use, got {servers}")
    privileged = wish != "other" and _privileged()
    if wish not in ("auto", "other") and not privileged:
        raise LiveError(f"this user may not use --scheduler {wish}: it needs CAP_SYS_NICE; other and auto do not")
    scheduler: Scheduler = ("nice" if privileged else "other") if wish == "auto" else wish
    return ServingPlace(tuple(cpus[-servers:]), tuple(cpus[:-servers] or cpus), scheduler, pool)


def observe(
    sessions: Sequence[Session],
    length_s: float,
    where: ServingPlace,
    interval_s: float,
    tell: Callable[[float], None] = lambda share: None,
) -> Observed:
    """Serve a load and return what client and server recorded; whatever happens, no process of theirs is left.

    Parameters
    ----------
    sessions : the load
    length_s : when sessions break off
    where : CPUs and scheduler
    interval_s : between two samples of the kernel's accounts
    tell : called with the share of `length_s` that is over
    """
    cpus = [",".join(map(str, group)) for group in (where.server_cpus, where.client_cpus)]
    common = ("--scheduler", where.scheduler)
    serving = ("--cpus", cpus[0], *common, "--pool", str(where.pool), "--interval-s", str(interval_s))
    with _running("scenarios.live.server", *serving) as server:
        begun = json.loads(_first_line(server))
        load = {"port": begun["port"], "until_s": length_s, "sessions": [asdict(session) for session in sessions]}
        with _running("scenarios.live.client", "--cpus", cpus[1], *common) as client:
            stamps = json.loads(_finish(client, json.dumps(load), length_s, tell))
        accounts = json.loads(_finish(server, "", length_s, lambda share: None))
    samples, workers = pd.DataFrame(accounts["samples"]), pd.DataFrame(accounts["workers"])
    origin_s = float(samples["time_s"].iloc[0])
    return Observed(
        _since(pd.DataFrame(stamps), origin_s, "arrival_s", "departure_s"),
        _since(samples, origin_s, "time_s"),
        _since(workers, origin_s, "taken_s", "ended_s"),
        float(begun["spin_share"]),
    )


@contextmanager
def _running(module: str, *arguments: str) -> Generator[subprocess.Popen[str]]:
    """Run a module in a session of its own, killed with its workers in the end; workers do not outlive their server."""
    pipe = subprocess.PIPE
    command = (sys.executable, "-P", "-m", module, *arguments, "--parent", str(os.getpid()))
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _first_line(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline() if process.stdout else ""
    return line or _failed(process, *process.communicate())


def _finish(process: subprocess.Popen[str], text: str, length_s: float, tell: Callable[[float], None]) -> str:
    """Say the last that a process is told, wait for it and return what it printed."""
    begin_s, untold = time.monotonic(), text or None
    while True:
        try:
            out, error = process.communicate(untold, timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            untold = None
            tell(min(1.0, (time.monotonic() - begin_s) / length_s))
            continue
        return out if process.returncode == 0 else _failed(process, out, error)


def _failed(process: subprocess.Popen[str], _out: str, error: str) -> NoReturn:
    last = error.strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
    raise LiveError(f"{process.args[3] if isinstance(process.args, tuple) else ''} failed: {last[0]}")


def _privileged() -> bool:
    """Return whether a process of this user may raise its priority; tried in a process of its own."""
    return subprocess.run([sys.executable, "-I", "-S", "-c", _MAY], capture_output=True, check=False).returncode == 0


def _since(frame: pd.DataFrame, origin_s: float, *columns: str) -> pd.DataFrame:
    return frame.assign(**{column: frame[column] - origin_s for column in columns})
