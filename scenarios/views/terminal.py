"""What a terminal shows: sections as text, or one JSON value, on stdout; progress for those who watch."""

import json
import math
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from typing import TYPE_CHECKING, Protocol

from scenarios.views.conclusion import Conclusion
from scenarios.views.section import Code, Command, Figure, Mark, Place, Says, Section, Table, Verdict

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID
    from rich.text import Text

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done."""
SOON_S = 2.0
"""Work that ends before that time has no bar where nobody knows how much of it is left."""
_STYLES: Mapping[Mark, str] = {
    "": "",
    "good": "green",
    "bad": "red",
    "strong": "bold",
    "quiet": "dim",
    "grown": "bold",
    "shrunk": "bold",
}
LEAST_NAME = 24
"""Characters that a key keeps on a line; other columns give way first."""
_MOST_LINES = 3
"""A text that would take more lines than these beside other columns stands below."""
_SLACK = 4
"""Characters a line that are lost where a text is broken between words."""
_ROWS_AT_ONCE = 100
"""Rows of a table that are printed at once."""
_BREAKS = ":_/.,-"
"""After these a name without blanks may be broken."""


def console() -> "Console":
    """Return stdout as a console that leaves texts as they are."""
    from rich.console import Console

    return Console(highlight=False)


def show(section: Section, console: "Console") -> None:
    """Print a section; pictures are left out, and columns for which there is no room are named.

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
    """Return a name or a text on as many lines as it needs, broken between words or parts of a name where it can be.

    Examples
    --------
    >>> print(broken("upgrade_predicted:search", 20))
    upgrade_predicted:
    search
    """
    lines, rest = [], name
    while len(rest) > width:
        cut = max(rest.rfind("::", 2, width) + 2, rest.rfind(" ", 1, width + 1) + 1)
        if not 1 < cut <= width + 1:
            cut = max(rest.rfind(mark, 2, width) + 1 for mark in _BREAKS)
        cut = cut if 1 < cut <= width + 1 else width
        lines.append(rest[:cut].rstrip())
        rest = rest[cut:]
    return "\n".join([*lines, rest])


def _print(text: str, mark: Mark, console: "Console") -> None:
    console.print(_printable(text), style=_STYLES[mark] or None, markup=False, soft_wrap=True)


def _printable(text: str) -> str:
    """Return a text without control characters, which names in files may hold."""
    if text.isprintable():
        return text
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
    from rich.text import Text

    layout = _layout(table, console.width)
    if table.title:
        _print(table.title, "strong", console)
    if table.headings:
        heads = _heads(table)
        lines = _lines([(heads[i], "bold", table.numbers[i], layout.widths[i]) for i in layout.columns], layout.gap, -1)
        for line in lines:
            console.print(line, soft_wrap=True)
        console.print(Text("─" * layout.length()), soft_wrap=True)
    for begin in range(0, len(table.rows), _ROWS_AT_ONCE):
        lines = list[Text]()
        for row in table.rows[begin : begin + _ROWS_AT_ONCE]:
            cells = [(row[i].text, _STYLES[row[i].mark], table.numbers[i], layout.widths[i]) for i in layout.columns]
            lines += _lines(cells, layout.gap, 1)
        console.print(Text("\n").join(lines), soft_wrap=True)
    for i in layout.below:
        for text in _below(table, i):
            _print(text, "", console)
    if table.caption:
        _print(table.caption, "", console)
    dropped = [_heads(table)[i] or f"column {i + 1}" for i in layout.dropped]
    if dropped:
        _print(f"no room for {', '.join(dropped)}; --json or a wider terminal has them", "quiet", console)


def _lines(cells: Sequence[tuple[str, str, bool, int]], gap: int, first: int) -> "Iterator[Text]":
    """Yield the lines of one row.

    Parameters
    ----------
    cells : text, style, whether it is flush right, and width of each
    gap : blanks between cells
    first : 1 if texts begin on the row's first line, -1 if they end on its last one
    """
    from rich.text import Text

    parts = [broken(_printable(text), width).split("\n") for text, _, _, width in cells]
    height = max(map(len, parts))
    for at in range(height):
        line = Text()
        for (_, style, flush_right, width), part in zip(cells, parts, strict=True):
            index = at if first > 0 else at - height + len(part)
            text = part[index] if 0 <= index < len(part) else ""
            line.append(text.rjust(width) if flush_right else text.ljust(width), style or None)
            line.append(" " * gap)
        line.rstrip()
        yield line


def _below(table: Table, column: int) -> Iterator[str]:
    """Yield the texts of a column as lines that begin with the key of their row; rows of one text are together."""
    heading = _heads(table)[column]
    if heading:
        yield f"{heading}:"
    keys = dict[str, list[str]]()
    for row in table.rows:
        if row[column].text:
            first, *others = (cell.text for cell in row[: table.keys])
            keys.setdefault(row[column].text, []).append(f"{first} ({', '.join(others)})" if others else first)
    for text, names in keys.items():
        yield f"  {', '.join(dict.fromkeys(names))}: {text}"


@dataclass(frozen=True, slots=True)
class _Layout:
    """What of a table stands where: columns beside each other, texts below, what is left out; widths in characters."""

    columns: tuple[int, ...]
    below: tuple[int, ...]
    dropped: tuple[int, ...]
    widths: Mapping[int, int]
    gap: int

    def length(self) -> int:
        """Return the characters of the rule under the headings."""
        return sum(self.widths.values()) + self.gap * len(self.columns) - 1


def _heads(table: Table) -> list[str]:
    """Return the heading of each column; that of several stands above the first of them."""
    if not table.headings:
        return [""] * len(table.numbers)
    return [text for heading in table.headings for text in (heading.text, *[""] * (heading.span - 1))]


