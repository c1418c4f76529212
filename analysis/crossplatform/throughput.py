"""The greatest arrival rate that keeps a bound on mean response time, as a method predicts it (Stewart et al. 2008)."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from analysis.crossplatform.evidence import Prediction, Predictor
from models.arrays import Bools, Floats
from models.errors import InputError
from models.platforms import Platform

LEAST_PER_S: Final = 0.01
"""Arrival rates below this count as none."""
GREATEST_PER_S: Final = 1.0e6
"""The greatest arrival rate that is asked about."""
POINTS: Final = 24
"""Steps of a round of the search."""
ROUNDS: Final = 4
"""Calls of the predictor: they come within 1e-4 of the throughput, from below."""
LONG_S: Final = 1e9
"""Of so long an interval the mean is the long-run one: even at `LEAST_PER_S` ten million requests came."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """The greatest arrival rate that keeps a bound on mean response time, requests per second, with a 90% interval.

    0: not even an idle machine keeps it; infinity: every rate that was asked about does; NaN: the method does not say.
    """

    throughput_per_s: float
    low: float
    high: float


def bounded_throughput(
    predictor: Predictor, platform: Platform, mix: ArrayLike, bound_s: float, interval_s: float = LONG_S
) -> Bounded:
    """Return the greatest arrival rate of a mix at which the predicted mean response keeps a bound.

    The rate is raised until the bound is first exceeded (section 5.1), on a grid that is refined where that happens:
    every round is one call of the predictor, for the throughput and both ends of its interval.

    Parameters
    ----------
    predictor : from platform, counts and interval to a prediction
    platform : spec sheet
    mix : (J,) shares or counts of the request types, of any sum
    bound_s : on mean response time, seconds
    interval_s : length of the intervals that the predictor is asked about, seconds; of short ones the ends are those
        of an interval's realised mean, which of few requests is anything

    Raises
    ------
    ValueError
        If the mix is empty, negative or all zero, or bound or interval are not positive.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> from analysis.crossplatform.evidence import Prediction
    >>> def tenth(platform, counts, interval_s):
    ...     used = 0.1 * counts.sum(axis=1) / interval_s
    ...     response = np.where(used < 1, 0.1 / np.maximum(1 - used, 1e-9), np.inf)
    ...     return Prediction(*[np.full(len(counts), 0.1)] * 3, response, response, response)
    >>> round(bounded_throughput(tenth, PLATFORMS["haswell_2698v3"], [1, 3], bound_s=0.2).throughput_per_s, 2)
    5.0
    """
    shares = np.asarray(mix, dtype=np.float64)
    if shares.ndim != 1 or not shares.size or not (shares >= 0).all() or not 0 < shares.sum() < np.inf:
        raise InputError(
            f"mix must be one share per request type, none negative and not all zero, got {shares.tolist()}"
        )
    for name, value in (("bound_s", bound_s), ("interval_s", interval_s)):
        if not 0 < value < np.inf:
            raise InputError(f"{name} must be positive and finite, got {value:g}")
    one_s = interval_s * shares / shares.sum()

    low, high = np.full(3, LEAST_PER_S), np.full(3, GREATEST_PER_S)
    sure: list[Bools] = []
    for _ in range(ROUNDS):
        rates = np.geomspace(low, high, POINTS)
        response_s = _columns(predictor(platform, rates.reshape(-1, 1) * one_s, interval_s), rates.shape)
        keeps = response_s <= bound_s
        sure = sure or [np.asarray(np.isnan(response_s).all(axis=0)), np.asarray(keeps.all(axis=0)), ~keeps[0]]
        beyond = np.where(keeps.all(axis=0), POINTS - 1, np.maximum(keeps.argmin(axis=0), 1))
        low, high = (rates[at, np.arange(3)] for at in (beyond - 1, beyond))
    return Bounded(*np.select(sure, [np.nan, np.inf, 0.0], low).tolist())


def _columns(prediction: Prediction, shape: tuple[int, ...]) -> Floats:
    """Return the predicted responses that decide on the throughput, its low end and its high end, a column each."""
    times = (prediction.response_time_s, prediction.response_high_s, prediction.response_low_s)
    return np.stack([time.reshape(shape)[:, column] for column, time in enumerate(times)], axis=1)
