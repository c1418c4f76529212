"""What `wsc live` asks of its server: bursty sessions under a sawtooth of load, or open arrivals."""

import numpy as np

from models.arrays import Floats
from models.errors import InputError
from models.randomness import stream
from scenarios.live.client import Session

MEAN_DEMAND_S = 0.3
DEMAND_S = (0.1, 0.5)
"""CPU seconds of a request, uniform: the shorter ones of Kelly et al. 2008, section 5.1. Others are as wide."""
THINK_S = (0.6, 1.2)
"""Time to think, uniform: three times a demand in the mean, as there."""
REQUESTS_PER_SESSION = 8
SESSION_LOAD, TRACE_LOAD = (0.02, 1.05), (0.1, 1.1)
"""Demand per second and server at the foot and at the top of a tooth."""
_BURST = 2.0
_SESSION_TOOTH_S, _TRACE_TOOTH_S = 480.0, 40.0


def scaled(range_s: tuple[float, float], mean_demand_s: float) -> tuple[float, float]:
    """Return a range of times, which is for requests of `MEAN_DEMAND_S`, for requests of another mean demand.

    Examples
    --------
    >>> scaled(DEMAND_S, 0.6)
    (0.2, 1.0)
    """
    low_s, high_s = range_s
    factor = mean_demand_s / MEAN_DEMAND_S
    return low_s * factor, high_s * factor


def sessions(seed: int, length_s: float, servers: int, mean_demand_s: float = MEAN_DEMAND_S) -> list[Session]:
    """Return sessions of eight requests that come in bursts, their rate a sawtooth (Kelly et al. 2008, section 5.1).

    Parameters
    ----------
    seed : non-negative integer
    length_s : seconds in which sessions start
    servers : what the load is scaled to
    mean_demand_s : of a request, which times to think follow
    """
    if servers < 1:
        raise InputError(f"servers must be at least 1, got {servers}")
    random = stream(seed, "live sessions")
    burst_s = REQUESTS_PER_SESSION * mean_demand_s * _BURST
    bursts_s = _sawtooth(random, length_s, _SESSION_TOOTH_S, SESSION_LOAD, burst_s / servers)
    start_s = np.repeat(bursts_s, random.geometric(1 / _BURST, len(bursts_s)))
    demand_s = random.uniform(*scaled(DEMAND_S, mean_demand_s), (len(start_s), REQUESTS_PER_SESSION))
    think_s = random.uniform(*scaled(THINK_S, mean_demand_s), (len(start_s), REQUESTS_PER_SESSION - 1))
    rows = zip(start_s.tolist(), demand_s.tolist(), think_s.tolist(), strict=True)
    return [Session(start, tuple(demand), tuple(think)) for start, demand, think in rows]


def arrivals(seed: int, length_s: float, servers: int, load: float, mean_demand_s: float) -> list[Session]:
    """Return requests that arrive at one rate in an open Poisson process.

    Parameters
    ----------
    seed : non-negative integer
    length_s : seconds in which requests arrive
    servers : what the load is scaled to
    load : demand per second and server
    mean_demand_s : of a request

    Returns
    -------
    list of Session
        One request each.

    Examples
    --------
    >>> requests = arrivals(1, 1_000.0, servers=2, load=0.5, mean_demand_s=0.01)
    >>> offered = sum(request.demand_s[0] for request in requests) / (2 * 1_000.0)
    >>> len({len(request.demand_s) for request in requests}), round(offered, 2)
    (1, 0.5)
    """
    random = stream(seed, "live arrivals")
    count = random.poisson(load * servers / mean_demand_s * length_s)
    start_s = np.sort(random.uniform(0, length_s, count))
    demand_s = random.uniform(*scaled(DEMAND_S, mean_demand_s), count)
    return [Session(start, (demand,), ()) for start, demand in zip(start_s.tolist(), demand_s.tolist(), strict=True)]


def trace(seed: int, length_s: float) -> list[Session]:
    """Return open arrivals whose rate is a sawtooth that overloads one server for a while (section 5.2).

    Parameters
    ----------
    seed : non-negative integer
    length_s : seconds in which requests arrive

    Returns
    -------
    list of Session
        One request each.
    """
    random = stream(seed, "live trace")
    start_s = _sawtooth(random, length_s, _TRACE_TOOTH_S, TRACE_LOAD, float(np.mean(DEMAND_S)))
    demand_s = random.uniform(*DEMAND_S, len(start_s))
    return [Session(start, (demand,), ()) for start, demand in zip(start_s.tolist(), demand_s.tolist(), strict=True)]


def _sawtooth(
    random: np.random.Generator, length_s: float, tooth_s: float, load: tuple[float, float], burst_s: float
) -> Floats:
    """Return Poisson times; each brings `burst_s` seconds of load, which climbs from low to high in every tooth."""
    if not 0 < length_s < np.inf:
        raise InputError(f"length_s must be above 0 and finite, got {length_s}")
    low, high = load
    tooth_s = length_s / max(1, round(length_s / tooth_s))
    time_s = np.sort(random.uniform(0, length_s, random.poisson(high / burst_s * length_s)))
    share = (low + (high - low) * (time_s % tooth_s) / tooth_s) / high
    return time_s[random.uniform(size=len(time_s)) < share]
