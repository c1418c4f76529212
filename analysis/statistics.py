"""A statistic with its interval, what counts as rounding, and the error of too little data."""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
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
    >>> NotEnoughDataError(1, 0, "machines")
    NotEnoughDataError('no machines: at least 1 is needed')
    >>> NotEnoughDataError(73, 20, "machines", purpose="p99")
    NotEnoughDataError('73 machines are needed for p99, 20 given')
    """

    def __init__(
        self, needed: int, have: int, what: str = "measurements", remedy: str = "", *, purpose: str = ""
    ) -> None:
        lacks = f"{needed} {what} are needed{purpose and f' for {purpose}'}, {have} given"
        none = f"no {what}{purpose and f' for {purpose}'}: at least 1 is needed"
        super().__init__((none if (needed, have) == (1, 0) else lacks) + (remedy and f"; {remedy}"))
        self.needed, self.have = needed, have


def intraclass(values: Floats, group: Ints, spent: int = 0) -> tuple[float, float]:
    """Return the correlation of members of a group, by the analysis of variance, and the size of unequal groups.

    Below 0 where groups differ less than their members do; NaN where no group has two members (Donner 1986).

    Parameters
    ----------
    values, group : (n,)
    spent : degrees of freedom between groups that a fit took from the values, beside their mean's

    Examples
    --------
    >>> intraclass(np.array([1.0, 1.0, -1.0, -1.0]), np.array([0, 0, 1, 1]))
    (1.0, 2.0)
    """
    code = np.unique(group, return_inverse=True)[1]
    size = np.bincount(code)
    groups, count = len(size), len(code)
    if groups < 2 + spent or count <= groups:
        return np.nan, np.nan
    mean = np.bincount(code, values) / size
    between = float((size * (mean - values.mean()) ** 2).sum()) / (groups - 1 - spent)
    within = float(((values - mean[code]) ** 2).sum()) / (count - groups)
    typical = float(count - (size**2).sum() / count) / (groups - 1)
    spread = between + (typical - 1.0) * within
    return ((between - within) / spread if spread > 0 else 0.0), typical
