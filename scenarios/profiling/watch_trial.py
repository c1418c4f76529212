"""Planted incidents of simulated fleets: does `wsc profile watch` name them and their causes, and else keep quiet?

Each profile is one collector's of one fleet over its whole horizon, while a hardware refresh and releases go on; there
is no new compiler and no new kernel, which truly change what functions cost. In some profiles a function costs more
from the midnight between the halves on, on a platform or in a data centre, or with a revision that is rolled out in the
second half. It is drawn from those worth finding (`scenarios.profiling.planted`), its factor log-uniformly.

The stated size is judged, too: an incident could have been found if it makes its function grow, over all of the fleet,
by at least the factor that is stated for functions of its size.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

import numpy as np

from models.profiling.world import Incident, ProfileWorld
from models.randomness import stream
from scenarios.profiling.planted import FACTORS, WORTH, PlantedFleet, chosen, over_fleets, world_of, worth_finding
from scenarios.profiling.watch import ProfileWatch, watch
from scenarios.runs.parts import computed_parts, folder_of
from scenarios.views.terminal import Progress

PER_FLEET = 4
"""Profiles of each kind that share a simulated fleet; every one has a collector of its own."""
CAUSES = ("revision", "platform", "datacentre")


@dataclass(frozen=True, slots=True)
class WatchedIncident:
    """A profile in which an incident was planted, and what the watch said of it."""

    fleet: int
    collector: int
    cause: str
    value: str
    """Of the cause."""
    application: str
    function: str
    factor: float
    """Where the cause acts."""
    size: float
    """Share of the function in all of the fleet's cycles, in good health."""
    growth: float
    """Factor by which it grows over all of the fleet."""
    stated: float | None
    """Factor that is stated for a function of its size; None: none is."""
    detected: bool
    blamed: str
    """Dimension and value that are named first, if it was found."""
    right: bool
    """Whether that is what was planted."""
    beside: int
    """Other functions that are said to have become more expensive."""


@dataclass(frozen=True, slots=True)
class IncidentOutcomes:
    """What became of the incidents of one cause."""

    cause: str
    incidents: int
    could_be_found: int
    """Whose growth is at least the stated one."""
    detected_of_those: int
    detected: int
    right: int


@dataclass(frozen=True, slots=True)
class WatchTrial:
    """How often incidents that could be found were, with their cause first, and healthy profiles left alone."""

    power: float
    """Share detected of the incidents that could be; NaN: none could."""
    right: float
    """Share of the incidents found whose cause is named first; NaN: none was found."""
    quiet: float
    """Share of the healthy profiles in which no function is said to have become more expensive."""
    causes: list[IncidentOutcomes]
    trials: list[WatchedIncident]
    healthy: list[int]
    """Functions said to have become more expensive in each healthy profile."""


def fleet_of(seed: int) -> ProfileWorld:
    """Return the fleet of a number, whose programs and machines get no new compiler and no new kernel."""
    world = world_of(seed)
    return replace(world, profiling=replace(world.profiling, compiler=None, kernel=None))


def watched(planted: int, healthy: int, out: Path, progress: Progress) -> WatchTrial:
    """Return how often incidents were found with their causes, and healthy profiles left alone.

    Fleets that were judged before by this very code are read; what was interrupted goes on where it stopped.

    Parameters
    ----------
    planted, healthy : profiles of each kind, at least one
    out : folder of all runs
    progress : told what is being done and the share done

    Raises
    ------
    InputError
        If there is nothing to plant or to leave alone.
    """
    shares = over_fleets(planted, healthy, PER_FLEET)
    question = {"world": asdict(fleet_of(0)), "factors": FACTORS, "worth": WORTH, "profiles": list(shares.values())}
    folder = folder_of(out, "watch", question, ["scipy", "pandas", "duckdb"])
    make = partial(judged, shares=shares)
    parts = computed_parts(list(shares), make, folder, {"planted", "healthy"}, progress, what="planting incidents")
    return summary(
        [WatchedIncident(**incident) for part in parts for incident in part["planted"]],
        [count for part in parts for count in part["healthy"]],
    )


