"""Which rows of a log are analysed: conditions on what rows say, a stretch of time, the classes that are compared."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.occupancy.curve import Curve, window
from analysis.occupancy.logs.clocks import LogClock
from analysis.occupancy.logs.log import Log
from analysis.occupancy.objective import ReplayStation
from analysis.occupancy.percentiles import Percentile, has_bands, percentiles, why_without
from analysis.tables.expressions import evaluated, parsed
from analysis.tables.quantities import times_s
from models.arrays import Bools, Floats, Ints
from models.errors import InputError
from scenarios.files.options import refuse
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import listed

MOST_CLASSES = 20
"""Classes that have a line; the others are one."""
OTHERS = "(others)"
_LEVELS = (0.5, 0.99)
"""Percentiles that a class has."""
_LATEST_OWN_S = 1e8
"""Numbers below this count from the log's own origin, others from 1970."""


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Which rows are wanted."""

    where: str | None = None
    """A condition on the columns of the log, in DuckDB's words."""
    since: str | None = None
    until: str | None = None
    """Points in time, ISO 8601 or numbers; requests present between them count."""
    by: str | None = None
    """Column whose values are classes of requests, served together."""
    hosts: str | None = None
    """Column whose values are machines, each with servers of its own."""

    @property
    def reads_fields(self) -> bool:
        """Whether more of each row is needed than its times."""
        return any(text is not None for text in (self.where, self.by, self.hosts))


