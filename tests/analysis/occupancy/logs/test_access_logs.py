"""Access logs: which end a stamp marks, what a duration counts, lines of other forms, whole seconds."""

import gzip
from datetime import UTC, datetime

import numpy as np
import pytest

from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from analysis.occupancy.logs.access_logs import within_seconds
from analysis.occupancy.logs.reading import read_log
from analysis.tables.faults import FileError
from models.queues.serve import serve

ORIGIN = 1_696_946_136
"""10 October 2023, 13:55:36 UTC."""
COMBINED = '203.0.113.9 - bob [{}] "GET /a?b=[c] HTTP/1.1" 200 512 "-" "agent \\"x\\" 1.0" {}\n'
COMMON = '203.0.113.9 - - [{}] "POST /a HTTP/1.1" 404 - {}\n'


@pytest.fixture
def read(tmp_path):
    def reading(text, **said):
        file = tmp_path / "access.log"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_log(file, **said)

    return reading


def stamps(log):
    return log.table.to_numpy().round(6).tolist()


def clock(seconds):
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")


def test_nginx_stamps_the_end_and_counts_seconds(read):
    log = read(COMBINED.format("2023-10-10T13:55:36.500+00:00", "0.250"))
    assert (stamps(log), log.origin_s) == ([[0.25, 0.5]], ORIGIN)
    assert "the wait in the accept queue before that is not counted" in log.notes[-1]


def test_apache_stamps_the_start_and_counts_microseconds(read):
    log = read(COMMON.format("2023-10-10T13:55:36.500+00:00", "250000"))
    assert stamps(log) == [[0.5, 0.75]]


def test_apache_seconds_have_to_be_said(read):
    assert stamps(read(COMMON.format("2023-10-10T13:55:36.500+00:00", "2"), unit="s")) == [[0.5, 2.5]]


def test_what_a_stamp_marks_can_be_said(read):
    line = COMBINED.format("1696946136.500", "0.250")
    assert stamps(read(line, arrival="time")) == [[0.5, 0.75]]
    assert stamps(read(line, departure="time")) == [[0.25, 0.5]]
    with pytest.raises(ValueError, match="an access log has one stamp, time"):
        read(line, arrival="start")


@pytest.mark.parametrize("zone", ["+0000", "-0700"])
def test_zones_count(read, zone):
    log = read(COMMON.format(f"10/Oct/2023:13:55:36 {zone}", "0"))
    assert log.origin_s == ORIGIN + (7 * 3600 if zone == "-0700" else 0)


def test_fields_after_the_duration_do_not_matter(read):
    line = '1.1.1.1 - - [1696946136.500] "GET / HTTP/1.1" 200 5 "-" "curl" "-" rt=0.250 uct="0.001" urt="0.2"\n'
    assert stamps(read(line)) == [[0.25, 0.5]]


def test_the_same_log_packed_reads_the_same(read):
    text = "".join(COMBINED.format(f"1696946136.{i}00", "0.100") for i in range(1, 9))
    assert stamps(read(gzip.compress(text.encode()))) == stamps(read(text))


def test_lines_of_another_form_are_left_out_and_named(read):
    good = COMBINED.format("1696946136.500", "0.250").encode()
    log = read(good * 2 + b"restarted\n" + b'\xff\xfe [1696946137.1] "\n' + good * 3)
    assert len(log.table) == 5
    (found,) = log.findings
    assert str(found) == "lines of another form (2 requests); 28.6% of the lines: line 3, 4; left out"


@pytest.mark.parametrize(("other", "finding"), [(19, False), (20, True), (999, True), (1_000, None)])
def test_lines_of_another_form_are_a_note_below_one_percent_a_finding_above_and_a_fault_from_half_on(
    read, other, finding
):
    good = "".join(COMBINED.format(f"1696946136.{i % 1000:03}", f"0.{i % 89:03}") for i in range(2_000 - other))
    text = good + "restarted\n" * other
    if finding is None:
        with pytest.raises(FileError, match="should be a line of an access log"):
            read(text)
        return
    log = read(text)
    noted = "lines of another form: 19, left out: line 1982, 1983, 1984, 1985, 1986, …"
    assert (log.notes[0] == noted) == (not finding)
    assert [each.name for each in log.findings] == ["lines of another form"] * finding


