"""What commands print becomes sentences and tables without a number lost."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenarios.report.printed import printed
from scenarios.views.section import Cell, Heading


def show(payload, console: Console):
    console.print(f"{payload['scenario']} (seed 1): 3 machines", "  visits: 2 [ok]", sep="\n", markup=False)
    table = Table("", "", title="a\ntitle", caption="below")
    table.add_column("cycles", justify="right")
    table.add_column("", justify="right")
    table.add_column("long\nword", justify="left")
    table.add_column("cali-\nbrated")
    table.add_column("never", justify="right")
    table.add_row("kernel", "new", "1.0%", "0.9–1.1", "[red]no[/red]", Text("+3.1%"), "")
    table.add_row("kernel", "[b]old[/b]", "", "", "yes", "-2.0%", "")
    console.print(table)
    console.print(Table("empty"))
    console.print("  tables and figures: runs/x")


def test_lines_and_tables():
    made = printed({"scenario": "day"}, show)
    assert made.says == ("3 machines", "Visits: 2 [ok]")
    (table,) = made.tables
    assert table.headings == (
        *(Heading(""), Heading(""), Heading("cycles", True, 2)),
        *(Heading("long word"), Heading("calibrated", True)),
    )
    assert table.numbers == (False, False, True, True, False, True)
    assert table.rows[0][4] == Cell("no", "bad")
    assert table.rows[1][1] == Cell("old")
    assert (table.title, table.caption) == ("a title", "below")
    assert [cell.text for cell in table.rows[0]] == ["kernel", "new", "1.0%", "0.9–1.1", "no", "+3.1%"]


def test_a_table_of_dashes_is_left_out():
    def show(payload, console):
        table = Table("design", title="needed")
        for heading in ("all corners", "corners", "worst corner"):
            table.add_column(heading, justify="right")
        table.add_row("day", "–", "0", "– base")
        table.add_row("week", *payload)
        console.print(table)

    assert printed(("–", "0", "–"), show).tables == ()
    assert len(printed(("1.25", "1", "–"), show).tables) == 1
    assert len(printed(("–", "2", "–"), show).tables) == 1


def test_what_looks_like_markup_in_plain_lines_stays():
    made = printed(1, lambda _payload, console: console.print("note: a [red]b[/red]\n  and c", markup=False))
    assert made.says == ("Note: a [red]b[/red] and c",)
