"""Cost of samples and highest rates: oracles are the published overhead of DCPI and arithmetic by hand."""

import numpy as np
import pytest

from models.platforms import PLATFORMS
from models.profiling.world import Collector, ProfileWorld, Profiling, Watch
from sim.profiling.rates import (
    BENCHMARKS,
    COUNTED,
    WITH_STACKS,
    benchmark_runs,
    maker,
    max_rates,
    rate_table,
    sample_cost_cycles,
    sampled_events,
    samples_per_s,
)

FLEET = ["haswell_2698v3", "broadwell_2698v4", "skylake_6148", "rome_7742"]


def world(**collector):
    return ProfileWorld(profiling=Profiling(collector=Collector(**collector)))


def test_cost_is_of_the_order_of_published_profilers():
    """DCPI: 1 to 3% at 5,200 samples a second on 333 MHz, 640 to 1,920 cycles; kernels cost more to enter."""
    for name in FLEET:
        assert 640 < sample_cost_cycles(PLATFORMS[name], "cycles") < 4000
        assert sample_cost_cycles(PLATFORMS[name], "cpu_time") - sample_cost_cycles(
            PLATFORMS[name], "cycles"
        ) == pytest.approx(20 * 400.0 * PLATFORMS[name].core_cpi_factor)
    assert sample_cost_cycles(PLATFORMS[FLEET[0]], "threads") == 0.0


@pytest.mark.parametrize("limit", [0.002, 0.02])
def test_highest_rates_keep_every_benchmark_below_the_limit(limit):
    rates = max_rates(world(overhead_limit=limit), FLEET)
    assert len(rates) == len(FLEET) * (len(COUNTED) + len(WITH_STACKS))
    for row in rates.itertuples():
        for benchmark in BENCHMARKS:
            cost = sample_cost_cycles(PLATFORMS[row.platform], row.event, benchmark.resident, benchmark.depth)
            assert row.max_samples_per_s * cost / PLATFORMS[row.platform].base_frequency_hz < limit
        assert row.max_samples_per_s * 12000 / PLATFORMS[row.platform].base_frequency_hz > 0.2 * limit


def test_measured_overhead_grows_with_the_rate_but_for_noise():
    runs = benchmark_runs(world(), FLEET)
    one = runs.query("platform == 'skylake_6148' and benchmark == 'search' and event == 'cpu_time'")
    cost = sample_cost_cycles(PLATFORMS["skylake_6148"], "cpu_time", 1.0, 24)
    true = one.samples_per_s * cost / PLATFORMS["skylake_6148"].base_frequency_hz
    assert abs(one.overhead - true).max() < 5 * 0.003 * np.sqrt(2 / 5)


def test_slopes_are_bounded_by_three_standard_errors_above_least_squares():
    """A platform's limit against a regression through the origin written out."""
    runs = benchmark_runs(world(), ["skylake_6148"]).query("event == 'cpu_time'")
    bounds = []
    for _, own in runs.groupby("benchmark"):
        x, y = own.samples_per_s.tolist(), own.overhead.tolist()
        slope = sum(a * b for a, b in zip(x, y, strict=True)) / sum(a * a for a in x)
        left = sum((b - slope * a) ** 2 for a, b in zip(x, y, strict=True)) / (len(x) - 1)
        bounds.append(slope + 3 * (left / sum(a * a for a in x)) ** 0.5)
    limits = max_rates(world(), ["skylake_6148"]).set_index("event").max_samples_per_s
    assert limits["cpu_time"] == pytest.approx(0.8 * world().profiling.collector.overhead_limit / max(bounds))


def test_periods_give_a_busy_machine_the_rate_asked_for():
    table = rate_table(world(samples_per_s=20.0), ["rome_7742"]).set_index("event")
    cycles_per_s = 128 * 2.25e9
    assert cycles_per_s / table.period["cycles"] == pytest.approx(20.0, rel=1e-6)
    assert table.period["cycles"] * 20.0 >= cycles_per_s
    assert table.duty["cycles"] == 7
    assert table.unit.to_dict()["lock_wait"] == "nanoseconds"
    assert (table.period.dtype, table.duty.dtype) == (np.int64, np.int64)


def test_gatekeepers_cut_rates_that_cost_too_much():
    asked = world(samples_per_s=1e6, stacks_per_s=1e6)
    limits = max_rates(asked, FLEET).set_index(["platform", "event"]).max_samples_per_s
    table = rate_table(asked, FLEET)
    for platform in FLEET:
        period = table.query("platform == @platform and event == 'cycles'").period.item()
        sheet = PLATFORMS[platform]
        assert sheet.vcpus * sheet.base_frequency_hz / period <= limits[platform, "cycles"]
        assert samples_per_s(asked, FLEET)["fleet"][platform] == limits[platform, "cycles"] < 1e6


def test_periods_are_prime_and_every_collection_has_every_event():
    asked = world(watches=(Watch("dense"),))
    table = rate_table(asked, FLEET)
    assert len(table) == 2 * len(FLEET) * len(sampled_events(asked))
    for period in table.period.unique().tolist():
        assert period == 1 or all(period % divisor for divisor in range(2, min(period, 2000)))
    assert not table.duplicated(["collection", "platform", "event"]).any()


def test_no_stacks_no_events_of_processes():
    assert sampled_events(world(stacks_per_s=0.0, events=("cycles", "l2_misses"))) == ("cycles", "l2_misses")


def test_makers():
    found = {maker(PLATFORMS[name]) for name in PLATFORMS}
    assert found == {"intel", "amd", "arm"}
    assert {name for name in PLATFORMS if maker(PLATFORMS[name]) == "arm"} == {
        name for name, sheet in PLATFORMS.items() if sheet.isa == "arm64"
    }


def test_a_watch_has_a_rate_of_its_own_within_the_same_limit():
    closely, greedy = Watch("closely", samples_per_s=100.0), Watch("greedy", samples_per_s=1e9)
    asked = world(watches=(closely, Watch("as usual"), greedy))
    rates = samples_per_s(asked, FLEET)
    limits = max_rates(asked, FLEET).query("event == 'cycles'").set_index("platform")["max_samples_per_s"]
    for platform in FLEET:
        assert [rates[name][platform] for name in ("fleet", "closely", "as usual")] == [25.0, 100.0, 25.0]
        assert rates["greedy"][platform] == limits[platform]
    table = rate_table(asked, FLEET).set_index(["collection", "platform", "event"])["period"]
    for platform in FLEET:
        assert table["fleet", platform, "cycles"] / table["closely", platform, "cycles"] == pytest.approx(4, rel=1e-3)
