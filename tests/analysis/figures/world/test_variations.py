"""What a switch moves, on pairs of tables in which the move was put by hand."""

import numpy as np
import pandas as pd
import pytest

from analysis.figures.world.variations import job_cv, moved, rack_variance_ratio, slowdown
from analysis.statistics import NotEnoughDataError

RNG = np.random.default_rng(1)
MACHINE = np.repeat(np.arange(400), 5)
BASE = pd.DataFrame(
    {
        "residence": np.arange(2000),
        "job": np.arange(2000) % 50,
        "machine": MACHINE,
        "rack": MACHINE // 20,
        "weight": 1.0,
        "value": np.exp(0.3 * RNG.standard_normal(2000)),
    }
)


def changed(log_factor):
    return BASE.assign(value=BASE["value"] * np.exp(log_factor))


def test_nothing_moves_between_equal_tables():
    assert moved(BASE, BASE) == 0
    assert np.isnan(rack_variance_ratio(BASE, BASE))


def test_the_median_move_is_found_whatever_the_order_and_the_missing_rows():
    other = changed(np.where(np.arange(2000) % 2, np.log(1.1), np.log(0.9)))
    assert moved(BASE, other.sample(frac=0.5, random_state=1)) == pytest.approx(0.1)


def test_a_change_that_racks_share_has_a_large_ratio_and_one_of_machines_has_not():
    """The ratio of a change of machines' own is F with 19 and 380 degrees: above 2 in 1 of 120 seeds."""
    of_rack = changed(0.01 * RNG.standard_normal(20)[BASE["rack"]] + 0.01 * RNG.standard_normal(400)[MACHINE])
    of_machine = changed(0.01 * RNG.standard_normal(400)[MACHINE])
    assert rack_variance_ratio(BASE, of_rack) > 5
    assert rack_variance_ratio(BASE, of_machine) < 2


def test_the_ratio_needs_two_racks_of_which_one_has_two_machines():
    with pytest.raises(NotEnoughDataError, match="2 racks of two machines are needed, 1 given"):
        rack_variance_ratio(BASE.assign(rack=1), BASE)
    with pytest.raises(NotEnoughDataError, match="2 racks of two machines are needed, 1 given"):
        rack_variance_ratio(BASE.assign(rack=MACHINE), BASE)


def test_the_spread_within_a_job_leaves_small_jobs_out():
    table = pd.DataFrame({"job": [1] * 20 + [2] * 19, "weight": 1.0, "value": [0.8, 1.2] * 10 + [1.0] * 19})
    assert job_cv(table) == pytest.approx(0.2)
    with pytest.raises(NotEnoughDataError, match="20 stays of one job are needed, 19 given"):
        job_cv(table[table["job"] == 2])


def test_slowdown_is_the_median_over_the_job_alone():
    table = pd.DataFrame({"job": [1, 1, 2], "value": [0.5, 0.4, 0.1]})
    assert slowdown(table, pd.DataFrame({"job": [2, 1], "cpi": [8.0, 2.0]})) == pytest.approx(1.25)
