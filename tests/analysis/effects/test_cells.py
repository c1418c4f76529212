"""Sums by machine and job against pandas, and what cannot be summed."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.cells import cells, only, totals
from analysis.effects.methods import method
from analysis.statistics import NotEnoughDataError
from models.randomness import stream
from tests.helpers.effect_studies import fleet_jobs, fleet_rows
from tests.helpers.effect_studies import small_study as example


@pytest.fixture
def fleet():
    rng = np.random.default_rng(2)
    return fleet_rows(rng), fleet_jobs(rng)


def test_sums_are_those_of_each_machine_and_job(fleet):
    rows, jobs = fleet
    made = cells(rows, jobs)
    p, scale = rows["presence"], rows["job"].map(jobs.set_index("job")["scale"])
    centred = pd.DataFrame()
    for k in range(2):
        weighted = (p * rows[f"x{k}"]).groupby(rows["job"]).sum() / p.groupby(rows["job"]).sum()
        centred[k] = rows[f"x{k}"] - rows["job"].map(weighted)

    def summed(value):
        return value.groupby([rows["machine"], rows["job"]]).sum().to_numpy()

    off, on = rows["off"] / scale, rows["on"] / scale
    assert np.allclose(made.count, summed(p))
    assert np.array_equal(made.instances, summed(p * 0 + 1))
    assert np.allclose(made.quota, summed(p * rows["quota"]))
    for arm, value in enumerate((off, on)):
        assert np.allclose(made.y[:, arm], summed(p * value))
        assert np.allclose(made.yy[:, arm], summed(p * value**2))
        for k in range(2):
            assert np.allclose(made.xy[:, arm, k], summed(p * value * centred[k]))
    for k in range(2):
        assert np.allclose(made.x[:, k], summed(p * centred[k]))
        for m in range(2):
            assert np.allclose(made.xx[:, k, m], summed(p * centred[k] * centred[m]))
    pairs = rows[["machine", "job"]].drop_duplicates().sort_values(["machine", "job"])
    assert np.array_equal(made.job, pairs["job"])
    assert np.array_equal(np.repeat(made.machines, np.diff(made.start)), pairs["machine"])


def test_covariates_are_centred_within_jobs(fleet):
    made = cells(*fleet)
    for k in range(2):
        assert np.bincount(made.job, made.x[:, k]) == pytest.approx(0, abs=1e-12)


def test_shares_are_of_the_whole_quota_and_the_weight_is_in_units_of_performance(fleet):
    rows, jobs = fleet
    made = cells(rows, jobs)
    assert made.share.sum() == pytest.approx(1)
    assert made.weight == pytest.approx(jobs["quota"] * jobs["scale"] / jobs["quota"].sum())


def test_what_was_not_observed_is_nothing(fleet):
    rows, jobs = fleet
    made = cells(rows.assign(on=np.nan), jobs)
    assert not made.y[:, 1].any()
    assert not made.xy[:, 1].any()


def test_the_past_is_found_by_machine_and_is_nothing_where_unknown(fleet):
    rows, jobs = fleet
    before = pd.DataFrame({"value": [3.0], "quota": [2.0]}, index=[4])
    made = cells(rows, jobs, before)
    assert made.before[4].tolist() == [3.0, 2.0]
    assert made.before.sum() == 5.0


def test_a_job_or_a_rack_that_is_unknown_is_named(fleet):
    rows, jobs = fleet
    with pytest.raises(ValueError, match="job 3 is not among the fleet's jobs"):
        cells(rows, jobs[jobs["job"] != 3])
    with pytest.raises(ValueError, match="machine 13 is in no rack"):
        cells(rows, jobs, racks=pd.Series(0, index=range(13)))


def test_sums_are_those_of_a_loop_over_instances():
    rng = stream(1, "totals")
    rows, jobs = fleet_rows(rng), fleet_jobs(rng)
    made = totals(cells(rows, jobs))
    share = (jobs["quota"] / jobs["quota"].sum()).to_numpy()
    held = rows.groupby("job")["presence"].sum()
    x = rows[["x0", "x1"]]
    means = (x.mul(rows["presence"], axis=0)).groupby(rows["job"]).sum().div(held, axis=0)
    quota, value, known = np.zeros(14), np.zeros((14, 2)), np.zeros((14, 2))
    for row in rows.to_dict("records"):
        job, machine = row["job"], row["machine"]
        part = share[job] * row["presence"] / held[job]
        quota[machine] += part * jobs["scale"][job]
        value[machine] += part * np.array([row["off"], row["on"]])
        known[machine] += part * jobs["scale"][job] * (np.array([row["x0"], row["x1"]]) - means.loc[job])
    there = np.unique(rows["machine"])
    np.testing.assert_allclose(made.quota, quota[there])
    np.testing.assert_allclose(made.value, value[there])
    np.testing.assert_allclose(made.x, known[there], atol=1e-12)


def test_a_job_that_was_there_for_part_of_the_time_has_its_full_quota():
    rows = pd.DataFrame({"job": ["a", "b"], "machine": [0, 1], "quota": 1.0, "off": 2.0, "on": 3.0})
    rows["presence"] = [1.0, 0.1]
    made = totals(cells(rows, pd.DataFrame({"job": ["a", "b"], "quota": 1.0, "scale": 2.0})))
    np.testing.assert_allclose(made.quota, [1.0, 1.0])


@pytest.mark.parametrize("name", ["adjusted", "unadjusted", "ratio", "concurrent"])
def test_estimators_say_what_they_say_of_a_fleet_of_that_job_alone(name):
    rng = stream(1, "one job")
    rows, jobs = fleet_rows(rng, machines=40), fleet_jobs(rng)
    of_job = only(cells(rows, jobs), 2)
    alone = cells(rows[rows["job"] == 2], jobs[jobs["job"] == 2])
    assert of_job.machines.tolist() == alone.machines.tolist()
    treated = np.arange(len(alone.machines)) % 3 == 0
    found, expected = (method(name).many(one, treated[None, :]) for one in (of_job, alone))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_the_past_is_that_of_the_job():
    past = pd.DataFrame({"period": 0, "job": [0, 2, 2, 2], "machine": [1, 1, 1, 5], "instance": range(4)})
    past = past.assign(weight=[9.0, 1.0, 3.0, 2.0], value=[9.0, 2.0, 4.0, 5.0], treated=0)
    made = only(example().cells, 2, past)
    assert made.before[[1, 5]].tolist() == [[14.0, 4.0], [10.0, 2.0]]
    assert made.before.sum() == 30.0
    assert only(example().cells, 2, past[past["job"] == 0]).before.sum() == 0.0


def test_a_job_that_is_nowhere_is_refused():
    with pytest.raises(NotEnoughDataError, match="machines with job 17"):
        only(example().cells, 17)
