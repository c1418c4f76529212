import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, t

from analysis.statistics import NotEnoughDataError
from benchmarks.real_splits import coverage, splits


def normal_machines(machines):
    value = np.random.default_rng(0).normal(10, 1, machines)
    return pd.DataFrame({"job": "all", "machine": np.arange(machines), "weight": 1.0, "value": value})


@pytest.mark.statistical
def test_intervals_hold_no_change_as_often_as_student_says_where_machines_are_normal():
    """False-alarm rate: 1e-4, by the binomial law; Student with 11 degrees of freedom covers 93% at t = 2.

    The two halves of one finite table differ: with 12 of 2,000 machines that widens the error by 0.6%.
    """
    row = coverage(splits(normal_machines(2000), [12], 400, seed=1))[0]
    assert (row["splits"], row["estimator"], row["current_is"]) == (400, "wsmeter", "population")
    assert binomtest(round(row["covers"] * 400), 400, 1 - 2 * t.sf(2, 11)).pvalue > 1e-4
    assert row["covers"] + row["too_low"] + row["too_high"] == pytest.approx(1)


def test_no_machine_is_on_both_sides_of_a_split():
    """With all of the other half drawn, what one side has of the fast machines the other side lacks."""
    made = splits(normal_machines(20).assign(value=[1.0] * 10 + [3.0] * 10), [10], 30, seed=2)
    possible = [(1 + 2 * (10 - fast) / 10) / (1 + 2 * fast / 10) - 1 for fast in range(11)]
    assert all(min(abs(change - one) for one in possible) < 1e-12 for change in made["change"])
    assert made["change"].nunique() > 2


def test_more_machines_than_half_a_table_are_refused():
    with pytest.raises(NotEnoughDataError, match=r"^22 machines are needed, 20 given$"):
        splits(normal_machines(20), [11], 1, seed=1)


def test_tails_are_warned_of_and_normal_machines_are_not():
    rare = normal_machines(2000).assign(value=[0.5] * 50 + [1.0 + machine / 1e5 for machine in range(1950)])
    made = {name: coverage(splits(table, [20], 20, seed=1))[0] for name, table in
            (("rare", rare), ("normal", normal_machines(2000)))}  # fmt: skip
    assert made["rare"]["warned"] == 1.0
    assert made["rare"]["covers_else"] is None
    assert made["normal"]["warned"] == 0.0
    assert made["normal"]["covers_else"] == made["normal"]["covers"]
