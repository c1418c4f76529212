"""The table of held-out facts: its bounds are applied as stated, and all that it is made of are numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import held_out
from benchmarks.held_out import SKYLAKE_8180, Fact, facts, line_w, lines, server, shown
from models.platforms import PLATFORMS


def test_a_range_is_met_from_its_lower_end_less_the_bound_to_its_upper_end_plus_the_bound():
    published, ours = [100.0, (100.0, 200.0), (100.0, 200.0), (100.0, 200.0)], [89.0, 91.0, 150.0, 219.0]
    fact = Fact("power", "mine", "abcd", published, ours, 0.1, rival=[91.0, 80.0, 230.0, 111.0])
    assert fact.off == pytest.approx([-0.11, -0.09, 0.0, 0.095])
    assert (fact.within, fact.rival_within) == (3, 2)


def test_a_line_shows_the_worst_figure_and_those_of_fitted_machines_are_marked():
    fact = Fact("power", "mine", ["10%", "20%"], [100.0, (0.5, 0.7)], [103.0, 1.4], 0.1, [1.0, 0.6])
    (line,) = lines(fact, each=False)
    assert line.split() == ["power", "mine", "1", "of", "2", "1", "±10%", "20%", "0.5–0.7", "1.4", "+100.0%"]
    assert len(lines(fact, each=True)) == 2
    assert "in the fit" in lines(replace(fact, fitted=True), each=False)[0]


def test_the_line_of_a_spec_sheet_goes_from_idle_to_most_of_the_tdp():
    assert line_w(server("cascadelake_8280", 2, 50), [0, 50, 100]) == pytest.approx([50, 224.25, 398.5])


def test_a_server_of_as_many_processors_is_the_platform_itself():
    whole = replace(PLATFORMS["cascadelake_8280"].sheet, extends="cascadelake_8280")
    assert server("cascadelake_8280", 2, 110) == whole
    assert server("rome_7742", 2, 93).tdp_w == 450
    assert server("skylake_6148", 4, 90, **SKYLAKE_8180).cores == 112


def test_every_figure_of_the_table_is_a_number():
    found = facts([1])
    assert {fact.group for fact in found} == {"power", "turbo", "gain", "spread", "mean", "sockets", "latency"}
    for fact in found:
        assert len(fact.at) == len(fact.published) == len(fact.ours) == len(fact.rival)
        assert np.isfinite([*fact.off, *fact.ours]).all()
        assert min(fact.ours) > 0
        assert fact.bound < 0.7


def test_the_largest_ratio_of_22_normal_programs_over_the_least_is_that_of_the_textbook():
    """The range of 22 normal numbers is 3.82 standard deviations in the mean (Tippett 1925)."""
    ratios = np.random.default_rng(1).normal(0.0, 0.13, 4000)
    assert held_out._span(ratios) == pytest.approx(3.82 * 0.13, rel=0.05)


def test_the_bound_of_a_spread_is_one_and_a_half_standard_errors_or_three_hundredths():
    assert held_out._spread_bound(0.06, 23) * 0.06 == pytest.approx(0.03)
    assert held_out._spread_bound(0.31, 13) == pytest.approx(1.5 / math.sqrt(24))
    assert shown((412.4, 0.1234)) == "412–0.123"
