"""Busy periods against looking at every moment, and B1 against seconds put in order by hand."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.occupancy.budget import busiest, busy_periods
from analysis.occupancy.curve import curve

STAYS = st.lists(st.tuples(st.integers(0, 16), st.integers(1, 8)), min_size=1, max_size=14)


def log(stays):
    arrival = np.array([float(a) for a, _ in stays])
    return arrival, arrival + np.array([float(x) for _, x in stays])


def stretches(arrival, departure):
    """Start and end of every stretch of whole seconds with somebody there."""
    there = [any(a <= t < d for a, d in zip(arrival, departure, strict=True)) for t in range(-1, 40)]
    starts = [t for t in range(40) if there[t + 1] and not there[t]]
    return [(s, next(t for t in range(s, 41) if t == 39 or not there[t + 1])) for s in starts]


@given(STAYS)
def test_busy_periods_are_the_stretches_with_somebody_there(stays):
    seen = curve(*log(stays))
    periods = busy_periods(seen)
    ends = zip(seen.time_s[periods.first], seen.time_s[periods.last], strict=True)
    assert list(ends) == stretches(*log(stays))
    assert periods.closed


@given(STAYS)
def test_sums_over_busy_periods_leave_nothing_out(stays):
    arrival, departure = log(stays)
    seen = curve(arrival, departure)
    sums = busy_periods(seen).sums(np.diff(seen.time_s) * seen.jobs)
    assert sums.sum() == pytest.approx(np.sum(departure - arrival))


@given(STAYS, st.integers(1, 3), st.floats(0.0, 12.0))
@example([(0, 1), (0, 2), (0, 3), (0, 4), (9, 2), (9, 2), (9, 2)], 1, 1.5)
def test_b1_takes_the_busiest_seconds_first(stays, to, seconds):
    arrival, departure = log(stays)
    seen = curve(arrival, departure)
    found = busiest(seen, busy_periods(seen), to, np.full(50, seconds))
    for (start, end), integral in zip(stretches(arrival, departure), found, strict=True):
        heights = [sum(a <= t < d for a, d in zip(arrival, departure, strict=True)) - to for t in range(start, end)]
        shares = np.clip(seconds - np.arange(end - start), 0.0, 1.0)
        assert integral == pytest.approx(np.sum(shares * np.maximum(sorted(heights, reverse=True), 0)))


def test_a_last_busy_period_with_jobs_left_is_open():
    assert not busy_periods(curve([0.0, 3.0], [1.0, np.nan], end_s=5.0)).closed


def test_an_idle_curve_has_no_busy_period():
    periods = busy_periods(curve([], [], 0.0, 5.0))
    assert len(periods.first) == 0
    assert periods.sums(np.zeros(1)).size == 0
