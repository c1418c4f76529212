"""Dynamic call graphs out of call stacks: which functions call which, and the graph as text for Graphviz."""

import math
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

    program: str
    function: str
    value: int
    share: float
    inclusive_value: int
    inclusive_share: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A call: what is spent below it, each stack counted once however often it holds the call."""

    program: str
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
    calls : application, caller, function, value, as `Database.edges` gives them
    functions : application, function, value (callees included), own, as `Database.inclusive` gives them
    most_edges : how many of the heaviest calls to keep
    """
    total = sum(map(int, functions["own"]))
    order = ["value", "application", "caller", "function"]
    listed = calls.sort_values(order, ascending=[False, True, True, True]).head(most_edges)
    edges = tuple(
        Edge(str(program), str(caller), str(callee), int(value), _share(int(value), total))
        for value, program, caller, callee in zip(*(listed[name] for name in order), strict=True)
    )
    ends = {(edge.program, end) for edge in edges for end in (edge.caller, edge.callee)}
    named = (functions[name] for name in ("application", "function", "own", "value"))
    nodes = [
        Node(str(program), str(name), int(own), _share(int(own), total), int(value), _share(int(value), total))
        for program, name, own, value in zip(*named, strict=True)
        if not ends or (program, name) in ends
    ]
    nodes.sort(key=lambda node: (-node.inclusive_value, node.program, node.function))
    return CallGraph(tuple(nodes[: 2 * most_edges]), edges, total, len(calls))


def dot(graph: CallGraph, pairs: Sequence[tuple[str, str]] = (), path: str = "/query") -> str:
    r"""Return a call graph in Graphviz's language: each node its function and share, shaded by it, linked to its query.

    Functions of each program are drawn in a box of their own, so that every program has its own `main`.

    Parameters
    ----------
    graph : at most a few hundred edges
    pairs : parameters of the pages that the nodes lead to, beside the function
    path : which page
    """
    number = {(node.program, node.function): index for index, node in enumerate(graph.nodes)}
    lines = [
        'digraph "call graph" {',
        '  bgcolor="transparent"; node [shape=box style="filled" fontname="Helvetica" fontsize=11 margin="0.12,0.06"];',
        '  rankdir=LR; nodesep=0.12; edge [fontname="Helvetica" fontsize=9 arrowsize=0.6];',
    ]
    programs = list(dict.fromkeys(node.program for node in graph.nodes))
    for at, program in enumerate(reversed(programs)):  # Graphviz draws the last one on top.
        lines.append(f'  subgraph cluster_{at} {{ label="{_short(program)}"; fontname="Helvetica"; color="gray";')
        lines += [_drawn(node, number, pairs, path) for node in graph.nodes if node.program == program]
        lines.append("  }")
    for edge in graph.edges:
        width = 0.5 + 3.5 * edge.share
        ends = f"n{number[edge.program, edge.caller]} -> n{number[edge.program, edge.callee]}"
        lines.append(f'  {ends} [label="{edge.share:.1%}" penwidth={width:.2f}];')
    return "\n".join([*lines, "}"])


def _drawn(node: Node, number: Mapping[tuple[str, str], int], pairs: Sequence[tuple[str, str]], path: str) -> str:
    """Return a function's node."""
    own = [pair for pair in pairs if not pair[1].startswith("application=")]
    url = (
        f"{path}?{urlencode([*own, ('where', f'application={node.program}'), ('where', f'function={node.function}')])}"
    )
    label = f"{_short(node.function)}\\n{node.share:.1%} of {node.inclusive_share:.1%}"
    shade = f"s{_shade(node.inclusive_share)}"
    name = f"n{number[node.program, node.function]}"
    return f'    {name} [label="{label}" class="{shade}" URL="{url.translate(_ESCAPES)}"];'


SMALLEST_SHARE = 1 / 4000
"""Share of the whole below which nothing is said of a frame's error."""
MOST_FRAMES = 20_000
"""Frames of a drawing, at most; the largest are drawn."""


class Tree:
    """Frames of two sets of stacks: each a function under the frame before it; the root, number 0, is before all.

    A frame's number is larger than that of the frame before it, so no path is ever followed by recursion, however deep
    it is.

    Parameters
    ----------
    after, before : path of functions in the order in which frames are drawn, and its value
    """

    def __init__(self, after: Iterable[Stack], before: Iterable[Stack] = ()) -> None:
        self.names, self.caller, self.depth = ["all"], [-1], [0]
        self._number: dict[tuple[int, str], int] = {}
        own = [[(self.add(path), value) for path, value in stacks] for stacks in (after, before)]
        self.own = [0] * len(self.names)
        for number, value in own[0]:
            self.own[number] += value
        self.after, self.before = (self._with_callees(values) for values in own)

    def add(self, path: Sequence[str]) -> int:
        """Return the number of the last frame of a path; of frames that are new, a new one."""
        at = 0
        for name in path:
            node = self._number.get((at, name))
            if node is None:
                node = self._number[at, name] = len(self.names)
                self.names.append(name)
                self.caller.append(at)
                self.depth.append(self.depth[at] + 1)
            at = node
        return at

    def find(self, path: Iterable[str]) -> int:
        """Return the number of the last frame of a path that there is."""
        at = 0
        for name in path:
            node = self._number.get((at, name))
            if node is None:
                break
            at = node
        return at

    def _with_callees(self, own: Iterable[tuple[int, int]]) -> list[int]:
        values = [0] * len(self.names)
        for number, value in own:
            values[number] += value
        for number in range(len(values) - 1, 0, -1):
            values[self.caller[number]] += values[number]
        return values

    def largest(self, most: int = MOST_FRAMES) -> list[int]:
        """Return the numbers of the frames with the most value, each after the frame that it is under.

        Examples
        --------
        >>> tree = Tree([(("main", "f"), 3), (("main", "g"), 5), (("main",), 1)], [(("main",), 2)])
        >>> [tree.names[number] for number in tree.largest()], tree.after, tree.own
        (['all', 'main', 'g', 'f'], [9, 9, 3, 5], [0, 1, 3, 5])
        """
        having = (number for number, value in enumerate(self.after) if value or not number)
        ordered = sorted(having, key=lambda number: (-self.after[number], self.depth[number], self.names[number]))
        return ordered[:most]


def _share(value: int, total: int) -> float:
    return value / total if total else 0.0


def _shade(share: float) -> int:
    return min(_SHADES, round(_SHADES * math.sqrt(share)))


def _short(name: str) -> str:
    return (name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…").translate(_ESCAPES)
