import itertools
import json
from collections import Counter

import numpy as np
import pandas as pd

from scenarios.web.graph import MOST_EDGES, Tree, as_json, call_graph, dot, flame


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


def test_every_frame_weighs_what_the_stacks_through_it_weigh():
    stacks = drawn(4, 200, 3)
    total = sum(value for _, value in stacks)

    def check(frame, path):
        through = sum(value for each, value in stacks if each[: len(path)] == path)
        assert frame["value"] == through
        children = frame.get("children", [])
        assert len({child["name"] for child in children}) == len(children)
        for child in children:
            check(child, (*path, child["name"]))

    root = flame(stacks, 0.0)
    assert root["value"] == total
    check(root, ())


def test_small_frames_are_left_out_and_their_callers_keep_their_value():
    root = flame([(("a", "b"), 1), (("a", "c"), 99)], 0.05)
    assert root["children"] == [{"name": "a", "value": 100, "children": [{"name": "c", "value": 99}]}]


def test_changes_are_against_the_other_profile_at_the_same_total():
    """Ten times the samples in the same proportions is no change."""
    stacks = drawn(4, 50, 4)

    def deltas(frame):
        return [frame["delta"], *(each for child in frame.get("children", []) for each in deltas(child))]

    assert set(deltas(Tree(stacks, [(path, 10 * value) for path, value in stacks]).nested())) == {0}
    grown = Tree([(("a",), 30), (("b",), 10)], [(("a",), 50), (("b",), 50)]).nested()
    assert [child["delta"] for child in grown["children"]] == [10, -10]


def test_frames_are_written_as_another_writer_of_json_writes_them():
    root = Tree(drawn(6, 300, 5), drawn(6, 300, 6)).nested(0.0)
    assert as_json(root) == json.dumps(root, separators=(",", ":"))
    assert json.loads(as_json({"rows": [1, 'é"', None, {"children": 3}]})) == {"rows": [1, 'é"', None, {"children": 3}]}


def test_stacks_as_deep_as_an_importer_takes_are_written_whole():
    """16,384 frames, each a recursive call: so many objects, one in the other, each of the whole value."""
    text = as_json(flame([(("f",) * 16_384, 7), (("f", "g"), 5)]))
    assert text.count('"name":"f"') == 16_384
    assert text.count('"value":7') == 16_383
    depth = list(itertools.accumulate({"{": 1, "}": -1}.get(character, 0) for character in text))
    assert (max(depth), depth[-1]) == (16_385, 0)
