"""What a live process asks of the Linux kernel: CPUs, a scheduler, accounting, and not to outlive its parent.

Standard library only: the server forks for every request, and the smaller it is the cheaper that is.
"""

import ctypes
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from models.errors import InputError

Scheduler = Literal["rr", "fifo", "nice", "other"]
"""SCHED_RR, SCHED_FIFO, the default scheduler at nice -20, or the default scheduler as it is."""
SCHEDULERS: tuple[Scheduler, ...] = ("rr", "fifo", "nice", "other")

WORKER, SERVER, CLIENT = 10, 20, 30
"""Real-time priorities: whoever accounts or stamps must not wait behind those that burn CPU."""
_NICEST = -20
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Account:
    """What the kernel has accounted to a process: seconds on a CPU, and seconds runnable without one."""

    run_s: float
    wait_s: float

    def __add__(self, other: "Account") -> "Account":
        return Account(self.run_s + other.run_s, self.wait_s + other.wait_s)


@dataclass(frozen=True, slots=True)
class Ticks:
    """Seconds that some CPUs were busy, and seconds that the hypervisor gave to others, since boot."""

    busy_s: float
    stolen_s: float


def supported() -> bool:
    """Return whether this kernel accounts for run-queue waits and lets processes be pinned."""
    return hasattr(os, "sched_setaffinity") and hasattr(os, "pidfd_open") and Path("/proc/self/schedstat").is_file()


def schedstat(text: str) -> Account:
    """Return what a text of `/proc/PID/schedstat` says (Linux, Documentation/scheduler/sched-stats.rst).

    Parameters
    ----------
    text : nanoseconds on a CPU, nanoseconds in a run queue, and how often it got a CPU
    """
    fields = text.split()
    if len(fields) != 3 or not all(field.isdecimal() for field in fields):
        raise InputError(f"schedstat should be three whole numbers, got {text!r}")
    return Account(int(fields[0]) / 1e9, int(fields[1]) / 1e9)


def account(process: int) -> Account:
    """Return what the kernel has accounted to a process, which may have ended but must not have been waited for.

    Of a process with several threads it is the first thread's; the server's processes have one.
    """
    return schedstat(Path(f"/proc/{process}/schedstat").read_text(encoding="ascii"))


def ticks(text: str, cpus: Iterable[int], per_second: int) -> Ticks:
    r"""Return what a text of `/proc/stat` says of some CPUs (proc_stat(5)).

    Parameters
    ----------
    text : the whole file; of a line `cpuN` the fields are user, nice, system, idle, iowait, irq, softirq, steal
    cpus : which CPUs
    per_second : ticks per second
    """
    busy = stolen = 0
    lines = {words[0]: words[1:] for words in map(str.split, text.splitlines()) if words}
    for cpu in cpus:
        fields = [int(word) for word in lines.get(f"cpu{cpu}", [])]
        if len(fields) < 8:
            raise InputError(f"/proc/stat should have a line cpu{cpu} with eight numbers or more")
        user, nice, system, _, _, irq, softirq, steal = fields[:8]
        busy += user + nice + system + irq + softirq
        stolen += steal
    return Ticks(busy / per_second, stolen / per_second)


def machine_ticks(cpus: Iterable[int]) -> Ticks:
    """Return what `/proc/stat` says of some CPUs now."""
    return ticks(Path("/proc/stat").read_text(encoding="ascii"), cpus, os.sysconf("SC_CLK_TCK"))


def schedule(scheduler: Scheduler, priority: int) -> None:
    """Put this process under a scheduler; all but `other` need the privilege to do so.

    Whoever accounts or stamps is under SCHED_FIFO, and only workers are under the scheduler as it is named.

    Parameters
    ----------
    scheduler : which one
    priority : `WORKER`, or a higher one of those that hardly use CPU
    """
    if scheduler == "other":
        return
    if scheduler == "nice" and priority == WORKER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, _NICEST)
        _raise_group()
        return
    round_robin = scheduler == "rr" and priority == WORKER
    os.sched_setscheduler(0, os.SCHED_RR if round_robin else os.SCHED_FIFO, os.sched_param(priority))


def _raise_group() -> None:
    """Make this session's group as nice as the process: where there are autogroups, sessions share CPUs (sched(7)).

    Only in a session of its own, so that nobody else's is raised.
    """
    group = Path("/proc/self/autogroup")
    if os.getsid(0) == os.getpid() and group.is_file():
        group.write_text(str(_NICEST), encoding="ascii")


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies (prctl(2), PR_SET_PDEATHSIG).

    Parameters
    ----------
    parent : process id of the parent; if that has died already, this process ends now
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
