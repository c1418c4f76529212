"""Source annotation: a file's text with the hotness of each line, over all builds that hold the same content."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import pandas as pd

from scenarios.views.numbers import event_name, event_quantity, plural, quantity
from scenarios.views.section import Cell, Table
from scenarios.views.tables import Link, Row, beside, of_frame
from scenarios.web.listing import unit_of
from scenarios.web.parameters import PageQuery, Pairs, RefusedError, read
from scenarios.web.repository import line_links, with_repository, words
from scenarios.web.site import ProfileSite, WebPage

_MOST_LINES, _HOTTEST = 10_000, 8
_CONTEXT, _EXACT = 3, 4_000_000
"""Lines shown around what differs or was sampled; pairs of lines up to which all are compared."""
_SIDES = 2
_BRIEF = 8
"""Letters of a content's signature in a list of files."""
_TOLD = ("line", "samples", "value", "share")


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A source line: number, text, samples, what it stands for, its share of the file, length of its bar."""

    number: int
    text: str
    samples: int
    value: int
    share: float
    bar: float
    href: str = ""
    """Its address in a repository; empty if it has none, or nothing was sampled."""


@dataclass(frozen=True, slots=True)
class SourceView:
    """What the page of a source file shows."""

    request: PageQuery
    file: str
    event: str
    unit: str
    hash: str
    lines: list[SourceLine]
    hottest: list[SourceLine]
    header: list[tuple[str, str]]
    functions: Table
    users: Table
    versions: Table
    repository: str
    """Its address in a repository; empty if it has none."""
    revision: str
    """Of the file at that address, and why that one."""
    most: int
    """Greatest value of a line, in whose unit of time all are said."""
    action: str = "/source"
    quantity: Callable[..., str] = quantity


@dataclass(frozen=True, slots=True)
class RevisionLine:
    """A line of one of two revisions: number, text, its share of the revision's events, and the length of its bar."""

    number: int
    text: str
    share: float
    bar: float
    low: float = math.nan
    high: float = math.nan
    """Ends of the share's 95% interval; NaN: there is none, or nothing was sampled."""

    @property
    def interval(self) -> str:
        """The interval in percent, in words."""
        return f"{100 * self.low:.1f} to {100 * self.high:.1f}" if math.isfinite(self.low + self.high) else ""


@dataclass(frozen=True, slots=True)
class LinePair:
    """What stands side by side; of lines that are left out, how many."""

    old: RevisionLine | None
    new: RevisionLine | None
    changed: bool = False
    mark: str = ""
    """grown or shrunk if the intervals of both shares have nothing in common."""
    omitted: int = 0


@dataclass(frozen=True, slots=True)
class RevisionsView:
    """What the page of two revisions of a source file shows."""

    request: PageQuery
    file: str
    event: str
    hashes: tuple[str, str]
    headers: tuple[tuple[str, str], ...]
    pairs: list[LinePair]
    marked: int
    without: str
    """Why shares have no intervals; empty if they have."""
    users: tuple[Table, Table]
    swap: str
    """Address of the same with the sides exchanged."""
    action: str = "/source"


@dataclass(frozen=True, slots=True)
class FilesView:
    """What the page of all source files shows."""

    request: PageQuery
    suggestions: list[str]
    table: Table
    action: str = "/source"


