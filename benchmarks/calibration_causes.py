"""Why facts of `world/calibration` miss: each on worlds without the cause, and on worlds without something else.

    python benchmarks/calibration_causes.py [--seeds 10]

Each fact is the mean over the seeds of the row: in the world as it is, without what is given as the cause, and with
another change of like size.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.figures.world import cpi
from scenarios.files.loader import Override, load
from scenarios.files.schema import SCENARIO
from scenarios.papers.calibration import LONG, MIXED, SEEDS, TODAY, records_of
from scenarios.runs.execution import obtain
from scenarios.runs.rundir import Run
from scenarios.views.terminal import dumps


@dataclass(frozen=True, slots=True)
class Cause:
    """A fact that misses, a change of the scenario that removes the cause, and another change of like size."""

    fact: str
    of: Mapping[str, object]
    """The scenario that the fact is measured on."""
    facts: Callable[[Run, int], pd.DataFrame]
    """From a run and its seed to facts, as series and value."""
    without: Mapping[str, object]
    other: Mapping[str, object]


def _spread(run: Run, seed: int) -> pd.DataFrame:
    return cpi.spread_facts(records_of(run, seed))


def _series(run: Run, _seed: int) -> pd.DataFrame:
    traced = run.table("instance_epochs", ["residence", "epoch", "cycles", "instructions"])
    return cpi.series_facts(traced, run.table("instances", ["residence", "job", "instance"]), _epoch_s(run))


def _epoch_s(run: Run) -> float:
    return float(run.world(SCENARIO).epoch_s)


_BEHAVIOUR = "population.behaviour"
_OTHERS = ("broadwell_2698v4", "skylake_6148", "rome_7742")
_ONE = {"fleet.platforms.haswell_2698v3": 1.0, **dict.fromkeys(f"fleet.platforms.{name}" for name in _OTHERS)}
_JOBS_ALIKE = {f"{_BEHAVIOUR}.overlap_log_sd": 0.2, f"{_BEHAVIOUR}.memory_accesses_log_sd": 0.3}
CAUSES = (
    Cause(
        "cpi_intraclass_correlation",
        MIXED,
        _spread,
        {**_JOBS_ALIKE, f"{_BEHAVIOUR}.input_log_sd": 2.0},
        _JOBS_ALIKE,
    ),
    Cause(
        "cpi_cv_between_jobs",
        MIXED,
        _spread,
        _JOBS_ALIKE,
        {f"{_BEHAVIOUR}.core_cpi_log_sd": 0.2},
    ),
    Cause(
        "cpi_cv_within_job_p25",
        MIXED,
        _spread,
        {f"{_BEHAVIOUR}.instance_log_sd": 0.0, f"{_BEHAVIOUR}.job_log_sd": 0.0},
        _ONE,
    ),
    Cause(
        "job_series_cv",
        LONG,
        _series,
        {f"{_BEHAVIOUR}.job_log_sd": 0.1},
        {f"{_BEHAVIOUR}.instance_log_sd": 0.08},
    ),
)
"""Facts that the row misses."""


def value(cause: Cause, more: Mapping[str, object], seed: int, folder: Path) -> float:
    """Return a fact on one seed's world with a change of its scenario; a key that becomes None is left out."""
    given = {**cause.of, **more, "seed": seed}
    overrides = [Override(key, dumps(setting), "value") for key, setting in given.items() if setting is not None]
    facts = cause.facts(obtain(load(TODAY, overrides), folder, False, lambda _what, _share: None), seed)
    return float(facts.set_index("series")["value"][cause.fact])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=len(SEEDS), metavar="N", help="first N seeds of the row")
    seeds = SEEDS[: parser.parse_args().seeds]
    print(f"{'fact':28} {'here':>7} {'without':>8} {'other':>7}   without: ...; other: ...")
    with tempfile.TemporaryDirectory() as folder:
        for cause in CAUSES:
            changes: tuple[Mapping[str, object], ...] = ({}, cause.without, cause.other)
            means = [sum(value(cause, more, seed, Path(folder)) for seed in seeds) / len(seeds) for more in changes]
            said = "; ".join(", ".join(f"{key}={given}" for key, given in more.items()) for more in changes[1:])
            print(f"{cause.fact:28} {means[0]:7.3f} {means[1]:8.3f} {means[2]:7.3f}   {said}", flush=True)


if __name__ == "__main__":
    main()
