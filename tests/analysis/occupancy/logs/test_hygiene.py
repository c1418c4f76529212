"""Dirty logs: each fault is found, repaired where it can be, and a clean log is left as it is."""

import numpy as np
import pandas as pd
import pytest

from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from analysis.occupancy.logs.access_logs import within_seconds
from analysis.occupancy.logs.clocks import drift, resolution_s
from analysis.occupancy.logs.hygiene import clean
from analysis.occupancy.logs.repair import imputed, overdue
from models.queues.serve import serve


def served(policy="fcfs", servers=2, load=0.8, n=6_000, seed=0):
    """Arrivals and departures of exponential demands of 1 s on average."""
    rng = np.random.default_rng(seed)
    arrival = rng.exponential(1.0 / (load * servers), n).cumsum()
    return arrival, serve(policy, arrival, rng.exponential(1.0, n), servers).departure_s


def log(arrival, departure, **more):
    return pd.DataFrame({"arrival_s": arrival, "departure_s": departure, **more})


def queueing_s(cleaned, servers):
    left = cleaned.departure_s[~np.isnan(cleaned.departure_s)]
    return law(curve(cleaned.arrival_s, left), servers).queueing_time_s


def names(cleaned):
    return [each.name for each in cleaned.findings]


@pytest.mark.parametrize("policy", ["fcfs", "ps", "srpt"])
def test_a_clean_log_is_left_as_it_is(policy):
    arrival, departure = served(policy)
    made = clean(log(arrival, departure), servers=2)
    np.testing.assert_array_equal(made.arrival_s, arrival)
    np.testing.assert_array_equal(made.departure_s, departure)
    assert (made.findings, made.repaired, made.unfinished, made.paired) == ((), 0, 0, True)


@pytest.mark.parametrize("policy", ["fcfs", "ps", "srpt"])
@pytest.mark.parametrize(("servers", "load"), [(1, 0.8), (4, 0.6), (4, 0.9)])
def test_one_percent_of_lost_departures_costs_less_than_three_percent_of_queueing(policy, servers, load):
    arrival, departure = served(policy, servers, load)
    lost = np.random.default_rng(1).random(len(arrival)) < 0.01
    true = law(curve(arrival, departure), servers).queueing_time_s
    dirty = law(curve(arrival, np.where(lost, np.nan, departure)), servers).queueing_time_s
    made = clean(log(arrival, np.where(lost, np.nan, departure)), servers)
    assert dirty > 3 * true
    assert queueing_s(made, servers) == pytest.approx(true, rel=0.03)
    assert made.repaired == lost.sum()


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
@pytest.mark.parametrize(("servers", "load"), [(1, 0.8), (4, 0.8)])
def test_without_pairs_lost_departures_cost_as_little(policy, servers, load):
    arrival, departure = served(policy, servers, load)
    kept = np.random.default_rng(1).random(len(arrival)) >= 0.01
    lists = pd.concat([log(arrival, np.nan), log(np.nan, departure[kept])])
    made = clean(lists, servers)
    assert not made.paired
    assert names(made) == ["lost departures"]
    assert made.repaired == pytest.approx(np.count_nonzero(~kept), abs=3)
    true = law(curve(arrival, departure), servers).queueing_time_s
    assert queueing_s(made, servers) == pytest.approx(true, rel=0.03)


def test_without_pairs_lost_arrivals_are_put_in_too():
    arrival, departure = served("fcfs", 4, 0.8)
    kept = np.random.default_rng(1).random(len(arrival)) >= 0.01
    made = clean(pd.concat([log(arrival[kept], np.nan), log(np.nan, departure)]), 4)
    assert names(made) == ["lost arrivals"]
    assert queueing_s(made, 4) == pytest.approx(law(curve(arrival, departure), 4).queueing_time_s, rel=0.05)


def test_requests_that_the_end_of_the_log_cut_off_are_unfinished_not_lost():
    arrival, departure = served()
    end = arrival[-1]
    made = clean(log(arrival, np.where(departure <= end, departure, np.nan)), servers=2)
    assert names(made) == ["unfinished requests"]
    assert made.unfinished == np.count_nonzero(departure > end) > 0
    assert made.repaired == 0


