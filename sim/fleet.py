"""A fleet's day: the world's arrays prepared once, then simulated under each arm of an experiment.

All arms share machines, jobs, placement, churn and every random draw; they differ only in which machines (or stays)
have the feature and from when. That is sound because placement looks at requests only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from models.jobs import REFERENCE_FREQUENCY_HZ, Jobs, build_jobs, miss_curve
from models.machines import Machines, build_machines
from models.platforms import PLATFORMS, SWITCHED_SHARE_OF_TDP
from models.randomness import key, stream
from models.scenario import Governor, World
from sim import kernel
from sim.control import Timeline, plan_day

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEVER = 2**40
"""Epoch from which a machine or stay that does not get the feature has it."""
MACHINES_IN_FLIGHT = 2560
"""Machines simulated at a time, in whole power domains: what memory is proportional to."""
FAST_S, SLOW_S, FAST_SHARE = 1800.0, 28800.0, 0.45
"""Time constants of common behaviour and the faster one's share of its variance: fitted to the autocorrelation of one
job of 20,000 tasks, 0.93, 0.71, 0.57, 0.42 and 0.25 at 5 min, 30 min, 1 h, 3 h and 6 h (Google cell, 2019)."""
POLICIES = {"performance": 0.0, "ondemand": 1.0, "stall_aware": 2.0}
PACE_MARGIN = 1.15
"""Pace at which a job's mean load is defined, relative to its pace alone on the reference machine."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Who has the feature: the epoch from which each machine has it, and each stay (for new code)."""

    machine_from: Ints
    stay_from: Ints


@dataclass(frozen=True, slots=True)
class Day:
    """Everything about a fleet's horizon that no arm changes."""

    world: World
    machines: Machines
    jobs: Jobs
    timeline: Timeline
    order: Ints
    """Stays that run at least one epoch, by machine and start."""
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

    @property
    def traced(self) -> NDArray[np.bool_]:
        """Which stays in `order` have every epoch recorded: those of a fixed random set of instances."""
        share = self.world.recording.instance_epoch_share
        instance = self.timeline.instance[self.order]
        chosen = stream(self.world.seed, "traced instances").random(int(self.timeline.instance.max(initial=0)) + 1)
        return np.asarray(chosen[instance] < share)


@dataclass(frozen=True, slots=True)
class Block:
    """What happened on consecutive machines: counter rows, machine windows, epoch sums of their domains, traces."""

    machines: slice
    stays: slice
    rows: Floats
    machine_rows: Floats
    epoch_sums: Floats
    trace: Floats
    machine_trace: Floats


def prepare(world: World) -> Day:
    """Return the day of a world: its machines, jobs, timeline and shared conditions.

    Raises
    ------
    ValueError
        If the jobs do not fit the machines.
    """
    machines = build_machines(world)
    jobs = build_jobs(world, machines)
    return day_of(world, machines, jobs, plan_day(world, machines, jobs))


def day_of(world: World, machines: Machines, jobs: Jobs, timeline: Timeline) -> Day:
    """Return the day in which `timeline` happens on `machines`."""
    runs = np.flatnonzero(timeline.end_epoch > timeline.start_epoch)
    order = runs[np.lexsort((runs, timeline.start_epoch[runs], timeline.machine[runs]))]
    machine_start = np.searchsorted(timeline.machine[order], np.arange(machines.count + 1))
    first, last = _windows_touched(world, timeline.start_epoch[order], timeline.end_epoch[order])
    row_start = np.concatenate([[0], np.cumsum(last - first)])
    row_window = np.arange(row_start[-1]) - np.repeat(row_start[:-1] - first, last - first)
    racks = int(machines.rack.max()) + 1
    access = world.conditions.rack_access_log_sd
    network = world.conditions.network_log_sd
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
        load=_load(world, jobs),
        phase=_wander(world, "phases of jobs", jobs.job_log_sd),
        rack_access=_wander(world, "accesses of racks", np.full(racks, access)),
        rack_network=_wander(world, "network of racks", np.full(racks, network)),
    )


