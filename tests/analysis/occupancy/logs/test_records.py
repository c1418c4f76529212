"""One server's log in every format: the same service and queueing time, wherever its times are written."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.occupancy.curve import curve
from analysis.occupancy.hours import hours
from analysis.occupancy.law import law
from analysis.occupancy.logs.clocks import LogClock
from analysis.occupancy.logs.documents import JsonText
from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.log import LogOptions
from analysis.occupancy.logs.reading import read_log, read_logs
from analysis.occupancy.logs.records import compiled_format
from analysis.tables.faults import FileError
from tests.helpers.request_logs import FORMATS, ORIGIN, SERVERS, clf, iso, ms, took, truth, workload

REQUESTS = workload()
SERVICE_S, QUEUEING_S = truth(REQUESTS)


@pytest.fixture
def read(tmp_path):
    def reading(text, name="log", **said):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_log(file, options=LogOptions(**said))

    return reading


def sums(log, resolution_s=0.0):
    cleaned = clean(log.table, SERVERS, resolution_s)
    total = law(curve(cleaned.arrival_s, cleaned.departure_s), SERVERS)
    return total.service_time_s, total.queueing_time_s


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_the_service_and_queueing_time_of_the_server(read, name):
    form = FORMATS[name]
    log = read(form.write(REQUESTS), **form.said)
    service_s, queueing_s = sums(log, log.resolution_s)
    scale = 1000 if name == "SWF" else 1  # whole numbers of its seconds stand for milliseconds
    assert len(log.table) == len(REQUESTS)
    assert (log.table["departure_s"] - log.table["arrival_s"]).sum() / scale == pytest.approx(SERVICE_S + QUEUEING_S)
    off = 0.12 if form.whole_seconds else 1e-3
    assert service_s / scale == pytest.approx(SERVICE_S, rel=off)
    assert queueing_s / scale == pytest.approx(QUEUEING_S, rel=2 * off)


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if form.by])
def test_what_else_a_row_says_is_there_if_it_is_wanted(read, name):
    form = FORMATS[name]
    log = read(form.write(REQUESTS), **form.said, fields=True)
    paths = log.fields[form.by].astype(str)
    assert len(paths) == len(log.table)
    response_s = (log.table["departure_s"] - log.table["arrival_s"]).groupby(paths.to_numpy(), observed=True).sum()
    expected = pd.Series([took(r) for r in REQUESTS]).groupby([r.path for r in REQUESTS]).sum()
    response_s.index = response_s.index.str.removeprefix("GET ").str.replace("https://www.example.com:443", "")
    pd.testing.assert_series_equal(response_s.sort_index(), expected.sort_index(), check_names=False, rtol=1e-6)


def test_a_log_packed_by_zstd_or_gzip_is_the_log(read):
    text = FORMATS["nginx $msec"].write(REQUESTS).encode()
    packed = pa.Codec("zstd").compress(text, asbytes=True)
    for content in (text, gzip.compress(text), gzip.compress(text[:99]) + gzip.compress(text[99:]), packed):
        assert sums(read(content)) == pytest.approx((SERVICE_S, QUEUEING_S), rel=1e-3)
    for cut in (packed[:-9], packed[: len(packed) // 2]):
        with pytest.raises(FileError, match=r"^\d+:1: file: should be a whole zstd file, got one cut off"):
            read(cut)


@pytest.mark.parametrize("name", ["nginx $msec", "JSON of nginx", "CSV", "HAProxy"])
def test_a_rotated_log_in_any_order_is_one_log(tmp_path, name):
    files = [tmp_path / f"access.log.{part}" for part in range(3)]
    for file, part in zip(files, np.array_split(np.arange(len(REQUESTS)), 3), strict=True):
        file.write_text(FORMATS[name].write([REQUESTS[i] for i in part]))
    for order in (files, files[::-1]):
        log = read_logs(order, LogOptions(fields=True))
        assert sums(log) == pytest.approx((SERVICE_S, QUEUEING_S), rel=1e-3)
        assert len(log.fields) == len(REQUESTS)
    files[1].write_bytes(files[0].read_bytes())
    with pytest.raises(FileError, match=r"access\.log\.1: is the same as .*access\.log\.0"):
        read_logs(files, LogOptions())


@pytest.mark.parametrize("name", ["nginx $msec", "JSON of nginx", "CSV ;", "Envoy"])
def test_lines_out_of_order_are_read_as_in_order(read, name):
    mixed = [REQUESTS[i] for i in np.random.default_rng(2).permutation(len(REQUESTS))]
    assert sums(read(FORMATS[name].write(mixed))) == pytest.approx((SERVICE_S, QUEUEING_S), rel=1e-3)


def test_upstream_times_are_those_of_the_server_behind(read):
    slow = [r._replace(left=r.left + 0.5) for r in REQUESTS]  # clients read slowly: half a second each
    behind = {
        "ingress-nginx": ("{took:.3f} {status} 5d", "{real:.3f} {status} 5d"),
        "Envoy": ('{ms} {ms} "', '{ms} {own} "'),
    }
    for name, (old, new) in behind.items():
        text = ""
        for late, request in zip(slow, REQUESTS, strict=True):
            line = FORMATS[name].write([late])
            values = {"took": took(late), "real": took(request), "ms": ms(took(late)), "own": ms(took(request))}
            text += line.replace(old.format(**values, status=late.status), new.format(**values, status=late.status))
        log = read(text, upstream=True)
        assert (log.table["departure_s"] - log.table["arrival_s"]).sum() == pytest.approx(SERVICE_S + QUEUEING_S)
        assert read(text).table.eval("departure_s - arrival_s").sum() > SERVICE_S + QUEUEING_S + 150


def test_upstream_of_a_format_string_adds_up_the_servers_that_were_tried(read):
    rows = [(10.5, 0.5, "0.1, 0.2"), (11.0, 0.5, "-"), (12.0, 0.25, "0.125")]
    text = "".join(f"{ORIGIN + end:.3f}|{took}|{up}\n" for end, took, up in rows)
    log = read(text, form="$msec|$request_time|$upstream_response_time", upstream=True)
    assert log.table.to_numpy() == pytest.approx(np.array([[0.0, 0.3], [1.75, 1.875]]))
    assert any("1 request reached no server, left out" in note for note in log.notes)


def test_upstream_of_a_log_that_does_not_say_it_is_a_fault(read):
    for name in ("nginx $msec", "CSV", "JSON of Caddy", "SWF"):
        with pytest.raises(FileError, match="--upstream"):
            read(FORMATS[name].write(REQUESTS), upstream=True)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("plain words", "--format: should name fields, such as $request_time or %D, got plain words"),
        ("$msec$request_time", "--format: should have a character after each field, got $msec"),
        ("$msec $msec", "--format: should name a field once, got msec"),
    ],
)
def test_a_format_string_that_cannot_be_read_is_a_fault(text, fault):
    with pytest.raises(FileError) as caught:
        compiled_format(text)
    assert caught.value.lines() == [f"1:1: {fault}"]


def test_json_without_known_times_says_what_is_needed(read):
    with pytest.raises(
        FileError, match="two of --arrival, --departure and --duration should be given, got columns a, b"
    ):
        read('{"a": 1, "b": {}}\n{"a": 2, "b": "x"}\n')
    with pytest.raises(FileError, match="timestamp: is it a start"):
        read('{"timestamp": "2024-01-01T00:00:00Z", "latency_ms": 5}\n')
    with pytest.raises(FileError, match="1:1: object: should be whole: expecting ',' or '}' in line 2"):
        read('{"a": \n1 2 3')


def test_a_json_log_with_broken_lines_tells_them(read):
    lines = FORMATS["JSON of nginx"].write(REQUESTS).splitlines()
    log = read("\n".join([*lines[:100], "{", *lines[100:200], "worker died", *lines[200:]]))
    assert len(log.table) == len(REQUESTS)
    assert log.notes[0] == "lines that are no JSON objects: 2, left out: line 101, 202"
    assert read("\n".join([*lines, *["{"] * 50])).findings[0].count == 50


@pytest.mark.parametrize("form", ["one after another", "in an array"])
def test_an_object_over_several_lines_that_is_broken_is_told_where_it_begins(read, form):
    """With what was expected, and in which line."""
    objects = [json.dumps({"arrival_s": i, "departure_s": i + 1.5, "path": "/"}, indent=2) for i in range(9)]
    whole = "\n".join(objects) if form == "one after another" else "[\n" + ",\n".join(objects) + "\n]"
    assert len(read(whole).table) == 9
    first = 36 if form == "one after another" else 37
    for wrong, place, what in (
        (whole.replace("8.5,", "8.5"), first, rf"expecting ',' or '\}}' in line {first + 3}, got \"\"path\": \"/\"\""),
        (
            whole.replace("8.5,", "8.5,,"),
            first,
            f"expecting property name .* in line {first + 2}",
        ),
        (whole.replace("8.5", "?"), first, rf"expecting value in line {first + 2}, got \"\?,\""),
        (whole[:-9], first + 5, rf".* in line {first + 8}, got "),
    ):
        with pytest.raises(FileError, match=rf"^{place}:1: object: should be whole: {what}"):
            read(wrong)


VALUES = """\ufeff {"a": -12.5e+3, "\\u00e9\\"]": [1.5, -0.25E-2, 7e5, 10, -3, true, false, null, NaN, -Infinity],
 "b": {"c": "x\\\\", "d": "\\ud83d\\ude00 é {", "e": [], "f": {}}, "g": false, "h": 0, "i": -0.0, "j": 1e-7 , "k": ""}
