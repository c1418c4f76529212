"""Folded stacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.profiling.formats import stack_sums, stores
from analysis.profiling.formats.folded import read_folded, write_folded
from analysis.profiling.formats.foreign import LARGEST, Frame, Measure
from analysis.profiling.formats.reading import read_foreign
from analysis.profiling.formats.tables import to_tables, totals
from analysis.tables.faults import FileError
from tests.helpers.foreign_profiles import profile_of

NAMES = st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters=";"), min_size=1, max_size=5)
STACKS = st.dictionaries(st.lists(NAMES, min_size=1, max_size=5).map(tuple), st.integers(1, 10**12), min_size=1)


@given(STACKS)
def test_what_is_written_is_read_again(stacks):
    profile = profile_of(
        [Measure("samples")], [(tuple(map(Frame, reversed(path))), (count,)) for path, count in stacks.items()]
    )
    again = read_folded(write_folded(profile, "samples").encode())
    found = {tuple(again.frames[at].function for at in s.stack[::-1]): s.amounts[0] for s in again.samples}
    assert found == stacks


@given(STACKS)
def test_what_is_written_is_what_a_line_a_stack_says(stacks):
    profile = profile_of(
        [Measure("samples")], [(tuple(map(Frame, reversed(path))), (count,)) for path, count in stacks.items()]
    )
    plainly = sorted(f"{';'.join(path)} {count}" for path, count in stacks.items())
    written = write_folded(profile, "samples").split("\n")
    assert written.pop() == ""
    assert {tuple(line.rsplit(" ", 1)) for line in written} == {tuple(line.rsplit(" ", 1)) for line in plainly}


@given(st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3).map(tuple), st.integers(0, LARGEST)), min_size=1))
def test_stacks_are_summed_however_few_wait(lines):
    """Also to sums that no number of 64 bits holds."""
    sums = dict[tuple[str, ...], int]()
    for path, count in lines:
        sums[path] = sums.get(path, 0) + count
    text = "".join(f"{';'.join(path)} {count}\n" for path, count in lines).encode()
    for at_once in (1, 2, 10**6):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(stack_sums, "_AT_ONCE", at_once)
            patched.setattr(stores, "_AT_ONCE", at_once)
            profile = read_folded(text)
            read = {tuple(profile.frames[at].function for at in s.stack[::-1]): s.amounts[0] for s in profile.samples}
            assert list(read.items()) == list(sums.items())
            if sum(sums.values()) <= LARGEST:
                rows = to_tables([profile])
                assert rows["samples"]["count"].sum() == sum(sums.values())
                assert len(rows["stacks"]) == sum(len(path) for path, count in sums.items() if count)


def test_many_names_are_refused_before_they_fill_the_memory(monkeypatch):
    """Names take most memory where each is new, so they count besides their stacks."""
    monkeypatch.setattr("analysis.profiling.formats.foreign.MOST_FRAMES", 1000)
    text = "".join(f"main;{'f' * 40}{number} 1\n" for number in range(200)).encode()
    with pytest.raises(FileError, match=r"a.folded:\d+: stacks: .*, each function as 45 and half its letters; split"):
        read_folded(text, "a.folded")
    once = "".join(f"main;f;{number % 20} 1\n" for number in range(10_000)).encode()
    assert read_folded(once, "a.folded").samples.total(0) == 10_000


@pytest.mark.parametrize(
    "text",
    [
        "<svgtypes::Path as Parse>::next;b 6\n",
        "<svg as Parse>::next;b 6\n",
        "<alloc::boxed::Box<F> as FnOnce>::call_once;<html5ever::Tokenizer<S> as X>::step 5\nmain;<html> 1\n",
        "desc: x;main 5\n",
        "desc: x;main 5\ncmd: y 2\n",
    ],
)
def test_stacks_that_begin_as_other_formats_do_are_read(tmp_path, text):
    path = tmp_path / "a.folded"
    path.write_text(text)
    assert read_foreign(path).samples.total(0) == sum(int(line.split()[-1]) for line in text.splitlines())


def test_lines_may_end_in_a_carriage_return_alone():
    assert read_folded(b"a;b 1\ra;c 2\r").samples.total(0) == read_folded(b"a;b 1\r\na;c 2\r\n").samples.total(0) == 3


def test_a_line_of_very_many_numbers_takes_time_as_it_is_long():
    """Each number once cost a copy of the line."""
    with pytest.raises(FileError, match="counts: should be one, or two"):
        read_folded(b"main;a" + b" 1" * 2_000_000 + b"\n")


def test_a_name_may_hold_blanks_and_a_semicolon_becomes_a_colon():
    profile = profile_of([Measure("samples")], [((Frame("operator ()(a;b)"),), (2,))])
    assert write_folded(profile, "samples") == "operator ()(a:b) 2\n"


def test_stacks_that_are_written_alike_are_summed():
    profile = profile_of([Measure("samples")], [((Frame("f", line=1),), (2,)), ((Frame("f", line=2),), (3,))])
    assert write_folded(profile, "samples") == "f 5\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("main;f x", "a.folded:1: count: should be a number up to 9223372036854775807, after a blank, got x"),
        ("main 1\nf 3-", "a.folded:2: count: should be a number"),
        ("main 1.5.2", "a.folded:1: count: should be a number"),
        ("main 1.5\nf 9999999999999999", "a.folded:2: count: should be a number up to 9223372036854, after"),
        (f"main {LARGEST + 1}", "a.folded:1: count: should be a number"),
        ("main " + "9" * 5000, "a.folded:1: count: should be a number"),
        ("main ٣", "a.folded:1: count: should be a number"),
        (" ; ;  3", "a.folded:1: stack: should name a function, got ; ;"),
        ("17", "a.folded:1: stack: should name a function, got none"),
        ("", "a.folded: stacks: should be at least one, got none"),
        (";".join("f" * 16385) + " 3", "a.folded:1: stack: should be at most 16384 functions deep, got 16385"),
    ],
)
def test_lines_that_are_no_folded_stacks_are_refused(text, said):
    with pytest.raises(FileError) as caught:
        read_folded(text.encode(), "a.folded")
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("main;parse;  3", ["main", "parse", "[unknown]"]),
        ("main;parse; 3", ["main", "parse", "[unknown]"]),
        ("main; ;read 3", ["main", "[unknown]", "read"]),
        ("main;;read 3", ["main", "[unknown]", "read"]),
        (";main 3", ["[unknown]", "main"]),
    ],
)
def test_a_function_without_a_name_is_unknown_and_a_note_counts_such_stacks(line, path):
    profile = read_folded(f"{line}\nmain 4\n".encode(), "a.folded")
    assert [profile.frames[at].function for at in profile.samples[0].stack[::-1]] == path
    assert [sample.amounts for sample in profile.samples] == [(3,), (4,)]
    assert profile.notes == ("1 line has a function without a name, which is read as [unknown]",)


def test_comments_are_left_out_as_a_note_says_and_no_stacks_even_if_they_end_in_a_number():
    text = "\ufeff# austin: 3.6.0\n # interval: 100\r\n# mode: wall\n#\n\nP1;T1;main 5\n# 7\n# a;b 2\n"
    profile = read_folded(text.encode())
    paths = [[profile.frames[at].function for at in sample.stack[::-1]] for sample in profile.samples]
    assert paths == [["P1", "T1", "main"], ["#"], ["# a", "b"]]
    assert [sample.amounts for sample in profile.samples] == [(5,), (7,), (2,)]
    assert profile.notes == ("4 lines begin with # and a blank: left out as comments",)


def test_two_counts_a_line_are_those_before_and_after():
    profile = read_folded(b"main;read 12 274\nmain;operator () 4 0\n\nmain;read 1 2\n", "two.folded")
    assert [measure.event for measure in profile.measures] == ["before", "after"]
    assert [frame.function for frame in profile.frames] == ["read", "main", "operator ()"]
    assert [sample.amounts for sample in profile.samples] == [(13, 276), (4, 0)]
    assert profile.notes == (
        "two counts a line, as of difffolded.pl: read as the events before and after; "
        'if the first of them is the end of a name, put such names in quotes, as main;"req 200" 10',
    )


def test_negative_counts_are_what_there_was_before():
    """Equal stacks are summed first; +7 and -4 is 3 more."""
    profile = read_folded(b"main;read 7\nmain;read -4\nmain -2\nmain;write 5\n", "less.folded")
    assert [measure.event for measure in profile.measures] == ["samples/before", "samples/after"]
    assert [sample.amounts for sample in profile.samples] == [(0, 3), (2, 0), (0, 5)]
    assert profile.notes == ("samples: negative values, a difference: read as samples/before and samples/after",)


def test_fractions_are_millionths_and_each_stack_is_one_sample():
    profile = read_folded(b"main;read 0.25\nmain;read 1.5\nmain 2\nmain;write 0.3333333\n", "parts.folded")
    assert [(measure.event, measure.unit) for measure in profile.measures] == [("weight", "millionths")]
    assert [sample.amounts for sample in profile.samples] == [(1_750_000,), (2_000_000,), (333_333,)]
    (total,) = totals(profile)
    assert (total.samples, total.value) == (3, 4_083_333)
    assert profile.notes == ("counts are fractions: read in millionths, each stack as one sample",)
    whole = read_folded(b"main 2.0\nmain;f 1\n", "whole.folded")
    assert ([sample.amounts for sample in whole.samples], whole.measures[0].event) == ([(2,), (1,)], "samples")


def test_a_name_in_quotes_may_end_in_numbers():
    profile = read_folded(b'main;"req 200" 10\nmain;"req 404 1" 3\n')
    assert [frame.function for frame in profile.frames] == ['"req 200"', "main", '"req 404 1"']
    assert [sample.amounts for sample in profile.samples] == [(10,), (3,)]
    assert profile.notes == ()


@pytest.mark.parametrize(("counts", "events"), [("{}", ["samples"]), ("{} 7", ["before", "after"])])
def test_a_name_that_ends_in_a_number_stays_one_if_most_lines_have_none_and_a_note_counts_such_lines(counts, events):
    text = "".join(f"{stack} {counts.format(5)}\n" for stack in ("main;GC Thread 1", "main", "main;f"))
    profile = read_folded(text.encode(), "one.folded")
    assert [measure.event for measure in profile.measures] == events
    assert profile.frames[0].function == "GC Thread 1"
    assert profile.notes[-1] == (
        "1 line has a function whose name ends in a number, as GC Thread 1; "
        "if that number is a count, give all lines as many"
    )


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        (
            "main;a 10 12\nmain;b 20",
            ["2: counts: should be 2, as on 1 of 2 lines (QUOTES), got 1: main;b 20"],
        ),
        (
            "main;a 1 2\nmain;b 20\nmain;c 3 4\nmain;d 5",
            [
                "2: counts: should be 2, as on 2 of 4 lines (QUOTES), got 1: main;b 20",
                "4: counts: should be 2, as on 2 of 4 lines (QUOTES), got 1: main;d 5",
            ],
        ),
        (
            "main 1\nmain;b 20\nmain;f 1 2 3",
            ["3: counts: should be 1, as on 2 of 3 lines (QUOTES), "
             "got 3: main;f 1 2 3"],
        ),
        (
            "main;f 1 2 3\nmain 4 5 6",
            ["1: counts: should be one, or two as of difffolded.pl, got 3: main;f 1 2 3",
             "2: counts: should be one, or two as of difffolded.pl, got 3: main 4 5 6"],
        ),
    ],
)  # fmt: skip
def test_unlike_numbers_of_counts_and_more_than_two_are_faults_of_their_lines(text, faults):
    with pytest.raises(FileError) as caught:
        read_folded(text.encode(), "a.folded")
    assert str(caught.value).splitlines() == [
        f"a.folded:{fault}".replace("QUOTES", "a name that ends in a number goes in quotes") for fault in faults
    ]


def test_a_second_count_beyond_64_bits_is_refused_too():
    with pytest.raises(FileError, match=r"^a\.folded:1: count: should be a number"):
        read_folded(f"main {LARGEST + 1} 3\n".encode(), "a.folded")


def test_every_faulty_line_is_named():
    with pytest.raises(FileError) as caught:
        read_folded(b"a\nb 1\nc\n", "a.folded")
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == ["a.folded:1", "a.folded:3"]
