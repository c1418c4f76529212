"""How a log was served, what other servers would change beside what such servers really do, and what bounds assume."""

import math

import numpy as np
import pytest

from analysis.occupancy.curve import curve
from analysis.occupancy.inversion import drawn_demands
from analysis.occupancy.logs.log import Cleaned
from models.queues.policies import MOST_SLICES
from models.queues.serve import serve
from scenarios.occupancy.discipline import Discipline, hindrance, settle, station_under
from scenarios.occupancy.occupancy import capacity, caveats, log_percentiles, speeds

REFUTED = ("lcfs", "sjf", "random", "rr")


@pytest.fixture(scope="module")
def log():
    """A log of processor sharing on two servers."""
    rng = np.random.default_rng(12)
    arrival = rng.exponential(0.9, 1_000).cumsum()
    return Cleaned(arrival, serve("ps", arrival, rng.exponential(1.5, 1_000), 2).departure_s, (), 0, paired=True)


def test_a_policy_that_the_log_does_not_contradict_is_kept_with_its_demands(log):
    discipline = settle(log, Discipline(2, "ps"), 1.0)
    assert (discipline.policy, discipline.replayed, discipline.misfits, discipline.notes) == ("ps", True, 0.0, ())
    assert discipline.reconstruction is not None


def test_a_policy_that_the_log_contradicts_is_no_policy(log):
    discipline = settle(log, Discipline(2, "fcfs"), 1.0)
    assert discipline.policy is None
    assert discipline.misfits > 0.02
    assert discipline.notes[0].startswith(f"no replay under fcfs: {discipline.misfits:.1%} of the departures while")


def test_a_policy_that_cannot_be_replayed_is_still_known(log):
    discipline = settle(log, Discipline(2, "random"), 1.0)
    assert (discipline.policy, discipline.replayed) == ("random", False)
    assert discipline.notes[0].startswith("no replay under random: cannot be replayed on 2 servers")


def test_random_order_on_several_servers_has_brackets_of_a_course_that_it_may_have_taken():
    """Four servers are full to 90%; blocks of time, which know nothing of that, are far narrower."""
    rng = np.random.default_rng(3)
    arrival, demand = np.cumsum(rng.exponential(1.0, 4_000)), rng.exponential(3.6, 4_000)
    departure = serve("random", arrival, demand, 4, choice=rng.random(4_000)).departure_s
    assert drawn_demands(arrival, departure, 4).sum() == pytest.approx(demand.sum(), rel=1e-3)
    for tick_s in (0.05, 0.7):  # two may leave in a tick in which one of them was taken
        came, left = (np.floor(stamps / tick_s) * tick_s for stamps in (arrival, departure))
        assert drawn_demands(came, left, 4).sum() == pytest.approx(demand.sum(), rel=0.01)
    log = Cleaned(arrival, departure, (), 0, paired=True)
    blocks, drawn = log_percentiles(log, None, 4), log_percentiles(log, None, 4, "random")
    assert drawn.waiting == ()
    for narrow, wide in zip(blocks.response[1:4], drawn.response[1:4], strict=True):
        assert narrow.value_s == wide.value_s
        assert wide.low_s < narrow.low_s < narrow.high_s < wide.high_s


def test_requests_that_had_not_left_are_told(log):
    cut = np.where(log.departure_s > log.departure_s.max() - 1, np.nan, log.departure_s)
    notes = settle(Cleaned(log.arrival_s, cut, (), 0, paired=True), Discipline(2, "ps"), 1.0).notes
    assert np.isnan(cut).sum() == 1
    assert notes == ("the replay serves 1 request that had not left only what it had got by then",)


@pytest.mark.parametrize(("slices", "option"), [(MOST_SLICES, ""), (MOST_SLICES * 1.01, "--quantum")])
def test_so_many_slices_may_be_replayed(slices, option):
    assert hindrance(Discipline(4, "rr", quantum_s=0.5), classed=False, work_s=0.5 * slices)[0] == option
    assert hindrance(Discipline(4, "ps", quantum_s=0.5), classed=False, work_s=0.5 * slices) == ("", "")


def test_an_unreplayable_quantum_is_no_replay_and_no_wait(log):
    discipline = settle(log, Discipline(2, "rr", quantum_s=1e-12), 1e3)
    assert not discipline.replayed
    assert discipline.notes[0].startswith("no replay under rr: should be at least")


@pytest.mark.parametrize("policy", REFUTED)
@pytest.mark.parametrize(("to", "speeds"), [((3,), ()), ((1,), ()), ((), (2.0,))])
def test_bounds_that_are_no_theorem_have_a_note(policy, to, speeds):
    assert [f"under {policy} the bounds" in note for note in caveats(Discipline(2, policy), to, speeds)] == [True]


