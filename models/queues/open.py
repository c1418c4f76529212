"""Open queues, compiled: k servers of speed 1 and arrivals that do not wait for answers, as arrays drawn beforehand.

All share one convention: at equal times departures come before arrivals before expiries of a quantum, and simultaneous
arrivals are served in the order of their index. Everybody who arrived is served to the end.
"""

import numpy as np
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues import kernels, slices
from models.queues.kernels import Jobs
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


def _jobs(arrival_s: Floats, demand_s: Floats, classes: Ints | None) -> Jobs:
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
    return Jobs(arrival_s, demand_s, ranks, np.empty(n), np.empty(n))


def times(
    policy: PolicyName, arrival_s: Floats, demand_s: Floats, servers: int, priority: Ints | None = None, *,
    quantum_s: float = 0.1,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Return when a server first took each request, and when each left, under one of the five open policies.

    Parameters
    ----------
    policy : fcfs, ps, priority, srpt or rr; what each does stands at the function of that name
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


def fcfs(arrival_s: Floats, demand_s: Floats, servers: int) -> Floats:
    """Return when each request leaves if they are served in order of arrival.

    A request starts when it has arrived and the server that frees first is free (Kiefer and Wolfowitz 1955): a heap of
    the k times at which the servers come free. The departure is start + demand to the last bit. O(n log k) time.

    Parameters
    ----------
    arrival_s : (n,) array, non-decreasing, seconds
    demand_s : (n,) array, non-negative, seconds of a server
    servers : k >= 1

    Returns
    -------
    (n,) array, seconds
    """
    return times("fcfs", arrival_s, demand_s, servers)[1]


def ps(arrival_s: Floats, demand_s: Floats, servers: int) -> Floats:
    """Return when each request leaves if all present share the servers, none getting more than one (Kleinrock 1967).

    With N present each is served at rate min(1, k / N). A request leaves when the service that anybody present has got
    since it arrived makes up its demand, so a heap of those levels is all that is needed. O(n log N) time.

    Parameters
    ----------
    arrival_s : (n,) array, non-decreasing, seconds
    demand_s : (n,) array, non-negative, seconds of a server
    servers : k >= 1

    Returns
    -------
    (n,) array, seconds
    """
    return times("ps", arrival_s, demand_s, servers)[1]


def priority(arrival_s: Floats, demand_s: Floats, servers: int, priority: Ints) -> Floats:
    """Return when each request leaves under static priorities, preemptive resume (Cobham 1954; White, Christie 1958).

    The k requests that are first in the order of (class, index) are served. An urgent arrival takes the server of the
    last of them, who goes back to the front of its class by arrival. O(n (k + log N)) time.

    Parameters
    ----------
    arrival_s : (n,) array, non-decreasing, seconds
    demand_s : (n,) array, non-negative, seconds of a server
    servers : k >= 1
    priority : (n,) array of whole numbers, 0 is served first

    Returns
    -------
    (n,) array, seconds
    """
    return times("priority", arrival_s, demand_s, servers, priority)[1]


def srpt(arrival_s: Floats, demand_s: Floats, servers: int) -> Floats:
    """Return when each request leaves if those with the shortest remaining demand are served (Schrage 1968).

    Of equal ones the earlier index goes first; preemption loses no work. O(n (k + log N)) time.

    Parameters
    ----------
    arrival_s : (n,) array, non-decreasing, seconds
    demand_s : (n,) array, non-negative, seconds of a server
    servers : k >= 1

    Returns
    -------
    (n,) array, seconds

    Examples
    --------
    >>> srpt(np.array([0.0, 1.0, 1.0]), np.array([3.0, 1.0, 1.0]), servers=1)
    array([5., 2., 3.])
    """
    return times("srpt", arrival_s, demand_s, servers)[1]


def rr(arrival_s: Floats, demand_s: Floats, servers: int, quantum_s: float) -> Floats:
    """Return when each request leaves if servers give the one queue a quantum each in turn (Kleinrock 1964).

    Arrivals join the tail. Who has not finished when its quantum expires goes to the tail, behind who arrived at that
    instant; if nobody waits it goes on with a fresh quantum. Turns of the queue between two arrivals or departures are
    taken at once: O(n (k + N)) time, however short the quantum. Details that decide ties: `models.queues.slices`.

    Parameters
    ----------
    arrival_s : (n,) array, non-decreasing, seconds
    demand_s : (n,) array, non-negative, seconds of a server
    servers : k >= 1
    quantum_s : time slice, above 0, seconds

    Returns
    -------
    (n,) array, seconds
    """
    return times("rr", arrival_s, demand_s, servers, quantum_s=quantum_s)[1]