def test_lost_arrivals_of_pairs_are_put_in_and_early_ones_were_there_before():
    arrival, departure = served()
    seen = arrival.copy()
    seen[[0, 3000]] = np.nan
    made = clean(log(seen, departure), servers=2)
    assert names(made)[:2] == ["lost arrivals", "departures without arrival"]
    assert made.arrival_s[0] == np.nanmin(seen)
    assert made.arrival_s[3000] == pytest.approx(departure[3000], abs=60)


def test_rows_written_twice_are_left_out_by_their_names_and_reported_by_their_stamps():
    arrival, departure = served()
    twice = np.sort(np.r_[np.arange(len(arrival)), [5, 6, 7, 4000]])
    named = clean(log(arrival[twice], departure[twice], request=twice), servers=2)
    assert names(named) == ["rows written twice"]
    np.testing.assert_array_equal(named.arrival_s, arrival)
    stamped = clean(log(arrival[twice], departure[twice]), servers=2)
    assert [(each.name, each.count) for each in stamped.findings] == [("rows alike", 4)]
    assert (len(stamped.arrival_s), stamped.repaired) == (len(twice), 0)


def test_equal_rows_that_coarse_stamps_make_are_kept():
    rng = np.random.default_rng(3)
    arrival = np.round(rng.uniform(0, 3_000, 9_000), 2).round(1)
    departure = (arrival + 0.1 * rng.integers(1, 4, 9_000)).round(1)
    assert log(arrival, departure).duplicated().sum() > 100
    made = clean(log(arrival, departure), servers=8)
    assert "rows written twice" not in names(made)
    assert len(made.arrival_s) == 9_000


def test_clocks_that_differ_are_set_by_the_least_response():
    arrival, departure = served()
    made = clean(log(arrival, departure - 2.0), servers=2)
    assert names(made)[0] == "departures before arrivals"
    assert np.min(made.departure_s - made.arrival_s) == 0.0


def test_single_impossible_rows_are_left_out():
    arrival, departure = served()
    wrong = departure.copy()
    wrong[70] = arrival[70] - 5.0
    made = clean(log(arrival, wrong), servers=2)
    assert (names(made), made.repaired, len(made.arrival_s)) == (["departures before arrivals"], 1, len(arrival) - 1)


def test_a_clock_that_drifts_is_told():
    arrival, departure = served()
    drifting = departure + 0.5 * arrival / arrival[-1]
    assert names(clean(log(arrival, drifting), servers=2)) == ["drift"]


def test_coarse_stamps_are_told():
    arrival, departure = served()
    made = clean(log(np.floor(arrival), np.floor(departure)), servers=2)
    assert "coarse stamps" in names(made)
    assert made.repaired == 0


def test_rows_without_stamps_are_left_out_and_a_log_without_departures_is_refused():
    made = clean(log([0.0, np.nan, 5.0], [1.0, np.nan, 6.0]), servers=1)
    assert len(made.arrival_s) == 2
    with pytest.raises(ValueError, match="the log has no departures"):
        clean(log([0.0, 1.0], np.nan), servers=1)
    with pytest.raises(ValueError, match="servers must be at least 1, got 0"):
        clean(log([0.0], [1.0]), servers=0)


def test_a_log_of_one_request_is_clean():
    assert names(clean(log([5.123], [6.5]), servers=1)) == []


def test_a_log_in_any_order_is_cleaned_alike():
    arrival, departure = served()
    lost = np.arange(len(arrival)) % 97 == 5
    order = np.random.default_rng(0).permutation(len(arrival))
    dirty = np.where(lost, np.nan, departure)
    one, other = clean(log(arrival, dirty), 2), clean(log(arrival[order], dirty[order]), 2)
    np.testing.assert_array_equal(one.departure_s[order], other.departure_s)


def test_nothing_is_overdue_before_three_longest_responses():
    arrival, departure = np.array([0.0, 1.0, 5.0]), np.array([2.0, np.nan, 6.9])
    assert not overdue(arrival, departure).any()
    assert overdue(arrival, np.array([1.0, np.nan, 6.0])).tolist() == [False, True, False]


def test_a_lost_departure_comes_as_long_after_its_arrival_as_the_one_before():
    made = imputed(np.array([4.0, 0.0, 8.0]), np.array([np.nan, 3.0, 9.0]), np.array([True, False, False]))
    assert made.tolist() == [7.0, 3.0, 9.0]


