"""Call paths: every path leads from the function that runs to main, over functions that may call each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.profiling.call_paths import Members, call_paths, joined


@st.composite
def programs(draw):
    own, libraries, kernel = draw(st.integers(3, 30)), draw(st.integers(0, 10)), draw(st.integers(1, 8))
    numbers = np.random.default_rng(draw(st.integers(0, 99))).permutation(own + libraries + kernel)
    handlers = draw(st.integers(1, min(4, own // 2)))
    members = Members(numbers[:own], handlers, numbers[own : own + libraries], numbers[own + libraries :])
    return members, call_paths(members, draw(st.integers(1, 6)), np.random.default_rng(draw(st.integers(0, 99))))


@given(programs())
def test_paths_start_at_main_and_end_in_the_entry(drawn):
    members, paths = drawn
    main, handlers = members.own[0], set(members.own[1 : 1 + members.handlers].tolist())
    for entry, function in enumerate(members.all):
        found = paths.of(entry)
        assert sum(share for _, share in found) == pytest.approx(1.0)
        for path, _ in found:
            assert path[0] == function
            assert path[-1] == main
            assert len(set(path)) == len(path)
            assert function == main or path[-2] in handlers


@given(programs())
def test_own_code_calls_the_kernel_and_never_the_other_way(drawn):
    members, paths = drawn
    layer = {int(f): i for i, part in enumerate((members.own, members.libraries, members.kernel)) for f in part}
    for entry in range(members.all.size):
        for path, _ in paths.of(entry):
            assert [layer[f] for f in path] == sorted((layer[f] for f in path), reverse=True)


def test_joined_paths_are_those_of_each_program_in_turn():
    rng = np.random.default_rng(3)
    members = Members(np.array([4, 5, 6]), 1, np.array([2]), np.array([0, 1]))
    one, other = call_paths(members, 3, rng), call_paths(members, 2, rng)
    both = joined([one, other])
    assert [both.of(entry) for entry in range(12)] == [part.of(entry) for part in (one, other) for entry in range(6)]
