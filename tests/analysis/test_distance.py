"""Distance correlation against its definition, written with all n² distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.distance import (
    distance_correlation,
    distance_correlations,
    pearson_correlation,
)
from analysis.statistics import NotEnoughDataError

numbers = st.one_of(st.integers(-5, 5).map(float), st.floats(-100, 100).map(lambda value: round(value, 3)))
pairs = st.lists(st.tuples(numbers, numbers), min_size=4, max_size=60)


def distances(x):
    return np.abs(x[:, None] - x)


def centred(x):
    a = distances(x)
    return a - a.mean(axis=0) - a.mean(axis=1)[:, None] + a.mean()


def u_centred(x):
    a, n = distances(x), len(x)
    rows = a.sum(axis=0) / (n - 2)
    a = a - rows - rows[:, None] + a.sum() / ((n - 1) * (n - 2))
    np.fill_diagonal(a, 0)
    return a


def by_definition(x, y, centre):
    a, b = centre(x), centre(y)
    return np.sum(a * b) / np.sqrt(np.sum(a * a) * np.sum(b * b))


def varied(drawn):
    x, y = np.array(drawn).T
    return np.ptp(x) > 0 and np.ptp(y) > 0


@given(pairs.filter(varied))
def test_the_fast_algorithm_agrees_with_the_definition(drawn):
    x, y = np.array(drawn).T
    assert distance_correlation(x, y) == pytest.approx(np.sqrt(by_definition(x, y, centred)), abs=1e-6)


@given(pairs.filter(varied))
def test_the_bias_corrected_one_agrees_with_u_centred_distances(drawn):
    x, y = np.array(drawn).T
    norms = [np.sum(u_centred(each) ** 2) / np.ptp(each) ** 2 for each in (x, y)]
    if min(norms) > 1e-6:  # a single value apart from equal ones has no bias-corrected variance
        plain, corrected = distance_correlations(x, y)
        assert corrected == pytest.approx(by_definition(x, y, u_centred), abs=1e-6)
        assert plain == distance_correlation(x, y)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8, 9, 16, 17, 1000])
def test_every_length_is_handled(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y = rng.integers(0, 3, n) + x**2
    assert distance_correlation(x, y) == pytest.approx(np.sqrt(by_definition(x, y, centred)), abs=1e-9)


def test_units_and_origin_do_not_matter():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 50))
    assert distance_correlation(1e9 + 1e-3 * x, -7 * y) == pytest.approx(distance_correlation(x, y), rel=1e-4)
    assert distance_correlation(1e200 * x, 1e-200 * y) == pytest.approx(distance_correlation(x, y))


def test_a_circle_has_no_pearson_but_a_distance_correlation():
    angle = np.linspace(0, 2 * np.pi, 100, endpoint=False)
    x, y = np.cos(angle), np.sin(angle)
    assert pearson_correlation(x, y) == pytest.approx(0, abs=1e-12)
    plain, corrected = distance_correlations(x, y)
    assert (plain > 0.15, corrected > 0.015) == (True, True)


@pytest.mark.statistical
def test_the_bias_corrected_one_is_centred_under_independence_and_the_plain_one_is_not():
    """400 independent samples of 30: the mean lies within 4 standard errors of 0 (false alarm 6e-5, seed fixed)."""
    rng = np.random.default_rng(2)
    samples = [distance_correlations(*rng.normal(size=(2, 30))) for _ in range(400)]
    plain, corrected = np.array(samples).T
    assert abs(corrected.mean()) < 4 * corrected.std() / 20
    assert plain.min() > 0.1


def test_pearson_is_numpys():
    x, y = np.random.default_rng(3).normal(size=(2, 40))
    assert pearson_correlation(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])


@pytest.mark.parametrize("coefficient", [distance_correlation, distance_correlations, pearson_correlation])
def test_no_spread_means_no_coefficient_and_no_pairs_an_error(coefficient):
    assert np.isnan(coefficient(np.full(5, 0.1), np.arange(5.0))).all()
    assert np.isnan(coefficient(np.arange(5.0), np.full(5, 0.1))).all()
    with pytest.raises(ValueError, match="got 5 and 4 values"):
        coefficient(np.arange(5.0), np.arange(4.0))
    with pytest.raises(NotEnoughDataError, match="1 given"):
        coefficient(np.ones(1), np.ones(1))
