"""`wsc scorecard`: every estimator, design and size over many simulated fleets, in pieces kept as they are done."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypedDict, cast

import pandas as pd
from matplotlib.figure import Figure

from analysis.effects.methods import RECOMMENDED, names
from analysis.figures.world.scorecard import coverage_map, curves
from analysis.figures.wsmeter.changes import NORMAL_95
from analysis.figures.wsmeter.fleet import draw_coverage
from models.code.parts import called
from scenarios.effects.scorecard.card import Card, summary
from scenarios.effects.scorecard.needed import AGAINST
from scenarios.effects.scorecard.pieces import PARTS, Fleets, JudgedFleet, Piece, ScorecardQuestion, judged
from scenarios.runs.disk import save
from scenarios.runs.executors import PROCESSES, executor
from scenarios.runs.parts import computed_parts, digest, folder_of
from scenarios.views.conclusion import Conclusion, Payload
from scenarios.views.numbers import interval, listed, number, plural
from scenarios.views.section import Block, Place, Says, Section, Table, note_lines, table
from scenarios.views.terminal import Progress

_NAMES = frozenset(names())
_BESIDE = frozenset({RECOMMENDED, *AGAINST})
_JUDGES = ("scipy", "pandas")
"""Libraries that decide what estimators say, beside those that decide a fleet."""
LEAST_FLEETS = 3
"""Of fewer no error over fleets is told."""
_DASH = "–"


def place(questions: ScorecardQuestion, out: Path) -> Path:
    """Return the folder of a scorecard's pieces: same question to a fleet and same code, same place."""
    own = [(part.name, part.sha256) for part in questions.own]
    return folder_of(out, "scorecard", asdict(questions) | {"own": own}, _JUDGES)


