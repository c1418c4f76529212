"""Request logs of any format that is known, which the beginning of a file tells; tables are read here.

A table, CSV or Parquet, is read at once where nothing is wrong, and cell by cell where something is.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from analysis.occupancy.logs.hygiene import might_repeat
from analysis.occupancy.logs.log import (
    FARTHEST_S,
    PER_SECOND,
    Log,
    Roles,
    counted,
    names_requests,
    names_several,
    roles,
    too_long,
    undecided,
    unit_of,
)
from analysis.occupancy.logs.swf import read_swf
from analysis.tables.bytes import PARQUET, DamagedError, head_of, stream_of
from analysis.tables.cells import FileCells, cells_of
from analysis.tables.faults import PRINTED, FileError, FileFault
from models.arrays import Floats
from models.errors import InputError

_NOT_SEEN = ("", "-", "nan", "null", "none", "na", "n/a")
"""Cells of a request whose arrival or departure was not seen."""
_TEXT = pa.dictionary(pa.int32(), pa.string())
_ZONE = r"[T ].*(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"
_ZONED, _LOCAL = pa.timestamp("ns", "UTC"), pa.timestamp("ns")


class TimeColumn(NamedTuple):
    """A column of times: seconds since `since_s`, which is a whole number, so that small differences are kept."""

    value_s: Floats
    since_s: float


def read_log(
    path: Path,
    arrival: str | None = None,
    departure: str | None = None,
    duration: str | None = None,
    unit: str | None = None,
    *,
    priority: str | None = None,
) -> Log:
    """Read a request log: CSV, Parquet, an access log of a web server or proxy, or the Standard Workload Format.

    Parameters
    ----------
    path : the file, plain or gzipped
    arrival, departure, duration : columns of a table; those not given are found by their names. Of an access log one
        of the first two may be `time`, to say what its stamp is, and the last the number or the name of its field
    unit : s, ms, us or ns of numbers that do not say it themselves
    priority : column of a table with the class of each request, 0 served first

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
    if unit is not None and unit not in PER_SECOND:
        raise InputError(f"a unit is one of {', '.join(PER_SECOND)}, got {unit}")
    head = head_of(path)
    if not head:
        raise FileError([FileFault(0, 0, "", "is empty", "")])
    if priority and (is_access_log(head) or is_swf(head)):
        raise FileError([FileFault(1, 1, priority, "should be a column", "a format without such columns")])
    if is_access_log(head):
        return read_access_log(path, _stamp(arrival, departure), unit, duration)
    if is_swf(head):
        if arrival or departure or duration or unit:
            raise FileError(
                [FileFault(1, 1, "file", "has its columns and units from its format", "Standard Workload Format")]
            )
        return read_swf(path)
    return read_table_log(path, arrival, departure, duration, unit, priority=priority)


def _stamp(arrival: str | None, departure: str | None) -> str | None:
    """Return whether the stamp of an access log was said to be the arrival or the departure."""
    columns = [name for name in (arrival, departure) if name is not None]
    if len(columns) > 1 or any(name != "time" for name in columns):
        raise InputError(
            f"an access log has one stamp, time, which is an arrival or a departure, got {', '.join(columns)}"
        )
    return "arrival" if arrival else "departure" if departure else None


def is_access_log(head: bytes) -> bool:
    """Return whether a file that begins so is an access log: one of its first lines looks like one.

    Examples
    --------
    >>> is_access_log(b'10.0.0.1 - - [10/Oct/2023:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" 0.012\\n')
    True
    >>> is_access_log(b"arrival_s,departure_s\\n0,1\\n")
    False
    """
    lines = pa.array(head.splitlines()[:PRINTED], pa.binary())
    return bool(pc.any(pc.match_substring_regex(lines, r'^[^",]*\[[^\]]+\] "')).as_py())


def is_swf(head: bytes) -> bool:
    """Return whether a file that begins so is in this format: header comments, or lines of 18 numbers.

    Examples
    --------
    >>> is_swf(b"; Computer: iPSC/860\\n"), is_swf(b"1 0 5 10" + b" -1" * 14 + b"\\n"), is_swf(b"0,1\\n")
    (True, True, False)
    """
    first = next((line for line in head.splitlines() if line.strip()), b"")
    return first.lstrip().startswith(b";") or (len(first.split()) == 18 and b"," not in first)


