"""Requests over time: volume, mixes that wander, and Poisson arrivals."""

from dataclasses import replace

import numpy as np
import pytest

from models.services.world import ServiceLoad, ServiceWorld
from sim.services import mixes

ZIPF = np.arange(1, 23) ** -0.9 / (np.arange(1, 23) ** -0.9).sum()
STILL = ServiceLoad(swing=0.0, mix_log_sd=0.0, trend_log_sd=0.0)


def test_the_mean_volume_is_what_was_asked_whatever_the_waves_and_the_mix():
    for seed in range(5):
        world = ServiceWorld(seed=seed, load=ServiceLoad(requests_per_s=2.0, volume=3.0, period_s=7000.0))
        assert mixes.draw(world, ZIPF).expected.sum() == pytest.approx(2.0 * 3.0 * world.horizon_s, rel=1e-12)


def test_without_wandering_and_trend_every_interval_has_the_long_run_mix():
    expected = mixes.draw(ServiceWorld(load=replace(STILL, swing=0.5)), ZIPF).expected
    np.testing.assert_allclose(expected / expected.sum(axis=1, keepdims=True), np.tile(ZIPF, (1200, 1)), rtol=1e-12)


def test_the_volume_swings_by_the_asked_amplitude_in_waves_of_the_asked_length():
    volume = mixes.draw(ServiceWorld(load=replace(STILL, swing=0.4, period_s=9000.0)), ZIPF).expected.sum(axis=1)
    assert volume.max() / volume.mean() == pytest.approx(1.4, abs=1e-3)
    assert volume.min() / volume.mean() == pytest.approx(0.6, abs=1e-3)
    np.testing.assert_allclose(volume[:300], volume[300:600], rtol=1e-9)


@pytest.mark.statistical
def test_log_popularity_wanders_with_the_asked_spread_and_memory():
    """False alarms: below 1e-4, as 200 types over 100 correlation times leave standard errors of 1% and 0.5%."""
    load = replace(STILL, mix_log_sd=0.3, mix_time_s=360.0)
    even = np.full(200, 1 / 200)
    log = np.log(mixes.draw(ServiceWorld(load=load), even).expected)
    log -= log.mean(axis=1, keepdims=True)
    assert log.std() == pytest.approx(0.3, rel=0.05)
    lag = 12  # intervals: one correlation time
    assert np.mean(log[lag:] * log[:-lag]) / log.var() == pytest.approx(np.exp(-1), abs=0.05)


def test_the_trend_is_a_straight_line_in_log_popularity():
    log = np.log(mixes.draw(ServiceWorld(load=replace(STILL, trend_log_sd=0.5)), ZIPF).expected)
    ratio = log[:, 1] - log[:, 0]
    np.testing.assert_allclose(np.diff(ratio), np.diff(ratio)[0], atol=1e-9)
    assert abs(ratio[-1] - ratio[0]) > 0.01


@pytest.mark.statistical
def test_the_two_most_popular_types_change_places_over_hours():
    """Ratios in the paper's figure 2 span 0.13 to 12.5; false alarms below 1e-3 over 20 seeds."""
    spans = []
    for seed in range(20):
        expected = mixes.draw(ServiceWorld(seed=seed), ZIPF).expected
        ratio = expected[:, 0] / expected[:, 1]
        spans.append((ratio.min(), ratio.max()))
    low, high = np.median(spans, axis=0)
    assert low < 0.6
    assert high > 5.0


@pytest.mark.statistical
def test_arrivals_in_an_interval_are_poisson_and_uniform():
    """False alarms: 1e-4 for each of three tests of a standard normal statistic at 3.9."""
    world = ServiceWorld(seed=5, horizon_s=30_000.0)
    came = mixes.Mixes(mixes.starts(world), np.tile([20.0, 5.0], (1000, 1)))
    arrival_s, kind = mixes.arrive(world, came)
    counts = np.stack([np.bincount((arrival_s[kind == j] // 30).astype(int), minlength=1000) for j in (0, 1)], axis=1)
    dispersion = ((counts - came.expected) ** 2 / came.expected).sum()
    assert abs(dispersion - 2000) / np.sqrt(2 * 2000) < 3.9
    assert abs(counts.sum() - 25_000) / np.sqrt(25_000) < 3.9
    assert abs((arrival_s % 30 / 30).mean() - 0.5) * np.sqrt(12 * arrival_s.size) < 3.9


def test_arrivals_are_in_order_inside_the_horizon_and_the_same_every_time():
    world = ServiceWorld(horizon_s=900.0)
    came = mixes.draw(world, ZIPF)
    arrival_s, kind = mixes.arrive(world, came)
    assert (np.diff(arrival_s) >= 0).all()
    assert 0 <= arrival_s[0] <= arrival_s[-1] < 900.0
    np.testing.assert_array_equal(arrival_s, mixes.arrive(world, came)[0])
    np.testing.assert_array_equal(kind, mixes.arrive(world, came)[1])


def test_a_horizon_of_broken_intervals_is_refused():
    with pytest.raises(ValueError, match="horizon_s is 100, must be a multiple of interval_s, 30"):
        mixes.starts(ServiceWorld(horizon_s=100.0))
    with pytest.raises(ValueError, match="horizon_s is 10, must be a multiple"):
        mixes.starts(ServiceWorld(horizon_s=10.0))
