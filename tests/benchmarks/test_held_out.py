"""The table of held-out facts: its bounds are applied as stated, and all that it is made of are numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import held_out
from benchmarks.held_out import SKYLAKE_8180, Fact, facts, lines, server, shown
from models.platforms import PLATFORMS


def test_a_range_is_met_from_its_lower_end_less_the_bound_to_its_upper_end_plus_the_bound():
    fact = Fact("power", "mine", "abcde", [100.0, (100.0, 200.0), (100.0, 200.0), (100.0, 200.0), 100.0],
                [89.0, 91.0, 150.0, 219.0, 110.0], 0.1)  # fmt: skip
    assert fact.off == pytest.approx([-0.11, -0.09, 0.0, 0.095, 0.1])
    assert Fact("power", "mine", "abcd", fact.published[:4], fact.ours[:4], 0.1).within == 3


def test_a_line_shows_the_worst_figure_and_those_of_fitted_machines_are_marked():
    fact = Fact("power", "mine", ["10%", "20%"], [100.0, (0.5, 0.7)], [103.0, 1.4], 0.1)
    (line,) = lines(fact, each=False)
    assert line.split() == ["power", "mine", "1", "of", "2", "±", "10%", "20%", "0.5–0.7", "1.4", "+100.0%"]
    assert len(lines(fact, each=True)) == 2
    assert "in the fit" in lines(Fact("power", "mine", ["10%"], [1.0], [1.0], 0.1, fitted=True), each=False)[0]


def test_a_server_of_as_many_processors_is_the_platform_itself():
    whole = replace(PLATFORMS["cascadelake_8280"].sheet, extends="cascadelake_8280")
    assert server("cascadelake_8280", 2, 110) == whole
    assert server("rome_7742", 2, 93).tdp_w == 450
    assert server("skylake_6148", 4, 90, **SKYLAKE_8180).cores == 112


def test_every_figure_of_the_table_is_a_number():
    found = facts([1])
    assert {fact.group for fact in found} == {"power", "turbo", "cores", "sockets", "latency"}
    for fact in found:
        assert len(fact.at) == len(fact.published) == len(fact.ours)
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
