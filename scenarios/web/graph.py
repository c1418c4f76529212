"""Dynamic call graphs out of call stacks: which functions call which, and the graph as text for Graphviz."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

import pandas as pd

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


def _share(value: int, total: int) -> float:
    return value / total if total else 0.0


def _shade(share: float) -> int:
    return min(_SHADES, round(_SHADES * math.sqrt(share)))


def _short(name: str) -> str:
    return (name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…").translate(_ESCAPES)
