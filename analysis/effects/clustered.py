"""Clustered variance: residuals grown for leverage, effective numbers of clusters, and the standard error; compiled."""

from typing import NamedTuple

import numpy as np
from numba import njit

from models.arrays import Floats

LEAST = 0.1
"""What is left of a cluster's residual at least: one machine that holds nearly all of a job must not decide all."""
_FEWEST = 1.2
"""Effective clusters of an arm below which nothing can be said."""


class How(NamedTuple):
    """The power of leverage, whether to correct for few clusters, whether the level is known, and racks are split."""

    leverage: float
    few: bool
    known: bool
    split: bool
    """Whether a cluster may have machines of both arms."""


@njit(cache=True)
def by_draw(total: Floats, weight: Floats) -> Floats:
    """Return of each way and draw the clustered sum of squares, and the effective number of clusters; (2, H, B).

    Both come from each cluster's residual and weight in the estimate, (clusters, H, B). The number is that of equal
    weights with the same Σ w² and Σ w⁴, from which degrees of freedom follow (Satterthwaite 1946) if what the instances
    of a cluster share is most of the error. A job on one cluster of an arm leaves no residual there.

    Examples
    --------
    >>> by_draw(np.array([[[1.0]], [[2.0]]]), np.ones((2, 1, 1))).ravel()
    array([5., 2.])
    """
    size, ways, many = total.shape
    made, fourth = np.zeros((2, ways, many)), np.zeros((ways, many))
    for at in range(size):
        for h in range(ways):
            for b in range(many):
                square = weight[at, h, b] ** 2
                made[0, h, b] += total[at, h, b] ** 2
                made[1, h, b] += square
                fourth[h, b] += square * square
    for h in range(ways):
        for b in range(many):
            made[1, h, b] = made[1, h, b] ** 2 / fourth[h, b] if fourth[h, b] > 0.0 else 0.0
    return made


@njit(cache=True, error_model="numpy")
def grown_by(own: float, leverage: float) -> float:
    """Return (1 - own) to the power of minus the leverage: 0, 0.5 or 1.

    Examples
    --------
    >>> grown_by(0.75, 1.0), grown_by(0.75, 0.5), grown_by(0.75, 0.0)
    (4.0, 2.0, 1.0)
    """
    left = max(1.0 - own, LEAST)
    if leverage < 1.0:
        return 1.0 / np.sqrt(left) if leverage > 0.0 else 1.0
    return 1.0 / left


@njit(cache=True)
def standard_error(squares: Floats, clusters: Floats, left: float, how: How) -> tuple[float, float]:
    """Return the standard error, and its degrees of freedom by Welch and Satterthwaite; NaN of too few clusters.

    Parameters
    ----------
    squares, clusters : (2,) clustered sum of squares and effective number of clusters, without and with the feature
    left : variance besides
    how : whether to correct for few clusters, and whether there is an arm without the feature

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0]), np.array([9.0, 9.0]), 0.0, How(1.0, False, False, False))
    (2.0, 12.8)
    """
    total, guessed = left, 0.0
    for arm in range(2):
        if arm == 0 and how.known:
            continue
        if clusters[arm] < _FEWEST:
            return np.nan, np.nan
        part = squares[arm] * (clusters[arm] / (clusters[arm] - 1.0) if how.few else 1.0)
        total += part
        guessed += (part + (left if arm == 1 else 0.0)) ** 2 / (clusters[arm] - 1.0)
    return np.sqrt(total), total**2 / max(guessed, 1e-300) if guessed > 0.0 else clusters[1] - 1.0
