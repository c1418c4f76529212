"""Closed networks in theory: so many clients that think, pass stations one after another, and think again.

Means are exact where the network has a product form (Baskett, Chandy, Muntz and Palacios 1975, Journal of the ACM 22):
where a station is first come first served, or under any policy that does not look at demands, and demands are
exponential; where all present share the servers evenly, or the last to come preempts on one server, or nobody ever
waits, whatever the distribution. Of the think time its mean alone matters.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, Ints
from models.errors import InputError

MOST_CLIENTS = 20_000
"""Clients of which exact means are worked out within seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkMeans:
    """A closed network in steady state: means at each of s stations, (s,) arrays, and of the whole."""

    per_s: float
    """Requests answered a second."""
    response_s: Floats
    """Time at a station, waiting and in service."""
    present: Floats
    """Requests at a station."""
    utilisation: Floats
    """Share of the servers that work."""

    @property
    def whole_s(self) -> float:
        """Time from a request to its answer."""
        return float(self.response_s.sum())


@dataclass(frozen=True, slots=True)
class Asymptotes:
    """Bounds on any closed network, whatever the distributions and the scheduling."""

    most_per_s: float
    """No more requests are answered a second."""
    least_response_s: float
    """No mean response is shorter."""
    knee: float
    """N*: with more clients than that some must wait, because the bottleneck would be more than full."""


def asymptotes(need_s: ArrayLike, alone_s: float, clients: int, think_s: float) -> Asymptotes:
    """Return the bounds of asymptotic analysis.

    X <= min(1 / D, N / (R + Z)) and response >= max(R, N D - Z) with D the most that a server is needed for a request,
    R the response if nobody waits; both lines meet at N* = (R + Z) / D (Denning and Buzen 1978, Computing Surveys 10;
    Lazowska, Zahorjan, Graham and Sevcik 1984, Quantitative System Performance, chapter 5).

    Parameters
    ----------
    need_s : (s,) array, seconds: mean demand at each station over its servers
    alone_s : mean response of a request that waits nowhere
    clients, think_s : how many, and how long they think in the mean

    Examples
    --------
    >>> asymptotes([0.05, 0.1], 0.15, 100, 4.85)
    Asymptotes(most_per_s=10.0, least_response_s=5.15, knee=50.0)
    """
    most_s, cycle_s = float(np.max(need_s)), alone_s + think_s
    most_per_s = min(1.0 / most_s if most_s > 0 else np.inf, clients / cycle_s if cycle_s > 0 else np.inf)
    knee = cycle_s / most_s if most_s > 0 else np.inf
    return Asymptotes(most_per_s, max(alone_s, clients * most_s - think_s), knee)


def mean_values(demand_s: ArrayLike, servers: ArrayLike, clients: int, think_s: float = 0.0) -> NetworkMeans:
    """Return exact means of a closed network of product form with one class of clients.

    Where every station has one server, or one for every client, by mean value analysis: a request that comes finds what
    it would find in the long run with one client fewer (Reiser and Lavenberg 1980, Journal of the ACM 27). Where
    stations have several servers the same means by convolution (Buzen 1973, Communications of the ACM 16), whose terms
    are all positive; the recursion with rates that depend on the load subtracts nearly equal numbers there.

    Parameters
    ----------
    demand_s : (s,) array, non-negative, seconds: mean demand of a request at each station
    servers : (s,) integers, at least 1
    clients : at least 1
    think_s : mean think time, non-negative

    Raises
    ------
    ValueError
        If a number is out of its range, or neither thinking nor service takes any time.

    Examples
    --------
    >>> mean_values([0.1, 0.2], [1, 1], 1, 0.7).per_s
    1.0
    >>> mean_values([0.1, 0.2], [1, 1], 2).present.round(6).tolist()
    [0.571429, 1.428571]
    """
    demand, server = np.asarray(demand_s, np.float64), np.asarray(servers)
    if demand.ndim != 1 or demand.shape != server.shape or not demand.size:
        raise InputError(f"demand_s has shape {demand.shape} and servers {server.shape}, must be (s,), s at least 1")
    for name, values in (("demand_s", demand), ("think_s", np.array([think_s]))):
        if not (np.isfinite(values) & (values >= 0.0)).all():
            raise InputError(f"{name} is {values.tolist()}, must be finite and not negative")
    if not (server >= 1).all() or not 1 <= clients <= MOST_CLIENTS:
        raise InputError(
            f"servers are {server.tolist()}, must be at least 1, and clients {clients}, from 1 to {MOST_CLIENTS}"
        )
    if not demand.sum() + think_s > 0.0:
        raise InputError("neither thinking nor service takes any time, so requests are without number")
    delay = server >= clients
    if ((server == 1) | delay).all():
        per_s, present = _by_recursion(demand, delay, clients, think_s)
    else:
        per_s, present = _by_convolution(demand, server, clients, think_s)
    return NetworkMeans(per_s, present / per_s, present, per_s * demand / server)


def _by_recursion(demand: Floats, delay: Bools, clients: int, think_s: float) -> tuple[float, Floats]:
    """Return throughput and numbers present, client by client."""
    present, per_s = np.zeros(demand.size), 0.0
    for n in range(1, clients + 1):
        response_s = demand * np.where(delay, 1.0, 1.0 + present)
        per_s = float(n / (think_s + response_s.sum()))
        present = per_s * response_s
    return per_s, present


def _by_convolution(demand: Floats, server: Ints, clients: int, think_s: float) -> tuple[float, Floats]:
    """Return throughput and numbers present from the weights of 0, 1, .. clients at every station.

    Weights are of demands times the throughput that the bounds allow, so that the clients are where weights are great,
    and what is too small for a number is so improbable.
    """
    scale = asymptotes(demand / server, float(demand.sum()), clients, think_s).most_per_s
    rows = [_weights(scale * think_s, clients, clients)]
    rows += [_weights(scale * need, int(k), clients) for need, k in zip(demand, server, strict=True)]
    before = [np.eye(1, clients + 1)[0]]
    for row in rows[:-1]:
        before.append(_together(before[-1], row))
    after, present = np.eye(1, clients + 1)[0], np.zeros(len(rows))
    for place in range(len(rows) - 1, -1, -1):
        others = _together(before[place], after)
        share = rows[place] * others[::-1]
        present[place] = np.arange(clients + 1) @ share / share.sum()
        after = _together(after, rows[place])
    return float(scale * after[-2] / after[-1]), present[1:]


def _weights(work: float, server: int, clients: int) -> Floats:
    """Return work^n / (min(1, k) min(2, k) .. min(n, k)) for 0, 1, .. clients, over the greatest of them."""
    with np.errstate(divide="ignore"):
        log = np.cumsum(np.log(work) - np.log(np.minimum(np.arange(1, clients + 1), server)))
    weights: Floats = np.exp(np.concatenate(([0.0], log)) - max(0.0, float(log.max())))
    return weights


def _together(first: Floats, second: Floats) -> Floats:
    """Return the weights of two groups of stations as one, over the greatest of them."""
    weights: Floats = np.convolve(first, second)[: first.size]
    weights /= weights.max()
    return weights
