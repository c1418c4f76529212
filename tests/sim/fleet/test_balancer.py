"""A balancer gives fast platforms more of a job's load, and neither makes nor loses any."""

from dataclasses import replace

import numpy as np
import pytest

from models.fleet.world import Fleet, Interference, Power, Recording, Rollout
from sim.fleet import slots
from sim.fleet.arms import _inputs, nowhere, on_machines, recorded, run_arm
from sim.fleet.day import prepare
from tests.helpers.small_days import UPGRADE, WORLD, arrays, digest

MIXED = replace(WORLD.fleet, platforms={"haswell_2698v3": 0.5, "skylake_6148": 0.25, "rome_7742": 0.25})
STAGED = replace(UPGRADE, rollout=Rollout(0.5, waves=3, interval_s=900.0))


def world_of(balancer="speed", *, alone=False, **more):
    """A small fleet of three platforms; alone: nobody shares anything, and nothing wanders or holds clocks down."""
    population = replace(WORLD.population, balancer=balancer)
    quiet = {}
    if alone:
        behaviour = replace(population.behaviour, utilisation=0.2, instance_log_sd=0.0, job_log_sd=0.0)
        population = replace(population, behaviour=behaviour)
        quiet = {
            "interference": Interference(llc=False, bandwidth=False, smt=False),
            "power": Power(cap_share=10.0, domain_budget_share=10.0, turbo=False),
            "conditions": replace(WORLD.conditions, machine_access_log_sd=0.0, rack_access_log_sd=0.0),
        }
    return replace(WORLD, fleet=MIXED, population=population, **quiet, **more)


def present(day):
    """Stays by epoch, how much of it they are there."""
    epoch = np.arange(day.world.epochs)[None]
    start, end = (column[day.order][:, None] for column in (day.timeline.start_epoch, day.timeline.end_epoch))
    there = day.present_s(day.order[:, None], epoch, epoch + 1) / day.world.epoch_s
    return np.where((start <= epoch) & (epoch < end), there, 0.0)


@pytest.mark.parametrize("simulation", ["epochs", "events"])
def test_all_instances_of_a_job_together_have_its_whole_load_whoever_has_the_feature(simulation):
    day = prepare(world_of(simulation=simulation, feature=STAGED))
    inputs, share, job = _inputs(day, recorded(day), None), present(day), day.timeline.job[day.order]
    its = inputs.machines[day.timeline.machine[day.order]]
    after = its["feature_from"][:, None] <= np.arange(day.world.epochs)
    weight = inputs.weight[np.where(after, its["platform"][:, 1:], its["platform"][:, :1]), job[:, None]]
    assert 0.1 < after.mean() < 0.9
    if simulation == "events":
        assert ((share > 0) & (share < 1)).any()
    for number in range(day.jobs.count):
        mine = job == number
        given = (share * weight)[mine].sum(axis=0) * inputs.load[:, number]
        np.testing.assert_allclose(given, share[mine].sum(axis=0) * day.load[:, number], rtol=1e-9)


def test_instances_do_work_by_the_speed_of_their_platform_and_the_job_as_much_as_with_even_shares():
    """In a world where nothing changes: exactly, from the second epoch of a stay on."""
    day = prepare(world_of(alone=True, recording=Recording((), True, 1.0)))
    even = prepare(world_of("even", alone=True, recording=Recording((), True, 1.0)))
    done, alike = (arrays(run_arm(each, nowhere(each)))["trace"][:, 1] for each in (day, even))
    inputs = _inputs(day, nowhere(day), None)
    length = (day.timeline.end_epoch - day.timeline.start_epoch)[day.order]
    job, row = (np.repeat(each, length) for each in (day.timeline.job[day.order], np.arange(day.order.size)))
    epoch = np.arange(row.size) - np.repeat(np.cumsum(length) - length - day.timeline.start_epoch[day.order], length)
    platform = day.machines.platform[day.timeline.machine[day.order]][row]
    settled = epoch > np.repeat(day.timeline.start_epoch[day.order], length)
    weight, load = inputs.weight[platform, job], inputs.load[epoch, job] / day.load[epoch, job]
    open_load = day.jobs.open_load[job]
    np.testing.assert_array_equal(done[~open_load], alike[~open_load])
    served = settled & open_load
    np.testing.assert_allclose(done[served], (alike * weight * load)[served], rtol=1e-9)
    assert np.unique(weight[served].round(3)).size > 10
    fast = {name: weight[open_load & (platform == k)].mean() for k, name in enumerate(MIXED.platforms)}
    assert fast["haswell_2698v3"] < fast["skylake_6148"]
    whole = [np.bincount(epoch[open_load], each[open_load]) for each in (done, alike)]
    np.testing.assert_allclose(whole[0], whole[1], rtol=0.01)


def test_where_all_platforms_are_alike_a_balancer_changes_no_bit():
    days = [prepare(replace(WORLD, population=replace(WORLD.population, balancer=how))) for how in ("even", "speed")]
    assert digest(days[1], nowhere(days[1])) == digest(days[0], nowhere(days[0]))


@pytest.mark.parametrize("balancer", ["even", "speed"])
def test_machines_with_new_processors_take_work_from_the_others_if_there_is_a_balancer(balancer):
    fleet = Fleet(24, machines_per_rack=1, racks_per_power_domain=1)
    world = replace(world_of(balancer, alone=True, feature=UPGRADE), fleet=fleet)
    day = prepare(world)
    upgraded = np.arange(0, 24, 2)
    off, on = (arrays(run_arm(day, arm))["rows"] for arm in (nowhere(day), on_machines(day, upgraded)))
    stay = np.repeat(day.order, np.diff(day.row_start))
    control = ~np.isin(day.timeline.machine[stay], upgraded)
    served = control & day.jobs.open_load[day.timeline.job[stay]]
    instructions = slots.INSTRUCTIONS - slots.CYCLES
    if balancer == "even":
        np.testing.assert_array_equal(on[control], off[control])
    else:
        np.testing.assert_array_equal(on[control & ~served, :4], off[control & ~served, :4])
        assert on[served, instructions].sum() < 0.99 * off[served, instructions].sum()
        whole = on[:, instructions].sum() / off[:, instructions].sum()
        saturated = ~day.jobs.open_load[day.timeline.job[stay]]
        gained = (on - off)[saturated, instructions].sum() / off[:, instructions].sum()
        assert whole - gained == pytest.approx(1.0, rel=0.005)
