"""Distance correlation and Pearson's, of two real variables."""

import numpy as np

from analysis.statistics import NotEnoughDataError
from models.arrays import Floats, Ints
from models.errors import InputError

Sums = tuple[tuple[float, float, float], ...]


def distance_correlation(x: Floats, y: Floats) -> float:
    """Return the distance correlation, which is 0 only under independence (Székely, Rizzo and Bakirov 2007, eq. 2.18).

    The plain (V-statistic) version: it is above 0 in finite samples even under independence. O(n log n) time.

    Parameters
    ----------
    x, y : (n,) arrays, n >= 2

    Returns
    -------
    float
        0..1; NaN if x or y does not vary.

    Examples
    --------
    >>> round(distance_correlation(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])), 12)
    1.0
    """
    return _plain(_sums(x, y, least=2), len(x))


def distance_correlations(x: Floats, y: Floats) -> tuple[float, float]:
    """Return the distance correlation, and its bias-corrected square (Székely and Rizzo 2014, eq. 1.1 and 3.2).

    The mean of the second under independence is 0, so it may be negative. O(n log n) time.

    Parameters
    ----------
    x, y : (n,) arrays, n >= 4

    Returns
    -------
    float, float
        At most 1; NaN if x or y does not vary.

    Examples
    --------
    >>> x, y = np.arange(5.0), np.array([0.0, 1.0, 2.0, 1.0, 0.0])
    >>> distance_correlations(x, y)[0] == distance_correlation(x, y)
    True
    """
    sums = _sums(x, y, least=4)
    return _plain(sums, len(x)), _corrected(sums, len(x))


def pearson_correlation(x: Floats, y: Floats) -> float:
    """Return the product-moment correlation (Pearson 1895).

    Parameters
    ----------
    x, y : (n,) arrays, n >= 2

    Returns
    -------
    float
        -1..1; NaN if x or y does not vary.

    Examples
    --------
    >>> round(pearson_correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])), 12)
    -1.0
    """
    _check(x, y, least=2)
    a, b = _unit_scale(x), _unit_scale(y)
    return _ratio(float(a @ b), float(a @ a), float(b @ b))


def _plain(sums: Sums, n: int) -> float:
    covariance, variance_x, variance_y = (
        product / n**2 - 2 * rows / n**3 + total / n**4 for product, rows, total in sums
    )
    return float(np.sqrt(np.maximum(0.0, _ratio(covariance, variance_x, variance_y))))


def _corrected(sums: Sums, n: int) -> float:
    covariance, variance_x, variance_y = (
        (product - 2 * rows / (n - 2) + total / ((n - 1) * (n - 2))) / (n * (n - 3)) for product, rows, total in sums
    )
    return _ratio(covariance, variance_x, variance_y)


def _ratio(covariance: float, variance_x: float, variance_y: float) -> float:
    if not (variance_x > 0 and variance_y > 0):
        return float("nan")
    return float(np.clip(covariance / np.sqrt(variance_x) / np.sqrt(variance_y), -1.0, 1.0))


def _check(x: Floats, y: Floats, least: int) -> None:
    if len(x) != len(y):
        raise InputError(f"x and y must be pairs, got {len(x)} and {len(y)} values")
    if len(x) < least:
        raise NotEnoughDataError(least, len(x), "pairs")


def _sums(x: Floats, y: Floats, least: int) -> Sums:
    """Return the sums that make distance covariances, for (x, y), (x, x) and (y, y).

    With a and b the matrices of distances: Σ a_ij b_ij, Σ a_i. b_i. and a.. b.., dots being sums.
    """
    _check(x, y, least)
    x, y = _unit_scale(np.asarray(x, dtype=np.float64)), _unit_scale(np.asarray(y, dtype=np.float64))
    a, b, n = _row_sums(x), _row_sums(y), len(x)
    squares_x, squares_y = 2 * n * float(x @ x), 2 * n * float(y @ y)
    return (
        (_product_sum(x, y), float(a @ b), float(a.sum() * b.sum())),
        (squares_x, float(a @ a), float(a.sum() ** 2)),
        (squares_y, float(b @ b), float(b.sum() ** 2)),
    )


def _unit_scale(values: Floats) -> Floats:
    """Return values with mean 0 and largest deviation 1, so that sums neither cancel nor overflow; constants give 0."""
    if np.min(values) == np.max(values):
        return np.zeros(len(values))
    values = values - values.mean()
    scaled: Floats = values / np.max(np.abs(values))
    return scaled


def _row_sums(values: Floats) -> Floats:
    """Return Σ_j |v_i - v_j| for every i, by sorting."""
    order, n = np.argsort(values, kind="stable"), len(values)
    ranked = values[order]
    below = np.cumsum(ranked) - ranked
    sums = np.empty(n)
    sums[order] = ranked * (2 * np.arange(n) - n) - 2 * below + ranked.sum()
    return sums


def _product_sum(x: Floats, y: Floats) -> float:
    """Return Σ_ij |x_i - x_j| |y_i - y_j| in O(n log n) (Huo and Székely 2016).

    For i before j in the order of x the product is (x_j - x_i)(y_j - y_i), with the sign of y_j - y_i: twice the sum
    over the pairs with y_i before y_j, less the sum over all pairs.
    """
    order = np.argsort(x, kind="stable")
    x, y, n = x[order], y[order], len(x)
    moments = np.stack([np.ones(n), x, y, x * y])
    concordant = moments @ _sums_before(np.argsort(y, kind="stable"), moments).T
    # Σ over concordant pairs of x_j y_j - x_j y_i - x_i y_j + x_i y_i; rows are j's moments, columns i's
    agreeing = concordant[3, 0] - concordant[1, 2] - concordant[2, 1] + concordant[0, 3]
    everything = n * np.sum(x * y) - x.sum() * y.sum()
    return float(2 * (2 * agreeing - everything))


def _sums_before(by_y: Ints, moments: Floats) -> Floats:
    """Return, for every j, the sum of the moments of all i < j that stand before j in `by_y`.

    From the highest bit of the index down, indices that differ first in this bit are neighbours: those with a 0 are
    smaller. The order is kept within each half, as in a radix sort, so that a running sum over the zeros serves all.
    """
    n = len(by_y)
    sums, ranked = np.zeros_like(moments), by_y
    for bit in reversed(range(max(1, (n - 1).bit_length()))):
        zero = (ranked >> bit) & 1 == 0
        start = (ranked >> (bit + 1)) << (bit + 1)
        running = np.concatenate([np.zeros((len(moments), 1)), np.cumsum(moments[:, ranked] * zero, axis=1)], axis=1)
        positive = np.flatnonzero(~zero)
        sums[:, ranked[positive]] += running[:, positive] - running[:, start[positive]]
        zeros_before = np.concatenate([[0], np.cumsum(zero)])
        rank_among_zeros = zeros_before[:-1] - zeros_before[start]
        position = np.where(zero, start + rank_among_zeros, np.arange(n) - rank_among_zeros + (1 << bit))
        moved = np.empty_like(ranked)
        moved[position] = ranked
        ranked = moved
    return sums
