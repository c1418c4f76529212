"""The query view: what matches, how much of it, and links that refine; the home page's tops; two queries compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from analysis.profiling.query import DIMENSIONS, Query
from models.errors import WscError
from scenarios.profiling.intervals import FALSE_CHANGES
from scenarios.views.numbers import event_name, event_quantity
from scenarios.views.section import Cell, Heading, Table
from scenarios.views.tables import Link, of_frame
from scenarios.web.asked import Asked, Pairs, RefusedError, Restrictions, gather, read, restrictions
from scenarios.web.site import Page, Site

_NEXT = {"function": ("application",), "file": ("file", "line"), "line": ("function",)}
_HOME_ROWS = 8
_SIDES = ("a", "b")
_LINKED = frozenset({"where", "since", "until"})


def home(site: Site, pairs: Pairs) -> Page:
    """Return the home page: what was profiled, where its first event was spent, and the other events folded away."""
    problems = list[str]()
    gather(pairs, (), problems)
    if problems:
        raise RefusedError(problems)
    stories = [_story(site, event) for event in site.events]
    shown = {"facts": facts(site), "first": stories[:1], "others": stories[1:], "scenario": site.scenario}
    return Page("home.html", "Fleet profile", shown)


def facts(site: Site) -> list[tuple[str, str]]:
    """Return what was profiled: visits and how they ended, machines, days, platforms, data centres, collections."""
    visits = site.database.table("visits")
    ended = visits["status"].value_counts(sort=False).sort_index()
    return [
        ("Visits", ", ".join(f"{int(count):,} {status}" for status, count in ended.items())),
        ("Machines visited", f"{int(visits['machine'].nunique()):,}"),
        ("Days", f"{int((visits['start_s'] // 86400).nunique()):,}"),
        ("Platforms", ", ".join(sorted(map(str, visits["platform"].unique())))),
        ("Data centres", ", ".join(sorted(map(str, visits["datacentre"].unique())))),
        ("Collections", ", ".join(sorted(map(str, visits["collection"].unique())))),
    ]


@dataclass(frozen=True, slots=True)
class Story:
    """What one event says at first sight: how much of it there is, how much without symbols, and where it is spent."""

    event: str
    says: str
    unsymbolised: str
    tops: tuple[Table, ...]


def _story(site: Site, event: str) -> Story:
    query = replace(site.default(("symbolised",)), event=event)
    found = site.database.query(query)
    samples, value = sum(map(int, found["samples"])), sum(map(int, found["value"]))
    hidden = sum(float(share) for known, share in zip(found["symbolised"], found["share"], strict=True) if not known)
    words = event_name(event)
    tops = tuple(
        _listed(site, Asked(replace(query, by=(by,)), top=_HOME_ROWS), f"{words} by {by}")
        for by in ("application", "function")
    )
    says = f"{samples:,} samples stand for {event_quantity(value, event, unit_of(site, event))} in the fleet"
    return Story(words, says, f"{hidden:.1%}" if samples else "–", tops)


def unit_of(site: Site, event: str) -> str:
    """Return what an event's rates say that it counts; nothing for an event without one."""
    return site.database.units().get(event, "")


def query(site: Site, pairs: Pairs) -> Page:
    """Return the query view (Ren et al. 2010, figure 2)."""
    asked = read(pairs, site.default())
    samples, value = site.database.total(asked.query)
    shown = {
        "asked": asked,
        "action": "/query",
        "suggestions": site.suggestions,
        "table": _listed(site, asked, _title(asked), intervals=True),
        "without": site.without(asked.query),
        "samples": f"{samples:,}",
        "value": event_quantity(value, asked.query.event, unit_of(site, asked.query.event)),
        "further": [(key, asked.grouped(key).url("/query")) for key in DIMENSIONS if key not in asked.query.by],
    }
    return Page("query.html", "Query", shown)


def query_json(site: Site, pairs: Pairs) -> Mapping[str, Any]:
    """Return the rows of a query as plain values: event, by, total, rows."""
    asked = read(pairs, site.default())
    samples, value = site.database.total(asked.query)
    rows = site.database.query(asked.query, asked.top)
    return {
        "event": asked.query.event,
        "by": list(asked.query.by),
        "total": {"samples": int(samples), "value": int(value)},
        "rows": [
            dict(zip(rows.columns, map(plain, values), strict=True))
            for values in rows.itertuples(index=False, name=None)
        ],
    }


def plain(value: object) -> object:
    """Return a value of a data frame as JSON has it.

    Examples
    --------
    >>> plain(np.int64(3)), plain("f")
    (3, 'f')
    """
    return value.item() if isinstance(value, np.generic) else value


def diff(site: Site, pairs: Pairs) -> Page:
    """Return two queries side by side: each key's share in A, in B, and the change, greatest first."""
    asked, sides, texts = both(site, pairs, site.default())
    found, lacking = site.difference(sides[0], sides[1])
    caption = f"{_title(asked)}: A and B"
    order = [*asked.query.by, "share_a", "share_b", "change", "low", "high", "value_a", "value_b"]
    told = found.iloc[: asked.top].reindex(columns=[name for name in order if name in found])
    links = {key: _refine(asked, key) for key in asked.query.by}
    shown = {
        "asked": asked,
        "action": "/diff",
        "suggestions": site.suggestions,
        "sides": texts,
        "table": marked(found, of_frame(told, caption, links, bar="", unit=unit_of(site, asked.query.event))),
        "rows": len(found),
        "beyond": int(found["significant"].sum()) if "significant" in found else 0,
        "without": lacking,
        "false_changes": FALSE_CHANGES,
    }
    return Page("diff.html", "Difference of two queries", shown)


