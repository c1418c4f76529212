"""The control plane: what happens to instances and machines over a day, and who therefore runs where and when.

SimPy drives one process per stream of events (instances, drains, failures), each with times drawn beforehand
from a random stream of its own name. Arrivals, exits and restarts between two wake-ups run in one compiled
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

Who gets the feature, and when, is drawn here too; it shares no random draw with placement and changes no residence.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np
import simpy
from numpy.typing import NDArray

from models.arrays import DAY_S, Bools, Floats, Ints
from models.fleet.inventory import Jobs, Machines
from models.fleet.world import World
from models.randomness import stream
from sim.fleet import placement
from sim.fleet.placement import ENDINGS, Rules, State, new_jobs, new_machines, new_state, with_room
from sim.fleet.timeline import KINDS, Timeline

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


@dataclass(frozen=True, slots=True)
class RollOut:
    """Since when each machine and each instance has the feature, in seconds; NaN: not within the horizon."""

    machine_from_s: Floats
    instance_from_s: Floats


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
        new_machines(machines.vcpus * world.fleet.overcommit, machines.memory_bytes, domain),
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
    kind = np.concatenate([part[1] for part in parts])
    machine = np.concatenate([part[2] for part in parts])
    instance = np.concatenate([part[3] for part in parts])
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


def plan_roll_out(world: World, machines: Machines, instances: int) -> RollOut:
    """Return who gets the feature when: equal waves of machines, racks or instances drawn at random.

    Parameters
    ----------
    world : seed, horizon and feature; without a feature there are no waves
    machines : M machines and their racks
    instances : how many instances there are, those that arrive later included
    """
    plan = RollOut(np.full(machines.count, np.nan), np.full(instances, np.nan))
    if world.feature is None:
        return plan
    rollout = world.feature.rollout
    by_instance = rollout.unit == "instance"
    unit = np.arange(instances) if by_instance else _unit(world, machines)
    chosen = chosen_units(world, unit)
    if world.periods:
        first, takes_part = np.argmax(plan_crossover(world, machines), axis=1), np.isin(unit, chosen)
        waves = [(world.periods[k][0], takes_part & (first == k)) for k in (0, 1)]
    else:
        parts = enumerate(np.array_split(chosen, rollout.waves))
        waves = [(rollout.start_s + number * rollout.interval_s, np.isin(unit, part)) for number, part in parts]
    for time_s, switched in waves:
        if time_s < world.horizon_s:
            (plan.instance_from_s if by_instance else plan.machine_from_s)[switched] = time_s
    return plan


def plan_crossover(world: World, machines: Machines, number: int = 0) -> Bools:
    """Return who is scheduled to have the feature in which period of the world's crossover.

    Of two periods after each other exactly one is with the feature, and a fair coin of the machine's (or rack's) own
    for each such pair says which. Power domains are few, so of those a random half begins with it. Machines that take
    no part never have it.

    Parameters
    ----------
    world : seed, and a feature whose roll-out says periods and share
    machines : M machines, their racks and power domains
    number : of the schedule, 0 is the recorded one; odd ones mirror the one before, others are another draw

    Returns
    -------
    (M, P) array, P the length of `world.periods`
    """
    unit, pairs, drawn = _unit(world, machines), len(world.periods) // 2, 2 * (number // 2)
    first = stream(world.seed, f"crossover {drawn}").random((int(unit.max()) + 1, pairs))[unit] < 0.5
    if world.feature is not None and world.feature.rollout.unit == "domain":
        first = _halves(world, drawn, int(unit.max()) + 1, pairs)[unit]
    first = ~first if number % 2 else first
    on = np.stack([first, ~first], axis=2).reshape(unit.size, 2 * pairs)
    return np.asarray(on & np.isin(unit, chosen_units(world, unit))[:, None])


def acting(world: World, scheduled: Bools) -> Bools:
    """Return in which epochs the feature acts on whom: `settle_s` after each switch the state before it still does.

    Parameters
    ----------
    world : epochs, periods and the feature's `settle_s`
    scheduled : (M, P) array, who is to have it in which period; outside of periods nobody is

    Returns
    -------
    (M, epochs) array; what is on at time 0 acts from then on
    """
    of_epoch, settle_s = np.full(world.epochs, -1), world.feature.settle_s if world.feature else 0.0
    for k, (start_s, end_s) in enumerate(world.periods):
        of_epoch[round(start_s / world.epoch_s) : round(end_s / world.epoch_s)] = k
    before = np.maximum(np.arange(world.epochs) - round(settle_s / world.epoch_s), 0)
    none = np.zeros((len(scheduled), 1), np.bool_)
    return np.ascontiguousarray(np.hstack([scheduled, none])[:, of_epoch[before]])


def _halves(world: World, number: int, units: int, pairs: int) -> Bools:
    """Return which units are on first in each pair, (units, pairs): a random half, of an odd number either half."""
    rng = stream(world.seed, f"crossover {number}")
    order = np.argsort(rng.random((units, pairs)), axis=0, kind="stable")
    half: Bools = np.argsort(order, axis=0, kind="stable") < (units + rng.integers(0, 2, pairs)) // 2
    return half


def _unit(world: World, machines: Machines) -> Ints:
    """Return to which unit of the roll-out each machine belongs: itself, its rack or its power domain."""
    unit = "machine" if world.feature is None else world.feature.rollout.unit
    return {"rack": machines.rack, "domain": machines.power_domain}.get(unit, np.arange(machines.count))


def chosen_units(world: World, unit: Ints) -> Ints:
    """Return the units that get the feature, in random order, of those that machines (or instances) belong to."""
    units, share = np.unique(unit), world.feature.rollout.share if world.feature is not None else 0.0
    return stream(world.seed, "roll-out").permutation(units)[: round(share * len(units))]
