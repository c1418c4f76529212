"""Events as lines of text: what is understood, and what is wrong with the rest."""

import numpy as np
import pytest

from analysis.occupancy.logs.events import EventReader
from analysis.tables.faults import FileError, FileFault


@pytest.mark.parametrize(
    ("lines", "unit"),
    [
        (["1.5,+1", "2,-1", "3,0"], None),
        (["time,change", "1.5,1", " 2 , -1 \r", "3,0"], None),
        (["", "\ufefftime_ms,change", "1500,+1", "", "2000,-1", "3e3,0"], None),
        (["1500,+1", "2000,-1", "3000,0"], "ms"),
    ],
)
def test_lines_with_or_without_a_header_mean_the_same(lines, unit):
    made = EventReader(unit).read(lines)
    assert (made.time_s.tolist(), made.change.tolist(), made.faults) == ([1.5, 2.0, 3.0], [1, -1, 0], [])


def test_lines_may_come_in_any_portions():
    reader = EventReader()
    made = [reader.read([line]) for line in ("time_us,change", "", "5,+1", "x,1", "7,-1")]
    assert np.concatenate([each.time_s for each in made]).tolist() == [5e-6, 7e-6]
    assert [fault.line for each in made for fault in each.faults] == [4]


@pytest.mark.parametrize(
    ("line", "column", "problem"),
    [
        ("soon,+1", 1, "should be a finite number"),
        ("inf,+1", 1, "should be a finite number"),
        ("nan,+1", 1, "should be a finite number"),
        ("2,+2", 2, "should be +1, -1 or 0"),
        ("2,", 2, "should be +1, -1 or 0"),
        ("2", 1, "should have 2 fields"),
        ("2,1,3", 1, "should have 2 fields"),
        ("time,change", 1, "should be a finite number"),
    ],
)
def test_a_line_that_is_no_event_is_a_fault_with_its_place(line, column, problem):
    made = EventReader().read(["1,+1", line, "3,-1"])
    assert made.time_s.tolist() == [1.0, 3.0]
    assert [(fault.line, fault.column, fault.problem) for fault in made.faults] == [(2, column, problem)]


@pytest.mark.parametrize("time", ["1e308", "-1e308", "1.1e15"])
def test_a_time_beyond_all_times_is_a_fault(time):
    made = EventReader().read(["1,+1", f"{time},+1", "1e15,-1"])
    assert made.time_s.tolist() == [1.0, 1e15]
    assert made.faults == [FileFault(2, 1, "time", "should be within 1e+15 s of 0", f'"{time}"')]


def test_a_time_far_ahead_is_a_fault_and_the_next_one_is_not():
    made = EventReader(most_ahead_s=10.0).read(["1e9,+1", "1000000005,-1", "5,+1", "2e9,+1", "1000000015,-1"])
    assert made.time_s.tolist() == [1e9, 1e9 + 5, 5.0, 1e9 + 15]
    assert [(fault.line, fault.problem) for fault in made.faults] == [(4, "should be at most 10 s after the latest")]


@pytest.mark.parametrize("first", ["arrival_s,departure_s", "time_s,latency", "hello", "time"])
def test_another_table_is_refused_at_its_first_line(first):
    with pytest.raises(FileError, match="1:1: line: should be an event or the header time,change"):
        EventReader().read([first, "1,+1"])


def test_a_header_that_contradicts_the_unit_is_refused():
    with pytest.raises(FileError, match="time_ms: should be in s, as --unit says"):
        EventReader("s").read(["time_ms,change"])


def test_twenty_lines_in_a_row_without_an_event_are_of_another_kind():
    reader = EventReader()
    assert len(reader.read(["0,1", *["0.1,0.5"] * 19, "1,-1", *["0.1,0.5"] * 10]).faults) == 29
    with pytest.raises(FileError, match=r"^22:2: change: should be \+1, -1 or 0"):
        reader.read(["0.1,0.5"] * 10)
