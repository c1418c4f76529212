"""The Occupancy Law of whole logs, windows and intervals, against sums that were made one by one."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.occupancy.curve import curve
from analysis.occupancy.law import (
    COLUMNS,
    Slices,
    area,
    busy_distribution,
    intervals,
    law,
    queue_distribution,
    table,
    work,
)
from models.queues.serve import serve

TIMES = st.floats(0.0, 50.0, allow_subnormal=False)
STAYS = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=12)
SERVERS = st.integers(1, 4)
PIECES = st.lists(st.tuples(st.floats(0.0, 7.0), st.integers(0, 5)), min_size=1, max_size=20)


def exact(arrival, departure, servers, start, end):
    """Service and queueing time between two moments in rational arithmetic, cut at every event."""
    cuts = sorted({Fraction(t) for t in (*arrival, *departure, start, end) if start <= t <= end})
    service = queueing = Fraction(0)
    for left, right in pairwise(cuts):
        n = sum(a <= left < d for a, d in zip(arrival, departure, strict=True))
        service += (right - left) * min(n, servers)
        queueing += (right - left) * max(n - servers, 0)
    return float(service), float(queueing)


def log(stays):
    arrival = np.array([a for a, _ in stays])
    return arrival, arrival + np.array([x for _, x in stays])


@given(STAYS, SERVERS)
def test_service_and_queueing_time_are_the_areas_below_and_above_the_line(stays, servers):
    arrival, departure = log(stays)
    seen = law(curve(arrival, departure), servers)
    expected = exact(arrival, departure, servers, seen.start_s, seen.end_s)
    assert (seen.service_time_s, seen.queueing_time_s) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(STAYS, SERVERS)
def test_the_two_are_the_sum_of_the_response_times(stays, servers):
    arrival, departure = log(stays)
    assert law(curve(arrival, departure), servers).response_time_s == pytest.approx(sum(departure - arrival), rel=1e-9)


@given(STAYS, SERVERS, TIMES, TIMES)
def test_the_law_holds_on_any_interval(stays, servers, one, other):
    arrival, departure = log(stays)
    start, end = min(one, other), max(one, other)
    seen = law(curve(arrival, departure, 0.0, 100.0), servers, start, end)
    expected = exact(arrival, departure, servers, start, end)
    assert (seen.service_time_s, seen.queueing_time_s) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(STAYS, SERVERS, st.floats(0.5, 30.0))
def test_every_interval_says_what_the_law_says_of_it(stays, servers, interval_s):
    seen = curve(*log(stays))
    rows = intervals(seen, servers, interval_s)
    for row in rows.itertuples():
        alone = law(seen, servers, row.start_s, min(row.end_s, seen.end_s))
        assert row.service_time_s == pytest.approx(alone.service_time_s, rel=1e-9, abs=1e-9)
        assert row.queueing_time_s == pytest.approx(alone.queueing_time_s, rel=1e-9, abs=1e-9)
        assert row.response_time_s == row.service_time_s + row.queueing_time_s
        assert row.peak == alone.peak
        np.testing.assert_allclose([row.utilisation, row.ratio], [alone.utilisation, alone.ratio], rtol=1e-6, atol=1e-9)


@given(STAYS, SERVERS, st.floats(0.5, 30.0))
def test_intervals_follow_each_other_from_start_to_end(stays, servers, interval_s):
    seen = curve(*log(stays))
    rows = intervals(seen, servers, interval_s)
    edges = [*rows["start_s"], *rows["end_s"][-1:]]
    assert rows["end_s"].tolist() == edges[1:]
    assert edges[:1] == [seen.start_s] * bool(edges)
    assert edges[-1:] == [seen.end_s] * bool(edges)
    assert rows["service_time_s"].sum() == pytest.approx(law(seen, servers).service_time_s, abs=1e-9)


@pytest.mark.parametrize("policy", ["fcfs", "ps", "srpt", "lcfs_pr", "fb", "sjf"])
def test_service_time_is_the_demand_served_and_queueing_time_the_rest(policy):
    rng = np.random.default_rng(5)
    arrival, demand = np.cumsum(rng.exponential(0.5, 500)), rng.uniform(1.0, 2.0, 500)
    served = serve(policy, arrival, demand, 3)
    seen = law(curve(arrival, served.departure_s), 3)
    assert seen.service_time_s == pytest.approx(demand.sum(), rel=1e-9)
    assert seen.queueing_time_s == pytest.approx(np.sum(served.departure_s - arrival - demand), rel=1e-9)


def test_four_unit_jobs_on_one_and_on_two_servers_are_as_in_figures_2_and_3():
    one, two = curve([1.0] * 4, [2.0, 3.0, 4.0, 5.0]), curve([1.0] * 4, [2.0, 2.0, 3.0, 3.0])
    assert (law(one, 1).service_time_s, law(one, 1).queueing_time_s) == (4.0, 6.0)
    assert (law(two, 2).service_time_s, law(two, 2).queueing_time_s) == (4.0, 2.0)


def test_unfinished_jobs_count_up_to_the_end():
    seen = law(curve([0.0, 1.0], [np.nan, np.nan], end_s=5.0), 1)
    assert (seen.service_time_s, seen.queueing_time_s, seen.utilisation) == (5.0, 4.0, 1.0)


def test_jobs_there_at_the_start_count_from_the_start():
    assert law(curve([], [2.0], 0.0, 4.0, initial=3), 2).queueing_time_s == 2.0


def test_what_has_no_length_has_no_utilisation():
    seen = law(curve([1.0], [1.0]), 1)
    assert seen.service_time_s == 0.0
    assert np.isnan([seen.utilisation, seen.ratio]).all()
    assert intervals(curve([1.0], [1.0]), 1, 60.0).empty
    assert busy_distribution(curve([1.0], [1.0]), 1)["share"].isna().all()


def test_where_nobody_is_the_ratio_is_nan_and_utilisation_is_zero():
    rows = intervals(curve([0.0, 30.0], [5.0, 31.0]), 2, 10.0)
    assert rows["utilisation"].tolist() == [0.25, 0.0, 0.0, 0.5]
    assert rows["ratio"].isna().tolist() == [False, True, True, False]


@given(STAYS, SERVERS)
def test_the_distributions_give_back_service_queueing_and_all_of_the_time(stays, servers):
    seen = curve(*log(stays), start_s=0.0, end_s=101.0)
    busy, queue, total = busy_distribution(seen, servers), queue_distribution(seen, servers), law(seen, servers)
    assert busy["busy"].tolist() == list(range(servers + 1))
    assert busy["share"].sum() == pytest.approx(1.0)
    assert queue["time_s"].sum() == pytest.approx(101.0)
    assert (busy["busy"] * busy["time_s"]).sum() == pytest.approx(total.service_time_s)
    assert (queue["waiting"] * queue["time_s"]).sum() == pytest.approx(total.queueing_time_s, abs=1e-9)


@given(STAYS)
def test_the_area_under_a_line_grows_from_nothing_to_all_response_time(stays):
    arrival, departure = log(stays)
    areas = [area(curve(arrival, departure), level) for level in (0, 1, 2, 5, np.inf)]
    assert areas[0] == 0.0
    assert areas[-1] == pytest.approx(sum(departure - arrival))
    assert np.all(np.diff(areas) >= -1e-9)


def test_work_is_what_load_dependent_servers_did():
    rng, rates = np.random.default_rng(8), np.array([1.0, 1.3, 2.2])
    arrival, demand = np.cumsum(rng.exponential(1.0, 300)), rng.exponential(1.0, 300)
    served = serve("ps", arrival, demand, 3, rates=rates)
    assert work(curve(arrival, served.departure_s), rates) == pytest.approx(demand.sum(), rel=1e-9)


def test_work_of_unequal_servers_lies_between_the_slowest_and_the_fastest():
    rng, speeds = np.random.default_rng(9), np.array([2.0, 1.0, 0.5])
    arrival, demand = np.cumsum(rng.exponential(1.0, 300)), rng.exponential(1.5, 300)
    seen = curve(arrival, serve("fcfs", arrival, demand, 3, speeds=speeds).departure_s)
    assert work(seen, np.cumsum(speeds[::-1])) < demand.sum() < work(seen, np.cumsum(speeds))


@pytest.mark.parametrize("servers", [0, -1])
def test_no_server_is_refused_everywhere(servers):
    seen = curve([0.0], [1.0])
    for function in (law, busy_distribution, queue_distribution, lambda *a: intervals(*a, 1.0)):
        with pytest.raises(ValueError, match=f"servers must be at least 1, got {servers}"):
            function(seen, servers)


@pytest.mark.parametrize("interval_s", [0.0, -1.0, np.nan, np.inf])
def test_an_interval_needs_a_length(interval_s):
    with pytest.raises(ValueError, match="interval_s must be above 0 and finite"):
        intervals(curve([0.0], [1.0]), 1, interval_s)


def test_intervals_without_end_are_refused_before_memory_is_gone():
    with pytest.raises(ValueError, match="intervals of 1e-09 s"):
        intervals(curve([0.0], [1000.0]), 1, 1e-9)


@pytest.mark.parametrize("level", [-1.0, np.nan])
def test_a_line_lies_at_zero_or_above(level):
    with pytest.raises(ValueError, match="level must be at least 0"):
        area(curve([0.0], [1.0]), level)


@pytest.mark.parametrize("rates", [[], [-1.0], [np.nan], [[1.0]], 2.0])
def test_rates_must_be_rates(rates):
    with pytest.raises(ValueError, match="rates must be one finite rate >= 0"):
        work(curve([0.0], [1.0]), rates)


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
