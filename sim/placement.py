"""Where instances go: capacity, spreading and eviction on arrays, decided from requests alone.

Requests are counted in whole micro-vCPUs and bytes, so that freeing gives back exactly what placing took. An instance
looks at `candidates` random machines; of those that fit it takes the one whose failure domain holds the fewest
instances of its job, then the one the policy likes best, then the one met first. Only when none of them fits are all
machines looked at, in turn from the first candidate on. The load of a machine is its dominant share (Ghodsi et al.
2011): the larger of the shares of CPU and memory that are asked for.

The random machines are numbered by (key, instance, attempt), so an instance meets the same candidates whatever
happens to others. All kernels stand in this file because a compiled function's cache sees no change in another one.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Records = NDArray[np.void]

ENDINGS = ("horizon", "exit", "restart", "drain", "failure", "preemption")
"""What can end a stay; columns hold the index."""
HORIZON, EXIT, RESTART, DRAIN, FAILURE, PREEMPTION = range(6)
POLICIES = ("least_loaded", "best_fit", "random")
LEAST_LOADED, BEST_FIT, RANDOM = range(3)
ARRIVES, EXITS, RESTARTS = range(3)
"""What can happen to an instance from outside."""
RUNNING, PENDING, STAYS, INSTANCES, PASSES = range(5)
"""Places in `State.totals`."""
EVERYONE = -1
NOBODY = NOWHERE = -1
UNFIT = (2**62, 0.0)
"""The rank of a machine without room: behind all others."""

MICRO = 1e-6
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
PAIR = np.dtype([("key", np.int64), ("count", np.int64)])  # key: 1 + job * machines + domain; 0: free
STAY = np.dtype(
    [
        ("instance", np.int32),
        ("machine", np.int32),
        ("start_s", np.float64),
        ("end_s", np.float64),  # infinite while it lasts
        ("ended_by", np.int32),
    ],
    align=True,
)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


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
    jobs: Records
    instances: Records
    pairs: Records
    stays: Records
    running: NDArray[np.int32]
    pending: NDArray[np.int32]
    totals: NDArray[np.int64]


def requests(amount: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
    """Return amounts in whole units, rounded up; a fraction below a thousandth counts as rounding error.

    Examples
    --------
    >>> requests(np.array([0.1, 2.5000004]), 1e-6)
    array([ 100000, 2500001])
    """
    return np.ceil(np.round(amount / unit, 3)).astype(np.int64)


def capacities(amount: NDArray[np.float64], unit: float) -> NDArray[np.int64]:
    """Return amounts in whole units, rounded down; a lack below a thousandth counts as rounding error.

    Examples
    --------
    >>> capacities(np.array([64.0, 2.5000004]), 1e-6)
    array([64000000,  2500000])
    """
    return np.floor(np.round(amount / unit, 3)).astype(np.int64)


def new_machines(vcpus: NDArray[np.float64], memory_bytes: NDArray[np.float64], domain: NDArray[np.int64]) -> Records:
    """Return empty machines.

    Parameters
    ----------
    vcpus, memory_bytes : (M,) arrays, capacity, hardware threads and bytes
    domain : (M,) array, failure domain, 0, 1, 2, … below M

    Examples
    --------
    >>> new_machines(np.array([2.0]), np.array([8e9]), np.array([0]))["free_cpu"]
    array([2000000])
    """
    machines = np.zeros(len(vcpus), MACHINE)
    machines["cpu"] = machines["free_cpu"] = capacities(vcpus, MICRO)
    machines["memory"] = machines["free_memory"] = capacities(memory_bytes, 1.0)
    machines["newest"], machines["domain"], machines["up"] = NOBODY, domain, True
    return machines


def new_jobs(
    quota_vcpu: NDArray[np.float64],
    memory_bytes: NDArray[np.float64],
    latency_critical: NDArray[np.bool_],
    instances: NDArray[np.int64],
) -> Records:
    """Return jobs of which nothing runs yet.

    Parameters
    ----------
    quota_vcpu, memory_bytes : (J,) arrays, what one instance asks for
    latency_critical : (J,) array, whether it may evict the others
    instances : (J,) array, instances at the start

    Examples
    --------
    >>> new_jobs(np.array([0.5]), np.array([1e9]), np.array([True]), np.array([3]))["cpu"]
    array([500000])
    """
    jobs = np.zeros(len(quota_vcpu), JOB)
    jobs["cpu"], jobs["memory"] = requests(quota_vcpu, MICRO), requests(memory_bytes, 1.0)
    jobs["latency_critical"], jobs["shards"], jobs["departed"] = latency_critical, instances, NOBODY
    return jobs


def new_state(machines: Records, jobs: Records, arriving: NDArray[np.int64]) -> State:
    """Return a fleet in which every instance is pending, in order of job and shard.

    Parameters
    ----------
    machines, jobs : from `new_machines` and `new_jobs`
    arriving : (A,) array, job of each later arrival, in order of time

    Examples
    --------
    >>> machines = new_machines(np.array([2.0]), np.array([8e9]), np.array([0]))
    >>> jobs = new_jobs(np.array([0.5]), np.array([1e9]), np.array([True]), np.array([3]))
    >>> new_state(machines, jobs, np.array([0])).instances["shard"]
    array([0, 1, 2, 0], dtype=int32)
    """
    asked_for = jobs["shards"].astype(np.int64)
    initial = int(asked_for.sum())
    count = initial + len(arriving)
    instances = np.zeros(count, INSTANCE)
    instances["job"] = np.concatenate([np.repeat(np.arange(len(jobs)), asked_for), arriving])
    instances["shard"][:initial] = np.arange(initial) - np.repeat(np.cumsum(asked_for) - asked_for, asked_for)
    instances["machine"] = NOWHERE
    return State(
        machines=machines,
        jobs=jobs,
        instances=instances,
        pairs=np.zeros(1 << int(np.ceil(np.log2(1.4 * count + 2))), PAIR),
        stays=np.zeros(0, STAY),
        running=np.empty(count, np.int32),
        pending=np.arange(count, dtype=np.int32),
        totals=np.array([0, initial, 0, initial, 0]),
    )


def with_room(state: State, stays: int) -> State:
    """Return the state with space for so many more stays; all other arrays are shared.

    Examples
    --------
    >>> state = new_state(np.zeros(1, MACHINE), np.zeros(1, JOB), np.zeros(0, np.int64))
    >>> len(with_room(state, 5).stays) >= 5
    True
    """
    used = int(state.totals[STAYS])
    if used + stays <= len(state.stays):
        return state
    longer = np.empty((used + stays) * 9 // 8, STAY)
    longer[:used] = state.stays[:used]
    return state._replace(stays=longer)


@njit(cache=True)
def mix(value: np.uint64) -> np.uint64:
    """Return a number that looks unrelated to `value` (splitmix64; Steele, Lea and Flood 2014, fig. 13)."""
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))


@njit(cache=True)
def candidate(key: np.uint64, instance: int, attempt: int, k: int, machines: int) -> int:
    """Return the k-th random machine that an instance looks at on an attempt."""
    start = mix(key + np.uint64(instance + 1) * _GOLDEN)
    draw = mix(start + np.uint64((attempt << 20) + k + 1) * _GOLDEN)
    return int(np.float64(draw >> np.uint64(11)) * 2.0**-53 * machines)


@njit(cache=True)
def home_of(pairs: Records, key: int) -> int:
    """Return where the search for a pair begins."""
    return np.int64(mix(np.uint64(key)) & np.uint64(len(pairs) - 1))


@njit(cache=True)
def slot_of(pairs: Records, key: int) -> int:
    """Return where the pair stands in the open-addressing table, or would stand (Knuth, vol. 3, 6.4, algorithm L)."""
    slot = home_of(pairs, key)
    while pairs[slot].key != key and pairs[slot].key != 0:
        slot = (slot + 1) & (len(pairs) - 1)
    return slot


@njit(cache=True)
def forget(pairs: Records, slot: int) -> None:
    """Remove the pair at `slot`, moving later ones up so that no search breaks off (Knuth, 6.4, algorithm R)."""
    mask = len(pairs) - 1
    probe = (slot + 1) & mask
    while pairs[probe].key != 0:
        home = home_of(pairs, pairs[probe].key)
        if (probe - home) & mask >= (probe - slot) & mask:
            pairs[slot].key, pairs[slot].count = pairs[probe].key, pairs[probe].count
            slot = probe
        probe = (probe + 1) & mask
    pairs[slot].key = pairs[slot].count = 0


@njit(cache=True)
def pair_key(state: State, job: int, machine: int) -> int:
    """Return the key of the job in the machine's failure domain."""
    return 1 + job * len(state.machines) + state.machines[machine].domain


