import gzip

import numpy as np
import pandas as pd
import pytest

from analysis.crossplatform.logs import from_tables, read
from analysis.tables.faults import FileError
from analysis.tables.recipe import Recipe
from models.tables import SERVICE_COUNTS, SERVICE_CPU, SERVICE_LOG

HEADER = "start_s,requests_buy,requests_see,instructions,l1_misses,l2_misses,response_time_s,utilisation"
GOOD = [HEADER, "0,18,42,900,30,2,0.25,0.1", "60,33,36,990,33,3,,", "120,0,5,50,4,1,0.1,0", "180,7,7,70,5,1,0.1,1"]


@pytest.fixture
def file(tmp_path):
    return tmp_path / "log.csv"


def written(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def said(path):
    """Return the message of the error that reading the file raises."""
    with pytest.raises(FileError) as caught:
        read(path)
    return str(caught.value)


def short(times, name="timestamp", rest="1,9,3,1"):
    return [f"{name},requests_a,instructions,l1_misses,l2_misses", *(f"{time},{rest}" for time in times)]


def assert_as_good(log):
    assert log.types == ("buy", "see")
    assert log.interval_s == 60
    assert log.start_s.tolist() == [0, 60, 120, 180]
    assert log.counts.tolist() == [[18, 42], [33, 36], [0, 5], [7, 7]]
    assert log.misses.tolist() == [[30, 2], [33, 3], [4, 1], [5, 1]]
    np.testing.assert_array_equal(log.response_time_s, [0.25, np.nan, 0.1, 0.1])
    np.testing.assert_array_equal(log.utilisation, [0.1, np.nan, 0.0, 1.0])


def test_a_file_is_read_whatever_the_order_of_its_rows_and_columns(file):
    assert_as_good(read(written(file, GOOD)))
    assert_as_good(read(written(file, [HEADER, *reversed(GOOD[1:])])))
    table = pd.read_csv(written(file, GOOD))
    table.loc[:, ["utilisation", "l2_misses", *table.columns[:5], "response_time_s"]].to_csv(file, index=False)
    assert_as_good(read(file))


def test_parquet_and_gzip_are_read_whatever_the_name(file):
    table = pd.read_csv(written(file, GOOD))
    table.to_parquet(file)
    assert_as_good(read(file))
    file.write_bytes(gzip.compress(("\n".join(GOOD)).encode()))
    assert_as_good(read(file))


def test_units_in_the_names_are_brought_to_seconds_and_single_events(file):
    header = HEADER.replace("start_s", "start_ms").replace("time_s", "time_ms").replace("l1_misses", "l1_misses_1e3")
    header = header.replace("instructions", "instructions_1e3")
    log = read(written(file, [header, *GOOD[1:]]))
    assert log.interval_s == 0.06
    assert log.response_time_s[0] == 0.25e-3
    assert log.misses[0].tolist() == [30e3, 2]


def test_what_nobody_measured_is_missing(file):
    log = read(written(file, short([0, 30, 60], "start_s")))
    assert np.isnan(log.response_time_s).all()
    assert np.isnan(log.utilisation).all()


def test_a_third_level_of_caches_is_read(file):
    lines = [
        "start_s,l3_misses,requests_a,instructions,l1_misses,l2_misses",
        "0,1,5,9,3,2",
        "9,1,5,9,3,2",
        "18,0,5,9,3,2",
    ]
    assert read(written(file, lines)).misses.tolist() == [[3, 2, 1], [3, 2, 1], [3, 2, 0]]


@pytest.mark.parametrize(
    "times",
    [
        ["2008-06-22T14:00:00Z", "2008-06-22T14:00:30Z", "2008-06-22T14:02:00Z"],
        ["2008-06-22 14:00:00", "2008-06-22 14:00:30", "2008-06-22 14:02:00"],
        ["2008-06-22T14:00:00+00:00", "2008-06-22T16:00:30+02:00", "2008-06-22T07:02:00-07:00"],
        ["1214143200", "1214143230", "1214143320"],
        ["1214143200000", "1214143230000", "1214143320000"],
    ],
)
def test_time_stamps_are_seconds_since_1970_and_gaps_are_intervals_that_are_not_there(file, times):
    log = read(written(file, short(times)))
    assert log.start_s.tolist() == [1214143200, 1214143230, 1214143320]
    assert log.interval_s == 30


def test_stamps_a_little_off_are_taken(file):
    assert read(written(file, short([0, 30.1, 59.9, 90.05], "start_s"))).interval_s == pytest.approx(30, abs=0.3)


def test_time_stamps_of_parquet_are_read(file):
    table = pd.read_csv(written(file, short(["2008-06-22T14:00:00Z", "2008-06-22T14:00:30Z", "2008-06-22T14:01:00Z"])))
    table["timestamp"] = pd.to_datetime(table["timestamp"])
    table.to_parquet(file)
    assert read(file).start_s.tolist() == [1214143200, 1214143230, 1214143260]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,1,1,9,3,1,,", '4:1: start_s: should be a number, got "x"'),
        (",1,1,9,3,1,,", '4:1: start_s: should not be empty, got ""'),
        ("inf,1,1,9,3,1,,", '4:1: start_s: should be a finite number, got "inf"'),
        ("120,-1,1,9,3,1,,", '4:2: requests_buy: should be at least 0, got "-1"'),
        ("120,1.5,1,9,3,1,,", '4:2: requests_buy: should be a whole number, got "1.5"'),
        ("120,1,nan,9,3,1,,", '4:3: requests_see: should not be empty, got "nan"'),
        ("120,1,1,-9,3,1,,", '4:4: instructions: should be at least 0, got "-9"'),
        ("120,1,1,9,1e999,1,,", '4:5: l1_misses: should be a finite number, got "1e999"'),
        ("120,1,1,9,3,,,", '4:6: l2_misses: should not be empty, got ""'),
        ("120,1,1,9,3,1,fast,", '4:7: response_time_s: should be a number, got "fast"'),
        ("120,1,1,9,3,1,-1,", '4:7: response_time_s: should be at least 0, got "-1"'),
        ("120,1,1,9,3,1,,37", '4:8: utilisation: should be a share of at most 1, got "37"'),
        ("120,1,1,9,3", "4:1: row: should have 8 fields, got 5"),
        ("60,1,1,9,3,1,,", '4:1: start_s: should be there once, got "60"'),
        (
            "90,1,1,9,3,1,,",
            '5:1: start_s: should start a whole number of intervals of 30 s after the one before, got "185"',
        ),
    ],
)
def test_a_bad_row_is_located(file, row, message):
    last = GOOD[4].replace("180", "185") if row.startswith("90") else GOOD[4]
    assert said(written(file, [*GOOD[:3], row, last, GOOD[4].replace("180", "240")])).splitlines()[0] == message


