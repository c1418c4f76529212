"""Machines that switch beside others that never do: a readable twin, no look at what is hidden, and coverage."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from analysis.effects.crossovers import Switchable
from analysis.effects.methods import method
from analysis.effects.study import Study
from analysis.effects.switching import coins, course_variance
from analysis.statistics import NotEnoughDataError
from models.randomness import stream

ADJUSTED = method("adjusted")


def fleet(rng, *, machines=60, jobs=3, each=4, periods=8, noise=0.03, together=0.02, effect=0.01):
    """Observations never with the feature, off and on: jobs and racks of 10 have courses, and stays have noise."""
    size = machines * each
    job, machine = rng.integers(0, jobs, size), np.repeat(np.arange(machines), each)
    whole = rng.standard_normal((jobs, periods))[job] + rng.standard_normal((machines // 10, periods))[machine // 10]
    level = (1.0 + job)[:, None] * np.exp(0.1 * rng.standard_normal((size, 1)) + together * whole)
    never = level * (1.0 + noise * rng.standard_normal((size, periods)))
    stay, period = (index.ravel() for index in np.indices((size, periods)))
    row = {"period": period, "job": job[stay], "machine": machine[stay], "rack": machine[stay] // 10, "shard": stay}
    table = pd.DataFrame(row | {"weight": 1.0 + job[stay], "treated": 0, "value": never.ravel()})
    table["present_s"] = np.where((stay % 7 == 0) & (period == 2), 0.5, 1.0)
    return table, (table, table.assign(value=(1.0 + effect) * table["value"]))


def able(never, arms):
    return Switchable.of(never, arms)


def drawn(rng, machines, size, draws):
    treated = np.zeros((draws, machines), dtype=np.bool_)
    for draw in treated:
        draw[rng.permutation(machines)[:size]] = True
    return treated


def seen(never, arms, plan, treated):
    """The table of an experiment: machines that switch are with the feature by the plan, all others never."""
    machine, period = never["machine"].to_numpy(), never["period"].to_numpy()
    having = plan[machine, period] & treated[machine]
    off = np.where(treated[machine], arms[0]["value"], never["value"])
    return never.assign(value=np.where(having, arms[1]["value"], off), treated=having.astype(int))


def common(table, keys):
    """What instances do together by the first key, period by period: the mean deviation, drawn to that of all."""
    sums = (
        table.assign(part=table["present_s"] * table["apart"]).groupby([*keys, "period"])[["part", "present_s"]].sum()
    )
    whole = sums.groupby("period").sum()
    typical = sums.index.get_level_values("period").map(whole["part"] / whole["present_s"])
    made = (sums["part"] + 10.0 * typical) / (sums["present_s"] + 10.0)
    made.name = keys[0] + "_course"
    return made


def twin(never, arms, plan, treated):
    """The gain of each job, with tables in place of loops."""
    stays = ["shard", "machine"]
    held = never["present_s"].groupby([never[name] for name in stays]).transform("sum")
    mean = (never["present_s"] * never["value"]).groupby([never[name] for name in stays]).transform("sum") / held
    alone = never.assign(apart=never["value"] / mean - 1.0)
    controls = alone[~treated[alone["machine"]]]
    # Racks are told what is left of all instances' jobs.
    rest = alone.join(common(alone, ["job"]), on=["job", "period"])
    rest = rest.assign(apart=rest["apart"] - rest["job_course"])[~treated[alone["machine"]]]
    table = seen(never, arms, plan, treated)
    table = table[treated[table["machine"]]].join(common(controls, ["job"]), on=["job", "period"])
    table = table.join(common(rest, ["rack"]), on=["rack", "period"])
    table["above"] = table["present_s"] * table["value"]
    table["below"] = table["present_s"] * (1.0 + table["job_course"]) * (1.0 + table["rack_course"])
    sums = table.groupby(["job", "shard", "treated"])[["above", "below", "present_s"]].sum()
    present = sums["present_s"].groupby(["job", "shard"]).transform("sum")
    gains = (sums["above"] / sums["below"] * present).groupby(["job", "treated"]).sum()
    return {job: gains[job, 1] / gains[job, 0] - 1.0 for job in sorted(set(table["job"]))}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_draw_equals_its_readable_twin(seed):
    rng = np.random.default_rng(seed)
    never, arms = fleet(rng)
    plan, treated = coins((60, 8), rng), drawn(rng, 60, 20, 1)
    # Of one job alone both means are its gain, whatever their mixture is.
    for job in range(3):
        table, *both = (each[each["job"] == job].reset_index(drop=True) for each in (never, *arms))
        made = able(table, tuple(both))
        cells = made.cells(plan[made.switched.machines])
        found = ADJUSTED.many(cells, treated[:, cells.machines])
        assert found.change[0] == pytest.approx(twin(table, both, plan, treated[0])[job], abs=1e-12)


@pytest.mark.parametrize("racks", [True, False])
def test_what_drawn_machines_would_have_done_is_not_looked_at(racks):
    rng = np.random.default_rng(5)
    never, arms = fleet(rng)
    plan, treated = coins((60, 8), rng), drawn(rng, 60, 15, 1)
    noise = rng.uniform(0.9, 1.1, len(never))
    tables = [never, never.assign(value=never["value"] * np.where(treated[0][never["machine"]], noise, 1.0))]
    if not racks:
        tables, arms = [table.drop(columns="rack") for table in tables], tuple(arm.drop(columns="rack") for arm in arms)
    plain, other = (able(table, arms) for table in tables)
    other = replace(other, fleet=plain.fleet)
    found, again = (ADJUSTED.many(each.cells(plan), treated) for each in (plain, other))
    slack = 0.1 * found.error[0] if racks else 1e-12
    assert again.change[0] == pytest.approx(found.change[0], abs=slack)
    assert again.error[0] == pytest.approx(found.error[0], rel=0.05 if racks else 1e-3)


def test_a_draw_says_what_the_experiments_own_table_does():
    rng = np.random.default_rng(7)
    never, arms = fleet(rng)
    plan, treated = coins((60, 8), rng), drawn(rng, 60, 15, 1)
    drawn_, own = able(never, arms).cells(plan), Study.of(seen(never, arms, plan, treated[0]))
    assert (own.design, own.cells.switched is not None) == ("crossover", True)
    found, said = ADJUSTED.many(drawn_, treated), ADJUSTED.many(own.cells, own.treated[None, :])
    assert said.change[0] == pytest.approx(found.change[0], abs=0.1 * found.error[0])
    assert said.error[0] == pytest.approx(found.error[0], rel=0.1)
    assert said.freedom[0] == pytest.approx(found.freedom[0], rel=0.2)


def test_most_machines_that_switch_are_compared_with_each_other():
    rng = np.random.default_rng(7)
    never, arms = fleet(rng)
    plan, treated = coins((60, 8), rng), drawn(rng, 60, 40, 1)
    own = Study.of(seen(never, arms, plan, treated[0]))
    assert own.cells.switched is None
    assert len(own.cells.machines) == 40


def test_machines_that_always_have_it_and_stays_seen_in_one_state_tell_nothing():
    rng = np.random.default_rng(8)
    never, arms = fleet(rng)
    plan, treated = coins((60, 8), rng), drawn(rng, 60, 15, 1)[0]
    table = seen(never, arms, plan, treated)
    other = int(np.flatnonzero(~treated)[0])
    without = Study.of(table[table["machine"] != other])
    always = table.assign(treated=np.where(table["machine"] == other, 1, table["treated"]))
    assert ADJUSTED.estimate(Study.of(always)).change == pytest.approx(ADJUSTED.estimate(without).change, abs=1e-4)
    once = int(np.flatnonzero(treated)[0])
    kept = table[(table["machine"] != once) | (table["treated"] == 1)]
    assert once not in Study.of(kept).cells.machines


def test_where_no_stay_is_seen_in_both_states_nothing_can_be_said():
    rng = np.random.default_rng(8)
    never, arms = fleet(rng, periods=2)
    table = seen(never, arms, np.tile([True, False], (60, 1)), np.arange(60) < 10)
    half = table[(table["machine"] >= 10) | (table["shard"] % 2 == table["period"])]
    with pytest.raises(NotEnoughDataError):
        Study.of(half)


def test_machines_of_a_domain_that_switch_together_are_one_unit():
    rng = np.random.default_rng(9)
    never, arms = fleet(rng)
    domain = never["machine"] // 5
    plan, treated = coins((12, 8), rng)[np.arange(60) // 5], np.arange(60) < 30
    table = seen(never, arms, plan, treated).assign(domain=domain)
    assert Study.of(table).cells.switched.unit.tolist() == (np.arange(30) // 5).tolist()
    for periods in (2, 8):
        never, arms = fleet(rng, periods=periods)
        alone = seen(never, arms, coins((60, periods), rng), treated).assign(domain=never["machine"] // 5)
        assert Study.of(alone).cells.switched.unit.tolist() == list(range(30))


@pytest.mark.parametrize(("first", "share"), [(6, 5 / 6), (5, 1 - 6 / 16), (3, 0.0)])
def test_what_a_course_adds_to_the_error_is_the_delta_method_s(first, share):
    """Of 6 machines so many begin with the feature, 12 never have it: their course is off by d, then by -d.

    The change is a ratio of sums of levels, so it moves by a known slope with d, whose variance is that of a mean; what
    each machine's own plan shows of it, 1 / 6 if all have the same, is in the error already.
    """
    off = 0.05 * np.random.default_rng(2).standard_normal(12)
    off -= off.mean()
    machine, period = (index.ravel() for index in np.indices((18, 2)))
    having = (machine < 6) & (period == np.where(machine < first, 0, 1))
    value = 2.0 * np.where(having, 1.1, 1.0) * (1.0 + np.append(np.zeros(6), off)[machine] * np.array([1, -1])[period])
    row = {"period": period, "job": "a", "machine": machine, "weight": 1.0, "treated": having, "value": value}

    def change(d):
        by = np.array([1.0 + d, 1.0 - d])
        return 1.1 * (first / by[0] + (6 - first) / by[1]) / (first / by[1] + (6 - first) / by[0]) - 1.0

    slope = (change(1e-5) - change(-1e-5)) / 2e-5
    expected = share * slope**2 * off.var(ddof=1) / 12
    study = Study.of(pd.DataFrame(row))
    assert course_variance(study.cells.switched) == pytest.approx(expected, rel=1e-6, abs=1e-15)
    # Machines that switch do not differ, so that an answer has no error but this one.
    assert ADJUSTED.estimate(study).error ** 2 == pytest.approx(expected, rel=1e-6, abs=1e-15)
    drawn_cells = ADJUSTED.many(study.cells, np.arange(18)[None, study.cells.machines] < 6)
    assert drawn_cells.error[0] ** 2 == pytest.approx(expected, rel=1e-6, abs=1e-15)


def test_a_librarys_ratio_is_that_of_machines_sums_as_they_were_seen():
    rng = np.random.default_rng(11)
    never, arms = fleet(rng)
    plan, treated = coins((60, 8), rng), drawn(rng, 60, 15, 1)
    table = seen(never, arms, plan, treated[0])
    table = table[treated[0][table["machine"]]].assign(part=lambda rows: rows["value"] * rows["present_s"])
    sums = table.groupby(["machine", "shard", "weight", "treated"])[["part", "present_s"]].sum().reset_index()
    sums["present"] = sums.groupby("shard")["present_s"].transform("sum")
    sums["part"] *= sums["weight"] * sums["present"] / sums["present_s"]
    whole = sums.groupby(["machine", "treated"])["part"].sum()
    on, off = (whole.xs(state, level="treated").to_numpy() for state in (1, 0))
    found = method("cuped").many(able(never, arms).cells(plan), treated)
    change = on.sum() / off.sum() - 1.0
    error = np.sqrt(15.0 * np.var(on - (1.0 + change) * off, ddof=1)) / off.sum()
    assert [float(each[0]) for each in found] == pytest.approx([change, error, 14.0], rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize("together", [0.0, 0.05])
def test_intervals_hold_the_change(together):
    """1,000 draws in 20 fleets: outside of 92 to 98% in fewer than 1 of 1,000 seeds, draws of a fleet being alike."""
    rng, held = stream(3, "switching"), []
    for _ in range(20):
        made = able(*fleet(rng, machines=100, together=together))
        cells = made.cells(coins((100, 8), rng))
        found = ADJUSTED.many(cells, drawn(rng, 100, 12, 50))
        held.append((np.abs(found.change - 0.01) <= found.margin()).mean())
    assert 0.92 <= np.mean(held) <= 0.98


@pytest.mark.statistical
@pytest.mark.parametrize(("domains", "fleetwide"), [(1, 0.0), (1, 0.02), (3, 0.0)])
def test_intervals_hold_the_change_where_machines_switch_at_the_same_times(domains, fleetwide):
    """30 studies of 20 of 60 machines on one plan, or on three: fewer than 24 hold in 1 of 1,000 seeds."""
    rng, held = stream(6, f"{domains} plans, {fleetwide}"), []
    for _ in range(30):
        never, arms = fleet(rng, jobs=10, each=3)
        shock = 1.0 + fleetwide * rng.standard_normal(8)[never["period"]]
        never, *arms = (table.assign(value=table["value"] * shock) for table in (never, *arms))
        plan = coins((domains, 8), rng)[np.arange(60) % domains]
        found = ADJUSTED.estimate(Study.of(seen(never, arms, plan, drawn(rng, 60, 20, 1)[0])))
        held.append(found.low <= 0.01 <= found.high)
        assert found.controls == 40
    assert np.sum(held) >= 24


def test_coins_are_fair_and_pairs_have_both():
    plan = coins((4000, 7), np.random.default_rng(1))
    assert (plan[:, 0:6:2] != plan[:, 1:6:2]).all()
    assert not plan[:, 6].any()
    assert np.abs(plan[:, 0:6:2].mean(axis=0) - 0.5).max() < 0.04
