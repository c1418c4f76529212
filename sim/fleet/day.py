"""A fleet's day: the arrays of its world, prepared once for all arms, and the tables that the kernel reads of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from models.arrays import Bools, Floats, Ints
from models.code.parts import is_part
from models.errors import InputError
from models.fleet.inventory import REFERENCE_FREQUENCY_HZ, Jobs, Machines, build_jobs, build_machines
from models.fleet.processors import LONE_THREAD, Processor, peak_power_w, processor
from models.fleet.world import Governor, World
from models.platforms import Platform
from models.randomness import key, stream
from sim.fleet import slots
from sim.fleet.control import plan_day
from sim.fleet.draws import OF_LOAD, OWN, mix, noises
from sim.fleet.incidents import job_shifts, levels, machine_spells
from sim.fleet.layout import GOVERNOR, MACHINE, OWN_POLICY, PLATFORM, POLICIES, SETTINGS, SHIFT, SPELL, Records
from sim.fleet.stations import StationLoad
from sim.fleet.timeline import Timeline

RequestSource = Callable[[int], StationLoad]
"""Draws the requests of a stay, by its number."""


@dataclass(frozen=True, slots=True)
class Day:
    """Everything about a fleet's horizon that no arm changes.

    `load`, `phase` are (epochs, jobs) factors, `rack_access`, `rack_network` (epochs, racks), `followed` (jobs,) masks.
    """

    world: World
    machines: Machines
    jobs: Jobs
    timeline: Timeline
    order: Ints
    """Stays that run at least one epoch (on the event-driven machine: at all), by machine and start."""
    machine_start: Ints
    row_start: Ints
    """First counter row of each stay in `order`, and the number of rows."""
    row_window: Ints
    """Window of each counter row."""
    slots: int
    load: Floats
    phase: Floats
    rack_access: Floats
    rack_network: Floats
    followed: Bools | None = None
    requests: RequestSource | None = None
    """What stays of the jobs `followed` serve one by one on the event-driven machine; None: nobody does."""
    spells: Records = field(default_factory=lambda: np.zeros(0, SPELL))
    """Incidents of machines, of `sim.fleet.layout.SPELL`, by machine."""
    shifts: Records = field(default_factory=lambda: np.zeros(0, SHIFT))
    """Regime shifts of jobs, of `sim.fleet.layout.SHIFT`, by job; they are part of `phase`."""

    def present_s(self, stay: Ints, opens: Ints, closes: Ints) -> Floats:
        """Return for how much of some periods, from one epoch to before another, stays run, in seconds."""
        timeline, epoch_s = self.timeline, self.world.epoch_s
        if self.world.simulation == "epochs":
            present = np.minimum(timeline.end_epoch[stay], closes) - np.maximum(timeline.start_epoch[stay], opens)
            return np.asarray(present * epoch_s)
        start_s, end_s = timeline.start_s[stay], timeline.end_s[stay]
        return np.asarray(np.minimum(end_s, closes * epoch_s) - np.maximum(start_s, opens * epoch_s))

    def serving(self, stays: slice) -> Ints:
        """Return the places in `order`, within a slice of it, of stays whose requests are served one by one."""
        if self.requests is None or self.followed is None:
            return np.empty(0, np.int64)
        return np.asarray(np.flatnonzero(self.followed[self.timeline.job[self.order[stays]]]) + stays.start)

    @property
    def traced(self) -> Bools:
        """Which stays in `order` have every epoch recorded: a fixed random set of instances, all `followed` jobs."""
        chosen = stream(self.world.seed, "traced instances").random(int(self.timeline.instance.max(initial=0)) + 1)
        drawn = chosen[self.timeline.instance[self.order]] < self.world.recording.instance_epoch_share
        followed = False if self.followed is None else self.followed[self.timeline.job[self.order]]
        return np.asarray(drawn | followed)


def prepare(world: World) -> Day:
    """Return the day of a world: its machines, jobs, timeline and shared conditions.

    Raises
    ------
    ValueError
        If the jobs do not fit the machines, or two counting windows overlap.
    """
    machines = build_machines(world)
    jobs = build_jobs(world, machines)
    return day_of(world, machines, jobs, plan_day(world, machines, jobs))


def day_of(world: World, machines: Machines, jobs: Jobs, timeline: Timeline) -> Day:
    """Return the day in which `timeline` happens on `machines`.

    Parameters
    ----------
    world : seed, horizon, epoch, windows and conditions
    machines, jobs : numbered as in the timeline
    timeline : who runs where and when

    Raises
    ------
    ValueError
        If two counting windows overlap.
    """
    _refuse_overlap(world)
    by_events = world.simulation == "events"
    timeline = _touching(world, timeline) if by_events else timeline
    runs = np.flatnonzero(timeline.end_epoch > timeline.start_epoch)
    start = (timeline.start_s if by_events else timeline.start_epoch)[runs]
    order = runs[np.lexsort((runs, start, timeline.machine[runs]))]
    machine_start = np.searchsorted(timeline.machine[order], np.arange(machines.count + 1))
    first, last = windows_touched(world, timeline.start_epoch[order], timeline.end_epoch[order])
    row_start = np.concatenate([[0], np.cumsum(last - first)])
    row_window = np.arange(row_start[-1]) - np.repeat(row_start[:-1] - first, last - first)
    racks = int(machines.rack.max()) + 1
    access, network = world.conditions.rack_access_log_sd, world.conditions.network_log_sd
    phase, spells, shifts = wander(world, "phases of jobs", jobs.job_log_sd), np.zeros(0, SPELL), np.zeros(0, SHIFT)
    if world.incidents.happen:
        spells, shifts = machine_spells(world, machines.count), job_shifts(world, jobs.count)
        phase *= levels(shifts, world.epochs, jobs.count)
    return Day(
        world=world,
        machines=machines,
        jobs=jobs,
        timeline=timeline,
        order=order,
        machine_start=machine_start,
        row_start=row_start,
        row_window=row_window,
        slots=_most_residents(timeline, order),
        load=load(world, jobs),
        phase=phase,
        rack_access=wander(world, "accesses of racks", np.full(racks, access)),
        rack_network=wander(world, "network of racks", np.full(racks, network)),
        spells=spells,
        shifts=shifts,
    )


def _touching(world: World, timeline: Timeline) -> Timeline:
    """Return the timeline with the epochs that stays reach into, instead of those that begin during them."""
    boundary_s = np.arange(world.epochs + 1) * np.float64(world.epoch_s)
    start = np.searchsorted(boundary_s, timeline.start_s, side="right") - 1
    end = np.minimum(np.searchsorted(boundary_s, timeline.end_s), world.epochs)
    return replace(timeline, start_epoch=start, end_epoch=np.where(timeline.end_s > timeline.start_s, end, start))


def window_of_epoch(world: World) -> Ints:
    """Return the window in which each epoch counts, −1 for none."""
    windows = np.full(world.epochs, -1)
    for i, window in enumerate(world.windows):
        windows[round(window.start_s / world.epoch_s) : round(window.end_s / world.epoch_s)] = i
    return windows


def _refuse_overlap(world: World) -> None:
    for before, after in pairwise(world.windows):
        if after.start_s < before.end_s:
            raise InputError(
                f"window {after.name} starts at {after.start_s:g} s, before {before.name} ends at {before.end_s:g} s"
            )


def windows_touched(world: World, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return the first window that stays reach into, by their epochs, and the first after them that they do not."""
    opens = np.array([round(window.start_s / world.epoch_s) for window in world.windows])
    closes = np.array([round(window.end_s / world.epoch_s) for window in world.windows])
    first = np.searchsorted(closes, start, side="right")
    return first, np.maximum(first, np.searchsorted(opens, end, side="left"))


