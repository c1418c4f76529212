"""How memory answers under traffic: latency over bandwidth as machines measure it.

Bandwidth is relative to what a machine attains, which is less than its channels could carry. Up to there latency
follows the curve that holds over 1,401 measured points of five machines whose traffic is at least half reads, with a
residual of 0.13 (Esmaili-Dokht et al. 2024) ::

    latency / idle latency = 1 + 0.30 u + 0.67 u^4.4

Beyond, memory serves no more: a steep line makes everybody wait until the traffic is what can be served.
"""

from typing import Final, TypeVar

import numpy as np

from models.arrays import Floats

LINEAR: Final = 0.30
"""Growth of latency over the whole bandwidth, but for the bend at its end."""
POWER_GAIN: Final = 0.67
"""Growth by the bend."""
POWER: Final = 4.4
"""How sharp the bend is."""
CUT: Final = 0.97
"""Share of the attainable bandwidth beyond which nothing was measured."""
BEYOND: Final = 20.0
"""Slope of latency beyond: a choice that keeps the traffic served within a tenth above what can be attained."""

_Number = TypeVar("_Number", float, Floats)


def latency_factor(use: _Number) -> _Number:
    """Return memory latency relative to idle at shares of the attainable bandwidth.

    Parameters
    ----------
    use : a number or an array, non-negative

    Examples
    --------
    >>> latency_factor(np.array([0.0, 0.5, 0.9, 1.0])).round(2).tolist()
    [1.0, 1.18, 1.69, 2.48]
    """
    measured: _Number = np.minimum(use, CUT)  # pyrefly: ignore[bad-assignment] # numpy answers in kind
    bend: _Number = measured**POWER
    return 1.0 + LINEAR * measured + POWER_GAIN * bend + BEYOND * (use - measured)
