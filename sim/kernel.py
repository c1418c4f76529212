"""The epoch kernel: a power domain's whole horizon, all machines' physics, compiled.

Power domains share nothing but the load and phase tables, so each is simulated from the first to the last epoch by one
thread: results do not depend on the number of threads, and memory follows the number of domains in flight. All compiled
helpers live in this file because numba's cache does not look into others.

One epoch of one machine:

1. stays that end are written out and leave; stays that start enter (slots are kept dense);
2. the governor chooses frequencies from the activity of the epoch before, under the machine's allowance;
3. the interference fixed point is solved: last-level-cache shares and memory latency;
4. counters, power and energy are summed.
"""

import numpy as np
from numba import njit, prange

# Fields of a slot: what a resident instance is (0..16), what it does now (17..24), what it has done (25..29).
CORE, FLOOR, GAIN1, SET1, GAIN2, SET2, STALL, SMT, BUSY, ELASTIC, PACE, INSTR, SPIN, NETWORK, QUOTA, NOISE_SD, WANDER = range(17)
SHARE, USE, MPI, CPI, RATE, FREQUENCY, CORE_NOW, ACCESS_NOW = range(17, 25)
CYCLES, INSTRUCTIONS, MISSES, CPU_S, REQUESTS = range(25, 30)
FIELDS = 30
SUMS = 5
# Integer fields of a slot.
JOB, END, SOFT_FROM, ROW, TRACE, KEY = range(6)
MARKS = 6
# Columns of `stays`.
T_JOB, T_SHARD, T_START, T_END, T_SOFT, T_ROW, T_TRACE, T_INSTANCE = range(8)
# Job parameters, the columns of `job_table`.
(J_CORE, J_FLOOR, J_GAIN1, J_SET1, J_GAIN2, J_SET2, J_OVERLAP, J_SMT, J_BUSY, J_ELASTIC, J_PACE, J_INSTR, J_SPIN,
 J_NETWORK, J_QUOTA, J_INPUT_SD, J_INSTANCE_SD, J_SOFT_INSTR, J_SOFT_CORE, J_SOFT_ACCESS, J_SOFT_NETWORK) = range(21)
JOB_COLUMNS = 21
# Platform parameters, the columns of `platform_table`.
(P_CORES, P_THREADS, P_FMIN, P_FMAX, P_FSTEP, P_FBASE, P_LLC, P_LATENCY, P_BANDWIDTH, P_IDLE_W, P_DYNAMIC_W, P_CORE,
 P_LIMIT_W) = range(13)
PLATFORM_COLUMNS = 13
# Governor parameters, the columns of `governor_table`; policies are 0 performance, 1 ondemand, 2 stall_aware.
G_POLICY, G_ONDEMAND, G_STALL, G_STEP = range(4)
# Switches and constants of the world, the entries of `settings`.
(S_EPOCH_S, S_LLC, S_BANDWIDTH, S_SMT, S_TOLERANCE, S_ITERATIONS, S_BUDGET, S_RHO, S_MACHINE_SD) = range(9)
# Columns of the per-domain epoch sums, the machine sums and the machine traces.
(E_INSTANCES, E_QUOTA, E_CYCLES, E_INSTRUCTIONS, E_MISSES, E_CPU_S, E_ENERGY_J, E_CAPPED, E_RESIDUAL) = range(9)
EPOCH_COLUMNS = 9
M_ENERGY_J, M_CAPPED = range(2)
NO_TRACE = -(2**40)
"""Trace offset of a stay that is not traced."""

LINE_BYTES = 64.0
WRITE_BACK = 1.3
"""Bytes moved per missed line relative to its size: three lines in ten are dirty when evicted."""
QUEUEING = 0.9
"""Latency at bandwidth utilisation U is idle latency × (1 + QUEUEING · U² / (1 − U))."""
UTILISATION_LIMIT = 0.97
"""Bandwidth utilisation at which the latency curve is cut."""
SHARED_CORE_POWER = 0.4
"""Part of a core's power that a thread saves when its sibling is busy too."""
STALLED_ACTIVITY = 0.45
"""Power of a stalled core relative to a computing one."""
VOLTAGE_FLOOR = 0.6
"""Voltage at frequency f relative to base is VOLTAGE_FLOOR + (1 − VOLTAGE_FLOOR) · f / base."""
DAMPING = 0.6
"""Step of the fixed-point iteration towards the new cache shares and latency."""
CAPPING_GAIN = 0.5
"""How strongly a power domain's allowance follows the gap between budget and power, per epoch."""
MIN_ALLOWANCE = 0.5
"""Lowest allowance of a machine in a capped domain, relative to its own cap."""


