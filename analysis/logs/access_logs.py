"""Access logs of nginx and Apache: a line for each request, with the time that it took at the end."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.cells import TableFault
from analysis.logs.columns import FARTHEST_S, PER_SECOND
from analysis.logs.sources import Log, stream_of
from analysis.readers import PRINTED, TableError
from analysis.statistics import Bools, Floats

LINE = (
    r"^[^\[]*\[(?P<time>[-+.:/ 0-9A-Za-z]+)\] "  # client, user, time: $time_local, $time_iso8601, $msec
    r'"(?:[^"\\]|\\.)*" \d{3} (?:\d+|-)(?: .*")? '  # request, status and bytes, then quoted fields
    r"(?:rt=|request_time=)?(?P<duration>\d+(?:\.\d+)?)(?: .*)?\r?$"  # nginx's $request_time, Apache's %D or %T
)
"""The common and the combined format with the duration after them (RE2 syntax)."""

_SKIPPED = 5
"""Lines that a note names; the others are counted."""


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
    return bool(pc.any(pc.match_substring_regex(lines, r'^[^\[,]*\[[^\]]+\] "')).as_py())


def read_access_log(path: Path, time: str | None = None, unit: str | None = None) -> Log:
    """Read an access log of nginx or Apache, in the common or combined format with the duration after it.

    nginx stamps a request when it ends and gives its time in seconds with three decimals ($request_time; module
    ngx_http_log_module). Apache stamps it when it starts (%t) and gives whole microseconds (%D) or seconds (%T, which
    needs `unit`; module mod_log_config). So the decimal point tells them apart. Where stamps are whole seconds,
    departures are put where the order of the lines, which is that of completion, leaves room for them.

    Parameters
    ----------
    path : the file, plain or gzipped
    time : arrival or departure, if the stamp is not what it is by default
    unit : s, ms, us or ns of the durations, if it is not the default

    Raises
    ------
    TableError
        If most lines are not of these formats, or the file is cut off.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> line = '::1 - - [10/Oct/2023:13:55:3{} +0000] "GET / HTTP/1.1" 200 5 "-" "curl" {}\\n'
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = Path(file.name).write_text(line.format(6, "0.500") + line.format(7, "0.250"))
    ...     log = read_access_log(Path(file.name))
    >>> log.table.to_numpy().tolist(), log.origin_s
    ([[0.0, 0.5], [1.25, 1.5]], 1696946136.0)
    """
    lines = _lines(path)
    parts = pc.extract_regex(lines, LINE)
    stamp_s = _stamps(pc.struct_field(parts, "time"))
    texts = pc.struct_field(parts, "duration")
    took = np.asarray(pc.fill_null(texts.cast(pa.string()).cast(pa.float64()), np.nan).to_numpy(False))
    nginx = (pc.mean(pc.match_substring(texts, ".").cast(pa.float64())).as_py() or 0.0) > 0.5
    took_s = took / PER_SECOND[unit or ("s" if nginx else "us")]
    read = (np.abs(stamp_s) <= FARTHEST_S) & (took_s <= FARTHEST_S)
    notes = _skipped(path, lines, read)
    by_end = time == "departure" if time else nginx
    took_s = took_s[read]
    origin = float(np.floor(stamp_s[read].min()))
    stamp_s = stamp_s[read] - origin
    notes += [_understood(nginx, by_end, unit or ("s" if nginx else "us"))]
    end_s, resolution_s = stamp_s if by_end else stamp_s + took_s, 0.0
    if np.array_equal(stamp_s, np.floor(stamp_s)):
        resolution_s = 1.0
        end_s, how = within_seconds(end_s)
        notes.append(f"stamps are whole seconds: {how}; durations are exact, so is the aggregate response time")
    table = pd.DataFrame({"arrival_s": end_s - took_s, "departure_s": end_s})
    return Log(table, tuple(notes), origin, at_application=True, resolution_s=resolution_s)


def within_seconds(earliest_s: Floats) -> tuple[Floats, str]:
    """Return when requests ended that are known to the second, and how that was found, from the order of their lines.

    Request i ended between `earliest_s[i]` and a second later, not before the requests of the lines above it and not
    after those below it. Requests with the same room share it evenly, in order.

    Parameters
    ----------
    earliest_s : (n,) array, seconds: the least that each end can be, in order of the lines

    Examples
    --------
    >>> within_seconds(np.array([0.0, 0.0, 0.75, 0.25, 1.5]))[0]
    array([0.25 , 0.75 , 0.875, 1.125, 2.   ])
    >>> within_seconds(np.array([9.0, 0.0]))
    (array([9.5, 0.5]), 'the lines are not in order of completion, so half a second is added to each')
    """
    low = np.maximum.accumulate(earliest_s)
    high = np.minimum.accumulate(earliest_s[::-1])[::-1] + 1.0
    if np.mean(low > high) > 0.01:
        return earliest_s + 0.5, "the lines are not in order of completion, so half a second is added to each"
    new = np.concatenate(([True], (np.diff(low) != 0) | (np.diff(high) != 0)))
    run = np.cumsum(new) - 1
    size = np.bincount(run)
    place = np.arange(len(low)) - np.flatnonzero(new)[run]
    end_s = low + (high - low) * (place + 0.5) / size[run]
    return end_s, "departures are put where the order of the lines leaves room for them"


def _lines(path: Path) -> pa.Array:
    try:
        with stream_of(path) as source:
            data = source.read()
    except OSError as error:
        if error.errno:
            raise
        raise TableError([TableFault(1, 1, "file", "should be a whole gzip file", "one cut off or damaged")]) from None
    return pa.array(data.removesuffix(b"\n").split(b"\n"), pa.large_binary())


def _stamps(texts: pa.Array) -> Floats:
    """Return time stamps as seconds since 1970, NaN where there is none; each text is read once."""
    coded = texts.cast(pa.large_string()).dictionary_encode()
    known = pd.Series(coded.dictionary.to_pandas(), dtype=object)
    seconds = pd.to_numeric(known, errors="coerce").astype(float)
    for form in ("%d/%b/%Y:%H:%M:%S %z", "ISO8601"):
        clock = pd.to_datetime(known, format=form, errors="coerce", utc=True)
        seconds = seconds.fillna((clock - pd.Timestamp(0, tz="UTC")).dt.total_seconds())
    codes = pc.fill_null(coded.indices, len(known)).to_numpy(False)
    return np.asarray(np.append(seconds.to_numpy(), np.nan)[codes], dtype=np.float64)


def _skipped(path: Path, lines: pa.Array, read: Bools) -> list[str]:
    """Return a note on lines of another form; a file of which they are most is refused."""
    empty = pc.equal(pc.binary_length(lines), 0).to_numpy(False)
    other = np.flatnonzero(~read & ~empty)
    if 2 * len(other) >= np.count_nonzero(~empty):
        what = "should be a line of an access log that ends in the request's duration"
        shown = ((row, lines[row].as_py().decode(errors="replace")[:60]) for row in other)
        raise TableError([TableFault(int(row) + 1, 1, "line", what, f'"{text}"') for row, text in shown])
    named = ", ".join(str(row + 1) for row in other[:_SKIPPED]) + (", …" if len(other) > _SKIPPED else "")
    return [f"{len(other)} lines are of another form and left out: line {named}"] if len(other) else []


def _understood(nginx: bool, by_end: bool, unit: str) -> str:
    kind = "with a decimal point, as nginx writes them" if nginx else "whole numbers, as Apache writes them"
    return f"durations are {kind}: read in {unit}, with stamps of the request's {'end' if by_end else 'start'}"
