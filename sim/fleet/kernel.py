"""The epoch kernel: a power domain's whole horizon, all machines' physics, compiled.

Power domains share only the load and phase tables, so one thread simulates each from the first to the last epoch:
results do not depend on threads, and memory follows the domains in flight.

In each epoch of each machine, stays leave and enter (`sim.fleet.turnover`); every resident's demand follows from its
load and its pace in the epoch before; the governor chooses frequencies by the load and by who waits for memory
(`sim.fleet.power`); the interference fixed point is solved (`sim.fleet.interference`); counters, power and energy are
summed. A governor looks many times in an epoch: where stalls guide it, the epoch is the state in which its looks end,
or half of each of the two between which they alternate. Then the allowance of the domain's machines follows the gap
between its budget and its power.

Of all of it `_simulated` alone is cached; the others are parts of it.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit, with_functions
from models.fleet import processors
from sim.fleet.draws import mix, noise
from sim.fleet.interference import LINE_BYTES, SCRATCH, WRITE_BACK, settle_down, slow_down_by, solve
from sim.fleet.layout import (
    OWN_POLICY,
    Clocked,
    Contention,
    Inputs,
    LoadedHost,
    MachineEpoch,
    OperatingConditions,
    Outputs,
    OwnGovernor,
    OwnPhysics,
    PowerDomain,
    Residents,
)
from sim.fleet.own_physics import OwnFunctions
from sim.fleet.power import STALL_AWARE, draw, set_clocks, turbo_hz
from sim.fleet.slots import (
    ACCESS_NOW,
    AHEAD,
    BUSY,
    CORE,
    CORE_CYCLES,
    CORE_NOW,
    CPI,
    CPU_S,
    CRITICAL,
    CYCLES,
    E_CAPPED,
    E_CPU_S,
    E_CYCLES,
    E_ENERGY_J,
    E_INSTANCES,
    E_INSTRUCTIONS,
    E_MISSES,
    E_QUOTA,
    E_RESIDUAL,
    ELASTIC,
    FIELDS,
    FLOOR,
    FREQUENCY,
    GAIN1,
    GAIN2,
    INSTR,
    INSTRUCTIONS,
    JOB,
    KEY,
    M_CAPPED,
    M_ENERGY_J,
    MARKS,
    MISSES,
    MPI,
    NETWORK,
    NO_TRACE,
    NOISE_SD,
    NOWHERE,
    PACE,
    QUEUED,
    QUOTA,
    REQUESTS,
    ROW,
    SET1,
    SET2,
    SHARE,
    SLICE,
    SMT,
    SPIN,
    STALL,
    STALL_NOW,
    THROTTLED,
    THROTTLED_S,
    TRACE,
    USE,
    WAIT_S,
    WAITED,
    WANDER,
)
from sim.fleet.turnover import switches, turn_over, write_out

CAPPING_GAIN = 0.5  # how strongly a power domain's allowance follows the gap between budget and power, per epoch
MIN_ALLOWANCE = 0.5  # lowest allowance of a machine in a capped domain, relative to its own cap
CLOCK_ROUNDING = 1e-13  # by which part a clock between two P-states may be off
MEMORY, CLOCK = range(2)  # of `sim.fleet.layout.RESOURCES`
# Rows of scratch beside those of interference: clocks that the governor wishes now, next, and wished before; clocks,
# CPI and misses before; clocks that are put aside.
WISHED, NEXT, BEFORE, HZ_BEFORE, CPI_BEFORE, MPI_BEFORE, ASIDE = range(SCRATCH, SCRATCH + 7)
MOST_LOOKS = 8  # of a governor until its clocks must alternate between two states, or be one
LEAST_FACTOR = 0.2  # least factor by which wandering behaviour may change core CPI or memory accesses


@njit(cache=False, borrows=True)
def _incidents(inputs: Inputs, machine: int, epoch: int) -> tuple[float, float]:
    """Return by which factors a machine's memory latency is longer, and its highest clock lower, in an epoch."""
    memory = clock = 1.0
    for k in range(inputs.spell_start[machine], inputs.spell_start[machine + 1]):
        spell = inputs.spells[k]
        if spell.start <= epoch < spell.end:
            memory *= spell.factor if spell.resource == MEMORY else 1.0
            clock *= spell.factor if spell.resource == CLOCK else 1.0
    return memory, clock


