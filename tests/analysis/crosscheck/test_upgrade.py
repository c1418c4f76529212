"""New processors for a service: estimated from a trial, predicted from a log, and known."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from analysis.crosscheck.check import FALSE_ALARM
from analysis.crosscheck.upgrade import Change, agree, covered, known, log_of, predicted, tried
from analysis.crossplatform.methods import METHODS
from models.platforms import PLATFORMS

OLD, NEW = PLATFORMS["haswell_2698v3"], PLATFORMS["cascadelake_8280"]


def fleet(seed, gain=1.3, stays=40):
    """Return counters, instances and jobs of two jobs of which a fifth of the stays has new processors."""
    rng = np.random.default_rng(seed)
    job = np.repeat([0, 1], stays)
    platform = np.where(np.arange(2 * stays) % 5 == 0, NEW.name, OLD.name)
    speed = np.where(job == 0, 1e9, 2e9) * np.exp(0.1 * rng.standard_normal(2 * stays))
    speed = np.where(platform == NEW.name, gain * speed, speed)
    cpu_s = rng.uniform(50.0, 90.0, 2 * stays)
    base = {"residence": np.arange(2 * stays)}
    counters = pd.DataFrame(
        {**base, "window": "day-000", "instructions": speed * cpu_s, "cpu_s": cpu_s, "wall_s": 99.0}
    )
    where = {"job": job, "machine": np.arange(2 * stays), "rack": 0, "instance": base["residence"], "feature": False}
    instances = pd.DataFrame({**base, **where, "platform": platform, "quota_vcpu": np.where(job == 0, 1.0, 3.0)})
    jobs = pd.DataFrame({"job": [0, 1], "quota": [stays * 1.0, stays * 3.0], "instances": stays})
    return counters, instances, jobs


@pytest.mark.statistical
def test_the_trial_tells_the_change_within_its_interval():
    """40 intervals that miss 1 in 1,000 each, somewhat more often from eight stays of a job: at most 2 of them."""
    wrong = 0
    for seed in range(40):
        found = tried(*fleet(seed), OLD.name, NEW.name)
        wrong += not found.low <= 0.3 <= found.high
    assert wrong <= 2


def together(seed, machines=25, on_each=8, machine_sd=0.1):
    """The same two jobs on machines that all residents of one share a factor with; a fifth have new processors."""
    counters, instances, jobs = fleet(seed, stays=machines * on_each // 2)
    machine = np.arange(machines * on_each) % machines
    factor = np.exp(machine_sd * np.random.default_rng(seed + 1000).standard_normal(machines))
    where = {"machine": machine, "platform": np.where(machine % 5 == 0, NEW.name, OLD.name)}
    was_new, is_new = instances["platform"] == NEW.name, where["platform"] == NEW.name
    speed = factor[machine] * np.where(is_new, 1.3, 1.0) / np.where(was_new, 1.3, 1.0)
    return counters.assign(instructions=counters["instructions"] * speed), instances.assign(**where), jobs


def test_the_interval_of_a_trial_is_as_wide_as_machines_make_estimates_spread():
    """Tukey's jackknife over 5 and 20 machines: its error is within a fifth of the spread over 60 trials."""
    found = [tried(*together(seed), OLD.name, NEW.name) for seed in range(60)]
    errors = np.array([(one.high - one.low) / 2 / student.isf(FALSE_ALARM / 2, 4) for one in found])
    spread = np.std([one.change for one in found], ddof=1)
    assert np.sqrt((errors**2).mean()) == pytest.approx(spread, rel=0.2)
    assert all(one.low <= 0.3 <= one.high for one in found)


def test_the_truth_is_of_the_jobs_that_the_trial_speaks_of():
    counters, instances, jobs = fleet(3)
    few = instances["job"].eq(1) & instances["platform"].eq(NEW.name) & (instances["machine"] > 45)
    here = instances[~few]
    stays = counters[counters["residence"].isin(here["residence"])]
    assert covered(stays, here, jobs, OLD.name, NEW.name)["job"].tolist() == [0]
    assert covered(counters, instances, jobs, OLD.name, NEW.name)["job"].tolist() == [0, 1]


def test_too_few_stays_on_trial_say_nothing():
    counters, instances, jobs = fleet(1)
    few = instances.assign(platform=OLD.name)
    assert tried(counters, few, jobs, OLD.name, NEW.name) is None


def test_windows_of_a_stay_are_added_up():
    counters, instances, jobs = fleet(2)
    parts = counters[["instructions", "cpu_s", "wall_s"]]
    halves = [counters.assign(window=name, **(share * parts)) for name, share in (("a", 0.25), ("b", 0.75))]
    assert tried(pd.concat(halves), instances, jobs, OLD.name, NEW.name).change == pytest.approx(
        tried(counters, instances, jobs, OLD.name, NEW.name).change, rel=1e-12
    )


def test_the_true_change_weighs_jobs_by_their_quota():
    counters, instances, jobs = fleet(3)
    new = counters.assign(instructions=counters["instructions"] * np.where(instances["job"] == 0, 1.5, 1.1))
    mean = (counters["instructions"] / counters["cpu_s"]).groupby(instances["job"]).mean()
    by_hand = (40 * 1.5 * mean[0] + 120 * 1.1 * mean[1]) / (40 * mean[0] + 120 * mean[1]) - 1
    found = known(counters, new, instances, jobs)
    assert found.change == pytest.approx(by_hand, rel=1e-12)
    assert found.low == found.high == found.change


