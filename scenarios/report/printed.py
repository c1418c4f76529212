"""What a command prints, as sentences and tables of a page: the same numbers in the same form, worked out once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rich import table as rich_table
from rich.console import Console
from rich.text import Text

from scenarios.views.section import Cell, Heading, Table

_T = TypeVar("_T")
_LEFT_OUT = ("tables and figures:", "pieces and pictures:", "worlds:", "figure:")
"""How lines begin that say where files are; a report says so itself."""
_BAD = "red"
_DASH = "–"


@dataclass(frozen=True, slots=True)
class Printed:
    """Sentences and tables, each in the order in which they were printed; tables that say nothing are left out."""

    says: tuple[str, ...]
    tables: tuple[Table, ...]


def printed(payload: _T, show: Callable[[_T, Console], None]) -> Printed:
    """Return what a command's `show` prints of a payload.

    Parameters
    ----------
    payload : what the command prints as JSON
    show : prints it as text

    Examples
    --------
    >>> def show(payload: float, console: Console) -> None:
    ...     table = rich_table.Table("size", "change", "")
    ...     table.add_row("25", f"{payload:+.1%}", "[red]no[/red]")
    ...     console.print("  one [bold]test[/bold] cluster", table)
    >>> made = printed(0.07, show)
    >>> made.says, tuple(cell.text for cell in made.tables[0].rows[0][1:])
    (('One test cluster',), ('+7.0%', 'no'))
    """
    kept = _Keeper()
    show(payload, kept)
    whose = f"{payload['scenario']} (seed" if isinstance(payload, Mapping) and "scenario" in payload else ""
    says = (_sentence(_without(whose, line)) for line in kept.lines if not line.startswith(_LEFT_OUT))
    return Printed(tuple(line for line in says if line), tuple(kept.tables))


def _sentence(line: str) -> str:
    """Return a line with a capital at its beginning, unless that is a name."""
    first = line.partition(" ")[0].rstrip(":,;")
    return line[:1].upper() + line[1:] if first.isalpha() else line


def _without(whose: str, line: str) -> str:
    """Return a line without the scenario's name and seed that it begins with."""
    return line.partition("): ")[2] if whose and line.startswith(whose) else line


class _Keeper(Console):
    """A console that keeps what is printed on it."""

    def __init__(self) -> None:
        super().__init__(quiet=True, width=200)
        self.lines = list[str]()
        self.tables = list[Table]()

    def print(self, *objects: object, markup: bool | None = None, **_how: object) -> None:
        """Keep what would be printed."""
        for each in objects:
            if isinstance(each, rich_table.Table):
                self.tables += [made for made in (_table(each),) if _says_something(made)]
            else:
                text = str(each) if markup is False else _text(each).plain
                self.lines.append(" ".join(line.strip() for line in text.splitlines()))


def _table(made: rich_table.Table) -> Table:
    """Return a table of the terminal as one of a page; columns without any text are left out."""
    cells = [[_cell(cell) for cell in column.cells] for column in made.columns]
    kept = [i for i, column in enumerate(cells) if any(cell.text for cell in column)]
    columns = [made.columns[i] for i in kept]
    numbers = tuple(column.justify == "right" or _numeric(cells[i]) for i, column in zip(kept, columns, strict=True))
    rows = tuple(zip(*(cells[i] for i in kept), strict=True))
    headings = tuple(_headings(columns, numbers)) if made.show_header else ()
    title, caption = (_flat(_text(each).plain) if each else "" for each in (made.title, made.caption))
    return Table(headings, numbers, rows, title, caption)


def _says_something(made: Table) -> bool:
    """Return whether a table has rows, and not only dashes beside counts of nothing where numbers should be."""
    cells = [cell.text for row in made.rows for cell, number in zip(row, made.numbers, strict=True) if number]
    firsts = {text.partition(" ")[0] for text in cells}
    return bool(made.rows) and not (_DASH in firsts <= {_DASH, "", "0"})


def _headings(columns: Sequence[rich_table.Column], numbers: Sequence[bool]) -> Iterator[Heading]:
    """Yield what stands above the columns; a column of numbers without a name belongs to the one before it."""
    names = [_flat(_text(column.header).plain) for column in columns]
    at = 0
    while at < len(names):
        span = 1
        while names[at] and at + span < len(names) and not names[at + span] and numbers[at + span]:
            span += 1
        yield Heading(names[at], numbers[at], span)
        at += span


def _numeric(cells: Sequence[Cell]) -> bool:
    """Return whether all that a column says begins like a number."""
    texts = [cell.text for cell in cells if cell.text not in {"", _DASH}]
    return bool(texts) and all(text.lstrip("+-−±≤≥~<> ")[:1].isdigit() for text in texts)


def _cell(renderable: object) -> Cell:
    text = _text(renderable)
    return Cell(text.plain.strip(), "bad" if any(_BAD in str(span.style) for span in text.spans) else "")


def _text(renderable: object) -> Text:
    return renderable if isinstance(renderable, Text) else Text.from_markup(str(renderable))


def _flat(text: str) -> str:
    """Return a heading that was broken for a narrow terminal in one line."""
    return " ".join(text.replace("-\n", "").split())
