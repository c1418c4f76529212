"""Cycles per instruction of jobs, said by counters, profile and WSMeter."""

import numpy as np
import pandas as pd
import pytest

from analysis.crosscheck import profile
from analysis.crosscheck.check import Check, misses


def fleet(seed, jobs=40, stays=60, spread=0.1):
    """Return counters and instances of jobs whose stays differ in IPC and in length."""
    rng = np.random.default_rng(seed)
    job = np.repeat(np.arange(jobs), stays)
    cycles = rng.lognormal(25.0, 0.5, job.size)
    ipc = np.exp(0.5 * rng.standard_normal(jobs)[job] + spread * rng.standard_normal(job.size))
    counters = pd.DataFrame({"residence": np.arange(job.size), "cycles": cycles, "instructions": ipc * cycles})
    return counters, pd.DataFrame({"residence": np.arange(job.size), "job": job})


def half(seed, instances):
    rng = np.random.default_rng(1000 + seed)
    each = [rng.choice(stays, len(stays) // 2, replace=False) for _, stays in instances.groupby("job")["residence"]]
    return np.concatenate(each)


def test_two_windows_of_a_stay_are_one_stay():
    counters, instances = fleet(1)
    split = pd.concat([counters.assign(cycles=counters["cycles"] * part, instructions=counters["instructions"] * part)
                       for part in (0.25, 0.75)])  # fmt: skip
    drawn = half(1, instances)
    left, right = (profile.sampled(table, instances, drawn) for table in (counters, split))
    pd.testing.assert_frame_equal(left, right)


def test_the_whole_fleet_as_a_sample_is_the_counters_without_error():
    counters, instances = fleet(2)
    made = profile.sampled(counters, instances, instances["residence"].to_numpy()).set_index("job")
    pd.testing.assert_series_equal(made["cpi"], profile.counted(counters, instances), check_names=False)
    assert made["standard_error"].max() < 1e-9


@pytest.mark.statistical
def test_intervals_hold_the_fleet_as_often_as_they_say_and_two_samples_agree():
    """Of 1,000 intervals of 95% from samples of 30 of 60 stays, 92 to 97 of 100: a ratio's is somewhat short."""
    inside, together, count = 0, 0, 0
    for seed in range(25):
        counters, instances = fleet(seed)
        made, true = profile.sampled(counters, instances, half(seed, instances)), profile.counted(counters, instances)
        inside += int(made["job"].map(true).between(made["low"], made["high"]).sum())
        count += len(made)
        other = profile.sampled(counters, instances, half(seed + 500, instances))
        together += int(profile.alike("both", made, other).left)
    assert count == 1000
    assert 0.92 < inside / count < 0.97
    assert together / count < 0.08


def test_scaled_counters_are_missed_by_nearly_all():
    counters, instances = fleet(3)
    made = profile.sampled(counters, instances, half(3, instances))
    assert profile.within("cpi", made, profile.counted(counters, instances)).holds
    scaled = profile.counted(counters.assign(cycles=1.2 * counters["cycles"]), instances)
    check = profile.within("cpi", made, scaled)
    assert not check.holds
    assert check.left > 30


def test_few_stays_are_no_sample():
    counters, instances = fleet(4, jobs=3, stays=18)
    assert profile.sampled(counters, instances, half(4, instances)).empty
    assert (
        profile.within("cpi", profile.sampled(counters, instances, half(4, instances)), pd.Series(dtype=float)) is None
    )


def test_the_bound_on_misses_is_the_least_that_is_exceeded_less_often_than_the_false_alarm():
    """The binomial tail of 40 intervals of 95%, added up by hand from n = 8 on."""
    from math import comb

    def exceeded(bound):
        return sum(comb(40, n) * 0.05**n * 0.95 ** (40 - n) for n in range(bound + 1, 41))

    bound = int(misses("cpi", 0, 40).tolerance)
    assert exceeded(bound) <= 1e-3 < exceeded(bound - 1)


def test_what_is_no_number_agrees_with_nothing():
    assert not Check("x", float("nan"), float("nan"), float("inf")).holds
    assert not Check("x", 1.0, 1.0, float("nan")).holds
    assert not Check("x", 1.0, 1.0, float("nan")).decisive
    assert not Check("x", 1.0, 0.0, 0.0).decisive
    assert [misses("cpi", 0, of).decisive for of in (1, 2, 3, 40)] == [False, False, True, True]
    assert not any(misses("cpi", wrong, 2).payload()["holds"] is False for wrong in range(3))


def test_core_seconds_without_an_interval_are_not_compared():
    visits = pd.DataFrame({"visit": range(3), "machine": range(3), "platform": "p", "start_s": [0.0, 0.0, 90000.0]})
    visits = visits.assign(weight=10, length_s=300.0, status=["ok", "ok", "failed"], frequency_hz=2.0)
    cycles = pd.DataFrame({"visit": [0, 1], "value": [200, 210]})
    assert profile.seconds(visits, cycles, pd.DataFrame({"busy_s": [301.0]})) is None
