"""Logs that are read part by part on disk: the same answers as in memory, the same repairs, the same faults."""

import gzip
import json
import math
import re
import resource
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.occupancy.logs.log import LogOptions
from analysis.occupancy.logs.portions import Sizes
from analysis.occupancy.logs.reading import read_log
from analysis.tables.faults import FileError
from models.errors import WscError
from models.queues.serve import serve
from scenarios.commands.app import app
from scenarios.files.faults import FaultsError
from scenarios.occupancy.occupancy import OccupancyConclusion, occupancy
from scenarios.occupancy.on_disk import occupancy_on_disk
from scenarios.occupancy.question import OccupancyQuery
from scenarios.occupancy.slices import LogSlice
from tests.helpers.request_logs import FORMATS, workload

SERVERS = 3
QUERY = OccupancyQuery(SERVERS, interval_s=10.0, alert=0.5)
SMALL = Sizes(rows=97, piece_bytes=3_000, part_rows=250)
PIECES = Sizes(rows=330, piece_bytes=30_000, part_rows=400)
ONE = Sizes()


def day(requests: int = 2_000, tick_s: float = 0.0) -> pd.DataFrame:
    """Requests first come first served on three servers."""
    rng = np.random.default_rng(3)
    arrival = rng.exponential(1 / 20, requests).cumsum()
    demand = rng.exponential(0.12, requests)
    if tick_s:
        arrival, demand = tick_s * np.round(arrival / tick_s), tick_s * np.maximum(np.round(demand / tick_s), 1)
    departure = serve("fcfs", arrival, demand, SERVERS).departure_s
    return pd.DataFrame({"arrival_s": arrival, "departure_s": departure})


def shuffled(log: pd.DataFrame) -> pd.DataFrame:
    return log.iloc[np.random.default_rng(1).permutation(len(log))].reset_index(drop=True)


def named(log: pd.DataFrame) -> pd.DataFrame:
    """With names, forty rows written twice and five that are backwards."""
    log = log.assign(request_id=[f"r{at}" for at in range(len(log))])
    log.loc[100:104, "departure_s"] = log.loc[100:104, "arrival_s"] - 0.5
    return shuffled(pd.concat([log, log.iloc[300:340]]))


def skewed(log: pd.DataFrame) -> pd.DataFrame:
    """The clock of departures is late."""
    return log.assign(departure_s=log["departure_s"] - 0.1)


def unfinished(log: pd.DataFrame) -> pd.DataFrame:
    return log.assign(departure_s=log["departure_s"].mask(log["arrival_s"] > log["arrival_s"].max() - 0.2))


def losses(log: pd.DataFrame) -> pd.DataFrame:
    """Departures are lost, the first one, too; of the last requests some are unfinished."""
    lost = log.index.isin([0, 1, *range(7, len(log), 50)]) | (log["arrival_s"] > log["arrival_s"].max() - 0.5)
    return shuffled(log.assign(departure_s=log["departure_s"].mask(lost)))


def batches(log: pd.DataFrame) -> pd.DataFrame:
    """Each row twice, which says nothing else."""
    return pd.concat([log.iloc[:500], log.iloc[:500], log.iloc[500:]])


def stamped(log: pd.DataFrame) -> pd.DataFrame:
    """By the calendar, with durations, and a column of paths; rows in the order of completion."""
    start = pd.Timestamp("2026-11-27T10:00:00.25Z") + pd.to_timedelta(log["arrival_s"], unit="s")
    took = 1000 * (log["departure_s"] - log["arrival_s"])
    table = pd.DataFrame({"start": start, "latency_ms": took, "path": "/item"})
    return table.iloc[np.argsort(log["departure_s"].to_numpy())]


def since_1970(log: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"start": 1.7e9 + log["arrival_s"], "end": 1.7e9 + log["departure_s"]})


def without_zone(log: pd.DataFrame) -> pd.DataFrame:
    """By clocks on a wall, which are set back by an hour at the 1,200th row."""
    start = pd.Timestamp("2026-10-25T02:59:00") + pd.to_timedelta(log["arrival_s"], unit="s")
    end = start + pd.to_timedelta(log["departure_s"] - log["arrival_s"], unit="s")
    back = pd.to_timedelta(np.where(log.index < 1_199, 0, 3600), unit="s")
    return pd.DataFrame({"start": start - back, "end": end - back})


def by_own_clock(log: pd.DataFrame, writers: int = 1) -> pd.DataFrame:
    """By clocks in Berlin on the night on which they go forward, of several writers in turn with that of London."""
    utc = pd.Timestamp("2026-03-29T00:59:00Z") + pd.to_timedelta(log["arrival_s"], unit="s")
    zones = ["Europe/Berlin", "Europe/London"][:writers]
    stamps = [stamp.tz_convert(zone).isoformat() for stamp, zone in zip(utc, cycle(zones), strict=False)]
    return pd.DataFrame({"start": stamps, "took_s": log["departure_s"] - log["arrival_s"]})


def of_berlin(log: pd.DataFrame) -> pd.DataFrame:
    """The same as stamps of Parquet, whose column has the zone."""
    log = by_own_clock(log)
    return log.assign(start=pd.to_datetime(log["start"], utc=True).dt.tz_convert("Europe/Berlin"))


