"""The values of a dimension with their counts, to choose from; each leads back to the page that asked, restricted."""

from dataclasses import dataclass, replace

from analysis.profiling.query import ALIASES, restriction_text, unknown
from scenarios.views.section import Cell, Table
from scenarios.views.tables import Row, beside, of_frame
from scenarios.web.listing import unit_of
from scenarios.web.parameters import MOST_ROWS, Pairs, RefusedError, gather, read
from scenarios.web.site import ProfileSite, WebPage

PATH = "/values"
PAGES = ("/query", "/diff", "/callgraph", "/flame", "/flamediff", "/source", "/rollouts", "/stability")
"""Pages that restrict."""
_OWN = ("key", "to", "rows")
_ASKED = frozenset({"event", "by", "where", "since", "until", "top"})
_PASSED = frozenset({"a", "b", "k", "edges", "view", "width", "focus", "find", "colour", "show", "file", "hash"})
"""Parameters of these pages that say nothing of what is counted."""
_SIDES = {"/diff": ("a", "b"), "/flamediff": ("a", "b")}
_ROWS = 25


@dataclass(frozen=True, slots=True)
class ValuesView:
    """What the list of a dimension's values shows."""

    key: str
    meaning: str
    back: str
    """Address of the page that asked, with its restrictions as they are."""
    every: str
    """Address of that page without a restriction of this dimension; empty if there is none."""
    table: Table
    more: str
    """Address of the same with more values; empty if all are shown."""


def values(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the values of a dimension among what a page's restrictions of other dimensions leave, and their counts."""
    problems = list[str]()
    pairs = list(pairs)
    given = gather(pairs, (*_OWN, *_ASKED, *_PASSED, "zoom"), problems)
    own = {name: given[name][0].strip() for name in _OWN if name in given}
    page = own.get("to", "/query")
    if page not in PAGES:
        problems.append(f"to: should be one of {', '.join(PAGES)}, got {page[:60]}")
    key = ALIASES.get(own.get("key", ""), own.get("key", ""))
    if key not in site.dimensions:
        problems.append(f"key: {unknown('dimension', key, list(site.dimensions))}")
    rows = _whole(own.get("rows", str(_ROWS)), problems)
    request = read([(name, value) for name, value in pairs if name in _ASKED], site.default())
    if problems:
        raise RefusedError(problems)
    passed = [(name, value) for name, value in pairs if name in _PASSED and value.strip()]
    free = request.without(key)
    listed = site.database.query(free.grouped(key).query, rows)
    chosen = dict(request.query.where).get(key, ())

    def address(*allowed: str) -> str:
        where = (*free.query.where, *([(key, allowed)] if allowed else []))
        return replace(request, query=replace(request.query, where=where)).url(page, passed)

    def only(row: Row) -> str:
        return address(restriction_text(row[key]))

    table = of_frame(
        listed, f"Values of {key}", {key: only}, unit=unit_of(site, request.query.event), event=request.query.event
    )
    names = [restriction_text(value) for value in listed[key]]
    if chosen:
        cells = tuple(
            Cell("leave out", href=address(*(other for other in chosen if other != name)))
            if name in chosen
            else Cell("allow too", href=address(*chosen, name))
            for name in names
        )
        table = beside(table, "or", cells)
    for side in _SIDES.get(page, ()):
        others = [(of, text) for of, text in passed if of != side or text.partition("=")[0] != key]
        address_of = [request.url(page, [*others, (side, f"{key}={name}")]) for name in names]
        cells = tuple(Cell(f"{side.upper()} only", href=href) for href in address_of)
        table = beside(table, f"in {side.upper()}", cells)
    full = len(listed) == rows < MOST_ROWS // 4
    more = request.url(PATH, [*passed, ("key", key), ("to", page), ("rows", str(4 * rows))])
    view = ValuesView(
        key,
        site.dimensions[key],
        request.url(page, passed),
        address() if chosen else "",
        table,
        more if full else "",
    )
    return WebPage("values.html", f"Values of {key}", view)


def _whole(text: str, problems: list[str]) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= MOST_ROWS:
        return int(text)
    problems.append(f"rows: should be a whole number from 1 to {MOST_ROWS}, got {text[:60]}")
    return _ROWS
