import pandas as pd
import pytest

from analysis.tables.columns import Field, read_rows
from analysis.tables.faults import FileError
from analysis.tables.recipe import Recipe

FIELDS = (
    Field("period", "real", above_zero=False),
    Field("job", "text"),
    Field("weight", "real"),
    Field("value", "real"),
    Field("treated", "flag"),
)
EXPORT = pd.DataFrame(
    {
        "timestamp": ["2026-03-06T00:00:00Z", "2026-03-06T23:00:00Z", "2026-03-07T01:00:00Z", "2026-03-08T01:00:00Z"],
        "service": ["007", "b", "c", "d"],
        "cpu_limit": ["500m", "2", "1", "1"],
        "instructions": ["100", "200", "", "5"],
        "cpu_ms": ["10", "N/A", "5", "1"],
        "kernel": ["6.6.30", "6.1", "6.1", "6.6.30"],
    }
)
COLUMNS = {
    "job": "service",
    "weight": "cpu_limit",
    "value": "instructions / cpu_ms",
    "treated": "kernel = '6.6.30'",
    "period": "timestamp",
}


def read(**settings):
    return read_rows(EXPORT, FIELDS, recipe=Recipe(COLUMNS, period_s=86400.0, **settings))


def test_columns_of_an_export_become_ours():
    rows = read(skip_bad=0.5)
    assert rows.table[["period", "job", "weight", "value", "treated"]].to_numpy().tolist() == [
        [20518.0, "007", 0.5, 10.0, 1],
        [20520.0, "d", 1.0, 5.0, 1],
    ]
    assert rows.notes == ("weight: units are those of quantities: 500m is 0.5, 1.5k is 1500",)


def test_rows_left_out_have_their_reasons_arms_and_periods():
    left_out = read(skip_bad=0.5).left_out
    assert left_out[["line", "reason", "treated", "period"]].to_numpy().tolist() == [
        [3, "cpu_ms should be a number", 0, 20518.0],
        [4, "instructions should not be empty", 0, 20519.0],
    ]


def test_more_bad_rows_than_are_allowed_are_refused_with_their_reasons():
    with pytest.raises(FileError) as caught:
        read(skip_bad=0.3)
    assert str(caught.value).splitlines() == [
        "rows: at most 30.00% may have a cell that cannot be used (--skip-bad), got 50.00%: 2 of 4",
        '3:5: cpu_ms: should be a number, got "N/A"',
        '4:4: instructions: should not be empty, got ""',
    ]


def test_a_filter_takes_rows_of_which_it_is_true():
    assert read(where="service <> 'b'", skip_bad=0.5).lines.tolist() == [2, 5]


def test_rows_outside_the_time_are_not_taken():
    assert read(since_s=1772841600.0, skip_bad=0.5).lines.tolist() == [5]
    assert read(until_s=1772841600.0, skip_bad=0.5).lines.tolist() == [2]


def test_a_filter_that_takes_nothing_shows_what_its_columns_hold():
    with pytest.raises(FileError) as caught:
        read(where="service = 'nobody'")
    assert (
        str(caught.value)
        == "where: service = 'nobody' is true in no row; service is 007 in 1 row, b in 1, c in 1, d in 1"
    )


def test_a_filter_that_takes_all_rows_is_noted():
    assert read(where="service < 'z'", skip_bad=0.5).notes[0] == (
        "where: service < 'z' is true in every row, so it leaves none out"
    )
    assert "true in every row" in read(where="true", skip_bad=0.5).notes[0]


def test_a_filter_is_a_condition():
    with pytest.raises(
        FileError, match=r"where: should be a condition, true or false, such as zone = 'a', got service"
    ):
        read(where="service")


def test_ends_that_take_nothing_show_when_the_rows_are():
    with pytest.raises(
        FileError, match=r"period: no row lies from 2027-01-15T08:00:00 .UTC., got periods from 2026-03-"
    ):
        read(since_s=1.8e9)


def test_a_value_that_is_divided_by_0_is_said_to_be():
    table = pd.DataFrame({"job": ["a"], "work": [1.0], "time": [0.0]})
    with pytest.raises(FileError, match=r"value: should be a finite number; is something divided by 0\?, got inf"):
        read_rows(table, (Field("value", "real"),), recipe=Recipe({"value": "work / time"}))


def test_an_unfinished_expression_is_named():
    for text, problem in (
        ("a /", "ends too early"),
        ("(a", "has parentheses without their other half"),
        ("", "is empty"),
    ):
        with pytest.raises(FileError, match=f"where: should be an? .*expression, {problem}"):
            read_rows(pd.DataFrame({"a": [1]}), FIELDS, recipe=Recipe(where=text))


def test_the_header_is_judged_before_anything_is_read(tmp_path):
    path = tmp_path / "export.csv"
    path.write_text("a,b\n1,2\n\xff,3\n", encoding="latin-1")
    with pytest.raises(FileError) as caught:
        read_rows(path, FIELDS, recipe=Recipe({"job": "svc", "value": "a / nothing", "weight": "sum(b)"}))
    assert str(caught.value).splitlines() == [
        "weight: should use DuckDB's functions of one row, has sum, got sum(b)",
        '1: job: takes the column "svc", which the table lacks, got columns a, b',
        '1: value: takes the column "nothing", which the table lacks, got columns a, b',
    ]


def test_points_in_time_as_periods_name_the_remedy():
    with pytest.raises(FileError, match=r"period: should be a number, is a point in time \(--period 1d"):
        read_rows(EXPORT, FIELDS, recipe=Recipe(COLUMNS))


def test_a_table_without_points_in_time_has_no_periods():
    with pytest.raises(FileError, match="period: needs points in time"):
        read_rows(EXPORT, FIELDS, recipe=Recipe({"job": "service"}, period_s=60.0))


def test_what_is_no_point_in_time_is_named_by_its_own_column():
    numbered = EXPORT.assign(timestamp=[1, 2, 3, 4])
    with pytest.raises(FileError, match=r"2:1: timestamp: should be a point in time, got 1 and 3 more of 4 rows"):
        read_rows(numbered, FIELDS[:2], recipe=Recipe({"job": "service", "period": "timestamp"}, period_s=86400.0))


def test_numbers_of_periods_are_no_points_in_time_and_are_told_as_found():
    numbered = EXPORT.rename(columns={"timestamp": "period"}).assign(period=[7, 8, 9, 9])
    with pytest.raises(FileError, match=r"2:1: period: should be a point in time, got 7 and 3 more of 4 rows"):
        read_rows(numbered, FIELDS[:2], recipe=Recipe({"job": "service"}, period_s=86400.0))
