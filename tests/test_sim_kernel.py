"""The compiled physics agrees with root finding, theory and the definitions of its own words."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from models.jobs import miss_curve
from models.platforms import PLATFORMS
from sim import kernel
from sim.layout import GOVERNOR, PLATFORM, Contention, Residents
from tests import reference_day
from tests.reference_day import Instance, fixed_point, latency_factor

LLC_BYTES, IDLE_S = 80 * 2.0**20, 90e-9
SWITCHES = [{"share_llc": llc, "share_bandwidth": bandwidth} for llc in (True, False) for bandwidth in (True, False)]


def residents(seed, count, intensity=1.0):
    """Random instances at work; `intensity` scales their memory accesses."""
    rng = np.random.default_rng(seed)
    return [
        Instance(
            core_cpi=1.0,
            accesses=rng.lognormal(math.log(0.01 * intensity), 0.8),
            working_set=rng.lognormal(math.log(3e6), 0.9),
            streaming=rng.uniform(0.0, 1.0),
            overlap=rng.uniform(1.0, 4.0),
            use=rng.uniform(0.0, 4.0),
            share=LLC_BYTES / count,
            frequency=rng.choice([1.2e9, 2.5e9, 2.8e9]),
            core_now=rng.lognormal(0.0, 0.5),
            access_now=rng.lognormal(0.0, 0.1),
        )
        for _ in range(count)
    ]


def slots(instances, spare=2):
    """The same instances as the kernel holds them, their slots followed by unused ones."""
    hot = np.full((kernel.FIELDS, len(instances) + spare), np.nan)
    traits = [np.array([getattr(one, name) for one in instances]) for name in ("accesses", "working_set", "streaming")]
    curve = miss_curve(*traits)
    rows = {
        kernel.FLOOR: curve.floor,
        kernel.GAIN1: curve.gain_1,
        kernel.SET1: curve.set_1,
        kernel.GAIN2: curve.gain_2,
        kernel.SET2: curve.set_2,
        kernel.STALL: [1 / one.overlap for one in instances],
        kernel.USE: [one.use for one in instances],
        kernel.SHARE: [one.share for one in instances],
        kernel.FREQUENCY: [one.frequency for one in instances],
        kernel.CORE_NOW: [one.core_now for one in instances],
        kernel.ACCESS_NOW: [one.access_now for one in instances],
    }
    for row, values in rows.items():
        hot[row, : len(instances)] = values
    return hot


def contention(bandwidth, *, share_llc=True, share_bandwidth=True, tolerance=1e-10, iterations=20_000):
    return Contention(IDLE_S, bandwidth, LLC_BYTES, share_llc, share_bandwidth, tolerance, iterations)


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 16),
    intensity=st.sampled_from([0.1, 1.0, 10.0]),
    bandwidth=st.floats(2e10, 4e11),
)
def test_the_fixed_point_is_that_of_nested_root_finding(switches, seed, count, intensity, bandwidth):
    instances = residents(seed, count, intensity)
    latency_s, misses, shares = fixed_point(instances, IDLE_S, bandwidth, LLC_BYTES, **switches)
    hot = slots(instances)
    found = kernel.solve(hot, count, contention(bandwidth, **switches), IDLE_S)
    cpi = [one.cpi_at(share, latency_s) for one, share in zip(instances, shares, strict=True)]
    np.testing.assert_allclose(hot[kernel.CPI, :count], cpi, rtol=1e-6)
    np.testing.assert_allclose(found[:2], [latency_s, misses], rtol=1e-6)
    assert found[2] <= 1e-10


@given(seed=st.integers(0, 2**32), count=st.integers(1, 12), iterations=st.integers(1, 9))
@settings(deadline=None)
def test_the_residual_is_what_one_more_look_would_change(seed, count, iterations):
    instances, bandwidth = residents(seed, count, 4.0), 6e10
    hot = slots(instances)
    latency_s = IDLE_S
    if iterations > 1:
        limits = contention(bandwidth, tolerance=0.0, iterations=iterations - 1)
        latency_s, _, _ = kernel.solve(hot, count, limits, IDLE_S)
    shares = hot[kernel.SHARE, :count].copy()
    _, _, residual = kernel.solve(hot, count, contention(bandwidth, iterations=1), latency_s)
    rates = np.array([one.miss_rate(share, latency_s) for one, share in zip(instances, shares, strict=True)])
    wanted_s = IDLE_S * latency_factor(rates.sum() * 64 * 1.3 / bandwidth)
    moved = np.abs(rates / rates.sum() - shares / LLC_BYTES).max()
    assert residual == pytest.approx(max(abs(wanted_s / latency_s - 1), moved), rel=1e-9)
    cpi = [one.cpi_at(share, latency_s) for one, share in zip(instances, shares, strict=True)]
    np.testing.assert_allclose(hot[kernel.CPI, :count], cpi, rtol=1e-12)


def test_a_solution_that_was_not_reached_says_so():
    hot = slots(residents(1, 8, 10.0))
    assert kernel.solve(hot, 8, contention(3e10, iterations=2), IDLE_S)[2] > 1e-3


@given(seed=st.integers(0, 2**32), intensity=st.sampled_from([1.0, 3.0, 10.0]))
@settings(deadline=None)
def test_a_machine_short_of_bandwidth_is_solved_and_does_not_swing(seed, intensity):
    hot = slots(residents(seed, 14, intensity))
    assert kernel.solve(hot, 14, contention(2e10, tolerance=1e-6, iterations=3000), IDLE_S)[2] <= 1e-6


def test_who_keeps_no_thread_busy_holds_no_cache_and_slows_nobody_down():
    instances = residents(2, 5)
    instances[3].use = 0.0
    without = [one for one in instances if one.use > 0]
    hot, alone = slots(instances), slots(without)
    assert kernel.solve(hot, 5, contention(1e11), IDLE_S)[1] == pytest.approx(
        kernel.solve(alone, 4, contention(1e11), IDLE_S)[1], rel=1e-9
    )
    assert hot[kernel.SHARE, 3] == pytest.approx(0.0, abs=1.0)


def test_a_machine_with_nobody_has_idle_latency():
    latency_s, misses, _ = kernel.solve(np.zeros((kernel.FIELDS, 3)), 0, contention(1e11), IDLE_S)
    assert (latency_s, misses) == (IDLE_S, 0.0)


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 2.0), min_size=2))
def test_latency_never_falls_with_traffic_and_is_cut(utilisations):
    factors = [kernel.latency_factor(u) for u in sorted(utilisations)]
    assert factors == sorted(factors)
    assert factors[0] >= 1.0
    assert factors[-1] <= kernel.latency_factor(0.97)


def machine(name="haswell_2698v3"):
    sheet = PLATFORMS[name]
    record = np.zeros(1, PLATFORM)
    record["cores"], record["threads"] = sheet.cores, sheet.vcpus
    record["min_hz"], record["max_hz"] = sheet.min_frequency_hz, sheet.max_frequency_hz
    record["step_hz"], record["base_hz"] = sheet.frequency_step_hz, sheet.base_frequency_hz
    return record[0]


def governed(policy, room, *, use=1.0, activity=(0.5, 0.2)):
    """Govern a computing and a stalling resident; return P-state, capped and both frequencies."""
    hot = np.zeros((kernel.FIELDS, 2))
    hot[kernel.USE], hot[kernel.CORE_NOW], hot[kernel.CPI] = use, 1.0, [1.1, 4.0]
    governor = np.array([(policy, 0.8, 0.5, 3e8)], GOVERNOR)[0]
    here = Residents(hot, np.zeros((kernel.MARKS, 2), np.int64), 2)
    state, capped = kernel._govern(here, machine(), governor, np.array(activity), room)
    return state, capped, *hot[kernel.FREQUENCY]


def dynamic_power(frequency_hz):
    relative = frequency_hz / 2.3e9
    return relative * (0.6 + 0.4 * relative) ** 2


@settings(deadline=None)
@given(room=st.floats(0.0, 3.0), active=st.floats(0.0, 1.2), stalled=st.floats(0.0, 1.2), policy=st.integers(0, 2))
def test_the_chosen_state_is_the_highest_that_fits(room, active, stalled, policy):
    state, capped, computing, stalling = governed(policy, room, use=30.0, activity=(active, stalled))
    top = governed(policy, math.inf, use=30.0)[0]

    def power(state_hz):
        low = max(state_hz - 3e8, 1.2e9) if policy == kernel.STALL_AWARE else state_hz
        return active * dynamic_power(state_hz) + stalled * dynamic_power(low)

    assert computing == state
    assert stalling == pytest.approx(max(state - 3e8, 1.2e9) if policy == kernel.STALL_AWARE else state)
    assert capped == (state < top - 5e7)
    assert power(state) <= room * (1 + 1e-9) or state == pytest.approx(1.2e9)
    assert not capped or power(state + 1e8) > room * (1 - 1e-9)


@settings(deadline=None)
@given(st.tuples(st.floats(-1.0, 3.0), st.floats(-1.0, 3.0)), st.integers(0, 2))
def test_more_room_never_lowers_a_frequency(rooms, policy):
    low, high = (governed(policy, room) for room in sorted(rooms))
    assert (np.array(low[2:]) <= np.array(high[2:])).all()


@settings(deadline=None)
@given(busy=st.floats(0.0, 64.0))
def test_ondemand_takes_the_lowest_state_that_serves_at_its_threshold(busy):
    state = governed(kernel.ONDEMAND, math.inf, use=busy / 2)[0]
    wish = min(2.8e9, 2.8e9 * busy / (64 * 0.8))
    assert state >= wish - 1.0
    assert state == pytest.approx(1.2e9) or state - 1e8 < wish


@settings(deadline=None)
@given(own_key=st.integers(0, 2**64 - 1), counter=st.integers(-1, 10_000))
def test_draws_are_those_of_the_readable_twin(own_key, counter):
    compiled = kernel._noise(np.uint64(own_key), counter), kernel._normal(np.uint64(own_key), abs(counter))
    readable = reference_day.noise(own_key, counter), reference_day.normal(own_key, abs(counter))
    assert compiled == pytest.approx(readable, rel=1e-9, abs=1e-12)


def draws(draw, keys=400, counters=100):
    """An array (keys, counters) of draws."""
    rows = np.random.default_rng(5).integers(2**64, size=keys, dtype=np.uint64)
    return np.array([[draw(own_key, counter) for counter in range(counters)] for own_key in rows])


@pytest.mark.statistical
@pytest.mark.parametrize(("draw", "fourth", "eighth"), [(kernel._noise, 2.7, 37.2), (kernel._normal, 3.0, 105.0)])
def test_draws_have_the_moments_of_their_law(draw, fourth, eighth):
    """Sample mean, variance, skewness and fourth moment within 4.5 standard errors each: 3 in 100,000 runs.

    Four uniforms have the fourth moment 3 − 6/5/4 and (at most) an eighth moment of 37.2; the normal law has 3 and 105.
    """
    sample = draws(draw)
    n = sample.size
    assert abs(sample.mean()) < 4.5 / math.sqrt(n)
    assert abs((sample**2).mean() - 1) < 4.5 * math.sqrt((fourth - 1) / n)
    assert abs((sample**3).mean()) < 4.5 * math.sqrt(15 / n)
    assert abs((sample**4).mean() - fourth) < 4.5 * math.sqrt((eighth - fourth**2) / n)


@pytest.mark.statistical
def test_normal_draws_follow_the_normal_law():
    """Kolmogorov and Smirnov at 1 in 100,000."""
    assert stats.kstest(draws(kernel._normal).ravel(), "norm").pvalue > 1e-5


@pytest.mark.statistical
@pytest.mark.parametrize("draw", [kernel._noise, kernel._normal])
def test_draws_of_neighbouring_counters_and_keys_do_not_correlate(draw):
    """Two correlations within 4.5 standard errors each: 1 in 70,000 runs."""
    sample = draws(draw)
    own = np.array([[draw(np.uint64(k + 7), c) for c in range(40)] for k in range(1000)])
    for left, right in ((sample[:, 1:], sample[:, :-1]), (own[1:], own[:-1])):
        assert abs((left * right).mean()) < 4.5 / math.sqrt(left.size)


@pytest.mark.statistical
def test_the_first_state_of_an_instance_is_independent_of_its_later_noise():
    """Correlations of size and square with later noise, 4.5 standard errors each: 6 in 100,000 runs."""
    keys = np.random.default_rng(9).integers(2**64, size=20_000, dtype=np.uint64)
    first = np.array([kernel._normal(np.uint64(kernel._mix(k)), 0) for k in keys])
    for epoch in (0, 1, 2):
        later = np.array([kernel._noise(k, epoch) for k in keys])
        assert abs((first * later).mean()) < 4.5 / math.sqrt(keys.size)
        assert abs(((first**2 - 1) * later).mean()) < 4.5 * math.sqrt(2 / keys.size)
        assert abs(((first**2 - 1) * (later**2 - 1)).mean()) < 4.5 * math.sqrt(2 * 1.7 / keys.size)
