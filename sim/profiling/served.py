"""Services whose requests are served one by one on a simulated fleet's machines, and counters that follow from that.

How one event stream feeds counters, profiles and request logs. The fleet's physics runs first, with a service's load as
a smooth stream of instructions. It says, epoch by epoch, what an instruction takes on each machine among its neighbours
(frequency, cycles and misses per instruction) and how many instructions the service is asked for. Requests are then
drawn, as many in the mean as these instructions are, and served at that pace. In the time that counts instructions
instead of seconds the pace is constant, so the queues of `models.queues` serve them there, and every stamp is carried
back; a request that spans epochs is served at each one's pace.

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

from models.arrays import Floats
from models.errors import InputError
from models.fleet.served import Served, ServedType
from models.profiling.world import ProfileWorld
from sim.fleet import slots
from sim.fleet.fleet import Block, Day, Visits, window_of_epoch
from sim.profiling.stay_requests import Stay, StayLog, serve_stay
from sim.recorder import Values

Columns = dict[str, Values]

CPU_S, INSTRUCTIONS = 3, 1
"""Columns of a block's traces."""
_SUMMED = ((slots.E_CYCLES, 0), (slots.E_INSTRUCTIONS, 1), (slots.E_MISSES, 2), (slots.E_CPU_S, 3))
"""Columns of a domain's epochs, and of a trace, of the same counter."""
_COUNTED = [c - slots.CYCLES for c in (slots.CYCLES, slots.INSTRUCTIONS, slots.MISSES, slots.CPU_S, slots.CORE_CYCLES)]
"""Where a trace's columns are among the sums of a counter row."""
_REQUESTS = slots.REQUESTS - slots.CYCLES


@dataclass(frozen=True, slots=True)
class _Part:
    """One stay of a served service within a block."""

    number: int
    asked: Served
    stay: Stay
    epochs: slice
    """Its epochs in the day."""
    trace: slice
    """Rows of the block's trace."""
    rows: slice
    """Counter rows of the block."""
    domain: int
    """Power domain, counted from the block's first."""


