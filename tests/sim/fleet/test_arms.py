"""A day is its slow twin's, the same to the last bit for any threads and blocks, and changes only where it should."""

import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InputError
from models.fleet.inventory import build_jobs, build_machines
from models.fleet.processors import PROCESSORS, peak_power_w
from models.fleet.world import (
    Behaviour,
    Crossover,
    Feature,
    Fleet,
    Interference,
    Population,
    Power,
    Recording,
    Rollout,
    Window,
    World,
)
from models.platforms import PLATFORMS
from scenarios.runs.parallel import processes
from sim.fleet import arms, kernel, slots
from sim.fleet.arms import NEVER, crossover, everywhere, nowhere, on_instances, on_machines, recorded, run_arm
from sim.fleet.day import day_of, prepare, window_of_epoch
from sim.fleet.layout import Residents
from sim.fleet.timeline import from_placement
from tests.helpers.reference_day import ReferenceDay
from tests.helpers.small_days import (
    EPOCH_S,
    SERVICE,
    SHARP,
    TWINS,
    WORLD,
    arrays,
    digest,
    everything,
    scattered,
    small_and_busy,
)


@cache
def twins(how):
    """A day, an arm and the slow twin of both."""
    day, arm = small_and_busy(how)
    return day, arm, ReferenceDay(day, arm)


@pytest.mark.parametrize("how", TWINS)
def test_a_day_is_that_of_the_slow_and_readable_twin(how):
    day, arm, twin = twins(how)
    found = arrays(run_arm(day, arm))
    stay = np.repeat(day.order, np.diff(day.row_start))
    assert {*zip(stay, day.row_window, strict=True)} == set(twin.counters)
    rows = [twin.counters[key] for key in zip(stay, day.row_window, strict=True)]
    np.testing.assert_allclose(found["rows"], rows, rtol=1e-9)
    trace = [
        twin.stay_epochs[one, epoch]
        for one in day.order
        for epoch in range(day.timeline.start_epoch[one], day.timeline.end_epoch[one])
    ]
    np.testing.assert_allclose(found["trace"], trace, rtol=1e-9)
    cells = [(machine, epoch) for machine in range(4) for epoch in range(10)]
    machines = np.array([twin.machine_epochs[cell] for cell in cells]).reshape(4, 10, 4)
    np.testing.assert_allclose(found["machine_trace"], machines, rtol=1e-9)
    for (machine, window), energy_j in twin.energy_j.items():
        assert found["machine_rows"][machine, window] == pytest.approx([energy_j, twin.capped[machine, window]])
    np.testing.assert_allclose(found["epoch_sums"].sum(axis=0)[:, slots.E_ENERGY_J], twin.epoch_energy_j, rtol=1e-9)


def test_visits_in_every_epoch_are_together_what_the_counters_hold():
    """Cycles, instructions, misses, CPU time and cycles but for stalls, which are fewer than all cycles."""
    day, arm, twin = twins("plain")
    machine, epoch = (cell.ravel() for cell in np.mgrid[0:4, 0:10])
    software = day_software(day)
    (block,) = run_arm(day, arm, visits=arms.Visits(machine, epoch, software))
    there = block.visit_rows >= 0
    found = np.zeros((len(block.rows), 5))
    np.add.at(found, block.visit_rows[there], block.visit_sums[there])
    columns = [slots.CYCLES, slots.INSTRUCTIONS, slots.MISSES, slots.CPU_S, slots.CORE_CYCLES]
    np.testing.assert_allclose(found, block.rows[:, np.array(columns) - slots.CYCLES], rtol=1e-12)
    stay = day.order[np.searchsorted(day.row_start, block.visit_rows, side="right") - 1]
    expected = [twin.stay_epochs[stay[at, slot], epoch[at]] for at, slot in np.argwhere(there)]
    np.testing.assert_allclose(block.visit_sums[there], expected, rtol=1e-9)
    cycles, core = block.visit_sums[there][:, [0, 4]].T
    assert (core < cycles).all()


def day_software(day):
    """Factors of new code that change nothing."""
    return np.ones((day.jobs.count, slots.TRAITS))


@pytest.mark.parametrize("how", ["capped", "budget", "ondemand", "stall_aware"])
def test_governors_and_caps_have_something_to_do_there(how):
    states, free = (arrays(run_arm(*small_and_busy(each)))["machine_trace"][:, :, 0] for each in (how, "plain"))
    assert (states < free).mean() >= 0.1
    assert np.unique(states).size > 3


