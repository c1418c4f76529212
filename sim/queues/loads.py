"""Whether the parts of a load go together: one source, one demand, distributions that have what they need."""

import pandas as pd

from models.errors import InputError
from models.queues.world import Distribution, Load, QueueWorld
from sim.queues import distributions
from sim.queues.demands import Steps


def check_load(world: QueueWorld, trace: pd.DataFrame | None = None, pace: Steps | None = None) -> None:
    """Raise ValueError if a load is not complete, or has what does not go together.

    Parameters
    ----------
    world : whose load, and whose distributions
    trace : given where the load is a trace
    pace : seconds per instruction, given where demands come from a job

    Examples
    --------
    >>> check_load(QueueWorld())
    Traceback (most recent call last):
    models.errors.InputError: load: needs one of arrivals, clients and trace, got none
    """
    load = world.load
    sources = {"arrivals": load.arrivals, "clients": load.clients, "trace": load.trace}
    if len(given := [name for name, source in sources.items() if source is not None]) != 1:
        raise InputError(f"load: needs one of arrivals, clients and trace, got {' and '.join(given) or 'none'}")
    demands = {"types": load.types or None, "job": load.job, "trace": load.trace}
    if len(given := [name for name, demand in demands.items() if demand is not None]) != 1:
        raise InputError(f"load: needs demands from one of types, job and trace, got {' and '.join(given) or 'none'}")
    if load.sessions is not None and load.arrivals is None:
        raise InputError("load: sessions need arrivals")
    if load.job is not None and load.clients is not None:
        raise InputError("load: demands from a job need arrivals, because a client's pace would never change")
    for what, wanted, got in (("trace", load.trace, trace), ("seconds_per_instruction", load.job, pace)):
        if (wanted is None) != (got is None):
            raise InputError(f"{what}: {'is missing' if got is None else 'is given, but the load does not ask for it'}")
    for what, distribution in _distributions(world, load).items():
        distributions.check(distribution, what)


def _distributions(world: QueueWorld, load: Load) -> dict[str, Distribution]:
    laws: dict[str, Distribution] = {f"types: {kind.name}: demand_s": kind.demand_s for kind in load.types}
    if len(laws) != len(load.types):
        raise InputError("types: two have the same name")
    if load.job is not None:
        laws["job: instructions"] = load.job.instructions
    for name, who in (("sessions", load.sessions), ("clients", load.clients)):
        if who is not None:
            laws[f"{name}: think_s"] = who.think_s
    if world.station.patience_s is not None:
        laws["station: patience_s"] = world.station.patience_s
    if world.station.timeout_s is not None:
        laws["station: timeout_s"] = world.station.timeout_s
    if world.station.retries is not None:
        laws["station: retries: delay_s"] = world.station.retries.delay_s
    if world.contention.blocking_s is not None:
        laws["contention: blocking_s"] = world.contention.blocking_s
    return laws
