"""What a report is made of: sections with sentences, tables, figures, commands and verdicts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from scenarios.files.schema import AnyScenario, QueueScenario
from scenarios.runs.rundir import Run
from scenarios.views.output import Progress


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table: its text, and whether it tells of something that does not hold."""

    text: str
    bad: bool = False


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


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture inside the page."""

    source: str
    """A ``data:`` address that holds all of it."""
    says: str
    """What is to be seen, for those who cannot see it."""
    width_rem: float = 46.0
    """How wide it is drawn where there is room, so that letters in it are as large as those of the page."""


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
class Section:
    """A part of a report. `payload` is what the command of the same lens prints as JSON."""

    title: str
    says: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    commands: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    payload: Any = None
    code: str = ""
    """Text to be kept as it is, such as a file."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a report of a run is about."""

    scenario: AnyScenario
    run: Run


Lens: TypeAlias = Callable[[Subject, Progress], Iterator[Section]]
"""From a run to what one way to look at it concludes; nothing where the run has nothing for it."""


def example(name: str = "rush") -> Subject:
    """Return a request server's run that is empty: its manifest lists no table.

    Parameters
    ----------
    name : of its scenario

    Examples
    --------
    >>> example().scenario.kind, example().run.path.as_posix(), example().run.tables
    ('queue', 'runs/rush', ())
    """
    run = Run(Path("runs", name), {"seed": 3, "digest": "6e44", "tables": {}})
    return Subject(QueueScenario(name=name, seed=3), run)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", words: int = 1) -> Table:
    """Return a table of plain text whose first columns are words and whose others are numbers.

    Parameters
    ----------
    headings : of the columns
    rows : one text a column
    title : what stands above
    words : columns of words

    Examples
    --------
    >>> made = table(("hour", "CPU used"), [("0", "41%")])
    >>> made.numbers, made.rows[0][1].text
    ((False, True), '41%')
    """
    numbers = tuple(i >= words for i in range(len(headings)))
    told = tuple(Heading(text, number) for text, number in zip(headings, numbers, strict=True))
    return Table(told, numbers, tuple(tuple(Cell(text) for text in row) for row in rows), title)
