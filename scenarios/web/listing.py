"""The query view: what matches, how much of it, and links that refine; two queries compared."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from analysis.profiling.query import Query
from models.errors import WscError
from scenarios.profiling.intervals import ERRORS, FALSE_CHANGES, intervals
from scenarios.views.numbers import event_name, event_quantity
from scenarios.views.section import Cell, Heading, Table
from scenarios.views.tables import Link, Row, beside, of_frame
from scenarios.web.parameters import MOST_ROWS, PageQuery, Pairs, RefusedError, Restrictions, gather, read, restrictions
from scenarios.web.repository import with_repository
from scenarios.web.site import MOST_BYTES, ProfileSite, WebPage
from scenarios.web.timeline import SharesOverTime, timeline

_NEXT = {"function": ("application",), "file": ("file", "line"), "line": ("function",)}
_SIDES = ("a", "b")
_LINKED = frozenset({"where", "since", "until"})


@dataclass(frozen=True, slots=True)
class QueryView:
    """What the page of a query shows."""

    request: PageQuery
    suggestions: list[str]
    table: Table
    without: str
    samples: str
    value: str
    further: list[tuple[str, str, int]]
    """Other dimensions, where samples are summed by them, and how many values they have."""
    course: SharesOverTime | None
    csv: str
    more: str
    """Address of the same with more rows; empty if all are shown."""
    action: str = "/query"


@dataclass(frozen=True, slots=True)
class DifferenceView:
    """What the page of a difference shows."""

    request: PageQuery
    suggestions: list[str]
    sides: dict[str, list[str]]
    table: Table
    rows: int
    beyond: int
    """Rows that changed beyond chance."""
    without: str
    """Why none can be told from chance; empty if they can."""
    action: str = "/diff"
    false_changes: float = FALSE_CHANGES


class QueryJson(TypedDict):
    """The rows of a query as plain values."""

    event: str
    by: list[str]
    total: dict[str, int]
    rows: list[dict[str, Any]]
    left_out: int
    """Rows that would make the answer too large."""


def unit_of(site: ProfileSite, event: str) -> str:
    """Return what an event's rates say that it counts; nothing for an event without one."""
    return site.database.units().get(event, "")


