"""Per-process profiles against sums by hand: which function holds the heap, the locks, and the waiting."""

from types import SimpleNamespace

import numpy as np
import pytest

from sim.profiling.process_profiles import STACKED, Use, amounts, loads, thread_counts

# One program of four functions, `main` first: allocation sites are not where its locks are.
PROGRAMS = SimpleNamespace(
    allocation=np.array([0.0, 0.75, 0.25, 0.0]),
    lock=np.array([0.0, 0.0, 0.1, 0.9]),
    heap_bytes=np.array([1000.0]),
    lock_share=np.array([0.05]),
    threads=np.array([20]),
    mean_use_vcpu=np.array([2.0]),
    entries=lambda _program: slice(0, 4),
)
CYCLES = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 0.0, 0.0]])
USE = Use(np.array([300.0, 1200.0]), np.array([4000.0, 1210.0]), np.array([0.5, 1.5]))
DONE = dict(zip(STACKED, amounts(PROGRAMS, 0, CYCLES, USE).transpose(2, 0, 1), strict=True))


def test_cpu_time_goes_as_cycles():
    assert DONE["cpu_time"] / 1e9 == pytest.approx(np.array([[30.0, 60.0, 90.0, 120.0], [600.0, 600.0, 0.0, 0.0]]))


def test_the_heap_lies_with_its_allocation_sites_and_partly_follows_use():
    assert DONE["heap_bytes"] == pytest.approx(np.array([[0, 600, 200, 0], [0, 900, 300, 0]]), rel=1e-12)


def test_locks_are_waited_for_where_they_are_for_no_longer_than_threads_wait():
    assert DONE["lock_wait"] / 1e9 == pytest.approx(np.array([[0, 0, 20.0, 180.0], [0, 0, 1.0, 9.0]]))


def test_wall_time_is_cpu_time_and_locks_and_waiting_for_work_in_main():
    rest = DONE["wall_time"] - DONE["cpu_time"] - DONE["lock_wait"]
    assert rest / 1e9 == pytest.approx(np.array([[3500.0, 0, 0, 0], [0.0, 0, 0, 0]]), abs=1e-6)


def test_a_program_that_is_not_used_has_no_load():
    idle = SimpleNamespace(threads=np.array([20]), mean_use_vcpu=np.zeros(1))
    assert loads(idle, np.zeros(2, int), np.zeros(2), 300.0).tolist() == [0.0, 0.0]
    assert thread_counts(idle, np.zeros(2, int), np.zeros(2), 300.0).tolist() == [10, 10]


def test_threads_and_loads_follow_use_up_to_a_limit_and_busy_ones_are_there():
    cpu_s = np.array([0.0, 600.0, 1200.0, 300.0 * 40])
    assert loads(PROGRAMS, np.zeros(4, int), cpu_s, 300.0).tolist() == [0.0, 1.0, 1.5, 1.5]
    assert thread_counts(PROGRAMS, np.zeros(4, int), cpu_s, 300.0).tolist() == [10, 20, 25, 40]