@njit(cache=True, inline="always")
def _mix(x):
    """Return the splitmix64 finaliser of a 64-bit counter."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, inline="always")
def _noise(key, epoch):
    """Return a draw that belongs to (key, epoch): four 16-bit uniforms summed, mean 0, variance 1."""
    x = _mix(np.uint64(key) + np.uint64(epoch) * np.uint64(0x9E3779B97F4A7C15))
    low = np.uint64(0xFFFF)
    total = (
        np.float64(np.int64(x & low))
        + np.float64(np.int64((x >> np.uint64(16)) & low))
        + np.float64(np.int64((x >> np.uint64(32)) & low))
        + np.float64(np.int64(x >> np.uint64(48)))
    )
    return (total / 65536.0 - 2.0 + 2.0 / 65536.0) * 1.7320508075688772


@njit(cache=True)
def _normal(key, counter):
    """Return a standard normal draw that belongs to (key, counter), by Box and Muller (1958)."""
    a = _mix(np.uint64(key) + np.uint64(2 * counter + 1) * np.uint64(0x9E3779B97F4A7C15))
    b = _mix(np.uint64(key) + np.uint64(2 * counter + 2) * np.uint64(0x9E3779B97F4A7C15))
    u = (np.float64(np.int64(a >> np.uint64(11))) + 0.5) / 9007199254740992.0
    v = np.float64(np.int64(b >> np.uint64(11))) / 9007199254740992.0
    return np.sqrt(-2.0 * np.log(u)) * np.cos(6.283185307179586 * v)


@njit(cache=True)
def latency_factor(utilisation):
    """Return memory latency relative to idle at a bandwidth utilisation."""
    u = min(utilisation, UTILISATION_LIMIT)
    return 1.0 + QUEUEING * u * u / (1.0 - u)


@njit(cache=True, error_model="numpy")
def solve(hot, n, idle_latency_s, bandwidth, llc_bytes, share_llc, share_bandwidth, tolerance, iterations, latency_s):
    """Solve one machine's interference fixed point in place; return latency, traffic and the residual.

    Unknown are the cache shares `hot[SHARE]` and the memory latency. Given both, each resident's misses, CPI and miss
    rate follow; at the fixed point cache is held in proportion to miss rate, and latency is that of the summed traffic.
    The residual is the larger of the relative change of latency and the largest change of a share relative to the cache.
    """
    share, mpi, cpi, rate = hot[SHARE], hot[MPI], hot[CPI], hot[RATE]
    use, frequency, core, access = hot[USE], hot[FREQUENCY], hot[CORE_NOW], hot[ACCESS_NOW]
    floor, gain1, set1, gain2, set2, stall = hot[FLOOR], hot[GAIN1], hot[SET1], hot[GAIN2], hot[SET2], hot[STALL]
    residual = np.inf
    total = 0.0
    for _ in range(iterations):
        for i in range(n):
            square = share[i] * share[i]
            mpi[i] = access[i] * (floor[i] + gain1[i] / (set1[i] + square) + gain2[i] / (set2[i] + square))
            cpi[i] = core[i] + mpi[i] * stall[i] * latency_s * frequency[i]
            rate[i] = use[i] * frequency[i] / cpi[i] * mpi[i]
        total = 0.0
        for i in range(n):
            total += rate[i]
        wanted = idle_latency_s
        if share_bandwidth:
            wanted = idle_latency_s * latency_factor(total * LINE_BYTES * WRITE_BACK / bandwidth)
        residual = abs(wanted - latency_s) / latency_s
        scale = llc_bytes / max(total, 1e-300)
        if share_llc:
            for i in range(n):
                residual = max(residual, abs(rate[i] * scale - share[i]) / llc_bytes)
        if residual <= tolerance:
            break
        latency_s += DAMPING * (wanted - latency_s)
        if share_llc:
            for i in range(n):
                share[i] += DAMPING * (rate[i] * scale - share[i])
    return latency_s, total, residual


@njit(cache=True, inline="always")
def _power_per_activity(frequency, base):
    """Return a busy core's power at `frequency` relative to `base`: f V(f)²."""
    relative = frequency / base
    voltage = VOLTAGE_FLOOR + (1.0 - VOLTAGE_FLOOR) * relative
    return relative * voltage * voltage