def source(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return a source file with a bar for each line (Ren et al. 2010, "Source annotation"); without one, all files."""
    request = read(pairs, site.default(("file", "file_hash")), more=("file", "hash", "beside"))
    base = replace(request, more={})
    if "file" not in request.more:
        lacking = [name for name in ("hash", "beside") if name in request.more]
        if lacking:
            raise RefusedError(f"{name}: needs file=NAME, whose content it selects" for name in lacking)
        return _files(site, base)
    file = request.more["file"]
    of_file = base.only("file", file)
    contents = site.database.query(of_file.grouped("file_hash").query)
    file_hash = request.more.get("hash") or (str(contents["file_hash"].iloc[0]) if len(contents) else "")
    exact = of_file.only("file_hash", file_hash)
    if "beside" in request.more:
        return _revisions(site, request, exact, (file_hash, request.more["beside"]))
    samples, value = site.database.total(exact.query)
    _, everything = site.database.total(base.query)
    unit = unit_of(site, request.query.event)
    lines = _linked(site, exact, file, annotate(site, exact, file, file_hash))
    repository = line_links(site, exact.query, file, [0])[0]
    view = SourceView(
        request=request,
        file=file,
        event=event_name(request.query.event),
        unit=unit,
        hash=file_hash,
        lines=lines,
        hottest=[line for line in sorted(lines, key=lambda line: -line.share)[:_HOTTEST] if line.samples],
        header=[
            ("Samples", f"{samples:,}"),
            ("In the fleet", event_quantity(value, request.query.event, unit)),
            ("Share of the selected events", f"{value / everything:.3%}" if everything else "–"),
        ],
        functions=_split(site, exact, ("function",), "Functions of the file"),
        users=_split(site, exact, ("application", "revision"), "Programs that run it"),
        versions=_versions(site, base, contents, file, file_hash),
        repository=repository,
        revision=words(site, exact.query) if repository else "",
        most=max((line.value for line in lines), default=0),
    )
    return WebPage("source.html", file, view)


def _linked(site: ProfileSite, exact: PageQuery, file: str, lines: list[SourceLine]) -> list[SourceLine]:
    """Return lines of which those that were sampled have their addresses in a repository."""
    sampled = [line.number for line in lines if line.samples]
    addresses = dict(zip(sampled, line_links(site, exact.query, file, sampled), strict=True))
    return [replace(line, href=addresses.get(line.number, "")) for line in lines]


def _versions(site: ProfileSite, base: PageQuery, contents: pd.DataFrame, file: str, file_hash: str) -> Table:
    """Return the contents of a file's name, each with the way to it, and to it beside the one that is shown."""
    unit = unit_of(site, base.query.event)
    table = of_frame(
        contents, "Contents of this name", {"file_hash": _version(base, file)}, unit=unit, event=base.query.event
    )
    if len(contents) < _SIDES:
        return table
    cells = []
    for other in contents["file_hash"].astype(str):
        more = {"file": file, "hash": file_hash, "beside": other}
        cells.append(
            Cell("side by side", href=replace(base, more=more).url("/source")) if other != file_hash else Cell("shown")
        )
    return beside(table, "see", tuple(cells))


def _revisions(site: ProfileSite, request: PageQuery, exact: PageQuery, hashes: tuple[str, str]) -> WebPage:
    """Return two contents of a file side by side, lines that are alike in one row."""
    file, queries = request.more["file"], [exact.only("file_hash", own) for own in hashes]
    sides = [_revision(site, query, file, own) for query, own in zip(queries, hashes, strict=True)]
    pairs = list(omitting(paired(*sides)))
    totals = [site.database.total(query.query) for query in queries]
    headers = [
        (f"{name}: content {own}", plural(samples, "sample"))
        for name, own, (samples, _) in zip("AB", hashes, totals, strict=True)
    ]
    users = [
        _split(site, query, ("application", "revision"), f"Programs that run {name}")
        for name, query in zip("AB", queries, strict=True)
    ]
    view = RevisionsView(
        request=request,
        file=file,
        event=event_name(request.query.event),
        hashes=hashes,
        headers=tuple(headers),
        pairs=pairs,
        marked=sum(bool(pair.mark) for pair in pairs),
        without=site.without(queries[0].grouped("line").query),
        users=(users[0], users[1]),
        swap=replace(request, more={"file": file, "hash": hashes[1], "beside": hashes[0]}).url("/source"),
    )
    return WebPage("revisions.html", f"{file}: two revisions", view)


def _revision(site: ProfileSite, exact: PageQuery, file: str, file_hash: str) -> list[RevisionLine]:
    """Return the lines of one content with the intervals of their shares."""
    intervals = site.intervals(exact.grouped("line").query)
    ends: Mapping[int, tuple[float, float]] = {}
    if intervals is not None:
        columns = (intervals[name].tolist() for name in ("line", "low", "high"))
        ends = {int(line): (low, high) for line, low, high in zip(*columns, strict=True)}
    none = (math.nan, math.nan)
    return [
        RevisionLine(
            line.number, line.text, line.share, line.bar, *(ends.get(line.number, none) if line.samples else none)
        )
        for line in annotate(site, exact, file, file_hash)
    ]


def paired(old: list[RevisionLine], new: list[RevisionLine]) -> Iterator[LinePair]:
    """Yield the lines of two revisions side by side: equal texts in one row (Ratcliff and Obershelp's matching).

    Parameters
    ----------
    old, new : in order

    Examples
    --------
    >>> lines = [[RevisionLine(at, text, 0.0, 0.0) for at, text in enumerate(texts, 1)] for texts in ("abd", "acd")]
    >>> [(pair.old and pair.old.text, pair.new and pair.new.text, pair.changed) for pair in paired(*lines)]
    [('a', 'a', False), ('b', 'c', True), ('d', 'd', False)]
    """
    texts = [[line.text for line in side] for side in (old, new)]
    matcher = SequenceMatcher(None, texts[0], texts[1], autojunk=len(old) * len(new) > _EXACT)
    for kind, first, last, start, stop in matcher.get_opcodes():
        left, right = old[first:last], new[start:stop]
        for at in range(max(len(left), len(right))):
            before, after = (side[at] if at < len(side) else None for side in (left, right))
            yield LinePair(before, after, changed=kind != "equal", mark=_mark(before, after))


def _mark(old: RevisionLine | None, new: RevisionLine | None) -> str:
    """Return whether a line's share grew or shrank so much that the intervals have nothing in common."""
    if old is None or new is None:
        return ""
    return "grown" if new.low > old.high else "shrunk" if new.high < old.low else ""


def omitting(pairs: Iterable[LinePair]) -> Iterator[LinePair]:
    """Yield pairs without stretches of equal lines of which nothing was sampled, far from all others.

    Parameters
    ----------
    pairs : in order
    """
    listed = list(pairs)
    telling = [
        at
        for at, pair in enumerate(listed)
        if pair.changed or any(line is not None and line.share for line in (pair.old, pair.new))
    ]
    near = {at + step for at in telling for step in range(-_CONTEXT, _CONTEXT + 1)}
    omitted = 0
    for at, pair in enumerate(listed):
        if at in near:
            if omitted:
                yield LinePair(None, None, omitted=omitted)
            omitted = 0
            yield pair
        else:
            omitted += 1
    if omitted:
        yield LinePair(None, None, omitted=omitted)


def annotate(site: ProfileSite, exact: PageQuery, file: str, file_hash: str) -> list[SourceLine]:
    """Return the lines of a file with what was sampled in each; lines that are not stored but sampled come last."""
    sampled = site.database.query(exact.grouped("line").query)
    text = site.source(file, file_hash, required=sampled.empty).head(_MOST_LINES)
    heat = {
        int(line): (int(samples), int(value), float(share))
        for line, samples, value, share in zip(*(sampled[name] for name in _TOLD), strict=True)
    }
    hottest = max((share for *_, share in heat.values()), default=0.0) or 1.0
    lines = [
        SourceLine(int(number), str(line), *heat.pop(int(number), (0, 0, 0.0)), 0.0)
        for number, line in zip(text["line"], text["text"], strict=True)
    ]
    lines.extend(SourceLine(number, "", *told, 0.0) for number, told in sorted(heat.items()))
    return [replace(line, bar=line.share / hottest) for line in lines]


def _files(site: ProfileSite, request: PageQuery) -> WebPage:
    listed = site.database.query(request.grouped("file", "file_hash").query, request.top)

    def link(row: Row) -> str:
        if not row["file"]:
            return ""
        return replace(request, more={"file": str(row["file"]), "hash": str(row["file_hash"])}).url("/source")

    unit = unit_of(site, request.query.event)
    table = of_frame(listed, "Source files by content", {"file": link}, unit=unit, event=request.query.event)
    table = with_repository(site, request.query, listed, _brief(table))
    return WebPage("files.html", "Source", FilesView(request, site.suggestions, table))


def _brief(shown: Table) -> Table:
    """Return a table with the beginnings of contents' signatures, in the second column, and all of them on hovering."""
    rows = (
        (first, replace(second, text=second.text[:_BRIEF], full=second.text), *others)
        for first, second, *others in shown.rows
    )
    return replace(shown, rows=tuple(rows))


def _split(site: ProfileSite, exact: PageQuery, by: tuple[str, ...], caption: str) -> Table:
    parts = site.database.query(exact.grouped(*by).query, 20)

    def link(row: Row) -> str:
        request = exact.without("file").without("file_hash")
        for key in by:
            request = request.only(key, str(row[key]))
        return request.grouped("application" if by == ("function",) else "function").url("/query")

    return of_frame(parts, caption, {by[0]: link}, unit=unit_of(site, exact.query.event), event=exact.query.event)


def _version(request: PageQuery, file: str) -> Link:
    def link(row: Row) -> str:
        return replace(request, more={"file": file, "hash": str(row["file_hash"])}).url("/source")

    return link
