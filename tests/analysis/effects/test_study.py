"""Experiments as tables tell them: by hand, on tables without noise, and against potential outcomes."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.classic import Ratio
from analysis.effects.estimators.adjusted import Adjusted
from analysis.effects.observations import Observations, checked
from analysis.effects.stays import ObservedRows, stays
from analysis.effects.study import Study, course, potential
from analysis.statistics import NotEnoughDataError
from models.errors import InputError
from models.randomness import stream
from tests.helpers.effect_studies import observed

TABLE = observed(np.random.default_rng(1))


def test_the_course_of_a_job_by_hand():
    """Deviations -0.2, 0 and 0.5 of jobs of 2, 2 and 1 instances; half known at 10 instances."""
    table = pd.DataFrame(
        {"job": "a", "period": [0, 0, 1, 1, 2], "machine": [1, 2, 1, 2, 1], "value": [3.0, 5.0, 4.0, 6.0, 7.5]}
    ).assign(weight=1.0, treated=False)
    (rows,) = ObservedRows.of(Observations.of(table))
    scale, mean = np.array([5.0]), (2 * -0.2 + 2 * 0.0 + 1 * 0.5) / 5
    first, second, third = (-0.2 - mean) * 2 / 12, (0.0 - mean) * 2 / 12, (0.5 - mean) * 1 / 11
    assert course(rows, rows, scale).tolist() == pytest.approx([first, first, second, second, third])
    assert course(rows[2:], rows, scale).tolist() == pytest.approx([second, second, third])
    assert course(rows, rows[:2], scale).tolist() == [0.0] * 5


def test_the_course_counts_instances_by_the_longest_time_that_any_is_there():
    """Deviations -0.8 / 3 and 0.5 of 1.5 instances and of one."""
    table = pd.DataFrame(
        {
            "job": "a",
            "period": [0, 0, 1],
            "machine": [1, 2, 1],
            "value": [3.0, 5.0, 7.5],
            "present_s": [60.0, 30.0, 60.0],
        }
    ).assign(weight=1.0, treated=False)
    (rows,) = ObservedRows.of(Observations.of(table))
    mean = (90 * -0.8 / 3 + 60 * 0.5) / 150
    first, second = (-0.8 / 3 - mean) * 1.5 / 11.5, (0.5 - mean) * 1 / 11
    assert course(rows, rows, np.array([5.0])).tolist() == pytest.approx([first, first, second])


def test_a_ratio_of_sums_needs_what_values_are_per():
    table = TABLE.drop(columns=[name for name in ("exposure", "cpu_s") if name in TABLE])
    with pytest.raises(InputError, match="needs the column exposure"):
        Study.of(table, target="sums")


def test_a_period_that_nothing_tells_of_and_a_job_outside_the_fleet_have_no_course():
    table = pd.DataFrame({"job": ["a", "a", "b", "b"], "period": [0, 1, 0, 1], "machine": 1, "value": [1.0, 3.0] * 2})
    (rows,) = ObservedRows.of(Observations.of(table.assign(weight=1.0, treated=[0, 0, 0, 1])))
    assert course(rows, rows.controls, np.array([2.0, np.nan])).tolist() == pytest.approx([-0.5 / 11, 0.5 / 11, 0, 0])


def test_a_stay_is_its_periods_by_exposure_and_its_presence_its_time():
    row = {"job": "a", "machine": 1, "instance": [7, 7, 8], "weight": 1.0, "treated": False, "value": [1.0, 4.0, 2.0]}
    table = pd.DataFrame(row | {"period": [0, 1, 0], "present_s": [60.0, 40.0, 50.0], "cpu_s": [2.0, 1.0, 1.0]})
    made = stays(table)
    assert made["value"].tolist() == pytest.approx([2.0, 2.0])
    assert made["presence"].tolist() == pytest.approx([1.0, 0.5])


def test_without_any_past_there_are_no_covariates_and_values_are_relative_to_the_controls():
    study = Study.of(TABLE[TABLE["period"] == 1])
    assert study.cells.x.shape[1] == 0
    controls = TABLE[(TABLE["period"] == 1) & ~TABLE["treated"]]
    assert study.cells.scale == pytest.approx(controls.groupby("job")["value"].mean().to_numpy())
    assert Adjusted().estimate(study).change == pytest.approx(0.05, abs=0.08)


def crossed(rng, *, machines=20, jobs=3, periods=6, noise=0.0, always=0):
    """Machines switched by a random balanced schedule; levels, courses and machines' ways differ."""
    machine, job, period = (each.ravel() for each in np.indices((machines, jobs, periods)))
    schedule = np.array([rng.permutation(np.arange(periods) % 2) for _ in range(machines)])
    schedule[:always] = 1
    treated = schedule[machine, period]
    value = (1.0 + job) * np.exp(0.3 * rng.standard_normal((machines, jobs)))[machine, job]
    value = value * np.exp(0.2 * rng.standard_normal((jobs, periods)))[job, period] * (1.0 + 0.04 * treated)
    value = value * np.exp(noise * rng.standard_normal(len(value)))
    row = {"period": period, "job": job, "machine": machine, "weight": 1.0 + job, "treated": treated}
    return pd.DataFrame(row | {"value": value})


