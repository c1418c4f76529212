"""What really happened at a simulated queue, beside what the operational laws say of its log."""

import math
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.queues.world import QueueWorld
from scenarios.runs.rundir import Run
from sim.queues.distributions import mean


@dataclass(frozen=True, slots=True)
class QueueTruth:
    """What the servers really did; NaN where nobody knows."""

    utilisation: float = math.nan
    """Of all servers from the first arrival to the last departure, with the work that is in no log."""
    service_time_s: float = math.nan
    """Time that requests of the log were on servers."""
    queueing_time_s: float = math.nan
    """Time that requests of the log waited beyond that for a server, a lock or admission."""


@dataclass(frozen=True, slots=True)
class LawErrors:
    """By how much the laws are off, over the true service time: queueing may be nothing at all."""

    service: float
    queueing: float


def truth(run: Run, world: QueueWorld) -> QueueTruth:
    """Return what the servers really did.

    `service_time_s` is the time that requests of the log were on servers; `utilisation` is of all servers from the
    first arrival to the last departure of whatever they worked on, with what is in no log. `queueing_time_s` is what
    the requests of the log waited beyond that for a server, a lock or admission, from when they came to the machine;
    time blocked on other devices is neither, and is taken as its mean.

    Parameters
    ----------
    run : of a queue scenario; without its ``truth_`` tables all is NaN
    world : what was asked
    """
    if not has_truth(run):
        return QueueTruth()
    requests = run.table("truth_requests", ["request", "arrival_s", "departure_s", "demand_s"])
    cpu = run.table("truth_cpu")
    length_s = cpu["end_s"] - cpu["start_s"]
    busy_s = world.station.servers * float((cpu["utilisation"] * length_s).sum())
    logged = requests["request"] >= 0
    whole_s, mine = float(requests["demand_s"].sum()), requests[logged]
    service_s = busy_s * float(mine["demand_s"].sum()) / whole_s if whole_s else 0.0
    response_s = float((mine["departure_s"] - mine["arrival_s"]).sum())
    blocking = world.contention.blocking_s
    blocked_s = len(mine) * mean(blocking) if blocking is not None else 0.0
    span_s = float(requests["departure_s"].max() - requests["arrival_s"].min()) if len(requests) else 0.0
    return QueueTruth(
        utilisation=busy_s / (world.station.servers * span_s) if span_s else math.nan,
        service_time_s=service_s,
        queueing_time_s=response_s - service_s / world.contention.parallelism - blocked_s,
    )


def on_s(run: Run, start_s: Floats, end_s: Floats) -> Floats:
    """Return the server time of a run whose servers come and go, between some times: (n,) arrays, seconds."""
    servers = run.table("servers", ["time_s", "servers"])
    time_s, on = servers["time_s"].to_numpy(), servers["servers"].to_numpy()
    before_s = np.concatenate(([0.0], np.cumsum(on[:-1] * np.diff(time_s))))

    def until(at_s: Floats) -> Floats:
        last = np.maximum(np.searchsorted(time_s, at_s, "right") - 1, 0)
        return np.asarray(before_s[last] + on[last] * (at_s - time_s[last]))

    return until(end_s) - until(start_s)


def has_truth(run: Run) -> bool:
    """Return whether a run of a queue has its exact tables."""
    return run.has("truth_requests") and run.has("truth_cpu")


def errors(service_time_s: float, queueing_time_s: float, true: QueueTruth) -> LawErrors:
    """Return by how much the laws are off."""
    service_s = true.service_time_s
    if not service_s > 0:
        return LawErrors(math.nan, math.nan)
    return LawErrors((service_time_s - service_s) / service_s, (queueing_time_s - true.queueing_time_s) / service_s)
