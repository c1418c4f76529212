"""The event-driven machine: a power domain's whole horizon, machines solved only when something changes; compiled.

Events of a machine are these; rates are constant between them, and counters are integrals:

- conditions, with every epoch: what changes slowly (a job's mean load and phase, what machines and instances do of
  their own, the power allowance, the feature);
- residents that leave, then enter, at their own times;
- a step of load, every `load_s` seconds, of all residents at once: each one's load is that of the epoch times a draw of
  its own, nearly lognormal (`sim.fleet.draws.noise`), of mean 1, independent between steps;
- a look of the governor, at the next multiple of `governor_s` seconds after rates have changed, and at time 0. It sees
  how busy the machine is since then, and how much of their cycles residents wait; of newcomers it knows nothing before.
  If it wishes other clocks, rates change, and it looks again; if not, it sees nothing new until the next event and need
  not look.

Processors keep their TDP and the machine its cap within milliseconds, and turbo follows the cores that are active:
every event finds the limit of clocks anew, under what the governor wished last. What happens at one moment is one
event: requests, residents, conditions and load first, then the look, then one solution. As in the epoch kernel
(`sim.fleet.kernel`), whose parts this is made of, a resident's busy threads follow its pace before the event.

Requests of instances that have stations (`sim.fleet.stations`) come and leave in between: where another number of a
station's servers works then, the machine is solved again, with as many of the instance's threads busy as servers work.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit
from sim.fleet import kernel
from sim.fleet.draws import OF_LOAD, mix, noise
from sim.fleet.interference import LINE_BYTES, WRITE_BACK, slow_down_by
from sim.fleet.kernel import (
    _add,
    _allow,
    _behave,
    _clocked,
    _conditions,
    _count,
    _demand,
    _divide_cache,
    _give_places,
    _guess,
    _hold_back,
    _load,
    _note,
    _open,
    _own_governor,
    _ration,
    _sibling,
    _slow_down_siblings,
    _stalls,
    _wander,
    _write_down,
)
from sim.fleet.layout import (
    Inputs,
    LoadedHost,
    MachineEpoch,
    OperatingConditions,
    Outputs,
    OwnGovernor,
    OwnPhysics,
    PowerDomain,
    Records,
    Residents,
    StationsAtWork,
)
from sim.fleet.own_physics import OwnFunctions
from sim.fleet.power import set_clocks, turbo_hz
from sim.fleet.slots import (
    CPI,
    E_CPU_S,
    E_CYCLES,
    E_INSTANCES,
    E_INSTRUCTIONS,
    E_MISSES,
    E_QUOTA,
    END,
    EPOCH_COLUMNS,
    FREQUENCY,
    INSTR,
    KEY,
    NO_TRACE,
    NOWHERE,
    ROW,
    SHARE,
    SOFT_FROM,
    STALLED,
    STATION,
    THROTTLED,
    TRACE,
    UNTIL_S,
    USE,
    WAITED,
)
from sim.fleet.stations import open_station, requests_happen, run_at
from sim.fleet.turnover import enter, leave, renew, switch, write_out

RESIDENTS, CONDITIONS, LOAD, LOOK, CLOCK, REQUESTS = 1, 2, 4, 8, 16, 32
"""Bits of what happens in one event; `CLOCK` is a look after which somebody's clock is another one, `REQUESTS` that
another number of a station's servers works."""
STATE_HZ, CAPPED, POWER_W, UTILISATION, TRAFFIC, RESIDUAL, SEEN, LIMIT_HZ = range(8)
_RATES = 8  # the last two: the utilisation that the governor saw last, and the limit under which it chose
LEAST_SHARE = 1e-3  # of the last-level cache, of whom begins to work


class Moments(NamedTuple):
    """What an event-driven power domain's m machines do from one event to the next."""

    change_s: Floats  # (m,) when somebody leaves or enters next; inf: nobody does
    step: Ints  # (m,) number of the step of load in force
    look_s: Floats  # (m,) when the governor looks next; inf: there is nothing new to see
    rates: Floats  # (m, _RATES) what machines do since the last event
    means: Floats  # (_RATES,) of the machine and epoch at hand
    piece: Floats  # (EPOCH_COLUMNS,) sums between two events
    clocks: Floats  # (slots,) before the event at hand
    since_s: Floats  # (1,) when the rates of the machine at hand began
    log: Floats  # (L, 3)
    logged: Ints  # (1,)