def _most_residents(timeline: Timeline, order: Ints) -> int:
    machine = np.concatenate([timeline.machine[order]] * 2)
    epoch = np.concatenate([timeline.end_epoch[order], timeline.start_epoch[order]])
    change = np.repeat([-1, 1], order.size)
    sort = np.lexsort((change, epoch, machine))
    return int(np.cumsum(change[sort]).max(initial=1))


FAST_S, SLOW_S, FAST_SHARE = 1800.0, 28800.0, 0.45
"""Time constants of common behaviour and the faster one's share of its variance: fitted to the autocorrelation of one
job of 20,000 tasks, 0.93, 0.71, 0.57, 0.42 and 0.25 at 5 min, 30 min, 1 h, 3 h and 6 h (Google cell, 2019)."""
PACE_MARGIN = 1.15
"""Pace at which a job's mean load is defined, relative to its pace alone on the reference machine."""


def wander(world: World, name: str, log_sd: Floats) -> Floats:
    """Return factors of mean 1 whose logarithm has two time constants, `FAST_S` and `SLOW_S` times the world's factor.

    Column k draws from its own part of the stream: more columns change none before them.

    Parameters
    ----------
    world : seed, horizon, epoch and factor on the time constants
    name : of the random stream
    log_sd : (n,) array, standard deviation of the natural logarithm

    Returns
    -------
    (epochs, n) array, dimensionless
    """
    draws = stream(world.seed, name).standard_normal((log_sd.size, 2, world.epochs))
    total = np.zeros((world.epochs, log_sd.size))
    for part, (time_s, share) in enumerate(((FAST_S, FAST_SHARE), (SLOW_S, 1 - FAST_SHARE))):
        rho = np.exp(-world.epoch_s / (time_s * world.population.behaviour.wander_time_factor))
        now = draws[:, part, 0]
        for epoch in range(world.epochs):
            if epoch > 0:
                now = rho * now + np.sqrt(1 - rho**2) * draws[:, part, epoch]
            total[epoch] += np.sqrt(share) * now
    return np.asarray(np.exp(log_sd * total - 0.5 * log_sd**2))


