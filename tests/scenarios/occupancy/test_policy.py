"""How a log was served: policies that it contradicts, that cannot be replayed, and what bounds assume."""

import math

import numpy as np
import pytest

from analysis.occupancy.logs.hygiene import Cleaned
from models.queues.serve import serve
from scenarios.occupancy.policy import MOST_SLICES, Served, caveats, hindrance, settle

REFUTED = ("lcfs", "sjf", "random", "rr")


@pytest.fixture(scope="module")
def log():
    """A log of processor sharing on two servers."""
    rng = np.random.default_rng(12)
    arrival = rng.exponential(0.9, 1_000).cumsum()
    return Cleaned(arrival, serve("ps", arrival, rng.exponential(1.5, 1_000), 2).departure_s, (), 0, paired=True)


def test_a_policy_that_the_log_does_not_contradict_is_kept_with_its_demands(log):
    found = settle(log, Served(2, "ps"), 1.0)
    assert (found.served.policy, found.served.replayed, found.misfits, found.notes) == ("ps", True, 0.0, [])
    assert found.served.made is not None


def test_a_policy_that_the_log_contradicts_is_no_policy(log):
    found = settle(log, Served(2, "fcfs"), 1.0)
    assert found.served.policy is None
    assert found.misfits > 0.02
    assert found.notes[0].startswith(f"no replay under fcfs: {found.misfits:.1%} of the departures while")


def test_a_policy_that_cannot_be_replayed_is_still_known(log):
    found = settle(log, Served(2, "sjf"), 1.0)
    assert (found.served.policy, found.served.replayed) == ("sjf", False)
    assert found.notes[0].startswith("no replay under sjf: cannot be replayed on 2 servers")


def test_requests_that_had_not_left_are_told(log):
    cut = np.where(log.departure_s > log.departure_s.max() - 1, np.nan, log.departure_s)
    notes = settle(Cleaned(log.arrival_s, cut, (), 0, paired=True), Served(2, "ps"), 1.0).notes
    assert notes == [
        f"the replay serves {np.isnan(cut).sum()} requests that had not left only what they had got by then"
    ]


@pytest.mark.parametrize(("slices", "option"), [(MOST_SLICES, ""), (MOST_SLICES * 1.01, "--quantum")])
def test_so_many_slices_may_be_replayed(slices, option):
    assert hindrance(Served(4, "rr", quantum_s=0.5), classed=False, work_s=0.5 * slices)[0] == option
    assert hindrance(Served(4, "ps", quantum_s=0.5), classed=False, work_s=0.5 * slices) == ("", "")


def test_an_unreplayable_quantum_is_no_replay_and_no_wait(log):
    found = settle(log, Served(2, "rr", quantum_s=1e-12), 1e3)
    assert not found.served.replayed
    assert found.notes[0].startswith("no replay under rr: should be at least")


@pytest.mark.parametrize("policy", REFUTED)
@pytest.mark.parametrize(("to", "speeds"), [((3,), ()), ((1,), ()), ((), (2.0,))])
def test_bounds_that_are_no_theorem_have_a_note(policy, to, speeds):
    assert [f"under {policy} the bounds" in note for note in caveats(Served(2, policy), to, speeds)] == [True]


@pytest.mark.parametrize("policy", ["fcfs", "lcfs_pr", "ps", "fb", "srpt", "priority"])
def test_bounds_that_are_theorems_have_none(policy):
    assert list(caveats(Served(2, policy), (1, 3), (2.0,))) == []


@pytest.mark.parametrize(
    ("to", "speeds", "changes"),
    [((1, 3), (), "more"), ((2,), (2.0,), "faster"), ((3,), (2.0,), "more or faster"), ((2,), (1.0, 0.5), None)],
)
def test_without_a_policy_the_note_says_what_is_assumed(to, speeds, changes):
    notes = [f"no policy known: the bounds assume that {changes} servers never delay completions"] if changes else []
    assert list(caveats(Served(2), to, speeds)) == notes


def test_nothing_is_settled_about_a_log_without_pairs(log):
    found = settle(Cleaned(log.arrival_s, np.sort(log.departure_s), (), 0, paired=False), Served(2, "ps"), 1.0)
    assert found.served.policy is None
    assert math.isnan(found.misfits)


def test_the_policy_is_looked_for_on_the_servers_that_were_said():
    """Milliseconds make other numbers of servers likelier, until demands are tested."""
    rng = np.random.default_rng(2)
    demand, arrival = rng.exponential(0.02, 8_000), np.cumsum(rng.exponential(0.04, 8_000))
    departure = serve("ps", arrival, demand, 1).departure_s
    stamped = Cleaned(np.floor(1e3 * arrival) / 1e3, np.floor(1e3 * departure) / 1e3, (), 0, paired=True)
    found = settle(stamped, Served(1), 1.0, find_out=True)
    assert (found.served.policy, found.identified["servers"], found.notes) == ("ps", 1, [])


def test_where_no_policy_is_identified_the_way_without_is_named():
    few = Cleaned(np.arange(50.0), np.arange(50.0) + 0.5, (), 0, paired=True)
    why, otherwise = settle(few, Served(1), 1.0, find_out=True).notes
    assert why == "no policy identified: 0 departures while more than 1 were present: it takes 20 to tell policies"
    assert "--policy fcfs" in otherwise
