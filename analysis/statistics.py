"""A statistic with its interval, what counts as rounding, and the error of too little data."""

from typing import NamedTuple

import numpy as np

from models.errors import WscError

ROUNDING = 1e-12
"""Relative differences up to here are rounding: what is no farther apart does not differ."""


class Statistic(NamedTuple):
    """An estimate and the two ends of its interval, in its unit; NaN where too little is known."""

    value: float
    low: float
    high: float

    @classmethod
    def around(cls, value: float, half_width: float) -> "Statistic":
        """Return an estimate in the middle of its interval."""
        return cls(value, value - half_width, value + half_width)

    @property
    def half_width(self) -> float:
        """From the estimate to the upper end."""
        return self.high - self.value


UNKNOWN = Statistic(np.nan, np.nan, np.nan)


class NotEnoughDataError(WscError):
    """Too little data for the method; `needed` says how much would do, `have` what was given, `remedy` how to get more.

    Examples
    --------
    >>> NotEnoughDataError(2, 1, "machines")
    NotEnoughDataError('2 machines are needed, 1 given')
    """

    def __init__(self, needed: int, have: int, what: str = "measurements", remedy: str = "") -> None:
        super().__init__(f"{needed} {what} are needed, {have} given{remedy and f'; {remedy}'}")
        self.needed, self.have = needed, have
