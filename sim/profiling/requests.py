"""Services whose requests are served one by one on a simulated fleet's machines, and counters that follow from that.

How one event stream feeds counters, profiles and request logs. The fleet's physics runs first, with a service's load as
a smooth stream of instructions. It says, epoch by epoch, what an instruction takes on each machine among its neighbours
(frequency, cycles and misses per instruction) and how many instructions the service is asked for. Requests are then
drawn, as many in the mean as these instructions are, and served at that pace. In the time that counts instructions
instead of seconds the pace is constant, so the queues of `models.queues` serve them there, and every stamp is carried
back; a request that spans epochs is served at each one's pace.

On the event-driven machine (`simulation: events`) requests push back. They are drawn before, as many in the mean as the
service's load asks for at the pace that it is stated for, and each is served while it is there: an instance keeps as
many threads busy as its servers work, so that bursts heat the machine, take cache and slow neighbours, and every stamp
is what came of it (`sim.fleet.stations`). There alone an instance may turn requests away. What follows here is for
epochs.

How long a service's servers were busy follows from the stamps. All that the instance did in an epoch (cycles,
instructions, misses, CPU time) is scaled to that busy time, in whatever the physics returned: counters, sums of
machines and of the fleet, traces, visits of the profiler. So every table is of the requests that came. What neighbours
and power felt is the smooth stream, which the requests follow in the mean. An instance's log ends with its stay:
requests that are there then have no departure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from models.arrays import Floats, Ints
from models.errors import InputError
from models.fleet.inventory import REFERENCE_FREQUENCY_HZ
from models.profiling.served import Served
from models.profiling.world import ProfileWorld
from models.queues.serve import serve
from models.randomness import stream
from sim.fleet import slots
from sim.fleet.arms import Block, Visits
from sim.fleet.day import PACE_MARGIN, Day, load_steps, window_of_epoch
from sim.fleet.layout import REFUSED_S
from sim.fleet.stations import StationLoad
from sim.queues.distributions import gamma
from sim.queues.observe import present, utilisation
from sim.recorder import Values

Columns = dict[str, Values]

CPU_S, INSTRUCTIONS = 3, 1
"""Columns of a block's traces."""
_SUMMED = ((slots.E_CYCLES, 0), (slots.E_INSTRUCTIONS, 1), (slots.E_MISSES, 2), (slots.E_CPU_S, 3))
"""Columns of a domain's epochs, and of a trace, of the same counter."""
_COUNTED = [c - slots.CYCLES for c in (slots.CYCLES, slots.INSTRUCTIONS, slots.MISSES, slots.CPU_S, slots.CORE_CYCLES)]
"""Where a trace's columns are among the sums of a counter row."""
_REQUESTS = slots.REQUESTS - slots.CYCLES


@dataclass(frozen=True, slots=True, eq=False)
class StayLog:
    """Requests of one stay of an instance: (n,) arrays in order of arrival, and what its servers did.

    Examples
    --------
    >>> stay = ServedStay(np.array([0.0, 300.0, 600.0]), np.array([1e12, 1e12]), np.array([5e-10, 5e-10]), 1e9, 2)
    >>> log = serve_stay(stay, Served("shop"), 7, 0)
    >>> log.kind.size == log.arrival_s.size, log.busy_s.shape
    (True, (2,))
    """

    kind: Ints
    """Index of the type."""
    arrival_s: Floats
    departure_s: Floats
    """NaN: not before the stay ended."""
    busy_s: Floats
    """(E,) server-seconds of each epoch."""
    refused_kind: Ints
    """(r,) types of requests that found the station full."""
    refused_s: Floats
    """(r,) when they came."""


@dataclass(frozen=True, slots=True, eq=False)
class ServedStay:
    """What the physics says of one stay over E epochs."""

    edges_s: Floats
    """(E + 1,) starts of the epochs and the end of the last."""
    instructions: Floats
    """(E,) instructions asked for."""
    pace_s: Floats
    """(E,) CPU seconds of an instruction."""
    instructions_per_request: float
    servers: int


