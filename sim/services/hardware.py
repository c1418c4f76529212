"""The machines of a world: what its platforms really are, beside what their spec sheets say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from models.arrays import Floats
from models.errors import InputError
from models.fleet.processors import MemoryNodes, processor
from models.platforms import Platform, SheetDepartures
from models.randomness import stream
from models.services.world import Hardware, Mechanisms, ServiceWorld

TRANSFER = 1.3
"""Time of a line that another socket has changed, over that of idle memory, where sockets have memories of their own:
76 to 178 ns were measured where the next memory takes 81 to 100 (KU Leuven 2016-2023; FD.io CSIT 2018-2022)."""


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """One machine as it behaves; L levels of data caches, the first first. Its clock stays as it is."""

    name: str
    frequency_hz: float
    cores: int
    threads_per_core: int
    core_cpi_factor: float
    """Core CPI relative to the reference core."""
    least_cpi: float
    """Cycles per instruction of a thread without stalls and siblings, at least."""
    branch_miss_cycles: float
    cache_bytes: Floats
    """(L,) what one cache of each level holds of the service's data."""
    cache_cycles: Floats
    """(L,) load-to-use latency of each level; a hit in the first is part of core CPI."""
    cache_cores: Floats
    """(L,) cores that share one cache of each level."""
    memory_latency_s: float
    memory_bandwidth_bytes_per_s: float
    """What is attained, which is less than the spec sheet's."""
    overlap_factor: float
    """Misses that overlap relative to what the activity itself allows."""
    loadings: Floats
    """(FACTORS,) of its core, which the traits of activities meet: `models.fleet.processors`."""
    sockets: int
    nodes: MemoryNodes
    """Its memories; one where all sockets share front-side buses."""
    transfer: float
    """Time of a line that another socket has changed, over that of idle memory."""
    smt_factor: float
    """Slowdown by a busy sibling thread relative to the activity's own."""
    sibling_relief: float
    """By how much less a sibling slows down that always waits than one that never does."""

    @property
    def vcpus(self) -> int:
        """Hardware threads, the logical processors that an operating system counts."""
        return self.cores * self.threads_per_core


def draw_machines(world: ServiceWorld) -> Mapping[str, Machine]:
    """Return a world's machines by the names of their platforms, in the world's order.

    Configurations of one server (`Platform.variant_of`) depart from their spec sheets alike.
    """
    return MappingProxyType({sheet.name: _machine(sheet, world) for sheet in _sheets(world.platforms, world.sheets)})


def _sheets(names: Iterable[str], platforms: Mapping[str, Platform]) -> list[Platform]:
    if unknown := [name for name in names if name not in platforms]:
        raise InputError("; ".join(f"no platform {name!r}" for name in unknown))
    return [platforms[name] for name in names]


def _machine(sheet: Platform, world: ServiceWorld) -> Machine:
    how, mechanisms, levels = world.hardware, world.mechanisms, len(sheet.caches)
    rng = stream(world.seed, f"hardware of {sheet.variant_of or sheet.name}")
    spread = np.array([how.cpi_log_sd, how.overlap_log_sd, how.smt_log_sd, how.latency_log_sd])
    cpi, overlap, smt, memory = np.exp(spread * rng.standard_normal(4) * mechanisms.departure)
    own = world.own_platforms.get(sheet.name)
    its = processor(sheet.name, world.own_platforms)
    nodes, window = its.memory_nodes(sheet.sockets), its.overlap_factor if mechanisms.cores else 1.0
    departs = (own.departs if own is not None else None) or SheetDepartures()
    share, latency = rng.standard_normal((levels, 2)).T * mechanisms.departure
    return Machine(
        name=sheet.name,
        frequency_hz=sheet.base_frequency_hz,
        cores=sheet.cores,
        threads_per_core=sheet.threads_per_core,
        core_cpi_factor=sheet.core_cpi_factor * (departs.core_cpi or cpi),
        least_cpi=1.0 / its.width,
        branch_miss_cycles=sheet.branch_miss_cycles,
        cache_bytes=np.array([cache.size_bytes for cache in sheet.caches]) * _held(how, mechanisms, share),
        cache_cycles=np.array([cache.latency_cycles for cache in sheet.caches]) * np.exp(how.latency_log_sd * latency),
        cache_cores=np.array([min(cache.cores, sheet.cores) for cache in sheet.caches], float),
        memory_latency_s=sheet.memory_latency_s * (departs.memory_latency or memory),
        memory_bandwidth_bytes_per_s=sheet.memory_bandwidth_bytes_per_s
        * (departs.memory_bandwidth or 1.0)
        * its.attainable,
        overlap_factor=overlap * window,
        loadings=np.array(its.loadings) * mechanisms.cores,
        sockets=sheet.sockets,
        nodes=nodes,
        transfer=how.bus_transfer if nodes.count == 1 else TRANSFER,
        smt_factor=smt,
        sibling_relief=how.sibling_relief,
    )


def _held(how: Hardware, mechanisms: Mechanisms, normal: Floats) -> Floats:
    """Return the shares of the caches that hold the service's data."""
    if not mechanisms.effective_cache:
        return np.ones(normal.size)
    return np.minimum(1.0, how.effective_cache_share * np.exp(how.effective_cache_log_sd * normal))
