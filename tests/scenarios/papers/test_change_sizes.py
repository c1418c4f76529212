"""What is removed instead of a cause moves the world as far as the cause does, or is not counted."""

import pytest

from scenarios.papers.causes import CAUSES, SHAM_SIZES
from scenarios.papers.judged import LIKE_SIZE
from tests.helpers.change_sizes import sizes

TOO_SMALL = {"piii_over_pres", "simulated_error_median", "gap_over_spread"}
"""Shams of which none of like size was tried; of `includes_new_high_min` the cause is no change of the world."""


def test_every_sham_is_of_like_size_but_those_that_are_known_to_be_smaller():
    known = {(cause.row, cause.criteria[0]): cause for cause in CAUSES}
    assert set(known) == set(SHAM_SIZES) | {("wsmeter/fig17", "includes_new_high_min")}
    assert {name for (_, name), size in SHAM_SIZES.items() if size < LIKE_SIZE} == TOO_SMALL
    assert known["wsmeter/fig17", "includes_new_high_min"].sham_size == 0.0


@pytest.mark.parametrize("pair", [("occupancy/fig6", "utilisation_low"), ("crossplatform/table6", "simulated_best")])
def test_sizes_are_those_that_are_measured(pair):
    """Two of the cheapest; all: ``python -m tests.helpers.change_sizes``."""
    (cause,) = [cause for cause in CAUSES if (cause.row, cause.criteria[0]) == pair]
    removed, sham = sizes(cause)
    assert sham / removed == pytest.approx(cause.sham_size, rel=0.1)
