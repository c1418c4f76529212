"""The page of alarms: functions that became dearer at a time, and what each change goes with."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.profiling.asking import visits_of_fleet
from analysis.profiling.regression import Criteria
from scenarios.web.asked import Asked, Pairs, RefusedError, gather, time_s
from scenarios.web.site import Page, Site
from scenarios.web.tables import table

DAY_S = 86400.0
_SHOWN = ["function", "dimension", "value", "application", "factor", "low", "high", "cost", "p_value"]
_NAMES = {"dimension": "goes with", "low": "factor from", "high": "factor to", "cost": "cost_share"}


def regress(site: Site, pairs: Pairs) -> Page:
    """Return the alarms of before a time against after it; without one, the days that there are to choose from.

    Raises
    ------
    RefusedError
        If `at` is no time that parts the visits, or there are no samples on a side.
    """
    problems = list[str]()
    given = gather(pairs, ("at",), problems).get("at", [])
    at_s = _time_s(given, problems)
    if problems:
        raise RefusedError(problems)
    visits = visits_of_fleet(site.database)
    start = np.floor(visits["start_s"].to_numpy(np.float64) / DAY_S).astype(np.int64)
    found, sides = None, None
    if at_s is not None:
        at, rows = at_s / DAY_S, site.alarms(at_s)
        told = rows.reindex(columns=_SHOWN).rename(columns=_NAMES)
        sides = table(_sides(visits, at), f"What is compared; functions that became dearer: {len(rows)}")
        fleet = Asked(site.default())

        def link(row: Mapping[str, Any]) -> str:
            return fleet.only("function", str(row["function"])).grouped("application", "revision").url("/query")

        found = table(told, f"Functions that became dearer at day {at:g}", {"function": link})
    shown = {
        "at": given[0].strip() if given else "",
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


def _time_s(given: list[str], problems: list[str]) -> float | None:
    """Return the time that is asked for; adds to `problems` what is none."""
    if len(given) > 1:
        problems.append(f"at: is given {len(given)} times")
    return time_s("at", given[0], problems) if len(given) == 1 else None
