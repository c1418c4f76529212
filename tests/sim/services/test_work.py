"""All jobs of a world: requests, the collections they bring about, and ticks."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.services.world import Mechanisms, ServiceWorld
from sim.services import capacity, mixes, work

WORLD = ServiceWorld(seed=4, horizon_s=1800.0, platforms=("piii",))


def _drawn(world):
    service = capacity.sites(world)["piii"].activities
    load = mixes.draw(world, service.popularity)
    return service, load, work.draw(world, service, load)


def test_requests_are_those_that_arrive_and_counts_find_them_all():
    service, load, jobs = _drawn(WORLD)
    arrival_s, kind = mixes.arrive(WORLD, load)
    np.testing.assert_array_equal(jobs.arrival_s[jobs.request], arrival_s)
    np.testing.assert_array_equal(jobs.activity[jobs.request], kind)
    counts = work.counts(jobs, 60, service.types)
    assert counts.sum() == arrival_s.size
    expected = [np.sum((kind == 0) & (arrival_s // 30 == i)) for i in range(60)]
    np.testing.assert_array_equal(counts[:, 0], expected)


def test_jobs_come_in_order_of_arrival_in_the_interval_they_are_said_to():
    _, _, jobs = _drawn(WORLD)
    assert (np.diff(jobs.arrival_s) >= 0).all()
    np.testing.assert_array_equal(jobs.interval, (jobs.arrival_s // 30).astype(int))


def test_ticks_come_once_a_second_and_no_mechanism_means_no_job():
    service, _, jobs = _drawn(WORLD)
    assert (jobs.activity == service.types + 1).sum() == 1800
    _, _, bare = _drawn(replace(WORLD, mechanisms=Mechanisms(collection=False, ticks=False)))
    assert bare.request.size == bare.arrival_s.size


def test_collections_come_as_often_as_the_activities_rates_say():
    service, _, jobs = _drawn(WORLD)
    kind = jobs.activity[jobs.request]
    expected = (service.collections_per_request[kind] * jobs.size[jobs.request]).sum()
    assert (jobs.activity == service.types).sum() == pytest.approx(expected, abs=1)


@given(st.lists(st.floats(0, 50), max_size=30), st.floats(1, 40))
def test_a_collection_comes_whenever_the_heap_is_full(allocated, heap):
    filled, expected = 0.0, []
    for i, more in enumerate(allocated):
        before, filled = filled // heap, filled + more
        expected += [i] * int(filled // heap - before)
    assert work.collections(np.array(allocated), heap).tolist() == expected


@pytest.mark.statistical
def test_requests_of_one_type_differ_as_asked_and_not_at_all_without_noise():
    """False alarms below 1e-3: 20,000 gamma draws."""
    world = replace(WORLD, load=replace(WORLD.load, requests_per_s=11.0))
    _, _, jobs = _drawn(world)
    size = jobs.size[jobs.request]
    assert size.mean() == pytest.approx(1.0, abs=3.3 * 0.4 / np.sqrt(size.size))
    assert size.std() == pytest.approx(0.4, rel=0.03)
    _, _, bare = _drawn(replace(world, mechanisms=Mechanisms(request_noise=False)))
    assert (bare.size == 1).all()


@pytest.mark.statistical
def test_the_other_tiers_delay_each_type_by_its_mean():
    """False alarms below 1e-3: about 3,000 delays of the first type."""
    _, _, jobs = _drawn(replace(WORLD, load=replace(WORLD.load, requests_per_s=11.0)))
    first = jobs.activity[jobs.request] == 0
    error = 3.3 * work.OTHER_TIERS_CV / np.sqrt(first.sum())
    assert jobs.delay[first].mean() == pytest.approx(1.0, rel=error)
