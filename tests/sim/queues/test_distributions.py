"""Draws follow the laws that scipy has, means are theirs, and parameters that do not fit are named."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from models.queues.world import Distribution
from sim.queues.distributions import FIELDS, check, draw, gamma, mean, mean_square


def two_phases(average, cv):
    """Distribution function of two exponential phases with equal parts in the mean and that cv, solved by hand."""
    share = 0.5 * (1 + np.sqrt((cv**2 - 1) / (cv**2 + 1)))
    slow, fast = 2 * (1 - share) / average, 2 * share / average
    return lambda x: 1 - share * np.exp(-fast * x) - (1 - share) * np.exp(-slow * x)


SIGMA = np.sqrt(np.log(1 + 0.7**2))
EACH = {
    "uniform": (Distribution("uniform", low=1.0, high=3.0), stats.uniform(1.0, 2.0).cdf),
    "exponential": (Distribution("exponential", mean=2.0), stats.expon(scale=2.0).cdf),
    "gamma": (Distribution("gamma", mean=2.0, cv=0.5), stats.gamma(4.0, scale=0.5).cdf),
    "lognormal": (
        Distribution("lognormal", mean=2.0, cv=0.7),
        stats.lognorm(SIGMA, scale=2.0 * np.exp(-(SIGMA**2) / 2)).cdf,
    ),
    "hyperexponential": (Distribution("hyperexponential", mean=2.0, cv=3.0), two_phases(2.0, 3.0)),
    "pareto": (Distribution("pareto", low=0.5, high=50.0, shape=1.1), stats.truncpareto(1.1, 100.0, scale=0.5).cdf),
}
NAMES = ("mean", "cv", "low", "high", "shape")


@pytest.mark.statistical
@pytest.mark.parametrize(("distribution", "law"), EACH.values(), ids=EACH)
def test_draws_follow_their_law(distribution, law):
    """False-alarm rate 0.01% each: Kolmogorov and Smirnov's test of 20,000 draws."""
    assert stats.kstest(draw(distribution, np.random.default_rng(1), 20_000), law).pvalue > 1e-4


@pytest.mark.parametrize(("distribution", "law"), EACH.values(), ids=EACH)
def test_the_mean_is_the_integral_of_the_tail(distribution, law):
    cuts = [0.5, 1.0, 3.0, 50.0]
    parts = [quad(lambda x: 1 - law(x), *ends, epsabs=1e-11)[0] for ends in zip([0.0, *cuts], cuts, strict=False)]
    tail = quad(lambda x: 1 - law(x), 50.0, 400.0)[0]
    assert mean(distribution) == pytest.approx(sum(parts) + tail, rel=1e-7)


@pytest.mark.parametrize(("distribution", "law"), EACH.values(), ids=EACH)
def test_the_mean_square_is_the_integral_of_the_tail_times_twice_the_value(distribution, law):
    cuts = [0.5, 1.0, 3.0, 50.0]
    bounds = zip([0.0, *cuts], cuts, strict=False)
    parts = [quad(lambda x: 2 * x * (1 - law(x)), *ends, epsabs=1e-11)[0] for ends in bounds]
    tail = quad(lambda x: 2 * x * (1 - law(x)), 50.0, 900.0, epsabs=1e-11, limit=200)[0]
    assert mean_square(distribution) == pytest.approx(sum(parts) + tail, rel=1e-6)


@pytest.mark.parametrize("shape", [0.5, 1.0 - 1e-9, 1.0, 1.0 + 1e-9, 2.0])
def test_the_mean_of_a_pareto_distribution_is_right_near_a_shape_of_one(shape):
    expected = quad(lambda x: shape * x**-shape, 1.0, 9.0)[0] / (1 - 9.0**-shape)
    assert mean(Distribution("pareto", low=1.0, high=9.0, shape=shape)) == pytest.approx(expected, rel=1e-9)


def test_a_range_of_no_width_is_a_constant():
    for kind, shape in (("uniform", None), ("pareto", 1.5)):
        point = Distribution(kind, low=2.0, high=2.0, shape=shape)
        assert mean(point) == 2.0
        assert (draw(point, np.random.default_rng(1), (2, 3)) == 2.0).all()


def test_a_bounded_distribution_stays_within_its_bounds():
    drawn = draw(Distribution("pareto", low=0.1, high=0.2, shape=0.01), np.random.default_rng(2), 100_000)
    assert 0.1 <= drawn.min() <= drawn.max() <= 0.2


def test_no_spread_is_a_constant():
    rng = np.random.default_rng(1)
    for kind in ("gamma", "lognormal"):
        assert draw(Distribution(kind, mean=3.0, cv=0.0), rng, 4) == pytest.approx(3.0)
    assert (gamma(rng, 0.0, 0.5, 4) == 0.0).all()


@pytest.mark.parametrize("kind", FIELDS)
def test_every_field_that_is_needed_is_missed_and_every_other_refused(kind):
    good = {"mean": 1.0, "cv": 1.0, "low": 1.0, "high": 2.0, "shape": 1.0}
    given = {name: good[name] for name in FIELDS[kind]}
    check(Distribution(kind, **given), "it")
    for name in NAMES:
        other = {**given, name: good[name]} if name not in given else {k: v for k, v in given.items() if k != name}
        with pytest.raises(ValueError, match=f"^it: {kind} (needs|takes no) {name}$"):
            check(Distribution(kind, **other), "it")


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        (Distribution("constant", mean=-1.0), "mean -1.0 is not a finite number of at least 0"),
        (Distribution("exponential", mean=float("nan")), "mean nan is not a finite number of at least 0"),
        (Distribution("uniform", low=2.0, high=1.0), "high 1.0 is below low 2.0"),
        (Distribution("hyperexponential", mean=1.0, cv=0.9), "cv 0.9 of a hyperexponential distribution is below 1"),
        (
            Distribution("pareto", low=0.0, high=1.0, shape=1.0),
            "low and shape of a Pareto distribution must be above 0",
        ),
        (
            Distribution("pareto", low=1.0, high=1.5, shape=0.0),
            "low and shape of a Pareto distribution must be above 0",
        ),
    ],
)
def test_what_cannot_be_is_said(distribution, message):
    for call in (lambda: draw(distribution, np.random.default_rng(1), 1), lambda: mean(distribution)):
        with pytest.raises(ValueError, match=f"^distribution: {message}$"):
            call()
