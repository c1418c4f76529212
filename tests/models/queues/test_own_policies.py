"""Policies from outside: those that are said like ours serve every request as ours do, to the last bit."""

import numpy as np
import pytest

from models.code.parts import PartError
from models.queues.own_policies import own_policy, rules_of
from models.queues.serve import serve

KEYS = {
    "fcfs": "0.0",
    "sjf": "demand_s",
    "srpt": "remaining_s",
    "priority": "priority",
    "lcfs": "-arrival_s",
    "lcfs_pr": "-arrival_s",
}
PREEMPTIVE = ("srpt", "priority", "lcfs_pr")


def written(folder, key, preemptive=False):
    file = folder / "mine.py"
    head = "import math\n\n\ndef mine(arrival_s, demand_s, remaining_s, priority):"
    file.write_text(f"{head}\n    return {key}\n\n\nmine.preemptive = {preemptive}\n")
    return own_policy(f"{file}:mine")


def load(seed, n, servers):
    """Requests at a utilisation of 0.9, half of which follow the one before."""
    rng = np.random.default_rng(seed)
    after = np.where(rng.random(n) < 0.5, np.arange(n) - 1, -1)
    after[0] = -1
    arrival_s = np.where(after < 0, np.cumsum(rng.exponential(1.1 / servers, n)), np.nan)
    extra = {"after": after, "think_s": rng.exponential(2, n), "priority": rng.integers(0, 3, n)}
    return arrival_s, rng.exponential(1, n), extra


@pytest.mark.parametrize("policy", KEYS)
@pytest.mark.parametrize("unequal", [{}, {"speeds": [2.0, 0.7, 0.3]}, {"rates": [1.0, 1.5, 1.2]}], ids=str)
def test_a_policy_said_like_ours_serves_as_ours_does(tmp_path, policy, unequal):
    arrival_s, demand_s, extra = load(5, 400, 3)
    mine = written(tmp_path, KEYS[policy], policy in PREEMPTIVE)
    own, ours = (serve(each, arrival_s, demand_s, 3, **extra, **unequal) for each in (mine, policy))
    for stamp in ("arrival_s", "start_s", "departure_s"):
        np.testing.assert_array_equal(getattr(own, stamp), getattr(ours, stamp))


@pytest.mark.parametrize("policy", ["fcfs", "srpt", "priority"])
def test_open_queues_of_equal_servers_are_alike_too(tmp_path, policy):
    rng = np.random.default_rng(8)
    arrival_s, demand_s = np.cumsum(rng.exponential(0.6, 500)), rng.exponential(1, 500)
    mine, classes = written(tmp_path, KEYS[policy], policy in PREEMPTIVE), rng.integers(0, 3, 500)
    own, ours = (serve(p, arrival_s, demand_s, 2, priority=classes) for p in (mine, policy))
    np.testing.assert_allclose(own.departure_s, ours.departure_s, rtol=1e-12)


def test_deadlines_are_kept_that_serving_in_order_of_arrival_misses(tmp_path):
    """The long request's deadline is at 100 s, those of the short ones at 2 s and 3 s."""
    mine = written(tmp_path, "arrival_s + (1.0 if demand_s < 5.0 else 100.0)", preemptive=True)
    departure_s = serve(mine, [0.0, 1.0, 2.0], [9.0, 1.0, 1.0], 1).departure_s
    np.testing.assert_array_equal(departure_s, [11.0, 2.0, 3.0])


def test_requests_move_to_faster_servers_only_where_they_are_preempted(tmp_path):
    assert [written(tmp_path, "0.0", preemptive).migrates for preemptive in (False, True)] == [False, True]
    assert rules_of("lcfs_pr").migrates


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("math.nan if demand_s > 1.5 else 0.0", r"mine\.py:4: mine\(arrival_s=1, demand_s=2, .*should return a number"),
        ("1.0 / (2.0 - demand_s)", r"mine\.py:5: ZeroDivisionError: "),
        (
            "math.nan if remaining_s < demand_s else 0.0",
            r"mine\(arrival_s=0, demand_s=1.5, remaining_s=0.5, priority=0\)",
        ),
    ],
)
def test_what_a_policy_does_wrong_is_its_authors(tmp_path, key, problem):
    """The first of them while it is served, if it is preemptive."""
    with pytest.raises(PartError, match=problem):
        serve(written(tmp_path, key, preemptive="remaining_s" in key), [0.0, 1.0], [1.5, 2.0], 1)


def test_what_breaks_after_a_policy_answered_is_not_its_authors(tmp_path, monkeypatch):
    def broken(*arguments):
        arguments[-1][-1] = 2.0
        raise IndexError("ours")

    monkeypatch.setattr("models.queues.serve.with_functions", lambda *_: broken)
    with pytest.raises(IndexError, match="ours"):
        serve(written(tmp_path, "0.0"), [0.0, 1.0], [1.5, 2.0], 1)
