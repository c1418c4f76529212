"""One simulated server's requests in every format of logs that is read; true service and queueing time are known."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from models.queues.serve import serve

ORIGIN = 1_696_946_136
SERVERS = 4


class Served(NamedTuple):
    """One request: when it came and left, seconds since 1970, and what else logs say of it."""

    number: int
    came: float
    left: float
    demand: float
    path: str
    status: int


def workload(requests: int = 400) -> list[Served]:
    """Requests first come first served on four servers, three quarters busy, in the order of completion.

    Times are whole milliseconds, so that formats in milliseconds lose nothing.
    """
    rng = np.random.default_rng(7)
    arrival = np.round(rng.exponential(1 / 30, requests).cumsum(), 3)
    demand = np.maximum(np.round(rng.exponential(0.1, requests), 3), 0.001)
    departure = serve("fcfs", arrival, demand, SERVERS).departure_s
    paths = rng.choice(["/search", "/item/7", "/cart"], requests, p=[0.2, 0.5, 0.3])
    return [
        Served(i, ORIGIN + arrival[i], ORIGIN + departure[i], demand[i], str(paths[i]), 200 if i % 50 else 503)
        for i in np.argsort(departure, kind="stable")
    ]


def truth(requests: list[Served]) -> tuple[float, float]:
    """Service and queueing time of all requests, seconds."""
    service = sum(request.demand for request in requests)
    return service, sum(request.left - request.came for request in requests) - service


def clf(time: float, fraction: str = "") -> str:
    milliseconds = f".{round(time % 1 * 1000):03d}" if fraction else ""
    return f"{datetime.fromtimestamp(int(time + 5e-4), UTC):%d/%b/%Y:%H:%M:%S}{milliseconds}"


def iso(time: float) -> str:
    return datetime.fromtimestamp(round(time, 3), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ms(seconds: float) -> int:
    return round(1000 * seconds)


def took(request: Served) -> float:
    return request.left - request.came


def _lines(write: Callable[[Served], str]) -> Callable[[list[Served]], str]:
    return lambda requests: "".join(f"{write(request)}\n" for request in requests)


def _json(record: Callable[[Served], Mapping[str, object]]) -> Callable[[list[Served]], str]:
    return _lines(lambda request: json.dumps(record(request)))


def _table(separator: str, header: str, row: Callable[[Served], tuple[object, ...]]) -> Callable[[list[Served]], str]:
    return lambda requests: "\n".join([header, *(separator.join(map(str, row(r))) for r in requests)]) + "\n"


def _common(request: Served, stamp: str) -> str:
    return f'10.0.0.{request.number % 9} - - [{stamp}] "GET {request.path}?q=1 HTTP/1.1" {request.status} 512'


def _combined(request: Served, stamp: str) -> str:
    return f'{_common(request, stamp)} "-" "Mozilla/5.0 (X11; Linux x86_64)"'


def _otlp(requests: list[Served]) -> str:
    def span(request: Served, kind: object, start: float, end: float) -> dict[str, object]:
        times = {"startTimeUnixNano": str(ms(start) * 10**6), "endTimeUnixNano": str(ms(end) * 10**6)}
        route = {"key": "http.route", "value": {"stringValue": request.path}}
        name = {"spanId": f"{request.number:016x}", "traceId": "0" * 32, "name": "GET", "kind": kind}
        return {**name, **times, "attributes": [route, {"key": "code", "value": {"intValue": str(request.status)}}]}

    spans = [span(r, 2, r.came, r.left) for r in requests]
    inner = [span(r, "SPAN_KIND_CLIENT", r.came + 0.3 * took(r), r.left) for r in requests[::5]]
    service = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return json.dumps({"resourceSpans": [{"resource": service, "scopeSpans": [{"spans": spans}, {"spans": inner}]}]})


def _jaeger(requests: list[Served]) -> str:
    def span(request: Served) -> dict[str, object]:
        times = {"startTime": ms(request.came) * 1000, "duration": ms(took(request)) * 1000}
        tags = [{"key": "span.kind", "type": "string", "value": "server"}]
        name = {"spanID": f"{request.number:x}", "operationName": f"GET {request.path}", "processID": "p1"}
        return {**name, **times, "tags": tags}

    processes = {"p1": {"serviceName": "shop"}}
    return json.dumps({"data": [{"traceID": "1", "spans": [span(r)], "processes": processes} for r in requests]})


def _alb(request: Served) -> str:
    parts = f"0.000 {took(request):.3f} 0.000"
    return (
        f"https {iso(request.left)} app/web/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 {parts} {request.status} "
        f'{request.status} 34 366 "GET https://www.example.com:443{request.path} HTTP/1.1" "curl/7.46.0" ECDHE TLSv1.2 '
        f'arn:aws:x "Root=1-{request.number}" "-" "-" 0 {iso(request.came)} "forward" "-" "-" "10.0.0.1:80" "200" "-"'
    )


def _haproxy(request: Served) -> str:
    return (
        f"Oct 10 13:55:36 lb haproxy[14389]: 10.0.1.2:{33317 + request.number} [{clf(request.came, 'ms')}] http-in "
        f"static/srv1 0/0/1/{ms(took(request))}/{ms(took(request))} {request.status} 2750 - - ---- 1/1/1/1/0 0/0 "
        f'{{1wt.eu}} {{}} "GET {request.path}?q=1 HTTP/1.1"'
    )


@dataclass(frozen=True)
class Written:
    """A format: how requests are written, what must be said to read it, and whether it loses times."""

    write: Callable[[list[Served]], str]
    said: Mapping[str, object] = field(default_factory=dict)
    whole_seconds: bool = False
    by: str | None = None
    """The field that has the path."""


FORMATS: Mapping[str, Written] = {
    "nginx $msec": Written(_lines(lambda r: f"{_combined(r, f'{r.left:.3f}')} {took(r):.3f}"), by="path"),
    "nginx $time_local": Written(
        _lines(lambda r: f"{_combined(r, clf(r.left) + ' +0000')} {took(r):.3f}"), whole_seconds=True, by="path"
    ),
    "nginx rt=": Written(_lines(lambda r: f"{_combined(r, f'{r.left:.3f}')} rt={took(r):.3f} uct=0.001"), by="path"),
    "nginx $msec $request_time": Written(
        _lines(lambda r: f"{_combined(r, clf(r.left) + ' +0000')} {r.left:.3f} {took(r):.3f}"),
        {
            "form": '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
            '"$http_user_agent" $msec $request_time'
        },
        by="path",
    ),
    "ingress-nginx": Written(
        _lines(
            lambda r: (
                f"{_combined(r, clf(r.left) + ' +0000')} 431 {took(r):.3f} [default-web-80] [] 10.0.0.4:8080 512 "
                f"{took(r):.3f} {r.status} 5d41402abc4b2a76b9719d911017c592"
            )
        ),
        whole_seconds=True,
        by="path",
    ),
    "Envoy": Written(
        _lines(
            lambda r: (
                f'[{iso(r.came)}] "GET {r.path} HTTP/1.1" {r.status} - 9 512 {ms(took(r))} {ms(took(r))} "-" '
                f'"curl/8.0" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "web" "10.0.0.2:80"'
            )
        ),
        by="path",
    ),
    "Traefik": Written(
        _lines(
            lambda r: (
                f'{_common(r, clf(r.came) + " +0000")} "-" "-" {r.number + 1} "web@docker" "http://10.0.0.4:80" '
                f"{ms(took(r))}ms"
            )
        ),
        whole_seconds=True,
        by="path",
    ),
    "Apache %D": Written(
        _lines(lambda r: f"{_combined(r, clf(r.came) + ' +0000')} {1000 * ms(took(r))}"), whole_seconds=True, by="path"
    ),
    "Apache LogFormat": Written(
        _lines(
            lambda r: (
                f'10.0.0.1 [{clf(r.came)} +0000] "GET {r.path} HTTP/1.1" {r.status} 5 '
                f"{1000 * ms(took(r))} {iso(r.came)}"
            )
        ),
        {"form": '%h %t "%r" %>s %b $took_us $arrival', "arrival": "arrival", "duration": "took_us"},
        by="path",
    ),
    "HAProxy": Written(_lines(_haproxy), by="path"),
    "AWS ALB": Written(_lines(_alb), by="path"),
    "JSON of nginx": Written(
        _json(
            lambda r: {"msec": f"{r.left:.3f}", "request": f"GET {r.path} HTTP/1.1", "request_time": f"{took(r):.3f}"}
        ),
        by="path",
    ),
    "JSON of Google Cloud": Written(
        _json(
            lambda r: {
                "httpRequest": {"latency": f"{took(r):.6f}s", "requestUrl": r.path, "status": r.status},
                "insertId": f"i{r.number}",
                "timestamp": iso(r.came),
            }
        ),
        by="httpRequest.requestUrl",
    ),
    "JSON of Traefik": Written(
        _json(
            lambda r: {
                "Duration": ms(took(r)) * 10**6,
                "OriginDuration": ms(took(r)) * 10**6,
                "Overhead": 0,
                "RequestPath": r.path,
                "StartUTC": iso(r.came),
                "time": clf(r.left),
            }
        ),
        by="RequestPath",
    ),
    "JSON of Envoy": Written(
        _json(lambda r: {"start_time": iso(r.came), "duration": ms(took(r)), "response_flags": "-", "path": r.path}),
        by="path",
    ),
    "JSON of Caddy": Written(
        _json(
            lambda r: {
                "level": "info",
                "ts": round(r.left, 3),
                "request": {"method": "GET", "uri": r.path},
                "duration": round(took(r), 3),
            }
        ),
        by="request.uri",
    ),
    "JSON, own keys": Written(
        _json(lambda r: {"at": iso(r.came), "spent": f"{ms(took(r))}ms", "what": r.path}),
        {"arrival": "at", "duration": "spent"},
        by="what",
    ),
    "JSON array": Written(
        lambda requests: json.dumps([{"arrival": iso(r.came), "departure": iso(r.left)} for r in requests], indent=1)
    ),
    "OTLP": Written(_otlp, by="http.route"),
    "Jaeger": Written(_jaeger, by="name"),
    "SWF": Written(
        lambda requests: (
            "; Version: 2\n"
            + "".join(
                f"{r.number + 1} {ms(r.came - ORIGIN)} {ms(took(r) - r.demand)} {ms(r.demand)} 1{' -1' * 13}\n"
                for r in requests
            )
        )
    ),
    "CSV": Written(
        _table(",", "arrival_s,departure_s,path", lambda r: (f"{r.came:.3f}", f"{r.left:.3f}", r.path)), by="path"
    ),
    "CSV ;": Written(_table(";", "start_ms;latency_ms;path", lambda r: (ms(r.came), ms(took(r)), r.path)), by="path"),
    "CSV tabs": Written(_table("\t", "start\tend", lambda r: (iso(r.came), iso(r.left)))),
    "CSV 12ms": Written(_table(",", "start,took", lambda r: (iso(r.came), f"{ms(took(r))}ms"))),
    "CSV as servers write": Written(
        _table(",", "departure,took", lambda r: (clf(r.left, "ms") + " +0000", f"{took(r):.3f}s"))
    ),
}
"""Every format that is read but Parquet, which is a CSV in other bytes."""
