import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.wsmeter.summaries import Current, job_statistics, machine_values, quota_shares

rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.floats(0.1, 10), st.floats(0, 100)), min_size=1, max_size=30
)


def table_of(listed):
    return pd.DataFrame(listed, columns=["job", "machine", "weight", "value"])


@settings(deadline=None)
@given(rows, st.sampled_from([0, 1]))
def test_job_statistics_equal_those_of_a_plain_loop(listed, ddof):
    by_job = {}
    for job, _, weight, value in listed:
        by_job.setdefault(job, []).append((weight, value))
    statistics = job_statistics(table_of(listed), ddof)
    assert statistics["job"].tolist() == sorted(by_job)
    for row in statistics.itertuples():
        values = [value for _, value in by_job[row.job]]
        mean = math.fsum(values) / len(values)
        squares = math.fsum((value - mean) ** 2 for value in values)
        std = math.sqrt(squares / (len(values) - ddof)) if len(values) > ddof else math.nan
        assert row.mean == pytest.approx(mean, abs=1e-12)
        assert row.std == pytest.approx(std, abs=1e-6, nan_ok=True)
        assert row.weight == pytest.approx(math.fsum(weight for weight, _ in by_job[row.job]))
        assert row.instances == len(values)


def test_a_machines_ipc_is_its_instructions_over_its_cycles():
    cycles, instructions = np.array([10.0, 30.0, 5.0]), np.array([5.0, 60.0, 5.0])
    table = pd.DataFrame({"machine": [1, 1, 2], "weight": 1.0, "value": instructions / cycles, "exposure": cycles})
    assert machine_values(table)["value"].tolist() == pytest.approx([65 / 40, 1.0])


def test_without_exposure_a_machine_weighs_its_instances_by_weight():
    table = pd.DataFrame({"machine": ["m", "m"], "weight": [1.0, 3.0], "value": [1.0, 2.0]})
    assert machine_values(table)["value"].tolist() == [1.75]


def test_a_summary_keeps_all_machines_when_jobs_are_left_out():
    table = table_of([("a", 1, 1.0, 2.0), ("b", 2, 1.0, 4.0)])
    only = Current.of(table).only(pd.Index(["b", "x"]))
    assert (only.job.tolist(), only.mean.tolist(), only.machine_value.tolist()) == (["b"], [4.0], [2.0, 4.0])


def test_a_summary_of_a_summary_is_itself():
    summary = Current.of(table_of([("a", 1, 1.0, 2.0)]))
    assert Current.of(summary) is summary


def test_quota_shares_are_of_the_whole_fleet():
    jobs = pd.DataFrame({"job": ["a", "b", "c"], "quota": [1.0, 2.0, 5.0]})
    np.testing.assert_array_equal(quota_shares(jobs, pd.Index(["c", "z", "a"])), [0.625, np.nan, 0.125])
