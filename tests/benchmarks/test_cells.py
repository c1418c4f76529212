"""What a fleet of many cells costs: lines are those of least squares, and processes are watched with all they start."""

import numpy as np
import pytest

from benchmarks.cells import COLUMNS, Line, lines, watched

FORKED = """
import subprocess, sys
held = bytearray(int(sys.argv[1]) << 20)
subprocess.run([sys.executable, "-c", "import sys, time; held = bytearray(80 << 20); time.sleep(1)"], check=True)
"""


def test_a_line_goes_through_points_that_lie_on_one():
    line = Line.of(np.array([2.0, 4.0, 8.0]), np.array([7.0, 11.0, 19.0]))
    assert (line.at_none, line.each, line.off) == pytest.approx((3.0, 2.0, 0.0), abs=1e-12)
    assert line(100) == pytest.approx(203.0)


def test_it_is_said_by_how_much_points_are_off():
    line = Line.of(np.array([0.0, 1.0, 2.0]), np.array([1.0, 4.0, 1.0]))
    assert (line(1), line.off) == pytest.approx((2.0, 1.0))


def test_nothing_gets_cheaper_by_more_cells():
    line = Line.of(np.array([2.0, 4.0]), np.array([300.0, 270.0]))
    assert (line.at_none, line.each, line.off) == pytest.approx((300.0, 0.0, 0.1))


def test_what_a_worker_holds_is_not_extrapolated():
    row = dict.fromkeys(COLUMNS, 5.0)
    found = lines({2: row | {"worker": 90.0}, 4: row | {"worker": 100.0, "written": 9.0}})
    assert (found["worker"](1000), found["worker"].off, str(found["worker"])) == (100.0, pytest.approx(0.1), "100.0")
    assert (found["written"](6), str(found["written"])) == (pytest.approx(13.0), "1.0 + 2.000 × cells")


def test_a_process_is_watched_with_those_that_it_starts():
    """Memory in MB: what is held by the process, and by the one that it starts; interpreters take some themselves."""
    took = watched(FORKED, ["160"])
    assert 160 < took.own_mb < 220
    assert 80 < took.workers_mb < 160
    assert 0 < took.core_s < 60


def test_a_fleet_that_fails_ends_the_benchmark():
    with pytest.raises(SystemExit, match="a fleet failed"):
        watched("raise SystemExit(3)", [])