class EventHost(NamedTuple):
    """One machine in one epoch, among all that it is part of."""

    inputs: Inputs
    outputs: Outputs
    domain: PowerDomain
    moments: Moments
    local: int
    epoch: int
    conditions: OperatingConditions


@njit(cache=False)
def _begin(inputs: Inputs, outputs: Outputs, number: int, machines: int) -> Moments:
    """Return a power domain's moments before the first."""
    return Moments(
        change_s=np.zeros(machines),
        step=np.zeros(machines, np.int64),
        look_s=np.zeros(machines),
        rates=np.zeros((machines, _RATES)),
        means=np.zeros(_RATES),
        piece=np.zeros(EPOCH_COLUMNS),
        clocks=np.zeros(inputs.slots),
        since_s=np.zeros(1),
        log=outputs.events[number],
        logged=np.zeros(1, np.int64),
    )


@njit(cache=False, borrows=True)
def _residents(host: EventHost) -> Residents:
    """Return who is on a machine now."""
    return Residents(host.domain.hot[host.local], host.domain.mark[host.local], host.domain.residents[host.local])


@njit(cache=False, borrows=True)
def _open_stations(
    residents: Residents, newcomers: int, stations: StationsAtWork | None, requests: Records, at_s: float
) -> None:
    """Begin the stations of newcomers."""
    if stations is None:
        return
    for i in range(newcomers, residents.n):
        if residents.mark[STATION, i] != NOWHERE:
            open_station(stations, requests, residents.mark[STATION, i], at_s)


@njit(cache=False)
def _turn_over(host: EventHost, at_s: float) -> tuple[int, bool]:
    """Let residents leave and enter whose time has come; return the first newcomer's slot, and whether anybody did.

    At the beginning of an epoch sums of a window that has ended are written out, and new code comes in.
    """
    inputs, rows, domain, local, epoch = host.inputs, host.outputs.rows, host.domain, host.local, host.epoch
    hot, mark, n, begins = domain.hot[local], domain.mark[local], domain.residents[local], _begins(host, at_s)
    machine, window = domain.first + local, inputs.window_of_epoch[epoch]
    if begins:
        previous = inputs.window_of_epoch[epoch - 1] if epoch > 0 else -1
        if previous != window:
            for i in range(n):
                write_out(hot, mark, i, previous, rows)
        window = previous
    for i in range(n):
        if hot[UNTIL_S, i] <= at_s:
            mark[END, i] = epoch
    newcomers = leave(Residents(hot, mark, n), epoch, window, rows)
    changed = newcomers < n
    n, following, end = newcomers, domain.upcoming[local], inputs.stay_start[machine + 1]
    while following < end and inputs.stays[following].start_s <= at_s:
        enter(hot, mark, n, inputs.stays[following], inputs)
        n += 1
        following += 1
    _open_stations(Residents(hot, mark, n), newcomers, inputs.stations, host.outputs.requests, at_s)
    for i in range(0 if begins else newcomers, n):
        if mark[SOFT_FROM, i] == epoch:
            renew(hot, mark, i, inputs)
    if inputs.switched.shape[0] > 0 and (begins or n > newcomers):
        switch(inputs, Residents(hot, mark, n), newcomers, machine, epoch)
    domain.residents[local], domain.upcoming[local] = n, following
    change_s = inputs.stays[following].start_s if following < end else np.inf
    for i in range(n):
        change_s = min(change_s, hot[UNTIL_S, i])
    host.moments.change_s[local] = change_s
    return int(newcomers), bool(changed or n > newcomers)


@njit(cache=False, error_model="numpy", borrows=True)
def _vary_load(residents: Residents, step: int, log_sd: float) -> None:
    """Let every resident's load depart from that of the epoch by a draw of its own for this step, of mean 1."""
    hot, mark, n = residents
    half = 0.5 * np.sqrt(3.0) * log_sd
    scale = (half / np.sinh(half)) ** 4  # `noise` is the sum of four uniforms
    for i in range(n):
        hot[USE, i] *= scale * np.exp(log_sd * noise(mix(np.uint64(mark[KEY, i]) ^ OF_LOAD), step))


