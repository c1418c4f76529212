"""Figures 8 and 9 hold in worlds with their finding and fail in worlds without it."""

from analysis.figures.wsmeter import dependence
from tests.helpers.reproduce_worlds import failing, fleet


def fig8(**world):
    made = fleet(**{"machines": 1000, "popularity": 0.8, **world})
    return dependence.measure_fig8(made, resamples=20)


def test_fig8_holds_where_instances_do_not_know_their_machine():
    assert failing("wsmeter/fig8", fig8()) == []


def test_fig8_fails_where_all_instances_of_a_machine_move_together():
    assert failing("wsmeter/fig8", fig8(machine_sd=0.2, job_sd=0.1)) == ["distance_correlation_high_max"]


def test_fig8_fails_with_fewer_than_three_jobs():
    assert failing("wsmeter/fig8", fig8(jobs=2)) == ["jobs"]


def fig9(**world):
    made = fleet(**{"machines": 2400, "jobs": 40, "popularity": 0.5, **world})
    return dependence.measure_fig9(made, resamples=40)


def test_fig9_holds_where_racks_have_nothing_of_their_own():
    assert failing("wsmeter/fig9", fig9()) == []


def test_fig9_fails_where_racks_differ_so_that_jobs_move_together():
    names = failing("wsmeter/fig9", fig9(rack_sd=0.1))
    assert {"median_pearson_high", "share_small_pearson_low", "share_small_distance_low"} <= set(names)
