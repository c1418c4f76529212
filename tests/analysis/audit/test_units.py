"""Units: jumps of one arm are found from 1.5 times on, healthy tables are left alone, on fleets made here by numpy."""

import numpy as np
import pandas as pd
import pytest

from analysis.audit.case import Case
from analysis.audit.units import unit_change, units_between_jobs, unusable_values
from analysis.effects.observations import FlaggedRows

PAST, STUDY = 3, 4


def fleet(rng, *, machines=60, jobs=12, effect=0.05, noise=0.05, churn=0.1, season=0.2, treated=0.3, tail=False):
    """Observations by period: machines that are alike over time, jobs with a course, instances that move."""
    count = np.ceil(4 * (1 + rng.pareto(1.5, jobs))).astype(int).clip(max=60)
    job = np.repeat(np.arange(jobs), count)
    machine = rng.integers(machines, size=len(job))
    speed, shard = 0.08 * rng.normal(size=machines), 0.1 * rng.normal(size=len(job))
    having = rng.random(machines).argsort() < round(treated * machines)
    rows = []
    for period in range(PAST + STUDY):
        moves = rng.random(len(job)) < churn
        machine = np.where(moves, rng.integers(machines, size=len(job)), machine)
        speed = 0.9 * speed + 0.03 * rng.normal(size=machines)
        error = rng.standard_t(3, size=len(job)) if tail else rng.normal(size=len(job))
        course = season * np.sin(2 * np.pi * period / 7 + job)
        on = having[machine] & (period >= PAST)
        value = np.exp(job / jobs + speed[machine] + shard + course + noise * error) * (1 + effect * on)
        table = {"period": period, "job": job, "machine": machine, "instance": np.arange(len(job)), "weight": 1.0}
        rows.append(pd.DataFrame(table | {"value": value, "treated": on.astype(int)}))
    return pd.concat(rows, ignore_index=True)


def seen(table):
    return [finding.what for finding in unit_change(Case.of(FlaggedRows.of(table)))]


KINDS = {
    "plain": {},
    "doubled by the feature": {"effect": 1.0},
    "few machines": {"machines": 14, "jobs": 3},
    "much noise": {"noise": 0.5},
    "tails": {"noise": 0.07, "tail": True},
    "lognormal": {"noise": 1.3},
}


@pytest.mark.statistical
def test_healthy_tables_of_many_kinds_are_left_alone():
    """72 tables; a guard that alarms on 1 in 100 passes with a chance of 48%, one that does on 1 in 1,000 with 93%."""
    rng = np.random.default_rng(4)
    loud = {name: sum(bool(seen(fleet(rng, **kind))) for _ in range(12)) for name, kind in KINDS.items()}
    assert not any(loud.values()), loud


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [1.5, 2.0, 0.5])
@pytest.mark.parametrize("arm", [0, 1])
def test_an_arm_in_another_unit_from_mid_study_on_is_found(factor, arm):
    rng = np.random.default_rng(5)
    for _ in range(10):
        table = fleet(rng)
        having = table.groupby("machine")["treated"].transform("max")
        table.loc[(having == arm) & (table["period"] >= PAST + 2), "value"] *= factor
        (what,) = seen(table)
        assert f"from period {PAST + 2} on" in what


def test_rows_in_thousandths_are_found_among_values_that_vary_by_powers_of_ten():
    rng = np.random.default_rng(9)
    table = fleet(rng, noise=1.3)
    table.loc[rng.random(len(table)) < 0.1, "value"] *= 1000
    assert "rows differ from their job's median" in seen(table)[0]


@pytest.mark.parametrize("factor", [30.0, 100.0, 1000.0])
@pytest.mark.parametrize("treated", [0.1, 0.5])
def test_an_arm_in_another_unit_from_the_start_is_found_however_large_it_is(factor, treated):
    table = fleet(np.random.default_rng(9), treated=treated)
    table = table[table["period"] >= PAST]
    (what,) = seen(table.assign(value=table["value"] * np.where(table["treated"] == 1, factor, 1.0)))
    assert "rows with the feature are about" in what


@pytest.mark.parametrize("factor", [2.0, 3.0])
def test_half_of_an_arms_machines_in_another_unit_are_found(factor):
    table = fleet(np.random.default_rng(10), machines=80, treated=0.5)
    having = np.unique(table.loc[table["treated"] == 1, "machine"])
    table.loc[table["machine"].isin(having[::2]) & (table["period"] >= PAST + 2), "value"] *= factor
    assert any(f"from period {PAST + 2} on" in what for what in seen(table))


def test_a_jump_before_the_study_is_found_and_says_whose():
    table = fleet(np.random.default_rng(6))
    having = table.groupby("machine")["treated"].transform("max")
    table.loc[(having == 1) & (table["period"] == 2), "value"] *= 2
    (what,) = seen(table)
    assert "from period 2 on, rows of machines that later have the feature are 2.1" in what


def test_a_single_job_in_another_unit_is_named():
    table = fleet(np.random.default_rng(7), machines=150, jobs=60)
    small = table["job"].value_counts().index[2]
    table.loc[(table["treated"] == 1) & (table["period"] >= PAST + 2) & (table["job"] == small), "value"] *= 3
    (what,) = seen(table)
    assert f"rows of job {small} with the feature are" in what


def test_a_staged_roll_out_with_a_large_effect_is_no_jump():
    table = fleet(np.random.default_rng(8), effect=0.0)
    rank = table["machine"] % 6
    on = table["period"] >= PAST + rank
    table = table.assign(treated=on.astype(int), value=table["value"] * (1 + 1.0 * on))
    assert seen(table) == []


def test_jobs_within_a_hundred_times_of_each_other_are_in_one_unit():
    rows = pd.DataFrame({"period": 1, "job": ["a", "b"] * 10, "machine": np.arange(20), "weight": 1.0})
    rows = rows.assign(treated=rows["machine"] // 2 % 2)
    for factor, count in ((99.0, 0), (101.0, 1)):
        found = units_between_jobs(
            Case.of(FlaggedRows.of(rows.assign(value=np.where(rows["job"] == "b", factor, 1.0))))
        )
        assert len(found) == count
    assert found[0].severity == "warning"
    assert "101 times apart: b has 50.0% of the quota and counts for 99.0% of the change" in found[0].what


@pytest.mark.parametrize(
    ("periods", "told"),
    [
        ([0], "all outside the periods that are compared"),
        ([0, PAST], "10 of them outside the periods that are compared; in these 0.0% of the treated, 0.9% of others"),
        ([PAST], "rows have no value or weight above 0: 0.0% of the treated, 0.9% of others"),
    ],
)
def test_values_that_lack_before_the_feature_are_no_share_of_an_arm(periods, told):
    table = fleet(np.random.default_rng(7))
    for period in periods:
        rows = table.index[(table["period"] == period) & (table["treated"] == 0)]
        others = ((table["treated"] == 0) & (table["period"] >= PAST)).sum()
        table.loc[rows[: 10 if period < PAST else round(others / 100)], "value"] = np.nan
    assert told in unusable_values(Case.of(FlaggedRows.of(table)))[0].what
