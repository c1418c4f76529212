"""The network of `models.queues.network` said once more, to be read: all stations at once, event by event.

What happens at one moment happens in the order of `sim.queues.readable`, and arrivals at one station before those at
the next in the list.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import simpy
from numpy.typing import ArrayLike

from models.arrays import Floats
from models.queues.network import NetworkQueue, NetworkStamps, last_places
from sim.queues.readable import ARRIVAL, SHARES, Job, Moment, ReadableStation, Share


def pooled(threads: int) -> Share:
    """Return processor sharing among the first to come, as many as there are threads."""

    def share(station: ReadableStation) -> dict[Job, float]:
        holders = station.jobs[:threads]
        return dict.fromkeys(holders, station.speed(0) * min(1.0, len(station.speeds) / max(len(holders), 1)))

    return share


def serve_network(
    stations: Sequence[NetworkQueue],
    arrival_s: ArrayLike,
    demand_s: ArrayLike,
    choice: ArrayLike | None = None,
    *,
    after: ArrayLike | None = None,
    think_s: ArrayLike | None = None,
) -> NetworkStamps:
    """Serve requests as `models.queues.network.serve_network` does; the same arguments, unchecked, from time 0.

    Examples
    --------
    >>> line = [NetworkQueue("fcfs", 1), NetworkQueue("fcfs", 1, (0,))]
    >>> serve_network(line, [0.0, 0.0], [[1.0, 1.0], [3.0, 1.0]]).end_s
    array([4., 5.])
    """
    env, demands = simpy.Environment(), np.asarray(demand_s, float)
    s, n = demands.shape
    draws = np.zeros((s, n)) if choice is None else np.asarray(choice, float)
    queues = [
        ReadableStation(
            env, pooled(station.threads) if station.threads else SHARES[station.policy], [1.0] * station.servers,
            [1.0] * station.servers, station.quantum_s, iter(draws[place].tolist()),
        )
        for place, station in enumerate(stations)
    ]  # fmt: skip
    jobs = [[Job(demand) for demand in row] for row in demands.tolist()]
    end_s = np.empty(n)
    missing = [[station.needs or len(station.after)] * n for station in stations]
    unfinished = [len(last_places(stations))] * n
    parents = [-1] * n if after is None else np.asarray(after).tolist()
    thinks = [0.0] * n if think_s is None else np.asarray(think_s, float).tolist()

    def send(request: int, delay_s: float) -> None:
        for place, station in enumerate(stations):
            if not station.after:
                set_out(place, request, delay_s)

    def set_out(place: int, request: int, delay_s: float = 0.0) -> None:
        arrive = partial(queues[place].arrive, jobs[place][request])
        Moment(env, delay_s, ARRIVAL + place * n + request, arrive)

    def join(place: int, request: int) -> None:
        missing[place][request] -= 1
        if missing[place][request] == 0:
            set_out(place, request)

    def finish(request: int) -> None:
        unfinished[request] -= 1
        if unfinished[request] == 0:
            end_s[request] = env.now
            for follower in followers[request]:
                send(follower, thinks[follower])

    followers: list[list[int]] = [[] for _ in range(n)]
    for request, time_s in enumerate(np.asarray(arrival_s, float).tolist()):
        for place, station in enumerate(stations):
            for before in station.after:
                jobs[before][request].followers.append(partial(join, place, request))
        for place in last_places(stations):
            jobs[place][request].followers.append(partial(finish, request))
        if parents[request] < 0:
            send(request, time_s)
        else:
            followers[parents[request]].append(request)
    env.run()

    def column(name: str) -> Floats:
        return np.array([[getattr(job, name) for job in row] for row in jobs])

    return NetworkStamps(column("arrival_s"), column("start_s"), column("departure_s"), end_s)
