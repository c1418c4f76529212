"""Rows about experiments on a fleet, from studies told in place of those simulated."""

import math

import pytest

from analysis.figures.criteria import judge
from scenarios.papers.evidence import Sources, no_worlds, published
from scenarios.papers.reproduce import ROWS


def quietly(_what, _share):
    pass


def never(*_asked):
    raise AssertionError("no run is needed")


def needed(corner, design, n95, bound=""):
    return {"corner": corner, "design": design, "estimator": "adjusted", "n95": n95, "bound": bound}


def scorecard(progress, fleets, draws):
    sums = {"estimator": "adjusted", "draws": 3000, "answered": 3000, "machines": 50}
    corners = [
        sums | {"corner": "base", "design": "day", "covered": 2850},
        sums | {"corner": "rough", "design": "week", "covered": 2700},
        sums | {"corner": "rough", "design": "crossover", "covered": 0},
        sums | {"corner": "fine", "design": "day", "covered": 2880},
    ]
    wanted = [needed("base", "day", 90.0), needed("base", "week", 400.0, "more than")]
    wanted += [needed("fine", "day", 99.0), needed("fine", "week", 300.0)]
    gains = [
        {"design": design, "estimator": "adjusted", "against": "cuped", "gain": gain, "worst": worst}
        for design, gain, worst in (("day", 4.0, 1.5), ("paired", 3.0, 0.9))
    ]
    every = [
        {"design": design, "estimator": estimator, "coverage": coverage}
        for design, estimator, coverage in (
            ("day", "published", 0.8),
            ("day", "adjusted", 0.9),
            ("paired", "adjusted", 0.91),
            ("paired", "paired", 0.955),
            ("one_job", "adjusted", 0.945),
            ("one_job", "cuped", 0.5),
        )
    ]
    made = {"corners": corners, "needed": wanted, "gains": gains, "estimators": every}
    return made | {"fleets": fleets, "digest": "ab"}


def guards(progress, fleets):
    numbers = {"faults": 27, "healthy_cases": 29, "missed": 0, "harmless": 1, "false_alarms": 0.0, "weak_alarms": 0.0}
    return numbers | {"planted": [{"fault": "looks"}]}


def planner(progress):
    planned, real = {"power": 0.95, "margin": 0.01}, {"power": 0.94, "margin": 0.0102}
    row = {"corner": "base", "fleet": 1, "design": "day", "machines": 90, "predicted": planned, "real": real}
    return {"fleets": 3, "power": 0.01, "margin": 0.02, "rows": [row]}


SOURCES = Sources(never, quietly, no_worlds, {"scorecard": scorecard, "guards": guards, "planner": planner})


@pytest.mark.parametrize("name", ["world/scorecard", "world/guards", "world/planner"])
def test_every_criterion_is_measured_or_said_to_be_unknown(name):
    paper = published(name)
    outcome = ROWS[name].compute(SOURCES, paper)
    assert {check.name for check in judge(outcome.judged, paper)} == set(paper["series"].str.removeprefix("criterion:"))


def test_the_scorecard_tells_the_worst_corner_and_the_machines_that_were_not_enough():
    paper = published("world/scorecard")
    outcome = ROWS["world/scorecard"].compute(SOURCES, paper)
    told = {check.name: check for check in judge(outcome.judged, paper)}
    assert told["coverage_min"].measured == pytest.approx(0.9)
    assert told["coverage_max"].measured == pytest.approx(0.96)
    assert told["crossover_coverage_max"].measured == 0.0
    assert told["designs_coverage_min"].measured == pytest.approx(0.945)
    assert (told["against_cuped"].measured, told["against_cuped_worst"].measured) == (3.0, 0.9)
    assert told["fine_coverage"].measured == pytest.approx(0.01)
    assert told["fine_n95"].measured == math.inf
    assert told["week"].measured == math.inf
    assert "rough (week)" in outcome.note
    assert "as published covers 80% (day)" in outcome.note


def test_what_was_planned_stands_beside_what_came_true():
    (row,) = ROWS["world/planner"].compute(SOURCES, published("world/planner")).table.to_dict("records")
    told = {"corner": "base", "fleet": 1, "design": "day", "machines": 90}
    assert row == told | {"planned_margin": 0.01, "margin": 0.0102, "planned_power": 0.95, "power": 0.94}


def test_a_study_that_is_not_to_be_had_says_so():
    nothing = Sources(never, quietly)
    with pytest.raises(ValueError, match="guards: it is not to be had here"):
        nothing.trial("guards", fleets=1)
