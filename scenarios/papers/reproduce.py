"""The figures and tables of the papers: ``wsc reproduce``, each drawn or tabulated beside the printed numbers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.figures.criteria import KINDS, Kind, Verdict, judge, overall, printed
from analysis.figures.spread import with_spread
from scenarios.papers.catalogue import ROWS, chosen
from scenarios.papers.causes import PopulationChoice, causes_of, population_of
from scenarios.papers.judged import CauseTrial, JudgedRow, OtherPopulation, in_words, judgement, row_pool, trial
from scenarios.papers.record import recorded
from scenarios.papers.rows import COSTLY, Changed, Reproduction, Row, published
from scenarios.papers.sources import Sources
from scenarios.papers.worlds import TOO_LITTLE, RowWorld, kept_tables, measured_tables
from scenarios.runs.disk import save
from scenarios.runs.execution import HERE, Workers
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Block, Place, Says, Section, Table, says, table
from scenarios.views.terminal import Progress

_VERDICTS: Final[tuple[Verdict, ...]] = ("holds", "depends on the world", "does not hold")
_PLURAL: Final[Mapping[Verdict, str]] = {
    "holds": "hold",
    "depends on the world": "depend on the world",
    "does not hold": "do not hold",
}


ARITHMETIC: Final = "check of the paper's own arithmetic: what it states beside what follows from its cells"
"""Above the table of a paper's printed cells."""


@dataclass(frozen=True, slots=True, repr=False)
class Listing(Conclusion):
    """Every row that can be reproduced: ``wsc reproduce --list``."""

    rows: tuple[Row, ...]

    def section(self) -> Section:
        """Return id, what it shows, and the scenarios that it needs."""
        cells = [(row.id, row.what, ", ".join(row.scenarios)) for row in self.rows]
        return Section("", (table(("id", "what", "scenarios"), cells, words=3),))

    def payload(self) -> list[Payload]:
        """Return a list of rows."""
        return [{"kind": "row", "id": row.id, "what": row.what, "scenarios": list(row.scenarios)} for row in self.rows]

    def frame(self) -> pd.DataFrame:
        """Return id, what and scenarios."""
        return pd.DataFrame(self.payload()).drop(columns="kind")


def listing() -> Listing:
    """Return every row that can be reproduced."""
    return Listing(tuple(ROWS.values()))


@dataclass(frozen=True, slots=True, repr=False)
class Reproduced(Conclusion):
    """Figures and tables of papers, judged: ``wsc reproduce``."""

    rows: tuple[JudgedRow, ...]

    def brief(self) -> str:
        """Return the verdict of a row, or how many findings of several hold."""
        if len(self.rows) == 1:
            return f"{self.rows[0].id} {self.rows[0].word}"
        fewer = sum(not row.complete for row in self.rows)
        return self.counts()[0] + (f", {fewer} of {len(self.rows)} rows on fewer worlds than planned" if fewer else "")

    def count(self, kind: Kind) -> Mapping[Verdict, int]:
        """Return how many criteria of a kind hold, depend on the world, and do not hold."""
        told = Counter(criterion.verdict for row in self.rows for criterion in row.of_kind(kind))
        return {verdict: told[verdict] for verdict in _VERDICTS}

    def counts(self) -> list[str]:
        """Return in sentences how many findings hold, then of the other kinds, of rows, and by one world alone."""
        sentences = []
        for kind in KINDS:
            count = self.count(kind)
            if total := sum(count.values()):
                others = [f"{n} {_PLURAL[verdict]}" for verdict, n in list(count.items())[1:] if n]
                sentences.append(f"{count['holds']} of {total} {kind}s hold" + "".join(f", {text}" for text in others))
        findings = [row for row in self.rows if row.is_finding]
        rows = Counter(row.verdict for row in findings)
        others = [f"{rows[verdict]} {_PLURAL[verdict]}" for verdict in _VERDICTS[1:] if rows[verdict]]
        sentences.append(
            f"of {len(findings)} rows with findings {rows['holds']} hold whole" + "".join(f", {o}" for o in others)
        )
        first = sum(row.held_in_first for row in self.rows)
        sentences.append(f"by one world alone, checks and slips counted too: {first} of {len(self.rows)} rows")
        lacking = [row for row in self.rows if not row.complete]
        if lacking:
            sentences.append(f"{len(lacking)} rows are judged on fewer worlds than planned: --worlds 10 measures these")
        return sentences + ([f"recorded over all worlds: {self.recorded()}"] if self.recorded() else [])

    def recorded(self) -> str:
        """Return how many findings hold over all worlds by what was measured before; empty if that is not needed."""
        rows = tuple(row.recorded or row for row in self.rows)
        lacks = rows == self.rows or not all(row.complete for row in rows)
        return "" if lacks else Reproduced(rows).counts()[0]

    def section(self) -> Section:
        """Return every row's verdict, with published beside measured, and how many findings hold."""
        told = tuple(block for row in self.rows for block in blocks(row))
        return Section("", told + (tuple(map(Says, self.counts())) if len(self.rows) > 1 else ()))

    def payload(self) -> list[Payload]:
        """Return a list of rows."""
        return [row.payload() for row in self.rows]

    def frame(self) -> pd.DataFrame:
        """Return a row a number: row, number, published, measured, whether its criterion holds, and in which worlds."""
        cells = [
            (
                row.id,
                name,
                row.published.get(name),
                value,
                None if (verdict := row.verdict_of(name)) is None else verdict == "holds",
                f"{len(row.worlds)} of {len(row.planned)}",
            )
            for row in self.rows
            for name, value in row.measured.items()
        ]
        return pd.DataFrame(cells, columns=["row", "number", "published", "measured", "holds", "worlds"])


