"""Whether sample means are normal: repeated samples of a job's instances or of machines."""

import numpy as np
from scipy.special import ndtr

from analysis.statistics import NotEnoughDataError
from models.arrays import Floats
from models.errors import InputError


def sample_means(values: Floats, size: int, draws: int, rng: np.random.Generator) -> Floats:
    """Return the means of repeated samples without replacement (Lee et al. 2018, WSMeter, Fig. 7).

    Parameters
    ----------
    values : (n,) array, the population
    size : values in a sample, 1..n
    draws : samples
    rng : the draws' own stream

    Returns
    -------
    (draws,) array, units of `values`

    Raises
    ------
    NotEnoughDataError
        If the population is smaller than a sample.
    ValueError
        If `size` or `draws` is below 1.

    Examples
    --------
    >>> sample_means(np.array([1.0, 3.0]), size=2, draws=3, rng=np.random.default_rng(0))
    array([2., 2., 2.])
    """
    for name, number in (("size", size), ("draws", draws)):
        if number < 1:
            raise InputError(f"{name} must be at least 1, got {number}")
    if size > len(values):
        raise NotEnoughDataError(size, len(values), "values")
    return np.array([rng.choice(values, size, replace=False, shuffle=False).mean() for _ in range(draws)])


def standardised_means(values: Floats, size: int, draws: int, rng: np.random.Generator) -> Floats:
    """Return sample means in standard errors from the population mean (WSMeter, section 5.2.1).

    ``(m - μ) √N / σ`` with the population's μ and σ, as if the population were infinite: samples that take a large part
    of it vary less than N(0, 1).

    Parameters
    ----------
    values, size, draws, rng : as for `sample_means`

    Returns
    -------
    (draws,) array, no unit

    Raises
    ------
    ValueError
        If the population does not vary, and as `sample_means`.

    Examples
    --------
    >>> standardised_means(np.array([1.0, 3.0]), size=2, draws=3, rng=np.random.default_rng(0))
    array([0., 0., 0.])
    """
    means, sigma = sample_means(values, size, draws, rng), float(np.std(values))
    if not sigma > 0:
        raise InputError(f"the values do not vary (standard deviation {sigma}), their means cannot be standardised")
    standardised: Floats = (means - np.mean(values)) * np.sqrt(size) / sigma
    return standardised


def ks_distance(sample: Floats) -> float:
    """Return the largest distance between a sample's distribution function and the normal one (Kolmogorov 1933).

    Parameters
    ----------
    sample : (n,) array, n >= 1, to be compared with N(0, 1)

    Examples
    --------
    >>> ks_distance(np.array([0.0]))
    0.5
    """
    if not len(sample):
        raise NotEnoughDataError(1, 0, "values")
    normal, steps = ndtr(np.sort(sample)), np.arange(len(sample) + 1) / len(sample)
    return float(max(np.max(steps[1:] - normal), np.max(normal - steps[:-1])))
