"""Serve requests on a station of k servers: the one entry to the queues. Arguments are checked here."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Ints
from models.code.compiled import with_functions
from models.errors import InputError
from models.queues import open as plain
from models.queues import station
from models.queues.layout import Pace, RequestArrays, Servers, ServiceTimes
from models.queues.own_policies import PARAMETERS, OwnPolicy
from models.queues.policies import POLICIES, PolicyName

_KERNELS = {"cores": station.on_cores, "evenly": station.sharing, "least attained": station.foreground}
_OWN = -1
"""By which kernels know an own policy: none of those in the table."""


@dataclass(frozen=True, slots=True)
class RequestStamps:
    """When each request arrived, when a server first took it and when it left: (n,) arrays, seconds."""

    arrival_s: Floats
    start_s: Floats
    departure_s: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ChangingRates:
    """Work per second of a station whose speed depends on time and on how many servers are busy.

    Steps follow one another; the last one never ends. Within a step, the rates are those of the number of busy servers
    that was seen at the last look, after departures and before arrivals of its moment; nobody was at time 0.
    """

    rates: Floats
    """(steps, m, k) positive: by step, number seen (m − 1 and more in the last row; with m = 1 looks change nothing),
    and while 1, 2, .., k servers are busy, split evenly among them."""
    start_s: Floats
    """(steps,) when each step begins, increasing; the first holds from the beginning."""
    look_s: float = np.inf
    """From one look to the next, positive; infinite: none."""

    def __post_init__(self) -> None:
        shape = np.shape(self.rates)
        if len(shape) != 3 or 0 in shape or np.shape(self.start_s) != shape[:1]:
            raise InputError(
                f"rates have shape {shape} and start_s {np.shape(self.start_s)}, must be (s, m, k) and (s,)"
            )
        if not (np.isfinite(self.rates) & (np.asarray(self.rates) > 0.0)).all():
            raise InputError(f"rates must be positive and finite, the least is {np.min(self.rates)}")
        if not (np.diff(self.start_s) > 0.0).all() or not self.look_s > 0.0:
            raise InputError("start_s must increase and look_s be positive")

    @property
    def factor(self) -> Floats:
        """(steps, m, k) array, the speed of each busy server."""
        return np.asarray(self.rates, np.float64) / np.arange(1, np.shape(self.rates)[2] + 1)


def serve(
    policy: PolicyName | OwnPolicy,
    arrival_s: ArrayLike,
    demand_s: ArrayLike,
    servers: int,
    *,
    after: ArrayLike | None = None,
    think_s: ArrayLike | None = None,
    priority: ArrayLike | None = None,
    quantum_s: float = 0.1,
    choice: ArrayLike | None = None,
    speeds: ArrayLike | None = None,
    rates: ArrayLike | ChangingRates | None = None,
) -> RequestStamps:
    """Serve requests on k servers under a policy until all have left.

    Parameters
    ----------
    policy : one of `POLICIES`, or somebody's own
        fcfs, lcfs, sjf (shortest demand) and random run a job to its end; lcfs_pr, srpt (shortest remaining work) and
        priority (class 0 first) preempt; ps shares the servers evenly, fb among those with the least attained service;
        rr gives slices of `quantum_s` wall seconds. Under an own one the least key comes first.
    arrival_s : (n,) array, non-decreasing, seconds
        Not looked at where a request follows another (`after`): let it be NaN.
    demand_s : (n,) array, non-negative, seconds on a server of speed 1
    servers : k >= 1
    after : (n,) integers, optional
        The earlier request that each follows, -1 for none: it arrives `think_s` seconds after that one left.
    think_s : (n,) array, non-negative, seconds, optional
        Zero unless given; looked at only where `after` is not -1.
    priority : (n,) integers, for policy priority and own ones
    quantum_s : positive seconds, for policy rr
    choice : (n,) array in [0, 1), for policy random
        The c-th time that a server takes one of m > 1 waiting jobs, it takes the one at place floor(choice[c] m) in
        order of arrival.
    speeds : (k,) array, positive, optional
        Work per second of each core; free cores are taken fastest first, and preemptive policies run the i-th job on
        the i-th fastest core.
    rates : (k,) array, positive, optional
        Work per second of all busy servers together while 1, 2, .., k are busy, split evenly among them; or such rates
        that change with time.

    Returns
    -------
    RequestStamps

    Raises
    ------
    ValueError
        If the policy is unknown, an array has the wrong length or a value out of its range, arrivals go back in time,
        a request follows one that is not before it, the policy lacks what it needs, or both speeds and rates are given.
    PartError
        If an own policy raises an error, or returns what is no number.

    Examples
    --------
    >>> serve("fcfs", [0.0, 1.0, 1.0], [3.0, 3.0, 1.0], 2).departure_s
    array([3., 4., 4.])
    >>> serve("ps", [0.0, 0.0], [1.0, 2.0], 1).departure_s
    array([2., 3.])
    >>> serve("fcfs", [0.0, np.nan], [1.0, 1.0], 1, after=[-1, 0], think_s=[0.0, 5.0]).arrival_s
    array([0., 6.])
    """
    if not isinstance(policy, OwnPolicy) and policy not in POLICIES:
        raise InputError(f"policy is {policy!r}, must be one of {', '.join(POLICIES)}")
    if servers < 1:
        raise InputError(f"servers is {servers}, must be at least 1")
    demand = finite("demand_s", demand_s, None, 0.0)
    n = demand.size
    parent = np.full(n, station.NOBODY) if after is None else parents(after, n)
    load = RequestArrays(
        set_out(arrival_s, parent),
        demand,
        np.zeros(n) if think_s is None else thinks(think_s, parent),
        *followers(parent),
        classes(order_of(policy), priority, n),
        choices(order_of(policy), choice, n),
    )
    if not 0.0 < quantum_s < np.inf:
        raise InputError(f"quantum_s is {quantum_s}, must be positive and finite")
    times = ServiceTimes(np.empty(n), np.empty(n), np.empty(n))
    if isinstance(policy, OwnPolicy):
        _by_key(policy, load, Servers(_OWN, np.inf, *_speeds(servers, speeds, rates)), times)
        return RequestStamps(*times)
    rules = POLICIES[policy]
    if after is None and speeds is None and rates is None and rules.open_form:
        arrival = load.arrival_s
        return RequestStamps(
            arrival, *plain.times(policy, arrival, demand, servers, load.priority, quantum_s=quantum_s)
        )
    quantum = quantum_s if rules.sliced else np.inf
    _KERNELS[rules.sharing](load, Servers(rules.code, quantum, *_speeds(servers, speeds, rates)), times)
    return RequestStamps(*times)


def _by_key(policy: OwnPolicy, load: RequestArrays, servers: Servers, times: ServiceTimes) -> None:
    """Fill the times under somebody's own policy; what its last call did wrong is its author's to mend."""
    call = np.zeros(len(PARAMETERS) + 1)
    arguments = (load, servers, times, policy.preemptive, policy.key.compiled(), call)
    kernel = with_functions(station.by_key, *arguments)
    try:
        kernel(*arguments)
    except Exception as error:
        if not np.isnan(call[-1]):  # it answered, so the error is not its own
            raise
        raise policy.key.fault(call, "should return a number") from error


def finite(name: str, values: ArrayLike, n: int | None, low: float) -> Floats:
    """Return finite numbers of at least `low` as a float array of length n."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != 1 or (n is not None and array.size != n):
        raise InputError(f"{name} has shape {array.shape}, must be ({'n' if n is None else n},)")
    wrong = np.flatnonzero(~(np.isfinite(array) & (array >= low)))
    if wrong.size:
        bound = "finite" if low == -np.inf else f"finite and at least {low:g}"
        raise InputError(f"{name}[{wrong[0]}] is {array[wrong[0]]}, must be {bound}")
    return array