@pytest.mark.parametrize("policy", ["fcfs", "lcfs_pr", "ps", "fb", "srpt", "priority"])
def test_bounds_that_are_theorems_have_none(policy):
    assert list(caveats(Discipline(2, policy), (1, 3), (2.0,))) == []


@pytest.mark.parametrize(
    ("to", "speeds", "changes"),
    [((1, 3), (), "more"), ((2,), (2.0,), "faster"), ((3,), (2.0,), "more or faster"), ((2,), (1.0, 0.5), None)],
)
def test_without_a_policy_the_note_says_what_is_assumed(to, speeds, changes):
    notes = [f"no policy known: the bounds assume that {changes} servers never delay completions"] if changes else []
    assert list(caveats(Discipline(2), to, speeds)) == notes


def test_nothing_is_settled_about_a_log_without_pairs(log):
    discipline = settle(Cleaned(log.arrival_s, np.sort(log.departure_s), (), 0, paired=False), Discipline(2, "ps"), 1.0)
    assert discipline.policy is None
    assert math.isnan(discipline.misfits)


def test_the_policy_is_looked_for_on_the_servers_that_were_said():
    """Milliseconds make other numbers of servers likelier, until demands are tested."""
    rng = np.random.default_rng(2)
    demand, arrival = rng.exponential(0.02, 8_000), np.cumsum(rng.exponential(0.04, 8_000))
    departure = serve("ps", arrival, demand, 1).departure_s
    stamped = Cleaned(np.floor(1e3 * arrival) / 1e3, np.floor(1e3 * departure) / 1e3, (), 0, paired=True)
    discipline = settle(stamped, Discipline(1), 1.0)
    assert (discipline.policy, discipline.identified.servers, discipline.notes) == ("ps", 1, ())


def test_where_no_policy_is_identified_the_way_without_is_named():
    few = Cleaned(np.arange(50.0), np.arange(50.0) + 0.5, (), 0, paired=True)
    why, otherwise = settle(few, Discipline(1), 1.0).notes
    needed = "0 departures while more than 1 were present: at least 20 are needed"
    assert why == f"no policy identified: {needed}; a longer log, or one of busier hours, would decide"
    assert "--policy fcfs" in otherwise


@pytest.fixture(scope="module")
def load():
    rng = np.random.default_rng(12)
    return rng.exponential(0.9, 800).cumsum(), rng.exponential(1.5, 800), rng.integers(0, 3, 800)


def logged(load, policy):
    arrival, demand, priority = load
    return Cleaned(arrival, serve(policy, arrival, demand, 2, priority=priority).departure_s, (), 0, True, priority)


def queueing(load, policy, servers, speed=1.0):
    arrival, demand, priority = load
    served = serve(policy, arrival, demand / speed, servers, priority=priority)
    return float((served.departure_s - arrival - demand / speed).sum())


@pytest.mark.parametrize("policy", ["fcfs", "ps", "priority"])
def test_faster_servers_do_what_the_replay_says_within_the_bounds(load, policy):
    log = logged(load, policy)
    for row in speeds(log, curve(log.arrival_s, log.departure_s), Discipline(2, policy), [1.0, 1.5, 2.0]):
        true_s = queueing(load, policy, 2, row.speed)
        assert row.replay.queueing_s == pytest.approx(true_s, rel=1e-6)
        assert row.replay.low_s <= row.replay.queueing_s <= row.replay.high_s
        assert row.queueing_s_low - 1e-6 <= true_s <= row.queueing_s_high + 1e-6


def test_slower_servers_have_a_replay_and_no_bounds(load):
    log = logged(load, "fcfs")
    row = speeds(log, curve(log.arrival_s, log.departure_s), Discipline(2, "fcfs"), [0.9])[0]
    assert math.isnan(row.queueing_s_low)
    assert "not slower" in row.note
    assert row.replay.queueing_s == pytest.approx(queueing(load, "fcfs", 2, 0.9), rel=1e-6)


def test_first_come_first_served_is_known_to_divide_queueing_by_the_speed(load):
    log = logged(load, "fcfs")
    seen = curve(log.arrival_s, log.departure_s)
    known, unknown = (speeds(log, seen, Discipline(2, policy), [1.5])[0] for policy in ("fcfs", None))
    assert known.queueing_s_high <= queueing(load, "fcfs", 2) / 1.5 + 1e-6 < unknown.queueing_s_high
    assert unknown.replay is None


