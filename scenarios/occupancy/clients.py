"""A run of clients over several stations beside theory: bounds, and exact means where the product form holds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from analysis.occupancy.steady import BATCHES, Steady, batch_means
from models.arrays import Floats
from models.queues.mean_values import MOST_CLIENTS, Asymptotes, asymptotes, mean_values
from models.queues.network import alone_s, last_places
from models.queues.policies import POLICIES
from models.queues.world import Clients, NetworkStation, QueueWorld
from scenarios.views.numbers import duration, number, plural, share
from scenarios.views.section import Block, Says, table
from sim.queues.distributions import mean
from sim.queues.network import queues_of
from sim.queues.observe import present, utilisation

PARTS = 10
"""The horizon is cut into so many parts, and the first is left out, because all clients begin by thinking."""
_BY_SIZE = {"size", "remaining"}


_FEW_CYCLES = 15
"""Times that a client thinks and waits, from which on batch means are long enough: 57 of 60 intervals held the exact
mean of 50 clients, where with 6 it was 44 of 60."""


@dataclass(frozen=True, slots=True)
class StationMeans:
    """What a station did in the long run, or the whole: by the run and by theory, NaN where there is none."""

    station: str
    per_s: float
    utilisation: float
    response_s: float
    theory_per_s: float = math.nan
    theory_utilisation: float = math.nan
    theory_response_s: float = math.nan


@dataclass(frozen=True, slots=True)
class ClientsAnswer:
    """A closed network between its warm-up and the horizon, beside theory."""

    count: int
    think_s: float
    """Mean."""
    from_s: float
    """End of the warm-up."""
    stations: tuple[StationMeans, ...]
    whole: StationMeans
    per_s_error: float
    """Half-width of a 95% interval of the throughput by batch means, as of the response; NaN if a batch is empty."""
    response_error_s: float
    bounds: Asymptotes
    without_theory: str
    """Why there are no exact means; empty if there are."""

    def blocks(self, bottleneck: str) -> Iterator[Block]:
        """Yield the simulated means beside exact ones, and the bounds."""
        rows = []
        for row in (*self.stations, self.whole):
            cells = [f"{row.per_s:.4g}", f"{row.theory_per_s:.4g}"]
            cells += [share(value, 1) for value in (row.utilisation, row.theory_utilisation)]
            cells += [_time(row.response_s), _time(row.theory_response_s)]
            rows.append((row.station, *(cells[::2] if self.without_theory else cells)))
        heads = ("station", "a second", "by MVA", "busy", "by MVA", "response", "by MVA")
        clients = f"{plural(self.count, 'client')}, each thinking {duration(self.think_s)} in the mean"
        caption = f"{clients}, from {self.from_s:g} s on"
        yield table(heads[:2] + heads[3:6:2] if self.without_theory else heads, rows, caption)
        if math.isfinite(self.per_s_error):
            text = f"{self.whole.per_s:.4g} ± {self.per_s_error:.2g} answers a second"
            yield Says(f"at 95%: {text}, response {self.whole.response_s:.4g} ± {self.response_error_s:.2g} s")
        bounds = self.bounds
        text = f"at most {bounds.most_per_s:.4g} answers a second, mean response at least"
        yield Says(f"asymptotic bounds: {text} {_time(bounds.least_response_s)}")
        if not math.isfinite(bounds.knee):
            yield Says("requests need no service, so no client waits, however many there are")
            return
        yield Says(f"with more than N* = {bounds.knee:.4g} clients some must wait, first at {bottleneck}")

    def notes(self) -> Iterator[str]:
        """Yield what must be known to read the numbers."""
        cycles = (PARTS - 1) * self.from_s / (self.think_s + self.whole.response_s)
        if cycles < _FEW_CYCLES:
            yield (
                f"what is counted lasts {cycles:.2g} times as long as a client thinks and waits; intervals hold the "
                f"long run's mean in 95% of runs from {_FEW_CYCLES} times on"
            )
        if self.without_theory:
            yield f"no exact means by MVA beside these: {self.without_theory}"
        else:
            yield "by MVA: exact means of the scenario in the long run (Reiser and Lavenberg 1980)"


def without_product_form(world: QueueWorld, clients: Clients) -> str:
    """Return why mean value analysis is not exact for the stations of a world; empty if it is.

    Examples
    --------
    >>> from models.queues.world import Distribution
    >>> disk = NetworkStation("disk", Distribution("constant", mean=1.0))
    >>> without_product_form(QueueWorld(stations=(disk,)), Clients(2))
    'disk is fcfs with demands that are constant and not exponential'
    >>> without_product_form(QueueWorld(stations=(disk,)), Clients(1))
    ''
    """
    queues = queues_of(world.stations)
    if [queue.after for queue in queues] != [(), *((place,) for place in range(len(queues) - 1))]:
        return "requests are at several stations at a time, or wait for the first few"
    for station in world.stations:
        if not (station.servers >= clients.count or _exact(station, clients.count)):
            law = station.demand_s
            kind = law.kind if law.cv is None else f"{law.kind} of cv {law.cv:g}"
            if POLICIES[station.policy].order in _BY_SIZE:
                return f"{station.name} is {station.policy}, which looks at demands"
            pooled = " with fewer threads than clients" if station.threads is not None else ""
            return f"{station.name} is {station.policy}{pooled} with demands that are {kind} and not exponential"
    if clients.count > MOST_CLIENTS:
        return f"more than {MOST_CLIENTS:,} clients take too long"
    return ""


def _exact(station: NetworkStation, clients: int) -> bool:
    """Return whether a station at which requests wait keeps the product form."""
    law = station.demand_s
    exponential = law.kind == "exponential" or (law.kind in {"gamma", "hyperexponential"} and law.cv == 1.0)
    if exponential or not mean(law) > 0:
        return POLICIES[station.policy].order not in _BY_SIZE
    if station.policy == "ps":
        return station.threads is None or station.threads >= clients
    return station.policy == "lcfs_pr" and station.servers == 1


def beside_theory(
    world: QueueWorld,
    clients: Clients,
    whole_s: tuple[Floats, Floats],
    stations_s: tuple[Floats, Floats],
    demand_s: Floats | None,
) -> ClientsAnswer:
    """Return what clients saw between the warm-up and the horizon, beside theory.

    Parameters
    ----------
    whole_s : (n,) arrays, when requests were sent and answered
    stations_s : (s, n) arrays, when they came to stations and left them
    demand_s : (s, n) what they needed there; None if nobody knows
    """
    queues, on_way_s = queues_of(world.stations), world.observation.rtt_s + world.observation.overhead_s
    need_s = np.array([mean(station.demand_s) for station in world.stations])
    servers, think_s = np.array([station.servers for station in world.stations]), mean(clients.think_s)
    why = without_product_form(world, clients)
    simple = all(len(queue.after) <= 1 for queue in queues) and len(last_places(queues)) == 1
    alone = need_s[:, None] if simple or demand_s is None else demand_s
    bounds = asymptotes(need_s / servers, float(alone_s(queues, alone).mean()) + on_way_s, clients.count, think_s)
    from_s = world.horizon_s / PARTS
    rows = [
        _means(row, (came_s, left_s), _utilisation(row, came_s, left_s, world.horizon_s), from_s, world.horizon_s)
        for row, came_s, left_s in zip(world.stations, *stations_s, strict=True)
    ]
    whole = _means(None, whole_s, math.nan, from_s, world.horizon_s)
    if not why:
        theory = mean_values(need_s, servers, clients.count, think_s + on_way_s)
        rows = [
            replace(row, theory_per_s=theory.per_s, theory_utilisation=float(busy), theory_response_s=float(time_s))
            for row, busy, time_s in zip(rows, theory.utilisation, theory.response_s, strict=True)
        ]
        whole = replace(whole, theory_per_s=theory.per_s, theory_response_s=theory.whole_s + on_way_s)
    per_s, response_s = _steady(whole_s, from_s, world.horizon_s)
    return ClientsAnswer(
        count=clients.count,
        think_s=think_s,
        from_s=from_s,
        stations=tuple(rows),
        whole=whole,
        per_s_error=math.nan if per_s is None else per_s.half_width,
        response_error_s=math.nan if response_s is None else response_s.half_width,
        bounds=bounds,
        without_theory=why,
    )


def _means(
    station: NetworkStation | None, stamps_s: tuple[Floats, Floats], busy: float, from_s: float, to_s: float
) -> StationMeans:
    """Return what requests that left within a time saw of a station, or of all of them."""
    came_s, left_s = stamps_s
    within = (from_s <= left_s) & (left_s < to_s)
    response_s = float((left_s - came_s)[within].mean()) if within.any() else math.nan
    return StationMeans(
        "the whole" if station is None else station.name, float(within.sum() / (to_s - from_s)), busy, response_s
    )


def _utilisation(station: NetworkStation, came_s: Floats, left_s: Floats, horizon_s: float) -> float:
    """Return the share of servers that worked from the end of the warm-up to the horizon."""
    busy = present(came_s, left_s, station.servers)
    return float(utilisation(busy, station.servers, horizon_s / PARTS, horizon_s)["utilisation"][1:PARTS].mean())


def _steady(whole_s: tuple[Floats, Floats], from_s: float, to_s: float) -> tuple[Steady, Steady] | tuple[None, None]:
    """Return throughput and response with their intervals; none of either if too few requests were answered."""
    sent_s, answered_s = whole_s
    order = np.argsort(answered_s, kind="stable")
    order = order[(from_s <= answered_s[order]) & (answered_s[order] < to_s)]
    if order.size < BATCHES:
        return None, None
    counts, _ = np.histogram(answered_s[order], BATCHES, (from_s, to_s))
    return batch_means(counts * (BATCHES / (to_s - from_s))), batch_means((answered_s - sent_s)[order])


def _time(time_s: float) -> str:
    return f"{time_s:.4g} s" if math.isfinite(time_s) else number(time_s)
