"""What was not served: attempts that were refused or given up, requests that were never answered or came too late."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from scenarios.files.faults import Fault, FaultsError
from scenarios.occupancy.question import OccupancyQuery
from scenarios.runs.rundir import Run, RunError, open_run
from scenarios.views.numbers import plural
from scenarios.views.section import Block, table


@dataclass(frozen=True, slots=True)
class Unserved:
    """What became of the requests that a station with limits was asked; of retries the last one decides."""

    requests: int
    refused: int
    """Attempts that found the station full."""
    gave_up: int
    """Attempts that no server took in time."""
    timed_out: int
    """Attempts that were not done in time."""
    in_vain: float
    """Of all service, the share that those had; NaN: not known."""
    unanswered: int
    """Requests that were never served."""
    within_s: float = math.nan
    """The objective; NaN: none."""
    in_time: float = math.nan
    """Share of all requests whose answer came within it, from when they were first sent; NaN: no objective."""

    def blocks(self) -> Iterator[Block]:
        """Yield what people read."""
        rows = []
        if self.refused or self.gave_up or self.timed_out:
            rows += [("refused, the station being full", f"{self.refused:,}", "attempts")]
            rows += [("given up, no server being free in time", f"{self.gave_up:,}", "attempts")]
            if self.timed_out:
                rows += [("timed out, in line or in service", f"{self.timed_out:,}", "attempts")]
            if self.timed_out and not math.isnan(self.in_vain):
                rows += [("service that these had, in vain", f"{self.in_vain:.2%}", "of all service")]
            rows += [("never served", f"{self.unanswered:,}", f"{self.unanswered / self.requests:.2%} of the requests")]
        if not math.isnan(self.within_s):
            rows.append((f"answered within {self.within_s:g} s", f"{self.in_time:.2%}", "of the requests"))
        if rows:
            yield table((f"of {self.requests:,} requests", "number", "of"), rows, "served or not")

    def notes(self) -> Iterator[str]:
        """Yield what must be known to read figures of those that were served."""
        if self.timed_out:
            yield (
                "figures of response, service and queueing are of the requests that were served; servers also "
                "worked for those that timed out, which the law does not see: its service and queueing are off by that"
            )
        elif self.refused or self.gave_up:
            yield (
                "figures of response, service and queueing are of the requests that were served; the laws hold for "
                "them, as those that left unserved waited only while all servers worked"
            )


def unserved(run: Run, log: pd.DataFrame, within_s: float | None) -> Unserved:
    """Return what a run did not serve, and which share of all requests it served in time.

    Parameters
    ----------
    run : of a queue
    log : table `requests`, with columns arrival_s and departure_s, in order
    within_s : the objective; None: there is none
    """
    counts: Mapping[str, int] = run.manifest["counts"]
    requests = len(log) + counts.get("unanswered", 0)
    in_time = math.nan
    if within_s is not None:
        in_time = float((log["departure_s"] - _first_sent(run, log) <= within_s).sum()) / requests
    return Unserved(
        requests,
        counts.get("refused", 0),
        counts.get("gave_up", 0),
        counts.get("timed_out", 0),
        _in_vain(run),
        counts.get("unanswered", 0),
        math.nan if within_s is None else within_s,
        in_time,
    )


def elsewhere(path: Path) -> str:
    """Return why a queue's run tells nothing of other servers, or of another load; empty if it does.

    Parameters
    ----------
    path : folder of the run or one of its tables, or a log that lies beside some manifest
    """
    run = _run_of(path)
    if run is None:
        return ""
    counts: Mapping[str, int] = run.manifest["counts"]
    lost = sum(counts.get(name, 0) for name in ("refused", "gave_up", "timed_out"))
    if lost:
        ways = "refused, gave up or timed out" if counts.get("timed_out", 0) else "refused or gave up"
        return _where_lost(ways, plural(lost, "attempt"))
    if run.has("station_requests") and path.stem != "station_requests":  # that has each station's own log
        return "cannot be answered where requests passed several stations: no one number of servers made this log"
    if run.has("servers"):
        return "cannot be answered where the number of servers changed: no one number made this log"
    return ""


def _where_lost(ways: str, number: str) -> str:
    """Return why requests of which some were lost tell nothing of other servers: in which ways, and how many."""
    return (
        f"cannot be answered where requests were {ways} ({number} here): who would be, on other servers, does not "
        "follow from those that were served"
    )


def refuse_of_stay(query: OccupancyQuery, refused: int) -> None:
    """Raise the faults of the same options, if an instance of a service turned requests away, so many of them."""
    if refused:
        refuse_elsewhere(query, _where_lost("refused", f"{refused:,}"))


def refuse_elsewhere(query: OccupancyQuery, why: str) -> None:
    """Raise the faults of options about other servers or another load, if a run says nothing of them.

    Parameters
    ----------
    query : what is asked
    why : the run says nothing; empty if it does
    """
    faults = [Fault(option, 0, 0, "", why, text) for option, text in query.of_other_servers().items() if why and text]
    if faults:
        raise FaultsError(faults)


def _run_of(path: Path) -> Run | None:
    """Return the run that a folder is, or that a file is a table of; None: a log that somebody put there."""
    if path.is_dir():
        return open_run(path)
    try:
        run = open_run(path.resolve().parent)
    except RunError:
        return None  # the manifest is of another program
    return run if path.resolve().stem in run.manifest["tables"] else None


def _in_vain(run: Run) -> float:
    """Return the share of all service that attempts had which timed out; NaN where nobody knows."""
    if not (run.has("truth_requests") and run.manifest["counts"].get("timed_out", 0)):
        return math.nan
    work = run.table("truth_requests", ["request", "demand_s"])
    return float(work["demand_s"][work["request"] < 0].sum() / work["demand_s"].sum())


def _first_sent(run: Run, log: pd.DataFrame) -> "pd.Series[float]":
    """Return when each request that was served was sent first."""
    if not run.has("unserved"):
        return log["arrival_s"]
    failed = run.table("unserved", ["request", "attempt", "arrival_s"])
    failed = failed[(failed["request"] >= 0) & (failed["attempt"] == 0)]
    first = log["arrival_s"].copy()
    first.iloc[failed["request"].to_numpy()] = failed["arrival_s"].to_numpy()
    return first
