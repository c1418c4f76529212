"""A check: two numbers that should agree, and how far apart they may be."""

import math
from dataclasses import dataclass

CONFIDENCE = 0.95
"""Of the intervals of which a share may miss."""
FALSE_ALARM = 1e-3
"""Chance that a check of sampled numbers fails although all is well, as far as its intervals are what they say."""


@dataclass(frozen=True, slots=True)
class Check:
    """Two numbers that should agree within a tolerance; one that is no number agrees with nothing.

    Examples
    --------
    >>> Check("cycles", 2.0, 2.5, 0.4).holds, Check("cycles", 2.0, float("nan"), 0.4).holds
    (False, False)
    >>> Check("change", 0.3, 0.4, 0.2).decisive, Check("change", 0.3, 0.4, 0.5).decisive
    (True, False)
    """

    check: str
    """Its name; of one job after a colon."""
    left: float
    right: float
    tolerance: float
    """Greatest difference of the two."""
    nothing: float = 0.0
    """What the left number would be if there were nothing of what is looked for: no change, nobody busy."""

    @property
    def holds(self) -> bool:
        """Whether they agree."""
        return abs(self.left - self.right) <= self.tolerance

    @property
    def tolerance_share(self) -> float:
        """How much of the distance from nothing to the right number is tolerated; infinite if there is none."""
        distance = abs(self.nothing - self.right)
        return self.tolerance / distance if distance else math.inf

    @property
    def decisive(self) -> bool:
        """Whether nothing would have failed: the tolerance is less than its distance from the right number."""
        return self.tolerance_share < 1.0

    def payload(self) -> dict[str, float | str | bool]:
        """Return the check as plain values.

        Examples
        --------
        >>> list(Check("cycles", 2.0, 2.0, 0.0).payload().values())
        ['cycles', 2.0, 2.0, 0.0, 0.0, True, True]
        """
        return {
            "check": self.check,
            "left": self.left,
            "right": self.right,
            "tolerance": self.tolerance,
            "tolerance_share": self.tolerance_share,
            "holds": self.holds,
            "decisive": self.decisive,
        }


def misses(check: str, wrong: int, of: int) -> Check:
    """Return the check that so many intervals of `CONFIDENCE` may miss: none beyond what chance explains.

    The tolerance is the least number that independent intervals exceed with a chance of at most `FALSE_ALARM`
    (binomial). Of so few intervals that all of them may miss, the check decides nothing.

    Parameters
    ----------
    check : its name
    wrong : intervals that missed
    of : intervals
    """
    from scipy.stats import binom

    return Check(check, float(wrong), 0.0, float(binom.isf(FALSE_ALARM, of, 1 - CONFIDENCE)), float(of))