def test_changes_agree_if_their_intervals_reach_as_far_as_they_are_apart():
    wide, narrow = Change(0.3, 0.2, 0.5), Change(0.4, 0.39, 0.42)
    assert agree("x", wide, narrow).tolerance == pytest.approx(np.hypot(0.2, 0.01))
    assert agree("x", narrow, wide).tolerance == pytest.approx(np.hypot(0.01, 0.2))
    assert not agree("x", Change(0.3, 0.29, 0.31), Change(0.4, 0.4, 0.4)).holds
    assert not agree("x", Change(0.3, np.nan, np.nan), Change(0.3, 0.3, 0.3)).holds


def test_an_interval_that_holds_no_change_decides_nothing():
    """The tolerance goes as far as both intervals: 0.45 of a change of 0.4 would let no change pass, 0.1 would not."""
    true = Change(0.4, 0.4, 0.4)
    wide, narrow = (agree("x", Change(0.35, 0.35 - half, 0.35 + half), true) for half in (0.45, 0.1))
    assert (wide.holds, wide.decisive, wide.tolerance_share) == (True, False, pytest.approx(0.45 / 0.4))
    assert (narrow.holds, narrow.decisive, narrow.tolerance_share) == (True, True, pytest.approx(0.25))
    assert agree("x", Change(0.0, -0.45, 0.45), true).holds
    assert not agree("x", Change(0.0, -0.1, 0.1), true).holds


def logged(seed=5, cpi=1.6):
    """Return the log of a service of two types whose instructions and CPU time are known."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0.0, 86400.0, 6000))
    kind = np.where(rng.random(6000) < 0.3 + 0.2 * np.sin(times / 14000.0), "page", "search")
    work = np.where(kind == "page", 4e9, 9e9)
    requests = pd.DataFrame({"type": kind, "arrival_s": times, "departure_s": times + 5.0})
    epoch = (times // 300.0).astype(int)
    instructions = np.bincount(epoch, work, 288)
    epochs = pd.DataFrame({"epoch": np.arange(288), "instructions": instructions})
    epochs["cpu_s"] = instructions * cpi / OLD.base_frequency_hz
    misses = pd.Series({"l1_misses": 0.04, "l2_misses": 0.017})
    return requests, epochs, misses


def test_the_log_has_every_request_instruction_and_second():
    requests, epochs, misses = logged()
    log = log_of(requests, epochs, misses, OLD, 300.0)
    assert log.types == ("page", "search")
    assert log.counts.sum() == 6000
    assert log.instructions.sum() == pytest.approx(epochs["instructions"].sum())
    assert (log.utilisation * log.interval_s * OLD.vcpus).sum() == pytest.approx(epochs["cpu_s"].sum())
    np.testing.assert_allclose(log.misses[:, 1] / log.instructions, 0.017)
    np.testing.assert_allclose(log.response_time_s, 5.0)


@pytest.mark.parametrize(("epoch_s", "interval_s"), [(0.1, 1800.0), (300.0, 1800.0), (700.0, 1400.0), (3600.0, 3600.0)])
def test_intervals_of_a_log_are_whole_epochs(epoch_s, interval_s):
    """A CPU second a request: so it is in each interval, whatever goes into 1800 s."""
    rng = np.random.default_rng(5)
    epoch = np.sort(rng.integers(0, round(5 * interval_s / epoch_s), 200))
    arrival_s = (epoch + rng.uniform(0.1, 0.9, 200)) * epoch_s
    requests = pd.DataFrame({"type": "page", "arrival_s": arrival_s, "departure_s": arrival_s + 1.0})
    epochs = pd.DataFrame({"epoch": epoch, "cpu_s": 1.0, "instructions": 1e9})
    log = log_of(requests, epochs, pd.Series({"l1_misses": 0.04, "l2_misses": 0.02}), OLD, epoch_s)
    assert log.interval_s == pytest.approx(interval_s)
    np.testing.assert_allclose(log.start_s / log.interval_s, range(5))
    np.testing.assert_allclose(log.utilisation * log.interval_s * OLD.vcpus, log.counts.sum(axis=1))


def test_a_method_that_scales_by_clocks_predicts_their_ratio():
    method = next(one for one in METHODS if one.name == "cycle_scalar")
    found = predicted(log_of(*logged(), OLD, 300.0), OLD, NEW, method)
    assert found.change == pytest.approx(NEW.base_frequency_hz / OLD.base_frequency_hz - 1, rel=1e-9)
    assert np.isnan(found.low)


def test_the_method_of_the_check_says_how_sure_it_is():
    method = next(one for one in METHODS if one.name == "testbed")
    found = predicted(log_of(*logged(), OLD, 300.0), OLD, NEW, method)
    assert found.low < found.change < found.high
    same = predicted(log_of(*logged(), OLD, 300.0), OLD, OLD, method)
    assert same.change == pytest.approx(0.0, abs=1e-9)