class Truths(NamedTuple):
    """The true changes of one fleet, by design."""

    corner: str
    seed: int
    changes: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Scorecard(Conclusion):
    """How right every estimator is, over many simulated fleets."""

    draws: int
    """Of each size, in each fleet."""
    machines: int
    """Of each fleet."""
    sizes: tuple[int, ...]
    """Test machines."""
    fleets: int
    digest: str
    """SHA-256 over all pieces."""
    folder: str
    """Where pieces and pictures are."""
    pictures: tuple[str, ...]
    truths: tuple[Truths, ...]
    card: Card
    notes: tuple[str, ...] = ()
    """On which designs which estimators of other people are not judged, and why."""

    def brief(self) -> str:
        """Return the coverage of each estimator, and the design it is of."""
        rows = self.card.estimators.itertuples()
        return "coverage: " + listed(f"{row.estimator} {row.coverage:.1%} ({row.design})" for row in rows)

    def payload(self) -> Payload:
        """Return what ``--json`` prints."""
        return {
            "kind": "scorecard",
            "draws": self.draws,
            "machines": self.machines,
            "sizes": list(self.sizes),
            "fleets": self.fleets,
            "digest": self.digest,
            "folder": self.folder,
            "pictures": list(self.pictures),
            "truths": [{"corner": corner, "seed": seed, **changes} for corner, seed, changes in self.truths],
            "notes": list(self.notes),
            **self.card.records(),
        }

    def frame(self) -> pd.DataFrame:
        """Return a row for each design and estimator."""
        return self.card.estimators

    def figure(self) -> "Figure":
        """Return the coverage of every estimator by test machines, with 95% intervals over fleets."""
        rows = self.card.overall
        margin = NORMAL_95 * rows["coverage_error"]
        return draw_coverage(rows.assign(low=rows["coverage"] - margin, high=rows["coverage"] + margin))

    def section(self) -> Section:
        """Return what people see."""
        return Section("", tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        title = f"{plural(self.fleets, 'fleet')} of {self.machines:,} machines, {self.draws} draws of each size"
        yield _table(self.card.estimators, title)
        yield Says(
            "coverage: share of 95% intervals, at all sizes, that hold the true change, ± standard error over fleets "
            "(– with fewer than three fleets, or if all are equal); worst corner: the lowest coverage of a corner; "
            "bias/margin: the greatest of a corner; n95: test machines with which +1% is detected in 95% of draws, "
            "geometric mean over the corners where it is known; corners: how many these are; to cuped, to published: "
            "n95 divided by that of cuped or published"
        )
        drawn = self.card.drawn
        if len(drawn):
            beside = drawn["estimator"].isin(_BESIDE) | ~drawn["estimator"].isin(_NAMES)
            yield _table(drawn[beside], "the corners drawn at random, beside those")
        gains = self.card.gains
        if len(gains) and gains["gain"].notna().any():
            yield _gains(gains)
        for row in self.card.silent.itertuples():
            yield Says(f"{row.estimator} has no answer to {row.design}: too little data in every draw")
        yield from note_lines(self.notes)
        yield Place(f"pieces and pictures: {self.folder}")
        yield Place(f"digest: {self.digest}")


def scorecard(
    questions: ScorecardQuestion,
    pieces: Sequence[Piece],
    fleets: Fleets,
    out: Path,
    tell: Progress,
    *,
    where: str = PROCESSES,
    workers: int | None = None,
) -> Scorecard:
    """Return how right estimators are over many fleets.

    Pieces that were judged before by this very code are read; what was interrupted, or killed, goes on where it stopped
    and ends with the same digest, whatever it runs on.

    Parameters
    ----------
    questions : what every piece is asked
    pieces : fleets, one at least
    fleets : makes them; of a module, since other processes import it
    out : folder of all runs; pieces and pictures go into a folder there
    tell : told the share of the pieces that is done
    where, workers : as for `executors.executor`

    Raises
    ------
    ExecutorError
        If there is nothing to work with at `where`.
    RunError
        If a worker ends without an answer.
    FolderError
        If the folder cannot be made.
    """
    folder = place(questions, out)
    make = partial(judged, questions, fleets)
    with executor(where, workers) as pool:
        pieces_judged = computed_parts(
            pieces, make, folder, PARTS, tell, what="judging fleets", named=Piece.named, executor=pool
        )
    return concluded(pieces_judged, questions, folder)


def concluded(pieces: Sequence[JudgedFleet], questions: ScorecardQuestion, folder: Path) -> Scorecard:
    """Return what a scorecard says of pieces that were judged, one at least; its pictures go into their folder."""
    card = summary(pieces)
    return Scorecard(
        draws=questions.draws,
        machines=questions.machines,
        sizes=questions.sizes,
        fleets=len(pieces),
        digest=digest(pieces),
        folder=str(folder),
        pictures=tuple(str(file) for file in _pictures(card, folder)),
        truths=tuple(Truths(fleet["corner"], fleet["seed"], fleet["truths"]) for fleet in pieces),
        card=card,
        notes=tuple(_unjudged(pieces, questions)),
    )


def _pictures(card: Card, out: Path) -> list[Path]:
    """Write ``coverage-DESIGN`` and ``curves`` into a folder that is there, as PNG and SVG, and return the files."""
    written = list[Path]()
    for design, of in card.corners.groupby("design", sort=False):
        written += save(coverage_map(of), out / f"coverage-{design}")
    return written + save(curves(card.overall), out / "curves")


def _unjudged(pieces: Sequence[JudgedFleet], questions: ScorecardQuestion) -> Iterator[str]:
    """Yield on which designs the estimators of other people are not judged, and why."""
    if not questions.own:
        return
    from scenarios.effects.scorecard.designs import DESIGNS, WITHOUT_TABLES  # alone here: it simulates fleets

    tried = {design for fleet in pieces for design in fleet["truths"]}
    without = [design for design in DESIGNS if design in tried & WITHOUT_TABLES]
    if without:
        own = ", ".join(called(part.load()) for part in questions.own)
        yield (
            f"{own}: not judged on {', '.join(without)}; machines there switch the feature on and off, get it in "
            "waves, or run new code of one job alone, which tables without and with the feature do not describe"
        )


class _Printed(TypedDict):
    """A scorecard as JSON holds it, beside the tables of its card."""

    draws: int
    machines: int
    sizes: list[int]
    fleets: int
    digest: str
    folder: str
    pictures: list[str]
    truths: list[dict[str, float]]
    notes: list[str]


def restored(payload: Payload) -> Scorecard:
    """Return the scorecard that was printed as JSON, its numbers that do not exist being NaN again.

    Raises
    ------
    KeyError
        If something is not there.
    """
    printed = cast("_Printed", payload)
    tables = cast("Mapping[str, list[dict[str, object]]]", payload)
    truths = [{**row} for row in printed["truths"]]
    return Scorecard(
        draws=printed["draws"],
        machines=printed["machines"],
        sizes=tuple(printed["sizes"]),
        fleets=printed["fleets"],
        digest=str(printed["digest"]),
        folder=str(printed["folder"]),
        pictures=tuple(printed["pictures"]),
        truths=tuple(Truths(str(row.pop("corner")), int(row.pop("seed")), row) for row in truths),
        card=Card(**{name: pd.DataFrame(tables[name]) for name in Card._fields}),
        notes=tuple(printed["notes"]),
    )


def _table(rows: pd.DataFrame, title: str) -> Table:
    """Return the table of designs and estimators."""
    headings = (
        *("design", "estimator", "fleets", "draws", "coverage", "worst corner", "bias/margin", "n95", "corners"),
        *(f"to {name}" for name in AGAINST),
    )
    cells = [(row["design"], row["estimator"], *_cells(row)) for _, row in rows.iterrows()]
    return table(headings, cells, title, 2, keys=2, spare=("draws", "fleets", "corners"))


def _gains(rows: pd.DataFrame) -> Table:
    """Return the table of machines that the recommended estimator saves, and the design's own."""
    headings = ("design", "estimator", "all corners", "95%", "corners", "worst corner")
    ours = [row for _, row in rows.iterrows() if row["estimator"] == RECOMMENDED or row["estimator"] not in _NAMES]
    title = f"machines that {AGAINST[0]} needs, divided by those that the estimator needs"
    return table(headings, [(row["design"], row["estimator"], *_gain(row)) for row in ours], title, 2, keys=2)


def _gain(row: pd.Series) -> list[str]:
    """Return cells of a gain: ≥ if some corners are more than they count as, ≤ if some are less, ~ if both."""
    above, below = row["bounded"] > row["at_most"], row["at_most"] > 0
    bounded = "~ " if above and below else "≥ " if above else "≤ " if below else ""
    return [
        f"{bounded}{number(row['gain'], '.2f', _DASH)}",
        interval(row["low"], row["high"], ".2f", _DASH),
        f"{row['corners']}",
        f"{_rough(row['worst'], '.2f', 100 * row['worst_error'])} {row['worst_corner']}",
    ]


def _cells(row: pd.Series) -> list[str]:
    return [
        f"{row['fleets']:,}",
        f"{row['draws']:,}",
        f"{100 * row['coverage']:.1f}% ± {number(_told(row), '.1f', _DASH)}",
        f"{100 * row['worst']:.1f}% {row['worst_corner']}",
        number(row["bias_to_margin"], ".2f", _DASH),
        _rough(row["n95"], ",.0f", 100 * row["n95_error"]),
        f"{row['corners']:.0f}",
        *(number(row[name], ".2f", _DASH) for name in AGAINST),
    ]


def _told(row: pd.Series) -> float:
    """Return the standard error of a coverage in per cent; NaN where fleets cannot tell it."""
    known = row["fleets"] >= LEAST_FLEETS and row["coverage_error"] > 0
    return 100 * float(row["coverage_error"]) if known else math.nan


def _rough(value: float, form: str, error: float) -> str:
    """Return a number with its relative standard error in per cent, if both are known."""
    return number(value, form, _DASH) + (f" ± {error:.0f}%" if math.isfinite(error) and error > 0 else "")
