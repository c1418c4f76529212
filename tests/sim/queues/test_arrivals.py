"""Arrivals come as the rate says: its integral is exact, its inverse undoes it, and gaps vary as asked."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from models.queues.world import Arrivals, Bursts, LoadPoint
from sim.queues.arrivals import Rate, arrival_times, rate

SAWTOOTH = (LoadPoint(0.0, 0.1), LoadPoint(100.0, 1.0), LoadPoint(100.0, 0.1), LoadPoint(200.0, 1.0))

levels = st.floats(0.0, 5.0)
curves = st.lists(st.tuples(st.floats(0.01, 3.0), levels, levels), min_size=1, max_size=8)


def pieces(drawn):
    lengths, begin, end = np.array(drawn).T
    return Rate(np.concatenate(([0.0], np.cumsum(lengths))), begin, end)


@given(curves, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_the_inverse_of_the_integral_undoes_it(drawn, shares):
    curve = pieces(drawn)
    total = curve.expected()[-1]
    wanted = np.sort(shares) * total
    time_s = curve.times(wanted)
    assert (np.diff(time_s) >= 0).all()
    assert time_s[0] >= 0
    assert time_s[-1] <= curve.time_s[-1]
    for at_s, value in zip(time_s, wanted, strict=True):
        assert integral(curve, at_s) == pytest.approx(value, abs=1e-9 * (1 + total))


def integral(curve, at_s):
    """The integral up to a time, by the area of each trapezium."""
    area = 0.0
    for left, right, low, high in zip(curve.time_s, curve.time_s[1:], curve.begin_per_s, curve.end_per_s, strict=False):
        if at_s > left:
            here = min(at_s, right)
            area += (here - left) * (low + (low + (high - low) * (here - left) / (right - left))) / 2
    return area


def test_the_load_curve_is_level_outside_its_points_straight_between_them_and_jumps_where_two_meet():
    curve = rate(Arrivals(2.0, load=(LoadPoint(10.0, 0.5), *SAWTOOTH[1:])), 300.0, seed=1)
    np.testing.assert_allclose(curve.time_s, [0.0, 10.0, 100.0, 200.0, 300.0])
    np.testing.assert_allclose(curve.begin_per_s, [1.0, 1.0, 0.2, 2.0])
    np.testing.assert_allclose(curve.end_per_s, [1.0, 2.0, 2.0, 2.0])


def test_points_after_the_horizon_still_shape_the_slope_before_it():
    curve = rate(Arrivals(1.0, load=(LoadPoint(0.0, 0.0), LoadPoint(100.0, 1.0))), 50.0, seed=1)
    np.testing.assert_allclose([curve.time_s, [curve.begin_per_s[0], curve.end_per_s[0]]], [[0.0, 50.0], [0.0, 0.5]])


def test_a_load_curve_that_goes_back_in_time_is_a_fault():
    with pytest.raises(ValueError, match=r"^load: point 1 at 5.0 s is earlier than the one before, at 9.0 s$"):
        rate(Arrivals(load=(LoadPoint(9.0, 1.0), LoadPoint(5.0, 1.0))), 60.0, seed=1)


def test_nothing_arrives_where_the_load_is_zero_nor_after_the_horizon():
    load = (LoadPoint(0.0, 1.0), LoadPoint(40.0, 1.0), LoadPoint(40.0, 0.0), LoadPoint(60.0, 0.0), LoadPoint(60.0, 2.0))
    arrival_s = arrival_times(Arrivals(50.0, load=load), 100.0, seed=3)
    assert not ((arrival_s > 40.0) & (arrival_s < 60.0)).any()
    assert arrival_s[-1] < 100.0
    assert arrival_times(Arrivals(50.0, load=(LoadPoint(0.0, 0.0),)), 100.0, seed=3).size == 0


@given(st.integers(0, 5), st.floats(0.0, 3.0), st.booleans())
def test_times_are_in_order_and_the_same_under_the_same_seed(seed, cv, bursty):
    arrivals = Arrivals(3.0, cv, SAWTOOTH, Bursts() if bursty else None)
    one, two = arrival_times(arrivals, 300.0, seed), arrival_times(arrivals, 300.0, seed)
    np.testing.assert_array_equal(one, two)
    assert (np.diff(one) >= 0).all()
    assert ((one >= 0) & (one < 300.0)).all()


def test_a_longer_horizon_changes_no_arrival():
    arrivals = Arrivals(3.0, 1.5, SAWTOOTH)
    short, long = arrival_times(arrivals, 150.0, 7), arrival_times(arrivals, 300.0, 7)
    np.testing.assert_allclose(long[: len(short)], short, rtol=1e-12)
    assert long[len(short)] >= 150.0


@pytest.mark.statistical
@pytest.mark.parametrize("cv", [0.3, 1.0, 2.5])
def test_gaps_have_the_law_that_is_asked(cv):
    """False-alarm rate 0.01% each: Kolmogorov and Smirnov's test of some 20,000 gaps."""
    gaps = np.diff(arrival_times(Arrivals(2.0, cv), 10_000.0, seed=11))
    assert stats.kstest(gaps, stats.gamma(cv**-2, scale=0.5 * cv**2).cdf).pvalue > 1e-4


