"""A row judged: what its criteria say over worlds, why some do not hold, and what is printed and told of it."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from analysis.figures.criteria import KINDS, PRINTED, Criterion, Kind, Verdict, judge, number, overall, printed
from scenarios.papers.causes import SuspectedCause
from scenarios.papers.rows import Reproduction, Row, published
from scenarios.views.conclusion import Payload

EXPLAINED_FROM: Final = 0.8
"""Share of all worlds, and of those in which a criterion fails, in which it must be true once its cause is removed."""
LIKE_SIZE: Final = 0.5
"""A sham is of like size from this share of how far removing the cause moves what is simulated."""
_COUNTS: Final[Mapping[int, str]] = {3: "three", 10: "ten"}
"""Words for how many worlds rows are judged on."""


@dataclass(frozen=True, slots=True)
class CauseTrial:
    """What was thought to be the cause, removed; and something of like size, removed instead.

    The cause explains a criterion that does not hold if without it, and not as they are nor without the other, the
    criterion is true in eight worlds of ten, and if eight of ten of the worlds in which it fails turn. A rate that the
    draws of all worlds give together must besides hold without the cause, and not without the other. A sham that moves
    the world less than half as far as removing the cause does shows nothing.
    """

    here: Criterion
    """In the worlds as they are."""
    cause: str
    """In words: what the world, or the method, is without."""
    without_cause: Criterion
    """The same in every world without the cause."""
    sham: str
    """In words: what it is without instead."""
    without_sham: Criterion
    sham_size: float
    """How far the sham moves what is simulated, as a share of how far removing the cause does."""

    @property
    def worlds(self) -> int:
        """On how many worlds it was tried."""
        return len(self.without_cause.values)

    @property
    def explains(self) -> bool:
        """Whether the effect goes with the cause, and with nothing of like size."""
        if self.sham_size < LIKE_SIZE:
            return False
        if self.here.pooled is not None and not (self.without_cause.holds and not self.without_sham.holds):
            return False
        wanted, others = EXPLAINED_FROM * self.worlds, max(self.here.holds_in, self.without_sham.holds_in)
        return self.without_cause.holds_in >= wanted > others and self.turned >= EXPLAINED_FROM * self.failing

    @property
    def failing(self) -> int:
        """In how many worlds the criterion fails as they are."""
        return self.worlds - self.here.holds_in

    @property
    def turned(self) -> int:
        """In how many of these it is true without the cause."""
        pairs = zip(self.here.values, self.without_cause.values, strict=True)
        return sum(self.here.keeps(without) and not self.here.keeps(as_is) for as_is, without in pairs)

    def __str__(self) -> str:
        verdict = "so this explains it in these worlds" if self.explains else "so this does not explain it"
        turned = f"{self.turned} of the {self.failing} in which it fails"
        without, sham, here = self.without_cause, self.without_sham, self.here
        return (
            f"{here.name}: {self.cause}, it holds in {without.holds_in} of {self.worlds} worlds{_together(without)}, "
            f"{turned}; {self.sham} ({self.sham_size:.2g} of the size), in {sham.holds_in}{_together(sham)}; "
            f"as they are, in {here.holds_in}{_together(here)}: {verdict}"
        )


def _together(criterion: Criterion) -> str:
    """Return the rate of all draws in brackets, where the criterion is one."""
    return "" if criterion.pooled is None else f" ({criterion.pooled:.3g} in all draws)"


@dataclass(frozen=True, slots=True)
class OtherPopulation:
    """How the row does where the CPU quota is spread over the jobs otherwise."""

    used: str
    reason: str
    """The paper's sentence, which decides which is used."""
    other: str
    verdict: Verdict | None
    """With the other; None where it was not measured."""
    worlds: int


