"""What requests ask for: their types, their amounts, and what an amount takes on the machine of that time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.world import Contention, Load, QueueWorld
from models.randomness import stream
from sim.queues import distributions

Steps = tuple[Floats, Floats]
"""A step function of time: from each time (seconds, increasing) on, the value beside it; the first also before."""


@dataclass(frozen=True, slots=True)
class RequestDemands:
    """What requests ask for; (n,) arrays."""

    kind: Ints
    """Index of the type."""
    amount: Floats
    """Seconds on a server of speed 1, or instructions where demands come from a job."""
    blocking_s: Floats
    """How long each waits off the servers, halfway through."""

    def taken(self, order: Ints) -> "RequestDemands":
        """Return what the requests at these places ask for."""
        return RequestDemands(self.kind[order], self.amount[order], self.blocking_s[order])

    def paced(self, seconds_per_instruction: Floats) -> "RequestDemands":
        """Return the amounts in seconds, given the seconds per instruction of each request.

        Examples
        --------
        >>> RequestDemands(np.array([0]), np.array([4e9]), np.zeros(1)).paced(np.array([0.5e-9])).amount
        array([2.])
        """
        return replace(self, amount=self.amount * seconds_per_instruction)


def type_names(load: Load) -> tuple[str, ...]:
    """Return the names of a load's types; those of a job's requests have the job's name.

    Examples
    --------
    >>> from models.queues.world import Distribution, RequestType
    >>> type_names(Load(types=(RequestType("page", Distribution("constant", mean=0.5)),)))
    ('page',)
    """
    return (load.job.job,) if load.job is not None else tuple(kind.name for kind in load.types)


def mean_demand(load: Load) -> float:
    """Return the mean demand of a request in seconds on a server of speed 1, over the types.

    Raises
    ------
    ValueError
        If there are no types, or the parameters of a distribution do not fit.

    Examples
    --------
    >>> from models.queues.world import Distribution, RequestType
    >>> mean_demand(Load(types=(RequestType("page", Distribution("constant", mean=0.5)),)))
    0.5
    """
    if not load.types:
        raise InputError("load: has no types")
    weights = sum(kind.weight for kind in load.types)
    return sum(kind.weight * distributions.mean(kind.demand_s) for kind in load.types) / weights


def ask(world: QueueWorld, requests: int, prefix: str = "") -> RequestDemands:
    """Return what requests ask for; types neither share draws nor shift each other's.

    Parameters
    ----------
    world : its load has types or a job
    requests : n >= 0
    prefix : of the names of the random streams
    """
    load, seed = world.load, world.seed
    blocking_s = blocking(world.contention, seed, requests, prefix)
    if load.job is not None:
        rng = stream(seed, f"{prefix}instructions")
        return RequestDemands(
            np.zeros(requests, np.int64), distributions.draw(load.job.instructions, rng, requests), blocking_s
        )
    weights: Floats = np.cumsum([kind.weight for kind in load.types])
    chosen = stream(seed, f"{prefix}types").random(requests) * weights[-1]
    kind: Ints = np.minimum(np.searchsorted(weights, chosen, "right"), len(weights) - 1).astype(np.int64)
    amount = np.empty(requests)
    for i, request_type in enumerate(load.types):
        mine = np.flatnonzero(kind == i)
        amount[mine] = distributions.draw(
            request_type.demand_s, stream(seed, f"{prefix}demands {request_type.name}"), len(mine)
        )
    return RequestDemands(kind, amount, blocking_s)


def blocking(contention: Contention, seed: int, requests: int, prefix: str = "") -> Floats:
    """Return how long each request waits off the servers; 0 where nothing blocks.

    Parameters
    ----------
    contention : says how long
    seed : all random draws follow from it
    requests : n >= 0
    prefix : of the name of the random stream
    """
    if contention.blocking_s is None:
        return np.zeros(requests)
    return distributions.draw(contention.blocking_s, stream(seed, f"{prefix}blocking"), requests)


def joined(parts: Sequence[RequestDemands]) -> RequestDemands:
    """Return what several groups of requests ask for as one.

    Parameters
    ----------
    parts : one at least
    """
    return RequestDemands(
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.amount for part in parts]),
        np.concatenate([part.blocking_s for part in parts]),
    )


def pace_at(pace: Steps, time_s: Floats) -> Floats:
    """Return the seconds per instruction at each time.

    Parameters
    ----------
    pace : step function
    time_s : (n,) array, seconds

    Examples
    --------
    >>> pace_at((np.array([0.0, 300.0]), np.array([1e-9, 2e-9])), np.array([299.0, 300.0]))
    array([1.e-09, 2.e-09])
    """
    start_s, value = (np.asarray(column, np.float64) for column in pace)
    if start_s.shape != value.shape or not start_s.size:
        raise InputError(f"seconds_per_instruction: {start_s.size} times, but {value.size} values; one at least")
    if not (np.diff(start_s) > 0).all() or not (np.isfinite(value) & (value >= 0)).all():
        raise InputError("seconds_per_instruction: times must increase, values must be finite and at least 0")
    return value[np.maximum(np.searchsorted(start_s, time_s, "right") - 1, 0)]
