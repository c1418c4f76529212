"""The figures and tables of the papers: ``wsc reproduce``, each drawn or tabulated beside the printed numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.figures.criteria import printed
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.plan import MarginOutOfReachError
from models.errors import InputError
from scenarios.crossplatform.worlds import worlds
from scenarios.files.loader import Override, load
from scenarios.files.schema import AnyScenario, ProfileScenario, ServiceScenario
from scenarios.papers import crossplatform, gwp, occupancy, world, wsmeter
from scenarios.papers.rows import JudgedRow, Reproduction, Row, judgement, published
from scenarios.papers.sources import Kept, Sources
from scenarios.papers.trials import trials
from scenarios.profiling.validate import validate
from scenarios.runs.disk import save
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import Run
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.section import Block, Place, Says, Section, Table, says, table
from scenarios.views.terminal import Progress, dumps

_PAPERS: Final = (wsmeter.ROWS, occupancy.ROWS, crossplatform.ROWS, gwp.ROWS, world.ROWS)
ROWS: Final[dict[str, Row]] = {row.id: row for rows in _PAPERS for row in rows}
"""Every row that can be reproduced, by its id ``paper/row``: the paper is the module that declares it."""


def chosen(which: str) -> list[str]:
    """Return the ids that a user asked for: one id (its last part where no other ends so), all of a paper, or ``all``.

    Examples
    --------
    >>> chosen("wsmeter/table2")
    ['wsmeter/table2']
    >>> chosen("calibration")
    ['world/calibration']
    """
    ids = [row for row in ROWS if which in ("all", row, row.split("/")[0])]
    short = [row for row in ROWS if which == row.split("/")[1]]
    if not ids and len(short) == 1:
        return short
    if not ids:
        papers = sorted({row.split("/")[0] for row in ROWS})
        raise InputError(f"nothing to reproduce is called {which!r}; there are all, {', '.join([*papers, *ROWS])}")
    return ids


def library(runs: Path, progress: Progress) -> Sources:
    """Return what rows are made from: runs, worlds and studies of the library's scenarios, kept in a folder."""

    def scenario_of(name: str, values: Mapping[str, object]) -> AnyScenario:
        return load(name, [Override(path, dumps(value), "value") for path, value in values.items()])

    def run(name: str, values: Mapping[str, object], tell: Progress) -> Run:
        return obtain(scenario_of(name, values), runs, False, tell)

    def judge(name: str, values: Mapping[str, object], tell: Progress) -> list[Kept]:
        scenario = scenario_of(name, values)
        if isinstance(scenario, ProfileScenario):
            return [dict(validate(scenario, runs, False, tell).payload())]
        if not isinstance(scenario, ServiceScenario):
            raise InputError(f"{name}: is a {scenario.kind}, of which no worlds are judged")
        return [dict(world) for world in worlds(scenario, runs, False, tell)]

    return Sources(run, progress, judge, trials(runs))


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
        """Return the verdict of a row, or how many of several hold."""
        if len(self.rows) == 1:
            return f"{self.rows[0].id} {self.rows[0].word}"
        return f"{sum(row.holds for row in self.rows)} of {len(self.rows)} rows hold"

    def section(self) -> Section:
        """Return every row's verdict, with published beside measured."""
        return Section("", tuple(block for row in self.rows for block in blocks(row)))

    def payload(self) -> list[Payload]:
        """Return a list of rows."""
        return [row.payload() for row in self.rows]

    def frame(self) -> pd.DataFrame:
        """Return a row a number: row, number, published, measured, and whether its criterion holds, if it has one."""
        cells = [
            (row.id, name, row.published.get(name), value, _holds(row, name))
            for row in self.rows
            for name, value in row.measured.items()
        ]
        return pd.DataFrame(cells, columns=["row", "number", "published", "measured", "holds"])


def reproduce(which: str, out: Path, sources: Sources) -> Reproduced:
    """Measure, judge and draw rows; write figures (PNG and SVG) and tables (CSV).

    A row that could not be measured does not hold, and its note says why.

    Parameters
    ----------
    which : an id, a paper or ``all``
    out : folder of the figures and tables, made if need be
    sources : the runs and judged worlds that rows are made of; its progress is told which row is being made
    """
    ids = chosen(which)
    out.mkdir(parents=True, exist_ok=True)
    judged = []
    for name in ids:
        sources.progress(name, 0.0)
        judged.append(_reproduced(ROWS[name], sources, out))
        sources.progress(name, 1.0)
    return Reproduced(tuple(judged))