def marked(found: pd.DataFrame, made: Table) -> Table:
    """Return a table whose significant changes are marked as grown or shrunk.

    Parameters
    ----------
    found : columns change and, if there are intervals, significant; its first rows are those of the table
    made : the table, with a column of the change

    Examples
    --------
    >>> found = pd.DataFrame({"change": [0.2, -0.1], "significant": [True, False]})
    >>> [row[0].mark for row in marked(found, of_frame(found[["change"]], "Changes")).rows]
    ['grown', '']
    """
    if "significant" not in found:
        return made
    at = [head.text for head in made.headings].index("change")
    changes = zip(made.rows, found["change"], found["significant"], strict=False)
    rows = [
        (*row[:at], replace(row[at], mark=("grown" if change > 0 else "shrunk") if beyond else ""), *row[at + 1 :])
        for row, change, beyond in changes
    ]
    return replace(made, rows=tuple(rows))


def both(
    site: Site, pairs: Pairs, default: Query, wrong: Sequence[str] = ()
) -> tuple[Asked, tuple[Query, Query], dict[str, list[str]]]:
    """Return what a page of two queries asks: what they share, the queries A and B, and their own restrictions as text.

    Parameters
    ----------
    site : whose days are compared, the last with the first, where neither A nor B has a restriction of its own
    pairs : parameters; `a` and `b` are restrictions ``dimension=value``, and ``since=`` and ``until=`` a time
    default : what holds where nothing is given
    wrong : what is wrong already

    Raises
    ------
    RefusedError
        With everything that is wrong.
    """
    pairs = list(pairs)
    common = [(name, value) for name, value in pairs if name not in _SIDES]
    problems = list(wrong)
    try:
        asked = read(common, default)
    except RefusedError as error:
        problems, asked = [*problems, *error.problems], Asked(default)
    texts = {
        side: gather([pair for pair in pairs if pair[0] == side], {side}, problems).get(side, []) for side in _SIDES
    }
    if not any(texts.values()) and "day" not in asked.query.by:
        texts = _first_and_last_day(site, asked.query)
    queries = [_side(asked, side, texts[side], problems) for side in _SIDES]
    if problems:
        raise RefusedError(problems)
    return asked, (queries[0], queries[1]), texts


def _first_and_last_day(site: Site, query: Query) -> dict[str, list[str]]:
    allowed = dict(query.where).get("day")
    days = [
        int(day)
        for day in site.database.values("day")
        if (allowed is None or day in allowed)
        and (query.since_s is None or (int(day) + 1) * 86400 > query.since_s)
        and (query.until_s is None or int(day) * 86400 < query.until_s)
    ]
    if len(days) < len(_SIDES):
        return {side: [] for side in _SIDES}
    return {side: [f"day={day}"] for side, day in zip(_SIDES, (min(days), max(days)), strict=True)}


def _side(asked: Asked, side: str, texts: list[str], problems: list[str]) -> Query:
    times = [text for text in texts if text.startswith(("since=", "until="))]
    own = restrictions([text for text in texts if text not in times], side, problems)
    shared = [("event", asked.query.event), *(("by", key) for key in asked.query.by)]
    given = {text.partition("=")[0]: text.partition("=")[2] for text in times}
    for name, seconds in (("since", asked.query.since_s), ("until", asked.query.until_s)):
        if name not in given and seconds is not None:
            given[name] = f"{seconds:.15g}"
    names = {key for key, _ in own}
    where: Restrictions = (*(pair for pair in asked.query.where if pair[0] not in names), *own)
    try:
        return replace(read([*shared, *given.items()]).query, where=where)
    except RefusedError as error:
        problems.extend(f"{side}: {problem}" for problem in error.problems)
    except WscError as error:
        problems.extend(f"{side}: {line}" for line in str(error).splitlines())
    return asked.query


def _listed(site: Site, asked: Asked, caption: str, intervals: bool = False) -> Table:
    found = site.database.query(asked.query, asked.top)
    if intervals:
        found = _with_intervals(site, asked, found)
    links = {key: _refine(asked, key) for key in asked.query.by}
    made = of_frame(found, caption, links, unit=unit_of(site, asked.query.event))
    if "function" not in asked.query.by or not len(found):
        return made
    return _beside(made, "see", tuple(_callers(asked, str(function)) for function in found["function"]))


def _title(asked: Asked) -> str:
    return f"{event_name(asked.query.event)} by {', '.join(asked.query.by)}"


def _beside(made: Table, head: str, cells: tuple[Cell, ...]) -> Table:
    rows = tuple((*row, cell) for row, cell in zip(made.rows, cells, strict=True))
    return replace(made, headings=(*made.headings, Heading(head)), numbers=(*made.numbers, False), rows=rows)


def _callers(asked: Asked, function: str) -> Cell:
    pairs = [(name, value) for name, value in asked.only("function", function).pairs() if name in _LINKED]
    return Cell("callers", href=f"/callgraph?{urlencode(pairs)}")


def _with_intervals(site: Site, asked: Asked, found: pd.DataFrame) -> pd.DataFrame:
    intervals = site.intervals(asked.query)
    return found if intervals is None else found.merge(intervals, on=list(asked.query.by), how="left")


def _refine(asked: Asked, key: str) -> Link:
    rest = tuple(each for each in asked.query.by if each != key)
    by = rest or _NEXT.get(key, ("function",))

    def link(row: Mapping[str, Any]) -> str:
        return asked.only(key, str(row[key])).grouped(*by).url("/query")

    return link
