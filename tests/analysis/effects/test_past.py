"""The past of a fleet: how long its periods are, and what longer studies gain by the formula."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.past import Past, drift, period_length
from tests.helpers.effect_studies import past


def test_drift_of_levels_that_stay_and_white_noise_is_that_of_the_formula():
    own, noise = 0.05**2, 0.1**2
    spread = {length: own + noise / length for length in (6, 24)}
    left = {length: whole - own**2 / whole for length, whole in spread.items()}
    made = drift(past(periods=12, machines=400, sd=0.1), 24, 6)
    assert made == pytest.approx(np.sqrt(left[24] / left[6]), abs=0.04)


def test_drift_of_machines_that_wander_is_that_of_their_course():
    """Three instances share the course of a machine, which keeps 0.9 from a period to the next, and each has noise.

    Of single instances half of the variance is noise: they would have errors change by 0.87 in place of 1.06.
    """
    lag = np.abs(np.subtract.outer(np.arange(28), np.arange(28)))
    covariance, left = 9 * 0.9**lag + 3 * (lag == 0), {}
    for length in (3, 14):
        before, across = covariance[:length, :length].mean(), covariance[:length, length : 2 * length].mean()
        left[length] = before - across**2 / before
    factors = [drift(wandering(np.random.default_rng(seed)), 14, 3) for seed in range(10)]
    assert np.mean(factors) == pytest.approx(np.sqrt(left[14] / left[3]), rel=0.12)


def test_drift_of_shards_that_wander_from_machine_to_machine_is_that_of_their_course():
    """Each shard keeps 0.9 from a period to the next, and is on another machine: of machines there is only noise."""
    rng = np.random.default_rng(3)
    fleet = wandering(rng)
    rows = fleet.table[fleet.table["job"] == 0].assign(shard=lambda table: table["machine"])
    moved = rows.assign(machine=rows.groupby("period")["machine"].transform(rng.permutation))
    stays = drift(Past(rows.drop(columns="shard"), 86400.0), 14, 3)
    assert drift(Past(moved, 86400.0), 14, 3) == pytest.approx(stays, rel=1e-9)
    assert drift(Past(moved.drop(columns="shard"), 86400.0), 14, 3) < 0.75 * stays


def wandering(rng, machines=200, periods=10):
    """Return a past of machines with a course of their own, and three instances on each with as much noise."""
    course = rng.standard_normal((periods, machines))
    for period in range(1, periods):
        course[period] = 0.9 * course[period - 1] + np.sqrt(1 - 0.9**2) * course[period]
    period, machine, job = (part.ravel() for part in np.indices((periods, machines, 3)))
    value = 1.0 + 0.05 * (course[period, machine] + rng.standard_normal(len(job)))
    row = {"period": period, "machine": machine, "job": job, "weight": 1.0, "treated": 0, "value": value}
    return Past(pd.DataFrame(row), 86400.0)


@pytest.mark.parametrize(
    ("columns", "length"),
    [
        ({"period": [0, 1]}, 86400.0),
        ({"period": [0, 1], "present_s": 3600.0}, 3600.0),
        ({"period": [0, 1], "present_s": 2700.0}, 3600.0),
        ({"period": [0, 1], "present_s": 86400.0}, 86400.0),
        ({"period": [0, 604800.0]}, 604800.0),
    ],
)
def test_how_long_periods_are(columns, length):
    assert period_length(pd.DataFrame(columns)) == length
