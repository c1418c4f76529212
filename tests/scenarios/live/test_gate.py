"""The gate says when the machine was too busy to tell, and shows what it goes by."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from scenarios.live.gate import Before, During, during, real_time_share, reasons, unexplained_wait, used
from scenarios.live.kernel import ticks
from scenarios.live.processes import Observed, ServingPlace

BEFORE, DURING = Before(0.2, 0.01, 0.0, 0.95), During(0.999, 0.02, 0.0, 0.001)
FIRST = "cpu0 100 0 50 800 0 0 0 10 0 0\ncpu1 10 0 5 900 0 0 0 0 0 0"
SECOND = "cpu0 160 0 60 820 0 5 5 20 0 0\ncpu1 10 0 5 1000 0 0 0 0 0 0"
"""A second of 100 ticks later: CPU 0 busy for 80 ticks, 10 stolen; CPU 1 idle."""


@pytest.mark.parametrize("scheduler", ["rr", "fifo", "nice", "other"])
def test_a_quiet_machine_has_no_reasons_against_it(scheduler):
    assert reasons(BEFORE, DURING, scheduler) == []


@pytest.mark.parametrize(
    ("change", "begins"),
    [
        ({"spin_share": 0.5}, "a spinning process got 50.0% of a CPU"),
        ({"stolen_share": 0.03}, "the hypervisor gave 3.0% of the CPUs to others"),
        ({"unexplained_share": 0.04}, "4.0% of the CPU time was waited for although no process"),
    ],
)
def test_each_sign_of_others_is_a_reason_with_its_evidence(change, begins):
    (reason,) = reasons(BEFORE, replace(DURING, **change), "nice")
    assert reason.startswith(begins)


def test_others_before_the_load_matter_only_to_a_server_without_precedence():
    busy = replace(BEFORE, others_share=0.6)
    assert reasons(busy, DURING, "rr") == []
    assert reasons(busy, DURING, "other") == ["others used 60.0% of the CPUs before the load (at most 5%)"]


def test_time_stolen_before_the_load_counts_too_and_several_reasons_are_all_given():
    assert len(reasons(replace(BEFORE, stolen_share=0.2), replace(DURING, spin_share=0.1), "rr")) == 2


def test_what_cannot_be_known_of_a_pool_is_no_reason():
    assert reasons(BEFORE, replace(DURING, unexplained_share=float("nan")), "nice") == []


@pytest.mark.parametrize(("cpus", "shares"), [([0], (0.8, 0.1)), ([1], (0.0, 0.0)), ([0, 1], (0.4, 0.05))])
def test_shares_of_the_cpus_come_from_two_looks(cpus, shares):
    looks = [ticks(text, cpus, per_second=100) for text in (FIRST, SECOND)]
    assert used(*looks, whole_s=float(len(cpus))) == pytest.approx(shares)


@pytest.mark.parametrize(
    ("texts", "share"),
    [(("950000\n", "1000000\n"), 0.95), (("-1\n", "1000000\n"), 1.0), (("", ""), 1.0), (("0", "1000000"), 0.0)],
)
def test_the_limit_of_real_time_processes_is_read(texts, share):
    assert real_time_share(*texts) == share


def served_by_turns(cpus, theft):
    """Workers that share CPUs of which a part is stolen, millisecond by millisecond, and how long any was there."""
    random, left, busy = np.random.default_rng(1), {}, 0
    taken, ended, waited = [], {}, []
    for step in range(10_000):
        if step < 3000 and random.random() < 0.006 * cpus:
            left[len(taken)] = 0.1 * random.integers(1, 4)
            waited.append(0.0)
            taken.append(step / 1000)
        busy += bool(left)
        rate = min(1.0, cpus / len(left)) * (1 - theft) if left else 0.0
        for worker in list(left):
            left[worker] -= rate / 1000
            waited[worker] += (1 - rate) / 1000
            if left[worker] < 1e-9:
                del left[worker]
                ended[worker] = (step + 1) / 1000
    assert not left
    workers = pd.DataFrame({"taken_s": taken, "wait_s": waited})
    return workers.assign(ended_s=[ended[worker] for worker in range(len(taken))]), busy / 1000


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_wait_that_the_servers_own_processes_explain_is_none(cpus):
    workers, _ = served_by_turns(cpus, theft=0.0)
    assert workers["wait_s"].sum() > 1
    assert unexplained_wait(workers, cpus) == pytest.approx(0.0, abs=1e-6)


def test_what_somebody_else_took_is_left_unexplained():
    workers, busy_s = served_by_turns(1, theft=0.2)
    assert unexplained_wait(workers, 1) == pytest.approx(0.2 * busy_s)


def test_without_workers_nobody_waited():
    assert unexplained_wait(pd.DataFrame(), 1) == 0.0


def observed(**columns):
    samples = {"time_s": [0.0, 10.0], "run_s": [1.0, 5.0], "wait_s": [0.0, 9.0], "busy_s": [7.0, 12.0]}
    workers = pd.DataFrame({"taken_s": [0.0, 0.0], "ended_s": [4.0, 4.0], "wait_s": [2.0, 3.0]})
    return Observed(pd.DataFrame(), pd.DataFrame(samples | {"stolen_s": [1.0, 1.5]} | columns), workers, 0.97)


def test_during_the_load_what_the_server_used_is_not_others():
    found = during(observed(), ServingPlace((1,), (0,), "nice"))
    assert found == During(0.97, pytest.approx(0.1), pytest.approx(0.05), pytest.approx(0.1))


def test_shares_are_of_all_the_servers_cpus():
    found = during(observed(), ServingPlace((0, 1), (0, 1), "nice"))
    assert (found.others_share, found.stolen_share) == (pytest.approx(0.05), pytest.approx(0.025))


def test_ticks_that_lag_behind_do_not_make_others_negative():
    assert during(observed(busy_s=[7.0, 10.0]), ServingPlace((1,), (0,), "nice")).others_share == 0.0


def test_workers_of_a_pool_that_are_no_more_than_the_cpus_do_not_wait_for_each_other():
    assert during(observed(), ServingPlace((1,), (0,), "nice", pool=1)).unexplained_share == pytest.approx(0.9)
    assert during(observed(), ServingPlace((0, 1), (0, 1), "nice", pool=2)).unexplained_share == pytest.approx(0.45)


def test_waits_of_more_workers_than_cpus_are_not_explained():
    assert np.isnan(during(observed(), ServingPlace((1,), (0,), "nice", pool=2)).unexplained_share)
