"""Who holds how much cache on a machine, and how long memory takes then: the interference fixed point, compiled."""

import numpy as np

from models.arrays import Floats
from models.code.compiled import njit
from models.fleet.memory import BEYOND, CUT, LINEAR, POWER, POWER_GAIN
from sim.fleet.draws import uniform
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
    JOB,
    KEY,
    MPI,
    NOWHERE,
    PART,
    QUOTA,
    RATE,
    REMOTE,
    SET1,
    SET2,
    SHARE,
    SLICE,
    SMT,
    SPAN,
    STALL_NOW,
    USE,
)

LINE_BYTES, WRITE_BACK = 64.0, 1.3  # a cache line; bytes moved per missed one: three in ten are dirty when evicted
LEAST = 1e-300  # misses per second of a cache that nobody uses
# Rows of scratch: residents' memory latency and cache share, slices' misses, nodes' latency wanted now, that of the
# guess before, and what was wanted at that.
LATENCY, WANTED, PRESSURE, NODES, SEEN, ASKED = range(6)
SCRATCH = 6
LEAST_MOVE = 1e-12  # by which part a latency has moved at least if a slope follows from it
ROUNDING = 1e-9  # by which part of a slice a quota may be above a whole number
DAMPING = (
    0.6  # first step of the fixed point to new cache shares and latency; shares' is halved when the residual grows
)


@njit(cache=False)
def latency_factor(use: float) -> float:
    """Return `models.fleet.memory.latency_factor` of one number."""
    measured = min(use, CUT)
    return float(1.0 + LINEAR * measured + POWER_GAIN * measured**POWER + BEYOND * (use - measured))


@njit(cache=False, error_model="numpy")
def _settle(hot: Floats, n: int, latency: Floats) -> None:
    """Set every resident's misses, CPI and miss rate at its cache share and memory latency."""
    share, mpi, cpi, rate = hot[SHARE], hot[MPI], hot[CPI], hot[RATE]
    use, frequency, core, access = hot[USE], hot[FREQUENCY], hot[CORE_NOW], hot[ACCESS_NOW]
    floor, gain1, set1, gain2, set2, ahead = hot[FLOOR], hot[GAIN1], hot[SET1], hot[GAIN2], hot[SET2], hot[AHEAD]
    stall = hot[STALL_NOW]
    for i in range(n):
        square = share[i] * share[i]
        mpi[i] = access[i] * (floor[i] + gain1[i] / (set1[i] + square) + gain2[i] / (set2[i] + square))
        waited = mpi[i] - access[i] * ahead[i]
        cpi[i] = core[i] + waited * stall[i] * latency[i] * frequency[i]
        rate[i] = use[i] * frequency[i] / cpi[i] * mpi[i]


