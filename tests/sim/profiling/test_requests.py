"""Blocks of physics become blocks of what requests took."""

import heapq
from dataclasses import replace

import numpy as np
import pytest

from models.profiling.served import Served, ServedType
from sim.fleet import slots
from sim.fleet.arms import run_arm
from sim.profiling.collection import Collection
from sim.profiling.requests import ServedStay, ServicesAtWork, followed, serve_stay
from sim.profiling.setting import ProfileSetting
from tests.helpers.profiled_fleets import serving_fleet


@pytest.fixture(scope="module")
def setting():
    return ProfileSetting.of(serving_fleet())


@pytest.fixture(scope="module")
def collection(setting):
    return Collection.of(setting)


@pytest.fixture(scope="module")
def before(setting, collection):
    return next(run_arm(setting.day, setting.arm, visits=collection.visits))


@pytest.fixture(scope="module")
def after(setting, collection, before):
    return ServicesAtWork(setting.world, setting.day).serve(before, collection.visits)


def stays_of(setting):
    """Return the places of the service's stays in the day's order."""
    shop = setting.day.jobs.names.index("shop")
    return np.flatnonzero(setting.day.timeline.job[setting.day.order] == shop)


def test_counter_rows_and_traces_of_the_service_are_the_same_events(setting, after):
    block, _ = after
    at = 0
    for place in stays_of(setting):
        number = setting.day.order[place]
        length = setting.day.timeline.end_epoch[number] - setting.day.timeline.start_epoch[number]
        rows = block.rows[setting.day.row_start[place] : setting.day.row_start[place + 1]]
        np.testing.assert_allclose(rows[:, :4].sum(axis=0), block.trace[at : at + length, :4].sum(axis=0), rtol=1e-12)
        np.testing.assert_allclose(rows[:, 5].sum(), block.trace[at : at + length, 4].sum(), rtol=1e-12)
        at += length
    assert at == len(block.trace)


def test_the_fleet_and_its_stays_still_have_the_same_events(after):
    block, _ = after
    epochs = block.epoch_sums.sum(axis=(0, 1))
    for column, row in ((slots.E_CYCLES, 0), (slots.E_INSTRUCTIONS, 1), (slots.E_MISSES, 2), (slots.E_CPU_S, 3)):
        assert epochs[column] == pytest.approx(block.rows[:, row].sum(), rel=1e-11)


def test_rates_of_the_physics_stay_what_they_are(before, after):
    block, _ = after
    for column in range(5):
        np.testing.assert_allclose(
            block.trace[:, column] / block.trace[:, 3], before.trace[:, column] / before.trace[:, 3], rtol=1e-11
        )
    assert not np.allclose(block.trace[:, 3], before.trace[:, 3], rtol=1e-3)


def test_epochs_in_which_a_service_did_nothing_stay_so(setting, collection, before):
    """A load of 0 for an hour."""
    trace = before.trace.copy()
    trace[6:18] = 0.0
    block, log = ServicesAtWork(setting.world, setting.day).serve(replace(before, trace=trace), collection.visits)
    assert (block.trace[6:18] == 0.0).all()
    for name in ("trace", "rows", "epoch_sums", "visit_sums"):
        assert np.isfinite(getattr(block, name)).all(), name
    assert block.trace[18:, 3].min() > 0.0
    assert len(log["stay_requests"]["arrival_s"]) > 100


def test_jobs_that_are_not_served_keep_their_counters_to_the_last_bit(setting, before, after):
    block, _ = after
    served = np.zeros(len(before.rows), np.bool_)
    for place in stays_of(setting):
        served[setting.day.row_start[place] : setting.day.row_start[place + 1]] = True
    np.testing.assert_array_equal(block.rows[~served], before.rows[~served])
    assert (block.rows[served, 3] != before.rows[served, 3]).all()


def test_requests_counted_are_those_that_left(setting, after):
    block, tables = after
    columns = tables["stay_requests"]
    left = np.isfinite(columns["departure_s"])
    for place in stays_of(setting):
        number = setting.day.order[place]
        rows = block.rows[setting.day.row_start[place] : setting.day.row_start[place + 1]]
        assert rows[:, 4].sum() == (left & (columns["residence"] == number)).sum()


