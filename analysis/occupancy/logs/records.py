"""Logs whose records have named fields: JSON of servers and tracers, lines of HAProxy, of AWS, or of a format string.

All become the cells of one table, whose columns carry the unit in their names, so that one way of reading checks them.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.occupancy.logs.documents import document_rows
from analysis.occupancy.logs.log import LogFinding, content_of, counted
from analysis.occupancy.logs.spans import (
    JAEGER_EXPORT,
    OTHER,
    OTLP,
    PLAIN,
    JsonObject,
    JsonRecord,
    answers_requests,
    form_of_object,
    lost_of,
    notes_on_spans,
    rows_of,
    service_of,
)
from analysis.tables.bytes import salvaged, stream_of
from analysis.tables.cells import FileCells
from analysis.tables.faults import FileError, FileFault
from models.arrays import Bools, Ints

RARE = 0.01
"""From so large a share of the lines on, those of another form are a finding; half of them are a fault."""
MANY_LINES = 100_000
"""Lines from which on it is not waited for the end to tell that half of them are no objects."""
SPAN, OBJECT = "span", "object"
"""What is counted in a JSON document, whose lines mean nothing."""
UNLIKE = "lines of another form"
NO_OBJECTS = "lines that are no JSON objects"
_BEGIN_BYTES, _TRIED = 1 << 23, 100
"""So much of a file, and so many of its lines, tell whether it has an object a line."""
NOT_SEEN = ("", "-", "nan", "null", "none", "na", "n/a")
"""Cells of a request whose arrival or departure was not seen."""
_NAMED = 5
"""Lines that a note names; the others are counted."""
_REQUEST_LINE = re.compile(r"([A-Z]+) ([^ ?]*)\S*(?: HTTP/[0-9.]+)?")


class Times(NamedTuple):
    """Which fields of a record are its times, and what they mean."""

    form: str
    stamp: str
    by_end: bool
    duration: str
    unit: str
    """s, ms, us or ns of durations that are bare numbers."""
    upstream: str | None = None
    """The time that the servers behind took, of the same unit."""
    delay: tuple[str, ...] = ()
    """Fields that passed before the request went upstream."""
    marks: tuple[str, ...] = ()
    """Further fields by which the form is known."""
    least: float = -math.inf
    """The least stamp that is a number."""

    def fits(self, names: Sequence[str]) -> bool:
        """Return whether a record with these fields is of this form."""
        return {self.stamp, self.duration, *self.marks} <= set(names)


JSON_FORMS = (
    Times("Google Cloud's load balancers' format", "timestamp", False, "httpRequest.latency", "s"),
    Times("Traefik's JSON", "StartUTC", False, "Duration", "ns", "OriginDuration", ("Overhead",)),
    Times("Envoy's JSON", "start_time", False, "duration", "ms", "upstream_service_time", (), ("response_flags",)),
    Times("Caddy's JSON", "ts", True, "duration", "s", None, (), ("request.method",)),
    *(
        Times("nginx's variables", stamp, True, "request_time", "s", "upstream_response_time")
        for stamp in ("msec", "time_iso8601", "time_local")
    ),
)
"""Forms of JSON lines, known by their fields; the first that fits."""
SPAN_TIMES = {
    OTLP: Times("OTLP's JSON", "start_ns", False, "duration_ns", "ns", least=1.0),
    JAEGER_EXPORT: Times("Jaeger's JSON", "start_us", False, "duration_us", "us", least=1.0),
}
"""Of spans, whose fields `spans` names."""
_HAPROXY = (
    r"^(?:.*\]: )?(?P<client>[^ ]+) \[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{3})\] (?P<frontend>[^ ]+) "
    r"(?P<backend>[^ /]+)/(?P<server>[^ ]+) (?P<receive_ms>-?\d+)/(?P<queue_ms>-?\d+)/(?P<connect_ms>-?\d+)/"
    r"(?P<response_ms>-?\d+)/\+?(?P<active_ms>\d+) (?P<status>-?\d+) \+?(?P<bytes>\d+) .*?"
    r'"(?P<request>[^"]*)"?\r?$'
)
"""``option httplog``, section 8.2.3 of HAProxy's configuration manual: the request's date, TR/Tw/Tc/Tr/Ta."""
_ALB = (
    r"^(?P<type>https?|h2|grpcs|wss?) (?P<time>\d{4}-\d\d-\d\dT[0-9:.]+Z) (?P<balancer>[^ ]+) (?P<client>[^ ]+) "
    r"(?P<target>[^ ]+) (?P<request_processing_time>-?[0-9.]+) (?P<target_processing_time>-?[0-9.]+) "
    r"(?P<response_processing_time>-?[0-9.]+) (?P<status>\d+|-) (?P<target_status>\d+|-) (?P<received>\d+) "
    r'(?P<bytes>\d+) "(?P<request>[^"]*)" "(?:[^"\\]|\\.)*" .*\r?$'
)
"""Syntax of access log entries of an Application Load Balancer: `time` is when the response was generated."""
LINE_FORMS = (
    (_HAPROXY, Times("HAProxy's HTTP format", "time", False, "active_ms", "ms", "upstream_ms", ("delay_ms",))),
    (_ALB, Times("AWS's load balancer format", "time", True, "duration_s", "s", "target_s", ("delay_s",))),
)
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "stamp at the end": ("msec", "time_iso8601", "time_local", "end_time"),
    "stamp at the start": ("start_time", "time_start"),
}
_APACHE: Mapping[str, str] = {
    **{"h": "remote_addr", "a": "remote_addr", "l": "remote_logname", "u": "remote_user", "r": "request"},
    **{"s": "status", ">s": "status", "b": "bytes", "B": "bytes", "O": "bytes_sent", "I": "bytes_received"},
    **{"t": "time_start", "D": "duration_us", "T": "duration_s", "{ms}T": "duration_ms", "{us}T": "duration_us"},
    **{"{s}T": "duration_s", "v": "host", "V": "host", "m": "method", "U": "path", "q": "query", "H": "protocol"},
}
"""Directives of Apache's LogFormat (module mod_log_config) by the fields that they write."""
_TOKEN = re.compile(r"\$\{?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}?|%(?P<directive>(?:\{[^}]*\}|[<>])?[A-Za-z])")


