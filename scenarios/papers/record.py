"""What rows came to over all of their worlds when these were last measured: shipped, so that one world need not do.

`docs/verdicts.py` writes it. A row has a record only where it measures the recorded numbers in the worlds that are
there: then code and worlds are those of the record.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import isclose, isfinite, nan
from pathlib import Path
from typing import Final, TypedDict

from analysis.figures.criteria import Criterion, Kind, Verdict
from scenarios.papers.judged import CauseTrial, JudgedRow

RECORD: Final = Path(__file__).with_name("verdicts.json")
"""What was said of each row, in the order of the papers."""
_DIGITS: Final = 1e-3
"""Relative difference up to which a number is the recorded one, which has four digits."""
_Numbers = Sequence[float | None]
"""Of one world each; None of what could not be measured."""


class _Judged(TypedDict):
    """A criterion over all worlds."""

    name: str
    kind: Kind
    relation: str
    bound: float
    values: _Numbers
    pooled: float | None


class _Tried(TypedDict):
    """A cause that was removed."""

    criterion: str
    cause: str
    without_cause: _Numbers
    cause_pooled: float | None
    sham: str
    sham_size: float
    without_sham: _Numbers
    sham_pooled: float | None


class _Other(TypedDict):
    """The other population."""

    verdict: Verdict | None
    worlds: int


class _Row(TypedDict):
    """A row as it is on record."""

    id: str
    worlds: list[int]
    criteria: list[_Judged]
    explanations: list[_Tried]
    population: _Other | None


def recorded(row: JudgedRow) -> JudgedRow | None:
    """Return a row as it was judged over all of its worlds, with what was tried then; None without a record.

    Parameters
    ----------
    row : judged on the first of its worlds, or on more
    """
    told = _rows().get(row.id)
    if told is None or len(told["criteria"]) != len(row.criteria):
        return None
    pairs = list(zip(row.criteria, told["criteria"], strict=True))
    criteria = tuple(replace(here, values=_values(of["values"]), pooled=of["pooled"]) for here, of in pairs)
    if not all(_same_bound(*pair) for pair in pairs) or not all(map(_agree, row.criteria, criteria)):
        return None
    failing = {criterion.name: criterion for criterion in criteria if not criterion.holds}
    trials = tuple(_trial(failing[of["criterion"]], of) for of in told["explanations"])
    population, of = row.population, told["population"]
    if population and of:
        population = replace(population, verdict=of["verdict"], worlds=of["worlds"])
    return replace(row, criteria=criteria, worlds=tuple(told["worlds"]), trials=trials, population=population)


def known(row: str) -> tuple[Criterion, ...]:
    """Return the criteria of a row as they are on record; none without a record.

    Parameters
    ----------
    row : its id
    """
    of = _rows().get(row)
    return tuple(map(_criterion, of["criteria"])) if of else ()


def _criterion(of: _Judged) -> Criterion:
    """Return a criterion of the record; why it is one is said where it is measured."""
    return Criterion(of["name"], of["relation"], of["bound"], "", _values(of["values"]), of["kind"], of["pooled"])


@cache
def _rows() -> Mapping[str, _Row]:
    return {row["id"]: row for row in json.loads(RECORD.read_text(encoding="utf-8"))}


def _same_bound(here: Criterion, of: _Judged) -> bool:
    same = (here.name, here.kind, here.relation) == (of["name"], of["kind"], of["relation"])
    return same and _same(here.bound, of["bound"])


def _values(numbers: _Numbers) -> tuple[float, ...]:
    return tuple(nan if number is None else number for number in numbers)


def _agree(now: Criterion, then: Criterion) -> bool:
    """Return whether the numbers of the worlds that are there are the recorded ones."""
    return len(now.values) <= len(then.values) and all(map(_same, now.values, then.values))


def _same(now: float, then: float) -> bool:
    if not (isfinite(now) and isfinite(then)):
        return isfinite(now) == isfinite(then)
    return isclose(now, then, rel_tol=_DIGITS, abs_tol=1e-8)


def _trial(here: Criterion, told: _Tried) -> CauseTrial:
    """Return an experiment of the record, of a criterion in the worlds as they are."""
    without = replace(here, values=_values(told["without_cause"]), pooled=told["cause_pooled"])
    sham = replace(here, values=_values(told["without_sham"]), pooled=told["sham_pooled"])
    return CauseTrial(here, told["cause"], without, told["sham"], sham, told["sham_size"])
