"""Serve requests on a station that may refuse them, that they may give up, and whose servers come and go.

The entry to the kernel of `models.queues.elastic`; arguments are checked here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Ints
from models.errors import InputError
from models.queues import elastic
from models.queues.elastic import Attempts, Floor, LookTallies, Offers, Scaling
from models.queues.layout import Heap
from models.queues.policies import LIMITED, PATIENT, POLICIES, PolicyName, RuleName
from models.queues.serve import (
    ChangingRates,
    choices,
    classes,
    finite,
    followers,
    order_of,
    pace_of,
    parents,
    set_out,
    thinks,
)

RULES: Final[Mapping[RuleName, int]] = {
    "utilisation": elastic.UTILISATION,
    "present": elastic.PRESENT,
    "queueing": elastic.QUEUEING,
    "law": elastic.LAW,
}
_LOG_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """A rule that looks at the station every `look_s` and orders servers."""

    rule: RuleName
    target: float
    """Utilisation; requests present for each server; or waiting time per request, seconds."""
    look_s: float
    least: int
    most: int
    hold: int = 1
    """Looks that count: servers go only when none of them wanted them; under the law, as all of them together say."""


@dataclass(frozen=True, slots=True)
class ServerCourse:
    """How many servers were on and how many were starting, from each time to the next: (r,) arrays.

    Servers are on while they may take requests, and while they finish one after they were taken away.
    """

    time_s: Floats
    on: Ints
    starting: Ints

    def at(self, time_s: Floats) -> Ints:
        """Return how many servers are on at some times, after the changes of the moment.

        Examples
        --------
        >>> ServerCourse(np.array([0.0, 4.0]), np.array([1, 2]), np.array([1, 0])).at(np.array([3.9, 4.0]))
        array([1, 2])
        """
        return self.on[np.maximum(np.searchsorted(self.time_s, time_s, "right") - 1, 0)]

    def cost_s(self, until_s: float) -> float:
        """Return the server time up to a time, in seconds: of those that are on or starting.

        Examples
        --------
        >>> ServerCourse(np.array([0.0, 4.0]), np.array([1, 2]), np.array([1, 0])).cost_s(5.0)
        10.0
        """
        edges_s = np.minimum(np.append(self.time_s, until_s), until_s)
        return float((self.on + self.starting) @ np.diff(edges_s))


@dataclass(frozen=True, slots=True)
class LimitedStamps:
    """What became of m attempts of n requests: (m, n) arrays, seconds; NaN for attempts that were not needed."""

    arrival_s: Floats
    start_s: Floats
    departure_s: Floats
    """When it was answered, refused, gave up or timed out."""
    work_s: Floats
    """Service that it had: its demand if it was answered; 0 for attempts that were not needed."""
    outcome: Ints
    """`elastic.NOT_TRIED`, `SERVED`, `REFUSED`, `GAVE_UP` or `TIMED_OUT`."""
    servers: ServerCourse

    def served(self) -> tuple[Ints, Ints]:
        """Return the attempts that were served and their requests, by request: (a,) arrays."""
        request, attempt = np.nonzero(self.outcome.T == elastic.SERVED)
        return attempt, request

    def worked(self) -> tuple[Ints, Ints]:
        """Return the attempts that had a server, and their requests: those that were served come first."""
        lost = (self.outcome == elastic.TIMED_OUT) & ~np.isnan(self.start_s)
        request, attempt = np.nonzero(lost.T)
        served = self.served()
        return np.append(served[0], attempt), np.append(served[1], request)


def serve_limited(
    policy: PolicyName,
    arrival_s: ArrayLike,
    demand_s: ArrayLike,
    servers: int,
    *,
    after: ArrayLike | None = None,
    think_s: ArrayLike | None = None,
    priority: ArrayLike | None = None,
    choice: ArrayLike | None = None,
    capacity: int = 0,
    threads: int = 0,
    patience_s: ArrayLike | None = None,
    timeout_s: ArrayLike | None = None,
    return_s: ArrayLike | None = None,
    schedule: Sequence[tuple[float, int]] = (),
    autoscaling: Autoscaling | None = None,
    start_up_s: float = 0.0,
    rates: ChangingRates | None = None,
) -> LimitedStamps:
    """Serve requests on alike servers that may refuse them, until all have left, served or not.

    Parameters
    ----------
    policy, arrival_s, demand_s, after, think_s, priority : as for `models.queues.serve.serve`; no arrival is before 0
    servers : k >= 1, at time 0
    choice : (m n,) array in [0, 1), for policy random
    capacity : most requests present, waiting or in service; one that comes then is refused; 0: no limit
    threads : under processor sharing as many requests share the servers, and the others wait for a thread in order of
        arrival; at least as many as there ever are servers; 0: one for everybody
    patience_s : (m, n) array, positive or 0, perhaps infinite, optional
        How long each attempt waits for a server, or a thread, to take it; then it gives up.
    timeout_s : (m, n) array, positive or 0, perhaps infinite, optional
        How long each attempt stays, waiting or in service; then it leaves, and what it had of a server was in vain.
    return_s : (m - 1, n) array, optional
        From a failed attempt to the next. Without it each request has one attempt. A request that follows another sets
        out when that one was served, or failed for the last time.
    schedule : pairs of a time and a number of servers, by time
    autoscaling : a rule that orders servers, in place of a schedule
    start_up_s : from ordering a server until it takes requests
    rates : of as many servers as there ever are; without them each does one second of work a second

    Raises
    ------
    ValueError
        As `models.queues.serve.serve` does, and if the policy has no limits, a number of servers is below 1, a time is
        negative, the schedule goes back in time, or there are both a schedule and a rule.

    Examples
    --------
    >>> stamps = serve_limited("fcfs", [0.0, 1.0, 1.5], [3.0, 1.0, 1.0], 1, capacity=2, patience_s=[[9.0, 0.7, 9.0]])
    >>> stamps.outcome.tolist(), stamps.departure_s.tolist()
    ([[0, 2, 1]], [[3.0, 1.7, 1.5]])
    """
    if policy not in LIMITED:
        raise InputError(f"policy is {policy!r}, must be one of {', '.join(LIMITED)} with limits or changing servers")
    if servers < 1:
        raise InputError(f"servers is {servers}, must be at least 1")
    if capacity < 0:
        raise InputError(f"capacity is {capacity}, must be at least 0")
    demand = finite("demand_s", demand_s, None, 0.0)
    n = demand.size
    parent = np.full(n, elastic.NOBODY) if after is None else parents(after, n)
    first_s = set_out(arrival_s, parent)
    if (first_s < 0.0).any():
        raise InputError(f"arrival_s[{np.flatnonzero(first_s < 0.0)[0]}] is {np.nanmin(first_s)}, must be at least 0")
    again_s = np.empty((0, n)) if return_s is None else _times("return_s", return_s, n, None)
    m = len(again_s) + 1
    patience = np.full((m, n), np.inf) if patience_s is None else _times("patience_s", patience_s, n, m)
    if policy not in PATIENT and not threads and np.isfinite(patience).any():
        raise InputError(f"patience_s: under policy {policy} no request waits, so none gives up")
    timeout = np.full((m, n), np.inf) if timeout_s is None else _times("timeout_s", timeout_s, n, m)
    offers = Offers(
        first_s, demand, np.zeros(n) if think_s is None else thinks(think_s, parent), *followers(parent),
        classes(order_of(policy), priority, n), choices(order_of(policy), choice, m * n), patience.ravel(),
        timeout.ravel(), np.append(again_s, np.full((1, n), np.nan), axis=0).ravel(),
    )  # fmt: skip
    scaling, hold = _scaling(servers, schedule, autoscaling, start_up_s)
    untold = [np.full(m * n, np.nan) for _ in range(3)]
    attempts = Attempts(untold[0], untold[1], untold[2], np.zeros(m * n), np.full(m * n, elastic.NOT_TRIED))
    attempts.arrival_s[:n] = first_s
    rules, most = POLICIES[policy], max(servers, scaling.most, scaling.step_servers.max(initial=0))
    if threads and (policy != "ps" or threads < most):
        raise InputError(f"threads is {threads}, must be at least {most}, the most servers, under policy ps")
    unlimited = np.iinfo(np.int64).max
    seconds, numbers = np.zeros((3, hold)), np.zeros((2, hold), np.int64)
    looks = LookTallies(np.zeros((hold, most + 1)), seconds[0], seconds[1], seconds[2], numbers[0], numbers[1])
    station = elastic.ElasticStation(
        offers, attempts, rules.code, rules.preemptive, capacity or unlimited, threads or unlimited,
        scaling, looks, _floor(attempts, n, servers, int(most)), pace_of(rates, int(most)), rates is not None,
    )  # fmt: skip
    while elastic.run(station):
        floor = station.floor
        station = station._replace(
            floor=floor._replace(
                log_s=np.append(floor.log_s, np.zeros_like(floor.log_s)),
                log=np.append(floor.log, np.zeros_like(floor.log), axis=0),
            )
        )
    floor, shape = station.floor, (m, n)
    rows = floor.number[elastic.LOGGED]
    course = ServerCourse(floor.log_s[:rows], floor.log[:rows, 0], floor.log[:rows, 1])
    return LimitedStamps(
        attempts.arrival_s.reshape(shape),
        attempts.start_s.reshape(shape),
        attempts.departure_s.reshape(shape),
        attempts.work_s.reshape(shape),
        attempts.outcome.reshape(shape),
        course,
    )


def _floor(attempts: Attempts, n: int, servers: int, most: int) -> Floor:
    """Return the station before the first request, whose arrivals without a parent are pending."""
    rows = attempts.arrival_s.size
    turn = np.arange(rows)

    def heap(key: Floats, turn: Ints) -> Heap:
        return Heap(key, turn, np.empty(rows + 1, np.int64), np.zeros(1, np.int64))

    pending = heap(attempts.arrival_s, turn)
    opened = np.flatnonzero(~np.isnan(attempts.arrival_s[:n]))
    pending.member[: opened.size], pending.size[0] = opened, opened.size  # in order of time, so a heap
    number = np.zeros(8, np.int64)
    number[elastic.SERVERS], number[elastic.LOGGED] = servers, 1
    log = np.zeros((_LOG_ROWS, 2), np.int64)
    log[0, 0] = servers
    return Floor(
        pending, heap(np.zeros(rows), np.zeros(rows, np.int64)), heap(np.zeros(rows), turn), heap(np.zeros(rows), turn),
        heap(np.zeros(rows), turn), np.zeros(n), np.zeros(most + 1), number, np.zeros(4), np.zeros(_LOG_ROWS), log,
    )  # fmt: skip


def _times(name: str, given: ArrayLike, n: int, m: int | None) -> Floats:
    """Return rows of n times of at least 0."""
    array = np.array(given, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != n or (m is not None and len(array) != m):
        raise InputError(f"{name} has shape {array.shape}, must be ({'m - 1' if m is None else m}, {n})")
    if not (array >= 0.0).all():
        raise InputError(f"{name} has {array[~(array >= 0.0)][0]}, must be at least 0")
    return array


def _scaling(
    servers: int, schedule: Sequence[tuple[float, int]], autoscaling: Autoscaling | None, start_up_s: float
) -> tuple[Scaling, int]:
    """Return the checked ways in which the number of servers changes, and how many looks count."""
    if not 0.0 <= start_up_s < np.inf:
        raise InputError(f"start_up_s is {start_up_s}, must be finite and at least 0")
    step_s = finite("schedule", [time_s for time_s, _ in schedule], None, 0.0)
    step_servers = np.array([number for _, number in schedule], np.int64)
    if (np.diff(step_s) <= 0.0).any():
        raise InputError("schedule: its times must increase")
    if (step_servers < 1).any():
        raise InputError(f"schedule: {step_servers.min()} servers, must be at least 1")
    if autoscaling is None:
        return Scaling(float(start_up_s), step_s, step_servers, elastic.FIXED, np.inf, 1.0, servers, servers), 1
    if len(schedule):
        raise InputError("schedule and autoscaling are both given, only one may be")
    rule = autoscaling
    if not 1 <= rule.least <= servers <= rule.most:
        raise InputError(f"servers is {servers}, must be from least, {rule.least}, to most, {rule.most}")
    for name, value in (("target", rule.target), ("look_s", rule.look_s), ("hold", rule.hold)):
        if not 0.0 < value < np.inf:
            raise InputError(f"{name} is {value}, must be positive and finite")
    code, times = RULES[rule.rule], (float(rule.look_s), float(rule.target))
    return Scaling(float(start_up_s), step_s, step_servers, code, *times, rule.least, rule.most), rule.hold