def test_wrong_stamps_and_whole_columns_are_told_beside_wrong_cells(file):
    rows = ["0,1,1,9,3,1,,0", "60,x,1,9,3,1,,0", "60,1,1,9,3,1,,0", "soon,1,1,9,3,9,,0", "240,1,1,9,3,9,,0"]
    assert said(written(file, [HEADER, *rows, "300,1,1,9,3,1,,0", "365,1,1,9,3,9,,0"])).splitlines() == [
        "1:6: l2_misses: should be at most l1_misses in total, 21, got 31",
        "1:8: utilisation: should not be 0 in every interval: leave the column out, got zeros",
        '3:2: requests_buy: should be a number, got "x"',
        '4:1: start_s: should be there once, got "60"',
        '5:1: start_s: should be a number, got "soon"',
        '8:1: start_s: should start a whole number of intervals of 60 s after the one before, got "365"',
    ]


def test_columns_of_others_become_ours_and_the_rest_is_left_aside(file):
    others = [f"{30 * i},b,7,99,2,1,1" for i in range(3)]
    lines = [
        "ts,host,get,instr,l1d,l2,busy_pct",
        *others,
        *(f"{30 * i},a,{i + 1},{9 * (i + 1)},2,1,{10 * i}" for i in range(3)),
    ]
    columns = {"start_s": "ts", "requests_get": "get", "instructions": "instr", "l1_misses": "l1d", "l2_misses": "l2"}
    log = read(written(file, lines), Recipe({**columns, "utilisation": "busy_pct / 100"}, where="host = 'a'"))
    assert (log.types, log.interval_s, log.counts.tolist()) == (("get",), 30.0, [[1.0], [2.0], [3.0]])
    assert log.utilisation.tolist() == [0.0, 0.1, 0.2]


