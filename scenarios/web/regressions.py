"""The page of alarms: functions that became more expensive at a time, and what each change goes with."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.profiling.fleet_samples import visits_of_fleet
from analysis.profiling.query import unknown
from analysis.profiling.regressions.comparison import AlarmCriteria
from models.arrays import DAY_S
from scenarios.files import options
from scenarios.profiling.regress import ADJUSTMENTS, adjustment, least_cost, least_growth
from scenarios.views.section import Cell, Table
from scenarios.views.tables import Row, beside, of_frame
from scenarios.web.listing import with_interval
from scenarios.web.parameters import PageQuery, Pairs, RefusedError, gather, value_of
from scenarios.web.site import ProfileSite, WebPage
from scenarios.web.timeline import day_text

_SHOWN = ["function", "goes with", "factor", "interval", "cost_share", "p_value"]
_BOTH_SIDES = frozenset({"application", "platform", "datacentre"})
"""Causes that are there before a change too."""
_USUAL = {
    name: options.typed(metavar, getattr(AlarmCriteria(), name))
    for name, metavar in {"min_factor": "X", "min_cost": "SHARE", "false_alarms": "SHARE", "adjustment": ""}.items()
}
"""Criteria as the form shows them unless others are asked for."""


@dataclass(frozen=True, slots=True)
class RegressView:
    """What the page of alarms shows; without a time there are no alarms, and days to choose from."""

    at: str
    event: str
    texts: Mapping[str, str]
    """Criteria as they were written."""
    days: dict[int, str]
    """Days between which visits can be parted, with their names."""
    day: str
    """The first."""
    span: list[str]
    alarms: Table | None = None
    sides: Table | None = None
    verdict: str = ""
    could_find: str = ""
    improvements: Table | None = None
    cheaper: str = ""
    adjustments: tuple[str, ...] = ADJUSTMENTS


def regress(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the alarms of before a time against after it; without one, the days that there are to choose from."""
    problems = list[str]()
    given = gather(pairs, ("at", "event", *_USUAL), problems)
    problems += [f"{name}: is given {len(texts)} times" for name, texts in given.items() if len(texts) > 1]
    texts_given = {name: texts[0].strip() for name, texts in given.items()}
    at_s = value_of("at", texts_given, options.moment, None, problems)
    event = texts_given.get("event", site.events[0] if site.events else "cycles")
    if event not in site.events:
        problems.append(f"event: {unknown('event', event, site.events)}")
    texts = _USUAL | {name: texts_given[name] for name in _USUAL if name in texts_given}
    usual = AlarmCriteria()
    criteria = AlarmCriteria(
        value_of("false_alarms", texts, options.share, usual.false_alarms, problems),
        value_of("min_factor", texts, least_growth, usual.min_factor, problems),
        value_of("min_cost", texts, least_cost, usual.min_cost, problems),
        value_of("adjustment", texts, adjustment, usual.adjustment, problems),
    )
    if problems:
        raise RefusedError(problems)
    visits = visits_of_fleet(site.database)
    start = np.floor(visits["start_s"].to_numpy(np.float64) / DAY_S).astype(np.int64)
    origin_s = site.database.origin_s
    days = {int(day): day_text(float(day), origin_s) for day in np.unique(start)}
    view = RegressView(
        at=texts_given.get("at", ""),
        event=event,
        texts=texts,
        days=dict(list(days.items())[1:]),
        day=next(iter(days.values())),
        span=_span(visits["start_s"]),
    )
    if at_s is None:
        return WebPage("regress.html", "Regressions", view)
    regression = site.regression(at_s, event, criteria)
    fleet = PageQuery(site.default()).about(event)

    def link(row: Row) -> str:
        return fleet.only("function", str(row["function"])).grouped("application", "revision").url("/query")

    def flames(row: Mapping[Hashable, object]) -> str:
        tags = tuple(str(row[name]) for name in ("dimension", "value", "application"))
        return around(site, str(row["function"]), (tags[0], tags[1], tags[2]), at_s)

    def linked(rows: pd.DataFrame, title: str) -> Table:
        table = with_interval(of_frame(_in_words(rows), title, {"function": link}, bar=""))
        if not site.stack_events:
            return table
        cells = tuple(Cell("flame graph", href=flames(row)) for row in rows.to_dict("records"))
        return beside(table, "see", cells)

    when = day_text(at_s / DAY_S, origin_s)
    view = replace(
        view,
        sides=of_frame(_sides(visits, at_s, when), "What is compared"),
        alarms=linked(regression.alarms, f"Functions that became more expensive at {when}"),
        verdict=regression.verdict(),
        could_find=regression.could_find(),
        improvements=linked(regression.improvements, f"Functions that became cheaper at {when}"),
        cheaper=regression.cheaper(),
    )
    return WebPage("regress.html", "Regressions", view)


def around(
    site: ProfileSite, function: str, cause: tuple[str, str, str], since_s: float, until_s: float | None = None
) -> str:
    """Return the flame graphs of before a change and since, around a function, where its cause acts on both.

    Parameters
    ----------
    site : asked
    function : that changed
    cause : dimension, its value, the application if it is one's own
    since_s, until_s : when it changed, and when it was over
    """
    stacks = PageQuery(site.default(("application",), stacks=True))
    dimension, value, application = cause
    key, allowed = ("application", application) if application else (dimension, value)
    if key in _BOTH_SIDES:
        stacks = stacks.only(key, allowed)
    since, until = (f"{time_s / DAY_S:.15g}d" for time_s in (since_s, since_s if until_s is None else until_s))
    sides = [("a", f"until={since}"), ("b", f"since={since}"), *([] if until_s is None else [("b", f"until={until}")])]
    return replace(stacks, more={"focus": function}).url("/flamediff", sides)


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    """Return alarms with what they go with, and the intervals of their factors, in words."""
    causes = zip(rows["dimension"], rows["value"], rows["application"], strict=True)
    goes_with = [
        f"{key} {value}" + (f" of {program}" if key == "revision" and program else "") for key, value, program in causes
    ]
    interval = [f"{low:.3g} to {high:.3g}" for low, high in zip(rows["low"], rows["high"], strict=True)]
    words = rows.rename(columns={"cost": "cost_share"}).assign(interval=interval)
    words["goes with"] = goes_with
    return words.reindex(columns=_SHOWN)


def _span(start_s: "pd.Series[float]") -> list[str]:
    """Return the days of the first and the last visit and a time between; nothing if no time is told between them."""
    first, last = start_s.min() / DAY_S, start_s.max() / DAY_S
    words = [f"{day:.6g}" for day in (first, last)]
    return [*words, f"{(first + last) / 2:.6g}d"] if words[0] != words[1] else []


def _sides(visits: pd.DataFrame, at_s: float, when: str) -> pd.DataFrame:
    """Return the visits and machines of both sides."""
    late = visits["start_s"] >= at_s
    sides = visits.groupby(late)["machine"].agg(["size", "nunique"]).sort_index()
    return pd.DataFrame(
        {
            "side": [f"{'from' if after else 'before'} {when}{' on' if after else ''}" for after in sides.index],
            "visits": sides["size"].to_numpy(),
            "machines": sides["nunique"].to_numpy(),
        }
    )
