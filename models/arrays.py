"""Types of arrays and lengths of time that all layers share."""

from typing import Final

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
