"""Request logs of any format that is known, which the beginning of a file tells; tables are read here.

A table, CSV or Parquet, is read at once where nothing is wrong, and cell by cell where something is.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from analysis.occupancy.logs.access_logs import read_access_log
from analysis.occupancy.logs.clocks import HOUR_S, QUARTER_S, OwnClock, own_clock, quarters_of, set_back
from analysis.occupancy.logs.hygiene import might_repeat
from analysis.occupancy.logs.log import (
    FARTHEST_S,
    PER_SECOND,
    Log,
    LogFinding,
    LogOptions,
    Roles,
    begin_of,
    count_from_1970,
    names_requests,
    names_several,
    roles,
    too_long,
    undecided,
    unit_of,
)
from analysis.occupancy.logs.records import (
    LINE_FORMS,
    Records,
    Times,
    chosen,
    format_records,
    has_times,
    json_records,
    line_records,
    understood,
    without_times,
)
from analysis.occupancy.logs.rotation import each_of, joined
from analysis.occupancy.logs.swf import read_swf
from analysis.occupancy.logs.time_cells import careful_columns
from analysis.occupancy.logs.upstream import refuse_upstream, with_upstream
from analysis.tables.bytes import PARQUET, DamagedError, head_of, stream_of
from analysis.tables.cells import FileCells, cells_of
from analysis.tables.faults import PRINTED, FileError, FileFault
from models.arrays import Floats, Small
from models.errors import InputError

TEXT = pa.dictionary(pa.int32(), pa.string())
_OFFSET_LENGTH = len("+00:00]")
_ZONED, _LOCAL = pa.timestamp("ns", "UTC"), pa.timestamp("ns")


class TimeColumn(NamedTuple):
    """A column of times: seconds since `since_s`, which is a whole number, so that small differences are kept."""

    value_s: Floats
    since_s: float


class TimeBase(NamedTuple):
    """How a column of times becomes seconds since `since_s`."""

    per_second: float
    since_s: float
    ticks: str | None = None
    """Unit in which the ticks of time stamps are counted; None: the column holds numbers."""
    note: str = ""
    """What was supposed of its unit."""


def read_logs(paths: Sequence[Path], options: LogOptions) -> Log:
    """Read the files of one log, in any order: those of its rotation, of any format that `read_log` reads.

    Raises
    ------
    FileError
        If a file has faults, or two files are the same.
    """
    if len(paths) == 1:
        return read_log(paths[0], options=options)
    return joined(list(each_of(paths, lambda path: read_log(path, options=options))))


def read_log(
    path: Path,
    arrival: str | None = None,
    departure: str | None = None,
    duration: str | None = None,
    unit: str | None = None,
    *,
    priority: str | None = None,
    options: LogOptions | None = None,
) -> Log:
    """Read a request log of a format that its beginning tells, plain or packed by gzip or zstd.

    CSV, Parquet, JSON (lines, OTLP, Jaeger), access logs of web servers and proxies, the Standard Workload Format.

    Parameters
    ----------
    path : the file
    arrival, departure, duration, unit, priority : as in `LogOptions`
    options : all of these and more

    Raises
    ------
    FileError
        With every fault of the file.
    ValueError
        If the unit is none of these, or a column is named that the format does not have.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("arr_ms,dep_ms\\n0,39\\n383,388\\n")
    ...     read_log(Path(file.name)).table
       arrival_s  departure_s
    0      0.000        0.039
    1      0.383        0.388
    """
    said = options or LogOptions(arrival, departure, duration, unit, priority)
    refuse_unit(said)
    head = begin_of(path)
    records = _records(path, head, said)
    if records is not None:
        return _of_records(records, said)
    if said.priority and (is_access_log(head) or is_swf(head)):
        raise FileError([FileFault(1, 1, said.priority, "should be a column", "a format without such columns")])
    if is_access_log(head):
        stamp = stamp_of(said.arrival, said.departure)
        return read_access_log(path, stamp, said.unit, said.duration, upstream=said.upstream, fields=said.fields)
    if said.upstream:
        raise not_behind()
    if is_swf(head):
        refuse_for_swf(said)
        return read_swf(path)
    return read_table_log(path, options=said)


def not_behind() -> FileError:
    """Return the error of a log that is not a proxy's where the times of the servers behind one are wanted."""
    problem = "is about logs of proxies that say how long the server took"
    return FileError([FileFault(1, 1, "--upstream", problem, "another log")])


