"""Machines needed by two estimators on the same fleets: gains with their errors, and bounds for what they are."""

import math

import numpy as np
import pandas as pd
import pytest

from scenarios.effects.scorecard.needed import gains, jackknife, needed


def rows(corner, estimator, *powers, design="day"):
    """A fleet each, of 100 draws at 10 and at 40 machines; n95 is 10 · 4^((0.95 − p) / (q − p)) at powers p and q."""
    named = {"corner": corner, "design": design, "estimator": estimator, "draws": 100}
    return [
        named | {"seed": seed, "machines": machines, "detected": hits}
        for seed, both in enumerate(powers)
        for machines, hits in zip((10, 40), both, strict=True)
    ]


def told(*parts):
    return gains(needed(pd.DataFrame([row for part in parts for row in part]))).set_index("estimator")


def test_the_gain_is_a_geometric_mean_and_the_worst_corner_is_named():
    """At powers 90 and 100, n95 is 20; at 94 and 98, 10 · 4^(1/4)."""
    found = told(
        rows("base", "cuped", (90, 100)),
        rows("base", "adjusted", (94, 98)),
        rows("wide", "cuped", (94, 98)),
        rows("wide", "adjusted", (90, 100)),
    )
    one = found.loc["adjusted"]
    step = math.sqrt(2)
    assert one["gain"] == pytest.approx(1.0)
    assert (one["worst"], one["worst_corner"]) == (pytest.approx(1 / step), "wide")
    assert one["low"] < 1 / step < step < one["high"]
    assert (one["corners"], one["bounded"], one["unknown"]) == (2, 0, 0)
    assert list(found.index) == ["adjusted"]


def test_what_is_known_as_a_bound_counts_as_that_and_what_says_nothing_does_not():
    found = told(
        rows("base", "cuped", (80, 90)),
        rows("base", "adjusted", (90, 100)),
        rows("tails", "cuped", (90, 100)),
        rows("tails", "adjusted", (96, 100)),
        rows("calm", "cuped", (96, 100)),
        rows("calm", "adjusted", (90, 100)),
        rows("rough", "cuped", (90, 100)),
        rows("rough", "adjusted", (80, 90)),
        rows("wild", "cuped", (70, 80)),
        rows("wild", "adjusted", (80, 90)),
        rows("mild", "cuped", (96, 100)),
        rows("mild", "adjusted", (97, 100)),
    )
    one = found.loc["adjusted"]
    assert one[["corners", "bounded", "at_most", "unknown"]].tolist() == [4, 4, 2, 2]
    assert (one["gain"], one["worst"]) == (pytest.approx(1.0), pytest.approx(0.5))


def test_the_worst_gain_s_error_leaves_out_fleets_of_both_at_once():
    theirs, ours = [(80, 100), (90, 100), (94, 100)], [(90, 100), (92, 100), (94, 100)]
    one = told(rows("base", "cuped", *theirs), rows("base", "adjusted", *ours)).loc["adjusted"]

    def log_n95(powers):
        low, high = np.mean(powers, axis=0) / 100
        return math.log(10) + (0.95 - low) / (high - low) * math.log(4)

    left = [log_n95(np.delete(theirs, k, 0)) - log_n95(np.delete(ours, k, 0)) for k in range(3)]
    assert one["worst_error"] == pytest.approx(math.sqrt(2 / 3 * ((np.array(left) - np.mean(left)) ** 2).sum()))
    assert math.isnan(
        told(rows("base", "cuped", (90, 100)), rows("base", "best", (90, 100))).loc["best", "worst_error"]
    )


def test_the_jackknife_of_a_mean_is_its_standard_error():
    values = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    left = (values.sum() - values) / 4
    assert jackknife(left) == pytest.approx(values.std(ddof=1) / math.sqrt(5))
    assert math.isnan(jackknife(values[:1]))
    assert math.isnan(jackknife(values[:2]))


def test_without_the_other_estimator_there_is_no_gain():
    assert told(rows("base", "adjusted", (90, 100))).empty
