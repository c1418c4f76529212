"""Everything that comes to the processors: requests, garbage collections and background ticks, the same everywhere."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.randomness import stream
from models.services.applications import Activities
from models.services.world import ServiceWorld
from sim.queues.distributions import gamma
from sim.services.mixes import Mixes, arrive

OTHER_TIERS_CV = 0.5
"""Coefficient of variation of a request's delay at the other tiers around its type's mean (gamma)."""
TICK_S = 1.0
"""Time between two lots of background ticks; each lot is what a second brings."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """N jobs in order of arrival, of which R are requests."""

    arrival_s: Floats
    """(N,) seconds."""
    interval: Ints
    """(N,) interval of arrival."""
    activity: Ints
    """(N,) what it is: 0..J − 1 a type of request, J a collection, J + 1 a lot of ticks."""
    size: Floats
    """(N,) its instructions relative to the mean of its kind."""
    request: Ints
    """(R,) rows of the requests."""
    delay: Floats
    """(R,) time of each request at the other tiers relative to the mean of its type."""


def draw(world: ServiceWorld, activities: Activities, mixes: Mixes) -> Work:
    """Return all jobs of a world's horizon.

    A collection comes with the request whose allocation fills the heap.
    """
    arrival_s, kind = arrive(world, mixes)
    return of(world, activities, arrival_s, kind, amounts(world, kind.size))


class Amounts(NamedTuple):
    """What R requests ask for, each relative to the mean of its type."""

    size: Floats
    """Instructions."""
    delay: Floats
    """Of the other tiers."""


def amounts(world: ServiceWorld, requests: int) -> Amounts:
    """Return what so many requests ask for, whenever they come and of whatever type they are."""
    cv = world.application.request_cv if world.mechanisms.request_noise else 0.0
    size = gamma(stream(world.seed, "request sizes"), 1.0, cv, requests)
    return Amounts(size, gamma(stream(world.seed, "other tiers"), 1.0, OTHER_TIERS_CV, requests))


def of(world: ServiceWorld, activities: Activities, arrival_s: Floats, kind: Ints, amounts: Amounts) -> Work:
    """Return all jobs of a horizon in which these requests come.

    Parameters
    ----------
    world : horizon, intervals and mechanisms
    activities : of J types, collections and ticks
    arrival_s : (R,) array, non-decreasing, inside the horizon, seconds
    kind : (R,) array, types 0..J − 1
    amounts : of the R requests
    """
    parts = [(arrival_s, kind, amounts.size)]
    if world.mechanisms.collection:
        allocation_bytes = (activities.instructions * activities.allocation_bytes)[kind] * amounts.size
        collect_s = arrival_s[collections(allocation_bytes, activities.heap_bytes)]
        parts.append(_background(collect_s, activities.types))
    if world.mechanisms.ticks:
        parts.append(_background(np.arange(TICK_S / 2, world.horizon_s, TICK_S), activities.types + 1))
    times, activity, sizes = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(times, kind="stable")
    request = np.flatnonzero(order < kind.size)
    last = round(world.horizon_s / world.interval_s) - 1
    interval = np.minimum(times[order] // world.interval_s, last).astype(np.int64)
    return Work(times[order], interval, activity[order], sizes[order], request, amounts.delay)


def _background(arrival_s: Floats, activity: int) -> tuple[Floats, Ints, Floats]:
    return arrival_s, np.full(arrival_s.size, activity), np.ones(arrival_s.size)


def collections(allocation_bytes: Floats, heap_bytes: float) -> Ints:
    """Return with which requests a collection comes: each time that allocation since the last has filled the heap.

    Parameters
    ----------
    allocation_bytes : (R,) what each request allocates, in order of arrival
    heap_bytes : above 0

    Returns
    -------
    indices of requests, one for each collection, non-decreasing
    """
    filled = (np.cumsum(allocation_bytes) // heap_bytes).astype(np.int64)
    return np.repeat(np.arange(filled.size), np.diff(filled, prepend=0))


def counts(work: Work, intervals: int, types: int) -> Ints:
    """Return how many requests of each type arrived in each interval.

    Returns
    -------
    (n, J) array
    """
    cell = work.interval[work.request] * types + work.activity[work.request]
    return np.bincount(cell, minlength=intervals * types).reshape(intervals, types)