def test_threads_wait_for_each_other_where_quotas_are_overcommitted_and_nowhere_else():
    full = arrays(run_arm(*small_and_busy("overcommitted")))
    assert (full["machine_trace"][:, :, 2] > 1.0 - 1e-9).any()
    assert (full["rows"][:, slots.WAIT_S - slots.CYCLES] > 0.0).mean() > 0.1
    plain = arrays(run_arm(*small_and_busy("plain")))["rows"]
    assert (plain[:, slots.WAIT_S - slots.CYCLES] == 0.0).all()


def test_latency_critical_jobs_run_first_and_a_class_shares_by_quota():
    residents = Residents(np.zeros((slots.FIELDS, 5)), np.zeros((slots.MARKS, 5), np.int64), 5)
    residents.hot[slots.QUOTA] = 20.0, 10.0, 30.0, 10.0, 40.0
    residents.hot[slots.USE] = 15.0, 10.0, 30.0, 2.0, 40.0
    residents.hot[slots.CRITICAL, :2] = 1.0
    assert kernel._ration(residents, 64.0) == pytest.approx(64.0)
    assert residents.hot[slots.USE].tolist() == pytest.approx([15.0, 10.0, 37 * 3 / 7, 2.0, 37 * 4 / 7])
    least = np.array([0.0, 0.0, 30.0 - 37 * 3 / 7, 0.0, 40.0 - 37 * 4 / 7])
    assert (residents.hot[slots.QUEUED] >= least - 1e-12).all()
    runnable = np.random.default_rng(1).binomial([20, 10, 30, 10, 40], [0.75, 1.0, 1.0, 0.2, 1.0], (200_000, 5))
    surplus = np.maximum(0, runnable.sum(axis=1) - 64).mean()
    assert residents.hot[slots.QUEUED].sum() == pytest.approx(surplus, rel=0.02)


def test_threads_are_shared_where_those_wanted_are_too_many_by_rounding_alone():
    """Everybody is content with a level at which the sum is a little above what is free."""
    residents = Residents(np.zeros((slots.FIELDS, 3)), np.zeros((slots.MARKS, 3), np.int64), 3)
    residents.hot[slots.USE] = wanted = 0.8159425458905782, 0.20655281208516554, 0.3929852530929242
    residents.hot[slots.QUOTA] = *wanted[:2], 1.4520139760889912
    free = float(np.nextafter(residents.hot[slots.USE].sum(), 0.0))
    assert kernel._share_threads.py_func(residents, 0.0, free) == free
    assert residents.hot[slots.USE].tolist() == list(wanted)
    assert residents.hot[slots.QUEUED].tolist() == [0.0] * 3


def test_bits_do_not_depend_on_threads_or_blocks(monkeypatch):
    day = prepare(replace(WORLD, recording=Recording((), True, 0.5, True)))
    expected = digest(day, nowhere(day), threads=1)
    assert digest(day, nowhere(day), threads=2) == expected
    for machines in (1, 16, 10_000):
        monkeypatch.setattr(arms, "MACHINES_IN_FLIGHT", machines)
        assert digest(day, nowhere(day)) == expected


def test_with_every_mechanism_bits_do_not_depend_on_threads_blocks_or_the_process(monkeypatch):
    simulations = "epochs", "events"
    expected = [everything(simulation, threads=1) for simulation in simulations]
    assert expected[0] != expected[1]
    with processes(1) as elsewhere:
        assert list(elsewhere.map(everything, simulations)) == expected
    assert [everything(simulation, threads=2) for simulation in simulations] == expected
    monkeypatch.setattr(arms, "MACHINES_IN_FLIGHT", 8)
    assert [everything(simulation) for simulation in simulations] == expected


