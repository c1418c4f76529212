"""Per-process profiles: what the profiling library inside a program counts, by function."""

import numpy as np
from numpy.typing import NDArray

from models.programs import Programs

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STACKED = ("cpu_time", "wall_time", "heap_bytes", "lock_wait")
"""Events that are sampled, each sample with its stack; threads are counted."""
_NS = 1e9


def thread_counts(programs: Programs, program: Ints, cpu_s: Floats, length_s: float) -> Ints:
    """Return the threads of each process: those of its program, more if so many are busy.

    Parameters
    ----------
    programs : J programs
    program, cpu_s : (n,) arrays, CPU time during the visit
    length_s : of the visit

    Examples
    --------
    >>> from models.jobs import build_jobs
    >>> from models.machines import build_machines
    >>> from models.profiles import ProfileWorld
    >>> from models.programs import build_programs
    >>> from models.scenario import Fleet, Population
    >>> world = ProfileWorld(2, 172800.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    >>> made = build_programs(world, build_jobs(world, build_machines(world)), ["haswell_2698v3"])
    >>> thread_counts(made, np.array([0, 0]), np.array([0.0, 90000.0]), 300.0)[1]
    np.int64(300)
    """
    return np.maximum(programs.threads[program], np.ceil(cpu_s / length_s - 1e-9).astype(np.int64))


def amounts(programs: Programs, program: int, cycles: Floats, cpu_s: Floats, wall_s: Floats) -> Floats:
    """Return what per-process profiles count of each process of a program, by function.

    CPU time goes as cycles. Threads wait for locks for their program's share of the time, where its locks are; for the
    rest of their time they wait for work, in `main`. Live heap and locks have their programs' own profiles.

    Parameters
    ----------
    programs, program : what runs
    cycles : (R, F) array, by function
    cpu_s, wall_s : (R,) arrays, CPU time and threads' time

    Returns
    -------
    (R, F, 4) array of `STACKED`: nanoseconds, nanoseconds, bytes, nanoseconds

    Examples
    --------
    >>> from models.jobs import build_jobs
    >>> from models.machines import build_machines
    >>> from models.profiles import ProfileWorld
    >>> from models.programs import build_programs
    >>> from models.scenario import Fleet, Population
    >>> world = ProfileWorld(2, 172800.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2))
    >>> made = build_programs(world, build_jobs(world, build_machines(world)), ["haswell_2698v3"])
    >>> cycles = np.ones((1, made.functions(0).size))
    >>> amounts(made, 0, cycles, np.array([2.0]), np.array([30.0])).sum(axis=(0, 1))[:2].round()
    array([2.e+09, 3.e+10])
    """
    here = programs.entries(program)
    total = cycles.sum(axis=1, keepdims=True)
    waiting_s = np.minimum(programs.lock_share[program] * wall_s, np.maximum(wall_s - cpu_s, 0.0))
    amount = np.empty((*cycles.shape, len(STACKED)))
    amount[:, :, 0] = _NS * cpu_s[:, None] * cycles / np.where(total > 0, total, 1.0)
    amount[:, :, 3] = _NS * waiting_s[:, None] * programs.lock[here]
    amount[:, :, 1] = amount[:, :, 0] + amount[:, :, 3]
    amount[:, 0, 1] += _NS * np.maximum(wall_s - cpu_s - waiting_s, 0.0)
    amount[:, :, 2] = programs.heap_bytes[program] * programs.allocation[here]
    return amount
