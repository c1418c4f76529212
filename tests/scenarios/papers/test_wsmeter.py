"""Rows of WSMeter that are measured in two metrics."""

from types import SimpleNamespace

import pandas as pd

from analysis.figures.criteria import numbers
from scenarios.papers.wsmeter import OnHalves


def outcome(measure):
    row = OnHalves("wsmeter/fig2", "jobs", ("dvfs_policy",), measure, None, also=measure)
    return row.outcome(SimpleNamespace(halves=lambda _scenario, metric: metric))


def test_single_numbers_of_the_other_metric_stand_beside():
    told = outcome(lambda metric: numbers(change={"ipc": 0.1, "ips": 0.2}[metric]))
    assert dict(zip(told.measured["series"], told.measured["value"], strict=True)) == {"change": 0.1, "change_ips": 0.2}
    assert told.table.to_dict("records") == [{"": "change", "IPC": 0.1, "IPS": 0.2}]


def test_a_world_with_nothing_to_measure_is_an_answer():
    """No job changes clearly where memory is slow, for instance: its tables are empty."""
    told = outcome(lambda _metric: pd.concat([numbers()], ignore_index=True))
    assert told.measured.empty
    assert told.table.empty