def refuse_for_swf(options: LogOptions) -> None:
    """Raise the fault of a workload log of which something was said that its format says."""
    if any(options.stated()) or options.unit:
        problem = "has its columns and units from its format"
        raise FileError([FileFault(1, 1, "file", problem, "Standard Workload Format")])


def refuse_unit(options: LogOptions) -> None:
    """Raise the fault of a unit that is none."""
    if options.unit is not None and options.unit not in PER_SECOND:
        raise InputError(f"a unit is one of {', '.join(PER_SECOND)}, got {options.unit}")


def _records(path: Path, head: bytes, options: LogOptions) -> Records | None:
    """Return the records of a log whose fields have names beside its format; None of any other."""
    if options.form is not None:
        return format_records(path, options.form)
    if head.startswith(PARQUET):
        return None
    if is_json(head):
        return json_records(path)
    form = line_form(head)
    return None if form is None else line_records(path, form)


def stamp_of(arrival: str | None, departure: str | None) -> str | None:
    """Return whether the stamp of an access log was said to be the arrival or the departure."""
    columns = [name for name in (arrival, departure) if name is not None]
    if len(columns) > 1 or any(name != "time" for name in columns):
        raise InputError(
            f"an access log has one stamp, time, which is an arrival or a departure, got {', '.join(columns)}"
        )
    return "arrival" if arrival else "departure" if departure else None


def is_json(head: bytes) -> bool:
    """Return whether a file that begins so holds JSON objects.

    Examples
    --------
    >>> is_json(b' {"ts": 1}'), is_json(b'[{"ts": 1}]'), is_json(b"[]"), is_json(b"[2024-01-01] x")
    (True, True, True, False)
    """
    return re.match(rb"\s*(?:(?:\[\s*)?\{\s*[\"}]|\[\s*\]\s*$)", head.removeprefix(b"\xef\xbb\xbf")) is not None


def line_form(head: bytes) -> tuple[str, Times] | None:
    """Return the form of lines that most of the first lines are in, of HAProxy or of AWS; None if there is none."""
    lines = pa.array(head.splitlines()[:20], pa.binary())
    return next(
        (form for form in LINE_FORMS if (pc.mean(pc.match_substring_regex(lines, form[0])).as_py() or 0) >= 0.5), None
    )


def is_access_log(head: bytes) -> bool:
    """Return whether a file that begins so is an access log: one of its first lines looks like one.

    Examples
    --------
    >>> is_access_log(b'10.0.0.1 - - [10/Oct/2023:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" 0.012\\n')
    True
    >>> is_access_log(b"arrival_s,departure_s\\n0,1\\n")
    False
    """
    lines = pa.array([] if head.startswith(PARQUET) else head.splitlines()[:PRINTED], pa.binary())
    return bool(pc.any(pc.match_substring_regex(lines, r'^[^",]*\[[^\]]+\] "')).as_py())


def has_lines(head: bytes) -> bool:
    """Return whether a file that begins so is read as an access log."""
    return not (is_json(head) or line_form(head) is not None) and is_access_log(head)


def is_swf(head: bytes) -> bool:
    """Return whether a file that begins so is in this format: header comments, or lines of 18 numbers.

    Examples
    --------
    >>> is_swf(b"; Computer: iPSC/860\\n"), is_swf(b"1 0 5 10" + b" -1" * 14 + b"\\n"), is_swf(b"0,1\\n")
    (True, True, False)
    >>> is_swf(b"PAR1\\x15 of Parquet" + b" word" * 15 + b"\\n")
    False
    """
    if head.startswith(PARQUET):
        return False
    first = next((line for line in head.splitlines() if line.strip()), b"")
    return first.lstrip().startswith(b";") or (len(first.split()) == 18 and b"," not in first)


def read_table_log(path: Path, *, options: LogOptions | None = None) -> Log:
    """Read a CSV or Parquet file with a row for each request, or for each arrival and each departure.

    Files without faults are read at once; a file with anything unusual is read again, cell by cell.

    Parameters
    ----------
    path : the file, plain or packed
    options : columns that were named, and what else was said

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("start_ms,latency_ms\\n0,1500\\n250,")
    ...     read_table_log(Path(file.name)).table.to_numpy().tolist()
    [[0.0, 1.5], [0.25, nan]]
    """
    said = options or LogOptions()
    names = table_names(path)
    if names and said.zone is None:
        which = roles(names, *said.stated())
        columns = _quickly(path, which)
        if columns is not None:
            notes, times = _in_seconds(columns, which, said.unit)
            sound = _sound(times, columns, which)
            if sound:
                refuse_undecided(which, notes)
            if sound and _too_long(times, which, notes) is None:
                log = _log(times, columns, which, notes)
                clock = _written_clock(path, times, columns, which)
                log = replace(log, findings=_clocks(columns, which), clock=clock)
                if said.fields:
                    log = replace(log, fields=_others(path, names, which))
                return log if _named(log.table) else _with_rest(log, _others(path, names, which))
    return _of_cells(cells_of(path), said)