class Records(NamedTuple):
    """The records of a log as cells, what their times are, and what should be known of how they were taken."""

    cells: FileCells
    times: Times | None
    """None: names tell, as in any table."""
    notes: list[str]
    findings: list[LogFinding]


def json_records(path: Path) -> Records:
    """Read JSON: an object for each request, on lines or in an array; traces of OTLP or of Jaeger.

    Parameters
    ----------
    path : the file, plain or packed

    Raises
    ------
    FileError
        If half of the lines are no objects, or nothing is in them.
    """
    notes, findings = list[str](), list[LogFinding]()
    of_lines = has_object_lines(path)
    if of_lines:
        objects, lines, other = _object_lines(content_of(path))
        form = form_of_object(objects[0])
        notes, findings = left_out(np.asarray(other, dtype=np.int64), len(lines) + len(other), NO_OBJECTS)
        lost = [lost_of(record, form) for record in objects]
        rows = [row for record, gone in zip(objects, lost, strict=True) if not gone for row in rows_of(record, form)]
        lines = [line for line, gone in zip(lines, lost, strict=True) if not gone]
        findings += other_objects(sum(lost), form)
    else:
        known = list(document_rows(path, _BEGIN_BYTES))
        form = next((kind for kind, _ in known if kind != OTHER), PLAIN)
        rows = [row for kind, row in known if kind != OTHER]
        lines = list(range(1, len(rows) + 1))
        findings += other_objects(len(known) - len(rows), form)
    if form != PLAIN:
        served = [at for at, row in enumerate(rows) if answers_requests(row)]
        services = sorted({service_of(rows[at]) for at in served})
        notes += notes_on_spans(len(rows), len(rows) - len(served), services)
        lines = [at + 1 for at in served or range(len(rows))]
        rows = [rows[line - 1] for line in lines]
    if not rows:
        raise no_requests()
    if form != PLAIN:
        return Records(record_cells(rows, lines, record=SPAN), SPAN_TIMES[form], notes, findings)
    cells = record_cells([dict(flat(row)) for row in rows], lines, record="" if of_lines else OBJECT)
    if not cells.names:
        raise no_fields(rows[0], lines[0], cells.record)
    return Records(with_path(cells), json_form(cells.names), notes, findings)


def no_requests() -> FileError:
    """Return the error of JSON without a request."""
    return FileError([FileFault(1, 1, "file", "should hold at least one request", "none")])


def other_objects(lost: int, form: str) -> list[LogFinding]:
    """Return the finding of requests in objects of another form than the first; none if there are none.

    Parameters
    ----------
    lost : these requests
    form : what the first object holds
    """
    first = "spans of " + SPAN_TIMES[form].form if form in SPAN_TIMES else "a request"
    evidence = f"the first object holds {first}, theirs do not"
    return [LogFinding("objects of another form", lost, evidence, "left out")] if lost else []


