"""Facts about cycles per instruction, on tables drawn from laws whose facts are known."""

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter

from analysis.figures.world.cpi import cpi_facts, series_facts, spread_facts, stays
from analysis.statistics import NotEnoughDataError


def named(facts):
    return dict(zip(facts["series"], facts["value"], strict=True))


def test_stays_too_short_to_measure_are_left_out_and_other_windows_too():
    instances = pd.DataFrame({"residence": range(3), "job": [4, 5, 6], "machine": 0, "quota_vcpu": 1.0, "rack": 0})
    instances = instances.assign(instance=range(3), feature=False)
    one = pd.DataFrame({"residence": range(3), "instructions": [2.0, 2, 0], "cycles": [3.0, 3, 0], "llc_misses": 0.5})
    one = one.assign(cpu_s=50.0, wall_s=[100.0, 9.0, 100.0])
    counters = pd.concat([one.assign(window="all"), one.assign(window="night", cycles=9.0)])
    found = stays(counters, instances)
    assert found.to_dict("list") == {"job": [4], "cpi": [1.5], "mai": [0.25], "busy": [0.5]}


def population(rng, jobs=4000, each=6, between=0.5, within=0.2):
    """Stays of jobs whose CPI is lognormal between jobs and within them; heavy jobs have lower CPI."""
    consumed = np.exp(rng.normal(0, 2, jobs))
    level = np.log(1.7) + between * rng.standard_normal(jobs) - 0.05 * np.log(consumed)
    job = np.repeat(np.arange(jobs), each)
    cpi = np.exp(level[job] + within * rng.standard_normal(len(job)))
    return pd.DataFrame({"job": job, "cpi": cpi, "mai": cpi / 100, "busy": consumed[job] / each})


def test_quantiles_and_spread_are_those_of_the_law():
    """Medians and log spreads of 4,000 records have standard errors near 1%; ±5% fails once in a million seeds."""
    facts = named(cpi_facts(population(np.random.default_rng(1)).drop_duplicates("job")))
    spread = np.sqrt(0.5**2 + 0.2**2 + (0.05 * 2) ** 2)
    assert facts["cpi_log_sd"] == pytest.approx(spread, rel=0.05)
    for name, sds in (("p5", -1.645), ("p25", -0.674), ("p50", 0.0), ("p75", 0.674), ("p95", 1.645)):
        assert np.log(facts[f"cpi_{name}"]) == pytest.approx(np.log(1.7) + sds * spread, abs=0.08)
    assert facts["cpi_mean"] == pytest.approx(1.7 * np.exp(spread**2 / 2), rel=0.05)


def test_a_job_of_many_stays_is_many_records_or_one():
    few = pd.DataFrame({"job": [1, 2, 3], "cpi": [1.0, 2.0, 3.0], "mai": [0.1, 0.2, 0.3], "busy": [1.0, 2.0, 3.0]})
    many = pd.concat([few, *[few.iloc[2:]] * 500], ignore_index=True)
    assert named(cpi_facts(many))["cpi_p50"] == 3.0
    assert named(cpi_facts(many.drop_duplicates("job")))["cpi_p50"] == 2.0
    assert named(cpi_facts(many))["cpi_cpu_weighted"] == pytest.approx((1 + 4 + 9 * 501) / (1 + 2 + 3 * 501))


def test_heavy_consumers_of_lower_cpi_show_in_the_weighted_mean_and_the_correlation():
    """The correlation's standard error is 0.016; three of them fail once in 400 seeds."""
    facts = named(cpi_facts(population(np.random.default_rng(2)).drop_duplicates("job")))
    assert facts["cpi_cpu_weighted"] < facts["cpi_mean"]
    assert facts["cpi_log_cpu_correlation"] == pytest.approx(-0.18, abs=0.05)


def test_a_line_of_accesses_is_found_exactly():
    mai = np.array([0.001, 0.004, 0.009, 0.02])
    facts = named(cpi_facts(pd.DataFrame({"cpi": 0.69 + 127 * mai, "mai": mai, "busy": mai})))
    line = {"slope": 127, "intercept": 0.69, "r2": 1, "spearman": 1}
    assert {name: facts[f"cpi_over_mai_{name}"] for name in line} == pytest.approx(line)


