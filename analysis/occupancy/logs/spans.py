"""Spans of tracers as requests: those of OTLP's JSON and of what Jaeger exports."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from analysis.occupancy.logs.log import counted

JsonObject: TypeAlias = Mapping[str, Any]
"""An object of a JSON text."""
JsonRecord: TypeAlias = dict[str, Any]
"""The fields of one request."""
OTLP, JAEGER_EXPORT, PLAIN, OTHER = "OTLP", "Jaeger", "", "other"
"""What an object holds: spans of either tracer, or one request; or anything that the objects before it do not hold."""
_SERVER = (2, "2", "SPAN_KIND_SERVER")
"""The kind of a span that answers a request from outside (OTLP, enum SpanKind)."""
_WHOLE = re.compile(r"\s*[-+]?[0-9]{1,20}\s*", re.ASCII)
"""A time of a span, with the digits of the largest (fixed64)."""


def form_of_object(record: JsonObject) -> str:
    """Return what an object holds.

    Examples
    --------
    >>> form_of_object({"data": [{"spans": []}]}), form_of_object({"data": "x", "ts": 1})
    ('Jaeger', '')
    """
    if "resourceSpans" in record:
        return OTLP
    return JAEGER_EXPORT if isinstance(record.get("data"), list) else PLAIN


def rows_of(record: JsonObject, form: str) -> Iterator[JsonRecord]:
    """Yield the requests of an object, all its spans if it is of a tracer."""
    if form == OTLP:
        for resource in listed(record, "resourceSpans"):
            yield from resource_rows(resource)
    elif form == JAEGER_EXPORT:
        for trace in listed(record, "data"):
            yield from trace_rows(trace)
    else:
        yield dict(record)


def lost_of(record: JsonObject, form: str) -> int:
    """Return how many requests an object holds that is not of the form of the objects before it, at least one of spans.

    A request may have a field of a tracer's name, such as `data`, as long as no spans are in it.

    Examples
    --------
    >>> lost_of({"ts": 1}, PLAIN), lost_of({"ts": 1}, OTLP), lost_of({"data": [{"spans": [{}, {}]}]}, PLAIN)
    (0, 1, 2)
    """
    kind = form_of_object(record)
    return 0 if kind == form else max(sum(1 for _ in rows_of(record, kind)), int(form != PLAIN))


def resource_rows(resource: JsonObject) -> Iterator[JsonRecord]:
    """Yield the spans of a resource in OTLP's JSON encoding (opentelemetry-proto, ExportTraceServiceRequest)."""
    holder = resource.get("resource")
    about = attributes(holder) if isinstance(holder, Mapping) else {}
    for scope in listed(resource, "scopeSpans", "instrumentationLibrarySpans"):
        for span in listed(scope, "spans"):
            yield span_row(span, about)


def span_row(span: JsonObject, about: JsonObject) -> JsonRecord:
    """Return a span of OTLP as a request.

    Parameters
    ----------
    span : as it is written
    about : attributes of its resource
    """
    start, end = (_whole(span.get(f"{name}TimeUnixNano")) for name in ("start", "end"))
    return {
        "start_ns": start,
        "duration_ns": _duration(start, end),
        "span_id": span.get("spanId"),
        "name": span.get("name"),
        "service": about.get("service.name"),
        "kind": "server" if span.get("kind") in _SERVER else str(span.get("kind") or ""),
        **attributes(span),
    }


def trace_rows(trace: JsonObject) -> Iterator[JsonRecord]:
    """Yield the spans of a trace that Jaeger's HTTP interface exports: microseconds."""
    processes = trace.get("processes") or {}
    for span in listed(trace, "spans"):
        tags = {str(tag.get("key")): tag.get("value") for tag in listed(span, "tags")}
        process = processes.get(str(span.get("processID"))) if isinstance(processes, Mapping) else None
        yield {
            "start_us": _whole(span.get("startTime")),
            "duration_us": _whole(span.get("duration")),
            "span_id": span.get("spanID"),
            "name": span.get("operationName"),
            "service": process.get("serviceName") if isinstance(process, Mapping) else None,
            "kind": str(tags.pop("span.kind", "")),
            **tags,
        }


def answers_requests(span: JsonRecord) -> bool:
    """Return whether a span says that it answers a request from outside."""
    return bool(span["kind"] == "server")


def service_of(span: JsonRecord) -> str:
    """Return the name of a span's service, or that it has none: Jaeger's spans name a process that a trace may lack."""
    return str(span["service"] or "one without a name")


def notes_on_spans(spans: int, others: int, services: Sequence[str]) -> list[str]:
    """Return the notes on spans that were left out and on the services of those that were taken.

    Parameters
    ----------
    spans : that are taken
    others : that are left out, as they say that they answer no request
    services : of those that say that they answer one, sorted; none: no span says it
    """
    if not services:
        return ["no span says that it answers a request (kind server): all are taken"] if spans else []
    notes = list[str]()
    if others:
        notes.append(f"{counted(others, 'span')} of other kinds than server: parts of requests, left out")
    if len(services) > 1:
        shown = ", ".join(services[:3]) + (", …" if len(services) > 3 else "")
        notes.append(f"{len(services)} services ({shown}): each is a queue of its own; choose one with --where")
    return notes


def attributes(holder: JsonObject) -> JsonRecord:
    """Return the attributes of a span or a resource that are no lists."""
    values = {}
    for attribute in listed(holder, "attributes"):
        value = attribute.get("value")
        if isinstance(value, Mapping) and len(value) == 1:
            values[str(attribute.get("key"))] = next(iter(value.values()))
    return {name: value for name, value in values.items() if not isinstance(value, (Mapping, list))}


def listed(holder: JsonObject, *names: str) -> Iterator[JsonObject]:
    """Yield the objects in the lists of these names; whatever is no such list holds none."""
    for name in names:
        inner = holder.get(name)
        yield from (item for item in inner if isinstance(item, Mapping)) if isinstance(inner, list) else ()


def _duration(start: int | str | None, end: int | str | None) -> int | str | None:
    """Return the time between both ends of a span, None if one is not known, and an end that is no number as it is."""
    if isinstance(end, str):
        return end
    return end - start if end and isinstance(start, int) else None


def _whole(value: object) -> int | str | None:
    """Return a whole number, None of nothing, and whatever else there is as text, which is a fault of the log."""
    text = "" if value is None else str(int(value) if isinstance(value, float) and value.is_integer() else value)
    return int(text) if _WHOLE.fullmatch(text) else text or None
