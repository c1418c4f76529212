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
    CRITICAL,
    FLOOR,
    FREQUENCY,
    GAIN1,
    GAIN2,
    HOME,
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
# Rows of scratch: residents' memory latency, by how much their misses per second change with a byte of cache, and the
# bytes that a miss per second holds; slices' bytes for a miss per second; nodes' latency wanted now, that of the guess
# before, and what was wanted at that; by how much others' memory is further, misses per second of their own, and of
# their threads elsewhere; slices' bytes for a miss per second of best-effort residents, where these are confined.
LATENCY, SLOPE, SCALE, PRESSURE, NODES, SEEN, ASKED, FURTHER, OWN, AWAY, CONFINED = range(11)
SCRATCH = 11
LEAST_MOVE = 1e-12  # by which part a latency has moved at least if a slope follows from it
LEAST_DAMPING = 0.125  # of a step to the shares that are wanted: a smaller one would stop short of them
ROUNDING = 1e-9  # by which part of a slice a quota may be above a whole number


@njit(cache=False, borrows=True)
def latency_factor(use: float) -> float:
    """Return `models.fleet.memory.latency_factor` of one number."""
    measured = min(use, CUT)
    return float(1.0 + LINEAR * measured + POWER_GAIN * measured**POWER + BEYOND * (use - measured))


@njit(cache=False, error_model="numpy", borrows=True)
def _settle(hot: Floats, n: int, latency: Floats, slope: Floats) -> float:
    """Set every resident's misses, CPI and miss rate at its cache share and memory latency, and the rate's slope.

    That is by how much misses per second change with a byte of cache: fewer misses, some of them hidden, at more
    instructions per second. Return the misses per second of all.

    A resident's rows are written after all of it is read: the compiler cannot know that rows do not overlap, and would
    read everything again after each write. The two working sets share a division.
    """
    share, mpi, cpi, rate = hot[SHARE], hot[MPI], hot[CPI], hot[RATE]
    use, frequency, core, access = hot[USE], hot[FREQUENCY], hot[CORE_NOW], hot[ACCESS_NOW]
    floor, gain1, set1, gain2, set2, ahead = hot[FLOOR], hot[GAIN1], hot[SET1], hot[GAIN2], hot[SET2], hot[AHEAD]
    stall, total = hot[STALL_NOW], 0.0
    for i in range(n):
        square = share[i] * share[i]
        beyond1, beyond2 = set1[i] + square, set2[i] + square
        both = 1.0 / (beyond1 * beyond2)
        near1, near2 = both * beyond2, both * beyond1
        misses = access[i] * (floor[i] + gain1[i] * near1 + gain2[i] * near2)
        hidden = access[i] * ahead[i]
        cycles = stall[i] * latency[i] * frequency[i]
        needed = core[i] + (misses - hidden) * cycles
        ipc = 1.0 / needed
        pace = use[i] * frequency[i] * ipc
        growth = -2.0 * share[i] * access[i] * (gain1[i] * near1 * near1 + gain2[i] * near2 * near2)
        steep = pace * growth * (core[i] - hidden * cycles) * ipc
        mpi[i], cpi[i], rate[i], slope[i] = misses, needed, pace * misses, steep
        total += pace * misses
    return total


@njit(cache=False, error_model="numpy", borrows=True)
def _reach(residents: Residents, contention: Contention, latency_s: Floats, scratch: Floats) -> None:
    """Set every resident's memory latency from those of the nodes: of its own, and of the others for what is there."""
    hot, mark, n = residents
    latency, further, nodes = scratch[LATENCY], scratch[FURTHER], contention.nodes
    if nodes == 1:
        for i in range(n):
            latency[i] = latency_s[0]
        return
    total = _total(latency_s, nodes)
    for node in range(nodes):
        others = (total - latency_s[node]) / (nodes - 1) * contention.remote_latency
        further[node] = others - latency_s[node]
    for i in range(n):
        latency[i] = latency_s[mark[HOME, i]] + hot[REMOTE, i] * further[mark[HOME, i]]