@njit(cache=True, error_model="numpy")
def _govern(hot, n, platform, governor, power_factor, allowance_w, active, stalled):
    """Set every resident's frequency; return the machine's P-state and whether the cap lowered it.

    `active` and `stalled` are the activities (busy cores × activity / cores) below and above the stall threshold in the
    epoch before.
    """
    top, base, step = platform[P_FMAX], platform[P_FBASE], platform[P_FSTEP]
    if governor[G_POLICY] == 1.0:
        utilisation = 0.0
        for i in range(n):
            utilisation += hot[USE, i]
        wish = top * utilisation / (platform[P_THREADS] * governor[G_ONDEMAND])
        top = min(top, max(platform[P_FMIN], platform[P_FMIN] + step * np.ceil((wish - platform[P_FMIN]) / step)))
    slower = governor[G_STEP] if governor[G_POLICY] == 2.0 else 0.0
    room = (allowance_w - platform[P_IDLE_W]) / (platform[P_DYNAMIC_W] * power_factor)
    state = top
    while state > platform[P_FMIN] + 0.5 * step:
        low = max(state - slower, platform[P_FMIN])
        if active * _power_per_activity(state, base) + stalled * _power_per_activity(low, base) <= room:
            break
        state -= step
    low = max(state - slower, platform[P_FMIN])
    for i in range(n):
        stalling = 1.0 - hot[CORE_NOW, i] / hot[CPI, i] > governor[G_STALL]
        hot[FREQUENCY, i] = low if slower > 0.0 and stalling else state
    return state, state < top - 0.5 * step


@njit(cache=True)
def _enter(hot, mark, n, stay, stays, jobs, key):
    """Fill slot n with the stay that starts now; its shard's data decide how it departs from its job's mean."""
    job = stays[stay, T_JOB]
    shard_key = _mix(_mix(key + np.uint64(job)) + np.uint64(stays[stay, T_SHARD]))
    own_key = _mix(_mix(key ^ np.uint64(0x5851F42D4C957F2D)) + np.uint64(stays[stay, T_INSTANCE]))
    spread = jobs[job, J_INPUT_SD]
    core_factor = np.exp(spread * _normal(shard_key, 0) - 0.5 * spread * spread)
    access_factor = np.exp(spread * _normal(shard_key, 1) - 0.5 * spread * spread)
    hot[:, n] = 0.0
    hot[CORE, n] = jobs[job, J_CORE] * core_factor
    hot[FLOOR, n] = jobs[job, J_FLOOR] * access_factor
    hot[GAIN1, n] = jobs[job, J_GAIN1] * access_factor
    hot[SET1, n] = jobs[job, J_SET1]
    hot[GAIN2, n] = jobs[job, J_GAIN2] * access_factor
    hot[SET2, n] = jobs[job, J_SET2]
    hot[STALL, n] = 1.0 / jobs[job, J_OVERLAP]
    hot[SMT, n] = jobs[job, J_SMT]
    hot[BUSY, n] = jobs[job, J_BUSY]
    hot[ELASTIC, n] = jobs[job, J_ELASTIC]
    hot[PACE, n] = jobs[job, J_PACE]
    hot[INSTR, n] = jobs[job, J_INSTR]
    hot[SPIN, n] = jobs[job, J_SPIN]
    hot[NETWORK, n] = jobs[job, J_NETWORK]
    hot[QUOTA, n] = jobs[job, J_QUOTA]
    hot[NOISE_SD, n] = jobs[job, J_INSTANCE_SD]
    hot[WANDER, n] = _normal(own_key, stays[stay, T_START])
    mark[JOB, n], mark[END, n], mark[SOFT_FROM, n] = job, stays[stay, T_END], stays[stay, T_SOFT]
    mark[ROW, n], mark[TRACE, n], mark[KEY, n] = stays[stay, T_ROW], stays[stay, T_TRACE], np.int64(own_key)


