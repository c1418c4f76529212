"""`wsc scorecard`: every estimator, design and size over many simulated fleets, in pieces kept as they are done."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from analysis.effects.methods import RECOMMENDED, names
from scenarios.effects.scorecard.card import summary
from scenarios.effects.scorecard.needed import AGAINST
from scenarios.effects.scorecard.pictures import pictures
from scenarios.effects.scorecard.pieces import PARTS, Asked, Fleets, Piece, judged
from scenarios.runs.executors import PROCESSES, executor
from scenarios.runs.kept import digest, each, folder_of
from scenarios.views.output import Progress

if TYPE_CHECKING:
    from rich.console import Console

_NAMES = frozenset(names())
_BESIDE = frozenset({RECOMMENDED, *AGAINST})
_JUDGES = ("scipy", "pandas")
"""Libraries that decide what estimators say, beside those that decide a fleet."""
LEAST_FLEETS = 3
"""Of fewer no error over fleets is told."""


def place(asked: Asked, out: Path) -> Path:
    """Return the folder of a scorecard's pieces: same question to a fleet and same code, same place.

    Examples
    --------
    >>> place(Asked(("cuped",), (25,)), Path("runs")).name[:10]
    'scorecard-'
    """
    return folder_of(out, "scorecard", asdict(asked), _JUDGES)


def scorecard(
    asked: Asked,
    pieces: Sequence[Piece],
    fleets: Fleets,
    out: Path,
    tell: Progress,
    *,
    where: str = PROCESSES,
    workers: int | None = None,
) -> dict[str, Any]:
    """Return how right estimators are over many fleets.

    Pieces that were judged before by this very code are read; what was interrupted, or killed, goes on where it stopped
    and ends with the same digest, whatever it runs on.

    Parameters
    ----------
    asked : what every piece is asked
    pieces : fleets, one at least
    fleets : makes them; of a module, since other processes import it
    out : folder of all runs; pieces and pictures go into a folder there
    tell : told the share of the pieces that is done
    where, workers : as for `executors.executor`

    Returns
    -------
    dict
        kind, draws, machines, sizes, fleets, digest (SHA-256 over all pieces), folder, pictures (files), truths
        (corner, seed and the truth by design), and what `card.summary` says.

    Raises
    ------
    ExecutorError
        If there is nothing to work with at `where`.
    RunError
        If a worker ends without an answer.
    FolderError
        If the folder cannot be made.
    """
    folder = place(asked, out)
    make = partial(judged, asked, fleets)
    with executor(where, workers) as pool:
        made = each(pieces, make, folder, PARTS, tell, what="judging fleets", named=Piece.named, executor=pool)
    return told(made, asked, folder)


def told(made: Sequence[Mapping[str, Any]], asked: Asked, folder: Path) -> dict[str, Any]:
    """Return what a scorecard says of pieces that were judged, one at least; its pictures go into their folder."""
    card = summary(made)
    return {
        "kind": "scorecard",
        "draws": asked.draws,
        "machines": asked.machines,
        "sizes": list(asked.sizes),
        "fleets": len(made),
        "digest": digest(made),
        "folder": str(folder),
        "pictures": [str(file) for file in pictures(card, folder)],
        "truths": [{"corner": one["corner"], "seed": one["seed"], **one["truths"]} for one in made],
        **card,
    }


def show(payload: Mapping[str, Any], console: "Console") -> None:
    """Print a scorecard for people."""
    title = f"{payload['fleets']} fleets of {payload['machines']:,} machines, {payload['draws']} draws of each size"
    console.print(_table(payload["estimators"], title))
    console.print(
        "fleets: of all corners; draws: of all fleets and sizes; coverage: of 95% intervals, all sizes, ± standard\n"
        "error over fleets, – of fewer than three or if they do not differ; bias/margin: the greatest of a corner;\n"
        "n95: test machines at which +1% is detected in 95% of draws, geometric mean over corners where it is known;\n"
        "to cuped, to published: how many times as many machines are needed."
    )
    if payload["drawn"]:
        rows = [row for row in payload["drawn"] if row["estimator"] in _BESIDE or row["estimator"] not in _NAMES]
        console.print(_table(rows, "the corners drawn at random, beside those"))
    console.print(_gains(payload["gains"]))
    for row in payload["silent"]:
        console.print(f"{row['estimator']} has no answer to {row['design']}", markup=False)
    console.print(f"pieces and pictures: {payload['folder']}", markup=False, soft_wrap=True)
    console.print(f"digest: {payload['digest']}", markup=False, soft_wrap=True)


def _table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """Return the table of designs and estimators."""
    table = Table(box=SIMPLE_HEAD, title=title, title_justify="left")
    for name in ("design", "estimator"):
        table.add_column(name)
    for name in (
        "fleets",
        "draws",
        "coverage",
        "worst corner",
        "bias/margin",
        "n95",
        "corners",
        *(f"to {one}" for one in AGAINST),
    ):
        table.add_column(name, justify="right")
    before = None
    for row in rows:
        if before not in {None, row["design"]}:
            table.add_section()
        before = row["design"]
        table.add_row(row["design"], row["estimator"], *_cells(row))
    return table


def _gains(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of machines that the recommended estimator saves, and the design's own."""
    table = Table(box=SIMPLE_HEAD, title=f"how many times as many machines {AGAINST[0]} needs", title_justify="left")
    for name in ("design", "estimator"):
        table.add_column(name)
    for name in ("all corners", "95%", "corners", "worst corner"):
        table.add_column(name, justify="right")
    for row in rows:
        if row["estimator"] == RECOMMENDED or row["estimator"] not in _NAMES:
            table.add_row(row["design"], row["estimator"], *_gain(row))
    return table


def _gain(row: Mapping[str, Any]) -> list[str]:
    """Return cells of a gain: ≥ if some corners are more than they count as, ≤ if some are less, ~ if both."""
    above, below = row["bounded"] > row["at_most"], row["at_most"] > 0
    bounded = "~ " if above and below else "≥ " if above else "≤ " if below else ""
    error = 100 * row["worst_error"]
    return [
        f"{bounded}{_number(row['gain'], '.2f')}",
        f"{row['low']:.2f} to {row['high']:.2f}" if math.isfinite(row["low"]) else "–",
        f"{row['corners']}",
        f"{_rough(row['worst'], '.2f', error)} {row['worst_corner']}",
    ]


def _cells(row: Mapping[str, Any]) -> list[str]:
    return [
        f"{row['fleets']:,}",
        f"{row['draws']:,}",
        f"{100 * row['coverage']:.1f}% ± {_number(_told(row), '.1f')}",
        f"{100 * row['worst']:.1f}% {row['worst_corner']}",
        _number(row["bias_to_margin"], ".2f"),
        _rough(row["n95"], ",.0f", 100 * row["n95_error"]),
        f"{row['corners']:.0f}",
        *(_number(row[name], ".2f") for name in AGAINST),
    ]


def _told(row: Mapping[str, Any]) -> float:
    """Return the standard error of a coverage in per cent; NaN where fleets cannot tell it."""
    known = row["fleets"] >= LEAST_FLEETS and row["coverage_error"] > 0
    return 100 * row["coverage_error"] if known else math.nan


def _rough(value: float, form: str, error: float) -> str:
    """Return a number with its relative standard error in per cent, if both are known."""
    return _number(value, form) + (f" ± {error:.0f}%" if math.isfinite(error) and error > 0 else "")


def _number(value: float, form: str) -> str:
    return f"{value:{form}}" if math.isfinite(value) else "–"
