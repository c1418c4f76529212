"""The greatest arrival rate that keeps a bound on mean response time, by simulation that a closed form guides."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.randomness import stream
from models.services.world import ServiceWorld
from sim.services import serving, work
from sim.services.capacity import HostedService, ceiling, response

REQUESTS = 20_000
"""Requests of one simulation, the same ones at every rate and on every platform."""
GRID, REFINEMENTS = 40, 2
"""Rates at which the closed form is known, and how often the last step before saturation is cut into as many."""
PASSES, CLOSE = 10, 4e-3
"""How often a rate is simulated at most, and the relative step from one to the next at which the last is taken."""


class ServiceTraffic(NamedTuple):
    """R requests of a simulation, the same ones at every rate and on every platform."""

    mix: Floats
    """(J,) shares of the types."""
    arrival: Floats
    """When each comes if one comes a second."""
    kind: Ints
    amounts: work.Amounts


def traffic(world: ServiceWorld, mix: Floats, requests: int = REQUESTS) -> ServiceTraffic:
    """Draw the requests of a simulation.

    Parameters
    ----------
    world : spread of requests of one type, mechanisms and seed
    mix : (J,) shares of the types
    requests : how many, at least 1
    """
    arrival = np.cumsum(stream(world.seed, "throughput gaps").standard_exponential(requests))
    kind = stream(world.seed, "throughput types").choice(mix.size, requests, p=mix)
    return ServiceTraffic(mix, arrival, kind, work.amounts(world, requests))


def greatest_rate(world: ServiceWorld, site: HostedService, came: ServiceTraffic, bound_s: float) -> float:
    """Return the greatest arrival rate of a mix that keeps its mean response time within a bound; 0 if there is none.

    The closed form of a steady state leaves out that collections come with requests and that busy intervals make
    demands grow. What the simulated response is to the closed form's varies slowly with the rate, so a rate follows
    from the bound over that ratio.

    Parameters
    ----------
    world : intervals and mechanisms
    bound_s : above 0
    """
    rates, curve_s = _curve(site, came.mix)
    if not rates.size or curve_s[0] > bound_s:
        return 0.0
    rate, low, high = float(np.interp(bound_s, curve_s, rates)), 0.0, float(rates[-1])
    for _ in range(PASSES):
        response_s = simulated(world, site, came, rate)
        low, high = (rate, high) if response_s <= bound_s else (low, rate)
        ratio = response_s / np.interp(rate, rates, curve_s)
        before, rate = rate, float(np.interp(bound_s / ratio, curve_s, rates, left=0.0))
        # Near saturation a backlog makes the ratio huge, and it says nothing of lower rates: halve instead.
        rate = rate if low < rate < high else (low + high) / 2
        if abs(rate - before) <= CLOSE * before:
            break
    return rate


def _curve(site: HostedService, mix: Floats) -> tuple[Floats, Floats]:
    """Return rates up to saturation, finer there, and the response times of the closed form, increasing."""
    rates, step = np.empty(0), ceiling(site, mix)
    curve_s = rates
    for _ in range(REFINEMENTS):
        step /= GRID
        more = (rates[-1] if rates.size else 0.0) + step * np.arange(1, GRID + 1)
        response_s = response(site, np.outer(more, mix))
        finite = int(np.argmax(np.append(response_s, np.inf) == np.inf))
        rates, curve_s = np.append(rates, more[:finite]), np.append(curve_s, response_s[:finite])
    return rates, np.maximum.accumulate(curve_s)


def simulated(world: ServiceWorld, site: HostedService, came: ServiceTraffic, rate_per_s: float) -> float:
    """Return the mean response time of requests that come at a constant rate, in a machine that is idle at first.

    Parameters
    ----------
    world : intervals and mechanisms
    rate_per_s : above 0
    """
    arrival_s = came.arrival / rate_per_s
    # Whole intervals, so that the last one is as busy as the others: demands follow from what comes in each.
    edge_s = np.linspace(0.0, arrival_s[-1], max(1, round(arrival_s[-1] / world.interval_s)) + 1)
    shortened = replace(world, horizon_s=float(edge_s[-1]), interval_s=float(edge_s[1]))
    jobs = work.of(shortened, site.activities, arrival_s, came.kind, came.amounts)
    return float(serving.responses(site, jobs, edge_s).mean())