def test_a_table_without_rows_says_so_whatever_its_recipe(file):
    lines = written(file, ["ts,gets,instr,l1_misses,l2_misses"])
    recipe = Recipe({"start_s": "ts / 2", "requests_get": "gets", "instructions": "instr * 1000"}, where="ts > 5")
    with pytest.raises(FileError, match=r"^2:1: rows: should be at least 3 intervals, two more than types, got 0$"):
        read(lines, recipe)


def test_a_cell_that_an_expression_cannot_use_is_told_by_its_own_column(file):
    rows = ["0,3,9,4,1,10", "30,x,9,4,1,oops", "60,3,,4,1,20", "90,3,9,4,1,", "120,3,9,4,1,30"]
    columns = {"requests_buy": "buys + 0", "instructions": "instr * 1000", "utilisation": "busy_pct / 100"}
    with pytest.raises(FileError) as refused:
        read(written(file, ["start_s,buys,instr,l1_misses,l2_misses,busy_pct", *rows]), Recipe(columns))
    assert str(refused.value).splitlines() == [
        '3:2: buys: should be a number, got "x"',
        '3:6: busy_pct: should be a number, got "oops"',
        '4:3: instr: should not be empty, got ""',
    ]


def test_all_faults_come_at_once_in_order_of_the_file(file):
    lines = [HEADER + ",colour", "0,x,1,9,3,1,,2,red", "60,1,1,-9,3,1,,0.5,blue", "120,1"]
    assert said(written(file, lines)).splitlines() == [
        "1:9: colour: is no column of a service log; those are start_s, timestamp, instructions, l1_misses, l2_misses, "
        "response_time_s, utilisation and requests_TYPE",
        '2:2: requests_buy: should be a number, got "x"',
        '2:8: utilisation: should be a share of at most 1, got "2"',
        '3:4: instructions: should be at least 0, got "-9"',
        "4:1: row: should have 9 fields, got 2",
    ]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["2:00pm", "2:01pm", "2:02pm"], "2:1: timestamp: should be a time with its date, such as 2008-06-22T14:00:30"),
        (["2008-06-22T14:00:00", "soon", "2008"], "3:1: timestamp: should be a time with its date"),
        (["2008-06-22T14:00", "2008-06-22T14:01Z"], "2:1: timestamp: should have a zone, as others have"),
    ],
)
def test_a_stamp_that_is_no_time_is_located_and_told_what_it_should_be(file, times, message):
    assert said(written(file, short(times))).startswith(message)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""], "1:1: file: should begin with a line of column names, got an empty file"),
        (GOOD[:1], "2:1: rows: should be at least 4 intervals, two more than types, got 0"),
        (GOOD[:4], "2:1: rows: should be at least 4 intervals, two more than types, got 3"),
        (short([0, 9, 18], "start_s", "0,9,3,1"), "1:2: requests_TYPE: should not all be 0, got zeros"),
        (short([0, 9, 18], "start_s", "1,9,3,4"), "1:5: l2_misses: should be at most l1_misses in total, 9, got 12"),
        (short([0, 9, 18], "start_s", "1,0,3,1"), "1:3: instructions: should not be 0 in every interval, got zeros"),
        (short([0, 9, 18], "start_s", "1,9,0,0"), "1:4: l1_misses: should not be 0 in every interval, got zeros"),
        (short([0, 9, 18], "start_s", "1,9,3,0"), "1:5: l2_misses: should not be 0 in every interval, got zeros"),
        (
            short([0, 9, 18], "start_s", "1,2,3,1"),
            "1:4: l1_misses: should be at most instructions in total, 6: "
            "is a unit such as _1e4 missing in a name?, got 9",
        ),
        (
            [line + (",requests_b" if at == 0 else ",0") for at, line in enumerate(short([0, 9, 18, 27], "start_s"))],
            "1:6: requests_b: should not be 0 in every interval: leave the column out, got zeros",
        ),
        (
            [line + (",utilisation" if at == 0 else ",0") for at, line in enumerate(short([0, 9, 18], "start_s"))],
            "1:6: utilisation: should not be 0 in every interval: leave the column out, got zeros",
        ),
        ([HEADER + ",l1_misses", *GOOD[1:]], "1:9: l1_misses: should be there once, got it again after column 5"),
    ],
)
def test_a_file_that_is_no_log_is_refused(file, lines, message):
    assert said(written(file, lines)).splitlines()[0] == message


