import bz2
import gzip
import lzma
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.tables.cells import name_of
from analysis.tables.columns import Field, read_rows, read_table
from analysis.wsmeter.measurements import FileError, read_jobs, read_measurements, read_plan
from analysis.wsmeter.plan import plan

HEADER = "job,machine,weight,value"
GOOD = [HEADER, "web,m1,1,2.5", "web,m2,2,3", "db,m1,0.5,1e3"]


def written(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def said(path, reader=read_measurements):
    """Return the message of the error that reading the file raises."""
    with pytest.raises(FileError) as caught:
        reader(path)
    return str(caught.value)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "table.csv"


def parquet(path, table):
    table.to_parquet(path)
    return path


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("web,m1,1,", '4:4: value: should not be empty, got ""'),
        ("web,m1,1,nan", '4:4: value: should be a finite number, got "nan"'),
        ("web,m1,1,-inf", '4:4: value: should be a finite number, got "-inf"'),
        ("web,m1,1,1e999", '4:4: value: should be a finite number, got "1e999"'),
        ("web,m1,1,-0.5", '4:4: value: should be at least 0, got "-0.5"'),
        ("web,m1,1,fast", '4:4: value: should be a number, got "fast"'),
        ("web,m1,1,1_000", '4:4: value: should be a number, got "1_000"'),
        ("web,m1,1,0x10", '4:4: value: should be a number, got "0x10"'),
        ("web,m1,1,True", '4:4: value: should be a number, got "True"'),
        ("web,m1,1,1e308", '4:4: value: should be at most 1e+50, got "1e308"'),
        ("web,m1,1,1e-51", '4:4: value: should be 0 or at least 1e-50, got "1e-51"'),
        ("web,m1,1e-51,1", '4:3: weight: should be at least 1e-50, got "1e-51"'),
        ("web,m1,0,1", '4:3: weight: should be above 0, got "0"'),
        ("web,m1,-1,1", '4:3: weight: should be above 0, got "-1"'),
        ("web,m1,NaN,1", '4:3: weight: should be a finite number, got "NaN"'),
        (" ,m1,1,1", '4:1: job: should not be empty, got " "'),
        ("web,,1,1", '4:2: machine: should not be empty, got ""'),
        ("web,m1,1", "4:1: row: should have 4 fields, got 3"),
        ("web,m1,1,1,1", "4:1: row: should have 4 fields, got 5"),
        (
            "web,m2,2,3",
            "4:1: row: should be there once (a query in place of the table makes one row of several: "
            "SELECT DISTINCT * FROM …), got the same as in line 3",
        ),
    ],
)
def test_a_bad_row_is_located(file, row, message):
    assert said(written(file, [*GOOD[:3], row, GOOD[3]])) == message


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""], "1:1: file: should begin with a line of column names, got an empty file"),
        ([HEADER], "2:1: rows: should hold at least one row, got none"),
        (
            ["job,machine", "a,m"],
            "1:1: value: column is missing (--column value=EXPRESSION makes it of yours), got columns job, machine",
        ),
        (["value,job,value", "1,a,2"], "1:3: value: should be there once, got it again after column 1"),
        (
            ["job,machine,instance,weight,value", "a,m,7,1,2", "a,n,7,1,2", "a,m,7,1,3"],
            "4:1: job, machine, instance: should be there once "
            "(a query in place of the table makes one row of several: "
            "SELECT … GROUP BY job, machine, instance), got the same as in line 2",
        ),
        (
            ["residence,job,machine,value", "5,a,m,2", "5,b,n,1"],
            "3:1: residence: should be there once (a query in place of the table makes one row of several: "
            "SELECT … GROUP BY residence), got the same as in line 2",
        ),
    ],
)
def test_a_bad_file_is_located(file, lines, message):
    assert said(written(file, lines)) == message


def test_lines_are_those_of_the_file_whatever_stands_between(file):
    lines = [HEADER, "", '"two', 'lines",m,1,1', "", "b,m,1,x"]
    assert said(written(file, lines)) == '6:4: value: should be a number, got "x"'


