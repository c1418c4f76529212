"""The rows of papers: one figure or table each, and what it is measured on and by what."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from inspect import signature
from typing import Final

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.criteria import COLUMNS, printed
from models.errors import InputError
from scenarios.papers.sources import Sources

Draw = Callable[..., Figure]
"""From measured and printed numbers to the figure; one with an argument `table` also takes the further numbers."""
Pool = Callable[[Sequence[pd.DataFrame]], Mapping[str, float]]
"""From what was measured in every world to the rates of all their draws together, by the names of criteria."""
Changed = tuple[tuple[str, object], ...]
"""What a world is with or without: paths of scenarios and values."""
WORLDS: Final = tuple(range(1, 11))
"""Seeds of the worlds that a row is judged on, stated before any was measured; the first is the one that is drawn."""
COSTLY: Final = WORLDS[:3]
"""Those of rows of which one world takes many minutes."""
ONE: Final = WORLDS[:1]
"""Of rows that no seed decides, or that look at many worlds themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class Reproduction:
    """What was measured for a row in one world, and what to draw."""

    measured: pd.DataFrame
    """series, x, value."""
    draw: Draw | None = None
    """None of a table."""
    note: str = ""
    """What a reader should know, whatever the verdict."""
    table: pd.DataFrame | None = None
    """Further numbers, printed row by row below the verdict."""


@dataclass(frozen=True, slots=True)
class Row(ABC):
    """One figure or table of a paper: its id ``paper/row``, what it shows, and the scenarios whose runs it needs."""

    id: str
    what: str
    scenarios: tuple[str, ...]
    """Of the library; none where printed numbers suffice."""

    @property
    @abstractmethod
    def worlds(self) -> tuple[int, ...]:
        """Seeds of the worlds that it is judged on."""

    @property
    def pool(self) -> Pool | None:
        """What takes the draws of all worlds together, where criteria are rates."""
        return None

    @abstractmethod
    def outcome(self, sources: Sources) -> Reproduction:
        """Return what is measured on the row's runs in the world of the sources."""


@dataclass(frozen=True, slots=True)
class MeasuredRow(Row):
    """A row that one function of the runs measures: its table, or a reproduction where more is to be told."""

    measure: Callable[..., pd.DataFrame | Reproduction]
    draw: Draw | None = None
    note: str = ""
    printed: bool = False
    """Whether `measure` also takes, last, what the paper prints: series, x, value."""
    on: tuple[int, ...] = WORLDS
    pools: Pool | None = None

    @property
    def worlds(self) -> tuple[int, ...]:
        """Seeds of the worlds that it is judged on."""
        return self.on

    @property
    def pool(self) -> Pool | None:
        """What takes the draws of all worlds together."""
        return self.pools

    def outcome(self, sources: Sources) -> Reproduction:
        """Measure, with the row's own drawing and note where the measure gives none."""
        paper = [printed(published(self.id))] if self.printed else []
        answer = self.measure(*self.given(sources), *paper)
        if isinstance(answer, Reproduction):
            draw = answer.draw or _with_table(self.draw, answer.table)
            return replace(answer, draw=draw, note=answer.note or self.note)
        return Reproduction(answer, draw=self.draw, note=self.note)

    def given(self, sources: Sources) -> tuple[object, ...]:
        """Return what `measure` takes, beside what is printed."""
        return (sources,)


def _with_table(draw: Draw | None, table: pd.DataFrame | None) -> Draw | None:
    """Return a drawing that has the further numbers too, if it takes them."""
    takes = draw is not None and "table" in signature(draw).parameters
    return partial(draw, table=table) if draw is not None and takes else draw


@dataclass(frozen=True, slots=True)
class ManyWorldsRow(MeasuredRow):
    """A row whose measure looks at as many worlds as it needs by itself."""

    @property
    def worlds(self) -> tuple[int, ...]:
        """One: it is judged on what its own worlds say together."""
        return ONE


@dataclass(frozen=True, slots=True)
class RunRow(MeasuredRow):
    """A row that is measured on the run of its one scenario."""

    def given(self, sources: Sources) -> tuple[object, ...]:
        """Return the run."""
        return (sources.run(self.scenarios[0]),)


@dataclass(frozen=True, slots=True)
class ArithmeticRow(MeasuredRow):
    """A row that needs no run: it follows from what is printed, or from nothing but the law."""

    @property
    def worlds(self) -> tuple[int, ...]:
        """One: no seed decides anything."""
        return ONE

    def given(self, sources: Sources) -> tuple[object, ...]:
        """Return nothing."""
        return ()


def published(row: str) -> pd.DataFrame:
    """Return the printed numbers and the criteria of a row, as committed beside the code that draws it.

    Raises
    ------
    InputError
        If there is no such table, or its columns are not those of `criteria.COLUMNS`.

    Examples
    --------
    >>> published("wsmeter/fig4")["figure"].unique().tolist()
    ['wsmeter/fig4']
    """
    file = files("analysis.figures") / f"{row}.csv"
    if not file.is_file():
        raise InputError(f"{row}: no table of printed numbers")
    with file.open(encoding="utf-8") as text:
        table = pd.read_csv(text, dtype={"series": str, "x": str, "unit": str, "read_from": str})
    if tuple(table.columns) != COLUMNS:
        raise InputError(f"{row}: columns must be {', '.join(COLUMNS)}, got {', '.join(table.columns)}")
    return table