def nowhere(day: Day) -> Arm:
    """Return the arm in which nothing has the feature."""
    return Arm(np.full(day.machines.count, NEVER), np.full(day.timeline.job.size, NEVER))


def everywhere(day: Day) -> Arm:
    """Return the arm in which everything has the feature from the first epoch on."""
    return Arm(np.zeros(day.machines.count, np.int64), np.full(day.timeline.job.size, -1))


def recorded(day: Day) -> Arm:
    """Return the arm of the scenario's own roll-out."""
    epoch_s, timeline = day.world.epoch_s, day.timeline
    return Arm(
        _from_epoch(timeline.feature_from_s, epoch_s),
        _from_epoch(timeline.instance_feature_from_s, epoch_s)[timeline.instance],
    )


def on_machines(day: Day, which: Ints) -> Arm:
    """Return the arm in which exactly these machines have the feature, all day."""
    arm = nowhere(day)
    arm.machine_from[which] = 0
    return arm


def on_instances(day: Day, which: Ints) -> Arm:
    """Return the arm in which exactly these instances run the new code, all day."""
    arm = nowhere(day)
    arm.stay_from[np.isin(day.timeline.instance, which)] = -1
    return arm


def run_arm(day: Day, arm: Arm, threads: int | None = None, around: Ints | None = None) -> Iterator[Block]:
    """Simulate one arm and yield its blocks in the order of machines.

    The numbers are the same for any number of threads and any cut into blocks.

    Parameters
    ----------
    day : from `prepare` or `day_of`
    arm : who has the feature
    threads : at most this many; the default is all
    around : machines; only the power domains that hold one of them are simulated, and each of those is a block
    """
    numba.set_num_threads(min(threads or numba.config.NUMBA_NUM_THREADS, numba.config.NUMBA_NUM_THREADS))
    parameters = _Parameters.of(day, arm)
    starts = np.flatnonzero(np.diff(day.machines.power_domain, prepend=-1))
    bounds = np.append(starts, day.machines.count)
    if around is not None:
        for at in np.unique(np.searchsorted(bounds, around, side="right") - 1):
            yield _run_block(day, parameters, bounds[at : at + 2])
        return
    per_block = max(1, MACHINES_IN_FLIGHT // max(1, int(np.diff(bounds).max())))
    for at in range(0, starts.size, per_block):
        yield _run_block(day, parameters, bounds[at : at + per_block + 1])


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The kernel's tables for one arm."""

    jobs: Floats
    platforms: Floats
    governors: Floats
    settings: Floats
    key: np.uint64
    machine_platform: Ints
    machine_governor: Ints
    machine_from: Ints
    conditions: Floats
    stay_from: Ints
    windows: Ints

    @staticmethod
    def of(day: Day, arm: Arm) -> "_Parameters":
        world, machines = day.world, day.machines
        names = list(machines.platform_names)
        after = [world.feature.platforms.get(name, name) for name in names] if world.feature else names
        names += [name for name in dict.fromkeys(after) if name not in names]
        becomes = np.array([names.index(name) for name in after])
        governor = world.power.governor
        changed = (world.feature.governor if world.feature else None) or governor
        return _Parameters(
            jobs=_job_table(day),
            platforms=np.array([_platform_row(world, name) for name in names]),
            governors=np.array([_governor_row(governor), _governor_row(changed)]),
            settings=_settings(world),
            key=np.uint64(key(f"behaviour {world.seed}")),
            machine_platform=np.column_stack([machines.platform, becomes[machines.platform]]),
            machine_governor=np.tile(np.array([0, 1]), (machines.count, 1)),
            machine_from=arm.machine_from,
            conditions=np.column_stack([machines.latency_factor, machines.bandwidth_factor, machines.power_factor]),
            stay_from=arm.stay_from,
            windows=window_of_epoch(world),
        )


def _run_block(day: Day, parameters: _Parameters, domains: Ints) -> Block:
    first, last = int(domains[0]), int(domains[-1])
    stays = slice(int(day.machine_start[first]), int(day.machine_start[last]))
    rows = np.zeros((int(day.row_start[stays.stop] - day.row_start[stays.start]), kernel.SUMS))
    world, counts = day.world, last - first
    table, traced_epochs = _stay_table(day, parameters, stays)
    machine_rows = np.zeros((counts, len(world.windows), 2))
    epoch_sums = np.zeros((domains.size - 1, world.epochs, kernel.EPOCH_COLUMNS))
    trace = np.zeros((traced_epochs, 4))
    machine_trace = np.zeros((counts if world.recording.machine_epochs else 0, world.epochs, 4))
    kernel.simulate(
        domains - first, day.machine_start[first : last + 1] - stays.start, table, parameters.jobs,
        parameters.platforms, parameters.governors, parameters.settings, parameters.key,
        parameters.machine_platform[first:last], parameters.machine_governor[first:last],
        parameters.machine_from[first:last], parameters.conditions[first:last], day.machines.rack[first:last],
        first, parameters.windows, day.load, day.phase, day.rack_access, day.rack_network,
        day.slots, rows, machine_rows, epoch_sums, trace, machine_trace, world.recording.machine_epochs,
    )  # fmt: skip
    return Block(slice(first, last), stays, rows, machine_rows, epoch_sums, trace, machine_trace)


def _stay_table(day: Day, parameters: _Parameters, stays: slice) -> tuple[Ints, int]:
    which, timeline = day.order[stays], day.timeline
    start, end = timeline.start_epoch[which], timeline.end_epoch[which]
    table = np.empty((which.size, 8), np.int64)
    table[:, kernel.T_JOB], table[:, kernel.T_SHARD] = timeline.job[which], timeline.shard[which]
    table[:, kernel.T_START], table[:, kernel.T_END] = start, end
    table[:, kernel.T_SOFT], table[:, kernel.T_INSTANCE] = parameters.stay_from[which], timeline.instance[which]
    first_window, _ = _windows_touched(day.world, start, end)
    table[:, kernel.T_ROW] = day.row_start[:-1][stays] - day.row_start[stays.start] - first_window
    length = np.where(day.traced[stays], end - start, 0)
    offset = np.cumsum(length) - length
    table[:, kernel.T_TRACE] = np.where(length > 0, offset - start, kernel.NO_TRACE)
    return table, int(length.sum())


def window_of_epoch(world: World) -> Ints:
    """Return the window in which each epoch counts, −1 for none.

    Examples
    --------
    >>> window_of_epoch(World(horizon_s=900.0, epoch_s=300.0))
    array([0, 0, 0])
    """
    windows = np.full(world.epochs, -1)
    for i, window in enumerate(world.windows):
        windows[round(window.start_s / world.epoch_s) : round(window.end_s / world.epoch_s)] = i
    return windows


def _windows_touched(world: World, start: Ints, end: Ints) -> tuple[Ints, Ints]:
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


def _from_epoch(time_s: Floats, epoch_s: float) -> Ints:
    return np.where(np.isnan(time_s), NEVER, np.ceil(np.nan_to_num(time_s) / epoch_s)).astype(np.int64)


def _wander(world: World, name: str, log_sd: Floats) -> Floats:
    """Return (epochs, n) factors of mean 1 whose logarithm has two time constants."""
    rng = stream(world.seed, name)
    total = np.zeros((world.epochs, log_sd.size))
    for time_s, share in ((FAST_S, FAST_SHARE), (SLOW_S, 1 - FAST_SHARE)):
        rho = np.exp(-world.epoch_s / time_s)
        now = rng.standard_normal(log_sd.size)
        for epoch in range(world.epochs):
            total[epoch] += np.sqrt(share) * now
            now = rho * now + np.sqrt(1 - rho**2) * rng.standard_normal(log_sd.size)
    return np.asarray(np.exp(log_sd * total - 0.5 * log_sd**2))


def _load(world: World, jobs: Jobs) -> Floats:
    hour = np.arange(world.epochs)[:, None] * (world.epoch_s / 3600.0)
    return np.asarray(1.0 + jobs.diurnal_amplitude * np.cos((hour - jobs.peak_hour) * (2 * np.pi / 24.0)))


def _settings(world: World) -> Floats:
    physics, settings = world.interference, np.zeros(9)
    settings[kernel.S_EPOCH_S] = world.epoch_s
    settings[kernel.S_LLC] = physics.llc
    settings[kernel.S_BANDWIDTH] = physics.bandwidth
    settings[kernel.S_SMT] = physics.smt
    settings[kernel.S_TOLERANCE] = physics.tolerance
    settings[kernel.S_ITERATIONS] = physics.max_iterations
    settings[kernel.S_BUDGET] = world.power.domain_budget_share
    settings[kernel.S_RHO] = np.exp(-world.epoch_s / FAST_S)
    settings[kernel.S_MACHINE_SD] = world.conditions.machine_access_log_sd
    return settings


def _platform_row(world: World, name: str) -> list[float]:
    sheet = PLATFORMS[name]
    dynamic_w = SWITCHED_SHARE_OF_TDP * sheet.tdp_w
    return [
        sheet.cores, sheet.vcpus, sheet.min_frequency_hz, sheet.max_frequency_hz, sheet.frequency_step_hz,
        sheet.base_frequency_hz, sheet.llc_bytes, sheet.memory_latency_s, sheet.memory_bandwidth_bytes_per_s,
        sheet.idle_power_w, dynamic_w, sheet.core_cpi_factor, world.power.cap_share * sheet.peak_power_w,
    ]  # fmt: skip


def _governor_row(governor: Governor) -> list[float]:
    return [
        POLICIES[governor.policy],
        governor.ondemand_threshold,
        governor.stall_threshold,
        governor.step_down_hz,
    ]


def _job_table(day: Day) -> Floats:
    jobs = day.jobs
    curve = miss_curve(jobs.memory_accesses_per_instruction, jobs.working_set_bytes, jobs.streaming_share)
    table = np.ones((jobs.count, kernel.JOB_COLUMNS))
    columns = {
        kernel.J_CORE: jobs.core_cpi,
        kernel.J_FLOOR: curve.floor,
        kernel.J_GAIN1: curve.gain_1,
        kernel.J_SET1: curve.set_1,
        kernel.J_GAIN2: curve.gain_2,
        kernel.J_SET2: curve.set_2,
        kernel.J_OVERLAP: jobs.overlap,
        kernel.J_SMT: jobs.smt_slowdown,
        kernel.J_BUSY: jobs.utilisation * jobs.instance_quota_vcpu,
        kernel.J_ELASTIC: jobs.open_load,
        kernel.J_PACE: PACE_MARGIN * jobs.reference_cpi / REFERENCE_FREQUENCY_HZ,
        kernel.J_INSTR: jobs.instructions_per_request,
        kernel.J_SPIN: jobs.spin_share,
        kernel.J_NETWORK: jobs.network_s_per_request,
        kernel.J_QUOTA: jobs.instance_quota_vcpu,
        kernel.J_INPUT_SD: jobs.input_log_sd,
        kernel.J_INSTANCE_SD: jobs.instance_log_sd,
    }
    for column, values in columns.items():
        table[:, column] = values
    for software in day.world.feature.software if day.world.feature else ():
        chosen = np.isin(jobs.names, software.jobs)
        table[chosen, kernel.J_SOFT_INSTR] *= software.instructions_factor
        table[chosen, kernel.J_SOFT_CORE] *= software.core_cpi_factor
        table[chosen, kernel.J_SOFT_ACCESS] *= software.memory_accesses_factor
        table[chosen, kernel.J_SOFT_NETWORK] *= software.network_factor
    return table
