"""The compiled fixed point agrees with root finding and with the definitions of its own words."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.fleet.inventory import miss_curve
from sim.fleet import interference, slots
from sim.fleet.layout import Contention, Residents
from tests.helpers.one_machine import solved
from tests.helpers.reference_day import Instance, fixed_point, latency_factor

LLC_BYTES, IDLE_S = 80 * 2.0**20, 90e-9
SWITCHES = [{"share_llc": llc, "share_bandwidth": bandwidth} for llc in (True, False) for bandwidth in (True, False)]


def residents(seed, count, intensity=1.0, prefetched=0.0):
    """Random instances at work; `intensity` scales their memory accesses."""
    rng = np.random.default_rng(seed)
    return [
        Instance(
            core_cpi=1.0,
            accesses=rng.lognormal(math.log(0.01 * intensity), 0.8),
            working_set=rng.lognormal(math.log(3e6), 0.9),
            streaming=rng.uniform(0.0, 1.0),
            overlap=rng.uniform(1.0, 4.0),
            prefetched=prefetched * rng.uniform(0.0, 1.0),
            use=rng.uniform(0.0, 4.0),
            share=LLC_BYTES / count,
            frequency=rng.choice([1.2e9, 2.5e9, 2.8e9]),
            core_now=rng.lognormal(0.0, 0.5),
            access_now=rng.lognormal(0.0, 0.1),
        )
        for _ in range(count)
    ]


def held(instances, spare=2):
    """The same instances as slots hold them, their slots followed by unused ones."""
    hot = np.full((slots.FIELDS, len(instances) + spare), np.nan)
    traits = [np.array([getattr(one, name) for one in instances]) for name in ("accesses", "working_set", "streaming")]
    curve = miss_curve(*traits)
    rows = {
        slots.FLOOR: curve.floor,
        slots.GAIN1: curve.gain_1,
        slots.SET1: curve.set_1,
        slots.GAIN2: curve.gain_2,
        slots.SET2: curve.set_2,
        slots.AHEAD: [one.prefetched * floor for one, floor in zip(instances, curve.floor, strict=True)],
        slots.STALL_NOW: [1 / one.overlap for one in instances],
        slots.USE: [one.use for one in instances],
        slots.SHARE: [one.share for one in instances],
        slots.FREQUENCY: [one.frequency for one in instances],
        slots.CORE_NOW: [one.core_now for one in instances],
        slots.ACCESS_NOW: [one.access_now for one in instances],
    }
    for row, values in rows.items():
        hot[row, : len(instances)] = values
    return hot


def contention(bandwidth, *, share_llc=True, share_bandwidth=True, tolerance=1e-10, iterations=20_000):
    return Contention(
        IDLE_S, bandwidth, 1.0, LLC_BYTES, 1, 1, 1.0, 1.0, share_llc, share_bandwidth, tolerance, iterations
    )


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 16),
    intensity=st.sampled_from([0.1, 1.0, 10.0]),
    bandwidth=st.floats(2e10, 4e11),
)
def test_the_fixed_point_is_that_of_nested_root_finding(switches, seed, count, intensity, bandwidth):
    instances = residents(seed, count, intensity, prefetched=0.5)
    latency_s, misses, shares = fixed_point(instances, IDLE_S, bandwidth, LLC_BYTES, **switches)
    hot = held(instances)
    found = solved(hot, count, contention(bandwidth, **switches), IDLE_S)
    cpi = [one.cpi_at(share, latency_s) for one, share in zip(instances, shares, strict=True)]
    np.testing.assert_allclose(hot[slots.CPI, :count], cpi, rtol=1e-6)
    np.testing.assert_allclose(found[:2], [latency_s, misses], rtol=1e-6)
    assert found[2] <= 1e-10


@given(seed=st.integers(0, 2**32), count=st.integers(1, 12), iterations=st.integers(1, 9))
@settings(deadline=None)
def test_the_residual_is_what_one_more_look_would_change(seed, count, iterations):
    instances, bandwidth = residents(seed, count, 4.0), 6e10
    hot = held(instances)
    latency_s = IDLE_S
    if iterations > 1:
        limits = contention(bandwidth, tolerance=0.0, iterations=iterations - 1)
        latency_s, _, _ = solved(hot, count, limits, IDLE_S)
    shares = hot[slots.SHARE, :count].copy()
    _, _, residual = solved(hot, count, contention(bandwidth, iterations=1), latency_s)
    rates = np.array([one.miss_rate(share, latency_s) for one, share in zip(instances, shares, strict=True)])
    wanted_s = IDLE_S * latency_factor(rates.sum() * 64 * 1.3 / bandwidth)
    moved = np.abs(rates / rates.sum() - shares / LLC_BYTES).max()
    assert residual == pytest.approx(max(abs(wanted_s / latency_s - 1), moved), rel=1e-9)
    cpi = [one.cpi_at(share, latency_s) for one, share in zip(instances, shares, strict=True)]
    np.testing.assert_allclose(hot[slots.CPI, :count], cpi, rtol=1e-12)


def test_a_solution_that_was_not_reached_says_so():
    hot = held(residents(1, 8, 10.0))
    assert solved(hot, 8, contention(3e10, iterations=2), IDLE_S)[2] > 1e-3


@given(seed=st.integers(0, 2**32), intensity=st.sampled_from([1.0, 3.0, 10.0]))
@example(seed=1243, intensity=1.0)
@example(seed=1131, intensity=1.0)
@settings(deadline=None)
def test_a_machine_short_of_bandwidth_is_solved_and_neither_swings_nor_stops_short(seed, intensity):
    hot = held(residents(seed, 14, intensity))
    assert solved(hot, 14, contention(2e10, tolerance=1e-6, iterations=300), IDLE_S)[2] <= 1e-6


def test_who_keeps_no_thread_busy_holds_no_cache_and_slows_nobody_down():
    instances = residents(2, 5)
    instances[3].use = 0.0
    without = [one for one in instances if one.use > 0]
    hot, alone = held(instances), held(without)
    assert solved(hot, 5, contention(1e11), IDLE_S)[1] == pytest.approx(
        solved(alone, 4, contention(1e11), IDLE_S)[1], rel=1e-9
    )
    assert hot[slots.SHARE, 3] == pytest.approx(0.0, abs=1.0)


def test_a_machine_with_nobody_has_idle_latency():
    latency_s, misses, _ = solved(np.zeros((slots.FIELDS, 3)), 0, contention(1e11), IDLE_S)
    assert (latency_s, misses) == (IDLE_S, 0.0)


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 2.0), min_size=2))
def test_latency_never_falls_with_traffic(utilisations):
    factors = [interference.latency_factor(u) for u in sorted(utilisations)]
    assert factors == sorted(factors)
    assert factors[0] >= 1.0


def test_best_effort_residents_together_hold_no_more_than_their_ways_and_others_gain():
    count, critical = 12, np.arange(12) % 2 == 0
    found = []
    for ways in (1.0, 0.25, 0.9):
        hot, mark = held(residents(3, count, 3.0)), np.zeros((slots.MARKS, count + 2), np.int64)
        hot[slots.CRITICAL, :count], hot[slots.PART], mark[slots.SPAN] = critical, 1.0, 1
        limits = contention(6e10)._replace(best_effort_ways=ways)
        scratch = np.zeros((interference.SCRATCH, count + 2))
        interference.solve(Residents(hot, mark, count), limits, np.array([IDLE_S]), scratch)
        found.append((hot[slots.SHARE, :count].copy(), hot[slots.CPI, :count].copy()))
    (free, free_cpi), (confined, cpi), (loose, _) = found
    assert free[~critical].sum() > 0.3 * LLC_BYTES
    assert confined[~critical].sum() == pytest.approx(0.25 * LLC_BYTES, rel=1e-8)
    assert confined.sum() == pytest.approx(LLC_BYTES, rel=1e-8)
    assert (confined[critical] > free[critical]).all()
    assert (cpi[~critical] > free_cpi[~critical]).all()
    np.testing.assert_allclose(loose, free, rtol=1e-6)
