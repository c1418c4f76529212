"""Sections on a terminal: everything that a section says, in order, in the room that there is."""

from io import StringIO

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from scenarios.views.section import Cell, Code, Command, Figure, Place, Says, Section, Verdict, table
from scenarios.views.terminal import broken, show


def printed(section, width=80):
    console = Console(width=width, file=StringIO(), highlight=False)
    show(section, console)
    return console.file.getvalue()


def test_blocks_are_printed_in_order_and_pictures_are_left_out():
    section = Section(
        "Day",
        (
            Says("first"),
            table(("job", "CPU"), [("search", "41%")], title="by job", caption="of all"),
            Figure("data:,", "a picture"),
            Says("second", "bad"),
            Verdict("WSMeter", "+1%", holds=False),
            Verdict("Law", "12%", holds=True, undecided="for one service"),
            Place("figure: day.png"),
            Command("wsc run day"),
            Code("name: day"),
        ),
    )
    text = printed(section)
    words = ["Day", "first", "by job", "search", "of all", "second", "WSMeter: +1%  does not hold"]
    words += ["Law: 12%  holds for one service", "figure: day.png", "wsc run day", "name: day"]
    places = [text.index(word) for word in words]
    assert places == sorted(places)
    assert "picture" not in text


def test_texts_are_printed_as_they_are():
    section = Section("", (Says("[red]a[/red]\x1b[31m"), table(("name",), [("[bold]b[/bold]",)])))
    text = printed(section)
    assert "[red]a[/red]\ufffd[31m" in text
    assert "[bold]b[/bold]" in text


def test_numbers_stand_flush_right_and_words_flush_left():
    lines = printed(Section("", (table(("job", "CPU"), [("a", "1%"), ("bb", "100%")]),))).splitlines()
    assert lines[2].split() == ["a", "1%"]
    assert lines[2].index("1%") + 2 == lines[3].index("100%") + 4
    assert lines[2].index("a") == lines[3].index("bb")


def test_of_very_many_rows_every_one_is_printed_once():
    rows = [(f"job {number}", "1%") for number in range(1000, 1253)]
    lines = printed(Section("", (table(("job", "CPU"), rows),))).splitlines()
    assert [tuple(line.strip().rsplit(maxsplit=1)) for line in lines[-len(rows) :]] == rows
    assert len(lines) == len(rows) + 2


def test_an_empty_table_says_nothing():
    assert printed(Section("", (table(("job", "CPU"), [], title="by job"),))) == ""


def test_columns_for_which_there_is_no_room_are_named():
    rows = [("a" * 30, *("123456789" for _ in range(6)))]
    text = printed(Section("", (table(("function", "b", "c", "d", "e", "f", "g"), rows),)), width=60)
    assert "no room for e, f, g; --json or a wider terminal has them" in text
    assert all(len(line) <= 60 for line in text.splitlines())


WORDS = st.text("abcdefgh_", min_size=1, max_size=12)
TEXTS = st.lists(WORDS, min_size=1, max_size=40).map(" ".join)


@st.composite
def tables(draw):
    keys, words, numbers = draw(st.integers(1, 2)), draw(st.integers(0, 2)), draw(st.integers(0, 9))
    headings = [f"h{i} {draw(WORDS)}" for i in range(keys + words + numbers)]
    rows = [
        (
            *draw(st.lists(st.text("abcdefgh_", min_size=1, max_size=50), min_size=keys, max_size=keys)),
            *draw(st.lists(TEXTS, min_size=words, max_size=words)),
            *(f"{value:.4g}" for value in draw(st.lists(st.floats(0, 1e9), min_size=numbers, max_size=numbers))),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return table(headings, rows, words=keys + words, keys=keys, spare=headings[-1:] if numbers else ())


def in_order(part, text):
    """Whether the letters of a part are in a text in their order, whatever stands between them."""
    rest = iter("".join(text.split()))
    return all(letter in rest for letter in "".join(part.split()))


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from([60, 80, 100, 120]))
def test_a_table_keeps_its_keys_and_leaves_nothing_out_without_naming_it(shown, width):
    text = printed(Section("", (shown,)), width)
    body, _, left_out = text.partition("no room for ")
    for i, heading in enumerate(shown.headings):
        if i < shown.keys or heading.text not in left_out:
            assert all(in_order(row[i].text, body) for row in shown.rows)
            assert in_order(heading.text, body) or not shown.numbers[i]
    assert all(len(line) <= width for line in body.splitlines() if ":" not in line)
    assert "…" not in text


def test_a_text_without_room_stands_below_after_the_key_of_its_row():
    rows = [
        (name, "1" * 20, "2" * 20, why) for name, why in (("a", "long " * 30), ("b", "long " * 30), ("c", "so " * 30))
    ]
    shown = table(("design", "one", "two", "why"), rows, numbers=(False, True, True, False))
    lines = printed(Section("", (shown,))).splitlines()
    assert lines[0].split() == ["design", "one", "two"]
    assert [line[:12] for line in lines[-3:]] == ["why:", "  a, b: long", "  c: so so s"]


def test_headings_take_several_lines_before_a_column_is_left_out():
    heads = ("estimator", *(f"coverage of corner {name}" for name in "abcdef"))
    lines = printed(Section("", (table(heads, [("adjusted", *["95.0%"] * 6)]),))).splitlines()
    assert lines[0].split() == ["coverage"] * 6
    assert lines[2].split()[0] == "estimator"
    assert not any("no room" in line for line in lines)


def test_columns_give_way_in_the_order_that_the_table_names():
    heads = ("name", *"abcdef")
    shown = table(heads, [("n" * 24, *["123456789"] * 6)], spare=("c", "a"))
    assert "no room for a, c, f; --json" in printed(Section("", (shown,)), 60)


def test_marks_are_styles():
    console = Console(width=80, force_terminal=True, color_system="standard", file=StringIO())
    show(Section("", (table(("check",), [(Cell("no", "bad"),), (Cell("yes", "good"),)]),)), console)
    text = console.file.getvalue()
    assert "\x1b[31mno" in text
    assert "\x1b[32myes" in text


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "Zs"]), max_size=80), st.integers(1, 30))
def test_a_broken_name_keeps_its_letters_and_fits(name, width):
    lines = broken(name, width).split("\n")
    assert "".join(lines).replace(" ", "") == name.replace(" ", "")
    assert all(len(line) <= width for line in lines)
