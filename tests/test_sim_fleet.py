"""A day is its slow twin's, the same to the last bit for any threads and blocks, and changes only where it should."""

import hashlib
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.jobs import build_jobs
from models.machines import build_machines
from models.scenario import (
    Behaviour,
    Churn,
    Conditions,
    Crossover,
    Feature,
    Fleet,
    Governor,
    Interference,
    Population,
    Power,
    Recording,
    Rollout,
    Service,
    Software,
    Window,
    World,
)
from sim import fleet, parameters, slots
from sim.fleet import (
    NEVER,
    Arm,
    crossover,
    day_of,
    everywhere,
    nowhere,
    on_instances,
    on_machines,
    prepare,
    recorded,
    run_arm,
    window_of_epoch,
)
from sim.rollout import plan_crossover
from sim.timeline import from_placement
from tests.reference_day import ReferenceDay

EPOCH_S, SHARP = 300.0, Interference(tolerance=1e-13, max_iterations=5000)
WORLD = World(
    seed=3,
    horizon_s=12 * EPOCH_S,
    fleet=Fleet(24, machines_per_rack=4, racks_per_power_domain=2),
    population=Population(60, 30, heavyweights=8),
    churn=Churn(exits_per_instance_day=2.0, restarts_per_instance_day=8.0, drains_per_machine_day=3.0),
)
SERVICE = Service("shop", 6, 4.0, 0.9, 0.01, network_s_per_request=2e-4, open_load=True)
UPGRADE = Feature("upgrade", {"haswell_2698v3": "broadwell_2698v4"})
DVFS = Feature("dvfs", governor=Governor("stall_aware"))
REBUILT = (Software(("heavyweight-01", "shop"), 0.9, 0.8, 1.3, 0.5),)


def arrays(blocks):
    """All of a day's arrays, blocks put together."""
    blocks = list(blocks)
    names = ("rows", "machine_rows", "epoch_sums", "trace", "machine_trace")
    return {name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}


def digest(day, arm, **how):
    found = arrays(run_arm(day, arm, **how))
    return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in found.items()}


def scattered(world, stays, seed=1):
    """A day of random stays, some shorter than an epoch, and machines that are empty at times."""
    rng = np.random.default_rng(seed)
    machines = build_machines(world)
    jobs = build_jobs(world, machines)
    start = rng.integers(0, world.epochs, stays)
    end = np.minimum(world.epochs, start + rng.integers(0, 8, stays))
    job = rng.integers(0, jobs.count, stays)
    timeline = from_placement(world, machines.count, job, rng.integers(0, machines.count, stays))
    times = {"start_s": start * EPOCH_S, "end_s": end * EPOCH_S}
    return day_of(world, machines, jobs, replace(timeline, start_epoch=start, end_epoch=end, **times))


TWINS = {
    "plain": {},
    "capped": {"power": Power(cap_share=0.36)},
    "budget": {"power": Power(cap_share=0.42, domain_budget_share=0.34)},
    "ondemand": {"power": Power(Governor("ondemand", ondemand_threshold=0.3))},
    "stall_aware": {"power": Power(Governor("stall_aware", stall_threshold=0.4), cap_share=0.4)},
    "partitioned": {"interference": replace(SHARP, llc=False)},
    "idle memory": {"interference": replace(SHARP, bandwidth=False)},
    "no siblings": {"interference": replace(SHARP, smt=False)},
    "gaps": {"recording": Recording((Window("b", 2100.0, 2700.0), Window("a", 300.0, 1500.0)), True, 1.0, True)},
    "feature": {"feature": replace(UPGRADE, governor=Governor("stall_aware"), software=REBUILT)},
    "wild": {"conditions": Conditions(machine_access_log_sd=1.5)},
}


def small_and_busy(how):
    """Four machines with 36 stays, the feature switched on at different times; a day and an arm."""
    world = World(
        seed=7,
        horizon_s=10 * EPOCH_S,
        fleet=Fleet(4, {"haswell_2698v3": 0.75, "skylake_6148": 0.25}, 1, 2),
        population=Population(10, 5, heavyweights=2, services=(SERVICE,)),
        interference=SHARP,
        recording=Recording((), True, 1.0, True),
    )
    stays = np.arange(36)
    arm = Arm(np.array([4, 0, NEVER, 9]), np.where(stays % 3 == 0, NEVER, stays % 7))
    return scattered(replace(world, **TWINS[how]), 36), arm


@pytest.mark.parametrize("how", TWINS)
def test_a_day_is_that_of_the_slow_and_readable_twin(how):
    day, arm = small_and_busy(how)
    twin, found = ReferenceDay(day, arm), arrays(run_arm(day, arm))
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


