"""Sample means against the normal distribution."""

import numpy as np
import pytest
from scipy.stats import kstest

from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.normality import ks_distance, sample_means, standardised_means


def skewed(n=2000, seed=1):
    return np.random.default_rng(seed).exponential(size=n)


@pytest.mark.statistical
@pytest.mark.parametrize("size", [1, 4, 100])
def test_sample_means_spread_as_one_over_the_root_of_the_size(size):
    """4,000 draws: the standard deviation within 6 % or more than 4 standard errors (kurtosis 9; false alarm 6e-5)."""
    values = skewed()
    means = sample_means(values, size, 4000, np.random.default_rng(2))
    expected = values.std() / np.sqrt(size) * np.sqrt((2000 - size) / 1999)
    assert means.std() == pytest.approx(expected, rel=0.1 if size == 1 else 0.06)
    assert means.mean() == pytest.approx(values.mean(), abs=4 * expected / np.sqrt(4000))


def test_a_sample_of_everything_is_the_population_mean():
    values = skewed(50)
    assert sample_means(values, 50, 5, np.random.default_rng(0)) == pytest.approx(values.mean())


def test_samples_are_drawn_without_replacement():
    means = sample_means(np.array([0.0, 1.0, 10.0]), 2, 200, np.random.default_rng(0))
    assert set(means) == {0.5, 5.0, 5.5}


def test_standardising_takes_out_unit_and_origin():
    values = skewed(100)
    one = standardised_means(values, 4, 20, np.random.default_rng(3))
    other = standardised_means(7 * values - 3, 4, 20, np.random.default_rng(3))
    assert other == pytest.approx(one)


@pytest.mark.parametrize("shift", [-0.4, 0.4])
def test_the_distance_is_that_of_the_kolmogorov_smirnov_test(shift):
    sample = np.random.default_rng(4).normal(shift, 1, 77)
    assert ks_distance(sample) == pytest.approx(kstest(sample, "norm").statistic)


@pytest.mark.statistical
def test_larger_samples_of_a_skewed_job_are_closer_to_normal():
    """4,000 draws; the distances, near 0.08 and 0.03, are known to 0.02 with a false alarm of 1e-2 each at most."""
    rng = np.random.default_rng(5)
    few, many = (ks_distance(standardised_means(skewed(), size, 4000, rng)) for size in (4, 20))
    assert few > many + 0.02


def test_impossible_samples_are_refused_with_their_numbers():
    rng = np.random.default_rng(0)
    with pytest.raises(NotEnoughDataError, match="4 values are needed, 3 given"):
        sample_means(np.arange(3.0), 4, 1, rng)
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        sample_means(np.arange(3.0), 0, 1, rng)
    with pytest.raises(ValueError, match="draws must be at least 1, got 0"):
        sample_means(np.arange(3.0), 1, 0, rng)
    with pytest.raises(ValueError, match="do not vary"):
        standardised_means(np.ones(3), 1, 1, rng)
    with pytest.raises(NotEnoughDataError):
        ks_distance(np.array([]))
