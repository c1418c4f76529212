"""The likelihood of a log under a policy: a density of departures, whatever the unit of time."""

import numpy as np
import pytest

from analysis.occupancy.inversion import Reconstruction
from analysis.occupancy.likelihood import MISFIT, log_likelihood


def made(demand, wrong=0, unfinished=0):
    """What a policy makes of a log of which the last requests contradict it, and those before them have not left."""
    fits, finished = np.full(len(demand), True), np.full(len(demand), True)
    fits[len(demand) - wrong :] = False
    finished[len(demand) - wrong - unfinished : len(demand) - wrong] = False
    return Reconstruction(np.asarray(demand, dtype=np.float64), fits, np.ones(len(demand)), finished)


@pytest.mark.parametrize("wrong", [0, 1, 7])
@pytest.mark.parametrize("unit", [1e-3, 60.0])
def test_another_unit_of_time_divides_the_density_of_every_departure_by_it_misfits_included(wrong, unit):
    demand = np.random.default_rng(1).exponential(1.0, 50)
    seconds = log_likelihood(made(demand, wrong, 3), 9.0)
    others = log_likelihood(made(demand * unit, wrong, 3), 9.0 * unit)
    assert seconds - others == pytest.approx(47 * np.log(unit))


def test_a_misfit_costs_its_probability_spread_over_the_longest_stay():
    demand = np.random.default_rng(2).exponential(1.0, 50)
    without, one = log_likelihood(made(demand), 20.0), log_likelihood(made([*demand, 1.0], wrong=1), 20.0)
    assert one - without == pytest.approx(np.log(MISFIT / 20.0))


def test_requests_that_have_not_left_do_not_count():
    demand = np.random.default_rng(3).exponential(1.0, 20)
    assert log_likelihood(made([*demand, 0.3], unfinished=1), 9.0) == log_likelihood(made(demand), 9.0)
