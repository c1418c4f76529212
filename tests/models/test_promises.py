"""What the models promise together: worlds, machines and jobs drawn and compared with what was asked."""

import re
from dataclasses import asdict, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models import tables
from models.fleet.inventory import (
    LEAST_PRESENT,
    REFERENCE_SHARE_BYTES,
    Jobs,
    build_jobs,
    build_machines,
    miss_curve,
    replaced,
)
from models.fleet.world import Behaviour, Feature, Fleet, Population, Recording, Rollout, Service, Window, World
from models.platforms import MODERN_SERVERS, PLATFORMS
from models.randomness import key, stream

WORLD = World(seed=3, fleet=Fleet(400), population=Population(500, 200, heavyweights=20))
SHOP = Service("shop", 12, 3.0, 0.9, 0.02, 5e6, 0.3, 1.7, 0.4, 0.6, 2e6, 1e-3, 0.07, 0.11, 0.13, True, False)
CACHE = replace(SHOP, name="cache", latency_critical=False, open_load=True)
unit = st.floats(0.0, 1.0)


def jobs_of(world):
    return build_jobs(world, build_machines(world))


def populated(**changes):
    return replace(WORLD, population=replace(WORLD.population, **changes))


# platforms


@pytest.mark.parametrize(
    "sheet", [sheet for sheet in MODERN_SERVERS if " DDR" in sheet.source], ids=lambda sheet: sheet.name
)
def test_bandwidth_is_that_of_the_memory_channels_named(sheet):
    sockets = int(sheet.source[0])
    channels, megatransfers = map(int, re.search(r"(\d+) channels DDR\d-(\d+)", sheet.source).groups())
    assert sheet.memory_bandwidth_bytes_per_s == pytest.approx(sockets * channels * megatransfers * 8e6, rel=1e-3)


def test_sheets_without_named_channels_say_their_bandwidth_or_that_it_is_estimated():
    other = {sheet.name: sheet for sheet in MODERN_SERVERS if " DDR" not in sheet.source}
    assert set(other) == {"axion_c4a", "grace_superchip"}
    assert other["grace_superchip"].memory_bandwidth_bytes_per_s == 2 * 512e9
    assert "512 GB/s a socket" in other["grace_superchip"].source
    assert re.search("channels.* estimated", other["axion_c4a"].source)


# machines


@given(st.integers(1, 500), st.lists(st.integers(1, 99), min_size=1, max_size=len(PLATFORMS)))
def test_the_machines_left_over_go_to_the_largest_remainders(count, weights):
    machines = build_machines(World(fleet=Fleet(count, dict(zip(PLATFORMS, map(float, weights), strict=False)))))
    exact = [Fraction(weight * count, sum(weights)) for weight in weights]
    extra = np.bincount(machines.platform, minlength=len(weights)) - [int(share) for share in exact]
    left = [share - int(share) for share in exact]
    rounded_up = [rest for rest, more in zip(left, extra, strict=True) if more]
    rounded_down = [rest for rest, more in zip(left, extra, strict=True) if not more]
    assert set(extra) <= {0, 1}
    assert min(rounded_up, default=1) >= max(rounded_down, default=0)


def test_added_machines_change_nothing_else_and_are_new_throughout():
    world = World(fleet=Fleet(200))
    old, which = build_machines(world), np.arange(10, 105)
    new = replaced(old, world, which)
    kept = ("platform", "power_domain", "vcpus", "memory_bytes")
    assert all(np.array_equal(getattr(new, name), getattr(old, name)) for name in kept)
    for name in ("latency_factor", "bandwidth_factor", "power_factor"):
        changed = np.flatnonzero(getattr(new, name) != getattr(old, name))
        np.testing.assert_array_equal(changed, which)


@pytest.mark.statistical
def test_added_machines_and_different_conditions_do_not_correlate():
    """Four correlations of 5000 machines or racks within 4.5 standard errors: 3 in 100,000 runs."""
    world = World(fleet=Fleet(5000, machines_per_rack=1))
    old = build_machines(world)
    new = replaced(old, world, np.arange(5000))
    for left, right in (
        (old.latency_factor, new.latency_factor),
        (old.latency_factor, old.bandwidth_factor),
        (old.latency_factor, old.power_factor),
        (old.bandwidth_factor, old.power_factor),
    ):
        assert abs(np.corrcoef(np.log(left), np.log(right))[0, 1]) < 4.5 / np.sqrt(5000)


@pytest.mark.parametrize("unit_", ["machine", "rack", "instance"])
def test_no_feature_and_no_rollout_moves_a_machine(unit_):
    world = World(fleet=Fleet(50, {"haswell_2698v3": 0.5, "rome_7742": 0.5}))
    feature = Feature("up", {"haswell_2698v3": "icelake_8380"}, rollout=Rollout(unit=unit_))
    np.testing.assert_equal(asdict(build_machines(replace(world, feature=feature))), asdict(build_machines(world)))


# jobs


