"""Request logs as tables: what columns are taken for, units, origins, and faults with their places."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.log import roles, unit_of
from analysis.occupancy.logs.reading import read_log
from analysis.tables.faults import FileError


@pytest.fixture
def read(tmp_path):
    """Write a text or bytes to a file and read it as a log."""

    def reading(content, **said):
        file = tmp_path / "log"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_log(file, **said)

    return reading


def stamps(log):
    return log.table[["arrival_s", "departure_s"]].to_numpy().tolist()


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("arrival_s,departure_s", "1.5,2\n3,3.25"),
        ("cls,arr_ms,dep_ms", "0,1500,2000\n1,3000,3250"),
        ("startUs,latency (ms)", "1500000,500\n3000000,250"),
        ("took_ms,Departed[s]", "500,2\n250,3.25"),
        ("start_ns,end_ns", "1500000000,2000000000\n3000000000,3250000000"),
    ],
)
def test_common_names_and_units_mean_the_same(read, header, rows):
    assert stamps(read(f"{header}\n{rows}\n")) == [[1.5, 2.0], [3.0, 3.25]]


def test_named_columns_come_before_those_with_common_names(read):
    log = read("start,t0,t1\n9,1500,2000\n", arrival="t0", departure="t1", unit="ms")
    assert stamps(log) == [[1.5, 2.0]]


def test_a_stamp_beside_a_duration_is_whichever_end_was_said(read):
    text = "timestamp,duration\n10,3\n"
    assert stamps(read(text, arrival="timestamp")) == [[10.0, 13.0]]
    assert stamps(read(text, departure="timestamp")) == [[7.0, 10.0]]
    with pytest.raises(FileError, match=r"1:1: timestamp: is it a start \(--arrival\) or an end \(--departure\)"):
        read(text)


@pytest.mark.parametrize("scale", [1, 1_000, 1_000_000, 1_000_000_000])
def test_times_since_1970_are_known_by_their_size(read, scale):
    log = read(f"start,end\n{1_700_000_000 * scale},{1_700_000_002 * scale}\n")
    assert log.origin_s == 1_700_000_000
    assert stamps(log) == [[0.0, 2.0]]
    assert all("since 1970" in note for note in log.notes)


@pytest.mark.parametrize("names", ["start_ms,end_ms", "Start (ms),endMs"])
def test_times_since_1970_whose_name_has_a_unit_have_dates_too(read, names):
    """But a number that is since 1970 in another unit than its own is not."""
    log = read(f"{names}\n1700000000000,1700000002000\n")
    assert (log.origin_s, stamps(log), log.notes) == (1_700_000_000, [[0.0, 2.0]], ())
    log = read(f"{names}\n1700000000,1700002000\n")
    assert (log.origin_s, stamps(log)) == (0, [[1_700_000.0, 1_700_002.0]])


def test_iso_times_count_from_their_first_second_in_utc(read):
    log = read("start,end\n2024-01-01T01:00:00.25+01:00,2024-01-01T00:00:02Z\n")
    assert stamps(log) == [[0.25, 2.0]]
    assert log.origin_s == pd.Timestamp("2024-01-01", tz="UTC").timestamp()


@pytest.mark.parametrize("zone", ["", "+01:00"])
def test_a_comma_before_the_fraction_of_a_second_is_one(read, zone):
    rows = [{"start": f"2026-01-01 09:54:0{at},040{zone}", "latency_ms": 7.5} for at in range(2)]
    logs = [
        read("".join(json.dumps(row) + "\n" for row in rows)),
        read("start;latency_ms\n" + "".join(f"{row['start']};7.5\n" for row in rows)),
        read("start,latency_ms\n" + "".join(f'"{row["start"]}",7.5\n' for row in rows)),
    ]
    for log in logs:
        assert stamps(log) == [[pytest.approx(at + 0.04), pytest.approx(at + 0.0475)] for at in range(2)]
        assert log.origin_s == pd.Timestamp(f"2026-01-01 09:54:00{zone or 'Z'}").timestamp()


def test_zones_need_not_be_told_in_all_columns(read):
    log = read("start,end\n2024-01-01 00:00:01,2024-01-01T00:00:02Z\n")
    assert stamps(log) == [[0.0, 1.0]]
    assert log.notes == ("column start has no zone, unlike others, and is read as UTC",)


@pytest.mark.parametrize("blank", ["", " "])
def test_columns_without_any_zone_are_utc_and_not_worth_a_note(read, blank):
    log = read(f"start,end\n2024-01-01 00:00:01,{blank}2024-01-01T00:00:02\n2024-01-01,\n")
    np.testing.assert_array_equal(stamps(log), [[1.0, 2.0], [0.0, np.nan]])
    assert log.notes == ()


@pytest.mark.parametrize("empty", ["", "NaN", "null"])
def test_what_was_not_seen_is_missing(read, empty):
    np.testing.assert_array_equal(stamps(read(f"arrival_s,departure_s\n0,{empty}\n1,2\n")), [[0.0, np.nan], [1.0, 2.0]])


def test_parquet_and_gzip_read_as_the_same(read, tmp_path):
    table = pd.DataFrame({"arrival_s": [0.0, 1.0], "departure_s": [0.5, np.nan], "type": ["a", "b"], "request": [7, 8]})
    table.to_parquet(tmp_path / "parquet")
    csv = table.to_csv(index=False)
    made = [read(csv), read(gzip.compress(csv.encode())), read((tmp_path / "parquet").read_bytes())]
    for log in made:
        np.testing.assert_array_equal(stamps(log), stamps(made[0]))
        assert log.table["type"].astype(str).tolist() == ["a", "b"]
        assert log.table["request"].astype(str).tolist() == ["7", "8"]


def test_parquet_times_of_any_resolution_are_times(tmp_path):
    start = pd.to_datetime(["2024-01-01T00:00:00.5", "2024-01-01T00:00:01.5"])
    table = pd.DataFrame({"start": start.as_unit("ms"), "duration_ms": [250, 500]})
    table.to_parquet(tmp_path / "log.parquet")
    assert stamps(read_log(tmp_path / "log.parquet")) == [[0.5, 0.75], [1.5, 2.0]]


def test_an_unsorted_log_and_a_log_of_one_request_are_logs(read):
    assert stamps(read("arrival_s,departure_s\n5,6\n1,2\n")) == [[5.0, 6.0], [1.0, 2.0]]
    assert stamps(read("arrival_s,departure_s\n5,6\n")) == [[5.0, 6.0]]


def test_a_column_that_changes_its_look_after_the_beginning_is_still_read(read):
    rows = "".join(f"{i},{i + 1}\n" for i in range(20_000))
    assert stamps(read(f"arrival_s,departure_s\n{rows}20000.5, 20001\n"))[-1] == [20000.5, 20001.0]


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        ("", ["is empty"]),
        (
            '{"time": 1.5, "request_time": 0.25}\n',
            ["1:1: time: is it a start (--arrival) or an end (--departure)?, got either"],
        ),
        ("arrival_s,departure_s\n", ["2:1: rows: should hold at least one row, got none"]),
        ("arrival_s,departure_s\n1,\n", ["2:2: departure_s: should hold at least one time, got none"]),
        (
            "arrival_s,departure_s\n1,x\n\n?,2\n3\n",
            [
                '2:2: departure_s: should be a number, got "x"',
                '4:1: arrival_s: should be a number, got "?"',
                "5:1: row: should have 2 fields, got 1",
            ],
        ),
        ("start,duration\n0,1\n1,-2\n", ['3:2: duration: should be at least 0, got "-2"']),
        (
            "start,duration\n0,1\n1,-2\n" + "2,-3\n" * 1_200,
            ['3:2: duration: should be at least 0, as should 1,200 cells further down, got "-2"'],
        ),
        ("start,duration\n0,inf\n", ['2:2: duration: should be a finite number, got "inf"']),
        (
            "start_ms,latency_s\n1e308,1\n-1e308,1e16\n1e18,1e15\n1.1e18,1\n",
            [
                '2:1: start_ms: should be within 1e+15 s of 0, got "1e308"',
                '3:1: start_ms: should be within 1e+15 s of 0, got "-1e308"',
                '3:2: latency_s: should be within 1e+15 s of 0, got "1e16"',
                '5:1: start_ms: should be within 1e+15 s of 0, got "1.1e18"',
            ],
        ),
        (
            "start,end\n2024-01-01T00:00:00+01:00,2024-01-02\n2024-01-01T00:00:00,2024-01-03\n,2024-01-04\n",
            ['3:1: start: should have a zone, as others have, got "2024-01-01T00:00:00"'],
        ),
        ("start,end\n0,2024-13-01\n", ['2:2: end: should be a number, got "2024-13-01"']),
        ("start,start\n1,2\n", ["1:2: start: should be there once, got it again after column 1"]),
        (
            "a;b\n1;2\n",
            ["1:1: columns: two of --arrival, --departure and --duration should be given, got columns a, b"],
        ),
        (
            "x,y\n1,2\n",
            ["1:1: columns: two of --arrival, --departure and --duration should be given, got columns x, y"],
        ),
        (b"\x89\xff\x00\x01\n" * 9, ["1:1: file: should be UTF-8 text, got byte 0x89"]),
        (b"PAR1 and no more", ["1:1: file: should be a whole Parquet file, got one that is cut off or damaged"]),
    ],
)  # fmt: skip
def test_every_fault_is_told_with_its_place(read, content, faults):
    with pytest.raises(FileError) as caught:
        read(content)
    assert caught.value.lines()[: len(faults)] == faults


def test_a_packed_table_that_is_cut_off_is_a_fault_after_its_last_line(read):
    rows = "".join(f"{i * i % 9973},{i * i % 9973 + i % 7}\n" for i in range(20_000))
    with pytest.raises(FileError, match=r"^\d+:1: file: should be a whole gzip file, got one cut off$"):
        read(gzip.compress(f"arrival_s,departure_s\n{rows}".encode())[:-99])


def test_columns_that_are_not_there_and_units_that_contradict_are_faults(read):
    with pytest.raises(FileError, match="1:1: came: column is missing, got columns arrival_s, departure_s"):
        read("arrival_s,departure_s\n1,2\n", arrival="came")
    with pytest.raises(FileError, match="arrival_s: should be in ms, as --unit says, got a name in s"):
        read("arrival_s,departure_s\n1,2\n", unit="ms")
    with pytest.raises(ValueError, match="a unit is one of s, ms, us, ns, got h"):
        read("arrival_s,departure_s\n1,2\n", unit="h")


@pytest.mark.parametrize("blank", ["", "\n"])
def test_options_that_contradict_each_other_are_faults(read, blank):
    text = f"a,b,c\n{blank}1,2,3\n"
    with pytest.raises(FileError, match=r"1:1: --departure: should be another column than that of --arrival, got a$"):
        read(text, arrival="a", departure="a")
    with pytest.raises(FileError, match=r"1:1: --priority: should be another column than that of --departure, got b$"):
        read(text, arrival="a", departure="b", priority="b")
    both = r"1:1: --duration: should not be given beside --arrival and --departure, got a, b and c$"
    with pytest.raises(FileError, match=both):
        read(text, arrival="a", departure="b", duration="c")


def test_small_relative_numbers_are_never_dates():
    assert unit_of("start", np.array([0.0, 1.7e9]))[0] == "s"
    assert unit_of("start", np.array([1.0e9, 9.0e9]), "ns")[0] == "ns"


def test_a_duration_is_not_needed_beside_both_stamps():
    found = roles(["start", "end", "duration", "id"])
    assert (found.arrival, found.departure, found.duration, found.request) == ("start", "end", None, "id")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('1,2,"a\nb"\n2,3,"c\n3,4,d\n', r"^4:3: row: should close the quotation mark that a field opens here: all"),
        ('1,2,"a\nb"\n2,"3,c\n3,4,d', "^4:2: row: should close the quotation mark"),
        ('1,2,a\n2,3,"b', "^3:3: row: should close the quotation mark"),
        ('1,2,a\n2,3,"b\n3,4,c\n4,5,"d\n', "^3:1: row: should close .* here: 2 lines below are read as its text"),
        ('1,2,a\n2,3,"b\n' + "3,4,c\n" * 30_000, "^3:1: file: should be CSV, got a field of more than 131,072"),
    ],
)
def test_a_quotation_that_is_not_closed_is_told_where_it_begins(read, text, fault):
    """And never takes the rows below it for a text."""
    with pytest.raises(FileError, match=fault):
        read("arrival_s,departure_s,path\n" + text)


SWF = "; Computer: made up\n; Note: tests\n\n 1 0 5 10 1 {rest}\n 2 7 -1 -1 4 {rest}\n"


def test_the_standard_workload_format_is_submit_and_wait_and_run(read):
    log = read(SWF.format(rest="-1 " * 13))
    np.testing.assert_array_equal(stamps(log), [[0.0, 15.0], [7.0, np.nan]])
    assert log.notes == ("1 job ran on several processors at once: the law is about jobs that use one at a time",)


def job(number, submit, wait, run, status):
    return f"{number} {submit} {wait} {run} 1 -1 -1 1 -1 -1 {status} -1 -1 -1 -1 -1 -1 -1\n"


SERVED = job(1, 0, 0, 10, 1) + job(2, 1, 9, 10, 1) + job(4, 3, 17, 10, 5)
"""One after the other on one server, in service for 30 s and waiting for 26 s; the last was cancelled while it ran."""
CANCELLED = job(3, 2, 5, -1, 5) + job(5, 4, 6, 0, 5) + job(6, 40, 500, -1, 5) + job(7, 41, -1, -1, 5)
"""Never served: two while the server was busy, one that was on hold, one whose wait is not known."""


def test_jobs_that_were_cancelled_before_they_ran_are_never_served(read):
    log = clean(read(SERVED + CANCELLED).table, servers=1)
    made = law(curve(log.arrival_s, log.departure_s), 1)
    assert (made.service_time_s, made.queueing_time_s) == (30.0, 26.0)
    assert (len(log.arrival_s), log.repaired, log.unfinished) == (3, 4, 0)
    (found,) = log.findings
    assert (found.name, found.count) == ("cancelled before service", 4)
    assert found.evidence == "they waited 511 s in all, without 1 whose waiting is unknown"
    assert found.done == "left out, and their waiting is in no figure: they were never served"


def test_a_workload_without_cancelled_jobs_is_as_it_was_and_one_of_them_alone_is_refused(read):
    assert clean(read(SERVED).table, servers=1).findings == ()
    assert clean(read(SERVED + job(3, 2, -1, -1, -1)).table, servers=1).unfinished == 1
    with pytest.raises(ValueError, match="all 4 jobs were cancelled before they ran: none was served"):
        clean(read(CANCELLED).table, servers=1)


def test_cancelled_jobs_that_are_written_twice_count_once(read):
    (found,) = clean(read(SERVED + 2 * CANCELLED + job(5, 4, 7, 0, 5)).table, servers=1).findings
    assert found.count == 5
    assert found.evidence.endswith("without 1 whose waiting is unknown; 4 written again, not counted")


def test_waiting_times_that_are_all_unknown_are_no_zeros(read):
    unknown = "".join(job(number, 41, -1, -1, 5) for number in range(10, 30))
    (found,) = clean(read(SERVED + unknown).table, servers=1).findings
    assert (found.count, found.evidence) == (20, "how long they waited is unknown")


def test_jobs_that_failed_without_running_are_reported(read):
    """Status 1 may take less than a second, status -1 says nothing."""
    failed = job(8, 50, 39_980, 0, 0) + job(9, 51, 20, -1, 4)
    (found,) = read(SERVED + failed + job(10, 60, 0, 0, 1) + job(11, 61, 0, 0, -1)).findings
    assert (found.name, found.count) == ("jobs that never ran", 2)
    assert found.evidence == "they failed (status 0, 2, 3 or 4) without a run time, after waiting 40,000 s in all"
    assert found.done.startswith("kept: they count as served, or as unfinished if the run time is unknown")
    assert read(SERVED).findings == ()


@pytest.mark.parametrize("servers", [1, 3])
def test_cancelled_jobs_change_neither_service_nor_the_waiting_of_others(read, servers):
    """First come first served, written by hand: jobs that are impatient leave the queue; those served do not notice."""
    rng = np.random.default_rng(4)
    free, lines, service, waiting = [0] * servers, "", 0, 0
    for number, submit in enumerate(np.sort(rng.integers(0, 900, 900))):
        start, run = max(int(submit), min(free)), int(rng.integers(1, 2 * servers + 2))
        patience = int(rng.integers(0, 60))
        if start - submit > patience:
            lines += job(number, submit, patience, -1, 5)
            continue
        lines += job(number, submit, start - submit, run, 1)
        free[free.index(min(free))] = start + run
        service, waiting = service + run, waiting + start - submit
    log = clean(read(lines).table, servers)
    made = law(curve(log.arrival_s, log.departure_s), servers)
    assert log.repaired > 20
    assert (made.service_time_s, made.queueing_time_s) == pytest.approx((service, waiting))


def test_faults_of_a_workload_are_located(read):
    with pytest.raises(FileError, match='5:2: submit_s: should be a number, got "x"'):
        read(SWF.replace("2 7", "2 x").format(rest=""))
    with pytest.raises(FileError, match=r'4:4: run_s: should be at most 1e\+15, got "1e16"'):
        read(SWF.replace("0 5 10", "0 5 1e16").format(rest=""))
    with pytest.raises(FileError, match="1:1: jobs: should be at least one, got none"):
        read("; nothing but a header\n")
    with pytest.raises(FileError, match="has its columns and units from its format"):
        read(SWF.format(rest=""), unit="ms")


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_log(tmp_path / "nothing.csv")


@pytest.mark.parametrize("blank", ["", "\n"])
def test_a_column_of_priorities_is_read_where_it_is_named(read, blank):
    text = f"arrival_s,departure_s,urgency\n0,1,1\n{blank}1,2,0\n"
    assert read(text, priority="urgency").table["priority"].tolist() == [1, 0]
    assert "priority" not in read(text).table


def test_priorities_that_are_none_are_faults_with_their_places(read):
    with pytest.raises(FileError) as caught:
        read("start,end,p\n0,1,-1\n1,2,\n2,3,high\n3,4,0.5\n4,5,2\n", priority="p")
    assert caught.value.lines() == [
        f'{line}:3: p: should be a whole number of at least 0, got "{got}"'
        for line, got in ((2, "-1"), (3, ""), (4, "high"), (5, "0.5"))
    ]


def test_priorities_of_parquet_may_be_whole_numbers_of_any_type(tmp_path):
    log = pd.DataFrame({"start": [0.0, 1.0], "end": [1.0, 2.0], "p": [1.0, 0.0], "q": np.array([1, 0], np.int8)})
    log.to_parquet(tmp_path / "log")
    for name in ("p", "q"):
        assert read_log(tmp_path / "log", priority=name).table["priority"].tolist() == [1, 0]


def test_formats_without_columns_have_no_priorities(read):
    with pytest.raises(FileError, match="p: should be a column, got a format without such columns"):
        read("; made up\n1 0 5 10 1" + " -1" * 13 + "\n", priority="p")
