"""How often each event is sampled: from one sample to the next it happens `period` times.

Rates are those of a machine all of whose hardware threads are busy, so that gatekeepers keep to the highest rate at any
load. Whole-machine profiles ask for `samples_per_s` of each event, per-process profiles for `stacks_per_s`. Events
follow one another; heap and threads are looked at once, at the end of the visit.

The highest rates are those that the cost of profiling allows, of programs run alone with and without it.

A sample interrupts the program: the handler runs, and when it returns the program finds lines of its own evicted. With
a stack the handler also walks the frames. DCPI took 1 to 3% of the time at 5,200 samples a second on 333 MHz processors
(Anderson et al. 1997, abstract), 640 to 1,920 cycles a sample; the figures here are assumptions of that order for
processors whose kernels cost more to enter. Walking a frame of twenty costs hundreds of cycles, as pointers miss.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from models.platforms import PLATFORMS, REFERENCE_CORE_CPI, Platform
from models.profiling.world import ProfileWorld
from models.randomness import stream
from sim.profiling.collector import FLEET

PROCESS_EVENTS = ("cpu_time", "wall_time", "heap_bytes", "lock_wait", "threads")
"""Events of per-process profiles."""
SNAPSHOTS = ("heap_bytes", "threads")
"""Events that are states, not happenings: a visit sees them at one moment."""
UNITS = {"cpu_time": "nanoseconds", "wall_time": "nanoseconds", "lock_wait": "nanoseconds", "heap_bytes": "bytes"}
"""What is counted, where it is neither events nor threads."""
NOMINAL_CPI = 1.25
"""Cycles per instruction of a busy machine on which periods are based."""
NOMINAL_PER_INSTRUCTION = {
    "instructions": 1.0,
    "l1_misses": 0.0375,
    "l2_misses": 0.0175,
    "llc_misses": 0.0115,
    "mispredictions": 0.004,
}
"""Events per instruction of a busy machine on which periods are based."""
NOMINAL_HEAP_SHARE = 0.5
"""Share of a machine's memory that is live heap on which the period is based."""
NOMINAL_THREADS = 4.0
"""Threads per hardware thread on which the period of wall time is based."""
NOMINAL_LOCK_WAIT = 0.2
"""Threads waiting for a lock per hardware thread on which the period is based."""
NATIVE: Mapping[str, Mapping[str, str]] = {
    "intel": {
        "cycles": "CPU_CLK_UNHALTED.THREAD",
        "instructions": "INST_RETIRED.ANY",
        "l1_misses": "L1D.REPLACEMENT",
        "l2_misses": "L2_RQSTS.MISS",
        "llc_misses": "LONGEST_LAT_CACHE.MISS",
        "mispredictions": "BR_MISP_RETIRED.ALL_BRANCHES",
    },
    "amd": {
        "cycles": "CYCLES_NOT_IN_HALT",
        "instructions": "RETIRED_INSTRUCTIONS",
        "l1_misses": "L1_DATA_CACHE_MISSES",
        "l2_misses": "L2_CACHE_MISS_FROM_DC_MISS",
        "llc_misses": "L3_CACHE_MISSES",
        "mispredictions": "RETIRED_MISPREDICTED_BRANCH_INSTRUCTIONS",
    },
    "arm": {
        "cycles": "CPU_CYCLES",
        "instructions": "INST_RETIRED",
        "l1_misses": "L1D_CACHE_REFILL",
        "l2_misses": "L2D_CACHE_REFILL",
        "llc_misses": "LL_CACHE_MISS_RD",
        "mispredictions": "BR_MIS_PRED_RETIRED",
    },
}
"""Event of a maker's processors for each generic one, after the idea of PAPI (Ren et al. 2010, "Profiles")."""


def maker(sheet: Platform) -> str:
    """Return whose events a platform counts: intel, amd or arm."""
    return "arm" if sheet.isa == "arm64" else "amd" if "AMD" in sheet.source else "intel"


def process_native(event: str) -> str:
    """Return what a per-process profile of an event goes by, the same on every platform.

    Examples
    --------
    >>> process_native("cpu_time")
    'process:cpu_time'
    """
    return f"process:{event}"


