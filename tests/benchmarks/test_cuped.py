"""Our ratios of machines are those of gbstats, an independent implementation, on the same draws."""

import numpy as np
import pytest

from analysis.effects.classic import Ratio
from benchmarks.cuped import adjusted, alike, arms, linearised, ratio
from models.randomness import stream
from tests.helpers.effect_fleets import fleet

pytest.importorskip("gbstats")

CELLS = fleet("wide", 1, 120)[0].courses[0]


def drawn(size, draws=20):
    rng, treated = stream(2, f"{size} machines"), np.zeros((draws, 120), dtype=bool)
    for draw in treated:
        draw[rng.permutation(120)[:size]] = True
    return treated


def ours(treated, *, cuped):
    return np.stack(Ratio(cuped=cuped).many(CELLS, treated), axis=1)


@pytest.mark.parametrize("size", [5, 20, 60])
def test_the_ratio_its_error_and_its_degrees_of_freedom_are_the_same(size):
    treated = drawn(size)
    theirs = [ratio(*arms(CELLS, draw)) for draw in treated]
    np.testing.assert_allclose(ours(treated, cuped=False), theirs, rtol=1e-7)


@pytest.mark.parametrize("size", [5, 20, 60])
def test_the_adjusted_ratio_with_the_same_slope_is_the_same(size):
    """In the variance, gbstats scales the past with the effect too: 2% of a part of it."""
    treated = drawn(size)
    both = [arms(CELLS, draw) for draw in treated]
    theirs = np.array([adjusted(*one, theta=alike(*one)) for one in both])
    made = ours(treated, cuped=True)
    np.testing.assert_allclose(made[:, 0], theirs[:, 0], rtol=1e-7)
    np.testing.assert_allclose(made[:, 1], theirs[:, 1], rtol=0.02)
    np.testing.assert_allclose(made[:, 2], theirs[:, 2], rtol=1e-7)


def test_with_their_own_slope_the_change_is_on_average_within_a_small_part_of_the_error():
    """gbstats pools the machines of both arms, the difference between the arms' means included."""
    treated = drawn(60)
    theirs = np.array([adjusted(*arms(CELLS, draw)) for draw in treated])
    made = ours(treated, cuped=True)
    assert (np.abs(made[:, 0] - theirs[:, 0]) / theirs[:, 1]).mean() < 0.1
    np.testing.assert_allclose(made[:, 1], theirs[:, 1], rtol=0.04)


def test_linearised_machines_have_the_ratio_and_the_variance_of_the_ratio():
    from gbstats.models.statistics import RatioStatistic, SampleMeanStatistic

    above, below = arms(CELLS, drawn(20)[0])[1].above, arms(CELLS, drawn(20)[0])[1].below
    means = [SampleMeanStatistic(20, float(x.sum()), float(x @ x)) for x in (above, below * 1.0)]
    theirs = RatioStatistic(20, *means, float(above @ below))
    assert linearised(above, below).mean() == pytest.approx(theirs.mean)
    assert linearised(above, below).var(ddof=1) == pytest.approx(theirs.variance)
