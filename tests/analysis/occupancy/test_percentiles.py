"""Brackets of percentiles from blocks of time, against other days of the same queue."""

import numpy as np

from analysis.occupancy.percentiles import percentiles, why_without
from models.arrays import Floats
from models.queues.serve import serve


def _day(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return response times and arrivals of a day whose busy half nearly fills four servers."""
    count = rng.poisson(6_000)
    grid = np.linspace(0, 1, 1001)
    share = grid + 0.3 * (1 - np.cos(2 * np.pi * grid)) / (2 * np.pi)
    arrived = np.sort(np.interp(rng.random(count), share, grid) * 6_000 / 3.4)
    return serve("fcfs", arrived, rng.exponential(1.0, count), 4).departure_s - arrived, arrived


def test_a_bracket_of_a_percentile_that_one_busy_hour_makes_holds_that_of_another_day() -> None:
    """Where 95% hold in truth, fewer than 106 of 120 pairs do with a probability of 0.1%.

    With eleven degrees of freedom for every percentile 88 ± 2% of 300 pairs hold, and fewer than 106 of these 120.
    """
    rng = np.random.default_rng(20_261_129)
    hold = 0
    for _ in range(120):
        (p99,) = percentiles(*_day(rng), levels=[0.99])
        hold += p99.low_s <= np.quantile(_day(rng)[0], 0.99, method="inverted_cdf") <= p99.high_s
    assert hold >= 106


def test_a_percentile_that_all_blocks_make_alike_is_known_as_of_independent_requests() -> None:
    """Response times drawn without a queue: the bracket of p90 is that of so many independent requests, of two days."""
    rng = np.random.default_rng(3)
    (p90,) = percentiles(rng.exponential(1.0, 12_000), np.arange(12_000.0), levels=[0.9])
    # The standard error of the logarithm of a sample quantile, sqrt(p (1 − p) / n) / (f(q) q), of two days.
    error = np.sqrt(2 * 0.9 * 0.1 / 12_000) / (0.1 * np.log(10))
    assert 0.6 < np.log(p90.high_s / p90.value_s) / (2.2 * error) < 1.7


def test_a_log_that_does_not_tell_another_days_percentiles_has_no_bracket_and_a_reason() -> None:
    """Nearly all requests of the log came in one stretch of time, so it says nothing of another day."""
    rng = np.random.default_rng(7)
    arrived = np.concatenate(([0.0], np.sort(rng.uniform(3_000.0, 3_036.0, 4_999))))
    rows = percentiles(np.concatenate(([1e-4], rng.exponential(1.0, 4_999))), arrived, levels=[0.5, 0.99])
    assert np.isnan([row.high_s for row in rows]).all()
    why = why_without(rows, 5_000)
    assert why.startswith("no bracket for p50 and p99: made in so few stretches of time")
