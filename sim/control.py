"""The control plane: what happens to instances and machines over a day, and who therefore runs where and when.

SimPy drives one process per stream of events (instances, drains, failures, roll-out), each with times drawn
beforehand from a random stream of its own name. Arrivals, exits and restarts between two wake-ups run in one compiled
call, in order of their own times, so that nothing depends on how often the processes wake.

What happens to whom:

- at time 0 all instances are placed in random order, without eviction;
- an arrival is a new instance of a job drawn in proportion to the instances asked for; it serves the shard that its
  job lost last by an exit, else a new one; arrivals are as frequent as exits;
- exits and restarts hit a running instance drawn uniformly; a restarted one is placed anew at once;
- drains and failures hit a machine drawn uniformly (one that is down already: nothing happens); its instances are
  placed elsewhere at once, latency-critical ones first; it comes back after an exponential time;
- what fits nowhere waits and is tried again at every epoch boundary, latency-critical ones first, in order of waiting;
- a latency-critical instance that fits nowhere is placed as if no best-effort instance ran anywhere, and evicts the
  newest of them there until it fits; the evicted wait.

The roll-out shares no random draw with placement and changes no residence.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np
import simpy
from numpy.typing import ArrayLike, NDArray

from models.jobs import Jobs
from models.machines import Floats, Ints, Machines
from models.randomness import stream
from models.scenario import World
from sim import placement
from sim.placement import ENDINGS

__all__ = ["ENDINGS", "KINDS", "Timeline", "from_placement", "plan_day"]

KINDS = ("arrival", "exit", "restart", "drain", "drain_end", "failure", "repair", "preemption", "rollout")
"""What can happen; `Timeline.event_kind` holds the index."""

DAY_S = 86400.0

Steps = Generator[simpy.Event, None, None]
Rows = tuple[Floats, Ints, Ints, Ints]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Who runs where and when, decided from requests alone; and when each machine gets the feature.

    The first nine arrays have one entry per residence, in order of their starts. `start_s` and `end_s` are event
    times, the horizon at most; epochs ``start_epoch <= epoch < end_epoch`` are those that begin during the stay.
    `shard` counts within the job; `ended_by` is an index into `ENDINGS`. `feature_from_s` has one entry per machine
    and `instance_feature_from_s` one per instance; NaN: never. `event_*` are the rows of the events table in order of
    time; `event_kind` is an index into `KINDS`, −1 stands for no machine or no instance.
    """

    instance: Ints
    job: Ints
    shard: Ints
    machine: Ints
    start_s: Floats
    end_s: Floats
    start_epoch: Ints
    end_epoch: Ints
    ended_by: Ints
    feature_from_s: Floats
    instance_feature_from_s: Floats
    event_time_s: Floats
    event_kind: Ints
    event_machine: Ints
    event_instance: Ints


def plan_day(world: World, machines: Machines, jobs: Jobs) -> Timeline:
    """Return who runs where and when over the horizon; the same residences for any feature and roll-out.

    Parameters
    ----------
    world : seed, horizon, epoch, scheduler, churn and the feature's roll-out
    machines : M machines with CPU and memory capacity
    jobs : J jobs with instances, CPU quota and memory request of each instance

    Examples
    --------
    >>> from models.jobs import build_jobs
    >>> from models.machines import build_machines
    >>> from models.scenario import Fleet, Population
    >>> world = World(fleet=Fleet(machines=20), population=Population(jobs=60, common_jobs=50))
    >>> machines = build_machines(world)
    >>> jobs = build_jobs(world, machines)
    >>> timeline = plan_day(world, machines, jobs)
    >>> bool((timeline.start_epoch == 0).sum() == jobs.instances.sum()), ENDINGS[timeline.ended_by[-1]]
    (True, 'horizon')
    """
    plane = _open(world, machines, jobs)
    rollout = _roll_out_plan(world, machines, len(plane.state.instances))
    plane.retry(0.0, (placement.EVERYONE,), plane.rules._replace(preemption=False))
    clock = simpy.Environment()
    clock.process(_tend_instances(clock, plane))
    for kind in ("drain", "failure"):
        clock.process(_take_down(clock, plane, kind, _outages(world, kind, machines.count)))
    clock.process(_roll_out(clock, rollout))
    clock.run(until=world.horizon_s)
    plane.catch_up(world.horizon_s)
    return _timeline(world, plane, rollout)


