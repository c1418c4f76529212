"""A log replayed on other servers is what these servers would have made of the load."""

import numpy as np
import pytest

from analysis.occupancy.replay import explained, replay
from models.queues.serve import serve

VARIANTS = [(p, k) for p in ("fcfs", "lcfs", "lcfs_pr", "ps", "rr", "fb", "srpt", "sjf", "priority") for k in (1, 2, 4)]
VARIANTS += [("random", 1)]


def load(seed, n, servers, utilisation=0.8):
    rng = np.random.default_rng(seed)
    demand = rng.uniform(1, 2, n) if seed % 2 else rng.exponential(1.5, n)
    return np.cumsum(rng.exponential(1.5 / (utilisation * servers), n)), demand, rng.integers(0, 3, n), rng.random(n)


def queueing(arrival, departure, demand):
    return float((departure - arrival - demand).sum())


@pytest.mark.parametrize(("policy", "servers"), VARIANTS)
@pytest.mark.parametrize("to", [1, 2, 8])
def test_a_replay_is_the_simulation_with_other_servers(policy, servers, to):
    arrival, demand, classes, choice = load(servers, 2000, servers, 0.8 * min(1, to / servers))
    more = {"priority": classes, "choice": choice}
    log = serve(policy, arrival, demand, servers, **more).departure_s
    truth = serve(policy, arrival, demand, to, **more).departure_s
    found = replay(policy, arrival, log, servers, to, **more)
    np.testing.assert_allclose(found.departure_s, truth, rtol=0, atol=1e-9)
    assert found.queueing_s == pytest.approx(queueing(arrival, truth, demand), abs=1e-5)
    assert found.misfits == found.unfinished == 0


@pytest.mark.parametrize("policy", ["fcfs", "ps", "srpt", "fb"])
def test_a_replay_on_faster_servers_is_the_simulation_of_smaller_demands(policy):
    arrival, demand, _, _ = load(3, 1000, 2)
    log = serve(policy, arrival, demand, 2).departure_s
    truth = serve(policy, arrival, demand / 1.5, 2).departure_s
    np.testing.assert_allclose(replay(policy, arrival, log, 2, 2, speed=1.5).departure_s, truth, rtol=0, atol=1e-9)


def test_hyper_threads_are_replayed_as_hyper_threads():
    arrival, demand, _, _ = load(4, 1000, 2, 0.6)
    slow, slower = np.array([1.0, 1.4]), np.array([1.0, 1.4, 2.0])
    log = serve("ps", arrival, demand, 2, rates=slow).departure_s
    truth = serve("ps", arrival, demand, 3, rates=slower).departure_s
    found = replay("ps", arrival, log, 2, 3, rates=slow, to_rates=slower)
    np.testing.assert_allclose(found.departure_s, truth, rtol=0, atol=1e-9)


def test_the_bars_hold_the_queueing_of_demands_off_by_the_error():
    arrival, demand, _, _ = load(5, 1000, 2)
    log = serve("ps", arrival, demand, 2).departure_s
    found = replay("ps", arrival, log, 2, 1 + 2, error=0.1)
    for factor, bar in ((0.9, found.low_s), (1.1, found.high_s)):
        off = serve("ps", arrival, factor * demand, 3).departure_s
        assert queueing(arrival, off, factor * demand) == pytest.approx(bar, rel=1e-6)
    assert found.low_s < found.queueing_s < found.high_s


def test_without_error_there_are_no_bars():
    arrival, demand, _, _ = load(5, 200, 2)
    found = replay("fcfs", arrival, serve("fcfs", arrival, demand, 2).departure_s, 2, 1, error=0.0)
    assert found.low_s == found.queueing_s == found.high_s


@pytest.mark.parametrize(("servers", "to", "within"), [(1, 2, 0.004), (2, 4, 0.004), (4, 2, 0.04), (2, 1, 0.04)])
def test_time_slices_of_100_ms_replayed_as_processor_sharing_change_little(servers, to, within):
    """Change of queueing, relative to that of true round robin; demands 1 to 2 s."""
    arrival, demand, _, _ = load(1, 3000, min(servers, to), 0.7)
    log = serve("rr", arrival, demand, servers).departure_s
    truth = serve("rr", arrival, demand, to).departure_s
    before, after = queueing(arrival, log, demand), queueing(arrival, truth, demand)
    found = replay("ps", arrival, log, servers, to)
    assert before - found.queueing_s == pytest.approx(before - after, rel=within)


