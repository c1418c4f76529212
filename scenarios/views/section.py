"""What people are shown, whatever shows it: sections of sentences, tables, figures, commands and verdicts, in order.

A conclusion says itself once, as a `Section`; `text` writes it to a terminal, `html` to a page or a notebook.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from scenarios.views.numbers import number

if TYPE_CHECKING:
    from analysis.audit.findings import Finding, Severity

Mark: TypeAlias = Literal["", "good", "bad", "strong", "quiet", "grown", "shrunk"]
"""How a text stands out: good and bad news, what matters most, what can be passed over, what changed beyond chance."""
_MARKS: "Mapping[Severity, Mark]" = {"error": "bad", "warning": "strong", "note": "quiet"}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Says:
    """A sentence, or a line, by itself."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where files are, said to whoever ran the command; what is handed on, such as a report, leaves it out."""

    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: what it says, how it is marked; in a page also more of it, where it leads, and a bar."""

    text: str
    mark: Mark = ""
    full: str = ""
    """All of it, when pointed at."""
    href: str = ""
    bar: float | None = None
    """Length of the bar behind it, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Heading:
    """What stands above one column or several, and whether their cells are numbers."""

    text: str
    number: bool = False
    span: int = 1


@dataclass(frozen=True, slots=True)
class Table:
    """A table: headings, which columns are numbers, rows of cells, and what stands above and below it."""

    headings: tuple[Heading, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    caption: str = ""
    spare: tuple[int, ...] = ()
    """Columns that give way first where there is no room for all, the least important first."""
    keys: int = 1
    """Columns, the first ones, that say what a row is about; they never give way."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture inside a page; a terminal leaves it out."""

    source: str
    """A ``data:`` address that holds all of it."""
    says: str
    """What is to be seen, for those who cannot see it."""
    width_rem: float = 46.0
    """How wide it is drawn where there is room, so that letters in it are as large as those of the page."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command with which to see it again."""

    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a lens concluded, in a line."""

    lens: str
    says: str
    holds: bool | None = None
    """Whether what it says agrees with the truth, or with the other lenses; None where there is nothing to judge by."""
    undecided: str = ""
    """Of what it holds, and what of it is not decided, where that is only a part."""


@dataclass(frozen=True, slots=True)
class Code:
    """Text to be kept as it is, such as a file."""

    text: str


Block: TypeAlias = Says | Place | Table | Figure | Command | Verdict | Code


@dataclass(frozen=True, slots=True)
class Section:
    """A part of what is shown, its blocks in the order in which they are read.

    Examples
    --------
    >>> day = Section("Day", (Says("Busy."), table(("hour", "CPU used"), [("0", "41%")]), Says("Quiet.")))
    >>> [line.text for line in day.of(Says)], len(day.of(Table))
    (['Busy.', 'Quiet.'], 1)
    """

    title: str
    blocks: tuple[Block, ...] = ()
    answer: object = None
    """What is concluded there: a `Conclusion`, or a value that becomes JSON."""
    anchor: str = ""
    """What other parts of a page link to it by."""

    def of(self, kind: type[_T]) -> list[_T]:
        """Return the blocks of one kind."""
        return [block for block in self.blocks if isinstance(block, kind)]

    def without(self, *kinds: type) -> "Section":
        """Return the section without blocks of some kinds."""
        return replace(self, blocks=tuple(block for block in self.blocks if not isinstance(block, kinds)))


def says(*lines: str, mark: Mark = "") -> Iterator[Says]:
    """Yield a block for each line that is not empty.

    Examples
    --------
    >>> [block.text for block in says("one", "", "two")]
    ['one', 'two']
    """
    yield from (Says(line, mark) for line in lines if line)


def note_lines(lines: Iterable[str]) -> Iterator[Says]:
    """Yield a line for each note."""
    yield from (Says(f"note: {line}") for line in lines)


_MOST_NUMBERS = 15
"""Numbers of evidence that a line shows."""


def finding_lines(findings: "Iterable[Finding]", *, evidence: bool = False) -> Iterator[Says]:
    """Yield a line for each finding of a guard, its evidence if that is wanted, and what to do about it.

    Examples
    --------
    >>> from analysis.audit.findings import Finding
    >>> looks = Finding("peeking", "warning", "14 looks", {"looks": 14}, "look once")
    >>> for line in finding_lines([looks], evidence=True):
    ...     print(line.text)
    warning peeking: 14 looks
      looks 14
      remedy: look once
    """
    for finding in findings:
        yield Says(f"{finding.severity} {finding.code}: {finding.what}", _MARKS[finding.severity])
        if evidence and finding.evidence:
            numbers = [f"{name} {_amount(value)}" for name, value in finding.evidence.items()]
            more = len(numbers) - _MOST_NUMBERS
            yield Says("  " + ", ".join(numbers[:_MOST_NUMBERS]) + (f" and {more:,} more (--json)" if more > 0 else ""))
        if finding.remedy:
            yield Says(f"  remedy: {finding.remedy}")


def _amount(value: float) -> str:
    return str(value) if isinstance(value, int) else number(value, unknown=str(value))


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str | Cell]],
    title: str = "",
    words: int = 1,
    *,
    numbers: Sequence[bool] | None = None,
    caption: str = "",
    keys: int = 1,
    spare: Sequence[str] = (),
) -> Table:
    """Return a table of plain text or cells whose first columns are words and whose others are numbers.

    Parameters
    ----------
    headings : of the columns; none if they need none
    rows : one text or cell a column
    title : what stands above
    words : columns of words
    numbers : which columns are numbers, where those of words are not the first
    caption : what stands below
    keys : columns, the first ones, that say what a row is about; they are shown in any room
    spare : headings of the columns that give way first, the least important first; then the others from the last on

    Examples
    --------
    >>> course = table(("hour", "CPU used"), [("0", "41%")])
    >>> course.numbers, course.rows[0][1].text
    ((False, True), '41%')
    """
    width = len(headings) or max((len(row) for row in rows), default=0)
    flush = tuple(numbers) if numbers is not None else tuple(i >= words for i in range(width))
    cells = tuple(tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in row) for row in rows)
    heads = tuple(Heading(text, number) for text, number in zip(headings, flush, strict=True)) if headings else ()
    first = tuple(list(headings).index(heading) for heading in spare)
    return Table(heads, flush, cells, title, caption, first, keys)


Shows = Callable[[_T], Section]
"""From a conclusion to what people see of it."""
