"""Where instances go: candidates, spreading, eviction and the pending queue, decided from requests alone.

An instance looks at a few random machines (`Rules.candidates`); of those with room it takes the one whose failure
domain holds the fewest instances of its job, then the one the policy likes best, then the one met first. Only when
none of them has room are all machines searched, block by block from the first candidate's on, and the best of the
first block with room is taken. Policies compare the dominant share (Ghodsi et al. 2011) that would be asked for with
the instance: the larger of the shares of CPU and memory. A latency-critical instance that finds no room chooses once
more as if no best-effort instance ran anywhere, and evicts the newest of them there until it fits.

The candidates are numbered by (key, instance, attempt), so an instance meets the same ones whatever happens to
others.

The scheduler knows machines, jobs, instances and stays as arrays of records that the compiled functions change; a
record type is the documentation of its fields. Requests are counted in whole micro-vCPUs and bytes, so that freeing
gives back exactly what placing took. −1 stands for nobody and nowhere.

All compiled functions stand in one file because their cache sees no change in another one. Numbers that they
hand on have 64 bits, and no argument is a literal: Numba compiles a function anew for each type and each literal.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from models.arrays import Bools, Floats, Ints
from models.code.compiled import njit

Records = NDArray[np.void]

ENDINGS = ("horizon", "exit", "restart", "drain", "failure", "preemption")
"""What can end a stay; columns hold the index."""
HORIZON, EXIT, RESTART, DRAIN, FAILURE, PREEMPTION = map(np.int64, range(6))
POLICIES = ("least_loaded", "best_fit", "random")
LEAST_LOADED, BEST_FIT, RANDOM = range(3)
ARRIVES, EXITS, RESTARTS = range(3)
"""What can happen to an instance from outside."""
EVERYONE = -1
NOBODY = NOWHERE = -1
BLOCK_SIZE = 64
UNFIT = (2**62, 0.0)
"""The rank of a machine without room: behind all others."""
Whole: TypeAlias = int | np.int64
TAKEN, BACK = np.int64(1), np.int64(-1)
"""What is taken is added to how many there are and subtracted from what is free; what is given back, the reverse."""

MICRO = 1e-6
"""vCPUs in which requests are counted."""
MACHINE = np.dtype(
    [
        ("cpu", np.int64),  # capacity, micro-vCPU
        ("memory", np.int64),  # capacity, bytes
        ("free_cpu", np.int64),
        ("free_memory", np.int64),
        ("best_effort_cpu", np.int64),  # what best-effort instances hold of it
        ("best_effort_memory", np.int64),
        ("newest", np.int32),  # the resident that came last; NOBODY: empty
        ("domain", np.int32),  # failure domain
        ("up", np.bool_),
    ],
    align=True,
)
JOB = np.dtype(
    [
        ("cpu", np.int64),  # what one instance asks for, micro-vCPU
        ("memory", np.int64),  # bytes
        ("failed", np.int64),  # the last pass over the pending queue in which an instance fitted nowhere
        ("shards", np.int32),  # the shard of the next new instance
        ("departed", np.int32),  # the instance that exited last and whose shard nobody serves
        ("latency_critical", np.bool_),
    ],
    align=True,
)
INSTANCE = np.dtype(
    [
        ("job", np.int32),
        ("shard", np.int32),
        ("machine", np.int32),  # NOWHERE: it does not run
        ("older", np.int32),  # the resident that came before it; of a departed one: the one that departed before
        ("newer", np.int32),  # the resident that came after it
        ("position", np.int32),  # its place in `running`
        ("attempts", np.int32),  # how often it was tried
        ("stay", np.int32),  # its last stay
    ],
    align=True,
)
BLOCK = np.dtype(  # of machines; no machine of the block has more, some may all have less
    [
        ("free_cpu", np.int64),
        ("free_memory", np.int64),
        ("cpu", np.int64),  # free or held by best-effort instances
        ("memory", np.int64),
    ]
)
PAIR = np.dtype([("key", np.int64), ("count", np.int64)])  # key: 1 + job * machines + domain; 0: free
STAY = np.dtype(
    [
        ("instance", np.int32),
        ("machine", np.int32),
        ("start_s", np.float64),
        ("end_s", np.float64),  # infinite while it lasts
        ("ended_by", np.int32),  # index into ENDINGS
    ],
    align=True,
)
TOTAL = np.dtype(
    [
        ("running", np.int64),  # instances that run: so many entries of `running` count
        ("pending", np.int64),  # instances that wait: so many entries of `pending` count
        ("stays", np.int64),  # stays so far
        ("instances", np.int64),  # instances that have arrived so far
        ("passes", np.int64),  # passes over the pending queue so far
    ]
)


class Rules(NamedTuple):
    """The scheduler's settings as the kernels take them."""

    policy: int
    candidates: int
    spread: bool
    preemption: bool
    key: np.uint64


