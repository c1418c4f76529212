"""Formats of proxies: one workload, whose service time is known, in each; what could be two things is a fault."""

import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.log import too_long
from analysis.occupancy.logs.reading import read_log
from analysis.tables.faults import FileError
from models.queues.serve import serve
from scenarios.commands.app import app

ORIGIN = 1_696_946_136
COMMON = '10.0.0.1 - - [{stamp}] "GET /p/7 HTTP/1.1" 200 512 '
COMBINED = COMMON + '"-" "Mozilla/5.0 (X11; Linux) 537 safari" '
UPSTREAM = "[default-web-80] [] 10.0.0.4:8080 512 0.001 200 5d41402abc4b2a76b9719d911017c592"
INGRESS = COMBINED + "431 {took_s:.3f} " + UPSTREAM
INGRESS_NOBODY = COMBINED + "431 {took_s:.3f} [] [] - - - - 5d41402abc4b2a76b9719d911017c592"
INGRESS_OLD = INGRESS.replace("10.0.0.1 - -", "10.0.0.1 - [10.0.0.1] - -").replace("[] 10", "10")
ENVOY = (
    '[{iso}] "GET /p/7 HTTP/1.1" 200 - 9 512 {took_ms:.0f} 3 "-" "curl/8.0" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" '
    '"web" "10.0.0.2:80"'
)
ENVOY_FAILED = ENVOY.replace("200 - 9", "0 DC,UF 9").replace(" 3 ", " - ")
ISTIO = (
    ENVOY.replace("200 - 9", '200 - via_upstream - "-" 9') + " outbound|80||web 10.0.0.1:4 10.0.0.2:8 10.0.0.3:9 - x"
)
TRAEFIK = COMMON + '"-" "-" {count} "web@docker" "http://10.0.0.4:8080" {took_ms:.0f}ms'
TRAEFIK_NOBODY = TRAEFIK.replace('"-" "-" ', "- - ").replace('"web@docker" "http://10.0.0.4:8080"', "- -")
NGINX = COMBINED + "{took_s:.3f}"
END, START = (INGRESS, INGRESS_NOBODY, INGRESS_OLD, NGINX), (ENVOY, ENVOY_FAILED, ISTIO, TRAEFIK, TRAEFIK_NOBODY)
SEVERAL = COMBINED + "{end_s:.3f} {took_s:.3f}"


def clock(seconds):
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")


def iso(seconds):
    return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%dT%H:%M:%S}.{int(round(seconds % 1, 6) * 1000):03d}Z"


@pytest.fixture(scope="module")
def workload():
    """Arrivals, departures and total demand of 3,000 requests on four servers, first come first served."""
    rng = np.random.default_rng(7)
    arrival, demand = rng.exponential(1 / 30, 3_000).cumsum(), rng.exponential(0.12, 3_000)
    return arrival, serve("fcfs", arrival, demand, 4).departure_s, demand.sum()


def written(form, arrival, departure):
    """The workload as such lines, in the order of completion."""
    lines = []
    for count, i in enumerate(np.argsort(departure), 1):
        came, left, took = ORIGIN + arrival[i], ORIGIN + departure[i], departure[i] - arrival[i]
        stamp = clock(left if form in END or form == SEVERAL else came)
        fields = {"stamp": stamp, "iso": iso(came), "end_s": left, "took_s": took, "took_ms": 1000 * took}
        lines.append(form.format(count=count, **fields) + "\n")
    return "".join(lines)


@pytest.fixture
def read(tmp_path):
    def reading(text, **said):
        (tmp_path / "access.log").write_text(text)
        return read_log(tmp_path / "access.log", **said)

    return reading


@pytest.mark.parametrize("form", [*END, *START], ids=range(9))
def test_one_workload_has_its_service_time_in_every_format(read, workload, form):
    arrival, departure, service_s = workload
    log = read(written(form, arrival, departure))
    made = law(curve(log.table["arrival_s"], log.table["departure_s"]), 4)
    exact = form in (ENVOY, ENVOY_FAILED, ISTIO)
    assert len(log.table) == 3_000
    assert made.response_time_s == pytest.approx((departure - arrival).sum(), rel=0.005)
    assert made.service_time_s == pytest.approx(service_s, rel=0.005 if exact else 0.06)


@pytest.mark.parametrize(
    ("form", "note"),
    [
        (INGRESS, "lines are in ingress-nginx's default format, durations read in s, with stamps of the request's end"),
        (ENVOY, "lines are in Envoy's default format, durations read in ms, with stamps of the request's start"),
        (TRAEFIK, "lines are in Traefik's common format, durations read in ms, with stamps of the request's start"),
    ],
)
def test_a_note_says_which_format_it_is(read, workload, form, note):
    assert read(written(form, *workload[:2])).notes[0] == note


def test_a_unit_that_contradicts_the_format_is_a_fault(read, workload):
    text = written(INGRESS, *workload[:2])
    assert len(read(text, unit="s").table) == 3_000
    with pytest.raises(FileError, match="1:1: --unit: should be s, as in ingress-nginx's default format, got ms"):
        read(text, unit="ms")


