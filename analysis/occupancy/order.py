"""Times in order: those of a log nearly are, so moving each past the few later ones before it is the fastest."""

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from models.arrays import Floats, Ints
from models.errors import InputError

MOST_MOVES = 8
"""Moves per time on average after which a log counts as not nearly in order, and is sorted as any array."""


def in_order(time_s: ArrayLike) -> Floats:
    """Return a sorted copy, NaN last, as `np.sort` does.

    Parameters
    ----------
    time_s : (n,) array, seconds

    Raises
    ------
    ValueError
        If the array is not one-dimensional.

    Examples
    --------
    >>> in_order([1.0, 3.0, 2.0])
    array([1., 2., 3.])
    """
    time = np.array(time_s, dtype=np.float64)
    _check(time)
    return time if _settled(time, np.empty(0, np.int64)) else np.sort(time, kind="stable")


def order_of(time_s: ArrayLike) -> Ints:
    """Return the places of the times in order, those of equal ones as they are, as a stable `np.argsort` does.

    Parameters
    ----------
    time_s : (n,) array, seconds

    Raises
    ------
    ValueError
        If the array is not one-dimensional.

    Examples
    --------
    >>> order_of([1.0, 3.0, 2.0, 1.0])
    array([0, 3, 2, 1])
    """
    time = np.array(time_s, dtype=np.float64)
    _check(time)
    order = np.arange(len(time))
    return order if _settled(time, order) else order[np.argsort(time, kind="stable")]


def _check(time: Floats) -> None:
    if time.ndim != 1:
        raise InputError(f"times must have one dimension, got {time.ndim}")


@njit(cache=True)
def _settled(time: Floats, order: Ints) -> bool:
    """Sort by insertion, in place, and the order alongside unless it is empty; False if that was given up.

    No equal times change places, so whatever sorts the rest stably gives what it would have given without this.
    """
    left = MOST_MOVES * len(time)
    for i in range(len(time)):
        moved, place, j = time[i], order[i] if len(order) else 0, i
        if np.isnan(moved):
            return False
        while j > 0 and time[j - 1] > moved:
            time[j] = time[j - 1]
            if len(order):
                order[j] = order[j - 1]
            j -= 1
        time[j] = moved
        if len(order):
            order[j] = place
        left -= i - j
        if left < 0:
            return False
    return True
