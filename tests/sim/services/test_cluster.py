"""A world's requests on a mixed cluster: nothing is lost, one machine is its platform, the load is what was asked."""

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest

from models.services.world import Application, Mechanisms, ServiceLoad, ServiceWorld
from sim.services import serving
from sim.services.cluster import gather, responses, route
from sim.services.work import Work

WORLD = ServiceWorld(seed=4, horizon_s=1200.0)
NOTHING = Mechanisms(**{field.name: False for field in fields(Mechanisms)})
PAIR = ("pres", "xeon_1h_2c_1p")


@pytest.fixture(scope="module")
def pair():
    return gather(WORLD, PAIR, 0.4)


def _delay_s(cluster, routed):
    """Delays at the other tiers of each request's machine."""
    kind = cluster.work.activity[cluster.work.request]
    mean_s = np.array([site.other_tiers_s for site in cluster.sites])
    return cluster.work.delay * mean_s[routed["machine"], kind]


@pytest.mark.parametrize("router", ["round_robin", "least_loaded", "least_expected", "least_added"])
def test_every_request_is_served_once_after_it_came(pair, router):
    routed = route(pair, router, pair.idle_s)
    assert routed["request"].tolist() == list(range(pair.work.request.size))
    np.testing.assert_array_equal(routed["arrival_s"], pair.work.arrival_s[pair.work.request])
    assert (routed["departure_s"] > routed["arrival_s"]).all()
    np.testing.assert_allclose(
        routed["response_s"], routed["departure_s"] - routed["arrival_s"] + _delay_s(pair, routed)
    )
    assert set(routed["machine"]) == {0, 1}


def test_a_cluster_of_one_is_the_platform_by_itself():
    one = gather(WORLD, ["pres"], 0.4)
    alone = serving.run(one.sites[0], one.work, one.edge_s)
    routed = route(one, "least_expected", one.idle_s)
    np.testing.assert_allclose(routed["response_s"], alone.response_s, rtol=1e-6)


def test_a_machine_that_gets_everything_is_as_slow_as_if_it_were_alone(pair):
    """Demands follow from what a machine really gets, not from its part of what it could get."""
    first = np.tile([1.0, 0.0], (pair.sites[0].activities.types, 1))
    alone = serving.run(pair.sites[0], pair.work, pair.edge_s)
    np.testing.assert_allclose(route(pair, "round_robin", first)["response_s"], alone.response_s, rtol=1e-6)


def test_the_load_is_the_share_of_what_the_machines_can_do_that_was_asked():
    """Poisson counts of 3,000 to 60,000 requests: four standard deviations, called false in 1 of 10,000."""
    steady = replace(WORLD, load=ServiceLoad(swing=0.0, mix_log_sd=0.0, trend_log_sd=0.0))
    for load in (0.1, 0.6):
        cluster = gather(steady, PAIR, load)
        expected = load * cluster.capacity_per_s.sum() * steady.horizon_s
        assert abs(cluster.work.request.size - expected) < 4 * np.sqrt(expected)


def test_one_type_of_machines_twice_is_two_machines():
    twins = gather(WORLD, ["pres", "pres"], 0.3)
    assert twins.capacity_per_s[0] == twins.capacity_per_s[1]
    routed = route(twins, "round_robin")
    np.testing.assert_array_equal(np.bincount(routed["machine"])[:2] / len(routed) > 0.49, [True, True])


def test_weights_keep_types_to_their_machines(pair):
    types = pair.sites[0].activities.types
    only = np.eye(2)[np.arange(types) % 2]
    routed = route(pair, "round_robin", only)
    names = pair.sites[0].activities.names
    place = routed["type"].map({name: i % 2 for i, name in enumerate(names[:types])})
    np.testing.assert_array_equal(routed["machine"], place)


def of_kinds(kinds, arrival_s):
    """Work of one interval: what each job is and when it comes, mean sizes, no other tiers."""
    kind, types = np.array(kinds), Application().types
    request = np.flatnonzero(kind < types)
    nothing = np.zeros(request.size)
    return Work(np.array(arrival_s), np.zeros(kind.size, int), kind, np.ones(kind.size), request, nothing)


def test_a_collection_is_where_the_request_is_that_brought_it_about_and_ticks_are_everywhere(pair):
    """One processor each: who comes after the collection or a tick to its machine waits, elsewhere nobody does."""
    only = np.eye(2)[np.arange(Application().types) % 2]

    def slowed(extra):
        kinds, arrival_s = [0, 1, *extra, 0, 1], [0.0, 100.0, *[200.0] * len(extra), 200.0, 200.0]
        one = replace(pair, work=of_kinds(kinds, arrival_s), edge_s=np.array([0.0, 1e6]))
        one = replace(one, sites=tuple(replace(site, machine=replace(site.machine, cores=1)) for site in one.sites))
        return route(one, "round_robin", only)["response_s"].to_numpy()[2:]

    collection, tick = Application().types, Application().types + 1
    np.testing.assert_array_equal(slowed([collection]) > 1.01 * slowed([]), [False, True])
    np.testing.assert_array_equal(slowed([tick]) > 1.01 * slowed([]), [True, True])


def test_without_any_mechanism_a_light_load_takes_what_requests_demand():
    """1% load: those who wait are fewer than that, so the mean is within 5% of demand and delays elsewhere."""
    bare = replace(WORLD, mechanisms=NOTHING, application=Application(types=3), horizon_s=3600.0)
    cluster = gather(bare, PAIR, 0.01)
    routed = route(cluster, "round_robin")
    kind = cluster.work.activity[cluster.work.request]
    own = cluster.idle_s[kind, routed["machine"]] * cluster.work.size[cluster.work.request]
    assert routed["response_s"].mean() == pytest.approx((own + _delay_s(cluster, routed)).mean(), rel=0.05)


def test_routing_the_same_world_again_gives_the_same(pair):
    pd.testing.assert_frame_equal(route(pair, "least_added", pair.idle_s), route(pair, "least_added", pair.idle_s))


def test_responses_are_told_of_all_and_type_by_type(pair):
    routed = route(pair, "least_loaded")
    told = responses(routed)
    assert told["type"][0] == "all"
    assert told["requests"][0] == told["requests"][1:].sum() == len(routed)
    assert told["p99_s"][0] == pytest.approx(np.quantile(routed["response_s"], 0.99))
    weighted = (told["mean_s"] * told["requests"])[1:].sum() / len(routed)
    assert told["mean_s"][0] == pytest.approx(weighted)


@pytest.mark.parametrize(
    ("platforms", "load", "message"),
    [
        ([], 0.4, "platforms is empty, must name at least one machine"),
        (["pres"], 0.0, "load is 0, must be positive and finite"),
        (["pres"], np.nan, "load is nan, must be positive and finite"),
        (["prez"], 0.4, "no platform 'prez'"),
    ],
)
def test_what_is_wrong_is_said(platforms, load, message):
    with pytest.raises(ValueError, match=message):
        gather(WORLD, platforms, load)