@pytest.mark.parametrize(
    ("tail", "numbers"),
    [(SEVERAL.removeprefix(COMBINED),) * 2, ("431 9000",) * 2, ('0.1 "x" 8 - 0.2', "0.1 8 0.2")],
)  # fmt: skip
def test_several_numbers_are_a_fault_that_says_how_to_settle_it(read, workload, tail, numbers):
    arrival, departure, _ = workload
    with pytest.raises(FileError) as caught:
        read("restarted\n" + written(COMBINED + tail, arrival, departure))
    first = np.argmin(departure)
    shown = numbers.format(end_s=ORIGIN + departure[first], took_s=departure[first] - arrival[first])
    count = len(numbers.split())
    options = " or ".join(f"--duration {place}" for place in range(1, count + 1))
    what = f"which of its {count} numbers is the duration? say {options} (3,000 such lines)"
    assert caught.value.lines() == [f'2:1: line: {what}, got "{shown}"']


def test_the_duration_is_the_number_or_the_name_that_was_said(read):
    line = COMBINED.format(stamp="1696946136.500") + '0.100 - 0.250 up="0.125" q:0.500\n'
    took = {"1": 0.1, "2": 0.25, "up": 0.125, "q": 0.5}
    for said, took_s in took.items():
        assert read(line, duration=said).table["departure_s"].iloc[0] == 0.5
        assert read(line, duration=said).table["arrival_s"].iloc[0] == pytest.approx(0.5 - took_s)
    for said in ("3", "0", "down"):
        with pytest.raises(FileError, match="1:1: line: should be a line of an access log with the duration where"):
            read(line, duration=said)


def test_a_named_duration_comes_before_numbers(read):
    line = COMBINED.format(stamp="1696946136.500") + "7 rt=0.250 0.100 9\n"
    assert read(line).table["arrival_s"].iloc[0] == 0.25


def test_numbers_in_quotes_are_no_durations(read):
    with pytest.raises(FileError, match="no line has a duration: add"):
        read(COMBINED.format(stamp="1696946136.500").rstrip() + "\n")


def test_a_few_lines_with_several_numbers_are_of_another_form(read):
    good = COMBINED.format(stamp="1696946136.500") + "0.250\n"
    log = read(good * 300 + good.replace("0.250", "0.250 0.125"))
    assert (len(log.table), log.notes[0]) == (300, "lines of another form: 1, left out: line 301")


def test_durations_far_longer_than_the_log_are_a_fault_until_the_unit_is_said(read):
    """Microseconds with a decimal point are no seconds."""
    text = "".join(COMBINED.format(stamp=f"{1_696_946_136 + i}.500") + f"{90_000 + i}.5\n" for i in range(60))
    with pytest.raises(FileError, match=r"1:1: duration: should not be far longer than the whole log, 59 s: say --un"):
        read(text)
    assert read(text, unit="us").table["departure_s"].iloc[0] == 0.5
    assert read(text, unit="s").table["arrival_s"].iloc[0] == pytest.approx(0.5 - 90_000.5)


@pytest.mark.parametrize(("blank", "line"), [("", 2), ("\n", 3)])
def test_durations_of_a_table_without_a_unit_are_compared_with_its_length(read, blank, line):
    rows = "".join(f"{i},{90_000 + i}\n" for i in range(60))
    with pytest.raises(FileError) as caught:
        read(f"start_s,duration\n{blank}{rows}")
    what = "should not be far longer than the whole log, 59 s: say --unit, or another column with --duration"
    assert caught.value.lines() == [f"{line}:2: duration: {what}, got 9e+04 s"]
    assert len(read(f"start,duration\n{blank}{rows}", unit="us").table) == 60
    assert len(read(f"start_s,duration_s\n{blank}{rows}").table) == 60


