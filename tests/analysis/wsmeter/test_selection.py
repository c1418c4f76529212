"""Common jobs, top jobs and what a selection leaves out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.selection import common_jobs, job_overlap, quota_cdf, selection_curve, top_jobs

quotas = st.dictionaries(st.integers(0, 30), st.floats(0.1, 100), min_size=1, max_size=20)


def jobs_table(quota):
    return pd.DataFrame({"job": list(quota), "quota": list(quota.values())})


def measured(values):
    rows = [(job, value) for job, each in values.items() for value in each]
    return pd.DataFrame(rows, columns=["job", "value"]).assign(weight=1.0)


@given(quotas, quotas)
def test_overlap_counts_every_job_and_all_quota_once(a, b):
    overlap = job_overlap(jobs_table(a), jobs_table(b)).set_index("where")
    assert overlap["jobs"].to_dict() == {
        "both": len(a.keys() & b),
        "only_a": len(a.keys() - b),
        "only_b": len(b.keys() - a),
    }
    assert overlap["job_share"].sum() == pytest.approx(1)
    assert overlap["quota_share_a"].sum() == pytest.approx(1)
    assert overlap["quota_share_b"].sum() == pytest.approx(1)
    assert overlap.loc["both", "quota_share_a"] == pytest.approx(sum(a[job] for job in a if job in b) / sum(a.values()))
    assert overlap.loc["both", "quota_share_b"] == pytest.approx(sum(b[job] for job in a if job in b) / sum(b.values()))


@given(quotas, quotas)
def test_common_jobs_are_those_of_both_with_either_quota_heaviest_first(a, b):
    common = common_jobs(jobs_table(a), jobs_table(b))
    assert set(common["job"]) == a.keys() & b
    assert common["quota_a"].is_monotonic_decreasing
    assert all(row.quota_a == a[row.job] and row.quota_b == b[row.job] for row in common.itertuples())


def test_jobs_with_names_are_matched_by_name_not_by_number():
    a = pd.DataFrame({"job": [0, 1], "name": ["db", "cache"], "quota": [2.0, 1.0]})
    b = pd.DataFrame({"job": [0, 1], "name": ["mail", "db"], "quota": [2.0, 1.0]})
    assert common_jobs(a, b)["name"].tolist() == ["db"]
    assert job_overlap(a, b)["jobs"].tolist() == [1, 1, 1]


@given(quotas, st.integers(0, 25))
def test_top_jobs_are_the_heaviest(quota, n):
    chosen = top_jobs(jobs_table(quota), n)
    assert sorted(chosen["quota"]) == sorted(quota.values())[max(0, len(quota) - n) :]


def test_top_jobs_of_equal_quota_keep_their_order():
    table = pd.DataFrame({"job": list("abcd"), "quota": [1.0, 2.0, 1.0, 2.0]})
    assert top_jobs(table, 3)["job"].tolist() == ["b", "d", "a"]


@given(quotas, st.data())
def test_the_curve_is_the_weighted_mean_of_the_selected_jobs(quota, data):
    values = {job: data.draw(st.lists(st.floats(0.5, 3), min_size=1, max_size=3)) for job in quota}
    size = data.draw(st.integers(1, len(quota)))
    row = selection_curve(measured(values), jobs_table(quota), [size]).iloc[0]
    heaviest = sorted(quota, key=quota.get, reverse=True)[:size]  # stable, as the selection

    def metric(chosen):
        return sum(quota[job] * np.mean(values[job]) for job in chosen) / sum(quota[job] for job in chosen)

    assert row["quota_coverage"] == pytest.approx(sum(quota[job] for job in heaviest) / sum(quota.values()))
    assert row["value"] == pytest.approx(metric(heaviest))
    assert row["deviation"] == pytest.approx(metric(heaviest) / metric(quota) - 1, abs=1e-9)


def test_a_job_without_measurements_covers_quota_but_has_no_value():
    curve = selection_curve(measured({"a": [2.0]}), jobs_table({"big": 3.0, "a": 1.0}), [1, 2, 9])
    assert curve["quota_coverage"].tolist() == [0.75, 1.0, 1.0]
    assert curve["jobs"].tolist() == [1, 2, 2]
    assert np.isnan(curve["value"][0])
    assert curve["value"].tolist()[1:] == [2.0, 2.0]


def test_a_curve_without_any_measured_job_or_of_no_job_is_refused():
    with pytest.raises(NotEnoughDataError, match="no measured jobs of the jobs table"):
        selection_curve(measured({"x": [1.0]}), jobs_table({"a": 1.0}), [1])
    with pytest.raises(ValueError, match="at least 1 job, got 0"):
        selection_curve(measured({"a": [1.0]}), jobs_table({"a": 1.0}), [1, 0])


@given(quotas)
def test_the_quota_curve_is_concave_and_ends_at_one(quota):
    curve = quota_cdf(jobs_table(quota))
    assert curve["quota_share"].iloc[-1] == pytest.approx(1)
    assert np.all(np.diff(np.diff(curve["quota_share"], prepend=0)) <= 1e-12)
    assert np.all(curve["quota_share"] >= curve["job_share"] - 1e-12)
