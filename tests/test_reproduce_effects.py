"""Rows about experiments on a fleet, from studies told in place of those simulated."""

import math

import pytest

from analysis.figures.criteria import judge
from scenarios.evidence import Sources, no_worlds, published
from scenarios.reproduce import ROWS


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
    ]
    wanted = [needed("base", "day", 90.0), needed("base", "week", 400.0, "more than")]
    ratios = [{"design": "day", "estimator": "adjusted", "against": "cuped", "ratio": 0.25}]
    return {"corners": corners, "needed": wanted, "ratios": ratios, "estimators": [], "fleets": fleets, "digest": "ab"}


def guards(progress, fleets):
    numbers = {"faults": 27, "healthy_cases": 29, "missed": 0, "harmless": 1, "false_alarms": 0.0, "weak_alarms": 0.0}
    return numbers | {"planted": [{"fault": "looks"}]}


def planner(progress):
    return {"fleets": 3, "power": 0.01, "margin": 0.02, "rows": [{"design": "day", "predicted": {"power": 0.95}}]}


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
    assert told["coverage_max"].measured == pytest.approx(0.95)
    assert told["against_cuped"].measured == pytest.approx(4.0)
    assert told["week"].measured == math.inf
    assert "rough (week)" in outcome.note


def test_a_study_that_is_not_to_be_had_says_so():
    nothing = Sources(never, quietly)
    with pytest.raises(ValueError, match="guards: it is not to be had here"):
        nothing.trial("guards", fleets=1)
