"""Rows about experiments on a fleet: the scorecard of estimators, the guards, and the planner, judged by simulation."""

import math
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from analysis.effects.methods import RECOMMENDED
from analysis.figures.criteria import numbers
from scenarios.evidence import Outcome, Row, Sources

FLEETS: Final = 200
DRAWS: Final = 500
"""Of each number of machines and design in each fleet."""
GUARDED: Final = 20
"""Fleets that faults are planted in."""
_AGAINST_TIME: Final = ("day", "week")
"""Designs with machines that have the feature beside machines that have not."""


def _scorecard(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    told = sources.trial("scorecard", fleets=FLEETS, draws=DRAWS)
    mine = _of(told["corners"], RECOMMENDED)
    beside = mine[mine["design"].isin(_AGAINST_TIME)]
    sums = beside.groupby(["corner", "design"])[["covered", "answered", "draws"]].sum()
    coverage = sums["covered"] / sums["answered"]
    ratios = pd.DataFrame(told["ratios"])
    cuped = ratios[(ratios["estimator"] == RECOMMENDED) & (ratios["against"] == "cuped")]
    judged = numbers(
        corners=float(mine["corner"].nunique()),
        draws=float(sums["draws"].min()),
        coverage_min=float(coverage.min()),
        coverage_max=float(coverage.max()),
        day=_needed(told, "base", "day"),
        week=_needed(told, "base", "week"),
        crossover_80=_needed(told, "autocorrelation_80", "crossover"),
        crossover_50=_needed(told, "autocorrelation_50", "crossover"),
        against_cuped=1.0 / float(cuped["ratio"].max()) if len(cuped) else math.nan,
    )
    worst = " (".join(map(str, coverage.index[int(coverage.to_numpy().argmin())])) + ")"
    note = (
        f"{told['fleets']} fleets; {RECOMMENDED}; its least coverage of a corner is in {worst}; machines for +1% in "
        f"95% of draws; digest {told['digest'][:12]}"
    )
    return Outcome(judged, table=pd.DataFrame(told["estimators"]), note=note)


def _of(rows: list[dict[str, Any]], estimator: str) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    return table[table["estimator"] == estimator]


def _needed(told: Mapping[str, Any], corner: str, design: str) -> float:
    """Return the machines that the recommended estimator needs; infinite if more than were tried, NaN if not tried."""
    for row in told["needed"]:
        if (row["corner"], row["design"], row["estimator"]) == (corner, design, RECOMMENDED):
            return math.inf if row["bound"] == "more than" else float(row["n95"])
    return math.nan


def _guards(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    told = sources.trial("guards", fleets=GUARDED)
    names = ("faults", "healthy_cases", "missed", "harmless", "false_alarms", "weak_alarms")
    return Outcome(numbers(**{name: float(told[name]) for name in names}), table=pd.DataFrame(told["planted"]))


def _planner(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    told = sources.trial("planner")
    judged = numbers(fleets=float(told["fleets"]), power=told["power"], margin=told["margin"])
    return Outcome(judged, table=pd.json_normalize(told["rows"]))


EFFECTS: dict[str, Row] = {
    "world/scorecard": Row("estimators of a change of the fleet, over a sweep of fleets", (), _scorecard),
    "world/guards": Row("whether guards find planted faults and leave healthy experiments alone", (), _guards),
    "world/planner": Row("whether what a plan predicts is what happens on later days", (), _planner),
}
"""The rows about experiments on a fleet."""
