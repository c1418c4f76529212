from dataclasses import replace

import numpy as np
import pytest

from analysis.profiling.affinity.shrinkage import estimate
from tests.helpers.affinities import random_table


def noisy(seed, error, jobs=200, interaction=0.15, hidden=0.0):
    """Return the truth, and a table of it with lognormal errors and some pairs not seen."""
    truth = random_table(seed, jobs, interaction=interaction)
    rng = np.random.default_rng(seed + 1000)
    cpi = truth.cpi * np.exp(rng.normal(0.0, error, truth.cpi.shape))
    cpi[rng.random(cpi.shape) < hidden] = np.nan
    return truth, replace(truth, cpi=cpi, cpi_se=np.nan_to_num(cpi * error))


def test_what_is_known_exactly_stays():
    table = random_table(1)
    found = estimate(table)
    assert (found.cpi == table.cpi).all()
    assert not found.log_se.any()


def test_without_interactions_the_effects_are_those_of_a_written_out_regression():
    _, table = noisy(2, 0.2, jobs=15, interaction=0.0, hidden=0.3)
    rng = np.random.default_rng(5)
    table = replace(table, cpi_se=table.cpi_se * np.exp(rng.normal(0.0, 0.5, table.cpi.shape)))
    seen = np.isfinite(table.cpi) & (np.isfinite(table.cpi).sum(axis=1, keepdims=True) > 1)
    table = replace(table, cpi=np.where(seen, table.cpi, np.nan))
    keep = seen.any(axis=1)
    error = np.where(seen, table.cpi_se / table.cpi, 1.0)
    found = estimate(table)
    job, platform = np.nonzero(seen)
    design = np.zeros((job.size, 15 + 4))
    design[np.arange(job.size), job] = 1.0
    design[np.arange(job.size), 15 + platform] = 1.0
    weight = 1.0 / np.sqrt(error[job, platform] ** 2 + found.interaction_sd**2)
    beta = np.linalg.lstsq(design * weight[:, None], np.log(table.cpi[seen]) * weight, rcond=None)[0]
    effects = beta[:15, None] + beta[None, 15:]
    kept = found.interaction_sd**2 / (found.interaction_sd**2 + error**2)
    expected = np.where(seen, effects + kept * (np.log(np.where(seen, table.cpi, 1.0)) - effects), effects)
    np.testing.assert_allclose(np.log(found.cpi[keep]), expected[keep], rtol=0, atol=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("error", [0.05, 0.3])
def test_the_spread_of_interactions_is_found(error):
    """Its standard deviation is 4% of 0.15 at the small error, 13% at the large; four of them are allowed."""
    found = estimate(noisy(3, error)[1])
    assert found.interaction_sd == pytest.approx(0.15, rel=4 * (0.04 if error < 0.1 else 0.13))


@pytest.mark.statistical
def test_shrinking_lessens_the_error_and_says_how_large_it_is():
    """800 pairs: a mean square differs from its expectation by 5%; four times that is allowed, beyond it 1 in 10⁴."""
    truth, table = noisy(4, 0.3)
    found = estimate(table)
    error = np.log(found.cpi / truth.cpi)
    assert (error**2).mean() < 0.5 * (np.log(table.cpi / truth.cpi) ** 2).mean()
    assert ((error / found.log_se) ** 2).mean() == pytest.approx(1.0, rel=0.3)


@pytest.mark.statistical
def test_pairs_that_were_not_seen_are_predicted_with_their_error():
    """About 240 predicted pairs: a mean square within 4 × 9% of its expectation; beyond it fewer than 1 in 10⁴."""
    truth, table = noisy(5, 0.05, hidden=0.3)
    hidden = table.unobserved & np.isfinite(table.cpi).any(axis=1, keepdims=True)
    found = estimate(table)
    error = np.log(found.cpi / truth.cpi)[hidden]
    assert found.filled == int(table.unobserved.sum())
    assert ((error / found.log_se[hidden]) ** 2).mean() == pytest.approx(1.0, rel=0.4)


def test_misses_explain_how_platforms_differ():
    rng = np.random.default_rng(6)
    truth = random_table(6, 200, interaction=0.0)
    memory = rng.normal(0.0, 1.0, 200)
    slope = np.array([0.1, -0.1, 0.05, -0.05])
    cpi = truth.cpi * np.exp(memory[:, None] * slope)
    hidden = rng.random(cpi.shape) < 0.25
    hidden[np.arange(200), rng.integers(4, size=200)] = False
    known = replace(truth, cpi=np.where(hidden, np.nan, cpi), cpi_se=np.where(hidden, 0.0, 0.01 * cpi))
    misses = np.exp(memory[:, None] - 5.0) * np.ones(4)
    without, with_them = estimate(known), estimate(replace(known, misses=misses))
    errors = [np.abs(np.log(found.cpi / cpi)[hidden]).mean() for found in (without, with_them)]
    assert errors[1] < 0.25 * errors[0]
    assert with_them.interaction_sd < 0.2 * without.interaction_sd
