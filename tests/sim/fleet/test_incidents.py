"""Incidents of machines and regime shifts of jobs come as often as asked for, act where they are, and nowhere else."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from models.fleet.world import Feature, Incidents, Interference, Power, Recording, Software, World
from sim.fleet.arms import everywhere, nowhere, run_arm
from sim.fleet.day import prepare
from sim.fleet.experiment import experiment
from sim.fleet.incidents import job_shifts, levels, machine_spells
from tests.helpers.small_days import EPOCH_S, WORLD, arrays, digest

STRUCK = Incidents(8.0, 0.5, 8.0, 0.2, 900.0)
ALONE = Interference(llc=False, bandwidth=False, smt=False)
FREE = Power(cap_share=10.0, domain_budget_share=10.0, turbo=False)


def quiet(**more):
    """Residents share nothing and nothing holds clocks down: what is slower is slower by itself."""
    return replace(WORLD, interference=ALONE, power=FREE, recording=Recording((), True, 1.0, True), **more)


def run(world):
    day = prepare(world)
    return day, arrays(run_arm(day, nowhere(day)))


def traced(day):
    """Job, machine and epoch of each row of a trace in which every stay is."""
    stays = day.order
    length = (day.timeline.end_epoch - day.timeline.start_epoch)[stays]
    epoch = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length - day.timeline.start_epoch[stays], length)
    return (np.repeat(column[stays], length) for column in (day.timeline.job, day.timeline.machine)), epoch


def under_way(spells, machines, epochs, resource):
    """Machine by epoch, the factor of all incidents of a resource."""
    factor = np.ones((machines, epochs))
    for machine, what, start, end, size in spells:
        if what == resource:
            factor[machine, start:end] *= size
    return factor


@pytest.mark.statistical
def test_incidents_come_at_their_rate_last_their_mean_and_are_as_large_as_asked_for():
    """Number, share of time in the first and in a late epoch, mean length and size, within 4.5 standard errors each."""
    machines, world = 40_000, World(incidents=Incidents(0.5, 0.3, 0.25, 0.1, 3600.0))
    spells = machine_spells(world, machines)
    for resource, (rate, log_sd) in enumerate(((0.5, 0.3), (0.25, 0.1))):
        its = spells[spells["resource"] == resource]
        begun = (its["start"] > 0).sum()
        expected = machines * rate * 287 / 288
        assert abs(begun - expected) < 4.5 * np.sqrt(expected)
        for epoch in (0, 200):
            going = ((its["start"] <= epoch) & (epoch < its["end"])).sum()
            expected = machines * rate / 24.0
            assert abs(going - expected) < 4.5 * np.sqrt(expected)
        early = its[(its["start"] > 0) & (its["start"] < 100)]
        length_s = EPOCH_S * (early["end"] - early["start"])
        assert abs(length_s.mean() - 3600.0) < 4.5 * 3600.0 / np.sqrt(early.size)
        sizes = np.log(its["factor"])
        assert (sizes > 0).all()
        assert abs((sizes**2).mean() / log_sd**2 - 1) < 4.5 * np.sqrt(2 / its.size)


@pytest.mark.statistical
def test_regime_shifts_come_at_their_rate_and_stay():
    world, jobs = World(incidents=Incidents(shifts_per_job_day=0.2, shift_log_sd=0.1)), 20_000
    shifts = job_shifts(world, jobs)
    assert abs(shifts.size - 0.2 * jobs) < 4.5 * np.sqrt(0.2 * jobs)
    logs = np.log(shifts["factor"])
    assert abs(logs.mean()) < 4.5 * 0.1 / np.sqrt(shifts.size)
    assert abs((logs**2).mean() / 0.01 - 1) < 4.5 * np.sqrt(2 / shifts.size)
    few = shifts[shifts["job"] < 200]
    level = levels(few, world.epochs, 200)
    for job in range(200):
        its = few[few["job"] == job]
        assert level[-1, job] == pytest.approx(np.prod(its["factor"]))
        assert set(np.flatnonzero(np.diff(level[:, job])) + 1) == set(its["epoch"]) - {0}


def test_another_machine_changes_no_incident_of_those_before_it():
    world = World(incidents=STRUCK)
    few, many = machine_spells(world, 50), machine_spells(world, 60)
    np.testing.assert_array_equal(few, many[many["machine"] < 50])


def test_incidents_and_shifts_of_no_size_change_no_bit():
    day, struck = (
        prepare(replace(WORLD, incidents=given)) for given in (Incidents(), Incidents(9, 0, 9, 0, 900, 9, 0))
    )
    assert struck.spells.size
    assert struck.shifts.size
    assert digest(struck, nowhere(struck)) == digest(day, nowhere(day))


def test_machines_without_an_incident_are_the_same_to_the_last_bit_and_others_slower_by_its_factor():
    """Memory: the waiting part of CPI is longer by the factor. Clock: cycles of a busy second are fewer by it."""
    (day, off), (struck, on) = run(quiet()), run(quiet(incidents=STRUCK))
    (_, machine), epoch = traced(day)
    memory, clock = (under_way(struck.spells, 24, 12, resource)[machine, epoch] for resource in (0, 1))
    never = ~np.isin(machine, struck.spells["machine"])
    assert 0.05 < never.mean() < 0.95
    assert (memory > 1).any()
    assert (clock > 1).any()
    np.testing.assert_array_equal(on["trace"][never], off["trace"][never])
    cycles, instructions, _, cpu_s, core = np.moveaxis(np.array([off["trace"], on["trace"]]), 2, 0)
    hz = cycles / cpu_s
    np.testing.assert_allclose(hz[1] * clock, hz[0], rtol=1e-12)
    waiting_s = (cycles - core) / instructions / hz
    np.testing.assert_allclose(waiting_s[1], waiting_s[0] * memory, rtol=1e-9)


def test_a_clock_does_not_fall_below_the_lowest_of_its_platform():
    day, struck = run(quiet(incidents=Incidents(clock_per_machine_day=200.0, clock_log_sd=2.0)))
    assert struck["machine_trace"][:, :, 0].min() == 1.2e9
    assert day.spells["factor"].max() > 10


def test_all_instances_of_a_job_need_more_cycles_by_its_shift_and_those_of_others_the_same():
    (day, off), (struck, on) = run(quiet()), run(quiet(incidents=Incidents(shifts_per_job_day=20.0, shift_log_sd=0.2)))
    (job, _), epoch = traced(day)
    level = levels(struck.shifts, 12, day.jobs.count)[epoch, job]
    assert 0.1 < (level == 1).mean() < 0.9
    cpi = [found["trace"][:, 0] / found["trace"][:, 1] for found in (off, on)]
    np.testing.assert_allclose(cpi[1], cpi[0] * level, rtol=1e-9)


def test_arms_of_a_feature_meet_the_same_incidents():
    """New code that changes nothing changes nothing, whatever happens to machines and jobs."""
    same = Feature("none", software=(Software(("heavyweight-01",)),))
    day = prepare(replace(WORLD, incidents=replace(STRUCK, shifts_per_job_day=9.0), feature=same))
    assert digest(day, nowhere(day)) == digest(day, everywhere(day))


def test_tables_of_the_truth_say_which_machines_and_jobs_had_one(tmp_path):
    world = replace(WORLD, incidents=replace(STRUCK, shifts_per_job_day=9.0))
    day = experiment(world, tmp_path).day
    incidents, shifts = (pd.read_parquet(tmp_path / f"truth_{name}.parquet") for name in ("incidents", "shifts"))
    assert incidents["machine"].tolist() == day.spells["machine"].tolist()
    assert set(incidents["resource"]) == {"memory", "clock"}
    assert (incidents["end_s"] > incidents["start_s"]).all()
    assert (incidents["end_s"] <= world.horizon_s).all()
    np.testing.assert_array_equal(shifts[["job", "factor"]], [[job, size] for job, _, size in day.shifts])
    assert (shifts["start_s"] % world.epoch_s == 0).all()
