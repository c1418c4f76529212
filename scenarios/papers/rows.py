"""The rows of papers: one figure or table each, what it is measured on and by what, and whether its criteria hold."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.criteria import CHECK, COLUMNS, PRINTED, Criterion, judge, number, printed
from models.errors import InputError
from scenarios.papers.sources import Sources
from scenarios.views.conclusion import Payload

Draw = Callable[[pd.DataFrame, pd.DataFrame], Figure]
"""From measured and printed numbers to the figure."""


@dataclass(frozen=True, slots=True, eq=False)
class Reproduction:
    """What was measured for a row, and what to draw."""

    judged: pd.DataFrame
    """series, x, value: put to the criteria."""
    drawn: pd.DataFrame | None = None
    """The same in the metric of the paper's numbers and of the drawing, where that is another one."""
    metrics: tuple[str, str] = ("", "")
    """Names of the metrics that are judged and drawn, where they differ."""
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

    @abstractmethod
    def outcome(self, sources: Sources) -> Reproduction:
        """Return what is measured on the row's runs."""


@dataclass(frozen=True, slots=True)
class MeasuredRow(Row):
    """A row that one function of the runs measures: its table, or a reproduction where more is to be told."""

    measure: Callable[..., pd.DataFrame | Reproduction]
    draw: Draw | None = None
    note: str = ""
    printed: bool = False
    """Whether `measure` also takes, last, what the paper prints: series, x, value."""

    def outcome(self, sources: Sources) -> Reproduction:
        """Measure, with the row's own drawing and note where the measure gives none."""
        paper = [printed(published(self.id))] if self.printed else []
        answer = self.measure(*self.given(sources), *paper)
        if isinstance(answer, Reproduction):
            return replace(answer, draw=answer.draw or self.draw, note=answer.note or self.note)
        return Reproduction(answer, draw=self.draw, note=self.note)

    def given(self, sources: Sources) -> tuple[object, ...]:
        """Return what `measure` takes, beside what is printed."""
        return (sources,)


@dataclass(frozen=True, slots=True)
class RunRow(MeasuredRow):
    """A row that is measured on the run of its one scenario."""

    def given(self, sources: Sources) -> tuple[object, ...]:
        """Return the run."""
        return (sources.run(self.scenarios[0]),)


@dataclass(frozen=True, slots=True)
class ArithmeticRow(MeasuredRow):
    """A row that needs no run: it follows from what is printed, or from nothing but the law."""

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


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRow:
    """A row judged: measured beside printed numbers by name, criteria, what is to be known, and the files written."""

    id: str
    what: str
    findings: tuple[Criterion, ...]
    checks: tuple[Criterion, ...]
    """Bounds on what follows from the paper's own printed cells, which tell nothing of ours."""
    published: Mapping[str, float]
    measured: Mapping[str, float]
    metric: str
    """Of the printed and the measured numbers, where the row is judged in another; otherwise empty."""
    judged: Mapping[str, float]
    """The same in the metric that is judged."""
    judged_metric: str
    printed_cells: Mapping[str, Mapping[str, float]]
    """What the paper states of its own cells, and what follows from them: stated, computed."""
    note: str
    table: tuple[Mapping[Hashable, object], ...]
    """Further numbers, row by row."""
    files: tuple[str, ...]

    @property
    def is_finding(self) -> bool:
        """Whether something of ours is judged, and not only the paper's own arithmetic."""
        return bool(self.findings)

    @property
    def holds(self) -> bool:
        """Whether every criterion holds."""
        return all(criterion.holds for criterion in self.findings or self.checks)

    @property
    def word(self) -> str:
        """The verdict in a word or two."""
        return ("" if self.is_finding else "check ") + ("holds" if self.holds else "does not hold")

    def payload(self) -> Payload:
        """Return what ``--json`` prints of the row."""
        return {
            "kind": "row",
            "id": self.id,
            "holds": self.holds,
            "finding": self.is_finding,
            "metric": self.metric,
            "published": self.published,
            "measured": self.measured,
            "judged_metric": self.judged_metric,
            "judged": self.judged,
            "note": self.note,
            "table": list(self.table),
            "criteria": [_payload(criterion) for criterion in self.findings],
            "printed_cells": self.printed_cells,
            "checks": [_payload(criterion) for criterion in self.checks],
            "files": list(self.files),
        }