LOGS: dict[str, Callable[[], pd.DataFrame]] = {
    "plain": day,
    "shuffled": lambda: shuffled(day()),
    "named": lambda: named(day()),
    "skewed": lambda: skewed(day()),
    "unfinished": lambda: unfinished(day()),
    "losses": lambda: losses(day()),
    "losses, skewed": lambda: skewed(losses(day())),
    "in ticks": lambda: day(tick_s=0.01),
    "batches": lambda: batches(day(tick_s=0.001)),
    "of one path": lambda: batches(day(tick_s=0.001)).assign(path="/item"),
    "of one line": lambda: batches(day(tick_s=0.001)).assign(request="GET /item HTTP/1.1", host="a"),
    "stamped": lambda: stamped(day()),
    "without a zone": lambda: without_zone(day()),
    "since 1970": lambda: since_1970(day()),
}
OWN_CLOCKS: dict[str, Callable[[], pd.DataFrame]] = {
    "by their own clock": lambda: shuffled(by_own_clock(day())),
    "by two clocks": lambda: by_own_clock(day(), 2),
    "of Berlin": lambda: of_berlin(day()),
}


def written(log: pd.DataFrame, folder: Path, ending: str) -> Path:
    file = folder / f"log.{ending}"
    if ending == "parquet":
        log.to_parquet(file, row_group_size=500)
    elif ending == "csv":
        log.to_csv(file, index=False)
    else:
        file.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in log.to_dict("records")))
    return file


def shown(answer: OccupancyConclusion) -> dict[str, object]:
    """What both say: not which servers, and of sums twelve digits."""
    payload = dict(replace(answer, log="log").payload())
    for name in ("rates", "servers_by_work", "servers_by_rates", "servers_test"):
        payload.pop(name)
    payload["notes"] = [note for note in answer.notes if not note.startswith(("the number of servers", "whether "))]
    return json.loads(json.dumps(payload), parse_float=lambda text: float(f"{float(text):.11g}"), parse_constant=str)


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        *zip(LOGS, cycle(["parquet", "csv", "jsonl"])),
        ("of one path", "jsonl"),
        ("of one line", "jsonl"),
        ("stamped", "parquet"),
        ("stamped", "csv"),
        ("by their own clock", "csv"),
        ("by their own clock", "jsonl"),
        ("by two clocks", "csv"),
        ("of Berlin", "parquet"),
    ],
)
def test_part_by_part_the_answer_is_that_of_the_whole(name, ending, tmp_path):
    file = written((LOGS | OWN_CLOCKS)[name](), tmp_path, ending)
    whole, parts = occupancy(file, QUERY), occupancy_on_disk(file, QUERY, sizes=SMALL)
    assert shown(parts) == shown(whole)
    assert parts.clock.name == whole.clock.name
    assert any(note.startswith("times are by the offset that the stamps say") for note in parts.notes) == (
        name in OWN_CLOCKS
    )


def test_a_clock_that_was_set_back_is_told(tmp_path):
    (found,) = occupancy_on_disk(written(without_zone(day()), tmp_path, "csv"), QUERY, sizes=SMALL).findings[:1]
    assert str(found).startswith("clock set back by an hour (2,000 requests); from row 1,200 on")


def test_no_digit_depends_on_how_much_is_read_at_a_time(tmp_path):
    file = written(named(day()), tmp_path, "csv")
    small, one = (occupancy_on_disk(file, QUERY, sizes=sizes) for sizes in (SMALL, ONE))
    pd.testing.assert_frame_equal(small.intervals, one.intervals, check_exact=True)
    assert (small.busy, small.waiting, small.percentiles) == (one.busy, one.waiting, one.percentiles)
    assert math.isclose(small.queueing_time_s, one.queueing_time_s, rel_tol=1e-14)


Document = dict[str, list[dict[str, list[dict[str, list[dict[str, object]]]]]]]
"""Of OTLP: resources, their scopes, the spans of these, their fields."""
ENDINGS = ("csv", "jsonl", "parquet")
ROTATED: dict[str, Callable[[], pd.DataFrame]] = {
    "named": lambda: named(day()),
    "losses": lambda: losses(day()),
    "alike": lambda: batches(day(tick_s=0.001)).assign(path="/item"),
    "of one user": lambda: batches(day(tick_s=0.001)).assign(user="ann"),
    "alike in one file": lambda: day(tick_s=0.001).assign(path="/item"),
    "by their own clock": lambda: by_own_clock(day()),
}


@pytest.mark.parametrize("name", ROTATED)
def test_the_files_of_a_rotated_log_are_read_as_one(name, tmp_path):
    """Of unlike formats, in any order; twenty rows are in two files."""
    log, files = ROTATED[name](), list[Path]()
    for at, (part, ending) in enumerate(zip((log[1_300:], log[:700], log[680:1_300]), ENDINGS, strict=True)):
        (tmp_path / str(at)).mkdir()
        files.append(written(part, tmp_path / str(at), ending))
    assert shown(occupancy_on_disk(files, QUERY, sizes=PIECES)) == shown(occupancy(files, QUERY))


def lines(log: pd.DataFrame, form: str, requests: int = 1_000) -> list[str]:
    """Lines of an access log in order of completion, by the end or the start of requests."""
    log = log[:requests].sort_values("departure_s")
    ends, rows = 1.7e9 + log["departure_s"].to_numpy(), []
    for at, (end_s, took_s) in enumerate(zip(ends, (log["departure_s"] - log["arrival_s"]).to_numpy(), strict=True)):
        second = pd.Timestamp(int(end_s), unit="s").strftime("%d/%b/%Y:%H:%M:%S +0000")
        start = pd.Timestamp(int(1e3 * (end_s - took_s)), unit="ms").strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        request = f'"GET /item/{at % 7} HTTP/1.1" 200 {at % 50}'
        rows.append({
            "nginx": f'10.0.0.{at % 3} - - [{second}] {request} "-" "curl" {took_s:.3f}',
            "msec": f'::1 - - [{end_s:.3f}] {request} "-" "curl" {took_s:.3f}',
            "apache": f"::1 - - [{second}] {request} {int(1e6 * took_s)}",
            "envoy": f'[{start}] "GET /item HTTP/1.1" 200 - 0 {at % 50} {int(1e3 * took_s)} 3 "-" "curl"',
        }[form])  # fmt: skip
    return rows