def test_bits_are_the_same_in_another_process():
    script = (
        "from sim.fleet.arms import nowhere\n"
        "from sim.fleet.day import prepare\n"
        "from tests.helpers.small_days import WORLD, digest\n"
        "day = prepare(WORLD)\nprint(digest(day, nowhere(day))['rows'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=sys.path[0])
    day = prepare(WORLD)
    assert done.stdout.strip() == digest(day, nowhere(day))["rows"]


def test_another_seed_is_another_day():
    days = [prepare(replace(WORLD, seed=seed)) for seed in (3, 4)]
    assert digest(days[0], nowhere(days[0]))["rows"] != digest(days[1], nowhere(days[1]))["rows"]


def test_only_the_asked_domains_are_simulated_with_the_same_bits():
    day = prepare(WORLD)
    every = {block.machines.start: block for block in run_arm(day, nowhere(day), around=np.arange(24))}
    (some,) = run_arm(day, nowhere(day), around=np.array([9, 11]))
    assert some.machines == slice(8, 16)
    np.testing.assert_array_equal(some.rows, every[8].rows)
    together = arrays(run_arm(day, nowhere(day)))["rows"]
    np.testing.assert_array_equal(np.concatenate([every[at].rows for at in (0, 8, 16)]), together)


def test_a_higher_cap_never_lowers_a_frequency():
    def states(cap_share):
        power = Power(cap_share=cap_share, domain_budget_share=10.0)
        behaviour = Behaviour(utilisation=0.9)
        population = replace(WORLD.population, behaviour=behaviour)
        recording = Recording((), True, 0.0, True)
        world = replace(WORLD, power=power, population=population, recording=recording, interference=SHARP)
        day = prepare(world)
        return arrays(run_arm(day, nowhere(day)))["machine_trace"][:, :, 0]

    caps = [states(share) for share in (0.3, 0.5, 0.6, 0.7, 0.9, 10.0)]
    assert all((low <= high * (1 + 1e-9)).all() for low, high in pairwise(caps))
    assert (caps[0] < caps[-1]).mean() > 0.9
    assert (caps[-1] >= 2.8e9).all()


def test_a_domain_keeps_its_budget_once_it_has_learnt_it():
    population = replace(WORLD.population, behaviour=Behaviour(utilisation=0.9))
    world = replace(WORLD, horizon_s=60 * EPOCH_S, population=population, power=Power(domain_budget_share=0.65))
    loose = replace(world, power=Power(domain_budget_share=10.0))
    energy = []
    for each in (world, loose):
        day = prepare(each)
        sums = arrays(run_arm(day, nowhere(day)))["epoch_sums"][:, 20:, slots.E_ENERGY_J]
        peak_w = 8 * peak_power_w(PLATFORMS["haswell_2698v3"], PROCESSORS["haswell_2698v3"].shares)
        energy.append(sums.mean(axis=1) / EPOCH_S / peak_w)
    assert (energy[0] < 0.66).all()
    assert (energy[1] > 0.68).all()


def test_what_was_counted_outside_of_windows_is_in_none():
    """Two windows with gaps before, between and after hold exactly what their epochs held."""
    windows = (Window("a", 600.0, 1500.0), Window("b", 2100.0, 3000.0))
    day = prepare(replace(WORLD, recording=Recording(windows, True, 1.0)))
    found = arrays(run_arm(day, nowhere(day)))
    sums = found["epoch_sums"].sum(axis=0)
    columns = [slots.E_CYCLES, slots.E_INSTRUCTIONS, slots.E_MISSES, slots.E_CPU_S]
    for number, epochs in ((0, slice(2, 5)), (1, slice(7, 10))):
        counted = found["rows"][day.row_window == number, :4].sum(axis=0)
        np.testing.assert_allclose(counted, sums[epochs][:, columns].sum(axis=0), rtol=1e-12)
    whole = prepare(WORLD)
    np.testing.assert_array_equal(arrays(run_arm(whole, nowhere(whole)))["epoch_sums"], found["epoch_sums"])


def test_windows_may_come_in_any_order():
    windows = (Window("a", 0.0, 1500.0), Window("b", 1500.0, 3600.0))
    days = [prepare(replace(WORLD, recording=Recording(order))) for order in (windows, windows[::-1])]
    assert digest(days[0], nowhere(days[0])) == digest(days[1], nowhere(days[1]))


def test_overlapping_windows_are_refused():
    windows = (Window("day", 0.0, 3600.0), Window("peak", 900.0, 1800.0))
    with pytest.raises(ValueError, match="window peak starts at 900 s, before day ends at 3600 s"):
        prepare(replace(WORLD, recording=Recording(windows)))


@given(st.lists(st.integers(0, 12), min_size=2, max_size=8, unique=True))
def test_every_epoch_is_in_the_window_that_holds_its_middle(cuts):
    edges = sorted(cuts)
    windows = [Window(str(a), a * EPOCH_S, b * EPOCH_S) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    world = replace(WORLD, recording=Recording(tuple(windows)))
    for epoch, window in enumerate(window_of_epoch(world)):
        inside = [k for k, w in enumerate(windows) if w.start_s < (epoch + 0.5) * EPOCH_S < w.end_s]
        assert inside == ([window] if window >= 0 else [])


def test_one_machine_is_a_fleet():
    day = prepare(replace(WORLD, fleet=Fleet(1), population=Population(3, 2, heavyweights=1)))
    found = arrays(run_arm(day, nowhere(day)))
    assert found["epoch_sums"].shape == (1, 12, slots.EPOCH_COLUMNS)
    assert (found["rows"][:, 0] > 0).all()


def test_empty_machines_draw_idle_power_alone():
    world = replace(WORLD, recording=Recording((), True, 0.0, True))
    machines = build_machines(world)
    jobs = build_jobs(world, machines)
    nobody = np.zeros(0, np.int64)
    day = day_of(world, machines, jobs, from_placement(world, machines.count, nobody, nobody))
    found = arrays(run_arm(day, nowhere(day)))
    assert found["rows"].shape == (0, slots.SUMS)
    np.testing.assert_array_equal(found["machine_trace"][:, :, 1], 90.0)
    assert not found["epoch_sums"][:, :, slots.E_RESIDUAL].any()


def test_stays_shorter_than_an_epoch_leave_no_trace():
    day = scattered(WORLD, 100)
    short = day.timeline.start_epoch == day.timeline.end_epoch
    assert short.any()
    assert not np.isin(np.flatnonzero(short), day.order).any()


def test_services_alone_are_a_population():
    world = replace(WORLD, population=Population(0, 0, heavyweights=0, services=(SERVICE,)))
    day = prepare(world)
    assert day.jobs.names == ("shop",)
    assert (arrays(run_arm(day, nowhere(day)))["rows"][:, : slots.WAIT_S - slots.CYCLES] > 0).all()


def test_the_day_at_the_usual_tolerance_is_close_to_the_solved_one():
    """The warm start makes up for few iterations: instructions per cycle within 1%, the mean of them within 1e-4."""
    ipc = []
    for interference in (Interference(), SHARP):
        day = prepare(replace(WORLD, interference=interference))
        rows = arrays(run_arm(day, nowhere(day)))["rows"]
        ipc.append(rows[:, 1] / rows[:, 0])
    np.testing.assert_allclose(ipc[0], ipc[1], rtol=0.01)
    assert ipc[0].mean() == pytest.approx(ipc[1].mean(), rel=1e-4)


# <<< tests/sim/fleet/test_arms.py: import numpy as np
FLEET, POPULATION = Fleet(20), Population(60, 50)


@pytest.fixture(scope="module")
def day():
    feature = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
    return prepare(World(3, 900.0, 300.0, FLEET, POPULATION, feature=feature))


def test_nothing_or_everything_has_the_feature_all_day(day):
    assert (nowhere(day).machine_from == NEVER).all()
    assert (nowhere(day).stay_from == NEVER).all()
    assert not everywhere(day).machine_from.any()
    assert not everywhere(day).stay_from.any()


def test_the_recorded_arm_is_that_of_the_roll_out(day):
    arm = recorded(day)
    assert int((arm.machine_from == 0).sum()) == 10
    np.testing.assert_array_equal(arm.stay_from, arm.machine_from[day.timeline.machine])


def test_machines_have_the_feature_with_all_that_runs_there(day):
    arm = on_machines(day, np.array([4, 7]), from_epoch=2)
    assert np.flatnonzero(arm.machine_from == 2).tolist() == [4, 7]
    np.testing.assert_array_equal(arm.stay_from == 2, np.isin(day.timeline.machine, [4, 7]))
    with pytest.raises(IndexError):
        on_machines(day, np.array([20]))


def test_instances_have_it_wherever_they_stay(day):
    arm = on_instances(day, np.array([4, 7]))
    assert np.unique(day.timeline.instance[arm.stay_from == 0]).tolist() == [4, 7]
    assert (arm.machine_from == NEVER).all()


def test_in_a_crossover_every_machine_has_it_half_of_the_periods(day):
    feature = Feature("calm", rollout=Rollout(1.0, crossover=Crossover(period_s=300.0)))
    switching = prepare(World(3, 1200.0, 300.0, FLEET, POPULATION, feature=feature))
    assert set(crossover(switching).switched.sum(axis=1)) == {2}
    assert recorded(switching).switched is not None
    with pytest.raises(InputError, match="has no crossover"):
        crossover(day)
