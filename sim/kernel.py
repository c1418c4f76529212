"""The epoch kernel: a power domain's whole horizon, all machines' physics, compiled.

Power domains share only the load and phase tables, so one thread simulates each from the first to the last epoch:
results do not depend on threads, and memory follows the domains in flight. All compiled helpers live in this file,
as numba's cache looks into no other.

In each epoch of each machine, stays leave and enter; every resident's demand follows from its load and its pace in the
epoch before; the governor chooses frequencies from the activity of the epoch before; the interference fixed point is
solved (cache shares and memory latency); counters, power and energy are summed. Then the allowance of the domain's
machines follows the gap between its budget and its power.
"""

import numpy as np
from numba import njit, prange

from sim.layout import Contention, Domain, Done, Floats, Here, Inputs, Ints, Outputs, Residents

# What the resident of a slot is; also columns of the table of jobs: core CPI; streaming floor, gain and squared size of
# two working sets; 1 / overlap; SMT slowdown; busy threads at mean load; 1 if a faster machine makes it less busy; pace
# of its mean load (seconds per instruction); instructions and network wait (s) of a request; share of instructions spun
# on a full machine; CPU quota; spread of its own behaviour over time.
CORE, FLOOR, GAIN1, SET1, GAIN2, SET2, STALL, SMT = range(8)
BUSY, ELASTIC, PACE, INSTR, SPIN, NETWORK, QUOTA, NOISE_SD = range(8, 16)
TRAITS = INPUT_SD = 16  # INPUT_SD: column of the table of jobs alone: spread between shards
# What it does now: own behaviour, cache share, busy threads, misses per instruction, CPI, misses per second, frequency,
# and core CPI and relative memory accesses without co-runners' part.
WANDER, SHARE, USE, MPI, CPI, RATE, FREQUENCY, CORE_NOW, ACCESS_NOW = range(16, 25)
# What it has done since it was last written out.
CYCLES, INSTRUCTIONS, MISSES, CPU_S, REQUESTS, CORE_CYCLES = range(25, 31)
FIELDS, MARKS, SUMS, EPOCH_COLUMNS = 31, 6, 6, 9
# Integers of a slot: job, epoch in which it leaves, epoch from which it runs new code, counter row minus window, trace
# row minus epoch, key of its noise.
JOB, END, SOFT_FROM, ROW, TRACE, KEY = range(6)
# Columns of the sums of a domain's epoch, and of a machine's window.
E_INSTANCES, E_QUOTA, E_CYCLES, E_INSTRUCTIONS, E_MISSES, E_CPU_S, E_ENERGY_J, E_CAPPED, E_RESIDUAL = range(9)
M_ENERGY_J, M_CAPPED = range(2)
ONDEMAND, STALL_AWARE = 1, 2
NO_TRACE = -(2**40)

LINE_BYTES, WRITE_BACK = 64.0, 1.3  # a cache line; bytes moved per missed one: three in ten are dirty when evicted
QUEUEING = 0.9  # latency at bandwidth utilisation U is idle latency × (1 + QUEUEING · U² / (1 − U))
UTILISATION_LIMIT = 0.97  # bandwidth utilisation at which the latency curve is cut
SHARED_CORE_POWER = 0.4  # part of a core's power that a thread saves when its sibling is busy too
STALLED_ACTIVITY = 0.45  # power of a stalled core relative to a computing one
VOLTAGE_FLOOR = 0.6  # voltage at frequency f relative to base is VOLTAGE_FLOOR + (1 − VOLTAGE_FLOOR) · f / base
DAMPING = 0.6  # first step of the fixed point to new cache shares and latency; halved when the residual grows
CAPPING_GAIN = 0.5  # how strongly a power domain's allowance follows the gap between budget and power, per epoch
MIN_ALLOWANCE = 0.5  # lowest allowance of a machine in a capped domain, relative to its own cap
LEAST_FACTOR = 0.2  # least factor by which wandering behaviour may change core CPI or memory accesses

