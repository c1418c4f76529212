"""The page of the call graph, and what all pages of call stacks show."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from urllib.parse import urlencode

import pandas as pd

from analysis.profiling.query import of_process
from analysis.profiling.sums import shares
from scenarios.views.numbers import event_quantity
from scenarios.views.section import Table
from scenarios.views.tables import Link, Row, of_frame
from scenarios.web.graph import MOST_EDGES, USUAL_EDGES, CallGraph, call_graph, dot
from scenarios.web.listing import unit_of
from scenarios.web.parameters import PageQuery, Pairs, RefusedError, read
from scenarios.web.site import ProfileSite, WebPage

_DIGITS = 4
ROOTS = ("application",)
"""Dimensions of root frames, and of the programs that a call graph keeps apart."""
_LINKED = frozenset({"event", "where", "since", "until"})


@dataclass(frozen=True, slots=True)
class StackView:
    """What every page of call stacks shows: what was asked, and how much of it has stacks."""

    request: PageQuery
    action: str
    suggestions: list[str]
    stack_events: list[str]
    value: str
    covered: str
    base: str
    """Event, restrictions and times, as part of a URL."""
    root: str
    """Dimension of the root frames; empty without any."""


@dataclass(frozen=True, slots=True)
class CallGraphView:
    """What the page of the call graph shows."""

    stacks: StackView
    told: PageQuery
    """The request with the number of calls drawn."""
    dot: str
    edges: Table
    nodes: Table
    graph: CallGraph


def callgraph(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the call graph view (Ren et al. 2010, figure 3)."""
    told = read(pairs, site.default(stacks=True), more=("edges",))
    request, most = replace(told, more={}), _edges(told.more.get("edges"))
    edges, edges_in_all, functions_of = site.database.graph(request.query, most, apart=ROOTS)
    graph = replace(call_graph(edges, functions_of, most), edges_in_all=edges_in_all)
    unit = unit_of(site, request.query.event)
    linked = [(name, value) for name, value in request.pairs() if name in _LINKED and not value.startswith("function=")]
    links = {"function": to_flame(request.grouped(*ROOTS))}
    view = CallGraphView(
        shared(site, request, "/callgraph", graph.total),
        told=replace(told, more={"edges": str(most)}),
        dot=dot(graph, linked),
        edges=of_frame(
            pd.DataFrame(
                [astuple(edge) for edge in graph.edges], columns=["application", "caller", "callee", "value", "share"]
            ),
            "Calls",
            unit=unit,
            event=request.query.event,
        ),
        nodes=of_frame(
            functions_table(together(functions_of), request.top, graph.total), "Functions", links, unit=unit
        ),
        graph=graph,
    )
    return WebPage("callgraph.html", "Call graph", view)


def _edges(text: str | None) -> int:
    if text is None:
        return USUAL_EDGES
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS and 1 <= int(text) <= MOST_EDGES:
        return int(text)
    raise RefusedError([f"edges: should be a whole number from 1 to {MOST_EDGES}, got {text[:60]}"])


def shared(site: ProfileSite, request: PageQuery, action: str, total: int) -> StackView:
    """Return what every page of call stacks shows.

    Parameters
    ----------
    site, request : asked
    action : the page's path
    total : value of all samples with stacks
    """
    _, value = site.database.total(request.query)
    covered = f"{total / value:.1%}" if value else "–"
    amount = event_quantity(total, request.query.event, unit_of(site, request.query.event))
    base = urlencode([(name, text) for name, text in request.pairs() if name in _LINKED])
    root = next(filter(of_process, request.query.by), "")
    return StackView(request, action, site.suggestions, site.stack_events, amount, covered, base, root)


def together(apart: pd.DataFrame) -> pd.DataFrame:
    """Return functions of all programs together, as `Database.inclusive` gives them.

    Parameters
    ----------
    apart : of `Database.inclusive` by dimensions of processes

    Examples
    --------
    >>> rows = pd.DataFrame({"application": list("aab"), "function": list("fgf"), "value": [3, 4, 2], "own": [3, 0, 2]})
    >>> together(rows.assign(samples=1)).to_dict("list")
    {'function': ['f', 'g'], 'samples': [2, 1], 'value': [5, 4], 'own': [5, 0], 'share': [1.0, 0.8]}
    """
    sums = apart.groupby("function", as_index=False)[["samples", "value", "own"]].sum()
    order = sums["value"].map(lambda value: -value).argsort(kind="stable")
    ordered = sums.iloc[order].reset_index(drop=True)
    return ordered.assign(share=shares(ordered["value"], int(ordered["own"].sum())))


def functions_table(inclusive: pd.DataFrame, top: int, total: int) -> pd.DataFrame:
    """Return functions, heaviest first: function, own, own_share, with_callees, share.

    Parameters
    ----------
    inclusive : as `Database.inclusive` gives it, or some of its rows
    top : how many
    total : value of all samples with stacks
    """
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


def to_flame(request: PageQuery, path: str = "/flame", more: Sequence[tuple[str, str]] = ()) -> Link:
    """Return the link of a function's row: the flame graph around it.

    Parameters
    ----------
    request : whose stacks
    path : the page
    more : parameters in addition
    """

    def link(row: Row) -> str:
        return replace(request, more={"view": "sandwich", "focus": str(row["function"])}).url(path, more)

    return link