def serve_stay(stay: ServedStay, served: Served, seed: int, number: int) -> StayLog:
    """Return the requests of one stay, drawn and served at the pace of its machine.

    Parameters
    ----------
    stay : what the physics says of it
    served : types and scheduling
    seed : all random draws follow from it, and from the stay's number
    number : of the stay
    """
    rng = stream(seed, f"requests of stay {number} of {served.job}")
    come = np.concatenate(([0.0], np.cumsum(stay.instructions / stay.instructions_per_request)))
    count = int(rng.poisson(come[-1]))
    arrival_s = np.interp(np.sort(rng.random(count)) * come[-1], come, stay.edges_s)
    kind, size = _types_and_sizes(served, arrival_s, rng)
    clock = np.concatenate(([0.0], np.cumsum(np.diff(stay.edges_s) / stay.pace_s)))
    arrived = np.interp(arrival_s, stay.edges_s, clock)
    demand = size * stay.instructions_per_request
    left = serve(
        served.policy,
        arrived,
        demand,
        stay.servers,
        priority=_classes(served)[kind],
        choice=rng.random(count),
    ).departure_s
    departure_s = np.maximum(np.interp(left, clock, stay.edges_s), arrival_s)
    departure_s[left > clock[-1]] = np.nan
    return StayLog(kind, arrival_s, departure_s, _busy_s(stay, arrival_s, departure_s), kind[:0], arrival_s[:0])


def draw_requests(day: Day, served: Served, number: int) -> tuple[Ints, StationLoad]:
    """Return the types of a stay's requests on the event-driven machine, and the requests.

    They come at random (Poisson), at the rate that the load of the time asks for: that of the epoch times that of the
    step (`sim.fleet.day.load_steps`).

    Parameters
    ----------
    day : in which the stay runs
    served : types and scheduling
    number : of the stay
    """
    world, jobs, timeline = day.world, day.jobs, day.timeline
    job, start_s, end_s = int(timeline.job[number]), float(timeline.start_s[number]), float(timeline.end_s[number])
    step_s = world.steps.load_s if world.steps.load_log_sd > 0.0 else world.horizon_s
    steps = np.arange(np.floor(start_s / step_s), np.ceil(end_s / step_s)).astype(np.int64)
    edges_s = np.unique(
        np.concatenate([[start_s, end_s], steps * step_s, np.arange(world.epochs) * world.epoch_s]).clip(start_s, end_s)
    )
    epoch = (edges_s[:-1] / world.epoch_s + CLOCK_ROUNDING).astype(np.int64)
    step = (edges_s[:-1] / step_s + CLOCK_ROUNDING).astype(np.int64) - (steps[0] if steps.size else 0)
    pace_s = PACE_MARGIN * jobs.reference_cpi[job] / REFERENCE_FREQUENCY_HZ * jobs.instructions_per_request[job]
    busy = jobs.utilisation[job] * jobs.instance_quota_vcpu[job] * day.load[epoch, job]
    rate = busy * load_steps(world, int(timeline.instance[number]), steps)[step] / pace_s
    rng = stream(world.seed, f"requests of stay {number} of {served.job}")
    come = np.concatenate(([0.0], np.cumsum(rate * np.diff(edges_s))))
    arrival_s = np.interp(np.sort(rng.random(int(rng.poisson(come[-1])))) * come[-1], come, edges_s)
    kind, size = _types_and_sizes(served, arrival_s, rng)
    servers = round(float(jobs.instance_quota_vcpu[job]))
    return kind, StationLoad(
        servers=servers,
        policy=served.policy,
        arrival_s=arrival_s,
        work=size,
        quantum_s=served.quantum_s,
        priority=_classes(served)[kind],
        choice=rng.random(arrival_s.size),
        capacity=served.capacity or 0,
    )