def _integers(name: str, values: ArrayLike, n: int) -> Ints:
    """Return whole numbers as an integer array of length n."""
    array = np.array(values)
    if array.shape != (n,):
        raise InputError(f"{name} has shape {array.shape}, must be ({n},)")
    if n > 0 and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} holds {array.dtype}, must be integers")
    return array.astype(np.int64)


def parents(after: ArrayLike, n: int) -> Ints:
    """Return whom each request follows; it must come before."""
    parent = _integers("after", after, n)
    wrong = np.flatnonzero((parent < station.NOBODY) | (parent >= np.arange(n)))
    if wrong.size:
        raise InputError(f"after[{wrong[0]}] is {parent[wrong[0]]}, must be an earlier request or -1")
    return parent


def set_out(arrival_s: ArrayLike, parent: Ints) -> Floats:
    """Return the arrivals, NaN where a request follows another."""
    array = np.array(arrival_s, dtype=np.float64)
    if array.shape != parent.shape:
        raise InputError(f"arrival_s has shape {array.shape}, must be {parent.shape} like demand_s")
    array[parent != station.NOBODY] = np.nan
    opened = np.flatnonzero(parent == station.NOBODY)
    wrong = opened[~np.isfinite(array[opened])]
    if wrong.size:
        raise InputError(f"arrival_s[{wrong[0]}] is {array[wrong[0]]}, must be finite")
    back = np.flatnonzero(np.diff(array[opened]) < 0.0)
    if back.size:
        before, late = opened[back[0]], opened[back[0] + 1]
        raise InputError(f"arrival_s[{late}] is {array[late]}, earlier than arrival_s[{before}], {array[before]}")
    return array


