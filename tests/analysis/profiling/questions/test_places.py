"""Questions about machines, of profiles so small that the answers can be counted."""

import pandas as pd

from analysis.profiling.questions.places import colocate, old_hardware
from tests.helpers.profile_in_memory import ProfileTable


def test_old_hardware_is_compared_in_cycles_and_in_time():
    rows = {"application": "a", "platform": ["p", "p", "q", "q"], "visit": range(4), "day": 0, "samples": 9}
    cycles = pd.DataFrame(rows).assign(event="cycles", value=[300, 300, 100, 100])
    both = pd.concat([cycles, cycles.assign(event="instructions", value=100)], ignore_index=True)
    visits = pd.DataFrame({"collection": "all", "platform": ["p", "q"], "frequency_hz": [3.0, 2.0], "weight": 1})
    answer = old_hardware(ProfileTable(both, {"visits": visits}))
    columns = ["platform", "cpi", "cpi_elsewhere", "time_ratio"]
    assert answer[columns].to_numpy().tolist() == [["p", 3.0, 1.0, 2.0]]


def test_who_suffers_beside_whom_needs_machines_with_both():
    rows = {"event": "cycles", "application": "a", "platform": "p", "visit": range(6), "samples": 99}
    cycles = pd.DataFrame(rows).assign(machine=range(6), value=[200, 200, 210, 100, 101, 102])
    both = pd.concat([cycles, cycles.assign(event="instructions", value=100)], ignore_index=True)
    processes = pd.DataFrame({"visit": [0, 1, 2, 3, 4, 5, 0, 1, 2], "application": ["a"] * 6 + ["b"] * 3})
    beside = both.assign(application="b")
    profile = ProfileTable(pd.concat([both, beside[beside["visit"] < 3]]), {"processes": processes})
    answer = colocate(profile, min_visits=2, min_machines=2)
    assert answer[["application", "beside", "machines_beside"]].to_numpy().tolist() == [["a", "b", 3]]