def test_the_services_are_part_of_the_allocated_share_and_heavyweights_share_the_rest():
    jobs = jobs_of(populated(services=(SHOP, CACHE)))
    heavy = np.array([name.startswith("heavyweight") for name in jobs.names])
    assert jobs.quota_vcpu.sum() == pytest.approx(0.86 * 400 * 64, rel=1e-12)
    assert jobs.quota_vcpu[heavy].sum() == pytest.approx(0.87 * (0.86 * 400 * 64 - 72), rel=1e-12)


@pytest.mark.parametrize("service", [SHOP, CACHE], ids=lambda service: service.name)
def test_every_trait_of_a_service_is_what_was_said(service):
    jobs = jobs_of(populated(services=(SHOP, CACHE)))
    at = jobs.names.index(service.name)
    said = {name: value for name, value in asdict(service).items() if name in Jobs.__slots__}
    assert len(said) == 17
    assert tuple(jobs.core_traits[at]) == said.pop("core_traits")
    assert {name: getattr(jobs, name)[at] for name in said} == said
    assert jobs.instance_memory_bytes[at] == 3.0 * 2.5e9


def test_instances_that_would_be_too_large_are_cut_to_about_a_quarter_of_the_smallest_machine():
    """A job is cut into a whole number of instances: one that is just below 1.5 quarters stays whole."""
    world = populated(instance_quota_vcpu=500.0)
    world = replace(world, fleet=Fleet(400, {"haswell_2698v3": 0.5, "sandybridge_2670": 0.5}))
    jobs = jobs_of(world)
    whole = jobs.instances == 1
    assert (jobs.instance_quota_vcpu[whole] <= 1.5 * 32 / 4).all()
    assert (jobs.instance_quota_vcpu[~whole] <= 1.25 * 32 / 4).all()
    assert np.median(jobs.instance_quota_vcpu[jobs.instances > 20]) == pytest.approx(32 / 4, rel=0.02)


def test_common_jobs_behave_alike_and_local_jobs_differ_from_one_wsc_to_the_next():
    behaviour = Behaviour(core_trait_sd=1.0, prefetched_share=0.5)
    world = replace(WORLD, population=replace(WORLD.population, behaviour=behaviour))
    here, there = jobs_of(world), jobs_of(replace(world, seed=9))
    own = [np.array([name.startswith("local") for name in jobs.names]) for jobs in (here, there)]
    traits = [name for name in Jobs.__slots__ if name not in {"names", "instances"}]
    sized = {"instance_quota_vcpu", "instance_memory_bytes", "core_cpi", "memory_accesses_per_instruction"}
    constant = {"instance_log_sd", "network_s_per_request", "latency_critical", "open_load"}
    order = [np.argsort(np.array(jobs.names)[~local]) for jobs, local in zip((here, there), own, strict=True)]
    for name in set(traits) - sized:
        a, b = (getattr(jobs, name)[~local][at] for jobs, local, at in zip((here, there), own, order, strict=True))
        np.testing.assert_array_equal(a, b)
        if name not in constant:
            assert not np.array_equal(np.sort(getattr(here, name)[own[0]]), np.sort(getattr(there, name)[own[1]]))
    ratios = [jobs.memory_accesses_per_instruction / jobs.core_cpi for jobs in (here, there)]
    a, b = (ratio[~local][at] for ratio, local, at in zip(ratios, own, order, strict=True))
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_common_jobs_are_large_in_every_wsc_and_not_equally_so():
    quota = []
    for seed in (3, 9):
        jobs = jobs_of(replace(WORLD, seed=seed))
        quota.append({name: size for name, size in zip(jobs.names, jobs.quota_vcpu, strict=True) if name[0] != "l"})
    here, there = (np.log([each[name] for name in sorted(quota[0])]) for each in quota)
    assert 0.9 < np.corrcoef(here, there)[0, 1] < 0.999


def test_large_jobs_are_tuned_by_the_exponent_asked_for():
    plain, tuned = (
        jobs_of(populated(behaviour=replace(WORLD.population.behaviour, size_exponent=by))) for by in (0.0, -0.5)
    )
    expected = (plain.quota_vcpu / np.median(plain.quota_vcpu)) ** -0.5
    free = plain.core_cpi > 0.25  # the reference core retires four instructions a cycle at most
    np.testing.assert_allclose(tuned.core_cpi[free], np.maximum(0.25, plain.core_cpi * expected)[free])
    assert min(plain.core_cpi.min(), tuned.core_cpi.min()) == 0.25
    accesses = tuned.memory_accesses_per_instruction / plain.memory_accesses_per_instruction
    np.testing.assert_allclose(accesses, expected)


@pytest.mark.statistical
def test_memory_is_requested_by_the_vcpu():
    """A mean of 500 logarithms within 4.5 standard errors: 1 in 150,000 runs."""
    jobs = jobs_of(WORLD)
    per_vcpu = np.log(jobs.instance_memory_bytes / jobs.instance_quota_vcpu / 2.5e9)
    assert abs(per_vcpu.mean()) < 4.5 * 0.3 / np.sqrt(500)
    assert (jobs.overlap >= 1).all()


