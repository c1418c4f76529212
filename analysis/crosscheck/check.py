"""A check: two numbers that should agree, and how far apart they may be."""

from dataclasses import asdict, dataclass

from scipy.stats import binom

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
    """

    check: str
    """Its name; of one job after a colon."""
    left: float
    right: float
    tolerance: float
    """Greatest difference of the two."""

    @property
    def holds(self) -> bool:
        """Whether they agree."""
        return abs(self.left - self.right) <= self.tolerance

    def payload(self) -> dict[str, float | str | bool]:
        """Return the check as plain values.

        Examples
        --------
        >>> Check("cycles", 2.0, 2.0, 0.0).payload()
        {'check': 'cycles', 'left': 2.0, 'right': 2.0, 'tolerance': 0.0, 'holds': True}
        """
        return asdict(self) | {"holds": self.holds}


def misses(check: str, wrong: int, of: int) -> Check:
    """Return the check that so many intervals of `CONFIDENCE` may miss: none beyond what chance explains.

    The tolerance is the least number that independent intervals exceed with a chance of at most `FALSE_ALARM`
    (binomial).

    Parameters
    ----------
    check : its name
    wrong : intervals that missed
    of : intervals

    Examples
    --------
    >>> misses("cpi", 3, 40).tolerance, misses("cpi", 12, 40).holds
    (7.0, False)
    """
    return Check(check, float(wrong), 0.0, float(binom.isf(FALSE_ALARM, of, 1 - CONFIDENCE)))
