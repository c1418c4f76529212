"""How many are present at a station in steady state if all share it evenly: the mean, and how fast it grows with load.

With Poisson arrivals the number present has the law of a birth-and-death process whatever the distribution of demands,
and a request's expected response is in proportion to its demand (Cohen 1979, Acta Informatica 12; Kelly 1979,
Reversibility and Stochastic Networks, section 3.3).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def present(offered: ArrayLike, rates: ArrayLike) -> tuple[Floats, Floats]:
    """Return the mean number present and its derivative with respect to the offered work.

    The probability of n present is in proportion to a^n / (r_1 r_2 … r_n) with r_i = r_k beyond k, so the derivative of
    the mean is the variance over a. With r_i = i this is M/M/k.

    Parameters
    ----------
    offered : array, non-negative, work a that comes per second
    rates : (k,) array, positive, work per second of the station while 1, 2, …, k or more are present

    Returns
    -------
    two arrays shaped like `offered`
        Infinite where as much work comes as the station can do, or more.

    Raises
    ------
    ValueError
        If work is negative or not a number, or rates are empty, not positive or not finite.

    Examples
    --------
    >>> mean, slope = present([0.0, 0.5, 1.0], [1.0])
    >>> mean, slope
    (array([ 0.,  1., inf]), array([ 1.,  4., inf]))
    """
    rate, work = np.asarray(rates, dtype=np.float64), np.asarray(offered, dtype=np.float64)
    if rate.ndim != 1 or not rate.size or not ((rate > 0.0) & np.isfinite(rate)).all():
        raise ValueError(f"rates must be positive and finite, at least one, got {rate.tolist()}")
    if not (work >= 0.0).all():
        raise ValueError(f"offered must not be negative, got {work.min():g}")
    k, load = rate.size, np.minimum(work / rate[-1], 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Logarithms, as k may be a hundred; from k present on the weights fall geometrically.
        logs = np.cumsum(np.log(work[..., None] / rate), axis=-1)
        logs = np.concatenate([np.zeros((*work.shape, 1)), logs], axis=-1)
        weight = np.exp(logs - logs.max(axis=-1, keepdims=True))
        number, spare = np.arange(k, dtype=np.float64), 1.0 - load
        tail = weight[..., -1] / spare
        total = weight[..., :-1].sum(axis=-1) + tail
        mean = (weight[..., :-1] @ number + tail * (k + load / spare)) / total
        over = k + load / spare - mean
        square = ((number - mean[..., None]) ** 2 * weight[..., :-1]).sum(axis=-1) + tail * (over**2 + load / spare**2)
        slope = np.where(work > 0.0, square / total / work, 1.0 / rate[0])
    beyond = load >= 1.0
    return np.where(beyond, np.inf, mean), np.where(beyond, np.inf, slope)
