"""The tables of a service world: what was counted and measured, and the truth that no log holds."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from models.arrays import Floats, Ints
from models.randomness import stream
from models.services.applications import Activities
from models.services.world import ServiceWorld
from sim.services import capacity
from sim.services.capacity import HostedService
from sim.services.counters import sample
from sim.services.serving import PlatformRun
from sim.services.throughput import greatest_rate, traffic
from sim.services.work import Work

Runs = Mapping[str, PlatformRun]
Sites = Mapping[str, HostedService]

COUNTERS = ("instructions", "l1_misses", "l2_misses")
ALONE_PER_S = 10.0
"""Arrival rate at which each type is tried alone (Stewart et al. 2008, table 8)."""
CURVE_BYTES = 2.0 ** np.arange(14.0, 25.0)
"""Sizes at which the miss curve is told: 16 KiB to 16 MiB, as in figure 3 of the paper."""


def counts(start_s: Floats, names: tuple[str, ...], requests: Ints) -> pd.DataFrame:
    """Return the table `service_counts`.

    Parameters
    ----------
    start_s : (n,) array, seconds
    names : of J types
    requests : (n, J) array
    """
    n, j = requests.shape
    types = np.tile(np.array(names, dtype=object), n)
    return pd.DataFrame({"start_s": np.repeat(start_s, j), "type": types, "requests": requests.ravel()})


def log(world: ServiceWorld, start_s: Floats, response_s: Mapping[str, Floats], runs: Runs) -> pd.DataFrame:
    """Return the table `service_log`: the measured platforms' counters, as sampled.

    Parameters
    ----------
    world : measured platforms, events per sample and seed
    start_s : (n,) array, seconds
    response_s : by platform, the (n,) mean response times of the intervals
    """
    parts = []
    for name in world.measured:
        counted = runs[name].counters
        if world.mechanisms.sampling:
            counted = sample(counted, world.sampling_events, stream(world.seed, f"samples on {name}"))
        columns = dict(zip(COUNTERS, counted.T, strict=True))
        parts.append(_rows(name, start_s, columns | {"response_time_s": response_s[name]}))
    return pd.concat(parts, ignore_index=True)


def cpu(measured: Iterable[str], start_s: Floats, runs: Runs) -> pd.DataFrame:
    """Return the table `service_cpu`.

    Parameters
    ----------
    start_s : (n,) array, seconds
    """
    parts = [_rows(name, start_s, {"utilisation": runs[name].utilisation}) for name in measured]
    return pd.concat(parts, ignore_index=True)


def truth(
    start_s: Floats, interval_s: float, requests: Ints, response_s: Mapping[str, Floats], runs: Runs
) -> pd.DataFrame:
    """Return the table `truth_service`.

    Parameters
    ----------
    start_s : (n,) array, seconds
    interval_s : their length
    requests : (n,) requests of each interval
    response_s : by platform, the (n,) mean response times of the intervals
    """
    parts = []
    for name, run in runs.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            service_s = np.where(requests > 0, run.utilisation * interval_s / requests, np.nan)
        columns = {"requests": requests, "service_time_s": service_s, "response_time_s": response_s[name]}
        counted = dict(zip(COUNTERS, run.counters.T, strict=True))
        parts.append(_rows(name, start_s, columns | {"utilisation": run.utilisation} | counted))
    return pd.concat(parts, ignore_index=True)


def _rows(platform: str, start_s: Floats, columns: Mapping[str, NDArray[np.generic]]) -> pd.DataFrame:
    return pd.DataFrame({"platform": platform, "start_s": start_s} | dict(columns))


def responses(work: Work, intervals: int, runs: Runs) -> dict[str, Floats]:
    """Return each platform's (n,) mean response times of the requests that arrived in each interval; NaN: none did."""
    interval = work.interval[work.request]
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            name: np.bincount(interval, run.response_s, intervals) / np.bincount(interval, minlength=intervals)
            for name, run in runs.items()
        }


def benchmarks(measured: tuple[str, ...], sites: Sites) -> pd.DataFrame:
    """Return the table `benchmarks`: every platform's score, and a request's counters where it was measured.

    The counters are those of a machine that the benchmark keeps busy, everything included that runs beside it.
    """
    rows = []
    for name, site in sites.items():
        mix = site.activities.popularity
        score = capacity.saturation(site, mix)
        counted = capacity.per_request(site, score * mix) if name in measured else np.full(3, np.nan)
        rows.append((name, score, *counted))
    return pd.DataFrame(rows, columns=["platform", "score_per_s", *COUNTERS])


def types(sites: Sites) -> pd.DataFrame:
    """Return the table `truth_service_types`."""
    parts = []
    for name, site in sites.items():
        processor_s, response_s = capacity.alone(site, ALONE_PER_S)
        service = site.activities
        parts.append(
            pd.DataFrame(
                {
                    "platform": name,
                    "type": service.names[: service.types],
                    "processor_s": processor_s,
                    "response_time_s": response_s,
                    "other_tiers_s": site.other_tiers_s,
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def miss_curve(service: Activities, share: float) -> pd.DataFrame:
    """Return the table `truth_miss_curve`: everything that the service executes in its long-run mix, alone.

    Parameters
    ----------
    service : types, collections and ticks
    share : mean share of a cache's nominal size that holds the service's data
    """
    work = service.rates(service.popularity[None])[0] * service.instructions
    misses = work / work.sum() @ service.misses_per_instruction(np.asarray(share * CURVE_BYTES))
    return pd.DataFrame({"size_bytes": CURVE_BYTES, "misses_per_instruction": misses})


def throughput(world: ServiceWorld, mix: Floats, sites: Sites) -> pd.DataFrame:
    """Return the table `truth_throughput`.

    Parameters
    ----------
    world : bounds on mean response time, and what the simulation needs
    mix : (J,) shares of the types
    """
    came = traffic(world, mix)
    rows = [
        (name, bound_s, greatest_rate(world, site, came, bound_s))
        for name, site in sites.items()
        for bound_s in world.bounds_s
    ]
    return pd.DataFrame(rows, columns=["platform", "bound_s", "throughput_per_s"])
