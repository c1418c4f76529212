"""Compiled draws are those of the readable twin, and follow their laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sim.fleet.draws import mix, noise, normal
from tests.helpers import reference_day


@settings(deadline=None)
@given(own_key=st.integers(0, 2**64 - 1), counter=st.integers(-1, 10_000))
def test_draws_are_those_of_the_readable_twin(own_key, counter):
    compiled = noise(np.uint64(own_key), counter), normal(np.uint64(own_key), abs(counter))
    readable = reference_day.noise(own_key, counter), reference_day.normal(own_key, abs(counter))
    assert compiled == pytest.approx(readable, rel=1e-9, abs=1e-12)


def draws(draw, keys=400, counters=100):
    """An array (keys, counters) of draws."""
    rows = np.random.default_rng(5).integers(2**64, size=keys, dtype=np.uint64)
    return np.array([[draw(own_key, counter) for counter in range(counters)] for own_key in rows])


@pytest.mark.statistical
@pytest.mark.parametrize(("draw", "fourth", "eighth"), [(noise, 2.7, 37.2), (normal, 3.0, 105.0)])
def test_draws_have_the_moments_of_their_law(draw, fourth, eighth):
    """Sample mean, variance, skewness and fourth moment within 4.5 standard errors each: 3 in 100,000 runs.

    Four uniforms have the fourth moment 3 − 6/5/4 and (at most) an eighth moment of 37.2; the normal law has 3 and 105.
    """
    sample = draws(draw)
    n = sample.size
    assert abs(sample.mean()) < 4.5 / math.sqrt(n)
    assert abs((sample**2).mean() - 1) < 4.5 * math.sqrt((fourth - 1) / n)
    assert abs((sample**3).mean()) < 4.5 * math.sqrt(15 / n)
    assert abs((sample**4).mean() - fourth) < 4.5 * math.sqrt((eighth - fourth**2) / n)


@pytest.mark.statistical
def test_normal_draws_follow_the_normal_law():
    """Kolmogorov and Smirnov at 1 in 100,000."""
    assert stats.kstest(draws(normal).ravel(), "norm").pvalue > 1e-5


@pytest.mark.statistical
@pytest.mark.parametrize("draw", [noise, normal])
def test_draws_of_neighbouring_counters_and_keys_do_not_correlate(draw):
    """Two correlations within 4.5 standard errors each: 1 in 70,000 runs."""
    sample = draws(draw)
    own = np.array([[draw(np.uint64(k + 7), c) for c in range(40)] for k in range(1000)])
    for left, right in ((sample[:, 1:], sample[:, :-1]), (own[1:], own[:-1])):
        assert abs((left * right).mean()) < 4.5 / math.sqrt(left.size)


@pytest.mark.statistical
def test_the_first_state_of_an_instance_is_independent_of_its_later_noise():
    """Correlations of size and square with later noise, 4.5 standard errors each: 6 in 100,000 runs."""
    keys = np.random.default_rng(9).integers(2**64, size=20_000, dtype=np.uint64)
    first = np.array([normal(np.uint64(mix(k)), 0) for k in keys])
    for epoch in (0, 1, 2):
        later = np.array([noise(k, epoch) for k in keys])
        assert abs((first * later).mean()) < 4.5 / math.sqrt(keys.size)
        assert abs(((first**2 - 1) * later).mean()) < 4.5 * math.sqrt(2 / keys.size)
        assert abs(((first**2 - 1) * (later**2 - 1)).mean()) < 4.5 * math.sqrt(2 * 1.7 / keys.size)