@dataclass(frozen=True, slots=True)
class ClassTimes:
    """What the requests of one class met."""

    name: str
    requests: int
    response_time_s: float
    share: float
    """Of the response time of all classes."""
    queueing_time_s: float
    """What of all queueing falls on the class if those present share the servers evenly."""
    p50: Percentile
    p99: Percentile
    """With bands for another such day."""

    def payload(self) -> Payload:
        """Return the row as ``--json`` has it."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in {"p50", "p99"}}
        rows = {row.name: row for row in (self.p50, self.p99)}
        ends = ("value_s", "low_s", "high_s")
        return plain | {
            f"{name}_{end.removeprefix('value_')}": getattr(rows[name], end) for name in rows for end in ends
        }


def chosen_rows(log: Log, slice_: LogSlice) -> Log:
    """Return a log of the rows that a condition is true of, with their classes in a column `label` if they are wanted.

    Raises
    ------
    FaultsError
        If the log has no such columns, or no row is left.
    """
    rows = np.ones(len(log.table), dtype=np.bool_)
    notes = list(log.notes)
    if slice_.where is not None:
        rows = _true_of(log, slice_.where)
        notes.append(f"--where: {np.count_nonzero(rows):,} of {len(rows):,} requests; {_beside(log, rows)}")
    table = log.table
    named = slice_.by or slice_.hosts
    if named is not None:
        option = "--by" if slice_.by else "--hosts"
        table = table.assign(label=_column(log, option, named).astype(str).replace("", "(none)").to_numpy())
    if not rows.any():
        refuse("--where", "is true of no request", str(slice_.where))
    fields = None if log.fields is None else log.fields[rows].reset_index(drop=True)
    return replace(log, table=table[rows].reset_index(drop=True), notes=tuple(notes), fields=fields)


def stretch(log: Log, slice_: LogSlice, clock: LogClock) -> tuple[Log, float | None, float | None]:
    """Return the requests that may be present in a stretch of time, and its ends in the log's own seconds.

    Requests that were there before it began stay whole; the law is about the time between the ends.

    Parameters
    ----------
    log : requests
    slice_ : with the ends, if there are any
    clock : of ends that name no zone
    """
    since, until = (
        _time_of(log, f"--{name}", text, clock) for name, text in (("from", slice_.since), ("until", slice_.until))
    )
    if since is None and until is None:
        return log, None, None
    came, left = (log.table[name].to_numpy(dtype=np.float64) for name in ("arrival_s", "departure_s"))
    present = ~(left < (since if since is not None else -math.inf)) & ~(
        came >= (until if until is not None else math.inf)
    )
    if not present.any():
        problem = f"leaves no request: the log is {_span(log, clock)}"
        refuse("--from" if slice_.since else "--until", problem, str(slice_.since or slice_.until))
    table = log.table[present].reset_index(drop=True)
    fields = None if log.fields is None else log.fields[present].reset_index(drop=True)
    return replace(log, table=table, fields=fields), since, until


def cut(present: Curve, since: float | None, until: float | None) -> Curve:
    """Return a curve between two times, as far as it reaches."""
    start = present.start_s if since is None else min(max(since, present.start_s), present.end_s)
    end = present.end_s if until is None else max(min(until, present.end_s), start)
    return window(present, start, end)


def class_times(
    arrival_s: Floats,
    departure_s: Floats,
    labels: Sequence[str],
    present: Curve,
    servers: int,
    *,
    station: ReplayStation | None = None,
) -> tuple[ClassTimes, ...]:
    """Return what each class met, the one with the longest response time in all first.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays, seconds
    labels : (n,) class of each request
    present : occupancy
    servers : k
    station : what serves other days, for the bands of percentiles; None: they come from blocks of time
    """
    codes, names = pd.factorize(pd.Series(list(labels), dtype=object))
    response = departure_s - arrival_s
    waited = _shared_queueing(arrival_s, departure_s, present, servers)
    total = np.bincount(codes, np.nan_to_num(response), len(names))
    order = np.argsort(-total, kind="stable")
    groups = [(str(names[at]), codes == at) for at in order[:MOST_CLASSES]]
    if len(order) > MOST_CLASSES:
        groups.append((OTHERS, np.isin(codes, order[MOST_CLASSES:])))
    bands = _class_bands(arrival_s, response, [rows for _, rows in groups], servers, station)
    return tuple(
        _class(name, rows, (float(np.nansum(response[rows])), float(waited[rows].sum()), float(total.sum())), at)
        for (name, rows), at in zip(groups, bands, strict=True)
    )


def without_bands(classes: Sequence[ClassTimes]) -> Iterator[str]:
    """Yield which classes are too small for the bands of their percentiles, those of one reason together."""
    alike: dict[str, list[ClassTimes]] = {}
    for row in classes:
        alike.setdefault(why_without((row.p50, row.p99), row.requests, of_several=True), []).append(row)
    for why, rows in alike.items():
        if why:
            first = rows[0]
            own = why_without((first.p50, first.p99), first.requests)
            yield f"{listed(row.name for row in rows)}: {own if len(rows) == 1 else why}"


def _class_bands(
    arrival_s: Floats, response_s: Floats, groups: Sequence[Bools], servers: int, station: ReplayStation | None
) -> list[tuple[Percentile, ...]]:
    """Return the percentiles of each class, with bands for another day."""
    own = [percentiles(response_s[rows], arrival_s[rows], _LEVELS) for rows in groups]
    if station is None:
        return own
    code = np.select(groups, range(len(groups)))[np.argsort(arrival_s, kind="stable")]
    served = station.by_class(_LEVELS, servers, code)
    return [
        tuple(map(moved, *both)) if has_bands(int(rows.sum()), 1.0) else both[0]
        for rows, both in zip(groups, zip(own, served, strict=True), strict=True)
    ]


def moved(own: Percentile, served: Percentile) -> Percentile:
    """Return the log's own percentile with the band of its replay."""
    if not (served.value_s > 0 and math.isfinite(served.high_s)):
        return Percentile(own.level, own.value_s, math.nan, math.nan)
    factor = own.value_s / served.value_s
    return Percentile(own.level, own.value_s, served.low_s * factor, served.high_s * factor)


def by_host(labels: Sequence[str]) -> Iterator[tuple[str, Ints]]:
    """Yield each host with its rows, the one with the most requests first."""
    codes, names = pd.factorize(pd.Series(list(labels), dtype=object))
    for at in np.argsort(-np.bincount(codes, minlength=len(names)), kind="stable"):
        yield str(names[at]), np.flatnonzero(codes == at)


def _class(name: str, rows: Bools, sums_s: tuple[float, float, float], at: Sequence[Percentile]) -> ClassTimes:
    """Return what a class met, given its response time, its queueing, the response time of all, and percentiles."""
    sum_s, waited_s, total_s = sums_s
    return ClassTimes(name, int(rows.sum()), sum_s, sum_s / total_s if total_s > 0 else 0.0, waited_s, *at)