def query(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the query view (Ren et al. 2010, figure 2)."""
    request = read(pairs, site.default())
    samples, value = site.database.total(request.query)
    table = listed(site, request, _title(request), intervals=True)
    full = len(table.rows) == request.top <= MOST_ROWS // 4
    view = QueryView(
        request=request,
        suggestions=site.suggestions,
        table=table,
        without="" if "low" in (head.text for head in table.headings) else site.without(request.query),
        samples=f"{samples:,}",
        value=event_quantity(value, request.query.event, unit_of(site, request.query.event)),
        further=[
            (key, request.grouped(key).url("/query"), count)
            for key, count in site.counts.items()
            if key not in request.query.by
        ],
        course=timeline(site, request),
        csv=request.url("/query.csv"),
        more=replace(request, top=4 * request.top).url("/query") if full else "",
    )
    return WebPage("query.html", "Query", view)


def query_json(site: ProfileSite, pairs: Pairs) -> QueryJson:
    """Return the rows of a query as plain values: event, by, total, rows, left_out."""
    request = read(pairs, site.default())
    samples, value = site.database.total(request.query)
    rows = site.database.query(request.query, request.top)
    told = [
        dict(zip(rows.columns, map(plain, values), strict=True)) for values in rows.itertuples(index=False, name=None)
    ]
    fitting = sum(total <= MOST_BYTES for total in itertools.accumulate(len(json.dumps(row)) for row in told))
    return {
        "event": request.query.event,
        "by": list(request.query.by),
        "total": {"samples": int(samples), "value": int(value)},
        "rows": told[:fitting],
        "left_out": len(told) - fitting,
    }


def plain(value: object) -> object:
    """Return a value of a data frame as JSON has it."""
    return value.item() if isinstance(value, np.generic) else value


def diff(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return two queries side by side: each key's share in A, in B, and the change, those beyond chance first."""
    request, sides, texts = both(site, pairs, site.default())
    answer = site.difference(sides[0], sides[1])
    changes = beyond_chance_first(answer.table)
    caption = f"{_title(request)}, A and B: {sorted_by(changes)}"
    order = [*request.query.by, "change", "low", "high", "share_a", "share_b", "value_a", "value_b"]
    told = changes.iloc[: request.top].reindex(columns=[name for name in order if name in changes])
    links = {key: _refine(request, key) for key in request.query.by}
    view = DifferenceView(
        request=request,
        suggestions=site.suggestions,
        sides=texts,
        table=marked(
            changes,
            of_frame(told, caption, links, bar="", unit=unit_of(site, request.query.event), event=request.query.event),
        ),
        rows=answer.rows,
        beyond=answer.significant,
        without=answer.without,
    )
    return WebPage("diff.html", "Difference of two queries", view)


def beyond_chance_first(changes: pd.DataFrame) -> pd.DataFrame:
    """Return changes with the significant ones first, otherwise in the order in which they were.

    Parameters
    ----------
    changes : the greatest first; column significant, if there are intervals

    Examples
    --------
    >>> changes = pd.DataFrame({"function": ["f", "g"], "change": [0.2, 0.1], "significant": [False, True]})
    >>> beyond_chance_first(changes)["function"].tolist()
    ['g', 'f']
    """
    if "significant" not in changes:
        return changes
    return changes.sort_values("significant", ascending=False, kind="stable", ignore_index=True)


def sorted_by(changes: pd.DataFrame) -> str:
    """Return in words which changes come first.

    Parameters
    ----------
    changes : as of `beyond_chance_first`
    """
    return "changes beyond chance first" if "significant" in changes else "greatest changes first"


def marked(changed: pd.DataFrame, shown: Table) -> Table:
    """Return a table whose significant changes are marked as grown or shrunk.

    Parameters
    ----------
    changed : columns change and, if there are intervals, significant; its first rows are those of the table
    shown : the table, with a column of the change
    """
    if "significant" not in changed:
        return shown
    at = [head.text for head in shown.headings].index("change")
    changes = zip(shown.rows, changed["change"], changed["significant"], strict=False)
    rows = [
        (*row[:at], replace(row[at], mark=("grown" if change > 0 else "shrunk") if beyond else ""), *row[at + 1 :])
        for row, change, beyond in changes
    ]
    return replace(shown, rows=tuple(rows))


def with_interval(shown: Table) -> Table:
    """Return a table whose column of intervals in words, called interval, is set as numbers are."""
    texts = [head.text for head in shown.headings]
    at = texts.index("interval") if "interval" in texts else -1
    heads = (Heading("95% interval", number=True) if index == at else head for index, head in enumerate(shown.headings))
    return replace(
        shown,
        headings=tuple(heads),
        numbers=tuple(number or index == at for index, number in enumerate(shown.numbers)),
    )


def both(
    site: ProfileSite, pairs: Pairs, default: Query, wrong: Sequence[str] = ()
) -> tuple[PageQuery, tuple[Query, Query], dict[str, list[str]]]:
    """Return what a page of two queries asks: what they share, the queries A and B, and their own restrictions as text.

    Parameters
    ----------
    site : whose days are compared, the last with the first, where neither A nor B has a restriction of its own
    pairs : parameters; `a` and `b` are restrictions ``dimension=value``, and ``since=`` and ``until=`` a time
    default : what holds where nothing is given
    wrong : what is wrong already
    """
    pairs = list(pairs)
    common = [(name, value) for name, value in pairs if name not in _SIDES]
    problems = list(wrong)
    try:
        request = read(common, default)
    except RefusedError as error:
        problems, request = [*problems, *error.problems], PageQuery(default)
    texts = {
        side: gather([pair for pair in pairs if pair[0] == side], {side}, problems).get(side, []) for side in _SIDES
    }
    days_are_chosen = {"day", "date"} & {*request.query.by} or "date" in dict(request.query.where)
    if not any(texts.values()) and not days_are_chosen:
        texts = first_and_last_day(site, request.query)
    queries = [_side(request, side, texts[side], problems) for side in _SIDES]
    if problems:
        raise RefusedError(problems)
    return request, (queries[0], queries[1]), texts


def first_and_last_day(site: ProfileSite, query: Query) -> dict[str, list[str]]:
    """Return restrictions to the first day of a query, as a, and to its last, as b; none if there is one day alone.

    Parameters
    ----------
    site, query : asked
    """
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


def _side(request: PageQuery, side: str, texts: list[str], problems: list[str]) -> Query:
    times = [text for text in texts if text.startswith(("since=", "until="))]
    own = restrictions([text for text in texts if text not in times], side, problems)
    shared = [("event", request.query.event), *(("by", key) for key in request.query.by)]
    given = {text.partition("=")[0]: text.partition("=")[2] for text in times}
    for name, seconds in (("since", request.query.since_s), ("until", request.query.until_s)):
        if name not in given and seconds is not None:
            given[name] = f"{seconds:.15g}"
    names = {key for key, _ in own}
    where: Restrictions = (*(pair for pair in request.query.where if pair[0] not in names), *own)
    try:
        return replace(read([*shared, *given.items()]).query, where=where)
    except RefusedError as error:
        problems.extend(f"{side}: {problem}" for problem in error.problems)
    except WscError as error:
        problems.extend(f"{side}: {line}" for line in str(error).splitlines())
    return request.query


def listed(
    site: ProfileSite, request: PageQuery, caption: str, *, intervals: bool = False, samples: bool = True
) -> Table:
    """Return the rows of a query as a table whose names restrict it further.

    Parameters
    ----------
    site, request : asked
    caption : what the table holds
    intervals, samples : whether shares have their intervals, and rows their samples
    """
    rows = site.database.query(request.query, request.top)
    rows = rows if samples else rows.drop(columns="samples")
    if intervals:
        rows = with_intervals(site, request, rows)
    links = {key: _refine(request, key) for key in request.query.by}
    table = of_frame(rows, caption, links, unit=unit_of(site, request.query.event), event=request.query.event)
    table = with_repository(site, request.query, rows, table)
    if "function" not in request.query.by or not len(rows):
        return table
    return beside(table, "see", tuple(_callers(request, str(function)) for function in rows["function"]))


def _title(request: PageQuery) -> str:
    return f"{event_name(request.query.event)} by {', '.join(request.query.by)}"


def _callers(request: PageQuery, function: str) -> Cell:
    pairs = [(name, value) for name, value in request.only("function", function).pairs() if name in _LINKED]
    return Cell("callers", href=f"/callgraph?{urlencode(pairs)}")


def with_intervals(site: ProfileSite, request: PageQuery, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a query with low and high of their shares, where they have intervals.

    Parameters
    ----------
    site, request : asked
    rows : as `Database.query` gives them
    """
    keys = [*request.query.by, "samples", "value"]
    question = ("top intervals", request.query, len(rows))
    ends = site.once(question, lambda: intervals(site.database, request.query, rows.reindex(columns=keys)))
    return rows if ends is None else rows.merge(ends.drop(columns=ERRORS), on=list(request.query.by), how="left")


def _refine(request: PageQuery, key: str) -> Link:
    rest = tuple(name for name in request.query.by if name != key)
    by = rest or _NEXT.get(key, ("function",))

    def link(row: Row) -> str:
        return request.only(key, str(row[key])).grouped(*by).url("/query")

    return link
