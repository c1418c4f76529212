"""Requests over time: a volume that comes in waves and a mix of types that never settles, the same for all platforms.

The paper replays a nonstationary trace in open arrivals (Stewart et al. 2008, section 3.2 and figure 2).
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.errors import InputError
from models.randomness import stream
from models.services.world import ServiceWorld


@dataclass(frozen=True, slots=True, eq=False)
class Mixes:
    """How many requests of each of J types are expected in each of n intervals."""

    start_s: Floats
    """(n,) start of each interval."""
    expected: Floats
    """(n, J) expected requests of each type in each."""


def starts(world: ServiceWorld) -> Floats:
    """Return when the intervals of a world's log start."""
    n = round(world.horizon_s / world.interval_s)
    if n < 1 or not np.isclose(n * world.interval_s, world.horizon_s, rtol=1e-9, atol=0.0):
        raise InputError(f"horizon_s is {world.horizon_s:g}, must be a multiple of interval_s, {world.interval_s:g}")
    return world.interval_s * np.arange(n, dtype=np.float64)


def draw(world: ServiceWorld, popularity: Floats) -> Mixes:
    """Return the mixes of a world's intervals.

    The volume is a sine wave around its mean. Each type's log popularity is its long-run one, plus an
    Ornstein-Uhlenbeck process in equilibrium (Uhlenbeck and Ornstein 1930), plus a straight trend. All is then scaled
    so that the mean over the horizon is the volume asked for.

    Parameters
    ----------
    world : horizon, interval, load and seed
    popularity : (J,) long-run share of each type
    """
    start_s, load, rng = starts(world), world.load, stream(world.seed, "mixes")
    phase = rng.random()
    volume = 1 + load.swing * np.sin(2 * np.pi * (start_s / load.period_s + phase))
    change = load.trend_log_sd * rng.standard_normal(popularity.size)
    trend = np.outer((start_s + world.interval_s / 2) / world.horizon_s - 0.5, change)
    wander = _wander(rng, (start_s.size, popularity.size), np.exp(-world.interval_s / load.mix_time_s))
    weight = popularity * np.exp(trend + load.mix_log_sd * wander)
    mix = weight / weight.sum(axis=1, keepdims=True)
    mean = load.requests_per_s * load.volume * world.interval_s
    return Mixes(start_s, mean * (volume / volume.mean())[:, None] * mix)


def _wander(rng: np.random.Generator, shape: tuple[int, int], correlation: float) -> Floats:
    """Return stationary Gaussian series of variance 1, one a column, with that correlation from row to row."""
    series = rng.standard_normal(shape)
    series[1:] *= np.sqrt(1 - correlation**2)
    for i in range(1, shape[0]):
        series[i] += correlation * series[i - 1]
    return series


def arrive(world: ServiceWorld, mixes: Mixes) -> tuple[Floats, Ints]:
    """Return when requests arrive and of which type each is: Poisson, at a constant rate within each interval.

    Returns
    -------
    two (N,) arrays
        Seconds, non-decreasing, and types 0..J − 1.
    """
    counts = stream(world.seed, "request counts").poisson(mixes.expected)
    cell = np.repeat(np.arange(counts.size), counts.ravel())
    interval, kind = np.divmod(cell, counts.shape[1])
    within = stream(world.seed, "request times").random(cell.size)
    arrival_s = mixes.start_s[interval] + world.interval_s * within
    order = np.argsort(arrival_s)
    return arrival_s[order], kind[order]