def read_table_log(
    path: Path,
    arrival: str | None = None,
    departure: str | None = None,
    duration: str | None = None,
    unit: str | None = None,
    *,
    priority: str | None = None,
) -> Log:
    """Read a CSV or Parquet file with a row for each request, or for each arrival and each departure.

    Files without faults are read at once; a file with anything unusual is read again, cell by cell.

    Parameters
    ----------
    path : the file, plain or gzipped
    arrival, departure, duration : columns; those not given are found by their names
    unit : s, ms, us or ns of numbers whose column does not say
    priority : column of classes, whole numbers from 0

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text("start_ms,latency_ms\\n0,1500\\n250,")
    ...     read_table_log(Path(file.name)).table.to_numpy().tolist()
    [[0.0, 1.5], [0.25, nan]]
    """
    names = _names(path)
    if names:
        which = roles(names, arrival, departure, duration, priority)
        columns = _quickly(path, which)
        if columns is not None:
            notes, times = _in_seconds(columns, which, unit)
            sound = _sound(times, columns, which)
            if sound:
                _refuse_undecided(which, notes)
            if sound and _too_long(times, which, notes) is None:
                log = _log(times, columns, which, notes)
                return log if _named(log.table) else _with_rest(log, _others(path, names, which))
    cells = cells_of(path)
    which, columns = _carefully(cells, (arrival, departure, duration, priority), unit)
    notes, times = _in_seconds(columns, which, unit)
    _refuse_undecided(which, notes)
    _refuse_long(times, which, notes, cells)
    log = _log(times, columns, which, notes)
    if _named(log.table):
        return log
    others = [name for name in cells.names if name not in which.times()]
    return _with_rest(log, pd.DataFrame({name: cells.columns[name].astype(str) for name in others}))


def _names(path: Path) -> list[str]:
    """Return the columns of a file that looks in order from its beginning; none if it does not."""
    head = head_of(path)
    try:
        if head.startswith(PARQUET):
            return list(pq.read_schema(path).names)
        if head.startswith(b"{"):
            return []
        names = list(pacsv.read_csv(pa.BufferReader(head.partition(b"\n")[0] + b"\n")).column_names)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return []
    return names if len(set(names)) == len(names) and names == [name.strip() for name in names] else []


def _quickly(path: Path, which: Roles) -> dict[str, pa.ChunkedArray] | None:
    """Return the columns as Arrow reads them, or nothing if anything is unusual."""
    wanted = list(dict.fromkeys([*which.times(), *which.labels(), *which.classes()]))
    try:
        table = _columns(path, wanted, lambda head: _types(head, which))
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
        return pacsv.read_csv(source, convert_options=options)


def _types(head: bytes, which: Roles) -> dict[str, pa.DataType]:
    """Return what the columns hold, by the first lines: time stamps with or without a zone, or numbers."""
    first = pacsv.read_csv(pa.BufferReader(head[: head.rfind(b"\n") + 1]))
    types = dict[str, pa.DataType]()
    for name in which.times():
        kind = first[name].type
        types[name] = pa.float64() if not pa.types.is_timestamp(kind) else _LOCAL if kind.tz is None else _ZONED
    types |= dict.fromkeys(which.classes(), pa.int64())
    return types | dict.fromkeys(which.labels(), _TEXT)


def _in_seconds(
    columns: Mapping[str, pa.ChunkedArray], which: Roles, unit: str | None
) -> tuple[list[str], dict[str, TimeColumn]]:
    """Return notes on the units and zones that were supposed, and the columns of times in seconds."""
    clock = {name: columns[name].type for name in which.times() if pa.types.is_timestamp(columns[name].type)}
    local = [name for name, kind in clock.items() if kind.tz is None]
    mixed = [
        f"column {name} has no zone, unlike others, and is read as UTC" for name in local if len(local) < len(clock)
    ]
    notes, times = list[str](), dict[str, TimeColumn]()
    for name in which.times():
        column = columns[name]
        if pa.types.is_timestamp(column.type):
            times[name] = _since_1970(column)
            continue
        values = _numbers(column)
        column_unit, note = unit_of(name, values, unit)
        notes += [note] * bool(note)
        seconds = values / PER_SECOND[column_unit]
        since = float(np.floor(np.nanmin(seconds))) if "1970" in note else 0.0
        times[name] = TimeColumn(seconds - since, since)
    return [*mixed, *notes], times


def _numbers(column: pa.ChunkedArray) -> Floats:
    """Return a column as numbers; infinite ones, which are refused, where it holds something else."""
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowException:
        return np.full(len(column), np.inf)


def _since_1970(column: pa.ChunkedArray) -> TimeColumn:
    """Return time stamps as seconds since the whole second of the first; those without a zone are UTC.

    Nanoseconds reach from 1677 to 2262; stamps beyond are told to the microsecond, or to the second.
    """
    for unit in ("ns", "us", "s"):
        try:
            ticks = column.cast(pa.timestamp(unit, column.type.tz)).cast(pa.int64())
            first = pc.min(ticks).as_py()
            per_second = round(PER_SECOND[unit])
            since = 0 if first is None else first // per_second
            passed = pc.subtract_checked(ticks, since * per_second)
        except pa.ArrowInvalid:
            continue
        return TimeColumn(np.asarray(passed.to_numpy(), dtype=np.float64) / per_second, float(since))
    return TimeColumn(np.full(len(column), np.inf), 0.0)


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


