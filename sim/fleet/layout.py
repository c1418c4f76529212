"""The arrays that the epoch kernel reads and fills: records and tables, their fields, shapes and units."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.arrays import Bools, Floats, Ints
from models.code.formulas import NumberFunction
from models.queues.layout import Cores, Heap, Pace

Records = NDArray[np.void]

STAY = np.dtype(
    [
        ("job", np.int64),
        ("shard", np.int64),
        ("instance", np.int64),
        ("start", np.int64),  # first epoch
        ("end", np.int64),  # first epoch after
        ("start_s", np.float64),
        ("end_s", np.float64),
        ("soft_from", np.int64),  # epoch from which it runs new code
        ("row", np.int64),  # first counter row minus first window
        ("traced", np.int64),  # first trace row minus first epoch, or `slots.NO_TRACE`
        ("station", np.int64),  # among those of the block, or `slots.NOWHERE`
    ]
)
PLATFORM = np.dtype(
    [
        ("cores", np.float64),
        ("threads", np.float64),
        ("sockets", np.float64),
        ("min_hz", np.float64),
        ("max_hz", np.float64),
        ("step_hz", np.float64),
        ("llc_bytes", np.float64),
        ("latency_s", np.float64),
        ("bandwidth", np.float64),  # bytes per second
        ("attainable", np.float64),  # share of it
        ("idle_w", np.float64),
        ("slices", np.int64),  # last-level caches
        ("nodes", np.int64),  # memories, each with as many of them
        ("remote_latency", np.float64),  # of another node's memory over one's own
        ("remote_bandwidth", np.float64),  # of a node's links over that of its memory
        ("tdp_w", np.float64),
        ("asleep_w", np.float64),  # of processors in deep sleep
        ("awake_w", np.float64),  # more when any core is awake
        ("core_w", np.float64),  # more when all threads compute at the all-core turbo
        ("lone_thread", np.float64),  # power of a core with one busy thread, all threads busy: 1
        ("single_hz", np.float64),  # clock with two cores active
        ("memory_j_per_byte", np.float64),
        ("peak_w", np.float64),  # of the machine
        ("overlap", np.float64),  # misses at once relative to those of the jobs
        ("least_cpi", np.float64),  # cycles per instruction of a thread alone on its core, at least
        ("limit_w", np.float64),  # power cap
    ]
)
STATION = np.dtype(  # of a stay whose requests are served one by one
    [
        ("servers", np.int64),  # hardware threads
        ("core", np.int64),  # the first of them, among those of all stations
        ("policy", np.int64),  # code in `models.queues.policies`
        ("sharing", np.int64),  # who shares the servers, and how
        ("preemptive", np.bool_),
        ("quantum_s", np.float64),  # inf: nobody is served in slices
        ("capacity", np.int64),  # most requests that it holds, waiting or in service; 0: no limit
        ("first", np.int64),  # its requests
        ("last", np.int64),
        ("busy", np.int64),  # servers that work
        ("next_s", np.float64),  # when a request comes or leaves, or service changes hands, next
        ("speed", np.float64),  # work of a server a second
    ]
)
REQUEST = np.dtype(
    [
        ("arrival_s", np.float64),  # increasing within a station
        ("work", np.float64),  # relative to the mean request of the job
        ("departure_s", np.float64),  # NaN before, and if the stay ends first; `REFUSED_S`: it was turned away
        ("priority", np.int64),  # its class, 0 first
        ("choice", np.float64),  # draws in [0, 1), of whom a server takes
    ]
)
REFUSED_S = -np.inf
"""In place of the departure of a request that came to a full station."""
POLICIES = ("performance", "ondemand", "stall_aware")
OWN_POLICY = -1
"""Stands for a governor of somebody's own."""
GOVERNOR = np.dtype(
    [
        ("policy", np.int64),  # index into POLICIES, or OWN_POLICY
        ("ondemand_threshold", np.float64),
        ("stall_threshold", np.float64),
        ("step_down_hz", np.float64),
    ]
)
MACHINE = np.dtype(
    [
        ("number", np.int64),  # in the fleet; its noise belongs to it
        ("rack", np.int64),
        ("platform", np.int64, 2),  # rows of the tables before and after the feature
        ("governor", np.int64, 2),
        ("feature_from", np.int64),  # epoch
        ("latency_factor", np.float64),
        ("bandwidth_factor", np.float64),
        ("power_factor", np.float64),
    ]
)
RESOURCES = ("memory", "clock")
"""What an incident slows; `SPELL` holds the index."""
SPELL = np.dtype(  # an incident of a machine
    [
        ("machine", np.int64),
        ("resource", np.int64),  # index into RESOURCES
        ("start", np.int64),  # first epoch
        ("end", np.int64),  # first epoch after
        ("factor", np.float64),  # memory latency longer, or the highest clock lower
    ]
)
SHIFT = np.dtype(  # of a job's level
    [
        ("job", np.int64),
        ("epoch", np.int64),  # the first at the new level
        ("factor", np.float64),  # core CPI and memory accesses relative to before
    ]
)
SETTINGS = np.dtype(  # switches and constants of the world
    [
        ("key", np.uint64),  # of all noise
        ("epoch_s", np.float64),
        ("llc", np.bool_),
        ("bandwidth", np.bool_),
        ("smt", np.bool_),
        ("sibling_relief", np.float64),
        ("remote_share", np.float64),  # mean over stays where a machine has several memories
        ("tolerance", np.float64),
        ("iterations", np.int64),
        ("budget_share", np.float64),  # budget of a power domain relative to its peak power
        ("rho", np.float64),  # autocorrelation from epoch to epoch of what instances and machines do of their own
        ("machine_sd", np.float64),
        ("load_s", np.float64),  # from one step of load to the next; inf: load moves with the epochs alone
        ("load_log_sd", np.float64),
        ("governor_s", np.float64),  # from one look of a governor to the next
        ("best_effort_ways", np.float64),
        ("best_effort_delay", np.float64),
        ("overcommit", np.float64),  # quotas on a machine over its threads, at most
    ]
)