@pytest.mark.parametrize("blank", ["", "\n"])
@pytest.mark.parametrize(("unit", "per_s"), [("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
@pytest.mark.parametrize("length_s", [25, 3_600])
def test_durations_without_a_unit_beside_stamps_in_less_than_seconds_are_a_fault_until_it_is_said(
    read, blank, unit, per_s, length_s
):
    """1,000 requests of 5 to 104 ms; the quick reader and the careful one, which a blank line asks for."""
    start = ORIGIN + np.arange(1_000) * length_s / 1_000
    took_s = 0.005 + 0.001 * (np.arange(1_000) % 100)
    rows = "".join(f"{int(at * per_s)},{round(s * per_s)}\n" for at, s in zip(start, took_s, strict=True))
    with pytest.raises(FileError) as caught:
        read(f"start,duration\n{blank}{rows}")
    what = f"is it in {unit}, as start is, or in s? say --unit {unit} or --unit s"
    assert caught.value.lines() == [f"1:1: duration: {what}, got a name without a unit"]
    with pytest.raises(FileError, match=f"say --unit {unit} or call it duration_s, got a name without a unit"):
        read(f"start_{unit},duration\n{blank}{rows}")
    for text, said in ((f"start,duration\n{rows}", unit), (f"start,duration_{unit}\n{rows}", None)):
        table = read(text, unit=said).table
        assert (table["departure_s"] - table["arrival_s"]).sum() == pytest.approx(took_s.sum(), rel=1e-4)


def test_durations_beside_stamps_in_seconds_are_seconds_and_those_in_ms_may_be_if_that_is_said(read):
    for head, scale, said in (("start,duration", 1, None), ("start_s,duration", 1, None), ("start,duration", 1e3, "s")):
        table = read(f"{head}\n" + "".join(f"{int((ORIGIN + i) * scale)},0.5\n" for i in range(60)), unit=said).table
        assert (table["departure_s"] - table["arrival_s"]).tolist() == [0.5] * 60


@pytest.mark.parametrize(
    ("stamp", "took", "first"),
    [
        (np.arange(60.0), np.full(60, 500.0), None),
        (np.arange(60.0), np.full(60, 600.0), 0),
        (np.arange(60.0), np.r_[1.0, 2.0, 6e6, np.full(57, 1.0)], 2),
        (np.arange(60.0), np.r_[86_400.0, np.full(59, 1.0)], None),
        (np.arange(29.0), np.full(29, 1e9), None),
        (np.zeros(60), np.full(60, 1e9), None),
        (np.r_[np.nan, np.arange(59.0)], np.full(60, 1e9), 1),
    ],
)  # fmt: skip
def test_durations_are_too_long_if_most_are_or_one_is_by_far(stamp, took, first):
    """A log may begin with long requests, be short, or be written at one instant."""
    assert too_long(stamp, took) == first


def doubts(came, took, servers=4):
    log = pd.DataFrame({"arrival_s": came, "departure_s": came + took})
    asked = {"responses of 0 s", "responses longer than the log", "hardly any load"}
    return [each for each in clean(log, servers).findings if each.name in asked]


def test_durations_that_hardly_any_log_has_are_questioned():
    came = np.arange(100.0) + 0.1234567
    (zero,) = doubts(came, np.where(came < 60, 0.0, 10.0))
    assert str(zero) == (
        "responses of 0 s (60 requests); half or more of the 100 responses take no time; kept: is the duration another "
        "field, or in another unit (--unit)? Or are the stamps too coarse?"
    )
    (idle,) = doubts(came, np.full(100, 1e-4))
    assert (idle.name, idle.evidence) == (
        "hardly any load", "all responses together keep 4 servers busy for 2.5e-05 of the time at most"
    )  # fmt: skip
    (long,) = doubts(came, np.full(100, 150.0))
    assert (long.name, long.count) == ("responses longer than the log", 100)
    assert all(
        "is the duration another field, or in another unit (--unit)?" in each.done for each in (zero, idle, long)
    )


ODD = "kept: is that number a duration? --unit says that it is one, and its unit"


@pytest.mark.parametrize(
    ("number", "finding"),
    [
        ("443", "durations that never vary (40 requests); the number after the bytes is 443 on all lines"),
        ("2.{:02}", "durations unlike nginx's (40 requests); the number after the bytes has a decimal point, but not "
         "three decimals as nginx's $request_time has"),
        ("0.{:03}", None),
        ("40{:02}", None),
        ("rt=0.100", None),
    ],
)  # fmt: skip
def test_the_only_number_is_questioned_where_it_looks_like_no_duration(read, number, finding):
    """A port, a compression ratio; a duration of nginx, of Apache, and one with a name."""

    def text(n):
        return "".join(COMBINED.format(stamp=f"{ORIGIN + 10 * i}.500") + number.format(i) + "\n" for i in range(n))

    assert [str(each) for each in read(text(40)).findings] == [f"{finding}; {ODD}"] * (finding is not None)
    assert read(text(40), unit="ms").findings == read(text(30)).findings == ()


def test_the_command_shows_what_the_reader_found(tmp_path):
    text = "".join(COMBINED.format(stamp=f"{ORIGIN + i}.500") + "443\n" for i in range(40))
    (tmp_path / "access.log").write_text(text)
    words = ["occupancy", str(tmp_path / "access.log"), "--servers", "4"]
    assert "found: durations that never vary (40 requests); " in CliRunner().invoke(app, words).stdout
    said = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert (said["findings"][0]["name"], said["repaired"]) == ("durations that never vary", 0)


def test_usual_logs_and_short_ones_are_not_questioned(workload):
    arrival, departure, _ = workload
    assert doubts(arrival, departure - arrival) == []
    assert doubts(np.arange(29.0), np.zeros(29)) == []


def test_the_command_ends_with_status_2_where_a_field_could_be_two_things(tmp_path, workload):
    (tmp_path / "access.log").write_text(written(SEVERAL, *workload[:2]))
    words = ["occupancy", str(tmp_path / "access.log"), "--servers", "4"]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{tmp_path}/access.log:1:1: line: which of its 2 numbers is the duration? say --dur")
    assert CliRunner().invoke(app, [*words, "--duration", "2"]).exit_code == 0
