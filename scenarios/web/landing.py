"""The landing page: what this fleet is, what is alarming, what changed, and the way to each question."""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from analysis.profiling.fleet_samples import visits_of_fleet
from analysis.profiling.query import Query
from models.arrays import DAY_S
from scenarios.profiling.intervals import FALSE_CHANGES
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import event_name, event_quantity, plural
from scenarios.views.section import Table
from scenarios.views.tables import Link, Row, of_frame
from scenarios.web.listing import first_and_last_day, listed, marked, unit_of, with_interval
from scenarios.web.parameters import PageQuery, Pairs, RefusedError, gather
from scenarios.web.site import ProfileSite, WebPage
from scenarios.web.timeline import SharesOverTime, day_text, moment_text, timeline
from scenarios.web.watch import AlarmingView, alarming

_HOME_ROWS, _CHANGES = 8, 10
_DIMENSIONS, _TABLES = ("application", "function", "image", "machine"), 2
_VERSIONS = ("compiler", "kernel", "platform")
QUESTIONS = (
    (
        "/query?by=function",
        "Which functions cost most?",
        "functions, programs, machines, any dimension; with intervals",
    ),
    ("/flame", "Who calls whom?", "flame graph: root down, inverted, callers and callees of one function"),
    ("/flamediff", "What does a change look like?", "flame graph of two times; coloured where it is beyond chance"),
    ("/rollouts", "Which version runs where?", "compilers, kernels, platforms, revisions and labels day by day"),
    ("/source", "Which lines are hot?", "sources with the share of each line"),
    ("/stability", "Can one rely on it?", "how far days are apart, beside what sampling alone makes of it"),
    ("/questions", "What else is asked often?", "stored questions, each with its answer"),
)
"""Where a question is answered, the question, and what is there."""


@dataclass(frozen=True, slots=True)
class HomeView:
    """What the landing page shows."""

    sentence: str
    facts: list[tuple[str, str]]
    event: str
    says: str
    tops: tuple[Table, ...]
    counted: Table
    alarming: AlarmingView
    changes: str
    """Page of what changed; empty for one day alone."""
    course: SharesOverTime | None
    scenario: Payload
    questions: tuple[tuple[str, str, str], ...] = QUESTIONS


@dataclass(frozen=True, slots=True)
class ChangesView:
    """What the page of changes shows."""

    first: str
    last: str
    event: str
    versions: Table
    functions: Table
    compared: int
    beyond: int
    """Functions whose share changed beyond chance."""
    without: str
    """Why none can be told from chance; empty if they can."""
    difference: str
    """Where the flame graphs of both days are compared."""
    false_changes: float = FALSE_CHANGES


