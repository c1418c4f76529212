"""Boundaries of spent errors: against printed tables, recursions and integrals that share no code with them."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from analysis.effects.sequential import LEAST_SPENT, monitor
from analysis.effects.spending import SHAPES, boundaries, canonical, obrien_fleming, pocock
from models.errors import InputError
from tests.helpers.monitored_looks import crossing, looks

FIVE = np.arange(1, 6) / 5


@pytest.mark.parametrize(
    ("shape", "error", "shares", "printed"),
    [
        # Reboussin, DeMets, Kim and Lan 2000: two-sided 5%, 2.5% on each side, as their programs print it.
        ("obrien-fleming", 0.05, FIVE, [4.877, 3.357, 2.680, 2.290, 2.031]),
        ("pocock", 0.05, FIVE, [2.438, 2.427, 2.410, 2.397, 2.386]),
        # SeqBounds.jl 2023, one-sided 5%, which is each side of two-sided 10%.
        ("obrien-fleming", 0.1, np.arange(1, 5) / 4, [3.74955, 2.53993, 2.01604, 1.72014]),
    ],
)
def test_boundaries_are_those_of_printed_tables(shape, error, shares, printed):
    boundary = boundaries(SHAPES[shape](shares, error), canonical(shares))
    np.testing.assert_allclose(boundary, printed, atol=0.015)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("start", [1 / 28, 0.5])
def test_over_28_looks_the_recursion_of_armitage_finds_the_error_that_was_spent(shape, start):
    shares = np.linspace(start, 1.0, 28)
    boundary = boundaries(SHAPES[shape](shares, 0.05), canonical(shares))
    assert crossing(boundary, 30 * shares) == pytest.approx(0.05, abs=2e-3)


@pytest.mark.parametrize("error", [0.01, LEAST_SPENT])
def test_small_errors_are_spent_to_an_eighth_of_themselves(error):
    boundary = boundaries(obrien_fleming(np.arange(1, 29) / 28, error), canonical(np.arange(1, 29)))
    assert crossing(boundary, np.arange(1.0, 29.0)) == pytest.approx(error, rel=0.12)


def test_without_independent_increments_the_integral_of_the_joint_normal_is_what_was_spent():
    """Correlations that no Brownian motion has: of a smooth course, neighbours 0.85, and the first and last 0.22."""
    correlation = np.exp(-(np.subtract.outer(np.arange(4), np.arange(4)) ** 2) / 6.0)
    spent = pocock([0.4, 0.6, 0.8, 1.0], 0.05)
    found = boundaries(spent, correlation)
    for k in range(2, 5):
        inside = multivariate_normal(cov=correlation[:k, :k]).cdf(found[:k], lower_limit=-found[:k], rng=1)
        assert 1 - inside == pytest.approx(spent[k - 1], rel=0.03)
    assert (found < boundaries(spent, np.eye(4)) + 1e-9).all()
    # As if increments were independent, more than 5% of such experiments would be told apart.
    as_if = boundaries(spent, canonical([0.7, 0.8, 0.9, 1.0]))
    assert 1 - multivariate_normal(cov=correlation).cdf(as_if, lower_limit=-as_if, rng=1) > 0.055


def test_a_boundary_does_not_depend_on_later_looks_and_none_is_where_nothing_is_spent():
    spent = pocock([0.3, 0.3, 0.7, 1.0], 0.05)
    correlation = canonical([0.3, 0.5, 0.7, 1.0])
    found = boundaries(spent, correlation)
    assert np.isinf(found[1])
    np.testing.assert_allclose(boundaries(spent[:3], correlation[:3, :3]), found[:3], rtol=1e-9)
    with pytest.raises(InputError, match="2,000 looks at most, got 2,001"):
        boundaries(np.zeros(2001), np.eye(2001))


@pytest.mark.parametrize("shape", [obrien_fleming, pocock])
def test_all_is_spent_at_the_end_and_no_more_later(shape):
    spent = shape(np.linspace(0.01, 2.0, 50), 0.03)
    assert (np.diff(spent) >= 0).all()
    assert spent[-1] == pytest.approx(0.03)


@pytest.mark.parametrize("shape", SHAPES)
def test_spent_intervals_are_narrower_at_the_end_and_say_nothing_later(shape):
    table = looks(change=[0.0, 0.02, 0.001, 0.0], share=[0.2, 0.6, 1.0, 1.2], freedom=1e7)
    found, any_time = monitor(table, spending=shape), monitor(table)
    assert np.isinf(found["low"].iloc[3])
    assert found["high"].iloc[2] < any_time["high"].iloc[2]
    assert found["low"].iloc[2] < found["fixed_low"].iloc[2]
    assert found["excluded"].tolist() == [False, True, True, True]
    assert ((found["p_value"] <= 0.05) == found["excluded"]).all()
    assert (np.diff(found["p_value"]) <= 0).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("error", [0.001, 0.01, 0.05])
def test_at_the_boundary_of_an_error_the_p_value_is_that_error(shape, error):
    table = looks(change=[0.0, 0.0, 0.0], share=[0.3, 0.6, 1.0], freedom=20.0)
    width = monitor(table, 1.0 - error, spending=shape)["high"].iloc[-1]
    reached = monitor(table.assign(change=[0.0, 0.0, width]), spending=shape)
    assert reached["p_value"].iloc[-1] == pytest.approx(error, rel=1e-6)


def test_with_few_clusters_a_look_has_as_much_beyond_it_as_the_normal_one():
    normal, few = (monitor(looks(freedom=freedom), spending="pocock") for freedom in (np.inf, 6.0))
    width = (few["high"] - few["low"]) / (normal["high"] - normal["low"])
    assert (width > 1.2).all()
    assert norm.sf(float((normal["high"] - normal["change"]).iloc[0]) / 0.005) * 2 == pytest.approx(
        float(pocock(0.2, 0.05)), rel=1e-3
    )
