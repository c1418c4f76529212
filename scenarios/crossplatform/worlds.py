"""Many worlds of services, each judged and kept, and what they say together of methods: `wsc validate`."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pandas as pd

from analysis.statistics import student_quantile
from models.code.parts import is_part, part
from scenarios.crossplatform.trial import JudgedWorld, judge
from scenarios.files.schema import ServiceScenario
from scenarios.runs.parts import computed_parts, folder_of
from scenarios.views.terminal import Progress
from sim.services.run import services

BEST = "testbed"
"""The method that is put forward."""
RIVALS = ("cycle_scalar", "cycle_mix", "benchmark", "network", "modern")
"""What others would do instead."""
_CONFIDENCE = 0.95
_JUDGES = ("scikit-learn", "scipy", "pandas")
"""Libraries that decide what methods say, beside those that decide a run."""
PARTS = frozenset({"seed", "outside_hull", "methods", "choices", "platforms", "notes"})
"""What every judged world has."""
LEAST_WORLDS = 5
"""Worlds from which a share's interval and standard error over worlds are told."""


def worlds(scenario: ServiceScenario, out: Path, force: bool, progress: Progress) -> list[JudgedWorld]:
    """Return how every method did in each world of a scenario, by seed.

    Worlds that were judged before by this very code are read; the others are judged in as many processes as there are
    processors, and each is kept as soon as it is done: what was interrupted goes on where it stopped.

    Parameters
    ----------
    scenario : the first world; the next ones have the next seeds
    out : folder of all runs; the worlds are kept in `place`
    force : judge again what was judged before
    progress : told the share of the worlds that is done

    Raises
    ------
    FolderError
        If the folder cannot be made.
    ValueError
        If a world cannot be simulated.
    """
    seeds = range(scenario.seed, scenario.seed + scenario.analyses.crossplatform.worlds)
    return computed_parts(seeds, partial(_judged, scenario), place(scenario, out), PARTS, progress, force=force)


def place(scenario: ServiceScenario, out: Path) -> Path:
    """Return the folder of a scenario's judged worlds: same question and same code, same place, whatever the seed.

    Methods of somebody's own count by what their files hold.
    """
    settings = scenario.analyses.crossplatform
    methods = [f"{part(name).name} {part(name).sha256}" if is_part(name) else name for name in settings.methods]
    question = asdict(replace(scenario, seed=0).world) | asdict(settings) | {"worlds": 0, "methods": methods}
    return folder_of(out, f"{scenario.name}-worlds", question, _JUDGES)


class MethodScores(TypedDict):
    """What many worlds say of one method: medians over pairs of world and target, means of choices over worlds."""

    method: str
    service_error: float
    service_error_p90: float
    response_error: float
    coverage: float
    """Of 90% intervals, with its 95% interval over worlds."""
    coverage_low: float
    coverage_high: float
    half_width: float
    response_coverage: float
    response_coverage_low: float
    response_coverage_high: float
    response_half_width: float
    wrong: float
    loss: float
    beaten: float
    """Share of pairs in which the best method errs less."""


class RivalWins(TypedDict):
    """In which share of pairs of world and target the best method errs less than one rival."""

    rival: str
    share: float
    se: float


class BestMethod(TypedDict):
    """How the best method does beside its rivals, on pairs of world and target without a log."""

    method: str
    rivals: list[str]
    beats_every_rival: float
    """Share of pairs in which it errs less than the least of them, with low, high and standard error over worlds."""
    low: float
    high: float
    se: float
    beats: list[RivalWins]
    beats_each_rival: float
    """The smallest of those shares."""


class WorldsSummary(TypedDict):
    """What many worlds say of the methods; plain numbers, ready for JSON."""

    worlds: int
    outside_hull: float
    methods: list[MethodScores]
    targets: list[dict[Hashable, Any]]
    """Medians by method and target."""
    best: BestMethod
    platforms: list[dict[Hashable, Any]]
    """Medians over worlds."""
    notes: list[str]


def summary(judged: Sequence[JudgedWorld]) -> WorldsSummary:
    """Return what many worlds say of the methods, one world at least.

    Examples
    --------
    >>> row = {"target": "pres", "measured": False, "response_error": 0.1, "coverage": 0.9, "half_width": 0.1,
    ...        "response_coverage": 0.9, "response_half_width": 0.2}
    >>> rows = [row | {"method": "testbed", "service_error": 0.05}, row | {"method": "cycle_mix", "service_error": 0.4}]
    >>> choices = [{"method": name, "wrong": 0.1, "loss": 0.01} for name in ("testbed", "cycle_mix")]
    >>> world = {"seed": 1, "outside_hull": 0.7, "methods": rows, "choices": choices, "platforms": [], "notes": []}
    >>> answer = summary([world])
    >>> answer["best"]["beats_every_rival"], [method["service_error"] for method in answer["methods"]]
    (1.0, [0.05, 0.4])
    """
    rows = pd.DataFrame([{"seed": world["seed"], **row} for world in judged for row in world["methods"]])
    choices = pd.DataFrame([{"seed": world["seed"], **row} for world in judged for row in world["choices"]])
    platforms = pd.DataFrame([row for world in judged for row in world["platforms"]])
    medians = rows.drop(columns=["seed", "measured"]).groupby(["method", "target"], sort=False).median()
    return {
        "worlds": len(judged),
        "outside_hull": float(np.median([world["outside_hull"] for world in judged])),
        "methods": [_method(name, rows, choices) for name in rows["method"].drop_duplicates()],
        "targets": medians.reset_index().to_dict("records"),
        "best": _best(rows),
        "platforms": _medians(platforms),
        "notes": sorted({note for world in judged for note in world["notes"]}),
    }