def test_visits_see_of_the_service_what_it_did_in_their_epoch(setting, collection, before, after):
    block, _ = after
    seen, day = 0, setting.day
    starts = {}
    at = 0
    for place in stays_of(setting):
        starts[int(place)] = at
        number = day.order[place]
        at += int(day.timeline.end_epoch[number] - day.timeline.start_epoch[number])
    for visit, slot in zip(*np.nonzero(block.visit_rows >= 0), strict=True):
        place = int(np.searchsorted(day.row_start, block.visit_rows[visit, slot], side="right") - 1)
        if place not in starts:
            np.testing.assert_array_equal(block.visit_sums[visit, slot], before.visit_sums[visit, slot])
            continue
        epoch = collection.visits.epoch[visit] - day.timeline.start_epoch[day.order[place]]
        np.testing.assert_allclose(block.visit_sums[visit, slot], block.trace[starts[place] + epoch], rtol=1e-12)
        seen += 1
    assert seen > 5


def test_a_service_that_the_fleet_has_not_is_refused(setting):
    wrong = replace(setting.world, served=(replace(setting.world.served[0], job="shopp"),))
    with pytest.raises(ValueError, match="served: no job is named shopp"):
        followed(wrong, setting.day)


def test_an_instance_with_a_finite_buffer_turns_requests_away_when_it_is_full():
    fleet = serving_fleet()
    limited = replace(fleet, simulation="events", horizon_s=7200.0, served=(replace(fleet.served[0], capacity=3),))
    setting = ProfileSetting.of(limited)
    day, visits = setting.day, Collection.of(setting).visits
    _, tables = ServicesAtWork(limited, day).serve(next(run_arm(day, setting.arm, visits=visits)), visits)
    served, refused = tables["stay_requests"], tables["stay_unserved"]
    assert len(refused["arrival_s"]) > 20
    for number in np.unique(served["residence"]):
        own, away = served["residence"] == number, refused["residence"] == number
        come, gone = served["arrival_s"][own], np.sort(served["departure_s"][own])
        drawn = day.requests(int(number)).arrival_s
        np.testing.assert_array_equal(np.sort(np.append(come, refused["arrival_s"][away])), drawn)
        there = np.searchsorted(come, refused["arrival_s"][away]) - np.searchsorted(gone, refused["arrival_s"][away])
        assert (there == 3).all()
        assert (np.arange(come.size) - np.searchsorted(gone, come, "right") < 3).all()


def test_a_fleet_cut_into_power_domains_is_served_like_the_whole(setting, collection, after):
    whole, tables = after
    columns = tables["stay_requests"]
    service, day = ServicesAtWork(setting.world, setting.day), setting.day
    cut = run_arm(day, setting.arm, visits=collection.visits, around=np.arange(day.machines.count))
    parts = [service.serve(block, collection.visits) for block in cut]
    assert len(parts) > 1
    for name in ("rows", "trace", "epoch_sums", "visit_sums"):
        together = np.concatenate([getattr(block, name) for block, _ in parts])
        np.testing.assert_array_equal(together, getattr(whole, name))
    for name in ("residence", "request", "arrival_s", "departure_s"):
        np.testing.assert_array_equal(np.concatenate([each["stay_requests"][name] for _, each in parts]), columns[name])


EDGES_S = 600.0 + 300.0 * np.arange(9)
PACE_S = np.array([4.0, 7.0, 3.0, 5.0, 9.0, 2.0, 6.0, 4.0]) * 1e-10
MIXED = Served(
    "shop",
    types=(
        ServedType("view", weight=3.0, size=0.5, swing=0.9, peak_hour=0.0),
        ServedType("buy", weight=1.0, size=2.0, swing=0.9, peak_hour=12.0),
    ),
)


def stay(servers=2, instructions=6e11, each=2e10, pace_s=PACE_S):
    return ServedStay(EDGES_S, np.full(8, instructions), pace_s, each, servers)


def worked(log, of):
    """Return the instructions that the servers executed in each epoch, from the busy times."""
    return log.busy_s / of.pace_s


