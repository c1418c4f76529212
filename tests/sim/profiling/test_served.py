"""Blocks of physics become blocks of what requests took."""

from dataclasses import replace

import numpy as np
import pytest

from sim.fleet import slots
from sim.fleet.fleet import run_arm
from sim.profiling.collection import Collection
from sim.profiling.served import Service, example, followed
from sim.profiling.setting import Setting


@pytest.fixture(scope="module")
def setting():
    return Setting.of(example())


@pytest.fixture(scope="module")
def collection(setting):
    return Collection.of(setting)


@pytest.fixture(scope="module")
def before(setting, collection):
    return next(run_arm(setting.day, setting.arm, visits=collection.visits))


@pytest.fixture(scope="module")
def after(setting, collection, before):
    return Service(setting.world, setting.day).serve(before, collection.visits)


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


def test_jobs_that_are_not_served_keep_their_counters_to_the_last_bit(setting, before, after):
    block, _ = after
    served = np.zeros(len(before.rows), np.bool_)
    for place in stays_of(setting):
        served[setting.day.row_start[place] : setting.day.row_start[place + 1]] = True
    np.testing.assert_array_equal(block.rows[~served], before.rows[~served])
    assert (block.rows[served, 3] != before.rows[served, 3]).all()


def test_requests_counted_are_those_that_left(setting, after):
    block, columns = after
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


def test_a_fleet_cut_into_power_domains_is_served_like_the_whole(setting, collection, after):
    whole, columns = after
    service, day = Service(setting.world, setting.day), setting.day
    cut = run_arm(day, setting.arm, visits=collection.visits, around=np.arange(day.machines.count))
    parts = [service.serve(block, collection.visits) for block in cut]
    assert len(parts) > 1
    for name in ("rows", "trace", "epoch_sums", "visit_sums"):
        together = np.concatenate([getattr(block, name) for block, _ in parts])
        np.testing.assert_array_equal(together, getattr(whole, name))
    for name in ("residence", "request", "arrival_s", "departure_s"):
        np.testing.assert_array_equal(np.concatenate([each[name] for _, each in parts]), columns[name])
