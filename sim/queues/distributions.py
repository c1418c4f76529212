"""Distributions of times and amounts: their parameters checked, their mean, and draws from them."""

from collections.abc import Callable, Mapping

import numpy as np

from models.arrays import Floats
from models.errors import InputError
from models.queues.world import Distribution

Shape = int | tuple[int, ...]

FIELDS: Mapping[str, tuple[str, ...]] = {
    "constant": ("mean",),
    "uniform": ("low", "high"),
    "exponential": ("mean",),
    "gamma": ("mean", "cv"),
    "lognormal": ("mean", "cv"),
    "hyperexponential": ("mean", "cv"),
    "pareto": ("low", "high", "shape"),
}
"""The fields that each kind of distribution takes; it needs them all and takes no other."""
LEAST_CV = 1e-6
"""A gamma distribution of less variability is drawn as a constant; its shape would lose its digits."""


def check(distribution: Distribution, what: str) -> None:
    """Raise ValueError if the distribution lacks a field, has one too many, or one out of its bounds."""
    needed = FIELDS[distribution.kind]
    given = {name: getattr(distribution, name) for name in ("mean", "cv", "low", "high", "shape")}
    for name, value in given.items():
        if (value is None) == (name in needed):
            raise InputError(f"{what}: {distribution.kind} {'needs' if value is None else 'takes no'} {name}")
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise InputError(f"{what}: {name} {value} is not a finite number of at least 0")
    _check_bounds(distribution, what)


def _check_bounds(distribution: Distribution, what: str) -> None:
    low, high, cv = distribution.low, distribution.high, distribution.cv
    if low is not None and high is not None and high < low:
        raise InputError(f"{what}: high {high} is below low {low}")
    if distribution.kind == "hyperexponential" and cv is not None and cv < 1:
        raise InputError(f"{what}: cv {cv} of a hyperexponential distribution is below 1")
    if distribution.kind == "pareto" and not (low and distribution.shape):
        raise InputError(f"{what}: low and shape of a Pareto distribution must be above 0")


def mean(distribution: Distribution) -> float:
    """Return the mean of a distribution.

    The bounded Pareto distribution's follows from its density, which falls as x to the power −shape − 1
    (Harchol-Balter 2013, Performance Modeling and Design of Computer Systems, chapter 20).

    Raises
    ------
    ValueError
        If its parameters do not fit its kind.

    Examples
    --------
    >>> mean(Distribution("uniform", low=1.0, high=2.0))
    1.5
    """
    check(distribution, "distribution")
    low, high, shape = (value or 0.0 for value in (distribution.low, distribution.high, distribution.shape))
    if distribution.kind == "uniform":
        return (low + high) / 2
    if distribution.kind == "pareto":
        return _pareto_moment(low, high, shape, 1)
    return distribution.mean or 0.0


def mean_square(distribution: Distribution) -> float:
    """Return the mean of the square of a distribution.

    Raises
    ------
    ValueError
        If its parameters do not fit its kind.

    Examples
    --------
    >>> mean_square(Distribution("exponential", mean=3.0)), mean_square(Distribution("uniform", low=0.0, high=3.0))
    (18.0, 3.0)
    """
    own = mean(distribution)
    low, high, shape = (value or 0.0 for value in (distribution.low, distribution.high, distribution.shape))
    if distribution.kind == "uniform":
        return (low**2 + low * high + high**2) / 3
    if distribution.kind == "pareto":
        return _pareto_moment(low, high, shape, 2)
    cv = {"constant": 0.0, "exponential": 1.0}.get(distribution.kind, distribution.cv or 0.0)
    return own**2 * (1.0 + cv**2)


def _pareto_moment(low: float, high: float, shape: float, order: int) -> float:
    log_ratio = np.log(high / low)
    if log_ratio == 0:
        return low**order
    # Both integrals of exp(−c·log x) over 0..log_ratio; expm1 keeps them exact where c is near 0 (shape near order).
    weight, moment = (-np.expm1(-c * log_ratio) / c if c else log_ratio for c in (shape, shape - order))
    return float(low**order * moment / weight)


def draw(distribution: Distribution, rng: np.random.Generator, shape: Shape) -> Floats:
    """Return independent draws.

    A gamma distribution with cv 0 is a constant. The hyperexponential distribution has two phases that contribute
    equally to its mean ("balanced means"; Whitt 1982, Operations Research 30, section 3).

    Parameters
    ----------
    distribution : any kind
    rng : where the random numbers come from
    shape : of the result
    """
    check(distribution, "distribution")
    return _DRAWS[distribution.kind](distribution, rng, shape)


def gamma(rng: np.random.Generator, mean: float, cv: float, shape: Shape) -> Floats:
    """Return gamma draws of a mean and coefficient of variation; one below `LEAST_CV` gives the mean itself.

    Parameters
    ----------
    rng : where the random numbers come from
    mean, cv : at least 0
    shape : of the result

    Examples
    --------
    >>> gamma(np.random.default_rng(1), 2.0, 0.0, 2)
    array([2., 2.])
    """
    if cv < LEAST_CV:
        return np.full(shape, mean)
    return mean * cv**2 * rng.standard_gamma(1 / cv**2, shape)


def _lognormal(given: Distribution, rng: np.random.Generator, shape: Shape) -> Floats:
    variance = np.log1p((given.cv or 0.0) ** 2)
    draws: Floats = (given.mean or 0.0) * np.exp(np.sqrt(variance) * rng.standard_normal(shape) - variance / 2)
    return draws


def _hyperexponential(given: Distribution, rng: np.random.Generator, shape: Shape) -> Floats:
    square = (given.cv or 1.0) ** 2
    first = (1 + np.sqrt((square - 1) / (square + 1))) / 2
    phase = np.where(rng.random(shape) < first, first, 1 - first)
    draws: Floats = (given.mean or 0.0) / (2 * phase) * rng.standard_exponential(shape)
    return draws


def _pareto(given: Distribution, rng: np.random.Generator, shape: Shape) -> Floats:
    low, high, index = given.low or 0.0, given.high or 0.0, given.shape or 0.0
    above_high = np.exp(-index * np.log(high / low))
    draws: Floats = np.minimum(low * (1 - rng.random(shape) * (1 - above_high)) ** (-1 / index), high)
    return draws


_DRAWS: Mapping[str, Callable[[Distribution, np.random.Generator, Shape], Floats]] = {
    "constant": lambda given, _, shape: np.full(shape, given.mean or 0.0),
    "uniform": lambda given, rng, shape: rng.uniform(given.low or 0.0, given.high or 0.0, shape),
    "exponential": lambda given, rng, shape: (given.mean or 0.0) * rng.standard_exponential(shape),
    "gamma": lambda given, rng, shape: gamma(rng, given.mean or 0.0, given.cv or 0.0, shape),
    "lognormal": _lognormal,
    "hyperexponential": _hyperexponential,
    "pareto": _pareto,
}