@njit(cache=False, error_model="numpy", borrows=True)
def _serve_requests(residents: Residents, stations: StationsAtWork | None, llc_bytes: float, busy: float) -> float:
    """Let instances with stations keep as many threads busy as servers work there; return all busy threads."""
    if stations is None:
        return busy
    hot, mark, n = residents
    for i in range(n):
        if mark[STATION, i] != NOWHERE:
            servers = stations.station[mark[STATION, i]].busy
            busy += servers - hot[USE, i]
            hot[USE, i], hot[THROTTLED, i] = servers, 0.0  # who waits, waits in the station
    for i in range(n):  # who was idle holds no cache: a guess from where it can be solved
        if mark[STATION, i] != NOWHERE and hot[USE, i] > 0.0 and hot[SHARE, i] < LEAST_SHARE * llc_bytes:
            hot[SHARE, i] = llc_bytes * hot[USE, i] / busy
    return busy


@njit(cache=False, error_model="numpy", borrows=True)
def _pace_requests(residents: Residents, stations: StationsAtWork | None, requests: Records, at_s: float) -> None:
    """Let requests in service run at the speed of their instance from now on; less where its threads must wait."""
    if stations is None:
        return
    hot, mark, n = residents
    for i in range(n):
        if mark[STATION, i] != NOWHERE:
            running = hot[USE, i] / max(stations.station[mark[STATION, i]].busy, 1)
            speed = running * hot[FREQUENCY, i] / hot[CPI, i] / hot[INSTR, i]
            run_at(stations, requests, mark[STATION, i], at_s, speed)


@njit(cache=False, error_model="numpy", borrows=True)
def _requests_change(residents: Residents, stations: StationsAtWork | None, requests: Records, at_s: float) -> bool:
    """Let requests come and leave that are due; return whether another number of a station's servers works."""
    if stations is None:
        return False
    (_, mark, n), changed = residents, False
    for i in range(n):
        if mark[STATION, i] != NOWHERE:
            changed |= requests_happen(stations, requests, mark[STATION, i], at_s)
    return changed


