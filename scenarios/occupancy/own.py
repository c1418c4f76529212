"""`wsc occupancy`: what the operational laws say of a request log, as a JSON-ready dict and as text to read."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from analysis.figures.occupancy.occupancy import draw_occupancy
from analysis.occupancy.curve import Curve, curve
from analysis.occupancy.inversion import Policy
from analysis.occupancy.law import busy_distribution, intervals, law, queue_distribution
from analysis.occupancy.logs.hygiene import Cleaned, clean
from analysis.occupancy.logs.reading import read_log
from analysis.occupancy.logs.sources import Log
from analysis.occupancy.slices import MOST_SLICES
from analysis.occupancy.streaming import alerts
from scenarios.files.faults import Fault, FaultsError
from scenarios.files.options import refuse
from scenarios.occupancy.changes import capacity, speeds
from scenarios.occupancy.policy import Served, caveats, hindrance, settle
from scenarios.occupancy.rates import COARSE, servers_test, service_rates
from scenarios.runs.pictures import save
from scenarios.wsmeter.own import faults_in

_LENGTHS_S = (0.2, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1800.0, 3600.0, 86400.0)
_MOST_INTERVALS = 120
_LONGEST_QUEUE = 1000
"""Shares of time with so many waiting are told; quantiles are of all."""
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


def occupancy(
    log: Path, asked: Asked, columns: Columns, out: Path | None = None, *, given: Log | None = None
) -> dict[str, Any]:
    """Return what the laws say of a log file, or of the folder of a run.

    Parameters
    ----------
    log : CSV, Parquet, access log of a web server or proxy, or Standard Workload Format, gzipped or not
    asked : servers and what else is wanted
    columns : names and unit, where the file does not say them
    out : folder for a picture
    given : the log, if it is no file: a stay of a fleet's run

    Raises
    ------
    FaultsError
        If the file cannot be used, with all its faults, or the policy not be replayed, or intervals are too short.

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
    if given is None and log.is_dir() and not file.exists():
        problem = (
            f"is no run with requests: neither {RUN_TABLE} of a queue's run nor stay_requests of a fleet's is there"
        )
        raise FaultsError([Fault(str(log), 0, 0, "", problem)])
    with faults_in(log):
        read = given or read_log(file, **asdict(columns))
        cleaned = clean(read.table, asked.servers, read.resolution_s)
        cleaned = replace(cleaned, findings=(*read.findings, *cleaned.findings))
        seen = _curve(cleaned)
    _refuse(asked, cleaned, seen)
    payload = {"kind": "occupancy", "log": str(log), "origin_s": read.origin_s, **laws(cleaned, seen, asked)}
    payload["notes"] = [*read.notes, *payload["notes"]]
    if given is None:
        payload["notes"] += _doubts(payload["servers_test"], asked.servers)
    if out is not None:
        payload["figures"] = _drawn(seen, asked.servers, payload, out)
    return payload


def _doubts(test: dict[str, str], servers: int) -> Iterator[str]:
    """Yield what must be known of a number of servers that no test confirms, unless a finding says it."""
    if test["verdict"] == "not tested" and test["reason"] != COARSE:
        yield f"the number of servers was not tested: {test['reason']}"
    elif test["verdict"] == "cannot tell":
        yield f"whether {servers} is the number of servers cannot be told: {test['reason']}"


def _refuse(asked: Asked, log: Cleaned, seen: Curve) -> None:
    """Raise the faults of options that a log is no log for."""
    if asked.interval_s is not None and (seen.end_s - seen.start_s) / asked.interval_s + 2 > MOST_SLICES:
        least = f"{1.001 * (seen.end_s - seen.start_s) / MOST_SLICES:.4g}"
        refuse("--interval", f"should be at least {least} s, {MOST_SLICES} intervals", f"{asked.interval_s:g} s")
    if log.paired and asked.policy is not None:
        said = Served(asked.servers, asked.policy, asked.quantum_s)
        option, problem = hindrance(said, log.priority is not None, _slowest_s(asked, seen))
        if option:
            refuse(option, problem, f"{asked.quantum_s:g} s" if option == "--quantum" else asked.policy)


def _slowest_s(asked: Asked, seen: Curve) -> float:
    """Return the service time of all requests on the slowest servers that are asked about."""
    return law(seen, asked.servers).service_time_s / min((1.0, *asked.speed))


def _drawn(seen: Curve, servers: int, payload: dict[str, Any], out: Path) -> list[str]:
    """Return the files of the picture; none, with a note, of a log without length."""
    if not payload["intervals"]:
        payload["notes"].append("the log is one instant: no picture")
        return []
    figure = draw_occupancy(seen, servers, pd.DataFrame(payload["intervals"]))
    return [str(each) for each in save(figure, out / "occupancy")]


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
    said = Served(asked.servers, asked.policy, asked.quantum_s)
    found = settle(log, said, _slowest_s(asked, seen), find_out=asked.identify)
    served, notes, completed = found.served, list(found.notes), service_rates(log)
    test = servers_test(log, completed, asked.servers, total.peak)
    if test["verdict"] == "contradicted" and not any(test["reason"].startswith(each.name) for each in log.findings):
        notes.append(test["reason"])
    notes += caveats(served, asked.to, asked.speed)
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
        **_distributions(seen, asked.servers),
        "policy": served.policy if served.replayed else None,
        "identified": found.identified,
        "replay_misfits": found.misfits,
        "interval_s": interval_s,
        "intervals": parts.to_dict("records"),
        "capacity": capacity(log, seen, served, asked.to) if asked.to else [],
        "speeds": speeds(log, seen, served, asked.speed),
        **completed,
        "servers_test": test,
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


def _distributions(seen: Curve, servers: int) -> dict[str, Any]:
    """Return the shares of time with 0, 1, ... busy servers and requests waiting, with median and 95th percentile."""
    busy, waiting = busy_distribution(seen, servers)["share"], queue_distribution(seen, servers)["share"]
    return {
        "busy": busy.tolist(),
        "busy_quantiles": _quantiles(busy),
        "waiting": waiting.head(_LONGEST_QUEUE).tolist(),
        "waiting_quantiles": _quantiles(waiting),
    }


def _quantiles(share: pd.Series) -> dict[str, int | None]:
    """Return the least values that are not exceeded for half and for 95% of the time; None for no time at all."""
    up_to = share.cumsum().to_numpy()
    if not np.isfinite(up_to).all():
        return {"p50": None, "p95": None}
    # Rounding may leave the sum of a half a little short of it.
    return {f"p{cent}": int(np.searchsorted(up_to, cent / 100 - 1e-12)) for cent in (50, 95)}
