"""What is seen of a request server from outside: stamps of the clients, and a counter that samples the servers."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.world import Observation
from models.randomness import stream
from sim.queues.distributions import gamma

OVERHEAD_CV = 0.2
"""Coefficient of variation of each half of the overhead."""


@dataclass(frozen=True, slots=True)
class Delays:
    """How long each request and its answer are on the way between client and queue; (n,) arrays, seconds."""

    before_s: Floats
    after_s: Floats


@dataclass(frozen=True, slots=True)
class Busy:
    """How many servers work: ``servers[i]`` from ``time_s[i]`` until the next time; none before the first."""

    time_s: Floats
    servers: Ints


def delays(observation: Observation, seed: int, requests: int) -> Delays:
    """Return the latency of each request on its way to the queue, and of its answer.

    Either way takes half the round trip and about half the overhead, which is gamma-distributed. The first draws do not
    depend on the number of requests.

    Parameters
    ----------
    observation : round trip and overhead
    seed : all random draws follow from it
    requests : n >= 0
    """
    ways = (stream(seed, f"overhead {way}") for way in ("before", "after"))
    half_s = observation.overhead_s / 2
    return Delays(*(observation.rtt_s / 2 + gamma(rng, half_s, OVERHEAD_CV, requests) for rng in ways))


def present(arrival_s: Floats, departure_s: Floats, servers: int) -> Busy:
    """Return how many servers work when none idles while a job waits: the lesser of jobs and servers.

    Parameters
    ----------
    arrival_s, departure_s : (n,) and (m,) arrays, seconds, in any order
    servers : k >= 1

    Examples
    --------
    >>> present(np.array([0.0, 1.0]), np.array([3.0, 2.0]), servers=1)
    Busy(time_s=array([0., 1., 2., 3.]), servers=array([1, 1, 1, 0]))
    """
    time_s = np.concatenate((arrival_s, departure_s))
    change = np.repeat(np.array([1, -1]), (len(arrival_s), len(departure_s)))
    order = np.argsort(time_s, kind="stable")
    return Busy(time_s[order], np.minimum(np.cumsum(change[order]), servers))


def utilisation(
    busy: Busy, servers: int, interval_s: float, end_s: float, tick_s: float | None = None
) -> dict[str, Floats]:
    """Return the share of servers that work in each interval, exactly or as a counter sees it that ticks.

    The counter looks at 0, tick, 2 tick, … and averages what it saw, as an operating system that charges a whole tick
    to whatever runs when the clock interrupts. So many looks fall between t and u as multiples of the tick do.

    Parameters
    ----------
    busy : how many servers work
    servers : k >= 1
    interval_s, end_s : seconds; the intervals begin at 0, and the last one is whole and ends at `end_s` or later
    tick_s : time between looks; None: the exact mean

    Returns
    -------
    dict
        Columns start_s, end_s, utilisation (0..1; NaN in an interval without a look).

    Raises
    ------
    ValueError
        If a length is not above 0.

    Examples
    --------
    >>> busy = Busy(np.array([0.5, 2.25]), np.array([1, 0]))
    >>> utilisation(busy, 1, 2.0, 4.0)["utilisation"], utilisation(busy, 1, 2.0, 4.0, tick_s=0.5)["utilisation"]
    (array([0.75 , 0.125]), array([0.75, 0.25]))
    """
    for name, length in {"servers": servers, "interval_s": interval_s, "end_s": end_s, "tick_s": tick_s}.items():
        if length is not None and not length > 0:
            raise InputError(f"{name}: {length} is not above 0")
    edges_s = interval_s * np.arange(np.ceil(end_s / interval_s) + 1)
    clock = edges_s if tick_s is None else _looks(edges_s, tick_s)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.diff(_server_time(busy, edges_s, tick_s)) / np.diff(clock) / servers
    return {"start_s": edges_s[:-1], "end_s": edges_s[1:], "utilisation": share}


def _looks(time_s: Floats, tick_s: float) -> Floats:
    """Return how many looks were taken before each time, and none at it."""
    looks: Floats = np.ceil(time_s / tick_s)
    return looks


def _server_time(busy: Busy, time_s: Floats, tick_s: float | None) -> Floats:
    """Return the servers' working time up to each time, in seconds or in looks."""
    event, until = (times if tick_s is None else _looks(times, tick_s) for times in (busy.time_s, time_s))
    if not event.size:
        return np.zeros(len(until))
    total = np.concatenate(([0.0], np.cumsum(busy.servers[:-1] * np.diff(event))))
    last = np.searchsorted(busy.time_s, time_s, "right") - 1
    here = total[last] + busy.servers[last] * (until - event[last])
    return np.where(last < 0, 0.0, here)
