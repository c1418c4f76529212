"""Route requests over machines that differ, each sharing its processors: who serves one is decided when it arrives.

The router knows the types of requests and how many are present on every machine, never a request's own demand. The one
entry to `models.queues.cluster`: arguments are checked here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues.cluster import Requests, Routing, SharedMachines, run

Router = Literal["fixed", "round_robin", "least_loaded", "least_expected", "least_added"]
ROUTERS: tuple[Router, ...] = get_args(Router)
PREDICTING = frozenset({"least_expected", "least_added"})
"""Routers that compare predicted times."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """When each request arrived, when it left and the machine that served it: (n,) arrays, seconds."""

    arrival_s: Floats
    departure_s: Floats
    machine: Ints


def dispatch(
    router: Router,
    arrival_s: ArrayLike,
    demand_s: ArrayLike,
    cores: ArrayLike,
    *,
    choice: ArrayLike | None = None,
    beside: ArrayLike | None = None,
    kind: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    predicted_s: ArrayLike | None = None,
    rates: Sequence[ArrayLike] | None = None,
    believed_rates: Sequence[ArrayLike] | None = None,
) -> Dispatch:
    """Route requests over m machines as they arrive, and share each machine evenly until all have left.

    Parameters
    ----------
    router : one of `ROUTERS`
        fixed takes `choice`. round_robin gives each machine turns in proportion to its weight, spread evenly (smooth
        weighted round robin, as in nginx), for each type by itself. least_loaded takes the machine with the fewest
        requests present for its weight, of equal ones the weightiest, then the first (weighted least connections, as in
        the Linux Virtual Server; Zhang 2000). least_expected takes the machine with the least predicted time, stretched
        as the N present share it: predicted_s (N + 1) / rate(N + 1), by default predicted_s max(1, (N + 1) / cores)
        (shortest expected delay; Shenker and Weinrib 1989, IEEE Transactions on Computers 38). least_added also counts
        what the others lose meanwhile, a share of 1 - rate(N + 1) N / (rate(N) (N + 1)) of that time each: greed is not
        enough (Weinrib and Shenker 1988, INFOCOM).
    arrival_s : (n,) array, non-decreasing, seconds
    demand_s : (n, m) array, non-negative, seconds of one processor of each machine alone
    cores : (m,) integers, at least 1
    choice : (n,) integers in 0..m-1, optional
        The machines of requests; -1 where the router is to decide, which fixed never does.
    beside : (n,) integers, optional
        The earlier request whose machine each takes, -1 for none: work that a request brings about.
    kind : (n,) integers in 0..J-1, type of each request, the row of `weights` or `predicted_s`; 0 unless given
    weights : (J, m) or (m,) array, non-negative, 0: never; for round_robin ones and for least_loaded cores unless given
    predicted_s : (J, m) array, positive, seconds, for routers least_expected and least_added
    rates : m arrays of (cores,), positive, optional
        Work per second of a machine while 1, 2, .. of its processors are busy; 1, 2, .. unless given.
    believed_rates : as rates, optional
        What routers that predict take for `rates`; 1, 2, .. unless given.

    Returns
    -------
    Dispatch

    Raises
    ------
    ValueError
        If the router is unknown or lacks what it needs, an array has the wrong shape or a value out of its range, or
        arrivals go back in time.

    Examples
    --------
    >>> done = dispatch("least_expected", [0.0, 0.0, 0.0], np.ones((3, 2)), [1, 1], predicted_s=[[1.0, 1.5]])
    >>> done.machine, done.departure_s
    (array([0, 1, 0]), array([2., 1., 2.]))
    """
    if router not in ROUTERS:
        raise InputError(f"router is {router!r}, must be one of {', '.join(ROUTERS)}")
    own = _integers("cores", cores, None, 1, np.inf)
    m = own.size
    demand = _values("demand_s", demand_s, (None, m))
    n = len(demand)
    arrival = _values("arrival_s", arrival_s, (n,), -np.inf)
    back = np.flatnonzero(np.diff(arrival) < 0.0)
    if back.size:
        raise InputError(
            f"arrival_s[{back[0] + 1}] is {arrival[back[0] + 1]}, earlier than {arrival[back[0]]} before it"
        )
    value = _value(router, own, weights, predicted_s)
    kinds = np.zeros(n, np.int64) if kind is None else _integers("kind", kind, (n,), 0, len(value) - 1)
    given = _integers("choice", np.full(n, -1) if choice is None else choice, (n,), -1, m - 1)
    companion = _companions(beside, n)
    if router == "fixed" and ((given < 0) & (companion < 0)).any():
        raise InputError("router fixed needs choice, the machine of each request")
    requests = Requests(arrival, demand, kinds, companion, given, np.empty(n))
    routing = Routing(
        ROUTERS.index(router), value, np.zeros_like(value), _totals("believed_rates", believed_rates, own)
    )
    none, idle = np.zeros(m, np.int64), np.zeros(m)
    member = np.empty((m, n), np.int64)
    total = _totals("rates", rates, own)
    run(requests, routing, SharedMachines(own, total, member, np.empty(n), none, idle, idle.copy(), np.full(m, np.inf)))
    return Dispatch(arrival, requests.departure_s, given)


def _value(router: Router, cores: Ints, weights: ArrayLike | None, predicted_s: ArrayLike | None) -> Floats:
    """Return what the router compares machines by, (J, m)."""
    if router in PREDICTING:
        if predicted_s is None:
            raise InputError(f"router {router} needs predicted_s, the time of each type on each machine")
        predicted = _values("predicted_s", predicted_s, (None, cores.size))
        if (predicted == 0.0).any():
            raise InputError(f"predicted_s{np.argwhere(predicted == 0.0)[0].tolist()} is 0.0, must be positive")
        return predicted
    given = (cores if router == "least_loaded" else np.ones(cores.size)) if weights is None else weights
    rows = np.atleast_2d(np.asarray(given, np.float64))
    weight = _values("weights", rows, (None, cores.size))
    nowhere = np.flatnonzero(weight.sum(axis=1) == 0.0)
    if nowhere.size:
        raise InputError(f"weights[{nowhere[0]}] are all 0, one must be positive")
    return weight


def _companions(beside: ArrayLike | None, n: int) -> Ints:
    """Return with whom each request goes; it must come before."""
    if beside is None:
        return np.full(n, -1)
    companion = _integers("beside", beside, (n,), -1, np.inf)
    late = np.flatnonzero(companion >= np.arange(n))
    if late.size:
        raise InputError(f"beside[{late[0]}] is {companion[late[0]]}, must be an earlier request or -1")
    return companion


def _values(name: str, values: ArrayLike, shape: tuple[int | None, ...], low: float = 0.0) -> Floats:
    """Return finite numbers of at least `low` as a float array of that shape; None is any length."""
    array = np.array(values, dtype=np.float64)
    if array.ndim != len(shape) or any(want not in (None, have) for want, have in zip(shape, array.shape, strict=True)):
        wanted = str(shape).replace("None", "any")
        raise InputError(f"{name} has shape {array.shape}, must be {wanted}")
    wrong = np.argwhere(~(np.isfinite(array) & (array >= low)))
    if len(wrong):
        bound = "finite" if low == -np.inf else f"finite and at least {low:g}"
        raise InputError(f"{name}{wrong[0].tolist()} is {array[tuple(wrong[0])]}, must be {bound}")
    return array


def _integers(name: str, values: ArrayLike, shape: tuple[int, ...] | None, low: int, high: float) -> Ints:
    """Return whole numbers from low to high as an integer array; without a shape, of any length but 0."""
    array = np.array(values)
    if array.ndim != 1 or array.shape != (shape or array.shape) or (shape is None and array.size == 0):
        raise InputError(f"{name} has shape {array.shape}, must be {shape or '(m,), m >= 1'}")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name} holds {array.dtype}, must be integers")
    wrong = np.flatnonzero((array < low) | (array > high))
    if wrong.size:
        raise InputError(f"{name}[{wrong[0]}] is {array[wrong[0]]}, must be from {low} to {high:g}")
    return array.astype(np.int64)


def _totals(name: str, rates: Sequence[ArrayLike] | None, cores: Ints) -> Floats:
    """Return the work per second of each machine while 1, 2, .. of its processors are busy: (m, greatest cores)."""
    total = np.full((cores.size, int(cores.max())), np.nan)
    if rates is not None and len(rates) != cores.size:
        raise InputError(f"{name} has {len(rates)} rows, must have {cores.size}, one for each machine")
    for i, k in enumerate(cores.tolist()):
        number = np.arange(1, k + 1)
        row = number if rates is None else _values(f"{name}[{i}]", rates[i], (k,))
        if (row == 0.0).any():
            raise InputError(f"{name}[{i}][{int(np.argmin(row))}] is 0.0, must be positive")
        total[i, :k] = number * (row / number)  # as a station rounds it
    return total