def _layout(table: Table, width: int) -> _Layout:
    """Return where a table's columns stand; where there is no room, in this order, until there is:

    headings take several lines, texts go below, and columns are left out, those to spare first, then from the last on.
    Columns of keys always stay.
    """
    columns = list(range(len(table.numbers)))
    cells = {i: max((len(line) for row in table.rows for line in row[i].text.split("\n")), default=0) for i in columns}
    heads = _heads(table)
    names = [i for i in columns if not table.numbers[i] and (i < table.keys or cells[i] > LEAST_NAME)]
    texts = [i for i in names if i >= table.keys]
    natural = {i: max(cells[i], len(heads[i])) for i in columns}
    folded = {i: max(map(len, heads[i].split()), default=0) for i in columns}
    folded = {i: max(cells[i], folded[i]) for i in columns}

    def least(sizes: Mapping[int, int]) -> dict[int, int]:
        """Return the characters that each column needs."""
        words = {i: -(-cells[i] // _MOST_LINES) + _SLACK if i in texts else LEAST_NAME for i in names}
        return {i: min(sizes[i], max(LEAST_NAME, words[i])) if i in names else sizes[i] for i in columns}

    def fits(sizes: Mapping[int, int], gap: int = 1) -> bool:
        """Return whether columns of these sizes have room with so many blanks between them."""
        return sum(least(sizes).values()) + gap * len(columns) - 1 <= width

    sizes = natural if fits(natural, 2) else folded
    below = list[int]()
    while texts and not fits(sizes):
        below.append(texts.pop())
        columns.remove(below[-1])
        names.remove(below[-1])
    others = [i for i in columns if i >= table.keys]
    leaving = [*(i for i in table.spare if i in others), *(i for i in reversed(others) if i not in table.spare)]
    dropped = list[int]()
    while leaving and not fits(sizes):
        dropped.append(leaving.pop(0))
        columns.remove(dropped[-1])
    sizes = natural if fits(natural, 2) else sizes
    whole, needed = (sum(widths[i] for i in columns) for widths in (sizes, least(sizes)))
    gaps = ((whole, 3), (whole, 2), (whole, 1), (needed, 2))
    gap = next((gap for taken, gap in gaps if taken + gap * len(columns) - 1 <= width), 1)
    free = width - (gap * len(columns) - 1) - sum(sizes[i] for i in columns if i not in names)
    widths = dict(sizes)
    for rank, i in enumerate(left := sorted((i for i in names if i in columns), key=lambda i: sizes[i])):
        widths[i] = max(1, min(sizes[i], free // (len(left) - rank)))
        free -= widths[i]
    return _Layout(tuple(columns), tuple(sorted(below)), tuple(sorted(dropped)), {i: widths[i] for i in columns}, gap)


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
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress(quiet: bool = False, after_s: float = 0.0) -> Generator[Progress]:
    """Yield a function to be called with what is being done and the share done; bars show it meanwhile.

    They are drawn in a notebook, or on stderr if that is a terminal, and taken away at the end.

    Parameters
    ----------
    quiet : whether to draw nothing
    after_s : work that ends before that time has no bar

    Examples
    --------
    >>> with progress(quiet=True) as tell:
    ...     tell("simulating", 0.5)
    """
    bars = None if quiet else _bars()
    if bars is None:
        yield _say_nothing
        return
    timer = Timer(after_s, bars.start) if after_s else None
    if timer is None:
        bars.start()
    else:
        timer.daemon = True
        timer.start()
    try:
        yield bars.tell
    finally:
        if timer is not None:
            timer.cancel()
            timer.join()
        bars.stop()


@contextmanager
def working(what: str, *, quiet: bool = False) -> Generator[None]:
    """Say what is being done while it is done, if that takes long: nobody knows how much of it is left.

    Parameters
    ----------
    what : is being done
    quiet : whether to draw nothing

    Examples
    --------
    >>> with working("reading and replaying", quiet=True):
    ...     pass
    """
    with progress(quiet, SOON_S) as tell:
        tell(what, 0.0)
        yield


class _Bars(Protocol):
    """Bars that may be started by another thread than the one that tells the shares."""

    def start(self) -> None: ...
    def tell(self, what: str, share: float) -> None: ...
    def stop(self) -> None: ...


def _bars() -> _Bars | None:
    """Return bars for those who watch, if anybody does."""
    if "IPython" in sys.modules:
        from scenarios.views.notebook import NotebookBars, in_notebook

        if in_notebook():
            return NotebookBars()
    return _TerminalBars() if sys.stderr.isatty() else None


class _TerminalBars:
    """Bars on stderr, which end without a trace."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bars
        from rich.progress import RenderableColumn

        columns = *Bars.get_default_columns(), RenderableColumn(_Compiling())
        self._drawn = Bars(*columns, console=Console(stderr=True), transient=True)
        self._tasks: dict[str, TaskID] = {}

    def start(self) -> None:
        self._drawn.start()

    def tell(self, what: str, share: float) -> None:
        """Set the share that is done; a bar of 0 only says that work is going on."""
        if what not in self._tasks:
            self._tasks[what] = self._drawn.add_task(what, total=None)
        self._drawn.update(self._tasks[what], completed=share, total=1.0 if share else None)

    def stop(self) -> None:
        if self._drawn.live.is_started:
            self._drawn.stop()


class _Compiling:
    """What is said beside bars while machine code is made, which takes long the first time that a question is asked."""

    def __rich__(self) -> str:
        module = sys.modules.get("models.code.compiled")
        return "compiling, this once" if module is not None and module.compiling() else ""


def _say_nothing(_what: str, _share: float) -> None:
    """Be the progress of a command that nobody watches."""
