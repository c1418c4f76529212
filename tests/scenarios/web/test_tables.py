import math

import pandas as pd
import pytest

from scenarios.web.charts import lines, stacked
from scenarios.web.tables import amount, said, table


def texts(frame: pd.DataFrame, **how) -> dict[str, str]:
    """Return the first row of a table by its headings."""
    made = table(frame, "caption", **how)
    return dict(zip(made.heads, (cell.text for cell in made.rows[0]), strict=True))


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
    assert said("money_per_year", 17458.4).split() == ["17", "458"]
    assert said("money_per_year", 174584.4).split() == ["174", "584"]
    assert said("money_per_year", 1745844.0) == "1.746 M"


def test_values_are_in_the_unit_of_their_event_and_samples_are_not():
    frame = pd.DataFrame({"function": ["f"], "samples": [3], "value": [6 * 86400 * 10**9]})
    assert texts(frame, unit="nanoseconds") == {"function": "f", "samples": "3", "value": "6.000 days"}
    assert texts(frame, unit="bytes")["value"] == "518.4 TB"
    assert texts(frame, unit="events")["value"] == "518.4 T"


def test_times_of_one_column_are_in_one_unit():
    frame = pd.DataFrame({"value": [60 * 86400 * 10**9, 6 * 3600 * 10**9, 0]})
    assert [row[0].text for row in table(frame, "caption", unit="nanoseconds").rows] == [
        "60.00 days",
        "0.2500 days",
        "0 days",
    ]


@pytest.mark.parametrize("exponent", range(22))
def test_times_are_said_to_four_digits(exponent):
    """Read back, a time is what it was."""
    size = {"ms": 1e-3, "s": 1.0, "min": 60.0, "hours": 3600.0, "days": 86400.0}
    number, unit = amount(10**exponent, "nanoseconds").replace("\u202f", "").split()
    if exponent >= 6:
        assert float(number) * size[unit] == pytest.approx(10**exponent / 1e9, rel=6e-4)


def test_bars_are_as_long_as_their_part_of_the_longest():
    made = table(pd.DataFrame({"share": [0.2, 0.05, math.nan, 0.0]}), "caption")
    assert [row[0].bar for row in made.rows] == [1.0, 0.25, None, 0.0]
    assert table(pd.DataFrame({"share": [0.0]}), "caption").rows[0][0].bar == 0.0


def test_headings_of_stability_are_words():
    names = ["previous", "previous_expected", "mean", "mean_expected"]
    assert not [head for head in table(pd.DataFrame(columns=names), "caption").heads if head in names or "_" in head]


@pytest.mark.parametrize("late", [1, 10, 1000])
def test_what_comes_last_is_always_the_second_colour(late):
    """However large the new value is in all, and whatever else there is."""
    rows = [(0, "b old", 100), (0, "c between", 10), (1, "b old", 50), (1, "c between", 50), (2, "a new", late)]
    assert stacked(rows).series == ("b old", "a new", "c between")
    assert stacked([row for row in rows if row[1] != "c between"]).series == ("b old", "a new")


def test_what_is_too_small_is_drawn_last_and_nothing_is_lost():
    rows = [(day, f"r{name}", name + 1) for day in range(3) for name in range(12)]
    chart = stacked(rows, most=3)
    assert set(chart.series[:3]) == {"r9", "r10", "r11"}
    assert chart.series[3:] == ("all others",)
    for day in range(3):
        assert sum(bar.height for bar in chart.bars[4 * day : 4 * day + 4]) == pytest.approx(220.0, abs=0.05)


def test_no_point_of_a_line_is_cut_off():
    chart = lines([0, 1, 2], {"distance": [0.0, 0.25, 1.0]})
    radius = 4
    assert all(radius <= dot.y <= chart.height - radius for dot in chart.dots[0])
    low, middle, high = (dot.y for dot in chart.dots[0])
    assert (low - middle) / (low - high) == pytest.approx(0.25, abs=1e-3)