@dataclass(frozen=True, slots=True)
class Asked:
    """On how many worlds rows are judged, and where what is measured in these is kept."""

    runs: Path
    """Folder of all runs."""
    worlds: int | None = None
    """As many as are kept if not said: then none is simulated but the first."""
    workers: Workers = HERE
    """Where the next worlds are measured."""
    explain: bool = False
    """Whether causes of what does not hold are removed, and the other population is tried, where that is not kept."""


def reproduce(which: str, out: Path, sources: Sources, asked: Asked | None = None) -> Reproduced:
    """Measure, judge and draw rows; write figures and tables (CSV).

    A row that could not be measured does not hold, and its note says why.

    Parameters
    ----------
    which : an id, a paper or ``all``
    out : folder of the figures and tables, made if need be
    sources : the runs and judged worlds that the first world is made of; its progress is told which row is being made
    asked : on how many worlds; on the first alone if not said
    """
    ids = chosen(which)
    out.mkdir(parents=True, exist_ok=True)
    others = _others(ids, asked, sources.progress)
    judged = []
    for name in ids:
        sources.progress(name, 0.0)
        judged.append(_reproduced(ROWS[name], sources, out, others.get(name, ())))
        sources.progress(name, 1.0)
    return Reproduced(tuple(_explained(judged, asked, sources.progress)))


def rejudged(
    outcomes: Mapping[str, tuple[Reproduction, Sequence[Path]]], runs: Path | None, progress: Progress
) -> Reproduced:
    """Judge rows again from what was measured of each in the first world, on all worlds and trials that are kept.

    Parameters
    ----------
    outcomes : id to what was measured, and its files
    runs : folder of all runs, in which worlds are kept; the first world alone is judged without it
    progress : told nothing, as nothing is simulated
    """
    asked = None if runs is None else Asked(runs)
    others = _others(outcomes, asked, progress)
    rows = [judgement(ROWS[name], outcome, files, others.get(name, ())) for name, (outcome, files) in outcomes.items()]
    return Reproduced(tuple(_explained(rows, asked, progress)))


def _others(ids: Iterable[str], asked: Asked | None, progress: Progress) -> Mapping[str, Sequence[pd.DataFrame]]:
    """Return what rows measured in the worlds after the first, up to the first that is not there."""
    if asked is None:
        return {}
    wanted = {row: [RowWorld(row, seed) for seed in ROWS[row].worlds[1 : asked.worlds]] for row in ids}
    pieces = [piece for of_row in wanted.values() for piece in of_row]
    if asked.worlds is None:
        tables = kept_tables(pieces, asked.runs)
    else:
        tables = measured_tables(pieces, asked.runs, progress, asked.workers)
    return {row: _first_ones(of_row, tables) for row, of_row in wanted.items()}


def _explained(rows: Sequence[JudgedRow], asked: Asked | None, progress: Progress) -> list[JudgedRow]:
    """Return rows with what removing causes of their failures says, and how they do with the other population."""
    if asked is None:
        return [_with_record(row) for row in rows]
    wanted = [piece for row in rows for changed in _changes(row) for piece in _with(row, changed)]
    if asked.explain:
        tables = measured_tables(wanted, asked.runs, progress, asked.workers)
    else:
        tables = kept_tables(wanted, asked.runs)
    tried = (replace(row, trials=tuple(_trials(row, tables)), population=_population(row, tables)) for row in rows)
    return [_with_record(row) for row in tried]


