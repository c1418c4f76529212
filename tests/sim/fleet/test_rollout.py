"""Schedules of crossovers are balanced, random and belong to names; the state that acts lags the scheduled one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.fleet.inventory import build_machines
from models.fleet.world import Crossover, Feature, Fleet, Governor, Rollout, Window, World
from sim.fleet.control import acting, plan_crossover
from sim.fleet.day import prepare

CALM = Feature("calm", governor=Governor("stall_aware"), rollout=Rollout(1.0, start_s=7200.0, crossover=Crossover()))
WORLD = World(seed=2, horizon_s=86400.0, epoch_s=900.0, fleet=Fleet(4000), feature=CALM)


def planned(world, number=0):
    return plan_crossover(world, build_machines(world), number)


def test_every_machine_is_as_often_on_as_off_in_each_pair():
    plan = planned(WORLD)
    assert plan.shape == (4000, 22)
    assert (plan[:, 0::2].astype(int) + plan[:, 1::2] == 1).all()


@pytest.mark.statistical
def test_orders_are_fair_coins_of_machine_and_pair():
    """Means and correlations of 4,000 machines within 4.9 standard errors: 242 looks, 3 false alarms in 10,000 runs."""
    first = planned(WORLD)[:, 0::2].astype(float)
    assert (abs(first.mean(axis=0) - 0.5) < 4.9 * 0.5 / np.sqrt(4000)).all()
    other = planned(WORLD, 2)[:, 0::2].astype(float)
    pairs = np.corrcoef(np.hstack([first, other]).T)[~np.eye(22, dtype=bool)]
    assert (abs(pairs) < 4.9 / np.sqrt(4000)).all()


def test_who_takes_no_part_is_never_on_and_the_share_is_kept():
    feature = replace(CALM, rollout=replace(CALM.rollout, share=0.3))
    plan = planned(replace(WORLD, feature=feature))
    assert plan.any(axis=1).sum() == 1200
    several = [planned(replace(WORLD, feature=feature), number).any(axis=1) for number in (0, 1)]
    np.testing.assert_array_equal(*several)


def test_racks_switch_together():
    feature = replace(CALM, rollout=replace(CALM.rollout, unit="rack"))
    plan = planned(replace(WORLD, feature=feature))
    assert (plan.reshape(100, 40, 22) == plan[::40][:, None]).all()
    assert len(np.unique(plan[::40], axis=0)) > 50


@pytest.mark.parametrize("unit", ["machine", "domain"])
def test_odd_schedules_mirror_the_ones_before(unit):
    world = replace(WORLD, feature=replace(CALM, rollout=replace(CALM.rollout, unit=unit)))
    for number in (0, 2):
        assert (planned(world, number) != planned(world, number + 1)).all()
    assert (planned(world, 0) != planned(world, 2)).any()


@pytest.mark.parametrize(("machines", "either"), [(3840, {12}), (4000, {12, 13})])
def test_power_domains_switch_together_and_half_of_them_are_first(machines, either):
    feature = replace(CALM, rollout=replace(CALM.rollout, unit="domain"))
    plan = planned(replace(WORLD, fleet=Fleet(machines), feature=feature))
    domains = plan.reshape(-1, 160, 22)
    assert (domains == domains[:, :1]).all()
    assert (plan[:, 0::2] != plan[:, 1::2]).all()
    assert set(domains[:, 0].sum(axis=0)) == either


@pytest.mark.statistical
def test_every_power_domain_is_first_as_often_as_others():
    """Means and correlations of 500 pairs within 4.9 standard errors: 64 looks, 1 false alarm in 10,000 runs."""
    feature = replace(CALM, rollout=replace(CALM.rollout, unit="domain", crossover=Crossover(period_s=900.0)))
    world = replace(WORLD, horizon_s=7200.0 + 1000 * 900.0, fleet=Fleet(8 * 160), feature=feature)
    first = planned(world)[::160, 0::2].astype(float)
    assert first.shape == (8, 500)
    assert (abs(first.mean(axis=1) - 0.5) < 4.9 * 0.5 / np.sqrt(500)).all()
    apart = np.corrcoef(first)[~np.eye(8, dtype=bool)]
    assert (abs(apart + 1 / 7) < 4.9 / np.sqrt(500)).all()


def test_more_periods_change_none_of_a_machine_before_them_in_another_world_of_more_machines():
    few, more = (planned(replace(WORLD, fleet=Fleet(machines))) for machines in (50, 4000))
    np.testing.assert_array_equal(few, more[:50])


@given(settle=st.integers(0, 4), start=st.integers(0, 9), seed=st.integers(0, 99))
def test_the_state_that_acts_is_the_scheduled_one_so_long_before(settle, start, seed):
    crossover = Crossover(period_s=3600.0, pairs=3)
    feature = replace(CALM, settle_s=900.0 * settle, rollout=Rollout(1.0, start_s=900.0 * start, crossover=crossover))
    world = replace(WORLD, seed=seed, fleet=Fleet(3), feature=feature)
    plan = planned(world)
    found = acting(world, plan)
    for machine in range(3):
        for epoch in range(world.epochs):
            moment = max(epoch - settle, 0) - start
            expected = 0 <= moment < 24 and plan[machine, moment // 4]
            assert found[machine, epoch] == expected


def test_periods_have_windows_to_wash_out():
    feature = replace(CALM, settle_s=900.0, rollout=replace(CALM.rollout, crossover=Crossover(pairs=1)))
    windows = replace(WORLD, feature=feature).windows
    assert windows == (
        Window("before", 0.0, 7200.0),
        Window("wash.000", 7200.0, 8100.0),
        Window("rest.000", 8100.0, 10800.0),
        Window("wash.001", 10800.0, 11700.0),
        Window("rest.001", 11700.0, 14400.0),
    )
    longer = replace(feature, rollout=Rollout(1.0, crossover=Crossover(pairs=1, wash_s=1800.0)))
    assert [window.end_s for window in replace(WORLD, feature=longer).windows] == [1800.0, 3600.0, 5400.0, 7200.0]
    assert [window.name for window in replace(WORLD, feature=replace(feature, settle_s=0.0)).windows][1:] == [
        "rest.000",
        "rest.001",
    ]


def test_only_whole_pairs_are_scheduled():
    feature = replace(CALM, rollout=Rollout(1.0, start_s=900.0, crossover=Crossover(pairs=100)))
    world = replace(WORLD, horizon_s=5 * 3600.0, feature=feature)
    assert [round(start_s) for start_s, _ in world.periods] == [900, 4500, 8100, 11700]
    assert not acting(world, planned(world))[:, :1].any()
    assert not acting(world, planned(world))[:, 17:].any()


def test_the_timeline_says_when_each_machine_was_first_on():
    world = replace(WORLD, fleet=Fleet(40), population=replace(WORLD.population, jobs=60, common_jobs=50))
    day, first = prepare(world), planned(replace(world))[:, 0]
    np.testing.assert_array_equal(day.timeline.feature_from_s, np.where(first, 7200.0, 10800.0))
    assert np.sort(day.timeline.event_machine[day.timeline.event_kind == 8]).tolist() == list(range(40))