def test_all_faults_come_at_once_in_the_order_of_the_file(file):
    assert said(written(file, [HEADER, "a,m,-1,x", "a,,1,1", "b,m,1"])).splitlines() == [
        '2:3: weight: should be above 0, got "-1"',
        '2:4: value: should be a number, got "x"',
        '3:2: machine: should not be empty, got ""',
        "4:1: row: should have 4 fields, got 3",
    ]


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_cells_may_stand_between_other_marks_than_commas(file, mark):
    table = read_measurements(written(file, [line.replace(",", mark) for line in GOOD])).table
    pd.testing.assert_frame_equal(table, read_measurements(written(file, GOOD)).table)


def test_a_comma_that_may_stand_between_thousands_is_not_called_a_decimal_one(file):
    told = said(written(file, ["job;value", "a;201,881", "b;95,881"]))
    assert "replace(column, ',', '')::double makes one if commas stand between thousands, replace(column" in told


def test_a_decimal_comma_is_no_number_and_its_remedy_is_there(file):
    assert said(written(file, ["job;value", "a;1,5"])) == (
        "2:2: value: should be a number (of decimal commas replace(column, ',', '.')::double makes one), got \"1,5\""
    )


def test_a_point_after_commas_shows_that_they_stand_between_thousands(file):
    rows = read_rows(
        written(file, ["job;value", "a;1,234.5", "b;1,234,567", "c;-7"]), (Field("value", "real", signed=True),)
    )
    assert rows.table["value"].tolist() == [1234.5, 1_234_567.0, -7.0]
    assert rows.notes == ("value: commas stand between thousands: 1,234.5 is 1234.5",)


def test_beside_a_decimal_comma_commas_are_not_between_thousands(file):
    assert len(said(written(file, ["job;value", "a;1,234.5", "b;1,5", "c;2,5"])).splitlines()) == 3


@pytest.mark.parametrize("unit", ["%", "ms"])
def test_numbers_without_a_unit_beside_such_with_one_are_faults(file, unit):
    cells = [f"a,{number}{unit}" for number in (40, 41, 42)]
    message = '5:2: value: should have a unit, as other cells of the column have, got "43"'
    assert said(written(file, ["job,value", *cells, "a,43", "a,0"])) == message


def test_many_faults_of_one_kind_are_one_line_with_their_number_and_first_places(file):
    lines = said(written(file, ["value,weight", "x,0", *["x,1"] * 29, "-1,1"])).splitlines()
    assert lines == [
        '2:1: value: should be a number, got "x" and 29 more of 31 rows, next in lines 3, 4, 5',
        '2:2: weight: should be above 0, got "0"',
        '32:1: value: should be at least 0, got "-1"',
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"value": ["1", "two"]}, '3:1: value: should be a number, got "two"'),
        ({"value": [True, False]}, "1:1: value: should hold numbers, got type bool"),
        ({"value": [1.0, 2.0], "job": [1.5, 2.5]}, "1:2: job: should hold text or whole numbers, got type double"),
        ({"value": [1.0, np.inf]}, "3:1: value: should be a finite number, got inf"),
        ({"value": [1.0, -2.0]}, "3:1: value: should be at least 0, got -2.0"),
        ({"value": [1.0, 2.0], "job": ["a", None]}, "3:2: job: should not be empty, got null"),
        (
            {"value": [1, 2], "residence": [4, 4]},
            "3:2: residence: should be there once (a query in place of the table makes one row of several: "
            "SELECT … GROUP BY residence), got the same as in line 2",
        ),
    ],
)
def test_a_bad_parquet_table_is_located(tmp_path, columns, message):
    assert said(parquet(tmp_path / "table.parquet", pd.DataFrame(columns))) == message


def test_an_empty_value_in_parquet_is_told_from_a_nan(tmp_path):
    path = parquet(tmp_path / "table.parquet", pd.DataFrame({"value": pd.array([1.0, None], dtype="Float64")}))
    assert said(path) == "3:1: value: should not be empty, got null"


@pytest.mark.parametrize("count", [2**53, 2**53 + 1, 2**63, 10**40])
def test_a_count_that_a_float_may_not_hold_is_located(file, count):
    rows = ["job,quota,instances", f"a,1,{2**53 - 1}", f"b,1,{count}"]
    assert read_jobs(written(file, rows[:2])).table["instances"].tolist() == [2**53 - 1]
    told = f'3:3: instances: should be at most 9007199254740991, got "{count}"'
    assert said(written(file, rows), read_jobs) == told


