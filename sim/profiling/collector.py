"""The collector: which machine is profiled when, by whom, and with what success (Ren et al. 2010, "Collector").

In every round a collection gives each machine one random epoch, keeps the machines that it wants at their epochs, puts
these in a random order and visits every `one_in`-th from a random start. So each wanted pair of machine and epoch is
visited with probability 1 / (`one_in` × epochs of the round), whatever the machine does then, and the inverse is the
visit's weight, a whole number. The collections are processes of a discrete-event simulation whose clock counts epochs.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field

import numpy as np
import simpy

from models.arrays import DAY_S, Bools, Floats, Ints
from models.profiling.world import ProfileWorld, Watch
from models.randomness import stream
from sim.fleet.day import Day
from sim.profiling.register import Register

FLEET = "fleet"
"""Name of the collection that profiles all machines in turn."""
STATUSES = ("ok", "failed", "refused", "stopped", "down")
OK, FAILED, REFUSED, STOPPED, DOWN = range(5)
LEAST_FAILURES = 3
"""Failed visits in a round below which profiling goes on, whatever their share: small rounds have few visits."""
PLANNED_USE = 0.55
"""Share of a job's quota that the collector takes to be used when it counts on samples still to come."""


@dataclass(frozen=True, slots=True)
class VisitPlan:
    """All visits in order of time, then collection, then machine; the row is the visit's number.

    `collection` is an index into `names`, `status` into `STATUSES`; `weight` is the whole number of pairs of machine
    and epoch that the visit stands for.
    """

    names: tuple[str, ...]
    collection: Ints
    machine: Ints
    epoch: Ints
    weight: Ints
    status: Ints

    @property
    def answered(self) -> Ints:
        """Visits that were answered, by machine and epoch: the order in which `sim.fleet.arms.Visits` wants them."""
        ok = np.flatnonzero(self.status == OK)
        return ok[np.lexsort((self.epoch[ok], self.machine[ok]))]


def draws(world: ProfileWorld, name: str) -> np.random.Generator:
    """Return the collector's random generator for `name`; another collector's seed looks at the same fleet again."""
    return stream(world.profiling.collector.seed, f"collector of fleet {world.seed}: {name}")


def epochs_per_round(world: ProfileWorld) -> int:
    """Return how many epochs a round has, at least one.

    Examples
    --------
    >>> epochs_per_round(ProfileWorld())
    12
    """
    return max(1, round(world.profiling.collector.round_s / world.epoch_s))


def plan_visits(
    world: ProfileWorld, day: Day, register: Register, samples_per_s: Mapping[str, Mapping[str, float]]
) -> VisitPlan:
    """Return every visit that the collections of a world plan over the horizon, and how each went.

    Who is visited when follows from random draws, machine facts and the job management's lists alone, never from what
    machines do: that is what makes the weights inverse probabilities. A target of samples is counted in samples that
    the quota of the job lets expect, for the same reason.

    Parameters
    ----------
    world : collector and watches
    day : its stays, which the job management system lists
    register : the machines
    samples_per_s : collection to platform to samples of cycles a second that gatekeepers allow on a busy machine
    """
    clock = simpy.Environment()
    gate = Gatekeepers(register.count)
    fleet = _Collection(world, day, register, Watch(FLEET, one_in=world.profiling.collector.one_in), gate)
    collections = [fleet]
    for watch in world.profiling.collector.watches:
        collections.append(_Collection(world, day, register, watch, gate, samples_per_s[watch.name]))
    for collection in collections:
        clock.process(collection.rounds(clock))
    clock.run(until=world.epochs)
    rows = [(epoch, i, *rest) for i, collection in enumerate(collections) for epoch, *rest in collection.visits]
    epoch, of, machine, weight, status = np.array(sorted(rows), np.int64).reshape(-1, 5).T
    return VisitPlan(tuple(collection.watch.name for collection in collections), of, machine, epoch, weight, status)


class Gatekeepers:
    """The daemons that let at most one collection at a time profile their machine."""

    def __init__(self, machines: int) -> None:
        self._busy_until = np.zeros(machines, np.int64)

    def admit(self, machine: int, epoch: int) -> bool:
        """Return whether the machine may be profiled in this epoch, and if so keep others out of it."""
        if self._busy_until[machine] > epoch:
            return False
        self._busy_until[machine] = epoch + 1
        return True


@dataclass(slots=True)
class _Round:
    """A round that goes on: its visits in all, those that failed so far, and whether no machine answers."""

    visits: int
    outage: bool
    rng: np.random.Generator
    failures: int = 0