class State(NamedTuple):
    """Everything the scheduler knows; the kernels change the records in place."""

    machines: Records
    blocks: Records
    jobs: Records
    instances: Records
    pairs: Records
    stays: Records
    running: NDArray[np.int32]
    pending: NDArray[np.int32]
    total: Records


def requests(amount: Floats, unit: float) -> Ints:
    """Return amounts in whole units, rounded up; a fraction below a thousandth counts as rounding error."""
    return np.ceil(np.round(amount / unit, 3)).astype(np.int64)


def capacities(amount: Floats, unit: float) -> Ints:
    """Return amounts in whole units, rounded down; a lack below a thousandth counts as rounding error."""
    return np.floor(np.round(amount / unit, 3)).astype(np.int64)


def new_machines(vcpus: Floats, memory_bytes: Floats, domain: Ints) -> Records:
    """Return empty machines.

    Parameters
    ----------
    vcpus, memory_bytes : (M,) arrays, capacity, hardware threads and bytes
    domain : (M,) array, failure domain, 0, 1, 2, … below M
    """
    machines = np.zeros(len(vcpus), MACHINE)
    machines["cpu"] = machines["free_cpu"] = capacities(vcpus, MICRO)
    machines["memory"] = machines["free_memory"] = capacities(memory_bytes, 1.0)
    machines["newest"], machines["domain"], machines["up"] = NOBODY, domain, True
    return machines


def new_jobs(
    quota_vcpu: Floats,
    memory_bytes: Floats,
    latency_critical: Bools,
    instances: Ints,
) -> Records:
    """Return jobs of which nothing runs yet.

    Parameters
    ----------
    quota_vcpu, memory_bytes : (J,) arrays, what one instance asks for
    latency_critical : (J,) array, whether it may evict the others
    instances : (J,) array, instances at the start
    """
    jobs = np.zeros(len(quota_vcpu), JOB)
    jobs["cpu"], jobs["memory"] = requests(quota_vcpu, MICRO), requests(memory_bytes, 1.0)
    jobs["latency_critical"], jobs["shards"], jobs["departed"] = latency_critical, instances, NOBODY
    return jobs


def new_state(machines: Records, jobs: Records, arriving: Ints) -> State:
    """Return a fleet in which every instance is pending, in order of job and shard.

    Parameters
    ----------
    machines, jobs : from `new_machines` and `new_jobs`
    arriving : (A,) array, job of each later arrival, in order of time
    """
    asked_for = jobs["shards"].astype(np.int64)
    initial = int(asked_for.sum())
    count = initial + len(arriving)
    instances = np.zeros(count, INSTANCE)
    instances["job"] = np.concatenate([np.repeat(np.arange(len(jobs)), asked_for), arriving])
    instances["shard"][:initial] = np.arange(initial) - np.repeat(np.cumsum(asked_for) - asked_for, asked_for)
    instances["machine"] = NOWHERE
    total = np.zeros(1, TOTAL)
    total["pending"] = total["instances"] = initial
    return State(
        machines=machines,
        blocks=_blocks(machines),
        jobs=jobs,
        instances=instances,
        pairs=np.zeros(1 << int(np.ceil(np.log2(1.4 * count + 2))), PAIR),
        stays=np.zeros(0, STAY),
        running=np.empty(count, np.int32),
        pending=np.arange(count, dtype=np.int32),
        total=total,
    )