def twice(rows: list[str]) -> list[str]:
    """Some forty lines written again, at once and later."""
    return [*rows[:300], *rows[260:], *rows[700:740]]


def late(rows: list[str]) -> list[str]:
    """One line stands some forty too low."""
    return [*rows[:500], *rows[501:541], rows[500], *rows[541:]]


ACCESS_LOGS: dict[str, Callable[[], list[str]]] = {
    "nginx": lambda: lines(day(), "nginx"),
    "nginx, twice": lambda: twice(lines(day(), "nginx")),
    "nginx, alike": lambda: [re.sub(r"item/\d|200 \d+|10.0.0.\d", "200 5", line) for line in lines(day(), "nginx")],
    "nginx, in no order": lambda: lines(day(), "nginx")[::-1],
    "nginx, slightly out of order": lambda: late(lines(day(), "nginx")),
    "nginx, damaged": lambda: [*lines(day(), "nginx")[:600], "", "half a line", *lines(day(), "nginx")[600:], "-"],
    "msec": lambda: twice(lines(day(), "msec")),
    "apache": lambda: lines(day(), "apache"),
    "envoy": lambda: lines(day(), "envoy"),
    "nginx, by their own clock": lambda: [line.replace("+0000", "+0100") for line in lines(day(), "nginx")],
    "constant": lambda: [re.sub(r"[0-9.]+$", "0.250", line) for line in lines(day(), "nginx", 100)],
}


@pytest.mark.parametrize("name", ACCESS_LOGS)
def test_an_access_log_is_read_part_by_part_as_the_whole(name, tmp_path):
    file = tmp_path / "access.log"
    file.write_text("\n".join(ACCESS_LOGS[name]()) + "\n")
    assert shown(occupancy_on_disk(file, QUERY, sizes=PIECES)) == shown(occupancy(file, QUERY))


@pytest.mark.parametrize("forms", [("nginx", "nginx", "nginx"), ("nginx", "envoy", "msec"), ("nginx", "csv", "apache")])
def test_rotated_access_logs_are_read_as_one(forms, tmp_path):
    """The newest first, one packed, twenty lines in two files; or files of several forms."""
    files = list[Path]()
    for at, (form, rows) in enumerate(zip(forms, (slice(650, None), slice(350), slice(340, 650)), strict=True)):
        if form == "csv":
            files.append(written(since_1970(day())[rows], tmp_path, "csv"))
            continue
        text = "\n".join(lines(day(), form)[rows]).encode()
        files.append(tmp_path / f"access.log.{at}")
        files[-1].write_bytes(gzip.compress(text) if at == 1 else text)
    assert shown(occupancy_on_disk(files, QUERY, sizes=PIECES)) == shown(occupancy(files, QUERY))


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda rows: [line.rpartition(" ")[0] for line in rows], LogOptions()),
        (lambda rows: [f"{line} 17" for line in rows], LogOptions()),
        (lambda rows: [f"{line} 17" for line in rows], LogOptions(duration="1", arrival="time")),
        (lambda rows: [line.replace(".", "") for line in rows], LogOptions()),
        (lambda rows: [line.replace(" 0.", " 90000.") for line in rows], LogOptions()),
        (lambda rows: [line.replace(" 0.", " 90000.") for line in rows], LogOptions(unit="ms")),
        (lambda rows: rows, LogOptions(unit="parsec", arrival="path")),
        (lambda rows: [re.sub(r" (?=[0-9.]+$)", " -", line) for line in rows], LogOptions()),
    ],
)
def test_faults_and_options_of_access_logs_are_those_in_memory(change, options, tmp_path):
    file, answers = tmp_path / "access.log", list[object]()
    file.write_text("\n".join(change(lines(day(), "nginx", 200))))
    for read in (occupancy, partial(occupancy_on_disk, sizes=PIECES)):
        try:
            answers.append(shown(read(file, QUERY, options=options)))
        except FaultsError as error:
            answers.append(str(error))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_read_part_by_part(name, tmp_path):
    form, file = FORMATS[name], tmp_path / "log"
    file.write_text(form.write(workload(150)))
    options = LogOptions(**form.said)
    assert shown(occupancy_on_disk(file, QUERY, options, sizes=SMALL)) == shown(occupancy(file, QUERY, options))


@pytest.mark.parametrize(
    "name", ["ingress-nginx", "Envoy", "HAProxy", "AWS ALB", "JSON of Traefik", "Apache LogFormat"]
)
def test_times_of_the_servers_behind_are_those_in_memory(name, tmp_path):
    """Some requests reach none; a form that does not say how long servers took is the same fault."""
    form, file, answers = FORMATS[name], tmp_path / "log", list[object]()
    text = form.write(workload(150)).replace("10.0.0.4:8080 512 0.0", "- - - ").replace(' 7 "-" "curl', ' - "-" "curl')
    file.write_text(text)
    for read in (occupancy, partial(occupancy_on_disk, sizes=SMALL)):
        try:
            answers.append(shown(read(file, QUERY, options=LogOptions(upstream=True, **form.said))))
        except FaultsError as error:
            answers.append(str(error))
    assert answers[0] == answers[1]
    assert isinstance(answers[0], str) == (name == "Apache LogFormat")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata"])