@njit(cache=False, error_model="numpy", borrows=True)
def _divide(residents: Residents, contention: Contention, total: float, scratch: Floats) -> None:
    """Set how many bytes of its slices a resident would hold for each miss per second: in proportion to miss rates."""
    hot, mark, n = residents
    rate, scale, pressure, slices = hot[RATE], scratch[SCALE], scratch[PRESSURE], contention.slices
    if slices == 1:
        of_all = contention.llc_bytes / max(total, LEAST)
        for i in range(n):
            scale[i] = of_all
        return
    for at in range(slices):
        pressure[at] = 0.0
    for i in range(n):
        for at in range(mark[SLICE, i], mark[SLICE, i] + mark[SPAN, i]):
            pressure[at] += rate[i] * hot[PART, i]
    for at in range(slices):
        pressure[at] = contention.llc_bytes / slices / max(pressure[at], LEAST)
    for i in range(n):
        of_slices = 0.0
        for at in range(mark[SLICE, i], mark[SLICE, i] + mark[SPAN, i]):
            of_slices += pressure[at]
        scale[i] = hot[PART, i] * of_slices


@njit(cache=False, error_model="numpy", borrows=True)
def _confine(residents: Residents, contention: Contention, scratch: Floats) -> None:
    """Do as `_divide` where best-effort residents may hold a share of every slice together and no more.

    Below that share they compete with all; what they are kept from, the latency-critical ones hold.
    """
    hot, mark, n = residents
    slices, ways, slice_bytes = contention.slices, contention.best_effort_ways, contention.llc_bytes / contention.slices
    pressure, confined = scratch[PRESSURE], scratch[CONFINED]
    for at in range(slices):
        pressure[at] = confined[at] = 0.0
    for i in range(n):
        for at in range(mark[SLICE, i], mark[SLICE, i] + mark[SPAN, i]):
            if hot[CRITICAL, i] > 0.0:
                pressure[at] += hot[RATE, i] * hot[PART, i]
            else:
                confined[at] += hot[RATE, i] * hot[PART, i]
    for at in range(slices):
        critical, effort = pressure[at], confined[at]
        share = min(ways, effort / max(critical + effort, LEAST))
        pressure[at] = (1.0 - share) * slice_bytes / max(critical, LEAST)
        confined[at] = share * slice_bytes / max(effort, LEAST)
    for i in range(n):
        of_slices = 0.0
        for at in range(mark[SLICE, i], mark[SLICE, i] + mark[SPAN, i]):
            of_slices += pressure[at] if hot[CRITICAL, i] > 0.0 else confined[at]
        scratch[SCALE, i] = hot[PART, i] * of_slices


@njit(cache=False, error_model="numpy", borrows=True)
def _farthest(hot: Floats, n: int, scale: Floats) -> float:
    """Return the largest change of a share that is wanted, in bytes."""
    farthest = 0.0
    for i in range(n):
        change = abs(hot[RATE, i] * scale[i] - hot[SHARE, i])
        farthest = change if change > farthest else farthest
    return farthest


@njit(cache=False, error_model="numpy", borrows=True)
def _move(hot: Floats, n: int, scratch: Floats, damping: float) -> None:
    """Move every share by a step of Newton's method to what is wanted, which falls as the share grows.

    Only the part of the Jacobian that is its diagonal counts: what others lose to a resident is left to the next step.
    """
    share, rate, scale, slope = hot[SHARE], hot[RATE], scratch[SCALE], scratch[SLOPE]
    for i in range(n):
        share[i] += damping * (rate[i] * scale[i] - share[i]) / (1.0 - min(0.0, slope[i] * scale[i]))


@njit(cache=False, error_model="numpy", borrows=True)
def _total(values: Floats, n: int) -> float:
    """Return the sum of the first n."""
    total = 0.0
    for i in range(n):
        total += values[i]
    return total


@njit(cache=False, error_model="numpy", borrows=True)
def _want(residents: Residents, contention: Contention, total: float, scratch: Floats) -> None:
    """Set the latency of each node's memory at the traffic of those who live there and of those who reach for it.

    Other nodes' threads come over links, whose traffic delays them too; what they wait there is counted as the node's.
    """
    (hot, mark, n), nodes, wanted_s = residents, contention.nodes, scratch[NODES]
    of_node = contention.bandwidth * contention.attainable / nodes / (LINE_BYTES * WRITE_BACK)
    if nodes == 1 or not contention.share_bandwidth:
        use = total / of_node if contention.share_bandwidth else 0.0
        for node in range(nodes):
            wanted_s[node] = contention.idle_latency_s * latency_factor(use)
        return
    own, away = scratch[OWN], scratch[AWAY]
    for node in range(nodes):
        own[node] = away[node] = 0.0
    for i in range(n):
        elsewhere = hot[RATE, i] * hot[REMOTE, i]
        own[mark[HOME, i]] += hot[RATE, i] - elsewhere
        away[mark[HOME, i]] += elsewhere
    total_away = _total(away, nodes)
    for node in range(nodes):
        remote = (total_away - away[node]) / (nodes - 1)
        use = max(own[node] + remote, remote / contention.remote_bandwidth) / of_node
        wanted_s[node] = contention.idle_latency_s * latency_factor(use)