def load_steps(world: World, instance: int, steps: Ints) -> Floats:
    """Return by which factor an instance's load departs from that of the epoch in steps that follow one another.

    The event-driven machine draws the same: nearly lognormal, of mean 1.

    Parameters
    ----------
    world : seed and steps
    instance : its number
    steps : (n,) array, numbers of steps, each one more than that before
    """
    log_sd = world.steps.load_log_sd
    if log_sd == 0.0 or not steps.size:
        return np.ones(steps.size)
    half = 0.5 * np.sqrt(3.0) * log_sd
    scale = (half / np.sinh(half)) ** 4
    own = int(mix(np.uint64(key(f"behaviour {world.seed}")) ^ OWN)) + instance
    own_key = mix(np.uint64(mix(np.uint64(own % 2**64))) ^ OF_LOAD)
    drawn = noises(np.uint64(own_key), int(steps[0]), int(steps[-1]) + 1)
    return np.asarray(scale * np.exp(log_sd * drawn))


def own_autocorrelation(world: World, lag_s: float) -> float:
    """Return the autocorrelation over a lag of what instances and machines do of their own: an exponential decay.

    Parameters
    ----------
    world : factor on the time constant `FAST_S`
    lag_s : seconds, at least 0
    """
    return float(np.exp(-lag_s / (FAST_S * world.population.behaviour.wander_time_factor)))


