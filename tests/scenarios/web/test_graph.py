import itertools
from collections import Counter

import numpy as np
import pandas as pd

from scenarios.web.graph import MOST_EDGES, call_graph, dot


def drawn(names: int, paths: int, seed: int):
    """Return random stacks of up to eight functions, recursion included."""
    draws = np.random.default_rng(seed)
    return [
        (tuple(f"f{draws.integers(names)}" for _ in range(draws.integers(1, 9))), int(draws.integers(1, 100)))
        for _ in range(paths)
    ]


def tables(stacks):
    """Return calls and functions of stacks, each once per stack, in the form that the database has."""
    calls, functions, own = Counter(), Counter(), Counter()
    for path, value in stacks:
        for call in set(itertools.pairwise(path)):
            calls[call] += value
        for name in set(path):
            functions[name] += value
        own[path[-1]] += value
    edges = pd.DataFrame([(*call, value) for call, value in calls.items()], columns=["caller", "function", "value"])
    reached = pd.DataFrame(
        {"function": list(functions), "value": list(functions.values()), "own": [own[name] for name in functions]}
    )
    return edges.assign(application="a"), reached.assign(application="a")


def test_at_most_150_of_the_heaviest_calls_are_drawn_and_both_ends_of_each():
    edges, functions = tables(drawn(60, 2000, 1))
    assert len(edges) > MOST_EDGES
    graph = call_graph(edges, functions, MOST_EDGES)
    assert len(graph.edges) == MOST_EDGES
    kept = {(edge.caller, edge.callee) for edge in graph.edges}
    left = [row.value for row in edges.itertuples() if (row.caller, row.function) not in kept]
    assert min(edge.value for edge in graph.edges) >= max(left)
    assert {end for call in kept for end in call} == {node.function for node in graph.nodes}
    text = dot(graph)
    assert sum("->" in line for line in text.splitlines()) == MOST_EDGES


def test_shares_are_of_all_samples_with_stacks():
    stacks = drawn(10, 300, 2)
    graph = call_graph(*tables(stacks))
    total = sum(value for _, value in stacks)
    assert graph.total == total
    assert sum(node.value for node in graph.nodes) == total
    for node in graph.nodes:
        assert node.inclusive_share * total == sum(value for path, value in stacks if node.function in path)


def test_no_stack_at_all_makes_an_empty_graph():
    empty = pd.DataFrame({"application": [], "caller": [], "function": [], "value": [], "own": []})
    graph = call_graph(empty, empty)
    assert (graph.nodes, graph.edges, graph.total) == ((), (), 0)
    assert dot(graph).count("\n") == 3
