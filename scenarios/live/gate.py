"""Whether this machine was quiet enough for a live measurement to tell anything, with the evidence."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from scenarios.live.kernel import Scheduler, Ticks, machine_ticks
from scenarios.live.processes import Observed, ServingPlace

LEAST_SPIN_SHARE = 0.98
"""A process that wants a CPU for itself should get this share of it before the load begins."""
MOST_OTHERS, MOST_STOLEN, MOST_UNEXPLAINED = 0.05, 0.01, 0.01
"""Shares of the server's CPUs: used by others, given to other virtual machines, and waited for without a reason."""
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Before:
    """What was seen before the load began; shares are of the server's CPUs."""

    load_average: float
    """Processes that wanted a CPU of the whole machine, in the last minute."""
    others_share: float
    stolen_share: float
    real_time_share: float
    """Most of a CPU that the kernel lets real-time processes have; 1: all."""


@dataclass(frozen=True, slots=True)
class During:
    """What was seen from the first sample to the last; shares are of the server's CPUs."""

    spin_share: float
    """CPU time over wall-clock time of a process that tried to have a CPU, just before the load."""
    others_share: float
    """Used by processes that are not the server's. Where the client shares a CPU, it is among them."""
    stolen_share: float
    unexplained_share: float
    """Runnable without a CPU although the server's own processes left one free; NaN: a pool of more workers."""


def before(cpus: Sequence[int], look_s: float = _LOOK_S) -> Before:
    """Look at the server's CPUs before any load.

    Parameters
    ----------
    cpus : the server's
    look_s : how long to look, seconds
    """
    begin_s, begin = time.monotonic(), machine_ticks(cpus)
    time.sleep(look_s)
    whole_s, end = (time.monotonic() - begin_s) * len(cpus), machine_ticks(cpus)
    others, stolen = used(begin, end, whole_s)
    return Before(os.getloadavg()[0], others, stolen, real_time_share(*_limits()))


def used(begin: Ticks, end: Ticks, whole_s: float) -> tuple[float, float]:
    """Return the shares of `whole_s` seconds of CPU that were busy and that were stolen between two looks."""
    return (end.busy_s - begin.busy_s) / whole_s, (end.stolen_s - begin.stolen_s) / whole_s


def real_time_share(runtime: str, period: str) -> float:
    """Return the share of a CPU that real-time processes may have (Linux, Documentation/scheduler/sched-rt-group.rst).

    Parameters
    ----------
    runtime, period : texts of `/proc/sys/kernel/sched_rt_runtime_us` and `sched_rt_period_us`; a runtime of -1 or
        empty texts: no limit
    """
    if not runtime.strip() or not period.strip() or int(runtime) < 0:
        return 1.0
    return min(1.0, int(runtime) / int(period))


def during(observed: Observed, where: ServingPlace) -> During:
    """Return what the samples and the workers' accounts say of the time of the load.

    The server's own processes leave all k CPUs taken while N > k of them are there, and then N - k of them wait: a
    wait beyond that was for somebody else. N counts the server's processes by the server's clock, no client is asked.
    Of a pool it is not known how many have a request; as many workers as CPUs never wait for each other.

    Parameters
    ----------
    seen : what was recorded
    where : the server's CPUs
    """
    first, last = observed.samples.iloc[0], observed.samples.iloc[-1]
    cpus = len(where.server_cpus)
    whole_s = cpus * float(last["time_s"] - first["time_s"])
    begin, end = (Ticks(float(sample["busy_s"]), float(sample["stolen_s"])) for sample in (first, last))
    busy, stolen = used(begin, end, whole_s)
    others = max(0.0, busy - float(last["run_s"] - first["run_s"]) / whole_s)
    waited_s = float(last["wait_s"] - first["wait_s"]) if where.pool <= cpus else float("nan")
    unexplained = (waited_s if where.pool else unexplained_wait(observed.workers, cpus)) / whole_s
    return During(observed.spin_share, others, stolen, unexplained)


def unexplained_wait(workers: pd.DataFrame, cpus: int) -> float:
    """Return the seconds that workers waited for a CPU beyond what their own number explains; may be negative."""
    if workers.empty:
        return 0.0
    own_s = law(curve(workers["taken_s"], workers["ended_s"]), cpus).queueing_time_s
    return float(workers["wait_s"].sum()) - own_s


def reasons(idle: Before, loaded: During, scheduler: Scheduler) -> list[str]:
    """Return why the machine was not quiet; empty if it was.

    Parameters
    ----------
    seen, then : before and during the load
    scheduler : the server's; others' use of its CPUs matters before the load only where the server has no precedence
    """
    why = []
    if scheduler == "other" and idle.others_share > MOST_OTHERS:
        why.append(f"others used {idle.others_share:.1%} of the CPUs before the load (at most {MOST_OTHERS:.0%})")
    if loaded.spin_share < LEAST_SPIN_SHARE:
        why.append(f"a spinning process got {loaded.spin_share:.1%} of a CPU (at least {LEAST_SPIN_SHARE:.0%})")
    stolen = max(idle.stolen_share, loaded.stolen_share)
    if stolen > MOST_STOLEN:
        why.append(f"the hypervisor gave {stolen:.1%} of the CPUs to others (at most {MOST_STOLEN:.0%})")
    if loaded.unexplained_share > MOST_UNEXPLAINED:
        why.append(
            f"{loaded.unexplained_share:.1%} of the CPU time was waited for although no process of the server had it"
            f" (at most {MOST_UNEXPLAINED:.0%} when quiet)"
        )
    return why


def _limits() -> tuple[str, str]:
    files = [Path(f"/proc/sys/kernel/sched_rt_{name}_us") for name in ("runtime", "period")]
    runtime, period = (file.read_text(encoding="ascii") if file.is_file() else "" for file in files)
    return runtime, period
