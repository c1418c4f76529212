"""Service time from instructions, misses and a spec sheet, for any cache levels (Stewart et al. 2008, section 4.1)."""

from collections.abc import Sequence

import numpy as np

from models.arrays import Floats
from models.errors import InputError
from models.platforms import Platform


def sizes_bytes(platform: Platform) -> Floats:
    """Return the size of one cache of each level, the first first: (L,) bytes.

    Raises
    ------
    ValueError
        If the spec sheet names no cache.

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> sizes_bytes(PLATFORMS["piii"]) / 1024
    array([ 32., 128.])
    """
    if not platform.caches:
        raise InputError(f"caches of platform {platform.name} are not given, must be at least one level")
    return np.array([cache.size_bytes for cache in platform.caches])


def cycles_per_instruction(
    platform: Platform, misses: Sequence[Floats] | Floats, first_level_hits: Floats | float = 0.0
) -> Floats:
    """Return CPI + H1 C1 + H2 C2 + … + M Cmem: cycles per instruction, memory delays included.

    Hits of a level are the misses of the one before it less its own (section 4.1, first equation). Memory's latency in
    cycles is its latency in seconds times the base frequency. The spec sheets' CPI is that of a core whose every access
    hits the first level, so H1 C1 is part of it already; only for a CPI without it are the hits to be said, and the
    15-cent log, which counts no memory references, does not have them.

    Parameters
    ----------
    platform : spec sheet with L cache levels
    misses : (L, …) array, misses per instruction of each level, the first first
    first_level_hits : per instruction, as far as the platform's CPI leaves their latency out; (…) array or one

    Returns
    -------
    (…) array, cycles
    """
    reached = np.asarray(misses, dtype=np.float64)
    latency = np.array([cache.latency_cycles for cache in platform.caches])
    if len(reached) != len(latency):
        raise InputError(f"misses of {len(reached)} levels are given, must be of the {len(latency)} of {platform.name}")
    hits = np.concatenate([np.broadcast_to(first_level_hits, (1, *reached.shape[1:])), reached[:-1] - reached[1:]])
    memory_cycles = platform.memory_latency_s * platform.base_frequency_hz
    return np.asarray(platform.instruction_cpi + np.tensordot(latency, hits, axes=1) + reached[-1] * memory_cycles)


def service_time_s(platform: Platform, instructions: Floats, cycles: Floats, requests: Floats) -> Floats:
    """Return the service time of a mean request on the whole machine as one large virtual processor.

    Its speed is the summed clock of all logical processors (section 4.1.3).

    Parameters
    ----------
    platform : spec sheet
    instructions : (m,) instructions of all requests of a mix
    cycles : (m,) cycles per instruction, memory delays included
    requests : (m,) requests of the mix

    Returns
    -------
    (m,) array, seconds
        NaN where there is no request.
    """
    speed_hz = platform.vcpus * platform.base_frequency_hz
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(requests > 0, instructions * cycles / (speed_hz * requests), np.nan)
