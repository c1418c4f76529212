"""Sections on a terminal: everything that a section says, in order, in the room that there is."""

from io import StringIO

from hypothesis import given
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


def test_an_empty_table_says_nothing():
    assert printed(Section("", (table(("job", "CPU"), [], title="by job"),))) == ""


def test_columns_for_which_there_is_no_room_are_named():
    rows = [("a" * 30, *("123456789" for _ in range(6)))]
    text = printed(Section("", (table(("function", "b", "c", "d", "e", "f", "g"), rows),)), width=60)
    assert "no room for e, f, g; --json has all" in text
    assert all(len(line) <= 60 for line in text.splitlines())


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