class StationsAtWork(NamedTuple):
    """S stations of n requests and k servers in all, and what their queues keep (`models.queues.layout`), in turn."""

    station: Records
    """(S,) of `STATION`."""
    waiting: Heap
    """(n,) arrays of those who wait, or where all share the servers of those present; sizes are in `counts`."""
    left: Floats
    """(n,) work that those who wait still need; under feedback the rate of each group."""
    start_s: Floats
    """(n,)"""
    groups: Ints
    """(n + S,) under feedback where each group begins."""
    cores: Cores
    """(k,) arrays."""
    speed: Floats
    """(k,)"""
    total: Floats
    """(k + S,) summed speed of 0, 1, .. servers of each station."""
    counts: Ints
    """(S, 8)"""
    clock: Floats
    """(S, 2)"""
    pace: Pace
    """Of all stations: 1."""
    nobody: Ints
    """(0,) stands for who follows whom."""
    never: Floats
    """(0,)"""


class Inputs(NamedTuple):
    """D power domains of M machines, with R stays of J jobs, in K racks, for E epochs."""

    domain_start: Ints
    """(D+1,) first machine of each domain, and M."""
    stay_start: Ints
    """(M+1,) first stay of each machine, and R."""
    machines: Records
    """(M,) of `MACHINE`."""
    stays: Records
    """(R,) of `STAY`, by machine and start."""
    slots: int
    """Residents on a machine at most."""
    jobs: Floats
    """(J, 19) traits and spread between shards; `sim.fleet.slots` names the columns."""
    software: Floats
    """(J, 18) traits under new code relative to old."""
    platforms: Records
    """(P,) of `PLATFORM`."""
    core_cpi: Floats
    """(P, J) core CPI of each job on each platform relative to the reference core."""
    governors: Records
    """(2,) of `GOVERNOR`, before and after the feature."""
    window_of_epoch: Ints
    """(E,) window, −1: none."""
    load: Floats
    """(E, J) relative to its mean, of an instance of weight 1."""
    phase: Floats
    """(E, J) factor on the behaviour of all of a job's instances."""
    rack_access: Floats
    """(E, K) factor on memory accesses."""
    rack_network: Floats
    """(E, K) factor on waiting for the network."""
    settings: Records
    """(1,) of `SETTINGS`."""
    visit: Ints
    """(M, E) which visit of a profiler this is, −1: none; (0, 0): there is no profiler."""
    switched: Bools
    """(M, E) whether the feature acts, if machines switch on and off; (0, 0): `feature_from` and `soft_from` say it."""
    stations: StationsAtWork | None
    """(S,) stays whose requests are served one by one; at work in the simulation. None: no requests are served, and
    what would serve them is not compiled."""
    spell_start: Ints
    """(M+1,) first incident of each machine, and their number."""
    spells: Records
    """Of `SPELL`, by machine."""
    weight: Floats
    """(P, J) load of an instance on each platform relative to others of its job."""