@dataclass(frozen=True, slots=True, eq=False)
class JudgedRow:
    """A row judged over worlds: measured beside printed numbers by name, criteria, and what else is to be known."""

    id: str
    what: str
    criteria: tuple[Criterion, ...]
    """Of all kinds, in the order of the table; each has its number in every world."""
    worlds: tuple[int, ...]
    """Seeds of the worlds that it was judged on; what is measured, drawn and tabulated is of the first."""
    planned: tuple[int, ...]
    """Seeds of the worlds that its verdict is about."""
    published: Mapping[str, float]
    measured: Mapping[str, float]
    printed_cells: Mapping[str, Mapping[str, float]]
    """What the paper states of its own cells, and what follows from them: stated, computed."""
    note: str
    table: tuple[Mapping[Hashable, object], ...]
    """Further numbers, row by row."""
    files: tuple[str, ...]
    trials: tuple[CauseTrial, ...] = ()
    """Why criteria do not hold, as far as trials show it."""
    population: OtherPopulation | None = None
    recorded: "JudgedRow | None" = None
    """The row over all of its worlds as it was last measured, where worlds are not there or no cause was tried."""
    better: Mapping[str, float] = field(default_factory=dict)
    """What our better method does where the paper's is judged, by name."""

    def of_kind(self, kind: Kind) -> tuple[Criterion, ...]:
        """Return the criteria of one kind."""
        return tuple(criterion for criterion in self.criteria if criterion.kind == kind)

    @property
    def findings(self) -> tuple[Criterion, ...]:
        """The criteria that could fail in this world."""
        return self.of_kind("finding")

    @property
    def is_finding(self) -> bool:
        """Whether something of ours is judged, and not only arithmetic."""
        return bool(self.findings)

    @property
    def verdict(self) -> Verdict:
        """What the findings come to; without any, the other criteria."""
        return overall(criterion.verdict for criterion in self.findings or self.criteria)

    @property
    def holds(self) -> bool:
        """Whether the verdict is that it holds."""
        return self.verdict == "holds"

    def verdict_of(self, name: str) -> Verdict | None:
        """Return what the criteria of a number come to; None if it has none."""
        verdicts = [criterion.verdict for criterion in self.criteria if criterion.name == name]
        return overall(verdicts) if verdicts else None

    @property
    def held_in_first(self) -> bool:
        """Whether every criterion is true in the first world: how rows were judged when one world had to do."""
        return all(criterion.keeps(criterion.measured) for criterion in self.criteria)

    @property
    def complete(self) -> bool:
        """Whether all the worlds are there that the verdict is about."""
        return self.worlds == self.planned

    @property
    def scope(self) -> str:
        """Of which worlds it is said, where some are not there that the verdict is about; empty if none lacks."""
        if self.complete:
            return ""
        count = len(self.worlds)
        which = f"world {self.worlds[0]}, one" if count == 1 else f"worlds {self.worlds[0]} to {self.worlds[-1]}"
        return f"in {which} of {_COUNTS.get(len(self.planned), len(self.planned))}"

    @property
    def word(self) -> str:
        """The verdict in a word or two, and of which worlds it is said where some lack."""
        return ("" if self.is_finding else "check ") + self.scoped

    @property
    def scoped(self) -> str:
        """The verdict, and of which worlds it is said where some lack."""
        return f"{self.verdict} {self.scope}".strip()

    def payload(self) -> Payload:
        """Return what ``--json`` prints of the row."""
        return {
            "kind": "row",
            "id": self.id,
            "holds": self.holds if self.complete else None,
            "verdict": self.scoped,
            "finding": self.is_finding,
            "worlds": list(self.worlds),
            "planned_worlds": list(self.planned),
            "holds_in_first_world": self.held_in_first,
            "published": self.published,
            "measured": self.measured,
            "better_method": self.better,
            "note": self.note,
            "table": list(self.table),
            "criteria": [_payload(criterion, self.scope) for criterion in self.criteria],
            "printed_cells": self.printed_cells,
            "explanations": [_trial(trial) for trial in self.trials],
            "population": None if self.population is None else _population(self.population),
            "recorded": self.recorded and self.recorded.over_worlds(),
            "files": list(self.files),
        }

    def over_worlds(self) -> Payload:
        """Return what ``--json`` prints of a row that was measured before."""
        names = ("verdict", "worlds", "criteria", "explanations", "population")
        return {name: value for name, value in self.payload().items() if name in names}


def _payload(criterion: Criterion, scope: str) -> Payload:
    names = ("least", "lower_quartile", "median", "upper_quartile", "most")
    return {
        "name": criterion.name,
        "kind": criterion.kind,
        "relation": criterion.relation,
        "bound": criterion.bound,
        "measured": criterion.measured,
        "holds": None if scope else criterion.holds,
        "verdict": f"{criterion.verdict} {scope}".strip(),
        "holds_in": criterion.holds_in,
        "values": list(criterion.values),
        "spread": dict(zip(names, criterion.quartiles, strict=True)),
        "pooled": criterion.pooled,
        "reason": criterion.reason,
    }


def _trial(trial: CauseTrial) -> Payload:
    return {
        "criterion": trial.here.name,
        "cause": trial.cause,
        "without_cause": list(trial.without_cause.values),
        "cause_holds_in": trial.without_cause.holds_in,
        "cause_pooled": trial.without_cause.pooled,
        "sham": trial.sham,
        "sham_size": trial.sham_size,
        "without_sham": list(trial.without_sham.values),
        "sham_holds_in": trial.without_sham.holds_in,
        "sham_pooled": trial.without_sham.pooled,
        "holds_in": trial.here.holds_in,
        "pooled": trial.here.pooled,
        "worlds": trial.worlds,
        "failing": trial.failing,
        "turned": trial.turned,
        "explains": trial.explains,
    }


def _population(population: OtherPopulation) -> Payload:
    return {
        "used": population.used,
        "reason": population.reason,
        "other": population.other,
        "verdict": population.verdict,
        "worlds": population.worlds,
    }


