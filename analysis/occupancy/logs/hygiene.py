"""Faults that request logs have: found, repaired where that is safe, and always reported."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.occupancy.logs import clocks
from analysis.occupancy.logs.conservation import conserves_work
from analysis.occupancy.logs.copies import copies
from analysis.occupancy.logs.losses import lost_arrivals, lost_departures
from analysis.occupancy.logs.repair import imputed, overdue
from analysis.occupancy.logs.sources import Finding, in_seconds
from models.arrays import Bools, Floats, Ints
from models.errors import InputError

_LOOKED_AT = 200_000
"""Requests from the beginning of the log that tests look at."""
_COARSE = 0.05
"""Stamps coarser than this part of the median response time are worth a finding."""
_UNTESTED = "all figures are estimates, bounds are not guaranteed; clocks and servers are not tested"
_BATCHES = "all kept: batches of equal requests look like this too"
_NAMES = "; a name for each request, such as a column request_id, would show which are copies"
_ASKED = "is the duration another field, or in another unit (--unit)?"
_IDLE = 0.001
"""So small a utilisation is worth a question."""
_FEW = 30
"""Fewer stamps may be round by chance."""
_OFTEN = 0.01
"""A larger share of departures before their arrivals is a clock's fault, a smaller one that of the rows."""
_SWAPPED = 0.95
"""So large a share is neither's: the columns are."""


@dataclass(frozen=True, slots=True, eq=False)
class Cleaned:
    """A log that the law can be applied to."""

    arrival_s: Floats
    """(n,) seconds, none missing."""
    departure_s: Floats
    """(n,) the same requests' departures if the log has pairs, NaN: unfinished; (d,) sorted ones if it has not."""
    findings: tuple[Finding, ...]
    repaired: int
    """Requests that were changed, added or left out."""
    paired: bool
    """Whether departures belong to arrivals."""
    priority: Ints | None = None
    """(n,) class of each request, 0 served first, if the log has them and pairs."""

    @property
    def unfinished(self) -> int:
        """Requests that have not left at the end."""
        return len(self.arrival_s) - int(np.count_nonzero(~np.isnan(self.departure_s)))


def clean(log: pd.DataFrame, servers: int, resolution_s: float = 0.0) -> Cleaned:
    """Return a log without what would mislead the law, and what was found in it.

    Rows are left out as written twice only if the names of requests show it (`copies`); other rows alike are reported,
    if chance does not explain them. Requests that were cancelled before any service are left out. Departures before
    their arrivals are moved if a clock is off, else left out. Lost departures and arrivals are put in: one lost
    departure would count as a request that waits for ever. Coarse stamps, drifting clocks, servers that idle while
    requests wait, and durations that may be something else are reported only; clocks and servers are not tested where
    stamps are coarse, which would blame them for it.

    Parameters
    ----------
    log : columns arrival_s and departure_s, NaN: not seen; perhaps `request`, which names requests, `id`, `rest`,
        `own` and `stamp_s` (`copies`), `priority`, and `cancelled`, which left without service. Rows with one of the
        two stamps each are a log without pairs
    servers : k >= 1
    resolution_s : what the stamps were multiples of before a reader put them between; 0: as the stamps are

    Raises
    ------
    ValueError
        If no arrival or no departure is left, or nearly all departures are before their arrivals.

    Examples
    --------
    >>> log = pd.DataFrame({"arrival_s": [0.0, 1.0, 1.0, 2.0, 9.2], "departure_s": [2.0, 3.0, 3.0, np.nan, 10.9]})
    >>> for found in clean(log.assign(request=[1, 2, 2, 3, 4]), servers=1).findings:
    ...     print(found)
    rows written twice: 1; the same request again, name and times; left out
    lost departures: 1; open for longer than 6 s, three times the longest response; put in as the request before took
    """
    if servers < 1:
        raise InputError(f"servers must be at least 1, got {servers}")
    rows = log[["arrival_s", "departure_s"]].notna().any(axis=1)
    log = log[rows] if not rows.all() else log
    came, left = (log[name].to_numpy(dtype=np.float64) for name in ("arrival_s", "departure_s"))
    tick_s = max(resolution_s, _tick(came, left))
    kept, findings, alike = _once(log, tick_s)
    if "cancelled" in kept:
        kept, cancelled = _served(kept)
        findings += cancelled
    came, left = (kept[name].to_numpy(dtype=np.float64) for name in ("arrival_s", "departure_s"))
    if np.isnan(came).all() or np.isnan(left).all():
        raise InputError(f"the log has no {'arrivals' if np.isnan(came).all() else 'departures'}")
    paired = not np.isnan(left - came).all()
    classes = kept["priority"].to_numpy(dtype=np.int64) if paired and "priority" in kept else None
    given = Cleaned(came, left, (), 0, paired, classes)
    made = _pairs(given) if paired else _lists(given, servers)
    told = tuple(_told(made, servers, tick_s))
    findings = [*findings, *made.findings]
    return replace(made, findings=(*findings, *alike, *told), repaired=sum(each.count for each in findings))