@njit(cache=False, borrows=True)
def _conditions(inputs: Inputs, domain: PowerDomain, local: int, epoch: int) -> OperatingConditions:
    """Return what the machine is to its residents in this epoch."""
    machine, settings = inputs.machines[domain.first + local], inputs.settings[0]
    own_key = settings.key ^ mix(np.uint64(machine.number + 1))
    if epoch == 0:
        domain.wander[local] = noise(own_key, -1)
    domain.wander[local] *= settings.rho
    domain.wander[local] += np.sqrt(1.0 - settings.rho**2) * noise(own_key, epoch)
    after = 1 if epoch >= machine.feature_from else 0
    if inputs.switched.shape[0] > 0:
        after = 1 if inputs.switched[domain.first + local, epoch] else 0
    platform = inputs.platforms[machine.platform[after]]
    slower, throttle = _incidents(inputs, domain.first + local, epoch)
    contention = Contention(
        idle_latency_s=platform.latency_s * machine.latency_factor * slower,
        bandwidth=platform.bandwidth * machine.bandwidth_factor,
        attainable=platform.attainable,
        llc_bytes=platform.llc_bytes,
        slices=platform.slices,
        nodes=platform.nodes,
        remote_latency=platform.remote_latency,
        remote_bandwidth=platform.remote_bandwidth,
        share_llc=settings.llc,
        share_bandwidth=settings.bandwidth,
        tolerance=settings.tolerance,
        iterations=settings.iterations,
        best_effort_ways=settings.best_effort_ways,
    )
    own = max(LEAST_FACTOR, 1.0 + settings.machine_sd * domain.wander[local])
    return OperatingConditions(
        platform=machine.platform[after],
        governor=machine.governor[after],
        contention=contention,
        power_factor=machine.power_factor,
        access=inputs.rack_access[epoch, machine.rack] * own,
        network=inputs.rack_network[epoch, machine.rack],
        limit_w=platform.limit_w * domain.allowance[0],
        throttle=throttle,
    )


@njit(cache=False, borrows=True)
def _divided_alike(before: np.record, after: np.record) -> bool:
    """Return whether two platforms have as many caches and memories, so that residents may stay where they are."""
    return bool(before.slices == after.slices and before.nodes == after.nodes)


@njit(cache=False, error_model="numpy", borrows=True)
def _give_places(inputs: Inputs, domain: PowerDomain, local: int, conditions: OperatingConditions) -> bool:
    """Give newcomers caches and a memory to live on, and everybody when the machine has become another platform.

    Return whether there was anybody without.
    """
    hot, mark, n = domain.hot[local], domain.mark[local], domain.residents[local]
    platform, remote_share = inputs.platforms[conditions.platform], inputs.settings[0].remote_share
    before, domain.divided[local] = domain.divided[local], conditions.platform
    if before == NOWHERE or not _divided_alike(inputs.platforms[before], platform):
        mark[SLICE, :n] = NOWHERE
        domain.latency_s[local] = conditions.contention.idle_latency_s
    homeless = False
    for i in range(n):
        homeless |= mark[SLICE, i] == NOWHERE
    if homeless:
        settle_down(Residents(hot, mark, n), platform, remote_share, domain.scratch[0])
    return homeless


@njit(cache=False, borrows=True)
def _wander(residents: Residents, rho: float, epoch: int) -> None:
    """Let every resident's own behaviour wander on: an autoregression of variance 1."""
    hot, mark, n = residents
    fresh = np.sqrt(1.0 - rho * rho)
    for i in range(n):
        hot[WANDER, i] = rho * hot[WANDER, i] + fresh * noise(np.uint64(mark[KEY, i]), epoch)


@njit(cache=False, borrows=True)
def _behave(residents: Residents, core_cpi: Floats, platform: np.record, access: float, phase: Floats) -> None:
    """Set every resident's core CPI, memory accesses and overlap of this epoch, before its co-runners.

    No behaviour retires more instructions in a cycle than the core is wide.
    """
    hot, mark, n = residents
    for i in range(n):
        mood = phase[mark[JOB, i]] * max(LEAST_FACTOR, 1.0 + hot[NOISE_SD, i] * hot[WANDER, i])
        hot[CORE_NOW, i] = max(platform.least_cpi, hot[CORE, i] * core_cpi[mark[JOB, i]] * mood)
        hot[ACCESS_NOW, i] = access * mood
        hot[STALL_NOW, i] = hot[STALL, i] / platform.overlap


