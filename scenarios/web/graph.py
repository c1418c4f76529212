"""Dynamic call graphs out of call stacks: which functions call which, and the graph as text for Graphviz."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import pandas as pd

Stack = tuple[tuple[str, ...], int]

MOST_EDGES = 150
"""Edges drawn, at most."""
USUAL_EDGES = 60
"""Edges drawn unless more are asked for."""
_LONGEST_LABEL, _SHADES = 60, 9
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": " ", "\r": " ", "\0": " "})


@dataclass(frozen=True, slots=True)
class Node:
    """A function: its own value, and with all that it calls; shares of the whole."""

    function: str
    value: int
    share: float
    inclusive_value: int
    inclusive_share: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A call: what is spent below it, each stack counted once however often it holds the call."""

    caller: str
    callee: str
    value: int
    share: float


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The heaviest calls and the functions at their ends, heaviest first; `total` is of all samples with stacks."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    total: int
    edges_in_all: int


def call_graph(calls: pd.DataFrame, functions: pd.DataFrame, most_edges: int = USUAL_EDGES) -> CallGraph:
    """Return the part of a call graph that can be drawn (Ren et al. 2010, "Call graph view").

    Parameters
    ----------
    calls : caller, function, value, as `Database.edges` gives them
    functions : function, value (callees included), own, as `Database.inclusive` gives them
    most_edges : how many of the heaviest calls to keep

    Examples
    --------
    >>> functions = pd.DataFrame({"function": ["main", "f"], "value": [4, 3], "own": [1, 3]})
    >>> graph = call_graph(pd.DataFrame({"caller": ["main"], "function": ["f"], "value": [3]}), functions)
    >>> graph.edges[0].share, graph.nodes[0].function, graph.nodes[0].share, graph.nodes[0].inclusive_share
    (0.75, 'main', 0.25, 1.0)
    """
    total = sum(map(int, functions["own"]))
    listed = calls.sort_values(["value", "caller", "function"], ascending=[False, True, True]).head(most_edges)
    edges = tuple(
        Edge(str(caller), str(callee), int(value), _share(int(value), total))
        for caller, callee, value in zip(listed["caller"], listed["function"], listed["value"], strict=True)
    )
    ends = {end for edge in edges for end in (edge.caller, edge.callee)}
    nodes = [
        Node(str(name), int(own), _share(int(own), total), int(value), _share(int(value), total))
        for name, own, value in zip(functions["function"], functions["own"], functions["value"], strict=True)
        if not ends or name in ends
    ]
    nodes.sort(key=lambda node: (-node.inclusive_value, node.function))
    return CallGraph(tuple(nodes[: 2 * most_edges]), edges, total, len(calls))


def dot(graph: CallGraph, pairs: Sequence[tuple[str, str]] = (), path: str = "/query") -> str:
    r"""Return a call graph in Graphviz's language: each node its function and share, shaded by it, linked to its query.

    Parameters
    ----------
    graph : at most a few hundred edges
    pairs : parameters of the pages that the nodes lead to, beside the function
    path : which page

    Examples
    --------
    >>> text = dot(CallGraph((Node('say("hi")', 3, 0.5, 6, 1.0),), (), 6, 0))
    >>> print(text.splitlines()[3])
      n0 [label="say(\"hi\")\n50.0% of 100.0%" class="s9" URL="/query?where=function%3Dsay%28%22hi%22%29"];
    """
    number = {node.function: index for index, node in enumerate(graph.nodes)}
    lines = [
        'digraph "call graph" {',
        '  bgcolor="transparent"; node [shape=box style="filled" fontname="Helvetica" fontsize=11 margin="0.12,0.06"];',
        '  rankdir=LR; nodesep=0.12; edge [fontname="Helvetica" fontsize=9 arrowsize=0.6];',
    ]
    for node in graph.nodes:
        url = f"{path}?{urlencode([*pairs, ('where', f'function={node.function}')])}"
        label = f"{_short(node.function)}\\n{node.share:.1%} of {node.inclusive_share:.1%}"
        shade = f"s{_shade(node.inclusive_share)}"
        lines.append(f'  n{number[node.function]} [label="{label}" class="{shade}" URL="{url.translate(_ESCAPES)}"];')
    for edge in graph.edges:
        width = 0.5 + 3.5 * edge.share
        ends = f"n{number[edge.caller]} -> n{number[edge.callee]}"
        lines.append(f'  {ends} [label="{edge.share:.1%}" penwidth={width:.2f}];')
    return "\n".join([*lines, "}"])


def flame(stacks: Iterable[Stack], smallest_share: float = 1 / 4000) -> dict[str, object]:
    """Return stacks as a tree of frames: name, value with all that it calls, children by name.

    Parameters
    ----------
    stacks : path of functions, root first, and its value
    smallest_share : frames below this share of the whole are left out; their callers keep their value

    Examples
    --------
    >>> flame([(("main", "f"), 3), (("main",), 1)])["children"]
    [{'name': 'main', 'value': 4, 'children': [{'name': 'f', 'value': 3}]}]
    """
    return flame_difference(stacks, (), smallest_share)


def flame_difference(
    after: Iterable[Stack], before: Iterable[Stack], smallest_share: float = 1 / 4000
) -> dict[str, object]:
    """Return the frames of `after` with each one's change since `before`, which is scaled to the same total.

    Parameters
    ----------
    after, before : path of functions, root first, and its value; without any before there are no changes
    smallest_share : as `flame`

    Examples
    --------
    >>> frame = flame_difference([(("f",), 30), (("g",), 10)], [(("f",), 1), (("g",), 1)])["children"][0]
    >>> frame["name"], frame["value"], frame["delta"]
    ('f', 30, 10)
    """
    values, old = _frames(after), _frames(before)
    total, total_before = values.get((), 0), old.get((), 0)
    kept = {path: value for path, value in values.items() if value * 1.0 >= smallest_share * total or not path}
    made: dict[tuple[str, ...], dict[str, object]] = {}
    for path in sorted(kept, key=lambda path: (len(path), path)):
        frame: dict[str, object] = {"name": path[-1] if path else "all", "value": kept[path]}
        if total_before:
            frame["delta"] = kept[path] - old.get(path, 0) * total // total_before
        made[path] = frame
        parent = made.get(path[:-1]) if path else None
        if parent is not None:
            children = parent.setdefault("children", [])
            if isinstance(children, list):
                children.append(frame)
    return made.get((), {"name": "all", "value": 0})


def _frames(stacks: Iterable[Stack]) -> Mapping[tuple[str, ...], int]:
    values = Counter[tuple[str, ...]]()
    for path, value in stacks:
        for depth in range(len(path) + 1):
            values[path[:depth]] += value
    return values


def _share(value: int, total: int) -> float:
    return value / total if total else 0.0


def _shade(share: float) -> int:
    return min(_SHADES, round(_SHADES * math.sqrt(share)))


def _short(name: str) -> str:
    return (name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…").translate(_ESCAPES)
