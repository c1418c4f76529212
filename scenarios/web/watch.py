"""The page of changes over time: what `wsc profile watch` concludes, each change with its course."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

import pandas as pd

from analysis.profiling.changes.detection import WatchCriteria
from analysis.profiling.changes.reading import WatchSpan
from analysis.profiling.fleet_samples import visits_of_fleet
from analysis.profiling.query import unknown
from models.arrays import DAY_S
from scenarios.files import options
from scenarios.profiling.regress import least_cost, least_growth
from scenarios.profiling.watch import ProfileWatch, WatchedChange, span_faults
from scenarios.views.section import Cell, Table
from scenarios.views.tables import Row, beside, of_frame
from scenarios.web.listing import with_interval
from scenarios.web.parameters import PageQuery, Pairs, RefusedError, gather, value_of
from scenarios.web.regressions import around
from scenarios.web.site import ProfileSite, WatchQuestion, WebPage
from scenarios.web.timeline import ShareLine, band_points, moment_text, most_labels

PATH = "/watch"
_BRIEF, _DRAWN = 8, 40
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 960.0, 120.0, 48.0, 8.0, 22.0
_MOST_RATIO = 1.25
"""Ends of intervals are drawn up to so many times the largest ratio."""
_USUAL = {
    name: options.typed(metavar, getattr(WatchCriteria(), name))
    for name, metavar in {"min_factor": "X", "min_cost": "SHARE", "false_alarms": "SHARE"}.items()
}
"""Criteria as the form shows them unless others are asked for."""
_VERBS = {"growth": "more expensive", "improvement": "cheaper", "transient": "for a time only", "shift": "passed on"}


@dataclass(frozen=True, slots=True)
class ChangeChart:
    """A change and its course, drawn: what it cost over what it would have cost had nothing changed."""

    place: str
    """Fragment of its address on the page."""
    title: str
    words: str
    width: float
    height: float
    left: float
    line: ShareLine
    x_labels: tuple[tuple[float, str], ...]
    y_labels: tuple[tuple[float, str], ...]
    usual: float
    """Height of 1."""
    changed: tuple[float, float]
    """Left end and width of the time in which it is changed."""
    table: Table


@dataclass(frozen=True, slots=True)
class AlarmingView:
    """What is alarming, in short; `pending`: that is being worked out."""

    url: str
    """Of the page of changes over time."""
    pending: bool
    verdict: str = ""
    could_find: str = ""
    hides: str = ""
    others: str = ""
    alarms: Table | None = None
    """The clearest functions that became more expensive."""
    further: int = 0
    """How many more there are."""


@dataclass(frozen=True, slots=True)
class WatchView:
    """What the page of changes over time shows."""

    event: str
    texts: Mapping[str, str]
    """Criteria and times as they were written."""
    alarming: AlarmingView
    looked_at: Table
    more_alarms: Table | None = None
    others: Table | None = None
    charts: tuple[ChangeChart, ...] = ()
    undrawn: int = 0
    notes: tuple[str, ...] = ()


def watch(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return what changed over time; that it is being worked out, until it is."""
    problems = list[str]()
    given = gather(pairs, ("event", *_USUAL, "since", "until"), problems)
    problems += [f"{name}: is given {len(values)} times" for name, values in given.items() if len(values) > 1]
    written = {name: values[0].strip() for name, values in given.items()}
    event = written.get("event", _first(site))
    if event not in site.events:
        problems.append(f"event: {unknown('event', event, site.events)}")
    usual = WatchCriteria()
    criteria = WatchCriteria(
        value_of("false_alarms", written, options.share, usual.false_alarms, problems),
        value_of("min_factor", written, least_growth, usual.min_factor, problems),
        value_of("min_cost", written, least_cost, usual.min_cost, problems),
    )
    span = WatchSpan(
        value_of("since", written, options.moment, None, problems),
        value_of("until", written, options.moment, None, problems),
    )
    start_s = visits_of_fleet(site.database)["start_s"].to_numpy("float64")
    faults = span_faults(span, start_s, site.database.origin_s)
    problems += [f"{fault.field}: {fault.problem}, got {fault.got}" for fault in faults]
    if problems:
        raise RefusedError(problems)
    question = WatchQuestion(event, criteria, span)
    answer = site.watch(question)
    page = PageQuery(site.default()).about(event)
    url = _url(written)
    view = WatchView(event, _USUAL | written, _alarming(site, answer, url), _looked_at(site, page, question))
    if answer is not None:
        view = _answered(site, answer, url, view)
    return WebPage("watch.html", "Changes over time", view)


