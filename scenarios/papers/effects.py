"""Rows about experiments on a fleet: the scorecard of estimators, the guards, and the planner, judged by simulation."""

import math
from collections.abc import Mapping
from typing import Any, Final

import pandas as pd

from analysis.effects.methods import RECOMMENDED, names
from analysis.figures.criteria import numbers
from scenarios.papers.evidence import Outcome, Row, Sources

FLEETS: Final = 200
DRAWS: Final = 500
"""Of each number of machines and design in each fleet."""
GUARDED: Final = 20
"""Fleets that faults are planted in."""
_AGAINST_TIME: Final = ("day", "week")
"""Designs with machines that have the feature beside machines that have not."""
_PLAIN: Final = (*_AGAINST_TIME, "crossover")
"""Designs that draw machines at random from the whole fleet."""


def _scorecard(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    told = sources.trial("scorecard", fleets=FLEETS, draws=DRAWS)
    mine = _of(told["corners"], RECOMMENDED)
    sums = mine.groupby(["corner", "design"])[["covered", "draws"]].sum().reset_index()
    sums["coverage"] = sums["covered"] / sums["draws"]
    beside, switched = (sums[sums["design"].isin(which)] for which in (_AGAINST_TIME, ("crossover",)))
    gains = _of(told["gains"], RECOMMENDED)
    fine = [(_needed(told, "fine", design), _needed(told, "base", design)) for design in _AGAINST_TIME]
    judged = numbers(
        corners=float(mine["corner"].nunique()),
        draws=float(sums.loc[sums["design"].isin(_PLAIN), "draws"].min()),
        coverage_min=float(beside["coverage"].min()),
        coverage_max=float(beside["coverage"].max()),
        crossover_coverage_min=float(switched["coverage"].min()),
        crossover_coverage_max=float(switched["coverage"].max()),
        designs_coverage_min=_least_of_others(told["estimators"]),
        day=_needed(told, "base", "day"),
        week=_needed(told, "base", "week"),
        crossover_80=_needed(told, "autocorrelation_80", "crossover"),
        crossover_50=_needed(told, "autocorrelation_50", "crossover"),
        against_cuped=float(gains["gain"].min()),
        against_cuped_worst=float(gains["worst"].min()),
        fine_coverage=_apart(beside, "fine", "base"),
        fine_n95=float(pd.Series([abs(math.log(one) - math.log(other)) for one, other in fine]).max(skipna=False)),
    )
    least = beside.sort_values("coverage", kind="stable").iloc[0]
    note = (
        f"{told['fleets']} fleets; {RECOMMENDED}; its least coverage of a corner is in {least['corner']} "
        f"({least['design']}); machines for +1% in 95% of draws; {_published(told)}; digest {told['digest'][:12]}"
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


def _apart(sums: pd.DataFrame, corner: str, other: str) -> float:
    """Return how far apart coverage is in two corners, the most of all designs; NaN where one was not tried."""
    both = [sums[sums["corner"] == name].set_index("design")["coverage"] for name in (corner, other)]
    return float((both[0] - both[1]).abs().max(skipna=False)) if len(both[0]) and len(both[1]) else math.nan


def _least_of_others(rows: list[dict[str, Any]]) -> float:
    """Return the least coverage of the designs that choose their machines, each by the estimator that is its own."""
    plain = set(names())
    least = math.inf
    for design in {row["design"] for row in rows} - set(_PLAIN):
        of = {row["estimator"]: row["coverage"] for row in rows if row["design"] == design}
        own = [of[name] for name in of if name not in plain] or [of[name] for name in of if name == RECOMMENDED]
        least = min([least, *own])
    return least if math.isfinite(least) else math.nan


def _published(told: Mapping[str, Any]) -> str:
    """Return what the published estimator covers on the same draws, in words."""
    covers = [f"{100 * row['coverage']:.0f}% ({row['design']})" for row in _rows(told, "published")]
    return f"as published covers {', '.join(covers)}" if covers else "nothing is said as published"


def _rows(told: Mapping[str, Any], estimator: str) -> list[dict[str, Any]]:
    return [row for row in told["estimators"] if row["estimator"] == estimator]


def _guards(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    told = sources.trial("guards", fleets=GUARDED)
    names = ("faults", "healthy_cases", "missed", "harmless", "false_alarms", "weak_alarms")
    return Outcome(numbers(**{name: float(told[name]) for name in names}), table=pd.DataFrame(told["planted"]))


def _planner(sources: Sources, _paper: pd.DataFrame) -> Outcome:
    told = sources.trial("planner")
    judged = numbers(fleets=float(told["fleets"]), power=told["power"], margin=told["margin"])
    return Outcome(judged, table=pd.DataFrame([_planned(row) for row in told["rows"]]))


def _planned(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was planned of one design on one fleet beside what came true."""
    planned, real = row["predicted"], row["real"]
    named = {name: row[name] for name in ("corner", "fleet", "design", "machines")}
    margins = {"planned_margin": planned["margin"], "margin": real["margin"]}
    return named | margins | {"planned_power": planned["power"], "power": real["power"]}


EFFECTS: dict[str, Row] = {
    "world/scorecard": Row("estimators of a change of the fleet, over a sweep of fleets", (), _scorecard),
    "world/guards": Row("whether guards find planted faults and leave healthy experiments alone", (), _guards),
    "world/planner": Row("whether what a plan predicts is what happens on later days", (), _planner),
}
"""The rows about experiments on a fleet."""
