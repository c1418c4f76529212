"""Figures 12, 13 and 16, Table 1 and the efficiency hold in worlds with their finding and fail in worlds without it."""

import numpy as np
import pandas as pd
import pytest

from analysis.figures.criteria import number, printed
from analysis.figures.wsmeter import cost, plans
from analysis.figures.wsmeter.changes import NORMAL_95
from analysis.figures.wsmeter.draws import worst_step
from scenarios.papers.rows import published
from tests.helpers.reproduce_worlds import failing, fleet

HEAVY = np.arange(400) < 50


def many_jobs(**world):
    """Return a fleet of 400 jobs whose lighter ones are steadier and have smaller instances."""
    varied = {"instance_sd": np.where(HEAVY, 0.1, 0.06), "instance_quota": np.where(HEAVY, 1.0, 0.25)}
    return fleet(**{"machines": 2000, "jobs": 400, "popularity": 0.5, "job_sd": 0.6, **varied, **world})


def fig12(**world):
    made = many_jobs(**world)
    return plans.measure_fig12(made)


def test_fig12_holds_where_light_jobs_are_steady_and_small():
    assert failing("wsmeter/fig12", fig12()) == []


def test_fig12_fails_where_even_four_instances_beat_the_target():
    assert "margin_min4_gap" in failing("wsmeter/fig12", fig12(instance_sd=0.01))


def test_fig12_fails_where_twenty_instances_do_not_bind():
    assert {"cost_growth_min20", "margin_min20_max"} <= set(failing("wsmeter/fig12", fig12(instance_sd=0.3)))


def test_fig12_fails_where_more_jobs_cost_as_much_more():
    costs = plans.measure_fig12(many_jobs(instance_quota=1.0))
    assert "cost_growth_min4" in failing("wsmeter/fig12", costs)


def test_fig12_says_where_the_minimum_binds():
    steady, noisy = fig12(instance_sd=0.01), fig12(instance_sd=0.3)
    assert number(steady, "at_minimum_min20", 200) == 1.0
    assert number(noisy, "at_minimum_min4", 50) < number(noisy, "at_minimum_min20", 50) < 1.0


def test_fig12_has_every_margin_on_its_second_axis():
    measured = fig12()
    right = plans.fig12(measured, printed(published("wsmeter/fig12"))).axes[1]
    drawn = {line.get_label(): list(line.get_ydata()) for line in right.lines}
    for least in (4, 20):
        margins = [number(measured, f"margin_min{least}", top) for top in (50, 100, 200)]
        assert drawn[f"margin, min(N) = {least}"] == margins


def table1(**world):
    made = many_jobs(**world)
    return plans.measure_table1(made)


def test_table1_holds_where_four_instances_of_each_job_nearly_do():
    assert failing("wsmeter/table1", table1()) == []


def test_table1_fails_where_precision_is_dear():
    names = failing("wsmeter/table1", table1(instance_sd=0.4))
    assert {"share_at_minimum", "margin_over_target", "machines_growth"} <= set(names)


def test_table1_fails_where_there_are_fewer_jobs():
    made = fleet(jobs=60)
    assert "jobs" in failing("wsmeter/table1", plans.measure_table1(made))


def fig13(**world):
    made = fleet(**{"machines": 1000, "jobs": 300, **world})
    return cost.measure_fig13(made, draws=60)


def test_fig13_holds_where_instances_vary_and_light_jobs_are_rare():
    assert failing("wsmeter/fig13", fig13()) == []


def test_fig13_fails_where_all_instances_of_a_job_perform_alike():
    assert failing("wsmeter/fig13", fig13(instance_sd=0.0)) == ["margin_fall_low"]


def test_fig13_fails_where_every_cluster_covers_everything():
    assert "coverage_rise_low" in failing("wsmeter/fig13", fig13(jobs=2))


def test_fig13_fails_where_hardly_any_job_is_covered():
    assert "coverage_largest_low" in failing("wsmeter/fig13", fig13(jobs=4000, popularity=0.0))


def fig16(**world):
    made = fleet(**{"machines": 1000, "popularity": 0.9, "job_sd": 0.6, **world})
    return cost.measure_fig16(made, (25, 50, 100), draws=60)


def test_fig16_holds_where_jobs_differ_much_and_their_instances_little():
    assert failing("wsmeter/fig16", fig16()) == []


def test_fig16_fails_where_all_jobs_are_alike_so_that_granularity_does_not_matter():
    assert "ratio_to_baseline_high" in failing("wsmeter/fig16", fig16(job_sd=0.0))


def test_fig16_fails_where_random_machines_are_far_from_ideal():
    spread = np.where(np.arange(60) == 40, 3.0, 0.01)
    assert "ratio_to_ideal_high" in failing("wsmeter/fig16", fig16(instance_sd=spread))


def efficiency(**world):
    made = fleet(**{"machines": 1000, "popularity": 0.9, "job_sd": 0.6, **world})
    return cost.measure_efficiency(made, draws=60)


def test_the_efficiency_holds_where_jobs_differ_much_and_their_instances_little():
    assert failing("wsmeter/efficiency", efficiency()) == []


def test_the_efficiency_is_the_squared_ratio_of_the_margins_with_an_interval_around_it():
    made = fleet(machines=1000, popularity=0.9, job_sd=0.6)
    margins = cost.measure_fig16(made, (25, 50), draws=60)
    measured = cost.measure_efficiency(made, (25, 50), draws=60)
    for size in (25, 50):
        ratio = number(margins, "margin_baseline", size) / number(margins, "margin_wsmeter", size)
        value, low, high = (number(measured, f"efficiency{end}", size) for end in ("", "_low", "_high"))
        assert value == pytest.approx((ratio / 1.2) ** 2)
        assert 0.8 * value < low < value < high < 1.2 * value
        assert high - value == pytest.approx(value - low)


def test_the_worst_step_is_the_smallest_and_a_step_back_is_below_zero():
    values = {25: (0.31, 0.29), 50: (0.21, 0.19), 100: (0.26, 0.24)}
    table = pd.DataFrame(
        [{"estimator": "wsmeter", "machines": n, "margin": value} for n, pair in values.items() for value in pair]
    )
    error = np.hypot(*[NORMAL_95 * 0.01] * 2)
    assert worst_step(table, "wsmeter", "margin", -1) == pytest.approx(-0.05 - error)
    assert worst_step(table[:4], "wsmeter", "margin", -1) == pytest.approx(0.1 - error)


@pytest.mark.parametrize("counter", [{"job_sd": 0.0}, {"instance_sd": 0.6}], ids=repr)
def test_the_efficiency_fails_where_the_spread_is_within_jobs(counter):
    assert failing("wsmeter/efficiency", efficiency(**counter)) == ["efficiency_low_min"]