def home(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the landing page."""
    problems = list[str]()
    gather(pairs, (), problems)
    if problems:
        raise RefusedError(problems)
    fleet = visits_of_fleet(site.database)
    event = site.events[0] if site.events else "cycles"
    query = replace(site.default(), event=event)
    events, samples, values = _events(site)
    words = event_name(event)
    parting = _parting(site, query)
    tops = tuple(
        listed(
            site, PageQuery(replace(query, by=(by,)), top=_HOME_ROWS), f"{words} by {by}", intervals=True, samples=False
        )
        for by in parting
    )
    view = HomeView(
        sentence=_sentence(fleet, samples, len(site.events), site.database.origin_s),
        facts=facts(site),
        event=words,
        says=f"{event_quantity(values.get(event, 0), event, unit_of(site, event))} in the fleet",
        tops=tops,
        counted=events,
        alarming=alarming(site),
        changes="/changes" if first_and_last_day(site, query)["a"] else "",
        course=timeline(site, PageQuery(replace(query, by=parting[:1])), rows=_HOME_ROWS),
        scenario=site.scenario,
    )
    return WebPage("home.html", "Fleet profile", view)


def _parting(site: ProfileSite, query: Query) -> tuple[str, ...]:
    """Return the two dimensions that the first page shows: those with one value alone say nothing."""
    rows = ((name, site.database.query(replace(query, by=(name,)), _HOME_ROWS)) for name in _DIMENSIONS)
    several = (name for name, values in rows if len(values) > 1)
    return tuple(itertools.islice(several, _TABLES)) or _DIMENSIONS[1:2]


def facts(site: ProfileSite) -> list[tuple[str, str]]:
    """Return what was profiled: visits and how they ended, platforms, data centres, collections."""
    visits = site.database.table("visits")
    ended = visits["status"].value_counts(sort=False).sort_index()
    return [
        ("Visits", ", ".join(f"{int(count):,} {status}" for status, count in ended.items())),
        ("Platforms", ", ".join(sorted(set(visits["platform"].astype(str)) - {""})) or "not known"),
        ("Data centres", ", ".join(sorted(set(visits["datacentre"].astype(str)) - {""})) or "not known"),
        ("Collections", ", ".join(sorted(map(str, visits["collection"].unique())))),
    ]


def changes(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return what changed from the first day to the last: versions of what runs, and functions beyond chance."""
    problems = list[str]()
    gather(pairs, (), problems)
    query = site.default()
    sides = first_and_last_day(site, query)
    if not sides["a"]:
        problems.append("day: the profile has one day alone, so nothing can have changed")
    if problems:
        raise RefusedError(problems)
    days = {side: texts[0].partition("=")[2] for side, texts in sides.items()}
    before, after = (query.restricted("day", days[side]) for side in ("a", "b"))
    parts = []
    for key in _VERSIONS:
        table = site.difference(replace(before, by=(key,)), replace(after, by=(key,))).table
        known = table[~table[key].isin(["", "[none]"])]
        parts.append(known.assign(runs=[f"{key} {version}" for version in known[key]]))
    versions = pd.concat(parts, ignore_index=True)
    moved = versions[versions["change"].abs() > 0].sort_values("change", key=abs, ascending=False, ignore_index=True)

    def to_rollouts(row: Row) -> str:
        return PageQuery(query).only(*str(row["runs"]).split(" ", 1)).grouped("day").url("/query")

    answer = site.difference(before, after)
    functions = answer.table
    largest = (functions[functions["significant"]] if "significant" in functions else functions).head(_CHANGES)
    pairs_of = [(side, f"day={day}") for side, day in days.items()]
    called = {side: day_text(int(day), site.database.origin_s) for side, day in days.items()}

    def to_difference(row: Row) -> str:
        return PageQuery(query).only("function", str(row["function"])).grouped("application").url("/diff", pairs_of)

    view = ChangesView(
        first=called["a"],
        last=called["b"],
        event=event_name(query.event),
        versions=_compared(moved, "runs", called, "What runs", to_rollouts),
        functions=_compared(largest, "function", called, "Functions", to_difference),
        compared=answer.rows,
        beyond=answer.significant,
        without=answer.without,
        difference=PageQuery(site.default(("application",), stacks=True)).url("/flamediff", pairs_of),
    )
    return WebPage("changes.html", "What changed", view)


def _compared(rows: pd.DataFrame, key: str, days: Mapping[str, str], title: str, link: Link) -> Table:
    """Return changes as a table: key, share on the first and on the last day, change, half of its interval in words.

    Parameters
    ----------
    days : what side a and side b are called
    """
    columns = {f"share_{side}": f"share_{day}" for side, day in days.items()}
    shown = rows[[key, *columns, "change"]].rename(columns=columns)
    if "low" in rows:
        shown = shown.assign(interval=[f"±{50 * width:.2f} pp" for width in rows["high"] - rows["low"]])
    return marked(rows, with_interval(of_frame(shown, title, {key: link}, bar="")))


def _sentence(fleet: pd.DataFrame, samples: int, events: int, origin_s: float | None) -> str:
    """Return in a line what was profiled."""
    ends_s = fleet["start_s"].agg(["min", "max"]) // DAY_S * DAY_S
    first, last = (moment_text(float(day_s), origin_s).removesuffix("T00:00Z") for day_s in ends_s)
    time = f"on {first}" if first == last else f"from {first} to {last}"
    platforms, places = (len(set(fleet[name].astype(str)) - {""}) for name in ("platform", "datacentre"))
    of = f" of {plural(platforms, 'platform')}" * bool(platforms) + f" in {plural(places, 'data centre')}" * bool(
        places
    )
    return (
        f"{plural(int(fleet['machine'].nunique()), 'machine')}{of}, profiled {time} by "
        f"{plural(len(fleet), 'visit')}: {plural(samples, 'sample')} of {plural(events, 'event')}."
    )


def _events(site: ProfileSite) -> tuple[Table, int, dict[str, int]]:
    """Return every event with its samples, value and share without symbols; all samples; and the values."""
    rows, values = [], dict[str, int]()
    samples = 0
    for event in site.events:
        parts = site.database.query(replace(site.default(("symbolised",)), event=event))
        values[event] = value = sum(map(int, parts["value"]))
        own = sum(map(int, parts["samples"]))
        hidden = sum(float(share) for ok, share in zip(parts["symbolised"], parts["share"], strict=True) if not ok)
        amount = event_quantity(value, event, unit_of(site, event))
        rows.append((event, own, amount, hidden if len(parts) else math.nan))
        samples += own
    table = pd.DataFrame(rows, columns=["event", "samples", "stand for", "share_without_symbols"])

    def to_query(row: Row) -> str:
        return PageQuery(replace(site.default(), event=str(row["event"]))).url("/query")

    return of_frame(table, "Events", {"event": to_query}), samples, values
