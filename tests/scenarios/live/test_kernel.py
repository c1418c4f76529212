"""What the kernel says of processes and CPUs is read as it is meant."""

import os
import subprocess
import sys
import time

import pytest

from scenarios.live import kernel as live_kernel
from scenarios.live.kernel import Account, Ticks, account, machine_ticks, schedstat, ticks

STAT = """cpu  300 0 60 900 9 3 6 90 7 7
cpu0 200 0 40 400 4 1 2 50 7 7
cpu1 100 10 20 500 5 2 4 40 0 0
intr 12345 6
ctxt 99
"""


def test_accounts_are_seconds_on_a_cpu_and_seconds_runnable_without_one():
    assert schedstat("2500000000 125000000 17\n") == Account(2.5, 0.125)


@pytest.mark.parametrize("text", ["", "1 2", "1 2 3 4", "a b c", "-1 2 3", "1.5 2 3"])
def test_a_text_that_is_no_account_is_refused(text):
    with pytest.raises(ValueError, match="schedstat should be three whole numbers, got"):
        schedstat(text)


def test_accounts_add_up():
    assert Account(1.0, 2.0) + Account(0.5, 0.25) == Account(1.5, 2.25)


def test_neither_idle_nor_iowait_is_busy_and_a_guest_is_not_counted_twice():
    assert ticks(STAT, [0], per_second=100) == Ticks((200 + 40 + 1 + 2) / 100, 0.5)


def test_the_ticks_of_several_cpus_add_up_and_the_line_of_all_cpus_is_not_among_them():
    both = ticks(STAT, [0, 1], per_second=10)
    assert both.busy_s == pytest.approx((200 + 40 + 1 + 2 + 100 + 10 + 20 + 2 + 4) / 10)
    assert both.stolen_s == pytest.approx(9.0)


@pytest.mark.parametrize("text", [STAT, "cpu2 1 2 3\n", ""])
def test_a_cpu_that_is_not_there_is_named(text):
    with pytest.raises(ValueError, match="should have a line cpu2 with eight numbers"):
        ticks(text, [2], per_second=100)


def test_the_first_thread_of_this_process_has_used_what_its_own_clock_says():
    before = time.thread_time()
    said = account(os.getpid()).run_s
    assert before - 0.1 <= said <= time.thread_time() + 0.1


def test_the_accounts_of_a_process_that_ended_are_there_until_it_is_waited_for():
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert account(ended.pid).run_s > 0
    ended.wait()
    with pytest.raises(OSError, match="No such"):
        account(ended.pid)


def test_a_cpu_was_busy_at_some_time_since_boot():
    assert machine_ticks(os.sched_getaffinity(0)).busy_s > 0


@pytest.fixture
def called(monkeypatch):
    """What is asked of the kernel, which is not asked."""
    calls = []
    monkeypatch.setattr(os, "sched_setscheduler", lambda _, policy, by: calls.append((policy, by.sched_priority)))
    monkeypatch.setattr(os, "setpriority", lambda _which, _who, nice: calls.append(("nice", nice)))
    monkeypatch.setattr(live_kernel, "_raise_group", lambda: None)
    return calls


@pytest.mark.parametrize(
    ("scheduler", "priority", "asked"),
    [
        ("other", live_kernel.WORKER, []),
        ("other", live_kernel.SERVER, []),
        ("rr", live_kernel.WORKER, [(os.SCHED_RR, 10)]),
        ("fifo", live_kernel.WORKER, [(os.SCHED_FIFO, 10)]),
        ("nice", live_kernel.WORKER, [(os.SCHED_OTHER, 0), ("nice", -20)]),
        ("nice", live_kernel.SERVER, [(os.SCHED_FIFO, 20)]),
        ("rr", live_kernel.CLIENT, [(os.SCHED_FIFO, 30)]),
    ],
)
def test_workers_are_under_the_scheduler_named_and_those_who_keep_the_books_before_them(
    called, scheduler, priority, asked
):
    live_kernel.schedule(scheduler, priority)
    assert called == asked


def test_a_process_whose_parent_is_gone_ends_at_once():
    program = "from scenarios.live.kernel import die_with; die_with(-1); print('lives')"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
