from typing import get_args

from models.fleet.metrics import METRICS, MetricName
from models.tables import COUNTERS


def test_the_table_of_metrics_has_every_name_that_a_scenario_may_say():
    assert tuple(METRICS) == get_args(MetricName)
    assert all(name == metric.name for name, metric in METRICS.items())


def test_a_metric_needs_counters_that_runs_have():
    there = {column.name for column in COUNTERS}
    assert all({metric.counted, metric.per} <= there for metric in METRICS.values())