class Service:
    """The served services of a day at work: turns blocks of physics into blocks of what was really served.

    Parameters
    ----------
    world : services that are served
    day : the fleet's horizon, as `followed` returns it

    Examples
    --------
    >>> from sim.fleet.fleet import nowhere, prepare, run_arm
    >>> made = followed(world := example(), prepare(world))
    >>> block, columns = Service(world, made).serve(next(run_arm(made, nowhere(made))))
    >>> sorted(columns)
    ['arrival_s', 'departure_s', 'request', 'residence', 'type']
    """

    def __init__(self, world: ProfileWorld, day: Day) -> None:
        self._day = day
        self._asked = {day.jobs.names.index(one.job): one for one in world.served}
        self._kinds = tuple(dict.fromkeys(kind.name for one in world.served for kind in one.types))

    def serve(self, block: Block, visits: Visits | None = None) -> tuple[Block, Columns]:
        """Return a block in which the services did what their requests took, and the rows of `stay_requests`.

        Parameters
        ----------
        block : of an arm of the day
        visits : with which it was simulated
        """
        factor, logs = np.ones(len(block.trace)), list[tuple[_Part, StayLog]]()
        rows, trace, sums = block.rows.copy(), block.trace.copy(), block.epoch_sums.copy()
        for part in self._parts(block):
            log = serve_stay(part.stay, part.asked, self._day.world.seed, part.number)
            did, before = trace[part.trace], block.trace[part.trace]
            factor[part.trace] = log.busy_s / did[:, CPU_S]
            did *= factor[part.trace, None]
            for column, counted in _SUMMED:
                sums[part.domain, part.epochs, column] += did[:, counted] - before[:, counted]
            self._count(rows[part.rows], part, did, log)
            logs.append((part, log))
        seen = block.visit_sums if visits is None else self._seen(block, visits, factor)
        return replace(block, rows=rows, trace=trace, epoch_sums=sums, visit_sums=seen), self._columns(logs)

    def _parts(self, block: Block) -> Iterator[_Part]:
        """Yield the stays of served services in a block, in order."""
        day, jobs, where, at = self._day, self._day.jobs, self._day.machines.power_domain, 0
        first_row, traced = int(day.row_start[block.stays.start]), day.traced
        for place in np.flatnonzero(traced[block.stays]) + block.stays.start:
            number = int(day.order[place])
            epochs = slice(int(day.timeline.start_epoch[number]), int(day.timeline.end_epoch[number]))
            trace = slice(at, at + epochs.stop - epochs.start)
            at, job = trace.stop, int(day.timeline.job[number])
            if job not in self._asked:
                continue
            did = block.trace[trace]
            each, servers = float(jobs.instructions_per_request[job]), round(float(jobs.instance_quota_vcpu[job]))
            edges_s = np.arange(epochs.start, epochs.stop + 1, dtype=np.float64) * day.world.epoch_s
            stay = Stay(edges_s, did[:, INSTRUCTIONS], did[:, CPU_S] / did[:, INSTRUCTIONS], each, servers)
            rows = slice(int(day.row_start[place]) - first_row, int(day.row_start[place + 1]) - first_row)
            domain = int(where[day.timeline.machine[number]] - where[block.machines.start])
            yield _Part(number, self._asked[job], stay, epochs, trace, rows, domain)

    def _count(self, rows: Floats, part: _Part, did: Floats, log: StayLog) -> None:
        """Set a stay's counter rows to what it did in the epochs of each window."""
        window = window_of_epoch(self._day.world)[part.epochs]
        left = log.departure_s[np.isfinite(log.departure_s)]
        epoch = np.searchsorted(part.stay.edges_s, left, side="right") - 1
        completed = np.bincount(np.minimum(epoch, len(did) - 1), minlength=len(did))
        for row, each in zip(rows, np.unique(window[window >= 0]), strict=True):
            row[_COUNTED] = did[window == each].sum(axis=0)
            row[_REQUESTS] = completed[window == each].sum()

    def _seen(self, block: Block, visits: Visits, factor: Floats) -> Floats:
        """Return what visits saw of the block's residents, that of served stays scaled like their epochs."""
        day, seen = self._day, block.visit_sums.copy()
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
        seen[of[known], slot[known]] *= factor[at[known], None]
        return seen

    def _columns(self, logs: Sequence[tuple[_Part, StayLog]]) -> Columns:
        """Return the rows of `stay_requests`."""
        kinds = [np.array([self._kinds.index(kind.name) for kind in part.asked.types])[log.kind] for part, log in logs]
        empty = np.empty(0)
        return {
            "residence": np.repeat([part.number for part, _ in logs], [log.kind.size for _, log in logs]),
            "request": np.concatenate([np.arange(log.kind.size) for _, log in logs] or [empty.astype(np.int64)]),
            "type": pa.DictionaryArray.from_arrays(
                pa.array(np.concatenate([*kinds, empty]).astype(np.int32)), pa.array(list(self._kinds), pa.string())
            ),
            "arrival_s": np.concatenate([*(log.arrival_s for _, log in logs), empty]),
            "departure_s": np.concatenate([*(log.departure_s for _, log in logs), empty]),
        }


def followed(world: ProfileWorld, day: Day) -> Day:
    """Return the day in which every stay of the services that are served is traced.

    Raises
    ------
    ValueError
        If there is no such service.

    Examples
    --------
    >>> from sim.fleet.fleet import prepare
    >>> made = followed(world := example(), prepare(world))
    >>> bool(made.traced.any()), bool(followed(replace(world, served=()), made).traced.any())
    (True, False)
    """
    missing = [one.job for one in world.served if one.job not in day.jobs.names]
    if missing:
        raise InputError(f"served: no job is named {', '.join(missing)}")
    names = [one.job for one in world.served]
    return replace(day, followed=np.isin(np.array(day.jobs.names), names) if names else None)


def example() -> ProfileWorld:
    """Return a profiled fleet of a day with a service that is served, for examples.

    Examples
    --------
    >>> example().served[0].job
    'shop'
    """
    from models.fleet.world import Fleet, Population, Service
    from models.profiling.world import Collector, Profiling  # the only use

    fleet = Fleet(16, machines_per_rack=4, racks_per_power_domain=2)
    shop = Service("shop", 4, 2.0, 0.9, 0.01, instructions_per_request=4e10, utilisation=0.5, open_load=True)
    population = Population(20, 12, heavyweights=4, services=(shop,))
    asked = Profiling(compiler=None, kernel=None, collector=Collector(one_in=8, round_s=7200.0))
    served = (Served("shop", types=(ServedType("view", 3.0, 0.5), ServedType("buy", 1.0, 2.0, swing=0.5))),)
    return ProfileWorld(3, 86400.0, 300.0, fleet, population, profiling=asked, served=served)
