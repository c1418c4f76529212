"""The report of a scorecard: its tables, heat maps of coverage, and curves of margins and power."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.effects.methods import RECOMMENDED
from analysis.figures.scorecard import coverage_map, curves
from scenarios.effects.pieces import Asked
from scenarios.effects.scorecard import show, told
from scenarios.faults import Fault, FaultsError
from scenarios.report.figures import drawn
from scenarios.report.page import Page
from scenarios.report.printed import printed
from scenarios.report.section import Section, Verdict, table


def of_pieces(pieces: Sequence[Mapping[str, Any]], folder: Path) -> Page:
    """Return the report of a scorecard's kept pieces.

    Parameters
    ----------
    pieces : fleets as `effects.pieces.judged` returns them, one at least
    folder : where they are; its pictures are drawn anew
    """
    rows = [row for one in pieces for row in one["rows"]]
    names = tuple(dict.fromkeys(str(row["estimator"]) for row in rows))
    sizes = tuple(sorted({int(row["machines"]) for row in rows}))
    draws = max((int(row["draws"]) for row in rows), default=0)
    ordered = sorted(pieces, key=lambda one: (int(one["seed"]), str(one["corner"])))
    return page(told(ordered, Asked(names, sizes, draws, int(pieces[0]["machines"])), folder), folder)


def saved(file: Path) -> Page:
    """Return the report of what `wsc scorecard --json` printed.

    Raises
    ------
    FaultsError
        If the file holds something else, or what another version printed.

    Examples
    --------
    >>> saved(Path("/dev/null"))
    Traceback (most recent call last):
    scenarios.faults.FaultsError: /dev/null: is neither a folder nor what wsc scorecard --json printed
    """
    try:
        payload = json.loads(file.read_text(encoding="utf-8"), object_hook=_numbers)
    except (OSError, ValueError):
        payload = None
    if not isinstance(payload, dict) or payload.get("kind") != "scorecard":
        raise FaultsError([Fault(str(file), 0, 0, "", "is neither a folder nor what wsc scorecard --json printed")])
    try:
        return page(payload, file)
    except KeyError as lack:
        raise FaultsError([Fault(str(file), 0, 0, str(lack.args[0]), "is not there: another version's")]) from None


def page(payload: Mapping[str, Any], source: Path) -> Page:
    """Return the report of what `wsc scorecard` says."""
    count = f"{payload['fleets']} fleets of {payload['machines']:,} machines, {payload['draws']} draws of each size"
    facts = {"digest of all fleets": str(payload["digest"]), "from": str(source), "fleets": f"{payload['fleets']:,}"}
    return Page("a scorecard of estimators", "Scorecard", count, facts, list(_sections(payload)), payload)


def _sections(payload: Mapping[str, Any]) -> Iterator[Section]:
    made = printed(payload, show)
    says = tuple(line for line in made.says if not line.startswith("Digest:"))
    best = [row for row in payload["estimators"] if row["estimator"] == RECOMMENDED]
    verdicts = tuple(Verdict(f"{row['estimator']}, {row['design']}", _line(row)) for row in best)
    yield Section("All estimators, over all corners", says, made.tables, commands=("wsc scorecard",), verdicts=verdicts)
    corners = pd.DataFrame(payload["corners"])
    for design, of in corners.groupby("design", sort=False):
        says_map = f"How often each estimator's 95% intervals held the truth in each corner, design {design}"
        yield Section(f"Coverage by corner: {design}", figures=(drawn(coverage_map(of), says_map),))
    says_curves = "Mean margin, and power at +1%, by number of test machines"
    yield Section("Margin and power", figures=(drawn(curves(pd.DataFrame(payload["overall"])), says_curves),))
    rows = [(one["corner"], str(one["seed"]), *_truths(one, payload["truths"])) for one in payload["truths"]]
    yield Section("The true changes", tables=(table(("corner", "seed", *_designs(payload["truths"])), rows, words=1),))


def _line(row: Mapping[str, Any]) -> str:
    found = math.isfinite(row["n95"])
    n95 = f"finds +1% on about {row['n95']:,.0f} machines" if found else "machines needed for +1% are not known"
    return f"covers {row['coverage']:.1%}, at worst {row['worst']:.1%} ({row['worst_corner']}); {n95}"


def _designs(truths: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for one in truths for name in one if name not in {"corner", "seed"}))


def _truths(one: Mapping[str, Any], truths: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name in _designs(truths):
        yield f"{one[name]:+.2%}" if one.get(name) is not None else ""


def _numbers(said: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object with the numbers that do not exist as NaN again."""
    return {name: math.nan if value is None else value for name, value in said.items()}
