"""The event-driven machine is its readable twin event by event, and the epoch kernel where all happens with epochs."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from models.fleet.inventory import build_jobs
from models.fleet.world import Behaviour, Fleet, Governor, Population, Power, Recording, Steps, Window, World
from sim.fleet import slots
from sim.fleet.arms import Visits, nowhere, recorded, run_arm
from sim.fleet.day import day_of, prepare
from sim.fleet.events import CLOCK, CONDITIONS, LOAD, LOOK, RESIDENTS
from sim.fleet.experiment import measure
from sim.fleet.timeline import from_placement
from tests.helpers.event_day import EventDay
from tests.helpers.small_days import SHARP, WORLD, arrays, digest, small_and_busy

AS_EPOCHS = Steps(load_s=300.0, load_log_sd=0.0, governor_s=300.0)


@cache
def eventful(how):
    """Two epochs of two minutes on four machines; 18 stays begin and end at any time, some at those of other events."""
    day, arm = small_and_busy(how)
    windows = Recording((Window("b", 120.0, 240.0), Window("a", 0.0, 120.0)), True, 1.0, True)
    world = replace(day.world, simulation="events", horizon_s=240.0, epoch_s=120.0, recording=windows)
    rng = np.random.default_rng(5)
    start_s = np.where(rng.random(36) < 0.4, 0.0, rng.uniform(0.0, 240.0, 36))
    start_s[3:6] = 60.0, 120.0, 17.0
    end_s = np.minimum(240.0, start_s + rng.exponential(60.0, 36))
    start_s[18:] = end_s[18:]
    times = {"start_s": start_s, "end_s": end_s}
    day = day_of(world, day.machines, build_jobs(world, day.machines), replace(day.timeline, **times))
    arm = replace(arm, machine_from=np.array([1, 0, 2, 1]), stay_from=arm.stay_from % 3)
    return day, arm


def log_of(blocks):
    """Time, machine and what happened, by machine and time."""
    rows = np.concatenate([block.events.reshape(-1, 3) for block in blocks])
    rows = rows[~np.isnan(rows[:, 0])]
    return rows[np.lexsort((rows[:, 0], rows[:, 1]))]


@pytest.mark.parametrize("how", ["stall_aware", "feature", "tdp"])
def test_events_are_those_of_the_readable_twin_in_order_and_time_and_so_is_what_they_count(how):
    day, arm = eventful(how)
    blocks, twin = list(run_arm(day, arm, logged=1000)), EventDay(day, arm)
    log, found = log_of(blocks), arrays(blocks)
    np.testing.assert_array_equal(log, sorted(twin.log, key=lambda row: (row[1], row[0])))
    kinds = np.bitwise_or.reduce(log[:, 2].astype(int))
    assert kinds == RESIDENTS | CONDITIONS | LOAD | CLOCK | LOOK
    keys = [*zip(np.repeat(day.order, np.diff(day.row_start)), day.row_window, strict=True)]
    assert set(keys) == set(twin.counters)
    np.testing.assert_allclose(found["rows"], [twin.counters[key] for key in keys], rtol=1e-9)
    first, last = day.timeline.start_epoch, day.timeline.end_epoch
    trace = [twin.stay_epochs[stay, epoch] for stay in day.order for epoch in range(first[stay], last[stay])]
    np.testing.assert_allclose(found["trace"], trace, rtol=1e-9)
    machines = [[twin.machine_epochs[machine, epoch] for epoch in range(2)] for machine in range(4)]
    np.testing.assert_allclose(found["machine_trace"], machines, rtol=1e-9)
    for (machine, window), energy_j in twin.energy_j.items():
        assert found["machine_rows"][machine, window] == pytest.approx([energy_j, twin.capped[machine, window]])
    np.testing.assert_allclose(found["epoch_sums"].sum(axis=0)[:, slots.E_ENERGY_J], twin.epoch_energy_j, rtol=1e-9)


@pytest.mark.parametrize("how", ["budget", "stall_aware", "feature", "gaps", "moved", "tdp", "incidents", "balanced"])
def test_where_all_happens_with_epochs_events_are_epochs(how):
    """Stays begin and end with epochs, load does not step, governors look once an epoch: the same solutions."""
    day, arm = small_and_busy(how)
    world = replace(day.world, simulation="events", steps=AS_EPOCHS)
    slow, quick = (
        day_of(each, day.machines, day.jobs, day.timeline) for each in (replace(world, simulation="epochs"), world)
    )
    epochs, events = (arrays(run_arm(each, arm)) for each in (slow, quick))
    for name, expected in epochs.items():
        np.testing.assert_allclose(events[name], expected, rtol=1e-12, atol=1e-12, err_msg=name)  # residuals: atol


def frozen(**more):
    """Nothing changes over time: no churn, no daily swing, nothing wanders; and demand follows pace."""
    behaviour = Behaviour(diurnal_amplitude=0.0, instance_log_sd=0.0, job_log_sd=0.0)
    population = Population(30, 15, heavyweights=4, behaviour=behaviour)
    return World(
        seed=5,
        horizon_s=10_800.0,
        fleet=Fleet(4, machines_per_rack=2, racks_per_power_domain=1),
        population=population,
        interference=SHARP,
        churn=replace(
            WORLD.churn, exits_per_instance_day=0.0, restarts_per_instance_day=0.0, drains_per_machine_day=0.0
        ),
        conditions=replace(WORLD.conditions, rack_access_log_sd=0.0, machine_access_log_sd=0.0, network_log_sd=0.0),
        recording=Recording((Window("last", 10_500.0, 10_800.0),)),
        **more,
    )


FREE = Power(cap_share=10.0, domain_budget_share=10.0)


@pytest.mark.parametrize("power", [FREE, Power()], ids=["free", "capped"])
def test_in_a_frozen_world_epochs_and_governors_that_look_every_second_end_in_the_same_state(power):
    """Under ondemand there may be several; the way decides which is reached."""
    rows = []
    for simulation in ("epochs", "events"):
        day = prepare(frozen(power=power, simulation=simulation, steps=Steps(load_log_sd=0.0)))
        rows.append(arrays(run_arm(day, nowhere(day)))["rows"])
    np.testing.assert_allclose(rows[1], rows[0], rtol=1e-9)


ALTERNATING = replace(FREE, governor=Governor("stall_aware", stall_threshold=0.35))


def test_an_epoch_is_half_of_each_of_the_two_states_between_which_a_governor_alternates():
    """Who is slowed down waits less, is let go and waits too much again: every second, not every five minutes.

    Neighbours that alternate may do so in step or in turn, so that a few residents of many end otherwise.
    """
    hows = ({"simulation": "events"}, {}, {"steps": Steps(load_log_sd=0.0, governor_s=300.0)})
    days = [prepare(frozen(power=ALTERNATING, **{"steps": Steps(load_log_sd=0.0), **how})) for how in hows]
    every_second, mixed, one_look = (
        arrays(run_arm(day, nowhere(day)))["rows"][:, slots.INSTRUCTIONS - slots.CYCLES] for day in days
    )
    off, off_by_one_look = abs(mixed / every_second - 1.0) > 0.005, abs(one_look / every_second - 1.0) > 0.005
    assert off.sum() < 0.5 * off_by_one_look.sum()
    assert mixed.sum() == pytest.approx(every_second.sum(), rel=1e-3)
    assert one_look.sum() != pytest.approx(every_second.sum(), rel=1e-3)


def lively(**more):
    return replace(WORLD, simulation="events", recording=Recording((), True, 1.0, True), **more)


def test_bits_do_not_depend_on_threads():
    day = prepare(lively())
    assert digest(day, nowhere(day), threads=1) == digest(day, nowhere(day), threads=2)


def test_what_stays_count_is_what_domains_count_and_stays_run_at_their_own_times():
    day = prepare(lively())
    found = arrays(run_arm(day, recorded(day)))
    columns = [slots.E_CYCLES, slots.E_INSTRUCTIONS, slots.E_MISSES, slots.E_CPU_S]
    sums = found["epoch_sums"].sum(axis=(0, 1))
    np.testing.assert_allclose(found["rows"].sum(axis=0)[:4], sums[columns], rtol=1e-12)
    np.testing.assert_allclose(found["trace"].sum(axis=0)[:4], sums[columns], rtol=1e-12)
    np.testing.assert_allclose(found["machine_rows"][:, :, slots.M_ENERGY_J].sum(), sums[slots.E_ENERGY_J], rtol=1e-12)
    timeline, epoch_s = day.timeline, day.world.epoch_s
    run_s = timeline.end_s - timeline.start_s
    assert sums[slots.E_INSTANCES] * epoch_s == pytest.approx(run_s.sum())
    counted = measure(day, nowhere(day))
    np.testing.assert_allclose(counted["wall_s"], run_s[counted["residence"]])
    assert (counted["wall_s"] % epoch_s > 1.0).any()
    assert (counted["cpu_s"] <= counted["wall_s"] * counted["quota_vcpu"] * (1.0 + 1e-9)).all()


def test_visits_in_every_epoch_are_together_what_the_counters_hold():
    day, arm = eventful("feature")
    machine, epoch = (cell.ravel() for cell in np.mgrid[0:4, 0:2])
    software = np.ones((day.jobs.count, slots.TRAITS))
    (block,) = run_arm(day, arm, visits=Visits(machine, epoch, software))
    there = block.visit_rows >= 0
    found = np.zeros((len(block.rows), 5))
    np.add.at(found, block.visit_rows[there], block.visit_sums[there])
    columns = [slots.CYCLES, slots.INSTRUCTIONS, slots.MISSES, slots.CPU_S, slots.CORE_CYCLES]
    np.testing.assert_allclose(found, block.rows[:, np.array(columns) - slots.CYCLES], rtol=1e-12)


def test_load_varies_within_five_minutes_as_it_does_for_the_median_instance_of_a_google_cell():
    """Each of the five steps is a fifth of the time: p90 and p10 are the highest and the lowest (Google 2019: 2.4)."""
    day = whole_hour(Steps())
    use = minute_use(day).reshape(-1, 5, day.timeline.job.size)
    ratio = use.max(axis=1) / use.min(axis=1)
    assert np.median(ratio) == pytest.approx(2.4, rel=0.1)
    assert minute_use(day).mean() == pytest.approx(minute_use(whole_hour(Steps(load_log_sd=0.0))).mean(), rel=0.03)


def whole_hour(steps):
    """Instances alone on machines of their own, far from their quota, for an hour; an epoch is a minute."""
    behaviour = Behaviour(diurnal_amplitude=0.0, utilisation=0.2, instance_log_sd=0.0, job_log_sd=0.0)
    world = World(
        seed=2,
        horizon_s=3600.0,
        epoch_s=60.0,
        fleet=Fleet(24),
        population=Population(24, 12, heavyweights=4, behaviour=behaviour),
        recording=Recording(instance_epoch_share=1.0),
        simulation="events",
        steps=steps,
    )
    day = prepare(world)
    alone = np.arange(day.machines.count)
    return day_of(world, day.machines, day.jobs, from_placement(world, alone.size, alone % day.jobs.count, alone))


def minute_use(day):
    """CPU seconds by minute and instance."""
    return arrays(run_arm(day, nowhere(day)))["trace"][:, 3].reshape(day.timeline.job.size, -1).T


def test_steps_of_load_have_mean_1():
    twin, day = EventDay.__new__(EventDay), whole_hour(Steps(load_log_sd=1.0))
    twin.world, one = day.world, type("Anybody", (), {"own_key": 7})
    factors = [twin.load_factor(one, step) for step in range(20_000)]
    assert np.mean(factors) == pytest.approx(1.0, abs=4 * math.sqrt((math.e - 1) / 20_000))
