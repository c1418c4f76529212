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
from numpy.typing import NDArray

from models.arrays import DAY_S, Floats, Ints
from models.fleet.jobs import Jobs
from models.fleet.machines import Machines
from models.fleet.world import World
from models.randomness import stream
from sim.fleet import placement
from sim.fleet.capacity import Rules, State, new_jobs, new_machines, new_state, with_room
from sim.fleet.rollout import RollOut, plan_roll_out, roll_out
from sim.fleet.timeline import ENDINGS, KINDS, Timeline, from_placement

__all__ = ["ENDINGS", "KINDS", "Timeline", "from_placement", "plan_day"]


Steps = Generator[simpy.Event, None, None]
Rows = tuple[Floats, Ints, Ints, Ints]


def plan_day(world: World, machines: Machines, jobs: Jobs) -> Timeline:
    """Return who runs where and when over the horizon; the same residences for any feature and roll-out.

    Parameters
    ----------
    world : seed, horizon, epoch, scheduler, churn and the feature's roll-out
    machines : M machines with CPU and memory capacity
    jobs : J jobs with instances, CPU quota and memory request of each instance
    """
    plane = _open(world, machines, jobs)
    rollout = plan_roll_out(world, machines, len(plane.state.instances))
    plane.retry(0.0, (placement.EVERYONE,), plane.rules._replace(preemption=False))
    clock = simpy.Environment()
    clock.process(_tend_instances(clock, plane))
    for kind in ("drain", "failure"):
        clock.process(_take_down(clock, plane, kind, _outages(world, kind, machines.count)))
    clock.process(roll_out(clock, rollout))
    clock.run(until=world.horizon_s)
    plane.catch_up(world.horizon_s)
    return _timeline(world, plane.hand_over(), plane, rollout)


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


@dataclass(slots=True)
class _Plane:
    """The control plane at work: what the scheduler knows, what is to come and what happened to machines."""

    rules: Rules
    state: State
    churn: _Churn
    boundary_s: Floats
    done: int = 0
    outages: list[tuple[str, float, int]] = field(default_factory=list)

    def catch_up(self, now_s: float) -> None:
        """Let everything happen to instances that is due by now."""
        due = slice(self.done, int(np.searchsorted(self.churn.time_s, now_s, side="right")))
        time_s = self.churn.time_s[due]
        self.state = with_room(self.state, len(time_s))
        placement.run_events(self.state, self.rules, time_s, self.churn.what[due], self.churn.pick[due])
        self.done += len(time_s)

    def retry(self, now_s: float, groups: tuple[int, ...], rules: Rules) -> None:
        """Try the pending instances of each group in turn."""
        for group in groups:
            self.state = with_room(self.state, int(self.state.total["pending"][0]))
            placement.retry(self.state, rules, group, now_s)

    def empty(self, machine: int, now_s: float, kind: str) -> bool:
        """Take the machine down and move its instances; False if it is down already."""
        if not self.state.machines["up"][machine]:
            return False
        self.catch_up(now_s)
        self.state.machines["up"][machine] = False
        leaving = placement.residents(self.state, machine)
        self.state = with_room(self.state, len(leaving))
        placement.move(self.state, self.rules, leaving, now_s, ENDINGS.index(kind))
        self.outages.append((kind, now_s, machine))
        return True

    def bring_back(self, machine: int, now_s: float, kind: str) -> None:
        """Let the machine take instances again."""
        self.catch_up(now_s)
        self.state.machines["up"][machine] = True
        self.outages.append((kind, now_s, machine))

    def hand_over(self) -> State:
        """Give the state away, without the pairs; clock and processes refer to each other and would keep it alive."""
        state = self.state
        self.state = state._replace(**{name: part[:0].copy() for name, part in state._asdict().items()})
        return state._replace(pairs=self.state.pairs)


def _tend_instances(clock: simpy.Environment, plane: _Plane) -> Steps:
    for boundary_s in plane.boundary_s[1:-1].tolist():
        yield clock.timeout(boundary_s - clock.now)
        plane.catch_up(boundary_s)
        if plane.state.total["pending"][0] > 0:
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


