"""The report of reproduced figures and tables: every row that a folder holds, ours beside the printed numbers."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

import pandas as pd

from analysis.figures.bounds import draw_criteria
from analysis.figures.criteria import KINDS, Criterion, overall
from analysis.figures.criteria import printed as numbers_of
from analysis.figures.spread import with_spread
from models.errors import InputError
from scenarios.files.faults import Fault, FaultsError
from scenarios.papers.catalogue import ROWS
from scenarios.papers.judged import JudgedRow
from scenarios.papers.record import known
from scenarios.papers.reproduce import ARITHMETIC, Reproduced, blocks, rejudged
from scenarios.papers.rows import Draw, Reproduction, Row, published
from scenarios.papers.worlds import RowWorld, kept_tables
from scenarios.report.figures import drawn, saved
from scenarios.report.page import Page
from scenarios.report.subject import composed
from scenarios.views.section import Cell, Figure, Heading, Mark, Says, Section, Table, Verdict
from scenarios.views.terminal import Progress

_COLUMNS = {"series", "x", "measured"}


def rows_of(folder: Path) -> dict[str, Path]:
    """Return the rows whose tables a folder holds: id and file, in the order of the papers."""
    files = {row: folder / f"{row.replace('/', '-')}.csv" for row in ROWS}
    return {row: file for row, file in files.items() if file.is_file()}


def report(folder: Path, progress: Progress, runs: Path | None = None) -> Page:
    """Return the report of a folder that `wsc reproduce` wrote; rows are judged again from their tables.

    Parameters
    ----------
    folder : what `wsc reproduce` wrote
    progress : told what is being done
    runs : folder of all runs; then rows are judged on all worlds that are kept there, and the page has every row, those
        that are not in the folder from what is kept, drawn anew
    """
    outcomes, faults = dict[str, tuple[Reproduction, Sequence[Path]]](), list[Fault]()
    for name, file in rows_of(folder).items():
        try:
            outcomes[name] = _measured_in(file), _pictures(file)
        except (OSError, ValueError, KeyError) as error:
            faults.append(Fault(str(file), 0, 0, "", f"cannot be read: {error}".partition("\n")[0]))
    if faults:
        raise FaultsError(faults)
    worlds = _kept(outcomes, runs) if runs is not None else {}
    kept = {name: (Reproduction(tables[0]), ()) for name, tables in worlds.items()}
    answer = rejudged({name: of for name in ROWS if (of := {**kept, **outcomes}.get(name))}, runs, progress)
    pictures = {name: _drawn(name, tables) for name, tables in worlds.items()}
    first, *others = answer.counts()
    facts = {"folder": str(folder), "judged": "again, from the tables in the folder", "counts": "; ".join(others)}
    sections = [*_sections(answer.rows, pictures)]
    if runs is not None:
        facts["judged"] += f" and the worlds that are kept in {runs}"
        sections += _missing({row.id for row in answer.rows})
    return Page(
        "reproduced papers",
        "Published figures and tables",
        f"{first}{_where(answer)}{_recorded(answer)}. Criteria are set before they are measured; "
        "the change log tells of exceptions.",
        facts,
        sections,
        [row.payload() for row in answer.rows],
    )


def _where(answer: Reproduced) -> str:
    """Return that rows are judged on fewer worlds than planned, if some are."""
    fewer = sum(not row.complete for row in answer.rows)
    return f", {fewer} of {len(answer.rows)} rows on fewer worlds than planned" if fewer else ""


def _recorded(answer: Reproduced) -> str:
    """Return how many findings hold over all worlds as recorded, where some were not measured."""
    return f"; recorded over all worlds: {answer.recorded()}" if answer.recorded() else ""


def _missing(present: Collection[str]) -> Iterator[Section]:
    """Yield what was not measured here, what it came to when it was measured last, and the commands that do it."""
    rows = [row for name, row in ROWS.items() if name not in present]
    if rows:
        heads = ("figure or table", "what it shows", "recorded", "what does not hold, recorded", "command")
        cells = [_not_measured(row, known(row.id)) for row in rows]
        yield composed("Not measured here", tables=(_worded(heads, cells, "", set()),))
    for row in rows:
        if row.id.startswith("world/") and (criteria := known(row.id)):
            yield _from_record(row, criteria)


def _from_record(row: Row, criteria: Sequence[Criterion]) -> Section:
    """Return a row about the world as it is on record, its criteria drawn: those of papers are measured in minutes."""
    of = f"{count} worlds" if (count := len(criteria[0].values)) > 1 else "one world, or of many together"
    says = f"Not measured here: what is drawn is on record, of {of}; each number stands beside its bounds."
    picture = drawn(draw_criteria(criteria), f"criteria of {row.id}")
    section = composed(f"{row.id}: {row.what}", (says,), figures=(picture,), commands=(f"wsc reproduce {row.id}",))
    return replace(section, anchor=_anchor(row))


def _not_measured(row: Row, criteria: Sequence[Criterion]) -> tuple[Cell, ...]:
    """Return a line of a row that was not measured, with the criteria that are on record."""
    findings = [criterion for criterion in criteria if criterion.kind == "finding"]
    judged = findings or criteria
    verdict = ("" if findings else "check ") + overall(criterion.verdict for criterion in judged)
    holding = f", {sum(criterion.holds for criterion in judged)} of {len(judged)}"
    recorded = verdict + holding if criteria else "not on record"
    failing = "; ".join(str(criterion) for criterion in criteria if not criterion.holds)
    mark: Mark = "bad" if failing else ""
    command = Cell(f"wsc reproduce {row.id}")
    place = f"#{_anchor(row)}" if row.id.startswith("world/") and criteria else ""
    return Cell(row.id, href=place), Cell(row.what), Cell(recorded, mark), Cell(failing), command


def _measured_in(file: Path) -> Reproduction:
    """Return what was measured of a row, from the table that `wsc reproduce` wrote."""
    table = pd.read_csv(file, dtype={"series": str})
    if not set(table.columns) >= _COLUMNS:
        raise InputError(f"should have the columns {', '.join(sorted(_COLUMNS))}")
    values = table[["series", "x", "measured"]].rename(columns={"measured": "value"})
    return Reproduction(values.astype({"x": float, "value": float}))


def _kept(known: Mapping[str, object], runs: Path) -> dict[str, list[pd.DataFrame]]:
    """Return what is kept of rows that are not known otherwise: of the first world, and of all up to one that lacks."""
    pieces = {name: [RowWorld(name, seed) for seed in row.worlds] for name, row in ROWS.items() if name not in known}
    tables = kept_tables([piece for of_row in pieces.values() for piece in of_row], runs)
    worlds = {name: [tables[piece] for piece in takewhile(tables.__contains__, of)] for name, of in pieces.items()}
    return {name: of_row for name, of_row in worlds.items() if of_row}


def _drawn(name: str, worlds: Sequence[pd.DataFrame]) -> tuple[Figure, ...]:
    """Return the picture of a row that is drawn from its tables alone: of the first world, with the spread over all."""
    row = ROWS[name]
    draw: Draw | None = getattr(row, "draw", None)
    if draw is None or worlds[0].empty:
        return ()
    return (drawn(draw(with_spread(worlds), numbers_of(published(name))), row.what),)


def _pictures(file: Path) -> list[Path]:
    picture = file.with_suffix(".svg")
    return [picture] if picture.is_file() else []


def _sections(rows: Sequence[JudgedRow], drawn_now: Mapping[str, tuple[Figure, ...]]) -> Iterator[Section]:
    """Yield what holds, paper by paper, and then every row."""
    for paper in dict.fromkeys(row.id.partition("/")[0] for row in rows):
        own = [row for row in rows if row.id.startswith(f"{paper}/")]
        failing = [row.id.partition("/")[2] for row in own if row.verdict == "does not hold"]
        divided = [row.id.partition("/")[2] for row in own if row.verdict == "depends on the world"]
        checks = [row.id.partition("/")[2] for row in own if not row.is_finding]
        holding = sum(row.holds and row.is_finding for row in own)
        says = f"{holding} of {len(own) - len(checks)} hold"
        says += f"; do not hold: {', '.join(failing)}" if failing else ""
        says += f"; depend on the world: {', '.join(divided)}" if divided else ""
        says += f"; with checks only, no findings: {', '.join(checks)}" if checks else ""
        fewer = sum(not row.complete for row in own)
        says += f"; {fewer} of {len(own)} rows judged on fewer worlds than planned" if fewer else ""
        holds = holding > 0 if failing or divided else len(own) > len(checks) or None
        verdicts = (Verdict(paper, says, holds, "in part" if (failing or divided) and holding else ""),)
        part = composed(f"{paper}: what holds", (_CITED[paper],), tables=(_overview(own),), verdicts=verdicts)
        yield replace(part, anchor=paper)
    for row in rows:
        part = composed(
            f"{row.id}: {row.what}",
            _lines(row),
            (_source(row), *_numbers(row, published(row.id)), *_further(row)),
            saved(row.files, {row.id.replace("/", "-"): row.what}) or drawn_now.get(row.id, ()),
            (f"wsc reproduce {row.id}",),
            answer=row.payload(),
        )
        yield replace(part, anchor=_anchor(row))


def _anchor(row: JudgedRow | Row) -> str:
    return row.id.replace("/", "-")


_CITED: Final[Mapping[str, str]] = {
    "wsmeter": "Lee, Kim, Lin, Cheng, Govindaraju, Kim: WSMeter: A Performance Evaluation Methodology for Google's "
    "Production Warehouse-Scale Computers. ASPLOS 2018, doi:10.1145/3173162.3173196.",
    "occupancy": "Kelly, Shen, Zhang, Stewart: Operational Analysis of Parallel Servers. MASCOTS 2008.",
    "crossplatform": "Stewart, Kelly, Zhang, Shen: A Dollar from 15 Cents: Cross-Platform Management for Internet "
    "Services. USENIX Annual Technical Conference 2008.",
    "gwp": "Ren, Tune, Moseley, Shi, Rus, Hundt: Google-Wide Profiling: A Continuous Profiling Infrastructure for Data "
    "Centers. IEEE Micro 2010, doi:10.1109/MM.2010.68.",
    "world": "Rows beyond the papers: whether the simulated world, and the estimators in it, are sound.",
}
"""Where the rows of a paper come from."""
_OF_PAPER: Final = re.compile(r"(fig|table)(\d+)([ab]?)$")
_SECTION: Final = re.compile(r"[Ss]ections? (\d+(?:\.\d+)*|“[^”]+”)")
"""The number of a section, or its title in a paper that has no numbers."""


def _source(row: JudgedRow) -> Table:
    """Return the paper, figure and sections that a row comes from, its verdict, and on how many worlds it rests."""
    paper, _, name = row.id.partition("/")
    places = [] if paper == "world" else [_citation(paper)]
    if printed := _OF_PAPER.match(name):
        places.append(f"{'Figure' if printed[1] == 'fig' else 'Table'} {printed[2]}{printed[3]}")
    known = published(row.id)["read_from"].dropna()
    sections = dict.fromkeys(number for text in known for number in _SECTION.findall(text))
    if sections and paper != "world":
        places.append(f"section{'s' * (len(sections) > 1)} {', '.join(sections)}")
    source = Cell(", ".join(places) or "this project", href=f"#{paper}")
    mark: Mark = "" if row.holds else "bad"
    worlds = f"{len(row.worlds)} of {len(row.planned)}"
    cells = ((source, Cell(row.word, mark), Cell(worlds), _over_all(row)),)
    return _worded(("source", "verdict", "worlds judged", "recorded over all worlds"), cells, "", set())


def _citation(paper: str) -> str:
    """Return the first author and the year of a paper."""
    author, year = _CITED[paper].partition(",")[0], re.search(r"\b(20\d\d)\b", _CITED[paper])
    return f"{author} et al. {year[1] if year else ''}".strip()


def _lines(row: JudgedRow) -> tuple[str, ...]:
    """Return the sentences of what `wsc reproduce` says, without the verdict, which the tables have."""
    lines = (block.text.strip() for block in [*blocks(row)][1:] if isinstance(block, Says))
    lines = (line for line in lines if line != ARITHMETIC)
    return tuple(line[:1].upper() + line[1:] if line.partition(" ")[0].isalpha() else line for line in lines)


def _further(row: JudgedRow) -> Iterator[Table]:
    """Yield the tables of what `wsc reproduce` says beside those of numbers and of criteria."""
    spread = len(row.worlds) > 1
    tables = [block for block in blocks(row) if isinstance(block, Table)]
    yield from (replace(cells, title=ARITHMETIC) for cells in tables[1 : 1 + bool(row.printed_cells)])
    yield from tables[1 + bool(row.printed_cells) + spread :]


def _numbers(row: JudgedRow, paper: pd.DataFrame) -> Iterator[Table]:
    """Yield the printed numbers beside ours, and every criterion, with units and words of the published table."""
    known = _described(paper)
    beside = [
        (
            Cell(known[name].words),
            Cell(f"{value:.4g}"),
            Cell(_measured(row.measured[name])),
            Cell(known[name].unit),
            Cell(known[name].place),
            _verdict(row.verdict_of(name)),
        )
        for name, value in row.published.items()
    ]
    heads = ("number", "published", "measured", "unit", "printed in", "criterion")
    if beside:
        yield _worded(heads, beside, "published beside measured", numbers={1, 2})
    units = {f"{line['series']} {line['x']}": _word(line["unit"]) for line in paper.to_dict("records")}
    of = row.recorded if row.recorded and not row.complete else row
    whose, rest = "" if of is row else ", recorded", ("should be", "unit", "verdict", "reason")
    for kind, meaning in KINDS.items():
        if criteria := row.of_kind(kind):
            others = of.of_kind(kind)
            bounds = [_bound(*both, units, recorded=bool(whose)) for both in zip(criteria, others, strict=True)]
            bound = (kind, "measured", f"over worlds{whose}", f"true in{whose}", *rest)
            yield _worded(bound, bounds, f"{kind}s: {meaning}", {1, 2} if whose else {1, 2, 3})


def _bound(criterion: Criterion, over: Criterion, units: Mapping[str, str], *, recorded: bool) -> tuple[Cell, ...]:
    """Return a criterion's line; `over` is the same over all worlds that are there, or on record."""
    return (
        Cell(_name(criterion.name)),
        Cell(_measured(criterion.measured)),
        *_over_worlds(over, recorded=recorded),
        Cell(f"{criterion.relation} {criterion.bound:.4g}"),
        Cell(units.get(f"{criterion.kind}:{criterion.name} {criterion.relation}", "")),
        Cell(criterion.verdict, "" if criterion.holds else "bad"),
        Cell(criterion.reason),
    )