def judgement(
    row: Row,
    outcome: Reproduction,
    written: Sequence[Path] = (),
    others: Sequence[pd.DataFrame] = (),
    *,
    trials: Sequence[CauseTrial] = (),
    population: OtherPopulation | None = None,
) -> JudgedRow:
    """Return what is to be said of a row: what was measured, judged by what was printed, and its files.

    Parameters
    ----------
    row : what was measured
    outcome : in the first world
    written : its files
    others : what was measured in the next worlds, in the order of their seeds
    trials : why criteria do not hold
    population : how it does with the other population
    """
    paper, tables = published(row.id), [outcome.measured, *others]
    criteria = judge(tables, paper, row_pool(row, tables))
    ours, theirs = beside(outcome.measured, paper, criteria)
    return JudgedRow(
        row.id,
        row.what,
        tuple(criteria),
        row.worlds[: len(tables)],
        row.worlds,
        theirs,
        ours,
        _from_cells(outcome.measured, paper),
        outcome.note,
        () if outcome.table is None else tuple(outcome.table.to_dict("records")),
        tuple(str(file) for file in written),
        tuple(trials),
        population,
        better=_better(outcome.measured),
    )


def row_pool(row: Row, worlds: Sequence[pd.DataFrame]) -> Mapping[str, float]:
    """Return the rates of a row that the draws of several worlds give together."""
    return row.pool(worlds) if row.pool and len(worlds) > 1 else {}


def trial(
    row: Row, criterion: Criterion, cause: SuspectedCause, without: Sequence[pd.DataFrame], sham: Sequence[pd.DataFrame]
) -> CauseTrial:
    """Return what removing a cause says of a criterion that does not hold.

    Parameters
    ----------
    row : that the criterion is of
    criterion : judged in the worlds as they are
    cause : of its failing, as it was thought
    without, sham : what the row measured in the same worlds without the cause, and without something else
    """
    by = cause.measured_as or criterion.name
    return CauseTrial(
        criterion,
        cause.cause,
        _again(row, criterion, without, by),
        cause.sham,
        _again(row, criterion, sham, criterion.name),
        cause.sham_size,
    )


def _again(row: Row, criterion: Criterion, worlds: Sequence[pd.DataFrame], name: str) -> Criterion:
    """Return a criterion judged in other worlds, or on another of their numbers."""
    pooled = None if criterion.pooled is None else row_pool(row, worlds)[name]
    return replace(criterion, values=tuple(number(world, name) for world in worlds), pooled=pooled)


def beside(
    measured: pd.DataFrame, paper: pd.DataFrame, criteria: Sequence[Criterion]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return measured and printed numbers by the same names, and those that have bounds; curves by ``name@x``.

    What follows from the paper's own printed cells is left out.
    """
    ours, theirs = {}, {}
    for series, x, value in _numbers(printed(paper, inputs=False)):
        if not series.startswith(PRINTED):
            name = name_at(series, x)
            ours[name], theirs[name] = number(measured, series, x), value
    return ours | {criterion.name: criterion.measured for criterion in criteria}, theirs


def _numbers(table: pd.DataFrame) -> list[tuple[str, float, float]]:
    return list(zip(table["series"], table["x"].astype(float), table["value"].astype(float), strict=True))


def _from_cells(computed: pd.DataFrame, paper: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return what the paper states of its own cells beside what follows from them, by name."""
    return {
        name_at(series, x).removeprefix(PRINTED): {"stated": value, "computed": number(computed, series, x)}
        for series, x, value in _numbers(printed(paper, inputs=False))
        if series.startswith(PRINTED)
    }


def _better(measured: pd.DataFrame) -> dict[str, float]:
    """Return how often our better methods, `testbed` and `adjusted`, are right or wrong, by name."""
    return {name_at(series, x): value for series, x, value in _numbers(measured) if _BETTER.fullmatch(series)}


_BETTER: Final = re.compile("(misrank|loss_max|wrong)_testbed|includes_new_adjusted")
"""What stands beside findings about a paper's method."""


def name_at(series: str, x: float) -> str:
    """Return the name of a single number, or of one on a curve."""
    return series if np.isnan(x) else f"{series}@{x:g}"


def in_words(row: JudgedRow) -> list[str]:
    """Return what the criteria of each kind say: those that do not hold by name, of the others how many do."""
    return [text for kind in KINDS if (text := _kind_in_words(kind, row.of_kind(kind)))]


def _kind_in_words(kind: Kind, criteria: Sequence[Criterion]) -> str:
    if not criteria:
        return ""
    failing = [str(criterion) for criterion in criteria if not criterion.holds]
    count = f"{kind}s: {len(criteria) - len(failing)} of {len(criteria)} hold"
    return f"{count}; {'; '.join(failing)}" if failing else count