def _of_cells(cells: FileCells, options: LogOptions, times: Times | None = None) -> Log:
    """Return the log of a table that was read cell by cell."""
    which, columns = careful_columns(cells, options, times)
    notes, seconds = _in_seconds(columns, which, options.unit, times)
    refuse_undecided(which, notes)
    _refuse_long(seconds, which, notes, cells)
    log = replace(_log(seconds, columns, which, notes), findings=_clocks(columns, which))
    stamp = str(which.arrival or which.departure)
    if options.zone is None and is_zoned(columns[stamp].type):
        log = replace(
            log, clock=own_clock(seconds[stamp].value_s + seconds[stamp].since_s, cell_quarters(cells, stamp))
        )
    others = [name for name in cells.names if name not in which.times()]
    rest = pd.DataFrame({name: cells.columns[name].astype(str) for name in others})
    if options.fields:
        log = replace(log, fields=rest)
    return log if _named(log.table) else _with_rest(log, rest)


def _of_records(records: Records, options: LogOptions) -> Log:
    """Return the log of records whose times are known by their form, unless columns were named."""
    cells, times = records.cells, records.times if not any(options.stated()[:3]) else None
    notes, findings = list(records.notes), list(records.findings)
    if times is not None:
        notes.append(understood(times))
        if times.by_end or times.form.startswith("HAProxy"):
            rows = has_times(cells, times)
            findings += without_times(times, int(np.count_nonzero(~rows)))
            cells = chosen(cells, rows)
    if options.upstream:
        refuse_upstream(times, cells.names)
    log = _of_cells(cells, options, times)
    log = replace(log, notes=(*notes, *log.notes), findings=(*findings, *log.findings))
    return with_upstream(log, cells, times) if options.upstream and times is not None else log


def _clocks(columns: Mapping[str, pa.ChunkedArray], which: Roles) -> tuple[LogFinding, ...]:
    """Return the finding of stamps without a zone that a change of clocks put back by an hour."""
    for name in which.times():
        kind = columns[name].type
        if pa.types.is_timestamp(kind) and kind.tz is None:
            at = set_back(
                np.asarray(columns[name].cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_numpy()) / 1e6
            )
            if at is not None:
                return (clock_finding(at, len(columns[name])),)
    return ()


def clock_finding(row: int, rows: int) -> LogFinding:
    """Return the finding of a clock that was set back by an hour at a row, from 0, of so many."""
    evidence = f"from row {row + 1:,} on stamps without a zone are an hour earlier than those before"
    return LogFinding("clock set back by an hour", rows, evidence, "kept: say --zone")


def _written_clock(
    path: Path, times: Mapping[str, TimeColumn], columns: Mapping[str, pa.ChunkedArray], which: Roles
) -> OwnClock | None:
    """Return the clock of a table's stamps: as CSV writes them, by the zone of a column of Parquet."""
    stamp = str(which.arrival or which.departure)
    kind = columns[stamp].type
    if not is_zoned(kind):
        return None
    if not head_of(path).startswith(PARQUET):
        texts = _columns(path, [stamp], lambda _: {stamp: pa.string()})[stamp]
        return own_clock(times[stamp].value_s + times[stamp].since_s, text_quarters(texts))
    hours = hours_of(times[stamp].value_s + times[stamp].since_s)
    return own_clock(hours, zone_quarters(hours, kind))


def hours_of(stamp_s: Floats) -> Floats:
    """Return the beginnings of the hours that stamps are in, each once, in order.

    Parameters
    ----------
    stamp_s : (n,) array, seconds since 1970; NaN: not seen
    """
    hours: Floats = np.sort(pd.unique(np.floor(stamp_s[np.isfinite(stamp_s)] / HOUR_S))) * HOUR_S
    return hours


