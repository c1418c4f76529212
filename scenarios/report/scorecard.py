"""The report of a scorecard: its tables, heat maps of coverage, and curves of margins and power."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from analysis.effects.methods import RECOMMENDED
from analysis.figures.world.scorecard import coverage_map, curves
from scenarios.effects.scorecard.designs import THINNED
from scenarios.effects.scorecard.pieces import JudgedFleet, Score, ScorecardQuestion
from scenarios.effects.scorecard.scorecard import LEAST_FLEETS, Scorecard, concluded, restored
from scenarios.files.faults import Fault, FaultsError
from scenarios.report import commands
from scenarios.report.figures import drawn
from scenarios.report.page import Page
from scenarios.runs.disk import Json, JsonError, json_of
from scenarios.views.conclusion import Payload
from scenarios.views.numbers import number
from scenarios.views.section import Command, Place, Section, Verdict, table

_ENOUGH = 100
"""Draws of which a share is told in per cent."""


def of_pieces(pieces: Sequence[JudgedFleet], folder: Path) -> Page:
    """Return the report of a scorecard's kept pieces.

    Parameters
    ----------
    pieces : fleets as `pieces.judged` returns them, one at least
    folder : where they are; its pictures are drawn anew
    """
    rows = [row for fleet in pieces for row in fleet["rows"]]
    names = tuple(dict.fromkeys(row["estimator"] for row in rows))
    sizes = tuple(sorted({row["machines"] for row in rows}))
    draws = max((_draws_of(row) for row in rows), default=0)
    ordered = sorted(pieces, key=lambda fleet: (fleet["seed"], fleet["corner"]))
    return page(concluded(ordered, ScorecardQuestion(names, sizes, draws, pieces[0]["machines"]), folder), folder)


def _draws_of(row: Score) -> int:
    """Return the fewest draws that must have been asked for to make those of a row."""
    draws = row["draws"]
    return draws * THINNED.get(row["design"], 1) if draws > 1 else 1


def saved(file: Path) -> Page:
    """Return the report of what `wsc scorecard --json` printed."""
    try:
        payload = json_of(file, _numbers)
    except (OSError, JsonError):
        payload = None
    if not isinstance(payload, dict) or payload.get("kind") != "scorecard":
        raise FaultsError([Fault(str(file), 0, 0, "", "is neither a folder nor what wsc scorecard --json printed")])
    try:
        return page(restored(payload), file)
    except KeyError as lack:
        raise FaultsError([Fault(str(file), 0, 0, str(lack.args[0]), "is not there: another version's")]) from None


def page(card: Scorecard, source: Path) -> Page:
    """Return the report of what `wsc scorecard` says."""
    count = f"{card.fleets} fleets of {card.machines:,} machines, {card.draws} draws of each size"
    facts = {"digest of all fleets": card.digest, "from": str(source), "fleets": f"{card.fleets:,}"}
    return Page("a scorecard of estimators", "Scorecard", count, facts, list(_sections(card)), card.payload())


def _sections(card: Scorecard) -> Iterator[Section]:
    best = [row for _, row in card.card.estimators.iterrows() if row["estimator"] == RECOMMENDED]
    verdicts = [Verdict(f"{row['estimator']}, {row['design']}", _line(row, card.card.by_corner)) for row in best]
    blocks = card.section().without(Place).blocks
    command = Command(commands.scorecard(card))
    yield Section("All estimators, over all corners", (*blocks, command, *verdicts))
    for design, of in card.card.corners.groupby("design", sort=False):
        says_map = f"How often each estimator's 95% intervals held the truth in each corner, design {design}"
        yield Section(f"Coverage by corner: {design}", (drawn(coverage_map(of), says_map),))
    says_curves = "Mean margin, and power at +1%, by number of test machines"
    yield Section("Margin and power", (drawn(curves(card.card.overall), says_curves),))
    designs = list(dict.fromkeys(name for fleet in card.truths for name in fleet.changes))
    rows = [
        (fleet.corner, str(fleet.seed), *(number(fleet.changes.get(name), "+.2%") for name in designs))
        for fleet in card.truths
    ]
    yield Section("The true changes", (table(("corner", "seed", *designs), rows, words=1),))


def _line(row: pd.Series, corners: pd.DataFrame) -> str:
    known = math.isfinite(row["n95"])
    n95 = f"finds +1% on about {row['n95']:,.0f} machines" if known else "machines needed for +1% are not known"
    of = corners[(corners["design"] == row["design"]) & (corners["estimator"] == row["estimator"])]
    worst = of[of["corner"] == row["worst_corner"]] if len(of) > 1 else of.iloc[:0]
    least = "".join(f"; at worst {_coverage(corner)} ({corner['corner']})" for _, corner in worst.iterrows())
    fleets = f"from {row['fleets']} {'fleets' if row['fleets'] != 1 else 'fleet'}"
    return f"intervals hold the truth in {_coverage(row)} {fleets}{_spread(row)}{least}; {n95}"


def _coverage(row: pd.Series) -> str:
    """Return how often intervals held: so many of so many draws, and the share where there are enough for one."""
    counts = f"{round(row['coverage'] * row['draws']):,} of {row['draws']:,} draws"
    return f"{row['coverage']:.1%} of {row['draws']:,} draws" if row["draws"] >= _ENOUGH else counts


def _spread(row: pd.Series) -> str:
    """Return the standard error of the share over fleets; draws of one fleet are alike and tell none."""
    known = row["draws"] >= _ENOUGH and row["fleets"] >= LEAST_FLEETS and row["coverage_error"] > 0
    return f", ± {100 * row['coverage_error']:.1f} (standard error over fleets)" if known else ""


def _numbers(value: Mapping[str, Json]) -> Payload:
    """Return a JSON object with the numbers that do not exist as NaN again."""
    return {name: math.nan if field is None else field for name, field in value.items()}
