"""What a job would do on a platform where it never ran, from its CPI and last-level misses where it did.

CPI = core + misses × latency / overlap (Stewart et al. 2008, section 4.1, with one level of caches): what is left of
the measured CPI after memory is the job's own core CPI, which is that of the spec sheet times a factor that it carries
along. Misses follow a power of the cache that a hardware thread has.
"""

import numpy as np
from numpy.typing import ArrayLike

from analysis.crossplatform.departures import Priors
from models.arrays import Floats
from models.platforms import Platform

_LEAST_CORE = 0.25
"""Of the measured CPI: what cores themselves need at least, however much the counters say that memory cost."""


def log_rates(
    origin: Platform, target: Platform, clocks_hz: tuple[float, float], cpi: ArrayLike, misses: ArrayLike
) -> Floats:
    """Return the logarithm of instructions per second of jobs on a platform over those on another.

    Parameters
    ----------
    origin, target : spec sheets of where jobs were measured, and of where they are to run
    clocks_hz : of both, in the same order
    cpi : (J,) cycles per instruction, measured on the origin
    misses : (J,) last-level misses per instruction there

    Returns
    -------
    (J,) array

    Examples
    --------
    >>> from models.platforms import PLATFORMS
    >>> haswell, skylake = PLATFORMS["haswell_2698v3"], PLATFORMS["skylake_6148"]
    >>> log_rates(haswell, skylake, (2.8e9, 3.1e9), [1.0, 3.0], [0.0, 0.02]).round(2)
    array([ 0.23, -0.4 ])
    """
    overlap = float(np.exp(Priors().overlap[0]))
    cpi, misses = np.asarray(cpi, np.float64), np.asarray(misses, np.float64)
    waits = [sheet.memory_latency_s * clock / overlap for sheet, clock in zip((origin, target), clocks_hz, strict=True)]
    core = np.maximum(cpi - misses * waits[0], _LEAST_CORE * cpi)
    waited = cpi - core
    cache = target.llc_bytes / target.vcpus / (origin.llc_bytes / origin.vcpus)
    carried = core * target.instruction_cpi / origin.instruction_cpi
    carried = carried + waited * waits[1] / waits[0] * cache ** Priors().exponent[0]
    return np.asarray(np.log(cpi / carried) + np.log(clocks_hz[1] / clocks_hz[0]))
