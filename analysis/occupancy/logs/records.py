"""Logs whose records have named fields: JSON of servers and tracers, lines of HAProxy, of AWS, or of a format string.

All become the cells of one table, whose columns carry the unit in their names, so that one way of reading checks them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.occupancy.logs.log import LogFinding, content_of, counted
from analysis.tables.cells import FileCells
from analysis.tables.faults import FileError, FileFault
from models.arrays import Bools, Ints

JsonObject: TypeAlias = Mapping[str, Any]
"""An object of a JSON text."""
JsonRecord: TypeAlias = dict[str, Any]
"""The fields of one request."""
RARE = 0.01
"""From so large a share of the lines on, those of another form are a finding; half of them are a fault."""
MANY_LINES = 100_000
"""Lines from which on it is not waited for the end to tell that half of them are no objects."""
ONE_A_LINE = (
    ", or write an object a line: jq -c '.[]' FILE; of OTLP jq -c '.resourceSpans[].scopeSpans[].spans[]' FILE, with "
    "--arrival startTimeUnixNano --departure endTimeUnixNano --unit ns; of Jaeger jq -c '.data[].spans[]' FILE, with "
    "--arrival startTime --duration duration --unit us"
)
"""What becomes of one JSON document so that it can be read in portions."""
UNLIKE = "lines of another form"
NOT_SEEN = ("", "-", "nan", "null", "none", "na", "n/a")
"""Cells of a request whose arrival or departure was not seen."""
_NAMED = 5
"""Lines that a note names; the others are counted."""
_SERVER = (2, "2", "SPAN_KIND_SERVER")
"""The kind of a span that answers a request from outside (OTLP, enum SpanKind)."""
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
SPANS = Times("OTLP's JSON", "start_ns", False, "duration_ns", "ns")
JAEGER = Times("Jaeger's JSON", "start_us", False, "duration_us", "us")
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
    objects, lines, other, whole = _objects(content_of(path))
    notes, findings = left_out(np.asarray(other, dtype=np.int64), whole, "lines that are no JSON objects")
    traces = objects[0].keys() & {"resourceSpans", "data"} if objects else set()
    if traces:
        found = list(_otlp(objects) if "resourceSpans" in traces else _jaeger(objects))
        rows, notes = _of_servers(found, notes)
        lines = list(range(1, len(rows) + 1))
    else:
        rows = [dict(_flat(record)) for record in objects]
    if not rows:
        raise FileError([FileFault(1, 1, "file", "should hold at least one request", "none")])
    cells = _cells(rows, lines)
    if traces:
        return Records(cells, SPANS if "resourceSpans" in traces else JAEGER, notes, findings)
    return Records(with_path(cells), _form(cells.names), notes, findings)


class JsonPiece(NamedTuple):
    """The requests of some JSON lines."""

    cells: FileCells
    times: Times | None
    """What their times are; None: names tell."""
    other: list[int]
    """Places of lines that are no objects."""
    lines: int
    """Lines that are not blank."""
    names: list[str]
    """Fields as the lines have them."""


def json_piece(text: bytes, first: int, names: Sequence[str] = ()) -> JsonPiece:
    """Return the requests of some JSON lines.

    Parameters
    ----------
    text : whole lines
    first : number of the first, from 1
    names : of the fields; none: those of these lines
    """
    numbered = [(first + at, _parsed(line)) for at, line in enumerate(text.split(b"\n")) if line.strip()]
    records = [(number, record) for number, record in numbered if isinstance(record, dict)]
    other = [number - 1 for number, record in numbered if not isinstance(record, dict)]
    if any(record.keys() & {"resourceSpans", "data"} for _, record in records[:1]):
        problem = f"should be read as a whole: leave --on-disk away{ONE_A_LINE}"
        raise FileError([FileFault(first, 1, "file", problem, "OTLP or Jaeger")])
    cells = _cells([dict(_flat(record)) for _, record in records], [number for number, _ in records], names)
    form, fields = _form(cells.names), list(cells.names)
    return JsonPiece(with_path(cells), form, other, len(numbered), fields)


def _cells(rows: Sequence[JsonRecord], lines: Sequence[int], names: Sequence[str] = ()) -> FileCells:
    fields = list(names) or list(dict.fromkeys(name for row in islice(rows, 10_000) for name in row))
    columns = {name: pd.Series([_cell(row.get(name)) for row in rows], dtype=object) for name in fields}
    return FileCells(fields, columns, np.asarray(lines, dtype=np.int64))


def _form(names: Sequence[str]) -> Times | None:
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


def _objects(content: bytes) -> tuple[list[JsonRecord], list[int], list[int], int]:
    """Return the objects of a file, the line of each, lines that are none, and how many lines there are."""
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    objects, places, other = list[JsonRecord](), list[int](), list[int]()
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        record = _parsed(line)
        if isinstance(record, dict):
            objects.append(record)
            places.append(at + 1)
        else:
            other.append(at)
            if 2 * len(other) > max(MANY_LINES, len(objects) + len(other)):
                break
    if len(other) < len(objects):
        return objects, places, other, len(objects) + len(other)
    document = _parsed(content)
    if isinstance(document, dict):
        return [document], [1], [], 1
    records = [record for record in document if isinstance(record, dict)] if isinstance(document, list) else []
    if not records:
        raise no_objects(other[0] if other else 0, lines[other[0]] if other else b"")
    return records, list(range(1, len(records) + 1)), [], len(records)


def no_objects(place: int, line: bytes) -> FileError:
    """Return the error of a file half of whose lines are no objects, the first of which is at a place, from 0."""
    problem = "should be a JSON object, a line for each request, or one document"
    return FileError([FileFault(place + 1, 1, "line", problem, f'"{line.decode(errors="replace")[:60]}"')])


def _parsed(text: bytes) -> object:
    """Return what JSON says; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _flat(record: JsonObject, above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object, those of objects in it as ``outer.inner``."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{name}.")
        elif not isinstance(value, list):
            yield f"{above}{name}", value


