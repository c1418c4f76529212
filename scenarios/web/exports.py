"""A profile as a file for other tools: pprof, folded stacks, speedscope; and the rows of a query as CSV."""

from dataclasses import dataclass, replace
from functools import cache

from analysis.profiling.formats.extract import extract
from analysis.profiling.formats.folded import write_folded
from analysis.profiling.formats.foreign import Frame
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.formats.speedscope import write_speedscope
from scenarios.web.calls import ROOTS
from scenarios.web.listing import with_intervals
from scenarios.web.parameters import Pairs, read
from scenarios.web.site import ProfileSite

_MOST_PATHS = 200_000


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that is downloaded."""

    stem: str
    suffix: str
    media_type: str
    content: bytes


def pprof(site: ProfileSite, pairs: Pairs) -> ExportedFile:
    """Return the samples of a query as a gzipped pprof profile."""
    query = read(pairs, site.default(ROOTS, stacks=True)).query
    return ExportedFile(
        query.event, ".pb.gz", "application/gzip", write_pprof(extract(site.database, query, site.name))
    )


def folded(site: ProfileSite, pairs: Pairs) -> ExportedFile:
    """Return the samples of a query as folded stacks."""
    query = read(pairs, site.default(ROOTS, stacks=True)).query
    profile = extract(site.database, query, site.name)
    return ExportedFile(
        query.event, ".folded", "text/plain", write_folded(profile, profile.measures[-1].event).encode()
    )


def speedscope(site: ProfileSite, pairs: Pairs) -> ExportedFile:
    """Return the samples with stacks of a query as speedscope's JSON, root frames before them."""
    request = read(pairs, site.default(ROOTS, stacks=True))
    query = replace(request.query, by=ROOTS)
    rows = site.database.apart(query, _MOST_PATHS, greatest=True)
    frame = cache(Frame)
    stacks = ([*map(frame, (str(root), *path))] for root, path in zip(rows[ROOTS[0]], rows["path"], strict=True))
    weights = [int(value) for value in rows["value"]]
    unit = site.database.units().get(query.event, "")
    written = write_speedscope(f"{site.name}: {query.event}", unit, stacks, weights)
    return ExportedFile(query.event, ".speedscope.json", "application/json", written)


def csv(site: ProfileSite, pairs: Pairs) -> ExportedFile:
    """Return the rows of a query with their intervals as CSV."""
    request = read(pairs, site.default())
    rows = with_intervals(site, request, site.database.query(request.query, request.top))
    return ExportedFile(request.query.event, ".csv", "text/csv", rows.to_csv(index=False).encode())
