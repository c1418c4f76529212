"""What a request costs on a machine that departs from its spec sheet: the published equation and what it leaves out.

Beside caches and memory (Stewart et al. 2008, section 4.1): misses overlap, first-level hits hide in the pipeline,
mispredicted branches cost, lines that other processors wrote miss again, running requests share caches, memory answers
later under traffic, hardware threads share cores. Every unknown is a column of D parameter vectors at once, so that
derivatives and draws cost one call; arrays are (D, n) for n mixes.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analysis.crossplatform.service import sizes_bytes
from models.arrays import Floats
from models.platforms import Platform

LINE_BYTES, MOVED_PER_MISS = 64.0, 1.3
"""A cache line, and lines moved per miss: about three in ten are dirty when evicted (Hennessy and Patterson 2007)."""
ATTAINED = 0.75
"""Share of the spec sheet's memory bandwidth that machines attain with some writes: 0.67 to 0.78."""
MOST_TRAFFIC = 0.97
"""Share of what is attained at which queueing at memory is cut."""
ROUNDS = 3
"""How often load, cache shares and memory latency are made to agree; they hardly depend on each other."""
HALVINGS = 30
"""Of the interval in which the traffic of a busy machine is looked for: to 1e-9 of the bandwidth."""


class HardwareDepartures(NamedTuple):
    """Log departures of a server model from its spec sheet, each (D, 1)."""

    cpi: Floats
    near: Floats
    """Latency of the second cache level."""
    far: Floats
    """Latency of the levels after it."""
    memory: Floats
    overlap: Floats
    cache_share: Floats
    """Share of a cache that holds the service's data, relative to other server models."""
    smt: Floats
    """Slowdown of a thread by its busy sibling."""


class ServiceDepartures(NamedTuple):
    """Logs of what a service is like, each (D, 1)."""

    core: Floats
    """Core CPI relative to what spec sheets quote."""
    overlap: Floats
    """Misses at once."""
    branches: Floats
    """Mispredicted branches per instruction."""
    written: Floats
    """Share of first-level misses to lines that other requests write."""
    smt: Floats
    """Relative growth of core CPI while the sibling thread is busy."""
    slope: Floats
    """Not a share_departure: what is added to the exponent of the miss curve."""


class DepartingMachine(NamedTuple):
    """A platform and how it departs from its spec sheet."""

    platform: Platform
    hardware: HardwareDepartures


@dataclass(frozen=True, slots=True, eq=False)
class CountedWork:
    """A service as measured on one machine: n mixes and their total."""

    machine: DepartingMachine
    instructions: Floats
    """(n,) instructions of the mean request."""
    misses: Floats
    """(L, n) misses per instruction."""
    mean_misses: Floats
    """(L,) the same of all mixes together, which the exponent of the miss curve is from."""
    exponent: tuple[float, float]
    """Weight of the measured exponent, and what is added to it: that of other services times their weight."""


def misses(work: CountedWork, software: ServiceDepartures, machine: DepartingMachine, busy: Floats) -> list[Floats]:
    """Return misses per instruction of each cache level of a machine: (D, n) each.

    Misses of capacity follow a power of what a running request holds of a cache; lines written by another cache's
    processors miss whatever its size. On the calibration platform both were counted together.

    Parameters
    ----------
    work, software : the service
    machine : where it runs
    busy : (D, n) or (D, 1) share of logical processors that are busy
    """
    written, source, measured = np.exp(software.written), work.machine.platform, len(work.misses)
    log_sizes = np.log(sizes_bytes(source)[:measured])
    again = [0.0 * written, *(written * _elsewhere(source, level) for level in range(1, measured))]
    counted, mean = (
        [_capacity(rates[level], rates[0], again[level]) for level in range(measured)]
        for rates in (work.misses, work.mean_misses)
    )
    weight, added = work.exponent
    exponent = weight * np.log(mean[-1] / mean[0]) / (log_sizes[-1] - log_sizes[0]) + added + software.slope
    share_departure = machine.hardware.cache_share - work.machine.hardware.cache_share
    levels: list[Floats] = []
    for level, size in enumerate(sizes_bytes(machine.platform)):
        start = min(level, measured - 1)
        shared = np.log1p((_threads(machine.platform, level) - 1) * busy)
        rate = counted[start] * np.exp(exponent * (np.log(size) - log_sizes[start] + share_departure - shared))
        if level:
            rate = np.minimum(rate + written * _elsewhere(machine.platform, level) * (levels[0] - rate), levels[-1])
        levels.append(rate)
    return levels


def _capacity(counted: Floats, first: Floats, again: Floats) -> Floats:
    """Return misses of capacity from misses counted, when a share of first-level misses misses again."""
    return np.asarray(np.maximum((counted - again * first) / (1.0 - again), 0.1 * counted))


def _elsewhere(platform: Platform, level: int) -> float:
    """Return the probability that a line was last written at another cache of that level."""
    caches = platform.cores / min(platform.caches[level].cores, platform.cores)
    return 1.0 - 1.0 / caches


def _threads(platform: Platform, level: int) -> int:
    """Return how many logical processors share a cache of that level."""
    return min(platform.caches[level].cores, platform.cores) * platform.threads_per_core


class Cycles(NamedTuple):
    """Cycles of an instruction by where they go, each (D, n)."""

    core: Floats
    caches: Floats
    """Waiting for caches after the first."""
    memory: Floats
    """Waiting for memory when nobody else does."""