@pytest.mark.parametrize("name", ["without a zone", "stamped"])
def test_stamps_without_a_zone_are_put_in_the_one_that_was_said(name, zone, tmp_path):
    """Across a change of clocks, where the hour that comes twice is told apart by the order of all rows."""
    file, options = written(LOGS[name](), tmp_path, "csv"), LogOptions(zone=zone)
    whole, parts = occupancy(file, QUERY, options), occupancy_on_disk(file, QUERY, options, sizes=SMALL)
    assert shown(replace(parts, notes=())) == shown(replace(whole, notes=()))
    assert (parts.origin_s, parts.clock.name) == (whole.origin_s, whole.clock.name)


@pytest.mark.parametrize("unfinished", [False, True])
def test_stamps_of_parquet_without_a_zone_are_put_in_the_one_that_was_said(unfinished, tmp_path):
    options = LogOptions(zone="America/New_York")
    log = day()[:600].apply(lambda times: pd.Timestamp("2026-06-01") + pd.to_timedelta(times, unit="s"))
    log.iloc[-1, 1] = pd.NaT if unfinished else log.iloc[-1, 1]
    answers = [
        read(written(log, tmp_path, ending), QUERY, options)
        for ending in ("csv", "parquet")
        for read in (occupancy, partial(occupancy_on_disk, sizes=SMALL))
    ]
    assert len({(answer.origin_s, round(answer.response_time_s, 3)) for answer in answers}) == 1


def test_stamps_of_an_hour_that_clocks_skip_are_a_fault(tmp_path):
    begin = pd.Timestamp("2026-03-29 01:59:00") + pd.to_timedelta(np.arange(120.0), unit="s")
    file = written(pd.DataFrame({"start": begin, "end": begin + pd.Timedelta(seconds=1)}), tmp_path, "csv")
    for read in (occupancy, occupancy_on_disk):
        with pytest.raises(WscError, match=r"6[01] stamps lie in an hour that clocks of Europe/Berlin skip"):
            read(file, QUERY, LogOptions(zone="Europe/Berlin"))


def test_parts_without_a_request_that_reached_a_server_are_empty(tmp_path):
    """As while what is behind the proxy is down, for longer than one looks at a time."""
    lines = [f"{1_700_000_000 + 0.1 * i:.3f} 0.050 {'-' if 100 <= i < 700 else '0.030'}" for i in range(900)]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    options = LogOptions(upstream=True, form="$msec $request_time $upstream_response_time")
    whole, parts = (
        read(tmp_path / "log", QUERY, options) for read in (occupancy, partial(occupancy_on_disk, sizes=SMALL))
    )
    assert (parts.requests, parts.response_time_s) == (300, pytest.approx(whole.response_time_s))


def test_a_stamp_without_a_zone_is_a_fault_in_whatever_portion_it_is(tmp_path):
    lines = [
        f"{stamp.isoformat()}+00:00,0.1" for stamp in pd.Timestamp("2026-03-01") + pd.to_timedelta(range(301), "s")
    ]
    lines[-1] = lines[-1].replace("+00:00", "")
    file, rows = tmp_path / "log.jsonl", [line.split(",") for line in lines]
    texts = [json.dumps({"start": start, "duration_s": float(took)}) + "\n" for start, took in rows]
    file.write_text("".join(texts))
    for of_portion in (301, 100):  # with others in its portion, and alone
        with pytest.raises(FaultsError, match="should have a zone"):
            occupancy_on_disk(file, QUERY, sizes=Sizes(97, of_portion * len(texts[0]), 250))
    with pytest.raises(FaultsError, match="should have a zone"):
        occupancy(file, QUERY)


def test_a_file_in_another_form_is_named_as_in_memory(tmp_path):
    (tmp_path / "log.csv").write_bytes(day()[:50].to_csv(index=False).encode("utf-16"))
    assert "text in UTF-16" in fault_of(tmp_path / "log.csv")


def test_a_ragged_row_near_the_beginning_is_the_same_fault_on_disk(tmp_path):
    lines = day()[:200].to_csv(index=False).splitlines()
    (tmp_path / "log.csv").write_text("\n".join([*lines[:49], "half a line", *lines[49:]]) + "\n")
    assert "50:1: row: should have 2 fields, got 1" in fault_of(tmp_path / "log.csv")


def test_lines_of_another_form_are_told_or_refused_as_in_memory(tmp_path):
    file, answers = tmp_path / "log", list[object]()
    rows = FORMATS["HAProxy"].write(workload(150)).splitlines()
    for bad in (2, 200):
        file.write_text("\n".join([*rows[:70], *["half a line"] * bad, *rows[70:]]))
        for read in (occupancy, partial(occupancy_on_disk, sizes=SMALL)):
            try:
                answers.append(shown(read(file, QUERY)))
            except FaultsError as error:
                answers.append(str(error))
    assert answers[::2] == answers[1::2]
    assert "should be a line of this form (200 of 350 lines are not)" in str(answers[2])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{}", "an object without a field"),
        ("[{}]", "an object without a field"),
        ('{"requests": [{"a": 1}]}', "an object that has only requests (jq '.requests' FILE writes its list alone)"),
    ],
)
def test_json_without_a_field_of_a_request_tells_what_is_read(text, shown, tmp_path):
    file = tmp_path / "log.json"
    file.write_text(text)
    for read in (occupancy, partial(occupancy_on_disk, sizes=SMALL)):
        with pytest.raises(FaultsError, match=re.escape(f"(Jaeger), got {shown}")):
            read(file, QUERY)


def otlp(change: Callable[[Document], object] = lambda _: None, indent: int | None = None) -> str:
    """Spans of OTLP, of which something is changed."""
    document = json.loads(FORMATS["OTLP"].write(workload(120)))
    change(document)
    return json.dumps(document, indent=indent)