def test_requests_that_have_not_left_are_served_what_they_had():
    found = replay("fcfs", np.array([0.0, 1.0]), np.array([2.0, np.nan]), 1, 2)
    assert found.unfinished == 1
    np.testing.assert_array_equal(found.departure_s, [2.0, 1.0])


def test_rows_may_stand_in_any_order():
    arrival, departure = np.array([1.0, 0.0]), np.array([5.0, 3.0])
    np.testing.assert_array_equal(replay("fcfs", arrival, departure, 1, 2).departure_s, [3.0, 3.0])


def test_an_empty_log_queues_nobody():
    assert replay("ps", np.empty(0), np.empty(0), 1, 2).queueing_s == 0.0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"speed": 0.0}, "speed 0.0"),
        ({"speed": np.nan}, "speed nan"),
        ({"error": 1.0}, "error 1.0"),
        ({"error": -0.1}, "error"),
    ],
)
def test_what_cannot_be_done_is_said(more, said):
    with pytest.raises(ValueError, match=said):
        replay("ps", np.array([0.0]), np.array([1.0]), 1, 2, **more)


def test_an_unknown_policy_cannot_be_replayed():
    with pytest.raises(ValueError, match="policy unknown"):
        replay("unknown", np.array([0.0]), np.array([1.0]), 1, 2)


def test_random_order_without_choices_is_replayed_the_same_every_time():
    arrival, demand, _, choice = load(2, 300, 1)
    log = serve("random", arrival, demand, 1, choice=choice).departure_s
    one, two = (replay("random", arrival, log, 1, 2).departure_s for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("policy", "servers"), VARIANTS)
def test_the_log_of_a_policy_is_explained_by_it(policy, servers):
    arrival, demand, classes, choice = load(servers, 2000, servers)
    log = serve(policy, arrival, demand, servers, priority=classes, choice=choice).departure_s
    found = explained(policy, arrival, log, servers, priority=classes)
    assert (found.misfits, found.reason) == (0.0, "")
    assert found.again_s == pytest.approx(queueing(arrival, log, demand), rel=1e-6)


@pytest.mark.parametrize("servers", [1, 2])
def test_a_policy_that_contradicts_the_log_is_told_with_the_share_of_what_does(servers):
    arrival, demand, _, _ = load(servers, 2000, servers)
    log = serve("ps", arrival, demand, servers).departure_s
    found = explained("fcfs", arrival, log, servers)
    present = np.array([((arrival <= at) & (log > at)).sum() for at in log])
    assert found.misfits > 0.02
    assert found.misfits <= 2000 / (present >= servers).sum()
    assert found.reason.startswith(f"{found.misfits:.1%} of the departures while a request waited contradict it")


def test_few_contradictions_are_wrong_stamps():
    arrival, demand, _, _ = load(3, 2000, 1)
    log = serve("fcfs", arrival, demand, 1).departure_s
    crowded = np.flatnonzero(log[:-1] > arrival[1:])
    wrong = log.copy()
    wrong[crowded[100]], wrong[crowded[100] + 1] = log[crowded[100] + 1], log[crowded[100]]
    found = explained("fcfs", arrival, wrong, 1)
    assert 0 < found.misfits < 0.02
    assert found.reason == ""


def test_a_log_that_its_own_replay_does_not_meet_is_told():
    """One of 101 waited 1 s for a request of 1,000 s that it overtook; first come, first served, it waits for 999."""
    starts = 2000.0 + np.arange(100)
    arrival = np.concatenate([[0.0, 1.0], np.repeat(starts, 2)])
    departure = np.concatenate([[1000.0, 2.0], np.stack([starts + 0.01, starts + 0.02], axis=1).ravel()])
    found = explained("fcfs", arrival, departure, 1)
    assert found.misfits == pytest.approx(1 / 101)
    assert found.reason == "on the log's own servers it makes 1,000 s of 2 s of queueing"
    assert found.again_s == pytest.approx(1000.0)


def test_a_replay_takes_demands_that_are_there_already():
    arrival, demand, _, _ = load(5, 300, 2)
    log = serve("ps", arrival, demand, 2).departure_s
    made = explained("ps", arrival, log, 2).reconstruction
    one, two = replay("ps", arrival, log, 2, 3), replay("ps", arrival, log, 2, 3, reconstruction=made)
    np.testing.assert_array_equal(one.departure_s, two.departure_s)


def test_an_empty_log_contradicts_nothing():
    assert explained("fcfs", np.empty(0), np.empty(0), 1).reason == ""
