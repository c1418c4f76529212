"""Figures 17 to 19 and the baseline's arithmetic hold in worlds with their finding and fail in worlds without it."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from analysis.figures.criteria import number, printed
from analysis.figures.wsmeter import studies
from analysis.figures.wsmeter.draws import adjusted_draws
from scenarios.papers.rows import published
from tests.helpers.reproduce_worlds import failing, fleet

WORLD = {"machines": 2000, "job_sd": 0.62, "popularity": 0.9}
FEW_FAST = np.where(np.arange(60) == 59, 100.0, 0.065)
"""Effects of which a few instances decide the mean, so that intervals miss it."""


@cache
def as_it_is(row):
    return {"fig17": fig17, "fig18": fig18}[row](draws=300)


def fig17(draws=100, **world):
    made = fleet(**{**WORLD, "effect": 0.065, "seed": 3, **world})
    return studies.measure_fig17(made, draws=draws)


@pytest.mark.statistical
def test_fig17_holds_where_the_change_is_two_margins_of_100_machines():
    """Fixed seed; one or two criteria failed in 7 of 24 such worlds, inclusion in 3 and certainty of 25 machines in 6.

    With t = 2 over the 24 degrees of freedom of 25 machines, even normal values are included in only 94.3% of draws.
    """
    assert failing("wsmeter/fig17", as_it_is("fig17")) == []


def test_fig17_has_the_shares_with_students_quantile_beside_those_of_two_standard_errors():
    """With n − 1 degrees of freedom it is 2.064 of 25 machines and 1.984 of 100: wider there, narrower here."""
    made = as_it_is("fig17")
    wider, narrower = (
        number(made, "includes_new_student", size) - number(made, "includes_new", size) for size in (25, 100)
    )
    assert wider >= 0 >= narrower
    table = studies._with_student(
        pd.DataFrame({"estimator": "baseline", "machines": [25, 100], "change": 0.0, "reference": 0.02, "margin": 0.02})
    )
    student = table[table["estimator"] == studies.STUDENT]
    assert student["margin"].to_numpy() == pytest.approx([0.02 * 2.0639 / 2, 0.02 * 1.9842 / 2], rel=1e-4)
    assert student["includes"].tolist() == [True, False]


def test_fig17_fails_where_100_machines_do_not_tell_the_difference():
    assert "excludes_current_low_100" in failing("wsmeter/fig17", fig17(effect=-0.02))


def test_fig17_fails_where_25_machines_always_tell_the_difference():
    assert {"cv_low", "excludes_current_high_25"} <= set(failing("wsmeter/fig17", fig17(job_sd=0.1)))


def test_fig17_fails_where_intervals_miss_the_new_performance():
    assert "includes_new_high_min" in failing("wsmeter/fig17", fig17(draws=300, effect=FEW_FAST))


def test_fig17_fails_with_few_draws_whose_upper_ends_reach_anything():
    assert failing("wsmeter/fig17", fig17(draws=299)) == ["draws"]
    assert "includes_new_high_min" not in failing("wsmeter/fig17", fig17(draws=5, effect=FEW_FAST))


def fig18(draws=100, ours=5, **world):
    made = fleet(**{**WORLD, "effect": 0.065, "machine_sd": 0.02, **world})
    return studies.measure_fig18(made, draws=draws, ours=ours)


@pytest.mark.statistical
def test_fig18_holds_where_machines_give_their_instances_a_common_share():
    """Fixed seed; the inclusion criteria leave three standard errors on either side in this world."""
    assert failing("wsmeter/fig18", as_it_is("fig18")) == []


@pytest.mark.statistical
def test_fig18_fails_where_there_is_no_covariance_so_that_intervals_are_right():
    """Fixed seed; independent instances in small samples include in 93.5 to 95.5% of the draws."""
    assert "includes_new_high" in failing("wsmeter/fig18", fig18(machine_sd=0.0))


def test_fig18_fails_where_covariance_is_beyond_a_widening_by_20_percent():
    names = failing("wsmeter/fig18", fig18(machine_sd=0.06))
    assert {"includes_new_low", "includes_new_widened_high"} <= set(names)


def test_fig18_fails_where_nothing_changes_or_margins_are_wide():
    assert "excludes_current_low_min" in failing("wsmeter/fig18", fig18(effect=0.0))
    assert {"margin_25_high", "margin_50_high"} <= set(failing("wsmeter/fig18", fig18(instance_sd=0.5)))


def test_fig18_fails_where_no_job_has_enough_instances_to_cover_the_quota():
    assert "quota_coverage_low_min" in failing("wsmeter/fig18", fig18(jobs=2000, popularity=0.0))


def test_fig18_fails_with_few_draws_whose_upper_ends_reach_anything():
    assert failing("wsmeter/fig18", fig18(draws=299)) == ["draws"]
    assert "includes_new_widened_high" not in failing("wsmeter/fig18", fig18(draws=5, machine_sd=0.06))


@pytest.mark.statistical
def test_fig18_has_adjusted_beside_it_which_takes_what_machines_have_in_common():
    """Fixed seed; over 240 draws a right interval holds the change in fewer than 91% in about 1 of 200 seeds."""
    measured = fig18(machine_sd=0.05, ours=120)
    assert number(measured, "includes_new_adjusted") >= 0.91 > number(measured, "includes_new")
    beside = studies.inclusion_by_estimator(measured)
    assert list(beside["machines"]) == ["25", "50"]
    assert beside["adjusted"][0] == f"{number(measured, 'includes_new_adjusted', 25):.1%}"


def test_adjusted_says_the_change_of_all_jobs_where_every_machine_is_drawn():
    made = fleet(machines=60, machine_sd=0.05, effect=0.065)
    change = number(studies.changes(made), "change_all")
    [drawn] = adjusted_draws(made, (30,), change, draws=1).itertuples()
    assert drawn.change == pytest.approx(change, rel=1e-9)


def test_fig18_counts_the_draws_that_cover_a_job():
    made = fleet(jobs=2000, popularity=0.0, slots=1, seed=2)
    measured = studies.measure_fig18(made, draws=20, ours=5)
    assert number(measured, "draws") < 20


@pytest.mark.parametrize("size", [25, 50])
def test_widening_includes_more_at_every_size_and_both_are_drawn(size):
    made = as_it_is("fig18")
    assert number(made, "includes_new_widened", size) > number(made, "includes_new", size)
    right = studies.fig18(made, printed(published("wsmeter/fig18"))).axes[1]
    _, names = right.get_legend_handles_labels()
    assert {"include new", "include, widened", "exclude current"} <= set(names)


def fig19(**world):
    made = fleet(**{**WORLD, "machines": 4000, "effect": 0.011, "job_sd": 0.9, "seed": 2, **world})
    return studies.measure_fig19(made, draws=100)


def test_fig19_holds_where_jobs_gain_one_percent():
    assert failing("wsmeter/fig19", fig19()) == []


def test_fig19_fails_where_nothing_changes():
    assert "excludes_current_low_400" in failing("wsmeter/fig19", fig19(effect=0.0))


def test_fig19_fails_where_the_baseline_would_do_and_the_change_is_large():
    assert {"baseline_machines_low", "change_all_abs"} <= set(failing("wsmeter/fig19", fig19(effect=0.2)))


def test_fig19_fails_where_larger_clusters_know_no_more():
    assert "margin_fall_low" in failing("wsmeter/fig19", fig19(instance_sd=0.0))


def baseline(cv15=None, cv13=None):
    paper = printed(published("wsmeter/baseline"))
    return studies.measure_baseline(cv15 or number(paper, "cv15"), cv13 or number(paper, "cv13"))


def test_the_baselines_arithmetic_comes_out_to_the_last_printed_digit():
    assert failing("wsmeter/baseline", baseline()) == []


@pytest.mark.parametrize("counter", [{"cv15": 0.16}, {"cv13": 0.131}], ids=repr)
def test_the_baselines_arithmetic_fails_for_another_spread(counter):
    assert failing("wsmeter/baseline", baseline(**counter)) == ["agreement"]
