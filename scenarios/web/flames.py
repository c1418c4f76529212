"""Flame graphs: trees of stacks from the root down, from the sampled function up, or around one function."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.profiling.query import Query, unknown
from scenarios.profiling.intervals import FALSE_CHANGES, incomparable
from scenarios.views.conclusion import Payload
from scenarios.views.section import Table
from scenarios.views.tables import of_frame
from scenarios.web.calls import ROOTS, StackView, functions_table, shared, to_flame
from scenarios.web.differences import frame_intervals, frames, functions, one_side, sides, without_interval
from scenarios.web.listing import beyond_chance_first, both, marked, sorted_by, unit_of
from scenarios.web.parameters import MOST_ROWS, PageQuery, Pairs, RefusedError, read
from scenarios.web.rooted import rooted_paths, roots_of
from scenarios.web.search import Search, columns_of, containing, largest, listed, search
from scenarios.web.site import ProfileSite, WebPage
from scenarios.web.tree import PathFrames, Tree

_PLACES = 6
VIEWS: Mapping[str, str] = {
    "icicle": "Icicle",
    "flame": "Flame",
    "callers": "Inverted",
    "sandwich": "Sandwich",
}
"""How stacks are drawn: root on top, root below, the sampled function on top with its callers below, or around one."""
_DRAWN = ("view", "focus")
_COMPARED = (*_DRAWN, "width")
_SHOWN = ("zoom", "find", "colour", "show")
"""What the script of the page keeps in its URL."""


@dataclass(frozen=True, slots=True)
class FindView:
    """Search without scripts, and where rows are that the page's table of functions has no room for."""

    text: str
    sentence: str
    """What matches; empty if nothing is looked for."""
    hidden: list[tuple[str, str]]
    """What the form of the search asks again."""
    left: int
    """Functions that the table has no room for."""
    more: str
    """Where these are too; empty if no page has room for more."""


@dataclass(frozen=True, slots=True)
class FlameView:
    """What the page of the flame graph shows."""

    stacks: StackView
    json: str
    """Where its frames are."""
    search: str
    """Where its search is."""
    find: FindView
    views: list[tuple[str, str, bool]]
    """Name, address, and whether it is the one shown."""
    hidden: dict[str, str]
    """Fields of the form that are not seen: what stays as it is when something else is asked."""
    focus: str
    exports: list[tuple[str, str]]
    around: list[Table]
    """Callers and callees of the function in focus."""
    nodes: Table
    paths: Table | None
    """Not of a search, which is for functions."""


@dataclass(frozen=True, slots=True)
class FlameDifferenceView:
    """What the page of the differential flame graph shows."""

    stacks: StackView
    sides: dict[str, list[str]]
    json: str
    search: str
    find: FindView
    views: list[tuple[str, str, bool]]
    widths: list[tuple[str, str, bool]]
    """Whose widths frames may have: name, address, and whether they have."""
    width: str
    hidden: dict[str, str]
    focus: str
    table: Table
    rows: int
    beyond: int
    """Functions that changed beyond chance."""
    without: str
    """Why none can be told from chance; empty if they can."""
    false_changes: float = FALSE_CHANGES


