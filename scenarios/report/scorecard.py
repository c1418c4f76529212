"""The report of a scorecard: its tables, heat maps of coverage, and curves of margins and power."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.effects.methods import RECOMMENDED
from analysis.figures.world.scorecard import coverage_map, curves
from scenarios.effects.scorecard.designs import THINNED
from scenarios.effects.scorecard.pieces import Asked
from scenarios.effects.scorecard.scorecard import LEAST_FLEETS, show, told
from scenarios.files.faults import Fault, FaultsError
from scenarios.report import commands
from scenarios.report.figures import drawn
from scenarios.report.page import Page
from scenarios.report.printed import printed
from scenarios.report.subject import composed
from scenarios.views.section import Section, Verdict, table

_ENOUGH = 100
"""Draws of which a share is told in per cent."""


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
    draws = max((_least_asked(row) for row in rows), default=0)
    ordered = sorted(pieces, key=lambda one: (int(one["seed"]), str(one["corner"])))
    return page(told(ordered, Asked(names, sizes, draws, int(pieces[0]["machines"])), folder), folder)


def _least_asked(row: Mapping[str, Any]) -> int:
    """Return the fewest draws that must have been asked for to make those of a row."""
    made = int(row["draws"])
    return made * THINNED.get(row["design"], 1) if made > 1 else 1


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
    scenarios.files.faults.FaultsError: /dev/null: is neither a folder nor what wsc scorecard --json printed
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
    verdicts = tuple(Verdict(f"{row['estimator']}, {row['design']}", _line(row, payload["by_corner"])) for row in best)
    yield composed(
        "All estimators, over all corners",
        says,
        made.tables,
        commands=(commands.scorecard(payload),),
        verdicts=verdicts,
    )
    corners = pd.DataFrame(payload["corners"])
    for design, of in corners.groupby("design", sort=False):
        says_map = f"How often each estimator's 95% intervals held the truth in each corner, design {design}"
        yield composed(f"Coverage by corner: {design}", figures=(drawn(coverage_map(of), says_map),))
    says_curves = "Mean margin, and power at +1%, by number of test machines"
    yield composed("Margin and power", figures=(drawn(curves(pd.DataFrame(payload["overall"])), says_curves),))
    rows = [(one["corner"], str(one["seed"]), *_truths(one, payload["truths"])) for one in payload["truths"]]
    yield composed("The true changes", tables=(table(("corner", "seed", *_designs(payload["truths"])), rows, words=1),))


def _line(row: Mapping[str, Any], corners: Sequence[Mapping[str, Any]]) -> str:
    found = math.isfinite(row["n95"])
    n95 = f"finds +1% on about {row['n95']:,.0f} machines" if found else "machines needed for +1% are not known"
    of = [one for one in corners if all(one[key] == row[key] for key in ("design", "estimator"))]
    worst = [one for one in of if one["corner"] == row["worst_corner"] and len(of) > 1]
    least = "".join(f"; at worst {_held(one)} ({one['corner']})" for one in worst)
    fleets = f"from {row['fleets']} {'fleets' if row['fleets'] != 1 else 'fleet'}"
    return f"intervals hold the truth in {_held(row)} {fleets}{_spread(row)}{least}; {n95}"


def _held(row: Mapping[str, Any]) -> str:
    """Return how often intervals held: so many of so many draws, and the share where there are enough for one."""
    counts = f"{round(row['coverage'] * row['draws']):,} of {row['draws']:,} draws"
    return f"{row['coverage']:.1%} of {row['draws']:,} draws" if row["draws"] >= _ENOUGH else counts


def _spread(row: Mapping[str, Any]) -> str:
    """Return the standard error of the share over fleets; draws of one fleet are alike and tell none."""
    known = row["draws"] >= _ENOUGH and row["fleets"] >= LEAST_FLEETS and row["coverage_error"] > 0
    return f", ± {100 * row['coverage_error']:.1f} (standard error over fleets)" if known else ""


def _designs(truths: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for one in truths for name in one if name not in {"corner", "seed"}))


def _truths(one: Mapping[str, Any], truths: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for name in _designs(truths):
        yield f"{one[name]:+.2%}" if one.get(name) is not None else ""


def _numbers(said: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object with the numbers that do not exist as NaN again."""
    return {name: math.nan if value is None else value for name, value in said.items()}
