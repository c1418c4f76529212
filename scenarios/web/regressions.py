"""The page of alarms: functions that became dearer at a time, and what each change goes with."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.profiling.asking import visits_of_fleet
from analysis.profiling.regression import Criteria
from scenarios.web.asked import Asked, Pairs, RefusedError, gather
from scenarios.web.site import Page, Site
from scenarios.web.tables import table

DAY_S = 86400.0
_SHOWN = ["function", "dimension", "value", "application", "factor", "low", "high", "cost", "p_value"]
_NAMES = {"dimension": "goes with", "low": "factor from", "high": "factor to", "cost": "cost_share"}
_UNIT_S = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": DAY_S}
_DAYS = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}) ?(?P<unit>s|min|m|h|d|)")


def regress(site: Site, pairs: Pairs) -> Page:
    """Return the alarms of before a day against after it; without a day, the days that there are to choose from.

    Raises
    ------
    RefusedError
        If `at` is no number of days that parts the visits, or there are no samples on a side.
    """
    problems = list[str]()
    given = gather(pairs, ("at",), problems).get("at", [])
    at = _days(given, problems)
    if problems:
        raise RefusedError(problems)
    visits = visits_of_fleet(site.database)
    start = np.floor(visits["start_s"].to_numpy(np.float64) / DAY_S).astype(np.int64)
    found, sides = None, None
    if at is not None:
        rows = site.alarms(at * DAY_S)
        told = rows.reindex(columns=_SHOWN).rename(columns=_NAMES)
        sides = table(_sides(visits, at), f"What is compared; functions that became dearer: {len(rows)}")
        fleet = Asked(site.default())

        def link(row: Mapping[str, Any]) -> str:
            return fleet.only("function", str(row["function"])).grouped("application", "revision").url("/query")

        found = table(told, f"Functions that became dearer at day {at:g}", {"function": link})
    shown = {
        "at": "" if at is None else f"{at:g}",
        "days": sorted(set(start.tolist()))[1:],
        "criteria": Criteria(),
        "found": found,
        "sides": sides,
    }
    return Page("regress.html", "Regressions", shown)


def _sides(visits: pd.DataFrame, at: float) -> pd.DataFrame:
    """Return the visits and machines of both sides."""
    late = visits["start_s"] >= at * DAY_S
    sides = visits.groupby(late)["machine"].agg(["size", "nunique"]).sort_index()
    return pd.DataFrame(
        {
            "side": [f"{'from' if each else 'before'} day {at:g}{' on' if each else ''}" for each in sides.index],
            "visits": sides["size"].to_numpy(),
            "machines": sides["nunique"].to_numpy(),
        }
    )


def _days(given: list[str], problems: list[str]) -> float | None:
    """Return the day that is asked for; adds to `problems` what is none."""
    if not given:
        return None
    text = given[0].strip()
    if len(given) > 1:
        problems.append(f"at: is given {len(given)} times")
    elif found := _DAYS.fullmatch(text):
        return float(found["number"]) * _UNIT_S[found["unit"] or "d"] / DAY_S
    else:
        problems.append(f"at: should be a number of days, such as 7, or a time such as 7d or 36h, got {text[:60]}")
    return None