"""


def test_json_is_the_same_wherever_its_pieces_end():
    """Of ``1.5`` a piece may end after ``1.``, of ``1e-7`` after ``1e-``: neither number is whole there."""
    content, expected = VALUES.encode(), json.dumps(json.loads(VALUES.removeprefix("\ufeff")))

    def members(*pieces):
        text = JsonText(pieces)
        values = {
            name: [text.value() for _ in text.items()] if "]" in name else text.value() for name in text.members()
        }
        assert text.peek() == ""
        return json.dumps(values)

    for at in range(1, len(content) + 1):
        assert members(content[:at], content[at:]) == expected
        assert json.dumps(JsonText([content[:at], content[at:]]).value()) == expected
    for size in (1, 2, 3, 7):
        assert members(*(content[at : at + size] for at in range(0, len(content), size))) == expected
    for scalar in ("-12.5e+3", "-Infinity", "12", "true", '"\\\\"'):
        value = JsonText(scalar[at : at + 1].encode() for at in range(len(scalar))).value()
        assert repr(value) == repr(json.loads(scalar))


def test_a_number_of_json_that_has_too_many_digits_is_told(read):
    """A float of as many is none of them, even if a piece ends before its point."""
    long = "7" * 5000
    for text in (
        '[{"arrival_s": 1,\n"departure_s": %s}]',
        '[{"departure_s": 2, "arrival_s": 1}, {"arrival_s": 1,\n"departure_s": %s}]',
        '{"arrival_s": "",\n"departure_s": -%s',
    ):
        with pytest.raises(
            FileError, match=r"^1:1: object: .* expecting at most 4,300 digits .* in line 2, got \"-?777"
        ):
            read(text % long)
    assert JsonText([b"[" + long.encode(), b"e-4999]"]).value() == [float(f"{long}e-4999")]


def test_a_row_of_json_without_a_time_is_left_out_and_told(read):
    lines = [json.loads(line) for line in FORMATS["JSON of nginx"].write(REQUESTS).splitlines()]
    del lines[3]["request_time"]
    lines[7]["msec"] = "-"
    log = read("\n".join(map(json.dumps, lines)))
    assert len(log.table) == len(REQUESTS) - 2
    assert [(finding.name, finding.count) for finding in log.findings] == [("records without times", 2)]


NGINX = '::1 - - [{}] "GET / HTTP/1.1" 200 5 "-" "curl" 0.500\n'


def stamps_of(begin, end, zone, form="%d/%b/%Y:%H:%M:%S %z"):
    stamps = pd.date_range(begin, end, freq="150s", tz="UTC", inclusive="left").tz_convert(zone)
    return [stamp.strftime(form) for stamp in stamps]


@pytest.mark.parametrize("latency", ["500", "-"])
def test_the_offset_is_read_that_stamps_say(latency, read, tmp_path):
    stamps = stamps_of("2026-11-27 08:00", "2026-11-27 10:00", "Asia/Kolkata", "%Y-%m-%dT%H:%M:%S+05:30")
    table = pd.DataFrame({"start": stamps, "latency_ms": ["500"] * (len(stamps) - 1) + [latency]})
    zoned = table.assign(start=pd.to_datetime(table["start"]).dt.tz_convert("Asia/Kolkata"), latency_ms=500.0)
    texts = (
        table.to_csv(index=False),
        "\n".join(json.dumps(row) for row in table.to_dict("records")),
        zoned.to_parquet(),
        "".join(map(NGINX.format, stamps_of("2026-11-27 08:00", "2026-11-27 10:00", "Asia/Kolkata"))),
    )
    for text in texts:
        log = read(text)
        assert log.clock.name == "UTC+05:30"
        assert log.clock.note() == "times are by the offset that the stamps say, UTC+05:30; --zone says another"
        own = hours(0.0, 7200.0, log.origin_s, LogClock(own=log.clock))
        assert [(hour.name, hour.length_s) for hour in own] == [("13", 1800.0), ("14", 3600.0), ("15", 1800.0)]
        assert [hour.name for hour in hours(0.0, 7200.0, log.origin_s, LogClock("UTC", log.clock))] == ["08", "09"]
    assert read("start,end\n2026-11-27T08:00:00,2026-11-27T08:00:01\n").clock is None


def test_offsets_that_change_or_are_mixed_are_told(read, tmp_path):
    stamps = stamps_of("2026-10-24 22:00", "2026-10-25 02:00", "Europe/Berlin")
    log = read("".join(map(NGINX.format, stamps)))
    own = hours(0.0, 4 * 3600.0, log.origin_s, LogClock(own=log.clock))
    assert [(hour.name, len(hour.start_s)) for hour in own] == [("00", 1), ("01", 1), ("02", 2)]
    assert log.clock.note().endswith("; the clock was changed: UTC+01:00 from 2026-10-25 01:00 UTC on")
    for at, half in enumerate((stamps[:72], stamps[72:])):
        (tmp_path / str(at)).write_text("".join(map(NGINX.format, half)))
    halves = read_logs([tmp_path / "0", tmp_path / "1"], LogOptions())
    assert halves.clock == log.clock
    mixed = [stamp.replace("+0200", "+0000" if at % 3 == 0 else "+0200") for at, stamp in enumerate(stamps[:72])]
    note = read("".join(map(NGINX.format, mixed))).clock.note()
    assert note.endswith("UTC+02:00; --zone says another: 24 stamps have other offsets than that")


def test_durations_of_parquet_are_in_the_unit_of_their_type(read):
    table = pa.table(
        {"start": pa.array([0, 1000], pa.timestamp("ms")), "latency": pa.array([250, 500], pa.duration("ms"))}
    )
    with pa.BufferOutputStream() as sink:
        pq.write_table(table, sink)
        log = read(sink.getvalue().to_pybytes())
    assert log.table.to_numpy().tolist() == [[0.0, 0.25], [1.0, 1.5]]


def test_clocks_that_are_set_back_are_told_and_read_right_with_their_zone(read):
    night = 1_729_987_200  # 2024-10-27 00:00 UTC: Berlin's clocks go back at 01:00 UTC
    rows = [(night + 20.0 * i, night + 20.0 * i + 5) for i in range(360)]
    local = [
        pd.to_datetime(list(times), unit="s", utc=True).tz_convert("Europe/Berlin") for times in zip(*rows, strict=True)
    ]
    text = "start,end\n" + "".join(
        f"{start:%Y-%m-%d %H:%M:%S},{end:%Y-%m-%d %H:%M:%S}\n" for start, end in zip(*local, strict=True)
    )
    log = read(text)
    assert [finding.name for finding in log.findings] == ["clock set back by an hour"]
    assert "from row 181 on" in log.findings[0].evidence
    zoned = read(text, zone="Europe/Berlin")
    assert zoned.findings == ()
    assert zoned.origin_s == night
    assert zoned.table["arrival_s"].to_numpy() == pytest.approx(20.0 * np.arange(360))
    with pytest.raises(ValueError, match="zone: should be a time zone such as Europe/Berlin, got Mars"):
        read(text, zone="Mars")


def test_stamps_that_only_seem_to_go_back_are_not_accused(read):
    rows = sorted((r.left, r.came) for r in REQUESTS)
    late = rows[:200] + [(end, end - 3500) for end, _ in rows[200:230]] + rows[230:]
    text = "start,end\n" + "".join(f"{iso(start)[:-1]},{iso(end)[:-1]}\n" for end, start in late)
    assert read(text).findings == ()


def test_stamps_of_haproxy_are_read_in_a_zone(read):
    text = FORMATS["HAProxy"].write(REQUESTS)
    utc, berlin = (read(text, zone=zone) for zone in ("UTC", "Europe/Berlin"))
    assert utc.origin_s - berlin.origin_s == 7200
    assert clf(REQUESTS[0].came, "ms") in text