def of_no_kind(document: Document) -> None:
    for scope in document["resourceSpans"][0]["scopeSpans"]:
        for span in scope["spans"]:
            span.pop("kind")


def with_wrong_times(document: Document) -> None:
    """The fourth span is part of a request."""
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[1]["startTimeUnixNano"] = "soon"
    spans[2]["endTimeUnixNano"] = "late"
    spans[5]["startTimeUnixNano"] = "1_600_000_000"
    spans[6]["startTimeUnixNano"] = "9" * 5000
    spans[3]["kind"] = 3
    spans[4]["endTimeUnixNano"] = "1"


def with_early_starts(document: Document) -> None:
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[1]["startTimeUnixNano"], spans[2]["startTimeUnixNano"] = "-5000000000", "0"


def of_two_services(document: Document) -> None:
    other = json.loads(FORMATS["OTLP"].write(workload(150)).replace("shop", "stock"))["resourceSpans"][0]
    other["scopeSpans"] = [{"spans": other["scopeSpans"][0]["spans"][120:]}]
    document["resourceSpans"].append(other)


def of_a_process_that_it_lacks() -> str:
    document = json.loads(FORMATS["Jaeger"].write(workload(120)))
    document["data"][0]["spans"][0]["processID"] = "p9"
    return json.dumps(document)


def of_a_wrong_resource(document: Document) -> None:
    document["resourceSpans"][0]["resource"] = "shop"


def swf(*changed: str) -> str:
    """Jobs, some of them changed: of several processors, cancelled or failed before they ran, or none."""
    return FORMATS["SWF"].write(workload(120)) + "".join(f"{line}\n" for line in changed)


def mixed(*parts: str, lines: bool = False) -> str:
    """Objects of several forms in one array, or on lines."""
    log = day()[:200].assign(data=None).to_dict("records")
    forms = {"OTLP": [json.loads(otlp())], "plain": [*log, {**log[0], "data": ["x"], "arrival_s": 0.25}]}
    forms |= {"Jaeger": [json.loads(FORMATS["Jaeger"].write(workload(130)))], "words": ["x", 1.5]}
    objects = [json.dumps(row) for part in parts for row in forms[part]]
    return "\n".join(objects) if lines else f"[{', '.join(objects)}]"


