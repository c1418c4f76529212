"""A machine that serves requests beside neighbours: its speed and theirs for every number of busy threads; compiled.

Between two requests that begin or end, a machine is what it is with so many threads of the service busy, at this load
of its neighbours, under what its governor wished when it looked last. Each such state is solved once, by the parts of
the epoch kernel (`sim.fleet.kernel`), and a queue runs on the table of speeds: a burst heats the processors, takes
cache and bandwidth and keeps siblings busy, at once.

- Steps of the neighbours' load are those of the event-driven machine (`sim.fleet.events`); their slow changes go on
  with epochs of `EPOCH_S`.
- The neighbours' busy threads follow their pace at once: demand and speed are solved until they agree.
- The processors' limits, TDP and turbo, hold within milliseconds, in every state anew. The governor looks every
  `steps.governor_s` seconds; what it wishes until then follows from how busy the machine was and how much its residents
  waited for memory when it looked: rows of the table by the number of threads that the service kept busy then. Under
  `performance` it wishes the same whatever it sees, and there is one row.
- Speed 1 is that of one request alone on the machine, without neighbours, at its all-core turbo.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.code.compiled import njit, with_functions
from models.errors import InputError
from models.fleet.inventory import Jobs, build_jobs, build_machines
from models.fleet.world import Behaviour, Conditions, Fleet, Population, Power, Service, World
from models.platforms import Sheet
from models.queues.machine import Neighbours, ServingMachine
from models.queues.serve import ChangingRates
from models.randomness import stream
from sim.fleet.day import (
    core_table,
    governor_table,
    job_table,
    load,
    machine_table,
    platform_table,
    settings_table,
    software_table,
)
from sim.fleet.events import _vary_load
from sim.fleet.interference import LINE_BYTES, WRITE_BACK, slow_down_by, solve
from sim.fleet.kernel import (
    _behave,
    _clocked,
    _conditions,
    _demand,
    _divide_cache,
    _give_places,
    _guess,
    _hold_back,
    _load,
    _open,
    _own_governor,
    _sibling,
    _slow_down_siblings,
    _stalls,
    _wander,
)
from sim.fleet.layout import (
    SPELL,
    STAY,
    Clocked,
    Inputs,
    LoadedHost,
    OperatingConditions,
    Outputs,
    OwnPhysics,
    PowerDomain,
    Residents,
)
from sim.fleet.own_physics import OwnFunctions, own_functions
from sim.fleet.power import turbo_hz
from sim.fleet.slots import (
    CPI,
    EPOCH_COLUMNS,
    FREQUENCY,
    NO_TRACE,
    NOWHERE,
    QUOTA,
    SUMS,
    USE,
    WAITED,
)
from sim.fleet.stations import stations_of
from sim.fleet.turnover import enter

EPOCH_S = 300.0
"""From one change of what neighbours do by the hour to the next, as in fleets."""
SPEED, SLOWDOWN, POWER_W, CAPPED, STATE_HZ, UTILISATION, TRAFFIC, RESIDUAL = range(8)
"""Columns of a state: speed of a request; time of the neighbours' instructions over that without the service; power;
whether a limit lowers clocks; P-state; busy threads over all; traffic over bandwidth; residual of the fixed point."""
COLUMNS = 8
_TOLERANCE, _ITERATIONS = 1e-7, 100
_ROUNDS, _AGREED = 30, 1e-7  # demand and speed are solved in turns until both change by less than that part
LEAST_BUSY = 1e-3
"""Work per second that a smooth stream has at least: with none, no thread would have a speed."""
_SERVICE = "requests"
Sheets = Mapping[str, Sheet]
SHIPPED_ALONE: Final[Sheets] = MappingProxyType({})
"""No platforms of somebody's own."""
_UNIVERSE = Fleet()
"""The fleet from whose instances neighbours are drawn."""


