"""The text of `perf script`, in the shapes that its options give."""

import pytest

from analysis.profiling.formats.foreign import Measure, Origin
from analysis.profiling.formats.perf_script import read_perf_script
from analysis.tables.faults import FileError

HEADER = """\
# ========
# hostname : box
# os release : 6.1
# cpudesc : Some CPU @ 2 GHz
# event : name = cycles, , id = { 1 }, size = 112, { sample_period, sample_freq } = 1000, sample_type = IP
# ========
#
"""


def read(text):
    return read_perf_script(text.encode(), "perf.txt")


def paths(profile):
    return [[profile.frames[at].function for at in sample.stack] for sample in profile.samples]


@pytest.mark.parametrize(
    ("head", "origin", "measure"),
    [
        ("sh 7 [001] 5.25:     cycles: ", Origin("sh", "7"), Measure("cycles", "events", 1, "cycles")),
        ("sh     7/8   [001] 5.25:  10 cycles:ppp: ", Origin("sh", "7"), Measure("cycles", "events", 10, "cycles:ppp")),
        ("Web Content 12 5.25: 10 cpu/cycles/:", Origin("Web Content", "12"), Measure("cpu/cycles/", "events", 10)),
        ("a 1 b 12 [003] 5.25: 10 branch-misses:u:", Origin("a 1 b", "12"), Measure("mispredictions", "events", 10)),
        ("sh 7 [001] d..2. 5.25: 10 LLC-load-misses:", Origin("sh", "7"), Measure("llc_misses", "events", 10)),
        ("sh 7 cycles:", Origin("sh", "7"), Measure("cycles", "events")),
        (":-1 -1 [000] 5.5: 3 cycles:", Origin(":-1", "-1"), Measure("cycles", "events", 3)),
        ("sh 5.25: 10 cycles:", Origin("sh", ""), Measure("cycles", "events", 10)),
        ("sh 7 [1] 5.25: syscalls:sys_enter_read: fd: 0x3, ", Origin("sh", "7"), Measure("syscalls:sys_enter_read")),
    ],
)
def test_heads_of_samples_are_understood(head, origin, measure):
    profile = read(f"{head}\n\t 4a1 f+0x1 (/bin/a)\n\t 4b2 main (/bin/a)\n\n")
    assert profile.origins == (origin,)
    assert (profile.measures[0].event, profile.measures[0].period) == (measure.event, measure.period)
    assert profile.measures[0].native == measure.native or not measure.native
    assert paths(profile) == [["f", "main"]]
    assert profile.samples[0].amounts == (measure.period,)
    assert profile.samples[0].chain


def test_two_events_are_two_measures_and_a_stack_of_both_is_one_sample():
    text = (
        "sh 7 5.1: 10 cycles:\n\t1 f (a)\n\nsh 7 5.2: 20 instructions:\n\t1 f (a)\n\nsh 7 5.3: 10 cycles:\n\t1 f (a)\n"
    )
    profile = read(text)
    assert [(measure.event, measure.period) for measure in profile.measures] == [("cycles", 10), ("instructions", 20)]
    assert [sample.amounts for sample in profile.samples] == [(20, 20)]


def test_events_that_differ_in_their_modifier_alone_keep_their_names():
    profile = read("sh 7 5.1: 10 cycles:u:\n\t1 f (a)\n\nsh 7 5.2: 20 cycles:k:\n\t1 f (a)\n")
    assert [measure.event for measure in profile.measures] == ["cycles:u", "cycles:k"]


def test_the_header_says_the_period_and_the_machine():
    profile = read(HEADER + "sh 7 5.1: cycles:\n\t1 f (a)\n")
    assert profile.measures == (Measure("cycles", "events", 1000, "cycles"),)
    assert profile.total("cycles") == 1000
    assert profile.origins == (Origin("sh", "7", "box", "Some CPU @ 2 GHz", "", "6.1"),)


def test_a_frequency_in_the_header_is_no_period():
    profile = read(HEADER.replace("sample_type = IP", "sample_type = IP, freq = 1") + "sh 7 5.1: cycles:\n\t1 f (a)\n")
    assert profile.measures[0].period == 1


def test_periods_that_vary_are_summed_and_said():
    profile = read("sh 7 5.1: 10 cycles:\n\t1 f (a)\n\nsh 7 5.2: 25 cycles:\n\t1 f (a)\n")
    assert profile.total("cycles") == 35
    assert profile.measures[0].period == 1
    assert "vary" in profile.notes[0]


@pytest.mark.parametrize(
    ("frame", "function", "image"),
    [
        (
            "7f00 std::f(int, char const*)+0x12 (/usr/lib/a b.so (deleted))",
            "std::f(int, char const*)",
            "/usr/lib/a b.so",
        ),
        ("ffffffff8100 [unknown] ([kernel.kallsyms])", "[unknown]", "[kernel.kallsyms]"),
        ("4a1 main", "main", ""),
        ("4a1", "[unknown]", ""),
        ("4a1 [unknown] (//anon)", "[unknown]", "//anon"),
        ("4a1 deadbeef 1: (/bin/a)", "deadbeef 1:", "/bin/a"),
    ],
)
def test_frames_are_understood(frame, function, image):
    profile = read(f"sh 7 5.1: 10 cycles:\n\t    {frame}\n")
    assert [(found.function, found.image) for found in profile.frames] == [(function, image)]


def test_a_frame_on_the_line_of_its_sample_has_no_callers():
    profile = read("sh 7 [001] 5.1: 10 cycles:  ffff81 native_write_msr+0x4 ([kernel.kallsyms])\n")
    assert paths(profile) == [["native_write_msr"]]
    assert not profile.samples[0].chain