def _blocks(machines: Records) -> Records:
    first = np.arange(0, len(machines), BLOCK_SIZE)
    blocks = np.zeros(len(first), BLOCK)
    blocks["cpu"] = blocks["free_cpu"] = np.maximum.reduceat(machines["cpu"], first)
    blocks["memory"] = blocks["free_memory"] = np.maximum.reduceat(machines["memory"], first)
    return blocks


def with_room(state: State, stays: int) -> State:
    """Return the state with space for so many more stays; all other arrays are shared."""
    used = int(state.total["stays"][0])
    if used + stays <= len(state.stays):
        return state
    longer = np.empty((used + stays) * 9 // 8, STAY)
    longer[:used] = state.stays[:used]
    return state._replace(stays=longer)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@njit(cache=False, borrows=True)
def _mix(value: np.uint64) -> np.uint64:
    """Return a number that looks unrelated to `value` (splitmix64; Steele, Lea and Flood 2014, fig. 13)."""
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@njit(borrows=True)
def candidate(key: np.uint64, instance: Whole, attempt: Whole, k: Whole, machines: int) -> int:
    """Return the k-th random machine that an instance looks at on an attempt: uniform, a function of its arguments."""
    start = _mix(key + np.uint64(instance + 1) * _GOLDEN)
    draw = _mix(start + np.uint64((attempt << 20) + k + 1) * _GOLDEN)
    return int(np.float64(draw >> np.uint64(11)) * 2.0**-53 * machines)


@njit(cache=False, borrows=True)
def _home_of(pairs: Records, key: int) -> int:
    """Return where the search for a pair begins."""
    return int(np.int64(_mix(np.uint64(key)) & np.uint64(len(pairs) - 1)))


@njit(cache=False, borrows=True)
def _slot_of(pairs: Records, key: int) -> int:
    """Return where the pair stands in the open-addressing table, or would stand (Knuth, vol. 3, 6.4, algorithm L)."""
    slot = _home_of(pairs, key)
    while pairs[slot].key != key and pairs[slot].key != 0:
        slot = (slot + 1) & (len(pairs) - 1)
    return slot


@njit(cache=False, borrows=True)
def _forget(pairs: Records, slot: int) -> None:
    """Remove the pair at `slot`, moving later ones up so that no search breaks off (Knuth, 6.4, algorithm R)."""
    mask = len(pairs) - 1
    probe = (slot + 1) & mask
    while pairs[probe].key != 0:
        home = _home_of(pairs, pairs[probe].key)
        if (probe - home) & mask >= (probe - slot) & mask:
            pairs[slot].key, pairs[slot].count = pairs[probe].key, pairs[probe].count
            slot = probe
        probe = (probe + 1) & mask
    pairs[slot].key = pairs[slot].count = 0


@njit(cache=False, borrows=True)
def _pair_key(state: State, job: int, machine: Whole) -> int:
    """Return the key of the job in the machine's failure domain."""
    return 1 + job * len(state.machines) + int(state.machines[machine].domain)


@njit(cache=False, borrows=True)
def _siblings(state: State, job: int, machine: Whole) -> int:
    """Return how many instances of the job run in the machine's failure domain."""
    return int(state.pairs[_slot_of(state.pairs, _pair_key(state, job, machine))].count)


@njit(cache=False, borrows=True)
def _count_sibling(state: State, job: int, machine: Whole, change: Whole) -> None:
    """Add `change` (TAKEN or BACK) to the number of the job's instances in the machine's failure domain."""
    key = _pair_key(state, job, machine)
    slot = _slot_of(state.pairs, key)
    state.pairs[slot].key = key
    state.pairs[slot].count += change
    if state.pairs[slot].count == 0:
        _forget(state.pairs, slot)


@njit(cache=False, borrows=True)
def _rank(state: State, rules: Rules, job: int, machine: Whole, evict: bool) -> tuple[int, float]:
    """Return (siblings there, what the policy dislikes), or UNFIT; with `evict`, as if no best-effort instance ran."""
    host, wants = state.machines[machine], state.jobs[job]
    cpu, memory = host.free_cpu - wants.cpu, host.free_memory - wants.memory
    if evict:
        cpu += host.best_effort_cpu
        memory += host.best_effort_memory
    if not host.up or cpu < 0 or memory < 0:
        return UNFIT
    same = _siblings(state, job, machine) if rules.spread else 0
    if rules.policy == RANDOM:
        return same, 0.0
    load = max((host.cpu - cpu) / host.cpu, (host.memory - memory) / host.memory)
    return same, load if rules.policy == LEAST_LOADED else -load


@njit(cache=False, borrows=True)
def _hopeless(state: State, job: int, number: int, evict: bool) -> bool:
    """Return whether what is known of a block of machines tells that none of them has room."""
    block, wants = state.blocks[number], state.jobs[job]
    if evict:
        return bool(block.cpu < wants.cpu or block.memory < wants.memory)
    return bool(block.free_cpu < wants.cpu or block.free_memory < wants.memory)


@njit(cache=False, borrows=True)
def _survey(state: State, number: int) -> None:
    """Find out how much room the machines of a block have at most."""
    block = state.blocks[number]
    block.free_cpu = block.free_memory = block.cpu = block.memory = 0
    for machine in range(number * BLOCK_SIZE, min((number + 1) * BLOCK_SIZE, len(state.machines))):
        _notice(state, machine)


@njit(cache=False, borrows=True)
def _notice(state: State, machine: Whole) -> None:
    """Raise what is known of the machine's block to the room that it has."""
    block, host = state.blocks[machine // BLOCK_SIZE], state.machines[machine]
    block.free_cpu = max(block.free_cpu, host.free_cpu)
    block.free_memory = max(block.free_memory, host.free_memory)
    block.cpu = max(block.cpu, host.free_cpu + host.best_effort_cpu)
    block.memory = max(block.memory, host.free_memory + host.best_effort_memory)


@njit(cache=False, borrows=True)
def _search(state: State, rules: Rules, job: int, first: int, evict: bool) -> int:
    """Return the best machine of the first block with room, from the block of machine `first` on, or NOWHERE."""
    chosen, best, blocks = NOWHERE, UNFIT, len(state.blocks)
    for step in range(blocks):
        block = (first // BLOCK_SIZE + step) % blocks
        if _hopeless(state, job, block, evict):
            continue
        size = min(BLOCK_SIZE, len(state.machines) - block * BLOCK_SIZE)
        for k in range(size):
            machine = block * BLOCK_SIZE + (first + k) % size
            its = _rank(state, rules, job, machine, evict)
            if its < best:
                chosen, best = machine, its
        if chosen != NOWHERE:
            break
        _survey(state, block)
    return chosen


@njit(borrows=True)
def choose(state: State, rules: Rules, instance: Whole, evict: bool) -> int:
    """Return the machine for an instance, or NOWHERE: the best of its candidates, else of the first block with room.

    Parameters
    ----------
    state, rules : the fleet and the scheduler's settings
    instance : number of an instance that does not run
    evict : whether to choose as if no best-effort instance ran
    """
    job, attempt, machines = state.instances[instance].job, state.instances[instance].attempts, len(state.machines)
    chosen, best = NOWHERE, UNFIT
    for k in range(rules.candidates):
        machine = candidate(rules.key, instance, attempt, k, machines)
        its = _rank(state, rules, job, machine, evict)
        if its < best:
            chosen, best = machine, its
    if chosen != NOWHERE:
        return chosen
    first = candidate(rules.key, instance, attempt, np.int64(0), machines)
    return _search(state, rules, job, first, evict)


@njit(cache=False, borrows=True)
def _charge(state: State, job: int, machine: Whole, times: Whole) -> None:
    """Take (`times` = TAKEN) or give back (BACK) what an instance of the job asks for."""
    host, wants = state.machines[machine], state.jobs[job]
    host.free_cpu -= times * wants.cpu
    host.free_memory -= times * wants.memory
    if not wants.latency_critical:
        host.best_effort_cpu += times * wants.cpu
        host.best_effort_memory += times * wants.memory
    if times < 0:
        _notice(state, machine)


@njit(cache=False, borrows=True)
def _link(state: State, instance: Whole, machine: Whole) -> None:
    """Enter the instance in the lists of residents (newest first) and of running instances."""
    host, it = state.machines[machine], state.instances[instance]
    it.older, it.newer, it.position = host.newest, NOBODY, state.total[0].running
    if host.newest != NOBODY:
        state.instances[host.newest].newer = instance
    host.newest = instance
    state.running[it.position] = instance
    state.total[0].running += 1


@njit(cache=False, borrows=True)
def _unlink(state: State, instance: Whole, machine: Whole) -> None:
    """Take the instance out of the lists of residents and of running instances (the last one fills the gap)."""
    it = state.instances[instance]
    if it.newer == NOBODY:
        state.machines[machine].newest = it.older
    else:
        state.instances[it.newer].older = it.older
    if it.older != NOBODY:
        state.instances[it.older].newer = it.newer
    state.total[0].running -= 1
    last = state.running[state.total[0].running]
    state.running[it.position] = last
    state.instances[last].position = it.position


@njit(cache=False, borrows=True)
def _enter(state: State, rules: Rules, instance: Whole, machine: Whole, now_s: float) -> None:
    """Let the instance run on the machine from `now_s` on."""
    it, number = state.instances[instance], state.total[0].stays
    _charge(state, it.job, machine, TAKEN)
    _link(state, instance, machine)
    if rules.spread:
        _count_sibling(state, it.job, machine, TAKEN)
    it.machine, it.stay = machine, number
    stay = state.stays[number]
    stay.instance, stay.machine, stay.start_s, stay.end_s = instance, machine, now_s, np.inf
    stay.ended_by = HORIZON
    state.total[0].stays += 1


@njit(cache=False, borrows=True)
def _leave(state: State, rules: Rules, instance: Whole, now_s: float, ended_by: Whole) -> None:
    """End the instance's stay."""
    it = state.instances[instance]
    machine = np.int64(it.machine)
    _charge(state, it.job, machine, BACK)
    _unlink(state, instance, machine)
    if rules.spread:
        _count_sibling(state, it.job, machine, BACK)
    it.machine = NOWHERE
    state.stays[it.stay].end_s, state.stays[it.stay].ended_by = now_s, ended_by


@njit(cache=False, borrows=True)
def _wait(state: State, instance: Whole) -> None:
    """Put the instance at the end of the pending queue."""
    state.pending[state.total[0].pending] = instance
    state.total[0].pending += 1


@njit(cache=False, borrows=True)
def _make_room(state: State, rules: Rules, job: int, machine: Whole, now_s: float) -> None:
    """Evict best-effort instances, the newest first, until an instance of the job fits."""
    host, wants = state.machines[machine], state.jobs[job]
    resident = np.int64(host.newest)
    while host.free_cpu < wants.cpu or host.free_memory < wants.memory:
        before = np.int64(state.instances[resident].older)
        if not state.jobs[state.instances[resident].job].latency_critical:
            _leave(state, rules, resident, now_s, PREEMPTION)
            _wait(state, resident)
        resident = before


@njit(cache=False, borrows=True)
def _place(state: State, rules: Rules, instance: Whole, now_s: float) -> bool:
    """Place the instance, by eviction if it may and must, and return whether that was possible."""
    job, machine = state.instances[instance].job, NOWHERE
    for evict in range(1 + (rules.preemption and state.jobs[job].latency_critical)):
        machine = choose(state, rules, instance, evict > 0)
        if machine != NOWHERE:
            if evict:
                _make_room(state, rules, job, machine, now_s)
            break
    state.instances[instance].attempts += 1
    if machine != NOWHERE:
        _enter(state, rules, instance, machine, now_s)
    return machine != NOWHERE


@njit(cache=False, borrows=True)
def _place_or_wait(state: State, rules: Rules, instance: Whole, now_s: float) -> None:
    """Place the instance or put it at the end of the pending queue."""
    if not _place(state, rules, instance, now_s):
        _wait(state, instance)


@njit(borrows=True)
def retry(state: State, rules: Rules, who: int, now_s: float) -> None:
    """Try the pending instances in order: latency-critical (`who` = 1), best-effort (0) or all (EVERYONE).

    What one instance of a job could not have, no later one of the pass can: a pass frees nothing that eviction could
    not have freed before. So a job that failed once is not tried again in the same pass.

    Parameters
    ----------
    state : changed; with room in `stays` for all pending
    rules : the scheduler's settings
    who : 1, 0 or EVERYONE; EVERYONE only without preemption
    now_s : time, seconds
    """
    state.total[0].passes += 1
    waiting = read = 0
    while read < state.total[0].pending:
        instance = np.int64(state.pending[read])
        read += 1
        job = state.jobs[state.instances[instance].job]
        tried = (who == EVERYONE or job.latency_critical == (who == 1)) and job.failed != state.total[0].passes
        if tried and _place(state, rules, instance, now_s):
            continue
        if tried:
            job.failed = state.total[0].passes
        state.pending[waiting] = instance
        waiting += 1
    state.total[0].pending = waiting


@njit(cache=False, borrows=True)
def _arrive(state: State, rules: Rules, now_s: float) -> None:
    """Let the next new instance arrive; it serves the shard that its job lost last, else a new one."""
    instance = state.total[0].instances
    state.total[0].instances += 1
    it = state.instances[instance]
    job = state.jobs[it.job]
    if job.departed == NOBODY:
        it.shard = job.shards
        job.shards += 1
    else:
        it.shard = state.instances[job.departed].shard
        job.departed = state.instances[job.departed].older
    _place_or_wait(state, rules, instance, now_s)


@njit(cache=False, borrows=True)
def _depart(state: State, rules: Rules, instance: Whole, now_s: float) -> None:
    """Let the instance exit for good."""
    _leave(state, rules, instance, now_s, EXIT)
    it = state.instances[instance]
    job = state.jobs[it.job]
    it.older, job.departed = job.departed, instance


@njit(borrows=True)
def run_events(state: State, rules: Rules, time_s: Floats, what: NDArray[np.int8], pick: Floats) -> None:
    """Let arrivals, exits and restarts happen in order of time.

    Parameters
    ----------
    state : changed; with room in `stays` for as many as there are events
    rules : the scheduler's settings
    time_s : (n,) array, non-decreasing, seconds
    what : (n,) array of ARRIVES, EXITS and RESTARTS
    pick : (n,) array in [0, 1): which of the running instances exits or restarts; without any nothing happens
    """
    for event in range(len(time_s)):
        if what[event] == ARRIVES:
            _arrive(state, rules, time_s[event])
        elif state.total[0].running > 0:
            instance = np.int64(state.running[int(pick[event] * state.total[0].running)])
            if what[event] == EXITS:
                _depart(state, rules, instance, time_s[event])
            else:
                _leave(state, rules, instance, time_s[event], RESTART)
                _place_or_wait(state, rules, instance, time_s[event])


@njit(cache=True)
def residents(state: State, machine: Whole) -> NDArray[np.int32]:
    """Return the instances on the machine, the newest first."""
    count, instance = 0, state.machines[machine].newest
    while instance != NOBODY:
        count, instance = count + 1, state.instances[instance].older
    instances = np.empty(count, np.int32)
    instance = state.machines[machine].newest
    for place_in_list in range(count):
        instances[place_in_list] = instance
        instance = state.instances[instance].older
    return instances


@njit(cache=True)
def move(state: State, rules: Rules, instances: NDArray[np.int32], now_s: float, ended_by: Whole) -> None:
    """End the stays of running instances and place them anew, the latency-critical ones first.

    Parameters
    ----------
    state : with room in `stays` for all of them
    instances : (n,) array, in the order in which they are placed among their like
    now_s : time, seconds
    ended_by : index into `ENDINGS`
    """
    leaving = instances.astype(np.int64)
    for instance in leaving:
        _leave(state, rules, instance, now_s, ended_by)
    for critical in (True, False):
        for instance in leaving:
            if state.jobs[state.instances[instance].job].latency_critical == critical:
                _place_or_wait(state, rules, instance, now_s)