def alarming(site: ProfileSite) -> AlarmingView:
    """Return what is alarming if it is known: by the criteria that hold unless others are asked for.

    Parameters
    ----------
    site : whose conclusion is looked for; it is not worked out
    """
    return _alarming(site, site.watch(WatchQuestion(_first(site)), begin=False), PATH)


def _first(site: ProfileSite) -> str:
    return site.events[0] if site.events else "cycles"


def _url(written: Mapping[str, str]) -> str:
    return f"{PATH}?{urlencode(written)}" if written else PATH


def _alarming(site: ProfileSite, answer: ProfileWatch | None, url: str) -> AlarmingView:
    if answer is None:
        return AlarmingView(url, pending=True)
    alarms = answer.alarms
    return AlarmingView(
        url,
        pending=False,
        verdict=answer.verdict(),
        could_find="" if answer.lacking else answer.could_find(),
        hides="" if answer.lacking else answer.hides(),
        others=answer.others(),
        alarms=_listed(site, answer, alarms[:_BRIEF], url, "Functions that became more expensive") if alarms else None,
        further=len(alarms[_BRIEF:]),
    )


def _answered(site: ProfileSite, answer: ProfileWatch, url: str, view: WatchView) -> WatchView:
    """Return the page with the answer."""
    more = answer.alarms[_BRIEF:]
    others = [change for change in answer.changes if change.kind != "growth"]
    ordered = [*answer.alarms, *others]
    return replace(
        view,
        more_alarms=_listed(site, answer, more, url, "Further functions that became more expensive") if more else None,
        others=_listed(site, answer, others, url, "What else changed", kinds=True) if others else None,
        charts=tuple(_chart(answer, change) for change in ordered[:_DRAWN]),
        undrawn=len(ordered[_DRAWN:]),
        notes=answer.notes,
    )


def _looked_at(site: ProfileSite, page: PageQuery, question: WatchQuestion) -> Table:
    """Return what is looked at as a table of one row."""
    visits = visits_of_fleet(site.database)
    visits = visits[question.span.holds(visits["start_s"].to_numpy("float64"))]
    first, last = visits["start_s"].min(), visits["start_s"].max()
    row = {
        "event": question.event,
        "visits": len(visits),
        "machines": int(visits["machine"].nunique()),
        "from": moment_text(float(first), site.database.origin_s) if len(visits) else "",
        "to": moment_text(float(last), site.database.origin_s) if len(visits) else "",
    }
    return of_frame(pd.DataFrame([row]), "What is looked at", {"event": lambda _: page.url("/query")})


def _place(answer: ProfileWatch, change: WatchedChange) -> str:
    return f"change-{answer.changes.index(change) + 1}"


def _name(change: WatchedChange) -> str:
    return f"{change.function}{' with callees' * change.with_callees}"


def _listed(
    site: ProfileSite,
    answer: ProfileWatch,
    changes: Sequence[WatchedChange],
    url: str,
    title: str,
    *,
    kinds: bool = False,
) -> Table:
    """Return changes as a table that leads to their queries, courses and flame graphs."""
    fleet = PageQuery(site.default()).about(answer.event)
    until = any(change.until_s is not None for change in changes)
    parted = any(change.within for change in changes)
    rows = pd.DataFrame(
        {
            "function": _name(change),
            **({"change": _VERBS[change.kind]} if kinds else {}),
            **({"where": change.where() or "everywhere"} if parted else {}),
            "since": moment_text(change.since_s, answer.origin_s),
            **({"until": _until(change, answer.origin_s) or "the end"} if until else {}),
            "goes with": change.goes_with(),
            "factor": change.by(),
            "interval": change.between(),
            "cost_share": change.cost,
        }
        for change in changes
    )
    functions = {_name(change): change.function for change in changes}

    def to_query(row: Row) -> str:
        chosen = fleet.only("function", functions[str(row["function"])])
        return chosen.grouped("application", "revision").url("/query")

    table = with_interval(of_frame(rows, title, {"function": to_query}, bar=""))
    courses = tuple(Cell("course", href=f"{url}#{_place(answer, change)}") for change in changes)
    table = beside(table, "see", courses)
    if not site.stack_events:
        return table
    graphs = tuple(Cell("flame graph", href=_flames(site, change)) for change in changes)
    return beside(table, "or", graphs)


def _flames(site: ProfileSite, change: WatchedChange) -> str:
    """Return the flame graphs of before a change and since."""
    cause = change.causes[0] if change.causes else None
    tags = (cause.dimension, cause.value, cause.application) if cause else ("", "", "")
    return around(site, change.function, tags, change.since_s, change.until_s)


