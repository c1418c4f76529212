import io
import math

import pandas as pd
import pytest
from rich.console import Console

from scenarios.views import terminal
from scenarios.views.section import Section
from scenarios.views.tables import of_frame, of_rows, value_text

NAME = "heavyweight_02::Scheduler::compare_and_swap_in_place"
ROW = {
    "function": NAME,
    "share": 0.25,
    "low": 0.2,
    "high": 0.31,
    "cpi": 1.25,
    "waited_s": 7486000000.0,
    "samples": 5553,
}


def printed(width, rows=(ROW,)):
    printed = io.StringIO()
    terminal.show(Section("", (of_rows(pd.DataFrame(rows)),)), Console(file=printed, width=width, highlight=False))
    return printed.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_names_are_whole_and_what_does_not_fit_is_named(width):
    lines = printed(width).splitlines()
    table = [line for line in lines if "no room" not in line]
    assert max(map(len, table)) <= width
    assert "".join(line.split("  ")[0].strip() for line in table[2:]).startswith(NAME)
    gone = next((line for line in lines if "no room" in line), "")
    for title in ("CPI", "waited (s)", "samples"):
        assert (title in gone) != (title in table[0])


def test_low_and_high_are_of_the_column_before_them():
    row = {"platform": "p", "share": 0.5, "cpi": 1.4, "low": 1.3, "high": 1.5}
    shown = printed(100, [row])
    assert "1.3 to 1.5" in shown
    assert "50.00%" in shown
    assert "20.00% to 31.00%" in printed(160)


def texts(frame: pd.DataFrame, **how) -> dict[str, str]:
    """Return the first row of a table by its headings."""
    made = of_frame(frame, "caption", **how)
    return dict(zip((head.text for head in made.headings), (cell.text for cell in made.rows[0]), strict=True))


@pytest.mark.parametrize("name", ["share", "hottest_share", "share_of_application"])
def test_ends_of_an_interval_of_shares_are_per_cent(name):
    said = texts(pd.DataFrame({name: [0.25], "low": [0.2], "high": [0.3], "samples": [4]}))
    assert (said["low"], said["high"]) == ("20.00%", "30.00%")


@pytest.mark.parametrize("name", ["cpi", "effect", "time_ratio"])
def test_ends_of_an_interval_of_anything_else_are_numbers(name):
    frame = pd.DataFrame({"share": [0.5], name: [1.421], "low": [1.3916], "high": [1.4501]})
    assert list(texts(frame).values()) == ["50.00%", "1.421", "1.392", "1.45"]


def test_money_is_money_down_to_its_interval():
    frame = pd.DataFrame({"share": [0.05], "low": [0.04], "money_per_year": [735.7], "money_per_year_low": [707.5948]})
    assert texts(frame) == {
        "share": "5.00%",
        "low": "4.00%",
        "money per year": "735.7",
        "money per year low": "707.6",
    }


def test_numbers_of_five_and_six_digits_are_whole_as_in_commands():
    assert value_text("money_per_year", 17458.4) == "17,458"
    assert value_text("money_per_year", 174584.4) == "174,584"
    assert value_text("money_per_year", 1745844.0) == "1.746 M"


def test_values_are_in_the_unit_of_their_event_and_samples_are_not():
    frame = pd.DataFrame({"function": ["f"], "samples": [3], "value": [6 * 86400 * 10**9]})
    assert texts(frame, unit="nanoseconds") == {"function": "f", "samples": "3", "value": "6.000 days"}
    assert texts(frame, unit="bytes")["value"] == "518.4 TB"
    assert texts(frame, unit="events")["value"] == "518.4 T"


def test_times_of_one_column_are_in_one_unit():
    frame = pd.DataFrame({"value": [60 * 86400 * 10**9, 6 * 3600 * 10**9, 0]})
    assert [row[0].text for row in of_frame(frame, "caption", unit="nanoseconds").rows] == [
        "60.00 days",
        "0.2500 days",
        "0 days",
    ]


def test_bars_are_as_long_as_their_part_of_the_longest():
    made = of_frame(pd.DataFrame({"share": [0.2, 0.05, math.nan, 0.0]}), "caption")
    assert [row[0].bar for row in made.rows] == [1.0, 0.25, None, 0.0]
    assert of_frame(pd.DataFrame({"share": [0.0]}), "caption").rows[0][0].bar == 0.0


def test_headings_of_stability_are_words():
    names = ["previous", "previous_expected", "mean", "mean_expected"]
    heads = [head.text for head in of_frame(pd.DataFrame(columns=names), "caption").headings]
    assert not [head for head in heads if head in names or "_" in head]


def test_values_stand_under_the_name_of_their_event_and_amounts_are_set_as_numbers():
    rows = pd.DataFrame({"function": ["f"], "value": [1], "value_a": [1], "own": pd.Series([1], dtype=object)})
    made = of_frame(rows, "caption", event="llc_misses")
    assert [head.text for head in made.headings] == ["function", "LLC misses", "LLC misses A", "own"]
    assert made.numbers == (False, True, True, True)
    assert of_frame(rows, "caption", event="samples").headings[1].text == "value"


def test_of_very_many_rows_the_first_are_shown_and_the_table_says_so():
    few, many = (of_rows(pd.DataFrame({"function": [f"f{at}" for at in range(rows)]})) for rows in (10_000, 10_001))
    assert (len(few.rows), few.caption) == (10_000, "")
    assert (len(many.rows), many.caption) == (10_000, "the first 10,000 of these 10,001 rows; --json has all of them")
    assert many.rows[-1][0].text == "f9999"
