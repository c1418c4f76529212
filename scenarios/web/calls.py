"""Pages about call stacks: the call graph, the flame graph and the differential flame graph."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import pandas as pd

from analysis.profiling.query import Query, of_process
from scenarios.profiling.intervals import FALSE_CHANGES
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import event_quantity
from scenarios.views.section import Table
from scenarios.views.tables import Link, Row, of_frame
from scenarios.web.charts import OTHER
from scenarios.web.differences import frames, functions, sides
from scenarios.web.graph import MOST_EDGES, USUAL_EDGES, CallGraph, Stack, Tree, call_graph, dot, flame
from scenarios.web.listing import both, marked, unit_of
from scenarios.web.parameters import PageQuery, Pairs, RefusedError, Restrictions, gather, read
from scenarios.web.site import ProfileSite, WebPage

_MOST_PATHS, _MOST_ROOTS, _DIGITS = 100_000, 20, 4
_ROOTS = ("application",)
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


@dataclass(frozen=True, slots=True)
class FlameView:
    """What the page of the flame graph shows."""

    stacks: StackView
    json: str
    """Where its frames are."""
    search: str
    """Where its search is."""
    nodes: Table
    paths: Table


@dataclass(frozen=True, slots=True)
class FlameDifferenceView:
    """What the page of the differential flame graph shows."""

    stacks: StackView
    sides: dict[str, list[str]]
    json: str
    search: str
    own: list[tuple[str, str]]
    """Restrictions of each side."""
    table: Table
    rows: int
    beyond: int
    """Functions that changed beyond chance."""
    without: str
    """Why none can be told from chance; empty if they can."""
    false_changes: float = FALSE_CHANGES


def callgraph(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the call graph view (Ren et al. 2010, figure 3)."""
    told = read(pairs, site.default(stacks=True), more=("edges",))
    request, most = replace(told, more={}), _edges(told.more.get("edges"))
    inclusive = site.database.inclusive(request.query)
    functions_of = site.database.inclusive(request.query, apart=_ROOTS)
    graph = call_graph(site.database.edges(request.query, apart=_ROOTS), functions_of, most)
    unit = unit_of(site, request.query.event)
    linked = [(name, value) for name, value in request.pairs() if name in _LINKED and not value.startswith("function=")]
    view = CallGraphView(
        _shared(site, request, "/callgraph", graph.total),
        told=replace(told, more={"edges": str(most)}),
        dot=dot(graph, linked),
        edges=of_frame(
            pd.DataFrame(
                [astuple(edge) for edge in graph.edges], columns=["application", "caller", "callee", "value", "share"]
            ),
            "Calls",
            unit=unit,
        ),
        nodes=of_frame(_functions(inclusive, request.top), "Functions", {"function": _to_query(request)}, unit=unit),
        graph=graph,
    )
    return WebPage("callgraph.html", "Call graph", view)


def _edges(text: str | None) -> int:
    if text is None:
        return USUAL_EDGES
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS and 1 <= int(text) <= MOST_EDGES:
        return int(text)
    raise RefusedError([f"edges: should be a whole number from 1 to {MOST_EDGES}, got {text[:60]}"])


