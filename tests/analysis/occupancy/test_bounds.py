"""Bounds on queueing with other servers, and the busy periods that they are summed over."""

import gc
import inspect

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba.core import types

from analysis.occupancy import bounds as bounds_module
from analysis.occupancy.bounds import Periods, busiest, busy_periods, capacity, expansion, faster, reduction, sums
from analysis.occupancy.catalogue import divides_queueing
from analysis.occupancy.curve import curve
from analysis.occupancy.law import area, law
from models.queues.serve import serve

STAYS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9)), min_size=1, max_size=12)
BUDGET_STAYS = st.lists(st.tuples(st.integers(0, 16), st.integers(1, 8)), min_size=1, max_size=14)


def observed(policy, arrival, demand, servers, **more):
    """The curve of jobs under a policy, and their aggregate queueing time."""
    seen = curve(arrival, serve(policy, arrival, demand, servers, **more).departure_s)
    return seen, law(seen, servers).queueing_time_s


def load(seed, jobs=400, gap_s=0.9):
    """Arrivals whose rate varies, and demands U[1, 2] s."""
    rng = np.random.default_rng(seed)
    rate = 1.0 + np.sin(np.arange(jobs) / 25.0)
    return np.cumsum(rng.exponential(gap_s, jobs) / (0.3 + rate)), rng.uniform(1.0, 2.0, jobs)


@given(STAYS, st.integers(1, 3), st.integers(0, 3))
def test_b0_is_the_area_between_the_lines(stays, servers, more):
    seen = curve([a for a, _ in stays], [a + x for a, x in stays])
    between = area(seen, servers + more) - area(seen, servers)
    assert expansion(seen, servers, servers + more).b0 == pytest.approx(between, abs=1e-9)
    assert reduction(seen, servers + more, servers).b0 == pytest.approx(between, abs=1e-9)


@given(STAYS, st.integers(1, 3), st.integers(1, 3))
def test_each_bound_is_at_least_the_one_before_and_at_most_all_queueing(stays, servers, more):
    bounds = expansion(curve([a for a, _ in stays], [a + x for a, x in stays]), servers, servers + more, per_job=True)
    chain = [0.0, bounds.b0, bounds.b1, bounds.b2, bounds.b3, bounds.queueing_s]
    assert np.all(np.diff(chain) >= -1e-9)
    assert bounds.queueing_high_s == pytest.approx(bounds.queueing_s - bounds.b3)


@given(STAYS, st.integers(1, 3), st.integers(1, 3))
def test_the_paper_is_never_off_by_more_than_its_guarantee(stays, servers, more):
    bounds = expansion(curve([a for a, _ in stays], [a + x for a, x in stays]), servers, servers + more)
    assert bounds.queueing_s <= bounds.tightness * bounds.b0 + 1e-9


