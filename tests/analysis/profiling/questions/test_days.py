"""Questions about days and machines that differ, of profiles so small that the answers can be counted."""

import pandas as pd

from analysis.profiling.questions.days import rollout, unsuited
from tests.helpers.profile_in_memory import ProfileTable


def test_a_rollout_is_its_share_of_each_day():
    rows = {"event": "cycles", "day": [0, 1, 1], "compiler": ["old", "old", "new"], "visit": range(3)}
    answer = rollout(ProfileTable(pd.DataFrame(rows).assign(samples=9, value=[4, 3, 1])))
    shares = answer[["day", "compiler", "share"]].to_numpy().tolist()
    assert shares == [
        [0, "old", 1.0],
        [1, "old", 0.75],
        [1, "new", 0.25],
    ]


def test_code_whose_machines_differ_is_unsuited_for_one_profile():
    rows = {"event": "cycles", "application": "a", "function": ["f", "g"] * 2, "machine": [0, 0, 1, 1]}
    answer = unsuited(ProfileTable(pd.DataFrame(rows).assign(samples=900, value=[8, 2, 2, 8])))
    assert answer[["distance", "reason"]].round(3).to_numpy().tolist() == [[0.6, "differs"]]