MIXED = {
    "OTLP, then Jaeger": (partial(mixed, "OTLP", "Jaeger"), 120, 130),
    "Jaeger, then OTLP on lines": (partial(mixed, "Jaeger", "OTLP", lines=True), 130, 144),
    "OTLP, then plain and words": (partial(mixed, "OTLP", "plain", "words"), 120, 203),
    "plain, then both": (partial(mixed, "plain", "OTLP", "Jaeger"), 201, 274),
    "plain, then both on lines": (partial(mixed, "plain", "OTLP", "Jaeger", lines=True), 201, 274),
}
DOCUMENTS: dict[str, Callable[[], str]] = {
    "OTLP over lines": lambda: otlp(indent=1),
    "OTLP of no kind": lambda: otlp(of_no_kind),
    "OTLP of two services": lambda: otlp(of_two_services),
    "OTLP whose resource is a text": lambda: otlp(of_a_wrong_resource),
    "OTLP a line for each batch": lambda: "\n".join(
        [*[otlp().replace('spanId": "0', f'spanId": "{at}') for at in (1, 2, 3)], '{"resourceSpans": [']
    ),
    "OTLP that is broken": lambda: otlp(indent=1).replace('"kind": 2,', '"kind": 2', 70).replace("2\n", "2,\n", 69),
    "OTLP without a span": lambda: '{"resourceSpans": []}',
    "OTLP with wrong times": lambda: otlp(with_wrong_times),
    "OTLP that began before 1970": lambda: otlp(with_early_starts),
    "Jaeger of a process that it lacks": of_a_process_that_it_lacks,
    "an empty array": lambda: " [ ]\n",
    "an array with wrong times": lambda: json.dumps(
        [{"arrival_s": at, "departure_s": "soon" if at == 7 else at + 1} for at in range(40)], indent=1
    ),
    "Traefik whose first lines end in carriage returns": lambda: (
        FORMATS["Traefik"].write(workload(200)).replace("\n", "\r", 100)
    ),
    "AWS whose lines end in carriage returns": lambda: FORMATS["AWS ALB"].write(workload(200)).replace("\n", "\r"),
    "Jaeger over lines": lambda: json.dumps(json.loads(FORMATS["Jaeger"].write(workload(120))), indent=2),
    "Jaeger whose processes have lists for names": lambda: re.sub(
        r'"processID": ?"[^"]*"', '"processID": ["p1"]', FORMATS["Jaeger"].write(workload(120))
    ),
    "objects over lines": lambda: "\n".join(json.dumps(row, indent=2) for row in day()[:200].to_dict("records")),
    "one object": lambda: json.dumps({"arrival_s": 1.0, "departure_s": 2.0}, indent=1),
    "an array cut off": lambda: json.dumps(day()[:200].to_dict("records"), indent=1)[:-300],
    "no UTF-8": lambda: json.dumps([{"arrival_s": 1, "departure_s": 2, "path": "\udcff"}] * 9, ensure_ascii=False),
    "jobs of every kind": lambda: swf(
        *(f"{5_000 + at} {at * 10} {at} -1 4 {'-1 ' * 5} {status}" for at, status in enumerate([5, 0, 5, 3, 1, 5] * 20))
    ),
    "jobs that are wrong": lambda: swf(*["7 1 x 3 4", "8 1 1e99 3 4"] * 2, "9 -5 1 1 1"),
    "jobs that were all cancelled": lambda: "".join(f"{at} {at} 3 -1 1 {'-1 ' * 5} 5{' -1' * 7}\n" for at in range(40)),
    "jobs that were cancelled, some written twice": lambda: swf(
        *(
            f"{500 + at % 40} {at % 40} {(at % 40) * (at % 7 > 0)} -1 1 {'-1 ' * 5} {5 - 4 * (at < 3)}"
            for at in range(60)
        )
    ),
    "jobs whose lines end in carriage returns": lambda: swf("7 1 5 -1").replace("\n", "\r"),
    "jobs whose lines end in both": lambda: swf("7 1 5 -1").replace("0\n", "0\r"),
    "jobs with form feeds": lambda: swf("7 1\f 5 -1", "\f", *["8 1 3 4\x1c\x85"] * 2).replace("-1 -1", "-1 \f-1", 9),
    "jobs that are wrong after carriage returns": lambda: swf("\r7 1 x 3", *["8 1 3 4"] * 900, "\r9 1 x 4"),
    "a table whose lines end in carriage returns": lambda: day().to_csv(index=False, lineterminator="\r"),
    "no jobs": lambda: "; Computer: none\n;\n",
    **{name: text for name, (text, *_) in MIXED.items()},
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_and_jobs_are_read_part_by_part_as_the_whole(name, tmp_path):
    file, answers = tmp_path / "log", list[object]()
    file.write_bytes(DOCUMENTS[name]().encode(errors="surrogateescape"))
    for read in (occupancy, partial(occupancy_on_disk, sizes=SMALL), occupancy_on_disk):
        try:
            answers.append(shown(read(file, QUERY, name="log")))
        except WscError as error:
            answers.append(str(error))
    assert answers[1:] == answers[:1] * 2


def test_faults_of_json_documents_name_the_span_or_the_object(tmp_path):
    """Lines of a document mean nothing, and spans of other kinds count."""
    for name, record in (("OTLP with wrong times", "span"), ("an array with wrong times", "object")):
        (tmp_path / "log").write_text(DOCUMENTS[name]())
        with pytest.raises(FileError) as refused:
            read_log(tmp_path / "log")
        places = {"span": (2, 3, 5, 6, 7), "object": (8,)}[record]
        assert [str(fault).split(":")[0] for fault in refused.value.faults] == [f"{record} {at}" for at in places]


def test_lines_that_end_in_carriage_returns_are_lines(tmp_path):
    for name in ("Traefik whose first lines end in carriage returns", "AWS whose lines end in carriage returns"):
        (tmp_path / "log").write_text(DOCUMENTS[name](), newline="")
        assert len(read_log(tmp_path / "log").table) == 200


@pytest.mark.parametrize("name", MIXED)
def test_json_of_several_forms_tells_what_is_left_out(name, tmp_path):
    """The first object tells what is read."""
    text, read, lost = MIXED[name]
    (tmp_path / "log").write_text(text())
    log = read_log(tmp_path / "log")
    assert (len(log.table), [(finding.name, finding.count) for finding in log.findings]) == (
        read,
        [("objects of another form", lost)],
    )


def test_spans_of_jobs_and_workloads_have_the_options_of_their_formats(tmp_path):
    file = tmp_path / "log"
    for text, options in (
        (swf(), LogOptions(unit="ms")),
        (swf(), LogOptions(upstream=True)),
        (otlp(), LogOptions(upstream=True)),
        (otlp(), LogOptions(arrival="start_ns", duration="duration_ns")),
    ):
        file.write_text(text)
        answers = list[object]()
        for read in (occupancy, partial(occupancy_on_disk, sizes=SMALL)):
            try:
                answers.append(shown(read(file, QUERY, options, name="log")))
            except WscError as error:
                answers.append(str(error))
        assert answers[0] == answers[1]


def test_files_of_unlike_columns_and_origins_are_read_as_one(tmp_path):
    """By the calendar with durations in a unit of their own, and since 1970; the same file twice is a fault."""
    later = since_1970(day()[:400]).assign(start=lambda log: log["start"] + 95_700_000.0)
    later["end"] = later["start"] + 0.2
    logs = {"csv": stamped(day())[:900], "parquet": stamped(day())[900:], "jsonl": later}
    files = [written(log, tmp_path, ending) for ending, log in logs.items()]
    query = replace(QUERY, interval_s=3600.0)
    assert shown(occupancy_on_disk(files, query, sizes=SMALL)) == shown(occupancy(files, query))
    (tmp_path / "again.csv").write_bytes(files[0].read_bytes())
    with pytest.raises(FaultsError, match=r"again.csv: is the same as .*log.csv"):
        occupancy_on_disk([*files, tmp_path / "again.csv"], query)


def test_faults_of_several_files_name_theirs(tmp_path):
    files = [written(day(), tmp_path, "csv"), tmp_path / "second.csv"]
    files[1].write_text("arrival_s,departure_s\n1,2\n1,soon\n")
    with pytest.raises(FaultsError, match=r'^.*second.csv:3:2: departure_s: should be a number, got "soon"$'):
        occupancy_on_disk(files, QUERY)
    files[1].write_text("arrival_s,departure_s\n1,2\n,3\n")
    with pytest.raises(FaultsError, match=r"second.csv: arrival_s: .*no arrival in 1 of 2 rows, first in row 2"):
        occupancy_on_disk(files, QUERY)


@pytest.mark.parametrize(
    "took", [[900.0] * 16 + [0.5] * 15, [900.0] * 15 + [0.5] * 16, [1e7] + [0.5] * 30, [900.0] * 31]
)
def test_durations_in_another_unit_are_refused_as_in_memory(took, tmp_path):
    """Half of 31 are longer than ten times the log of 60 s, or one is longer than 100,000 times."""
    log = pd.DataFrame({"start": np.linspace(0, 60, 31), "latency": took})
    for times in (log, log[:-1]):
        file = written(times, tmp_path, "csv")
        faults = []
        for read in (occupancy, partial(occupancy_on_disk, sizes=SMALL)):
            try:
                read(file, QUERY)
            except FaultsError as error:
                faults.append(str(error).partition("latency: ")[2])
        assert len(set(faults)) <= 1
        assert len(faults) in {0, 2}


def fault_of(file: Path, query: OccupancyQuery = QUERY, options: LogOptions | None = None) -> str:
    with pytest.raises(FaultsError) as caught:
        occupancy_on_disk(file, query, options, name="log", sizes=SMALL)
    return str(caught.value)


def faulty(rows: list[str], changes: dict[int, str]) -> bytes:
    """Lines with some of them changed."""
    return "\n".join(changes.get(at, row) for at, row in enumerate(rows)).encode() + b"\n"


def times_of(form: str) -> list[str]:
    """Rows of 400 requests: both ends, the start and how long it took, or stamps."""
    log = day()[:400].round(6)
    log["took"] = (log["departure_s"] - log["arrival_s"]).round(6)
    if form == "ends":
        return log[["arrival_s", "departure_s"]].to_csv(index=False).splitlines()
    if form == "json":
        return log[["arrival_s", "departure_s"]].to_json(orient="records", lines=True).splitlines()
    if form in {"duration_s", "latency"}:
        return log[["arrival_s", "took"]].to_csv(index=False, header=["start", form]).splitlines()
    stamps = pd.Timestamp("2026-03-01T00:00:00Z") + pd.to_timedelta(log["arrival_s"], unit="s")
    table = pd.DataFrame({"start": stamps.map(pd.Timestamp.isoformat), "took_s": log["took"]})
    return (table.to_csv(index=False) if form == "stamps" else table.to_json(orient="records", lines=True)).split()


def paths(changes: dict[int, str], longer: int = 0) -> bytes:
    """Rows of 400 requests with the path of each, some of them changed."""
    rows = times_of("ends")
    texts = ["path", *("/item" + "x" * (longer if at > 301 else 0) for at in range(len(rows) - 1))]
    return faulty(
        [f"{row},{changes.get(at, text)}" for at, (row, text) in enumerate(zip(rows, texts, strict=True))], {}
    )


FAULTY: dict[str, Callable[[], bytes]] = {
    "texts": lambda: faulty(times_of("ends"), {20: "late,2", 301: "1,soon"}),
    "ragged rows": lambda: faulty(times_of("ends"), {10: "1", 301: "1,2,3"}),
    "infinite and far": lambda: faulty(times_of("ends"), {10: "1,inf", 301: "-1e300,3"}),
    "NaN": lambda: faulty(times_of("ends"), dict.fromkeys(range(1, 401), "1,nan")),
    "negative": lambda: faulty(times_of("duration_s"), dict.fromkeys(range(10, 390, 17), "3,-1")),
    "a long one": lambda: faulty(times_of("latency"), {10: "", 11: "", 301: "3,9e9"}),
    "an open quotation": lambda: faulty(times_of("ends"), {301: '"1,2'}),
    "an open quotation in a text": lambda: paths({30: '"/a\nb"', 301: '"/item'}),
    "two open quotations": lambda: paths({30: '"/a\nb"', 200: '"/item', 203: '"/item'}),
    "an open quotation at the end": lambda: paths({400: '"/item'}),
    "a long open quotation": lambda: paths({301: '"/item'}, longer=400),
    "many": lambda: faulty(times_of("ends"), dict.fromkeys(range(9, 390), "x,y")),
    "zones": lambda: faulty(times_of("stamps"), dict.fromkeys(range(1, 90), "2026-03-01T00:00:00,1")),
    "numbers": lambda: faulty(times_of("stamps"), dict.fromkeys(range(300, 400), "17,1")),
    "finer stamps": lambda: faulty(times_of("json stamps"), {301: '{"start": "2026-03-01T00:00:10.123456789Z"}'}),
    "cut off": lambda: gzip.compress(faulty(times_of("ends"), {20: "late,2"}))[:-900],
    "JSON": lambda: faulty(times_of("json"), {0: '{"arrival_s": 0.1, "dep', 9: '{"arrival_s": "x", "departure_s": 1}'}),
    "broken JSON": lambda: faulty(times_of("json"), dict.fromkeys(range(50, 290), "{")),
    "JSON cut off": lambda: gzip.compress(faulty(times_of("json"), {}))[:-900],
    "nginx": lambda: faulty(lines(day(), "nginx", 400), {0: "half", **dict.fromkeys(range(9, 300, 30), "a -0.5")}),
    "nginx cut off": lambda: gzip.compress(faulty(lines(day(), "nginx", 400), {}))[:-900],
    "no gzip": lambda: gzip.compress(faulty(times_of("ends"), {}))[:12],
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_log_has_the_same_faults_in_memory_and_in_parts(name, tmp_path):
    file, answers = tmp_path / "log", list[object]()
    file.write_bytes(FAULTY[name]())
    for read in (occupancy, partial(occupancy_on_disk, sizes=SMALL), occupancy_on_disk):
        try:
            answers.append(shown(read(file, QUERY, name="log")))
        except FaultsError as error:
            answers.append(str(error))
    assert answers[1:] == answers[:1] * 2


def test_bad_rows_are_told_with_their_lines_wherever_they_are(tmp_path):
    lines = day().to_csv(index=False).splitlines()
    lines[700], lines[1500] = "1.0,soon", "-,inf"
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines))
    assert fault_of(file).splitlines() == [
        'log:701:2: departure_s: should be a number, got "soon"',
        'log:1501:2: departure_s: should be a finite number, got "inf"',
    ]