def zone_quarters(hours_s: Floats, kind: pa.DataType) -> Small:
    """Return by how many quarters of an hour the zone of a column of Parquet is ahead of UTC at some hours."""
    local = pc.local_timestamp(pa.array(hours_s.astype(np.int64), pa.timestamp("s", kind.tz))).cast(pa.int64())
    quarters: Small = ((local.to_numpy() - hours_s) / QUARTER_S).astype(np.int8)
    return quarters


def is_zoned(kind: pa.DataType) -> bool:
    """Return whether a column holds stamps that say their zone."""
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)


def text_quarters(texts: pa.ChunkedArray) -> Small:
    """Return the offsets that stamps of a CSV file say, by their last characters: few differ, as whole stamps do."""
    ends = pc.utf8_slice_codeunits(texts, -_OFFSET_LENGTH, None)
    return _quarters(ends.dictionary_encode().to_pandas())


def cell_quarters(cells: FileCells, stamp: str) -> Small:
    """Return the offsets that a column of stamps says, cell by cell."""
    return _quarters(cells.text(stamp).str[-_OFFSET_LENGTH:])


def _quarters(ends: pd.Series) -> Small:
    codes, texts = pd.factorize(ends, use_na_sentinel=False)
    return np.array([quarters_of(f"T{text}") for text in texts], dtype=np.int8)[codes]


def table_names(path: Path) -> list[str]:
    """Return the columns of a file that looks in order from its beginning; none if it does not."""
    head = head_of(path)
    try:
        if head.startswith(PARQUET):
            return list(pq.read_schema(path).names)
        first = head.partition(b"\n")[0]
        if b"," not in first and any(mark in first for mark in (b";", b"\t", b"|")):
            return []
        names = list(pacsv.read_csv(pa.BufferReader(head.partition(b"\n")[0] + b"\n")).column_names)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return []
    return names if len(set(names)) == len(names) and names == [name.strip() for name in names] else []


def _quickly(path: Path, which: Roles) -> dict[str, pa.ChunkedArray] | None:
    """Return the columns as Arrow reads them, or nothing if anything is unusual."""
    wanted = list(dict.fromkeys([*which.times(), *which.labels(), *which.classes()]))
    try:
        table = _columns(path, wanted, lambda head: csv_types(head, which))
    except (pa.ArrowException, OSError, KeyError, DamagedError):
        return None
    return dict(zip(table.column_names, table.columns, strict=True)) if table.num_rows else None


def _columns(path: Path, names: Sequence[str], types: Callable[[bytes], Mapping[str, pa.DataType]]) -> pa.Table:
    """Return columns as Arrow reads them, of a CSV file with the types that its beginning tells."""
    head = head_of(path)
    if head.startswith(PARQUET):
        return pq.read_table(path, columns=list(names))
    options = pacsv.ConvertOptions(include_columns=list(names), column_types=types(head))
    with stream_of(path) as source:
        quotes = _QuoteCounter(source)
        table = pacsv.read_csv(quotes, convert_options=options)
    if quotes.count % 2 or (quotes.count and quotes.lines != table.num_rows + 1):
        raise pa.ArrowInvalid("lines between quotation marks may be a text, or rows that a stray mark takes for one")
    return table


class _QuoteCounter:
    """A CSV file whose quotation marks and lines are counted as it is read."""

    def __init__(self, source: io.BufferedReader) -> None:
        self._source, self.count, self._ends, self._last = source, 0, 0, b"\n"

    @property
    def lines(self) -> int:
        """Return how many lines there were."""
        return self._ends + (self._last != b"\n")

    @property
    def closed(self) -> bool:
        """Return whether there is no more to read."""
        return self._source.closed

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        content = self._source.read(size)
        self.count, self._ends = self.count + content.count(b'"'), self._ends + content.count(b"\n")
        self._last = content[-1:] or self._last
        return content


def csv_types(head: bytes, which: Roles) -> dict[str, pa.DataType]:
    """Return what the columns hold, by the first lines: time stamps with or without a zone, or numbers."""
    first = pacsv.read_csv(pa.BufferReader(head[: head.rfind(b"\n") + 1]))
    types = dict[str, pa.DataType]()
    for name in which.times():
        kind = first[name].type
        types[name] = pa.float64() if not pa.types.is_timestamp(kind) else _LOCAL if kind.tz is None else _ZONED
    types |= dict.fromkeys(which.classes(), pa.int64())
    return types | dict.fromkeys(which.labels(), TEXT)


