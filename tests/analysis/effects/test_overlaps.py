"""Experiments on slots: how they meet, what one does to the other, and whether effects add up."""

import numpy as np
import pandas as pd
import pytest

from analysis.effects.methods import method
from analysis.effects.overlaps import SlotExperiment, interaction, overlaps
from analysis.effects.study import Study

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


def test_what_shards_did_in_other_slots_is_known_and_makes_the_error_smaller():
    """Each of 480 shards differs by 10% and moves to a machine drawn anew; seven eighths came from elsewhere."""
    rng = np.random.default_rng(3)
    shard = np.arange(480)
    level = 1.0 + 0.1 * rng.standard_normal(480)
    parts = [
        pd.DataFrame({"period": period, "shard": shard, "job": 0, "machine": rng.permutation(480) // 3, "weight": 1.0})
        for period in range(2)
    ]
    table = pd.concat(parts, ignore_index=True).assign(treated=0)
    table["value"] = level[table["shard"]] * rng.normal(1.0, 0.01, len(table))
    table["slot"] = (1 + table["machine"] % 8).astype(str)
    one = SlotExperiment("one", frozenset("1"), frozenset("2"), 1.0)
    other = SlotExperiment("other", frozenset("3"), frozenset("4"), 0.0)
    elsewhere = one.elsewhere(table, [other])
    assert set(elsewhere["slot"]) == set("45678")
    assert set(elsewhere["period"]) == {0}
    own = Study.of(one.rows(table))
    both = Study.of(pd.concat([one.rows(table), one.elsewhere(table)], ignore_index=True))
    assert len(both.cells.machines) == len(own.cells.machines) == 40
    errors = [float(method("adjusted").many(study.cells, study.treated[None]).error[0]) for study in (own, both)]
    assert errors[1] < 0.5 * errors[0]


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