@njit(cache=False, borrows=True)
def _hold_back(residents: Residents, delay: float) -> None:
    """Let memory be farther for best-effort residents, as if their requests were held back."""
    hot, _, n = residents
    for i in range(n):
        hot[STALL_NOW, i] *= 1.0 if hot[CRITICAL, i] > 0.0 else delay


@njit(cache=False, error_model="numpy", borrows=True)
def _guess(residents: Residents, contention: Contention, frequency: float) -> None:
    """Set what newcomers (CPI 0) did in the epoch before as if they had an equal share of the cache and idle memory."""
    hot, _, n = residents
    square = (contention.llc_bytes / max(n, 1)) ** 2
    for i in range(n):
        if hot[CPI, i] == 0.0:
            misses = hot[FLOOR, i] + hot[GAIN1, i] / (hot[SET1, i] + square) + hot[GAIN2, i] / (hot[SET2, i] + square)
            waited = misses - hot[AHEAD, i]
            hot[CPI, i] = hot[CORE_NOW, i] + waited * hot[STALL_NOW, i] * contention.idle_latency_s * frequency
            hot[WAITED, i] = 1.0 - hot[CORE_NOW, i] / hot[CPI, i]
            hot[MPI, i] = misses
            hot[SHARE, i] = contention.llc_bytes / n
            hot[FREQUENCY, i] = frequency


@njit(cache=False, error_model="numpy", borrows=True)
def _load(residents: Residents, load: Floats, weight: Floats) -> None:
    """Set how many hardware threads every resident would keep busy at the pace of its mean load.

    Both are by job; the weight is what a balancer gives to instances on this platform.
    """
    hot, mark, n = residents
    for i in range(n):
        hot[USE, i] = hot[BUSY, i] * load[mark[JOB, i]] * weight[mark[JOB, i]]


@njit(cache=False, error_model="numpy", borrows=True)
def _demand(residents: Residents, network: float) -> float:
    """Set how many hardware threads every resident keeps busy under its load; return their sum.

    What it wants beyond its quota is throttled. Busy threads follow the pace of the epoch before: a job that serves a
    given load needs less CPU time on a faster machine, and time spent waiting for the network is not busy.
    """
    hot, _, n = residents
    for i in range(n):
        pace_s = hot[CPI, i] / hot[FREQUENCY, i]
        want = hot[USE, i] * (1.0 + hot[ELASTIC, i] * (pace_s / hot[PACE, i] - 1.0))
        request_s = hot[INSTR, i] * pace_s
        computing = request_s / (request_s + hot[NETWORK, i] * network)
        hot[USE, i] = min(want, hot[QUOTA, i]) * computing
        hot[QUEUED, i], hot[THROTTLED, i] = 0.0, max(0.0, want - hot[QUOTA, i]) * computing
    busy = 0.0
    for i in range(n):
        busy += hot[USE, i]
    return busy


@njit(cache=False, error_model="numpy", borrows=True)
def _excess(mean: float, quota: float, threads: float) -> float:
    """Return how many of a machine's runnable threads find none free, in the mean over time.

    `quota` threads run each a share mean / quota of the time, by themselves: a binomial number is runnable, here normal
    with the same mean and variance. With no more quota than threads nobody waits.
    """
    if quota <= threads or mean <= 0.0:
        return 0.0
    sd = np.sqrt(mean * max(0.0, 1.0 - mean / quota))
    free = threads - mean
    if sd == 0.0:
        return max(0.0, -free)
    density = np.exp(-0.5 * (free / sd) ** 2) / np.sqrt(2.0 * np.pi)
    return float(sd * density - free * 0.5 * math.erfc(free / (sd * np.sqrt(2.0))))


