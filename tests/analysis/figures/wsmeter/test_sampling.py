"""Figures 7 and 11 hold in worlds with their finding and fail in worlds without it."""

import numpy as np
import pandas as pd
import pytest

from analysis.figures.criteria import number
from analysis.figures.wsmeter import sampling
from analysis.figures.wsmeter.draws import Halves
from tests.helpers.reproduce_worlds import failing, fleet


def machines(values):
    table = pd.DataFrame({"machine": range(len(values)), "job": 0, "weight": 1.0, "value": values})
    return Halves(table, table, pd.DataFrame({"job": [0], "quota": 1.0}))


@pytest.mark.statistical
def test_fig7_holds_for_machines_of_finite_variance():
    """Fixed seed; over seeds the bias criterion fails once in 16,000, the exponent's once in more."""
    made = fleet(machines=4000, job_sd=0.6)
    assert failing("wsmeter/fig7", sampling.measure_fig7(made)) == []


def test_fig7_fails_where_a_few_machines_decide_so_that_means_do_not_narrow():
    cauchy = 1.0 + 0.1 * np.random.default_rng(1).standard_cauchy(100_000)
    assert "exponent_low" in failing("wsmeter/fig7", sampling.measure_fig7(machines(cauchy)))


def test_fig7_means_narrow_by_ten_for_a_hundred_machines():
    normal = np.random.default_rng(1).normal(1.0, 0.1, 20_000)
    assert number(sampling.measure_fig7(machines(normal)), "exponent") == pytest.approx(0.5, abs=0.03)


def fig11(values):
    table = pd.concat([pd.DataFrame({"job": job, "value": values(job)}) for job in range(4)])
    return sampling.measure_fig11(Halves(table, table, pd.DataFrame({"job": range(4), "quota": 1.0})))


def test_fig11_holds_where_instances_are_not_far_from_normal():
    made = fig11(lambda job: np.random.default_rng(job).gamma(9.0, size=800))
    assert failing("wsmeter/fig11", made) == []


def test_fig11_fails_where_one_instance_in_a_hundred_is_far_out():
    made = fig11(lambda job: np.where(np.arange(800) % 100 == 0, 50.0, 1.0 + 1e-3 * np.arange(800) / 800))
    assert failing("wsmeter/fig11", made) == ["distance_high_20", "distance_high_4"]
