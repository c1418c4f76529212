"""What really happened at a simulated queue, beside what the operational laws say of its log."""

import math
from collections.abc import Mapping

from models.queues.world import QueueWorld
from scenarios.runs.rundir import Run
from sim.queues.distributions import mean

UNKNOWN = {"utilisation": math.nan, "service_time_s": math.nan, "queueing_time_s": math.nan}
"""What is known of a run without its ``truth_`` tables."""


def truth(run: Run, world: QueueWorld) -> dict[str, float]:
    """Return what the servers really did.

    `service_time_s` is the time that requests of the log were on servers; `utilisation` is of all servers from the
    first arrival to the last departure, with the work that is in no log. `queueing_time_s` is what the requests of the
    log waited beyond that for a server, a lock or admission, from when they came to the machine; time blocked on other
    devices is neither, and is taken as its mean.

    Parameters
    ----------
    run : of a queue scenario; without its ``truth_`` tables all is NaN
    world : what was asked

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from models.queues.world import Station
    >>> requests = {"request": [0, 1], "arrival_s": 0.0, "departure_s": [1.0, 3.0], "demand_s": [1.0, 2.0]}
    >>> cpu = {"start_s": [0.0], "end_s": [3.0], "utilisation": [1.0]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame(requests).to_parquet(Path(folder, "truth_requests.parquet"))
    ...     pd.DataFrame(cpu).to_parquet(Path(folder, "truth_cpu.parquet"))
    ...     truth(Run(Path(folder), {}), QueueWorld(station=Station(servers=1)))
    {'utilisation': 1.0, 'service_time_s': 3.0, 'queueing_time_s': 1.0}
    """
    if not has_truth(run):
        return dict(UNKNOWN)
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
    span_s = float(mine["departure_s"].max() - mine["arrival_s"].min()) if len(mine) else 0.0
    return {
        "utilisation": busy_s / (world.station.servers * span_s) if span_s else math.nan,
        "service_time_s": service_s,
        "queueing_time_s": response_s - service_s / world.contention.parallelism - blocked_s,
    }


def has_truth(run: Run) -> bool:
    """Return whether a run of a queue has its exact tables."""
    return run.has("truth_requests") and run.has("truth_cpu")


def errors(estimated: Mapping[str, float], true: Mapping[str, float]) -> dict[str, float]:
    """Return by how much the laws are off: relative for service time, over service time for queueing.

    Queueing may be nothing at all, so its error is told as a share of the true service time.

    Parameters
    ----------
    estimated, true : with service_time_s and queueing_time_s

    Examples
    --------
    >>> errors({"service_time_s": 110.0, "queueing_time_s": 0.0}, {"service_time_s": 100.0, "queueing_time_s": 5.0})
    {'service': 0.1, 'queueing': -0.05}
    """
    service_s = true["service_time_s"]
    if not service_s > 0:
        return {"service": math.nan, "queueing": math.nan}
    return {
        name: (estimated[f"{name}_time_s"] - true[f"{name}_time_s"]) / service_s for name in ("service", "queueing")
    }