def flamegraph(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the flame graph, a root frame for each application; without scripts its functions as a table."""
    request = read(pairs, site.default(_ROOTS, stacks=True))
    unit = unit_of(site, request.query.event)
    inclusive = site.database.inclusive(request.query)
    total = sum(map(int, inclusive["own"]))
    view = FlameView(
        _shared(site, request, "/flame", total),
        json=request.url("/flame.json"),
        search=request.url("/found.json"),
        nodes=of_frame(_functions(inclusive, request.top), "Functions", {"function": _to_query(request)}, unit=unit),
        paths=of_frame(_paths(site.database.stacks(request.query, request.top), total), "Call paths", unit=unit),
    )
    return WebPage("flame.html", "Flame graph", view)


def flame_json(site: ProfileSite, pairs: Pairs) -> Payload:
    """Return the frames of a flame graph as nested name, value, children."""
    query = read(pairs, site.default(_ROOTS, stacks=True)).query
    return flame(_stacks(site, query, _roots(site, query)))


def flamediff(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the differential flame graph of B against A; without scripts the shares of functions as a table."""
    pairs = list(pairs)
    request, (a, b), texts = both(site, pairs, site.default(_ROOTS, stacks=True))
    after = site.database.inclusive(b)
    shares = sides(site, a, b, [])
    why = shares if isinstance(shares, str) else ""
    changes = _changes(site.database.inclusive(a), after) if isinstance(shares, str) else functions(*shares)
    changes = changes.sort_values(["change", "function"], key=_greatest, ignore_index=True)
    told = changes.drop(columns="significant", errors="ignore").head(request.top)
    links = {"function": _to_query(request)}
    covered = _shared(site, replace(request, query=b), "/flamediff", sum(map(int, after["own"])))
    view = FlameDifferenceView(
        replace(covered, request=request),
        sides=texts,
        json=PageQuery(request.query, request.top).url("/flamediff.json"),
        search=PageQuery(request.query, request.top).url("/found.json"),
        own=[(side, text) for side in ("a", "b") for text in texts[side]],
        table=marked(changes, of_frame(told, "Functions, callees included", links, bar="")),
        rows=len(changes),
        beyond=int(changes["significant"].sum()) if "significant" in changes else 0,
        without=why,
    )
    return WebPage("flamediff.html", "Differential flame graph", view)


def flamediff_json(site: ProfileSite, pairs: Pairs) -> Payload:
    """Return the frames of B, each with its change since A, A scaled to the total of B, and if it is significant.

    The root says by what rule: tested and significant_frames, how many frames were and are, and false_changes; or
    lacking, why none can be told from chance.
    """
    request, (a, b), _ = both(site, pairs, site.default(_ROOTS, stacks=True))
    roots = _roots(site, request.query)
    tree = Tree(_stacks(site, b, roots), _stacks(site, a, roots))
    shares = sides(site, a, b, [value for ((_, (value,)),) in roots])
    if isinstance(shares, str):
        return {"lacking": shares, **tree.nested()}
    beyond = frames(tree, *shares)
    rule = {"tested": len(beyond), "significant_frames": sum(beyond.values()), "false_changes": FALSE_CHANGES}
    return {**rule, **tree.nested(significant=beyond)}


def matches_json(site: ProfileSite, pairs: Pairs) -> Payload:
    """Return how much goes through functions, or root frames, with a text in their names: value, total, functions.

    Of a difference that is of B. Each sample counts once, however many frames of its stack match, and whether they are
    large enough to be drawn or not.
    """
    pairs = list(pairs)
    problems = list[str]()
    texts = gather([pair for pair in pairs if pair[0] == "find"], {"find"}, problems).get("find", [])
    if len(texts) != 1:
        problems.append(f"find: should be given once, got {len(texts)}")
    rest, default = [pair for pair in pairs if pair[0] != "find"], site.default(_ROOTS, stacks=True)
    if any(name in {"a", "b"} for name, _ in rest):
        _, (_, query), _ = both(site, rest, default, problems)
    else:
        try:
            query = read(rest, default).query
        except RefusedError as error:
            raise RefusedError([*problems, *error.problems]) from None
        if problems:
            raise RefusedError(problems)
    key = next((name for name in query.by if of_process(name)), None)
    by = () if key is None else (key,)
    value, matching = site.database.through(replace(query, by=by), texts[0])
    total = sum(map(int, site.database.inclusive(query)["own"]))
    return {"value": value, "total": total, "functions": matching}


def _roots(site: ProfileSite, query: Query) -> list[Restrictions]:
    """Return restrictions to the largest values of the first key that belongs to processes, none without one."""
    key = next((key for key in query.by if of_process(key)), None)
    if key is None:
        return []
    roots = site.database.query(replace(query, by=(key,)), _MOST_ROOTS)
    return [((key, (str(value),)),) for value in roots[key]]


def _stacks(site: ProfileSite, query: Query, roots: Sequence[Restrictions]) -> list[Stack]:
    """Return stacks, each below the root frame that its process belongs to; what none of the roots has is below one."""
    if not roots:
        paths = site.database.stacks(query, _MOST_PATHS)
        return [(tuple(path), int(value)) for path, value in zip(paths["path"], paths["value"], strict=True)]
    ((key, _),) = roots[0]
    named = {value for ((_, (value,)),) in roots}
    paths = site.database.apart(replace(query, by=(key,)), _MOST_PATHS, greatest=True)
    sums = Counter[tuple[str, ...]]()
    for process, path, value in zip(paths[key].map(str), paths["path"], paths["value"], strict=True):
        sums[process if process in named else OTHER, *path] += int(value)
    return list(sums.items())


def _shared(site: ProfileSite, request: PageQuery, action: str, total: int) -> StackView:
    _, value = site.database.total(request.query)
    covered = f"{total / value:.1%}" if value else "–"
    amount = event_quantity(total, request.query.event, unit_of(site, request.query.event))
    return StackView(request, action, site.suggestions, site.stack_events, amount, covered)


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


def _changes(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    old = dict(zip(before["function"], before["share"], strict=True))
    new = dict(zip(after["function"], after["share"], strict=True))
    rows = [(name, float(old.get(name, 0.0)), float(new.get(name, 0.0))) for name in old | new]
    frame = pd.DataFrame(rows, columns=["function", "share_a", "share_b"])
    return frame.assign(change=frame["share_b"] - frame["share_a"])


def _greatest(column: pd.Series) -> pd.Series:
    """Return by what changes are sorted, the greatest in either direction first, then by name."""
    return -column.abs() if column.name == "change" else column


def _to_query(request: PageQuery) -> Link:
    def link(row: Row) -> str:
        return request.only("function", str(row["function"])).grouped("application").url("/query")

    return link