@pytest.mark.parametrize("extreme", ["1e50", "1e-50"])
def test_a_plan_from_the_largest_and_smallest_numbers_warns_of_nothing(file, extreme):
    head = "job,weight,mean,std,instances,cost"
    made = read_plan(written(file, [head, f"a,{extreme},{extreme},1e-50,99,1", "b,1e50,1e-50,1e-50,99,1e50"])).table
    assert plan(made, 0.5).margin <= 0.5


def test_a_very_long_cell_is_shown_in_part(file):
    message = said(written(file, [*GOOD, "web,m1,1," + "x" * 5000]))
    assert message.endswith("xxx…")
    assert len(message) < 300


def test_a_missing_key_is_told_as_a_missing_column(file):
    written(file, ["jobs,quota", "a,2"])
    with pytest.raises(FileError, match=r"^1:1: job: column is missing, got columns jobs, quota$"):
        read_table(file, [Field("job", "text")], lambda _names: ("job",))


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "parquet.gz"])
def test_every_form_of_file_reads_the_same(tmp_path, form):
    table = pd.DataFrame({"job": ["web", "db"], "machine": [1, 2], "weight": [1.0, 2.0], "value": [0.5, 7]})
    plain, path = tmp_path / "plain", tmp_path / f"table.{form}"
    table.to_csv(plain, index=False) if "csv" in form else table.to_parquet(plain)
    path.write_bytes(gzip.compress(plain.read_bytes()) if form.endswith("gz") else plain.read_bytes())
    reading = read_measurements(path)
    assert reading.notes == ()
    pd.testing.assert_frame_equal(reading.table, table.assign(machine=["1", "2"]), check_dtype=False)


def test_a_gzip_file_cut_off_is_refused_with_the_faults_before(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["value", "x", *map(str, rng.random(5000))]
    whole = gzip.compress("\n".join(lines).encode())
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    first, last = said(path).splitlines()
    assert first == '2:1: value: should be a number, got "x"'
    assert last.endswith(":1: file: should be a whole gzip file, got one cut off")


def test_a_damaged_gzip_file_is_refused(tmp_path):
    path = tmp_path / "bad.csv.gz"
    path.write_bytes(gzip.compress(b"value\n1\n")[:10] + b"rubbish of some length")
    assert said(path) == "1:1: file: should be a whole gzip file, got a damaged one"


def test_text_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("job,value\na,1\nrésumé,1\n".encode("latin-1"))
    assert said(path) == "3:1: file: should be UTF-8 text, got byte 0xe9"


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (bz2.compress(b"job,value\na,1\n"), "a file of bzip2"),
        (lzma.compress(b"job,value\na,1\n"), "a file of xz"),
        ("job,value\na,1\n".encode("utf-16"), "text in UTF-16"),
    ],
)
def test_files_of_other_formats_are_named_and_their_bytes_are_not_printed(tmp_path, data, form):
    path = tmp_path / "table.csv"
    path.write_bytes(data)
    assert said(path) == f"1:1: file: should be CSV or Parquet, as it is or packed by gzip or zstd, got {form}"


def test_a_file_whose_name_is_no_text_has_one_in_messages_and_columns():
    assert name_of(Path(os.fsdecode(b"caf\xe9.csv"))) == "caf\\xe9.csv"
    assert name_of(Path("café.csv")) == "café.csv"


def test_points_in_time_of_parquet_are_told_what_makes_periods_of_them(tmp_path):
    days = pd.to_datetime(["2024-03-01", "2024-03-02"])
    path = parquet(tmp_path / "t.parquet", pd.DataFrame({"period": days, "value": days}))
    for name, remedy in {"period": r" \(--period 1d makes periods of them\)", "value": ""}.items():
        with pytest.raises(FileError, match=rf"{name}: should hold numbers, holds points in time{remedy}, got type"):
            read_table(path, [Field(name, "real")])


def test_a_parquet_file_cut_off_is_refused(tmp_path):
    path = parquet(tmp_path / "table.parquet", pd.DataFrame({"value": [1.0, 2.0]}))
    path.write_bytes(path.read_bytes()[:-20])
    assert said(path) == "1:1: file: should be a whole Parquet file, got one that is cut off or damaged"


def test_a_missing_file_is_the_systems_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_measurements(tmp_path / "none.csv")