@njit(cache=True)
def _soften(hot, mark, slot, jobs):
    """Give the resident of a slot the new code of its job."""
    job = mark[JOB, slot]
    hot[CORE, slot] *= jobs[job, J_SOFT_CORE]
    hot[FLOOR, slot] *= jobs[job, J_SOFT_ACCESS]
    hot[GAIN1, slot] *= jobs[job, J_SOFT_ACCESS]
    hot[GAIN2, slot] *= jobs[job, J_SOFT_ACCESS]
    hot[INSTR, slot] *= jobs[job, J_SOFT_INSTR]
    hot[NETWORK, slot] *= jobs[job, J_SOFT_NETWORK]


@njit(cache=True)
def _write_out(hot, mark, slot, rows, window):
    """Add a resident's sums to its row of the window and clear them."""
    row = mark[ROW, slot] + window
    for k in range(SUMS):
        rows[row, k] += hot[CYCLES + k, slot]
        hot[CYCLES + k, slot] = 0.0


@njit(cache=True, error_model="numpy")
def _demand(hot, mark, n, epoch, rho, load, phase, access, network, platform, idle_latency_s):
    """Set what every resident wants of this epoch: core CPI, memory accesses and busy threads.

    Busy threads follow the pace of the epoch before: a job that serves a given load needs less CPU time on a faster
    machine, and time spent waiting for the network is not busy.
    """
    fresh = np.sqrt(1.0 - rho * rho)
    for i in range(n):
        hot[WANDER, i] = rho * hot[WANDER, i] + fresh * _noise(np.uint64(mark[KEY, i]), epoch)
    for i in range(n):
        mood = phase[mark[JOB, i]] * max(0.2, 1.0 + hot[NOISE_SD, i] * hot[WANDER, i])
        hot[CORE_NOW, i] = hot[CORE, i] * platform[P_CORE] * mood
        hot[ACCESS_NOW, i] = access * mood
        if hot[CPI, i] == 0.0:
            hot[SHARE, i] = platform[P_LLC] / n
            hot[FREQUENCY, i] = platform[P_FMAX]
            misses = hot[FLOOR, i] + hot[GAIN1, i] / hot[SET1, i] + hot[GAIN2, i] / hot[SET2, i]
            hot[CPI, i] = hot[CORE_NOW, i] + misses * hot[STALL, i] * idle_latency_s * platform[P_FMAX]
    for i in range(n):
        pace_s = hot[CPI, i] / hot[FREQUENCY, i]
        want = hot[BUSY, i] * load[mark[JOB, i]] * (1.0 + hot[ELASTIC, i] * (pace_s / hot[PACE, i] - 1.0))
        request_s = hot[INSTR, i] * pace_s
        hot[USE, i] = min(want, hot[QUOTA, i]) * request_s / (request_s + hot[NETWORK, i] * network)


@njit(cache=True, error_model="numpy")
def _count(hot, mark, n, platform, governor, epoch, epoch_s, sibling, busy, power_factor, activity, sums, trace):
    """Add the epoch to every resident's sums and to the domain's; return the machine's power in watts."""
    crowding = busy / platform[P_THREADS]
    core_share = (1.0 - SHARED_CORE_POWER * sibling) / platform[P_CORES]
    activity[0] = 0.0
    activity[1] = 0.0
    dynamic = 0.0
    for i in range(n):
        cycles = hot[USE, i] * hot[FREQUENCY, i] * epoch_s
        instructions = cycles / hot[CPI, i]
        misses = instructions * hot[MPI, i]
        hot[CYCLES, i] += cycles
        hot[INSTRUCTIONS, i] += instructions
        hot[MISSES, i] += misses
        hot[CPU_S, i] += hot[USE, i] * epoch_s
        hot[REQUESTS, i] += instructions * (1.0 - hot[SPIN, i] * crowding) / hot[INSTR, i]
        sums[E_QUOTA] += hot[QUOTA, i]
        sums[E_CYCLES] += cycles
        sums[E_INSTRUCTIONS] += instructions
        sums[E_MISSES] += misses
        sums[E_CPU_S] += hot[USE, i] * epoch_s
        stall = 1.0 - hot[CORE_NOW, i] / hot[CPI, i]
        active = hot[USE, i] * core_share * (STALLED_ACTIVITY + (1.0 - STALLED_ACTIVITY) * (1.0 - stall))
        activity[1 if stall > governor[G_STALL] else 0] += active
        dynamic += active * _power_per_activity(hot[FREQUENCY, i], platform[P_FBASE])
        if mark[TRACE, i] > NO_TRACE:
            at = mark[TRACE, i] + epoch
            trace[at, 0] = cycles
            trace[at, 1] = instructions
            trace[at, 2] = misses
            trace[at, 3] = hot[USE, i] * epoch_s
    sums[E_INSTANCES] += n
    return platform[P_IDLE_W] + platform[P_DYNAMIC_W] * power_factor * dynamic


