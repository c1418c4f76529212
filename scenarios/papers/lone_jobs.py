"""Jobs alone on the reference machine: how much less cache or slower memory would slow each of them down.

No co-runner, no queue for memory: cycles per instruction follow from a job's own miss curve and from latency.
"""

import numpy as np
import pandas as pd

from analysis.figures.criteria import numbers
from models.fleet.inventory import REFERENCE_FREQUENCY_HZ, Jobs, build_jobs, build_machines
from models.fleet.world import World
from models.platforms import PLATFORMS

REFERENCE = PLATFORMS["haswell_2698v3"]
CACHE_LEFT = 1 / 16
"""Share of the last-level cache that is left, as in the benchmark."""
SLOW_MEMORY = 1.5
"""Latency of the slow memory over that of the platform: an assumption, as the benchmark prints no latency."""
WORKLOADS = 22
"""Workloads of the benchmark: its maximum is compared with the median maximum of as many random jobs."""


def alone_facts(world: World) -> pd.DataFrame:
    """Return median and maximum slowdown of jobs with a sixteenth of the cache, and with slow memory.

    Parameters
    ----------
    world : whose jobs; each counts once

    Returns
    -------
    DataFrame
        series, x, value: small_cache_slowdown and slow_memory_slowdown, _p50 and _max (of 22 random jobs, the median).
    """
    jobs = build_jobs(world, build_machines(world))
    whole = alone_cpi(jobs)
    slowdowns = {
        "small_cache_slowdown": alone_cpi(jobs, cache_share=CACHE_LEFT) / whole,
        "slow_memory_slowdown": alone_cpi(jobs, latency_factor=SLOW_MEMORY) / whole,
    }
    medians = {f"{name}_p50": np.median(value) for name, value in slowdowns.items()}
    maxima = {f"{name}_max": np.quantile(value, 0.5 ** (1 / WORKLOADS)) for name, value in slowdowns.items()}
    return numbers(**medians, **maxima)


def alone_cpi(
    jobs: Jobs, cache_share: float = 1.0, latency_factor: float = 1.0
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return (J,) cycles per instruction of each job with the reference machine to itself, at its all-core turbo.

    Parameters
    ----------
    jobs : from `build_jobs`
    cache_share : share of the last-level cache that it may use, above 0
    latency_factor : memory latency over that of the platform
    """
    latency_cycles = latency_factor * REFERENCE.memory_latency_s * REFERENCE_FREQUENCY_HZ
    waited = jobs.curve(cache_share * REFERENCE.llc_bytes) - jobs.prefetched_share * jobs.curve.floor
    return jobs.core_cpi * REFERENCE.core_cpi_factor + waited * latency_cycles / jobs.overlap