def _in_seconds(
    columns: Mapping[str, pa.ChunkedArray], which: Roles, unit: str | None, form: Times | None = None
) -> tuple[list[str], dict[str, TimeColumn]]:
    """Return notes on the units and zones that were supposed, and the columns of times in seconds."""
    bases = {name: base_of(name, columns[name].type, extent_of(columns[name]), unit, form) for name in which.times()}
    times = {name: TimeColumn(passed_s(columns[name], base), base.since_s) for name, base in bases.items()}
    mixed = zone_notes({name: columns[name].type for name in which.times()})
    return [*mixed, *(base.note for base in bases.values() if base.note)], times


def zone_notes(kinds: Mapping[str, pa.DataType]) -> list[str]:
    """Return notes on columns of stamps without a zone beside one that has it."""
    clock = {name: kind for name, kind in kinds.items() if pa.types.is_timestamp(kind)}
    local = [name for name, kind in clock.items() if kind.tz is None]
    return [
        f"column {name} has no zone, unlike others, and is read as UTC" for name in local if len(local) < len(clock)
    ]


def extent_of(column: pa.ChunkedArray) -> tuple[float, ...]:
    """Return the least and the largest of a column's times as the file has them, infinite ones apart; none of none."""
    if pa.types.is_timestamp(column.type):
        ends = pc.min_max(column.cast(pa.int64())).as_py()
        return () if ends["min"] is None else (ends["min"], ends["max"])
    values = numbers_in(column)
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else ()