_GOLDEN, _OWN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x5851F42D4C957F2D)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@njit(cache=True, inline="always")
def _mix(x: np.uint64) -> np.uint64:
    """Return a number that looks unrelated to `x` (splitmix64; Steele, Lea and Flood 2014, fig. 13)."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


@njit(cache=True, inline="always")
def _noise(key: np.uint64, epoch: int) -> float:
    """Return a draw that belongs to (key, epoch): four 16-bit uniforms summed, mean 0, variance 1."""
    x, low = _mix(key + np.uint64(epoch) * _GOLDEN), np.uint64(0xFFFF)
    total = (x & low) + ((x >> np.uint64(16)) & low) + ((x >> np.uint64(32)) & low) + (x >> np.uint64(48))
    return (np.float64(np.int64(total)) / 65536.0 - 2.0 + 2.0 / 65536.0) * 1.7320508075688772


@njit(cache=True)
def _normal(key: np.uint64, counter: int) -> float:
    """Return a standard normal draw that belongs to (key, counter), by Box and Muller (1958)."""
    a = _mix(key + np.uint64(2 * counter + 1) * _GOLDEN)
    b = _mix(key + np.uint64(2 * counter + 2) * _GOLDEN)
    u = (np.float64(np.int64(a >> np.uint64(11))) + 0.5) / 9007199254740992.0
    v = np.float64(np.int64(b >> np.uint64(11))) / 9007199254740992.0
    return float(np.sqrt(-2.0 * np.log(u)) * np.cos(6.283185307179586 * v))


@njit(cache=True)
def latency_factor(utilisation: float) -> float:
    """Return memory latency relative to idle at a bandwidth utilisation.

    Examples
    --------
    >>> latency_factor(0.0), round(latency_factor(0.5), 3)
    (1.0, 1.45)
    """
    u = min(utilisation, UTILISATION_LIMIT)
    return 1.0 + QUEUEING * u * u / (1.0 - u)


@njit(cache=True, error_model="numpy")
def _settle(hot: Floats, n: int, latency_s: float) -> float:
    """Set every resident's misses, CPI and miss rate at its cache share; return the summed miss rate."""
    share, mpi, cpi, rate = hot[SHARE], hot[MPI], hot[CPI], hot[RATE]
    use, frequency, core, access = hot[USE], hot[FREQUENCY], hot[CORE_NOW], hot[ACCESS_NOW]
    floor, gain1, set1, gain2, set2, stall = hot[FLOOR], hot[GAIN1], hot[SET1], hot[GAIN2], hot[SET2], hot[STALL]
    for i in range(n):
        square = share[i] * share[i]
        mpi[i] = access[i] * (floor[i] + gain1[i] / (set1[i] + square) + gain2[i] / (set2[i] + square))
        cpi[i] = core[i] + mpi[i] * stall[i] * latency_s * frequency[i]
        rate[i] = use[i] * frequency[i] / cpi[i] * mpi[i]
    total = 0.0
    for i in range(n):
        total += rate[i]
    return total


@njit(cache=True, error_model="numpy")
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


@njit(cache=True, inline="always")
def _power_per_activity(frequency: float, base: float) -> float:
    """Return a busy core's power at `frequency` relative to `base`: f V(f)²."""
    relative = frequency / base
    voltage = VOLTAGE_FLOOR + (1.0 - VOLTAGE_FLOOR) * relative
    return relative * voltage * voltage


@njit(cache=True, error_model="numpy")
def _wish(use: Floats, n: int, platform: np.record, governor: np.record) -> float:
    """Return the P-state that the policy would like without a power cap."""
    if governor.policy != ONDEMAND:
        return float(platform.max_hz)
    wish = platform.max_hz * use[:n].sum() / (platform.threads * governor.ondemand_threshold)
    steps = np.ceil((wish - platform.min_hz) / platform.step_hz)
    return float(min(platform.max_hz, max(platform.min_hz, platform.min_hz + platform.step_hz * steps)))


@njit(cache=True, error_model="numpy")
def _govern(
    residents: Residents, platform: np.record, governor: np.record, activity: Floats, room: float
) -> tuple[float, bool]:
    """Set every resident's frequency; return the machine's P-state and whether the cap lowered it.

    `activity` is that of the epoch before, below and above the stall threshold; at base frequency it may be `room`.
    """
    hot, _, n = residents
    top, step, least = _wish(hot[USE], n, platform, governor), platform.step_hz, platform.min_hz
    slower = governor.step_down_hz if governor.policy == STALL_AWARE else 0.0
    state = top
    while True:
        low = max(state - slower, least)
        power = activity[0] * _power_per_activity(state, platform.base_hz)
        power += activity[1] * _power_per_activity(low, platform.base_hz)
        if power <= room or state <= least + 0.5 * step:
            break
        state -= step
    for i in range(n):
        stall = 1.0 - hot[CORE_NOW, i] / hot[CPI, i]
        hot[FREQUENCY, i] = low if slower > 0.0 and stall > governor.stall_threshold else state
    return state, state < top - 0.5 * step