@pytest.mark.statistical
@pytest.mark.parametrize(("cv", "bursts"), [(0.0, None), (0.5, None), (2.0, None), (1.0, Bursts(6.0, 5.0, 20.0))])
def test_the_mean_number_up_to_any_time_is_the_integrated_load(cv, bursts):
    """False-alarm rate below 0.1% in all: twelve means of 1,000 counts within 4.2 standard errors."""
    arrivals = Arrivals(0.3, cv, SAWTOOTH, bursts)
    times = [arrival_times(arrivals, 200.0, seed) for seed in range(1000)]
    for until_s in (15.0, 100.0, 180.0):
        counts = np.array([np.searchsorted(each, until_s) for each in times])
        expected = 0.3 * quad(lambda x: 0.1 + 0.9 * (x % 100.0) / 100.0, 0.0, until_s - 1e-9, points=[100.0])[0]
        assert abs(counts.mean() - expected) <= 4.2 * counts.std(ddof=1) / np.sqrt(1000)


@pytest.mark.statistical
def test_bursts_last_as_long_and_are_as_intense_as_asked_and_leave_the_mean_rate():
    """False-alarm rate below 0.1%: shares and lengths of some 3,300 cycles within 4 standard errors."""
    bursts = Bursts(factor=5.0, burst_s=10.0, calm_s=20.0)
    curve = rate(Arrivals(1.0, bursts=bursts), 100_000.0, seed=2)
    np.testing.assert_array_equal(curve.begin_per_s, curve.end_per_s)
    high = curve.begin_per_s == curve.begin_per_s.max()
    lengths = np.diff(curve.time_s)
    assert curve.begin_per_s[high][0] == pytest.approx(5.0 * curve.begin_per_s[~high][0])
    for length_s, of in ((10.0, lengths[high]), (20.0, lengths[~high])):
        assert abs(of.mean() - length_s) <= 4 * length_s / np.sqrt(len(of))
    assert (curve.begin_per_s * lengths).sum() / 100_000 == pytest.approx(1.0, abs=0.06)


@pytest.mark.statistical
def test_bursts_begin_in_equilibrium():
    """False-alarm rate 0.1%: binomial bounds of 900 seeds, one in three of which begins in a burst."""
    bursts = Bursts(factor=5.0, burst_s=10.0, calm_s=20.0)
    first = [rate(Arrivals(1.0, bursts=bursts), 1.0, seed).begin_per_s[0] for seed in range(900)]
    low, high = stats.binom.ppf([0.0005, 0.9995], 900, 1 / 3)
    assert low <= sum(each > 1.0 for each in first) <= high


def test_bursts_do_not_shift_the_draws_of_the_gaps():
    calm = Arrivals(1.0)
    level = replace(calm, bursts=Bursts(factor=1.0))
    np.testing.assert_allclose(arrival_times(calm, 500.0, 1), arrival_times(level, 500.0, 1), rtol=1e-12)
