"""The figures and tables of the papers: ``wsc reproduce``, each drawn or tabulated beside the printed numbers."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from analysis.figures.criteria import Criterion, judge, number, printed
from analysis.plan import MarginOutOfReachError
from analysis.statistics import NotEnoughDataError
from scenarios.evidence import Outcome, Row, Sources, published
from scenarios.pictures import save
from scenarios.reproduce_designs import DESIGNS
from scenarios.reproduce_effects import EFFECTS
from scenarios.reproduce_gwp import GWP
from scenarios.reproduce_occupancy import OCCUPANCY
from scenarios.reproduce_prediction import PREDICTION
from scenarios.reproduce_profiles import PROFILES
from scenarios.reproduce_services import SERVICES
from scenarios.reproduce_traits import TRAITS
from scenarios.reproduce_world import WORLD
from scenarios.reproduce_wsmeter import WSMETER

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
        raise ValueError(f"nothing to reproduce is called {which!r}; there are all, {', '.join([*papers, *ROWS])}")
    return found


def listing() -> list[dict[str, Any]]:
    """Return every row: id, what it shows, which scenarios it needs.

    Examples
    --------
    >>> [row["id"] for row in listing()][0]
    'wsmeter/fig1'
    """
    return [
        {"kind": "fleet", "id": name, "what": row.what, "scenarios": list(row.scenarios)} for name, row in ROWS.items()
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
    checks = judge(outcome.judged, paper)
    ours, theirs = beside(outcome.judged, paper, checks)
    return {
        "kind": "fleet",
        "id": name,
        "holds": all(check.holds for check in checks),
        "published": theirs,
        "measured": ours,
        "note": "; ".join(part for part in (verdict(checks), *explained(name, checks), outcome.note) if part),
        "table": [] if outcome.table is None else outcome.table.to_dict("records"),
        "criteria": [
            {"name": c.name, "relation": c.relation, "bound": c.bound, "measured": c.measured, "holds": c.holds}
            | {"reason": c.reason}
            for c in checks
        ],
        "files": [str(file) for file in written],
    }


def explained(row: str, checks: Sequence[Criterion]) -> list[str]:
    """Return why findings do not hold in this world, as far as that is known: one text for each failing criterion.

    Examples
    --------
    >>> explained("wsmeter/fig19", [Criterion("excludes_current_low_400", "at least", 0.9, "", 0.88)])[0][:47]
    'excludes_current_low_400: the policy is worth 0'
    >>> explained("wsmeter/fig19", [Criterion("excludes_current_low_400", "at least", 0.9, "", 0.95)])
    []
    """
    file = files("analysis.figures") / "published" / "explanations.csv"
    with file.open(encoding="utf-8") as text:
        table = pd.read_csv(text)
    known = table[table["row"] == row].set_index("criterion")["explanation"]
    failing = dict.fromkeys(check.name for check in checks if not check.holds)
    return [f"{name}: {known[name]}" for name in failing if name in known.index]


def verdict(checks: Sequence[Criterion]) -> str:
    """Return in words which criteria fail.

    Examples
    --------
    >>> verdict([Criterion("cv", "at most", 0.3, "", 0.4), Criterion("change", "at least", 0.0, "", 0.1)])
    '1 of 2 criteria fail: cv = 0.4, at most 0.3'
    """
    failing = [str(check).removesuffix(": fails") for check in checks if not check.holds]
    if not failing:
        return f"all {len(checks)} criteria hold" if len(checks) > 1 else "the criterion holds"
    return f"{len(failing)} of {len(checks)} criteria fail: {'; '.join(failing)}"


def beside(
    measured: pd.DataFrame, paper: pd.DataFrame, checks: Sequence[Criterion]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return measured and printed numbers by the same names, and the judged numbers; curves by ``name@x``.

    Examples
    --------
    >>> paper = pd.DataFrame({"series": ["margin"], "x": ["25"], "value": [0.06]})
    >>> beside(pd.DataFrame({"series": ["margin"], "x": [25.0], "value": [0.05]}), paper, [])
    ({'margin@25': 0.05}, {'margin@25': 0.06})
    """
    ours, theirs = {}, {}
    for row in printed(paper, inputs=False).to_dict("records"):
        name = row["series"] if np.isnan(row["x"]) else f"{row['series']}@{row['x']:g}"
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
    """Return what was measured beside what is printed: columns metric, series, x, measured, published, unit.

    `metric` is judged or drawn, for rows that are drawn in another metric than they are judged in.

    Examples
    --------
    >>> measured = pd.DataFrame({"series": ["margin"], "x": [25.0], "value": [0.05]})
    >>> paper = pd.DataFrame({"series": ["margin"], "x": ["25"], "value": [0.06], "unit": ["relative margin"]})
    >>> tabulate(Outcome(measured), paper)[["measured", "published"]].values.tolist()
    [[0.05, 0.06]]
    """
    parts = {"judged": outcome.judged, "drawn": outcome.drawn}
    made = [table.assign(metric=name) for name, table in parts.items() if table is not None]
    ours = pd.concat(made, ignore_index=True).rename(columns={"value": "measured"}).astype({"x": float})
    theirs = printed(paper, inputs=False).rename(columns={"value": "published"})[["series", "x", "published", "unit"]]
    return ours.merge(theirs, on=["series", "x"], how="left")[
        ["metric", "series", "x", "measured", "published", "unit"]
    ]


def show(made: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print every row's verdict, with published beside measured.

    Examples
    --------
    >>> show([], Console())
    """
    for row in made:
        console.print(f"{'holds' if row['holds'] else 'does not hold':>13}  {row['id']}  {ROWS[row['id']].what}")
        console.print(_beside_table(row))
        if row["table"]:
            console.print(_further_table(row["table"]))
        console.print(f"  {row['note']}", markup=False, highlight=False)
        for file in row["files"]:
            console.print(f"  {file}", soft_wrap=True, markup=False, highlight=False)


def _beside_table(row: Mapping[str, Any]) -> Table:
    """Return published beside measured, with a word for the numbers that have bounds of their own."""
    table = Table("", "published", "measured", "", box=None, padding=(0, 2), show_header=bool(row["published"]))
    for name, paper in row["published"].items():
        held = [criterion["holds"] for criterion in row["criteria"] if criterion["name"] == name]
        word = ("holds" if all(held) else "does not hold") if held else ""
        table.add_row(name, f"{paper:.4g}", f"{row['measured'][name]:.4g}", word)
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
