"""`wsc occupancy`: what the operational laws say of a request log, as a JSON-ready dict and as text to read."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.figures.occupancy import draw_occupancy
from analysis.logs.hygiene import Cleaned, clean
from analysis.logs.reading import read_log
from analysis.occupancy.curve import Curve, curve
from analysis.occupancy.identification import identify
from analysis.occupancy.inversion import Policy
from analysis.occupancy.law import intervals, law
from analysis.occupancy.streaming import alerts
from scenarios.measured import faults_in
from scenarios.occupancy_changes import Served, capacity, speeds
from scenarios.occupancy_rates import service_rates, shown_instead
from scenarios.pictures import save

_LENGTHS_S = (0.2, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 86400.0)
_MOST_INTERVALS = 120
RUN_TABLE = "requests.parquet"
"""What of the folder of a queue's run is its log."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the log's columns were said to be."""

    arrival: str | None = None
    departure: str | None = None
    duration: str | None = None
    unit: str | None = None
    priority: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a log."""

    servers: int
    """Servers that the log was made with."""
    to: tuple[int, ...] = ()
    """Other numbers of servers."""
    speed: tuple[float, ...] = ()
    """Other speeds, in that of the log's servers."""
    interval_s: float | None = None
    """Length of the intervals; None: the shortest handy one of which there are not too many."""
    policy: Policy | None = None
    """Policy that the log is replayed under; None: bounds only."""
    identify: bool = False
    """Whether the policy is to be found out."""
    quantum_s: float = 0.1
    alert: float | None = None
    """Queueing over service time from which an interval is told."""


def occupancy(log: Path, asked: Asked, columns: Columns, out: Path | None = None) -> dict[str, Any]:
    """Return what the laws say of a log file, or of the folder of a queue's run.

    Parameters
    ----------
    log : CSV, Parquet, access log of nginx or Apache, or Standard Workload Format, gzipped or not
    asked : servers and what else is wanted
    columns : names and unit, where the file does not say them
    out : folder for a picture

    Raises
    ------
    FaultsError
        If the file cannot be used, with all its faults.
    ValueError
        If the policy cannot be replayed on so many servers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.csv"
    ...     _ = file.write_text("arrival_s,departure_s\\n0,2\\n1,3\\n")
    ...     said = occupancy(file, Asked(servers=1), Columns())
    >>> said["service_time_s"], said["queueing_time_s"], said["peak"]
    (3.0, 1.0, 2)
    """
    file = log / RUN_TABLE if log.is_dir() else log
    with faults_in(log):
        read = read_log(file, **asdict(columns))
        cleaned = clean(read.table, asked.servers, read.at_application)
        seen = _curve(cleaned)
    payload = {"kind": "occupancy", "log": str(log), "origin_s": read.origin_s, **laws(cleaned, seen, asked)}
    payload["notes"] = [*read.notes, *payload["notes"]]
    if out is not None:
        parts = pd.DataFrame(payload["intervals"])
        payload["figures"] = [str(each) for each in save(draw_occupancy(seen, asked.servers, parts), out / "occupancy")]
    return payload


def _curve(log: Cleaned) -> Curve:
    if not log.paired:
        return curve(log.arrival_s, log.departure_s[~np.isnan(log.departure_s)])
    return curve(log.arrival_s, log.departure_s)


def laws(log: Cleaned, seen: Curve, asked: Asked) -> dict[str, Any]:
    """Return what the laws say of a log that is fit for them.

    Parameters
    ----------
    log : requests
    seen : their occupancy
    asked : servers and what else is wanted

    Raises
    ------
    ValueError
        If the policy cannot be replayed on so many servers.

    Examples
    --------
    >>> log = clean(pd.DataFrame({"arrival_s": [0.0, 1.0], "departure_s": [2.0, 3.0]}), servers=1)
    >>> said = laws(log, _curve(log), Asked(servers=1, to=(2,), policy="ps"))
    >>> said["capacity"][0]["queueing_s_high"], said["capacity"][0]["replay_s"]
    (0.0, 0.0)
    """
    total = law(seen, asked.servers)
    interval_s = asked.interval_s or _handy(seen.end_s - seen.start_s)
    parts = intervals(seen, asked.servers, interval_s)
    policy, identified, notes = _policy(log, asked)
    served, completed = Served(asked.servers, policy, asked.quantum_s), service_rates(log)
    other = shown_instead(completed, asked.servers)
    if other is not None:
        notes.append(f"completions show {other} servers, not {asked.servers}: both the work done and the rates do")
    payload = {
        "requests": len(log.arrival_s),
        "unfinished": log.unfinished,
        "repaired": log.repaired,
        "servers": asked.servers,
        "start_s": seen.start_s,
        "end_s": seen.end_s,
        "service_time_s": total.service_time_s,
        "queueing_time_s": total.queueing_time_s,
        "response_time_s": total.response_time_s,
        "utilisation": total.utilisation,
        "peak": total.peak,
        "policy": policy,
        "identified": identified,
        "interval_s": interval_s,
        "intervals": parts.to_dict("records"),
        "capacity": capacity(log, seen, served, asked.to) if asked.to else [],
        "speeds": speeds(log, seen, served, asked.speed),
        **completed,
        "findings": [asdict(each) for each in log.findings],
        "notes": notes,
    }
    if asked.alert is not None:
        payload["alerts"] = alerts(parts, asked.alert).to_dict("records")
    return payload


def _handy(length_s: float) -> float:
    """Return the shortest handy interval of which there are not too many."""
    return next(
        (each for each in _LENGTHS_S if length_s <= _MOST_INTERVALS * each), max(length_s, 1.0) / _MOST_INTERVALS
    )


def _policy(log: Cleaned, asked: Asked) -> tuple[Policy | None, dict[str, Any] | None, list[str]]:
    """Return the policy to replay under, how it was identified, and why there is none."""
    if not (asked.policy or asked.identify):
        return None, None, []
    if not log.paired:
        return None, None, ["departures belong to no arrivals: neither a policy nor a replay can be had, only bounds"]
    if asked.policy == "priority" and log.priority is None:
        raise ValueError("policy priority needs the class of each request: --priority COLUMN")
    if asked.policy:
        return asked.policy, None, []
    found = identify(log.arrival_s, log.departure_s, priority=log.priority, quantum_s=asked.quantum_s)
    if found.policy is None:
        return None, None, [f"no policy identified: {found.reason}"]
    notes = []
    if found.servers != asked.servers:
        notes.append(f"the log speaks for {found.servers} servers under {found.policy}, not {asked.servers}: no replay")
    identified = {"policy": found.policy, "servers": found.servers, "score": found.score}
    return found.policy if found.servers == asked.servers else None, identified, notes