def from_placement(world: World, machines_count: int, job: Ints, machine: Ints, shard: Ints | None = None) -> Timeline:
    """Return the timeline in which the given instances run on the given machines over the whole horizon.

    Parameters
    ----------
    world : horizon and epoch
    machines_count : number of machines
    job, machine : (I,) arrays, each instance's job and machine
    shard : (I,) array; 0, 1, 2, … within each job if not given

    Raises
    ------
    ValueError
        If the lengths differ or a machine does not exist.

    Examples
    --------
    >>> from_placement(World(), 2, job=np.array([5, 5, 3]), machine=np.array([0, 1, 1])).shard
    array([0, 1, 0])
    """
    shard = _order_within(job) if shard is None else shard
    if not len(job) == len(machine) == len(shard):
        raise ValueError(f"job, machine and shard have {len(job)}, {len(machine)} and {len(shard)} entries")
    if len(machine) and not 0 <= machine.min() <= machine.max() < machines_count:
        raise ValueError(f"machines are 0 to {machines_count - 1}, got {machine.min()} to {machine.max()}")
    count = len(job)
    return Timeline(
        instance=np.arange(count),
        job=job.astype(np.int64),
        shard=shard.astype(np.int64),
        machine=machine.astype(np.int64),
        start_s=np.zeros(count),
        end_s=np.full(count, world.horizon_s),
        start_epoch=np.zeros(count, np.int64),
        end_epoch=np.full(count, world.epochs),
        ended_by=np.full(count, placement.HORIZON),
        feature_from_s=np.full(machines_count, np.nan),
        instance_feature_from_s=np.full(count, np.nan),
        event_time_s=np.zeros(0),
        event_kind=np.zeros(0, np.int64),
        event_machine=np.zeros(0, np.int64),
        event_instance=np.zeros(0, np.int64),
    )


@dataclass(frozen=True, slots=True)
class _Churn:
    """What happens to instances from outside, in order of time; `arriving` is the job of each arrival."""

    time_s: Floats
    what: NDArray[np.int8]
    pick: Floats
    arriving: Ints


@dataclass(frozen=True, slots=True)
class _Outages:
    """When which machine is taken down and for how long."""

    time_s: Floats
    machine: Ints
    length_s: Floats


@dataclass(frozen=True, slots=True)
class _RollOut:
    """When which machines or instances are to have the feature, and since when they have it (NaN: not yet)."""

    waves: tuple[tuple[float, Ints], ...]
    by_instance: bool
    machine_from_s: Floats
    instance_from_s: Floats


@dataclass(slots=True)
class _Plane:
    """The control plane at work: what the scheduler knows, what is to come and what happened to machines."""

    rules: placement.Rules
    state: placement.State
    churn: _Churn
    boundary_s: Floats
    done: int = 0
    outages: list[tuple[str, float, int]] = field(default_factory=list)

    def catch_up(self, now_s: float) -> None:
        """Let everything happen to instances that is due by now."""
        due = slice(self.done, int(np.searchsorted(self.churn.time_s, now_s, side="right")))
        time_s = self.churn.time_s[due]
        self.state = placement.with_room(self.state, len(time_s))
        placement.run_events(self.state, self.rules, time_s, self.churn.what[due], self.churn.pick[due])
        self.done += len(time_s)

    def retry(self, now_s: float, groups: tuple[int, ...], rules: placement.Rules) -> None:
        """Try the pending instances of each group in turn."""
        for group in groups:
            self.state = placement.with_room(self.state, int(self.state.totals[placement.PENDING]))
            placement.retry(self.state, rules, group, now_s)

    def empty(self, machine: int, now_s: float, kind: str) -> bool:
        """Take the machine down and move its instances; False if it is down already."""
        if not self.state.machines["up"][machine]:
            return False
        self.catch_up(now_s)
        self.state = placement.with_room(self.state, int(self.state.totals[placement.RUNNING]))
        placement.empty(self.state, self.rules, machine, now_s, ENDINGS.index(kind))
        self.outages.append((kind, now_s, machine))
        return True

    def bring_back(self, machine: int, now_s: float, kind: str) -> None:
        """Let the machine take instances again."""
        self.catch_up(now_s)
        self.state.machines["up"][machine] = True
        self.outages.append((kind, now_s, machine))