@njit(cache=True)
def siblings(state: State, job: int, machine: int) -> int:
    """Return how many instances of the job run in the machine's failure domain."""
    return state.pairs[slot_of(state.pairs, pair_key(state, job, machine))].count


@njit(cache=True)
def count_sibling(state: State, job: int, machine: int, change: int) -> None:
    """Add `change` (1 or -1) to the number of the job's instances in the machine's failure domain."""
    key = pair_key(state, job, machine)
    slot = slot_of(state.pairs, key)
    state.pairs[slot].key = key
    state.pairs[slot].count += change
    if state.pairs[slot].count == 0:
        forget(state.pairs, slot)


@njit(cache=True)
def rank(state: State, rules: Rules, job: int, machine: int, evict: bool) -> tuple[int, float]:
    """Return (siblings there, what the policy dislikes), or UNFIT; with `evict`, as if no best-effort instance ran."""
    host, wants = state.machines[machine], state.jobs[job]
    cpu, memory = host.free_cpu - wants.cpu, host.free_memory - wants.memory
    if evict:
        cpu += host.best_effort_cpu
        memory += host.best_effort_memory
    if not host.up or cpu < 0 or memory < 0:
        return UNFIT
    same = siblings(state, job, machine) if rules.spread else 0
    if rules.policy == RANDOM:
        return same, 0.0
    load = max((host.cpu - cpu) / host.cpu, (host.memory - memory) / host.memory)
    return same, load if rules.policy == LEAST_LOADED else -load


