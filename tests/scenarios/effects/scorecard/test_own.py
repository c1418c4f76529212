"""Estimators of other people on the scorecard see what a real fleet could give, and are counted as ours are."""

import numpy as np
import pytest

from analysis.effects.estimator import ExperimentTables, OnTables, PotentialTables, experiments, many
from analysis.effects.methods import method
from analysis.effects.study import Answers
from analysis.statistics import NotEnoughDataError
from models.code.parts import PartError
from scenarios.effects.own import OwnEstimator
from scenarios.effects.scorecard.designs import designs
from scenarios.effects.scorecard.pieces import Piece, ScorecardQuestion, judged
from scenarios.effects.scorecard.scorecard import concluded, place

TWIN = """
from analysis.effects.estimator import OnTables
from analysis.effects.methods import method

class Twin:
    name = "twin"
    estimate = OnTables(method("own-past")).estimate

class Broken:
    def estimate(self, experiment):
        return experiment.study["gone"].mean()
"""


@pytest.fixture(scope="module")
def day():
    (whole,) = designs("base", 1, 60, ("day",))
    return whole


def tables(design, draws=3, size=12):
    treated = np.zeros((draws, len(design.courses[0].machines)), dtype=np.bool_)
    for draw, row in enumerate(treated):
        row[np.random.default_rng(draw).permutation(len(row))[:size]] = True
    before, off, on, jobs = design.tables
    return PotentialTables(before, off, on, design.courses[0].machines, treated, jobs)


@pytest.mark.parametrize("name", ["unadjusted", "ratio", "cuped"])
def test_a_method_of_ours_says_the_same_of_tables_as_of_sums(day, name):
    asked, ours = tables(day), method(name)
    change, low, high = many(name, OnTables(ours), asked).T
    answers: Answers = ours.many(day.courses[0], asked.treated)
    assert change == pytest.approx(answers.change, rel=0.02, abs=1e-4)
    assert (high - low) / 2 == pytest.approx(answers.margin(), rel=0.02)


def test_an_estimator_sees_of_each_machine_the_course_that_it_took(day):
    asked = tables(day, draws=1)
    (experiment,) = experiments(asked)
    having = set(asked.machines[asked.treated[0]])
    study, both = experiment.study, asked.off.assign(on=asked.on["value"])
    assert set(study.loc[study["treated"], "machine"]) == having
    expected = np.where(both["machine"].isin(having), both["on"], both["value"])
    assert study["value"].to_numpy() == pytest.approx(expected)
    assert not experiment.before["treated"].any()


def test_they_are_counted_beside_ours_and_fail_in_their_own_name(tmp_path):
    file = tmp_path / "twin.py"
    file.write_text(TWIN)
    question = ScorecardQuestion.of(["own-past", f"{file}:Twin"], (12,), 6, 60, ("day", "one_job"))
    fleet = judged(question, designs, Piece("base", 1))
    rows = fleet["rows"]
    (note,) = concluded([fleet], question, tmp_path).notes
    assert note.startswith("twin: not judged on one_job; machines there")
    assert [(row["design"], row["estimator"]) for row in rows] == [("day", "own-past"), ("day", "twin")]
    assert rows[0]["draws"] == rows[1]["draws"] == rows[1]["answered"] == 6
    assert rows[1]["covered"] == rows[0]["covered"]
    assert rows[1]["margin"] == pytest.approx(rows[0]["margin"], rel=0.05)
    broken = ScorecardQuestion.of([f"{file}:Broken"], (12,), 2, 60, ("day",))
    with pytest.raises(PartError, match=r"twin\.py:11: KeyError: 'gone'"):
        judged(broken, designs, Piece("base", 1))


def test_a_fast_form_is_asked_once_and_its_shape_is_checked(day):
    class Fast:
        asked = 0

        def estimate(self, _experiment):
            raise AssertionError

        def estimate_many(self, given):
            self.asked += 1
            change = np.zeros(len(given.treated))
            return change, change - 1, change + 1

    fast = Fast()
    assert many("fast", fast, tables(day)).tolist() == [[0.0, -1.0, 1.0]] * 3
    assert fast.asked == 1
    fast.estimate_many = lambda given: np.zeros(3)
    with pytest.raises(ValueError, match="three arrays of 3 numbers"):
        many("fast", fast, tables(day))


def test_the_bytes_of_the_file_are_part_of_the_question(tmp_path):
    file = tmp_path / "twin.py"
    file.write_text(TWIN)
    asked = [f"{file}:Twin"], (12,), 6, 60, ("day",)
    before = place(ScorecardQuestion.of(*asked), tmp_path)
    assert place(ScorecardQuestion.of(*asked), tmp_path) == before
    file.write_text(TWIN + "# changed")
    assert place(ScorecardQuestion.of(*asked), tmp_path) != before


def test_what_an_estimator_writes_into_its_tables_no_other_sees(day):
    def spoiling(experiment):
        seen.append((experiment.jobs["quota"].sum(), experiment.observations["value"].sum()))
        experiment.jobs["quota"] = 0.0
        experiment.observations["value"] = 0.0
        return 0.0, -1.0, 1.0

    def spoiling_many(given):
        for table in (given.before, given.off, given.on):
            table["value"] = 0.0
        given.treated[:] = False
        spoiling(ExperimentTables(given.off, given.jobs))
        raise NotEnoughDataError(2, 1, "machines")

    seen, asked = [], tables(day, draws=1)
    estimator = OwnEstimator.of(spoiling)
    for _ in range(2):
        estimator.many(asked)
    assert seen[0] == seen[1]
    fast = OwnEstimator.of(type("Fast", (), {"estimate": spoiling, "estimate_many": staticmethod(spoiling_many)}))
    assert np.isnan(fast.many(asked)).all()
    assert estimator.many(asked).tolist() == [[0.0, -1.0, 1.0]]
    assert seen[-1] == seen[0]
