"""How the distance of a profile falls with its samples: subsets against the whole, and the square-root law."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.profiling.intervals import ClusteredProfile
from analysis.profiling.stability import expected_distance
from analysis.statistics import NotEnoughDataError
from models.arrays import Floats
from models.errors import InputError


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """M = constant / N^exponent, and the constant of the law with the exponent ½."""

    constant: float
    exponent: float
    """0.5 where the square-root law holds."""
    exponent_error: float
    """Standard error of the exponent."""
    sqrt_constant: float
    """Geometric mean of M √N."""

    def at(self, samples: float) -> float:
        """Return the distance that the fitted law gives to so many samples."""
        return self.constant * math.pow(samples, -self.exponent)


def sqrt_law(samples: Floats, distances: Floats) -> PowerLaw:
    """Return the power law of distances over samples, by least squares of the logarithms (Ren et al. 2010: C/√N).

    Parameters
    ----------
    samples, distances : (n,) arrays above 0, of two different numbers of samples at least

    Raises
    ------
    NotEnoughDataError
        If there are fewer than two numbers of samples.
    ValueError
        If a number is not above 0.

    Examples
    --------
    >>> law = sqrt_law(np.array([1.0, 4.0, 16.0]), np.array([2.0, 1.0, 0.5]))
    >>> round(law.constant, 9), round(law.exponent, 9), round(law.sqrt_constant, 9)
    (2.0, 0.5, 2.0)
    """
    if not ((samples > 0).all() and (distances > 0).all()):
        raise InputError("samples and distances must be above 0")
    x, y = np.log(samples), np.log(distances)
    if len(np.unique(x)) < 2:
        raise NotEnoughDataError(2, len(np.unique(x)), "numbers of samples")
    centred = x - x.mean()
    slope = float(centred @ y) / float(centred @ centred)
    residual = y - y.mean() - slope * centred
    error = math.sqrt(float(residual @ residual) / max(len(x) - 2, 1) / float(centred @ centred))
    return PowerLaw(math.exp(y.mean() - slope * x.mean()), -slope, error, math.exp(float(np.mean(y + 0.5 * x))))


def subset_distances(
    rng: np.random.Generator,
    clustered: pd.DataFrame,
    fractions: Sequence[float],
    *,
    draws: int = 20,
    cluster: str = "machine",
    k: int | None = None,
) -> pd.DataFrame:
    """Return distances of random subsets of the clusters to the whole (Ren et al. 2010, "Manhattan distance").

    Parameters
    ----------
    rng : the draws' own stream
    clustered : columns of keys, the cluster, samples, value
    fractions : parts of the clusters, 0..1
    draws : subsets of each part
    cluster : what is drawn
    k : only the k largest entries of the subset

    Returns
    -------
    DataFrame
        fraction, clusters, samples, distance, closed_form (independent samples, with √(1 − fraction)); one row a draw.

    Raises
    ------
    ValueError
        If a part holds no cluster or is above 1.

    Examples
    --------
    >>> table = pd.DataFrame({"f": ["a", "b"] * 4, "machine": np.repeat(range(4), 2), "samples": 5, "value": 5})
    >>> subset_distances(np.random.default_rng(0), table, [0.5], draws=1)[["clusters", "samples", "distance"]].values
    array([[ 2., 20.,  0.]])
    """
    data = ClusteredProfile.of(clustered, cluster)
    clusters, shares = len(data.size), data.shares
    rows = []
    for fraction in fractions:
        size = round(fraction * clusters)
        if not 1 <= size <= clusters:
            raise InputError(f"a part must hold 1 to {clusters} clusters, got {fraction:g}, which is {size}")
        for _ in range(draws):
            inside = np.zeros(clusters)
            inside[rng.choice(clusters, size, replace=False)] = 1.0
            weight = inside[data.cluster]
            value = np.bincount(data.key, data.value * weight, len(shares))
            samples = float(np.sum(data.samples * weight))
            order = np.argsort(-value, kind="stable")[:k]
            distance = float(np.abs(value[order] / value.sum() - shares[order]).sum())
            closed = expected_distance(shares, samples, fraction=size / clusters, k=k)
            rows.append((size / clusters, size, samples, distance, closed))
    return pd.DataFrame(rows, columns=["fraction", "clusters", "samples", "distance", "closed_form"])
