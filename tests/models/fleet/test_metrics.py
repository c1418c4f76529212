from typing import get_args

import pytest

from models.fleet.metrics import METRICS, MetricName, metric_of
from models.tables import COUNTERS


def test_the_table_of_metrics_has_every_name_that_a_scenario_may_say():
    assert tuple(METRICS) == get_args(MetricName)
    assert all(name == metric.name for name, metric in METRICS.items())


def test_a_metric_needs_counters_that_runs_have():
    there = {column.name for column in COUNTERS}
    assert all({*metric.columns} <= there for metric in METRICS.values())


def test_an_unknown_metric_says_which_there_are():
    with pytest.raises(
        ValueError, match=r"^metric must be one of ipc, ips, requests_per_cpu_s, requests_per_s, got x$"
    ):
        metric_of("x")
