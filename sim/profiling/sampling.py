"""Samples: what the profilers of a visited machine report of its processes.

Whole-machine profiles sample all that runs, by event and without stacks. Processes that link the profiling library are
asked for profiles of their own: CPU and wall time, live heap by who allocated it, waiting for locks, and threads, each
with the stack. Every draw belongs to a residence, an epoch and an event: who else is looked at changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.profiling.programs import ProgramArrays
from models.profiling.world import ProfileWorld
from models.randomness import key
from sim.fleet.arms import Block
from sim.fleet.day import Day
from sim.profiling.addresses import INSTRUCTION_BYTES
from sim.profiling.builds import Builds
from sim.profiling.collector import STATUSES, VisitPlan
from sim.profiling.draws import Keys, draw_samples, keys_of, mixed
from sim.profiling.functions import CYCLES, EVENTS, jitter, row_weights, spread
from sim.profiling.hits import Hits, Locator, Stacks
from sim.profiling.images import Layout
from sim.profiling.process_profiles import STACKED, Use, amounts, loads, thread_counts
from sim.profiling.rates import sample_cost_cycles, sampled_events
from sim.profiling.register import Places, Register
from sim.profiling.rows import CounterRows, RunningSoftware, by_program
from sim.profiling.visits import (
    APPLICATIONS,
    DAEMONS,
    OWN_SHARE,
    SHARES,
    THREADS,
    Visited,
    own_events,
    own_functions,
    visited,
)
from sim.recorder import Values

__all__ = ["OWN_SHARE", "Sampler", "Taken"]

Columns = dict[str, Values]

CHUNK = 2_000_000
"""Rows × functions that are worked on at a time."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a block's visits brought: rows of the tables of these names; of stacks only those not met before."""

    processes: Columns
    raw_samples: Columns
    raw_stacks: Columns