def _tick(came: Floats, left: Floats) -> float:
    """Return what stamps are multiples of, before any repair puts others in."""
    if len(came) < _FEW:
        return 0.0
    order = np.argsort(came, kind="stable")[:_LOOKED_AT]
    return max(clocks.resolution_s(came[order]), clocks.resolution_s(left[order]))


def _once(log: pd.DataFrame, tick_s: float) -> tuple[pd.DataFrame, list[Finding], list[Finding]]:
    """Return a log without rows that are certainly copies, what was left out, and what may be copies."""
    seen = copies(log, tick_s)
    kept, left_out, reported = log, list[Finding](), list[Finding]()
    if seen.again.any():
        named = "the same request again, name and times"
        by_id = "request" in log or "id" in log
        evidence = named if by_id else "the whole row again, in a log whose rows tell their requests apart"
        kept, left_out = log[~seen.again], [Finding("rows written twice", int(seen.again.sum()), evidence, "left out")]
    if seen.beyond_chance:
        evidence = f"pairs of rows, in groups of {seen.usual:,}; chance explains {seen.by_chance:,.0f}"
        done = _BATCHES if "request" in log else _BATCHES + _NAMES
        reported.append(Finding("rows alike", seen.pairs, evidence, done))
    if seen.conflicts:
        evidence = "the name of an earlier request, but other times"
        done = "all kept: they may be retries, or no names of requests"
        reported.append(Finding("names that repeat", seen.conflicts, evidence, done))
    return kept, left_out, reported


def _served(log: pd.DataFrame) -> tuple[pd.DataFrame, list[Finding]]:
    """Return a log without requests that left before any service, and how long they had waited.

    On servers that work whenever somebody waits, such requests wait only while all servers serve others: without them
    the service time is the same, and queueing that of the others. Were they kept, the law would take their waiting for
    service wherever a server idled meanwhile.
    """
    cancelled = log["cancelled"].to_numpy(dtype=np.bool_)
    if not cancelled.any():
        return log, []
    waited = (log["departure_s"] - log["arrival_s"])[cancelled]
    unknown = int(waited.isna().sum())
    evidence = "how long they waited is unknown"
    if unknown < len(waited):
        evidence = f"they waited {in_seconds(waited.sum())} in all" + (
            f", without {unknown:,} whose waiting is unknown" if unknown else ""
        )
    done = "left out, and their waiting is in no figure: they were never served"
    if cancelled.all():
        raise InputError(f"all {len(log):,} jobs were cancelled before they ran: none was served")
    return log[~cancelled], [Finding("cancelled before service", int(cancelled.sum()), evidence, done)]


def _pairs(log: Cleaned) -> Cleaned:
    """Return a log of pairs with possible stamps and without lost ones."""
    findings = list[Finding]()
    backwards = log.departure_s < log.arrival_s
    if backwards.any():
        log, found = _forwards(log, backwards)
        findings.append(found)
    came, left = log.arrival_s, log.departure_s
    for name, both in (("departures", (came, left)), ("arrivals", (-left, -came))):
        lost = overdue(*both)
        if lost.any():
            longest = float(np.nanmax(left - came))
            evidence = f"open for longer than {3 * longest:.3g} s, three times the longest response"
            done = f"put in as the request {'before' if name == 'departures' else 'after'} took"
            findings.append(Finding(f"lost {name}", int(lost.sum()), evidence, done))
            made = imputed(*both, lost)
            came, left = (came, made) if name == "departures" else (-made, left)
    early = np.isnan(came)
    if early.any():
        first = float(min(np.nanmin(came), np.nanmin(left)))
        findings.append(
            Finding("departures without arrival", int(early.sum()), f"from {first:g} s on", "there from the start")
        )
        came = np.where(early, first, came)
    return replace(log, arrival_s=came, departure_s=left, findings=tuple(findings))


def _forwards(log: Cleaned, backwards: Bools) -> tuple[Cleaned, Finding]:
    """Return a log without departures before arrivals: all departures moved, or those rows left out.

    Raises
    ------
    ValueError
        If they nearly all are.
    """
    came, left = log.arrival_s, log.departure_s
    count, least = int(backwards.sum()), float(np.nanmin(left - came))
    pairs = int(np.count_nonzero(~np.isnan(left - came)))
    if count > _SWAPPED * pairs:
        raise InputError(f"are arrival and departure swapped? {count:,} of {pairs:,} requests leave before they come")
    evidence = f"the least response time is {least:.3g} s"
    if count > _OFTEN * pairs:
        done = f"the clocks differ by {-least:.3g} s or more, all departures moved by that"
        return replace(log, departure_s=left - least), Finding("departures before arrivals", count, evidence, done)
    keep = ~backwards
    classes = None if log.priority is None else log.priority[keep]
    kept = replace(log, arrival_s=came[keep], departure_s=left[keep], priority=classes)
    return kept, Finding("departures before arrivals", count, evidence, "left out")