@pytest.mark.parametrize("to", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("policy", ["fcfs", "ps", "srpt"])
def test_queueing_with_other_servers_lies_in_the_interval(policy, to):
    arrival, demand = load(1)
    seen, _ = observed(policy, arrival, demand, 3)
    _, other = observed(policy, arrival, demand, to)
    row = capacity(seen, 3, [to], (arrival, serve(policy, arrival, demand, 3).departure_s)).iloc[0]
    assert row["queueing_s_low"] - 1e-6 <= other <= row["queueing_s_high"] + 1e-6


def queueing_until(end_s, arrival, departure, servers):
    """∫ (N − k)⁺ up to a time, counted moment by moment."""
    edges = np.unique(np.concatenate((arrival, departure, [end_s])))
    edges = edges[edges <= end_s]
    present = [np.sum((arrival <= t) & (departure > t)) for t in edges[:-1]]
    return float(np.sum(np.diff(edges) * np.maximum(np.array(present) - servers, 0)))


def either_way(seen, servers, to, pairs=()):
    """Bounds for other servers, whether more or fewer."""
    return expansion(seen, servers, to, per_job=True) if to >= servers else reduction(seen, servers, to, *pairs)


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
@pytest.mark.parametrize(("servers", "to"), [(1, 2), (1, 3), (2, 3), (2, 1), (3, 1), (3, 2)])
def test_jobs_there_from_the_start_count_on_both_sides(policy, servers, to):
    """Both systems start with the same jobs, none of them begun."""
    rng = np.random.default_rng(servers)
    for _ in range(80):
        initial = int(rng.integers(1, 4))
        arrival = np.concatenate((np.zeros(initial), np.sort(rng.uniform(0.0, 6.0, 4))))
        demand = rng.uniform(0.5, 4.0, len(arrival))
        before, after = (serve(policy, arrival, demand, k).departure_s for k in (servers, to))
        bounds = either_way(curve(arrival[initial:], before, start_s=0.0, initial=initial), servers, to)
        assert bounds.queueing_low_s - 1e-9 <= np.sum(after - arrival - demand) <= bounds.queueing_high_s + 1e-9


@pytest.mark.parametrize("policy", ["fcfs", "ps"])
@pytest.mark.parametrize(("servers", "to"), [(1, 2), (1, 3), (2, 3), (2, 1), (3, 1), (3, 2)])
def test_a_log_that_ends_early_is_bounded_up_to_its_end_and_one_that_is_complete_until_all_have_left(
    policy, servers, to
):
    rng = np.random.default_rng(servers)
    for _ in range(80):
        arrival = np.sort(rng.uniform(0.0, 6.0, 6))
        demand, end_s = rng.uniform(0.5, 4.0, 6), rng.uniform(arrival[-1], 9.0)
        before, after = (serve(policy, arrival, demand, k).departure_s for k in (servers, to))
        seen = np.where(before <= end_s, before, np.nan)
        bounds = either_way(curve(arrival, seen, end_s=end_s), servers, to, (arrival, seen))
        queueing = queueing_until(end_s if np.isnan(seen).any() else 99.0, arrival, after, to)
        assert bounds.queueing_low_s - 1e-9 <= queueing <= bounds.queueing_high_s + 1e-9


def test_without_more_known_of_the_policy_the_upper_side_is_b2():
    seen, _ = observed("ps", *load(5), 1)
    bounds = expansion(seen, 1, 2)
    assert bounds.b2 > 1.02 * bounds.b1
    assert bounds.queueing_high_s == bounds.queueing_s - bounds.b2
    known = expansion(seen, 1, 2, per_job=True)
    assert known.b3 > known.b2
    assert known.queueing_high_s == known.queueing_s - known.b3


def test_a_sharper_bound_halves_what_the_paper_leaves_open():
    arrival, demand = load(2)
    seen, queueing = observed("ps", arrival, demand, 1)
    _, after = observed("ps", arrival, demand, 2)
    bounds = expansion(seen, 1, 2, per_job=True)
    paper, best = ((queueing - after) / b for b in (bounds.b0, bounds.b3))
    assert 1.0 <= best < 1.0 + (paper - 1.0) / 2


def test_as_many_servers_change_nothing():
    seen, queueing = observed("ps", *load(3), 2)
    for bounds in (expansion(seen, 2, 2), reduction(seen, 2, 2), faster(seen, 2, 1.0)):
        assert (bounds.queueing_low_s, bounds.queueing_high_s) == pytest.approx((queueing, queueing))
        assert bounds.change_s_paper_bound == 0.0


def test_more_servers_than_jobs_take_all_queueing_away():
    seen, queueing = observed("ps", *load(3), 2)
    bounds = expansion(seen, 2, int(seen.jobs.max()))
    assert (bounds.queueing_high_s, bounds.tightness) == (pytest.approx(0.0, abs=1e-9), 1.0)
    assert bounds.b0 == pytest.approx(queueing)


def test_a_last_busy_period_without_end_counts_by_b0():
    arrival, demand = load(4)
    seen, _ = observed("ps", arrival, demand, 1)
    cut = curve(arrival, serve("ps", arrival, demand, 1).departure_s, end_s=float(arrival[60]))
    assert cut.final > 0
    assert cut.jobs.min() > 0
    open_end, complete = expansion(cut, 1, 2), expansion(seen, 1, 2)
    assert open_end.note == "the last busy period is open: B0"
    assert complete.note == ""
    assert 0.0 < open_end.b0 == open_end.b1 == open_end.b2
    assert complete.b0 < complete.b1


def test_a_busy_period_too_large_for_b2_falls_back_to_b1_and_says_so(monkeypatch):
    seen, _ = observed("ps", *load(5), 1)
    monkeypatch.setattr(bounds_module, "MOST_STATES", 10)
    bounds = expansion(seen, 1, 2)
    assert bounds.b1 == pytest.approx(bounds.b2)
    assert bounds.note.endswith("busy periods too large for B2: B1")


@pytest.mark.parametrize("policy", ["lcfs", "sjf"])
def test_scheduling_without_preemption_may_break_the_paper_s_bound(policy):
    """Not completion-monotonic: the newcomer on the second server keeps the old ones waiting for longer."""
    arrival, demand = [0.0, 0.07, 1.14, 1.21, 1.28], [1.0, 1.0, 3.0, 3.0, 1.0]
    seen, queueing = observed(policy, arrival, demand, 1)
    _, after = observed(policy, arrival, demand, 2)
    assert queueing - after < expansion(seen, 1, 2).b0 - 0.3


def test_round_robin_with_a_quantum_may_break_the_paper_s_bound():
    arrival, demand = [0.0, 4.0, 9.0, 11.0, 15.0, 16.0], [3.0, 9.0, 9.0, 7.0, 5.0, 1.0]
    seen, queueing = observed("rr", arrival, demand, 2, quantum_s=2.0)
    _, after = observed("rr", arrival, demand, 3, quantum_s=2.0)
    assert (queueing - after, expansion(seen, 2, 3).b0) == (8.0, 9.0)


@pytest.mark.parametrize("speed", [1.1, 1.5, 3.0])
@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("policy", ["fcfs", "ps", "srpt", "fb", "lcfs_pr"])
def test_faster_servers_keep_what_the_bounds_promise(policy, servers, speed):
    arrival, demand = load(6)
    seen, _ = observed(policy, arrival, demand, servers)
    _, after = observed(policy, arrival, demand / speed, servers)
    divides = divides_queueing(policy, servers)
    bounds = faster(seen, servers, speed, per_job=True, divides=divides)
    assert bounds.queueing_low_s <= after <= bounds.queueing_high_s + 1e-9
    assert bounds.queueing_high_s <= (bounds.queueing_s / speed if divides else bounds.queueing_s) + 1e-9


def test_who_waits_at_the_end_of_a_log_may_wait_as_long_on_faster_servers():
    arrival, end = [0.0, 0.0, 1.0], 10.0
    seen = curve(arrival, [3.0, np.nan, np.nan], end_s=end)
    bounds = faster(seen, 1, 2.0, divides=True)
    departures = serve("fcfs", np.array(arrival), np.array([3.0, 100.0, 1.0]) / 2, 1).departure_s
    after = law(curve(arrival, np.where(departures < end, departures, np.nan), end_s=end), 1).queueing_time_s
    assert after <= bounds.queueing_high_s + 1e-9
    assert bounds.queueing_s / 2 < after


def test_preemptive_last_come_first_served_does_not_divide_queueing_by_the_speed():
    arrival, demand = [0.0, 2.0, 2.0, 2.0, 3.0], np.array([4.0, 1.0, 5.0, 2.0, 2.0])
    seen, queueing = observed("lcfs_pr", arrival, demand, 2)
    _, after = observed("lcfs_pr", arrival, demand / 1.1, 2)
    assert (queueing, after) == (8.0, pytest.approx(7.364, abs=1e-3))
    assert queueing / 1.1 < after <= faster(seen, 2, 1.1, per_job=True).queueing_high_s + 1e-9


def test_pairs_lift_the_lower_side_of_a_reduction_to_one_server():
    arrival, demand = load(7, gap_s=1.2)
    served = serve("ps", arrival, demand, 4).departure_s
    _, after = observed("ps", arrival, demand, 1)
    without, bounds = (reduction(curve(arrival, served), 4, 1, *pairs) for pairs in ((), (arrival, served)))
    assert without.queueing_low_s < bounds.queueing_low_s <= after <= bounds.queueing_high_s


def test_unfinished_pairs_are_not_used_and_the_note_says_so():
    arrival, departure = [0.0, 0.0, 1.0], [2.0, 3.0, np.nan]
    bounds = reduction(curve(arrival, departure, end_s=5.0), 2, 1, arrival, departure)
    assert np.isnan(bounds.pairs)
    assert bounds.note == "jobs are present at the start or the end: pairs not used"


def test_the_table_has_a_row_for_each_number_of_servers_with_the_paper_s_sign():
    seen, _ = observed("ps", *load(8), 2)
    rows = capacity(seen, 2, (1, 2, 4))
    assert rows["servers"].tolist() == [1, 2, 4]
    assert np.sign(rows["change_s_paper_bound"]).tolist() == [1, 0, -1]
    assert rows["b3"].isna().all()
    assert capacity(seen, 2, []).columns.tolist() == rows.columns.tolist()


def test_an_empty_curve_has_no_queueing_with_any_servers():
    rows = capacity(curve([], [], 0.0, 10.0), 2, [1, 2, 3])
    assert rows[["queueing_s_low", "queueing_s_high", "change_s_paper_bound"]].to_numpy().tolist() == [[0.0] * 3] * 3
    assert reduction(curve([], [], 0.0, 10.0), 2, 1, [], []).queueing_high_s == 0.0


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda seen: expansion(seen, 2, 1), "an expansion needs 1 <= servers <= to, got 2 and 1"),
        (lambda seen: expansion(seen, 0, 1), "an expansion needs 1 <= servers <= to, got 0 and 1"),
        (lambda seen: reduction(seen, 2, 3), "a reduction needs 1 <= to <= servers, got 3 and 2"),
        (lambda seen: capacity(seen, 2, [0]), "a reduction needs 1 <= to <= servers, got 0 and 2"),
        (lambda seen: faster(seen, 1, 0.5), "speed must be at least 1 and finite, got 0.5"),
        (lambda seen: faster(seen, 1, np.nan), "speed must be at least 1 and finite, got nan"),
        (lambda seen: reduction(seen, 2, 1, [0.0], [1.0]), "1 pairs for a curve of 2 arrivals"),
    ],
)
def test_a_fault_is_named(call, fault):
    with pytest.raises(ValueError, match=fault):
        call(curve([0.0, 0.0], [1.0, 2.0]))


