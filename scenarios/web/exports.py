"""A profile as a file for other tools: pprof, folded stacks, speedscope; and the rows of a query as CSV."""

import io
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from analysis.profiling.database import Database
from analysis.profiling.formats.extract import extract, most_samples
from analysis.profiling.formats.folded import folded_lines
from analysis.profiling.formats.foreign import Frame
from analysis.profiling.formats.pprof_writing import write_pprof
from analysis.profiling.formats.speedscope import write_speedscope
from analysis.profiling.frames import Amounts, Frames, same_paths
from analysis.profiling.query import Query, QueryError, where_text
from analysis.profiling.sampled_stacks import TooManyStacksError
from models.arrays import unique_sorted
from scenarios.web.calls import ROOTS
from scenarios.web.listing import with_intervals
from scenarios.web.parameters import Pairs, RefusedError, read
from scenarios.web.site import ProfileSite
from scenarios.web.tree import PathFrames

_MOST_PATHS = 200_000
_MEGABYTES = 500
"""Of what a page holds while it writes `most_samples`."""


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
    with _few_enough(site, query, "pprof", ".pb.gz"):
        profile = extract(site.database, query, site.name)
    return ExportedFile(query.event, ".pb.gz", "application/gzip", write_pprof(profile))


def folded(site: ProfileSite, pairs: Pairs) -> ExportedFile:
    """Return the samples of a query as folded stacks."""
    query = read(pairs, site.default(ROOTS, stacks=True)).query
    with _few_enough(site, query, "folded", ".folded", weighted=True):
        parts = [extract(site.database, query, site.name)]
    event = parts[0].measures[-1].event
    lines = folded_lines((parts.pop() for _ in range(1)), event)  # which lets go of the profile
    content = io.BytesIO()
    content.writelines(line.encode() for line in lines)
    return ExportedFile(query.event, ".folded", "text/plain", content.getvalue())


def speedscope(site: ProfileSite, pairs: Pairs) -> ExportedFile:
    """Return the samples with stacks of a query as speedscope's JSON, root frames before them."""
    request = read(pairs, site.default(ROOTS, stacks=True))
    query = replace(request.query, by=ROOTS)
    with _few_enough(site, query, "speedscope", ".speedscope.json", weighted=True):
        paths, value, count = _greatest(site.database, query)
    frames, code = [*map(Frame, paths.names)], paths.code.tolist()
    stacks = (code[begin:end] for begin, end in pairwise(paths.first.tolist()))
    unit = site.database.units().get(query.event, "")
    cut = f", the {len(value):,} greatest of {count:,} call paths" if len(value) < count else ""
    written = write_speedscope(f"{site.name}: {query.event}{cut}", unit, frames, stacks, value.tolist())
    return ExportedFile(query.event, ".speedscope.json", "application/json", written)


@contextmanager
def _few_enough(site: ProfileSite, query: Query, form: str, suffix: str, *, weighted: bool = False) -> Generator[None]:
    """Refuse what a page has no room for, with the command that has."""
    try:
        yield
    except TooManyStacksError:
        where = [word for name, values in query.where for word in ("--where", where_text(name, values))]
        command = ["wsc", "profile", "export", str(site.run), "--format", form, "--event", query.event, *where]
        command += ["--weighted"] * weighted + ["--out", f"{site.name}{suffix}"]
        times = "" if query.since_s is query.until_s is None else ", of all times,"
        most = f"more than {most_samples(site.database):,} call paths and places take over {_MEGABYTES} MB in a page"
        cure = f"restrict the query, or write it{times} by: {shlex.join(command)}"
        raise RefusedError([f"{most}; {cure}"]) from None


def _greatest(database: Database, query: Query) -> tuple[PathFrames, Amounts, int]:
    """Return the call paths with the most events below root frames, (P,) these, and how many paths there are.

    Paths of one value are in order of their root frames and stacks.
    """
    state = database.identity
    sums = database.stack_sums(query, most=most_samples(database))
    new = np.append(True, sums.stack[1:] != sums.stack[:-1])[: len(sums.stack)]
    paths = PathFrames(*database.frames_on(sums.stack[new], 1))
    if database.identity != state:
        raise QueryError("the profile's files changed while they were read; ask again")
    if not new.all():
        paths = paths.at(np.cumsum(new) - 1)
    paths = paths.below(sums.keys[ROOTS[0]].tolist(), sums.key)
    first = same_paths(Frames(np.arange(len(new)), paths.first, paths.code), len(paths.names))
    value = np.zeros_like(sums.value)
    np.add.at(value, first, sums.value)
    paths_of = unique_sorted(first)
    falling = np.unique(-value[paths_of], return_inverse=True)[1]
    order = paths_of[np.lexsort((paths_of, sums.key[paths_of], falling))][:_MOST_PATHS]
    return paths.at(order), value[order], len(paths_of)


def csv(site: ProfileSite, pairs: Pairs) -> ExportedFile:
    """Return the rows of a query with their intervals as CSV."""
    request = read(pairs, site.default())
    rows = with_intervals(site, request, site.database.query(request.query, request.top))
    return ExportedFile(request.query.event, ".csv", "text/csv", rows.to_csv(index=False).encode())
