"""The station of `models.queues.limited` said once more, to be read: one object per attempt, pieces of time in a list.

What happens at one moment happens in the order of `sim.queues.readable`; requests give up after changes of the number
of servers, and time out after that and before arrivals. Rules that order servers are written down once more, from what
was seen piece by piece.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import simpy
from numpy.typing import ArrayLike, NDArray

from models.queues.elastic import CALM, GAVE_UP, NOT_TRIED, REFUSED, SERVED, STEP_SHARE, TIMED_OUT, WHOLE
from models.queues.limited import Autoscaling, LimitedStamps, ServerCourse
from models.queues.policies import PolicyName
from models.queues.serve import ChangingRates
from sim.queues.readable import ARRIVAL, CHANGE, LOOK, QUIT, SHARES, TIMEOUT, Job, Moment, ReadableStation, change
from sim.queues.readable_network import pooled


class Stretch(NamedTuple):
    """A stretch of time in which nothing changes."""

    length_s: float
    present: int
    busy: int


class LookWindow(NamedTuple):
    """What was so from one look to the next."""

    stretches: list[Stretch]
    arrivals: int


@dataclass(slots=True, eq=False)
class Attempt(Job):
    """One of the attempts of a request: its row, how long it waits or stays, and what happens when it fails."""

    row: int = 0
    patience_s: float = math.inf
    timeout_s: float = math.inf
    work_s: float = 0.0
    outcome: int = NOT_TRIED
    next_attempt: "Attempt | None" = None
    return_s: float = math.nan

    def is_over(self) -> bool:
        """Tell whether its request was served, or failed for the last time."""
        failed = self.outcome in (REFUSED, GAVE_UP, TIMED_OUT)
        return self.next_attempt.is_over() if failed and self.next_attempt else self.outcome != NOT_TRIED


@dataclass(slots=True)
class LimitedStation(ReadableStation):
    """Alike servers, as many as `speeds` has entries; those that were taken away finish what they do."""

    capacity: float = math.inf
    starting: list[float] = field(default_factory=list)
    stretches: list[Stretch] = field(default_factory=list)
    arrivals: int = 0
    since_s: float = 0.0
    course: list[tuple[float, int, int]] = field(default_factory=list)
    worked_s: float = 0.0
    served: int = 0

    def speed(self, core: int) -> float:
        """Return the speed of every server with as many at work as there will be."""
        return self.factor[max(min(len(self.jobs), len(self.speeds)), len(self.held)) - 1]

    def busy(self) -> int:
        """Return how many servers work."""
        return sum(job.rate > 0.0 for job in self.jobs) if self.held else min(len(self.jobs), len(self.speeds))

    def account(self) -> None:
        """Note what was so until now."""
        self.stretches.append(Stretch(self.env.now - self.since_s, len(self.jobs), self.busy()))
        self.worked_s += self.stretches[-1].length_s * self.stretches[-1].busy
        self.since_s = self.env.now

    def note(self) -> None:
        """Note how many servers are on and starting from now on."""
        here = (max(len(self.speeds), self.busy()), len(self.starting))
        if self.course and self.course[-1][0] == self.env.now:
            self.course.pop()
        if not self.course or self.course[-1][1:] != here:
            self.course.append((self.env.now, *here))

    def look(self) -> None:
        """Let every request present run at the rate that the policy gives it now."""
        ReadableStation.look(self)
        self.note()

    def arrive(self, job: Job) -> None:
        """Take an attempt in, or refuse it."""
        assert isinstance(job, Attempt)
        self.account()
        self.arrivals += 1
        if len(self.jobs) >= self.capacity:
            job.arrival_s = self.env.now
            self.fail(job, REFUSED)
            return
        ReadableStation.arrive(self, job)
        if math.isnan(job.start_s) and job.patience_s < math.inf:
            Moment(self.env, job.patience_s, QUIT, lambda: self.give_up(job))
        if job.timeout_s < math.inf:
            Moment(self.env, job.timeout_s, TIMEOUT + job.row, lambda: self.time_out(job))

    def give_up(self, job: Attempt) -> None:
        """Let an attempt leave the line if no server has taken it."""
        if math.isnan(job.start_s) and job.outcome == NOT_TRIED:
            self.account()
            self.jobs.remove(job)
            self.fail(job, GAVE_UP)

    def time_out(self, job: Attempt) -> None:
        """Let an attempt that is still there leave, in service or not."""
        if job.outcome == NOT_TRIED:
            self.account()
            job.work_s = job.attained_by(self.env.now)
            job.rate, job.plan = 0.0, job.plan + 1
            self.jobs.remove(job)
            self.held.pop(job, None)
            self.fail(job, TIMED_OUT)
            Moment(self.env, 0.0, LOOK, self.look)

    def fail(self, job: Attempt, outcome: int) -> None:
        """Let an attempt leave unserved; it comes again, or the followers of its request set out."""
        job.departure_s, job.outcome = self.env.now, outcome
        if (again := job.next_attempt) is not None:
            Moment(self.env, job.return_s, ARRIVAL + again.row, lambda: self.arrive(again))
            return
        for follow in job.followers:
            follow()

    def depart(self, job: Job) -> None:
        """Let an attempt leave served."""
        assert isinstance(job, Attempt)
        self.account()
        job.outcome, job.work_s = SERVED, job.demand
        self.served += 1
        ReadableStation.depart(self, job)

    def order(self, servers: int, start_up_s: float) -> None:
        """Let so many servers be on or starting."""
        while len(self.speeds) + len(self.starting) < servers:
            self.starting.append(self.env.now + start_up_s)
            Moment(self.env, start_up_s, CHANGE, partial(self.ready, self.starting[-1]))
        while len(self.speeds) + len(self.starting) > servers:
            (self.starting or self.speeds).pop()
        self.look()

    def ready(self, at_s: float) -> None:
        """Let a server that was not cancelled take requests."""
        if at_s in self.starting:
            self.account()
            self.starting.remove(at_s)
            self.speeds.append(1.0)
            self.look()


def _wanted(station: LimitedStation, rule: Autoscaling, past: list[LookWindow], start_up_s: float) -> int:
    """Return how many servers a rule wants after windows of time, of which the last is since its last look."""
    window, ordered = past[-1], len(station.speeds) + len(station.starting)
    busy_s = sum(stretch.length_s * stretch.busy for stretch in window.stretches)
    present_s = sum(stretch.length_s * stretch.present for stretch in window.stretches)
    if rule.rule == "utilisation":
        return math.ceil(busy_s / rule.look_s / rule.target - WHOLE)
    if rule.rule == "present":
        return math.ceil(present_s / rule.look_s / rule.target - WHOLE)
    if rule.rule == "law":
        return _by_law_and_load(station, rule, past, start_up_s)
    step, aim_s = math.ceil(STEP_SHARE * ordered), rule.target * window.arrivals
    if present_s - busy_s > aim_s:
        return ordered + step
    return ordered - step if present_s - busy_s <= CALM * aim_s else ordered


def _by_law_and_load(station: LimitedStation, rule: Autoscaling, past: list[LookWindow], start_up_s: float) -> int:
    """Return how many servers the rule of the law wants.

    What the law says of more servers than there are is an upper bound, of fewer ones a lower bound. So it orders no
    more than the load needs by Erlang's C with those that wait, and lets none go that the load needs.
    """
    ordered = len(station.speeds) + len(station.starting)
    demand_s = station.worked_s / station.served if station.served else rule.look_s

    def staffed(windows: list[LookWindow]) -> int:
        load = sum(window.arrivals for window in windows) * demand_s / (len(windows) * rule.look_s)
        return next(
            (k for k in range(1, rule.most) if k > load and _wait(k, load) * demand_s <= rule.target), rule.most
        )

    if (wanted := _by_law(rule, past[-1:])) > ordered:
        backlog = (len(station.jobs) - station.busy()) * demand_s / (rule.look_s + start_up_s)
        return min(wanted, max(ordered + 1, math.ceil(staffed(past[-1:]) + backlog - WHOLE)))
    memory = past[-rule.hold :]
    return min(ordered, max(_by_law(rule, memory), staffed(memory)))


def _by_law(rule: Autoscaling, windows: list[LookWindow]) -> int:
    """Return the fewest servers with which these requests, present as they were, waited no longer than aimed at."""
    stretches = [stretch for window in windows for stretch in window.stretches]
    aim_s = rule.target * sum(window.arrivals for window in windows)

    def waiting_s(servers: int) -> float:
        return sum(stretch.length_s * max(stretch.present - servers, 0) for stretch in stretches)

    return next((k for k in range(rule.least, rule.most) if waiting_s(k) <= aim_s), rule.most)


def _wait(servers: int, load: float) -> float:
    """Return the mean wait over the mean demand by Erlang's C."""
    terms = [load**i / math.factorial(i) for i in range(servers)]
    queue = load**servers / math.factorial(servers) * servers / (servers - load)
    return queue / (sum(terms) + queue) / (servers - load)


