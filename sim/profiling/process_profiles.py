"""Per-process profiles: what the profiling library inside a program counts, by function."""

from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Ints
from models.profiling.programs import ProgramArrays

STACKED = ("cpu_time", "wall_time", "heap_bytes", "lock_wait")
"""Events that are sampled, each sample with its stack; threads are counted."""
HEAP_WITH_USE, THREADS_WITH_USE = 0.4, 0.5
"""Parts of an instance's live heap and of its threads that go up and down with its use, as requests under way do."""
MOST_LOAD = 1.5
"""Use relative to the mean beyond which neither grows: pools and caches have limits."""
_NS = 1e9


class Use(NamedTuple):
    """What each of R processes of a program used in a visit: CPU time, threads' time, and use relative to its mean."""

    cpu_s: Floats
    wall_s: Floats
    load: Floats


def loads(programs: ProgramArrays, program: Ints | int, cpu_s: Floats, length_s: float) -> Floats:
    """Return each process's use relative to the mean of its program, at most `MOST_LOAD`; 0 where that is 0.

    Parameters
    ----------
    programs : J programs
    program, cpu_s : (n,) arrays, CPU time during the visit
    length_s : of the visit
    """
    mean_s = length_s * programs.mean_use_vcpu[program]
    return np.minimum(cpu_s / np.where(mean_s > 0.0, mean_s, np.inf), MOST_LOAD)


def thread_counts(programs: ProgramArrays, program: Ints, cpu_s: Floats, length_s: float) -> Ints:
    """Return the threads of each process: a part of its program's follows its use; more if so many are busy.

    Parameters
    ----------
    programs, program, cpu_s, length_s : as in `loads`
    """
    part = 1.0 - THREADS_WITH_USE + THREADS_WITH_USE * loads(programs, program, cpu_s, length_s)
    busy = np.ceil(cpu_s / length_s - 1e-9).astype(np.int64)
    return np.maximum(np.rint(programs.threads[program] * part).astype(np.int64), busy)


def amounts(programs: ProgramArrays, program: int, cycles: Floats, use: Use) -> Floats:
    """Return what per-process profiles count of each process of a program, by function.

    CPU time goes as cycles. Threads wait for locks for their program's share of the time, where its locks are; for the
    rest of their time they wait for work, in `main`. Live heap and locks have their programs' own profiles; a part of
    the heap follows use.

    Parameters
    ----------
    programs, program : what runs
    cycles : (R, F) array, by function
    use : of R processes

    Returns
    -------
    (R, F, 4) array of `STACKED`: nanoseconds, nanoseconds, bytes, nanoseconds
    """
    here, (cpu_s, wall_s, load) = programs.entries(program), use
    total = cycles.sum(axis=1, keepdims=True)
    waiting_s = np.minimum(programs.lock_share[program] * wall_s, np.maximum(wall_s - cpu_s, 0.0))
    amount = np.empty((*cycles.shape, len(STACKED)))
    amount[:, :, 0] = _NS * cpu_s[:, None] * cycles / np.where(total > 0, total, 1.0)
    amount[:, :, 3] = _NS * waiting_s[:, None] * programs.lock[here]
    amount[:, :, 1] = amount[:, :, 0] + amount[:, :, 3]
    amount[:, 0, 1] += _NS * np.maximum(wall_s - cpu_s - waiting_s, 0.0)
    heap_bytes = programs.heap_bytes[program] * (1.0 - HEAP_WITH_USE + HEAP_WITH_USE * load)
    amount[:, :, 2] = heap_bytes[:, None] * programs.allocation[here]
    return amount