def _open(world: World, machines: Machines, jobs: Jobs) -> _Plane:
    """Return the control plane at time 0: nothing is placed, all instances are pending in random order."""
    scheduler, churn = world.scheduler, _churn(world, jobs)
    racks = np.unique(machines.rack, return_inverse=True)[1]
    domain = racks if scheduler.spread == "rack" else np.arange(machines.count)
    state = new_state(
        new_machines(machines.vcpus, machines.memory_bytes, domain),
        new_jobs(jobs.instance_quota_vcpu, jobs.instance_memory_bytes, jobs.latency_critical, jobs.instances),
        churn.arriving,
    )
    stream(world.seed, "initial order").shuffle(state.pending[: state.total["pending"][0]])
    rules = Rules(
        policy=placement.POLICIES.index(scheduler.policy),
        candidates=scheduler.candidates,
        spread=scheduler.spread != "none",
        preemption=scheduler.preemption,
        key=stream(world.seed, "placement").integers(2**64, dtype=np.uint64),
    )
    state = with_room(state, int(1.2 * (jobs.instances.sum() + len(churn.time_s))))
    boundary_s: Floats = np.arange(world.epochs + 1) * np.float64(world.epoch_s)
    return _Plane(rules, state, churn, boundary_s)


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


def _timeline(world: World, state: State, plane: _Plane, rollout: RollOut) -> Timeline:
    stay = state.stays[: state.total["stays"][0]]
    instance, start_s = stay["instance"].astype(np.int64), stay["start_s"].copy()
    end_s = np.minimum(stay["end_s"], world.horizon_s)
    event = _events(state, plane, rollout)
    return Timeline(
        instance=instance,
        job=state.instances["job"][instance].astype(np.int64),
        shard=state.instances["shard"][instance].astype(np.int64),
        machine=stay["machine"].astype(np.int64),
        start_s=start_s,
        end_s=end_s,
        start_epoch=_first_epoch(plane.boundary_s, start_s),
        end_epoch=_first_epoch(plane.boundary_s, end_s),
        ended_by=stay["ended_by"].astype(np.int64),
        feature_from_s=rollout.machine_from_s,
        instance_feature_from_s=rollout.instance_from_s,
        event_time_s=event[0],
        event_kind=event[1],
        event_machine=event[2],
        event_instance=event[3],
    )


def _first_epoch(boundary_s: Floats, time_s: Floats) -> Ints:
    """Return the first epoch that begins at or after each time; the horizon belongs to the last boundary."""
    return np.minimum(np.searchsorted(boundary_s, time_s), len(boundary_s) - 1)


def _events(state: State, plane: _Plane, rollout: RollOut) -> tuple[Floats, Ints, Ints, Ints]:
    """Return time, kind, machine and instance of everything that happened, in order of time."""
    parts = [*_instance_events(state, plane.churn), *_machine_events(plane.outages), *_roll_out_events(rollout)]
    time_s = np.concatenate([part[0] for part in parts])
    kind, machine, instance = (np.concatenate([part[k] for part in parts]) for k in (1, 2, 3))
    order = np.lexsort((instance, machine, kind, time_s))
    return time_s[order], kind[order], machine[order], instance[order]


def _instance_events(state: State, churn: _Churn) -> Iterator[Rows]:
    arrival_s = churn.time_s[churn.what == placement.ARRIVES]
    yield _rows("arrival", arrival_s, instance=np.arange(len(state.instances) - len(arrival_s), len(state.instances)))
    stays = state.stays[: state.total["stays"][0]]
    for kind in ("exit", "restart", "preemption"):
        ended = stays[stays["ended_by"] == ENDINGS.index(kind)]
        yield _rows(kind, ended["end_s"], ended["machine"], ended["instance"])


def _machine_events(outages: list[tuple[str, float, int]]) -> Iterator[Rows]:
    for kind in ("drain", "drain_end", "failure", "repair"):
        mine = [(time_s, machine) for name, time_s, machine in outages if name == kind]
        yield _rows(kind, np.array([row[0] for row in mine]), np.array([row[1] for row in mine], np.int64))


def _roll_out_events(rollout: RollOut) -> Iterator[Rows]:
    machine, instance = (np.flatnonzero(~np.isnan(s)) for s in (rollout.machine_from_s, rollout.instance_from_s))
    yield _rows("rollout", rollout.machine_from_s[machine], machine=machine)
    yield _rows("rollout", rollout.instance_from_s[instance], instance=instance)


def _rows(kind: str, time_s: Floats, machine: Ints | None = None, instance: Ints | None = None) -> Rows:
    nobody = np.full(len(time_s), -1)
    return (
        time_s,
        np.full(len(time_s), KINDS.index(kind)),
        nobody if machine is None else machine,
        nobody if instance is None else instance,
    )
