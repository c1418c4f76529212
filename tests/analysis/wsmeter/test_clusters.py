import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.clusters import MachineRows, covering_machines, random_instances, random_machines


def rng(seed=0):
    return np.random.default_rng(seed)


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(0, 100))
def test_a_cluster_is_all_rows_of_its_machines_once(machines, seed):
    table = pd.DataFrame({"machine": machines})
    chosen = rng(seed).choice(np.unique(machines), rng(seed).integers(1, len(set(machines)) + 1), replace=False)
    rows = MachineRows.of(table)
    selected = rows.select(rows.machines.get_indexer(pd.Index(chosen)))
    assert sorted(selected) == [row for row, machine in enumerate(machines) if machine in chosen]


def test_machines_are_drawn_without_replacement():
    table = pd.DataFrame({"machine": np.repeat(np.arange(50), 3)})
    rows = random_machines(rng(), MachineRows.of(table), 50)
    assert sorted(rows) == list(range(150))


@pytest.mark.statistical
def test_every_machine_is_drawn_equally_often():
    """False-alarm rate: 1e-4, the level of the chi-square test.

    Drawing 5 of 20 without replacement makes counts less variable than the test assumes: it errs on the quiet side.
    """
    rows, stream = MachineRows.of(pd.DataFrame({"machine": np.arange(20)})), rng(1)
    counts = sum(np.bincount(random_machines(stream, rows, 5), minlength=20) for _ in range(4000))
    assert chisquare(counts).pvalue > 1e-4


def test_too_few_machines_says_how_many_are_needed():
    rows = MachineRows.of(pd.DataFrame({"machine": [1, 2]}))
    with pytest.raises(NotEnoughDataError, match=r"^3 machines are needed, 2 given$"):
        random_machines(rng(), rows, 3)
    with pytest.raises(ValueError, match=r"^size must be at least 1 machine, got 0$"):
        random_machines(rng(), rows, 0)


def two_kinds():
    """Return 10 machines, of which the last five alone run 4 instances of job b, and the jobs' shares."""
    machine = np.concatenate([np.repeat(range(10), 4), np.repeat(range(5, 10), 4)])
    table = pd.DataFrame({"job": ["a"] * 40 + ["b"] * 20, "machine": machine})
    return table, pd.DataFrame({"job": ["a", "b"], "quota_share": [0.25, 0.75]})


def test_machines_are_drawn_again_until_the_coverage_is_reached():
    table, jobs = two_kinds()
    rows = MachineRows.of(table)
    clusters = [covering_machines(rng(seed), table, rows, 1, jobs=jobs, floor=0.9) for seed in range(200)]
    assert {cluster.quota_coverage for cluster in clusters} == {1.0}
    assert all(set(table["machine"].iloc[cluster.rows]) <= set(range(5, 10)) for cluster in clusters)
    assert any(cluster.reselections > 0 for cluster in clusters)


def test_reselections_count_the_draws_thrown_away():
    table, jobs = two_kinds()
    rows, stream = MachineRows.of(table), rng(3)
    expected = 0
    while set(table["machine"].iloc[random_machines(stream, rows, 1)]) <= set(range(5)):
        expected += 1
    assert covering_machines(rng(3), table, rows, 1, jobs=jobs, floor=0.9).reselections == expected


def test_a_coverage_out_of_reach_says_the_best():
    table, jobs = two_kinds()
    with pytest.raises(ValueError, match=r"^quota coverage must reach 1\.100; the best of 50 draws of 1 has 1\.000$"):
        covering_machines(rng(), table, MachineRows.of(table), 1, jobs=jobs, floor=1.1, attempts=50)


@settings(deadline=None)
@given(st.integers(0, 1000))
def test_random_instances_meet_the_allocation_job_by_job(seed):
    table = pd.DataFrame({"job": rng(seed).permutation(["a"] * 9 + ["b"] * 5 + ["c"] * 3)})
    rows = random_instances(rng(seed), table, pd.DataFrame({"job": ["c", "a"], "instances": [1, 4]}))
    assert len(set(rows)) == len(rows)
    assert table["job"].iloc[rows].value_counts().to_dict() == {"a": 4, "c": 1}


@pytest.mark.statistical
def test_every_instance_of_a_job_is_drawn_equally_often():
    """False-alarm rate: below 1e-4, the level of the chi-square test."""
    table, plan, stream = pd.DataFrame({"job": list("abababa")}), pd.DataFrame({"job": ["a"], "instances": [1]}), rng(2)
    counts = np.bincount([random_instances(stream, table, plan).item() for _ in range(1500)], minlength=7)
    assert counts[1::2].sum() == 0
    assert chisquare(counts[::2]).pvalue > 1e-4


def test_an_allocation_beyond_a_jobs_instances_is_refused():
    with pytest.raises(NotEnoughDataError, match=r"^3 instances of job a are needed, 2 given$"):
        random_instances(rng(), pd.DataFrame({"job": list("aab")}), pd.DataFrame({"job": ["a"], "instances": [3]}))
