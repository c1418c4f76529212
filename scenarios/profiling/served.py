"""What a run says of the services whose requests were served: the Occupancy Law of each, in a table."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from scenarios.runs.epochs import epoch_length_s
from scenarios.runs.rundir import Run

_NEEDED = ("stay_requests", "instance_epochs", "instances", "jobs", "epochs")


def services(found: Run) -> list[dict[str, Any]]:
    """Return what the Occupancy Law says of each service that is served; nothing of a run without.

    Parameters
    ----------
    found : a finished run

    Returns
    -------
    list of dict
        service, stays, requests, unfinished, utilisation (0..1), queueing_ratio (queueing over service time),
        response_time_s, response_median_s (mean and median of those that finished); by name.

    Raises
    ------
    RunError
        If a table lacks a column.

    Examples
    --------
    >>> from pathlib import Path
    >>> services(Run(Path("nowhere"), {}))
    []
    """
    if not all(found.has(name) for name in _NEEDED):
        return []
    requests, jobs = found.table("stay_requests"), found.table("jobs", ["job", "name"])
    stays = found.table("instances", ["residence", "job", "quota_vcpu"]).merge(jobs, on="job").set_index("residence")
    epochs = found.table("instance_epochs", ["residence", "epoch"]).groupby("residence")["epoch"].agg(["min", "max"])
    bounds_s = epochs.assign(max=epochs["max"] + 1) * epoch_length_s(found.table("epochs", ["start_s"]))
    first_s, last_s = bounds_s["min"].to_dict(), bounds_s["max"].to_dict()
    rows = [
        _stay(str(stays["name"][at]), round(float(stays["quota_vcpu"][at])), part, (first_s[at], last_s[at]))
        for at, part in requests.groupby("residence")
    ]
    sums = pd.DataFrame(rows, columns=list(rows[0]) if rows else ["service"]).groupby("service").sum()
    median_s = _medians_s(requests, stays["name"]) if rows else {}
    return [_said(str(name), row) | {"response_median_s": median_s[name]} for name, row in sums.iterrows()]


def _medians_s(requests: pd.DataFrame, name: pd.Series) -> dict[Hashable, float]:
    """Return the median response time of the requests of each service that finished, NaN if none did."""
    response_s = (requests["departure_s"] - requests["arrival_s"]).astype(np.float64)
    finished_s = response_s.where(np.isfinite(response_s))
    return finished_s.groupby(requests["residence"].map(name).to_numpy()).median().to_dict()


def _stay(service: str, servers: int, part: pd.DataFrame, bounds_s: tuple[float, float]) -> dict[str, Any]:
    """Return sums of one stay."""
    arrival, departure = (part[name].to_numpy(np.float64) for name in ("arrival_s", "departure_s"))
    made = law(curve(arrival, departure, *bounds_s), servers)
    response_s = (departure - arrival)[np.isfinite(departure)]
    return {
        "service": service,
        "stays": 1,
        "requests": len(part),
        "finished": response_s.size,
        "response_s": float(response_s.sum()),
        "service_s": made.service_time_s,
        "queueing_s": made.queueing_time_s,
        "room_s": servers * (made.end_s - made.start_s),
    }


def _said(name: str, sums: "pd.Series[float]") -> dict[str, Any]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "service": name,
            "stays": int(sums["stays"]),
            "requests": int(sums["requests"]),
            "unfinished": int(sums["requests"] - sums["finished"]),
            "utilisation": float(np.divide(sums["service_s"], sums["room_s"])),
            "queueing_ratio": float(np.divide(sums["queueing_s"], sums["service_s"])),
            "response_time_s": float(np.divide(sums["response_s"], sums["finished"])),
        }


def service_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return what `services` says as a table to be printed.

    Examples
    --------
    >>> service_table([]).row_count
    0
    """
    table = Table(title="services that were served, by the Occupancy Law", box=SIMPLE_HEAD, padding=0)
    table.add_column("service", overflow="ellipsis", no_wrap=True)
    for heading in ("stays", "requests", "unfinished", "busy", "queueing / service", "response", "median"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        counts = (f"{row[name]:,}" for name in ("stays", "requests", "unfinished"))
        shares = f"{row['utilisation']:.1%}", f"{row['queueing_ratio']:.2f}"
        times = (f"{row[name]:.2f} s" for name in ("response_time_s", "response_median_s"))
        table.add_row(escape(row["service"]), *counts, *shares, *times)
    return table