@njit(cache=True)
def _enter(hot: Floats, mark: Ints, slot: int, stay: np.record, inputs: Inputs) -> None:
    """Fill a slot with the stay that starts now; its shard's data decide how it departs from its job's mean."""
    job, key = stay.job, inputs.settings[0].key
    shard_key = _mix(_mix(key + np.uint64(job)) + np.uint64(stay.shard))
    own_key = _mix(_mix(key ^ _OWN) + np.uint64(stay.instance))
    spread = inputs.jobs[job, INPUT_SD]
    hot[TRAITS:, slot] = 0.0
    hot[:TRAITS, slot] = inputs.jobs[job, :TRAITS]
    hot[CORE, slot] *= np.exp(spread * _normal(shard_key, 0) - 0.5 * spread * spread)
    access_factor = np.exp(spread * _normal(shard_key, 1) - 0.5 * spread * spread)
    for field in (FLOOR, GAIN1, GAIN2):
        hot[field, slot] *= access_factor
    hot[WANDER, slot] = _normal(_mix(own_key), stay.start)
    mark[JOB, slot], mark[END, slot], mark[SOFT_FROM, slot] = job, stay.end, stay.soft_from
    mark[ROW, slot], mark[TRACE, slot], mark[KEY, slot] = stay.row, stay.traced, np.int64(own_key)
    if stay.soft_from < stay.start:
        hot[:TRAITS, slot] *= inputs.software[stay.job]


@njit(cache=True)
def _write_out(hot: Floats, mark: Ints, slot: int, window: int, rows: Floats) -> None:
    """Add a resident's sums to its row of the window, if any, and clear them."""
    if window >= 0:
        rows[mark[ROW, slot] + window] += hot[CYCLES:, slot]
    hot[CYCLES:, slot] = 0.0


@njit(cache=True)
def _leave(residents: Residents, epoch: int, window: int, rows: Floats) -> int:
    """Write out residents whose stay ends and fill their slots with the last ones; return how many stay."""
    (hot, mark, n), slot = residents, 0
    while slot < n:
        if mark[END, slot] > epoch:
            slot += 1
            continue
        _write_out(hot, mark, slot, window, rows)
        n -= 1
        hot[:, slot] = hot[:, n]
        mark[:, slot] = mark[:, n]
    return int(n)


@njit(cache=True)
def _next_change(residents: Residents, epoch: int, entering: int) -> int:
    """Return the next epoch in which somebody leaves, enters or gets new code."""
    _, mark, n = residents
    change = entering
    for i in range(n):
        renewal = mark[SOFT_FROM, i]
        change = min(change, mark[END, i], renewal if renewal > epoch else change)
    return int(change)


@njit(cache=True)
def _turn_over(inputs: Inputs, rows: Floats, domain: Domain, local: int, epoch: int) -> None:
    """Write out who leaves or has come to the end of a window; let stays enter, and new code in."""
    hot, mark, n = domain.hot[local], domain.mark[local], domain.residents[local]
    previous = inputs.window_of_epoch[epoch - 1] if epoch > 0 else -1
    if previous != inputs.window_of_epoch[epoch]:
        for i in range(n):
            _write_out(hot, mark, i, previous, rows)
    n = _leave(Residents(hot, mark, n), epoch, previous, rows)
    following, end = domain.upcoming[local], inputs.stay_start[domain.first + local + 1]
    while following < end and inputs.stays[following].start <= epoch:
        _enter(hot, mark, n, inputs.stays[following], inputs)
        n += 1
        following += 1
    for i in range(n):
        if mark[SOFT_FROM, i] == epoch:
            hot[:TRAITS, i] *= inputs.software[mark[JOB, i]]
    entering = inputs.stays[following].start if following < end else inputs.window_of_epoch.size
    domain.residents[local], domain.upcoming[local] = n, following
    domain.change[local] = _next_change(Residents(hot, mark, n), epoch, entering)


