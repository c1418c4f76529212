"""Sums by machine and job against pandas, and what cannot be summed."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.cells import cells
from tests.helpers.effect_studies import fleet_jobs, fleet_rows


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