def _method(name: str, rows: pd.DataFrame, choices: pd.DataFrame) -> MethodScores:
    own, chose = rows[rows["method"] == name], choices[choices["method"] == name]
    service, response = (_clustered(own, column) for column in ("coverage", "response_coverage"))
    return {
        "method": name,
        "service_error": float(own["service_error"].median()),
        "service_error_p90": float(own["service_error"].quantile(0.9)),
        "response_error": float(own["response_error"].median()),
        "coverage": service.mean,
        "coverage_low": service.low,
        "coverage_high": service.high,
        "half_width": float(own["half_width"].median()),
        "response_coverage": response.mean,
        "response_coverage_low": response.low,
        "response_coverage_high": response.high,
        "response_half_width": float(own["response_half_width"].median()),
        "wrong": float(chose["wrong"].mean()),
        "loss": float(chose["loss"].mean()),
        "beaten": float(_less(rows, [name]).mean()),
    }


def _best(rows: pd.DataFrame) -> BestMethod:
    """Return in which share of pairs of world and target the best method errs less than its rivals, all and each.

    Targets of which there is a log are left out: methods that learn from it need not go from one platform to another.
    Intervals and standard errors take worlds, not pairs, as independent. Rivals that say nothing do not count.
    """
    unseen = rows[~rows["measured"].astype(bool)]
    speaking = set(rows.loc[rows["service_error"].notna(), "method"])
    rivals = [name for name in RIVALS if name in speaking]
    together, *alone = (_wins(unseen, names) for names in (rivals, *([name] for name in rivals)))
    return {
        "method": BEST,
        "rivals": rivals,
        "beats_every_rival": together.mean,
        "low": together.low,
        "high": together.high,
        "se": together.se,
        "beats": [{"rival": name, "share": won.mean, "se": won.se} for name, won in zip(rivals, alone, strict=True)],
        "beats_each_rival": min((won.mean for won in alone), default=math.nan),
    }


def _wins(rows: pd.DataFrame, rivals: Sequence[str]) -> "_Share":
    return _clustered(_less(rows, rivals).rename("less").reset_index(), "less")


def _less(rows: pd.DataFrame, rivals: Sequence[str]) -> "pd.Series[float]":
    """Return for each pair of seed and target of which a rival says anything whether the best method errs less."""
    wide = rows.pivot_table(index=["seed", "target"], columns="method", values="service_error", sort=False)
    others = [name for name in rivals if name in wide and name != BEST]
    if BEST not in wide or not others:
        return pd.Series(dtype=float, index=wide.index[:0])
    least = wide[others].min(axis=1)
    return (wide[BEST] < least)[least.notna()].astype(float)


class _Share(NamedTuple):
    """A share over worlds, its standard error and the ends of its 95% interval."""

    mean: float
    se: float = math.nan
    low: float = math.nan
    high: float = math.nan


def _clustered(rows: pd.DataFrame, column: str) -> _Share:
    """Return the mean over worlds of a share, and how well it is known: what one world shares is one observation.

    The interval is Student's, cut at 0 and 1; of fewer than `LEAST_WORLDS` it is NaN.
    """
    shares = rows.groupby("seed")[column].mean().dropna().to_numpy()
    if not len(shares):
        return _Share(math.nan)
    mean = float(shares.mean())
    if len(shares) < LEAST_WORLDS:
        return _Share(mean)
    se = float(shares.std(ddof=1)) / math.sqrt(len(shares))
    half = float(student_quantile((1 + _CONFIDENCE) / 2, len(shares) - 1)) * se
    return _Share(mean, se, max(mean - half, 0.0), min(mean + half, 1.0))


def _medians(platforms: pd.DataFrame) -> list[dict[Hashable, Any]]:
    if not len(platforms):
        return []
    return platforms.groupby("platform", sort=False).median().reset_index().to_dict("records")


def _judged(scenario: ServiceScenario, seed: int) -> JudgedWorld:
    """Judge one world."""
    world = replace(scenario, seed=seed)
    return judge(services(world.world, types=False), world)