def _with_record(row: JudgedRow) -> JudgedRow:
    """Return a row with what was measured of it before, as far as that says more."""
    record = None if row.complete and row.trials else recorded(row)
    more = record is not None and (not row.complete or record.trials)
    return replace(row, recorded=record) if more else row


def _changes(row: JudgedRow) -> Iterator[Changed]:
    """Yield what a row's worlds are changed by: causes of criteria that do not hold, shams, the other population."""
    failing = {criterion.name for criterion in row.criteria if not criterion.holds}
    for cause in causes_of(row.id):
        if failing & set(cause.criteria):
            yield from (cause.removed, cause.instead)
    if choice := population_of(row.id):
        yield _other(choice)


def _other(choice: PopulationChoice) -> Changed:
    return (("population.preset", choice.other),)


def _with(row: JudgedRow, changed: Changed) -> list[RowWorld]:
    """Return a row's worlds with a change: all that it is judged on, three for the other population."""
    other = [path for path, _ in changed] == ["population.preset"]
    worlds = row.worlds[: len(COSTLY)] if other else row.worlds
    return [RowWorld(row.id, seed, changed) for seed in worlds]


def _trials(row: JudgedRow, tables: Mapping[RowWorld, pd.DataFrame]) -> Iterator[CauseTrial]:
    failing = [criterion for criterion in row.criteria if not criterion.holds]
    for cause in causes_of(row.id):
        without, sham = _values(row, cause.removed, tables), _values(row, cause.instead, tables)
        for criterion in failing:
            if without and sham and criterion.name in cause.criteria:
                yield trial(ROWS[row.id], criterion, cause, without, sham)


def _values(row: JudgedRow, changed: Changed, tables: Mapping[RowWorld, pd.DataFrame]) -> list[pd.DataFrame]:
    """Return what was measured in all changed worlds; nothing if some are not there."""
    pieces = _with(row, changed)
    return [tables[piece] for piece in pieces] if all(piece in tables for piece in pieces) else []


def _population(row: JudgedRow, tables: Mapping[RowWorld, pd.DataFrame]) -> OtherPopulation | None:
    choice = population_of(row.id)
    if choice is None:
        return None
    changed = _values(row, _other(choice), tables)
    verdict = None
    if changed:
        criteria = judge(changed, published(row.id), row_pool(ROWS[row.id], changed))
        findings = [criterion for criterion in criteria if criterion.kind == "finding"]
        verdict = overall(criterion.verdict for criterion in findings or criteria)
    return OtherPopulation(choice.used, choice.reason, choice.other, verdict, len(changed))


def _first_ones(pieces: Sequence[RowWorld], tables: Mapping[RowWorld, pd.DataFrame]) -> list[pd.DataFrame]:
    """Return what was measured in the first worlds, up to the first that is not there."""
    return [tables[piece] for piece in takewhile(tables.__contains__, pieces)]


def _reproduced(row: Row, sources: Sources, out: Path, others: Sequence[pd.DataFrame] = ()) -> JudgedRow:
    paper = published(row.id)
    try:
        outcome = row.outcome(sources)
    except TOO_LITTLE as lack:
        return judgement(row, Reproduction(paper.iloc[:0], note=f"not measured: {lack}"), others=others)
    return judgement(row, outcome, _write(out / row.id.replace("/", "-"), outcome, paper, others), others)


def _write(stem: Path, outcome: Reproduction, paper: pd.DataFrame, others: Sequence[pd.DataFrame]) -> list[Path]:
    """Write the table, and the figure if there is one: of the first world, with the spread over the others."""
    written = [stem.with_suffix(".csv")]
    tabulate(outcome, paper).to_csv(written[0], index=False)
    if outcome.draw is not None:
        written += save(outcome.draw(with_spread([outcome.measured, *others]), printed(paper)), stem)
    return written


