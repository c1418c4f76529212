"""Links from functions, files and lines to the repository that an import names; nothing is fetched from there."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pandas as pd

from analysis.profiling.formats.links import HEAD, link_to, revision_label, template_of
from analysis.profiling.import_record import ImportFolderError, ImportRecord
from analysis.profiling.query import LABEL, Query
from models.errors import InputError
from scenarios.views.section import Cell, Table
from scenarios.views.tables import NOTHING, beside
from scenarios.web.site import ProfileSite

_MOST_GROUPS = 100_000


def templates(site: ProfileSite) -> Mapping[str, str]:
    """Return the templates of a profile's links by prefix, as `wsc profile import --source-link` keeps them."""
    return site.once("links", lambda: _templates(site))


def _templates(site: ProfileSite) -> Mapping[str, str]:
    """Return those templates that are sound: the file that keeps them may be anybody's."""
    sound = dict[str, str]()
    with suppress(ImportFolderError):
        for prefix, text in ImportRecord.read(site.run).links.items():
            with suppress(InputError):
                sound[prefix] = template_of(text)
    return sound


def revision(site: ProfileSite, query: Query) -> str:
    """Return the revision of which a query has most samples, as the files' labels say; empty: none says it."""
    return _revisions(site, replace(query, by=())).get("", "")


def line_links(site: ProfileSite, query: Query, file: str, lines: Sequence[int]) -> list[str]:
    """Return the address of lines of a file at the revision of which a query has most samples; empty without one.

    Parameters
    ----------
    site, query : asked
    file : as the profile says it
    lines : from 1; 0: the file as a whole
    """
    links = templates(site)
    known = revision(site, query) if links else ""
    return [link_to(links, file, line, known) for line in lines]


def function_links(site: ProfileSite, query: Query, functions: Sequence[str]) -> list[str]:
    """Return where functions begin, at the revision of which a query has most samples of each; empty where unknown.

    Parameters
    ----------
    site, query : asked
    functions : names
    """
    links = templates(site)
    if not links:
        return [""] * len(functions)
    known = _revisions(site, replace(query, by=("function",)))
    places = (site.places.get(name, ("", "", 0)) for name in functions)
    return [
        link_to(links, file, line, known.get(name, "")) for name, (_, file, line) in zip(functions, places, strict=True)
    ]


def with_repository(site: ProfileSite, query: Query, rows: pd.DataFrame, shown: Table) -> Table:
    """Return a table with a column that leads to the repository, if any of its functions or files is there.

    Parameters
    ----------
    site, query : asked
    rows : what the table shows
    shown : the table
    """
    if not templates(site) or not len(rows):
        return shown
    if "file" in rows:
        lines = rows["line"].astype(int) if "line" in rows else [0] * len(rows)
        known = _revisions(site, replace(query, by=("file",)))
        files = rows["file"].astype(str)
        addresses = [
            link_to(templates(site), file, line, known.get(file, "")) for file, line in zip(files, lines, strict=True)
        ]
    elif "function" in rows:
        addresses = function_links(site, query, rows["function"].astype(str).tolist())
    else:
        return shown
    if not any(addresses):
        return shown
    return beside(shown, "repository", tuple(Cell("source", href=to) if to else Cell(NOTHING) for to in addresses))


def words(site: ProfileSite, query: Query) -> str:
    """Return which revision links lead to, and why that one."""
    label = revision_label(site.database.labels())
    known = revision(site, query)
    if not known:
        return f"{HEAD}, since no label says the revision: lines may have moved"
    others = len(site.database.query(replace(query, by=(f"{LABEL}{label}",)), _MOST_GROUPS)) - 1
    return f"{known}, which has most of the samples of {others + 1} revisions" if others else known


def _revisions(site: ProfileSite, query: Query) -> Mapping[str, str]:
    """Return by the query's only key (without one by nothing) the revision of which it has most."""
    label = revision_label(site.database.labels())
    if not label:
        return {}
    return site.once(("revisions", label, query), lambda: _most(site, query, f"{LABEL}{label}"))


def _most(site: ProfileSite, query: Query, key: str) -> Mapping[str, str]:
    rows = site.database.query(replace(query, by=(*query.by, key)), _MOST_GROUPS)
    rows = rows[~rows[key].astype(str).isin(["", "[none]"])]
    names = rows[query.by[0]].astype(str) if query.by else [""] * len(rows)
    most = dict[str, str]()
    for name, value in zip(names, rows[key].astype(str), strict=True):
        most.setdefault(name, value)
    return most