def load(world: World, jobs: Jobs) -> Floats:
    """Return the load of each job relative to its mean: a cosine over the day, higher on some days than on others.

    Parameters
    ----------
    world : seed, horizon, epoch and the spread of days
    jobs : half-amplitudes and peak hours, and which jobs serve requests: only their days differ

    Returns
    -------
    (epochs, J) array, dimensionless
    """
    hour = np.arange(world.epochs)[:, None] * (world.epoch_s / 3600.0)
    over_the_day = 1.0 + jobs.diurnal_amplitude * np.cos((hour - jobs.peak_hour) * (2 * np.pi / 24.0))
    log_sd = world.population.behaviour.day_load_log_sd
    day = (hour[:, 0] // 24.0).astype(np.int64)
    draws = stream(world.seed, "load of days").standard_normal((day[-1] + 1, jobs.count))
    of_days = np.where(jobs.latency_critical, np.exp(log_sd * draws - 0.5 * log_sd**2), 1.0)
    return np.asarray(over_the_day * of_days[day])


def settings_table(world: World) -> Records:
    """Return the switches and constants of a world.

    Returns
    -------
    (1,) array of `sim.fleet.layout.SETTINGS`

    Examples
    --------
    >>> settings_table(World(epoch_s=60.0))["epoch_s"]
    array([60.])
    """
    table, physics = np.zeros(1, SETTINGS), world.interference
    table["key"] = key(f"behaviour {world.seed}")
    table["epoch_s"] = world.epoch_s
    table["llc"], table["bandwidth"], table["smt"] = physics.llc, physics.bandwidth, physics.smt
    table["sibling_relief"], table["remote_share"] = physics.sibling_relief, physics.remote_share
    table["tolerance"], table["iterations"] = physics.tolerance, physics.max_iterations
    table["budget_share"] = world.power.domain_budget_share
    table["rho"] = own_autocorrelation(world, world.epoch_s)
    table["machine_sd"] = world.conditions.machine_access_log_sd
    steps = world.steps
    table["load_s"], table["load_log_sd"] = steps.load_s if steps.load_log_sd > 0.0 else np.inf, steps.load_log_sd
    table["governor_s"] = steps.governor_s
    table["overcommit"] = world.fleet.overcommit
    table["best_effort_ways"], table["best_effort_delay"] = physics.best_effort_ways, physics.best_effort_delay
    return table


def machine_table(world: World, machines: Machines, feature_from: Ints) -> Records:
    """Return what the kernel knows of each machine.

    Parameters
    ----------
    world : platforms and feature
    machines : the M machines
    feature_from : (M,) array, the epoch from which each has the feature

    Returns
    -------
    (M,) array of `sim.fleet.layout.MACHINE`; its platforms are rows of `platform_table`, before and after the feature
    """
    names, after = _platforms(world, machines)
    becomes = np.array([names.index(name) for name in after])
    table = np.zeros(machines.count, MACHINE)
    table["number"], table["rack"] = np.arange(machines.count), machines.rack
    table["platform"] = np.column_stack([machines.platform, becomes[machines.platform]])
    table["governor"] = 0, 1
    table["feature_from"] = feature_from
    table["latency_factor"] = machines.latency_factor
    table["bandwidth_factor"] = machines.bandwidth_factor
    table["power_factor"] = machines.power_factor
    return table


def platform_table(world: World, machines: Machines) -> Records:
    """Return the platforms of the fleet and those that the feature puts in their place.

    Parameters
    ----------
    world : power cap and feature
    machines : the fleet

    Returns
    -------
    (P,) array of `sim.fleet.layout.PLATFORM`, each platform once
    """
    return np.array([_platform_row(world, name) for name in _platforms(world, machines)[0]], PLATFORM)


def governor_table(world: World) -> Records:
    """Return the governors before and after the feature.

    Returns
    -------
    (2,) array of `sim.fleet.layout.GOVERNOR`

    Examples
    --------
    >>> from models.fleet.world import Feature
    >>> governor_table(World(feature=Feature("calm", governor=Governor("stall_aware"))))["policy"]
    array([0, 2])
    """
    before = world.power.governor
    after = (world.feature.governor if world.feature else None) or before
    return np.array([_governor_row(before), _governor_row(after)], GOVERNOR)


def _platforms(world: World, machines: Machines) -> tuple[list[str], list[str]]:
    """Return the names of all platforms, and what becomes of those before the feature."""
    before = machines.platform_names
    after = [world.feature.platforms.get(name, name) for name in before] if world.feature else list(before)
    return list(dict.fromkeys([*before, *after])), after


def _platform_row(world: World, name: str) -> tuple[float, ...]:
    sheet, its = world.machines[name], processor(name, world.platforms)
    peak_w = peak_power_w(sheet, its.shares)
    overlap = its.overlap_factor if world.interference.windows else 1.0
    return (
        sheet.cores, sheet.vcpus, sheet.sockets, sheet.min_frequency_hz, sheet.max_frequency_hz,
        sheet.frequency_step_hz, sheet.llc_bytes, sheet.memory_latency_s,
        sheet.memory_bandwidth_bytes_per_s,
        its.attainable, sheet.idle_power_w,
        *_division(world, sheet, its), *_watts(world, sheet, its), peak_w, overlap, 1.0 / its.width,
        world.power.cap_share * peak_w,
    )  # fmt: skip


def _watts(world: World, sheet: Platform, its: Processor) -> tuple[float, ...]:
    """Return what a platform's processors draw, in the order of `PLATFORM`."""
    lone = LONE_THREAD if sheet.threads_per_core > 1 else 1.0
    watts = sheet.tdp_w, *(share * sheet.tdp_w for share in its.shares)
    single_hz = max(sheet.max_frequency_hz, its.single_core_hz if world.power.turbo else 0.0)
    return *watts, lone, single_hz, its.memory_j_per_byte


def _division(world: World, sheet: Platform, its: Processor) -> tuple[int, int, float, float]:
    """Return how many last-level caches and memories a platform has, and other nodes' latency and bandwidth."""
    if not world.interference.sockets:
        return 1, 1, 1.0, 1.0
    last, nodes = sheet.caches[-1], its.memory_nodes(sheet.sockets)
    slices = sheet.sockets * -(-(sheet.cores // sheet.sockets) // last.cores)
    return -(-slices // nodes.count) * nodes.count, nodes.count, nodes.latency_ratio, nodes.bandwidth_ratio


def core_table(world: World, machines: Machines, jobs: Jobs) -> Floats:
    """Return the core CPI of each job on each platform relative to the reference core.

    Parameters
    ----------
    world, machines : whose platforms, those of the feature included
    jobs : the J jobs

    Returns
    -------
    (P, J) array, rows as in `platform_table`; the mean over programs is what the sheet says
    """
    rows = []
    for name in _platforms(world, machines)[0]:
        loadings = np.array(processor(name, world.platforms).loadings)
        spread = world.population.behaviour.core_trait_sd * loadings
        factor = np.exp(jobs.core_traits @ loadings - 0.5 * (spread @ spread))
        rows.append(world.machines[name].core_cpi_factor * factor)
    return np.array(rows)


def _governor_row(governor: Governor) -> tuple[float, ...]:
    policy = OWN_POLICY if is_part(governor.policy) else POLICIES.index(governor.policy)
    return policy, governor.ondemand_threshold, governor.stall_threshold, governor.step_down_hz


def job_table(jobs: Jobs) -> Floats:
    """Return each job's traits and spread between shards.

    Returns
    -------
    (J, TRAITS + 1) array in the columns of `sim.fleet.slots`, in seconds, hardware threads and dimensionless numbers
    """
    curve = jobs.curve
    columns = {
        slots.CORE: jobs.core_cpi,
        slots.FLOOR: curve.floor,
        slots.GAIN1: curve.gain_1,
        slots.SET1: curve.set_1,
        slots.GAIN2: curve.gain_2,
        slots.SET2: curve.set_2,
        slots.STALL: 1.0 / jobs.overlap,
        slots.SMT: jobs.smt_slowdown,
        slots.BUSY: jobs.utilisation * jobs.instance_quota_vcpu,
        slots.ELASTIC: jobs.open_load,
        slots.PACE: PACE_MARGIN * jobs.reference_cpi / REFERENCE_FREQUENCY_HZ,
        slots.INSTR: jobs.instructions_per_request,
        slots.SPIN: jobs.spin_share,
        slots.NETWORK: jobs.network_s_per_request,
        slots.QUOTA: jobs.instance_quota_vcpu,
        slots.NOISE_SD: jobs.instance_log_sd,
        slots.AHEAD: jobs.prefetched_share * curve.floor,
        slots.CRITICAL: jobs.latency_critical,
        slots.INPUT_SD: jobs.input_log_sd,
    }
    return np.ascontiguousarray(np.column_stack([columns[i] for i in range(len(columns))]), np.float64)


def software_table(world: World, jobs: Jobs) -> Floats:
    """Return by what factor new code changes each trait of each job.

    Parameters
    ----------
    world : its feature says which jobs have new code
    jobs : the J jobs

    Returns
    -------
    (J, TRAITS) array in the columns of `sim.fleet.slots`, dimensionless; 1 where nothing changes

    Examples
    --------
    >>> from models.fleet.inventory import build_jobs, build_machines
    >>> from models.fleet.world import Feature, Fleet, Population, Service, Software
    >>> population = Population(60, 50, services=(Service("shop", 8, 4.0, 0.8, 0.01),))
    >>> feature = Feature("build", software=(Software(("shop",), instructions_factor=0.9),))
    >>> world = World(3, 900.0, 300.0, Fleet(20), population, feature=feature)
    >>> jobs = build_jobs(world, build_machines(world))
    >>> table = software_table(world, jobs)
    >>> float(table[jobs.names.index("shop"), slots.INSTR]), int((table != 1).sum())
    (0.9, 1)
    """
    table = np.ones((jobs.count, slots.TRAITS))
    for software in world.feature.software if world.feature else ():
        chosen = np.isin(jobs.names, software.jobs)
        table[chosen, slots.INSTR] *= software.instructions_factor
        table[chosen, slots.CORE] *= software.core_cpi_factor
        for part in (slots.FLOOR, slots.GAIN1, slots.GAIN2, slots.AHEAD):
            table[chosen, part] *= software.memory_accesses_factor
        table[chosen, slots.NETWORK] *= software.network_factor
    return table
