"""Samples of visited machines: oracles are the fleet's own sums in the visited epochs, and theory of sampling."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from models.arrays import DAY_S
from models.fleet.world import Feature, Fleet, Population, Recording, Rollout, Window
from models.platforms import PLATFORMS
from models.profiling.programs import build_programs
from models.profiling.world import Collector, Kernel, ProfileWorld, Profiling, Watch
from sim.fleet.arms import Arm, Visits, recorded, run_arm
from sim.fleet.day import prepare
from sim.profiling.builds import build_builds, residence_release, software_factors
from sim.profiling.collector import OK, plan_visits
from sim.profiling.draws import Lists, draw_samples, keys_of
from sim.profiling.images import lay_out
from sim.profiling.rates import rate_table, sample_cost_cycles, samples_per_s
from sim.profiling.register import machine_register, place, platform_names
from sim.profiling.rows import RunningSoftware, rows_of
from sim.profiling.sampling import OWN_SHARE, Sampler
from sim.profiling.visits import APPLICATIONS, SHARES

WORLD = ProfileWorld(
    seed=3,
    horizon_s=3 * DAY_S,
    fleet=Fleet(16, {"haswell_2698v3": 0.5, "skylake_6148": 0.5}, machines_per_rack=4, racks_per_power_domain=2),
    population=Population(20, 12, heavyweights=4),
    feature=Feature("new", {"haswell_2698v3": "broadwell_2698v4"}, rollout=Rollout(start_s=DAY_S, share=1.0)),
    recording=Recording(windows=tuple(Window(f"d{i}", i * DAY_S, (i + 1) * DAY_S) for i in range(3))),
    profiling=Profiling(
        kernel=Kernel(start_s=DAY_S, waves=2),
        collector=Collector(
            one_in=4, round_s=7200.0, samples_per_s=8.0, watches=(Watch("dense", one_in=2, start_s=2 * DAY_S),)
        ),
    ),
)


def at_work(world):
    """Return a fleet with a collector at work, and all that it took."""
    day = prepare(world)
    places = place(world, day.machines)
    programs = build_programs(world, day.jobs, platform_names(world))
    builds = build_builds(world, programs)
    arm = Arm(recorded(day).machine_from, residence_release(world, day, builds))
    register = machine_register(world, day, arm, places)
    plan = plan_visits(world, day, register, samples_per_s(world, places.platforms))
    rates = rate_table(world, places.platforms)
    layout = lay_out(world, programs, builds)
    common = {"world": world, "day": day, "register": register, "plan": plan, "layout": layout, "rates": rates}
    sampler = Sampler(**common, programs=programs, builds=builds, places=places)
    rows = rows_of(day, arm, RunningSoftware(world, programs, builds, places))
    answered = plan.answered
    visits = Visits(plan.machine[answered], plan.epoch[answered], software_factors(programs, builds, day.jobs))
    blocks = list(run_arm(day, arm, 1, visits=visits))
    taken = [sampler.take(block, rows) for block in blocks]
    names = ("processes", "raw_samples", "raw_stacks")
    tables = {name: pd.concat([frame(getattr(part, name)) for part in taken], ignore_index=True) for name in names}
    return SimpleNamespace(**common, programs=programs, builds=builds, blocks=blocks, rows=rows, arm=arm, **tables,
                           visits=frame(sampler.visit_columns()))  # fmt: skip


def frame(columns):
    made = {name: pa.array(column) for name, column in columns.items()}
    return pd.DataFrame(
        {k: (v.dictionary_decode() if pa.types.is_dictionary(v.type) else v).to_pandas() for k, v in made.items()}
    )


@pytest.fixture(scope="module")
def seen():
    return at_work(WORLD)


@pytest.fixture(scope="module")
def joined(seen):
    """Return every row of samples with what stands beside it in other tables."""
    visits = seen.visits.drop(columns=["power_w", "frequency_hz"])
    rows = seen.raw_samples.merge(seen.processes.drop(columns="build"), on="process").merge(visits, on="visit")
    return rows.merge(seen.rates, on=["collection", "platform", "event"])


def totals_of(seen):
    """Return what the fleet says of every resident seen, in the order of `processes`: cycles, instructions, …"""
    found = []
    for block in seen.blocks:
        for visit in range(block.visit_rows.shape[0]):
            found += [
                block.visit_sums[visit, slot]
                for slot in range(len(block.visit_rows[visit]))
                if block.visit_rows[visit, slot] >= 0
            ]
    return np.array(found)


def test_each_process_has_the_samples_that_its_counters_hold_to_less_than_one(seen, joined):
    """Counts are floor or ceiling of what the machine did over period and duty."""
    residents = seen.processes[seen.processes.job >= 0]
    totals = totals_of(seen)
    assert len(residents) == len(totals) > 1000
    counts = joined.pivot_table(index="process", columns="event", values="count", aggfunc="sum", fill_value=0)
    for event, column in (("cycles", 0), ("instructions", 1), ("llc_misses", 2)):
        stands_for = seen.visits.merge(seen.rates[seen.rates.event == event], on=["collection", "platform"])
        stands_for = stands_for.set_index("visit").eval("period * duty")[residents.visit].to_numpy()
        found = counts.reindex(residents.process, fill_value=0)[event].to_numpy()
        assert abs(found - totals[:, column] / stands_for).max() < 1.0 + 1e-6
        assert abs(found.sum() - (totals[:, column] / stands_for).sum()) < 5 * np.sqrt(len(found) / 4)


def test_cpu_seconds_are_those_of_the_fleet_and_of_the_samples(seen, joined):
    residents = seen.processes[seen.processes.job >= 0]
    assert residents.cpu_s.to_numpy() == pytest.approx(totals_of(seen)[:, 3])
    rows = joined[joined.event == "cpu_time"]
    estimate = (rows["count"] * rows.period * rows.duty).groupby(rows.process).sum() / 1e9
    asked = residents[residents.stacks].set_index("process")
    missed = asked.cpu_s.sub(estimate, fill_value=0.0).abs()
    assert missed.max() < rows.eval("period * duty").max() / 1e9
    assert set(rows.process) <= set(asked.index)


def test_wall_time_heap_and_locks_add_up_to_what_the_programs_have(seen, joined):
    asked = seen.processes[seen.processes.stacks]
    rows = joined.assign(amount=joined["count"] * joined.period * joined.duty)
    total = rows.groupby("event").amount.sum()
    assert total["wall_time"] / 1e9 == pytest.approx(asked.wall_s.sum(), rel=0.02)
    used = asked.cpu_s / 300.0 / (seen.day.jobs.utilisation * seen.day.jobs.instance_quota_vcpu)[asked.job]
    heap = seen.programs.heap_bytes[asked.job] * (0.6 + 0.4 * np.minimum(used, 1.5))
    assert total["heap_bytes"] == pytest.approx(heap.sum(), rel=0.01)
    assert heap.groupby(asked.job).std().div(heap.groupby(asked.job).mean()).median() > 0.02
    waited = np.minimum(seen.programs.lock_share[asked.job] * asked.wall_s, asked.wall_s - asked.cpu_s)
    assert total["lock_wait"] / 1e9 == pytest.approx(waited.sum(), rel=0.05)
    assert (asked.wall_s >= asked.cpu_s).all()


def test_threads_are_counted_one_row_each(seen, joined):
    rows = joined[joined.event == "threads"]
    asked = seen.processes[seen.processes.stacks].set_index("process")
    assert rows.set_index("process")["count"].to_dict() == asked.threads.to_dict()
    for job, mine in asked.groupby("job"):
        quiet, busy = mine.threads[mine.cpu_s.idxmin()], mine.threads[mine.cpu_s.idxmax()]
        usual, used = seen.programs.threads[job], mine.cpu_s.max() / 300.0
        assert 0.5 * usual - 1 <= quiet <= busy <= max(1.25 * usual, used) + 1
    assert asked.groupby("job").threads.nunique().max() > 5


def test_stacks_come_with_per_process_profiles_alone(seen, joined):
    per_process = joined.event.isin(["cpu_time", "wall_time", "heap_bytes", "lock_wait", "threads"])
    assert (joined["stack"] >= 0).equals(per_process)
    assert joined.stacks[per_process].all()
    assert (~seen.processes.stacks[seen.processes.job >= 0]).sum() > 0
    assert sorted(joined["stack"][per_process].unique()) == list(range(seen.raw_stacks["stack"].max() + 1))


def test_addresses_lie_in_the_builds_that_run(seen, joined):
    layout, code = seen.layout.addresses, seen.layout.addresses.code
    sizes = np.add.reduceat(layout.instructions, code.line_start[:-1]) * 4
    bounds = {}
    for build, image in enumerate(layout.image_of_build):
        functions = range(layout.first[image], layout.first[image + 1])
        for place_, f in enumerate(functions):
            start = layout.function_start[layout.build_start[build] + place_]
            bounds.setdefault(build, []).append((start, start + sizes[f], f))
    table = seen.layout.build_columns()
    kernels = {build: table["revision"][build] for build in layout.of_image[0]}
    assert len(kernels) == 2
    for row in joined.sample(3000, random_state=1).itertuples():
        if row.build < 0:
            assert row.address >= 0x7F00_0000_0000
            continue
        inside = [f for start, end, f in bounds[row.build] if start <= row.address < end]
        assert len(inside) == 1
        if row.build in kernels:
            assert kernels[row.build] == row.kernel
        if row.job >= 0:
            assert inside[0] in seen.programs.functions(row.job)
    own = joined[joined.application == "[daemons]"]
    assert set(own.build) == {layout.image_of_build.size - 1}


def test_processes_run_the_build_of_their_wave(seen):
    residents = seen.processes[seen.processes.job >= 0]
    epoch = (seen.visits.start_s.to_numpy()[residents.visit] / 300.0).astype(int)
    new = seen.arm.stay_from[residents.residence] <= epoch
    image = seen.programs.image_of_program[residents.job]
    assert (residents.build.to_numpy() == seen.builds.of_image[image, new.astype(int)]).all()
    assert 0 < new.mean() < 1


def test_stacks_lead_from_the_sampled_function_to_main(seen):
    layout, code = seen.layout.addresses, seen.layout.addresses.code
    sizes = np.add.reduceat(layout.instructions, code.line_start[:-1]) * 4
    known = {}
    for path in range(seen.programs.paths.probability.size):
        frames = seen.programs.paths.frame[slice(*seen.programs.paths.frame_start[path : path + 2])]
        known[tuple(frames.tolist())] = True
    for _, rows in seen.raw_stacks[seen.raw_stacks["stack"] < 400].groupby("stack"):
        assert rows.depth.tolist() == list(range(len(rows)))
        path = []
        for row in rows.itertuples():
            if row.build < 0:
                path.append(int(layout.first[layout.generated]))
                continue
            here = slice(*layout.build_start[row.build : row.build + 2])
            place_ = np.flatnonzero(layout.function_start[here] <= row.address)
            nearest = place_[np.argmax(layout.function_start[here][place_])]
            function = int(layout.first[layout.image_of_build[row.build]] + nearest)
            offset = row.address - layout.function_start[here][nearest]
            assert offset == 0 if row.depth == 0 else 0 <= offset < sizes[function]
            path.append(function)
        assert tuple(path) in known
        assert code.name[path[-1]] == "main"


def test_machines_have_processes_of_their_own(seen, joined):
    own = seen.processes[seen.processes.job < 0]
    ok = seen.visits[seen.visits.status == "ok"]
    assert Counter(own.application) == dict.fromkeys(APPLICATIONS, len(ok))
    assert set(seen.processes.visit) == set(ok.visit)
    vcpus = ok.platform.map({name: PLATFORMS[name].vcpus for name in PLATFORMS})
    profiling_s = (ok.overhead_cycles / ok.frequency_hz).to_numpy()
    assert profiling_s.min() > 0
    mine = own[own.application == "[daemons]"].set_index("visit").cpu_s[ok.visit].to_numpy()
    assert mine - SHARES[1] * 300.0 * vcpus.to_numpy() == pytest.approx(profiling_s)
    assert own.cpu_s.sum() - profiling_s.sum() == pytest.approx(OWN_SHARE * 300.0 * vcpus.sum())
    cycles = joined[joined.event == "cycles"]
    amount = (cycles["count"] * cycles.period * cycles.duty).groupby(cycles.application).sum()
    frequency = seen.visits.set_index("visit").frequency_hz.fillna(2.3e9)
    asked = SHARES[1] * 300.0 * (vcpus.to_numpy() * frequency[ok.visit].to_numpy()).sum()
    assert amount["[daemons]"] == pytest.approx(asked + seen.visits.overhead_cycles.sum(), rel=0.1)


def test_overhead_is_that_of_the_samples_and_small_in_the_fleet(seen, joined):
    each = {
        key: sample_cost_cycles(PLATFORMS[key[0]], key[1])
        for key in set(zip(joined.platform, joined.event, strict=True))
    }
    unit = np.array([each[key] for key in zip(joined.platform, joined.event, strict=True)])
    expected = pd.Series(unit * joined["count"].to_numpy()).groupby(joined.visit).sum()
    assert seen.visits.overhead_cycles[expected.index].to_numpy() == pytest.approx(expected.to_numpy())
    fleet_cycles = sum(block.rows[:, 0].sum() for block in seen.blocks)
    assert 0 < seen.visits.overhead_cycles.sum() / fleet_cycles < 1e-4


def test_daemons_spend_the_cycles_that_samples_of_all_others_take(monkeypatch):
    """Samples that are made dear enough to show: five billion cycles each."""
    monkeypatch.setattr("sim.profiling.sampling.sample_cost_cycles", lambda _platform, _event: 5e9)
    collector = replace(WORLD.profiling.collector, one_in=8, watches=(), stacks_per_s=0.0)
    made = at_work(replace(WORLD, horizon_s=DAY_S, feature=None, recording=Recording(windows=WORLD.windows[:1]),
                           profiling=replace(WORLD.profiling, collector=collector)))  # fmt: skip
    rows = made.raw_samples.merge(made.processes[["process", "visit", "application"]], on="process")
    rows = rows.merge(made.visits[["visit", "collection", "platform", "frequency_hz"]], on="visit")
    rows = rows.merge(made.rates, on=["collection", "platform", "event"])
    daemons = rows[(rows.application == "[daemons]") & (rows.event == "cycles")]
    found = daemons.eval("count * period * duty").sum()
    ok = made.visits[made.visits.status == "ok"]
    vcpus = ok.platform.map({name: PLATFORMS[name].vcpus for name in PLATFORMS})
    usual = SHARES[1] * 300.0 * (vcpus * ok.frequency_hz).sum()
    spent = 5e9 * rows[rows.application != "[daemons]"]["count"].sum()
    assert spent > usual
    assert found == pytest.approx(usual + spent, rel=0.05)


def test_visits_say_what_was_planned_and_measured(seen):
    visits = seen.visits
    assert (visits.visit == np.arange(len(visits))).all()
    assert ((visits.status == "ok") == (seen.plan.status == OK)).all()
    assert set(visits.platform) == {"haswell_2698v3", "broadwell_2698v4", "skylake_6148"}
    assert set(visits.platform[visits.start_s >= DAY_S]) == {"broadwell_2698v4", "skylake_6148"}
    assert set(visits.kernel) == {"6.1.90", "6.6.30"}
    assert set(visits.kernel[visits.start_s >= 2 * DAY_S]) == {"6.6.30"}
    ok = visits[visits.status == "ok"]
    assert (ok.power_w > 50).all()
    assert ok.frequency_hz.dropna().between(1e9, 3.8e9).all()
    assert visits[visits.status != "ok"][["power_w", "frequency_hz"]].isna().all(axis=None)
    assert (visits.overhead_cycles[visits.status != "ok"] == 0).all()


def test_a_watch_changes_no_sample_of_the_fleet(seen, joined):
    alone = at_work(
        replace(WORLD, profiling=replace(WORLD.profiling, collector=replace(WORLD.profiling.collector, watches=())))
    )
    key = ["machine", "start_s", "residence", "application", "event", "build", "address"]

    def table(made):
        rows = made.raw_samples.merge(made.processes.drop(columns="build"), on="process").merge(made.visits, on="visit")
        rows = rows[rows.collection == "fleet"]
        return rows.groupby(key)["count"].sum()

    pd.testing.assert_series_equal(table(alone), table(seen))


def test_the_order_of_events_and_those_left_out_change_no_sample_of_the_others():
    small = replace(WORLD, horizon_s=DAY_S, feature=None, recording=Recording(windows=WORLD.windows[:1]))

    def table(*events):
        collector = replace(WORLD.profiling.collector, events=events, one_in=8, watches=())
        made = at_work(replace(small, profiling=replace(WORLD.profiling, collector=collector)))
        rows = made.raw_samples.merge(made.processes[["process", "visit", "residence"]], on="process")
        rows = rows[(rows.event == "llc_misses") & (rows.residence >= 0)]
        return rows.groupby(["visit", "residence", "build", "address"])["count"].sum()

    first, second = table("cycles", "llc_misses"), table("llc_misses", "instructions", "cycles")
    assert len(first) > 100
    pd.testing.assert_series_equal(first, second)


def test_counted_events_can_be_few_and_stacks_none():
    few = Collector(one_in=8, round_s=43200.0, events=("llc_misses", "cycles"), stacks_per_s=0.0)
    made = at_work(replace(WORLD, horizon_s=DAY_S, feature=None, profiling=Profiling(collector=few, kernel=None),
                           recording=Recording(windows=WORLD.windows[:1])))  # fmt: skip
    assert set(made.raw_samples.event) == {"llc_misses", "cycles"}
    assert not made.processes.stacks.any()
    assert len(made.raw_stacks) == 0


@pytest.mark.statistical
def test_samples_fall_on_functions_as_expected():
    """Chi-squared tests at 1e-6 each: false alarms below 3e-6."""
    expected = np.array([[[3.0, 0.3], [2.0, 0.1], [0.0, 0.0], [1.25, 0.05]]])
    rows = 20_000
    keys = keys_of(1, "samples", np.arange(rows)[:, None], np.arange(2))
    draws = draw_samples(np.repeat(expected, rows, axis=0), keys)
    for event in range(2):
        mine = draws.cell % 2 == event
        counts = np.bincount(draws.function[mine], minlength=4)
        wanted = expected[0, :, event]
        assert counts[2] == 0
        there = wanted > 0
        assert stats.chisquare(counts[there], counts.sum() * wanted[there] / wanted.sum()).pvalue > 1e-6
        each = np.bincount(draws.cell[mine] // 2, minlength=rows)
        whole = np.floor(wanted.sum())
        assert set(each) <= {whole, whole + 1}
        ups = (each > whole).sum()
        assert stats.binomtest(int(ups), rows, wanted.sum() - whole).pvalue > 1e-6


def test_nothing_expected_nothing_drawn():
    keys = keys_of(1, "none", np.arange(6).reshape(3, 2))
    assert draw_samples(np.zeros((3, 5, 2)), keys).cell.size == 0
    assert draw_samples(np.zeros((0, 5, 2)), keys[:0]).cell.size == 0


def test_lists_never_pick_outside_or_what_has_no_weight():
    lists = Lists.of(np.array([0, 3, 4, 6]), np.array([0.0, 2.0, 0.0, 1.0, 1.0, 3.0]))
    uniform = np.linspace(0.0, 1.0, 1001)
    for which, allowed in ((0, {1}), (1, {3}), (2, {4, 5})):
        picked = lists.pick(np.full(1001, which), np.minimum(uniform, 1 - 1e-12))
        assert set(picked) == allowed
    picked = lists.pick(np.full(1001, 2), np.minimum(uniform, 1 - 1e-12))
    assert (picked == 4).mean() == pytest.approx(0.25, abs=0.002)
