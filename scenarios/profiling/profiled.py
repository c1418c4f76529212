"""What a run's profile says of its fleet, beside the truth where that is recorded: tables for commands and pictures."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.profiling.intervals import share_intervals
from analysis.profiling.metrics import CoreSeconds, core_seconds, coverage_of_stacks, cpi
from analysis.profiling.query import Query, Where
from models.profiling.world import ProfileWorld
from scenarios.files.schema import GWP
from scenarios.runs.rundir import Run
from scenarios.views.conclusion import Payload

if TYPE_CHECKING:
    from analysis.profiling.database import Database

COLLECTION: Where = (("collection", ("fleet",)),)
"""The profile of the whole fleet: other collections look at some of its machines again."""
ROLLED_OUT = ("compiler", "kernel", "platform")
"""Dimensions along which roll-outs are followed day by day."""
FUNCTION = ("image", "function")


def within_jobs(database: "Database") -> Where:
    """Return the restriction to the fleet's jobs: what machines do of their own, in brackets, is left out."""
    jobs = tuple(name for name in database.values("application") if not name.startswith("["))
    return (*COLLECTION, ("application", jobs))


@dataclass(frozen=True, slots=True)
class SampledEvent:
    """How much of an event the fleet's collection sampled."""

    event: str
    samples: int
    value: int


@dataclass(frozen=True, slots=True)
class StackCoverage:
    """Share of the cycles in processes that answer with stacks, and its interval."""

    share: float
    low: float
    high: float
    design_effect: float


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """What there is of samples, what they cover and what they cost."""

    events: tuple[SampledEvent, ...]
    visits: dict[str, int]
    """By status."""
    stacks: StackCoverage
    unsymbolised_share: float
    """Of cycles."""
    overhead_share: float
    """Cycles that profiling took, that of other collections too, over all cycles of the fleet."""
    core_seconds: CoreSeconds
    """NaN where too little was seen."""

    def payload(self) -> Payload:
        """Return what JSON says of it."""
        return asdict(self)


def facts(database: "Database", run: Run, world: ProfileWorld, confidence: float) -> ProfileFacts:
    """Return what there is of samples, what they cover and what they cost.

    Parameters
    ----------
    database : of the run
    run : a finished run
    world : that was simulated
    confidence : of the intervals, 0..1
    """
    visits = database.table("visits")
    cycles = database.clustered(Query(by=("process",), where=COLLECTION), "visit")
    cycles["process"] = cycles["process"].astype(np.int64)
    symbols = database.query(Query(by=("symbolised",), where=COLLECTION))
    known = symbols["symbolised"].astype(str).str.lower() == "true"
    covered = coverage_of_stacks(cycles, database.table("processes"), confidence=confidence).iloc[0]
    return ProfileFacts(
        tuple(SampledEvent(event, *database.total(Query(event, (), COLLECTION))) for event in database.events()),
        visits={str(name): int(count) for name, count in visits["status"].value_counts().sort_index().items()},
        stacks=StackCoverage(**{str(name): float(value) for name, value in covered.items()}),
        unsymbolised_share=float(symbols.loc[~known, "share"].sum()),
        overhead_share=float(visits["overhead_cycles"].sum() / run.table("epochs", ["cycles"])["cycles"].sum()),
        core_seconds=core_seconds(
            *_seconds(database, visits),
            run.table("monitor"),
            confidence=confidence,
            machine_epochs=world.fleet.machines * world.epochs,
        ),
    )