def _refuse_undecided(which: Roles, notes: Sequence[str]) -> None:
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
    raise FileError([FileFault(int(cells.lines[row]), cells.position(name), name, what, shown)])


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
    table = _columns(path, wanted, lambda _: dict.fromkeys(wanted, _TEXT))
    plain = [column if _is_plain(column.type) else pa.array(map(str, column.to_pylist())) for column in table]
    others: pd.DataFrame = pa.table(plain, names=wanted).to_pandas(strings_to_categorical=True)
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


def _carefully(
    cells: FileCells, stated: tuple[str | None, ...], unit: str | None
) -> tuple[Roles, dict[str, pa.ChunkedArray]]:
    """Return which columns hold what, and each of them, checked cell by cell."""
    if not cells.names or any(fault.line == 1 for fault in cells.faults):
        raise FileError(cells.faults)
    which = roles(cells.names, *stated)
    columns = {name: pa.chunked_array([pa.array(cells.columns[name])]) for name in which.labels()}
    faults = list(cells.faults)
    for name in which.times():
        columns[name], wrong = _checked(cells, name, 0.0 if name == which.duration else -np.inf, unit)
        faults += wrong
    for name in which.classes():
        columns[name], wrong = _classes(cells, name)
        faults += wrong
    if not faults and not len(cells.lines):
        faults.append(FileFault(2, 1, "rows", "should hold at least one row", "none"))
    if faults:
        raise FileError(faults)
    return which, columns


def _checked(cells: FileCells, name: str, least: float, unit: str | None) -> tuple[pa.ChunkedArray, list[FileFault]]:
    """Return a column as numbers or as time stamps, whichever most of its cells are, and its faults."""
    given = cells.columns[name]
    text = given.astype(str).str.strip()
    missing = given.isna() | text.str.lower().isin(_NOT_SEEN)
    times, kind = _read(given, text.mask(missing))
    faults = list(cells.faults_of(name, times.isna() & ~missing, f"should be a {kind}"))
    if kind == "number":
        faults += _outside(cells, name, times, least, unit)
    elif given.dtype.kind != "M":
        zoned = text.str.contains(_ZONE) & ~missing
        faults += cells.faults_of(
            name, times.notna() & ~zoned & bool(zoned.any()), "should have a zone, as others have"
        )
        times = times if zoned.any() else times.dt.tz_localize(None)
    if len(text) and missing.all():
        faults.append(FileFault(2, cells.position(name), name, "should hold at least one time", "none"))
    return pa.chunked_array([pa.array(times, from_pandas=True)]), faults


def _outside(cells: FileCells, name: str, numbers: pd.Series, least: float, unit: str | None) -> Iterator[FileFault]:
    """Yield the faults of numbers that are no times: infinite ones, those that are too small or too far away."""
    farthest = FARTHEST_S * PER_SECOND[unit_of(name, numbers.to_numpy(dtype=np.float64), unit)[0]]
    finite = ~np.isinf(numbers)
    yield from cells.faults_of(name, ~finite, "should be a finite number")
    low = (numbers < least) & finite
    others = int(low.sum()) - 1
    more = f", as should {counted(others, 'cell')} further down" if others > 0 else ""
    yield from itertools.islice(cells.faults_of(name, low, f"should be at least {least:g}{more}"), 1)
    far = finite & (numbers >= least) & (numbers.abs() > farthest)
    yield from cells.faults_of(name, far, f"should be within {FARTHEST_S:g} s of 0")


def _classes(cells: FileCells, name: str) -> tuple[pa.ChunkedArray, list[FileFault]]:
    """Return a column of classes, and the faults of the cells that hold none."""
    classes = pd.to_numeric(cells.columns[name].astype(str).str.strip(), errors="coerce")
    wrong = ~((classes >= 0) & (classes < 2.0**63) & (classes % 1 == 0))
    faults = list(cells.faults_of(name, wrong, "should be a whole number of at least 0"))
    return pa.chunked_array([classes.where(~wrong, 0).astype(np.int64).to_numpy()]), faults


def _read(given: pd.Series, text: pd.Series) -> tuple[pd.Series, str]:
    if given.dtype.kind == "M":
        return given, "time"
    numbers = pd.to_numeric(text, errors="coerce").astype(float)
    stamps = pd.to_datetime(text, errors="coerce", utc=True, format="ISO8601")
    return (stamps, "ISO 8601 time") if stamps.notna().sum() > numbers.notna().sum() else (numbers, "number")
