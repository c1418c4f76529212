"""What few machines can say: choices counted one by one, and variances against what made them."""

from itertools import combinations

import numpy as np
import pytest

from analysis.effects.few_machines import moderated, randomisation_p
from models.randomness import stream


def counted(score, chosen):
    """Share of all choices whose sum lies at least as far from the middle; scores must be whole."""
    sums = np.array([sum(score[at] for at in each) for each in combinations(range(len(score)), len(chosen))])
    middle = len(chosen) * np.mean(score)
    return float(np.mean(np.abs(sums - middle) >= abs(sum(score[at] for at in chosen) - middle) - 1e-9))


@pytest.mark.parametrize("size", [1, 3, 6, 9])
def test_every_choice_is_counted(size):
    # A standard deviation of 8 and a mean of 0: rounding to a sixteenth of the former changes no score.
    score = np.array([-8.0, 8.0, -4.0, 4.0, -10.0, 10.0, -10.0, 10.0, -6.0, 6.0])
    score *= 8 / np.std(score)
    score = np.rint(score)
    chosen = stream(size, "scores").choice(10, size, replace=False)
    assert randomisation_p(score, chosen) == pytest.approx(counted(score, chosen))


def test_rounding_moves_a_p_value_little():
    rng = stream(3, "scores")
    score = rng.standard_t(3, 14)
    for _ in range(20):
        chosen = rng.choice(14, 5, replace=False)
        assert randomisation_p(score, chosen) == pytest.approx(counted(score, chosen), abs=0.05)


@pytest.mark.statistical
def test_under_randomisation_small_p_values_are_as_rare_as_they_say():
    """Exact, so at most 1% of 1,500 choices fall below 1% but for chance; above 2% with probability below 0.001."""
    rng = stream(4, "scores")
    score = np.exp(1.5 * rng.standard_normal(40))
    p_values = [randomisation_p(score, rng.choice(40, 4, replace=False)) for _ in range(1500)]
    assert np.mean(np.array(p_values) <= 0.01) <= 0.02
    assert np.mean(np.array(p_values) <= 0.2) <= 0.24


def test_no_spread_or_no_choice_says_nothing():
    assert randomisation_p(np.ones(5), np.array([1])) == 1
    assert randomisation_p(np.arange(5.0), np.arange(5)) == 1


def test_hundreds_of_machines_are_counted_without_overflow():
    score = stream(5, "scores").standard_normal(900)
    assert 0 < randomisation_p(score, np.argsort(score)[-12:]) < 1e-12


@pytest.mark.statistical
def test_variances_that_agree_lean_far_on_the_controls_and_find_the_factor():
    """Jobs of equal ratio 2: the pooled estimate is within 15% and freedom grows; fails in fewer than 1 of 10,000."""
    rng = stream(6, "variances")
    truth = np.exp(rng.standard_normal(300))
    free = np.stack([np.full(300, 80.0), np.full(300, 4.0)], axis=1)
    seen = np.stack([truth, 2 * truth], axis=1) * rng.chisquare(free) / free
    made, freedom = moderated(seen, free)
    assert (freedom > 20).all()
    assert np.exp(np.mean(np.log(made / truth))) == pytest.approx(2, rel=0.15)
    assert np.std(np.log(made / truth)) < 0.5 * np.std(np.log(seen[:, 1] / truth))


@pytest.mark.statistical
def test_variances_that_differ_lean_little():
    """Ratios spread as 1 / chi-square with 4 degrees of freedom are found to; 2 to 8 but for 1 of 1,000 seeds."""
    rng = stream(7, "variances")
    ratio = 4 / rng.chisquare(4, 500)
    free = np.stack([np.full(500, 200.0), np.full(500, 10.0)], axis=1)
    seen = np.stack([np.ones(500), ratio], axis=1) * rng.chisquare(free) / free
    _, freedom = moderated(seen, free)
    assert 2 < freedom[0] - 10 < 8


def test_few_jobs_and_unknown_variances_stay_as_they_are():
    few = np.ones((9, 2))
    assert moderated(few, few)[1].tolist() == [1.0] * 9
    variance, freedom = np.ones((12, 2)), np.full((12, 2), 5.0)
    variance[3, 1] = np.nan
    made, grown = moderated(variance, freedom)
    assert np.isnan(made[3])
    assert grown[3] == 5
    assert grown[0] > 5
