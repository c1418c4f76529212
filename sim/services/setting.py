"""A load on a machine, as the numbers that the stack adds up: what each activity costs where, and who shares what."""

from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats
from models.fleet.processors import MemoryNodes
from models.services.applications import Activities
from models.services.world import Mechanisms
from sim.fleet.interference import LINE_BYTES, WRITE_BACK
from sim.services.hardware import Machine


@dataclass(frozen=True, slots=True, eq=False)
class LoadedMachine:
    """A load of A activities in n intervals on a machine of L levels of caches; columns are (A, 1)."""

    rate_per_s: Floats
    """(A, n)"""
    instructions: Floats
    """Column, nothing spun."""
    spin_share: float
    gains: Floats
    """(A, C) weights of working sets times squared sizes."""
    squares: Floats
    """(C,) squared sizes of working sets."""
    core_cpi: Floats
    """Column, mispredicted branches included."""
    sibling_cpi: Floats
    """Column: what a busy sibling thread adds."""
    stall: Floats
    """Column: part of a latency that is waited for."""
    prefetched: Floats
    """Column: misses per instruction whose latency is hidden."""
    shared: Floats
    """Column: share of first-level misses to lines that other requests write."""
    cache_bytes: Floats
    """(L,)"""
    cycles: Floats
    """(L,) to serve a miss of each level, memory idle and at the own socket."""
    mates: Floats
    """(L,) threads of other cores that use the same cache."""
    siblings: float
    """Other threads of the same core, which use all its caches."""
    crowded: Bools
    """(L,) whether other threads use the same cache."""
    elsewhere: Floats
    """(L,) chance that a line that any processor wrote last is not in the own cache."""
    threads: int
    frequency_hz: float
    line_s: float
    """Time on the bus for a miss of the last level; 0: the bus is never busy."""
    across: float
    """Of lines that another cache of the last level has changed, those at another socket."""
    bus_cycles: float
    """What such a line takes beyond `cycles` where it comes over the memory's bus."""
    link_cycles: tuple[float, float]
    """What a miss of capacity takes beyond `cycles` on the way to another node's memory, in the mean over all; and what
    a line takes that another socket has changed."""
    crossing: float
    """Share of misses of capacity that go to another node's memory."""
    link_s: float
    """Time on the link for a miss that crosses it; 0: it is never busy."""


def set_up(activities: Activities, machine: Machine, mechanisms: Mechanisms, rate_per_s: Floats) -> LoadedMachine:
    """Return what a load asks of a machine, mechanisms that are off left out.

    Parameters
    ----------
    rate_per_s : (A, n) array, contiguous: requests, collections and seconds of ticks per second
    """

    def column(values: Floats, present: bool = True) -> Floats:
        return np.asarray(values[:, None] * present)

    smt = mechanisms.smt and machine.threads_per_core > 1
    memory_cycles = machine.memory_latency_s * machine.frequency_hz
    overlap = np.maximum(1.0, activities.overlap * machine.overlap_factor)
    branches = column(activities.branch_misses * machine.branch_miss_cycles, mechanisms.branches)
    core = activities.core_cpi * machine.core_cpi_factor * np.exp(activities.traits @ machine.loadings)
    core = np.maximum(core, machine.least_cpi)
    mates = (machine.cache_cores - 1) * machine.threads_per_core * mechanisms.shared_cache
    siblings = (machine.threads_per_core - 1.0) * smt
    nodes = machine.nodes if mechanisms.sockets else MemoryNodes(1)
    sockets = machine.sockets if mechanisms.sockets else 1
    linked, away = nodes.count > 1, 1.0 - 1.0 / sockets
    crossing = (1.0 - 1.0 / nodes.count) * activities.interleaved
    elsewhere = 1.0 - machine.cache_cores / machine.cores
    line_s = LINE_BYTES * WRITE_BACK / machine.memory_bandwidth_bytes_per_s * mechanisms.bus
    changed_cycles = memory_cycles * (machine.transfer - 1.0) * (sockets > 1)
    return LoadedMachine(
        rate_per_s=rate_per_s,
        instructions=column(activities.instructions),
        spin_share=activities.spin_share,
        gains=activities.weights * np.square(activities.set_bytes),
        squares=np.square(activities.set_bytes),
        core_cpi=column(core) + branches,
        sibling_cpi=column(activities.smt_slowdown * machine.smt_factor * core, smt),
        stall=column(1.0 / overlap if mechanisms.overlap else np.ones(overlap.size)),
        prefetched=column(activities.prefetched, mechanisms.prefetch),
        shared=column(activities.shared_write_share, mechanisms.coherence),
        cache_bytes=machine.cache_bytes,
        cycles=np.append(machine.cache_cycles[1:], memory_cycles),
        mates=mates,
        siblings=siblings,
        crowded=mates + siblings > 0,
        elsewhere=elsewhere,
        threads=machine.vcpus,
        frequency_hz=machine.frequency_hz,
        line_s=line_s,
        across=float(away / elsewhere[-1]) if elsewhere[-1] > 0 else 0.0,
        bus_cycles=changed_cycles * (not linked),
        link_cycles=(memory_cycles * (nodes.latency_ratio - 1.0) * crossing, changed_cycles * linked),
        crossing=crossing,
        link_s=line_s / nodes.bandwidth_ratio * linked,
    )