def no_fields(row: JsonObject, line: int, record: str) -> FileError:
    """Return the error of JSON whose requests have no field: perhaps they are in a list in it."""
    problem = (
        "should be a request with its times, in a list or one after another, or spans in resourceSpans (OTLP) or data "
        "(Jaeger)"
    )
    lists = [name for name, value in row.items() if isinstance(value, list)]
    hint = f" (jq '.{lists[0]}' FILE writes its list alone)" if len(lists) == 1 and lists[0].isidentifier() else ""
    shown = f"an object that has only {', '.join(lists)[:60]}" if lists else "an object without a field"
    return FileError([FileFault(line, 1, "" if record else OBJECT, problem, shown + hint, record=record)])


def record_cells(
    rows: Sequence[JsonRecord], lines: Sequence[int], names: Sequence[str] = (), *, record: str = ""
) -> FileCells:
    """Return requests as cells, with a number for each.

    Parameters
    ----------
    rows : the requests
    lines : (n,) numbers of theirs
    names : of the fields; none: those of the first requests
    record : what the numbers count: `SPAN`, `OBJECT`; nothing: lines
    """
    fields = list(names) or list(dict.fromkeys(name for row in islice(rows, 10_000) for name in row))
    columns = {name: pd.Series([_cell(row.get(name)) for row in rows], dtype=object) for name in fields}
    return FileCells(fields, columns, np.asarray(lines, dtype=np.int64), record=record)


def json_form(names: Sequence[str]) -> Times | None:
    """Return the form of JSON lines with these fields; None if it is not known."""
    return next((form for form in JSON_FORMS if form.fits(names)), None)


def line_records(path: Path, form: tuple[str, Times]) -> Records:
    """Read lines of HAProxy's or AWS's form.

    Parameters
    ----------
    path : the file, plain or packed
    form : one of `LINE_FORMS`
    """
    pattern, times = form
    cells, notes, findings = _of_lines(path, pattern)
    cells, held_s, refused = with_parts(cells)
    return Records(cells, times, [*notes, *held_back(held_s, refused)], findings)


def with_parts(cells: FileCells) -> tuple[FileCells, float, int]:
    """Return lines of HAProxy or AWS with how long requests took, in all and upstream.

    Beside them are how long HAProxy itself held requests back, seconds, and how many lines are left out because AWS's
    load balancer reached no target.
    """
    number = {name: pd.to_numeric(column, errors="coerce") for name, column in cells.columns.items()}
    held_s, refused = 0.0, 0
    if "active_ms" in number:
        delay = number["receive_ms"].clip(lower=0) + number["queue_ms"].clip(lower=0)
        added = {"delay_ms": delay, "upstream_ms": (number["active_ms"] - delay).clip(lower=0)}
        held_s = float(number["queue_ms"].clip(lower=0).sum()) / 1e3
    else:
        parts = [number[f"{name}_processing_time"] for name in ("request", "target", "response")]
        without = pd.concat(parts, axis=1).lt(0).any(axis=1)
        refused = int(without.sum())
        if refused:
            cells = cells.taken(cells.columns, {}, {}, (~without).to_numpy())
            parts = [part[~without].reset_index(drop=True) for part in parts]
        added = {"duration_s": sum(parts[1:], parts[0]), "target_s": parts[1], "delay_s": parts[0]}
    for name, column in added.items():
        cells.columns[name] = column.astype(str)
    cells.names[:] = list(cells.columns)
    return with_path(cells), held_s, refused


def held_back(held_s: float, refused: int) -> list[str]:
    """Return the notes on what `with_parts` tells."""
    notes = list[str]()
    if held_s:
        notes.append(f"HAProxy itself held requests back for {held_s:,.4g} s in all (Tw): part of responses")
    if refused:
        notes.append(f"{counted(refused, 'request')} reached no target (-1), left out")
    return notes


def format_records(path: Path, text: str) -> Records:
    """Read lines of a format string, nginx's log_format or Apache's LogFormat.

    Parameters
    ----------
    path : the file, plain or packed
    text : such as ``$remote_addr [$time_local] "$request" $request_time`` or ``%h %t "%r" %>s %D``; a name with a unit,
        such as ``$took_ms``, is in that unit

    Raises
    ------
    FileError
        If the string has no fields, one twice, or two without anything between; if half of the lines do not fit.
    """
    pattern, times = format_times(text)
    cells, notes, findings = _of_lines(path, pattern)
    return Records(with_path(cells), times, notes, findings)