@njit(parallel=True, cache=True, error_model="numpy")
def simulate(
    domain_start, machine_start, stays, jobs, platforms, governors, settings, key,
    machine_platform, machine_governor, machine_from, conditions, machine_rack, offset,
    window_of_epoch, load, phase, rack_access, rack_network,
    slots, rows, machine_rows, epoch_sums, trace, machine_trace, record_machines,
):  # fmt: skip
    """Simulate the machines of several power domains over the whole horizon; fill the output arrays.

    Parameters
    ----------
    domain_start : (D+1,) first machine of each domain, and the number of machines
    machine_start : (M+1,) first row of `stays` of each machine, stays of a machine ordered by start epoch
    stays : (R, 8) job, shard, start epoch, end epoch, epoch from which it runs new code, first counter row minus first
        window, trace offset minus start epoch (or `NO_TRACE`), instance
    jobs, platforms, governors, settings : tables of parameters, see the column names above
    key : 64-bit key of the seed
    machine_platform, machine_governor : (M, 2) before and after the feature
    machine_from : (M,) epoch from which a machine has the feature
    conditions : (M, 3) latency, bandwidth and power factors
    machine_rack : (M,) column of `rack_access` and `rack_network`
    offset : number of the first machine, to which its noise belongs
    window_of_epoch : (E,) window or −1
    load, phase : (E, J) load of a job relative to its mean; its common behaviour factor
    rack_access, rack_network : (E, K) factors that a rack shares
    slots : residents on a machine at most
    rows : (N, 5) output, sums per stay and window: cycles, instructions, misses, CPU seconds, requests
    machine_rows : (M, W, 2) output, energy in joules and epochs capped
    epoch_sums : (D, E, 9) output, see the column names above
    trace : (T, 4) output, cycles, instructions, misses and CPU seconds of traced stays by epoch
    machine_trace : (M, E, 4) output if `record_machines`: frequency, power, utilisation, bandwidth utilisation

    Stays must not overlap beyond `slots`; nothing is checked here.
    """
    epochs = window_of_epoch.size
    for domain in prange(domain_start.size - 1):
        first, last = domain_start[domain], domain_start[domain + 1]
        count = last - first
        hot = np.zeros((count, FIELDS, slots))
        mark = np.zeros((count, MARKS, slots), np.int64)
        residents = np.zeros(count, np.int64)
        upcoming = machine_start[first:last].copy()
        latency = np.zeros(count)
        activity = np.zeros((count, 2))
        state = np.zeros((count, 2))
        wander = np.zeros(count)
        allowance = 1.0
        for epoch in range(epochs):
            window = window_of_epoch[epoch]
            previous = window_of_epoch[epoch - 1] if epoch > 0 else -1
            domain_w = 0.0
            peak_w = 0.0
            for local in range(count):
                machine = first + local
                here, where = hot[local], mark[local]
                n = residents[local]
                if previous >= 0 and previous != window:
                    for i in range(n):
                        _write_out(here, where, i, rows, previous)
                i = 0
                while i < n:
                    if where[END, i] <= epoch:
                        if previous >= 0:
                            _write_out(here, where, i, rows, previous)
                        n -= 1
                        here[:, i] = here[:, n]
                        where[:, i] = where[:, n]
                    else:
                        i += 1
                while upcoming[local] < machine_start[machine + 1] and stays[upcoming[local], T_START] <= epoch:
                    _enter(here, where, n, upcoming[local], stays, jobs, key)
                    if where[SOFT_FROM, n] < epoch:
                        _soften(here, where, n, jobs)
                    n += 1
                    upcoming[local] += 1
                for i in range(n):
                    if where[SOFT_FROM, i] == epoch:
                        _soften(here, where, i, jobs)
                residents[local] = n
                after = 1 if epoch >= machine_from[machine] else 0
                platform = platforms[machine_platform[machine, after]]
                governor = governors[machine_governor[machine, after]]
                idle_latency = platform[P_LATENCY] * conditions[machine, 0]
                if epoch == 0:
                    wander[local] = _noise(key ^ _mix(np.uint64(offset + machine + 1)), -1)
                else:
                    wander[local] = settings[S_RHO] * wander[local] + np.sqrt(
                        1.0 - settings[S_RHO] ** 2
                    ) * _noise(key ^ _mix(np.uint64(offset + machine + 1)), epoch)
                surroundings = rack_access[epoch, machine_rack[machine]] * (1.0 + settings[S_MACHINE_SD] * wander[local])
                if latency[local] == 0.0:
                    latency[local] = idle_latency
                _demand(here, where, n, epoch, settings[S_RHO], load[epoch], phase[epoch], surroundings,
                        rack_network[epoch, machine_rack[machine]], platform, idle_latency)  # fmt: skip
                busy = 0.0
                for i in range(n):
                    busy += here[USE, i]
                sibling = (busy / platform[P_THREADS]) ** 2 if settings[S_SMT] > 0.0 else 0.0
                for i in range(n):
                    here[CORE_NOW, i] *= 1.0 + here[SMT, i] * sibling
                if activity[local, 0] + activity[local, 1] == 0.0:
                    activity[local, 0] = busy * (1.0 - SHARED_CORE_POWER * sibling) / platform[P_CORES]
                limit_w = platform[P_LIMIT_W] * allowance
                chosen, capped = _govern(here, n, platform, governor, conditions[machine, 2], limit_w,
                                         activity[local, 0], activity[local, 1])  # fmt: skip
                if settings[S_LLC] == 0.0:
                    for i in range(n):
                        here[SHARE, i] = platform[P_LLC] * here[QUOTA, i] / platform[P_THREADS]
                latency[local], traffic, residual = solve(
                    here, n, idle_latency, platform[P_BANDWIDTH] * conditions[machine, 1], platform[P_LLC],
                    settings[S_LLC] > 0.0, settings[S_BANDWIDTH] > 0.0, settings[S_TOLERANCE],
                    int(settings[S_ITERATIONS]), latency[local],
                )  # fmt: skip
                sums = epoch_sums[domain, epoch]
                power_w = _count(here, where, n, platform, governor, epoch, settings[S_EPOCH_S], sibling, busy,
                                 conditions[machine, 2], activity[local], sums, trace)  # fmt: skip
                domain_w += power_w
                peak_w += platform[P_IDLE_W] + platform[P_DYNAMIC_W]
                sums[E_ENERGY_J] += power_w * settings[S_EPOCH_S]
                sums[E_CAPPED] += capped
                sums[E_RESIDUAL] = max(sums[E_RESIDUAL], residual if n > 0 else 0.0)
                if window >= 0:
                    machine_rows[machine, window, M_ENERGY_J] += power_w * settings[S_EPOCH_S]
                    machine_rows[machine, window, M_CAPPED] += capped
                if record_machines:
                    machine_trace[machine, epoch, 0] = chosen
                    machine_trace[machine, epoch, 1] = power_w
                    machine_trace[machine, epoch, 2] = busy / platform[P_THREADS]
                    machine_trace[machine, epoch, 3] = (
                        traffic * LINE_BYTES * WRITE_BACK / (platform[P_BANDWIDTH] * conditions[machine, 1])
                    )
            budget_w = settings[S_BUDGET] * peak_w
            allowance = min(1.0, max(MIN_ALLOWANCE, allowance + CAPPING_GAIN * (budget_w - domain_w) / budget_w))
        final = window_of_epoch[epochs - 1]
        if final >= 0:
            for local in range(count):
                for i in range(residents[local]):
                    _write_out(hot[local], mark[local], i, rows, final)