@njit(cache=False, error_model="numpy", borrows=True)
def _share_threads(residents: Residents, critical: float, free: float) -> float:
    """Let the residents of a class share free threads by quota, where who wants less leaves the rest to the others.

    What they want and do not get is queued. Return how many are busy.
    """
    hot, _, n = residents
    wanted = 0.0
    for i in range(n):
        wanted += hot[USE, i] if hot[CRITICAL, i] == critical else 0.0
    if wanted <= free:
        return float(wanted)
    level, content = 0.0, -1.0
    while True:  # those content at a level leave the rest to the others, whose level rises
        quota = got = 0.0
        for i in range(n):
            if hot[CRITICAL, i] == critical:
                satisfied = hot[USE, i] <= level * hot[QUOTA, i]
                got += hot[USE, i] if satisfied else 0.0
                quota += 0.0 if satisfied else hot[QUOTA, i]
        if got == content or quota == 0.0:  # the latter where what is wanted exceeds what is free by rounding alone
            break
        content, level = got, max(0.0, free - got) / quota
    for i in range(n):
        if hot[CRITICAL, i] == critical and hot[USE, i] > level * hot[QUOTA, i]:
            hot[QUEUED, i] += hot[USE, i] - level * hot[QUOTA, i]
            hot[USE, i] = level * hot[QUOTA, i]
    return float(free)


@njit(cache=False, error_model="numpy", borrows=True)
def _ration(residents: Residents, threads: float) -> float:
    """Let residents share the threads of a machine on which quotas are overcommitted; return how many are busy.

    Latency-critical ones run first. Where the mean fits, more threads may be runnable for moments: those wait too.
    """
    hot, _, n = residents
    busy = mean = quota = before = 0.0
    for critical in (1.0, 0.0):
        cut = wanted = 0.0
        for i in range(n):
            if hot[CRITICAL, i] == critical:
                wanted += hot[USE, i]
                quota += hot[QUOTA, i]
        mean += wanted
        got = _share_threads(residents, critical, max(0.0, threads - busy))
        cut, waiting = wanted - got, _excess(mean, quota, threads)
        for i in range(n):
            if hot[CRITICAL, i] == critical and got > 0.0:
                hot[QUEUED, i] += max(0.0, waiting - before - cut) * hot[USE, i] / got
        busy += got
        before = waiting
    return float(busy)


_beside_sibling = njit(cache=False, error_model="numpy", borrows=True)(processors.beside_sibling)


@njit(cache=False, error_model="numpy", borrows=True)
def _slow_down_siblings(residents: Residents, stalled: Floats, sibling: float, relief: float) -> None:
    """Let hardware threads of one core slow each other down (SMT): core CPI ← core CPI · (1 + smt_slowdown · P · R).

    P, `sibling`, is the chance that the other thread of the core is busy too: U² at utilisation U. R is 1 beside
    threads that wait for memory in half of their cycles, and differs from that by `relief` from always to never: R is
    that of the mean thread of the machine, as any may be the sibling, by what was `stalled` (a share of each resident's
    cycles) before.
    """
    hot, _, n = residents
    waited = busy = 0.0
    for i in range(n):
        busy += hot[USE, i]
        waited += hot[USE, i] * stalled[i]
    beside = _beside_sibling(sibling, relief, waited / busy) if busy > 0.0 else 0.0
    for i in range(n):
        hot[CORE_NOW, i] *= 1.0 + hot[SMT, i] * beside


@njit(cache=False, error_model="numpy", borrows=True)
def _divide_cache(residents: Residents, contention: Contention, threads: float) -> None:
    """Cut the last-level cache by quota if it is not shared."""
    hot, _, n = residents
    if not contention.share_llc:
        for i in range(n):
            hot[SHARE, i] = contention.llc_bytes * hot[QUOTA, i] / threads


@njit(cache=False, error_model="numpy", borrows=True)
def _count(residents: Residents, epoch_s: float, crowding: float, sums: Floats) -> None:
    """Add the epoch to every resident's counters and to the domain's."""
    hot, _, n = residents
    quota, every_cycle, every_instruction = sums[E_QUOTA], sums[E_CYCLES], sums[E_INSTRUCTIONS]
    every_miss, every_cpu_s = sums[E_MISSES], sums[E_CPU_S]
    for i in range(n):
        cycles = hot[USE, i] * hot[FREQUENCY, i] * epoch_s
        instructions = cycles / hot[CPI, i]
        misses = instructions * hot[MPI, i]
        hot[CYCLES, i] += cycles
        hot[INSTRUCTIONS, i] += instructions
        hot[MISSES, i] += misses
        hot[CPU_S, i] += hot[USE, i] * epoch_s
        hot[REQUESTS, i] += instructions * (1.0 - hot[SPIN, i] * crowding) / hot[INSTR, i]
        hot[CORE_CYCLES, i] += instructions * hot[CORE_NOW, i]
        hot[WAIT_S, i] += hot[QUEUED, i] * epoch_s
        hot[THROTTLED_S, i] += hot[THROTTLED, i] * epoch_s
        quota += hot[QUOTA, i]
        every_cycle += cycles
        every_instruction += instructions
        every_miss += misses
        every_cpu_s += hot[USE, i] * epoch_s
    sums[E_INSTANCES] += n
    sums[E_QUOTA], sums[E_CYCLES], sums[E_INSTRUCTIONS] = quota, every_cycle, every_instruction
    sums[E_MISSES], sums[E_CPU_S] = every_miss, every_cpu_s


