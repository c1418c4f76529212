"""What a terminal shows: sections as text, or one JSON value, on stdout; progress on stderr for those who watch."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scenarios.views.conclusion import Conclusion
from scenarios.views.section import Code, Command, Figure, Mark, Place, Says, Section, Table, Verdict

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done."""
_STYLES: Mapping[Mark, str] = {
    "": "",
    "good": "green",
    "bad": "red",
    "strong": "bold",
    "quiet": "dim",
    "grown": "bold",
    "shrunk": "bold",
}
_GAP = 2
LEAST_NAME = 24
"""Characters that a name keeps on a line; columns of numbers give way first."""


def console() -> "Console":
    """Return stdout as a console that leaves texts as they are."""
    from rich.console import Console

    return Console(highlight=False)


def show(section: Section, console: "Console") -> None:
    """Print a section; pictures are left out, and columns of numbers for which there is no room are named.

    Parameters
    ----------
    section : what is shown; its title stands above in bold letters unless it is empty
    console : to print on

    Examples
    --------
    >>> from rich.console import Console
    >>> from scenarios.views.section import table
    >>> day = Section("", (Says("A day."), table(("hour", "CPU used"), [("0", "41%")])))
    >>> show(day, Console(width=40))  # doctest: +NORMALIZE_WHITESPACE
    A day.
    hour CPU used
    ─────────────────
    0 41%
    """
    if section.title:
        _print(section.title, "strong", console)
    for block in section.blocks:
        match block:
            case Says(text, mark):
                _print(text, mark, console)
            case Place(text) | Command(text) | Code(text):
                _print(text, "", console)
            case Verdict():
                _verdict(block, console)
            case Table():
                _table(block, console)
            case Figure():
                pass


def broken(name: str, width: int) -> str:
    """Return a name on as many lines as it needs, broken after ``::``, or between words, where it can be."""
    lines, rest = [], name
    while len(rest) > width:
        cut = max(rest.rfind("::", 0, width) + 2, rest.rfind(" ", 0, width) + 1)
        cut = cut if 2 < cut <= width else width
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:]
    return "\n".join([*lines, rest])


def _print(text: str, mark: Mark, console: "Console") -> None:
    console.print(_printable(text), style=_STYLES[mark] or None, markup=False, soft_wrap=True)


def _printable(text: str) -> str:
    """Return a text without control characters, which names in files may hold."""
    return "".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text)


def _verdict(verdict: Verdict, console: "Console") -> None:
    from rich.text import Text

    holds = f"holds {verdict.undecided}".rstrip()
    word, style = {True: (holds, ""), False: ("does not hold", "red"), None: ("", "")}[verdict.holds]
    line = Text.assemble((verdict.lens, "bold"), f": {verdict.says}", (f"  {word}" if word else "", style))
    console.print(line, soft_wrap=True)


def _table(table: Table, console: "Console") -> None:
    if not table.rows:
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as Drawn
    from rich.text import Text

    columns = _fitting(table, console.width)
    gap = _gap(table, columns, console.width)
    widths = _widths(table, columns, console.width, gap)
    heads = _heads(table)
    drawn = Drawn(box=SIMPLE_HEAD, padding=(0, gap, 0, 0), show_edge=False, show_header=bool(table.headings))
    for i in columns:
        drawn.add_column(
            Text(heads[i]), justify="right" if table.numbers[i] else "left", no_wrap=table.numbers[i], overflow="fold"
        )
    for row in table.rows:
        drawn.add_row(*(Text(broken(_printable(row[i].text), widths[i]), style=_STYLES[row[i].mark]) for i in columns))
    if table.title:
        _print(table.title, "strong", console)
    console.print(drawn)
    if table.caption:
        _print(table.caption, "", console)
    dropped = [heads[i] for i in range(len(heads)) if i not in columns]
    if dropped:
        _print(f"no room for {', '.join(dropped)}; --json has all", "quiet", console)


def _heads(table: Table) -> list[str]:
    """Return the heading of each column; that of several stands above the first of them."""
    if not table.headings:
        return [""] * len(table.numbers)
    return [text for heading in table.headings for text in (heading.text, *[""] * (heading.span - 1))]


def _longest(table: Table, column: int) -> int:
    texts = [row[column].text for row in table.rows]
    return max(len(line) for text in (_heads(table)[column], *texts) for line in (text.splitlines() or [""]))


def _fitting(table: Table, width: int) -> list[int]:
    """Return the columns for which there is room: numbers give way, those to spare first, then from the last on."""
    columns = list(range(len(table.numbers)))
    spare = sorted([i for i in columns if table.numbers[i]][1:], key=lambda i: i in table.spare)
    if _least(table, columns) + len(columns) <= width:
        return columns
    while spare and _least(table, columns) + _GAP * len(columns) > width:
        columns.remove(spare.pop())
    return columns


def _gap(table: Table, columns: list[int], width: int) -> int:
    """Return the blanks after each column, to which the table's frame adds one: fewer where there is no room."""
    least = _least(table, columns)
    return next((gap for gap in range(_GAP, -1, -1) if least + (gap + 1) * len(columns) <= width + 1), _GAP)


def _least(table: Table, columns: list[int]) -> int:
    """Return the characters that columns need at least, without what is between them."""
    longest = {i: _longest(table, i) for i in columns}
    heads = _heads(table)
    return sum(longest[i] if table.numbers[i] else min(longest[i], max(LEAST_NAME, len(heads[i]))) for i in columns)


def _widths(table: Table, columns: list[int], width: int, gap: int) -> dict[int, int]:
    """Return the characters of each column: names share what numbers leave."""
    widths = {i: _longest(table, i) for i in columns}
    free = width - sum(max(gap, 1) + (size if table.numbers[i] else 0) for i, size in widths.items())
    names = sorted((i for i in columns if not table.numbers[i]), key=lambda i: widths[i])
    for rank, i in enumerate(names):
        widths[i] = max(1, min(widths[i], free // (len(names) - rank)))
        free -= widths[i]
    return widths


def dumps(value: object) -> str:
    """Return a value as JSON; NaN and infinities become null, numbers of numpy plain numbers.

    Examples
    --------
    >>> print(dumps({"change": 0.07, "low": float("nan"), "sizes": (25, 50)}))
    {
     "change": 0.07,
     "low": null,
     "sizes": [
      25,
      50
     ]
    }
    """
    return json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def line(value: object) -> str:
    """Return a value as one line of JSON, otherwise as `dumps` does.

    Examples
    --------
    >>> line({"kind": "alert", "ratio": float("inf")})
    '{"kind": "alert", "ratio": null}'
    """
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: object) -> object:
    if isinstance(value, Conclusion):
        return _plain(value.payload())
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress(quiet: bool = False) -> Iterator[Progress]:
    """Yield a function to be called with what is being done and the share done; it draws a bar on stderr.

    It draws nothing when `quiet`, or when stderr is no terminal.

    Examples
    --------
    >>> with progress(quiet=True) as tell:
    ...     tell("simulating", 0.5)
    """
    if quiet or not sys.stderr.isatty():
        yield _say_nothing
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def tell(what: str, share: float) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=1.0)
            bars.update(tasks[what], completed=share)

        yield tell


def _say_nothing(_what: str, _share: float) -> None:
    """Be the progress of a command that nobody watches."""
