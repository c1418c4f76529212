"""Jobs alone on a machine: how much less cache, slower memory or another core would slow each of them down.

No co-runner, no queue for memory: cycles per instruction follow from a job's own miss curve and from latency.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from analysis.figures.criteria import numbers
from models.arrays import Floats
from models.fleet.inventory import REFERENCE_FREQUENCY_HZ, Jobs, build_jobs, build_machines
from models.fleet.world import World
from models.platforms import PLATFORMS
from sim.fleet.day import core_table, platform_table

REFERENCE = PLATFORMS["haswell_2698v3"]
CACHE_LEFT = 1 / 16
"""Share of the last-level cache that is left, as in the benchmark."""
SLOW_MEMORY = 1.5
"""Latency of the slow memory over that of the platform: an assumption, as the benchmark prints no latency."""
WORKLOADS = 22
"""Workloads of the benchmark: its maximum is compared with the median maximum of as many random jobs."""
PAIRS: Final = {
    "haswell_broadwell": ("haswell_2698v3", "broadwell_2698v4"),
    "broadwell_skylake": ("broadwell_2698v4", "skylake_6148"),
    "naples_rome": ("naples_7601", "rome_7742"),
    "icelake_rome": ("icelake_8380", "rome_7742"),
}
"""Pairs of cores on which the same programs were measured."""


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


def platform_facts(world: World) -> pd.DataFrame:
    """Return how much jobs differ in what one core does per clock over another: standard deviations of log ratios.

    Each job runs alone with the last-level cache of its slice, at the highest clock of one core.

    Parameters
    ----------
    world : whose jobs

    Returns
    -------
    DataFrame
        series, x, value: platform_ratio_log_sd_A_B for `PAIRS`.
    """
    cpi = lone_cpi(world, sorted({name for pair in PAIRS.values() for name in pair}))
    spreads = {pair: np.log(cpi[first] / cpi[second]).std() for pair, (first, second) in PAIRS.items()}
    return numbers(**{f"platform_ratio_log_sd_{pair}": float(spread) for pair, spread in spreads.items()})


def lone_cpi(world: World, names: Sequence[str]) -> dict[str, Floats]:
    """Return cycles per instruction of each job alone on some platforms, at the highest clock of one core.

    Parameters
    ----------
    world : whose jobs
    names : of platforms

    Returns
    -------
    dict
        From a platform to (J,) numbers.

    Examples
    --------
    >>> cpi = lone_cpi(World(), ["haswell_2698v3", "icelake_8380"])
    >>> bool(np.median(cpi["icelake_8380"]) < np.median(cpi["haswell_2698v3"]))
    True
    """
    fleet = replace(world.fleet, machines=len(names), platforms=dict.fromkeys(names, 1 / len(names)))
    machines, jobs = build_machines(replace(world, fleet=fleet)), build_jobs(world, build_machines(world))
    sheets, core_cpi = platform_table(world, machines), core_table(world, machines, jobs)
    cpi = {}
    for name, sheet, factor in zip(machines.platform_names, sheets, core_cpi, strict=True):
        waited = jobs.curve(sheet["llc_bytes"] / sheet["slices"]) - jobs.prefetched_share * jobs.curve.floor
        stall_cycles = sheet["latency_s"] * sheet["single_hz"] / (jobs.overlap * sheet["overlap"])
        cpi[name] = jobs.core_cpi * factor + waited * stall_cycles
    return cpi