@njit(cache=False, error_model="numpy", borrows=True)
def _note(hot: Floats, i: int, epoch_s: float, row: Floats) -> None:
    """Write down what a resident did in this epoch: cycles, instructions, misses, CPU time, cycles but for stalls."""
    row[0] = hot[USE, i] * hot[FREQUENCY, i] * epoch_s
    row[1] = row[0] / hot[CPI, i]
    row[2], row[3], row[4] = row[1] * hot[MPI, i], hot[USE, i] * epoch_s, row[1] * hot[CORE_NOW, i]


@njit(cache=False, error_model="numpy", borrows=True)
def _follow(residents: Residents, epoch: int, epoch_s: float, trace: Floats) -> None:
    """Write down what the traced residents did in this epoch."""
    hot, mark, n = residents
    for i in range(n):
        if mark[TRACE, i] > NO_TRACE:
            _note(hot, i, epoch_s, trace[mark[TRACE, i] + epoch])


@njit(cache=False, error_model="numpy", borrows=True)
def _visit(residents: Residents, window: int, epoch_s: float, sums: Floats, rows: Ints) -> None:
    """Write down what each resident of a visited machine did in this epoch, and its counter row."""
    hot, mark, n = residents
    for i in range(n):
        _note(hot, i, epoch_s, sums[i])
        rows[i] = mark[ROW, i] + window


@njit(cache=False, error_model="numpy", borrows=True)
def _own_governor(own: OwnPhysics, number: int, utilisation: float, most_hz: float) -> OwnGovernor:
    """Return somebody's own governor, before the feature or with it, on a machine."""
    own.call[0] = number
    return OwnGovernor(own.after if number else own.before, utilisation, most_hz, own.call)


@njit(cache=False, borrows=True)
def _sibling(settings: np.record, platform: np.record, utilisation: float) -> float:
    """Return the chance that a busy thread has a busy one beside it: between random placement and idle cores first.

    Where more threads are busy than there are cores, idle cores first is the least that is possible. A core of one
    thread has none beside it.
    """
    if not settings.smt or platform.threads == platform.cores:
        return 0.0
    least = 2.0 - 1.0 / utilisation if utilisation > 0.5 else 0.0
    return float(max(utilisation**2, least))


@njit(cache=False, error_model="numpy", borrows=True)
def _run_at(it: LoadedHost, limit_hz: float) -> tuple[Clocked, float]:
    """Solve the machine at the clocks that its governor wishes under a limit; return by how much it draws too much.

    That is the larger of what processors draw over their TDP, and the machine over its cap, less 1.
    """
    conditions = it.conditions
    state_hz = set_clocks(it.own, it.residents, it.platform, it.governor, limit_hz)
    misses_per_s, residual = solve(it.residents, conditions.contention, it.latency_s, it.scratch)
    bytes_per_s = misses_per_s * LINE_BYTES * WRITE_BACK
    package_w, power_w = draw(it.residents, it.platform, conditions.power_factor, it.sibling, bytes_per_s)
    over = max(package_w / it.platform.tdp_w, power_w / conditions.limit_w) - 1.0
    return Clocked(state_hz, limit_hz, 0.0, power_w, misses_per_s, residual), over


@njit(cache=False, error_model="numpy", borrows=True)
def _held_down(it: LoadedHost, state_hz: float, over: float) -> Clocked:
    """Solve the machine at the limit at which it draws what it may, as it draws too much at its P-state.

    Processors find that limit within milliseconds, so it holds for the whole epoch: where it lies between two P-states
    they dither, and the clock is the mean. It is sought by false position (Illinois).
    """
    low, high, side = it.platform.min_hz, state_hz, 0
    run, under = _run_at(it, low)
    while under < 0.0 and high - low > CLOCK_ROUNDING * high:
        middle = (low * over - high * under) / (over - under)
        run, power_over = _run_at(it, middle)
        if abs(power_over) <= it.conditions.contention.tolerance:
            break
        if power_over < 0.0:
            over *= 0.5 if side < 0 else 1.0
            low, under, side = middle, power_over, -1
        else:
            under *= 0.5 if side > 0 else 1.0
            high, over, side = middle, power_over, 1
    return Clocked(run.state_hz, run.limit_hz, 1.0, run.power_w, run.misses_per_s, run.residual)


