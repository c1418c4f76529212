"""How CPU quota is spread over jobs in the populations that ship: parameters, and what each was fitted to."""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats


class QuotaClasses(NamedTuple):
    """How quota is spread over two classes of jobs: keys of a population that a preset decides."""

    heavyweight_share: float
    heavyweight_log_sd: float
    light_log_sd: float


WSMETER = QuotaClasses(heavyweight_share=0.87, heavyweight_log_sd=0.75, light_log_sd=0.9)
"""Fitted to WSMeter's coverages at 25, 50 and 400 machines (82, 87 and 91%), with at most 91% in the top 200 jobs; the
spread among heavyweights is that of a population without a preset."""
STRETCH = 0.28
"""Exponent of the stretched exponential along which quota falls with rank in the population `google2011` (Laherrère
and Sornette 1998), fitted to the shares of CPU requests that the top 1, 5, 10 and 20% of the jobs hold."""
COMMON_RATIO = 25.0
"""How many times the quota of a local job of that population its common jobs have: they hold 95% of it, as in Fig. 5a
of WSMeter."""


def stretched_quota(exponential: Floats) -> Floats:
    """Return the quota, up to a factor, of jobs whose places on the curve are standard exponential variables.

    Examples
    --------
    >>> stretched_quota(np.array([0.5, 1.0, 2.0])).round(3)
    array([ 0.084,  1.   , 11.888])
    """
    return np.asarray(exponential ** (1.0 / STRETCH))


def expected_places(count: int) -> Floats:
    """Return the expected values of `count` ordered standard exponential variables, the largest first.

    Examples
    --------
    >>> expected_places(3).round(3)
    array([1.833, 0.833, 0.333])
    """
    return np.cumsum(1.0 / np.arange(count, 0, -1))[::-1]