def _scale(station: LimitedStation, rule: Autoscaling, start_up_s: float, attempts: list[Attempt]) -> None:
    """Plan the looks of a rule, until all is done."""
    past: list[LookWindow] = []
    wishes: list[int] = []

    def see(number: int) -> None:
        station.account()
        past.append(LookWindow(station.stretches[:], station.arrivals))
        wishes.append(min(max(_wanted(station, rule, past, start_up_s), rule.least), rule.most))
        station.stretches.clear()
        station.arrivals = 0
        station.order(wishes[-1] if rule.rule == "law" else max(wishes[-rule.hold :]), start_up_s)
        if not all(job.is_over() for job in attempts):
            Moment(station.env, (number + 1) * rule.look_s - station.env.now, CHANGE, partial(see, number + 1))

    Moment(station.env, rule.look_s, CHANGE, partial(see, 1))


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
    """Serve requests as `models.queues.limited.serve_limited` does; the same arguments, unchecked.

    Examples
    --------
    >>> serve_limited("fcfs", [0.0, 1.0, 1.5], [3.0, 1.0, 1.0], 1, capacity=2).outcome.tolist()
    [[0, 0, 1]]
    """
    n, env = np.size(demand_s), simpy.Environment()
    draws = iter([] if choice is None else np.asarray(choice, float).tolist())
    most = max(servers, *(number for _, number in schedule), 0 if autoscaling is None else autoscaling.most)
    factor = [1.0] * most if rates is None else rates.factor[0, 0].tolist()
    station = LimitedStation(
        env, pooled(threads) if threads else SHARES[policy], [1.0] * servers, factor, math.inf, draws,
        capacity=capacity or math.inf,
    )  # fmt: skip
    again_s = np.empty((0, n)) if return_s is None else np.asarray(return_s, float)
    m = len(again_s) + 1
    patience = np.full((m, n), math.inf) if patience_s is None else np.asarray(patience_s, float)
    timeout = np.full((m, n), math.inf) if timeout_s is None else np.asarray(timeout_s, float)
    ranks = np.zeros(n, int) if priority is None else np.asarray(priority)
    demand = np.asarray(demand_s, float).tolist()
    jobs = [
        [
            Attempt(
                demand[i],
                int(ranks[i]),
                row=a * n + i,
                patience_s=float(patience[a, i]),
                timeout_s=float(timeout[a, i]),
            )
            for i in range(n)
        ]
        for a in range(m)
    ]
    for a, i in np.ndindex(m - 1, n):
        jobs[a][i].next_attempt, jobs[a][i].return_s = jobs[a + 1][i], float(again_s[a, i])
        jobs[a + 1][i].followers = jobs[a][i].followers
    follows = np.full(n, -1) if after is None else np.asarray(after)
    thinks = np.zeros(n) if think_s is None else np.asarray(think_s, float)

    def set_out(job: Attempt, delay_s: float) -> None:
        Moment(env, delay_s, ARRIVAL + job.row, lambda: station.arrive(job))

    for job, at_s, parent, think in zip(
        jobs[0], np.asarray(arrival_s, float).tolist(), follows.tolist(), thinks.tolist(), strict=True
    ):
        if parent < 0:
            set_out(job, at_s)
        else:
            jobs[0][parent].followers.append(partial(set_out, job, think))
    station.note()
    for time_s, number in schedule:
        Moment(env, time_s, CHANGE, partial(station.order, number, start_up_s))
    if autoscaling is not None:
        _scale(station, autoscaling, start_up_s, jobs[0])
    if rates is not None:
        change(station, rates, lambda: all(job.is_over() for job in jobs[0]))
    env.run()

    def column(name: str) -> NDArray[Any]:
        return np.array([[getattr(job, name) for job in attempt] for attempt in jobs])

    course = ServerCourse(*map(np.array, zip(*station.course, strict=True)))
    times_s = (column("arrival_s"), column("start_s"), column("departure_s"))
    return LimitedStamps(*times_s, column("work_s"), column("outcome"), course)
