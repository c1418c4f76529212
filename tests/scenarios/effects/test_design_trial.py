"""Plans judged: differences are those of the worst plan, and a small fleet is judged from end to end."""

import pytest

from scenarios.effects import design_trial
from scenarios.effects.design_trial import judged, worst
from scenarios.effects.scorecard import corners
from scenarios.papers.catalogue import ROWS
from scenarios.papers.sources import Sources
from tests.helpers.reproduce_worlds import failing


def test_the_worst_of_plans_is_told():
    rows = [
        {"predicted": {"power": 0.95, "margin": 0.010}, "real": {"power": real, "margin": margin}}
        for real, margin in ((0.90, 0.010), (0.96, 0.008))
    ]
    assert worst(rows) == pytest.approx((0.05, 0.25))


@pytest.mark.parametrize("fleet", [corner for corner, _ in design_trial.FLEETS])
def test_plans_are_told_of_the_kind_of_feature_that_a_fleet_has(fleet):
    assert corners.corner(fleet).change in design_trial.SPREADS


def test_a_small_fleet_is_planned_and_judged_in_every_design_and_has_too_few_machines_for_its_plans(monkeypatch):
    monkeypatch.setattr(design_trial, "_WEEK", 2)
    monkeypatch.setattr(design_trial, "_LAST", 6)
    monkeypatch.setattr(design_trial, "_SCHEDULES", 1)
    made = judged("base.3", machines=40, draws=40)
    assert [row["design"] for row in made["rows"]] == [
        "1 day after 1 day",
        "2 days after 2 days",
        f"crossover of {round(86400 / corners.CROSSOVER_PERIOD_S)} periods",
    ]
    assert all(row["predicted"]["machines"] == row["real"]["machines"] for row in made["rows"])
    assert all(0 < row["real"]["margin"] < 0.1 for row in made["rows"])
    power, margin = worst(made["rows"])
    told = Sources(
        None,
        None,
        trials={"planner": lambda **_: {"fleets": 3, "power": power, "margin": margin, "rows": made["rows"]}},
    )
    assert failing("world/planner", ROWS["world/planner"].outcome(told).measured) == ["power", "margin"]