def _tend_instances(clock: simpy.Environment, plane: _Plane) -> Steps:
    for boundary_s in plane.boundary_s[1:-1].tolist():
        yield clock.timeout(boundary_s - clock.now)
        plane.catch_up(boundary_s)
        if plane.state.totals[placement.PENDING] > 0:
            plane.retry(boundary_s, (1, 0), plane.rules)


def _take_down(clock: simpy.Environment, plane: _Plane, kind: str, outages: _Outages) -> Steps:
    columns = (outages.time_s.tolist(), outages.machine.tolist(), outages.length_s.tolist())
    for time_s, machine, length_s in zip(*columns, strict=True):
        yield clock.timeout(max(time_s - clock.now, 0.0))
        if plane.empty(machine, time_s, kind):
            clock.process(_bring_back(clock, plane, kind, machine, time_s + length_s))


def _bring_back(clock: simpy.Environment, plane: _Plane, kind: str, machine: int, time_s: float) -> Steps:
    yield clock.timeout(max(time_s - clock.now, 0.0))
    plane.bring_back(machine, time_s, {"drain": "drain_end", "failure": "repair"}[kind])


def _roll_out(clock: simpy.Environment, rollout: _RollOut) -> Steps:
    from_s = rollout.instance_from_s if rollout.by_instance else rollout.machine_from_s
    for time_s, chosen in rollout.waves:
        yield clock.timeout(max(time_s - clock.now, 0.0))
        from_s[chosen] = time_s


def _open(world: World, machines: Machines, jobs: Jobs) -> _Plane:
    """Return the control plane at time 0: nothing is placed, all instances are pending in random order."""
    scheduler, churn = world.scheduler, _churn(world, jobs)
    racks = np.unique(machines.rack, return_inverse=True)[1]
    domain = racks if scheduler.spread == "rack" else np.arange(machines.count)
    state = placement.new_state(
        placement.new_machines(machines.vcpus, machines.memory_bytes, domain),
        placement.new_jobs(jobs.instance_quota_vcpu, jobs.instance_memory_bytes, jobs.latency_critical, jobs.instances),
        churn.arriving,
    )
    stream(world.seed, "initial order").shuffle(state.pending[: state.totals[placement.PENDING]])
    rules = placement.Rules(
        policy=placement.POLICIES.index(scheduler.policy),
        candidates=scheduler.candidates,
        spread=scheduler.spread != "none",
        preemption=scheduler.preemption,
        key=stream(world.seed, "placement").integers(2**64, dtype=np.uint64),
    )
    state = placement.with_room(state, int(1.2 * (jobs.instances.sum() + len(churn.time_s))))
    return _Plane(rules, state, churn, np.arange(world.epochs + 1) * world.epoch_s)


def _poisson(rng: np.random.Generator, rate_per_day: float, horizon_s: float) -> Floats:
    """Return the times of a Poisson process: a Poisson number of uniform points, sorted."""
    return np.sort(rng.uniform(0.0, horizon_s, rng.poisson(rate_per_day * horizon_s / DAY_S)))


def _churn(world: World, jobs: Jobs) -> _Churn:
    """Return the merged streams of arrivals, exits and restarts."""
    exits, restarts = world.churn.exits_per_instance_day, world.churn.restarts_per_instance_day
    asked_for = int(jobs.instances.sum())
    times, picks = [], []
    for name, rate in (("arrivals", exits), ("exits", exits), ("restarts", restarts)):
        rng = stream(world.seed, name)
        times.append(_poisson(rng, rate * asked_for, world.horizon_s))
        picks.append(rng.random(len(times[-1])))
    order = np.argsort(np.concatenate(times), kind="stable")
    what = np.repeat(np.arange(3, dtype=np.int8), [len(part) for part in times])
    last = np.searchsorted(np.cumsum(jobs.instances), picks[0] * asked_for, side="right")
    return _Churn(np.concatenate(times)[order], what[order], np.concatenate(picks)[order], last)


def _outages(world: World, kind: str, machines: int) -> _Outages:
    """Return the drains or failures that are to come."""
    churn, rng = world.churn, stream(world.seed, f"{kind}s")
    rate, mean_s = {
        "drain": (churn.drains_per_machine_day, churn.drain_s),
        "failure": (churn.failures_per_machine_day, churn.repair_s),
    }[kind]
    time_s = _poisson(rng, rate * machines, world.horizon_s)
    return _Outages(time_s, rng.integers(machines, size=len(time_s)), rng.exponential(mean_s, len(time_s)))


