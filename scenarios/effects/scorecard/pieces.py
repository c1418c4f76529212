"""Pieces of a scorecard: one simulated fleet each, every estimator put to many draws of test machines of each size.

A piece belongs to the name of a corner and a seed and to nothing else, so that it may be worked on anywhere, at any
time, and again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple, TypedDict

import numpy as np
import pandas as pd

from analysis.effects.arrangements import Arrangement, drawn
from analysis.effects.cells import JobMachineSums
from analysis.effects.estimator import PotentialTables
from analysis.effects.methods import method, names, together
from analysis.effects.study import Answers, EffectMethod
from models.arrays import Bools, Floats
from models.code.parts import Part, is_part, part
from models.errors import InputError
from models.randomness import stream
from scenarios.effects.own import OwnEstimator, own_names

SIZES = (12, 25, 50, 100, 200, 400)
"""Test machines, if nothing else is said."""
CONFIDENCE = 0.95
DETECTED = 0.01
"""Relative change whose detection is counted."""
PARTS = frozenset({"corner", "seed", "machines", "truths", "rows"})
"""What every piece has."""


class Piece(NamedTuple):
    """A simulated fleet: the corner of the sweep that it belongs to, and its seed."""

    corner: str
    seed: int

    def named(self) -> dict[str, str | int]:
        """Return the names by which the piece is told from the others.

        Examples
        --------
        >>> Piece("base", 3).named()
        {'corner': 'base', 'seed': 3}
        """
        return {"corner": self.corner, "seed": self.seed}


class Score(TypedDict):
    """How right an estimator was on one fleet, over all draws of a size; None where nothing was answered."""

    design: str
    machines: int
    """Of the test; sizes that a design cannot choose are left out."""
    estimator: str
    draws: int
    answered: int
    """Draws with an answer."""
    covered: int
    """Intervals of 95% that hold the truth."""
    detected: int
    """Draws that would exclude 0 if the change were +1%."""
    bias: float | None
    sd: float | None
    """None of one draw, too."""
    error: float | None
    """Mean standard error; of estimators of other people, of a normal distribution with their interval."""
    margin: float | None
    """Mean half-width of the interval."""


class JudgedFleet(TypedDict):
    """What is kept of one fleet."""

    corner: str
    seed: int
    machines: int
    truths: dict[str, float]
    """By design."""
    rows: list[Score]


class DesignTables(NamedTuple):
    """The tables of a design of one course, for estimators that take tables: see `PotentialTables`."""

    before: pd.DataFrame
    off: pd.DataFrame
    on: pd.DataFrame
    jobs: pd.DataFrame


class ScorecardDesign(NamedTuple):
    """A way to run an experiment on a fleet, all courses of which are known."""

    name: str
    courses: tuple[JobMachineSums, ...]
    """Potential outcomes of all machines; several if they depend on a random schedule."""
    truth: float
    """Change of the full fleet, relative."""
    chosen: Arrangement | None = None
    """How machines are chosen, and the design's own estimator, judged beside those asked for; None: at random."""
    estimators: frozenset[str] | None = None
    """Of those asked for, the ones that are judged on the design; None: all of them."""
    thinned: int = 1
    """A design that takes longer to draw and estimate gets one of so many of the draws asked for."""
    tables: DesignTables | None = None
    """For estimators of other people, which are not judged on designs without them."""


Fleets = Callable[[str, int, int], Iterable[ScorecardDesign]]
"""From corner, seed and number of machines to the designs that can be tried on that fleet."""


@dataclass(frozen=True, slots=True)
class ScorecardQuestion:
    """What is asked of every piece."""

    estimators: tuple[str, ...]
    sizes: tuple[int, ...]
    """Test machines; of those above half of a fleet's machines no draws are made."""
    draws: int = 500
    """Of each size and design."""
    machines: int = 1000
    """Of each fleet."""
    designs: tuple[str, ...] = ()
    """Those that are judged; all that there are, if none is named."""
    own: tuple[Part, ...] = ()
    """Estimators of other people, judged beside those."""

    @classmethod
    def of(
        cls, estimators: Sequence[str], sizes: Sequence[int], draws: int, machines: int, designs: Sequence[str]
    ) -> "ScorecardQuestion":
        """Return the question about estimators by name, those of other people as ``mine.py:Mine``; all of ours if none.

        Raises
        ------
        InputError
            If no size is that of at most half of the machines, an estimator is not there, or two have one name.
        """
        if 2 * min(sizes) > machines:
            raise InputError(f"sizes should have one of at most half of {machines} machines, got {min(sizes)}")
        ours = tuple(name for name in estimators if not is_part(name)) if estimators else names()
        for name in ours:
            method(name, names(), own=True)
        own = tuple(part(name) for name in estimators if is_part(name))
        own_names([OwnEstimator.of_part(estimator) for estimator in own])
        return cls(ours, tuple(sorted(sizes)), draws, machines, tuple(designs), own)


