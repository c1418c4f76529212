"""A piece counts what its draws say, and its draws belong to its names alone."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from analysis.effects.arrangements import Arrangement
from analysis.effects.study import Answers
from scenarios.effects.scorecard import pieces
from scenarios.effects.scorecard.pieces import PARTS, Piece, ScorecardDesign, ScorecardQuestion, cut, judged
from tests.helpers.effect_fleets import EFFECT, fleet

SIX = ScorecardQuestion(("ratio", "shrunken"), (4, 8), draws=40, machines=24)


class Said:
    """An estimator whose answers are given: those of each call in turn."""

    name = "said"

    def __init__(self, *answers):
        self.answers, self.treated = list(answers), []

    def many(self, cells, treated):
        self.treated.append(treated)
        return self.answers.pop(0)


def of(monkeypatch, method, *, draws, courses=1, sizes=(4,), truth=EFFECT):
    monkeypatch.setattr(pieces, "method", lambda _name: method)
    whole = fleet("base", 1, 24)[0].courses * courses
    asked = ScorecardQuestion(("said",), sizes, draws=draws, machines=24)
    return judged(asked, lambda *_: [ScorecardDesign("day", whole, truth)], Piece("base", 1))["rows"]


def arrays(change, error, freedom):
    return Answers(*(np.array(each, dtype=float) for each in (change, error, freedom)))


def test_counts_and_means_are_those_of_arithmetic_by_hand(monkeypatch):
    """Margins are 2.776 errors: 0.02776 and, of the second, 0.002776; the third has no answer."""
    said = arrays([0.01, 0.05, np.nan, 0.021], [0.01, 0.001, 0.01, 0.0], [4, 4, 4, 4])
    (row,) = of(monkeypatch, Said(said), draws=4)
    margins = t.ppf(0.975, 4) * np.array([0.01, 0.001, 0.0])
    off = np.array([-0.01, 0.03, 0.001])
    assert (row["draws"], row["answered"], row["covered"], row["detected"]) == (4, 3, 1, 2)
    assert row["bias"] == pytest.approx(off.mean())
    assert row["sd"] == pytest.approx(np.sqrt(((off - off.mean()) ** 2).sum() / 2))
    assert (row["error"], row["margin"]) == pytest.approx((0.011 / 3, margins.mean()))


def test_who_says_nothing_has_no_means(monkeypatch):
    nothing = arrays([np.nan] * 2, [np.nan] * 2, [1.0] * 2)
    (row,) = of(monkeypatch, Said(nothing), draws=2)
    assert row["answered"] == row["covered"] == row["detected"] == 0
    assert [row[name] for name in ("bias", "sd", "error", "margin")] == [None] * 4


def test_every_draw_has_its_number_of_machines_and_courses_share_the_draws(monkeypatch):
    said = Said(*(arrays(*np.zeros((3, count))) for count in (3, 2, 2)))
    of(monkeypatch, said, draws=7, courses=3)
    assert [one.shape for one in said.treated] == [(3, 24), (2, 24), (2, 24)]
    assert {int(count) for one in said.treated for count in one.sum(axis=1)} == {4}
    assert len({one.tobytes() for each in said.treated for one in each}) == 7


@pytest.mark.statistical
def test_machines_are_drawn_alike():
    """600 draws of 6 out of 24 machines: each is in 150, ± 10.6; beyond 5 deviations once in 70,000 seeds."""
    asked, whole = ScorecardQuestion((), (6,), draws=600, machines=24), fleet("base", 1, 24)[0]
    _, (treated,) = pieces._draws(asked, Piece("base", 3), whole, 6)
    assert np.abs(treated.sum(axis=0) - 150).max() < 53


def test_a_row_does_not_depend_on_what_else_is_asked():
    whole = judged(SIX, fleet, Piece("base", 2))["rows"]
    part = judged(ScorecardQuestion(("shrunken",), (8,), draws=40, machines=24), fleet, Piece("base", 2))["rows"]
    assert part == [row for row in whole if row["estimator"] == "shrunken" and row["machines"] == 8]
    other = judged(SIX, fleet, Piece("base", 3))["rows"]
    assert other != whole


def test_a_piece_is_what_json_holds_and_has_its_parts():
    made = judged(SIX, fleet, Piece("wide", 1))
    assert made.keys() == PARTS
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["truths"] == {"day": EFFECT}


def test_no_draws_are_made_of_more_than_half_of_the_machines():
    asked = ScorecardQuestion(("ratio",), (8, 12, 13), draws=2, machines=24)
    assert [row["machines"] for row in judged(asked, fleet, Piece("base", 1))["rows"]] == [8, 12]


def test_corners_take_turns():
    made = cut(["a", "b"], 5, first=7)
    assert [tuple(one) for one in made] == [("a", 7), ("b", 7), ("a", 8), ("b", 8), ("a", 9)]


def test_an_estimator_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="estimator: should be one of"):
        judged(ScorecardQuestion(("guess",), (4,), machines=24), fleet, Piece("base", 1))


def arranged(**changes):
    """A design that gives its first machines the feature and has an estimator of its own."""
    whole = fleet("base", 1, 24)[0]
    own = Said(*(arrays(*np.full((3, 20), 0.5)) for _ in range(2)))

    def arrange(number, draws, _rng):
        return own, np.tile(np.arange(24) < number, (draws, 1))

    chosen = Arrangement(arrange, lambda number: number != 8)
    return whole._replace(name="chosen", chosen=chosen, **changes), own


def test_a_design_chooses_its_machines_and_brings_its_estimator():
    design, own = arranged(estimators=frozenset({"ratio"}), thinned=2)
    rows = judged(replace(SIX, sizes=(4, 8, 12)), lambda *_: [design], Piece("base", 1))["rows"]
    assert [(row["machines"], row["estimator"], row["draws"]) for row in rows] == [
        (4, "ratio", 20),
        (4, "said", 20),
        (12, "ratio", 20),
        (12, "said", 20),
    ]
    assert [one[0].nonzero()[0].tolist() for one in own.treated] == [list(range(4)), list(range(12))]


def test_only_designs_that_are_named_are_judged():
    asked = ScorecardQuestion(("ratio",), (4,), draws=2, machines=24, designs=("week",))
    day = fleet("base", 1, 24)[0]
    made = judged(asked, lambda *_: [day, day._replace(name="week")], Piece("base", 1))
    assert list(made["truths"]) == ["week"]
    assert {row["design"] for row in made["rows"]} == {"week"}
