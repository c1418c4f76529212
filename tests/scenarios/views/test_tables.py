import io

import pytest
from rich.console import Console

from scenarios.views.tables import print_rows

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
    text = io.StringIO()
    print_rows(rows, Console(file=text, width=width, highlight=False))
    return text.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_names_are_whole_and_what_does_not_fit_is_named(width):
    lines = printed(width).splitlines()
    table = [line for line in lines if "no room" not in line]
    assert max(map(len, table)) <= width
    assert "".join(line.split("  ")[0].strip() for line in table[3:]).startswith(NAME)
    gone = next((line for line in lines if "no room" in line), "")
    for title in ("cpi", "waited (s)", "samples"):
        assert (title in gone) != (title in table[1])


def test_low_and_high_are_of_the_column_before_them():
    row = {"platform": "p", "share": 0.5, "cpi": 1.4, "low": 1.3, "high": 1.5}
    text = printed(100, [row])
    assert "1.3 to 1.5" in text
    assert "50.00%" in text
    assert "20.00% to 31.00%" in printed(160)
