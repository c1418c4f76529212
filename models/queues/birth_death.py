"""How many are present at a station in steady state if all share it evenly: their law, its mean, how fast that grows.

With Poisson arrivals the number present has the law of a birth-and-death process whatever the distribution of demands,
and a request's expected response is in proportion to its demand (Cohen 1979, Acta Informatica 12; Kelly 1979,
Reversibility and Stochastic Networks, section 3.3).
"""

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats
from models.errors import InputError


def law(offered: ArrayLike, rates: ArrayLike) -> Floats:
    """Return how probable 0, 1, …, k − 1, k or more present are.

    The probability of n present is in proportion to a^n / (r_1 r_2 … r_n) with r_i = r_k beyond k. With r_i = i this is
    M/M/k.

    Parameters
    ----------
    offered : (…) array, non-negative, work a that comes per second
    rates : (k,) or (…, k) array, positive, work per second of the station while 1, 2, …, k or more are present

    Returns
    -------
    (…, k + 1) array
        All are k or more where as much work comes as the station can do, or more.

    Raises
    ------
    ValueError
        If work is negative or not a number, or rates are empty, not positive or not finite.

    Examples
    --------
    >>> law([0.0, 1.0, 2.0], [1.0, 2.0]).round(3)
    array([[1.   , 0.   , 0.   ],
           [0.333, 0.333, 0.333],
           [0.   , 0.   , 1.   ]])
    """
    rate, work = np.asarray(rates, dtype=np.float64), np.asarray(offered, dtype=np.float64)
    if not rate.ndim or not rate.size or not ((rate > 0.0) & np.isfinite(rate)).all():
        raise InputError(f"rates must be positive and finite, at least one, got {rate.tolist()}")
    if not (work >= 0.0).all():
        raise InputError(f"offered must not be negative, got {work.min():g}")
    load = work / rate[..., -1]
    share: Floats = np.zeros((*load.shape, rate.shape[-1] + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        # Logarithms, as k may be a hundred; from k present on the weights fall geometrically.
        np.cumsum(np.log(work[..., None] / rate), axis=-1, out=share[..., 1:])
        share -= share.max(axis=-1, keepdims=True)
        np.exp(share, out=share)
        share[..., -1] /= 1.0 - load
        share /= share.sum(axis=-1, keepdims=True)
    share[load >= 1.0] = np.eye(rate.shape[-1] + 1)[-1]
    return share


def present(offered: ArrayLike, rates: ArrayLike) -> tuple[Floats, Floats]:
    """Return the mean number present and its derivative with respect to the offered work: the variance over a.

    Parameters
    ----------
    offered, rates : as for `law`

    Returns
    -------
    two arrays shaped like `offered`
        Infinite where as much work comes as the station can do, or more.

    Examples
    --------
    >>> mean, slope = present([0.0, 0.5, 1.0], [1.0])
    >>> mean, slope
    (array([ 0.,  1., inf]), array([ 1.,  4., inf]))
    """
    share = law(offered, rates)
    rate, work = np.asarray(rates, dtype=np.float64), np.asarray(offered, dtype=np.float64)
    number, load = np.arange(share.shape[-1], dtype=np.float64), np.minimum(work / rate[..., -1], 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        more = load / (1.0 - load)  # beyond k, in the mean of the times when k or more are present
        mean = share @ number + share[..., -1] * more
        square = ((number - mean[..., None]) ** 2 * share)[..., :-1].sum(axis=-1)
        square += share[..., -1] * ((number[-1] + more - mean) ** 2 + more / (1.0 - load))
        slope = np.where(work > 0.0, square / work, 1.0 / rate[..., 0])
    beyond = load >= 1.0
    return np.where(beyond, np.inf, mean), np.where(beyond, np.inf, slope)
