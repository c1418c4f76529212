"""Requests of an open queue, drawn by compiled code: Poisson arrivals, and demands of the simplest kinds.

Random number i of a stream is splitmix64 of (key, i): there is no state, so draws do not depend on how requests are cut
into blocks.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.code.compiled import njit
from models.errors import InputError
from models.queues.kernels import JobBatch
from models.queues.world import Distribution
from models.randomness import stream

KINDS = ("constant", "exponential", "uniform")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Traffic(NamedTuple):
    """What is drawn: demands are uniform if `high_s` is above `low_s`, else exponential above `low_s`.

    `shares` are cumulative, without the last class, and `keys` those of gaps, demands and classes.
    """

    rate_per_s: float
    low_s: float
    high_s: float
    mean_s: float
    shares: Floats
    keys: NDArray[np.uint64]


class Drawn(NamedTuple):
    """How far a traffic has been drawn: so many requests, the last of which arrived then."""

    requests: int
    last_arrival_s: float


def _demand(demand: Distribution) -> tuple[float, float, float]:
    """Return the checked low, high and mean that a traffic holds."""
    if demand.kind not in KINDS:
        raise InputError(f"demand is {demand.kind}, only {', '.join(KINDS)} are drawn here")
    names = ("low", "high") if demand.kind == "uniform" else ("mean",)
    values = [getattr(demand, name) for name in names]
    for name, value in zip(names, values, strict=True):
        if value is None or not 0.0 <= value < np.inf:
            raise InputError(f"demand: {name} is {value}, a finite number of at least 0 is needed")
    values = [float(value) for value in values]
    if demand.kind == "uniform" and values[1] < values[0]:
        raise InputError(f"demand: high is {values[1]}, below low, {values[0]}")
    if demand.kind == "uniform":
        return values[0], values[1], 0.0
    return (values[0], 0.0, 0.0) if demand.kind == "constant" else (0.0, 0.0, values[0])


def traffic(rate_per_s: float, demand: Distribution, seed: int, class_shares: Sequence[float] = (1.0,)) -> Traffic:
    """Return what `fill` draws from: a Poisson process from time 0 on, demands and classes.

    Parameters
    ----------
    rate_per_s : arrivals per second
    demand : a distribution of seconds of a server: constant, exponential or uniform
    seed : non-negative integer
    class_shares : share of each class of requests, drawn independently

    Raises
    ------
    ValueError
        If a rate, share or parameter is out of its bounds, or the distribution is of another kind.

    Examples
    --------
    >>> traffic(2.0, Distribution("uniform", low=1.0, high=2.0), seed=1, class_shares=(0.25, 0.75)).shares
    array([0.25])
    """
    if not 0.0 < rate_per_s < np.inf:
        raise InputError(f"rate_per_s is {rate_per_s}, it must be above 0 and finite")
    shares = np.asarray(class_shares, dtype=np.float64)
    if shares.ndim != 1 or not shares.size or not (shares > 0.0).all() or abs(shares.sum() - 1.0) > 1e-9:
        raise InputError(f"class_shares are {class_shares}, positive shares that sum to 1 are needed")
    keys = stream(seed, "queues").integers(0, 2**64, 3, dtype=np.uint64)
    low_s, high_s, mean_s = _demand(demand)
    return Traffic(float(rate_per_s), low_s, high_s, mean_s, np.cumsum(shares)[:-1], keys)


@njit(cache=False, inline="always")
def _uniform(key: np.uint64, number: int) -> float:
    """Return a draw from (0, 1) that belongs to (key, number): splitmix64 (Steele, Lea and Flood 2014, fig. 13)."""
    x = key + np.uint64(number) * _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    x = x ^ (x >> np.uint64(31))
    return (np.float64(np.int64(x >> np.uint64(11))) + 0.5) / 9007199254740992.0


@njit(cache=True, error_model="numpy")
def fill(jobs: JobBatch, first: int, n: int, drawn: Drawn, traffic: Traffic) -> Drawn:
    """Fill rows `first` to `n` with the next requests of a traffic; return what has been drawn then.

    Parameters
    ----------
    jobs : arrays whose arrival, demand and class are filled
    first, n : rows
    drawn : what was drawn before
    traffic : what is drawn
    """
    number, now = drawn.requests, drawn.last_arrival_s
    for i in range(first, n):
        now -= np.log(_uniform(traffic.keys[0], number)) / traffic.rate_per_s
        jobs.arrival_s[i], jobs.demand_s[i], jobs.priority[i] = now, traffic.low_s, 0
        if traffic.high_s > traffic.low_s:
            jobs.demand_s[i] += (traffic.high_s - traffic.low_s) * _uniform(traffic.keys[1], number)
        elif traffic.mean_s > 0.0:
            jobs.demand_s[i] -= traffic.mean_s * np.log(_uniform(traffic.keys[1], number))
        for share in traffic.shares:
            jobs.priority[i] += 1 if _uniform(traffic.keys[2], number) >= share else 0
        number += 1
    return Drawn(number, now)


def rows(capacity: int) -> JobBatch:
    """Return room for so many requests."""
    return JobBatch(
        np.zeros(capacity), np.zeros(capacity), np.zeros(capacity, np.int64), np.zeros(capacity), np.zeros(capacity)
    )


def draw(traffic: Traffic, requests: int) -> tuple[Floats, Floats, Ints]:
    """Return the first requests of a traffic as arrays.

    Returns
    -------
    three (requests,) arrays
        Arrival (s), demand (s) and class.

    Examples
    --------
    >>> arrival_s, demand_s, classes = draw(traffic(2.0, Distribution("constant", mean=0.3), seed=1), 3)
    >>> demand_s, classes, bool((arrival_s > 0).all())
    (array([0.3, 0.3, 0.3]), array([0, 0, 0]), True)
    """
    jobs = rows(requests)
    fill(jobs, 0, requests, Drawn(0, 0.0), traffic)
    return jobs.arrival_s, jobs.demand_s, jobs.priority
