"""A fleet's machines stand where they should, and differ as much as was asked for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.fleet.machines import build_machines, replaced
from models.fleet.world import Conditions, Feature, Fleet, Rollout, World
from models.platforms import PLATFORMS

NAMES = list(PLATFORMS)


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
    machines = build_machines(replace(fleet(30), conditions=Conditions(*[0.0] * 8)))
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