def _payload(criterion: Criterion) -> Payload:
    return {
        "name": criterion.name,
        "relation": criterion.relation,
        "bound": criterion.bound,
        "measured": criterion.measured,
        "holds": criterion.holds,
        "reason": criterion.reason,
    }


def judgement(row: Row, outcome: Reproduction, written: Sequence[Path] = ()) -> JudgedRow:
    """Return what is to be said of a row: what was measured, judged by what was printed, and its files."""
    paper = published(row.id)
    findings, checks = judge(outcome.judged, paper), judge(outcome.judged, paper, CHECK)
    compared = outcome.judged if outcome.drawn is None else outcome.drawn
    ours, theirs = beside(compared, paper, findings if outcome.drawn is None else [])
    judged, drawn = outcome.metrics
    notes = verdict(findings), arithmetic(checks), *explained(row.id, findings, outcome.judged), outcome.note
    return JudgedRow(
        row.id,
        row.what,
        tuple(findings),
        tuple(checks),
        theirs,
        ours,
        drawn,
        beside(outcome.judged, paper, findings)[0] if judged else {},
        judged,
        _from_cells(outcome.judged, paper),
        "; ".join(note for note in notes if note),
        () if outcome.table is None else tuple(outcome.table.to_dict("records")),
        tuple(str(file) for file in written),
    )


def beside(
    measured: pd.DataFrame, paper: pd.DataFrame, criteria: Sequence[Criterion]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return measured and printed numbers by the same names, and the judged numbers; curves by ``name@x``.

    What follows from the paper's own printed cells is left out.
    """
    ours, theirs = {}, {}
    for series, x, value in _numbers(printed(paper, inputs=False)):
        if not series.startswith(PRINTED):
            name = name_at(series, x)
            ours[name], theirs[name] = number(measured, series, x), value
    return ours | {criterion.name: criterion.measured for criterion in criteria}, theirs


def _numbers(table: pd.DataFrame) -> list[tuple[str, float, float]]:
    return list(zip(table["series"], table["x"].astype(float), table["value"].astype(float), strict=True))


def _from_cells(computed: pd.DataFrame, paper: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return what the paper states of its own cells beside what follows from them, by name."""
    return {
        name_at(series, x).removeprefix(PRINTED): {"stated": value, "computed": number(computed, series, x)}
        for series, x, value in _numbers(printed(paper, inputs=False))
        if series.startswith(PRINTED)
    }


def name_at(series: str, x: float) -> str:
    """Return the name of a single number, or of one on a curve."""
    return series if np.isnan(x) else f"{series}@{x:g}"


def verdict(criteria: Sequence[Criterion]) -> str:
    """Return in words which criteria fail; nothing if there are none."""
    failing = [str(criterion).removesuffix(": fails") for criterion in criteria if not criterion.holds]
    if not criteria:
        return ""
    if not failing:
        return f"all {len(criteria)} criteria hold" if len(criteria) > 1 else "the criterion holds"
    return f"{len(failing)} of {len(criteria)} criteria fail: {'; '.join(failing)}"


def arithmetic(checks: Sequence[Criterion]) -> str:
    """Return in words whether what the paper states follows from its own printed cells."""
    text = "; ".join(map(str, checks))
    return f"check of the paper's own arithmetic, no finding of ours: {text}" if checks else ""


def explained(row: str, criteria: Sequence[Criterion], measured: pd.DataFrame) -> list[str]:
    """Return why criteria fail in this world, as far as that is known: one text for each that does.

    Numbers of the row stand in the texts as ``{name:format}`` and ``{name@x:format}``: they are those just measured,
    NaN if they were not.
    """
    with (files("analysis.figures") / "explanations.csv").open(encoding="utf-8") as text:
        table = pd.read_csv(text)
    known = table[table["row"] == row].set_index("criterion")["explanation"]
    failing = dict.fromkeys(criterion.name for criterion in criteria if not criterion.holds)
    values = _Values({name_at(series, x): value for series, x, value in _numbers(measured)})
    return [f"{name}: {str(known[name]).format_map(values)}" for name in failing if name in known.index]


class _Values(dict[str, float]):
    """Measured numbers by name; what was not measured is NaN."""

    def __missing__(self, _name: str) -> float:
        return float("nan")