def test_a_crossover_without_noise_is_exact_whatever_levels_and_course():
    table = crossed(np.random.default_rng(1)).sample(frac=0.9, random_state=1)
    study = Study.of(table)
    found = Adjusted().estimate(study)
    assert (found.design, found.controls) == ("crossover", 0)
    assert found.change == pytest.approx(0.04, abs=1e-9)
    assert found.error < 1e-9
    assert Ratio().estimate(study).change == pytest.approx(0.04, abs=1e-9)


def test_machines_that_have_the_feature_in_all_periods_say_nothing_in_a_crossover():
    found = Adjusted().estimate(Study.of(crossed(np.random.default_rng(1), always=3)))
    assert found.machines == 17
    assert found.change == pytest.approx(0.04, abs=1e-9)


def test_controls_of_a_crossover_are_the_machines_that_never_have_the_feature():
    table = crossed(np.random.default_rng(1), always=3)
    never = table["machine"] >= 9
    table = table.assign(value=table["value"] / np.where(never, 1.0 + 0.04 * table["treated"], 1.0))
    found = Adjusted().estimate(Study.of(table.assign(treated=table["treated"] * ~never)))
    assert (found.machines, found.controls) == (6, 11)


def test_two_periods_in_either_order_are_a_crossover():
    found = Adjusted().estimate(Study.of(crossed(np.random.default_rng(1), periods=2)))
    assert found.change == pytest.approx(0.04, abs=1e-9)


@pytest.mark.statistical
def test_a_crossovers_interval_is_as_wide_as_its_estimates_vary():
    """40 fleets: the mean error is within a third of the estimates' spread in all but 1 of 100 seeds."""
    found = [
        Adjusted().estimate(Study.of(crossed(stream(seed, "crossed"), machines=12, periods=4, noise=0.03)))
        for seed in range(40)
    ]
    spread = np.std([each.change for each in found])
    assert np.mean([each.error for each in found]) == pytest.approx(spread, rel=0.33)
    assert sum(each.low <= 0.04 <= each.high for each in found) >= 34


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": np.nan}, "value must be a finite number above 0, got nan in row 3"),
        ({"value": -1.0}, "value must be a finite number above 0, got -1.0 in row 3"),
        ({"weight": -2.0}, "weight must be a finite number above 0, got -2.0 in row 3"),
        ({"treated": 2}, "treated must be 0 or 1, got 2"),
        ({"treated": np.nan}, "treated must be 0 or 1, got nan"),
        ({"present_s": 0.0}, "present_s must be a finite number above 0, got 0.0 in row 3"),
        ({"cpu_s": np.nan}, "cpu_s must be a finite number of 0 or more, got nan in row 3"),
        ({"job": None}, "job must not be missing, it is in row 3"),
        ({"machine": None}, "machine must not be missing, it is in row 3"),
        ({"instance": None}, "instance must not be missing, it is in row 3"),
    ],
)
def test_what_makes_no_sense_is_named_with_its_row(change, message):
    table = TABLE.assign(present_s=1.0, cpu_s=1.0, treated=TABLE["treated"].astype(int)).astype(
        dict.fromkeys(change, object)
    )
    for name, value in change.items():
        table.loc[3, name] = value
    with pytest.raises(ValueError, match=message):
        Study.of(table)


