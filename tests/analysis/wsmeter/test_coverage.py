import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.plan import plannable
from analysis.wsmeter.summaries import Current, covered

names = st.lists(st.sampled_from("abcde"), min_size=1, max_size=40)


def table_of(jobs, seed=0):
    rng = np.random.default_rng(seed)
    columns = {"job": jobs, "machine": range(len(jobs)), "weight": rng.uniform(1, 2, len(jobs))}
    return pd.DataFrame(columns | {"value": rng.uniform(1, 2, len(jobs))})


@settings(deadline=None)
@given(names, names, st.integers(1, 5), st.integers(1, 5))
def test_a_job_is_covered_when_both_tables_hold_enough_of_it(before, after, min_instances, min_current):
    jobs = pd.DataFrame({"job": list("abcd"), "quota": [4.0, 3.0, 2.0, 1.0]})
    there = [job for job in "abcd" if after.count(job) >= min_instances and before.count(job) >= min_current]
    if not there:
        with pytest.raises(NotEnoughDataError):
            covered(table_of(before), table_of(after, 1), min_instances, min_current, jobs)
        return
    found = covered(table_of(before), table_of(after, 1), min_instances, min_current, jobs)
    quota = [4.0 - "abcd".index(job) for job in there]
    assert found["job"].tolist() == there
    assert found["quota_share"].tolist() == pytest.approx([share / 10 for share in quota])
    assert found["weight"].tolist() == pytest.approx([share / sum(quota) for share in quota])
    assert found["instances_new"].tolist() == [after.count(job) for job in there]
    assert found["instances_current"].tolist() == [before.count(job) for job in there]


def test_means_and_spreads_are_those_of_either_table():
    before, after = table_of(list("aaaab")), table_of(list("baaaa"), 1)
    found = covered(before, Current.of(after)).iloc[0]
    for side, table in (("current", before), ("new", after)):
        values = table.loc[table["job"] == "a", "value"]
        assert (found[f"mean_{side}"], found[f"std_{side}"]) == pytest.approx((values.mean(), values.std(ddof=1)))


def test_without_a_jobs_table_a_job_weighs_as_in_the_current_table():
    before, after = table_of(list("aaaabbbb")), table_of(list("aaaabbbb"), 1)
    found = covered(before, after)
    expected = [before["weight"][half].sum() / before["weight"].sum() for half in (slice(0, 4), slice(4, 8))]
    assert found["weight"].tolist() == pytest.approx(expected)
    assert found["quota_share"].isna().all()


def test_a_plans_table_holds_the_populations_spread_and_the_quota_of_an_instance():
    current = table_of(list("aaaabbbbbccc"))
    found = plannable(current).set_index("job")
    assert found.index.tolist() == ["a", "b"]
    for job, row in found.iterrows():
        rows = current[current["job"] == job]
        assert row["std"] == pytest.approx(rows["value"].std(ddof=0))
        assert row["cost"] == pytest.approx(rows["weight"].mean())
        assert row["instances"] == len(rows)
    assert found["weight"].sum() == pytest.approx(1)


def test_a_plan_takes_weights_and_counts_of_the_whole_fleet_where_there_is_a_jobs_table():
    jobs = pd.DataFrame({"job": ["a", "c", "x"], "quota": [3.0, 1.0, 9.0], "instances": [7, 4, 9]})
    found = plannable(table_of(list("aaaabbbbbccc")), jobs)
    assert found[["job", "weight", "instances"]].to_numpy().tolist() == [["a", 0.75, 7], ["c", 0.25, 4]]
