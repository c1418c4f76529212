"""Flame graphs: trees of stacks from the root down, from the sampled function up, or around one function."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from analysis.profiling.query import Query, of_process, unknown
from scenarios.profiling.intervals import FALSE_CHANGES
from scenarios.views.conclusion import Payload
from scenarios.views.section import Table
from scenarios.views.tables import of_frame
from scenarios.web.calls import ROOTS, StackView, functions_table, shared, to_flame
from scenarios.web.charts import OTHER
from scenarios.web.differences import Layout, frame_intervals, frames, functions, one_side, sides
from scenarios.web.graph import Stack, Tree
from scenarios.web.listing import both, marked, unit_of
from scenarios.web.parameters import PageQuery, Pairs, RefusedError, Restrictions, gather, read
from scenarios.web.site import ProfileSite, WebPage

_MOST_PATHS, _MOST_ROOTS, _PLACES = 100_000, 20, 6
VIEWS: Mapping[str, str] = {
    "icicle": "Icicle",
    "flame": "Flame",
    "callers": "Inverted",
    "sandwich": "Sandwich",
}
"""How stacks are drawn: root on top, root below, the sampled function on top with its callers below, or around one."""
_DRAWN = ("view", "focus")
_SHOWN = ("zoom", "find", "colour")
"""What the script of the page keeps in its URL."""


@dataclass(frozen=True, slots=True)
class FlameView:
    """What the page of the flame graph shows."""

    stacks: StackView
    json: str
    """Where its frames are."""
    search: str
    """Where its search is."""
    views: list[tuple[str, str, bool]]
    """Name, address, and whether it is the one shown."""
    focus: str
    exports: list[tuple[str, str]]
    around: list[Table]
    """Callers and callees of the function in focus."""
    nodes: Table
    paths: Table


@dataclass(frozen=True, slots=True)
class FlameDifferenceView:
    """What the page of the differential flame graph shows."""

    stacks: StackView
    sides: dict[str, list[str]]
    json: str
    search: str
    views: list[tuple[str, str, bool]]
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
    told = read(pairs, site.default(ROOTS, stacks=True), more=(*_DRAWN, *_SHOWN))
    view, focus = _drawn(told)
    request = replace(told, more={})
    unit = unit_of(site, request.query.event)
    inclusive = site.database.inclusive(request.query)
    total = sum(map(int, inclusive["own"]))
    drawing = replace(told, more={name: told.more[name] for name in _DRAWN if name in told.more})
    links = {"function": to_flame(request)}
    shown = FlameView(
        shared(site, drawing, "/flame", total),
        json=drawing.url("/flame.json"),
        search=request.url("/found.json"),
        views=_views(drawing, view, "/flame"),
        focus=focus,
        exports=[(text, request.url(path)) for path, text in EXPORTS.items()],
        around=_around(site, request, focus, total) if focus else [],
        nodes=of_frame(functions_table(inclusive, request.top), "Functions", links, unit=unit),
        paths=of_frame(_paths(site.database.stacks(request.query, request.top), total), "Call paths", unit=unit),
    )
    return WebPage("flame.html", "Flame graph", shown)


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
    roots = _roots(site, query)
    layouts = _layouts(view, focus)
    stacks = _stacks(site, query, roots)
    trees = [Tree((layout(path), value) for path, value in stacks) for layout in layouts]
    _refuse_unseen(focus, trees)
    intervals = [dict[int, tuple[float, float]]() for _ in trees]
    side = one_side(site, query, _values(roots))
    lacking = side if isinstance(side, str) else ""
    if not isinstance(side, str):
        intervals = frame_intervals(list(zip(trees, layouts, strict=True)), side)
    drawn = [_columns(tree, low=_end(own, 0), high=_end(own, 1)) for tree, own in zip(trees, intervals, strict=True)]
    return {"event": query.event, "view": view, "focus": focus, "lacking": lacking} | _payload(
        site, query, trees, drawn
    )


def _end(intervals: Mapping[int, tuple[float, float]], end: int) -> dict[int, object]:
    """Return one end of the intervals of frames."""
    return {number: round(both[end], _PLACES) for number, both in intervals.items()}


def flamediff(site: ProfileSite, pairs: Pairs) -> WebPage:
    """Return the differential flame graph of B against A; without scripts the shares of functions as a table."""
    pairs = list(pairs)
    own = [(name, value) for name, value in pairs if name in {*_DRAWN, *_SHOWN}]
    told = read(own, more=(*_DRAWN, *_SHOWN)).more
    rest = [pair for pair in pairs if pair not in own]
    request, (a, b), texts = both(site, rest, site.default(ROOTS, stacks=True))
    drawing = replace(request, more={name: told[name] for name in _DRAWN if name in told})
    view, focus = _drawn(drawing)
    compared = tuple((side, text) for side in ("a", "b") for text in texts[side])
    after = site.database.inclusive(b)
    shares = sides(site, a, b, [])
    why = shares if isinstance(shares, str) else ""
    changes = _changes(site.database.inclusive(a), after) if isinstance(shares, str) else functions(*shares)
    changes = changes.sort_values(["change", "function"], key=_greatest, ignore_index=True)
    order = [name for name in ("function", "change", "low", "high", "share_a", "share_b") if name in changes]
    listed = changes[order].head(request.top)
    links = {"function": to_flame(request, "/flamediff", compared)}
    covered = shared(site, replace(request, query=b), "/flamediff", sum(map(int, after["own"])))
    shown = FlameDifferenceView(
        replace(covered, request=drawing),
        sides=texts,
        json=drawing.url("/flamediff.json", compared),
        search=request.url("/found.json", compared),
        views=_views(drawing, view, "/flamediff", compared),
        focus=focus,
        table=marked(changes, of_frame(listed, "Functions, callees included", links, bar="")),
        rows=len(changes),
        beyond=int(changes["significant"].sum()) if "significant" in changes else 0,
        without=why,
    )
    return WebPage("flamediff.html", "Differential flame graph", shown)


def flamediff_json(site: ProfileSite, pairs: Pairs) -> Payload:
    """Return the frames of B, each with its change since A, A scaled to the total of B, and if it is significant.

    It says by what rule: tested and significant_frames, how many frames were and are, and false_changes; or lacking,
    why none can be told from chance.
    """
    pairs = list(pairs)
    own = [(name, value) for name, value in pairs if name in _DRAWN]
    view, focus = _drawn(read(own, more=_DRAWN))
    rest = [pair for pair in pairs if pair not in own]
    request, (a, b), _ = both(site, rest, site.default(ROOTS, stacks=True))
    roots = _roots(site, request.query)
    layouts = _layouts(view, focus)
    after, before = _stacks(site, b, roots), _stacks(site, a, roots)
    trees = [
        Tree(((layout(path), value) for path, value in after), ((layout(path), value) for path, value in before))
        for layout in layouts
    ]
    _refuse_unseen(focus, trees)
    shares = sides(site, a, b, _values(roots))
    lacking = shares if isinstance(shares, str) else ""
    beyond = [dict[int, bool]() for _ in trees]
    rule: dict[str, object] = {"lacking": lacking}
    if not isinstance(shares, str):
        beyond = frames(list(zip(trees, layouts, strict=True)), *shares)
        significant = sum(sum(of.values()) for of in beyond)
        rule |= {"tested": sum(map(len, beyond)), "significant_frames": significant, "false_changes": FALSE_CHANGES}

    drawn = [_columns(tree, delta=_deltas(tree), significant=known) for tree, known in zip(trees, beyond, strict=True)]
    return {"event": b.event, "view": view, "focus": focus, **rule} | _payload(site, b, trees, drawn)


def _deltas(tree: Tree) -> dict[int, int]:
    """Return what each frame has more than before, before made to the same total."""
    whole, whole_before = tree.after[0], max(1, tree.before[0])
    pairs = zip(tree.after, tree.before, strict=True)
    return {number: after - before * whole // whole_before for number, (after, before) in enumerate(pairs)}


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
    rest, default = [pair for pair in pairs if pair[0] != "find"], site.default(ROOTS, stacks=True)
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
    focus = {name: request.more[name] for name in ("focus",) if name in request.more}
    known = [name for name in VIEWS if name != "sandwich" or focus]
    addresses = {name: replace(request, more={"view": name, **focus}).url(path, more) for name in known}
    return [(VIEWS[name], addresses[name], name == view) for name in known]


def _layouts(view: str, focus: str) -> list[Layout]:
    """Return how a path is drawn: for a sandwich, first from the function down, then from it up."""
    if view == "sandwich":
        return [
            lambda path: path[path.index(focus) :] if focus in path else (),
            lambda path: path[path.index(focus) :: -1] if focus in path else (),
        ]
    return [lambda path: path[::-1]] if view == "callers" else [lambda path: path]


def _refuse_unseen(focus: str, trees: Sequence[Tree]) -> None:
    if focus and trees[0].after[0] and not trees[0].find((focus,)):
        raise RefusedError([f"focus: {unknown('function', focus, [])}; it is on no stack that matches"], 404)


def _payload(
    site: ProfileSite, query: Query, trees: Sequence[Tree], drawn: Sequence[dict[str, list[object]]]
) -> dict[str, object]:
    """Return what every drawing has: the whole, the functions, and the frames of each tree."""
    numbers: dict[str, int] = {}
    for columns in drawn:
        columns["function"] = [numbers.setdefault(str(name), len(numbers)) for name in columns.pop("name")]
    listed = site.database.inclusive(query).set_index("function").reindex(list(numbers), fill_value=0)
    places = [site.places.get(name, ("", "", 0)) for name in numbers]
    return {
        "unit": unit_of(site, query.event),
        "value": trees[0].after[0],
        "frames": [len(tree.names) for tree in trees],
        "functions": {
            "name": list(numbers),
            "own": [int(value) for value in listed["own"]],
            "value": [int(value) for value in listed["value"]],
            "image": [image for image, _, _ in places],
            "file": [file for _, file, _ in places],
            "line": [line for _, _, line in places],
        },
        "trees": list(drawn),
    }


def _columns(tree: Tree, **more: Mapping[int, object]) -> dict[str, list[object]]:
    """Return the largest frames of a tree, column by column: parent (−1 of the first), name, value, own, and others."""
    numbers = tree.largest()
    place = {number: index for index, number in enumerate(numbers)}
    return {
        "parent": [place.get(tree.caller[number], -1) for number in numbers],
        "name": [tree.names[number] for number in numbers],
        "value": [tree.after[number] for number in numbers],
        "own": [tree.own[number] for number in numbers],
        **{name: [values.get(number) for number in numbers] for name, values in more.items()},
    }


def _roots(site: ProfileSite, query: Query) -> list[Restrictions]:
    """Return restrictions to the largest values of the first key that belongs to processes, none without one."""
    key = next((key for key in query.by if of_process(key)), None)
    if key is None:
        return []
    roots = site.database.query(replace(query, by=(key,)), _MOST_ROOTS)
    return [((key, (str(value),)),) for value in roots[key]]


def _values(roots: Sequence[Restrictions]) -> list[str]:
    return [value for ((_, (value,)),) in roots]


def _stacks(site: ProfileSite, query: Query, roots: Sequence[Restrictions]) -> list[Stack]:
    """Return stacks, each below the root frame that its process belongs to; what none of the roots has is below one."""
    if not roots:
        paths = site.database.stacks(query, _MOST_PATHS)
        return [(tuple(path), int(value)) for path, value in zip(paths["path"], paths["value"], strict=True)]
    ((key, _),) = roots[0]
    named = set(_values(roots))
    paths = site.database.apart(replace(query, by=(key,)), _MOST_PATHS, greatest=True)
    sums = Counter[tuple[str, ...]]()
    for process, path, value in zip(paths[key].map(str), paths["path"], paths["value"], strict=True):
        sums[process if process in named else OTHER, *path] += int(value)
    return list(sums.items())


def _around(site: ProfileSite, request: PageQuery, focus: str, total: int) -> list[Table]:
    """Return who calls a function and whom it calls, each stack counted once, at the outermost call of the function."""
    stacks = _stacks(site, request.query, _roots(site, request.query))
    tables = []
    for layout, title in zip(_layouts("sandwich", focus), (f"Called by {focus}", f"Callers of {focus}"), strict=True):
        tree = Tree((layout(path), value) for path, value in stacks)
        _refuse_unseen(focus, [tree])
        middle = tree.find((focus,))
        next_to = [number for number in tree.largest() if middle and tree.caller[number] == middle][: request.top]
        rows = {
            "function": [tree.names[number] for number in next_to],
            "value": [tree.after[number] for number in next_to],
            "share": [tree.after[number] / total if total else 0.0 for number in next_to],
        }
        unit = unit_of(site, request.query.event)
        tables.append(of_frame(pd.DataFrame(rows), title, {"function": to_flame(request)}, unit=unit))
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
