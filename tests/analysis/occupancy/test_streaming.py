"""The stream against the whole log at once: the same to the last bit, whatever comes in whatever portions."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.occupancy.curve import curve
from analysis.occupancy.law import intervals
from analysis.occupancy.streaming import Stream, alerts

STAYS = st.lists(st.tuples(st.floats(0.0, 40.0), st.floats(0.0, 9.0)), min_size=1, max_size=15)
ROWS = ("start_s", "end_s", "service_time_s", "queueing_time_s", "response_time_s", "utilisation", "peak", "ratio")


def events(stays):
    """Times and changes of all events in order, and both lists apart."""
    arrival = np.array([a for a, _ in stays])
    departure = arrival + np.array([x for _, x in stays])
    time, change = np.concatenate((arrival, departure)), np.repeat([1, -1], len(stays))
    order = np.argsort(time, kind="stable")
    return time[order], change[order], arrival, departure


def fed(stream, time, change, portions):
    tables = [stream.feed(*each) for each in zip(*(np.array_split(x, portions) for x in (time, change)), strict=True)]
    return pd.concat([*tables, stream.close()], ignore_index=True)


@given(STAYS, st.integers(1, 3), st.integers(1, 40), st.integers(0, 6), st.sampled_from([0.7, 5.0, 60.0]))
def test_the_stream_is_the_batch_to_the_last_bit(stays, servers, portions, reorder, interval_s):
    time, change, arrival, departure = events(stays)
    stream = Stream(servers, interval_s, start_s=time[0], reorder=reorder)
    expected = intervals(curve(arrival, departure), servers, interval_s)
    pd.testing.assert_frame_equal(fed(stream, time, change, portions), expected, check_exact=True)
    assert (stream.jobs, stream.late, stream.surplus) == (0, 0, 0)


@given(STAYS, st.randoms())
def test_events_that_trade_places_within_the_buffer_change_nothing(stays, random):
    time, change, arrival, departure = events(stays)
    reach = 4
    blocks = [
        random.sample(range(i, min(i + reach, len(time))), len(time[i : i + reach])) for i in range(0, len(time), reach)
    ]
    order = np.concatenate(blocks)
    stream = Stream(2, 3.0, start_s=time[0], reorder=reach)
    expected = intervals(curve(arrival, departure), 2, 3.0)
    pd.testing.assert_frame_equal(fed(stream, time[order], change[order], 9), expected, check_exact=True)
    assert stream.late == 0


def test_an_event_that_comes_too_late_is_counted_and_counts_from_then_on():
    stream = Stream(1, 10.0)
    stream.feed([0.0, 4.0], [1, 1])
    stream.feed(1.0, -1)
    assert (stream.late, stream.jobs) == (1, 1)
    row = stream.close(10.0).iloc[0]
    assert (row["service_time_s"], row["queueing_time_s"]) == (10.0, 0.0)


def test_an_event_is_late_as_soon_as_it_comes_after_a_later_one():
    stream = Stream(1, 10.0)
    stream.feed([0.0, 4.0], [1, 1])
    stream.feed([3.999, 4.0, 4.5, 4.25], [-1, 1, -1, -1])
    assert (stream.late, stream.jobs, stream.now_s) == (2, 0, 4.5)


def test_a_departure_of_nobody_is_counted_and_left_out():
    stream = Stream(1, 10.0)
    stream.feed([1.0, 2.0, 6.0], [-1, 1, -1])
    assert stream.close(10.0)["service_time_s"].tolist() == [4.0]
    assert stream.surplus == 1


def test_a_departure_of_nobody_at_the_very_end_is_counted():
    stream = Stream(1, 10.0)
    stream.feed([1.0, 2.0, 2.0], [1, -1, -1])
    stream.close()
    assert (stream.surplus, stream.jobs) == (1, 0)


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from([1, -1])), min_size=1, max_size=30), st.integers(0, 4))
def test_events_out_of_order_count_alike_in_any_portions(events, held):
    one, other = (Stream(1, 4.0, reorder=held) for _ in range(2))
    singly = [one.feed(time, change) for time, change in events]
    at_once = other.feed(*zip(*events, strict=True))
    pd.testing.assert_frame_equal(
        pd.concat([*singly, one.close()], ignore_index=True), pd.concat([at_once, other.close()], ignore_index=True)
    )
    assert (one.late, one.surplus, one.jobs) == (other.late, other.surplus, other.jobs)


def test_a_departure_may_be_told_before_the_arrival_of_the_same_moment():
    stream = Stream(1, 10.0)
    stream.feed(1.0, -1)
    stream.feed(1.0, 1)
    stream.feed(5.0, 0)
    assert (stream.surplus, stream.jobs) == (0, 0)


def test_a_tick_of_the_clock_completes_intervals_without_events():
    stream = Stream(2, 1.0)
    stream.feed(0.0, 1)
    assert stream.feed(3.0, 0)["utilisation"].tolist() == [0.5, 0.5, 0.5]


def test_memory_holds_no_more_than_the_buffer():
    stream = Stream(1, 1.0, reorder=5)
    for i in range(200):
        stream.feed([i, i + 0.5], [1, -1])
        assert len(stream._held_s) <= 5


def test_jobs_there_at_the_start_are_there():
    stream = Stream(1, 4.0, initial=2)
    assert stream.close(4.0)["queueing_time_s"].tolist() == [4.0]


@pytest.mark.parametrize(
    ("time", "change", "fault"),
    [
        ([0.0], [1, 1], "as many times as changes are needed"),
        ([[0.0]], [[1]], "as many times as changes are needed"),
        ([np.nan], [1], "every time must be finite, got nan"),
        ([0.0], [2], "every change must be -1, 0 or 1, got 2"),
        ([0.0], [0.5], "every change must be -1, 0 or 1, got 0.5"),
    ],
)
def test_a_faulty_portion_is_refused_whole(time, change, fault):
    stream = Stream(1, 1.0)
    with pytest.raises(ValueError, match=fault):
        stream.feed(time, change)
    assert (stream.jobs, stream.now_s) == (0, 0.0)


@pytest.mark.parametrize("field", ["servers", "interval_s", "start_s", "initial", "reorder"])
def test_a_faulty_stream_is_refused(field):
    given_values = {"servers": 1, "interval_s": 1.0} | {field: np.nan if field == "start_s" else -1}
    with pytest.raises(ValueError, match="must"):
        Stream(**given_values)


@pytest.mark.parametrize("end_s", [1.0, np.nan, np.inf])
def test_a_stream_does_not_end_before_its_last_event(end_s):
    stream = Stream(1, 1.0, reorder=3)
    stream.feed(2.0, 1)
    with pytest.raises(ValueError, match="end_s must be finite and not before the last event at 2 s"):
        stream.close(end_s)


@given(st.lists(st.integers(0, 3), max_size=25), st.integers(1, 4))
def test_alerts_are_the_runs_of_high_intervals(queueing, consecutive):
    n = len(queueing)
    table = pd.DataFrame(
        {"start_s": np.arange(n), "end_s": np.arange(n) + 1, "service_time_s": 1.0, "queueing_time_s": queueing}
    )
    runs, run = [], []
    for i, value in enumerate([*queueing, 0]):
        if value > 1:
            run.append(i)
        elif run:
            if len(run) >= consecutive:
                runs.append((run[0], run[-1] + 1, len(run), pytest.approx(np.mean([queueing[j] for j in run]))))
            run = []
    assert list(alerts(table, 1.0, consecutive).itertuples(index=False, name=None)) == runs


def test_a_gap_between_intervals_ends_an_alert():
    table = pd.DataFrame({"start_s": [0, 5], "end_s": [1, 6], "service_time_s": 1.0, "queueing_time_s": 9.0})
    assert alerts(table, 2.0)["intervals"].tolist() == [1, 1]
    assert alerts(table, 2.0, 2).empty


def test_an_idle_interval_raises_no_alert():
    assert alerts(intervals(curve([0.0, 30.0], [5.0, 31.0]), 2, 10.0), 0.0).empty


@pytest.mark.parametrize(("ratio", "consecutive"), [(-1.0, 1), (np.nan, 1), (1.0, 0)])
def test_an_alert_needs_a_threshold_and_a_length(ratio, consecutive):
    with pytest.raises(ValueError, match="must be at least"):
        alerts(pd.DataFrame(), ratio, consecutive)
