"""What a stay's counters say of its performance: the metrics of fleets, each once, with its unit and its words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

MetricName = Literal["ipc", "ips", "requests_per_cpu_s", "requests_per_s"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A performance metric: what is counted, over what it is per."""

    name: MetricName
    words: str
    unit: str
    counted: str
    """Counter above the line, a column of table `counters`."""
    per: str
    """Counter below it: the exposure, by which a machine's stays weigh in the performance of the machine."""
    per_cycle: bool = False
    """Whether a slower clock raises it although nothing gets faster."""


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("ipc", "instructions per cycle", "1/cycle", "instructions", "cycles", per_cycle=True),
        Metric("ips", "instructions per CPU second", "1/s", "instructions", "cpu_s"),
        Metric("requests_per_cpu_s", "requests per CPU second", "1/s", "requests", "cpu_s"),
        Metric("requests_per_s", "requests per second", "1/s", "requests", "wall_s"),
    )
}
"""All metrics, by name."""