def base_of(
    name: str, kind: pa.DataType, extent: tuple[float, ...], unit: str | None, form: Times | None = None
) -> TimeBase:
    """Return how a column becomes seconds, by the least and the largest of its times.

    Time stamps count from the whole second of the first; those without a zone are UTC. Nanoseconds reach from 1677 to
    2262; stamps beyond are told to the microsecond, or to the second.

    Parameters
    ----------
    name, kind : of the column
    extent : as of `extent_of`
    unit : s, ms, us or ns of numbers that do not say it themselves
    form : of the log's records, if that is known
    """
    if pa.types.is_timestamp(kind):
        for ticks in ("ns", "us", "s"):
            whole_second = round(PER_SECOND[ticks])
            try:
                stamps = pa.array(extent, pa.int64()).cast(kind).cast(pa.timestamp(ticks, kind.tz))
                first, last = stamps.cast(pa.int64()).to_pylist() or (0, 0)
                pc.subtract_checked(pa.scalar(last), pa.scalar(first // whole_second * whole_second))
            except (pa.ArrowInvalid, OverflowError):
                continue
            return TimeBase(float(whole_second), float(first // whole_second), ticks)
        return TimeBase(1.0, 0.0, "")
    ends = np.array(extent, dtype=np.float64)
    column_unit, note = unit_of(name, ends, unit)
    if pa.types.is_duration(kind):
        column_unit, note = kind.unit, ""
    elif form is not None and name == form.duration:
        column_unit, note = form.unit, ""
    per_second = PER_SECOND[column_unit]
    since_s = float(np.floor(extent[0] / per_second)) if count_from_1970(ends, column_unit) else 0.0
    return TimeBase(per_second, since_s, None, note)


def passed_s(column: pa.ChunkedArray, base: TimeBase) -> Floats:
    """Return a column of times in seconds since `base.since_s`; infinite ones, which are refused, where it has none."""
    if base.ticks is None:
        return numbers_in(column) / base.per_second - base.since_s
    if not base.ticks:
        return np.full(len(column), np.inf)
    try:
        ticks = column.cast(pa.timestamp(base.ticks, column.type.tz)).cast(pa.int64())
    except pa.ArrowInvalid:
        return np.full(len(column), np.inf)
    passed = pc.subtract(ticks, int(base.since_s) * round(base.per_second))
    return np.asarray(passed.to_numpy(), dtype=np.float64) / base.per_second


def numbers_in(column: pa.ChunkedArray) -> Floats:
    """Return a column as numbers; infinite ones, which are refused, where it holds something else."""
    try:
        whole = column.cast(pa.int64()) if pa.types.is_duration(column.type) else column
        return np.asarray(whole.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowException:
        return np.full(len(column), np.inf)


def _sound(times: Mapping[str, TimeColumn], columns: Mapping[str, pa.ChunkedArray], which: Roles) -> bool:
    """Return whether times are near enough or missing, some are there of each, durations and classes not negative."""
    if any((np.abs(column.value_s) > FARTHEST_S).any() or np.isnan(column.value_s).all() for column in times.values()):
        return False
    for classes in (columns[name] for name in which.classes()):
        if not pa.types.is_integer(classes.type) or classes.null_count or pc.min(classes).as_py() < 0:
            return False
    return which.duration is None or not (times[which.duration].value_s < 0).any()


def _log(
    times: Mapping[str, TimeColumn], columns: Mapping[str, pa.ChunkedArray], which: Roles, notes: Sequence[str]
) -> Log:
    """Return the log: all times since one origin, arrival or departure from the other and the duration."""
    stamps = {name: times[name] for name in which.times() if name != which.duration}
    origin = min(column.since_s for column in stamps.values())
    seconds = {name: column.value_s + (column.since_s - origin) for name, column in stamps.items()}
    if which.duration is not None:
        took = times[which.duration].value_s
        came = seconds[which.arrival] if which.arrival else seconds[str(which.departure)] - took
        left = came + took if which.arrival else seconds[str(which.departure)]
    else:
        came, left = seconds[str(which.arrival)], seconds[str(which.departure)]
    table = pd.DataFrame({"arrival_s": came, "departure_s": left})
    named = "request" if which.request is not None and names_requests(which.request) else "id"
    for to, name in (("type", which.type), (named, which.request)):
        if name is not None:
            table[to] = columns[name].to_pandas()
    for name in which.classes():
        table["priority"] = columns[name].to_numpy().astype(np.int64)
    return Log(table, tuple(notes), origin)


def _too_long(times: Mapping[str, TimeColumn], which: Roles, notes: Sequence[str]) -> int | None:
    """Return the first duration far longer than the whole log, where a note says that its unit was supposed."""
    name, stamp = which.duration, which.arrival or which.departure
    if (
        name is None
        or stamp is None
        or not any(note.startswith(f"column {name} is read as seconds;") for note in notes)
    ):
        return None
    return too_long(times[stamp].value_s, times[name].value_s)


def refuse_undecided(which: Roles, notes: Sequence[str]) -> None:
    """Raise the fault of durations that may be in the unit of the stamps or in seconds."""
    stamp = which.arrival or which.departure
    fault = undecided(stamp, which.duration, notes) if stamp and which.duration else None
    if fault is not None:
        raise FileError([fault])


def _refuse_long(times: Mapping[str, TimeColumn], which: Roles, notes: Sequence[str], cells: FileCells) -> None:
    """Raise the fault of durations that are in another unit, or none."""
    row = _too_long(times, which, notes)
    if row is None:
        return
    name, stamp_s = str(which.duration), times[str(which.arrival or which.departure)].value_s
    span_s = float(np.nanmax(stamp_s) - np.nanmin(stamp_s))
    what = f"should not be far longer than the whole log, {span_s:.4g} s: say --unit, or another column with --duration"
    shown = f"{times[name].value_s[row]:.4g} s"
    raise FileError([FileFault(int(cells.lines[row]), cells.position(name), name, what, shown, record=cells.record)])


def _named(table: pd.DataFrame) -> bool:
    """Return whether it does not matter what else the rows say: they have names, or no two have the same times."""
    return (
        "request" in table
        or "id" in table
        or not might_repeat(*(table[name].to_numpy() for name in ("arrival_s", "departure_s")))
    )


def _others(path: Path, names: Sequence[str], which: Roles) -> pd.DataFrame:
    """Return all columns but those of times, as text or as they are in Parquet."""
    wanted = [name for name in names if name not in which.times()]
    if not wanted:
        return pd.DataFrame()
    return plain_frame(_columns(path, wanted, lambda _: dict.fromkeys(wanted, TEXT)))


def plain_frame(table: pa.Table) -> pd.DataFrame:
    """Return columns of whatever a file says beside the times, texts as categories."""
    plain = [column if _is_plain(column.type) else pa.array(map(str, column.to_pylist())) for column in table]
    others: pd.DataFrame = pa.table(plain, names=table.column_names).to_pandas(strings_to_categorical=True)
    return others


def _is_plain(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _with_rest(log: Log, others: pd.DataFrame) -> Log:
    """Return a log with a number for all that its rows say beside the times, if they say anything.

    Where they say of which trace, session or user they are, another number is for all but that.
    """
    if others.empty:
        return log
    table = log.table.assign(rest=pd.util.hash_pandas_object(others, index=False).to_numpy())
    own = [name for name in others if not names_several(str(name))]
    if len(own) < len(others.columns):
        table["own"] = pd.util.hash_pandas_object(others[own], index=False).to_numpy() if own else 0
    return replace(log, table=table)
