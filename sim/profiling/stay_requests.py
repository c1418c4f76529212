"""Requests of one stay of an instance: drawn from its load, and served at the pace of its machine, epoch by epoch."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints
from models.fleet.served import Served
from models.queues.serve import serve
from models.randomness import stream
from sim.queues.distributions import gamma
from sim.queues.observe import present, utilisation

_DAY_H = 24.0


@dataclass(frozen=True, slots=True, eq=False)
class StayLog:
    """Requests of one stay of an instance: (n,) arrays in order of arrival, and what its servers did.

    Examples
    --------
    >>> asked = Stay(np.array([0.0, 300.0, 600.0]), np.array([1e12, 1e12]), np.array([5e-10, 5e-10]), 1e9, 2)
    >>> log = serve_stay(asked, Served("shop"), 7, 0)
    >>> log.kind.size == log.arrival_s.size, log.busy_s.shape
    (True, (2,))
    """

    kind: Ints
    """Index of the type."""
    arrival_s: Floats
    departure_s: Floats
    """NaN: not before the stay ended."""
    busy_s: Floats
    """(E,) server-seconds of each epoch."""


@dataclass(frozen=True, slots=True, eq=False)
class Stay:
    """What the physics says of one stay over E epochs.

    Examples
    --------
    >>> Stay(np.array([0.0, 300.0]), np.array([6e11]), np.array([5e-10]), 1e9, 2).edges_s
    array([  0., 300.])
    """

    edges_s: Floats
    """(E + 1,) starts of the epochs and the end of the last."""
    instructions: Floats
    """(E,) instructions asked for."""
    pace_s: Floats
    """(E,) CPU seconds of an instruction."""
    instructions_per_request: float
    servers: int


def serve_stay(stay: Stay, asked: Served, seed: int, number: int) -> StayLog:
    """Return the requests of one stay, drawn and served at the pace of its machine.

    Parameters
    ----------
    stay : what the physics says of it
    asked : types and scheduling
    seed : all random draws follow from it, and from the stay's number
    number : of the stay

    Examples
    --------
    >>> one = Stay(np.array([0.0, 300.0]), np.array([6e11]), np.array([5e-10]), 1e9, 2)
    >>> log = serve_stay(one, Served("shop", request_cv=0.0), 7, 0)
    >>> bool(np.nanmin(log.departure_s - log.arrival_s) > 0.5 - 1e-9), bool(250.0 < log.busy_s[0] < 350.0)
    (True, True)
    """
    rng = stream(seed, f"requests of stay {number} of {asked.job}")
    come = np.concatenate(([0.0], np.cumsum(stay.instructions / stay.instructions_per_request)))
    count = int(rng.poisson(come[-1]))
    arrival_s = np.interp(np.sort(rng.random(count)) * come[-1], come, stay.edges_s)
    kind, size = _asked(asked, arrival_s, rng)
    clock = np.concatenate(([0.0], np.cumsum(np.diff(stay.edges_s) / stay.pace_s)))
    arrived = np.interp(arrival_s, stay.edges_s, clock)
    left = serve(asked.policy, arrived, size * stay.instructions_per_request, stay.servers).departure_s
    departure_s = np.maximum(np.interp(left, clock, stay.edges_s), arrival_s)
    departure_s[left > clock[-1]] = np.nan
    return StayLog(kind, arrival_s, departure_s, _busy_s(stay, arrival_s, departure_s))


def _asked(asked: Served, arrival_s: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return (n,) types of requests, and their sizes, of mean 1 over the types in their mean mix."""
    hour = arrival_s / 3600.0 % _DAY_H
    weight = np.array([[kind.weight, kind.swing, kind.peak_hour] for kind in asked.types])
    wave = 1.0 + weight[:, 1] * np.cos((hour[:, None] - weight[:, 2]) * (2 * np.pi / _DAY_H))
    upto = np.cumsum(weight[:, 0] * wave, axis=1)
    kind = (rng.random(arrival_s.size)[:, None] * upto[:, -1:] >= upto).sum(axis=1)
    relative = np.array([kind.size for kind in asked.types])
    mean = float(weight[:, 0] @ relative / weight[:, 0].sum())
    return kind, relative[kind] / mean * gamma(rng, 1.0, asked.request_cv, arrival_s.size)


def _busy_s(stay: Stay, arrival_s: Floats, departure_s: Floats) -> Floats:
    """Return (E,) server-seconds of each epoch, from the stamps."""
    epochs, start_s = len(stay.pace_s), float(stay.edges_s[0])
    epoch_s = (float(stay.edges_s[-1]) - start_s) / epochs
    left = departure_s[np.isfinite(departure_s)]
    working = present(arrival_s - start_s, left - start_s, stay.servers)
    share = utilisation(working, stay.servers, epoch_s, epochs * epoch_s)["utilisation"]
    return np.asarray(share[:epochs] * (stay.servers * epoch_s))
