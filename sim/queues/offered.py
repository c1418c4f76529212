"""What a server is offered: requests as they reach it, with the work that is in no request log, in one order."""

from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Floats, Ints
from models.queues.world import Arrivals, Observation, Station
from models.randomness import stream
from sim.queues.arrivals import arrival_times
from sim.queues.observe import Delays
from sim.queues.workloads import NOBODY, Workload


@dataclass(frozen=True, slots=True)
class Background:
    """Work of the system itself, which is in no request log: (m,) arrays, seconds."""

    arrival_s: Floats
    demand_s: Floats


@dataclass(frozen=True, slots=True)
class Offered:
    """Requests and background work by the server's clock; (n + m,) arrays, those that follow others last.

    Those that follow no other are in order of arrival, as queues expect them.
    """

    number: Ints
    """The request of the workload; n, n + 1, … is background work."""
    arrival_s: Floats
    """When it reaches the queue; NaN if it follows another."""
    demand_s: Floats
    """Service demand on a server of speed 1."""
    after: Ints
    """Position of the request that it follows; −1: none."""
    think_s: Floats
    """From that one's departure to this one's arrival: think time and what the network takes."""
    priority: Ints
    """Class of static priority; background work has class 0."""


def capacity(station: Station) -> float:
    """Return the work that all servers of a station do per second together.

    Examples
    --------
    >>> capacity(Station(servers=2)), capacity(Station(servers=2, speeds=(1.0, 0.5)))
    (2.0, 1.5)
    """
    if station.rates:
        return station.rates[-1]
    return float(sum(station.speeds) if station.speeds else station.servers)


def of_servers(station: Station, servers: int) -> Station:
    """Return the station with another number of servers: the first ones, where they differ.

    Examples
    --------
    >>> of_servers(Station(servers=2, speeds=(1.0, 0.5)), 1).speeds
    (1.0,)
    """
    return replace(station, servers=servers, speeds=station.speeds[:servers], rates=station.rates[:servers])


def background(observation: Observation, capacity: float, seed: int, until_s: float) -> Background:
    """Return the work that is in no request log: a Poisson stream of small exponential jobs.

    Parameters
    ----------
    observation : its share of the capacity, and the mean demand of one piece
    capacity : work per second of all servers
    seed : all random draws follow from it
    until_s : seconds; a later time only adds jobs
    """
    rate_per_s = observation.background_share * capacity / observation.background_s
    if rate_per_s == 0:
        return Background(np.empty(0), np.empty(0))
    arrival_s = arrival_times(Arrivals(rate_per_s), until_s, seed, "background arrivals")
    demand = stream(seed, "background demands").standard_exponential(len(arrival_s))
    return Background(arrival_s, observation.background_s * demand)


def offered(workload: Workload, delays: Delays, background: Background) -> Offered:
    """Return requests and background work as the server meets them.

    A client thinks from when it has the answer until it sends the next request, so both ways through the network
    separate a departure from the arrival that follows it.

    Parameters
    ----------
    workload : n requests by the clients' clock
    delays : (n,) arrays, of the same requests
    background : m jobs
    """
    n, m = len(workload.arrival_s), len(background.arrival_s)
    arrival_s = np.concatenate((workload.arrival_s + delays.before_s, background.arrival_s))
    order = np.argsort(arrival_s, kind="stable")  # NaN last, in the order that it had
    place = np.empty(n + m, np.int64)
    place[order] = np.arange(n + m)
    follows = workload.after != NOBODY
    parent = np.where(follows, workload.after, 0)
    think_s = np.zeros(n + m)
    if n:
        think_s[:n] = np.where(follows, delays.after_s[parent] + workload.think_s + delays.before_s, 0.0)
    after = np.full(n + m, NOBODY)
    after[:n][follows] = place[parent[follows]]
    priority = np.concatenate((workload.priority, np.zeros(m, np.int64)))
    demand_s = np.concatenate((workload.demand_s, background.demand_s))
    return Offered(order, arrival_s[order], demand_s[order], after[order], think_s[order], priority[order])
