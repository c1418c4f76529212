"""Pages about call stacks: the call graph, the flame graph and the differential flame graph."""

from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any

import pandas as pd

from analysis.profiling.query import Query
from scenarios.web.asked import Asked, Pairs, read
from scenarios.web.graph import Stack, call_graph, dot, flame, flame_difference
from scenarios.web.listing import both
from scenarios.web.site import Page, Site
from scenarios.web.tables import Link, short, table

_MOST_PATHS = 100_000
_LINKED = frozenset({"event", "where", "since", "until"})


def callgraph(site: Site, pairs: Pairs) -> Page:
    """Return the call graph view (Ren et al. 2010, figure 3)."""
    asked = read(pairs, site.default(stacks=True))
    inclusive = site.database.inclusive(asked.query)
    graph = call_graph(site.database.edges(asked.query), inclusive)
    kept = [(name, value) for name, value in asked.pairs() if name in _LINKED and not value.startswith("function=")]
    shown = {
        **_shared(site, asked, "/callgraph", graph.total),
        "dot": dot(graph, kept),
        "edges": table(
            pd.DataFrame([astuple(edge) for edge in graph.edges], columns=["caller", "callee", "value", "share"]),
            "Calls",
        ),
        "nodes": table(_functions(inclusive, asked.top), "Functions", {"function": _to_query(asked)}),
        "graph": graph,
    }
    return Page("callgraph.html", "Call graph", shown)


def flamegraph(site: Site, pairs: Pairs) -> Page:
    """Return the flame graph; without scripts its functions as a table."""
    asked = read(pairs, site.default(stacks=True))
    inclusive = site.database.inclusive(asked.query)
    total = sum(map(int, inclusive["own"]))
    shown = {
        **_shared(site, asked, "/flame", total),
        "json": asked.url("/flame.json"),
        "nodes": table(_functions(inclusive, asked.top), "Functions", {"function": _to_query(asked)}),
        "paths": table(_paths(site.database.stacks(asked.query, asked.top), total), "Call paths"),
    }
    return Page("flame.html", "Flame graph", shown)


def flame_json(site: Site, pairs: Pairs) -> Mapping[str, Any]:
    """Return the frames of a flame graph as nested name, value, children."""
    return flame(_stacks(site, read(pairs, site.default(stacks=True)).query))


def flamediff(site: Site, pairs: Pairs) -> Page:
    """Return the differential flame graph of B against A; without scripts the shares of functions as a table."""
    pairs = list(pairs)
    asked, (a, b), texts = both(site, pairs, site.default(stacks=True))
    before, after = site.database.inclusive(a), site.database.inclusive(b)
    shown = {
        **_shared(site, replace(asked, query=b), "/flamediff", sum(map(int, after["own"]))),
        "asked": asked,
        "sides": texts,
        "json": Asked(asked.query, asked.top).url("/flamediff.json"),
        "own": [(side, text) for side in ("a", "b") for text in texts[side]],
        "table": table(
            _changes(before, after, asked.top), "Functions, callees included", {"function": _to_query(asked)}, bar=""
        ),
    }
    return Page("flamediff.html", "Differential flame graph", shown)


def flamediff_json(site: Site, pairs: Pairs) -> Mapping[str, Any]:
    """Return the frames of B, each with its change since A, A scaled to the total of B."""
    _, (a, b), _ = both(site, pairs, site.default(stacks=True))
    return flame_difference(_stacks(site, b), _stacks(site, a))


def _stacks(site: Site, query: Query) -> list[Stack]:
    found = site.database.stacks(query, _MOST_PATHS)
    return [(tuple(path), int(value)) for path, value in zip(found["path"], found["value"], strict=True)]


def _shared(site: Site, asked: Asked, action: str, total: int) -> dict[str, Any]:
    _, value = site.database.total(asked.query)
    covered = f"{total / value:.1%}" if value else "–"
    return {
        "asked": asked,
        "action": action,
        "suggestions": site.suggestions,
        "stack_events": site.stack_events,
        "value": short(total),
        "covered": covered,
    }


def _functions(inclusive: pd.DataFrame, top: int) -> pd.DataFrame:
    total = sum(map(int, inclusive["own"]))
    listed = inclusive.head(top)
    return pd.DataFrame(
        {
            "function": listed["function"],
            "own": listed["own"],
            "own_share": [int(own) / total if total else 0.0 for own in listed["own"]],
            "with_callees": listed["value"],
            "share": listed["share"],
        }
    )


def _paths(stacks: pd.DataFrame, total: int) -> pd.DataFrame:
    shares = [int(value) / total if total else 0.0 for value in stacks["value"]]
    return stacks[["path", "samples", "value"]].assign(share=shares)


def _changes(before: pd.DataFrame, after: pd.DataFrame, top: int) -> pd.DataFrame:
    old = dict(zip(before["function"], before["share"], strict=True))
    new = dict(zip(after["function"], after["share"], strict=True))
    rows = [(name, float(old.get(name, 0.0)), float(new.get(name, 0.0))) for name in old | new]
    rows.sort(key=lambda row: (-abs(row[2] - row[1]), row[0]))
    frame = pd.DataFrame(rows[:top], columns=["function", "share_a", "share_b"])
    return frame.assign(change=frame["share_b"] - frame["share_a"])


def _to_query(asked: Asked) -> Link:
    def link(row: Mapping[str, Any]) -> str:
        return asked.only("function", str(row["function"])).grouped("application").url("/query")

    return link