class ServedHost(NamedTuple):
    """The machine at one load, the service in slot 0 and n − 1 neighbours."""

    inputs: Inputs
    domain: PowerDomain
    conditions: OperatingConditions
    n: int
    epoch: int
    step: int
    alone_s: float  # seconds per instruction of one request alone: speed 1
    stalled: Floats  # (slots,) share of cycles in which residents wait, in the state solved last


class SolvedSteps(NamedTuple):
    """Steps in which a machine's neighbours have the same load, and the states that are solved for them."""

    times: Ints  # (steps, 2) epoch, and step of load
    offered: Floats  # (steps,) work per second that keeps a smooth number of threads busy; (0,): states of 0, 1, .., k
    states: Floats  # (steps, m, k + 1, COLUMNS); with work offered (steps, 1, 1, COLUMNS)


class Wish(NamedTuple):
    """What a governor saw when it looked last; utilisation below 0: it looks now."""

    utilisation: float
    stalled: Floats


@njit(cache=False, error_model="numpy", borrows=True)
def _residents(host: ServedHost) -> Residents:
    return Residents(host.domain.hot[0], host.domain.mark[0], host.n)


@njit(cache=False, error_model="numpy", borrows=True)
def _load_up(host: ServedHost, busy: float) -> float:
    """Set how many threads everybody keeps busy, the service so many, and core CPI; return the utilisation."""
    inputs, domain, conditions, residents = host.inputs, host.domain, host.conditions, _residents(host)
    settings, contention, platform = inputs.settings[0], conditions.contention, inputs.platforms[conditions.platform]
    core_cpi = inputs.core_cpi[conditions.platform]
    _behave(residents, core_cpi, platform, conditions.access, inputs.phase[0])
    if settings.best_effort_delay > 1.0:
        _hold_back(residents, settings.best_effort_delay)
    _guess(residents, contention, platform.max_hz)
    _load(residents, inputs.load[host.epoch], inputs.weight[conditions.platform])
    if settings.load_log_sd > 0.0:
        _vary_load(residents, host.step, settings.load_log_sd)
    use = residents.hot[USE]
    use[0] = 0.0
    total = _demand(residents, conditions.network) - use[0] + busy
    use[0] = busy
    utilisation = total / platform.threads
    sibling = _sibling(settings, platform, utilisation)
    _slow_down_siblings(residents, host.stalled, sibling, settings.sibling_relief)
    _divide_cache(residents, contention, platform.threads)
    if domain.own.slows:
        slow_down_by(domain.own, residents, contention, platform.threads, sibling)
    return float(utilisation)


@njit(cache=False, error_model="numpy", borrows=True)
def _clock(host: ServedHost, utilisation: float, wish: Wish) -> Clocked:
    """Solve the loaded machine under what its governor wishes, and note who waits how much."""
    domain, conditions, residents = host.domain, host.conditions, _residents(host)
    platform, settings = host.inputs.platforms[conditions.platform], host.inputs.settings[0]
    sibling, looks = _sibling(settings, platform, utilisation), wish.utilisation < 0.0
    seen, stalled = (utilisation, host.stalled) if looks else (wish.utilisation, wish.stalled)
    for i in range(host.n):
        residents.hot[WAITED, i] = stalled[i]
    clocked = _clocked(
        LoadedHost(
            residents=residents,
            platform=platform,
            governor=host.inputs.governors[conditions.governor],
            own=_own_governor(domain.own, conditions.governor, seen, turbo_hz(platform, utilisation, sibling)),
            conditions=conditions,
            latency_s=domain.latency_s[0],
            scratch=domain.scratch,
            utilisation=utilisation,
            sibling=sibling,
        )
    )
    _stalls(residents, host.stalled)
    return clocked


