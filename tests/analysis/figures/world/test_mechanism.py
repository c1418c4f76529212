"""Why jobs gain or lose, on jobs whose gain follows a law put by hand."""

import numpy as np
import pandas as pd
import pytest

from analysis.figures.world.mechanism import job_table, measure_mechanism
from analysis.statistics import NotEnoughDataError


def world(rng, jobs=2000, by_stall=-0.1, by_cap=0.05, noise=0.01):
    stall, capped = rng.random(jobs), rng.random(jobs)
    gain = 0.03 + by_stall * stall + by_cap * capped + noise * rng.standard_normal(jobs)
    return pd.DataFrame({"gain": gain, "stall_share": stall, "capped_share": capped})


def named(facts):
    singles = facts[facts["x"].isna()]
    return dict(zip(singles["series"], singles["value"], strict=True))


def test_both_causes_are_found():
    facts = named(measure_mechanism(world(np.random.default_rng(1)), 0.65))
    assert facts["rank_stall_high"] < -0.7
    assert facts["rank_capped_given_stall_low"] > 0.5
    assert facts["gain_without_stall_low"] > 0 > facts["gain_with_stall_high"]


def test_the_power_limit_shows_although_stall_hides_it():
    """Ten times as strong a stall: the plain rank correlation is small, that among jobs which stall alike is not."""
    facts = named(measure_mechanism(world(np.random.default_rng(2), by_stall=-1.0, noise=0.0), 0.65))
    assert facts["rank_capped"] < 0.1
    assert facts["rank_capped_given_stall"] > 0.4


def test_a_limit_that_only_goes_with_stall_is_no_cause():
    """Intervals of 95% over 400 jobs, 50 worlds: fewer than 42 hold 0 once in 1,000 seeds."""
    covered = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        jobs = world(rng, jobs=400, by_cap=0.0, by_stall=0.0)
        facts = named(measure_mechanism(jobs, 0.65))
        covered += facts["rank_capped_given_stall_low"] <= 0 <= facts["rank_capped_given_stall_high"]
    assert covered >= 42


def test_a_limit_that_helps_only_those_who_are_not_slowed_down_shows_there():
    jobs = world(np.random.default_rng(4), by_cap=0.0)
    jobs["gain"] += np.where(jobs["stall_share"] <= 0.65, 0.05 * jobs["capped_share"], 0.0)
    facts = named(measure_mechanism(jobs, 0.65))
    assert facts["rank_capped_below_threshold_low"] > 0.4
    assert facts["rank_capped_above_threshold_low"] < 0 < facts["rank_capped_above_threshold_high"]


def test_few_jobs_on_one_side_have_no_correlation_of_their_own():
    facts = named(measure_mechanism(world(np.random.default_rng(5), jobs=60), 0.65))
    assert np.isnan(facts["rank_capped_above_threshold"])
    assert np.isfinite(facts["rank_capped_given_stall"])


def test_the_same_limit_everywhere_says_nothing():
    jobs = world(np.random.default_rng(3)).assign(capped_share=0.5)
    facts = named(measure_mechanism(jobs, 0.65))
    assert np.isnan(facts["rank_capped"])
    assert np.isnan(facts["rank_capped_given_stall"])


def test_tenths_of_the_jobs_need_four_jobs_each():
    with pytest.raises(NotEnoughDataError, match="40 jobs measured in both arms are needed, 39 given"):
        measure_mechanism(world(np.random.default_rng(1), jobs=39), 0.65)


def test_a_job_has_the_mean_limit_of_its_stays_and_only_measured_jobs_count():
    gain = pd.DataFrame({"job": [1, 2], "gain": [0.1, 0.2]})
    hosts = pd.DataFrame({"job": [1, 1, 1, 3], "machine": [7, 7, 8, 8]})
    capped = pd.DataFrame({"machine": [7, 8], "capped_share": [0.3, 0.9]})
    made = job_table(gain, hosts, pd.DataFrame({"job": [1, 2, 3], "stall_share": 0.5}), capped)
    assert made["job"].tolist() == [1]
    assert made["capped_share"].tolist() == pytest.approx([0.5])