def test_negative_durations_are_told_with_their_lines(tmp_path):
    log = stamped(day())
    log.iloc[1_234, 1] = -3.0
    assert fault_of(written(log, tmp_path, "parquet")) == 'log:1236:2: latency_ms: should be at least 0, got "-3.0"'


def test_lines_that_are_no_json_are_left_out_and_told(tmp_path):
    file = written(day(), tmp_path, "jsonl")
    lines = file.read_text().splitlines()
    lines[900] = "{"
    file.write_text("\n".join(lines))
    (note, _) = occupancy_on_disk(file, QUERY, sizes=SMALL).notes
    assert note == "lines that are no JSON objects: 1, left out: line 901"


@pytest.mark.parametrize(
    ("log", "told"),
    [
        (
            day().assign(arrival_s=lambda log: log["arrival_s"].mask(log.index.isin([705, 1999]))),
            "leave --on-disk away, got no arrival in 2 of 2,000 rows, first in row 706",
        ),
        (day().assign(departure_s=np.nan).iloc[:3], "departure_s: should hold at least one time"),
    ],
)
def test_what_takes_the_whole_log_to_repair_is_refused(log, told, tmp_path):
    assert told in fault_of(written(log, tmp_path, "parquet"))


def test_questions_that_take_the_whole_log_are_refused(tmp_path):
    file = written(day().iloc[:50], tmp_path, "csv")
    several = replace(QUERY, to=(4,), scalability=True, rows=LogSlice(where="arrival_s > 1"))
    told = fault_of(file, several, LogOptions(priority="class"))
    assert [line.partition(":")[0] for line in told.splitlines()] == ["--priority", "--scalability", "--to", "--where"]