@njit(cache=False, error_model="numpy", borrows=True)
def _settle(host: ServedHost, busy: float, offered: float, wish: Wish, state: Floats) -> None:
    """Solve demand and speed in turns until they agree; fill the state, all but the neighbours' slow-down.

    Where work is offered per second, the service keeps as many threads busy as that takes, at most `busy`.
    """
    hot, before, used = host.domain.hot[0], np.inf, -1.0
    use = busy
    for _ in range(_ROUNDS):
        utilisation = _load_up(host, use)
        clocked = _clock(host, utilisation, wish)
        speed = host.alone_s * hot[FREQUENCY, 0] / hot[CPI, 0]
        agreed = abs(speed - before) <= _AGREED * speed and abs(utilisation - used) <= _AGREED
        before, used = speed, utilisation
        if offered > 0.0:
            use = min(busy, offered / speed)
        if agreed:
            break
    state[SPEED], state[POWER_W], state[CAPPED], state[STATE_HZ] = (
        speed,
        clocked.power_w,
        clocked.capped,
        clocked.state_hz,
    )
    state[UTILISATION], state[RESIDUAL] = utilisation, clocked.residual
    traffic = clocked.misses_per_s * LINE_BYTES * WRITE_BACK
    state[TRAFFIC] = traffic / host.conditions.contention.bandwidth


@njit(cache=False, error_model="numpy", borrows=True)
def _paces(hot: Floats, n: int, pace_s: Floats) -> None:
    """Note the seconds per instruction of every neighbour."""
    for i in range(1, n):
        pace_s[i] = hot[CPI, i] / hot[FREQUENCY, i]


@njit(cache=False, error_model="numpy", borrows=True)
def _slow_down(n: int, rate: Floats, alone_s: Floats, pace_s: Floats) -> float:
    """Return the time of the neighbours' instructions without the service, over that which they take without it."""
    now = without = 0.0
    for i in range(1, n):
        now += rate[i] * pace_s[i]
        without += rate[i] * alone_s[i]
    return now / without if without > 0.0 else 1.0


@njit(cache=False, error_model="numpy")
def _row(host: ServedHost, wish: Wish, row: Floats) -> None:
    """Fill the states of 0, 1, .., k busy threads under a wish."""
    hot = host.domain.hot[0]
    rate, alone_s, pace_s = np.zeros(host.n), np.zeros(host.n), np.zeros(host.n)
    for busy in range(row.shape[0]):
        _settle(host, float(busy), 0.0, wish, row[busy])
        _paces(hot, host.n, pace_s)
        if busy == 0:
            alone_s[:] = pace_s
            for i in range(1, host.n):
                rate[i] = hot[USE, i] / alone_s[i]
            row[0, SPEED] = np.nan
        row[busy, SLOWDOWN] = _slow_down(host.n, rate, alone_s, pace_s)


@njit(cache=False, error_model="numpy")
def _alone_s(inputs: Inputs, domain: PowerDomain, conditions: OperatingConditions) -> float:
    """Return the seconds per instruction of one request alone on the machine at its all-core turbo."""
    platform, hot = inputs.platforms[conditions.platform], domain.hot[0].copy()
    alone = Residents(hot, domain.mark[0], 1)
    _behave(alone, inputs.core_cpi[conditions.platform], platform, conditions.access, inputs.phase[0])
    _guess(alone, conditions.contention, platform.max_hz)
    _divide_cache(alone, conditions.contention, platform.threads)
    hot[USE, 0], hot[FREQUENCY, 0] = 1.0, platform.max_hz
    latency_s = domain.latency_s[0].copy()
    solve(alone, conditions.contention, latency_s, domain.scratch)
    return float(hot[CPI, 0] / hot[FREQUENCY, 0])


