"""Intervals in the making: portions do not matter, edges do not drift."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.occupancy.slices import COLUMNS, Slices, table

PIECES = st.lists(st.tuples(st.floats(0.0, 7.0), st.integers(0, 5)), min_size=1, max_size=20)


def steps(pieces):
    return np.concatenate(([0.0], np.cumsum([width for width, _ in pieces]))), np.array([jobs for _, jobs in pieces])


@given(PIECES, st.integers(1, 3), st.floats(0.1, 9.0), st.integers(1, 20))
def test_portions_cut_at_moments_of_change_give_the_same_bits(pieces, servers, interval_s, cut):
    time, jobs = steps(pieces)
    at = min(cut, len(jobs))
    whole, parts = Slices(servers, 0.0, interval_s), Slices(servers, 0.0, interval_s)
    once = whole.advance(time, jobs)
    twice = (parts.advance(time[: at + 1], jobs[:at]), parts.advance(time[at:], jobs[at:]))
    np.testing.assert_array_equal(once, np.concatenate(twice))
    np.testing.assert_array_equal(whole.rest(time[-1]), parts.rest(time[-1]))


def test_edges_are_products_and_do_not_drift():
    rows = Slices(1, 0.0, 0.1).advance(np.array([0.0, 1000.0]), np.array([1]))
    np.testing.assert_array_equal(rows[:, 1], np.arange(1, len(rows) + 1) * 0.1)


def test_an_interval_that_ends_with_the_last_piece_is_complete_and_leaves_no_rest():
    slices = Slices(2, 0.0, 5.0)
    assert slices.advance(np.array([0.0, 10.0]), np.array([3])).tolist() == [[0, 5, 10, 5, 3], [5, 10, 10, 5, 3]]
    assert slices.rest(10.0).shape == (0, len(COLUMNS))


def test_no_rows_make_an_empty_table_with_all_columns():
    assert table(np.empty((0, len(COLUMNS))), 1).columns.tolist()[-3:] == ["utilisation", "peak", "ratio"]


@pytest.mark.parametrize(("servers", "origin_s", "interval_s"), [(0, 0.0, 1.0), (1, np.nan, 1.0), (1, 0.0, 0.0)])
def test_a_fault_is_named(servers, origin_s, interval_s):
    with pytest.raises(ValueError, match="must"):
        Slices(servers, origin_s, interval_s)