def format_times(text: str) -> tuple[str, Times | None]:
    """Return the regular expression of a format string, and its times if its fields are known."""
    pattern, names = compiled_format(text)
    ends, starts = (
        [name for name in _VARIABLES[where] if name in names] for where in ("stamp at the end", "stamp at the start")
    )
    took = next((name for name in ("request_time", "duration_us", "duration_ms", "duration_s") if name in names), None)
    if not took or not (ends or starts):
        return pattern, None
    unit = took.rpartition("_")[2] if took != "request_time" else "s"
    upstream = "upstream_response_time" if "upstream_response_time" in names else None
    return pattern, Times("--format", (ends or starts)[0], bool(ends), took, unit, upstream)


def compiled_format(text: str) -> tuple[str, list[str]]:
    """Return the regular expression (RE2) of a format string, a group for each field, and the fields' names.

    Examples
    --------
    >>> compiled_format('%h "%r" $request_time')[1]
    ['remote_addr', 'request', 'request_time']
    """
    pieces, names, at = ["^"], list[str](), 0
    tokens = list(_TOKEN.finditer(text))
    for token, following in zip(tokens, [*tokens[1:], None][: len(tokens)], strict=True):
        name = token["name"] or _APACHE.get(token["directive"], re.sub(r"\W+", "_", token["directive"]).strip("_"))
        if name in names:
            raise FileError([FileFault(1, 1, "--format", "should name a field once", name)])
        names.append(name)
        before, after = text[at : token.start()], text[token.end() : following.start() if following else len(text)]
        if following is not None and not after:
            raise FileError([FileFault(1, 1, "--format", "should have a character after each field", token[0])])
        pieces += [re.escape(before), rf"(?P<{name}>{_field(token, before, after)})"]
        at = token.end()
    if not names:
        raise FileError([FileFault(1, 1, "--format", "should name fields, such as $request_time or %D", text[:60])])
    return "".join([*pieces, re.escape(text[at:]), r"\r?$"]), names


def left_out(rows: Ints, whole: int, name: str) -> tuple[list[str], list[LogFinding]]:
    """Return what is said of lines that are left out: a note, or from 1% of the lines on a finding.

    Parameters
    ----------
    rows : (n,) places of these lines, from 0
    whole : lines of the file
    name : what they are
    """
    named = ", ".join(str(row + 1) for row in rows[:_NAMED]) + (", …" if len(rows) > _NAMED else "")
    if len(rows) >= max(RARE * whole, 1):
        evidence = f"{len(rows) / whole:.1%} of the lines: line {named}"
        return [], [LogFinding(name, len(rows), evidence, "left out")]
    return ([f"{name}: {len(rows):,}, left out: line {named}"] if len(rows) else []), []


def _field(token: re.Match[str], before: str, after: str) -> str:
    """Return what a field may be, by what stands around it."""
    if token["directive"] == "t":
        return r"\[[^\]]*\]"
    if "upstream" in (token["name"] or "") and "time" in (token["name"] or ""):
        return r"[-0-9.]*(?:(?:, | : )[-0-9.]+)*"  # of several servers that were tried
    if before.endswith('"') and after.startswith('"'):
        return r'(?:[^"\\]|\\.)*'
    return rf"[^{re.escape(after[0])}]*" if after else r"\S*"


def _of_lines(path: Path, pattern: str) -> tuple[FileCells, list[str], list[LogFinding]]:
    """Return the groups of a regular expression as columns, and what is said of the lines that do not match."""
    cells, other, whole, first = matched(content_of(path).removesuffix(b"\n"), 1, pattern)
    refuse_most(other, whole, first)
    notes, findings = left_out(other, whole, UNLIKE)
    return cells, notes, findings


def matched(text: bytes, first: int, pattern: str) -> tuple[FileCells, Ints, int, str]:
    """Return the groups of a regular expression in some lines as columns.

    Beside them are the places from 0 of the lines that do not match, how many lines are not empty, and the first that
    does not match.

    Parameters
    ----------
    text : whole lines
    first : number of the first, from 1
    pattern : of a line
    """
    lines = pa.array(text.split(b"\n"), pa.large_binary())
    parts = pc.extract_regex(lines, pattern)
    read = np.asarray(parts.is_valid().to_numpy(False), dtype=np.bool_)
    filled = np.asarray(pc.greater(pc.binary_length(lines), 0).to_numpy(False), dtype=np.bool_)
    other = np.flatnonzero(~read & filled)
    unlike = lines[int(other[0])].as_py().decode(errors="replace")[:60] if len(other) else ""
    kept = parts.filter(pa.array(read))
    names = [field.name for field in parts.type]
    columns = {name: _texts(pc.struct_field(kept, name)) for name in names}
    return FileCells(names, columns, np.flatnonzero(read) + first), other + first - 1, int(filled.sum()), unlike