def _roll_out_plan(world: World, machines: Machines, instances: int) -> _RollOut:
    """Return who is to get the feature when: equal waves of machines, racks or instances in random order."""
    machine_from_s, instance_from_s = np.full(machines.count, np.nan), np.full(instances, np.nan)
    if world.feature is None:
        return _RollOut((), False, machine_from_s, instance_from_s)
    rollout = world.feature.rollout
    unit = {"machine": np.arange(machines.count), "rack": machines.rack, "instance": np.arange(instances)}[rollout.unit]
    names = np.unique(unit)
    chosen = stream(world.seed, "roll-out").permutation(names)[: round(rollout.share * len(names))]
    waves = tuple(
        (rollout.start_s + wave * rollout.interval_s, np.flatnonzero(np.isin(unit, part)))
        for wave, part in enumerate(np.array_split(chosen, rollout.waves))
    )
    return _RollOut(waves, rollout.unit == "instance", machine_from_s, instance_from_s)


def _timeline(world: World, plane: _Plane, rollout: _RollOut) -> Timeline:
    state, boundary_s = plane.state, plane.boundary_s
    stay = state.stays[: state.totals[placement.STAYS]]
    instance, start_s = stay["instance"].astype(np.int64), stay["start_s"].copy()
    end_s = np.minimum(stay["end_s"], world.horizon_s)
    event = _events(plane, rollout)
    return Timeline(
        instance=instance,
        job=state.instances["job"][instance].astype(np.int64),
        shard=state.instances["shard"][instance].astype(np.int64),
        machine=stay["machine"].astype(np.int64),
        start_s=start_s,
        end_s=end_s,
        start_epoch=np.minimum(np.searchsorted(boundary_s, start_s), world.epochs),
        end_epoch=np.minimum(np.searchsorted(boundary_s, end_s), world.epochs),
        ended_by=stay["ended_by"].astype(np.int64),
        feature_from_s=rollout.machine_from_s,
        instance_feature_from_s=rollout.instance_from_s,
        event_time_s=event[0],
        event_kind=event[1],
        event_machine=event[2],
        event_instance=event[3],
    )


def _events(plane: _Plane, rollout: _RollOut) -> tuple[Floats, Ints, Ints, Ints]:
    """Return time, kind, machine and instance of everything that happened, in order of time."""
    parts = [*_instance_events(plane), *_machine_events(plane.outages), *_roll_out_events(rollout)]
    time_s, kind, machine, instance = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((instance, machine, kind, time_s))
    return time_s[order], kind[order], machine[order], instance[order]


def _instance_events(plane: _Plane) -> Iterator[Rows]:
    state, churn = plane.state, plane.churn
    arrival_s = churn.time_s[churn.what == placement.ARRIVES]
    yield _rows("arrival", arrival_s, instance=np.arange(len(state.instances) - len(arrival_s), len(state.instances)))
    stays = state.stays[: state.totals[placement.STAYS]]
    for kind in ("exit", "restart", "preemption"):
        ended = stays[stays["ended_by"] == ENDINGS.index(kind)]
        yield _rows(kind, ended["end_s"], ended["machine"], ended["instance"])


def _machine_events(outages: list[tuple[str, float, int]]) -> Iterator[Rows]:
    for kind in ("drain", "drain_end", "failure", "repair"):
        mine = [(time_s, machine) for name, time_s, machine in outages if name == kind]
        yield _rows(kind, np.array([row[0] for row in mine]), np.array([row[1] for row in mine]))


def _roll_out_events(rollout: _RollOut) -> Iterator[Rows]:
    machine, instance = (np.flatnonzero(~np.isnan(s)) for s in (rollout.machine_from_s, rollout.instance_from_s))
    yield _rows("rollout", rollout.machine_from_s[machine], machine=machine)
    yield _rows("rollout", rollout.instance_from_s[instance], instance=instance)


def _rows(kind: str, time_s: Floats, machine: ArrayLike = -1, instance: ArrayLike = -1) -> Rows:
    count = len(time_s)
    columns = (np.broadcast_to(np.asarray(c, np.int64), count) for c in (KINDS.index(kind), machine, instance))
    return np.asarray(time_s, np.float64), *columns


def _order_within(group: Ints) -> Ints:
    """Return each entry's place among the entries of its group."""
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], group[order])
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - first
    return place
