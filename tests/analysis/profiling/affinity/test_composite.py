import numpy as np
import pandas as pd
import pytest

from analysis.profiling.affinity.composite import composite
from analysis.profiling.affinity.pairs import BY, ratio

JOBS, PLATFORMS, VISITS = 60, 3, 40


def counted(rng, each_visit, job, platform, visit):
    samples = rng.poisson(each_visit)
    rows = pd.DataFrame(
        {"application": job, "platform": platform, "visit": visit, "samples": samples, "value": samples}
    )
    return rows[rows["samples"] > 0].astype({"application": str, "platform": str})


def events(seed, strays=0.0, known=True):
    """Return true log CPI, and what was counted; an event at a rate of job and platform, which may stray."""
    rng = np.random.default_rng(seed)
    shape = JOBS, PLATFORMS
    log_cpi = rng.normal(0, 0.3, (JOBS, 1)) + rng.normal(0, 0.2, (1, PLATFORMS)) + rng.normal(0, 0.05, shape)
    rate = rng.normal(0, 0.5, (JOBS, 1)) + rng.normal(0, 0.3, (1, PLATFORMS)) + rng.normal(0, 1.0, shape) * strays
    job, platform, visit = (part.ravel() for part in np.indices((*shape, VISITS)))
    visit = visit + VISITS * (platform + PLATFORMS * job)
    work = 4.0 * rng.lognormal(0, 0.3, visit.size)
    per = {"cycles": 9.0 * np.exp(log_cpi), "instructions": np.ones(shape)}
    per |= {"mispredictions": 1.5 * np.exp(rate)} if known else {}
    return log_cpi, {name: counted(rng, work * of[job, platform], job, platform, visit) for name, of in per.items()}


def errors(found, log_cpi):
    """Return errors of log CPI, less what all of a job's pairs have in common, and those that were stated."""
    keys = [found[name].astype(int) for name in BY]
    error = np.zeros((JOBS, PLATFORMS))
    error[tuple(keys)] = np.log(found["cpi"]) - np.log(9.0) - log_cpi[tuple(keys)]
    return error - error.mean(axis=1, keepdims=True), np.sqrt((found["relative_se"] ** 2).mean())


def both(seed, strays):
    log_cpi, told = events(seed, strays)
    plain = ratio(told["cycles"], told["instructions"])
    return [errors(found, log_cpi) for found in (plain, composite(plain, told))]


def test_a_steady_event_takes_a_good_part_of_the_error_that_counting_instructions_makes():
    """At fixed seeds. Instructions of σ² and an event of σ² / 1.5 leave 1 / 2.5 of it; a tenth is the cycles' own."""
    made = [both(seed, 0.0) for seed in range(6)]
    plain, stated = zip(*(one[0] for one in made), strict=True)
    better, less = zip(*(one[1] for one in made), strict=True)
    gain = np.mean(np.square(better)) / np.mean(np.square(plain))
    assert 0.35 < gain < 0.65
    assert 0.35 < np.mean(np.square(less)) / np.mean(np.square(stated)) < 0.8


def test_an_event_that_goes_its_own_ways_says_next_to_nothing():
    plain, better = both(3, 1.0)
    assert np.mean(np.square(better[0])) == pytest.approx(np.mean(np.square(plain[0])), rel=0.03)
    assert better[1] == pytest.approx(plain[1], rel=0.03)


def test_of_several_events_the_steadiest_is_asked():
    _, told = events(4)
    _, other = events(4, strays=0.5)
    plain = ratio(told["cycles"], told["instructions"])
    alone = composite(plain, told)
    pd.testing.assert_frame_equal(composite(plain, told | {"llc_misses": other["mispredictions"]}), alone)


def test_cycles_are_left_as_they_are_and_so_is_everything_without_another_event():
    _, told = events(5)
    plain = ratio(told["cycles"], told["instructions"])
    found = composite(plain, told)
    np.testing.assert_allclose(found["cpi"] * found["instructions"], plain["cycles"])
    _, told = events(5, known=False)
    assert composite(plain, told) is plain


def test_a_job_on_one_platform_keeps_its_cpi_and_its_error():
    _, told = events(6)
    alone = {name: rows[(rows["application"] != "7") | (rows["platform"] == "1")] for name, rows in told.items()}
    plain = ratio(alone["cycles"], alone["instructions"]).set_index(list(BY)).sort_index()
    found = composite(ratio(alone["cycles"], alone["instructions"]), alone).set_index(list(BY)).sort_index()
    np.testing.assert_allclose(found.loc[("7", "1")].astype(float), plain.loc[("7", "1")].astype(float))
    assert (found["cpi"] != plain["cpi"]).sum() > 100
