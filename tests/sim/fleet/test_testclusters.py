"""Test clusters built on other machines keep what they promise to keep."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from models.fleet.inventory import miss_curve
from models.fleet.world import (
    Behaviour,
    Conditions,
    Feature,
    Fleet,
    Interference,
    Population,
    Power,
    Recording,
    Window,
    World,
)
from models.platforms import PLATFORMS
from sim.fleet.arms import everywhere, nowhere
from sim.fleet.day import prepare
from sim.fleet.experiment import measure, stays
from sim.fleet.testclusters import added, alone, first_fit, packed
from tests.helpers.reference_day import latency_factor

WORLD = World(
    seed=2,
    horizon_s=2400.0,
    fleet=Fleet(24, machines_per_rack=4, racks_per_power_domain=2),
    population=Population(60, 30, heavyweights=8),
    feature=Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"}),
)
STILL = Conditions(*[0.0] * 9)


@pytest.fixture(scope="module")
def day():
    return prepare(WORLD)


def test_measured_rows_are_counters_of_stays(day):
    table = measure(day, nowhere(day))
    assert set(table["residence"]) == set(day.order)
    where = stays(day).set_index("residence")["machine"]
    np.testing.assert_array_equal(table["machine"], where[table["residence"]])
    around = measure(day, nowhere(day), around=np.array([9]))
    assert set(around["machine"]) <= set(range(8, 16))
    same = table[table["machine"].isin(range(8, 16))].reset_index(drop=True)
    np.testing.assert_array_equal(around["cycles"], same["cycles"])


def test_a_measurement_around_no_machine_is_refused(day):
    with pytest.raises(ValueError, match="at least one machine"):
        measure(day, nowhere(day), around=np.zeros(0, np.int64))


def test_added_machines_keep_stays_and_change_conditions_of_their_own_only(day):
    which = np.array([1, 10, 11])
    new = added(day, which)
    assert new.timeline is day.timeline
    others = np.setdiff1d(np.arange(24), which)
    for name in ("rack", "latency_factor", "bandwidth_factor", "power_factor"):
        before, after = getattr(day.machines, name), getattr(new.machines, name)
        assert (after[which] != before[which]).all()
        np.testing.assert_array_equal(after[others], before[others])
    for name in ("platform", "power_domain", "vcpus", "memory_bytes"):
        np.testing.assert_array_equal(getattr(new.machines, name), getattr(day.machines, name))
    np.testing.assert_array_equal(new.phase, day.phase)
    np.testing.assert_array_equal(new.rack_access[:, : day.rack_access.shape[1]], day.rack_access)


def test_machines_outside_of_the_domains_of_added_ones_keep_every_bit(day):
    new = added(day, np.array([1]))
    before, after = (measure(each, nowhere(each), around=np.arange(8, 24)) for each in (day, new))
    np.testing.assert_array_equal(after["cycles"], before["cycles"])


def test_where_machines_do_not_differ_added_ones_are_the_old_ones():
    day = prepare(replace(WORLD, conditions=STILL))
    new = added(day, np.array([1, 10]))
    before, after = (measure(each, everywhere(each)) for each in (day, new))
    for name in ("cycles", "instructions", "requests"):
        np.testing.assert_array_equal(after[name], before[name])


@pytest.mark.parametrize("memory_bytes_per_vcpu", [2.5e9, 9e9])
def test_packed_machines_are_never_over_committed(memory_bytes_per_vcpu):
    population = replace(WORLD.population, memory_bytes_per_vcpu=memory_bytes_per_vcpu, allocated_share=0.4)
    day = prepare(replace(WORLD, population=population))
    chosen = np.unique(day.timeline.instance)[::2]
    new = packed(day, chosen)
    job, machine = new.timeline.job, new.timeline.machine
    assert job.size == chosen.size
    for name, capacity in (("instance_quota_vcpu", "vcpus"), ("instance_memory_bytes", "memory_bytes")):
        asked = np.bincount(machine, getattr(new.jobs, name)[job], new.machines.count)
        assert (asked <= getattr(new.machines, capacity) * (1 + 1e-12)).all()
    assert (np.bincount(machine, minlength=new.machines.count) > 0).all()


def test_packed_instances_keep_job_and_shard(day):
    chosen = np.unique(day.timeline.instance)[5:25]
    new = packed(day, chosen)
    first = np.unique(day.timeline.instance, return_index=True)[1][chosen]
    np.testing.assert_array_equal(new.timeline.job, day.timeline.job[first])
    np.testing.assert_array_equal(new.timeline.shard, day.timeline.shard[first])


@pytest.mark.parametrize("build", [packed, lambda day, nobody: alone(day, nobody, 3)])
def test_a_cluster_of_nobody_is_refused(day, build):
    with pytest.raises(ValueError, match="at least one instance, got none"):
        build(day, np.zeros(0, np.int64))


@given(st.lists(st.tuples(st.floats(0.1, 1.0), st.floats(0.1, 1.0)), min_size=1, max_size=40))
def test_first_fit_uses_the_first_bin_with_room_for_all_resources(sizes):
    size = np.array(sizes)
    where = first_fit(size, np.ones(2))
    order = np.argsort(-size[:, 0], kind="stable")
    for k, item in enumerate(order):
        for earlier in range(where[item]):
            inside = [other for other in order[:k] if where[other] == earlier]
            assert (size[inside].sum(axis=0) + size[item] > 1 - 1e-9).any()
    assert set(where) == set(range(where.max() + 1))
    filled = np.stack([np.bincount(where, column) for column in size.T])
    assert (filled <= 1 + 1e-9).all()


def test_alone_means_alone(day):
    new = alone(day, np.array([4, 7]), copies=3)
    np.testing.assert_array_equal(np.bincount(new.timeline.machine), np.ones(6))
    np.testing.assert_array_equal(new.timeline.job, [4, 4, 4, 7, 7, 7])
    np.testing.assert_array_equal(new.timeline.shard, [0, 1, 2, 0, 1, 2])


def alone_in_closed_form(jobs, job, clock_hz):
    """CPI of a saturated instance alone: the whole cache is its own, and latency follows from its own traffic."""
    sheet = PLATFORMS["haswell_2698v3"]
    used = jobs.utilisation[job] * jobs.instance_quota_vcpu[job]
    traits = [column[[job]] for column in (jobs.memory_accesses_per_instruction, jobs.working_set_bytes)]
    mpi = miss_curve(*traits, jobs.streaming_share[[job]])(sheet.llc_bytes)[0]
    core = jobs.core_cpi[job] * (1 + jobs.smt_slowdown[job] * (used / sheet.vcpus) ** 2)

    def cpi(latency_s):
        return core + mpi / jobs.overlap[job] * latency_s * clock_hz

    def gap(latency_s):
        misses_per_s = used * clock_hz / cpi(latency_s) * mpi
        traffic = misses_per_s * 64 * 1.3 / (0.75 * sheet.memory_bandwidth_bytes_per_s)
        return sheet.memory_latency_s * latency_factor(traffic) - latency_s

    return cpi(brentq(gap, sheet.memory_latency_s, 30 * sheet.memory_latency_s, xtol=1e-18))


def test_an_instance_alone_has_the_cpi_of_one_scalar_equation():
    steady = Behaviour(
        input_log_sd=0.0,
        instance_log_sd=0.0,
        job_log_sd=0.0,
        diurnal_amplitude=0.0,
        spin_share=0.0,
        latency_critical_share=0.0,
        prefetched_share=0.0,
    )
    world = replace(
        WORLD,
        population=replace(WORLD.population, behaviour=steady),
        conditions=STILL,
        power=Power(cap_share=10.0, domain_budget_share=10.0),
        interference=Interference(tolerance=1e-12, max_iterations=2000, sockets=False, sibling_relief=0.0),
        recording=Recording((Window("later", 300.0, 2400.0),)),
    )
    day = prepare(world)
    jobs = np.arange(day.jobs.count)
    one = alone(day, jobs, copies=1)
    table = measure(one, nowhere(one)).sort_values("job")
    clocks = table["mean_frequency_hz"]
    assert clocks.between(2.79e9, 3.61e9).all()
    expected = [alone_in_closed_form(day.jobs, job, clock_hz) for job, clock_hz in zip(jobs, clocks, strict=True)]
    np.testing.assert_allclose(table["cycles"] / table["instructions"], expected, rtol=1e-8)
