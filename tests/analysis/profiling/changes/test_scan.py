"""The scan equals its readable twin, keeps its false alarms, and sees what the test that knows the time sees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.profiling.changes import scan as module
from analysis.profiling.changes.scan import Geometry, Noise, lengths, scan, screened, threshold
from models.randomness import stream
from tests.helpers import readable_scan


def of_one_machine(exposure, period, day=None, reach=0):
    return Geometry.of(np.atleast_2d(exposure), day or period, period, reach)


@given(
    seed=st.integers(0, 10**6),
    period=st.sampled_from([1, 3, 4]),
    bins=st.integers(5, 26),
    mean=st.floats(0.2, 30),
    reach=st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_every_window_equals_that_of_the_readable_twin(seed, period, bins, mean, reach):
    rng = stream(seed, "readable scan")
    expected = mean * rng.gamma(2.0, 0.5, (2, bins)) * (rng.random((2, bins)) < 0.8)
    counts = rng.poisson(expected).astype(float)
    reach *= period
    geometry = of_one_machine(expected.sum(axis=0) + 1.0, period, reach=reach)
    for windows in scan(counts, expected, Noise(np.zeros(2)), geometry, day=period, period=period, reach=reach):
        for row in range(2):
            for end in range(1, bins + 1):
                if end - windows.length < 0:
                    continue
                twin = readable_scan.window(counts[row], expected[row], end, windows.length, period, reach=reach)
                seen = (windows.root[row, end - 1], windows.log_factor[row, end - 1])
                assert seen == pytest.approx(twin or (0.0, 0.0), abs=1e-6)


@given(
    seed=st.integers(0, 10**6),
    bound=st.floats(0.5, 4.0),
    drift=st.sampled_from([(0.0, 0.0), (0.01, 0.0), (0.0, 0.01)]),
    reach=st.sampled_from([0, 4, 8]),
)
@settings(max_examples=30, deadline=None)
def test_roots_beyond_a_bound_are_found_without_the_others(seed, bound, drift, reach):
    rng = stream(seed, "beyond")
    expected = rng.gamma(0.5, 4.0, (6, 20)) * (rng.random((6, 20)) < 0.9)
    counts = rng.poisson(expected * rng.choice([0.0, 0.5, 1.0, 3.0], (6, 20))).astype(float)
    geometry, noise = (
        of_one_machine(expected.sum(axis=0) + 1.0, 4, reach=reach),
        Noise(np.full(6, 0.1), 0.2, np.full(6, drift[0]), walk=np.full(6, drift[1])),
    )
    near = screened(counts, expected, noise, geometry, bound, day=4, period=4, reach=reach)
    for windows in scan(counts, expected, noise, geometry, day=4, period=4, reach=reach):
        beyond, roots = windows.beyond(bound), windows.root
        known = (np.abs(roots) > bound).any(axis=1)
        np.testing.assert_array_equal(beyond[known], roots[known])
        assert set(np.abs(beyond[~known]).ravel() > bound) <= {False}
        assert near[beyond.any(axis=1)].all()


@given(
    seed=st.integers(0, 10**6),
    machines=st.integers(1, 4),
    reach=st.sampled_from([0, 4, 8]),
    edges=st.sampled_from([1, 30, 10**5]),
)
@settings(max_examples=15, deadline=None)
def test_machines_enter_windows_as_in_the_readable_twin(seed, machines, reach, edges):
    """One machine at a time, two, or all."""
    period = day = 4
    exposure = stream(seed, "readable machines").gamma(1.0, 1.0, (machines, 15))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_MACHINE_EDGES", edges)
        geometry = Geometry.of(exposure, day, period, reach)
    for at, length in enumerate(geometry.lengths):
        for end in range(length + period, 16):
            twin = readable_scan.machine_parts(exposure.tolist(), end, length, day, period, reach=reach)
            got = geometry.window[at, end - 1], geometry.before[at, end - 1], geometry.lasting[at, end - 1]
            assert got == pytest.approx(twin)


def test_healthy_series_raise_no_alarm():
    """The bound allows one false alarm in a hundred such tests; hours differ by a factor of four, counts are small."""
    rng = stream(0, "healthy series")
    hours = 1.0 + 0.6 * np.sin(np.arange(24 * 8) * 2 * np.pi / 24)
    expected = rng.pareto(1.0, (400, 1)) * np.ones(24 * 8)
    counts = rng.poisson(expected * hours).astype(float)
    geometry = of_one_machine(hours, 24)
    bound = threshold(400, len(geometry.lengths) * 24 * 8, 0.01)
    windows = scan(counts, expected, Noise(np.zeros(400)), geometry, day=24, period=24)
    assert max(np.abs(each.root).max() for each in windows) < bound


def test_roots_have_unit_variance_when_machines_differ_from_day_to_day_and_for_good():
    """Of 300 series the variance of roots is 1 within ±0.25 at each length: three standard errors of a variance."""
    rng = stream(1, "machines differ")
    machines, days, series = 30, 6, 300
    exposure = np.ones((machines, 24 * days))
    exposure[:10, 24 * 5 :] = 0.0
    lasting = rng.lognormal(0.0, 0.3, (series, machines, 1))
    daily = np.repeat(rng.lognormal(0.0, 0.2, (series, machines, days)), 24, axis=2)
    counts = rng.poisson(5.0 * exposure * lasting * daily).sum(axis=1).astype(float)
    expected = np.tile(exposure.sum(axis=0), (series, 1))
    variance = np.exp(0.3**2 + 0.2**2) - 1.0
    noise = Noise(np.full(series, variance * 5.0 * 24 * np.exp(0.065)), np.expm1(0.3**2) / variance)
    for windows in scan(counts, expected, noise, Geometry.of(exposure, 24, 24), day=24, period=24):
        assert np.var(windows.root[:, -1]) == pytest.approx(1.0, abs=0.25), windows.length


def test_a_step_is_seen_as_the_test_that_knows_its_time_sees_it():
    """Over 200 series the mean root is within 5% of the root that theory gives the test that knows all."""
    rng = stream(2, "steps")
    expected = np.full((200, 24 * 14), 500.0)
    after = np.arange(24 * 14) >= 24 * 13
    counts = rng.poisson(expected * np.where(after, 1.05, 1.0)).astype(float)
    geometry = of_one_machine(expected[0], 24)
    (day,) = (
        windows
        for windows in scan(counts, expected, Noise(np.zeros(200)), geometry, day=24, period=24)
        if windows.length == 24
    )
    assert day.root[:, -1].mean() == pytest.approx(0.05 * np.sqrt(500.0 * 24 * 13 / 14), rel=0.05)
    assert np.exp(day.log_factor[:, -1].mean()) == pytest.approx(1.05, abs=0.003)


def test_windows_leave_a_period_before_them():
    assert lengths(48, 24)[-1] == 24
    assert lengths(24 * 5, 24)[-2:] == (72, 96)


@pytest.mark.parametrize(("days", "before"), [(1, 1), (1, 9), (4, 10), (7, 7)])
def test_the_mean_of_days_after_others_varies_by_a_walk_as_the_sum_over_its_steps(days, before):
    level = np.tri(before + days)  # the walk's level on each day, by steps
    contrast = level[before:].mean(axis=0) - level[:before].mean(axis=0)
    noise = Noise(np.zeros(1), walk=np.array([2.0]))
    assert noise.of_days(days, np.array([before])) == pytest.approx(2.0 * float(contrast @ contrast))
