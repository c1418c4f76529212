"""Many worlds of one scenario, judged in parallel and summed up; each is kept as it is done, and not done twice."""

import hashlib
import json
import math
import os
from collections.abc import Hashable, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

import analysis
import models
import scenarios
import sim
from scenarios.execution import world_of
from scenarios.output import Progress
from scenarios.parallel import spread
from scenarios.provenance import source_digest, versions
from scenarios.rundir import make_folder
from scenarios.schema import ServiceScenario
from scenarios.scorecard import judge
from sim.services.run import services

BEST = "testbed"
"""The method that is put forward."""
RIVALS = ("cycle_scalar", "cycle_mix", "benchmark", "network", "modern")
"""What others would do instead."""
_CONFIDENCE = 0.95
_JUDGES = ("scikit-learn", "scipy", "pandas")
"""Libraries that decide what methods say, beside those that decide a run."""
_PARTS = {"seed", "outside_hull", "methods", "choices", "platforms", "notes"}
LEAST_WORLDS = 5
"""Worlds from which a share's interval over worlds is told."""


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
        As `scorecard.judge`.

    Raises
    ------
    FolderError
        If the folder cannot be made.
    ValueError
        If a world cannot be simulated.
    """
    folder = place(scenario, out)
    make_folder(folder)
    seeds = range(scenario.seed, scenario.seed + scenario.analyses.crossplatform.worlds)
    kept = {} if force else {seed: made for seed in seeds if (made := _kept(folder, seed)) is not None}
    missing = [seed for seed in seeds if seed not in kept]
    progress("judging worlds", len(kept) / len(seeds))
    for made in spread(partial(_judged, scenario), missing):
        _keep(folder, made)
        kept[made["seed"]] = made
        progress("judging worlds", len(kept) / len(seeds))
    return [kept[seed] for seed in seeds]


def place(scenario: ServiceScenario, out: Path) -> Path:
    """Return the folder of a scenario's judged worlds: same question and same code, same place, whatever the seed.

    Examples
    --------
    >>> one, other = (ServiceScenario(name="auction", seed=seed) for seed in (1, 2))
    >>> place(one, Path("runs")) == place(other, Path("runs")), place(one, Path("runs")).name[:15]
    (True, 'auction-worlds-')
    """
    asked = asdict(world_of(replace(scenario, seed=0))) | asdict(scenario.analyses.crossplatform) | {"worlds": 0}
    made_by = source_digest(models, sim, analysis, scenarios), versions(), [version(name) for name in _JUDGES]
    text = json.dumps([asked, *made_by], separators=(",", ":"), sort_keys=True)
    return out / f"{scenario.name}-worlds-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def summary(judged: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what many worlds say of the methods.

    Parameters
    ----------
    judged : worlds, one at least, as `scorecard.judge` returns them

    Returns
    -------
    dict
        worlds; outside_hull (median); methods, one row each: service_error and response_error (medians over pairs of
        world and target), service_error_p90, coverage and half_width of 90% intervals with the 95% interval of coverage
        over worlds (coverage_low, coverage_high), wrong and loss (means over worlds), beaten (share of pairs in which
        the best method errs less); targets: the same medians by method and target; best: method, rivals and
        beats_every_rival (share of pairs of world and target without a log, with low and high over worlds); platforms:
        medians over worlds; notes.

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
        share, low, high = _clustered(of, f"{prefix}coverage")
        made |= {f"{prefix}coverage": share, f"{prefix}coverage_low": low, f"{prefix}coverage_high": high}
        made[f"{prefix}half_width"] = float(of[f"{prefix}half_width"].median())
    made |= {"wrong": float(chose["wrong"].mean()), "loss": float(chose["loss"].mean())}
    return made | {"beaten": float(_less(rows, [name]).mean())}


def _best(rows: pd.DataFrame) -> dict[str, Any]:
    """Return in which share of pairs of world and target the best method errs less than every rival that says anything.

    Targets of which there is a log are left out: methods that learn from it need not go from one platform to another.
    The interval takes worlds, not pairs, as independent.
    """
    unseen = rows[~rows["measured"].astype(bool)]
    speaking = set(rows.loc[rows["service_error"].notna(), "method"])
    rivals = [name for name in RIVALS if name in speaking]
    share, low, high = _clustered(_less(unseen, rivals).rename("less").reset_index(), "less")
    return {"method": BEST, "rivals": rivals, "beats_every_rival": share, "low": low, "high": high}


def _less(rows: pd.DataFrame, rivals: Sequence[str]) -> "pd.Series[float]":
    """Return for each pair of seed and target of which a rival says anything whether the best method errs less."""
    wide = rows.pivot_table(index=["seed", "target"], columns="method", values="service_error", sort=False)
    there = [name for name in rivals if name in wide and name != BEST]
    if BEST not in wide or not there:
        return pd.Series(dtype=float, index=wide.index[:0])
    least = wide[there].min(axis=1)
    return (wide[BEST] < least)[least.notna()].astype(float)


def _clustered(rows: pd.DataFrame, column: str) -> tuple[float, float, float]:
    """Return the mean over worlds of a share, and its 95% interval: what one world shares is one observation.

    The interval is Student's, cut at 0 and 1; of fewer than `LEAST_WORLDS` it is NaN.
    """
    each = rows.groupby("seed")[column].mean().dropna().to_numpy()
    if not len(each):
        return math.nan, math.nan, math.nan
    mean = float(each.mean())
    if len(each) < LEAST_WORLDS:
        return mean, math.nan, math.nan
    half = float(t.ppf((1 + _CONFIDENCE) / 2, len(each) - 1)) * float(each.std(ddof=1)) / math.sqrt(len(each))
    return mean, max(mean - half, 0.0), min(mean + half, 1.0)


def _medians(platforms: pd.DataFrame) -> list[dict[Hashable, Any]]:
    if not len(platforms):
        return []
    return platforms.groupby("platform", sort=False).median().reset_index().to_dict("records")


def _judged(scenario: ServiceScenario, seed: int) -> dict[str, Any]:
    """Judge one world."""
    world = replace(scenario, seed=seed)
    return judge(services(world_of(world), types=False), world)


def _keep(folder: Path, made: dict[str, Any]) -> None:
    """Keep what was found of a world, all of it or nothing."""
    file = _file(folder, made["seed"])
    unfinished = file.with_name(f"{file.name}.{os.getpid()}.partial")
    try:
        unfinished.write_text(json.dumps(made), encoding="utf-8")
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def _kept(folder: Path, seed: int) -> dict[str, Any] | None:
    """Return what was kept of a world; None if nothing was, or it cannot be read."""
    try:
        made = json.loads(_file(folder, seed).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return made if isinstance(made, dict) and made.get("seed") == seed and made.keys() >= _PARTS else None


def _file(folder: Path, seed: int) -> Path:
    return folder / f"{seed}.json"