def _types_and_sizes(served: Served, arrival_s: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Return (n,) types of requests, and their sizes, of mean 1 over the types in their mean mix."""
    hour = arrival_s / 3600.0 % _DAY_H
    weight = np.array([[kind.weight, kind.swing, kind.peak_hour] for kind in served.types])
    wave = 1.0 + weight[:, 1] * np.cos((hour[:, None] - weight[:, 2]) * (2 * np.pi / _DAY_H))
    upto = np.cumsum(weight[:, 0] * wave, axis=1)
    kind = (rng.random(arrival_s.size)[:, None] * upto[:, -1:] >= upto).sum(axis=1)
    relative = np.array([kind.size for kind in served.types])
    mean = float(weight[:, 0] @ relative / weight[:, 0].sum())
    return kind, relative[kind] / mean * gamma(rng, 1.0, served.request_cv, arrival_s.size)


def _classes(served: Served) -> Ints:
    """Return the class of each type."""
    return np.array([kind.priority for kind in served.types], np.int64)


def _busy_s(stay: ServedStay, arrival_s: Floats, departure_s: Floats) -> Floats:
    """Return (E,) server-seconds of each epoch, from the stamps."""
    epochs, start_s = len(stay.pace_s), float(stay.edges_s[0])
    epoch_s = (float(stay.edges_s[-1]) - start_s) / epochs
    left = departure_s[np.isfinite(departure_s)]
    working = present(arrival_s - start_s, left - start_s, stay.servers)
    share = utilisation(working, stay.servers, epoch_s, epochs * epoch_s)["utilisation"]
    return np.asarray(share[:epochs] * (stay.servers * epoch_s))


@dataclass(frozen=True, slots=True)
class _Part:
    """One stay of a served service within a block."""

    number: int
    served: Served
    stay: ServedStay
    epochs: slice
    """Its epochs in the day."""
    trace: slice
    """Rows of the block's trace."""
    rows: slice
    """Counter rows of the block."""
    domain: int
    """Power domain, counted from the block's first."""


class ServicesAtWork:
    """The served services of a day at work: turns blocks of physics into blocks of what was really served.

    Parameters
    ----------
    world : services that are served
    day : the fleet's horizon, as `followed` returns it
    """

    def __init__(self, world: ProfileWorld, day: Day) -> None:
        self._day = day
        self._served = {day.jobs.names.index(served.job): served for served in world.served}
        self._kinds = tuple(dict.fromkeys(kind.name for served in world.served for kind in served.types))

    def serve(self, block: Block, visits: Visits | None = None) -> tuple[Block, dict[str, Columns]]:
        """Return a block in which the services did what their requests took, and rows of tables about these.

        Parameters
        ----------
        block : of an arm of the day
        visits : with which it was simulated

        Returns
        -------
        Block, and the columns of `stay_requests` and of `stay_unserved`
        """
        if self._day.requests is not None:
            return self._count_completed(block)
        factor, logs = np.ones(len(block.trace)), list[tuple[_Part, StayLog]]()
        rows, trace, sums = block.rows.copy(), block.trace.copy(), block.epoch_sums.copy()
        for part in self._parts(block):
            log = serve_stay(part.stay, part.served, self._day.world.seed, part.number)
            did, before = trace[part.trace], block.trace[part.trace]
            worked = did[:, CPU_S] > 0.0
            factor[part.trace][worked] = log.busy_s[worked] / did[worked, CPU_S]
            did *= factor[part.trace, None]
            for column, counted in _SUMMED:
                sums[part.domain, part.epochs, column] += did[:, counted] - before[:, counted]
            self._count(rows[part.rows], part, did, log)
            logs.append((part, log))
        visit_sums = block.visit_sums if visits is None else self._visit_sums(block, visits, factor)
        return replace(block, rows=rows, trace=trace, epoch_sums=sums, visit_sums=visit_sums), self._columns(logs)

    def _count_completed(self, block: Block) -> tuple[Block, dict[str, Columns]]:
        """Return a block of the event-driven machine, which served the requests, with those counted that left."""
        rows, logs, at = block.rows.copy(), list[tuple[_Part, StayLog]](), 0
        for part in self._parts(block):
            kind, drawn = draw_requests(self._day, part.served, part.number)
            departure_s, arrival_s = block.requests["departure_s"][at : at + kind.size], drawn.arrival_s
            at += kind.size
            came = departure_s != REFUSED_S
            stamps, busy_s = (arrival_s[came], departure_s[came]), block.trace[part.trace, CPU_S]
            log = StayLog(kind[came], *stamps, busy_s, kind[~came], arrival_s[~came])
            self._complete(rows[part.rows], part, log)
            logs.append((part, log))
        return replace(block, rows=rows), self._columns(logs)

    def _complete(self, rows: Floats, part: _Part, log: StayLog) -> None:
        """Set the requests that a stay's counter rows count to those that left in each window."""
        window = window_of_epoch(self._day.world)[part.epochs]
        left = log.departure_s[np.isfinite(log.departure_s)]
        epoch = np.searchsorted(part.stay.edges_s, left, side="right") - 1
        completed = np.bincount(np.minimum(epoch, window.size - 1), minlength=window.size)
        for row, number in zip(rows, np.unique(window[window >= 0]), strict=True):
            row[_REQUESTS] = completed[window == number].sum()

    def _parts(self, block: Block) -> Iterator[_Part]:
        """Yield the stays of served services in a block, in order."""
        day, jobs, where, at = self._day, self._day.jobs, self._day.machines.power_domain, 0
        first_row, traced = int(day.row_start[block.stays.start]), day.traced
        for place in np.flatnonzero(traced[block.stays]) + block.stays.start:
            number = int(day.order[place])
            epochs = slice(int(day.timeline.start_epoch[number]), int(day.timeline.end_epoch[number]))
            trace = slice(at, at + epochs.stop - epochs.start)
            at, job = trace.stop, int(day.timeline.job[number])
            if job not in self._served:
                continue
            did = block.trace[trace]
            per_request, servers = (
                float(jobs.instructions_per_request[job]),
                round(float(jobs.instance_quota_vcpu[job])),
            )
            edges_s = np.arange(epochs.start, epochs.stop + 1, dtype=np.float64) * day.world.epoch_s
            if day.world.simulation == "events":
                edges_s = edges_s.clip(day.timeline.start_s[number], day.timeline.end_s[number])
            idle = did[:, INSTRUCTIONS] == 0.0  # nothing was done: without requests, or without a load
            pace_s = np.where(idle, np.inf, did[:, CPU_S] / np.where(idle, 1.0, did[:, INSTRUCTIONS]))
            stay = ServedStay(edges_s, did[:, INSTRUCTIONS], pace_s, per_request, servers)
            rows = slice(int(day.row_start[place]) - first_row, int(day.row_start[place + 1]) - first_row)
            domain = int(where[day.timeline.machine[number]] - where[block.machines.start])
            yield _Part(number, self._served[job], stay, epochs, trace, rows, domain)

    def _count(self, rows: Floats, part: _Part, did: Floats, log: StayLog) -> None:
        """Set a stay's counter rows to what it did in the epochs of each window."""
        window = window_of_epoch(self._day.world)[part.epochs]
        for row, number in zip(rows, np.unique(window[window >= 0]), strict=True):
            row[_COUNTED] = did[window == number].sum(axis=0)
        self._complete(rows, part, log)

    def _visit_sums(self, block: Block, visits: Visits, factor: Floats) -> Floats:
        """Return what visits saw of the block's residents, that of served stays scaled like their epochs."""
        day, sums = self._day, block.visit_sums.copy()
        here = slice(*np.searchsorted(visits.machine, [block.machines.start, block.machines.stop]))
        of, slot = np.nonzero(block.visit_rows >= 0)
        row = int(day.row_start[block.stays.start]) + block.visit_rows[of, slot]
        place = np.searchsorted(day.row_start, row, side="right") - 1
        traced = day.traced
        stays = day.order[block.stays]
        length = np.where(traced[block.stays], day.timeline.end_epoch[stays] - day.timeline.start_epoch[stays], 0)
        offset = np.cumsum(length) - length
        at = offset[place - block.stays.start] + visits.epoch[here][of] - day.timeline.start_epoch[day.order[place]]
        known = traced[place]
        sums[of[known], slot[known]] *= factor[at[known], None]
        return sums

    def _columns(self, logs: Sequence[tuple[_Part, StayLog]]) -> dict[str, Columns]:
        """Return the rows of `stay_requests` and of `stay_unserved`."""
        empty = np.empty(0)
        requests: Columns = {
            "residence": np.repeat([part.number for part, _ in logs], [log.kind.size for _, log in logs]),
            "request": np.concatenate([np.arange(log.kind.size) for _, log in logs] or [empty.astype(np.int64)]),
            "type": self._named([(part.served, log.kind) for part, log in logs]),
            "arrival_s": np.concatenate([*(log.arrival_s for _, log in logs), empty]),
            "departure_s": np.concatenate([*(log.departure_s for _, log in logs), empty]),
        }
        unserved: Columns = {
            "residence": np.repeat([part.number for part, _ in logs], [log.refused_s.size for _, log in logs]),
            "type": self._named([(part.served, log.refused_kind) for part, log in logs]),
            "arrival_s": np.concatenate([*(log.refused_s for _, log in logs), empty]),
        }
        return {"stay_requests": requests, "stay_unserved": unserved}

    def _named(self, kinds: Sequence[tuple[Served, Ints]]) -> pa.DictionaryArray:
        """Return the names of types, which each service counts from 0."""
        of = [np.array([self._kinds.index(kind.name) for kind in served.types])[numbers] for served, numbers in kinds]
        codes = np.concatenate([*of, np.empty(0)]).astype(np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(list(self._kinds), pa.string()))


def followed(world: ProfileWorld, day: Day) -> Day:
    """Return the day in which every stay of the services that are served is traced.

    On the event-driven machine these stays serve their requests there.
    """
    missing = [served.job for served in world.served if served.job not in day.jobs.names]
    if missing:
        raise InputError(f"served: no job is named {', '.join(missing)}")
    names = {day.jobs.names.index(served.job): served for served in world.served}
    chosen = np.isin(np.arange(day.jobs.count), list(names)) if names else None
    recorded = replace(day, followed=chosen, requests=None)
    if not names or day.world.simulation == "epochs":
        return recorded
    return replace(
        recorded, requests=lambda number: draw_requests(recorded, names[int(recorded.timeline.job[number])], number)[1]
    )


CLOCK_ROUNDING = 1e-9
"""Part of an epoch or a step by which its beginning may be rounded."""
_DAY_H = 24.0
