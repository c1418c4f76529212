"""LLVM's text sample profile; `tests/interchange` has llvm-profdata read one."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from analysis.profiling.formats.foreign import Frame, Measure
from analysis.profiling.formats.sample_profile import write_sample_profile
from tests.helpers.foreign_profiles import profile_of


def write(samples, image="a"):
    return write_sample_profile([profile_of([Measure("cycles")], samples)], "cycles", image)


def sections(text):
    """A slow reader: function to its total, head and lines, each with its count and callees."""
    found, name = {}, ""
    for line in text.splitlines():
        if line.startswith(" "):
            offset, _, rest = line.strip().partition(": ")
            count, *callees = rest.split(" ")
            found[name][2][int(offset)] = (int(count), dict(callee.rsplit(":", 1) for callee in callees))
        else:
            name, total, head = line.rsplit(":", 2)
            found[name] = (int(total), int(head), {})
    return found


FRAMES = st.tuples(st.sampled_from(["f", "g", "h"]), st.sampled_from(["a", "b"]), st.integers(10, 13)).map(
    lambda found: Frame(found[0], found[1], function_line=10, line=found[2])
)


@given(st.lists(st.tuples(st.lists(FRAMES, min_size=1, max_size=3).map(tuple), st.tuples(st.integers(1, 99)))))
def test_totals_and_lines_are_those_of_the_samples(samples):
    found = sections(write(samples))
    totals, lines = Counter(), Counter()
    for (leaf, *_), (count,) in samples:
        if leaf.image == "a":
            totals[leaf.function] += count
            lines[leaf.function, leaf.line - 10] += count
    assert {name: total for name, (total, _, _) in found.items() if total} == totals
    written = {(name, at): count for name, (_, _, body) in found.items() for at, (count, _) in body.items() if count}
    assert written == lines


def test_callees_are_counted_at_the_line_of_the_call():
    caller = Frame("main", "a", function_line=1, line=4)
    samples = [((Frame("f", "b"), caller), (3,)), ((Frame("g", "b"), caller), (5,)), ((caller,), (2,))]
    assert sections(write(samples)) == {"main": (2, 0, {3: (2, {"g": "5", "f": "3"})})}


def test_code_without_a_symbol_or_of_another_image_is_left_out():
    samples = [((Frame("[unknown]", "a"),), (3,)), ((Frame("", "a"),), (3,)), ((Frame("f", "b"),), (3,))]
    assert write(samples) == ""


def test_a_line_before_the_function_wraps_as_llvm_does():
    assert " 65535: 3\n" in write([((Frame("f", "a", function_line=10, line=9),), (3,))])


def test_an_unknown_line_counts_in_the_total_alone():
    assert write([((Frame("f", "a"),), (3,))]) == "f:3:0\n"