@njit(cache=False, borrows=True)
def _next_latency(now_s: float, wanted_s: float, before_s: float, wanted_before_s: float) -> float:
    """Return the next guess of a memory's latency: where the line through the last two answers meets what was asked.

    Slower memory makes less traffic, so the line falls; where it seems to rise, cache shares moved more.
    """
    moved_s = now_s - before_s
    if before_s == 0.0 or abs(moved_s) < LEAST_MOVE * now_s:
        return wanted_s
    slope = min(0.0, (wanted_s - wanted_before_s) / moved_s)
    return now_s + (wanted_s - now_s) / (1.0 - slope)


@njit(cache=False, error_model="numpy", borrows=True)
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
    wanted_s, seen_s, asked_s = scratch[NODES], scratch[SEEN], scratch[ASKED]
    for node in range(contention.nodes):
        seen_s[node] = 0.0
    residual, total, damping = np.inf, 0.0, 1.0
    for _ in range(contention.iterations):
        _reach(residents, contention, latency_s, scratch)
        total = _settle(hot, n, scratch[LATENCY], scratch[SLOPE])
        _want(residents, contention, total, scratch)
        before, residual = residual, 0.0
        for node in range(contention.nodes):
            residual = max(residual, abs(wanted_s[node] - latency_s[node]) / latency_s[node])
        if contention.share_llc:
            if contention.best_effort_ways < 1.0:
                _confine(residents, contention, scratch)
            else:
                _divide(residents, contention, total, scratch)
            residual = max(residual, _farthest(hot, n, scratch[SCALE]) / contention.llc_bytes)
        if residual <= contention.tolerance:
            break
        damping = max(0.5 * damping, LEAST_DAMPING) if residual > before else damping
        for node in range(contention.nodes):
            now_s = latency_s[node]
            latency_s[node] = _next_latency(now_s, wanted_s[node], seen_s[node], asked_s[node])
            seen_s[node], asked_s[node] = now_s, wanted_s[node]
        if contention.share_llc:
            _move(hot, n, scratch, damping)
    return total, residual


@njit(cache=False, borrows=True)
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
            slices_load = load[first : first + span].sum()
            if slices_load < least - ROUNDING:
                best, least = first, slices_load
        mark[SLICE, i], mark[SPAN, i], hot[PART, i] = best, span, 1.0 / span
        mark[HOME, i] = best // per_node
        for at in range(best, best + span):
            load[at] += hot[QUOTA, i] / span
        drawn = 2.0 * remote_share * uniform(np.uint64(mark[KEY, i]), mark[JOB, i])
        hot[REMOTE, i] = 0.0 if nodes == 1 else min(1.0, max(drawn, 1.0 - per_node / span))


@njit(cache=False, error_model="numpy", borrows=True)
def slow_down_by(own: OwnPhysics, residents: Residents, contention: Contention, threads: float, sibling: float) -> None:
    """Let neighbours slow each other down by somebody's own mechanism: core CPI ← core CPI / relative speed.

    What holds cache and moves bytes is what is there now, at the pace and the misses of the epoch before.
    """
    (hot, _, n), call = residents, own.call
    call[0] = MECHANISM
    busy = cached = traffic = 0.0
    for i in range(n):
        busy += hot[USE, i]
        cached += hot[SHARE, i]
        traffic += hot[USE, i] * hot[FREQUENCY, i] / hot[CPI, i] * hot[MPI, i]
    for i in range(n):
        misses_per_s = hot[USE, i] * hot[FREQUENCY, i] / hot[CPI, i] * hot[MPI, i]
        call[1] = max(0.0, busy - hot[USE, i]) / threads
        call[2] = max(0.0, traffic - misses_per_s) * LINE_BYTES * WRITE_BACK / contention.bandwidth
        call[3] = max(0.0, cached - hot[SHARE, i]) / contention.llc_bytes
        call[4], call[5], call[6] = sibling, hot[MPI, i], hot[SMT, i]
        call[-1] = np.nan
        speed = own.mechanism(call[1], call[2], call[3], call[4], call[5], call[6])
        call[-1] = speed
        if not 0.0 < speed < np.inf:
            raise ValueError("no speed above 0")
        hot[CORE_NOW, i] /= speed