def _cell(value: object) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def _otlp(objects: Sequence[JsonObject]) -> Iterator[JsonRecord]:
    """Yield the spans of OTLP's JSON encoding (opentelemetry-proto, ExportTraceServiceRequest)."""
    for resource in _listed(objects, "resourceSpans"):
        about = _attributes(resource.get("resource") or {})
        for scope in _listed([resource], "scopeSpans", "instrumentationLibrarySpans"):
            for span in _listed([scope], "spans"):
                start, end = (_whole(span.get(f"{name}TimeUnixNano")) for name in ("start", "end"))
                yield {
                    "start_ns": start,
                    "duration_ns": None if start is None or not end else end - start,
                    "span_id": span.get("spanId"),
                    "name": span.get("name"),
                    "service": about.get("service.name"),
                    "kind": "server" if span.get("kind") in _SERVER else str(span.get("kind") or ""),
                    **_attributes(span),
                }


def _jaeger(objects: Sequence[JsonObject]) -> Iterator[JsonRecord]:
    """Yield the spans of what Jaeger's HTTP interface exports: microseconds."""
    for trace in _listed(objects, "data"):
        processes = trace.get("processes") or {}
        for span in _listed([trace], "spans"):
            tags = {str(tag.get("key")): tag.get("value") for tag in _listed([span], "tags")}
            process = processes.get(span.get("processID")) if isinstance(processes, Mapping) else None
            yield {
                "start_us": _whole(span.get("startTime")),
                "duration_us": _whole(span.get("duration")),
                "span_id": span.get("spanID"),
                "name": span.get("operationName"),
                "service": process.get("serviceName") if isinstance(process, Mapping) else None,
                "kind": str(tags.pop("span.kind", "")),
                **tags,
            }


def _of_servers(spans: list[JsonRecord], notes: list[str]) -> tuple[list[JsonRecord], list[str]]:
    """Return the spans that answer requests, if any say that they do, and notes on those that were left out."""
    served = [span for span in spans if span["kind"] == "server"]
    others = len(spans) - len(served)
    if not served:
        told = "no span says that it answers a request (kind server): all are taken" if spans else ""
        return spans, [*notes, told] if told else notes
    if others:
        notes = [*notes, f"{counted(others, 'span')} of other kinds than server: parts of requests, left out"]
    services = sorted({str(span["service"]) for span in served})
    if len(services) > 1:
        shown = ", ".join(services[:3]) + (", …" if len(services) > 3 else "")
        notes = [*notes, f"{len(services)} services ({shown}): each is a queue of its own; choose one with --where"]
    return served, notes


def _attributes(holder: JsonObject) -> JsonRecord:
    values = {}
    for attribute in _listed([holder], "attributes"):
        value = attribute.get("value")
        if isinstance(value, Mapping) and len(value) == 1:
            values[str(attribute.get("key"))] = next(iter(value.values()))
    return {name: value for name, value in values.items() if not isinstance(value, Mapping | list)}


def _listed(holders: Sequence[JsonObject], *names: str) -> Iterator[JsonObject]:
    """Yield the objects in the lists of these names; whatever is no such list holds none."""
    for holder in holders:
        for name in names:
            inner = holder.get(name)
            yield from (item for item in inner if isinstance(item, Mapping)) if isinstance(inner, list) else ()


def _whole(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


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