def duty(world: ProfileWorld, event: str) -> int:
    """Return the length of a visit over the time for which the event is on; 1 for what is looked at once."""
    return 1 if event in SNAPSHOTS else max(1, int(world.epoch_s // world.profiling.collector.seconds_per_event))


def sampled_events(world: ProfileWorld) -> tuple[str, ...]:
    """Return the events that a collector samples: those counted, then those of processes if any."""
    collector = world.profiling.collector
    return (*collector.events, *(PROCESS_EVENTS if collector.stacks_per_s > 0 else ()))


def rate_table(world: ProfileWorld, platforms: Sequence[str]) -> pd.DataFrame:
    """Return the columns of table `rates`: the period of every event on every platform, for every collection.

    Parameters
    ----------
    world : collector and watches
    platforms : names
    """
    limits, sheets = max_rates(world, platforms).set_index(["platform", "event"])["max_samples_per_s"], world.sheets
    rows = []
    for collection, rate in wanted_per_s(world).items():
        for platform in platforms:
            for event in sampled_events(world):
                limit = float(limits.get((platform, event), np.nan))
                native = NATIVE[maker(sheets[platform])].get(event, process_native(event))
                unit = UNITS.get(event, "threads" if event == "threads" else "events")
                period = _period(world, sheets[platform], event, np.fmin(limit, rate if event in COUNTED else np.inf))
                rows.append((collection, platform, event, native, unit, period, duty(world, event), limit))
    columns = ["collection", "platform", "event", "native", "unit", "period", "duty", "max_samples_per_s"]
    return pd.DataFrame(rows, columns=columns)


def wanted_per_s(world: ProfileWorld) -> dict[str, float]:
    """Return the samples a second of an event on a busy machine that each collection asks for.

    Examples
    --------
    >>> wanted_per_s(ProfileWorld())
    {'fleet': 25.0}
    """
    collector = world.profiling.collector
    watched = {watch.name: watch.samples_per_s or collector.samples_per_s for watch in collector.watches}
    return {FLEET: collector.samples_per_s, **watched}


def samples_per_s(world: ProfileWorld, platforms: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the samples of cycles a second that a busy machine of each platform may give, for each collection."""
    rates = max_rates(world, platforms).query("event == 'cycles'")
    limits = list(zip(rates["platform"].tolist(), rates["max_samples_per_s"].tolist(), strict=True))
    return {
        name: {platform: min(rate, limit) for platform, limit in limits} for name, rate in wanted_per_s(world).items()
    }


def _period(world: ProfileWorld, sheet: Platform, event: str, limit: float) -> int:
    """Return the period of an event: the least prime that keeps a busy machine to `limit` samples a second."""
    if event == "threads":
        return 1
    rate = limit if event in COUNTED else np.fmin(world.profiling.collector.stacks_per_s, limit)
    return _next_prime(int(np.ceil(_nominal_per_s(world, sheet, event) / rate)))


def _nominal_per_s(world: ProfileWorld, sheet: Platform, event: str) -> float:
    """Return how often an event happens in a second on a busy machine; a snapshot counts as one event's time."""
    if event in COUNTED:
        cycles = sheet.vcpus * sheet.base_frequency_hz
        return cycles if event == "cycles" else cycles / NOMINAL_CPI * NOMINAL_PER_INSTRUCTION[event]
    if event == "heap_bytes":
        return NOMINAL_HEAP_SHARE * sheet.memory_bytes / world.profiling.collector.seconds_per_event
    busy = {"cpu_time": 1.0, "wall_time": NOMINAL_THREADS, "lock_wait": NOMINAL_LOCK_WAIT}[event]
    return 1e9 * busy * sheet.vcpus


def _next_prime(least: int) -> int:
    """Return the least prime that is not below a number: loops of programs have few factors in common with it."""
    number = max(2, least)
    while not _is_prime(number):
        number += 1
    return number


def _is_prime(number: int) -> bool:
    if number < 4 or number % 2 == 0:
        return number in {2, 3}
    divisors = np.arange(3, int(np.sqrt(number)) + 1, 2)
    return bool((number % divisors != 0).all())


COUNTED = ("cycles", "instructions", "l1_misses", "l2_misses", "llc_misses", "mispredictions")
"""Events of whole-machine profiles: no stacks."""
WITH_STACKS = ("cpu_time", "wall_time", "heap_bytes", "lock_wait")
"""Events of per-process profiles that interrupt the program and walk its stack."""
HANDLER_INSTRUCTIONS = 2000.0
"""Instructions from the interrupt to the return from it."""
FRAME_CYCLES = 400.0
"""Cycles to walk one frame, on Haswell."""
STACK_DEPTH = 20
"""Frames of the benchmarks' stacks."""
EVICTED_LINES = 60.0
"""Lines of the first-level cache that the handler evicts, and that the program fetches again."""
TRIAL_RATES = (500.0, 1000.0, 2000.0, 4000.0, 8000.0)
"""Samples a second at which the benchmarks are run."""
RUNS = 5
"""Runs with and without profiling at each rate."""
RUN_LOG_SD = 0.003
"""Spread of a benchmark's run time from run to run."""
MARGIN = 0.8
"""Part of the overhead limit that the highest rate may use: other programs may suffer more than the benchmarks."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A program that is run alone: how much of it the handler's cold caches hurt, and how deep its stacks are.

    Examples
    --------
    >>> [benchmark.name for benchmark in BENCHMARKS]
    ['search', 'compression', 'video', 'storage']
    """

    name: str
    """What it stands for."""
    resident: float
    """Share of the evicted lines that it wants back."""
    depth: int
    """Frames of its stacks."""


BENCHMARKS = (
    Benchmark("search", 1.0, 24),
    Benchmark("compression", 0.6, 8),
    Benchmark("video", 0.3, 6),
    Benchmark("storage", 0.8, 20),
)
"""The benchmark job set, from pointer-chasing servers to streaming kernels."""


def sample_cost_cycles(sheet: Platform, event: str, resident: float = 1.0, depth: int = STACK_DEPTH) -> float:
    """Return the cycles that one sample takes from the hardware thread it interrupts.

    Parameters
    ----------
    sheet : of the machine
    event : generic event; those of `WITH_STACKS` walk the stack
    resident : share of the evicted lines that the program wants back
    depth : frames of the stack
    """
    if event == "threads":
        return 0.0
    walk = FRAME_CYCLES * depth * sheet.core_cpi_factor if event in WITH_STACKS else 0.0
    handler = HANDLER_INSTRUCTIONS * sheet.instruction_cpi
    return handler + walk + EVICTED_LINES * resident * _refill_cycles(sheet)


def _refill_cycles(sheet: Platform) -> float:
    """Return what fetching a line from the second cache level costs."""
    return sheet.caches[1].latency_cycles if len(sheet.caches) > 1 else 12.0


def benchmark_runs(world: ProfileWorld, platforms: Sequence[str]) -> pd.DataFrame:
    """Return what profiling did to the benchmarks at several rates, each alone on one thread.

    Parameters
    ----------
    world : whose collector draws the run-to-run noise
    platforms : names

    Returns
    -------
    columns platform, benchmark, event, samples_per_s, overhead (share of the cycles, by the runs' mean times)
    """
    rows = []
    for platform in platforms:
        sheet = world.sheets[platform]
        rng = stream(world.profiling.collector.seed, f"benchmark runs on {platform}")
        for benchmark in BENCHMARKS:
            for event in (*COUNTED, *WITH_STACKS):
                cost = sample_cost_cycles(sheet, event, benchmark.resident, benchmark.depth)
                for rate in TRIAL_RATES:
                    share = rate * cost / sheet.base_frequency_hz
                    times = np.exp(RUN_LOG_SD * rng.standard_normal((2, RUNS))).mean(axis=1)
                    rows.append((platform, benchmark.name, event, rate, (1 + share) * times[1] / times[0] - 1))
    return pd.DataFrame(rows, columns=["platform", "benchmark", "event", "samples_per_s", "overhead"])


def max_rates(world: ProfileWorld, platforms: Sequence[str]) -> pd.DataFrame:
    """Return the highest rates at which the overhead stays below the limit on every benchmark.

    One thread alone takes all samples of its machine, which is the worst that can happen to a program. Overhead is
    taken as proportional to the rate; the slope is the least-squares one plus three standard errors, and a part of the
    limit is kept in hand.

    Parameters
    ----------
    world : overhead limit, and whose collector runs the benchmarks
    platforms : names

    Returns
    -------
    columns platform, event, max_samples_per_s
    """
    runs = benchmark_runs(world, platforms)
    limit = MARGIN * world.profiling.collector.overhead_limit
    rows = []
    for (platform, event), tried in runs.groupby(["platform", "event"], sort=False):
        fastest_hz = max(_FASTEST_HZ, world.sheets[str(platform)].max_frequency_hz)
        slopes = [_slope_at_most(own, fastest_hz) for _, own in tried.groupby("benchmark", sort=False)]
        rows.append((platform, event, limit / max(slopes)))
    return pd.DataFrame(rows, columns=["platform", "event", "max_samples_per_s"])


_FASTEST_HZ = max(sheet.max_frequency_hz for sheet in PLATFORMS.values())


def _slope_at_most(runs: pd.DataFrame, fastest_hz: float) -> float:
    """Return an upper bound on overhead per unit of rate: no sample is cheaper than a tenth of its handler there."""
    rate, overhead = runs["samples_per_s"].to_numpy(float), runs["overhead"].to_numpy(float)
    square = float((rate * rate).sum())
    slope = float((rate * overhead).sum()) / square
    residual = overhead - slope * rate
    error = np.sqrt(float((residual * residual).sum()) / (rate.size - 1) / square)
    return max(slope + 3.0 * float(error), HANDLER_INSTRUCTIONS * REFERENCE_CORE_CPI * 0.1 / fastest_hz)
