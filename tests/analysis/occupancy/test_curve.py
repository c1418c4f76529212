"""Occupancy curves, and times in order: what is counted, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.occupancy.curve import curve, in_order, order_of, window

TIMES = st.integers(0, 12).map(float)
STAYS = st.lists(st.tuples(TIMES, st.integers(0, 6) | st.none()), min_size=1, max_size=12)
UNSORTED = st.lists(st.sampled_from([-2.0, -0.0, 0.0, 1.0, 1.5, np.inf, np.nan]) | st.floats(0.0, 9.0), max_size=60)


def log(stays):
    """Arrivals and departures of stays (arrival, length or None: unfinished), each in an order of its own."""
    arrival = np.array([a for a, _ in stays])
    departure = np.array([np.nan if d is None else a + d for a, d in stays])
    return arrival, departure[::-1]


def present(arrival, departure, at, initial=0):
    """Jobs present just after `at`, counted."""
    return initial + sum(a <= at for a in arrival) - sum(d <= at for d in departure)


@given(STAYS, st.integers(0, 2))
def test_the_curve_counts_who_has_come_and_not_gone(stays, initial):
    arrival, departure = log(stays)
    seen = curve(arrival, departure, initial=initial)
    assert seen.jobs.tolist() == [present(arrival, departure, t, initial) for t in seen.time_s[:-1]]
    assert seen.final == present(arrival, departure, seen.end_s, initial)
    assert (seen.start_s, seen.end_s) == (arrival.min(), np.nanmax([*arrival, *departure]))


@given(STAYS)
def test_every_moment_of_change_is_there_once_with_what_comes_and_goes(stays):
    arrival, departure = log(stays)
    seen = curve(arrival, departure)
    events = {*arrival, *departure[~np.isnan(departure)]}
    assert seen.time_s.tolist() == sorted(events)
    assert seen.arrivals.tolist() == [sum(arrival == t) for t in seen.time_s]
    assert seen.departures.tolist() == [sum(departure == t) for t in seen.time_s]


@given(STAYS, TIMES, TIMES)
def test_a_window_is_the_curve_of_the_log_between_its_ends(stays, one, other):
    arrival, departure = log(stays)
    start, end = min(one, other), max(one, other)
    part = curve(arrival, departure, start, end)
    inside = [t for t in {*arrival, *departure} if start <= t <= end]
    assert part.time_s.tolist() == sorted({start, end, *inside})
    assert part.jobs.tolist() == [present(arrival, departure, t) for t in part.time_s[:-1]]
    assert part.arrivals.tolist() == [sum(arrival == t) for t in part.time_s]
    assert part.departures.tolist() == [sum(departure == t) for t in part.time_s]
    assert part.final == present(arrival, departure, end)


@given(STAYS, st.lists(TIMES, min_size=2, max_size=2, unique=True).map(sorted))
def test_a_window_of_a_window_is_the_window(stays, ends):
    whole = curve(*log(stays), start_s=0.0, end_s=20.0)
    once, twice = window(whole, *ends), window(window(whole, ends[0], 20.0), *ends)
    for field in ("time_s", "jobs", "arrivals", "departures"):
        np.testing.assert_array_equal(getattr(once, field), getattr(twice, field))
    assert (once.initial, once.final) == (twice.initial, twice.final)


def test_pairs_are_not_needed():
    arrival, departure = np.array([0.0, 1.0, 2.0]), np.array([5.0, 3.0, 4.0])
    assert curve(arrival, departure).jobs.tolist() == curve(arrival[::-1], np.sort(departure)).jobs.tolist()


def test_a_job_that_leaves_when_another_comes_leaves_first():
    seen = curve([0.0, 2.0], [2.0, 3.0])
    assert seen.jobs.tolist() == [1, 1]
    assert (seen.arrivals[1], seen.departures[1]) == (1, 1)


def test_a_job_without_length_occupies_no_time_but_is_counted():
    seen = curve([1.0], [1.0])
    assert (seen.time_s.tolist(), seen.jobs.tolist(), seen.arrivals.tolist(), seen.final) == ([1.0], [], [1], 0)


def test_nobody_between_two_given_ends_is_an_empty_curve():
    seen = curve([], [], 0.0, 10.0, initial=3)
    assert (seen.time_s.tolist(), seen.jobs.tolist()) == ([0.0, 10.0], [3])


def test_jobs_that_never_leave_stay_to_the_end():
    assert curve([0.0, 1.0], [np.nan, np.nan], end_s=4.0).jobs.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (([0.0], [-1.0]), "at -1 s more jobs have left than had arrived: 1 too many"),
        (([0.0, 5.0], [1.0, 2.0]), "at 2 s more jobs have left"),
        (([0.0, np.nan], [1.0]), "every arrival must be a finite time, got nan"),
        (([0.0, np.inf], [1.0]), "every arrival must be a finite time, got inf"),
        (([0.0], [np.inf]), "every departure must be a finite time, got inf"),
        (([0.0], [-np.inf]), "every departure must be a finite time, got -inf"),
        (([], []), "both start_s and end_s are needed"),
        (([], [np.nan], 0.0), "both start_s and end_s are needed"),
        (([[0.0]], [1.0]), "arrival_s must have one dimension, got 2"),
        (([0.0], [1.0], 2.0, 1.0), "2 s to 1 s is not within the curve"),
        (([0.0], [1.0], np.nan), "start_s and end_s must be finite, got nan"),
        (([0.0], [1.0], None, None, -1), "initial must be at least 0, got -1"),
    ],
)
def test_a_fault_is_named(arguments, fault):
    with pytest.raises(ValueError, match=fault):
        curve(*arguments)


def test_windows_that_make_up_the_curve_copy_each_point_about_once(monkeypatch):
    """Counted, not timed: with four times the curve in four times the windows, four times as much is copied."""

    def copied(moments):
        seen, points, join = curve(np.arange(0.0, moments, 2.0), np.arange(1.0, moments, 2.0)), [], np.concatenate
        with monkeypatch.context() as patch:
            patch.setattr(np, "concatenate", lambda parts: points.append(sum(map(len, parts))) or join(parts))
            for start_s in range(0, moments - 20, 20):
                window(seen, float(start_s), start_s + 20.0)
        return sum(points)

    assert 0 < copied(1_000) < 3 * 1_000
    assert copied(4_000) < 4.2 * copied(1_000)


def test_a_window_beyond_the_curve_is_refused():
    with pytest.raises(ValueError, match="0 s to 9 s is not within the curve, 0 s to 2 s"):
        window(curve([0.0], [2.0]), 0.0, 9.0)


@given(UNSORTED)
def test_times_are_put_in_order_as_numpy_does(times):
    np.testing.assert_array_equal(in_order(times), np.sort(times, kind="stable"))
    np.testing.assert_array_equal(order_of(times), np.argsort(times, kind="stable"))


@pytest.mark.parametrize("reach", [0.0, 3.0, 1e9])
def test_nearly_in_order_or_not_at_all_the_result_is_that_of_numpy(reach):
    rng = np.random.default_rng(5)
    times = np.floor(np.arange(3000.0) + rng.uniform(0.0, reach, 3000))
    times[0] += 1e6 * (reach == 0.0)
    before = times.copy()
    np.testing.assert_array_equal(in_order(times), np.sort(times))
    np.testing.assert_array_equal(order_of(times), np.argsort(times, kind="stable"))
    np.testing.assert_array_equal(times, before)


@pytest.mark.parametrize("put", [in_order, order_of])
def test_a_table_has_no_order(put):
    with pytest.raises(ValueError, match="one dimension, got 2"):
        put(np.zeros((2, 2)))