@njit(cache=True)
def choose(state: State, rules: Rules, instance: int, evict: bool) -> int:
    """Return the machine for an instance, or NOWHERE: the best of its candidates, else the best of all."""
    job, attempt, machines = state.instances[instance].job, state.instances[instance].attempts, len(state.machines)
    chosen, best = NOWHERE, UNFIT
    for k in range(rules.candidates):
        machine = candidate(rules.key, instance, attempt, k, machines)
        its = rank(state, rules, job, machine, evict)
        if its < best:
            chosen, best = machine, its
    if chosen != NOWHERE:
        return chosen
    machine = candidate(rules.key, instance, attempt, 0, machines)
    for _ in range(machines):
        its = rank(state, rules, job, machine, evict)
        if its < best:
            chosen, best = machine, its
        machine = machine + 1 if machine + 1 < machines else 0
    return chosen


@njit(cache=True)
def charge(state: State, job: int, machine: int, times: int) -> None:
    """Take (`times` = 1) or give back (-1) what an instance of the job asks for."""
    host, wants = state.machines[machine], state.jobs[job]
    host.free_cpu -= times * wants.cpu
    host.free_memory -= times * wants.memory
    if not wants.latency_critical:
        host.best_effort_cpu += times * wants.cpu
        host.best_effort_memory += times * wants.memory


@njit(cache=True)
def link(state: State, instance: int, machine: int) -> None:
    """Enter the instance in the lists of residents (newest first) and of running instances."""
    host, it = state.machines[machine], state.instances[instance]
    it.older, it.newer, it.position = host.newest, NOBODY, state.totals[RUNNING]
    if host.newest != NOBODY:
        state.instances[host.newest].newer = instance
    host.newest = instance
    state.running[it.position] = instance
    state.totals[RUNNING] += 1


@njit(cache=True)
def unlink(state: State, instance: int, machine: int) -> None:
    """Take the instance out of the lists of residents and of running instances (the last one fills the gap)."""
    it = state.instances[instance]
    if it.newer == NOBODY:
        state.machines[machine].newest = it.older
    else:
        state.instances[it.newer].older = it.older
    if it.older != NOBODY:
        state.instances[it.older].newer = it.newer
    state.totals[RUNNING] -= 1
    last = state.running[state.totals[RUNNING]]
    state.running[it.position] = last
    state.instances[last].position = it.position


@njit(cache=True)
def enter(state: State, rules: Rules, instance: int, machine: int, now_s: float) -> None:
    """Let the instance run on the machine from `now_s` on."""
    it, number = state.instances[instance], state.totals[STAYS]
    charge(state, it.job, machine, 1)
    link(state, instance, machine)
    if rules.spread:
        count_sibling(state, it.job, machine, 1)
    it.machine, it.stay = machine, number
    stay = state.stays[number]
    stay.instance, stay.machine, stay.start_s, stay.end_s = instance, machine, now_s, np.inf
    stay.ended_by = HORIZON
    state.totals[STAYS] += 1


@njit(cache=True)
def leave(state: State, rules: Rules, instance: int, now_s: float, ended_by: int) -> None:
    """End the instance's stay."""
    it = state.instances[instance]
    charge(state, it.job, it.machine, -1)
    unlink(state, instance, it.machine)
    if rules.spread:
        count_sibling(state, it.job, it.machine, -1)
    it.machine = NOWHERE
    state.stays[it.stay].end_s, state.stays[it.stay].ended_by = now_s, ended_by


@njit(cache=True)
def wait(state: State, instance: int) -> None:
    """Put the instance at the end of the pending queue."""
    state.pending[state.totals[PENDING]] = instance
    state.totals[PENDING] += 1