def _shared_queueing(arrival_s: Floats, departure_s: Floats, present: Curve, servers: int) -> Floats:
    """Return each request's queueing if those present share the servers: (N − k)⁺/N while it is there."""
    length = np.diff(present.time_s)
    part = np.maximum(present.jobs - servers, 0) / np.maximum(present.jobs, 1) * length
    until = np.concatenate(([0.0], np.cumsum(part)))
    left = np.where(np.isnan(departure_s), present.end_s, departure_s)
    inside = [np.clip(times, present.start_s, present.end_s) for times in (arrival_s, left)]
    came, gone = (np.interp(times, present.time_s, until) for times in inside)
    waited: Floats = gone - came
    return waited


def _beside(log: Log, rows: Bools) -> str:
    """Return what a condition says of the servers' other work: of all that came to a station, that there was none."""
    stations = None if log.fields is None else log.fields.get("station")
    if stations is not None and rows.any():
        names = stations.astype(str).to_numpy()
        station = names[rows][0]
        if station and np.array_equal(names == station, rows):
            return f"they are all of station {station}, whose servers are taken to serve no others"
    return "what the servers did for others is not seen, so they were busier than this"


def _column(log: Log, option: str, name: str) -> pd.Series:
    columns = _columns(log)
    if name not in columns:
        known = ", ".join(columns) or "none"
        refuse(option, f"should be a column of the log ({known})", name)
    return columns[name]


def _columns(log: Log) -> Mapping[str, pd.Series]:
    fields = {} if log.fields is None else {str(name): log.fields[name] for name in log.fields}
    own = {name: log.table[name] for name in ("type", "priority") if name in log.table}
    times = {"response_s": log.table["departure_s"] - log.table["arrival_s"]}
    return {**times, **own, **fields}


def _true_of(log: Log, where: str) -> Bools:
    """Return where a condition is true; cells that all are numbers count as such."""
    columns = _columns(log)
    try:
        condition = parsed(where, tuple(columns))
        unknown = condition.unknown(tuple(columns))
        if unknown:
            refuse("--where", f"should name columns of the log ({', '.join(columns)})", unknown[0])
        given = {name: columns[name] for name in condition.columns}
        values = {
            name: column.astype(str) if name in condition.texts else _numbers_or_texts(column)
            for name, column in given.items()
        }
        true: Bools = evaluated(condition, values).astype("boolean").fillna(False).to_numpy(np.bool_)
    except (InputError, TypeError, ValueError) as error:
        if type(error).__name__ == "FaultsError":
            raise
        refuse("--where", "should be a condition such as status = '200' and path = '/search'", f"{where} ({error})")
        raise
    return true if len(true) == len(log.table) else np.full(len(log.table), bool(true[0]))


def _numbers_or_texts(column: pd.Series) -> pd.Series:
    texts = column.astype(str)
    numbers = pd.to_numeric(texts.where(texts != ""), errors="coerce")
    return numbers if numbers.notna().sum() == (texts != "").sum() else texts


def _span(log: Log, clock: LogClock) -> str:
    """Return from when to when a log is, by a clock if it has a calendar."""
    times = log.table[["arrival_s", "departure_s"]].to_numpy(dtype=np.float64)
    first, last = float(np.nanmin(times)), float(np.nanmax(times))
    if not log.origin_s:
        return f"from {first:,.6g} to {last:,.6g} s"
    return f"from {clock.shown(log.origin_s + first)} to {clock.shown(log.origin_s + last)} ({clock.name})"


def _time_of(log: Log, option: str, text: str | None, clock: LogClock) -> float | None:
    """Return a point in time in the log's own seconds; one that names no zone is of the clock."""
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number) and (not log.origin_s or number < _LATEST_OWN_S):
        return number
    (since_1970,), zoneless = times_s(pd.Series([text]))
    if not math.isfinite(since_1970) or not log.origin_s:
        what = "a time such as 2024-06-10T09:00" if log.origin_s else "a number of seconds, as the log has"
        refuse(option, f"should be {what}", text)
    return float(clock.time_s(float(since_1970)) if zoneless else since_1970) - log.origin_s