def flamegraph(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the flame graph, a root frame for each application; without scripts its functions as a table."""
    parameters = read(pairs, site.default(ROOTS, stacks=True), more=(*_DRAWN, *_SHOWN))
    view, focus = _drawn(parameters)
    request = replace(parameters, more={})
    unit = unit_of(site, request.query.event)
    find = parameters.more.get("find", "").strip()
    matches, stacks = search(site, request.query, find) if find else None, None
    if matches is None:
        stacks = site.database.stacks(request.query, request.top)
        listed_functions = site.database.inclusive(request.query)
        total = sum(map(int, listed_functions["own"]))
    else:
        listed_functions, total = matches.functions, matches.total
    drawing = replace(parameters, more={name: parameters.more[name] for name in _DRAWN if name in parameters.more})
    links = {"function": to_flame(request)}
    shown = FlameView(
        shared(site, drawing, "/flame", total),
        json=drawing.url("/flame.json"),
        search=request.url("/found.json"),
        find=_find_view(parameters, matches, len(listed_functions), "/flame"),
        views=_views(drawing, view, "/flame"),
        hidden=_hidden(parameters.more),
        focus=focus,
        exports=[(text, request.url(path)) for path, text in EXPORTS.items()],
        around=_around(site, request, focus, total) if focus else [],
        nodes=of_frame(functions_table(listed_functions, request.top, total), _title(find), links, unit=unit),
        paths=None
        if stacks is None
        else of_frame(_paths(stacks, total), "Call paths", unit=unit, event=request.query.event),
    )
    return WebPage("flame.html", "Flame graph", shown)


def _find_view(
    request: PageQuery, matches: Search | None, rows: int, path: str, more: Sequence[tuple[str, str]] = ()
) -> FindView:
    """Return the search of a page of which the table of functions would have so many rows."""
    others = replace(request, more={name: value for name, value in request.more.items() if name != "find"})
    return FindView(
        text=matches.text if matches else "",
        sentence=matches.sentence if matches else "",
        hidden=[*others.pairs(), *more],
        left=max(0, rows - request.top),
        more=replace(request, top=MOST_ROWS).url(path, more) if request.top < min(rows, MOST_ROWS) else "",
    )


def _title(find: str) -> str:
    return f"Functions that match “{find}”" if find else "Functions"


EXPORTS: Mapping[str, str] = {
    "/profile.speedscope.json": "for speedscope.app",
    "/profile.pb.gz": "for pprof",
    "/profile.folded": "folded stacks",
}
"""Path to what a profile is exported as."""


def flame_json(site: ProfileSite, pairs: Pairs) -> Payload:
    """Return the frames of a flame graph, column by column, with the intervals of their shares."""
    request = read(pairs, site.default(ROOTS, stacks=True), more=_DRAWN)
    view, focus = _drawn(request)
    query = request.query
    lacking = without_interval(site, query)
    paths = rooted_paths(site.database, [query], roots_of(site.database, query))
    trees = [Tree(drawn, paths.events[0]) for drawn in _layouts(paths.frames, view, focus)]
    functions = paths.frames.functions(paths.events[0])
    _refuse_unseen(site, query, focus, trees, functions)
    intervals = [dict[int, tuple[float, float]]() for _ in trees]
    side = lacking or one_side(paths)
    if isinstance(side, str):
        lacking = side
    else:
        intervals = frame_intervals(trees, side)
    drawn = [_columns(tree, low=_end(own, 0), high=_end(own, 1)) for tree, own in zip(trees, intervals, strict=True)]
    return {"event": query.event, "view": view, "focus": focus, "lacking": lacking} | _payload(
        site, query, (trees, functions), drawn, most=listed(request)
    )


def _end(intervals: Mapping[int, tuple[float, float]], end: int) -> dict[int, object]:
    """Return one end of the intervals of frames."""
    return {number: round(ends[end], _PLACES) for number, ends in intervals.items()}


def flamediff(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the differential flame graph of B against A; without scripts the shares of functions as a table."""
    pairs = list(pairs)
    own = [(name, value) for name, value in pairs if name in {*_COMPARED, *_SHOWN}]
    parameters = read(own, more=(*_COMPARED, *_SHOWN)).more
    rest = [pair for pair in pairs if pair not in own]
    request, (a, b), texts = both(site, rest, site.default(ROOTS, stacks=True))
    drawing = replace(request, more={name: parameters[name] for name in _COMPARED if name in parameters})
    view, focus = _drawn(drawing)
    width = _width(drawing)
    compared = tuple((side, text) for side in ("a", "b") for text in texts[side])
    why = incomparable(site.database, replace(a, by=()), site.database, replace(b, by=()))
    paths = [rooted_paths(site.database, [replace(query, by=()) for query in (a, b)])]
    after = int(paths[0].events[1].sum())
    told = why or functions(paths.pop())  # which lets go of them
    why = told if isinstance(told, str) else ""
    changes = _changes(*map(site.database.inclusive, (a, b))) if isinstance(told, str) else told
    changes = beyond_chance_first(changes.sort_values(["change", "function"], key=_greatest, ignore_index=True))
    find = parameters.get("find", "").strip()
    matches = search(site, a if width == "a" else b, find) if find else None
    every, beyond = len(changes), int(changes["significant"].sum()) if "significant" in changes else 0
    if find:
        changes = changes[containing(changes, find)].reset_index(drop=True)
    order = [name for name in ("function", "change", "low", "high", "share_a", "share_b") if name in changes]
    rows = changes[order].head(request.top)
    links = {"function": to_flame(request, "/flamediff", compared)}
    covered = shared(site, replace(request, query=b), "/flamediff", after)
    shown = FlameDifferenceView(
        replace(covered, request=drawing),
        sides=texts,
        json=drawing.url("/flamediff.json", compared),
        search=request.url("/found.json", compared if width == "b" else _exchanged(compared)),
        find=_find_view(replace(request, more=parameters), matches, len(changes), "/flamediff", compared),
        views=_views(drawing, view, "/flamediff", compared),
        widths=[
            (
                side.upper(),
                replace(drawing, more={**drawing.more, "width": side}).url("/flamediff", compared),
                side == width,
            )
            for side in ("a", "b")
        ],
        width=width.upper(),
        hidden=_hidden(parameters),
        focus=focus,
        table=marked(changes, of_frame(rows, f"{_title(find)}, callees included: {sorted_by(changes)}", links, bar="")),
        rows=every,
        beyond=beyond,
        without=why,
    )
    return WebPage("flamediff.html", "Differential flame graph", shown)


def flamediff_json(site: ProfileSite, pairs: Pairs) -> Payload:
    """Return the frames of a side, B unless asked, each with its change from A to B, and if it is significant.

    Both sides are made to the total of the one that is drawn; `undrawn` is the share of the other in frames that have
    nothing in it. By what rule frames are significant: tested, how many frames of any side were; significant_frames and
    significant_undrawn, how many of those drawn and of all others are; false_changes; or lacking, why none can be told
    from chance.
    """
    pairs = list(pairs)
    own = [(name, value) for name, value in pairs if name in _COMPARED]
    drawing = read(own, more=_COMPARED)
    view, focus = _drawn(drawing)
    width = _width(drawing)
    rest = [pair for pair in pairs if pair not in own]
    request, (a, b), _ = both(site, rest, site.default(ROOTS, stacks=True))
    shown, other = (1, 0) if width == "b" else (0, 1)
    why = incomparable(site.database, a, site.database, b)
    paths = rooted_paths(site.database, [a, b], roots_of(site.database, request.query))
    values = paths.events[shown], paths.events[other]
    trees = [Tree(drawn, *values) for drawn in _layouts(paths.frames, view, focus)]
    known = paths.frames.functions(values[0])
    _refuse_unseen(site, (a, b)[shown], focus, trees, known)
    shares = why or sides(paths)
    lacking = shares if isinstance(shares, str) else ""
    beyond = [dict[int, bool]() for _ in trees]
    rule: dict[str, object] = {"lacking": lacking}
    if not isinstance(shares, str):
        beyond = frames(trees, *shares)
        rule |= {"tested": sum(map(len, beyond)), "false_changes": FALSE_CHANGES, **_significant(trees, beyond)}
    sign = 1 if width == "b" else -1
    drawn = [
        _columns(tree, delta=_deltas(tree, sign), significant=told) for tree, told in zip(trees, beyond, strict=True)
    ]
    rule |= {"width": width, "undrawn": max(tree.unmatched / max(1, int(tree.before[0])) for tree in trees)}
    answer = {"event": b.event, "view": view, "focus": focus, **rule}
    return answer | _payload(site, (a, b)[shown], (trees, known), drawn)


def _significant(trees: Sequence[Tree], beyond: Sequence[Mapping[int, bool]]) -> dict[str, int]:
    """Return how many of the significant frames are drawn, and how many are not; a sandwich's focus counts once."""
    counts = {"significant_frames": 0, "significant_undrawn": 0}
    for which, (tree, known) in enumerate(zip(trees, beyond, strict=True)):
        drawn = set(tree.largest().tolist())
        for number in (number for number, significant in known.items() if significant):
            if not which or tree.depth[number] > 1:
                counts["significant_frames" if number in drawn else "significant_undrawn"] += 1
    return counts


def _deltas(tree: Tree, sign: int) -> dict[int, int]:
    """Return what each drawn frame has more on that side, the other made to the same total; times a sign."""
    whole, whole_before = int(tree.after[0]), max(1, int(tree.before[0]))
    return {
        number: sign * (int(tree.after[number]) - int(tree.before[number]) * whole // whole_before)
        for number in tree.largest().tolist()
    }


def _width(request: PageQuery) -> str:
    """Return whose widths the frames of a difference have."""
    width = request.more.get("width", "b")
    if width not in {"a", "b"}:
        raise RefusedError([f"width: {unknown('side', width, ['a', 'b'])}"])
    return width


def _exchanged(compared: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return restrictions of A as those of B, and those of B as those of A."""
    return [("a" if side == "b" else "b", text) for side, text in compared]


def _hidden(more: Mapping[str, str]) -> dict[str, str]:
    """Return what a form keeps: search, colours, panes, width, and the view but that of a function in focus."""
    view = more.get("view", "")
    fields = {
        "view": "" if view == "sandwich" else view,
        **{name: more.get(name, "") for name in _SHOWN if name != "zoom"},
    }
    return fields | {name: more[name] for name in ("width",) if name in more}


def _drawn(request: PageQuery) -> tuple[str, str]:
    """Return the view that is asked for, and the function in focus, which a sandwich needs."""
    focus = request.more.get("focus", "")
    view = request.more.get("view", "sandwich" if focus else "icicle")
    if view not in VIEWS:
        raise RefusedError([f"view: {unknown('view', view, list(VIEWS))}"])
    if view == "sandwich" and not focus:
        raise RefusedError(["focus: a sandwich is drawn around a function; give focus=NAME"])
    return view, focus if view == "sandwich" else ""


def _views(
    request: PageQuery, view: str, path: str, more: Sequence[tuple[str, str]] = ()
) -> list[tuple[str, str, bool]]:
    """Return the views that there are, with the function in focus if there is one."""
    others = {name: value for name, value in request.more.items() if name != "view"}
    known = [name for name in VIEWS if name != "sandwich" or "focus" in others]
    addresses = {name: replace(request, more={"view": name, **others}).url(path, more) for name in known}
    return [(VIEWS[name], addresses[name], name == view) for name in known]


def _layouts(paths: PathFrames, view: str, focus: str) -> Sequence[PathFrames]:
    """Return paths as they are drawn: for a sandwich, first from the function down, then from it up."""
    if view == "sandwich":
        return paths.around(focus)
    return [paths.inverted() if view == "callers" else paths]


def _refuse_unseen(site: ProfileSite, query: Query, focus: str, trees: Sequence[Tree], functions: pd.DataFrame) -> None:
    """Refuse a function in focus that is on no stack, with the names that are, or the events that have stacks."""
    if not focus or trees[0].find((focus,)):
        return
    names = [str(name) for name in functions["function"]]
    reason = f"{unknown('function', focus, names)}; it is on no stack that matches"
    if not names:
        events = ", ".join(site.stack_events) or "no event"
        reason = (
            f"no samples of {query.event} that match have call paths, so none are around {focus}; {events} has some"
        )
    raise RefusedError([f"focus: {reason}"], 404)


def _payload(
    site: ProfileSite,
    query: Query,
    of: tuple[Sequence[Tree], pd.DataFrame],
    drawn: Sequence[dict[str, list[object]]],
    most: int = 0,
) -> dict[str, object]:
    """Return what every drawing has: the whole, functions drawn and so many of the largest, and frames of each tree.

    `of` are the trees, and the functions on their paths.
    """
    (trees, functions), numbers = of, dict[str, int]()
    for columns in drawn:
        columns["function"] = [numbers.setdefault(str(name), len(numbers)) for name in columns.pop("name")]
    for name in largest(functions, most) if most else ():
        numbers.setdefault(name, len(numbers))
    return {
        "unit": unit_of(site, query.event),
        "value": int(trees[0].after[0]),
        "frames": [tree.frames for tree in trees],
        "listed": most,
        "functions_in_all": len(functions),
        "functions": columns_of(site, query, functions, list(numbers)),
        "trees": list(drawn),
    }


def _columns(tree: Tree, **more: Mapping[int, object]) -> dict[str, list[object]]:
    """Return the largest frames of a tree, column by column: parent (−1 of the first), name, value, own, and others."""
    numbers = tree.largest()
    place = np.full(len(tree), -1, dtype=np.int64)
    place[numbers] = np.arange(len(numbers))
    place_of_caller = place[tree.caller[numbers]]
    place_of_caller[tree.caller[numbers] < 0] = -1
    return {
        "parent": place_of_caller.tolist(),
        "name": [tree.name(number) for number in numbers.tolist()],
        "value": tree.after[numbers].tolist(),
        "own": tree.own[numbers].tolist(),
        **{name: [values.get(number) for number in numbers.tolist()] for name, values in more.items()},
    }


def _around(site: ProfileSite, request: PageQuery, focus: str, total: int) -> list[Table]:
    """Return who calls a function and whom it calls, each stack counted once, at the outermost call of the function."""
    paths = rooted_paths(site.database, [request.query], roots_of(site.database, request.query))
    known, value = paths.frames.functions(paths.events[0]), paths.events[0]
    tables = []
    for drawn, title in zip(paths.frames.around(focus), (f"Called by {focus}", f"Callers of {focus}"), strict=True):
        tree = Tree(drawn, value)
        _refuse_unseen(site, request.query, focus, [tree], known)
        middle, numbers = tree.find((focus,)), tree.largest()
        next_to = numbers[tree.caller[numbers] == middle][: request.top].tolist() if middle else []
        rows = {
            "function": [tree.name(number) for number in next_to],
            "value": [int(tree.after[number]) for number in next_to],
            "share": [int(tree.after[number]) / total if total else 0.0 for number in next_to],
        }
        unit = unit_of(site, request.query.event)
        tables.append(
            of_frame(pd.DataFrame(rows), title, {"function": to_flame(request)}, unit=unit, event=request.query.event)
        )
    return tables[::-1]


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