@njit(cache=False, error_model="numpy")
def _fill(inputs: Inputs, outputs: Outputs, own: OwnPhysics, steps: SolvedSteps) -> float:
    """Fill a machine's states, step by step; return the seconds per instruction of one request alone."""
    times, offered, table = steps
    domain = _open(inputs, outputs, 0, own)
    n = inputs.stays.size
    for i in range(n):
        enter(domain.hot[0], domain.mark[0], i, inputs.stays[i], inputs)
    domain.residents[0] = n
    stalled, epoch, alone_s, state = np.zeros(n), 0, 0.0, np.zeros(COLUMNS)
    now, conditions = Wish(-1.0, stalled), _conditions(inputs, domain, 0, 0)
    for at in range(times.shape[0]):
        while epoch < times[at, 0]:
            epoch += 1
            conditions = _conditions(inputs, domain, 0, epoch)
            _wander(Residents(domain.hot[0], domain.mark[0], n), inputs.settings[0].rho, epoch)
        if at == 0:
            _give_places(inputs, domain, 0, conditions)
            alone_s = _alone_s(inputs, domain, conditions)
        host = ServedHost(inputs, domain, conditions, n, epoch, times[at, 1], alone_s, stalled)
        if offered.size > 0:
            _settle(host, float(domain.hot[0, QUOTA, 0]), offered[at], now, table[at, 0, 0])
        elif table.shape[1] == 1:
            _row(host, now, table[at, 0])
        else:
            for seen in range(table.shape[1]):
                _settle(host, float(seen), 0.0, now, state)
                _row(host, Wish(state[UTILISATION], stalled.copy()), table[at, seen])
    return alone_s


@njit(nogil=True, cache=True)
def _filled(inputs: Inputs, outputs: Outputs, own: OwnPhysics, steps: SolvedSteps) -> float:
    return float(_fill(inputs, outputs, own, steps))


@dataclass(frozen=True, slots=True, eq=False)
class MachineStates:
    """What a machine does in every state, step by step."""

    start_s: Floats
    """(steps,) when each begins."""
    states: Floats
    """(steps, m, k + 1, COLUMNS): by step, threads of the service that the governor saw, and threads that it has busy;
    one row for all that may be seen where the governor's wish depends on nothing."""
    look_s: float
    """From one look to the next; infinite where they change nothing."""
    alone_s: float
    """Seconds per instruction of one request alone, at speed 1."""
    neighbours: int

    @property
    def rates(self) -> ChangingRates:
        """The work per second of 1, 2, .., k busy threads."""
        speed = self.states[:, :, 1:, SPEED]
        return ChangingRates(speed * np.arange(1, speed.shape[2] + 1), self.start_s, self.look_s)


def machine_states(
    machine: ServingMachine, servers: int, seed: int, until_s: float, platforms: Sheets = SHIPPED_ALONE
) -> MachineStates:
    """Return what a machine does with 0, 1, .., k of its threads busy with requests, beside its neighbours.

    A later end adds steps and changes none.

    Parameters
    ----------
    machine : what is asked
    servers : k, at most its hardware threads
    seed : neighbours and their load follow from it
    until_s : end of the last step, or a little before it
    platforms : of somebody's own, by name, beside the shipped ones

    Raises
    ------
    ValueError
        If the servers do not fit the machine, or leave their neighbours no room.
    PartError
        If a governor or a mechanism of somebody's own does something wrong.

    Examples
    --------
    >>> states = machine_states(ServingMachine(neighbours=None), 2, 1, 60.0)
    >>> states.states.shape[:3], bool(states.states[0, 0, 1, SPEED] > 1.0)  # with one core active clocks are higher
    ((1, 1, 3), True)
    """
    world = world_of(machine, seed, until_s, platforms)
    inputs, (start_s, times) = _inputs(world, residents_of(world, machine, servers)), _times(world, machine)
    looks = machine.governor.policy != "performance"
    table = np.zeros((start_s.size, servers + 1 if looks else 1, servers + 1, COLUMNS))
    alone_s = _run(inputs, own_functions(world), SolvedSteps(times, np.empty(0), table))
    look_s = machine.steps.governor_s if looks else np.inf
    return MachineStates(start_s, table, look_s, alone_s, inputs.stays.size - 1)