@njit(cache=True)
def _surroundings(inputs: Inputs, domain: Domain, local: int, epoch: int) -> Here:
    """Return what the machine is to its residents in this epoch."""
    machine, settings = inputs.machines[domain.first + local], inputs.settings[0]
    own_key = settings.key ^ _mix(np.uint64(machine.number + 1))
    if epoch == 0:
        domain.wander[local] = _noise(own_key, -1)
    domain.wander[local] *= settings.rho
    domain.wander[local] += np.sqrt(1.0 - settings.rho**2) * _noise(own_key, epoch)
    after = 1 if epoch >= machine.feature_from else 0
    platform = inputs.platforms[machine.platform[after]]
    contention = Contention(
        platform.latency_s * machine.latency_factor, platform.bandwidth * machine.bandwidth_factor,
        platform.llc_bytes, settings.llc, settings.bandwidth, settings.tolerance, settings.iterations,
    )  # fmt: skip
    own = max(LEAST_FACTOR, 1.0 + settings.machine_sd * domain.wander[local])
    return Here(
        machine.platform[after], machine.governor[after], contention, machine.power_factor,
        inputs.rack_access[epoch, machine.rack] * own, inputs.rack_network[epoch, machine.rack],
        platform.limit_w * domain.allowance[0],
    )  # fmt: skip


@njit(cache=True)
def _wander(residents: Residents, rho: float, epoch: int) -> None:
    """Let every resident's own behaviour wander on: an autoregression of variance 1."""
    hot, mark, n = residents
    fresh = np.sqrt(1.0 - rho * rho)
    for i in range(n):
        hot[WANDER, i] = rho * hot[WANDER, i] + fresh * _noise(np.uint64(mark[KEY, i]), epoch)


@njit(cache=True)
def _behave(residents: Residents, core_cpi: float, access: float, phase: Floats) -> None:
    """Set every resident's core CPI and memory accesses of this epoch, before its co-runners."""
    hot, mark, n = residents
    for i in range(n):
        mood = phase[mark[JOB, i]] * max(LEAST_FACTOR, 1.0 + hot[NOISE_SD, i] * hot[WANDER, i])
        hot[CORE_NOW, i] = hot[CORE, i] * core_cpi * mood
        hot[ACCESS_NOW, i] = access * mood


@njit(cache=True, error_model="numpy")
def _guess(residents: Residents, contention: Contention, frequency: float) -> None:
    """Set what newcomers (CPI 0) did in the epoch before as if they had an equal share of the cache and idle memory."""
    hot, _, n = residents
    square = (contention.llc_bytes / max(n, 1)) ** 2
    for i in range(n):
        if hot[CPI, i] == 0.0:
            misses = hot[FLOOR, i] + hot[GAIN1, i] / (hot[SET1, i] + square) + hot[GAIN2, i] / (hot[SET2, i] + square)
            hot[CPI, i] = hot[CORE_NOW, i] + misses * hot[STALL, i] * contention.idle_latency_s * frequency
            hot[SHARE, i] = contention.llc_bytes / n
            hot[FREQUENCY, i] = frequency


@njit(cache=True, error_model="numpy")
def _demand(residents: Residents, load: Floats, network: float) -> float:
    """Set how many hardware threads every resident keeps busy; return their sum.

    Busy threads follow the pace of the epoch before: a job that serves a given load needs less CPU time on a faster
    machine, and time spent waiting for the network is not busy.
    """
    hot, mark, n = residents
    for i in range(n):
        hot[USE, i] = hot[BUSY, i] * load[mark[JOB, i]]
    for i in range(n):
        pace_s = hot[CPI, i] / hot[FREQUENCY, i]
        want = hot[USE, i] * (1.0 + hot[ELASTIC, i] * (pace_s / hot[PACE, i] - 1.0))
        request_s = hot[INSTR, i] * pace_s
        hot[USE, i] = min(want, hot[QUOTA, i]) * request_s / (request_s + hot[NETWORK, i] * network)
    busy = 0.0
    for i in range(n):
        busy += hot[USE, i]
    return busy