def _lists(log: Cleaned, servers: int) -> Cleaned:
    """Return separate arrivals and departures, with those put in that were lost."""
    came, left = np.sort(log.arrival_s[~np.isnan(log.arrival_s)]), np.sort(log.departure_s[~np.isnan(log.departure_s)])
    findings = list[Finding]()
    arrivals = lost_arrivals(came, left, servers)
    came = np.sort(np.concatenate((came, arrivals)))
    departures = lost_departures(came, left, servers)
    for name, made, evidence in (
        ("arrivals", arrivals, "at some time more requests had left than had come"),
        ("departures", departures, "the server would never be empty again"),
    ):
        if len(made):
            findings.append(Finding(f"lost {name}", len(made), evidence, "put in where they are likeliest"))
    left = np.sort(np.concatenate((left, departures)))
    padded = np.full(max(len(came), len(left)), np.nan)
    padded[: len(left)] = left
    return replace(log, arrival_s=came, departure_s=padded, findings=tuple(findings))


def _told(log: Cleaned, servers: int, tick_s: float) -> Iterator[Finding]:
    """Yield what is only reported: unfinished requests, doubtful durations, coarse stamps, clocks, servers."""
    if log.unfinished:
        yield Finding(
            "unfinished requests",
            log.unfinished,
            "no departure until the end of the log",
            "kept: they count as present",
        )
    took = log.departure_s - log.arrival_s
    usual = float(np.nanmedian(took)) if not np.isnan(took).all() else 0.0
    if log.paired and len(took) >= _FEW:
        yield from _doubtful(log, took, servers)
    if tick_s > _COARSE * usual:
        evidence = f"multiples of {tick_s:g} s, responses take {usual:.3g} s"
        yield Finding("coarse stamps", len(took), evidence, _UNTESTED)
    elif log.paired:
        order = np.argsort(log.arrival_s, kind="stable")[:_LOOKED_AT]
        yield from _drift(log.arrival_s[order], log.departure_s[order], servers)
        yield from _servers(log.arrival_s[order], log.departure_s[order], servers)


def _doubtful(log: Cleaned, took: Floats, servers: int) -> Iterator[Finding]:
    """Yield what hardly any log has: durations of another field, or in another unit, make it."""
    known, length_s = took[~np.isnan(took)], _length_s(log)
    usual = float(np.median(known))
    least_s = min(float(np.ptp(stamps[~np.isnan(stamps)])) for stamps in (log.arrival_s, log.departure_s))
    if usual == 0:
        count = int(np.count_nonzero(known == 0))
        evidence = f"half or more of the {len(known):,} responses take no time"
        yield Finding("responses of 0 s", count, evidence, f"kept: {_ASKED} Or are the stamps too coarse?")
    elif usual > least_s > 0:
        evidence = f"half of the responses take {usual:.3g} s or more, the stamps span {least_s:.3g} s"
        count = int(np.count_nonzero(known > least_s))
        yield Finding("responses longer than the log", count, evidence, f"kept: {_ASKED}")
    busy = float(known.sum()) / (servers * length_s) if length_s > 0 else 1.0
    if 0 < busy < _IDLE:
        evidence = f"all responses together keep {servers} servers busy for {busy:.2g} of the time at most"
        yield Finding("hardly any load", len(known), evidence, f"kept: {_ASKED}")


def _length_s(log: Cleaned) -> float:
    return float(np.fmax(np.nanmax(log.departure_s), np.nanmax(log.arrival_s)) - np.nanmin(log.arrival_s))


def _drift(came: Floats, left: Floats, servers: int) -> Iterator[Finding]:
    took = left - came
    usual = float(np.nanmedian(took)) if not np.isnan(took).all() else 0.0
    gone = np.sort(left[~np.isnan(left)])
    met = np.arange(len(came)) - np.searchsorted(gone, came, side="right")
    moved = clocks.drift(came, took, met, servers)
    if moved is not None and moved.p_value < clocks.LEVEL and abs(moved.whole_s) > clocks.MATERIAL * usual:
        evidence = f"least responses change by {moved.whole_s:+.3g} s over the log"
        yield Finding("drift", len(came), evidence, "reported only: a clock drifts, or the service changes its speed")


def _servers(came: Floats, left: Floats, servers: int) -> Iterator[Finding]:
    for test in conserves_work(came, left, servers):
        if not test.against:
            continue
        longer = test.left_s > test.right_s
        where = "beside others" if test.name == "company" else "by the law"
        evidence = f"service takes {test.left_s:.3g} s {where}, {test.right_s:.3g} s alone or while nobody waits"
        if test.name == "company":
            what = "servers slow each other down" if longer else "servers help each other"
        else:
            what = (
                f"servers idle while requests wait, or are fewer than {servers}"
                if longer
                else f"more servers than {servers}"
            )
        yield Finding(what, len(came), evidence, "reported only")