def test_other_numbers_of_servers_do_what_the_replay_says_under_priorities(load):
    log = logged(load, "priority")
    rows = capacity(log, curve(log.arrival_s, log.departure_s), Discipline(2, "priority"), [1, 3])
    for row in rows:
        true_s = queueing(load, "priority", row.bounds.to)
        assert row.replay.queueing_s == pytest.approx(true_s, rel=1e-6)
        assert row.bounds.queueing_low_s <= true_s <= row.bounds.queueing_high_s


@pytest.mark.parametrize("policy", ["fcfs", "ps", "priority"])
def test_percentiles_of_other_servers_are_those_that_they_really_have(load, policy):
    """On other numbers and at other speeds, to the request; another day's lie around them."""
    log = logged(load, policy)
    seen, discipline = curve(log.arrival_s, log.departure_s), settle(log, Discipline(2, policy), 1.0)
    station = station_under(log, discipline)
    fewer, more = capacity(log, seen, discipline, [1, 3], station)
    slow, fast = speeds(log, seen, discipline, [0.9, 2.0], station)
    for row, servers, speed in ((fewer, 1, 1.0), (more, 3, 1.0), (slow, 2, 0.9), (fast, 2, 2.0)):
        arrival, demand, priority = load
        response_s = serve(policy, arrival, demand / speed, servers, priority=priority).departure_s - arrival
        levels = [at.level for at in row.percentiles]
        true_s = np.quantile(response_s, levels, method="inverted_cdf")
        assert [at.value_s for at in row.percentiles] == pytest.approx(true_s, rel=1e-6)
        assert all(at.low_s < at.value_s < at.high_s for at in row.percentiles if math.isfinite(at.low_s))
        assert math.isfinite(row.percentiles[0].low_s)
        assert row.payload()["response_percentiles"][0]["level"] == 0.5


@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf])
def test_a_speed_that_is_none_is_refused(load, factor):
    log = logged(load, "ps")
    with pytest.raises(ValueError, match="speed"):
        speeds(log, curve(log.arrival_s, log.departure_s), Discipline(2), [factor])


def test_never_more_work_makes_the_interval_sharper_under_srpt(load):
    log = logged(load, "srpt")
    seen = curve(log.arrival_s, log.departure_s)
    known, unknown = (capacity(log, seen, Discipline(2, policy), [3])[0] for policy in ("srpt", None))
    assert queueing(load, "srpt", 3) <= known.bounds.queueing_high_s < unknown.bounds.queueing_high_s
    assert math.isnan(unknown.bounds.b3)


def test_a_policy_that_is_not_replayed_still_says_what_is_proved(load):
    log = logged(load, "fcfs")
    seen = curve(log.arrival_s, log.departure_s)
    row = capacity(log, seen, Discipline(2, "fcfs", replayed=False), [3])[0]
    assert row.replay is None
    assert math.isfinite(row.bounds.b3)


def test_bounds_that_exclude_nothing_say_so():
    """Six at once on two servers: a third might have helped, but nobody knows whom; two of two never had a queue."""
    arrival, departure = np.zeros(6), np.array([1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
    crowd = Cleaned(arrival, departure, (), 0, paired=True)
    more, same, plenty = capacity(crowd, curve(arrival, departure), Discipline(2), [3, 2, 6])
    assert (more.bounds_say_nothing, more.change_says_nothing) == (False, False)
    assert (same.bounds_say_nothing, same.change_says_nothing) == (False, False)
    assert (plenty.bounds_say_nothing, plenty.change_says_nothing) == (False, False)
    alone = Cleaned(10 * np.arange(99.0), 10 * np.arange(99.0) + 1, (), 0, paired=True)
    fewer, more = capacity(alone, curve(alone.arrival_s, alone.departure_s), Discipline(2), [1, 3])
    assert fewer.change_says_nothing
    assert (more.bounds_say_nothing, more.change_says_nothing) == (False, False)


def test_an_interval_up_to_a_hundred_response_times_says_nothing_of_fewer_servers():
    rng = np.random.default_rng(3)
    arrival = rng.exponential(0.25, 4_000).cumsum()
    departure = arrival + rng.uniform(0.5, 1.0, 4_000)
    log = Cleaned(arrival, departure, (), 0, paired=True)
    seen = curve(arrival, departure)
    row = capacity(log, seen, Discipline(40), [int(seen.jobs.max())])[0]
    assert row.bounds.queueing_low_s == 0.0
    assert row.bounds.queueing_high_s > 100 * (departure - arrival).sum()
    assert (row.bounds_say_nothing, row.change_says_nothing) == (True, True)