@njit(cache=True)
def make_room(state: State, rules: Rules, job: int, machine: int, now_s: float) -> None:
    """Evict best-effort instances, the newest first, until an instance of the job fits."""
    host, wants, resident = state.machines[machine], state.jobs[job], state.machines[machine].newest
    while host.free_cpu < wants.cpu or host.free_memory < wants.memory:
        before = state.instances[resident].older
        if not state.jobs[state.instances[resident].job].latency_critical:
            leave(state, rules, resident, now_s, PREEMPTION)
            wait(state, resident)
        resident = before


@njit(cache=True)
def place(state: State, rules: Rules, instance: int, now_s: float) -> bool:
    """Place the instance, by eviction if it may and must, and return whether that was possible."""
    job = state.instances[instance].job
    machine = choose(state, rules, instance, False)
    if machine == NOWHERE and rules.preemption and state.jobs[job].latency_critical:
        machine = choose(state, rules, instance, True)
        if machine != NOWHERE:
            make_room(state, rules, job, machine, now_s)
    state.instances[instance].attempts += 1
    if machine != NOWHERE:
        enter(state, rules, instance, machine, now_s)
    return machine != NOWHERE


@njit(cache=True)
def place_or_wait(state: State, rules: Rules, instance: int, now_s: float) -> None:
    """Place the instance or put it at the end of the pending queue."""
    if not place(state, rules, instance, now_s):
        wait(state, instance)


@njit(cache=True)
def retry(state: State, rules: Rules, who: int, now_s: float) -> None:
    """Try the pending instances in order: latency-critical (`who` = 1), best-effort (0) or all (EVERYONE).

    What one instance of a job could not have, no later one of the pass can: a pass frees nothing that could not have
    been had by eviction before. So a job that failed once is not tried again in the same pass.
    """
    state.totals[PASSES] += 1
    kept = read = 0
    while read < state.totals[PENDING]:
        instance = state.pending[read]
        read += 1
        job = state.jobs[state.instances[instance].job]
        tried = (who == EVERYONE or job.latency_critical == (who == 1)) and job.failed != state.totals[PASSES]
        if tried and place(state, rules, instance, now_s):
            continue
        if tried:
            job.failed = state.totals[PASSES]
        state.pending[kept] = instance
        kept += 1
    state.totals[PENDING] = kept


@njit(cache=True)
def arrive(state: State, rules: Rules, now_s: float) -> None:
    """Let the next new instance arrive; it serves the shard that its job lost last, else a new one."""
    instance = state.totals[INSTANCES]
    state.totals[INSTANCES] += 1
    it = state.instances[instance]
    job = state.jobs[it.job]
    if job.departed == NOBODY:
        it.shard = job.shards
        job.shards += 1
    else:
        it.shard = state.instances[job.departed].shard
        job.departed = state.instances[job.departed].older
    place_or_wait(state, rules, instance, now_s)


@njit(cache=True)
def depart(state: State, rules: Rules, instance: int, now_s: float) -> None:
    """Let the instance exit for good."""
    leave(state, rules, instance, now_s, EXIT)
    it = state.instances[instance]
    job = state.jobs[it.job]
    it.older, job.departed = job.departed, instance


@njit(cache=True)
def run_events(
    state: State, rules: Rules, time_s: NDArray[np.float64], what: NDArray[np.int8], pick: NDArray[np.float64]
) -> None:
    """Let arrivals, exits and restarts happen in order of time; `pick` in [0, 1) says which running instance."""
    for event in range(len(time_s)):
        if what[event] == ARRIVES:
            arrive(state, rules, time_s[event])
        elif state.totals[RUNNING] > 0:
            instance = state.running[int(pick[event] * state.totals[RUNNING])]
            if what[event] == EXITS:
                depart(state, rules, instance, time_s[event])
            else:
                leave(state, rules, instance, time_s[event], RESTART)
                place_or_wait(state, rules, instance, time_s[event])


@njit(cache=True)
def residents(state: State, machine: int) -> NDArray[np.int32]:
    """Return the instances on the machine, the newest first."""
    found = np.empty(len(state.running), np.int32)
    count, instance = 0, state.machines[machine].newest
    while instance != NOBODY:
        found[count] = instance
        count, instance = count + 1, state.instances[instance].older
    return found[:count]


@njit(cache=True)
def empty(state: State, rules: Rules, machine: int, now_s: float, ended_by: int) -> None:
    """Mark the machine down and move its instances elsewhere, the latency-critical ones first."""
    state.machines[machine].up = False
    moving = residents(state, machine)
    for instance in moving:
        leave(state, rules, instance, now_s, ended_by)
    for critical in (True, False):
        for instance in moving:
            if state.jobs[state.instances[instance].job].latency_critical == critical:
                place_or_wait(state, rules, instance, now_s)