def smooth_rates(
    machine: ServingMachine, servers: int, seed: int, offered: Floats, platforms: Sheets = SHIPPED_ALONE
) -> ChangingRates:
    """Return the work per second if requests were a smooth stream, with no more of them at one time than another.

    In every epoch the machine is solved with as many threads of the service busy as its requests take in the mean.

    Parameters
    ----------
    machine, servers, seed, platforms : as for `machine_states`
    offered : (epochs,) array, work that comes per second in each epoch of `EPOCH_S`
    """
    world = world_of(machine, seed, offered.size * EPOCH_S, platforms)
    inputs, (start_s, times) = _inputs(world, residents_of(world, machine, servers)), _times(world, machine)
    if machine.neighbours is None:
        start_s = np.arange(float(offered.size)) * EPOCH_S
        times = np.column_stack([np.arange(offered.size), np.zeros(offered.size, np.int64)])
    table = np.zeros((start_s.size, 1, 1, COLUMNS))
    work = np.maximum(offered, LEAST_BUSY)[times[:, 0]]
    _run(inputs, own_functions(world), SolvedSteps(times, work, table))
    return ChangingRates(table[:, :, 0, SPEED, None] * np.arange(1, servers + 1), start_s)


def _run(inputs: Inputs, own: OwnFunctions, steps: SolvedSteps) -> float:
    none, physics = np.empty((0, 0)), own.physics()
    outputs = Outputs(
        rows=np.empty((0, SUMS)),
        machine_rows=np.empty((0, 0, 2)),
        epoch_sums=np.zeros((1, 1, EPOCH_COLUMNS)),
        trace=none,
        machine_trace=np.empty((0, 0, 4)),
        visit_sums=np.empty((0, 0, 5)),
        visit_rows=np.empty((0, 0), np.int64),
        visit_power_w=np.empty(0),
        events=np.empty((1, 0, 3)),
        requests=stations_of(())[1],
    )
    arguments = inputs, outputs, physics, steps
    try:
        return with_functions(_filled, *arguments)(*arguments)
    except Exception as error:
        if (fault := own.fault(physics.call)) is None:
            raise
        raise fault from error


def world_of(machine: ServingMachine, seed: int, until_s: float, platforms: Sheets = SHIPPED_ALONE) -> World:
    """Return the fleet of this one machine."""
    epochs = max(1, int(np.ceil(until_s / EPOCH_S)))
    even = Conditions(*(0.0,) * 8, slow_memory_share=0.0)
    neighbours = machine.neighbours or Neighbours(0.0, 0.0)
    return World(
        seed=seed,
        horizon_s=epochs * EPOCH_S,
        epoch_s=EPOCH_S,
        fleet=Fleet(1, {machine.platform: 1.0}),
        population=Population(behaviour=Behaviour(utilisation=neighbours.utilisation)),
        interference=replace(machine.interference, tolerance=_TOLERANCE, max_iterations=_ITERATIONS),
        power=Power(machine.governor, machine.cap_share),
        conditions=even,
        steps=machine.steps if machine.neighbours is not None else replace(machine.steps, load_log_sd=0.0),
        simulation="events",
        platforms=platforms,
    )


