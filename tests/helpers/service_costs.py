"""A request's cost on a machine, one number at a time: the readable twin of `analysis.crossplatform.costs`.

Departures are given as plain dictionaries of factors; nothing of the lens is used but spec sheets.
"""

from dataclasses import dataclass
from math import log


@dataclass
class Service:
    """What one type of request does, with the paper's power law and everything that the lens adds to it."""

    instructions: float
    level: float  # misses of capacity per instruction in 32 KiB
    exponent: float
    core: float = 1.0
    overlap: float = 1.0
    branches: float = 0.0
    written: float = 0.0
    smt: float = 0.0


NONE = {"cpi": 1.0, "near": 1.0, "far": 1.0, "memory": 1.0, "overlap": 1.0, "cache_share": 1.0, "smt": 1.0}


def misses(service, platform, machine, busy):
    """Misses per instruction of each level when that share of logical processors is busy."""
    found = []
    for cache in platform.caches:
        cores = min(cache.cores, platform.cores)
        mine = cache.size_bytes * machine["cache_share"] / (1.0 + (cores * platform.threads_per_core - 1) * busy)
        rate = service.level * (mine / 2**15) ** service.exponent
        if found:
            again = service.written * (1.0 - cores / platform.cores)
            rate = min(rate + again * (found[0] - rate), found[-1])
        found.append(rate)
    return found


def cycles(service, platform, machine, found, queueing):
    """Core cycles and waiting cycles of an instruction."""
    core = platform.instruction_cpi * service.core * machine["cpi"] + service.branches * platform.branch_miss_cycles
    wait = found[-1] * platform.memory_latency_s * machine["memory"] * platform.base_frequency_hz * queueing
    for level in range(1, len(found)):
        latency = platform.caches[level].latency_cycles * machine["near" if level == 1 else "far"]
        wait += (found[level - 1] - found[level]) * latency
    return core, wait / max(service.overlap * machine["overlap"], 1.0)


def traffic(service, platform, found, rate_per_s):
    """Share of the memory bandwidth in use that is attained, three quarters of the spec sheet's."""
    return rate_per_s * service.instructions * found[-1] * 64 * 1.3 / (0.75 * platform.memory_bandwidth_bytes_per_s)


def queueing(used, growth=1.0):
    used = min(used, 0.97)
    return 1.0 + growth * (0.3 * used + 0.67 * used**4.4)


def seconds(service, platform, machine=NONE, rate_per_s=0.0):
    """CPU seconds of a request, no sibling busy, at a rate: iterated until nothing changes."""
    busy, slower = 0.0, 1.0
    for _ in range(20):
        found = misses(service, platform, machine, busy)
        needed = service.instructions * sum(cycles(service, platform, machine, found, slower))
        needed /= platform.base_frequency_hz
        busy = min(rate_per_s * needed / platform.vcpus, 1.0)
        slower = queueing(traffic(service, platform, found, rate_per_s))
    return needed


def score(service, platform, machine=NONE):
    """Requests per second of a busy machine: by bisection on the rate itself."""
    found = misses(service, platform, machine, 1.0)

    def time_needed(rate):
        core, wait = cycles(service, platform, machine, found, queueing(traffic(service, platform, found, rate)))
        if platform.threads_per_core > 1:
            core *= 1.0 + service.smt * machine["smt"]
        return rate * service.instructions * (core + wait) / platform.base_frequency_hz / platform.vcpus

    low, high = 0.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if time_needed(middle) < 1.0 else (low, middle)
    return low


def exponent_seen(service, platform, machine=NONE):
    """Slope between the first two levels as counted on an idle machine."""
    first, second = misses(service, platform, machine, 0.0)[:2]
    sizes = [cache.size_bytes for cache in platform.caches]
    return log(second / first) / log(sizes[1] / sizes[0])