def tabulate(outcome: Reproduction, paper: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured beside what is printed: columns series, x, measured, published, unit.

    Examples
    --------
    >>> measured = pd.DataFrame({"series": ["margin"], "x": [25.0], "value": [0.05]})
    >>> paper = pd.DataFrame({"series": ["margin"], "x": ["25"], "value": [0.06], "unit": ["relative margin"]})
    >>> tabulate(Reproduction(measured), paper)[["measured", "published"]].values.tolist()
    [[0.05, 0.06]]
    """
    ours = outcome.measured.rename(columns={"value": "measured"}).astype({"x": float})
    theirs = printed(paper, inputs=False).rename(columns={"value": "published"})[["series", "x", "published", "unit"]]
    return ours.merge(theirs, on=["series", "x"], how="left")[["series", "x", "measured", "published", "unit"]]


def blocks(row: JudgedRow) -> Iterator[Block]:
    """Yield what people see of a row: verdict, published beside measured, criteria, and what else is to be known."""
    yield Says(f"{row.word:>13}  {row.id}  {row.what}")
    yield beside_table(row)
    if row.printed_cells:
        yield Says(f"  {ARITHMETIC}")
        cells = [(name, f"{both['stated']:.4g}", f"{both['computed']:.4g}") for name, both in row.printed_cells.items()]
        yield table(("", "stated", "from the cells"), cells)
    if len(row.worlds) > 1:
        yield spread_table(row)
    if row.table:
        yield further_table(row)
    for text in (*_worlds(row), *in_words(row), *_better(row), *map(str, row.trials), *_record(row), row.note):
        yield from says(f"  {text}" if text else "")
    yield from (Place(f"  {file}") for file in row.files)


def _worlds(row: JudgedRow) -> list[str]:
    """Return on how many worlds a row was judged, and how it does with the other population."""
    told = []
    if len(row.planned) > 1:
        count = "one" if len(row.worlds) == 1 else f"{len(row.worlds)}"
        all_ = "" if row.complete else f" of {len(row.planned)}: wsc reproduce {row.id} --worlds {len(row.planned)}"
        told.append(f"judged on {count}{all_ or ' worlds'}")
    if row.population:
        other, whose = row.population, ""
        if other.verdict is None and row.recorded and row.recorded.population:
            other, whose = row.recorded.population, ", recorded"
        verdict = f"{other.verdict} ({other.worlds} worlds{whose})" if other.verdict else "not measured"
        told.append(f"population {other.used}: {other.reason}; with {other.other}: {verdict}")
    return told


def _better(row: JudgedRow) -> list[str]:
    """Return what our better method does, where that was measured in the drawn world."""
    numbers = ", ".join(f"{name} = {value:.3g}" for name, value in row.better.items())
    return [f"our better method, in world {row.worlds[0]}: {numbers}"] if numbers else []


def _record(row: JudgedRow) -> list[str]:
    """Return what was measured before over all worlds, and why criteria do not hold."""
    if row.recorded is None:
        return []
    which = "this is the first" if len(row.worlds) == 1 else f"these are the first {len(row.worlds)}"
    over = f"recorded over {len(row.recorded.worlds)} worlds, of which {which}: {row.recorded.verdict}; "
    words = [over + in_words(row.recorded)[0]] if not row.complete else []
    return words + [f"recorded: {tried}" for tried in row.recorded.trials]


def beside_table(row: JudgedRow) -> Table:
    """Return published beside measured, with a word for the numbers that have bounds of their own."""
    heads = ("published", "measured")
    cells = [
        (name, f"{value:.4g}", f"{row.measured[name]:.4g}", row.verdict_of(name) or "")
        for name, value in row.published.items()
    ]
    numbers = (False, True, True, False)
    return table(("", *heads, row.scope) if cells else (), cells, numbers=numbers if cells else ())


def spread_table(row: JudgedRow) -> Table:
    """Return the criteria that the world decides, and how their numbers spread over the worlds."""
    heads = ("criterion", "kind", "should be", "least", "median", "most", "true in", "verdict")
    cells = []
    for criterion in row.criteria:
        least, _, middle, _, most = (f"{value:.4g}" for value in criterion.quartiles)
        bound = f"{criterion.relation} {criterion.bound:.4g}"
        held = f"{criterion.holds_in} of {len(criterion.values)}"
        cells.append((criterion.name, criterion.kind, bound, least, middle, most, held, criterion.verdict))
    return table(heads, cells, numbers=(False, False, False, True, True, True, True, False))


def further_table(row: JudgedRow) -> Table:
    """Return the further numbers of a row."""
    records = row.table
    cells = [
        [f"{value:.4g}" if isinstance(value, float) else str(value) for value in record.values()] for record in records
    ]
    numbers = [isinstance(value, int | float) for value in records[0].values()]
    return table([str(name) for name in records[0]], cells, numbers=numbers)