SWITCHING = {
    "governor": Feature("x", governor=Governor("stall_aware", stall_threshold=0.4)),
    "code": Feature("x", software=REBUILT),
    "all": replace(UPGRADE, governor=Governor("stall_aware", stall_threshold=0.4), software=REBUILT),
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


HOURLY = Rollout(0.75, start_s=600.0, crossover=Crossover(period_s=600.0, pairs=2))


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


def test_visits_in_every_epoch_are_together_what_the_counters_hold():
    """Cycles, instructions, misses, CPU time and cycles but for stalls, which are fewer than all cycles."""
    day, arm = small_and_busy("plain")
    machine, epoch = (cell.ravel() for cell in np.mgrid[0:4, 0:10])
    software = day_software(day)
    (block,) = run_arm(day, arm, visits=fleet.Visits(machine, epoch, software))
    there = block.visit_rows >= 0
    found = np.zeros((len(block.rows), 5))
    np.add.at(found, block.visit_rows[there], block.visit_sums[there])
    columns = [slots.CYCLES, slots.INSTRUCTIONS, slots.MISSES, slots.CPU_S, slots.CORE_CYCLES]
    np.testing.assert_allclose(found, block.rows[:, np.array(columns) - slots.CYCLES], rtol=1e-12)
    twin = ReferenceDay(day, arm)
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


def test_bits_do_not_depend_on_threads_or_blocks(monkeypatch):
    day = prepare(replace(WORLD, recording=Recording((), True, 0.5, True)))
    expected = digest(day, nowhere(day), threads=1)
    assert digest(day, nowhere(day), threads=2) == expected
    for machines in (1, 16, 10_000):
        monkeypatch.setattr(fleet, "MACHINES_IN_FLIGHT", machines)
        assert digest(day, nowhere(day)) == expected


def test_bits_are_the_same_in_another_process():
    script = (
        "from tests.test_sim_fleet import WORLD, digest, nowhere, prepare\n"
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


UNCHANGED = {
    "platform by itself": Feature("x", {"haswell_2698v3": "haswell_2698v3"}),
    "same governor": Feature("x", governor=Governor()),
    "same code": Feature("x", software=(Software(("heavyweight-01",)),)),
}


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


def test_a_higher_cap_never_lowers_a_frequency():
    def states(cap_share):
        power = Power(cap_share=cap_share, domain_budget_share=10.0)
        behaviour = Behaviour(utilisation=0.9)
        population = replace(WORLD.population, behaviour=behaviour)
        day = prepare(replace(WORLD, power=power, population=population, recording=Recording((), True, 0.0, True)))
        return arrays(run_arm(day, nowhere(day)))["machine_trace"][:, :, 0]

    caps = [states(share) for share in (0.3, 0.5, 0.6, 0.7, 0.9, 10.0)]
    assert all((low <= high).all() for low, high in pairwise(caps))
    assert (caps[0] < caps[-1]).mean() > 0.9
    assert (caps[-1] == 2.8e9).all()


def test_a_domain_keeps_its_budget_once_it_has_learnt_it():
    population = replace(WORLD.population, behaviour=Behaviour(utilisation=0.9))
    world = replace(WORLD, horizon_s=60 * EPOCH_S, population=population, power=Power(domain_budget_share=0.65))
    loose = replace(world, power=Power(domain_budget_share=10.0))
    energy = []
    for each in (world, loose):
        day = prepare(each)
        sums = arrays(run_arm(day, nowhere(day)))["epoch_sums"][:, 20:, slots.E_ENERGY_J]
        energy.append(sums.mean(axis=1) / EPOCH_S / (8 * 319.5))
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
    assert (arrays(run_arm(day, nowhere(day)))["rows"] > 0).all()


def test_the_day_at_the_usual_tolerance_is_close_to_the_solved_one():
    """The warm start makes up for few iterations: instructions per cycle within 1%, the mean of them within 1e-4."""
    ipc = []
    for interference in (Interference(), SHARP):
        day = prepare(replace(WORLD, interference=interference))
        rows = arrays(run_arm(day, nowhere(day)))["rows"]
        ipc.append(rows[:, 1] / rows[:, 0])
    np.testing.assert_allclose(ipc[0], ipc[1], rtol=0.01)
    assert ipc[0].mean() == pytest.approx(ipc[1].mean(), rel=1e-4)


@pytest.mark.statistical
def test_common_behaviour_wanders_with_the_autocorrelation_of_its_formula():
    """Mean 1, the spread asked for and five autocorrelations, within 4.5 standard errors each: 5 in 100,000 runs.

    An autocorrelation ρ is measured by how far two epochs are apart: the mean square of their difference is 2 (1 − ρ).
    """
    columns, log_sd = 6000, 0.3
    world = replace(WORLD, horizon_s=86400.0)
    factors = parameters.wander(world, "a test", np.full(columns, log_sd))
    logs = (np.log(factors) + log_sd**2 / 2) / log_sd
    assert abs(factors[100].mean() - 1) < 4.5 * np.sqrt(np.expm1(log_sd**2) / columns)
    assert abs((logs[200] ** 2).mean() - 1) < 4.5 * np.sqrt(2 / columns)
    for lag in (1, 6, 12, 36, 72):
        lag_s = lag * EPOCH_S
        expected = 0.45 * np.exp(-lag_s / 1800) + 0.55 * np.exp(-lag_s / 28800)
        apart = ((logs[10 + lag] - logs[10]) ** 2).mean() / 2
        assert apart == pytest.approx(1 - expected, rel=4.5 * np.sqrt(2 / columns))


def test_another_column_of_common_behaviour_changes_none_before_it():
    few, many = (parameters.wander(WORLD, "racks", np.full(count, 0.2)) for count in (5, 9))
    np.testing.assert_array_equal(few, many[:, :5])


def test_load_peaks_at_the_peak_hour_and_averages_to_one():
    world = replace(WORLD, horizon_s=86400.0)
    machines = build_machines(world)
    jobs = replace(build_jobs(world, machines), peak_hour=np.full(60, 9.0), diurnal_amplitude=np.full(60, 0.3))
    load = parameters.load(world, jobs)
    np.testing.assert_allclose(load.mean(axis=0), 1.0, rtol=1e-12)
    assert (load.argmax(axis=0) == 9 * 12).all()
    np.testing.assert_allclose(load.max(axis=0), 1.3)