@njit(cache=False, error_model="numpy", borrows=True)
def _most_hz(it: LoadedHost) -> float:
    """Return the highest clock that the processors allow, power aside."""
    return float(max(it.platform.min_hz, it.own.most_hz / it.conditions.throttle))


@njit(cache=False, error_model="numpy", borrows=True)
def _clocked(it: LoadedHost) -> Clocked:
    """Solve the machine at the clocks that its governor wishes, or at the limit at which it draws what it may."""
    run, over = _run_at(it, _most_hz(it))
    return _held_down(it, run.state_hz, over) if over > 0.0 else run


@njit(cache=False, error_model="numpy", borrows=True)
def _stalls(residents: Residents, stalled: Floats) -> None:
    """Set the share of its cycles in which every resident waits for memory."""
    hot, _, n = residents
    for i in range(n):
        stalled[i] = 1.0 - hot[CORE_NOW, i] / hot[CPI, i]


@njit(cache=False, error_model="numpy", borrows=True)
def _wish(it: LoadedHost, wished: Floats) -> None:
    """Set which clocks the governor wishes by what it has seen, power aside; those that are stay."""
    (hot, _, n), aside = it.residents, it.scratch[ASIDE]
    for i in range(n):
        aside[i] = hot[FREQUENCY, i]
    set_clocks(it.own, it.residents, it.platform, it.governor, _most_hz(it))
    for i in range(n):
        wished[i], hot[FREQUENCY, i] = hot[FREQUENCY, i], aside[i]


@njit(cache=False, error_model="numpy", borrows=True)
def _alike(clocks: Floats, others: Floats, n: int) -> bool:
    """Return whether the first n clocks are the same."""
    alike = True
    for i in range(n):
        alike = alike and clocks[i] == others[i]
    return bool(alike)


@njit(cache=False, error_model="numpy", borrows=True)
def _mix(residents: Residents, scratch: Floats) -> None:
    """Let every resident run as in the mean of two states, each half of the time: clock, CPI and misses."""
    hot, _, n = residents
    for i in range(n):
        pace, before = hot[FREQUENCY, i] / hot[CPI, i], scratch[HZ_BEFORE, i] / scratch[CPI_BEFORE, i]
        clocks_hz = hot[FREQUENCY, i] + scratch[HZ_BEFORE, i]
        hot[MPI, i] = (pace * hot[MPI, i] + before * scratch[MPI_BEFORE, i]) / (pace + before)
        hot[FREQUENCY, i], hot[CPI, i] = 0.5 * clocks_hz, clocks_hz / (pace + before)


@njit(cache=False, error_model="numpy", borrows=True)
def _looked_at(it: LoadedHost) -> Clocked:
    """Solve the machine as it is while its governor looks again and again at who waits for memory.

    Looks end in one state, or alternate between two: a resident that waits too much is slowed down, waits less, is let
    go and waits too much again. Then each of the two is half of the time.
    """
    (hot, _, n), scratch = it.residents, it.scratch
    _wish(it, scratch[WISHED])
    before = run = _clocked(it)
    _stalls(it.residents, hot[WAITED])
    for look in range(MOST_LOOKS):
        _wish(it, scratch[NEXT])
        if _alike(scratch[NEXT], scratch[WISHED], n):
            return run
        if look > 0 and _alike(scratch[NEXT], scratch[BEFORE], n):
            break
        for i in range(n):
            scratch[BEFORE, i], scratch[WISHED, i] = scratch[WISHED, i], scratch[NEXT, i]
            scratch[HZ_BEFORE, i], scratch[CPI_BEFORE, i] = hot[FREQUENCY, i], hot[CPI, i]
            scratch[MPI_BEFORE, i] = hot[MPI, i]
        before, run = run, _clocked(it)
        _stalls(it.residents, hot[WAITED])
    _mix(it.residents, scratch)
    return Clocked(
        state_hz=0.5 * (before.state_hz + run.state_hz),
        limit_hz=0.5 * (before.limit_hz + run.limit_hz),
        capped=0.5 * (before.capped + run.capped),
        power_w=0.5 * (before.power_w + run.power_w),
        misses_per_s=0.5 * (before.misses_per_s + run.misses_per_s),
        residual=max(before.residual, run.residual),
    )