def cut(corners: Sequence[str], fleets: int, first: int = 1) -> tuple[Piece, ...]:
    """Return the pieces of so many fleets: corners take turns, each with seeds of its own from `first` on.

    Examples
    --------
    >>> cut(["base", "churn"], 3)
    (Piece(corner='base', seed=1), Piece(corner='churn', seed=1), Piece(corner='base', seed=2))
    """
    return tuple(Piece(corners[i % len(corners)], first + i // len(corners)) for i in range(fleets))


def judged(questions: ScorecardQuestion, fleets: Fleets, piece: Piece) -> JudgedFleet:
    """Return how right every estimator was on one fleet; plain numbers, ready for JSON.

    Parameters
    ----------
    questions : estimators, sizes, draws
    fleets : of a module, since other processes import it
    piece : corner and seed

    Raises
    ------
    ValueError
        If there is no such estimator or corner.

    Examples
    --------
    >>> from analysis.effects.study import potential
    >>> import pandas as pd
    >>> past = pd.DataFrame({"period": 0, "job": "a", "machine": range(8), "weight": 1.0, "value": 2.0, "treated": 0})
    >>> now = past.assign(period=1, value=[2.0, 2.1, 1.9, 2.0, 2.2, 2.0, 1.9, 2.1])
    >>> whole = ScorecardDesign("day", (potential(past, now, now.assign(value=1.1 * now["value"])),), 0.1)
    >>> counted = judged(ScorecardQuestion(("ratio",), (3,), draws=5, machines=8), lambda *_: [whole], Piece("base", 1))
    >>> counted["truths"], counted["rows"][0]["draws"], 0 <= counted["rows"][0]["covered"] <= 5
    ({'day': 0.1}, 5, True)
    """
    methods, own = (
        [method(name) for name in questions.estimators],
        [OwnEstimator.of_part(part) for part in questions.own],
    )
    truths, rows = dict[str, float](), list[Score]()
    for design in fleets(piece.corner, piece.seed, questions.machines):
        if questions.designs and design.name not in questions.designs:
            continue
        truths[design.name] = float(design.truth)
        used = [estimator for estimator in methods if design.estimators is None or estimator.name in design.estimators]
        for size in questions.sizes:
            if _fits(design, size):
                of_design, draws = _draws(questions, piece, design, size)
                added = [estimator for estimator in of_design if estimator.name not in questions.estimators]
                rows += _scores([*used, *added], design, size, draws)
                rows += _own_scores(own, design, size, draws)
    return {
        "corner": piece.corner,
        "seed": piece.seed,
        "machines": questions.machines,
        "truths": truths,
        "rows": rows,
    }


def _fits(design: ScorecardDesign, size: int) -> bool:
    within = 2 * size <= len(design.courses[0].machines)
    return within and (design.chosen is None or design.chosen.fits(size))


def _draws(
    questions: ScorecardQuestion, piece: Piece, design: ScorecardDesign, size: int
) -> tuple[tuple[EffectMethod, ...], list[Bools]]:
    """Return the design's own estimators, and the draws of each course, (R, M); courses share them evenly."""
    rng = stream(piece.seed, f"{size} test machines of {design.name}, {piece.corner}")
    draws, own = max(questions.draws // design.thinned, 1), tuple[EffectMethod, ...]()
    if design.chosen is None:
        treated = drawn(len(design.courses[0].machines), size, draws, rng)
    else:
        own_estimator, treated = design.chosen.arrange(size, draws, rng)
        own = (own_estimator,)
    return own, [treated[i :: len(design.courses)] for i in range(len(design.courses))]


def _scores(
    methods: Sequence[EffectMethod], design: ScorecardDesign, size: int, draws: Sequence[Bools]
) -> Iterator[Score]:
    """Yield what each method says of all draws of a size."""
    courses = [(cells, treated) for cells, treated in zip(design.courses, draws, strict=True) if len(treated)]
    told = zip(*(together(methods, cells, treated) for cells, treated in courses), strict=True)
    for estimator, parts in zip(methods, told, strict=True):
        answers = Answers(*(np.concatenate(parts_) for parts_ in zip(*parts, strict=True)))
        known = np.isfinite(answers.change) & np.isfinite(answers.error) & (answers.freedom > 0)
        answers = Answers(*(column[known] for column in answers))
        margin = answers.margin(CONFIDENCE)
        yield _score(
            design, size, estimator.name, len(known), _Intervals(answers.change, margin, margin, answers.error)
        )


def _own_scores(
    own: Sequence[OwnEstimator], design: ScorecardDesign, size: int, draws: Sequence[Bools]
) -> Iterator[Score]:
    """Yield what each estimator of other people says of all draws of a size; nothing of a design without tables."""
    if design.tables is None:
        return
    (treated,) = draws
    before, off, on, jobs = design.tables
    tables = PotentialTables(before, off, on, design.courses[0].machines, treated, jobs, CONFIDENCE)
    for estimator in own:
        answers = estimator.many(tables)
        change, low, high = answers[np.isfinite(answers).all(axis=1)].T
        error = (high - low) / (2 * NormalDist().inv_cdf((1 + CONFIDENCE) / 2))
        intervals = _Intervals(change, change - low, high - change, error)
        yield _score(design, size, estimator.name, len(answers), intervals)


class _Intervals(NamedTuple):
    """What an estimator says of the draws to which it has an answer: (A,) changes, how far each interval reaches below
    and above them, and standard errors."""

    change: Floats
    below: Floats
    above: Floats
    error: Floats


def _score(design: ScorecardDesign, size: int, estimator: str, draws: int, answers: _Intervals) -> Score:
    """Return the sums over so many draws of a size, of which some have an answer."""
    change, below, above, error = answers
    off = change - design.truth
    return {
        "design": design.name,
        "machines": size,
        "estimator": estimator,
        "draws": draws,
        "answered": len(off),
        "covered": int(((off <= below) & (-off <= above)).sum()),
        "detected": int((off + DETECTED > below).sum()),
        "bias": float(off.mean()) if len(off) else None,
        "sd": float(off.std(ddof=1)) if len(off) > 1 else None,
        "error": float(error.mean()) if len(off) else None,
        "margin": float(((below + above) / 2).mean()) if len(off) else None,
    }
