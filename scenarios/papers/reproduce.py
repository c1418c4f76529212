"""The figures and tables of the papers: ``wsc reproduce``, each drawn or tabulated beside the printed numbers."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from analysis.figures.criteria import CHECK, PRINTED, Criterion, judge, number, printed
from analysis.statistics import NotEnoughDataError
from analysis.wsmeter.plan import MarginOutOfReachError
from models.errors import InputError
from scenarios.papers.crossplatform_prediction import PREDICTION
from scenarios.papers.crossplatform_traits import TRAITS
from scenarios.papers.crossplatform_worlds import SERVICES
from scenarios.papers.effects import EFFECTS
from scenarios.papers.evidence import Outcome, Row, Sources, published
from scenarios.papers.gwp import PROFILES
from scenarios.papers.gwp_decisions import GWP
from scenarios.papers.occupancy import OCCUPANCY
from scenarios.papers.world import WORLD
from scenarios.papers.wsmeter import WSMETER
from scenarios.papers.wsmeter_designs import DESIGNS
from scenarios.runs.pictures import save

ROWS: dict[str, Row] = WSMETER | OCCUPANCY | TRAITS | PREDICTION | PROFILES | GWP | WORLD | DESIGNS | EFFECTS | SERVICES
"""Every row that can be reproduced, by its id ``paper/row``."""


def chosen(which: str) -> list[str]:
    """Return the ids that a user asked for: one id (its last part where no other ends so), all of a paper, or ``all``.

    Raises
    ------
    ValueError
        If nothing is called so; the message lists what there is.

    Examples
    --------
    >>> chosen("wsmeter/table2")
    ['wsmeter/table2']
    >>> chosen("calibration")
    ['world/calibration']
    """
    found = [row for row in ROWS if which in ("all", row, row.split("/")[0])]
    short = [row for row in ROWS if which == row.split("/")[1]]
    if not found and len(short) == 1:
        return short
    if not found:
        papers = sorted({row.split("/")[0] for row in ROWS})
        raise InputError(f"nothing to reproduce is called {which!r}; there are all, {', '.join([*papers, *ROWS])}")
    return found


def listing() -> list[dict[str, Any]]:
    """Return every row: id, what it shows, which scenarios it needs.

    Examples
    --------
    >>> [row["id"] for row in listing()][0]
    'wsmeter/fig1'
    """
    return [
        {"kind": "row", "id": name, "what": row.what, "scenarios": list(row.scenarios)} for name, row in ROWS.items()
    ]


def reproduce(which: str, out: Path, sources: Sources) -> list[dict[str, Any]]:
    """Measure, judge and draw rows; write figures (PNG and SVG) and tables (CSV).

    Parameters
    ----------
    which : an id, a paper or ``all``
    out : folder of the figures and tables, made if need be
    sources : the runs and judged worlds that rows are made of; its progress is told which row is being made

    Returns
    -------
    list of dict
        Per row: kind, id, holds, published and measured (name to number), note, criteria, files. A row that could
        not be measured does not hold, and its note says why.

    Raises
    ------
    ValueError
        If nothing is called so.
    """
    names = chosen(which)
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for name in names:
        sources.progress(name, 0.0)
        made.append(_one(name, sources, out))
        sources.progress(name, 1.0)
    return made


def _one(name: str, sources: Sources, out: Path) -> dict[str, Any]:
    paper = published(name)
    try:
        outcome = ROWS[name].compute(sources, printed(paper))
    except (NotEnoughDataError, MarginOutOfReachError) as lack:
        return told(name, paper, Outcome(paper.iloc[:0], note=f"not measured: {lack}"), [])
    return told(name, paper, outcome, _write(out / name.replace("/", "-"), outcome, paper))


def told(name: str, paper: pd.DataFrame, outcome: Outcome, written: Sequence[Path]) -> dict[str, Any]:
    """Return what `wsc reproduce` says of a row: what was measured, judged by what was printed, and its files."""
    findings, cells = judge(outcome.judged, paper), judge(outcome.judged, paper, CHECK)
    compared = outcome.judged if outcome.drawn is None else outcome.drawn
    ours, theirs = beside(compared, paper, findings if outcome.drawn is None else [])
    judged, drawn = outcome.metrics
    says = verdict(findings), arithmetic(cells), *explained(name, findings, outcome.judged), outcome.note
    return {
        "kind": "row",
        "id": name,
        "holds": all(check.holds for check in findings or cells),
        "finding": bool(findings),
        "metric": drawn,
        "published": theirs,
        "measured": ours,
        "judged_metric": judged,
        "judged": beside(outcome.judged, paper, findings)[0] if judged else {},
        "note": "; ".join(part for part in says if part),
        "table": [] if outcome.table is None else outcome.table.to_dict("records"),
        "criteria": [_told(check) for check in findings],
        "printed_cells": _from_cells(outcome.judged, paper),
        "checks": [_told(check) for check in cells],
        "files": [str(file) for file in written],
    }


def _told(check: Criterion) -> dict[str, Any]:
    named = {"name": check.name, "relation": check.relation, "bound": check.bound, "measured": check.measured}
    return named | {"holds": check.holds, "reason": check.reason}


def _from_cells(computed: pd.DataFrame, paper: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return what the paper states of its own cells beside what follows from them, by name."""
    stated = printed(paper, inputs=False)
    stated = stated[stated["series"].str.startswith(PRINTED)]
    return {
        _name(row).removeprefix(PRINTED): {
            "stated": float(row["value"]),
            "computed": number(computed, row["series"], row["x"]),
        }
        for row in stated.to_dict("records")
    }


