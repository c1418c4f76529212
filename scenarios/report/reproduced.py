"""The report of reproduced figures and tables: every row that a folder holds, ours beside the printed numbers."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from analysis.figures.criteria import KINDS, Criterion
from analysis.figures.criteria import printed as numbers_of
from models.errors import InputError
from scenarios.files.faults import Fault, FaultsError
from scenarios.papers.catalogue import ROWS
from scenarios.papers.judged import JudgedRow, judgement
from scenarios.papers.reproduce import blocks
from scenarios.papers.rows import Reproduction, published
from scenarios.report.figures import saved
from scenarios.report.page import Page
from scenarios.report.subject import composed
from scenarios.views.section import Cell, Heading, Says, Section, Table, Verdict

_COLUMNS = {"series", "x", "measured"}


def rows_of(folder: Path) -> dict[str, Path]:
    """Return the rows whose tables a folder holds: id and file, in the order of the papers."""
    files = {row: folder / f"{row.replace('/', '-')}.csv" for row in ROWS}
    return {row: file for row, file in files.items() if file.is_file()}


def report(folder: Path) -> Page:
    """Return the report of a folder that `wsc reproduce` wrote; rows are judged again from their tables."""
    rows, faults = list[JudgedRow](), list[Fault]()
    for name, file in rows_of(folder).items():
        try:
            rows.append(_judged(name, file))
        except (OSError, ValueError, KeyError) as error:
            faults.append(Fault(str(file), 0, 0, "", f"cannot be read: {error}".partition("\n")[0]))
    if faults:
        raise FaultsError(faults)
    findings = [row for row in rows if row.is_finding]
    holding = sum(row.holds for row in findings)
    about = (
        f"{holding} of {len(findings)} figures and tables hold, by criteria that were set before they were measured."
    )
    return Page(
        "reproduced papers",
        "Published figures and tables",
        about,
        {"folder": str(folder), "judged": "again, from the tables in the folder"},
        [*_sections(rows)],
        [row.payload() for row in rows],
    )


def _judged(name: str, file: Path) -> JudgedRow:
    """Return what `wsc reproduce` says of a row, from the table that it wrote."""
    table = pd.read_csv(file, dtype={"series": str})
    if not set(table.columns) >= _COLUMNS:
        raise InputError(f"should have the columns {', '.join(sorted(_COLUMNS))}")
    values = table[["series", "x", "measured"]].rename(columns={"measured": "value"})
    outcome = Reproduction(values.astype({"x": float, "value": float}))
    return judgement(ROWS[name], outcome, _pictures(file))


def _pictures(file: Path) -> list[Path]:
    picture = file.with_suffix(".svg")
    return [picture] if picture.is_file() else []


def _sections(rows: Sequence[JudgedRow]) -> Iterator[Section]:
    """Yield what holds, paper by paper, and then every row."""
    for paper, count in Counter(row.id.partition("/")[0] for row in rows).items():
        own = [row for row in rows if row.id.startswith(f"{paper}/")]
        failing = [row.id.partition("/")[2] for row in own if not row.holds]
        checks = [row.id.partition("/")[2] for row in own if not row.is_finding]
        says = f"{count - len(checks) - len({*failing} - {*checks})} of {count - len(checks)} hold"
        says += f"; not {', '.join(failing)}" if failing else ""
        says += f"; only a check of the paper's own arithmetic: {', '.join(checks)}" if checks else ""
        verdicts = (Verdict(paper, says, not failing),)
        yield composed(f"{paper}: what holds", tables=(_overview(own),), verdicts=verdicts)
    for row in rows:
        yield composed(
            f"{row.id}: {row.what}",
            _lines(row),
            (*_numbers(row, published(row.id)), *_further(row)),
            saved(row.files, {row.id.replace("/", "-"): row.what}),
            (f"wsc reproduce {row.id}",),
            answer=row.payload(),
        )


def _lines(row: JudgedRow) -> tuple[str, ...]:
    """Return the sentences of what `wsc reproduce` says, without the verdict, which the tables have."""
    lines = (block.text.strip() for block in [*blocks(row)][1:] if isinstance(block, Says))
    return tuple(line[:1].upper() + line[1:] if line.partition(" ")[0].isalpha() else line for line in lines)


def _further(row: JudgedRow) -> Iterator[Table]:
    """Yield the tables of what `wsc reproduce` says, without that of published and measured numbers."""
    yield from ([block for block in blocks(row) if isinstance(block, Table)])[1:]


def _numbers(row: JudgedRow, paper: pd.DataFrame) -> Iterator[Table]:
    """Yield the printed numbers beside ours, and every criterion, with units and words of the published table."""
    known = _described(paper)
    names = {criterion.name for criterion in row.criteria}
    verdicts = {name: all(one.holds for one in row.criteria if one.name == name) for name in names}
    beside = [
        (
            Cell(known[name].words),
            Cell(f"{value:.4g}"),
            Cell(_measured(row.measured[name])),
            Cell(known[name].unit),
            Cell(known[name].place),
            _holds(verdicts.get(name)),
        )
        for name, value in row.published.items()
    ]
    heads = ("number", "published", "measured", "unit", "printed in", "criterion")
    if beside:
        yield _worded(heads, beside, "published beside measured", numbers={1, 2})
    units = {f"{line['series']} {line['x']}": _word(line["unit"]) for line in paper.to_dict("records")}
    for kind, meaning in KINDS.items():
        if criteria := row.of_kind(kind):
            bounds = [_bound(criterion, units) for criterion in criteria]
            heads = (kind, "measured", "should be", "unit", "verdict", "reason")
            yield _worded(heads, bounds, f"{kind}s: {meaning}", {1})


def _bound(criterion: Criterion, units: Mapping[str, str]) -> tuple[Cell, ...]:
    return (
        Cell(criterion.name.replace("_", " ")),
        Cell(_measured(criterion.measured)),
        Cell(f"{criterion.relation} {criterion.bound:.4g}"),
        Cell(units.get(f"{criterion.kind}:{criterion.name} {criterion.relation}", "")),
        _holds(criterion.holds),
        Cell(criterion.reason),
    )


def _worded(heads: Sequence[str], rows: Sequence[tuple[Cell, ...]], title: str, numbers: set[int]) -> Table:
    """Return a table, columns without any text left out."""
    columns = [i for i in range(len(heads)) if any(row[i].text for row in rows)]
    headings = tuple(Heading(heads[i], i in numbers) for i in columns)
    cells = tuple(tuple(row[i] for i in columns) for row in rows)
    return Table(headings, tuple(i in numbers for i in columns), cells, title)


class _Described(NamedTuple):
    """A printed number in words, its unit, and where the paper prints it."""

    words: str
    unit: str
    place: str


def _described(paper: pd.DataFrame) -> dict[str, _Described]:
    """Return what is to be known of each printed number, by its name in what `wsc reproduce` says."""
    described = dict[str, _Described]()
    for line in numbers_of(paper, inputs=False).to_dict("records"):
        words, at = line["series"].replace("_", " "), "" if pd.isna(line["x"]) else f"{line['x']:g}"
        name = f"{line['series']}@{at}" if at else line["series"]
        place = _Described(f"{words} at {at}" if at else words, _word(line["unit"]), _word(line["read_from"]))
        described[name] = place
    return described


def _holds(holds: bool | None) -> Cell:
    """Return whether a criterion holds; nothing where there is none."""
    return {True: Cell("holds"), False: Cell("does not hold", "bad"), None: Cell("")}[holds]


def _measured(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "not measured"


def _word(text: object) -> str:
    return text if isinstance(text, str) else ""


def _overview(rows: Sequence[JudgedRow]) -> Table:
    headings = tuple(Heading(text) for text in ("figure or table", "what it shows", "verdict"))
    cells = tuple((Cell(row.id), Cell(row.what), Cell(row.word, "" if row.holds else "bad")) for row in rows)
    return Table(headings, (False, False, False), cells)
