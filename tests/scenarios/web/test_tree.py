"""Trees of call paths as arrays, beside what is added up path by path."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from scenarios.web import tree as trees
from scenarios.web.tree import SMALLEST_SHARE, PathFrames, Tree


def drawn(names: int, paths: int, seed: int, longest: int = 8):
    """Return random paths, recursion included, and two sets of events."""
    draws = np.random.default_rng(seed)
    chosen = [tuple(f"f{draws.integers(names)}" for _ in range(draws.integers(0, longest + 1))) for _ in range(paths)]
    return chosen, draws.integers(0, 100, paths), draws.integers(0, 3, paths)


def paths_of(tree: Tree):
    """Return the path of each frame."""
    paths = {0: ()}
    for number in range(1, len(tree)):
        paths[number] = (*paths[int(tree.caller[number])], tree.name(number))
    return paths


def slow(paths, events):
    """Return what is in each frame and below it, by its path."""
    sums = Counter()
    for path, value in zip(paths, events.tolist(), strict=True):
        for depth in range(len(path) + 1):
            sums[path[:depth]] += value
    return sums


@pytest.mark.parametrize("kind", [np.int64, object])
def test_every_frame_weighs_what_the_paths_through_it_weigh(kind):
    chosen, after, before = drawn(4, 200, 3)
    tree = Tree(PathFrames.of(chosen), after.astype(kind) * 2**40, before.astype(kind))
    expected, earlier, paths = slow(chosen, after), slow(chosen, before), paths_of(tree)
    assert set(paths.values()) == set(expected)
    assert len(paths) == tree.frames
    for number, path in paths.items():
        assert (tree.depth[number], tree.find(path)) == (len(path), number)
        assert (tree.after[number], tree.before[number]) == (expected[path] * 2**40, earlier[path])
        assert (
            tree.own[number]
            == sum(value for own, value in zip(chosen, after.tolist(), strict=True) if own == path) * 2**40
        )
    alone = [path for path in expected if path and not expected[path] and (expected[path[:-1]] or len(path) == 1)]
    assert tree.unmatched == sum(earlier[path] for path in alone)


def test_the_largest_frames_come_after_the_frames_that_they_are_under():
    chosen, after, _ = drawn(4, 200, 4)
    expected = slow(chosen, after)
    ordered = sorted(
        (path for path in expected if expected[path] or not path),
        key=lambda path: (-expected[path], len(path), path[-1] if path else "all"),
    )
    for most in (1, 17, 100, len(expected)):
        tree = Tree(PathFrames.of(chosen), after, most=most)
        largest, paths = tree.largest(), paths_of(tree)
        assert all(tree.caller[number] in largest[:place] for place, number in enumerate(largest) if number)
        values = [int(tree.after[number]) for number in largest]
        assert values == [expected[path] for path in ordered[:most]]
        assert [len(paths[number]) for number in largest.tolist()] == [len(path) for path in ordered[:most]]
        assert tree.frames == len(expected)


@pytest.mark.parametrize("at_once", [1, 7, 50_000])
def test_small_frames_are_left_out_and_those_of_which_something_is_said_are_not(monkeypatch, at_once):
    monkeypatch.setattr(trees, "_PATHS_AT_ONCE", at_once)
    chosen, after, before = drawn(30, 4_000, 5, longest=5)
    after[:3], before[3] = 10**6, 10**4
    few, all_ = (Tree(PathFrames.of(chosen), after, before, most=most) for most in (25, 10**6))
    assert len(few) < len(all_) / 2
    assert few.frames == all_.frames == len(all_)
    assert few.unmatched == all_.unmatched
    whole = paths_of(all_)
    said = {whole[at] for at in np.flatnonzero(np.add(*all_.shares()) >= 2 * SMALLEST_SHARE).tolist()}
    assert said <= set(paths_of(few).values())
    assert {whole[at] for at in all_.largest()[:25].tolist()} <= set(paths_of(few).values())


def test_frames_that_are_drawn_are_not_left_out_where_there_are_many():
    """Of 6,000 paths whose frames are of like size, the 2,000 largest, as they are without leaving any out."""
    draws = np.random.default_rng(9)
    chosen = [tuple(f"f{at}" for at in draws.integers(0, 40, 5)) for _ in range(6_000)]
    after = draws.integers(1, 30, len(chosen))
    few, all_ = (Tree(PathFrames.of(chosen), after, most=most) for most in (2_000, 10**6))
    whole, left = paths_of(all_), paths_of(few)
    assert [left[at] for at in few.largest().tolist()] == [whole[at] for at in all_.largest().tolist()[:2_000]]
    assert len(few) < len(all_) / 2


def test_few_stacks_that_are_deep_are_not_looked_at_frame_by_frame(monkeypatch):
    """A recursion sampled at any depth, and what it calls: depths are taken together, and frames are what they are."""
    draws, steps, descend = np.random.default_rng(8), [], Tree._descend
    recursion = tuple(f"f{at}" for at in draws.integers(0, 9, 900))
    chosen = [(*recursion[: draws.integers(1, 900)], *("g", "h")[: draws.integers(3)]) for _ in range(40)]
    after = draws.integers(1, 9, len(chosen))
    monkeypatch.setattr(Tree, "_descend", lambda *given: steps.append(1) or descend(*given))
    tree = Tree(PathFrames.of(chosen), after)
    assert len(steps) < 9
    assert {path: tree.after[number] for number, path in paths_of(tree).items()} == slow(chosen, after)
    assert tree.depth.tolist() == sorted(tree.depth.tolist())


def test_which_of_some_frames_are_on_each_path():
    chosen, after, _ = drawn(4, 100, 6)
    tree = Tree(PathFrames.of(chosen), after)
    numbers = np.flatnonzero(tree.after > 60)
    own = [set() for _ in chosen]
    for paths, items in tree.on_paths(numbers):
        assert len(set(paths.tolist())) == len(paths)
        for path, item in zip(paths.tolist(), items.tolist(), strict=True):
            own[path].add(int(numbers[item]))
    on = paths_of(tree)
    for path, found in zip(chosen, own, strict=True):
        assert found == {at for at in numbers.tolist() if at and path[: len(on[at])] == on[at]}


def test_paths_are_inverted_and_cut_around_a_function_as_tuples_are():
    chosen, _, _ = drawn(4, 100, 7)
    frames = PathFrames.of(chosen)

    def tuples(some):
        return [tuple(some.names[code] for code in some.code[first:last]) for first, last in pairwise(some.first)]

    assert tuples(frames) == chosen
    assert tuples(frames.inverted()) == [path[::-1] for path in chosen]
    inner, outer = frames.around("f2")
    assert tuples(inner) == [path[path.index("f2") :] if "f2" in path else () for path in chosen]
    assert tuples(outer) == [path[path.index("f2") :: -1] if "f2" in path else () for path in chosen]
    some = np.array([name in {"f1", "f3"} for name in frames.names])
    assert frames.having(some).tolist() == ["f1" in path or "f3" in path for path in chosen]
    assert [len(path) for path in tuples(frames.around("nowhere")[0])] == [0] * len(chosen)
    first, code = frames.once()
    assert [set(code[a:b]) for a, b in pairwise(first)] == [
        {frames.names.index(name) for name in path} for path in chosen
    ]


def test_functions_have_their_own_events_and_those_of_what_they_call():
    chosen, after, _ = drawn(6, 300, 8)
    rows = PathFrames.of(chosen).functions(after).set_index("function")
    for name, (value, own) in rows.iterrows():
        assert value == sum(each for path, each in zip(chosen, after.tolist(), strict=True) if name in path)
        assert own == sum(each for path, each in zip(chosen, after.tolist(), strict=True) if path and path[-1] == name)
    assert rows["value"].is_monotonic_decreasing


@pytest.mark.parametrize("at_once", [1, 3, 1000])
def test_some_paths_may_be_there_several_times(monkeypatch, at_once):
    monkeypatch.setattr(trees, "_PATHS_AT_ONCE", at_once)
    rng = np.random.default_rng(at_once)
    paths = [[f"f{number}" for number in rng.integers(0, 5, length)] for length in rng.integers(0, 4, 12)]
    for chosen in (rng.integers(0, 12, 30), np.zeros(0, dtype=np.int64), np.arange(12)):
        some = PathFrames.of(paths).at(chosen)
        names = [[some.names[at] for at in some.code[a:b]] for a, b in pairwise(some.first)]
        assert names == [paths[at] for at in chosen]


def test_root_frames_have_numbers_of_their_own_above_very_many_functions():
    names = [str(number) for number in range(2**15 - 1)]
    code = np.array([-1, 5, -1, len(names) - 1], dtype=np.int32)
    below = PathFrames(names, np.array([0, 2, 4]), code).at(np.arange(2)).below(["x", "y"], np.array([1, 0]))
    assert [below.names[number] for number in below.code] == ["y", "5", "x", names[-1]]
