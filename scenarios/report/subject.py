"""What a report of a run is about, and how its sections are put together."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from scenarios.files.schema import AnyScenario, QueueScenario
from scenarios.runs.rundir import Run
from scenarios.views.section import Block, Code, Command, Figure, Says, Section, Table, Verdict, says
from scenarios.views.terminal import Progress


@dataclass(frozen=True, slots=True)
class Subject:
    """What a report of a run is about."""

    scenario: AnyScenario
    run: Run


Lens: TypeAlias = Callable[[Subject, Progress], Iterator[Section]]
"""From a run to what one way to look at it concludes; nothing where the run has nothing for it."""


def composed(  # noqa: PLR0917 - in the order in which a page shows them
    title: str,
    lines: Sequence[str] = (),
    tables: Sequence[Table] = (),
    figures: Sequence[Figure] = (),
    commands: Sequence[str] = (),
    verdicts: Sequence[Verdict] = (),
    answer: object = None,
    code: str = "",
) -> Section:
    """Return a section of a report: sentences, figures, tables, and how to see it again."""
    again: list[Block] = [*map(Command, commands), *([Code(code)] if code else [])]
    return Section(title, (*says(*lines), *figures, *tables, *again, *verdicts), answer)


def sentences(section: Section) -> tuple[str, ...]:
    """Return the sentences of what a command says, without the name and seed of its scenario, each with a capital.

    Examples
    --------
    >>> sentences(Section("", (Says("rush (seed 3): two hours"), Says("  by the law"))))
    ('Two hours', 'By the law')
    """
    lines = (_after(block.text.strip()) for block in section.of(Says))
    return tuple(
        line[:1].upper() + line[1:] if line.partition(" ")[0].rstrip(":,;").isalpha() else line for line in lines
    )


def _after(line: str) -> str:
    """Return a line without the scenario's name and seed that it begins with."""
    whose, _, rest = line.partition("): ")
    return rest if rest and re.fullmatch(r"\S+ \(seeds? .*", whose) else line


def example(name: str = "rush") -> Subject:
    """Return a request server's run that is empty: its manifest lists no table.

    Parameters
    ----------
    name : of its scenario
    """
    run = Run(Path("runs", name), {"seed": 3, "digest": "6e44", "tables": {}})
    return Subject(QueueScenario(name=name, seed=3), run)