@njit(cache=True, error_model="numpy")
def _share_out(residents: Residents, contention: Contention, threads: float, sibling: float) -> None:
    """Let busy siblings slow each other down, and cut the cache by quota if it is not shared."""
    hot, _, n = residents
    for i in range(n):
        hot[CORE_NOW, i] *= 1.0 + hot[SMT, i] * sibling
    if not contention.share_llc:
        for i in range(n):
            hot[SHARE, i] = contention.llc_bytes * hot[QUOTA, i] / threads


@njit(cache=True, error_model="numpy")
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
        quota += hot[QUOTA, i]
        every_cycle += cycles
        every_instruction += instructions
        every_miss += misses
        every_cpu_s += hot[USE, i] * epoch_s
    sums[E_INSTANCES] += n
    sums[E_QUOTA], sums[E_CYCLES], sums[E_INSTRUCTIONS] = quota, every_cycle, every_instruction
    sums[E_MISSES], sums[E_CPU_S] = every_miss, every_cpu_s


@njit(cache=True, error_model="numpy", inline="always")
def _note(hot: Floats, i: int, epoch_s: float, row: Floats) -> None:
    """Write down what a resident did in this epoch: cycles, instructions, misses, CPU time, cycles but for stalls."""
    row[0] = hot[USE, i] * hot[FREQUENCY, i] * epoch_s
    row[1] = row[0] / hot[CPI, i]
    row[2], row[3], row[4] = row[1] * hot[MPI, i], hot[USE, i] * epoch_s, row[1] * hot[CORE_NOW, i]


@njit(cache=True, error_model="numpy")
def _follow(residents: Residents, epoch: int, epoch_s: float, trace: Floats) -> None:
    """Write down what the traced residents did in this epoch."""
    hot, mark, n = residents
    for i in range(n):
        if mark[TRACE, i] > NO_TRACE:
            _note(hot, i, epoch_s, trace[mark[TRACE, i] + epoch])


@njit(cache=True, error_model="numpy")
def _visit(residents: Residents, window: int, epoch_s: float, sums: Floats, rows: Ints) -> None:
    """Write down what each resident of a visited machine did in this epoch, and its counter row."""
    hot, mark, n = residents
    for i in range(n):
        _note(hot, i, epoch_s, sums[i])
        rows[i] = mark[ROW, i] + window


@njit(cache=True, error_model="numpy")
def _heat(residents: Residents, platform: np.record, threshold: float, sibling: float, activity: Floats) -> float:
    """Set the machine's activities below and above the stall threshold; return its power above idle, relative."""
    hot, _, n = residents
    core_share = (1.0 - SHARED_CORE_POWER * sibling) / platform.cores
    activity[0] = activity[1] = dynamic = 0.0
    for i in range(n):
        stall = 1.0 - hot[CORE_NOW, i] / hot[CPI, i]
        active = hot[USE, i] * core_share * (STALLED_ACTIVITY + (1.0 - STALLED_ACTIVITY) * (1.0 - stall))
        activity[1 if stall > threshold else 0] += active
        dynamic += active * _power_per_activity(hot[FREQUENCY, i], platform.base_hz)
    return dynamic