@njit(cache=False, borrows=True)
def _begins(host: EventHost, at_s: float) -> bool:
    """Return whether this is the beginning of the epoch."""
    return bool(at_s == host.epoch * host.inputs.settings[0].epoch_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _load_up(host: EventHost, newcomers: int) -> float:
    """Set how many threads everybody keeps busy, and everybody's core CPI beside siblings; return the utilisation."""
    inputs, domain, conditions, residents = host.inputs, host.domain, host.conditions, _residents(host)
    settings, contention, platform = inputs.settings[0], conditions.contention, inputs.platforms[conditions.platform]
    _give_places(inputs, domain, host.local, conditions)
    core_cpi = inputs.core_cpi[conditions.platform]
    _behave(residents, core_cpi, platform, conditions.access, inputs.phase[host.epoch])
    if settings.best_effort_delay > 1.0:
        _hold_back(residents, settings.best_effort_delay)
    _guess(residents, contention, platform.max_hz)
    stalled = residents.hot[STALLED]
    for i in range(newcomers, residents.n):
        stalled[i] = residents.hot[WAITED, i]
    _load(residents, inputs.load[host.epoch], inputs.weight[conditions.platform])
    if settings.load_log_sd > 0.0:
        _vary_load(residents, host.moments.step[host.local], settings.load_log_sd)
    busy = _demand(residents, conditions.network)
    busy = _serve_requests(residents, inputs.stations, contention.llc_bytes, busy)
    if settings.overcommit > 1.0:
        busy = _ration(residents, platform.threads)
    utilisation = busy / platform.threads
    sibling = _sibling(settings, platform, utilisation)
    _slow_down_siblings(residents, stalled, sibling, settings.sibling_relief)
    _divide_cache(residents, contention, platform.threads * settings.overcommit)
    if domain.own.slows:
        slow_down_by(domain.own, residents, contention, platform.threads, sibling)
    return float(utilisation)


@njit(cache=False, error_model="numpy", borrows=True)
def _see(host: EventHost, utilisation: float) -> None:
    """Let the governor see how busy the machine is, and how much its residents waited."""
    hot, n = host.domain.hot[host.local], host.domain.residents[host.local]
    host.moments.rates[host.local, SEEN] = utilisation
    for i in range(n):
        hot[WAITED, i] = hot[STALLED, i]


@njit(cache=False, error_model="numpy", borrows=True)
def _governor(host: EventHost, utilisation: float) -> OwnGovernor:
    """Return what the governor knows, on processors of which so many threads are busy."""
    platform, number = host.inputs.platforms[host.conditions.platform], host.conditions.governor
    most_hz = turbo_hz(platform, utilisation, _sibling(host.inputs.settings[0], platform, utilisation))
    return _own_governor(host.domain.own, number, host.moments.rates[host.local, SEEN], most_hz)


@njit(cache=False, error_model="numpy", borrows=True)
def _solve(host: EventHost, newcomers: int, look: bool) -> None:
    """Solve the machine as it is now: demand, what the governor wishes, clocks, interference, power."""
    domain, conditions, residents = host.domain, host.conditions, _residents(host)
    platform, utilisation = host.inputs.platforms[conditions.platform], _load_up(host, newcomers)
    if look:
        _see(host, utilisation)
    else:
        for i in range(newcomers, residents.n):
            residents.hot[WAITED, i] = 0.0
    running = LoadedHost(
        residents=residents,
        platform=platform,
        governor=host.inputs.governors[conditions.governor],
        own=_governor(host, utilisation),
        conditions=conditions,
        latency_s=domain.latency_s[host.local],
        scratch=domain.scratch,
        utilisation=utilisation,
        sibling=_sibling(host.inputs.settings[0], platform, utilisation),
    )
    clocked = _clocked(running)
    _stalls(residents, residents.hot[STALLED])
    rates = host.moments.rates[host.local]
    rates[STATE_HZ], rates[CAPPED], rates[POWER_W] = clocked.state_hz, clocked.capped, clocked.power_w
    rates[LIMIT_HZ], rates[UTILISATION] = clocked.limit_hz, utilisation
    rates[TRAFFIC] = clocked.misses_per_s * LINE_BYTES * WRITE_BACK / conditions.contention.bandwidth
    rates[RESIDUAL] = clocked.residual if residents.n > 0 else 0.0


@njit(cache=False, borrows=True)
def _changed(host: EventHost, n: int, state_hz: float) -> bool:
    """Return whether the P-state or a clock of the first n residents is another one than before."""
    changed = host.moments.rates[host.local, STATE_HZ] != state_hz
    for i in range(n):
        changed = changed or host.domain.hot[host.local, FREQUENCY, i] != host.moments.clocks[i]
    return bool(changed)


@njit(cache=False, borrows=True)
def _next_request_s(residents: Residents, stations: StationsAtWork | None) -> float:
    """Return when a request comes to a machine or leaves it, or service changes hands there, next."""
    if stations is None:
        return np.inf
    (_, mark, n), next_s = residents, np.inf
    for i in range(n):
        if mark[STATION, i] != NOWHERE:
            next_s = min(next_s, stations.station[mark[STATION, i]].next_s)
    return float(next_s)


@njit(cache=False, borrows=True)
def _next_s(host: EventHost) -> float:
    """Return when something happens next on a machine, new epochs aside."""
    moments, local = host.moments, host.local
    next_s = min(moments.change_s[local], moments.look_s[local])
    if host.domain.residents[local] > 0:
        next_s = min(next_s, (moments.step[local] + 1) * host.inputs.settings[0].load_s)
    return float(min(next_s, _next_request_s(_residents(host), host.inputs.stations)))


@njit(cache=False, borrows=True)
def _is_due(host: EventHost, at_s: float) -> bool:
    """Return whether an epoch begins, residents change or load steps."""
    moments, settings = host.moments, host.inputs.settings[0]
    steps_s = (moments.step[host.local] + 1) * settings.load_s
    return bool(_begins(host, at_s) or moments.change_s[host.local] <= at_s or steps_s <= at_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _change(host: EventHost, at_s: float) -> tuple[int, int]:
    """Let epoch, residents and load change that are due; return the bits of what did and the first newcomer's slot."""
    settings, moments, local = host.inputs.settings[0], host.moments, host.local
    begins = _begins(host, at_s)
    what, newcomers = CONDITIONS if begins else 0, host.domain.residents[local]
    if begins or moments.change_s[local] <= at_s:
        newcomers, changed = _turn_over(host, at_s)
        what |= RESIDENTS if changed else 0
    while (moments.step[local] + 1) * settings.load_s <= at_s:
        moments.step[local] += 1
        what |= LOAD
    if begins:
        _wander(_residents(host), settings.rho, host.epoch)
    return what, newcomers


@njit(cache=False, error_model="numpy", borrows=True)
def _wishes_others(host: EventHost) -> bool:
    """Let the governor look; return whether it wishes other clocks than those that are, which stay as they are."""
    residents, rates, clocks = _residents(host), host.moments.rates[host.local], host.moments.clocks
    platform, governor = (
        host.inputs.platforms[host.conditions.platform],
        host.inputs.governors[host.conditions.governor],
    )
    _see(host, rates[UTILISATION])
    for i in range(residents.n):
        clocks[i] = residents.hot[FREQUENCY, i]
    own = _governor(host, rates[UTILISATION])
    changed = set_clocks(own, residents, platform, governor, rates[LIMIT_HZ]) != rates[STATE_HZ]
    for i in range(residents.n):
        changed = changed or residents.hot[FREQUENCY, i] != clocks[i]
        residents.hot[FREQUENCY, i] = clocks[i]
    return bool(changed)


@njit(cache=False, error_model="numpy", borrows=True)
def _happens(host: EventHost, at_s: float) -> None:
    """Let everything happen on a machine that is due now; log it."""
    settings, moments, domain, local = host.inputs.settings[0], host.moments, host.domain, host.local
    due, what, requests, stations = _is_due(host, at_s), LOOK, 0, host.inputs.stations
    if _requests_change(_residents(host), stations, host.outputs.requests, at_s):
        due, requests = True, REQUESTS
    if not due and moments.look_s[local] > at_s:
        return  # requests came or left, and as many servers work as before
    clocked = not due and _wishes_others(host)
    if due or clocked:
        _integrate(host, at_s)
        what, newcomers = _change(host, at_s) if due else (0, domain.residents[local])
        look = moments.look_s[local] <= at_s or domain.divided[local] != host.conditions.platform
        for i in range(newcomers):
            moments.clocks[i] = domain.hot[local, FREQUENCY, i]
        state_hz = moments.rates[local, STATE_HZ]
        _solve(host, newcomers, look)
        what |= (LOOK if look else 0) | (CLOCK if clocked or _changed(host, newcomers, state_hz) else 0) | requests
        _pace_requests(_residents(host), stations, host.outputs.requests, at_s)
    moments.look_s[local] = np.inf
    if what != LOOK:
        tick = np.floor(at_s / settings.governor_s) + 1.0
        tick += 1.0 if tick * settings.governor_s <= at_s else 0.0
        moments.look_s[local] = tick * settings.governor_s
    if moments.logged[0] < moments.log.shape[0]:
        row = moments.log[moments.logged[0]]
        row[0], row[1], row[2] = at_s, host.inputs.machines[domain.first + local].number, what
        moments.logged[0] += 1


@njit(cache=False, error_model="numpy", borrows=True)
def _add_to(row: Floats, piece: Floats) -> None:
    """Add the first columns of a piece to a row of as many."""
    for column in range(row.size):
        row[column] += piece[column]


@njit(cache=False, error_model="numpy", borrows=True)
def _integrate(host: EventHost, now_s: float) -> None:
    """Add the time since rates changed last to all counters: rates times seconds."""
    time_s = now_s - host.moments.since_s[0]
    host.moments.since_s[0] = now_s
    residents, inputs, outputs, moments = _residents(host), host.inputs, host.outputs, host.moments
    rates, sums, piece = moments.rates[host.local], host.domain.sums[host.epoch], moments.piece
    part = time_s / inputs.settings[0].epoch_s
    for column in range(EPOCH_COLUMNS):
        piece[column] = 0.0
    _count(residents, time_s, rates[UTILISATION], piece)
    sums[E_INSTANCES] += piece[E_INSTANCES] * part
    sums[E_QUOTA] += piece[E_QUOTA] * part
    for column in (E_CYCLES, E_INSTRUCTIONS, E_MISSES, E_CPU_S):
        sums[column] += piece[column]
    for rate in range(RESIDUAL):
        moments.means[rate] += rates[rate] * part
    moments.means[RESIDUAL] = max(moments.means[RESIDUAL], rates[RESIDUAL])
    if outputs.trace.size > 0:
        for i in range(residents.n):
            if residents.mark[TRACE, i] > NO_TRACE:
                _note(residents.hot, i, time_s, piece)
                _add_to(outputs.trace[residents.mark[TRACE, i] + host.epoch], piece)
    if inputs.visit.shape[0] > 0 and inputs.visit[host.domain.first + host.local, host.epoch] >= 0:
        outputs.visit_power_w[inputs.visit[host.domain.first + host.local, host.epoch]] += rates[POWER_W] * part
        _visit(host, time_s)


@njit(cache=False, error_model="numpy", borrows=True)
def _visit(host: EventHost, time_s: float) -> None:
    """Add what each resident of a visited machine did, beside its counter row; who has left stays in the table."""
    (hot, mark, n), piece = _residents(host), host.moments.piece
    visit = host.inputs.visit[host.domain.first + host.local, host.epoch]
    window, rows = host.inputs.window_of_epoch[host.epoch], host.outputs.visit_rows[visit]
    for i in range(n):
        at = 0
        while rows[at] != NOWHERE and rows[at] != mark[ROW, i] + window:
            at += 1
        rows[at] = mark[ROW, i] + window
        _note(hot, i, time_s, piece)
        _add_to(host.outputs.visit_sums[visit, at], piece)


@njit(cache=False, error_model="numpy", borrows=True)
def _run(host: EventHost) -> MachineEpoch:
    """Simulate one epoch of one machine from event to event."""
    settings, means = host.inputs.settings[0], host.moments.means
    at_s, end_s = host.epoch * settings.epoch_s, (host.epoch + 1) * settings.epoch_s
    means[:], host.moments.since_s[0] = 0.0, at_s
    while at_s < end_s:
        _happens(host, at_s)
        at_s = _next_s(host)
    _integrate(host, end_s)
    platform = host.inputs.platforms[host.conditions.platform]
    return MachineEpoch(
        state_hz=means[STATE_HZ],
        capped=means[CAPPED],
        power_w=means[POWER_W],
        energy_j=means[POWER_W] * settings.epoch_s,
        peak_w=platform.peak_w,
        utilisation=means[UTILISATION],
        bandwidth_utilisation=means[TRAFFIC],
        residual=means[RESIDUAL],
    )


@njit(nogil=True, cache=True)
def _simulated(inputs: Inputs, outputs: Outputs, first: int, last: int, own: OwnPhysics) -> None:
    for number in range(first, last):
        domain = _open(inputs, outputs, number, own)
        machines = domain.residents.size
        moments = _begin(inputs, outputs, number, machines)
        for epoch in range(inputs.window_of_epoch.size):
            power_w = peak_w = 0.0
            for local in range(machines):
                conditions = _conditions(inputs, domain, local, epoch)
                did = _run(EventHost(inputs, outputs, domain, moments, local, epoch, conditions))
                _add(domain.sums[epoch], did)
                _write_down(inputs, outputs, domain.first + local, epoch, did)
                power_w += did.power_w
                peak_w += did.peak_w
            _allow(inputs, domain, power_w, peak_w)
        for local in range(machines):
            for i in range(domain.residents[local]):
                write_out(domain.hot[local], domain.mark[local], i, inputs.window_of_epoch[-1], outputs.rows)


def simulate(inputs: Inputs, outputs: Outputs, threads: int, own: OwnFunctions) -> None:
    """Simulate several power domains over the whole horizon, from event to event; otherwise like the epoch kernel.

    Parameters
    ----------
    inputs, outputs, threads, own : as for `sim.fleet.kernel.simulate`
    """
    kernel.simulate(inputs, outputs, threads, own, _simulated)
