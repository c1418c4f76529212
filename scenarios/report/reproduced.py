"""The report of reproduced figures and tables: every row that a folder holds, ours beside the printed numbers."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.figures.criteria import CHECK, CRITERION
from analysis.figures.criteria import printed as numbers_of
from models.errors import InputError
from scenarios.files.faults import Fault, FaultsError
from scenarios.papers.evidence import Outcome, published
from scenarios.papers.reproduce import ROWS, show, told, word
from scenarios.report.figures import saved
from scenarios.report.page import Page
from scenarios.report.printed import printed
from scenarios.report.subject import composed
from scenarios.views.section import Cell, Heading, Section, Table, Verdict

_COLUMNS = {"metric", "quantity", "series", "x", "measured"}


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
    findings = [one for one in made if one["finding"]]
    held = sum(one["holds"] for one in findings)
    about = f"{held} of {len(findings)} figures and tables hold, by criteria that were set before they were measured."
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
    table = pd.read_csv(file, dtype={"series": str, "metric": str, "quantity": str}).fillna({"quantity": ""})
    if not set(table.columns) >= _COLUMNS:
        raise InputError(f"should have the columns {', '.join(sorted(_COLUMNS))}")
    (judged, of), (drawn, other) = _part(table, "judged"), _part(table, "drawn")
    outcome = Outcome(judged, None if drawn.empty else drawn, ("", "") if drawn.empty else (of, other))
    return told(row, published(row), outcome, _pictures(file))


def _part(table: pd.DataFrame, metric: str) -> tuple[pd.DataFrame, str]:
    """Return what was judged or what was drawn, and in which metric."""
    rows = table[table["metric"] == metric]
    values = rows[["series", "x", "measured"]].rename(columns={"measured": "value"})
    return values.astype({"x": float, "value": float}), "".join(rows["quantity"].iloc[:1])


def _pictures(file: Path) -> list[Path]:
    picture = file.with_suffix(".svg")
    return [picture] if picture.is_file() else []


def _sections(made: Sequence[Mapping[str, Any]]) -> Iterator[Section]:
    """Yield what holds, paper by paper, and then every row."""
    for paper, count in Counter(one["id"].partition("/")[0] for one in made).items():
        of = [one for one in made if one["id"].startswith(f"{paper}/")]
        failing = [one["id"].partition("/")[2] for one in of if not one["holds"]]
        checks = [one["id"].partition("/")[2] for one in of if not one["finding"]]
        says = f"{count - len(checks) - len({*failing} - {*checks})} of {count - len(checks)} hold"
        says += f"; not {', '.join(failing)}" if failing else ""
        says += f"; only a check of the paper's own arithmetic: {', '.join(checks)}" if checks else ""
        verdicts = (Verdict(paper, says, not failing),)
        yield composed(f"{paper}: what holds", tables=(_overview(of),), verdicts=verdicts)
    for one in made:
        shown = printed([one], show)
        numbers, further = _numbers(one, published(one["id"])), shown.tables[bool(one["published"]) :]
        what = ROWS[one["id"]].what
        lines = tuple(line for line in shown.says if not line.endswith(".svg") and not line.endswith(what))
        figures = saved(one["files"], {one["id"].replace("/", "-"): what})
        yield composed(
            f"{one['id']}: {what}", lines, (*numbers, *further), figures, (f"wsc reproduce {one['id']}",), payload=one
        )


def _numbers(one: Mapping[str, Any], paper: pd.DataFrame) -> Iterator[Table]:
    """Yield the printed numbers beside ours, and every criterion, with units and words of the published table."""
    known = _described(paper)
    held = {
        name: all(each["holds"] for each in one["criteria"] if each["name"] == name)
        for name in {each["name"] for each in one["criteria"]}
    }
    of, judged = (f" {one[name].upper()}".rstrip() for name in ("metric", "judged_metric"))
    beside = [
        (
            Cell(known[name][0]),
            Cell(f"{value:.4g}"),
            Cell(_measured(one["measured"][name])),
            Cell(_measured(one["judged"][name]) if judged else ""),
            Cell(known[name][1]),
            Cell(known[name][2]),
            _holds(held.get(name)),
        )
        for name, value in one["published"].items()
    ]
    heads = ("number", f"published{of}", f"measured{of}", f"measured{judged}", "unit", "printed in", "criterion")
    if beside:
        yield _worded(heads, beside, "published beside measured", numbers={1, 2, 3})
    units = {f"{row['series']} {row['x']}": _word(row["unit"]) for row in paper.to_dict("records")}
    kinds = (
        ("criteria", CRITERION, "criterion", f"measured{judged}", "criteria"),
        ("checks", CHECK, "check", "from the printed cells", "checks of the paper's own arithmetic"),
    )
    for key, start, head, measured, title in kinds:
        bounds = [
            (
                Cell(each["name"].replace("_", " ")),
                Cell(_measured(each["measured"])),
                Cell(f"{each['relation']} {each['bound']:.4g}"),
                Cell(units.get(f"{start}{each['name']} {each['relation']}", "")),
                _holds(each["holds"]),
                Cell(_word(each["reason"])),
            )
            for each in one[key]
        ]
        if bounds:
            yield _worded((head, measured, "should be", "unit", "verdict", "reason"), bounds, title, {1})


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


def _holds(holds: bool | None) -> Cell:
    """Return whether a criterion holds; nothing where there is none."""
    return {True: Cell("holds"), False: Cell("does not hold", "bad"), None: Cell("")}[holds]


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
            Cell(word(one), "" if one["holds"] else "bad"),
        )
        for one in rows
    )
    return Table(headings, (False, False, False), cells)
