"""The report of reproduced figures and tables: every row that a folder holds, ours beside the printed numbers."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.figures.criteria import CRITERION
from analysis.figures.criteria import printed as numbers_of
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
        numbers, further = _numbers(one, published(one["id"])), shown.tables[bool(one["published"]) :]
        what = ROWS[one["id"]].what
        lines = tuple(line for line in shown.says if not line.endswith(".svg") and not line.endswith(what))
        figures = saved(one["files"], {one["id"].replace("/", "-"): what})
        yield Section(
            f"{one['id']}: {what}", lines, (*numbers, *further), figures, (f"wsc reproduce {one['id']}",), payload=one
        )


def _numbers(one: Mapping[str, Any], paper: pd.DataFrame) -> Iterator[Table]:
    """Yield the printed numbers beside ours, and every criterion, with units and words of the published table."""
    known = _described(paper)
    held = {
        name: all(each["holds"] for each in one["criteria"] if each["name"] == name)
        for name in {each["name"] for each in one["criteria"]}
    }
    beside = [
        (
            Cell(known[name][0]),
            Cell(f"{value:.4g}"),
            Cell(_measured(one["measured"][name])),
            Cell(known[name][1]),
            Cell(known[name][2]),
            Cell({True: "holds", False: "does not hold"}[held[name]] if name in held else "", held.get(name) is False),
        )
        for name, value in one["published"].items()
    ]
    heads = ("number", "published", "measured", "unit", "printed in", "criterion")
    if beside:
        yield _worded(heads, beside, "published beside measured", numbers={1, 2})
    units = {f"{row['series']} {row['x']}": _word(row["unit"]) for row in paper.to_dict("records")}
    criteria = [
        (
            Cell(each["name"].replace("_", " ")),
            Cell(_measured(each["measured"])),
            Cell(f"{each['relation']} {each['bound']:.4g}"),
            Cell(units.get(f"{CRITERION}{each['name']} {each['relation']}", "")),
            Cell("holds" if each["holds"] else "does not hold", not each["holds"]),
            Cell(_word(each["reason"])),
        )
        for each in one["criteria"]
    ]
    if criteria:
        yield _worded(("criterion", "measured", "should be", "unit", "verdict", "reason"), criteria, "criteria", {1})


def _worded(heads: Sequence[str], rows: Sequence[tuple[Cell, ...]], title: str, numbers: set[int]) -> Table:
    """Return a table, columns without any text left out."""
    kept = [i for i in range(len(heads)) if any(row[i].text for row in rows)]
    headings = tuple(Heading(heads[i], i in numbers) for i in kept)
    return Table(headings, tuple(i in numbers for i in kept), tuple(tuple(row[i] for i in kept) for row in rows), title)


def _described(paper: pd.DataFrame) -> dict[str, tuple[str, str, str]]:
    """Return the words, the unit and the place of each printed number, by its name in what `wsc reproduce` says."""
    found = dict[str, tuple[str, str, str]]()
    for row in numbers_of(paper, inputs=False).to_dict("records"):
        words, at = row["series"].replace("_", " "), "" if pd.isna(row["x"]) else f"{row['x']:g}"
        name = f"{row['series']}@{at}" if at else row["series"]
        found[name] = (f"{words} at {at}" if at else words, _word(row["unit"]), _word(row["read_from"]))
    return found


def _measured(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "not measured"


def _word(text: object) -> str:
    return text if isinstance(text, str) else ""


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
