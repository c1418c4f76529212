"""Folded stacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.profiling.formats.faults import FormatError
from analysis.profiling.formats.folded import read_folded, write_folded
from analysis.profiling.formats.foreign import LARGEST, Frame, Measure, made

NAMES = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters=";"), min_size=1, max_size=5)
STACKS = st.dictionaries(st.lists(NAMES, min_size=1, max_size=5).map(tuple), st.integers(1, 10**12), min_size=1)


@given(STACKS)
def test_what_is_written_is_read_again(stacks):
    profile = made(
        [Measure("samples")], [(tuple(map(Frame, reversed(path))), (count,)) for path, count in stacks.items()]
    )
    again = read_folded(write_folded(profile, "samples").encode())
    found = {tuple(again.frames[at].function for at in s.stack[::-1]): s.amounts[0] for s in again.samples}
    assert found == stacks


@given(STACKS)
def test_what_is_written_is_what_a_line_a_stack_says(stacks):
    profile = made(
        [Measure("samples")], [(tuple(map(Frame, reversed(path))), (count,)) for path, count in stacks.items()]
    )
    plainly = sorted(f"{';'.join(path)} {count}" for path, count in stacks.items())
    written = write_folded(profile, "samples").split("\n")
    assert written.pop() == ""
    assert {tuple(line.rsplit(" ", 1)) for line in written} == {tuple(line.rsplit(" ", 1)) for line in plainly}


def test_a_name_may_hold_blanks_and_a_semicolon_becomes_a_colon():
    profile = made([Measure("samples")], [((Frame("operator ()(a;b)"),), (2,))])
    assert write_folded(profile, "samples") == "operator ()(a:b) 2\n"


def test_stacks_that_are_written_alike_are_summed():
    profile = made([Measure("samples")], [((Frame("f", line=1),), (2,)), ((Frame("f", line=2),), (3,))])
    assert write_folded(profile, "samples") == "f 5\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("main;f x", "a.folded:1: count: should be a whole number from 0 to 9223372036854775807, after a blank, got x"),
        ("main 1\nf -3", "a.folded:2: count: should be a whole number"),
        ("main 1.5", "a.folded:1: count: should be a whole number"),
        (f"main {LARGEST + 1}", "a.folded:1: count: should be a whole number"),
        ("main " + "9" * 5000, "a.folded:1: count: should be a whole number"),
        ("main ٣", "a.folded:1: count: should be a whole number"),
        ("a;;b 3", "a.folded:1: stack: should be names of functions joined by semicolons, got a;;b"),
        ("17", "a.folded:1: stack: should be names of functions joined by semicolons, got none"),
        ("", "a.folded: stacks: should be at least one, got none"),
        (";".join("f" * 16385) + " 3", "a.folded:1: stack: should be at most 16384 functions deep, got 16385"),
    ],
)
def test_lines_that_are_no_folded_stacks_are_refused(text, said):
    with pytest.raises(FormatError) as caught:
        read_folded(text.encode(), "a.folded")
    assert str(caught.value).startswith(said)


def test_every_faulty_line_is_named():
    with pytest.raises(FormatError) as caught:
        read_folded(b"a\nb 1\nc\n", "a.folded")
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == ["a.folded:1", "a.folded:3"]
