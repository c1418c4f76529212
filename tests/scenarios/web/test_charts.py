import pytest

from scenarios.web.charts import lines, stacked


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


@pytest.mark.parametrize(("values", "labels"), [([2.1, 2.3], ["0", "1.25", "2.5"]), ([112.0, 3.0], ["0", "75", "150"])])
def test_an_axis_ends_at_a_round_number_and_its_middle_is_written_whole(values, labels):
    assert [label for _, label in lines([0, 1], {"x": values}).y_labels] == labels
