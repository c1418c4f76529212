"""What profiling costs: programs run alone with and without it, and the highest rates that this allows.

A sample interrupts the program: the handler runs, and when it returns the program finds lines of its own evicted. With
a stack the handler also walks the frames. DCPI took 1 to 3% of the time at 5,200 samples a second on 333 MHz processors
(Anderson et al. 1997, abstract), 640 to 1,920 cycles a sample; the figures here are assumptions of that order for
processors whose kernels cost more to enter. Walking a frame of twenty costs hundreds of cycles, as pointers miss.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from models.platforms import PLATFORMS, REFERENCE_CORE_CPI, Platform
from models.profiling.world import ProfileWorld
from models.randomness import stream

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


def sample_cost_cycles(platform: str, event: str, resident: float = 1.0, depth: int = STACK_DEPTH) -> float:
    """Return the cycles that one sample takes from the hardware thread it interrupts.

    Parameters
    ----------
    platform : name in `models.platforms.PLATFORMS`
    event : generic event; those of `WITH_STACKS` walk the stack
    resident : share of the evicted lines that the program wants back
    depth : frames of the stack

    Raises
    ------
    KeyError
        If there is no such platform.

    Examples
    --------
    >>> sample_cost_cycles("haswell_2698v3", "cycles"), sample_cost_cycles("haswell_2698v3", "cpu_time")
    (2420.0, 10420.0)
    """
    if event == "threads":
        return 0.0
    sheet = PLATFORMS[platform]
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

    Raises
    ------
    KeyError
        If there is no such platform.

    Examples
    --------
    >>> runs = benchmark_runs(ProfileWorld(), ["haswell_2698v3"])
    >>> runs.query("event == 'cycles' and benchmark == 'search'").overhead.round(3).tolist()[-1]
    0.01
    """
    rows = []
    for platform in platforms:
        rng = stream(world.profiling.collector.seed, f"benchmark runs on {platform}")
        for benchmark in BENCHMARKS:
            for event in (*COUNTED, *WITH_STACKS):
                cost = sample_cost_cycles(platform, event, benchmark.resident, benchmark.depth)
                for rate in TRIAL_RATES:
                    share = rate * cost / PLATFORMS[platform].base_frequency_hz
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

    Raises
    ------
    KeyError
        If there is no such platform.

    Examples
    --------
    >>> rates = max_rates(ProfileWorld(), ["haswell_2698v3"]).set_index("event").max_samples_per_s
    >>> bool(rates["cycles"] > 2 * rates["cpu_time"] > 5000)
    True
    """
    runs = benchmark_runs(world, platforms)
    limit = MARGIN * world.profiling.collector.overhead_limit
    rows = []
    for (platform, event), tried in runs.groupby(["platform", "event"], sort=False):
        slopes = [_slope_at_most(own) for _, own in tried.groupby("benchmark", sort=False)]
        rows.append((platform, event, limit / max(slopes)))
    return pd.DataFrame(rows, columns=["platform", "event", "max_samples_per_s"])


def _slope_at_most(runs: pd.DataFrame) -> float:
    """Return an upper bound on overhead per unit of rate."""
    rate, overhead = runs["samples_per_s"].to_numpy(float), runs["overhead"].to_numpy(float)
    square = float((rate * rate).sum())
    slope = float((rate * overhead).sum()) / square
    residual = overhead - slope * rate
    error = np.sqrt(float((residual * residual).sum()) / (rate.size - 1) / square)
    least = (
        HANDLER_INSTRUCTIONS * REFERENCE_CORE_CPI * 0.1 / max(sheet.max_frequency_hz for sheet in PLATFORMS.values())
    )
    return max(slope + 3.0 * float(error), least)