def _name(row: Mapping[Any, Any]) -> str:
    return str(row["series"]) if np.isnan(row["x"]) else f"{row['series']}@{row['x']:g}"


def explained(row: str, checks: Sequence[Criterion], measured: pd.DataFrame) -> list[str]:
    """Return why findings do not hold in this world, as far as that is known: one text for each failing criterion.

    Numbers of the row stand in the texts as ``{name:format}`` and ``{name@x:format}``: they are those just measured.

    Parameters
    ----------
    row : its id
    checks : judged
    measured : series, x, value of the row; NaN stands for what is not there

    Examples
    --------
    >>> from analysis.figures.criteria import rows
    >>> made = pd.concat([rows("excludes_current_by_seed", [1, 2], [0.93, 0.74]), rows("margin", [400], [0.005])])
    >>> low = Criterion("excludes_current_low_400", "at least", 0.9, "", 0.88)
    >>> explained("wsmeter/fig19", [low], made)[0][:68]
    'excludes_current_low_400: four other fleets of the scenario (seeds 2'
    >>> explained("wsmeter/fig19", [Criterion("excludes_current_low_400", "at least", 0.9, "", 0.95)], made)
    []
    """
    file = files("analysis.figures") / "explanations.csv"
    with file.open(encoding="utf-8") as text:
        table = pd.read_csv(text)
    known = table[table["row"] == row].set_index("criterion")["explanation"]
    failing = dict.fromkeys(check.name for check in checks if not check.holds)
    values = _Values({_name(row): float(row["value"]) for row in measured.to_dict("records")})
    return [f"{name}: {str(known[name]).format_map(values)}" for name in failing if name in known.index]


class _Values(dict[str, float]):
    """Measured numbers by name; what was not measured is NaN."""

    def __missing__(self, _name: str) -> float:
        return float("nan")


def arithmetic(checks: Sequence[Criterion]) -> str:
    """Return in words whether what the paper states follows from its own printed cells.

    Examples
    --------
    >>> arithmetic([Criterion("agreement", "at most", 1.0, "", 0.2)])
    "check of the paper's own arithmetic, no finding of ours: agreement = 0.2, at most 1: holds"
    """
    said = "; ".join(map(str, checks))
    return f"check of the paper's own arithmetic, no finding of ours: {said}" if checks else ""


def verdict(checks: Sequence[Criterion]) -> str:
    """Return in words which criteria fail; nothing if there are none.

    Examples
    --------
    >>> verdict([Criterion("cv", "at most", 0.3, "", 0.4), Criterion("change", "at least", 0.0, "", 0.1)])
    '1 of 2 criteria fail: cv = 0.4, at most 0.3'
    """
    failing = [str(check).removesuffix(": fails") for check in checks if not check.holds]
    if not checks:
        return ""
    if not failing:
        return f"all {len(checks)} criteria hold" if len(checks) > 1 else "the criterion holds"
    return f"{len(failing)} of {len(checks)} criteria fail: {'; '.join(failing)}"