def test_a_machine_with_and_without_the_feature_in_one_period_is_named():
    table = TABLE.copy()
    row = table.index[table["treated"]][0]
    table.loc[row, "treated"] = False
    with pytest.raises(
        ValueError, match=f"machine {table['machine'][row]} is with and without the feature in period 1"
    ):
        Study.of(table)


def test_what_is_missing_altogether_is_said():
    with pytest.raises(ValueError, match="the table lacks weight, treated"):
        Study.of(TABLE.drop(columns=["weight", "treated"]))
    with pytest.raises(NotEnoughDataError, match="no observations with the feature: at least 1 is needed"):
        Study.of(TABLE[TABLE["period"] == 0])
    with pytest.raises(NotEnoughDataError, match="no observations without the feature: at least 1 is needed"):
        Study.of(TABLE[TABLE["treated"]])


def test_a_table_of_jobs_that_makes_no_sense_is_refused():
    jobs = pd.DataFrame({"job": [0, 1, 2, 3], "quota": 1.0})
    with pytest.raises(ValueError, match="the table of jobs lacks quota"):
        Study.of(TABLE, jobs[["job"]])
    with pytest.raises(ValueError, match="2 is again in row 4"):
        Study.of(TABLE, pd.concat([jobs, jobs[2:3]]))
    with pytest.raises(ValueError, match="quota must be a finite number of 0 or more"):
        Study.of(TABLE, jobs.assign(quota=np.nan))
    with pytest.raises(ValueError, match="job 3 is not among the fleet's jobs"):
        Study.of(TABLE, jobs[:3])


def test_too_few_machines_and_no_comparable_job_are_told_apart():
    few = TABLE[
        (TABLE["period"] == 0) | ~TABLE["treated"] | (TABLE["machine"] == TABLE.loc[TABLE["treated"], "machine"].min())
    ]
    with pytest.raises(NotEnoughDataError, match="2 machines with the feature are needed, 1 given"):
        Adjusted().estimate(Study.of(few))
    apart = TABLE[(TABLE["job"] == 0) == TABLE.groupby("machine")["treated"].transform("any")]
    with pytest.raises(NotEnoughDataError, match="no jobs with machines in both arms"):
        Adjusted().estimate(Study.of(apart))


def test_checking_leaves_the_table_as_it_was():
    before = TABLE.copy()
    checked(TABLE)
    pd.testing.assert_frame_equal(TABLE, before)


@pytest.mark.statistical
def test_studies_of_drawn_machines_agree_with_potential_outcomes():
    """24 draws on a fleet of two weeks: the two means differ by less than 0.2 of the spread between draws (they share
    draws, so that leaves room for 1 of 1,000 seeds), the spreads by less than 0.15."""
    rng = stream(3, "two weeks")
    machines, jobs, days = 60, 4, 6
    machine, job = np.divmod(np.arange(machines * jobs), jobs)
    own = (1.0 + job) * np.exp(0.1 * rng.standard_normal(len(job)))
    common = np.exp(0.05 * rng.standard_normal((jobs, days)))
    row = {"job": job, "machine": machine, "instance": np.arange(len(job)), "weight": 1.0, "treated": 0}
    off = pd.concat(
        [
            pd.DataFrame(
                row | {"period": day, "value": own * common[job, day] * np.exp(0.03 * rng.standard_normal(len(job)))}
            )
            for day in range(days)
        ]
    )
    off = off[rng.random(len(off)) < 0.9].reset_index(drop=True)
    past, off = off[off["period"] < days // 2], off[off["period"] >= days // 2]
    on = off.assign(value=off["value"] * 1.02)
    whole = potential(past, off, on)
    treated = np.array([rng.permutation(machines) < 12 for _ in range(24)])
    at_once = Adjusted().many(whole, treated)
    one_by_one = []
    for each in treated:
        chosen = off["machine"].isin(whole.machines[each])
        seen = pd.concat([past, off[~chosen], on[chosen].assign(treated=1)])
        one_by_one.append(Adjusted().estimate(Study.of(seen)))
    change = np.array([each.change for each in one_by_one])
    spread = at_once.change.std()
    assert abs(change.mean() - at_once.change.mean()) < 0.2 * spread
    assert change.std() == pytest.approx(spread, rel=0.15)
    assert np.mean([each.error for each in one_by_one]) == pytest.approx(at_once.error.mean(), rel=0.15)
