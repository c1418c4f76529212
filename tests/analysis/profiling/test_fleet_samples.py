import pandas as pd

from analysis.profiling.fleet_samples import drawn_collections, of_fleet, undrawn, visits_of_fleet
from analysis.profiling.intervals import intervals_of
from analysis.profiling.query import Query
from tests.helpers.profile_in_memory import ProfileTable


def test_only_the_collection_of_the_fleet_stands_for_it():
    profile = ProfileTable(pd.DataFrame({"collection": ["fleet", "watch"]}))
    assert of_fleet(profile, "cycles", ("function",)).where == (("collection", ("fleet",)),)
    visits = pd.DataFrame({"collection": ["watch", "fleet"]})
    assert visits_of_fleet(ProfileTable(pd.DataFrame(), {"visits": visits}))["collection"].tolist() == ["fleet"]


def test_what_the_collector_drew_has_weights_or_power():
    visits = pd.DataFrame({"collection": ["fleet", "cpu.pb"], "weight": [12, 1], "power_w": float("nan")})
    assert drawn_collections(ProfileTable(pd.DataFrame(), {"visits": visits})) == {"fleet"}


def test_a_file_of_another_tool_is_no_random_sample():
    rows = {"event": "cycles", "collection": "cpu.pb", "visit": 0, "machine": [0], "samples": 3, "value": 3}
    visits = pd.DataFrame({"collection": ["cpu.pb"], "weight": [1], "power_w": float("nan")})
    profile = ProfileTable(pd.DataFrame(rows), {"visits": visits})
    assert undrawn(profile, Query()) == "no collector drew these machines at random"


def test_shares_of_a_profile_have_intervals_over_visits():
    rows = {"event": "cycles", "function": ["f", "g"], "visit": [0, 1], "samples": 3, "value": 3}
    wanted = pd.DataFrame({"function": ["f", "g"]})
    shares = intervals_of(ProfileTable(pd.DataFrame(rows)), Query(by=("function",)), wanted)
    assert shares["high"].round(2).tolist() == [1.0, 1.0]