@pytest.mark.parametrize("mark", [";", "\t"])
def test_cells_may_stand_between_other_marks_than_commas(file, mark):
    table = read(written(file, [line.replace(",", mark) for line in GOOD]))
    np.testing.assert_array_equal(table.start_s, read(written(file, GOOD)).start_s)


def test_a_column_that_may_be_empty_is_no_column_of_zeros_when_it_is(file):
    blank = [line + (",utilisation" if at == 0 else ",") for at, line in enumerate(short([0, 9, 18], "start_s"))]
    assert np.isnan(read(written(file, blank)).utilisation).all()


def test_one_interval_whose_samples_say_more_misses_of_the_second_level_is_no_fault(file):
    assert len(read(written(file, [*GOOD, "240,0,0,9,1,2,,0.1"])).start_s) == 5


def test_a_file_that_is_cut_off_is_refused(file):
    whole = gzip.compress("\n".join([HEADER, *(f"{60 * i},1,{i},{i * i},3,1,0.1,0.1" for i in range(2000))]).encode())
    file.write_bytes(whole[: len(whole) // 2])
    assert "file: should be a whole gzip file, got one cut off" in said(file)
    table = pd.read_csv(written(file, GOOD))
    table.to_parquet(file)
    file.write_bytes(file.read_bytes()[:-9])
    assert said(file) == "1:1: file: should be a whole Parquet file, got one that is cut off or damaged"


def test_a_file_that_is_not_there_is_an_os_error(file):
    with pytest.raises(FileNotFoundError):
        read(file)


def tables():
    """Tables of a run with two platforms: two types, three intervals, in no order."""
    counts = pd.DataFrame(
        {"start_s": [30.0, 0.0, 60.0, 60.0], "type": ["see", "buy", "see", "buy"], "requests": [4, 2, 1, 3]}
    )
    log = pd.DataFrame(
        {
            "platform": ["xeon", *["piii"] * 3],
            "start_s": [0.0, 60.0, 0.0, 30.0],
            "instructions": [1.0, 60.0, 10.0, 30.0],
        }
    )
    log = log.assign(l1_misses=log["instructions"] / 10, l2_misses=1.0, response_time_s=[0.1, 0.2, np.nan, 0.4])
    cpu = pd.DataFrame(
        {"platform": ["piii", "xeon", "piii"], "start_s": [60.0, 60.0, 0.0], "utilisation": [0.6, 0.9, 0.1]}
    )
    return counts, log, cpu


def test_the_tables_of_a_run_are_read_in_order_of_time():
    log = from_tables(*tables(), "piii")
    assert log.types == ("see", "buy")
    assert log.interval_s == 30
    assert log.start_s.tolist() == [0, 30, 60]
    assert log.counts.tolist() == [[0, 2], [4, 0], [1, 3]]
    assert log.misses.tolist() == [[1, 1], [3, 1], [6, 1]]
    np.testing.assert_array_equal(log.response_time_s, [np.nan, 0.4, 0.2])
    np.testing.assert_array_equal(log.utilisation, [0.1, np.nan, 0.6])


def test_the_tables_have_the_columns_that_are_read():
    for table, schema in zip(tables(), (SERVICE_COUNTS, SERVICE_LOG, SERVICE_CPU), strict=True):
        assert set(table.columns) == {column.name for column in schema}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda counts, log, cpu: (counts, log, cpu, "pres"),
            "pres must have at least 2 intervals, got 0; .* piii, xeon",
        ),
        (lambda counts, log, cpu: (counts, log, cpu, "xeon"), "xeon must have at least 2 intervals, got 1"),
        (lambda counts, log, cpu: (counts, pd.concat([log, log]), cpu, "piii"), "the log of piii must .* once, got 3"),
        (lambda counts, log, cpu: (pd.concat([counts, counts]), log, cpu, "piii"), "counts of a type must .* got 4"),
        (lambda counts, log, cpu: (counts.replace(30.0, 31.0), log, cpu, "piii"), r"got one at 31.0 s"),
    ],
)
def test_tables_that_contradict_each_other_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        from_tables(*change(*tables()))


@pytest.mark.parametrize(("place", "name"), list(enumerate(HEADER.split(",")[1:6], start=1)))
def test_numbers_whose_squares_are_none_are_faults(file, place, name):
    rows = [row.split(",") for row in GOOD]
    rows[1][place] = "1e300"
    assert said(written(file, map(",".join, rows))) == f'2:{place + 1}: {name}: should be at most 1e+18, got "1e300"'