def _seconds(database: "Database", visits: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    cycles = database.query(Query(by=("visit",), where=COLLECTION))
    return visits[visits["collection"] == "fleet"], cycles.assign(visit=cycles["visit"].astype(np.int64))


def functions(database: "Database", run: Run, settings: GWP) -> pd.DataFrame:
    """Return the hottest functions of the fleet's jobs with intervals, beside the truth.

    Returns
    -------
    DataFrame
        image, function, share, low, high, samples, design_effect, true (share; NaN: not recorded); hottest first.
    """
    clustered = database.clustered(Query(by=FUNCTION, where=within_jobs(database)), "visit")
    shares = share_intervals(clustered, cluster="visit", confidence=settings.confidence).head(settings.top)
    return shares[[*FUNCTION, "share", "low", "high", "samples", "design_effect"]].merge(
        true_shares(run, FUNCTION), "left", list(FUNCTION)
    )


def applications(database: "Database", run: Run, settings: GWP) -> pd.DataFrame:
    """Return the applications with the most cycles: share and CPI with intervals, beside the truth.

    Returns
    -------
    DataFrame
        application, share, low, high, true, cpi, cpi_low, cpi_high, cpi_true; most cycles first.
    """
    query = Query(by=("application",), where=within_jobs(database))
    cycles = database.clustered(query, "visit")
    instructions = database.clustered(Query("instructions", query.by, query.where), "visit")
    shares = share_intervals(cycles, cluster="visit", confidence=settings.confidence).head(settings.top)
    ratios = cpi(cycles, instructions, cluster="visit", confidence=settings.confidence)
    ratios = ratios.rename(columns={"low": "cpi_low", "high": "cpi_high"})
    true = true_shares(run, query.by).merge(true_cpi(run), "outer", "application")
    table = shares[["application", "share", "low", "high"]].merge(true, "left", "application")
    return table.merge(ratios[["application", "cpi", "cpi_low", "cpi_high"]], "left", "application")


def rollouts(database: "Database") -> pd.DataFrame:
    """Return the share of each compiler, kernel and platform in the cycles of the jobs, day by day.

    Returns
    -------
    DataFrame
        dimension, day, name, share of the day; by dimension, day and name.
    """
    parts = []
    for dimension in ROLLED_OUT:
        rows = database.query(Query(by=("day", dimension), where=within_jobs(database)))
        rows = rows.assign(dimension=dimension, name=rows[dimension], day=rows["day"].astype(np.int64))
        shares = rows["value"] / rows.groupby("day")["value"].transform("sum")
        parts.append(rows.assign(share=shares)[["dimension", "day", "name", "share"]])
    return pd.concat(parts).sort_values(["dimension", "day", "name"], ignore_index=True)


def true_shares(run: Run, by: tuple[str, ...], event: str = "cycles") -> pd.DataFrame:
    """Return each key's true share of an event over the horizon, as `true`; no rows without the truth."""
    if not run.has("truth_functions"):
        return pd.DataFrame({name: pd.Series(dtype=object) for name in by} | {"true": pd.Series(dtype=float)})
    sums = run.table("truth_functions", [*by, event]).groupby(list(by), sort=True)[event].sum()
    return (sums / sums.sum()).rename("true").reset_index()


def true_cpi(run: Run) -> pd.DataFrame:
    """Return each application's true CPI over the horizon, as `cpi_true`; no rows without the truth."""
    if not run.has("truth_cpi"):
        return pd.DataFrame({"application": pd.Series(dtype=object), "cpi_true": pd.Series(dtype=float)})
    sums = run.table("truth_cpi").groupby("application")[["cycles", "instructions"]].sum()
    return (sums["cycles"] / sums["instructions"]).rename("cpi_true").reset_index()


@dataclass(frozen=True, slots=True)
class RolloutShares:
    """A roll-out's share of the jobs' cycles on the first and on the last day; NaN of a day without samples."""

    dimension: str
    name: str
    first: float
    last: float


def first_and_last(shares: pd.DataFrame, days: int) -> list[RolloutShares]:
    """Return every roll-out's shares on the first and on the last of a run's days; NaN of a day without samples.

    Examples
    --------
    >>> sampled = pd.DataFrame({"dimension": "kernel", "day": [0, 1], "name": "new", "share": [0.0, 0.5]})
    >>> first_and_last(sampled, 2), first_and_last(sampled, 3)[0].last
    ([RolloutShares(dimension='kernel', name='new', first=0.0, last=0.5)], nan)
    """
    sampled = set(shares["day"])

    def on(day: int, rows: pd.DataFrame) -> float:
        return float(rows.loc[rows["day"] == day, "share"].sum()) if day in sampled else math.nan

    return [
        RolloutShares(str(dimension), str(name), on(0, rows), on(days - 1, rows))
        for (dimension, name), rows in shares.groupby(["dimension", "name"], sort=True)
    ]


def error_of(estimate: float, true: float) -> float:
    """Return the relative error of an estimate; NaN where the truth is not known.

    Examples
    --------
    >>> error_of(1.02, 1.0), error_of(1.0, math.nan)
    (0.020000000000000018, nan)
    """
    return estimate / true - 1.0 if math.isfinite(true) and true else math.nan