def test_lines_with_absurd_times_are_left_out_and_named(read):
    good = COMBINED.format("1696946136.500", "0.250") * 3
    log = read(good + COMBINED.format("1e308", "0.250") + COMBINED.format("1696946136.500", "9" * 17 + ".5"))
    assert len(log.table) == 3
    assert str(log.findings[0]) == "lines of another form (2 requests); 40.0% of the lines: line 4, 5; left out"


@pytest.mark.parametrize(("stamp", "resolution_s"), [("10/Oct/2023:13:55:36 +0000", 1.0), ("1696946136.500", 0.0)])
def test_stamps_that_are_put_within_their_seconds_are_known_to_a_second(read, stamp, resolution_s):
    assert read(COMBINED.format(stamp, "0.250") * 3).resolution_s == resolution_s


def test_a_log_without_durations_is_refused_with_its_lines_counted_and_a_remedy(read):
    line = '1.1.1.1 - - [10/Oct/2023:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "curl"\n'
    with pytest.raises(FileError) as caught:
        read(line * 30)
    remedy = "add $request_time to log_format (%D in Apache), see docs/own-requests.md step 1"
    (told,) = caught.value.lines()
    assert told.startswith(f"1:1: line: no line has a duration: {remedy} (30 of 30 lines), got ")


@pytest.mark.parametrize("below", [2, 20, 100])
def test_durations_below_0_are_a_note_below_one_percent_a_finding_above_and_a_fault_from_half_on(read, below):
    good, bad = (COMBINED.format("1696946136.500", f"{sign}0.250") for sign in ("", "-"))
    text = "restarted\n" + good * (201 - below) + bad * below
    if below == 100:
        text += bad * 10
        with pytest.raises(FileError, match=r"the duration should be at least 0 \(110 of 212 lines\), got"):
            read(text)
        return
    log = read(text)
    if below == 2:
        assert log.notes[1] == "durations below 0: 2, left out: line 201, 202"
    else:
        found = next(each for each in log.findings if each.name == "durations below 0")
        assert (
            str(found)
            == "durations below 0 (20 requests); 9.9% of the lines: line 183, 184, 185, 186, 187, …; left out"
        )


def test_a_packed_log_that_is_cut_off_is_refused(read):
    lines = "".join(COMBINED.format("1696946136.500", f"0.{i:03}") for i in range(1000))
    with pytest.raises(FileError, match=r"^\d\d+:1: file: should be a whole gzip file, got one cut off"):
        read(gzip.compress(lines.encode())[:-50])


def test_ends_within_seconds_keep_the_order_of_lines_and_their_second():
    true = np.cumsum(np.random.default_rng(0).exponential(0.3, 500))
    made, how = within_seconds(np.floor(true))
    assert (np.diff(made) >= 0).all()
    np.testing.assert_array_equal(np.floor(made), np.floor(true))
    assert "order of the lines" in how


def test_ends_of_lines_in_no_order_are_moved_by_half_a_second():
    earliest = np.random.default_rng(0).integers(0, 99, 50).astype(float)
    np.testing.assert_array_equal(within_seconds(earliest)[0], earliest + 0.5)


@pytest.mark.parametrize("server", ["nginx", "apache"])
def test_whole_seconds_cost_little_where_the_order_of_lines_helps(read, server):
    """Demands of 50 ms, four servers at 80%: the documented errors, under a fixed seed."""
    rng = np.random.default_rng(2)
    arrival = rng.exponential(0.05 / 3.2, 8_000).cumsum()
    departure = serve("fcfs", arrival, rng.exponential(0.05, 8_000), 4).departure_s
    true = law(curve(arrival, departure), 4)
    lines = []
    for i in np.argsort(departure):
        took = departure[i] - arrival[i]
        end = COMBINED.format(clock(ORIGIN + departure[i]), f"{took:.3f}")
        start = COMMON.format(clock(ORIGIN + arrival[i]), f"{1e6 * took:.0f}")
        lines.append(end if server == "nginx" else start)
    table = read("".join(lines)).table
    made = law(curve(table["arrival_s"], table["departure_s"]), 4)
    assert made.response_time_s == pytest.approx(true.response_time_s, rel=0.01)
    assert made.service_time_s == pytest.approx(true.service_time_s, rel=0.10)
    assert made.queueing_time_s == pytest.approx(true.queueing_time_s, rel=0.20)
