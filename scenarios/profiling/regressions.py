"""Planted regressions of simulated fleets: does the alarm find them, name what is at fault, and else keep quiet?

Each pair of profiles is one collector's of one fleet: the first half of its horizon and the second, while roll-outs go
on. A regression is planted in some of the pairs, by causes in turn: a revision that is rolled out in the second half,
the new compiler, a platform, or a data centre, the last two from the midnight between. Its function is drawn from those
worth finding (`scenarios.profiling.planted`), its factor log-uniformly.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from analysis.profiling.regressions.comparison import alarms
from models.profiling.world import Incident
from models.randomness import stream
from scenarios.profiling.planted import (
    CAUSES,
    FACTORS,
    WORTH,
    PlantedFleet,
    chosen,
    over_fleets,
    world_of,
    worth_finding,
)
from scenarios.runs.parts import computed_parts, folder_of
from scenarios.views.terminal import Progress

PER_FLEET = 10
"""Pairs of each kind that share a simulated fleet; every pair has a collector of its own."""


@dataclass(frozen=True, slots=True)
class PlantedPair:
    """A pair of profiles in which a regression was planted, and what the alarm said of it."""

    fleet: int
    collector: int
    cause: str
    value: str
    """Of the cause."""
    application: str
    function: str
    factor: float
    share: float
    """Of the fleet's cycles."""
    outcome: str
    """right, otherwise (another function or cause was named first) or silent."""
    clearest: str
    """The clearest alarm."""
    beside: int
    """Alarms about other functions."""


@dataclass(frozen=True, slots=True)
class HealthyPair:
    """A pair of profiles in which nothing was planted."""

    fleet: int
    collector: int
    alarms: list[dict[str, Any]]
    """Their rows."""


@dataclass(frozen=True, slots=True)
class CauseOutcomes:
    """What became of the pairs of one planted cause."""

    cause: str
    pairs: int
    right: int
    otherwise: int
    silent: int
    beside: int
    """Alarms about other functions."""


@dataclass(frozen=True, slots=True)
class RegressionTrial:
    """How often planted regressions were named, and healthy pairs left alone."""

    named: float
    """Share of the planted of which the clearest alarm names function and cause."""
    named_error: float | None
    """Its standard error over fleets; none of one fleet."""
    quiet: float
    """Share of the healthy without any alarm."""
    quiet_error: float | None
    causes: list[CauseOutcomes]
    trials: list[PlantedPair]
    alarms: list[dict[str, Any]]
    """Of healthy pairs."""


def regressions(planted: int, healthy: int, out: Path, progress: Progress) -> RegressionTrial:
    """Return how often planted regressions were named, and healthy pairs left alone.

    Fleets that were judged before by this very code are read; what was interrupted goes on where it stopped.

    Parameters
    ----------
    planted, healthy : pairs of profiles of each kind, at least one
    out : folder of all runs
    progress : told what is being done and the share done

    Raises
    ------
    ValueError
        If there is nothing to plant or to leave alone.
    """
    shares = over_fleets(planted, healthy, PER_FLEET)
    question = {"world": asdict(world_of(0)), "factors": FACTORS, "worth": WORTH, "per_fleet": PER_FLEET}
    folder = folder_of(out, "regressions", question | {"pairs": list(shares.values())}, ["scipy", "pandas"])
    make = partial(judged, shares=shares)
    judged_fleets = computed_parts(
        list(shares), make, folder, {"planted", "healthy"}, progress, what="planting regressions"
    )
    return summary(
        [PlantedPair(**pair) for fleet in judged_fleets for pair in fleet["planted"]],
        [HealthyPair(**pair) for fleet in judged_fleets for pair in fleet["healthy"]],
    )


def summary(planted: Sequence[PlantedPair], healthy: Sequence[HealthyPair]) -> RegressionTrial:
    """Return what all pairs together say."""
    named, named_error = _share([pair.fleet for pair in planted], [pair.outcome == "right" for pair in planted])
    quiet, quiet_error = _share([pair.fleet for pair in healthy], [not pair.alarms for pair in healthy])
    return RegressionTrial(
        named=named,
        named_error=named_error,
        quiet=quiet,
        quiet_error=quiet_error,
        causes=[_outcomes(cause, [pair for pair in planted if pair.cause == cause]) for cause in CAUSES],
        trials=list(planted),
        alarms=[alarm for pair in healthy for alarm in pair.alarms],
    )


def _outcomes(cause: str, pairs: Sequence[PlantedPair]) -> CauseOutcomes:
    counts = Counter(pair.outcome for pair in pairs)
    beside = sum(pair.beside for pair in pairs)
    return CauseOutcomes(cause, len(pairs), counts["right"], counts["otherwise"], counts["silent"], beside)


def _share(fleets: Sequence[int], well: Sequence[bool]) -> tuple[float, float | None]:
    """Return the share that went well and its standard error, that of a ratio of sums over fleets drawn at random.

    Cochran (1977), equation 2.46; pairs of a fleet are alike. One fleet alone tells no error.
    """
    share, code = sum(well) / len(well), np.unique(fleets, return_inverse=True)[1]
    apart = np.bincount(code, np.array(well) - share)
    if len(apart) == 1:
        return share, None
    return share, float(np.sqrt(len(apart) / (len(apart) - 1) * (apart**2).sum())) / len(well)


class JudgedPairs(TypedDict):
    """What is kept of one fleet's pairs."""

    seed: int
    planted: list[dict[str, Any]]
    """The fields of `PlantedPair`."""
    healthy: list[dict[str, Any]]
    """The fields of `HealthyPair`."""


def judged(seed: int, shares: Mapping[int, Sequence[int]]) -> JudgedPairs:
    """Return what the alarm said of a fleet's pairs, as JSON keeps it.

    Parameters
    ----------
    seed : number of the fleet
    shares : how many pairs are planted and how many healthy, for each fleet
    """
    planted, healthy = shares[seed]
    fleet = PlantedFleet.of(world_of(seed), planted + healthy)
    worth = worth_finding(fleet.setting, fleet.spent())
    trials, quiet = [], []
    for i in range(planted):
        cause = CAUSES[(seed * PER_FLEET + i) % len(CAUSES)]
        incident, share = chosen(worth[worth["cause"] == cause], stream(seed, f"regression {i}"), fleet.half_s)
        raised = alarms(*fleet.pair(i, (incident,)), cluster="machine")
        outcome, clearest = _outcome(cause, incident, raised)
        pair = PlantedPair(
            fleet=seed,
            collector=i,
            cause=cause,
            value=getattr(incident, cause),
            application=incident.application,
            function=incident.function,
            factor=incident.factor,
            share=share,
            outcome=outcome,
            clearest=clearest,
            beside=int((raised["function"] != incident.function).sum()) if len(raised) else 0,
        )
        trials.append(asdict(pair))
    for i in range(planted, planted + healthy):
        false = alarms(*fleet.pair(i), cluster="machine").to_dict("records")
        rows = [{str(name): value for name, value in row.items()} for row in false]
        quiet.append(asdict(HealthyPair(seed, i, rows)))
    return {"seed": seed, "planted": trials, "healthy": quiet}


def _outcome(cause: str, incident: Incident, raised: pd.DataFrame) -> tuple[str, str]:
    """Return whether the clearest alarm is about the incident, and what it says."""
    if not len(raised):
        return "silent", ""
    first = raised.iloc[0]
    wanted = (incident.function, cause, getattr(incident, cause), incident.application)
    blamed = tuple(str(first[name]) for name in ("function", "dimension", "value", "application"))
    return "right" if blamed == wanted else "otherwise", " ".join(blamed)