@njit(cache=False, error_model="numpy", borrows=True)
def _step(inputs: Inputs, outputs: Outputs, domain: PowerDomain, local: int, epoch: int) -> MachineEpoch:
    """Simulate one epoch of one machine."""
    residents = Residents(hot=domain.hot[local], mark=domain.mark[local], n=domain.residents[local])
    conditions = _conditions(inputs, domain, local, epoch)
    contention, epoch_s = conditions.contention, inputs.settings[0].epoch_s
    platform, governor = inputs.platforms[conditions.platform], inputs.governors[conditions.governor]
    newcomers = _give_places(inputs, domain, local, conditions)
    _wander(residents, inputs.settings[0].rho, epoch)
    core_cpi = inputs.core_cpi[conditions.platform]
    _behave(residents, core_cpi, platform, conditions.access, inputs.phase[epoch])
    if inputs.settings[0].best_effort_delay > 1.0:
        _hold_back(residents, inputs.settings[0].best_effort_delay)
    if newcomers:
        _guess(residents, contention, platform.max_hz)
    _load(residents, inputs.load[epoch], inputs.weight[conditions.platform])
    busy = _demand(residents, conditions.network)
    if inputs.settings[0].overcommit > 1.0:
        busy = _ration(residents, platform.threads)
    utilisation = busy / platform.threads
    sibling = _sibling(inputs.settings[0], platform, utilisation)
    _slow_down_siblings(residents, residents.hot[WAITED], sibling, inputs.settings[0].sibling_relief)
    _divide_cache(residents, contention, platform.threads * inputs.settings[0].overcommit)
    if domain.own.slows:
        slow_down_by(domain.own, residents, contention, platform.threads, sibling)
    running = LoadedHost(
        residents=residents,
        platform=platform,
        governor=governor,
        own=_own_governor(domain.own, conditions.governor, utilisation, turbo_hz(platform, utilisation, sibling)),
        conditions=conditions,
        latency_s=domain.latency_s[local],
        scratch=domain.scratch,
        utilisation=utilisation,
        sibling=sibling,
    )
    if governor.policy in (STALL_AWARE, OWN_POLICY) and inputs.settings[0].governor_s < epoch_s:
        clocked = _looked_at(running)
    else:
        clocked = _clocked(running)
        _stalls(residents, residents.hot[WAITED])
    _count(residents, epoch_s, utilisation, domain.sums[epoch])
    if outputs.trace.size > 0:
        _follow(residents, epoch, epoch_s, outputs.trace)
    if inputs.visit.shape[0] > 0 and inputs.visit[domain.first + local, epoch] >= 0:
        at = inputs.visit[domain.first + local, epoch]
        outputs.visit_power_w[at] = clocked.power_w
        _visit(residents, inputs.window_of_epoch[epoch], epoch_s, outputs.visit_sums[at], outputs.visit_rows[at])
    return MachineEpoch(
        state_hz=clocked.state_hz,
        capped=clocked.capped,
        power_w=clocked.power_w,
        energy_j=clocked.power_w * epoch_s,
        peak_w=platform.peak_w,
        utilisation=utilisation,
        bandwidth_utilisation=clocked.misses_per_s * LINE_BYTES * WRITE_BACK / contention.bandwidth,
        residual=clocked.residual if residents.n > 0 else 0.0,
    )


@njit(cache=False)
def _open(inputs: Inputs, outputs: Outputs, number: int, own: OwnPhysics) -> PowerDomain:
    """Return a power domain before the first epoch: nobody is there."""
    first, last = inputs.domain_start[number], inputs.domain_start[number + 1]
    m = last - first
    return PowerDomain(
        first=first,
        hot=np.zeros((m, FIELDS, inputs.slots)),
        mark=np.zeros((m, MARKS, inputs.slots), np.int64),
        residents=np.zeros(m, np.int64),
        upcoming=inputs.stay_start[first:last].copy(),
        change=np.zeros(m, np.int64),
        latency_s=np.zeros((m, inputs.platforms["nodes"].max())),
        divided=np.full(m, NOWHERE),
        scratch=np.zeros((ASIDE + 1, max(inputs.slots, inputs.platforms["slices"].max()))),
        wander=np.zeros(m),
        allowance=np.ones(1),
        sums=outputs.epoch_sums[number],
        own=own,
    )


