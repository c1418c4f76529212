"""Figures 1 to 3 hold in worlds with their finding and fail in worlds without it."""

import numpy as np
import pytest

from analysis.figures.wsmeter import motivation
from tests.helpers.reproduce_worlds import failing, fleet

MIXED = np.where(np.arange(400) % 2 == 0, 0.03, -0.03)


def fig1(**world):
    made = fleet(**{"jobs": 400, "machines": 1600, "instance_sd": 0.05, **world})
    return motivation.measure_fig1(made)


def test_fig1_holds_where_half_of_the_jobs_gain_and_half_lose():
    assert failing("wsmeter/fig1", fig1(effect=MIXED)) == []


def test_fig1_fails_where_every_job_gains():
    assert failing("wsmeter/fig1", fig1(effect=0.03)) == ["share_gaining_high", "share_clear_losses_low"]


def test_fig1_fails_where_the_split_is_noise_alone():
    assert failing("wsmeter/fig1", fig1(effect=0.0)) == ["share_clear_gains_low", "share_clear_losses_low"]


def test_fig1_counts_jobs_and_shares():
    made = fig1(effect=MIXED)
    shares = made.set_index("series")["value"]
    assert shares["share_gaining"] + shares["share_losing"] == pytest.approx(1)
    assert (made["series"] == "change").sum() == shares["jobs"]


def fig2(effect, instance_sd=0.08):
    made = fleet(jobs=10, machines=800, instance_sd=instance_sd, effect=effect)
    return motivation.measure_fig2(made)


def test_fig2_holds_where_one_job_clearly_gains_and_one_loses_under_wide_spread():
    assert failing("wsmeter/fig2", fig2(np.where(np.arange(10) % 2 == 0, 0.04, -0.03))) == []


def test_fig2_fails_where_no_job_loses():
    assert "change_losing_high" in failing("wsmeter/fig2", fig2(0.04))


def test_fig2_fails_where_the_distributions_do_not_overlap():
    measured = fig2(np.where(np.arange(10) % 2 == 0, 0.04, -0.03), instance_sd=0.005)
    assert {"shift_gaining_high", "shift_losing_high"} <= set(failing("wsmeter/fig2", measured))


def fig3(effect, job_sd=0.6):
    made = fleet(machines=6000, jobs=50, job_sd=job_sd, effect=effect)
    return motivation.measure_fig3(made)


def test_fig3_holds_where_machines_differ_much_and_the_halves_little():
    assert failing("wsmeter/fig3", fig3(0.012)) == []


def test_fig3_fails_where_identical_hardware_performs_identically():
    assert "cv_low" in failing("wsmeter/fig3", fig3(0.012, job_sd=0.05))


def test_fig3_fails_where_the_new_wsc_is_slower_or_much_faster():
    assert "change_low" in failing("wsmeter/fig3", fig3(-0.02))
    assert failing("wsmeter/fig3", fig3(0.2)) == ["change_high", "shift_high"]
