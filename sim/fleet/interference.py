"""Who holds how much cache on a machine, and how long memory takes then: the interference fixed point, compiled."""

import numpy as np

from models.arrays import Floats
from models.code.compiled import njit
from sim.fleet.layout import MECHANISM, Contention, OwnPhysics, Residents
from sim.fleet.slots import (
    ACCESS_NOW,
    AHEAD,
    CORE_NOW,
    CPI,
    FLOOR,
    FREQUENCY,
    GAIN1,
    GAIN2,
    MPI,
    RATE,
    SET1,
    SET2,
    SHARE,
    SMT,
    STALL_NOW,
    USE,
)

LINE_BYTES, WRITE_BACK = 64.0, 1.3  # a cache line; bytes moved per missed one: three in ten are dirty when evicted
QUEUEING = 0.9  # latency at bandwidth utilisation U is idle latency × (1 + QUEUEING · U² / (1 − U))
UTILISATION_LIMIT = 0.97  # bandwidth utilisation at which the latency curve is cut
DAMPING = 0.6  # first step of the fixed point to new cache shares and latency; halved when the residual grows


@njit(cache=False)
def latency_factor(utilisation: float) -> float:
    """Return memory latency relative to idle at a bandwidth utilisation."""
    u = min(utilisation, UTILISATION_LIMIT)
    return 1.0 + QUEUEING * u * u / (1.0 - u)


@njit(cache=False, error_model="numpy")
def _settle(hot: Floats, n: int, latency_s: float) -> float:
    """Set every resident's misses, CPI and miss rate at its cache share; return the summed miss rate."""
    share, mpi, cpi, rate = hot[SHARE], hot[MPI], hot[CPI], hot[RATE]
    use, frequency, core, access = hot[USE], hot[FREQUENCY], hot[CORE_NOW], hot[ACCESS_NOW]
    floor, gain1, set1, gain2, set2, ahead = hot[FLOOR], hot[GAIN1], hot[SET1], hot[GAIN2], hot[SET2], hot[AHEAD]
    stall = hot[STALL_NOW]
    for i in range(n):
        square = share[i] * share[i]
        mpi[i] = access[i] * (floor[i] + gain1[i] / (set1[i] + square) + gain2[i] / (set2[i] + square))
        waited = mpi[i] - access[i] * ahead[i]
        cpi[i] = core[i] + waited * stall[i] * latency_s * frequency[i]
        rate[i] = use[i] * frequency[i] / cpi[i] * mpi[i]
    total = 0.0
    for i in range(n):
        total += rate[i]
    return total


@njit(cache=False, error_model="numpy")
def solve(hot: Floats, n: int, contention: Contention, latency_s: float) -> tuple[float, float, float]:
    """Solve one machine's interference fixed point in place; return latency, misses per second and the residual.

    Unknown are the cache shares `hot[SHARE]` and the memory latency. Given both, each resident's misses, CPI and miss
    rate follow; at the fixed point cache is held in proportion to miss rate, and latency is that of the summed traffic.
    The residual belongs to the CPI and miss rates left in `hot`: the larger of the relative change of latency and the
    largest change of a share relative to the cache.

    Parameters
    ----------
    hot : (FIELDS, slots) array; SHARE is the first guess, and the answer where the cache is not shared
    n : residents, in slots 0 to n − 1
    contention, latency_s : what they compete for, and the first guess of memory latency
    """
    share, rate = hot[SHARE], hot[RATE]
    residual, total, damping = np.inf, 0.0, DAMPING
    for _ in range(contention.iterations):
        total = _settle(hot, n, latency_s)
        wanted_s = contention.idle_latency_s
        if contention.share_bandwidth:
            wanted_s *= latency_factor(total * LINE_BYTES * WRITE_BACK / contention.bandwidth)
        before, residual = residual, abs(wanted_s - latency_s) / latency_s
        scale = contention.llc_bytes / max(total, 1e-300)
        if contention.share_llc:
            for i in range(n):
                residual = max(residual, abs(rate[i] * scale - share[i]) / contention.llc_bytes)
        if residual <= contention.tolerance:
            break
        damping *= 0.5 if residual > before else 1.0
        latency_s += damping * (wanted_s - latency_s)
        if contention.share_llc:
            for i in range(n):
                share[i] += damping * (rate[i] * scale - share[i])
    return latency_s, total, residual


@njit(cache=False, error_model="numpy")
def slow_down_by(own: OwnPhysics, residents: Residents, contention: Contention, threads: float, sibling: float) -> None:
    """Let neighbours slow each other down by somebody's own mechanism: core CPI ← core CPI / relative speed.

    What holds cache and moves bytes is what is there now, at the pace and the misses of the epoch before.
    """
    (hot, _, n), call = residents, own.call
    call[0] = MECHANISM
    busy = held = traffic = 0.0
    for i in range(n):
        busy += hot[USE, i]
        held += hot[SHARE, i]
        traffic += hot[USE, i] * hot[FREQUENCY, i] / hot[CPI, i] * hot[MPI, i]
    for i in range(n):
        misses_per_s = hot[USE, i] * hot[FREQUENCY, i] / hot[CPI, i] * hot[MPI, i]
        call[1] = max(0.0, busy - hot[USE, i]) / threads
        call[2] = max(0.0, traffic - misses_per_s) * LINE_BYTES * WRITE_BACK / contention.bandwidth
        call[3] = max(0.0, held - hot[SHARE, i]) / contention.llc_bytes
        call[4], call[5], call[6] = sibling, hot[MPI, i], hot[SMT, i]
        call[-1] = np.nan
        speed = own.mechanism(call[1], call[2], call[3], call[4], call[5], call[6])
        call[-1] = speed
        if not 0.0 < speed < np.inf:
            raise ValueError("no speed above 0")
        hot[CORE_NOW, i] /= speed