def thinks(think_s: ArrayLike, parent: Ints) -> Floats:
    """Return think times, zero where nobody thinks."""
    array = np.array(think_s, dtype=np.float64)
    if array.shape != parent.shape:
        raise InputError(f"think_s has shape {array.shape}, must be {parent.shape}")
    return finite("think_s", np.where(parent == station.NOBODY, 0.0, array), parent.size, 0.0)


def followers(parent: Ints) -> tuple[Ints, Ints]:
    """Return each request's first follower and the next one with the same parent, -1 for none."""
    first, following = np.full(parent.size, station.NOBODY), np.full(parent.size, station.NOBODY)
    child = np.flatnonzero(parent != station.NOBODY)
    child = child[np.argsort(parent[child], kind="stable")]
    same = parent[child][1:] == parent[child][:-1]
    following[child[:-1][same]] = child[1:][same]
    head = np.ones(child.size, dtype=np.bool_)
    head[1:] = ~same
    first[parent[child[head]]] = child[head]
    return first, following


def order_of(policy: PolicyName | OwnPolicy) -> str:
    """Return by what a policy orders the line."""
    return "key" if isinstance(policy, OwnPolicy) else POLICIES[policy].order


def classes(order: str, priority: ArrayLike | None, n: int) -> Ints:
    """Return the classes, which only one order needs."""
    if priority is None:
        if order == "class":
            raise InputError("policy priority needs priority, the class of each request")
        return np.zeros(n, np.int64)
    classes = _integers("priority", priority, n)
    wrong = np.flatnonzero(classes < 0)
    if wrong.size:
        raise InputError(f"priority[{wrong[0]}] is {classes[wrong[0]]}, must be at least 0")
    return classes


def choices(order: str, choice: ArrayLike | None, n: int) -> Floats:
    """Return the draws by which waiting jobs are chosen, which only one order needs."""
    if choice is None:
        if order == "drawn":
            raise InputError("policy random needs choice, a draw in [0, 1) per request")
        return np.zeros(n)
    draws = finite("choice", choice, n, 0.0)
    wrong = np.flatnonzero(draws >= 1.0)
    if wrong.size:
        raise InputError(f"choice[{wrong[0]}] is {draws[wrong[0]]}, must be below 1")
    return draws


def _speeds(servers: int, speeds: ArrayLike | None, rates: ArrayLike | ChangingRates | None) -> tuple[Floats, Pace]:
    """Return the speeds of the cores, fastest first, and the pace of all of them."""
    if speeds is not None and rates is not None:
        raise InputError("speeds and rates are both given, only one may be")
    speed = np.ones(servers) if speeds is None else _positive("speeds", speeds, servers)
    return np.sort(speed)[::-1].copy(), pace_of(rates, servers)


def pace_of(rates: ArrayLike | ChangingRates | None, servers: int) -> Pace:
    """Return the pace of so many servers before the first request; without rates nobody's speed depends on others."""
    if isinstance(rates, ChangingRates):
        if rates.factor.shape[2] != servers:
            raise InputError(f"rates are for up to {rates.factor.shape[2]} servers, must be for {servers}")
        factor, start_s, look_s = rates.factor, np.array(rates.start_s, np.float64), float(rates.look_s)
    else:
        alone = np.ones(servers) if rates is None else _positive("rates", rates, servers) / np.arange(1, servers + 1)
        factor, start_s, look_s = alone[None, None, :], np.zeros(1), np.inf
    next_s = 0.0 if look_s < np.inf else start_s[1] if start_s.size > 1 else np.inf
    return Pace(np.ascontiguousarray(factor), start_s, look_s, np.zeros(2, np.int64), np.array([next_s]))


def _positive(name: str, values: ArrayLike, n: int) -> Floats:
    """Return n positive numbers."""
    array = finite(name, values, n, 0.0)
    if (array == 0.0).any():
        raise InputError(f"{name}[{np.flatnonzero(array == 0.0)[0]}] is 0.0, must be positive")
    return array