@pytest.mark.statistical
def test_no_drift_is_seen_where_only_the_load_moves():
    """Level 1e-4 a log: 20 logs give a false alarm in fewer than 1 of 500 runs of this test."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        arrival = np.sort(rng.triangular(0, 4_000, 4_000, 4_000))
        departure = serve("ps", arrival, rng.uniform(0.5, 0.6, 4_000), 1).departure_s
        met = np.arange(4_000) - np.searchsorted(np.sort(departure), arrival, side="right")
        found = drift(arrival, departure - arrival, met, 1)
        assert found.p_value > 1e-4 or abs(found.whole_s) < 0.01


@pytest.mark.parametrize(("unit", "coarsest"), [(0.001, 1e-3), (1.0, 1.0), (60.0, 60.0), (0.25, 0.01), (1e-6, 0.0)])
def test_the_resolution_is_the_coarsest_unit_of_all_stamps(unit, coarsest):
    assert resolution_s(unit * np.arange(1, 1000, 7)) == coarsest


def test_priorities_stay_with_their_requests_when_rows_are_left_out():
    arrival = np.arange(300.0)
    departure = arrival + 0.5
    departure[7] = arrival[7] - 3.0
    log = pd.DataFrame({"arrival_s": arrival, "departure_s": departure, "request": arrival, "priority": arrival})
    cleaned = clean(pd.concat([log, log.iloc[[4]]]).astype({"priority": int}), servers=1)
    assert len(cleaned.arrival_s) == 299
    assert cleaned.priority.tolist() == cleaned.arrival_s.tolist()


def within_whole_seconds(arrival, departure):
    """The log as a reader leaves it that knows ends to the second, durations to the millisecond, and the order."""
    order = np.argsort(departure)
    end = within_seconds(np.floor(departure[order]))[0]
    return log(end - np.round((departure - arrival)[order], 3), end)


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (4, 0.5), (4, 0.8)])
def test_whole_seconds_are_told_and_nobody_is_blamed_for_them(policy, servers, load):
    arrival, departure = (each / 20.0 for each in served(policy, servers, load))
    dirty = within_whole_seconds(arrival, departure)
    assert any(name.startswith("servers") for name in names(clean(dirty, servers)))
    made = clean(dirty, servers, resolution_s=1.0)
    assert names(made) == ["coarse stamps"]
    assert made.findings[0].evidence.startswith("multiples of 1 s, responses take 0.0")
    assert "bounds are not guaranteed" in made.findings[0].done


def test_whole_seconds_do_not_matter_where_responses_take_minutes():
    arrival, departure = (100.0 * each for each in served())
    assert names(clean(within_whole_seconds(arrival, departure), servers=2, resolution_s=1.0)) == []


def test_coarse_stamps_without_pairs_are_told_though_lost_ones_are_put_in():
    arrival, departure = (np.floor(each) for each in served("fcfs", 4, 0.8))
    kept = np.random.default_rng(1).random(len(arrival)) >= 0.01
    made = clean(pd.concat([log(arrival, np.nan), log(np.nan, departure[kept])]), 4)
    assert names(made) == ["lost departures", "coarse stamps"]


def test_a_clock_is_not_tested_where_stamps_are_coarse():
    arrival, departure = served()
    drifting = np.floor(departure + 3.0 * arrival / arrival[-1])
    assert names(clean(log(np.floor(arrival), drifting), servers=2)) == ["coarse stamps"]


@pytest.mark.parametrize(
    ("wrong", "done"), [(1, "left out"), (2, "all departures moved"), (95, "all departures moved")]
)
def test_more_than_one_percent_of_negative_responses_is_a_clock(wrong, done):
    arrival = np.arange(100.0)
    made = clean(log(arrival, arrival + np.where(np.arange(100) < wrong, -0.25, 0.5)), servers=1)
    found = next(each for each in made.findings if each.name == "departures before arrivals")
    assert found.count == wrong
    assert done in found.done


@pytest.mark.parametrize("right", [0, 2])
def test_columns_that_are_swapped_are_refused(right):
    arrival, departure = served(n=100)
    came, left = (np.where(np.arange(100) < right, *each) for each in ((arrival, departure), (departure, arrival)))
    with pytest.raises(ValueError, match=rf"are arrival and departure swapped\? {100 - right} of 100 requests leave"):
        clean(log(came, left), servers=2)
