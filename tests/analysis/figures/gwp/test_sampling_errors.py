"""Errors of what is drawn by day are those with which it varies when days are sampled anew."""

import numpy as np
import pandas as pd
import pytest

from analysis.figures.criteria import curve
from analysis.figures.gwp import profiles
from analysis.figures.gwp.sampling_errors import distance_errors, entropy_errors
from tests.analysis.figures.gwp.test_profiles import MIX

VISITS = 60
OTHER = MIX[::-1]
"""So far from the mix that hardly a difference of shares has an uncertain sign."""


def by_visit(rng, mixes):
    """Days of visits, each of which has a mix of its own round that of its day."""
    parts = []
    for day, mix in enumerate(mixes):
        counts = pd.DataFrame([rng.multinomial(50, own) for own in rng.dirichlet(30 * mix, VISITS)])
        table = counts.rename_axis("visit").reset_index().melt("visit", var_name="entry", value_name="samples")
        parts.append(
            table[table["samples"] > 0].assign(day=day, visit=lambda rows, day=day: VISITS * day + rows["visit"])
        )
    table = pd.concat(parts, ignore_index=True)
    return table.assign(value=1000.0 * table["samples"])


@pytest.mark.statistical
@pytest.mark.parametrize("top", [None, 10])
def test_errors_are_those_with_which_days_vary(top):
    """150 repeats: a standard deviation is known to 6%, so three of these are allowed for."""
    rng, found = np.random.default_rng(1), []
    for _ in range(150):
        table = by_visit(rng, [MIX, OTHER])
        entropy = profiles.entropies(table, "day")["entropy"].iloc[0]
        distance = profiles.distances(table, top)["distance"].iloc[0]
        found.append((entropy, entropy_errors(table)[0], distance, distance_errors(table, top)[1]))
    entropy, entropy_error, distance, distance_error = np.transpose(found)
    assert entropy_error.mean() == pytest.approx(entropy.std(), rel=0.2)
    assert distance_error.mean() == pytest.approx(distance.std(), rel=0.2)


def test_errors_of_distances_are_not_too_small_where_nothing_changed():
    rng = np.random.default_rng(2)
    tables = [by_visit(rng, [MIX, MIX]) for _ in range(40)]
    spread = np.std([profiles.distances(table)["distance"].iloc[0] for table in tables])
    assert np.mean([distance_errors(table)[1] for table in tables]) > spread


def test_a_day_of_a_single_visit_has_no_error():
    table = by_visit(np.random.default_rng(3), [MIX, MIX])
    alone = table[(table["day"] == 0) | (table["visit"] == VISITS)]
    assert np.isnan(entropy_errors(alone)[1])
    assert np.isnan(distance_errors(alone)[1])


def test_measured_days_have_intervals_and_the_same_numbers_without_them():
    table = by_visit(np.random.default_rng(4), [MIX, OTHER, MIX])
    bare, drawn = profiles.measure_fig4(table), profiles.measure_fig4(table, entropy_errors(table))
    pd.testing.assert_frame_equal(bare, drawn[~drawn["series"].str.endswith(("_low", "_high"))].reset_index(drop=True))
    assert np.all(np.array(curve(drawn, "entropy_low")[1]) < curve(drawn, "entropy_high")[1])
    away = profiles.measure_fig6a(table, 0.01, errors=distance_errors(table, 20))
    assert curve(away, "distance_low")[0] == [1, 2]
