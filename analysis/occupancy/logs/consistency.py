"""Whether a log can be true: stamps and clocks, and servers that work whenever somebody waits."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import CensoredData, kendalltau, logrank, norm, theilslopes

from analysis.occupancy.curve import curve
from analysis.occupancy.law import law
from models.arrays import Bools, Floats, Ints

WINDOWS = 40
"""Stretches of the log whose least response times are compared."""
CLOCK_LEVEL = 1e-4
"""Level of the test for a trend."""
CLOCK_MATERIAL = 0.05
"""A drift over the whole log is worth a finding from this part of the median response time on."""
_SAMPLE = 100_000
_ROUNDING_S = 5e-7
"""Seconds since 1970 are floats with a last digit of a quarter of a microsecond."""
_UNITS_S = (60.0, 1.0, 0.1, 0.01, 1e-3)
LEVEL = 0.001
"""Level of each of two tests: a server of the model is blamed in less than one log of 500."""
MATERIAL = 0.05
"""Smaller differences are not worth a finding."""
LONGER, AT_RISK, VARIED = 0.01, 5, 6.0
"""The mean of demands is known if the one that 1% exceed was seen, while five requests were there for longer, and is at
most six times the mean."""
LEAST = 30
"""Least number of requests on each side of a comparison."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How the least response times change over a log: by so much per second, and how rare that is by chance."""

    per_second: float
    whole_s: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One test: the two sides, in seconds of mean service, and how rare such a difference is by chance."""

    name: str
    left_s: float
    right_s: float
    p_value: float

    @property
    def against(self) -> bool:
        """Whether the difference is neither chance nor small."""
        return self.p_value < LEVEL and abs(self.left_s / self.right_s - 1.0) > MATERIAL


class _Sample(NamedTuple):
    """Times that end, or that are only known to be longer; shortest first."""

    stay_s: Floats
    ended: Bools

    @property
    def longest_s(self) -> float:
        """The longest that was seen to end."""
        return float(self.stay_s[self.ended][-1])


def resolution_s(stamp_s: Floats) -> float:
    """Return the coarsest of a minute, a second, and tenths to thousandths of it, that all stamps are multiples of.

    Parameters
    ----------
    stamp_s : (n,) array, seconds; NaN are left out

    Returns
    -------
    seconds; 0 if they are finer

    Examples
    --------
    >>> resolution_s(np.array([0.25, 1.5])), resolution_s(np.array([3.0, np.nan, 4.0]))
    (0.01, 1.0)
    """
    stamps = stamp_s[~np.isnan(stamp_s)][:_SAMPLE]
    for unit in _UNITS_S:
        if len(stamps) and np.all(np.abs(stamps - unit * np.round(stamps / unit)) < _ROUNDING_S):
            return unit
    return 0.0


def drift(arrival_s: Floats, took_s: Floats, met: Ints, servers: int) -> Drift | None:
    """Return how the least response times move over the log, by the slope through their medians (Theil 1950, Sen 1968).

    Requests that meet a free server show what is least, so load does not matter; the trend is tested by Kendall's tau
    (1938). A clock that runs fast against another makes it, but so does a service that gets slower.

    Parameters
    ----------
    arrival_s, took_s : (n,) arrays, seconds, in order of arrival; NaN: unknown
    met : (n,) requests that each one met
    servers : k >= 1

    Returns
    -------
    None if there is too little to tell: fewer than ten requests in a stretch.

    Examples
    --------
    >>> arrival = np.arange(4000.0)
    >>> found = drift(arrival, 0.1 + 1e-5 * arrival, np.zeros(4000, dtype=np.int64), servers=1)
    >>> round(found.per_second, 9), round(found.whole_s, 4)
    (1e-05, 0.04)
    """
    free = (met < servers) & ~np.isnan(took_s)
    came, took = arrival_s[free], took_s[free]
    if len(came) < 10 * WINDOWS:
        return None
    parts = np.array_split(np.arange(len(came)), WINDOWS)
    least = np.array([took[part].min() for part in parts])
    middle = np.array([came[part].mean() for part in parts])
    if np.ptp(least) == 0 or np.ptp(middle) == 0:
        return Drift(0.0, 0.0, 1.0)
    slope = float(theilslopes(least, middle).slope)
    return Drift(slope, slope * float(np.ptp(arrival_s)), float(kendalltau(middle, least).pvalue))


def conserves_work(arrival_s: Floats, departure_s: Floats, servers: int) -> tuple[Comparison, ...]:
    """Return what speaks against work conservation on so many servers of one speed.

    As long as no more than k requests are there each has a server of its own, so the time that such a request stays is
    its demand, known until more than k are there: a censored sample (Kaplan and Meier 1958).

    * company: demands of requests that met others, but not all servers busy, on the left, and of those that met nobody
      on the right; the log-rank test (Mantel 1966). Servers that slow each other down (shared caches, hyper-threads,
      locks), or wait for something else, make the left larger.
    * load: service time by the law over requests served, on the left, and the mean of those demands on the right.
      Servers that idle although somebody waits, fewer servers than k, or slower ones under load make the left larger;
      more servers than k make it smaller.

    A test without 30 requests on either side is left out; so is the second if long demands are too rare to be seen.

    Parameters
    ----------
    arrival_s, departure_s : (n,) arrays of pairs, seconds; NaN departures have not left
    servers : k >= 1

    Examples
    --------
    >>> arrival = np.arange(200.0)
    >>> [each.name for each in conserves_work(arrival, arrival + 0.5 + 0.25 * (arrival % 3), servers=2)]
    ['load']
    """
    order = np.argsort(arrival_s, kind="stable")
    came, left = arrival_s[order], departure_s[order]
    gone = np.sort(left[~np.isnan(left)])
    met = np.arange(len(came)) - np.searchsorted(gone, came, side="right")
    stay_s, ended = _undisturbed(came, left, met, servers)
    alone, company = met == 0, (met > 0) & (met < servers)
    tests = []
    if all(np.count_nonzero(ended & side) >= LEAST for side in (alone, company)):
        samples = [_sample(stay_s, ended, side) for side in (company, alone)]
        longest = min(sample.longest_s for sample in samples)
        left_s, right_s = (_mean(sample, longest)[0] for sample in samples)
        tests.append(Comparison("company", left_s, right_s, _logrank(*samples)))
    free = _sample(stay_s, ended, alone | company)
    if np.count_nonzero(free.ended) >= LEAST:
        tests += _load(law(curve(came, gone), servers).service_time_s / len(gone), len(gone), free)
    return tuple(tests)


def _undisturbed(came: Floats, left: Floats, met: Ints, servers: int) -> tuple[Floats, Bools]:
    """Return how long each request was there until more than k were, and whether it left before that."""
    crowded = np.flatnonzero(met >= servers)
    following = np.searchsorted(crowded, np.arange(len(came)), side="right")
    end_s = float(np.fmax(np.nanmax(left, initial=came[-1]), came[-1]))
    until = np.append(came[crowded], end_s)[following]
    ended: Bools = left <= until
    return np.where(ended, left, until) - came, ended


def _sample(stay_s: Floats, ended: Bools, which: Bools) -> _Sample:
    order = np.lexsort((~ended[which], stay_s[which]))
    return _Sample(stay_s[which][order], ended[which][order])


def _logrank(first: _Sample, other: _Sample) -> float:
    """Return the p-value; NaN, which blames nobody, where all demands are alike."""
    with np.errstate(invalid="ignore"):
        return float(logrank(_censored(first), _censored(other)).pvalue)


def _censored(sample: _Sample) -> CensoredData:
    return CensoredData(uncensored=sample.stay_s[sample.ended], right=sample.stay_s[~sample.ended])


def _mean(sample: _Sample, up_to_s: float) -> tuple[float, float, float]:
    """Return mean and variance of the mean (Greenwood 1926) of times cut off there, and what 1% exceed."""
    at_risk = np.arange(len(sample.stay_s), 0, -1)
    counts = sample.ended & (sample.stay_s <= up_to_s)
    level = np.cumprod(np.where(counts, 1.0 - 1.0 / at_risk, 1.0))
    ends = np.minimum(np.append(sample.stay_s[1:], up_to_s), up_to_s)
    areas = level * (ends - np.minimum(sample.stay_s, up_to_s))
    beyond = np.cumsum(areas[::-1])[::-1]
    spread = np.where(counts, beyond**2 / (at_risk * np.maximum(at_risk - 1, 1)), 0.0)
    present = len(at_risk) - np.searchsorted(sample.stay_s, sample.stay_s)
    rare = np.append(sample.stay_s[(level <= LONGER) & (present >= AT_RISK)], np.inf)[0]
    return float(min(sample.stay_s[0], up_to_s) + areas.sum()), float(spread.sum()), float(rare)


def _load(service_s: float, requests: int, free: _Sample) -> list[Comparison]:
    """Return the comparison of the law's service time per request with the mean demand, if that is known."""
    mean, variance, rare = _mean(free, free.longest_s)
    if rare > VARIED * mean:
        return []
    error = np.sqrt(variance + float(free.stay_s[free.ended].var()) / requests)
    z = abs(service_s - mean) / max(float(error), 1e-300)
    return [Comparison("load", service_s, mean, float(2.0 * norm.sf(z)))]