@njit(cache=False, borrows=True)
def _add(sums: Floats, did: MachineEpoch) -> None:
    """Add what a machine did in an epoch to the sums of its domain."""
    sums[E_ENERGY_J] += did.energy_j
    sums[E_CAPPED] += did.capped
    sums[E_RESIDUAL] = max(sums[E_RESIDUAL], did.residual)


@njit(cache=False, borrows=True)
def _write_down(inputs: Inputs, outputs: Outputs, machine: int, epoch: int, did: MachineEpoch) -> None:
    """Write down what a machine did in an epoch."""
    window = inputs.window_of_epoch[epoch]
    if window >= 0:
        outputs.machine_rows[machine, window, M_ENERGY_J] += did.energy_j
        outputs.machine_rows[machine, window, M_CAPPED] += did.capped
    if outputs.machine_trace.shape[0] > 0:
        row = outputs.machine_trace[machine, epoch]
        row[0], row[1], row[2], row[3] = did.state_hz, did.power_w, did.utilisation, did.bandwidth_utilisation


@njit(cache=False, error_model="numpy", borrows=True)
def _allow(inputs: Inputs, domain: PowerDomain, power_w: float, peak_w: float) -> None:
    """Let the allowance of a domain's machines follow the gap between its budget and its power."""
    budget_w = inputs.settings[0].budget_share * peak_w
    wish = domain.allowance[0] + CAPPING_GAIN * (budget_w - power_w) / budget_w
    domain.allowance[0] = min(1.0, max(MIN_ALLOWANCE, wish))


@njit(cache=False, error_model="numpy", borrows=True)
def _pass(inputs: Inputs, outputs: Outputs, domain: PowerDomain, epoch: int) -> None:
    """Simulate one epoch of a power domain."""
    window, power_w, peak_w = inputs.window_of_epoch[epoch], 0.0, 0.0
    for local in range(domain.residents.size):
        new_window = window != inputs.window_of_epoch[epoch - 1]
        if epoch >= domain.change[local] or new_window or switches(inputs, domain.first + local, epoch):
            turn_over(inputs, outputs.rows, domain, local, epoch)
        did = _step(inputs, outputs, domain, local, epoch)
        _add(domain.sums[epoch], did)
        _write_down(inputs, outputs, domain.first + local, epoch, did)
        power_w += did.power_w
        peak_w += did.peak_w
    _allow(inputs, domain, power_w, peak_w)


Simulation = Callable[[Inputs, Outputs, int, int, OwnPhysics], None]


@njit(nogil=True, cache=True)
def _simulated(inputs: Inputs, outputs: Outputs, first: int, last: int, own: OwnPhysics) -> None:
    for number in range(first, last):
        domain = _open(inputs, outputs, number, own)
        for epoch in range(inputs.window_of_epoch.size):
            _pass(inputs, outputs, domain, epoch)
        for local in range(domain.residents.size):
            for i in range(domain.residents[local]):
                write_out(domain.hot[local], domain.mark[local], i, inputs.window_of_epoch[-1], outputs.rows)


def simulate(
    inputs: Inputs, outputs: Outputs, threads: int, own: OwnFunctions, compiled: Simulation = _simulated
) -> None:
    """Simulate several power domains over the whole horizon; fill the outputs. Nothing is checked.

    Parameters
    ----------
    inputs, outputs : of these domains
    threads : at most this many, each with one domain at a time; results do not depend on it
    own : governors and mechanisms of somebody's own
    compiled : simulation of the domains from one number to another

    Raises
    ------
    PartError
        If one of those cannot be compiled, raises an error, or returns what it must not.
    """
    domains, physics = range(inputs.domain_start.size - 1), own.physics()
    simulated = with_functions(compiled, inputs, outputs, 0, 0, physics)  # in the thread that interrupts reach

    def whole(number: int) -> None:
        here = physics._replace(call=physics.call.copy())
        try:
            simulated(inputs, outputs, number, number + 1, here)
        except Exception as error:
            if (fault := own.fault(here.call)) is None:
                raise
            raise fault from error

    with ThreadPoolExecutor(max(1, min(threads, len(domains)))) as pool:
        for _ in pool.map(whole, domains):
            pass