class Sampler:
    """Profilers at work: turns what the fleet did in visited epochs into samples, block by block.

    Parameters
    ----------
    world : collector
    day : the fleet's horizon
    register : what each machine is when
    plan : the visits
    programs, builds, places : what runs where
    layout : where code is
    rates : periods, the columns of table `rates`
    """

    def __init__(
        self,
        *,
        world: ProfileWorld,
        day: Day,
        register: Register,
        plan: VisitPlan,
        programs: ProgramArrays,
        builds: Builds,
        places: Places,
        layout: Layout,
        rates: pd.DataFrame,
    ) -> None:
        self._world, self._day, self._register, self._plan = world, day, register, plan
        self._software = RunningSoftware(world, programs, builds, places)
        self._programs, self._addresses = programs, layout.addresses
        self._events = sampled_events(world)
        self._per_sample = stands_for(rates, plan.names, register.platform_names, self._events)
        sheets = [world.sheets[name] for name in register.platform_names]
        self._cost = np.array([[sample_cost_cycles(sheet, event) for event in self._events] for sheet in sheets])
        self._locator = Locator(programs, layout.addresses)
        entry_program = np.repeat(np.arange(programs.count), np.diff(programs.start))
        paths = programs.paths
        self._stacks = Stacks(layout.addresses, paths, np.repeat(entry_program, np.diff(paths.start)))
        self._processes = 0
        count = plan.machine.size
        self._frequency_hz, self._power_w = np.full(count, np.nan), np.full(count, np.nan)
        self._overhead = np.zeros(count)

    def take(self, block: Block, rows: CounterRows) -> Taken:
        """Return what the visits to a block's machines brought.

        Parameters
        ----------
        block : of the arm that was run with the plan's answered visits
        rows : all counter rows of the day
        """
        visits = visited(self._day, self._register, self._plan, block, rows)
        hits = list(self._residents(visits))
        for i, (functions, weights) in enumerate(own_functions(self._programs, self._addresses)):
            cycles = SHARES[i] * visits.vcpus * visits.frequency_hz * self._world.epoch_s
            if i == DAEMONS:
                cycles += self._spent(visits, hits)
            hits.append(self._of_machines(visits, i, functions, own_events(cycles, weights, self._counted_events)))
        self._overhead[visits.visit] = self._spent(visits, hits)
        self._frequency_hz[visits.visit] = visits.frequency_hz
        self._power_w[visits.visit] = block.visit_power_w
        samples, stacks = self._samples(visits, Hits.together(hits))
        processes = self._process_columns(visits)
        self._processes += int(visits.first[-1])
        return Taken(processes, samples, stacks)

    def visit_columns(self) -> Columns:
        """Return the columns of table `visits`: all that were planned, once all blocks are taken."""
        plan, register = self._plan, self._register
        kernel = register.kernel_at(plan.machine, plan.epoch)
        return {
            "visit": np.arange(plan.machine.size),
            "collection": _texts(plan.names, plan.collection),
            "machine": plan.machine,
            "datacentre": _texts(register.datacentre_names, register.datacentre[plan.machine]),
            "platform": _texts(register.platform_names, register.platform_at(plan.machine, plan.epoch)),
            "kernel": _texts(register.kernel_names, kernel),
            "start_s": plan.epoch * self._world.epoch_s,
            "length_s": np.full(plan.machine.size, self._world.epoch_s),
            "weight": plan.weight,
            "status": _texts(STATUSES, plan.status),
            "frequency_hz": self._frequency_hz,
            "power_w": self._power_w,
            "overhead_cycles": self._overhead,
        }

    @property
    def spent_s(self) -> Floats:
        """CPU time that the samples of each planned visit took, of those that were taken so far.

        Their cycles are those of the daemon on the machine visited.
        """
        taken = self._overhead > 0.0
        return np.where(taken, self._overhead, 0.0) / np.where(taken, self._frequency_hz, 1.0)

    @property
    def _counted_events(self) -> tuple[str, ...]:
        return tuple(self._world.profiling.collector.events)

    def _keys(self, who: Ints, epoch: Ints) -> Keys:
        """Return (n, events) keys of the draws of each process, which belong to the events' names."""
        return sample_keys(self._world, who, epoch, self._events)

    def _residents(self, visits: Visited) -> Iterator[Hits]:
        """Yield the samples of instances, program by program."""
        keys, process = self._keys(visits.stay, visits.epoch[visits.of]), visits.process
        moment = (visits.epoch * self._register.count + visits.machine)[visits.of]
        for program, which in by_program(visits.rows):
            functions = self._programs.functions(program).size
            for part in np.array_split(which, max(1, -(-which.size * functions // CHUNK))):
                here = visits.rows.take(part)
                mean = spread(self._programs, here, row_weights(self._software, here), visits.totals[part])
                counted = mean[:, :, [EVENTS.index(event) for event in self._counted_events]]
                done = jitter(self._programs, here, counted, moment[part], self._counted_events)
                yield self._whole_machine(visits, part, keys[part], done)
                if self._programs.stacks[program] and "cpu_time" in self._events:
                    cycles = jitter(self._programs, here, mean[:, :, [CYCLES]], moment[part], ("cpu_time",))
                    yield self._with_stacks(visits, part, keys[part], cycles[:, :, 0])
                    threads = self._threads(here.program, visits.totals[part, 3])
                    yield self._locator.on_main(process[part], self._events.index("threads"), program, threads)

    def _whole_machine(self, visits: Visited, part: Ints, keys: Keys, done: Floats) -> Hits:
        """Return the samples of counted events of some residents, all of one program."""
        columns = np.arange(len(self._counted_events))
        expected = done / self._stands_for(visits, visits.of[part], columns)
        draws = draw_samples(expected, keys[:, columns])
        program = int(visits.rows.program[part[0]])
        return self._locator.locate(draws, visits.process[part], columns, self._programs.functions(program))

    def _with_stacks(self, visits: Visited, part: Ints, keys: Keys, cycles: Floats) -> Hits:
        """Return the samples of per-process profiles of some residents, all of one program."""
        program, cpu_s = int(visits.rows.program[part[0]]), visits.totals[part, 3]
        columns = np.array([self._events.index(event) for event in STACKED])
        wall_s = np.asarray(self._threads(visits.rows.program[part], cpu_s) * self._world.epoch_s, np.float64)
        use = Use(cpu_s, wall_s, loads(self._programs, program, cpu_s, self._world.epoch_s))
        expected = amounts(self._programs, program, cycles, use) / self._stands_for(visits, visits.of[part], columns)
        draws = draw_samples(expected, keys[:, columns])
        return self._locator.locate(draws, visits.process[part], columns, self._programs.functions(program), program)

    def _of_machines(self, visits: Visited, kind: int, functions: Ints, done: Floats) -> Hits:
        """Return the samples of one of the machines' own processes."""
        columns = np.arange(len(self._counted_events))
        who = self._day.timeline.job.size + len(APPLICATIONS) * visits.machine + kind
        expected = done / self._stands_for(visits, np.arange(visits.count), columns)
        draws = draw_samples(expected, self._keys(who, visits.epoch)[:, columns])
        return self._locator.locate(draws, visits.own[:, kind], columns, functions)

    def _stands_for(self, visits: Visited, of: Ints, columns: Ints) -> Floats:
        """Return (n, 1, K) how much of each event in the whole visit one sample stands for."""
        return np.asarray(self._per_sample[visits.collection[of], visits.platform[of]][:, None, columns])

    def _threads(self, program: Ints, cpu_s: Floats) -> Ints:
        return thread_counts(self._programs, program, cpu_s, self._world.epoch_s)

    def _spent(self, visits: Visited, hits: list[Hits]) -> Floats:
        """Return the cycles that each visit's samples took."""
        spent = np.zeros(visits.count)
        for part in hits:
            visit = visits.visit_of(part.process)
            spent += np.bincount(visit, part.count * self._cost[visits.platform[visit], part.event], spent.size)
        return spent

    def _samples(self, visits: Visited, hits: Hits) -> tuple[Columns, Columns]:
        """Return the rows of `raw_samples`, and those of `raw_stacks` that were not met before."""
        program, build, kernel = (np.zeros(int(visits.first[-1]), np.int64) for _ in range(3))
        program[visits.process], build[visits.process] = visits.rows.program, visits.rows.build
        kernel[:] = visits.new_kernel[visits.visit_of(np.arange(kernel.size))]
        new_build, new_kernel = build[hits.process], kernel[hits.process]
        function = self._locator.function_of_line[hits.line]
        image_build = self._addresses.build_of(function, new_build, new_kernel)
        address = self._addresses.start_of(image_build, function, program[hits.process])
        address += self._addresses.line_offset[hits.line] + INSTRUCTION_BYTES * hits.instruction
        stack, stacks = self._stacks.number(hits.path, new_build, new_kernel)
        samples: Columns = {
            "process": self._processes + hits.process,
            "event": _texts(self._events, hits.event),
            "build": image_build,
            "address": address,
            "stack": stack,
            "count": hits.count,
        }
        return samples, stacks

    def _process_columns(self, visits: Visited) -> Columns:
        """Return the rows of `processes`: residents of each visit, then the machine's own."""
        programs, addresses, process = self._programs, self._addresses, visits.process
        count, cpu_s = int(visits.first[-1]), visits.totals[:, 3]
        job, residence, build, threads = (np.full(count, -1) for _ in range(4))
        busy_s, application = np.zeros(count), np.zeros(count, np.int64)
        job[process], application[process], residence[process] = visits.rows.program, visits.rows.program, visits.stay
        build[process] = addresses.of_image[programs.image_of_program[visits.rows.program], visits.rows.build]
        threads[process], busy_s[process] = self._threads(visits.rows.program, cpu_s), cpu_s
        own_builds = addresses.of_image[0, visits.new_kernel], addresses.of_image[addresses.daemon, 0]
        for i, mine in enumerate(visits.own.T):
            application[mine], build[mine], threads[mine] = programs.count + i, own_builds[i], THREADS[i]
            busy_s[mine] = SHARES[i] * visits.vcpus * self._world.epoch_s
        busy_s[visits.own[:, DAEMONS]] += self.spent_s[visits.visit]
        return {
            "process": self._processes + np.arange(count),
            "visit": visits.visit[visits.visit_of(np.arange(count))],
            "application": _texts((*programs.names, *APPLICATIONS), application),
            "job": job,
            "residence": residence,
            "build": build,
            "stacks": (job >= 0) & programs.stacks[job] & ("cpu_time" in self._events),
            "threads": threads,
            "cpu_s": busy_s,
            "wall_s": np.maximum(threads * self._world.epoch_s, busy_s),
        }


def sample_keys(world: ProfileWorld, who: Ints, epoch: Ints, events: tuple[str, ...]) -> Keys:
    """Return (n, events) keys of the draws of each process in an epoch, which belong to the events' names.

    Parameters
    ----------
    world : the collector and its fleet
    who : (n,) residence, or a machine's own process
    epoch : (n,) when
    events : what is sampled

    Examples
    --------
    >>> who, when = np.array([3, 4]), np.array([7, 7])
    >>> sample_keys(ProfileWorld(), who, when, ("cycles", "instructions")).shape
    (2, 2)
    """
    keys = keys_of(world.profiling.collector.seed, f"samples of fleet {world.seed}", who, epoch)
    return mixed(keys[:, None], np.array([key(event) for event in events], np.uint64))


def stands_for(
    rates: pd.DataFrame, collections: tuple[str, ...], platforms: tuple[str, ...], events: tuple[str, ...]
) -> Floats:
    """Return (collections, platforms, events) what a sample stands for in its visit: period × duty.

    Parameters
    ----------
    rates : table `rates`
    collections, platforms, events : in the order wanted
    """
    keys = zip(rates["collection"], rates["platform"], rates["event"], strict=True)
    per_sample = dict(zip(keys, (rates["period"] * rates["duty"]).astype(float).tolist(), strict=True))
    return np.array([[[per_sample[c, p, e] for e in events] for p in platforms] for c in collections])


def _texts(words: tuple[str, ...], index: Ints | NDArray[np.int32]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.asarray(index, np.int32)), pa.array(list(words), pa.string()))