def _chart(answer: ProfileWatch, change: WatchedChange) -> ChangeChart:
    """Return a change, in words and drawn."""
    known = [(step.start_s, step.ratio, step.low, step.high) for step in change.course]
    steps = [
        (start_s, ratio, low, high)
        for start_s, ratio, low, high in known
        if ratio is not None and low is not None and high is not None
    ]
    starts = [step.start_s for step in change.course]
    width_s = starts[1] - starts[0] if len(starts) > 1 else DAY_S
    first_s, last_s = (starts[0], starts[-1] + width_s) if starts else (0.0, DAY_S)
    most = max([1.0, *(ratio for _, ratio, _, _ in steps)])
    highest = min(max([1.0, *(high for *_, high in steps)]), _MOST_RATIO * most)

    def x(time_s: float) -> float:
        part = (time_s - first_s) / (last_s - first_s)
        return round(_LEFT + (_WIDTH - _LEFT) * min(max(part, 0.0), 1.0), 1)

    def y(ratio: float) -> float:
        return round(_TOP + (_HEIGHT - _TOP) * (1.0 - min(ratio / highest, 1.0)), 1)

    at = [x(start_s + width_s / 2.0) for start_s, *_ in steps]
    band = band_points([(place, y(high), y(low)) for place, (_, _, low, high) in zip(at, steps, strict=True)])
    dots = tuple(
        (place, y(ratio), f"{moment_text(start_s, answer.origin_s)}: {ratio:.2f} × ({low:.2f} to {high:.2f})")
        for place, (start_s, ratio, low, high) in zip(at, steps, strict=True)
    )
    line = " ".join(f"{place},{height}" for place, height, _ in dots)
    since = x(change.since_s)
    midnights = _midnights(first_s, last_s, most_labels(answer.origin_s))
    until = x(last_s if change.until_s is None else change.until_s)
    table = pd.DataFrame(
        {
            "from": [moment_text(start_s, answer.origin_s) for start_s, *_ in steps],
            "factor": [ratio for _, ratio, _, _ in steps],
            "interval": [f"{low:.3g} to {high:.3g}" for _, _, low, high in steps],
        }
    )
    return ChangeChart(
        _place(answer, change),
        f"{_name(change)}: {_VERBS[change.kind]}",
        _in_words(change, answer.origin_s),
        _WIDTH,
        _HEIGHT + _BOTTOM,
        _LEFT,
        ShareLine(_name(change), line, (band,), dots),
        tuple((x(time_s), moment_text(time_s, answer.origin_s)) for time_s in midnights),
        tuple((y(ratio), f"{ratio:.2g} ×") for ratio in (0.0, 1.0, *([most] if most > 1.3 else []))),
        y(1.0),
        (since, round(max(2.0, until - since), 1)),
        with_interval(of_frame(table, f"Course of {_name(change)}: over what was expected had nothing changed")),
    )


def _until(change: WatchedChange, origin_s: float | None) -> str:
    """Return when a change was over; empty: it lasts."""
    return "" if change.until_s is None else moment_text(change.until_s, origin_s)


def _in_words(change: WatchedChange, origin_s: float | None) -> str:
    """Return a change in a sentence or three."""
    until, where = _until(change, origin_s), change.where()
    factor = change.by() if change.factor is None else f"{change.factor:.3g} × (95% interval {change.between()})"
    factor = f"{factor} {where}".strip()
    cost = f"{'costs' if change.cost >= 0 else 'saves'} {100 * abs(change.cost):.3g}% of all events"
    goes = change.goes_with()
    parts = [
        f"From {moment_text(change.since_s, origin_s)}{' to ' * bool(until)}{until}: {factor}; it {cost}",
        f"it could be told from {moment_text(change.reported_s, origin_s)} on",
        *([f"goes with {goes}"] if goes and change.kind != "shift" else []),
        *([f"cost moved {goes}"] if goes and change.kind == "shift" else []),
        *([f"its callers {', '.join(change.callers)} changed with it"] if change.callers else []),
    ]
    return "; ".join(parts) + "."


def _midnights(first_s: float, last_s: float, most: int) -> list[float]:
    """Return about so many midnights at most to be labelled, or the first time."""
    days = range(math.ceil(first_s / DAY_S), math.ceil(last_s / DAY_S))
    return [day * DAY_S for day in days[:: max(1, -(-len(days) // most))]] or [first_s]
