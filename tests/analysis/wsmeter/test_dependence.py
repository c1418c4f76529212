"""Dependence between jobs: pairing by machine and rack, and the covariance term."""

import numpy as np
import pandas as pd
import pytest

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.dependence import (
    colocated_values,
    colocation_dependence,
    effective_correlation,
    rack_dependence,
)


def fleet(rng, machines, jobs, shared, instances_per_machine=1):
    """Return instances of every job on every machine; `shared` is the standard deviation that a machine's share."""
    machine = np.repeat(np.arange(machines), jobs * instances_per_machine)
    job = np.tile(np.repeat(np.arange(jobs), instances_per_machine), machines)
    value = 1 + shared * rng.normal(size=machines)[machine] + 0.1 * rng.normal(size=len(machine))
    columns = {"job": job, "machine": machine, "rack": machine // 10, "weight": 1.0, "value": value}
    return pd.DataFrame(columns)


def equal_jobs(jobs):
    return pd.DataFrame({"job": range(jobs), "quota": 1.0})


def test_a_neighbourhood_leaves_out_every_instance_of_the_job_and_weighs_by_exposure():
    table = pd.DataFrame(
        {
            "job": ["a", "a", "b", "c", "a", "b"],
            "machine": [1, 1, 1, 1, 2, 3],
            "weight": 1.0,
            "exposure": [1.0, 1.0, 3.0, 1.0, 1.0, 1.0],
            "value": [10.0, 20.0, 1.0, 5.0, 30.0, 7.0],
        }
    )
    pairs = colocated_values(table, "a")
    assert pairs["machine"].tolist() == [1, 1]
    assert pairs["value"].tolist() == [10.0, 20.0]
    assert pairs["others"].tolist() == [2.0, 2.0]


def test_neighbours_that_share_a_machines_condition_correlate():
    rng = np.random.default_rng(1)
    alike = colocation_dependence(fleet(rng, 300, 3, shared=0.3), equal_jobs(2))
    apart = colocation_dependence(fleet(rng, 300, 3, shared=0.0), equal_jobs(2))
    assert alike["instances"].tolist() == [300, 300]
    assert alike[["distance_correlation", "bias_corrected", "pearson"]].to_numpy().min() > 0.5
    assert apart["bias_corrected"].abs().max() < 0.05


def test_a_job_that_is_alone_has_no_coefficient():
    row = colocation_dependence(fleet(np.random.default_rng(2), 5, 1, 0.1), equal_jobs(1)).iloc[0]
    assert row["instances"] == 0
    assert np.isnan(row["pearson"])


def test_racks_pair_the_mean_values_of_two_jobs():
    table = fleet(np.random.default_rng(3), 200, 3, shared=0.2)
    pairs = rack_dependence(table, equal_jobs(3))
    means = table.pivot_table(index="rack", columns="job", values="value")
    assert pairs[["job_a", "job_b"]].to_numpy().tolist() == [[0, 1], [0, 2], [1, 2]]
    assert pairs["racks"].tolist() == [20, 20, 20]
    assert pairs["pearson"].tolist() == pytest.approx([means[a].corr(means[b]) for a, b in ((0, 1), (0, 2), (1, 2))])


def test_only_racks_with_both_jobs_count_and_three_are_too_few():
    table = pd.DataFrame({"job": list("aaaaabbb"), "rack": [1, 2, 3, 4, 5, 3, 4, 5], "value": np.arange(8.0)})
    row = rack_dependence(table, pd.DataFrame({"job": ["a", "b", "unseen"]})).iloc[0]
    assert row["racks"] == 3
    assert np.isnan(row["distance_correlation"])


def test_the_term_is_the_covariance_matrix_of_the_jobs_when_every_machine_holds_each_once():
    rng = np.random.default_rng(4)
    table, quota = fleet(rng, 80, 5, shared=0.05), rng.uniform(1, 5, 5)
    matrix = np.cov(table.pivot_table(index="machine", columns="job", values="value").to_numpy().T)
    matrix *= np.outer(quota, quota)
    errors = np.sqrt(np.diag(matrix))
    term = effective_correlation(table, pd.DataFrame({"job": range(5), "quota": quota}))
    ratio = (matrix.sum() - np.trace(matrix)) / np.trace(matrix)
    assert term.ratio == pytest.approx(ratio)
    assert term.effective_jobs == pytest.approx(errors.sum() ** 2 / np.sum(errors**2))
    assert term.ratio == pytest.approx((term.effective_jobs - 1) * term.mean_correlation)
    assert term.clustering == pytest.approx(1)
    assert (term.jobs, term.units) == (5, 80)


@pytest.mark.statistical
def test_the_term_predicts_the_variance_of_the_weighted_mean_of_random_clusters():
    """2,000 clusters of 40 of 2,000 machines: the ratio of variances within 15 % (4.7 standard errors; 3e-6)."""
    rng = np.random.default_rng(5)
    table = fleet(rng, 2000, 8, shared=0.05, instances_per_machine=2)
    table = table[rng.random(len(table)) < 0.4].reset_index(drop=True)
    jobs = equal_jobs(8).assign(quota=np.arange(1.0, 9.0))
    term = effective_correlation(table, jobs)
    weight, by_job = jobs["quota"] / jobs["quota"].sum(), table.groupby("job")["value"]
    sums = (
        table.pivot_table(index="machine", columns="job", values="value", aggfunc="sum").reindex(range(2000)).fillna(0)
    )
    counts = (
        table.pivot_table(index="machine", columns="job", values="value", aggfunc="count")
        .reindex(range(2000))
        .fillna(0)
    )
    sums, counts = sums.to_numpy(), counts.to_numpy()
    draws = [rng.choice(2000, 40, replace=False) for _ in range(2000)]
    found = np.var([(sums[rows].sum(axis=0) / counts[rows].sum(axis=0)) @ weight for rows in draws])
    naive = np.sum(weight**2 * by_job.var(ddof=0) / (by_job.size() * 40 / 2000))
    expected = naive * term.clustering * (1 + term.ratio) * (1 - 40 / 2000)
    assert term.ratio > 0.5
    assert found == pytest.approx(expected, rel=0.15)


@pytest.mark.statistical
def test_without_shared_conditions_the_term_is_zero_within_its_standard_error():
    """200 independent fleets: z-scores have standard deviation 1 within 20 % (4 standard errors; false alarm 6e-5)."""
    rng = np.random.default_rng(6)
    terms = [effective_correlation(fleet(rng, 150, 6, shared=0.0), equal_jobs(6)) for _ in range(200)]
    scores = np.array([term.ratio / term.standard_error for term in terms])
    assert abs(scores.mean()) < 4 / np.sqrt(200)
    assert scores.std() == pytest.approx(1, rel=0.2)


def test_racks_may_be_the_unit():
    rng = np.random.default_rng(7)
    table = fleet(rng, 400, 4, shared=0.0)
    table["value"] += 0.1 * rng.normal(size=40)[table["rack"]]
    by_rack, by_machine = (effective_correlation(table, equal_jobs(4), unit=unit) for unit in ("rack", "machine"))
    assert by_rack.units == 40
    assert by_rack.ratio > by_machine.ratio > 0.5


def test_the_term_needs_a_measured_job_two_machines_and_some_spread():
    table = fleet(np.random.default_rng(8), 3, 2, 0.1)
    with pytest.raises(NotEnoughDataError, match="machines with a measured job"):
        effective_correlation(table, pd.DataFrame({"job": ["other"], "quota": 1.0}))
    with pytest.raises(NotEnoughDataError, match="2 machines"):
        effective_correlation(table[table["machine"] == 0], equal_jobs(2))
    with pytest.raises(ValueError, match="values of no job vary"):
        effective_correlation(table.assign(value=1.0), equal_jobs(2))
    assert np.isnan(effective_correlation(table, equal_jobs(1)).mean_correlation)
