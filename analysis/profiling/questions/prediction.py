"""What a question predicts of moving jobs, and of which jobs it cannot say anything."""

from dataclasses import dataclass

import pandas as pd

MOST_INSTANCES = 32
"""Instances of a newcomer on one machine, at most; no prediction is made for more."""


@dataclass(frozen=True, slots=True, eq=False)
class PredictedPairs:
    """What moving jobs beside each other would do, and of which jobs that cannot be said."""

    threads: float
    """Hardware threads that newcomers keep busy, in place of as many of the mean neighbour."""
    rows: pd.DataFrame
    """application, beside, advice (apart, together, or none where the interval holds 0), effect (on the
    logarithm of the application's CPI), low, high (95%), ratio (of CPI), sensitivity, intensity, instances,
    visits_together; largest effect in either direction first.
    """
    pairs: int
    """Ordered pairs that could be predicted."""
    slower: int
    """Of these, intervals that lie above 0."""
    faster: int
    """Of these, intervals that lie below 0."""
    half_width: float
    """Median half of the intervals, on the logarithm of CPI; NaN without pairs."""
    applications: int
    left_out: pd.DataFrame
    """application, visits, machines, reason: of those whose CPI is not predicted."""
    too_small: int
    """Applications that are put beside no other, because that would take more than `MOST_INSTANCES` of them."""
    reason: str = ""
    """Why nothing at all can be predicted; empty where something can."""
