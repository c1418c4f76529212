"""Intervals of Student's t against the distribution's own inverse."""

import numpy as np
import pytest
from scipy.stats import norm, t

from analysis.effects.study import Answers, half_width


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_a_half_width_leaves_equal_tails(confidence):
    error, freedom = np.array([0.01, 0.2, 3.0]), np.array([1.0, 7.5, 1e3])
    tails = t.sf(half_width(error, freedom, confidence) / error, freedom)
    assert tails == pytest.approx((1 - confidence) / 2)


def test_many_degrees_of_freedom_are_the_normal_distribution():
    margin = Answers(np.zeros(1), np.ones(1), np.array([1e15])).margin(0.95)
    assert margin == pytest.approx(norm.isf(0.025), abs=1e-12)


def test_what_has_no_error_or_no_answer_has_none_as_margin():
    margin = Answers(np.zeros(2), np.array([0.0, np.nan]), np.array([3.0, np.nan])).margin()
    assert margin[0] == 0
    assert np.isnan(margin[1])