def test_reference_cpi_is_core_cycles_plus_252_cycles_a_miss_over_those_that_overlap():
    """90 ns at 2.8 GHz are 252 cycles; 80 MiB are shared by 20 instances."""
    behaviour = Behaviour(prefetched_share=0.0)
    jobs = jobs_of(replace(WORLD, population=replace(WORLD.population, behaviour=behaviour)))
    haswell = PLATFORMS["haswell_2698v3"]
    stalled = 252 * jobs.memory_accesses_per_instruction / jobs.overlap
    np.testing.assert_allclose(jobs.reference_cpi, jobs.core_cpi + stalled, rtol=1e-12)
    np.testing.assert_allclose(jobs.stall_share, stalled / (jobs.core_cpi + stalled), rtol=1e-9)
    assert haswell.memory_latency_s * haswell.max_frequency_hz == pytest.approx(252)
    assert haswell.llc_bytes / 20 == REFERENCE_SHARE_BYTES


@given(st.floats(1e-6, 0.1), st.floats(1e4, 1e9), unit)
def test_misses_stay_between_the_streaming_part_and_the_documented_growth(accesses, working_set, streaming):
    """A cache taken away multiplies the cacheable part by at most 1 / `LEAST_PRESENT`."""
    curve = miss_curve(np.array([accesses]), np.array([working_set]), np.array([streaming]))
    assert curve(REFERENCE_SHARE_BYTES)[0] == pytest.approx(accesses, rel=1e-12)
    assert curve(1e15)[0] >= accesses * (streaming - 1e-12)
    assert curve(0.0)[0] <= accesses * (streaming + (1 - streaming) * (1 + 1 / LEAST_PRESENT)) * (1 + 1e-12)
    if working_set >= REFERENCE_SHARE_BYTES:
        assert curve(1e15)[0] == pytest.approx(accesses * streaming, abs=1e-9 * accesses)


def test_without_cache_a_small_working_set_misses_eleven_times_as_often_at_most():
    curve = miss_curve(np.full(3, 0.01), np.array([1e3, 1e5, 1e6]), np.zeros(3))
    np.testing.assert_allclose(curve(0.0)[:2] / 0.01, [11.0, 11.0], rtol=1e-2)
    assert curve(0.0)[2] < 0.11


# randomness


def test_another_consumer_shifts_nobody():
    alone = stream(4, "drains").random(6)
    drains, failures = stream(4, "drains"), stream(4, "failures")
    between = [(drains.random(), failures.random())[0] for _ in range(6)]
    np.testing.assert_array_equal(alone, between)


def test_a_seed_and_a_name_do_not_make_up_for_each_other():
    shift = key("b") - key("a")
    one, other = (
        (stream(5 + abs(shift), "a"), stream(5, "b")) if shift > 0 else (stream(5, "a"), stream(5 - shift, "b"))
    )
    assert one.random() != other.random()
    assert stream(key("a") ^ key("b"), "a").random() != stream(0, "b").random()
    assert stream(0, "a").random() != stream(0, "b").random()


# tables


def test_what_no_real_fleet_knows_is_in_truth_tables_only():
    secret = {column.name for column in tables.TRUTH_JOBS} - {"job"} | {"demand_s"}
    for name, columns in tables.TABLES.items():
        assert name.startswith("truth_") or not secret & {column.name for column in columns}
    recorded = {"counters", "machine_windows", "epochs"}
    truth = {f"truth_{arm}_{name}": tables.TABLES[name] for arm in tables.ARMS for name in recorded}
    truth |= {name.replace("truth_", "truth_trial_"): columns for name, columns in truth.items()}
    truth |= {"truth_jobs": tables.TRUTH_JOBS, "truth_requests": tables.TRUTH_REQUESTS, "truth_cpu": tables.CPU}
    truth |= {"truth_service": tables.TRUTH_SERVICE, "truth_service_types": tables.TRUTH_SERVICE_TYPES}
    truth |= {"truth_miss_curve": tables.TRUTH_MISS_CURVE, "truth_throughput": tables.TRUTH_THROUGHPUT}
    truth |= {"truth_functions": tables.TRUTH_FUNCTIONS, "truth_cpi": tables.TRUTH_CPI}
    truth |= {"truth_incidents": tables.TRUTH_INCIDENTS, "truth_shifts": tables.TRUTH_SHIFTS}
    truth |= {"truth_station_requests": tables.TRUTH_STATION_REQUESTS}
    truth |= {"truth_machine": tables.TRUTH_MACHINE, "truth_one_way": tables.TRUTH_ONE_WAY}
    assert {name: columns for name, columns in tables.TABLES.items() if name.startswith("truth_")} == truth


# scenario


def test_epochs_are_rounded_not_cut():
    assert World(horizon_s=0.3, epoch_s=0.1).epochs == 3
    assert World().epochs == 288


def test_windows_come_in_order_of_time_whatever_they_are_called():
    windows = (Window("b", 0.0, 300.0), Window("a", 300.0, 600.0))
    assert World(recording=Recording(windows[::-1])).windows == windows
