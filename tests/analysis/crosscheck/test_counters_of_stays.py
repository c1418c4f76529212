"""Counters of stays: time in windows, clock, traces and requests, each beside what a slow count says."""

import numpy as np
import pandas as pd
import pytest

from analysis.crosscheck import counters as counted
from analysis.crosscheck import profile

EPOCH_S = 20.0
WINDOWS = pd.DataFrame({"window": ["early", "late"], "start_s": [0.0, 140.0], "end_s": [100.0, 200.0]})


@pytest.fixture
def where():
    rng = np.random.default_rng(5)
    ends = np.sort(rng.uniform(0.0, 200.0, (60, 2)), axis=1)
    ends[:12] = np.round(ends[:12] / EPOCH_S) * EPOCH_S
    return pd.DataFrame(
        {"residence": np.arange(60), "job": np.arange(60) % 4, "start_s": ends[:, 0], "end_s": ends[:, 1]}
    )


@pytest.fixture
def requests(where):
    rng = np.random.default_rng(6)
    rows = where[where["job"] < 2].sample(300, replace=True, random_state=7)
    left = rng.uniform(rows["start_s"], rows["end_s"])
    return pd.DataFrame({"residence": rows["residence"], "departure_s": np.where(rng.random(300) < 0.1, np.nan, left)})


@pytest.fixture
def counters(where, requests):
    """Return a row of each stay and window that has an epoch which began during both, counted one by one."""
    rows = []
    for stay in where.itertuples():
        for window in WINDOWS.itertuples():
            begins = [k * EPOCH_S for k in range(10) if window.start_s <= k * EPOCH_S < window.end_s]
            present = sum(stay.start_s <= begin < stay.end_s for begin in begins)
            own = requests.loc[requests["residence"] == stay.residence, "departure_s"]
            done = sum(window.start_s <= left < window.end_s for left in own)
            if present or done:
                rows.append((stay.residence, window.window, present * EPOCH_S, float(done)))
    made = pd.DataFrame(rows, columns=["residence", "window", "wall_s", "requests"])
    draws = np.random.default_rng(8).uniform(1.0, 9.0, (len(made), 4))
    made = made.assign(**dict(zip(counted.COUNTED, draws.T, strict=True)))
    return made.assign(mean_frequency_hz=made["cycles"] / made["cpu_s"])


def presence(counters, where):
    return counted.presence(counters, where, WINDOWS, EPOCH_S)


def completed(counters, requests, where):
    return counted.completed(counters, requests, where, WINDOWS)


def test_what_is_counted_one_by_one_agrees_in_any_order(counters, where, requests):
    mixed = counters.sample(frac=1, random_state=3, ignore_index=True)
    for check in (presence(mixed, where), counted.clock(mixed), completed(mixed, requests[::-1], where)):
        assert check.holds
        assert check.decisive


def test_stays_that_keep_their_own_times_count_from_start_to_end(where):
    rows = [
        (stay.residence, window.window, min(stay.end_s, window.end_s) - max(stay.start_s, window.start_s))
        for stay in where.itertuples()
        for window in WINDOWS.itertuples()
        if stay.start_s < window.end_s and stay.end_s > window.start_s
    ]
    own = pd.DataFrame(rows, columns=["residence", "window", "wall_s"])
    assert counted.presence(own, where, WINDOWS).holds
    assert not presence(own, where).holds


@pytest.mark.parametrize("factor", [0.5, 0.999, 1.001, 2.0])
def test_one_stay_s_fault_is_found_and_is_the_ratio_that_is_told(counters, where, requests, factor):
    row = counters.index[(counters["wall_s"] > 0) & (counters["requests"] > 0)][-1]
    for name, look in {
        "wall_s": lambda made: presence(made, where),
        "mean_frequency_hz": counted.clock,
        "requests": lambda made: completed(made, requests, where),
    }.items():
        wrong = counters.copy()
        wrong.loc[row, name] *= factor
        check = look(wrong)
        assert not check.holds
        assert check.left == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize("name", ["wall_s", "mean_frequency_hz", "requests"])
def test_what_is_no_number_agrees_with_nothing(counters, where, requests, name):
    row = counters.index[(counters["wall_s"] > 0) & (counters["requests"] > 0)][0]
    wrong = counters.copy()
    wrong.loc[row, name] = np.nan
    checks = (presence(wrong, where), counted.clock(wrong), completed(wrong, requests, where))
    assert [check.check for check in checks if not check.holds] == [
        {"wall_s": "counters_presence", "mean_frequency_hz": "counters_frequency", "requests": "requests_counted"}[name]
    ]


def test_a_row_that_is_lost_or_too_many_is_found(counters, where, requests):
    row = counters.index[(counters["wall_s"] > 0) & (counters["requests"] > 0)][0]
    lost = counters.drop(index=row)
    assert (presence(lost, where).left, completed(lost, requests, where).left) == (0.0, 0.0)
    stranger = counters.loc[[row]].assign(residence=99)
    assert not presence(pd.concat([counters, stranger]), where).holds


def test_an_idle_stay_has_no_frequency_and_a_busy_one_has(counters):
    idle = counters[:1].assign(cycles=0.0, cpu_s=0.0, mean_frequency_hz=np.nan)
    assert counted.clock(pd.concat([counters, idle])).holds
    assert counted.clock(idle) is None
    assert not counted.clock(counters.assign(mean_frequency_hz=np.nan)).holds


def test_jobs_that_are_not_served_count_as_they_like_but_each_stay_of_served_ones_must_be_right(
    counters, where, requests
):
    other = counters["residence"].map(where.set_index("residence")["job"]) >= 2
    assert completed(counters.assign(requests=counters["requests"].mask(other, 7.0)), requests, where).holds
    without = requests[requests["residence"] != requests["residence"].iloc[0]]
    assert not completed(counters, without, where).holds
    assert counted.completed(counters[:0], requests[:0], where, WINDOWS) is None


@pytest.mark.parametrize("name", counted.COUNTED)
def test_epochs_of_a_stay_that_differ_from_its_counters_are_found(counters, name):
    columns = ["residence", *counted.COUNTED]
    some = counters.loc[counters["residence"] < 20, columns]
    traces = pd.concat([some.assign(**{each: some[each] * share for each in counted.COUNTED}) for share in (0.3, 0.7)])
    assert counted.traced(counters, traces).holds
    assert not counted.traced(counters, traces.assign(**{name: traces[name] * 1.001})).holds
    assert not counted.traced(counters[counters["residence"] > 3], traces).holds
    assert counted.traced(counters, traces[:0]) is None


def test_samples_moved_between_events_or_processes_are_missed_although_the_sum_is_the_same():
    raw = pd.DataFrame({"process": [0, 0, 1], "event": ["cycles", "misses", "cycles"], "count": [9, 4, 7]})
    assert profile.symbolised(raw, raw[::-1]).holds
    assert profile.symbolised(raw.astype({"event": "category"}), raw).holds
    for wrong in (raw.assign(count=[8, 5, 7]), raw.assign(count=[8, 4, 8]), raw.assign(process=[0, 0, 2])):
        check = profile.symbolised(raw, wrong)
        assert wrong["count"].sum() == raw["count"].sum()
        assert not check.holds
        assert check.decisive
