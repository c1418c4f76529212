"""Open queues, compiled: k servers of speed 1 and arrivals that do not wait for answers, as arrays drawn beforehand.

All share one convention: at equal times departures come before arrivals before expiries of a quantum, and simultaneous
arrivals are served in the order of their index. Everybody who arrived is served to the end.
"""

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues import kernels, slices
from models.queues.kernels import JobBatch
from models.queues.policies import POLICIES, PolicyName

OPEN_POLICIES = tuple(name for name, policy in POLICIES.items() if policy.open_form)
"""Policies that have a compiled open form."""


def check_policy(policy: str) -> None:
    """Refuse a policy that has no compiled open form.

    Examples
    --------
    >>> check_policy("ps")
    """
    if policy not in OPEN_POLICIES:
        raise InputError(f"policy is one of {', '.join(OPEN_POLICIES)}, got {policy}")


def check_servers(servers: int, quantum_s: float) -> None:
    """Refuse a station without servers, or a quantum that is no time.

    Examples
    --------
    >>> check_servers(4, 0.1)
    """
    if servers < 1:
        raise InputError(f"servers is {servers}, at least 1 is needed")
    if not 0.0 < quantum_s < np.inf:
        raise InputError(f"quantum_s is {quantum_s}, it must be above 0 and finite")


def _times(name: str, given: NDArray[np.generic]) -> Floats:
    """Return an array of times that are numbers, ready for a kernel."""
    times = np.ascontiguousarray(given, dtype=np.float64)
    if times.ndim != 1:
        raise InputError(f"{name} has {times.ndim} dimensions, 1 is needed")
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        raise InputError(f"{name} {bad[0]} is {times[bad[0]]}, it must be finite")
    return times


def _jobs(arrival_s: Floats, demand_s: Floats, classes: Ints | None) -> JobBatch:
    """Return the checked arrays of a batch with room for what happens to it."""
    arrival_s, demand_s = _times("arrival_s", arrival_s), _times("demand_s", demand_s)
    n = arrival_s.size
    ranks = np.zeros(n, np.int64) if classes is None else np.ascontiguousarray(classes, dtype=np.int64)
    for name, given in (("demand_s", demand_s), ("priority", ranks)):
        if given.shape != (n,):
            raise InputError(f"{name} has shape {given.shape}, arrival_s has ({n},)")
    early = np.flatnonzero(arrival_s[1:] < arrival_s[:-1])
    if early.size:
        raise InputError(f"arrival {early[0] + 1} is earlier than the one before it")
    negative = np.flatnonzero(demand_s < 0)
    if negative.size:
        raise InputError(f"demand_s {negative[0]} is {demand_s[negative[0]]}, at least 0 is needed")
    return JobBatch(arrival_s, demand_s, ranks, np.empty(n), np.empty(n))


def times(
    policy: PolicyName, arrival_s: Floats, demand_s: Floats, servers: int, priority: Ints | None = None, *,
    quantum_s: float = 0.1,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Return when a server first took each request, and when each left, under one of the five open policies.

    Parameters
    ----------
    policy : fcfs, ps, priority, srpt or rr; what each does stands at the kernel of that name
    arrival_s : (n,) array, non-decreasing, seconds
    demand_s : (n,) array, non-negative, seconds of a server
    servers : k >= 1
    priority : (n,) array of whole numbers, 0 first; needed for priority, ignored otherwise
    quantum_s : time slice of rr, seconds; ignored otherwise

    Returns
    -------
    two (n,) arrays, seconds
        Start and departure.

    Raises
    ------
    ValueError
        If the policy is unknown, lengths differ, a number is not finite, arrivals go back in time, a demand is
        negative, there is no server, no quantum or no class.

    Examples
    --------
    >>> times("srpt", np.array([0.0, 1.0]), np.array([3.0, 1.0]), servers=1)
    (array([0., 1.]), array([4., 2.]))
    """
    check_policy(policy)
    check_servers(servers, quantum_s)
    if policy == "priority" and priority is None:
        raise InputError("priority needs the class of each request")
    jobs = _jobs(arrival_s, demand_s, priority if policy == "priority" else None)
    n = jobs.arrival_s.size
    if policy == "rr":
        slices.rr(jobs, slices.ring(1 << n.bit_length(), servers, quantum_s), 0, n, True)
    else:
        getattr(kernels, policy)(jobs, kernels.line(n, servers), 0, n, True)
    return jobs.start_s, jobs.departure_s
