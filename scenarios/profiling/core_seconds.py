"""Core-seconds by many collectors of one fleet: how far they are off the fleet's monitor, and how often they know it.

Only what visits count is needed, not the functions that it fell on, so hundreds of collectors cost as much as a few
that look at functions (`validate_profile`). The fleet is simulated for some of them at a time.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from analysis.profiling.metrics import core_seconds
from models.errors import InputError
from models.profiling.world import ProfileWorld
from scenarios.files.loader import load, settings
from scenarios.files.schema import ProfileScenario
from scenarios.profiling.collectors import frame
from scenarios.runs.parts import computed_parts, folder_of
from scenarios.views.terminal import Progress
from sim.fleet.arms import run_arm
from sim.profiling.collection import Collection, cycles_of_visits, visits_of
from sim.profiling.run import monitor_columns
from sim.profiling.setting import ProfileSetting

TOGETHER = 25
"""CollectorStudy for which the fleet is simulated at once."""
LEVEL = 0.95
"""Confidence of the intervals."""


@dataclass(frozen=True, slots=True)
class CollectorStudy:
    """Whose collectors are asked, and how many."""

    scenario: str
    """Of the library, of kind profile."""
    draws: int
    """CollectorStudy, with seeds from 0 on; rounded up to a multiple of `TOGETHER`."""
    overrides: tuple[str, ...] = ()
    """Values in place of the scenario's, as `--set` takes them."""


@dataclass(frozen=True, slots=True)
class CollectorSeconds:
    """How right one collector was; errors are relative."""

    seed: int
    visits: int
    """That answered."""
    error: float
    standard_error: float
    """As stated."""
    half_width: float
    covered: int
    """Whether its interval held the monitor's: 1 or 0."""
    by_platform_error: float
    by_fleet_error: float


@dataclass(frozen=True, slots=True)
class SecondsTrial:
    """What many collectors say together of core-seconds; errors are relative."""

    draws: int
    visits: float
    """Mean."""
    half_width: float
    """Mean."""
    coverage: float
    coverage_error: float
    """Standard error of the coverage."""
    error: float
    """Root mean square."""
    bias: float
    by_platform_bias: float
    by_fleet_bias: float
    spread: float | None
    """Standard deviation of errors in units of what was stated; none of one draw."""


def many(study: CollectorStudy, out: Path, progress: Progress) -> SecondsTrial:
    """Return how right many collectors were about core-seconds.

    Those that were judged before by this very code are read; what was interrupted goes on where it stopped.

    Parameters
    ----------
    asked : whose collectors
    out : folder of all runs
    progress : told what is being done and the share done
    """
    question = {"world": asdict(world_of(study)), "together": TOGETHER, "level": LEVEL}
    folder = folder_of(out, f"core-seconds-{study.scenario}", question, ["scipy", "pandas"])
    first = range(0, study.draws, TOGETHER)
    groups = computed_parts(first, partial(judged, study), folder, {"draws"}, progress, what="counting core-seconds")
    return summary([CollectorSeconds(**draw) for group in groups for draw in group["draws"]])


def world_of(study: CollectorStudy) -> ProfileWorld:
    """Return the fleet, with a collector that counts cycles alone."""
    scenario = load(study.scenario, settings(list(study.overrides)))
    if not isinstance(scenario, ProfileScenario):
        raise InputError(f"{study.scenario}: should be of kind profile, got {scenario.kind}")
    world = scenario.world
    collector = replace(world.profiling.collector, events=("cycles",), stacks_per_s=0.0, watches=())
    return replace(world, profiling=replace(world.profiling, collector=collector))


class CollectorGroup(TypedDict):
    """What is kept of a group of collectors."""

    seed: int
    """Of the first."""
    draws: list[dict[str, Any]]
    """The fields of `CollectorSeconds`."""


def judged(study: CollectorStudy, seed: int) -> CollectorGroup:
    """Return how right a group of collectors was, as JSON keeps it.

    Parameters
    ----------
    asked : whose collectors
    seed : of the first of them
    """
    setting = ProfileSetting.of(world_of(study))
    several = [setting.with_collector(number) for number in range(seed, seed + TOGETHER)]
    collections = [Collection.of(own) for own in several]
    every = visits_of(collections)
    counted: list[list[pd.DataFrame]] = [[] for _ in collections]
    monitor: list[pd.DataFrame] = []
    for block in run_arm(setting.day, setting.arm, visits=every):
        monitor.append(frame(monitor_columns(setting, collections[0], block)))
        for parts, own, collection in zip(counted, several, collections, strict=True):
            parts.append(cycles_of_visits(own, collection, collection.view(block, every)))
    truth = pd.concat(monitor, ignore_index=True)
    draws = [
        asdict(
            _judged(number, pd.concat(parts), collection, truth, setting.world.fleet.machines * setting.world.epochs)
        )
        for number, (parts, collection) in enumerate(zip(counted, collections, strict=True), seed)
    ]
    return {"seed": seed, "draws": draws}


def _judged(
    seed: int, counted: pd.DataFrame, collection: Collection, monitor: pd.DataFrame, machine_epochs: int
) -> CollectorSeconds:
    """Return how right one collector was."""
    visits = frame(collection.sampler.visit_columns()).drop(columns="frequency_hz")
    visits = visits.merge(counted[["visit", "frequency_hz"]], "left", "visit")
    cycles = counted[["visit", "value"]]
    estimate = core_seconds(visits, cycles, monitor, confidence=LEVEL, machine_epochs=machine_epochs)
    return CollectorSeconds(
        seed,
        visits=int((visits["status"] == "ok").sum()),
        error=estimate.core_s / estimate.monitor_s - 1.0,
        standard_error=estimate.standard_error / estimate.monitor_s,
        half_width=(estimate.high - estimate.low) / 2.0 / estimate.core_s,
        covered=int(estimate.low <= estimate.monitor_s <= estimate.high),
        by_platform_error=estimate.by_platform_s / estimate.monitor_s - 1.0,
        by_fleet_error=estimate.by_fleet_s / estimate.monitor_s - 1.0,
    )


def summary(draws: Sequence[CollectorSeconds]) -> SecondsTrial:
    """Return what all collectors together say."""
    rows = pd.DataFrame(list(draws))
    coverage = float(rows["covered"].mean())
    in_errors = rows["error"] / rows["standard_error"]
    return SecondsTrial(
        draws=len(rows),
        visits=float(rows["visits"].mean()),
        half_width=float(rows["half_width"].mean()),
        coverage=coverage,
        coverage_error=math.sqrt(coverage * (1.0 - coverage) / len(rows)),
        error=float(np.sqrt((rows["error"] ** 2).mean())),
        bias=float(rows["error"].mean()),
        by_platform_bias=float(rows["by_platform_error"].mean()),
        by_fleet_bias=float(rows["by_fleet_error"].mean()),
        spread=float(in_errors.std(ddof=1)) if len(rows) > 1 else None,
    )
