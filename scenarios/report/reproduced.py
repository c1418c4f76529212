"""The report of reproduced figures and tables: every row that a folder holds, ours beside the printed numbers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from scenarios.evidence import Outcome, published
from scenarios.faults import Fault, FaultsError
from scenarios.report.figures import saved
from scenarios.report.page import Page
from scenarios.report.printed import printed
from scenarios.report.section import Cell, Heading, Section, Table, Verdict
from scenarios.reproduce import ROWS, show, told

_COLUMNS = {"metric", "series", "x", "measured"}


def rows_of(folder: Path) -> dict[str, Path]:
    """Return the rows whose tables a folder holds: id and file, in the order of the papers.

    Examples
    --------
    >>> rows_of(Path("nowhere"))
    {}
    """
    files = {row: folder / f"{row.replace('/', '-')}.csv" for row in ROWS}
    return {row: file for row, file in files.items() if file.is_file()}


def report(folder: Path) -> Page:
    """Return the report of a folder that `wsc reproduce` wrote; rows are judged again from their tables.

    Raises
    ------
    FaultsError
        If tables cannot be read: all of them.

    Examples
    --------
    >>> report(Path("nowhere")).about[:13]
    '0 of 0 figure'
    """
    made, faults = list[dict[str, Any]](), list[Fault]()
    for row, file in rows_of(folder).items():
        try:
            made.append(_judged(row, file))
        except (OSError, ValueError, KeyError) as error:
            faults.append(Fault(str(file), 0, 0, "", f"cannot be read: {error}".partition("\n")[0]))
    if faults:
        raise FaultsError(faults)
    held = sum(one["holds"] for one in made)
    about = f"{held} of {len(made)} figures and tables hold, by criteria that were set before they were measured."
    return Page(
        "reproduced papers",
        "Published figures and tables",
        about,
        {"folder": str(folder), "judged": "again, from the tables in the folder"},
        [*_sections(made)],
        made,
    )


def _judged(row: str, file: Path) -> dict[str, Any]:
    """Return what `wsc reproduce` says of a row, from the table that it wrote."""
    table = pd.read_csv(file, dtype={"series": str, "metric": str})
    if not set(table.columns) >= _COLUMNS:
        raise ValueError(f"should have the columns {', '.join(sorted(_COLUMNS))}")
    ours = table.loc[table["metric"] == "judged", ["series", "x", "measured"]].rename(columns={"measured": "value"})
    return told(row, published(row), Outcome(ours.astype({"x": float, "value": float})), _pictures(file))


def _pictures(file: Path) -> list[Path]:
    picture = file.with_suffix(".svg")
    return [picture] if picture.is_file() else []


def _sections(made: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """Yield what holds, paper by paper, and then every row."""
    for paper, count in Counter(one["id"].partition("/")[0] for one in made).items():
        of = [one for one in made if one["id"].startswith(f"{paper}/")]
        failing = [one["id"].partition("/")[2] for one in of if not one["holds"]]
        says = f"{count - len(failing)} of {count} hold" + (f"; not {', '.join(failing)}" if failing else "")
        verdicts = (Verdict(paper, says, not failing),)
        yield Section(f"{paper}: what holds", tables=(_overview(of),), verdicts=verdicts)
    for one in made:
        shown = printed([one], show)
        what = ROWS[one["id"]].what
        lines = tuple(line for line in shown.says if not line.endswith(".svg") and not line.endswith(what))
        figures = saved(one["files"], {one["id"].replace("/", "-"): what})
        yield Section(
            f"{one['id']}: {what}", lines, shown.tables, figures, (f"wsc reproduce {one['id']}",), payload=one
        )


def _overview(rows: Sequence[Mapping[str, Any]]) -> Table:
    headings = tuple(Heading(text) for text in ("figure or table", "what it shows", "verdict"))
    cells = tuple(
        (
            Cell(one["id"]),
            Cell(ROWS[one["id"]].what),
            Cell("holds" if one["holds"] else "does not hold", not one["holds"]),
        )
        for one in rows
    )
    return Table(headings, (False, False, False), cells)
