"""Faults that request logs have: found, repaired where that is safe, and always reported."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import pdtrc

from analysis.occupancy.logs.cancelled import served
from analysis.occupancy.logs.log import COARSE_STAMPS, Cleaned, LogFinding, counted
from analysis.occupancy.logs.lost import lost_arrivals, lost_departures
from analysis.occupancy.logs.network import network_option
from analysis.occupancy.logs.premises import premises
from analysis.occupancy.logs.rates import conserves_work
from models.arrays import Bools, Floats, Ints, UInts
from models.errors import InputError

LOOKED_AT = 200_000
"""Requests from the beginning of the log that tests look at."""
_COARSE = 0.05
"""Stamps coarser than this part of the median response time are worth a finding."""
_UNTESTED = (
    "all figures are estimates, bounds are not guaranteed; clocks and servers are not tested; stamps with milliseconds "
    "(nginx: $msec) would allow it"
)
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
LEVEL = 0.001
"""So rarely chance makes as many pairs alike as are reported."""
MARGIN = 2.0
"""Pairs are compared with so many times those that chance explains: neighbours are not quite independent."""
MOST_WRITTEN = 3
"""A request is written so many times at most; names that fewer than n / 3 rows differ in name something else."""
LEAST = 30
"""Rows that repeat whole: fewer may be of requests that a file happens not to tell apart."""
MOST_REUSED = 0.1
"""Names of requests come again with other times, as retries do, so often at most; an `id` does per row that repeats."""
_DECIMALS = 6
"""Times are compared to the microsecond: differences of floats differ in their last bits."""
ABSURD = 3.0
"""A request open for so many times the longest response time has lost its departure."""
WINDOWS = 40
"""Stretches of the log whose least response times are compared."""
CLOCK_LEVEL = 1e-4
"""Level of the test for a trend."""
CLOCK_MATERIAL = 0.05
"""A drift over the whole log is worth a finding from this part of the median response time on."""
_SAMPLE = 100_000
_ROUNDING_S = 5e-7
"""Seconds since 1970 are floats with a last digit of a quarter of a microsecond."""
_UNITS_S = (60.0, 1.0, 0.1, 0.01, 1e-3)
_SPREAD = np.array([0x9E3779B97F4A7C15, 32, 0xD6E8FEB86659FD93], np.uint64)
"""Odd numbers, and a shift, that spread what columns differ in over all bits of a digest."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How the least response times change over a log: by so much per second, and how rare that is by chance."""

    per_second: float
    whole_s: float
    p_value: float


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """Which rows are certainly copies of an earlier one, and how many pairs are alike."""

    again: Bools
    """(n,) rows that repeat one before them, name and times; all False where that is not certain."""
    pairs: int
    """Pairs of rows alike in all that the log says, m (m - 1) / 2 for m of them; 0 where copies are certain."""
    by_chance: float
    """Pairs that requests which came in the same tick have by chance."""
    usual: int
    """Rows in the usual group of rows alike."""
    conflicts: int
    """Rows whose id was there before with other times; 0 if ids do not name requests at all, or there are none."""

    @property
    def beyond_chance(self) -> bool:
        """Whether more pairs are alike than chance makes, at the level of 0.001, with a margin of twice as many."""
        return self.pairs > 0 and bool(pdtrc(self.pairs - 1, MARGIN * self.by_chance) < LEVEL)


