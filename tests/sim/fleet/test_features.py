"""A feature acts where and when it is on: on machines or instances, switched, rolled out, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

from models.fleet.world import (
    Crossover,
    Feature,
    Governor,
    Population,
    Power,
    Recording,
    Rollout,
    Software,
)
from sim.fleet.arms import NEVER, Arm, crossover, everywhere, nowhere, on_instances, on_machines, recorded, run_arm
from sim.fleet.control import plan_crossover
from sim.fleet.day import prepare
from tests.helpers.reference_day import ReferenceDay
from tests.helpers.small_days import DVFS, REBUILT, SERVICE, UPGRADE, WORLD, arrays, digest, scattered, small_and_busy

SWITCHING = {
    "governor": Feature("x", governor=Governor("stall_aware", stall_threshold=0.4)),
    "code": Feature("x", software=REBUILT),
    "all": replace(UPGRADE, governor=Governor("stall_aware", stall_threshold=0.4), software=REBUILT),
}
HOURLY = Rollout(0.75, start_s=600.0, crossover=Crossover(period_s=600.0, pairs=2))
UNCHANGED = {
    "platform by itself": Feature("x", {"haswell_2698v3": "haswell_2698v3"}),
    "same governor": Feature("x", governor=Governor()),
    "same code": Feature("x", software=(Software(("heavyweight-01",)),)),
}


@pytest.mark.parametrize("how", SWITCHING)
def test_machines_that_switch_on_and_off_are_those_of_the_slow_twin(how):
    """Code, governor and platform of the state that acts in each epoch, for those that stay and those that come."""
    plain, _ = small_and_busy("capped")
    world = replace(plain.world, feature=SWITCHING[how], recording=Recording((), True, 1.0, True))
    day = scattered(world, 36)
    switched = np.random.default_rng(5).random((4, 10)) < 0.5
    arm = replace(nowhere(day), switched=switched)
    twin, found = ReferenceDay(day, arm), arrays(run_arm(day, arm))
    stay = np.repeat(day.order, np.diff(day.row_start))
    rows = [twin.counters[key] for key in zip(stay, day.row_window, strict=True)]
    np.testing.assert_allclose(found["rows"], rows, rtol=1e-9)
    cells = [(machine, epoch) for machine in range(4) for epoch in range(10)]
    machines = np.array([twin.machine_epochs[cell] for cell in cells]).reshape(4, 10, 4)
    np.testing.assert_allclose(found["machine_trace"], machines, rtol=1e-9)


@pytest.mark.parametrize("how", SWITCHING)
def test_a_switch_that_is_never_turned_is_no_switch(how):
    day = prepare(replace(WORLD, feature=SWITCHING[how]))
    for arm, state in ((nowhere(day), False), (everywhere(day), True)):
        still = replace(nowhere(day), switched=np.full((24, 12), state))
        assert digest(day, still) == digest(day, arm)


def test_a_switch_turned_once_is_a_roll_out():
    """Without limits: a governor that switches looks at its machine anew."""
    free = Power(cap_share=10.0, domain_budget_share=10.0)
    day = prepare(replace(WORLD, feature=SWITCHING["code"], power=free))
    from_epoch = np.where(np.arange(24) % 3 == 0, NEVER, np.arange(24) % 5)
    arm = Arm(from_epoch, from_epoch[day.timeline.machine])
    switched = np.arange(12) >= from_epoch[:, None]
    found, once = (arrays(run_arm(day, each))["rows"] for each in (replace(nowhere(day), switched=switched), arm))
    np.testing.assert_allclose(found, once, rtol=1e-12)


def test_the_recorded_fleet_of_a_crossover_switches_with_its_schedule_and_settles():
    """Traced: what a stay does differs from the fleet without the feature exactly where the state before acts no more.

    Neighbours in a power domain share its budget; without one, machines are on their own.
    """
    feature = Feature("code", software=(Software(("heavyweight-01",), 1.0, 0.7),), settle_s=300.0, rollout=HOURLY)
    free = Power(domain_budget_share=10.0)
    day = prepare(replace(WORLD, feature=feature, power=free, recording=Recording((), True, 1.0)))
    with_code, without = (arrays(run_arm(day, arm))["trace"] for arm in (recorded(day), nowhere(day)))
    length = (day.timeline.end_epoch - day.timeline.start_epoch)[day.order]
    stay = np.repeat(day.order, length)
    epoch = np.arange(stay.size) - np.repeat(np.cumsum(length) - length, length) + day.timeline.start_epoch[stay]
    plan = plan_crossover(day.world, day.machines)
    assert sorted(plan.any(axis=1)) == [False] * 6 + [True] * 18
    period = (epoch - 1) // 2 - 1  # epochs 3 and 4 are the first that period 0 (epochs 2 and 3) acts in
    on = plan[day.timeline.machine[stay], np.clip(period, 0, 3)] & (period >= 0) & (period < 4)
    rebuilt = day.jobs.names.index("heavyweight-01") == day.timeline.job[stay]
    changed = (with_code[:, 1] / with_code[:, 0] > 1.02 * without[:, 1] / without[:, 0])[rebuilt]
    np.testing.assert_array_equal(changed, on[rebuilt])


def test_without_a_crossover_nothing_is_scheduled():
    day = prepare(replace(WORLD, feature=DVFS))
    assert recorded(day).switched is None
    with pytest.raises(ValueError, match="no crossover"):
        crossover(day)


def test_a_roll_out_settles_too_but_what_is_on_at_the_start_has():
    for start_s, acts in ((0.0, 0), (600.0, 3)):
        feature = replace(DVFS, settle_s=300.0, rollout=Rollout(1.0, start_s=start_s))
        day = prepare(replace(WORLD, feature=feature))
        assert (recorded(day).machine_from == acts).all()


@pytest.mark.parametrize("feature", UNCHANGED.values(), ids=UNCHANGED)
def test_a_feature_without_physics_changes_no_bit(feature):
    day = prepare(replace(WORLD, feature=feature))
    arms = (nowhere(day), everywhere(day), recorded(day), on_machines(day, np.array([3])))
    first, *others = [digest(day, arm) for arm in arms]
    assert all(other == first for other in others)
    plain = prepare(WORLD)
    assert digest(plain, nowhere(plain)) == first


@pytest.mark.parametrize("feature", [UPGRADE, DVFS, Feature("code", software=REBUILT[:1])], ids=lambda each: each.name)
def test_a_power_domain_shows_the_arm_that_it_has_wholly(feature):
    """Domain 0 has the feature on every machine, domain 1 on some, domain 2 on none."""
    day = prepare(replace(WORLD, feature=feature))
    mixed = on_machines(day, np.array([*range(8), 9, 12]))
    blocks = [list(run_arm(day, arm, around=np.arange(24))) for arm in (mixed, everywhere(day), nowhere(day))]
    for domain, arm in ((0, 1), (2, 2)):
        for name in ("rows", "machine_rows", "epoch_sums"):
            np.testing.assert_array_equal(getattr(blocks[0][domain], name), getattr(blocks[arm][domain], name))
    assert (blocks[0][1].rows != blocks[1][1].rows).any()
    assert (blocks[0][1].rows != blocks[2][1].rows).any()


def test_the_recorded_arm_is_that_of_the_machines_rolled_out_to():
    feature = replace(UPGRADE, software=REBUILT, rollout=Rollout(0.5))
    day = prepare(replace(WORLD, feature=feature, population=replace(WORLD.population, services=(SERVICE,))))
    which = np.flatnonzero(~np.isnan(day.timeline.feature_from_s))
    assert 0 < which.size < 24
    assert digest(day, recorded(day)) == digest(day, on_machines(day, which))


def test_new_code_follows_its_machine_when_the_roll_out_is_by_machine():
    feature = Feature("code", software=REBUILT[:1], rollout=Rollout(0.5, start_s=900.0))
    day = prepare(replace(WORLD, feature=feature, recording=Recording((), True, 1.0)))
    with_code, without = (arrays(run_arm(day, arm))["trace"] for arm in (recorded(day), nowhere(day)))
    length = (day.timeline.end_epoch - day.timeline.start_epoch)[day.order]
    stay = np.repeat(day.order, length)
    epoch = np.arange(stay.size) - np.repeat(np.cumsum(length) - length, length) + day.timeline.start_epoch[stay]
    changed = (with_code != without).any(axis=1)
    assert not changed[epoch < 3].any()
    rebuilt = day.jobs.names.index("heavyweight-01") == day.timeline.job[stay]
    there = ~np.isnan(day.timeline.feature_from_s[day.timeline.machine[stay]])
    assert changed[rebuilt & there & (epoch >= 3)].all()


def test_new_code_by_instance_reaches_those_instances_and_their_neighbours_alone():
    feature = Feature("code", software=REBUILT, rollout=Rollout(0.5, "instance"))
    day = prepare(replace(WORLD, feature=feature, population=replace(WORLD.population, services=(SERVICE,))))
    shop = day.jobs.names.index("shop")
    which = np.unique(day.timeline.instance[day.timeline.job == shop])[:1]
    after, before = (arrays(run_arm(day, arm))["rows"] for arm in (on_instances(day, which), nowhere(day)))
    stay = np.repeat(day.order, np.diff(day.row_start))
    touched = np.isin(day.timeline.instance[stay], which)
    assert (after[touched] != before[touched]).any(axis=1).all()
    domains = np.unique(day.machines.power_domain[day.timeline.machine[stay[touched]]])
    elsewhere = ~np.isin(day.machines.power_domain[day.timeline.machine[stay]], domains)
    np.testing.assert_array_equal(after[elsewhere], before[elsewhere])


def test_software_means_what_it_says():
    """Alone and saturated: fewer instructions a request at the same CPI are more requests, and nothing else."""
    feature = Feature("code", software=(Software(("shop",), instructions_factor=0.5),))
    service = replace(SERVICE, open_load=False, network_s_per_request=0.0)
    world = replace(WORLD, feature=feature, population=Population(0, 0, heavyweights=0, services=(service,)))
    day = prepare(world)
    after, before = (arrays(run_arm(day, arm))["rows"] for arm in (everywhere(day), nowhere(day)))
    np.testing.assert_array_equal(after[:, :4], before[:, :4])
    np.testing.assert_allclose(after[:, 4], 2 * before[:, 4], rtol=1e-12)