def residents_of(world: World, machine: ServingMachine, servers: int) -> Jobs:
    """Return the service and its neighbours as jobs of one instance each."""
    threads = world.sheets[machine.platform].vcpus
    if servers > threads:
        raise InputError(f"{servers} servers on {machine.platform}, which has {threads} hardware threads")
    service = Service(
        _SERVICE,
        instances=1,
        quota_vcpu=float(servers),
        **asdict(machine.requests),
        utilisation=0.0,
        input_log_sd=0.0,
        instance_log_sd=0.0,
        job_log_sd=0.0,
    )
    fleet = replace(_UNIVERSE, platforms={machine.platform: 1.0})
    wsc = replace(world, fleet=fleet, population=replace(world.population, services=(service,)))
    jobs = build_jobs(wsc, build_machines(wsc))
    mine = jobs.names.index(_SERVICE)
    if machine.neighbours is None:
        return _taken(jobs, np.array([mine]), np.array([float(servers)]))
    room = machine.neighbours.allocated_share * threads - servers
    if room < 0.0:
        share = machine.neighbours.allocated_share
        raise InputError(f"{servers} servers leave no room within {share:g} of {threads} hardware threads")
    chance = np.where(np.arange(jobs.count) == mine, 0.0, jobs.instances)
    order = stream(world.seed, "neighbours of the servers").choice(
        jobs.count, size=min(jobs.count - 1, threads * 4), replace=False, p=chance / chance.sum()
    )
    upto = np.cumsum(jobs.instance_quota_vcpu[order])
    last = int(np.searchsorted(upto, room))  # the last one's quota is cut to what is left
    quota = np.diff(np.minimum(upto[: last + 1], room), prepend=0.0)
    here = quota > 0.0
    return _taken(jobs, np.append(mine, order[: last + 1][here]), np.append(float(servers), quota[here]))


def _taken(jobs: Jobs, which: Ints, quota_vcpu: Floats) -> Jobs:
    """Return some of the jobs, each with one instance of such a quota."""
    columns = {field.name: getattr(jobs, field.name)[which] for field in fields(jobs) if field.name != "names"}
    columns |= {"instances": np.ones(which.size, np.int64), "instance_quota_vcpu": quota_vcpu}
    return Jobs(names=tuple(jobs.names[i] for i in which), **columns)


def _times(world: World, machine: ServingMachine) -> tuple[Floats, Ints]:
    """Return when steps begin, at those of load and at epochs, and the epoch and step of load of each."""
    if machine.neighbours is None:
        return np.zeros(1), np.zeros((1, 2), np.int64)
    load_s, end_s = machine.steps.load_s, world.horizon_s
    epochs = np.arange(world.epochs) * EPOCH_S
    moves = np.arange(np.ceil(end_s / load_s)) * load_s if world.steps.load_log_sd > 0.0 else np.zeros(1)
    start_s = np.unique(np.concatenate([epochs, moves[moves < end_s]], dtype=np.float64))
    places = [np.searchsorted(times, start_s, side="right") - 1 for times in (epochs, moves)]
    return start_s, np.stack(places, axis=1, dtype=np.int64)


def _inputs(world: World, jobs: Jobs) -> Inputs:
    """Return what the kernel's parts read of the machine and its residents."""
    machines, residents = build_machines(world), jobs.count
    stays = np.zeros(residents, STAY)
    stays["job"] = stays["instance"] = np.arange(residents)
    stays["station"] = NOWHERE
    stays["end"], stays["end_s"], stays["soft_from"], stays["traced"] = world.epochs, np.inf, world.epochs, NO_TRACE
    even, platforms = np.ones((world.epochs, 1)), platform_table(world, machines)
    return Inputs(
        domain_start=np.array([0, 1]),
        stay_start=np.array([0, residents]),
        machines=machine_table(world, machines, np.array([world.epochs])),
        stays=stays,
        slots=residents,
        jobs=job_table(jobs),
        software=software_table(world, jobs),
        platforms=platforms,
        core_cpi=core_table(world, machines, jobs),
        governors=governor_table(world),
        window_of_epoch=np.full(world.epochs, -1),
        load=load(world, jobs),
        phase=np.ones((1, residents)),
        rack_access=even,
        rack_network=even,
        settings=settings_table(world),
        visit=np.empty((0, 0), np.int64),
        switched=np.empty((0, 0), np.bool_),
        stations=None,
        spell_start=np.zeros(2, np.int64),
        spells=np.zeros(0, SPELL),
        weight=np.ones((platforms.size, residents)),
    )
