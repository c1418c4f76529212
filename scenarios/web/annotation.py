"""Source annotation: a file's text with the hotness of each line, over all builds that hold the same content."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from scenarios.views.numbers import event_name, quantity
from scenarios.views.section import Table
from scenarios.views.tables import Link, Row, of_frame
from scenarios.web.listing import unit_of
from scenarios.web.parameters import PageQuery, Pairs, RefusedError, read
from scenarios.web.site import ProfileSite, WebPage

_MOST_LINES, _HOTTEST = 10_000, 8
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
    action: str = "/source"
    quantity: Callable[..., str] = quantity


@dataclass(frozen=True, slots=True)
class FilesView:
    """What the page of all source files shows."""

    request: PageQuery
    suggestions: list[str]
    table: Table
    action: str = "/source"


def source(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return a source file with a bar for each line (Ren et al. 2010, "Source annotation"); without one, all files."""
    request = read(pairs, site.default(("file", "file_hash")), more=("file", "hash"))
    base = replace(request, more={})
    if "file" not in request.more:
        if "hash" in request.more:
            raise RefusedError(["hash: needs file=NAME, whose content it selects"])
        return _files(site, base)
    file = request.more["file"]
    of_file = base.only("file", file)
    contents = site.database.query(of_file.grouped("file_hash").query)
    file_hash = request.more.get("hash") or (str(contents["file_hash"].iloc[0]) if len(contents) else "")
    exact = of_file.only("file_hash", file_hash)
    samples, value = site.database.total(exact.query)
    _, everything = site.database.total(base.query)
    unit = unit_of(site, request.query.event)
    lines = annotate(site, exact, file, file_hash)
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
            (f"{event_name(request.query.event)} in the fleet ({unit or 'events'})", f"{int(value):,}"),
            ("Share of the selected events", f"{value / everything:.3%}" if everything else "–"),
        ],
        functions=_split(site, exact, ("function",), "Functions of the file"),
        users=_split(site, exact, ("application", "revision"), "Programs that run it"),
        versions=of_frame(contents, "Contents of this name", {"file_hash": _version(base, file)}, unit=unit),
    )
    return WebPage("source.html", file, view)


def annotate(site: ProfileSite, exact: PageQuery, file: str, file_hash: str) -> list[SourceLine]:
    """Return the lines of a file with what was sampled in each; lines that are not stored but sampled come last."""
    text = site.source(file, file_hash).head(_MOST_LINES)
    sampled = site.database.query(exact.grouped("line").query)
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
    table = of_frame(listed, "Source files by content", {"file": link}, unit=unit)
    return WebPage("files.html", "Source", FilesView(request, site.suggestions, table))


def _split(site: ProfileSite, exact: PageQuery, by: tuple[str, ...], caption: str) -> Table:
    parts = site.database.query(exact.grouped(*by).query, 20)

    def link(row: Row) -> str:
        request = exact.without("file").without("file_hash")
        for key in by:
            request = request.only(key, str(row[key]))
        return request.grouped("application" if by == ("function",) else "function").url("/query")

    return of_frame(parts, caption, {by[0]: link}, unit=unit_of(site, exact.query.event))


def _version(request: PageQuery, file: str) -> Link:
    def link(row: Row) -> str:
        return replace(request, more={"file": file, "hash": str(row["file_hash"])}).url("/source")

    return link