def summary(planted: Sequence[WatchedIncident], healthy: Sequence[int]) -> WatchTrial:
    """Return what all profiles together say."""
    could = [incident for incident in planted if _could_be_found(incident)]
    named = [incident for incident in planted if incident.detected]
    return WatchTrial(
        power=sum(incident.detected for incident in could) / len(could) if could else math.nan,
        right=sum(incident.right for incident in named) / len(named) if named else math.nan,
        quiet=healthy.count(0) / len(healthy),
        causes=[_outcomes(cause, [incident for incident in planted if incident.cause == cause]) for cause in CAUSES],
        trials=list(planted),
        healthy=list(healthy),
    )


def _could_be_found(incident: WatchedIncident) -> bool:
    return incident.stated is not None and incident.growth >= incident.stated


def _outcomes(cause: str, incidents: Sequence[WatchedIncident]) -> IncidentOutcomes:
    could = [incident for incident in incidents if _could_be_found(incident)]
    counts = Counter(detected=0, right=0)
    for incident in incidents:
        counts.update(detected=incident.detected, right=incident.right)
    detected_of_those = sum(incident.detected for incident in could)
    return IncidentOutcomes(cause, len(incidents), len(could), detected_of_those, counts["detected"], counts["right"])


class JudgedProfiles(TypedDict):
    """What is kept of one fleet's profiles."""

    seed: int
    planted: list[dict[str, Any]]
    """The fields of `WatchedIncident`."""
    healthy: list[int]


def judged(seed: int, shares: Mapping[int, Sequence[int]]) -> JudgedProfiles:
    """Return what the watch said of a fleet's profiles, as JSON keeps it.

    Parameters
    ----------
    seed : number of the fleet
    shares : how many profiles are planted and how many healthy, for each fleet
    """
    planted, healthy = shares[seed]
    fleet = PlantedFleet.of(fleet_of(seed), planted + healthy)
    spent = fleet.spent()
    worth = worth_finding(fleet.setting, spent)
    sizes = spent.groupby("function")["cycles"].sum() / spent["cycles"].sum()
    incidents = []
    for i in range(planted):
        cause = CAUSES[(seed * PER_FLEET + i) % len(CAUSES)]
        rng = stream(seed, f"watched incident {i}")
        incident, share = chosen(worth[worth["cause"] == cause], rng, fleet.half_s)
        size = float(sizes[incident.function])
        answer = _watched(fleet, i, (incident,))
        incidents.append(asdict(_outcome(answer, incident, cause, (size, share), (seed, i))))
    quiet = [len(_watched(fleet, i).alarms) for i in range(planted, planted + healthy)]
    return {"seed": seed, "planted": incidents, "healthy": quiet}


def _watched(fleet: PlantedFleet, collector: int, incidents: Sequence[Incident] = ()) -> ProfileWatch:
    """Return what the watch says of a collector's profile."""
    with TemporaryDirectory() as folder:
        fleet.write(Path(folder), collector, incidents)
        return watch([Path(folder)], "cycles")


def _outcome(
    answer: ProfileWatch, incident: Incident, cause: str, shares: tuple[float, float], place: tuple[int, int]
) -> WatchedIncident:
    """Return what the watch said of an incident, given its function's share of the fleet, and where the cause acts."""
    size, share = shares
    named = next((change for change in answer.alarms if change.function == incident.function), None)
    first = named.causes[0] if named is not None and named.causes else None
    value = str(getattr(incident, cause))
    right = first is not None and (first.dimension, first.value) == (cause, value)
    if cause == "revision" and first is not None:
        right &= first.application == incident.application
    return WatchedIncident(
        fleet=place[0],
        collector=place[1],
        cause=cause,
        value=value,
        application=incident.application,
        function=incident.function,
        factor=incident.factor,
        size=size,
        growth=1.0 + share * (incident.factor - 1.0) / size,
        stated=_stated(answer, size),
        detected=named is not None,
        blamed=first.words() if first is not None else "",
        right=right,
        beside=sum(change.function != incident.function for change in answer.alarms),
    )


def _stated(answer: ProfileWatch, size: float) -> float | None:
    """Return the factor stated for functions of a size: interpolated over the logarithms of both."""
    known = [(row.share, row.factor) for row in answer.detectable if row.factor is not None]
    if not known:
        return None
    at, factors = (np.log(np.array(column, dtype=np.float64)) for column in zip(*known, strict=True))
    return float(np.exp(np.interp(math.log(size), at, factors)))