@njit(cache=True, error_model="numpy", inline="always")
def _step(inputs: Inputs, outputs: Outputs, domain: Domain, local: int, epoch: int) -> Done:
    """Simulate one epoch of one machine."""
    residents = Residents(domain.hot[local], domain.mark[local], domain.residents[local])
    here = _surroundings(inputs, domain, local, epoch)
    contention, epoch_s = here.contention, inputs.settings[0].epoch_s
    platform, governor = inputs.platforms[here.platform], inputs.governors[here.governor]
    _wander(residents, inputs.settings[0].rho, epoch)
    _behave(residents, platform.core_cpi, here.access, inputs.phase[epoch])
    _guess(residents, contention, platform.max_hz)
    busy = _demand(residents, inputs.load[epoch], here.network)
    utilisation = busy / platform.threads
    sibling = utilisation**2 if inputs.settings[0].smt else 0.0  # between random placement and idle cores first
    _share_out(residents, contention, platform.threads, sibling)
    activity = domain.activity[local]
    if activity[0] + activity[1] == 0.0:
        _heat(residents, platform, governor.stall_threshold, sibling, activity)
    room = (here.limit_w - platform.idle_w) / (platform.dynamic_w * here.power_factor)
    state_hz, capped = _govern(residents, platform, governor, activity, room)
    solved = solve(residents.hot, residents.n, contention, domain.latency_s[local] or contention.idle_latency_s)
    domain.latency_s[local], misses_per_s, residual = solved
    _count(residents, epoch_s, utilisation, domain.sums[epoch])
    if outputs.trace.size > 0:
        _follow(residents, epoch, epoch_s, outputs.trace)
    dynamic = _heat(residents, platform, governor.stall_threshold, sibling, activity)
    power_w = platform.idle_w + platform.dynamic_w * here.power_factor * dynamic
    if inputs.visit.shape[0] > 0 and inputs.visit[domain.first + local, epoch] >= 0:
        at = inputs.visit[domain.first + local, epoch]
        outputs.visit_power_w[at] = power_w
        _visit(residents, inputs.window_of_epoch[epoch], epoch_s, outputs.visit_sums[at], outputs.visit_rows[at])
    traffic = misses_per_s * LINE_BYTES * WRITE_BACK / contention.bandwidth
    peak_w, residual = platform.idle_w + platform.dynamic_w, residual if residents.n > 0 else 0.0
    return Done(state_hz, capped, power_w, power_w * epoch_s, peak_w, utilisation, traffic, residual)


@njit(cache=True)
def _open(inputs: Inputs, outputs: Outputs, number: int) -> Domain:
    """Return a power domain before the first epoch: nobody is there."""
    first, last = inputs.domain_start[number], inputs.domain_start[number + 1]
    m = last - first
    return Domain(
        first, np.zeros((m, FIELDS, inputs.slots)), np.zeros((m, MARKS, inputs.slots), np.int64), np.zeros(m, np.int64),
        inputs.stay_start[first:last].copy(), np.zeros(m, np.int64), np.zeros(m), np.zeros((m, 2)), np.zeros(m),
        np.ones(1), outputs.epoch_sums[number],
    )  # fmt: skip


@njit(cache=True, error_model="numpy")
def _pass(inputs: Inputs, outputs: Outputs, domain: Domain, epoch: int) -> None:
    """Simulate one epoch of a power domain."""
    sums, window, power_w, peak_w = domain.sums[epoch], inputs.window_of_epoch[epoch], 0.0, 0.0
    for local in range(domain.residents.size):
        if epoch >= domain.change[local] or window != inputs.window_of_epoch[epoch - 1]:
            _turn_over(inputs, outputs.rows, domain, local, epoch)
        done = _step(inputs, outputs, domain, local, epoch)
        sums[E_ENERGY_J] += done.energy_j
        sums[E_CAPPED] += done.capped
        sums[E_RESIDUAL] = max(sums[E_RESIDUAL], done.residual)
        power_w += done.power_w
        peak_w += done.peak_w
        if window >= 0:
            outputs.machine_rows[domain.first + local, window, M_ENERGY_J] += done.energy_j
            outputs.machine_rows[domain.first + local, window, M_CAPPED] += done.capped
        if outputs.machine_trace.shape[0] > 0:
            row = outputs.machine_trace[domain.first + local, epoch]
            row[0], row[1], row[2], row[3] = done.state_hz, done.power_w, done.utilisation, done.bandwidth_utilisation
    budget_w = inputs.settings[0].budget_share * peak_w
    wish = domain.allowance[0] + CAPPING_GAIN * (budget_w - power_w) / budget_w
    domain.allowance[0] = min(1.0, max(MIN_ALLOWANCE, wish))


@njit(parallel=True, cache=True)
def simulate(inputs: Inputs, outputs: Outputs) -> None:
    """Simulate several power domains over the whole horizon; fill the outputs. Nothing is checked here."""
    for number in prange(inputs.domain_start.size - 1):
        domain = _open(inputs, outputs, number)
        for epoch in range(inputs.window_of_epoch.size):
            _pass(inputs, outputs, domain, epoch)
        for local in range(domain.residents.size):
            for i in range(domain.residents[local]):
                _write_out(domain.hot[local], domain.mark[local], i, inputs.window_of_epoch[-1], outputs.rows)
