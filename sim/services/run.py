"""A world of services becomes tables: its requests are drawn once and served on every platform."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from models.errors import InputError
from models.services.world import ServiceWorld
from sim.recorder import Progress, Recorded, write_table
from sim.services import capacity, frames, mixes, serving, work

Frames = dict[str, pd.DataFrame]


def services(
    world: ServiceWorld,
    progress: Progress = lambda _what, _share: None,
    *,
    throughput: bool = True,
    types: bool = True,
) -> Frames:
    """Serve a world's requests on each of its platforms and return all tables.

    Tables `service_counts`, `service_log`, `service_cpu`, `benchmarks` and those that begin with `truth_service`,
    `truth_miss_curve` and `truth_throughput`; what is in them says `models.tables`.

    Parameters
    ----------
    progress : called with what is being done and the share of the whole that is done
    throughput : whether to find each platform's greatest throughput
    types : whether to say what each type of request does on each platform

    Raises
    ------
    ValueError
        If a platform is not known, a measured one does not serve, the horizon is no whole number of intervals, or no
        request comes.
    """
    check(world)
    progress("drawing requests", 0.0)
    sites = capacity.sites(world)
    service = sites[world.platforms[0]].activities
    load = mixes.draw(world, service.popularity)
    jobs = work.draw(world, service, load)
    if not jobs.request.size:
        raise InputError(f"no request comes within horizon_s = {world.horizon_s:g}")
    edge_s, runs = np.append(load.start_s, world.horizon_s), {}
    for i, (name, site) in enumerate(sites.items()):
        progress(f"serving {jobs.request.size} requests on {name}", i / (len(sites) + 1))
        runs[name] = serving.run(site, jobs, edge_s)
    progress("finding what the platforms could do", len(sites) / (len(sites) + 1))
    requests = work.counts(jobs, load.start_s.size, service.types)
    response_s = frames.responses(jobs, load.start_s.size, runs)
    tables = {
        "service_counts": frames.counts(load.start_s, service.names[: service.types], requests),
        "service_log": frames.log(world, load.start_s, response_s, runs),
        "service_cpu": frames.cpu(world.measured, load.start_s, runs),
        "benchmarks": frames.benchmarks(world.measured, capacity.sites(replace(world, clocks={}), "benchmark")),
        "truth_service": frames.truth(load.start_s, world.interval_s, requests.sum(axis=1), response_s, runs),
        "truth_miss_curve": frames.miss_curve(service, _held(world)),
    }
    if types:
        tables["truth_service_types"] = frames.types(sites)
    if throughput:
        mix = load.expected.sum(axis=0) / load.expected.sum()
        tables["truth_throughput"] = frames.throughput(world, mix, sites)
    return tables


def _held(world: ServiceWorld) -> float:
    return world.hardware.effective_cache_share if world.mechanisms.effective_cache else 1.0


def check(world: ServiceWorld) -> None:
    """Refuse a world whose parts do not go together."""
    faults = [
        f"{what}: {name} is named twice"
        for what, names in (("platforms", world.platforms), ("measured", world.measured))
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    faults += [
        f"measured: {name} is not among the platforms, {', '.join(world.platforms)}"
        for name in world.measured
        if name not in world.platforms
    ]
    faults += [
        f"clocks: {name} is not among the platforms, {', '.join(world.platforms)}"
        for name in world.clocks
        if name not in world.platforms
    ]
    if faults:
        raise InputError("; ".join(faults))


def record(world: ServiceWorld, directory: Path, progress: Progress = lambda _what, _share: None) -> Recorded:
    """Serve a world's requests and write its tables into a directory.

    Parameters
    ----------
    directory : an existing directory
    progress : called with what is being done and the share of the whole that is done

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     outcome = record(ServiceWorld(horizon_s=600.0, platforms=("piii",)), Path(directory))
    >>> outcome.counts["intervals"], len(outcome.tables)
    (20, 8)
    """
    tables = services(world, progress)
    written = tuple(write_table(directory, name, _columns(frame)) for name, frame in tables.items())
    requests = int(tables["service_counts"]["requests"].sum())
    counts = {"requests": requests, "intervals": mixes.starts(world).size, "platforms": len(world.platforms)}
    return Recorded(written, counts)


def _columns(frame: pd.DataFrame) -> Mapping[str, pd.Series]:
    return {str(name): frame[name] for name in frame.columns}
