"""What a run says of the services whose requests were served: the Occupancy Law of each, in a table."""

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from scenarios.runs.rundir import Run, epoch_length_s
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import number, seconds, share
from scenarios.views.section import Table, table

_NEEDED = ("stay_requests", "instance_epochs", "instances", "jobs", "epochs")


@dataclass(frozen=True, slots=True)
class ServedService:
    """What the Occupancy Law says of a service whose requests were served."""

    service: str
    stays: int
    requests: int
    unfinished: int
    """Without a departure."""
    refused: int
    """That came to a full instance; they are not among the requests."""
    utilisation: float
    """0..1."""
    queueing_ratio: float
    """Queueing over service time."""
    response_time_s: float
    """Mean of those that finished."""
    response_median_s: float

    def payload(self) -> Payload:
        """Return what JSON says of it."""
        return asdict(self)

    def cells(self, *, refused: bool) -> tuple[str, ...]:
        """Return its row of the table, with the requests that were refused or without."""
        numbers = (self.stays, self.requests, self.unfinished, *((self.refused,) if refused else ()))
        counts = (f"{count:,}" for count in numbers)
        times = (seconds(time_s, 2) for time_s in (self.response_time_s, self.response_median_s))
        return self.service, *counts, share(self.utilisation, 1), number(self.queueing_ratio, ".2f"), *times

    def responds(self) -> str:
        """Return in words how busy it was, how long requests queued and how soon it answered."""
        left = f", {self.unfinished:,} of {self.requests:,} without a departure" if self.unfinished else ""
        left += f", {self.refused:,} more refused" if self.refused else ""
        return (
            f"{self.service} {self.utilisation:.1%} busy, {self.queueing_ratio:.2f} of service time in queueing, "
            f"responds in {self.response_time_s:.2f} s (median {self.response_median_s:.2f} s){left}"
        )


def services(run: Run) -> list[ServedService]:
    """Return what the Occupancy Law says of each service that is served, by name; nothing of a run without.

    Raises
    ------
    RunError
        If a table lacks a column.
    """
    if not all(run.has(name) for name in _NEEDED):
        return []
    requests, jobs = run.table("stay_requests"), run.table("jobs", ["job", "name"])
    stays = run.table("instances", ["residence", "job", "quota_vcpu"]).merge(jobs, on="job").set_index("residence")
    epochs = run.table("instance_epochs", ["residence", "epoch"]).groupby("residence")["epoch"].agg(["min", "max"])
    bounds_s = epochs.assign(max=epochs["max"] + 1) * epoch_length_s(run)
    first_s, last_s = bounds_s["min"].to_dict(), bounds_s["max"].to_dict()
    rows = [
        _stay(str(stays["name"][at]), round(float(stays["quota_vcpu"][at])), part, (first_s[at], last_s[at]))
        for at, part in requests.groupby("residence")
    ]
    if not rows:
        return []
    median_s = _medians_s(requests, stays["name"])
    unserved = run.table("stay_unserved", ["residence"])["residence"] if run.has("stay_unserved") else pd.Series([])
    refused = unserved.map(stays["name"]).value_counts().to_dict()
    sums = pd.DataFrame(rows).groupby("service").sum()
    return [_service(str(name), row, median_s[name], refused.get(name, 0)) for name, row in sums.iterrows()]


def _medians_s(requests: pd.DataFrame, name: pd.Series) -> dict[Hashable, float]:
    """Return the median response time of the requests of each service that finished, NaN if none did."""
    response_s = (requests["departure_s"] - requests["arrival_s"]).astype(np.float64)
    finished_s = response_s.where(np.isfinite(response_s))
    return finished_s.groupby(requests["residence"].map(name).to_numpy()).median().to_dict()


def _stay(service: str, servers: int, part: pd.DataFrame, bounds_s: tuple[float, float]) -> dict[str, str | float]:
    """Return sums of one stay."""
    arrival, departure = (part[name].to_numpy(np.float64) for name in ("arrival_s", "departure_s"))
    occupancy = law(curve(arrival, departure, *bounds_s), servers)
    response_s = (departure - arrival)[np.isfinite(departure)]
    return {
        "service": service,
        "stays": 1,
        "requests": len(part),
        "finished": response_s.size,
        "response_s": float(response_s.sum()),
        "service_s": occupancy.service_time_s,
        "queueing_s": occupancy.queueing_time_s,
        "room_s": servers * (occupancy.end_s - occupancy.start_s),
    }


def _service(name: str, sums: "pd.Series[float]", median_s: float, refused: int) -> ServedService:
    with np.errstate(divide="ignore", invalid="ignore"):
        return ServedService(
            name,
            stays=int(sums["stays"]),
            requests=int(sums["requests"]),
            unfinished=int(sums["requests"] - sums["finished"]),
            refused=refused,
            utilisation=float(np.divide(sums["service_s"], sums["room_s"])),
            queueing_ratio=float(np.divide(sums["queueing_s"], sums["service_s"])),
            response_time_s=float(np.divide(sums["response_s"], sums["finished"])),
            response_median_s=median_s,
        )


def service_table(rows: Sequence[ServedService]) -> Table:
    """Return what `services` says as a table."""
    refused = any(row.refused for row in rows)
    counts = ("stays", "requests", "unfinished", *(("refused",) if refused else ()))
    heads = ("service", *counts, "busy", "queueing / service", "response", "median")
    cells = [row.cells(refused=refused) for row in rows]
    return table(heads, cells, "services that were served, by the Occupancy Law")