@njit(cache=False, error_model="numpy")
def _reach(residents: Residents, contention: Contention, latency_s: Floats, latency: Floats) -> None:
    """Set every resident's memory latency from those of the nodes: of its own, and of the others for what is there."""
    hot, mark, n = residents
    nodes = contention.nodes
    if nodes == 1:
        for i in range(n):
            latency[i] = latency_s[0]
        return
    total, per_node = 0.0, contention.slices // nodes
    for node in range(nodes):
        total += latency_s[node]
    for i in range(n):
        home = latency_s[mark[SLICE, i] // per_node]
        others = (total - home) / (nodes - 1) * contention.remote_latency
        latency[i] = home + hot[REMOTE, i] * (others - home)


@njit(cache=False, error_model="numpy")
def _divide(residents: Residents, contention: Contention, scratch: Floats) -> None:
    """Set what every resident would hold of its slices in proportion to miss rates, in bytes."""
    hot, mark, n = residents
    rate, wanted, pressure, slices = hot[RATE], scratch[WANTED], scratch[PRESSURE], contention.slices
    if slices == 1:
        scale = contention.llc_bytes / max(_total(rate, n), LEAST)
        for i in range(n):
            wanted[i] = rate[i] * scale
        return
    pressure[:slices] = 0.0
    for i in range(n):
        for at in range(mark[SLICE, i], mark[SLICE, i] + mark[SPAN, i]):
            pressure[at] += rate[i] * hot[PART, i]
    for at in range(slices):
        pressure[at] = contention.llc_bytes / slices / max(pressure[at], LEAST)
    for i in range(n):
        scale = 0.0
        for at in range(mark[SLICE, i], mark[SLICE, i] + mark[SPAN, i]):
            scale += pressure[at]
        wanted[i] = rate[i] * hot[PART, i] * scale


@njit(cache=False, error_model="numpy", inline="always")
def _total(values: Floats, n: int) -> float:
    """Return the sum of the first n."""
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@njit(cache=False, error_model="numpy")
def _wanted_latency(residents: Residents, contention: Contention, node: int, total: float) -> float:
    """Return the latency of a node's memory at the traffic of those who live there and of those who reach for it.

    Other nodes' threads come over links, whose traffic delays them too; what they wait there is counted as the node's.
    """
    if not contention.share_bandwidth:
        return contention.idle_latency_s
    bytes_per_s, nodes = LINE_BYTES * WRITE_BACK, contention.nodes
    if nodes == 1:
        use = total * bytes_per_s / (contention.bandwidth * contention.attainable)
        return contention.idle_latency_s * latency_factor(use)
    hot, mark, n = residents
    own = remote = 0.0
    for i in range(n):
        there = hot[RATE, i] * hot[REMOTE, i]
        if mark[SLICE, i] // (contention.slices // nodes) == node:
            own += hot[RATE, i] - there
        else:
            remote += there / (nodes - 1)
    of_node = contention.bandwidth * contention.attainable / nodes
    here = (own + remote) * bytes_per_s / of_node
    links = remote * bytes_per_s / (of_node * contention.remote_bandwidth)
    return contention.idle_latency_s * latency_factor(max(here, links))


@njit(cache=False, inline="always")
def _next_latency(now_s: float, wanted_s: float, before_s: float, wanted_before_s: float) -> float:
    """Return the next guess of a memory's latency: where the line through the last two answers meets what was asked.

    Slower memory makes less traffic, so the line falls; where it seems to rise, cache shares moved more.
    """
    moved_s = now_s - before_s
    if before_s == 0.0 or abs(moved_s) < LEAST_MOVE * now_s:
        return now_s + DAMPING * (wanted_s - now_s)
    slope = min(0.0, (wanted_s - wanted_before_s) / moved_s)
    return now_s + (wanted_s - now_s) / (1.0 - slope)


@njit(cache=False, error_model="numpy")
def solve(residents: Residents, contention: Contention, latency_s: Floats, scratch: Floats) -> tuple[float, float]:
    """Solve one machine's interference fixed point in place; return misses per second and the residual.

    Unknown are the cache shares `hot[SHARE]` and the memory latency of each node. Given both, each resident's misses,
    CPI and miss rate follow; at the fixed point a slice is held in proportion to the miss rates of those who live on
    it, and latency is that of the summed traffic. The residual belongs to the CPI and miss rates left in `hot`: the
    larger of the relative change of latency and the largest change of a share relative to the cache.

    Parameters
    ----------
    residents : SHARE is the first guess, and the answer where the cache is not shared
    contention : what they compete for
    latency_s : (nodes,) array, the first guess of memory latency, and the answer
    scratch : (SCRATCH, max(slots, slices)) array, contents do not matter
    """
    hot, _, n = residents
    share, wanted = hot[SHARE], scratch[WANTED]
    wanted_s, seen_s, asked_s = scratch[NODES], scratch[SEEN], scratch[ASKED]
    seen_s[: contention.nodes] = 0.0
    residual, total, damping = np.inf, 0.0, DAMPING
    for _ in range(contention.iterations):
        _reach(residents, contention, latency_s, scratch[LATENCY])
        _settle(hot, n, scratch[LATENCY])
        total = _total(hot[RATE], n)
        before, residual = residual, 0.0
        for node in range(contention.nodes):
            wanted_s[node] = _wanted_latency(residents, contention, node, total)
            residual = max(residual, abs(wanted_s[node] - latency_s[node]) / latency_s[node])
        if contention.share_llc:
            _divide(residents, contention, scratch)
            for i in range(n):
                residual = max(residual, abs(wanted[i] - share[i]) / contention.llc_bytes)
        if residual <= contention.tolerance:
            break
        damping *= 0.5 if residual > before else 1.0
        for node in range(contention.nodes):
            now_s = latency_s[node]
            latency_s[node] = _next_latency(now_s, wanted_s[node], seen_s[node], asked_s[node])
            seen_s[node], asked_s[node] = now_s, wanted_s[node]
        if contention.share_llc:
            for i in range(n):
                share[i] += damping * (wanted[i] - share[i])
    return total, residual


@njit(cache=False)
def _next_homeless(residents: Residents) -> int:
    """Return the resident without a place whose key is least, so that the order of slots decides nothing; −1: none."""
    _, mark, n = residents
    chosen = -1
    for i in range(n):
        if mark[SLICE, i] == NOWHERE and (chosen < 0 or mark[KEY, i] < mark[KEY, chosen]):
            chosen = i
    return chosen


@njit(cache=False, error_model="numpy")
def settle_down(residents: Residents, platform: np.record, remote_share: float, load: Floats) -> None:
    """Give residents that have no place yet the slices with least quota on them: as few as their threads need.

    They stay within one node where they fit into it; then a share of their accesses that was drawn for them goes to
    other nodes, and else what is not on the node of their first slice.

    Parameters
    ----------
    residents : those who have a place keep it
    load : (slices,) array, scratch
    """
    hot, mark, n = residents
    slices, nodes = platform.slices, platform.nodes
    per_node, threads = slices // nodes, platform.threads / slices
    load[:slices] = 0.0
    for i in range(n):
        if mark[SLICE, i] != NOWHERE:
            for at in range(mark[SLICE, i], mark[SLICE, i] + mark[SPAN, i]):
                load[at] += hot[QUOTA, i] * hot[PART, i]
    for _ in range(n):
        i = _next_homeless(residents)
        if i < 0:
            return
        span = min(slices, max(1, int(np.ceil(hot[QUOTA, i] / threads - ROUNDING))))
        best, least = 0, np.inf
        for first in range(slices - span + 1):
            if span <= per_node and first // per_node != (first + span - 1) // per_node:
                continue
            there = load[first : first + span].sum()
            if there < least - ROUNDING:
                best, least = first, there
        mark[SLICE, i], mark[SPAN, i], hot[PART, i] = best, span, 1.0 / span
        for at in range(best, best + span):
            load[at] += hot[QUOTA, i] / span
        drawn = 2.0 * remote_share * uniform(np.uint64(mark[KEY, i]), mark[JOB, i])
        hot[REMOTE, i] = 0.0 if nodes == 1 else min(1.0, max(drawn, 1.0 - per_node / span))


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