class _TickCounts:
    """How many rows of each kind came in each tick."""

    def __init__(self, tick: Ints, kind: Ints) -> None:
        self.kinds = int(kind.max(initial=0)) + 1
        self.code, self.count = np.unique(tick * self.kinds + kind, return_counts=True)

    def equal(self, ticks: int) -> Ints:
        """Return how many pairs are of the same kind, one in each tick and the other in the next."""
        following = np.minimum(np.searchsorted(self.code, self.code + self.kinds), len(self.code) - 1)
        pairs = np.where(self.code[following] == self.code + self.kinds, self.count * self.count[following], 0)
        return np.bincount(self.code // self.kinds, pairs, minlength=ticks)[:-1].astype(np.int64)


class PairCounts(NamedTuple):
    """How many pairs of rows are alike, and of which more it is known: counts of parts that share no tick add up."""

    alike: int
    """In one tick and in all that the log says."""
    together: int
    """In one tick."""
    adjacent: int
    """One in a tick, the other in the next that has any."""
    equal: int
    """Those of them that took equally long and say the same."""
    near: int
    """One in a tick, the other a single tick later."""
    near_equal: int
    """Those of them that took equally long or left together, and say the same."""
    ticks: int
    sizes: Ints
    """Groups of 0, 1, 2, … rows alike."""

    def plus(self, other: "PairCounts", sign: int = 1) -> "PairCounts":
        """Return the sum, or the difference."""
        size = max(len(self.sizes), len(other.sizes))
        sizes = [np.pad(counts.sizes, (0, size - len(counts.sizes))) for counts in (self, other)]
        return PairCounts(
            self.alike + sign * other.alike,
            self.together + sign * other.together,
            self.adjacent + sign * other.adjacent,
            self.equal + sign * other.equal,
            self.near + sign * other.near,
            self.near_equal + sign * other.near_equal,
            self.ticks + sign * other.ticks,
            sizes[0] + sign * sizes[1],
        )


class _Alike(NamedTuple):
    """Pairs of rows alike in one tick, how many of them chance explains, and the usual size of their groups."""

    pairs: int
    by_chance: float
    usual: int


class Responses(NamedTuple):
    """The responses of a whole log in a few numbers."""

    requests: int
    unfinished: int
    known: int
    usual_s: float
    """Median of those known; 0 if none is."""
    instant: int
    """How many took no time."""
    longer: int
    """How many took longer than `least_s`."""
    total_s: float
    least_s: float
    """From the first to the last arrival or departure, whichever is shorter."""
    length_s: float
    """From the first arrival to the last event."""


def clean(log: pd.DataFrame, servers: int, resolution_s: float = 0.0) -> Cleaned:
    """Return a log without what would mislead the law, and what was found in it.

    Rows are left out as written twice only if the names of requests show it (`copies`); other rows alike are reported,
    if chance does not explain them. Requests that were cancelled before any service are left out. Departures before
    their arrivals are moved if a clock is off, else left out. Lost departures and arrivals are put in: one lost
    departure would count as a request that waits for ever. Coarse stamps, drifting clocks, servers that idle while
    requests wait or come and go (`premises`), and durations that may be something else are reported only; clocks and
    servers are not tested where stamps are coarse, which would blame them for it.

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
    >>> for finding in clean(log.assign(request=[1, 2, 2, 3, 4]), servers=1).findings:
    ...     print(finding)
    rows written twice (1 request); the same request again, name and times; left out
    lost departures (1 request); open for longer than 6 s, ...; given that of the request before
    """
    if servers < 1:
        raise InputError(f"servers must be at least 1, got {servers}")
    rows = log[["arrival_s", "departure_s"]].notna().any(axis=1)
    without = timeless(int(np.count_nonzero(~rows)))
    log = log[rows] if without else log
    came, left = (log[name].to_numpy(dtype=np.float64) for name in ("arrival_s", "departure_s"))
    tick_s = max(resolution_s, tick_of(came, left))
    requests, cancelled = served(log) if "cancelled" in log else (log, [])
    requests, findings, alike = _once(requests, tick_s)
    findings = [*without, *findings, *cancelled]
    came, left = (requests[name].to_numpy(dtype=np.float64) for name in ("arrival_s", "departure_s"))
    if np.isnan(came).all() or np.isnan(left).all():
        raise InputError(f"the log has no {'arrivals' if np.isnan(came).all() else 'departures'}")
    paired = not np.isnan(left - came).all()
    classes = requests["priority"].to_numpy(dtype=np.int64) if paired and "priority" in requests else None
    labels = tuple(requests["label"].astype(str)) if paired and "label" in requests else None
    given = Cleaned(came, left, (), 0, paired, classes, tick_s, labels)
    made = _pairs(given) if paired else _lists(given, servers)
    told = tuple(_told(made, servers, tick_s))
    findings = [*findings, *made.findings]
    return replace(made, findings=(*findings, *alike, *told), repaired=sum(finding.count for finding in findings))


def timeless(count: int) -> list[LogFinding]:
    """Return the finding of so many rows that tell neither when a request came nor when it left."""
    return [LogFinding("rows without times", count, "neither an arrival nor a departure", "left out")] if count else []


def might_repeat(arrival_s: Floats, departure_s: Floats) -> bool:
    """Return whether any two rows have both times in common, so that what else they say matters.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds
    """
    return any_twice(np.round(arrival_s, _DECIMALS), np.round(departure_s, _DECIMALS))


def any_twice(*columns: NDArray[Any]) -> bool:
    """Return whether any two rows have all columns in common, by digests of 64 bits; missing numbers are alike.

    Two rows of a billion that differ are taken for the same once in 37 times.

    Parameters
    ----------
    columns : (n,) arrays of 64 bits each

    Examples
    --------
    >>> any_twice(np.array([1.0, 1.0]), np.array([2.0, 3.0])), any_twice(np.array([1.0, np.nan, np.nan]))
    (False, True)
    """
    digest = row_digests(*columns)
    digest.sort()
    return bool((digest[1:] == digest[:-1]).any())


def row_digests(*columns: NDArray[Any]) -> UInts:
    """Return a number of 64 bits for each row, which is the same for the same values; missing numbers are alike.

    Parameters
    ----------
    columns : (n,) arrays of 64 bits each
    """
    digest = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        plain = np.where(np.isnan(column), np.nan, column + 0.0) if column.dtype.kind == "f" else column
        digest = (digest ^ plain.view(np.uint64)) * _SPREAD[0]
        digest ^= digest >> _SPREAD[1]
        digest *= _SPREAD[2]
    return digest


def copies(log: pd.DataFrame, tick_s: float) -> Copies:
    """Return which rows of a log are copies of others, and how many pairs are alike without being so for certain.

    A row is a copy for certain if its times are those of an earlier row and so is its name: its `request`, else its
    `id`, else all that the file says beside the times, `rest`. That is a name only if at least a third of the rows
    differ in it and it hardly comes with other times: a tenth of the names of `request` at most, one row for ten that
    repeat of `id`, and none of `rest`. Of the last two 30 rows must repeat. Where `own` is there, `rest` without what
    several requests share, the evidence is its own: a trace of two requests is no request written twice. Without such
    names nothing is certain: requests that came in one tick of the clock may have taken equally long. How many pairs
    have is estimated from pairs of requests in adjacent ticks, which cannot be copies: the share of those that took
    equally long (and say the same), or of those a single tick apart that did or left together, times the pairs in one
    tick.

    Parameters
    ----------
    log : columns arrival_s and departure_s, NaN: not seen; perhaps `request`, `id`, or `rest` and `own`, and `stamp_s`,
        the stamp as it was written if the times were put between ticks
    tick_s : what stamps are multiples of; 0: of nothing
    """
    came, left = (log[name].to_numpy(dtype=np.float64) for name in ("arrival_s", "departure_s"))
    took = (left - came).round(_DECIMALS)
    moved = "stamp_s" in log
    stamp = log["stamp_s"].to_numpy(dtype=np.float64) if moved else came
    kind = next((name for name in ("request", "id", "rest") if name in log and log[name].notna().all()), None)
    codes = None if kind is None else pd.factorize(log[kind])[0].astype(np.int64)
    if (codes is None and not might_repeat(stamp, stamp + took)) or (codes is not None and _unique(codes)):
        return Copies(np.zeros(len(log), dtype=np.bool_), 0, 0.0, 0, 0)
    times = _codes([np.round(stamp, _DECIMALS), took if moved else np.round(left, _DECIMALS)])
    conflicts = 0
    if kind is not None and codes is not None:
        # Without pairs a name comes twice, with an arrival and with a departure.
        ends = [np.isnan(came)] if np.isnan(took).all() else []
        again = pd.Series(_codes([codes, *ends, times])).duplicated().to_numpy()
        own = codes if kind != "rest" or "own" not in log else pd.factorize(log["own"])[0].astype(np.int64)
        named = _codes([own, *ends])
        names, rows = _number(named), _number(_codes([named, times]))
        if MOST_WRITTEN * names >= len(log):
            conflicts = 0 if kind == "rest" else rows - names
            if surely_copies(kind, names, rows - names, int(again.sum())):
                return Copies(again, 0, 0.0, 0, conflicts)
    return Copies(np.zeros(len(log), dtype=np.bool_), *alike(pair_counts(stamp, took, codes, tick_s)), conflicts)


def resolution_s(stamp_s: Floats) -> float:
    """Return the coarsest of a minute, a second, and tenths to thousandths of it, that all stamps are multiples of.

    Parameters
    ----------
    stamp_s : (n,) array, seconds; NaN are left out

    Returns
    -------
    seconds; 0 if they are finer
    """
    stamps = stamp_s[~np.isnan(stamp_s)][:_SAMPLE]
    for unit in _UNITS_S:
        if len(stamps) and np.all(np.abs(stamps - unit * np.round(stamps / unit)) < _ROUNDING_S):
            return unit
    return 0.0


def drift(arrival_s: Floats, took_s: Floats, met: Ints, servers: int) -> Drift | None:
    """Return how the least response times move over the log, by the slope through their medians (Theil 1950, Sen 1968).

    Requests that meet a free server show what is least, so load does not matter; the trend is tested by Kendall's tau
    (1938). A clock that runs fast against another makes it, but so does a service that gets slower.

    Parameters
    ----------
    arrival_s, took_s : (n,) arrays, seconds, in order of arrival; NaN: unknown
    met : (n,) requests that each one met
    servers : k >= 1

    Returns
    -------
    None if there is too little to tell: fewer than ten requests in a stretch.
    """
    free = (met < servers) & ~np.isnan(took_s)
    came, took = arrival_s[free], took_s[free]
    if len(came) < 10 * WINDOWS:
        return None
    parts = np.array_split(np.arange(len(came)), WINDOWS)
    least = np.array([took[part].min() for part in parts])
    middle = np.array([came[part].mean() for part in parts])
    if np.ptp(least) == 0 or np.ptp(middle) == 0:
        return Drift(0.0, 0.0, 1.0)
    from scipy.stats import kendalltau, theilslopes

    slope = float(theilslopes(least, middle).slope)
    return Drift(slope, slope * float(np.ptp(arrival_s)), float(kendalltau(middle, least).pvalue))


def overdue(arrival_s: Floats, departure_s: Floats) -> Bools:
    """Return which requests without a departure must have lost it, rather than be unfinished.

    One that has been open for three times the longest response time has. The share of such requests tells how many
    departures get lost; younger requests count as lost where fewer than this share of all responses take as long.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays of pairs, seconds; NaN: not seen
    """
    is_open: Bools = np.isnan(departure_s) & ~np.isnan(arrival_s)
    if not is_open.any() or np.isnan(departure_s - arrival_s).all():
        return np.zeros(len(arrival_s), dtype=np.bool_)
    took = np.sort((departure_s - arrival_s)[~np.isnan(departure_s - arrival_s)])
    age = np.fmax(np.nanmax(arrival_s), np.nanmax(departure_s)) - arrival_s
    old = age > ABSURD * took[-1]
    surely: Bools = is_open & old
    if not surely.any():
        return surely
    as_long = 1.0 - np.searchsorted(took, age[is_open]) / len(took)
    lost = surely.copy()
    lost[is_open] |= as_long < np.count_nonzero(surely) / np.count_nonzero(old)
    return lost


def imputed(arrival_s: Floats, departure_s: Floats, lost: Bools) -> Floats:
    """Return departures in which each lost one comes as long after its arrival as that of the last request before it.

    Requests that arrive one after the other meet the same load, so this keeps the aggregate response time on average
    if departures get lost by chance; leaving the requests out would lower it.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays of pairs, seconds
    lost : (n,) those to be replaced; at least one other is a whole pair
    """
    order = np.argsort(arrival_s, kind="stable")
    took = (departure_s - arrival_s)[order]
    whole = np.flatnonzero(~np.isnan(took))
    donor = np.maximum(np.searchsorted(whole, np.arange(len(took)), side="right") - 1, 0)
    times = np.empty_like(took)
    times[order] = took[whole[donor]]
    return np.where(lost, arrival_s + times, departure_s)


def tick_of(came: Floats, left: Floats) -> float:
    """Return what stamps are multiples of, before any repair puts others in.

    Parameters
    ----------
    came, left : (n,) arrays, seconds; NaN: not seen
    """
    if len(came) < _FEW:
        return 0.0
    order = np.argsort(came, kind="stable")[:LOOKED_AT]
    return max(resolution_s(came[order]), resolution_s(left[order]))


def _once(log: pd.DataFrame, tick_s: float) -> tuple[pd.DataFrame, list[LogFinding], list[LogFinding]]:
    """Return a log without rows that are certainly copies, what was left out, and what may be copies."""
    repeats = copies(log, tick_s)
    certain = int(np.count_nonzero(repeats.again))
    left_out, others = repeat_findings(repeats, certain, "request" in log, "id" in log)
    return (log[~repeats.again] if left_out else log), left_out, others


def repeat_findings(
    repeats: Copies, certain: int, request: bool, id_: bool
) -> tuple[list[LogFinding], list[LogFinding]]:
    """Return the findings of rows that are left out as copies, and of those that may be some.

    Parameters
    ----------
    repeats : what `copies` says
    certain : rows that are copies for certain
    request, id_ : whether the log has such a column
    """
    left_out, others = list[LogFinding](), list[LogFinding]()
    if certain:
        named = "the same request again, name and times"
        evidence = named if request or id_ else "the whole row again, in a log whose rows tell their requests apart"
        left_out.append(LogFinding("rows written twice", certain, evidence, "left out"))
    if repeats.beyond_chance:
        evidence = f"pairs of rows, in groups of {repeats.usual:,}; chance explains {repeats.by_chance:,.0f}"
        done = _BATCHES if request else _BATCHES + _NAMES
        others.append(LogFinding("rows alike", repeats.pairs, evidence, done))
    if repeats.conflicts:
        evidence = "the name of an earlier request, but other times"
        done = "all kept: they may be retries, or no names of requests"
        others.append(LogFinding("names that repeat", repeats.conflicts, evidence, done))
    return left_out, others


def _pairs(log: Cleaned) -> Cleaned:
    """Return a log of pairs with possible stamps and without lost ones."""
    findings = list[LogFinding]()
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
            done = f"given that of the request {'before' if name == 'departures' else 'after'}"
            findings.append(LogFinding(f"lost {name}", int(lost.sum()), evidence, done))
            times = imputed(*both, lost)
            came, left = (came, times) if name == "departures" else (-times, left)
    early = np.isnan(came)
    if early.any():
        first = float(min(np.nanmin(came), np.nanmin(left)))
        findings.append(
            LogFinding("departures without arrival", int(early.sum()), f"from {first:g} s on", "there from the start")
        )
        came = np.where(early, first, came)
    return replace(log, arrival_s=came, departure_s=left, findings=tuple(findings))


def _forwards(log: Cleaned, backwards: Bools) -> tuple[Cleaned, LogFinding]:
    """Return a log without departures before arrivals: all departures moved, or those rows left out."""
    came, left = log.arrival_s, log.departure_s
    pairs = int(np.count_nonzero(~np.isnan(left - came)))
    move_s, backward = backward_finding(int(backwards.sum()), pairs, float(np.nanmin(left - came)))
    if move_s:
        return replace(log, departure_s=left + move_s), backward
    keep = ~backwards
    classes = None if log.priority is None else log.priority[keep]
    labels = None if log.label is None else tuple(np.array(log.label, dtype=object)[keep])
    forwards = replace(log, arrival_s=came[keep], departure_s=left[keep], priority=classes, label=labels)
    return forwards, backward


def backward_finding(count: int, pairs: int, least_s: float) -> tuple[float, LogFinding]:
    """Return by how much all departures have to be moved, 0 if rows are left out instead, and the finding.

    Parameters
    ----------
    count : departures before their arrivals, at least 1
    pairs : requests of which both are known
    least_s : the least response time, below 0
    """
    if count > _SWAPPED * pairs:
        raise InputError(f"are arrival and departure swapped? {count:,} of {pairs:,} requests leave before they come")
    name, evidence = "departures before arrivals", f"the least response time is {least_s:.3g} s"
    if count > _OFTEN * pairs:
        done = f"the clocks differ by {-least_s:.3g} s or more, all departures moved by that"
        return -least_s, LogFinding(name, count, evidence, done)
    return 0.0, LogFinding(name, count, evidence, "left out")


def _lists(log: Cleaned, servers: int) -> Cleaned:
    """Return separate arrivals and departures, with those put in that were lost."""
    came, left = np.sort(log.arrival_s[~np.isnan(log.arrival_s)]), np.sort(log.departure_s[~np.isnan(log.departure_s)])
    findings = list[LogFinding]()
    arrivals = lost_arrivals(came, left, servers)
    came = np.sort(np.concatenate((came, arrivals)))
    departures = lost_departures(came, left, servers)
    for name, times, evidence in (
        ("arrivals", arrivals, "at some time more requests had left than had come"),
        ("departures", departures, "the server would never be empty again"),
    ):
        if len(times):
            findings.append(LogFinding(f"lost {name}", len(times), evidence, "put in where they are likeliest"))
    left = np.sort(np.concatenate((left, departures)))
    padded = np.full(max(len(came), len(left)), np.nan)
    padded[: len(left)] = left
    return replace(log, arrival_s=came, departure_s=padded, findings=tuple(findings))


def _told(log: Cleaned, servers: int, tick_s: float) -> Iterator[LogFinding]:
    """Yield what is only reported: unfinished requests, doubtful durations, coarse stamps, clocks, servers."""
    took = log.departure_s - log.arrival_s
    known = took[~np.isnan(took)]
    least_s = min(float(np.ptp(stamps[~np.isnan(stamps)])) for stamps in (log.arrival_s, log.departure_s))
    about = Responses(
        len(took),
        log.unfinished,
        len(known),
        float(np.median(known)) if len(known) else 0.0,
        int(np.count_nonzero(known == 0)),
        int(np.count_nonzero(known > least_s)),
        float(known.sum()),
        least_s,
        _length_s(log),
    )
    order = np.argsort(log.arrival_s, kind="stable")[:LOOKED_AT]
    first = (log.arrival_s[order], log.departure_s[order]) if log.paired else None
    several = log.priority is not None and len(np.unique(log.priority)) > 1
    yield from reported(about, first, servers, tick_s, prioritised=several)


def reported(
    about: Responses, first: tuple[Floats, Floats] | None, servers: int, tick_s: float, *, prioritised: bool = False
) -> Iterator[LogFinding]:
    """Yield what is only reported of a log.

    Parameters
    ----------
    about : all responses
    first : arrivals and departures of the first `LOOKED_AT` requests, in order of arrival, seconds; None: the log has
        no pairs
    servers : k >= 1
    tick_s : what stamps are multiples of; 0: of nothing
    prioritised : whether requests are of several priorities
    """
    if about.unfinished:
        evidence = "no departure until the end of the log"
        yield LogFinding("unfinished requests", about.unfinished, evidence, "kept: they count as present")
    if first is not None and about.requests >= _FEW:
        yield from _doubtful(about, servers)
    if tick_s > _COARSE * about.usual_s:
        evidence = f"multiples of {tick_s:g} s, responses take {about.usual_s:.3g} s"
        yield LogFinding(COARSE_STAMPS, about.requests, evidence, _UNTESTED)
    elif first is not None:
        yield from _drift(*first, servers)
        yield from _servers(*first, servers)
        yield from premises(*first, servers, tick_s, prioritised=prioritised)


def _doubtful(about: Responses, servers: int) -> Iterator[LogFinding]:
    """Yield what hardly any log has: durations of another field, or in another unit, make it."""
    usual, least_s = about.usual_s, about.least_s
    if usual == 0:
        evidence = f"half or more of the {about.known:,} responses take no time"
        yield LogFinding("responses of 0 s", about.instant, evidence, f"kept: {_ASKED} Or are the stamps too coarse?")
    elif usual > least_s > 0:
        evidence = f"half of the responses take {usual:.3g} s or more, the stamps span {least_s:.3g} s"
        yield LogFinding("responses longer than the log", about.longer, evidence, f"kept: {_ASKED}")
    busy = about.total_s / (servers * about.length_s) if about.length_s > 0 else 1.0
    if 0 < busy < _IDLE:
        evidence = f"all responses together keep {counted(servers, 'server')} busy for {busy:.2g} of the time at most"
        done = f"kept: {_ASKED} Or does a stamp stand far from the others?"
        yield LogFinding("hardly any load", about.known, evidence, done)


def _length_s(log: Cleaned) -> float:
    return float(np.fmax(np.nanmax(log.departure_s), np.nanmax(log.arrival_s)) - np.nanmin(log.arrival_s))


def _drift(came: Floats, left: Floats, servers: int) -> Iterator[LogFinding]:
    took = left - came
    usual = float(np.nanmedian(took)) if not np.isnan(took).all() else 0.0
    gone = np.sort(left[~np.isnan(left)])
    met = np.arange(len(came)) - np.searchsorted(gone, came, side="right")
    moved = drift(came, took, met, servers)
    if moved is not None and moved.p_value < CLOCK_LEVEL and abs(moved.whole_s) > CLOCK_MATERIAL * usual:
        evidence = f"least responses change by {moved.whole_s:+.3g} s over the log"
        yield LogFinding(
            "drift", len(came), evidence, "nothing was changed: a clock drifts, or the service changes its speed"
        )


def _servers(came: Floats, left: Floats, servers: int) -> Iterator[LogFinding]:
    for test in conserves_work(came, left, servers):
        if not test.against:
            continue
        longer, done = test.left_s > test.right_s, "nothing was changed"
        if test.name == "company":
            evidence = f"service takes {test.left_s:.3g} s beside others, {test.right_s:.3g} s alone"
            what = "servers slow each other down" if longer else "servers help each other"
        else:
            law = f"with {counted(servers, 'server')} the law gives {test.left_s:.3g} s of service"
            evidence = f"{law}, but requests that never wait take {test.right_s:.3g} s"
            if not longer:
                network = network_option(_network_s(came, left, servers, test.right_s - test.left_s), left - came)
                done += f": if a client wrote the log, the network may be in it, {network}" if network else ""
            what = (
                f"servers idle while requests wait, or are fewer than {servers}"
                if longer
                else f"more servers than {servers}"
            )
        yield LogFinding(what, len(came), evidence, done)


def _network_s(came: Floats, left: Floats, servers: int, longer_s: float) -> float:
    """Return the delay of a network that would make requests which find a free server take so much longer.

    Demands of the others seem to lack it: their way is over before their service begins. The mean service by the law
    is over all requests.

    Parameters
    ----------
    came, left : (n,) arrays, seconds; NaN: not seen
    servers : k >= 1
    longer_s : by how much they take longer than the mean service by the law
    """
    arrived, gone = np.sort(came[~np.isnan(came)]), np.sort(left[~np.isnan(left)])
    met = np.arange(len(arrived)) - np.searchsorted(gone, arrived, side="right")
    return longer_s / max(float(np.mean(met >= servers)), 1e-9)


def surely_copies(kind: str, names: int, others: int, repeated: int) -> bool:
    """Return whether so many rows that repeat are copies, where so many others have an earlier name and other times.

    Parameters
    ----------
    kind : request, id or rest
    names : distinct ones
    others : rows with an earlier name and other times
    repeated : rows with an earlier name and its times
    """
    if kind == "request":
        return repeated > 0 and others <= MOST_REUSED * names
    return repeated >= LEAST and others <= (MOST_REUSED * repeated if kind == "id" else 0)


def _codes(columns: Sequence[np.ndarray]) -> Ints:
    """Return a whole number for each row, the same for the same values in all columns."""
    total = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        code, values = pd.factorize(column, use_na_sentinel=False)
        total = pd.factorize(total * max(len(values), 1) + code)[0]
    return total


def pair_counts(stamp: Floats, took: Floats, codes: Ints | None, tick_s: float) -> PairCounts:
    """Return how many pairs of rows are alike in a tick, and how many of neighbouring ticks, which are no copies.

    Parameters
    ----------
    stamp, took : (n,) arrays, seconds, rounded to the microsecond; NaN: not seen
    codes : (n,) whole numbers, the same for rows that say the same beside the times; None: they say nothing
    tick_s : what stamps are multiples of; 0: of nothing
    """
    whole = ~np.isnan(took) & ~np.isnan(stamp)
    at = np.rint(stamp[whole] / tick_s) if tick_s > 0 else stamp[whole]
    ticks, tick, present = np.unique(at, return_inverse=True, return_counts=True)
    names = [] if codes is None else [codes[whole]]
    cells = _TickCounts(tick, _codes([took[whole], *names]))
    sizes = np.bincount(cells.count[cells.count > 1])
    adjacent, near = present[1:] * present[:-1], np.diff(ticks) == 1.0
    equal = cells.equal(len(ticks)) if len(ticks) else adjacent
    beside = int(adjacent[near].sum()) if tick_s > 0 else 0
    near_equal = 0
    if beside:
        # Requests of one tick see the same queue: those that come a tick later take as long, or leave together.
        ends = _TickCounts(tick, _codes([np.round(stamp + took, _DECIMALS)[whole], *names])).equal(len(ticks))
        near_equal = int((equal + ends)[near].sum())
    pairs, together = _pairs_of_rows(cells.count), _pairs_of_rows(present)
    return PairCounts(pairs, together, int(adjacent.sum()), int(equal.sum()), beside, near_equal, len(ticks), sizes)


def alike(counts: PairCounts) -> _Alike:
    """Return pairs alike in the same tick, those that chance explains, and the usual size of groups of rows alike."""
    if not counts.alike:
        return _Alike(0, 0.0, 0)
    usual = int(counts.sizes.argmax())
    if counts.ticks <= 1:
        return _Alike(counts.alike, np.inf, usual)
    # One more than was seen: none among few pairs does not show that there are none.
    share = (counts.equal + 1) / counts.adjacent
    if counts.near:
        share = max(share, counts.near_equal / counts.near)
    return _Alike(counts.alike, counts.together * float(min(share, 1.0)), usual)


def _unique(codes: Ints) -> bool:
    return _number(codes) == len(codes)


def _number(codes: Ints) -> int:
    return int(codes.max(initial=-1)) + 1


def _pairs_of_rows(counts: Ints) -> int:
    return int(np.sum(counts * (counts - 1)) // 2)