def cycles(software: ServiceDepartures, machine: DepartingMachine, misses_each: list[Floats]) -> Cycles:
    """Return the cycles of an instruction on an idle machine, given misses per instruction of each level.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> none = np.zeros((1, 1))
    >>> piii, pres = (DepartingMachine(PLATFORMS[name], HardwareDepartures(*[none] * 7)) for name in ("piii", "pres"))
    >>> service = ServiceDepartures(none, none, none - 6.0, none - 9.0, none, none)
    >>> cycles(service, piii, [none + 0.06, none + 0.02]).memory.round(2)
    array([[2.42]])
    """
    platform, hardware = machine
    core = platform.instruction_cpi * np.exp(software.core + hardware.cpi)
    core = core + np.exp(software.branches) * platform.branch_miss_cycles
    at_once = np.maximum(np.exp(software.overlap + hardware.overlap), 1.0)
    memory = misses_each[-1] * platform.memory_latency_s * platform.base_frequency_hz * np.exp(hardware.memory)
    caches = np.zeros_like(memory)
    for level in range(1, len(misses_each)):
        departure = hardware.near if level == 1 else hardware.far
        hits = misses_each[level - 1] - misses_each[level]
        caches = caches + hits * platform.caches[level].latency_cycles * np.exp(departure)
    return Cycles(core + 0.0 * memory, caches / at_once, memory / at_once)


def processor_s(
    work: CountedWork, software: ServiceDepartures, machine: DepartingMachine, memory: Floats, rate_per_s: Floats
) -> tuple[Floats, Floats]:
    """Return the CPU seconds of the mean request while no sibling thread is busy, and how much longer with one busy.

    Parameters
    ----------
    work, software : the service
    machine : where it runs
    memory : (D, 1) log of how much more than measured memory's latency grows with its traffic: `latency_factor`
    rate_per_s : (n,) requests per second

    Returns
    -------
    (D, n) seconds and (D, n) relative to them
    """
    platform = machine.platform
    busy: Floats = np.zeros((len(memory), 1))
    queueing: Floats = np.ones((len(memory), 1))
    for _ in range(ROUNDS):
        levels = misses(work, software, machine, busy)
        per_type = cycles(software, machine, levels)
        total = per_type.core + per_type.caches + per_type.memory * queueing
        seconds = work.instructions * total / platform.base_frequency_hz
        busy = np.minimum(rate_per_s * seconds / platform.vcpus, 1.0)
        queueing = latency_factor(rate_per_s * _transfer_s(work, platform, levels[-1]), memory)
    return seconds, _sibling(software, machine) * per_type.core / total


class Saturated(NamedTuple):
    """What a request needs of a machine whose logical processors are all busy, each (D, n)."""

    processors_s: Floats
    """Time on all logical processors together, but for memory."""
    memory_s: Floats
    """Time that they wait for memory when it has no other traffic."""
    transfer_s: Floats
    """Time that its traffic takes of the bandwidth that memory attains."""


def saturated(work: CountedWork, software: ServiceDepartures, machine: DepartingMachine) -> Saturated:
    """Return what a request needs of a machine whose logical processors are all busy."""
    platform = machine.platform
    levels = misses(work, software, machine, np.ones_like(software.core))
    per_type = cycles(software, machine, levels)
    cycle_s = work.instructions / (platform.base_frequency_hz * platform.vcpus)
    computing = per_type.core * (1.0 + _sibling(software, machine)) + per_type.caches
    return Saturated(cycle_s * computing, cycle_s * per_type.memory, _transfer_s(work, platform, levels[-1]))


def saturated_rate_per_s(needs: Saturated, memory: Floats) -> Floats:
    """Return the requests per second that keep all logical processors busy: (D, n).

    Memory's traffic and the rate that its latency allows are made to agree by halving.
    """
    low, high = np.zeros_like(needs.memory_s), np.full_like(needs.memory_s, MOST_TRAFFIC)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        per_request = needs.processors_s + needs.memory_s * latency_factor(middle, memory)
        less = needs.transfer_s < middle * per_request
        low, high = np.where(less, low, middle), np.where(less, middle, high)
    return np.asarray(1.0 / (needs.processors_s + needs.memory_s * latency_factor((low + high) / 2, memory)))


def latency_factor(traffic: Floats, memory: Floats) -> Floats:
    """Return memory's latency at a share of the bandwidth that it attains, relative to idle.

    It grows by exp(memory) times what it does over 1,401 measured points of five machines (Esmaili-Dokht et al. 2024).
    """
    used = np.minimum(traffic, MOST_TRAFFIC)
    return np.asarray(1.0 + np.exp(memory) * (0.30 * used + 0.67 * used**4.4))


def _sibling(software: ServiceDepartures, machine: DepartingMachine) -> Floats:
    """Return by how much core CPI grows while the sibling thread is busy, relative: (D, 1)."""
    return np.asarray(np.exp(software.smt + machine.hardware.smt) * (machine.platform.threads_per_core > 1))


def _transfer_s(work: CountedWork, platform: Platform, last_misses: Floats) -> Floats:
    """Return the seconds of the bandwidth that memory attains that a request's traffic takes."""
    moved = work.instructions * last_misses * LINE_BYTES * MOVED_PER_MISS
    return np.asarray(moved / (ATTAINED * platform.memory_bandwidth_bytes_per_s))