def refuse_most(other: Ints, whole: int, first: str) -> None:
    """Raise the fault of a log half of whose lines are of another form, the first of which is shown."""
    if 2 * len(other) >= whole:
        problem = f"should be a line of this form ({len(other):,} of {counted(whole, 'line')} are not)"
        raise FileError([FileFault(int(other[0]) + 1 if len(other) else 1, 1, "line", problem, f'"{first}"')])


def _texts(column: pa.Array) -> pd.Series:
    try:
        texts = column.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [cell.decode(errors="replace") for cell in column.to_pylist()]
    series: pd.Series = pd.Series(texts, dtype=object) if isinstance(texts, list) else texts.to_pandas().astype(object)
    return series


def has_object_lines(path: Path) -> bool:
    """Return whether most of the first lines of a file are JSON objects."""
    with stream_of(path) as source:
        content, _ = salvaged(source, _BEGIN_BYTES)
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if len(content) == _BEGIN_BYTES and len(lines) > 1:
        lines.pop()
    filled = list(islice((line for line in lines if line.strip()), _TRIED))
    return 2 * sum(isinstance(parsed(line), dict) for line in filled) > len(filled)


def _object_lines(content: bytes) -> tuple[list[JsonRecord], list[int], list[int]]:
    """Return the objects of lines, the line of each, and the places of lines that are none."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    objects, places, other = list[JsonRecord](), list[int](), list[int]()
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        record = parsed(line)
        if isinstance(record, dict):
            objects.append(record)
            places.append(at + 1)
        else:
            other.append(at)
            if 2 * len(other) > max(MANY_LINES, len(objects) + len(other)):
                break
    if len(other) >= len(objects):
        raise no_objects(other[0] if other else 0, lines[other[0]] if other else b"")
    return objects, places, other


def no_objects(place: int, line: bytes) -> FileError:
    """Return the error of a file half of whose lines are no objects, the first of which is at a place, from 0."""
    problem = "should be a JSON object, a line for each request, or one document"
    return FileError([FileFault(place + 1, 1, "line", problem, f'"{line.decode(errors="replace")[:60]}"')])


def parsed(text: bytes) -> object:
    """Return what JSON says; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def flat(record: JsonObject, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object, those of objects in it as ``outer.inner``."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}.")
        elif not isinstance(value, list):
            yield f"{above}{name}", value


def _cell(value: object) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def with_path(cells: FileCells) -> FileCells:
    """Return a log with columns `method` and `path` of what its request lines say, and without the line itself."""
    name = next((name for name in cells.names if name.rpartition(".")[2] in ("request", "RequestLine")), None)
    if name is None or {"method", "path"} & set(cells.names):
        return cells
    matches = [_REQUEST_LINE.match(str(text)) for text in cells.columns[name]]
    if sum(match is not None for match in matches) * 2 < len(matches):
        return cells
    for at, column in enumerate(("method", "path"), 1):
        cells.columns[column] = pd.Series([match[at] if match else "" for match in matches], dtype=object)
    cells.columns["request_line"] = cells.columns.pop(name)
    cells.names[:] = list(cells.columns)
    return cells


def chosen(cells: FileCells, rows: Bools) -> FileCells:
    """Return some rows of a log."""
    return cells.taken(cells.columns, cells.positions, cells.computed, rows)


def understood(times: Times) -> str:
    """Return the note on how records were read."""
    end = "end" if times.by_end else "start"
    return f"lines are in {times.form}: {times.duration} read in {times.unit}, {times.stamp} as the {end}"


def has_times(cells: FileCells, times: Times) -> Bools:
    """Return which records have both times."""
    known = [~cells.text(name).str.lower().isin(NOT_SEEN) for name in (times.stamp, times.duration)]
    return np.asarray(known[0] & known[1], dtype=np.bool_)


def without_times(times: Times, count: int) -> list[LogFinding]:
    """Return the finding of so many records without times."""
    evidence = f"no {times.stamp} or no {times.duration}"
    return [LogFinding("records without times", count, evidence, "left out")] if count else []
