"""A staged roll-out: exact without noise, equal to a slow twin, honest on simulated tables, plain about bad ones."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.estimators.staged import Staged
from analysis.effects.observations import Observations
from analysis.effects.study import Study
from analysis.statistics import NotEnoughDataError
from models.randomness import stream

JOBS = pd.DataFrame({"job": range(6), "quota": [50.0, 20.0, 15.0, 10.0, 4.0, 1.0]})


def staged(rows, jobs=None, *, confidence=0.95, **how):
    return Staged().estimate(Study.of(rows, jobs, staged=True, **how), confidence)


def table(machines=40, periods=8, *, past=2, waves=(4, 6, 8), rng=None, per_machine=5, order=None):
    """Rows of a roll-out without values: a wave a period from `past` on; the other machines never get the feature."""
    rng = rng or stream(1, "placement")
    machine = np.repeat(np.arange(machines), per_machine)
    job = rng.choice(6, len(machine), p=[0.3, 0.25, 0.2, 0.15, 0.07, 0.03])
    start = np.full(machines, 10**6)
    places = rng.permutation(machines) if order is None else order
    for wave, size in enumerate(waves):
        start[places[sum(waves[:wave]) :][:size]] = past + wave
    rows = pd.DataFrame({"job": job, "machine": machine, "instance": np.arange(len(machine)), "weight": 1.0})
    rows = rows.merge(pd.DataFrame({"period": np.arange(periods)}), how="cross")
    return rows.assign(treated=(rows["period"].to_numpy() >= start[rows["machine"]]).astype(int))


def course(rows):
    """A course of its own for each job: trends, a weekly wave and steps that a comparison with before would take in."""
    return 1.0 + 0.1 * rows["job"] + 0.05 * rows["period"] * (rows["job"] - 2) + 0.2 * (rows["period"] >= 4)


@pytest.mark.parametrize("per_machine", [5, 12])
def test_without_noise_one_relative_effect_is_found_exactly_whatever_the_jobs_courses(per_machine):
    rows = table(per_machine=per_machine)
    rows["value"] = course(rows) * np.where(rows["treated"] == 1, 1.03, 1.0)
    found = staged(rows, JOBS)
    assert found.change == pytest.approx(0.03, abs=1e-9)
    assert found.error < 1e-5
    assert (found.design, found.machines, found.controls) == ("staged", 18, 36)


def test_without_noise_effects_of_jobs_weigh_by_quota_and_level():
    rows = table(machines=200, waves=(30, 30, 30))
    effect = np.array([0.05, -0.03, 0.02, 0.0, 0.1, -0.1])
    level = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    rows["value"] = level[rows["job"]] * (1 + effect[rows["job"]] * rows["treated"])
    weight = JOBS["quota"].to_numpy() * level
    assert staged(rows, JOBS).change == pytest.approx((weight * effect).sum() / weight.sum(), abs=1e-7)


def test_what_an_instance_keeps_from_before_is_taken_out_exactly():
    rows = table()
    own = 0.3 * stream(2, "own").standard_normal(rows["instance"].max() + 1)
    rows["value"] = 2.0 + 0.1 * rows["period"] + own[rows["instance"]] + 0.05 * rows["treated"]
    level = (2.0 + 0.1 * np.arange(2, 8)).mean() + own.mean()
    found, blind = staged(rows, load=False), staged(rows, link="none")
    assert found.change == pytest.approx(0.05 / level, rel=0.05)
    assert found.margin < 0.05 * blind.margin


def slow(rows):
    """The effect on one job: period by period, overlap weights, with loops."""
    above = below = 0.0
    for _, now in rows[rows["period"] >= rows.loc[rows["treated"] == 1, "period"].min()].groupby("period"):
        one, other = now.loc[now["treated"] == 1, "value"], now.loc[now["treated"] == 0, "value"]
        if len(one) and len(other):
            weight = len(one) * len(other) / (len(one) + len(other))
            above += weight * (one.mean() - other.mean())
            below += weight * other.mean()
    return above / below


def test_one_job_s_effect_is_that_of_a_slow_twin():
    rng = stream(3, "twin")
    rows = table(waves=(4, 10, 20)).assign(job="a")
    rows["value"] = np.exp(0.1 * rng.standard_normal(len(rows)) + 0.02 * rows["treated"])
    assert staged(rows, link="none").change == pytest.approx(slow(rows), rel=1e-9)


def test_rows_in_another_order_and_names_as_text_change_nothing():
    rng = stream(4, "order")
    rows = table()
    rows["value"] = np.exp(0.1 * rng.standard_normal(len(rows)))
    found = staged(rows, JOBS)
    other = rows.sample(frac=1, random_state=1).assign(machine=lambda known: "m" + known["machine"].astype(str))
    again = staged(other, JOBS)
    assert again.change == pytest.approx(found.change, abs=1e-12)
    assert again.error == pytest.approx(found.error, rel=1e-9)


def test_an_instance_there_for_a_tenth_of_the_time_counts_a_tenth():
    rng = stream(5, "presence")
    rows = table(waves=(10, 10)).assign(job="a", present_s=100.0)
    rows["value"] = np.exp(0.1 * rng.standard_normal(len(rows)))
    brief = rows["instance"] % 7 == 0
    tenfold = pd.concat(
        [rows[brief]] + [rows[~brief].assign(instance=lambda t, k=k: t["instance"] + 1000 * k) for k in range(10)]
    )
    once = rows.assign(present_s=np.where(brief, 10.0, 100.0))
    assert staged(once, link="none").change == pytest.approx(staged(tenfold, link="none").change, rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize(("machines", "waves"), [(60, (5, 5, 5)), (40, (10, 10, 10, 10))])
def test_intervals_cover_the_fleet_s_change(machines, waves):
    """Nominal 95% of 25 roll-outs, machines and instances persistent; below 21 of them with probability 0.007.

    In the second case every machine gets the feature in the end.
    """
    effect = np.array([0.03, -0.02, 0.01, 0.0, 0.02, 0.02])
    weight = JOBS["quota"].to_numpy()
    truth = (weight * effect).sum() / weight.sum()
    inside = []
    for seed in range(25):
        rng = stream(seed, "coverage")
        rows = table(machines, 6, waves=waves, rng=rng, past=1)
        own = 0.05 * rng.standard_normal(rows["instance"].max() + 1)
        shared = 0.03 * rng.standard_normal(machines)
        noise = 0.05 * rng.standard_normal(len(rows)) + own[rows["instance"]] + shared[rows["machine"]]
        trend = 1 + 0.03 * rows["period"] * (rows["job"] % 2)
        rows["value"] = trend * (1 + effect[rows["job"]] * rows["treated"] + noise)
        found = staged(rows, JOBS, link="own", load=False)
        inside.append(found.low <= truth <= found.high)
    assert sum(inside) >= 21


def test_periods_without_controls_are_left_out_and_named():
    rows = table(waves=(10, 10, 20), periods=6)
    rows["value"] = course(rows) * np.where(rows["treated"] == 1, 1.03, 1.0)
    found = staged(rows, JOBS)
    assert found.notes == ("periods without a machine that lacks the feature were left out: 4, 5",)
    assert (found.machines, found.controls) == (20, 30)
    assert found.change == pytest.approx(0.03, abs=1e-9)


def design(rows):
    return Observations.of(rows).design


def test_a_feature_taken_away_is_no_staged_roll_out():
    rows = table().assign(value=1.0)
    rows.loc[(rows["machine"] == 3) & (rows["period"] == 7), "treated"] = 0
    rows.loc[(rows["machine"] == 3) & (rows["period"] == 6), "treated"] = 1
    with pytest.raises(ValueError, match="machine 3 has lost the feature again in period 7"):
        staged(rows)
    assert design(rows) == "crossover"


def test_a_roll_out_is_told_from_one_wave():
    assert design(table()) == "staged"
    assert design(table(waves=(10,))) == "concurrent"
    # A machine with the feature that hosts nothing at first is no later wave.
    one = table(waves=(10,))
    late = one[(one["treated"] == 1)]["machine"].iloc[0]
    assert design(one[~((one["machine"] == late) & (one["period"] < 5))]) == "concurrent"


def test_too_little_is_said():
    rows = table(waves=(1,)).assign(value=1.0)
    with pytest.raises(NotEnoughDataError, match="2 machines with the feature are needed, 1 given"):
        staged(rows)
    with pytest.raises(NotEnoughDataError, match="2 machines with the feature are needed, 0 given"):
        staged(rows.assign(treated=0))
    with pytest.raises(NotEnoughDataError, match="2 machines without it while others have it are needed, 1 given"):
        staged(table(machines=5, waves=(4,)).assign(value=1.0))
    apart = table(waves=(10,)).assign(value=1.0)
    apart["job"] = np.where(apart.groupby("machine")["treated"].transform("max") == 1, "a", "b")
    with pytest.raises(NotEnoughDataError, match="jobs seen with and without the feature in one period"):
        staged(apart)
    with pytest.raises(ValueError, match="each job must be there once, 5 is again in row 6"):
        staged(table().assign(value=1.0), pd.concat([JOBS, JOBS[5:]]))
    with pytest.raises(ValueError, match="job 5 is not among the fleet's jobs"):
        staged(table().assign(value=1.0), JOBS.iloc[:5])
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        staged(table().assign(value=1.0), confidence=95)