def beside(
    measured: pd.DataFrame, paper: pd.DataFrame, checks: Sequence[Criterion]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return measured and printed numbers by the same names, and the judged numbers; curves by ``name@x``.

    What follows from the paper's own printed cells is left out.

    Examples
    --------
    >>> paper = pd.DataFrame({"series": ["margin"], "x": ["25"], "value": [0.06]})
    >>> beside(pd.DataFrame({"series": ["margin"], "x": [25.0], "value": [0.05]}), paper, [])
    ({'margin@25': 0.05}, {'margin@25': 0.06})
    """
    ours, theirs = {}, {}
    for row in printed(paper, inputs=False).to_dict("records"):
        if not row["series"].startswith(PRINTED):
            name = _name(row)
            ours[name], theirs[name] = number(measured, row["series"], row["x"]), float(row["value"])
    return ours | {check.name: check.measured for check in checks}, theirs


def _write(stem: Path, outcome: Outcome, paper: pd.DataFrame) -> list[Path]:
    """Write the table, and the figure if there is one."""
    written = [stem.with_suffix(".csv")]
    tabulate(outcome, paper).to_csv(written[0], index=False)
    if outcome.draw is not None:
        drawn = outcome.judged if outcome.drawn is None else outcome.drawn
        written += save(outcome.draw(drawn, printed(paper)), stem)
    return written


def tabulate(outcome: Outcome, paper: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured beside what is printed: columns metric, quantity, series, x, measured, published, unit.

    `metric` is judged or drawn, for rows that are drawn in another metric than they are judged in, `quantity` says
    which metric that is. Printed numbers stand beside those in the metric of the paper, which is the one drawn.

    Examples
    --------
    >>> measured = pd.DataFrame({"series": ["margin"], "x": [25.0], "value": [0.05]})
    >>> paper = pd.DataFrame({"series": ["margin"], "x": ["25"], "value": [0.06], "unit": ["relative margin"]})
    >>> tabulate(Outcome(measured), paper)[["measured", "published"]].values.tolist()
    [[0.05, 0.06]]
    """
    parts = {"judged": outcome.judged, "drawn": outcome.drawn}
    kept = [
        table.assign(metric=name, quantity=quantity)
        for (name, table), quantity in zip(parts.items(), outcome.metrics, strict=True)
        if table is not None
    ]
    ours = pd.concat(kept, ignore_index=True).rename(columns={"value": "measured"}).astype({"x": float})
    theirs = printed(paper, inputs=False).rename(columns={"value": "published"})[["series", "x", "published", "unit"]]
    both = ours.merge(theirs, on=["series", "x"], how="left")
    if outcome.drawn is not None:
        both["published"] = both["published"].where(both["metric"] == "drawn")
    return both[["metric", "quantity", "series", "x", "measured", "published", "unit"]]


def show(made: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print every row's verdict, with published beside measured.

    Examples
    --------
    >>> show([], Console())
    """
    for row in made:
        console.print(f"{word(row):>13}  {row['id']}  {ROWS[row['id']].what}")
        console.print(_beside_table(row))
        if row["printed_cells"]:
            console.print("  check of the paper's own arithmetic: what it states beside what follows from its cells")
            console.print(_cells_table(row))
        if row["table"]:
            console.print(_further_table(row["table"]))
        console.print(f"  {row['note']}", markup=False, highlight=False)
        for file in row["files"]:
            console.print(f"  {file}", soft_wrap=True, markup=False, highlight=False)


def word(row: Mapping[str, Any]) -> str:
    """Return the verdict on a row; one without a finding of ours is only a check of the paper's own arithmetic.

    Examples
    --------
    >>> word({"finding": True, "holds": False}), word({"finding": False, "holds": True})
    ('does not hold', 'check holds')
    """
    return ("" if row["finding"] else "check ") + ("holds" if row["holds"] else "does not hold")


def _beside_table(row: Mapping[str, Any]) -> Table:
    """Return published beside measured, with a word for the numbers that have bounds of their own.

    A row that is judged in another metric than the paper's has both, each by name.
    """
    paper, ours = row["metric"].upper(), row["judged_metric"].upper()
    heads = (f"published {paper}", f"measured {paper}", f"measured {ours}") if ours else ("published", "measured")
    table = Table("", *heads, "", box=None, padding=(0, 2), show_header=bool(row["published"]))
    for name, value in row["published"].items():
        held = [criterion["holds"] for criterion in row["criteria"] if criterion["name"] == name]
        judged = [f"{row['judged'][name]:.4g}"] if ours else []
        says = ("holds" if all(held) else "does not hold") if held else ""
        table.add_row(name, f"{value:.4g}", f"{row['measured'][name]:.4g}", *judged, says)
    return table


def _cells_table(row: Mapping[str, Any]) -> Table:
    table = Table("", "stated", "from the cells", box=None, padding=(0, 2))
    for name, both in row["printed_cells"].items():
        table.add_row(name, f"{both['stated']:.4g}", f"{both['computed']:.4g}")
    return table


def _further_table(records: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(*records[0], box=None, padding=(0, 2))
    for record in records:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in record.values()))
    return table


def show_listing(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print every row that can be reproduced.

    Examples
    --------
    >>> show_listing([], Console(quiet=True))
    """
    table = Table("id", "what", "scenarios", box=None, padding=(0, 2))
    for row in rows:
        table.add_row(row["id"], row["what"], ", ".join(row["scenarios"]))
    console.print(table)
