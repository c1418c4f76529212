"""Experiments on slots: how they meet, what one does to the other, and whether effects add up."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.methods import method
from analysis.effects.overlaps import SlotExperiment, interaction, overlaps

SIZES = dict.fromkeys("12345678", 20)
FIRST = SlotExperiment("first", frozenset("12"), frozenset("34"), 1.0)


@pytest.mark.parametrize(
    ("treated", "controls", "meeting", "in_first"),
    [
        ("56", "78", "apart", (0.0, 0.0)),
        ("56", "34", "controls", (0.0, 0.0)),
        ("13", "24", "crossed", (0.5, 0.5)),
        ("15", "78", "uneven", (0.5, 0.0)),
        ("12", "78", "confounded", (1.0, 0.0)),
        ("34", "12", "confounded", (0.0, 1.0)),
    ],
)
def test_how_two_experiments_meet(treated, controls, meeting, in_first):
    (overlap,) = overlaps([FIRST, SlotExperiment("second", frozenset(treated), frozenset(controls), 1.0)], SIZES)
    assert (overlap.meeting, overlap.second_in_first) == (meeting, in_first)
    share = in_first[0] - in_first[1]
    assert overlap.biases({"first": 0.0, "second": 0.1})[0] == pytest.approx(0.1 * share)


def fleet(together, seed=1):
    """Return observations of 160 machines in eight slots: +5% in 1 and 2, -3% in 1 and 3, and more where both are."""
    rng = np.random.default_rng(seed)
    machine, job = np.divmod(np.arange(160 * 3), 3)
    slot = np.array([str(1 + number % 8) for number in range(160)])[machine]
    own = (1.0 + job) * (1.0 + 0.05 * rng.standard_normal(160)[machine])
    parts = []
    for period in range(2):
        gain = (1 + 0.05 * np.isin(slot, ["1", "2"])) * (1 - 0.03 * np.isin(slot, ["1", "3"]))
        value = own * rng.normal(1.0, 0.01, len(own)) * np.where(slot == "1", gain * (1 + together), gain) ** period
        row = {"period": period, "job": job, "machine": machine, "weight": 1.0, "value": value, "slot": slot}
        parts.append(pd.DataFrame(row))
    return pd.concat(parts, ignore_index=True)


SECOND = SlotExperiment("second", frozenset("13"), frozenset("24"), 1.0)


def test_rows_are_those_of_both_arms_and_have_the_feature_of_the_experiment_alone():
    rows = FIRST.rows(fleet(0.0))
    assert set(rows["slot"]) == set("1234")
    assert set(rows.loc[rows["treated"] == 1, "slot"]) == {"1", "2"}
    assert set(rows.loc[rows["treated"] == 1, "period"]) == {1}
    assert set(FIRST.rows(fleet(0.0), frozenset("15"))["slot"]) == {"1"}


@pytest.mark.statistical
def test_an_interaction_is_within_its_interval_as_often_as_it_says():
    """10 fleets of which 5 have an interaction of 4%: fewer than 8 intervals hold it in 1 of 85 tests."""
    within, seen = 0, 0
    for seed in range(5):
        for together in (0.0, 0.04):
            answer = interaction(fleet(together, seed), (FIRST, SECOND), None, method("adjusted"))
            within += answer.low <= together <= answer.high
            seen += together > 0 and answer.low > 0
    assert within >= 8
    assert seen >= 4


def test_without_one_of_the_four_cells_nothing_is_said_of_an_interaction():
    elsewhere = SlotExperiment("second", frozenset("5"), frozenset("6"), 1.0)
    assert interaction(fleet(0.0), (FIRST, elsewhere), None, method("adjusted")) is None
