"""Bounds beside printed numbers: what holds, what fails, and what cannot be judged."""

import numpy as np
import pandas as pd
import pytest

from analysis.figures.criteria import (
    Criterion,
    agreement,
    curve,
    from_cells,
    judge,
    number,
    numbers,
    overall,
    printed,
    rows,
)


def table(*entries):
    columns = ["series", "x", "value", "tolerance", "read_from"]
    return pd.DataFrame([dict(zip(columns, entry, strict=True)) for entry in entries])


def test_a_bound_itself_is_kept():
    for relation in ("at least", "at most"):
        assert Criterion("cv", relation, 0.3, "", (0.3,)).holds


@pytest.mark.parametrize(("relation", "value"), [("at least", 0.29), ("at most", 0.31)])
def test_a_number_beyond_the_bound_fails(relation, value):
    assert not Criterion("cv", relation, 0.3, "", (value,)).holds


@pytest.mark.parametrize("relation", ["at least", "at most"])
def test_a_number_that_was_not_measured_fails(relation):
    (check,) = judge(numbers(change=0.1), table(("finding:cv", relation, 0.3, None, "reason")))
    assert np.isnan(check.measured)
    assert not check.holds


def test_a_check_says_both_sides():
    assert str(Criterion("cv", "at most", 0.3, "", (0.31,))) == "cv = 0.31, at most 0.3: fails"
    assert str(Criterion("cv", "at most", 0.3, "", (np.nan,))) == "cv = not measured, at most 0.3: fails"
    never = str(Criterion("cv", "at most", 0.3, "", (np.nan, np.nan)))
    assert never == "cv = not measured, at most 0.3: does not hold, true in 0 of 2 worlds"


def test_without_a_criterion_nothing_can_hold():
    with pytest.raises(ValueError, match="no criterion, so nothing could hold or fail"):
        judge(numbers(cv=0.1), table(("cv", None, 0.1, 0.01, "Table 1")))


def test_an_unknown_relation_is_refused():
    with pytest.raises(ValueError, match="relation must be one of at least, at most, got 'about'"):
        judge(numbers(cv=0.1), table(("finding:cv", "about", 0.1, None, "reason")))


def test_agreement_is_the_largest_distance_in_tolerances():
    paper = table(("cost", None, 70.0, 0.5, "text"), ("margin", "25", 0.06, 0.001, "text"), ("cv", None, 9.0, None, ""))
    measured = pd.concat([numbers(cost=69.8), rows("margin", [25], [0.0585])])
    assert agreement(measured, paper) == pytest.approx(1.5)


def test_a_check_of_printed_cells_is_judged_apart_from_the_findings():
    paper = table(
        ("finding:gain", "at least", 1.0, None, "finding"),
        ("check:printed_gain", "at least", 2.0, None, "arithmetic"),
        ("printed_gain", None, 3.0, 0.1, "Table 1"),
        ("check:agreement", "at most", 1.0, None, "arithmetic"),
    )
    measured = pd.concat([numbers(gain=0.5), from_cells(numbers(gain=3.05))])
    told = judge(measured, paper)
    assert [(one.kind, one.name, one.holds) for one in told] == [
        ("finding", "gain", False),
        ("check", "printed_gain", True),
        ("check", "agreement", True),
    ]
    assert told[2].measured == pytest.approx(0.5)
    assert printed(paper)["series"].tolist() == ["printed_gain"]


def test_agreement_with_a_missing_number_fails():
    paper = table(("cost", None, 70.0, 0.5, "text"), ("finding:agreement", "at most", 1.0, None, "arithmetic"))
    assert [check.holds for check in judge(numbers(margin=0.1), paper)] == [False]


def test_a_curve_is_not_a_number():
    measured = pd.concat([rows("margin", [50, 25], [0.04, 0.06]), numbers(margin=0.5)])
    assert number(measured, "margin") == 0.5
    assert number(measured, "margin", 25) == 0.06
    assert np.isnan(number(measured, "margin", 100))
    assert curve(measured, "margin") == ([25, 50], [0.06, 0.04])


def test_printed_leaves_the_bounds_out():
    paper = table(("margin", "25", 0.06, None, "text"), ("finding:margin", "at most", 1.0, None, "reason"))
    assert printed(paper)[["series", "x"]].to_numpy().tolist() == [["margin", 25.0]]


def test_inputs_are_computed_with_and_not_compared():
    paper = table(("input:cv", None, 0.15, None, "text"), ("margin", "25", 0.06, 0.001, "text"))
    assert printed(paper)["series"].tolist() == ["cv", "margin"]
    assert printed(paper, inputs=False)["series"].tolist() == ["margin"]
    assert agreement(rows("margin", [25], [0.06]), paper) == pytest.approx(0)


@pytest.mark.parametrize(
    ("worlds", "true_in", "verdict"),
    [
        (10, 10, "holds"),
        (10, 9, "holds"),
        (10, 8, "depends on the world"),
        (10, 3, "depends on the world"),
        (10, 2, "does not hold"),
        (3, 3, "holds"),
        (3, 2, "depends on the world"),
        (3, 0, "does not hold"),
        (1, 0, "does not hold"),
    ],
)
def test_a_finding_holds_in_nine_worlds_of_ten(worlds, true_in, verdict):
    tables = [numbers(gain=float(i < true_in)) for i in range(worlds)]
    (finding,) = judge(tables, table(("finding:gain", "at least", 1.0, None, "reason")))
    assert (finding.holds_in, finding.verdict) == (true_in, verdict)


def test_a_rate_is_judged_on_the_draws_of_all_worlds_together():
    tables = [numbers(coverage=value) for value in (0.94, 0.94, 0.99)]
    paper = table(("finding:coverage", "at least", 0.95, None, "nominal"))
    assert judge(tables, paper)[0].verdict == "depends on the world"
    assert judge(tables, paper, {"coverage": 0.957})[0].verdict == "holds"
    assert judge(tables[:1], paper, {"coverage": 0.957})[0].verdict == "does not hold"  # of one world there is no pool


def test_a_world_in_which_it_could_not_be_measured_is_one_in_which_it_fails():
    (finding,) = judge([numbers(gain=1.0), numbers()], table(("finding:gain", "at least", 0.0, None, "reason")))
    assert finding.holds_in == 1
    assert finding.quartiles == (1.0,) * 5


def test_one_verdict_that_does_not_hold_decides():
    assert overall(["holds", "holds"]) == "holds"
    assert overall(["holds", "depends on the world"]) == "depends on the world"
    assert overall(["holds", "depends on the world", "does not hold"]) == "does not hold"
