"""Many worlds of one scenario, judged in parallel and summed up; each is kept as it is done, and not done twice."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t

from scenarios.crossplatform.judged_world import judge
from scenarios.files.schema import ServiceScenario
from scenarios.runs.kept import each, folder_of
from scenarios.views.output import Progress
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


def worlds(scenario: ServiceScenario, out: Path, force: bool, progress: Progress) -> list[dict[str, Any]]:
    """Return how every method did in each world of a scenario, by seed.

    Worlds that were judged before by this very code are read; the others are judged in as many processes as there are
    processors, and each is kept as soon as it is done: what was interrupted goes on where it stopped.

    Parameters
    ----------
    scenario : the first world; the next ones have the next seeds
    out : folder of all runs; the worlds are kept in `place`
    force : judge again what was judged before
    progress : told the share of the worlds that is done

    Returns
    -------
    list of dict
        As `judged_world.judge`.

    Raises
    ------
    FolderError
        If the folder cannot be made.
    ValueError
        If a world cannot be simulated.
    """
    seeds = range(scenario.seed, scenario.seed + scenario.analyses.crossplatform.worlds)
    return each(seeds, partial(_judged, scenario), place(scenario, out), PARTS, progress, force=force)


def place(scenario: ServiceScenario, out: Path) -> Path:
    """Return the folder of a scenario's judged worlds: same question and same code, same place, whatever the seed.

    Examples
    --------
    >>> one, other = (ServiceScenario(name="auction", seed=seed) for seed in (1, 2))
    >>> place(one, Path("runs")) == place(other, Path("runs")), place(one, Path("runs")).name[:15]
    (True, 'auction-worlds-')
    """
    asked = asdict(replace(scenario, seed=0).world) | asdict(scenario.analyses.crossplatform) | {"worlds": 0}
    return folder_of(out, f"{scenario.name}-worlds", asked, _JUDGES)


def summary(judged: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what many worlds say of the methods.

    Parameters
    ----------
    judged : worlds, one at least, as `judged_world.judge` returns them

    Returns
    -------
    dict
        worlds; outside_hull (median); methods, one row each: service_error and response_error (medians over pairs of
        world and target), service_error_p90, coverage and half_width of 90% intervals with the 95% interval of coverage
        over worlds (coverage_low, coverage_high), wrong and loss (means over worlds), beaten (share of pairs in which
        the best method errs less); targets: the same medians by method and target; best: method, rivals,
        beats_every_rival (share of pairs of world and target without a log in which it errs less than the least of
        them, with low, high and standard error se over worlds), beats (the same rival by rival: rival, share, se),
        beats_each_rival (the smallest of those shares); platforms: medians over worlds; notes.

    Examples
    --------
    >>> row = {"target": "pres", "measured": False, "response_error": 0.1, "coverage": 0.9, "half_width": 0.1,
    ...        "response_coverage": 0.9, "response_half_width": 0.2}
    >>> rows = [row | {"method": "testbed", "service_error": 0.05}, row | {"method": "cycle_mix", "service_error": 0.4}]
    >>> choices = [{"method": name, "wrong": 0.1, "loss": 0.01} for name in ("testbed", "cycle_mix")]
    >>> world = {"seed": 1, "outside_hull": 0.7, "methods": rows, "choices": choices, "platforms": [], "notes": []}
    >>> made = summary([world])
    >>> made["best"]["beats_every_rival"], [one["service_error"] for one in made["methods"]]
    (1.0, [0.05, 0.4])
    """
    rows = pd.DataFrame([{"seed": one["seed"], **row} for one in judged for row in one["methods"]])
    choices = pd.DataFrame([{"seed": one["seed"], **row} for one in judged for row in one["choices"]])
    platforms = pd.DataFrame([row for one in judged for row in one["platforms"]])
    medians = rows.drop(columns=["seed", "measured"]).groupby(["method", "target"], sort=False).median()
    return {
        "worlds": len(judged),
        "outside_hull": float(np.median([one["outside_hull"] for one in judged])),
        "methods": [_method(name, rows, choices) for name in rows["method"].drop_duplicates()],
        "targets": medians.reset_index().to_dict("records"),
        "best": _best(rows),
        "platforms": _medians(platforms),
        "notes": sorted({note for one in judged for note in one["notes"]}),
    }


def _method(name: str, rows: pd.DataFrame, choices: pd.DataFrame) -> dict[str, Any]:
    of, chose = rows[rows["method"] == name], choices[choices["method"] == name]
    made = {"method": name, "service_error": float(of["service_error"].median())}
    made["service_error_p90"] = float(of["service_error"].quantile(0.9))
    made["response_error"] = float(of["response_error"].median())
    for prefix in ("", "response_"):
        share = _clustered(of, f"{prefix}coverage")
        made |= {f"{prefix}coverage": share.mean, f"{prefix}coverage_low": share.low}
        made[f"{prefix}coverage_high"] = share.high
        made[f"{prefix}half_width"] = float(of[f"{prefix}half_width"].median())
    made |= {"wrong": float(chose["wrong"].mean()), "loss": float(chose["loss"].mean())}
    return made | {"beaten": float(_less(rows, [name]).mean())}


def _best(rows: pd.DataFrame) -> dict[str, Any]:
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
    there = [name for name in rivals if name in wide and name != BEST]
    if BEST not in wide or not there:
        return pd.Series(dtype=float, index=wide.index[:0])
    least = wide[there].min(axis=1)
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
    each = rows.groupby("seed")[column].mean().dropna().to_numpy()
    if not len(each):
        return _Share(math.nan)
    mean = float(each.mean())
    if len(each) < LEAST_WORLDS:
        return _Share(mean)
    se = float(each.std(ddof=1)) / math.sqrt(len(each))
    half = float(t.ppf((1 + _CONFIDENCE) / 2, len(each) - 1)) * se
    return _Share(mean, se, max(mean - half, 0.0), min(mean + half, 1.0))


def _medians(platforms: pd.DataFrame) -> list[dict[Hashable, Any]]:
    if not len(platforms):
        return []
    return platforms.groupby("platform", sort=False).median().reset_index().to_dict("records")


def _judged(scenario: ServiceScenario, seed: int) -> dict[str, Any]:
    """Judge one world."""
    world = replace(scenario, seed=seed)
    return judge(services(world.world, types=False), world)