@dataclass(slots=True)
class _Collection:
    """One collection: the rounds that it makes, and the visits so far."""

    world: ProfileWorld
    day: Day
    register: Register
    watch: Watch
    gate: Gatekeepers
    samples_per_s: Mapping[str, float] = field(default_factory=dict)
    visits: list[tuple[int, int, int, int]] = field(default_factory=list)
    stopped_until: int = 0
    expected: float = 0.0
    """Samples expected of the visits so far."""

    def rounds(self, clock: simpy.Environment) -> Generator[simpy.Event, None, None]:
        """Begin one round after the other (a process of the simulation)."""
        world, watch = self.world, self.watch
        length, number = epochs_per_round(world), 0
        while clock.now < world.epochs:
            first, last = int(clock.now), min(int(clock.now) + length, world.epochs)
            begins_s = first * world.epoch_s
            if watch.start_s <= begins_s < watch.end_s and not 0 < watch.target_samples <= self.expected:
                clock.process(self._round(clock, number, first, last))
            number += 1
            yield clock.timeout(length)

    def _round(
        self, clock: simpy.Environment, number: int, first: int, last: int
    ) -> Generator[simpy.Event, None, None]:
        """Visit the round's machines, each at its epoch (a process of the simulation)."""
        rng = draws(self.world, f"round {number} of {self.watch.name}")
        machines, epochs = self._picks(rng, first, last)
        now = _Round(machines.size, self._outage(first, last), rng)
        chances = rng.random(machines.size)
        weight = self.watch.one_in * (last - first)
        for machine, epoch, chance in zip(machines.tolist(), epochs.tolist(), chances.tolist(), strict=True):
            if epoch > clock.now:
                yield clock.timeout(epoch - clock.now)
            self.visits.append((epoch, machine, weight, self._attempt(now, machine, epoch, chance)))

    def _picks(self, rng: np.random.Generator, first: int, last: int) -> tuple[Ints, Ints]:
        """Return the machines of a round and their epochs, in order of time."""
        register, one_in = self.register, self.watch.one_in
        epoch = rng.integers(first, last, register.count)
        order = rng.permutation(register.count)
        order = order[self._wanted(epoch)[order]]
        chosen = order[int(rng.integers(one_in)) :: one_in]
        chosen = chosen[np.lexsort((chosen, epoch[chosen]))]
        return chosen, epoch[chosen]

    def _wanted(self, epoch: Ints) -> Bools:
        """Return which machines the collection is about, each at its own epoch."""
        register, watch = self.register, self.watch
        every = np.arange(register.count)
        wanted = np.full(register.count, True)
        if watch.platform:
            wanted &= np.array(register.platform_names)[register.platform_at(every, epoch)] == watch.platform
        if watch.kernel:
            wanted &= np.array(register.kernel_names)[register.kernel_at(every, epoch)] == watch.kernel
        if watch.job:
            wanted &= quota_share(self.day, watch.job, epoch) > 0
        return wanted

    def _outage(self, first: int, last: int) -> bool:
        begin_s, end_s = first * self.world.epoch_s, last * self.world.epoch_s
        return any(begin_s <= time_s < end_s for time_s in self.world.profiling.collector.outage_s)

    def _attempt(self, now: _Round, machine: int, epoch: int, chance: float) -> int:
        """Return how a visit went; too many failures stop the collection for the rest of the day."""
        collector, epoch_s = self.world.profiling.collector, self.world.epoch_s
        if epoch < self.stopped_until:
            return STOPPED
        if not self.gate.admit(machine, epoch):
            return REFUSED
        if self.register.down(machine, epoch):
            return DOWN
        if not (now.outage or chance < collector.failure_share):
            self.expected += self._promise(machine, epoch) if self.watch.target_samples else 0.0
            return OK
        now.failures += 1
        if now.failures >= max(LEAST_FAILURES, collector.stop_failures * now.visits):
            self.stopped_until = round((epoch * epoch_s // DAY_S + 1.0) * DAY_S / epoch_s)
        return FAILED

    def _promise(self, machine: int, epoch: int) -> float:
        """Return the samples of cycles that a visit may be expected to bring of the job."""
        register, collector = self.register, self.world.profiling.collector
        where, when = np.array([machine]), np.array([epoch])
        platform = register.platform_names[int(register.platform_at(where, when)[0])]
        share = 1.0
        if self.watch.job:
            share = float(quota_share(self.day, self.watch.job, np.full(register.count, epoch))[machine])
        return PLANNED_USE * share * self.samples_per_s[platform] * collector.seconds_per_event


def quota_share(day: Day, job: str, epoch: Ints) -> Floats:
    """Return the share of each machine's hardware threads that is the quota of a job there, by the job lists.

    Parameters
    ----------
    day : its stays
    job : name of the job; one that does not exist is nowhere
    epoch : (M,) array, when to look at each machine

    Returns
    -------
    (M,) array
    """
    timeline, machines = day.timeline, day.machines.count
    if job not in day.jobs.names:
        return np.zeros(machines)
    number = day.jobs.names.index(job)
    stays = np.flatnonzero(timeline.job == number)
    when = epoch[timeline.machine[stays]]
    present = stays[(timeline.start_epoch[stays] <= when) & (when < timeline.end_epoch[stays])]
    count = np.bincount(timeline.machine[present], minlength=machines)
    return np.asarray(count * day.jobs.instance_quota_vcpu[number] / day.machines.vcpus)