def _over_worlds(criterion: Criterion, *, recorded: bool) -> tuple[Cell, Cell]:
    """Return how a number spreads over worlds, and in how many its criterion is true; nothing of one world.

    What is on record has its verdict, too, as the verdict beside it is that of fewer worlds.
    """
    if len(criterion.values) == 1:
        return Cell(""), Cell("")
    least, _, _, _, most = criterion.quartiles
    true_in = f"{criterion.holds_in} of {len(criterion.values)}"
    mark: Mark = "bad" if recorded and not criterion.holds else ""
    return Cell(f"{least:.4g} to {most:.4g}"), Cell(f"{true_in}: {criterion.verdict}" if recorded else true_in, mark)


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
        words, at = _name(line["series"]), "" if pd.isna(line["x"]) else f"{line['x']:g}"
        name = f"{line['series']}@{at}" if at else line["series"]
        place = _Described(f"{words} at {at}" if at else words, _word(line["unit"]), _word(line["read_from"]))
        described[name] = place
    return described


def _name(series: str) -> str:
    """Return a series in words; a method that is called published is the paper's, beside a column of that name."""
    return series.replace("_published", " of the paper's method").replace("_", " ")


def _verdict(verdict: str | None) -> Cell:
    """Return what the criteria of a number come to; nothing where there are none."""
    return Cell(verdict or "", "" if verdict in {None, "holds"} else "bad")


def _measured(value: float) -> str:
    return "not measured" if math.isnan(value) else f"{value:.4g}"


def _word(text: object) -> str:
    return text if isinstance(text, str) else ""


def _overview(rows: Sequence[JudgedRow]) -> Table:
    cells = [
        (
            Cell(row.id, href=f"#{_anchor(row)}"),
            Cell(row.what),
            Cell(row.word, "" if row.holds else "bad"),
            _over_all(row),
        )
        for row in rows
    ]
    return _worded(("figure or table", "what it shows", "verdict", "recorded over all worlds"), cells, "", set())


def _over_all(row: JudgedRow) -> Cell:
    """Return the verdict over all worlds as recorded, where some are not there; else nothing."""
    if row.recorded is None or row.complete:
        return Cell("")
    return Cell(row.recorded.verdict, "" if row.recorded.holds else "bad")