def _reproduced(row: Row, sources: Sources, out: Path) -> JudgedRow:
    paper = published(row.id)
    try:
        outcome = row.outcome(sources)
    except (NotEnoughDataError, MarginOutOfReachError) as lack:
        return judgement(row, Reproduction(paper.iloc[:0], note=f"not measured: {lack}"))
    return judgement(row, outcome, _write(out / row.id.replace("/", "-"), outcome, paper))


def _write(stem: Path, outcome: Reproduction, paper: pd.DataFrame) -> list[Path]:
    """Write the table, and the figure if there is one."""
    written = [stem.with_suffix(".csv")]
    tabulate(outcome, paper).to_csv(written[0], index=False)
    if outcome.draw is not None:
        drawn = outcome.judged if outcome.drawn is None else outcome.drawn
        written += save(outcome.draw(drawn, printed(paper)), stem)
    return written


def tabulate(outcome: Reproduction, paper: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured beside what is printed: columns metric, quantity, series, x, measured, published, unit.

    `metric` is judged or drawn, for rows that are drawn in another metric than they are judged in, `quantity` says
    which metric that is. Printed numbers stand beside those in the metric of the paper, which is the one drawn.

    Examples
    --------
    >>> measured = pd.DataFrame({"series": ["margin"], "x": [25.0], "value": [0.05]})
    >>> paper = pd.DataFrame({"series": ["margin"], "x": ["25"], "value": [0.06], "unit": ["relative margin"]})
    >>> tabulate(Reproduction(measured), paper)[["measured", "published"]].values.tolist()
    [[0.05, 0.06]]
    """
    parts = {"judged": outcome.judged, "drawn": outcome.drawn}
    tables = [
        part.assign(metric=name, quantity=quantity)
        for (name, part), quantity in zip(parts.items(), outcome.metrics, strict=True)
        if part is not None
    ]
    ours = pd.concat(tables, ignore_index=True).rename(columns={"value": "measured"}).astype({"x": float})
    theirs = printed(paper, inputs=False).rename(columns={"value": "published"})[["series", "x", "published", "unit"]]
    both = ours.merge(theirs, on=["series", "x"], how="left")
    if outcome.drawn is not None:
        both["published"] = both["published"].where(both["metric"] == "drawn")
    return both[["metric", "quantity", "series", "x", "measured", "published", "unit"]]


def blocks(row: JudgedRow) -> Iterator[Block]:
    """Yield what people see of a row: verdict, published beside measured, and what else is to be known."""
    yield Says(f"{row.word:>13}  {row.id}  {row.what}")
    yield beside_table(row)
    if row.printed_cells:
        yield Says("  check of the paper's own arithmetic: what it states beside what follows from its cells")
        cells = [(name, f"{both['stated']:.4g}", f"{both['computed']:.4g}") for name, both in row.printed_cells.items()]
        yield table(("", "stated", "from the cells"), cells)
    if row.table:
        yield further_table(row)
    yield from says(f"  {row.note}" if row.note else "")
    yield from (Place(f"  {file}") for file in row.files)


def _holds(row: JudgedRow, name: str) -> bool | None:
    """Return whether the criteria of a number hold; None if it has none."""
    verdicts = [criterion.holds for criterion in row.findings if criterion.name == name]
    return all(verdicts) if verdicts else None


def beside_table(row: JudgedRow) -> Table:
    """Return published beside measured, with a word for the numbers that have bounds of their own.

    A row that is judged in another metric than the paper's has both, each by name.
    """
    paper, ours = row.metric.upper(), row.judged_metric.upper()
    heads = (f"published {paper}", f"measured {paper}", f"measured {ours}") if ours else ("published", "measured")
    words = {None: "", True: "holds", False: "does not hold"}
    cells = [
        (
            name,
            f"{value:.4g}",
            f"{row.measured[name]:.4g}",
            *([f"{row.judged[name]:.4g}"] if ours else []),
            words[_holds(row, name)],
        )
        for name, value in row.published.items()
    ]
    return table(
        ("", *heads, "") if cells else (), cells, numbers=(False, *(True for _ in heads), False) if cells else ()
    )


def further_table(row: JudgedRow) -> Table:
    """Return the further numbers of a row."""
    records = row.table
    cells = [
        [f"{value:.4g}" if isinstance(value, float) else str(value) for value in record.values()] for record in records
    ]
    numbers = [isinstance(value, int | float) for value in records[0].values()]
    return table([str(name) for name in records[0]], cells, numbers=numbers)