class Outputs(NamedTuple):
    """What the kernel fills; all zeros before."""

    rows: Floats
    """(N, 8) sums per stay and window: cycles, instructions, misses, CPU seconds, requests, cycles but for stalls, and
    seconds in which threads were runnable while others ran or the quota was used up."""
    machine_rows: Floats
    """(M, W, 2) energy in joules, and epochs in which TDP or cap lowered the clock, parts of epochs included."""
    epoch_sums: Floats
    """(D, E, 9) `sim.fleet.slots` names the columns."""
    trace: Floats
    """(T, 5) of traced stays by epoch: cycles, instructions, misses, CPU seconds, cycles but for stalls."""
    machine_trace: Floats
    """(M, E, 4) frequency, power, utilisation and bandwidth utilisation; (0, E, 4): not wanted."""
    visit_sums: Floats
    """(V, slots, 5) of visited machines' residents, the columns of `trace`."""
    visit_rows: Ints
    """(V, slots) counter row of each resident, among those of the block; −1: nobody."""
    visit_power_w: Floats
    """(V,) power of the machine."""
    events: Floats
    """(D, L, 3) the first L events of each domain: time, machine and `sim.fleet.events`' bits of what happened."""
    requests: Records
    """(n,) of `REQUEST`, station by station."""


class Contention(NamedTuple):
    """What a machine's residents compete for, which of it they share, and how closely that is solved."""

    idle_latency_s: float
    bandwidth: float
    """Bytes per second, of all nodes."""
    attainable: float
    """Share of that which traffic can reach."""
    llc_bytes: float
    """Of all slices."""
    slices: int
    nodes: int
    remote_latency: float
    remote_bandwidth: float
    share_llc: bool
    share_bandwidth: bool
    tolerance: float
    """Residual at which the fixed point counts as solved."""
    iterations: int
    """At most so many."""
    best_effort_ways: float = 1.0
    """Share of each slice that best-effort residents may hold together."""


MECHANISM = 2
"""By which `OwnPhysics.call` knows the mechanism; governors are numbered as in `Inputs`."""


class OwnPhysics(NamedTuple):
    """Governors and a mechanism of somebody's own, as the kernel calls them, and the last call.

    `sim.fleet.own_physics` has their parameters.
    """

    before: NumberFunction
    """The governor before the feature."""
    after: NumberFunction
    """The governor with it."""
    mechanism: NumberFunction
    slows: bool
    """Whether there is a mechanism."""
    call: Floats
    """(8,) which of the three functions is called, its arguments, and last what it returned."""


class OwnGovernor(NamedTuple):
    """A governor of somebody's own on one machine in one epoch."""

    function: NumberFunction
    utilisation: float
    most_hz: float
    """Highest clock that the processor allows with so many cores active."""
    call: Floats


class PowerDomain(NamedTuple):
    """A power domain's m machines at work; arrays begin with the machine."""

    first: int
    hot: Floats  # (m, fields, slots)
    mark: Ints  # (m, marks, slots)
    residents: Ints  # how many
    upcoming: Ints  # next stay to enter
    change: Ints  # next epoch in which somebody leaves, enters or gets new code
    latency_s: Floats  # (m, nodes at most)
    divided: Ints  # (m,) platform for which residents have their places
    scratch: Floats
    wander: Floats
    allowance: Floats  # (1,) power cap relative to the machines' own
    sums: Floats  # (E, 9)
    own: OwnPhysics


class Residents(NamedTuple):
    """Who is on one machine, in slots 0 to n − 1."""

    hot: Floats  # (fields, slots)
    mark: Ints  # (marks, slots)
    n: int


class OperatingConditions(NamedTuple):
    """Under what conditions one machine runs its residents in one epoch."""

    platform: int  # row of the table
    governor: int
    contention: Contention
    power_factor: float
    access: float
    network: float
    limit_w: float
    throttle: float  # by which factor the highest clock is lower


class LoadedHost(NamedTuple):
    """A machine with the load of an epoch, whose clocks are to be chosen."""

    residents: Residents
    platform: np.record
    governor: np.record
    own: OwnGovernor
    conditions: OperatingConditions
    latency_s: Floats
    scratch: Floats
    utilisation: float
    sibling: float


class Clocked(NamedTuple):
    """A machine at the clocks of an epoch."""

    state_hz: float
    limit_hz: float  # under which the governor chose
    capped: float  # share of the time in which TDP or cap lowered the clock
    power_w: float
    misses_per_s: float
    residual: float


class MachineEpoch(NamedTuple):
    """What a machine did in one epoch: means over its time."""

    state_hz: float
    capped: float  # share of the time in which TDP or cap lowered the clock
    power_w: float
    energy_j: float
    peak_w: float  # all threads computing at the all-core turbo
    utilisation: float
    bandwidth_utilisation: float
    residual: float