def test_two_records_are_too_few_for_a_line():
    with pytest.raises(NotEnoughDataError, match="3 records are needed, 2 given"):
        cpi_facts(pd.DataFrame({"cpi": [1.0, 1.0], "mai": 0.1, "busy": 1.0}))


@pytest.mark.parametrize(("between", "within"), [(0.1, 0.1), (0.05, 0.1), (0.1, 0.02)])
def test_the_intraclass_correlation_is_the_share_of_variance_between_jobs(between, within):
    """Its standard error over 4,000 jobs is below 0.008: four of them fail once in 16,000 seeds, three cases."""
    rng = np.random.default_rng(3)
    job = np.repeat(np.arange(4000), rng.integers(2, 9, 4000))
    cpi = 5 + between * rng.standard_normal(4000)[job] + within * rng.standard_normal(len(job))
    facts = named(spread_facts(pd.DataFrame({"job": job, "cpi": cpi})))
    assert facts["cpi_intraclass_correlation"] == pytest.approx(between**2 / (between**2 + within**2), abs=0.032)


def test_spreads_are_relative_to_the_mean_and_of_jobs_with_enough_stays():
    table = pd.DataFrame({"job": np.repeat([1, 2, 3], [5, 5, 2]), "cpi": [1, 1, 1, 1, 2, *[4.0] * 5, 1, 9]})
    facts = named(spread_facts(table))
    cv = np.std([1, 1, 1, 1, 2], ddof=1) / 1.2
    assert facts["cpi_cv_within_job_p50"] == pytest.approx(cv / 2)
    assert facts["cpi_cv_between_jobs"] == pytest.approx(np.std([1.2, 4, 5], ddof=1) / np.mean([1.2, 4, 5]))


def test_spread_within_jobs_needs_two_jobs_of_five_stays():
    with pytest.raises(NotEnoughDataError, match="2 jobs with 5 stays are needed, 1 given"):
        spread_facts(pd.DataFrame({"job": [1] * 5 + [2] * 4, "cpi": 1.0}))


def traced(series, instances=20):
    """Tables of one job whose every traced instance has this CPI by epoch."""
    epochs = len(series)
    rows = pd.DataFrame(
        {
            "residence": np.repeat(np.arange(instances), epochs),
            "epoch": np.tile(np.arange(epochs), instances),
            "instructions": 2.0,
            "cycles": 2.0 * np.tile(series, instances),
        }
    )
    where = pd.DataFrame({"residence": range(instances), "job": 1, "instance": range(instances)})
    return rows, where


def test_the_autocorrelation_of_a_long_series_is_that_of_its_law():
    """A first-order process of 60,000 steps: standard errors below 0.02 at every lag; 0.1 is five of them."""
    rng = np.random.default_rng(4)
    series = 10 + lfilter([1.0], [1.0, -0.97], rng.standard_normal(60_000))
    facts = named(series_facts(*traced(series), 300.0))
    for name, lag in (("5min", 1), ("30min", 6), ("1h", 12), ("3h", 36), ("24h", 288)):
        assert facts[f"job_series_autocorrelation_{name}"] == pytest.approx(0.97**lag, abs=0.1)
    assert facts["job_series_cv"] == pytest.approx(np.sqrt(1 / (1 - 0.97**2)) / 10, rel=0.1)


def test_noise_of_instances_averages_out_of_the_job():
    rng = np.random.default_rng(5)
    rows, where = traced(np.ones(600), instances=400)
    rows["cycles"] *= 1 + 0.2 * rng.standard_normal(len(rows))
    assert named(series_facts(rows, where, 300.0))["job_series_cv"] == pytest.approx(0.01, rel=0.2)


def test_a_job_with_few_traced_instances_and_a_short_series_are_refused():
    with pytest.raises(NotEnoughDataError, match="20 traced instances of one job are needed, 19 given"):
        series_facts(*traced(np.ones(600), instances=19), 300.0)
    with pytest.raises(NotEnoughDataError, match="576 epochs are needed, 575 given"):
        series_facts(*traced(np.ones(575)), 300.0)