def test_an_inlined_function_is_in_the_image_around_it():
    profile = read("sh 7 5.1: 10 cycles:\n\t4a1 small (inlined)\n\t4a1 large (/bin/a)\n")
    assert [(frame.function, frame.image) for frame in profile.frames] == [("small", "/bin/a"), ("large", "/bin/a")]


def test_source_lines_below_a_frame_belong_to_it():
    profile = read("sh 7 5.1: 10 cycles:\n\t4a1 f (/bin/a)\n  f.c:12\n\t4b1 main (/bin/a)\n  m.c:3\n")
    assert [(frame.file, frame.line) for frame in profile.frames] == [("f.c", 12), ("m.c", 3)]


def test_a_sample_without_frames_is_kept():
    profile = read("sh 7 5.1: 10 cycles:\n\nsh 7 5.2: 10 cycles:\n\t4a1 f (/bin/a)\n")
    assert profile.total("cycles") == 20
    assert paths(profile) == [["[unknown]"], ["f"]]


def test_records_of_other_kinds_are_skipped():
    profile = read("sh 7 5.0: PERF_RECORD_COMM: sh:7\nsh 7 5.1: 10 cycles:\n\t4a1 f (/bin/a)\n")
    assert profile.total("cycles") == 10


def test_every_line_that_is_none_of_these_is_named():
    with pytest.raises(FileError) as caught:
        read("\t4a1 f (/bin/a)\nsh 7 5.1: 10 cycles:\n\t4a1 f (/bin/a)\n   ???\n\nnothing\n")
    said = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in said] == ["perf.txt:1", "perf.txt:4", "perf.txt:6"]
    assert "should follow the head of a sample" in said[0]


def test_samples_that_are_half_broken_are_told_by_their_lines():
    """A head without its end was taken for one without an event: reading ended there, with advice that did not help."""
    whole = "sh 7 5.1: 10 cycles:\n\t4a1 f (/bin/a)\n\t4b1 main (/bin/a)\n\n"
    head = whole.replace("cycles:", "cyc")
    frame = whole.replace("4a1", "zz1")
    with pytest.raises(FileError) as caught:
        read(whole + head + whole + "??" + head[2:] + frame + whole.removesuffix("in/a)\n\n"))
    told = [line.split(": ")[:3] for line in str(caught.value).splitlines()]
    assert [(place, field) for place, field, _ in told] == [(f"perf.txt:{at}", "line") for at in (5, 13, 18, 23)]
    assert told[-1][2] == "should not end within a frame"
    for end in ("f+0x", "f+0"):
        with pytest.raises(FileError, match=r"perf\.txt:2: line: should not end within a frame"):
            read(f"sh 7 5.1: 10 cycles:\n\t4a1 {end}")


@pytest.mark.parametrize("end", ["4", "4b1", "4b1 mai", "4b1 main+0x", "4b1 main+0x1 (/bi"])
def test_the_sample_within_which_a_file_is_cut_off_is_left_out(end):
    """A frame of an address alone, or with a part of its name, was taken for a whole one."""
    whole = "sh 7 5.1: 10 cycles:\n\t4a1 f (/bin/a)\n\t4b1 main (/bin/a)\n\n"
    profile = read(whole + whole.replace("\t4b1 main (/bin/a)\n\n", f"\t{end}"))
    assert [sample.amounts for sample in profile.samples] == [(10,)]
    assert profile.notes == ("line 7: the file is cut off there, and the sample of that line is left out",)


def test_a_last_line_without_an_end_is_whole_where_frames_have_no_image():
    assert len(read("sh 7 5.1: 10 cycles:\n\t4a1 f\n\t4b1 main").frames) == 2
    assert len(read("sh 7 5.1: 10 cycles:\n\t4a1 f (/bin/a)\n\t4b1 main (/bin/a)").frames) == 2


def test_a_period_beyond_64_bits_is_refused():
    with pytest.raises(FileError, match="period: should be at most"):
        read(f"sh 7 5.1: {2**63} cycles:\n\t4a1 f (/bin/a)\n")


def test_a_stack_without_end_is_refused():
    with pytest.raises(FileError, match="at most 16384 frames deep"):
        read("sh 7 5.1: 10 cycles:\n" + "\t4a1 f (/bin/a)\n" * 16385)


def test_no_sample_is_refused():
    with pytest.raises(FileError, match="should be at least one, got none"):
        read(HEADER)


@pytest.mark.parametrize(
    "head",
    [
        "python 7437 5207.755608: ",
        "python 7437/7438 [001] 5207.755608: ",
        "python 7437 5207.755608:   10101010 ",
        "python 7437 5207.755608:  4a1 f (/bin/a)",
        "sh 7 12: ",
    ],
)
def test_a_time_in_the_place_of_the_event_is_refused_with_the_field_that_is_missing(head):
    with pytest.raises(FileError) as caught:
        read(f"{head}\n\t 4a1 f (/bin/a)\n\n" * 3)
    place = "perf.txt:1: event: should be a name: add `event` to the fields of `perf script -F`, got "
    assert str(caught.value) == place + head.split(":")[0].split()[-1]


def test_an_event_that_begins_with_a_bracket_is_refused():
    with pytest.raises(FileError, match=r"^perf\.txt:1: event: should be a name: .*, got \[3$"):
        read("sh 7: 2 [3: 4] @ 0x1\n")


def test_fifty_events_are_read_and_one_more_is_refused():
    lines = [f"sh 7 5.{at}: event{at}:\n\t1 f (a)\n\n" for at in range(51)]
    assert len(read("".join(lines[:50])).measures) == 50
    with pytest.raises(FileError, match=r"^perf\.txt:151: event: should be one of at most 50, got event50$"):
        read("".join(lines))