def test_parquet_that_is_cut_off_or_packed_is_refused(tmp_path):
    content = written(day(), tmp_path, "parquet").read_bytes()
    file = tmp_path / "log"
    file.write_bytes(content[:5000])
    assert fault_of(file) == "log:1:1: file: should be a whole Parquet file, got one that is cut off or damaged"
    file.write_bytes(gzip.compress(content))
    assert fault_of(file).startswith("log:1:1: file: should be unpacked")


def test_a_disk_without_room_is_told_with_what_to_do(tmp_path):
    file = written(day(), tmp_path, "parquet")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        told = fault_of(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert re.match(
        r"log: 30 to 110 bytes a request have to be written to .*; set TMPDIR to a folder with more room", told
    )
    with pytest.raises(FaultsError, match=r"^log: cannot be read, got No such file"):
        occupancy_on_disk(tmp_path / "none", QUERY, name="log")


@pytest.mark.parametrize("answer", [occupancy, occupancy_on_disk])
@pytest.mark.parametrize("names", [("own.csv", "dated.csv"), ("dated.csv", "own.csv")])
def test_files_of_two_clocks_are_no_log(tmp_path, answer, names):
    day(10).to_csv(tmp_path / "own.csv", index=False)
    (day(10) + 1_700_000_000.0).to_csv(tmp_path / "dated.csv", index=False)
    with pytest.raises(
        FaultsError, match=r"own\.csv: its times count from its own beginning, where .*dated\.csv has dates"
    ):
        answer([tmp_path / name for name in names], QUERY)


@pytest.mark.parametrize("answer", [occupancy, occupancy_on_disk])
def test_every_file_that_is_not_there_is_named(tmp_path, answer):
    day(10).to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(FaultsError) as caught:
        answer([tmp_path / name for name in ("log.csv", "none.csv", "nor.csv")], QUERY)
    assert [Path(fault.file).name for fault in caught.value.faults] == ["none.csv", "nor.csv"]


def test_a_folder_for_the_copy_that_is_not_there_is_told_and_no_other_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    assert f"have to be written to {tmp_path}/nowhere, and cannot be" in fault_of(written(day(), tmp_path, "csv"))


def test_the_command_reads_standard_input_on_disk(tmp_path):
    file = written(shuffled(day().iloc[:200]), tmp_path, "parquet")
    options = ["occupancy", "-", "--servers", "3", "--interval", "10s", "--on-disk", "--json"]
    done = json.loads(CliRunner().invoke(app, options, input=file.read_bytes()).stdout)
    assert (done["log"], done["requests"], len(done["intervals"])) == ("stdin", 200, 2)


def test_a_span_begins_after_1970_and_one_of_no_process_is_told(tmp_path):
    file = tmp_path / "log"
    file.write_text(otlp(with_early_starts))
    with pytest.raises(
        WscError, match=r'span 2: start_ns: should be at least 1, as should 1 cell .*, got "-5000000000"'
    ):
        occupancy(file, QUERY, name="log")
    file.write_text(of_a_process_that_it_lacks())
    assert "services (one without a name, shop" in json.dumps(shown(occupancy(file, QUERY, name="log")), default=str)


@pytest.mark.parametrize("answer", [occupancy, occupancy_on_disk])
@pytest.mark.parametrize("cell", ["", "nan"])
def test_rows_without_times_are_left_out_and_told(tmp_path, answer, cell):
    rows = day(50)
    lines = [f"{row.arrival_s},{row.departure_s}" for row in rows.itertuples()]
    file = tmp_path / "log.csv"
    file.write_text("\n".join(["arrival_s,departure_s", *lines[:20], f"{cell},{cell}", *lines[20:]]))
    told = answer(file, QUERY, name="log")
    assert told.requests == len(rows)
    assert ("rows without times", 1) in [(finding.name, finding.count) for finding in told.findings]
