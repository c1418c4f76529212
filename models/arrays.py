"""Types of arrays, lengths of time and what NumPy does too slowly, for all layers."""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Numbers, whatever the shape."""
Ints = NDArray[np.int64]
"""Whole numbers, whatever the shape."""
Bools = NDArray[np.bool_]
"""Truth values, whatever the shape."""
Bytes = NDArray[np.uint8]
"""Bytes of a text."""
UInts = NDArray[np.uint64]
"""Keys and digests of 64 bits."""
Small = NDArray[np.int8]
"""Whole numbers of one byte, where there are very many."""
HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S

_Whole = TypeVar("_Whole", bound=np.integer)


def unique_sorted(numbers: NDArray[_Whole]) -> NDArray[_Whole]:
    """Return the different ones of (n,) whole numbers, rising.

    `numpy.unique` puts whole numbers into a hash table since NumPy 2.3, which takes ten to fifty times as long as to
    sort them where most are different.

    Examples
    --------
    >>> unique_sorted(np.array([3, 1, 3]))
    array([1, 3])
    """
    rising = np.sort(numbers)
    return rising[np.append(True, rising[1:] != rising[:-1])[: len(rising)]]
