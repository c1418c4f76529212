"""Quantiles, tails and adjusted p-values beside those of scipy.stats, which takes long to import."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis import statistics

SHARES = np.r_[0.0, 1e-12, 0.001, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999, 1 - 1e-12, 1.0, np.nan]
NUMBERS = np.r_[-np.inf, -40.0, -1.5, -0.2, 0.0, 0.2, 1.5, 40.0, np.inf, np.nan]
FREEDOM = np.r_[0.3, 1.0, 1.5, 2.0, 11.0, 99.5, 1e6, 1e10, np.inf][:, None]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (statistics.normal_quantile(SHARES), stats.norm.ppf(SHARES)),
        (statistics.normal_cdf(NUMBERS), stats.norm.cdf(NUMBERS)),
        (statistics.normal_tail(NUMBERS), stats.norm.sf(NUMBERS)),
        (statistics.normal_density(NUMBERS), stats.norm.pdf(NUMBERS)),
        (statistics.student_quantile(SHARES, FREEDOM), stats.t.ppf(SHARES, FREEDOM)),
        (-statistics.student_quantile(SHARES, FREEDOM), stats.t.isf(SHARES, FREEDOM)),
        (statistics.student_quantile(0.975, np.array([0.0, -1.0, np.nan])), np.full(3, np.nan)),
        (statistics.student_tail(NUMBERS, FREEDOM), stats.t.sf(NUMBERS, FREEDOM)),
        (statistics.chi2_quantile(SHARES, FREEDOM), stats.chi2.ppf(SHARES, FREEDOM)),
        (statistics.chi2_tail(1.0, np.array([0.0, -1.0, np.nan])), np.full(3, np.nan)),
        (statistics.chi2_tail(NUMBERS, FREEDOM[:-1]), stats.chi2.sf(NUMBERS, FREEDOM[:-1])),
    ],
)
def test_quantiles_and_tails_are_those_of_scipy_to_the_last_bit(ours, theirs):
    np.testing.assert_array_equal(ours, theirs)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_p_values_are_adjusted_as_scipy_does_it(p_values):
    for method, control in (("bh", "benjamini-hochberg"), ("by", "benjamini-yekutieli")):
        theirs = stats.false_discovery_control(p_values, method=method)
        np.testing.assert_array_equal(statistics.adjusted_p_values(np.array(p_values), control), theirs)


@given(st.integers(1, 400), st.floats(0.001, 0.999), st.data())
def test_the_exact_test_is_scipys(of, share, data):
    successes = data.draw(st.integers(0, of))
    theirs = stats.binomtest(successes, of, share).pvalue
    assert statistics.binomial_p_value(successes, of, share) == pytest.approx(theirs, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("share", [np.nan, -0.1, 1.1])
def test_a_share_that_is_none_has_no_chance(share):
    with pytest.raises(ValueError, match="probability should be from 0 to 1"):
        statistics.binomial_p_value(1, 3, share)


def test_the_rooms_of_the_usual_commands_are_imported_without_what_takes_long():
    commands = ", ".join(f"scenarios.commands.{name}" for name in ("effect", "run", "occupancy", "audit", "design"))
    rooms = "scenarios.effects.effect, scenarios.effects.audit, scenarios.wsmeter.measure, scenarios.occupancy.measure"
    code = f"import sys, {commands}, {rooms}; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
