"""Machines stand where they should and differ as asked; jobs fill them as asked, and their miss curves are possible."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.fleet.inventory import REFERENCE_SHARE_BYTES, build_jobs, build_machines, miss_curve, replaced
from models.fleet.world import Behaviour, Conditions, Feature, Fleet, Population, Rollout, Service, World
from models.platforms import PLATFORMS

NAMES = list(PLATFORMS)
WORLD = World(fleet=Fleet(400), population=Population(500, 200, heavyweights=20))
SHOP = Service("shop", 12, 3.0, 0.9, 0.02, open_load=True)
traits = st.tuples(st.floats(0.0, 0.1), st.floats(1e4, 1e9), st.floats(0.0, 1.0))


def fleet(machines, platforms=None, **how):
    return World(fleet=Fleet(machines, platforms or {"haswell_2698v3": 1.0}, **how))


@given(st.integers(1, 300), st.integers(1, 50), st.integers(1, 5))
def test_machines_stand_rack_by_rack_and_domain_by_domain(count, per_rack, per_domain):
    machines = build_machines(fleet(count, machines_per_rack=per_rack, racks_per_power_domain=per_domain))
    assert machines.count == count
    for place, most in ((machines.rack, per_rack), (machines.power_domain, per_rack * per_domain)):
        sizes = np.bincount(place)
        assert (np.diff(place) >= 0).all()
        assert (sizes[:-1] == most).all()
        assert 0 < sizes[-1] <= most


@given(st.integers(1, 500), st.lists(st.floats(0.01, 1.0), min_size=1, max_size=len(NAMES)))
def test_platforms_are_apportioned_to_within_one_machine(count, weights):
    shares = np.array(weights) / sum(weights)
    machines = build_machines(fleet(count, dict(zip(NAMES, shares.tolist(), strict=False))))
    counted = np.bincount(machines.platform, minlength=shares.size)
    assert counted.sum() == count
    assert (np.abs(counted - shares * count) < 1).all()


def test_capacity_is_that_of_the_spec_sheet():
    machines = build_machines(fleet(60, {"haswell_2698v3": 0.5, "icelake_8380": 0.5}))
    for number, name in enumerate(machines.platform_names):
        assert set(machines.vcpus[machines.platform == number]) == {PLATFORMS[name].vcpus}
        assert set(machines.memory_bytes[machines.platform == number]) == {PLATFORMS[name].memory_bytes}


def test_a_feature_does_not_change_the_machines_that_it_is_put_on():
    feature = Feature("up", {"haswell_2698v3": "icelake_8380"}, rollout=Rollout(unit="rack"))
    before, after = build_machines(fleet(50)), build_machines(replace(fleet(50), feature=feature))
    for name in ("platform", "vcpus", "latency_factor"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


@pytest.mark.statistical
def test_conditions_have_the_spread_asked_for_and_racks_share_their_part():
    """Five variances within 4.5 standard errors each: 4 in 100,000 runs."""
    given_ = Conditions(
        machine_latency_log_sd=0.05,
        machine_bandwidth_log_sd=0.07,
        machine_power_log_sd=0.04,
        rack_latency_log_sd=0.03,
        rack_power_log_sd=0.02,
        slow_memory_share=0.0,
    )
    machines = build_machines(replace(fleet(40_000, machines_per_rack=10), conditions=given_))
    for logs, own, shared in (
        (np.log(machines.latency_factor), 0.05, 0.03),
        (np.log(machines.power_factor), 0.04, 0.02),
    ):
        by_rack = logs.reshape(-1, 10)
        assert by_rack.var(axis=1, ddof=1).mean() == pytest.approx(own**2, rel=4.5 * np.sqrt(2 / 36_000))
        between = shared**2 + own**2 / 10
        assert by_rack.mean(axis=1).var(ddof=1) == pytest.approx(between, rel=4.5 * np.sqrt(2 / 4000))
    bandwidth = np.log(machines.bandwidth_factor)
    assert bandwidth.var() == pytest.approx(0.07**2, rel=4.5 * np.sqrt(2 / 40_000))


def test_without_conditions_machines_are_their_spec_sheets():
    machines = build_machines(replace(fleet(30), conditions=Conditions(*[0.0] * 9)))
    for factor in (machines.latency_factor, machines.bandwidth_factor, machines.power_factor):
        np.testing.assert_array_equal(factor, 1.0)


def test_new_machines_fill_racks_of_their_own():
    world = fleet(200, machines_per_rack=40)
    old = build_machines(world)
    which = np.arange(10, 105)
    new = replaced(old, world, which)
    assert new.rack[which].min() == old.rack.max() + 1
    np.testing.assert_array_equal(np.bincount(new.rack[which])[old.rack.max() + 1 :], [40, 40, 15])
    np.testing.assert_array_equal(np.delete(new.rack, which), np.delete(old.rack, which))


def test_platforms_are_mixed_within_racks():
    machines = build_machines(fleet(400, {"haswell_2698v3": 0.5, "icelake_8380": 0.5}))
    assert all(set(machines.platform[machines.rack == rack]) == {0, 1} for rack in range(10))


def jobs_of(world):
    return build_jobs(world, build_machines(world))


def populated(**changes):
    return replace(WORLD, population=replace(WORLD.population, **changes))


@given(traits, st.lists(st.floats(0.0, 1e10), min_size=2))
def test_misses_never_rise_with_the_cache_share(one, shares):
    curve = miss_curve(*(np.array([trait]) for trait in one))
    misses = np.array([curve(share)[0] for share in sorted(shares)])
    assert (np.diff(misses) <= 1e-12 * misses[0]).all()
    assert (misses >= 0).all()


@given(traits)
def test_misses_at_the_reference_share_are_those_asked_for(one):
    curve = miss_curve(*(np.array([trait]) for trait in one))
    assert curve(REFERENCE_SHARE_BYTES)[0] == pytest.approx(one[0], rel=1e-9)


@given(traits)
def test_no_cache_removes_the_streaming_part(one):
    accesses, _, streaming = one
    curve = miss_curve(*(np.array([trait]) for trait in one))
    assert curve(1e15)[0] >= accesses * streaming * (1 - 1e-9)
    assert curve(0.0)[0] <= accesses * (1 + 10 * (1 - streaming)) * (1 + 1e-9)


def test_quotas_fill_the_allocated_share():
    for share in (0.3, 0.86):
        jobs = jobs_of(populated(allocated_share=share))
        assert jobs.quota_vcpu.sum() == pytest.approx(share * 400 * 64)
        assert (jobs.instances >= 1).all()


def test_jobs_come_in_order_of_falling_quota():
    assert (np.diff(jobs_of(populated(services=(SHOP,))).quota_vcpu) <= 1e-9).all()


def test_heavyweights_hold_their_share():
    jobs = jobs_of(WORLD)
    heavy = np.array([name.startswith("heavyweight") for name in jobs.names])
    assert heavy.sum() == 20
    assert jobs.quota_vcpu[heavy].sum() / jobs.quota_vcpu.sum() == pytest.approx(0.87)


def test_two_wscs_of_a_universe_share_their_common_jobs():
    here, there = jobs_of(WORLD), jobs_of(replace(WORLD, seed=9))
    common = {name for name in here.names if not name.startswith("local")}
    assert common == set(here.names) & set(there.names)
    assert len(common) == 200
    for name in ("overlap", "working_set_bytes", "smt_slowdown"):
        of_here = dict(zip(here.names, getattr(here, name), strict=True))
        of_there = dict(zip(there.names, getattr(there, name), strict=True))
        assert all(of_here[job] == of_there[job] for job in common)
    assert (here.quota_vcpu != there.quota_vcpu).any()


def test_another_universe_has_other_jobs():
    here, there = jobs_of(WORLD), jobs_of(populated(universe=7))
    assert not np.isin(here.overlap, there.overlap[there.overlap > 1]).all()


def test_a_service_is_what_was_said():
    jobs = jobs_of(populated(services=(SHOP,)))
    at = jobs.names.index("shop")
    assert jobs.instances[at] == 12
    for name in ("core_cpi", "memory_accesses_per_instruction", "overlap", "instructions_per_request"):
        assert getattr(jobs, name)[at] == getattr(SHOP, name)
    assert jobs.instance_quota_vcpu[at] == 3.0
    assert jobs.open_load[at]


@pytest.mark.parametrize(
    "sizes",
    [{"jobs": 0, "common_jobs": 0, "heavyweights": 0}, {"heavyweights": 0}, {"common_jobs": 20}, {"jobs": 200}],
    ids=str,
)
def test_any_kind_of_jobs_may_be_missing(sizes):
    jobs = jobs_of(populated(services=(SHOP,), **sizes))
    assert jobs.count == sizes.get("jobs", 500) + 1
    assert np.isfinite(jobs.reference_cpi).all()


def test_heavyweights_alone_hold_everything():
    jobs = jobs_of(populated(jobs=20, common_jobs=20))
    assert jobs.quota_vcpu.sum() == pytest.approx(0.86 * 400 * 64)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_that_leaves_some_jobs_nothing_is_refused(share):
    with pytest.raises(ValueError, match=f"leave quota to 20 heavyweights and 480 other jobs, got {share:g}"):
        jobs_of(populated(heavyweight_share=share))


def test_services_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="ask for 25600 vCPUs; the allocated share holds 22016"):
        jobs_of(populated(services=(replace(SHOP, instances=6400, quota_vcpu=4.0),)))


@pytest.mark.statistical
def test_behaviour_has_the_medians_and_spreads_asked_for():
    """Four medians and two spreads of 20,000 jobs within 4.5 standard errors each: 4 in 100,000 runs."""
    how = Behaviour(size_exponent=0.0, inner_miss_cycles=0.0)
    jobs = jobs_of(replace(WORLD, fleet=Fleet(6000), population=Population(20_000, 10_000, behaviour=how)))
    asked = {
        "core_cpi": (how.core_cpi, how.core_cpi_log_sd),
        "working_set_bytes": (how.working_set_bytes, how.working_set_log_sd),
        "memory_accesses_per_instruction": (how.memory_accesses_per_instruction, how.memory_accesses_log_sd),
    }
    for name, (median, log_sd) in asked.items():
        logs = np.log(getattr(jobs, name))
        assert abs(logs.mean() - np.log(median)) < 4.5 * log_sd / np.sqrt(20_000)
        assert logs.std() == pytest.approx(log_sd, rel=4.5 / np.sqrt(40_000))


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_shares_at_the_ends_are_exact(share):
    behaviour = Behaviour(streaming_share=share, utilisation=share, latency_critical_share=share)
    jobs = jobs_of(populated(behaviour=behaviour))
    for drawn in (jobs.streaming_share, jobs.utilisation, jobs.latency_critical):
        assert (drawn == share).all()
