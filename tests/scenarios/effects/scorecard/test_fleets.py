"""Courses of a fleet pair row by row, add up to its counters, and are what really happens to machines that switch."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from scenarios.effects.scorecard import corners
from scenarios.effects.scorecard.fleets import STUDY, change, either, fleet, simulated
from sim.fleet.arms import crossover, everywhere, nowhere, on_machines
from sim.fleet.control import plan_crossover
from sim.fleet.day import prepare
from sim.fleet.experiment import measure

MACHINES = 40
SHARED = ["period", "job", "machine", "rack", "instance", "shard", "weight", "present_s"]


@cache
def small(name="base"):
    return fleet(name, 2, MACHINES)


@cache
def days(name="base"):
    world = corners.world(corners.corner(name), 2, MACHINES)
    return prepare(world), prepare(corners.crossover(world))


def by_frame(counters, names):
    """Rows of `counters` the slow way: by stay and window, as the observations name them."""
    made = counters.assign(period=counters["window"].map({name: at for at, name in enumerate(names)}).astype(int))
    made["value"] = made["instructions"] / made["cpu_s"]
    renamed = made.rename(columns={"quota_vcpu": "weight", "wall_s": "present_s"})
    return renamed[[*SHARED, "value", "cpu_s"]]


def same(found, expected):
    order = ["period", "machine", "instance", "present_s", "value"]
    columns = [*SHARED, "value", "cpu_s"]
    pair = (table[columns].sort_values(order, ignore_index=True).astype(float) for table in (found, expected))
    pd.testing.assert_frame_equal(*pair, rtol=1e-12)


@pytest.mark.parametrize("name", ["base", "upgrade"])
def test_spans_are_the_counters_of_the_arms(name):
    made, (day, _) = small(name), days(name) if name == "base" else (prepare_only(name), None)
    names = [window.name for window in day.world.windows]
    off = by_frame(measure(day, nowhere(day)), names)
    on = by_frame(measure(day, on_machines(day, np.arange(MACHINES), STUDY * 24)), names)
    same(made.week.before, off[off["period"] < STUDY])
    same(made.week.off, off[off["period"] >= STUDY])
    same(made.week.on, on[on["period"] >= STUDY])
    same(made.day.before, off[off["period"] == STUDY - 1])
    same(made.day.on, on[on["period"] == STUDY])


def prepare_only(name):
    return prepare(corners.world(corners.corner(name), 2, MACHINES))


def test_arms_have_the_same_rows_in_the_same_order():
    for span in (small().day, small().week):
        pd.testing.assert_frame_equal(span.off[SHARED], span.on[SHARED])
        assert not span.before["treated"].any()
        assert not span.off["treated"].any()
        assert span.on["treated"].all()


def test_the_truth_is_the_quota_weighted_change_said_slowly():
    made = small()
    means = []
    for arm in (made.week.off, made.week.on):
        table = arm.assign(work=arm["cpu_s"] * arm["value"])
        stays = table.groupby(["job", "machine", "instance"], as_index=False)[["work", "cpu_s", "present_s"]].sum()
        stays["part"] = stays["present_s"] * stays["work"] / stays["cpu_s"]
        sums = stays.groupby("job")[["part", "present_s"]].sum()
        means.append(sums["part"] / sums["present_s"])
    quota = made.jobs.set_index("job")["quota"].reindex(means[0].index)
    assert made.week.truth == pytest.approx((quota * means[1]).sum() / (quota * means[0]).sum() - 1, rel=1e-12)
    assert 0.0 < made.week.truth < 0.03


def rests(arm):
    """Rows of an arm of a crossover, once settled, by period."""
    _, day = days()
    whole = by_frame(measure(day, arm), [window.name for window in day.world.windows])
    rest = whole[whole["period"] % 2 == 1]
    return rest.assign(period=rest["period"] // 2)


def test_switching_is_really_simulated_by_two_schedules_that_mirror_each_other():
    made, (_, day) = small().switching, days()
    same(made.never, rests(nowhere(day)))
    for number in (0, 1):
        plan = plan_crossover(day.world, day.machines, number)
        having = plan[made.never["machine"], made.never["period"]]
        same(either(having, made.on, made.off), rests(crossover(day, number)))


def test_switched_off_is_about_never_switched_and_switched_on_is_not():
    """Values are moved by less than 0.2% off, where only budgets of power domains leak, and by more than 1% on."""
    made, (_, day) = small().switching, days()
    first = plan_crossover(day.world, day.machines)[made.never["machine"], made.never["period"]]
    for chosen in (first, ~first):
        off, on = (np.abs(np.log(arm["value"] / made.never["value"]))[chosen].mean() for arm in (made.off, made.on))
        assert off < 0.002
        assert on > 0.01


def test_rest_follows_the_state_scheduled_and_wash_also_the_one_before():
    """How far values moved from off towards on: none or all of the way where the period before was alike, else between.

    Budgets of power domains leak a little to machines that are off.
    """
    _, day = days()
    names = [window.name for window in day.world.windows]
    arms = nowhere(day), everywhere(day), crossover(day)
    off, on, switched = (by_frame(measure(day, arm), names) for arm in arms)
    plan = plan_crossover(day.world, day.machines)
    for parity in (1, 0):
        part = (off["period"] % 2 == parity).to_numpy()
        moved, whole = (np.log(each["value"].to_numpy() / off["value"].to_numpy())[part] for each in (switched, on))
        machine, period = off["machine"].to_numpy()[part], off["period"].to_numpy()[part] // 2
        now, before = plan[machine, period], plan[machine, np.maximum(period - 1, 0)]

        def way(chosen, moved=moved, whole=whole):
            return (moved * whole)[chosen].sum() / (whole[chosen] ** 2).sum()

        assert way(~now & ~before) == pytest.approx(0.0, abs=0.15)
        assert way(now & before) == pytest.approx(1.0, abs=0.15)
        old = corners.SETTLE_S / corners.WASH_S + 0.05
        ends = ((0.0, 0.15), (1.0, 0.15)) if parity else ((old, 0.2), (1.0 - old, 0.2))
        for chosen, (expected, slack) in zip((~now & before, now & ~before), ends, strict=True):
            assert way(chosen) == pytest.approx(expected, abs=slack)


def test_an_experiment_put_together_is_close_to_one_really_simulated():
    """Machines of the power domain without the feature share its budget: their values move a little, and rows match."""
    made, (day, _) = small(), days()
    which = np.array([3, 8, 20, 31])
    treated = np.isin(np.arange(MACHINES), which)
    real, composed = simulated(day, which), made.week.observed(treated)
    keys = [*SHARED, "treated"]
    order = ["period", "machine", "instance", "present_s", "value"]
    real, composed = (table.sort_values(order, ignore_index=True) for table in (real, composed))
    pd.testing.assert_frame_equal(real[keys], composed[keys])
    apart = (real["value"] / composed["value"] - 1).abs()
    assert apart[real["period"] < STUDY].max() == 0.0
    assert apart.mean() < 0.002


def test_without_a_change_there_is_no_change():
    off = small().week.off
    assert change(off, off, small().jobs) == 0.0


def test_a_fleet_is_that_of_its_name_and_seed():
    again, other = (fleet("base", seed, MACHINES) for seed in (2, 3))
    pd.testing.assert_frame_equal(again.week.on, small().week.on)
    pd.testing.assert_frame_equal(again.switching.on, small().switching.on)
    assert other.week.truth != again.week.truth


def test_new_processors_have_no_crossover():
    assert small("upgrade").switching is None
