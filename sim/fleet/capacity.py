"""What the scheduler knows: machines, jobs, instances and stays as arrays of records that compiled kernels change.

A record type is the documentation of its fields. Requests are counted in whole micro-vCPUs and bytes, so that freeing
gives back exactly what placing took. −1 stands for nobody and nowhere.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.arrays import Bools, Floats, Ints

Records = NDArray[np.void]

NOBODY = NOWHERE = -1

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
BLOCK_SIZE = 64
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
        ("ended_by", np.int32),  # index into ENDINGS of sim.fleet.placement
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