def log(stays):
    arrival = np.array([float(a) for a, _ in stays])
    return arrival, arrival + np.array([float(x) for _, x in stays])


def stretches(arrival, departure):
    """Start and end of every stretch of whole seconds with somebody there."""
    there = [any(a <= t < d for a, d in zip(arrival, departure, strict=True)) for t in range(-1, 40)]
    starts = [t for t in range(40) if there[t + 1] and not there[t]]
    return [(s, next(t for t in range(s, 41) if t == 39 or not there[t + 1])) for s in starts]


@given(BUDGET_STAYS)
def test_busy_periods_are_the_stretches_with_somebody_there(stays):
    seen = curve(*log(stays))
    periods = busy_periods(seen)
    ends = zip(seen.time_s[periods.first], seen.time_s[periods.last], strict=True)
    assert list(ends) == stretches(*log(stays))
    assert periods.closed


@given(BUDGET_STAYS)
def test_sums_over_busy_periods_leave_nothing_out(stays):
    arrival, departure = log(stays)
    seen = curve(arrival, departure)
    jobs_s = sums(busy_periods(seen), np.diff(seen.time_s) * seen.jobs)
    assert jobs_s.sum() == pytest.approx(np.sum(departure - arrival))


@given(BUDGET_STAYS, st.integers(1, 3), st.floats(0.0, 12.0))
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
    assert sums(periods, np.zeros(1)).size == 0


def test_named_tuples_that_compiled_code_takes_have_no_methods():
    """Their classes live to the end of the process, and with methods all that these know: DuckDB told of leaks."""
    busiest(curve([0.0], [2.0]), busy_periods(curve([0.0], [2.0])), 1, np.ones(1))
    taken = {kind.instance_class for kind in gc.get_objects() if isinstance(kind, types.BaseNamedTuple)}
    assert Periods in taken
    own = {
        f"{kind.__module__}.{kind.__name__}.{name}"
        for kind in taken
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and value.__code__.co_filename == inspect.getfile(kind)
    }
    assert own == set()
