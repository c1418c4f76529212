"""The queues of `models.queues` said once more, to be read: SimPy, one object per job, nothing clever.

A station holds the jobs present. Whenever one arrives or leaves, or a slice ends, the policy says at what rate each
runs from now on; a job's departure is planned when its rate changes and not otherwise. What happens at one moment
happens in this order: departures; then, once, the servers look for work; then the servers' pace changes; then arrivals
by index, the servers looking for work after each; then the ends of slices, those that began earlier first.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise

import numpy as np
import simpy
from numpy.typing import ArrayLike
from simpy.events import EventPriority

from models.arrays import Floats, Ints
from models.queues.dispatch import Dispatch, Router
from models.queues.policies import PolicyName
from models.queues.serve import ChangingRates, RequestStamps

DEPARTURE, LOOK, CHANGE, QUIT, TIMEOUT, PACE, ARRIVAL, EXPIRY = 1, 2, 3, 4, 5, 2**59, 2**60, 2**62
"""Order at one moment; request i arrives with order ARRIVAL + i, and times out with TIMEOUT + i."""
TIE_S = 1e-10
"""Attained services this close are equal: what rounding leaves between two jobs after one has caught up."""
SLIVER = 1e-9
"""What a slice would leave over, as a share of the quantum, that is served in it."""


class Moment(simpy.Event):
    """Happens after a delay, and acts then; `order` decides among events of one moment."""

    def __init__(self, env: simpy.Environment, delay_s: float, order: int, act: Callable[[], None]) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        self.callbacks.append(lambda _: act())
        env.schedule(self, EventPriority(order), delay_s)


@dataclass(slots=True, eq=False)
class Job:
    """A request: what it needs, what it has attained, at what rate it runs since when, and its place in time."""

    demand: float
    priority: int = 0
    attained: float = 0.0
    rate: float = 0.0
    since_s: float = 0.0
    plan: int = 0
    turn: int = 0
    arrival_s: float = math.nan
    start_s: float = math.nan
    departure_s: float = math.nan
    followers: list[Callable[[], None]] = field(default_factory=list)

    def attained_by(self, now_s: float) -> float:
        """Return the service received until now."""
        return self.attained + self.rate * (now_s - self.since_s)


Share = Callable[["ReadableStation"], dict[Job, float]]


@dataclass(slots=True)
class ReadableStation:
    """Servers, the jobs present in order of arrival (round robin: of joining the line), and who holds which core."""

    env: simpy.Environment
    share: Share
    speeds: list[float]
    factor: list[float]
    quantum_s: float
    draws: Iterator[float]
    jobs: list[Job] = field(default_factory=list)
    held: dict[Job, int] = field(default_factory=dict)
    turns: Iterator[int] = field(default_factory=count)
    looks: int = 0

    def speed(self, core: int) -> float:
        """Return the speed of a core, 0 being the fastest, with as many busy as there are jobs for."""
        return self.speeds[core] * self.factor[min(len(self.jobs), len(self.speeds)) - 1]

    def busy(self) -> int:
        """Return how many servers work."""
        return min(len(self.jobs), len(self.speeds))

    def crowd(self, more: int) -> float:
        """Return how many share a core, at least one, with some more than there are."""
        return max(1.0, (len(self.jobs) + more) / len(self.speeds))

    def arrive(self, job: Job) -> None:
        """Take a job in."""
        job.arrival_s, job.turn = self.env.now, next(self.turns)
        self.jobs.append(job)
        self.look()

    def look(self) -> None:
        """Let every job present run at the rate that the policy gives it now."""
        self.looks += 1
        rates = self.share(self)
        for job in self.jobs:
            self.run(job, rates.get(job, 0.0))

    def run(self, job: Job, rate: float) -> None:
        """Let a job run at a rate from now on, and plan its departure anew if the rate is another one."""
        if rate == job.rate:
            return
        now_s = self.env.now
        job.attained, job.since_s, job.rate, job.plan = job.attained_by(now_s), now_s, rate, job.plan + 1
        if rate > 0.0:
            job.start_s = now_s if math.isnan(job.start_s) else job.start_s
            rest_s, plan = max(0.0, job.demand - job.attained) / rate, job.plan
            Moment(self.env, rest_s, DEPARTURE, lambda: self.depart(job) if job.plan == plan else None)

    def depart(self, job: Job) -> None:
        """Let a job leave; its followers set out."""
        job.departure_s = self.env.now
        self.jobs.remove(job)
        self.held.pop(job, None)
        for follow in job.followers:
            follow()
        Moment(self.env, 0.0, LOOK, self.look)

    def look_again(self, delay_s: float) -> None:
        """Look again after a delay unless something happens before."""
        looks = self.looks
        Moment(self.env, delay_s, LOOK, lambda: self.look() if self.looks == looks else None)

    def seat(self, choose: Callable[[list[Job]], Job]) -> list[Job]:
        """While a core is free and a job waits, give the fastest such core to the one chosen from the line."""
        cores, seated = range(len(self.speeds)), []
        while len(self.held) < min(len(cores), len(self.jobs)):
            seated.append(choose([job for job in self.jobs if job not in self.held]))
            self.held[seated[-1]] = min(set(cores).difference(self.held.values()))
        return seated

    def expire(self, job: Job) -> None:
        """End a slice: the job goes to the end of the line, if there is one and more than a sliver is left."""
        rest = job.demand - job.attained_by(self.env.now)
        if job in self.held and rest > SLIVER * self.quantum_s * job.rate:
            if len(self.jobs) > len(self.held):
                del self.held[job]
                self.jobs.remove(job)
                self.jobs.append(job)
                self.look()
            else:
                self.grant(job)

    def grant(self, job: Job) -> None:
        """Give a job a quantum from now."""
        Moment(self.env, self.quantum_s, EXPIRY, lambda: self.expire(job))


def _to_the_end(choose: Callable[[list[Job], ReadableStation], Job]) -> Share:
    """Return the policy that gives a free core to the job chosen from the line, to keep until it is done."""

    def share(station: ReadableStation) -> dict[Job, float]:
        station.seat(lambda line: choose(line, station))
        return {job: station.speed(core) for job, core in station.held.items()}

    return share


def _drawn(line: list[Job], station: ReadableStation) -> Job:
    """Return a job drawn from the line; one alone needs no draw."""
    return line[math.floor(next(station.draws) * len(line)) if len(line) > 1 else 0]


def _in_turns(station: ReadableStation) -> dict[Job, float]:
    """Return rates under round robin: the head of the line gets a free core for a quantum."""
    for job in station.seat(lambda line: line[0]):
        station.grant(job)
    return {job: station.speed(core) for job, core in station.held.items()}


def _ranked(rank: Callable[[Job, float], tuple[float, ...]]) -> Share:
    """Return the policy that runs the i-th ranked job on the i-th fastest core, whatever ran before."""

    def share(station: ReadableStation) -> dict[Job, float]:
        first = sorted(station.jobs, key=lambda job: rank(job, station.env.now))[: len(station.speeds)]
        return {job: station.speed(core) for core, job in enumerate(first)}

    return share


def _evenly(station: ReadableStation) -> dict[Job, float]:
    """Return rates under processor sharing: what the busy cores do is split evenly."""
    busy = range(min(len(station.jobs), len(station.speeds)))
    return {job: sum(map(station.speed, busy)) / len(station.jobs) for job in station.jobs}


def _least_attained(station: ReadableStation) -> dict[Job, float]:
    """Return rates under foreground-background: groups of equal attained service, the least first, share the cores.

    A group takes as many cores as it has jobs, while there are any, and splits them evenly. The servers look again when
    a group catches up with the next.
    """
    now_s, k = station.env.now, len(station.speeds)
    jobs = sorted(station.jobs, key=lambda job: job.attained_by(now_s))
    rates: dict[Job, float] = {}
    while len(rates) < len(jobs):
        used = len(rates)
        level = jobs[used].attained_by(now_s)
        group = [job for job in jobs[used:] if job.attained_by(now_s) <= level + TIE_S]
        cores = range(used, min(k, used + len(group)))
        rates |= dict.fromkeys(group, sum(map(station.speed, cores)) / len(group))
    for less, more in pairwise(jobs):
        gap, closing = more.attained_by(now_s) - less.attained_by(now_s), rates[less] - rates[more]
        if gap > TIE_S and closing > 0.0:
            station.look_again(gap / closing)
    return rates


SHARES: dict[PolicyName, Share] = {
    "fcfs": _to_the_end(lambda line, _: line[0]),
    "lcfs": _to_the_end(lambda line, _: line[-1]),
    "sjf": _to_the_end(lambda line, _: min(line, key=lambda job: job.demand)),
    "random": _to_the_end(_drawn),
    "rr": _in_turns,
    "lcfs_pr": _ranked(lambda job, _: (-job.turn,)),
    "srpt": _ranked(lambda job, now_s: (job.demand - job.attained_by(now_s), job.turn)),
    "priority": _ranked(lambda job, _: (job.priority, job.turn)),
    "ps": _evenly,
    "fb": _least_attained,
}
"""At what rate each job present runs."""


def _set_out(station: ReadableStation, index: int, job: Job, delay_s: float) -> None:
    """Let a job arrive after a delay."""
    Moment(station.env, delay_s, ARRIVAL + index, lambda: station.arrive(job))


def change(station: ReadableStation, changing: ChangingRates, is_over: Callable[[], bool]) -> None:
    """Plan every step of the pace at its time, and the first look; no more of these when all is over."""
    now, numbers = {"step": 0, "seen": 0}, range(1, len(station.factor) + 1)

    def run_on() -> None:
        rates = changing.rates[now["step"], min(now["seen"], len(changing.rates[0]) - 1)].tolist()
        station.factor[:] = [rate / busy for busy, rate in zip(numbers, rates, strict=True)]
        station.look()

    def begin(step: int) -> None:
        now["step"] = step
        run_on()

    def see(number: int) -> None:
        now["seen"] = station.busy()
        run_on()
        if not is_over():
            Moment(station.env, (number + 1) * changing.look_s - station.env.now, PACE, partial(see, number + 1))

    for step, start_s in list(enumerate(changing.start_s.tolist()))[1:]:
        Moment(station.env, start_s, PACE, partial(begin, step))
    if changing.look_s < math.inf:
        Moment(station.env, 0.0, PACE, partial(see, 0))


def serve(
    policy: PolicyName,
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
    """Serve requests as `models.queues.serve.serve` does; the same arguments, unchecked, and no arrival before 0.

    Examples
    --------
    >>> serve("fcfs", [0.0, 1.0, 1.0], [3.0, 3.0, 1.0], 2).departure_s
    array([3., 4., 4.])
    """
    numbers, n = np.arange(1, servers + 1), np.size(demand_s)
    speed = np.ones(servers) if speeds is None else np.sort(np.asarray(speeds, float))[::-1]
    changing = rates if isinstance(rates, ChangingRates) else None
    stated = np.ones(servers) if rates is None else changing.rates[0, 0] if changing else np.asarray(rates, float)
    factor = stated / numbers if rates is not None else stated
    draws = iter([] if choice is None else np.asarray(choice, float).tolist())
    env = simpy.Environment()
    station = ReadableStation(env, SHARES[policy], speed.tolist(), factor.tolist(), quantum_s, draws)
    classes = np.zeros(n, int) if priority is None else np.asarray(priority)
    jobs = [Job(float(d), int(c)) for d, c in zip(np.asarray(demand_s, float), classes, strict=True)]
    parents = np.full(n, -1) if after is None else np.asarray(after)
    thinks = np.zeros(n) if think_s is None else np.asarray(think_s, float)
    for index, (job, arrival, parent, think) in enumerate(
        zip(jobs, np.asarray(arrival_s, float).tolist(), parents.tolist(), thinks.tolist(), strict=True)
    ):
        if parent < 0:
            _set_out(station, index, job, arrival)
        else:
            jobs[parent].followers.append(partial(_set_out, station, index, job, think))
    if changing is not None:
        change(station, changing, lambda: not any(math.isnan(job.departure_s) for job in jobs))
    env.run()
    return RequestStamps(
        *(np.array([getattr(job, name) for job in jobs]) for name in ("arrival_s", "start_s", "departure_s"))
    )


@dataclass(slots=True)
class RoutedMachines:
    """Machines that differ, and what the router looks up: a row for each type, what a turn owes every machine."""

    machines: list[ReadableStation]
    table: list[list[float]]
    owed: list[list[float]]

    def in_turn(self, kind: int) -> int:
        """Return the machine owed most, each being owed its weight a turn; it pays the sum."""
        owed, weight = self.owed[kind], self.table[kind]
        owed[:] = [debt + share for debt, share in zip(owed, weight, strict=True)]
        first = owed.index(max(owed))
        owed[first] -= sum(weight)
        return first

    def least_loaded(self, kind: int) -> int:
        """Return the machine with the fewest present for its weight; of equal ones the weightiest, then the first."""
        able = [i for i, weight in enumerate(self.table[kind]) if weight > 0.0]
        return min(able, key=lambda i: (len(self.machines[i].jobs) / self.table[kind][i], -self.table[kind][i]))

    def least_expected(self, kind: int) -> int:
        """Return the machine that promises the least time: predicted, stretched if not everybody has a processor."""
        return min(range(len(self.machines)), key=lambda i: self.table[kind][i] * self.machines[i].crowd(1))

    def least_added(self, kind: int) -> int:
        """Return the machine where all present together lose least by one more."""

        def lost_s(i: int) -> float:
            machine, stay_s = self.machines[i], self.table[kind][i] * self.machines[i].crowd(1)
            return stay_s + len(machine.jobs) * stay_s * (1.0 - machine.crowd(0) / machine.crowd(1))

        return min(range(len(self.machines)), key=lost_s)


def dispatch(
    router: Router, arrival_s: Floats, demand_s: Floats, rates: Sequence[ArrayLike], *, rows: Ints, table: Floats
) -> Dispatch:
    """Route requests over machines that share, as `models.queues.dispatch.dispatch` does, unchecked and from time 0.

    `rates` has a row for each machine, its work per second while 1, 2, .. processors are busy. `rows` are the types,
    and `table` has their weights or predicted times; for router fixed `rows` are the machines.

    Examples
    --------
    >>> demand_s, speeds = np.ones((3, 2)), [[1.0], [1.0]]
    >>> predicted_s = np.array([[1.0, 1.5]])
    >>> dispatch("least_expected", np.zeros(3), demand_s, speeds, rows=np.zeros(3, int), table=predicted_s).machine
    array([0, 1, 0])
    """
    env = simpy.Environment()
    machines = []
    for rate in (np.asarray(row, float) for row in rates):
        factor = (rate / np.arange(1, rate.size + 1)).tolist()
        machines.append(ReadableStation(env, _evenly, [1.0] * rate.size, factor, 1.0, iter([])))
    cluster = RoutedMachines(machines, table.tolist(), np.zeros_like(table).tolist())
    choices: dict[Router, Callable[[int], int]] = {
        "fixed": int,
        "round_robin": cluster.in_turn,
        "least_loaded": cluster.least_loaded,
        "least_expected": cluster.least_expected,
        "least_added": cluster.least_added,
    }
    jobs: list[Job] = []
    machine: list[int] = []

    def arrive(index: int) -> None:
        machine.append(choices[router](rows[index]))
        jobs.append(Job(float(demand_s[index, machine[-1]])))
        machines[machine[-1]].arrive(jobs[-1])

    for index, delay_s in enumerate(arrival_s.tolist()):
        Moment(env, delay_s, ARRIVAL + index, partial(arrive, index))
    env.run()
    return Dispatch(arrival_s, np.array([job.departure_s for job in jobs]), np.array(machine, dtype=np.int64))
