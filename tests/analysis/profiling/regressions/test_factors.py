"""The factor by which a cause makes a function more expensive."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm, t

from analysis.profiling.regressions.cells import PRIOR_CLUSTERS, cells
from analysis.profiling.regressions.factors import Factor, FunctionRows, exact_factor, factor_of, rows_of
from models.randomness import stream


def rows(rng, factor, *, blocks=12, mean=40.0, between=0.0):
    """Blocks of four units each, two of either period, half of the later ones struck."""
    block = np.repeat(np.arange(blocks), 4)
    later, acts = np.tile([0.0, 0.0, 1.0, 1.0], blocks), np.tile([0.0, 0.0, 0.0, 1.0], blocks)
    level = rng.normal(-3.0, 0.5, blocks)[block]
    count = rng.poisson(mean * rng.gamma(2.0, 0.5, len(block))) + 1.0
    chance = expit(level + acts * np.log(factor) + rng.normal(0.0, np.sqrt(between), len(block)))
    share = rng.binomial(count.astype(int), chance) / count
    seen = np.bincount(block, share * count) / np.bincount(block, count)
    expected, zero, unit = (seen + 0.001) / 1.001, np.zeros(blocks), np.arange(len(block))
    one = np.zeros(blocks, int)
    return FunctionRows(one, block, unit, block, later, count, share, expected, zero + between, zero), acts


def test_without_spread_it_is_the_binomial_maximum_likelihood():
    made, acts = rows(stream(1, "factor"), 2.0, mean=400.0)

    def loss(theta):
        line = theta[1:][made.block] + theta[0] * acts
        return -np.sum(made.count * (made.share * line - np.logaddexp(0.0, line)))

    found = minimize(loss, np.r_[0.0, np.full(12, -3.0)], method="BFGS")
    factor = factor_of(made, acts, 0.0)
    assert factor.log == pytest.approx(found.x[0], abs=1e-3)
    design = np.column_stack([acts, *(made.block == block for block in range(12))])
    chance = expit(design @ found.x)
    fisher = (design.T * made.count * chance * (1 - chance)) @ design
    assert factor.error == pytest.approx(np.sqrt(np.linalg.inv(fisher)[0, 0]), rel=1e-3)


@pytest.mark.statistical
def test_cells_of_two_samples_at_most_are_right_in_the_mean():
    """300 draws, 2 samples of the function in a cell at most in the mean: mean within four standard errors of truth,
    intervals hold it 95% of the time, within 4 points (three standard errors)."""
    rng = stream(2, "small cells")
    found = [factor_of(*rows(rng, 1.5, blocks=60), 0.0) for _ in range(300)]
    logs = np.array([one.log for one in found])
    assert logs.mean() == pytest.approx(np.log(1.5), abs=4 * logs.std() / np.sqrt(300))
    covered = np.mean([low <= 1.5 <= high for low, high in (one.interval() for one in found)])
    assert covered == pytest.approx(0.95, abs=0.04)


@pytest.mark.statistical
def test_spread_between_clusters_widens_the_interval_as_it_should():
    """200 draws: the mean squared error is the variance told, within 25% (2.5 standard errors)."""
    rng = stream(3, "spread")
    found = [factor_of(*rows(rng, 2.0, mean=2000.0, between=0.1), 0.0) for _ in range(200)]
    told = np.mean([one.error**2 for one in found])
    assert np.mean([(one.log - np.log(2.0)) ** 2 for one in found]) == pytest.approx(told, rel=0.25)


def test_what_lasts_in_units_cancels_between_their_periods_and_not_between_units():
    """The covariance written out: rows of one unit share `lasting`; least squares by numpy."""
    rng = stream(9, "units")
    unit, later = np.repeat(np.arange(20), 2), np.tile([0.0, 1.0], 20)
    count, share = rng.integers(3000, 9000, 40).astype(float), 0.1 * rng.lognormal(0.0, 0.05, 40)
    block, one, zero = np.arange(20) % 2, np.zeros(2, int), np.zeros(2)
    made = FunctionRows(
        one, block, unit, block[unit], later, count, share, zero + 0.1, lasting=zero + 0.3, passing=zero + 0.01
    )
    for acts in (later, (unit < 10) * later, (unit < 10) * 1.0):
        found = factor_of(made, acts, 0.0)
        chance = expit(_solved_level(made, acts, found.log))
        both = chance * (1 - chance)
        cover = np.diag(1 / (count * both) + 0.01) + 0.3 * (unit[:, None] == unit)
        design = np.column_stack([acts, block[unit] == 0, block[unit] == 1])
        inverse = np.linalg.inv(design.T @ np.linalg.inv(cover) @ design)
        wanted = np.log(chance / (1 - chance)) + (share - chance) / both
        assert found.log == pytest.approx((inverse @ design.T @ np.linalg.inv(cover) @ wanted)[0], abs=1e-5)
        assert found.error == pytest.approx(np.sqrt(inverse[0, 0]), rel=1e-4)
    in_time, side_by_side = (factor_of(made, acts, 0.0).error for acts in (later, (unit < 10) * 1.0))
    assert side_by_side > 4 * in_time


def _solved_level(made, acts, log):
    """Return the log odds at which the estimating equations of the levels hold, by iterating them to the end."""
    block = made.block[made.unit]
    line = np.full(len(acts), -2.2)
    for _ in range(50):
        chance = expit(line)
        both = chance * (1 - chance)
        cover = np.diag(1 / (made.count * both) + 0.01) + 0.3 * (made.unit[:, None] == made.unit)
        levels = np.column_stack([block == 0, block == 1]).astype(float)
        inverse = np.linalg.inv(cover)
        rest = line - log * acts + (made.share - chance) / both
        line = levels @ np.linalg.solve(levels.T @ inverse @ levels, levels.T @ inverse @ rest) + log * acts
    return line


def test_drift_counts_for_a_change_in_time_but_not_for_one_side_by_side():
    made, acts = rows(stream(4, "drift"), 2.0, mean=4000.0)
    plain, drifting = (factor_of(made, acts, drift).error for drift in (0.0, 0.5))
    assert drifting < 1.6 * plain
    in_time = factor_of(made, made.later, 0.5).error
    assert in_time == pytest.approx(1.0, rel=0.05)


def test_growth_just_as_expected_has_the_error_of_its_estimate_and_of_the_covariance_written_out():
    """Two applications of two blocks, units in both periods: `exact_factor`, `factor_of` and matrices by numpy."""
    rng, drift, log = stream(10, "exact"), 0.04, 0.5
    unit, later = np.repeat(np.arange(40), 2), np.tile([0.0, 1.0], 40)
    block, application = np.arange(40) // 10, np.array([0, 0, 1, 1])
    within = block[unit]
    level, count = np.array([-2.0, -2.5, -3.0, -1.5]), rng.integers(300, 900, 80).astype(float)
    chance, spread = expit(level[within] + log * later), np.array([[0.3, 0.1, 0.2, 0.4], [0.02, 0.01, 0.03, 0.01]])
    made = FunctionRows(application, block, unit, within, later, count, chance, expit(level), *spread)
    weight = 1 / (1 / (count * chance * (1 - chance)) + spread[1][within])
    exact = exact_factor(made, np.array([np.bincount(unit, weight), np.bincount(unit, weight * later)]), log, drift)
    of_unit, of_period = unit[:, None] == unit, 2 * application[within] + later
    cover = np.diag(1 / weight) + spread[0][within] * of_unit + drift * (of_period[:, None] == of_period)
    design = np.column_stack([later, *(within == at for at in range(4))])
    variance = np.linalg.inv(design.T @ np.linalg.inv(cover) @ design)[0, 0]
    assert exact.error == pytest.approx(np.sqrt(variance), rel=1e-9)
    found = factor_of(made, later, drift)
    assert (found.log, found.error, found.freedom) == pytest.approx((log, exact.error, exact.freedom), rel=1e-5)


def test_a_function_that_is_there_with_the_cause_alone_has_a_large_factor():
    made, acts = rows(stream(5, "new"), 1.0)
    factor = factor_of(replace(made, share=0.05 * acts), acts, 0.0)
    assert 10 < np.exp(factor.log) < np.inf
    assert np.isfinite(factor.error)


def test_a_cause_that_acts_everywhere_or_nowhere_says_nothing():
    made, acts = rows(stream(6, "nothing"), 2.0)
    for none in (acts * 0.0, acts * 0.0 + 1.0):
        assert factor_of(made, none, 0.0).exceeds(1.0) == pytest.approx(0.5)


def test_few_clusters_have_few_degrees_of_freedom():
    made, acts = rows(stream(7, "few"), 2.0, blocks=2)
    many, _ = rows(stream(7, "few"), 2.0, blocks=200)
    few = factor_of(made, acts, 0.0).freedom
    assert few < 15 < factor_of(many, np.tile([0.0, 0.0, 0.0, 1.0], 200), 0.0).freedom


def test_degrees_of_freedom_are_welchs_and_those_of_the_smoothing():
    """Ten units with the cause, thirty without, all of one variance."""
    zero, unit = np.zeros(40), np.arange(40)
    acts, later = np.repeat([1.0, 0.0], [10, 30]), (unit < 20).astype(float)
    one, none = np.ones(1), unit * 0
    made = FunctionRows(
        none[:1], none, unit, none, later, zero + 500, zero + 0.1, 0.1 * one, lasting=0.02 * one, passing=0.01 * one
    )
    welch = (1 / 10 + 1 / 30) ** 2 / (1 / (10**2 * 9) + 1 / (30**2 * 29))
    assert factor_of(made, acts, 0.0).freedom == pytest.approx(10 + welch, rel=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("usual", [0.05, 0.3, 1.0, 5.0])
def test_smoothed_variances_and_their_degrees_of_freedom_keep_what_p_values_promise(usual):
    """A million differences of means of 15, of samples of variance 1 and clusters of a variance drawn about the usual.

    Of p-values below 0.00001 there are 10 at most in the mean; more than 25 have a chance below 0.002%. Counted for the
    guessed part of the variance alone, the same degrees of freedom give up to 31.
    """
    rng, each, prior = stream(11, f"moderated {usual}"), 15, PRIOR_CLUSTERS
    truth = 1.0 + usual * prior / rng.chisquare(prior, 1_000_000)
    own = truth * rng.chisquare(2 * each - 2, len(truth)) / (2 * each - 2) - 1.0
    support = 2 * each * (usual / (1.0 + usual)) ** 2
    between = np.maximum((own * support + usual * prior) / (support + prior), 0.0)
    score = rng.standard_normal(len(truth)) * np.sqrt(truth / (1.0 + between))
    assert (t.sf(score, 2 * each - 2 + prior) < 1e-5).sum() <= 25


def test_what_it_exceeds_and_its_interval_are_students():
    factor = Factor(np.log(2.0), 0.1, 12.0)
    assert factor.exceeds(1.25) == pytest.approx(1 - t.cdf(np.log(1.6) / 0.1, 12.0))
    low, high = Factor(0.0, 0.1, 1e9).interval(0.9)
    assert np.log([low, high]) == pytest.approx(norm.ppf([0.05, 0.95]) * 0.1, rel=1e-4)


def test_rows_are_those_of_the_function_in_each_application():
    rng = stream(8, "rows")
    table = pd.DataFrame(
        [
            (bool(later), a, f, place, m, int(k := rng.integers(20, 90)), 3.0 * k)
            for later in (0, 1)
            for a in ("a", "b")
            for f in (0, 1, 2)
            for place in ("x", "y")
            for m in (1, 2)
        ],
        columns=["later", "application", "function", "platform", "machine", "samples", "value"],
    )
    both = list(cells(table, "machine"))
    made = rows_of(both, 2)
    by = ["application", "platform", "machine", "later"]
    whole, part = (one.groupby(by)["samples"].sum() for one in (table, table[table["function"] == 2]))
    assert made.share == pytest.approx((part / whole).to_numpy())
    assert made.count.tolist() == whole.tolist()
    assert made.block.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert made.application.tolist() == [0, 0, 1, 1]
    again = rows_of(both, 2, like=rows_of(both, 1))
    for name in FunctionRows.__slots__:
        assert getattr(again, name).tolist() == getattr(made, name).tolist()