def first_come(arrival_s, work, of):
    """Serve requests in order of arrival, each step of a server followed through the epochs: slow, to be read."""
    free = [float(EDGES_S[0])] * of.servers
    left = []
    for start_s, instructions in zip(arrival_s, work, strict=True):
        todo = instructions
        now = max(heapq.heappop(free), start_s)
        while todo > 0 and now < EDGES_S[-1]:
            epoch = int(np.searchsorted(EDGES_S, now, side="right")) - 1
            room = (EDGES_S[epoch + 1] - now) / of.pace_s[epoch]
            done = min(todo, room)
            now = EDGES_S[epoch + 1] if done == room else now + done * of.pace_s[epoch]
            todo -= done
        left.append(np.nan if todo > 0 else now)
        heapq.heappush(free, np.inf if todo > 0 else now)
    return np.array(left)


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_first_come_first_served_is_what_following_each_server_through_the_epochs_says(servers):
    """Requests are all alike, so that their lengths are known without looking at how they were drawn."""
    one, of = Served("shop", "fcfs", request_cv=0.0), stay(servers)
    log = serve_stay(of, one, 5, 3)
    assert log.arrival_s.size > 150
    expected = first_come(log.arrival_s, np.full(log.arrival_s.size, 2e10), of)
    np.testing.assert_allclose(log.departure_s, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("policy", ["ps", "fcfs"])
def test_a_lone_request_takes_its_instructions_times_the_pace_of_the_epochs_that_it_meets(policy):
    asked = Served("shop", policy, request_cv=0.0)
    log = serve_stay(stay(servers=8, instructions=4e9, each=5e11), asked, 12, 2)
    assert log.arrival_s.size == 0 or np.isfinite(log.arrival_s).all()
    found = [serve_stay(stay(8, 4e9, 5e11), asked, 12, number) for number in range(300)]
    alone = [each for each in found if each.arrival_s.size == 1 and np.isfinite(each.departure_s[0])]
    assert len(alone) > 5
    for each in alone:
        expected = first_come(each.arrival_s, [5e11], stay(8, 4e9, 5e11))
        np.testing.assert_allclose(each.departure_s, expected, atol=1e-6)


@pytest.mark.parametrize("policy", ["ps", "fcfs"])
def test_busy_time_is_that_of_the_servers_that_the_requests_present_keep_busy(policy):
    of = stay()
    log = serve_stay(of, replace(MIXED, policy=policy), 5, 3)
    left = np.where(np.isnan(log.departure_s), EDGES_S[-1], log.departure_s)
    looks = EDGES_S[0] + (np.arange(80_000) + 0.5) * (2400.0 / 80_000)
    present = np.searchsorted(np.sort(log.arrival_s), looks) - np.searchsorted(np.sort(left), looks)
    sampled = np.minimum(present, 2).reshape(8, -1).mean(axis=1) * 300.0
    np.testing.assert_allclose(log.busy_s, sampled, atol=0.3)


def test_what_is_executed_is_what_finished_requests_asked_and_a_part_of_those_that_did_not():
    of = stay()
    log = serve_stay(of, Served("shop", "ps", request_cv=0.0), 5, 3)
    finished = np.isfinite(log.departure_s)
    executed = worked(log, of).sum()
    assert finished.sum() * 2e10 - 1 <= executed <= finished.size * 2e10 + 1


def test_requests_that_the_stay_outlives_not_have_no_departure_and_others_leave_within_it():
    log = serve_stay(stay(1, 9e12), MIXED, 5, 3)
    assert np.isnan(log.departure_s).any()
    left = log.departure_s[np.isfinite(log.departure_s)]
    assert left.max() <= EDGES_S[-1]
    assert (np.diff(log.arrival_s) >= 0).all()
    assert log.busy_s[1:] == pytest.approx(300.0)


def test_numbers_follow_from_seed_and_stay_alone():
    one, again, other = (serve_stay(stay(), MIXED, 5, number) for number in (3, 3, 4))
    np.testing.assert_array_equal(one.departure_s, again.departure_s)
    assert one.arrival_s.size != other.arrival_s.size or (one.arrival_s != other.arrival_s).any()


@pytest.mark.statistical
def test_as_many_requests_come_as_the_load_has_instructions_for():
    """A Poisson number of mean 24,000 within 4.5 standard errors: 1 in 150,000 runs."""
    log = serve_stay(stay(8, 6e13, 2e10), MIXED, 8, 1)
    assert abs(log.arrival_s.size - 24_000) < 4.5 * np.sqrt(24_000)


@pytest.mark.statistical
def test_types_come_by_their_weights_at_the_hour_and_sizes_have_the_mean_asked_for():
    """A binomial share of 24,000 within 4.5 standard errors, and instructions within 4.5 of theirs: 1 in 70,000.

    At half past midnight view weighs 3 × 1.9 and buy 0.1, by the cosine of a quarter of an hour to within 0.02.
    """
    log = serve_stay(stay(64, 6e13, 2e10), replace(MIXED, request_cv=0.0), 8, 1)
    share = 0.1 / (3 * 1.9 + 0.1)
    assert abs((log.kind == 1).mean() - share) < 4.5 * np.sqrt(share / 24_000) + 0.002
    size = np.where(log.kind == 1, 2.0, 0.5) / ((3 * 0.5 + 2.0) / 4)
    total = np.where(np.isfinite(log.departure_s), size, 0.0).sum() * 2e10
    assert worked(log, stay(64)).sum() == pytest.approx(total, rel=0.01)
